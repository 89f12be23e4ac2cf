"""Equilibrium of a mechanism that springs pull towards points of the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.mechanism import Mechanism
from pliant.statics.configuration import Configuration
from pliant.statics.equilibrium import equilibrium
from pliant.statics.loads import Load

__all__ = ["PointSpring", "equilibrium_with_springs"]

Floats = NDArray[np.float64]
_ROUNDS = 9  # equilibria, with a Newton step of the forces after each
_CLOSE = 1e-6  # relative change of the forces at which they have converged


class PointSpring(NamedTuple):
    """A spring without rest length from a point of a body to a point of the world.

    Attributes:
        body: name of the body.
        point: where the spring holds it, body frame, m.
        target: the other end, world, m.
        stiffness: N/m.
    """

    body: str
    point: Floats
    target: Floats
    stiffness: float


def equilibrium_with_springs(
    m: Mechanism, springs: Sequence[PointSpring], start: Configuration, **options: Any
) -> Configuration:
    """Equilibrium under springs, found as the equilibrium under their forces.

    Newton's method on the forces: the mechanism's compliance gives the displacement of the points with them.

    Args:
        m: the mechanism.
        springs: the springs.
        start: where the search begins.
        options: further arguments of `pliant.equilibrium`.

    Raises:
        ConvergenceError: no equilibrium was found.
    """
    bodies = list(dict.fromkeys(spring.body for spring in springs))
    stiffness = np.repeat([spring.stiffness for spring in springs], 3)
    found, force = start, stiffness * _stretch(springs, start)
    for _ in range(_ROUNDS):
        found = equilibrium(m, _wrenches(springs, force, found), start=found, **options)
        compliance, rows = found.compliance(*bodies), np.zeros((len(force), 6 * len(bodies)))
        for i, spring in enumerate(springs):
            turn, e = found.pose(spring.body)[:3, :3], 6 * bodies.index(spring.body)
            rows[3 * i : 3 * i + 3, e : e + 6] = np.hstack([turn, -turn @ spatial.hat(spring.point)])
        left = np.eye(len(force)) + stiffness[:, None] * (rows @ compliance @ rows.T)
        change = np.linalg.solve(left, stiffness * _stretch(springs, found) - force)
        force = force + change
        if np.abs(change).max() <= _CLOSE * np.abs(force).max():
            break
    return found


def _stretch(springs: Sequence[PointSpring], at: Configuration) -> Floats:
    """Vectors from the points of the springs to their targets, world, m, (3 springs,)."""
    poses = [at.pose(spring.body) for spring in springs]
    points = [pose[:3, :3] @ s.point + pose[:3, 3] for s, pose in zip(springs, poses, strict=True)]
    return np.concatenate([s.target - point for s, point in zip(springs, points, strict=True)])


def _wrenches(springs: Sequence[PointSpring], force: Floats, at: Configuration) -> dict[str, Load]:
    """Loads of the springs' forces (3 springs,) by body; several on one body are summed at its origin."""
    out: dict[str, Load] = {}
    for spring, f in zip(springs, force.reshape(-1, 3), strict=True):
        first, turn = out.get(spring.body), at.pose(spring.body)[:3, :3]
        if first is None:
            out[spring.body] = Load(f, np.zeros(3), spring.point)
            continue
        torque = first.torque + np.cross(turn @ first.point, first.force) + np.cross(turn @ spring.point, f)
        out[spring.body] = Load(first.force + f, torque, np.zeros(3))
    return out
