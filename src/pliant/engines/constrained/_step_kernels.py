"""The step: implicit midpoint in joint coordinates, by a few linear-time solves; shorter steps where those fail.

Arrays travel in three named tuples, see `_arrays`.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import _border_kernels as border
from pliant.engines.constrained import _energy_kernels as energies
from pliant.engines.constrained import _joint_kernels as joints
from pliant.engines.constrained import _kernels as kernels
from pliant.engines.constrained import _solver_kernels as solver
from pliant.engines.constrained._mixing_kernels import mix

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

DEEPEST = 4  # a step is halved at most this often
ITERATIONS = 8
DEPTH = 4  # of memory of iterations
# entries of info: length the coefficients are for, counts, unit of length, what changes and gaps count as nothing,
# joints that run into a stop and that are at one, length of the last part of a step, largest half turn squared,
# number of bordering rows that are not redundant
LENGTH, SOLVES, SUBSTEPS, UNSETTLED, UNIT, TOLERANCE, CLOSE, HITS, HELD, LAST = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
TURN, KEPT, INFO = 10, 11, 12
# half turn squared (0.06 rad a step) from which steps are settled better, and up to which part of the tolerance
SLOW, FINEST = 0.001, 1 / 64
CLEANED = 8  # steps after which momenta are looked at, and cleared of what joints do not allow
GHOST, LOOKS = 0.5, 6  # if that was more than this share of kinetic energy so often in a row


@_jit
def _middle(model, state, h, scratch, equations):
    """Links and momenta at the midpoint that u leads to; if asked for, what is amiss with the equations of motion."""
    links, constants, work, at_middle, impulse = (
        model.links,
        model.constants,
        scratch.work,
        scratch.at_middle,
        scratch.impulse,
    )
    n, t = links.shape[0], 0.5 * h
    for first in range(0, n, kernels.CHUNK):
        last = min(first + kernels.CHUNK, n)
        kernels.forward_some(first, last, links, constants, state.q, state.u, t, work)
        kernels.momenta(first, last, constants, work, at_middle)
        kernels.impulses(first, last, constants, model.gravity, model.loads, t, work, impulse)
        if equations:
            hits, held = joints.springs(
                first, last, links, model.dofs, model.rest, state.q, state.u, state.v, h, work
            )
            scratch.info[HITS] = hits if first == 0 else scratch.info[HITS] + hits
            scratch.info[HELD] = held if first == 0 else scratch.info[HELD] + held
            turn = solver.residual(first, last, links, constants, state.momentum, impulse, at_middle, t, work)
            scratch.info[TURN] = turn if first == 0 else max(turn, scratch.info[TURN])


@_jit
def _rows(model, state, length, scratch):
    """Refresh rows of loops and what all rows are to do; returns the largest gap after `length`."""
    links, constants, loops, offsets, tendons, where = (
        model.links,
        model.constants,
        model.loops,
        model.offsets,
        model.tendons,
        model.where,
    )
    q, u, v = state.q, state.u, state.v
    work, ahead, rows, wanted, give, small, info = (
        scratch.work,
        scratch.ahead,
        scratch.rows,
        scratch.wanted,
        scratch.give,
        scratch.small,
        scratch.info,
    )
    unit, m = info[UNIT], rows.shape[0]
    first = 6 * loops.shape[0]
    largest = 0.0
    if first:
        border.loop_rows(links, loops, work, unit, rows)
        kernels.forward(links, constants, q, u, length, ahead)
        largest = border.loop_gaps(loops, ahead, unit, small[:3], small[3], wanted)
        for r in range(first):
            wanted[r] = -wanted[r] / length
    for r in range(first, m):
        value, rate, before = -offsets[r - first], 0.0, 0.0
        for d in range(rows.shape[1]):
            if rows[r, d] != 0.0:
                value += rows[r, d] * q[where[d]]
                rate += rows[r, d] * u[d]
                before += rows[r, d] * v[d]
        n = r - m + tendons.shape[0]
        if n < 0:
            largest = max(largest, abs(value + length * rate))
            wanted[r] = -value / length - rate
        else:
            # a tendon has the columns of a dof that `coefficients` fills
            at = value + tendons[n, kernels.AHEAD] * rate - tendons[n, kernels.BEHIND] * before
            force = tendons[n, kernels.HALF] * at
            force += tendons[n, kernels.DRAG] * rate + tendons[n, kernels.DRAGGED] * before
            give[r] = 1.0 / tendons[n, kernels.GIVEN]
            wanted[r] = -force * give[r]
    return largest


@_jit
def _choose(model, poses, scratch):
    """Find which of the bordering rows, refreshed for these poses of links, are not redundant."""
    loops, rows, small, info = model.loops, scratch.rows, scratch.small, scratch.info
    gap = border.loop_gaps(loops, poses, info[UNIT], small[:3], small[3], scratch.change[0])
    info[KEPT] = border.independent_rows(
        rows,
        rows.shape[0] - model.tendons.shape[0],
        6 * loops.shape[0],
        model.dofs,
        gap,
        scratch.columns,
        scratch.change,
        scratch.kept,
    )


@_jit
def _improve(model, state, h, length, scratch, first):
    """Put into `du` what is to be added to the midpoint velocity u; returns the largest gap at the end of the step.

    Redundant rows are left out. Which ones they are is found at the `first` improvement, where the step starts, since
    loops are closed there; at the midpoint they are not, and redundant rows of spatial loops differ a little from what
    the others say. But a pose in which links are in line has more redundant rows than those nearby: while loops do not
    close, rows are chosen at the midpoint.
    """
    links, loops, info = model.links, model.loops, scratch.info
    multipliers, work, du, rows = state.multipliers, scratch.work, scratch.du, scratch.rows
    _middle(model, state, h, scratch, True)
    bordered = rows.shape[0] > 0
    if bordered:
        border.loop_tension(loops, multipliers, info[UNIT], 0.5 * h, work)
    if solver.factor(links, 0.5 * h, work) >= 0:
        du[0] = math.inf  # numbers have left all bounds
        return math.inf
    solver.solve(links, work, du)
    if not bordered:
        return 0.0
    if first:
        if loops.shape[0]:
            kernels.forward(links, model.constants, state.q, state.u, 0.0, scratch.ahead)
            border.loop_rows(links, loops, scratch.ahead, info[UNIT], rows)
        _choose(model, scratch.ahead, scratch)
    gap = _rows(model, state, length, scratch)
    if not first and gap >= info[CLOSE] and info[KEPT] < rows.shape[0]:
        _choose(model, work, scratch)
    border.correct(
        links,
        rows,
        scratch.give,
        scratch.wanted,
        scratch.kept[: int(info[KEPT])],
        work,
        scratch.columns,
        scratch.schur,
        scratch.change[0],
        multipliers,
        du,
    )
    return gap


@_jit
def _settle(model, state, h, length, scratch):
    """Find the midpoint velocity u; False if iterations do not contract."""
    dofs, u, du, info = model.dofs, state.u, scratch.du, scratch.info
    before, best = math.inf, math.inf
    for iteration in range(ITERATIONS):
        gap = _improve(model, state, h, length, scratch, iteration == 0)
        change = 0.0
        for d in range(u.shape[0]):
            step = h * abs(du[d]) * dofs[d, kernels.UNIT]
            if not step < 1e9:
                return False
            change = max(change, step)
        info[SOLVES] += 1
        best = min(best, change)
        # Of the rate nothing is known at first. Where stops act there may be none at all.
        rate = 1.0 if info[HELD] > 0.0 else 0.5 if state.past[0] != 0.0 else 0.75
        if iteration > 0:
            rate = min(change / before, 0.95)
        settled = change * rate < info[TOLERANCE] * (1.0 - rate) and change < 10.0 * info[TOLERANCE]
        if settled and info[TURN] > SLOW and iteration < ITERATIONS - 1:
            # Errors in the momentum of what spins fast do not average out.
            fine = info[TOLERANCE] * max((SLOW / info[TURN]) ** 2, FINEST)
            settled = change * rate < fine * (1.0 - rate)
        if settled and gap < info[CLOSE]:
            for d in range(u.shape[0]):
                u[d] += du[d]
            _middle(model, state, h, scratch, False)
            return True
        if iteration > 3 and change > 10.0 * best:
            return False
        mix(iteration, dofs, u, du, scratch.history, scratch.gram)
        before = change
    return False


@_jit
def _reflect(state, scratch):
    """Velocities and momenta after the step from those before."""
    for d in range(state.u.shape[0]):
        state.v[d] = 2.0 * state.u[d] - state.v[d]
    kernels.reflect(scratch.work, scratch.at_middle, state.momentum)


@_jit
def _potential(model, state, t, scratch):
    """Energy of gravity and springs after a time t."""
    kernels.forward(model.links, model.constants, state.q, state.u, t, scratch.ahead)
    total = energies.potential(model.constants, model.gravity, scratch.ahead)
    return total + joints.stored(model.links, model.dofs, model.rest, state.q, state.u, t)


@_jit
def _kept(model, state, h, scratch):
    """Whether the step, momenta reflected already, brings no energy from nothing."""
    constants = model.constants
    has = energies.kinetic(constants, state.momentum)
    # Before the step momenta were the midpoint's twice less these.
    had = has - 2.0 * energies.gained(constants, state.momentum, scratch.at_middle, scratch.work)
    brought = 2.0 * energies.work_done(
        constants, model.gravity, scratch.impulse, scratch.at_middle, 0.5 * h, scratch.work
    )
    brought += _potential(model, state, 0.0, scratch) - _potential(model, state, h, scratch)
    return has - had - brought <= 1e-3 * (has + had)


@_jit
def _damped(model, state, h, scratch):
    """Backward Euler: the middle of a step twice as long is where this one ends. False if it was not found.

    It damps what shook the links so much that the midpoint was not found, and takes the blow when a joint runs into
    its stop.
    """
    joints.coefficients(model.dofs, 2.0 * h, True)
    joints.coefficients(model.tendons, 2.0 * h, True)
    scratch.info[LENGTH] = 0.0
    scratch.info[UNSETTLED] += 1
    return _settle(model, state, 2.0 * h, h, scratch)


@_jit
def _allowed(model, state, h, scratch, own, brought):
    """Finish a damped step, with no more energy than there was and forces brought; False if it is not finite.

    Loads from row `own` on are those of contacts, and bring no more than `brought`: they are large, and what they seem
    to do where links end up is not exact.
    """
    constants, gravity, dofs = model.constants, model.gravity, model.dofs
    u, v, momentum = state.u, state.v, state.momentum
    work, at_middle, impulse = scratch.work, scratch.at_middle, scratch.impulse
    for d in range(u.shape[0]):
        if not abs(u[d]) < 1e100:
            return False
    had = energies.kinetic(constants, momentum) + _rotors(dofs, v) + _potential(model, state, 0.0, scratch)
    left = -1.0
    for attempt in range(4):
        # Where all energy would not bring it, it goes half as far, and in the end stays.
        if attempt:
            share = 0.5 if attempt < 3 else 0.0
            brought *= share
            for d in range(u.shape[0]):
                u[d] *= share
        _middle(model, state, 2.0 * h, scratch, False)
        left = had + energies.work_done(constants, gravity, impulse, at_middle, h, work)
        left -= max(energies.work_of_loads(model.loads, own, constants, at_middle, h, work) - brought, 0.0)
        left -= _potential(model, state, h, scratch)
        if left >= 0.0:
            break
    # What went through joints, as half the impulse, before the momenta are lost; `through` looks for it there.
    for k in range(momentum.shape[0]):
        x, y, z = momentum[k, 3], momentum[k, 4], momentum[k, 5]
        for i in range(3):
            turned = work[k, 3 * i] * x + work[k, 3 * i + 1] * y + work[k, 3 * i + 2] * z
            impulse[k, i] = 0.5 * (impulse[k, i] + momentum[k, i] - at_middle[k, i])
            impulse[k, 3 + i] = 0.5 * (impulse[k, 3 + i] + turned - at_middle[k, 3 + i])
    kernels.settle(work, at_middle, momentum)
    has = energies.kinetic(constants, momentum) + _rotors(dofs, u)
    scale = 1.0 if has <= max(left, 0.0) else math.sqrt(max(left, 0.0) / has)
    for k in range(momentum.shape[0]):
        for i in range(6):
            momentum[k, i] *= scale
            impulse[k, i] += (scale - 1.0) * at_middle[k, i]
    for d in range(u.shape[0]):
        v[d] = scale * u[d]
    for r in range(state.multipliers.shape[0]):
        state.multipliers[r] *= 0.5
    return True


@_jit
def _rotors(dofs, v):
    total = 0.0
    for d in range(v.shape[0]):
        total += 0.5 * dofs[d, kernels.ARMATURE] * v[d] * v[d]
    return total


@_jit
def _clean(model, state, scratch):
    """Clear momenta of what joints and loops do not allow, and make velocities agree with them.

    Reflection turns such a part round and round: nothing moves with it, and nothing damps it. Springs and dampers too
    stiff for the step do not allow anything either.
    """
    links, constants = model.links, model.constants
    v, momentum, du, work = state.v, state.momentum, scratch.du, scratch.work
    at_middle, impulse, wanted = scratch.at_middle, scratch.impulse, scratch.wanted
    n = links.shape[0]
    joints.hold(model.dofs, scratch.info[LENGTH], model.bare)
    for d in range(v.shape[0]):
        du[d] = 0.0
    for k in range(n):
        for i in range(6):
            impulse[k, i] = 0.0
    kernels.forward(links, constants, state.q, du, 0.0, work)
    kernels.momenta(0, n, constants, work, at_middle)
    joints.springs(0, n, links, model.bare, model.rest, state.q, du, v, 0.0, work)
    solver.residual(0, n, links, constants, momentum, impulse, at_middle, 0.0, work)
    if solver.factor(links, 0.0, work) >= 0:
        return
    solver.solve(links, work, du)
    if wanted.shape[0]:
        border.loop_rows(links, model.loops, work, scratch.info[UNIT], scratch.rows)
        hard = wanted.shape[0] - model.tendons.shape[0]
        for r in range(wanted.shape[0]):
            wanted[r] = 0.0
            scratch.give[r] = 0.0 if r < hard else 1e300  # tendons forbid nothing
        _choose(model, work, scratch)
        border.correct(
            links,
            scratch.rows,
            scratch.give,
            wanted,
            scratch.kept[: int(scratch.info[KEPT])],
            work,
            scratch.columns,
            scratch.schur,
            scratch.change[0],
            scratch.change[1],
            du,
        )
    kernels.forward(links, constants, state.q, du, 0.0, work)
    kernels.momenta(0, n, constants, work, at_middle)
    # Where bodies turn far in a step, such a part comes and goes by itself, and would be missed as energy.
    has, allowed = energies.kinetic(constants, momentum), 0.0
    for k in range(n):
        for i in range(3):
            allowed += 0.5 * at_middle[k, 3 + i] * work[k, 24 + i]
            if constants[k, kernels.MASS] > 0.0:
                allowed += 0.5 * at_middle[k, i] ** 2 / constants[k, kernels.MASS]
    state.past[2] = state.past[2] + 1.0 if has - allowed > GHOST * has else 0.0
    if state.past[2] >= LOOKS:
        state.past[2] = 0.0
        for d in range(v.shape[0]):
            v[d] = du[d]
        kernels.settle(work, at_middle, momentum)


@_jit
def _remember(dofs, u, last, earlier, past, whole):
    """Keep the last midpoint velocity, and whether a straight line is a good guess at the next."""
    same, straight = 0.0, 0.0
    for d in range(u.shape[0]):
        unit = dofs[d, kernels.UNIT]
        same = max(same, abs(u[d] - last[d]) * unit)
        straight = max(straight, abs(u[d] - 2.0 * last[d] + earlier[d]) * unit)
        earlier[d] = last[d]
    past[0] = 1.0 if whole and straight < 0.5 * same else 0.0


@_jit
def advance(n, timestep, model, state, scratch):
    """`n` steps. Returns how many were done: fewer if the motion left the finite numbers."""
    links, dofs, tendons = model.links, model.dofs, model.tendons
    q, u, earlier, past = state.q, state.u, state.earlier, state.past
    backup, info = scratch.backup, scratch.info
    nv = u.shape[0]
    for done in range(n):
        level, at = 0, 0  # in units of the shortest step
        while at < 1 << DEEPEST:
            h = timestep / (1 << level)
            if info[LENGTH] != h:
                joints.coefficients(dofs, h, False)
                joints.coefficients(tendons, h, False)
                info[LENGTH] = h
            past[1] += 1.0
            if past[1] >= CLEANED:
                _clean(model, state, scratch)
                past[1] = 0.0
            for d in range(nv):
                backup[d] = u[d]
            if past[0] != 0.0:
                for d in range(nv):
                    u[d] += u[d] - earlier[d]
            solves = info[SOLVES]
            settled = _settle(model, state, h, h, scratch) and info[HITS] == 0.0
            if settled:
                _reflect(state, scratch)
                # Where it is hard to settle, tension may make much of a small error.
                hard = level > 0 or info[SOLVES] - solves > 6
                if hard and not _kept(model, state, h, scratch):
                    _reflect(state, scratch)  # twice is not at all
                    settled = False
            if not settled:
                for d in range(nv):
                    u[d] = backup[d]
                found = _damped(model, state, h, scratch)
                if not found and level < DEEPEST:
                    for d in range(nv):
                        u[d] = backup[d]
                    past[0] = 0.0
                    level += 1
                    continue
                if not found:
                    # A single improvement of rest: linear in all forces, with plenty of damping.
                    for d in range(nv):
                        u[d] = 0.0
                    _improve(model, state, 2.0 * h, h, scratch, True)
                    for d in range(nv):
                        u[d] += scratch.du[d]
                if not _allowed(model, state, h, scratch, model.loads.shape[0], 0.0):
                    for d in range(nv):
                        u[d] = backup[d]
                    return done
            _remember(dofs, u, backup, earlier, past, settled and level == 0)
            kernels.move(links, q, u, h)
            info[SUBSTEPS] += 1
            info[LAST] = h
            at += 1 << (DEEPEST - level)
            while level > 0 and at % (1 << (DEEPEST - level + 1)) == 0:
                level -= 1
    return n
