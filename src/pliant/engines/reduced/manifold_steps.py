"""Steps in time on a manifold of joint coordinates: exact linear part, other forces at the midpoint, energy bounded.

Coordinates are those of the natural modes at y = 0: unit mass, stiffness ω². A step is exact for the linear part,

    state' = A state + B g,     g = force(y, v) + K y + D v - inertia beyond M

with g held over the step and evaluated at its midpoint. Mechanics and arrays: `manifold_kernels`.
"""

from math import inf, sqrt

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import (
    LANES,
    PLACE,
    add_product,
    everywhere,
    five_arrays,
    load,
    matrix,
    store,
)
from pliant.engines.reduced.kernels import (
    BASE_STATE,
    CENTRE,
    COORDINATES,
    EFFECTORS,
    FREE,
    LARGEST,
    LINKS,
    MOMENTUM,
    ROWS,
    TIME,
    TIMESTEP,
    WORK,
    WRENCH,
    Y,
)
from pliant.engines.reduced.manifold_arrays import (
    ACTING,
    ACTUAL,
    AFTER_HELD,
    AFTER_RAMP,
    AUTO,
    BASE_WORK,
    BENT,
    BOUND_ABOVE,
    BOUNDARY,
    BUDGET,
    BUDGET_SIZE,
    CHANGE,
    CHANGED,
    CHANGES,
    CLOSING,
    COLUMNS,
    CONTACT_WORK,
    DAMPER_MATRIX,
    DIVISION_SIZE,
    DIVISION_TABLE,
    DIVISIONS,
    END_VELOCITY,
    ENDS,
    ENERGY,
    FARTHEST,
    FAST,
    FILTER,
    FIXED,
    FORCES,
    GRAVITY,
    HALTS,
    HELD,
    HUB,
    INERTIA_AT_REST,
    KNOWN,
    KNOWN_LOADS,
    LARGE,
    LENGTH_INERTIA,
    LENGTH_MAP,
    LENGTH_MODE,
    LENGTH_RESOLVED,
    LOSSLESS,
    MAP,
    MEAN_SHARE,
    MEAN_VELOCITY,
    METHOD,
    MODE,
    MODE_SIZE,
    MOTION,
    MOTOR,
    MULTIPLIERS,
    NET,
    ORIGIN,
    PER_RATE,
    PLAIN,
    POINTS,
    PUSH,
    PUSHED_INERTIA,
    QUIET,
    RAMP,
    RAMP_MAP,
    RATE,
    RESOLVED,
    RESPONSE,
    SET,
    SLOPE,
    SLOTS,
    SMALL,
    SPIN,
    SQUARE,
    STEADY,
    STEP_INERTIA,
    STEP_WORK,
    STOP_LIMITS,
    STOP_TABLE,
    STOP_WORK,
    STOPPED,
    STOPS,
    TANGENT_AT,
    TOUCHING,
    TOUCHING_INERTIA,
    TURNED,
    TURNS,
    TWIST,
    WHOLE_STEP,
    WIDTH,
    WORKING,
    WORLD_INVERSE,
    YIELD,
)
from pliant.engines.reduced.manifold_kernels import (
    _elastic_energy,
    _find_rates,
    _joint_work,
    _kinetic_energy,
    _solve_definite,
    _sweep_twists,
    add_row,
    base_twist,
    base_velocities,
    evaluate,
    find_spin,
    force_of_loads,
    free_energy,
    hold_base,
    move_base,
    orient,
    push_base,
    to_world,
)
from pliant.engines.reduced.manifold_places import (
    _column,
    _displace,
    _find_moments,
    _place,
    _tangent_of,
    _world_axes,
    find_tangent,
    locate,
    locate_near,
    locate_near_rest,
)
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, FOLLOWER_TORQUE, LINK, LOAD_SIZE, POINT
from pliant.statics.load_kernels import FORCE as FORCE_COLUMN
from pliant.statics.load_kernels import TORQUE as TORQUE_COLUMN

_inline = njit(error_model="numpy", nogil=True, inline="always")
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

SMALL_MOTION, AT_REST = 0, 1  # flags of steps with contacts: motion is small; its inertia is that at rest
ROUNDS = 2  # evaluations in a step at most
# Change of the end of a step by an evaluation, one for large motion: from which on it is evaluated again, and then from
# which on the step is halved
AGAIN, COARSE = 0.005, 0.05
SHORTEST = 0.01  # of a step: how near to its start forces are evaluated where loops do not close
SLIP = 1e-9  # rad or m: displacement beyond a stop that is let be
NEAR = 0.2  # of the range of a joint: distance to a stop at which steps count with it
RETURN = 0.2  # share of the way back to a stop in a step, of joints beyond it
SWEEPS = 200  # over stops, at most
SLOW_SPIN = (
    0.05  # of the lowest frequency: angular velocity of a floating base from which on motion counts as large
)
# Steps in a row that may stand still because no part of a joint's displacement by LEAP, rad or m, or more keeps the
# budget of energy
STUCK, LEAP = 20, 1.0
BAND = 2.5e-3  # of the budget: excess of energy that a step may have
RESTORED = 1e-3  # of the kinetic energy: what a step without dampers may add or take to keep its budget


@_jit
def _energy(y, v, sizes, links, constants, state, poses):
    """Energy of springs, of a floating base's angular momentum, and of the rates, J, at poses that are those of `y`.

    Kinetic energy is that of the whole mechanism, with a floating base free to move, and of the inertia that the linear
    part adds. The motion of the centre of mass does not count.
    """
    n, kinetic = sizes[COORDINATES], 0.0
    rest = matrix(constants, sizes[INERTIA_AT_REST], n, n)
    for i in range(n):
        row, moved = rest[i], v[i]
        for j in range(n):
            moved -= row[j] * v[j]
        kinetic += 0.5 * v[i] * moved
    if sizes[PLAIN] == 1:
        _world_axes(sizes, links, constants, state, poses)
    else:
        find_tangent(y, sizes, links, constants, state, poses)
    _find_rates(v, sizes, constants, state)
    _find_moments(sizes, constants, state)
    spin = taken = 0.0
    if sizes[FREE] == 1:
        hold_base(sizes, state)
    kinetic += _kinetic_energy(sizes, constants, state)
    if sizes[FREE] == 1:
        spin, taken = free_energy(sizes, state)
    return _elastic_energy(sizes, constants, state), spin, kinetic - taken


