"""Redundancy of loops from geometry alone: how many of a loop's six rows say something new.

Inverse inertias cannot tell: where a cluster is locked they are round-off, and what is heavy or stiff looks locked. So
a cluster is given a square root F of the inverse inertia it would have if all its bodies were alike. The range of F
holds the motions of its handles, whatever the true inertias are. Lengths are in units of the mean lever of a joint.

- A cluster that floats on one handle moves freely there: F = 1.
- A joint or a loop compares two handles and holds some rows of J F. Reflections from the right leave one number in each
  of these rows, the longest first; F without the columns of these numbers remains.
- How many rows of a loop are longer than `_ranks.REDUNDANT` when their turn comes is its rank.

Only reflections act on F, so round-off stays near 1e-16; an inverse inertia is the square of F, where a row of 1e-8
would be lost in it. `_loop_kernels.invert` keeps as many rows as the rank says, the best ones for the true inertias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.quasistatic._ranks import (
    CHILD,
    COMPARED,
    FREE,
    HANDLES,
    HELD,
    LEFT,
    LIST,
    PLAN_COLUMNS,
    START,
    ranks,
)
from pliant.engines.quasistatic.assembly import LOOP, ROOT, SUM
from pliant.engines.quasistatic.packing import Model, square
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

__all__ = ["Redundancy"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Redundancy:
    """Ranks of the loops of a mechanism at any poses of its joints.

    Attributes:
        unit: one over the mean lever of a joint, 1/m.
        nodes: per loop, the node that closes it.
    """

    def __init__(self, md: Model):
        self._model = md
        lever = np.sqrt((md.offsets[:, 9:] ** 2).sum(axis=1))
        self.unit = float(1 / lever[lever > 0].mean()) if (lever > 0).any() else 1.0
        self._order, self._plan, self._kept = _plan(md)
        p = self._plan
        kind = md.tree.kind[self._order]
        self._closing = np.flatnonzero(kind == LOOP)
        self._joints = np.flatnonzero((kind != LOOP) & (md.tree.body[self._order] >= 0))
        # what joints hold, row by row: for now of those with one primitive
        body = md.tree.body[self._order[self._joints]]
        first, count, dof, n = md.groups[body, 1:5].T
        kind = md.primitives[first, 0]
        axis = np.where(kind == LINK_HINGE, 5, np.where(kind == LINK_BALL, 3, 2))
        self._held = np.zeros((len(body), 6, 6))
        for at in np.flatnonzero(count == 1).tolist():
            held = np.delete(np.arange(6), np.arange(axis[at], axis[at] + n[at]))
            self._held[at, np.arange(len(held)), held] = 1.0
        groups = [np.flatnonzero((count > 1) & (n == size)) for size in range(1, 7)]
        self._several = [(at, dof[at, None] + np.arange(n[at[0]])) for at in groups if len(at)]
        assert md.ports is not None
        self._loop = md.ports.table[md.ports.index[self._order[self._closing]], -1]
        self.nodes = np.empty_like(self._loop)
        self.nodes[self._loop] = self._order[self._closing]
        widest = 6 * int((p[:, HANDLES] + p[:, HANDLES + 1]).max())
        self._size = int((36 * p[:, LEFT] ** 2).sum())
        self._scratch = np.zeros((widest, widest)), np.zeros((widest, widest)), np.zeros((6, widest))

    def ranks(self, poses: Floats, screws: Floats, world: Floats) -> Ints:
        """Rank of every loop.

        Args:
            poses: of groups in their parents, (groups, 12).
            screws: of joints with several primitives, (nv, 6).
            world: world poses of groups, (groups, 4, 4).
        """
        p = self._plan
        found, columns = np.zeros((2, len(p)), dtype=np.int64)
        f, g, c = self._scratch
        ranks(
            p,
            self._kept,
            self._operators(poses, screws, world),
            np.empty(self._size),
            columns,
            f,
            g,
            c,
            found,
        )
        out = np.zeros(len(self._loop), dtype=np.int64)
        out[self._loop] = found[self._closing]
        return out

    def _operators(self, poses: Floats, screws: Floats, world: Floats) -> Floats:
        """Rows that joints and loops hold of the motions of their two handles, (nodes, 2, 6, 6)."""
        md, out = self._model, np.zeros((len(self._plan), 2, 6, 6))
        out[:, 1] = np.eye(6)  # of a weld: the same frame twice
        out[:, 0] = -np.eye(6)
        body = md.tree.body[self._order[self._joints]]
        out[self._joints, 0] = -self._seen(square(poses[body]))
        for several, dofs in self._several:  # joints whose motions are not a choice of coordinates
            free = screws[dofs] * ([self.unit] * 3 + [1.0] * 3)
            basis = np.linalg.qr(free.transpose(0, 2, 1), mode="complete")[0].transpose(0, 2, 1)
            n = dofs.shape[1]
            self._held[several, : 6 - n] = basis[:, n:]
        out[self._joints] = self._held[:, None] @ out[self._joints]
        group = np.where(md.loops >= 0, md.tree.body[md.loops], -1)[self._loop]
        copy = square(md.ends[2 * self._loop])
        other = world[group[:, 0]] @ copy  # where the copy is, then as the body sees it
        inner = group[:, 1] >= 0
        other[inner] = spatial.se3_inverse(world[group[inner, 1]]) @ other[inner]
        out[self._closing, 0] = self._seen(copy)
        out[self._closing, 1] = -self._seen(other)
        return out

    def _seen(self, pose: Floats) -> Floats:
        """What frames at `pose` see of motions, in units of the mean lever."""
        scaled = pose.copy()
        scaled[:, :3, 3] *= self.unit
        return spatial.adjoint(spatial.se3_inverse(scaled))


def _plan(md: Model) -> tuple[Ints, Ints, Ints]:
    """Nodes that ranks depend on, children first, what `_ranks.ranks` needs to know of them, and handles left."""
    tree, ports = md.tree, md.ports
    assert ports is not None
    wide, kind = ports.index, tree.kind
    handles = np.where(wide >= 0, ports.table[wide, 0], tree.handles)
    count = len(tree)
    grounded, needed = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for k in range(tree.leaves, count):
        children = [c for c in (tree.left[k], tree.right[k]) if c >= 0]
        grounded[k] = kind[k] == ROOT or grounded[children].any()
    shown = handles > np.where(grounded, 0, 1)  # else it has no handle, or floats on one
    for k in range(count - 1, tree.leaves - 1, -1):
        above = tree.parent[k]
        needed[k] = kind[k] == LOOP or (above >= 0 and needed[above] and shown[k])
    order = np.flatnonzero(needed)
    place = np.full(count, FREE)
    place[order] = np.where(shown[order], np.arange(len(order)), FREE)
    plan = np.zeros((len(order), PLAN_COLUMNS), dtype=np.int64)
    kept: list[int] = []
    start = 0
    for row, k in zip(plan, order.tolist(), strict=True):
        left, right, w = int(tree.left[k]), int(tree.right[k]), int(wide[k])
        before = int(handles[left]) if left >= 0 else 0
        row[CHILD : CHILD + 2] = place[left] if left >= 0 else FREE, place[right]
        row[HANDLES : HANDLES + 2] = before, handles[right]
        first, second = before - 1, 0
        source = [0, 1000 + int(handles[right]) - 1]
        if w >= 0:
            first, second = ports.table[w, 2:4].tolist()
            at = int(ports.table[w, 8])
            source = ports.source[at : at + handles[k]].tolist()
        row[COMPARED : COMPARED + 2] = first, second + before if second >= 0 else -1
        body = int(tree.body[k])
        row[HELD] = 0 if kind[k] == SUM else 6 - (int(md.groups[body, 4]) if body >= 0 else 0)
        row[START], row[LIST] = start, len(kept)
        if shown[k]:
            row[LEFT] = handles[k]
            kept += [x if x < 1000 else x - 1000 + before for x in source[: handles[k]]]
            start += 36 * int(handles[k]) ** 2
    return order, plan, np.array(kept, dtype=np.int64)
