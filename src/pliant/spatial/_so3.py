"""Rotation matrices and rotation vectors, batched over leading axes."""

import numpy as np
from numpy.typing import ArrayLike

from ._quaternion import as_float, quat_log, scaled_quaternion
from ._trig import Array, half_cos_sinc, half_g


def hat(v: ArrayLike) -> Array:
    """Skew matrix ``v^`` of the cross product: ``v^ u = v × u``."""
    v = as_float(v, 3)
    M = np.zeros((*v.shape, 3))
    M[..., 2, 1] = v[..., 0]
    M[..., 0, 2] = v[..., 1]
    M[..., 1, 0] = v[..., 2]
    M[..., 1, 2] = -v[..., 0]
    M[..., 2, 0] = -v[..., 1]
    M[..., 0, 1] = -v[..., 2]
    return M


def vee(M: ArrayLike) -> Array:
    """Inverse of `hat`; of a matrix that is not skew, its skew part."""
    M = as_float(M, 3, 3)
    differences = [M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1]]
    return 0.5 * np.stack(differences, axis=-1)


def hat_polynomial(r: Array, linear: Array | float, quadratic: Array | float) -> Array:
    """``I + linear r^ + quadratic r^²``, with coefficients per batch element."""
    x, y, z = r[..., 0], r[..., 1], r[..., 2]
    M = np.empty((*r.shape, 3))
    M[..., 0, 0] = 1.0 - quadratic * (y * y + z * z)
    M[..., 1, 1] = 1.0 - quadratic * (x * x + z * z)
    M[..., 2, 2] = 1.0 - quadratic * (x * x + y * y)
    M[..., 0, 1] = quadratic * x * y - linear * z
    M[..., 1, 0] = quadratic * x * y + linear * z
    M[..., 0, 2] = quadratic * x * z + linear * y
    M[..., 2, 0] = quadratic * x * z - linear * y
    M[..., 1, 2] = quadratic * y * z - linear * x
    M[..., 2, 1] = quadratic * y * z + linear * x
    return M


def so3_exp(r: ArrayLike) -> Array:
    """Rotation matrix of a rotation vector: ``I + sinθ/θ r^ + (1 - cosθ)/θ² r^²``, for any ``θ = |r|``."""
    r = as_float(r, 3)
    c, s = half_cos_sinc(0.25 * np.sum(r * r, axis=-1))
    return hat_polynomial(r, s * c, 0.5 * s * s)


def so3_log(R: ArrayLike) -> Array:
    """Rotation vector of the rotation matrix ``R``, ``|r| <= π``, accurate at every angle.

    For an exact half turn, where ``r`` and ``-r`` are the same, the first non-zero component is positive.
    """
    return quat_log(scaled_quaternion(as_float(R, 3, 3)))


def so3_right_jacobian(r: ArrayLike) -> Array:
    """``J`` with ``exp(r + dr) = exp(r) exp(J dr)``: ``I - (1 - cosθ)/θ² r^ + (θ - sinθ)/θ³ r^²``.

    The left Jacobian is `so3_right_jacobian(-r)`, which is also the transpose.
    """
    r = as_float(r, 3)
    y = 0.25 * np.sum(r * r, axis=-1)
    c, s = half_cos_sinc(y)
    return hat_polynomial(r, -0.5 * s * s, 0.25 * (s * s - c * half_g(y, c, s)))


def so3_right_jacobian_inverse(r: ArrayLike) -> Array:
    """``I + r^/2 + (1 - θ/2 cot θ/2)/θ² r^²``, for ``θ = |r| < 2π``, where the Jacobian becomes singular."""
    r = as_float(r, 3)
    y = 0.25 * np.sum(r * r, axis=-1)
    c, s = half_cos_sinc(y)
    return hat_polynomial(r, 0.5, 0.25 * half_g(y, c, s) / s)
