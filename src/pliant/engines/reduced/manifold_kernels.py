"""Motion on a manifold of joint coordinates: forces and inertia of the whole mechanism, projected by its tangent.

The joints of a mechanism follow few coordinates y,

    s(y) = Φ y + ½ Ψ(y, y) + C μ,     q = q0 moved by s,     q' = T(y) y'

with μ such that loops and couplings stay closed, and T the tangent of that manifold, T = A - C (G C)^-1 G A with
A = Φ + Ψ(y, .) and G the rows of the closed loops (rows of balls are multiplied by the right Jacobian of SO(3)).
Springs, loads, dampers and inertia are those of all joints and links, evaluated in one sweep over the tree. Twists,
momenta and inertias are in world axes about one fixed point, so that they pass from link to link unchanged.

Coordinates are those of the natural modes at y = 0. Array layout: `kernels`, and the entries of `sizes` below.
"""

from math import inf, sin, sqrt

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import (
    BALL,
    PARENT,
    PLACE,
    add_inertia,
    add_rows,
    add_twist,
    matrix,
)
from pliant.engines.reduced._intrinsics import MOTION as MOTION_ROW
from pliant.engines.reduced.kernels import (
    BASIS,
    COORDINATES,
    LINKS,
    ROWS,
    SIZES,
    WRENCH,
    add_columns,
    by_joints,
)
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import ACTS, LINK, LOAD_SIZE, wrench_in_world

_inline = njit(error_model="numpy", nogil=True, inline="always")
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

# Entries of `sizes` beyond those of `kernels`: level of accuracy; whether T is Φ in all poses; n rounded up to a
# multiple of four; numbers of closing rows, couplings, tendons, balls, held loads and slots for loads; whether there
# is Ψ, and whether forces at rest change with y
METHOD, PLAIN, WIDTH, CLOSING, COUPLINGS, TENDONS, BALLS, HELD, SLOTS, CURVED, BENT = range(SIZES, SIZES + 11)
# offsets in `constants`
_AT = SIZES + 11
MAP, PHI, SCREW, JOINT, BODY, CURVATURE, CLOSE, COUPLING, TENDON, TENSION, REST = range(_AT, _AT + 11)
MOTOR, FIXED, MODE, DAMPER_MATRIX, INERTIA_AT_REST, WORKING, STEADY, SLOPE, SPREAD, HELD_ROWS = range(
    _AT + 11, _AT + 21
)
# of tables in `sizes` itself
LOOP_TABLE, ROW_TABLE, BALL_TABLE, CHAINS = range(_AT + 21, _AT + 25)
# in `state`: forces of the last step and multipliers, budget; then scratch
FORCES, MULTIPLIERS, BUDGET = range(_AT + 25, _AT + 28)
MOTION, RATE, BIAS, TANGENT, CLOSERS, AXIS, TWIST, ACCELERATION, LOAD, FORCE, SUBTREE = range(
    _AT + 28, _AT + 39
)
SWEEP, OPEN, GAP, PIVOT, ANSWER, TORQUE, GRADIENT, POINTS, SMALL_WORK, STEP_WORK, PLACING, MANIFOLD_SIZES = (
    range(_AT + 39, _AT + 51)
)

AUTO, SMALL, FULL = range(3)  # levels: chosen by the size of the motion; work of forces; inertia as well
STIFFNESS, PULL, DAMPER, ARMATURE, JOINT_SIZE = range(5)  # columns of JOINT, per row of motion
# columns of BODY, per link: mass, centre, xx xy xz yy yz zz about it
MASS, COM, ABOUT, BODY_SIZE = 0, 1, 4, 10
SPRING, SLACK, DASHPOT, TENSION_SIZE = range(4)  # columns of TENSION: stiffness, tension at y = 0, damping
# columns of REST, per ball: quaternion from rest to q0, stiffness, torque at rest
TURN, BALL_STIFFNESS, BALL_PULL, REST_SIZE = 0, 4, 7, 10
# of FIXED: gravity, m/s²; point that twists are about; unit of gaps, m; square of the distance that end effectors may
# go, m², infinite if unknown; their origins at y = 0
GRAVITY, ORIGIN, LENGTH, BOUNDARY, ENDS = 0, 3, 6, 7, 8
# columns of MODE: ω²; the share of inertia forces that a step resolves; 1 / displacement and 1 / rate from which on
# motion counts as large
SQUARE, FILTER, LARGE, FAST, MODE_SIZE = range(5)
COPY, ORIGINAL, LOOP_SIZE = range(3)  # columns of LOOP_TABLE: places of the poses
OF, COMPONENT, ROW_SIZE = range(3)  # columns of ROW_TABLE: loop and component, or -1 and coupling
SUBTREE_SIZE = 10  # columns of SUBTREE: mass, first moment, second moment about the origin
# of BUDGET: J; whether it is set; steps that ended where loops part; square of the largest distance of an end effector
# beyond the boundary, m²
ENERGY, SET, HALTS, FARTHEST, BUDGET_SIZE = range(5)

TOLERANCE = 1e-10  # of gaps, radii and radians
ITERATIONS = 12

# --- places and tangent


@_jit
def _displace(y, sizes, constants, state):
    """Joint displacements `s = Φ y + ½ Ψ(y, y) + C μ` of all rows, to MOTION."""
    n, rows, r = sizes[COORDINATES], sizes[ROWS], sizes[CLOSING]
    motion = state[sizes[MOTION] : sizes[MOTION] + rows]
    for k in range(rows):
        motion[k] = 0.0
    add_columns(matrix(constants, sizes[BASIS], n, rows), y, motion)
    if sizes[CURVED] == 1:
        curvature = matrix(constants, sizes[CURVATURE], n * n, rows)
        for i in range(n):
            for j in range(n):
                share = 0.5 * y[i] * y[j]
                for k in range(rows):
                    motion[k] += share * curvature[i * n + j, k]
    if r > 0:
        close, mu = matrix(constants, sizes[CLOSE], rows, r), state[sizes[MULTIPLIERS] :]
        for k in range(rows):
            for c in range(r):
                motion[k] += close[k, c] * mu[c]


