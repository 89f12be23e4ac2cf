"""Motion on a manifold of joint coordinates: forces and inertia of the whole mechanism, projected by its tangent.

The joints of a mechanism follow few coordinates y,

    s(y) = Φ y + ½ Ψ(y, y) + C μ,     q = q0 moved by s,     q' = T(y) y'

with μ such that loops and couplings stay closed, and T the tangent of that manifold, T = A - C (G C)^-1 G A with
A = Φ + Ψ(y, .) and G the rows of the closed loops (rows of balls are multiplied by the right Jacobian of SO(3)).
Springs, loads, dampers and inertia are those of all joints and links, evaluated in one sweep over the tree. Twists,
momenta and inertias are in world axes about one fixed point, so that they pass from link to link unchanged. Numbers of
links and of rows of motion are in blocks of LANES of them (`_column`), so that sweeps compute vectors. Columns of links
are in their order; then follow the world and the displacement of a floating base.

A floating base is evaluated at home, where the model was made: inertia does not depend on where the base is, and
nothing is lost far from the world's origin. In `state` the base has the centre of mass of the whole mechanism at its
present joints, the orientation of the base's body, the velocity of the centre of mass and the angular momentum of all
links about it, world axes. So momentum is kept by itself. The rates of the coordinates do not determine the base's
motion; with the momenta they do: the base turns at `I^-1 (L - P v)`, with I the inertia of the whole about its centre
of mass and P v its angular momentum while the base rests. Forces and inertia on the coordinates are those with the base
free to move, `f - P6^T I6^-1 W` and `M - P6^T I6^-1 P6`: W the sum of all wrenches, P6 v momentum and angular momentum.

Coordinates are those of the natural modes at y = 0. Array layout: `kernels` and `manifold_arrays`.
"""

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import (
    LANES,
    PARENT,
    PLACE,
    add_product,
    everywhere,
    load,
    matrix,
    store,
    total,
)
from pliant.engines.reduced.kernels import (
    BASE,
    BASE_MASS,
    BASE_STATE,
    BASIS,
    CENTRE,
    COORDINATES,
    FREE,
    INVERSE_POSE,
    MOMENTUM,
    QUATERNION,
    VELOCITY,
    WRENCH,
    add_columns,
)
from pliant.engines.reduced.kernels import GRAVITY as BASE_GRAVITY
from pliant.engines.reduced.manifold_arrays import (
    ACCELERATION,
    ARMATURE,
    AXIS,
    BALL_LINKS,
    BALL_PULL,
    BALL_STIFFNESS,
    BALL_TABLE,
    BALLS,
    BASE_TWIST,
    BASE_WORK,
    BIAS,
    BODY,
    BODY_SIZE,
    CARRIED,
    CARRIED_SIZE,
    CLOSING,
    COLUMNS,
    COM,
    COMPONENT,
    COPY,
    COUPLING,
    COUPLINGS,
    CURVED,
    DAMPER,
    DASHPOT,
    END_VELOCITY,
    FIXED,
    FORCE,
    GAP,
    GRADIENT,
    GRAVITY,
    HALF,
    HELD,
    HELD_ROWS,
    HUB,
    INVERSE,
    JOINT,
    LENGTH,
    LOAD,
    LOOP_SIZE,
    LOOP_TABLE,
    MASS,
    MEAN_VELOCITY,
    MIDDLE,
    MOMENT_SIZE,
    MOMENTS,
    MOTION,
    MOTOR,
    MOVED,
    MOVED_ROWS,
    NET,
    OF,
    ORIGIN,
    ORIGINAL,
    PER_RATE,
    PLACED,
    PLAIN,
    PULL,
    RATE,
    REST,
    REST_SIZE,
    ROW,
    ROW_SIZE,
    ROW_TABLE,
    SHARES,
    SLACK,
    SLOTS,
    SPIN,
    SPIN_PER_RATE,
    SPRING,
    SPUN,
    START,
    STIFFNESS,
    SUBTREE,
    SWEEP,
    TANGENT,
    TENDON,
    TENDONS,
    TENSION,
    TENSION_SIZE,
    TORQUE,
    TOTAL,
    TURN,
    TURNED,
    TWIST,
    WHOLE,
    WIDTH,
    WORLD_INVERSE,
)
from pliant.engines.reduced.manifold_places import (
    _add_bending,
    _add_children,
    _add_parents,
    _add_twist,
    _bend,
    _clear_roots,
    _column,
    _find_moments,
    _place,
    _put_six,
    _right_coefficients,
    _rows_of,
    _six,
    _tangent_of,
    _ten,
    _turn_rows,
    close_motion,
    find_tangent,
    locate,
    locate_near,
)
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import ACTS, LINK, LOAD_SIZE, wrench_in_world
from pliant.statics.load_kernels import FORCE as DEAD_FORCE
from pliant.statics.load_kernels import TORQUE as DEAD_TORQUE

_inline = njit(error_model="numpy", nogil=True, inline="always")
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

SPINS = 30  # of the angular velocity in the middle of a step


@_jit
def _find_rates(v, sizes, constants, state):
    """Rates of all rows, `T v`, to RATE."""
    n, rows = sizes[COORDINATES], sizes[MOVED_ROWS]
    rate = state[sizes[RATE] : sizes[RATE] + rows]
    if sizes[PLAIN] == 1:
        for k in range(rows):
            rate[k] = 0.0
        add_columns(matrix(constants, sizes[BASIS], n, rows), v, rate)
        return
    T = matrix(state, sizes[TANGENT], rows, sizes[WIDTH])
    for k in range(rows):
        total = 0.0
        for j in range(n):
            total += T[k, j] * v[j]
        rate[k] = total


@_jit
def _find_bias(v, sizes, constants, state):
    """Accelerations of all rows that curvature, balls and loops cause at constant `v`, to BIAS; after `_find_rates`."""
    rows, r = sizes[MOVED_ROWS], sizes[CLOSING]
    bias = state[sizes[BIAS] : sizes[BIAS] + rows]
    for k in range(rows):
        bias[k] = 0.0
    if sizes[PLAIN] == 1:
        return
    if sizes[CURVED] == 1:
        _bend(v, sizes, constants, state)
        _add_bending(1.0, v, sizes, state, bias)
    _turn_rows(sizes, state, matrix(state, sizes[BIAS], rows, 1))
    balls = sizes[sizes[BALL_TABLE] :]
    for ball in range(sizes[BALLS]):
        _turn_bias(balls[ball], sizes, state)
    if r == 0:
        return
    if sizes[FREE] == 1:
        hold_base(sizes, state)
    _sweep_accelerations(sizes, state)
    loops, chosen, columns = sizes[sizes[LOOP_TABLE] :], sizes[sizes[ROW_TABLE] :], sizes[sizes[COLUMNS] :]
    coupling, gap = matrix(constants, sizes[COUPLING], sizes[COUPLINGS], rows), state[sizes[GAP] :]
    for i in range(r):
        loop, component = chosen[i * ROW_SIZE + OF], chosen[i * ROW_SIZE + COMPONENT]
        if loop < 0:
            total = 0.0
            for k in range(rows):
                total += coupling[component, k] * bias[k]
        else:
            total = _origin_acceleration(component, columns[loops[loop * LOOP_SIZE + COPY]], sizes, state)
            total -= _origin_acceleration(
                component, columns[loops[loop * LOOP_SIZE + ORIGINAL]], sizes, state
            )
            if component < 3:
                total /= constants[sizes[FIXED] + LENGTH]
        gap[i] = total
    close_motion(gap, sizes, state, bias)


