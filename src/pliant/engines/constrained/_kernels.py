"""Kernels of the joint-coordinate midpoint step: links in motion, bodies, springs.

Everything is in world axes about the joint's own point, so that going from a link to its parent is a mere shift.
`work` holds one row per link; its columns are named below. `links` holds PARENT, KIND, DOF, COORDINATE,
SPRUNG (a ball with springs) and TURNING (the nearest link on the way to the root, itself included, that turns);
`constants`, `dofs` see `packing.py`.
"""

import math

from pliant.compilation import njit
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE, LINK_SLIDE
from pliant.spatial import _kernels as se3

# columns of links
PARENT, KIND, DOF, COORDINATE, SPRUNG, TURNING = 0, 1, 2, 3, 4, 5
LINK_COLUMNS = 6
# columns of constants: pose in the parent's joint frame, body in the joint frame
TURN, SHIFT, MASS, COM, AXES, MOMENT = 0, 9, 12, 13, 16, 25
CONSTANTS = 28
# columns of dofs: given ...
STIFFNESS, DAMPING, PULL, ARMATURE, LOWER, UPPER, FELT, UNIT = 0, 1, 2, 3, 4, 5, 6, 7
# ... and for the current length of a step: arguments and factors of springs and dampers
AHEAD, BEHIND, HALF, DRAG, DRAGGED, GIVEN, STOP, REACH, LAG = 8, 9, 10, 11, 12, 13, 14, 15, 16
DOF_COLUMNS = 17
# columns of work: rotation, point, arm from the parent's point, centre of mass from the point, inertia, velocities
R, P, S, C, I, W, V = 0, 9, 12, 15, 18, 24, 27
# ... force through the joint, right side, articulated inertia [L X; X^T H], factors (of a hinge or slide also gains)
F, BF, L, X, H, BT, FACTOR, GAIN, TWIST, RIGHT = 30, 33, 36, 42, 51, 57, 60, 66, 69, 72
# ... joint springs: stiffness block and torque; change of the link's velocities; torque through the joint
BLOCK, TORQUE, DV, DW, T = 75, 81, 84, 87, 90
WORK_COLUMNS = 93
HIT = 1e-4  # rad or radii a step: a joint that is faster runs into its stop, a slower one leans on it
NEAR = 1e-3  # rad or radii
CHUNK = 32  # links that go through all stages together, while they are in the processor's nearest memory

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def forward(links, constants, q, u, t, work):
    """Where links are at `q + t u`, and how fast they move there with `u`."""
    forward_some(0, links.shape[0], links, constants, q, u, t, work)


