"""`ReducedActor`: a reduced or blended model in contact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Blocks
from pliant.engines.reduced.contact import ContactStep
from pliant.engines.single_actor import SingleActor

if TYPE_CHECKING:
    from pliant.engines.reduced.simulation import ReducedSimulation

__all__ = ["ReducedActor"]

Floats = NDArray[np.float64]


class ReducedActor(SingleActor):
    """A reduced or blended model; its velocities are those of its coordinates, then of a floating base."""

    def __init__(self, simulation: ReducedSimulation):
        floats = simulation.model.base is not None
        super().__init__(simulation, len(simulation.coordinates) + 6 * floats, floats)
        self._reduced = simulation

    def place(self, first: int) -> None:
        """Take note of the number of the first body."""
        self._steps = ContactStep(self._reduced, first)

    def compiled(self) -> tuple[NDArray[Any], ...] | None:
        """Arrays for compiled steps of a world; None for blends, whose answer to impulses changes with the pose."""
        return self._steps.arrays() if self._steps.constant else None

    def begin(self, blocks: Blocks, before: Floats, u: Floats) -> None:
        """First half of a step with contacts: velocities `before` and after a step without them, and rows."""
        b = blocks
        self._steps.begin(b.count, b.turning, b.body, b.point, b.axes, b.side, b.J, b.Y, before, u)

    def finish(self, blocks: Blocks, u: Floats, w: Floats) -> None:
        """Second half: velocities are `u`, and positions move by `w` besides."""
        self._steps.finish(u, w)