@_jit
def _place(sizes, links, constants, state, poses):
    """Poses of all links at the displacements MOTION."""
    rows = sizes[ROWS]
    motion = state[sizes[MOTION] : sizes[MOTION] + rows]
    powers = 0.0  # a sum of eighth powers below 1 bounds all displacements by 1
    for k in range(rows):
        square = motion[k] * motion[k]
        square *= square
        powers += square * square
    by_joints(powers <= 1.0, sizes, links, constants, motion, state[sizes[PLACING] :], poses)


@_jit
def _turn_rows(sizes, state, columns):
    """Multiply the rows of balls by the right Jacobian at their rotation vectors, in place: rates of joints."""
    balls = sizes[sizes[BALL_TABLE] :]
    for ball in range(sizes[BALLS]):
        row = balls[ball]
        at = sizes[MOTION] + row
        x, y, z = state[at], state[at + 1], state[at + 2]
        c1, c2, _, _ = _right_coefficients(x * x + y * y + z * z)
        for j in range(columns.shape[1]):
            a, b, c = columns[row, j], columns[row + 1, j], columns[row + 2, j]
            u0, u1, u2 = y * c - z * b, z * a - x * c, x * b - y * a
            columns[row, j] = a - c1 * u0 + c2 * (y * u2 - z * u1)
            columns[row + 1, j] = b - c1 * u1 + c2 * (z * u0 - x * u2)
            columns[row + 2, j] = c - c1 * u2 + c2 * (x * u1 - y * u0)


@_inline
def _rows_of(links, k):
    """First and last row (excluded) of a link's motion."""
    ball = links[k, BALL] == 1
    first = links[k, MOTION_ROW] if ball else k
    return first, first + (3 if ball else 1)


@_jit
def _world_axes(sizes, links, constants, state, poses):
    """Twists of all rows about the origin, world axes, to AXIS."""
    rows = sizes[ROWS]
    screw, axis = matrix(constants, sizes[SCREW], rows, 6), matrix(state, sizes[AXIS], rows, 6)
    at = sizes[FIXED] + ORIGIN
    ox, oy, oz = constants[at], constants[at + 1], constants[at + 2]
    for k in range(sizes[LINKS]):
        T = poses[links[k, PLACE]]
        px, py, pz = T[0, 3] - ox, T[1, 3] - oy, T[2, 3] - oz
        first, last = _rows_of(links, k)
        for row in range(first, last):
            a, b, c = screw[row, 0], screw[row, 1], screw[row, 2]
            d, e, f = screw[row, 3], screw[row, 4], screw[row, 5]
            ax = T[0, 0] * d + T[0, 1] * e + T[0, 2] * f
            ay = T[1, 0] * d + T[1, 1] * e + T[1, 2] * f
            az = T[2, 0] * d + T[2, 1] * e + T[2, 2] * f
            axis[row, 0] = T[0, 0] * a + T[0, 1] * b + T[0, 2] * c + py * az - pz * ay
            axis[row, 1] = T[1, 0] * a + T[1, 1] * b + T[1, 2] * c + pz * ax - px * az
            axis[row, 2] = T[2, 0] * a + T[2, 1] * b + T[2, 2] * c + px * ay - py * ax
            axis[row, 3], axis[row, 4], axis[row, 5] = ax, ay, az


@_jit
def _sweep_columns(columns, sizes, links, state, out):
    """Twists of all links per column of joint motions (rows, c): `out` (places, 6 c), component by component."""
    count, axis = columns.shape[1], matrix(state, sizes[AXIS], sizes[ROWS], 6)
    for i in range(6 * count):
        out[out.shape[0] - 1, i] = 0.0
        out[out.shape[0] - 2, i] = 0.0
    for k in range(sizes[LINKS]):
        here, above = links[k, PLACE], links[k, PARENT]
        first, last = _rows_of(links, k)
        for i in range(6):
            a, start = axis[first, i], i * count
            for j in range(count):
                out[here, start + j] = out[above, start + j] + a * columns[first, j]
        for row in range(first + 1, last):
            for i in range(6):
                a, start = axis[row, i], i * count
                for j in range(count):
                    out[here, start + j] += a * columns[row, j]


@_jit
def _measure_gaps(sizes, constants, state, poses):
    """Gaps of the closing rows, in radii and radians, to GAP. Returns the largest."""
    loops, chosen = sizes[sizes[LOOP_TABLE] :], sizes[sizes[ROW_TABLE] :]
    rows, gap, worst = sizes[ROWS], state[sizes[GAP] :], 0.0
    coupling = matrix(constants, sizes[COUPLING], sizes[COUPLINGS], rows)
    length = constants[sizes[FIXED] + LENGTH]
    for i in range(sizes[CLOSING]):
        loop, component = chosen[i * ROW_SIZE + OF], chosen[i * ROW_SIZE + COMPONENT]
        total = 0.0
        if loop < 0:
            for k in range(rows):
                total += coupling[component, k] * state[sizes[MOTION] + k]
        else:
            A, B = poses[loops[loop * LOOP_SIZE + COPY]], poses[loops[loop * LOOP_SIZE + ORIGINAL]]
            if component < 3:
                total = (A[component, 3] - B[component, 3]) / length
            else:
                # rotation vector of A B^T, world axes, up to third powers of the gap
                a, b = (component - 2) % 3, (component - 1) % 3
                for j in range(3):
                    total += 0.5 * (A[b, j] * B[a, j] - A[a, j] * B[b, j])
        gap[i] = total
        worst = max(worst, abs(total))
    return worst


