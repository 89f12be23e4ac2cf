"""Energies of a mechanism at given coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics.loads import Loads, spring_coordinates

__all__ = ["elastic_energy", "gravity_energy"]

Floats = NDArray[np.float64]


def elastic_energy(m: Mechanism, q: Floats, loads: Loads | None = None) -> float:
    """Energy of springs and tendons, J; with the rest positions of `loads`, if given, instead of the mechanism's."""
    rest, tendon_rest = (m.rest, m.tendon_rest) if loads is None else (loads.rest, loads.tendon_rest)
    x = spring_coordinates(m, q, rest)
    stretch = np.where(m.dof_kind == BALL, x, x - rest[m.dof_coordinate])
    out = 0.5 * float(m.stiffness @ stretch**2)
    if len(m.tendons):
        out += 0.5 * float(m.tendon_stiffness @ (m.tendons.dense(m.nv) @ x - tendon_rest) ** 2)
    return out


def gravity_energy(m: Mechanism, poses: Floats, gravity: Floats) -> float:
    """Energy of bodies in gravity, J, zero at the world's origin."""
    centres = np.einsum("nij,nj->ni", poses[:, :3, :3], m.com) + poses[:, :3, 3]
    return -float(m.mass @ (centres @ gravity))
