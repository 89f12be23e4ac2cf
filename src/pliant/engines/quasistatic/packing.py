"""A mechanism as the flat arrays that the kernels of the quasi-static engine walk over.

Bodies that fixed joints hold together are one *group*; what is fixed to the world is part of the world. A group's frame
lies at its inbound joint, with z along a hinge or slide, or the axes of a ball: there the joint's motion is a choice of
coordinates. A joint made of several primitives is one joint with up to six freedoms.

A loop is cut at a body, into the body and a copy (see `mechanism.links`); they share its inertia. The copy is a group
like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.quasistatic.assembly import LEAF, LOOP, ROOT, SUM, WELD, Assembly, assembly
from pliant.engines.quasistatic.ports import Ports, close, handles, ports
from pliant.errors import InputError, MechanismError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE, LINK_SLIDE

__all__ = ["Model", "model"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# columns of `primitives`: kind, dof, coordinate
PRIMITIVE_COLUMNS = 3
# columns of `groups`: parent, first primitive, number of primitives, first dof, number of dofs
PARENT, FIRST, COUNT, DOF, DOFS = 0, 1, 2, 3, 4
GROUP_COLUMNS = 5
# columns of `nodes`
KIND, LEFT, RIGHT, ABOVE, GROUP, HANDLES, START, ROWS, LEVELS, PORTS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
NODE_COLUMNS = 10
# a cluster's record by its handles: inverse inertia and bias of the top handle, then of the bottom one, both coupled,
# pose of the bottom handle in the top one; last the rows of the total acceleration
PHI, BIAS, PHI2, BIAS2, PHI12, ACROSS = 0, 36, 42, 78, 84, 120
METRIC = np.array([0, 42, 132])


@dataclass(eq=False)
class Model:
    """Constant arrays of a mechanism (g groups, n nodes, l leaves among them).

    Attributes:
        tree: the assembly tree over groups.
        groups, primitives, nodes: integers, see the columns above.
        offsets: pose of a primitive's frame in that of the one before (or in its parent's), (primitives, 12).
        inertia: spatial inertia of every group in its frame, (g, 6, 6).
        leaves: inverse inertia of every leaf, (l, 36).
        size: length of the record of all clusters.
        extent: per group, how far from its frame its bodies' origins and centres of mass are at most.
        group: per body, its group, -1 the world.
        local: per body, its pose in the frame of its group, (bodies, 4, 4).
        ports: of clusters with ends of loops, None without loops.
        loops: per loop, the leaves of the copy and of the body (-1 the world), (loops, 2).
        ends: where the two coincide in their groups' frames, (2 loops, 12).
    """

    tree: Assembly
    groups: Ints
    primitives: Ints
    nodes: Ints
    offsets: Floats
    inertia: Floats
    leaves: Floats
    size: int
    extent: Floats
    group: Ints
    local: Floats
    ports: Ports | None
    loops: Ints
    ends: Floats


def model(m: Mechanism) -> Model:
    """Flatten a mechanism; refuse what the engine does not know."""
    _refuse(m)
    frames, local = _frames(m)
    group_of, base, firsts, owners = _group_links(m, local)
    moving = np.flatnonzero(m.links.kind != LINK_FIXED)
    primitives = np.stack([m.links.kind, m.links.dof, m.links.coordinate], axis=1)[moving]
    slot = np.full(len(m.links), -1)
    slot[moving] = np.arange(len(moving))

    groups = np.zeros((len(firsts), GROUP_COLUMNS), dtype=np.int64)
    carrier = m.links.parent[firsts]
    groups[:, PARENT] = np.where(carrier >= 0, group_of[carrier], -1)
    groups[:, FIRST] = slot[firsts]
    groups[:, COUNT] = owners - firsts + 1
    groups[:, DOF] = m.links.dof[firsts]
    ball = m.links.kind[owners] == LINK_BALL
    groups[:, DOFS] = m.links.dof[owners] + np.where(ball, 3, 1) - groups[:, DOF]
    if (groups[:, DOFS] > 6).any():
        joint = m.links.joint[owners[np.argmax(groups[:, DOFS])]]
        raise InputError(
            f"joint '{m.joint_names[joint]}' has more than six degrees of freedom: "
            "QuasistaticSimulation cannot tell them apart"
        )
    above = m.links.parent[moving]
    inner = above >= 0
    offsets = local[moving]
    offsets[inner] = base[above[inner]] @ offsets[inner]

    link = m.links.body_link
    placed = base @ spatial.se3_inverse(frames)
    seen = placed[link]
    loops, ends = _loops(m, group_of, placed)
    inertia = _inertias(m, group_of[link], seen, len(groups))
    _share(m, inertia, loops, ends)
    centres = np.einsum("nij,nj->ni", seen[:, :3, :3], m.com) + seen[:, :3, 3]
    far = np.sqrt(np.maximum((seen[:, :3, 3] ** 2).sum(axis=1), (centres**2).sum(axis=1)))
    extent = np.zeros(len(groups))
    moves = group_of[link] >= 0
    np.maximum.at(extent, group_of[link][moves], far[moves])
    tree, found = assembly(groups[:, PARENT]), None
    if len(loops):
        np.maximum.at(extent, loops[:, 0], np.sqrt((ends[:, 0, :3, 3] ** 2).sum(axis=1)))
        pairs = [(int(a), int(b)) for a, b in loops]
        tree, loop = close(tree, pairs)
        each = handles(tree, loop, pairs)
        nodes, size = _nodes(tree, groups, [len(own) for own in each])
        found = ports(tree, loop, pairs, groups[:, PARENT], each, nodes[:, ROWS].tolist())
        nodes[:, PORTS] = found.index
    else:
        nodes, size = _nodes(tree, groups, tree.handles.tolist())
    return Model(
        tree=tree,
        groups=groups,
        primitives=np.ascontiguousarray(primitives),
        nodes=nodes,
        offsets=_flat(offsets),
        inertia=inertia,
        leaves=_leaves(m, tree, inertia, owners),
        size=size,
        extent=extent,
        group=group_of[link],
        local=seen,
        ports=found,
        loops=np.where(loops >= 0, tree.first_leaf[loops], -1),
        ends=_flat(ends.reshape(-1, 4, 4)),
    )


def _refuse(m: Mechanism) -> None:
    if m.nv == 0:
        raise InputError(f"nothing in '{m.name}' can move: all its joints are fixed")
    for count, what, names in (
        (len(m.coupling_names), "couplings", m.coupling_names[:1]),
        (len(m.tendon_names), "tendons", m.tendon_names[:1]),
    ):
        if count:
            raise InputError(
                f"QuasistaticSimulation knows no {what}, '{m.name}' has some (the first is '{names[0]}'): "
                "use ConstrainedSimulation"
            )


def _frames(m: Mechanism) -> tuple[Floats, Floats]:
    """Joint frame of every link in the link's own, and in its parent's joint frame while coordinates are zero."""
    links = m.links
    frames = np.broadcast_to(np.eye(4), (len(links), 4, 4)).copy()
    frames[:, :3, 3] = links.anchor
    straight = np.flatnonzero((links.kind == LINK_HINGE) | (links.kind == LINK_SLIDE))
    screw = links.screw[links.dof[straight]]
    axis = np.where((links.kind[straight] == LINK_HINGE)[:, None], screw[:, 3:], screw[:, :3])
    side = np.cross(np.eye(3)[np.argmin(np.abs(axis), axis=1)], axis)
    side /= np.sqrt((side**2).sum(axis=1))[:, None]
    frames[straight, :3, :3] = np.stack([side, np.cross(axis, side), axis], axis=2)
    balls = np.flatnonzero(links.kind == LINK_BALL)
    for d in range(3):
        frames[balls, :3, d] = links.screw[links.dof[balls] + d, 3:]
    local = links.offset @ frames
    inner = links.parent >= 0
    local[inner] = spatial.se3_inverse(frames)[links.parent[inner]] @ local[inner]
    return frames, local


def _group_links(m: Mechanism, local: Floats) -> tuple[Ints, Floats, Ints, Ints]:
    """Per link its group and its joint frame in that group's; per group its first and its last link."""
    links = m.links
    parent, kind, ends = links.parent.tolist(), links.kind.tolist(), links.body >= 0
    ends[links.loop_copy] = True
    group_of = np.full(len(links), -1, dtype=np.int64)
    base = np.broadcast_to(np.eye(4), (len(links), 4, 4)).copy()
    firsts: list[int] = []
    owners: list[int] = []
    first = -1
    for k in range(len(links)):
        if kind[k] == LINK_FIXED:
            p = parent[k]
            base[k] = base[p] @ local[k] if p >= 0 else local[k]
            group_of[k] = group_of[p] if p >= 0 else -1
            continue
        if first < 0:
            first = k
        if ends[k]:
            group_of[k] = len(firsts)
            firsts.append(first)
            owners.append(k)
            first = -1
    return group_of, base, np.array(firsts, dtype=np.int64), np.array(owners, dtype=np.int64)


