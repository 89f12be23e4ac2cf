"""A hand reduced to its five fingertips: its compliance, and a finger that is pulled, holds, and is let go."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
FINGER, FORCE = "index_tip", (0, 0, 2)  # newtons, world axes
STEP = 1 / 1000  # seconds


def main() -> None:
    OUT.mkdir(exist_ok=True)
    hand = pliant.gallery.hand()
    model = pliant.reduce(hand)  # to the end effectors it suggests: the fingertips
    print(model.summary(), "\n")
    model.plot(OUT / "ellipsoids.png", view=(28, -35))

    simulation = pliant.ReducedSimulation(model, STEP)
    simulation.apply_wrench(FINGER, force=FORCE)
    pulled = simulation.record(600)
    settled = simulation.pose(FINGER)[:3, 3]
    simulation.clear_wrenches()
    released = simulation.record(400)

    start = model.at.pose(FINGER)[:3, 3]
    exact = pliant.equilibrium(hand, {FINGER: FORCE}).pose(FINGER)[:3, 3]
    moved, error = np.linalg.norm(exact - start), np.linalg.norm(settled - exact)
    print(f"'{FINGER}' pulled up by {FORCE[2]} N")
    print(f"  full nonlinear equilibrium   {1000 * moved:6.2f} mm from rest")
    print(f"  reduced model, settled       {1000 * np.linalg.norm(settled - start):6.2f} mm from rest")
    print(f"  they differ by               {1000 * error:6.2f} mm, {100 * error / moved:.1f} % of the motion")

    figure = Figure(figsize=(9, 4.2), dpi=120)
    axes = figure.add_subplot(xlabel="time (s)", ylabel="moved up (mm)", xlim=(0, 1))
    time = np.concatenate([pulled.time, released.time])
    for body, colour in ((FINGER, "#3566c4"), ("middle_tip", "#d9822b"), ("thumb_tip", "#3a9a4c")):
        height = np.concatenate([pulled.pose(body), released.pose(body)])[:, 2, 3]
        rise = 1000 * (height - model.at.pose(body)[2, 3])
        axes.plot(time, rise, color=colour, label=body.replace("_tip", ""))
    rise = 1000 * (exact - start)[2]
    axes.plot(
        [0, pulled.time[-1]], [rise, rise], "--", color="#777777", linewidth=1, label="index at equilibrium"
    )
    axes.axvline(pulled.time[-1], color="#bbbbbb", linewidth=0.8)
    axes.text(pulled.time[-1] + 0.01, axes.get_ylim()[1], "let go", color="#777777", va="top", fontsize=9)
    axes.set_title(
        f"{FORCE[2]} N on the index finger: the wrist gives too, so every finger moves", fontsize=10
    )
    axes.legend(frameon=False, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "reduced.png")
    print(f"The pictures are {OUT / 'reduced.png'} and {OUT / 'ellipsoids.png'}.")


if __name__ == "__main__":
    main()
