"""Coordinates of models: maps to joints and back, to twists of end effectors, and the response to impulses.

The coordinates of a linear model are displacements along its admissible directions and amplitudes of modes; those of
mixed models are static wrenches. Both classes have the same methods, so that simulations treat both kinds alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.model import ReducedModel
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia
from pliant.statics.loads import coordinate_difference

__all__ = ["Amplitudes", "Carried", "StaticWrenches", "rigid_whole"]

Floats = NDArray[np.float64]
RIGID = 1e-9  # of the largest compliance: added, so that in rigid directions the static wrench follows the applied one


class Carried(NamedTuple):
    """What a floating base carries, in the frame of the base's body.

    Attributes:
        centre: centre of mass of the whole, (3,).
        inertia: of the whole about it, (3, 3).
        velocity: of the centre of mass relative to the base, per rate of the coordinates, (3, n).
        momentum: angular momentum about the centre of mass per rate, while the base rests, (3, n).
    """

    centre: Floats
    inertia: Floats
    velocity: Floats
    momentum: Floats


def rigid_whole(model: ReducedModel, count: int) -> Carried:
    """What the base of a model carries, as if fixed to it (TVCG section 6.1)."""
    assert model.base is not None
    inertia = model.base.inertia
    mass = inertia[0, 0]
    centre = spatial.vee(inertia[3:, :3]) / mass  # the lower left block is m c^
    about = inertia[3:, 3:] - mass * ((centre @ centre) * np.eye(3) - np.outer(centre, centre))
    return Carried(centre, about, *np.zeros((2, 3, count)))


def _own(model: ReducedModel, q: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """Joint coordinates and velocities of the mechanism with its base fixed, from those of the whole."""
    base = model.base
    return (q, rates) if base is None else (q[base.own_coordinates], rates[base.own_dofs])


class Amplitudes:
    """Coordinates of a reduced model."""

    def __init__(self, model: ReducedModel, h: float):
        self.model = model
        self.count = model.basis.shape[1]
        self._ends = np.zeros((len(model.compliance), self.count))
        self._ends[:, : model.rank] = model.admissible
        M, D, K = model.reduced_mass, model.reduced_damping, model.reduced_stiffness
        self.inverse: Floats = np.linalg.inv(M + h * D + h * h * K).astype(np.float64)

    def to_model(self, y: Floats) -> Floats:
        """Coordinates of the model; a copy."""
        return y.copy()

    def from_model(self, y: Floats) -> Floats:
        """Coordinates as the kernels have them."""
        return y

    def ends(self, y: Floats) -> Floats:
        """Twists of the end effectors per rate, (6e, n)."""
        return self._ends

    def displacement(self, y: Floats) -> Floats:
        """Twists of the end effectors from the linearisation, (6e,)."""
        return self._ends @ y

    def joint_map(self, y: Floats) -> Floats:
        """Joint velocities per rate, (nv, n)."""
        return self.model.basis

    def mass(self, y: Floats) -> Floats:
        """Inertia of the coordinates, (n, n)."""
        return self.model.reduced_mass

    def inverse_at(self, y: Floats) -> Floats:
        """Rates at the end of the next step per impulse on the coordinates during it, (n, n)."""
        return self.inverse

    def response(self, y: Floats) -> Floats:
        """Rates at the end of the next step per impulse on the end effectors during it, (n, 6e)."""
        return self.inverse @ self._ends.T

    def impulse_velocity(self, y: Floats) -> Floats:
        """Immediate change of the rates per impulse on the end effectors, (n, 6e)."""
        return np.linalg.solve(self.model.reduced_mass, self._ends.T).astype(np.float64)

    def joints(self, y: Floats) -> Floats:
        """Joint coordinates, (nq,)."""
        return kinematics.move(self.model.mechanism, self.model.q, self.model.basis @ y)

    def joint_rates(self, y: Floats, v: Floats) -> Floats:
        """Joint velocities, (nv,)."""
        return self.model.basis @ v

    def from_joints(self, q: Floats, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """Coordinates and rates nearest to joint coordinates and velocities of the whole mechanism, and those of it.

        End effectors keep their displacements and velocities; the rest is projected onto modes and vectors by inertia.
        The third is `q`: a floating base stays where it is.
        """
        model, near = self.model, q
        q, rates = _own(model, q, rates)
        rows = np.concatenate([model.at.jacobian(body) for body in model.end_effectors])
        into = (model.directions * model.scale[:, None]).T @ rows
        if self.count > model.rank:
            shapes = model.basis[:, model.rank :]
            momentum = Inertia(model.mechanism, model.q).times(np.ascontiguousarray(shapes.T))
            share = np.linalg.solve(momentum @ shapes, momentum)
            left = np.eye(len(shapes)) - model.basis[:, : model.rank] @ into
            into = np.concatenate([into, share @ left])
        return into @ coordinate_difference(model.mechanism, model.q, q), into @ rates, near

    def carried(self, y: Floats) -> Carried:
        """What a floating base carries: the rigid whole."""
        return rigid_whole(self.model, self.count)


class StaticWrenches:
    """Coordinates of mixed models: static wrenches in body axes, torques divided by `length`."""

    def __init__(self, model: BlendedModel, h: float):
        self.model, self._h = model, h
        self.count = 6 * len(model.end_effectors)
        self.length, self.unit = model.models[0].length, model.unit
        self.rigid = RIGID * float(np.abs(model.condensed[0]).max())

    def _mixed(self, y: Floats) -> tuple[Floats, ...]:
        """Blended compliance, mass and damping, (n, n) each."""
        return self.model.mixed(self.model.weights_at(self.unit * y))

    def _step_matrix(self, y: Floats) -> tuple[Floats, Floats]:
        """Matrix of a backward Euler step, and the compliance in it, (n, n) each."""
        C, M, D = self._mixed(y)
        C = C + self.rigid * np.eye(len(C))
        return M + self._h * D + self._h**2 * C.T, C

    def to_model(self, y: Floats) -> Floats:
        """Coordinates of the model; a copy."""
        return y.copy()

    def from_model(self, y: Floats) -> Floats:
        """Coordinates as the kernels have them."""
        return y

    def ends(self, y: Floats) -> Floats:
        """Twists of the end effectors per rate, (6e, n)."""
        return self._mixed(y)[0] / self.unit[:, None]

    def displacement(self, y: Floats) -> Floats:
        """Twists of the end effectors from the first linearisation, to first order, (6e,)."""
        model = self.model.models[0]
        rows = np.concatenate([model.at.jacobian(body) for body in model.end_effectors])
        return rows @ self.model.displacement_at(self.unit * y)

    def joint_map(self, y: Floats) -> Floats:
        """Joint velocities per rate at constant weights, (nv, n)."""
        return self.model.joint_map_at(self.unit * y) * self.unit

    def mass(self, y: Floats) -> Floats:
        """Inertia of the coordinates, (n, n)."""
        return self._mixed(y)[1]

    def inverse_at(self, y: Floats) -> Floats:
        """Rates at the end of the next step per impulse on the coordinates during it, (n, n)."""
        return np.linalg.inv(self._step_matrix(y)[0]).astype(np.float64)

    def response(self, y: Floats) -> Floats:
        """Rates at the end of the next step per impulse on the end effectors during it, (n, 6e)."""
        step, C = self._step_matrix(y)
        return np.linalg.solve(step, C.T / self.unit).astype(np.float64)

    def impulse_velocity(self, y: Floats) -> Floats:
        """Immediate change of the rates per impulse on the end effectors, (n, 6e)."""
        C, M, _ = self._mixed(y)
        return np.linalg.pinv(M, rcond=1e-9, hermitian=True) @ C.T / self.unit

    def joints(self, y: Floats) -> Floats:
        """Joint coordinates, (nq,)."""
        model = self.model
        return kinematics.move(model.mechanism, model.models[0].q, model.displacement_at(self.unit * y))

    def joint_rates(self, y: Floats, v: Floats) -> Floats:
        """Joint velocities at constant weights, (nv,)."""
        u = self.unit * y
        return self.model.joint_map_at(u) @ (self.unit * v)

    def carried(self, y: Floats) -> Carried:
        """What a floating base carries: the rigid whole of the first model."""
        return rigid_whole(self.model.models[0], self.count)

    def from_joints(self, q: Floats, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """Static wrench and its rate nearest to joint coordinates and velocities, by Gauss-Newton steps; and `q`."""
        blend, near = self.model, q
        first = blend.models[0]
        q, rates = _own(first, q, rates)
        target = coordinate_difference(first.mechanism, first.q, q)
        each = [np.linalg.norm(target - shift) for shift in blend.shifts]
        u = blend.samples[int(np.argmin(each))].copy()
        # Least squares over displacements of end effectors: wrenches on them do not determine all joints.
        rows = np.concatenate([first.at.jacobian(body) for body in first.end_effectors])
        scale = self.length * first.scale
        for _ in range(20):
            slope = scale[:, None] * (rows @ blend.joint_map_at(u) * self.unit)
            inverse = np.linalg.pinv(slope, rcond=1e-9)
            change = self.unit * (inverse @ (scale * (rows @ (target - blend.displacement_at(u)))))
            u += change
            if np.abs(change).max() <= 1e-12 * max(np.abs(u).max(), 1e-300):
                break
        slope = scale[:, None] * (rows @ blend.joint_map_at(u) * self.unit)
        return u / self.unit, np.linalg.pinv(slope, rcond=1e-9) @ (scale * (rows @ rates)), near
