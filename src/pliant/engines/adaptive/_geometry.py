"""Kernels of poses, joints and composite inertias."""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as qs
from pliant.mechanism.kernels import rotation_from_rest
from pliant.mechanism.links import LINK_BALL, LINK_HINGE
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath=False)

# --- poses


@_jit
def set_identity(pose):
    """Identity pose."""
    for i in range(12):
        pose[i] = 0.0
    pose[0], pose[4], pose[8] = 1.0, 1.0, 1.0


@_jit
def copy_pose(pose, out):
    """Copy of a pose."""
    for i in range(12):
        out[i] = pose[i]


@_jit
def compose(a, b, out):
    """out = a b; `out` is neither of them."""
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j]
        out[9 + i] = a[3 * i] * b[9] + a[3 * i + 1] * b[10] + a[3 * i + 2] * b[11] + a[9 + i]


@_jit
def to_child(x, v, out):
    """Motion at the origin of a frame at pose x, in its axes, from that at the parent's origin; `out` is not `v`."""
    a = v[0] + v[4] * x[11] - v[5] * x[10]
    b = v[1] + v[5] * x[9] - v[3] * x[11]
    c = v[2] + v[3] * x[10] - v[4] * x[9]
    for i in range(3):
        out[i] = x[i] * a + x[3 + i] * b + x[6 + i] * c
        out[3 + i] = x[i] * v[3] + x[3 + i] * v[4] + x[6 + i] * v[5]


@_jit
def to_parent(x, f, out):
    """Wrench at the parent's origin, in its axes, from one at the origin of a frame at pose x; `out` is not `f`."""
    for i in range(3):
        out[i] = x[3 * i] * f[0] + x[3 * i + 1] * f[1] + x[3 * i + 2] * f[2]
        out[3 + i] = x[3 * i] * f[3] + x[3 * i + 1] * f[4] + x[3 * i + 2] * f[5]
    out[3] += x[10] * out[2] - x[11] * out[1]
    out[4] += x[11] * out[0] - x[9] * out[2]
    out[5] += x[9] * out[1] - x[10] * out[0]


@_jit
def turn_back(x, v, out):
    """Vector in the axes of a frame at pose x, from the parent's axes."""
    a, b, c = v[0], v[1], v[2]
    for i in range(3):
        out[i] = x[i] * a + x[3 + i] * b + x[6 + i] * c


# --- joints


@_jit
def primitive_pose(k, primitives, offsets, q, out):
    """Pose of primitive k's frame in the one before it: its offset, then a turn about z, a slide along z, or a ball."""
    kind, c, offset = primitives[k, qs.MOTION], primitives[k, qs.COORDINATE], offsets[k]
    copy_pose(offset, out)
    if kind == LINK_HINGE:
        cosine, sine = math.cos(q[c]), math.sin(q[c])
        for i in range(0, 9, 3):
            x, y = offset[i], offset[i + 1]
            out[i], out[i + 1] = x * cosine + y * sine, y * cosine - x * sine
    elif kind == LINK_BALL:
        b00, b01, b02, b10, b11, b12, b20, b21, b22 = se3.quat_entries(q[c], q[c + 1], q[c + 2], q[c + 3])
        for i in range(0, 9, 3):
            x, y, z = offset[i], offset[i + 1], offset[i + 2]
            out[i] = x * b00 + y * b10 + z * b20
            out[i + 1] = x * b01 + y * b11 + z * b21
            out[i + 2] = x * b02 + y * b12 + z * b22
    else:
        for i in range(3):
            out[9 + i] += offset[3 * i + 2] * q[c]


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
    groups, primitives, q, rest = joints.groups, joints.primitives, joints.q, joints.rest
    stiffness, pull, motor, torque = joints.stiffness, joints.pull, joints.motor, joints.torque
    first = groups[g, qs.FIRST]
    for k in range(first, first + groups[g, qs.COUNT]):
        d, c = primitives[k, qs.MOTION_DOF], primitives[k, qs.COORDINATE]
        if primitives[k, qs.MOTION] == LINK_BALL:
            x, y, z = rotation_from_rest(rest, c, q[c], q[c + 1], q[c + 2], q[c + 3])
            x, y, z = se3.inverse_transpose_product(
                x, y, z, stiffness[d] * x, stiffness[d + 1] * y, stiffness[d + 2] * z
            )
            torque[d], torque[d + 1], torque[d + 2] = motor[d] - x, motor[d + 1] - y, motor[d + 2] - z
        else:
            torque[d] = pull[d] - stiffness[d] * q[c] + motor[d]


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
