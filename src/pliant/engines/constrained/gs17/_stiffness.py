"""Geometric stiffness of constraint rows, as matrices and rank-1 terms, and the damping made of it (GS17 section 4)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.constrained.gs17._rows import (
    AXIAL,
    COORDINATE,
    DOT1,
    DOT2,
    JOINT,
    KIND,
    POINT,
    SLOT,
    dot,
    turn,
)
from pliant.engines.constrained.gs17._tree import CHILD, PARENT
from pliant.spatial import kernels as se3
from pliant.spatial.kernels import add_hat, add_hats

_jit = njit(counts_references=True, error_model="numpy")
_plain = njit(error_model="numpy")  # without arrays of their own

_SLACK = 1e30  # compliance of a row without stiffness or damping: its force is negligible


class Springs(NamedTuple):
    """Springs of rows: stiffness, damping, armature, (r,); `rigid` rows have none of them, and no compliance."""

    stiffness: NDArray[np.float64]
    damping: NDArray[np.float64]
    armature: NDArray[np.float64]
    rigid: NDArray[np.bool_]


@_jit
def stiffness(table, measured, x, R, lam, K):
    """K̃ = ∂(Jᵀλ)/∂x (GS17 Eq. 1) of every joint, (joints, 12, 12), for the row forces `lam`."""
    K[:] = 0.0
    for k in range(table.rows.shape[0]):
        add_stiffness(k, table, measured, x, R, lam[k], K[table.rows[k, JOINT]])


@_jit
def add_stiffness(k, table, measured, x, R, lam, K):
    """Add K̃ of row k (GS17 Eqs. 4, 23, 25, 27) to K (12, 12)."""
    joint, kind, slot = table.rows[k, JOINT], table.rows[k, KIND], table.rows[k, SLOT]
    i, j = table.joints[joint, PARENT], table.joints[joint, CHILD]
    si, sj, a, b = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    if kind == POINT:
        turn(R[i], table.si[k], si)
        turn(R[j], table.sj[k], sj)
        a[:] = 0.0
        a[slot] = 1.0
        add_hats(K, 1, 1, lam, a, si)
        add_hats(K, 3, 3, -lam, a, sj)
    elif kind == AXIAL:
        turn(R[i], table.ai[k], a)
        add_hat(K, 1, 1, -lam, a)
        add_hat(K, 3, 1, lam, a)
    elif kind == DOT1:
        turn(R[i], table.ai[k], a)
        turn(R[j], table.bj[k], b)
        add_hats(K, 1, 1, lam, b, a)
        add_hats(K, 1, 3, -lam, a, b)
        add_hats(K, 3, 1, -lam, b, a)
        add_hats(K, 3, 3, lam, a, b)
    elif kind == DOT2:
        turn(R[i], table.ai[k], a)
        turn(R[j], table.sj[k], sj)
        for c in range(3):
            b[c] = x[j, c] + sj[c] - x[i, c]
        add_hat(K, 0, 1, -lam, a)
        add_hat(K, 1, 0, lam, a)
        add_hats(K, 1, 1, -lam, b, a)
        add_hat(K, 1, 2, -lam, a)
        add_hats(K, 1, 3, lam, a, sj)
        add_hat(K, 2, 1, lam, a)
        add_hats(K, 3, 1, lam, sj, a)
        add_hats(K, 3, 3, -lam, a, sj)
    else:
        m = measured.index[joint]
        vector = measured.form[m, slot] if kind == COORDINATE else measured.complement[m, slot]
        f, t = si, sj
        turn(R[j], vector[:3], f)
        turn(R[j], vector[3:], t)
        turn(R[j], table.com[j], a)
        for c in range(3):
            a[c] = -a[c]
            b[c] = a[c] + x[j, c] - x[i, c]
        add_hat(K, 0, 3, lam, f)
        add_hat(K, 1, 0, -lam, f)
        add_hat(K, 1, 2, lam, f)
        add_hats(K, 1, 3, lam, b, f)
        add_hats(K, 1, 3, -lam, f, a)
        add_hat(K, 1, 3, lam, t)
        add_hat(K, 2, 3, -lam, f)
        add_hat(K, 3, 3, -lam, t)
        se3.cross(a, f, b)
        add_hat(K, 3, 3, -lam, b)


@_plain
def perpendicular(n, u, v):
    """Unit u and v at right angles to n, whose length may be anything but zero; (u, v, n) right-handed."""
    length = np.sqrt(dot(n, n))
    x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
    k = 0 if (x <= y and x <= z) else (1 if y <= z else 2)
    part = n[k] / (length * length)
    for c in range(3):
        u[c] = (1.0 if c == k else 0.0) - part * n[c]
    size = 1.0 / np.sqrt(dot(u, u))
    for c in range(3):
        u[c] *= size
    se3.cross(n, u, v)
    for c in range(3):
        v[c] /= length


@_plain
def ball_factors(s, force, sign, u, v, first, second):
    """`sign λ̂ŝ = Σ first_k second_kᵀ`, two terms (GS17 Eq. 5, shortened); returns False if s is zero."""
    if s[0] == 0.0 and s[1] == 0.0 and s[2] == 0.0:
        return False
    perpendicular(s, u, v)
    along = dot(force, s)
    for term in range(2):
        r = u if term == 0 else v
        across = dot(force, r)
        for c in range(3):
            first[term, c] = sign * (across * s[c] - along * r[c])
            second[term, c] = r[c]
    return True


@_jit
def row_factors(k, table, measured, x, R, lam, first, second):
    """K̃ of a row other than a POINT as `Σ first_t second_tᵀ` (GS17 Appendix B, corrected); returns how many terms."""
    joint, kind = table.rows[k, JOINT], table.rows[k, KIND]
    i, j = table.joints[joint, PARENT], table.joints[joint, CHILD]
    sj, a, b, u, v = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    first[:] = 0.0
    second[:] = 0.0
    if kind == AXIAL:
        turn(R[i], table.ai[k], a)
        perpendicular(a, u, v)
        for c in range(3):
            first[0, 3 + c], first[0, 9 + c], second[0, 3 + c] = -lam * v[c], lam * v[c], u[c]
            first[1, 3 + c], first[1, 9 + c], second[1, 3 + c] = lam * u[c], -lam * u[c], v[c]
        return 2
    if kind == DOT1:
        turn(R[i], table.ai[k], a)
        turn(R[j], table.bj[k], b)
        for c in range(3):
            first[0, 3 + c], first[0, 9 + c], second[0, 3 + c] = lam * a[c], -lam * a[c], b[c]
            first[1, 3 + c], first[1, 9 + c], second[1, 9 + c] = -lam * b[c], lam * b[c], a[c]
        weight = -lam * dot(a, b)
        for c in range(3):
            first[2 + c, 3 + c], first[2 + c, 9 + c] = weight, -weight
            second[2 + c, 3 + c], second[2 + c, 9 + c] = 1.0, -1.0
        return 5
    if kind == DOT2:
        turn(R[i], table.ai[k], a)
        turn(R[j], table.sj[k], sj)
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
    # Rows on coordinates: three columns of the child's rotation, three of a gap between the bodies.
    K = np.zeros((12, 12))
    add_stiffness(k, table, measured, x, R, lam, K)
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


@_jit
def column_norms(joints, K, R, axes, own, norms):
    """Diagonal bound K_d of the geometric stiffness (GS17 Eq. 12), turns about principal axes of bodies, (n, 3).

    In world axes a column norm may be less than the stiffness it stands for; along the axes of a slender body it is
    not. Blocks of other bodies add their norms (as discs of Gershgorin do) rather than their squares: with the latter,
    chains of hinges fail at mass ratios that chains of balls, whose K̃ couples no bodies, survive. Only torques count:
    forces have another unit, and GS17 section 5.4 drops what they would give.
    """
    n = norms.shape[0]
    own[:] = 0.0
    norms[:] = 0.0
    for joint in range(joints.shape[0]):
        for side in range(2):
            b, other = joints[joint, PARENT + side], joints[joint, CHILD - side]
            if b == n:
                continue
            at, to = 6 * side + 3, 9 - 6 * side
            for r in range(3):
                for c in range(3):
                    own[b, r, c] += K[joint, at + r, at + c]
            if other < n:
                for axis in range(3):
                    norms[b, axis] += _column(K[joint, to : to + 3, at : at + 3], R[b], axes[b, :, axis])
    for b in range(n):
        for axis in range(3):
            norms[b, axis] += _column(own[b], R[b], axes[b, :, axis])


@_jit
def _column(K, R, axis):
    """`|K R axis|`."""
    x = R[0, 0] * axis[0] + R[0, 1] * axis[1] + R[0, 2] * axis[2]
    y = R[1, 0] * axis[0] + R[1, 1] * axis[1] + R[1, 2] * axis[2]
    z = R[2, 0] * axis[0] + R[2, 1] * axis[1] + R[2, 2] * axis[2]
    total = 0.0
    for r in range(3):
        total += (K[r, 0] * x + K[r, 1] * y + K[r, 2] * z) ** 2
    return np.sqrt(total)


@_jit
def inertial_damping(h, moments, norms, damping):
    """Least stable damping of geometric stiffness per principal axis, N m s (GS17 Eqs. 10 and 11, α = 1)."""
    for b in range(moments.shape[0]):
        for axis in range(3):
            excess = h * h * norms[b, axis] - 4.0 * moments[b, axis]
            damping[b, 3 + axis] = max(0.0, excess / (2.0 * h))


@_jit
def constraint_damping(h, table, rigid, J, R, bodies, norms, extra, damping):
    """Damping b' of every compliant row that only turns bodies, and its share per body (GS17 section 4.3).

    m' and k' are effective mass and stiffness of a row with everything else free. Per body k' is the mean of K_d over
    the row's axis; the printed harmonic mean vanishes once a row's axis leans a little towards a direction without
    stiffness, such as a cable's own. The two bodies then act in series.

    Damping of relative turns alone is not always enough: links of mass m and length L that carry a force F stay
    stable while m L / (h² F) > 1/8.
    """
    rows, joints, axes, moments = table.rows, table.joints, bodies.axes, bodies.moments
    n = moments.shape[0]
    p = np.empty(3)
    for k in range(rows.shape[0]):
        extra[k] = 0.0
        kind = rows[k, KIND]
        if rigid[k] or kind not in (AXIAL, COORDINATE, DOT1):
            continue
        mobility, softness = 0.0, 0.0
        turning = True
        for side in range(2):
            b = joints[rows[k, JOINT], PARENT + side]
            if b == n:
                continue
            row = J[k, 6 * side : 6 * side + 6]
            size, stiff = 0.0, 0.0
            for axis in range(3):
                for c in range(3):
                    p[c] = (
                        R[b, c, 0] * axes[b, 0, axis]
                        + R[b, c, 1] * axes[b, 1, axis]
                        + R[b, c, 2] * axes[b, 2, axis]
                    )
                part = row[3] * p[0] + row[4] * p[1] + row[5] * p[2]
                mobility += part * part / moments[b, axis]
                size += part * part
                stiff += part * part * norms[b, axis]
            turning = turning and row[0] ** 2 + row[1] ** 2 + row[2] ** 2 <= 1e-18 * size
            softness += size * size / stiff if stiff > 0.0 else np.inf
        if turning and mobility > 0.0:
            extra[k] = max(0.0, (h * h / softness - 4.0 / mobility) / (2.0 * h))
        if extra[k] > 0.0:
            for side in range(2):
                b = joints[rows[k, JOINT], PARENT + side]
                if b < n:
                    for axis in range(3):
                        part = 0.0
                        for c in range(3):
                            part += J[k, 6 * side + 3 + c] * (
                                R[b, c, 0] * axes[b, 0, axis]
                                + R[b, c, 1] * axes[b, 1, axis]
                                + R[b, c, 2] * axes[b, 2, axis]
                            )
                        damping[b, 3 + axis] += extra[k] * part * part


@_jit
def soften(h, springs, extra, phi, rate, sigma, g):
    """Compliance Σ and right-hand side of rows (GS17 Eqs. 15 to 17, corrected): Σ = 1/w, `w = h²k + hd + a`.

    A spring k, a damper d and an armature a on one row give the impulse `-h k (φ + h φ̇₊) - h d φ̇₊ - a (φ̇₊ - φ̇)`.
    """
    k, d, a = springs.stiffness, springs.damping, springs.armature
    for r in range(phi.shape[0]):
        if springs.rigid[r]:
            sigma[r] = 0.0
            g[r] = -phi[r] / h
        else:
            weight = h * h * k[r] + h * (d[r] + extra[r]) + a[r]
            if weight * _SLACK > 1.0:
                sigma[r] = 1.0 / weight
                g[r] = (a[r] * rate[r] - h * k[r] * phi[r]) / weight
            else:
                sigma[r] = _SLACK
                g[r] = 0.0
