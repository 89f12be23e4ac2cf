"""Free rigid bodies: motion, and their rows in contacts.

A row of `state`: centre of mass, quaternion, momentum, angular momentum about the centre of mass, all in world axes:
momenta then change by impulses alone and are conserved to the last digit. A row of `fixed`: mass, centre of mass in the
body's frame, moments of inertia; the quaternion is that of the principal axes, `axes` those in the body's frame.
"""

import math

from pliant.compilation import njit
from pliant.contact._solver_kernels import ROLLING
from pliant.spatial import _kernels as se3
from pliant.statics.loads import ACTS, FOLLOWER_FORCE, FOLLOWER_TORQUE, POINT, TORQUE

POSITION, QUATERNION, MOMENTUM, ANGULAR, STATE = 0, 3, 7, 10, 13
MASS, CENTRE, MOMENT, FIXED = 0, 1, 4, 7
_TURN = 0.25  # rad: longer turns are made in parts

_jit = njit(error_model="numpy", nogil=True)


@_jit
def _spin(fixed, turn, x, y, z):
    """Angular velocity of an angular momentum."""
    a = (turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * z) / fixed[4]
    b = (turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * z) / fixed[5]
    c = (turn[0, 2] * x + turn[1, 2] * y + turn[2, 2] * z) / fixed[6]
    return (
        turn[0, 0] * a + turn[0, 1] * b + turn[0, 2] * c,
        turn[1, 0] * a + turn[1, 1] * b + turn[1, 2] * c,
        turn[2, 0] * a + turn[2, 1] * b + turn[2, 2] * c,
    )


@_jit
def velocities(fixed, state, work, u):
    """Velocity of the centre of mass and angular velocity of every body."""
    turn = work[:3]
    for b in range(state.shape[0]):
        se3.quat_to_matrix(state[b, 3:7], turn)
        for i in range(3):
            u[6 * b + i] = state[b, 7 + i] / fixed[b, 0]
        x, y, z = _spin(fixed[b], turn, state[b, 10], state[b, 11], state[b, 12])
        u[6 * b + 3], u[6 * b + 4], u[6 * b + 5] = x, y, z


@_jit
def look_ahead(fixed, state, h, fall, ahead, most, margins, wanted):
    """Widen margins of bodies to as far as their centres of mass go in a step, so many times.

    By speed alone, what is `wanted` goes beyond `most`.
    """
    for b in range(state.shape[0]):
        speed = math.sqrt(state[b, 7] ** 2 + state[b, 8] ** 2 + state[b, 9] ** 2) / fixed[b, 0]
        margins[b] = max(margins[b], min(ahead * h * (speed + fall), most))
        # what is held is not taken for falling: it would see the floor at all times
        wanted[b] = max(margins[b], ahead * h * speed)


@_jit
def accelerate(fixed, state, given, poses, gravity, h, wrench):
    """Momenta after a step without contacts.

    Args:
        given: loads as rows of `Load.row`.
        poses: of the bodies.
        wrench: force and torque about the centre of mass, world axes, written.
    """
    for b in range(state.shape[0]):
        for i in range(6):
            wrench[b, i] = 0.0
        if given[b, ACTS] != 0.0:
            _about_centre(given[b], fixed[b], poses[b], wrench[b])
        for i in range(3):
            state[b, 7 + i] += h * (wrench[b, i] + fixed[b, 0] * gravity[i])
            state[b, 10 + i] += h * wrench[b, 3 + i]


@_jit
def _about_centre(given, fixed, pose, out):
    """Force and torque of a load about the centre of mass, world axes."""
    a, b, c = given[POINT] - fixed[1], given[POINT + 1] - fixed[2], given[POINT + 2] - fixed[3]
    u, v, w = given[FOLLOWER_FORCE], given[FOLLOWER_FORCE + 1], given[FOLLOWER_FORCE + 2]
    p = given[FOLLOWER_TORQUE] - (fixed[2] * w - fixed[3] * v)
    q = given[FOLLOWER_TORQUE + 1] - (fixed[3] * u - fixed[1] * w)
    r = given[FOLLOWER_TORQUE + 2] - (fixed[1] * v - fixed[2] * u)
    for i in range(3):
        out[i] = given[i] + pose[i, 0] * u + pose[i, 1] * v + pose[i, 2] * w
        out[3 + i] = given[TORQUE + i] + pose[i, 0] * p + pose[i, 1] * q + pose[i, 2] * r
    x = pose[0, 0] * a + pose[0, 1] * b + pose[0, 2] * c
    y = pose[1, 0] * a + pose[1, 1] * b + pose[1, 2] * c
    z = pose[2, 0] * a + pose[2, 1] * b + pose[2, 2] * c
    out[3] += y * given[2] - z * given[1]
    out[4] += z * given[0] - x * given[2]
    out[5] += x * given[1] - y * given[0]


