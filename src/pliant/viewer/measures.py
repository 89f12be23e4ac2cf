"""What a session shows in numbers: energy, how far joints come apart, how stiff an end effector is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.constrained.energy import Energy, energy
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation
from pliant.mechanism import Mechanism
from pliant.viewer.setup import Simulation

__all__ = ["Ellipsoid", "Measures", "compliance_ellipsoid", "energy_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """Numbers at one time.

    Attributes:
        time: simulated, s.
        energy: J.
        violation: how far a joint or loop comes apart, m.
        step_time: real time a step takes, s.
        rate: simulated time per real time.
    """

    time: float
    energy: Energy
    violation: float
    step_time: float
    rate: float


class Ellipsoid(NamedTuple):
    """Where unit forces in all directions move a point, as an ellipsoid: long is soft.

    Attributes:
        compliance: m/N, softest first, (3,).
        axes: their directions in the body's frame, in columns.
    """

    compliance: Floats
    axes: Floats

    @property
    def stiffness(self) -> Floats:
        """N/m; infinite where the mechanism does not give way."""
        with np.errstate(divide="ignore"):
            return np.where(self.compliance > 0, 1 / self.compliance, np.inf)


def compliance_ellipsoid(
    model: ReducedModel | BlendedModel, body: str, simulation: Simulation | None
) -> Ellipsoid:
    """How an end effector gives way to forces at its origin; of a blend, where the simulation is."""
    if isinstance(model, ReducedModel):
        compliance = model.compliance
    elif isinstance(simulation, ReducedSimulation) and simulation.model is model:
        compliance = model.compliance_at(model.unit * simulation.state[1 : 1 + len(model.unit)])
    else:
        compliance = model.models[0].compliance
    start = 6 * model.index(body)
    block = compliance[start : start + 3, start : start + 3]
    values, axes = np.linalg.eigh((block + block.T) / 2)
    values = np.where(values > 1e-9 * max(values[-1], 0.0), values, 0.0)
    values, axes = values[::-1].copy(), axes[:, ::-1].copy()
    axes[:, 2] *= np.sign(np.linalg.det(axes))  # right-handed, so that they are a rotation
    return Ellipsoid(values, axes)


def energy_of(simulation: Simulation, m: Mechanism, q: Floats, gravity: Floats) -> Energy:
    """Energies, J. Of a floating base in a reduced model, motion as a whole is not in it."""
    if isinstance(simulation, ConstrainedSimulation):
        return simulation.energy
    return energy(m, q, simulation.poses, gravity, _kinetic(simulation))


def _kinetic(simulation: Simulation) -> float:
    if not isinstance(simulation, ReducedSimulation):
        return 0.0  # quasi-statics has no velocities
    model, state = simulation.model, simulation.state
    if isinstance(model, ReducedModel):
        n = len(model.reduced_mass)
        v = state[1 + n : 1 + 2 * n]
        return 0.5 * float(v @ model.reduced_mass @ v)
    n = len(model.unit)
    y, v = state[1 : 1 + n], state[1 + n : 1 + 2 * n]
    return 0.5 * float(v @ model.mixed(model.weights_at(model.unit * y))[1] @ v)
