"""Damping ratio of the first vibration, and dampers in proportion to springs that give it one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.checks import number
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.statics.configuration import Configuration
from pliant.statics.inertia import Inertia
from pliant.statics.modes import natural_modes

__all__ = ["damping_ratio", "with_damping_ratio"]

Floats = NDArray[np.float64]


def with_damping_ratio(m: Mechanism, ratio: float) -> Mechanism:
    """See `Mechanism.with_damping_ratio`."""
    ratio = number(ratio, "damping ratio", least=0.0)
    speed, _ = _first_vibration(m.with_fixed_base() if m.floating else m)
    rate = 2 * ratio / speed  # s
    return m.replace(
        damping=np.where(m.stiffness > 0, rate * m.stiffness, m.damping),
        tendon_damping=np.where(m.tendon_stiffness > 0, rate * m.tendon_stiffness, m.tendon_damping),
    )


def damping_ratio(m: Mechanism) -> float:
    """Damping ratio of the first vibration about the reference pose by the dampers that a mechanism has.

    Raises:
        InputError: it cannot vibrate.
    """
    held = m.with_fixed_base() if m.floating else m
    speed, shape = _first_vibration(held)
    power = float(held.damping @ shape**2)
    for r, damping in enumerate(held.tendon_damping.tolist()):
        dofs, coefficients = held.tendons.row(r)
        power += damping * float(coefficients @ shape[dofs]) ** 2
    return power / (2 * speed)  # of unit modal mass


def _first_vibration(m: Mechanism) -> tuple[float, Floats]:
    """Angular frequency, rad/s, and joint motion of unit modal mass, about the reference pose."""
    if not (m.stiffness.any() or m.tendon_stiffness.any()):
        raise InputError(f"'{m.name}' has no springs, so no vibrations to damp: give joints stiffness first")
    at = Configuration(m)
    tangent = at._tangent()
    speed, shapes = natural_modes(Inertia(m, at.q), lambda f: tangent.respond(f)[0], 1)
    if not len(speed):
        raise InputError(f"'{m.name}' cannot vibrate: no spring moves any mass")
    return float(speed[0]), shapes[0]
