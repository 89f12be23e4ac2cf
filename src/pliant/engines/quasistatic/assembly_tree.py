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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic.arrays import Ints

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

    kind: Ints
    left: Ints
    right: Ints
    parent: Ints
    body: Ints
    handles: Ints
    top: Ints
    bottom: Ints
    depth: Ints
    shares: Ints
    first_leaf: Ints
    leaves: int

    def __len__(self) -> int:
        return len(self.kind)


class _Builder:
    """Nodes collected so far. Leaves are numbered apart, as -1, -2, ..., until all are known."""

    def __init__(self, bodies: int):
        self.rows: list[tuple[int, int, int, int, int, int]] = []  # kind, left, right, body, top, bottom
        self.leaf_body: list[int] = []
        self.shares = [0] * bodies

    def leaf(self, body: int) -> int:
        self.leaf_body.append(body)
        self.shares[body] += 1
        return -len(self.leaf_body)

    def node(self, kind: int, left: int, right: int, body: int, top: int, bottom: int) -> int:
        self.rows.append((kind, left, right, body, top, bottom))
        return len(self.rows) - 1


def assembly(parent: Ints) -> Assembly:
    """Assembly tree of bodies with the given parents (-1 the world), every body after its parent."""
    n = len(parent)
    above = parent.tolist()
    weight = [1] * n
    for v in range(n - 1, -1, -1):
        if above[v] >= 0:
            weight[above[v]] += weight[v]
    heavy = [-1] * n
    for v, p in enumerate(above):
        if p >= 0 and (heavy[p] < 0 or weight[v] > weight[heavy[p]]):
            heavy[p] = v
    light: list[list[int]] = [[] for _ in range(n)]
    roots: list[int] = []
    for v, p in enumerate(above):
        if p < 0:
            roots.append(v)
        elif heavy[p] != v:
            light[p].append(v)

    b = _Builder(n)
    cluster = [0] * n  # per first body of a path, the node of its subtree
    for head in range(n - 1, -1, -1):
        if above[head] >= 0 and heavy[above[head]] == head:
            continue
        path = [head]
        while heavy[path[-1]] >= 0:
            path.append(heavy[path[-1]])
        cluster[head] = _path(b, path, light, weight, cluster)
    closed = [b.node(col.ROOT, -1, cluster[v], v, -1, -1) for v in roots]
    _halves(
        [weight[v] for v in roots],
        lambda i: closed[i],
        lambda left, right, *_: b.node(col.SUM, left, right, -1, -1, -1),
    )
    return _finish(b, n)


def _path(b: _Builder, path: list[int], light: list[list[int]], weight: list[int], cluster: list[int]) -> int:
    """Merge a heavy path with its light subtrees; its first body remains a handle."""
    last = len(path) - 1

    def join(left: int, right: int, lo: int, mid: int, hi: int) -> int:
        return b.node(col.MERGE, left, right, path[mid], path[lo], path[hi - 1] if hi <= last else -1)

    return _halves(
        [weight[v] - (weight[w] if w >= 0 else 0) for v, w in zip(path, [*path[1:], -1], strict=True)],
        lambda i: _raked(b, path[i], light[path[i]], weight, cluster),
        join,
    )


def _raked(b: _Builder, v: int, subtrees: list[int], weight: list[int], cluster: list[int]) -> int:
    """Merge a body with its light subtrees; the body remains the only handle."""
    ordered = sorted(subtrees, key=lambda c: weight[c])  # the heaviest is merged last, nearest to the root
    groups = [ordered[i : i + _RAKED] for i in range(0, len(ordered), _RAKED)] or [[]]

    def share(i: int) -> int:
        node = b.leaf(v)
        for c in groups[i]:
            node = b.node(col.MERGE, node, cluster[c], c, v, -1)
        return node

    return _halves(
        [1 + sum(weight[c] for c in group) for group in groups],
        share,
        lambda left, right, *_: b.node(col.WELD, left, right, -1, v, -1),
    )


