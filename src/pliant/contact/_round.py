"""Contacts of round shapes, spheres and capsules, with planes, height fields and spheres, in closed form.

A round shape is a segment with a radius. Pairs of shapes are looked at one by one. Where a pair of other shapes is
near, or a segment is beneath a surface or reaches beyond the rim of a height field, MuJoCo's collider has to find all
contacts; the points, normals and distances found here are those it finds, too.
"""

import math

from pliant.compilation import njit

# Columns of `Scene.pairs`: kind of the pair, its geoms, and the place of the height field among `Scene.fields`. Planes
# and height fields are SECOND, of BALLS the shape that may be a capsule, of OTHERS the larger one.
KIND, FIRST, SECOND, FIELD, PAIR_SIZE = range(5)
PLANE, GROUND, BALLS, OTHERS = range(4)
# Columns of `Scene.extents`: half length of a round shape's segment, -1 of other shapes; its radius, or that of a ball
# around a shape's origin; centre and half extents of a box around the shape, in its frame.
HALF, RADIUS, MIDDLE, BOX, EXTENT_SIZE = 0, 1, 2, 5, 8
# Columns of `Scene.fields`: rows, columns and first number of the heights; half extents along x and y; largest height;
# origin of the geom's frame in that of the field.
ROWS, COLUMNS, START, HALF_X, HALF_Y, TOP, ORIGIN, FIELD_SIZE = 0, 1, 2, 3, 4, 5, 6, 9
UNKNOWN = -1  # MuJoCo's collider has to find the contacts

_jit = njit(counts_references=True, error_model="numpy", nogil=True)  # for the structure of a step


@_jit
def find_round(scene, found):
    """Contacts of all pairs of shapes, where geoms are; returns their number, or UNKNOWN.

    Contacts beyond the room in `found` are counted only. Comparisons are such that numbers that overflow are near.
    """
    pairs, extents, xpos, xmat = scene.pairs, scene.extents, scene.xpos, scene.xmat
    count = 0 if pairs.shape[0] > 0 else UNKNOWN
    for p in range(pairs.shape[0]):
        kind, a, b = pairs[p, KIND], pairs[p, FIRST], pairs[p, SECOND]
        margin = scene.geom_margin[a] + scene.geom_margin[b]
        half, radius = extents[a, HALF], extents[a, RADIUS]
        x, y, z = xpos[a, 0] - xpos[b, 0], xpos[a, 1] - xpos[b, 1], xpos[a, 2] - xpos[b, 2]
        if kind == BALLS:
            # nearest point of the other's segment
            ux, uy, uz, along = xmat[b, 2], xmat[b, 5], xmat[b, 8], extents[b, HALF]
            along = max(-along, min(along, x * ux + y * uy + z * uz))
            x, y, z = x - along * ux, y - along * uy, z - along * uz
            length = math.sqrt(x * x + y * y + z * z)
            distance = length - radius - extents[b, RADIUS]
            if distance < margin:
                if not length > 0.0:
                    return UNKNOWN
                x, y, z = x / length, y / length, z / length
                back = radius + 0.5 * distance
                px, py, pz = xpos[a, 0] - back * x, xpos[a, 1] - back * y, xpos[a, 2] - back * z
                count = _put(count, a, b, px, py, pz, x, y, z, distance, scene, found)
        elif kind == PLANE:
            nx, ny, nz = xmat[b, 2], xmat[b, 5], xmat[b, 8]
            height = nx * x + ny * y + nz * z
            if half < 0.0:
                if not height + _lowest(a, nx, ny, nz, extents, xmat) > margin:
                    return UNKNOWN
                continue
            ux, uy, uz = half * xmat[a, 2], half * xmat[a, 5], half * xmat[a, 8]
            rise = nx * ux + ny * uy + nz * uz
            for side in range(2 if half > 0.0 else 1):
                sign = 1.0 - 2.0 * side
                distance = height + sign * rise - radius
                if distance < margin:
                    back = radius + 0.5 * distance
                    px, py, pz = (
                        xpos[a, 0] + sign * ux - back * nx,
                        xpos[a, 1] + sign * uy - back * ny,
                        xpos[a, 2] + sign * uz - back * nz,
                    )
                    count = _put(count, a, b, px, py, pz, nx, ny, nz, distance, scene, found)
        elif kind == GROUND:
            count = _touch_field(count, p, margin, scene, found)
            if count == UNKNOWN:
                return UNKNOWN
        elif _reaches_box(a, b, radius + max(half, 0.0) + margin, x, y, z, extents, xmat):
            return UNKNOWN
    return count


