"""Poses into MuJoCo's arrays and contacts out of them."""

import math

from pliant.compilation import njit

# Contacts of two bodies whose normals differ by less than this (rad), at nearly the same place, say the same.
_ALIKE = 0.2
_ASIDE = 0.98  # cosine of the angle from which on a normal may be that of an edge within a surface
_LEVEL = 0.05  # rise of a surface that counts as none
_AROUND = 8.0  # how far from another contact such an edge is looked for, as multiples of what is near

_jit = njit(error_model="numpy")


@_jit
def place(
    poses,
    margins,
    wanted,
    body,
    core,
    xipos,
    ximat,
    local,
    geom_body,
    geom_core,
    xpos,
    xmat,
    body_margin,
    geom_margin,
):
    """Write frames and margins of bodies and geoms; returns the first body whose pose is not finite, else -1.

    Args:
        poses: (bodies, 4, 4), world.
        margins: per body; MuJoCo adds those of two geoms.
        wanted: the same of its cores, which touch planes alone.
        body, core: per MuJoCo body its index in `poses`; negative: fixed, written once and left alone; and whether
            it holds the cores of another.
        xipos, ximat: per MuJoCo body, written.
        local, geom_body, geom_core: per geom, its pose (3, 4) on its body, that body's index in `poses`, and whether
            it is a core.
        xpos, xmat: per geom, written.
        body_margin, geom_margin: per MuJoCo body, and per geom, written.
    """
    for b in range(poses.shape[0]):
        for i in range(3):
            for j in range(4):
                if not math.isfinite(poses[b, i, j]):
                    return b
    for k in range(body.shape[0]):
        b = body[k]
        if b >= 0:
            body_margin[k] = wanted[b] if core[k] else margins[b]
            for i in range(3):
                xipos[k, i] = poses[b, i, 3]
                for j in range(3):
                    ximat[k, 3 * i + j] = poses[b, i, j]
    for g in range(geom_body.shape[0]):
        b = geom_body[g]
        if b >= 0:
            geom_margin[g] = wanted[b] if geom_core[g] else margins[b]
            for i in range(3):
                r0, r1, r2 = poses[b, i, 0], poses[b, i, 1], poses[b, i, 2]
                for j in range(3):
                    xmat[g, 3 * i + j] = r0 * local[g, 0, j] + r1 * local[g, 1, j] + r2 * local[g, 2, j]
                xpos[g, i] = r0 * local[g, 0, 3] + r1 * local[g, 1, 3] + r2 * local[g, 2, 3] + poses[b, i, 3]
    return -1


@_jit
def collect(
    count,
    geoms,
    points,
    frames,
    distances,
    geom_body,
    geom_shape,
    first,
    second,
    shape_first,
    shape_second,
    point,
    normal,
    distance,
):
    """Copy `count` contacts out of MuJoCo's records; of the two bodies the lower index comes first."""
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


@_jit
def sift(count, near, field, first, second, shape_first, shape_second, point, normal, distance, mark):
    """Leave out contacts that others of the same two bodies make needless; returns how many are left.

    Where a body touches several triangles of a height field, or several shapes of another body, at one place, the
    deepest of these contacts is enough: the others differ by rounding, and a solver takes long to share a force among
    them. And a height field is made of prisms: from the side of one, an edge within the surface looks like a corner,
    although the surface goes on there. Such an edge holds nothing that the surface does not.

    Args:
        near: contacts less far apart may be the same, m; 0: all are kept.
        field: per shape, whether it is a height field.
        mark: room.
    """
    if near <= 0.0:
        return count
    kept = start = 0
    while start < count:
        end = start + 1
        while end < count and first[end] == first[start] and second[end] == second[start]:
            end += 1
        for c in range(start, end):
            mark[c] = 0
        for _ in range(end - start):
            best = -1  # the deepest that is neither chosen, 1, nor left out, 2
            for c in range(start, end):
                if mark[c] == 0 and (best < 0 or distance[c] < distance[best]):
                    best = c
            if best < 0:
                break
            mark[best] = 1
            for c in range(start, end):
                if mark[c] == 0 and _needless(
                    c, best, near, field, shape_first, shape_second, point, normal, distance
                ):
                    mark[c] = 2
        for c in range(start, end):
            if mark[c] == 1:
                if kept < c:
                    first[kept], second[kept] = first[c], second[c]
                    shape_first[kept], shape_second[kept] = shape_first[c], shape_second[c]
                    distance[kept] = distance[c]
                    for i in range(3):
                        point[kept, i], normal[kept, i] = point[c, i], normal[c, i]
                kept += 1
        start = end
    return kept


@_jit
def _needless(c, d, near, field, shape_first, shape_second, point, normal, distance):
    """Whether contact c says nothing that d does not, which is deeper."""
    cosine = away = turned = 0.0
    for i in range(3):
        cosine += normal[c, i] * normal[d, i]
        away += (point[c, i] - point[d, i]) ** 2
        turned += (normal[c, i] - normal[d, i]) ** 2
    if away <= near * near and turned <= _ALIKE * _ALIKE:
        return True
    if distance[c] <= 0.0 or cosine > _ASIDE or away > (_AROUND * near) ** 2:
        return False
    # `out` points out of the height field
    if field[shape_first[c]] and shape_second[c] == shape_second[d]:
        out = 1.0
    elif field[shape_second[c]] and shape_first[c] == shape_first[d]:
        out = -1.0
    else:
        return False
    rise = square = 0.0
    for i in range(3):
        e = point[c, i] - point[d, i] - 0.5 * out * (distance[c] * normal[c, i] - distance[d] * normal[d, i])
        rise += out * e * normal[d, i]
        square += e * e
    return rise <= _LEVEL * math.sqrt(square)
