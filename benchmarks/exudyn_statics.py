"""Exudyn's `SolveStatic` on mechanisms of hinges under one force, from the reference pose.

Four ways to say the same mechanism, each tried where it applies: its kinematic tree (open chains, minimal coordinates);
free bodies with Euler parameters or Tait-Bryan angles, revolute joints and torsion springs; and, for planar
mechanisms, its planar bodies and joints. In space a planar loop has redundant constraints: joints that close loops
then hold two coordinates in the plane alone.
"""

from __future__ import annotations

import itertools
import time
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from exudyn_tree import frame_along, kinematic_tree
from pushed import Floats

import pliant

__all__ = ["Case", "Found", "Setting", "Static", "best"]

Y = np.array([0.0, 1.0, 0.0])
TOLERANCE = 1e-6  # of the radius: how far all origins of bodies may be from pliant's


class Case(NamedTuple):
    """A mechanism of hinges whose springs are at rest in the reference pose, with a force on a body's origin."""

    name: str
    m: pliant.Mechanism
    body: str
    force: Floats

    @property
    def index(self) -> int:
        return self.m.body_index(self.body)

    @property
    def point(self) -> Floats:
        return np.zeros(3)

    @property
    def planar(self) -> bool:
        """Whether all hinges turn about y and the force is square to it."""
        axes = _axes(self.m)
        return bool(abs(self.force[1]) == 0 and (np.abs(axes[:, [0, 2]]).max() < 1e-12))


class Setting(NamedTuple):
    """How Exudyn is used: the bodies, the linear solver, load steps, kind of Newton's method, its tolerance."""

    bodies: str
    solver: str
    steps: int
    modified: bool
    tolerance: float

    def __str__(self) -> str:
        newton = "modified Newton" if self.modified else "Newton"
        steps = "1 load step" if self.steps == 1 else f"{self.steps} load steps"
        return f"{BODIES[self.bodies]}, {self.solver}, {steps}, {newton}, tolerance {self.tolerance:g}"


BODIES = {
    "tree": "kinematic tree",
    "planar": "planar bodies",
    "EP": "bodies with Euler parameters",
    "Rxyz": "bodies with Tait-Bryan angles",
}