@_jit
def forward_some(first, last, links, constants, q, u, t, work):
    """`forward` for some links, those before them done."""
    for k in range(first, last):
        p, kind, d, c = links[k, 0], links[k, 1], links[k, 2], links[k, 3]
        a00, a01, a02 = constants[k, 0], constants[k, 1], constants[k, 2]
        a10, a11, a12 = constants[k, 3], constants[k, 4], constants[k, 5]
        a20, a21, a22 = constants[k, 6], constants[k, 7], constants[k, 8]
        sx, sy, sz = constants[k, 9], constants[k, 10], constants[k, 11]
        px, py, pz = 0.0, 0.0, 0.0
        wx, wy, wz = 0.0, 0.0, 0.0
        vx, vy, vz = 0.0, 0.0, 0.0
        if p >= 0:
            r00, r01, r02 = work[p, 0], work[p, 1], work[p, 2]
            r10, r11, r12 = work[p, 3], work[p, 4], work[p, 5]
            r20, r21, r22 = work[p, 6], work[p, 7], work[p, 8]
            a00, a10, a20 = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a00, a10, a20)
            a01, a11, a21 = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a01, a11, a21)
            a02, a12, a22 = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a02, a12, a22)
            sx, sy, sz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, sx, sy, sz)
            px, py, pz = work[p, 9], work[p, 10], work[p, 11]
            wx, wy, wz = work[p, 24], work[p, 25], work[p, 26]
            vx, vy, vz = work[p, 27], work[p, 28], work[p, 29]
        if kind == LINK_SLIDE:
            x = q[c] + t * u[d]
            sx, sy, sz = sx + a02 * x, sy + a12 * x, sz + a22 * x
            vx, vy, vz = vx + a02 * u[d], vy + a12 * u[d], vz + a22 * u[d]
        vx += wy * sz - wz * sy
        vy += wz * sx - wx * sz
        vz += wx * sy - wy * sx
        if kind == LINK_HINGE:
            x = q[c] + t * u[d]
            cosine, sine = math.cos(x), math.sin(x)
            a00, a01 = a00 * cosine + a01 * sine, a01 * cosine - a00 * sine
            a10, a11 = a10 * cosine + a11 * sine, a11 * cosine - a10 * sine
            a20, a21 = a20 * cosine + a21 * sine, a21 * cosine - a20 * sine
            wx, wy, wz = wx + a02 * u[d], wy + a12 * u[d], wz + a22 * u[d]
        elif kind == LINK_BALL:
            ux, uy, uz = u[d], u[d + 1], u[d + 2]
            w, x, y, z = turned(q[c], q[c + 1], q[c + 2], q[c + 3], t * ux, t * uy, t * uz)
            b00, b01, b02 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)
            b10, b11, b12 = 2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)
            b20, b21, b22 = 2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)
            a00, a01, a02 = _times(a00, a01, a02, b00, b01, b02, b10, b11, b12, b20, b21, b22)
            a10, a11, a12 = _times(a10, a11, a12, b00, b01, b02, b10, b11, b12, b20, b21, b22)
            a20, a21, a22 = _times(a20, a21, a22, b00, b01, b02, b10, b11, b12, b20, b21, b22)
            wx += a00 * ux + a01 * uy + a02 * uz
            wy += a10 * ux + a11 * uy + a12 * uz
            wz += a20 * ux + a21 * uy + a22 * uz
        work[k, 0], work[k, 1], work[k, 2] = a00, a01, a02
        work[k, 3], work[k, 4], work[k, 5] = a10, a11, a12
        work[k, 6], work[k, 7], work[k, 8] = a20, a21, a22
        work[k, 9], work[k, 10], work[k, 11] = px + sx, py + sy, pz + sz
        work[k, 12], work[k, 13], work[k, 14] = sx, sy, sz
        work[k, 24], work[k, 25], work[k, 26] = wx, wy, wz
        work[k, 27], work[k, 28], work[k, 29] = vx, vy, vz


@_jit
def rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z):
    return r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z


@_jit
def _times(x, y, z, b00, b01, b02, b10, b11, b12, b20, b21, b22):
    return x * b00 + y * b10 + z * b20, x * b01 + y * b11 + z * b21, x * b02 + y * b12 + z * b22


@_jit
def turned(qw, qx, qy, qz, x, y, z):
    """Quaternion times that of a rotation vector."""
    c, s, _ = se3.half_angle(x * x + y * y + z * z)
    s *= 0.5
    x, y, z = s * x, s * y, s * z
    return (
        qw * c - qx * x - qy * y - qz * z,
        qw * x + qx * c + qy * z - qz * y,
        qw * y - qx * z + qy * c + qz * x,
        qw * z + qx * y - qy * x + qz * c,
    )


@_jit
def move(links, q, u, t):
    """q += t u."""
    for k in range(links.shape[0]):
        kind, d, c = links[k, 1], links[k, 2], links[k, 3]
        if kind == LINK_BALL:
            w, x, y, z = turned(q[c], q[c + 1], q[c + 2], q[c + 3], t * u[d], t * u[d + 1], t * u[d + 2])
            s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
            q[c], q[c + 1], q[c + 2], q[c + 3] = s * w, s * x, s * y, s * z
        elif kind != LINK_FIXED:
            q[c] += t * u[d]


