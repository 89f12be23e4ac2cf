"""Places of all links on a manifold of joint coordinates, with closed loops, its tangent, and moments of links.

The manifold is that of `manifold_kernels`, whose arrays have the names of `manifold_arrays`.
"""

from math import inf, sin, sqrt

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import BALL, LANES, PARENT, PLACE, everywhere, load, matrix, store
from pliant.engines.reduced._intrinsics import MOTION as MOTION_ROW
from pliant.engines.reduced.kernels import BASIS, COORDINATES, FREE, LINKS, ROWS, add_columns, by_joints
from pliant.engines.reduced.manifold_arrays import (
    ABOVE,
    ANSWER,
    AXIS,
    BALL_LINKS,
    BALL_TABLE,
    BALLS,
    BENDING,
    BODY,
    BODY_SIZE,
    CLOSE,
    CLOSERS,
    CLOSING,
    CLOSING_WIDTH,
    COMPONENT,
    COPY,
    COUPLING,
    COUPLINGS,
    CURVATURE,
    CURVED,
    FIXED,
    GAP,
    GAP_RATES,
    LENGTH,
    LOOP_SIZE,
    LOOP_TABLE,
    MOMENT_SIZE,
    MOMENTS,
    MOTION,
    MOVED,
    MOVED_ROWS,
    MULTIPLIERS,
    OF,
    OPEN,
    ORIGIN,
    ORIGINAL,
    PHI,
    PIVOT,
    PLACED,
    PLACING,
    PLAIN,
    ROW_SIZE,
    ROW_TABLE,
    SCREW,
    SWAPS,
    SWEEP,
    TANGENT,
    TANGENT_AT,
    UNCLOSED,
    WIDTH,
)

_inline = njit(error_model="numpy", nogil=True, inline="always")
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

_SHIFT = 2  # LANES as a power of two
TOLERANCE = 1e-12  # of gaps, radii and radians
ACCEPTED = 1e-6  # gap after all iterations
ITERATIONS = 24
LEAST = 1e-4  # pivot of the rates of gaps per multiplier, one at y = 0: less is where loops cease to close
LARGE_PIVOT = 0.3  # pivot that is taken where it stands
SHRINK = 0.1  # of a gap in an iteration: if it shrinks less, rates of gaps are taken anew
FIRST, AT_REST, HERE = range(3)  # rates of gaps that closing begins with: none, those at y = 0, or PIVOT


@_jit
def _bend(x, sizes, constants, state):
    """Second derivative of the joint displacements along x, `Ψ(x, .)`, (rows, width), to BENDING."""
    n, size, at = sizes[COORDINATES], sizes[MOVED_ROWS] * sizes[WIDTH], sizes[CURVATURE]
    for b in range(0, size, LANES):
        bent = everywhere(0.0)
        for i in range(n):
            bent += x[i] * load(constants, at + i * size + b)
        store(bent, state, sizes[BENDING] + b)


@_jit
def _add_bending(share, x, sizes, state, out):
    """Add a share of `Ψ(x, x)`, after `_bend`, to rows of motion `out`."""
    bent = matrix(state, sizes[BENDING], sizes[MOVED_ROWS], sizes[WIDTH])
    for k in range(sizes[MOVED_ROWS]):
        total = 0.0
        for j in range(sizes[COORDINATES]):
            total += bent[k, j] * x[j]
        out[k] += share * total


@_jit
def _displace(y, sizes, constants, state):
    """Joint displacements `s = Φ y + ½ Ψ(y, y) + C μ` of all rows, to MOTION."""
    n, rows = sizes[COORDINATES], sizes[MOVED_ROWS]
    motion = state[sizes[MOTION] : sizes[MOTION] + rows]
    for k in range(rows):
        motion[k] = 0.0
    add_columns(matrix(constants, sizes[BASIS], n, rows), y, motion)
    if sizes[CURVED] == 1:
        _bend(y, sizes, constants, state)
        _add_bending(0.5, y, sizes, state, motion)
    if sizes[CLOSING] > 0:
        for k in range(rows):
            state[sizes[UNCLOSED] + k] = motion[k]
        _displace_closed(sizes, constants, state)


@_jit
def _displace_closed(sizes, constants, state):
    """Joint displacements at changed multipliers: those without them, UNCLOSED, and `C μ`; to MOTION."""
    rows, r, mu = sizes[MOVED_ROWS], sizes[CLOSING], state[sizes[MULTIPLIERS] :]
    close = matrix(constants, sizes[CLOSE], rows, r)
    for k in range(rows):
        total = state[sizes[UNCLOSED] + k]
        for c in range(r):
            total += close[k, c] * mu[c]
        state[sizes[MOTION] + k] = total


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


