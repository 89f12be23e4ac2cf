"""Contact problems solved the slow way, and what makes a solution one."""

from __future__ import annotations

from itertools import product

import numpy as np


def frictionless(W, b):
    """The p with p >= 0, W p + b >= 0 and one of them zero in every row, by trying all sets of rows."""
    n = len(b)
    for chosen in product((False, True), repeat=n):
        on = np.array(chosen)
        p = np.zeros(n)
        if on.any():
            p[on] = np.linalg.solve(W[np.ix_(on, on)], -b[on])
        if (p >= -1e-12).all() and (W @ p + b >= -1e-9).all():
            return p
    raise AssertionError("no solution")


def violation(p, v, mu):
    """How far impulses (n, 3) and velocities (n, 3), normal first, are from Coulomb's law, in m/s."""
    worst = 0.0
    for (pn, *pt), (vn, *vt), m in zip(p, v, mu, strict=True):
        pt, vt = np.array(pt), np.array(vt)
        size, speed = np.linalg.norm(pt), np.linalg.norm(vt)
        assert pn >= 0
        assert size <= m * pn + 1e-9 * (1 + pn)
        worst = max(worst, -vn)  # no approach
        if pn > 1e-9:
            worst = max(worst, abs(vn))  # no departure under force
        if size < m * pn * (1 - 1e-6):
            worst = max(worst, speed)  # within the cone it sticks
        elif speed > 1e-6 and size > 1e-9:
            worst = max(
                worst, np.linalg.norm(vt + speed * pt / size)
            )  # on the cone friction is against the slip
    return worst
