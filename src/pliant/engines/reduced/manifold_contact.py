"""Contact step of a reduced model on its manifold, in three parts between which the contact solver finds impulses.

Contact forces are constant over a step. To first order in their impulses p on the coordinates, the step ends at

    z = z_free + h R p,     v = v_free + V p

with R and V from the exact map of the linear part (modes that are faster than the step: backward Euler), and from the
inertia at the midpoint. The generalised velocities of the solver are first the mean velocities of the step, whose
response is R: no gap is closed by more than itself. They are then the rates at the end of the step, at which impulses
act with the inertia of the coordinates: what touches there does not go on into each other, and bounces by its
restitution. Work of the forces over the step, and then of the impulses at its end, is never positive.
"""

from math import inf
from typing import Any, NamedTuple

from pliant.compilation import njit
from pliant.engines.actor import START
from pliant.engines.reduced._intrinsics import LANES, matrix
from pliant.engines.reduced.kernels import COORDINATES, LINKS, TIME, TIMESTEP, WORK, WRENCH, Y
from pliant.engines.reduced.manifold_kernels import (
    ABOVE,
    AXIS,
    BOUND_ABOVE,
    BUDGET,
    COLUMNS,
    CONTACT_WORK,
    ENERGY,
    FIXED,
    FORCES,
    HALTS,
    MAP,
    MODE,
    MODE_SIZE,
    ORIGIN,
    PUSH,
    RESOLVED,
    RESPONSE,
    SET,
    STEP_INERTIA,
    STEP_WORK,
    TOUCHING,
    TOUCHING_INERTIA,
    WIDTH,
    YIELD,
    _column,
    _eliminate,
    _rows_of,
    _tangent_of,
    find_tangent,
    locate,
)
from pliant.engines.reduced.manifold_steps import (
    _advance,
    _full_end,
    _full_forces,
    _halt,
    _is_small,
    _set_motion,
    _small_forces,
    _watch,
)

_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

SLOW = 1.0  # ω h up to which the map of a mode is exact in steps with contacts; beyond it, backward Euler


class ContactModel(NamedTuple):
    """Arrays of a reduced model in contact: those of its simulation, see `kernels`, and the number of its bodies."""

    sizes: Any
    links: Any
    constants: Any
    state: Any
    poses: Any
    bodies: int


@_jit
def free_step(model):
    """A step without contacts; False: the motion left the finite numbers."""
    sizes, state = model.sizes, model.state
    for i in range(sizes[COORDINATES]):
        state[sizes[PUSH] + i] = 0.0
    return _advance(1, sizes, model.links, model.constants, state, model.poses) == 1


@_jit
def begin(count, rows, first, model, before, u):
    """First part: J of `count` blocks, and Y, their effect on mean velocities.

    The model's bodies are numbered from `first` on. Writes the rates `before` the step, and the mean velocities `u` of
    the step without contacts. Forces beyond the linear part are evaluated with the contact forces of the last step.
    """
    sizes, links, constants, state, poses = (
        model.sizes,
        model.links,
        model.constants,
        model.state,
        model.poses,
    )
    n, w, h, work = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP], state[sizes[STEP_WORK] :]
    y, push = state[Y : Y + n], state[sizes[PUSH] : sizes[PUSH] + n]
    copy, after = state[sizes[WORK] :], work[2 * w : 4 * w]
    answer, response, _, kept = _parts(sizes, state)
    for i in range(sizes[WRENCH]):
        copy[i] = state[i]
    for i in range(n):
        before[i] = state[Y + n + i]
    find_tangent(y, sizes, links, constants, state, poses)
    _find_rows(count, rows, first, model)
    exact, felt = sizes[MAP], sizes[STEP_INERTIA]
    sizes[MAP], sizes[STEP_INERTIA] = sizes[TOUCHING], sizes[TOUCHING_INERTIA]
    small = _is_small(sizes, constants, state)
    if small:
        _small_forces(sizes, links, constants, state, poses, work)
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
    if not small and not _full_forces(sizes, links, constants, state, poses, work):
        for i in range(n):  # loops do not close on the way: no further motion but by contacts
            after[i], after[w + i] = y[i], 0.0
            state[sizes[FORCES] + i] = push[i] = 0.0
        small, state[sizes[BUDGET] + HALTS] = True, state[sizes[BUDGET] + HALTS] + 1.0
    sizes[MAP], sizes[STEP_INERTIA] = exact, felt
    kept[n] = 1.0 if small else 0.0
    R = matrix(constants, sizes[RESPONSE], n, n)
    if not small:
        R = response
        step, mass = (
            matrix(constants, sizes[TOUCHING], 3 * n, 2 * w),
            matrix(work, 11 * w, sizes[RESOLVED], w),
        )
        _respond_to_impulses(h, n, w, step, mass, answer, response)
    for i in range(n):
        total = (after[i] - y[i]) / h
        for j in range(n):
            total -= h * R[i, j] * push[j]
        u[i] = total
    _find_answers(count, rows, first, model, R)


