"""Kernels that evaluate static forces at a configuration, and factor and solve their derivative.

Arrays: `statics.arrays`, and `System` of `mechanism.border_kernels`. The derivative of forces is that of a tree,
bordered by the rows of loops and couplings, which allow no motion, and of tendons, which allow some:

    [ H   Aᵀ ] [ step       ]   [ force ]
    [ A  -c  ] [ multipliers] = [ gap   ]

Dofs without a spring get some stiffness so that the tree factors; `solve` removes it by refinement.
"""

from __future__ import annotations

import math

from numba import types

from pliant.compilation import njit
from pliant.compilation.calls import call_returning
from pliant.mechanism.border_kernels import (
    choose_rows,
    constraint_gaps,
    factor_system,
    rows_suffice,
    solve_system,
)
from pliant.mechanism.elimination_kernels import (
    CORRECTIONS,
    DEFINITE,
    GENERAL,
    SYMMETRIC,
    set_rows,
)
from pliant.mechanism.kernels import forward, rotation_from_rest
from pliant.spatial import kernels as se3
from pliant.statics import tree_kernels
from pliant.statics.arrays import (
    BALLS,
    CHOSEN,
    CHOSEN_ELSEWHERE,
    HERE,
    KIND,
    NOT_CHOSEN,
    ROWS,
    STOP_HIGH,
    STOP_LOW,
    STOP_MARGIN,
    STOP_STIFFNESS,
)
from pliant.statics.load_kernels import FORCE, POINT

_jit = njit(error_model="numpy", nogil=True)
_entry = njit(error_model="numpy", nogil=True, counts_references=True)  # takes structures from Python
_once = njit(error_model="numpy", nogil=True, inline="always")  # called once, or tiny: not compiled by itself

_call_balls = call_returning(types.none)
REFINEMENTS = 30
_REFINED = 1e-14  # relative change of a step at which the regularization is removed
_SOFTEST_ROUNDS = 50
_NEAR = 0.5  # motion of joints, radians and radii, up to which rows that were chosen before are tried
_CLOSED = 1e-11  # gap of loops, radians and radii, up to which rows are chosen for poses nearby, too


# --- forces


@_once
def point_of(statics, which):
    """One of the points of a structure, HERE or THERE."""
    return statics.here if which == HERE else statics.there


@_entry
def evaluate(system, statics, given, turn, which):
    """Forces and their derivatives at the coordinates and with the multipliers of a point, HERE or THERE.

    `turn` is 1 for the exact derivative of torques fixed in the world, 1/2 for its symmetric part.
    """
    model, point = statics.model, point_of(statics, which)
    links, constraints = system.links.whole, system.constraints.whole
    forward(links, point.q, point.local, point.poses)
    constraint_gaps(constraints, point.q, point.poses, point.small, point.gaps)
    _add_springs(model, given, point, statics.work.calls)
    if given.stops.shape[0]:
        _add_stops(model, given.stops, point)
    _add_wrenches(links, constraints, given.rows, turn, point)


@_once
def tendon_coordinate(model, q, stretch, d):
    """Coordinate of a dof: of a hinge or slide in q, of a ball its rotation vector from rest, in `stretch`."""
    return stretch[d] if model.turning[d] else q[model.coordinate[d]]


@_jit
def ball_rotations(model, q, rest, out):
    """Rotation vectors of balls from rest, (nv,)."""
    for ball in range(model.ball_dof.shape[0]):
        d, c = model.ball_dof[ball], model.ball_coordinate[ball]
        out[d], out[d + 1], out[d + 2] = rotation_from_rest(rest, c, q[c], q[c + 1], q[c + 2], q[c + 3])


@_jit
def tendon_length(model, q, stretch, t):
    """Length of a tendon, `sum(coefficient * coordinate)`; `stretch` has the rotation vectors of balls."""
    total = 0.0
    for e in range(model.tendon_start[t], model.tendon_start[t + 1]):
        total += model.tendon_coefficient[e] * tendon_coordinate(model, q, stretch, model.tendon_dof[e])
    return total


