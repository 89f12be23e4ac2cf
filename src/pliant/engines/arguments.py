"""Checks of the arguments that all engines take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import number, vector, whole
from pliant.errors import InputError
from pliant.mechanism import Mechanism, edit

__all__ = ["EARTH", "acceleration", "seconds", "torques", "whole"]

EARTH = (0.0, 0.0, -9.81)


def seconds(timestep: Any) -> float:
    """Length of a step, s."""
    return number(timestep, "timestep", above=0.0, expected="a number of seconds above 0")


def acceleration(gravity: ArrayLike) -> NDArray[np.float64]:
    """Gravity, m/s², (3,)."""
    return vector(gravity, "gravity")


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
