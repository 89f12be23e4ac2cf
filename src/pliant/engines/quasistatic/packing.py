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
from pliant.engines.quasistatic.arrays import Floats, Indices, Ints
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
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, Links

__all__ = ["Model", "inverse_inertias", "pack", "pose_matrices", "spring_arrays"]

_TWIG = 64  # leaves of a cluster whose inner records are computed when they are needed


@dataclass(eq=False)
class Model:
    """Constant arrays of a mechanism (g groups, n nodes).

    Attributes:
        tree: the assembly tree over groups.
        groups, primitives, nodes: integers, see the columns in `arrays.py`.
        offsets: pose of a primitive's frame at zero in the frame before it, (primitives, 12).
        inertia: of every group in its frame, (g, INERTIA_COLUMNS).
        closure: length of a closure.
        kept, page, inside: lengths of all records that are always there, of those inside the largest twig, and of those
            inside all twigs.
        extent: per group, the largest distance of its bodies' origins and centres of mass from its frame, m.
        group: per body, its group, -1 the world.
        local: per body, its pose in the frame of its group without the last row, (bodies, 3, 4).
        adaptive: whether the tree closes all rows of the mechanism; else it has none of its loops.
        loop_handles: clusters with ends of loops; None without loops in the tree.
        loops: per loop of the tree, the leaves of the copy and of the body (-1 the world), (loops, 2).
        ends: poses of the frames of copy and body that coincide, in their groups' frames, (2 loops, 12).
        cut, cut_ends: the same for all loops of the mechanism, with groups in place of leaves.
    """

    tree: Assembly
    groups: Indices
    primitives: Indices
    nodes: Indices
    offsets: Floats
    inertia: Floats
    closure: int
    kept: int
    page: int
    inside: int
    extent: Floats
    group: Indices
    local: Floats
    adaptive: bool
    loop_handles: LoopHandles | None
    loops: Ints
    ends: Floats
    cut: Ints
    cut_ends: Floats

    @property
    def twig_nodes(self) -> int:
        """Nodes of a twig at most."""
        return 2 * _TWIG


