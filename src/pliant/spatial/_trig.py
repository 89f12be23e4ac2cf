"""Even trigonometric functions of the half angle, without cancellation at any angle.

Every coefficient of SO(3) and SE(3) follows from four smooth functions of ``y = h²``, ``h = θ/2``
(spherical Bessel functions ``j_n(h) / hⁿ``), so that no other module needs a series near zero:

    c = cos h,   s = sin h / h,   g = (s - c) / y,   k = (3 g - s) / y

    sin θ / θ                     = s c
    (1 - cos θ) / θ²              = s² / 2
    (θ - sin θ) / θ³              = (s² - c g) / 4
    (1 - θ/2 cot θ/2) / θ²        = g / (4 s)
    dc/dy = -s/2,   ds/dy = -g/2,   dg/dy = -k/2
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The quotients of g and k lose digits below this value of y; it is just above (π/2)², so that the series
# serve all rotations up to half a turn and the quotients the rest.
_SERIES_BELOW = 2.5
_G_SERIES = tuple((-1) ** n * (2 * n + 2) / factorial(2 * n + 3) for n in range(12))
_K_SERIES = tuple((-1) ** n * (2 * n + 2) * (2 * n + 4) / factorial(2 * n + 5) for n in range(12))


def _horner(coefficients: tuple[float, ...], y: Array) -> Array:
    total = np.full_like(y, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * y + coefficient
    return total


def _series_or_quotient(coefficients: tuple[float, ...], y: Array, numerator: Array) -> Array:
    small = y < _SERIES_BELOW
    series = _horner(coefficients, np.where(small, y, 0.0))
    return np.where(small, series, numerator / np.where(small, 1.0, y))


def half_cos_sinc(y: Array) -> tuple[Array, Array]:
    """``c = cos h`` and ``s = sin h / h`` for ``y = h²``."""
    h = np.sqrt(y)
    # sin(h) / h is accurate for every h > 0: only the division 0 / 0 needs care.
    zero = h == 0.0
    return np.cos(h), np.where(zero, 1.0, np.sin(h) / np.where(zero, 1.0, h))


def half_g(y: Array, c: Array, s: Array) -> Array:
    """``g = (s - c) / y``, 1/3 at zero."""
    return _series_or_quotient(_G_SERIES, y, s - c)


def half_k(y: Array, s: Array, g: Array) -> Array:
    """``k = (3 g - s) / y``, 1/15 at zero."""
    return _series_or_quotient(_K_SERIES, y, 3.0 * g - s)
