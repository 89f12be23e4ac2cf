"""Motion of free rigid bodies, and their rows in contacts.

Momentum and angular momentum are kept in world axes: they change by impulses alone and are conserved to rounding.
Free bodies are the first bodies of a world, and their velocities the first of its velocities, six per body: of the
centre of mass, then angular, world axes.
"""

import math
from typing import Any, NamedTuple

from pliant.compilation import njit
from pliant.contact.arrays import ROWS
from pliant.engines.actor import IMPULSE, NORMAL, ROLLING, START
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import ACTS, wrench_in_world

# Columns of `state`: centre of mass, quaternion of the principal axes, momentum, angular momentum about the centre of
# mass, world. Columns of `fixed`: mass, centre of mass in the body's frame, principal moments of inertia.
POSITION, QUATERNION, MOMENTUM, ANGULAR, STATE = 0, 3, 7, 10, 13
MASS, CENTRE, MOMENT, FIXED = 0, 1, 4, 7
_LARGEST_TURN = 0.25  # rad: larger rotations are made in parts

_jit = njit(counts_references=True, error_model="numpy", nogil=True)  # for the structure of a step
_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself


class FreeArrays(NamedTuple):
    """Arrays of all free bodies.

    Attributes:
        fixed, state: see the columns above.
        axes: principal axes in the body's frame, (bodies, 3, 3).
        loads: rows of `Load.row`.
        gravity: m/s².
        wrench: force and torque of the load about the centre of mass, world axes.
        touched: whether a body has rows in this step.
        still: zero velocities.
        work: scratch, (5, 4).
        poses: world, (bodies, 4, 4).
    """

    fixed: Any
    axes: Any
    state: Any
    loads: Any
    gravity: Any
    wrench: Any
    touched: Any
    still: Any
    work: Any
    poses: Any


@_jit
def _angular_velocity(fixed, rotation, x, y, z):
    """Angular velocity of an angular momentum; `rotation` holds the principal axes in the world."""
    a = (rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z) / fixed[MOMENT]
    b = (rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z) / fixed[MOMENT + 1]
    c = (rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z) / fixed[MOMENT + 2]
    return (
        rotation[0, 0] * a + rotation[0, 1] * b + rotation[0, 2] * c,
        rotation[1, 0] * a + rotation[1, 1] * b + rotation[1, 2] * c,
        rotation[2, 0] * a + rotation[2, 1] * b + rotation[2, 2] * c,
    )


@_jit
def velocities(fixed, state, work, u):
    """Velocity of the centre of mass and angular velocity of every body."""
    rotation = work[:3]
    for b in range(state.shape[0]):
        se3.quat_to_matrix(state[b, QUATERNION:MOMENTUM], rotation)
        for i in range(3):
            u[6 * b + i] = state[b, MOMENTUM + i] / fixed[b, MASS]
        x, y, z = _angular_velocity(
            fixed[b], rotation, state[b, ANGULAR], state[b, ANGULAR + 1], state[b, ANGULAR + 2]
        )
        u[6 * b + 3], u[6 * b + 4], u[6 * b + 5] = x, y, z


@_jit
def fly(free, h):
    """Take a step without contacts; returns the first body that is not finite, or -1."""
    _accelerate(free, h)
    for b in range(free.touched.shape[0]):
        free.touched[b] = False
    return _integrate(free, free.still, h)


@_jit
def begin(step):
    """First half of a step with contacts: rows, velocities before the step and, without contacts, after it."""
    free = step.free
    velocities(free.fixed, free.state, free.work, step.velocities.before)
    _accelerate(free, step.settings.timestep)
    velocities(free.fixed, free.state, free.work, step.velocities.u)
    _contact_rows(step)


@_jit
def finish(step):
    """Second half: momenta by the impulses of all blocks, then positions; returns the first non-finite body, or -1."""
    _apply_impulses(step)
    _restore_angular_momentum(step)
    return _integrate(step.free, step.velocities.w, step.settings.timestep)


@_jit
def _accelerate(free, h):
    """Momenta after a step of gravity and loads."""
    fixed, state, loads, wrench, gravity = free.fixed, free.state, free.loads, free.wrench, free.gravity
    for b in range(state.shape[0]):
        for i in range(6):
            wrench[b, i] = 0.0
        if loads[b, ACTS] != 0.0:
            _wrench_about_centre(loads[b], fixed[b], free.poses[b], wrench[b])
        for i in range(3):
            state[b, MOMENTUM + i] += h * (wrench[b, i] + fixed[b, MASS] * gravity[i])
            state[b, ANGULAR + i] += h * wrench[b, 3 + i]


