"""From detected contacts to blocks of the solver, and what is kept of one step for the next."""

import math

from pliant.compilation import njit
from pliant.contact import _solver_kernels as solver

FRICTION, RESTITUTION, ROLLING, COMPLIANCE, MATERIAL = 0, 1, 2, 3, 4  # columns of a material

_jit = njit(error_model="numpy", nogil=True)


@_jit
def look_ahead(count, poses, places, boxes, least, ahead, most, margins, wanted):
    """Margins of bodies: of one that moves, as far as it has gone since it was at `places`, so many times.

    No point of a body's box has gone further than its middle, and a corner about that. What is `wanted` goes beyond
    `most`.
    """
    for b in range(count):
        box, way, turn = boxes[b], 0.0, 0.0
        for i in range(3):
            middle, corner = poses[b, i, 3] - places[b, 4 * i + 3], 0.0
            for j in range(3):
                change = poses[b, i, j] - places[b, 4 * i + j]
                middle += change * box[j]
                corner += abs(change) * box[3 + j]
            way += middle * middle
            turn += corner * corner
        wanted[b] = max(least, ahead * math.sqrt(way) + math.sqrt(turn))
        margins[b] = min(wanted[b], most)


@_jit
def let_fall(kept, first, second, normal, shape_body, owner, drop, most, held, margins, wanted):
    """Widen margins of bodies that fall by as far as gravity moves them in a step besides.

    What stands does not fall: it would see all the ground around it.

    Args:
        kept, first, second, normal: contacts of the last step, the shapes and impulses of each.
        shape_body: per shape; owner: the actor of a body that moves; held: room, per actor.
        drop: per body that moves, 0 if something other than contacts holds its actor, m.
    """
    for a in range(held.shape[0]):
        held[a] = False
    for c in range(kept):
        if normal[c] > 0.0:
            for b in (shape_body[first[c]], shape_body[second[c]]):
                if 0 <= b < drop.shape[0]:
                    held[owner[b]] = True
    for b in range(drop.shape[0]):
        if not held[owner[b]]:
            wanted[b] += drop[b]
            margins[b] = max(margins[b], min(wanted[b], most))


@_jit
def remember(count, poses, places):
    """Let `places` be where bodies are."""
    for b in range(count):
        for i in range(3):
            for j in range(4):
                places[b, 4 * i + j] = poses[b, i, j]


@_jit
def fill(
    count, first, second, points, normals, distance, material, h,
    kind, partner, body, point, axes, bound, target, give, gap, impulse, turning,
):  # fmt: skip
    """Blocks of contacts, then those of rolling resistance. Friction is the geometric mean of two materials'.

    A contact may close its gap and no more by the end of the step. One that gives way is a spring, implicitly.
    """
    at = count
    for c in range(count):
        a, b = first[c], second[c]
        kind[c], partner[c], body[c, 0], body[c, 1], turning[c] = solver.CONTACT, -1, a, b, False
        bound[c] = math.sqrt(material[a, FRICTION] * material[b, FRICTION])
        soft = material[a, COMPLIANCE] + material[b, COMPLIANCE]
        gap[c] = distance[c]
        for i in range(3):
            point[c, i] = points[c, i]
            target[c, i] = give[c, i] = impulse[c, i] = 0.0
        target[c, 0] = -distance[c] / h if distance[c] > 0.0 or soft > 0.0 else 0.0
        give[c, 0] = soft / (h * h)
    solver.frame(count, normals, axes)
    for c in range(count):
        a, b = first[c], second[c]
        arm = max(material[a, ROLLING], material[b, ROLLING])
        if arm > 0.0:
            kind[at], partner[at], body[at, 0], body[at, 1], turning[at] = solver.ROLLING, c, a, b, True
            bound[at], gap[at] = arm, 0.0
            for i in range(3):
                point[at, i] = points[c, i]
                target[at, i] = give[at, i] = impulse[at, i] = 0.0
                for j in range(3):
                    axes[at, i, j] = axes[c, i, j]
            at += 1
    return at


@_jit
def bounce(count, first, second, material, h, least, gap, side, J, before, u, target):
    """Contacts that would close in this step, fast enough, are to open with a share of their speed."""
    for c in range(count):
        share = max(material[first[c], RESTITUTION], material[second[c], RESTITUTION])
        if share == 0.0:
            continue
        came = solver.row_velocity(c, 0, side, J, before)
        if came < -least and gap[c] + h * min(came, solver.row_velocity(c, 0, side, J, u)) < 0.0:
            target[c, 0] = max(target[c, 0], -share * came)


@_jit
def recall(count, match, axes, old_impulse, old_steady, impulse):
    """First guesses: what acted in the last step, but along the normal no more than in the one before it.

    So a blow, which lasts one step, is not taken for a force that lasts.
    """
    for c in range(count):
        o = match[c]
        if o < 0:
            continue
        normal = 0.0
        for j in range(3):
            normal += axes[c, 0, j] * old_impulse[o, j]
        if normal <= 0.0:
            continue
        share = min(1.0, old_steady[o] / normal)
        for i in range(3):
            total = 0.0
            for j in range(3):
                total += axes[c, i, j] * old_impulse[o, j]
            impulse[c, i] = share * total


@_jit
def keep(count, match, axes, impulse, old_normal, out_impulse, out_steady, out_normal):
    """Impulses in world axes, and the lesser normal one of this step and the last."""
    for c in range(count):
        before = old_normal[match[c]] if match[c] >= 0 else 0.0
        out_normal[c] = impulse[c, 0]
        # an impulse that has lasted two steps is likely to last
        out_steady[c] = impulse[c, 0] if before > 0.5 * impulse[c, 0] else before
        for j in range(3):
            total = 0.0
            for i in range(3):
                total += axes[c, i, j] * impulse[c, i]
            out_impulse[c, j] = total
