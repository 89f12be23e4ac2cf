"""Kernels for poses and single joints: transforms of motions and wrenches, poses, spring torques, steps along dofs.

Kernels called for every joint take their arrays one by one: to pass a tuple of arrays takes longer than they do.

A pose x of a child in its parent is 12 numbers, rotation (row by row) and translation. E denotes the transform of
motions from the parent's frame to the child's; wrenches go the other way by its transpose.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.mechanism.kernels import rotation_from_rest
from pliant.mechanism.links import LINK_BALL, LINK_HINGE
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})

# --- poses, motions, wrenches


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


@_fused
def relative_pose(a, b, out):
    """out = a^-1 b."""
    x, y, z = b[9] - a[9], b[10] - a[10], b[11] - a[11]
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j]
        out[9 + i] = a[i] * x + a[3 + i] * y + a[6 + i] * z


@_jit
def distance(pose):
    """Distance of a frame's origin, m."""
    return math.sqrt(pose[9] * pose[9] + pose[10] * pose[10] + pose[11] * pose[11])


def _motion_to_child(x, v0, v1, v2, w0, w1, w2):
    """E times a motion."""
    v0, v1, v2 = v0 + w1 * x[11] - w2 * x[10], v1 + w2 * x[9] - w0 * x[11], v2 + w0 * x[10] - w1 * x[9]
    return (
        x[0] * v0 + x[3] * v1 + x[6] * v2,
        x[1] * v0 + x[4] * v1 + x[7] * v2,
        x[2] * v0 + x[5] * v1 + x[8] * v2,
        x[0] * w0 + x[3] * w1 + x[6] * w2,
        x[1] * w0 + x[4] * w1 + x[7] * w2,
        x[2] * w0 + x[5] * w1 + x[8] * w2,
    )


@_fused
def wrench_to_parent(x, f0, f1, f2, t0, t1, t2):
    """E^T times a wrench."""
    f0, f1, f2, t0, t1, t2 = (
        x[0] * f0 + x[1] * f1 + x[2] * f2,
        x[3] * f0 + x[4] * f1 + x[5] * f2,
        x[6] * f0 + x[7] * f1 + x[8] * f2,
        x[0] * t0 + x[1] * t1 + x[2] * t2,
        x[3] * t0 + x[4] * t1 + x[5] * t2,
        x[6] * t0 + x[7] * t1 + x[8] * t2,
    )
    return (
        f0,
        f1,
        f2,
        t0 + x[10] * f2 - x[11] * f1,
        t1 + x[11] * f0 - x[9] * f2,
        t2 + x[9] * f1 - x[10] * f0,
    )


_exact_motion_to_child, motion_to_child = _jit(_motion_to_child), _fused(_motion_to_child)


@_jit
def to_child(x, v, out):
    """out = E v. `out` may be `v`."""
    out[0], out[1], out[2], out[3], out[4], out[5] = _exact_motion_to_child(
        x, v[0], v[1], v[2], v[3], v[4], v[5]
    )


@_fused
def to_parent(x, f, out):
    """out = E^T f. `out` may be `f`."""
    out[0], out[1], out[2], out[3], out[4], out[5] = wrench_to_parent(x, f[0], f[1], f[2], f[3], f[4], f[5])


@_fused
def motion_transform(x, sign, out):
    """out[:6] = sign E; two more rows of `out` are scratch."""
    unit, column = out[6], out[7]
    for j in range(6):
        for i in range(6):
            unit[i] = 0.0
        unit[j] = sign
        to_child(x, unit, column)
        for i in range(6):
            out[i, j] = column[i]


# --- joints


@_jit
def primitive_pose(k, primitives, offsets, q, out):
    """Pose of primitive k's frame in the one before it: its offset, then a turn about z, a slide along z, or a ball."""
    kind, c, offset = primitives[k, col.MOTION], primitives[k, col.COORDINATE], offsets[k]
    if kind == LINK_HINGE:
        cosine, sine = math.cos(q[c]), math.sin(q[c])
        for i in range(0, 9, 3):
            x, y = offset[i], offset[i + 1]
            out[i], out[i + 1] = x * cosine + y * sine, y * cosine - x * sine
            out[i + 2] = offset[i + 2]
        for i in range(9, 12):
            out[i] = offset[i]
    elif kind == LINK_BALL:
        b00, b01, b02, b10, b11, b12, b20, b21, b22 = se3.quat_entries(q[c], q[c + 1], q[c + 2], q[c + 3])
        for i in range(0, 9, 3):
            r0, r1, r2 = offset[i], offset[i + 1], offset[i + 2]
            out[i] = r0 * b00 + r1 * b10 + r2 * b20
            out[i + 1] = r0 * b01 + r1 * b11 + r2 * b21
            out[i + 2] = r0 * b02 + r1 * b12 + r2 * b22
        for i in range(9, 12):
            out[i] = offset[i]
    else:
        copy_pose(offset, out)
        for i in range(3):
            out[9 + i] += offset[3 * i + 2] * q[c]


@_jit
def joint_pose(g, groups, primitives, offsets, q, poses, screws, spare):
    """Pose of group g in its parent; for a joint with several primitives also its screws, in the group's frame.

    From the last primitive to the first: `pose` is that of the group in the frame at hand. `spare` is (3, 12).
    """
    first, pose = groups[g, col.FIRST], poses[g]
    last = first + groups[g, col.COUNT] - 1
    primitive_pose(last, primitives, offsets, q, pose)
    if last == first:
        return
    _primitive_screws(last, primitives, pose, True, screws, spare[2])
    for k in range(last - 1, first - 1, -1):
        _primitive_screws(k, primitives, pose, False, screws, spare[2])
        primitive_pose(k, primitives, offsets, q, spare[0])
        compose(spare[0], pose, spare[1])
        copy_pose(spare[1], pose)


