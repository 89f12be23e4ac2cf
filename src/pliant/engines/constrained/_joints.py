"""Springs, dampers, rotors, motors and stops of joints: residual and derivative over a step, energy."""

import math

from pliant.compilation import njit
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._links import matrix, put_vector, rotate
from pliant.mechanism.kernels import rotation_from_rest
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial.kernels import inverse_transpose_product, log_vector, quat_turn

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

HIT = 1e-4  # rad or radii per step: a faster joint hits its stop (an impact), a slower one rests on it
NEAR = 1e-3  # rad or radii: distance from a stop within which a joint counts as held


@_jit
def joint_energy(links, dofs, rest, q, u, t):
    """Energy of springs and motors at `q + t u`, and work against dampers on the way there, J."""
    total = 0.0
    for k in range(links.shape[0]):
        kind, d, c = links[k, col.KIND], links[k, col.DOF], links[k, col.COORDINATE]
        if kind == LINK_BALL:
            if links[k, col.SPRUNG]:
                x, y, z = t * u[d], t * u[d + 1], t * u[d + 2]
                w, x, y, z = quat_turn(q[c], q[c + 1], q[c + 2], q[c + 3], x, y, z)
                x, y, z = rotation_from_rest(rest, c, w, x, y, z)
                total += 0.5 * (dofs[d, col.STIFFNESS] * x * x + dofs[d + 1, col.STIFFNESS] * y * y)
                total += 0.5 * dofs[d + 2, col.STIFFNESS] * z * z
                for i in range(d, d + 3):
                    total += t * u[i] * (dofs[i, col.DAMPING] * u[i] - dofs[i, col.PULL])
        elif kind != LINK_FIXED:
            x = q[c] + t * u[d]
            total += (
                0.5 * dofs[d, col.STIFFNESS] * x * x
                - dofs[d, col.PULL] * x
                + t * dofs[d, col.DAMPING] * u[d] * u[d]
            )
    return total


@_jit
def coefficients(dofs, h, damped):
    """Coefficients of springs and dampers for steps of length h; `damped`: for backward Euler over half of it.

    A spring acts at `q + AHEAD u - BEHIND v` (u the midpoint velocity, v that before the step). With AHEAD = h/2 and
    BEHIND = 0 it conserves energy, but oscillates undamped where the step is much longer than its period; with 2h
    and h/2 it comes to rest within two steps. The switch is gradual, half way where the spring turns the effective
    inertia of its own joint by 32 radians a step: softer springs may move heavy bodies slowly, and must not damp them.
    A stop is always as stiff as that: at `q + REACH u - LAG v`. Dampers act at a velocity between u and that at the end
    of the step, such that a lone damped inertia decays by exactly exp(-h d / m).
    """
    for d in range(dofs.shape[0]):
        k, damping, inertia = dofs[d, col.STIFFNESS], dofs[d, col.DAMPING], dofs[d, col.INERTIA]
        z = h * h * k / inertia if inertia > 0.0 else 0.0
        stiff = 1.0 if z > 1e8 else z * z / (1e6 + z * z)
        z = h * damping / inertia if inertia > 0.0 else 0.0
        if z < 1e-3:
            late = 0.5 + z / 12.0
        elif z > 30.0:
            late = 1.0 - 1.0 / z
        else:
            late = 1.0 / (1.0 - math.exp(-z)) - 1.0 / z
        reach, lag = 2.0 * h, 0.5 * h
        if damped:
            stiff, late, reach, lag = 0.0, 0.5, 0.5 * h, 0.0
        dofs[d, col.AHEAD] = h * (0.5 + 1.5 * stiff)
        dofs[d, col.BEHIND] = h * 0.5 * stiff
        dofs[d, col.HALF] = 0.5 * h * k
        dofs[d, col.DRAG] = h * damping * late
        dofs[d, col.DRAGGED] = 0.5 * h * damping * (1.0 - 2.0 * late)
        dofs[d, col.GIVEN] = (
            dofs[d, col.HALF] * dofs[d, col.AHEAD] + dofs[d, col.DRAG] + dofs[d, col.ARMATURE]
        )
        dofs[d, col.STOP] = 5e3 * inertia / h
        dofs[d, col.REACH], dofs[d, col.LAG] = reach, lag


@_jit
def lock_stiff_joints(dofs, h, out):
    """Rotor inertia that locks joints whose springs or dampers are too stiff for steps of length h, into `out`."""
    for d in range(dofs.shape[0]):
        rigid = 2.0 * dofs[d, col.BEHIND] / h
        if dofs[d, col.DAMPING] > 0.0:
            rigid = max(rigid, (2.0 * dofs[d, col.DRAG] / (h * dofs[d, col.DAMPING]) - 1.0) ** 4)
        out[d, col.ARMATURE] = out[d, col.GIVEN] = dofs[d, col.ARMATURE] + 1e6 * rigid * dofs[d, col.INERTIA]


