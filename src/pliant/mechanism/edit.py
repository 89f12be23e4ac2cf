"""Edits of a mechanism, each of which returns a new one; dofs and coordinates by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import numbers
from pliant.errors import InputError, MechanismError, UnknownNameError
from pliant.mechanism import kinematics
from pliant.mechanism.joints import BALL, stack_transform
from pliant.mechanism.tree import rigid_groups
from pliant.text import brief, suggestion

if TYPE_CHECKING:
    from pliant.mechanism.mechanism import Mechanism

__all__ = [
    "are_coordinates",
    "coordinates",
    "matching_dofs",
    "named_coordinates",
    "with_fixed_base",
    "with_pose",
    "with_rest",
    "with_stiffness",
]


def matching_dofs(m: Mechanism, pattern: str | Iterable[str]) -> NDArray[np.int64]:
    """Dofs whose own name or joint's name matches a shell pattern, in order; none is an error."""
    if isinstance(pattern, str):  # cached: motors are set at every step
        if pattern not in m._dof_cache:
            m._dof_cache[pattern] = found = _matching(m, [pattern])
            found.flags.writeable = False
        return m._dof_cache[pattern]
    if not isinstance(pattern, Iterable) or isinstance(pattern, np.ndarray):
        raise InputError(f"a joint name or pattern must be a string, not {brief(pattern)}")
    return _matching(m, list(pattern))


def _matching(m: Mechanism, patterns: list[str]) -> NDArray[np.int64]:
    chosen = np.zeros(m.nv, dtype=bool)
    for one in patterns:
        if not isinstance(one, str):
            raise InputError(f"a joint name or pattern must be a string, not {brief(one)}")
        hits = _hits(m, one, str.__eq__)  # names first: "j[0]" is a pattern, too
        if not hits.any():
            hits = _hits(m, one, fnmatchcase)
        if not hits.any():
            raise UnknownNameError(
                f"no joint of '{m.name}' with a degree of freedom matches '{one}'"
                f"{suggestion(one, m.joint_names)}"
            )
        chosen |= hits
    return np.flatnonzero(chosen)


def _hits(m: Mechanism, one: str, match: Callable[[str, str], bool]) -> NDArray[np.bool_]:
    joints = np.fromiter((match(name, one) for name in m.joint_names), bool, m.joint_count)
    return joints[m.dof_joint] | np.fromiter((match(name, one) for name in m.dof_names), bool, m.nv)


def _values(value: ArrayLike, count: int, what: str) -> NDArray[np.float64]:
    """One number for all, or one per dof."""
    out = numbers(value, what)
    if out.shape not in ((), (count,)):
        raise InputError(
            f"{what}: one number or {count} (one per matching degree of freedom) expected, got shape {out.shape}"
        )
    return out


def named_coordinates(m: Mechanism, name: str) -> slice:
    """Coordinates of a joint, or of a dof, in q."""
    joint = m._joint_index.get(name)
    if joint is not None:
        return m.joint_coordinates(joint)
    start = int(m.dof_coordinate[m.dof_index(name)])
    return slice(start, start + 1)


def with_stiffness(
    m: Mechanism, pattern: str | Iterable[str], stiffness: ArrayLike, damping: ArrayLike | None
) -> Mechanism:
    """See `Mechanism.with_stiffness`."""
    dofs = matching_dofs(m, pattern)
    changes = {"stiffness": m.stiffness.copy()}
    changes["stiffness"][dofs] = _values(stiffness, len(dofs), "stiffness")
    if damping is not None:
        changes["damping"] = m.damping.copy()
        changes["damping"][dofs] = _values(damping, len(dofs), "damping")
    return m.replace(**changes)


def with_rest(m: Mechanism, pattern: str | Iterable[str], rest: ArrayLike) -> Mechanism:
    """See `Mechanism.with_rest`."""
    dofs = matching_dofs(m, pattern)
    if (m.dof_kind[dofs] == BALL).any():
        raise InputError(
            f"'{pattern}' matches a ball joint: its rest is a quaternion; set `rest` when building it"
        )
    value = m.rest.copy()
    value[m.dof_coordinate[dofs]] = _values(rest, len(dofs), "rest")
    return m.replace(rest=value)


