"""Kernels of M̃⁻¹ by Sherman-Morrison updates, and of M̃ itself (GS17 section 3)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.constrained.gs17._rows import JOINT, KIND, POINT, SLOT, turn
from pliant.engines.constrained.gs17._stiffness import ball_factors, row_factors
from pliant.engines.constrained.gs17._tree import CHILD, PARENT
from pliant.spatial.kernels import add_hats

_jit = njit(counts_references=True, error_model="numpy")
_plain = njit(error_model="numpy")  # without arrays of their own


class Clusters(NamedTuple):
    """Bodies that geometric stiffness couples: the cluster of a body, its place there, bodies of a cluster."""

    cluster: NDArray[np.int64]
    slot: NDArray[np.int64]
    size: NDArray[np.int64]


@_jit
def low_rank_inverse(h, A, table, measured, x, R, lam, clusters, angular, blocks):
    """M̃⁻¹ with K̃ by rank-1 updates of M⁻¹ (GS17 section 3), within clusters of bodies that K̃ couples.

    A ball joint's K̃ couples no bodies: its updates are 3 x 3, on `angular` (n, 3, 3). Then each cluster starts from
    its bodies' blocks and takes the updates of its other rows, in `blocks` (clusters, 6 size, 6 size).
    """
    n = A.shape[0]
    rows, joints = table.rows, table.joints
    cluster, slot, size = clusters.cluster, clusters.slot, clusters.size
    h2 = h * h
    s, u, v, force = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    small = np.empty((2, 3)), np.empty((2, 3))
    first, second = np.zeros((6, 12)), np.zeros((6, 12))
    where = np.empty(12, dtype=np.int64)
    for k in range(n):
        _inverse3(A[k, 3:, 3:], angular[k])
    for k in range(rows.shape[0]):
        if rows[k, KIND] != POINT or rows[k, SLOT] != 0:
            continue
        force[0], force[1], force[2] = lam[k], lam[k + 1], lam[k + 2]
        for side in range(2):
            b = joints[rows[k, JOINT], PARENT + side]
            if b < n:
                turn(R[b], table.si[k] if side == 0 else table.sj[k], s)
                if ball_factors(s, force, 1.0 - 2.0 * side, u, v, small[0], small[1]):
                    _update3(angular[b], small[0][0], small[1][0], h2)
                    _update3(angular[b], small[0][1], small[1][1], h2)
    blocks[:] = 0.0
    for k in range(n):
        block, at = blocks[cluster[k]], 6 * slot[k]
        for i in range(3):
            block[at + i, at + i] = 1.0 / A[k, 0, 0]
            for j in range(3):
                block[at + 3 + i, at + 3 + j] = angular[k, i, j]
    for k in range(rows.shape[0]):
        if rows[k, KIND] == POINT or lam[k] == 0.0:
            continue
        i, j = joints[rows[k, JOINT], PARENT], joints[rows[k, JOINT], CHILD]
        for c in range(6):
            where[c] = 6 * slot[i] + c if i < n else -1
            where[6 + c] = 6 * slot[j] + c
        terms = row_factors(k, table, measured, x, R, lam[k], first, second)
        dim = 6 * size[cluster[j]]
        for t in range(terms):
            _update(blocks[cluster[j]][:dim, :dim], where, first[t], second[t], h2)


@_jit
def _update(M, where, a, b, h2):
    """Sherman-Morrison (GS17 Eq. 6, corrected): M becomes the inverse of `M⁻¹ - h² a bᵀ`; a, b live on `where`."""
    dim = M.shape[0]
    left = np.zeros(dim)
    right = np.zeros(dim)
    for k in range(where.shape[0]):
        at = where[k]
        if at < 0:
            continue
        if a[k] != 0.0:
            for r in range(dim):
                left[r] += M[r, at] * a[k]
        if b[k] != 0.0:
            for r in range(dim):
                right[r] += b[k] * M[at, r]
    change = 1.0
    for k in range(where.shape[0]):
        if where[k] >= 0:
            change -= h2 * b[k] * left[where[k]]
    change = h2 / change
    # Joints come one after the other: the bodies that earlier ones have coupled lie together.
    first, last = dim, 0
    for c in range(dim):
        if right[c] != 0.0:
            first, last = min(first, c), c + 1
    for r in range(dim):
        if left[r] != 0.0:
            weight = change * left[r]
            for c in range(first, last):
                M[r, c] += weight * right[c]


@_plain
def _update3(M, a, b, h2):
    """`_update` of a body's angular 3 x 3."""
    l0 = M[0, 0] * a[0] + M[0, 1] * a[1] + M[0, 2] * a[2]
    l1 = M[1, 0] * a[0] + M[1, 1] * a[1] + M[1, 2] * a[2]
    l2 = M[2, 0] * a[0] + M[2, 1] * a[1] + M[2, 2] * a[2]
    r0 = b[0] * M[0, 0] + b[1] * M[1, 0] + b[2] * M[2, 0]
    r1 = b[0] * M[0, 1] + b[1] * M[1, 1] + b[2] * M[2, 1]
    r2 = b[0] * M[0, 2] + b[1] * M[1, 2] + b[2] * M[2, 2]
    weight = h2 / (1.0 - h2 * (b[0] * l0 + b[1] * l1 + b[2] * l2))
    l0, l1, l2 = weight * l0, weight * l1, weight * l2
    M[0, 0] += l0 * r0
    M[0, 1] += l0 * r1
    M[0, 2] += l0 * r2
    M[1, 0] += l1 * r0
    M[1, 1] += l1 * r1
    M[1, 2] += l1 * r2
    M[2, 0] += l2 * r0
    M[2, 1] += l2 * r1
    M[2, 2] += l2 * r2