def pack(m: Mechanism) -> Model:
    """Arrays of a mechanism.

    Raises:
        InputError: it has a tendon on a ball joint, a joint with more than six freedoms, or nothing that moves.
        MechanismError: a body that moves has no inertia in some direction.
    """
    _check_supported(m)
    links = m.make_links()
    frames, local = links.joint_frames()
    group_of, fixed, base, firsts, owners = _group_links(links, local)
    moving = np.flatnonzero(links.kind != LINK_FIXED)
    primitives = np.empty((len(moving), 3), dtype=np.int32)
    for column, values in enumerate((links.kind, links.dof, links.coordinate)):
        primitives[:, column] = values[moving]
    groups = _groups(m, links, group_of, moving, firsts, owners)
    if len(fixed):  # joint frames of fixed links are not those of their groups
        slot = np.full(len(links), -1)
        slot[fixed] = np.arange(len(fixed))
        above = links.parent
        on_fixed = moving[(above[moving] >= 0) & (links.kind[above[moving]] == LINK_FIXED)]
        local[on_fixed] = base[slot[above[on_fixed]]] @ local[on_fixed]
    offsets = _flat_poses(local, moving)
    del local
    placed = frames  # link frames in their groups' frames take the place of joint frames in them
    for part in slices(len(placed)):
        placed[part] = spatial.se3_inverse(placed[part])
    placed[fixed] = base @ placed[fixed]

    group, seen = group_of[links.body_link], placed[links.body_link, :3]
    pairs = np.stack([links.loop_copy, links.loop_body], axis=1)
    cut, cut_ends = group_of[pairs].astype(np.int64), placed[pairs]
    ended = links.body[owners]
    del links, placed, frames, base, group_of, moving, firsts, owners, fixed  # before more memory is needed
    loops, ends = _loops(cut, cut_ends)
    inertia, extent = _inertias(m, group, seen, len(groups))
    _share_inertia(m, inertia, loops, ends)
    np.maximum.at(extent, loops[:, 0], np.sqrt((ends[:, 0, :3, 3] ** 2).sum(axis=1)))
    tree, wide = assembly(groups[:, col.PARENT]), None
    adaptive, handles = not len(m.couplings) and not len(m.tendons), None
    if len(loops) and adaptive:
        joined = [(int(a), int(b)) for a, b in loops]
        closed, loop = close_loops(tree, joined)
        handles = cluster_handles(closed, loop, joined)
        adaptive = handles is not None
    freedoms = int(groups[:, col.DOFS].max())
    closure = col.SQ_AT + col.FREEDOM_STRIDE * freedoms + (col.GAIN_COLUMNS if freedoms > 1 else 0)
    if handles is None:
        nodes, sizes = _nodes(tree, groups, tree.handles, closure, 0 if len(loops) else _TWIG)
    else:
        tree = closed
        nodes, sizes = _nodes(tree, groups, [len(own) for own in handles], closure, 0)
        wide = loop_handles(tree, loop, joined, groups[:, col.PARENT], handles, nodes[:, col.ROWS].tolist())
        nodes[:, col.WIDE] = wide.index
    columns = {
        name: nodes[:, i] for i, name in enumerate(("kind", "left", "right", "parent", "body", "handles"))
    }
    tree = replace(tree, **columns)  # the same numbers once
    _check_inertias(m, tree, inertia, ended)
    return Model(
        tree=tree,
        groups=groups,
        primitives=primitives,
        nodes=nodes,
        offsets=offsets,
        inertia=inertia,
        closure=closure,
        kept=sizes[0],
        page=sizes[1],
        inside=sizes[2],
        extent=extent,
        group=group,
        local=seen,
        adaptive=adaptive,
        loop_handles=wide,
        loops=np.where(loops >= 0, tree.first_leaf[loops], -1),
        ends=_flat_poses(ends.reshape(-1, 4, 4)),
        cut=cut,
        cut_ends=_flat_poses(cut_ends.reshape(-1, 4, 4)),
    )


def _groups(
    m: Mechanism, links: Links, group_of: Indices, moving: Ints, firsts: Indices, owners: Indices
) -> Indices:
    """Table of groups, see the columns in `arrays.py`."""
    slot = np.full(len(links), -1, dtype=np.int32)
    slot[moving] = np.arange(len(moving))
    out = np.zeros((len(firsts), col.GROUP_COLUMNS), dtype=np.int32)
    carrier = links.parent[firsts]
    out[:, col.PARENT] = np.where(carrier >= 0, group_of[carrier], -1)
    out[:, col.FIRST] = slot[firsts]
    out[:, col.COUNT] = owners - firsts + 1
    out[:, col.DOF] = links.dof[firsts]
    ball = links.kind[owners] == LINK_BALL
    out[:, col.DOFS] = links.dof[owners] + np.where(ball, 3, 1) - out[:, col.DOF]
    if (out[:, col.DOFS] > 6).any():
        joint = links.joint[owners[np.argmax(out[:, col.DOFS])]]
        raise InputError(
            f"joint '{m.joint_names[joint]}' has more than six degrees of freedom: "
            "QuasistaticSimulation cannot tell them apart"
        )
    return out


def _check_supported(m: Mechanism) -> None:
    if m.nv == 0:
        raise InputError(f"nothing in '{m.name}' can move: all its joints are fixed")
    turning = np.flatnonzero(m.dof_kind[m.tendons.dof] == BALL)
    if len(turning):
        name = m.tendon_names[np.searchsorted(m.tendons.start, turning[0], side="right") - 1]
        raise InputError(
            f"tendon '{name}' acts on a ball joint: QuasistaticSimulation knows those of hinges and slides only"
        )


