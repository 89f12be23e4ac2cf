"""Damping made of geometric stiffness, compiled (GS17 section 4), and the compliance it gives to rows."""

import numpy as np

from pliant.compilation import njit
from pliant.engines.constrained._maximal_rows import AXIAL, COORDINATE, DOT1

_jit = njit(error_model="numpy")

# The compliance of a row that has neither stiffness nor damping: it carries no force worth the name.
_SLACK = 1e30


@_jit
def column_norms(joints, K, R, axes, own, norms):
    """K_d of GS17 Eq. 12 for turns about every body's principal axes, (n, 3).

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
            b, other = joints[joint, side], joints[joint, 1 - side]
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
def inertial_damping(h, alpha, moments, norms, damping):
    """GS17 Eq. 11 per principal axis: just enough damping for the geometric stiffness."""
    for b in range(moments.shape[0]):
        for axis in range(3):
            excess = h * h * norms[b, axis] - 4.0 * alpha * moments[b, axis]
            damping[b, 3 + axis] = max(0.0, excess / (2.0 * h))


@_jit
def constraint_damping(h, alpha, joints, rows, rigid, J, R, axes, mass, moments, norms, extra, damping):
    """GS17 section 4.3: the damping b' of every compliant row that only turns bodies, and what bodies get of it.

    m' and k' are the mass and stiffness that a row feels with everything else free. Per body k' is the mean of K_d over
    the row's axis; the printed harmonic mean vanishes once a row's axis leans a little towards a direction without
    stiffness, such as a cable's own. The two bodies then act in series.

    What damps only relative turns cannot hold everything: links of mass m and length L that carry a force F stay
    stable while m L / (h² F) > 1/8.
    """
    n = mass.shape[0]
    p = np.empty(3)
    for k in range(rows.shape[0]):
        extra[k] = 0.0
        kind = rows[k, 1]
        if rigid[k] or kind not in (AXIAL, COORDINATE, DOT1):
            continue
        mobility, softness = 0.0, 0.0
        turning = True
        for side in range(2):
            b = joints[rows[k, 0], side]
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
            extra[k] = max(0.0, (h * h / softness - 4.0 * alpha / mobility) / (2.0 * h))
        if extra[k] > 0.0:
            for side in range(2):
                b = joints[rows[k, 0], side]
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
def soften(h, rigid, k, d, a, extra, phi, rate, sigma, g):
    """Σ and right-hand side of rows (GS17 Eqs. 15 to 17, corrected): with `w = h²k + hd + a`, Σ = 1/w.

    A spring k, a damper d and an armature a on one row give the impulse `-h k (φ + h φ̇₊) - h d φ̇₊ - a (φ̇₊ - φ̇)`.
    """
    for r in range(phi.shape[0]):
        if rigid[r]:
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
