"""Compliant hands: `grasp` picks things up, `peg_in_hole` inserts a peg."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pliant import shapes, spatial
from pliant.checks import EARTH, choice, number
from pliant.engines.reduced import BlendedModel, ReducedModel, blend, reduce
from pliant.gallery.parts import BLUE, DARK, ORANGE, SKY, STEEL, Z, link, point, spring
from pliant.mechanism import Builder, Mechanism
from pliant.scenes.meshes import bunny
from pliant.scenes.scene import Scene
from pliant.statics import equilibrium
from pliant.world import World

__all__ = ["grasp", "lifting_hand", "peg_in_hand", "peg_in_hole"]

_KINDS = ("reduced", "blended", "full")
_BODIES = ("ball", "box", "mesh")
_LIFT = 3000.0  # N/m: stiffness of the spring that carries the hand
_FINGERS = 3
_HEIGHT = 0.12  # m, of the palm
_PEG, _HALF = 0.01, 0.03  # m: radius and half length of the peg
_DEPTH, _CHAMFER = 0.03, 0.004  # m, of the hole
_ABOVE = 0.02  # m: height of the weightless peg's tip above the rim


# --- grasp


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
) -> Scene:
    """A hand closes around a thing on the floor and, after a second, lifts it by 100 mm.

    Args:
        kind: model of the hand: "reduced"; "blended", of models open, closed and lifted; or "full".
        body: "ball", "box" or "mesh" (a bunny), which is its name in the world; or a shape of your own with its base
            at z = 0, 50 to 65 mm across and as high, named "body".
        grip: force on every fingertip, N.
        friction: of hand and thing.
        mass: of the thing, kg.
        timestep: seconds.
    """
    kind = choice(kind, "kind", _KINDS)
    grip, mass = number(grip, "grip", least=0), number(mass, "mass", above=0)
    m = lifting_hand()
    world = World(timestep)
    if kind == "full":
        world.add(m, "hand", friction=friction, start=equilibrium(m, gravity=EARTH))
    else:
        world.add(_model(m, kind, grip), "hand", friction=friction)
    world.add_static("floor", shapes.plane(0.12, 0.12))
    name, shape, height = _thing(body)
    world.add_body(name, shape, mass=mass, position=(0, 0, height), friction=friction)

    def act(world: World, time: float) -> None:
        for tip, force in _forces(grip, min(max(time - 1.0, 0.0), 1.0)).items():
            world["hand"].apply_wrench(tip, force=force)

    return Scene(world, act=act)


def _forces(grip: float, lifted: float) -> dict[str, tuple[float, float, float]]:
    """Forces (N, world axes) that close the hand with `grip` and lift it by a share `lifted` of 100 mm."""
    out = {"palm": (0.0, 0.0, 0.1 * _LIFT * lifted)}
    for f in range(_FINGERS):
        angle = 2 * math.pi * f / _FINGERS
        out[f"finger{f + 1}_tip"] = (-grip * math.cos(angle), -grip * math.sin(angle), 0.0)
    return out


def _model(m: Mechanism, kind: str, grip: float) -> ReducedModel | BlendedModel:
    """Reduced model of the hand at rest under gravity; or a blend of four, open and closed, lowered and lifted."""
    first = reduce(m, at=equilibrium(m, gravity=EARTH))
    if kind == "reduced":
        return first
    # A thing in the hand bears most of the grip, so the fingers' own load lies between none and `grip`.
    closed = [(0.5 * grip, 0.0), (0.5 * grip, 1.0), (0.0, 1.0)]
    return blend([first, *(reduce(m, at=equilibrium(m, _forces(*c), gravity=EARTH)) for c in closed)])


def _thing(body: str | shapes.Shape) -> tuple[str, shapes.Shape, float]:
    """Name and shape of the thing to grasp, and the height of its frame above the floor, m."""
    if isinstance(body, shapes.Shape):
        return "body", body, 0.0
    name = choice(body, "body", _BODIES)
    if name == "mesh":
        return name, bunny(0.028), 0.85 * 0.028
    ball, box = shapes.sphere(0.03, rgba=ORANGE), shapes.box((0.028, 0.028, 0.03), rgba=ORANGE)
    return name, ball if name == "ball" else box, 0.03


# --- peg in hole


def peg_in_hand() -> Mechanism:
    """Three fingers that hold a peg: 8 bodies, 2 loops. The peg is the only end effector.

    Fingertips neither slip nor roll on the peg: they are jointed to it (TVCG section 1), so that hand and peg are one
    mechanism, described by the 6 x 6 compliance and inertia of the peg. The palm is on a slide of
    400 N/m; a finger has a universal knuckle, a hinge, and a ball on the peg. The peg is a cylinder of 20 mm, 60 mm
    long; under gravity its tip is 10 mm above z = 0.
    """
    grip, palm = _ABOVE + 0.045, _ABOVE + 0.115
    b = Builder("peg in hand")
    b.body("palm", mass=0.3, position=(0, 0, palm), shapes=[shapes.cylinder(0.04, 0.006, rgba=DARK)])
    b.slide("feed", "world", "palm", axis=Z, **spring(400.0, 0.05))
    peg = shapes.cylinder(_PEG, _HALF, rgba=ORANGE)
    b.body("peg", mass=0.05, position=(0, 0, _ABOVE + _HALF), shapes=[peg])
    for f in range(3):
        angle = 2 * math.pi * f / 3
        out, across = point(math.cos(angle), math.sin(angle), 0), point(-math.sin(angle), math.cos(angle), 0)
        knuckle, middle, tip = 0.032 * out, 0.045 * out, (_PEG + 0.006) * out
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
) -> Scene:
    """A hand pushes a peg into a hole beside its axis.

    The hole is square, 30 mm deep, with a chamfer of 4 mm at 45 degrees. The hand's rest position moves down by 45 mm
    in two seconds, by a wrench on the peg of stiffness times displacement. The fingers take up an offset that the
    chamfer catches, and the peg goes in; with a larger one it stops on the rim.

    Args:
        kind: model of the hand: "reduced", with the peg as the only end effector, or "full".
        offset: of the hole from the peg's axis along x, m, at most 10 mm.
        clearance: between peg and hole on each side, m.
        friction: of peg and hole.
        timestep: seconds.

    Example:
        >>> import pliant
        >>> scene = pliant.scenes.peg_in_hole(offset=0.003)
        >>> scene.run(3.0)
        >>> tip = scene.world.pose("hand/peg")[2, 3] - 0.03
        >>> bool(tip < -0.02)
        True
    """
    kind, clearance = choice(kind, "kind", ("reduced", "full")), number(clearance, "clearance", above=0)
    number(offset, "offset", least=-0.01, most=0.01)  # else the peg would miss the block
    m = peg_in_hand()
    start = equilibrium(m, gravity=EARTH)
    model = reduce(m, at=start, modes=1)  # all seven ways in which the hand can move
    world = World(timestep)
    options: dict[str, Any] = {"start": start} if kind == "full" else {}
    world.add(m if kind == "full" else model, "hand", friction=friction, **options)
    world.add_static("hole", _hole(_PEG + clearance), position=(offset, 0, 0), friction=friction)
    world.ignore("hand/palm", "hole")
    upright = start.pose("peg")[:3, :3]
    # Wrench per metre down, at the peg's origin, world axes.
    push = model.stiffness[:, :3] @ -upright[2]
    force, torque = upright @ push[:3], upright @ push[3:]

    def act(world: World, time: float) -> None:
        way = 0.045 * min(time / 2.0, 1.0)
        world["hand"].apply_wrench("peg", force=way * force, torque=way * torque)

    return Scene(world, act=act)


def _hole(half: float) -> list[shapes.Shape]:
    """Square hole of half width `half`, m, its rim at z = 0: a floor and four walls with slanted tops.

    Wall and chamfer are one convex piece: at a seam, a peg would catch on the edge of the lower one.
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
