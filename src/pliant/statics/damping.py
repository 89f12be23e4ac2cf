"""Dampers in proportion to springs, for a given damping ratio of the first vibration."""

from __future__ import annotations

import numpy as np

from pliant.checks import number
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.statics.configuration import Configuration
from pliant.statics.inertia import Inertia
from pliant.statics.modes import natural_modes

__all__ = ["with_damping_ratio"]


def with_damping_ratio(m: Mechanism, ratio: float) -> Mechanism:
    """See `Mechanism.with_damping_ratio`."""
    ratio = number(ratio, "damping ratio", least=0.0)
    if not (m.stiffness.any() or m.tendon_stiffness.any()):
        raise InputError(f"'{m.name}' has no springs, so no vibrations to damp: give joints stiffness first")
    at = Configuration(m.with_fixed_base() if m.floating else m)
    tangent = at._tangent()
    speed, _ = natural_modes(Inertia(at.mechanism, at.q), lambda f: tangent.respond(f)[0], 1)
    if not len(speed):
        raise InputError(f"'{m.name}' cannot vibrate: no spring moves any mass")
    rate = 2 * ratio / float(speed[0])  # s
    return m.replace(
        damping=np.where(m.stiffness > 0, rate * m.stiffness, m.damping),
        tendon_damping=np.where(m.tendon_stiffness > 0, rate * m.tendon_stiffness, m.tendon_damping),
    )
