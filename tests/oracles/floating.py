"""Floating mechanisms: random ones, and the dense manifold of all their coordinates, those of the base among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import pliant
from oracles.manifold import DenseManifold
from oracles.random_mechanisms import KINDS, random_mechanism, tied
from pliant.mechanism import kinematics

JOINTS = tuple(kind for kind in KINDS if kind not in ("free", "fixed"))


def floating_mechanism(seed: int, bodies: int, loops: int, couplings: int, tendons: int) -> pliant.Mechanism:
    """A random mechanism whose first body is free in the world; all others hang on it."""
    m = random_mechanism(seed, bodies, loops, JOINTS, reference=True, floating=True)
    fixed = tied(m.with_fixed_base(), seed, couplings, tendons)
    shift = m.nv - fixed.nv  # the base comes first

    def moved(rows):
        return type(rows).pack([(rows.row(r)[0] + shift, rows.row(r)[1]) for r in range(len(rows))])

    words = [
        "coupling_names",
        "coupling_offset",
        "tendon_names",
        "tendon_stiffness",
        "tendon_damping",
        "tendon_rest",
    ]
    ties = {word: getattr(fixed, word) for word in words}
    return replace(m, couplings=moved(fixed.couplings), tendons=moved(fixed.tendons), **ties)


def dense_floating(model: pliant.ReducedModel, turn: np.ndarray, q0: np.ndarray) -> DenseManifold:
    """The manifold of a floating model: six coordinates of the base, then those of the model, `turn` of them per y.

    `q0` are joint coordinates of the whole mechanism at y = 0; those of the joints are where the model was made.
    """
    base, manifold = model.base, model.manifold
    assert base is not None
    m = base.mechanism
    own = base.own_dofs

    def whole(columns):
        out = np.zeros((m.nv, columns.shape[1]))
        out[own] = columns
        return out

    basis = np.concatenate([np.eye(m.nv)[:, base.dofs], whole(manifold.basis @ turn)], axis=1)
    curvature = None
    if manifold.curvature is not None:
        k = 6 + turn.shape[1]
        curvature = np.zeros((k, k, m.nv))
        curvature[6:, 6:, own] = np.einsum("ia,jb,ijd->abd", turn, turn, manifold.curvature)
    rest = m.reference.copy()
    rest[base.own_coordinates] = manifold.loads.rest
    loads = replace(manifold.loads, rest=rest)
    return DenseManifold(m, q0, basis, loads, whole(manifold.closing), manifold.rows, curvature)


def placed(m: pliant.Mechanism, base, seed: int, distance: float = 3.0) -> np.ndarray:
    """The reference with the base moved at random, (nq,)."""
    step = np.zeros(m.nv)
    step[base.dofs] = np.random.default_rng(seed).normal(size=6) * ([distance] * 3 + [1.0] * 3)
    return kinematics.move(m, m.reference, step)
