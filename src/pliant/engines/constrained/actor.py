"""`ConstrainedActor`: a whole mechanism in contact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Rows
from pliant.engines.constrained.gs17.stepper import MaximalStepper
from pliant.engines.constrained.midpoint import Midpoint
from pliant.engines.simulation import Simulation
from pliant.engines.single_actor import SingleActor, falls
from pliant.errors import InputError

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
        super().__init__(simulation, m.nv, falls(m))
        self._stepper = stepper

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        if not isinstance(self._stepper, Midpoint):
            raise InputError('contacts need stabilization="newmark"')
        self._steps = self._stepper.contact_step(first)

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> int:
        """First half of a step with contacts: rows, velocities `before` the step and, without contacts, after it."""
        before[:] = self._steps.velocity
        if not self._steps.begin(count, rows, u):
            self.fail()
        return count

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        if not self._steps.finish(count, rows, u, w):
            self.fail()
        self.simulation.stepped()
