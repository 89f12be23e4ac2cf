"""Minimum and root of a function of one variable, by scipy, as plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.optimize


def minimum(function: Callable[[float], Any], low: float, high: float) -> float:
    """Where a function is least between two numbers, to about the square root of rounding."""
    found: Any = scipy.optimize.minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.x)


def root(function: Callable[[float], Any], low: float, high: float) -> float:
    """Where a function that changes its sign between two numbers is zero."""
    found: Any = scipy.optimize.brentq(function, low, high, xtol=1e-15)
    return float(found)
