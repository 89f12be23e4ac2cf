"""Where links are, how they move, whether loops close: geometry on the flat arrays of `Links`.

Loop rows are the velocity of the cut copy minus that of its body, world axes, linear first. Coupling rows are
their coefficients. Both together are the rows that motion must respect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant import spatial

if TYPE_CHECKING:
    from pliant.mechanism.model import Mechanism

__all__ = [
    "constraint_gaps",
    "constraint_rows",
    "link_jacobian",
    "link_poses",
    "link_transforms",
    "move",
    "read_only",
]

Floats = NDArray[np.float64]

# Kernels are imported when first used: numba takes longer to import than the rest of pliant together.


def read_only(array: Floats) -> Floats:
    """The same array, read-only: kernels compile for either kind, and a configuration's arrays are of this one."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def link_transforms(m: Mechanism, q: Floats) -> tuple[Floats, Floats]:
    """Poses of all links in their parents and in the world, (links, 4, 4) each."""
    from pliant.mechanism import _kernels

    links = m.links
    local, poses = np.zeros((2, len(links), 4, 4))
    local[:, 3, 3] = poses[:, 3, 3] = 1.0
    _kernels.forward(
        links.parent,
        links.kind,
        links.offset,
        links.screw,
        links.anchor,
        links.dof,
        links.coordinate,
        read_only(q),
        local,
        poses,
    )
    return local, poses


def link_poses(m: Mechanism, q: Floats) -> Floats:
    """World poses of all links, (links, 4, 4)."""
    return link_transforms(m, q)[1]


def move(m: Mechanism, q: Floats, step: Floats) -> Floats:
    """`q` moved along a tangent vector."""
    from pliant.mechanism import _kernels

    out = q.copy()
    _kernels.move(m.links.kind, m.links.dof, m.links.coordinate, read_only(q), read_only(step), out)
    return out


def link_jacobian(m: Mechanism, poses: Floats, link: int) -> Floats:
    """Velocity of a link's origin and its angular velocity, world axes, per dof: (6, nv)."""
    from pliant.mechanism import _kernels

    rows = np.zeros((6, m.nv))
    _kernels.add_jacobian(m.links.parent, m.links.kind, m.links.screw, m.links.dof, poses, link, 1.0, rows)
    return rows


def constraint_gaps(m: Mechanism, q: Floats, poses: Floats) -> Floats:
    """How far loops are open (6 each: position, rotation vector; world axes), then by how much couplings fail."""
    gaps = np.zeros((m.topology.loops, 6))
    if len(gaps):
        copy, body = poses[m.links.loop_copy], poses[m.links.loop_body]
        gaps[:, :3] = copy[:, :3, 3] - body[:, :3, 3]
        gaps[:, 3:] = spatial.so3_log(copy[:, :3, :3] @ body[:, :3, :3].transpose(0, 2, 1))
    return np.concatenate([gaps.ravel(), coupling_values(m, q) - m.coupling_offset])


def coupling_values(m: Mechanism, q: Floats) -> Floats:
    """`sum(coefficient * q)` of every coupling."""
    if not len(m.couplings):
        return np.zeros(0)
    return np.add.reduceat(
        m.couplings.coefficient * q[m.dof_coordinate[m.couplings.dof]], m.couplings.start[:-1]
    )


def constraint_rows(m: Mechanism, poses: Floats) -> Floats:
    """Derivative of `constraint_gaps` along tangent vectors when loops are closed: (6 loops + couplings, nv)."""
    from pliant.mechanism import _kernels

    links, loops = m.links, m.topology.loops
    rows = np.zeros((6 * loops + len(m.couplings), m.nv))
    for loop in range(loops):
        block = rows[6 * loop : 6 * loop + 6]
        for link, sign in ((links.loop_copy[loop], 1.0), (links.loop_body[loop], -1.0)):
            _kernels.add_jacobian(links.parent, links.kind, links.screw, links.dof, poses, link, sign, block)
    if len(m.couplings):
        rows[6 * loops :] = m.couplings.dense(m.nv)
    return rows
