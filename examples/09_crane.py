"""A crane at 1/60 s: it lifts 15 t on a cable with segments of 0.2 kg; then its strut turns soft and the boom falls."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pliant import scenes
from pliant.viewer import draw

OUT = Path("out")
STEPS = ((30, "#d9822b"), (60, "#3566c4"), (240, "#222222"))  # per second, and a colour
SHOWN = (0, 78, 174)  # steps of 1/60 s
LAST = 6  # seconds
TIP = (10 * np.cos(np.radians(20)), 0, 10 * np.sin(np.radians(20)), 1)  # of the boom, in its frame
HOOK = (0, 0, 2.4, 1)  # of the vehicle


def lift() -> None:
    """The motor of the strut raises boom and vehicle: where does its work go?"""
    scene = scenes.crane_lift()
    simulation, motor = scene.simulate(), scene.motors["luff"]
    m = scene.mechanism
    joint, weight = m.joint_index("joint1"), 9.81 * m.mass[m.body_index("vehicle")]
    before, height, work, force = simulation.energy, simulation.pose("vehicle")[2, 3], 0.0, []
    for _ in range(240):
        length = simulation.configuration["luff"]
        simulation.step()
        longer = simulation.configuration["luff"] - length
        push = motor["torque"] + motor["damping"] * (motor["velocity"] - longer / simulation.timestep)
        work += push * longer
        force.append(np.linalg.norm(simulation.joint_forces[joint, :3]) / weight)
    gained = simulation.energy.total - before.total
    risen = simulation.pose("vehicle")[2, 3] - height
    print(f"Lift: the vehicle rises by {risen:.2f} m in {simulation.time:.0f} s")
    print(f"  work of the motor          {work / 1e6:7.4f} MJ")
    print(f"  energy of the crane        {gained / 1e6:+7.4f} MJ")
    print(f"  left to the dampers        {(work - gained) / 1e6:7.4f} MJ")
    print(
        f"  pull at the boom's tip     {min(force):.2f} to {max(force):.2f} times the weight of the vehicle"
    )
    print(f"  loop of the strut open by  {simulation.violation:.0e} m\n")


def drop() -> None:
    """The boom falls: the same motion at three time steps?"""
    scene = scenes.boom_drop()
    plot, shots = Figure(figsize=(8, 5.4), dpi=120), Figure(figsize=(12, 3.6), dpi=120)
    upper = plot.add_subplot(2, 1, 1, ylabel="boom above level (degrees)", xlim=(0, LAST), ylim=(5, 25))
    lower = plot.add_subplot(2, 1, 2, xlabel="time (s)", ylabel="hook from boom's tip (m)", xlim=(0, LAST))
    print("Drop:  step     lowest boom     energy     solves per step   loop open by")
    for rate, colour in STEPS:
        simulation, rows = scene.simulate(1 / rate), []
        start, solves = simulation.energy.total, 0
        for i in range(LAST * rate + 1):
            now = simulation.configuration
            if rate == 60 and i in SHOWN:
                axes = shots.add_subplot(1, len(SHOWN), SHOWN.index(i) + 1)
                draw(now, axes, view=(6, -84), title=f"{simulation.time:.1f} s")
            apart = np.linalg.norm((now.pose("boom") @ TIP - now.pose("vehicle") @ HOOK)[:3])
            rows.append(
                (simulation.time, 20 - np.degrees(now["boom_foot"]), float(apart), simulation.violation)
            )
            simulation.step()
            solves += simulation.effort.solves
        time, tilt, apart, gap = np.array(rows).T
        change, mean = (simulation.energy.total - start) / 1e6, solves / len(rows)
        print(f"  1/{rate:<3} s {tilt.min():11.2f} degrees {change:8.3f} MJ {mean:12.1f} {gap.max():17.0e} m")
        upper.plot(time, tilt, color=colour, linewidth=1.2, label=f"steps of 1/{rate} s")
        lower.plot(time, apart, color=colour, linewidth=1.2)
    lower.axhline(6, color="#bbbbbb", linewidth=0.8)
    lower.text(LAST, 5.99, "taut", color="#777777", ha="right", va="top", fontsize=9)
    upper.set_title(
        "A boom of 100 t falls faster than its load: the cable goes slack and snaps taut", fontsize=10
    )
    upper.legend(frameon=False, ncols=3, loc="upper center", fontsize=9)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
    for figure, name in ((plot, "drop.png"), (shots, "crane.png")):
        figure.tight_layout()
        figure.savefig(OUT / name)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    lift()
    drop()
    print(f"The pictures are {OUT / 'crane.png'} and {OUT / 'drop.png'}.")


if __name__ == "__main__":
    main()
