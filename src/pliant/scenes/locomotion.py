"""Locomotion: `hexapod` walks over uneven ground, `suspension` drives a car over bumps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pliant import gallery, shapes
from pliant.checks import choice, number, whole
from pliant.engines.reduced import ReducedModel, reduce
from pliant.gallery.parts import BLUE, DARK, GREEN, ORANGE, RED, SKY, STEEL, X, Y, block, link, point
from pliant.mechanism import Builder, Mechanism
from pliant.scenes.scene import Scene
from pliant.world import World

__all__ = ["LEGS", "car", "gait", "hexapod", "suspension"]

Floats = NDArray[np.float64]

_WAIT = 0.5  # s: start of the walk
_LIFT = 0.04  # m: height of a foot's rest position in swing
_FIRST = ("left1_tibia", "right2_tibia", "left3_tibia")  # the tripod that swings first
_HALF = (1.6, 0.6)  # m: half extents of the ground
_CELL = 0.05  # m, of the ground
LEGS = "*_*"  # joints of legs
_WHEEL = 0.3  # m: radius of a wheel
_TYRE = 5e-6  # m/N: tyres give way by a centimetre under the car's weight
_CORNERS = {
    "front_left": (1.2, 1),
    "front_right": (1.2, -1),
    "rear_left": (-1.2, 1),
    "rear_right": (-1.2, -1),
}


# --- hexapod


def hexapod(
    kind: str = "reduced",
    *,
    stride: float = 0.06,
    period: float = 0.8,
    roughness: float = 0.02,
    seed: int = 0,
    timestep: float = 1 / 60,
) -> Scene:
    """The gallery's hexapod walks over uneven ground by moving the rest positions of its feet, three at a time.

    It comes down on the ground, and after half a second walks along x. Motors in its joints move the rest positions of
    their springs: torques, stiffness times shift.

    Args:
        kind: model of the robot: "reduced", with a floating base and six feet as end effectors; or "full".
        stride: displacement of a foot relative to the body in its swing, m, at most 0.1.
        period: of the gait, s; half of it a foot is in swing.
        roughness: height of the ground from lowest to highest point, m; 0 for flat ground.
        seed: of the ground.
        timestep: seconds.

    Example:
        >>> import pliant
        >>> scene = pliant.scenes.hexapod()
        >>> scene.run(3.0)
        >>> bool(scene.world.pose("hexapod/body")[0, 3] > -0.8)
        True
    """
    kind = choice(kind, "kind", ("reduced", "full"))
    stride = number(stride, "stride", least=0, most=0.1)  # legs are 0.2 m long
    period = number(period, "period", above=0)
    ground = _ground(number(roughness, "roughness", least=0), whole(seed, "seed", 0))
    m = gallery.hexapod()
    # Near one end of the ground, just above its highest point.
    m = m.with_pose({"base": (-1.0, 0.0, roughness + 0.002, 1.0, 0.0, 0.0, 0.0)})
    model = reduce(m)
    world = World(timestep)
    world.add_static("ground", ground)
    world.add(model if kind == "reduced" else m, "hexapod")
    torques = gait(model, stride, period)

    def act(world: World, time: float) -> None:
        # Torques are constant over a step: those of its middle.
        world["hexapod"].set_motor(LEGS, torque=torques(time + 0.5 * timestep))

    return Scene(world, act=act)


def gait(model: ReducedModel, stride: float, period: float) -> Callable[[float], Floats]:
    """Function of time, s, that gives the joint torques of the legs, N m: they move the rest positions of the feet."""
    rows = np.concatenate([6 * e + np.arange(3) for e in range(6)])
    to_joints = model.basis @ np.linalg.pinv(model.admissible[rows])
    to_torques: Floats = model.mechanism.stiffness[:, None] * to_joints

    def torques(time: float) -> Floats:
        walked = max(time - _WAIT, 0.0)
        ahead = stride * min(walked / period, 1.0)  # the first steps are small ones
        phase = walked / period % 1.0
        shift = [
            _foot(phase if foot in _FIRST else (phase + 0.5) % 1.0, ahead, walked > 0)
            for foot in model.end_effectors
        ]
        return to_torques @ np.array(shift, dtype=np.float64).ravel()

    return torques


def _foot(phase: float, stride: float, walking: bool) -> tuple[float, float, float]:
    """Shift of a foot's rest position from the middle of its stride, m: half a period of swing, then of stance."""
    if not walking:
        return (0.0, 0.0, 0.0)
    if phase < 0.5:
        return (-0.5 * stride * math.cos(2 * math.pi * phase), 0.0, _LIFT * math.sin(2 * math.pi * phase))
    return (0.5 * stride * (3 - 4 * phase), 0.0, 0.0)


def _ground(roughness: float, seed: int) -> shapes.Shape:
    """Height field of gentle hills from 0 to `roughness`, m, a few decimetres wide."""
    rng = np.random.default_rng(seed)
    x, y = (np.linspace(-h, h, round(2 * h / _CELL) + 1) for h in _HALF)
    heights = np.zeros((len(y), len(x)))
    for _ in range(12):
        wave, shift = rng.normal(scale=8.0, size=2), rng.uniform(0, 2 * math.pi)
        heights += np.sin(wave[0] * x + wave[1] * y[:, None] + shift)
    heights -= heights.min()
    return shapes.height_field(heights * (roughness / heights.max()), _HALF, depth=0.2, rgba=GREEN)