@_once
def _add_springs(model, given, point, calls):
    """Forces, stiffness and energy of springs and tendons."""
    q, stretch, pull, residual, blocks = point.q, point.stretch, point.pull, point.residual, point.blocks
    nv, energy = residual.shape[0], 0.0
    for d in range(nv):
        pull[d] = 0.0
        blocks[d, 0] = blocks[d, 1] = blocks[d, 2] = 0.0
        residual[d] = 0.0
        point.diagonal[d] = model.stiffness[d]
    tendons = model.tendon_stiffness.shape[0]
    if tendons:
        ball_rotations(model, q, given.rest, stretch)
    for t in range(tendons):
        longer = tendon_length(model, q, stretch, t) - given.tendon_rest[t]
        tension = model.tendon_stiffness[t] * longer
        energy += 0.5 * tension * longer
        for e in range(model.tendon_start[t], model.tendon_start[t + 1]):
            pull[model.tendon_dof[e]] += model.tendon_coefficient[e] * tension
    if model.ball_dof.shape[0]:
        springs = tree_kernels.BallSprings(
            model.ball_dof, model.ball_coordinate, model.stiffness, pull, given.rest
        )
        _call_balls(calls[BALLS], (springs, q, residual, blocks, stretch, point.jacobian))
    for d in range(nv):
        if model.turning[d] == 0:
            c = model.coordinate[d]
            stretch[d] = q[c] - given.rest[c]
            residual[d] = model.stiffness[d] * stretch[d] + pull[d]
        energy += 0.5 * model.stiffness[d] * stretch[d] * stretch[d]
    point.energy[0] = energy


@_once
def _stop_law(x, w, K):
    """Energy, force and stiffness of a stop at x > 0 beyond its begin; see `limit_springs`."""
    rising = min(x, w)
    beyond = x - rising
    energy = K * (rising * rising * rising / (6 * w) + 0.5 * beyond * x)
    return energy, K * (rising * rising / (2 * w) + beyond), K * rising / w


@_once
def _add_stops(model, stops, point):
    """Add forces, stiffness and energy of springs at joint limits."""
    q, J = point.q, point.small
    for d in range(model.turning.shape[0]):
        if model.turning[d]:
            continue
        x = q[model.coordinate[d]]
        for side in range(2):
            beyond, sign = (x - stops[STOP_HIGH, d], 1.0) if side else (stops[STOP_LOW, d] - x, -1.0)
            if beyond > 0.0:
                energy, force, stiffness = _stop_law(beyond, stops[STOP_MARGIN, d], stops[STOP_STIFFNESS, d])
                point.energy[0] += energy
                point.residual[d] += sign * force
                point.diagonal[d] += stiffness
    for ball in range(model.ball_dof.shape[0]):
        d, c = model.ball_dof[ball], model.ball_coordinate[ball]
        x, y, z = se3.log_vector(q[c], q[c + 1], q[c + 2], q[c + 3])
        angle = math.sqrt(x * x + y * y + z * z)
        beyond = angle - stops[STOP_HIGH, d]
        if not beyond > 0.0:
            continue
        energy, torque, stiffness = _stop_law(beyond, stops[STOP_MARGIN, d], stops[STOP_STIFFNESS, d])
        point.energy[0] += energy
        # The torque is along the axis n of the turn; with J the right Jacobian of SO(3), J^-T n = n.
        J[0, 0], J[0, 1], J[0, 2] = x, y, z
        se3.right_jacobian_inverse(J[0], J)
        per = torque / angle
        n = x / angle, y / angle, z / angle
        for i in range(3):
            point.residual[d + i] += torque * n[i]
            for j in range(3):
                point.blocks[d + i, j] += per * J[i, j] + (stiffness - per) * n[i] * n[j]


@_once
def _add_wrenches(links, constraints, rows, turn, point):
    """Wrenches of loads and of constraint forces, their derivatives, and the forces of both on dofs."""
    copy, reactions = constraints.copy, point.reactions
    wrench, tangent, multipliers = point.wrench, point.tangent, point.multipliers
    for k in range(wrench.shape[0]):
        for i in range(6):
            wrench[k, i] = 0.0
            for j in range(6):
                tangent[k, i, j] = 0.0
    tree_kernels.add_loads(point.poses, rows, turn, wrench, tangent)
    loops = copy.shape[0]
    if loops:
        # The multipliers of a loop are a wrench on the body and its opposite on the copy. Their derivative is taken
        # symmetric: the rest of it is a multiple of the rows.
        for loop in range(loops):
            for i in range(POINT - FORCE):
                reactions[loop, FORCE + i] = -multipliers[6 * loop + i]
                reactions[loops + loop, FORCE + i] = multipliers[6 * loop + i]
        tree_kernels.add_loads(point.poses, reactions, 0.5, wrench, tangent)
    tree_kernels.accumulate(links, point.local, wrench, point.residual)
    start, dof = constraints.start, constraints.dof
    for r in range(start.shape[0] - 1):
        for e in range(start[r], start[r + 1]):
            point.residual[dof[e]] += constraints.coefficient[e] * multipliers[6 * loops + r]


