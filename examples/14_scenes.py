"""Six scenes with contact: grasp, peg in hole, hexapod, trampoline, car, crane; what they do, and a picture of each."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pliant import scenes
from pliant.viewer import draw

OUT = Path("out")


def grasp() -> tuple[scenes.Scene, str]:
    scene = scenes.grasp(body="mesh")
    low = scene.world["mesh"].position[2]
    scene.run(2.5)
    rise = scene.world["mesh"].position[2] - low
    weight = scene.world.contacts.force("mesh")[2]
    return scene, f"lifted the bunny by {1000 * rise:.0f} mm; its fingers carry {weight:.3f} N"


def peg_in_hole() -> tuple[scenes.Scene, str]:
    depths = {}
    for offset in (0.006, 0.004):
        scene = scenes.peg_in_hole(offset=offset)
        scene.run(2.5)
        depths[offset] = 1000 * (0.03 - scene.world.pose("hand/peg")[2, 3])
    said = ", ".join(f"{depth:.0f} mm deep when {1000 * o:.0f} mm off" for o, depth in depths.items())
    return scene, said


def hexapod() -> tuple[scenes.Scene, str]:
    scene = scenes.hexapod(roughness=0.03)
    start = scene.world.pose("hexapod/body")[0, 3]
    scene.run(8.0)
    way = scene.world.pose("hexapod/body")[0, 3] - start
    return scene, f"walked {way:.2f} m over hills of 30 mm in 8 s"


def trampoline() -> tuple[scenes.Scene, str]:
    scene = scenes.trampoline(height=1.5)
    peak = 0.0
    for _ in range(600):
        scene.step()
        peak = max(peak, scene.world.contacts.force("bunny")[2])
    rest = scene.world.contacts.force("bunny", "firefighters")[2]
    return scene, f"a bunny of 2 kg is caught with at most {peak:.0f} N, and lies there with {rest:.2f} N"


def suspension() -> tuple[scenes.Scene, str]:
    scene = scenes.suspension()
    hub, body = [], []
    while scene.world.time < 1.5:
        scene.step()
        hub.append(scene.world.pose("car/front_left_wheel")[2, 3])
        body.append(scene.world.pose("car/chassis")[2, 3])
    wheel, chassis = (1000 * (max(z) - z[-1]) for z in (hub, body))
    return scene, f"a bump of 60 mm lifts a wheel by {wheel:.0f} mm and the chassis by {chassis:.0f} mm"


def crane_and_wall() -> tuple[scenes.Scene, str]:
    scene = scenes.crane_and_wall()
    crane, fastest, impulse = scene.world["crane"], 0.0, 0.0
    while scene.world.time < 3.0:
        scene.step()
        fastest = max(fastest, -crane.twist("vehicle")[1])
        impulse -= scene.world.contacts.force("wall")[1] * scene.world.timestep
    said = f"15 t at {fastest:.2f} m/s meet a wall, which takes {impulse / 1000:.0f} kN s"
    return scene, f"{said}; joints apart by {crane.violation:.0e} m"


# Whom it is about, and where to look from.
PLAYS = {
    grasp: ("mesh", (15, -60)),
    peg_in_hole: ("hand/peg", (25, -70)),
    hexapod: ("hexapod/body", (25, -50)),
    trampoline: ("bunny", (15, -60)),
    suspension: ("car/chassis", (20, -50)),
    crane_and_wall: ("crane/vehicle", (15, 20)),
}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    figure = Figure(figsize=(12, 7), dpi=100)
    for axes, (play, (body, view)) in zip(np.ravel(figure.subplots(2, 3)), PLAYS.items(), strict=True):
        scene, said = play()
        title = play.__name__.replace("_", " ")
        print(f"{title:15s} {said}")
        draw(scene.world.scene.with_end_effectors(body), axes, view=view, title=title)
    figure.tight_layout()
    figure.savefig(OUT / "scenes.png")
    print(f"The picture is {OUT / 'scenes.png'}.")


if __name__ == "__main__":
    main()
