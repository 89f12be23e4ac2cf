"""Reduction by dense matrices: null spaces, inverses and eigenvectors of everything, as the definitions say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

import pliant


def free_motions(c: pliant.Configuration, unit: np.ndarray | float = 1.0) -> np.ndarray:
    """Motions that loops and couplings allow, (nv, motions), orthonormal if dofs are measured in `unit`."""
    rows = c.loop_jacobian * unit
    if not len(rows):
        return np.eye(c.mechanism.nv) * unit
    _, s, vt = np.linalg.svd(rows)
    return (vt[int((s > 1e-9 * s[0]).sum()) :] * unit).T


def flexibility(c: pliant.Configuration) -> np.ndarray:
    """P: motions under generalised forces at rest, (nv, nv)."""
    k = c.mechanism.stiffness
    # Dofs in units of their own softness, lest a cable's stiffness along it cost all digits of that across.
    Z = free_motions(c, 1 / np.sqrt(np.where(k > 0, k, 1.0)))
    return Z @ np.linalg.solve(Z.T @ c.mechanism.stiffness_matrix @ Z, Z.T)


def jacobian(c: pliant.Configuration, bodies: Sequence[str]) -> np.ndarray:
    return np.concatenate([c.jacobian(body) for body in bodies])


def compliance(c: pliant.Configuration, bodies: Sequence[str]) -> np.ndarray:
    J = jacobian(c, bodies)
    return J @ flexibility(c) @ J.T


def frequencies(c: pliant.Configuration) -> np.ndarray:
    """All natural frequencies at rest, Hz."""
    Z = free_motions(c)
    squares = scipy.linalg.eigh(
        Z.T @ c.mechanism.stiffness_matrix @ Z, Z.T @ c.mass_matrix() @ Z, eigvals_only=True
    )
    return np.sqrt(squares) / (2 * np.pi)


def mobility(c: pliant.Configuration, bodies: Sequence[str]) -> np.ndarray:
    """J M^-1 J^T on the motions that constraints allow: acceleration per wrench, (6e, 6e)."""
    J, Z = jacobian(c, bodies), free_motions(c)
    return J @ Z @ np.linalg.solve(Z.T @ c.mass_matrix() @ Z, Z.T @ J.T)