@_jit
def _put(count, a, b, px, py, pz, nx, ny, nz, distance, scene, found):
    """Write a contact of geoms a and b at a point, with the normal from b to a; returns the number of contacts."""
    if count < found.first.shape[0]:
        sign = 1.0
        if scene.geom_body[a] < scene.geom_body[b]:
            a, b, sign = b, a, -1.0
        found.first[count], found.second[count] = scene.geom_body[b], scene.geom_body[a]
        found.shape_first[count], found.shape_second[count] = scene.geom_shape[b], scene.geom_shape[a]
        point, normal = found.point, found.normal
        point[count, 0], point[count, 1], point[count, 2] = px, py, pz
        normal[count, 0], normal[count, 1], normal[count, 2] = sign * nx, sign * ny, sign * nz
        found.distance[count] = distance
    return count + 1


@_jit
def _lowest(a, nx, ny, nz, extents, xmat):
    """Height over its origin of the lowest point of the box around a shape, in a direction."""
    out = 0.0
    for j in range(3):
        along = nx * xmat[a, j] + ny * xmat[a, 3 + j] + nz * xmat[a, 6 + j]
        out += along * extents[a, MIDDLE + j] - abs(along) * extents[a, BOX + j]
    return out


@_jit
def _reaches_box(a, b, reach, x, y, z, extents, xmat):
    """Whether the origin of geom a, at x, y, z from that of b, is within `reach` of the box around b."""
    square = 0.0
    for j in range(3):
        along = x * xmat[b, j] + y * xmat[b, 3 + j] + z * xmat[b, 6 + j] - extents[b, MIDDLE + j]
        beyond = max(abs(along) - extents[b, BOX + j], 0.0)
        square += beyond * beyond
    return not square > reach * reach


