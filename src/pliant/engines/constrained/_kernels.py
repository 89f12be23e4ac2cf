"""Kernels of the joint-coordinate midpoint step: links in motion, bodies, springs.

Everything is in world axes about the joint's own point, so that going from a link to its parent is a mere shift.
`work` holds one row per link; its columns are named below. `links` holds PARENT, KIND, DOF, COORDINATE,
SPRUNG (a ball with springs) and TURNING (the nearest link on the way to the root, itself included, that turns);
`constants`, `dofs` see `packing.py`.
"""

import math

from numba import njit

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

_jit = njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract"})


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
            a00, a10, a20 = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a00, a10, a20)
            a01, a11, a21 = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a01, a11, a21)
            a02, a12, a22 = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a02, a12, a22)
            sx, sy, sz = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, sx, sy, sz)
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
            w, x, y, z = _turned(q[c], q[c + 1], q[c + 2], q[c + 3], t * ux, t * uy, t * uz)
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
def _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z):
    return r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z


@_jit
def _times(x, y, z, b00, b01, b02, b10, b11, b12, b20, b21, b22):
    return x * b00 + y * b10 + z * b20, x * b01 + y * b11 + z * b21, x * b02 + y * b12 + z * b22


@_jit
def _turned(qw, qx, qy, qz, x, y, z):
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
            w, x, y, z = _turned(q[c], q[c + 1], q[c + 2], q[c + 3], t * u[d], t * u[d + 1], t * u[d + 2])
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
        cx, cy, cz = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, bx, by, bz)
        xx, xy, xz, yy, yz, zz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(3):
            bx, by, bz, i = (
                constants[k, 16 + j],
                constants[k, 19 + j],
                constants[k, 22 + j],
                constants[k, 25 + j],
            )
            x, y, z = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, bx, by, bz)
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
def kinetic(constants, momentum):
    """Kinetic energy of the bodies."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, 12]
        if m > 0.0:
            total += (momentum[k, 0] ** 2 + momentum[k, 1] ** 2 + momentum[k, 2] ** 2) / m
        for j in range(3):
            i = constants[k, 25 + j]
            if i > 0.0:
                along = (
                    constants[k, 16 + j] * momentum[k, 3]
                    + constants[k, 19 + j] * momentum[k, 4]
                    + constants[k, 22 + j] * momentum[k, 5]
                )
                total += along * along / i
    return 0.5 * total


@_jit
def gained(constants, momentum, at_middle, work):
    """Half the kinetic energy a reflection has brought: `u_m . (p_after - p_m)`, u_m the midpoint's velocities."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, 12]
        x, y, z = momentum[k, 3], momentum[k, 4], momentum[k, 5]
        for i in range(3):
            after = work[k, 3 * i] * x + work[k, 3 * i + 1] * y + work[k, 3 * i + 2] * z
            total += work[k, 24 + i] * (after - at_middle[k, 3 + i])
            if m > 0.0:
                total += at_middle[k, i] * (momentum[k, i] - at_middle[k, i]) / m
    return total


@_jit
def potential(constants, gravity, work):
    """Potential energy of the bodies in gravity, where `forward` put them."""
    total = 0.0
    for k in range(constants.shape[0]):
        m, x, y, z = constants[k, 12], constants[k, 13], constants[k, 14], constants[k, 15]
        for i in range(3):
            at = work[k, 9 + i] + work[k, 3 * i] * x + work[k, 3 * i + 1] * y + work[k, 3 * i + 2] * z
            total -= m * gravity[i] * at
    return total


