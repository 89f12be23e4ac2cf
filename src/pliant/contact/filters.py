"""Which bodies of a mechanism are not meant to touch each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.contact.detection import Collider
from pliant.mechanism import Mechanism
from pliant.shapes import Shape

__all__ = ["adjacent_pairs", "colliding_shapes", "overlapping_pairs", "static_bodies"]


def colliding_shapes(mechanism: Mechanism) -> list[tuple[int, Shape]]:
    """The shapes of a mechanism that touch, those of the world included, each with its body's index."""
    named = [(-1, "world"), *enumerate(mechanism.body_names)]
    return [(i, shape) for i, name in named for shape in mechanism.shapes(name) if shape.role != "visual"]


def static_bodies(mechanism: Mechanism) -> NDArray[np.bool_]:
    """Which bodies never move: those joined to the world through fixed joints alone."""
    group = _welded(mechanism, world=True)
    return group[:-1] == group[-1]


def adjacent_pairs(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Pairs of bodies joined by a joint; bodies that fixed joints weld together count as one.

    Neither the world nor free joints make neighbours: an arm on a pedestal may well hit the floor, and two arms
    fixed to the same world may hit each other.
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
    """Pairs of bodies that penetrate each other at the reference pose, the world left out.

    Files of robots have many: covers drawn into each other, coarse hulls. Without them in a filter the mechanism
    would burst apart.
    """
    m = mechanism
    own = [(body, shape) for body, shape in colliding_shapes(m) if body >= 0]
    collider = Collider(own, m.body_count, static=static_bodies(m), names=m.body_names)
    found = collider.detect(np.ascontiguousarray(m.reference_poses))
    deep = found.distance < 0
    return sorted(set(zip(found.first[deep].tolist(), found.second[deep].tolist(), strict=True)))


def _welded(m: Mechanism, world: bool) -> NDArray[np.int64]:
    """A number per body, and one for the world at the end, that bodies welded together share."""
    group = np.arange(m.body_count + 1)  # the last entry, index -1, is the world
    fixed = np.bincount(m.primitive_joint, minlength=m.joint_count) == 0
    for joint in np.flatnonzero(fixed).tolist():
        parent, child = int(m.joint_parents[joint]), int(m.joint_children[joint])
        if world or (parent >= 0 and child >= 0):
            group[group == group[child]] = group[parent]
    return group