@_jit
def force_error(system, model, point, scale):
    """Largest unbalanced force as a fraction of the load; torques count as forces at the radius."""
    largest, unit = 0.0, system.border.unit
    for d in range(unit.shape[0]):
        x = abs(point.residual[d]) * unit[d]
        if x != x:
            return x
        largest = max(largest, x)
    return largest / model.radius / scale


@_jit
def largest_gap(model, gaps):
    """Largest gap of loops and couplings, radians and fractions of the radius."""
    largest = 0.0
    for r in range(gaps.shape[0]):
        x = abs(gaps[r]) / model.gap_unit[r]
        if x != x:
            return x
        largest = max(largest, x)
    return largest


# --- the derivative


@_entry
def prepare(system, statics, which):
    """The matrix at a point without the stiffness of dofs, and its independent rows.

    Rows that were chosen where joints have moved little since are kept, for `factor` to try. The matrix is made
    symmetric unless it is to be GENERAL.
    """
    model, point, work = statics.model, point_of(statics, which), statics.work
    tree_kernels.world_matrix(
        system.links.whole, point.poses, point.wrench, point.tangent, system.matrix.whole
    )
    if work.flags[KIND] != GENERAL:
        _make_symmetric(system.matrix)
    _set_tendon_entries(system, model, point)
    if work.flags[ROWS] != NOT_CHOSEN and _largest_motion(system, model, point.q, work.chosen) <= _NEAR:
        work.flags[ROWS] = CHOSEN_ELSEWHERE
    else:
        _choose(system, model, point, work)


@_jit
def _choose(system, model, point, work):
    """Choose independent rows at a point; where its loops are open, for this point only.

    Many cases begin at the same configuration: those that were chosen there are chosen again without search.
    """
    gap, first, same = 0.0, work.flags[ROWS] == NOT_CHOSEN, True
    for r in range(6 * system.constraints.copy.shape[0]):
        gap = max(gap, abs(point.gaps[r]) / model.gap_unit[r])
    for c in range(point.q.shape[0]):
        same = same and point.q[c] == work.begun[c]
        work.chosen[c] = point.q[c]
    if same:
        copy(work.kept, system.fronts.kept)
        set_rows(system.tree.whole, system.fronts.whole)
    else:
        choose_rows(system, point.gaps.shape[0], gap, system.border.soft)
    work.flags[ROWS] = CHOSEN if gap <= _CLOSED else NOT_CHOSEN
    if first and work.flags[ROWS] == CHOSEN:
        copy(point.q, work.begun)
        copy(system.fronts.kept, work.kept)


