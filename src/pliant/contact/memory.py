"""`Memory`: what one step of contacts keeps for the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memory"]


class Memory:
    """Impulses of the contacts of the last step, to start from, and room for those of the next.

    Arrays have two parts, which take turns, and a third in which compiled steps keep what they may have to go back to.

    Attributes:
        now: where the last step is, and how many contacts it holds.
        first, second: their shapes.
        point, impulse: where and how much, world.
        steady, normal: impulses along the normal: what is likely to last, and what was.
        match: for every new contact the old one.
    """

    def __init__(self, capacity: int = 64):
        self.now = np.zeros(2, dtype=np.int64)
        self._allocate(capacity)

    @property
    def half(self) -> int:
        """Where the last step is."""
        return int(self.now[0])

    @property
    def count(self) -> int:
        """Contacts of the last step."""
        return int(self.now[1])

    @count.setter
    def count(self, value: int) -> None:
        self.now[1] = value

    def turn(self, count: int) -> None:
        """The other part is that of the last step now, with so many contacts."""
        self.now[:] = 1 - self.now[0], count

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.first, self.second = np.zeros((2, 3, capacity), dtype=np.int64)
        self.point, self.impulse = np.zeros((2, 3, capacity, 3))
        self.steady, self.normal = np.zeros((2, 3, capacity))
        self.taken, self.match = np.zeros(capacity, dtype=bool), np.zeros(capacity, dtype=np.int64)

    def reserve(self, count: int) -> None:
        """Make room for so many contacts; what is kept stays."""
        if count > self.capacity:
            kept = self.kept()
            self._allocate(2 * count)
            self._write(kept)

    def kept(self) -> tuple[NDArray, ...]:
        """Copies of what is kept of the last step."""
        h, n = self.half, self.count
        return tuple(part[h, :n].copy() for part in self._parts())

    def restore(self, kept: tuple[NDArray, ...]) -> None:
        """Go back to what `kept` gave; to nothing, if that is empty."""
        count = len(kept[0]) if kept else 0
        self.count = 0
        self.reserve(count)
        self.count = count
        self._write(kept)

    def _write(self, kept: tuple[NDArray, ...]) -> None:
        for part, given in zip(self._parts(), kept, strict=False):
            part[self.half, : len(given)] = given

    def _parts(self) -> tuple[NDArray, ...]:
        return self.first, self.second, self.point, self.impulse, self.steady, self.normal