@_jit
def _find_acting(rows, out, sizes, constants, state):
    """Force on the coordinates of loads on the end effectors at y = 0, and its change per coordinate, (1 + n, width).

    `rows` and `out` are offsets in the state. Forces that turn with a body, and arms of forces that do not, turn by its
    rotation to first order.
    """
    n, w, count = sizes[COORDINATES], sizes[WIDTH], 3 * sizes[COORDINATES] + 4
    for i in range(out, out + (1 + n) * w):
        state[i] = 0.0
    for e in range(sizes[EFFECTORS]):
        row = state[rows + e * LOAD_SIZE :]
        if row[ACTS] == 0.0:
            continue
        turn = matrix(constants, sizes[TURNS] + 9 * e, 3, 3)
        f0, f1, f2 = row[FORCE_COLUMN], row[FORCE_COLUMN + 1], row[FORCE_COLUMN + 2]
        a0, a1, a2 = _turned(turn, row, POINT)
        b0, b1, b2 = _turned(turn, row, FOLLOWER_FORCE)
        c0, c1, c2 = _turned(turn, row, FOLLOWER_TORQUE)
        t0 = row[TORQUE_COLUMN] + c0 + a1 * f2 - a2 * f1
        t1 = row[TORQUE_COLUMN + 1] + c1 + a2 * f0 - a0 * f2
        t2 = row[TORQUE_COLUMN + 2] + c2 + a0 * f1 - a1 * f0
        at = sizes[WORKING] + 2 * e * count * w
        spin = at + count * w
        for j in range(n + 1):
            to, rates = out + j * w, 3 * j * w
            _add_three(f0 + b0, f1 + b1, f2 + b2, constants, at + rates, w, state, to)
            _add_three(t0, t1, t2, constants, spin + rates, w, state, to)
            if j > 0:  # the body turns
                x, y, z = (
                    constants[spin + j - 1],
                    constants[spin + w + j - 1],
                    constants[spin + 2 * w + j - 1],
                )
                p, q, r = y * b2 - z * b1, z * b0 - x * b2, x * b1 - y * b0
                _add_three(p, q, r, constants, at, w, state, to)
                p, q, r = y * a2 - z * a1, z * a0 - x * a2, x * a1 - y * a0
                p, q, r = q * f2 - r * f1, r * f0 - p * f2, p * f1 - q * f0
                p, q, r = p + y * c2 - z * c1, q + z * c0 - x * c2, r + x * c1 - y * c0
                _add_three(p, q, r, constants, spin, w, state, to)


@_inline
def _turned(turn, row, first):
    """Three numbers of a row from the axes of a body to those of the world."""
    x, y, z = row[first], row[first + 1], row[first + 2]
    return (
        turn[0, 0] * x + turn[0, 1] * y + turn[0, 2] * z,
        turn[1, 0] * x + turn[1, 1] * y + turn[1, 2] * z,
        turn[2, 0] * x + turn[2, 1] * y + turn[2, 2] * z,
    )


@_inline
def _add_three(x, y, z, source, at, width, out, out_at):
    """Add three rows of `source`, one behind the other, times three numbers to a row of `out`."""
    if x != 0.0 or y != 0.0 or z != 0.0:
        add_row(x, source, at, width, out, out_at)
        add_row(y, source, at + width, width, out, out_at)
        add_row(z, source, at + 2 * width, width, out, out_at)


@_jit
def _small_forces(same, sizes, constants, state, work):
    """Forces of a step of small motion: exact linear part, work of loads to first order in the displacement.

    FORCES, and the first 2 w numbers of `work`: coordinates and rates at the end of the step. Loads are the `same` as
    in the last such step, or are compared with those.
    """
    n, w, loads, known = sizes[COORDINATES], sizes[WIDTH], sizes[WRENCH], sizes[KNOWN_LOADS]
    g, at, acting = state[sizes[FORCES] : sizes[FORCES] + w], sizes[MAP], sizes[ACTING]
    after, middle = work[: 2 * w], work[2 * w : 3 * w]  # z, v after the linear part
    if not same:
        same = True
        for i in range(sizes[EFFECTORS] * LOAD_SIZE):
            same &= state[loads + i] == state[known + i]
    if not same:
        _find_acting(loads, acting, sizes, constants, state)
        for i in range(sizes[EFFECTORS] * LOAD_SIZE):
            state[known + i] = state[loads + i]
        for j in range(n if sizes[BENT] == 1 else 0):
            for i in range(n):
                state[acting + (1 + j) * w + i] += constants[sizes[SLOPE] + n * j + i]
    for i in range(2 * w):
        after[i] = 0.0
    add_product(2 * n, state[Y:], constants, at, 2 * w, 2 * w, after)
    for i in range(w):
        middle[i] = after[i]
    add_product(n, g, constants, at + 4 * w * n, 2 * w, w, middle)
    for i in range(n):
        middle[i] = 0.5 * (middle[i] + state[Y + i])
        g[i] = constants[sizes[STEADY] + i] + state[sizes[PUSH] + i] + state[acting + i]
    add_product(n, middle, state, acting + w, w, w, g)
    add_product(n, g, constants, at + 4 * w * n, 2 * w, 2 * w, after)
    if sizes[RAMP] == 1:
        change = state[sizes[CHANGE] : sizes[CHANGE] + w]
        _find_acting(sizes[CHANGES], sizes[CHANGE], sizes, constants, state)
        add_product(n, middle, state, sizes[CHANGE] + w, w, w, change)
        add_product(n, change, constants, sizes[RAMP_MAP], 2 * w, 2 * w, after)


@_jit
def _begin_ramp(y, sizes, links, constants, state, poses):
    """Change of the force of loads over a step in which they ramp, at its start, to CHANGE; none if the base floats.

    FORCES get what of it comes before the middle of the step.
    """
    n, w = sizes[COORDINATES], sizes[WIDTH]
    change, share = state[sizes[CHANGE] : sizes[CHANGE] + w], state[sizes[BUDGET] + CHANGED]
    for i in range(w):
        change[i] = 0.0
    if sizes[FREE] == 1:
        return
    if sizes[PLAIN] == 1:
        _world_axes(sizes, links, constants, state, poses)
    elif state[sizes[TANGENT_AT] + n] == 0.0:
        find_tangent(y, sizes, links, constants, state, poses)
        state[sizes[TANGENT_AT] + n] = 1.0
    force_of_loads(sizes[CHANGES], sizes, constants, state, poses, change)
    for i in range(n):
        state[sizes[FORCES] + i] += change[i] / share if share > 0.0 else 0.0


@_jit
def _end_ramp(before, sizes, constants, state, poses):
    """Change of the force of loads where the step was evaluated, and of other forces on modes that it does not resolve.

    To CHANGE, once FORCES are known; `before` are those expected at the middle of the step.
    """
    force_of_loads(sizes[CHANGES], sizes, constants, state, poses, state[sizes[CHANGE] :])
    share, change = state[sizes[BUDGET] + CHANGED], state[sizes[CHANGE] :]
    for i in range(sizes[COORDINATES]):
        lost = 1.0 - constants[sizes[MODE] + MODE_SIZE * i + FILTER]
        change[i] += share * lost * (state[sizes[FORCES] + i] - before[i])


@_inline
def _set_motion(sizes, state, after):
    """Set coordinates and rates at the end of a step."""
    n, w = sizes[COORDINATES], sizes[WIDTH]
    for i in range(n):
        # Flush tiny numbers to zero: arithmetic on subnormal numbers is a hundred times slower.
        state[Y + i] = after[i] if abs(after[i]) > 1e-200 else 0.0
        state[Y + n + i] = after[w + i] if abs(after[w + i]) > 1e-200 else 0.0


