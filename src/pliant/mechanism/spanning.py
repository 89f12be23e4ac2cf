"""Choice of the spanning tree: where loops are cut decides what solving a mechanism costs.

Rows of a loop are carried from both sides of its cut up to the lowest body that carries both (`elimination`). A body
through which w loops pass has a front of 6 w + 6 unknowns, so the cost of a tree is estimated as the sum of the squares
of these sizes, times the number of unknowns that are eliminated there. No rule finds the best tree of every graph:
several are grown, and the cheapest is taken.

A tree that is halved again and again is also the better conditioned one. Along a comb, loops closed one after the
other are a shooting method: rows kept of an auxetic lattice of 12 x 12 squares had a smallest singular value of 5e-7,
and have 1e-3 now.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism.tree import Topology

__all__ = ["choose_tree"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NARROW = 3  # open loops at a body up to which no other tree is tried
_STEPS = 100_000_000  # from bodies to their parents, after which a tree counts as too costly
_ROUNDED = 1e-6  # of the extent: positions that differ by less are the same


def choose_tree(own: Topology, parents: Ints, children: Ints, turning: Ints, poses: Floats) -> Topology:
    """The tree that is solved: the mechanism's `own`, or a cheaper one where many loops are open at once.

    Others are grown joint by joint, the joint of least priority first: breadth first, or so that a part of the
    mechanism is left only when all of it has been reached, for parts halved across their longest extent again and
    again. They may pass joints backwards, from child to parent; but not those with balls, since a ball's unit twists
    are constant in the child's frame only.

    Args:
        own: the tree in joint order.
        parents, children: bodies of joints, (joints,); -1 is the world.
        turning: joints that have balls.
        poses: of bodies at the reference configuration, (bodies, 4, 4).
    """
    if own.loops < 2:
        return own
    least, widest = _cost(own, parents, children)
    if widest <= _NARROW:
        return own
    one_way = parents < 0
    one_way[turning] = True
    best = own
    for priority in (_steps_from_world(parents, children, len(poses)), _halving(parents, children, poses)):
        other = _grow(parents, children, one_way, priority, len(poses))
        if other is not None:
            cost, _ = _cost(other, parents, children)
            if cost < least:
                best, least = other, cost
    return best


def _grow(
    parents: Ints, children: Ints, one_way: NDArray[np.bool_], priority: Ints, bodies: int
) -> Topology | None:
    """The tree that takes the joint of least priority next, among those that lead on; None if some body is left out.

    Joints marked `one_way` lead from parent to child only.
    """
    ways: list[list[tuple[int, int, int]]] = [[] for _ in range(bodies + 1)]  # the world is the last
    columns = (parents.tolist(), children.tolist(), one_way.tolist(), priority.tolist())
    for joint, (parent, child, forwards, first) in enumerate(zip(*columns, strict=True)):
        ways[parent].append((first, joint, child))
        if not forwards:
            ways[child].append((first, joint, parent))
    carrier, via, depth = [-1] * bodies, [-1] * bodies, [0] * bodies
    tree: list[int] = []
    queue = [(*way, -1) for way in ways[-1]]
    heapq.heapify(queue)
    while queue:
        _, joint, body, origin = heapq.heappop(queue)
        if body < 0 or via[body] >= 0:
            continue
        via[body], carrier[body] = joint, origin
        depth[body] = 1 + (depth[origin] if origin >= 0 else 0)
        tree.append(joint)
        for way in ways[body]:
            if via[way[2]] < 0:
                heapq.heappush(queue, (*way, body))
    if len(tree) < bodies:
        return None
    taken = np.array(tree, dtype=np.int64)
    chord = np.ones(len(parents), dtype=bool)
    chord[taken] = False
    tree_joint = np.array(via, dtype=np.int64)
    return Topology(
        tree=taken,
        chords=np.flatnonzero(chord),
        tree_joint=tree_joint,
        parent=np.array(carrier, dtype=np.int64),
        depth=np.array(depth, dtype=np.int64),
        backwards=np.sort(tree_joint[children[tree_joint] != np.arange(bodies)]),
    )


def _cost(tree: Topology, parents: Ints, children: Ints) -> tuple[float, int]:
    """Cost of a tree, in products of numbers, and the largest number of loops that are open at a body."""
    from pliant.mechanism import kernels

    world = len(tree.parent)
    parent = np.where(tree.parent < 0, world, tree.parent)
    depth = np.append(tree.depth, 0)
    ends = np.stack([parents[tree.chords], children[tree.chords]], axis=1)
    through, closing = np.zeros((2, world + 1), dtype=np.int64)
    if not kernels.count_open(parent, depth, np.where(ends < 0, world, ends), _STEPS, through, closing):
        return np.inf, world
    size = 6.0 * (through + closing) + 6.0
    return float((size**2 * (1 + 6 * closing)).sum()), int((through + closing).max())


def _steps_from_world(parents: Ints, children: Ints, bodies: int) -> Ints:
    """Number of joints from the world to the nearer end of every joint, on the shortest way."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    ends = np.where(parents < 0, bodies, parents), children
    graph = coo_array((np.ones(len(parents)), ends), (bodies + 1, bodies + 1)).tocsr()
    steps = dijkstra(graph, directed=False, indices=bodies, unweighted=True)
    return np.minimum(steps[ends[0]], steps[children]).astype(np.int64)


def _halving(parents: Ints, children: Ints, poses: Floats) -> Ints:
    """Minus the number of halvings after which the ends of a joint are still in the same part; 1 for the world's."""
    position = poses[:, :3, 3]
    unit = _ROUNDED * float(np.ptp(position, axis=0).max(initial=0.0)) or 1.0
    position = np.round(position / unit)
    count = len(position)
    part, priority = np.zeros(count, dtype=np.int64), np.where(parents < 0, 1, 0)
    for level in range(1, count.bit_length() + 1):
        part = _halve(position, part)
        priority[(parents >= 0) & (part[parents] == part[children])] = -level
    return priority


def _halve(position: Floats, part: Ints) -> Ints:
    """Halve every part across its longest extent: numbers of parts, (bodies,)."""
    parts = int(part.max()) + 1
    low, high = np.full((parts, 3), np.inf), np.full((parts, 3), -np.inf)
    np.minimum.at(low, part, position)
    np.maximum.at(high, part, position)
    axis = np.argmax(high - low, axis=1)[part]
    # by part, then along its axis; then across it, so that a cut between bodies at the same place is straight
    rows = np.arange(len(part))
    across = position[rows, (axis + 1) % 3], position[rows, (axis + 2) % 3]
    order = np.lexsort((*across, position[rows, axis], part))
    size = np.bincount(part, minlength=parts)
    place = np.empty(len(part), dtype=np.int64)
    place[order] = np.arange(len(part)) - np.repeat(np.cumsum(size) - size, size)
    split = 2 * part + (2 * place >= size[part])
    return np.unique(split, return_inverse=True)[1]
