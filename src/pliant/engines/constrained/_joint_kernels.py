"""What acts in joints: springs, dampers, rotors, motors and stops; and how a step takes them."""

import math

from pliant.compilation import njit
from pliant.engines.constrained._kernels import (
    AHEAD,
    ARMATURE,
    BEHIND,
    DAMPING,
    DRAG,
    DRAGGED,
    FELT,
    GIVEN,
    HALF,
    HIT,
    LAG,
    LOWER,
    NEAR,
    PULL,
    REACH,
    STIFFNESS,
    STOP,
    UNIT,
    UPPER,
    rotate,
    turned,
)
from pliant.mechanism.links import LINK_BALL, LINK_FIXED

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def stored(links, dofs, rest, q, u, t):
    """Energy of springs and motors at `q + t u`, and what dampers take on the way there."""
    total = 0.0
    for k in range(links.shape[0]):
        kind, d, c = links[k, 1], links[k, 2], links[k, 3]
        if kind == LINK_BALL:
            if links[k, 4]:
                w, x, y, z = turned(q[c], q[c + 1], q[c + 2], q[c + 3], t * u[d], t * u[d + 1], t * u[d + 2])
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
    w, x, y, z = turned(q[c], q[c + 1], q[c + 2], q[c + 3], ax, ay, az)
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
        w, x, y, z = turned(q[c], q[c + 1], q[c + 2], q[c + 3], ax, ay, az)
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
    nx, ny, nz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, nx, ny, nz)
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
