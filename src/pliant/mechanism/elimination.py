"""`Elimination`: tree and rows of a mechanism, laid out for the kernels that solve for its motions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import elimination_kernels as kernels
from pliant.mechanism import kinematics
from pliant.mechanism.joints import BALL
from pliant.mechanism.mechanism import Mechanism

__all__ = ["Elimination", "plan_elimination"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SMALL = 1e-3  # smallest size of a loop, as a fraction of the mechanism's radius


@dataclass(frozen=True, eq=False)
class Elimination:
    """Where rows of loops (6 each), couplings and tendons start and close in the tree; see `plan_elimination`.

    Attributes:
        tree: for the kernels.
        scale: of rows, (m,): position rows of loops are divided by the size of the loop, coefficients of couplings and
            tendons by their length in radians and radii. Scaled rows, times motions, are scaled gaps.
        owner: link of every dof, (nv,).
        hard: number of rows of loops and couplings; those of tendons follow.
        numbers, stack, front: sizes of work space.
    """

    tree: kernels.Tree
    scale: Floats
    owner: Ints
    hard: int
    numbers: int
    stack: int
    front: int

    def with_tendons(self, rows: Floats) -> kernels.Tree:
        """The tree with tendons' coefficients at a configuration, (tendons, nv), in place of constant ones."""
        of_tendons = np.flatnonzero(self.tree.entry_row >= self.hard)
        if not len(of_tendons):
            return self.tree
        row = self.tree.entry_row[of_tendons]
        dof = np.repeat(np.arange(rows.shape[1]), np.diff(self.tree.entry_start))[of_tendons]
        value = self.tree.entry_value.copy()
        value[of_tendons] = self.scale[row] * rows[row - self.hard, dof]
        return self.tree._replace(entry_value=value)

    def allocate(self) -> tuple[kernels.Fronts, kernels.Motion]:
        """Work space of the kernels, all rows kept."""
        n, m = len(self.tree.parent), len(self.scale)
        fronts = _counting(n, m)
        kernels.count_rows(self.tree, fronts)
        count = int(fronts.start[-1])
        fronts = fronts._replace(
            rows=np.zeros(count, dtype=np.int64),
            sign=np.zeros(count),
            pivot=np.zeros(count, dtype=np.int64),
            numbers=np.empty(self.numbers),
            stack=np.empty(self.stack),
            front=np.empty((self.front + 3, self.front + 3)),
            block=np.empty((8, self.front + 3)),
        )
        motion = kernels.Motion(np.empty((n + 1, 6)), np.empty((n + 1, 6)), np.empty(m))
        return fronts, motion


def plan_elimination(m: Mechanism) -> Elimination:
    """The elimination of a mechanism, by its own spanning tree."""
    links, loops = m.links, m.topology.loops
    n = len(links)
    parent = np.where(links.parent < 0, n, links.parent)
    owner = links.dof_link

    row, dof, value, scale = _entries(m)
    hard = 6 * loops + len(m.couplings)
    count = hard + len(m.tendons)
    # ends of rows: copies and bodies of loops, six rows each; links that own the dofs of couplings and tendons
    ends = np.stack([links.loop_copy, links.loop_body], axis=1)
    pairs = np.unique(np.stack([row, owner[dof]], axis=1), axis=0) if len(row) else np.zeros((0, 2), np.int64)
    end_link = np.concatenate([np.repeat(ends, 6, axis=0).ravel(), pairs[:, 1]])
    end_start = np.zeros(count + 1, dtype=np.int64)
    end_start[1 : 6 * loops + 1] = 2
    end_start[1:] += np.bincount(pairs[:, 0], minlength=count)
    end_start = np.cumsum(end_start)
    carrier = end_link.copy()
    carrier[12 * loops :] = parent[end_link[12 * loops :]]
    order, root = np.zeros(n + 1, dtype=np.int64), np.full(count, n)
    kernels.plan(parent, end_start, carrier, order, root, *np.zeros((2, n + 1), dtype=np.int64))

    at = np.concatenate([links.loop_copy, links.loop_body])
    which = np.concatenate([np.arange(loops), -1 - np.arange(loops)])
    unit = np.zeros(loops)
    if loops:
        position = np.ascontiguousarray(kinematics.link_poses(m, m.reference)[:, :3, 3])
        kernels.loop_sizes(parent, links.loop_copy, links.loop_body, root, position, unit)
        unit = np.maximum(unit, _SMALL * m.radius)
        scale[: 6 * loops].reshape(-1, 6)[:, :3] = (1 / unit)[:, None]
    by_dof = np.lexsort((row, dof))
    tree = kernels.Tree(
        parent=parent,
        dof=links.dof,
        dofs=links.dofs,
        order=order,
        unit=unit,
        copy=links.loop_copy,
        loop_start=_starts(at, n),
        loop_at=which[np.argsort(at, kind="stable")],
        end_start=end_start,
        end_link=end_link,
        root=root,
        entry_start=_starts(dof, m.nv),
        entry_row=row[by_dof],
        entry_value=value[by_dof],
    )
    fronts = _counting(n, count)
    kernels.count_rows(tree, fronts)
    return Elimination(tree, scale, owner, hard, *kernels.measure(tree, fronts))


