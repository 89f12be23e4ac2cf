"""Kinematics of links: poses, Jacobians, moves along tangent vectors, loop gaps and constraint rows.

The rows of a loop are the velocity of the cut copy minus that of its body, world axes, linear first; the row of a
coupling holds its coefficients. Allowed motions satisfy `rows @ motion = 0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant import spatial

if TYPE_CHECKING:
    from pliant.mechanism.mechanism import Mechanism

__all__ = [
    "constraint_gaps",
    "constraint_rows",
    "joint_twists",
    "joint_wrenches",
    "link_jacobian",
    "link_poses",
    "link_transforms",
    "move",
    "read_only",
]

Floats = NDArray[np.float64]

# Kernels are imported when first used: importing numba takes longer than all of pliant.


def read_only(array: Floats) -> Floats:
    """A read-only view, as a configuration's arrays are: kernels would compile a second time for writable ones."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def link_transforms(m: Mechanism, q: Floats) -> tuple[Floats, Floats]:
    """Poses of all links in their parents and in the world, (links, 4, 4) each."""
    from pliant.mechanism import kernels

    local, poses = np.zeros((2, len(m.links), 4, 4))
    local[:, 3, 3] = poses[:, 3, 3] = 1.0
    kernels.forward(m.links.arrays, read_only(q), local, poses)
    return local, poses


def link_poses(m: Mechanism, q: Floats) -> Floats:
    """World poses of all links, (links, 4, 4)."""
    return link_transforms(m, q)[1]


def move(m: Mechanism, q: Floats, step: Floats) -> Floats:
    """`q` moved along a tangent vector."""
    from pliant.mechanism import kernels

    out = q.copy()
    kernels.move(m.links.arrays, read_only(q), read_only(step), out)
    return out


def link_jacobian(m: Mechanism, poses: Floats, link: int) -> Floats:
    """Velocity of a link's origin and its angular velocity, world axes, per dof: (6, nv)."""
    from pliant.mechanism import kernels

    rows = np.zeros((6, m.nv))
    kernels.add_jacobian(m.links.arrays, poses, link, 1.0, rows)
    return rows


def joint_twists(m: Mechanism, poses: Floats) -> Floats:
    """Twist of a joint's child from its parent per dof, in the child's frame, (nv, 6), at these poses of links.

    Of the copy of the child, if the joint closes a loop.
    """
    links = m.links
    link = links.dof_link
    joint = links.joint[link]
    to_child = spatial.adjoint(spatial.se3_inverse(poses[links.joint_child[joint]]) @ poses[link])
    sign = np.where(np.isin(joint, links.backwards), -1.0, 1.0)
    return sign[:, None] * np.einsum("dij,dj->di", to_child, links.screw)


def joint_wrenches(m: Mechanism, poses: Floats, carried: Floats) -> Floats:
    """Wrench of every joint on its child, child's frame, (joints, 6), from those on what links carry, (links, 6).

    `carried` are sums over the links behind each link, in its frame, in balance with the wrench of the joint.
    """
    links = m.links
    last = np.zeros(m.joint_count, dtype=np.int64)
    last[links.joint] = np.arange(len(links))  # the last link of a joint comes last
    out = -carried[last]
    if len(links.backwards):
        j = links.backwards
        motion = spatial.adjoint(spatial.se3_inverse(poses[last[j]]) @ poses[links.joint_child[j]])
        out[j] = np.einsum("nji,nj->ni", motion, carried[last[j]])
    return out


def constraint_gaps(m: Mechanism, q: Floats, poses: Floats) -> Floats:
    """Gaps of loops (6 each: position, rotation vector; world axes), then errors of couplings, in one row."""
    gaps = np.zeros((m.topology.loops, 6))
    if len(gaps):
        copy, body = poses[m.links.loop_copy], poses[m.links.loop_body]
        gaps[:, :3] = copy[:, :3, 3] - body[:, :3, 3]
        gaps[:, 3:] = spatial.so3_log(copy[:, :3, :3] @ body[:, :3, :3].transpose(0, 2, 1))
    return np.concatenate([gaps.ravel(), m.couplings.sums(q[m.dof_coordinate]) - m.coupling_offset])


def constraint_rows(m: Mechanism, poses: Floats) -> Floats:
    """Derivative of `constraint_gaps` along tangent vectors when loops are closed: (6 loops + couplings, nv)."""
    from pliant.mechanism import kernels

    links, loops = m.links, m.topology.loops
    rows = np.zeros((6 * loops + len(m.couplings), m.nv))
    for loop in range(loops):
        block = rows[6 * loop : 6 * loop + 6]
        for link, sign in ((links.loop_copy[loop], 1.0), (links.loop_body[loop], -1.0)):
            kernels.add_jacobian(links.arrays, poses, link, sign, block)
    if len(m.couplings):
        rows[6 * loops :] = m.couplings.dense(m.nv)
    return rows
