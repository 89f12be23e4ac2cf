"""One bond of a molecule of 20,000 joints is pulled for two seconds: which joints move, and how well a few will do.

Another number of joints may be given.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
LINKS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
STEP, SECONDS, FRAMES = 1 / 240, 2.0, 40
TOLERANCE = 0.01  # m/s²
NEVER = -1.0


def main() -> None:
    OUT.mkdir(exist_ok=True)
    m = pliant.gallery.molecule(LINKS).with_stiffness("*", 1e-3, 5e-6)
    bond = m.body_names[-1]
    whole = pliant.ConstrainedSimulation(m, STEP, (0, 0, 0))
    few = pliant.AdaptiveSimulation(m, STEP, (0, 0, 0), tolerance=TOLERANCE)
    start, at = few.pose(bond)[:3, 3], few.poses[:, :3, 3].copy()
    steps = round(SECONDS / STEP / FRAMES)
    took, rows = np.zeros(2), []
    woke = np.full(m.body_count, NEVER)
    for simulation in (whole, few):
        simulation.apply_wrench(bond, force=(0, 0, 1e-3))
        simulation.step()  # compiles
    for _ in range(FRAMES):
        for i, simulation in enumerate((whole, few)):
            began = perf_counter()
            simulation.step(steps)
            took[i] += perf_counter() - began
        moving = [m.body_index(name) for name in few.active]
        woke[moving] = np.where(woke[moving] == NEVER, few.time, woke[moving])
        places = [np.linalg.norm(s.pose(bond)[:3, 3] - start) for s in (whole, few)]
        apart = np.linalg.norm(whole.pose(bond)[:3, 3] - few.pose(bond)[:3, 3])
        rows.append((few.time, *places, apart, len(moving)))
    table = np.array(rows)
    end = table[-1]
    print(f"{m.name}: {m.joint_count} joints, one force, {few.time:.1f} s")
    print(f"the bond moves by {1e3 * end[1]:.1f} mm; {int(end[4])} joints move at the end")
    verdict = "within 1 %" if end[3] < 0.01 * end[1] else "farther than 1 %"
    print(f"from where the constrained engine has it: {100 * end[3] / end[1]:.2f} % of that, {verdict}")
    print(f"in {took[1]:.2f} s instead of {took[0]:.1f} s")
    draw(at, woke, table)
    print(f"The picture is {OUT / 'adaptive.png'}.")


def draw(at: np.ndarray, woke: np.ndarray, table: np.ndarray) -> None:
    """The molecule with the joints that moved, by the time when they first did; the bond's way in both engines."""
    figure = Figure(figsize=(12, 5), dpi=90)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    left.scatter(at[:, 0], at[:, 2], s=0.4, c="#c9ced6", linewidths=0)
    some = np.flatnonzero(woke != NEVER)
    dots = left.scatter(at[some, 0], at[some, 2], s=14, c=woke[some], cmap="plasma_r", linewidths=0)
    figure.colorbar(dots, ax=left, label="moves since (s)", shrink=0.8)
    left.set_aspect("equal")
    left.set_title(f"{len(at):,} joints: the {len(some)} that moved", fontsize=10)
    left.set_xlabel("x (m)")
    left.set_ylabel("z (m)")
    right.plot(table[:, 0], 1e3 * table[:, 1], color="#3566c4", linewidth=4, alpha=0.4, label="all joints")
    right.plot(table[:, 0], 1e3 * table[:, 2], color="#d9822b", linewidth=1.5, label="adaptive")
    right.set_xlabel("time (s)")
    right.set_ylabel("way of the pulled bond (mm)")
    right.legend(frameon=False, fontsize=9)
    count = right.twinx()
    count.plot(table[:, 0], table[:, 4], color="#888888", linestyle=":")
    count.set_ylabel("joints that move (dotted)")
    count.set_ylim(0, None)
    left.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "adaptive.png")


if __name__ == "__main__":
    main()