class Static:
    """A case in Exudyn, assembled once: only `solve` is timed."""

    def __init__(self, case: Case, bodies: str):
        self.case, self.bodies = case, bodies
        self.exu: Any = import_module("exudyn")
        self.items: Any = import_module("exudyn.itemInterface")
        if bodies == "tree":
            self.container, self.mbs, self._tree, self._origin = kinematic_tree(case)
            return
        self.exu.config.printToConsole = False
        self.container = self.exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        (self._assemble_planar if bodies == "planar" else self._assemble)()
        self.mbs.Assemble()

    def _assemble(self) -> None:
        case, m, mbs, items = self.case, self.case.m, self.mbs, self.items
        utilities: Any = import_module("exudyn.rigidBodyUtilities")
        self._bodies = []
        for i, pose in enumerate(m.reference_poses):
            place = (pose[:3, :3] @ m.com[i] + pose[:3, 3]).tolist()
            turn = pose[:3, :3]
            if self.bodies == "EP":
                turned = utilities.RotationMatrix2EulerParameters(turn)
                node = mbs.AddNode(items.NodeRigidBodyEP(referenceCoordinates=[*place, *turned]))
            else:
                turned = utilities.RotationMatrix2RotXYZ(turn)
                node = mbs.AddNode(items.NodeRigidBodyRxyz(referenceCoordinates=[*place, *turned]))
            j = m.inertia[i]
            inertia = [j[0, 0], j[1, 1], j[2, 2], j[1, 2], j[0, 2], j[0, 1]]
            self._bodies.append(
                mbs.AddObject(items.ObjectRigidBody(mass=m.mass[i], inertia=inertia, nodeNumber=node))
            )
        ground = mbs.AddObject(items.ObjectGround())
        cut = set(m.topology.chords)
        for i in range(m.joint_count):
            markers = []
            for body, frames in (
                (m.joint_parents[i], m.parent_frames),
                (m.joint_children[i], m.child_frames),
            ):
                frame = frames[i].copy()
                frame[:3, 3] += frame[:3, :3] @ m.primitive_anchor[i]
                frame[:3, :3] = frame[:3, :3] @ frame_along(m.primitive_axis[i])
                if body >= 0:
                    frame[:3, 3] -= m.com[body]
                number = ground if body < 0 else self._bodies[body]
                markers.append(mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=number, localHT=frame)))
            if i in cut and case.planar:
                mbs.AddObject(
                    items.ObjectJointGeneric(markerNumbers=markers, constrainedAxes=[1, 1, 0, 0, 0, 0])
                )
            else:
                mbs.AddObject(items.ObjectJointRevoluteZ(markerNumbers=markers))
            self._spring(i, markers)
        arm = (-m.com[case.index]).tolist()
        at = mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=self._bodies[case.index], localPosition=arm))
        mbs.AddLoad(items.LoadForceVector(markerNumber=at, loadVector=case.force.tolist()))

    def _assemble_planar(self) -> None:
        """In the plane of x and z; Exudyn's plane is that of x and y, with z towards the viewer: y is minus its z."""
        case, m, mbs, items = self.case, self.case.m, self.mbs, self.items
        self._bodies = []
        for i, pose in enumerate(m.reference_poses):
            place = pose[:3, :3] @ m.com[i] + pose[:3, 3]
            node = mbs.AddNode(items.NodeRigidBody2D(referenceCoordinates=[place[0], place[2], 0.0]))
            inertia = float(Y @ pose[:3, :3] @ m.inertia[i] @ pose[:3, :3].T @ Y)
            self._bodies.append(
                mbs.AddObject(items.ObjectRigidBody2D(mass=m.mass[i], inertia=inertia, nodeNumber=node))
            )
        ground = mbs.AddObject(items.ObjectGround())
        for i in range(m.joint_count):
            child = m.joint_children[i]
            anchor = m.reference_poses[child] @ m.child_frames[i] @ np.append(m.primitive_anchor[i], 1.0)
            markers = []
            for body in (m.joint_parents[i], child):
                arm = anchor[:3].copy()
                if body >= 0:
                    pose = m.reference_poses[body]
                    arm -= pose[:3, :3] @ m.com[body] + pose[:3, 3]
                number = ground if body < 0 else self._bodies[body]
                markers.append(
                    mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=number, localPosition=[arm[0], arm[2], 0]))
                )
            mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=markers))
            self._spring(i, markers)
        pose = m.reference_poses[case.index]
        arm = -pose[:3, :3] @ m.com[case.index]
        at = mbs.AddMarker(
            items.MarkerBodyPosition(bodyNumber=self._bodies[case.index], localPosition=[arm[0], arm[2], 0])
        )
        mbs.AddLoad(items.LoadForceVector(markerNumber=at, loadVector=[case.force[0], case.force[2], 0]))

    def _spring(self, joint: int, markers: list[int]) -> None:
        dof = self.case.m.joint_dofs(joint)
        stiffness = float(np.atleast_1d(self.case.m.stiffness[dof])[0])
        if stiffness:
            self.mbs.AddObject(
                self.items.ObjectConnectorTorsionalSpringDamper(markerNumbers=markers, stiffness=stiffness)
            )

    def solve(self, setting: Setting) -> bool:
        """Find the equilibrium from the reference pose; False if that fails."""
        s = self.exu.SimulationSettings()
        s.linearSolver.solverType = getattr(self.exu.LinearSolverType, setting.solver)
        static = s.staticSolver
        static.numberOfLoadSteps = setting.steps
        static.adaptiveStep = False
        static.newton.useModifiedNewton = setting.modified
        static.newton.relativeTolerance = setting.tolerance
        static.newton.maxIterations = 50
        static.verboseMode = 0
        static.stepInformation = 0
        s.solutionSettings.writeSolutionToFile = False
        s.solutionSettings.sensorsWritePeriod = 1e9
        self.solver = self.exu.MainSolverStatic()
        try:
            return bool(self.solver.SolveSystem(self.mbs, s))
        except (RuntimeError, ValueError, SystemError):
            return False

    @property
    def origins(self) -> Floats:
        """World places of all bodies' origins; of a kinematic tree by its angles, of the loaded body by a sensor."""
        m, kind, out = self.case.m, self.exu.OutputVariableType.Position, []
        if self.bodies == "tree":
            angles = self.mbs.GetNodeOutput(0, self.exu.OutputVariableType.Coordinates)
            places = pliant.Configuration(m, np.asarray(angles)).poses[:, :3, 3].copy()
            places[self.case.index] = self.mbs.GetSensorValues(self._origin)
            return places
        for i, body in enumerate(self._bodies):
            arm = -m.com[i]
            if self.bodies == "planar":
                arm = m.reference_poses[i, :3, :3] @ arm
                arm = np.array([arm[0], arm[2], 0.0])
            place = np.asarray(self.mbs.GetObjectOutputBody(body, kind, localPosition=arm.tolist()))
            if self.bodies == "planar":
                place = np.array([place[0], m.reference_poses[i, 1, 3], place[1]])
            out.append(place)
        return np.array(out)

    def error(self, poses: Floats) -> float:
        """Largest distance of an origin from where pliant has it, in radii."""
        return float(np.abs(self.origins - poses[:, :3, 3]).max() / self.case.m.radius)


