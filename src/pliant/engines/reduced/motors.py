"""`Motors`: torques in the joints of a reduced model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced import _kernels
from pliant.engines.reduced.coordinates import Amplitudes
from pliant.engines.reduced.packing import Packed
from pliant.errors import InputError

__all__ = ["Motors"]

Floats = NDArray[np.float64]


class Motors:
    """Torques as part of what a step adds at all times, so that steps cost what they cost without.

    By virtual work a torque acts on coordinates through the model's basis. Where static shapes of end effectors are
    the basis, these end up just where the torque puts them in the whole mechanism.
    """

    def __init__(self, packed: Packed, timestep: float, count: int):
        self.torque = np.zeros(count)
        self._coordinates, self._h = packed.coordinates, timestep
        start = packed.sizes[_kernels.STEADY]
        self._steady = packed.constants[start : start + packed.coordinates.count]
        self._plain = self._steady.copy()

    def set(self, dofs: NDArray[np.int64], torque: Floats) -> None:
        """Torques of some dofs; those of the others stay."""
        c = self._coordinates
        if not isinstance(c, Amplitudes):
            if not torque.any():
                return
            raise InputError("motors are for a single model: a blend takes wrenches on its end effectors")
        self.torque[dofs] = torque
        self._steady[:] = self._plain + self._h * (c.inverse @ (self.torque @ c.model.basis))
