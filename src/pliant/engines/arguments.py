"""What simulations of all engines are given, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import InputError
from pliant.mechanism import Mechanism, edit

__all__ = ["EARTH", "acceleration", "seconds", "torques", "whole"]

EARTH = (0.0, 0.0, -9.81)


def whole(value: Any, what: str, least: int) -> int:
    """A whole number from `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what}: a whole number from {least} expected, not {value!r:.80}")
    return int(value)


def seconds(timestep: Any) -> float:
    """The length of a step."""
    if not isinstance(timestep, int | float | np.number) or not 0 < timestep < math.inf:
        raise InputError(f"timestep: a number of seconds above 0 expected, not {timestep!r}")
    return float(timestep)


def acceleration(gravity: ArrayLike) -> NDArray[np.float64]:
    """Gravity as an array."""
    try:
        out = np.array(gravity, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"gravity: 3 numbers expected, not {gravity!r:.80}") from None
    if out.shape != (3,) or not np.isfinite(out).all():
        raise InputError(f"gravity: 3 finite numbers expected, not {gravity!r:.80}")
    return out


def torques(m: Mechanism, joint: str, torque: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The dofs that a motor's joint or pattern means, and a torque for each."""
    dofs = edit.matching_dofs(m, joint)
    try:
        given = np.broadcast_to(np.asarray(torque, dtype=np.float64), (len(dofs),))
    except (TypeError, ValueError):
        raise InputError(f"motor of '{joint}': numbers expected, one torque or one per dof") from None
    if not np.isfinite(given).all():
        raise InputError(f"motor of '{joint}': not all numbers are finite")
    return dofs, given