def _halves(
    weights: list[int], leaf: Callable[[int], int], join: Callable[[int, int, int, int, int], int]
) -> int:
    """Join neighbours recursively, by halves of nearly equal weight."""
    prefix = np.concatenate([[0], np.cumsum(weights)])

    def part(lo: int, hi: int) -> int:
        if hi - lo == 1:
            return leaf(lo)
        half = 0.5 * (prefix[lo] + prefix[hi])
        mid = int(np.searchsorted(prefix[lo + 1 : hi], half)) + lo + 1
        if mid >= hi or (mid - 1 > lo and half - prefix[mid - 1] < prefix[mid] - half):
            mid -= 1
        return join(part(lo, mid), part(mid, hi), lo, mid, hi)

    return part(0, len(weights))


def _finish(b: _Builder, bodies: int) -> Assembly:
    leaves, nodes = len(b.leaf_body), len(b.rows)
    kind, left, right, body, top, bottom = np.full((6, leaves + nodes), -1, dtype=np.int64)
    kind[:leaves] = col.LEAF
    body[:leaves] = top[:leaves] = bottom[:leaves] = b.leaf_body
    inner = np.array(b.rows, dtype=np.int64).reshape(nodes, 6).T
    for column, values in zip((kind, left, right, body, top, bottom), inner, strict=True):
        column[leaves:] = values
    bottom[leaves:] = np.where(bottom[leaves:] >= 0, bottom[leaves:], top[leaves:])
    for child in (left[leaves:], right[leaves:]):
        child[:] = np.where(child < 0, -1 - child, child + leaves)
    left[kind == col.ROOT] = -1
    parent, depth = _parents(left, right)
    first_leaf = np.full(bodies, -1, dtype=np.int64)
    first_leaf[body[:leaves]] = np.arange(leaves)
    return Assembly(
        kind=kind,
        left=left,
        right=right,
        parent=parent,
        body=body,
        handles=np.where(top < 0, 0, np.where(top == bottom, 1, 2)),
        top=top,
        bottom=bottom,
        depth=depth,
        shares=np.array(b.shares, dtype=np.int64),
        first_leaf=first_leaf,
        leaves=leaves,
    )


def _parents(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Parent of every node (-1 of the root) and its depth."""
    n = len(left)
    parent, depth = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for side in (left, right):
        has = np.flatnonzero(side >= 0)
        parent[side[has]] = has
    for k in range(n - 2, -1, -1):
        depth[k] = depth[parent[k]] + 1
    return parent, depth


# --- loops


def close_loops(tree: Assembly, loops: Sequence[tuple[int, int]]) -> tuple[Assembly, Ints]:
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
    kind, left, right, loop = (np.array(a, dtype=np.int64) for a in (kind, left, right, loop))
    parent, depth = _parents(left, right)
    return replace(
        tree,
        kind=kind,
        left=left,
        right=right,
        parent=parent,
        body=np.where(loop < 0, tree.body[origin], -1),
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


def cluster_handles(tree: Assembly, loop: Ints, loops: Sequence[tuple[int, int]]) -> list[list[int]] | None:
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
        record, forces: length of all wide records with their closures, and of all forces.
        largest: the largest number of handles of both children together.
    """

    index: Ints
    table: Ints
    source: Ints
    record: int
    forces: int
    largest: int


def loop_handles(
    tree: Assembly,
    loop: Ints,
    loops: Sequence[tuple[int, int]],
    parent: Ints,
    handles: list[list[int]],
    rows: list[int],
) -> LoopHandles:
    """Tables for the nodes of `_merge_wide`.

    Args:
        tree, loop, loops, handles: as from and for `close_loops` and `cluster_handles`.
        parent: of every body, in the tree of bodies.
        rows: of every node's total acceleration.
    """
    index = np.full(len(tree), -1, dtype=np.int64)
    table: list[list[int]] = []
    source: list[int] = []
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
        largest = max(largest, len(left) + len(right))
    return LoopHandles(
        index=index,
        table=np.array(table, dtype=np.int64).reshape(-1, col.TABLE_COLUMNS),
        source=np.array(source, dtype=np.int64),
        record=record,
        forces=forces,
        largest=largest,
    )
