"""Actors: what moves in a world, each by the step of its own simulation."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pliant.contact.solver import SPRING, Blocks
from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.constrained.contact import ContactStep as FullStep
from pliant.engines.reduced import ReducedSimulation
from pliant.engines.reduced.contact import ContactStep as ReducedStep
from pliant.errors import ConvergenceError

__all__ = ["Actor", "FullActor", "ReducedActor"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Actor(Protocol):
    """What a world asks of whatever moves in it.

    Attributes:
        count: number of its bodies, which are numbered in the world from the `first` given to `place` on.
        size: number of its generalised velocities.
        sizes, offsets: per body, how many of these its rows have, and where they start.
        fall: what gravity adds to its speed in a step if no contact holds it, m/s; 0 if something else does, or if it
            looks ahead by itself.
    """

    count: int
    size: int
    fall: float

    @property
    def sizes(self) -> Ints: ...
    @property
    def offsets(self) -> Ints: ...

    def place(self, first: int) -> None:
        """Take note of the number of the first body."""
        ...

    def write_poses(self, out: Floats) -> None:
        """Poses of all bodies, (count, 4, 4)."""
        ...

    def step(self) -> None:
        """A step in which nothing touches."""
        ...

    def begin(self, blocks: Blocks, turning: Bools, before: Floats, u: Floats) -> None:
        """First half of a step with contacts: velocities `before` and after a step without them, and rows."""
        ...

    def finish(self, blocks: Blocks, turning: Bools, u: Floats, w: Floats) -> None:
        """Second half: velocities are `u`, and positions move by `w` besides."""
        ...

    @property
    def state(self) -> Floats:
        """Everything that moves, in one array."""
        ...

    @state.setter
    def state(self, value: Floats) -> None: ...

    def reset(self) -> None:
        """Back to the start."""
        ...


class _Simulated:
    """An actor whose bodies all move by the same generalised velocities."""

    def __init__(
        self, simulation: ReducedSimulation | ConstrainedSimulation, count: int, size: int, floats: bool
    ):
        self.simulation, self.count, self.size = simulation, count, size
        self.fall = simulation.timestep * float(np.linalg.norm(simulation._gravity)) if floats else 0.0
        self.step = simulation.step
        self.reset = simulation.reset

    @property
    def sizes(self) -> Ints:
        return np.full(self.count, self.size, dtype=np.int64)

    @property
    def offsets(self) -> Ints:
        return np.zeros(self.count, dtype=np.int64)

    def write_poses(self, out: Floats) -> None:
        out[:] = self.simulation.poses

    @property
    def state(self) -> Floats:
        return self.simulation.state

    @state.setter
    def state(self, value: Floats) -> None:
        self.simulation.state = value


class ReducedActor(_Simulated):
    """A reduced or blended model."""

    def __init__(self, simulation: ReducedSimulation):
        floats = simulation.model.base is not None
        size = simulation._coordinates.count + 6 * floats
        super().__init__(simulation, simulation.model.mechanism.body_count, size, floats)
        self._reduced = simulation

    def place(self, first: int) -> None:
        self._steps = ReducedStep(self._reduced, first)

    @property
    def constant(self) -> bool:
        """Whether it answers impulses the same wherever it is; blends do not."""
        return self._steps.constant

    def arrays(self) -> tuple[NDArray, ...]:
        """What compiled steps need."""
        return self._steps.arrays()

    def begin(self, blocks: Blocks, turning: Bools, before: Floats, u: Floats) -> None:
        b = blocks
        self._steps.begin(b.count, turning, b.body, b.point, b.axes, b.side, b.J, b.Y, before, u)

    def finish(self, blocks: Blocks, turning: Bools, u: Floats, w: Floats) -> None:
        self._steps.finish(u, w)


class FullActor(_Simulated):
    """A mechanism with all its joints. In steps with contacts it moves by backward Euler."""

    def __init__(self, simulation: ConstrainedSimulation):
        m = simulation.mechanism
        loose = np.bincount(m.dof_joint[m.stiffness == 0], minlength=m.joint_count) == 6
        super().__init__(simulation, m.body_count, m.nv, bool((loose & (m.joint_parents < 0)).any()))
        self._full = simulation

    def place(self, first: int) -> None:
        self._steps = FullStep(self._full._stepper, first)

    def begin(self, blocks: Blocks, turning: Bools, before: Floats, u: Floats) -> None:
        b = blocks
        before[:] = self._steps.velocity
        if not self._steps.begin(b.count, turning, b.body, b.point, b.axes, b.side, b.impulse, b.J, b.Y, u):
            self._fail()

    def finish(self, blocks: Blocks, turning: Bools, u: Floats, w: Floats) -> None:
        b, spring = blocks, (blocks.kind == SPRING) | (blocks.give[:, 0] > 0.0)  # or a compliant contact
        if not self._steps.finish(
            b.count, turning, b.body, b.point, b.axes, b.side, b.J, b.impulse, u, w, spring
        ):
            self._fail()
        self._full._time += self._full.timestep
        self._full._poses = None

    def _fail(self) -> None:
        raise ConvergenceError(
            f"the motion of '{self._full.mechanism.name}' in contact left the finite numbers after "
            f"t = {self._full.time:.6g} s: a shorter timestep may help"
        )