@_inline
def _small_step(same, sizes, constants, state, work):
    """Step of small motion, without poses; see `_small_forces`."""
    _small_forces(same, sizes, constants, state, work)
    _set_motion(sizes, state, work)
    state[sizes[BUDGET] + SET] = 0.0
    state[TIME] += constants[TIMESTEP]


@_jit
def _load_points(sizes, state, poses, out):
    """World positions of the points where loads act, (slots, 3); from the centre of mass if the base floats."""
    for i in range(sizes[SLOTS]):
        row = state[sizes[WRENCH] + i * LOAD_SIZE :]
        if row[ACTS] != 0.0:
            T = poses[int(row[LINK])]
            for c in range(3):
                turned = T[c, 0] * row[POINT] + T[c, 1] * row[POINT + 1] + T[c, 2] * row[POINT + 2]
                out[3 * i + c] = turned + T[c, 3]
                if sizes[FREE] == 1:
                    out[3 * i + c] -= state[sizes[BASE_STATE] + CENTRE + c]


@_jit
def _linear_work(sizes, constants, state, poses, points):
    """Displacements of the points of loads at the twists of displacements RATE at these poses, behind the points.

    The work of forces at the midpoint is that over these displacements; `_extra_work` gives the rest. A floating base
    moves by the displacement in HUB.
    """
    _sweep_twists(sizes, state)
    columns, at = sizes[sizes[COLUMNS] :], sizes[FIXED] + ORIGIN
    ox, oy, oz = constants[at], constants[at + 1], constants[at + 2]
    for i in range(sizes[SLOTS]):
        row = state[sizes[WRENCH] + i * LOAD_SIZE :]
        if row[ACTS] == 0.0:
            continue
        T, V = poses[int(row[LINK])], state[sizes[TWIST] + _column(columns[int(row[LINK])], 6) :]
        x, y, z = row[POINT], row[POINT + 1], row[POINT + 2]
        px = T[0, 0] * x + T[0, 1] * y + T[0, 2] * z + T[0, 3] - ox
        py = T[1, 0] * x + T[1, 1] * y + T[1, 2] * z + T[1, 3] - oy
        pz = T[2, 0] * x + T[2, 1] * y + T[2, 2] * z + T[2, 3] - oz
        v, w = V[: 3 * LANES], V[3 * LANES :]
        x, y, z = (
            v[0] + w[LANES] * pz - w[2 * LANES] * py,
            v[LANES] + w[2 * LANES] * px - w[0] * pz,
            v[2 * LANES] + w[0] * py - w[LANES] * px,
        )
        if sizes[FREE] == 1:
            turn = matrix(state, sizes[HUB] + TURNED, 3, 3)
            x, y, z = (
                turn[0, 0] * x + turn[0, 1] * y + turn[0, 2] * z,
                turn[1, 0] * x + turn[1, 1] * y + turn[1, 2] * z,
                turn[2, 0] * x + turn[2, 1] * y + turn[2, 2] * z,
            )
        at = 3 * (sizes[SLOTS] + i)
        points[at], points[at + 1], points[at + 2] = x, y, z


@_jit
def _extra_work(share, sizes, state, poses, points):
    """Work of forces fixed in the world beyond that at the midpoint, after a share of the step."""
    out = 0.0
    for i in range(sizes[SLOTS]):
        row = state[sizes[WRENCH] + i * LOAD_SIZE :]
        if row[ACTS] != 0.0:
            T = poses[int(row[LINK])]
            for c in range(3):
                turned = T[c, 0] * row[POINT] + T[c, 1] * row[POINT + 1] + T[c, 2] * row[POINT + 2]
                if sizes[FREE] == 1:
                    turned -= state[sizes[BASE_STATE] + CENTRE + c]
                known = points[3 * i + c] + share * points[3 * (sizes[SLOTS] + i) + c]
                out += row[FORCE_COLUMN + c] * (turned + T[c, 3] - known)
    return out


@_jit
def reconstruct(sizes, links, constants, state, poses, work):
    """Poses of all links from the state. False: loops do not close."""
    _forget_tangent(sizes, state)
    closed = locate(state[Y : Y + sizes[COORDINATES]], sizes, links, constants, state, poses)
    if sizes[FREE] == 1:
        to_world(sizes, links, constants, state, poses)
    return closed


@_inline
def _forget_tangent(sizes, state):
    """State that the last tangent is not that of the present state."""
    state[sizes[TANGENT_AT] + sizes[COORDINATES]] = 0.0


@_jit
def _recall_multipliers(sizes, state):
    """Multipliers at the start of the step, from the copy of the state."""
    for i in range(sizes[CLOSING]):
        state[sizes[MULTIPLIERS] + i] = state[sizes[WORK] + sizes[MULTIPLIERS] + i]


@_jit
def _return_to(share, y, sizes, links, constants, state, poses):
    """Poses after a share of a step, with the multipliers of its start if less than one. False: loops do not close."""
    if share < 1.0:
        _recall_multipliers(sizes, state)
    if share == 1.0 and sizes[CLOSING] > 0:
        if locate_near(y, sizes, links, constants, state, poses):
            return True
        _recall_multipliers(sizes, state)
    if share > 0.0:
        return locate(y, sizes, links, constants, state, poses)
    _displace(y, sizes, constants, state)  # where they were closed before
    _place(sizes, links, constants, state, poses)
    return True


@_jit
def _halt(share, sizes, links, constants, state, poses, after, change):
    """End of a step where loops do not close: at rest, as far along `change` as they do; nothing if `share` is zero.

    The manifold ends there: the motion stops as at an inelastic stop.
    """
    n, budget = sizes[COORDINATES], state[sizes[BUDGET] : sizes[BUDGET] + BUDGET_SIZE]
    tried = after[:n]
    for _ in range(9):
        for i in range(n):
            tried[i] = state[Y + i] + (share * change[i] if share > 0.0 else 0.0)
        if _return_to(share, tried, sizes, links, constants, state, poses):
            break
        share = 0.5 * share if share > 0.01 else 0.0
    for i in range(n):
        state[Y + i] = tried[i]
        state[Y + n + i] = 0.0
        state[sizes[FORCES] + i] = constants[sizes[MODE] + MODE_SIZE * i + SQUARE] * tried[i]
    if sizes[FREE] == 1:
        to_world(sizes, links, constants, state, poses)
    budget[SET], budget[STOPPED] = 0.0, 1.0
    budget[HALTS] += 1.0
    state[TIME] += constants[TIMESTEP]
    return True


@_inline
def _respond(sizes, constants, state, linear, after):
    """Coordinates and rates after a step, from its linear part and the forces FORCES."""
    n, w = sizes[COORDINATES], sizes[WIDTH]
    for i in range(2 * w):
        after[i] = linear[i]
    add_product(n, state[sizes[FORCES] :], constants, sizes[MAP] + 4 * w * n, 2 * w, 2 * w, after)
    if sizes[RAMP] == 1:
        add_product(n, state[sizes[CHANGE] :], constants, sizes[RAMP_MAP], 2 * w, 2 * w, after)


