"""`Solver`: motion of a reduced linkage of rigid clusters, and reviews of which joints move.

A step is that of the constrained engine, on the joints that move and the rigid bodies between them. Every few steps,
and when loads have changed, a review brings the clusters of the assembly tree up to date and chooses which joints move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pliant.engines.adaptive import _effective, _geometry, _linkage, _review, _twigs
from pliant.engines.adaptive import arrays as col
from pliant.engines.adaptive.arrays import (
    Clusters,
    Components,
    Flags,
    Floats,
    Front,
    Indices,
    Ints,
    Joints,
    Limits,
    Scratch,
    Walk,
)
from pliant.engines.constrained import arrays as linkage
from pliant.engines.constrained.linkage import Linkage, new_info
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.quasistatic.packing import Model, pack, pose_matrices, spring_arrays
from pliant.mechanism import Builder, Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics.load_kernels import ACTS, FORCE, LINK, LOAD_SIZE, TORQUE
from pliant.statics.loads import Load, load_rows

__all__ = ["Solver", "load_kernels"]

_AT_ONCE = (
    1024  # nodes that a review may visit beyond those that are open; another one follows if it wants more
)
_TWIG = 64  # leaves of a cluster whose inner records are computed when they are needed
_ROOM = 2**24  # numbers, 128 MiB: without more records there are no twigs, and open twigs may have as many
_MOST_REVIEWS = 64  # reviews in a row
_CLOSE = 1 / 16  # defect that a joint may add when it is closed, over that from which clusters are opened
_NEVER = 2**53
_PUSHED = 7  # numbers of a push in a state: leaf, force and torque
_CLOSED = 1 / 2  # defect of a whole cluster up to which it is closed, likewise


@dataclass(eq=False)
class Reduced:
    """The reduced linkage of the nodes that are open.

    Attributes:
        walk, visited: visited nodes of the assembly tree.
        components, bodies: rigid bodies behind open joints.
        index: of bodies, by group.
        linkage: its dynamics; all numbers there are those of moving joints only.
        dofs, coordinates: of the mechanism, that those of the linkage stand for.
    """

    walk: Walk
    visited: int
    components: Components
    bodies: int
    linkage: Linkage
    dofs: Ints
    coordinates: Ints

    @property
    def groups(self) -> Indices:
        """Groups whose joints move, parents first."""
        return self.components.group[: self.bodies]

    @property
    def links(self) -> Indices:
        """Links of rigid bodies in the linkage."""
        return self.components.link[: self.bodies]


class Solver:
    """Adaptive dynamics of a tree, by indices.

    Attributes:
        m, model: the mechanism, and its arrays in the quasi-static engine.
        opened, kept: per node of the assembly tree, 1 if it is open, and if it stays so.
        reduced: the linkage that moves.
        pushes: rows of forces of contact on leaves in the last step, world axes, which reviews take for loads.
        due: whether the next step begins with a review.
        limits: of reviews.
        worst: largest defect left by the last review, kg m²/s⁴.
        reviews, switches: since the start.
    """

    def __init__(
        self,
        m: Mechanism,
        timestep: float,
        gravity: Floats,
        *,
        open_above: float,
        slow: float,
        most: int,
        interval: int,
        precision: float,
        keep: Ints,
    ):
        """Args:
        gravity: m/s².
        open_above: defect above which a cluster is opened.
        slow: kinetic energy that may be lost when one is closed, J.
        most: joints that may move.
        interval: steps from one review to the next.
        precision: change of coordinates that ends the iterations of a step, rad or radii.
        keep: numbers of joints that always move.
        """
        self.m, self.timestep, self.gravity = m, timestep, gravity
        self.model = md = _shortened(pack(m))
        tree, n, h = md.tree, len(md.nodes), timestep
        finite = np.isfinite(m.upper) | np.isfinite(m.lower)
        self._sprung = (m.stiffness > 0) | (m.damping > 0) | (m.armature > 0) | finite
        stiffness, pull = spring_arrays(m)
        closing = np.zeros(len(md.groups), dtype=np.int32)
        closes = np.flatnonzero(md.nodes[:, qs.GROUP] >= 0)
        closes = closes[closes >= tree.leaves]
        closing[md.nodes[closes, qs.GROUP]] = closes
        self.joints = Joints(
            groups=md.groups,
            primitives=md.primitives,
            offsets=md.offsets,
            resist=m.armature + 0.5 * h * m.damping + 0.25 * h * h * m.stiffness,
            stiffness=stiffness,
            pull=pull,
            motor=np.zeros(m.nv),
            rest=m.rest.copy(),
            q=m.reference.copy(),
            poses=np.zeros((len(md.groups), 12)),
            screws=np.zeros((m.nv, 6)),
            torque=np.zeros(m.nv),
            closing=closing,
        )
        weight = np.empty(n, dtype=np.int32)
        kept, inside = _twigs.lay_out(md.nodes, tree.leaves, 0, weight)
        if kept > _ROOM:
            kept, inside = _twigs.lay_out(md.nodes, tree.leaves, _TWIG, weight)
        self.clusters = Clusters(
            nodes=md.nodes,
            start=md.nodes[:, qs.START],
            data=np.zeros(kept + inside + 2 * col.ONE_HANDLE),  # takes memory where it is written to
            free=np.full(2, kept, dtype=np.int64),
            defect=np.zeros(n),
            inertia=md.inertia,
            shares=tree.shares,
            wrenches=np.zeros((tree.leaves, 6)),
            marks=np.zeros(n, dtype=np.int8),
        )
        self._tidy_above = kept + _ROOM
        self._scratch = Scratch(
            matrices=np.zeros((8, 6, 6)),
            forms=np.zeros((6, 7, 7)),
            system=np.zeros((12, 19)),
            vectors=np.zeros((12, 6)),
            poses=np.zeros((6, 12)),
            order=np.zeros(_TWIG, dtype=np.int32),
        )
        self._stack = np.zeros(n + 2, dtype=np.int32)
        self._slots: list[Indices] = []  # that no walk uses
        self._changes: list[tuple[Reduced, Indices, Indices]] = []  # of the last review, and linkages before
        self._index = np.full(len(md.groups), -1, dtype=np.int64)
        self._world = np.concatenate([-gravity, np.zeros(3)])
        self._none = np.zeros(m.nv)
        self.rates, self._middle, self._earlier, self._drag = (np.zeros(m.nv) for _ in range(4))
        self._info = new_info(precision)
        self.limits = Limits(0.0, 0.0, 0.0, 0.0, most)
        self.set_thresholds(open_above, slow)
        self.interval = interval
        self.kept = np.zeros(n, dtype=np.int8)
        self._open_above_nodes(closing[self._groups_of(keep)], self.kept)
        self.whole = bool(self.kept[closes].all())
        self.opened = self.kept.copy()
        self._lower, self._upper = m.lower, m.upper
        self._widen()
        self._leaf_of_body = np.append(tree.first_leaf, -1)[md.group]
        self._loads: dict[int, Load] = {}
        self._own_rows = self.pushes = self._rows = load_rows({}, self._leaf_of_body)
        self._loaded = np.zeros(0, dtype=np.int64)
        self._stale, self._reviewed = False, 0
        self.worst, self.reviews, self.switches = 0.0, 0, 0
        _review.start_all(self.joints, self.clusters, self._world, self._none, self._scratch)
        self._effective = self._effective_inertia()
        self.reduced = self._build()
        self._gather(self.reduced)

    def set_thresholds(self, open_above: float, slow: float) -> None:
        """Change the defect above which a cluster is opened, and the energy that may be lost when one is closed, J."""
        self.limits = Limits(open_above, _CLOSE * open_above, _CLOSED * open_above, slow, self.limits.most)
        self.due = True

    def _widen(self) -> None:
        """Move limits of hinges and slides that the present coordinates are beyond there: a push would be a blow."""
        x, straight = self.joints.q[self.m.dof_coordinate], self.m.dof_kind != BALL
        if (straight & (x < self._lower)).any():
            self._lower = np.where(straight, np.minimum(self._lower, x), self._lower)
        if (straight & (x > self._upper)).any():
            self._upper = np.where(straight, np.maximum(self._upper, x), self._upper)

    def start_at(self, q: Floats) -> None:
        """Begin at rest at these coordinates; joints beyond their limits there may stay."""
        self._lower, self._upper = self.m.lower, self.m.upper
        self.joints.q[:] = q
        self._widen()
        self.set_motion(q, np.zeros(self.m.nv))

    # --- dofs

    def _effective_inertia(self) -> Floats:
        """Inertia of each dof at the present pose with all joints before it held and all others free, (nv,)."""
        count, out = len(self.model.groups), np.empty(self.m.nv)
        waiting, slot = np.empty((count, 6, 6)), np.full(count, -1, dtype=np.int32)
        spare, a = np.empty(count, dtype=np.int32), self._scratch.matrices[:4]
        armature = np.ascontiguousarray(self.m.armature)
        _effective.effective_inertia(self.joints, self.model.inertia, armature, waiting, slot, spare, a, out)
        return out

    def _dof_table(self, dofs: Ints) -> Floats:
        """Rows of the constrained engine's table of dofs, as given."""
        m, out = self.m, np.zeros((len(dofs), linkage.DOF_COLUMNS))
        out[:, linkage.STIFFNESS], out[:, linkage.DAMPING] = m.stiffness[dofs], m.damping[dofs]
        out[:, linkage.PULL] = self.joints.pull[dofs] + self.joints.motor[dofs]
        out[:, linkage.ARMATURE], out[:, linkage.INERTIA] = m.armature[dofs], self._effective[dofs]
        out[:, linkage.LOWER], out[:, linkage.UPPER] = self._lower[dofs], self._upper[dofs]
        out[:, linkage.UNIT] = 1 / m.dof_unit[dofs]
        return out

    # --- open nodes

    def _groups_of(self, joints: Ints) -> Ints:
        """Groups whose joints include some of these joints of the mechanism."""
        of_group = self.m.dof_joint[self.model.groups[:, qs.DOF]]
        order = np.argsort(of_group, kind="stable")
        moving = joints[np.isin(joints, of_group)]
        return order[np.searchsorted(of_group[order], moving)]

    def _open_above_nodes(self, nodes: Indices | Ints, flags: Flags) -> None:
        """Flag these nodes and all that contain them."""
        above = self.model.nodes[:, qs.ABOVE]
        for k in np.asarray(nodes).tolist():
            while k >= 0 and not flags[k]:
                flags[k] = 1
                k = int(above[k])

    @property
    def active_joints(self) -> Ints:
        """Joints of the mechanism that move."""
        return self.m.dof_joint[self.model.groups[self.reduced.groups, qs.DOF]]

    def _build(self) -> Reduced:
        """Linkage of the nodes that are open, at rest at zero coordinates."""
        md, joints, spare = self.model, self.joints, self._scratch.poses
        count = int(np.count_nonzero(self.opened))
        room = 2 * count + 1
        walk = Walk(
            node=np.empty(room, dtype=np.int32),
            component=np.empty(room, dtype=np.int32),
            pose=np.empty((room, 12)),
            slot=self._slots.pop() if self._slots else np.full(len(self.opened), -1, dtype=np.int32),
        )
        components = Components(
            group=np.empty(count + 1, dtype=np.int32),
            parent=np.empty(count + 1, dtype=np.int32),
            pose=np.empty((count + 1, 12)),
            link=np.empty(count + 1, dtype=np.int32),
            inertia=np.empty((count + 1, 10)),
        )
        visited, bodies = _linkage.visit(
            self.opened, joints, self.clusters, self._none, walk, components, self._stack, self._scratch
        )
        rows = md.groups[components.group[:bodies]]
        links = np.zeros((int(rows[:, qs.COUNT].sum()), linkage.LINK_COLUMNS), dtype=np.int64)
        constants = np.empty((len(links), linkage.CONSTANTS))
        nv = int(rows[:, qs.DOFS].sum())
        dofs, coordinates = np.empty(nv, dtype=np.int64), np.empty(2 * nv, dtype=np.int64)
        nq = _linkage.fill_links(bodies, joints, components, links, constants, dofs, coordinates, spare)[2]
        coordinates = coordinates[:nq].copy()
        table = self._dof_table(dofs)
        acting = self._sprung[dofs] | (joints.motor[dofs] != 0.0)
        made = Linkage(
            links,
            constants,
            table,
            self.m.rest[coordinates],
            np.zeros(nv, dtype=np.int64),
            acting,
            self.gravity,
            self._info,
        )
        return Reduced(walk, visited, components, bodies, made, dofs, coordinates)

    def _release(self, reduced: Reduced) -> None:
        """Give back the slots of a linkage that is no longer used."""
        _linkage.forget(reduced.visited, reduced.walk)
        self._slots.append(reduced.walk.slot)

    def _gather(self, reduced: Reduced) -> None:
        """Coordinates and velocities of a linkage from those of the mechanism."""
        state, dofs = reduced.linkage.state, reduced.dofs
        state.q[:] = self.joints.q[reduced.coordinates]
        state.v[:], state.u[:] = self.rates[dofs], self._middle[dofs]
        state.earlier[:] = self._earlier[dofs]

    def scatter(self) -> None:
        """Coordinates and velocities of the mechanism from those of the linkage."""
        state, dofs = self.reduced.linkage.state, self.reduced.dofs
        self.joints.q[self.reduced.coordinates] = state.q
        self.rates[dofs], self._middle[dofs], self._earlier[dofs] = state.v, state.u, state.earlier

    # --- loads

    def set_wrenches(self, loads: Mapping[int, Load]) -> None:
        """Set loads by number of body, in place of all before; bodies fixed to the world take none."""
        leaf = self._leaf_of_body
        self._loads = {b: load for b, load in loads.items() if leaf[b] >= 0}
        self._own_rows = load_rows(self._loads, leaf, self.model.local)
        self._sort_rows()
        self.due = True
        self._load_linkage(self.reduced)

    def set_pushes(self, leaves: Ints, wrenches: Floats) -> None:
        """Set wrenches of contact on leaves, at the origins of their groups, world axes; those before are gone."""
        acts = wrenches.any(axis=1)
        rows = np.zeros((np.count_nonzero(acts), LOAD_SIZE))
        rows[:, FORCE : TORQUE + 3], rows[:, ACTS], rows[:, LINK] = wrenches[acts], 1.0, leaves[acts]
        self.pushes = rows
        self._sort_rows()

    def _sort_rows(self) -> None:
        """Rows for reviews, by leaf; leaves without any take no wrench."""
        rows = np.concatenate([self._own_rows, self.pushes])
        self._rows = np.ascontiguousarray(rows[np.argsort(rows[:, LINK], kind="stable")])
        loaded = np.unique(rows[:, LINK]).astype(np.int64)
        for k in np.setdiff1d(self._loaded, loaded).tolist():
            if self.clusters.wrenches[k].any():
                self.clusters.wrenches[k] = 0.0
                _review.mark(k, self.opened, self.clusters)
        self._loaded = loaded

    def _load_linkage(self, reduced: Reduced) -> None:
        """Rows of loads on the rigid bodies of a linkage."""
        count = len(self._loads)
        if not count:
            reduced.linkage.loads = load_rows({}, self._leaf_of_body)
            return
        bodies = np.fromiter(self._loads, dtype=np.int64, count=count)
        owner, flat = np.empty(count, dtype=np.int64), np.empty((count, 12))
        _linkage.place_all(
            self._leaf_of_body[bodies],
            self.joints,
            self.clusters,
            reduced.walk,
            owner,
            flat,
            self._scratch.poses,
        )
        local = np.zeros((count, 4, 4))
        local[:, :3], local[:, 3, 3] = self.model.local[bodies], 1.0
        frames = pose_matrices(flat) @ local
        moves = np.flatnonzero(owner >= 0)
        link = np.zeros(count, dtype=np.int64)
        link[moves] = reduced.components.link[owner[moves]]
        centre = linkage.C_COM
        frames[moves, :3, 3] -= reduced.linkage.model.constants[link[moves], centre : centre + 3]
        given = list(self._loads.values())
        reduced.linkage.loads = load_rows({i: given[i] for i in moves.tolist()}, link, frames)

    @property
    def motors(self) -> Floats:
        """Motor torques, (nv,)."""
        return self.joints.motor

    def set_motors(self, torque: Floats) -> None:
        """Set motor torques of all dofs."""
        changed = np.flatnonzero(torque != self.joints.motor)
        self.joints.motor[changed] = torque[changed]
        for g in np.unique(self._groups_of(np.unique(self.m.dof_joint[changed]))).tolist():
            _geometry.set_torque(g, self.joints)
            _review.mark(int(self.joints.closing[g]), self.opened, self.clusters)
        reduced = self.reduced
        reduced.linkage.set_pull(
            self.joints.pull[reduced.dofs] + torque[reduced.dofs],
            self._sprung[reduced.dofs] | (torque[reduced.dofs] != 0.0),
        )
        self.due = True

    # --- contact

    def groups_of(self, bodies: Ints) -> tuple[Ints, Ints, Ints, Floats]:
        """Groups of bodies in the linkage, one leaf of each.

        Returns:
            per body, the number of its leaf among these, -1 for one fixed to the world; sorted leaves; the link that
            holds each, -1 for the world, and the pose of its group there, (groups, 12).
        """
        reduced = self.reduced
        leaves, slot = np.unique(self._leaf_of_body[bodies].astype(np.int64), return_inverse=True)
        fixed = int(len(leaves) > 0 and leaves[0] < 0)
        leaves = leaves[fixed:]
        owner, flat = np.empty(len(leaves), dtype=np.int64), np.empty((len(leaves), 12))
        _linkage.place_all(leaves, self.joints, self.clusters, reduced.walk, owner, flat, self._scratch.poses)
        link = np.where(owner >= 0, reduced.components.link[np.maximum(owner, 0)], -1)
        return slot - fixed, leaves, link, flat

    # --- motion

    def body_pose(self, body: int) -> Floats:
        """World pose of one body, 4 x 4."""
        return self._place(body)[0]

    def body_twist(self, body: int) -> Floats:
        """Velocity of one body's origin and its angular velocity, world axes, (6,)."""
        pose, row = self._place(body)
        if row is None:
            return np.zeros(6)
        spin, start = row[linkage.W_SPIN : linkage.W_SPIN + 3], linkage.W_POSITION
        arm = pose[:3, 3] - row[start : start + 3]
        velocity = row[linkage.W_VELOCITY : linkage.W_VELOCITY + 3] + np.cross(spin, arm)
        return np.concatenate([velocity, spin])

    def _place(self, body: int) -> tuple[Floats, Floats | None]:
        """World pose of one body, 4 x 4, and the kinematics of the link that holds it, None if none does."""
        md, reduced = self.model, self.reduced
        out = np.eye(4)
        out[:3] = md.local[body]
        leaf = self._leaf_of_body[body]
        if leaf < 0:
            return out, None
        owner, flat = np.empty(1, dtype=np.int64), np.empty((1, 12))
        _linkage.place_all(
            np.array([leaf]), self.joints, self.clusters, reduced.walk, owner, flat, self._scratch.poses
        )
        out = pose_matrices(flat)[0] @ out
        if owner[0] < 0:
            return out, None
        reduced.linkage.evaluate(reduced.linkage.state.v)
        row = reduced.linkage.work[reduced.components.link[owner[0]]]
        held = np.eye(4)
        held[:3, :3] = row[: linkage.W_POSITION].reshape(3, 3)
        held[:3, 3] = row[linkage.W_POSITION : linkage.W_POSITION + 3]
        return held @ out, row

    @property
    def taken(self) -> int:
        """Whole steps since the start; counted where they are taken, so that Ctrl-C loses none."""
        return int(self._info[linkage.INFO_TAKEN])

    @property
    def effort(self) -> tuple[int, int, int]:
        """Linear solves, parts of steps, and parts that did not converge, since the start."""
        solves, substeps, unsettled = self._info[linkage.INFO_SOLVES : linkage.INFO_UNSETTLED + 1].tolist()
        return int(solves), int(substeps), int(unsettled)

    @property
    def q(self) -> Floats:
        """Coordinates, (nq,), up to date."""
        self.scatter()
        return self.joints.q

    @property
    def velocity(self) -> Floats:
        """Joint velocities, (nv,), up to date."""
        self.scatter()
        return self.rates

    def advance(self, n: int) -> int:
        """Take `n` steps; returns how many were taken before the motion left the finite numbers."""
        done = 0
        while done < n:
            before_review = self._reviewed, self.due
            part = min(n - done, self.review_if_due())
            moving = self.reduced.linkage
            before, start = [a.copy() for a in moving.state], self.taken
            went = moving.advance(part, self.timestep)
            done += went
            if went < part:  # the step that failed may be half done
                for array, kept in zip(moving.state, before, strict=True):
                    array[:] = kept
                moving.advance(went, self.timestep)
                self._info[linkage.INFO_TAKEN] = start + went
                if went == 0:
                    self._undo_review(*before_review)
                break
            self._forget_changes()
        return done

    def review_if_due(self) -> int:
        """Choose which joints move if it is time to; returns how many steps there are until the next review."""
        if self.whole:
            return _NEVER
        if self.due or self.taken - self._reviewed >= self.interval:
            self.review()
        return self.interval - (self.taken - self._reviewed)

    def review(self) -> None:
        """Choose which joints move, until the choice stands."""
        for _ in range(_MOST_REVIEWS):
            if not self._review():
                break

    def release(self) -> bool:
        """Open what misses too much under the present loads, and close nothing; whether there was any.

        It is no review that others follow in an interval.
        """
        when, switches = (self._reviewed, self.due), self.switches
        for _ in range(_MOST_REVIEWS):
            if not self._review(self.limits._replace(slow=-1.0)):
                break
        self._reviewed, self.due = when
        return self.switches > switches

    def count_step(self) -> None:
        """Count a step that was taken from outside, in contact."""
        self._info[linkage.INFO_TAKEN] += 1.0
        self._forget_changes()

    def _review(self, limits: Limits | None = None) -> bool:
        """One review; returns whether another one should follow."""
        reduced, joints, clusters = self.reduced, self.joints, self.clusters
        self.scatter()
        if self._stale or self.clusters.free[0] > self._tidy_above:
            self._renew_twigs()
        # The velocity at the middle of the last step is what moves joints. That at its end overshoots, and undershoots
        # in the next step, where damping or stiffness is large.
        reduced.linkage.evaluate(reduced.linkage.state.u)
        m, dofs = self.m, reduced.dofs
        rate = m.damping[dofs] + 0.5 * self.timestep * m.stiffness[dofs]
        self._drag[dofs] = rate * self._middle[dofs]
        room = reduced.visited + _AT_ONCE
        front = Front(
            node=np.empty(room, dtype=np.int32),
            force=np.empty((room, 12)),
            spin=np.empty((room, 3)),
            missed=np.empty(room),
            content=np.empty(room),
            keys=np.empty(room),
            items=np.empty(room, dtype=np.int32),
            change=np.empty(room, dtype=np.int32),
            numbers=np.zeros(col.NUMBERS),
        )
        self._stale = True  # until all is done: after Ctrl-C records are computed again
        _review.update(
            self.opened,
            self._rows,
            joints,
            self._middle,
            self._drag,
            clusters,
            reduced.walk,
            reduced.visited,
            reduced.components,
            reduced.bodies,
            reduced.linkage.work,
            self._world,
            self._none,
            self._stack,
            front,
            self._scratch,
        )
        _review.choose(
            self.opened,
            self.kept,
            limits or self.limits,
            joints,
            self._middle,
            self._drag,
            clusters,
            reduced.walk,
            reduced.visited,
            self._world,
            self._none,
            front,
            self._scratch,
        )
        self._drag[reduced.dofs] = 0.0
        opening = front.change[: int(front.numbers[col.OPENED])].copy()
        closing = front.change[room - int(front.numbers[col.CLOSED]) :].copy()
        self.worst = float(front.numbers[col.WORST])
        self.reviews += 1
        if len(opening) or len(closing):
            self.switch(opening, closing)
        else:
            self._reviewed, self.due = self.taken, False
        self._stale = False
        return bool(front.numbers[col.FULL])

    def _undo_review(self, reviewed: int, due: bool) -> None:
        """Go back to the joints that moved before the last review."""
        for old, opening, closing in reversed(self._changes):
            self.opened[opening], self.opened[closing] = 0, 1
            new, self.reduced = self.reduced, old
            self.rates[new.dofs] = self._middle[new.dofs] = self._earlier[new.dofs] = 0.0
            self.scatter()
            self._release(new)
            self._load_linkage(old)
        self._changes.clear()
        self._reviewed, self.due, self._stale = reviewed, due, True

    def _forget_changes(self) -> None:
        """Give up the linkages before the last review."""
        for old, _, _ in self._changes:
            self._release(old)
        self._changes.clear()

    def _refresh(self) -> None:
        """Compute all joints and records again."""
        _review.start_all(self.joints, self.clusters, self._world, self._none, self._scratch)
        self._stale = False

    def _renew_twigs(self) -> None:
        """Keep records of no twigs but those in which joints move; compute all joints and records again if stale."""
        which = self.opened, self.reduced.walk, self.reduced.visited
        if self._stale:
            _review.restart(*which, self._world, self.joints, self.clusters, self._none, self._scratch)
        else:
            _twigs.tidy(*which, self.joints, self.clusters, self._none, self._scratch)
        free, kept = self.clusters.free.tolist()
        self._tidy_above = kept + max(_ROOM, 2 * (free - kept))

    def switch(self, opening: Indices, closing: Indices) -> None:
        """Open and close nodes, parents of open nodes stay open; the momenta of all rigid bodies go along.

        Opening changes no velocity. Closing is an impulse through the joints that stop: momenta of bodies that become
        one are added, and the motion nearest to them is that which keeps the momenta of all other joints.
        """
        old, now = self.reduced, self.taken
        made: list[Reduced] = []
        try:
            fine = new = old
            if len(opening):
                self.opened[opening] = 1
                fine = new = self._build()
                made.append(fine)
                self._gather(fine)
                self._split(old, fine)
            if len(closing):
                self.opened[closing] = 0
                new = self._build()
                made.append(new)
                self._gather(new)
                self._add(fine, new)
                for values in (self.rates, self._middle, self._earlier):
                    values[fine.dofs] = 0.0
            since = linkage.SINCE_CHECK
            new.linkage.state.past[since] = old.linkage.state.past[since]
            self._load_linkage(new)
            self._changes.append((old, opening, closing))
            # at once: an interrupt comes before or after
            self.reduced, self._reviewed, self.due = new, now, False
        except BaseException:
            if self.reduced is old:
                self._changes = [change for change in self._changes if change[0] is not old]
                self.opened[opening], self.opened[closing] = 0, 1
                self.scatter()
                for one in made:
                    self._release(one)
            raise
        self.scatter()
        for one in made[:-1]:
            self._release(one)
        self.switches += 1

    def _owners(self, fine: Reduced, coarse: Reduced) -> Ints:
        """Per body of a linkage, the body of a coarser one that holds it."""
        out = np.empty(fine.bodies, dtype=np.int64)
        self._index[coarse.groups] = np.arange(coarse.bodies)
        _linkage.own_bodies(
            fine.bodies, fine.components, self._index, self.joints, self.model.nodes, coarse.walk, out
        )
        self._index[coarse.groups] = -1
        return out

    def _split(self, old: Reduced, fine: Reduced) -> None:
        a, b = old.linkage, fine.linkage
        a.evaluate(a.state.v)
        b.evaluate(b.state.v)
        _linkage.split_momenta(
            self._owners(fine, old),
            fine.links,
            old.links,
            b.model.constants,
            a.model.constants,
            b.work,
            a.work,
            a.state.momentum,
            b.state.momentum,
        )

    def _add(self, fine: Reduced, new: Reduced) -> None:
        a, b = fine.linkage, new.linkage
        a.evaluate(a.state.v)
        b.evaluate(b.state.v)
        _linkage.add_momenta(
            self._owners(fine, new),
            fine.links,
            new.links,
            a.work,
            b.work,
            a.state.momentum,
            b.state.momentum,
        )
        b.project()

    # --- state

    def set_motion(self, q: Floats, rates: Floats) -> None:
        """Set coordinates and rates; joints with a rate, and those that always move, move."""
        opened = self.kept.copy()
        if not self.whole:
            moving = np.unique(self.m.dof_joint[np.flatnonzero(rates)])
            self._open_above_nodes(self.joints.closing[self._groups_of(moving)], opened)
        self.opened[:] = opened
        self.joints.q[:], self.rates[:] = q, rates
        self._middle[:], self._earlier[:] = rates, 0.0
        self.set_pushes(np.zeros(0, dtype=np.int64), np.zeros((0, 6)))
        self._refresh()
        new = self._build()
        self._gather(new)
        new.linkage.move(self.rates[new.dofs])
        self._replace(new)
        self.due = True

    def _replace(self, new: Reduced) -> None:
        self._forget_changes()
        old, self.reduced = self.reduced, new
        self._load_linkage(new)
        self._release(old)

    @property
    def state(self) -> Floats:
        """All that moves, which joints move, and when they were chosen; a copy.

        Coordinates of all joints, open nodes as bits, of joints that move velocities and momenta, and of leaves that
        contacts push their numbers and wrenches.
        """
        self.scatter()
        reduced = self.reduced
        state = reduced.linkage.state
        choice = [float(self.due), float(self.taken - self._reviewed)]
        bits = np.packbits(self.opened.astype(bool)).astype(np.float64)
        momentum = state.momentum[reduced.links].ravel()
        pushes = self.pushes[:, [LINK, *range(FORCE, TORQUE + 3)]].ravel()
        return np.concatenate(
            [self.joints.q, state.past, choice, bits, state.v, state.u, state.earlier, momentum, pushes]
        )

    @state.setter
    def state(self, value: Floats) -> None:
        (q, past, choice, *moving, momentum, pushes), opened = self._split_state(value)
        self.opened[:] = opened
        self.joints.q[:] = q
        for values in (self.rates, self._middle, self._earlier):
            values[:] = 0.0
        pushed = pushes.reshape(-1, _PUSHED)
        self.set_pushes(pushed[:, 0].astype(np.int64), pushed[:, 1:])
        self._refresh()
        new = self._build()
        for values, part in zip((self.rates, self._middle, self._earlier), moving, strict=True):
            values[new.dofs] = part
        self._gather(new)
        new.linkage.state.momentum[new.links] = momentum.reshape(-1, 6)
        new.linkage.state.past[:] = past
        self._replace(new)
        self.due, self._reviewed = bool(choice[0]), self.taken - int(choice[1])

    def _split_state(self, values: Floats) -> tuple[list[Floats], Flags]:
        """Parts of a state, the bits left out, and the nodes that are open in it; the last part are its pushes."""
        m, count = self.m, -(-len(self.opened) // 8)
        q, past, choice, bits, rest = np.split(values, np.cumsum([m.nq, linkage.PAST, 2, count]))
        flags = np.unpackbits(np.clip(bits, 0, 255).astype(np.uint8), count=len(self.opened))
        flags[: self.model.tree.leaves] = 0
        opened = self.kept.copy()
        self._open_above_nodes(np.flatnonzero(flags), opened)
        groups = self.model.nodes[np.flatnonzero(opened), qs.GROUP]
        groups = groups[groups >= 0]
        nv = int(self.model.groups[groups, qs.DOFS].sum())
        return [q, past, choice, *np.split(rest, np.cumsum([nv, nv, nv, 6 * len(groups)]))], opened

    def fits(self, values: Floats) -> bool:
        """Whether finite numbers are as many as those of a state with its open nodes."""
        if len(values) < self.m.nq + linkage.PAST + 2 + -(-len(self.opened) // 8):
            return False
        (*_, momentum, pushes), opened = self._split_state(values)
        bodies = np.count_nonzero(self.model.nodes[np.flatnonzero(opened), qs.GROUP] >= 0)
        if len(momentum) != 6 * bodies or len(pushes) % _PUSHED:
            return False
        leaves = pushes[::_PUSHED]
        known = (leaves >= 0) & np.isin(leaves, self.model.tree.first_leaf)
        return bool(known.all() and (np.diff(leaves) > 0).all())


def _shortened(model: Model) -> Model:
    """The model without arrays that only the quasi-static engine reads."""
    none = np.zeros(0, dtype=np.int32)
    return replace(model, tree=replace(model.tree, top=none, bottom=none, depth=none), extent=np.zeros(0))


@cache
def load_kernels() -> None:
    """Load machine code of all kernels, by a small motion: a Ctrl-C while numba loads some may be lost, or worse."""
    b = Builder("chain")
    for i in range(3):
        b.body(f"b{i}", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(i, 0, 0))
    b.free("j0", "world", "b0")
    b.hinge("j1", "b0", "b1", anchor=(0.5, 0, 0), axis=(0, 0, 1))
    b.hinge("j2", "b1", "b2", anchor=(1.5, 0, 0), axis=(0, 0, 1))
    words = {"open_above": 1e-9, "slow": 0.0, "most": 9, "interval": 1, "precision": 1e-5}
    solver = Solver(b.build(), 1e-3, np.zeros(3), **words, keep=np.zeros(0, dtype=np.int64))
    solver.set_wrenches({2: Load.of("b2", (0.0, 1.0, 0.0))})
    solver.advance(2)
    solver.set_wrenches({})
    solver.set_motors(np.ones(solver.m.nv))
    solver.set_motors(np.zeros(solver.m.nv))
    solver.body_pose(2)
    solver.limits, solver._tidy_above = Limits(np.inf, np.inf, np.inf, np.inf, 9), -1
    solver.advance(2)
    solver.reduced.linkage.kinetic  # noqa: B018
    solver._stale = True
    solver.advance(2)
    solver.set_motion(solver.q, solver.velocity)
    solver.state = solver.state
