"""`grasp`: a hand of three fingers picks things up."""

from __future__ import annotations

import math

import numpy as np

from pliant import shapes, spatial
from pliant.engines.reduced import BlendedModel, ReducedModel, blend, reduce
from pliant.gallery._parts import BLUE, DARK, ORANGE, SKY, amount, choice, spring
from pliant.gallery.worlds.bunny import bunny
from pliant.gallery.worlds.play import Play
from pliant.mechanism import Builder, Mechanism
from pliant.statics import equilibrium
from pliant.world import World

__all__ = ["grasp", "lifting_hand"]

_KINDS = ("reduced", "blended", "full")
_BODIES = ("ball", "box", "mesh")
_EARTH = (0.0, 0.0, -9.81)
_LIFT = 3000.0  # N/m, the spring that carries the hand
_FINGERS = 3
_HEIGHT = 0.12


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
    body: str | shapes.Shape = "ball",
    *,
    grip: float = 4.0,
    friction: float = 0.8,
    mass: float = 0.1,
    timestep: float = 1 / 60,
) -> Play:
    """A hand closes around a thing on the floor and, after a second, lifts it by 100 mm.

    Args:
        kind: how the hand moves: "reduced"; "blended", of models open, closed and lifted; or "full".
        body: "ball", "box" or "mesh", a bunny, so called in the world; or a shape of your own that stands on z = 0,
            50 to 65 mm across and as high, there called "body".
        grip: force on every fingertip, N.
        friction: of hand and thing.
        mass: of the thing, kg.
        timestep: seconds.
    """
    kind = choice("kind", kind, _KINDS)
    grip, mass = amount("grip", grip, zero=True), amount("mass", mass)
    m = lifting_hand()
    world = World(timestep)
    if kind == "full":
        world.add(m, "hand", friction=friction, start=equilibrium(m, gravity=_EARTH))
    else:
        world.add(_model(m, kind, grip), "hand", friction=friction)
    world.add_static("floor", shapes.plane(0.12, 0.12))
    name, shape, height = _thing(body)
    world.add_body(name, shape, mass=mass, position=(0, 0, height), friction=friction)
    hand = world["hand"]

    def act(time: float) -> None:
        for link, force in _forces(grip, min(max(time - 1.0, 0.0), 1.0)).items():
            hand.apply_wrench(link, force=force)

    return Play(world, act)


def _forces(grip: float, lifted: float) -> dict[str, tuple[float, float, float]]:
    """Forces that close the hand and lift it, by a share of 100 mm."""
    out = {"palm": (0.0, 0.0, 0.1 * _LIFT * lifted)}
    for f in range(_FINGERS):
        angle = 2 * math.pi * f / _FINGERS
        out[f"finger{f + 1}_tip"] = (-grip * math.cos(angle), -grip * math.sin(angle), 0.0)
    return out


def _model(m: Mechanism, kind: str, grip: float) -> ReducedModel | BlendedModel:
    first = reduce(m, at=equilibrium(m, gravity=_EARTH))
    if kind == "reduced":
        return first
    # A thing in the hand takes most of the grip: what is left on the fingers lies between open and closed.
    closed = [(0.5 * grip, 0.0), (0.5 * grip, 1.0), (0.0, 1.0)]
    return blend([first, *(reduce(m, at=equilibrium(m, _forces(*c), gravity=_EARTH)) for c in closed)])


def _thing(body: str | shapes.Shape) -> tuple[str, shapes.Shape, float]:
    """Its name, its shape, and how high its frame is on the floor."""
    if isinstance(body, shapes.Shape):
        return "body", body, 0.0
    name = choice("body", body, _BODIES)
    if name == "mesh":
        return name, bunny(0.028), 0.85 * 0.028
    ball, box = shapes.sphere(0.03, rgba=ORANGE), shapes.box((0.028, 0.028, 0.03), rgba=ORANGE)
    return name, ball if name == "ball" else box, 0.03