@_jit
def work_done(constants, gravity, impulse, at_middle, t, work):
    """Work of wrenches during `t`, from the impulses of that time."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, 12]
        for i in range(3):
            total += impulse[k, 3 + i] * work[k, 24 + i]
            if m > 0.0:
                total += (impulse[k, i] - t * m * gravity[i]) * at_middle[k, i] / m
    return total


@_jit
def stored(links, dofs, rest, q, u, t):
    """Energy of springs and motors at `q + t u`, and what dampers take on the way there."""
    total = 0.0
    for k in range(links.shape[0]):
        kind, d, c = links[k, 1], links[k, 2], links[k, 3]
        if kind == LINK_BALL:
            if links[k, 4]:
                w, x, y, z = _turned(q[c], q[c + 1], q[c + 2], q[c + 3], t * u[d], t * u[d + 1], t * u[d + 2])
                x, y, z = _from_rest(rest, c, w, x, y, z)
                total += 0.5 * (dofs[d, STIFFNESS] * x * x + dofs[d + 1, STIFFNESS] * y * y)
                total += 0.5 * dofs[d + 2, STIFFNESS] * z * z
                for i in range(d, d + 3):
                    total += t * u[i] * (dofs[i, DAMPING] * u[i] - dofs[i, PULL])
        elif kind != LINK_FIXED:
            x = q[c] + t * u[d]
            total += 0.5 * dofs[d, STIFFNESS] * x * x - dofs[d, PULL] * x + t * dofs[d, DAMPING] * u[d] * u[d]
    return total


@_jit
def _from_rest(rest, c, w, x, y, z):
    """Rotation vector of a quaternion from a ball's rest."""
    rw, rx, ry, rz = rest[c], -rest[c + 1], -rest[c + 2], -rest[c + 3]
    return _log(
        rw * w - rx * x - ry * y - rz * z,
        rw * x + rx * w + ry * z - rz * y,
        rw * y - rx * z + ry * w + rz * x,
        rw * z + rx * y - ry * x + rz * w,
    )


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
        x, y, z = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z)
        gx, gy, gz = loads[row, 10], loads[row, 11], loads[row, 12]
        gx, gy, gz = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, gx, gy, gz)
        tx, ty, tz = loads[row, 13], loads[row, 14], loads[row, 15]
        tx, ty, tz = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, tx, ty, tz)
        out[k, 0] += t * (fx + gx)
        out[k, 1] += t * (fy + gy)
        out[k, 2] += t * (fz + gz)
        out[k, 3] += t * (loads[row, 4] + y * fz - z * fy + tx)
        out[k, 4] += t * (loads[row, 5] + z * fx - x * fz + ty)
        out[k, 5] += t * (loads[row, 6] + x * fy - y * fx + tz)


@_jit
def coefficients(dofs, h, damped):
    """What springs and dampers need for steps of length h; `damped`: for backward Euler steps of half that length.

    A spring acts at `q + AHEAD u - BEHIND v` (u the midpoint velocity, v that before the step). With AHEAD = h/2 and
    BEHIND = 0 it conserves energy, but rings for ever where the step is much too long to follow it; with 2h and h/2
    such a spring is still after two steps. Half way between is where a spring turns its own joint's felt inertia by 32
    radians a step: less stiff ones may well move heavy things slowly, and must not damp them. A stop is as stiff as
    that always: at `q + REACH u - LAG v`. Dampers act at a velocity between u and the end of the step: where, makes a
    lone damped inertia decay by exactly exp(-h d / m).
    """
    for d in range(dofs.shape[0]):
        k, damping, felt = dofs[d, STIFFNESS], dofs[d, DAMPING], dofs[d, FELT]
        z = h * h * k / felt if felt > 0.0 else 0.0
        stiff = 1.0 if z > 1e8 else z * z / (1e6 + z * z)
        z = h * damping / felt if felt > 0.0 else 0.0
        if z < 1e-3:
            late = 0.5 + z / 12.0
        elif z > 30.0:
            late = 1.0 - 1.0 / z
        else:
            late = 1.0 / (1.0 - math.exp(-z)) - 1.0 / z
        reach, lag = 2.0 * h, 0.5 * h
        if damped:
            stiff, late, reach, lag = 0.0, 0.5, 0.5 * h, 0.0
        dofs[d, AHEAD] = h * (0.5 + 1.5 * stiff)
        dofs[d, BEHIND] = h * 0.5 * stiff
        dofs[d, HALF] = 0.5 * h * k
        dofs[d, DRAG] = h * damping * late
        dofs[d, DRAGGED] = 0.5 * h * damping * (1.0 - 2.0 * late)
        dofs[d, GIVEN] = dofs[d, HALF] * dofs[d, AHEAD] + dofs[d, DRAG] + dofs[d, ARMATURE]
        dofs[d, STOP] = 5e3 * felt / h
        dofs[d, REACH], dofs[d, LAG] = reach, lag


