"""Projected Gauss-Seidel over blocks of three rows: contacts with Coulomb's cone, springs, rolling resistance.

Block b couples two bodies, its sides. Side s of it keeps, from `side[b, s, 0]` on in the flat arrays, three rows of J
(velocity of the block per generalised velocity of the actor, the sign of the side included) and three of Y (change of
those velocities per impulse of the block); `side[b, s, 1]` is their length, 0 for what cannot move, and
`side[b, s, 2]` where the actor's velocities start in `u`. `u` is kept up to date, so that a sweep costs no more than
the rows are long.

Rows of a contact: along the normal, from first to second body, then along two tangents.
"""

import math

from pliant.compilation import njit

CONTACT, SPRING, ROLLING = 0, 1, 2
_SINGULAR = 1e-9  # of the trace of a block: mechanisms may be unable to move along some rows
_APART = 5  # sweeps, in one of which contacts that are apart are looked at
_LEAP = 5  # sweeps, after which the next ones are foreseen
_LEAST, _MOST = 0.3, 0.995  # what of a change the next one is, if that is worth while and can be told
_LOCAL = 60  # rounds of Newton's method for one contact; it takes a few

_jit = njit(error_model="numpy", nogil=True)


@_jit
def blocks(count, side, give, J, Y, block, inverse):
    """Response of every block to itself, `J Y` and what gives besides, and its inverse."""
    for b in range(count):
        xx = xy = xz = yy = yz = zz = 0.0  # side by side: a sum waits for itself
        for s in range(2):
            start, n = side[b, s, 0], side[b, s, 1]
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
        small = _SINGULAR * (block[b, 0, 0] + block[b, 1, 1] + block[b, 2, 2])
        if small == 0.0:
            small = 1.0  # nothing moves whatever the impulse: any number will do
        for i in range(3):
            block[b, i, i] += give[b, i] + small
        _invert(block[b], inverse[b])


@_jit
def _invert(a, out):
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


@_jit
def row_velocity(b, i, side, J, u):
    """Velocity along row i of block b."""
    total = 0.0
    for s in range(2):
        start, n, at = side[b, s, 0], side[b, s, 1], side[b, s, 2]
        row, own = J[start + i * n : start + (i + 1) * n], u[at : at + n]
        for k in range(n):
            total += row[k] * own[k]
    return total


@_jit
def velocity(b, side, J, u):
    """Velocity along the three rows of block b; side by side, since a sum waits for itself."""
    x = y = z = 0.0
    for s in range(2):
        start, n, at = side[b, s, 0], side[b, s, 1], side[b, s, 2]
        one, two, three = J[start : start + n], J[start + n : start + 2 * n], J[start + 2 * n : start + 3 * n]
        own = u[at : at + n]
        for k in range(n):
            rate = own[k]
            x += one[k] * rate
            y += two[k] * rate
            z += three[k] * rate
    return x, y, z


@_jit
def push(b, x, y, z, side, Y, u):
    """Let impulses act in the three rows of block b."""
    for s in range(2):
        start, n, at = side[b, s, 0], side[b, s, 1], side[b, s, 2]
        one, two, three = Y[start : start + n], Y[start + n : start + 2 * n], Y[start + 2 * n : start + 3 * n]
        own = u[at : at + n]
        for k in range(n):
            own[k] += one[k] * x + two[k] * y + three[k] * z