@_jit
def _gap_rates(columns, sweep, sizes, constants, state, poses, out):
    """Rates of the gaps per column of joint motions, whose twists are in `sweep`: `out` (r, columns)."""
    loops, chosen = sizes[sizes[LOOP_TABLE] :], sizes[sizes[ROW_TABLE] :]
    count, rows = columns.shape[1], sizes[ROWS]
    coupling = matrix(constants, sizes[COUPLING], sizes[COUPLINGS], rows)
    length = constants[sizes[FIXED] + LENGTH]
    for i in range(sizes[CLOSING]):
        loop, component = chosen[i * ROW_SIZE + OF], chosen[i * ROW_SIZE + COMPONENT]
        if loop < 0:
            for j in range(count):
                out[i, j] = 0.0
            for k in range(rows):
                share = coupling[component, k]
                if share != 0.0:
                    for j in range(count):
                        out[i, j] += share * columns[k, j]
            continue
        one, other = loops[loop * LOOP_SIZE + COPY], loops[loop * LOOP_SIZE + ORIGINAL]
        at = component * count
        if component >= 3:
            for j in range(count):
                out[i, j] = sweep[one, at + j] - sweep[other, at + j]
            continue
        # velocity of the origin: v + ω x p
        a, b = (component + 1) % 3, (component + 2) % 3
        oa, ob = constants[sizes[FIXED] + ORIGIN + a], constants[sizes[FIXED] + ORIGIN + b]
        pa, pb = poses[one, a, 3] - oa, poses[one, b, 3] - ob
        ra, rb = poses[other, a, 3] - oa, poses[other, b, 3] - ob
        sa, sb = (3 + a) * count, (3 + b) * count
        for j in range(count):
            here = sweep[one, at + j] + sweep[one, sa + j] * pb - sweep[one, sb + j] * pa
            there = sweep[other, at + j] + sweep[other, sa + j] * rb - sweep[other, sb + j] * ra
            out[i, j] = (here - there) / length


@_jit
def _closing_rates(sizes, links, constants, state, poses):
    """C as rates of joints, to CLOSERS, and the rates G C of the gaps, to PIVOT; AXIS is that of the poses."""
    rows, r = sizes[ROWS], sizes[CLOSING]
    closers, sweep = matrix(state, sizes[CLOSERS], rows, r), matrix(state, sizes[OPEN], poses.shape[0], 6 * r)
    for i in range(rows * r):
        state[sizes[CLOSERS] + i] = constants[sizes[CLOSE] + i]
    _turn_rows(sizes, state, closers)
    _sweep_columns(closers, sizes, links, state, sweep)
    _gap_rates(closers, sweep, sizes, constants, state, poses, matrix(state, sizes[PIVOT], r, r))


@_jit
def locate(y, sizes, links, constants, state, poses):
    """Poses at coordinates `y` with closed loops, from the multipliers of the last call. False: they do not close."""
    r = sizes[CLOSING]
    _displace(y, sizes, constants, state)
    _place(sizes, links, constants, state, poses)
    if r == 0:
        return True
    mu, step = state[sizes[MULTIPLIERS] :], matrix(state, sizes[ANSWER], r, 1)
    for _ in range(ITERATIONS):
        worst = _measure_gaps(sizes, constants, state, poses)
        if worst <= TOLERANCE:
            return True
        if not worst < inf:
            return False
        _world_axes(sizes, links, constants, state, poses)
        _closing_rates(sizes, links, constants, state, poses)
        for i in range(r):
            step[i, 0] = state[sizes[GAP] + i]
        if _eliminate(matrix(state, sizes[PIVOT], r, r), step) < 1e-9:
            return False
        for i in range(r):
            mu[i] -= step[i, 0]
        _displace(y, sizes, constants, state)
        _place(sizes, links, constants, state, poses)
    return _measure_gaps(sizes, constants, state, poses) <= 1e4 * TOLERANCE


@_jit
def sweep_tangent(T, sizes, links, state, poses):
    """Twists of all links per coordinate at the tangent T, (rows, width), to SWEEP, (places, 6, width)."""
    width, places = sizes[WIDTH], poses.shape[0]
    size, start = 6 * width, sizes[SWEEP]
    for i in range(start + (places - 2) * size, start + places * size):
        state[i] = 0.0
    for k in range(sizes[LINKS]):
        here, above = start + links[k, PLACE] * size, start + links[k, PARENT] * size
        first, last = _rows_of(links, k)
        add_twist(state, sizes[AXIS] + 6 * first, T, first * width, width, state, above, state, here)
        for row in range(first + 1, last):
            add_twist(state, sizes[AXIS] + 6 * row, T, row * width, width, state, here, state, here)


@_inline
def _tangent_of(sizes, constants, state):
    """Tangent T, (rows, width): Φ if it is the same everywhere."""
    if sizes[PLAIN] == 1:
        return matrix(constants, sizes[PHI], sizes[ROWS], sizes[WIDTH])
    return matrix(state, sizes[TANGENT], sizes[ROWS], sizes[WIDTH])


@_jit
def find_tangent(y, sizes, links, constants, state, poses):
    """Tangent T, (rows, width), to TANGENT unless it is Φ, and AXIS, at closed poses."""
    n, rows, r, width = sizes[COORDINATES], sizes[ROWS], sizes[CLOSING], sizes[WIDTH]
    _world_axes(sizes, links, constants, state, poses)
    if sizes[PLAIN] == 1:
        return
    T = matrix(state, sizes[TANGENT], rows, width)
    for i in range(rows * width):
        state[sizes[TANGENT] + i] = constants[sizes[PHI] + i]
    if sizes[CURVED] == 1:
        curvature = matrix(constants, sizes[CURVATURE], n * n, rows)
        for i in range(n):
            for j in range(n):
                for k in range(rows):
                    T[k, j] += y[i] * curvature[i * n + j, k]
    _turn_rows(sizes, state, T)
    if r > 0:
        _closing_rates(sizes, links, constants, state, poses)
        sweep_tangent(T, sizes, links, state, poses)
        X, sweep = (
            matrix(state, sizes[ANSWER], r, width),
            matrix(state, sizes[SWEEP], poses.shape[0], 6 * width),
        )
        _gap_rates(T, sweep, sizes, constants, state, poses, X)
        _eliminate(matrix(state, sizes[PIVOT], r, r), X)
        _subtract_closing(T, X, sizes, state)