def _group_links(links: Links, local: Floats) -> tuple[Indices, Ints, Floats, Indices, Indices]:
    """Group of every link; fixed links, and their joint frames in their groups'; first and last link of every group."""
    ends = links.body >= 0
    ends[links.loop_copy] = True
    fixed = np.flatnonzero(links.kind == LINK_FIXED)
    group, slot = np.full((2, len(links)), -1, dtype=np.int32)
    slot[fixed] = np.arange(len(fixed))
    base = np.zeros((len(fixed), 4, 4))
    firsts, owners = np.empty((2, len(links)), dtype=np.int32)
    count = kernels.group_links(links.parent, links.kind, ends, local, group, slot, base, firsts, owners)
    return group.copy(), fixed, base, firsts[:count].copy(), owners[:count].copy()


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
            mass, centre, turning = _about_centre(inertia[b])
            to_copy = ends[n, 0] @ spatial.se3_inverse(ends[n, 1])
            turn = to_copy[:3, :3]
            inertia[a] = _at_origin(mass, turn @ centre + to_copy[:3, 3], turn @ turning @ turn.T)
        else:
            # a copy of the world, which the loop holds still
            mass, size = m.mass.mean(), m.radius
            inertia[a] = _at_origin(mass, np.zeros(3), np.diag([mass * size * size] * 3))


def _about_centre(inertia: Floats) -> tuple[float, Floats, Floats]:
    """Mass, centre of mass (the origin without mass) and moment of inertia about it, from a row of `inertia`."""
    mass = float(inertia[col.MASS])
    centre = inertia[col.MOMENT : col.TURNING] / mass if mass > 0 else np.zeros(3)
    turning = np.zeros((3, 3))
    turning[np.tril_indices(3)] = inertia[col.TURNING :]
    turning += np.tril(turning, -1).T
    return mass, centre, turning - mass * _point_inertia(centre)


def _at_origin(mass: float, centre: Floats, turning: Floats) -> Floats:
    """Row of `inertia` of a body from its mass, centre of mass and moment of inertia about it."""
    whole = turning + mass * _point_inertia(centre)
    return np.concatenate([[mass], mass * centre, whole[np.tril_indices(3)]])


def _point_inertia(point: Floats) -> Floats:
    """Moment of inertia of a unit mass at a point, (..., 3, 3)."""
    cross = spatial.hat(point)
    return -(cross @ cross)


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


def _inertias(m: Mechanism, group: Indices, pose: Floats, count: int) -> tuple[Floats, Floats]:
    """Inertia of groups in their own frames, (count, INERTIA_COLUMNS), and the largest distance of origins and centres.

    Args:
        m: the mechanism.
        group, pose: per body, its group (-1 the world), and its pose there.
        count: number of groups.
    """
    out, extent = np.zeros((count, col.INERTIA_COLUMNS)), np.zeros(count)
    rows, columns = np.tril_indices(3)
    for part in slices(len(group)):
        has = part.start + np.flatnonzero(group[part] >= 0)
        mass, turn, own = m.mass[has], pose[has, :, :3], group[has]
        c = np.einsum("nij,nj->ni", turn, m.com[has]) + pose[has, :, 3]
        each = np.empty((len(c), col.INERTIA_COLUMNS))
        each[:, col.MASS] = mass
        each[:, col.MOMENT : col.TURNING] = mass[:, None] * c
        about = turn @ m.inertia[has] @ turn.transpose(0, 2, 1) + mass[:, None, None] * _point_inertia(c)
        each[:, col.TURNING :] = about[:, rows, columns]
        np.add.at(out, own, each)
        far = np.sqrt(np.maximum((pose[has, :, 3] ** 2).sum(axis=1), (c**2).sum(axis=1)))
        np.maximum.at(extent, own, far)
    return out, extent


def inverse_inertias(inertia: Floats, which: Ints, shares: Indices) -> Floats:
    """Inverses of shares of the spatial inertias numbered `which`, (n, 6, 6); NaN where there is none."""
    out = np.empty((len(which), 36))
    kernels.invert_inertias(inertia, which, shares, np.zeros(36), np.zeros((6, 6)), out)
    return out.reshape(-1, 6, 6)


