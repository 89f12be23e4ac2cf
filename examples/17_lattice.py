"""Lattices of flexures: a grid that shears, and rotating squares that grow narrower when they are compressed.

Squares hinged at their corners turn against each other: the sheet shrinks across as much as along, so its Poisson's
ratio is -1. Ordinary materials bulge: theirs is 0.2 to 0.5.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant
from pliant.viewer import draw

OUT = Path("out")


def strains(squares: pliant.Mechanism, found: pliant.Configuration) -> tuple[float, float]:
    """Strain across and along, between squares four cells apart in the middle of a lattice of 8 x 8."""
    rest = pliant.Configuration(squares)
    out = []
    for start, end, axis in (("square2_4", "square6_4", 0), ("square4_2", "square4_6", 2)):
        lengths = [(c.pose(end) - c.pose(start))[axis, 3] for c in (rest, found)]
        out.append(lengths[1] / lengths[0] - 1)
    return out[0], out[1]


def main() -> None:
    OUT.mkdir(exist_ok=True)
    grid = pliant.gallery.lattice(8, 8)
    print(grid)
    sheared = pliant.equilibrium(grid, {"node8_8": (60, 0, 0)})
    small = pliant.Configuration(grid).compliance("node8_8")[0, 0]
    shift = sheared.displacement[grid.body_index("node8_8")]
    print(
        f"  sideways stiffness of the top row {1e-3 / small:.2f} N/mm; under 60 N it moves by {1e3 * shift:.1f} mm"
    )

    squares = pliant.gallery.lattice(8, 8, form="auxetic")
    print(squares)
    forces, found, across, along = np.linspace(300, -200, 11), None, [], []
    for force in forces:
        found = pliant.equilibrium(squares, {"square8_8": (0, 0, force)})
        x, z = strains(squares, found)
        across.append(x)
        along.append(z)
    assert found is not None
    print(f"  under 200 N it is {-100 * along[-1]:.1f} % shorter and {-100 * across[-1]:.1f} % narrower")
    print(f"  Poisson's ratio {-across[-1] / along[-1]:.6f}, at 300 N of tension {-across[0] / along[0]:.6f}")

    figure = Figure(figsize=(11, 3.8), dpi=120)
    draw(sheared, figure.add_subplot(1, 3, 1), view=(8, -80), title="60 N on a grid")
    draw(found, figure.add_subplot(1, 3, 2), view=(8, -80), title="200 N on rotating squares")
    axes = figure.add_subplot(1, 3, 3, xlabel="strain along (%)", ylabel="strain across (%)")
    axes.plot(100 * np.array(along), 100 * np.array(across), "o-", color="#3566c4", label="rotating squares")
    axes.plot(
        100 * np.array(along), -30 * np.array(along), "--", color="#888888", label="Poisson's ratio 0.3"
    )
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "lattice.png")
    print(f"The picture is {OUT / 'lattice.png'}.")


if __name__ == "__main__":
    main()