@_jit
def solve(
    count,
    kind,
    partner,
    bound,
    target,
    give,
    side,
    J,
    Y,
    block,
    inverse,
    impulse,
    moved,
    u,
    iterations,
    tolerance,
):
    """Impulses of all blocks, starting from those given; `u` is what it would be without any, and ends up with all.

    `target` is the least normal velocity of a contact, or what a spring wants. `bound` is the coefficient of friction,
    or the arm of rolling resistance, whose normal force is that of contact `partner`. `moved` is room. Returns the
    number of sweeps and the residual: the largest change of a block's velocity in the last one, m/s.

    Late sweeps change everything in the same proportions, each by a bit less than the one before: now and then the
    sum of all that is to come is added at once.
    """
    for b in range(count):
        push(b, impulse[b, 0], impulse[b, 1], impulse[b, 2], side, Y, u)
        moved[b, 0] = moved[b, 1] = moved[b, 2] = 0.0
    worst, whole = 0.0, True
    for sweep in range(iterations):
        worst = alike = before = 0.0
        for b in range(count):
            p, a, inv, last = impulse[b], block[b], inverse[b], moved[b]
            before += last[0] * last[0] + last[1] * last[1] + last[2] * last[2]
            if (
                kind[b] == CONTACT
                and p[0] == 0.0
                and (not whole or row_velocity(b, 0, side, J, u) >= target[b, 0])
            ):
                last[0] = last[1] = last[2] = 0.0
                continue  # apart, and going to stay so
            e0, e1, e2 = velocity(b, side, J, u)
            e0 += give[b, 0] * p[0] - target[b, 0]
            e1 += give[b, 1] * p[1] - target[b, 1]
            e2 += give[b, 2] * p[2] - target[b, 2]
            x = p[0] - (inv[0, 0] * e0 + inv[0, 1] * e1 + inv[0, 2] * e2)
            y = p[1] - (inv[1, 0] * e0 + inv[1, 1] * e1 + inv[1, 2] * e2)
            z = p[2] - (inv[2, 0] * e0 + inv[2, 1] * e1 + inv[2, 2] * e2)
            if kind[b] == ROLLING:
                size = math.sqrt(x * x + y * y + z * z)
                most = bound[b] * impulse[partner[b], 0]
                if size > most:
                    x, y, z = x * most / size, y * most / size, z * most / size
            elif kind[b] == CONTACT and not (x >= 0.0 and y * y + z * z <= (bound[b] * x) ** 2):
                x, y, z = slide(a, p[0], p[1], p[2], e0, e1, e2, bound[b])
            x, y, z = x - p[0], y - p[1], z - p[2]
            push(b, x, y, z, side, Y, u)
            p[0], p[1], p[2] = p[0] + x, p[1] + y, p[2] + z
            alike += last[0] * x + last[1] * y + last[2] * z
            last[0], last[1], last[2] = x, y, z
            for i in range(3):
                worst = max(worst, abs(a[i, 0] * x + a[i, 1] * y + a[i, 2] * z))
        if whole and worst <= tolerance:
            return sweep + 1, worst
        # those that are apart are asked now and then, and when all others are done
        whole = worst <= tolerance or sweep % _APART == 0
        if sweep % _LEAP == _LEAP - 1 and worst > tolerance and _LEAST * before < alike < _MOST * before:
            _leap(count, alike / (before - alike), kind, partner, bound, side, Y, impulse, moved, u)
    return iterations, worst


@_jit
def _leap(count, further, kind, partner, bound, side, Y, impulse, moved, u):
    """Add so many times what the last sweep has added, as far as Coulomb's cone allows."""
    for b in range(count):
        p = impulse[b]
        x, y, z = p[0] + further * moved[b, 0], p[1] + further * moved[b, 1], p[2] + further * moved[b, 2]
        if kind[b] == CONTACT:
            x = max(x, 0.0)
            size, most = math.sqrt(y * y + z * z), bound[b] * x
            if size > most:
                y, z = y * most / size, z * most / size
        elif kind[b] == ROLLING:
            size, most = math.sqrt(x * x + y * y + z * z), bound[b] * impulse[partner[b], 0]
            if size > most:
                x, y, z = x * most / size, y * most / size, z * most / size
        push(b, x - p[0], y - p[1], z - p[2], side, Y, u)
        p[0], p[1], p[2] = x, y, z


