"""Kernels that find static equilibria: a globalised Newton method with geometric stiffness.

Equilibria are minima of energy among configurations with closed loops. Each iteration takes a Newton step on the exact
derivative of forces, stiffened until every allowed direction has positive stiffness, limited in length, put back onto
closed loops, and shortened until energy falls. Loads are applied in steps, as many as it takes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.mechanism.border_kernels import close, constraint_gaps
from pliant.mechanism.kernels import forward, move
from pliant.spatial import kernels as se3
from pliant.statics import tree_kernels
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, FORCE, LINK, LOAD_SIZE, POINT, TORQUE
from pliant.statics.point_kernels import (
    Given,
    ball_rotations,
    evaluate,
    factor,
    force_error,
    largest_gap,
    meets_no_stiffness,
    prepare,
    softest_motion,
    solve,
    tendon_length,
)

_jit = njit(error_model="numpy", nogil=True)

PASSIVE = 1e-2  # regularization of dofs without a spring, of the typical stiffness
_HELD = 1e-7  # the same where stability is judged
_GOAL = 1e-12  # residual aimed at, as a fraction of the load
_ACCEPTED = 1e-9  # residual accepted when no further progress is possible
_CLOSED = 1e-13  # loop closure aimed at, radians and fractions of the radius
_ALMOST_CLOSED = 1e-11  # the same where rounding allows no more
_LONGEST = 0.5  # longest Newton step, radians and fractions of the radius
_FARTHEST = 2.0  # largest rotation of a body per Newton step, rad
_KICK = 0.05  # step along the softest motion at a saddle point, radians and fractions of the radius
_SMALLEST_INCREMENT = 1 / 256  # load increments are not halved below this
_ITERATIONS = 60  # per load step
_LAST_ITERATIONS = 400  # for the last attempt, at full load
_SIMILAR = 0.5  # change of the load, as a fraction of it, up to which a case starts from the one before it

# columns of results
RESIDUAL, STABILITY, ITERATIONS, STATE = range(4)
RESULTS = 4
STABLE, NEUTRAL, UNSTABLE = 0.0, 1.0, 2.0
CONVERGED, NOT_FOUND, OPEN_LOOPS = 0.0, 1.0, 2.0


class Work(NamedTuple):
    """Work space of the solver.

    Attributes:
        q, multipliers: of the last good point, (nq,) and (hard,).
        rest, tendon_rest: springs' rest at a fraction of the load, (nq,) and (tendons,).
        step, change: Newton step and change of the multipliers, (1, nv) and (1, m), the latter scaled.
        motion: softest motion, (nv,).
        twist: of links, (1, links, 6).
        free: ones, (nv,).
        pose: scratch, (2, 4, 4).
        vector: scratch, (6,).
        count: iterations, (1,).
    """

    q: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    rest: NDArray[np.float64]
    tendon_rest: NDArray[np.float64]
    step: NDArray[np.float64]
    change: NDArray[np.float64]
    motion: NDArray[np.float64]
    twist: NDArray[np.float64]
    free: NDArray[np.float64]
    pose: NDArray[np.float64]
    vector: NDArray[np.float64]
    count: NDArray[np.int64]


class Cases(NamedTuple):
    """Load cases of one mechanism.

    Attributes:
        rows, start: loads of case i, `rows[start[i] : start[i + 1]]`, (loads, LOAD_SIZE).
        weights: further loads, of every case.
        rest, tendon_rest, stops: as in `Given`.
        scale: size of the loads as a force, N, (cases,).
    """

    rows: NDArray[np.float64]
    start: NDArray[np.int64]
    weights: NDArray[np.float64]
    rest: NDArray[np.float64]
    tendon_rest: NDArray[np.float64]
    stops: NDArray[np.float64]
    scale: NDArray[np.float64]


@structref.register
class _StaticsType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Statics(structref.StructRefProxy):
    """`Model`, `System`, two `Point`s and `Work` as one argument: a call from Python looks at every array it is given."""

    # The slot itself: numba drops a Ctrl-C that is handled inside the Python property of the base class.
    _numba_type_ = structref.StructRefProxy._type  # pyright: ignore


structref.define_boxing(_StaticsType, Statics)
structref.define_constructor(Statics, _StaticsType, ("model", "system", "here", "there", "work"))


@njit(counts_references=True)
def join_statics(model, system, here, there, work):
    """`Statics` of a mechanism."""
    return Statics(model, system, here, there, work)


@_jit
def _copy(source, target):
    for i in range(source.shape[0]):
        target[i] = source[i]


# --- loads


@_jit
def _set_fraction(model, cases, fraction, given, turn):
    """A fraction of the loads: with 0 the reference pose is in balance, 1 gives all of them. `turn` is scratch, (nv,)."""
    rest, reference = given.rest, model.reference
    if fraction == 1.0:
        _copy(cases.rest, rest)
        _copy(cases.tendon_rest, given.tendon_rest)
        return
    for c in range(rest.shape[0]):
        rest[c] = reference[c] + fraction * (cases.rest[c] - reference[c])
    ball_rotations(model, cases.rest, reference, turn)
    for ball in range(model.ball_dof.shape[0]):
        d, c = model.ball_dof[ball], model.ball_coordinate[ball]
        for i in range(3):
            turn[d + i] *= fraction
        se3.quat_exp(turn[d : d + 3], rest[c : c + 4])
        se3.quat_multiply(reference[c : c + 4], rest[c : c + 4], rest[c : c + 4])
    ball_rotations(model, reference, rest, turn)
    for t in range(given.tendon_rest.shape[0]):
        begin = tendon_length(model, reference, turn, t)
        given.tendon_rest[t] = begin + fraction * (cases.tendon_rest[t] - begin)


@_jit
def _set_loads(cases, i, fraction, rows):
    """Rows of loads of case i, times a fraction."""
    first, count = cases.start[i], cases.start[i + 1] - cases.start[i]
    for r in range(rows.shape[0]):
        source = cases.rows[first + r] if r < count else cases.weights[r - count]
        for j in range(LOAD_SIZE):
            scaled = FORCE <= j < POINT or FOLLOWER_FORCE <= j < ACTS
            rows[r, j] = fraction * source[j] if scaled else source[j]


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


@_jit
def _step_length(model, unit, point, work):
    """Length of a step: the largest joint motion or body rotation in it, as fractions of the allowed ones."""
    own, turn = 0.0, 0.0
    for d in range(unit.shape[0]):
        x = abs(work.step[0, d]) / unit[d]
        if not math.isfinite(x):
            return math.inf
        own = max(own, x)
    tree_kernels.link_twists(model.links, point.local, work.step, work.twist)
    for k in range(work.twist.shape[1]):
        twist = work.twist[0, k]
        turn = max(turn, twist[3] * twist[3] + twist[4] * twist[4] + twist[5] * twist[5])
    return max(own, math.sqrt(turn) * _LONGEST / _FARTHEST)


@_jit
def _factor_positive(model, point, system, shift, passive, typical):
    """Factor, stiffened until no allowed direction has negative stiffness; returns the shift."""
    while factor(model, point, system, shift, passive, typical) > 0 and shift < 1e8:
        shift = max(4 * shift, 1e-3)
    return shift


@_jit
def _close_by_factors(model, system, point):
    """Close loops and couplings after a finite step, by the last factors; False if they do not close."""
    hard, border = point.gaps.shape[0], system.border
    if hard == 0:
        return True
    for d in range(border.force.shape[1]):
        border.force[0, d] = 0.0
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    previous = math.inf
    for _ in range(12):
        forward(model.links, point.q, point.local, point.poses)
        constraint_gaps(model.constraints, point.q, point.poses, point.small, point.gaps)
        gap = largest_gap(model, point.gaps)
        if gap <= _CLOSED or (gap < _ALMOST_CLOSED and gap > 0.3 * previous):
            return True
        if gap > 0.9 * previous or not math.isfinite(gap):
            return False
        previous = gap
        for r in range(hard):
            border.gap[0, r] = -point.gaps[r] * border.scale[r]
        solve(system, False, border.force, border.gap, border.step, border.multipliers)
        move(model.links, point.q, border.step[0], point.q)
    return previous < 1e-9


@_jit
def _search(model, given, system, here, there, work, length, shift, scale):
    """Line search: the first of 12 halved steps that lowers energy or, near the end, the residual; False if none."""
    nv, hard, unit = here.residual.shape[0], here.gaps.shape[0], system.border.unit
    row = system.border.scale
    slope = 0.0
    for d in range(nv):
        slope += here.residual[d] * work.step[0, d]
    before = force_error(model, unit, here, scale)
    noise = 1e-13 * (abs(here.energy[0]) + scale * model.radius * 1e-3)
    for _ in range(12):
        for d in range(nv):
            work.motion[d] = length * work.step[0, d]
        _copy(here.q, there.q)
        move(model.links, here.q, work.motion, there.q)
        if _close_by_factors(model, system, there):
            for r in range(hard):
                there.multipliers[r] = here.multipliers[r] + length * work.change[0, r] * row[r]
            evaluate(model, given, 1.0, there)
            done = _work_of_loads(given.rows, here.poses, there.poses, here.small, work.pose, work.vector)
            gain = there.energy[0] - here.energy[0] - done
            if math.isfinite(gain) and gain <= 1e-4 * length * slope + noise:
                return True
            # Rounding hides energy differences near the end; there the residual decides.
            if shift == 0.0 and length == 1.0 and force_error(model, unit, there, scale) < 0.9 * before:
                return True
        length *= 0.5
    return False


@_jit
def _escape(model, given, system, here, there, work):
    """A small move along the softest motion, if it lowers energy: off a ridge on which symmetry keeps Newton."""
    softest_motion(system, work.motion)
    for d in range(work.motion.shape[0]):
        work.motion[d] *= _KICK
    for _ in range(2):
        _copy(here.q, there.q)
        move(model.links, here.q, work.motion, there.q)
        if _close_by_factors(model, system, there):
            _copy(here.multipliers, there.multipliers)
            evaluate(model, given, 1.0, there)
            done = _work_of_loads(given.rows, here.poses, there.poses, here.small, work.pose, work.vector)
            if there.energy[0] - here.energy[0] < done:
                return True
        for d in range(work.motion.shape[0]):
            work.motion[d] = -work.motion[d]
    return False


@_jit
def _minimise(model, given, system, here, there, work, scale, limit, guarded):
    """Newton's method from the last good point to the equilibrium; False if it does not converge.

    A guarded run fails at once if its first step is longer than _LONGEST, since a smaller load increment converges
    better, and changes the last good point on success only.
    """
    nv, hard, border = here.residual.shape[0], here.gaps.shape[0], system.border
    typical = model.typical if model.typical > 0.0 else scale * model.radius
    _copy(work.q, here.q)
    _copy(work.multipliers, here.multipliers)
    evaluate(model, given, 1.0, here)
    shift, passive, best, stalled, prepared, found = 0.0, PASSIVE, math.inf, 0, False, False
    for iteration in range(limit):
        error, gap = force_error(model, border.unit, here, scale), largest_gap(model, here.gaps)
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
        if guarded and stalled > 10:
            return False
        if stalled > 0 and shift == 0.0 and error < 1e-4:
            # Near the end, a motion softer than the regularization of spring-less dofs slows convergence.
            passive = max(passive / 10, 1e-9)
        if not prepared:
            prepare(model, here, system)
            prepared = True
        shift = _factor_positive(model, here, system, shift, passive, typical)
        for d in range(nv):
            border.force[0, d] = -here.residual[d]
        for r in range(border.gap.shape[1]):
            border.gap[0, r] = -here.gaps[r] * border.scale[r] if r < hard else 0.0
        solve(system, model.passive, border.force, border.gap, work.step, work.change)
        longest = _step_length(model, border.unit, here, work)
        if not math.isfinite(longest) or (guarded and iteration == 0 and longest > _LONGEST):
            return False
        work.count[0] += 1
        moved = (stalled == 4 or stalled == 8) and shift > 0.0
        moved = moved and _escape(model, given, system, here, there, work)
        if not moved:
            length = min(1.0, _LONGEST / max(longest, 1e-300))
            moved = _search(model, given, system, here, there, work, length, shift, scale)
        if not moved:
            if close_enough:
                found = True
                break
            if shift > 1e6:
                return False
            shift = max(10 * shift, 1e-3)  # shorter, safer steps
            continue
        here, there, prepared = there, here, False
        shift = 0.0 if shift < 1e-4 else shift / 10
        if not guarded:
            _copy(here.q, work.q)
            _copy(here.multipliers, work.multipliers)
    if found:
        _copy(here.q, work.q)
        _copy(here.multipliers, work.multipliers)
    return found


@_jit
def _apply_in_steps(model, cases, i, given, system, here, there, work):
    """Load steps from the last good point, where the reference pose is in balance, else one long last attempt."""
    done, increment, scale = 0.0, 1.0, cases.scale[i]
    while done < 1.0:
        trial = min(1.0, done + increment)
        _set_fraction(model, cases, trial, given, work.motion)
        _set_loads(cases, i, trial, given.rows)
        if _minimise(model, given, system, here, there, work, scale, _ITERATIONS, True):
            done, increment = trial, 2 * increment
            continue
        increment = (trial - done) / 4
        if increment < _SMALLEST_INCREMENT:
            break
    if done >= 1.0:
        return True
    _set_fraction(model, cases, 1.0, given, work.motion)
    _set_loads(cases, i, 1.0, given.rows)
    return _minimise(model, given, system, here, there, work, scale, _LAST_ITERATIONS, False)


@_jit
def _judge(model, given, system, here, work, scale):
    """Residual and stability at the last good point."""
    typical = model.typical if model.typical > 0.0 else scale * model.radius
    _copy(work.q, here.q)
    _copy(work.multipliers, here.multipliers)
    evaluate(model, given, 0.5, here)
    error = force_error(model, system.border.unit, here, scale)
    prepare(model, here, system)
    if factor(model, here, system, 0.0, _HELD, typical) > 0:
        return error, UNSTABLE
    if model.passive:
        stiffness = softest_motion(system, work.motion)
        if meets_no_stiffness(system, stiffness, work.motion):
            return error, NEUTRAL
    return error, STABLE


@njit(counts_references=True, error_model="numpy", nogil=True)
def find_equilibria(statics, cases, first, last, start, forces, warm, follow, q, multipliers, results):
    """Equilibria of the cases `first` to `last`.

    Args:
        statics: the mechanism's `Statics`, for this thread alone.
        cases: the `Cases`.
        first, last: which of them.
        start, forces: where to start, (nq,) and (hard,).
        warm: whether that is near the answer: full load at once, and load steps from the reference pose if that fails.
        follow: whether a case may start from the answer to the one before it.
        q, multipliers, results: the answers, (cases, nq), (cases, hard), (cases, RESULTS).
    """
    model, system, here, there, work = statics.model, statics.system, statics.here, statics.there, statics.work
    begin = start.copy()
    if not close(
        model.links,
        model.constraints,
        system.border,
        work.free,
        begin,
        here.local,
        here.poses,
        here.small,
        here.gaps,
    ):
        for i in range(first, last):
            _copy(begin, q[i])
            _copy(forces, multipliers[i])
            results[i, RESIDUAL] = np.abs(here.gaps).max()
            results[i, STATE] = OPEN_LOOPS
        return
    most = 0
    for i in range(first, last):
        most = max(most, cases.start[i + 1] - cases.start[i])
    room = np.empty((most + cases.weights.shape[0], LOAD_SIZE))
    for i in range(first, last):
        count = cases.start[i + 1] - cases.start[i] + cases.weights.shape[0]
        given = Given(room[:count], work.rest, work.tendon_rest, cases.stops)
        _find(model, cases, i, given, system, here, there, work, begin, forces, warm, follow and i > first, results)
        _copy(work.q, q[i])
        _copy(work.multipliers, multipliers[i])


@_jit
def _find(model, cases, i, given, system, here, there, work, begin, forces, warm, follow, results):
    """The equilibrium of case i; `work` has the answer to the one before it, and gets this one's."""
    scale = cases.scale[i]
    work.count[0] = 0
    error, stability, found = 0.0, UNSTABLE, False
    if follow and results[i - 1, STATE] == CONVERGED and _similar(model, cases, i, i - 1):
        _set_fraction(model, cases, 1.0, given, work.motion)
        _set_loads(cases, i, 1.0, given.rows)
        found = _minimise(model, given, system, here, there, work, scale, _ITERATIONS, True)
        if found:
            error, stability = _judge(model, given, system, here, work, scale)
            found = stability != UNSTABLE
    if not found:
        _copy(begin, work.q)
        _copy(forces, work.multipliers)
        if warm:
            _set_fraction(model, cases, 1.0, given, work.motion)
            _set_loads(cases, i, 1.0, given.rows)
            found = _minimise(model, given, system, here, there, work, scale, _ITERATIONS, False)
            if not found:
                _copy(model.reference, work.q)
                for r in range(work.multipliers.shape[0]):
                    work.multipliers[r] = 0.0
        if not found:
            found = _apply_in_steps(model, cases, i, given, system, here, there, work)
        error, stability = _judge(model, given, system, here, work, scale)
    results[i, RESIDUAL] = error
    results[i, STABILITY] = stability
    results[i, ITERATIONS] = work.count[0]
    results[i, STATE] = CONVERGED if found else NOT_FOUND
