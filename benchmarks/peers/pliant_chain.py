"""The chain in pliant's constrained engine; the settings are its stabilizations."""

from __future__ import annotations

import numpy as np

import pliant
from peers.system import GRAVITY, Chain

Engine = (
    pliant.ConstrainedSimulation
)  # an AttributeError leaves pliant out of the tables until the engine is there
SETTINGS = ("newmark", "inertial", "constraint", "full", "low-rank", "none")
LARGEST = 5000


def mechanism(system: Chain) -> pliant.Mechanism:
    """The chain at its start, every body turned by the base rotation."""
    b = pliant.Builder(f"chain {system.links} {system.kind}")
    points, _, _ = system.starts()
    x, y, _ = system.base.T
    parent = "world"
    for i, point in enumerate(points):
        mass, com, inertia = system.inertia(i)
        name, joint = f"link{i}", f"joint{i}"
        b.body(
            name,
            mass=mass,
            com=(0, 0, com),
            inertia=np.diag(inertia),
            position=point,
            orientation=system.base,
        )
        if system.kind == "ball":
            b.ball(joint, parent, name, anchor=point, orientation=system.base)
        elif system.kind == "hinge":
            b.hinge(joint, parent, name, anchor=point, axis=y if i % 2 else x)
        elif system.kind == "universal":
            b.universal(joint, parent, name, anchor=point, axes=(x, y))
        else:
            stiffness = np.array([system.axial] * 3 + [system.bending] * 3)
            b.bushing(joint, parent, name, anchor=point, stiffness=stiffness, orientation=system.base)
        parent = name
    b.end_effectors(parent)
    return b.build()


class _Run:
    def __init__(self, system: Chain, h: float, setting: str):
        self.length, self.failed = system.length, False
        self.sim = Engine(mechanism(system), timestep=h, gravity=(0, 0, -GRAVITY), stabilization=setting)
        rates = system.rates
        if system.kind == "cable":
            rates = np.hstack([np.zeros_like(rates), rates])
            self.sim.velocity = rates.ravel()
        else:
            self.sim.velocity = rates[np.array([system.free(i) for i in range(system.links)])]

    def step(self, n: int = 1) -> None:
        try:
            self.sim.step(n)
        except pliant.errors.PliantError:  # it says so when it leaves the finite numbers
            self.failed = True

    def energy(self) -> tuple[float, float]:
        energy = self.sim.energy
        return energy.kinetic, energy.total - energy.kinetic

    def violation(self) -> float:
        return float(self.sim.violation)

    def tip(self) -> np.ndarray:
        pose = self.sim.poses[-1]
        return pose[:3, 3] - self.length * pose[:3, 2]

    def finite(self) -> bool:
        return not self.failed and bool(np.isfinite(self.sim.poses).all())


def build(system: Chain, h: float, setting: str) -> _Run:
    """A run with the stabilization of that name."""
    return _Run(system, h, setting)