def _entries(m: Mechanism) -> tuple[Ints, Ints, Floats, Floats]:
    """Row, dof and scaled coefficient of every entry of couplings and tendons; the scale of all rows.

    A tendon over a dof of a ball has entries for all three, since its coefficients follow the ball's rotation.
    """
    first = 6 * m.topology.loops
    count = first + len(m.couplings) + len(m.tendons)
    start = np.concatenate([m.couplings.start, m.couplings.start[-1] + m.tendons.start[1:]])
    row = first + np.repeat(np.arange(len(start) - 1), np.diff(start))
    dof = np.concatenate([m.couplings.dof, m.tendons.dof])
    value = np.concatenate([m.couplings.coefficient, m.tendons.coefficient])
    scale = np.ones(count)
    size = np.sqrt(np.bincount(row, (value * m.dof_unit[dof]) ** 2, minlength=count))
    scale[first:] = 1 / np.where(size > 0, size, 1.0)[first:]
    ball = np.flatnonzero((row >= first + len(m.couplings)) & (m.dof_kind[dof] == BALL))
    if len(ball):
        begin = np.zeros(m.nv, dtype=np.int64)
        for d in m.primitive_dof[m.ball_primitives]:
            begin[d : d + 3] = d
        row = np.concatenate([row, np.repeat(row[ball], 3)])
        dof = np.concatenate([dof, (begin[dof[ball], None] + np.arange(3)).ravel()])
        value = np.concatenate([value, np.zeros(3 * len(ball))])
    # one entry per row and dof
    key, which = np.unique(row * max(m.nv, 1) + dof, return_inverse=True)
    row, dof = np.divmod(key, max(m.nv, 1))
    return row, dof, scale[row] * np.bincount(which, value, minlength=len(key)), scale


def _counting(n: int, m: int) -> kernels.Fronts:
    """Fronts with room to count their rows only, all rows kept."""
    floats, ints = np.zeros(0), np.zeros(0, dtype=np.int64)
    return kernels.Fronts(
        kept=np.ones(m, dtype=np.int64),
        before=np.zeros(m, dtype=np.int64),
        start=np.zeros(n + 2, dtype=np.int64),
        closing=np.zeros(n + 1, dtype=np.int64),
        rows=ints,
        sign=floats,
        pivot=ints,
        numbers=floats,
        copies=np.ones(1, dtype=np.int64),
        stack=floats,
        stack_at=np.zeros(n + 1, dtype=np.int64),
        waiting=np.zeros(n + 1, dtype=np.int64),
        front=np.zeros((0, 0)),
        block=np.zeros((0, 0)),
        place=np.zeros(m, dtype=np.int64),
        seen=np.zeros(n + 1, dtype=np.int64),
    )


def _starts(values: Ints, count: int) -> Ints:
    """Where each value 0 ... count - 1 starts in a sorted list of these values, (count + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(values, minlength=count))]).astype(np.int64)