@_inline
def _column(k, size):
    """Offset of link or row k in an array of `size` numbers each, in blocks of LANES: number by number."""
    return (k >> _SHIFT) * (LANES * size) + (k & (LANES - 1))


@_jit
def _world_axes(sizes, links, constants, state, poses):
    """Poses of links with origins from the fixed point, to PLACED, and twists of all rows, world axes, to AXIS."""
    count, at = sizes[MOVED], sizes[FIXED] + ORIGIN
    ox, oy, oz = constants[at], constants[at + 1], constants[at + 2]
    for k in range(count):
        T, out = poses[links[k, PLACE]], state[sizes[PLACED] + _column(k, 12) :]
        out[0], out[LANES], out[2 * LANES], out[3 * LANES] = T[0, 0], T[0, 1], T[0, 2], T[0, 3] - ox
        out[4 * LANES], out[5 * LANES], out[6 * LANES], out[7 * LANES] = (
            T[1, 0],
            T[1, 1],
            T[1, 2],
            T[1, 3] - oy,
        )
        out[8 * LANES], out[9 * LANES], out[10 * LANES], out[11 * LANES] = (
            T[2, 0],
            T[2, 1],
            T[2, 2],
            T[2, 3] - oz,
        )
    for b in range(0, count, LANES):
        r00, r01, r02, px, r10, r11, r12, py, r20, r21, r22, pz = _twelve(state, sizes[PLACED] + 12 * b)
        a, b_, c, d, e, f = _six(constants, sizes[SCREW] + 6 * b)
        ax, ay, az = (
            r00 * d + r01 * e + r02 * f,
            r10 * d + r11 * e + r12 * f,
            r20 * d + r21 * e + r22 * f,
        )
        vx = r00 * a + r01 * b_ + r02 * c + py * az - pz * ay
        vy = r10 * a + r11 * b_ + r12 * c + pz * ax - px * az
        vz = r20 * a + r21 * b_ + r22 * c + px * ay - py * ax
        _put_six(state, sizes[AXIS] + 6 * b, vx, vy, vz, ax, ay, az)
    balls, carried = sizes[sizes[BALL_TABLE] :], sizes[sizes[BALL_LINKS] :]
    for ball in range(sizes[BALLS]):
        T = state[sizes[PLACED] + _column(carried[ball], 12) :]
        for row in range(balls[ball], balls[ball] + 3):
            S = constants[sizes[SCREW] + _column(row, 6) :]
            out = state[sizes[AXIS] + _column(row, 6) :]
            for i in range(3):
                x, y, z = T[4 * LANES * i], T[(4 * i + 1) * LANES], T[(4 * i + 2) * LANES]
                out[LANES * i] = x * S[0] + y * S[LANES] + z * S[2 * LANES]
                out[LANES * (3 + i)] = x * S[3 * LANES] + y * S[4 * LANES] + z * S[5 * LANES]
            px, py, pz = T[3 * LANES], T[7 * LANES], T[11 * LANES]
            ax, ay, az = out[3 * LANES], out[4 * LANES], out[5 * LANES]
            out[0] += py * az - pz * ay
            out[LANES] += pz * ax - px * az
            out[2 * LANES] += px * ay - py * ax


@_inline
def _six(array, at):
    """Six vectors of a block."""
    return (
        load(array, at),
        load(array, at + LANES),
        load(array, at + 2 * LANES),
        load(array, at + 3 * LANES),
        load(array, at + 4 * LANES),
        load(array, at + 5 * LANES),
    )


@_inline
def _ten(array, at):
    """Ten vectors of a block."""
    return (
        *_six(array, at),
        load(array, at + 6 * LANES),
        load(array, at + 7 * LANES),
        load(array, at + 8 * LANES),
        load(array, at + 9 * LANES),
    )


@_inline
def _twelve(array, at):
    """Twelve vectors of a block."""
    return (*_ten(array, at), load(array, at + 10 * LANES), load(array, at + 11 * LANES))


@_inline
def _put_six(array, at, a, b, c, d, e, f):
    """Write six vectors of a block."""
    store(a, array, at)
    store(b, array, at + LANES)
    store(c, array, at + 2 * LANES)
    store(d, array, at + 3 * LANES)
    store(e, array, at + 4 * LANES)
    store(f, array, at + 5 * LANES)


