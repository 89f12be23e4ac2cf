"""Kernels of a node that closes a loop: what its two ends see of each other, and how far they are apart."""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic._handles import climb
from pliant.engines.quasistatic._joint_kernels import compose, to_child
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

CHANGED = 100.0  # a pivot by this factor smaller or larger than it was asks for the rank again


@_jit
def sight(pose, sign, out):
    """out = sign * E: what a frame at `pose` sees of a motion."""
    unit, column = out[6], out[7]
    for j in range(6):
        for i in range(6):
            unit[i] = 0.0
        unit[j] = sign
        to_child(pose, unit, column)
        for i in range(6):
            out[i, j] = column[i]


@_jit
def meet(k, nodes, data, poses, world, wide, given):
    """What a LOOP compares: `sight` of both ends, and the motion that is asked for between them."""
    row = wide.table[nodes[k, 9]]
    loop = row[9]
    a, b, seen, spare, gap = wide.frames[0], wide.frames[1], wide.frames[2], wide.frames[3], wide.frames[4]
    copy, body = wide.ends[2 * loop], wide.ends[2 * loop + 1]
    climb(wide.leaves[2 * loop], k, nodes, data, poses, a, spare)
    compose(a, copy, seen)  # where the copy is
    if row[3] >= 0:
        climb(wide.leaves[2 * loop + 1], k, nodes, data, poses, b, spare)
        _behind(b, seen, spare)
    else:
        for i in range(12):
            spare[i] = seen[i]
    _behind(body, spare, gap)  # the copy as the body sees it: the identity, if the loop is closed
    sight(copy, 1.0, wide.sight[0])
    sight(spare, -1.0, wide.sight[1])
    turn, vector = wide.turn, wide.vector
    for i in range(3):
        for j in range(3):
            turn[i, j] = gap[3 * i + j]
    turn[0, 3], turn[1, 3], turn[2, 3] = gap[9], gap[10], gap[11]
    se3.se3_log(turn, vector)
    for i in range(6):
        given[i] = vector[i] * wide.rate[0]
    if row[3] < 0:
        to_child(spare, world, vector)
        for i in range(6):
            given[i] -= vector[i]


@_jit
def _behind(a, b, out):
    """out = a^-1 b."""
    x, y, z = b[9] - a[9], b[10] - a[10], b[11] - a[11]
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j]
        out[9 + i] = a[i] * x + a[3 + i] * y + a[6 + i] * z


@_jit
def invert(d, unit, rank, w, low, order, limits):
    """W = D^-1 on as many rows as the rank says, by pivoted Cholesky.

    Args:
        d: D; overwritten.
        unit: one over the length that counts as much as a radian.
        rank: of D, see `redundancy.py`.
        w, low, order: out; scratch.
        limits: what round-off may leave of a pivot; the smallest pivot and the largest number left on the diagonal
            when the rank was found, the smallest pivot negative if these are yet to be noted.

    Returns whether both are much the same now; if not, the rank may have changed.
    """
    for i in range(6):
        order[i] = i
        for j in range(6):
            d[i, j] *= (unit if i < 3 else 1.0) * (unit if j < 3 else 1.0)
            w[i, j] = 0.0
    least, left = math.inf, 0.0
    for k in range(6):
        best = k
        for i in range(k + 1, 6):
            if d[order[i], order[i]] > d[order[best], order[best]]:
                best = i
        order[k], order[best] = order[best], order[k]
        if best != k:
            for j in range(k):
                low[k, j], low[best, j] = low[best, j], low[k, j]
        p = order[k]
        if k == rank:
            left = d[p, p]
            break
        least = d[p, p]
        if not least > limits[0]:  # all its digits are lost
            rank = k
            break
        low[k, k] = math.sqrt(least)
        for i in range(k + 1, 6):
            low[i, k] = d[order[i], p] / low[k, k]
        for i in range(k + 1, 6):
            for j in range(k + 1, 6):
                d[order[i], order[j]] -= low[i, k] * low[j, k]
    for j in range(rank):
        low[j, j] = 1.0 / low[j, j]
        for i in range(j + 1, rank):
            total = 0.0
            for k in range(j, i):
                total -= low[i, k] * low[k, j]
            low[i, j] = total / low[i, i]
    for i in range(rank):
        for j in range(rank):
            total = 0.0
            for k in range(max(i, j), rank):
                total += low[k, i] * low[k, j]
            a, b = order[i], order[j]
            w[a, b] = total * (unit if a < 3 else 1.0) * (unit if b < 3 else 1.0)
    if limits[1] < 0.0:
        limits[1], limits[2] = max(least, limits[0]), max(left, limits[2])
    return CHANGED * max(least, limits[0]) >= limits[1] and left <= CHANGED * limits[2]