def _loops(m: Mechanism, group: Ints, placed: Floats) -> tuple[Ints, Floats]:
    """Groups of the copy and the body of every loop, and where both meet in their frames; the world comes second."""
    links = m.links
    pairs = np.stack([links.loop_copy, links.loop_body], axis=1)
    loops, ends = group[pairs], placed[pairs]
    turned = loops[:, 0] < 0
    loops[turned], ends[turned] = loops[turned, ::-1], ends[turned, ::-1]
    keep = loops[:, 0] != loops[:, 1]  # else fixed joints close it
    return loops[keep], ends[keep]


def _share(m: Mechanism, inertia: Floats, loops: Ints, ends: Floats) -> None:
    """Give copies their share of the inertia of their bodies; how much does not matter, both move as one."""
    pairs = [(n, int(a), int(b)) for n, (a, b) in enumerate(loops) if not inertia[a].any()]
    for b in {b for _, _, b in pairs if b >= 0}:
        inertia[b] /= 1 + sum(b == other for _, _, other in pairs)
    for n, a, b in pairs:
        if b >= 0:
            sight = spatial.adjoint(ends[n, 1] @ spatial.se3_inverse(ends[n, 0]))
            inertia[a] = sight.T @ inertia[b] @ sight
        else:
            # a copy of the ground, which is held anyway
            mass, size = m.mass.mean(), m.radius
            inertia[a] = np.diag([mass] * 3 + [mass * size * size] * 3)


