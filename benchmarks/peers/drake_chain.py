"""The chain in Drake: continuous with an implicit integrator, or discrete with the SAP solver."""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    FixedOffsetFrame,
    LinearBushingRollPitchYaw,
    RevoluteJoint,
    SpatialInertia,
    UnitInertia,
    UniversalJoint,
)
from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator

from peers.system import GRAVITY, Chain

SETTINGS = ("radau3", "SAP", "implicit_euler")
LARGEST = 100


class _Run:
    def __init__(self, system: Chain, h: float, setting: str):
        self.h, self.length, self.time, self.failed = h, system.length, 0.0, False
        discrete = setting == "SAP"
        self.plant = plant = MultibodyPlant(h if discrete else 0.0)
        if discrete:
            plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
        plant.mutable_gravity_field().set_gravity_vector([0, 0, -GRAVITY])
        above = plant.AddFrame(
            FixedOffsetFrame(
                "base", plant.world_frame(), RigidTransform(RotationMatrix(system.base), np.zeros(3))
            )
        )
        for i in range(system.links):
            mass, com, inertia = system.inertia(i)
            unit = UnitInertia(*(inertia / mass))
            spatial = SpatialInertia.MakeFromCentralInertia(mass, [0, 0, com], unit * mass)
            body = plant.AddRigidBody(f"link{i}", spatial)
            plant.AddJoint(_joint(system, i, above, body.body_frame()))
            if system.kind == "cable":
                turn = np.full(3, system.bending)
                zero = np.zeros(3)
                plant.AddForceElement(
                    LinearBushingRollPitchYaw(above, body.body_frame(), turn, zero, zero, zero)
                )
            lower = RigidTransform([0, 0, -system.length])
            above = plant.AddFrame(FixedOffsetFrame(f"end{i}", body.body_frame(), lower))
        self.end = above
        self.mass = system.mass * (system.links + system.ratio)
        self.bending = system.bending if system.kind == "cable" else 0.0
        plant.Finalize()
        self.simulator = Simulator(plant)
        if not discrete:
            # Error control as Drake comes: it cuts a step that it finds too inaccurate.
            ResetIntegratorFromFlags(self.simulator, setting, h)
        self.context = self.simulator.get_mutable_context()
        free = np.array([system.free(i) for i in range(system.links)])
        plant.SetVelocities(self.context, system.rates[free])
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
        # By hand, since bushings do not tell theirs; the coordinates are the angles they act on.
        height = self.plant.CalcCenterOfMassPositionInWorld(self.context)[2]
        angles = self.plant.GetPositions(self.context)
        potential = self.mass * GRAVITY * height + 0.5 * self.bending * float(angles @ angles)
        return self.plant.CalcKineticEnergy(self.context), potential

    def violation(self) -> float:
        return 0.0

    def tip(self) -> np.ndarray:
        return self.end.CalcPoseInWorld(self.context).translation()

    def finite(self) -> bool:
        return not self.failed and bool(np.isfinite(self.plant.GetPositions(self.context)).all())


def _joint(system: Chain, i: int, above: object, frame: object) -> object:
    name = f"joint{i}"
    if system.kind == "hinge":
        return RevoluteJoint(name, above, frame, np.array(system.axis(i)))
    return (UniversalJoint if system.kind == "universal" else BallRpyJoint)(name, above, frame)


def build(system: Chain, h: float, setting: str) -> _Run:
    """A run with the continuous integrator of that name, or "SAP"."""
    return _Run(system, h, setting)
