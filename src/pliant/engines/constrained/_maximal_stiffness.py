"""Geometric stiffness of constraint rows, compiled: as matrices and as rank-1 terms (GS17 Appendices A and B)."""

import numpy as np

from pliant.compilation import njit
from pliant.engines.constrained._maximal_rows import AXIAL, COORDINATE, DOT1, DOT2, POINT, _dot, turn
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy")


@_jit
def stiffness(joints, rows, place, x, R, com, measured_as, form, complement, lam, K):
    """K̃ of every joint, (joints, 12, 12), for the row forces `lam`."""
    K[:] = 0.0
    for k in range(rows.shape[0]):
        add_stiffness(k, joints, rows, place, x, R, com, measured_as, form, complement, lam[k], K[rows[k, 0]])


@_jit
def add_stiffness(k, joints, rows, place, x, R, com, measured_as, form, complement, lam, K):
    """Add K̃ of row k (GS17 Eqs. 4, 23, 25, 27) to K (12, 12)."""
    joint, kind, slot = rows[k, 0], rows[k, 1], rows[k, 2]
    i, j = joints[joint, 0], joints[joint, 1]
    si, sj, a, b = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    if kind == POINT:
        turn(R[i], place[k, 0:3], si)
        turn(R[j], place[k, 3:6], sj)
        a[:] = 0.0
        a[slot] = 1.0
        add_hats(K, 1, 1, lam, a, si)
        add_hats(K, 3, 3, -lam, a, sj)
    elif kind == AXIAL:
        turn(R[i], place[k, 6:9], a)
        _add_hat(K, 1, 1, -lam, a)
        _add_hat(K, 3, 1, lam, a)
    elif kind == DOT1:
        turn(R[i], place[k, 6:9], a)
        turn(R[j], place[k, 9:12], b)
        add_hats(K, 1, 1, lam, b, a)
        add_hats(K, 1, 3, -lam, a, b)
        add_hats(K, 3, 1, -lam, b, a)
        add_hats(K, 3, 3, lam, a, b)
    elif kind == DOT2:
        turn(R[i], place[k, 6:9], a)
        turn(R[j], place[k, 3:6], sj)
        for c in range(3):
            b[c] = x[j, c] + sj[c] - x[i, c]
        _add_hat(K, 0, 1, -lam, a)
        _add_hat(K, 1, 0, lam, a)
        add_hats(K, 1, 1, -lam, b, a)
        _add_hat(K, 1, 2, -lam, a)
        add_hats(K, 1, 3, lam, a, sj)
        _add_hat(K, 2, 1, lam, a)
        add_hats(K, 3, 1, lam, sj, a)
        add_hats(K, 3, 3, -lam, a, sj)
    else:
        m = measured_as[joint]
        vector = form[m, slot] if kind == COORDINATE else complement[m, slot]
        f, t = si, sj
        turn(R[j], vector[:3], f)
        turn(R[j], vector[3:], t)
        turn(R[j], com[j], a)
        for c in range(3):
            a[c] = -a[c]
            b[c] = a[c] + x[j, c] - x[i, c]
        _add_hat(K, 0, 3, lam, f)
        _add_hat(K, 1, 0, -lam, f)
        _add_hat(K, 1, 2, lam, f)
        add_hats(K, 1, 3, lam, b, f)
        add_hats(K, 1, 3, -lam, f, a)
        _add_hat(K, 1, 3, lam, t)
        _add_hat(K, 2, 3, -lam, f)
        _add_hat(K, 3, 3, -lam, t)
        se3.cross(a, f, b)
        _add_hat(K, 3, 3, -lam, b)


@_jit
def _add_hat(K, r, c, scale, a):
    """`K[r, c] += scale â`, 3 x 3 blocks."""
    r, c = 3 * r, 3 * c
    K[r, c + 1] -= scale * a[2]
    K[r, c + 2] += scale * a[1]
    K[r + 1, c] += scale * a[2]
    K[r + 1, c + 2] -= scale * a[0]
    K[r + 2, c] -= scale * a[1]
    K[r + 2, c + 1] += scale * a[0]


@_jit
def add_hats(K, r, c, scale, a, b):
    """`K[r, c] += scale â b̂`, and `â b̂ = b aᵀ - (a·b) I`."""
    r, c = 3 * r, 3 * c
    dot = scale * _dot(a, b)
    for k in range(3):
        for l in range(3):
            K[r + k, c + l] += scale * b[k] * a[l]
        K[r + k, c + k] -= dot


