"""Kernels that find static equilibria: a globalised Newton method with geometric stiffness.

Equilibria are minima of energy among configurations with closed loops. Each iteration takes a Newton step on the exact
derivative of forces, stiffened until every allowed direction has positive stiffness, limited in length, put back onto
closed loops, and shortened until energy falls. Once loops could not be closed after a step, later ones are kept within
a trust region: stiffness is added until they are about as long as steps that have succeeded. Loads are applied in
steps, as many as it takes.
"""

from __future__ import annotations

import math

from numba import types

from pliant.compilation import njit
from pliant.compilation.calls import call_returning
from pliant.mechanism.border_kernels import close_system, constraint_gaps, solve_system
from pliant.mechanism.elimination_kernels import CORRECTIONS, DEFINITE, GENERAL, SYMMETRIC
from pliant.mechanism.kernels import forward, move
from pliant.spatial import kernels as se3
from pliant.statics import tree_kernels
from pliant.statics.arrays import (
    CLOSINGS,
    EVALUATE,
    HERE,
    KIND,
    NOT_CHOSEN,
    PREPARE,
    ROWS,
    Given,
)
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, FORCE, LINK, LOAD_SIZE, POINT, TORQUE
from pliant.statics.point_kernels import (
    ball_rotations,
    copy,
    factor,
    force_error,
    largest_gap,
    meets_no_stiffness,
    point_of,
    softest_motion,
    solve,
    tendon_length,
)

_jit = njit(error_model="numpy", nogil=True)
_entry = njit(error_model="numpy", nogil=True, counts_references=True)  # takes structures from Python
_once = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself

PASSIVE = 1e-2  # regularization of dofs without a spring, of the typical stiffness
_HELD = 1e-7  # the same where stability is judged
INACCURATE = 1e-6  # error of a solution, as a fraction of it, that rounding may leave
_GOAL = 1e-12  # residual aimed at, as a fraction of the load
_ACCEPTED = 1e-9  # residual accepted when no further progress is possible
_SECANT = 0.2  # a motion that closes loops is lengthened by the inverse of this at most
_CLOSED = 1e-13  # loop closure aimed at, radians and fractions of the radius
_ALMOST_CLOSED = 1e-11  # the same where rounding allows no more
_LONGEST = 0.5  # longest Newton step, radians and fractions of the radius
_TOO_LONG = 1.3  # times the radius of the trust region: steps up to this length are in it
_FITTED = 3  # times that stiffness is added to bring a step into the trust region
_STIFFER = 100  # times that this stiffness may grow at once
_GOOD, _POOR = (
    0.25,
    0.1,
)  # gains, of those predicted, above which the trust region grows, and below which it shrinks
_FARTHEST = 2.0  # largest rotation of a body per Newton step, rad
_KICK = 0.05  # step along the softest motion at a saddle point, radians and fractions of the radius
_SMALLEST_INCREMENT = 1 / 256  # load increments are not halved below this
_FAST = 1e-2  # error, as a fraction of the one before, at which no stiffness is added unless it has to be
_SHORT = 1e-4  # Newton step, radians and fractions of the radius, whose factors may serve the next one, too
_ITERATIONS = 60  # per load step
_LAST_ITERATIONS = 400  # for the last attempt, at full load
_SIMILAR = 0.5  # change of the load, as a fraction of it, up to which a case starts from the one before it

# columns of results
RESIDUAL, STABILITY, ITERATIONS, STATE = range(4)
RESULTS = 4
STABLE, NEUTRAL, UNSTABLE = 0.0, 1.0, 2.0
CONVERGED, NOT_FOUND, OPEN_LOOPS = 0.0, 1.0, 2.0


_call_evaluate, _call_prepare = call_returning(types.none), call_returning(types.none)


@_once
def _evaluate(system, statics, given, turn, which):
    """`evaluate`, by address: its machine code is large."""
    _call_evaluate(statics.work.calls[EVALUATE], (system, statics, given, turn, which))


@_once
def _prepare(system, statics, which):
    """`prepare`, by address."""
    _call_prepare(statics.work.calls[PREPARE], (system, statics, which))


# --- loads


