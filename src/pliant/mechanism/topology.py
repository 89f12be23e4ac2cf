"""The graph of a mechanism: spanning tree, loop-closing joints (chords), depth."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.errors import MechanismError

__all__ = ["Topology", "spanning_tree"]


@dataclass(frozen=True, eq=False)
class Topology:
    """How bodies hang together. Indices are those of the mechanism; -1 stands for the world.

    Attributes:
        tree: joints of the spanning tree, every parent before its children.
        chords: joints that close loops, one independent loop each.
        tree_joint: per body, the joint of the tree that carries it.
        parent: per body, its parent body in the tree.
        depth: per body, the number of tree joints to the world.
    """

    tree: NDArray[np.int64]
    chords: NDArray[np.int64]
    tree_joint: NDArray[np.int64]
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]

    @property
    def loops(self) -> int:
        """Number of independent loops."""
        return len(self.chords)

    @property
    def is_tree(self) -> bool:
        """Whether there are no loops."""
        return len(self.chords) == 0

    @property
    def leaves(self) -> NDArray[np.int64]:
        """Bodies without children in the spanning tree."""
        has_child = np.zeros(len(self.parent), dtype=bool)
        has_child[self.parent[self.parent >= 0]] = True
        return np.flatnonzero(~has_child)


def spanning_tree(
    parents: NDArray, children: NDArray, body_names: tuple[str, ...], joint_names: tuple[str, ...]
) -> Topology:
    """The first spanning tree in joint order: of the joints that could carry a body, the one listed first does."""
    n = len(body_names)
    outgoing: list[list[int]] = [[] for _ in range(n + 1)]
    for joint, parent in enumerate(parents.tolist()):
        outgoing[parent].append(joint)  # the world's -1 is the last list
    child_of = children.tolist()
    tree_joint = [-1] * n
    parent_body = [-1] * n
    depth = [0] * n
    order: list[int] = []
    queue = list(outgoing[n])
    heapq.heapify(queue)
    while queue:
        joint = heapq.heappop(queue)
        child = child_of[joint]
        if tree_joint[child] >= 0:
            continue
        parent = int(parents[joint])
        tree_joint[child] = joint
        parent_body[child] = parent
        depth[child] = 1 + (depth[parent] if parent >= 0 else 0)
        order.append(joint)
        for following in outgoing[child]:
            heapq.heappush(queue, following)
    unreached = [body for body in range(n) if tree_joint[body] < 0]
    if unreached:
        _explain(unreached, parents, children, tree_joint, body_names, joint_names)
    in_tree = np.zeros(len(parents), dtype=bool)
    in_tree[order] = True
    return Topology(
        tree=np.array(order, dtype=np.int64),
        chords=np.flatnonzero(~in_tree),
        tree_joint=np.array(tree_joint, dtype=np.int64),
        parent=np.array(parent_body, dtype=np.int64),
        depth=np.array(depth, dtype=np.int64),
    )


def _explain(
    unreached: list[int],
    parents: NDArray,
    children: NDArray,
    tree_joint: list[int],
    body_names: tuple[str, ...],
    joint_names: tuple[str, ...],
) -> None:
    """Raise the error that says why some bodies cannot be reached from the world."""
    lost = set(unreached)
    for joint, (parent, child) in enumerate(zip(parents.tolist(), children.tolist(), strict=True)):
        if parent in lost and child not in lost:
            raise MechanismError(
                f"body '{body_names[parent]}' is reached only against the direction of joint '{joint_names[joint]}': "
                f"swap the joint's parent and child"
            )
    shown = ", ".join(f"'{body_names[body]}'" for body in unreached[:5]) + (
        ", ..." if len(unreached) > 5 else ""
    )
    raise MechanismError(
        f"{len(unreached)} bodies have no path of joints to the world: {shown}; "
        f"join them to another body, or to 'world' with a fixed or free joint"
    )
