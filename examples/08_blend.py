"""A helix far from rest: one model, a blend of twelve, and the same mixed as in TVCG, beside the true equilibria."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
FORCE = 300  # newtons, in any direction, on the last link
TIP = "link50"


def main() -> None:
    OUT.mkdir(exist_ok=True)
    helix = pliant.gallery.helix(50)
    rest = pliant.reduce(helix, TIP)
    blended = pliant.sample(helix, TIP, FORCE, tolerance=0, progress=False)
    print(blended.summary(), "\n")
    blended.plot(OUT / "sampled.png")

    fresh = blended.accuracy.wrenches  # no model was made from these
    figure = Figure(figsize=(8, 4.6), dpi=120)
    axes = figure.add_subplot(
        xlabel="tip moves by (radii)", ylabel="tip error (radii)", yscale="log", ylim=(1e-7, 0.2)
    )
    for model, method, label, colour, marker in (
        (blended.model, "tvcg", "12 models mixed as in TVCG", "#d9822b", "s"),
        (rest, "exact", "one model, at rest", "#c0392b", "o"),
        (blended.model, "exact", "12 models blended", "#3566c4", "^"),
    ):
        found = model.error(fresh, method=method)
        print(f"{label:34} rms {found.rms:.5f}, worst {found.worst:.5f} of the radius")
        axes.plot(found.moved, found.position, marker, color=colour, markersize=4, label=label)
    axes.set_title(f"helix, {FORCE} N or less in {len(fresh)} directions not used before", fontsize=10)
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "blend.png")

    simulation = pliant.ReducedSimulation(blended.model, 1 / 60)
    simulation.apply_wrench(TIP, force=(0, FORCE, 0))
    simulation.step(600)
    truth = pliant.equilibrium(helix, {TIP: (0, FORCE, 0)})
    gap = np.linalg.norm(simulation.pose(TIP)[:3, 3] - truth.pose(TIP)[:3, 3])
    print(f"\nIn motion it settles {1000 * gap:.3f} mm from the equilibrium under {FORCE} N along y,")
    print(f"where the tip moves by {1000 * truth.displacement[helix.body_index(TIP)]:.1f} mm.")
    print(f"The pictures are {OUT / 'blend.png'} and {OUT / 'sampled.png'}.")


if __name__ == "__main__":
    main()