@_jit
def _touch_field(count, p, margin, scene, found):
    """Contacts of a pair with a height field, one per triangle; returns the number of all contacts, or UNKNOWN.

    A triangle touches with its nearest point, if the segment is on its upper side there: on the lower side it is
    nearer to another triangle.
    """
    a, b, field = scene.pairs[p, FIRST], scene.pairs[p, SECOND], scene.fields[scene.pairs[p, FIELD]]
    extents, xpos, xmat, heights = scene.extents, scene.xpos, scene.xmat, scene.heights
    half, radius, R = extents[a, HALF], extents[a, RADIUS], xmat[b]
    x, y, z = xpos[a, 0] - xpos[b, 0], xpos[a, 1] - xpos[b, 1], xpos[a, 2] - xpos[b, 2]
    high = R[2] * x + R[5] * y + R[8] * z + field[ORIGIN + 2]
    top, reach = field[TOP], radius + margin
    if half < 0.0:
        far = high + _lowest(a, R[2], R[5], R[8], extents, xmat) > top + margin
        return count if far else UNKNOWN
    uz = half * (R[2] * xmat[a, 2] + R[5] * xmat[a, 5] + R[8] * xmat[a, 8])
    if high - abs(uz) > top + reach:
        return count
    # ends of the segment in the frame of the field, the lower one first, the other one no higher than it may touch
    x, y = R[0] * x + R[3] * y + R[6] * z + field[ORIGIN], R[1] * x + R[4] * y + R[7] * z + field[ORIGIN + 1]
    ux = half * (R[0] * xmat[a, 2] + R[3] * xmat[a, 5] + R[6] * xmat[a, 8])
    uy = half * (R[1] * xmat[a, 2] + R[4] * xmat[a, 5] + R[7] * xmat[a, 8])
    if uz < 0.0:
        ux, uy, uz = -ux, -uy, -uz
    x, y, z, share = x - ux, y - uy, high - uz, 2.0
    if high + uz > top + reach:
        share = max(top + reach - z, 0.0) / uz
    ux, uy, uz = share * ux, share * uy, share * uz
    half_x, half_y = field[HALF_X], field[HALF_Y]
    west, east = x + min(ux, 0.0) - reach, x + max(ux, 0.0) + reach
    south, north = y + min(uy, 0.0) - reach, y + max(uy, 0.0) + reach
    if east < -half_x or west > half_x or north < -half_y or south > half_y:
        return count
    if not (west >= -half_x and east <= half_x and south >= -half_y and north <= half_y):  # or not a number
        return UNKNOWN
    rows, columns, start = int(field[ROWS]), int(field[COLUMNS]), int(field[START])
    dx, dy = 2.0 * half_x / (columns - 1), 2.0 * half_y / (rows - 1)
    last_row = min(int((north + half_y) / dy), rows - 2)
    last_column = min(int((east + half_x) / dx), columns - 2)
    for r in range(int((south + half_y) / dy), last_row + 1):
        for c in range(int((west + half_x) / dx), last_column + 1):
            k = start + r * columns + c
            h00, h10, h01, h11 = heights[k], heights[k + 1], heights[k + columns], heights[k + columns + 1]
            if z - reach > max(max(h00, h10), max(h01, h11)):
                continue
            # from the corner of the cell; triangles (00, 10, 11) and (00, 11, 01)
            qx, qy, qz = x - (c * dx - half_x), y - (r * dy - half_y), z - h00
            for upper in range(2):
                if upper:
                    ex, ey, ez, fx, fy, fz = dx, dy, h11 - h00, 0.0, dy, h01 - h00
                else:
                    ex, ey, ez, fx, fy, fz = dx, 0.0, h10 - h00, dx, dy, h11 - h00
                distance, tx, ty, tz, nx, ny, nz = _reach_triangle(
                    qx, qy, qz, ux, uy, uz, ex, ey, ez, fx, fy, fz, reach
                )
                if distance < 0.0:
                    return UNKNOWN
                if not distance < reach:
                    continue
                distance -= radius
                tx, ty, tz = (
                    tx + 0.5 * distance * nx + x - qx - field[ORIGIN],
                    ty + 0.5 * distance * ny + y - qy - field[ORIGIN + 1],
                    tz + 0.5 * distance * nz + z - qz - field[ORIGIN + 2],
                )
                count = _put(
                    count,
                    a,
                    b,
                    R[0] * tx + R[1] * ty + R[2] * tz + xpos[b, 0],
                    R[3] * tx + R[4] * ty + R[5] * tz + xpos[b, 1],
                    R[6] * tx + R[7] * ty + R[8] * tz + xpos[b, 2],
                    R[0] * nx + R[1] * ny + R[2] * nz,
                    R[3] * nx + R[4] * ny + R[5] * nz,
                    R[6] * nx + R[7] * ny + R[8] * nz,
                    distance,
                    scene,
                    found,
                )
    return count


