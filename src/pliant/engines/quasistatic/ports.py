"""Closed loops in the assembly tree: clusters that keep loop ends as further handles, until a node merges them.

A loop is cut at a body, into the body and a copy of it (see `mechanism.links`). Each of the two ends stays a handle
of every cluster around it, up to the first that holds both. A node LOOP above that one merges the cluster with itself:
it welds the two ends together. Clusters with more handles than their top and bottom are *wide*; they cost more, so
loops are cheap where they are local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.engines.quasistatic.assembly import LOOP, ROOT, SUM, WELD, Assembly
from pliant.errors import InputError

__all__ = ["Ports", "close", "handles", "ports"]

Ints = NDArray[np.int64]
WORLD = -1
MOST = 24  # handles of one cluster: its matrices then have 144 rows

# columns of `table`, one row per node that the general kernels do: handles; whether its record is wide; children's
# handles at the joint (of a LOOP both in the right one, -1 the world); where its record, its rows, its joint and the
# forces on it start; where its handles come from; its loop
H, WIDE, AT_LEFT, AT_RIGHT, RECORD, ROWS, JOINT, FORCES, SOURCE, NUMBER = range(10)
TABLE_COLUMNS = 10


@dataclass(eq=False)
class Ports:
    """What the general kernels need to know.

    Attributes:
        index: per node its row of `table`, -1 for nodes of the simple kernels.
        table: see the columns above.
        source: per handle of those nodes, which child's handle it is: 1000 * side + number.
        record, forces: length of all wide records, joints included, and of all forces.
        largest: the largest number of handles of both children together.
    """

    index: Ints
    table: Ints
    source: Ints
    record: int
    forces: int
    largest: int


def close(tree: Assembly, loops: Sequence[tuple[int, int]]) -> tuple[Assembly, Ints]:
    """The same tree with a node for every loop, and per node the loop it closes (-1 for none).

    Args:
        tree: of the bodies without loops.
        loops: pairs of bodies whose loop is closed when they coincide; the second may be the world, -1.
    """
    above = tree.parent.tolist()
    closed: dict[int, list[int]] = {}
    for number, ends in enumerate(loops):
        closed.setdefault(_meeting(tree, above, ends), []).append(number)
    kind, left, right, body, handles, top, bottom, loop = ([] for _ in range(8))
    now: list[int] = []  # per old node, the new one that parents see
    for k in range(len(tree)):
        seen = [now[c] if c >= 0 else -1 for c in (int(tree.left[k]), int(tree.right[k]))]
        for number in [-1, *closed.get(k, [])]:
            kind.append(tree.kind[k] if number < 0 else LOOP)
            left.append(seen[0] if number < 0 else -1)
            right.append(seen[1] if number < 0 else len(kind) - 2)
            body.append(tree.body[k] if number < 0 else -1)
            loop.append(number)
            for column, old in ((handles, tree.handles), (top, tree.top), (bottom, tree.bottom)):
                column.append(old[k])
        now.append(len(kind) - 1)
    arrays = [np.array(a, dtype=np.int64) for a in (kind, left, right, body, handles, top, bottom, loop)]
    n = len(kind)
    parent, depth = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for side in arrays[1:3]:
        has = np.flatnonzero(side >= 0)
        parent[side[has]] = has
    for k in range(n - 2, -1, -1):
        depth[k] = depth[parent[k]] + 1
    return (
        Assembly(
            kind=arrays[0],
            left=arrays[1],
            right=arrays[2],
            parent=parent,
            body=arrays[3],
            handles=arrays[4],
            top=arrays[5],
            bottom=arrays[6],
            depth=depth,
            shares=tree.shares,
            first_leaf=tree.first_leaf,
            leaves=tree.leaves,
        ),
        arrays[7],
    )


def _meeting(tree: Assembly, above: list[int], ends: tuple[int, int]) -> int:
    """The first node that holds both ends; if one is the world, the node that hangs the other on it."""
    k = int(tree.first_leaf[ends[0]])
    if ends[1] == WORLD:
        while tree.kind[k] != ROOT:
            k = above[k]
        return k
    other = int(tree.first_leaf[ends[1]])
    while k != other:
        if tree.depth[k] >= tree.depth[other]:
            k = above[k]
        else:
            other = above[other]
    return k


def handles(tree: Assembly, loop: Ints, loops: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Bodies that are handles of every cluster: its top and bottom, then ends of loops that are not closed in it.

    Args:
        tree, loop: as from `close`.
        loops: as for `close`.
    """
    ends: dict[int, set[tuple[int, int]]] = {}
    for number, pair in enumerate(loops):
        for body in pair:
            if body != WORLD:
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
        if len(out[k]) > MOST:
            raise InputError(
                f"QuasistaticSimulation: more than {MOST} ends of loops are open at once, the loops of this "
                "mechanism span too much of it: use ConstrainedSimulation"
            )
    return out


def ports(
    tree: Assembly,
    loop: Ints,
    loops: Sequence[tuple[int, int]],
    parent: Ints,
    handles: list[list[int]],
    rows: list[int],
) -> Ports:
    """Tables for the nodes that the simple kernels cannot do.

    Args:
        tree, loop, loops, handles: as from and for `close` and `handles`.
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
        if kind == LOOP:
            first, second = loops[loop[k]]
            at = right.index(first), right.index(second) if second != WORLD else -1
        elif kind == SUM:
            at = -1, -1
        elif kind == ROOT:
            at = -1, 0
        else:
            at = left.index(int(tree.top[k]) if kind == WELD else int(parent[tree.body[k]])), 0
        index[k] = len(table)
        row = [h, int(wide[k]), *at, record, 0, 0, forces, len(source), int(loop[k])]
        if wide[k]:
            record += 36 * h * h + 6 * h
            row[ROWS] = record
            record += rows[k] * (6 * h + 1)
        row[JOINT] = record
        record += 36 * h + 72
        forces += 6 * h
        table.append(row)
        source += [left.index(body) if body in left else 1000 + right.index(body) for body in handles[k]]
        largest = max(largest, len(left) + len(right))
    return Ports(
        index=index,
        table=np.array(table, dtype=np.int64).reshape(-1, TABLE_COLUMNS),
        source=np.array(source, dtype=np.int64),
        record=record,
        forces=forces,
        largest=largest,
    )
