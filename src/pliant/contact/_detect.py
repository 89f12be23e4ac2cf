"""Detection of contacts: margins of bodies, their frames in MuJoCo's arrays, and contacts out of its records.

Contacts of a few round shapes are found by `_round`, without MuJoCo.
"""

import math

from numba import types

from pliant.compilation import njit
from pliant.contact._free import MASS, MOMENTUM
from pliant.contact._round import UNKNOWN, find_round
from pliant.contact.arrays import (
    CONTACTS,
    DONE,
    KEPT,
    MORE_CONTACTS,
    NOT_FINITE,
    PART,
    RECORD_DISTANCE,
    RECORD_FRAME,
    RECORD_GEOMS,
    RECORD_POINT,
)

# Contacts of two bodies at nearly the same point are merged if their normals differ by less than this, rad.
_SIMILAR = 0.2
_ASIDE = 0.98  # cosine of two normals below which one may belong to an inner edge of a height field
_LEVEL = 0.05  # slope of a surface that counts as none
_AROUND = 8.0  # distance within which inner edges are looked for around a contact, in units of `near`
_KEEP, _DROP = 1, 2  # marks of contacts
_ROTATION = 1e-3  # by how much the square of a row of a rotation may differ from one

_collide = types.ExternalFunction("mj_collision", types.void(types.intp, types.intp))
_jit = njit(counts_references=True, error_model="numpy", nogil=True)  # for the structure of a step
_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself


@_jit
def widen_margins(step):
    """Detection margins of bodies that move.

    The margin is `ahead` times the displacement of the last step, clamped to [margin, reach], and what gravity adds
    for bodies that fall. Margins of cores have no upper bound.
    """
    settings, scene, bodies = step.settings, step.scene, step.bodies
    least, most, ahead = settings.margin, settings.reach, settings.ahead
    margins, cores = scene.margins, scene.core_margins
    drop, held, owner = bodies.drop, bodies.held, bodies.owner
    poses, previous = bodies.poses, bodies.previous
    for b in range(previous.shape[0]):
        # Bound on the displacement of all points of the body's box: that of its centre, and of a corner about it.
        box, way, turn = bodies.boxes[b], 0.0, 0.0
        for i in range(3):
            middle, corner = poses[b, i, 3] - previous[b, 4 * i + 3], 0.0
            for j in range(3):
                change = poses[b, i, j] - previous[b, 4 * i + j]
                middle += change * box[j]
                corner += abs(change) * box[3 + j]
            way += middle * middle
            turn += corner * corner
        cores[b] = max(least, ahead * math.sqrt(way) + math.sqrt(turn))
        margins[b] = min(cores[b], most)
    _find_held(step)
    for b in range(drop.shape[0]):
        # Skip actors held by a contact: a larger margin would only add useless ground contacts.
        if not held[owner[b]]:
            cores[b] += drop[b]
            margins[b] = max(margins[b], min(cores[b], most))
    _free_margins(step)


@_inline
def _find_held(step):
    """Mark actors that a contact pushed in the last step."""
    bodies, warm, shape_body = step.bodies, step.warm, step.scene.shape_body
    held, owner, moving, part = bodies.held, bodies.owner, bodies.drop.shape[0], warm.now[PART]
    normal, shapes = warm.normal[part], (warm.first[part], warm.second[part])
    for a in range(held.shape[0]):
        held[a] = False
    for c in range(warm.now[KEPT]):
        if normal[c] > 0.0:
            for side in range(2):
                b = shape_body[shapes[side][c]]
                if 0 <= b < moving:
                    held[owner[b]] = True


@_inline
def _free_margins(step):
    """Widen margins of free bodies to `ahead` times the displacement of their centre of mass in the next step."""
    settings, state, fixed = step.settings, step.free.state, step.free.fixed
    margins, cores, travel = step.scene.margins, step.scene.core_margins, settings.ahead * settings.timestep
    for b in range(state.shape[0]):
        x, y, z = state[b, MOMENTUM], state[b, MOMENTUM + 1], state[b, MOMENTUM + 2]
        speed = math.sqrt(x**2 + y**2 + z**2) / fixed[b, MASS]
        margins[b] = max(margins[b], min(travel * (speed + settings.fall), settings.reach))
        # Without gravity: the core of a body at rest would see the floor all the time.
        cores[b] = max(margins[b], travel * speed)