def _flat(poses: Floats) -> Floats:
    """Poses as rows of 12 numbers: rotation, shift."""
    return np.concatenate([poses[:, :3, :3].reshape(-1, 9), poses[:, :3, 3]], axis=1)


def square(flat: Floats) -> Floats:
    """4 x 4 poses from rows of 12 numbers."""
    out = np.zeros((len(flat), 4, 4))
    out[:, :3, :3] = flat[:, :9].reshape(-1, 3, 3)
    out[:, :3, 3] = flat[:, 9:]
    out[:, 3, 3] = 1.0
    return out


def _inertias(m: Mechanism, group: Ints, pose: Floats, count: int) -> Floats:
    """Spatial inertia of groups about their own frames, linear part first."""
    out = np.zeros((count, 6, 6))
    has = group >= 0
    group, pose, mass = group[has], pose[has], m.mass[has, None, None]
    turn = pose[:, :3, :3]
    c = np.einsum("nij,nj->ni", turn, m.com[has]) + pose[:, :3, 3]
    hat = np.zeros((len(c), 3, 3))
    hat[:, 0, 1], hat[:, 0, 2], hat[:, 1, 2] = -c[:, 2], c[:, 1], -c[:, 0]
    hat -= hat.transpose(0, 2, 1)
    each = np.zeros((len(c), 6, 6))
    each[:, :3, :3] = mass * np.eye(3)
    each[:, :3, 3:] = -mass * hat
    each[:, 3:, :3] = mass * hat
    each[:, 3:, 3:] = turn @ m.inertia[has] @ turn.transpose(0, 2, 1) - mass * (hat @ hat)
    np.add.at(out, group, each)
    return out


