"""Exudyn: the chain and trees of hinges under generalized-alpha, and its static solver on mechanisms of hinges.

The chain is of free bodies with stiff springs or exact constraints as joints. Trees are Exudyn's kinematic trees, whose
springs and dampers are implicit. For statics a mechanism has up to four models: kinematic tree (open chains, minimal
coordinates); free bodies with Euler parameters or Tait-Bryan angles, revolute joints and torsion springs; planar bodies
and joints. In space a planar loop has redundant constraints: joints that close loops then constrain two coordinates in
the plane alone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

import pliant

from ..systems import GRAVITY, STEP, Chain, Floats, Pushed, StaticCase, measure_gaps
from . import ChainRun as _ChainRun

__all__ = [
    "TOLERANCE",
    "ChainRun",
    "Found",
    "PushedBodies",
    "PushedTree",
    "Setting",
    "Static",
    "find_fastest",
]

exu: Any = import_module("exudyn")  # without types
items: Any = import_module("exudyn.itemInterface")
utilities: Any = import_module("exudyn.rigidBodyUtilities")

RADIUS = 0.6  # spectral radius of generalized-alpha at infinity
# Stretch of a chain's spring under all the weight, in link lengths. Springs a thousand times stiffer gain energy even
# at equal masses, the bushings of 1e12 N/m of a cable among them.
SAG = 1e-3
TOLERANCE = 1e-6  # of the radius: distance of all bodies' origins from pliant's within which a setting agrees
DENSE = 60  # bodies: a dense matrix of more takes seconds
STEPS, TOLERANCES = (1, 2, 3, 5, 10, 30), (1e-4, 1e-5, 1e-6, 1e-8)
Y = np.array([0.0, 1.0, 0.0])


def _new_system() -> tuple[Any, Any]:
    """Container, which keeps the system alive, and the system."""
    exu.config.printToConsole = False
    container = exu.SystemContainer()
    return container, container.AddSystem()


class _Integrator:
    """Generalized-alpha on an assembled system."""

    def __init__(self, mbs: Any, h: float):
        self.mbs, self.h = mbs, h
        s = self.settings = exu.SimulationSettings()
        time = s.timeIntegration
        time.generalizedAlpha.spectralRadius = RADIUS
        # Jacobians, which are finite differences, are kept while Newton converges.
        time.newton.useModifiedNewton = True
        time.verboseMode = 0
        time.endTime, time.numberOfSteps = 1e6 * h, 10**6
        s.solution.file.write = False
        s.solution.sensors.writePeriod = 1e9
        s.show.computationTime = s.show.statistics = s.show.globalTimers = False

    def start(self) -> None:
        """Initialize the solver with the settings."""
        self.solver = exu.MainSolverImplicitSecondOrder()
        self.solver.InitializeSolver(self.mbs, self.settings)

    def step(self, n: int) -> bool:
        """Advance by n steps; False if that fails."""
        # A hair early: the time summed up by the solver may fall short of n steps and ask for one more.
        it = self.solver.it
        it.endTime = it.currentTime + n * self.h * (1 - 1e-9)
        it.currentStepSize = self.h
        try:
            return bool(self.solver.SolveSteps(self.mbs, self.settings))
        except (RuntimeError, ValueError):
            return False


class ChainRun(_ChainRun):
    """Chain of free bodies with joints of stiff "springs" or exact "constraints"; a cable bends by springs in all."""

    SETTINGS = ("springs", "springs lazy", "constraints")
    EXACT = "constraints"  # stiff springs stretch
    LARGEST = 1000

    def __init__(self, system: Chain, h: float, setting: str):
        self.system, self.failed = system, False
        self.axial = _stiffness(system) if setting != self.EXACT else 0.0
        self.container, self.mbs = _new_system()
        self._assemble(exact=setting == self.EXACT)
        self._integrator = _Integrator(self.mbs, h)
        s = self._integrator.settings
        # Without a new Jacobian in every step it is faster, but some runs with heavy loads gain energy.
        s.timeIntegration.newton.modifiedNewtonJacUpdatePerStep = setting == "springs"
        # Round-off of the springs' forces: smaller residuals are out of reach.
        s.timeIntegration.newton.absoluteTolerance = 2e-14 * _stiffness(system) * system.total_length
        s.linearSolver.solverType = exu.LinearSolverType.EigenSparse
        self._integrator.start()

    def _assemble(self, exact: bool) -> None:
        system, mbs = self.system, self.mbs
        points, speeds, turning = system.starts()
        ground = mbs.AddObject(items.ObjectGround())
        above, place = (ground, system.base), np.zeros(3)
        self.bodies = []
        for i in range(system.links):
            mass, com, inertia = system.inertia(i)
            arm = np.array([0, 0, com])
            node = mbs.AddNode(
                items.NodeRigidBodyRotVecLG(
                    referenceCoordinates=[*(points[i] + system.base @ arm), *_rotation_vector(system.base)],
                    initialVelocities=[*(speeds[i] + system.base @ np.cross(turning[i], arm)), *turning[i]],
                )
            )
            body = mbs.AddObject(
                items.ObjectRigidBody(mass=mass, inertia=[*inertia, 0, 0, 0], nodeNumber=node)
            )
            mbs.AddLoad(
                items.LoadMassProportional(
                    markerNumber=mbs.AddMarker(items.MarkerBodyMass(bodyNumber=body)),
                    loadVector=[0, 0, -GRAVITY],
                )
            )
            sides: Any = ((*above, place), (body, np.eye(3), -arm))
            markers = [self._marker(number, turn @ _joint_frame(system, i), p) for number, turn, p in sides]
            for joint in _joints(system, i, markers, exact):
                mbs.AddObject(joint)
            above, place = (body, np.eye(3)), -arm - np.array([0, 0, system.length])
            self.bodies.append((body, mass, inertia, -arm, place))
        mbs.Assemble()

    def _marker(self, body: int, rotation: np.ndarray, place: np.ndarray) -> int:
        frame = np.eye(4)
        frame[:3, :3], frame[:3, 3] = rotation, place
        return self.mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=body, localHT=frame))

    def step(self, n: int = 1) -> None:
        if not self.failed:
            self.failed = not self._integrator.step(n)

    def _value(self, body: int, kind: Any, place: Any = (0, 0, 0)) -> np.ndarray:
        """Output variable of a body at a point in its frame, from the centre of mass."""
        return np.asarray(self.mbs.GetObjectOutputBody(body, kind, localPosition=list(place)))

    def energy(self) -> tuple[float, float]:
        kinetic = potential = 0.0
        place, rotation = np.zeros(3), self.system.base
        soft = self.system.bending if self.system.kind == "cable" else 0.0
        out = exu.OutputVariableType
        for body, mass, inertia, upper, lower in self.bodies:
            v, w = self._value(body, out.Velocity), self._value(body, out.AngularVelocityLocal)
            kinetic += 0.5 * (mass * v @ v + w @ (inertia * w))
            potential += mass * GRAVITY * self._value(body, out.Position)[2]
            if self.axial or soft:
                gap = self._value(body, out.Position, upper) - place
                turned = self._value(body, out.RotationMatrix).reshape(3, 3)
                turn = _rotation_vector(rotation.T @ turned)
                potential += 0.5 * (self.axial * gap @ gap + soft * turn @ turn)
                place, rotation = self._value(body, out.Position, lower), turned
        return kinetic, potential

    def violation(self) -> float:
        worst, place = 0.0, np.zeros(3)
        for body, _, _, upper, lower in self.bodies:
            kind = exu.OutputVariableType.Position
            worst = max(worst, float(np.linalg.norm(self._value(body, kind, upper) - place)))
            place = self._value(body, kind, lower)
        return worst

    def tip(self) -> np.ndarray:
        body, _, _, _, lower = self.bodies[-1]
        return self._value(body, exu.OutputVariableType.Position, lower)

    def finite(self) -> bool:
        return not self.failed and bool(np.isfinite(self.tip()).all())


def _rotation_vector(rotation: np.ndarray) -> np.ndarray:
    """Rotation vector of a rotation by less than pi."""
    twice = np.array(
        [rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]]
    )
    size = np.linalg.norm(twice)
    angle = np.arctan2(size, np.trace(rotation) - 1)
    return twice / 2 if size < 1e-12 else twice * (angle / size)


def _joint_frame(system: Chain, i: int) -> np.ndarray:
    """Orientation of joint i in the link's frame. Hinges are about z: spring angles are singular at pi/2 about y."""
    if system.kind != "hinge":
        return np.eye(3)
    return np.roll(np.eye(3), 1 if i % 2 == 0 else 2, axis=0)