@_jit
def momenta(first, last, constants, work, out):
    """Momentum and angular momentum about the centre of mass of every link's body, world axes.

    Leaves the centre of mass (from the joint's point) and the inertia in `work`.
    """
    for k in range(first, last):
        r00, r01, r02 = work[k, 0], work[k, 1], work[k, 2]
        r10, r11, r12 = work[k, 3], work[k, 4], work[k, 5]
        r20, r21, r22 = work[k, 6], work[k, 7], work[k, 8]
        m, bx, by, bz = constants[k, 12], constants[k, 13], constants[k, 14], constants[k, 15]
        cx, cy, cz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, bx, by, bz)
        xx, xy, xz, yy, yz, zz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(3):
            bx, by, bz, i = (
                constants[k, 16 + j],
                constants[k, 19 + j],
                constants[k, 22 + j],
                constants[k, 25 + j],
            )
            x, y, z = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, bx, by, bz)
            xx, xy, xz = xx + i * x * x, xy + i * x * y, xz + i * x * z
            yy, yz, zz = yy + i * y * y, yz + i * y * z, zz + i * z * z
        work[k, 15], work[k, 16], work[k, 17] = cx, cy, cz
        work[k, 18], work[k, 19], work[k, 20] = xx, xy, xz
        work[k, 21], work[k, 22], work[k, 23] = yy, yz, zz
        wx, wy, wz = work[k, 24], work[k, 25], work[k, 26]
        out[k, 0] = m * (work[k, 27] + wy * cz - wz * cy)
        out[k, 1] = m * (work[k, 28] + wz * cx - wx * cz)
        out[k, 2] = m * (work[k, 29] + wx * cy - wy * cx)
        out[k, 3] = xx * wx + xy * wy + xz * wz
        out[k, 4] = xy * wx + yy * wy + yz * wz
        out[k, 5] = xz * wx + yz * wy + zz * wz


@_jit
def reflect(work, at_middle, momentum):
    """Momentum after the step from that before it and that of the midpoint velocity: their mean is the midpoint.

    Linear momentum is kept in world axes, angular momentum in the link's own: there it is a rotation of Euler's
    equations that keeps both energy and the size of the momentum.
    """
    for k in range(work.shape[0]):
        x, y, z = at_middle[k, 3], at_middle[k, 4], at_middle[k, 5]
        for i in range(3):
            momentum[k, i] = 2.0 * at_middle[k, i] - momentum[k, i]
            turned = work[k, i] * x + work[k, 3 + i] * y + work[k, 6 + i] * z
            momentum[k, 3 + i] = 2.0 * turned - momentum[k, 3 + i]


@_jit
def settle(work, at_middle, momentum):
    """Momentum that of the velocity found, and nothing besides."""
    for k in range(work.shape[0]):
        x, y, z = at_middle[k, 3], at_middle[k, 4], at_middle[k, 5]
        for i in range(3):
            momentum[k, i] = at_middle[k, i]
            momentum[k, 3 + i] = work[k, i] * x + work[k, 3 + i] * y + work[k, 6 + i] * z


@_jit
def impulses(first, last, constants, gravity, loads, t, work, out):
    """Impulse of gravity and wrenches during `t` at the centres of mass, world axes.

    A row of `loads`: link, force and torque in the world, where that force acts (from the centre of mass, link's
    axes), force and torque that turn with the link.
    """
    for k in range(first, last):
        m = t * constants[k, 12]
        out[k, 0], out[k, 1], out[k, 2] = m * gravity[0], m * gravity[1], m * gravity[2]
        out[k, 3], out[k, 4], out[k, 5] = 0.0, 0.0, 0.0
    for row in range(loads.shape[0]):
        k = int(loads[row, 0])
        if not first <= k < last:
            continue
        r00, r01, r02 = work[k, 0], work[k, 1], work[k, 2]
        r10, r11, r12 = work[k, 3], work[k, 4], work[k, 5]
        r20, r21, r22 = work[k, 6], work[k, 7], work[k, 8]
        fx, fy, fz = loads[row, 1], loads[row, 2], loads[row, 3]
        x, y, z = loads[row, 7], loads[row, 8], loads[row, 9]
        x, y, z = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z)
        gx, gy, gz = loads[row, 10], loads[row, 11], loads[row, 12]
        gx, gy, gz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, gx, gy, gz)
        tx, ty, tz = loads[row, 13], loads[row, 14], loads[row, 15]
        tx, ty, tz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, tx, ty, tz)
        out[k, 0] += t * (fx + gx)
        out[k, 1] += t * (fy + gy)
        out[k, 2] += t * (fz + gz)
        out[k, 3] += t * (loads[row, 4] + y * fz - z * fy + tx)
        out[k, 4] += t * (loads[row, 5] + z * fx - x * fz + ty)
        out[k, 5] += t * (loads[row, 6] + x * fy - y * fx + tz)
