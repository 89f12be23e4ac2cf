"""Inverse of M̃ = M - h²K̃: by LU (Tournier et al. 2015) and by Sherman-Morrison updates (GS17 section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from pliant.engines.constrained.gs17 import _inverse as kernels
from pliant.engines.constrained.gs17._rows import JOINT, KIND, POINT
from pliant.engines.constrained.gs17._stiffness import stiffness
from pliant.engines.constrained.gs17.rows import Maximal

__all__ = ["FullInverse", "LowRankInverse", "effective_inverse_full", "effective_inverse_low_rank"]

Floats = NDArray[np.float64]
_getrf: Any
_getri: Any
_getrf, _getri = scipy.linalg.get_lapack_funcs(("getrf", "getri"), dtype=np.float64)


def _invert(M: Floats) -> Floats:
    """M⁻¹ by LU, in place; NaN if there is none."""
    # LAPACK reads by columns: it sees and returns the transpose.
    lu, pivots, failed = _getrf(M.T, overwrite_a=True)
    if failed:
        return np.full_like(M, np.nan)
    inverse, _ = _getri(lu, pivots, lwork=64 * len(M), overwrite_lu=True)
    return inverse.T


class FullInverse:
    """(M - h²K̃)⁻¹ by LU of the whole matrix."""

    def __init__(self, maximal: Maximal):
        self._maximal = maximal
        self._K = np.zeros((len(maximal.joints), 12, 12))

    def __call__(self, h: float, A: Floats, x: Floats, R: Floats, lam: Floats) -> Floats:
        """Dense inverse (6n, 6n) from the bodies' masses A (n, 6, 6), poses and row forces."""
        mx = self._maximal
        stiffness(mx.table, mx.measured, x, R, lam, self._K)
        M = np.empty((6 * len(mx), 6 * len(mx)))
        kernels.full_matrix(h, A, mx.joints, self._K, M)
        return _invert(M)


class LowRankInverse:
    """(M - h²K̃)⁻¹ by Sherman-Morrison updates, in clusters of bodies that K̃ couples.

    Ball rows couple none, so a chain of ball joints has as many clusters as bodies and updates of 3 x 3.
    """

    def __init__(self, maximal: Maximal):
        mx, n = maximal, len(maximal)
        self._maximal = mx
        label = np.arange(n)
        for joint in np.unique(mx.rows[mx.rows[:, KIND] != POINT, JOINT]):
            i, j = mx.joints[joint, :2]
            if i < n:
                label[label == label[i]] = label[j]
        cluster = np.unique(label, return_inverse=True)[1].astype(np.int64)
        slot, size = np.zeros(n, np.int64), np.zeros(cluster.max() + 1, np.int64)
        for body, number in enumerate(cluster):
            slot[body] = size[number]
            size[number] += 1
        self._clusters = kernels.Clusters(cluster, slot, size)
        widest = 6 * int(size.max())
        self._blocks, self._angular = np.zeros((len(size), widest, widest)), np.zeros((n, 3, 3))

    def __call__(self, h: float, A: Floats, x: Floats, R: Floats, lam: Floats) -> Floats:
        """Dense inverse (6n, 6n) from the bodies' masses A (n, 6, 6), poses and row forces."""
        mx = self._maximal
        kernels.low_rank_inverse(
            h, A, mx.table, mx.measured, x, R, lam, self._clusters, self._angular, self._blocks
        )
        index = (6 * self._clusters.slot[:, None] + np.arange(6)).ravel()
        cluster = np.repeat(self._clusters.cluster, 6)
        values = self._blocks[cluster[:, None], index[:, None], index[None]]
        return np.where(cluster[:, None] == cluster[None], values, 0.0)


def effective_inverse_full(
    timestep: float,
    mass: Floats,
    inertia: Floats,
    ends: NDArray[np.int64],
    si: Floats,
    sj: Floats,
    force: Floats,
) -> Floats:
    """M̃⁻¹ of bodies on ball joints by LU of the whole matrix, (6n, 6n); GS17 Table 2, "full rank".

    Args:
        timestep: s.
        mass: (n,).
        inertia: about the centres of mass, world axes, (n, 3, 3).
        ends: bodies i and j of every joint, -1 the world, (joints, 2).
        si, sj: anchors from the centres of mass, world axes, (joints, 3).
        force: multipliers of the joints, world axes, (joints, 3).
    """
    n = len(mass)
    M = np.zeros((6 * n, 6 * n))
    kernels.ball_chain_matrix(timestep, mass, inertia, ends, si, sj, force, M)
    return _invert(M)


def effective_inverse_low_rank(
    timestep: float,
    mass: Floats,
    inertia: Floats,
    ends: NDArray[np.int64],
    si: Floats,
    sj: Floats,
    force: Floats,
    out: Floats | None = None,
) -> Floats:
    """M̃⁻¹ of bodies on ball joints by Sherman-Morrison updates, 3 x 3 each, (6n, 6n); GS17 Table 2, "low rank".

    Arguments as for `effective_inverse_full`; `out`, if given, must be zero or the result of an earlier call.
    """
    if out is None:
        out = np.zeros((6 * len(mass), 6 * len(mass)))
    kernels.ball_chain_inverse(timestep, mass, inertia, ends, si, sj, force, np.empty((6, 3)), out)
    return out
