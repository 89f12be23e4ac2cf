"""A mechanism as the flat arrays of the quasi-static engine.

Bodies held together by fixed joints are one *group*; bodies fixed to the world are part of the world. A group's frame
is the joint frame of its inbound joint (`Links.joint_frames`), in which the joint's motion is a choice of coordinates.
A joint made of several primitives is one joint with up to six freedoms.

A loop is cut at a body, into the body and a copy (see `mechanism.links`); they share its inertia. The copy is a group
like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pliant import spatial
from pliant.chunks import slices
from pliant.engines.quasistatic import _packing as kernels
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic.arrays import Floats, Ints
from pliant.engines.quasistatic.assembly_tree import (
    Assembly,
    LoopHandles,
    assembly,
    close_loops,
    cluster_handles,
    loop_handles,
)
from pliant.errors import InputError, MechanismError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.mechanism.links import LINK_BALL, LINK_FIXED

__all__ = ["Model", "leaf_records", "pack", "pose_matrices", "spring_arrays"]


@dataclass(eq=False)
class Model:
    """Constant arrays of a mechanism (g groups, n nodes).

    Attributes:
        tree: the assembly tree over groups.
        groups, primitives, nodes: integers, see the columns in `arrays.py`.
        offsets: pose of a primitive's frame at zero in the frame before it, (primitives, 12).
        inertia: spatial inertia of every group in its frame, (g, 6, 6).
        data: room for the records of all clusters, with the constant inverse inertias of leaves.
        extent: per group, the largest distance of its bodies' origins and centres of mass from its frame, m.
        group: per body, its group, -1 the world.
        local: per body, its pose in the frame of its group, (bodies, 4, 4).
        adaptive: whether the tree closes all rows of the mechanism; else it has none of its loops.
        loop_handles: clusters with ends of loops; None without loops in the tree.
        loops: per loop of the tree, the leaves of the copy and of the body (-1 the world), (loops, 2).
        ends: poses of the frames of copy and body that coincide, in their groups' frames, (2 loops, 12).
        cut, cut_ends: the same for all loops of the mechanism, with groups in place of leaves.
    """

    tree: Assembly
    groups: Ints
    primitives: Ints
    nodes: Ints
    offsets: Floats
    inertia: Floats
    data: Floats
    extent: Floats
    group: Ints
    local: Floats
    adaptive: bool
    loop_handles: LoopHandles | None
    loops: Ints
    ends: Floats
    cut: Ints
    cut_ends: Floats


def pack(m: Mechanism) -> Model:
    """Arrays of a mechanism.

    Raises:
        InputError: it has a tendon on a ball joint, a joint with more than six freedoms, or nothing that moves.
        MechanismError: a body that moves has no inertia in some direction.
    """
    _check_supported(m)
    frames, local = m.links.joint_frames()
    group_of, fixed, base, firsts, owners = _group_links(m, local)
    moving = np.flatnonzero(m.links.kind != LINK_FIXED)
    primitives = np.stack([m.links.kind, m.links.dof, m.links.coordinate], axis=1)[moving]
    slot = np.full(len(m.links), -1)
    slot[moving] = np.arange(len(moving))

    groups = np.zeros((len(firsts), col.GROUP_COLUMNS), dtype=np.int64)
    carrier = m.links.parent[firsts]
    groups[:, col.PARENT] = np.where(carrier >= 0, group_of[carrier], -1)
    groups[:, col.FIRST] = slot[firsts]
    groups[:, col.COUNT] = owners - firsts + 1
    groups[:, col.DOF] = m.links.dof[firsts]
    ball = m.links.kind[owners] == LINK_BALL
    groups[:, col.DOFS] = m.links.dof[owners] + np.where(ball, 3, 1) - groups[:, col.DOF]
    if (groups[:, col.DOFS] > 6).any():
        joint = m.links.joint[owners[np.argmax(groups[:, col.DOFS])]]
        raise InputError(
            f"joint '{m.joint_names[joint]}' has more than six degrees of freedom: "
            "QuasistaticSimulation cannot tell them apart"
        )
    if len(fixed):  # joint frames of fixed links are not those of their groups
        slot[fixed] = np.arange(len(fixed))
        above = m.links.parent
        on_fixed = moving[(above[moving] >= 0) & (m.links.kind[above[moving]] == LINK_FIXED)]
        local[on_fixed] = base[slot[above[on_fixed]]] @ local[on_fixed]
    offsets = _flat_poses(local, moving)
    del local
    placed = frames  # link frames in their groups' frames take the place of joint frames in them
    for part in slices(len(placed)):
        placed[part] = spatial.se3_inverse(placed[part])
    placed[fixed] = base @ placed[fixed]

    link = m.links.body_link
    seen = placed[link]
    pairs = np.stack([m.links.loop_copy, m.links.loop_body], axis=1)
    cut, cut_ends = group_of[pairs], placed[pairs]
    loops, ends = _loops(cut, cut_ends)
    inertia = _inertias(m, group_of[link], seen, len(groups))
    _share_inertia(m, inertia, loops, ends)
    centres = np.einsum("nij,nj->ni", seen[:, :3, :3], m.com) + seen[:, :3, 3]
    far = np.sqrt(np.maximum((seen[:, :3, 3] ** 2).sum(axis=1), (centres**2).sum(axis=1)))
    extent = np.zeros(len(groups))
    moves = group_of[link] >= 0
    np.maximum.at(extent, group_of[link][moves], far[moves])
    np.maximum.at(extent, loops[:, 0], np.sqrt((ends[:, 0, :3, 3] ** 2).sum(axis=1)))
    tree, wide = assembly(groups[:, col.PARENT]), None
    adaptive, handles = not len(m.couplings) and not len(m.tendons), None
    if len(loops) and adaptive:
        joined = [(int(a), int(b)) for a, b in loops]
        closed, loop = close_loops(tree, joined)
        handles = cluster_handles(closed, loop, joined)
        adaptive = handles is not None
    if handles is None:
        nodes, size = _nodes(tree, groups, tree.handles)
    else:
        tree = closed
        nodes, size = _nodes(tree, groups, [len(own) for own in handles])
        wide = loop_handles(tree, loop, joined, groups[:, col.PARENT], handles, nodes[:, col.ROWS].tolist())
        nodes[:, col.WIDE] = wide.index
    data = np.zeros(size)
    _fill_leaves(m, tree, inertia, owners, leaf_records(data, tree))
    columns = {
        name: nodes[:, i] for i, name in enumerate(("kind", "left", "right", "parent", "body", "handles"))
    }
    tree = replace(tree, **columns)  # the same numbers once
    return Model(
        tree=tree,
        groups=groups,
        primitives=np.ascontiguousarray(primitives),
        nodes=nodes,
        offsets=offsets,
        inertia=inertia,
        data=data,
        extent=extent,
        group=group_of[link],
        local=seen,
        adaptive=adaptive,
        loop_handles=wide,
        loops=np.where(loops >= 0, tree.first_leaf[loops], -1),
        ends=_flat_poses(ends.reshape(-1, 4, 4)),
        cut=cut,
        cut_ends=_flat_poses(cut_ends.reshape(-1, 4, 4)),
    )


def _check_supported(m: Mechanism) -> None:
    if m.nv == 0:
        raise InputError(f"nothing in '{m.name}' can move: all its joints are fixed")
    turning = np.flatnonzero(m.dof_kind[m.tendons.dof] == BALL)
    if len(turning):
        name = m.tendon_names[np.searchsorted(m.tendons.start, turning[0], side="right") - 1]
        raise InputError(
            f"tendon '{name}' acts on a ball joint: QuasistaticSimulation knows those of hinges and slides only"
        )


def _group_links(m: Mechanism, local: Floats) -> tuple[Ints, Ints, Floats, Ints, Ints]:
    """Group of every link; fixed links, and their joint frames in their groups'; first and last link of every group."""
    links = m.links
    ends = links.body >= 0
    ends[links.loop_copy] = True
    fixed = np.flatnonzero(links.kind == LINK_FIXED)
    group, slot = np.full((2, len(links)), -1, dtype=np.int64)
    slot[fixed] = np.arange(len(fixed))
    base = np.zeros((len(fixed), 4, 4))
    firsts, owners = np.empty((2, len(links)), dtype=np.int64)
    count = kernels.group_links(links.parent, links.kind, ends, local, group, slot, base, firsts, owners)
    return group, fixed, base, firsts[:count].copy(), owners[:count].copy()


