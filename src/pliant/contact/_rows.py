"""Rows of the contact solver from detected contacts, and warm start with the impulses of the last step."""

import math

from pliant.compilation import njit
from pliant.contact._solve import _row_velocity, _velocity
from pliant.contact.arrays import COMPLIANCE, CONTACTS, FRICTION, KEPT, PART, RESTITUTION, ROLLING_ARM, ROWS
from pliant.engines.actor import CONTACT, LENGTH, NORMAL, OFFSET, ROLLING, START

_ON_CONE = 1 - 1e-12  # of the largest friction: contacts with more slide

_jit = njit(counts_references=True, error_model="numpy", nogil=True)  # for the structure of a step
_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself


@_jit
def fill_rows(step):
    """Blocks of contacts, then of rolling resistance, with their warm start. Two frictions have their geometric mean.

    The target velocity of a contact closes its gap in this step. A compliant contact is an implicit spring.
    """
    found, rows, material, h = step.found, step.rows, step.bodies.material, step.settings.timestep
    first, second, distance = found.first, found.second, found.distance
    points, normals = found.point, found.normal
    kind, partner, body, angular = rows.kind, rows.partner, rows.body, rows.angular
    point, axes, bound, gap = rows.point, rows.axes, rows.bound, rows.gap
    target, softness, impulse = rows.target, rows.softness, rows.impulse
    count = at = step.report.counts[CONTACTS]
    for c in range(count):
        a, b = first[c], second[c]
        kind[c], partner[c], body[c, 0], body[c, 1], angular[c] = CONTACT, -1, a, b, False
        bound[c] = math.sqrt(material[a, FRICTION] * material[b, FRICTION])
        soft = material[a, COMPLIANCE] + material[b, COMPLIANCE]
        gap[c] = distance[c]
        for i in range(3):
            point[c, i] = points[c, i]
            target[c, i] = softness[c, i] = impulse[c, i] = 0.0
        target[c, NORMAL] = -distance[c] / h if distance[c] > 0.0 or soft > 0.0 else 0.0
        softness[c, NORMAL] = soft / (h * h)
        _contact_axes(normals[c], axes[c])
    for c in range(count):
        a, b = first[c], second[c]
        arm = max(material[a, ROLLING_ARM], material[b, ROLLING_ARM])
        if arm > 0.0:
            kind[at], partner[at], body[at, 0], body[at, 1], angular[at] = ROLLING, c, a, b, True
            bound[at], gap[at] = arm, 0.0
            for i in range(3):
                point[at, i] = points[c, i]
                target[at, i] = softness[at, i] = impulse[at, i] = 0.0
                for j in range(3):
                    axes[at, i, j] = axes[c, i, j]
            at += 1
    step.report.counts[ROWS] = at
    _match(step)
    _warm_start(step)


@_inline
def _contact_axes(normal, axes):
    """Normal and two tangents of a contact."""
    x, y, z = normal[0], normal[1], normal[2]
    # the first tangent is in a coordinate plane that holds the largest component of the normal
    if abs(x) < abs(y) or abs(x) < abs(z):
        s = 1.0 / math.sqrt(y * y + z * z)
        tx, ty, tz = 0.0, z * s, -y * s
    else:
        s = 1.0 / math.sqrt(x * x + y * y)
        tx, ty, tz = y * s, -x * s, 0.0
    axes[0, 0], axes[0, 1], axes[0, 2] = x, y, z
    axes[1, 0], axes[1, 1], axes[1, 2] = tx, ty, tz
    axes[2, 0], axes[2, 1], axes[2, 2] = y * tz - z * ty, z * tx - x * tz, x * ty - y * tx


@_inline
def _match(step):
    """For every contact the nearest one of the last step between the same two shapes, -1 if there is none left."""
    found, warm = step.found, step.warm
    first, second, point = found.shape_first, found.shape_second, found.point
    taken, out = warm.taken, warm.match
    part, kept = warm.now[PART], warm.now[KEPT]
    old_first, old_second, old_point = warm.first[part], warm.second[part], warm.point[part]
    for c in range(kept):
        taken[c] = False
    for b in range(step.report.counts[CONTACTS]):
        best, least = -1, math.inf
        for c in range(kept):
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


@_inline
def _warm_start(step):
    """First guess of impulses: those of the last step, scaled to their steady normal part.

    So an impact, which lasts one step, is not taken for a lasting force.
    """
    warm, axes, impulse = step.warm, step.rows.axes, step.rows.impulse
    part, match = warm.now[PART], warm.match
    old_impulse, old_steady = warm.impulse[part], warm.steady[part]
    for c in range(step.report.counts[CONTACTS]):
        o = match[c]
        if o < 0:
            continue
        normal = 0.0
        for j in range(3):
            normal += axes[c, NORMAL, j] * old_impulse[o, j]
        if normal <= 0.0:
            continue
        share = min(1.0, old_steady[o] / normal)
        for i in range(3):
            total = 0.0
            for j in range(3):
                total += axes[c, i, j] * old_impulse[o, j]
            impulse[c, i] = share * total


