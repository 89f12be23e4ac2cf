"""`Solver`: accelerations of a mechanism at rest, within an error bound, and steps along them.

Two algorithms give the same accelerations. The assembly tree computes a few joints at a cost proportional to their
number; for many joints it costs an order of magnitude more than the articulated-body algorithm (ABA), which computes
all. So steps change to ABA when a refinement computes too many joints. To change back, the whole tree is assembled:
only if the last accelerations show that few joints matter, and if earlier steps have saved the time it takes, so that
all steps together never cost much more than ABA alone.

With loops, ABA is the elimination of `_rows`, and the first step computes all joints. Couplings, tendons and loops that
span too much for the tree leave it no other way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import numpy as np

from pliant.chunks import slices
from pliant.engines.quasistatic import _passes as passes
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._aba import step_aba
from pliant.engines.quasistatic._linalg import WIDTH
from pliant.engines.quasistatic._packing import carry_up
from pliant.engines.quasistatic._refinement import advance, count_needed
from pliant.engines.quasistatic.arrays import (
    Arrays,
    ArticulatedBodies,
    Clusters,
    Criterion,
    Floats,
    Front,
    Ints,
    Joints,
    Leaves,
    Rigid,
    Scratch,
    Springs,
    Wide,
)
from pliant.engines.quasistatic.loop_ranks import LoopRanks, lever_unit
from pliant.engines.quasistatic.measures import reach
from pliant.engines.quasistatic.packing import Model, inverse_inertias, pack, pose_matrices, spring_arrays
from pliant.engines.quasistatic.rows import pack_rows
from pliant.errors import MechanismError
from pliant.mechanism import Mechanism
from pliant.statics.load_kernels import LINK, LOAD_SIZE
from pliant.statics.loads import Load, load_rows

__all__ = ["Solver", "Tree"]

_MOST = 0.08  # fraction of all nodes beyond which a refinement is given up for ABA
_NODE = 8.0  # cost of a node of the tree, in joints of ABA
_WIDE = 1e-4  # what a node with loops costs more, in such nodes, over the cube of the rows of its matrices
_SAVED = 0.1  # fraction of the cost of steps with ABA that may go into assembling the tree
_UNBROKEN = 1_000_000  # numbers of the elimination computed in a call, which Ctrl-C cannot end
_TWIGS = 16  # largest twigs that there is room for at first, at least
_OPEN = 100  # steps after which twigs are closed when there is no room for more
_CHUNK = 16  # nodes computed between two readings of the clock
_LOST = 1e-14  # round-off of a vanishing inverse inertia, relative to those of free bodies


class Tree:
    """Assembly tree of a mechanism: its arrays, and whole passes over them.

    Attributes:
        m, model: the mechanism, and its constant arrays.
        arrays, wide: arrays of kernels; `wide` is None without loops.
        order: scratch, a list of nodes.
        marks: per node, 1 if its cluster is out of date.
    """

    def __init__(self, m: Mechanism, gravity: Floats, resist: Floats, weights: Floats, scale: float = 1.0):
        """Args:
        gravity: m/s^2.
        resist: per dof, resistance to acceleration: armature, and springs and dampers that act implicitly.
        weights: per dof, its weight in the total acceleration.
        scale: from accelerations to displacements; loops close their gaps in one such step.
        """
        self.m, self.model = m, pack(m)
        md = self.model
        n, self.leaves = len(md.tree), md.tree.leaves
        stiffness, pull = spring_arrays(m)
        self.arrays = Arrays(
            joints=Joints(
                groups=md.groups,
                primitives=md.primitives,
                offsets=md.offsets,
                resist=np.array(resist, dtype=np.float64),
                weights=np.array(weights, dtype=np.float64),
                q=m.reference.copy(),
                poses=np.zeros((len(md.groups), 12)),
                screws=np.zeros((m.nv, 6)),
                torque=np.zeros(m.nv),
                qdd=np.zeros(m.nv),
                taken=np.zeros(1, dtype=np.int64),
            ),
            springs=Springs(stiffness=stiffness, pull=pull, rest=m.rest.copy(), motor=np.zeros(m.nv)),
            clusters=Clusters(
                nodes=md.nodes,
                world=np.concatenate([-gravity, np.zeros(3)]),
                data=np.zeros(md.kept + min(max(_TWIGS * md.page, md.kept // 2), md.inside)),
                closure=md.closure,
                bounds=True,
            ),
            leaves=Leaves(
                inertia=md.inertia,
                shares=md.tree.shares,
                wrenches=np.zeros((self.leaves, 6)),
                extent=np.concatenate([md.extent[md.tree.body[: self.leaves]], np.zeros(n - self.leaves)]),
                mobility=np.zeros(0),
                kept=md.kept,
                free=np.full(1, md.kept),
                twig=np.zeros(md.twig_nodes, dtype=np.int32),
            ),
            scratch=Scratch(
                matrices=np.zeros((col.MATRICES, 6, 6)),
                rows=np.zeros((col.ROW_SPACE, WIDTH)),
                reflector=np.zeros(col.ROW_SPACE),
                poses=np.zeros((3, 12)),
            ),
        )
        self._loop_ranks: LoopRanks | None = None  # made when it is asked for
        self.wide = None if md.loop_handles is None else _wide(md, scale)
        self.order = np.zeros(n, dtype=np.int32)
        self.marks = np.zeros(n, dtype=np.int8)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays but those of loops."""
        return sum(part.nbytes for group in self.arrays for part in group if isinstance(part, np.ndarray))

    def count_places(self, bodies: Ints | None) -> None:
        """Let errors in places count, of some bodies or of all."""
        md = self.model
        extent, mobility = reach(self.m, md, bodies)
        body, leaves = md.tree.body[: self.leaves], self.arrays.leaves
        leaves.extent[: self.leaves] = extent[body]
        carried = np.zeros(len(md.tree))
        carried[: self.leaves] = mobility[body] * md.tree.shares[body]
        carry_up(md.nodes, self.leaves, carried)
        self.arrays = self.arrays._replace(leaves=leaves._replace(mobility=carried))

    def up(self) -> None:
        """All clusters, from the coordinates, the motors and the wrenches on leaves."""
        if self.wide is not None:
            self.update_joints(0, len(self.model.groups))
            self.rank_loops()
        self._grow(self.model.kept + self.model.inside)
        self.check(passes.up(self.arrays, self.wide, self.order))

    def down(self) -> Floats:
        """All accelerations, (nv,)."""
        self._grow(self.model.kept + self.model.inside)
        passes.down(self.arrays, self.wide, self.marks)
        return self.arrays.joints.qdd

    def update_joints(self, begin: int, end: int) -> None:
        """Poses, screws and torques of the joints of groups `begin` to `end`, from coordinates and motors."""
        passes.update_joints(begin, end, self.arrays.joints, self.arrays.springs, self.arrays.scratch.poses)

    def make_room(self) -> None:
        """Make room for the records of more twigs."""
        md = self.model
        self._grow(md.kept + min(2 * (len(self.arrays.clusters.data) - md.kept), md.inside))

    def close_twigs(self) -> None:
        """Give up the records inside all twigs; marked clusters stay marked."""
        passes.close_twigs(self.arrays.clusters, self.arrays.leaves)

    def _grow(self, length: int) -> None:
        """Make room for records of this length, in place."""
        if length > len(self.arrays.clusters.data):
            self.arrays.clusters.data.resize(length, refcheck=False)

    def rank_loops(self) -> None:
        """Ranks of all loops at the poses of the joints; nodes that close a loop whose rank has changed are marked."""
        wide = self.wide
        if wide is None:
            return
        ranks = self._loop_ranks = self._loop_ranks or LoopRanks(self.model)
        found = ranks.ranks(self.arrays.joints.poses, self.arrays.joints.screws, self.group_poses())
        for k in ranks.nodes[found != wide.rank].tolist():
            self.mark(k)
        wide.rank[:] = found
        wide.limits[:, col.PIVOT] = -1.0
        wide.stale[0] = 0

    def mark(self, k: int) -> None:
        """Mark the cluster of node k and those that contain it as out of date."""
        while k >= 0 and not self.marks[k]:
            self.marks[k] = 1
            k = int(self.model.tree.parent[k])

    def check(self, k: int) -> None:
        """Raise the error of a failed node k; none if k is negative."""
        if k >= 0:
            self.refuse_joint(self.model.nodes[k, col.GROUP], "move it, or use a ball joint")

    def refuse_joint(self, group: int, remedy: str) -> None:
        """Raise the error for a group's joint whose axes are dependent."""
        joint = self.m.dof_joint[self.model.groups[group, col.DOF]]
        raise MechanismError(
            f"joint '{self.m.joint_names[joint]}' stands where two of its axes coincide: "
            f"its accelerations are not defined there; {remedy}"
        )

    def group_poses(self) -> Floats:
        """World poses of all groups, (groups, 4, 4)."""
        flat = np.zeros((len(self.model.groups), 12))
        passes.world_poses(self.arrays.joints, flat)
        return pose_matrices(flat)

    def body_poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4)."""
        md = self.model
        flat = np.zeros((len(md.groups), 12))
        passes.world_poses(self.arrays.joints, flat)
        out = np.empty((len(md.group), 4, 4))
        for part in slices(len(out)):
            out[part, :3], out[part, 3] = md.local[part], (0.0, 0.0, 0.0, 1.0)
            moves = part.start + np.flatnonzero(md.group[part] >= 0)
            out[moves] = pose_matrices(flat[md.group[moves]]) @ out[moves]
        return out

    def body_pose(self, body: int) -> Floats:
        """World pose of one body, in time proportional to the depth of the assembly tree."""
        group = self.model.group[body]
        local = np.concatenate([self.model.local[body], [[0.0, 0.0, 0.0, 1.0]]])
        if group < 0:
            return local
        flat = np.zeros(12)
        passes.leaf_pose(int(self.model.tree.first_leaf[group]), self.arrays, flat)
        return pose_matrices(flat[None])[0] @ local


def _wide(md: Model, scale: float) -> Wide:
    """Arrays of clusters with ends of loops."""
    p, unit = md.loop_handles, lever_unit(md)
    assert p is not None
    n, loops = 6 * max(p.largest, 2), len(md.loops)
    joined = md.tree.body[np.maximum(md.loops, 0)].ravel().astype(np.int64)
    inverse = inverse_inertias(md.inertia, joined, md.tree.shares)
    free = np.diagonal(inverse, axis1=1, axis2=2) @ ([unit**2] * 3 + [1.0] * 3)
    limits = np.full((loops, 3), -1.0)
    floor = _LOST * np.where(md.loops >= 0, free.reshape(-1, 2), 0.0).sum(axis=1)
    limits[:, col.ROUND_OFF] = limits[:, col.REMAINDER] = floor
    return Wide(
        table=p.table,
        source=p.source,
        handle_leaves=p.leaves,
        ring=p.ring,
        data=np.zeros(p.record),
        forces=np.zeros(p.forces),
        leaves=np.ascontiguousarray(md.loops, dtype=np.int64).reshape(-1),
        ends=np.ascontiguousarray(md.ends),
        rate=1 / scale,
        unit=unit,
        rank=np.zeros(loops, dtype=np.int64),
        limits=limits,
        stale=np.zeros(1, dtype=np.int64),
        phi=np.zeros((n, n)),
        bias=np.zeros(n),
        relative=np.zeros((6, n)),
        force=np.zeros((6, n + 1)),
        result=np.zeros((n, n + 1)),
        rows=np.zeros((n + 8, n + 1)),
        position=np.zeros(n, dtype=np.int64),
        transforms=np.zeros((2, 8, 6)),
        frames=np.zeros((5, 12)),
        gap=np.eye(4),
        vector=np.zeros(6),
        given=np.zeros(6),
        order=np.zeros(6, dtype=np.int64),
    )


def _rigid(clusters: Clusters, wide: Wide) -> Rigid:
    """Records for clusters as rigid bodies beside those of free joints."""
    own = {name: np.zeros_like(getattr(wide, name)) for name in ("data", "forces", "stale")}
    own["limits"] = wide.limits.copy()
    data = np.zeros_like(clusters.data)
    return Rigid(clusters._replace(data=data, bounds=False), wide._replace(**own))


def _articulated_bodies(md: Model) -> ArticulatedBodies:
    """Arrays of the articulated-body algorithm."""
    groups, several = len(md.groups), md.groups[:, col.DOFS] > 1
    return ArticulatedBodies(
        leaf=md.tree.first_leaf,
        poses=np.zeros((groups, 12)),
        wrenches=np.zeros((groups, 6)),
        body=np.zeros((groups, col.BODY_COLUMNS)),
        slot=np.where(several, np.cumsum(several) - 1, -1).astype(np.int32),
        gain=np.zeros((int(several.sum()), col.GAIN_COLUMNS)),
        spare=np.zeros((6, 6)),
    )


class Solver:
    """Adaptive quasi-statics of one mechanism, by indices.

    Attributes:
        tree: the assembly tree and its arrays.
        error: bound on the error of the last accelerations, in the units of the measure.
        current: whether the clusters belong to the coordinates (wrenches apart).
        whole: whether the last accelerations are those of all joints, by ABA.
        most: nodes that a refinement may compute before ABA takes over.
        small: whether steps always compute all joints, by ABA.
        rows: loops, couplings and tendons for ABA; None without any.
        front: what a refinement has computed.
        rebuilt, fallbacks: number of times the whole tree was assembled, and of steps that computed all joints.
    """

    def __init__(
        self,
        m: Mechanism,
        gravity: Floats,
        resist: Floats,
        weights: Floats,
        measure: int,
        tolerance: float,
        scale: float = 1.0,
        tendon_resist: Floats | None = None,
        rigid: bool = True,
        bodies: Ints | None = None,
    ):
        """Args as of `Tree`, and:

        measure: one of `measures.MEASURES`.
        tolerance: in units of the measure.
        tendon_resist: resistance of tendons to acceleration: springs and dampers that act implicitly.
        rigid: whether joints that are not computed are rigid; else their accelerations are set to zero.
        bodies: whose places count in the measure WORLD; None for all.
        """
        self.m = m
        self._criterion = Criterion(measure, float(tolerance), float(m.radius), rigid)
        if measure == col.WORLD:
            weights = 1 / m.dof_unit
        self.tree = Tree(m, gravity, resist, weights, scale)
        if measure == col.WORLD:
            self.tree.count_places(bodies)
        md, tree = self.tree.model, self.tree.model.tree
        n, groups = len(tree), len(md.groups)
        self.front = Front(
            keys=np.zeros(n),
            items=np.zeros(n, dtype=np.int32),
            totals=np.zeros(n),
            computed=np.zeros(n, dtype=np.int32),
            marks=self.tree.marks,
            stack=self.tree.order,
            top=np.zeros(n, dtype=np.int32),
            bottom=np.zeros(n, dtype=np.int32),
            free=np.zeros(m.nv) if rigid else self.accelerations,
            bounds=np.zeros(n if measure == col.WORLD else 0),
            bounded=np.zeros(n if measure == col.WORLD else 0, dtype=np.int32),
            numbers=np.zeros(col.NUMBERS),
        )
        self._rigid: Rigid | None = None
        if self.tree.wide is not None:
            self._rigid = _rigid(self.tree.arrays.clusters, self.tree.wide)
        self._bodies: ArticulatedBodies | None = None  # made when they are needed
        self._closing = np.zeros(groups, dtype=np.int32)  # per group, the node that closes its joint
        closes = tree.leaves + np.flatnonzero(tree.body[tree.leaves :] >= 0)
        self._closing[tree.body[closes]] = closes
        self._loads = np.zeros((0, LOAD_SIZE))
        tendons = np.zeros(len(m.tendons)) if tendon_resist is None else tendon_resist
        self.rows = pack_rows(m, md, self.tree.arrays.joints.resist, tendons, scale)
        wide = np.zeros(0) if self.tree.wide is None else self.tree.wide.table[:, col.ALL_HANDLES]
        dearer = 1.0 + _WIDE * float(((6.0 * wide) ** 3).sum()) / (n - tree.leaves)
        self._node = _NODE * dearer
        self.most = int(_MOST * (n - tree.leaves) / dearer)
        # loops keep no energies; ABA beats one path of the tree
        self._adaptive = md.adaptive and not (len(md.loops) and measure == col.ENERGY_NORM)
        self.small = not self._adaptive or self.most <= int(tree.depth.max())
        # steps of ABA in a call
        self._unbroken = sys.maxsize if self.rows is None else 1 + _UNBROKEN // self.rows.fronts.numbers.size
        self.error, self.current, self.whole = 0.0, False, False
        self._refined = False
        # time saved, in steps of ABA; at first that of two assemblies, or, with loops, of one
        self._saved = 4 * _NODE if self.rows is None else 2 * self._node
        self.rebuilt = self.fallbacks = 0
        self._closed = 0  # steps taken when all twigs were closed last
        self._ranked = self._has_ranks = (
            False  # whether the ranks of loops hold here, and whether there are any
        )

    # --- coordinates and loads

    @property
    def q(self) -> Floats:
        """Coordinates; after writing to them call `moved`."""
        return self.tree.arrays.joints.q

    @property
    def state(self) -> Floats:
        """State at the start of the next step, a copy.

        Coordinates and the choice of rows; and, where joints are computed adaptively, the last accelerations, the
        choice of algorithm and the ranks of loops.
        """
        parts = [self.q] if self.rows is None else [self.q, self.rows.chosen]
        if not self.small:
            known = self.accelerations if self.whole else np.zeros_like(self.accelerations)
            first = float(self.front.numbers[col.FIRST_TEST])
            parts += [known, [self._saved, float(self.whole), float(self._has_ranks), first]]
            if self.tree.wide is not None:
                parts += [self.tree.wide.rank, self.tree.wide.limits.ravel()]
        return np.concatenate(parts)

    @state.setter
    def state(self, value: Floats) -> None:
        wide, ranked = self.tree.wide, False
        chosen = np.zeros(0) if self.rows is None else self.rows.chosen
        self.q[:], chosen[:], rest = np.split(value, np.cumsum([len(self.q), len(chosen)]))
        if not self.small:
            self.accelerations[:], choice, rest = np.split(rest, np.cumsum([len(self.accelerations), 4]))
            self._saved, self.whole, ranked = float(choice[0]), bool(choice[1]), bool(choice[2])
            self.front.numbers[col.FIRST_TEST] = choice[3]
            if wide is not None:
                count = len(wide.rank)
                wide.rank[:], wide.limits[:] = rest[:count], rest[count:].reshape(wide.limits.shape)
        self.moved()
        self._ranked = self._has_ranks = ranked

    def set_tolerance(self, tolerance: float) -> None:
        """Change the tolerance, in units of the measure; steps may assemble the tree for it at once."""
        self._criterion = self._criterion._replace(tolerance=float(tolerance))
        self.front.numbers[col.FIRST_TEST] = 0.0  # as many joints as the tolerance before asked for
        self._saved = max(self._saved, 2 * self._node)
        self._refined = False

    def moved(self) -> None:
        """Forget all clusters, after a change of coordinates from outside."""
        self.current = self._refined = self._ranked = False

    def set_loads(self, rows: Floats) -> None:
        """Set loads on leaves, as rows in their groups' frames; leaves that were loaded and no longer are get zero."""
        before = np.unique(self._loads[:, LINK]).astype(np.int64)
        gone = np.setdiff1d(before, rows[:, LINK].astype(np.int64))
        gone = gone[self.tree.arrays.leaves.wrenches[gone].any(axis=1)]
        idle = np.zeros((len(gone), LOAD_SIZE))
        idle[:, LINK] = gone
        both = np.concatenate([rows, idle])
        self._loads = np.ascontiguousarray(both[np.argsort(both[:, LINK], kind="stable")])
        self._refined = False

    def rows_of(self, loads: Mapping[int, Load]) -> Floats:
        """Rows of loads by number of body, for `set_loads`; bodies fixed to the world take none."""
        md = self.tree.model
        leaf = np.append(md.tree.first_leaf, -1)[md.group]
        return load_rows({b: load for b, load in loads.items() if leaf[b] >= 0}, leaf, md.local)

    @property
    def motors(self) -> Floats:
        """Motor torques, (nv,)."""
        return self.tree.arrays.springs.motor

    def set_motor(self, dofs: Ints, torque: Floats) -> None:
        """Set motor torques of dofs."""
        self.motors[dofs] = torque
        first = self.tree.model.groups[:, col.DOF]
        order = np.argsort(first, kind="stable")
        for g in np.unique(order[np.searchsorted(first[order], dofs, side="right") - 1]).tolist():
            self.tree.update_joints(g, g + 1)
            self.tree.mark(int(self._closing[g]))
        self._refined = False

    # --- poses

    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4)."""
        if not self.current:
            self.tree.update_joints(0, len(self.tree.model.groups))
        return self.tree.body_poses()

    def pose(self, body: int) -> Floats:
        """World pose of one body, in time proportional to the depth of the assembly tree."""
        if self.current:
            return self.tree.body_pose(body)
        return self.poses()[body]

    # --- accelerations

    @property
    def taken(self) -> int:
        """Whole steps since the start."""
        return int(self.tree.arrays.joints.taken[0])

    @property
    def accelerations(self) -> Floats:
        """Accelerations last computed, (nv,), zero for joints that were not."""
        return self.tree.arrays.joints.qdd

    @property
    def active_groups(self) -> Ints:
        """Groups whose joints were computed last, in the order they were."""
        if self.whole:
            return np.arange(len(self.tree.model.groups))
        nodes = self.front.computed[: int(self.front.numbers[col.COMPUTED])]
        groups = self.tree.model.nodes[nodes, col.GROUP]
        return groups[groups >= 0]

    @property
    def active_joints(self) -> Ints:
        """Joints of the mechanism that were computed last, in the order they were."""
        return self.m.dof_joint[self.tree.model.groups[self.active_groups, col.DOF]]

    def begin(self) -> None:
        """Update the clusters, and start a refinement with no joint computed."""
        t, keep = self.tree, self.current
        if not self.current:
            passes.update_all(self._loads, t.arrays, t.marks)
            self._closed = self.taken
            if not self._ranked:
                t.rank_loops()
            self._ranked, self._has_ranks, self.current = False, True, True
            self.rebuilt += 1
        if self.whole:
            self.accelerations[:] = 0.0
            self.whole = False
        t.check(self._advance(1, begun=False, most=0, keep=keep)[2])
        self._refined = True

    def refine(self, budget: float | None = None) -> float:
        """Compute accelerations without moving, for `budget` seconds, or to the tolerance; returns the error bound."""
        if not self._adaptive:
            self.step_aba()
            return self.error
        until = time.perf_counter() + (budget or 0.0)
        if not self._refined:
            self.begin()
        numbers = self.front.numbers
        if budget is None:
            self._advance(1, begun=True, most=len(self.tree.model.tree))
        else:
            while True:
                more = int(numbers[col.COMPUTED])
                more += max(_CHUNK, more // 4)  # rigid clusters are computed anew each time
                self._advance(1, begun=True, most=more, tolerance=0.0)
                if numbers[col.DONE] or time.perf_counter() >= until:
                    break
        self.error = float(numbers[col.ERROR])
        return self.error

    def _advance(
        self,
        n: int,
        *,
        begun: bool,
        most: int,
        tolerance: float | None = None,
        scale: float | None = None,
        keep: bool = True,
    ) -> tuple[int, int, int]:
        """`_refinement.advance`; without a scale nothing moves. Ranks of loops are computed again where asked for."""
        t, done, spent = self.tree, 0, 0
        criterion = self._criterion if tolerance is None else self._criterion._replace(tolerance=tolerance)
        while True:
            steps, count, failed = advance(
                n - done,
                begun,
                scale is not None,
                keep,
                self._loads,
                t.arrays,
                t.wide,
                self._rigid,
                self.front,
                criterion,
                scale or 0.0,
                most,
            )
            done, spent = done + steps, spent + count
            begun = False
            if failed == col.STALE:
                t.rank_loops()
            elif failed not in (col.FULL, col.FULL_AHEAD):
                return done, spent, failed
            elif self.taken - self._closed > _OPEN:  # a refinement starts again
                t.close_twigs()
                self._closed = self.taken
            else:
                t.make_room()
                begun = failed == col.FULL_AHEAD

    # --- steps

    def step_aba(self, n: int = 1, scale: float = 0.0) -> int:
        """All accelerations by ABA, and steps `q += scale qdd`, n times; returns the number of steps done."""
        bodies = self._bodies = self._bodies or _articulated_bodies(self.tree.model)
        done, failed = step_aba(n, self._loads, self.tree.arrays, bodies, self.rows, scale)
        if failed >= 0:
            self.tree.refuse_joint(failed, "move it, give it armature, or use a ball joint")
        self.whole, self.error, self._refined = True, 0.0, False
        self.front.numbers[col.COMPUTED] = 0.0
        if scale:
            self.current = False
        if failed == col.INFINITE:
            self._forget()
        return done

    def step(self, n: int, scale: float) -> int:
        """`q += scale qdd`, n times; returns the number of steps done: fewer where accelerations are not finite."""
        t, done = self.tree, 0
        everything = float(len(t.model.groups))
        while done < n:
            if not self.small and (self.current or self._worth_it()):
                if not self.current:
                    self.begin()
                elif self.whole:
                    self.accelerations[:] = 0.0
                self.whole = False
                count, spent, failed = self._advance(
                    n - done, begun=self._refined, most=self.most, scale=scale
                )
                done += count
                self._refined = False
                self._saved = min(self._saved + count - self._node * spent / everything, 10 * self._node)
                self.error = float(self.front.numbers[col.ERROR])
                if failed == col.INFINITE:
                    self._forget()
                    return done
                t.check(failed)
                if done == n:
                    break
            part = min(n - done, self._unbroken) if self.small else 1
            went = self.step_aba(part, scale)
            done += went
            self.fallbacks += went
            if went < part:
                return done
            if not self.small:
                self._saved = min(self._saved + _SAVED, 10 * self._node)
        return done

    def _forget(self) -> None:
        """Drop accelerations that are not finite."""
        self.accelerations[:] = 0.0
        self.whole = False
        self.moved()

    def _worth_it(self) -> bool:
        """Whether to assemble the tree again: enough time is saved for it, and few joints matter."""
        if not self.whole:
            # with loops the first step computes all joints, which costs less than the tree
            return self.rows is None or self._has_ranks
        if self._saved < 2 * self._node:
            return False
        if 2 * count_needed(self.tree.arrays.joints, self._criterion) > self.most:
            return False
        self._saved -= 2 * self._node
        return True