@_jit
def _origin_acceleration(component, column, sizes, state):
    """Component of the acceleration of a link's origin p, `a + α x p + ω x (v + ω x p)`, or of its α from 3 on."""
    A = state[sizes[ACCELERATION] + _column(column, 6) :]
    if component >= 3:
        return A[LANES * component]
    T, V = state[sizes[PLACED] + _column(column, 12) :], state[sizes[TWIST] + _column(column, 6) :]
    px, py, pz = T[3 * LANES], T[7 * LANES], T[11 * LANES]
    wx, wy, wz = V[3 * LANES], V[4 * LANES], V[5 * LANES]
    ax, ay, az = A[3 * LANES], A[4 * LANES], A[5 * LANES]
    # both sides of a closed loop have the same velocity of the origin, up to its gap
    vx, vy, vz = V[0] + wy * pz - wz * py, V[LANES] + wz * px - wx * pz, V[2 * LANES] + wx * py - wy * px
    if component == 0:
        return A[0] + ay * pz - az * py + wy * vz - wz * vy
    if component == 1:
        return A[LANES] + az * px - ax * pz + wz * vx - wx * vz
    return A[2 * LANES] + ax * py - ay * px + wx * vy - wy * vx


@_jit
def _turn_bias(row, sizes, state):
    """Add the change of the right Jacobian J(s) of a ball along s' to the bias: dJ/dt s'.

    s' follows from the rates ω = J s'; with c1, c2 the coefficients of J, dJ/dt s' = -c1' s x s' + c2' s x (s x s')
    + c2 s' x (s x s').
    """
    at, rate, bias = sizes[MOTION] + row, sizes[RATE] + row, sizes[BIAS] + row
    x, y, z = state[at], state[at + 1], state[at + 2]
    square = x * x + y * y + z * z
    _, c2, d1, d2 = _right_coefficients(square)
    # J^-1 at s is J^-T at -s
    a, b, c = se3.inverse_transpose_product(-x, -y, -z, state[rate], state[rate + 1], state[rate + 2])
    dot = 2.0 * (x * a + y * b + z * c)
    u0, u1, u2 = y * c - z * b, z * a - x * c, x * b - y * a
    state[bias] += -d1 * dot * u0 + d2 * dot * (y * u2 - z * u1) + c2 * (b * u2 - c * u1)
    state[bias + 1] += -d1 * dot * u1 + d2 * dot * (z * u0 - x * u2) + c2 * (c * u0 - a * u2)
    state[bias + 2] += -d1 * dot * u2 + d2 * dot * (x * u1 - y * u0) + c2 * (a * u1 - b * u0)


@_jit
def _spread_rows(numbers, out, sizes, state):
    """Twists of the rows of motion times `numbers` of the rows, per link, to `out`; both are entries of `sizes`."""
    for b in range(0, sizes[MOVED], LANES):
        x = load(state, sizes[numbers] + b)
        s0, s1, s2, s3, s4, s5 = _six(state, sizes[AXIS] + 6 * b)
        _put_six(state, sizes[out] + 6 * b, s0 * x, s1 * x, s2 * x, s3 * x, s4 * x, s5 * x)
    balls, carried = sizes[sizes[BALL_TABLE] :], sizes[sizes[BALL_LINKS] :]
    for ball in range(sizes[BALLS]):
        at = sizes[out] + _column(carried[ball], 6)
        for row in range(balls[ball], balls[ball] + 3):
            x, axis = state[sizes[numbers] + row], sizes[AXIS] + _column(row, 6)
            for i in range(6):
                state[at + LANES * i] += state[axis + LANES * i] * x


@_jit
def _sweep_twists(sizes, state):
    """Twists of all links at RATE, to TWIST; a floating base has the twist in HUB."""
    _spread_rows(RATE, TWIST, sizes, state)
    _clear_roots(sizes[TWIST], 6, sizes, state)
    if sizes[FREE] == 1:
        at = sizes[TWIST] + _column(sizes[MOVED] + 1, 6)
        for i in range(6):
            state[at + LANES * i] = state[sizes[HUB] + BASE_TWIST + i]
    _add_parents(sizes[TWIST], sizes, state)


@_jit
def _sweep_accelerations(sizes, state):
    """Twists and, at the accelerations BIAS of the rows, accelerations of all links, to TWIST and ACCELERATION."""
    _sweep_twists(sizes, state)
    _spread_rows(RATE, FORCE, sizes, state)
    _spread_rows(BIAS, ACCELERATION, sizes, state)
    for b in range(0, sizes[MOVED], LANES):
        v0, v1, v2, w0, w1, w2 = _six(state, sizes[TWIST] + 6 * b)
        a0, a1, a2, a3, a4, a5 = _six(state, sizes[FORCE] + 6 * b)
        b0, b1, b2, b3, b4, b5 = _six(state, sizes[ACCELERATION] + 6 * b)
        # the axes turn with the links: V x S q'
        b0 += w1 * a2 - w2 * a1 + v1 * a5 - v2 * a4
        b1 += w2 * a0 - w0 * a2 + v2 * a3 - v0 * a5
        b2 += w0 * a1 - w1 * a0 + v0 * a4 - v1 * a3
        b3 += w1 * a5 - w2 * a4
        b4 += w2 * a3 - w0 * a5
        b5 += w0 * a4 - w1 * a3
        _put_six(state, sizes[ACCELERATION] + 6 * b, b0, b1, b2, b3, b4, b5)
    _clear_roots(sizes[ACCELERATION], 6, sizes, state)
    _add_parents(sizes[ACCELERATION], sizes, state)


@_inline
def _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, v0, v1, v2, w0, w1, w2):
    """Momentum and angular momentum about the origin of a body with these moments at a twist."""
    return (
        m * v0 + w1 * hz - w2 * hy,
        m * v1 + w2 * hx - w0 * hz,
        m * v2 + w0 * hy - w1 * hx,
        xx * w0 + xy * w1 + xz * w2 + hy * v2 - hz * v1,
        xy * w0 + yy * w1 + yz * w2 + hz * v0 - hx * v2,
        xz * w0 + yz * w1 + zz * w2 + hx * v1 - hy * v0,
    )


@_jit
def _clear_loads(sizes, state, poses):
    """Set LOAD to zero."""
    for i in range(sizes[LOAD], sizes[LOAD] + 6 * poses.shape[0] + 6 * LANES):
        state[i] = 0.0


@_jit
def _add_load(row, link, share, sizes, constants, state, poses):
    """Add a share of a load on the link at this place to LOAD."""
    out, pose = state[sizes[LOAD] + _column(sizes[sizes[COLUMNS] + link], 6) :], poses[link]
    fx, fy, fz, tx, ty, tz = wrench_in_world(row, pose)
    o = sizes[FIXED] + ORIGIN
    x, y, z = pose[0, 3] - constants[o], pose[1, 3] - constants[o + 1], pose[2, 3] - constants[o + 2]
    out[0] += share * fx
    out[LANES] += share * fy
    out[2 * LANES] += share * fz
    out[3 * LANES] += share * (tx + y * fz - z * fy)
    out[4 * LANES] += share * (ty + z * fx - x * fz)
    out[5 * LANES] += share * (tz + x * fy - y * fx)


