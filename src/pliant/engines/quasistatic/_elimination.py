"""Eliminate one joint between two clusters: from `D`, the sum of the inverse inertias that meet there.

RL05 Eqs. 3-5 need the inverse of D. Where the joint's motion is a choice F of coordinates (K the others), this is the
same and loses no digits:

    W = D_KK^-1 on K,   U = E_F^T (I - D W),   s = (S^T D^-1 S)^-1 = U D E_F

A joint of several primitives is turned into such coordinates by an orthogonal basis. Whatever resists a joint's
acceleration (armature, springs and dampers that act implicitly) is a change of low rank after that.
"""

import math

from pliant.compilation import njit
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True)
SINGULAR = 1e-9  # screws of a joint count as dependent below this sine


@_jit
def eliminate(d, freedoms, kind, screws, resist, w, u, s, spare):
    """W (6, 6), U (freedoms, 6) and s (freedoms, freedoms) of a joint; False if its screws are dependent.

    Args:
        d: D, (6, 6).
        freedoms: 0 for a weld.
        kind: of the primitive, or -1 for a joint with several.
        screws, resist: of the joint's dofs, from its first one on.
        w, u, s: out.
        spare: (5, 6, 6).
    """
    n = freedoms
    t = spare[0]
    if kind < 0:
        basis, r = spare[1], spare[2]
        # Lengths in units that make turning as easy as shifting: the basis then mixes equals.
        linear, angular = d[0, 0] + d[1, 1] + d[2, 2], d[3, 3] + d[4, 4] + d[5, 5]
        unit = math.sqrt(angular / linear)
        if not _basis(screws, n, unit, basis, r, spare[3]):
            return False
        half = spare[3]
        for i in range(6):
            for j in range(6):
                total = 0.0
                for k in range(6):
                    total += d[i, k] * basis[k, j] * (unit if k < 3 else 1.0)
                half[i, j] = total * (unit if i < 3 else 1.0)
        for i in range(6):
            for j in range(6):
                total = 0.0
                for k in range(6):
                    total += basis[k, i] * half[k, j]
                t[i, j] = total
        _schur(t, n, w, u, s, spare[3])
        _turn_back(n, unit, basis, r, w, u, s, spare[3], spare[4])
    else:
        first = 5 if kind == LINK_HINGE else (3 if kind == LINK_BALL else 2)
        if n == 0:
            first = 0
        # F first, the others after it
        for i in range(6):
            a = first + i if i < n else (i - n if i - n < first else i)
            for j in range(6):
                b = first + j if j < n else (j - n if j - n < first else j)
                t[i, j] = d[a, b]
        half = spare[1]
        _schur(t, n, half, spare[2], s, spare[3])
        for i in range(6):
            a = first + i if i < n else (i - n if i - n < first else i)
            for j in range(6):
                b = first + j if j < n else (j - n if j - n < first else j)
                w[a, b] = half[i, j]
                if i < n:
                    u[i, b] = spare[2][i, j]
    _resist(n, resist, w, u, s, spare[0], spare[1])
    return True


@_jit
def _schur(t, n, w, u, s, low):
    """W, U, s in coordinates whose first n are free. `low` takes the inverse Cholesky factor of the others."""
    for i in range(6):
        for j in range(6):
            w[i, j] = 0.0
    for i in range(n, 6):
        for j in range(n, i + 1):
            total = t[i, j]
            for k in range(n, j):
                total -= low[i, k] * low[j, k]
            if i == j:
                low[i, i] = math.sqrt(total)
            else:
                low[i, j] = total / low[j, j]
    # the inverse of the factor, in place
    for j in range(n, 6):
        low[j, j] = 1.0 / low[j, j]
        for i in range(j + 1, 6):
            total = 0.0
            for k in range(j, i):
                total -= low[i, k] * low[k, j]
            low[i, j] = total / low[i, i]
    for i in range(n, 6):
        for j in range(n, i + 1):
            total = 0.0
            for k in range(i, 6):
                total += low[k, i] * low[k, j]
            w[i, j] = total
            w[j, i] = total
    for i in range(n):
        for j in range(n):
            u[i, j] = 1.0 if i == j else 0.0
        for j in range(n, 6):
            total = 0.0
            for k in range(n, 6):
                total -= t[i, k] * w[k, j]
            u[i, j] = total
        for j in range(n):
            total = t[i, j]
            for k in range(n, 6):
                total += u[i, k] * t[k, j]
            s[i, j] = total


