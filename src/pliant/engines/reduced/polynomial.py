"""`JointPolynomial`: joint displacements as a cubic polynomial of the static wrench, fitted to equilibria.

A mechanism that bends in many directions needs many samples in a blend. A polynomial of low order follows the
equilibria more closely. It has the value and slope of the model at rest, so small loads are as accurate as with that
model, and is fitted to values and slopes of all other models by least squares.
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
_SLOPE = 0.3  # weight of slopes relative to values
_SPANNED = 1e-6  # of the largest singular value of the wrenches: directions below stay linear


def monomials(size: int) -> list[tuple[int, ...]]:
    """Factors of all products of two coordinates, then of three, as indices."""
    return [f for degree in (2, 3) for f in combinations_with_replacement(range(size), degree)]


@dataclass(frozen=True, eq=False)
class JointPolynomial:
    """Joint displacements from the first model, `slope u + coefficients^T products(directions u)`.

    Attributes:
        slope: (nv, 6e), the joint map at rest.
        directions: (r, 6e), from wrenches to the coordinates of the products, which are about -1 to 1.
        coefficients: (products, nv).
        residual: root mean square residual of the fit, rad or m.
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
        """Change of the joint displacements per wrenches, (nv, 6e)."""
        z = self.directions @ u
        slopes = np.array([[_derivative(z, f, a) for a in range(len(z))] for f in monomials(len(z))])
        return self.slope + self.coefficients.T @ slopes @ self.directions


def _derivative(z: Floats, factors: tuple[int, ...], a: int) -> float:
    """Derivative of the product of these factors with respect to `z[a]`."""
    total = 0.0
    for i, f in enumerate(factors):
        if f == a:
            total += float(np.prod(z[list(factors[:i] + factors[i + 1 :])]))
    return total


def fit_polynomial(models: Sequence[ReducedModel]) -> JointPolynomial:
    """Least-squares fit to models at equilibria; the first is the one at rest.

    Raises:
        InputError: there are too few models, or the first is loaded.
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