@_jit
def _collect_loads(share, sizes, constants, state, poses):
    """Wrenches on links about the origin, world axes: held ones, and a share of those of the simulation; to LOAD."""
    _clear_loads(sizes, state, poses)
    for i in range(sizes[HELD]):
        row = constants[sizes[HELD_ROWS] + i * LOAD_SIZE :]
        _add_load(row, int(row[LINK]), 1.0, sizes, constants, state, poses)
    _add_loads(sizes[WRENCH], share, sizes, constants, state, poses)


@_jit
def _add_loads(rows, share, sizes, constants, state, poses):
    """Add a share of the loads in `rows`, an offset in the state, to LOAD."""
    for i in range(sizes[SLOTS]):
        row = state[rows + i * LOAD_SIZE :]
        if row[ACTS] != 0.0:
            if sizes[FREE] == 1:
                _bring_home(row, sizes, state)
                row = state[sizes[HUB] + ROW :]
            _add_load(row, int(row[LINK]), share, sizes, constants, state, poses)


@_jit
def force_of_loads(rows, sizes, constants, state, poses, out):
    """Force on the coordinates of loads in `rows`, an offset in the state, to `out` (width,); after `find_tangent`."""
    _clear_loads(sizes, state, poses)
    _add_loads(rows, 1.0, sizes, constants, state, poses)
    _add_children(sizes[LOAD], 6, sizes, state)
    _row_forces(LOAD, sizes, state)
    _project(_tangent_of(sizes, constants, state), sizes, state, out)


@_jit
def _tendon_gradient(tendon, sizes, constants, state):
    """Change of a tendon's length per motion of the rows, to GRADIENT. Returns its stretch from y = 0.

    The coordinates of a ball are its rotation vector x from rest; x' = J^-1 ω with J the right Jacobian.
    """
    rows, motion, out = sizes[MOVED_ROWS], state[sizes[MOTION] :], state[sizes[GRADIENT] :]
    row, stretch = constants[sizes[TENDON] + tendon * rows :], 0.0
    for k in range(rows):
        out[k] = row[k]
        stretch += row[k] * motion[k]
    balls = sizes[sizes[BALL_TABLE] :]
    for ball in range(sizes[BALLS]):
        k, rest = balls[ball], constants[sizes[REST] + ball * REST_SIZE :]
        a, b, c = row[k], row[k + 1], row[k + 2]
        if a != 0.0 or b != 0.0 or c != 0.0:
            x, y, z = _ball_rotation(rest, motion[k], motion[k + 1], motion[k + 2])
            u, v, w = _ball_rotation(rest, 0.0, 0.0, 0.0)
            stretch += a * (x - u - motion[k]) + b * (y - v - motion[k + 1]) + c * (z - w - motion[k + 2])
            out[k], out[k + 1], out[k + 2] = se3.inverse_transpose_product(x, y, z, a, b, c)
    return stretch


@_jit
def _joint_forces(sizes, constants, state, out):
    """Forces of springs, tendons and motors on all rows at MOTION, against the displacements, to `out` (rows,)."""
    rows, motion, motor = sizes[MOVED_ROWS], state[sizes[MOTION] :], constants[sizes[MOTOR] :]
    stiffness, pull = _joint(STIFFNESS, sizes, constants), _joint(PULL, sizes, constants)
    for k in range(rows):
        out[k] = stiffness[k] * motion[k] + pull[k] - motor[k]
    for t in range(sizes[TENDONS]):
        spring, gradient = constants[sizes[TENSION] + t * TENSION_SIZE :], state[sizes[GRADIENT] :]
        tension = spring[SPRING] * _tendon_gradient(t, sizes, constants, state) + spring[SLACK]
        for k in range(rows):
            out[k] += tension * gradient[k]
    balls = sizes[sizes[BALL_TABLE] :]
    for ball in range(sizes[BALLS]):
        rest, row = constants[sizes[REST] + ball * REST_SIZE :], balls[ball]
        x, y, z = _ball_rotation(rest, motion[row], motion[row + 1], motion[row + 2])
        a = rest[BALL_STIFFNESS] * x + rest[BALL_PULL]
        b = rest[BALL_STIFFNESS + 1] * y + rest[BALL_PULL + 1]
        c = rest[BALL_STIFFNESS + 2] * z + rest[BALL_PULL + 2]
        a, b, c = se3.inverse_transpose_product(x, y, z, a, b, c)
        out[row], out[row + 1], out[row + 2] = out[row] + a, out[row + 1] + b, out[row + 2] + c


@_inline
def _joint(entry, sizes, constants):
    """Numbers of the joints, by rows."""
    return constants[sizes[JOINT] + entry * sizes[MOVED_ROWS] :]


@_jit
def _ball_rotation(rest, x, y, z):
    """Rotation vector of a ball from the rest of its spring, at the rotation vector x, y, z from q0."""
    w, a, b, c = se3.quat_turn(rest[TURN], rest[TURN + 1], rest[TURN + 2], rest[TURN + 3], x, y, z)
    return se3.log_vector(w, a, b, c)


@_jit
def _elastic_energy(sizes, constants, state):
    """Energy of springs and tendons at MOTION, J, up to a constant."""
    rows, motion = sizes[MOVED_ROWS], state[sizes[MOTION] :]
    stiffness, pull, out = _joint(STIFFNESS, sizes, constants), _joint(PULL, sizes, constants), 0.0
    for k in range(rows):
        out += motion[k] * (0.5 * stiffness[k] * motion[k] + pull[k])
    for t in range(sizes[TENDONS]):
        spring = constants[sizes[TENSION] + t * TENSION_SIZE :]
        stretch = _tendon_gradient(t, sizes, constants, state)
        out += stretch * (0.5 * spring[SPRING] * stretch + spring[SLACK])
    balls = sizes[sizes[BALL_TABLE] :]
    for ball in range(sizes[BALLS]):
        rest, row = constants[sizes[REST] + ball * REST_SIZE :], balls[ball]
        x, y, z = _ball_rotation(rest, motion[row], motion[row + 1], motion[row + 2])
        out += x * (0.5 * rest[BALL_STIFFNESS] * x + rest[BALL_PULL])
        out += y * (0.5 * rest[BALL_STIFFNESS + 1] * y + rest[BALL_PULL + 1])
        out += z * (0.5 * rest[BALL_STIFFNESS + 2] * z + rest[BALL_PULL + 2])
    return out


@_jit
def _static_force(sizes, links, constants, state, poses, out):
    """Force on the coordinates of springs, motors, weights and loads LOAD, by virtual work, to `out` (width,).

    After `locate`, `find_tangent`, `_find_moments` and `_collect_loads`; LOAD becomes sums over subtrees.
    """
    at, torque = sizes[FIXED] + GRAVITY, state[sizes[TORQUE] :]
    _joint_forces(sizes, constants, state, torque)
    gx, gy, gz = constants[at], constants[at + 1], constants[at + 2]
    if gx != 0.0 or gy != 0.0 or gz != 0.0:
        for b in range(0, sizes[MOVED], LANES):
            m, hx, hy, hz, _, _, _, _, _, _ = _ten(state, sizes[MOMENTS] + MOMENT_SIZE * b)
            f0, f1, f2, f3, f4, f5 = _six(state, sizes[LOAD] + 6 * b)
            f0, f1, f2 = f0 + gx * m, f1 + gy * m, f2 + gz * m
            f3, f4, f5 = f3 + hy * gz - hz * gy, f4 + hz * gx - hx * gz, f5 + hx * gy - hy * gx
            _put_six(state, sizes[LOAD] + 6 * b, f0, f1, f2, f3, f4, f5)
    _add_children(sizes[LOAD], 6, sizes, state)
    _row_forces(LOAD, sizes, state)
    total = state[sizes[TOTAL] :]
    for k in range(sizes[MOVED_ROWS]):
        total[k] -= torque[k]
    _project(_tangent_of(sizes, constants, state), sizes, state, out)