@_jit
def _full_forces(sizes, links, constants, state, poses, work):
    """Forces of a step of large motion: exact linear part, other forces and inertia at the midpoint.

    FORCES, and numbers 2 w to 4 w of `work`: coordinates and rates at the end of the step. Poses and tangent are then
    those of the midpoint, with a floating base at home; its motion and the net wrench are in HUB. Returns by how much
    the last evaluation changed the end of the step, one for large motion (infinite or NaN where loops do not close in
    such motion); -1 if loops do not close there.
    """
    n, w, h = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP]
    step, mode = matrix(constants, sizes[MAP], 3 * n, 2 * w), matrix(constants, sizes[MODE], n, MODE_SIZE)
    rest, damper = (
        matrix(constants, sizes[INERTIA_AT_REST], n, n),
        matrix(constants, sizes[DAMPER_MATRIX], n, n),
    )
    y, v = state[Y : Y + n], state[Y + n : Y + 2 * n]
    g, budget = state[sizes[FORCES] : sizes[FORCES] + n], state[sizes[BUDGET] : sizes[BUDGET] + BUDGET_SIZE]
    linear, after = work[: 2 * w], work[2 * w : 4 * w]
    middle, rate, before = work[5 * w : 6 * w], work[6 * w : 7 * w], work[7 * w : 8 * w]
    loads, drag, inertial = work[8 * w : 9 * w], work[9 * w : 10 * w], work[10 * w : 11 * w]
    count, felt = sizes[RESOLVED], constants[sizes[STEP_INERTIA] :]
    mass, system = matrix(work, 11 * w, count, w), matrix(work, 11 * w + n * w, count, w)
    answer, pushed = work[11 * w + 2 * n * w :], work[12 * w + 2 * n * w :]
    expected = state[sizes[CHANGE] + w : sizes[CHANGE] + 2 * w]
    _load_points(sizes, state, poses, state[sizes[POINTS] :])
    orient(0.5 * h, sizes, constants, state)
    known = budget[SET] != 0.0  # forces of the last step, with which the midpoint is found
    if not known:
        _displace(y, sizes, constants, state)
        if sizes[FREE] == 1 and not locate(y, sizes, links, constants, state, poses):
            return -1.0
        elastic, spin, kinetic = _energy(y, v, sizes, links, constants, state, poses)
        budget[ENERGY], budget[SET] = elastic + spin + kinetic, KNOWN
        budget[ACTUAL] = budget[ENERGY]
    for i in range(2 * w):
        linear[i] = 0.0
    add_product(2 * n, state[Y:], constants, sizes[MAP], 2 * w, 2 * w, linear)
    if sizes[RAMP] == 1:
        _begin_ramp(y, sizes, links, constants, state, poses)
        for i in range(n):
            expected[i] = g[i]
    near = sizes[FREE] == 0 and sizes[CLOSING] > 0
    if near and state[sizes[TANGENT_AT] + n] == 0.0:
        find_tangent(y, sizes, links, constants, state, poses)
    _forget_tangent(sizes, state)
    # After a stop by the forces at its start: those at a midpoint far from it may point back
    first, rounds, changed = True, ROUNDS if budget[STOPPED] == 0.0 else 1, 0.0
    for _ in range(rounds):
        _respond(sizes, constants, state, linear, after)
        share = 0.5
        while True:
            for i in range(n):
                middle[i] = y[i] + share * (after[i] - y[i])
                rate[i] = v[i] + share * (after[w + i] - v[i])
            if evaluate(
                middle,
                rate,
                1.0,
                first,
                near,
                sizes,
                links,
                constants,
                state,
                poses,
                loads,
                drag,
                inertial,
                mass,
            ):
                near = True
                break
            _recall_multipliers(sizes, state)
            if near:
                near = False
                continue
            # Loops do not close there: nearer to the start
            first, share = True, 0.5 * share
            if share < SHORTEST:
                return -1.0
        for i in range(n):
            before[i] = g[i]
            total = loads[i] + drag[i] - mode[i, FILTER] * inertial[i] + mode[i, SQUARE] * middle[i]
            total += state[sizes[PUSH] + i]
            for j in range(n):
                total += damper[i, j] * rate[j]
            g[i] = total
        # (h B^-1 + dM) a = h B^-1 u with u = (linear - v + B r)/h, r all forces but those of the linear part and dM a
        for i in range(count):
            total = linear[w + i] - v[i]
            for j in range(n):
                total += step[2 * n + j, w + i] * g[j]
            pushed[i] = total / h
        for i in range(count):
            total = 0.0
            for j in range(count):
                if first:
                    mass[i, j] = mode[i, FILTER] * mode[j, FILTER] * (mass[i, j] - rest[i, j])
                total += felt[i * count + j] * pushed[j]
                system[i, j] = felt[i * count + j] + mass[i, j]
            answer[i] = total
        if not _solve_definite(count, system, answer):
            answer[0] = inf  # no inertia to move: the step fails
        for i in range(count):
            for j in range(count):
                g[i] -= mass[i, j] * answer[j]
        first = share < 0.5
        # How far the end moves with these forces, as a part of large motion
        changed = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += step[2 * n + j, i] * (g[j] - before[j])
            changed += abs(total) * mode[i, LARGE]
        if changed <= AGAIN and known:
            break
    if sizes[RAMP] == 1 and sizes[FREE] == 0:
        _end_ramp(expected, sizes, constants, state, poses)
    _respond(sizes, constants, state, linear, after)
    return changed if rounds > 1 else 0.0


@_jit
def _acts(sizes, constants, state):
    """Whether anything but springs and inertia acts: loads, weights, motors, contacts. Their work is not exact."""
    out, at = sizes[HELD] > 0, sizes[FIXED] + GRAVITY
    for i in range(3):
        out |= constants[at + i] != 0.0
    for i in range(sizes[SLOTS]):
        out |= state[sizes[WRENCH] + i * LOAD_SIZE + ACTS] != 0.0
    for i in range(sizes[ROWS]):
        out |= constants[sizes[MOTOR] + i] != 0.0
    for i in range(sizes[COORDINATES]):
        out |= state[sizes[PUSH] + i] != 0.0
    return out


