"""`Blocks`: all rows of a step's contacts, springs and rolling resistances, and their solution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.contact import _solver_kernels as kernels
from pliant.contact._solver_kernels import CONTACT, ROLLING, SPRING

__all__ = ["CONTACT", "ROLLING", "SPRING", "Blocks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Blocks:
    """Blocks of three rows between two bodies each, in arrays with room to spare; the first `count` are in use.

    Attributes:
        kind: CONTACT, SPRING or ROLLING.
        body: first and second body, -1 for none.
        point, axes: where, and along which three directions, world.
        bound: coefficient of friction, or arm of rolling resistance.
        partner: of rolling resistance, the contact whose normal force bounds it.
        target: wanted velocities; of a contact, the least one along the normal.
        give: velocity per impulse by which rows give way.
        gap: distance between the surfaces at the start of the step.
        impulse: along the axes, N s: given as a first guess, then found.
        turning: whether rows are about angular velocities.
        amount: impulse that corrects positions along the normal, and the velocity wanted of it.
        side, J, Y: rows, see `_solver_kernels`.
    """

    def __init__(self, capacity: int = 64):
        self.count = 0
        self._reserve(capacity)
        self.J, self.Y = np.zeros((2, 1024))

    def _reserve(self, capacity: int) -> None:
        self.capacity = capacity
        self.kind, self.partner = np.zeros((2, capacity), dtype=np.int64)
        self.body = np.full((capacity, 2), -1, dtype=np.int64)
        self.point, self.target, self.give, self.impulse, self.moved = np.zeros((5, capacity, 3))
        self.axes, self.block, self.inverse = np.zeros((3, capacity, 3, 3))
        self.bound, self.gap = np.zeros((2, capacity))
        self.side = np.zeros((capacity, 2, 3), dtype=np.int64)
        self.amount = np.zeros((capacity, 2))
        self.turning = np.zeros(capacity, dtype=bool)

    @property
    def elastic(self) -> NDArray[np.bool_]:
        """Whether a block is a spring, or a contact that gives way: those may bring energy."""
        return (self.kind == SPRING) | (self.give[:, 0] > 0.0)

    def room(self, numbers: int) -> None:
        """Make room for rows of so many numbers."""
        if numbers > len(self.J):
            self.J, self.Y = np.zeros((2, 2 * numbers))

    def reserve(self, count: int) -> None:
        """Make room for so many blocks and empty them all."""
        if count > self.capacity:
            self._reserve(2 * count)
        self.count = count

    def lay_out(self, size: Ints, offset: Ints) -> None:
        """Make room for rows: `size` velocities of the actor of each body, from `offset` on."""
        self.room(kernels.lay_out(self.count, self.body, size, offset, self.side))

    def solve(self, u: Floats, iterations: int, tolerance: float) -> tuple[int, float]:
        """Impulses, starting from those given, and what they make of the velocities `u`.

        Returns:
            Sweeps, and the residual, m/s.
        """
        kernels.blocks(self.count, self.side, self.give, self.J, self.Y, self.block, self.inverse)
        return kernels.solve(
            self.count,
            self.kind,
            self.partner,
            self.bound,
            self.target,
            self.give,
            self.side,
            self.J,
            self.Y,
            self.block,
            self.inverse,
            self.impulse,
            self.moved,
            u,
            iterations,
            tolerance,
        )

    def project(
        self,
        u: Floats,
        w: Floats,
        slop: float,
        share: float,
        deep: float,
        h: float,
        iterations: int,
        tolerance: float,
    ) -> int:
        """Velocities `w` for positions alone that bring bodies out of each other; returns the sweeps it took."""
        return kernels.project(
            self.count,
            self.kind,
            self.give,
            self.gap,
            self.side,
            self.J,
            self.Y,
            self.block,
            u,
            w,
            self.amount,
            slop,
            share,
            deep,
            h,
            iterations,
            tolerance,
        )