# --- car


def car(stiffness: float = 14e3, ratio: float = 0.3) -> Mechanism:
    """A car of 800 kg on four double wishbones: 17 bodies, 4 planar loops, a free base.

    A corner is a lower and an upper wishbone, an upright and a wheel of 0.3 m radius; all hinges but the wheel's are
    along x, the direction of travel. The spring, on the lower wishbone, carries the weight at the reference pose.

    Args:
        stiffness: of the springs, as felt at a wheel, N/m.
        ratio: their damping, over the critical damping of a quarter of the car.
    """
    stiffness, ratio = number(stiffness, "stiffness", above=0), number(ratio, "ratio", least=0)
    b, sprung, arm = Builder("car"), 800.0, 0.4
    cabin = shapes.box((0.7, 0.5, 0.2), position=(-0.2, 0, 0.35), rgba=SKY)
    block(b, "chassis", (0, 0, 0.45), (1.5, 0.28, 0.15), mass=sprung, rgba=RED, extra=[cabin])
    b.free("base", "world", "chassis")
    spring = {
        "stiffness": stiffness * arm**2,
        "damping": 2 * ratio * math.sqrt(stiffness * sprung / 4) * arm**2,
    }
    about_x = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    for name, (x, side) in _CORNERS.items():
        inner, outer, hub = 0.3 * side, (0.3 + arm) * side, 0.75 * side
        low, high = (point(x, outer, z) for z in (0.2, 0.4))
        link(b, f"{name}_lower", point(x, inner, 0.2), low, 0.03, mass=6.0, rgba=STEEL)
        link(b, f"{name}_upper", point(x, inner, 0.4), high, 0.025, mass=4.0, rgba=STEEL)
        link(b, f"{name}_upright", low, high, 0.03, mass=8.0, rgba=ORANGE)
        wheel = shapes.cylinder(_WHEEL, 0.09, orientation=about_x, rgba=DARK)
        b.body(f"{name}_wheel", mass=14.0, position=(x, hub + 0.07 * side, _WHEEL), shapes=[wheel])
        carried = -side * sprung / 4 * 9.81 / (stiffness * arm)  # rad, up on the left is positive
        b.hinge(
            f"{name}_spring",
            "chassis",
            f"{name}_lower",
            anchor=(x, inner, 0.2),
            axis=X,
            rest=carried,
            **spring,
        )
        b.hinge(f"{name}_top", "chassis", f"{name}_upper", anchor=(x, inner, 0.4), axis=X)
        b.hinge(f"{name}_low_pin", f"{name}_lower", f"{name}_upright", anchor=low, axis=X)
        b.hinge(f"{name}_high_pin", f"{name}_upper", f"{name}_upright", anchor=high, axis=X)
        b.hinge(f"{name}_axle", f"{name}_upright", f"{name}_wheel", anchor=(x, hub, _WHEEL), axis=Y)
    b.end_effectors("chassis")
    return b.build()


def suspension(
    *,
    speed: float = 4.0,
    bump: float = 0.06,
    stiffness: float = 14e3,
    ratio: float = 0.3,
    timestep: float = 1 / 240,
) -> Scene:
    """A car drives over three bumps: one as wide as the car, one on the left, one on the right.

    It moves with all joints, by motors in its axles.

    Args:
        speed: m/s, at most 8.
        bump: height of the bumps, m, at most 0.1.
        stiffness, ratio: of the springs, see `car`.
        timestep: seconds; short enough for wheels to meet a bump step by step.

    Example:
        >>> import pliant
        >>> scene = pliant.scenes.suspension(bump=0.06)
        >>> scene.run(3.0)
        >>> bool(scene.world.pose("car/chassis")[0, 3] > 10)
        True
    """
    speed, bump = number(speed, "speed", least=0, most=8.0), number(bump, "bump", least=0, most=0.1)
    m = car(stiffness, ratio)
    world = World(timestep)
    world.add_static("road", shapes.plane(6.0, 1.4, position=(4.0, 0, 0)))
    for i, (x, y, half) in enumerate(((3.0, 0.0, 1.2), (6.0, 0.8, 0.4), (8.0, -0.8, 0.4)) if bump else ()):
        ridge = shapes.rod((x, y - half, bump - 0.15), (x, y + half, bump - 0.15), 0.15, rgba=BLUE)
        world.add_static(f"bump{i + 1}", ridge)
    world.add(m, "car", compliance=_TYRE)
    simulation = world["car"]
    turning = speed / _WHEEL
    simulation.velocity = {m.dof_names[0]: speed, **{f"{name}_axle": turning for name in _CORNERS}}
    for name in _CORNERS:
        simulation.set_motor(f"{name}_axle", velocity=turning, damping=100.0)
    return Scene(world)
