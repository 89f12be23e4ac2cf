"""`AdaptiveActor`: a linkage in contact, in which impulses open the joints that they need."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Rows
from pliant.engines.adaptive._contact import sum_forces
from pliant.engines.adaptive.solver import Reduced, Solver
from pliant.engines.constrained.contact_step import ContactStep
from pliant.engines.simulation import Simulation
from pliant.engines.single_actor import SingleActor, falls
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
        mass: kg: changes of force that would accelerate this mass by less than the tolerance wait for the next review.
    """

    def __init__(self, simulation: Simulation, solver: Solver, mass: float):
        m = simulation.mechanism
        super().__init__(simulation, m.nv, falls(m))
        self.step, self._dofs = self._fly, self.size
        self._solver, self._mass, self._first = solver, mass, 0
        bodies, none = m.body_count, np.zeros(0, dtype=np.int64)
        self._body_link, self._at_link = np.full(bodies, -1, dtype=np.int64), np.zeros((bodies, 6))
        self._steps: ContactStep | None = None
        self._of: Reduced | None = None  # linkage that `_steps` are of
        # groups of bodies that touch: number of a body's group, then leaf, link and origin of groups
        self._slot = np.full(bodies, -1, dtype=np.int64)
        self._leaves, self._links, self._origins = none, none, np.zeros((0, 3))
        self._pushes: Floats | None = None  # forces on them in this step

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        self._first, self._of = first, None

    @property
    def sizes(self) -> Ints:
        """Length of the rows of each body: the number of dofs that move, as `prepare` told it."""
        return np.full(self.count, self._dofs, dtype=np.int64)

    def prepare(self) -> int:
        """Choose the joints that move, if a review is due; returns the number of their dofs."""
        self._solver.review_if_due()
        self._dofs = len(self._solver.reduced.dofs)
        return self._dofs

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
            self._steps = solver.reduced.linkage.contact_step(
                solver.timestep, self._first, self._body_link, self._at_link
            )
            self._of = solver.reduced
        own = body[(body >= self._first) & (body < self._first + self.count)]
        touching = np.unique(own) - self._first
        slot, self._leaves, self._links, poses = solver.groups_of(touching)
        self._slot[touching], self._pushes, self._origins = slot, None, np.ascontiguousarray(poses[:, 9:])
        held, at = touching[slot >= 0], slot[slot >= 0]
        self._body_link[held] = self._links[at]
        self._at_link[held, :3] = self._at_link[held, 3:] = self._origins[at]
        self._at_link[held, 3:] += np.einsum(
            "nij,nj->ni", poses[at, :9].reshape(-1, 3, 3), self._centres(held)
        )
        before[:] = self._steps.velocity
        if not self._steps.begin(count, rows, u):
            self.fail()
        return count

    def _centres(self, bodies: Ints) -> Floats:
        """Centres of mass of bodies in the frames of their groups, m."""
        local = self._solver.model.local[bodies]
        return (
            np.einsum("nij,nj->ni", local[:, :, :3], self.simulation.mechanism.com[bodies]) + local[:, :, 3]
        )

    def opens(self, count: int, rows: Rows) -> bool:
        """Release joints if the forces of this step are others than those of the last one, and need some."""
        solver, steps = self._solver, self._steps
        if solver.whole or steps is None:
            return False
        self._pushes = self._forces(count, rows, steps)
        if not self._changed(self._pushes):
            return False
        steps.withdraw()
        solver.set_pushes(self._leaves, self._pushes)
        return solver.release()

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        solver, steps = self._solver, self._steps
        if steps is None or not steps.finish(count, rows, u, w):
            self.fail()
        elif not solver.whole:
            pushes = self._forces(count, rows, steps) if self._pushes is None else self._pushes
            solver.set_pushes(self._leaves, pushes)
        self.simulation.stepped()

    def _forces(self, count: int, rows: Rows, steps: ContactStep) -> Floats:
        """Forces and torques of blocks on the groups that touch, at their origins, world axes."""
        r, h, out = rows, self._solver.timestep, np.zeros((len(self._leaves), 6))
        sum_forces(
            count, r.angular, r.body, r.point, r.axes, r.impulse, self._first, self._slot, self._links, self._origins,
            steps.start, h, out,
        )  # fmt: skip
        return out

    def _changed(self, pushes: Floats) -> bool:
        """Whether the force on any group is not that of the last step, or of the last attempt at this one."""
        leaves, old = self._leaves, self._solver.pushes
        both, slot = np.unique(np.concatenate([leaves, old[:, LINK].astype(np.int64)]), return_inverse=True)
        change = np.zeros((len(both), 3))
        change[slot[: len(leaves)]] = pushes[:, :3]
        change[slot[len(leaves) :]] -= old[:, FORCE : FORCE + 3]
        least = math.sqrt(self._mass * self._solver.limits.open)
        return bool((np.linalg.norm(change, axis=1) > least).any())
