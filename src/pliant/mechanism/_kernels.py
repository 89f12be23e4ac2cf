"""Forward kinematics over links, compiled."""

import math

import numpy as np
from numba import njit

from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE, LINK_SLIDE
from pliant.spatial import _kernels as se3


@njit(cache=True, error_model="numpy")
def forward(parent, kind, offset, screw, anchor, dof, coordinate, q, poses):
    """World pose of every link: `T_k = T_parent A_k E_k(q)`. Writes `poses` (links, 4, 4)."""
    n = parent.shape[0]
    local = np.empty((4, 4))
    motion = np.eye(4)
    turn = np.empty((3, 3))
    for k in range(n):
        if kind[k] == LINK_FIXED:
            _copy(offset[k], local)
        else:
            _primitive(kind[k], screw, anchor[k], dof[k], coordinate[k], q, turn, motion)
            se3.compose(offset[k], motion, local)
        if parent[k] < 0:
            _copy(local, poses[k])
        else:
            se3.compose(poses[parent[k]], local, poses[k])


@njit(cache=True, error_model="numpy")
def _copy(a, b):
    for i in range(4):
        for j in range(4):
            b[i, j] = a[i, j]


@njit(cache=True, error_model="numpy")
def _primitive(kind, screw, anchor, d, c, q, turn, motion):
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