def _stiffness(system: Chain) -> float:
    """Translational stiffness of the springs, N/m; at most that of a cable's bushings."""
    return min(system.axial, system.mass * (system.links + system.ratio) * GRAVITY / (SAG * system.length))


def _joints(system: Chain, i: int, markers: list[int], constrained: bool) -> Iterator[Any]:
    """Spring and constraint of joint i; all directions that are not free are constrained, or springs hold most."""
    free = (False, False, True) if system.kind == "hinge" else system.free(i)
    locked = [int(not turns) for turns in free]
    stiff, soft = [0.0] * 3, [0.0] * 3
    exact = [1, 1, 1, *locked]
    if not constrained:
        stiff, exact[:3] = [_stiffness(system)] * 3, [0] * 3
        if system.kind == "hinge":
            soft, exact[3:] = [stiff[0] * system.length**2 * lock for lock in locked], [0] * 3
        # A universal's lock stays exact: the spring's angles are wrong when both others are large.
    if system.kind == "cable":
        soft = [system.bending] * 3
    if any(stiff + soft):
        yield items.ObjectConnectorRigidBodySpringDamper(
            markerNumbers=markers, stiffness=np.diag(stiff + soft), damping=np.zeros((6, 6))
        )
    if any(exact):
        yield items.ObjectJointGeneric(markerNumbers=markers, constrainedAxes=exact)


