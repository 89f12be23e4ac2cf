"""The chain, split and merge recursion of TVCG sections 4 and 5, corrected, and refused where it is not exact.

The graph of bodies, the world included, falls apart at its cut vertices into *blocks*: single joints, and groups
of loops that share links. Seen from the world a block has one *entry*, the body that carries it. The recursion
knows a block only by the 6 x 6 compliance between its entry and one other body, its *sink*. That is exact when

- wrenches enter the block at the sink alone: no second end effector inside, no second branch towards one; and
- series and parallel combinations of joints reduce the block to one element between entry and sink.

So chains, trees, loops apart from each other, any number of branches that meet in one body, and loops within a
branch of a loop are exact; a bridge across a loop (a ladder with continuous rails) is refused. Blocks that carry
no load do not move in themselves, whatever their shape. Joint directions do not matter.

Differences from the print: merging does not invert twice (Eq. 14), which would free locked directions; the
common ancestor's compliance is left out of the merge (Eqs. 12 and 16) and chained on afterwards, which is the same
in theory and does not cancel digits far from the world; twists telescope along the tree (Eq. 22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pliant import spatial
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.mechanism import Floats
from pliant.mechanism.tree import blocks_of, joint_ends

__all__ = ["RecursiveProjection", "recursive_projection"]

_INSTEAD = 'use projection="exact"'


@dataclass(frozen=True, eq=False)
class RecursiveProjection:
    """What e end effectors do to a mechanism, to first order. Body frames, linear part first.

    Attributes:
        compliance: twists of the end effectors per wrenches on them, (6e, 6e).
        joint_map: motions of the dofs per wrenches on the end effectors, (nv, 6e).
        joint_wrenches: wrench that each joint passes on from its child, child's frame, per wrenches on the end
            effectors, (joints, 6, 6e). Where rigid
            loops leave the shares of their branches open, they are one choice of many.
        wrench_maps: what each body passes on through all joints of which it is the child, (bodies, 6, 6e).
        twist_maps: twist of each body, (bodies, 6, 6e).
    """

    compliance: Floats
    joint_map: Floats
    joint_wrenches: Floats
    wrench_maps: Floats
    twist_maps: Floats


def recursive_projection(
    m: Mechanism,
    poses: Floats,
    joint_compliance: Floats,
    bodies: Sequence[int],
    tolerance: float | None = None,
) -> RecursiveProjection:
    """Compliance of end effectors, and the wrenches and twists their loads cause, by the recursion of TVCG.

    Args:
        m: the mechanism.
        poses: world poses of all links where to linearise, loops closed, (links, 4, 4); see `kinematics.link_poses`.
        joint_compliance: 1 / stiffness per dof; infinite only where no load passes.
        bodies: indices of the e end effectors.
        tolerance: singular values of a loop's compliance, lengths in units of the mechanism's radius, below this
            fraction of the largest are zero; None for max(rows, columns) times the rounding unit (TVCG Eq. 9).

    Raises:
        InputError: the recursion is not exact for this mechanism and these end effectors.
    """
    compliance, effectors = _check(m, poses, joint_compliance, bodies)
    poses = _orthonormal(poses)
    frames = np.concatenate([poses[m.links.body_link], np.eye(4)[None]])  # the world is the last
    inverse = spatial.se3_inverse(frames)
    twists = _joint_twists(m, poses)
    world, width, ends = m.body_count, 6 * len(effectors), joint_ends(m)

    def move(to: int, of: int) -> Floats:
        return spatial.adjoint(inverse[to] @ frames[of])

    carriers = set(effectors)  # and bodies with an end effector beyond them
    blocks = []  # entry, sink and joints of those that carry load, leaves first
    for entry, joints in blocks_of(world, ends):
        loaded = sorted({b for j in joints for b in ends[j] if b != entry and b in carriers})
        if len(loaded) > 1:
            raise InputError(_two_ports(m, loaded, joints))
        if loaded:
            blocks.append((entry, loaded[0], joints))
            carriers.add(entry)

    # From the world outwards: compliance of every body that passes load on (TVCG Eqs. 10, 14).
    scale = np.array([1 / m.radius] * 3 + [1.0] * 3)
    own = np.zeros((world + 1, 6, 6))
    reduced: list[list[_Element]] = []
    for entry, sink, joints in reversed(blocks):
        leaves = []
        for j in joints:
            dofs, (parent, child) = m.joint_dofs(j), ends[j]
            if not np.isfinite(compliance[dofs]).all():
                raise InputError(_limp(m, dofs, compliance))
            factor = move(sink, child) @ twists[dofs].T * np.sqrt(compliance[dofs])
            leaves.append(_Element(parent, child, scale[:, None] * factor, joint=j))
        elements = _reduce(m, leaves, entry, sink, tolerance)
        factor = elements[-1].factor / scale[:, None]
        whole = move(sink, entry) @ own[entry] @ move(sink, entry).T + factor @ factor.T
        own[sink] = (whole + whole.T) / 2
        reduced.append(elements)

    # From the end effectors inwards: loads, shared out among the joints of a block (TVCG Eqs. 15-20).
    load = np.zeros((world + 1, 6, width))
    for column, body in enumerate(effectors):
        load[body][:, 6 * column : 6 * column + 6] += np.eye(6)
    joint_wrenches = np.zeros((m.joint_count, 6, width))
    for (entry, sink, _), elements in zip(blocks, reversed(reduced), strict=True):
        for j, wrench in _shares(elements, sink, load[sink] / scale[:, None]):
            joint_wrenches[j] = move(sink, ends[j][1]).T @ (scale[:, None] * wrench)
        load[entry] += move(sink, entry).T @ load[sink]
    wrench_maps = np.zeros((world, 6, width))
    np.add.at(wrench_maps, m.joint_children, joint_wrenches)

    finite = np.where(np.isfinite(compliance), compliance, 0.0)  # limp joints have no load and stay
    joint_map = finite[:, None] * np.einsum("di,dij->dj", twists, joint_wrenches[m.dof_joint])
    return RecursiveProjection(
        compliance=_split(effectors, blocks, own, move),
        joint_map=joint_map,
        joint_wrenches=joint_wrenches,
        wrench_maps=wrench_maps,
        twist_maps=_twists(m, frames, inverse, twists, joint_map),
    )


def _split(effectors: list[int], blocks: list, own: Floats, move: Callable[[int, int], Floats]) -> Floats:
    """Compliance of all end effectors: two of them move each other through their last common body (TVCG Eq. 12)."""
    out = np.zeros((len(effectors), 6, len(effectors), 6))
    beyond: list[list[int]] = [[] for _ in own]

    def meet(body: int, columns: list[int]) -> None:
        others = beyond[body]
        to = {i: move(effectors[i], body) for i in others + columns if others}
        for i in columns:
            for k in others:
                out[i, :, k] = to[i] @ own[body] @ to[k].T
                out[k, :, i] = out[i, :, k].T
        beyond[body] = others + columns if others else columns

    for column, body in enumerate(effectors):
        out[column, :, column] = own[body]
        meet(body, [column])
    for entry, sink, _ in blocks:  # leaves first
        meet(entry, beyond[sink])
    return out.reshape(6 * len(effectors), 6 * len(effectors))


def _twists(m: Mechanism, frames: Floats, inverse: Floats, twists: Floats, joint_map: Floats) -> Floats:
    """Twist of every body: its parent's and its joint's (TVCG Eq. 22, in increments along the spanning tree)."""
    out = np.zeros((m.body_count + 1, 6, joint_map.shape[1]))
    move = spatial.adjoint(inverse[:-1] @ frames[m.topology.parent])
    for j in m.topology.tree.tolist():
        child, dofs = int(m.joint_children[j]), m.joint_dofs(j)
        out[child] = move[child] @ out[m.topology.parent[child]] + twists[dofs].T @ joint_map[dofs]
    return out[:-1]


def _orthonormal(poses: Floats) -> Floats:
    """Poses with the rounding of long chains taken out of their rotations, so that inverses are inverses.

    One step of Newton's iteration for the polar factor. What it takes out would grow with the number of joints.
    """
    out = poses.copy()
    r = poses[:, :3, :3]
    out[:, :3, :3] = r @ (3 * np.eye(3) - r.transpose(0, 2, 1) @ r) / 2
    return out


def _joint_twists(m: Mechanism, poses: Floats) -> Floats:
    """Twist of a joint's child per dof, in the child's frame, (nv, 6); of its copy, if the joint closes a loop."""
    links = m.links
    last = np.zeros(m.joint_count, dtype=np.int64)
    np.maximum.at(last, links.joint, np.arange(len(links)))
    moving = np.flatnonzero(links.kind)
    # Links that move start at different dofs; sorted, each dof belongs to the last that starts before it.
    order = moving[np.argsort(links.dof[moving])]
    link = order[np.searchsorted(links.dof[order], np.arange(m.nv), side="right") - 1]
    to_child = spatial.adjoint(spatial.se3_inverse(poses[last[links.joint[link]]]) @ poses[link])
    return np.einsum("dij,dj->di", to_child, links.screw)


# --- inside a block


@dataclass(frozen=True, eq=False)
class _Element:
    """One joint, or several that act as one between two bodies. All elements of a block share one frame.

    Attributes:
        tail, head: the bodies. A wrench through the element acts on its head.
        factor: B, (6, any); the head moves by B Bᵀ times the wrench, seen from the tail.
        parts: earlier elements that it consists of, with the sign of the wrench through them.
        share: part of the wrench that the second of two parallel parts takes.
        joint: if it is just one.
    """

    tail: int
    head: int
    factor: Floats
    parts: tuple[tuple[int, float], ...] = ()
    share: Floats | None = None
    joint: int = -1


def _reduce(
    m: Mechanism, leaves: list[_Element], entry: int, sink: int, tolerance: float | None
) -> list[_Element]:
    """The leaves, then combinations of earlier elements, up to the one between entry and sink that has them all."""
    elements: list[_Element] = []
    near: dict[int, dict[int, int]] = {body: {} for e in leaves for body in (e.tail, e.head)}

    def attach(element: _Element) -> None:
        elements.append(element)
        tail, head = element.tail, element.head
        if head in near[tail]:
            elements.append(_parallel(elements, near[tail][head], len(elements) - 1, tolerance))
        near[tail][head] = near[head][tail] = len(elements) - 1

    for leaf in leaves:
        attach(leaf)
    ready = [body for body in near if body not in (entry, sink) and len(near[body]) == 2]
    while ready:
        body = ready.pop()
        if body not in near or len(near[body]) != 2:
            continue
        (before, first), (after, second) = near.pop(body).items()
        del near[before][body], near[after][body]
        attach(_series(elements, before, body, after, first, second))
        ready += [b for b in (before, after) if b not in (entry, sink) and len(near[b]) == 2]
    if len(near) > 2:
        raise InputError(_not_separate(m, [body for body in near if body not in (entry, sink)]))
    return elements


def _series(
    elements: list[_Element], before: int, body: int, after: int, first: int, second: int
) -> _Element:
    """Chaining, TVCG Eq. 10: both elements carry the same wrench."""
    a, b = elements[first], elements[second]
    parts = ((first, 1.0 if a.head == body else -1.0), (second, 1.0 if b.tail == body else -1.0))
    return _Element(before, after, _short(np.hstack([a.factor, b.factor])), parts)


def _parallel(elements: list[_Element], first: int, second: int, tolerance: float | None) -> _Element:
    """Merging, TVCG Eqs. 14 and 17: both elements move alike and share the wrench.

    With C₁ and C₂ the compliances, the multiplier of Eq. 17 is C₁ - C₁ (C₁ + C₂)⁺ C₁, and (C₁ + C₂)⁺ C₁ is the
    share of the second. Both come from one SVD of the factors side by side, at half the digits' loss, and the
    result is positive semidefinite by construction. More than two branches merge one after another.
    """
    a, b = elements[first], elements[second]
    both = np.hstack([a.factor, b.factor])
    u, s, vt = np.linalg.svd(both)
    relative = max(both.shape) * np.finfo(float).eps if tolerance is None else tolerance
    # The tolerance is meant for compliances, whose singular values are the squares of these.
    rank = int((s > np.sqrt(relative) * s[0]).sum()) if len(s) else 0
    columns = a.factor.shape[1]
    u, along, free = u[:, :rank], vt[:rank, :columns], vt[rank:, :columns]
    share = u @ ((along @ a.factor.T) / s[:rank, None])
    share += (np.eye(6) - u @ u.T) / 2  # neither moves: nothing decides, so half and half
    parts = ((first, 1.0), (second, 1.0 if b.head == a.head else -1.0))
    return _Element(a.tail, a.head, _short(a.factor @ free.T), parts, share)


def _short(factor: Floats) -> Floats:
    """A factor of the same B Bᵀ with at most six columns."""
    return factor if factor.shape[1] <= 6 else np.linalg.qr(factor.T).R.T


def _shares(elements: list[_Element], sink: int, load: Floats) -> Iterator[tuple[int, Floats]]:
    """Wrench through every joint of a reduced block when the load acts on its sink (TVCG Eq. 19)."""
    wrench: dict[int, Floats] = {len(elements) - 1: load if elements[-1].head == sink else -load}
    for i in range(len(elements) - 1, -1, -1):
        element, through = elements[i], wrench.pop(i)
        if not element.parts:
            yield element.joint, through
            continue
        (first, first_sign), (second, second_sign) = element.parts
        taken = through if element.share is None else element.share @ through
        wrench[first] = first_sign * (through if element.share is None else through - taken)
        wrench[second] = second_sign * taken


# --- refusals


def _check(
    m: Mechanism, poses: Floats, joint_compliance: Floats, bodies: Sequence[int]
) -> tuple[Floats, list[int]]:
    compliance = np.asarray(joint_compliance, dtype=float)
    if compliance.shape != (m.nv,):
        raise InputError(f"joint_compliance has the shape {compliance.shape}, '{m.name}' needs ({m.nv},)")
    if np.shape(poses) != (len(m.links), 4, 4):
        raise InputError(f"poses have the shape {np.shape(poses)}, '{m.name}' needs ({len(m.links)}, 4, 4)")
    for d in np.flatnonzero(~(compliance >= 0))[:1].tolist():
        raise InputError(f"the compliance of '{m.dof_names[d]}' is {compliance[d]}; it cannot be negative")
    effectors = [int(body) for body in bodies]
    for body in effectors:
        if not 0 <= body < m.body_count:
            raise InputError(f"end effector {body} is not a body of '{m.name}', which has {m.body_count}")
    for what, names in (("coupling", m.coupling_names), ("tendon", m.tendon_names)):
        if names:
            raise InputError(f"{what} '{names[0]}' ties joints together, which no recursion sees: {_INSTEAD}")
    return compliance, effectors


def _two_ports(m: Mechanism, loaded: list[int], joints: list[int]) -> str:
    a, b = (m.body_names[body] for body in loaded[:2])
    return (
        f"bodies '{a}' and '{b}' bring load into the same loop (through joint '{m.joint_names[min(joints)]}'): the "
        f"recursion is exact for one of them only; {_INSTEAD}, or move the end effectors out of the loop"
    )


def _not_separate(m: Mechanism, left: list[int]) -> str:
    names = ", ".join(f"'{m.body_names[body]}'" for body in sorted(left)[:4]) + (
        ", ..." if len(left) > 4 else ""
    )
    return f"loops share the links {names}, and the recursion is exact for separate loops only: {_INSTEAD}"


def _limp(m: Mechanism, dofs: slice, compliance: Floats) -> str:
    name = m.dof_names[dofs.start + int(np.argmin(np.isfinite(compliance[dofs])))]
    return f"no spring holds '{name}', which carries load: give it stiffness with `with_stiffness`, or {_INSTEAD}"
