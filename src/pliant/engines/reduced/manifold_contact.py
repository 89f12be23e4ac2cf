"""Contact step of a reduced model on its manifold, in three parts between which the contact solver finds impulses.

Contact forces are constant over a step. To first order in their impulses p on the coordinates, the step ends at

    z = z_free + h R p,     v = v_free + V p

with R and V from the exact map of the linear part (modes that are faster than the step: backward Euler), and from the
inertia at the midpoint. The generalised velocities of the solver are first the mean velocities of the step, whose
response is R: no gap is closed by more than itself. They are then the rates at the end of the step, at which impulses
act with the inertia of the coordinates: what touches there does not go on into each other, and bounces by its
restitution. Work of the forces over the step, and then of the impulses at its end, is never positive.
"""

from typing import Any, NamedTuple

from pliant.compilation import njit
from pliant.engines.actor import CONTACT, LENGTH, NORMAL, OFFSET, START
from pliant.engines.reduced._intrinsics import LANES
from pliant.engines.reduced.kernels import COORDINATES, LINKS, TIMESTEP, Y
from pliant.engines.reduced.manifold_kernels import (
    ABOVE,
    AXIS,
    COLUMNS,
    FIXED,
    ORIGIN,
    STOPS,
    _column,
    _rows_of,
    _tangent_of,
    find_tangent,
)
from pliant.engines.reduced.manifold_steps import (
    _advance,
    _end_rates,
    _end_touching,
    _find_stops,
    _mean_response,
    _near_stops,
    _scratch,
    _stop_work,
    _touch,
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
    return _advance(1, sizes, model.links, model.constants, state, model.poses) == 1


@_jit
def begin(count, rows, first, model, before, u):
    """First part: J of `count` blocks, and Y, their effect on mean velocities; returns the number of blocks.

    The model's bodies are numbered from `first` on. Writes the rates `before` the step, and the mean velocities `u` of
    the step without contacts. Stops that joints come near are blocks, too, behind those given.
    """
    sizes, links, constants, state, poses = (
        model.sizes,
        model.links,
        model.constants,
        model.state,
        model.poses,
    )
    n = sizes[COORDINATES]
    for i in range(n):
        before[i] = state[Y + n + i]
    find_tangent(state[Y : Y + n], sizes, links, constants, state, poses)
    _find_rows(count, rows, first, model)
    _find_stops(sizes, constants, state)
    _touch(sizes, links, constants, state, poses, u)
    count = _add_stops(count, rows, first, model, u)
    _find_answers(count, rows, first, model, _mean_response(sizes, constants, state))
    return count


@_jit
def _add_stops(count, rows, first, model, u):
    """Blocks of stops that joints come near at mean velocities `u`: contacts without friction whose first row is J."""
    sizes, constants, state, side, J = model.sizes, model.constants, model.state, rows.side, rows.J
    n, h, offset = sizes[COORDINATES], constants[TIMESTEP], 0
    found = _near_stops(u, h, sizes, constants, state) if sizes[STOPS] > 0 else 0
    if found == 0:
        return count
    one, other = side[count - 1, 0], side[count - 1, 1]
    start = max(one[START] + 3 * one[LENGTH], other[START] + 3 * other[LENGTH])
    for b in range(count):
        for s in range(2):
            if first <= rows.body[b, s] < first + model.bodies:
                offset = side[b, s, OFFSET]
    rates, _, gap, _ = _stop_work(sizes, state)
    for k in range(found):
        b = count + k
        rows.kind[b], rows.partner[b], rows.angular[b], rows.struck[b] = CONTACT, -1, False, True
        rows.body[b, 0], rows.body[b, 1], rows.bound[b], rows.gap[b] = -1, first, 0.0, gap[k]
        side[b, 0, START] = side[b, 0, LENGTH] = side[b, 0, OFFSET] = 0
        side[b, 1, START], side[b, 1, LENGTH], side[b, 1, OFFSET] = start, n, offset
        for i in range(3):
            rows.target[b, i] = rows.softness[b, i] = rows.impulse[b, i] = 0.0
            for j in range(n):
                J[start + i * n + j] = rates[k, j] if i == 0 else 0.0
        rows.target[b, NORMAL] = -max(gap[k], 0.0) / h
        start += 3 * n
    return count + found


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
    n, h, last = sizes[COORDINATES], constants[TIMESTEP], first + model.bodies
    body, side, J, impulse = rows.body, rows.side, rows.J, rows.impulse
    for i in range(n):
        u[i] = 0.0
    for b in range(count):
        for s in range(2):
            if first <= body[b, s] < last:
                for i in range(3):
                    at, share = side[b, s, START] + i * n, impulse[b, i] / h
                    for j in range(n):
                        u[j] += share * J[at + j]
    _end_rates(sizes, constants, state, u)
    _find_answers(count, rows, first, model, _scratch(sizes, state)[2])


@_jit
def finish(model, u, w):
    """Third part: end the step with the rates `u`, at positions that have moved by h (u + w).

    False: the motion left the finite numbers.
    """
    return _end_touching(model.sizes, model.links, model.constants, model.state, model.poses, u, w)
