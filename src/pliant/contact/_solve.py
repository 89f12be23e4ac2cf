"""Projected Gauss-Seidel on blocks of three rows: contacts with Coulomb's cone, springs, rolling resistance.

The world's velocities `u` are kept up to date with the impulses, so that the cost of a sweep is proportional to the
length of the rows. See `pliant.engines.actor.Rows` for the blocks.
"""

import math

from pliant.compilation import njit
from pliant.contact.arrays import RECOVERY, ROWS, SWEEPS
from pliant.engines.actor import CONTACT, IMPULSE, LENGTH, NORMAL, OFFSET, ROLLING, START, VELOCITY

_REGULARIZATION = 1e-9  # of the trace of a block: mechanisms may be unable to move along some rows
_CHECK_OPEN = 5  # sweeps between two checks of contacts without impulse
_EXTRAPOLATE = 5  # sweeps between two extrapolations
_LEAST_RATIO, _MOST_RATIO = 0.3, 0.995  # ratios of successive changes at which extrapolation pays and is safe
_NEWTON = 60  # most iterations of Newton's method for one contact; it takes a few

_jit = njit(counts_references=True, error_model="numpy", nogil=True)  # for the structure of a step
# sums over rows, in any order: several at once
_sums = njit(
    counts_references=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"}
)
_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself


@_sums
def delassus(step):
    """Diagonal blocks of the Delassus matrix, `J Y` and the softness of the rows, and their inverses."""
    rows = step.rows
    side, softness, J, Y = rows.side, rows.softness, rows.J, rows.Y
    block, inverse = rows.delassus, rows.inverse
    for b in range(step.report.counts[ROWS]):
        xx = xy = xz = yy = yz = zz = 0.0  # six sums at once hide the latency of each
        for s in range(2):
            start, n = side[b, s, START], side[b, s, LENGTH]
            for k in range(start, start + n):
                x, y, z = J[k], J[k + n], J[k + 2 * n]
                p, q, r = Y[k], Y[k + n], Y[k + 2 * n]
                xx += x * p
                xy += 0.5 * (x * q + y * p)
                xz += 0.5 * (x * r + z * p)
                yy += y * q
                yz += 0.5 * (y * r + z * q)
                zz += z * r
        a = block[b]
        a[0, 0], a[1, 1], a[2, 2] = xx, yy, zz
        a[0, 1], a[0, 2], a[1, 2] = xy, xz, yz
        a[1, 0], a[2, 0], a[2, 1] = xy, xz, yz
        small = _REGULARIZATION * (block[b, 0, 0] + block[b, 1, 1] + block[b, 2, 2])
        if small == 0.0:
            small = 1.0  # nothing can move: any value will do
        for i in range(3):
            block[b, i, i] += softness[b, i] + small
        _invert(block[b], inverse[b])


@_inline
def _invert(a, out):
    """Inverse of a symmetric, positive definite 3 x 3 matrix; zero if it is singular."""
    c00 = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1]
    c01 = a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2]
    c02 = a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0]
    determinant = a[0, 0] * c00 + a[0, 1] * c01 + a[0, 2] * c02
    d = 1.0 / determinant if determinant > 0.0 else 0.0
    out[0, 0], out[1, 0], out[2, 0] = d * c00, d * c01, d * c02
    out[0, 1] = d * (a[0, 2] * a[2, 1] - a[0, 1] * a[2, 2])
    out[1, 1] = d * (a[0, 0] * a[2, 2] - a[0, 2] * a[2, 0])
    out[2, 1] = d * (a[0, 1] * a[2, 0] - a[0, 0] * a[2, 1])
    out[0, 2] = d * (a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1])
    out[1, 2] = d * (a[0, 2] * a[1, 0] - a[0, 0] * a[1, 2])
    out[2, 2] = d * (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])


@_sums
def _row_velocity(b, i, side, J, u):
    """Velocity along row i of block b."""
    total = 0.0
    for s in range(2):
        start, n, at = side[b, s, START], side[b, s, LENGTH], side[b, s, OFFSET]
        row, own = J[start + i * n : start + (i + 1) * n], u[at : at + n]
        for k in range(n):
            total += row[k] * own[k]
    return total


@_sums
def _velocity(b, side, J, u):
    """Velocity along the three rows of block b; three sums at once hide the latency of each."""
    x = y = z = 0.0
    for s in range(2):
        start, n, at = side[b, s, START], side[b, s, LENGTH], side[b, s, OFFSET]
        one, two, three = J[start : start + n], J[start + n : start + 2 * n], J[start + 2 * n : start + 3 * n]
        own = u[at : at + n]
        for k in range(n):
            rate = own[k]
            x += one[k] * rate
            y += two[k] * rate
            z += three[k] * rate
    return x, y, z