@_jit
def _row_forces(forces, sizes, state):
    """Forces on all rows of motion of wrenches on what they carry, to TOTAL; `forces` is an entry of `sizes`."""
    for b in range(0, sizes[MOVED], LANES):
        s0, s1, s2, s3, s4, s5 = _six(state, sizes[AXIS] + 6 * b)
        f0, f1, f2, f3, f4, f5 = _six(state, sizes[forces] + 6 * b)
        store(s0 * f0 + s1 * f1 + s2 * f2 + s3 * f3 + s4 * f4 + s5 * f5, state, sizes[TOTAL] + b)
    balls, carried = sizes[sizes[BALL_TABLE] :], sizes[sizes[BALL_LINKS] :]
    for ball in range(sizes[BALLS]):
        force = sizes[forces] + _column(carried[ball], 6)
        for row in range(balls[ball], balls[ball] + 3):
            axis, total = sizes[AXIS] + _column(row, 6), 0.0
            for i in range(6):
                total += state[axis + LANES * i] * state[force + LANES * i]
            state[sizes[TOTAL] + row] = total


@_jit
def _project(T, sizes, state, out):
    """Force on the coordinates of the forces TOTAL on rows: `T^T total`, to `out` (width,)."""
    width = sizes[WIDTH]
    for i in range(width):
        out[i] = 0.0
    add_product(sizes[MOVED_ROWS], state[sizes[TOTAL] :], T, 0, width, width, out)


@_jit
def _damping_force(sizes, constants, state, T, out):
    """Force of the dampers of joints and tendons at RATE on the coordinates, to `out` (width,)."""
    rows, rate, total = sizes[MOVED_ROWS], state[sizes[RATE] :], state[sizes[TOTAL] :]
    damper = _joint(DAMPER, sizes, constants)
    for k in range(rows):
        total[k] = -damper[k] * rate[k]
    for t in range(sizes[TENDONS]):
        _tendon_gradient(t, sizes, constants, state)
        row, speed = state[sizes[GRADIENT] :], 0.0
        for k in range(rows):
            speed += row[k] * rate[k]
        speed *= constants[sizes[TENSION] + t * TENSION_SIZE + DASHPOT]
        for k in range(rows):
            total[k] -= row[k] * speed
    _project(T, sizes, state, out)


@_jit
def _joint_work(sizes, constants, state):
    """Work of springs and tendons over displacements RATE of the rows at their forces TORQUE, and twice the power of
    dampers at those rates; motors are no springs.
    """
    rows, rate, torque = sizes[MOVED_ROWS], state[sizes[RATE] :], state[sizes[TORQUE] :]
    damper, motor = _joint(DAMPER, sizes, constants), constants[sizes[MOTOR] :]
    stored = lost = 0.0
    for k in range(rows):
        stored += rate[k] * (torque[k] + motor[k])
        lost += damper[k] * rate[k] * rate[k]
    for t in range(sizes[TENDONS]):
        _tendon_gradient(t, sizes, constants, state)
        row, speed = state[sizes[GRADIENT] :], 0.0
        for k in range(rows):
            speed += row[k] * rate[k]
        lost += constants[sizes[TENSION] + t * TENSION_SIZE + DASHPOT] * speed * speed
    return stored, lost


@_jit
def _inertia_force(sizes, links, constants, state, poses, out):
    """Inertia force on the coordinates at constant rates, to `out` (width,).

    After `find_tangent`, `_find_moments`, `_find_rates` and `_find_bias`. Per link the change of momentum and angular
    momentum about the fixed point.
    """
    _sweep_accelerations(sizes, state)
    for b in range(0, sizes[MOVED], LANES):
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = _ten(state, sizes[MOMENTS] + MOMENT_SIZE * b)
        v0, v1, v2, w0, w1, w2 = _six(state, sizes[TWIST] + 6 * b)
        p0, p1, p2, l0, l1, l2 = _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, v0, v1, v2, w0, w1, w2)
        a0, a1, a2, a3, a4, a5 = _six(state, sizes[ACCELERATION] + 6 * b)
        f0, f1, f2, f3, f4, f5 = _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, a0, a1, a2, a3, a4, a5)
        f0, f1, f2 = f0 + w1 * p2 - w2 * p1, f1 + w2 * p0 - w0 * p2, f2 + w0 * p1 - w1 * p0
        f3 += w1 * l2 - w2 * l1 + v1 * p2 - v2 * p1
        f4 += w2 * l0 - w0 * l2 + v2 * p0 - v0 * p2
        f5 += w0 * l1 - w1 * l0 + v0 * p1 - v1 * p0
        _put_six(state, sizes[FORCE] + 6 * b, f0, f1, f2, f3, f4, f5)
    _clear_roots(sizes[FORCE], 6, sizes, state)
    _add_children(sizes[FORCE], 6, sizes, state)
    _row_forces(FORCE, sizes, state)
    armature, bias, total = (
        _joint(ARMATURE, sizes, constants),
        state[sizes[BIAS] :],
        state[sizes[TOTAL] :],
    )
    for k in range(sizes[MOVED_ROWS]):
        total[k] += armature[k] * bias[k]
    _project(_tangent_of(sizes, constants, state), sizes, state, out)


@_jit
def _find_mass(sizes, links, constants, state, poses, out):
    """Inertia of the first coordinates, as many as `out` (n, width) has rows, T^T M T; after `_find_moments`.

    A sum over rows k of the tangent: with c the momentum of all that row k moves at unit rate, U the twists per
    coordinate of the link above and d = c . axis, T_k^T (c U + ½ d T_k), and its transpose (composite rigid bodies).
    """
    n, rows, places, width = out.shape[0], sizes[MOVED_ROWS], poses.shape[0], sizes[WIDTH]
    T, start, size = _tangent_of(sizes, constants, state), sizes[SWEEP], 6 * width
    _find_carried(sizes, constants, state)
    for i in range(start + (places - 2) * size, start + places * size):
        state[i] = 0.0
    for k in range(sizes[MOVED]):
        here, above = start + links[k, PLACE] * size, start + links[k, PARENT] * size
        first, last = _rows_of(links, k)
        for row in range(first, last):
            c = state[sizes[CARRIED] + _column(row, CARRIED_SIZE) :]
            c0, c1, c2, c3, c4, c5, own = (
                c[0], c[LANES], c[2 * LANES], c[3 * LANES], c[4 * LANES], c[5 * LANES], 0.5 * c[6 * LANES]
            )  # fmt: skip
            for i in range(0, n, LANES):
                x = own * load(T, row * width + i) + c0 * load(state, above + i)
                x += c1 * load(state, above + width + i) + c2 * load(state, above + 2 * width + i)
                x += c3 * load(state, above + 3 * width + i) + c4 * load(state, above + 4 * width + i)
                x += c5 * load(state, above + 5 * width + i)
                store(x, state, sizes[SHARES] + row * width + i)
            for before in range(first, row):  # rows of the same ball
                share = c[(6 + row - first + before - first) * LANES]
                for i in range(0, n, LANES):
                    at = sizes[SHARES] + row * width + i
                    store(load(state, at) + share * load(T, before * width + i), state, at)
        _add_twist(first, T, n, width, above, here, sizes, state)
        for row in range(first + 1, last):
            _add_twist(row, T, n, width, here, here, sizes, state)
    shares = matrix(state, sizes[SHARES], rows, width)
    for i in range(0, n, 2):
        other = min(i + 1, n - 1)
        for b in range(0, n, LANES):
            one = two = everywhere(0.0)
            for k in range(rows):
                x = load(shares, k * width + b)
                one += T[k, i] * x
                two += T[k, other] * x
            store(one, out, i * width + b)
            store(two, out, other * width + b)
    for i in range(n):
        for j in range(i + 1):
            total = out[i, j] + out[j, i]
            out[i, j] = out[j, i] = total