@_inline
def _place(count, scene, poses):
    """Write frames and margins of geoms of the first `count` bodies; returns the first one without a pose, else -1.

    A matrix that is not finite, or no rotation, would make MuJoCo end the process. It adds the margins of two geoms.
    """
    margins, cores = scene.margins, scene.core_margins
    local, geom_body, geom_core = scene.local, scene.geom_body, scene.geom_core
    xpos, xmat, geom_margin = scene.xpos, scene.xmat, scene.geom_margin
    for b in range(count):
        for i in range(3):
            x, y, z = poses[b, i, 0], poses[b, i, 1], poses[b, i, 2]
            if not abs(x * x + y * y + z * z - 1.0) <= _ROTATION or not math.isfinite(poses[b, i, 3]):
                return b
    for g in range(geom_body.shape[0]):
        b = geom_body[g]
        if 0 <= b < count:
            geom_margin[g] = cores[b] if geom_core[g] else margins[b]
            for i in range(3):
                r0, r1, r2 = poses[b, i, 0], poses[b, i, 1], poses[b, i, 2]
                for j in range(3):
                    xmat[g, 3 * i + j] = r0 * local[g, 0, j] + r1 * local[g, 1, j] + r2 * local[g, 2, j]
                xpos[g, i] = r0 * local[g, 0, 3] + r1 * local[g, 1, 3] + r2 * local[g, 2, 3] + poses[b, i, 3]
    return -1


@_inline
def _place_bodies(count, scene, poses):
    """Write frames and margins of the first `count` bodies themselves, for MuJoCo's broad phase."""
    margins, cores = scene.margins, scene.core_margins
    body, core, xipos, ximat = scene.body, scene.core, scene.xipos, scene.ximat
    body_margin = scene.body_margin
    for k in range(body.shape[0]):
        b = body[k]
        if 0 <= b < count:
            body_margin[k] = cores[b] if core[k] else margins[b]
            for i in range(3):
                xipos[k, i] = poses[b, i, 3]
                for j in range(3):
                    ximat[k, 3 * i + j] = poses[b, i, j]


@_inline
def _collect(count, geoms, points, frames, distances, scene, found):
    """Contacts from pairs of geoms; of the two bodies the lower index comes first."""
    geom_body, geom_shape = scene.geom_body, scene.geom_shape
    first, second = found.first, found.second
    shape_first, shape_second = found.shape_first, found.shape_second
    point, normal, distance = found.point, found.normal, found.distance
    for c in range(count):
        a, b = geoms[c, 0], geoms[c, 1]
        sign = 1.0
        if geom_body[a] > geom_body[b]:
            a, b, sign = b, a, -1.0
        first[c], second[c] = geom_body[a], geom_body[b]
        shape_first[c], shape_second[c] = geom_shape[a], geom_shape[b]
        distance[c] = distances[c]
        for i in range(3):
            point[c, i] = points[c, i]
            normal[c, i] = sign * frames[c, i]


