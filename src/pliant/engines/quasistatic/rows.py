"""`pack_rows`: loops, couplings and tendons of a mechanism, for the accelerations of all its joints."""

from __future__ import annotations

import numpy as np

from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._rows import Rows
from pliant.engines.quasistatic.arrays import Floats, Ints
from pliant.engines.quasistatic.packing import Model
from pliant.mechanism import Mechanism
from pliant.mechanism.elimination_kernels import Matrix
from pliant.mechanism.joints import BALL
from pliant.mechanism.links import LINK_FIXED

__all__ = ["pack_rows"]


def pack_rows(m: Mechanism, md: Model, resist: Floats, tendon_resist: Floats, scale: float) -> Rows | None:
    """Arrays of the rows of a mechanism; None if it has none.

    Args:
        m, md: the mechanism, and its constant arrays.
        resist: per dof, resistance to acceleration.
        tendon_resist: the same per tendon: springs and dampers that act implicitly.
        scale: from accelerations to displacements; loops and couplings close their gaps in one such step.
    """
    if not m.topology.loops and not len(m.couplings) and not len(m.tendons):
        return None
    plan = m.elimination
    n, count, hard, first = len(m.links), len(plan.scale), plan.hard, 6 * m.topology.loops
    fronts, motion = plan.allocate()
    fronts.kept[:] = -1  # neither kept nor left out: rows of fronts are not set yet
    give, stiffness, offset = np.zeros((3, count))
    soft = np.zeros(count, dtype=np.int64)
    acts = tendon_resist > 0
    soft[hard:] = acts
    give[hard:][acts] = plan.scale[hard:][acts] ** 2 / tendon_resist[acts]
    stiffness[hard:] = m.tendon_stiffness / plan.scale[hard:] ** 2
    offset[first:] = plan.scale[first:] * np.concatenate([m.coupling_offset, m.tendon_rest])
    position, blocks = np.zeros((n, 3)), np.zeros((m.nv, 3))
    fixed = md.cut[:, 0] < 0  # copies that are fixed to the world
    position[m.links.loop_copy[fixed]] = md.cut_ends[::2][fixed, 9:]
    blocks[np.arange(m.nv), np.arange(m.nv) - m.links.dof[plan.owner]] = resist
    length = np.full(m.nq, 2.0)  # a quaternion changes by half the angle
    straight = m.dof_kind != BALL
    length[m.dof_coordinate[straight]] = 1 / m.dof_unit[straight]
    group, owner = _link_groups(m, md)
    return Rows(
        tree=plan.tree,
        fronts=fronts,
        matrix=Matrix(
            position=position,
            screw=np.zeros((m.nv, 6)),
            column=np.zeros((m.nv, 6)),
            row=np.zeros((m.nv, 6)),
            tangent=np.zeros((n, 6, 6)),
            stiffness=blocks,
            give=give,
        ),
        motion=motion,
        group=group,
        owner=owner,
        loops=md.cut,
        ends=md.cut_ends,
        unit=m.dof_unit,
        length=length,
        coordinate=m.dof_coordinate,
        offset=offset,
        stiffness=stiffness,
        soft=soft,
        hard=hard,
        rate=1 / scale,
        chosen=np.zeros(m.nq + hard + 1),
        remainder=np.zeros(1),
        wanted=np.zeros(count),
        multipliers=np.zeros(count),
        change=np.zeros((3, count)),
        force=np.zeros((2, m.nv)),
        frames=np.zeros((3, 12)),
        gap=np.eye(4),
        vector=np.zeros(6),
    )


def _link_groups(m: Mechanism, md: Model) -> tuple[Ints, Ints]:
    """Group of every link, -1 if fixed to the world, and per group its last link."""
    moving = np.flatnonzero(m.links.kind != LINK_FIXED)
    count = md.groups[:, col.COUNT]
    group = np.full(len(m.links), -1, dtype=np.int64)
    group[moving] = np.repeat(np.arange(len(count)), count)
    for k in np.flatnonzero(m.links.kind == LINK_FIXED).tolist():
        if m.links.parent[k] >= 0:
            group[k] = group[m.links.parent[k]]
    return group, moving[md.groups[:, col.FIRST] + count - 1]