@_jit
def _full_end(pushed, sizes, links, constants, state, poses, work):
    """End of a step of large motion after `_full_forces`, poses included: energy within its budget.

    `pushed` by contacts a floating base moves by `push_base`. False: for STUCK steps nothing could move.
    """
    n, w, h = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP]
    y, v = state[Y : Y + n], state[Y + n : Y + 2 * n]
    budget, mode = (
        state[sizes[BUDGET] : sizes[BUDGET] + BUDGET_SIZE],
        matrix(constants, sizes[MODE], n, MODE_SIZE),
    )
    after, change, loads = work[2 * w : 4 * w], work[4 * w : 5 * w], work[8 * w : 9 * w]
    start, before, points = work[7 * w : 8 * w], budget[ENERGY], state[sizes[POINTS] :]
    free = sizes[FREE] == 1
    # Budget of energy: work of loads at the midpoint, less that of dampers
    worked = 0.0
    for i in range(n):
        start[i], change[i] = y[i], after[i] - y[i]
        worked += change[i] * loads[i]
    if free and pushed:
        worked += push_base(change, h, sizes, state)
        base_twist(change, 1.0 / h, h, sizes, state)
    elif free:
        # the base turns by what the displacements of the coordinates leave of the angular momentum
        find_spin(change, 1.0 / h, sizes, state)
        base_twist(change, 1.0 / h, h, sizes, state)
        at = sizes[HUB]
        for i in range(3):
            turned = h * state[at + SPIN + i]
            for j in range(n):
                turned += state[at + PER_RATE + (6 + i) * w + j] * change[j]
            worked += turned * state[at + NET + 3 + i]
    _find_rates(change, sizes, constants, state)
    farthest = 0.0
    for k in range(sizes[RATE], sizes[RATE] + sizes[ROWS]):
        farthest = max(farthest, abs(state[k]))
    stored, lost = _joint_work(sizes, constants, state)
    _linear_work(sizes, constants, state, poses, points)
    if free:
        if not pushed:
            move_base(sizes, constants, state)
        orient(0.0, sizes, constants, state)
    _set_motion(sizes, state, after)
    share, closed, elastic, spin, kinetic = 1.0, True, 0.0, 0.0, 0.0
    acts = sizes[LOSSLESS] == 1 and _acts(sizes, constants, state)
    for _ in range(10):
        if _return_to(share, y, sizes, links, constants, state, poses):
            elastic, spin, kinetic = _energy(y, v, sizes, links, constants, state, poses)
            if free:
                to_world(sizes, links, constants, state, poses)
            brought = share * (worked + stored) + _extra_work(share, sizes, state, poses, points)
            budget[ENERGY] = before + brought - share * share * lost / h
            linear = spin
            for i in range(n):
                linear += 0.5 * mode[i, SQUARE] * y[i] * y[i]
            band = BAND * min(linear, abs(elastic) + spin)
            left = budget[ENERGY] + band - elastic - spin  # for motion
            if (1.0 - BAND) * kinetic <= left:
                excess = kinetic - left + band
                if sizes[LOSSLESS] == 0:
                    break
                if acts:
                    budget[SET] = BOUND_ABOVE
                elif budget[SET] == BOUND_ABOVE:
                    budget[ENERGY], budget[SET] = budget[ENERGY] + min(excess, 0.0), KNOWN
                elif kinetic > 0.0:
                    scale = sqrt(1.0 - min(max(excess / kinetic, -RESTORED), RESTORED))
                    for i in range(n):
                        v[i] *= scale
                break
            # Dampers of modes that a step does not resolve may have taken too much: then the last energy and the work
            within = left + band >= 0.0 or elastic + spin <= budget[ACTUAL] + brought
            budget[SET] = BOUND_ABOVE if acts else budget[SET]
            if within or free or share == 0.0:
                scale = sqrt(max(0.0, left) / kinetic) if kinetic > 0.0 else 0.0
                kinetic *= scale * scale
                for i in range(n):
                    v[i] *= scale
                break
        else:
            closed = False
        # Springs hold more than the budget, or loops do not close: the motion stops on the way, as at an inelastic stop
        share = 0.5 * share if share > 0.01 else 0.0
        for i in range(n):
            # the next step evaluates forces where this one ends
            y[i], v[i] = start[i] + (share * change[i] if share > 0.0 else 0.0), 0.0
            state[sizes[FORCES] + i] = mode[i, SQUARE] * y[i]
    if closed and not free:
        state[sizes[TANGENT_AT] + n] = 1.0
    stuck = share == 0.0 and closed and farthest > LEAP
    budget[STOPPED] = budget[STOPPED] + 1.0 if stuck else 0.0 if share == 1.0 else 1.0
    budget[ACTUAL] = elastic + spin + kinetic
    if not closed:
        budget[SET] = 0.0
        budget[HALTS] += 1.0
    state[TIME] += h
    return budget[STOPPED] <= STUCK


@_jit
def _stand(sizes, links, constants, state, poses, work):
    """Mechanics of a floating base, to HUB, while its joints stand still. False: loops do not close."""
    n, w = sizes[COORDINATES], sizes[WIDTH]
    _recall_multipliers(sizes, state)
    rates = work[2 * w : 3 * w]
    for i in range(n):
        rates[i] = 0.0
    return evaluate(
        state[Y : Y + n], rates, 1.0, True, False, sizes, links, constants, state, poses,
        work[8 * w : 9 * w], work[9 * w : 10 * w], work[10 * w : 11 * w], matrix(work, 11 * w, n, w),
    )  # fmt: skip


@_jit
def _full_step(sizes, links, constants, state, poses, work):
    """Step of large motion, poses included. False: loops do not close on the way."""
    changed = _full_forces(sizes, links, constants, state, poses, work)
    if COARSE < changed < inf and sizes[RAMP] == 0:
        return _divided_step(sizes, links, constants, state, poses, work)
    return _end_step(not changed < 0.0, sizes, links, constants, state, poses, work)


@_jit
def _end_step(closed, sizes, links, constants, state, poses, work):
    """End of a step of large motion; at rest at its start unless loops `closed` on the way."""
    w = sizes[WIDTH]
    if closed:
        return _full_end(False, sizes, links, constants, state, poses, work)
    if sizes[FREE] == 1:
        if not _stand(sizes, links, constants, state, poses, work):
            return False
        move_base(sizes, constants, state)
    return _halt(0.0, sizes, links, constants, state, poses, work[2 * w : 4 * w], work[4 * w : 5 * w])


@_jit
def _divided_step(sizes, links, constants, state, poses, work):
    """Step of large motion in parts that are short enough: forces change too much on its way. As `_full_step`."""
    moving, time, h = sizes[WRENCH], state[TIME], constants[TIMESTEP]
    copy, kept = state[sizes[WORK] :], state[sizes[WHOLE_STEP] :]
    for i in range(moving):
        kept[i] = copy[i]
    level, left, whole, again = 1, 1 << DIVISIONS, True, True
    while left > 0 and whole:
        part = 1 << (DIVISIONS - level)
        _set_length(level, h, sizes, constants)
        if again:
            for i in range(moving):
                state[i] = copy[i]
            reconstruct(sizes, links, constants, state, poses, work)
        changed = _full_forces(sizes, links, constants, state, poses, work)
        again = COARSE < changed < inf and level < DIVISIONS
        if again:
            level += 1
            continue
        whole = _end_step(not changed < 0.0, sizes, links, constants, state, poses, work)
        left -= part
        if level > 1 and left % (2 * part) == 0:
            level -= 1
        for i in range(moving):
            copy[i] = state[i]
    _set_length(0, h, sizes, constants)
    state[TIME] = time + h
    for i in range(moving):
        copy[i] = kept[i]
    return whole


@_inline
def _set_length(level, h, sizes, constants):
    """Let steps be as long as `h`, halved `level` times."""
    row = sizes[sizes[DIVISION_TABLE] + level * DIVISION_SIZE :]
    sizes[MAP], sizes[STEP_INERTIA] = row[LENGTH_MAP], row[LENGTH_INERTIA]
    sizes[MODE], sizes[RESOLVED] = row[LENGTH_MODE], row[LENGTH_RESOLVED]
    constants[TIMESTEP] = h / (1 << level)