@_jit
def _set_fraction(model, cases, own, fraction, given, turn):
    """Rest of springs at a fraction of the loads: with 0 the reference pose is in balance.

    `own` is the case's row of reference poses, `turn` is scratch, (nv,).
    """
    rest, reference, tendon_rest = given.rest, cases.reference[own], cases.tendon_rest[own]
    copy(cases.rest[own], rest)
    copy(tendon_rest, given.tendon_rest)
    if fraction == 1.0:
        return
    ball_rotations(model, rest, reference, turn)
    for c in range(rest.shape[0]):
        rest[c] = reference[c] + fraction * (rest[c] - reference[c])
    for ball in range(model.ball_dof.shape[0]):
        d, c = model.ball_dof[ball], model.ball_coordinate[ball]
        for i in range(3):
            turn[d + i] *= fraction
        se3.quat_exp(turn[d : d + 3], rest[c : c + 4])
        se3.quat_multiply(reference[c : c + 4], rest[c : c + 4], rest[c : c + 4])
    ball_rotations(model, reference, rest, turn)
    for t in range(given.tendon_rest.shape[0]):
        begin = tendon_length(model, reference, turn, t)
        given.tendon_rest[t] = begin + fraction * (tendon_rest[t] - begin)


@_once
def _set_loads(cases, i, fraction, rows):
    """Rows of loads of case i, times a fraction."""
    first, count = cases.start[i], cases.start[i + 1] - cases.start[i]
    for r in range(rows.shape[0]):
        source = cases.rows[first + r] if r < count else cases.weights[r - count]
        for j in range(LOAD_SIZE):
            scaled = FORCE <= j < POINT or FOLLOWER_FORCE <= j < ACTS
            rows[r, j] = fraction * source[j] if scaled else source[j]


@_once
def _conservative(model, cases, i):
    """Whether the derivative of all forces is symmetric near an equilibrium under the loads of case i.

    Loads are forces that keep their directions, and there are no balls: their torques turn with them.
    """
    if model.ball_dof.shape[0] > 0:
        return False
    for r in range(cases.start[i], cases.start[i + 1]):
        for j in range(LOAD_SIZE):
            if (TORQUE <= j < TORQUE + 3 or FOLLOWER_FORCE <= j < ACTS) and cases.rows[r, j] != 0.0:
                return False
    return True


