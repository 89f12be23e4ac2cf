"""Rows that border the tree: loops, couplings and tendons, by a Schur complement over their multipliers.

Loops are cut at a body: a copy of it, with its share of the mass, must coincide with it (see `packing`). Rows of loops
come first, six each (position over the unit of length, then rotation), then couplings, then tendons, whose rows give by
`give` per multiplier.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import _aba
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._links import add_vector, axis, between, matrix, vector
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_SLIDE
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_sums = njit(
    error_model="numpy", nogil=True, fastmath={"contract", "reassoc"}
)  # reassociated: in vector registers
# Remainder of a redundant row over the largest row: with closed loops, per gap of open loops, at most.
_REDUNDANT, _OPEN, _COARSEST = 1e-9, 10.0, 1e-3
_ORDERED = 0.01  # squared share of the largest remainder from which on a row may be the next pivot
_DOWNDATED = 1e-4  # fraction of a squared length below which downdating has lost digits: it is summed again
_MENDED = 1e-13  # residual of rows that counts as zero, as a fraction of the first one
_ROUNDING = 1e-15  # least pivot, as a fraction of the row's diagonal


@_jit
def loop_gaps(loops, work, unit, small, out):
    """Gaps of loops: position of copies from bodies over `unit`, rotation vector, world axes. Returns the largest."""
    largest, turn, log = 0.0, small[:3], small[3]
    for n in range(loops.shape[0]):
        a, b = int(loops[n, col.LOOP_COPY]), int(loops[n, col.LOOP_BODY])
        x, y, z = vector(loops, n, col.LOOP_POINT)
        for i in range(3):
            rx, ry, rz = vector(work, b, col.W_ROTATION + 3 * i)
            at = work[b, col.W_POSITION + i] + rx * x + ry * y + rz * z
            out[6 * n + i] = (work[a, col.W_POSITION + i] - at) / unit
        # R_a E R_bᵀ
        e00, e01, e02, e10, e11, e12, e20, e21, e22 = matrix(loops, n, col.LOOP_ROTATION)
        for i in range(3):
            rx, ry, rz = vector(work, a, col.W_ROTATION + 3 * i)
            ex, ey, ez = (
                rx * e00 + ry * e10 + rz * e20,
                rx * e01 + ry * e11 + rz * e21,
                rx * e02 + ry * e12 + rz * e22,
            )
            for j in range(3):
                bx, by, bz = vector(work, b, col.W_ROTATION + 3 * j)
                turn[i, j] = ex * bx + ey * by + ez * bz
        se3.so3_log(turn, log)
        for i in range(3):
            out[6 * n + 3 + i] = log[i]
        for i in range(6):
            largest = max(largest, abs(out[6 * n + i]))
    return largest


@_jit
def loop_rows(links, loops, work, unit, rows):
    """Jacobian of loops: velocity of copies relative to their bodies, over `unit`, per joint velocity."""
    for n in range(loops.shape[0]):
        for i in range(6):
            for d in range(rows.shape[1]):
                rows[6 * n + i, d] = 0.0
        a, b = int(loops[n, col.LOOP_COPY]), int(loops[n, col.LOOP_BODY])
        x, y, z = vector(work, a, col.W_POSITION)
        _add_jacobian(links, work, a, x, y, z, 1.0, unit, 6 * n, rows)
        _add_jacobian(links, work, b, x, y, z, -1.0, unit, 6 * n, rows)


@_jit
def _add_jacobian(links, work, k, x, y, z, sign, unit, row, rows):
    """Add `sign` times the velocity of a point (x, y, z) of link k, over `unit`, and its angular velocity."""
    while k >= 0:
        kind, d = links[k, col.KIND], links[k, col.DOF]
        px, py, pz = vector(work, k, col.W_POSITION)
        rx, ry, rz = x - px, y - py, z - pz
        for j in range(3 if kind == LINK_BALL else 0 if kind == LINK_FIXED else 1):
            ax, ay, az = axis(work, k, j if kind == LINK_BALL else 2)
            ax, ay, az = sign * ax, sign * ay, sign * az
            if kind != LINK_SLIDE:
                rows[row + 3, d + j] += ax
                rows[row + 4, d + j] += ay
                rows[row + 5, d + j] += az
                ax, ay, az = ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx
            rows[row, d + j] += ax / unit
            rows[row + 1, d + j] += ay / unit
            rows[row + 2, d + j] += az / unit
        k = links[k, col.PARENT]


@_jit
def loop_tension(loops, multipliers, unit, t, work):
    """Add the forces that close loops to W_FORCE, and their tension."""
    for n in range(loops.shape[0]):
        a, b = int(loops[n, col.LOOP_COPY]), int(loops[n, col.LOOP_BODY])
        fx, fy, fz = multipliers[6 * n] / unit, multipliers[6 * n + 1] / unit, multipliers[6 * n + 2] / unit
        add_vector(work, a, col.W_FORCE, fx, fy, fz)
        add_vector(work, b, col.W_FORCE, -fx, -fy, -fz)
        x, y, z = between(work, a, b)
        _aba.add_tension(work, b, x, y, z, -fx, -fy, -fz, t)


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
        gap: of open loops, rad or radii.
        left: scratch, as large as rows: their remainders.
        size: scratch, (2, rows): squared length of remainders, and the last one that was not downdated.
        kept: indices, ascending.
    """
    m, nv = rows.shape
    largest = 0.0
    for r in range(free):
        total = 0.0
        for d in range(nv):
            left[r, d] = rows[r, d] / dofs[d, col.UNIT]
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
    """Squared length of a vector."""
    total = 0.0
    for d in range(x.shape[0]):
        total += x[d] * x[d]
    return total


@_sums
def factor_rows(links, scratch):
    """Response of the tree to the kept rows (its negative, `columns`), and Cholesky factors of the complement."""
    rows, columns, schur, kept = scratch.rows, scratch.columns, scratch.schur, scratch.kept
    n, nv = int(scratch.info[col.INFO_KEPT]), rows.shape[1]
    for i in range(n):
        _aba.load(links, rows[kept[i]], scratch.work)
        _aba.solve(links, scratch.work, columns[i])
    for i in range(n):
        row = rows[kept[i]]
        for j in range(i + 1):
            total = 0.0
            for d in range(nv):
                total -= row[d] * columns[j, d]
            schur[i, j] = total
        schur[i, i] += scratch.give[kept[i]]
    cholesky(schur[:n, :n])


@_sums
def correct(links, scratch, multipliers):
    """Correct `du` so that `rows du - give multipliers = wanted` for the kept rows; multipliers of others are zero."""
    rows, columns, schur, kept = scratch.rows, scratch.columns, scratch.schur, scratch.kept
    give, wanted, change, du = scratch.give, scratch.wanted, scratch.change[0], scratch.du
    n, nv = int(scratch.info[col.INFO_KEPT]), rows.shape[1]
    factor_rows(links, scratch)
    for r in range(rows.shape[0]):
        multipliers[r] = 0.0
    first = 0.0
    for _ in range(2):  # the second round removes the rounding error of the first
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

    Pivots below rounding are raised to it, so that no sign depends on the last bit. A row of zeros stays one.
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