@_jit
def rows(count, kind, body, point, axes, side, J, Y, first, fixed, state, work):
    """Rows of all sides that are free bodies, numbered from `first` on; marks those bodies in work[0, b]."""
    last = first + state.shape[0]
    turn = work[:3]
    for b in range(count):
        for s in range(2):
            k = body[b, s]
            if not first <= k < last:
                continue
            at, sign = side[b, s, 0], -1.0 if s == 0 else 1.0
            k -= first
            se3.quat_to_matrix(state[k, 3:7], turn)
            rx, ry, rz = (
                point[b, 0] - state[k, 0],
                point[b, 1] - state[k, 1],
                point[b, 2] - state[k, 2],
            )
            for i in range(3):
                x, y, z = sign * axes[b, i, 0], sign * axes[b, i, 1], sign * axes[b, i, 2]
                p, q, r = x, y, z
                if kind[b] == ROLLING:
                    x = y = z = 0.0
                else:
                    p, q, r = ry * z - rz * y, rz * x - rx * z, rx * y - ry * x
                o = at + 6 * i
                J[o], J[o + 1], J[o + 2], J[o + 3], J[o + 4], J[o + 5] = x, y, z, p, q, r
                m = 1.0 / fixed[k, 0]
                Y[o], Y[o + 1], Y[o + 2] = m * x, m * y, m * z
                Y[o + 3], Y[o + 4], Y[o + 5] = _spin(fixed[k], turn, p, q, r)


@_jit
def strike(count, body, side, J, impulse, first, state, touched):
    """Add the impulses of all blocks to momenta; says which bodies have any blocks."""
    last = first + state.shape[0]
    for k in range(state.shape[0]):
        touched[k] = False
    for b in range(count):
        for s in range(2):
            k = body[b, s]
            if first <= k < last:
                k -= first
                touched[k] = True
                for i in range(3):
                    at = side[b, s, 0] + 6 * i
                    for j in range(6):
                        state[k, 7 + j] += impulse[b, i] * J[at + j]


@_jit
def balance(count, body, axes, amount, first, fixed, state, h, work):
    """Keep angular momentum while positions are about to be pushed apart, by `amount` along the normals of contacts.

    Shifts of two bodies along their normal change their angular momentum about any point by as much as they slide past
    each other. The one of them that it costs energy, or gains the least from it, takes it back as spin.
    """
    last = first + state.shape[0]
    turn = work[:3]
    for b in range(count):
        i, j, p = body[b, 0], body[b, 1], h * amount[b, 0]
        if p == 0.0 or not (first <= i < last and first <= j < last):
            continue
        i, j = i - first, j - first
        vx = state[i, 7] / fixed[i, 0] - state[j, 7] / fixed[j, 0]
        vy = state[i, 8] / fixed[i, 0] - state[j, 8] / fixed[j, 0]
        vz = state[i, 9] / fixed[i, 0] - state[j, 9] / fixed[j, 0]
        nx, ny, nz = p * axes[b, 0, 0], p * axes[b, 0, 1], p * axes[b, 0, 2]
        x, y, z = ny * vz - nz * vy, nz * vx - nx * vz, nx * vy - ny * vx
        least, taker = math.inf, i
        for k in (i, j):
            se3.quat_to_matrix(state[k, 3:7], turn)
            # change of energy: that of L + half the change, times the change
            wx, wy, wz = _spin(
                fixed[k], turn, state[k, 10] + 0.5 * x, state[k, 11] + 0.5 * y, state[k, 12] + 0.5 * z
            )
            gain = wx * x + wy * y + wz * z
            if gain < least:
                least, taker = gain, k
        state[taker, 10] += x
        state[taker, 11] += y
        state[taker, 12] += z


