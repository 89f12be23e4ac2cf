"""Kernels of kinematics over links: poses, Jacobians, motion along tangent vectors, turns of balls from rest."""

import math

import numpy as np

from pliant.compilation import njit
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE, LINK_SLIDE
from pliant.spatial import kernels as se3


@njit(counts_references=True, error_model="numpy")
def forward(links, q, local, poses):
    """Pose of every link in its parent (`local = A_k E_k(q)`) and in the world (`poses`), each (links, 4, 4)."""
    parent, kind, offset, screw = links.parent, links.kind, links.offset, links.screw
    anchor, dof, coordinate = links.anchor, links.dof, links.coordinate
    motion = np.eye(4)
    turn = np.empty((3, 3))
    for k in range(parent.shape[0]):
        if kind[k] == LINK_FIXED:
            copy_pose(offset[k], local[k])
        else:
            primitive_pose(kind[k], screw, anchor[k], dof[k], coordinate[k], q, turn, motion)
            se3.compose(offset[k], motion, local[k])
        if parent[k] < 0:
            copy_pose(local[k], poses[k])
        else:
            se3.compose(poses[parent[k]], local[k], poses[k])


@njit(counts_references=True, error_model="numpy", nogil=True)
def forward_many(links, q, chosen, local, poses, out):
    """World poses of chosen links at every row of q, (rows, chosen, 4, 4); `local` and `poses` are scratch."""
    for r in range(q.shape[0]):
        forward(links, q[r], local, poses)
        for i in range(chosen.shape[0]):
            copy_pose(poses[chosen[i]], out[r, i])


@njit(counts_references=True, error_model="numpy")
def move(links, q, step, out):
    """`out = q + step` along a tangent vector; a ball turns by the body-frame rotation vector in `step`."""
    kind, dof, coordinate = links.kind, links.dof, links.coordinate
    turn = np.empty(4)
    for k in range(kind.shape[0]):
        c, d = coordinate[k], dof[k]
        if kind[k] == LINK_BALL:
            se3.quat_exp(step[d : d + 3], turn)
            se3.quat_multiply(q[c : c + 4], turn, out[c : c + 4])
            se3.quat_normalize(out[c : c + 4])
        elif kind[k] != LINK_FIXED:
            out[c] = q[c] + step[d]


@njit(counts_references=True, error_model="numpy")
def add_jacobian(links, poses, link, sign, rows):
    """Add `sign` times the Jacobian of a link's origin velocity and angular velocity, world axes, to `rows` (6, nv)."""
    parent, kind, screw, dof = links.parent, links.kind, links.screw, links.dof
    k = link
    turned = np.empty(6)
    while k >= 0:
        count = 3 if kind[k] == LINK_BALL else (0 if kind[k] == LINK_FIXED else 1)
        for d in range(dof[k], dof[k] + count):
            for i in range(3):
                linear = 0.0
                angular = 0.0
                for j in range(3):
                    linear += poses[k, i, j] * screw[d, j]
                    angular += poses[k, i, j] * screw[d, 3 + j]
                turned[i] = linear
                turned[3 + i] = angular
            x = poses[link, 0, 3] - poses[k, 0, 3]
            y = poses[link, 1, 3] - poses[k, 1, 3]
            z = poses[link, 2, 3] - poses[k, 2, 3]
            rows[0, d] += sign * (turned[0] + turned[4] * z - turned[5] * y)
            rows[1, d] += sign * (turned[1] + turned[5] * x - turned[3] * z)
            rows[2, d] += sign * (turned[2] + turned[3] * y - turned[4] * x)
            for i in range(3, 6):
                rows[i, d] += sign * turned[i]
        k = parent[k]


@njit(error_model="numpy")
def rotation_from_rest(rest, c, w, x, y, z):
    """Rotation vector from the rest quaternion of a ball, `rest[c : c + 4]`, to another quaternion: three numbers."""
    a, b, d, e = rest[c], -rest[c + 1], -rest[c + 2], -rest[c + 3]
    return se3.log_vector(
        a * w - b * x - d * y - e * z,
        a * x + b * w + d * z - e * y,
        a * y - b * z + d * w + e * x,
        a * z + b * y - d * x + e * w,
    )


@njit(error_model="numpy")
def copy_pose(a, b):
    """Copy a 4 x 4 pose to `b`."""
    for i in range(4):
        for j in range(4):
            b[i, j] = a[i, j]


@njit(error_model="numpy")
def primitive_pose(kind, screw, anchor, d, c, q, turn, motion):
    """E(q) of one primitive in the frame of its link."""
    if kind == LINK_SLIDE:
        for i in range(3):
            for j in range(3):
                motion[i, j] = 1.0 if i == j else 0.0
            motion[i, 3] = screw[d, i] * q[c]
        return
    if kind == LINK_HINGE:
        x, y, z = screw[d, 3], screw[d, 4], screw[d, 5]
        sine, half = math.sin(q[c]), math.sin(0.5 * q[c])
        versine = 2.0 * half * half  # 1 - cos, without cancellation
        motion[0, 0] = 1.0 - versine * (y * y + z * z)
        motion[1, 1] = 1.0 - versine * (x * x + z * z)
        motion[2, 2] = 1.0 - versine * (x * x + y * y)
        motion[0, 1] = versine * x * y - sine * z
        motion[1, 0] = versine * x * y + sine * z
        motion[0, 2] = versine * x * z + sine * y
        motion[2, 0] = versine * x * z - sine * y
        motion[1, 2] = versine * y * z - sine * x
        motion[2, 1] = versine * y * z + sine * x
    elif kind == LINK_BALL:
        # The quaternion is in the joint's axes, which are the rows screw[d + i, 3:] in the link's frame.
        se3.quat_to_matrix(q[c : c + 4], turn)
        for i in range(3):
            for j in range(3):
                total = 0.0
                for a in range(3):
                    for b in range(3):
                        total += screw[d + a, 3 + i] * turn[a, b] * screw[d + b, 3 + j]
                motion[i, j] = total
    for i in range(3):
        total = anchor[i]
        for j in range(3):
            total -= motion[i, j] * anchor[j]
        motion[i, 3] = total


@njit(error_model="numpy")
def count_open(parent, depth, ends, most, through, closing):
    """Number of loops that pass through and that close at every body, the world last.

    Returns False where it takes more than `most` steps from bodies to their parents.
    """
    steps = 0
    for loop in range(ends.shape[0]):
        a, b = ends[loop, 0], ends[loop, 1]
        while a != b:
            if depth[a] < depth[b]:
                a, b = b, a
            through[a] += 1
            a = parent[a]
            steps += 1
        closing[a] += 1
        if steps > most:
            return False
    return True
