"""Kernels for single joints: where they put their child, what springs do, and how a joint is eliminated.

A pose is 12 numbers: rotation (row by row) and shift.
"""

import math

from pliant.compilation import njit
from pliant.mechanism.links import LINK_BALL, LINK_HINGE
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy", nogil=True)


@_jit
def compose(a, b, out):
    """out = a b; `out` is neither of them."""
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j]
        out[9 + i] = a[3 * i] * b[9] + a[3 * i + 1] * b[10] + a[3 * i + 2] * b[11] + a[9 + i]


@_jit
def to_child(x, v, out):
    """A motion in the parent's frame, seen from the child at pose x. `out` may be `v`."""
    wx, wy, wz = v[3], v[4], v[5]
    vx = v[0] + wy * x[11] - wz * x[10]
    vy = v[1] + wz * x[9] - wx * x[11]
    vz = v[2] + wx * x[10] - wy * x[9]
    for i in range(3):
        out[i] = x[i] * vx + x[3 + i] * vy + x[6 + i] * vz
        out[3 + i] = x[i] * wx + x[3 + i] * wy + x[6 + i] * wz


@_jit
def seen(x, v0, v1, v2, w0, w1, w2):
    """E times a motion; see `to_child`."""
    v0, v1, v2 = v0 + w1 * x[11] - w2 * x[10], v1 + w2 * x[9] - w0 * x[11], v2 + w0 * x[10] - w1 * x[9]
    return (
        x[0] * v0 + x[3] * v1 + x[6] * v2,
        x[1] * v0 + x[4] * v1 + x[7] * v2,
        x[2] * v0 + x[5] * v1 + x[8] * v2,
        x[0] * w0 + x[3] * w1 + x[6] * w2,
        x[1] * w0 + x[4] * w1 + x[7] * w2,
        x[2] * w0 + x[5] * w1 + x[8] * w2,
    )


@_jit
def to_parent(x, f, out):
    """A wrench in the frame of the child at pose x, seen from its parent. `out` may be `f`."""
    fx = x[0] * f[0] + x[1] * f[1] + x[2] * f[2]
    fy = x[3] * f[0] + x[4] * f[1] + x[5] * f[2]
    fz = x[6] * f[0] + x[7] * f[1] + x[8] * f[2]
    tx = x[0] * f[3] + x[1] * f[4] + x[2] * f[5]
    ty = x[3] * f[3] + x[4] * f[4] + x[5] * f[5]
    tz = x[6] * f[3] + x[7] * f[4] + x[8] * f[5]
    out[0], out[1], out[2] = fx, fy, fz
    out[3] = tx + x[10] * fz - x[11] * fy
    out[4] = ty + x[11] * fx - x[9] * fz
    out[5] = tz + x[9] * fy - x[10] * fx


@_jit
def primitive(k, primitives, offsets, q, out, row):
    """out[row] = offset E(q) of primitive k: a turn about z, a shift along z, or a quaternion."""
    kind, c = primitives[k, 0], primitives[k, 2]
    if kind == LINK_HINGE:
        cosine, sine = math.cos(q[c]), math.sin(q[c])
        for i in range(0, 9, 3):
            x, y = offsets[k, i], offsets[k, i + 1]
            out[row, i], out[row, i + 1] = x * cosine + y * sine, y * cosine - x * sine
            out[row, i + 2] = offsets[k, i + 2]
        for i in range(9, 12):
            out[row, i] = offsets[k, i]
    elif kind == LINK_BALL:
        w, x, y, z = q[c], q[c + 1], q[c + 2], q[c + 3]
        b00, b01, b02 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)
        b10, b11, b12 = 2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)
        b20, b21, b22 = 2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)
        for i in range(0, 9, 3):
            r0, r1, r2 = offsets[k, i], offsets[k, i + 1], offsets[k, i + 2]
            out[row, i] = r0 * b00 + r1 * b10 + r2 * b20
            out[row, i + 1] = r0 * b01 + r1 * b11 + r2 * b21
            out[row, i + 2] = r0 * b02 + r1 * b12 + r2 * b22
        for i in range(9, 12):
            out[row, i] = offsets[k, i]
    else:
        for i in range(12):
            out[row, i] = offsets[k, i]
        for i in range(3):
            out[row, 9 + i] += offsets[k, 3 * i + 2] * q[c]


