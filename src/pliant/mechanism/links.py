"""Links: the primitives of all joints as one tree of flat arrays, for kernels of kinematics and statics.

A *link* is one primitive of one joint. Links form a tree, parents before children, and

    T_k = T_parent(k)  A_k  E_k(q_k)

with a constant `A_k` and, for every dof, a constant motion subspace row `S` in the link's own frame. A body's
frame is the frame of the last link of its tree joint. A loop is cut at the *body*: the loop-closing joint
carries a second, massless copy of its child, and the loop is closed when copy and body coincide. Springs on
loop joints are then ordinary springs, and every loop has six rows, whatever its joint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.chunks import slices
from pliant.mechanism.joints import BALL, HINGE, NDOF, NQ, SLIDE
from pliant.mechanism.tree import Topology

__all__ = ["LINK_BALL", "LINK_FIXED", "LINK_HINGE", "LINK_SLIDE", "LinkArrays", "Links", "build_links"]

LINK_FIXED, LINK_HINGE, LINK_SLIDE, LINK_BALL = 0, 1, 2, 3
_LINK_KIND = np.zeros(3, dtype=np.int64)
_LINK_KIND[[HINGE, SLIDE, BALL]] = LINK_HINGE, LINK_SLIDE, LINK_BALL


class LinkArrays(NamedTuple):
    """Arrays of `Links` that kernels take as one argument."""

    parent: NDArray[np.int64]
    kind: NDArray[np.int64]
    offset: NDArray[np.float64]
    screw: NDArray[np.float64]
    anchor: NDArray[np.float64]
    dof: NDArray[np.int64]
    coordinate: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Links:
    """The links of a mechanism (n links, nv dofs).

    Attributes:
        parent: parent link, -1 the world.
        kind: LINK_FIXED, LINK_HINGE, LINK_SLIDE or LINK_BALL.
        offset: A_k, (n, 4, 4).
        screw: per dof, its unit twist in the frame of its link, (nv, 6).
        anchor: a point on the axis of a hinge, the centre of a ball, link frame, (n, 3).
        dof, coordinate: index of the link's first entry in tangent vectors and in q.
        joint: the joint a link belongs to.
        body: the body whose frame a link is, -1 for none.
        body_link: per body, its link.
        loop_copy, loop_body: per loop, the link of the copy and of the body it must coincide with.
        backwards: joints that the tree passes from child to parent. Their primitives come in reverse order, with
            opposite unit twists: coordinates mean the same.
        joint_child: per joint, the link in the frame of its child (of the copy, if the joint closes a loop).
    """

    parent: NDArray[np.int64]
    kind: NDArray[np.int64]
    offset: NDArray[np.float64]
    screw: NDArray[np.float64]
    anchor: NDArray[np.float64]
    dof: NDArray[np.int64]
    coordinate: NDArray[np.int64]
    joint: NDArray[np.int64]
    body: NDArray[np.int64]
    body_link: NDArray[np.int64]
    loop_copy: NDArray[np.int64]
    loop_body: NDArray[np.int64]
    backwards: NDArray[np.int64]
    joint_child: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def arrays(self) -> LinkArrays:
        """The arrays that kernels take."""
        return LinkArrays(
            self.parent, self.kind, self.offset, self.screw, self.anchor, self.dof, self.coordinate
        )

    @cached_property
    def dofs(self) -> NDArray[np.int64]:
        """Number of dofs of every link, (n,)."""
        return np.array([0, 1, 1, 3])[self.kind]

    @cached_property
    def dof_link(self) -> NDArray[np.int64]:
        """Link of every dof, (nv,)."""
        out = np.zeros(len(self.screw), dtype=np.int64)
        for d in range(3):
            has = np.flatnonzero(self.dofs > d)
            out[self.dof[has] + d] = has
        return out

    def joint_frames(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Joint frames of links: in the link's frame, and in the parent's joint frame at zero coordinates, (n, 4, 4).

        Its origin is the anchor; its z axis that of a hinge or slide, its axes those of a ball's coordinates. The pose
        of a joint frame in that of the parent is then a constant times Rz(q), a shift along z or a quaternion.
        """
        frames = np.broadcast_to(np.eye(4), (len(self), 4, 4)).copy()
        frames[:, :3, 3] = self.anchor
        straight = np.flatnonzero((self.kind == LINK_HINGE) | (self.kind == LINK_SLIDE))
        screw = self.screw[self.dof[straight]]
        axis = np.where((self.kind[straight] == LINK_HINGE)[:, None], screw[:, 3:], screw[:, :3])
        side = np.cross(np.eye(3)[np.argmin(np.abs(axis), axis=1)], axis)
        side /= np.sqrt((side**2).sum(axis=1))[:, None]
        frames[straight, :3, :3] = np.stack([side, np.cross(axis, side), axis], axis=2)
        balls = np.flatnonzero(self.kind == LINK_BALL)
        for d in range(3):
            frames[balls, :3, d] = self.screw[self.dof[balls] + d, 3:]
        offsets = np.empty_like(frames)
        for part in slices(len(self)):
            offset, parent = self.offset[part] @ frames[part], self.parent[part]
            inner = parent >= 0
            offset[inner] = spatial.se3_inverse(frames[parent[inner]]) @ offset[inner]
            offsets[part] = offset
        return frames, offsets


