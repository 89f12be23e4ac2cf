"""Contact step of a reduced model on its manifold, in three parts between which the contact solver finds impulses.

Contact forces are constant over a step. To first order in their impulses p on the coordinates, the step ends at

    z = z_free + h R p,     v = v_free + V p

with R and V from the exact map of the linear part (modes that are faster than the step: backward Euler), and from the
inertia at the midpoint. The generalised velocities of the solver are first the mean velocities of the step, whose
response is R: no gap is closed by more than itself. They are then the rates at the end of the step, whose response is
V: what touches there does not go on into each other, and bounces by its restitution. Work of the forces over the step,
and then of the impulses at its end, is never positive.

The velocities of a floating base follow those of the coordinates: of the centre of mass, and the angular velocity
I^-1 L of the whole at its angular momentum, world axes. They are those at the end of the step, as of free bodies in
contact, and impulses change them without changing the rates of the coordinates: a point of a link moves at

    J v + (V - c v) + (I^-1 L - I^-1 P v) x r,

c and P the velocity of the centre of mass and the angular momentum per rate while the base rests, r from that centre.
"""

from typing import Any, NamedTuple

from pliant.compilation import njit
from pliant.engines.actor import CONTACT, LENGTH, NORMAL, OFFSET, START
from pliant.engines.reduced._intrinsics import LANES, load, matrix, store
from pliant.engines.reduced.kernels import (
    BASE,
    BASE_MASS,
    BASE_STATE,
    CENTRE,
    COORDINATES,
    FREE,
    TIMESTEP,
    Y,
)
from pliant.engines.reduced.manifold_arrays import (
    ABOVE,
    AXIS,
    BASE_WORK,
    COLUMNS,
    CONTACT_AXES,
    FIXED,
    HUB,
    MIDDLE,
    MOVED,
    ORIGIN,
    PER_RATE,
    STOPS,
    TANGENT_AT,
    WIDTH,
    WORLD_INVERSE,
)
from pliant.engines.reduced.manifold_arrays import START as HOME
from pliant.engines.reduced.manifold_kernels import add_row, base_velocities, orient, to_world, weigh_base
from pliant.engines.reduced.manifold_places import _column, _rows_of, _tangent_of, find_tangent, locate
from pliant.engines.reduced.manifold_steps import (
    _advance,
    _answer_at_end,
    _answer_on_mean,
    _end_rates,
    _end_touching,
    _find_stops,
    _near_stops,
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

    The model's bodies are numbered from `first` on. Writes the velocities `before` the step, and the mean velocities
    `u` of the step without contacts. Stops that joints come near are blocks, too, behind those given.
    """
    sizes, links, constants, state, poses = (
        model.sizes,
        model.links,
        model.constants,
        model.state,
        model.poses,
    )
    n, w = sizes[COORDINATES], sizes[WIDTH]
    for i in range(w):
        before[i] = state[Y + n + i] if i < n else 0.0
        u[i] = 0.0
    if sizes[FREE] == 1:
        orient(0.0, sizes, constants, state)
        locate(state[Y : Y + n], sizes, links, constants, state, poses)
        find_tangent(state[Y : Y + n], sizes, links, constants, state, poses)
    elif state[sizes[TANGENT_AT] + n] == 0.0:  # else that of the end of the last step
        find_tangent(state[Y : Y + n], sizes, links, constants, state, poses)
        state[sizes[TANGENT_AT] + n] = 1.0
    if sizes[FREE] == 1:
        weigh_base(sizes, constants, state)
        base_velocities(0.0, sizes, constants, state, before[w:])
    _find_rows(count, rows, first, model)
    _find_stops(sizes, constants, state)
    if sizes[FREE] == 1:
        to_world(sizes, links, constants, state, poses)
    _touch(sizes[FREE] == 1, sizes, links, constants, state, poses, u)
    count = _add_stops(count, rows, first, model, u)
    _find_answers(False, count, rows, first, model)
    return count


@_jit
def _add_stops(count, rows, first, model, u):
    """Blocks of stops that joints come near at mean velocities `u`: contacts without friction whose first row is J."""
    sizes, constants, state, side, J = model.sizes, model.constants, model.state, rows.side, rows.J
    w, h, size, offset = sizes[WIDTH], constants[TIMESTEP], _velocities(sizes), 0
    found = _near_stops(u, h, sizes, constants, state) if sizes[STOPS] > 0 else 0
    if found == 0:
        return count
    one, other = side[count - 1, 0], side[count - 1, 1]
    start = max(one[START] + 3 * one[LENGTH], other[START] + 3 * other[LENGTH])
    for b in range(count):
        for s in range(2):
            if first <= rows.body[b, s] < first + model.bodies:
                offset = side[b, s, OFFSET]
    rates, _, gap, _, _, _ = _stop_work(sizes, state)
    for k in range(found):
        b = count + k
        rows.kind[b], rows.partner[b], rows.angular[b], rows.struck[b] = CONTACT, -1, False, True
        rows.body[b, 0], rows.body[b, 1], rows.bound[b], rows.gap[b] = -1, first, 0.0, gap[k]
        side[b, 0, START] = side[b, 0, LENGTH] = side[b, 0, OFFSET] = 0
        side[b, 1, START], side[b, 1, LENGTH], side[b, 1, OFFSET] = start, size, offset
        for i in range(3):
            rows.target[b, i] = rows.softness[b, i] = rows.impulse[b, i] = 0.0
            for j in range(size):
                J[start + i * size + j] = rates[k, j] if i == 0 and j < w else 0.0
                rows.Y[start + i * size + j] = 0.0
        rows.target[b, NORMAL] = -max(gap[k], 0.0) / h
        start += 3 * size
    return count + found


@_inline
def _velocities(sizes):
    """Number of velocities: rates of the coordinates, padded with zeros, and those of a floating base."""
    return sizes[WIDTH] + (6 if sizes[FREE] == 1 else 0)


@_jit
def _find_rows(count, rows, first, model):
    """J of all sides on this model: velocities of points, or of rotation, at the present tangent.

    Of a floating base also Y of its own velocities; after `weigh_base`, base at home.
    """
    body, point, axes, angular, side, J = rows.body, rows.point, rows.axes, rows.angular, rows.side, rows.J
    sizes, links, constants, state = model.sizes, model.links, model.constants, model.state
    last, w, count_of_links = first + model.bodies, sizes[WIDTH], sizes[MOVED]
    T, above, columns = _tangent_of(sizes, constants, state), sizes[sizes[ABOVE] :], sizes[sizes[COLUMNS] :]
    at_origin, free, size = sizes[FIXED] + ORIGIN, sizes[FREE] == 1, _velocities(sizes)
    own = matrix(state, sizes[BASE_WORK] + CONTACT_AXES, 3, 3)
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            at, sign = side[b, s, START], -1.0 if s == 0 else 1.0
            for i in range(3):
                for j in range(3):
                    own[i, j] = sign * axes[b, i, j]
            x, y, z = point[b, 0], point[b, 1], point[b, 2]
            if free:
                x, y, z = _base_rows(at, size, angular[b], x, y, z, rows, model)
            else:
                x, y, z = x - constants[at_origin], y - constants[at_origin + 1], z - constants[at_origin + 2]
                for i in range(3 * w):
                    J[at + i] = 0.0
            k = columns[body[b, s] - first]
            while k < count_of_links:
                start, end = _rows_of(links, k)
                for row in range(start, end):
                    S = state[sizes[AXIS] + _column(row, 6) :]
                    a, c, d = S[3 * LANES], S[4 * LANES], S[5 * LANES]
                    if not angular[b]:
                        a, c, d = (
                            S[0] + c * z - d * y,
                            S[LANES] + d * x - a * z,
                            S[2 * LANES] + a * y - c * x,
                        )
                    for i in range(3):
                        along = own[i, 0] * a + own[i, 1] * c + own[i, 2] * d
                        if along != 0.0:
                            add_row(along, T, row * w, w, J, at + i * size)
                k = above[k]


@_jit
def _base_rows(at, size, angular, x, y, z, rows, model):
    """Rows of a contact at the point x, y, z on a floating base, from `at` on in J and Y; returns the point at home.

    Its axes, with the sign of the side, are in CONTACT_AXES, which become home axes. J of the coordinates gets what the
    base moves as they do.
    """
    sizes, state, constants, J, Y_ = model.sizes, model.state, model.constants, rows.J, rows.Y
    w, hub, centre = sizes[WIDTH], sizes[HUB], sizes[BASE_STATE] + CENTRE
    own, turn = matrix(state, sizes[BASE_WORK] + CONTACT_AXES, 3, 3), matrix(state, hub + HOME, 3, 3)
    inverse, mass = (
        matrix(state, sizes[BASE_WORK] + WORLD_INVERSE, 3, 3),
        constants[sizes[BASE] + BASE_MASS],
    )
    rx, ry, rz = x - state[centre], y - state[centre + 1], z - state[centre + 2]
    hx, hy, hz = (
        turn[0, 0] * rx + turn[1, 0] * ry + turn[2, 0] * rz,
        turn[0, 1] * rx + turn[1, 1] * ry + turn[2, 1] * rz,
        turn[0, 2] * rx + turn[1, 2] * ry + turn[2, 2] * rz,
    )
    for i in range(3):
        a, b, c = own[i, 0], own[i, 1], own[i, 2]
        o, p, q, r = at + i * size + w, ry * c - rz * b, rz * a - rx * c, rx * b - ry * a
        for j in range(3):
            own[i, j] = turn[0, j] * a + turn[1, j] * b + turn[2, j] * c
        if angular:
            a, b, c, p, q, r = 0.0, 0.0, 0.0, a, b, c
        J[o], J[o + 1], J[o + 2], J[o + 3], J[o + 4], J[o + 5] = a, b, c, p, q, r
        Y_[o], Y_[o + 1], Y_[o + 2] = a / mass, b / mass, c / mass
        for j in range(3):
            Y_[o + 3 + j] = inverse[j, 0] * p + inverse[j, 1] * q + inverse[j, 2] * r
        a, b, c = own[i, 0], own[i, 1], own[i, 2]
        p, q, r = hy * c - hz * b, hz * a - hx * c, hx * b - hy * a
        if angular:
            a, b, c, p, q, r = 0.0, 0.0, 0.0, a, b, c
        for j in range(0, w, LANES):
            k = hub + PER_RATE + j
            moved = a * load(state, k) + b * load(state, k + w) + c * load(state, k + 2 * w)
            moved += p * load(state, k + 6 * w) + q * load(state, k + 7 * w) + r * load(state, k + 8 * w)
            store(-1.0 * moved, J, at + i * size + j)
    return hx + state[hub + MIDDLE], hy + state[hub + MIDDLE + 1], hz + state[hub + MIDDLE + 2]


@_jit
def _find_answers(end, count, rows, first, model):
    """Y of the coordinates, of all sides on this model: changes of the rates at the end of the step, or of the mean."""
    body, side, J, Y_, sizes, state = rows.body, rows.side, rows.J, rows.Y, model.sizes, model.state
    last, size = first + model.bodies, _velocities(sizes)
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            at = side[b, s, START]
            if end:
                _answer_at_end(J, at, size, sizes, model.constants, state, Y_, at)
            else:
                _answer_on_mean(J, at, size, sizes, model.constants, state, Y_, at)


@_jit
def strike(count, rows, first, model, u):
    """Second part, at the end of the step: its rates `u` with the impulses of `count` blocks."""
    sizes, constants, state = model.sizes, model.constants, model.state
    w, h, last, size = sizes[WIDTH], constants[TIMESTEP], first + model.bodies, _velocities(sizes)
    body, side, J, impulse = rows.body, rows.side, rows.J, rows.impulse
    for i in range(w):
        u[i] = 0.0
    for b in range(count):
        for s in range(2):
            if first <= body[b, s] < last:
                for i in range(3):
                    if impulse[b, i] != 0.0:
                        add_row(impulse[b, i] / h, J, side[b, s, START] + i * size, w, u, 0)
    _end_rates(sizes, constants, state, u)


@_jit
def respond(count, rows, first, model):
    """Y of `count` blocks at the end of the step; after `strike`."""
    _find_answers(True, count, rows, first, model)


@_jit
def finish(model, u, w):
    """Third part: end the step with the rates `u`, at positions that have moved by h (u + w).

    False: the motion left the finite numbers.
    """
    sizes = model.sizes
    return _end_touching(
        sizes[FREE] == 1, sizes, model.links, model.constants, model.state, model.poses, u, w
    )
