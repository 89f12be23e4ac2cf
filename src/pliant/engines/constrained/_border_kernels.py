"""Rows that border the tree: loops, couplings and tendons, by a Schur complement over their multipliers.

Loops are cut at a body: a copy of it, with its share of the mass, must coincide with it (see `packing.py`). A row of
`loops` holds the link of the copy, that of the body, the meeting point in the body's joint frame and the constant
rotation between the two frames. Rows of loops come first, six each (position over the unit of length, then rotation),
then couplings, then tendons, whose rows give by `give` per multiplier.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import _solver_kernels as solver
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_REDUNDANT = 1e-10  # of a row's own size: what is left of it when it says no more than rows before it


@_jit
def loop_gaps(loops, work, unit, turn, vector, out):
    """How far copies are from their bodies, position over `unit` and rotation vector, world axes."""
    largest = 0.0
    for n in range(loops.shape[0]):
        a, b = int(loops[n, 0]), int(loops[n, 1])
        x, y, z = loops[n, 2], loops[n, 3], loops[n, 4]
        for i in range(3):
            at = work[b, 9 + i] + work[b, 3 * i] * x + work[b, 3 * i + 1] * y + work[b, 3 * i + 2] * z
            out[6 * n + i] = (work[a, 9 + i] - at) / unit
        # R_a E R_b^T
        for i in range(3):
            ex = (
                work[a, 3 * i] * loops[n, 5]
                + work[a, 3 * i + 1] * loops[n, 8]
                + work[a, 3 * i + 2] * loops[n, 11]
            )
            ey = (
                work[a, 3 * i] * loops[n, 6]
                + work[a, 3 * i + 1] * loops[n, 9]
                + work[a, 3 * i + 2] * loops[n, 12]
            )
            ez = (
                work[a, 3 * i] * loops[n, 7]
                + work[a, 3 * i + 1] * loops[n, 10]
                + work[a, 3 * i + 2] * loops[n, 13]
            )
            for j in range(3):
                turn[i, j] = ex * work[b, 3 * j] + ey * work[b, 3 * j + 1] + ez * work[b, 3 * j + 2]
        se3.so3_log(turn, vector)
        for i in range(3):
            out[6 * n + 3 + i] = vector[i]
        for i in range(6):
            largest = max(largest, abs(out[6 * n + i]))
    return largest


@_jit
def loop_rows(links, loops, work, unit, rows):
    """Velocity of copies relative to their bodies per joint velocity."""
    for n in range(loops.shape[0]):
        for i in range(6):
            for d in range(rows.shape[1]):
                rows[6 * n + i, d] = 0.0
        a, b = int(loops[n, 0]), int(loops[n, 1])
        x, y, z = work[a, 9], work[a, 10], work[a, 11]
        _add(links, work, a, x, y, z, 1.0, unit, 6 * n, rows)
        _add(links, work, b, x, y, z, -1.0, unit, 6 * n, rows)


@_jit
def _add(links, work, k, x, y, z, sign, unit, row, rows):
    while k >= 0:
        kind, d = links[k, 1], links[k, 2]
        rx, ry, rz = x - work[k, 9], y - work[k, 10], z - work[k, 11]
        if kind == LINK_BALL:
            for j in range(3):
                ax, ay, az = sign * work[k, j], sign * work[k, 3 + j], sign * work[k, 6 + j]
                rows[row, d + j] += (ay * rz - az * ry) / unit
                rows[row + 1, d + j] += (az * rx - ax * rz) / unit
                rows[row + 2, d + j] += (ax * ry - ay * rx) / unit
                rows[row + 3, d + j] += ax
                rows[row + 4, d + j] += ay
                rows[row + 5, d + j] += az
        elif kind != LINK_FIXED:
            ax, ay, az = sign * work[k, 2], sign * work[k, 5], sign * work[k, 8]
            if kind == LINK_HINGE:
                rows[row, d] += (ay * rz - az * ry) / unit
                rows[row + 1, d] += (az * rx - ax * rz) / unit
                rows[row + 2, d] += (ax * ry - ay * rx) / unit
                rows[row + 3, d] += ax
                rows[row + 4, d] += ay
                rows[row + 5, d] += az
            else:
                rows[row, d] += ax / unit
                rows[row + 1, d] += ay / unit
                rows[row + 2, d] += az / unit
        k = links[k, 0]


@_jit
def loop_tension(loops, multipliers, unit, t, work):
    """Let the forces that hold loops together count as tension."""
    for n in range(loops.shape[0]):
        a, b = int(loops[n, 0]), int(loops[n, 1])
        fx, fy, fz = multipliers[6 * n] / unit, multipliers[6 * n + 1] / unit, multipliers[6 * n + 2] / unit
        work[a, 30] += fx
        work[a, 31] += fy
        work[a, 32] += fz
        work[b, 30] -= fx
        work[b, 31] -= fy
        work[b, 32] -= fz
        x, y, z = work[a, 9] - work[b, 9], work[a, 10] - work[b, 10], work[a, 11] - work[b, 11]
        solver.add_tension(work, b, x, y, z, -fx, -fy, -fz, t)


@_jit
def correct(links, rows, give, wanted, work, columns, schur, multipliers, du):
    """Add to `du` what makes `rows du - give multipliers = wanted`."""
    m, nv = rows.shape
    for r in range(m):
        solver.load(links, rows[r], work)
        solver.solve(links, work, columns[r])  # minus the response
    for r in range(m):
        for s in range(r + 1):
            total = 0.0
            for d in range(nv):
                total -= rows[r, d] * columns[s, d]
            schur[r, s] = total
        schur[r, r] += give[r]
        total = -wanted[r]
        for d in range(nv):
            total += rows[r, d] * du[d]
        multipliers[r] = total
    cholesky(schur, multipliers)
    for r in range(m):
        for d in range(nv):
            du[d] += multipliers[r] * columns[r, d]


@_jit
def cholesky(a, x):
    """Solve a x = x by Cholesky factors; rows that say nothing new get nothing."""
    n = a.shape[0]
    for i in range(n):
        own = a[i, i]
        for j in range(i):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total * a[j, j]  # the diagonal holds reciprocals
        pivot = own
        for k in range(i):
            pivot -= a[i, k] * a[i, k]
        if pivot > _REDUNDANT * own and pivot > 1e-300:
            a[i, i] = 1.0 / math.sqrt(pivot)
        else:
            a[i, i] = 0.0
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= a[i, k] * x[k]
        x[i] = total * a[i, i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= a[k, i] * x[k]
        x[i] = total * a[i, i]
