"""Kernels of links: fields of work arrays, forward kinematics, momenta, impulses, energies, reactions of joints.

Everything is in world axes about the origin of the link's joint frame, so that twists and
wrenches go from a link to its parent by a shift alone. Arrays and columns: `arrays`.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import arrays as col
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE, LINK_SLIDE
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import wrench_in_world

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
# inlined by numba: access by name costs nothing, and results do not depend on LLVM's choice of calls to inline
_inline = njit(inline="always", error_model="numpy", nogil=True, fastmath={"contract"})

CHUNK = 32  # links per pass through all stages: their rows stay in the first-level cache

# --- fields


@_inline
def vector(a, k, at):
    """Three numbers of row k from column `at` on."""
    return a[k, at], a[k, at + 1], a[k, at + 2]


@_inline
def symmetric(a, k, at):
    """Symmetric 3 x 3 block of row k: xx, xy, xz, yy, yz, zz."""
    return a[k, at], a[k, at + 1], a[k, at + 2], a[k, at + 3], a[k, at + 4], a[k, at + 5]


@_inline
def matrix(a, k, at):
    """3 x 3 block of row k, by rows."""
    return (
        a[k, at], a[k, at + 1], a[k, at + 2], a[k, at + 3], a[k, at + 4], a[k, at + 5],
        a[k, at + 6], a[k, at + 7], a[k, at + 8],
    )  # fmt: skip


@_inline
def axis(work, k, i):
    """Axis i of a link's joint frame, world axes; of a hinge or slide axis 2 is that of the joint."""
    return work[k, col.W_ROTATION + i], work[k, col.W_ROTATION + 3 + i], work[k, col.W_ROTATION + 6 + i]


@_inline
def between(work, a, b):
    """Vector from the origin of link b to that of link a."""
    return (
        work[a, col.W_POSITION] - work[b, col.W_POSITION],
        work[a, col.W_POSITION + 1] - work[b, col.W_POSITION + 1],
        work[a, col.W_POSITION + 2] - work[b, col.W_POSITION + 2],
    )


@_inline
def put_vector(a, k, at, x, y, z):
    """Set three numbers of row k from column `at` on."""
    a[k, at], a[k, at + 1], a[k, at + 2] = x, y, z


@_inline
def add_vector(a, k, at, x, y, z):
    """Add to three numbers of row k from column `at` on."""
    a[k, at] += x
    a[k, at + 1] += y
    a[k, at + 2] += z


@_jit
def rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z):
    """Product of a 3 x 3 matrix and a vector."""
    return r00 * x + r01 * y + r02 * z, r10 * x + r11 * y + r12 * z, r20 * x + r21 * y + r22 * z


# --- kinematics


@_jit
def forward(links, constants, q, u, t, work):
    """Poses of links at `q + t u`, and their velocities there with joint velocities `u`."""
    forward_some(0, links.shape[0], links, constants, q, u, t, work)