@_jit
def hold(dofs, h, out):
    """Let rotors hold joints at their velocities where springs and dampers are too stiff for steps of length h."""
    for d in range(dofs.shape[0]):
        rigid = 2.0 * dofs[d, BEHIND] / h
        if dofs[d, DAMPING] > 0.0:
            rigid = max(rigid, (2.0 * dofs[d, DRAG] / (h * dofs[d, DAMPING]) - 1.0) ** 4)
        out[d, ARMATURE] = out[d, GIVEN] = dofs[d, ARMATURE] + 1e6 * rigid * dofs[d, FELT]


@_jit
def springs(first, last, links, dofs, rest, q, u, v, h, work):
    """Residual and stiffness of everything that acts in joints: springs, dampers, rotors, motors, stops.

    As half impulses, like the residual of bodies. For balls in world axes. Returns how many joints run into a stop,
    and how many are at one or near it.
    """
    hits, held = 0, 0
    for k in range(first, last):
        kind, d, c = links[k, 1], links[k, 2], links[k, 3]
        if kind == LINK_BALL:
            if links[k, 4]:
                hit, at = _ball_springs(dofs, rest, q, u, v, h, d, c, k, work)
                hits, held = hits + hit, held + at
        elif kind != LINK_FIXED:
            x = q[c] + dofs[d, AHEAD] * u[d] - dofs[d, BEHIND] * v[d]
            force = (
                dofs[d, HALF] * x - 0.5 * h * dofs[d, PULL] + dofs[d, DRAG] * u[d] + dofs[d, DRAGGED] * v[d]
            )
            force += dofs[d, ARMATURE] * (u[d] - v[d])
            given = dofs[d, GIVEN]
            x = q[c] + dofs[d, REACH] * u[d] - dofs[d, LAG] * v[d]
            beyond = max(x - dofs[d, UPPER], 0.0) + min(x - dofs[d, LOWER], 0.0)
            if beyond != 0.0:
                force += dofs[d, STOP] * beyond
                given += dofs[d, STOP] * dofs[d, REACH]
                hits += v[d] * beyond > 0.0 and abs(v[d]) * h * dofs[d, UNIT] > HIT
            near = NEAR / dofs[d, UNIT]
            held += x > dofs[d, UPPER] - near or x < dofs[d, LOWER] + near
            work[k, 81], work[k, 75] = force, given
    return hits, held


