"""`FloatingBase`: the part of a `ReducedSimulation` that moves as a rigid body, TVCG section 6.1."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.engines.reduced import _kernels
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.packing import Packed
from pliant.engines.wrenches import entry
from pliant.errors import InputError

__all__ = ["FloatingBase"]

Floats = NDArray[np.float64]


class FloatingBase(ABC):
    """Where the base is and how fast; all zero for models whose base is fixed."""

    _model: ReducedModel | BlendedModel
    _packed: Packed
    _base: Floats  # centre of mass, quaternion, velocity, angular momentum

    @abstractmethod
    def _reconstruct(self) -> None: ...

    def _spin(self) -> Floats:
        return self._spin_map() @ self._base[10:13]

    def _spin_map(self) -> Floats:
        """Inverse inertia of the base about its centre of mass, world axes."""
        start = int(self._packed.sizes[_kernels.BASE])
        inverse = self._packed.constants[start + 4 : start + 13].reshape(3, 3)
        turn = spatial.quat_to_matrix(self._base[3:7])
        return turn @ inverse @ turn.T

    @property
    def base_centre(self) -> Floats:
        """Centre of mass of all that a floating base carries, as if fixed to it, in the base's frame, (3,)."""
        if self._model.base is None:
            return np.zeros(3)
        start = int(self._packed.sizes[_kernels.BASE])
        return self._packed.constants[start + 1 : start + 4].copy()

    @property
    def base_velocity(self) -> Floats:
        """Velocity of a floating base's centre of mass and its angular velocity, world axes, (6,)."""
        if self._model.base is None:
            return np.zeros(6)
        return np.concatenate([self._base[7:10], self._spin()])

    def move_base(
        self, pose: ArrayLike | None = None, velocity: ArrayLike | None = None, spin: ArrayLike | None = None
    ) -> None:
        """Place a floating base and set it in motion.

        Args:
            pose: of the base's body, 4 x 4; unchanged if None.
            velocity: of the centre of mass, world axes, m/s; unchanged if None.
            spin: angular velocity, world axes, rad/s; unchanged if None.
        """
        if self._model.base is None:
            raise InputError("this model's base is fixed: there is nothing to move")
        place = None if pose is None else np.array(pose, dtype=np.float64)
        if place is not None and (
            place.shape != (4, 4)
            or not np.isfinite(place).all()
            or np.abs(place[:3, :3] @ place[:3, :3].T - np.eye(3)).max() > 1e-9
        ):
            raise InputError("pose: a 4 x 4 matrix with a rotation in it expected")
        base = self._model.base.body
        moved, turned = (entry(base, v, None, None, "world")[:3] for v in (velocity, spin))
        rate = self._spin() if spin is None else turned
        if place is not None:
            self._base[:3] = place[:3, :3] @ self.base_centre + place[:3, 3]
            self._base[3:7] = spatial.quat_from_matrix(place[:3, :3])
        if velocity is not None:
            self._base[7:10] = moved
        self._base[10:13] = np.linalg.solve(self._spin_map(), rate)
        self._reconstruct()
