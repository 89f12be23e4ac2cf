"""Paths of equilibria: a flexure switch that snaps through and stays, and a column that buckles to either side."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant
from pliant.shapes import box, rod
from pliant.viewer import draw, record_html

OUT = Path("out")
SPAN, RISE = 0.05, 0.008  # m: half a beam of the switch, and how high its shuttle stands


def switch() -> pliant.Mechanism:
    """A shuttle on two inclined beams, each a pseudo-rigid body: torsion springs at its ends, a stiff axial spring."""
    b = pliant.Builder("switch")
    b.body(
        "shuttle",
        mass=0.02,
        position=(0, 0, RISE),
        shapes=[box((0.006, 0.01, 0.003), rgba=(0.85, 0.5, 0.2, 1))],
    )
    length = np.hypot(SPAN, RISE)
    for name, side in (("left", -1), ("right", 1)):
        foot = np.array([side * SPAN, 0, 0])
        along = np.array([-side * SPAN, 0, RISE]) / length
        beam = rod((0, 0, 0), tuple(0.5 * length * along), 0.0012)
        b.body(f"{name} foot", mass=0.002, position=foot, shapes=[beam])
        b.body(
            f"{name} head",
            mass=0.002,
            position=(0, 0, RISE),
            shapes=[rod(tuple(-0.5 * length * along), (0, 0, 0), 0.0012)],
        )
        b.hinge(f"{name} root", "world", f"{name} foot", anchor=foot, axis=(0, 1, 0), stiffness=0.02)
        b.slide(f"{name} axial", f"{name} foot", f"{name} head", axis=along, stiffness=4e4)
        b.hinge(f"{name} tip", f"{name} head", "shuttle", anchor=(0, 0, RISE), axis=(0, 1, 0), stiffness=0.02)
    b.end_effectors("shuttle")
    return b.build()


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
    snapped = pliant.path(switch(), {"shuttle": (0, 0, -8)})
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
