"""Rigid displacements as 4x4 matrices, twists ``(v, w)``, linear part first, batched over leading axes."""

import numpy as np
from numpy.typing import ArrayLike

from ._quaternion import as_float, cross, quat_normalize, quat_to_matrix
from ._so3 import hat, hat_polynomial, so3_log
from ._trig import Array, half_cos_sinc, half_g, half_k


def _assemble(R: Array, p: Array) -> Array:
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3] = R
    T[..., :3, 3] = p
    T[..., 3, 3] = 1.0
    return T


def pose(position: ArrayLike = (0.0, 0.0, 0.0), orientation: ArrayLike | None = None) -> Array:
    """Pose matrix ``[[R, p], [0, 1]]`` from a position and an orientation.

    Args:
        position: ``p``, shape (..., 3).
        orientation: None for the identity, a quaternion w, x, y, z of any length (it is normalised), shape
            (..., 4), or a rotation matrix, shape (..., 3, 3), taken as it is.
    """
    p = as_float(position, 3)
    if orientation is None:
        return _assemble(np.eye(3), p)
    orientation = np.asarray(orientation, dtype=np.float64)
    if orientation.shape[-2:] == (3, 3):
        return _assemble(orientation, p)
    if orientation.shape[-1:] == (4,):
        return _assemble(quat_to_matrix(quat_normalize(orientation)), p)
    raise ValueError(f"orientation must have shape (..., 4) or (..., 3, 3), got {orientation.shape}")


def se3_exp(xi: ArrayLike) -> Array:
    """``exp(ξ)``: rotation ``exp(w)``, ``p = v + (1 - cosθ)/θ² w × v + (θ - sinθ)/θ³ w × (w × v)``."""
    xi = as_float(xi, 6)
    v, w = xi[..., :3], xi[..., 3:]
    y = 0.25 * np.sum(w * w, axis=-1)
    c, s = half_cos_sinc(y)
    linear = 0.5 * s * s
    quadratic = 0.25 * (s * s - c * half_g(y, c, s))
    wv = cross(w, v)
    return _assemble(
        hat_polynomial(w, s * c, linear),
        v + linear[..., None] * wv + quadratic[..., None] * cross(w, wv),
    )


def se3_log(T: ArrayLike) -> Array:
    """Twist with ``exp(ξ) = T``, ``|w| <= π``: ``v = p - w × p / 2 + (1 - θ/2 cot θ/2)/θ² w × (w × p)``.

    The direction of ``w`` for an exact half turn is that of `so3_log`.
    """
    T = as_float(T, 4, 4)
    p, w = T[..., :3, 3], so3_log(T[..., :3, :3])
    y = 0.25 * np.sum(w * w, axis=-1)
    c, s = half_cos_sinc(y)
    wp = cross(w, p)
    v = p - 0.5 * wp + (0.25 * half_g(y, c, s) / s)[..., None] * cross(w, wp)
    return np.concatenate([v, w], axis=-1)


def se3_inverse(T: ArrayLike) -> Array:
    """``T_b_a`` from ``T_a_b``: ``[[Rᵀ, -Rᵀ p], [0, 1]]``."""
    T = as_float(T, 4, 4)
    Rt = np.swapaxes(T[..., :3, :3], -1, -2)
    return _assemble(Rt, -np.einsum("...ij,...j->...i", Rt, T[..., :3, 3]))


def transform_points(T: ArrayLike, p: ArrayLike) -> Array:
    """``R p + t``; leading axes broadcast: one pose moves many points, `T[:, None]` one set per pose."""
    T, p = as_float(T, 4, 4), as_float(p, 3)
    return np.einsum("...ij,...j->...i", T[..., :3, :3], p) + T[..., :3, 3]


def adjoint(T: ArrayLike) -> Array:
    """``[[R, p^ R], [0, R]]``, which for ``T_a_b`` takes twists in frame b to frame a.

    Wrenches go the other way with the transpose: `f_b = adjoint(T_a_b).T @ f_a`.
    """
    T = as_float(T, 4, 4)
    R = T[..., :3, :3]
    X = np.zeros((*T.shape[:-2], 6, 6))
    X[..., :3, :3] = R
    X[..., 3:, 3:] = R
    X[..., :3, 3:] = hat(T[..., :3, 3]) @ R
    return X


def ad(xi: ArrayLike) -> Array:
    """``[[w^, v^], [0, w^]]``, the Lie bracket; its matrix exponential is `adjoint(se3_exp(xi))`."""
    xi = as_float(xi, 6)
    v, w = xi[..., :3], xi[..., 3:]
    X = np.zeros((*xi.shape, 6))
    X[..., 3:, 3:] = X[..., :3, :3] = hat(w)
    X[..., :3, 3:] = hat(v)
    return X


def _scaled(coefficient: Array, matrix: Array) -> Array:
    return coefficient[..., None, None] * matrix


def se3_right_jacobian(xi: ArrayLike) -> Array:
    """``J`` with ``exp(ξ + dξ) = exp(ξ) exp(J dξ)``, as a quartic in ``ad``, the matrix of `ad(xi)`.

    It has the eigenvalues 0 and ``± i θ``, the latter double, so ``J = (1 - exp(-ad)) / ad`` is the polynomial with
    the same values there and the same slopes at ``± i θ``. The left Jacobian is `se3_right_jacobian(-xi)`.
    """
    xi = as_float(xi, 6)
    theta2 = np.sum(xi[..., 3:] ** 2, axis=-1)
    y = 0.25 * theta2
    c, s = half_cos_sinc(y)
    g = half_g(y, c, s)
    k = half_k(y, s, g)
    cubic = s * g / 8.0
    quartic = (s * g - c * k) / 32.0
    linear = 0.5 * s * s + cubic * theta2
    quadratic = 0.25 * (s * s - c * g) + quartic * theta2
    A = ad(xi)
    A2 = A @ A
    even = _scaled(quadratic, A2) + _scaled(quartic, A2 @ A2)
    return np.eye(6) + even - A @ (_scaled(linear, np.eye(6)) + _scaled(cubic, A2))


def se3_right_jacobian_inverse(xi: ArrayLike) -> Array:
    """Inverse of `se3_right_jacobian` for ``|w| < 2π``: ``I + ad/2 + A ad² + B ad⁴``.

    With ``e = (1 - θ/2 cot θ/2)/θ²``: ``B = -de/dθ²`` and ``A = e + B θ²``, by the same interpolation.
    """
    xi = as_float(xi, 6)
    theta2 = np.sum(xi[..., 3:] ** 2, axis=-1)
    y = 0.25 * theta2
    c, s = half_cos_sinc(y)
    g = half_g(y, c, s)
    quartic = (half_k(y, s, g) * s - g * g) / (32.0 * s * s)
    quadratic = 0.25 * g / s + quartic * theta2
    A = ad(xi)
    A2 = A @ A
    return np.eye(6) + 0.5 * A + _scaled(quadratic, A2) + _scaled(quartic, A2 @ A2)
