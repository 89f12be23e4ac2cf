"""Arguments of a world, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import vector
from pliant.errors import InputError

__all__ = ["placed", "three"]

Floats = NDArray[np.float64]


def placed(name: str, position: ArrayLike, orientation: ArrayLike | None) -> Floats:
    """A pose, 4 x 4."""
    try:
        out = spatial.pose(position, orientation)
    except (TypeError, ValueError) as error:
        raise InputError(f"'{name}': position and orientation must be numbers ({error})") from None
    if not np.isfinite(out).all():
        raise InputError(f"'{name}': position and orientation must be finite")
    return out


def three(value: ArrayLike, what: str) -> Floats:
    """Three finite numbers."""
    return vector(value, what)