@_jit
def _find_moments(sizes, constants, state):
    """Mass and moments of all links about the fixed point, world axes, to MOMENTS; after `_world_axes`."""
    for b in range(0, sizes[MOVED], LANES):
        r00, r01, r02, px, r10, r11, r12, py, r20, r21, r22, pz = _twelve(state, sizes[PLACED] + 12 * b)
        m, x, y, z, xx, xy, xz, yy, yz, zz = _ten(constants, sizes[BODY] + BODY_SIZE * b)
        at = sizes[MOMENTS] + MOMENT_SIZE * b
        cx, cy, cz = (
            r00 * x + r01 * y + r02 * z + px,
            r10 * x + r11 * y + r12 * z + py,
            r20 * x + r21 * y + r22 * z + pz,
        )
        hx, hy, hz = m * cx, m * cy, m * cz
        # R I, row by row, then times R^T
        p0, p1, p2 = (
            r00 * xx + r01 * xy + r02 * xz,
            r00 * xy + r01 * yy + r02 * yz,
            r00 * xz + r01 * yz + r02 * zz,
        )
        q0, q1, q2 = (
            r10 * xx + r11 * xy + r12 * xz,
            r10 * xy + r11 * yy + r12 * yz,
            r10 * xz + r11 * yz + r12 * zz,
        )
        s0, s1, s2 = (
            r20 * xx + r21 * xy + r22 * xz,
            r20 * xy + r21 * yy + r22 * yz,
            r20 * xz + r21 * yz + r22 * zz,
        )
        store(m, state, at)
        store(hx, state, at + LANES)
        store(hy, state, at + 2 * LANES)
        store(hz, state, at + 3 * LANES)
        store(p0 * r00 + p1 * r01 + p2 * r02 + hy * cy + hz * cz, state, at + 4 * LANES)
        store(p0 * r10 + p1 * r11 + p2 * r12 - hx * cy, state, at + 5 * LANES)
        store(p0 * r20 + p1 * r21 + p2 * r22 - hx * cz, state, at + 6 * LANES)
        store(q0 * r10 + q1 * r11 + q2 * r12 + hx * cx + hz * cz, state, at + 7 * LANES)
        store(q0 * r20 + q1 * r21 + q2 * r22 - hy * cz, state, at + 8 * LANES)
        store(s0 * r20 + s1 * r21 + s2 * r22 + hx * cx + hy * cy, state, at + 9 * LANES)


@_jit
def _clear_roots(start, size, sizes, state):
    """Zeros in the columns of the world and of the displacement of a floating base."""
    for root in range(sizes[MOVED], sizes[MOVED] + 2):
        at = start + _column(root, size)
        for i in range(size):
            state[at + LANES * i] = 0.0


@_jit
def _add_parents(start, sizes, state):
    """Sums of six numbers per link along the way from the root to each link, in place."""
    above, before = sizes[sizes[ABOVE] :], -1
    a = b = c = d = e = f = 0.0
    for k in range(sizes[MOVED]):
        up, x = above[k], state[start + _column(k, 6) :]
        if up != before:
            y = state[start + _column(up, 6) :]
            a, b, c, d, e, f = y[0], y[LANES], y[2 * LANES], y[3 * LANES], y[4 * LANES], y[5 * LANES]
        a, b, c = a + x[0], b + x[LANES], c + x[2 * LANES]
        d, e, f = d + x[3 * LANES], e + x[4 * LANES], f + x[5 * LANES]
        x[0], x[LANES], x[2 * LANES], x[3 * LANES], x[4 * LANES], x[5 * LANES] = a, b, c, d, e, f
        before = k


@_jit
def _add_children(start, size, sizes, state):
    """Sums over subtrees of `size` numbers per link, a multiple of six, in place."""
    above = sizes[sizes[ABOVE] :]
    for first in range(start, start + LANES * size, 6 * LANES):
        a = b = c = d = e = f = 0.0
        for k in range(sizes[MOVED] - 1, -1, -1):
            up, x = above[k], state[first + _column(k, size) :]
            a, b, c = a + x[0], b + x[LANES], c + x[2 * LANES]
            d, e, f = d + x[3 * LANES], e + x[4 * LANES], f + x[5 * LANES]
            x[0], x[LANES], x[2 * LANES], x[3 * LANES], x[4 * LANES], x[5 * LANES] = a, b, c, d, e, f
            if up != k - 1:
                y = state[first + _column(up, size) :]
                y[0] += a
                y[LANES] += b
                y[2 * LANES] += c
                y[3 * LANES] += d
                y[4 * LANES] += e
                y[5 * LANES] += f
                a = b = c = d = e = f = 0.0