def _leaves(m: Mechanism, tree: Assembly, inertia: Floats, owners: Ints) -> Floats:
    """Inverse inertia of every share of a group."""
    # A group without inertia of its own in some direction has no inverse: judge it in its own units of length.
    mass, turn = inertia[:, 0, 0], np.trace(inertia[:, 3:, 3:], axis1=1, axis2=2)
    unit = np.sqrt(np.where(mass > 0, turn / np.where(mass > 0, mass, 1.0), 1.0))
    unit = np.where(unit > 0, unit, 1.0)
    scale = np.concatenate([np.ones((len(unit), 3)), 1 / unit[:, None] * np.ones(3)], axis=1)
    scaled = inertia * scale[:, :, None] * scale[:, None, :]
    least = np.linalg.eigvalsh(scaled)[:, 0]
    bad = np.flatnonzero(~(least > 1e-12 * mass))
    if len(bad):
        body = m.links.body[owners[bad[0]]]
        raise MechanismError(
            f"body '{m.body_names[body]}' has no inertia in some direction (a point mass, or none at all): "
            "QuasistaticSimulation needs mass and all three moments of inertia; give it more, or fix it to its parent"
        )
    inverse = np.linalg.inv(scaled)
    inverse = 0.5 * (inverse + inverse.transpose(0, 2, 1)) * scale[:, :, None] * scale[:, None, :]
    body = tree.body[: tree.leaves]
    return np.ascontiguousarray((inverse[body] * tree.shares[body, None, None]).reshape(-1, 36))


def _nodes(tree: Assembly, groups: Ints, counts: list[int]) -> tuple[Ints, int]:
    """Where every cluster's record starts, and how many rows its total acceleration has.

    Args:
        counts: handles of every cluster, ends of loops included.
    """
    n = len(tree)
    nodes = np.zeros((n, NODE_COLUMNS), dtype=np.int64)
    nodes[:, KIND], nodes[:, LEFT], nodes[:, RIGHT], nodes[:, ABOVE] = (
        tree.kind,
        tree.left,
        tree.right,
        tree.parent,
    )
    nodes[:, GROUP], nodes[:, HANDLES] = tree.body, tree.handles
    freedoms, stacked = groups[:, DOFS].tolist(), groups[:, COUNT].tolist()
    kind, left, right, body, handles = (
        column.tolist() for column in (tree.kind, tree.left, tree.right, tree.body, tree.handles)
    )
    start, rows, levels, size = [0] * n, [0] * n, [0] * n, 0
    for k in range(n):
        columns = 6 * counts[k] + 1
        if kind[k] != LEAF:
            own = freedoms[body[k]] if body[k] >= 0 else 0
            rows[k] = min(columns, own + rows[right[k]] + (rows[left[k]] if left[k] >= 0 else 0))
            # primitives one behind the other, at most: what a chain of bounds has to count
            upper = levels[left[k]] if left[k] >= 0 else 0
            lower = levels[right[k]] + (stacked[body[k]] if body[k] >= 0 else 0)
            side_by_side = kind[k] in (WELD, SUM, ROOT, LOOP) or handles[left[k]] == 1
            levels[k] = max(upper, lower) if side_by_side else upper + lower
        start[k] = size
        size += int(METRIC[handles[k]]) + (rows[k] * columns if counts[k] == handles[k] else 0)
    nodes[:, START], nodes[:, ROWS], nodes[:, LEVELS], nodes[:, PORTS] = start, rows, levels, -1
    return nodes, size


def spring_arrays(m: Mechanism) -> tuple[Floats, Floats]:
    """Stiffness and the pull `stiffness * rest` of hinges and slides, per dof; a ball's pull is found from its rest."""
    ball = m.dof_kind == BALL
    return m.stiffness.copy(), np.where(ball, 0.0, m.stiffness * m.rest[m.dof_coordinate])