@_jit
def _is_small(sizes, constants, state):
    """Whether the next step takes the motion as small; of floating bases only steps with contacts do."""
    if sizes[METHOD] != AUTO:
        return sizes[METHOD] == SMALL
    total = 0.0
    for i in range(sizes[COORDINATES]):
        # of a swing the amplitude counts, also on its way through the middle
        mode = sizes[MODE] + MODE_SIZE * i
        total += max(
            constants[mode + LARGE] * abs(state[Y + i]),
            constants[mode + FAST] * abs(state[Y + sizes[COORDINATES] + i]),
        )
    free = sizes[FREE] == 1
    for i in range(0 if free else sizes[EFFECTORS], sizes[SLOTS]):  # loads on other bodies, or moving axes
        if state[sizes[WRENCH] + i * LOAD_SIZE + ACTS] != 0.0:
            total = inf
    if free:
        inverse, base = matrix(state, sizes[BASE_WORK] + WORLD_INVERSE, 3, 3), sizes[BASE_STATE] + MOMENTUM
        for i in range(3):
            spin = (
                inverse[i, 0] * state[base]
                + inverse[i, 1] * state[base + 1]
                + inverse[i, 2] * state[base + 2]
            )
            total += abs(spin) / (SLOW_SPIN * sqrt(constants[sizes[MODE] + SQUARE]))
    return total <= 1.0


@_inline
def _square_distance(sizes, links, constants, poses):
    """Square of the largest distance of an end effector's origin from where it is at y = 0, m²."""
    out, at = 0.0, sizes[FIXED] + ENDS
    for e in range(sizes[EFFECTORS]):
        T = poses[links[sizes[LINKS] + e, PLACE]]
        x, y, z = constants[at], constants[at + 1], constants[at + 2]
        if sizes[FREE] == 1:  # relative to the base
            D = poses[poses.shape[0] - 1]
            x, y, z = (
                D[0, 0] * x + D[0, 1] * y + D[0, 2] * z + D[0, 3],
                D[1, 0] * x + D[1, 1] * y + D[1, 2] * z + D[1, 3],
                D[2, 0] * x + D[2, 1] * y + D[2, 2] * z + D[2, 3],
            )
        x, y, z = T[0, 3] - x, T[1, 3] - y, T[2, 3] - z
        out, at = max(out, x * x + y * y + z * z), at + 3
    return out


@_inline
def _displacements(sizes, state):
    """Sum of all joint displacements, rad or m."""
    total = 0.0
    for k in range(sizes[MOTION], sizes[MOTION] + sizes[ROWS]):
        total += abs(state[k])
    return total


@_jit
def _watch(sizes, links, constants, state, poses):
    """Note how far end effectors are beyond the boundary, in FARTHEST of BUDGET."""
    boundary = constants[sizes[FIXED] + BOUNDARY]
    if boundary < inf:
        square = _square_distance(sizes, links, constants, poses)
        if square > boundary:
            state[sizes[BUDGET] + FARTHEST] = max(state[sizes[BUDGET] + FARTHEST], square)


# --- contacts and stops


@_inline
def _scratch(sizes, state):
    """Scratch: transposed inverse of S, (n, width); rates; three vectors, (3, width); SMALL_MOTION and AT_REST.

    S = h B_v^-1 + dM takes accelerations of a step to the forces of contacts that cause them, B_v the rates per force.
    """
    n, w, at = sizes[COORDINATES], sizes[WIDTH], sizes[CONTACT_WORK]
    end = at + n * w
    return (
        matrix(state, at, n, w),
        state[end : end + n],
        matrix(state, end + n, 3, w),
        state[end + n + 3 * w : end + n + 3 * w + 2],
    )


@_jit
def _three_products(n, rows, at, apart, columns, columns_at, width, out, out_at, out_apart):
    """Products of three rows of n numbers, `apart`, with n rows of `columns`, `width` apart: three rows of `out`."""
    for b in range(0, width, LANES):
        one = two = three = everywhere(0.0)
        for k in range(n):
            x = load(columns, columns_at + k * width + b)
            one += rows[at + k] * x
            two += rows[at + apart + k] * x
            three += rows[at + 2 * apart + k] * x
        store(one, out, out_at + b)
        store(two, out, out_at + out_apart + b)
        store(three, out, out_at + 2 * out_apart + b)


@_jit
def _answer_on_mean(rows, at, apart, sizes, constants, state, out, out_at):
    """Changes `R J` of the mean velocities of the present step by impulses J.

    Of three rows `apart`, to three rows of `out`; 0 apart: of one. R is B_x / h² if inertia is as at rest, else
    B_x B_v^-1 S^-1 / h.
    """
    n, w, (_, _, _, flags) = sizes[COORDINATES], sizes[WIDTH], _scratch(sizes, state)
    if flags[AT_REST] == 1.0:
        _three_products(n, rows, at, apart, constants, sizes[RESPONSE], w, out, out_at, apart)
        return
    work, through = sizes[CONTACT_WORK], sizes[CONTACT_WORK] + n * w + n
    _three_products(n, rows, at, apart, state, work, w, state, through, w)
    _three_products(n, state, through, w, constants, sizes[MEAN_SHARE], w, out, out_at, apart)


@_jit
def _answer_at_end(rows, at, apart, sizes, constants, state, out, out_at):
    """Changes of the rates at the end of the present step by impulses: as `_answer_on_mean`.

    S^-1, or B_v / h if inertia is as at rest. As S is at least the inertia, impulses that end an approach take energy.
    """
    n, w, (_, _, _, flags) = sizes[COORDINATES], sizes[WIDTH], _scratch(sizes, state)
    if flags[AT_REST] == 1.0:
        _three_products(n, rows, at, apart, constants, sizes[YIELD], w, out, out_at, apart)
    else:
        _three_products(n, rows, at, apart, state, sizes[CONTACT_WORK], w, out, out_at, apart)


@_jit
def _invert(A):
    """Inverse of a matrix (n, width) whose symmetric part is positive definite, in place: Gauss and Jordan."""
    n, width = A.shape
    for c in range(n):
        scale = 1.0 / A[c, c]
        A[c, c] = 1.0
        for b in range(0, width, LANES):
            store(scale * load(A, c * width + b), A, c * width + b)
        for i in range(n):
            share = A[i, c]
            if i != c and share != 0.0:
                A[i, c] = 0.0
                for b in range(0, width, LANES):
                    store(load(A, i * width + b) - share * load(A, c * width + b), A, i * width + b)