def _check_inertias(m: Mechanism, tree: Assembly, inertia: Floats, ended: Ints) -> None:
    """Refuse bodies without an inverse of their inertia; `ended` is the last body of every group."""
    for part in slices(len(inertia)):
        rows = np.arange(part.start, part.stop)
        mass = inertia[part, col.MASS]
        turn = inertia[part, [col.TURNING, col.TURNING + 2, col.TURNING + 5]].sum(axis=1)
        # Test for an inverse in units of each group's own radius of gyration.
        unit = np.sqrt(np.where(mass > 0, turn / np.where(mass > 0, mass, 1.0), 1.0))
        unit = np.where(unit > 0, unit, 1.0)
        inverse = inverse_inertias(inertia, rows, tree.shares)
        # One over the trace of the scaled inverse is at most the least eigenvalue; that is computed where it may be
        # small.
        diagonal = np.diagonal(inverse, axis1=1, axis2=2)
        trace = (diagonal[:, :3].sum(axis=1) + unit**2 * diagonal[:, 3:].sum(axis=1)) / tree.shares[part]
        doubtful = np.flatnonzero(~(1e-12 * mass * trace < 1))
        scale = np.concatenate([np.ones((len(doubtful), 3)), 1 / unit[doubtful, None] * np.ones(3)], axis=1)
        whole = _spatial_inertias(inertia[rows[doubtful]])
        least = np.linalg.eigvalsh(whole * scale[:, :, None] * scale[:, None, :])[:, 0]
        bad = doubtful[~(least > 1e-12 * mass[doubtful])]
        if len(bad):
            raise MechanismError(
                f"body '{m.body_names[ended[rows[bad[0]]]]}' has no inertia in some direction (a point mass, or none "
                "at all): QuasistaticSimulation needs mass and all three moments of inertia; give it more, or fix it "
                "to its parent"
            )


def _spatial_inertias(inertia: Floats) -> Floats:
    """Spatial inertias (n, 6, 6) from rows of `inertia`."""
    out = np.zeros((len(inertia), 6, 6))
    out[:, range(3), range(3)] = inertia[:, :1]
    x, y, z = inertia[:, col.MOMENT : col.TURNING].T
    out[:, 3, 1], out[:, 3, 2], out[:, 4, 2] = -z, y, -x
    out[:, 4, 0], out[:, 5, 0], out[:, 5, 1] = z, -y, x
    out[:, :3, 3:] = out[:, 3:, :3].transpose(0, 2, 1)
    rows, columns = np.tril_indices(3)
    out[:, 3 + rows, 3 + columns] = out[:, 3 + columns, 3 + rows] = inertia[:, col.TURNING :]
    return out


def _nodes(
    tree: Assembly, groups: Indices, counts: Sequence[int] | Indices, closure: int, twig: int
) -> tuple[Indices, tuple[int, int, int]]:
    """Table of nodes (see `arrays.py`), and lengths of records: `kept`, `page` and `inside` of `Model`.

    Args:
        tree, groups, closure: as in `Model`.
        counts: handles of every cluster, ends of loops included.
        twig: leaves of a twig at most.
    """
    out = np.empty((len(tree), col.NODE_COLUMNS), dtype=np.int32)
    for column, values in enumerate((tree.kind, tree.left, tree.right, tree.parent, tree.body, tree.handles)):
        out[:, column] = values  # KIND to HANDLES
    out[:, col.WIDE] = -1
    weight = np.empty(len(tree), dtype=np.int32)
    kept, page, inside = kernels.lay_out(
        groups, np.asarray(counts, dtype=np.int32), closure, twig, weight, out
    )
    if kept + inside > np.iinfo(np.int32).max:
        raise InputError(
            "too many joints for QuasistaticSimulation: their records have more than 2^31 numbers"
        )
    return out, (kept, page, inside)


def spring_arrays(m: Mechanism) -> tuple[Floats, Floats]:
    """Per dof: stiffness, and for hinges and slides the torque `stiffness * rest` at q = 0 (zero for balls)."""
    ball = m.dof_kind == BALL
    return m.stiffness.copy(), np.where(ball, 0.0, m.stiffness * m.rest[m.dof_coordinate])