@_inline
def _wrench_about_centre(load, fixed, pose, out):
    """Force and torque of a load about the centre of mass, world axes."""
    out[0], out[1], out[2], out[3], out[4], out[5] = wrench_in_world(load, pose)
    cx, cy, cz = fixed[CENTRE], fixed[CENTRE + 1], fixed[CENTRE + 2]
    x = pose[0, 0] * cx + pose[0, 1] * cy + pose[0, 2] * cz
    y = pose[1, 0] * cx + pose[1, 1] * cy + pose[1, 2] * cz
    z = pose[2, 0] * cx + pose[2, 1] * cy + pose[2, 2] * cz
    out[3] -= y * out[2] - z * out[1]
    out[4] -= z * out[0] - x * out[2]
    out[5] -= x * out[1] - y * out[0]


@_inline
def _contact_rows(step):
    """J and Y of all sides that are free bodies."""
    rows, free = step.rows, step.free
    kind, body, point, axes = rows.kind, rows.body, rows.point, rows.axes
    side, J, Y = rows.side, rows.J, rows.Y
    fixed, state, rotation = free.fixed, free.state, free.work[:3]
    for b in range(step.report.counts[ROWS]):
        for s in range(2):
            k = body[b, s]
            if not 0 <= k < state.shape[0]:
                continue
            at, sign = side[b, s, START], -1.0 if s == 0 else 1.0
            se3.quat_to_matrix(state[k, QUATERNION:MOMENTUM], rotation)
            rx, ry, rz = (
                point[b, 0] - state[k, POSITION],
                point[b, 1] - state[k, POSITION + 1],
                point[b, 2] - state[k, POSITION + 2],
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
                m = 1.0 / fixed[k, MASS]
                Y[o], Y[o + 1], Y[o + 2] = m * x, m * y, m * z
                Y[o + 3], Y[o + 4], Y[o + 5] = _angular_velocity(fixed[k], rotation, p, q, r)


@_inline
def _apply_impulses(step):
    """Add the impulses of all blocks to momenta, and mark the bodies they act on as touched."""
    rows, state, touched = step.rows, step.free.state, step.free.touched
    body, side, J, impulse = rows.body, rows.side, rows.J, rows.impulse
    for k in range(state.shape[0]):
        touched[k] = False
    for b in range(step.report.counts[ROWS]):
        for s in range(2):
            k = body[b, s]
            if 0 <= k < state.shape[0]:
                touched[k] = True
                for i in range(3):
                    at = side[b, s, START] + 6 * i
                    for j in range(6):
                        state[k, MOMENTUM + j] += impulse[b, i] * J[at + j]


@_inline
def _restore_angular_momentum(step):
    """Conserve angular momentum while penetration is corrected by shifts along the normals of contacts.

    Shifts of two bodies along their normal change their angular momentum about any point if they slide past each other.
    The change is given back as spin to the body whose kinetic energy it raises the least.
    """
    rows, free, h = step.rows, step.free, step.settings.timestep
    body, axes, correction = rows.body, rows.axes, rows.correction
    fixed, state, rotation = free.fixed, free.state, free.work[:3]
    last = state.shape[0]
    for b in range(step.report.counts[ROWS]):
        i, j, p = body[b, 0], body[b, 1], h * correction[b, IMPULSE]
        if p == 0.0 or not (0 <= i < last and 0 <= j < last):
            continue
        vx = state[i, MOMENTUM] / fixed[i, MASS] - state[j, MOMENTUM] / fixed[j, MASS]
        vy = state[i, MOMENTUM + 1] / fixed[i, MASS] - state[j, MOMENTUM + 1] / fixed[j, MASS]
        vz = state[i, MOMENTUM + 2] / fixed[i, MASS] - state[j, MOMENTUM + 2] / fixed[j, MASS]
        nx, ny, nz = p * axes[b, NORMAL, 0], p * axes[b, NORMAL, 1], p * axes[b, NORMAL, 2]
        x, y, z = ny * vz - nz * vy, nz * vx - nx * vz, nx * vy - ny * vx
        least, taker = math.inf, i
        for k in (i, j):
            se3.quat_to_matrix(state[k, QUATERNION:MOMENTUM], rotation)
            lx, ly, lz = state[k, ANGULAR], state[k, ANGULAR + 1], state[k, ANGULAR + 2]
            # change of energy: angular velocity halfway through the change, times the change
            wx, wy, wz = _angular_velocity(fixed[k], rotation, lx + 0.5 * x, ly + 0.5 * y, lz + 0.5 * z)
            gain = wx * x + wy * y + wz * z
            if gain < least:
                least, taker = gain, k
        state[taker, ANGULAR] += x
        state[taker, ANGULAR + 1] += y
        state[taker, ANGULAR + 2] += z


@_jit
def _integrate(free, w, h):
    """Positions after the step by the momenta at its end; returns the first body that is not finite, or -1.

    A body without contacts follows its parabola. One with contacts moves by its velocity at the end of the step, as the
    contact solver assumes, and by `w`, which ends penetration and is no part of its momentum.
    """
    fixed, state, wrench, gravity = free.fixed, free.state, free.wrench, free.gravity
    touched, work = free.touched, free.work
    for b in range(state.shape[0]):
        m, quaternion = fixed[b, MASS], state[b, QUATERNION:MOMENTUM]
        for i in range(3):
            v = state[b, MOMENTUM + i] / m
            v += w[6 * b + i] if touched[b] else -0.5 * h * (wrench[b, i] / m + gravity[i])
            state[b, POSITION + i] += h * v
        if touched[b]:
            _rotate(quaternion, h * w[6 * b + 3], h * w[6 * b + 4], h * w[6 * b + 5], work)
        _spin(fixed[b], quaternion, state[b, ANGULAR], state[b, ANGULAR + 1], state[b, ANGULAR + 2], h, work)
        total = 0.0
        for i in range(STATE):
            total += abs(state[b, i])
        if not math.isfinite(total):
            return b
    place(fixed, free.axes, state, work, free.poses)
    return -1


@_jit
def _rotate(quaternion, x, y, z, work):
    """Rotate by a rotation vector in world axes."""
    vector, half = work[3, :3], work[4, :4]
    vector[0], vector[1], vector[2] = x, y, z
    se3.quat_exp(vector, half)
    se3.quat_multiply(half, quaternion, quaternion)
    se3.quat_normalize(quaternion)


@_jit
def _spin(fixed, quaternion, x, y, z, h, work):
    """Rotate for a time h with constant angular momentum (x, y, z); its size and the kinetic energy are conserved.

    With P the momentum in principal axes and W = I^-1 (P + P') / 2, `P' = P - h W' x (P + P') / 2` keeps |P| and
    P I^-1 P for any W' along W; W' = tan(x) / x W, x half the angle, makes it the rotation by h W.
    """
    rotation = work[:3]
    se3.quat_to_matrix(quaternion, rotation)
    a, b, c = _angular_velocity(fixed, rotation, x, y, z)
    parts = int(min(math.ceil(h * math.sqrt(a * a + b * b + c * c) / _LARGEST_TURN), 1000.0))
    if parts < 1:
        return
    t = h / parts
    for _ in range(parts):
        se3.quat_to_matrix(quaternion, rotation)
        p = rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z
        q = rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z
        r = rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z
        p1, q1, r1 = p, q, r
        a = b = c = 0.0
        for _ in range(40):
            mp, mq, mr = 0.5 * (p + p1), 0.5 * (q + q1), 0.5 * (r + r1)
            a, b, c = mp / fixed[MOMENT], mq / fixed[MOMENT + 1], mr / fixed[MOMENT + 2]
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
    """World poses of bodies, (bodies, 4, 4)."""
    rotation = work[:3]
    for b in range(state.shape[0]):
        se3.quat_to_matrix(state[b, QUATERNION:MOMENTUM], rotation)
        for i in range(3):
            for j in range(3):
                poses[b, i, j] = (
                    rotation[i, 0] * axes[b, j, 0]
                    + rotation[i, 1] * axes[b, j, 1]
                    + rotation[i, 2] * axes[b, j, 2]
                )
        cx, cy, cz = fixed[b, CENTRE], fixed[b, CENTRE + 1], fixed[b, CENTRE + 2]
        for i in range(3):
            x = poses[b, i, 0] * cx + poses[b, i, 1] * cy + poses[b, i, 2] * cz
            poses[b, i, 3] = state[b, POSITION + i] - x