@_jit
def _subtract_closing(columns, X, sizes, state):
    """`columns -= C X`, (rows, c), with C as rates of joints."""
    rows, r = sizes[ROWS], sizes[CLOSING]
    closers = matrix(state, sizes[CLOSERS], rows, r)
    for k in range(rows):
        for c in range(r):
            share = closers[k, c]
            if share != 0.0:
                for j in range(columns.shape[1]):
                    columns[k, j] -= share * X[c, j]


# --- forces and inertia


@_jit
def _find_rates(v, sizes, constants, state):
    """Rates of all rows, `T v`, to RATE."""
    n, rows = sizes[COORDINATES], sizes[ROWS]
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
def _find_bias(v, sizes, links, constants, state, poses):
    """Accelerations of all rows that curvature, balls and loops cause at constant `v`, to BIAS; after `_find_rates`."""
    n, rows, r = sizes[COORDINATES], sizes[ROWS], sizes[CLOSING]
    bias = state[sizes[BIAS] : sizes[BIAS] + rows]
    for k in range(rows):
        bias[k] = 0.0
    if sizes[PLAIN] == 1:
        return
    column = matrix(state, sizes[BIAS], rows, 1)
    if sizes[CURVED] == 1:
        curvature = matrix(constants, sizes[CURVATURE], n * n, rows)
        for i in range(n):
            for j in range(n):
                for k in range(rows):
                    bias[k] += v[i] * v[j] * curvature[i * n + j, k]
    _turn_rows(sizes, state, column)
    balls = sizes[sizes[BALL_TABLE] :]
    for ball in range(sizes[BALLS]):
        _turn_bias(balls[ball], sizes, state)
    if r == 0:
        return
    _sweep_accelerations(sizes, links, constants, state, poses)
    acceleration = matrix(state, sizes[ACCELERATION], poses.shape[0], 6)
    twist = matrix(state, sizes[TWIST], poses.shape[0], 6)
    X = matrix(state, sizes[ANSWER], r, 1)
    _gap_rates(column, acceleration, sizes, constants, state, poses, X)
    # velocities of origins turn with the links: ω x (v + ω x p), equal on both sides of a closed loop up to its gap
    loops, chosen = sizes[sizes[LOOP_TABLE] :], sizes[sizes[ROW_TABLE] :]
    for i in range(r):
        loop, component = chosen[i * ROW_SIZE + OF], chosen[i * ROW_SIZE + COMPONENT]
        if loop >= 0 and component < 3:
            one, other = loops[loop * LOOP_SIZE + COPY], loops[loop * LOOP_SIZE + ORIGINAL]
            change = _centripetal(component, twist[one], poses[one], sizes, constants)
            change -= _centripetal(component, twist[other], poses[other], sizes, constants)
            X[i, 0] += change / constants[sizes[FIXED] + LENGTH]
    _closing_rates(sizes, links, constants, state, poses)
    _eliminate(matrix(state, sizes[PIVOT], r, r), X)
    _subtract_closing(column, X, sizes, state)


@_jit
def _centripetal(component, twist, pose, sizes, constants):
    """Component of `ω x (v + ω x p)` of a link's origin p."""
    at = sizes[FIXED] + ORIGIN
    px, py, pz = pose[0, 3] - constants[at], pose[1, 3] - constants[at + 1], pose[2, 3] - constants[at + 2]
    wx, wy, wz = twist[3], twist[4], twist[5]
    vx, vy, vz = twist[0] + wy * pz - wz * py, twist[1] + wz * px - wx * pz, twist[2] + wx * py - wy * px
    if component == 0:
        return wy * vz - wz * vy
    if component == 1:
        return wz * vx - wx * vz
    return wx * vy - wy * vx


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
def _sweep_accelerations(sizes, links, constants, state, poses):
    """Twists and, at the accelerations BIAS of the rows, accelerations of all links, to TWIST and ACCELERATION."""
    places, rows = poses.shape[0], sizes[ROWS]
    twist, acceleration = (
        matrix(state, sizes[TWIST], places, 6),
        matrix(state, sizes[ACCELERATION], places, 6),
    )
    axis, rate, bias = matrix(state, sizes[AXIS], rows, 6), state[sizes[RATE] :], state[sizes[BIAS] :]
    for end in range(places - 2, places):
        for i in range(6):
            twist[end, i] = acceleration[end, i] = 0.0
    for k in range(sizes[LINKS]):
        here, above = links[k, PLACE], links[k, PARENT]
        v0, v1, v2 = twist[above, 0], twist[above, 1], twist[above, 2]
        w0, w1, w2 = twist[above, 3], twist[above, 4], twist[above, 5]
        a0 = a1 = a2 = a3 = a4 = a5 = 0.0
        b0 = b1 = b2 = b3 = b4 = b5 = 0.0
        first, last = _rows_of(links, k)
        for row in range(first, last):
            x, y = rate[row], bias[row]
            a0, a1, a2 = a0 + axis[row, 0] * x, a1 + axis[row, 1] * x, a2 + axis[row, 2] * x
            a3, a4, a5 = a3 + axis[row, 3] * x, a4 + axis[row, 4] * x, a5 + axis[row, 5] * x
            b0, b1, b2 = b0 + axis[row, 0] * y, b1 + axis[row, 1] * y, b2 + axis[row, 2] * y
            b3, b4, b5 = b3 + axis[row, 3] * y, b4 + axis[row, 4] * y, b5 + axis[row, 5] * y
        out, change = twist[here], acceleration[here]
        out[0], out[1], out[2], out[3], out[4], out[5] = v0 + a0, v1 + a1, v2 + a2, w0 + a3, w1 + a4, w2 + a5
        # the axes turn with the parent: V x S q'
        change[0] = acceleration[above, 0] + b0 + w1 * a2 - w2 * a1 + v1 * a5 - v2 * a4
        change[1] = acceleration[above, 1] + b1 + w2 * a0 - w0 * a2 + v2 * a3 - v0 * a5
        change[2] = acceleration[above, 2] + b2 + w0 * a1 - w1 * a0 + v0 * a4 - v1 * a3
        change[3] = acceleration[above, 3] + b3 + w1 * a5 - w2 * a4
        change[4] = acceleration[above, 4] + b4 + w2 * a3 - w0 * a5
        change[5] = acceleration[above, 5] + b5 + w0 * a4 - w1 * a3


