"""From what was added to a world to what steps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact._block_kernels import MATERIAL
from pliant.contact.detection import Collider
from pliant.contact.filters import adjacent_pairs, static_bodies
from pliant.contact.free import FreeBodies
from pliant.contact.levels import Level
from pliant.contact.materials import Material, half_thicknesses
from pliant.contact.stepping import ContactStepper, Settings
from pliant.engines.actor import Actor
from pliant.errors import InputError
from pliant.mechanism import Builder, Mechanism
from pliant.shapes import Shape

__all__ = ["Built", "Part", "assemble"]

Floats = NDArray[np.float64]
GROUND = ("plane", "height field")
_THIN = 0.1  # margin, as a share of the smallest half thickness of what moves
_WIDEST = 0.02  # m
_ALIKE = 0.2  # contacts nearer than that share of it, and with nearly the same normal, are one
_SLOP = 0.02  # of the margin


@dataclass(frozen=True, eq=False)
class Part:
    """Something that was added: a mechanism with its actor, a free body, or, with a pose, what never moves.

    `what` and `options` are what a mechanism was added as; by now it may move by something else.
    """

    name: str
    material: Material
    shapes: tuple[Shape, ...] = ()
    pose: Floats | None = None
    actor: Actor | None = None
    mechanism: Mechanism | None = None
    self_contact: bool = False
    what: Level | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Built:
    """What a world runs on: actors, a stepper if anything can touch, numbers of bodies, poses, how many bodies move."""

    actors: list[Actor]
    stepper: ContactStepper | None
    bodies: dict[str, int]
    poses: Floats
    moving: int
    scene: Callable[[], Mechanism]


@dataclass(eq=False)
class _Body:
    name: str
    part: Part
    shapes: tuple[Shape, ...]
    still: bool
    group: int = -1
    pose: Floats | None = None


def assemble(
    parts: list[Part],
    free: FreeBodies,
    ignored: Iterable[tuple[str, str]],
    known: set[str],
    h: float,
    *,
    margin: float | None,
    sweeps: int,
    tolerance: float,
    pulled: bool,
) -> Built:
    """Number all bodies, free ones first and those of no actor last, and make a collider if anything can touch.

    Raises:
        InputError: bodies that are not in `known` overlap others.
    """
    actors: list[Actor] = []
    if free.count:
        actors.append(free)
    bodies = [_Body(p.name, p, p.shapes, False) for p in parts if p.actor is None and p.pose is None]
    still = [_Body(p.name, p, p.shapes, True, pose=p.pose) for p in parts if p.pose is not None]
    pairs: set[tuple[int, int]] = set()
    for group, p in enumerate(parts):
        m = p.mechanism
        if p.actor is None or m is None:
            continue
        first = len(bodies)
        fixed = static_bodies(m)
        for i, name in enumerate(m.body_names):
            own = _touching(m.shapes(name))
            bodies.append(_Body(f"{p.name}/{name}", p, own, bool(fixed[i]), -1 if p.self_contact else group))
        if p.self_contact:
            pairs |= {(a + first, b + first) for a, b in adjacent_pairs(m)}
        around = _touching(m.shapes("world"))
        ground = tuple(s for s in around if s.kind in GROUND)
        base = tuple(s for s in around if s.kind not in GROUND)
        if ground:
            still.append(_Body(f"{p.name}/world", p, ground, True, pose=np.eye(4)))
        if base:
            # What a mechanism is mounted on: its own links stay off it, by their joints as a rule.
            still.append(_Body(f"{p.name}/base", p, base, True, -1 if p.self_contact else group, np.eye(4)))
        actors.append(p.actor)
    moving = len(bodies)
    bodies += still
    names = [b.name for b in bodies]
    numbers = {name: i for i, name in enumerate(names)}
    poses = np.tile(np.eye(4), (len(bodies), 1, 1))
    for i, b in enumerate(bodies):
        if b.pose is not None:
            poses[i] = b.pose
    for i, b in enumerate(bodies):
        if b.still and b.group >= 0:  # the collider's groups are of what moves
            own = (j for j, other in enumerate(bodies[:moving]) if other.group == b.group and not other.still)
            pairs |= {(j, i) for j in own}
    for a, b in ignored:
        pairs |= {(i, j) for i in _matching(names, a) for j in _matching(names, b) if i != j}

    def scene() -> Mechanism:
        return _scene(parts, bodies, moving, poses, actors)

    if not _can_touch(bodies) and not pulled:
        return Built(actors, None, numbers, poses, moving, scene)
    halves = half_thicknesses(s for b in bodies if not b.still for s in b.shapes)
    thin = min(halves, default=np.inf)
    if margin is None:
        margin = min(_THIN * thin, _WIDEST)
    # Not without end: what is seen from afar counts as a wall, and would stop what flies past its edge.
    reach = max(margin, max(halves, default=0.0))
    settings = Settings(margin, reach, thin, _SLOP * margin, sweeps=sweeps, tolerance=tolerance)
    material = np.array([b.part.material.row for b in bodies], dtype=np.float64).reshape(-1, MATERIAL)
    shapes = [(i, s) for i, b in enumerate(bodies) for s in b.shapes]

    def make() -> ContactStepper:
        collider = Collider(
            shapes,
            len(bodies),
            static=np.array([b.still for b in bodies]),
            ignore=pairs,
            groups=np.array([b.group for b in bodies], dtype=np.int64),
            cored={i for i, b in enumerate(bodies) if b.part.actor is None and not b.still},
            near=min(_ALIKE * thin, _WIDEST),
            names=names,
        )
        return ContactStepper(actors, collider, poses, material, h, settings)

    stepper = make()
    if _overlaps(stepper, bodies, known, pairs, settings):
        stepper = make()
    return Built(actors, stepper, numbers, poses, moving, scene)


def _touching(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    return tuple(s for s in shapes if s.role != "visual")


def _matching(names: list[str], asked: str) -> list[int]:
    return [i for i, name in enumerate(names) if name == asked or name.startswith(asked + "/")]


def _can_touch(bodies: list[_Body]) -> bool:
    """Whether any two bodies are not kept apart by what they are."""
    solid = [b for b in bodies if _touching(b.shapes)]
    loose = [b for b in solid if not b.still]
    kinds = {b.group for b in loose}
    if len(kinds) > 1 or (-1 in kinds and len(loose) > 1):
        return True
    return any(b.still and (b.group == -1 or b.group not in kinds) for b in solid) and bool(loose)


def _overlaps(
    stepper: ContactStepper,
    bodies: list[_Body],
    known: set[str],
    pairs: set[tuple[int, int]],
    settings: Settings,
) -> bool:
    """Refuse new bodies that overlap others; links of one mechanism that do are let be. True if there are such."""
    found = stepper.detect()
    inner = False
    for a, b, depth in zip(
        found.first.tolist(), found.second.tolist(), (-found.distance).tolist(), strict=True
    ):
        if bodies[a].part is bodies[b].part:
            if depth > 0:
                pairs.add((a, b))
                inner = True
        elif depth > 0.5 * settings.margin and not {bodies[a].name, bodies[b].name} <= known:
            raise InputError(
                f"'{bodies[a].name}' and '{bodies[b].name}' overlap by {1e3 * depth:.3g} mm at the start: move them "
                f"apart, or let them pass through each other with world.ignore('{bodies[a].name}', '{bodies[b].name}')"
            )
    return inner


def _scene(
    parts: list[Part], bodies: list[_Body], moving: int, poses: Floats, actors: list[Actor]
) -> Mechanism:
    """All bodies as they are now, each on its own."""
    now = poses.copy()
    first = 0
    for actor in actors:
        actor.write_poses(now[first : first + actor.count])
        first += actor.count
    b = Builder("world")
    for i, body in enumerate(bodies[:moving]):
        m = body.part.mechanism
        own = body.shapes if m is None else m.shapes(body.name.partition("/")[2])
        position, orientation = now[i, :3, 3], now[i, :3, :3]
        # Nothing moves by these masses: they only have to be there.
        b.body(
            body.name,
            mass=1.0,
            com=(0, 0, 0),
            inertia=np.eye(3),
            position=position,
            orientation=orientation,
            shapes=own,
        )
        b.free(f"{body.name} free", "world", body.name)
    for part in parts:
        if part.pose is not None:
            for shape in part.shapes:
                b.world_shape(replace(shape, pose=part.pose @ shape.pose))
        elif part.mechanism is not None:
            for shape in part.mechanism.shapes("world"):
                b.world_shape(shape)
    return b.build()