def _loops(cut: Ints, cut_ends: Floats) -> tuple[Ints, Floats]:
    """Groups of the copy and the body of every loop, and the frames that coincide in them; the world comes second."""
    keep = cut[:, 0] != cut[:, 1]  # others are closed by fixed joints
    loops, ends = cut[keep], cut_ends[keep]
    turned = loops[:, 0] < 0
    loops[turned], ends[turned] = loops[turned, ::-1], ends[turned, ::-1]
    return loops, ends


def _share_inertia(m: Mechanism, inertia: Floats, loops: Ints, ends: Floats) -> None:
    """Split the inertia of cut bodies evenly between body and copies: any split gives the same motion."""
    pairs = [(n, int(a), int(b)) for n, (a, b) in enumerate(loops) if not inertia[a].any()]
    for b, copies in Counter(b for _, _, b in pairs if b >= 0).items():
        inertia[b] /= 1 + copies
    for n, a, b in pairs:
        if b >= 0:
            to_body = spatial.adjoint(ends[n, 1] @ spatial.se3_inverse(ends[n, 0]))
            inertia[a] = to_body.T @ inertia[b] @ to_body
        else:
            # a copy of the world, which the loop holds still
            mass, size = m.mass.mean(), m.radius
            inertia[a] = np.diag([mass] * 3 + [mass * size * size] * 3)


