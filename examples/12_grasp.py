"""A hand closes around a ball and lifts it: as a reduced model and with all its joints, with and without friction."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pliant import scenes

OUT = Path("out")


def play(kind: str, friction: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time, height of the ball and force of one fingertip on it over four seconds."""
    scene = scenes.grasp(kind, friction=friction)
    rows = []
    for _ in range(240):
        scene.step()
        force = scene.world.contacts.force("ball", "hand/finger1_tip")
        rows.append((scene.world.time, scene.world["ball"].position[2], np.linalg.norm(force)))
    return tuple(np.array(rows).T)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    figure = Figure(figsize=(9, 4.2), dpi=120)
    height, force = figure.subplots(1, 2)
    ends = {}
    for kind, friction, style in (("reduced", 0.8, "-"), ("full", 0.8, "--"), ("reduced", 0.05, "-")):
        time, z, pressed = play(kind, friction)
        label = f"{kind}, friction {friction}"
        height.plot(time, 1000 * z, style, label=label)
        force.plot(time, pressed, style, label=label)
        ends[label] = z[-1], pressed[-1]
        rise = 1000 * (z[-1] - z[0])
        how = f"is lifted by {rise:.0f} mm" if rise > 50 else "slips out of the hand"
        print(f"{label:22s} the ball {how}")
    (a, pressed_a), (b, pressed_b) = list(ends.values())[:2]
    print(f"reduced and full hand agree within {1000 * abs(a - b):.1f} mm", end=" ")
    print(f"and {100 * abs(pressed_a / pressed_b - 1):.1f} % of the force")
    height.set(xlabel="time (s)", ylabel="height of the ball (mm)")
    force.set(xlabel="time (s)", ylabel="force of a fingertip (N)")
    height.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(OUT / "grasp.png")
    print(f"pictures in {OUT}/")


if __name__ == "__main__":
    main()
