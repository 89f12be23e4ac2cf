"""Arguments of a world, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
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
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}: 3 numbers expected, not {value!r:.80}") from None
    if out.shape != (3,) or not np.isfinite(out).all():
        raise InputError(f"{what}: 3 finite numbers expected, not {value!r:.80}")
    return out