def _flat_poses(poses: Floats, which: Ints | None = None) -> Floats:
    """Poses as rows of 12 numbers: rotation, translation; all of them, or those numbered `which`."""
    which = np.arange(len(poses)) if which is None else which
    out = np.empty((len(which), 12))
    for part in slices(len(which)):
        rows = poses[which[part]]
        out[part, :9], out[part, 9:] = rows[:, :3, :3].reshape(-1, 9), rows[:, :3, 3]
    return out


def pose_matrices(flat: Floats) -> Floats:
    """4 x 4 poses from rows of 12 numbers."""
    out = np.zeros((len(flat), 4, 4))
    out[:, :3, :3] = flat[:, :9].reshape(-1, 3, 3)
    out[:, :3, 3] = flat[:, 9:]
    out[:, 3, 3] = 1.0
    return out


def _inertias(m: Mechanism, group: Ints, pose: Floats, count: int) -> Floats:
    """Spatial inertia of groups in their own frames."""
    out = np.zeros((count, 6, 6))
    for part in slices(len(group)):
        has = part.start + np.flatnonzero(group[part] >= 0)
        mass, turn = m.mass[has, None, None], pose[has, :3, :3]
        c = np.einsum("nij,nj->ni", turn, m.com[has]) + pose[has, :3, 3]
        hat = np.zeros((len(c), 3, 3))
        hat[:, 0, 1], hat[:, 0, 2], hat[:, 1, 2] = -c[:, 2], c[:, 1], -c[:, 0]
        hat -= hat.transpose(0, 2, 1)
        each = np.zeros((len(c), 6, 6))
        each[:, :3, :3] = mass * np.eye(3)
        each[:, :3, 3:] = -mass * hat
        each[:, 3:, :3] = mass * hat
        each[:, 3:, 3:] = turn @ m.inertia[has] @ turn.transpose(0, 2, 1) - mass * (hat @ hat)
        np.add.at(out, group[has], each)
    return out


def leaf_records(data: Floats, tree: Assembly) -> Floats:
    """Records of the leaves of a tree, which come first, (leaves, METRIC[1]); a view of all records."""
    return data[: tree.leaves * col.METRIC[1]].reshape(tree.leaves, -1)


def _fill_leaves(m: Mechanism, tree: Assembly, inertia: Floats, owners: Ints, records: Floats) -> None:
    """Put the inverse inertia of every share of a group into the records of leaves."""
    # Test for an inverse in units of each group's own radius of gyration.
    mass, turn = inertia[:, 0, 0], np.trace(inertia[:, 3:, 3:], axis1=1, axis2=2)
    unit = np.sqrt(np.where(mass > 0, turn / np.where(mass > 0, mass, 1.0), 1.0))
    unit = np.where(unit > 0, unit, 1.0)
    body = tree.body[: tree.leaves]
    kernels.invert_inertias(inertia, body, tree.shares, unit, np.zeros((6, 6)), records)
    # One over the trace of the scaled inverse is at most the least eigenvalue; that is computed where it may be small.
    shifts, turns = (sum(records[:, 7 * i] for i in part) for part in (range(3), range(3, 6)))
    trace = (shifts + unit[body] ** 2 * turns) / tree.shares[body]
    doubtful = np.unique(body[~(1e-12 * mass[body] * trace < 1)])
    scale = np.concatenate([np.ones((len(doubtful), 3)), 1 / unit[doubtful, None] * np.ones(3)], axis=1)
    least = np.linalg.eigvalsh(inertia[doubtful] * scale[:, :, None] * scale[:, None, :])[:, 0]
    bad = doubtful[~(least > 1e-12 * mass[doubtful])]
    if len(bad):
        body = m.links.body[owners[bad[0]]]
        raise MechanismError(
            f"body '{m.body_names[body]}' has no inertia in some direction (a point mass, or none at all): "
            "QuasistaticSimulation needs mass and all three moments of inertia; give it more, or fix it to its parent"
        )


def _nodes(tree: Assembly, groups: Ints, counts: Sequence[int] | Ints) -> tuple[Ints, int]:
    """Table of nodes (see `arrays.py`), and the length of all records.

    Args:
        tree, groups: as in `Model`.
        counts: handles of every cluster, ends of loops included.
    """
    out = np.empty((len(tree), col.NODE_COLUMNS), dtype=np.int64)
    for column, values in enumerate((tree.kind, tree.left, tree.right, tree.parent, tree.body, tree.handles)):
        out[:, column] = values  # KIND to HANDLES
    out[:, col.WIDE] = -1
    return out, kernels.lay_out(groups, np.asarray(counts, dtype=np.int64), out)


def spring_arrays(m: Mechanism) -> tuple[Floats, Floats]:
    """Per dof: stiffness, and for hinges and slides the torque `stiffness * rest` at q = 0 (zero for balls)."""
    ball = m.dof_kind == BALL
    return m.stiffness.copy(), np.where(ball, 0.0, m.stiffness * m.rest[m.dof_coordinate])