@_jit
def store(step):
    """Keep contacts and impulses, in world axes, for the warm start of the next step."""
    found, warm, axes, impulse = step.found, step.warm, step.rows.axes, step.rows.impulse
    shape_first, shape_second, points = found.shape_first, found.shape_second, found.point
    count, now, match = step.report.counts[CONTACTS], warm.now, warm.match
    old_normal = warm.normal[now[PART]]
    new = 1 - now[PART]
    first, second, point, total = warm.first[new], warm.second[new], warm.point[new], warm.impulse[new]
    normal, steady = warm.normal[new], warm.steady[new]
    for c in range(count):
        before = old_normal[match[c]] if match[c] >= 0 else 0.0
        normal[c] = impulse[c, NORMAL]
        steady[c] = normal[c] if before > 0.5 * normal[c] else before
        first[c], second[c] = shape_first[c], shape_second[c]
        for j in range(3):
            along = 0.0
            for i in range(3):
                along += axes[c, i, j] * impulse[c, i]
            total[c, j], point[c, j] = along, points[c, j]
    now[PART], now[KEPT] = new, count


@_jit
def lay_out(count, body, size, offset, side):
    """Places of the rows of all sides in J and Y; returns how many numbers they take."""
    total = 0
    for b in range(count):
        for s in range(2):
            k = body[b, s]
            n = size[k] if k >= 0 else 0
            side[b, s, START], side[b, s, LENGTH], side[b, s, OFFSET] = total, n, offset[k] if n else 0
            total += 3 * n
    return total


@_jit
def restitution(step):
    """Target velocity of contacts that close in this step faster than `bounce`: a share of their approach speed."""
    rows, material, h, least = step.rows, step.bodies.material, step.settings.timestep, step.settings.bounce
    gap, side, J, target, struck = rows.gap, rows.side, rows.J, rows.target, rows.struck
    first, second, before, u = step.found.first, step.found.second, step.velocities.before, step.velocities.u
    for c in range(step.report.counts[CONTACTS]):
        share = max(material[first[c], RESTITUTION], material[second[c], RESTITUTION])
        if share == 0.0 or struck[c]:
            continue
        speed = _row_velocity(c, NORMAL, side, J, before)
        if speed < -least and gap[c] + h * min(speed, _row_velocity(c, NORMAL, side, J, u)) < 0.0:
            target[c, NORMAL] = max(target[c, NORMAL], -share * speed)


@_jit
def end_targets(step):
    """Target velocities at the end of the step, of blocks with actors that strike; returns whether to solve for them.

    Contacts that have closed stay closed, or bounce; open ones may close further. Springs keep their impulses. Nothing
    is left to solve if the velocities at the end agree with the impulses as the mean ones did.
    """
    rows, material, least = step.rows, step.bodies.material, step.settings.bounce
    kind, side, J, target, softness = rows.kind, rows.side, rows.J, rows.target, rows.softness
    impulse, struck, body = rows.impulse, rows.struck, rows.body
    before, u, missed = step.velocities.before, step.velocities.u, False
    for b in range(step.report.counts[ROWS]):
        if not struck[b]:
            continue
        if kind[b] == CONTACT and impulse[b, NORMAL] == 0.0:
            target[b, NORMAL] = -math.inf
            continue
        missed |= not _error(b, rows, u) <= step.settings.tolerance
        for i in range(3):
            target[b, i] = 0.0
            if softness[b, i] > 0.0:
                target[b, i] = _row_velocity(b, i, side, J, u) + softness[b, i] * impulse[b, i]
        if b < step.report.counts[CONTACTS] and softness[b, NORMAL] == 0.0:  # stops do not bounce
            share = max(material[body[b, 0], RESTITUTION], material[body[b, 1], RESTITUTION])
            speed = _row_velocity(b, NORMAL, side, J, before) if share > 0.0 else 0.0
            if speed < -least:
                target[b, NORMAL], missed = -share * speed, True
    return missed


@_inline
def _error(b, rows, u):
    """Distance of the velocities of a block from those that agree with its impulses, m/s."""
    softness, impulse, target = rows.softness[b], rows.impulse[b], rows.target[b]
    x, y, z = _velocity(b, rows.side, rows.J, u)
    x, y, z = (
        x + softness[0] * impulse[0] - target[0],
        y + softness[1] * impulse[1] - target[1],
        z + softness[2] * impulse[2] - target[2],
    )
    if rows.kind[b] == CONTACT:
        friction = math.sqrt(impulse[1] * impulse[1] + impulse[2] * impulse[2])
        if friction >= _ON_CONE * rows.bound[b] * impulse[NORMAL]:  # slides: friction against the slip
            slip = math.sqrt(y * y + z * z) / friction if friction > 0.0 else 0.0
            y, z = y + slip * impulse[1], z + slip * impulse[2]
    return abs(x) + abs(y) + abs(z)