@_jit
def slide(a, p0, p1, p2, e0, e1, e2, friction):
    """Impulse of one contact that slides or opens, everything else as it is: on the cone, against the sliding.

    With the normal velocity at its target, the normal impulse is `most - (s, t) q` for a tangential q; q is such
    that |q| is the friction times the normal one, and the tangential velocity `[A B; B C] q + (f, g)` is -l q, l > 0.
    """
    v0 = e0 - (a[0, 0] * p0 + a[0, 1] * p1 + a[0, 2] * p2)  # what there is without any impulse
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
    # |q| falls as l rises, 1/|q| is nearly straight: Newton's method for how far |q| is below its bound, times 1/|q|.
    for _ in range(_LOCAL):
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
        if not low < l + step < high:  # never outside of where the answer is known to be
            step = 0.5 * (high - low) + low - l if high < math.inf else l + mean
        l += step
        if abs(step) <= 1e-14 * (l + mean):
            break
    x = max(most - s * y - t * z, 0.0)
    return x, y * friction * x / norm, z * friction * x / norm


@_jit
def project(
    count, kind, give, gap, side, J, Y, block, u, w, amount, slop, share, deep, h, iterations, tolerance
):
    """Velocities w besides u, for this step's positions only, that bring bodies out of each other.

    Contacts are left as deep as `slop`; of what is deeper, a `share` goes in this step, and all of what is as deep as
    `deep`: so far inside, surfaces no longer tell what holds a body. Others may close as far as that. Returns the
    number of sweeps, 0 if nothing was to be done.
    """
    deepest = 0.0
    for b in range(count):
        amount[b, 0] = amount[b, 1] = 0.0
        if kind[b] == CONTACT and give[b, 0] == 0.0:
            depth = -(gap[b] + h * row_velocity(b, 0, side, J, u)) - slop
            deepest = max(deepest, depth)
            amount[b, 1] = (share * depth if 0.0 < depth < deep else depth) / h
    if deepest <= 0.0:
        return 0
    for sweep in range(iterations):
        worst = 0.0
        for b in range(count):
            if kind[b] != CONTACT or give[b, 0] != 0.0:
                continue
            amiss = row_velocity(b, 0, side, J, w) - amount[b, 1]
            x = max(-amiss / block[b, 0, 0], -amount[b, 0])
            if x != 0.0:
                amount[b, 0] += x
                push(b, x, 0.0, 0.0, side, Y, w)
                worst = max(worst, abs(x) * block[b, 0, 0])
        if worst <= tolerance:
            return sweep + 1
    return iterations


@_jit
def match(count, first, second, point, old_count, old_first, old_second, old_point, taken, out):
    """For every contact the old one of the same two shapes that was nearest, -1 if there is none left."""
    for c in range(old_count):
        taken[c] = False
    for b in range(count):
        best, least = -1, math.inf
        for c in range(old_count):
            if taken[c] or old_first[c] != first[b] or old_second[c] != second[b]:
                continue
            d = 0.0
            for i in range(3):
                d += (point[b, i] - old_point[c, i]) ** 2
            if d < least:
                best, least = c, d
        out[b] = best
        if best >= 0:
            taken[best] = True


@_jit
def lay_out(count, body, size, offset, side):
    """Where the rows of all sides go; returns how many numbers they take."""
    total = 0
    for b in range(count):
        for s in range(2):
            k = body[b, s]
            n = size[k] if k >= 0 else 0
            side[b, s, 0], side[b, s, 1], side[b, s, 2] = total, n, offset[k] if n else 0
            total += 3 * n
    return total


@_jit
def frame(count, normal, axes):
    """Three axes per contact: the normal and two tangents."""
    for b in range(count):
        x, y, z = normal[b, 0], normal[b, 1], normal[b, 2]
        # a tangent in the plane of the two smaller components
        if abs(x) < abs(y) or abs(x) < abs(z):
            s = 1.0 / math.sqrt(y * y + z * z)
            tx, ty, tz = 0.0, z * s, -y * s
        else:
            s = 1.0 / math.sqrt(x * x + y * y)
            tx, ty, tz = y * s, -x * s, 0.0
        axes[b, 0, 0], axes[b, 0, 1], axes[b, 0, 2] = x, y, z
        axes[b, 1, 0], axes[b, 1, 1], axes[b, 1, 2] = tx, ty, tz
        axes[b, 2, 0], axes[b, 2, 1], axes[b, 2, 2] = y * tz - z * ty, z * tx - x * tz, x * ty - y * tx
