"""Static equilibria of gallery mechanisms, with and without closed loops: a table and a picture.

Run it: python examples/01_equilibrium.py
"""

import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import pliant
from pliant.viewer import draw

OUT = Path("out")
# mechanism, forces in newtons (gravity is compensated: the reference pose is the rest pose), view
CASES = [
    (pliant.gallery.helix(50), {"link50": (60, 0, -80)}, (20, -60)),
    (pliant.gallery.helix(400), {"link400": (60, 0, -80)}, (20, -60)),
    (pliant.gallery.ladder(12, "cells"), {"rung12": (100, 0, 0)}, (8, -75)),
    (pliant.gallery.ladder(12, "rails"), {"rung12": (100, 0, 0)}, (8, -75)),
    (pliant.gallery.gripper(), {"left_pad": (-60, 0, 0), "right_pad": (60, 0, 0)}, (12, -75)),
    (pliant.gallery.suspension(), {"upright": (0, 0, 2000)}, (12, -160)),
]


def main() -> None:
    OUT.mkdir(exist_ok=True)
    pliant.equilibrium(CASES[-1][0], CASES[-1][1])  # compiles the kernels, or loads them
    table = Table(title="Static equilibria", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for heading in ("mechanism", "links", "loops", "load N", "moved m", "residual", "closed", "ms", ""):
        table.add_column(heading, justify="left" if heading in ("mechanism", "") else "right", no_wrap=True)
    figure = Figure(figsize=(12, 8), dpi=120)
    for number, (mechanism, forces, view) in enumerate(CASES, start=1):
        start = time.perf_counter()
        found = pliant.equilibrium(mechanism, forces)
        spent = time.perf_counter() - start
        effector = mechanism.body_index(mechanism.end_effectors[0])
        load = max(np.linalg.norm(force) for force in forces.values())
        gap = f"{np.abs(found.loop_residual).max():.0e}" if mechanism.topology.loops else "-"
        moved = f"{found.displacement[effector]:.4f}"
        counts = str(mechanism.body_count), str(mechanism.topology.loops)
        solved = f"{found.residual:.0e}", gap, f"{1000 * spent:.1f}", found.stability
        table.add_row(mechanism.name, *counts, f"{load:g}", moved, *solved)
        draw(found, figure.add_subplot(2, 3, number), view=view, title=mechanism.name)
    figure.tight_layout(pad=0.5)
    figure.savefig(OUT / "equilibrium.png")
    console = Console()
    console.print(table)
    console.print("moved: first end effector; residual: largest unbalanced force over the load;")
    console.print("closed: how far loops are open at most, m and rad; ms: time of the solve\n")
    console.print(f"The picture is {OUT / 'equilibrium.png'}; the pale shapes are the reference poses.\n")
    console.print("Try next:  examples/02_build_a_linkage.py  describe a mechanism of your own")
    console.print("           examples/03_load_a_robot.py     load an MJCF or URDF file")
    console.print("           docs/quick-start.md             ten minutes with pliant")


if __name__ == "__main__":
    main()