@_jit
def _find_carried(sizes, constants, state):
    """Moments of composite bodies, to SUBTREE, and momenta per rate of the rows, to CARRIED; after `_find_moments`."""
    for i in range(0, -(-sizes[MOVED] // LANES) * LANES * MOMENT_SIZE, LANES):
        store(load(state, sizes[MOMENTS] + i), state, sizes[SUBTREE] + i)
    _clear_roots(sizes[SUBTREE], MOMENT_SIZE, sizes, state)
    _add_children(sizes[SUBTREE], MOMENT_SIZE, sizes, state)
    _row_momenta(sizes, constants, state)


@_jit
def _row_momenta(sizes, constants, state):
    """Momentum of all that a row of motion moves at unit rate, six numbers, and its inertia, to CARRIED.

    Rows of balls have their inertia with the rows of the same ball before them, too.
    """
    armature = _joint(ARMATURE, sizes, constants)
    for b in range(0, sizes[MOVED], LANES):
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = _ten(state, sizes[SUBTREE] + MOMENT_SIZE * b)
        s0, s1, s2, s3, s4, s5 = _six(state, sizes[AXIS] + 6 * b)
        c0, c1, c2, c3, c4, c5 = _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, s0, s1, s2, s3, s4, s5)
        at = sizes[CARRIED] + CARRIED_SIZE * b
        _put_six(state, at, c0, c1, c2, c3, c4, c5)
        own = c0 * s0 + c1 * s1 + c2 * s2 + c3 * s3 + c4 * s4 + c5 * s5
        store(own + load(armature, b), state, at + 6 * LANES)
    balls, carried = sizes[sizes[BALL_TABLE] :], sizes[sizes[BALL_LINKS] :]
    for ball in range(sizes[BALLS]):
        I = state[sizes[SUBTREE] + _column(carried[ball], MOMENT_SIZE) :]
        for row in range(balls[ball], balls[ball] + 3):
            S, c = (
                state[sizes[AXIS] + _column(row, 6) :],
                state[sizes[CARRIED] + _column(row, CARRIED_SIZE) :],
            )
            c[0], c[LANES], c[2 * LANES], c[3 * LANES], c[4 * LANES], c[5 * LANES] = _momentum(
                I[0], I[LANES], I[2 * LANES], I[3 * LANES], I[4 * LANES], I[5 * LANES], I[6 * LANES], I[7 * LANES],
                I[8 * LANES], I[9 * LANES], S[0], S[LANES], S[2 * LANES], S[3 * LANES], S[4 * LANES], S[5 * LANES],
            )  # fmt: skip
            for other in range(balls[ball], row + 1):
                axis, share = sizes[AXIS] + _column(other, 6), 0.0
                for i in range(6):
                    share += state[axis + LANES * i] * c[LANES * i]
                if other == row:
                    c[6 * LANES] = share + armature[row]
                else:
                    c[(6 + row - balls[ball] + other - balls[ball]) * LANES] = share


@_jit
def _kinetic_energy(sizes, constants, state):
    """Kinetic energy of all links and rotors at RATE, J; after `_world_axes` and `_find_moments`."""
    rate, armature, out = state[sizes[RATE] :], _joint(ARMATURE, sizes, constants), 0.0
    _sweep_twists(sizes, state)
    sums = everywhere(0.0)
    for b in range(0, sizes[MOVED], LANES):
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = _ten(state, sizes[MOMENTS] + MOMENT_SIZE * b)
        v0, v1, v2, w0, w1, w2 = _six(state, sizes[TWIST] + 6 * b)
        p0, p1, p2, l0, l1, l2 = _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, v0, v1, v2, w0, w1, w2)
        sums += v0 * p0 + v1 * p1 + v2 * p2 + w0 * l0 + w1 * l1 + w2 * l2
    for k in range(sizes[MOVED_ROWS]):
        out += armature[k] * rate[k] * rate[k]
    return 0.5 * (out + total(sums))


# --- floating base


@_jit
def orient(half, sizes, constants, state):
    """Begin a step of a floating base, or the evaluation of a state (`half` 0): START, TURNED and SPUN of HUB."""
    if sizes[FREE] == 0:
        return
    at, base, pose = sizes[HUB], sizes[BASE_STATE], sizes[BASE] + INVERSE_POSE
    start, turned = matrix(state, at + START, 3, 3), matrix(state, at + TURNED, 3, 3)
    se3.quat_to_matrix(state[base + QUATERNION : base + VELOCITY], turned)
    x, y, z = state[base + MOMENTUM], state[base + MOMENTUM + 1], state[base + MOMENTUM + 2]
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                total += turned[i, k] * constants[pose + 4 * k + j]
            start[i, j] = total
    for j in range(3):
        state[at + SPUN + j] = start[0, j] * x + start[1, j] * y + start[2, j] * z
        for i in range(3):
            turned[i, j] = start[i, j]
    state[at + HALF] = half


@_jit
def to_world(sizes, links, constants, state, poses):
    """Poses of all links with a floating base where it is, from those at home."""
    orient(0.0, sizes, constants, state)
    base, pose = sizes[BASE_STATE], poses[poses.shape[0] - 1]
    turn = matrix(state, sizes[HUB] + START, 3, 3)
    x = y = z = mass = 0.0
    for k in range(sizes[MOVED]):
        T, body = poses[links[k, PLACE]], constants[sizes[BODY] + _column(k, BODY_SIZE) :]
        m, a, b, c = body[MASS], body[COM * LANES], body[(COM + 1) * LANES], body[(COM + 2) * LANES]
        x += m * (T[0, 0] * a + T[0, 1] * b + T[0, 2] * c + T[0, 3])
        y += m * (T[1, 0] * a + T[1, 1] * b + T[1, 2] * c + T[1, 3])
        z += m * (T[2, 0] * a + T[2, 1] * b + T[2, 2] * c + T[2, 3])
        mass += m
    x, y, z = x / mass, y / mass, z / mass
    for i in range(3):
        for j in range(3):
            pose[i, j] = turn[i, j]
        pose[i, 3] = state[base + CENTRE + i] - (turn[i, 0] * x + turn[i, 1] * y + turn[i, 2] * z)
    _place(sizes, links, constants, state, poses)


@_jit
def _bring_home(row, sizes, state):
    """A load with its forces that are fixed in the world in home axes, to ROW of HUB."""
    at = sizes[HUB]
    turn, out = matrix(state, at + TURNED, 3, 3), state[at + ROW : at + ROW + LOAD_SIZE]
    for i in range(LOAD_SIZE):
        out[i] = row[i]
    for first in (DEAD_FORCE, DEAD_TORQUE):
        x, y, z = row[first], row[first + 1], row[first + 2]
        for j in range(3):
            out[first + j] = turn[0, j] * x + turn[1, j] * y + turn[2, j] * z