@_inline
def _parts(sizes, state):
    """Scratch: forces per force of contacts, R, inverse inertia, (n, n) each; rates, and whether motion is small."""
    n, at = sizes[COORDINATES], sizes[CONTACT_WORK]
    return (
        matrix(state, at, n, n),
        matrix(state, at + n * n, n, n),
        matrix(state, at + 2 * n * n, n, n),
        state[at + 3 * n * n : at + 3 * n * n + n + 1],
    )


@_jit
def _respond_to_impulses(h, n, w, step, mass, answer, response):
    """Change X = (1 + dM B_v/h)^-1 of the forces of a step per force of contacts, and R = B_x X / h²."""
    count = mass.shape[0]
    for i in range(n):
        for j in range(n):
            answer[i, j] = 0.0
            total = 0.0
            if i < count:
                for k in range(count):
                    total += mass[i, k] * step[2 * n + j, w + k]
            response[i, j] = total / h
        answer[i, i] = 1.0
        response[i, i] += 1.0
    _eliminate(response, answer)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += step[2 * n + k, i] * answer[k, j]
            response[i, j] = total / (h * h)


@_jit
def _find_rows(count, rows, first, model):
    """J of all sides on this model: velocities of points, or of rotation, per rate at the present tangent."""
    body, point, axes, angular, side, J = rows.body, rows.point, rows.axes, rows.angular, rows.side, rows.J
    sizes, links, constants, state = model.sizes, model.links, model.constants, model.state
    last, n, count_of_links = first + model.bodies, sizes[COORDINATES], sizes[LINKS]
    T, above, columns = _tangent_of(sizes, constants, state), sizes[sizes[ABOVE] :], sizes[sizes[COLUMNS] :]
    at_origin = sizes[FIXED] + ORIGIN
    for b in range(count):
        x, y, z = point[b, 0], point[b, 1], point[b, 2]
        x, y, z = x - constants[at_origin], y - constants[at_origin + 1], z - constants[at_origin + 2]
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            at, sign = side[b, s, START], -1.0 if s == 0 else 1.0
            for i in range(3 * n):
                J[at + i] = 0.0
            k = columns[body[b, s] - first]
            while k < count_of_links:
                start, end = _rows_of(links, k)
                for row in range(start, end):
                    S, moves = state[sizes[AXIS] + _column(row, 6) :], T[row]
                    a, c, d = S[3 * LANES], S[4 * LANES], S[5 * LANES]
                    if not angular[b]:
                        a, c, d = (
                            S[0] + c * z - d * y,
                            S[LANES] + d * x - a * z,
                            S[2 * LANES] + a * y - c * x,
                        )
                    for i in range(3):
                        along = sign * (axes[b, i, 0] * a + axes[b, i, 1] * c + axes[b, i, 2] * d)
                        if along != 0.0:
                            out = J[at + i * n : at + (i + 1) * n]
                            for j in range(n):
                                out[j] += along * moves[j]
                k = above[k]