# --- trees


class _Loaded(Protocol):
    """Mechanism of hinges with a world force on one body, at a point in its frame."""

    @property
    def m(self) -> pliant.Mechanism: ...
    @property
    def index(self) -> int: ...
    @property
    def point(self) -> Floats: ...
    @property
    def force(self) -> Floats: ...


class _Tree(NamedTuple):
    """Kinematic tree: container, which keeps the system alive, system, object, sensor of the loaded body's origin."""

    container: Any
    mbs: Any
    tree: int
    origin: int


def _build_tree(case: _Loaded) -> _Tree:
    """Assemble a tree of hinges in minimal coordinates, with springs and dampers as PD control of the joints.

    Link frames are on their joints, z along the axes: Exudyn's hinges turn about z.
    """
    m, k, n = case.m, case.m.links, case.m.nv
    turns = [_frame_along(k.screw[i, 3:]) for i in range(n)]  # of link frames in body frames
    matrices, arms, inertias, centres = [], [], [], []
    for i in range(n):
        above = int(k.parent[i])
        outer, anchor = (turns[above], k.anchor[above]) if above >= 0 else (np.eye(3), np.zeros(3))
        place = k.offset[i][:3, 3] + k.offset[i][:3, :3] @ k.anchor[i]
        matrices.append(outer.T @ k.offset[i][:3, :3] @ turns[i])
        arms.append(outer.T @ (place - anchor))
        inertias.append(turns[i].T @ m.inertia[i] @ turns[i])
        centres.append(turns[i].T @ (m.com[i] - k.anchor[i]))
    container, mbs = _new_system()
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
    return _Tree(container, mbs, tree, origin)


class PushedTree:
    """Tree of hinges under the push, by generalized-alpha."""

    def __init__(self, case: Pushed, h: float = STEP):
        self.case, self.failed = case, False
        self.container, self.mbs, self.tree, self._tip = _build_tree(case)
        self._integrator = _Integrator(self.mbs, h)
        self._integrator.start()

    def step(self, n: int) -> None:
        """Advance by n steps."""
        if not self.failed:
            self.failed = not self._integrator.step(n)

    @property
    def displacement(self) -> Floats:
        """Displacement of the pushed body's origin from the reference pose, world axes, m."""
        return self.mbs.GetSensorValues(self._tip) - self.case.m.reference_poses[self.case.index, :3, 3]


def _frame_along(axis: Floats) -> Floats:
    """Rotation whose z is the axis."""
    z = axis / np.linalg.norm(axis)
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    y: Any = np.cross(z, x)
    return np.stack([x, y, z], axis=1)


