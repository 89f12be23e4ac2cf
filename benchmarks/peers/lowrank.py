"""The inverse of the stabilized mass matrix M - h² K of a ball chain under load, three ways (GS17, Section 4).

K is the geometric stiffness: a force f on a body at the lever s turns with it, so the torque s × f changes by
`f^ s^` (hats are cross-product matrices) per radian. That is two terms of rank one for each end of a link.
"""

from __future__ import annotations

import numba
import numpy as np

from peers.system import GRAVITY, Chain


def problem(links: int, h: float = 0.01) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses and inertias (links, 6), levers and h² times the forces at both ends, (links, 2, 3), of a taut chain."""
    system = Chain(links=links, ratio=100.0)
    rng = np.random.default_rng(links)
    mass = np.empty((links, 6))
    levers, forces = np.zeros((links, 2, 3)), np.zeros((links, 2, 3))
    weight = 0.0
    for i in reversed(range(links)):
        m, com, inertia = system.inertia(i)
        mass[i, :3], mass[i, 3:] = m, inertia
        levers[i, :, 2] = -com, -com - system.length
        lean = rng.normal(0, 0.02, 3)  # not quite along the link, as in motion
        if i < links - 1:
            forces[i, 1] = -forces[i + 1, 0]
        weight += m * GRAVITY
        forces[i, 0] = weight * (np.array([0, 0, 1]) + lean)
    return mass, levers, h**2 * forces


@numba.njit(cache=True)
def _terms(s, f, a, b):
    """f^ s^ as the sum of a[k] b[k]ᵀ, k = 0, 1: b is a basis of the plane across s."""
    size = np.sqrt(s @ s)
    n = s / size
    e = np.zeros(3)
    e[np.argmin(np.abs(n))] = 1.0
    u = np.cross(n, e)
    u /= np.sqrt(u @ u)
    v = np.cross(n, u)
    b[0], b[1] = u, v
    a[0], a[1] = size * np.cross(f, v), -size * np.cross(f, u)


@numba.njit(cache=True)
def assembled(mass, levers, forces):
    """The whole matrix, dense: what a general solver starts from."""
    n = len(mass)
    out = np.zeros((6 * n, 6 * n))
    a, b = np.empty((2, 3)), np.empty((2, 3))
    for i in range(n):
        for k in range(6):
            out[6 * i + k, 6 * i + k] = mass[i, k]
        for end in range(2):
            _terms(levers[i, end], forces[i, end], a, b)
            for k in range(2):
                for r in range(3):
                    for c in range(3):
                        out[6 * i + 3 + r, 6 * i + 3 + c] -= a[k, r] * b[k, c]
    return out


def by_lu(mass, levers, forces):
    """Dense LU."""
    return np.linalg.inv(assembled(mass, levers, forces))


@numba.njit(cache=True)
def by_updates(mass, levers, forces):
    """Sherman-Morrison: four rank-one updates per link of the inverse of M, into the same dense matrix as LU."""
    n = len(mass)
    out = np.zeros((6 * n, 6 * n))
    a, b = np.empty((2, 3)), np.empty((2, 3))
    left, right = np.empty(3), np.empty(3)
    for i in range(n):
        for k in range(6):
            out[6 * i + k, 6 * i + k] = 1 / mass[i, k]
        block = out[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6]
        for end in range(2):
            _terms(levers[i, end], forces[i, end], a, b)
            for k in range(2):
                below = 1.0
                for r in range(3):
                    left[r] = right[r] = 0.0
                    for c in range(3):
                        left[r] += block[r, c] * a[k, c]
                        right[r] += b[k, c] * block[c, r]
                for r in range(3):
                    below -= b[k, r] * left[r]
                for r in range(3):
                    for c in range(3):
                        block[r, c] += left[r] * right[c] / below
    return out


@numba.njit(cache=True)
def by_blocks(mass, levers, forces):
    """One 3 x 3 inverse per link, since a ball's K couples no two bodies; the blocks alone, (links, 3, 3)."""
    n = len(mass)
    out = np.empty((n, 3, 3))
    m = np.empty((3, 3))
    for i in range(n):
        m[:] = 0.0
        for k in range(3):
            m[k, k] = mass[i, 3 + k]
        for end in range(2):
            s, f = levers[i, end], forces[i, end]
            dot = s[0] * f[0] + s[1] * f[1] + s[2] * f[2]
            for r in range(3):
                m[r, r] += dot  # f^ s^ = s fᵀ - (s·f) I
                for c in range(3):
                    m[r, c] -= s[r] * f[c]
        o = out[i]
        for r in range(3):
            for c in range(3):
                p, q, x, y = (c + 1) % 3, (c + 2) % 3, (r + 1) % 3, (r + 2) % 3
                o[r, c] = m[p, x] * m[q, y] - m[p, y] * m[q, x]
        o /= m[0, 0] * o[0, 0] + m[0, 1] * o[1, 0] + m[0, 2] * o[2, 0]
    return out
