"""Definitions in 50 digits: exponentials by power series, Jacobians by a tiny difference, no closed forms."""

import mpmath
import numpy as np

DIGITS = 50
_STEP = mpmath.mpf(10) ** -24


def _exact(values):
    return mpmath.matrix(np.asarray(values, dtype=float).tolist())


def _hat(x, y, z):
    return mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def _generator(coordinates):
    """The matrix that is exponentiated: 3x3 of a rotation vector, 4x4 of a twist."""
    if len(coordinates) == 3:
        return _hat(*coordinates)
    M = mpmath.zeros(4)
    M[:3, :3] = _hat(*coordinates[3:])
    for i in range(3):
        M[i, 3] = coordinates[i]
    return M


def _coordinates(M):
    """Inverse of `_generator`."""
    angular = [M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]]
    return [M[i, 3] for i in range(M.cols - 1) if M.cols == 4] + [value / 2 for value in angular]


def _exp(coordinates):
    M = _generator(coordinates)
    total = term = mpmath.eye(M.rows)
    n = 0
    while n < 3 or mpmath.mnorm(term, 1) > mpmath.mpf(10) ** -DIGITS:
        n += 1
        term = term * M / n
        total = total + term
    return total


def exp(coordinates):
    """exp of a rotation vector or a twist, as an mpmath matrix; valid to some 20 rad."""
    with mpmath.workdps(DIGITS + 20):
        return _exp([mpmath.mpf(float(value)) for value in coordinates])


def right_jacobian(coordinates):
    """Column i is the twist of ``exp(x)⁻¹ exp(x + step e_i) - 1``, over the step."""
    with mpmath.workdps(DIGITS + 20):
        x = [mpmath.mpf(float(value)) for value in coordinates]
        n = len(x)
        inverse = _exp([-value for value in x])
        J = mpmath.zeros(n)
        for i in range(n):
            ahead = [value + (_STEP if j == i else 0) for j, value in enumerate(x)]
            J[:, i] = mpmath.matrix(_coordinates(inverse * _exp(ahead) - mpmath.eye(inverse.rows))) / _STEP
        return J


def inverse(M):
    with mpmath.workdps(DIGITS):
        return mpmath.inverse(M)


def skew_part(M):
    """Rotation vector of the skew part of the upper left 3x3."""
    with mpmath.workdps(DIGITS + 20):
        return mpmath.matrix(_coordinates(M)[-3:])


def rounded(M):
    """The nearest float64 array; a column vector becomes one-dimensional."""
    array = np.array(M.tolist(), dtype=object).astype(float)
    return array[:, 0] if M.cols == 1 else array


def error(actual, M):
    """Largest difference of a float64 array to an mpmath matrix, and the largest element of the latter."""
    with mpmath.workdps(DIGITS):
        difference = _exact(actual) - M
        return float(max(abs(value) for value in difference)), float(max(abs(value) for value in M))