@_jit
def _measure_gaps(sizes, constants, state, poses):
    """Gaps of the closing rows, in radii and radians, to GAP. Returns the largest."""
    loops, chosen = sizes[sizes[LOOP_TABLE] :], sizes[sizes[ROW_TABLE] :]
    rows, gap, worst = sizes[MOVED_ROWS], state[sizes[GAP] :], 0.0
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
def _gap_rates(columns, sweep, width, sizes, constants, state, poses, out):
    """Rates of the gaps per column of joint motions, (r, width), from `columns` (rows, width) and their twists.

    `columns`, `sweep` (places, 6, width) and `out` are offsets in the state.
    """
    loops, chosen = sizes[sizes[LOOP_TABLE] :], sizes[sizes[ROW_TABLE] :]
    rows, unit = sizes[MOVED_ROWS], 1.0 / constants[sizes[FIXED] + LENGTH]
    coupling = matrix(constants, sizes[COUPLING], sizes[COUPLINGS], rows)
    for i in range(sizes[CLOSING]):
        loop, component, at = chosen[i * ROW_SIZE + OF], chosen[i * ROW_SIZE + COMPONENT], out + i * width
        if loop < 0:
            for b in range(0, width, LANES):
                total = everywhere(0.0)
                for k in range(rows):
                    total += coupling[component, k] * load(state, columns + k * width + b)
                store(total, state, at + b)
            continue
        one, other = loops[loop * LOOP_SIZE + COPY], loops[loop * LOOP_SIZE + ORIGINAL]
        here, there = sweep + one * 6 * width, sweep + other * 6 * width
        if component >= 3:
            for b in range(component * width, (component + 1) * width, LANES):
                store(load(state, here + b) - load(state, there + b), state, at + b - component * width)
            continue
        # velocity of the origin: v + ω x p
        a, b_ = (component + 1) % 3, (component + 2) % 3
        oa, ob = constants[sizes[FIXED] + ORIGIN + a], constants[sizes[FIXED] + ORIGIN + b_]
        pa, pb = poses[one, a, 3] - oa, poses[one, b_, 3] - ob
        ra, rb = poses[other, a, 3] - oa, poses[other, b_, 3] - ob
        v, sa, sb = component * width, (3 + a) * width, (3 + b_) * width
        for b in range(0, width, LANES):
            rate = load(state, here + v + b) - load(state, there + v + b)
            rate += pb * load(state, here + sa + b) - pa * load(state, here + sb + b)
            rate += ra * load(state, there + sb + b) - rb * load(state, there + sa + b)
            store(unit * rate, state, at + b)


@_jit
def _factor(sizes, links, constants, state, poses):
    """C as rates of joints, to CLOSERS, and the inverse of the rates G C of the gaps, to PIVOT; AXIS is of these poses.

    Returns the smallest pivot of G C.
    """
    rows, r, width = sizes[MOVED_ROWS], sizes[CLOSING], sizes[CLOSING_WIDTH]
    closers, at = matrix(state, sizes[CLOSERS], rows, width), sizes[CLOSE]
    for k in range(rows):
        for c in range(r):
            closers[k, c] = constants[at + k * r + c]
        for c in range(r, width):
            closers[k, c] = 0.0
    _turn_rows(sizes, state, closers)
    _sweep(closers, width, sizes[OPEN], sizes, links, state, poses)
    _gap_rates(sizes[CLOSERS], sizes[OPEN], width, sizes, constants, state, poses, sizes[PIVOT])
    return _invert(r, width, sizes[PIVOT], sizes[SWAPS], state)