@_jit
def _reach_triangle(x, y, z, ux, uy, uz, ex, ey, ez, fx, fy, fz, reach):
    """Distance of a segment from a triangle 0, e, f that is seen from above, its nearest point, and the normal there.

    The segment goes from x, y, z by u. Distances: -1 if it is beneath the triangle, infinity beyond `reach` or if it is
    nearer to other triangles.
    """
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    nx, ny, nz = nx / length, ny / length, nz / length
    start = nx * x + ny * y + nz * z
    rise = nx * ux + ny * uy + nz * uz
    low = min(start, start + rise)
    if low > reach:
        return math.inf, 0.0, 0.0, 0.0, nx, ny, nz
    if low < 0.0 and _is_beneath(x, y, ux, uy, start, rise, ex, ey, fx, fy):
        return -1.0, 0.0, 0.0, 0.0, nx, ny, nz
    end = 1.0 if rise < 0.0 else 0.0  # the lower one
    px, py, pz = x + end * ux - low * nx, y + end * uy - low * ny, z + end * uz - low * nz
    if low >= 0.0 and _is_within(px, py, ex, ey, fx, fy):
        return low, px, py, pz, nx, ny, nz
    best, bx, by, bz, ox, oy, oz = math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for side in range(3):
        if side == 0:
            ax, ay, az, gx, gy, gz = 0.0, 0.0, 0.0, ex, ey, ez
        elif side == 1:
            ax, ay, az, gx, gy, gz = ex, ey, ez, fx - ex, fy - ey, fz - ez
        else:
            ax, ay, az, gx, gy, gz = 0.0, 0.0, 0.0, fx, fy, fz
        s, t = _nearest(x - ax, y - ay, z - az, ux, uy, uz, gx, gy, gz)
        cx, cy, cz = ax + t * gx, ay + t * gy, az + t * gz
        wx, wy, wz = x + s * ux - cx, y + s * uy - cy, z + s * uz - cz
        square = wx * wx + wy * wy + wz * wz
        if square < best:
            best, bx, by, bz, ox, oy, oz = square, cx, cy, cz, wx, wy, wz
    best = math.sqrt(best)
    if not best > 0.0:
        return -1.0, bx, by, bz, nx, ny, nz
    if nx * ox + ny * oy + nz * oz < 0.0 or not oz > 0.0:
        return math.inf, bx, by, bz, nx, ny, nz
    return best, bx, by, bz, ox / best, oy / best, oz / best


@_jit
def _is_beneath(x, y, ux, uy, start, rise, ex, ey, fx, fy):
    """Whether a part of a segment under the plane of a triangle is right beneath the triangle, seen from above."""
    first, last = 0.0, 1.0
    for side in range(3):
        if side == 0:
            ax, ay, gx, gy = 0.0, 0.0, ex, ey
        elif side == 1:
            ax, ay, gx, gy = ex, ey, fx - ex, fy - ey
        else:
            ax, ay, gx, gy = fx, fy, -fx, -fy
        here, change = gx * (y - ay) - gy * (x - ax), gx * uy - gy * ux
        if here < 0.0 and here + change < 0.0:
            return False
        if here < 0.0:
            first = max(first, -here / change)
        elif here + change < 0.0:
            last = min(last, -here / change)
    return first <= last and min(start + first * rise, start + last * rise) < 0.0


@_jit
def _is_within(x, y, ex, ey, fx, fy):
    """Whether a point is within a triangle 0, e, f, seen from above."""
    return (
        ex * y - ey * x >= 0.0
        and (fx - ex) * (y - ey) - (fy - ey) * (x - ex) >= 0.0
        and fy * x - fx * y >= 0.0
    )


@_jit
def _nearest(x, y, z, ux, uy, uz, gx, gy, gz):
    """Shares of two segments, from x, y, z by u and from the origin by g, at which they are nearest; u may be zero."""
    a, b, c = ux * ux + uy * uy + uz * uz, ux * gx + uy * gy + uz * gz, gx * gx + gy * gy + gz * gz
    d, e = ux * x + uy * y + uz * z, gx * x + gy * y + gz * z
    s, determinant = 0.0, a * c - b * b
    if determinant > 1e-14 * a * c:
        s = max(0.0, min(1.0, (b * e - c * d) / determinant))
    t = (b * s + e) / c
    if t < 0.0 or t > 1.0:
        t = max(0.0, min(1.0, t))
        s = max(0.0, min(1.0, (b * t - d) / a)) if a > 0.0 else 0.0
    return s, t
