"""Drake: continuous with an implicit integrator, or discrete with the SAP solver."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..systems import GRAVITY, Chain
from . import ChainRun as _ChainRun

__all__ = ["ChainRun"]

math: Any = import_module("pydrake.math")
plants: Any = import_module("pydrake.multibody.plant")
trees: Any = import_module("pydrake.multibody.tree")
analysis: Any = import_module("pydrake.systems.analysis")


class ChainRun(_ChainRun):
    """Chain in a multibody plant; the setting names a continuous integrator, or is "SAP"."""

    SETTINGS = ("radau3", "SAP", "implicit_euler")
    LARGEST = 100

    def __init__(self, system: Chain, h: float, setting: str):
        self.h, self.length, self.time, self.failed = h, system.length, 0.0, False
        discrete = setting == "SAP"
        self.plant = plant = plants.MultibodyPlant(h if discrete else 0.0)
        if discrete:
            plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kSap)
        plant.mutable_gravity_field().set_gravity_vector([0, 0, -GRAVITY])
        base = math.RigidTransform(math.RotationMatrix(system.base), np.zeros(3))
        above = plant.AddFrame(trees.FixedOffsetFrame("base", plant.world_frame(), base))
        for i in range(system.links):
            mass, com, inertia = system.inertia(i)
            unit = trees.UnitInertia(*(inertia / mass))
            spatial = trees.SpatialInertia.MakeFromCentralInertia(mass, [0, 0, com], unit * mass)
            body = plant.AddRigidBody(f"link{i}", spatial)
            plant.AddJoint(_build_joint(system, i, above, body.body_frame()))
            if system.kind == "cable":
                turn = np.full(3, system.bending)
                zero = np.zeros(3)
                plant.AddForceElement(
                    trees.LinearBushingRollPitchYaw(above, body.body_frame(), turn, zero, zero, zero)
                )
            lower = math.RigidTransform([0, 0, -system.length])
            above = plant.AddFrame(trees.FixedOffsetFrame(f"end{i}", body.body_frame(), lower))
        self.end = above
        self.mass = system.mass * (system.links + system.ratio)
        self.bending = system.bending if system.kind == "cable" else 0.0
        plant.Finalize()
        self.simulator = analysis.Simulator(plant)
        if not discrete:
            # Drake's default error control shortens steps that are not accurate enough.
            analysis.ResetIntegratorFromFlags(self.simulator, setting, h)
        self.context = self.simulator.get_mutable_context()
        plant.SetVelocities(self.context, system.free_rates)
        self.simulator.Initialize()

    def step(self, n: int = 1) -> None:
        if self.failed:
            return
        self.time += n * self.h
        try:
            self.simulator.AdvanceTo(self.time)
        except RuntimeError:  # the integrator's step became too small, or a state not finite
            self.failed = True

    def energy(self) -> tuple[float, float]:
        # Drake reports no energy of bushings; the coordinates are the angles of their springs.
        height = self.plant.CalcCenterOfMassPositionInWorld(self.context)[2]
        angles = self.plant.GetPositions(self.context)
        potential = self.mass * GRAVITY * height + 0.5 * self.bending * float(angles @ angles)
        return self.plant.CalcKineticEnergy(self.context), potential

    def tip(self) -> np.ndarray:
        return self.end.CalcPoseInWorld(self.context).translation()

    def finite(self) -> bool:
        return not self.failed and bool(np.isfinite(self.plant.GetPositions(self.context)).all())


def _build_joint(system: Chain, i: int, above: Any, frame: Any) -> Any:
    name = f"joint{i}"
    if system.kind == "hinge":
        return trees.RevoluteJoint(name, above, frame, np.array(system.axis(i)))
    return (trees.UniversalJoint if system.kind == "universal" else trees.BallRpyJoint)(name, above, frame)
