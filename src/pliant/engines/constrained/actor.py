"""`ConstrainedActor`: a whole mechanism in contact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Blocks
from pliant.engines.constrained.gs17.stepper import MaximalStepper
from pliant.engines.constrained.midpoint import ContactStep, Midpoint
from pliant.engines.simulation import Simulation
from pliant.engines.single_actor import SingleActor
from pliant.errors import ConvergenceError

__all__ = ["ConstrainedActor"]

Floats = NDArray[np.float64]


class ConstrainedActor(SingleActor):
    """A mechanism with all its joints. In steps with contacts it moves by backward Euler.

    Args:
        simulation: what moves.
        stepper: its integrator.
    """

    def __init__(self, simulation: Simulation, stepper: Midpoint | MaximalStepper):
        m = simulation.mechanism
        loose = np.bincount(m.dof_joint[m.stiffness == 0], minlength=m.joint_count) == 6
        super().__init__(simulation, m.nv, bool((loose & (m.joint_parents < 0)).any()))
        self._stepper = stepper

    def place(self, first: int) -> None:
        """Take note of the number of the first body."""
        self._steps = ContactStep(self._stepper, first)

    def begin(self, blocks: Blocks, before: Floats, u: Floats) -> None:
        """First half of a step with contacts: velocities `before` and after a step without them, and rows."""
        b = blocks
        before[:] = self._steps.velocity
        if not self._steps.begin(b.count, b.turning, b.body, b.point, b.axes, b.side, b.impulse, b.J, b.Y, u):
            self._fail()

    def finish(self, blocks: Blocks, u: Floats, w: Floats) -> None:
        """Second half: velocities are `u`, and positions move by `w` besides."""
        b = blocks
        if not self._steps.finish(
            b.count, b.turning, b.body, b.point, b.axes, b.side, b.J, b.impulse, b.amount, u, w, b.elastic
        ):
            self._fail()
        self.simulation.stepped()

    def _fail(self) -> None:
        s = self.simulation
        raise ConvergenceError(
            f"the motion of '{s.mechanism.name}' in contact left the finite numbers after t = {s.time:.6g} s: "
            "a shorter timestep may help"
        )