@_jit
def _touch(pushed, sizes, links, constants, state, poses, u):
    """Begin a step with contacts or stops: mean velocities `u` of the step without their forces.

    Forces beyond the linear part are evaluated with the contact forces PUSH of the last step. If a floating base is
    `pushed` by contacts, `u` has the velocities of its end of the step as well; after `weigh_base`.
    """
    n, w, h, work = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP], state[sizes[STEP_WORK] :]
    y, push = state[Y : Y + n], state[sizes[PUSH] : sizes[PUSH] + n]
    copy, after = state[sizes[WORK] :], work[2 * w : 4 * w]
    answer, _, _, flags = _scratch(sizes, state)
    for i in range(sizes[WRENCH]):
        copy[i] = state[i]
    exact, felt = sizes[MAP], sizes[STEP_INERTIA]
    sizes[MAP], sizes[STEP_INERTIA] = sizes[TOUCHING], sizes[TOUCHING_INERTIA]
    small = (pushed or sizes[FREE] == 0) and _is_small(sizes, constants, state)
    if small:
        _small_forces(False, sizes, constants, state, work)
        _set_motion(sizes, state, work)
        small = _is_small(sizes, constants, state)
        for i in range(2 * n):
            state[Y + i] = copy[Y + i]
        if small:
            for i in range(2 * w):
                after[i] = work[i]
        else:
            for i in range(n):
                state[sizes[FORCES] + i] = copy[sizes[FORCES] + i]
    if not small and _full_forces(sizes, links, constants, state, poses, work) < 0.0:
        for i in range(n):  # loops do not close on the way: no further motion but by contacts
            after[i], after[w + i] = y[i], 0.0
            state[sizes[FORCES] + i] = push[i] = 0.0
        if sizes[FREE] == 1:
            _stand(sizes, links, constants, state, poses, work)
        small, state[sizes[BUDGET] + HALTS] = True, state[sizes[BUDGET] + HALTS] + 1.0
    sizes[MAP], sizes[STEP_INERTIA] = exact, felt
    count = sizes[RESOLVED]
    flags[SMALL_MOTION], flags[AT_REST] = 1.0 if small else 0.0, 1.0 if small or count == 0 else 0.0
    if flags[AT_REST] == 0.0:
        mass = matrix(work, 11 * w, count, w)
        felt = matrix(constants, sizes[PUSHED_INERTIA], n, w)
        for i in range(n):
            for j in range(w):
                answer[i, j] = felt[i, j] + (mass[i, j] if i < count and j < count else 0.0)
        _invert(answer)
    _answer_on_mean(push, 0, 0, sizes, constants, state, work, 4 * w)
    for i in range(n):
        u[i] = (after[i] - y[i]) / h - h * work[4 * w + i]
    if pushed:
        base_velocities(h, sizes, constants, state, u[w:])


@_jit
def _end_rates(sizes, constants, state, u):
    """Rates at the end of a step with forces `u` of contacts on the coordinates, to `u`."""
    n, w, work = sizes[COORDINATES], sizes[WIDTH], state[sizes[STEP_WORK] :]
    _, kept, vectors, flags = _scratch(sizes, state)
    push, change, rates = state[sizes[PUSH] : sizes[PUSH] + n], work[4 * w : 5 * w], work[3 * w : 4 * w]
    moved, force = vectors[0], vectors[1]
    for i in range(n):
        change[i] = u[i] - push[i]
        push[i] = u[i]
    for i in range(w):
        moved[i] = force[i] = 0.0
    if flags[AT_REST] == 1.0:
        add_product(n, change, constants, sizes[TOUCHING] + 4 * w * n + w, 2 * w, w, moved)
        for i in range(n):
            force[i] = change[i]
    else:
        add_product(n, change, state, sizes[CONTACT_WORK], w, w, moved)  # accelerations
        add_product(n, moved, constants, sizes[PUSHED_INERTIA], w, w, force)
        for i in range(n):
            moved[i] *= constants[TIMESTEP]
    for i in range(n):
        state[sizes[FORCES] + i] += force[i]
        u[i] = kept[i] = rates[i] + moved[i]


@_jit
def _end_touching(pushed, sizes, links, constants, state, poses, u, w_):
    """End a step with contacts or stops: rates `u`, positions that have moved by h (u + w).

    With a floating base that is `pushed` by contacts these include its own. False: the motion left the finite numbers.
    """
    n, w, h, work = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP], state[sizes[STEP_WORK] :]
    (_, kept, _, flags), push, after = _scratch(sizes, state), state[sizes[PUSH] :], work[2 * w : 4 * w]
    y, budget = state[Y : Y + n], state[sizes[BUDGET] :]
    small, count = flags[SMALL_MOTION] == 1.0, sizes[RESOLVED]
    mass = matrix(work, 11 * w, count, w)
    for i in range(n):
        after[i], after[w + i] = y[i] + h * (u[i] + w_[i]), u[i]
    if pushed:
        for i in range(6):
            state[sizes[BASE_WORK] + END_VELOCITY + i] = u[w + i]
            state[sizes[BASE_WORK] + MEAN_VELOCITY + i] = u[w + i] + w_[w + i]
    if small:
        for i in range(n):
            work[4 * w + i] = after[i] - y[i]
        if pushed:
            push_base(work[4 * w : 5 * w], h, sizes, state)
        _set_motion(sizes, state, after)
        budget[SET] = 0.0
        whole = reconstruct(sizes, links, constants, state, poses, work)
        if whole:
            state[TIME] += h
        else:
            for i in range(n):
                y[i] -= work[4 * w + i]
            whole = _halt(0.5, sizes, links, constants, state, poses, after, work[4 * w : 5 * w])
    else:
        # budget: work of the forces of contacts, and of impulses at the end of the step
        budget[SET] = BOUND_ABOVE
        for i in range(n):
            budget[ENERGY] += h * push[i] * (u[i] + w_[i]) + 0.5 * (u[i] * u[i] - kept[i] * kept[i])
        for i in range(count):
            for j in range(count):
                budget[ENERGY] += 0.5 * mass[i, j] * (u[i] * u[j] - kept[i] * kept[j])
        whole = _full_end(pushed, sizes, links, constants, state, poses, work)
    _watch(sizes, links, constants, state, poses)
    total = 0.0
    for i in range(sizes[WRENCH]):
        total += abs(state[i])
    return whole and total < inf and _displacements(sizes, state) <= LARGEST


@_jit
def _beyond_stops(sizes, constants, state):
    """Whether a joint is beyond a stop at MOTION."""
    table, limits = sizes[sizes[STOP_TABLE] :], matrix(constants, sizes[STOP_LIMITS], sizes[STOPS], 2)
    for i in range(sizes[STOPS]):
        s = state[sizes[MOTION] + table[i]]
        if s > limits[i, 1] + SLIP or s < limits[i, 0] - SLIP:
            return True
    return False


@_inline
def _stop_work(sizes, state):
    """Scratch of stops: rates of joints or gaps, (stops, width); displacements of joints, gaps and impulses, (stops,).

    Then velocities, two times (width,), and their changes per impulse, (stops, width).
    """
    w, stops, at = sizes[WIDTH], sizes[STOPS], sizes[STOP_WORK]
    end = at + stops * w
    last = end + 3 * stops
    return (
        matrix(state, at, stops, w),
        state[end : end + stops],
        state[end + stops : end + 2 * stops],
        state[end + 2 * stops : last],
        matrix(state, last, 2, w),
        matrix(state, last + 2 * w, stops, w),
    )


