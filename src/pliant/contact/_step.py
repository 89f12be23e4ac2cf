"""The contact step: its phases as kernels on a `Step`, and whole steps in one compiled call.

The phases are detection, rows with their warm start, the first half of the actors' steps, the solution, for mean
velocities and then for those at the end of the step, and the second half. `advance` calls them without Python in
between, in worlds of free bodies and at most one reduced model on its manifold. `ContactStepper` calls them from Python
in other worlds, with the halves of other actors' steps in between.
"""

import math

from pliant.compilation import njit
from pliant.contact import _free
from pliant.contact._detect import detect_contacts, widen_margins
from pliant.contact._rows import end_targets, fill_rows, lay_out, restitution, store
from pliant.contact._solve import delassus, recover_penetration
from pliant.contact._solve import solve as solve_rows
from pliant.contact.arrays import (
    CONTACTS,
    DONE,
    FORCES_LOST,
    FREE_LOST,
    KEPT,
    MODEL_LOST,
    MORE_NUMBERS,
    ROWS,
    TAKEN,
)
from pliant.engines.reduced import manifold_contact as reduced
from pliant.engines.reduced.kernels import WRENCH

__all__ = [
    "advance",
    "begin",
    "delassus",
    "detect_contacts",
    "end_targets",
    "fill_rows",
    "finish",
    "solve",
    "strike",
    "strike_rows",
    "widen_margins",
]

_jit = njit(counts_references=True, error_model="numpy", nogil=True)  # for the structure of a step
_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself


@_jit
def advance(steps, step):
    """Take `steps` steps; returns how it ended, a number that explains, and the number of whole steps taken.

    The states of actors and the warm start are restored if a step fails; the poses of actors are not.
    """
    for done in range(steps):
        _save(step)
        _gather_poses(step)
        how, number = detect_contacts(step)
        if how == DONE:
            fill_rows(step)
            how, number = begin(step)
        if how == DONE and step.report.counts[ROWS] > 0:
            how = solve(step)
            if how == DONE:
                how = strike(step)
        if how == DONE:
            how, number = finish(step)
        if how != DONE:
            _restore(step)
            return how, number, done
    return DONE, 0, steps


@_jit
def begin(step):
    """First half: J and Y of actors that have rows, and their velocities without contacts; whole steps of others.

    Of free bodies and the model; `busy` tells which actors have rows. Returns how it ended and a number that explains.
    """
    rows, bodies, free, model, counts = step.rows, step.bodies, step.free, step.model, step.report.counts
    body, owner, busy, strikes, struck = rows.body, bodies.owner, bodies.busy, bodies.strikes, rows.struck
    numbers = lay_out(counts[ROWS], body, bodies.size, bodies.offset, rows.side)
    if numbers + step.settings.spare > rows.J.shape[0]:
        return MORE_NUMBERS, numbers + step.settings.spare
    for a in range(busy.shape[0]):
        busy[a] = False
    for b in range(counts[ROWS]):
        struck[b] = False
        for s in range(2):
            if body[b, s] >= 0 and owner[body[b, s]] >= 0:
                busy[owner[body[b, s]]] = True
                struck[b] |= strikes[owner[body[b, s]]]
    first, last = free.state.shape[0], busy.shape[0] - 1  # the model is the last actor
    if first > 0:
        if busy[0]:
            _free.begin(step)
        else:
            bad = _free.fly(free, step.settings.timestep)
            if bad >= 0:
                return FREE_LOST, bad
    if model.bodies > 0:
        if busy[last]:
            before, u = step.velocities.before[6 * first :], step.velocities.u[6 * first :]
            counts[ROWS] = reduced.begin(counts[ROWS], rows, first, model, before, u)
        elif not reduced.free_step(model):
            return MODEL_LOST, 0
    return DONE, 0


@_jit
def solve(step):
    """Impulses of all rows, stored for the warm start of the next step, and mean velocities; returns how it ended."""
    u, w = step.velocities.u, step.velocities.w
    restitution(step)
    delassus(step)
    solve_rows(step, True)
    for i in range(u.shape[0]):
        w[i] = 0.0
    if not _is_finite(u):
        return FORCES_LOST
    recover_penetration(step)
    store(step)
    return DONE


@_jit
def strike(step):
    """Impulses and velocities `u` at the end of the step; returns how it ended.

    Nothing changes in a step in which no actor strikes.
    """
    bodies, u, w = step.bodies, step.velocities.u, step.velocities.w
    model, rows, count, first = step.model, step.rows, step.report.counts[ROWS], step.free.state.shape[0]
    last = bodies.busy.shape[0] - 1
    if not (model.bodies > 0 and bodies.busy[last] and bodies.strikes[last]):
        return DONE
    for i in range(u.shape[0]):
        w[i] += u[i]
    reduced.strike(count, rows, first, model, u[6 * first :])
    how = DONE
    if end_targets(step):
        reduced.respond(count, rows, first, model)
        how = strike_rows(step)
    for i in range(u.shape[0]):
        w[i] -= u[i]
    return how


@_jit
def strike_rows(step):
    """Impulses of all rows anew for the velocities `u` at the end of the step; returns how it ended."""
    delassus(step)
    solve_rows(step, False)
    return DONE if _is_finite(step.velocities.u) else FORCES_LOST


@_jit
def _is_finite(u):
    total = 0.0
    for i in range(u.shape[0]):
        total += abs(u[i])
    return math.isfinite(total)


@_jit
def finish(step):
    """Second half of the steps of free bodies and the model that have rows; returns as `begin` does."""
    bodies, free, model = step.bodies, step.free, step.model
    first, last = free.state.shape[0], bodies.busy.shape[0] - 1
    if first > 0 and bodies.busy[0]:
        bad = _free.finish(step)
        if bad >= 0:
            return FREE_LOST, bad
    if (
        model.bodies > 0
        and bodies.busy[last]
        and not reduced.finish(model, step.velocities.u[6 * first :], step.velocities.w[6 * first :])
    ):
        return MODEL_LOST, 0
    if step.report.counts[CONTACTS] == 0:
        step.warm.now[KEPT] = 0
    previous, poses = bodies.previous, bodies.poses
    for b in range(previous.shape[0]):
        for i in range(3):
            for j in range(4):
                previous[b, 4 * i + j] = poses[b, i, j]
    step.report.counts[TAKEN] += 1
    return DONE, 0


@_inline
def _gather_poses(step):
    """Poses of free bodies and the model as those of the world's bodies."""
    poses, free, model = step.bodies.poses, step.free.poses, step.model.poses
    count = free.shape[0]
    for b in range(count + step.model.bodies):
        for i in range(3):
            for j in range(4):
                poses[b, i, j] = free[b, i, j] if b < count else model[b - count, i, j]


@_inline
def _save(step):
    """Copy the states that a step changes."""
    free, model, saved = step.free.state, step.model.state, step.saved
    for b in range(free.shape[0]):
        for i in range(_free.STATE):
            saved.free[b, i] = free[b, i]
    for i in range(step.model.sizes[WRENCH]):
        saved.model[i] = model[i]
    for i in range(2):
        saved.now[i] = step.warm.now[i]


@_inline
def _restore(step):
    """Undo a step."""
    free, model, saved = step.free.state, step.model.state, step.saved
    for b in range(free.shape[0]):
        for i in range(_free.STATE):
            free[b, i] = saved.free[b, i]
    for i in range(step.model.sizes[WRENCH]):
        model[i] = saved.model[i]
    for i in range(2):
        step.warm.now[i] = saved.now[i]
