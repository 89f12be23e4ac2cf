"""`hexapod`: six legs on uneven ground."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.engines.reduced import ReducedModel, reduce
from pliant.errors import InputError
from pliant.gallery._parts import GREEN, amount, choice, count
from pliant.gallery.robots import hexapod as robot
from pliant.gallery.worlds.play import Play
from pliant.world import World

__all__ = ["hexapod"]

Floats = NDArray[np.float64]

_WAIT = 0.5  # s, until it stands
_LIFT = 0.04  # m, of a foot's rest position in swing
_FIRST = ("left1_tibia", "right2_tibia", "left3_tibia")  # the tripod that swings first
_HALF = (1.6, 0.6)  # half extents of the ground
_CELL = 0.05
LEGS = "*_*"  # joints of legs


def hexapod(
    kind: str = "reduced",
    *,
    stride: float = 0.06,
    period: float = 0.8,
    roughness: float = 0.02,
    seed: int = 0,
    timestep: float = 1 / 60,
) -> Play:
    """The gallery's hexapod walks over uneven ground by moving the rest positions of its feet, three at a time.

    It comes down on the ground, and after half a second walks along x. Motors in its joints move the rest positions of
    their springs: torques, stiffness times shift.

    Args:
        kind: how it moves: "reduced", with a floating base and six feet as end effectors; or "full".
        stride: how far a foot goes forward relative to the body in its swing, m, at most 0.1.
        period: of the gait, s; half of it a foot is in swing.
        roughness: height of the ground from lowest to highest point, m; 0 for flat ground.
        seed: of the ground.
        timestep: seconds.

    Example:
        >>> from pliant.gallery import worlds
        >>> scene = worlds.hexapod()
        >>> scene.run(3.0)
        >>> bool(scene.world.pose("hexapod/body")[0, 3] > -0.8)
        True
    """
    kind = choice("kind", kind, ("reduced", "full"))
    stride, period = amount("stride", stride, zero=True), amount("period", period)
    if stride > 0.1:
        raise InputError(f"stride: at most 0.1 m expected, not {stride!r}: legs are 0.2 m long")
    ground = _ground(amount("roughness", roughness, zero=True), count("seed", seed, 0))
    m = robot()
    # Near one end of the ground, just above its highest point.
    m = m.with_pose({"base": (-1.0, 0.0, roughness + 0.002, 1.0, 0.0, 0.0, 0.0)})
    model = reduce(m)
    world = World(timestep)
    world.add_static("ground", ground)
    world.add(model if kind == "reduced" else m, "hexapod")
    torques = gait(model, stride, period)

    def act(time: float) -> None:
        # for a whole step, what is wanted in its middle
        world["hexapod"].set_motor(LEGS, torque=torques(time + 0.5 * timestep))

    return Play(world, act)


def gait(model: ReducedModel, stride: float, period: float) -> Callable[[float], Floats]:
    """Torques in the joints of the legs at a time, which move the rest positions of the feet."""
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
    """Where a foot's rest position is, from the middle of its way: in swing for the first half, then in stance."""
    if not walking:
        return (0.0, 0.0, 0.0)
    if phase < 0.5:
        return (-0.5 * stride * math.cos(2 * math.pi * phase), 0.0, _LIFT * math.sin(2 * math.pi * phase))
    return (0.5 * stride * (3 - 4 * phase), 0.0, 0.0)


def _ground(roughness: float, seed: int) -> shapes.Shape:
    """Gentle hills, from 0 up to `roughness`, a few decimetres wide."""
    rng = np.random.default_rng(seed)
    x, y = (np.linspace(-h, h, round(2 * h / _CELL) + 1) for h in _HALF)
    heights = np.zeros((len(y), len(x)))
    for _ in range(12):
        wave, shift = rng.normal(scale=8.0, size=2), rng.uniform(0, 2 * math.pi)
        heights += np.sin(wave[0] * x + wave[1] * y[:, None] + shift)
    heights -= heights.min()
    return shapes.height_field(heights * (roughness / heights.max()), _HALF, depth=0.2, rgba=GREEN)
