"""`Solver`: one mechanism's accelerations at rest, as exactly as asked, and steps along them.

Two ways to the same accelerations. The assembly tree computes a few joints, and then costs what these few cost; where
too many are needed it is an order of magnitude dearer than the articulated-body algorithm, which computes all. So
steps change over to that one when a refinement has gone too far. Going back means assembling the whole tree: that is
done once the last accelerations say that few joints would do, and paid from what has been saved so far, so that all
steps together never cost much more than the articulated-body algorithm alone.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pliant.engines.quasistatic import _articulated as articulated
from pliant.engines.quasistatic import _passes as passes
from pliant.engines.quasistatic import _refinement as refinement
from pliant.engines.quasistatic import _stepping as stepping
from pliant.engines.quasistatic._handles import LOAD_COLUMNS
from pliant.engines.quasistatic.tree import Tree
from pliant.errors import MechanismError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import SLIDE

__all__ = ["MEASURES", "Solver"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MEASURES = {
    "relative-joint": refinement.RELATIVE_JOINT,
    "relative-linkage": refinement.RELATIVE_LINKAGE,
    "absolute-joint": refinement.ABSOLUTE_JOINT,
    "absolute-linkage": refinement.ABSOLUTE_LINKAGE,
    "world": refinement.WORLD,
}
_MOST = 0.08  # of all nodes: where a refinement is given up for the articulated-body algorithm
_NODE = 8.0  # what a node of the tree costs, as a number of joints of the articulated-body algorithm
_SAVED = 0.1  # of the cost of steps with the articulated-body algorithm may go into assembling the tree
_CHUNK = 16  # nodes computed between two looks at the clock


class Solver:
    """The quasi-static engine without names and units of the public API.

    Attributes:
        tree: the assembly tree and its arrays.
        error: bound on the error of the last accelerations, in the units of the measure.
        current: whether the clusters are those of the coordinates (wrenches apart).
        small: whether steps always compute all joints.
        rebuilt, fallbacks: how often the whole tree was assembled again, how many steps computed all joints.
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
    ):
        self.m, self.measure, self.tolerance = m, measure, tolerance
        self.unit = m.radius
        if measure == refinement.WORLD:
            weights = np.where(m.dof_kind == SLIDE, 1 / self.unit, 1.0)
        self.tree = Tree(m, gravity, resist, weights, scale)
        t = self.tree
        n, groups = len(t.model.tree), len(t.model.groups)
        self.front = refinement.Front(
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            t.marks,
            t.order,
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(refinement.NUMBERS),
        )
        several = t.model.groups[:, 4] > 1
        self.full = stepping.Full(
            np.ascontiguousarray(t.model.inertia.reshape(-1, 36)),
            np.ascontiguousarray(t.model.tree.first_leaf),
            np.zeros((groups, 12)),
            np.zeros((groups, 6)),
            np.zeros((groups, articulated.BODY_COLUMNS)),
            np.where(several, np.cumsum(several) - 1, -1),
            np.zeros((int(several.sum()), articulated.GAIN_COLUMNS)),
            np.zeros((6, 6)),
        )
        self._closing = np.zeros(groups, dtype=np.int64)
        inner = np.arange(t.leaves, n)
        closes = inner[t.arrays.nodes[inner, 4] >= 0]
        self._closing[t.arrays.nodes[closes, 4]] = closes
        self.loads = np.zeros((0, LOAD_COLUMNS))
        self._loaded = np.zeros(0, dtype=np.int64)
        # The articulated-body algorithm knows no loops.
        self.most = int(_MOST * (n - t.leaves)) if t.model.ports is None else n
        # Of a small mechanism not even the way down to one joint pays.
        self.small = self.most <= t.model.tree.depth.max()
        self.error, self.current, self.whole = 0.0, False, False
        self._refined = False
        self._saved = (
            4 * _NODE
        )  # a rebuild, in units of one step of the articulated-body algorithm, and some more
        self.rebuilt = self.fallbacks = 0

    # --- what acts

    def set_loads(self, rows: Floats) -> None:
        """Wrenches as rows of `_handles.LOAD_COLUMNS`; leaves that had one before and have none now are cleared."""
        before = self._loaded
        self._loaded = np.unique(rows[:, 0]).astype(np.int64)
        gone = np.setdiff1d(before, self._loaded)
        idle = np.zeros((len(gone), LOAD_COLUMNS))
        idle[:, 0] = gone
        both = np.concatenate([rows, idle])
        self.loads = np.ascontiguousarray(both[np.argsort(both[:, 0], kind="stable")])
        # Cleared leaves stay in the list until the next time wrenches are set: they cost a look each.
        self._refined = False

    @property
    def q(self) -> Floats:
        """Coordinates; after writing to them call `moved`."""
        return self.tree.state.q

    def moved(self) -> None:
        """Coordinates, motors or weights were changed from outside: nothing assembled holds any more."""
        self.current = self._refined = False

    def set_wrenches(self, entries: dict[int, Floats]) -> None:
        """Wrenches by body, as `pliant.engines.wrenches.entry` makes them."""
        model, out = self.tree.model, []
        for body, given in entries.items():
            group = int(model.group[body])
            if group < 0:
                continue  # fixed to the world
            local = model.local[body]
            turn, at = local[:3, :3], local[:3, 3]
            force = turn @ given[9:12]
            row = np.zeros(LOAD_COLUMNS)
            row[0] = model.tree.first_leaf[group]
            row[1:7] = given[:6]
            row[7:10] = turn @ given[6:9] + at
            row[10:13] = force
            row[13:16] = turn @ given[12:15] + np.cross(at, force)
            out.append(row)
        self.set_loads(np.array(out).reshape(-1, LOAD_COLUMNS))

    def set_motor(self, dofs: Ints, torque: Floats) -> None:
        """Torques of dofs."""
        t = self.tree
        t.state.motor[dofs] = torque
        first = t.arrays.groups[:, 3]
        order = np.argsort(first, kind="stable")
        found = order[np.searchsorted(first[order], dofs, side="right") - 1]
        self._changed(np.unique(found))

    # --- where bodies are

    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4)."""
        self._place()
        return self.tree.body_poses()

    def pose(self, body: int) -> Floats:
        """World pose of one body, in time proportional to the depth of the assembly tree."""
        if self.current:
            return self.tree.body_pose(body)
        return self.poses()[body]

    def _place(self) -> None:
        if not self.current:
            stepping.prepare(self.tree.arrays, self.tree.state)

    # --- accelerations

    def _begin(self) -> None:
        """A fresh front on clusters that are up to date."""
        t = self.tree
        if not self.current:
            stepping.prepare_all(self.loads, t.arrays, t.state, self.front.marks)
            t.rank_loops()
            self.current = True
            self.rebuilt += 1
        if self.whole:
            t.state.qdd[:] = 0.0
            self.whole = False
        failed = self._advance(1, begun=False, most=0)[2]
        t.check(failed)
        self._refined = True

    def refine(self, budget: float | None = None, most: int | None = None) -> float:
        """Compute accelerations here, without moving: for `budget` seconds, or to the tolerance; the bound reached."""
        until = time.perf_counter() + (budget or 0.0)
        if not self._refined:
            self._begin()
        numbers = self.front.numbers
        if budget is None:
            self._advance(1, begun=True, most=len(self.tree.model.tree) if most is None else most)
        else:
            while True:
                more = int(numbers[refinement.COMPUTED]) + _CHUNK
                self._advance(1, begun=True, most=more, tolerance=0.0)
                if numbers[refinement.DONE] or time.perf_counter() >= until:
                    break
        self.error = float(numbers[refinement.ERROR])
        return self.error

    def _advance(
        self, n: int, *, begun: bool, most: int, tolerance: float | None = None, scale: float | None = None
    ) -> tuple[int, int, int]:
        """See `_stepping.advance`; without a scale nothing moves. Ranks of loops are found again where asked for."""
        t, done, spent = self.tree, 0, 0
        while True:
            steps, count, failed = stepping.advance(
                n - done,
                begun,
                scale is not None,
                self.loads,
                t.arrays,
                t.state,
                t.wide,
                self.front,
                self.measure,
                self.tolerance if tolerance is None else tolerance,
                self.unit,
                scale or 0.0,
                most,
            )
            done, spent = done + steps, spent + count
            if failed != stepping.STALE:
                return done, spent, failed
            t.rank_loops()
            begun = False

    def articulated(self, n: int = 1, scale: float = 0.0) -> int:
        """All accelerations by the articulated-body algorithm, and steps along them; how many of n went well."""
        t = self.tree
        done, failed = stepping.march(n, self.loads, t.arrays, t.state, self.full, scale)
        if failed >= 0:
            joint = self.m.dof_joint[t.arrays.groups[failed, 3]]
            raise MechanismError(
                f"joint '{self.m.joint_names[joint]}' stands where two of its axes coincide: its accelerations "
                "are not defined there; move it, give it armature, or use a ball joint"
            )
        self.whole, self.error, self._refined = True, 0.0, False
        self.front.numbers[refinement.COMPUTED] = 0.0
        if scale:
            self.current = False
        if failed == stepping.INFINITE:
            self.moved()
        return done

    # --- steps

    def step(self, n: int, scale: float) -> int:
        """`q += scale qdd`, n times; how many went well: fewer where accelerations are not finite."""
        t, done = self.tree, 0
        everything = float(len(t.arrays.groups))
        while done < n:
            if not self.small and (self.current or self._worth_it()):
                if not self.current:
                    self._begin()
                elif self.whole:
                    t.state.qdd[:] = 0.0
                self.whole = False
                count, spent, failed = self._advance(
                    n - done, begun=self._refined, most=self.most, scale=scale
                )
                done += count
                self._refined = False
                self._saved = min(self._saved + count - _NODE * spent / everything, 10 * _NODE)
                self.error = float(self.front.numbers[refinement.ERROR])
                if failed == stepping.INFINITE:
                    self.moved()
                    return done
                t.check(failed)
                if done == n:
                    break
            part = n - done if self.small else 1
            went = self.articulated(part, scale)
            done += went
            self.fallbacks += went
            if went < part:
                return done
            self._saved = min(self._saved + _SAVED, 10 * _NODE)
        return done

    def _worth_it(self) -> bool:
        """Whether to assemble the tree again: enough is saved for it, and few joints matter."""
        if not self.whole:
            return True
        if self._saved < 2 * _NODE:
            return False
        worth = stepping.outstanding(
            self.tree.arrays, self.tree.state, self.measure, self.tolerance, self.unit
        )
        if 2 * worth > self.most:
            return False
        self._saved -= 2 * _NODE
        return True

    def _changed(self, groups: Ints) -> None:
        """Motors of these groups' joints were changed: their clusters are to be brought up to date."""
        t = self.tree
        for g in groups.tolist():
            passes.place(g, t.arrays, t.state)
            k = int(self._closing[g])
            while k >= 0 and not self.front.marks[k]:
                self.front.marks[k] = 1
                k = int(t.arrays.nodes[k, 3])
        self._refined = False

    @property
    def active(self) -> Ints:
        """Groups whose joints were computed, in the order they were."""
        t = self.tree
        if self.whole:
            return np.arange(len(t.arrays.groups))
        nodes = self.front.computed[: int(self.front.numbers[refinement.COMPUTED])]
        groups = t.arrays.nodes[nodes, 4]
        return groups[groups >= 0]
