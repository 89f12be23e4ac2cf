"""`Actor`: what contact asks of a simulation, so that any engine can touch.

A step with contacts comes in two halves. `begin` computes the mean velocities of a step without contacts and how they
respond to contact impulses; the contact solver then finds the impulses on all actors together; `finish` takes the step
with them. Actors whose velocities at the end of a step are not the mean ones, such as those that move by an exact map,
have a part in between: `strike` tells these, and if they do not agree with the contacts `respond` tells how they
change, and the solver finds the impulses again. Actors that keep joints rigid may find that the impulses need some of
them: `opens` releases these, and the step begins again.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONTACT", "ROLLING", "SPRING", "Actor", "Rows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CONTACT, SPRING, ROLLING = 0, 1, 2  # kinds of blocks
NORMAL = 0  # first row of a contact; two tangents follow
START, LENGTH, OFFSET = 0, 1, 2  # columns of `Rows.side`
IMPULSE, VELOCITY = 0, 1  # columns of `Rows.correction`


class Rows(NamedTuple):
    """Blocks of three rows between two bodies each: contacts, springs of pulls, rolling resistance.

    Arrays have room to spare; the number of blocks in use is passed along with them. Rows of a contact: along the
    normal, from the first to the second body, then along two tangents.

    Attributes:
        kind: CONTACT, SPRING or ROLLING.
        body: first and second body, -1 for none, (n, 2).
        point, axes: point of contact and the directions of the three rows, world, (n, 3) and (n, 3, 3).
        angular: whether the rows are of angular velocity.
        bound: coefficient of friction, or arm of rolling resistance, m.
        partner: of rolling resistance, the contact whose normal force bounds it.
        struck: whether an actor on a side has other velocities at the end of a step than on average.
        target: velocities wanted; of a contact the least normal velocity, m/s, (n, 3).
        softness: compliance of the rows, velocity per impulse, (n, 3).
        gap: distance between the surfaces at the start of the step, m.
        impulse: along the axes, on the second body, N s, (n, 3): first guess, then solution.
        change: of the impulses in the last sweep, (n, 3).
        correction: normal impulse that corrects positions (IMPULSE) and the velocity wanted of it (VELOCITY), (n, 2).
        side: per block and side, (n, 2, 3): where its three rows START in `J` and `Y`, their LENGTH, 0 for a body that
            cannot move, and the OFFSET of the actor's velocities in those of the world.
        J: velocity of the block per generalised velocity of the actor, with the sign of the side.
        Y: change of the actor's velocities per impulse of the block.
        delassus, inverse: velocity of a block per impulse of its own, softness included, and its inverse, (n, 3, 3).
    """

    kind: Ints
    body: Ints
    point: Floats
    axes: Floats
    angular: Bools
    bound: Floats
    partner: Ints
    struck: Bools
    target: Floats
    softness: Floats
    gap: Floats
    impulse: Floats
    change: Floats
    correction: Floats
    side: Ints
    J: Floats
    Y: Floats
    delassus: Floats
    inverse: Floats


class Actor(Protocol):
    """Something that moves and touches.

    Attributes:
        count: number of its bodies, which are numbered in the world from the `first` given to `place` on.
        size: number of its generalised velocities; the most there may be, if it changes between steps.
        fall: speed that gravity adds in a step if no contact holds the actor, m/s; 0 if springs hold it.
        stops: number of blocks for stops of joints that `begin` may add.
        strikes: whether its velocities at the end of a step differ from the mean ones: it has `strike`.
    """

    count: int
    size: int
    fall: float
    stops: int
    strikes: bool

    @property
    def sizes(self) -> Ints:
        """Length of the rows of each body, with the number of velocities that `prepare` told last, `size` at first."""
        ...

    @property
    def offsets(self) -> Ints:
        """Offset of the rows of each body in the actor's velocities."""
        ...

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        ...

    def write_poses(self, out: Floats) -> None:
        """Write the world poses of all bodies, (count, 4, 4)."""
        ...

    def step(self) -> None:
        """Take a step without contacts."""
        ...

    def prepare(self) -> int:
        """Get ready for a step; returns the number of generalised velocities in it, at most `size`."""
        ...

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> int:
        """First half of a step with contacts: write J and Y of the actor's sides of the first `count` blocks.

        Returns the number of blocks: the actor may add some for the stops of its joints.

        Args:
            count: number of blocks.
            rows: blocks of all actors.
            before: generalised velocities at the start of the step, written.
            u: mean generalised velocities of the step without contacts, written.
        """
        ...

    def strike(self, count: int, rows: Rows, u: Floats) -> None:
        """Velocities `u` at the end of the step with the impulses of the blocks."""
        ...

    def respond(self, count: int, rows: Rows) -> None:
        """Write Y anew: the response of the velocities at the end of the step."""
        ...

    def mobility(self, J: Floats, mean: Floats) -> Floats:
        """Velocities of rows J, (3, size), per impulse on them, 1/kg, (3, 3); `mean` are those over the step."""
        ...

    def opens(self, count: int, rows: Rows) -> bool:
        """Whether the impulses need joints that this step kept rigid: it is undone then, and they are released."""
        ...

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        ...

    def compiled(self) -> Any:
        """Named tuple of arrays for the compiled steps of a world; None if this actor steps from Python."""
        ...

    def warn(self) -> None:
        """Warn of steps in a compiled call that were beyond what the actor knows."""
        ...

    @property
    def state(self) -> Any:
        """All that moves, as a value that can be set."""
        ...

    @state.setter
    def state(self, value: Any) -> None: ...

    def reset(self) -> None:
        """Return to the start."""
        ...