@_inline
def _merge(count, near, height_field, found):
    """Merge near-duplicate contacts: same pair of bodies, close points and normals; returns how many are left.

    Where a body touches several triangles of a height field, or several shapes of another body, at one point, the
    deepest of these contacts is kept: the others differ by rounding, and the solver would take many sweeps to share a
    force among them. Contacts with inner edges of a height field, which is made of prisms, are dropped too: seen from
    the side of a prism such an edge looks like a corner, although the surface goes on.

    Args:
        count: number of contacts.
        near: largest distance of contacts to be merged, m; 0: none are.
        height_field: per shape, whether it is one.
        found: the contacts.
    """
    if near <= 0.0:
        return count
    first, second = found.first, found.second
    shape_first, shape_second = found.shape_first, found.shape_second
    point, normal, distance, mark = found.point, found.normal, found.distance, found.mark
    left = start = 0
    while start < count:
        end = start + 1
        while end < count and first[end] == first[start] and second[end] == second[start]:
            end += 1
        for c in range(start, end):
            mark[c] = 0
        for _ in range(end - start):
            best = -1  # the deepest without a mark
            for c in range(start, end):
                if mark[c] == 0 and (best < 0 or distance[c] < distance[best]):
                    best = c
            if best < 0:
                break
            mark[best] = _KEEP
            for c in range(start, end):
                if mark[c] == 0 and _is_redundant(
                    c, best, near, height_field, shape_first, shape_second, point, normal, distance
                ):
                    mark[c] = _DROP
        for c in range(start, end):
            if mark[c] == _KEEP:
                if left < c:
                    first[left], second[left] = first[c], second[c]
                    shape_first[left], shape_second[left] = shape_first[c], shape_second[c]
                    distance[left] = distance[c]
                    for i in range(3):
                        point[left, i], normal[left, i] = point[c, i], normal[c, i]
                left += 1
        start = end
    return left


@_jit
def _is_redundant(c, d, near, height_field, shape_first, shape_second, point, normal, distance):
    """Whether contact c is a duplicate of the deeper contact d, or an inner edge of the surface that d touches."""
    cosine = away = turned = 0.0
    for i in range(3):
        cosine += normal[c, i] * normal[d, i]
        away += (point[c, i] - point[d, i]) ** 2
        turned += (normal[c, i] - normal[d, i]) ** 2
    if away <= near * near and turned <= _SIMILAR * _SIMILAR:
        return True
    if distance[c] <= 0.0 or cosine > _ASIDE or away > (_AROUND * near) ** 2:
        return False
    # `out`: sign of the normal that points out of the height field
    if height_field[shape_first[c]] and shape_second[c] == shape_second[d]:
        out = 1.0
    elif height_field[shape_second[c]] and shape_first[c] == shape_first[d]:
        out = -1.0
    else:
        return False
    rise = square = 0.0
    for i in range(3):
        e = point[c, i] - point[d, i] - 0.5 * out * (distance[c] * normal[c, i] - distance[d] * normal[d, i])
        rise += out * e * normal[d, i]
        square += e * e
    return rise <= _LEVEL * math.sqrt(square)


@_jit
def detect_contacts(step):
    """Contacts of bodies at their poses; returns how it ended and a number that explains."""
    native, scene, found = step.native, step.scene, step.found
    widen_margins(step)
    bad = _place(step.bodies.previous.shape[0], scene, step.bodies.poses)  # the others never move
    if bad >= 0:
        return NOT_FINITE, bad
    count = find_round(scene, found)
    known = count != UNKNOWN
    if not known:
        _place_bodies(step.bodies.previous.shape[0], scene, step.bodies.poses)
        _collide(native.model, native.data)
        count = int(native.count[0])
    if count > found.first.shape[0]:
        return MORE_CONTACTS, count
    if not known:
        reals, layout = native.reals, native.layout
        point, frame, geoms = layout[RECORD_POINT], layout[RECORD_FRAME], layout[RECORD_GEOMS]
        _collect(
            count,
            native.integers[:, geoms : geoms + 2],
            reals[:, point : point + 3],
            reals[:, frame : frame + 3],
            reals[:, RECORD_DISTANCE],
            scene,
            found,
        )
    step.report.counts[CONTACTS] = _merge(count, step.settings.near, scene.height_field, found)
    return DONE, 0


# --- parts that a collider calls from Python, too


@_jit
def place(scene, poses):
    """`_place` and `_place_bodies` of all bodies, for Python."""
    bad = _place(poses.shape[0], scene, poses)
    if bad < 0:
        _place_bodies(poses.shape[0], scene, poses)
    return bad


@_jit
def find(scene, found):
    """`find_round`, for Python."""
    return find_round(scene, found)


@_jit
def collect(count, geoms, points, frames, distances, scene, found):
    """`_collect`, for Python."""
    _collect(count, geoms, points, frames, distances, scene, found)


@_jit
def merge(count, near, scene, found):
    """`_merge`, for Python."""
    return _merge(count, near, scene.height_field, found)
