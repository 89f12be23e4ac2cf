"""Natural modes: the lowest undamped vibrations of a mechanism about a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from pliant.statics.inertia import Inertia

__all__ = ["lowest_frequencies", "natural_modes"]

Floats = NDArray[np.float64]
_DENSE = 300  # dofs up to which all modes at once are quicker than some by Lanczos iteration


def natural_modes(
    inertia: Inertia, solve: Callable[[Floats], Floats], count: int, fastest: float = np.inf
) -> tuple[Floats, Floats]:
    """Angular frequencies (rad/s), lowest first, and joint motions of unit modal mass, (modes, nv).

    Args:
        inertia: joint-space inertia at the configuration.
        solve: motions under generalised forces, both in rows: the inverse of the stiffness on the motions that
            constraints allow, and zero on all others. So modes never leave the constraints.
        count: number of modes; fewer are returned if fewer exist.
        fastest: frequencies above this (rad/s) are rounding, not motions.
    """
    try:
        flexibility, motions = (_all if inertia.m.nv <= _DENSE else _lowest)(inertia, solve, count)
    except ArpackError:  # constraints leave fewer motions than the iteration needs
        flexibility, motions = _all(inertia, solve, count)
    real = flexibility > max(1e-14 * flexibility.max(initial=0.0), 1 / fastest**2)
    order = np.argsort(-flexibility[real])[:count]
    return 1 / np.sqrt(flexibility[real][order]), motions[real][order]


def _all(inertia: Inertia, solve: Callable[[Floats], Floats], _: int) -> tuple[Floats, Floats]:
    """Every mode, by dense matrices: inverse squared frequencies and motions."""
    response = solve(np.eye(inertia.m.nv))
    weights, axes = eigh(inertia.dense())
    kept = weights > 1e-14 * weights[-1]  # dofs of loop-closing joints move no mass of their own
    root = axes[:, kept] * np.sqrt(weights[kept])
    flexibility, shapes = eigh(root.T @ ((response + response.T) / 2) @ root)
    return flexibility, (response @ root @ shapes).T / np.where(flexibility > 0, flexibility, 1.0)[:, None]


def lowest_frequencies(mass: Floats, response: Floats) -> Floats:
    """The lowest natural frequency of each of several small systems, Hz, (n,); NaN where nothing moves.

    Args:
        mass: joint-space inertia, (n, nv, nv).
        response: motions under unit generalised forces, (n, nv, nv): the inverse stiffness on allowed motions.
    """
    weights, axes = np.linalg.eigh(mass)
    root = axes * np.sqrt(np.maximum(weights, 0.0))[:, None, :]
    shapes = root.transpose(0, 2, 1) @ ((response + response.transpose(0, 2, 1)) / 2) @ root
    flexibility = np.linalg.eigvalsh(shapes)[:, -1] if shapes.shape[1] else np.zeros(len(mass))
    with np.errstate(divide="ignore"):
        return np.where(flexibility > 0, 1 / (2 * np.pi * np.sqrt(np.maximum(flexibility, 0.0))), np.nan)


def _lowest(inertia: Inertia, solve: Callable[[Floats], Floats], count: int) -> tuple[Floats, Floats]:
    """The lowest modes, by Lanczos iteration on the inverse."""
    nv = inertia.m.nv
    make: Any = LinearOperator  # scipy's type hints cover subclasses only
    inverse = make((nv, nv), matvec=lambda f: solve(f.reshape(1, -1))[0], dtype=np.float64)
    mass = make((nv, nv), matvec=lambda x: inertia.times(x.reshape(1, -1))[0], dtype=np.float64)
    start = np.cos(np.arange(1, nv + 1) * 1.7)
    squares, shapes = eigsh(inverse, count, M=mass, sigma=0.0, OPinv=inverse, v0=start)
    return 1 / squares, shapes.T
