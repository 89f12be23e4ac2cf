"""Rasterization of triangles into a depth buffer, and antialiasing: hidden surfaces, also where bodies intersect."""

import math

from pliant.compilation import njit

_jit = njit(error_model="numpy")

ALPHA = 3  # column of opacity in RGBA


@_jit
def rasterize(corners, nearest, owner):
    """Draw triangles into `nearest` (depth, larger is nearer) and `owner` (index of the visible triangle, -1 none).

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
                # Barycentric coordinates of the pixel's centre.
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
def downsample(owner, rgba, body, factor, outline, out):
    """Average blocks of `factor` x `factor` pixels into `out` (rows, columns, 4), alpha premultiplied.

    Args:
        owner: index of the visible triangle per pixel, -1 none, (factor * rows, factor * columns).
        rgba, body: colour and body of every triangle, (n, 4) and (n,).
        factor: pixels per side of a block.
        outline: brightness factor of pixels that border on another body or on the background.
        out: image, overwritten.
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
                    light = share * rgba[t, ALPHA]
                    out[j, i, ALPHA] += light
                    for shift in (-1, 1):
                        n = owner[b, min(max(a + shift, 0), columns - 1)]
                        if n < 0 or body[n] != body[t]:
                            light = outline * share * rgba[t, ALPHA]
                        n = owner[min(max(b + shift, 0), rows - 1), a]
                        if n < 0 or body[n] != body[t]:
                            light = outline * share * rgba[t, ALPHA]
                    for c in range(3):
                        out[j, i, c] += light * rgba[t, c]
