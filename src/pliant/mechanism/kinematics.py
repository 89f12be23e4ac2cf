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
    "allocate_poses",
    "body_poses",
    "constraint_gaps",
    "constraint_rows",
    "joint_twists",
    "joint_wrenches",
    "link_jacobian",
    "link_poses",
    "link_transforms",
    "move",
]

Floats = NDArray[np.float64]

# Kernels are imported when first used: importing numba takes longer than all of pliant. They get copies of coordinates:
# those of a configuration are read-only, for which they would compile a second time.


def allocate_poses(m: Mechanism) -> tuple[Floats, Floats]:
    """Room for the poses of all links in their parents and in the world, (links, 4, 4) each."""
    local, poses = np.zeros((2, len(m.links), 4, 4))
    local[:, 3, 3] = poses[:, 3, 3] = 1.0
    return local, poses


def link_transforms(m: Mechanism, q: Floats) -> tuple[Floats, Floats]:
    """Poses of all links in their parents and in the world, (links, 4, 4) each."""
    from pliant.mechanism import kernels

    local, poses = allocate_poses(m)
    kernels.forward(m.links.arrays, np.array(q), local, poses)
    return local, poses


def link_poses(m: Mechanism, q: Floats) -> Floats:
    """World poses of all links, (links, 4, 4)."""
    return link_transforms(m, q)[1]


def body_poses(m: Mechanism, q: Floats, bodies: NDArray[np.int64]) -> Floats:
    """World poses of bodies at every row of q: (rows, bodies, 4, 4)."""
    from pliant.mechanism import kernels

    out = np.empty((len(q), len(bodies), 4, 4))
    kernels.forward_many(m.links.arrays, np.array(q), m.links.body_link[bodies], *allocate_poses(m), out)
    return out


def move(m: Mechanism, q: Floats, step: Floats) -> Floats:
    """`q` moved along a tangent vector."""
    from pliant.mechanism import kernels

    out = np.array(q)
    kernels.move(m.links.arrays, out, np.array(step), out)
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
    from pliant.mechanism import border_kernels
    from pliant.mechanism.border import make_constraints

    gaps = np.zeros(6 * m.topology.loops + len(m.couplings))
    constraints = make_constraints(m)
    border_kernels.constraint_gaps(constraints, np.array(q), np.array(poses), np.empty((3, 3)), gaps)
    return gaps


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
