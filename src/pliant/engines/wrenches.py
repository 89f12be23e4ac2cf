"""Wrenches on bodies, as the kernels of all engines take them; for one simulation or for many alike."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError

__all__ = ["WRENCH_SIZE", "entry"]

Floats = NDArray[np.float64]
WRENCH_SIZE = 16  # force, torque (world axes), where that force acts, wrench (body axes), whether any
_ZERO = np.zeros(3)


def entry(body: str, force: Any, torque: Any, point: Any, frame: str, copies: int | None = None) -> Floats:
    """One wrench, (WRENCH_SIZE,), or one per copy, (copies, WRENCH_SIZE); three numbers go to all copies."""
    if frame not in ("world", "body"):
        raise InputError(f"wrench on '{body}': frame is 'world' or 'body', not {frame!r}")
    f = _vector(force, "force", body, copies)
    t = _vector(torque, "torque", body, copies)
    p = _vector(point, "point", body, copies)
    out = np.zeros((WRENCH_SIZE,) if copies is None else (copies, WRENCH_SIZE))
    if frame == "world":
        out[..., 0:3], out[..., 3:6], out[..., 6:9] = f, t, p
    else:
        out[..., 9:12], out[..., 12:15] = f, t if p is _ZERO else t + np.cross(p, f)
    out[..., 15] = out.any(axis=-1)
    return out


def _vector(value: Any, word: str, body: str, copies: int | None) -> Floats:
    if value is None:
        return _ZERO
    what = f"{word} on '{body}'"
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: numbers expected, not {value!r:.80}") from None
    if numbers.shape != (3,) and (copies is None or numbers.shape != (copies, 3)):
        expected = "3 numbers" if copies is None else f"3 numbers, or {copies} times 3,"
        raise InputError(f"{what}: {expected} expected, got shape {numbers.shape}")
    # numbers of Python: several times faster for three of them
    if not all(map(isfinite, numbers.ravel().tolist())):
        raise InputError(f"{what} is not finite")
    return numbers
