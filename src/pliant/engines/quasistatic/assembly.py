"""The assembly tree: in which order the joints of a tree of bodies are closed, so that the depth stays logarithmic.

RL05 section 3.1 merges two articulated bodies at a time. Here every cluster keeps at most two *handles*, bodies where
forces from outside act: the top one, nearest to the world, and the one where the rest of its path goes on.

- The tree of bodies is cut into heavy paths: every body is followed by the child with the most bodies.
- The light subtrees of a body are merged with it first ("raked"); then it has one handle, itself. A body with many of
  them is split into shares of its mass, welded together again by joints without freedom: otherwise a star with n arms
  would take n merges one after the other.
- The clusters along a path are merged by halves of equal weight.
- What hangs on the world is closed by its own joint; separate trees are then only added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAF", "LOOP", "MERGE", "ROOT", "SUM", "WELD", "Assembly", "assembly"]

Ints = NDArray[np.int64]
# What a node does with its two children: nothing, close a joint, weld shares, hang on the world, add up, close a loop.
LEAF, MERGE, WELD, ROOT, SUM, LOOP = 0, 1, 2, 3, 4, 5
_RAKED = 2  # light subtrees that a share takes one after the other


@dataclass(frozen=True, eq=False)
class Assembly:
    """A binary tree over shares of bodies: leaves first, then nodes, every node after its children; the root last.

    Attributes:
        kind: LEAF, MERGE, WELD, ROOT, SUM or LOOP.
        left, right: children, -1 for none. In a merge the left one is nearer to the world. A ROOT and a LOOP have only
            a right one.
        parent: -1 for the root.
        body: of a leaf, the body it is a share of; of MERGE and ROOT, the body whose inbound joint is closed; else -1.
        handles: 0, 1 or 2.
        top, bottom: bodies that are handles, -1 for none; the same for one handle.
        depth: of a node below the root.
        shares: per body, in how many leaves it is split.
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
    """Collects nodes; leaves are counted by themselves, as -1, -2, ..., until all are known."""

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
    """The assembly tree of bodies with the given parents (-1 the world), every body after its parent."""
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
    cluster = [0] * n  # of a path's first body: all it carries
    for head in range(n - 1, -1, -1):
        if above[head] >= 0 and heavy[above[head]] == head:
            continue
        path = [head]
        while heavy[path[-1]] >= 0:
            path.append(heavy[path[-1]])
        cluster[head] = _path(b, path, light, weight, cluster)
    closed = [b.node(ROOT, -1, cluster[v], v, -1, -1) for v in roots]
    _halves(
        [weight[v] for v in roots],
        lambda i: closed[i],
        lambda left, right, *_: b.node(SUM, left, right, -1, -1, -1),
    )
    return _finish(b, n)


def _path(b: _Builder, path: list[int], light: list[list[int]], weight: list[int], cluster: list[int]) -> int:
    """Merge a heavy path, its light subtrees included; the first body remains as handle."""
    last = len(path) - 1

    def join(left: int, right: int, lo: int, mid: int, hi: int) -> int:
        return b.node(MERGE, left, right, path[mid], path[lo], path[hi - 1] if hi <= last else -1)

    return _halves(
        [weight[v] - (weight[w] if w >= 0 else 0) for v, w in zip(path, [*path[1:], -1], strict=True)],
        lambda i: _raked(b, path[i], light[path[i]], weight, cluster),
        join,
    )


def _raked(b: _Builder, v: int, subtrees: list[int], weight: list[int], cluster: list[int]) -> int:
    """A body with its light subtrees, itself the only handle."""
    ordered = sorted(subtrees, key=lambda c: weight[c])  # the heaviest is merged last, nearest to the root
    groups = [ordered[i : i + _RAKED] for i in range(0, len(ordered), _RAKED)] or [[]]

    def share(i: int) -> int:
        node = b.leaf(v)
        for c in groups[i]:
            node = b.node(MERGE, node, cluster[c], c, v, -1)
        return node

    return _halves(
        [1 + sum(weight[c] for c in group) for group in groups],
        share,
        lambda left, right, *_: b.node(WELD, left, right, -1, v, -1),
    )


def _halves(
    weights: list[int], leaf: Callable[[int], int], join: Callable[[int, int, int, int, int], int]
) -> int:
    """Join neighbours by halves of nearly equal weight, recursively."""
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
    rows = np.array(b.rows, dtype=np.int64).reshape(nodes, 6)
    n = leaves + nodes
    kind, left, right, parent, body, top, bottom, depth = np.full((8, n), -1, dtype=np.int64)
    kind[:leaves] = LEAF
    body[:leaves] = top[:leaves] = bottom[:leaves] = b.leaf_body
    kind[leaves:], body[leaves:], top[leaves:] = rows[:, 0], rows[:, 3], rows[:, 4]
    bottom[leaves:] = np.where(rows[:, 5] >= 0, rows[:, 5], rows[:, 4])
    for out, column in ((left, rows[:, 1]), (right, rows[:, 2])):
        out[leaves:] = np.where(column < 0, -1 - column, column + leaves)
    left[kind == ROOT] = -1
    inner = np.arange(leaves, n)
    for side in (left, right):
        has = inner[side[inner] >= 0]
        parent[side[has]] = has
    depth[n - 1] = 0
    for k in range(n - 2, -1, -1):
        depth[k] = depth[parent[k]] + 1
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
