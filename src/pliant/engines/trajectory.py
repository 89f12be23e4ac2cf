"""`Trajectory`: poses over time, whatever engine they come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.mechanism import Mechanism

__all__ = ["Trajectory"]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses of all bodies at successive times.

    Attributes:
        mechanism: whose bodies they are.
        time: seconds, (frames,).
        poses: world poses, (frames, bodies, 4, 4).
    """

    mechanism: Mechanism
    time: NDArray[np.float64]
    poses: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)

    def pose(self, body: str) -> NDArray[np.float64]:
        """World poses of one body, (frames, 4, 4)."""
        index = self.mechanism.body_index(body)
        if index < 0:
            raise InputError("the world does not move: name a body")
        return self.poses[:, index]
