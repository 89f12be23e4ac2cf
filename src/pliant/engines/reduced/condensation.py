"""Reduced matrices: stiffness, inertia and damping in the admissible directions of the end effectors.

A reduced model has a few coordinates y: displacements of the end effectors along the r admissible directions, then
amplitudes of fixed-interface modes. Joints follow statically, `dq = basis @ y`, so the compliance, which may be rank
deficient, is never inverted outside its range. There are three inertias:

- condensed: kinetic energy and dissipation of the links while they follow statically (static condensation), with a
  correction for their lag at the first natural frequency;
- operational: the inertia that an impact at the end effectors meets at its first instant, `(J M^-1 J^T)^-1`;
- accelerability: TVCG Eq. 7, inverse inertias of the joints summed along the chain like compliances, each joint
  moving all it carries; likewise inverse damping. Much too light on long chains; here for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig

from pliant.engines.reduced.projection import Projection, held_loads
from pliant.mechanism import Mechanism
from pliant.statics import Configuration
from pliant.statics.inertia import Inertia
from pliant.statics.tangent import Tangent

__all__ = [
    "INERTIAS",
    "Condensed",
    "StaticShapes",
    "admissible_directions",
    "condense",
    "length_unit",
    "lowest_square",
    "project_damping",
    "static_shapes",
    "twist_scale",
]

Floats = NDArray[np.float64]
INERTIAS = ("condensed", "operational", "accelerability")
_FASTEST = 1e6  # times the first frequency: modes beyond are rounding
_UNDAMPED = 1e-9  # of the largest damping: replaces zero where damping is inverted


@dataclass(frozen=True, eq=False)
class Condensed:
    """Matrices in the r + modes coordinates y.

    Attributes:
        basis: joint motions per y, (nv, r + modes).
        stiffness, mass, damping: (r + modes, r + modes).
    """

    basis: Floats
    stiffness: Floats
    mass: Floats
    damping: Floats


def twist_scale(length: float, effectors: int) -> Floats:
    """Factors that turn lengths in twists of end effectors into multiples of `length`, (6e,)."""
    return np.tile([1 / length] * 3 + [1.0] * 3, effectors)


def length_unit(c: Configuration) -> float:
    """Largest distance of a landmark from the mean of all: independent of orientation and of the order of bodies."""
    points = c.mechanism.landmarks(c.poses)
    length = float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).max()))
    return length if length > 0 else 1.0


def admissible_directions(compliance: Floats, scale: Floats, dofs: int, tolerance: float | None) -> Floats:
    """Orthonormal directions in which the end effectors give way, lengths scaled, (6e, r).

    Left singular vectors of the compliance. Singular values below `tolerance` times the largest count as zero; by
    default 1e-12, far above rounding, or TVCG Eq. 9 with the number of joints as the other dimension, if that is more.
    """
    vectors, values, _ = np.linalg.svd(scale[:, None] * compliance * scale)
    if tolerance is None:
        tolerance = max(1e-12, max(dofs, len(compliance)) * float(np.finfo(float).eps))
    return np.ascontiguousarray(vectors[:, : int((values > tolerance * values[0]).sum())])


class StaticShapes(NamedTuple):
    """Joint motions under static loads on the end effectors.

    Attributes:
        basis: joint motions per displacement along each direction, (nv, r).
        stiffness: (r, r).
        inverse: displacements per joint motion, (r, nv): zero for motions that are orthogonal to `basis` in the
            metric of the stiffness.
    """

    basis: Floats
    stiffness: Floats
    inverse: Floats


def static_shapes(p: Projection, directions: Floats, scale: Floats) -> StaticShapes:
    """Static shapes of unit displacements along the admissible directions."""
    loaded = scale[:, None] * directions  # unit wrenches along the admissible directions
    stiffness = _inverse(loaded.T @ p.compliance @ loaded)
    return StaticShapes(p.joint_map @ (loaded @ stiffness), stiffness, loaded.T @ p.rows)


def condense(
    m: Mechanism,
    p: Projection,
    shapes: StaticShapes,
    directions: Floats,
    scale: Floats,
    inertia: str,
    modes: int,
) -> Condensed:
    """Reduced matrices of one of the three inertias, with fixed-interface modes appended."""
    loaded = scale[:, None] * directions
    rank = directions.shape[1]
    basis, stiffness, inverse = shapes
    kinetic = Inertia(m, p.q)
    momentum = kinetic.times(np.ascontiguousarray(basis.T))
    mass = momentum @ basis
    if inertia == "condensed":
        back = basis.T

        def held(force: Floats) -> Floats:
            """Joint motions under generalised forces with the end effectors held."""
            motion = p.solve(force)
            return motion - (motion @ inverse.T) @ back

        lag = momentum @ held(momentum).T
        speed = np.zeros(0)
        if modes:
            from pliant.statics.modes import natural_modes

            fastest = _FASTEST * np.sqrt(lowest_square(stiffness, mass))
            speed, inner = natural_modes(kinetic, held, modes, fastest)
            basis = np.concatenate([basis, inner.T], axis=1)
            lag -= (momentum @ inner.T / speed**2) @ (inner @ momentum.T)
            none = np.zeros((rank, len(speed)))
            stiffness = np.block([[stiffness, none], [none.T, np.diag(speed**2)]])
            mass = np.block([[mass, momentum @ inner.T], [inner @ momentum.T, np.eye(len(speed))]])
        added = np.zeros_like(mass)
        added[:rank, :rank] = lag
        mass = _with_lag(stiffness, mass, added)
    damping = project_damping(m, basis)
    if inertia == "operational":
        accelerations, _ = kinetic.factor().solve(p.rows)
        mass = _inverse(loaded.T @ (p.rows @ accelerations.T) @ loaded)
    elif inertia == "accelerability":
        mass = _series(m, p, loaded, kinetic.carried())
        floor = _UNDAMPED * m.damping.max(initial=0.0)
        damping = _series(m, p, loaded, np.maximum(m.damping, floor)) if floor else np.zeros_like(mass)
    return Condensed(basis, stiffness, (mass + mass.T) / 2, (damping + damping.T) / 2)


def project_damping(m: Mechanism, basis: Floats) -> Floats:
    """Damping of joints and tendons along the columns of a basis, (k, k), symmetric."""
    tendons = m.tendons.dense(m.nv) @ basis
    damping = basis.T @ (m.damping[:, None] * basis) + tendons.T @ (m.tendon_damping[:, None] * tendons)
    return (damping + damping.T) / 2


def _inverse(matrix: Floats) -> Floats:
    return np.linalg.inv(matrix).astype(np.float64)


def lowest_square(stiffness: Floats, mass: Floats) -> float:
    """Square of the lowest natural frequency, (rad/s)²."""
    squares: Any = eig(stiffness, mass, right=False)
    return float(np.abs(squares).min())


def _with_lag(stiffness: Floats, mass: Floats, lag: Floats) -> Floats:
    """Mass matrix corrected for the first natural frequency.

    Links lag behind their static shape: the inertia at the end effectors in a vibration of angular frequency w is
    `mass + w² lag`, up to higher powers of w. Evaluated at the first frequency it removes most of the error of static
    condensation there; statics stay exact.
    """
    square = 0.0
    for _ in range(10):
        previous, square = square, lowest_square(stiffness, mass + square * lag)
        if abs(square - previous) < 1e-6 * square:
            break
    return mass + square * lag


def _series(m: Mechanism, p: Projection, loaded: Floats, joints: Floats) -> Floats:
    """Joint inertias or dampings projected like stiffnesses, (r, r): TVCG's construction."""
    alike = m.replace(stiffness=joints, tendon_stiffness=np.zeros(len(m.tendons)))
    tangent = Tangent(alike, p.q, held_loads(alike, p.q))
    tangent.factor()
    motion, _ = tangent.solve(p.rows, exact=True)
    return _inverse(loaded.T @ (p.rows @ motion.T) @ loaded)