@_jit
def copy(source, target):
    """Copy a vector."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@_jit
def _largest_motion(system, model, q, before):
    """Largest motion of a joint from one configuration to another, radians and radii."""
    largest, unit = 0.0, system.border.unit
    for d in range(model.coordinate.shape[0]):
        if model.turning[d] == 0:
            c = model.coordinate[d]
            largest = max(largest, abs(q[c] - before[c]) / unit[d])
    for ball in range(model.ball_coordinate.shape[0]):
        for c in range(model.ball_coordinate[ball], model.ball_coordinate[ball] + 4):
            largest = max(largest, 2.0 * abs(q[c] - before[c]))
    return largest


@_jit
def _make_symmetric(matrix):
    """Symmetric part of the matrix of the tree, without the stiffness of dofs.

    H is linear in tangents, columns and rows, and its transpose has those of the transposed tangents with columns and
    rows exchanged.
    """
    tangent, column, row = matrix.tangent, matrix.column, matrix.row
    for k in range(tangent.shape[0]):
        for i in range(6):
            for j in range(i):
                tangent[k, i, j] = tangent[k, j, i] = 0.5 * (tangent[k, i, j] + tangent[k, j, i])
    for d in range(column.shape[0]):
        for i in range(6):
            column[d, i] = row[d, i] = 0.5 * column[d, i]


@_once
def _set_tendon_entries(system, model, point):
    """Coefficients of tendons on balls: their derivative is along the inverse right Jacobian."""
    start, row, hard = system.tree.entry_start, system.tree.entry_row, point.gaps.shape[0]
    value, constant = system.tree.entry_value, system.border.constant
    for ball in range(model.ball_dof.shape[0]):
        d = model.ball_dof[ball]
        J = point.jacobian[d : d + 3]
        # the three dofs have the same rows, all of tendons, in the same order
        for e in range(start[d + 1] - start[d]):
            if row[start[d] + e] < hard:
                continue
            for j in range(3):
                total = 0.0
                for i in range(3):
                    total += constant[start[d + i] + e] * J[i, j]
                value[start[d + j] + e] = total


@_entry
def factor(system, statics, which, shift, passive, typical):
    """Factor the matrix that was prepared; returns the number of directions with negative stiffness.

    Rows that were chosen at another configuration are chosen anew if they do not suffice at this one.

    Args:
        system, statics, which: the mechanism's, and its point, HERE or THERE.
        shift: stiffness added to every dof, as a fraction of the typical stiffness.
        passive: the same for dofs without a spring; `solve` removes it.
        typical: the typical stiffness, N m/rad.
    """
    model, point = statics.model, point_of(statics, which)
    added, stiffness, unit = system.border.added, system.matrix.stiffness, system.border.unit
    for d in range(added.shape[0]):
        own = typical / (unit[d] * unit[d])
        added[d] = passive * own if model.stiffness[d] == 0.0 else 0.0
        if model.turning[d] == 0:
            stiffness[d, 0] = point.diagonal[d] + shift * own + added[d]
    work, symmetric, hard = statics.work, statics.work.flags[KIND] != GENERAL, point.gaps.shape[0]
    for ball in range(model.ball_dof.shape[0]):
        first = model.ball_dof[ball]
        block = point.blocks[first : first + 3]
        for i in range(3):
            d = first + i
            for j in range(3):
                stiffness[d, j] = 0.5 * (block[i, j] + block[j, i]) if symmetric else block[i, j]
            stiffness[d, i] += shift * typical / (unit[d] * unit[d]) + added[d]
    negative = _factor(system, work)
    if hard and work.flags[ROWS] == CHOSEN_ELSEWHERE:
        work.flags[ROWS] = CHOSEN
        if not rows_suffice(system, hard):
            _choose(system, model, point, work)
            negative = _factor(system, work)
    return negative


@_jit
def _factor(system, work):
    """Factor the matrix, as a definite one if it may be so; where that fails once, no more.

    The matrix of the tree need not be definite for that of the motions which loops allow to be so.
    """
    if work.flags[KIND] == DEFINITE:
        if factor_system(system, DEFINITE) == 0:
            return 0
        work.flags[KIND] = SYMMETRIC
    return factor_system(system, work.flags[KIND])


@_entry
def solve(system, refine, force, gap, step, multipliers):
    """Motions and scaled multipliers for right sides in rows, by the factors.

    With `refine` the stiffness added to spring-less dofs is removed, by iteration. Returns whether that has converged,
    and how far motions may be off by rounding, as a fraction of them.
    """
    border, added, right = system.border, system.border.added, system.border.right
    error = solve_system(system, force, gap, CORRECTIONS, step, multipliers)
    if not refine:
        return True, error
    count, nv, m = force.shape[0], force.shape[1], gap.shape[1]
    for _ in range(REFINEMENTS):
        change, largest, error = 0.0, 0.0, 0.0
        for r in range(count):
            for d in range(nv):
                right[0, d] = force[r, d] + added[d] * step[r, d]
            for i in range(m):
                border.gap[0, i] = gap[r, i]
            off = solve_system(system, right, border.gap, CORRECTIONS, border.step, border.multipliers)
            error = max(error, off)
            for d in range(nv):
                x = border.step[0, d]
                change = max(change, abs(x - step[r, d]))
                largest = max(largest, abs(x))
                step[r, d] = x
            for i in range(m):
                multipliers[r, i] = border.multipliers[0, i]
        if change <= _REFINED * largest:
            return True, error
    return False, error


@_entry
def softest_motion(system, motion):
    """Smallest stiffness among allowed motions (of unit size in radians and radii), and the motion, (nv,).

    By inverse iteration on the factors, so the stiffness added to spring-less dofs is part of it.
    """
    border, right = system.border, system.border.right
    unit, nv, value = border.unit, motion.shape[0], math.inf
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    for d in range(nv):
        motion[d] = math.cos((d + 1) * 1.7) * unit[d]
    for _ in range(_SOFTEST_ROUNDS):
        for d in range(nv):
            right[0, d] = motion[d] / (unit[d] * unit[d])
        solve_system(system, right, border.gap, CORRECTIONS, border.step, border.multipliers)
        square = 0.0
        for d in range(nv):
            square += (border.step[0, d] / unit[d]) ** 2
        size = math.sqrt(square)
        if size == 0.0 or not math.isfinite(size):
            return math.inf
        previous, value = value, 1.0 / size
        for d in range(nv):
            motion[d] = border.step[0, d] / size
        if abs(value - previous) < 1e-3 * value:
            break
    return value


@_once
def meets_no_stiffness(system, stiffness, motion):
    """Whether the softest motion meets no stiffness but that added to spring-less dofs."""
    added = 0.0
    for d in range(motion.shape[0]):
        added += system.border.added[d] * motion[d] * motion[d]
    return added > 0.0 and stiffness - added < 0.05 * added