@_sums
def _push(b, x, y, z, side, Y, u):
    """Add the effect of impulses along the three rows of block b to the velocities u."""
    for s in range(2):
        start, n, at = side[b, s, START], side[b, s, LENGTH], side[b, s, OFFSET]
        one, two, three = Y[start : start + n], Y[start + n : start + 2 * n], Y[start + 2 * n : start + 3 * n]
        own = u[at : at + n]
        for k in range(n):
            own[k] += one[k] * x + two[k] * y + three[k] * z


@_jit
def solve(step, fresh):
    """Impulses of all blocks from those given, and the velocities u with them; writes sweeps and residual.

    If `fresh`, u are velocities without the given impulses, and sweeps are counted from zero. Late sweeps change all
    impulses by the same ratio, so that the sum of the changes to come, a geometric series, can be added at once.
    """
    rows, report, u = step.rows, step.report, step.velocities.u
    count, sweeps, tolerance = report.counts[ROWS], step.settings.sweeps, step.settings.tolerance
    kind, partner, bound, side, J, Y = rows.kind, rows.partner, rows.bound, rows.side, rows.J, rows.Y
    target, softness, impulse, change = rows.target, rows.softness, rows.impulse, rows.change
    block, inverse = rows.delassus, rows.inverse
    for b in range(count):
        if fresh:
            _push(b, impulse[b, 0], impulse[b, 1], impulse[b, 2], side, Y, u)
        change[b, 0] = change[b, 1] = change[b, 2] = 0.0
    worst, whole, sweep = 0.0, True, 0
    while sweep < sweeps:
        worst = alike = before = 0.0
        for b in range(count):
            p, a, inv, last = impulse[b], block[b], inverse[b], change[b]
            before += last[0] * last[0] + last[1] * last[1] + last[2] * last[2]
            if (
                kind[b] == CONTACT
                and p[NORMAL] == 0.0
                and (not whole or _row_velocity(b, NORMAL, side, J, u) >= target[b, NORMAL])
            ):
                last[0] = last[1] = last[2] = 0.0
                continue  # open, and stays so
            e0, e1, e2 = _velocity(b, side, J, u)
            e0 += softness[b, 0] * p[0] - target[b, 0]
            e1 += softness[b, 1] * p[1] - target[b, 1]
            e2 += softness[b, 2] * p[2] - target[b, 2]
            x = p[0] - (inv[0, 0] * e0 + inv[0, 1] * e1 + inv[0, 2] * e2)
            y = p[1] - (inv[1, 0] * e0 + inv[1, 1] * e1 + inv[1, 2] * e2)
            z = p[2] - (inv[2, 0] * e0 + inv[2, 1] * e1 + inv[2, 2] * e2)
            if kind[b] == ROLLING:
                size = math.sqrt(x * x + y * y + z * z)
                most = bound[b] * impulse[partner[b], NORMAL]
                if size > most:
                    x, y, z = x * most / size, y * most / size, z * most / size
            elif kind[b] == CONTACT and not (x >= 0.0 and y * y + z * z <= (bound[b] * x) ** 2):
                x, y, z = slide(a, p[0], p[1], p[2], e0, e1, e2, bound[b])
            x, y, z = x - p[0], y - p[1], z - p[2]
            _push(b, x, y, z, side, Y, u)
            p[0], p[1], p[2] = p[0] + x, p[1] + y, p[2] + z
            alike += last[0] * x + last[1] * y + last[2] * z
            last[0], last[1], last[2] = x, y, z
            for i in range(3):
                worst = max(worst, abs(a[i, 0] * x + a[i, 1] * y + a[i, 2] * z))
        sweep += 1
        if whole and worst <= tolerance:
            break
        # open contacts are checked every few sweeps, and once all others have converged
        whole = worst <= tolerance or sweep % _CHECK_OPEN == 1
        geometric = _LEAST_RATIO * before < alike < _MOST_RATIO * before
        if sweep % _EXTRAPOLATE == 0 and worst > tolerance and geometric:
            _extrapolate(step, alike / (before - alike))
    report.counts[SWEEPS] = sweep if fresh else report.counts[SWEEPS] + sweep
    report.residual[0] = worst


@_jit
def _extrapolate(step, factor):
    """Geometric extrapolation: add `factor` times the last change, projected onto the friction cone."""
    rows, u = step.rows, step.velocities.u
    kind, partner, bound, side, Y = rows.kind, rows.partner, rows.bound, rows.side, rows.Y
    impulse, change = rows.impulse, rows.change
    for b in range(step.report.counts[ROWS]):
        p = impulse[b]
        x, y, z = p[0] + factor * change[b, 0], p[1] + factor * change[b, 1], p[2] + factor * change[b, 2]
        if kind[b] == CONTACT:
            x = max(x, 0.0)
            size, most = math.sqrt(y * y + z * z), bound[b] * x
            if size > most:
                y, z = y * most / size, z * most / size
        elif kind[b] == ROLLING:
            size, most = math.sqrt(x * x + y * y + z * z), bound[b] * impulse[partner[b], NORMAL]
            if size > most:
                x, y, z = x * most / size, y * most / size, z * most / size
        _push(b, x - p[0], y - p[1], z - p[2], side, Y, u)
        p[0], p[1], p[2] = x, y, z


