"""Rows that border the tree: loops, couplings and tendons, by a Schur complement over their multipliers.

Loops are cut at a body: a copy of it, with its share of the mass, must coincide with it (see `packing.py`). A row of
`loops` holds the link of the copy, that of the body, the meeting point in the body's joint frame and the constant
rotation between the two frames. Rows of loops come first, six each (position over the unit of length, then rotation),
then couplings, then tendons, whose rows give by `give` per multiplier.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import _kernels as kernels
from pliant.engines.constrained import _solver_kernels as solver
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_sums = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc"})  # in vector registers
# Remainder of a redundant row as a share of the largest row: where loops are closed, per gap of open loops, at most.
_REDUNDANT, _OPEN, _COARSEST = 1e-9, 10.0, 1e-3
_ORDERED = 0.01  # squared share of the largest remainder from which a row is as good a pivot as any
_DOWNDATED = 1e-4  # share of a squared length from which on it is summed up again
_MENDED = 1e-13  # share of what was amiss with rows that is as good as nothing
_ROUNDING = 1e-15  # of a row's own size: the least pivot


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


@_sums
def independent_rows(rows, free, tied, dofs, gap, left, size, kept):
    """Choose a largest set of independent rows, by Gram-Schmidt with pivoting; returns how many.

    Geometry alone decides: rows in radians and radii (couplings scaled to length 1), no masses, no springs. The first
    row with at least a tenth of the largest remainder is the next pivot, so that equally good rows are taken in their
    own order, whatever rounding says. A row is redundant if its remainder is less than 1e-9 of the largest row; or
    than ten times the gap, where loops are open: rows that are redundant in closed loops are then known no better.

    Args:
        rows: all of them.
        free: rows from this one on are of tendons, and always kept.
        tied: rows from this one on are of couplings.
        dofs: table of dofs, for their units.
        gap: by which loops are open.
        left: scratch, as large as rows; what is left of them.
        size: scratch, (2, rows): squared length of remainders, and the last one that was not downdated.
        kept: indices, ascending.
    """
    m, nv = rows.shape
    largest = 0.0
    for r in range(free):
        total = 0.0
        for d in range(nv):
            left[r, d] = rows[r, d] / dofs[d, kernels.UNIT]
            total += left[r, d] ** 2
        if r >= tied and total > 0.0:
            scale = 1.0 / math.sqrt(total)
            for d in range(nv):
                left[r, d] *= scale
            total = 1.0
        size[0, r], size[1, r], kept[r] = total, total, 0
        largest = max(largest, total)
    least = largest * min(max(_OPEN * gap, _REDUNDANT), _COARSEST) ** 2
    for _ in range(min(free, nv)):
        if not largest > least:
            break
        p = 0
        while size[0, p] < _ORDERED * largest:
            p += 1
        kept[p], size[0, p] = 1, 0.0
        first, last = 0, nv
        while left[p, first] == 0.0:
            first += 1
        while left[p, last - 1] == 0.0:
            last -= 1
        unit = left[p, first:last]
        scale = 1.0 / math.sqrt(_square(unit))
        for d in range(unit.shape[0]):
            unit[d] *= scale
        largest = 0.0
        for r in range(free):
            if size[0, r] <= least:
                size[0, r] = 0.0
                continue
            row = left[r, first:last]
            share = 0.0
            for d in range(unit.shape[0]):
                share += unit[d] * row[d]
            if share != 0.0:
                for d in range(unit.shape[0]):
                    row[d] -= share * unit[d]
                size[0, r] -= share * share
                if size[0, r] < _DOWNDATED * size[1, r]:
                    size[0, r] = size[1, r] = _square(left[r])
            largest = max(largest, size[0, r])
    count = 0
    for r in range(m):
        if r >= free or kept[r] == 1:
            kept[count] = r
            count += 1
    return count


@_sums
def _square(x):
    total = 0.0
    for d in range(x.shape[0]):
        total += x[d] * x[d]
    return total


@_sums
def factor_rows(links, rows, give, kept, work, columns, schur):
    """Response of the tree to the kept rows (its negative, `columns`), and Cholesky factors of the complement."""
    n, nv = kept.shape[0], rows.shape[1]
    for i in range(n):
        solver.load(links, rows[kept[i]], work)
        solver.solve(links, work, columns[i])
    for i in range(n):
        row = rows[kept[i]]
        for j in range(i + 1):
            total = 0.0
            for d in range(nv):
                total -= row[d] * columns[j, d]
            schur[i, j] = total
        schur[i, i] += give[kept[i]]
    cholesky(schur[:n, :n])


@_sums
def correct(links, rows, give, wanted, kept, work, columns, schur, change, multipliers, du):
    """Add to `du` what makes `rows du - give multipliers = wanted` for the kept rows; the others carry nothing."""
    n, nv = kept.shape[0], rows.shape[1]
    factor_rows(links, rows, give, kept, work, columns, schur)
    for r in range(rows.shape[0]):
        multipliers[r] = 0.0
    first = 0.0
    for _ in range(2):  # the second round mends what rounding left of the gap
        largest = 0.0
        for i in range(n):
            r = kept[i]
            total = -wanted[r] - give[r] * multipliers[r]
            for d in range(nv):
                total += rows[r, d] * du[d]
            change[i] = total
            largest = max(largest, abs(total))
        if largest <= _MENDED * first:
            break
        first = largest
        substitute(schur[:n, :n], change)
        for i in range(n):
            multipliers[kept[i]] += change[i]
            for d in range(nv):
                du[d] += change[i] * columns[i, d]


@_sums
def cholesky(a):
    """Cholesky factor of a positive definite matrix, in place, lower half; the diagonal holds reciprocals.

    Pivots below rounding are raised to it, so that no sign hangs on the last bit. A row of zeros stays one.
    """
    for i in range(a.shape[0]):
        pivot = own = a[i, i]
        for j in range(i):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total * a[j, j]
            pivot -= a[i, j] ** 2
        if pivot < _ROUNDING * own:
            pivot = _ROUNDING * own
        a[i, i] = 1.0 / math.sqrt(pivot) if pivot != 0.0 else 0.0


@_sums
def substitute(a, x):
    """Solve with the factors of `cholesky`, in place."""
    n = a.shape[0]
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
