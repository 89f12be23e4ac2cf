"""Exudyn on trees of hinges under the push: its kinematic tree, whose springs and dampers generalized-alpha implies."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from exudyn_steps import advance
from pushed import STEP, Floats, Pushed

import pliant

__all__ = ["Exudyn", "Loaded", "Tree", "frame_along", "kinematic_tree"]

RADIUS = 0.6  # spectral radius of generalized-alpha at infinity


class Loaded(Protocol):
    """A mechanism of hinges with a force on one body, at a point in its frame; the force keeps its world direction."""

    m: pliant.Mechanism
    index: int
    point: Floats
    force: Floats


class Tree(NamedTuple):
    """Exudyn's system, which lives as long as its container, its kinematic tree, and a sensor of the body's origin."""

    container: Any
    mbs: Any
    tree: int
    origin: int


def kinematic_tree(case: Loaded) -> Tree:
    """Assemble a tree of hinges in minimal coordinates, its springs and dampers as PD control of the joints.

    Link frames are on their joints, z along the axes: Exudyn's hinges turn about those.
    """
    exu: Any = import_module("exudyn")
    items: Any = import_module("exudyn.itemInterface")
    m, k, n = case.m, case.m.links, case.m.nv
    turns = [frame_along(k.screw[i, 3:]) for i in range(n)]  # body from link
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
    container = exu.SystemContainer()
    mbs: Any = container.AddSystem()
    node = mbs.AddNode(
        items.NodeGenericODE2(
            numberOfODE2Coordinates=n,
            referenceCoordinates=[0.0] * n,
            initialCoordinates=m.reference.tolist(),
            initialCoordinates_t=[0.0] * n,
        )
    )
    tree = mbs.AddObject(
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
    origin = mbs.AddSensor(
        items.SensorKinematicTree(
            objectNumber=tree,
            linkNumber=case.index,
            localPosition=(-turns[case.index].T @ anchor).tolist(),
            outputVariableType=exu.OutputVariableType.Position,
            writeToFile=False,
        )
    )
    at = mbs.AddMarker(
        items.MarkerKinematicTreeRigid(
            objectNumber=tree,
            linkNumber=case.index,
            localPosition=(turns[case.index].T @ (case.point - anchor)).tolist(),
        )
    )
    mbs.AddLoad(items.LoadForceVector(markerNumber=at, loadVector=case.force.tolist()))
    mbs.Assemble()
    return Tree(container, mbs, tree, origin)


class Exudyn:
    """A tree in motion: generalized-alpha."""

    def __init__(self, case: Pushed, h: float = STEP):
        self.case, self.h, self.failed = case, h, False
        self.container, self.mbs, self.tree, self._tip = kinematic_tree(case)
        self._prepare(import_module("exudyn"))

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


def frame_along(axis: Floats) -> Floats:
    """A rotation whose z is the axis."""
    z = axis / np.linalg.norm(axis)
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