@_jit
def _find_answers(count, rows, first, model, R):
    """Y = J R of all sides on this model, with R symmetric up to the filter of inertia."""
    body, side, J, Y_ = rows.body, rows.side, rows.J, rows.Y
    last, n = first + model.bodies, model.sizes[COORDINATES]
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            for i in range(3):
                at = side[b, s, START] + i * n
                out = Y_[at : at + n]
                for j in range(n):
                    out[j] = 0.0
                for k in range(n):
                    share = J[at + k]
                    if share != 0.0:  # coordinates of other limbs do not move this point
                        for j in range(n):
                            out[j] += share * R[j, k]


@_jit
def strike(count, rows, first, model, u):
    """Second part, at the end of the step: its rates `u` with the impulses of `count` blocks, and Y, their response."""
    sizes, constants, state = model.sizes, model.constants, model.state
    n, w, h, work = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP], state[sizes[STEP_WORK] :]
    answer, _, inverse, kept = _parts(sizes, state)
    small, last = kept[n] == 1.0, first + model.bodies
    step, count_felt = matrix(constants, sizes[TOUCHING], 3 * n, 2 * w), sizes[RESOLVED]
    mass = matrix(work, 11 * w, count_felt, w)
    push, change, rates = state[sizes[PUSH] : sizes[PUSH] + n], work[4 * w : 4 * w + n], work[3 * w : 4 * w]
    body, side, J, impulse = rows.body, rows.side, rows.J, rows.impulse
    for i in range(n):
        change[i] = -push[i]
        push[i] = 0.0
    for b in range(count):
        for s in range(2):
            if first <= body[b, s] < last:
                for i in range(3):
                    at, share = side[b, s, START] + i * n, impulse[b, i] / h
                    for j in range(n):
                        push[j] += share * J[at + j]
    for i in range(n):
        change[i] += push[i]
        u[i] = rates[i]
    for j in range(n):
        total = change[j]
        if not small:
            total = 0.0
            for k in range(n):
                total += answer[j, k] * change[k]
        state[sizes[FORCES] + j] += total
        for i in range(n):
            u[i] += step[2 * n + j, w + i] * total
    mode = matrix(constants, sizes[MODE], n, MODE_SIZE)
    for i in range(n):
        kept[i] = u[i]
        for j in range(n):
            inverse[i, j] = 0.0
        inverse[i, i] = mode[i, YIELD]
    if not small:  # (1 + W dM)^-1 W with W of the modes at rest
        for i in range(n):
            for j in range(n):
                answer[i, j] = mode[i, YIELD] * mass[i, j] if i < count_felt and j < count_felt else 0.0
            answer[i, i] += 1.0
        _eliminate(answer, inverse)
    _find_answers(count, rows, first, model, inverse)


@_jit
def finish(model, u, w_):
    """Third part: end the step with the rates `u`, at positions that have moved by h (u + w).

    False: the motion left the finite numbers.
    """
    sizes, links, constants, state, poses = (
        model.sizes,
        model.links,
        model.constants,
        model.state,
        model.poses,
    )
    n, w, h, work = sizes[COORDINATES], sizes[WIDTH], constants[TIMESTEP], state[sizes[STEP_WORK] :]
    kept, push, after = _parts(sizes, state)[3], state[sizes[PUSH] :], work[2 * w : 4 * w]
    y, budget = state[Y : Y + n], state[sizes[BUDGET] :]
    small, count = kept[n] == 1.0, sizes[RESOLVED]
    mass = matrix(work, 11 * w, count, w)
    for i in range(n):
        after[i], after[w + i] = y[i] + h * (u[i] + w_[i]), u[i]
    if small:
        for i in range(n):
            work[4 * w + i] = after[i] - y[i]
        _set_motion(sizes, state, after)
        budget[SET] = 0.0
        whole = locate(y, sizes, links, constants, state, poses)
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
        whole = _full_end(sizes, links, constants, state, poses, work)
    _watch(sizes, links, constants, state, poses)
    total = 0.0
    for i in range(sizes[WRENCH]):
        total += abs(state[i])
    return whole and total < inf