# --- statics


class Setting(NamedTuple):
    """Setting of the static solver: model, linear solver, load steps, modified or full Newton, tolerance."""

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
    """Static case in Exudyn, assembled once: `solve` alone is timed."""

    def __init__(self, case: StaticCase | Pushed, bodies: str):
        self.case, self.bodies = case, bodies
        self._bodies: list[int] = []
        self._nodes: list[int] = []  # of planar bodies
        if bodies == "tree":
            self.container, self.mbs, self._tree, self._origin = _build_tree(case)
            return
        self.container, self.mbs = _new_system()
        (self._assemble_planar if bodies == "planar" else self._assemble)()
        self.mbs.Assemble()

    def _assemble(self) -> None:
        """Free bodies in space, revolute joints and torsion springs."""
        case, m, mbs = self.case, self.case.m, self.mbs
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
                frame[:3, :3] = frame[:3, :3] @ _frame_along(m.primitive_axis[i])
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
        arm = (case.point - m.com[case.index]).tolist()
        at = mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=self._bodies[case.index], localPosition=arm))
        self.load = mbs.AddLoad(items.LoadForceVector(markerNumber=at, loadVector=case.force.tolist()))

    def _assemble_planar(self) -> None:
        """Planar bodies; Exudyn's plane of x and y is the world's of x and z, its z is minus the world's y."""
        case, m, mbs = self.case, self.case.m, self.mbs
        for i, pose in enumerate(m.reference_poses):
            place = pose[:3, :3] @ m.com[i] + pose[:3, 3]
            node = mbs.AddNode(items.NodeRigidBody2D(referenceCoordinates=[place[0], place[2], 0.0]))
            self._nodes.append(node)
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
        arm = pose[:3, :3] @ (case.point - m.com[case.index])
        at = mbs.AddMarker(
            items.MarkerBodyPosition(bodyNumber=self._bodies[case.index], localPosition=[arm[0], arm[2], 0])
        )
        force = [case.force[0], case.force[2], 0]
        self.load = mbs.AddLoad(items.LoadForceVector(markerNumber=at, loadVector=force))

    def _spring(self, joint: int, markers: list[int]) -> None:
        """Add the torsion spring and damper of a hinge, if it has one."""
        dof = self.case.m.joint_dofs(joint)
        stiffness, damping = (
            float(np.atleast_1d(a[dof])[0]) for a in (self.case.m.stiffness, self.case.m.damping)
        )
        if stiffness or damping:
            self.mbs.AddObject(
                items.ObjectConnectorTorsionalSpringDamper(
                    markerNumbers=markers, stiffness=stiffness, damping=damping
                )
            )

    def solve(self, setting: Setting) -> bool:
        """Solve for the equilibrium from the reference pose; False if that fails."""
        s = exu.SimulationSettings()
        s.linearSolver.solverType = getattr(exu.LinearSolverType, setting.solver)
        static = s.staticSolver
        static.numberOfLoadSteps = setting.steps
        static.adaptiveStep = False
        static.newton.useModifiedNewton = setting.modified
        static.newton.relativeTolerance = setting.tolerance
        static.newton.maxIterations = 50
        static.verboseMode = 0
        static.stepInformation = 0
        s.solution.file.write = False
        s.solution.sensors.writePeriod = 1e9
        self.solver = exu.MainSolverStatic()
        try:
            return bool(self.solver.SolveSystem(self.mbs, s))
        except (RuntimeError, ValueError, SystemError):
            return False

    @property
    def origins(self) -> Floats:
        """World positions of all bodies' origins; of a kinematic tree by its angles, of the loaded body by a sensor."""
        m, kind, out = self.case.m, exu.OutputVariableType.Position, []
        if self.bodies == "tree":
            angles = self.mbs.GetNodeOutput(0, exu.OutputVariableType.Coordinates)
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
        """Largest distance of a body's origin from that of pliant's poses, in radii."""
        return float(np.abs(self.origins - poses[:, :3, 3]).max() / self.case.m.radius)


