"""`Actor`: what contact asks of a simulation, so that any engine can touch.

A step with contacts comes in two halves. `begin` finds the velocities at the end of a step without contacts, and how
they answer to impulses; the contact solver then finds the impulses of all actors together; `finish` takes the step.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Actor", "Blocks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Blocks(Protocol):
    """Blocks of three contact rows between two bodies each; the first `count` are in use.

    Attributes:
        kind: contact, spring or rolling resistance.
        body: first and second body, -1 for none, (n, 2).
        point, axes: where, and along which three directions, world, (n, 3) and (n, 3, 3).
        turning: whether rows are about angular velocities.
        give: velocity per impulse by which rows give way, (n, 3).
        impulse: along the axes, on the second body, N s, (n, 3).
        amount: impulse that corrects positions along the normal, and the velocity wanted of it, (n, 2).
        elastic: whether a block is a spring or gives way, so that it may bring energy.
        side: per side, where its rows start in `J` and `Y`, their length, and where the actor's velocities start.
        J, Y: velocity of a block per velocity of the actor; change of the latter per impulse.
    """

    count: int
    kind: Ints
    body: Ints
    point: Floats
    axes: Floats
    turning: Bools
    give: Floats
    impulse: Floats
    amount: Floats
    side: Ints
    J: Floats
    Y: Floats

    @property
    def elastic(self) -> Bools: ...


class Actor(Protocol):
    """Something that moves and touches.

    Attributes:
        count: number of its bodies, which are numbered in the world from the `first` given to `place` on.
        size: number of its generalised velocities.
        fall: what gravity adds to its speed in a step if no contact holds it, m/s; 0 if springs hold it.
    """

    count: int
    size: int
    fall: float

    @property
    def sizes(self) -> Ints:
        """Length of the rows of each body."""
        ...

    @property
    def offsets(self) -> Ints:
        """Where the rows of each body start among the actor's velocities."""
        ...

    def place(self, first: int) -> None:
        """Take note of the number of the first body."""
        ...

    def write_poses(self, out: Floats) -> None:
        """Poses of all bodies, (count, 4, 4)."""
        ...

    def step(self) -> None:
        """A step in which nothing touches."""
        ...

    def begin(self, blocks: Blocks, before: Floats, u: Floats) -> None:
        """First half of a step with contacts: velocities `before` and after a step without them, and rows."""
        ...

    def finish(self, blocks: Blocks, u: Floats, w: Floats) -> None:
        """Second half: velocities are `u`, and positions move by `w` besides."""
        ...

    def compiled(self) -> tuple[NDArray[Any], ...] | None:
        """Arrays for compiled steps of a world; None if this actor steps from Python."""
        ...

    @property
    def state(self) -> Any:
        """All that moves, as a value that can be set."""
        ...

    @state.setter
    def state(self, value: Any) -> None: ...

    def reset(self) -> None:
        """Back to the start."""
        ...