@_jit
def _close(y, begin, sizes, links, constants, state, poses):
    """Poses at coordinates `y` with closed loops, from the multipliers that are there. False: they do not close.

    Newton's method that keeps the rates of the gaps while these shrink fast; `begin`: FIRST, AT_REST or HERE.
    """
    r = sizes[CLOSING]
    if sizes[FREE] == 1:
        home = poses[poses.shape[0] - 1]
        for i in range(4):
            for j in range(4):
                home[i, j] = 1.0 if i == j else 0.0
    _displace(y, sizes, constants, state)
    _place(sizes, links, constants, state, poses)
    if r == 0:
        return True
    gap, mu, before, first = state[sizes[GAP] :], state[sizes[MULTIPLIERS] :], inf, -1.0
    inverse = matrix(state, sizes[PIVOT], r, sizes[CLOSING_WIDTH])
    start = state[sizes[GAP_RATES] : sizes[GAP_RATES] + r]
    for i in range(r):
        start[i] = mu[i]
    for _ in range(ITERATIONS):
        worst = _measure_gaps(sizes, constants, state, poses)
        if first < 0.0:
            first = worst
        if worst <= TOLERANCE:
            return True
        if not worst < inf:
            break
        if begin == FIRST or worst > SHRINK * before:
            _world_axes(sizes, links, constants, state, poses)
            if _factor(sizes, links, constants, state, poses) < LEAST:
                break
            begin = HERE
        for i in range(r):
            change = gap[i]
            if begin == HERE:
                change = 0.0
                for c in range(r):
                    change += inverse[i, c] * gap[c]
            mu[i] -= change
        before = worst
        _displace_closed(sizes, constants, state)
        _place(sizes, links, constants, state, poses)
    if _measure_gaps(sizes, constants, state, poses) <= ACCEPTED:
        return True
    if not first <= ACCEPTED:
        return False
    for i in range(r):  # where loops hardly close: as near as it was
        mu[i] = start[i]
    _displace_closed(sizes, constants, state)
    _place(sizes, links, constants, state, poses)
    return True


@_jit
def locate(y, sizes, links, constants, state, poses):
    """Poses at coordinates `y` with closed loops, from the multipliers of the last call. False: they do not close.

    A floating base is at home; `to_world` takes it where it is.
    """
    return _close(y, FIRST, sizes, links, constants, state, poses)


@_jit
def locate_near_rest(y, sizes, links, constants, state, poses):
    """`locate` of small motion: loops are closed by their rates at y = 0."""
    return _close(y, AT_REST, sizes, links, constants, state, poses)


@_jit
def locate_near(y, sizes, links, constants, state, poses):
    """`locate` near the coordinates of the last `find_tangent`, whose multipliers and rates of gaps are there."""
    n, r, before = sizes[COORDINATES], sizes[CLOSING], state[sizes[TANGENT_AT] :]
    X, mu = matrix(state, sizes[ANSWER], r, sizes[WIDTH]), state[sizes[MULTIPLIERS] :]
    for i in range(r):
        for j in range(n):
            mu[i] -= X[i, j] * (y[j] - before[j])
    return _close(y, HERE, sizes, links, constants, state, poses)


@_jit
def sweep_tangent(T, sizes, links, state, poses):
    """Twists of all links per coordinate at the tangent T, (rows, width), to SWEEP, (places, 6, width)."""
    _sweep(T, sizes[WIDTH], sizes[SWEEP], sizes, links, state, poses)


@_jit
def _sweep(T, width, start, sizes, links, state, poses):
    """Twists of all links per column of joint motions T, (rows, width), to (places, 6, width) from `start` on."""
    places, size = poses.shape[0], 6 * width
    for i in range(start + (places - 2) * size, start + places * size):
        state[i] = 0.0
    for k in range(sizes[LINKS]):
        here, above = start + links[k, PLACE] * size, start + links[k, PARENT] * size
        first, last = _rows_of(links, k)
        _add_twist(first, T, width, width, above, here, sizes, state)
        for row in range(first + 1, last):
            _add_twist(row, T, width, width, here, here, sizes, state)


@_inline
def _add_twist(row, T, count, width, above, here, sizes, state):
    """Twist of a link per coordinate, the first `count` of them, from that of its parent and a row of its motion."""
    S = state[sizes[AXIS] + _column(row, 6) :]
    a, b, c, d, e, f = S[0], S[LANES], S[2 * LANES], S[3 * LANES], S[4 * LANES], S[5 * LANES]
    for i in range(0, count, LANES):
        x = load(T, row * width + i)
        store(load(state, above + i) + a * x, state, here + i)
        store(load(state, above + width + i) + b * x, state, here + width + i)
        store(load(state, above + 2 * width + i) + c * x, state, here + 2 * width + i)
        store(load(state, above + 3 * width + i) + d * x, state, here + 3 * width + i)
        store(load(state, above + 4 * width + i) + e * x, state, here + 4 * width + i)
        store(load(state, above + 5 * width + i) + f * x, state, here + 5 * width + i)


@_inline
def _tangent_of(sizes, constants, state):
    """Tangent T, (rows, width): Φ if it is the same everywhere."""
    if sizes[PLAIN] == 1:
        return matrix(constants, sizes[PHI], sizes[ROWS], sizes[WIDTH])
    return matrix(state, sizes[TANGENT], sizes[MOVED_ROWS], sizes[WIDTH])


