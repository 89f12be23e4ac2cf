"""A helix far from rest: one model, a blend of twelve and a polynomial, beside the true equilibria."""

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
    fitted = pliant.sample(helix, TIP, FORCE, tolerance=0, kind="polynomial", progress=False)
    print(blended.summary(), "\n")
    print(fitted.summary(), "\n")
    blended.plot(OUT / "sampled.png")

    fresh = blended.accuracy.wrenches  # neither of the two was made from these
    figure = Figure(figsize=(8, 4.6), dpi=120)
    axes = figure.add_subplot(
        xlabel="tip moves by (radii)", ylabel="tip error (radii)", yscale="log", ylim=(1e-7, 0.2)
    )
    for model, label, colour, marker in (
        (rest, "one model, at rest", "#c0392b", "o"),
        (blended.model, "12 models blended", "#d9822b", "s"),
        (fitted.model, "polynomial through 60 equilibria", "#3566c4", "^"),
    ):
        found = model.error(fresh)
        print(f"{label:34} rms {found.rms:.5f}, worst {found.worst:.5f} of the radius")
        axes.plot(found.moved, found.position, marker, color=colour, markersize=4, label=label)
    axes.set_title(f"helix, {FORCE} N or less in {len(fresh)} directions not used before", fontsize=10)
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "blend.png")

    simulation = pliant.ReducedSimulation(fitted.model, 1 / 60)
    simulation.apply_wrench(TIP, force=(0, FORCE, 0))
    simulation.step(600)
    truth = pliant.equilibrium(helix, {TIP: (0, FORCE, 0)})
    gap = np.linalg.norm(simulation.pose(TIP)[:3, 3] - truth.pose(TIP)[:3, 3])
    print(f"\nIn motion it settles {1000 * gap:.3f} mm from the equilibrium under {FORCE} N along y,")
    print(f"where the tip moves by {1000 * truth.displacement[helix.body_index(TIP)]:.1f} mm.")
    print(f"The pictures are {OUT / 'blend.png'} and {OUT / 'sampled.png'}.")


if __name__ == "__main__":
    main()
