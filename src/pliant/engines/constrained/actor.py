"""`ConstrainedActor`: a whole mechanism in contact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import SPRING, Rows
from pliant.engines.constrained.gs17.stepper import MaximalStepper
from pliant.engines.constrained.midpoint import ContactStep, Midpoint
from pliant.engines.simulation import Simulation
from pliant.engines.single_actor import SingleActor
from pliant.errors import ConvergenceError

__all__ = ["ConstrainedActor"]

Floats = NDArray[np.float64]


class ConstrainedActor(SingleActor):
    """A mechanism with all its joints, integrated by backward Euler in steps with contacts.

    Args:
        simulation: of the mechanism.
        stepper: its integrator.
    """

    def __init__(self, simulation: Simulation, stepper: Midpoint | MaximalStepper):
        m = simulation.mechanism
        loose = np.bincount(m.dof_joint[m.stiffness == 0], minlength=m.joint_count) == 6
        super().__init__(simulation, m.nv, bool((loose & (m.joint_parents < 0)).any()))
        self._stepper = stepper

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        self._steps = ContactStep(self._stepper, first)

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> int:
        """First half of a step with contacts: rows, velocities `before` the step and, without contacts, after it."""
        r = rows
        before[:] = self._steps.velocity
        if not self._steps.begin(count, r.angular, r.body, r.point, r.axes, r.side, r.impulse, r.J, r.Y, u):
            self._fail()
        return count

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        r = rows
        elastic = (r.kind == SPRING) | (r.softness[:, 0] > 0.0)  # blocks that may add energy
        if not self._steps.finish(
            count, r.angular, r.body, r.point, r.axes, r.side, r.J, r.impulse, r.correction, u, w, elastic
        ):
            self._fail()
        self.simulation.stepped()

    def _fail(self) -> None:
        s = self.simulation
        raise ConvergenceError(
            f"the motion of '{s.mechanism.name}' in contact left the finite numbers after t = {s.time:.6g} s: "
            "a shorter timestep may help"
        )
