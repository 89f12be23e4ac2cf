"""Kernels for one linear system of a mechanism, its loops, couplings and tendons; and for closing loops by it.

`Border` is the system and its work space: the tree and rows of `elimination_kernels`, a matrix to fill in, room for
one right side. `Constraints` are the loops and couplings that rows are the derivatives of.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.mechanism import elimination_kernels as elimination
from pliant.mechanism.kernels import forward, move
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import kernels as se3

if TYPE_CHECKING:
    from pliant.mechanism.mechanism import Mechanism

_jit = njit(error_model="numpy", nogil=True)

REDUNDANT = 1e-9  # remainder of a dependent row, radians and sizes of loops
_OPEN, _COARSEST = 10.0, 1e-3  # the same per gap of open loops, and at most
_ROUNDS = 100


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
    """A linear system of a mechanism with m rows and nv dofs, of which the first `hard` rows allow no motion.

    Attributes:
        tree, fronts, matrix, motion: arguments of the kernels of elimination; the tree's coefficients of tendons change.
        constant: coefficients of couplings and tendons at the reference pose, as `tree.entry_value`.
        scale: of rows, (m,).
        unit: of dofs, rad and m, (nv,).
        soft, none: 1 for tendons that act, (m,); zeros, (m,).
        force, gap, step, multipliers: one right side and its solution; gaps and multipliers are scaled as rows are,
            (1, nv) and (1, m).
        miss, correction: scratch, (3, m) and (2, nv).
    """

    tree: elimination.Tree
    fronts: elimination.Fronts
    matrix: elimination.Matrix
    motion: elimination.Motion
    constant: NDArray[np.float64]
    scale: NDArray[np.float64]
    unit: NDArray[np.float64]
    soft: NDArray[np.int64]
    none: NDArray[np.int64]
    force: NDArray[np.float64]
    gap: NDArray[np.float64]
    step: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    miss: NDArray[np.float64]
    correction: NDArray[np.float64]


def make_constraints(m: Mechanism) -> Constraints:
    """The loops and couplings of a mechanism."""
    links, rows = m.links, m.couplings
    given = links.loop_copy, links.loop_body, rows.start, rows.dof, rows.coefficient, m.coupling_offset
    return Constraints(*map(np.array, (*given, m.dof_coordinate)))


def make_border(m: Mechanism, acting: NDArray[np.bool_]) -> Border:
    """Room for a linear system; of the tendons those that are `acting` hold with their stiffness, (tendons,)."""
    plan = m.elimination
    n, nv, count, hard = len(m.links), m.nv, len(plan.scale), plan.hard
    fronts, motion = plan.allocate()
    give, soft = np.zeros(count), np.zeros(count, dtype=np.int64)
    soft[hard:] = acting
    give[hard:][acting] = plan.scale[hard:][acting] ** 2 / m.tendon_stiffness[acting]
    matrix = elimination.Matrix(
        position=np.zeros((n, 3)),
        screw=np.zeros((nv, 6)),
        column=np.zeros((nv, 6)),
        row=np.zeros((nv, 6)),
        tangent=np.zeros((n, 6, 6)),
        stiffness=np.zeros((nv, 3)),
        give=give,
    )
    return Border(
        tree=plan.tree._replace(entry_value=plan.tree.entry_value.copy()),
        fronts=fronts,
        matrix=matrix,
        motion=motion,
        constant=plan.tree.entry_value.copy(),
        scale=plan.scale.copy(),
        unit=np.array(m.dof_unit),
        soft=soft,
        none=np.zeros(count, dtype=np.int64),
        force=np.zeros((1, nv)),
        gap=np.zeros((1, count)),
        step=np.zeros((1, nv)),
        multipliers=np.zeros((1, count)),
        miss=np.zeros((3, count)),
        correction=np.zeros((2, nv)),
    )


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


@_jit
def choose_rows(border, hard, gap, soft):
    """Leave out redundant rows: those that depend on others within ten times the largest `gap`, radians and radii."""
    kept = border.fronts.kept
    if kept.shape[0] == 0:
        return
    tolerance = min(max(_OPEN * gap, REDUNDANT), _COARSEST)
    for r in range(kept.shape[0]):
        kept[r] = 1  # no choice depends on an earlier one
    position, screw = border.matrix.position, border.matrix.screw
    elimination.choose_rows(
        border.tree, border.fronts, position, screw, border.unit, tolerance, tolerance, hard, soft
    )


@_jit
def solve_border(border, force, gap, step, multipliers):
    """Motions and scaled multipliers for right sides in rows, by the factors of the matrix."""
    elimination.solve_many(
        border.tree,
        border.fronts,
        border.matrix,
        force,
        gap,
        border.motion,
        border.miss,
        border.correction,
        step,
        multipliers,
    )


@_jit
def close(links, constraints, border, free, q, local, poses, turn, gaps):
    """Close loops and couplings by Gauss-Newton with least-norm steps, changing `q`; False if they do not close.

    Args:
        links, constraints, border: the mechanism's.
        free: 0 for dofs that must not move, else 1, (nv,).
        q: the start and the result.
        local, poses, turn: scratch, as of `forward` and `constraint_gaps`.
        gaps: those that are left, scaled as rows are.
    """
    hard, nv = gaps.shape[0], free.shape[0]
    if hard == 0:
        return True
    unit, step = border.unit, border.step[0]
    error = math.inf
    for d in range(nv):
        border.force[0, d] = 0.0
    for r in range(border.gap.shape[1]):
        border.gap[0, r] = 0.0
    for _ in range(_ROUNDS):
        forward(links, q, local, poses)
        constraint_gaps(constraints, q, poses, turn, gaps)
        previous, error = error, 0.0
        for r in range(hard):
            gaps[r] *= border.scale[r]
            if not math.isfinite(gaps[r]):
                return False
            error = max(error, abs(gaps[r]))
            border.gap[0, r] = -gaps[r]
        if error < 1e-14 or (error < 1e-12 and error >= 0.5 * previous):
            return True
        _unit_matrix(links, border, free, poses)
        choose_rows(border, hard, error, border.none)
        elimination.factor(border.tree, border.fronts, border.matrix, True)
        solve_border(border, border.force, border.gap, border.step, border.multipliers)
        longest = 0.0
        for d in range(nv):
            step[d] *= free[d]
            longest = max(longest, abs(step[d]) / unit[d])
        if longest < 1e-16 and error > 1e-12:
            return False
        length = min(1.0, 0.5 / max(longest, 1e-300))
        for d in range(nv):
            step[d] *= length
        move(links, q, step, q)
    return False


@_jit
def _unit_matrix(links, border, free, poses):
    """Matrix of unit stiffness, in radians and radii, without loads: its solutions are shortest motions."""
    matrix, unit = border.matrix, border.unit
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
