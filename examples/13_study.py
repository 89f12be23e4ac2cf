"""Many designs at once: a hand from a TOML file, tolerances of a flexure with a function of one's own, and grasps.

`pliant sweep examples/13_study.toml` does the first part from the command line, and
`pliant sweep examples/13_study_grasps.toml` all ten thousand grasps.
"""

import tomllib
from pathlib import Path

import pliant
from pliant.study import Study, read

OUT = Path("out")
HERE = Path(__file__).resolve().parent


def straightness(mechanism: pliant.Mechanism, parameters: dict[str, float]) -> dict[str, float]:
    """How far the stage of a flexure sinks for the way it is pushed."""
    at = pliant.equilibrium(mechanism, {"stage": (parameters["push"], 0, 0)})
    moved = at.pose("stage")[:3, 3] - pliant.Configuration(mechanism).pose("stage")[:3, 3]
    return {"way": moved[0], "sinks": -moved[2]}


def hand() -> None:
    """Softness against frequency, from the file."""
    results = read(HERE / "13_study.toml", OUT / "hand.parquet").run()
    soft, frequency = results.columns["soft"], results.columns["frequency"]
    print(f"{len(results)} hands, {len(results.errors)} failed: {1e3 * soft.min():.2f}", end=" ")
    print(f"to {1e3 * soft.max():.2f} mm/N, {frequency.min():.1f} to {frequency.max():.1f} Hz")
    for picture in results.plot(OUT):
        print(f"wrote {picture}")


def tolerances() -> None:
    """A flexure whose four springs are each 5 % off."""
    study = Study(
        "gallery:flexure_stage",
        parameters={
            **{
                f"k{i}": {"stiffness": joint, "normal": [1.0, 0.05], "relative": True}
                for i, joint in enumerate(pliant.gallery.flexure_stage().joint_names)
            },
            "push": [5.0],
        },
        outputs={"stage": straightness},
        results=OUT / "flexure.parquet",
        samples=100,
        sampling="latin",
    )
    way = study.run().columns["stage.way"]
    print(f"{len(way)} flexures pushed by 5 N move by {1e3 * way.mean():.3f} ± {1e3 * way.std():.3f} mm")


def grasps() -> None:
    """The first of ten thousand grasps."""
    given = tomllib.loads((HERE / "13_study_grasps.toml").read_text(encoding="utf-8"))
    results = Study(**{**given, "samples": 64}, results=OUT / "grasps.parquet").run()
    held, squeeze = results.columns["held.success"] == 1, results.columns["held.squeeze"]
    print(f"{len(results)} grasps: {held.sum()} balls are held,", end=" ")
    print(f"with {squeeze[held].mean():.0f} N; the others with {squeeze[~held].mean():.0f} N")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name in ("hand.parquet", "flexure.parquet", "grasps.parquet"):
        (OUT / name).unlink(missing_ok=True)  # a study does not overwrite results
    hand()
    tolerances()
    grasps()


if __name__ == "__main__":
    main()