@_jit
def find_tangent(y, sizes, links, constants, state, poses):
    """Tangent T, (rows, width), to TANGENT unless it is Φ, and AXIS, at closed poses."""
    rows, r, width = sizes[MOVED_ROWS], sizes[CLOSING], sizes[WIDTH]
    _world_axes(sizes, links, constants, state, poses)
    if sizes[PLAIN] == 1:
        return
    T, at = matrix(state, sizes[TANGENT], rows, width), sizes[TANGENT]
    for i in range(0, rows * width, LANES):
        store(load(constants, sizes[PHI] + i), state, at + i)
    if sizes[CURVED] == 1:
        _bend(y, sizes, constants, state)
        for i in range(0, rows * width, LANES):
            store(load(state, at + i) + load(state, sizes[BENDING] + i), state, at + i)
    _turn_rows(sizes, state, T)
    if r == 0:
        return
    _factor(sizes, links, constants, state, poses)
    sweep_tangent(T, sizes, links, state, poses)
    _gap_rates(at, sizes[SWEEP], width, sizes, constants, state, poses, sizes[GAP_RATES])
    inverse = matrix(state, sizes[PIVOT], r, sizes[CLOSING_WIDTH])
    closers = matrix(state, sizes[CLOSERS], rows, sizes[CLOSING_WIDTH])
    for i in range(r):
        for b in range(0, width, LANES):
            total = everywhere(0.0)
            for c in range(r):
                total += inverse[i, c] * load(state, sizes[GAP_RATES] + c * width + b)
            store(total, state, sizes[ANSWER] + i * width + b)
    for k in range(rows):
        for b in range(0, width, LANES):
            total = load(state, at + k * width + b)
            for c in range(r):
                total = total - closers[k, c] * load(state, sizes[ANSWER] + c * width + b)
            store(total, state, at + k * width + b)
    for j in range(sizes[COORDINATES]):
        state[sizes[TANGENT_AT] + j] = y[j]


@_jit
def close_motion(gaps, sizes, state, motion):
    """Take off a motion of the rows what opens loops at these rates of the gaps (r,); after `find_tangent`."""
    r, width = sizes[CLOSING], sizes[CLOSING_WIDTH]
    inverse, closers = (
        matrix(state, sizes[PIVOT], r, width),
        matrix(state, sizes[CLOSERS], sizes[MOVED_ROWS], width),
    )
    share = state[sizes[GAP_RATES] : sizes[GAP_RATES] + r]
    for i in range(r):
        total = 0.0
        for c in range(r):
            total += inverse[i, c] * gaps[c]
        share[i] = total
    for k in range(sizes[MOVED_ROWS]):
        total = 0.0
        for c in range(r):
            total += closers[k, c] * share[c]
        motion[k] -= total


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
def _invert(n, width, at, swaps, state):
    """Inverse of a matrix (n, width), padded with zeros, in place: Gauss and Jordan. Returns the smallest pivot.

    Rows are swapped where pivots are small; a singular matrix becomes zero. `at` and `swaps`, scratch (2 n,), are
    offsets in the state.
    """
    A, shares, least = matrix(state, at, n, width), swaps + n, inf
    for c in range(n):
        best, row = abs(A[c, c]), c
        if not best > LARGE_PIVOT:
            for i in range(c + 1, n):
                if abs(A[i, c]) > best:
                    best, row = abs(A[i, c]), i
        least = min(least, best)
        if not best > 0.0:
            for i in range(at, at + n * width):
                state[i] = 0.0
            return 0.0
        state[swaps + c] = row
        if row != c:
            for b in range(0, width, LANES):
                x = load(state, at + c * width + b)
                store(load(state, at + row * width + b), state, at + c * width + b)
                store(x, state, at + row * width + b)
        scale = 1.0 / A[c, c]
        A[c, c] = 1.0
        for i in range(n):
            state[shares + i] = A[i, c] if i != c else 0.0
            A[i, c] = 0.0 if i != c else 1.0
        for b in range(at, at + width, LANES):
            x = scale * load(state, b + c * width)
            store(x, state, b + c * width)
            for i in range(n):
                store(load(state, b + i * width) - state[shares + i] * x, state, b + i * width)
    for c in range(n - 1, -1, -1):
        row = int(state[swaps + c])
        if row != c:
            for i in range(n):
                A[i, c], A[i, row] = A[i, row], A[i, c]
    return least