@_jit
def forward_some(first, last, links, constants, q, u, t, work):
    """`forward` of links `first` up to `last`, after those before them."""
    for k in range(first, last):
        p, kind, d, c = links[k, col.PARENT], links[k, col.KIND], links[k, col.DOF], links[k, col.COORDINATE]
        a00, a01, a02, a10, a11, a12, a20, a21, a22 = matrix(constants, k, col.C_ROTATION)
        sx, sy, sz = vector(constants, k, col.C_SHIFT)
        px, py, pz = 0.0, 0.0, 0.0
        wx, wy, wz = 0.0, 0.0, 0.0
        vx, vy, vz = 0.0, 0.0, 0.0
        if p >= 0:
            r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, p, col.W_ROTATION)
            a00, a10, a20 = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a00, a10, a20)
            a01, a11, a21 = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a01, a11, a21)
            a02, a12, a22 = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, a02, a12, a22)
            sx, sy, sz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, sx, sy, sz)
            px, py, pz = vector(work, p, col.W_POSITION)
            wx, wy, wz = vector(work, p, col.W_SPIN)
            vx, vy, vz = vector(work, p, col.W_VELOCITY)
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
            w, x, y, z = se3.quat_turn(q[c], q[c + 1], q[c + 2], q[c + 3], t * ux, t * uy, t * uz)
            b00, b01, b02, b10, b11, b12, b20, b21, b22 = se3.quat_entries(w, x, y, z)
            a00, a01, a02 = rotate(b00, b10, b20, b01, b11, b21, b02, b12, b22, a00, a01, a02)
            a10, a11, a12 = rotate(b00, b10, b20, b01, b11, b21, b02, b12, b22, a10, a11, a12)
            a20, a21, a22 = rotate(b00, b10, b20, b01, b11, b21, b02, b12, b22, a20, a21, a22)
            wx += a00 * ux + a01 * uy + a02 * uz
            wy += a10 * ux + a11 * uy + a12 * uz
            wz += a20 * ux + a21 * uy + a22 * uz
        put_vector(work, k, col.W_ROTATION, a00, a01, a02)
        put_vector(work, k, col.W_ROTATION + 3, a10, a11, a12)
        put_vector(work, k, col.W_ROTATION + 6, a20, a21, a22)
        put_vector(work, k, col.W_POSITION, px + sx, py + sy, pz + sz)
        put_vector(work, k, col.W_ARM, sx, sy, sz)
        put_vector(work, k, col.W_SPIN, wx, wy, wz)
        put_vector(work, k, col.W_VELOCITY, vx, vy, vz)


@_jit
def integrate(links, q, u, t):
    """Coordinates after a time t at joint velocities u: `q += t u`, quaternions by the exponential map."""
    for k in range(links.shape[0]):
        kind, d, c = links[k, col.KIND], links[k, col.DOF], links[k, col.COORDINATE]
        if kind == LINK_BALL:
            x, y, z = t * u[d], t * u[d + 1], t * u[d + 2]
            w, x, y, z = se3.quat_turn(q[c], q[c + 1], q[c + 2], q[c + 3], x, y, z)
            s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
            q[c], q[c + 1], q[c + 2], q[c + 3] = s * w, s * x, s * y, s * z
        elif kind != LINK_FIXED:
            q[c] += t * u[d]


@_jit
def momenta(first, last, constants, work, out):
    """Linear momentum and angular momentum about the centre of mass of links' bodies, world axes, into `out` (n, 6).

    Sets W_COM and W_INERTIA.
    """
    for k in range(first, last):
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, k, col.W_ROTATION)
        m = constants[k, col.C_MASS]
        bx, by, bz = vector(constants, k, col.C_COM)
        cx, cy, cz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, bx, by, bz)
        xx, xy, xz, yy, yz, zz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(3):
            bx, by, bz = (
                constants[k, col.C_AXES + j],
                constants[k, col.C_AXES + 3 + j],
                constants[k, col.C_AXES + 6 + j],
            )
            i = constants[k, col.C_MOMENTS + j]
            x, y, z = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, bx, by, bz)
            xx, xy, xz = xx + i * x * x, xy + i * x * y, xz + i * x * z
            yy, yz, zz = yy + i * y * y, yz + i * y * z, zz + i * z * z
        put_vector(work, k, col.W_COM, cx, cy, cz)
        put_vector(work, k, col.W_INERTIA, xx, xy, xz)
        put_vector(work, k, col.W_INERTIA + 3, yy, yz, zz)
        wx, wy, wz = vector(work, k, col.W_SPIN)
        vx, vy, vz = vector(work, k, col.W_VELOCITY)
        px, py, pz = m * (vx + wy * cz - wz * cy), m * (vy + wz * cx - wx * cz), m * (vz + wx * cy - wy * cx)
        put_vector(out, k, col.LINEAR, px, py, pz)
        x, y, z = rotate(xx, xy, xz, xy, yy, yz, xz, yz, zz, wx, wy, wz)
        put_vector(out, k, col.ANGULAR, x, y, z)