@_jit
def _basis(screws, n, unit, basis, r, a):
    """Orthogonal basis whose first n columns span the screws, lengths times `unit`; screws = basis r."""
    for i in range(6):
        for j in range(6):
            basis[i, j] = 1.0 if i == j else 0.0
        for j in range(n):
            a[i, j] = screws[j, i] * (unit if i < 3 else 1.0)
    for k in range(n):
        whole = 0.0
        for i in range(6):
            whole += a[i, k] * a[i, k]
        tail = 0.0
        for i in range(k, 6):
            tail += a[i, k] * a[i, k]
        if not tail > SINGULAR * SINGULAR * whole:
            return False
        size = math.sqrt(tail)
        alpha = -size if a[k, k] > 0.0 else size
        a[k, k] -= alpha
        beta = 1.0 / (alpha * a[k, k])  # minus two over the square of the reflector
        for j in range(k + 1, n):
            total = 0.0
            for i in range(k, 6):
                total += a[i, k] * a[i, j]
            total *= beta
            for i in range(k, 6):
                a[i, j] += total * a[i, k]
        for j in range(6):
            total = 0.0
            for i in range(k, 6):
                total += basis[j, i] * a[i, k]
            total *= beta
            for i in range(k, 6):
                basis[j, i] += total * a[i, k]
        r[k, k] = alpha
        for j in range(k + 1, n):
            r[k, j] = a[k, j]
    return True


@_jit
def _turn_back(n, unit, basis, r, w, u, s, half, other):
    """From the basis to the group's frame and the joint's own coordinates."""
    for i in range(6):
        for j in range(6):
            total = 0.0
            for k in range(n, 6):
                total += w[i, k] * basis[j, k]
            half[i, j] = total
    for i in range(6):
        for j in range(6):
            total = 0.0
            for k in range(n, 6):
                total += basis[i, k] * half[k, j]
            w[i, j] = total * (unit if i < 3 else 1.0) * (unit if j < 3 else 1.0)
    for i in range(n):
        for j in range(6):
            total = 0.0
            for k in range(6):
                total += u[i, k] * basis[j, k]
            other[i, j] = total * (unit if j < 3 else 1.0)
    for j in range(6):
        for i in range(n - 1, -1, -1):
            total = other[i, j]
            for k in range(i + 1, n):
                total -= r[i, k] * u[k, j]
            u[i, j] = total / r[i, i]
    # s = R^-1 s R^-T: rows, then columns
    for j in range(n):
        for i in range(n - 1, -1, -1):
            total = s[i, j]
            for k in range(i + 1, n):
                total -= r[i, k] * s[k, j]
            s[i, j] = total / r[i, i]
    for i in range(n):
        for j in range(n - 1, -1, -1):
            total = s[i, j]
            for k in range(j + 1, n):
                total -= r[j, k] * s[i, k]
            s[i, j] = total / r[j, j]


@_jit
def _resist(n, resist, w, u, s, a, b):
    """The joint also resists by `resist` times its acceleration: s -> (1 + s k)^-1 s, and so on."""
    any_ = False
    for i in range(n):
        if resist[i] > 0.0:
            any_ = True
    if not any_:
        return
    if n == 1:
        k = resist[0]
        gain = 1.0 / (1.0 + s[0, 0] * k)
        for i in range(6):
            for j in range(6):
                w[i, j] += u[0, i] * u[0, j] * k * gain
        for i in range(6):
            u[0, i] *= gain
        s[0, 0] *= gain
        return
    for i in range(n):
        for j in range(n):
            a[i, j] = s[i, j] * resist[j] + (1.0 if i == j else 0.0)
        for j in range(6):
            b[i, j] = u[i, j]
    # Gauss with pivots, U and s as right sides; `b` keeps the old U
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
                s[k, j], s[pivot, j] = s[pivot, j], s[k, j]
            for j in range(6):
                u[k, j], u[pivot, j] = u[pivot, j], u[k, j]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            for j in range(n):
                s[i, j] -= factor * s[k, j]
            for j in range(6):
                u[i, j] -= factor * u[k, j]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            for j in range(n):
                s[i, j] -= a[i, k] * s[k, j]
            for j in range(6):
                u[i, j] -= a[i, k] * u[k, j]
        for j in range(n):
            s[i, j] /= a[i, i]
        for j in range(6):
            u[i, j] /= a[i, i]
    for k in range(n):
        for i in range(6):
            for j in range(6):
                w[i, j] += b[k, i] * resist[k] * u[k, j]
    for i in range(6):
        for j in range(i):
            w[i, j] = w[j, i] = 0.5 * (w[i, j] + w[j, i])


@_jit
def keep(w, u, s, freedoms, torque, dof, joint):
    """What back-substitution needs, into a row of `_kernels.JOINT_COLUMNS`: W, U, and with the torques Q U^T Q, s Q."""
    for i in range(6):
        total = 0.0
        for j in range(freedoms):
            total += u[j, i] * torque[dof + j]
            joint[36 + 6 * j + i] = u[j, i]
        joint[72 + i] = total
        for j in range(6):
            joint[6 * i + j] = w[i, j]
    for i in range(freedoms):
        total = 0.0
        for j in range(freedoms):
            total += s[i, j] * torque[dof + j]
        joint[78 + i] = total
