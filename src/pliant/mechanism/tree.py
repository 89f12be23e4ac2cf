"""The graph of a mechanism: spanning tree, loop-closing joints (chords), depth, biconnected components, ends."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import MechanismError
from pliant.shapes import ROLES

__all__ = ["Topology", "blocks_of", "end_bodies", "joint_ends", "rigid_groups", "spanning_tree"]


@dataclass(frozen=True, eq=False)
class Topology:
    """The spanning tree of bodies. Indices are those of the mechanism; -1 stands for the world.

    Attributes:
        tree: joints of the spanning tree, every parent before its children.
        chords: joints that close loops, one independent loop each.
        tree_joint: per body, the joint of the tree that carries it.
        parent: per body, its parent body in the tree.
        depth: per body, the number of tree joints to the world.
        backwards: joints of the tree that are passed from child to parent: they carry the body that they name parent.
    """

    tree: NDArray[np.int64]
    chords: NDArray[np.int64]
    tree_joint: NDArray[np.int64]
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    backwards: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

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
    """The spanning tree in joint order: a body is carried by the first joint whose parent is in the tree already."""
    n = len(body_names)
    in_order = _tree_in_order(parents, children, n)
    tree, tree_joint, parent_body, depth = in_order or _tree_by_queue(parents, children, n)
    unreached = np.flatnonzero(tree_joint < 0).tolist()
    if unreached:
        _explain(unreached, parents, children, body_names, joint_names)
    in_tree = np.zeros(len(parents), dtype=bool)
    in_tree[tree] = True
    return Topology(
        tree=tree, chords=np.flatnonzero(~in_tree), tree_joint=tree_joint, parent=parent_body, depth=depth
    )


def _tree_in_order(parents: NDArray, children: NDArray, n: int) -> tuple[NDArray, ...] | None:
    """Tree joints, and per body its tree joint, parent and depth, if parents always come before their children.

    The first joint of every body is then its tree joint, and the tree is in joint order. None if some joint comes
    before the one that carries its parent, or some body has no joint.
    """
    tree_joint = np.full(n, -1, dtype=np.int64)
    tree_joint[children[::-1]] = np.arange(len(children))[::-1]  # the first joint is written last
    inner = np.flatnonzero(parents >= 0)
    if (tree_joint < 0).any() or (tree_joint[parents[inner]] >= inner).any():
        return None
    parent = parents[tree_joint].astype(np.int64)
    depth, above = np.ones(n, dtype=np.int64), parent.copy()
    linked = np.flatnonzero(above >= 0)
    while len(linked):  # each round doubles the length of the paths
        depth[linked] += depth[above[linked]]
        above[linked] = above[above[linked]]
        linked = linked[above[linked] >= 0]
    return np.sort(tree_joint), tree_joint, parent, depth


def _tree_by_queue(parents: NDArray, children: NDArray, n: int) -> tuple[NDArray, ...]:
    """Tree joints in the order in which they are reached, and per body its tree joint (-1 for none), parent, depth."""
    outgoing: list[list[int]] = [[] for _ in range(n + 1)]
    for joint, parent in enumerate(parents.tolist()):
        outgoing[parent].append(joint)  # the world's -1 is the last list
    carriers, child_of = parents.tolist(), children.tolist()
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
        parent = carriers[joint]
        tree_joint[child] = joint
        parent_body[child] = parent
        depth[child] = 1 + (depth[parent] if parent >= 0 else 0)
        order.append(joint)
        for following in outgoing[child]:
            heapq.heappush(queue, following)
    return tuple(np.array(column, dtype=np.int64) for column in (order, tree_joint, parent_body, depth))


def _explain(
    unreached: list[int],
    parents: NDArray,
    children: NDArray,
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


def joint_ends(m: Any) -> list[tuple[int, int]]:
    """Parent and child of every joint of a `Mechanism`; the world is numbered after the bodies."""
    parents = np.where(m.joint_parents < 0, m.body_count, m.joint_parents)
    return list(zip(parents.tolist(), m.joint_children.tolist(), strict=True))


def blocks_of(world: int, ends: list[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    """Blocks (biconnected components: single joints, or loops that share links), those far from the world first.

    Depth-first search after Hopcroft and Tarjan, without recursion: chains may be long. Returns the body through which
    a block is entered from the world, and its joints.
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


def rigid_groups(m: Any) -> NDArray[np.int64]:
    """Number of the rigid group of every body, then of the world: bodies that fixed joints join, (bodies + 1,)."""
    out = np.arange(m.body_count + 1)
    for j in m.topology.tree.tolist():
        if m.joint_types[j] == "fixed":
            out[m.joint_children[j]] = out[m.joint_parents[j]]  # the world's -1 is the last entry
    for j in m.topology.chords.tolist():
        pair = out[m.joint_parents[j]], out[m.joint_children[j]]
        if m.joint_types[j] == "fixed":
            out[out == min(pair)] = max(pair)
    return out


def end_bodies(m: Any) -> list[int]:
    """Bodies at the ends of a `Mechanism`, its end effectors if none are named.

    Bodies that fixed joints join count as one. Ends are those that carry nothing else and that no loop holds. Where a
    chain ends in a loop, its end is the body of this loop at which most joints meet, as at the platform of a parallel
    robot; of several the one with most shapes to touch with, then the one nearest to where the chain enters the loop.
    """
    t = m.topology
    if t.is_tree and "fixed" not in m.joint_types:
        return t.leaves.tolist()
    group = rigid_groups(m)
    ends = [(int(group[a]), int(group[b])) for a, b in joint_ends(m)]
    moving = [j for j, (a, b) in enumerate(ends) if a != b]
    meeting = np.bincount(
        np.array([ends[j] for j in moving], dtype=np.int64).ravel(), minlength=m.body_count + 1
    )
    carries, depth = np.zeros(m.body_count + 1, dtype=bool), np.zeros(m.body_count + 1, dtype=np.int64)
    for j in t.tree.tolist():
        body, parent = m.joint_children[j], m.joint_parents[j]
        depth[body] = depth[parent] + (m.joint_types[j] != "fixed")
        carries[group[parent]] |= group[parent] != group[body]
    touching = np.bincount(
        group[m.shape_table.body[m.shape_table.role != ROLES.index("visual")]], minlength=m.body_count + 1
    )

    def rank(g: int) -> tuple[int, ...]:
        return int(meeting[g]), int(touching[g]), -int(depth[g])

    blocks = blocks_of(int(group[-1]), [ends[j] for j in moving])
    entered = {entry for entry, _ in blocks}
    found: set[int] = set()
    for entry, joints in blocks:
        inside = {g for j in joints for g in ends[moving[j]]} - {entry}
        if inside & entered:
            continue  # something hangs on it
        free = [g for g in inside if not carries[g]] or list(
            inside
        )  # welds may make a ring of those that carry
        best = max(rank(g) for g in free)
        found.update(g for g in free if rank(g) == best)
    return [b for b in t.leaves.tolist() if group[b] in found] or t.leaves.tolist()