@_jit
def reflect(work, at_middle, momentum):
    """Momentum after the step: twice that of the midpoint velocity, less that before the step.

    Linear momentum is in world axes, angular momentum in the joint frame: there it solves Euler's equations and keeps
    both energy and the size of the momentum.
    """
    for k in range(work.shape[0]):
        x, y, z = vector(at_middle, k, col.ANGULAR)
        for i in range(3):
            momentum[k, col.LINEAR + i] = 2.0 * at_middle[k, col.LINEAR + i] - momentum[k, col.LINEAR + i]
            ax, ay, az = axis(work, k, i)
            momentum[k, col.ANGULAR + i] = 2.0 * (ax * x + ay * y + az * z) - momentum[k, col.ANGULAR + i]


@_jit
def set_momentum(work, at_middle, momentum):
    """Set momenta to those of the joint velocities that `momenta` was called with."""
    for k in range(work.shape[0]):
        x, y, z = vector(at_middle, k, col.ANGULAR)
        for i in range(3):
            momentum[k, col.LINEAR + i] = at_middle[k, col.LINEAR + i]
            ax, ay, az = axis(work, k, i)
            momentum[k, col.ANGULAR + i] = ax * x + ay * y + az * z


@_jit
def impulses(first, last, constants, gravity, loads, t, work, out):
    """Impulse of gravity and loads during `t` at the centres of mass, world axes, into `out` (n, 6)."""
    for k in range(first, last):
        m = t * constants[k, col.C_MASS]
        put_vector(out, k, col.LINEAR, m * gravity[0], m * gravity[1], m * gravity[2])
        put_vector(out, k, col.ANGULAR, 0.0, 0.0, 0.0)
    for row in range(loads.shape[0]):
        k = int(loads[row, col.LOAD_LINK])
        if not first <= k < last:
            continue
        turn = work[k, col.W_ROTATION : col.W_ROTATION + 9].reshape(3, 3)
        fx, fy, fz, tx, ty, tz = wrench_in_world(loads[row], turn)
        add_vector(out, k, col.LINEAR, t * fx, t * fy, t * fz)
        add_vector(out, k, col.ANGULAR, t * tx, t * ty, t * tz)


# --- energies and work


@_jit
def kinetic(constants, momentum):
    """Kinetic energy of bodies, J; momenta as in `State`."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, col.C_MASS]
        if m > 0.0:
            x, y, z = vector(momentum, k, col.LINEAR)
            total += (x**2 + y**2 + z**2) / m
        for j in range(3):
            i = constants[k, col.C_MOMENTS + j]
            if i > 0.0:
                x, y, z = vector(momentum, k, col.ANGULAR)
                along = (
                    constants[k, col.C_AXES + j] * x
                    + constants[k, col.C_AXES + 3 + j] * y
                    + constants[k, col.C_AXES + 6 + j] * z
                )
                total += along * along / i
    return 0.5 * total


@_jit
def kinetic_at(constants, at_middle, work):
    """Kinetic energy of bodies at the midpoint, J, from momenta in world axes."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, col.C_MASS]
        for i in range(3):
            total += work[k, col.W_SPIN + i] * at_middle[k, col.ANGULAR + i]
            if m > 0.0:
                total += at_middle[k, col.LINEAR + i] ** 2 / m
    return 0.5 * total


@_jit
def kinetic_change(constants, momentum, at_middle, work):
    """Half the change of kinetic energy in a step, J: `u_m . (p_after - p_m)`, u_m the midpoint's body velocities."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, col.C_MASS]
        x, y, z = vector(momentum, k, col.ANGULAR)
        for i in range(3):
            rx, ry, rz = vector(work, k, col.W_ROTATION + 3 * i)
            after = rx * x + ry * y + rz * z
            total += work[k, col.W_SPIN + i] * (after - at_middle[k, col.ANGULAR + i])
            if m > 0.0:
                middle = at_middle[k, col.LINEAR + i]
                total += middle * (momentum[k, col.LINEAR + i] - middle) / m
    return total


@_jit
def potential(constants, gravity, work):
    """Potential energy of bodies in gravity at the poses of `work`, J."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, col.C_MASS]
        x, y, z = vector(constants, k, col.C_COM)
        for i in range(3):
            rx, ry, rz = vector(work, k, col.W_ROTATION + 3 * i)
            at = work[k, col.W_POSITION + i] + rx * x + ry * y + rz * z
            total -= m * gravity[i] * at
    return total