@_inline
def _weigh(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, sizes, state):
    """Mass, centre of mass and inverse inertia about it, to HUB, from moments about the fixed point."""
    at = sizes[HUB]
    x, y, z = hx / m, hy / m, hz / m
    a, b, c = xx - m * (y * y + z * z), xy + m * x * y, xz + m * x * z
    d, e, f = yy - m * (x * x + z * z), yz + m * y * z, zz - m * (x * x + y * y)
    aa, bb, cc = d * f - e * e, c * e - b * f, b * e - c * d
    scale = 1.0 / (a * aa + b * bb + c * cc)
    state[at + WHOLE], state[at + MIDDLE], state[at + MIDDLE + 1], state[at + MIDDLE + 2] = m, x, y, z
    out = matrix(state, at + INVERSE, 3, 3)
    out[0, 0], out[0, 1], out[0, 2] = aa * scale, bb * scale, cc * scale
    out[1, 0], out[1, 1], out[1, 2] = bb * scale, (a * f - c * c) * scale, (b * c - a * e) * scale
    out[2, 0], out[2, 1], out[2, 2] = cc * scale, (b * c - a * e) * scale, (a * d - b * b) * scale


@_jit
def hold_base(sizes, state):
    """Let a floating base rest in the next sweep of twists."""
    at = sizes[HUB] + BASE_TWIST
    for i in range(6):
        state[at + i] = 0.0


@_jit
def free_energy(sizes, state):
    """Energy of the angular momentum, J, and what a free base takes off the kinetic energy with the base at rest, J.

    After `orient` and `_kinetic_energy` with the base at rest.
    """
    at, zero = sizes[HUB], everywhere(0.0)
    M = H0 = H1 = H2 = A = B = C = D = E = F = P0 = P1 = P2 = L0 = L1 = L2 = zero
    for b in range(0, sizes[MOVED], LANES):
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = _ten(state, sizes[MOMENTS] + MOMENT_SIZE * b)
        v0, v1, v2, w0, w1, w2 = _six(state, sizes[TWIST] + 6 * b)
        p0, p1, p2, l0, l1, l2 = _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, v0, v1, v2, w0, w1, w2)
        M, H0, H1, H2 = M + m, H0 + hx, H1 + hy, H2 + hz
        A, B, C, D, E, F = A + xx, B + xy, C + xz, D + yy, E + yz, F + zz
        P0, P1, P2, L0, L1, L2 = P0 + p0, P1 + p1, P2 + p2, L0 + l0, L1 + l1, L2 + l2
    _weigh(
        total(M), total(H0), total(H1), total(H2), total(A), total(B), total(C), total(D), total(E), total(F),
        sizes, state,
    )  # fmt: skip
    x, y, z = state[at + MIDDLE], state[at + MIDDLE + 1], state[at + MIDDLE + 2]
    p, q, r = total(P0), total(P1), total(P2)
    a, b, c = total(L0) - (y * r - z * q), total(L1) - (z * p - x * r), total(L2) - (x * q - y * p)
    inverse = matrix(state, at + INVERSE, 3, 3)
    taken = (p * p + q * q + r * r) / state[at + WHOLE] + _square_in(inverse, a, b, c)
    spin = _square_in(inverse, state[at + SPUN], state[at + SPUN + 1], state[at + SPUN + 2])
    return 0.5 * spin, 0.5 * taken


@_inline
def add_row(share, source, source_at, width, out, out_at):
    """`out += share source` of `width` numbers, a multiple of LANES."""
    for b in range(0, width, LANES):
        store(load(out, out_at + b) + share * load(source, source_at + b), out, out_at + b)


@_jit
def _find_share(sizes, constants, state):
    """Motion of the whole per rate of the coordinates, base at rest, to PER_RATE of HUB; after `_find_carried`."""
    width, at = sizes[WIDTH], sizes[HUB]
    T, first = _tangent_of(sizes, constants, state), at + PER_RATE
    I = state[sizes[SUBTREE] + _column(sizes[MOVED] + 1, MOMENT_SIZE) :]
    _weigh(
        I[0], I[LANES], I[2 * LANES], I[3 * LANES], I[4 * LANES], I[5 * LANES], I[6 * LANES], I[7 * LANES],
        I[8 * LANES], I[9 * LANES], sizes, state,
    )  # fmt: skip
    for b in range(0, width, LANES):
        p0 = p1 = p2 = p3 = p4 = p5 = everywhere(0.0)
        for row in range(sizes[MOVED_ROWS]):
            c, x = state[sizes[CARRIED] + _column(row, CARRIED_SIZE) :], load(T, row * width + b)
            p0, p1, p2 = p0 + c[0] * x, p1 + c[LANES] * x, p2 + c[2 * LANES] * x
            p3, p4, p5 = p3 + c[3 * LANES] * x, p4 + c[4 * LANES] * x, p5 + c[5 * LANES] * x
        at_b = first + b
        store(p0, state, at_b)
        store(p1, state, at_b + width)
        store(p2, state, at_b + 2 * width)
        store(p3, state, at_b + 3 * width)
        store(p4, state, at_b + 4 * width)
        store(p5, state, at_b + 5 * width)
    p, inverse, m = matrix(state, first, 9, width), matrix(state, at + INVERSE, 3, 3), state[at + WHOLE]
    x, y, z = state[at + MIDDLE], state[at + MIDDLE + 1], state[at + MIDDLE + 2]
    for j in range(width):
        p[3, j] -= y * p[2, j] - z * p[1, j]
        p[4, j] -= z * p[0, j] - x * p[2, j]
        p[5, j] -= x * p[1, j] - y * p[0, j]
        for i in range(3):
            p[i, j] /= m
            p[6 + i, j] = inverse[i, 0] * p[3, j] + inverse[i, 1] * p[4, j] + inverse[i, 2] * p[5, j]


@_jit
def find_spin(v, scale, sizes, state):
    """Angular velocity of the base in the middle of a step, to SPIN, at rates `scale v` and the torque in NET.

    Angular momentum is SPUN turned back by half the step's rotation, and half the torque's impulse: a fixed point.
    """
    n, at, width = sizes[COORDINATES], sizes[HUB], sizes[WIDTH]
    p, I = matrix(state, at + PER_RATE, 9, width), matrix(state, at + INVERSE, 3, 3)
    half, spin, spun = state[at + HALF], state[at + SPIN : at + SPIN + 3], state[at + SPUN : at + SPUN + 3]
    a, b, c = half * state[at + NET + 3], half * state[at + NET + 4], half * state[at + NET + 5]
    for j in range(n):
        a, b, c = a - p[3, j] * v[j] * scale, b - p[4, j] * v[j] * scale, c - p[5, j] * v[j] * scale
    spin[0] = spin[1] = spin[2] = 0.0
    for _ in range(SPINS):
        x, y, z = -half * spin[0], -half * spin[1], -half * spin[2]
        square = x * x + y * y + z * z
        cosine, rest, _, _ = _right_coefficients(square)
        sine = 1.0 - square * rest
        u0, u1, u2 = y * spun[2] - z * spun[1], z * spun[0] - x * spun[2], x * spun[1] - y * spun[0]
        l0 = a + spun[0] + sine * u0 + cosine * (y * u2 - z * u1)
        l1 = b + spun[1] + sine * u1 + cosine * (z * u0 - x * u2)
        l2 = c + spun[2] + sine * u2 + cosine * (x * u1 - y * u0)
        change = size = 0.0
        for i in range(3):
            found = I[i, 0] * l0 + I[i, 1] * l1 + I[i, 2] * l2
            change, size = change + abs(found - spin[i]), size + abs(found)
            spin[i] = found
        if half == 0.0 or not change > 1e-14 * size:
            break