@_jit
def _similar(model, cases, i, k):
    """Whether the loads of two cases are on the same links, and differ little."""
    a, b, count = cases.start[i], cases.start[k], cases.start[i + 1] - cases.start[i]
    if cases.start[k + 1] - b != count:
        return False
    change = 0.0
    for r in range(count):
        if cases.rows[a + r, LINK] != cases.rows[b + r, LINK]:
            return False
        for part in range(ACTS // 3):
            square = 0.0
            for j in range(3 * part, 3 * part + 3):
                square += (cases.rows[a + r, j] - cases.rows[b + r, j]) ** 2
            if part * 3 == POINT:
                if square > 0.0:
                    return False
            else:
                moment = part * 3 != FORCE and part * 3 != FOLLOWER_FORCE
                change += math.sqrt(square) / (model.radius if moment else 1.0)
    return change <= _SIMILAR * cases.scale[i]


@_jit
def _work_of_loads(rows, old, new, turn, pose, vector):
    """Work of the loads from one configuration to the next (along the straightest path, for torques)."""
    total = 0.0
    for e in range(rows.shape[0]):
        row = rows[e]
        k = int(row[LINK])
        a, b = old[k], new[k]
        for i in range(3):
            moved = b[i, 3] - a[i, 3]
            for j in range(3):
                moved += (b[i, j] - a[i, j]) * row[POINT + j]
            total += row[FORCE + i] * moved
        if row[TORQUE] != 0.0 or row[TORQUE + 1] != 0.0 or row[TORQUE + 2] != 0.0:
            for i in range(3):
                for j in range(3):
                    turn[i, j] = b[i, 0] * a[j, 0] + b[i, 1] * a[j, 1] + b[i, 2] * a[j, 2]
            se3.so3_log(turn, vector[:3])
            total += row[TORQUE] * vector[0] + row[TORQUE + 1] * vector[1] + row[TORQUE + 2] * vector[2]
        follows = False
        for j in range(FOLLOWER_FORCE, ACTS):
            follows = follows or row[j] != 0.0
        if follows:
            se3.se3_inverse(a, pose[0])
            se3.compose(pose[0], b, pose[1])
            se3.se3_log(pose[1], vector)
            for j in range(6):
                total += row[FOLLOWER_FORCE + j] * vector[j]
    return total


# --- Newton's method


@_once
def _step_length(system, point, work):
    """Length of a step: the largest joint motion or body rotation in it, as fractions of the allowed ones."""
    unit, own, turn = system.border.unit, 0.0, 0.0
    for d in range(unit.shape[0]):
        x = abs(work.step[0, d]) / unit[d]
        own = x if x != x else max(own, x)
    tree_kernels.link_twists(system.links.whole, point.local, work.step, work.twist)
    for k in range(work.twist.shape[1]):
        twist = work.twist[0, k]
        turn = max(turn, twist[3] * twist[3] + twist[4] * twist[4] + twist[5] * twist[5])
    return max(own, math.sqrt(turn) * _LONGEST / _FARTHEST)


@_once
def _move_and_close(system, model, here, motion, there, moved):
    """Move `there` from `here` along a motion, and close loops and couplings by the last factors; False if they do not.

    A finite motion opens them; small motions close them again, by Broyden's method: the derivative is that of the
    factors, changed after each motion so that it explains how gaps have changed. `moved` holds the motions, (CLOSINGS,
    nv).
    """
    links, border, hard = system.links.whole, system.border, there.gaps.shape[0]
    copy(here.q, there.q)
    move(links, here.q, motion, there.q)
    if hard == 0:
        return True
    for d in range(border.force.shape[1]):
        border.force[0, d] = 0.0
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    previous = math.inf
    for i in range(CLOSINGS):
        forward(links, there.q, there.local, there.poses)
        constraint_gaps(system.constraints.whole, there.q, there.poses, there.small, there.gaps)
        gap = largest_gap(model, there.gaps)
        if gap <= _CLOSED or (gap < _ALMOST_CLOSED and gap > 0.3 * previous):
            return True
        if gap > 2.0 * previous or not math.isfinite(gap):
            return False
        corrections = 0 if gap < 0.5 * previous else CORRECTIONS
        previous = gap
        for r in range(hard):
            border.gap[0, r] = -there.gaps[r] * border.scale[r]
        solve_system(system, border.force, border.gap, corrections, border.step, border.multipliers)
        copy(border.step[0], moved[i])
        for j in range(i - 1):
            share = _share(moved[j], moved[i], border.unit)
            for d in range(moved.shape[1]):
                moved[i, d] += share * moved[j + 1, d]
        if i > 0:
            share = 1.0 / max(1.0 - _share(moved[i - 1], moved[i], border.unit), _SECANT)
            for d in range(moved.shape[1]):
                moved[i, d] *= share
        move(links, there.q, moved[i], there.q)
    return previous < 1e-9


@_jit
def _share(along, motion, unit):
    """Part of a motion along another one, as a multiple of that, dofs in their `unit`."""
    product, square = 0.0, 0.0
    for d in range(unit.shape[0]):
        x = along[d] / unit[d]
        product += x * (motion[d] / unit[d])
        square += x * x
    return product / square if square > 0.0 else 0.0


@_jit
def _try(system, statics, given, at, length):
    """Energy gained by a move along `work.motion`, that of the loads included; infinite if loops do not close.

    Multipliers change by `length` times their change in the Newton step.
    """
    model, work, here, there = statics.model, statics.work, point_of(statics, at), point_of(statics, 1 - at)
    if not _move_and_close(system, model, here, work.motion, there, work.moved):
        return math.inf
    for r in range(there.multipliers.shape[0]):
        there.multipliers[r] = here.multipliers[r] + length * work.change[0, r] * system.border.scale[r]
    _evaluate(system, statics, given, 1.0, 1 - at)
    done = _work_of_loads(given.rows, here.poses, there.poses, here.small, work.pose, work.vector)
    return there.energy[0] - here.energy[0] - done


@_once
def _search(system, statics, given, at, length, shift, typical, scale, kicks):
    """Line search: length of the first of 12 halved steps that lowers energy or, near the end, the residual; 0 if none.

    Before it, `kicks` small moves along the softest motion, there and back, are tried: off a ridge on which symmetry
    keeps Newton's method. Returns the gain of energy, too, as a fraction of that predicted for the step, and whether
    loops could not be closed after a longer one.
    """
    model, work, here, there = statics.model, statics.work, point_of(statics, at), point_of(statics, 1 - at)
    slope, added, kick, unit, opened = 0.0, 0.0, _KICK, system.border.unit, False
    for d in range(here.residual.shape[0]):
        slope += here.residual[d] * work.step[0, d]
        added += shift * typical * (work.step[0, d] / unit[d]) ** 2
    before = force_error(system, model, here, scale)
    noise = 1e-13 * (abs(here.energy[0]) + scale * model.radius * 1e-3)
    if kicks:
        softest_motion(system, work.motion)
    for attempt in range(-kicks, 12):
        kicked = attempt < 0
        for d in range(here.residual.shape[0]):
            work.motion[d] = kick * work.motion[d] if kicked else length * work.step[0, d]
        kick = -1.0
        gain = _try(system, statics, given, at, 0.0 if kicked else length)
        if kicked:
            if gain < 0.0:
                return length, 1.0, False
            continue
        # Rounding hides energy differences near the end; there the residual decides.
        whole = shift == 0.0 and length == 1.0 and gain < math.inf
        found = math.isfinite(gain) and gain <= 1e-4 * length * slope + noise
        if found or (whole and force_error(system, model, there, scale) < 0.9 * before):
            return length, gain / (length * slope - 0.5 * length * length * (slope + added)), opened
        opened = opened or gain == math.inf
        length *= 0.5
    return 0.0, 0.0, opened


@_once
def _newton_step(system, model, here, work):
    """Newton step by the last factors; its length, and how far it may be off by rounding, as a fraction of it."""
    border, hard = system.border, here.gaps.shape[0]
    for d in range(here.residual.shape[0]):
        border.force[0, d] = -here.residual[d]
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = -here.gaps[r] * border.scale[r] if r < hard else 0.0
    _, off = solve(system, model.passive, border.force, border.gap, work.step, work.change)
    return _step_length(system, here, work), off


@_once
def _unknown(multipliers):
    """Whether there are constraint forces, all of them zero."""
    for r in range(multipliers.shape[0]):
        if multipliers[r] != 0.0:
            return False
    return multipliers.shape[0] > 0


@_once
def _leave_loads_out(matrix, work):
    """Keep the stiffness of springs only: without the forces of loops, what loads add to it means little."""
    for k in range(matrix.tangent.shape[0]):
        for i in range(6):
            for j in range(6):
                matrix.tangent[k, i, j] = 0.0
    for d in range(matrix.column.shape[0]):
        for i in range(6):
            matrix.column[d, i] = matrix.row[d, i] = 0.0
    if work.flags[KIND] == SYMMETRIC:
        work.flags[KIND] = DEFINITE


@_once
def _fit(system, work, shift, typical, longest, radius):
    """Stiffness added to every dof, as a fraction of the typical one, with which a step is about as long as `radius`.

    Newton's method on the inverse of the step's length (Moré and Sorensen), by one more solution with the factors of
    the `shift` at hand, whose step has the length `longest`. Stiffness grows by `_STIFFER` times at most.
    """
    border, unit = system.border, system.border.unit
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    for d in range(unit.shape[0]):
        border.right[0, d] = work.step[0, d] * typical / (unit[d] * unit[d])
    solve_system(system, border.right, border.gap, CORRECTIONS, border.step, border.multipliers)
    square, product = 0.0, 0.0
    for d in range(unit.shape[0]):
        x = work.step[0, d] / (unit[d] * unit[d])
        square += x * work.step[0, d]
        product += x * border.step[0, d]
    wanted = square / product * (longest / radius - 1.0)
    return shift + min(max(wanted, 0.1 * shift, 1e-6), _STIFFER * max(shift, 1e-2))


@_jit
def _minimise(system, statics, given, scale, limit, guarded):
    """Newton's method from the last good point to the equilibrium; False if it does not converge.

    A guarded run fails at once if its first step is longer than _LONGEST, since a smaller load increment converges
    better, and changes the last good point on success only.
    """
    model, work, here, at = statics.model, statics.work, statics.here, HERE
    typical = model.typical if model.typical > 0.0 else scale * model.radius
    copy(work.q, here.q)
    copy(work.multipliers, here.multipliers)
    _evaluate(system, statics, given, 1.0, at)
    if work.flags[KIND] == SYMMETRIC:
        work.flags[KIND] = DEFINITE
    shift, passive, best, stalled, prepared, found = 0.0, PASSIVE, math.inf, 0, False, False
    before, short = math.inf, False  # error at the point before, and whether the step from there was short
    radius, gaining = (
        math.inf,
        False,
    )  # of the trust region, and whether the last step gained what was predicted
    for iteration in range(limit):
        error, gap = force_error(system, model, here, scale), largest_gap(model, here.gaps)
        close_enough = error <= _ACCEPTED and gap <= _ALMOST_CLOSED
        if error <= _GOAL and gap <= _CLOSED:
            found = True
            break
        stalled = 0 if error + gap < 0.5 * best else stalled + 1
        if error + gap < best:
            best = error + gap
        if stalled >= 4 and close_enough:
            found = True
            break
        if guarded and stalled > 10 and not gaining:
            break
        if stalled > 0 and shift == 0.0 and error < 1e-4:
            # Near the end, a motion softer than the regularization of spring-less dofs slows convergence.
            passive = max(passive / 10, 1e-9)
        # Factors of the point before serve once more if they bring the error below the goal at the rate they had.
        if not (short and error * error <= _GOAL * before):
            if not prepared:
                _prepare(system, statics, at)
                prepared = True
            # stiffened until no allowed direction has negative stiffness
            if error < _FAST * before:
                shift = 0.0
            first = iteration == 0 and _unknown(work.multipliers)
            if first and factor(system, statics, at, shift, passive, typical) > 0:
                _leave_loads_out(system.matrix, work)
            while factor(system, statics, at, shift, passive, typical) > 0 and shift < 1e8:
                shift = max(4 * shift, 1e-3)
        before, short = error, False
        longest, off = _newton_step(system, model, here, work)
        for _ in range(_FITTED):
            if not longest > _TOO_LONG * radius or not prepared or off > INACCURATE:
                break
            shift = _fit(system, work, shift, typical, longest, radius)
            factor(system, statics, at, shift, passive, typical)
            longest, off = _newton_step(system, model, here, work)
        if off > INACCURATE and work.flags[KIND] != GENERAL:
            work.flags[KIND], prepared = GENERAL, False  # with a search for pivots, from here on
            continue
        if not math.isfinite(longest) or (guarded and iteration == 0 and longest > _LONGEST):
            break
        work.count[0] += 1
        far = longest > 0.5 * radius  # limited by the trust region
        kicks = 2 if stalled in (4, 8) and shift > 0.0 and not far else 0
        whole = min(1.0, min(_LONGEST, _TOO_LONG * radius) / max(longest, 1e-300))
        length, ratio, opened = _search(system, statics, given, at, whole, shift, typical, scale, kicks)
        if length == 0.0:
            if close_enough:
                found = True
                break
            if shift > 1e6:
                break
            shift = max(10 * shift, 1e-3)  # shorter, safer steps
            continue
        shortened = radius < math.inf and (length < whole or ratio < _POOR)
        if longest > _SHORT and (opened or shortened):
            radius = length * longest
        elif far and ratio > _GOOD:
            radius = min(2 * radius, _LONGEST)
        at, prepared, short = 1 - at, False, shift == 0.0 and longest < _SHORT
        here, gaining = point_of(statics, at), ratio > _GOOD
        shift = 0.0 if shift < 1e-4 else shift / (4 if far else 10)
        if not guarded:
            copy(here.q, work.q)
            copy(here.multipliers, work.multipliers)
    if found:
        copy(here.q, work.q)
        copy(here.multipliers, work.multipliers)
    return found


@_jit
def _judge(system, statics, given, scale):
    """Residual and stability at the last good point."""
    model, work, here = statics.model, statics.work, statics.here
    typical = model.typical if model.typical > 0.0 else scale * model.radius
    copy(work.q, here.q)
    copy(work.multipliers, here.multipliers)
    _evaluate(system, statics, given, 0.5, HERE)
    error, stability = force_error(system, model, here, scale), STABLE
    _prepare(system, statics, HERE)
    if factor(system, statics, HERE, 0.0, _HELD, typical) > 0:
        stability = UNSTABLE
    elif model.passive:
        stiffness = softest_motion(system, work.motion)
        if meets_no_stiffness(system, stiffness, work.motion):
            stability = NEUTRAL
    return error, stability


# --- load cases

# A case goes from one stage to the next as long as they fail: from the answer to the case before it; from a given start
# near the answer, at full load; by load steps from the reference pose; at full load, with many more iterations.
_FOLLOW, _WARM, _IN_STEPS, _LAST = range(4)


@_entry
def find_equilibria(
    system, statics, cases, room, first, last, begin, forces, warm, follow, q, multipliers, results
):
    """Equilibria of the cases `first` to `last`.

    Args:
        system, statics: the mechanism's, for this thread alone.
        cases: the `Cases`.
        room: scratch, as many rows as a case has loads, (loads, LOAD_SIZE).
        first, last: which of them.
        begin, forces: where to start, (nq,) and (hard,); loops that are open there are closed. Where cases have
            reference poses of their own, these take the place of `begin`.
        warm: whether that is near the answer: full load at once, and load steps from the reference pose if that fails.
        follow: whether a case may start from the answer to the one before it.
        q, multipliers, results: the answers, (cases, nq), (cases, hard), (cases, RESULTS).
    """
    model, here, work = statics.model, statics.here, statics.work
    alike, closed = cases.reference.shape[0] == 1, False
    for i in range(first, last):
        own = 0 if alike else i
        if not alike:
            copy(cases.reference[own], begin)
        if i == first or not alike:
            closed = close_system(system, work.free, begin, here.local, here.poses, here.small, here.gaps)
        work.count[0] = 0
        if not closed:
            copy(begin, q[i])
            copy(forces, multipliers[i])
            results[i, RESIDUAL], results[i, STATE] = largest_gap(model, here.gaps), OPEN_LOOPS
            continue
        count, scale = cases.start[i + 1] - cases.start[i] + cases.weights.shape[0], cases.scale[i]
        given = Given(room[:count], work.rest, work.tendon_rest, cases.stops)
        work.flags[ROWS] = NOT_CHOSEN
        work.flags[KIND] = DEFINITE if _conservative(model, cases, i) else GENERAL
        stage = _WARM if warm else _IN_STEPS
        if follow and i > first and results[i - 1, STATE] == CONVERGED and _similar(model, cases, i, i - 1):
            stage = _FOLLOW
        else:
            copy(begin, work.q)
            copy(forces, work.multipliers)
        done, increment, error, stability, state = 0.0, 1.0, 0.0, STABLE, NOT_FOUND
        while True:
            trial = min(1.0, done + increment) if stage == _IN_STEPS else 1.0
            limit = _LAST_ITERATIONS if stage == _LAST else _ITERATIONS
            guarded = stage in (_FOLLOW, _IN_STEPS)
            _set_fraction(model, cases, own, trial, given, work.motion)
            _set_loads(cases, i, trial, given.rows)
            found = _minimise(system, statics, given, scale, limit, guarded)
            if stage == _IN_STEPS and trial < 1.0 and found:
                done, increment = trial, 2 * increment
                continue
            if found or stage == _LAST:
                error, stability = _judge(system, statics, given, scale)
                state = CONVERGED if found else NOT_FOUND
                if stage != _FOLLOW or stability != UNSTABLE:
                    break
            if stage == _FOLLOW:
                stage = _WARM if warm else _IN_STEPS
                copy(begin, work.q)
                copy(forces, work.multipliers)
            elif stage == _WARM:
                stage = _IN_STEPS
                copy(cases.reference[own], work.q)
                for r in range(work.multipliers.shape[0]):
                    work.multipliers[r] = 0.0
            else:
                increment = (trial - done) / 4
                stage = _IN_STEPS if increment >= _SMALLEST_INCREMENT else _LAST
        results[i, RESIDUAL], results[i, STABILITY] = error, stability
        results[i, ITERATIONS], results[i, STATE] = work.count[0], state
        copy(work.q, q[i])
        copy(work.multipliers, multipliers[i])
