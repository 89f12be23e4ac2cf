"""Worlds: mechanisms that touch things.

>>> from pliant.gallery import worlds
>>> scene = worlds.grasp()
>>> scene.run(3.0)
>>> bool(scene.world["ball"].position[2] > 0.1)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant import shapes, spatial
from pliant.engines.reduced import reduce
from pliant.errors import InputError
from pliant.gallery._parts import BLUE, DARK, ORANGE, SKY, amount, spring
from pliant.mechanism import Builder, Mechanism
from pliant.statics import equilibrium
from pliant.world import World

__all__ = ["Play", "grasp", "lifting_hand"]

Floats = NDArray[np.float64]
_LIFT = 3000.0  # N/m, the spring that carries the hand
_FINGERS = 3
_HEIGHT = 0.12


@dataclass(frozen=True, eq=False)
class Play:
    """A world and what is done to it as time goes by.

    Attributes:
        world: at its start.
        act: called before every step with the time.
    """

    world: World
    act: Callable[[float], None]

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps."""
        for _ in range(n):
            self.act(self.world.time)
            self.world.step()

    def run(self, seconds: float) -> None:
        """Advance by a time."""
        self.step(round(seconds / self.world.timestep))


def lifting_hand() -> Mechanism:
    """Three fingers of two links on a palm that a spring carries: 7 bodies, a slide and 6 hinges.

    Forces on the fingertips close it, one on the palm lifts it, 3 kN a metre. Its fingers surround a ball of 60 mm on
    the floor. The end effectors are palm and fingertips.
    """
    b = Builder("lifting hand")
    b.body("palm", mass=0.3, position=(0, 0, _HEIGHT), shapes=[shapes.cylinder(0.04, 0.008, rgba=DARK)])
    b.slide("lift", "world", "palm", axis=(0, 0, 1), **spring(_LIFT, 0.02))
    tips = []
    for f in range(_FINGERS):
        turn = spatial.so3_exp(np.array([0.0, 0.0, 2 * math.pi * f / _FINGERS]))
        nodes = [turn @ [x, 0, _HEIGHT - z] for x, z in ((0.035, 0.0), (0.06, 0.045), (0.045, 0.09))]
        base, tip = f"finger{f + 1}_base", f"finger{f + 1}_tip"
        for name, parent, start, end, colour in (
            (base, "palm", nodes[0], nodes[1], BLUE),
            (tip, base, nodes[1], nodes[2], SKY),
        ):
            rod = shapes.rod(start - end, (0, 0, 0), 0.01, rgba=colour)
            b.body(name, mass=0.02, position=end, shapes=[rod])
            b.hinge(f"{name}_joint", parent, name, anchor=start, axis=turn @ [0, 1, 0], **spring(2.0, 0.01))
        tips.append(tip)
    b.end_effectors("palm", *tips)
    return b.build()


def grasp(
    kind: str = "reduced",
    *,
    grip: float = 4.0,
    friction: float = 0.8,
    mass: float = 0.1,
    timestep: float = 1 / 60,
) -> Play:
    """A hand closes around a ball on the floor and, after a second, lifts it by 100 mm.

    Args:
        kind: how the hand moves: "reduced" or "full".
        grip: force on every fingertip, N.
        friction: of hand and ball.
        mass: of the ball, kg.
        timestep: seconds.
    """
    if kind not in ("reduced", "full"):
        raise InputError(f"grasp: kind is 'reduced' or 'full', not {kind!r}")
    grip, mass = amount("grip", grip, zero=True), amount("mass", mass)
    m = lifting_hand()
    start = equilibrium(m, gravity=(0.0, 0.0, -9.81))
    world = World(timestep)
    if kind == "full":
        world.add(m, "hand", friction=friction, start=start)
    else:
        world.add(reduce(m, at=start), "hand", friction=friction)
    world.add_static("floor", shapes.plane(0.3, 0.3))
    ball = shapes.sphere(0.03, rgba=ORANGE)
    world.add_body("ball", ball, mass=mass, position=(0, 0, 0.03), friction=friction)
    hand = world["hand"]

    def act(time: float) -> None:
        for f in range(_FINGERS):
            angle = 2 * math.pi * f / _FINGERS
            inwards = (-grip * math.cos(angle), -grip * math.sin(angle), 0.0)
            hand.apply_wrench(f"finger{f + 1}_tip", force=inwards)
        hand.apply_wrench("palm", force=(0, 0, 0.1 * _LIFT * min(max(time - 1.0, 0.0), 1.0)))

    return Play(world, act)
