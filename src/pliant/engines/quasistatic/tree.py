"""`Tree`: a mechanism's assembly tree with its arrays, ready for passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.quasistatic import _kernels as kernels
from pliant.engines.quasistatic import _metric as metric
from pliant.engines.quasistatic import _passes as passes
from pliant.engines.quasistatic._vectors import WIDTH
from pliant.engines.quasistatic.packing import Model, model, spring_arrays, square
from pliant.engines.quasistatic.redundancy import Redundancy
from pliant.errors import MechanismError
from pliant.mechanism import Mechanism

__all__ = ["Tree"]

Floats = NDArray[np.float64]
_ROUND_OFF = 1e-14  # what merging leaves of an inverse inertia that vanishes, of those of free bodies


class Tree:
    """Arrays of the divide-and-conquer algorithm for one mechanism, and the passes over them as methods.

    Attributes:
        model: what stays.
        arrays, state, wide: what the kernels take; `wide` is None without loops.
        order: room for a list of nodes.
        redundancy: what is asked for the ranks of loops, None without loops.
        marks: per node, whether its cluster is to be brought up to date.
    """

    def __init__(self, m: Mechanism, gravity: Floats, resist: Floats, weights: Floats, scale: float = 1.0):
        """Args:
        gravity: m/s^2.
        resist: per dof, what resists its acceleration: armature, and springs and dampers that act implicitly.
        weights: per dof, its weight in the total acceleration.
        scale: of accelerations, to displacements; loops close the gaps they have in one such step.
        """
        self.m = m
        self.model: Model = model(m)
        md = self.model
        n, leaves = len(md.tree), md.tree.leaves
        stiffness, pull = spring_arrays(m)
        self.arrays = passes.Arrays(
            md.nodes,
            md.groups,
            md.primitives,
            md.offsets,
            md.leaves,
            stiffness,
            pull,
            m.rest.copy(),
            np.array(resist, dtype=np.float64),
            np.array(weights, dtype=np.float64),
            np.concatenate([-gravity, np.zeros(3)]),
        )
        self.state = passes.State(
            m.reference.copy(),
            np.zeros(m.nv),
            np.zeros((len(md.groups), 12)),
            np.zeros((m.nv, 6)),
            np.zeros(m.nv),
            np.zeros(md.size),
            np.zeros((n - leaves, kernels.JOINT_COLUMNS)),
            np.concatenate([md.extent[md.tree.body[:leaves]], np.zeros(n - leaves)]),
            np.zeros((leaves, 6)),
            np.zeros((n, 12)),
            np.zeros(m.nv),
            np.zeros((kernels.MATRICES, 6, 6)),
            np.zeros((metric.ROW_SPACE, WIDTH)),
            np.zeros(metric.ROW_SPACE),
            np.zeros((3, 12)),
        )
        self.redundancy = Redundancy(md) if md.ports is not None else None
        self.wide = _wide(md, self.redundancy, scale)
        self.leaves = leaves
        self.order = np.zeros(n, dtype=np.int64)
        self.marks = np.zeros(n, dtype=np.int8)

    def up(self) -> None:
        """All clusters from the coordinates, the motors and the wrenches on leaves."""
        if self.redundancy is not None:
            passes.places(self.arrays, self.state)
            self.rank_loops()
        self.check(passes.up(self.arrays, self.state, self.wide, self.order))

    def rank_loops(self) -> None:
        """Ranks of all loops at the poses of the joints; nodes that close a loop of another rank are marked."""
        wide, redundancy = self.wide, self.redundancy
        if wide is None or redundancy is None:
            return
        found = redundancy.ranks(self.state.poses, self.state.screws, self.group_poses())
        above = self.model.tree.parent
        for k in redundancy.nodes[found != wide.rank].tolist():
            while k >= 0 and not self.marks[k]:
                self.marks[k] = 1
                k = int(above[k])
        wide.rank[:] = found
        wide.limits[:, 1] = -1.0
        wide.stale[0] = 0

    def down(self) -> Floats:
        """All accelerations, (nv,)."""
        passes.down(self.arrays, self.state, self.wide)
        return self.state.qdd

    def check(self, k: int) -> None:
        """Raise what the failure of node k means."""
        if k >= 0:
            g = self.arrays.nodes[k, 4]
            dof = self.arrays.groups[g, 3]
            raise MechanismError(
                f"joint '{self.m.joint_names[self.m.dof_joint[dof]]}' stands where two of its axes coincide: "
                "its accelerations are not defined there; move it, or use a ball joint"
            )

    def totals(self) -> Floats:
        """Total acceleration of every cluster above the leaves, after `down`."""
        out = np.zeros(len(self.model.tree) - self.leaves)
        passes.totals(self.arrays, self.state, self.wide, out)
        return out

    def group_poses(self) -> Floats:
        """World poses of all groups, (groups, 4, 4)."""
        flat = np.zeros((len(self.model.groups), 12))
        passes.all_poses(self.arrays, self.state, flat)
        return square(flat)

    def body_poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4)."""
        group = self.model.group
        poses = self.group_poses()
        out = self.model.local.copy()
        out[group >= 0] = poses[group[group >= 0]] @ out[group >= 0]
        return out

    def body_pose(self, body: int) -> Floats:
        """World pose of one body, in time proportional to the depth of the assembly tree."""
        group = self.model.group[body]
        if group < 0:
            return self.model.local[body].copy()
        flat = np.zeros(12)
        passes.pose(int(self.model.tree.first_leaf[group]), self.arrays, self.state, flat)
        return square(flat[None])[0] @ self.model.local[body]


def _wide(md: Model, redundancy: Redundancy | None, scale: float) -> passes.Wide | None:
    p = md.ports
    if p is None or redundancy is None:
        return None
    n, unit = 6 * p.largest, redundancy.unit
    free = md.leaves.reshape(-1, 6, 6).diagonal(axis1=1, axis2=2) * ([unit**2] * 3 + [1.0] * 3)
    floor = _ROUND_OFF * np.where(md.loops >= 0, free.sum(axis=1)[md.loops], 0.0).sum(axis=1)
    return passes.Wide(
        p.table,
        p.source,
        np.zeros(p.record),
        np.zeros(p.forces),
        np.ascontiguousarray(md.loops).reshape(-1),
        np.ascontiguousarray(md.ends),
        np.array([1 / scale]),
        np.array([unit]),
        np.zeros(len(md.loops), dtype=np.int64),
        np.stack([floor, np.full(len(md.loops), -1.0), floor], axis=1),
        np.zeros(1, dtype=np.int64),
        np.zeros((n, n)),
        np.zeros(n),
        np.zeros((6, n)),
        np.zeros((6, n + 1)),
        np.zeros((n, n + 1)),
        np.zeros((n + 8, n + 1)),
        np.zeros(n, dtype=np.int64),
        np.zeros((2, 8, 6)),
        np.zeros((5, 12)),
        np.eye(4),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6, dtype=np.int64),
    )
