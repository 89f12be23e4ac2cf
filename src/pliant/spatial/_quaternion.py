"""Unit quaternions, in the order w, x, y, z, batched over leading axes.

``q`` and ``-q`` are the same rotation. Where a function chooses, it returns the one with ``w > 0``, or, for
half turns (``w = 0``), the one whose first non-zero component is positive.
"""

import numpy as np
from numpy.typing import ArrayLike

from ._trig import Array, half_cos_sinc


def as_float(value: ArrayLike, *tail: int) -> Array:
    """`value` as float64, with the trailing axes it must have."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape[array.ndim - len(tail) :] != tail:
        raise ValueError(f"expected an array of shape {('...', *tail)}, got {array.shape}")
    return array


def cross(a: Array, b: Array) -> Array:
    """Cross product over the last axis (`np.cross` is several times slower on small arrays)."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def _canonical(q: Array) -> Array:
    """The sign of ``q`` that the module returns."""
    first = np.argmax(q != 0.0, axis=-1, keepdims=True)
    # A negative w is the first non-zero component, so one rule covers half turns too.
    return np.where(np.take_along_axis(q, first, axis=-1) < 0.0, -q, q)


def scaled_quaternion(R: Array) -> Array:
    """A quaternion of any length, of canonical sign, along that of the rotation matrix ``R``.

    Row i of the symmetric matrix 4 q qᵀ is 4 q_i q, linear in R; the row of the largest q_i is accurate.
    """
    r00, r01, r02 = R[..., 0, 0], R[..., 0, 1], R[..., 0, 2]
    r10, r11, r12 = R[..., 1, 0], R[..., 1, 1], R[..., 1, 2]
    r20, r21, r22 = R[..., 2, 0], R[..., 2, 1], R[..., 2, 2]
    wx, wy, wz = r21 - r12, r02 - r20, r10 - r01
    xy, xz, yz = r01 + r10, r02 + r20, r12 + r21
    outer = np.empty((*R.shape[:-2], 4, 4))
    outer[..., 0, 0] = 1.0 + r00 + r11 + r22
    outer[..., 1, 1] = 1.0 + r00 - r11 - r22
    outer[..., 2, 2] = 1.0 - r00 + r11 - r22
    outer[..., 3, 3] = 1.0 - r00 - r11 + r22
    for (i, j), value in {(0, 1): wx, (0, 2): wy, (0, 3): wz, (1, 2): xy, (1, 3): xz, (2, 3): yz}.items():
        outer[..., i, j] = outer[..., j, i] = value
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :]
    return _canonical(row)


def quat_multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Hamilton product: the rotation `quat_to_matrix(a) @ quat_to_matrix(b)`."""
    a, b = as_float(a, 4), as_float(b, 4)
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def quat_conjugate(q: ArrayLike) -> Array:
    """``(w, -x, -y, -z)``, the inverse of a unit quaternion."""
    return as_float(q, 4) * np.array([1.0, -1.0, -1.0, -1.0])


def quat_normalize(q: ArrayLike) -> Array:
    """``q / |q|``, keeping its sign; a zero quaternion gives NaN."""
    q = as_float(q, 4)
    return q / np.sqrt(np.sum(q * q, axis=-1, keepdims=True))


def quat_exp(r: ArrayLike) -> Array:
    """Quaternion of the rotation vector ``r``: ``(cos θ/2, sin(θ/2) r/θ)``, ``θ = |r|`` of any size.

    It is a double cover: ``w`` is negative for ``π < θ < 3π``.
    """
    r = as_float(r, 3)
    c, s = half_cos_sinc(0.25 * np.sum(r * r, axis=-1))
    return np.concatenate([c[..., None], 0.5 * s[..., None] * r], axis=-1)


def quat_log(q: ArrayLike) -> Array:
    """Rotation vector of ``q``, ``|r| <= π``, the same for ``q`` and ``-q`` and independent of ``|q|``."""
    q = _canonical(as_float(q, 4))
    w, v = q[..., 0], q[..., 1:]
    n = np.sqrt(np.sum(v * v, axis=-1))
    # atan2 is accurate at both ends. n is zero at the identity, and where |v|² underflows: there r = 2 v / w.
    zero = n == 0.0
    factor = np.where(zero, 2.0 / np.where(zero, w, 1.0), 2.0 * np.arctan2(n, w) / np.where(zero, 1.0, n))
    return factor[..., None] * v


def quat_to_matrix(q: ArrayLike) -> Array:
    """Rotation matrix of the unit quaternion ``q``."""
    q = as_float(q, 4)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    R = np.empty((*q.shape[:-1], 3, 3))
    R[..., 0, 0] = 1.0 - 2.0 * (y * y + z * z)
    R[..., 1, 1] = 1.0 - 2.0 * (x * x + z * z)
    R[..., 2, 2] = 1.0 - 2.0 * (x * x + y * y)
    R[..., 0, 1] = 2.0 * (x * y - w * z)
    R[..., 1, 0] = 2.0 * (x * y + w * z)
    R[..., 0, 2] = 2.0 * (x * z + w * y)
    R[..., 2, 0] = 2.0 * (x * z - w * y)
    R[..., 1, 2] = 2.0 * (y * z - w * x)
    R[..., 2, 1] = 2.0 * (y * z + w * x)
    return R


def quat_from_matrix(R: ArrayLike) -> Array:
    """Unit quaternion of the rotation matrix ``R``, with ``w >= 0``; accurate up to exact half turns."""
    return quat_normalize(scaled_quaternion(as_float(R, 3, 3)))


def quat_rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """`quat_to_matrix(q) @ v`, ``q`` unit: ``v + w t + u × t``, ``t = 2 u × v``, ``u = (x, y, z)``."""
    q, v = as_float(q, 4), as_float(v, 3)
    u = q[..., 1:]
    t = 2.0 * cross(u, v)
    return v + q[..., :1] * t + cross(u, t)