@_jit
def _ball_springs(dofs, rest, q, u, v, h, d, c, k, work):
    ax = dofs[d, AHEAD] * u[d] - dofs[d, BEHIND] * v[d]
    ay = dofs[d + 1, AHEAD] * u[d + 1] - dofs[d + 1, BEHIND] * v[d + 1]
    az = dofs[d + 2, AHEAD] * u[d + 2] - dofs[d + 2, BEHIND] * v[d + 2]
    w, x, y, z = _turned(q[c], q[c + 1], q[c + 2], q[c + 3], ax, ay, az)
    sx, sy, sz = _from_rest(rest, c, w, x, y, z)
    # torque J^-T K s = K s + s x K s / 2 + ..., J the right Jacobian of the rotation vector s
    yx, yy, yz = dofs[d, HALF] * sx, dofs[d + 1, HALF] * sy, dofs[d + 2, HALF] * sz
    square = sx * sx + sy * sy + sz * sz
    curve = 1.0 / 12.0 + square / 720.0
    if square > 1e-4:
        angle = math.sqrt(square)
        curve = (1.0 - 0.5 * angle * math.sin(angle) / max(1.0 - math.cos(angle), 1e-12)) / square
    nx, ny, nz = sy * yz - sz * yy, sz * yx - sx * yz, sx * yy - sy * yx
    tx = yx - 0.5 * nx + curve * (sy * nz - sz * ny)
    ty = yy - 0.5 * ny + curve * (sz * nx - sx * nz)
    tz = yz - 0.5 * nz + curve * (sx * ny - sy * nx)
    tx += dofs[d, DRAG] * u[d] + dofs[d, DRAGGED] * v[d] + dofs[d, ARMATURE] * (u[d] - v[d])
    ty += (
        dofs[d + 1, DRAG] * u[d + 1]
        + dofs[d + 1, DRAGGED] * v[d + 1]
        + dofs[d + 1, ARMATURE] * (u[d + 1] - v[d + 1])
    )
    tz += (
        dofs[d + 2, DRAG] * u[d + 2]
        + dofs[d + 2, DRAGGED] * v[d + 2]
        + dofs[d + 2, ARMATURE] * (u[d + 2] - v[d + 2])
    )
    tx -= 0.5 * h * dofs[d, PULL]
    ty -= 0.5 * h * dofs[d + 1, PULL]
    tz -= 0.5 * h * dofs[d + 2, PULL]
    gx, gy, gz = dofs[d, GIVEN], dofs[d + 1, GIVEN], dofs[d + 2, GIVEN]
    stop, hit, held, nx, ny, nz = 0.0, 0, 0, 0.0, 0.0, 0.0
    if dofs[d, UPPER] < math.pi:
        # the limit of a ball is on the angle of its rotation
        reach, lag = dofs[d, REACH], dofs[d, LAG]
        ax, ay, az = (
            reach * u[d] - lag * v[d],
            reach * u[d + 1] - lag * v[d + 1],
            reach * u[d + 2] - lag * v[d + 2],
        )
        w, x, y, z = _turned(q[c], q[c + 1], q[c + 2], q[c + 3], ax, ay, az)
        nx, ny, nz = _log(w, x, y, z)
        angle = math.sqrt(nx * nx + ny * ny + nz * nz)
        held = int(angle > dofs[d, UPPER] - NEAR)
        if angle > dofs[d, UPPER]:
            nx, ny, nz = nx / angle, ny / angle, nz / angle
            push = dofs[d, STOP] * (angle - dofs[d, UPPER])
            stop = dofs[d, STOP] * reach
            tx, ty, tz = tx + push * nx, ty + push * ny, tz + push * nz
            hit = int(h * (v[d] * nx + v[d + 1] * ny + v[d + 2] * nz) > HIT)
    r00, r01, r02 = work[k, 0], work[k, 1], work[k, 2]
    r10, r11, r12 = work[k, 3], work[k, 4], work[k, 5]
    r20, r21, r22 = work[k, 6], work[k, 7], work[k, 8]
    work[k, 81] = r00 * tx + r01 * ty + r02 * tz
    work[k, 82] = r10 * tx + r11 * ty + r12 * tz
    work[k, 83] = r20 * tx + r21 * ty + r22 * tz
    nx, ny, nz = _rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, nx, ny, nz)
    work[k, 75] = gx * r00 * r00 + gy * r01 * r01 + gz * r02 * r02 + stop * nx * nx
    work[k, 76] = gx * r00 * r10 + gy * r01 * r11 + gz * r02 * r12 + stop * nx * ny
    work[k, 77] = gx * r00 * r20 + gy * r01 * r21 + gz * r02 * r22 + stop * nx * nz
    work[k, 78] = gx * r10 * r10 + gy * r11 * r11 + gz * r12 * r12 + stop * ny * ny
    work[k, 79] = gx * r10 * r20 + gy * r11 * r21 + gz * r12 * r22 + stop * ny * nz
    work[k, 80] = gx * r20 * r20 + gy * r21 * r21 + gz * r22 * r22 + stop * nz * nz
    return hit, held


@_jit
def _log(w, x, y, z):
    """Rotation vector of a unit quaternion."""
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    n = math.sqrt(x * x + y * y + z * z)
    s = 2.0 if n < 1e-12 else 2.0 * math.atan2(n, w) / n
    return s * x, s * y, s * z
