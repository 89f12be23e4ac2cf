"""A hexapod in free fall turns by swinging its legs, with no momentum: a reduced model beside all links."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
STEP, SECONDS, RATE = 1e-3, 2.0, 4.0  # s, s, Hz
YAW, LIFT = 0.7, 0.9  # rad: legs swing round while they are stretched out, and back while they hang


def fall(simulation: pliant.Simulation) -> np.ndarray:
    """Yaw of the body every 10 ms, rad: motors shift the rest positions of yaw and lift by a quarter of a period."""
    m, out, every = simulation.mechanism, [0.0], round(0.01 / simulation.timestep)
    stiffness = dict(zip(m.dof_names, m.stiffness, strict=True))
    for frame in range(round(SECONDS / 0.01)):
        phase = 2 * np.pi * RATE * 0.01 * frame
        for joint in m.joint_names:
            angle = {"yaw": YAW * np.sin(phase), "lift": LIFT * np.cos(phase)}.get(joint.split("_")[-1], 0.0)
            if angle:
                simulation.set_motor(joint, torque=stiffness[joint] * angle)
        simulation.step(every)
        turn = simulation.pose("body")[:3, :3]
        out.append(float(np.arctan2(turn[1, 0], turn[0, 0])))
    return np.unwrap(out)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    hexapod = pliant.gallery.hexapod()
    model = pliant.reduce(hexapod)
    falling = pliant.ReducedSimulation(model, STEP)
    runs = {
        "rigid whole (TVCG 6.1)": fall(pliant.ReducedSimulation(model, STEP, method="tvcg")),
        "reduced": fall(falling),
        "all links": fall(pliant.ConstrainedSimulation(hexapod, STEP / 2)),
    }
    truth = runs["all links"]
    for name, yaw in runs.items():
        print(f"{name:22} turned by {np.degrees(yaw[-1]):6.1f} degrees in {SECONDS:g} s")
    off = np.abs(runs["reduced"] - truth).max() / np.abs(truth).max()
    spun = np.abs(falling.base_momentum[3:]).max()
    print(f"the reduced model is {100 * off:.2f} % off; its angular momentum is {spun:.0e} N m s")
    assert off < 0.01

    figure = Figure(figsize=(9, 4.2), dpi=120)
    axes = figure.add_subplot(xlabel="time (s)", ylabel="yaw of the body (degrees)", xlim=(0, SECONDS))
    looks = (("#d9822b", "-", 1.5), ("#3566c4", "-", 2.5), ("#111111", ":", 1.5))
    for (name, yaw), (colour, style, width) in zip(runs.items(), looks, strict=True):
        time = 0.01 * np.arange(len(yaw))
        axes.plot(time, np.degrees(yaw), style, color=colour, linewidth=width, label=name)
    axes.set_title("A hexapod in free fall turns by swinging its legs", fontsize=10)
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "falling.png")
    print(f"The picture is {OUT / 'falling.png'}.")


if __name__ == "__main__":
    main()
