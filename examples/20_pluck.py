"""A finger is pulled far, suddenly, and let go: the linear model, the one with exact forces, and all links."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
FINGER, FORCE = "index_tip", (6, 0, 8)  # newtons, world axes
STEP, SECONDS = 1e-3, 0.8


def pluck(simulation: pliant.Simulation) -> np.ndarray:
    """Positions of the fingertip every `STEP` seconds: pulled suddenly, let go after half the time, (frames, 3), m."""
    parts, every = [simulation.pose(FINGER)[None, :3, 3]], round(STEP / simulation.timestep)
    for force in (FORCE, (0, 0, 0)):
        simulation.apply_wrench(FINGER, force=force)
        parts.append(simulation.record(round(SECONDS / STEP) // 2, every).pose(FINGER)[:, :3, 3])
    return np.concatenate(parts)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    hand = pliant.gallery.hand()
    model = pliant.reduce(hand, FINGER, reach=0.5, progress=False)
    print(model.summary(), "\n")

    runs = {
        "linear (TVCG)": pluck(pliant.ReducedSimulation(model, STEP, method="tvcg")),
        "exact forces": pluck(pliant.ReducedSimulation(model, STEP)),
        "all links": pluck(pliant.ConstrainedSimulation(hand, STEP / 10, (0, 0, 0))),
    }
    truth = runs["all links"]
    moved = float(np.linalg.norm(truth - truth[0], axis=1).max())
    print(
        f"{np.linalg.norm(FORCE):.0f} N pull '{FINGER}' by {1000 * moved:.0f} mm, {moved / hand.radius:.2f} radii of the hand; "
        f"the model holds 1 % up to {model.reach:.2g} radii at rest"
    )
    for name, path in list(runs.items())[:2]:
        error = np.sqrt(((path - truth) ** 2).sum(axis=1).mean())
        print(f"  {name:14} {100 * error / moved:6.2f} % off all links, root mean square over {SECONDS:g} s")

    figure = Figure(figsize=(9, 4.2), dpi=120)
    axes = figure.add_subplot(xlabel="time (s)", ylabel="moved up (mm)", xlim=(0, SECONDS))
    time, rest = STEP * np.arange(len(truth)), model.at.pose(FINGER)[2, 3]
    looks = (("#d9822b", "-", 1.5), ("#3566c4", "-", 2.5), ("#111111", ":", 1.5))
    for (name, path), (colour, style, width) in zip(runs.items(), looks, strict=True):
        axes.plot(time, 1000 * (path[:, 2] - rest), style, color=colour, linewidth=width, label=name)
    axes.set_title(f"A finger, pulled by {np.linalg.norm(FORCE):.0f} N and let go", fontsize=10)
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "pluck.png")
    print(f"The picture is {OUT / 'pluck.png'}.")


if __name__ == "__main__":
    main()
