"""Ranks of loops from geometry alone: how many of a loop's six rows are independent.

Inverse inertias cannot tell: in a locked cluster they are round-off, and a heavy or stiff cluster looks locked. So a
cluster is given a square root F of the inverse inertia it would have if all its bodies were alike. The range of F holds
the motions of its handles, whatever the true inertias are. Lengths are in units of the mean lever of a joint.

- A cluster that floats on one handle moves freely there: F = 1.
- A joint or a loop compares two handles and holds some rows of J F. Reflections from the right leave one number in each
  of these rows, the longest first; F without the columns of these numbers remains.
- The rank of a loop is the number of its rows that are longer than a threshold when their turn comes.

Only reflections act on F, so round-off stays near 1e-16; an inverse inertia is the square of F, in which a row of 1e-8
would be lost. `_merge_wide` inverts a loop's matrix on as many rows as its rank, the best ones for the true inertias.
"""

from __future__ import annotations

import numpy as np

from pliant import spatial
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._merge_wide import find_ranks
from pliant.engines.quasistatic.arrays import Floats, Ints, RankPlan
from pliant.engines.quasistatic.packing import Model, pose_matrices
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

__all__ = ["LoopRanks", "lever_unit"]


def lever_unit(md: Model) -> float:
    """One over the mean lever of a joint, 1/m."""
    lever = np.sqrt((md.offsets[:, 9:] ** 2).sum(axis=1))
    return float(1 / lever[lever > 0].mean()) if (lever > 0).any() else 1.0


class LoopRanks:
    """Ranks of the loops of a mechanism at any poses of its joints.

    Attributes:
        nodes: per loop, the node that closes it.
    """

    def __init__(self, md: Model):
        self._model, self._unit = md, lever_unit(md)
        self._order, plan, kept = _plan(md)
        kind = md.tree.kind[self._order]
        self._closing = np.flatnonzero(kind == col.LOOP)
        self._joints = np.flatnonzero((kind != col.LOOP) & (md.tree.body[self._order] >= 0))
        # rows that joints hold: constant for those with one primitive
        groups = md.groups[md.tree.body[self._order[self._joints]]]
        count, dof, n = groups[:, col.COUNT], groups[:, col.DOF], groups[:, col.DOFS]
        kind = md.primitives[groups[:, col.FIRST], col.MOTION]
        axis = np.where(kind == LINK_HINGE, 5, np.where(kind == LINK_BALL, 3, 2))
        self._held = np.zeros((len(groups), 6, 6))
        for at in np.flatnonzero(count == 1).tolist():
            held = np.delete(np.arange(6), np.arange(axis[at], axis[at] + n[at]))
            self._held[at, np.arange(len(held)), held] = 1.0
        several = [np.flatnonzero((count > 1) & (n == size)) for size in range(1, 7)]
        self._several = [(at, dof[at, None] + np.arange(int(n[at[0]]))) for at in several if len(at)]
        wide = md.loop_handles
        assert wide is not None
        self._loop = wide.table[wide.index[self._order[self._closing]], col.LOOP_NUMBER]
        self.nodes = np.empty_like(self._loop)
        self.nodes[self._loop] = self._order[self._closing]
        widest = 6 * int((plan[:, col.CHILD_HANDLES] + plan[:, col.CHILD_HANDLES + 1]).max())
        self._plan = RankPlan(
            nodes=plan,
            kept=kept,
            factors=np.zeros(int((36 * plan[:, col.KEPT] ** 2).sum())),
            columns=np.zeros(len(plan), dtype=np.int64),
            both=np.zeros((widest, widest)),
            left=np.zeros((widest, widest)),
            held=np.zeros((6, widest)),
        )

    def ranks(self, poses: Floats, screws: Floats, world: Floats) -> Ints:
        """Rank of every loop.

        Args:
            poses: of groups in their parents, (groups, 12).
            screws: of joints with several primitives, (nv, 6).
            world: world poses of groups, (groups, 4, 4).
        """
        found = np.zeros(len(self._order), dtype=np.int64)
        find_ranks(self._plan, self._operators(poses, screws, world), found)
        out = np.zeros(len(self._loop), dtype=np.int64)
        out[self._loop] = found[self._closing]
        return out

    def _operators(self, poses: Floats, screws: Floats, world: Floats) -> Floats:
        """Rows that joints and loops hold of the motions of their two handles, (nodes, 2, 6, 6)."""
        md, out = self._model, np.zeros((len(self._order), 2, 6, 6))
        out[:, 1] = np.eye(6)  # of a weld: the same frame on both sides
        out[:, 0] = -np.eye(6)
        body = md.tree.body[self._order[self._joints]]
        out[self._joints, 0] = -self._motion_transforms(pose_matrices(poses[body]))
        for several, dofs in self._several:  # joints whose motions are not a choice of coordinates
            free = screws[dofs] * ([self._unit] * 3 + [1.0] * 3)
            basis = np.linalg.qr(free.transpose(0, 2, 1), mode="complete")[0].transpose(0, 2, 1)
            n = dofs.shape[1]
            self._held[several, : 6 - n] = basis[:, n:]
        out[self._joints] = self._held[:, None] @ out[self._joints]
        group = np.where(md.loops >= 0, md.tree.body[md.loops], -1)[self._loop]
        copy = pose_matrices(md.ends[2 * self._loop])
        other = world[group[:, 0]] @ copy  # the copy's end in the world, then in the body's frame
        inner = group[:, 1] >= 0
        other[inner] = spatial.se3_inverse(world[group[inner, 1]]) @ other[inner]
        out[self._closing, 0] = self._motion_transforms(copy)
        out[self._closing, 1] = -self._motion_transforms(other)
        return out

    def _motion_transforms(self, pose: Floats) -> Floats:
        """Transforms of motions to frames at `pose`, lengths in units of the mean lever."""
        scaled = pose.copy()
        scaled[:, :3, 3] *= self._unit
        return spatial.adjoint(spatial.se3_inverse(scaled))