@_jit
def perpendicular(n, u, v):
    """Unit u and v at right angles to n, whose length may be anything but zero; (u, v, n) right-handed."""
    length = np.sqrt(_dot(n, n))
    x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
    k = 0 if (x <= y and x <= z) else (1 if y <= z else 2)
    part = n[k] / (length * length)
    for c in range(3):
        u[c] = (1.0 if c == k else 0.0) - part * n[c]
    size = 1.0 / np.sqrt(_dot(u, u))
    for c in range(3):
        u[c] *= size
    se3.cross(n, u, v)
    for c in range(3):
        v[c] /= length


@_jit
def ball_factors(s, force, sign, u, v, first, second):
    """`sign λ̂ŝ = Σ first_k second_kᵀ`, two terms (GS17 Eq. 5, shortened); returns False if s is zero."""
    if s[0] == 0.0 and s[1] == 0.0 and s[2] == 0.0:
        return False
    perpendicular(s, u, v)
    along = _dot(force, s)
    for term in range(2):
        r = u if term == 0 else v
        across = _dot(force, r)
        for c in range(3):
            first[term, c] = sign * (across * s[c] - along * r[c])
            second[term, c] = r[c]
    return True


@_jit
def row_factors(k, joints, rows, place, x, R, com, measured_as, form, complement, lam, first, second):
    """K̃ of a row other than a POINT as `Σ first_t second_tᵀ` (GS17 Appendix B, corrected); returns how many terms."""
    joint, kind = rows[k, 0], rows[k, 1]
    i, j = joints[joint, 0], joints[joint, 1]
    sj, a, b, u, v = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    first[:] = 0.0
    second[:] = 0.0
    if kind == AXIAL:
        turn(R[i], place[k, 6:9], a)
        perpendicular(a, u, v)
        for c in range(3):
            first[0, 3 + c], first[0, 9 + c], second[0, 3 + c] = -lam * v[c], lam * v[c], u[c]
            first[1, 3 + c], first[1, 9 + c], second[1, 3 + c] = lam * u[c], -lam * u[c], v[c]
        return 2
    if kind == DOT1:
        turn(R[i], place[k, 6:9], a)
        turn(R[j], place[k, 9:12], b)
        for c in range(3):
            first[0, 3 + c], first[0, 9 + c], second[0, 3 + c] = lam * a[c], -lam * a[c], b[c]
            first[1, 3 + c], first[1, 9 + c], second[1, 9 + c] = -lam * b[c], lam * b[c], a[c]
        weight = -lam * _dot(a, b)
        for c in range(3):
            first[2 + c, 3 + c], first[2 + c, 9 + c] = weight, -weight
            second[2 + c, 3 + c], second[2 + c, 9 + c] = 1.0, -1.0
        return 5
    if kind == DOT2:
        turn(R[i], place[k, 6:9], a)
        turn(R[j], place[k, 3:6], sj)
        for c in range(3):
            b[c] = x[j, c] + sj[c] - x[i, c]
        perpendicular(a, u, v)  # (a, u, v) right-handed as well
        for half in range(2):
            p, q = (v, u) if half == 0 else (u, v)
            sign = lam if half == 0 else -lam
            t = 3 * half
            se3.cross(p, b, first[t, 3:6])
            se3.cross(sj, p, first[t, 9:12])
            se3.cross(q, sj, second[t + 2, 9:12])
            for c in range(3):
                first[t, c], first[t, 6 + c], second[t, 3 + c] = -sign * p[c], sign * p[c], q[c]
                first[t, 3 + c] *= sign
                first[t, 9 + c] *= sign
                first[t + 1, 3 + c], second[t + 1, c], second[t + 1, 6 + c] = sign * p[c], q[c], -q[c]
                first[t + 2, 3 + c], first[t + 2, 9 + c] = sign * p[c], -sign * p[c]
        return 6
    # Rows on coordinates: the three columns of the child's rotation, and what a gap between the bodies does.
    K = np.zeros((12, 12))
    add_stiffness(k, joints, rows, place, x, R, com, measured_as, form, complement, lam, K)
    straight = False
    for c in range(3):
        for r in range(12):
            first[c, r] = K[r, 9 + c]
        second[c, 9 + c] = 1.0
        for r in range(3):
            first[3 + c, 3 + r] = K[3 + r, 6 + c]
            straight = straight or K[3 + r, 6 + c] != 0.0
        second[3 + c, c], second[3 + c, 6 + c] = -1.0, 1.0
    return 6 if straight else 3
