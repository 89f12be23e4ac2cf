"""Contents of a world: the parts that were added to it, and from them its actors, bodies and contact stepper."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact.arrays import MATERIAL, Settings
from pliant.contact.collider import Collider
from pliant.contact.free_bodies import FreeBodies
from pliant.contact.levels import Level
from pliant.contact.materials import Material, half_thicknesses
from pliant.contact.stepper import ContactStepper
from pliant.engines.actor import Actor
from pliant.errors import InputError
from pliant.mechanism import Builder, Mechanism
from pliant.shapes import Shape

__all__ = [
    "Built",
    "Part",
    "adjacent_pairs",
    "assemble",
    "colliding_shapes",
    "overlapping_pairs",
    "static_bodies",
]

Floats = NDArray[np.float64]
GROUND = ("plane", "height field")
_MARGIN = 0.1  # detection margin, in units of the smallest half thickness of a moving shape
_NEAR = 0.2  # distance of contacts to be merged, in the same units
_WIDEST = 0.02  # most of both, m
_SLOP = 0.02  # penetration that is not corrected, in units of the margin


@dataclass(frozen=True, eq=False)
class Part:
    """Something that was added: a mechanism with its actor, a free body, or, with a pose, a static body.

    `what`, `engine` and `options` are the arguments that a mechanism was added with; its level may have changed since.
    """

    name: str
    material: Material
    shapes: tuple[Shape, ...] = ()
    pose: Floats | None = None
    actor: Actor | None = None
    mechanism: Mechanism | None = None
    self_contact: bool = False
    what: Level | None = None
    engine: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Built:
    """What steps a world, made from its parts.

    Attributes:
        actors: free bodies first, if there are any.
        stepper: None if nothing can touch.
        bodies: indices of bodies by name; those that never move come last.
        poses: of all bodies, (bodies, 4, 4).
        moving: number of bodies that belong to actors.
        scene: makes a mechanism of all bodies as they are now, for views and files.
        fingerprint: checksum of all bodies, their names and shapes.
    """

    actors: list[Actor | FreeBodies]
    stepper: ContactStepper | None
    bodies: dict[str, int]
    poses: Floats
    moving: int
    scene: Callable[[], Mechanism]
    fingerprint: int


@dataclass(eq=False)
class _Body:
    """A body of a part; moving bodies of one `group`, unless it is -1, do not touch each other."""

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
    """Number all bodies, free ones first and static ones last, and make a stepper if anything can touch.

    Raises:
        InputError: bodies that are not in `known` overlap others.
    """
    actors: list[Actor | FreeBodies] = []
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
            # The base that a mechanism is mounted on: joints keep its own links from touching it, as a rule.
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
        if b.still and b.group >= 0:  # the collider's groups are of moving bodies only
            own = (j for j, other in enumerate(bodies[:moving]) if other.group == b.group and not other.still)
            pairs |= {(j, i) for j in own}
    for a, b in ignored:
        pairs |= {(i, j) for i in _matching(names, a) for j in _matching(names, b) if i != j}

    def scene() -> Mechanism:
        return _scene(parts, bodies, moving, poses, actors)

    mark = _fingerprint(bodies)
    if not _can_touch(bodies) and not pulled:
        return Built(actors, None, numbers, poses, moving, scene, mark)
    halves = half_thicknesses(s for b in bodies if not b.still for s in b.shapes)
    thin = min(halves, default=np.inf)
    if margin is None:
        margin = min(_MARGIN * thin, _WIDEST)
    # Bounded: a surface detected from far away acts as an infinite wall, and would stop bodies that fly past its edge.
    reach = max(margin, max(halves, default=0.0))
    settings = Settings(
        timestep=float(h), margin=float(margin), reach=float(reach), thin=float(thin), slop=float(_SLOP * margin),
        near=float(min(_NEAR * thin, _WIDEST)), fall=free.gain if free.count else 0.0, sweeps=sweeps,
        tolerance=tolerance,
    )  # fmt: skip
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
            near=settings.near,
            names=names,
        )
        return ContactStepper(actors, collider, poses, material, settings)

    stepper = make()
    if _overlaps(stepper, bodies, known, pairs, settings):
        stepper = make()
    return Built(actors, stepper, numbers, poses, moving, scene, mark)


def _fingerprint(bodies: list[_Body]) -> int:
    """Checksum of bodies: names, shapes, and poses of those that never move."""
    out = 0
    for b in bodies:
        shapes = [(s.kind, s.size, 0 if s.mesh is None else len(s.mesh.vertices)) for s in b.shapes]
        out = zlib.crc32(repr((b.name, b.still, shapes)).encode(), out)
        if b.pose is not None:
            out = zlib.crc32(b.pose.tobytes(), out)
    return out


def _touching(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    return tuple(s for s in shapes if s.role != "visual")


def _matching(names: list[str], asked: str) -> list[int]:
    return [i for i, name in enumerate(names) if name == asked or name.startswith(asked + "/")]


def _can_touch(bodies: list[_Body]) -> bool:
    """Whether there are two bodies with shapes, of different groups, of which one moves."""
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
    """Refuse new bodies that overlap others; add overlapping links of a mechanism to `pairs`, True if there are any."""
    count, found, inner = stepper.detect(), stepper.collider.found, False
    first, second, depths = found.first[:count], found.second[:count], -found.distance[:count]
    for a, b, depth in zip(first.tolist(), second.tolist(), depths.tolist(), strict=True):
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
    parts: list[Part], bodies: list[_Body], moving: int, poses: Floats, actors: list[Actor | FreeBodies]
) -> Mechanism:
    """All bodies as they are now, each on a free joint."""
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
        # Masses are required, but not used: this mechanism is only looked at.
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


# --- pairs of a mechanism's bodies that do not touch


def colliding_shapes(mechanism: Mechanism) -> list[tuple[int, Shape]]:
    """Shapes of a mechanism that collide, those of the world included, each with its body's index."""
    named = [(-1, "world"), *enumerate(mechanism.body_names)]
    return [(i, shape) for i, name in named for shape in mechanism.shapes(name) if shape.role != "visual"]


