"""Kernels of joints and composite inertias."""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.quasistatic.joints import (
    compose,
    copy_pose,
    joint_torques,
    primitive_pose,
    set_identity,
    to_child,
)
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath=False)


@_jit
def turn_back(x, v, out):
    """Vector in the axes of a frame at pose x, from the parent's axes."""
    a, b, c = v[0], v[1], v[2]
    for i in range(3):
        out[i] = x[i] * a + x[3 + i] * b + x[6 + i] * c


# --- joints


@_jit
def place_joint(g, joints, spare):
    """Pose of group g in its parent, and unit twists and torques of its joint; `spare` is (3, 12)."""
    groups, primitives, offsets, q = joints.groups, joints.primitives, joints.offsets, joints.q
    pose, screws = joints.poses[g], joints.screws
    first = groups[g, qs.FIRST]
    last = first + groups[g, qs.COUNT] - 1
    set_identity(pose)
    for k in range(last, first - 1, -1):  # `pose`: of the group in the frame of primitive k
        kind, d = primitives[k, qs.MOTION], primitives[k, qs.MOTION_DOF]
        unit = spare[2]
        for j in range(3 if kind == LINK_BALL else 1):
            for i in range(6):
                unit[i] = 0.0
            unit[3 + j if kind == LINK_BALL else 5 if kind == LINK_HINGE else 2] = 1.0
            to_child(pose, unit, screws[d + j])
        primitive_pose(k, primitives, offsets, q, spare[0])
        compose(spare[0], pose, spare[1])
        copy_pose(spare[1], pose)
    set_torque(g, joints)


@_jit
def set_torque(g, joints):
    """Torques of springs and motors on the dofs of group g's joint."""
    joint_torques(
        g,
        joints.groups,
        joints.primitives,
        joints.stiffness,
        joints.pull,
        joints.rest,
        joints.motor,
        joints.q,
        joints.torque,
    )


# --- composite inertias


@_jit
def add_inertia(pose, inertia, at, share, out):
    """Add an inertia in a frame at this pose, the numbers of `inertia` from `at` on times `share`, to `out`."""
    m = share * inertia[at]
    hx, hy, hz = share * inertia[at + 1], share * inertia[at + 2], share * inertia[at + 3]
    xx, xy, yy = share * inertia[at + 4], share * inertia[at + 5], share * inertia[at + 6]
    xz, yz, zz = share * inertia[at + 7], share * inertia[at + 8], share * inertia[at + 9]
    px, py, pz = pose[9], pose[10], pose[11]
    cx = pose[0] * hx + pose[1] * hy + pose[2] * hz
    cy = pose[3] * hx + pose[4] * hy + pose[5] * hz
    cz = pose[6] * hx + pose[7] * hy + pose[8] * hz
    out[0] += m
    out[1] += cx + m * px
    out[2] += cy + m * py
    out[3] += cz + m * pz
    k = 4
    for i in range(3):
        a, b, c = pose[3 * i], pose[3 * i + 1], pose[3 * i + 2]
        u, v, w = xx * a + xy * b + xz * c, xy * a + yy * b + yz * c, xz * a + yz * b + zz * c
        for j in range(i + 1):
            p_i, p_j, c_i, c_j = pose[9 + i], pose[9 + j], cx, cx
            if i == 1:
                c_i = cy
            elif i == 2:
                c_i = cz
            if j == 1:
                c_j = cy
            elif j == 2:
                c_j = cz
            x = u * pose[3 * j] + v * pose[3 * j + 1] + w * pose[3 * j + 2]
            x -= c_i * p_j + p_i * c_j + m * p_i * p_j
            if i == j:
                x += 2.0 * (px * cx + py * cy + pz * cz) + m * (px * px + py * py + pz * pz)
            out[k] += x
            k += 1


@_jit
def principal_axes(xx, xy, xz, yy, yz, zz, axes, moments):
    """Eigenvectors (columns of `axes`, by rows) and eigenvalues of a symmetric matrix, by Jacobi's method."""
    a = moments  # diagonal
    a[0], a[1], a[2] = xx, yy, zz
    for i in range(9):
        axes[i] = 0.0
    axes[0], axes[4], axes[8] = 1.0, 1.0, 1.0
    o01, o02, o12 = xy, xz, yz
    for _ in range(12):
        size = abs(a[0]) + abs(a[1]) + abs(a[2])
        if abs(o01) + abs(o02) + abs(o12) <= 1e-17 * size:
            break
        for sweep in range(3):
            p, q = (0, 1) if sweep == 0 else (0, 2) if sweep == 1 else (1, 2)
            apq = o01 if sweep == 0 else o02 if sweep == 1 else o12
            if apq == 0.0:
                continue
            theta = (a[q] - a[p]) / (2.0 * apq)
            t = 1.0 / (abs(theta) + math.sqrt(theta * theta + 1.0))
            if theta < 0.0:
                t = -t
            c = 1.0 / math.sqrt(t * t + 1.0)
            s = t * c
            a[p] -= t * apq
            a[q] += t * apq
            if sweep == 0:
                o01 = 0.0
                o02, o12 = c * o02 - s * o12, s * o02 + c * o12
            elif sweep == 1:
                o02 = 0.0
                o01, o12 = c * o01 - s * o12, s * o01 + c * o12
            else:
                o12 = 0.0
                o01, o02 = c * o01 - s * o02, s * o01 + c * o02
            for i in range(0, 9, 3):
                x, y = axes[i + p], axes[i + q]
                axes[i + p], axes[i + q] = c * x - s * y, s * x + c * y
