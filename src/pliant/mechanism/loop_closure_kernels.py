"""Kernels of loop closure: Gauss-Newton with least-norm steps, for one configuration or along a path to many."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.mechanism import elimination_kernels as elimination
from pliant.mechanism import kernels
from pliant.mechanism.links import LINK_BALL
from pliant.spatial import kernels as se3

_jit = njit(counts_references=True, error_model="numpy", nogil=True)
# Called once each: the elimination, which they call, is then linked and optimised once instead of at every level.
_inline = njit(inline="always", counts_references=True, error_model="numpy", nogil=True)
_REDUNDANT, _COARSEST = 1e-9, 1e-3  # remainder of a dependent row, radians and sizes of loops; at most
_LONGEST = 0.5  # longest step, radians and fractions of the radius


class Closure(NamedTuple):
    """Rows of loops and couplings, and work space for closing them; n links, nv dofs, m rows with those of tendons.

    Attributes:
        copy, body: per loop, the links that must coincide.
        start, dof, coefficient, offset: couplings, compressed by row.
        coordinate, owner, unit: coordinate, link and unit of every dof.
        free: 1 for dofs that may move, 0 for those that are held, (nv,).
        scale: of rows, (6 loops + couplings,).
        tree, fronts, matrix, motion: for the elimination.
        soft, gap, force, multipliers, miss, correction: its scratch.
        step, moved: the motion, (1, nv), and a read-only view of it, (nv,).
        local, poses: of links, (n, 4, 4); turn, vector: scratch, (3, 3) and (3,).
    """

    copy: NDArray[np.int64]
    body: NDArray[np.int64]
    start: NDArray[np.int64]
    dof: NDArray[np.int64]
    coefficient: NDArray[np.float64]
    offset: NDArray[np.float64]
    coordinate: NDArray[np.int64]
    owner: NDArray[np.int64]
    unit: NDArray[np.float64]
    free: NDArray[np.float64]
    scale: NDArray[np.float64]
    tree: elimination.Tree
    fronts: elimination.Fronts
    matrix: elimination.Matrix
    motion: elimination.Motion
    soft: NDArray[np.int64]
    gap: NDArray[np.float64]
    force: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    miss: NDArray[np.float64]
    correction: NDArray[np.float64]
    step: NDArray[np.float64]
    moved: NDArray[np.float64]
    local: NDArray[np.float64]
    poses: NDArray[np.float64]
    turn: NDArray[np.float64]
    vector: NDArray[np.float64]


@_jit
def _measure_gaps(c, q):
    """Minus the scaled gaps of loops and couplings, into `gap`; returns the largest."""
    largest, gap = 0.0, c.gap[0]
    loops = c.copy.shape[0]
    for loop in range(loops):
        a, b = c.poses[c.copy[loop]], c.poses[c.body[loop]]
        for i in range(3):
            for j in range(3):
                c.turn[i, j] = a[i, 0] * b[j, 0] + a[i, 1] * b[j, 1] + a[i, 2] * b[j, 2]
        se3.so3_log(c.turn, c.vector)
        for i in range(3):
            gap[6 * loop + i] = b[i, 3] - a[i, 3]
            gap[6 * loop + 3 + i] = -c.vector[i]
    for r in range(c.offset.shape[0]):
        total = c.offset[r]
        for e in range(c.start[r], c.start[r + 1]):
            total -= c.coefficient[e] * q[c.coordinate[c.dof[e]]]
        gap[6 * loops + r] = total
    for r in range(c.scale.shape[0]):
        gap[r] *= c.scale[r]
        largest = max(largest, abs(gap[r]))
        if math.isnan(gap[r]):
            return math.inf
    return largest


@_inline
def _least_norm(c, links, error):
    """The shortest motion, in radians and radii, that closes the gaps to first order, into `step`.

    Rows that are redundant within ten times the error are left out. Returns the largest entry.
    """
    matrix, nv = c.matrix, c.unit.shape[0]
    for k in range(c.poses.shape[0]):
        for i in range(3):
            matrix.position[k, i] = c.poses[k, i, 3]
    for d in range(nv):
        R, s = c.poses[c.owner[d]], links.screw[d]
        for i in range(3):
            matrix.screw[d, i] = c.free[d] * (R[i, 0] * s[0] + R[i, 1] * s[1] + R[i, 2] * s[2])
            matrix.screw[d, 3 + i] = c.free[d] * (R[i, 0] * s[3] + R[i, 1] * s[4] + R[i, 2] * s[5])
    tolerance = min(max(10.0 * error, _REDUNDANT), _COARSEST)
    elimination.choose_rows(
        c.tree,
        c.fronts,
        matrix.position,
        matrix.screw,
        c.unit,
        tolerance,
        tolerance,
        c.scale.shape[0],
        c.soft,
    )
    elimination.factor(c.tree, c.fronts, matrix, True)
    elimination.solve_many(
        c.tree, c.fronts, matrix, c.force, c.gap, c.motion, c.miss, c.correction, c.step, c.multipliers
    )
    longest = 0.0
    for d in range(nv):
        c.step[0, d] *= c.free[d]
        longest = max(longest, abs(c.step[0, d]) / c.unit[d])
    return longest


@_inline
def _close(c, links, q, seen, rounds):
    """Close loops and couplings near `q`, in place; returns the largest gap left, 0 if they are closed to rounding."""
    error = math.inf
    for r in range(c.fronts.kept.shape[0]):
        c.fronts.kept[r] = 1  # no result depends on what was closed before
    for _ in range(rounds):
        kernels.forward(links, seen, c.local, c.poses)
        previous, error = error, _measure_gaps(c, q)
        if error < 1e-14 or (error < 1e-12 and error >= 0.5 * previous):
            return 0.0
        if error == math.inf:
            break
        longest = _least_norm(c, links, error)
        if longest < 1e-16 and error > 1e-12:
            break
        if longest > _LONGEST:
            for d in range(c.unit.shape[0]):
                c.step[0, d] *= _LONGEST / longest
        kernels.move(links, seen, c.moved, q)
    return error


@_jit
def _extrapolate(links, last, q):
    """Go on from `q` as far as from `last` to `q`, and keep q as `last`: through singular poses, on the same branch."""
    for i in range(q.shape[0]):
        q[i], last[i] = 2.0 * q[i] - last[i], q[i]
    for k in range(links.kind.shape[0]):
        if links.kind[k] == LINK_BALL:
            se3.quat_normalize(q[links.coordinate[k] : links.coordinate[k] + 4])


@_jit
def close(c, links, q, seen, rounds, start, coordinate, target, unit, longest, out, gap):
    """Closed configurations with some coordinates given, each along a straight path of these from `start`.

    Args:
        c, links: the rows, and the links of the mechanism.
        q, seen: scratch, (nq,), and a read-only view of it.
        rounds: Gauss-Newton iterations at each step along the path, at most.
        start: a configuration near a closed one, (nq,).
        coordinate: the coordinates that are given, (k,); their dofs are held.
        target: their values, (samples, k).
        unit, longest: unit of these dofs, (k,), and the longest step along the path, in these units.
        out, gap: the configurations, (samples, nq), and the largest gap of each, radians and fractions of sizes; 0
            where loops are closed to rounding, (samples,).
    """
    last = np.empty(q.shape[0])
    for s in range(target.shape[0]):
        far = 0.0
        for i in range(coordinate.shape[0]):
            far = max(far, abs(target[s, i] - start[coordinate[i]]) / unit[i])
        steps = 1 + int(far / longest)
        for i in range(q.shape[0]):
            q[i] = last[i] = start[i]
        for step in range(steps):
            if step > 0:
                _extrapolate(links, last, q)
            share = (step + 1.0) / steps
            for i in range(coordinate.shape[0]):
                begin = start[coordinate[i]]
                q[coordinate[i]] = (
                    target[s, i] if step == steps - 1 else begin + share * (target[s, i] - begin)
                )
            gap[s] = _close(c, links, q, seen, rounds)
            if gap[s] > 0.0:
                break
        for i in range(q.shape[0]):
            out[s, i] = q[i]