class PushedBodies:
    """Planar mechanism of hinges in motion: planar bodies, exact joints, generalized-alpha, sparse matrices.

    The setting is "kept" or "renewed": Newton's Jacobian, a finite difference, lasts while Newton converges, or is
    computed anew in every step.
    """

    SETTINGS = ("kept", "renewed")

    def __init__(self, case: Pushed, h: float, setting: str):
        self.case, self.failed = case, False
        self._model = Static(case, "planar")
        self._integrator = _Integrator(self._model.mbs, h)
        s = self._integrator.settings
        s.timeIntegration.newton.modifiedNewtonJacUpdatePerStep = setting == "renewed"
        s.linearSolver.solverType = exu.LinearSolverType.EigenSparse
        self.push(0.0)
        self._integrator.start()

    def push(self, part: float = 1.0) -> None:
        """Apply a part of the force from now on."""
        x, _, z = part * self.case.force
        self._model.mbs.SetLoadParameter(self._model.load, "loadVector", [x, z, 0.0])

    def step(self, n: int) -> None:
        """Advance by n steps."""
        if not self.failed:
            self.failed = not self._integrator.step(n)

    def _values(self, kind: Any) -> Floats:
        """Coordinates of all bodies, or their rates: displacement of the centre of mass along x and z, angle."""
        return np.array([self._model.mbs.GetNodeOutput(node, kind) for node in self._model._nodes])

    @property
    def poses(self) -> Floats:
        """World poses of all bodies; Exudyn's angles are about minus y."""
        m, (x, z, angle) = self.case.m, self._values(exu.OutputVariableType.Coordinates).T
        turn = np.tile(np.eye(3), (m.body_count, 1, 1))
        turn[:, 0, 0] = turn[:, 2, 2] = np.cos(angle)
        turn[:, 2, 0], turn[:, 0, 2] = np.sin(angle), -np.sin(angle)
        out, start = m.reference_poses.copy(), m.reference_poses
        out[:, :3, :3] = turn @ start[:, :3, :3]
        centres = start[:, :3, 3] + np.einsum("nij,nj->ni", start[:, :3, :3], m.com)
        centres += np.column_stack([x, 0 * x, z])
        out[:, :3, 3] = centres - np.einsum("nij,nj->ni", out[:, :3, :3], m.com)
        return out

    @property
    def origins(self) -> Floats:
        """World positions of all bodies' origins."""
        return self.poses[:, :3, 3]

    @property
    def pushed(self) -> Floats:
        """World position of the point at which the force acts."""
        return self.poses[self.case.index][:3] @ np.append(self.case.point, 1.0)

    @property
    def energy(self) -> float:
        """Kinetic and elastic energy, J."""
        m, out = self.case.m, exu.OutputVariableType
        angle, rate = self._values(out.Coordinates)[:, 2], self._values(out.Coordinates_t)
        up = m.reference_poses[:, 1, :3]  # the world's y in the bodies' frames
        about = np.einsum("ni,nij,nj->n", up, m.inertia, up)
        kinetic = 0.5 * float(m.mass @ (rate[:, :2] ** 2).sum(axis=1) + about @ rate[:, 2] ** 2)
        world = np.append(angle, 0.0)  # index -1 is the world
        bent = world[m.joint_children] - world[m.joint_parents]
        return kinetic + 0.5 * float(m.stiffness @ bent**2)

    @property
    def gap(self) -> float:
        """Largest distance between the two sides of a joint, m."""
        return float(measure_gaps(self.case.m, self.poses).max())


class Found(NamedTuple):
    """Fastest setting that agrees, or None, and its error in radii; numbers of settings tried and agreeing."""

    static: Static | None
    setting: Setting | None
    error: float
    tried: int
    agreed: int


def find_fastest(case: StaticCase, poses: Floats, patience: float = 15.0) -> Found:
    """Try models, linear solvers, numbers of load steps, full and modified Newton and tolerances; take the fastest.

    Args:
        case: mechanism and load.
        poses: pliant's equilibrium, with which a setting has to agree.
        patience: processor time for each model, s; few load steps are tried first.
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
    """Processor time of the faster of two solutions."""
    taken = []
    for _ in range(2):
        before = time.process_time()
        static.solve(setting)
        taken.append(time.process_time() - before)
    return min(taken)
