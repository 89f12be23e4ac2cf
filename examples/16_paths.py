"""Paths of equilibria: a flexure switch that snaps through and stays, and a column that buckles to either side."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant
from pliant.shapes import rod
from pliant.viewer import draw, record_html

OUT = Path("out")


def column(links: int = 30) -> pliant.Mechanism:
    """A clamped column of 1 m and E I = 1 N m²: hinges with the stiffness of a cell, twice that at the clamp."""
    b = pliant.Builder("column")
    cell, parent = 1 / links, "world"
    for i in range(links):
        name, stiffness = f"link{i + 1}", (2 if i == 0 else 1) / cell
        shape = rod((0, 0, -cell), (0, 0, 0), 0.008)
        b.body(name, mass=0.01, position=(0, 0, (i + 1) * cell), shapes=[shape])
        b.hinge(name, parent, name, anchor=(0, 0, i * cell), axis=(0, 1, 0), stiffness=stiffness)
        parent = name
    b.end_effectors(parent)
    return b.build()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    snapped = pliant.path(pliant.gallery.bistable(), {"shuttle": (0, 0, -8)})
    up, down = snapped.limit_points[0], snapped.limit_points[-1]
    print(f"the switch snaps down at {8 * up.factor:.2f} N and back up at {8 * down.factor:.2f} N")
    for state in snapped.at(0.0):
        print(f"  without a load: shuttle at {1000 * state.pose('shuttle')[2, 3]:6.2f} mm, {state.stability}")

    buckled = pliant.path(column(), {"link30": (0, 0, -5)}, branches=True)
    print(f"the column buckles at {5 * buckled.branch_points[0].factor:.4f} N (Euler: {np.pi**2 / 4:.4f} N)")
    last = buckled.branches[0].configuration(-1)
    x, _, z = last.pose("link30")[:3, 3]
    print(
        f"  under 5 N its tip is at x = {abs(x):.3f} m, z = {z:.3f} m, {last.stability}; so is its mirror image"
    )

    snapped.plot(OUT / "snap-through.png", "shuttle")
    buckled.plot(OUT / "buckled.png", "link30", axis="x")
    figure = Figure(figsize=(9, 3.6), dpi=120)
    for panel, (state, title) in enumerate(
        ((snapped.configuration(0), "as made"), (snapped.at(0.0)[-1], "snapped"), (last, "column under 5 N")),
        start=1,
    ):
        draw(state, figure.add_subplot(1, 3, panel), view=(8, -90), title=title)
    figure.tight_layout()
    figure.savefig(OUT / "paths.png")
    record_html(buckled.branches[0].trajectory(4.0), OUT / "column.html")
    print(f"Pictures are in {OUT}: snap-through.png, buckled.png, paths.png; column.html shows it in motion.")


if __name__ == "__main__":
    main()
