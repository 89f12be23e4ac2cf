"""Exudyn on trees of hinges under the push: its kinematic tree, whose springs and dampers generalized-alpha implies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from exudyn_steps import advance
from pushed import STEP, Floats, Pushed

__all__ = ["Exudyn"]

RADIUS = 0.6  # spectral radius of generalized-alpha at infinity


class Exudyn:
    """A tree in minimal coordinates; link frames are on their joints, z along the axes: its hinges turn about those."""

    def __init__(self, case: Pushed, h: float = STEP):
        exu: Any = import_module("exudyn")
        items: Any = import_module("exudyn.itemInterface")
        m, k, n = case.m, case.m.links, case.m.nv
        self.case, self.h, self.failed = case, h, False
        turns = [_frame(k.screw[i, 3:]) for i in range(n)]  # body from link
        matrices, arms, inertias, centres = [], [], [], []
        for i in range(n):
            above = int(k.parent[i])
            outer, anchor = (turns[above], k.anchor[above]) if above >= 0 else (np.eye(3), np.zeros(3))
            place = k.offset[i][:3, 3] + k.offset[i][:3, :3] @ k.anchor[i]
            matrices.append(outer.T @ k.offset[i][:3, :3] @ turns[i])
            arms.append(outer.T @ (place - anchor))
            inertias.append(turns[i].T @ m.inertia[i] @ turns[i])
            centres.append(turns[i].T @ (m.com[i] - k.anchor[i]))
        exu.config.printToConsole = False
        self.container = exu.SystemContainer()
        self.mbs: Any = self.container.AddSystem()
        node = self.mbs.AddNode(
            items.NodeGenericODE2(
                numberOfODE2Coordinates=n,
                referenceCoordinates=[0.0] * n,
                initialCoordinates=m.reference.tolist(),
                initialCoordinates_t=[0.0] * n,
            )
        )
        self.tree = self.mbs.AddObject(
            items.ObjectKinematicTree(
                nodeNumber=node,
                jointTypes=[exu.JointType.RevoluteZ] * n,
                linkParents=k.parent.tolist(),
                jointTransformations=exu.Matrix3DList(matrices),
                jointOffsets=exu.Vector3DList(arms),
                linkInertiasCOM=exu.Matrix3DList(inertias),
                linkCOMs=exu.Vector3DList(centres),
                linkMasses=m.mass.tolist(),
                jointPositionOffsetVector=m.rest.tolist(),
                jointVelocityOffsetVector=[0.0] * n,
                jointPControlVector=m.stiffness.tolist(),
                jointDControlVector=m.damping.tolist(),
            )
        )
        anchor = k.anchor[case.index]
        self._tip = self.mbs.AddSensor(
            items.SensorKinematicTree(
                objectNumber=self.tree,
                linkNumber=case.index,
                localPosition=(-turns[case.index].T @ anchor).tolist(),
                outputVariableType=exu.OutputVariableType.Position,
                writeToFile=False,
            )
        )
        at = self.mbs.AddMarker(
            items.MarkerKinematicTreeRigid(
                objectNumber=self.tree,
                linkNumber=case.index,
                localPosition=(turns[case.index].T @ (case.point - anchor)).tolist(),
            )
        )
        self.mbs.AddLoad(items.LoadForceVector(markerNumber=at, loadVector=case.force.tolist()))
        self.mbs.Assemble()
        self._prepare(exu)

    def _prepare(self, exu: Any) -> None:
        s = self.settings = exu.SimulationSettings()
        time = s.timeIntegration
        time.generalizedAlpha.spectralRadius = RADIUS
        time.newton.useModifiedNewton = True  # a Jacobian is kept while it does: they are differences
        time.verboseMode = 0
        time.endTime, time.numberOfSteps = 1e6 * self.h, 10**6
        s.solutionSettings.writeSolutionToFile = False
        s.solutionSettings.sensorsWritePeriod = 1e9
        s.displayComputationTime = s.displayStatistics = s.displayGlobalTimers = False
        self.solver = exu.MainSolverImplicitSecondOrder()
        self.solver.InitializeSolver(self.mbs, s)

    def step(self, n: int) -> None:
        if not self.failed:
            self.failed = not advance(self.solver, self.mbs, self.settings, n, self.h)

    @property
    def displacement(self) -> Floats:
        """Of the tip, from its place in the reference pose."""
        return self.mbs.GetSensorValues(self._tip) - self.case.m.reference_poses[self.case.index, :3, 3]


def _frame(axis: Floats) -> Floats:
    """A rotation whose z is the axis."""
    z = axis / np.linalg.norm(axis)
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
