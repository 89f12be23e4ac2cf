"""`SingleActor`: an actor whose bodies all move by the same generalised velocities."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Rows
from pliant.engines.simulation import Simulation, State
from pliant.errors import ConvergenceError
from pliant.mechanism import Mechanism

__all__ = ["SingleActor", "falls"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SingleActor:
    """The common part of actors that are one simulation each; see `Actor`.

    Args:
        simulation: of a mechanism.
        size: number of generalised velocities.
        floats: whether the mechanism has a base without springs, which falls unless a contact holds it.
    """

    strikes, stops = False, 0

    def __init__(self, simulation: Simulation, size: int, floats: bool):
        self.simulation, self.count, self.size = simulation, simulation.mechanism.body_count, size
        self.fall = simulation.timestep * float(np.linalg.norm(simulation.gravity)) if floats else 0.0
        self.step, self.reset = simulation.step, simulation.reset

    def prepare(self) -> int:
        """Number of generalised velocities, always the same."""
        return self.size

    def opens(self, count: int, rows: Rows) -> bool:
        """False: all joints move."""
        return False

    def strike(self, count: int, rows: Rows, u: Floats) -> None:
        """Nothing: velocities at the end of a step are the mean ones."""

    def respond(self, count: int, rows: Rows) -> None:
        """Nothing: so is their response."""

    def mobility(self, J: Floats, mean: Floats) -> Floats:
        """Velocities of rows per impulse on them, 1/kg, (3, 3): the mean ones of the step."""
        return mean

    def warn(self) -> None:
        """Nothing: steps are not beyond what the simulation knows."""

    @property
    def sizes(self) -> Ints:
        """Length of the rows of each body."""
        return np.full(self.count, self.size, dtype=np.int64)

    @property
    def offsets(self) -> Ints:
        """Offset of the rows of each body in the actor's velocities."""
        return np.zeros(self.count, dtype=np.int64)

    def write_poses(self, out: Floats) -> None:
        """Write the world poses of all bodies, (count, 4, 4)."""
        out[:] = self.simulation.poses

    def compiled(self) -> Any:
        """None: this actor steps from Python."""
        return None

    @property
    def state(self) -> State:
        """All that moves."""
        return self.simulation.state

    @state.setter
    def state(self, value: State) -> None:
        self.simulation.state = value

    def fail(self) -> NoReturn:
        """Raise the error of a motion that left the finite numbers."""
        s = self.simulation
        raise ConvergenceError(
            f"the motion of '{s.mechanism.name}' in contact left the finite numbers after t = {s.time:.6g} s: "
            "a shorter timestep may help"
        )


def falls(m: Mechanism) -> bool:
    """Whether a mechanism has a base on a joint of six dofs without springs."""
    loose = np.bincount(m.dof_joint[m.stiffness == 0], minlength=m.joint_count) == 6
    return bool((loose & (m.joint_parents < 0)).any())
