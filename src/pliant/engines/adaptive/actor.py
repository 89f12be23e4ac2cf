"""`AdaptiveActor`: a linkage in contact, in which impulses open the joints that they need."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Rows
from pliant.engines.adaptive.solver import Reduced, Solver
from pliant.engines.constrained import arrays as linkage
from pliant.engines.constrained.contact_step import ContactStep
from pliant.engines.simulation import Simulation
from pliant.engines.single_actor import SingleActor
from pliant.errors import ConvergenceError
from pliant.statics.load_kernels import FORCE, LINK

__all__ = ["AdaptiveActor"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class AdaptiveActor(SingleActor):
    """The rigid clusters of an adaptive simulation in contact, integrated by backward Euler.

    The forces of contact in the last step are loads in reviews. When those of a step differ from them, the joints that
    they need are opened before that step is taken.

    Args:
        simulation: of the mechanism.
        solver: its reduced linkage and reviews.
        least: N: smaller changes of the force on a body wait for the next review.
    """

    def __init__(self, simulation: Simulation, solver: Solver, least: float):
        m = simulation.mechanism
        loose = np.bincount(m.dof_joint[m.stiffness == 0], minlength=m.joint_count) == 6
        super().__init__(simulation, m.nv, bool((loose & (m.joint_parents < 0)).any()))
        self.step = self._fly
        self._solver, self._least = solver, least
        self._first, self._body_link = 0, np.full(m.body_count, -1, dtype=np.int64)
        self._steps: ContactStep | None = None
        self._of: Reduced | None = None  # linkage that `_steps` are of
        self._touching: Ints = np.zeros(0, dtype=np.int64)  # bodies in this step's blocks, and where they are
        self._leaves, self._origins = self._touching, np.zeros((0, 3))
        self._pushed: tuple[Ints, Floats] | None = None  # forces of this step, per leaf

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        self._first, self._of = first, None

    @property
    def sizes(self) -> Ints:
        """Length of the rows of each body: the number of dofs that move."""
        return np.full(self.count, len(self._solver.reduced.dofs), dtype=np.int64)

    def prepare(self) -> int:
        """Choose the joints that move, if a review is due; returns the number of their dofs."""
        self._solver.review_if_due()
        return len(self._solver.reduced.dofs)

    def _fly(self, n: int = 1) -> None:
        """Take steps without contacts."""
        if len(self._solver.pushes):
            self._solver.set_pushes(np.zeros(0, dtype=np.int64), np.zeros((0, 6)))
            self._solver.due = True
        self.simulation.step(n)

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> int:
        """First half of a step with contacts: rows, velocities `before` the step and, without contacts, after it."""
        solver, body = self._solver, rows.body[:count]
        if self._steps is None or self._of is not solver.reduced:
            self._steps = solver.reduced.linkage.contact_step(solver.timestep, self._first, self._body_link)
            self._of = solver.reduced
        own = body[(body >= self._first) & (body < self._first + self.count)]
        self._touching, self._pushed = np.unique(own) - self._first, None
        self._leaves, links, self._origins = solver.places(self._touching)
        self._body_link[self._touching] = links
        before[:] = self._steps.velocity
        if not self._steps.begin(count, rows, u):
            self._fail()
        return count

    def opens(self, count: int, rows: Rows) -> bool:
        """Release joints if the forces of this step are others than those of the last one, and need some."""
        solver, steps = self._solver, self._steps
        if solver.whole or steps is None:
            return False
        self._pushed = leaves, pushes = self._forces(count, rows, steps)
        if not self._changed(leaves, pushes):
            return False
        steps.withdraw()
        solver.set_pushes(leaves, pushes)
        return solver.release()

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        solver, steps = self._solver, self._steps
        if steps is None or not steps.finish(count, rows, u, w):
            self._fail()
        elif not solver.whole:
            solver.set_pushes(*(self._pushed or self._forces(count, rows, steps)))
        self.simulation.stepped()

    def _forces(self, count: int, rows: Rows, steps: ContactStep) -> tuple[Ints, Floats]:
        """Forces and torques of blocks at the origins of groups, world axes, by leaf, sorted."""
        h, first = self._solver.timestep, self._first
        origins, links = self._origins.copy(), self._body_link[self._touching]
        held = np.flatnonzero(links >= 0)
        at = steps.start[links[held]]
        turn = at[:, linkage.W_ROTATION : linkage.W_ROTATION + 9].reshape(-1, 3, 3)
        origins[held] = np.einsum("nij,nj->ni", turn, origins[held])
        origins[held] += at[:, linkage.W_POSITION : linkage.W_POSITION + 3]
        total = np.einsum("bi,bij->bj", rows.impulse[:count], rows.axes[:count]) / h
        wrenches = np.zeros((len(self._touching), 6))
        for side, sign in ((0, -1.0), (1, 1.0)):
            body = rows.body[:count, side] - first
            own = np.flatnonzero((body >= 0) & (body < self.count))
            slot = np.searchsorted(self._touching, body[own])
            push, turns = sign * total[own], rows.angular[own]
            arm = rows.point[own] - origins[slot]
            np.add.at(wrenches[:, :3], slot[~turns], push[~turns])
            np.add.at(wrenches[:, 3:], slot, np.where(turns[:, None], push, np.cross(arm, push)))
        leaves, slot = np.unique(self._leaves, return_inverse=True)
        out = np.zeros((len(leaves), 6))
        np.add.at(out, slot, wrenches)
        moves = leaves >= 0
        return leaves[moves], out[moves]

    def _changed(self, leaves: Ints, pushes: Floats) -> bool:
        """Whether the force on any leaf is not that of the last step, or of the last attempt at this one."""
        old = self._solver.pushes
        both, slot = np.unique(np.concatenate([leaves, old[:, LINK].astype(np.int64)]), return_inverse=True)
        change = np.zeros((len(both), 3))
        change[slot[: len(leaves)]] = pushes[:, :3]
        change[slot[len(leaves) :]] -= old[:, FORCE : FORCE + 3]
        return bool((np.linalg.norm(change, axis=1) > self._least).any())

    def _fail(self) -> NoReturn:
        s = self.simulation
        raise ConvergenceError(
            f"the motion of '{s.mechanism.name}' in contact left the finite numbers after t = {s.time:.6g} s: "
            "a shorter timestep may help"
        )
