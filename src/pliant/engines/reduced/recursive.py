"""Chain, split and merge recursion of TVCG sections 4 and 5, corrected, and refused where it is not exact.

Cut vertices divide the graph of bodies, the world included, into *blocks*: single joints, and groups of loops that
share links. The *entry* of a block is its body nearest to the world. The recursion represents a block by the 6 x 6
compliance between its entry and one other body, its *sink*. That is exact when

- wrenches enter the block at the sink alone: no second end effector inside, no second branch towards one; and
- series and parallel combinations of joints reduce the block to one element between entry and sink.

So chains, trees, loops without common links, any number of branches that meet in one body, and loops within a
branch of a loop are exact; a bridge across a loop (a ladder with continuous rails) is refused. Blocks without load
are not deformed, whatever their shape. The direction of joints does not matter.

Differences from the paper: merging does not invert twice (Eq. 14), which would free locked directions; the compliance
of the common ancestor is left out of the merge (Eqs. 12 and 16) and chained afterwards, which is equivalent and loses
no digits far from the world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pliant import spatial
from pliant.errors import InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.mechanism import Floats
from pliant.mechanism.tree import blocks_of, joint_ends
from pliant.text import listed

__all__ = ["RecursiveProjection", "recursive_projection"]

_INSTEAD = 'use projection="exact"'


@dataclass(frozen=True, eq=False)
class RecursiveProjection:
    """Response of a mechanism to wrenches on e end effectors, to first order. Body frames, linear part first.

    Attributes:
        compliance: twists of the end effectors per wrenches on them, (6e, 6e).
        joint_map: motions of the dofs per wrenches on the end effectors, (nv, 6e).
        joint_wrenches: wrench that each joint passes on from its child, child's frame, per wrenches on the end
            effectors, (joints, 6, 6e). In rigid loops the shares of the branches are one choice of many.
    """

    compliance: Floats
    joint_map: Floats
    joint_wrenches: Floats


def recursive_projection(
    m: Mechanism,
    poses: Floats,
    joint_compliance: Floats,
    bodies: Sequence[int],
    tolerance: float | None = None,
) -> RecursiveProjection:
    """Compliance of end effectors, joint motions and joint wrenches under their loads, by the recursion of TVCG.

    Args:
        m: the mechanism.
        poses: world poses of all links at the linearisation, loops closed, (links, 4, 4).
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
    twists = kinematics.joint_twists(m, poses)
    world, width, ends = m.body_count, 6 * len(effectors), joint_ends(m)

    def move(to: int, of: int) -> Floats:
        return spatial.adjoint(inverse[to] @ frames[of])

    carriers = set(effectors)  # end effectors, and bodies that carry one
    blocks = []  # entry, sink and joints of blocks under load, leaves first
    for entry, joints in blocks_of(world, ends):
        loaded = sorted({b for j in joints for b in ends[j] if b != entry and b in carriers})
        if len(loaded) > 1:
            raise InputError(_two_ports(m, loaded, joints))
        if loaded:
            blocks.append((entry, loaded[0], joints))
            carriers.add(entry)

    # Compliance of every sink, from the world outwards (TVCG Eqs. 10, 14).
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

    # Loads, from the end effectors inwards, and their distribution over the joints of a block (TVCG Eqs. 15-20).
    load = np.zeros((world + 1, 6, width))
    for column, body in enumerate(effectors):
        load[body][:, 6 * column : 6 * column + 6] += np.eye(6)
    joint_wrenches = np.zeros((m.joint_count, 6, width))
    for (entry, sink, _), elements in zip(blocks, reversed(reduced), strict=True):
        for j, wrench in _shares(elements, sink, load[sink] / scale[:, None]):
            joint_wrenches[j] = move(sink, ends[j][1]).T @ (scale[:, None] * wrench)
        load[entry] += move(sink, entry).T @ load[sink]
    finite = np.where(
        np.isfinite(compliance), compliance, 0.0
    )  # joints without springs have no load and do not move
    joint_map = finite[:, None] * np.einsum("di,dij->dj", twists, joint_wrenches[m.dof_joint])
    return RecursiveProjection(_split(effectors, blocks, own, move), joint_map, joint_wrenches)


def _split(effectors: list[int], blocks: list, own: Floats, move: Callable[[int, int], Floats]) -> Floats:
    """Compliance of all end effectors; that between two is the compliance of their last common body (TVCG Eq. 12)."""
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


def _orthonormal(poses: Floats) -> Floats:
    """Poses with orthonormal rotations: rounding along chains grows with their length.

    One step of Newton's iteration for the polar factor.
    """
    out = poses.copy()
    r = poses[:, :3, :3]
    out[:, :3, :3] = r @ (3 * np.eye(3) - r.transpose(0, 2, 1) @ r) / 2
    return out


# --- inside a block


@dataclass(frozen=True, eq=False)
class _Element:
    """A joint, or a series or parallel combination of joints, between two bodies. A block has one frame for all.

    Attributes:
        tail, head: the bodies. A wrench through the element acts on its head.
        factor: B, (6, any); B Bᵀ is the compliance, motion of the head relative to the tail per wrench.
        parts: the two elements that are combined, with the sign of the wrench through them.
        share: matrix from the wrench to the part that the second of two parallel elements takes.
        joint: the joint, if it is a single one.
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
    """The leaves, then combinations of earlier elements; the last combines all, between entry and sink."""
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
    """Series of two elements, chaining, TVCG Eq. 10: both carry the same wrench."""
    a, b = elements[first], elements[second]
    parts = ((first, 1.0 if a.head == body else -1.0), (second, 1.0 if b.tail == body else -1.0))
    return _Element(before, after, _short(np.hstack([a.factor, b.factor])), parts)


def _parallel(elements: list[_Element], first: int, second: int, tolerance: float | None) -> _Element:
    """Two parallel elements, merging, TVCG Eqs. 14 and 17: both have the same motion and share the wrench.

    With C₁ and C₂ the compliances, the multiplier of Eq. 17 is C₁ - C₁ (C₁ + C₂)⁺ C₁, and (C₁ + C₂)⁺ C₁ is the
    share of the second. Both come from one SVD of the factors side by side, which halves the loss of digits, and the
    result is positive semidefinite by construction. More than two branches merge one after another.
    """
    a, b = elements[first], elements[second]
    both = np.hstack([a.factor, b.factor])
    u, s, vt = np.linalg.svd(both)
    relative = max(both.shape) * np.finfo(float).eps if tolerance is None else tolerance
    # The tolerance is for compliances, whose singular values are the squares of those of their factors.
    rank = int((s > np.sqrt(relative) * s[0]).sum()) if len(s) else 0
    columns = a.factor.shape[1]
    u, along, free = u[:, :rank], vt[:rank, :columns], vt[rank:, :columns]
    share = u @ ((along @ a.factor.T) / s[:rank, None])
    share += (np.eye(6) - u @ u.T) / 2  # directions in which neither moves: equal shares
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
    names = listed([m.body_names[body] for body in sorted(left)], 4)
    return f"loops share the links {names}, and the recursion is exact for separate loops only: {_INSTEAD}"


def _limp(m: Mechanism, dofs: slice, compliance: Floats) -> str:
    name = m.dof_names[dofs.start + int(np.argmin(np.isfinite(compliance[dofs])))]
    return f"no spring holds '{name}', which carries load: give it stiffness with `with_stiffness`, or {_INSTEAD}"