@_jit
def _link_moments(body, T, sizes, constants):
    """Mass, first and second moments of a link's body about the origin, world axes: ten numbers."""
    at = sizes[FIXED] + ORIGIN
    m, x, y, z = body[MASS], body[COM], body[COM + 1], body[COM + 2]
    cx = T[0, 0] * x + T[0, 1] * y + T[0, 2] * z + T[0, 3] - constants[at]
    cy = T[1, 0] * x + T[1, 1] * y + T[1, 2] * z + T[1, 3] - constants[at + 1]
    cz = T[2, 0] * x + T[2, 1] * y + T[2, 2] * z + T[2, 3] - constants[at + 2]
    a, b, c = body[ABOUT], body[ABOUT + 1], body[ABOUT + 2]
    d, e, f = body[ABOUT + 3], body[ABOUT + 4], body[ABOUT + 5]
    # R I, row by row, then times R^T
    p00, p01, p02 = _times(T, 0, a, b, c, d, e, f)
    p10, p11, p12 = _times(T, 1, a, b, c, d, e, f)
    p20, p21, p22 = _times(T, 2, a, b, c, d, e, f)
    hx, hy, hz = m * cx, m * cy, m * cz
    return (
        m, hx, hy, hz,
        p00 * T[0, 0] + p01 * T[0, 1] + p02 * T[0, 2] + hy * cy + hz * cz,
        p00 * T[1, 0] + p01 * T[1, 1] + p02 * T[1, 2] - hx * cy,
        p00 * T[2, 0] + p01 * T[2, 1] + p02 * T[2, 2] - hx * cz,
        p10 * T[1, 0] + p11 * T[1, 1] + p12 * T[1, 2] + hx * cx + hz * cz,
        p10 * T[2, 0] + p11 * T[2, 1] + p12 * T[2, 2] - hy * cz,
        p20 * T[2, 0] + p21 * T[2, 1] + p22 * T[2, 2] + hx * cx + hy * cy,
    )  # fmt: skip


@_inline
def _times(T, i, a, b, c, d, e, f):
    """Row i of a rotation times a symmetric matrix."""
    x, y, z = T[i, 0], T[i, 1], T[i, 2]
    return x * a + y * b + z * c, x * b + y * d + z * e, x * c + y * e + z * f


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
    for i in range(sizes[LOAD], sizes[LOAD] + 6 * poses.shape[0]):
        state[i] = 0.0


@_jit
def _add_load(row, link, share, sizes, constants, state, poses):
    """Add a share of a load on the link at this place to LOAD."""
    at, pose = sizes[LOAD] + 6 * link, poses[link]
    fx, fy, fz, tx, ty, tz = wrench_in_world(row, pose)
    o = sizes[FIXED] + ORIGIN
    x, y, z = pose[0, 3] - constants[o], pose[1, 3] - constants[o + 1], pose[2, 3] - constants[o + 2]
    state[at] += share * fx
    state[at + 1] += share * fy
    state[at + 2] += share * fz
    state[at + 3] += share * (tx + y * fz - z * fy)
    state[at + 4] += share * (ty + z * fx - x * fz)
    state[at + 5] += share * (tz + x * fy - y * fx)


@_jit
def _collect_loads(share, sizes, constants, state, poses):
    """Wrenches on links about the origin, world axes: held ones, and a share of those of the simulation; to LOAD."""
    _clear_loads(sizes, state, poses)
    for i in range(sizes[HELD]):
        row = constants[sizes[HELD_ROWS] + i * LOAD_SIZE :]
        _add_load(row, int(row[LINK]), 1.0, sizes, constants, state, poses)
    for i in range(sizes[SLOTS]):
        row = state[sizes[WRENCH] + i * LOAD_SIZE :]
        if row[ACTS] != 0.0:
            _add_load(row, int(row[LINK]), share, sizes, constants, state, poses)


@_jit
def _tendon_gradient(tendon, sizes, constants, state):
    """Change of a tendon's length per motion of the rows, to GRADIENT. Returns its stretch from y = 0.

    The coordinates of a ball are its rotation vector x from rest; x' = J^-1 ω with J the right Jacobian.
    """
    rows, motion, out = sizes[ROWS], state[sizes[MOTION] :], state[sizes[GRADIENT] :]
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
    rows, motion = sizes[ROWS], state[sizes[MOTION] :]
    joint, motor = matrix(constants, sizes[JOINT], rows, JOINT_SIZE), constants[sizes[MOTOR] :]
    for k in range(rows):
        out[k] = joint[k, STIFFNESS] * motion[k] + joint[k, PULL] - motor[k]
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


@_jit
def _ball_rotation(rest, x, y, z):
    """Rotation vector of a ball from the rest of its spring, at the rotation vector x, y, z from q0."""
    w, a, b, c = se3.quat_turn(rest[TURN], rest[TURN + 1], rest[TURN + 2], rest[TURN + 3], x, y, z)
    return se3.log_vector(w, a, b, c)