class Found(NamedTuple):
    """The fastest setting that agrees, and how far it is off; or None, and what was tried."""

    static: Static | None
    setting: Setting | None
    error: float
    tried: int
    agreed: int


DENSE = 60  # bodies: a dense matrix of more takes seconds
STEPS, TOLERANCES = (1, 2, 3, 5, 10, 30), (1e-4, 1e-5, 1e-6, 1e-8)


def best(case: Case, poses: Floats, patience: float = 15.0) -> Found:
    """Try linear solvers, numbers of load steps, kinds of Newton's method and its tolerances; the fastest counts.

    Args:
        case: what to solve.
        poses: pliant's equilibrium, where a setting that counts has to end.
        patience: seconds for each way to say the mechanism; few load steps are tried first.
    """
    ways = [*([] if case.m.topology.loops else ["tree"]), *(["planar"] if case.planar else []), "EP", "Rxyz"]
    fastest, tried, agreed = (float("inf"), None, None, float("nan")), 0, 0
    for way in ways:
        static, start = Static(case, way), time.process_time()
        if way == "tree":
            solvers = ("EigenDense", "EXUdense")  # its matrix is full
        else:
            solvers = ("EigenSparse", "EXUdense") if case.m.body_count <= DENSE else ("EigenSparse",)
        for steps, modified, solver, tolerance in itertools.product(
            STEPS, (True, False), solvers, TOLERANCES
        ):
            if time.process_time() - start > patience:
                break
            setting = Setting(way, solver, steps, modified, tolerance)
            tried += 1
            error = static.error(poses) if static.solve(setting) else float("inf")
            if error < TOLERANCE:
                agreed += 1
                one = _seconds(static, setting), static, setting, error
                fastest = min(fastest, one, key=lambda found: found[0])
    return Found(*fastest[1:], tried, agreed)


def _seconds(static: Static, setting: Setting) -> float:
    """The shorter of two solutions."""
    taken = []
    for _ in range(2):
        before = time.process_time()
        static.solve(setting)
        taken.append(time.process_time() - before)
    return min(taken)


def _axes(m: pliant.Mechanism) -> Floats:
    """World axes of all hinges in the reference pose."""
    turns = (m.reference_poses[m.joint_children] @ m.child_frames)[:, :3, :3]
    return np.einsum("nij,nj->ni", turns, m.primitive_axis)