@_jit
def _primitive_screws(k, primitives, pose, own, screws, unit):
    """Screws of primitive k, with the group at `pose` in its frame (or, if `own`, in the group's frame)."""
    kind, d = primitives[k, col.MOTION], primitives[k, col.MOTION_DOF]
    for j in range(3 if kind == LINK_BALL else 1):
        for i in range(6):
            unit[i] = 0.0
        if kind == LINK_BALL:
            unit[3 + j] = 1.0
        elif kind == LINK_HINGE:
            unit[5] = 1.0
        else:
            unit[2] = 1.0
        if own:
            for i in range(6):
                screws[d + j, i] = unit[i]
        else:
            to_child(pose, unit[:6], screws[d + j])


@_jit
def joint_torques(g, groups, primitives, stiffness, pull, rest, motor, q, torque):
    """Torques of springs and motors on the dofs of group g's joint."""
    first = groups[g, col.FIRST]
    for k in range(first, first + groups[g, col.COUNT]):
        d, c = primitives[k, col.MOTION_DOF], primitives[k, col.COORDINATE]
        if primitives[k, col.MOTION] == LINK_BALL:
            _ball_torques(stiffness, rest, q, c, d, torque)
            for i in range(3):
                torque[d + i] += motor[d + i]
        else:
            torque[d] = pull[d] - stiffness[d] * q[c] + motor[d]


@_jit
def _ball_torques(stiffness, rest, q, c, d, torque):
    """-J^-T K s, with s the rotation vector from rest and J its right Jacobian."""
    if stiffness[d] == 0.0 and stiffness[d + 1] == 0.0 and stiffness[d + 2] == 0.0:
        torque[d], torque[d + 1], torque[d + 2] = 0.0, 0.0, 0.0
        return
    x, y, z = rotation_from_rest(rest, c, q[c], q[c + 1], q[c + 2], q[c + 3])
    x, y, z = se3.inverse_transpose_product(
        x, y, z, stiffness[d] * x, stiffness[d + 1] * y, stiffness[d + 2] * z
    )
    torque[d], torque[d + 1], torque[d + 2] = -x, -y, -z


# --- inertias


@_jit
def expand_inertia(inertia, out):
    """Spatial inertia, row by row, from the mass, its first moment and the moment of inertia (see `arrays`)."""
    m, x, y, z = inertia[col.MASS], inertia[col.MOMENT], inertia[col.MOMENT + 1], inertia[col.MOMENT + 2]
    for i in range(36):
        out[i] = 0.0
    out[0], out[7], out[14] = m, m, m
    out[4], out[5], out[9], out[11], out[15], out[16] = z, -y, -z, x, y, -x
    out[19], out[20], out[24], out[26], out[30], out[31] = -z, y, z, -x, -y, x
    at = col.TURNING
    for i in range(3):
        for j in range(i + 1):
            out[21 + 6 * i + j] = out[21 + 6 * j + i] = inertia[at]
            at += 1


@_fused
def invert_inertia(inertia, shares, whole, low, out):
    """Inverse of a share of a spatial inertia by Cholesky factors, 36 numbers symmetric to the last bit.

    NaN where there is none. The unit of length of the factors is the body's radius of gyration.

    Args:
        inertia: of the body, see `arrays`.
        shares: the number of shares that it is divided into.
        whole, low: scratch, (36,) and (6, 6).
        out: the inverse, row by row.
    """
    expand_inertia(inertia, whole)
    length, turning = 1.0, whole[21] + whole[28] + whole[35]
    if inertia[col.MASS] > 0.0 and turning > 0.0:
        length = math.sqrt(turning / inertia[col.MASS])
    for i in range(6):
        for j in range(i + 1):
            unit = (length if i >= 3 else 1.0) * (length if j >= 3 else 1.0)
            total = whole[6 * i + j] / unit
            for k in range(j):
                total -= low[i, k] * low[j, k]
            if j < i:
                low[i, j] = total * low[j, j]
            else:
                low[i, i] = 1.0 / math.sqrt(total) if total > 0.0 else math.nan
    # the inverse of the factor, whose diagonal holds its inverse already
    for j in range(6):
        for i in range(j + 1, 6):
            total = 0.0
            for k in range(j, i):
                total -= low[i, k] * low[k, j]
            low[i, j] = total * low[i, i]
    for i in range(6):
        for j in range(i + 1):
            unit = (length if i >= 3 else 1.0) * (length if j >= 3 else 1.0)
            total = 0.0
            for k in range(i, 6):
                total += low[k, i] * low[k, j]
            out[6 * i + j] = out[6 * j + i] = total / unit * shares


@_jit
def integrate_joint(g, groups, primitives, q, qdd, scale):
    """q += scale qdd for group g's joint; balls by the exponential map."""
    first = groups[g, col.FIRST]
    for k in range(first, first + groups[g, col.COUNT]):
        d, c = primitives[k, col.MOTION_DOF], primitives[k, col.COORDINATE]
        if primitives[k, col.MOTION] == LINK_BALL:
            x, y, z = scale * qdd[d], scale * qdd[d + 1], scale * qdd[d + 2]
            w, x, y, z = se3.quat_turn(q[c], q[c + 1], q[c + 2], q[c + 3], x, y, z)
            n = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
            q[c], q[c + 1], q[c + 2], q[c + 3] = n * w, n * x, n * y, n * z
        else:
            q[c] += scale * qdd[d]