def static_bodies(mechanism: Mechanism) -> NDArray[np.bool_]:
    """Per body, whether it never moves: whether only fixed joints are between it and the world."""
    group = _welded(mechanism, world=True)
    return group[:-1] == group[-1]


def adjacent_pairs(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Pairs of bodies joined by a joint; bodies welded together by fixed joints count as one.

    Bodies joined to the world, or by a free joint, are not adjacent: an arm on a pedestal may hit the floor, and two
    arms fixed to the same world may hit each other.
    """
    m = mechanism
    group = _welded(m, world=False)
    members: dict[int, list[int]] = {}
    for body, g in enumerate(group[:-1].tolist()):
        members.setdefault(g, []).append(body)
    pairs = {(a, b) for same in members.values() for a in same for b in same if a < b}
    for joint, kind in enumerate(m.joint_types):
        parent, child = int(m.joint_parents[joint]), int(m.joint_children[joint])
        if parent < 0 or child < 0 or kind == "free":
            continue
        pairs.update(
            (min(a, b), max(a, b))
            for a in members[int(group[parent])]
            for b in members[int(group[child])]
            if a != b
        )
    return sorted(pairs)


def overlapping_pairs(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Pairs of bodies that penetrate each other at the reference pose, without those of the world.

    Robot files have many: covers that overlap, coarse hulls. Contact between them would push the mechanism apart.
    """
    m = mechanism
    own = [(body, shape) for body, shape in colliding_shapes(m) if body >= 0]
    collider = Collider(own, m.body_count, static=static_bodies(m), names=m.body_names)
    found = collider.detect(np.ascontiguousarray(m.reference_poses))
    deep = found.distance < 0
    return sorted(set(zip(found.first[deep].tolist(), found.second[deep].tolist(), strict=True)))


def _welded(m: Mechanism, world: bool) -> NDArray[np.int64]:
    """A number per body, and one for the world at the end; bodies welded together have the same number."""
    group = np.arange(m.body_count + 1)  # the last entry, index -1, is the world
    fixed = np.bincount(m.primitive_joint, minlength=m.joint_count) == 0
    for joint in np.flatnonzero(fixed).tolist():
        parent, child = int(m.joint_parents[joint]), int(m.joint_children[joint])
        if world or (parent >= 0 and child >= 0):
            group[group == group[child]] = group[parent]
    return group
