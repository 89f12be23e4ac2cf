"""Energy of a mechanism in motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics.loads import spring_coordinates

__all__ = ["Energy", "energy"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Energy:
    """Energies, J.

    Attributes:
        kinetic: of bodies and rotors.
        potential: of bodies in gravity, zero at the world's origin.
        elastic: of springs and tendons.
    """

    kinetic: float
    potential: float
    elastic: float

    @property
    def total(self) -> float:
        """All together."""
        return self.kinetic + self.potential + self.elastic


def energy(m: Mechanism, q: Floats, poses: Floats, gravity: Floats, kinetic: float) -> Energy:
    """Potential and elastic energy at q, beside the kinetic energy."""
    centres = np.einsum("nij,nj->ni", poses[:, :3, :3], m.com) + poses[:, :3, 3]
    x = spring_coordinates(m, q, m.rest)
    stretch = np.where(m.dof_kind == BALL, x, x - m.rest[m.dof_coordinate])
    elastic = 0.5 * float(m.stiffness @ stretch**2)
    if len(m.tendons):
        elastic += 0.5 * float(m.tendon_stiffness @ (m.tendons.dense(m.nv) @ x - m.tendon_rest) ** 2)
    return Energy(float(kinetic), -float(m.mass @ (centres @ gravity)), elastic)