@_jit
def _turn_loads(sizes, state):
    """Rotation from home to the world in the middle of the step, to TURNED, from SPIN."""
    at = sizes[HUB]
    start, out = matrix(state, at + START, 3, 3), matrix(state, at + TURNED, 3, 3)
    half, step = state[at + HALF], matrix(state, at + ROW, 3, 3)
    turn = state[at + ROW + 9 : at + ROW + 12]
    for i in range(3):
        turn[i] = half * state[at + SPIN + i]
    se3.so3_exp(turn, step)
    for i in range(3):
        for j in range(3):
            out[i, j] = start[i, 0] * step[0, j] + start[i, 1] * step[1, j] + start[i, 2] * step[2, j]


@_jit
def _base_wrench(forces, sizes, state, out):
    """Sum of all wrenches `forces`, an entry of `sizes`, torque about the centre of mass, to `out` (6,)."""
    at, W = sizes[HUB], state[sizes[forces] + _column(sizes[MOVED] + 1, 6) :]
    x, y, z = state[at + MIDDLE], state[at + MIDDLE + 1], state[at + MIDDLE + 2]
    a, b, c = W[0], W[LANES], W[2 * LANES]
    out[0], out[1], out[2] = a, b, c
    out[3] = W[3 * LANES] - (y * c - z * b)
    out[4] = W[4 * LANES] - (z * a - x * c)
    out[5] = W[5 * LANES] - (x * b - y * a)


@_jit
def move_base(sizes, constants, state):
    """End a step of a floating base: its centre of mass, velocity, angular momentum and orientation, from HUB."""
    at, fixed = sizes[HUB], sizes[BASE]
    base, turned = state[sizes[BASE_STATE] :], matrix(state, at + TURNED, 3, 3)
    start, net, spin = matrix(state, at + START, 3, 3), state[at + NET :], state[at + SPIN :]
    h, mass = 2.0 * state[at + HALF], state[at + WHOLE]
    turn, change = state[at + ROW : at + ROW + 3], state[at + ROW + 3 : at + ROW + 7]
    for i in range(3):
        force = turned[i, 0] * net[0] + turned[i, 1] * net[1] + turned[i, 2] * net[2]
        torque = turned[i, 0] * net[3] + turned[i, 1] * net[4] + turned[i, 2] * net[5]
        speed = h * (force / mass + constants[fixed + BASE_GRAVITY + i])
        base[CENTRE + i] += h * (base[VELOCITY + i] + 0.5 * speed)
        base[VELOCITY + i] += speed
        base[MOMENTUM + i] += h * torque
        turn[i] = h * (start[i, 0] * spin[0] + start[i, 1] * spin[1] + start[i, 2] * spin[2])
    se3.quat_exp(turn, change)
    quaternion = base[QUATERNION:VELOCITY]
    se3.quat_multiply(change, quaternion, quaternion)
    se3.quat_normalize(quaternion)


@_jit
def weigh_base(sizes, constants, state):
    """Motion and inertia of the whole at the present joints, to HUB, and in world axes to BASE_WORK, for contacts.

    After `orient` and `find_tangent`, base at home.
    """
    _find_moments(sizes, constants, state)
    _find_carried(sizes, constants, state)
    _find_share(sizes, constants, state)
    at, out, width = sizes[HUB], sizes[BASE_WORK], sizes[WIDTH]
    for i in range(6):
        state[at + NET + i] = 0.0  # until loads are evaluated
    turn, inverse = matrix(state, at + START, 3, 3), matrix(state, at + INVERSE, 3, 3)
    world, p = matrix(state, out + WORLD_INVERSE, 3, 3), matrix(state, at + PER_RATE + 6 * width, 3, width)
    spin = matrix(state, out + SPIN_PER_RATE, 3, width)
    for i in range(3):
        x, y, z = turn[i, 0], turn[i, 1], turn[i, 2]
        a = x * inverse[0, 0] + y * inverse[1, 0] + z * inverse[2, 0]
        b = x * inverse[0, 1] + y * inverse[1, 1] + z * inverse[2, 1]
        c = x * inverse[0, 2] + y * inverse[1, 2] + z * inverse[2, 2]
        for j in range(3):
            world[i, j] = a * turn[j, 0] + b * turn[j, 1] + c * turn[j, 2]
        for j in range(width):
            spin[i, j] = x * p[0, j] + y * p[1, j] + z * p[2, j]


@_jit
def base_velocities(time, sizes, constants, state, out):
    """Velocities (6,) of a floating base after a time, by gravity and the wrench NET: see `push_base`. World axes.

    That of the centre of mass, and the angular velocity of the whole by its angular momentum, coordinates at rest.
    """
    at, base = sizes[HUB], state[sizes[BASE_STATE] :]
    turned, net, mass = (
        matrix(state, at + TURNED, 3, 3),
        state[at + NET :],
        constants[sizes[BASE] + BASE_MASS],
    )
    inverse = matrix(state, sizes[BASE_WORK] + WORLD_INVERSE, 3, 3)
    for i in range(3):
        out[i] = base[VELOCITY + i] + time * constants[sizes[BASE] + BASE_GRAVITY + i]
        out[3 + i] = 0.0
    for i in range(3):
        momentum = base[MOMENTUM + i]
        if time != 0.0:
            out[i] += time * (turned[i, 0] * net[0] + turned[i, 1] * net[1] + turned[i, 2] * net[2]) / mass
            momentum += time * (turned[i, 0] * net[3] + turned[i, 1] * net[4] + turned[i, 2] * net[5])
        for j in range(3):
            out[3 + j] += inverse[j, i] * momentum


@_jit
def push_base(change, h, sizes, state):
    """End a step of a floating base with contacts by its velocities in BASE_WORK. Returns the energy of spin gained.

    It moves by its velocities at the end of the step, as free bodies with contacts do, and turns by what the
    displacements `change` of the coordinates leave of its angular velocity. The spin is left in HUB.
    """
    at, hub, base = sizes[BASE_WORK], sizes[HUB], state[sizes[BASE_STATE] :]
    n, inverse = sizes[COORDINATES], matrix(state, at + WORLD_INVERSE, 3, 3)
    end, mean = state[at + END_VELOCITY :], state[at + MEAN_VELOCITY :]
    spin, start = matrix(state, at + SPIN_PER_RATE, 3, sizes[WIDTH]), matrix(state, hub + START, 3, 3)
    turn, quaternion = state[hub + ROW : hub + ROW + 3], state[hub + ROW + 3 : hub + ROW + 7]
    x, y, z = base[MOMENTUM], base[MOMENTUM + 1], base[MOMENTUM + 2]
    gained = -_square_in(inverse, x, y, z)
    x, y, z = _solve_three(inverse, end[3], end[4], end[5])
    gained += _square_in(inverse, x, y, z)
    base[MOMENTUM], base[MOMENTUM + 1], base[MOMENTUM + 2] = x, y, z
    for i in range(3):
        base[VELOCITY + i] = end[i]
        base[CENTRE + i] += h * mean[i]
        turn[i] = h * mean[3 + i]
        for j in range(n):
            turn[i] -= spin[i, j] * change[j]
    for i in range(3):
        state[hub + SPIN + i] = (start[0, i] * turn[0] + start[1, i] * turn[1] + start[2, i] * turn[2]) / h
    se3.quat_exp(turn, quaternion)
    turned = base[QUATERNION:VELOCITY]
    se3.quat_multiply(quaternion, turned, turned)
    se3.quat_normalize(turned)
    return 0.5 * gained


