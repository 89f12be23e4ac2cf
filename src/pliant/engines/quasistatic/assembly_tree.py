"""Assembly tree: an order of closing the joints of a tree of bodies with logarithmic depth; loops are closed within it.

RL05 section 3.1 merges two articulated bodies at a time. Here every cluster keeps at most two *handles*, bodies where
forces from outside act: the top one, nearest to the world, and the bottom one, where the rest of its path hangs.

- The tree of bodies is cut into heavy paths: every body is followed by the child with the most bodies.
- The light subtrees of a body are merged with it first ("raked"); its only handle is then itself. A body with many of
  them is split into shares of its mass, welded together by joints without freedom: otherwise a star with n arms would
  take n merges in series.
- The clusters along a path are merged by halves of equal weight.
- A tree is hung on the world by the joint of its first body; separate trees are then only added up.

A loop is cut at a body, into the body and a copy of it (see `mechanism.links`). Each of the two ends stays a handle of
every cluster around it, up to the first cluster that holds both. A node LOOP above that cluster welds the two ends
together. Clusters with more handles than top and bottom are *wide*; they cost more, so loops are cheap where they are
local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pliant.engines.quasistatic import _packing as kernels
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic.arrays import Indices, Ints

__all__ = ["Assembly", "LoopHandles", "assembly", "close_loops", "cluster_handles", "loop_handles"]

_RAKED = 2  # light subtrees merged in series with one share of a body
_WORLD = -1
_MOST_HANDLES = 24  # of one cluster: its matrices then have 144 rows


@dataclass(frozen=True, eq=False)
class Assembly:
    """Binary tree over shares of bodies: leaves first, every node after its children, the root last.

    Attributes:
        kind: LEAF, MERGE, WELD, ROOT, SUM or LOOP.
        left, right: children, -1 for none. In a merge the left one is nearer to the world. A ROOT and a LOOP have only
            a right one.
        parent: -1 for the root.
        body: of a leaf, its body; of MERGE and ROOT, the body whose inbound joint is closed; else -1.
        handles: 0, 1 or 2; ends of loops not counted.
        top, bottom: bodies that are handles, -1 for none; the same for one handle.
        depth: levels below the root.
        shares: per body, its number of leaves.
        first_leaf: per body, one of its leaves.
        leaves: number of leaves.
    """

    kind: Indices
    left: Indices
    right: Indices
    parent: Indices
    body: Indices
    handles: Indices
    top: Indices
    bottom: Indices
    depth: Indices
    shares: Indices
    first_leaf: Indices
    leaves: int

    def __len__(self) -> int:
        return len(self.kind)


def assembly(parent: Indices) -> Assembly:
    """Assembly tree of bodies with the given parents (-1 the world), every body after its parent."""
    parent = np.ascontiguousarray(parent, dtype=np.int32)
    n = len(parent)
    weight, heavy = np.empty((2, n), dtype=np.int32)
    kernels.weigh(parent, weight, heavy)
    # light children of every body, those with the most bodies last: they are merged nearest to the root
    light = np.flatnonzero((parent >= 0) & (heavy[parent] != np.arange(n)))
    light = light[np.lexsort((weight[light], parent[light]))].astype(np.int32)
    count = np.bincount(parent[light], minlength=n)
    start = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    shares = np.maximum((count + _RAKED - 1) // _RAKED, 1).astype(np.int32)
    leaves, roots = int(shares.sum()), int((parent < 0).sum())
    nodes = kernels.Nodes(*(np.full(2 * leaves + roots - 1, -1, dtype=np.int32) for _ in range(6)))
    cluster, path = np.empty((2, n), dtype=np.int32)
    along, across = (_halving(most) for most in (n, int(shares.max(initial=1))))
    paths = kernels.Paths(parent, weight, heavy, start, light)
    kernels.assemble(paths, _RAKED, leaves, nodes, cluster, path, along, across, np.zeros(2, dtype=np.int32))
    up, depth = _parents(nodes.left, nodes.right)
    first_leaf = np.full(n, -1, dtype=np.int32)
    first_leaf[nodes.body[:leaves]] = np.arange(leaves)
    return Assembly(
        kind=nodes.kind,
        left=nodes.left,
        right=nodes.right,
        parent=up,
        body=nodes.body,
        handles=(nodes.top >= 0) + ((nodes.top >= 0) & (nodes.top != nodes.bottom)).astype(np.int32),
        top=nodes.top,
        bottom=nodes.bottom,
        depth=depth,
        shares=shares,
        first_leaf=first_leaf,
        leaves=leaves,
    )


def _halving(most: int) -> kernels.Halving:
    """Scratch to merge up to `most` neighbours by halves."""
    prefix, stack = np.zeros((2, most + 1), dtype=np.int32)
    return kernels.Halving(prefix, np.empty((2 * most, 3), dtype=np.int32), stack)


def _parents(left: Indices, right: Indices) -> tuple[Indices, Indices]:
    """Parent of every node (-1 of the root) and its depth."""
    parent, depth = np.empty(len(left), dtype=np.int32), np.empty(len(left), dtype=np.int32)
    kernels.find_parents(left, right, parent, depth)
    return parent, depth


# --- loops


def close_loops(tree: Assembly, loops: Sequence[tuple[int, int]]) -> tuple[Assembly, Indices]:
    """The same tree with a node for every loop, and per node the loop it closes (-1 for none).

    Args:
        tree: of the bodies without loops.
        loops: pairs of bodies that coincide when the loop is closed; the second may be the world, -1.
    """
    closed: dict[int, list[int]] = {}
    for number, ends in enumerate(loops):
        closed.setdefault(_first_common(tree, ends), []).append(number)
    origin, kind, left, right, loop = ([] for _ in range(5))
    now: list[int] = []  # per old node, the new one that takes its place as a child
    for k in range(len(tree)):
        children = [now[c] if c >= 0 else -1 for c in (int(tree.left[k]), int(tree.right[k]))]
        for number in [-1, *closed.get(k, [])]:
            origin.append(k)
            kind.append(tree.kind[k] if number < 0 else col.LOOP)
            left.append(children[0] if number < 0 else -1)
            right.append(children[1] if number < 0 else len(kind) - 2)
            loop.append(number)
        now.append(len(kind) - 1)
    kind, left, right, loop = (np.array(a, dtype=np.int32) for a in (kind, left, right, loop))
    parent, depth = _parents(left, right)
    return replace(
        tree,
        kind=kind,
        left=left,
        right=right,
        parent=parent,
        body=np.where(loop < 0, tree.body[origin], np.int32(-1)),
        handles=tree.handles[origin],
        top=tree.top[origin],
        bottom=tree.bottom[origin],
        depth=depth,
    ), loop


def _first_common(tree: Assembly, ends: tuple[int, int]) -> int:
    """The first node that holds both ends; if one end is the world, the ROOT of the other."""
    k = int(tree.first_leaf[ends[0]])
    if ends[1] == _WORLD:
        while tree.kind[k] != col.ROOT:
            k = int(tree.parent[k])
        return k
    other = int(tree.first_leaf[ends[1]])
    while k != other:
        if tree.depth[k] >= tree.depth[other]:
            k = int(tree.parent[k])
        else:
            other = int(tree.parent[other])
    return k


def cluster_handles(
    tree: Assembly, loop: Indices, loops: Sequence[tuple[int, int]]
) -> list[list[int]] | None:
    """Bodies that are handles of every cluster: its top and bottom, then ends of loops not closed in it.

    None if a cluster has more than `_MOST_HANDLES`.

    Args:
        tree, loop: as from `close_loops`.
        loops: as for `close_loops`.
    """
    ends: dict[int, set[tuple[int, int]]] = {}
    for number, pair in enumerate(loops):
        for body in pair:
            if body != _WORLD:
                ends.setdefault(int(tree.first_leaf[body]), set()).add((number, body))
    waiting: list[set[tuple[int, int]]] = []
    out: list[list[int]] = []
    for k in range(len(tree)):
        own = set(ends.get(k, ()))
        for child in (int(tree.left[k]), int(tree.right[k])):
            if child >= 0:
                own |= waiting[child]
        waiting.append({end for end in own if end[0] != loop[k]})
        usual = [int(tree.top[k]), int(tree.bottom[k])][: tree.handles[k]]
        out.append([*usual, *sorted({body for _, body in waiting[k]} - set(usual))])
        if len(out[k]) > _MOST_HANDLES:
            return None
    return out


@dataclass(eq=False)
class LoopHandles:
    """Nodes that have, or merge, ends of loops as handles.

    Attributes:
        index: per node its row of `table`, -1 for nodes with the usual handles.
        table: see the columns in `arrays.py`.
        source: per handle of these nodes, its number in the left child, or `OF_RIGHT` plus that in the right child.
        leaves: per handle of these nodes, a leaf of its body.
        ring: per node, 1 if it has joints of a loop that is closed above it.
        record, forces: length of all wide records with their closures, and of all forces.
        largest: the largest number of handles of both children together.
    """

    index: Indices
    table: Ints
    source: Ints
    leaves: Ints
    ring: NDArray[np.int8]
    record: int
    forces: int
    largest: int


def loop_handles(
    tree: Assembly,
    loop: Indices,
    loops: Sequence[tuple[int, int]],
    parent: Indices,
    handles: list[list[int]],
    rows: list[int],
) -> LoopHandles:
    """Tables for the nodes of `_merge_wide`.

    Args:
        tree, loop, loops, handles: as from and for `close_loops` and `cluster_handles`.
        parent: of every body, in the tree of bodies.
        rows: of every node's total acceleration.
    """
    index = np.full(len(tree), -1, dtype=np.int32)
    table: list[list[int]] = []
    source: list[int] = []
    leaves: list[int] = []
    record = forces = largest = 0
    wide = [len(own) > usual for own, usual in zip(handles, tree.handles.tolist(), strict=True)]
    for k in range(tree.leaves, len(tree)):
        children = [int(c) for c in (tree.left[k], tree.right[k])]
        if not (wide[k] or loop[k] >= 0 or any(c >= 0 and wide[c] for c in children)):
            continue
        left, right = (handles[c] if c >= 0 else [] for c in children)
        kind, h = int(tree.kind[k]), len(handles[k])
        if kind == col.LOOP:
            first, second = loops[loop[k]]
            at = right.index(first), right.index(second) if second != _WORLD else -1
        elif kind == col.SUM:
            at = -1, -1
        elif kind == col.ROOT:
            at = -1, 0
        else:
            at = left.index(int(tree.top[k]) if kind == col.WELD else int(parent[tree.body[k]])), 0
        index[k] = len(table)
        row = [h, int(wide[k]), *at, record, 0, 0, forces, len(source), int(loop[k])]
        if wide[k]:
            record += 36 * h * h + 6 * h
            row[col.METRIC_AT] = record
            record += rows[k] * (6 * h + 1)
        row[col.CLOSURE] = record
        record += 36 * h + 72
        forces += 6 * h
        table.append(row)
        source += [
            left.index(body) if body in left else col.OF_RIGHT + right.index(body) for body in handles[k]
        ]
        leaves += [int(tree.first_leaf[body]) for body in handles[k]]
        largest = max(largest, len(left) + len(right))
    return LoopHandles(
        index=index,
        table=np.array(table, dtype=np.int64).reshape(-1, col.TABLE_COLUMNS),
        source=np.array(source, dtype=np.int64),
        leaves=np.array(leaves, dtype=np.int64),
        ring=_ring(tree, loop, loops, parent),
        record=record,
        forces=forces,
        largest=largest,
    )


def _ring(
    tree: Assembly, loop: Indices, loops: Sequence[tuple[int, int]], parent: Indices
) -> NDArray[np.int8]:
    """Nodes with joints of a loop that is closed above them; args as of `loop_handles`."""
    out = np.zeros(len(tree), dtype=np.int8)
    closing = np.full(len(parent), -1)
    joints = tree.leaves + np.flatnonzero(tree.body[tree.leaves :] >= 0)
    closing[tree.body[joints]] = joints
    for closed in np.flatnonzero(loop >= 0).tolist():
        above = [_path(body, parent) for body in loops[loop[closed]]]
        for body in set(above[0]) ^ set(above[1]):
            k = int(closing[body])
            while k != closed:
                out[k] = 1
                k = int(tree.parent[k])
    return out


def _path(body: int, parent: Indices) -> list[int]:
    """Bodies from one to the world (-1), which is left out."""
    out = []
    while body != _WORLD:
        out.append(body)
        body = int(parent[body])
    return out