@_jit
def work_done(constants, gravity, impulse, at_middle, t, work):
    """Work of loads during `t` at the midpoint velocities, J, from the impulses of gravity and loads."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, col.C_MASS]
        for i in range(3):
            total += impulse[k, col.ANGULAR + i] * work[k, col.W_SPIN + i]
            if m > 0.0:
                total += (impulse[k, col.LINEAR + i] - t * m * gravity[i]) * at_middle[k, col.LINEAR + i] / m
    return total


@_jit
def work_of_loads(loads, first, constants, at_middle, t, work):
    """Work during `t` of loads from row `first` on, J: forces at points of links and torques, world axes."""
    total = 0.0
    for row in range(first, loads.shape[0]):
        k = int(loads[row, col.LOAD_LINK])
        m = constants[k, col.C_MASS]
        x, y, z = vector(loads, row, col.LOAD_POINT)
        if x != 0.0 or y != 0.0 or z != 0.0:
            r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, k, col.W_ROTATION)
            x, y, z = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z)
            fx, fy, fz = vector(loads, row, col.LOAD_FORCE)
            wx, wy, wz = vector(work, k, col.W_SPIN)
            total += (y * fz - z * fy) * wx + (z * fx - x * fz) * wy + (x * fy - y * fx) * wz
        for i in range(3):
            total += loads[row, col.LOAD_TORQUE + i] * work[k, col.W_SPIN + i]
            if m > 0.0:
                total += loads[row, col.LOAD_FORCE + i] * at_middle[k, col.LINEAR + i] / m
    return t * total


# --- reactions


@_jit
def joint_reactions(links, loops, work, at_middle, impulse, momentum, multipliers, out):
    """Half impulse through every joint in the last step, linear and angular about its origin, world axes, (n, 6)."""
    n = links.shape[0]
    for k in range(n):
        px, py, pz = vector(momentum, k, col.ANGULAR)
        for i in range(3):
            # The momentum before the step is twice the midpoint's less that after.
            rx, ry, rz = vector(work, k, col.W_ROTATION + 3 * i)
            after = rx * px + ry * py + rz * pz
            middle, given = at_middle[k, col.LINEAR + i], impulse[k, col.LINEAR + i]
            out[k, col.LINEAR + i] = momentum[k, col.LINEAR + i] - middle - given
            out[k, col.ANGULAR + i] = after - at_middle[k, col.ANGULAR + i] - impulse[k, col.ANGULAR + i]
        cx, cy, cz = vector(work, k, col.W_COM)
        fx, fy, fz = vector(out, k, col.LINEAR)
        add_vector(out, k, col.ANGULAR, cy * fz - cz * fy, cz * fx - cx * fz, cx * fy - cy * fx)
    for j in range(loops.shape[0]):
        a, b = int(loops[j, col.LOOP_COPY]), int(loops[j, col.LOOP_BODY])
        x, y, z = between(work, a, b)
        unit = loops[j, col.LOOP_UNIT]
        fx, fy, fz = multipliers[6 * j] / unit, multipliers[6 * j + 1] / unit, multipliers[6 * j + 2] / unit
        add_vector(out, a, col.LINEAR, fx, fy, fz)
        add_vector(out, b, col.LINEAR, -fx, -fy, -fz)
        add_vector(out, b, col.ANGULAR, -(y * fz - z * fy), -(z * fx - x * fz), -(x * fy - y * fx))
        for i in range(3):
            out[a, col.ANGULAR + i] += multipliers[6 * j + 3 + i]
            out[b, col.ANGULAR + i] -= multipliers[6 * j + 3 + i]
    for k in range(n - 1, -1, -1):
        p = links[k, col.PARENT]
        if p >= 0:
            sx, sy, sz = vector(work, k, col.W_ARM)
            fx, fy, fz = vector(out, k, col.LINEAR)
            tx, ty, tz = vector(out, k, col.ANGULAR)
            add_vector(out, p, col.LINEAR, fx, fy, fz)
            tx, ty, tz = tx + sy * fz - sz * fy, ty + sz * fx - sx * fz, tz + sx * fy - sy * fx
            add_vector(out, p, col.ANGULAR, tx, ty, tz)