@_inline
def _square_in(a, x, y, z):
    """Square of a vector in a symmetric metric, (3, 3)."""
    out = x * (a[0, 0] * x + 2.0 * (a[0, 1] * y + a[0, 2] * z))
    return out + y * (a[1, 1] * y + 2.0 * a[1, 2] * z) + z * a[2, 2] * z


@_inline
def _solve_three(a, x, y, z):
    """Solution of three equations with a symmetric matrix, by Cramer's rule."""
    c00, c01, c02 = (
        a[1, 1] * a[2, 2] - a[1, 2] * a[1, 2],
        a[0, 2] * a[1, 2] - a[0, 1] * a[2, 2],
        a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1],
    )
    c11, c12, c22 = (
        a[0, 0] * a[2, 2] - a[0, 2] * a[0, 2],
        a[0, 1] * a[0, 2] - a[0, 0] * a[1, 2],
        a[0, 0] * a[1, 1] - a[0, 1] * a[0, 1],
    )
    d = 1.0 / (a[0, 0] * c00 + a[0, 1] * c01 + a[0, 2] * c02)
    return (
        d * (c00 * x + c01 * y + c02 * z),
        d * (c01 * x + c11 * y + c12 * z),
        d * (c02 * x + c12 * y + c22 * z),
    )


@_jit
def base_twist(v, scale, time, sizes, state):
    """Twist of the base about the fixed point while the centre of mass rests, times a duration, to BASE_TWIST of HUB.

    At rates `scale v` of the coordinates and the angular velocity SPIN.
    """
    n, at, width = sizes[COORDINATES], sizes[HUB], sizes[WIDTH]
    p, out = matrix(state, at + PER_RATE, 9, width), state[at + BASE_TWIST :]
    x, y, z = state[at + MIDDLE], state[at + MIDDLE + 1], state[at + MIDDLE + 2]
    a, b, c = state[at + SPIN], state[at + SPIN + 1], state[at + SPIN + 2]
    v0, v1, v2 = c * y - b * z, a * z - c * x, b * x - a * y
    for j in range(n):
        v0, v1, v2 = v0 - p[0, j] * v[j] * scale, v1 - p[1, j] * v[j] * scale, v2 - p[2, j] * v[j] * scale
    out[0], out[1], out[2], out[3], out[4], out[5] = (
        time * v0,
        time * v1,
        time * v2,
        time * a,
        time * b,
        time * c,
    )


@_jit
def _free(wrench, sizes, state, out):
    """Force on the coordinates with the base free, in place of that with the base held, (width,).

    `wrench` is the sum of the wrenches that it comes from, torque about the centre of mass, (6,).
    """
    at, width = sizes[HUB] + PER_RATE, sizes[WIDTH]
    for i in range(3):
        add_row(-wrench[i], state, at + i * width, width, out, 0)
        add_row(-wrench[3 + i], state, at + (6 + i) * width, width, out, 0)


@_jit
def _free_mass(sizes, state, out):
    """Take off the inertia of the coordinates with the base held, (n, width), what a free base takes off."""
    at, width = sizes[HUB], sizes[WIDTH]
    p, m = matrix(state, at + PER_RATE, 9, width), state[at + WHOLE]
    for i in range(out.shape[0]):
        for c in range(3):
            add_row(-m * p[c, i], state, at + PER_RATE + c * width, width, out, i * width)
            add_row(-p[3 + c, i], state, at + PER_RATE + (6 + c) * width, width, out, i * width)


# --- all of it


@_jit
def evaluate(y, v, share, inertia, near, sizes, links, constants, state, poses, loads, drag, inertial, mass):
    """Mechanics at coordinates and rates: forces on the coordinates, (width,) each, and their inertia, (n, width).

    `loads` gets the force of springs, motors, weights and a share of the loads, `drag` that of dampers, `inertial` that
    of inertia at constant rates; `mass` is computed if `inertia`. A `mass` without rows: the step resolves no inertia,
    and none of its forces is computed. `near`: the last `find_tangent` was near. False: loops do not close.

    With a floating base these are with the base free to move, at the momentum of the state; after `orient`. The motion
    of the base is in HUB then.
    """
    if near and sizes[CLOSING] > 0:
        closed = locate_near(y, sizes, links, constants, state, poses)
    else:
        closed = locate(y, sizes, links, constants, state, poses)
    if not closed:
        return False
    find_tangent(y, sizes, links, constants, state, poses)
    _find_moments(sizes, constants, state)
    _find_rates(v, sizes, constants, state)
    free, net = sizes[FREE] == 1, state[sizes[HUB] + NET : sizes[HUB] + NET + 6]
    resolved = mass.shape[0] > 0
    if inertia and resolved:
        _find_mass(sizes, links, constants, state, poses, mass)
    elif inertia and free:
        _find_carried(sizes, constants, state)
    if free:
        if inertia:
            _find_share(sizes, constants, state)
            _free_mass(sizes, state, mass)
        for i in range(6):
            net[i] = 0.0
        find_spin(v, 1.0, sizes, state)
        _turn_loads(sizes, state)
    _collect_loads(share, sizes, constants, state, poses)
    _static_force(sizes, links, constants, state, poses, loads)
    _damping_force(sizes, constants, state, _tangent_of(sizes, constants, state), drag)
    if free:
        _base_wrench(LOAD, sizes, state, net)
        _free(net, sizes, state, loads)
        find_spin(v, 1.0, sizes, state)
    if not resolved:
        for i in range(sizes[WIDTH]):
            inertial[i] = 0.0
        return True
    _find_bias(v, sizes, constants, state)
    if free:
        base_twist(v, 1.0, 1.0, sizes, state)
    _inertia_force(sizes, links, constants, state, poses, inertial)
    if free:
        wrench = state[sizes[HUB] + ROW : sizes[HUB] + ROW + 6]
        _base_wrench(FORCE, sizes, state, wrench)
        _free(wrench, sizes, state, inertial)
    return True


@_jit
def residual(y, share, sizes, links, constants, state, poses, out):
    """Force on the coordinates at rest, (n,), under a share of the loads. False: loops do not close."""
    if not locate(y, sizes, links, constants, state, poses):
        return False
    find_tangent(y, sizes, links, constants, state, poses)
    _find_moments(sizes, constants, state)
    _collect_loads(share, sizes, constants, state, poses)
    _static_force(sizes, links, constants, state, poses, out)
    return True


# --- small tools


@_jit
def _solve_definite(n, A, b):
    """Solve `A x = b` of n unknowns in place by the upper triangle of A, positive definite. False: it is not."""
    for c in range(n):
        row = A[c]
        if not row[c] > 0.0:
            return False
        scale = 1.0 / row[c]
        for i in range(c + 1, n):
            share, other = row[i] * scale, A[i]
            for j in range(i, n):
                other[j] -= share * row[j]
            b[i] -= share * b[c]
    for c in range(n - 1, -1, -1):
        row, rest = A[c], b[c]
        for j in range(c + 1, n):
            rest -= row[j] * b[j]
        b[c] = rest / row[c]
    return True