@_jit
def slide(a, p0, p1, p2, e0, e1, e2, friction):
    """Impulse of one contact that slides or opens, all others fixed: on the friction cone, against the slip.

    With the normal velocity at its target, the normal impulse is `most - (s, t) q` for a tangential q; q is such
    that |q| is the friction times the normal one, and the tangential velocity `[A B; B C] q + (f, g)` is -l q, l > 0.
    """
    v0 = e0 - (a[0, 0] * p0 + a[0, 1] * p1 + a[0, 2] * p2)  # velocity without the contact's impulse
    if v0 >= 0.0:
        return 0.0, 0.0, 0.0
    most, s, t = -v0 / a[0, 0], a[0, 1] / a[0, 0], a[0, 2] / a[0, 0]
    if friction <= 0.0:
        return most, 0.0, 0.0
    f = e1 - (a[1, 0] * p0 + a[1, 1] * p1 + a[1, 2] * p2) + a[1, 0] * most
    g = e2 - (a[2, 0] * p0 + a[2, 1] * p1 + a[2, 2] * p2) + a[2, 0] * most
    A, B, C = a[1, 1] - a[1, 0] * s, a[1, 2] - a[1, 0] * t, a[2, 2] - a[2, 0] * t
    mean, half = 0.5 * (A + C), 0.5 * (A - C)
    low, high = 0.0, math.inf
    l = max(0.0, math.sqrt(f * f + g * g) / (friction * most) - mean - math.sqrt(half * half + B * B))
    y = z = norm = 0.0
    # |q| decreases with l and 1/|q| is nearly linear: Newton's method on bound / |q| - 1.
    for _ in range(_NEWTON):
        p, r = A + l, C + l
        determinant = p * r - B * B
        y, z = (B * g - r * f) / determinant, (B * f - p * g) / determinant
        norm = math.sqrt(y * y + z * z)
        if norm == 0.0:
            return most, 0.0, 0.0
        dy, dz = (B * z - r * y) / determinant, (B * y - p * z) / determinant  # change of q with l
        bound, along = friction * (most - s * y - t * z), (y * dy + z * dz) / (norm * norm)
        below = bound / norm - 1.0
        slope = -friction * (s * dy + t * dz) / norm - along * (below + 1.0)
        if below < 0.0:
            low = l
        else:
            high = l
        if abs(below) <= 1e-13:
            break
        step = -below / slope if slope > 0.0 else math.inf
        if not low < l + step < high:  # outside the bracket: bisect
            step = 0.5 * (high - low) + low - l if high < math.inf else l + mean
        l += step
        if abs(step) <= 1e-14 * (l + mean):
            break
    x = max(most - s * y - t * z, 0.0)
    return x, y * friction * x / norm, z * friction * x / norm


@_jit
def recover_penetration(step):
    """Velocities w besides u, for the positions of this step only, that reduce penetration.

    A penetration up to `slop` is left; of a deeper one a `share` is corrected in this step, and all of one beyond
    `thin`, at which the side of the surface a body is on becomes uncertain. Open contacts may not close further than
    that. Writes the number of sweeps, 0 if there is no such penetration.
    """
    rows, settings, u, w = step.rows, step.settings, step.velocities.u, step.velocities.w
    count, counts = step.report.counts[ROWS], step.report.counts
    counts[RECOVERY] = 0
    kind, softness, gap, side, J, Y = rows.kind, rows.softness, rows.gap, rows.side, rows.J, rows.Y
    block, correction, h, deepest = rows.delassus, rows.correction, settings.timestep, 0.0
    for b in range(count):
        correction[b, IMPULSE] = correction[b, VELOCITY] = 0.0
        if kind[b] == CONTACT and softness[b, NORMAL] == 0.0:
            depth = -(gap[b] + h * _row_velocity(b, NORMAL, side, J, u)) - settings.slop
            deepest = max(deepest, depth)
            correction[b, VELOCITY] = (settings.share * depth if 0.0 < depth < settings.thin else depth) / h
    if deepest <= 0.0:
        return
    for _ in range(settings.sweeps):
        worst = 0.0
        counts[RECOVERY] += 1
        for b in range(count):
            if kind[b] != CONTACT or softness[b, NORMAL] != 0.0:
                continue
            error = _row_velocity(b, NORMAL, side, J, w) - correction[b, VELOCITY]
            x = max(-error / block[b, NORMAL, NORMAL], -correction[b, IMPULSE])
            if x != 0.0:
                correction[b, IMPULSE] += x
                _push(b, x, 0.0, 0.0, side, Y, w)
                worst = max(worst, abs(x) * block[b, NORMAL, NORMAL])
        if worst <= settings.tolerance:
            break