def coordinates(m: Mechanism, given: Any) -> NDArray[np.float64]:
    """q from `{joint or dof: value}` (others at the reference), from a whole q, or from a configuration."""
    q = np.array(m.reference)
    if isinstance(given, Mapping):
        for name, value in given.items():
            joint = m._joint_index.get(name)
            if joint is not None:
                part = m.joint_coordinates(joint)
                q[part] = _values(value, part.stop - part.start, f"joint '{name}'")
            else:
                dof = m.dof_index(name)
                if m.dof_kind[dof] == BALL:
                    raise InputError(
                        f"'{name}' is part of a ball joint: give its joint a quaternion (w, x, y, z)"
                    )
                q[m.dof_coordinate[dof]] = _values(value, 1, f"'{name}'")
    else:
        q[:] = _values(getattr(given, "q", given), m.nq, "coordinates")
    if not np.isfinite(q).all():
        raise InputError("coordinates must be finite")
    balls, length = _quaternions(m, q)
    if (np.abs(length - 1) > 1e-6).any():
        joint = m.primitive_joint[m.ball_primitives[np.flatnonzero(np.abs(length - 1) > 1e-6)[0]]]
        raise InputError(f"joint '{m.joint_names[joint]}': the quaternion is not of unit length")
    q[balls] /= length[:, None]
    return q


def are_coordinates(m: Mechanism, q: NDArray[np.float64]) -> bool:
    """Whether all coordinates are finite, and all quaternions of unit length."""
    return bool(np.isfinite(q).all()) and bool((np.abs(_quaternions(m, q)[1] - 1) <= 1e-6).all())


def _quaternions(m: Mechanism, q: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Places in q of the quaternions of balls, (balls, 4), and their lengths."""
    balls = m.primitive_coordinate[m.ball_primitives][:, None] + np.arange(4)
    with np.errstate(over="ignore"):
        return balls, np.sqrt((q[balls] ** 2).sum(axis=1))


def with_pose(m: Mechanism, given: Any) -> Mechanism:
    """See `Mechanism.with_pose`."""
    q = coordinates(m, given)
    return m.replace(reference=q, reference_poses=kinematics.link_poses(m, q)[m.links.body_link])


def with_fixed_base(m: Mechanism) -> Mechanism:
    """See `Mechanism.with_fixed_base`; end effectors that cannot move then are suggested no longer."""
    loose = [j for j in range(m.joint_count) if m.joint_types[j] == "free" and m.joint_parents[j] < 0]
    if not loose:
        raise MechanismError(f"'{m.name}' has no free joint to the world: its base is fixed already")
    used = np.isin(m.dof_joint, loose)
    for label, rows, names in (
        ("coupling", m.couplings, m.coupling_names),
        ("tendon", m.tendons, m.tendon_names),
    ):
        for r in range(len(rows)):
            if used[rows.row(r)[0]].any():
                raise MechanismError(f"{label} '{names[r]}' uses the free base: remove it first")
    frames = m.parent_frames.copy()
    for j in loose:
        part = m.joint_primitives(j)
        frames[j] = frames[j] @ stack_transform(
            m.primitive_kind[part],
            m.primitive_axis[part],
            m.primitive_anchor[part],
            m.reference[m.joint_coordinates(j)],
        )
    primitives = ~np.isin(m.primitive_joint, loose)
    coordinate = np.ones(m.nq, dtype=bool)
    for j in loose:
        coordinate[m.joint_coordinates(j)] = False
    renumber = np.cumsum(~used) - 1
    types = tuple("fixed" if j in set(loose) else kind for j, kind in enumerate(m.joint_types))
    changes: dict[str, Any] = {
        f"primitive_{label}": getattr(m, f"primitive_{label}")[primitives]
        for label in ("joint", "kind", "axis", "anchor")
    }
    changes |= {
        label: getattr(m, label)[~used] for label in ("stiffness", "damping", "armature", "lower", "upper")
    }
    changes |= {label: getattr(m, label)[coordinate] for label in ("rest", "reference")}
    for label in ("couplings", "tendons"):
        rows = getattr(m, label)
        changes[label] = type(rows)(rows.start, renumber[rows.dof], rows.coefficient)
    kept = tuple(name for name, gone in zip(m.dof_names, used.tolist(), strict=True) if not gone)
    held = m.replace(parent_frames=frames, joint_types=types, dof_names=kept, **changes)
    group = rigid_groups(held)
    ends = [body for body in m.end_effectors if group[held.body_index(body)] != group[-1]]
    return held if len(ends) == len(m.end_effectors) else held.replace(end_effectors=tuple(ends))
