"""`JointPolynomial`: joint displacements as a cubic polynomial of the static wrench, fitted to equilibria.

Where a mechanism bends in many directions, blends need many samples: between them all weights move together. A
polynomial of low order follows the equilibria more closely. It keeps value and slope of the model at rest, so small
loads are as good as that model, and is fitted to values and slopes at all others by least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.model import ReducedModel
from pliant.errors import InputError
from pliant.statics.loads import chart

__all__ = ["JointPolynomial", "fit_polynomial", "monomials"]

Floats = NDArray[np.float64]
_SLOPE = 0.3  # weight of slopes beside values
_SPANNED = 1e-6  # of the largest: directions of wrench space that samples explore less than that stay linear


def monomials(size: int) -> list[tuple[int, ...]]:
    """Which coordinates are multiplied: all products of two, then of three."""
    return [f for degree in (2, 3) for f in combinations_with_replacement(range(size), degree)]


@dataclass(frozen=True, eq=False)
class JointPolynomial:
    """Joint displacements from the first model, `slope u + coefficients^T products(directions u)`.

    Attributes:
        slope: (nv, 6e), the joint map at rest.
        directions: (r, 6e), from wrenches to the coordinates that products are made of, about -1 to 1.
        coefficients: (products, nv).
        residual: root mean square of what the fit misses, rad or m.
    """

    slope: Floats
    directions: Floats
    coefficients: Floats
    residual: float

    def displacement(self, u: Floats) -> Floats:
        """Joint displacements under a static wrench, (nv,)."""
        z = self.directions @ u
        products = np.array([np.prod(z[list(f)]) for f in monomials(len(z))])
        return self.slope @ u + products @ self.coefficients

    def joint_map(self, u: Floats) -> Floats:
        """Their change with the wrench, (nv, 6e)."""
        z = self.directions @ u
        slopes = np.array([[_derivative(z, f, a) for a in range(len(z))] for f in monomials(len(z))])
        return self.slope + self.coefficients.T @ slopes @ self.directions


def _derivative(z: Floats, factors: tuple[int, ...], a: int) -> float:
    total = 0.0
    for i, f in enumerate(factors):
        if f == a:
            total += float(np.prod(z[list(factors[:i] + factors[i + 1 :])]))
    return total


def fit_polynomial(models: Sequence[ReducedModel]) -> JointPolynomial:
    """Fit to models at equilibria; the first is the one at rest.

    Raises:
        InputError: there are too few of them, or the first is loaded.
    """
    rest, others = models[0], models[1:]
    if rest.wrench.any():
        raise InputError("a polynomial starts at rest: the first model must be made without loads")
    wrenches = np.array([model.wrench for model in others]).reshape(len(others), len(rest.wrench))
    if not wrenches.any():
        raise InputError("a polynomial needs models under loads besides the one at rest")
    unit = np.tile([1.0] * 3 + [rest.length] * 3, len(rest.end_effectors))  # torques as forces
    _, size, axes = np.linalg.svd(wrenches / unit, full_matrices=False)
    axes = axes[size > _SPANNED * size[0]]
    reach = np.abs(wrenches / unit @ axes.T).max()
    directions, back = axes / unit / reach, (axes * unit).T * reach
    products = monomials(len(axes))
    rows, targets = [], []
    for model in others:
        shift, slope = chart(rest.mechanism, rest.q, model.q, model.joint_map)
        z = directions @ model.wrench
        rows.append([[np.prod(z[list(f)]) for f in products]])
        targets.append((shift - rest.joint_map @ model.wrench)[None])
        rows.append([[_SLOPE * _derivative(z, f, a) for f in products] for a in range(len(z))])
        targets.append(_SLOPE * ((slope - rest.joint_map) @ back).T)
    design, target = np.concatenate(rows), np.concatenate(targets)
    if len(design) < len(products):
        raise InputError(
            f"{len(products)} products need more than {len(others)} loaded models: give more of them"
        )
    coefficients, *_ = np.linalg.lstsq(design, target, rcond=1e-10)
    missed = float(np.sqrt(np.mean((design @ coefficients - target) ** 2)))
    return JointPolynomial(rest.joint_map, directions, coefficients, missed)
