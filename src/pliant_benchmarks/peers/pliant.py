"""pliant's constrained engine on the chain; settings are its stabilizations."""

from __future__ import annotations

import numpy as np

import pliant

from ..systems import GRAVITY, Chain
from . import ChainRun as _ChainRun

__all__ = ["ChainRun", "build_mechanism"]


def build_mechanism(system: Chain) -> pliant.Mechanism:
    """Chain at its start: all links have the base orientation."""
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


class ChainRun(_ChainRun):
    """Chain in `pliant.ConstrainedSimulation`, the setting as its stabilization."""

    SETTINGS = ("newmark", "inertial", "constraint", "full", "low-rank", "none")
    LARGEST = 5000

    def __init__(self, system: Chain, h: float, setting: str):
        self.length, self.failed = system.length, False
        self.simulation = pliant.ConstrainedSimulation(
            build_mechanism(system), timestep=h, gravity=(0, 0, -GRAVITY), stabilization=setting
        )
        if system.kind == "cable":  # bushings: translations first
            self.simulation.velocity = np.hstack([np.zeros_like(system.rates), system.rates]).ravel()
        else:
            self.simulation.velocity = system.free_rates

    def step(self, n: int = 1) -> None:
        try:
            self.simulation.step(n)
        except pliant.errors.PliantError:  # not finite
            self.failed = True

    def energy(self) -> tuple[float, float]:
        energy = self.simulation.energy
        return energy.kinetic, energy.total - energy.kinetic

    def violation(self) -> float:
        return float(self.simulation.violation)

    def tip(self) -> np.ndarray:
        pose = self.simulation.poses[-1]
        return pose[:3, 3] - self.length * pose[:3, 2]

    def finite(self) -> bool:
        return not self.failed and bool(np.isfinite(self.simulation.poses).all())