@_jit
def move(fixed, axes, state, wrench, gravity, touched, w, h, work, poses):
    """Positions after the step, by the momenta at its end. Returns the first body that is not finite, or -1.

    A body that touches nothing flies along its parabola. One that does goes where its velocity at the end of the step
    leads, as contacts count on, and besides by `w`, which its momentum knows nothing of.
    """
    for b in range(state.shape[0]):
        m = fixed[b, 0]
        for i in range(3):
            v = state[b, 7 + i] / m
            v += w[6 * b + i] if touched[b] else -0.5 * h * (wrench[b, i] / m + gravity[i])
            state[b, i] += h * v
        if touched[b]:
            _turn_by(state[b, 3:7], h * w[6 * b + 3], h * w[6 * b + 4], h * w[6 * b + 5], work)
        _turn(fixed[b], state[b, 3:7], state[b, 10], state[b, 11], state[b, 12], h, work)
        total = 0.0
        for i in range(STATE):
            total += abs(state[b, i])
        if not math.isfinite(total):
            return b
    place(fixed, axes, state, work, poses)
    return -1


@_jit
def _turn_by(quaternion, x, y, z, work):
    """Turn by a rotation vector in world axes."""
    vector, half = work[3, :3], work[4, :4]
    vector[0], vector[1], vector[2] = x, y, z
    se3.quat_exp(vector, half)
    se3.quat_multiply(half, quaternion, quaternion)
    se3.quat_normalize(quaternion)


@_jit
def _turn(fixed, quaternion, x, y, z, h, work):
    """Turn with a constant angular momentum: its size and kinetic energy stay, in the body's axes too.

    With P the momentum in principal axes and W = I^-1 (P + P') / 2, `P' = P - h W' x (P + P') / 2` keeps |P| and
    P I^-1 P for any W' along W; W' = tan(x) / x W, x half the angle, makes it the rotation by h W.
    """
    turn = work[:3]
    se3.quat_to_matrix(quaternion, turn)
    a, b, c = _spin(fixed, turn, x, y, z)
    parts = int(min(math.ceil(h * math.sqrt(a * a + b * b + c * c) / _TURN), 1000.0))
    if parts < 1:
        return
    t = h / parts
    for _ in range(parts):
        se3.quat_to_matrix(quaternion, turn)
        p = turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * z
        q = turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * z
        r = turn[0, 2] * x + turn[1, 2] * y + turn[2, 2] * z
        p1, q1, r1 = p, q, r
        a = b = c = 0.0
        for _ in range(40):
            mp, mq, mr = 0.5 * (p + p1), 0.5 * (q + q1), 0.5 * (r + r1)
            a, b, c = mp / fixed[4], mq / fixed[5], mr / fixed[6]
            half = 0.5 * t * math.sqrt(a * a + b * b + c * c)
            s = t * (math.tan(half) / half if half > 1e-8 else 1.0)
            p2, q2, r2 = p - s * (b * mr - c * mq), q - s * (c * mp - a * mr), r - s * (a * mq - b * mp)
            change = abs(p2 - p1) + abs(q2 - q1) + abs(r2 - r1)
            p1, q1, r1 = p2, q2, r2
            if change <= 1e-15 * (abs(p) + abs(q) + abs(r)):
                break
        vector, half_turn = work[3, :3], work[4, :4]
        vector[0], vector[1], vector[2] = t * a, t * b, t * c
        se3.quat_exp(vector, half_turn)
        se3.quat_multiply(quaternion, half_turn, quaternion)
    se3.quat_normalize(quaternion)


@_jit
def place(fixed, axes, state, work, poses):
    """Poses of bodies: (bodies, 4, 4)."""
    turn = work[:3]
    for b in range(state.shape[0]):
        se3.quat_to_matrix(state[b, 3:7], turn)
        for i in range(3):
            for j in range(3):
                poses[b, i, j] = (
                    turn[i, 0] * axes[b, j, 0] + turn[i, 1] * axes[b, j, 1] + turn[i, 2] * axes[b, j, 2]
                )
        for i in range(3):
            x = poses[b, i, 0] * fixed[b, 1] + poses[b, i, 1] * fixed[b, 2] + poses[b, i, 2] * fixed[b, 3]
            poses[b, i, 3] = state[b, i] - x
