"""An engine of your own: joints in honey, where damping is all and inertia nothing, with the words of all engines.

`pliant.Simulation` has the words (`step`, `record`, `state`, wrenches, pulls, copies ...); an engine has the hooks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pliant
from pliant.engines.simulation import Effort
from pliant.mechanism import kinematics
from pliant.statics.energy import elastic_energy, gravity_energy


class ViscousSimulation(pliant.Simulation):
    """Rates v with (D + h K) v = springs + gravity + wrenches + motors: backward Euler without inertia, for hinges."""

    __slots__ = ("_now", "_wrench")
    engine = "viscous"

    def __init__(self, mechanism, timestep, gravity=(0.0, 0.0, -9.81)):
        self._begin(mechanism, timestep, gravity)
        self._now, self._wrench = mechanism.reference.copy(), {}
        self._started()

    def _force(self, at):
        """Joint torques at a configuration."""
        m = self._mechanism
        force = self._torque - m.stiffness_matrix @ (at.q - m.rest)
        weights = {m.body_names[i]: (m.mass[i] * self._gravity, m.com[i]) for i in range(m.body_count)}
        for body, (weight, point) in weights.items():
            force = force + self._push(at, body, weight, np.zeros(3), point)
        for index, load in self._wrench.items():
            turn = np.eye(3) if load.frame == "world" else at.poses[index, :3, :3]
            force = force + self._push(
                at, m.body_names[index], turn @ load.force, turn @ load.torque, load.point
            )
        return force

    def _push(self, at, body, force, torque, point):
        arm = at.pose(body)[:3, :3] @ point
        return at.jacobian(body, "world").T @ np.concatenate([force, torque + np.cross(arm, force)])

    # --- hooks

    def _advance(self, n):
        m, h = self._mechanism, self._timestep
        for done in range(n):
            at = pliant.Configuration(m, self._now)
            rates: Any = np.linalg.solve(m.damping_matrix + h * m.stiffness_matrix, self._force(at))
            if not np.isfinite(rates).all():
                return done
            self._now = kinematics.move(m, self._now, h * rates)
            self.stepped()
        return n

    def _read(self):
        return self._now.copy()

    def _write(self, values):
        self._now = values.copy()

    def _motion(self):
        return self._now.copy(), np.zeros(self._mechanism.nv)

    def _set_motion(self, q, rates):
        self._now = q.copy()

    def _body_poses(self):
        return pliant.Configuration(self._mechanism, self._now).poses.copy()

    def _set_loads(self, loads):
        self._wrench = dict(loads)

    def _set_torque(self, torque):
        pass  # `_force` reads it

    def _kinetic(self):
        return 0.0

    def _potential(self):
        m = self._mechanism
        return elastic_energy(m, self._now), gravity_energy(m, self.poses, self._gravity)

    def _cost(self):
        return Effort(solves=1, active=self._mechanism.nv)

    def _options(self):
        return {"mechanism": self._mechanism, "timestep": self._timestep, "gravity": self._gravity}


def main() -> None:
    arm = pliant.gallery.helix(12)
    tip = arm.end_effectors[0]
    simulation = ViscousSimulation(arm, 0.05)
    simulation.apply_wrench(tip, force=(0, 0, -5))
    path = simulation.record(200)
    rest = pliant.equilibrium(arm, {tip: (0, 0, -5)}, gravity=(0, 0, -9.81))
    off = np.linalg.norm(path.pose(tip)[-1, :3, 3] - rest.pose(tip)[:3, 3])
    sunk = arm.reference_poses[arm.body_index(tip), 2, 3] - rest.pose(tip)[2, 3]
    print(f"In honey the tip sinks by {1000 * sunk:.1f} mm in {simulation.time:.0f} s, ")
    print(f"to within {1000 * off:.0e} mm of the equilibrium.")

    # Every word of the protocol is there: go back, copy, and go on by another engine.
    saved, copy = simulation.state, simulation.copy()
    simulation.clear_wrenches()
    simulation.step(100)
    assert simulation.state != saved
    assert copy.state == saved
    simulation = copy
    other = pliant.simulate(arm, "constrained")
    pliant.carry_over(simulation, other)
    other.step(60)
    print(
        f"With inertia it stays there, to {1000 * np.linalg.norm(other.pose(tip) - rest.pose(tip)):.0e} mm."
    )
    print(simulation.summary())


if __name__ == "__main__":
    main()