@_jit
def _elastic_energy(sizes, constants, state):
    """Energy of springs and tendons at MOTION, J, up to a constant."""
    rows, motion = sizes[ROWS], state[sizes[MOTION] :]
    joint, out = matrix(constants, sizes[JOINT], rows, JOINT_SIZE), 0.0
    for k in range(rows):
        out += motion[k] * (0.5 * joint[k, STIFFNESS] * motion[k] + joint[k, PULL])
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

    After `locate`, `find_tangent` and `_collect_loads`; LOAD becomes sums over subtrees.
    """
    rows, places, width = sizes[ROWS], poses.shape[0], sizes[WIDTH]
    T, at = _tangent_of(sizes, constants, state), sizes[FIXED] + GRAVITY
    load, axis = matrix(state, sizes[LOAD], places, 6), matrix(state, sizes[AXIS], rows, 6)
    torque = state[sizes[TORQUE] :]
    _joint_forces(sizes, constants, state, torque)
    gx, gy, gz = constants[at], constants[at + 1], constants[at + 2]
    if gx != 0.0 or gy != 0.0 or gz != 0.0:
        bodies = matrix(constants, sizes[BODY], sizes[LINKS], BODY_SIZE)
        for k in range(sizes[LINKS]):
            if bodies[k, MASS] > 0.0:
                here = links[k, PLACE]
                _add_weight(bodies[k], poses[here], gx, gy, gz, sizes, constants, load[here])
    for i in range(width):
        out[i] = 0.0
    for k in range(sizes[LINKS] - 1, -1, -1):
        f, above = load[links[k, PLACE]], load[links[k, PARENT]]
        f0, f1, f2, f3, f4, f5 = f[0], f[1], f[2], f[3], f[4], f[5]
        first, last = _rows_of(links, k)
        for row in range(first, last):
            S = axis[row]
            total = S[0] * f0 + S[1] * f1 + S[2] * f2 + S[3] * f3 + S[4] * f4 + S[5] * f5 - torque[row]
            add_rows(total, T, row * width, width, out, 0)
        above[0] += f0
        above[1] += f1
        above[2] += f2
        above[3] += f3
        above[4] += f4
        above[5] += f5


@_jit
def _add_weight(body, T, gx, gy, gz, sizes, constants, load):
    """Add the weight of a link's body, about the origin."""
    at = sizes[FIXED] + ORIGIN
    m, x, y, z = body[MASS], body[COM], body[COM + 1], body[COM + 2]
    cx = T[0, 0] * x + T[0, 1] * y + T[0, 2] * z + T[0, 3] - constants[at]
    cy = T[1, 0] * x + T[1, 1] * y + T[1, 2] * z + T[1, 3] - constants[at + 1]
    cz = T[2, 0] * x + T[2, 1] * y + T[2, 2] * z + T[2, 3] - constants[at + 2]
    fx, fy, fz = m * gx, m * gy, m * gz
    load[0] += fx
    load[1] += fy
    load[2] += fz
    load[3] += cy * fz - cz * fy
    load[4] += cz * fx - cx * fz
    load[5] += cx * fy - cy * fx


@_jit
def _damping_force(sizes, constants, state, T, out):
    """Force of the dampers of joints and tendons at RATE on the coordinates, to `out` (width,)."""
    width, rows, rate = sizes[WIDTH], sizes[ROWS], state[sizes[RATE] :]
    joint = matrix(constants, sizes[JOINT], rows, JOINT_SIZE)
    for j in range(width):
        out[j] = 0.0
    for k in range(rows):
        total = joint[k, DAMPER] * rate[k]
        add_rows(-total, T, k * width, width, out, 0)
    for t in range(sizes[TENDONS]):
        _tendon_gradient(t, sizes, constants, state)
        row, speed = state[sizes[GRADIENT] :], 0.0
        for k in range(rows):
            speed += row[k] * rate[k]
        speed *= constants[sizes[TENSION] + t * TENSION_SIZE + DASHPOT]
        for k in range(rows):
            add_rows(-row[k] * speed, T, k * width, width, out, 0)


