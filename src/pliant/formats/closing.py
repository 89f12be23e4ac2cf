"""A mechanism whose file gives a reference pose at which its loops are a little open.

Keyframes are rounded, and a weld or coupling may ask for another relative pose than the one drawn. The reference is
then the nearest pose at which everything holds, as MuJoCo's constraints would pull it there.
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.errors import ConvergenceError, MechanismError
from pliant.mechanism import Mechanism, validate
from pliant.mechanism.normal import normalize

__all__ = ["closed"]

CLOSE_ENOUGH = 1e-9  # of the radius, or radians: what is nearer is left as the file has it


def closed(fields: dict[str, Any], rests_at_reference: NDArray[np.bool_]) -> Mechanism:
    """The mechanism of these attributes, its reference pose moved so that loops close and couplings hold.

    Args:
        fields: the attributes of a `Mechanism`.
        rests_at_reference: the coordinates whose rest is to follow the reference.
    """
    if len(fields["joint_names"]) == len(fields["body_names"]) and not len(fields["couplings"]):
        return Mechanism(**fields)  # a tree
    # First everything but the closure: with loop frames and offsets as they happen to be at the reference.
    bent = Mechanism(**fields | _as_it_is(fields))
    open_ = _unchecked(fields)
    if _gap(open_, bent.radius) <= CLOSE_ENOUGH:
        return Mechanism(**fields)
    from pliant.mechanism import kinematics
    from pliant.mechanism.assembly import close_loops

    try:
        with np.errstate(all="ignore"):
            q = close_loops(open_, open_.reference)
            poses = kinematics.link_poses(open_, q)[open_.links.body_link]
    except (ConvergenceError, np.linalg.LinAlgError) as error:
        raise MechanismError(f"the reference pose cannot be assembled: {error}") from None
    rest = np.where(rests_at_reference, q, fields["rest"])
    return Mechanism(**fields | {"reference": q, "rest": rest, "reference_poses": poses})


def _as_it_is(fields: dict[str, Any]) -> dict[str, Any]:
    """Loop frames and coupling offsets for which the reference pose is closed."""
    nb = len(fields["body_names"])
    world = np.concatenate([fields["reference_poses"], np.eye(4)[None]])
    frames = np.array(fields["parent_frames"])
    # The loop joints follow the tree; all are fixed, or balls at the identity.
    loops = slice(nb, None)
    child = world[fields["joint_children"][loops]] @ fields["child_frames"][loops]
    frames[loops] = spatial.se3_inverse(world[fields["joint_parents"][loops]]) @ child
    out: dict[str, Any] = {"parent_frames": frames}
    rows = fields["couplings"]
    if len(rows):
        out["coupling_offset"] = np.add.reduceat(
            rows.coefficient * _positions(fields)[rows.dof], rows.start[:-1]
        )
    return out


def _positions(fields: dict[str, Any]) -> NDArray[np.float64]:
    """The coordinate of every dof at the reference; of a ball, which no coupling uses, its first."""
    kind = fields["primitive_kind"]
    start = np.concatenate([[0], np.cumsum(np.array([1, 1, 4])[kind])[:-1]]).astype(int)
    return fields["reference"][np.repeat(start, np.array([1, 1, 3])[kind])]


def _unchecked(fields: dict[str, Any]) -> Mechanism:
    """A mechanism that may be open: for the solver that closes it, and nobody else."""
    m = object.__new__(Mechanism)
    for field in dataclass_fields(Mechanism):
        default = field.default_factory() if callable(field.default_factory) else field.default
        object.__setattr__(m, field.name, fields.get(field.name, default))
    normalize(m)
    return m


def _gap(m: Mechanism, radius: float) -> float:
    gap = validate.joint_gaps(m)
    distance = np.sqrt((gap[:, :3, 3] ** 2).sum(axis=1)).max(initial=0) / radius
    angle = np.sqrt((spatial.so3_log(gap[:, :3, :3]) ** 2).sum(axis=1)).max(initial=0)
    rows = m.couplings
    fault = 0.0
    if len(rows):
        value = np.add.reduceat(rows.coefficient * m.reference[m.dof_coordinate][rows.dof], rows.start[:-1])
        fault = np.abs(value - m.coupling_offset).max()
    return float(max(distance, angle, fault))