@_jit
def _find_stops(sizes, constants, state):
    """Tangent and displacements of joints with stops, at the present poses and after `find_tangent`."""
    table, T = sizes[sizes[STOP_TABLE] :], _tangent_of(sizes, constants, state)
    J, place, _, _, _, _ = _stop_work(sizes, state)
    for i in range(sizes[STOPS]):
        place[i] = state[sizes[MOTION] + table[i]]
        for j in range(sizes[WIDTH]):
            J[i, j] = T[table[i], j]


@_jit
def _near_stops(u, h, sizes, constants, state):
    """Stops that joints reach at mean velocities `u`, or come near: rates of gaps and gaps; returns their number.

    After `_find_stops`, whose tangent is overwritten.
    """
    n, count = sizes[COORDINATES], 0
    J, place, gap, _, _, _ = _stop_work(sizes, state)
    limits = matrix(constants, sizes[STOP_LIMITS], sizes[STOPS], 2)
    for i in range(sizes[STOPS]):
        s, rate = place[i], 0.0
        for j in range(n):
            rate += J[i, j] * u[j]
        end, near = s + h * rate, NEAR * (limits[i, 1] - limits[i, 0])
        sign = 0.0
        if end > limits[i, 1] - near:
            sign, gap[count] = -1.0, limits[i, 1] - s
        elif end < limits[i, 0] + near:
            sign, gap[count] = 1.0, s - limits[i, 0]
        if sign != 0.0:
            for j in range(n):
                J[count, j] = sign * J[i, j]
            count += 1
    return count


@_jit
def _push_back(count, J, answer, target, impulse, u):
    """Impulses of stops that keep their rates `J u` at least at `target`, by Gauss-Seidel.

    Velocities `u` change by a row of `answer` per impulse.
    """
    n = J.shape[1]
    for _ in range(SWEEPS):
        worst = most = 0.0
        for k in range(count):
            if target[k] == -inf:
                continue
            speed = mobility = 0.0
            for i in range(n):
                speed += J[k, i] * u[i]
                mobility += J[k, i] * answer[k, i]
            if not mobility > 0.0:
                continue
            x = max((target[k] - speed) / mobility, -impulse[k])
            impulse[k] += x
            worst, most = max(worst, abs(x) * mobility), max(most, abs(target[k]), abs(speed))
            for i in range(n):
                u[i] += answer[k, i] * x
        if worst <= 1e-12 * most:
            break


@_jit
def _stopped_step(sizes, links, constants, state, poses):
    """Step in which joints meet their stops: unilateral forces on mean velocities, then, without rebound, on rates.

    False: the motion left the finite numbers.
    """
    n, h, y = sizes[COORDINATES], constants[TIMESTEP], state[Y : Y + sizes[COORDINATES]]
    _forget_tangent(sizes, state)
    J, target, gap, impulse, velocities, answer = _stop_work(sizes, state)
    u, w = velocities[0], velocities[1]
    locate(y, sizes, links, constants, state, poses)
    find_tangent(y, sizes, links, constants, state, poses)
    _find_stops(sizes, constants, state)
    reconstruct(sizes, links, constants, state, poses, state[sizes[STEP_WORK] :])
    _touch(False, sizes, links, constants, state, poses, u)
    count = _near_stops(u, h, sizes, constants, state)
    for k in range(count):
        target[k], impulse[k] = -gap[k] / h * (1.0 if gap[k] > 0.0 else RETURN), 0.0
        _answer_on_mean(J[k], 0, 0, sizes, constants, state, answer[k], 0)
    _push_back(count, J, answer, target, impulse, u)
    for i in range(n):
        w[i], u[i] = u[i], 0.0
        for k in range(count):
            u[i] += J[k, i] * impulse[k] / h
    _end_rates(sizes, constants, state, u)
    for k in range(count):
        target[k] = 0.0 if impulse[k] > 0.0 else -inf
        _answer_at_end(J[k], 0, 0, sizes, constants, state, answer[k], 0)
    _push_back(count, J, answer, target, impulse, u)
    for i in range(n):
        w[i] -= u[i]
    return _end_touching(False, sizes, links, constants, state, poses, u, w)


@_inline
def _advance(count, sizes, links, constants, state, poses):
    """Take up to `count` steps, poses included. Returns the number of steps after which the state was still finite."""
    moving, n = sizes[WRENCH], sizes[COORDINATES]
    copy, work = state[sizes[WORK] :], state[sizes[STEP_WORK] :]
    # whether the motion is small; whether poses are those of the state; whether loads were looked at
    small, placed, same = False, True, False
    for done in range(count):
        for i in range(moving):
            copy[i] = state[i]
        for i in range(n):
            state[sizes[PUSH] + i] = 0.0
        if small or (sizes[FREE] == 0 and _is_small(sizes, constants, state)):
            _small_step(same, sizes, constants, state, work)
            same = True
            small = _is_small(sizes, constants, state)
            if not small:  # a sudden push: the step is taken again
                for i in range(moving):
                    state[i] = copy[i]
                for i in range(n):
                    state[sizes[PUSH] + i] = 0.0
        if small:
            _forget_tangent(sizes, state)
            placed = sizes[QUIET] == 0 or done + 1 == count
            whole = not placed or locate_near_rest(state[Y : Y + n], sizes, links, constants, state, poses)
        else:
            if not placed:
                locate_near_rest(state[Y : Y + n], sizes, links, constants, state, poses)
                placed = True
            whole = _full_step(sizes, links, constants, state, poses, work)
        if sizes[STOPS] > 0 and whole and _beyond_stops(sizes, constants, state):
            for i in range(moving):
                state[i] = copy[i]
            whole = _stopped_step(sizes, links, constants, state, poses)
            small = False
        state[sizes[BUDGET] + CHANGED] = AFTER_RAMP if sizes[RAMP] == 1 else AFTER_HELD
        if placed:
            _watch(sizes, links, constants, state, poses)
        total = 0.0
        for i in range(moving):
            total += abs(state[i])
        if not whole or not total < inf or not _displacements(sizes, state) <= LARGEST:
            for i in range(moving):
                state[i] = copy[i]
            reconstruct(sizes, links, constants, state, poses, work)
            return done
    return count


@njit(counts_references=True, error_model="numpy", nogil=True)
def advance_at(count, ends, at):
    """Take up to `count` steps on the arrays of `five_arrays`; see `_advance`.

    Returns `-1 - steps` if HALTS or FARTHEST of BUDGET are above zero.
    """
    sizes, links, constants, state, poses = five_arrays(at)
    done, budget = _advance(count, sizes, links, constants, state, poses), sizes[BUDGET]
    return -1 - done if state[budget + HALTS] + state[budget + FARTHEST] > 0.0 else done


@_jit
def advance_batch(count, sizes, links, constants, states, poses):
    """Take `count` steps of every copy. Returns the copy that took the fewest, and their number."""
    worst, least = -1, count
    for copy in range(states.shape[0]):
        done = _advance(count, sizes, links, constants, states[copy], poses[copy])
        if done < least:
            worst, least = copy, done
    return worst, least


@_jit
def reconstruct_batch(sizes, links, constants, states, poses):
    """Poses of all links of every copy, from its state."""
    for copy in range(states.shape[0]):
        reconstruct(sizes, links, constants, states[copy], poses[copy], states[copy])
