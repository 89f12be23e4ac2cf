"""Filling triangles into a depth buffer: what is in front hides what is behind, also where bodies intersect."""

import math

from pliant.compilation import njit

_jit = njit(error_model="numpy")


@_jit
def rasterize(corners, nearest, owner):
    """Draw triangles into `nearest` (depth, larger is nearer) and `owner` (number of the triangle seen, -1 none).

    Args:
        corners: (n, 3, 3): column, row and depth of every corner, in pixels.
        nearest, owner: (rows, columns), updated in place.
    """
    rows, columns = nearest.shape
    for t in range(corners.shape[0]):
        x0, y0, z0 = corners[t, 0]
        x1, y1, z1 = corners[t, 1]
        x2, y2, z2 = corners[t, 2]
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        if not abs(area) > 1e-12:
            continue
        first = max(0, math.ceil(min(x0, x1, x2) - 0.5))
        last = min(columns - 1, math.floor(max(x0, x1, x2) - 0.5))
        top = max(0, math.ceil(min(y0, y1, y2) - 0.5))
        bottom = min(rows - 1, math.floor(max(y0, y1, y2) - 0.5))
        for j in range(top, bottom + 1):
            y = j + 0.5
            for i in range(first, last + 1):
                x = i + 0.5
                u = ((x1 - x) * (y2 - y) - (x2 - x) * (y1 - y)) / area
                v = ((x2 - x) * (y0 - y) - (x0 - x) * (y2 - y)) / area
                w = 1.0 - u - v
                if u < -1e-9 or v < -1e-9 or w < -1e-9:
                    continue
                depth = u * z0 + v * z1 + w * z2
                if depth > nearest[j, i]:
                    nearest[j, i] = depth
                    owner[j, i] = t


@_jit
def resolve(owner, rgba, body, factor, outline, out):
    """Average blocks of `factor` x `factor` pixels into `out` (rows, columns, 4), alpha premultiplied.

    A pixel that borders on another body or on nothing is darkened to `outline` of its brightness.
    """
    rows, columns = owner.shape
    share = 1.0 / (factor * factor)
    for j in range(out.shape[0]):
        for i in range(out.shape[1]):
            for c in range(4):
                out[j, i, c] = 0.0
            for b in range(j * factor, (j + 1) * factor):
                for a in range(i * factor, (i + 1) * factor):
                    t = owner[b, a]
                    if t < 0:
                        continue
                    light = share * rgba[t, 3]
                    out[j, i, 3] += light
                    for shift in (-1, 1):
                        n = owner[b, min(max(a + shift, 0), columns - 1)]
                        if n < 0 or body[n] != body[t]:
                            light = outline * share * rgba[t, 3]
                        n = owner[min(max(b + shift, 0), rows - 1), a]
                        if n < 0 or body[n] != body[t]:
                            light = outline * share * rgba[t, 3]
                    for c in range(3):
                        out[j, i, c] += light * rgba[t, c]
