"""`peg_in_hole`: what a compliant hand is good for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pliant import shapes, spatial
from pliant.engines.reduced import reduce
from pliant.errors import InputError
from pliant.gallery._parts import (
    BLUE,
    DARK,
    ORANGE,
    SKY,
    STEEL,
    Z,
    amount,
    choice,
    link,
    point,
    spring,
)
from pliant.gallery.worlds.play import Play
from pliant.mechanism import Builder, Mechanism
from pliant.statics import equilibrium
from pliant.world import World

__all__ = ["peg_in_hand", "peg_in_hole"]

_RADIUS, _HALF = 0.01, 0.03  # of the peg
_DEPTH, _CHAMFER = 0.03, 0.004  # of the hole
_ABOVE = 0.02  # how far above the rim the peg would be without its weight
_EARTH = (0.0, 0.0, -9.81)


def peg_in_hand() -> Mechanism:
    """Three fingers that hold a peg: 8 bodies, 2 loops. The peg is the only end effector.

    Fingertips neither slip nor roll on the peg: they are jointed to it (TVCG section 1), so that hand and peg are one
    mechanism, and what matters of it are the 6 x 6 compliance and inertia of the peg. The palm is on a slide of
    400 N/m; a finger has a universal knuckle, a hinge, and a ball on the peg. The peg is a cylinder of 20 mm, 60 mm
    long; under gravity its tip is 10 mm above z = 0.
    """
    grip, palm = _ABOVE + 0.045, _ABOVE + 0.115
    b = Builder("peg in hand")
    b.body("palm", mass=0.3, position=(0, 0, palm), shapes=[shapes.cylinder(0.04, 0.006, rgba=DARK)])
    b.slide("feed", "world", "palm", axis=Z, **spring(400.0, 0.05))
    peg = shapes.cylinder(_RADIUS, _HALF, rgba=ORANGE)
    b.body("peg", mass=0.05, position=(0, 0, _ABOVE + _HALF), shapes=[peg])
    for f in range(3):
        angle = 2 * math.pi * f / 3
        out, across = point(math.cos(angle), math.sin(angle), 0), point(-math.sin(angle), math.cos(angle), 0)
        knuckle, middle, tip = 0.032 * out, 0.045 * out, (_RADIUS + 0.006) * out
        knuckle[2], middle[2], tip[2] = palm, (palm + grip) / 2, grip
        base, end = f"finger{f + 1}_base", f"finger{f + 1}_tip"
        link(b, base, knuckle, middle, 0.007, mass=0.02, rgba=BLUE)
        link(b, end, middle, tip, 0.006, mass=0.015, rgba=SKY)
        b.universal(f"{base}_joint", "palm", base, anchor=knuckle, axes=(across, out), **spring(2.0, 0.02))
        b.hinge(f"{end}_joint", base, end, anchor=middle, axis=across, **spring(2.0, 0.02))
        b.ball(f"{end}_hold", end, "peg", anchor=tip, **spring(0.2, 0.02))
    b.end_effectors("peg")
    return b.build()


def peg_in_hole(
    kind: str = "reduced",
    *,
    offset: float = 0.003,
    clearance: float = 0.0005,
    friction: float = 0.2,
    timestep: float = 1 / 60,
) -> Play:
    """A hand pushes a peg into a hole that is not quite below it.

    The hole is square, 30 mm deep, with a chamfer of 4 mm at 45 degrees. The hand comes down by 45 mm in two seconds:
    its rest position does, by a wrench of stiffness times way on the peg. An offset that the chamfer catches is taken
    up by the fingers, and the peg goes in; beyond it, it comes to stand on the rim.

    Args:
        kind: how the hand moves: "reduced", with the peg as the only end effector, or "full".
        offset: of the hole from the peg's axis along x, m, at most 10 mm.
        clearance: between peg and hole on each side, m.
        friction: of peg and hole.
        timestep: seconds.

    Example:
        >>> from pliant.gallery import worlds
        >>> scene = worlds.peg_in_hole(offset=0.003)
        >>> scene.run(3.0)
        >>> tip = scene.world.pose("hand/peg")[2, 3] - 0.03
        >>> bool(tip < -0.02)
        True
    """
    kind, clearance = choice("kind", kind, ("reduced", "full")), amount("clearance", clearance)
    if amount("offset", abs(offset), zero=True) > 0.01:
        raise InputError(f"offset: at most 0.01 m expected, not {offset!r}: the peg would miss the block")
    m = peg_in_hand()
    start = equilibrium(m, gravity=_EARTH)
    model = reduce(m, at=start)
    world = World(timestep)
    options: dict[str, Any] = {"start": start} if kind == "full" else {}
    world.add(m if kind == "full" else model, "hand", friction=friction, **options)
    world.add_static("hole", _hole(_RADIUS + clearance), position=(offset, 0, 0), friction=friction)
    world.ignore("hand/palm", "hole")
    hand, upright = world["hand"], start.pose("peg")[:3, :3]
    # Wrench per metre down, at the peg's origin, world axes.
    push = model.stiffness[:, :3] @ -upright[2]
    force, torque = upright @ push[:3], upright @ push[3:]

    def act(time: float) -> None:
        way = 0.045 * min(time / 2.0, 1.0)
        hand.apply_wrench("peg", force=way * force, torque=way * torque)

    return Play(world, act)


def _hole(half: float) -> list[shapes.Shape]:
    """A square hole of that half width, its rim at z = 0: a floor and four walls with slanted tops.

    Wall and chamfer are one convex piece: where two pieces meet, a peg would stand on the edge of the lower one.
    """
    low, out = -_DEPTH, half + _CHAMFER + 0.015
    profile = np.array([(half, low), (out, low), (out, 0.0), (half + _CHAMFER, 0.0), (half, -_CHAMFER)])
    n = len(profile)
    ends = [np.column_stack([profile[:, 0], np.full(n, y), profile[:, 1]]) for y in (-out, out)]
    vertices = np.concatenate(ends)
    fan = [(0, i, i + 1) for i in range(1, n - 1)]
    faces = [*fan, *((n + c, n + b, n + a) for a, b, c in fan)]
    for i in range(n):
        j = (i + 1) % n
        faces += [(i, n + j, j), (i, n + i, n + j)]
    walls = []
    for k in range(4):
        turn = spatial.so3_exp(np.array([0.0, 0.0, math.pi / 2 * k]))
        walls.append(shapes.mesh(vertices, faces, orientation=turn, rgba=STEEL))
    return [shapes.box((out, out, 0.004), position=(0, 0, low - 0.004), rgba=STEEL), *walls]