@_jit
def springs(first, last, links, dofs, rest, q, u, v, h, work):
    """Residual and derivative of springs, dampers, rotors, motors and stops: W_SPRING_TORQUE and W_SPRING.

    Half impulses, like the residual of bodies; of balls in world axes. Returns the number of joints that run into a
    stop, and of those that are at one or near it.
    """
    hits, held = 0, 0
    for k in range(first, last):
        kind, d, c = links[k, col.KIND], links[k, col.DOF], links[k, col.COORDINATE]
        if kind == LINK_BALL:
            if links[k, col.SPRUNG]:
                hit, at = _ball_springs(dofs, rest, q, u, v, h, d, c, k, work)
                hits, held = hits + hit, held + at
        elif kind != LINK_FIXED:
            x = q[c] + dofs[d, col.AHEAD] * u[d] - dofs[d, col.BEHIND] * v[d]
            force = (
                dofs[d, col.HALF] * x
                - 0.5 * h * dofs[d, col.PULL]
                + dofs[d, col.DRAG] * u[d]
                + dofs[d, col.DRAGGED] * v[d]
            )
            force += dofs[d, col.ARMATURE] * (u[d] - v[d])
            given = dofs[d, col.GIVEN]
            x = q[c] + dofs[d, col.REACH] * u[d] - dofs[d, col.LAG] * v[d]
            beyond = max(x - dofs[d, col.UPPER], 0.0) + min(x - dofs[d, col.LOWER], 0.0)
            if beyond != 0.0:
                force += dofs[d, col.STOP] * beyond
                given += dofs[d, col.STOP] * dofs[d, col.REACH]
                hits += v[d] * beyond > 0.0 and abs(v[d]) * h * dofs[d, col.UNIT] > HIT
            near = NEAR / dofs[d, col.UNIT]
            held += x > dofs[d, col.UPPER] - near or x < dofs[d, col.LOWER] + near
            work[k, col.W_SPRING_TORQUE], work[k, col.W_SPRING] = force, given
    return hits, held


@_jit
def _ball_springs(dofs, rest, q, u, v, h, d, c, k, work):
    """`springs` of a ball joint; returns whether it runs into its stop, and whether it is at it or near it."""
    ax = dofs[d, col.AHEAD] * u[d] - dofs[d, col.BEHIND] * v[d]
    ay = dofs[d + 1, col.AHEAD] * u[d + 1] - dofs[d + 1, col.BEHIND] * v[d + 1]
    az = dofs[d + 2, col.AHEAD] * u[d + 2] - dofs[d + 2, col.BEHIND] * v[d + 2]
    w, x, y, z = quat_turn(q[c], q[c + 1], q[c + 2], q[c + 3], ax, ay, az)
    sx, sy, sz = rotation_from_rest(rest, c, w, x, y, z)
    # torque J⁻ᵀ K s, J the right Jacobian of the rotation vector s
    yx, yy, yz = dofs[d, col.HALF] * sx, dofs[d + 1, col.HALF] * sy, dofs[d + 2, col.HALF] * sz
    tx, ty, tz = inverse_transpose_product(sx, sy, sz, yx, yy, yz)
    tx += dofs[d, col.DRAG] * u[d] + dofs[d, col.DRAGGED] * v[d] + dofs[d, col.ARMATURE] * (u[d] - v[d])
    ty += (
        dofs[d + 1, col.DRAG] * u[d + 1]
        + dofs[d + 1, col.DRAGGED] * v[d + 1]
        + dofs[d + 1, col.ARMATURE] * (u[d + 1] - v[d + 1])
    )
    tz += (
        dofs[d + 2, col.DRAG] * u[d + 2]
        + dofs[d + 2, col.DRAGGED] * v[d + 2]
        + dofs[d + 2, col.ARMATURE] * (u[d + 2] - v[d + 2])
    )
    tx -= 0.5 * h * dofs[d, col.PULL]
    ty -= 0.5 * h * dofs[d + 1, col.PULL]
    tz -= 0.5 * h * dofs[d + 2, col.PULL]
    gx, gy, gz = dofs[d, col.GIVEN], dofs[d + 1, col.GIVEN], dofs[d + 2, col.GIVEN]
    stop, hit, held, nx, ny, nz = 0.0, 0, 0, 0.0, 0.0, 0.0
    if dofs[d, col.UPPER] < math.pi:
        # the limit of a ball is on the angle of its rotation
        reach, lag = dofs[d, col.REACH], dofs[d, col.LAG]
        ax, ay, az = (
            reach * u[d] - lag * v[d],
            reach * u[d + 1] - lag * v[d + 1],
            reach * u[d + 2] - lag * v[d + 2],
        )
        w, x, y, z = quat_turn(q[c], q[c + 1], q[c + 2], q[c + 3], ax, ay, az)
        nx, ny, nz = log_vector(w, x, y, z)
        angle = math.sqrt(nx * nx + ny * ny + nz * nz)
        held = int(angle > dofs[d, col.UPPER] - NEAR)
        if angle > dofs[d, col.UPPER]:
            nx, ny, nz = nx / angle, ny / angle, nz / angle
            push = dofs[d, col.STOP] * (angle - dofs[d, col.UPPER])
            stop = dofs[d, col.STOP] * reach
            tx, ty, tz = tx + push * nx, ty + push * ny, tz + push * nz
            hit = int(h * (v[d] * nx + v[d + 1] * ny + v[d + 2] * nz) > HIT)
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, k, col.W_ROTATION)
    tx, ty, tz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, tx, ty, tz)
    put_vector(work, k, col.W_SPRING_TORQUE, tx, ty, tz)
    nx, ny, nz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, nx, ny, nz)
    xx = gx * r00 * r00 + gy * r01 * r01 + gz * r02 * r02 + stop * nx * nx
    xy = gx * r00 * r10 + gy * r01 * r11 + gz * r02 * r12 + stop * nx * ny
    xz = gx * r00 * r20 + gy * r01 * r21 + gz * r02 * r22 + stop * nx * nz
    yy = gx * r10 * r10 + gy * r11 * r11 + gz * r12 * r12 + stop * ny * ny
    yz = gx * r10 * r20 + gy * r11 * r21 + gz * r12 * r22 + stop * ny * nz
    zz = gx * r20 * r20 + gy * r21 * r21 + gz * r22 * r22 + stop * nz * nz
    put_vector(work, k, col.W_SPRING, xx, xy, xz)
    put_vector(work, k, col.W_SPRING + 3, yy, yz, zz)
    return hit, held