def _plan(md: Model) -> tuple[Ints, Ints, Ints]:
    """Nodes on which ranks depend, children first; their rows in the plan, and the list of handles left."""
    tree, loops = md.tree, md.loop_handles
    assert loops is not None
    wide, kind = loops.index, tree.kind
    handles = np.where(wide >= 0, loops.table[wide, col.ALL_HANDLES], tree.handles)
    count = len(tree)
    grounded, needed = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for k in range(tree.leaves, count):
        children = [c for c in (tree.left[k], tree.right[k]) if c >= 0]
        grounded[k] = kind[k] == col.ROOT or grounded[children].any()
    shown = handles > np.where(grounded, 0, 1)  # others have no handle, or float on one
    for k in range(count - 1, tree.leaves - 1, -1):
        above = tree.parent[k]
        needed[k] = kind[k] == col.LOOP or (above >= 0 and needed[above] and shown[k])
    order = np.flatnonzero(needed)
    place = np.full(count, col.FREE)
    place[order] = np.where(shown[order], np.arange(len(order)), col.FREE)
    plan = np.zeros((len(order), col.PLAN_COLUMNS), dtype=np.int64)
    kept: list[int] = []
    start = 0
    for row, k in zip(plan, order.tolist(), strict=True):
        left, right, w = int(tree.left[k]), int(tree.right[k]), int(wide[k])
        before = int(handles[left]) if left >= 0 else 0
        row[col.CHILDREN : col.CHILDREN + 2] = place[left] if left >= 0 else col.FREE, place[right]
        row[col.CHILD_HANDLES : col.CHILD_HANDLES + 2] = before, handles[right]
        first, second = before - 1, 0
        source = [0, col.OF_RIGHT + int(handles[right]) - 1]
        if w >= 0:
            first, second = int(loops.table[w, col.AT_LEFT]), int(loops.table[w, col.AT_RIGHT])
            at = int(loops.table[w, col.SOURCE])
            source = loops.source[at : at + handles[k]].tolist()
        row[col.COMPARED : col.COMPARED + 2] = first, second + before if second >= 0 else -1
        body = int(tree.body[k])
        row[col.HELD] = 0 if kind[k] == col.SUM else 6 - (int(md.groups[body, col.DOFS]) if body >= 0 else 0)
        row[col.FACTOR_AT], row[col.KEPT_AT] = start, len(kept)
        if shown[k]:
            row[col.KEPT] = handles[k]
            kept += [x if x < col.OF_RIGHT else x - col.OF_RIGHT + before for x in source[: handles[k]]]
            start += 36 * int(handles[k]) ** 2
    return order, plan, np.array(kept, dtype=np.int64)
