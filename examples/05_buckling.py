"""Stability: a rod of hinges under its own weight, upright, buckled and hanging."""

from pathlib import Path

from matplotlib.figure import Figure

import pliant
from pliant.shapes import box, rod
from pliant.viewer import draw

OUT = Path("out")
GRAVITY = (0, 0, -9.81)
N, LENGTH, MASS = 20, 1.0, 1.0  # links, m, kg
COLOURS = (0.26, 0.47, 0.76, 1), (0.55, 0.74, 0.91, 1)


def upright_rod() -> pliant.Mechanism:
    b = pliant.Builder("rod")
    step, parent = LENGTH / N, "world"
    for i in range(N):
        name = f"link{i + 1}"
        shape = rod((0, 0, -step / 2), (0, 0, step / 2), 0.012, rgba=COLOURS[i % 2])
        b.body(name, mass=MASS / N, position=(0, 0, (i + 0.5) * step), shapes=[shape])
        b.hinge(name, parent, name, anchor=(0, 0, i * step), axis=(0, 1, 0))
        parent = name
    b.world_shape(box((0.08, 0.08, 0.02), position=(0, 0, -0.03), rgba=(0.26, 0.28, 0.32, 1)))
    return b.build()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    rod, tip = upright_rod(), f"link{N}"
    # Upright is an equilibrium whatever the stiffness, unstable below a critical one. Greenhill: weight L^2 = 7.84 E I;
    # in hinges, E I is the stiffness times the length of a link.
    critical = MASS * 9.81 * LENGTH**2 / 7.837 / (LENGTH / N)
    print(f"an upright rod buckles below {critical:.1f} N m/rad per hinge (continuous rod)")
    for k in (1.1 * critical, 0.9 * critical):
        upright = pliant.equilibrium(rod.with_stiffness("*", k), gravity=GRAVITY, start=rod.reference)
        print(f"  {k:5.1f} N m/rad: upright is {upright.stability}")
    # A push that is taken away again leads from the unstable pose to a stable one.
    figure = Figure(figsize=(11, 4), dpi=120)
    for panel, k in enumerate((0.9 * critical, 0.5 * critical, 0.02 * critical), start=1):
        soft = rod.with_stiffness("*", k)
        pushed = pliant.equilibrium(soft, {tip: (1.0, 0, 0)}, gravity=GRAVITY)
        sagged = pliant.equilibrium(soft, gravity=GRAVITY, start=pushed)
        x, _, z = sagged.pose(tip)[:3, 3]
        print(f"  {k:5.1f} N m/rad: pushed, it rests at x = {x:.3f} m, z = {z:.3f} m: {sagged.stability}")
        title = f"{k:.1f} N m/rad, {sagged.stability}"
        draw(sagged, figure.add_subplot(1, 3, panel), view=(8, -80), title=title)
    figure.tight_layout()
    figure.savefig(OUT / "buckling.png")
    print(f"The picture is {OUT / 'buckling.png'}.")


if __name__ == "__main__":
    main()