@_plain
def _inverse3(A, out):
    """Inverse of a symmetric 3 x 3."""
    a, b, c, d, e, f = A[0, 0], A[0, 1], A[0, 2], A[1, 1], A[1, 2], A[2, 2]
    x, y, z = d * f - e * e, c * e - b * f, b * e - c * d
    scale = 1.0 / (a * x + b * y + c * z)
    out[0, 0] = x * scale
    out[0, 1] = out[1, 0] = y * scale
    out[0, 2] = out[2, 0] = z * scale
    out[1, 1] = (a * f - c * c) * scale
    out[1, 2] = out[2, 1] = (b * c - a * e) * scale
    out[2, 2] = (a * d - b * b) * scale


@_plain
def ball_chain_inverse(h, mass, inertia, ends, si, sj, force, work, out):
    """M̃⁻¹ of bodies on ball joints, dense (6n, 6n): two 3 x 3 updates per joint and body.

    `out` is zero elsewhere; `work` is scratch, (6, 3).
    """
    n = mass.shape[0]
    h2 = h * h
    u, v, first, second = work[0], work[1], work[2:4], work[4:6]
    for k in range(n):
        at = 6 * k
        out[at, at] = out[at + 1, at + 1] = out[at + 2, at + 2] = 1.0 / mass[k]
        _inverse3(inertia[k], out[at + 3 : at + 6, at + 3 : at + 6])
    for j in range(ends.shape[0]):
        for side in range(2):
            b = ends[j, side]
            if b >= 0 and ball_factors(
                si[j] if side == 0 else sj[j], force[j], 1.0 - 2.0 * side, u, v, first, second
            ):
                block = out[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6]
                _update3(block, first[0], second[0], h2)
                _update3(block, first[1], second[1], h2)


@_jit
def ball_chain_matrix(h, mass, inertia, ends, si, sj, force, out):
    """M̃ of bodies on ball joints, dense (6n, 6n); `out` must be zero."""
    n = mass.shape[0]
    for k in range(n):
        at = 6 * k
        out[at, at] = out[at + 1, at + 1] = out[at + 2, at + 2] = mass[k]
        for r in range(3):
            for c in range(3):
                out[at + 3 + r, at + 3 + c] = inertia[k, r, c]
    for j in range(ends.shape[0]):
        for side in range(2):
            b = ends[j, side]
            if b >= 0:
                s = si[j] if side == 0 else sj[j]
                add_hats(out, 2 * b + 1, 2 * b + 1, -h * h * (1.0 - 2.0 * side), force[j], s)


@_jit
def full_matrix(h, A, joints, K, out):
    """M̃ = M - h²K̃ (GS17 Eq. 2), dense (6n, 6n), from bodies A (n, 6, 6) and joints K (joints, 12, 12)."""
    n = A.shape[0]
    out[:] = 0.0
    for k in range(n):
        for r in range(6):
            for c in range(6):
                out[6 * k + r, 6 * k + c] = A[k, r, c]
    for joint in range(joints.shape[0]):
        for a in range(2):
            for b in range(2):
                row, column = 6 * joints[joint, PARENT + a], 6 * joints[joint, PARENT + b]
                if row < 6 * n and column < 6 * n:
                    for r in range(6):
                        for c in range(6):
                            out[row + r, column + c] -= h * h * K[joint, 6 * a + r, 6 * b + c]