@_jit
def place(g, groups, primitives, offsets, q, poses, screws, spare):
    """Pose of a group in its parent; of a joint with several primitives also its screws, in the group's frame.

    Goes from the last primitive to the first: `poses[g]` is what follows the primitive at hand. `spare` is (3, 12).
    """
    first, count = groups[g, 1], groups[g, 2]
    last = first + count - 1
    primitive(last, primitives, offsets, q, poses, g)
    if count == 1:
        return
    pose = poses[g]
    _screws(primitives, last, pose, True, screws, spare[2])
    for k in range(last - 1, first - 1, -1):
        _screws(primitives, k, pose, False, screws, spare[2])
        primitive(k, primitives, offsets, q, spare, 0)
        compose(spare[0], pose, spare[1])
        for i in range(12):
            pose[i] = spare[1, i]


@_jit
def _screws(primitives, k, pose, own, screws, unit):
    """Rows of `screws` for primitive k, whose frame sees the group at `pose` (or is the group's own)."""
    kind, d = primitives[k, 0], primitives[k, 1]
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
def springs(g, groups, primitives, stiffness, pull, rest, motor, q, torque):
    """What springs and motors do in the joint of a group, per dof."""
    first, count = groups[g, 1], groups[g, 2]
    for k in range(first, first + count):
        kind, d, c = primitives[k, 0], primitives[k, 1], primitives[k, 2]
        if kind == LINK_BALL:
            _ball(stiffness, rest, q, c, d, torque)
            for i in range(3):
                torque[d + i] += motor[d + i]
        else:
            torque[d] = pull[d] - stiffness[d] * q[c] + motor[d]


@_jit
def _ball(stiffness, rest, q, c, d, torque):
    """-J^-T K s, with s the rotation vector from rest and J its right Jacobian."""
    if stiffness[d] == 0.0 and stiffness[d + 1] == 0.0 and stiffness[d + 2] == 0.0:
        torque[d], torque[d + 1], torque[d + 2] = 0.0, 0.0, 0.0
        return
    w, x, y, z = q[c], q[c + 1], q[c + 2], q[c + 3]
    rw, rx, ry, rz = rest[c], -rest[c + 1], -rest[c + 2], -rest[c + 3]
    sw = rw * w - rx * x - ry * y - rz * z
    sx = rw * x + rx * w + ry * z - rz * y
    sy = rw * y - rx * z + ry * w + rz * x
    sz = rw * z + rx * y - ry * x + rz * w
    if sw < 0.0:
        sw, sx, sy, sz = -sw, -sx, -sy, -sz
    n = math.sqrt(sx * sx + sy * sy + sz * sz)
    scale = 2.0 if n < 1e-12 else 2.0 * math.atan2(n, sw) / n
    sx, sy, sz = scale * sx, scale * sy, scale * sz
    yx, yy, yz = stiffness[d] * sx, stiffness[d + 1] * sy, stiffness[d + 2] * sz
    square = sx * sx + sy * sy + sz * sz
    curve = 1.0 / 12.0 + square / 720.0
    if square > 1e-4:
        angle = math.sqrt(square)
        curve = (1.0 - 0.5 * angle * math.sin(angle) / max(1.0 - math.cos(angle), 1e-12)) / square
    nx, ny, nz = sy * yz - sz * yy, sz * yx - sx * yz, sx * yy - sy * yx
    torque[d] = -(yx - 0.5 * nx + curve * (sy * nz - sz * ny))
    torque[d + 1] = -(yy - 0.5 * ny + curve * (sz * nx - sx * nz))
    torque[d + 2] = -(yz - 0.5 * nz + curve * (sx * ny - sy * nx))


@_jit
def move(g, groups, primitives, q, step, scale):
    """q += scale * step for the joint of a group."""
    first, count = groups[g, 1], groups[g, 2]
    for k in range(first, first + count):
        kind, d, c = primitives[k, 0], primitives[k, 1], primitives[k, 2]
        if kind == LINK_BALL:
            x, y, z = scale * step[d], scale * step[d + 1], scale * step[d + 2]
            cosine, sine, _ = se3.half_angle(x * x + y * y + z * z)
            x, y, z = 0.5 * sine * x, 0.5 * sine * y, 0.5 * sine * z
            a, b, e, f = q[c], q[c + 1], q[c + 2], q[c + 3]
            w = a * cosine - b * x - e * y - f * z
            i = a * x + b * cosine + e * z - f * y
            j = a * y - b * z + e * cosine + f * x
            k_ = a * z + b * y - e * x + f * cosine
            n = 1.0 / math.sqrt(w * w + i * i + j * j + k_ * k_)
            q[c], q[c + 1], q[c + 2], q[c + 3] = n * w, n * i, n * j, n * k_
        else:
            q[c] += scale * step[d]