@_jit
def _joint_work(sizes, constants, state):
    """Work of springs and tendons over displacements RATE of the rows at their forces TORQUE, and twice the power of
    dampers at those rates; motors are no springs.
    """
    rows, rate, torque = sizes[ROWS], state[sizes[RATE] :], state[sizes[TORQUE] :]
    joint, motor = matrix(constants, sizes[JOINT], rows, JOINT_SIZE), constants[sizes[MOTOR] :]
    stored = lost = 0.0
    for k in range(rows):
        stored += rate[k] * (torque[k] + motor[k])
        lost += joint[k, DAMPER] * rate[k] * rate[k]
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

    After `find_tangent`, `_find_rates` and `_find_bias`. Per body, mass times the acceleration of its centre, and the
    change of its angular momentum about it in its own axes.
    """
    rows, places, width = sizes[ROWS], poses.shape[0], sizes[WIDTH]
    T, axis, twist = (
        _tangent_of(sizes, constants, state),
        matrix(state, sizes[AXIS], rows, 6),
        matrix(state, sizes[TWIST], places, 6),
    )
    acceleration, force = (
        matrix(state, sizes[ACCELERATION], places, 6),
        matrix(state, sizes[FORCE], places, 6),
    )
    bodies, joint = (
        matrix(constants, sizes[BODY], sizes[LINKS], BODY_SIZE),
        matrix(constants, sizes[JOINT], rows, 4),
    )
    bias, origin = state[sizes[BIAS] :], constants[sizes[FIXED] + ORIGIN :]
    ox, oy, oz = origin[0], origin[1], origin[2]
    _sweep_accelerations(sizes, links, constants, state, poses)
    for k in range(sizes[LINKS]):
        here, body = links[k, PLACE], bodies[k]
        f, m = force[here], body[MASS]
        if m == 0.0:
            for i in range(6):
                f[i] = 0.0
            continue
        T_, V, A = poses[here], twist[here], acceleration[here]
        r00, r01, r02, px = T_[0, 0], T_[0, 1], T_[0, 2], T_[0, 3] - ox
        r10, r11, r12, py = T_[1, 0], T_[1, 1], T_[1, 2], T_[1, 3] - oy
        r20, r21, r22, pz = T_[2, 0], T_[2, 1], T_[2, 2], T_[2, 3] - oz
        x, y, z = body[COM], body[COM + 1], body[COM + 2]
        cx, cy, cz = (
            r00 * x + r01 * y + r02 * z + px,
            r10 * x + r11 * y + r12 * z + py,
            r20 * x + r21 * y + r22 * z + pz,
        )
        w0, w1, w2, e0, e1, e2 = V[3], V[4], V[5], A[3], A[4], A[5]
        vx, vy, vz = V[0] + w1 * cz - w2 * cy, V[1] + w2 * cx - w0 * cz, V[2] + w0 * cy - w1 * cx
        fx = m * (A[0] + e1 * cz - e2 * cy + w1 * vz - w2 * vy)
        fy = m * (A[1] + e2 * cx - e0 * cz + w2 * vx - w0 * vz)
        fz = m * (A[2] + e0 * cy - e1 * cx + w0 * vy - w1 * vx)
        a, b, c = (
            r00 * w0 + r10 * w1 + r20 * w2,
            r01 * w0 + r11 * w1 + r21 * w2,
            r02 * w0 + r12 * w1 + r22 * w2,
        )
        p, q, r = (
            r00 * e0 + r10 * e1 + r20 * e2,
            r01 * e0 + r11 * e1 + r21 * e2,
            r02 * e0 + r12 * e1 + r22 * e2,
        )
        xx, xy, xz = body[ABOUT], body[ABOUT + 1], body[ABOUT + 2]
        yy, yz, zz = body[ABOUT + 3], body[ABOUT + 4], body[ABOUT + 5]
        lx, ly, lz = xx * a + xy * b + xz * c, xy * a + yy * b + yz * c, xz * a + yz * b + zz * c
        tx = xx * p + xy * q + xz * r + b * lz - c * ly
        ty = xy * p + yy * q + yz * r + c * lx - a * lz
        tz = xz * p + yz * q + zz * r + a * ly - b * lx
        f[0], f[1], f[2] = fx, fy, fz
        f[3] = r00 * tx + r01 * ty + r02 * tz + cy * fz - cz * fy
        f[4] = r10 * tx + r11 * ty + r12 * tz + cz * fx - cx * fz
        f[5] = r20 * tx + r21 * ty + r22 * tz + cx * fy - cy * fx
    for i in range(width):
        out[i] = 0.0
    for k in range(sizes[LINKS] - 1, -1, -1):
        f, above = force[links[k, PLACE]], force[links[k, PARENT]]
        f0, f1, f2, f3, f4, f5 = f[0], f[1], f[2], f[3], f[4], f[5]
        first, last = _rows_of(links, k)
        for row in range(first, last):
            S = axis[row]
            total = S[0] * f0 + S[1] * f1 + S[2] * f2 + S[3] * f3 + S[4] * f4 + S[5] * f5
            add_rows(total + joint[row, ARMATURE] * bias[row], T, row * width, width, out, 0)
        above[0] += f0
        above[1] += f1
        above[2] += f2
        above[3] += f3
        above[4] += f4
        above[5] += f5


@_jit
def _find_mass(sizes, links, constants, state, poses, out):
    """Inertia of the coordinates, T^T M T, to `out` (n, width); after `find_tangent`.

    A sum over rows k of the tangent: with c the momentum of all that row k moves at unit rate, U the twists per
    coordinate of the link above and d = c . axis, T_k^T (c U + ½ d T_k), and its transpose (composite rigid bodies).
    """
    n, rows, places, width = sizes[COORDINATES], sizes[ROWS], poses.shape[0], sizes[WIDTH]
    T, axis = _tangent_of(sizes, constants, state), matrix(state, sizes[AXIS], rows, 6)
    subtree = matrix(state, sizes[SUBTREE], places, SUBTREE_SIZE)
    bodies, joint = (
        matrix(constants, sizes[BODY], sizes[LINKS], BODY_SIZE),
        matrix(constants, sizes[JOINT], rows, 4),
    )
    sweep_tangent(T, sizes, links, state, poses)
    for k in range(sizes[LINKS]):
        here = links[k, PLACE]
        moments = subtree[here]
        if bodies[k, MASS] == 0.0:
            for i in range(SUBTREE_SIZE):
                moments[i] = 0.0
            continue
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = _link_moments(bodies[k], poses[here], sizes, constants)
        moments[0], moments[1], moments[2], moments[3], moments[4] = m, hx, hy, hz, xx
        moments[5], moments[6], moments[7], moments[8], moments[9] = xy, xz, yy, yz, zz
    for i in range(n):
        for j in range(width):
            out[i, j] = 0.0
    for k in range(sizes[LINKS] - 1, -1, -1):
        I, above = subtree[links[k, PLACE]], subtree[links[k, PARENT]]
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = I[0], I[1], I[2], I[3], I[4], I[5], I[6], I[7], I[8], I[9]
        at = sizes[SWEEP] + 6 * width * links[k, PARENT]
        first, last = _rows_of(links, k)
        for row in range(first, last):
            S = axis[row]
            s0, s1, s2, s3, s4, s5 = S[0], S[1], S[2], S[3], S[4], S[5]
            c = _momentum(m, hx, hy, hz, xx, xy, xz, yy, yz, zz, s0, s1, s2, s3, s4, s5)
            own = c[0] * s0 + c[1] * s1 + c[2] * s2 + c[3] * s3 + c[4] * s4 + c[5] * s5 + joint[row, ARMATURE]
            add_inertia(c, 0.5 * own, T, row * width, n, width, state, at, out)
            for before in range(first, row):  # rows of the same ball
                B = axis[before]
                share = c[0] * B[0] + c[1] * B[1] + c[2] * B[2] + c[3] * B[3] + c[4] * B[4] + c[5] * B[5]
                for i in range(n):
                    add_rows(T[row, i] * share, T, before * width, width, out, i * width)
        above[0] += m
        above[1] += hx
        above[2] += hy
        above[3] += hz
        above[4] += xx
        above[5] += xy
        above[6] += xz
        above[7] += yy
        above[8] += yz
        above[9] += zz
    for i in range(n):
        for j in range(i + 1):
            total = out[i, j] + out[j, i]
            out[i, j] = out[j, i] = total


@_jit
def _kinetic_energy(sizes, links, constants, state, poses):
    """Kinetic energy of all links and rotors at RATE, J; AXIS is that of the poses."""
    rows, places = sizes[ROWS], poses.shape[0]
    twist, axis = matrix(state, sizes[TWIST], places, 6), matrix(state, sizes[AXIS], rows, 6)
    bodies, joint = (
        matrix(constants, sizes[BODY], sizes[LINKS], BODY_SIZE),
        matrix(constants, sizes[JOINT], rows, 4),
    )
    rate, origin, out = state[sizes[RATE] :], constants[sizes[FIXED] + ORIGIN :], 0.0
    for end in range(places - 2, places):
        for i in range(6):
            twist[end, i] = 0.0
    for k in range(sizes[LINKS]):
        here, above = links[k, PLACE], links[k, PARENT]
        v, V = twist[here], twist[above]
        for i in range(6):
            v[i] = V[i]
        first, last = _rows_of(links, k)
        for row in range(first, last):
            x = rate[row]
            out += joint[row, ARMATURE] * x * x
            for i in range(6):
                v[i] += axis[row, i] * x
        body = bodies[k]
        if body[MASS] > 0.0:
            T, x, y, z = poses[here], body[COM], body[COM + 1], body[COM + 2]
            cx = T[0, 0] * x + T[0, 1] * y + T[0, 2] * z + T[0, 3] - origin[0]
            cy = T[1, 0] * x + T[1, 1] * y + T[1, 2] * z + T[1, 3] - origin[1]
            cz = T[2, 0] * x + T[2, 1] * y + T[2, 2] * z + T[2, 3] - origin[2]
            x, y, z = v[0] + v[4] * cz - v[5] * cy, v[1] + v[5] * cx - v[3] * cz, v[2] + v[3] * cy - v[4] * cx
            out += body[MASS] * (x * x + y * y + z * z)
            x = T[0, 0] * v[3] + T[1, 0] * v[4] + T[2, 0] * v[5]
            y = T[0, 1] * v[3] + T[1, 1] * v[4] + T[2, 1] * v[5]
            z = T[0, 2] * v[3] + T[1, 2] * v[4] + T[2, 2] * v[5]
            out += x * (body[ABOUT] * x + 2.0 * (body[ABOUT + 1] * y + body[ABOUT + 2] * z))
            out += y * (body[ABOUT + 3] * y + 2.0 * body[ABOUT + 4] * z) + z * z * body[ABOUT + 5]
    return 0.5 * out


# --- all of it


@_jit
def evaluate(y, v, share, inertia, sizes, links, constants, state, poses, loads, drag, inertial, mass):
    """Mechanics at coordinates and rates: forces on the coordinates, (width,) each, and their inertia, (n, width).

    `loads` gets the force of springs, motors, weights and a share of the loads, `drag` that of dampers, `inertial` that
    of inertia at constant rates; `mass` is computed if `inertia`. False: loops do not close.
    """
    if not locate(y, sizes, links, constants, state, poses):
        return False
    find_tangent(y, sizes, links, constants, state, poses)
    _collect_loads(share, sizes, constants, state, poses)
    _static_force(sizes, links, constants, state, poses, loads)
    _find_rates(v, sizes, constants, state)
    _damping_force(sizes, constants, state, _tangent_of(sizes, constants, state), drag)
    _find_bias(v, sizes, links, constants, state, poses)
    _inertia_force(sizes, links, constants, state, poses, inertial)
    if inertia:
        _find_mass(sizes, links, constants, state, poses, mass)
    return True


@_jit
def residual(y, share, sizes, links, constants, state, poses, out):
    """Force on the coordinates at rest, (n,), under a share of the loads. False: loops do not close."""
    if not locate(y, sizes, links, constants, state, poses):
        return False
    find_tangent(y, sizes, links, constants, state, poses)
    _collect_loads(share, sizes, constants, state, poses)
    _static_force(sizes, links, constants, state, poses, out)
    return True


# --- small tools


@_jit
def _right_coefficients(square):
    """(1 - cos θ)/θ², (θ - sin θ)/θ³ and their derivatives with respect to θ², from θ²."""
    t = square
    if t < 0.25:
        c1 = 1 / 2 - t * (1 / 24 - t * (1 / 720 - t * (1 / 40320 - t * (1 / 3628800 - t / 479001600))))
        c2 = 1 / 6 - t * (1 / 120 - t * (1 / 5040 - t * (1 / 362880 - t * (1 / 39916800 - t / 6227020800))))
        d1 = -1 / 24 + t * (2 / 720 - t * (3 / 40320 - t * (4 / 3628800 - t * 5 / 479001600)))
        d2 = -1 / 120 + t * (2 / 5040 - t * (3 / 362880 - t * (4 / 39916800 - t * 5 / 6227020800)))
        return c1, c2, d1, d2
    angle = sqrt(t)
    sine, half = sin(angle), sin(0.5 * angle)
    c1 = 2.0 * half * half / t
    c2 = (angle - sine) / (t * angle)
    d1 = (0.5 * sine / angle - c1) / t
    d2 = (0.5 * c1 - 1.5 * c2) / t
    return c1, c2, d1, d2


@_jit
def _eliminate(A, b):
    """Solve `A x = b` in place by Gauss elimination with row pivots; (n, n) and (n, m). Returns the smallest pivot."""
    n, count = A.shape[0], b.shape[1]
    least = inf
    for c in range(n):
        best, row = abs(A[c, c]), c
        for i in range(c + 1, n):
            if abs(A[i, c]) > best:
                best, row = abs(A[i, c]), i
        least = min(least, best)
        if not best > 0.0:
            return 0.0
        if row != c:
            for j in range(c, n):
                A[c, j], A[row, j] = A[row, j], A[c, j]
            for j in range(count):
                b[c, j], b[row, j] = b[row, j], b[c, j]
        scale = 1.0 / A[c, c]
        for i in range(c + 1, n):
            share = A[i, c] * scale
            if share != 0.0:
                for j in range(c + 1, n):
                    A[i, j] -= share * A[c, j]
                for j in range(count):
                    b[i, j] -= share * b[c, j]
    for c in range(n - 1, -1, -1):
        scale = 1.0 / A[c, c]
        for j in range(count):
            total = b[c, j]
            for i in range(c + 1, n):
                total -= A[c, i] * b[i, j]
            b[c, j] = total * scale
    return least
