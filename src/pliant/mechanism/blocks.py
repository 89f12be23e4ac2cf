"""Blocks: what the graph of bodies falls into at its cut vertices, single joints and loops that share links."""

from __future__ import annotations

import numpy as np

from pliant.mechanism.model import Mechanism

__all__ = ["blocks_of", "joint_ends"]


def joint_ends(m: Mechanism) -> list[tuple[int, int]]:
    """Parent and child of every joint; the world, which has no index, comes after the bodies."""
    parents = np.where(m.joint_parents < 0, m.body_count, m.joint_parents)
    return list(zip(parents.tolist(), m.joint_children.tolist(), strict=True))


def blocks_of(world: int, ends: list[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    """Blocks (biconnected components) as entry and joints, those far from the world first.

    Depth-first search after Hopcroft and Tarjan, without recursion, since a chain is as deep as it is long.
    """
    near: list[list[tuple[int, int]]] = [[] for _ in range(world + 1)]
    for j, (parent, child) in enumerate(ends):
        near[parent].append((j, child))
        near[child].append((j, parent))
    order, low = [-1] * (world + 1), [0] * (world + 1)
    order[world], count = 0, 1
    path, open_joints, out = [(world, -1, 0, iter(near[world]))], [], []
    while path:
        body, via, start, rest = path[-1]
        for j, other in rest:
            if order[other] < 0:
                order[other] = low[other] = count
                count += 1
                path.append((other, j, len(open_joints), iter(near[other])))
                open_joints.append(j)
                break
            if j != via and order[other] < order[body]:
                open_joints.append(j)
                low[body] = min(low[body], order[other])
        else:
            path.pop()
            if path:
                above = path[-1][0]
                low[above] = min(low[above], low[body])
                if low[body] >= order[above]:
                    out.append((above, open_joints[start:]))
                    del open_joints[start:]
    return out
