"""Kernels for one linear system of a mechanism, its loops, couplings and tendons; and for closing loops by it.

`System` holds all arrays of it: the tree and rows of `elimination_kernels`, a matrix to fill in, room for one right
side (`Border`), and the loops and couplings that rows are the derivatives of (`Constraints`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref
from numpy.typing import NDArray

from pliant.compilation import njit, views
from pliant.compilation.calls import call_returning
from pliant.mechanism.elimination_kernels import (
    CORRECTIONS,
    DEFINITE,
    Fronts,
    Matrix,
    Motion,
    Tree,
    row_motions,
)
from pliant.mechanism.kernels import forward, move
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LinkArrays
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True)
_entry = njit(error_model="numpy", nogil=True, counts_references=True)  # takes structures from Python
_once = njit(error_model="numpy", nogil=True, inline="always")  # called once, or tiny: not compiled by itself

REDUNDANT = 1e-9  # remainder of a dependent row, radians and sizes of loops
_OPEN, _COARSEST = 10.0, 1e-3  # the same per gap of open loops, and at most
_ROUNDS = 100
_ALMOST_CLOSED = (
    1e-10  # gap that rounding may leave, radians and sizes of loops, a thousandth of the radius or more
)
CHOOSE, FACTOR, SOLVE, CLOSE, CALLS = range(5)  # entries of `Border.calls`
_call_choose, _call_factor = call_returning(types.float64), call_returning(types.int64)
_call_solve, _call_close = call_returning(types.float64), call_returning(types.boolean)


class Constraints(NamedTuple):
    """Loops and couplings of a mechanism.

    Attributes:
        copy, body: per loop, the links whose frames must coincide.
        start, dof, coefficient, offset: rows of couplings, compressed: `sum(coefficient * coordinate) = offset`.
        coordinate: per dof, its place in q; for a ball, the first of its quaternion.
    """

    copy: NDArray[np.int64]
    body: NDArray[np.int64]
    start: NDArray[np.int64]
    dof: NDArray[np.int64]
    coefficient: NDArray[np.float64]
    offset: NDArray[np.float64]
    coordinate: NDArray[np.int64]


class Border(NamedTuple):
    """Units, scales and a right side of a linear system with m rows and nv dofs.

    Attributes:
        constant: coefficients of couplings and tendons at the reference pose, as `tree.entry_value`.
        scale: of rows, (m,).
        unit: of dofs, rad and m, (nv,).
        soft, none: 1 for tendons that act, (m,); zeros, (m,).
        force, gap, step, multipliers: one right side and its solution; gaps and multipliers are scaled as rows are,
            (1, nv) and (1, m).
        added: stiffness added to dofs without any so that the tree factors, (nv,); for solvers that remove it again.
        calls: addresses of kernels, CHOOSE ... CLOSE; 0 for those that a mechanism without rows never calls.
        miss, correction, right: scratch, (3, m), (2, nv) and (1, nv).
    """

    constant: NDArray[np.float64]
    scale: NDArray[np.float64]
    unit: NDArray[np.float64]
    soft: NDArray[np.int64]
    none: NDArray[np.int64]
    force: NDArray[np.float64]
    gap: NDArray[np.float64]
    step: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    added: NDArray[np.float64]
    calls: NDArray[np.int64]
    miss: NDArray[np.float64]
    correction: NDArray[np.float64]
    right: NDArray[np.float64]


class Fields(NamedTuple):
    """Fields of `System`: links, `Constraints`, the arguments of the kernels of elimination, and `Border`."""

    links: LinkArrays
    constraints: Constraints
    tree: Tree
    fronts: Fronts
    matrix: Matrix
    motion: Motion
    border: Border


@structref.register
class _SystemType(views.StructureType):
    pass


class System(views.Structure):
    """All `Fields` as one argument of kernels.

    The tree's coefficients of tendons change with the configuration.
    """


views.define(_SystemType, System, Fields._fields)


@njit(counts_references=True)
def join_system(links, constraints, tree, fronts, matrix, motion, border):
    """A `System` of these fields."""
    return System(links, constraints, tree, fronts, matrix, motion, border)


@_jit
def constraint_gaps(constraints, q, poses, turn, gaps):
    """Gaps of loops (position, rotation vector; world axes) and errors of couplings; `turn` is scratch, (3, 3)."""
    copy, body, start, dof = constraints.copy, constraints.body, constraints.start, constraints.dof
    for loop in range(copy.shape[0]):
        a, b, at = poses[copy[loop]], poses[body[loop]], 6 * loop
        for i in range(3):
            gaps[at + i] = a[i, 3] - b[i, 3]
            for j in range(3):
                turn[i, j] = a[i, 0] * b[j, 0] + a[i, 1] * b[j, 1] + a[i, 2] * b[j, 2]
        se3.so3_log(turn, gaps[at + 3 : at + 6])
    at = 6 * copy.shape[0]
    for r in range(start.shape[0] - 1):
        total = -constraints.offset[r]
        for e in range(start[r], start[r + 1]):
            total += constraints.coefficient[e] * q[constraints.coordinate[dof[e]]]
        gaps[at + r] = total


# --- elimination and closure, by address: their machine code is large


@_once
def choose_rows(system, hard, gap, soft):
    """Keep independent rows among the first `hard` ones, and of the others those that `soft` (m,) marks.

    Rows are redundant that depend on others within ten times the largest `gap`, radians and radii.
    """
    kept, matrix = system.fronts.kept, system.matrix
    if kept.shape[0]:
        for r in range(kept.shape[0]):
            kept[r] = 1  # no choice depends on an earlier one
        tolerance = min(max(_OPEN * gap, REDUNDANT), _COARSEST)
        places = matrix.position, matrix.screw, system.border.unit
        rows = system.tree.whole, system.fronts.whole
        _call_choose(system.border.calls[CHOOSE], (*rows, *places, tolerance, tolerance, hard, soft))


@_once
def factor_system(system, kind):
    """Factor the matrix, which is GENERAL, SYMMETRIC or DEFINITE; returns the number of negative directions.

    That is, of allowed motions with negative stiffness.
    """
    arrays = system.tree.whole, system.fronts.whole, system.matrix.whole
    return _call_factor(system.border.calls[FACTOR], (*arrays, kind))


@_once
def solve_system(system, force, gap, corrections, step, multipliers):
    """Motions and scaled multipliers for right sides in rows, by the factors; returns the error of motions.

    After up to so many `corrections`; see `elimination_kernels.solve_many`.
    """
    arrays = system.tree.whole, system.fronts.whole, system.matrix.whole
    scratch = system.motion.whole, system.border.miss, system.border.correction, system.border.unit
    return _call_solve(
        system.border.calls[SOLVE], (*arrays, force, gap, *scratch, corrections, step, multipliers)
    )


@_jit
def rows_suffice(system, hard):
    """Whether all of the first `hard` rows hold where those do that are kept, at the matrix that was factored.

    Tried on one motion that the kept rows allow: the response to forces that would move every joint by a pseudo-random
    amount if no row held it, so stiff joints move as far as soft ones. Kept rows that are not independent any more make
    motions wrong by more than `REDUNDANT`, and are found, too.
    """
    border, unit = system.border, system.border.unit
    force, step, size, apart = border.right[0], border.step[0], 0.0, 0.0
    for k in range(system.tree.dof.shape[0]):
        for a in range(system.tree.dofs[k]):
            d = system.tree.dof[k] + a
            force[d] = math.cos((d + 1) * 1.7) * unit[d] * system.matrix.stiffness[d, a]
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    solve_system(system, border.right, border.gap, 0, border.step, border.multipliers)
    row_motions(system.tree.whole, system.matrix.position, system.motion.twist, step, border.miss[0])
    for d in range(step.shape[0]):
        size = max(size, abs(step[d]) / unit[d])
    for r in range(hard):
        apart = max(apart, abs(border.miss[0, r]))
    return apart <= REDUNDANT * size


@_once
def close_system(system, free, q, local, poses, turn, gaps):
    """`close`."""
    arrays = free, q, local, poses, turn, gaps
    return gaps.shape[0] == 0 or _call_close(system.border.calls[CLOSE], (system, *arrays))


@_entry
def close(system, free, q, local, poses, turn, gaps):
    """Close loops and couplings by Gauss-Newton with least-norm steps, changing `q`; False if they do not close.

    Args:
        system: the mechanism's.
        free: 0 for dofs that must not move, else 1, (nv,).
        q: the start and the result.
        local, poses, turn: scratch, as of `forward` and `constraint_gaps`.
        gaps: those that are left, scaled as rows are.
    """
    hard, nv, border, links = gaps.shape[0], free.shape[0], system.border, system.links.whole
    unit, step = border.unit, border.step[0]
    error = math.inf
    for d in range(nv):
        border.force[0, d] = 0.0
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    for _ in range(_ROUNDS):
        forward(links, q, local, poses)
        constraint_gaps(system.constraints.whole, q, poses, turn, gaps)
        previous, error = error, 0.0
        for r in range(hard):
            gaps[r] *= border.scale[r]
            if not math.isfinite(gaps[r]):
                return False
            error = max(error, abs(gaps[r]))
            border.gap[0, r] = -gaps[r]
        if error < 1e-14 or (error < _ALMOST_CLOSED and error >= 0.5 * previous):
            return True
        _unit_matrix(links, system.matrix, unit, free, poses)
        choose_rows(system, hard, error, border.none)
        factor_system(system, DEFINITE)
        solve_system(system, border.force, border.gap, CORRECTIONS, border.step, border.multipliers)
        longest = 0.0
        for d in range(nv):
            step[d] *= free[d]
            longest = max(longest, abs(step[d]) / unit[d])
        if longest < 1e-16 and error > _ALMOST_CLOSED:
            return False
        length = min(1.0, 0.5 / max(longest, 1e-300))
        for d in range(nv):
            step[d] *= length
        move(links, q, step, q)
    return False


@_entry
def follow(
    system, free, start, coordinate, target, unit, longest, path, local, poses, turn, gaps, out, closed
):
    """Closed configurations with some coordinates given, each along a straight path of these from `start`.

    Args:
        system, free: the mechanism's, and 0 for the dofs of these coordinates, else 1, (nv,).
        start: a closed configuration, (nq,).
        coordinate: the coordinates that are given, (k,).
        target: their values, (samples, k).
        unit, longest: unit of these dofs, (k,), and the longest step along the path, in these units.
        path: scratch, (2, nq); local, poses, turn, gaps: as of `close`.
        out, closed: the configurations, (samples, nq), and 1 where loops close, else 0, (samples,).
    """
    q, last = path[0], path[1]
    for s in range(target.shape[0]):
        far = 0.0
        for i in range(coordinate.shape[0]):
            far = max(far, abs(target[s, i] - start[coordinate[i]]) / unit[i])
        steps = 1 + int(far / longest)
        for i in range(q.shape[0]):
            q[i] = last[i] = start[i]
        for step in range(steps):
            if step > 0:
                _extrapolate(system.links.whole, last, q)
            share = (step + 1.0) / steps
            for i in range(coordinate.shape[0]):
                begin = start[coordinate[i]]
                q[coordinate[i]] = (
                    target[s, i] if step == steps - 1 else begin + share * (target[s, i] - begin)
                )
            closed[s] = 1 if close(system, free, q, local, poses, turn, gaps) else 0
            if closed[s] == 0:
                break
        for i in range(q.shape[0]):
            out[s, i] = q[i]


@_jit
def _extrapolate(links, last, q):
    """Go on from `q` as far as from `last` to `q`, and keep q as `last`: through singular poses, on the same branch."""
    for i in range(q.shape[0]):
        q[i], last[i] = 2.0 * q[i] - last[i], q[i]
    for k in range(links.kind.shape[0]):
        if links.kind[k] == LINK_BALL:
            se3.quat_normalize(q[links.coordinate[k] : links.coordinate[k] + 4])


@_once
def _unit_matrix(links, matrix, unit, free, poses):
    """Matrix of unit stiffness, in radians and radii, without loads: its solutions are shortest motions."""
    for k in range(links.kind.shape[0]):
        R = poses[k]
        for i in range(3):
            matrix.position[k, i] = R[i, 3]
        for i in range(6):
            for j in range(6):
                matrix.tangent[k, i, j] = 0.0
        count = 0 if links.kind[k] == LINK_FIXED else 3 if links.kind[k] == LINK_BALL else 1
        for a in range(count):
            d = links.dof[k] + a
            s = links.screw[d]
            for i in range(3):
                matrix.screw[d, i] = free[d] * (R[i, 0] * s[0] + R[i, 1] * s[1] + R[i, 2] * s[2])
                matrix.screw[d, 3 + i] = free[d] * (R[i, 0] * s[3] + R[i, 1] * s[4] + R[i, 2] * s[5])
                matrix.stiffness[d, i] = 1.0 / (unit[d] * unit[d]) if i == a else 0.0
            for i in range(6):
                matrix.column[d, i] = matrix.row[d, i] = 0.0
