"""A ball chain under load, as GS17's inverses of M - h²K̃ take it, and the shortest way to that inverse.

K̃ is the geometric stiffness: a force f on a body at the lever s turns with it, so the torque s × f changes by
`f^ s^` (hats are cross-product matrices) per radian. A ball joint's K̃ couples no two bodies.
"""

from __future__ import annotations

import numba
import numpy as np

from peers.system import GRAVITY, Chain

__all__ = ["by_blocks", "problem"]


def problem(links: int, h: float) -> tuple:
    """Step, masses, inertias, ends, levers on both sides and forces of the joints of a taut chain, world axes."""
    system = Chain(links=links, ratio=100.0)
    rng = np.random.default_rng(links)
    mass, inertia = np.empty(links), np.zeros((links, 3, 3))
    si, sj, force = np.zeros((links, 3)), np.zeros((links, 3)), np.zeros((links, 3))
    weight = 0.0
    for i in reversed(range(links)):
        mass[i], com, moments = system.inertia(i)
        inertia[i] = np.diag(moments)
        sj[i, 2] = -com
        if i < links - 1:
            si[i + 1, 2] = -com - system.length
        weight += mass[i] * GRAVITY
        lean = rng.normal(0, 0.02, 3)  # not quite along the link, as in motion
        force[i] = -weight * (np.array([0, 0, 1]) + lean)  # on the parent
    ends = np.column_stack([np.arange(links) - 1, np.arange(links)]).astype(np.int64)
    return h, mass, inertia, ends, si, sj, force


@numba.njit(cache=True)
def by_blocks(h, mass, inertia, ends, si, sj, force):
    """The turning parts of the inverse alone, (links, 3, 3): one 3 x 3 inverse per link, no updates."""
    n = len(mass)
    turning = inertia.copy()
    for k in range(n):
        for side in range(2):
            body = ends[k, side]
            if body < 0:
                continue
            s, f = (si[k], force[k]) if side == 0 else (sj[k], -force[k])
            dot = s[0] * f[0] + s[1] * f[1] + s[2] * f[2]
            for r in range(3):
                turning[body, r, r] += h * h * dot  # f^ s^ = s fᵀ - (s·f) I
                for c in range(3):
                    turning[body, r, c] -= h * h * s[r] * f[c]
    out = np.empty((n, 3, 3))
    for k in range(n):
        m, o = turning[k], out[k]
        for r in range(3):
            for c in range(3):
                p, q, x, y = (c + 1) % 3, (c + 2) % 3, (r + 1) % 3, (r + 2) % 3
                o[r, c] = m[p, x] * m[q, y] - m[p, y] * m[q, x]
        o /= m[0, 0] * o[0, 0] + m[0, 1] * o[1, 0] + m[0, 2] * o[2, 0]
    return out
