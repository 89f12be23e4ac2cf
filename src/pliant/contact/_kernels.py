"""Poses into MuJoCo's arrays and contacts out of them."""

import math

from numba import njit

_jit = njit(cache=True, error_model="numpy")


@_jit
def place(poses, body, xipos, ximat, local, geom_body, xpos, xmat):
    """Write the frames of bodies and geoms; returns the first body whose pose is not finite, else -1.

    Args:
        poses: (bodies, 4, 4), world.
        body: per MuJoCo body its index in `poses`; negative: fixed, written once and left alone.
        xipos, ximat: per MuJoCo body, written.
        local, geom_body: per geom, its pose (3, 4) on its body, and that body's index in `poses`.
        xpos, xmat: per geom, written.
    """
    for b in range(poses.shape[0]):
        for i in range(3):
            for j in range(4):
                if not math.isfinite(poses[b, i, j]):
                    return b
    for k in range(body.shape[0]):
        b = body[k]
        if b >= 0:
            for i in range(3):
                xipos[k, i] = poses[b, i, 3]
                for j in range(3):
                    ximat[k, 3 * i + j] = poses[b, i, j]
    for g in range(geom_body.shape[0]):
        b = geom_body[g]
        if b >= 0:
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