def build_links(
    topology: Topology,
    parents: NDArray,
    children: NDArray,
    parent_frames: NDArray,
    child_frames: NDArray,
    primitive_joint: NDArray,
    kind: NDArray,
    axis: NDArray,
    anchor: NDArray,
) -> Links:
    """Links of a validated mechanism, from its arrays."""
    joints = np.concatenate([topology.tree, topology.chords])
    # from the body that carries a joint in the tree to the body that it carries
    backwards = np.zeros(len(parents), dtype=bool)
    backwards[topology.backwards] = True
    if len(topology.backwards):
        turned = backwards[:, None, None]
        parents, children = np.where(backwards, children, parents), np.where(backwards, parents, children)
        parent_frames, child_frames = (
            np.where(turned, child_frames, parent_frames),
            np.where(turned, parent_frames, child_frames),
        )
    count = np.bincount(primitive_joint, minlength=len(parents)) if len(parents) else np.empty(0, int)
    first_primitive = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    length = np.maximum(count[joints], 1)  # a fixed joint still needs a link for its child's frame
    first = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    n = int(first[-1])
    starts, lasts = first[:-1], first[1:] - 1

    joint = np.repeat(joints, length)
    slot = np.arange(n) - np.repeat(starts, length)
    moving = count[joint] > 0
    slot = np.where(backwards[joint], count[joint] - 1 - slot, slot)
    primitive = np.where(moving, first_primitive[joint] + slot, 0)

    body_link = np.zeros(len(topology.parent), dtype=np.int64)
    tree_count = len(topology.tree)
    body_link[children[topology.tree]] = lasts[:tree_count]
    body = np.full(n, -1, dtype=np.int64)
    body[lasts[:tree_count]] = children[topology.tree]

    parent = np.arange(n) - 1
    carrier = parents[joints]
    parent[starts] = np.where(carrier >= 0, body_link[np.maximum(carrier, 0)], -1)

    offset = np.broadcast_to(np.eye(4), (n, 4, 4)).copy()
    offset[starts] = parent_frames[joints]
    # The last primitive absorbs the child's frame:  E X_c^-1 = X_c^-1 exp(Ad(X_c) S q).
    for part in slices(len(joints)):
        last = lasts[part]
        offset[last] = offset[last] @ spatial.se3_inverse(child_frames[joints[part]])

    link_kind = np.zeros(n, dtype=np.int64)
    link_anchor = np.zeros((n, 3))
    to_link = np.broadcast_to(np.eye(4), (n, 4, 4)).copy()
    to_link[lasts] = child_frames[joints]
    screw = np.zeros((int(NDOF[kind].sum()), 6))
    dof = np.zeros(n, dtype=np.int64)
    coordinate = np.zeros(n, dtype=np.int64)
    moves = np.flatnonzero(moving)
    p = primitive[moves]
    link_kind[moves] = _LINK_KIND[kind[p]]
    dof[moves] = np.concatenate([[0], np.cumsum(NDOF[kind])])[p]
    coordinate[moves] = np.concatenate([[0], np.cumsum(NQ[kind])])[p]
    for part in slices(len(moves)):
        k, own = moves[part], p[part]
        link_anchor[k] = np.einsum("nij,nj->ni", to_link[k, :3, :3], anchor[own]) + to_link[k, :3, 3]
    sign = np.where(backwards[joint], -1.0, 1.0)
    for d in range(3):
        has = np.flatnonzero(NDOF[kind[p]] > d)
        for part in slices(len(has)):
            k, own = moves[has[part]], p[has[part]]
            along = np.where((kind[own] == BALL)[:, None], np.eye(3)[d], axis[own])
            along = np.einsum("nij,nj->ni", to_link[k, :3, :3], along) * sign[k, None]
            screw[dof[k] + d] = _unit_twists(kind[own], along, link_anchor[k])
    joint_child = np.zeros(len(parents), dtype=np.int64)
    joint_child[joints] = lasts
    joint_child[backwards] = body_link[parents[backwards]]

    return Links(
        parent=parent,
        kind=link_kind,
        offset=offset,
        screw=screw,
        anchor=link_anchor,
        dof=dof,
        coordinate=coordinate,
        joint=joint,
        body=body,
        body_link=body_link,
        loop_copy=lasts[tree_count:].copy(),
        loop_body=body_link[children[topology.chords]],
        backwards=topology.backwards,
        joint_child=joint_child,
    )


def _unit_twists(kind: NDArray, axis: NDArray, anchor: NDArray) -> NDArray[np.float64]:
    """Unit twists of turns about, or slides along, an axis through an anchor, linear part first, (n, 6)."""
    slide = (kind == SLIDE)[:, None]
    linear = np.where(slide, axis, np.cross(anchor, axis))
    return np.concatenate([linear, np.where(slide, 0.0, axis)], axis=1)
