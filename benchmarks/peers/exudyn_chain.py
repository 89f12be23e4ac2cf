"""The chain in Exudyn: free bodies under generalized-alpha; joints are stiff springs or exact constraints."""

from __future__ import annotations

from collections.abc import Iterator

import exudyn as exu
import exudyn.itemInterface as items
import numpy as np
from exudyn_steps import advance

from peers.system import GRAVITY, Chain

SETTINGS = ("springs", "springs lazy", "constraints")
EXACT = "constraints"  # for comparing positions: stiff springs stretch
LARGEST = 1000
RADIUS = 0.6  # spectral radius of generalized-alpha at infinity
# How far all the weight stretches a spring, in link lengths. Springs a thousand times stiffer gain energy even
# at equal masses, the bushings of 1e12 N/m of a cable among them.
SAG = 1e-3


class _Run:
    def __init__(self, system: Chain, h: float, setting: str):
        self.system, self.h, self.failed = system, h, False
        self.axial = _stiffness(system) if setting != EXACT else 0.0
        exu.config.printToConsole = False
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self._assemble(setting)
        self._prepare(fresh=setting == "springs")

    def _assemble(self, setting: str) -> None:
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
            sides = ((*above, place), (body, np.eye(3), -arm))
            markers = [self._marker(number, turn @ _joint_frame(system, i), p) for number, turn, p in sides]
            for joint in _joints(system, i, markers, setting):
                mbs.AddObject(joint)
            above, place = (body, np.eye(3)), -arm - np.array([0, 0, system.length])
            self.bodies.append((body, mass, inertia, -arm, place))
        mbs.Assemble()

    def _marker(self, body: int, rotation: np.ndarray, place: np.ndarray) -> int:
        frame = np.eye(4)
        frame[:3, :3], frame[:3, 3] = rotation, place
        return self.mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=body, localHT=frame))

    def _prepare(self, fresh: bool) -> None:
        s = self.settings = exu.SimulationSettings()
        time = s.timeIntegration
        time.generalizedAlpha.spectralRadius = RADIUS
        time.newton.useModifiedNewton = True
        # Without a new Jacobian in every step it is faster, but some runs with heavy loads gain energy.
        time.newton.modifiedNewtonJacUpdatePerStep = fresh
        # What round-off leaves of the springs' forces: a smaller residual cannot be asked for.
        time.newton.absoluteTolerance = 2e-14 * _stiffness(self.system) * self.system.total_length
        time.verboseMode = 0
        time.endTime, time.numberOfSteps = 1e6 * self.h, 10**6
        s.solutionSettings.writeSolutionToFile = False
        s.solutionSettings.sensorsWritePeriod = 1e9
        s.linearSolverType = exu.LinearSolverType.EigenSparse
        s.displayComputationTime = s.displayStatistics = s.displayGlobalTimers = False
        self.solver = exu.MainSolverImplicitSecondOrder()
        self.solver.InitializeSolver(self.mbs, s)

    def step(self, n: int = 1) -> None:
        if not self.failed:
            self.failed = not advance(self.solver, self.mbs, self.settings, n, self.h)

    def _value(self, body: int, kind: object, place: object = (0, 0, 0)) -> np.ndarray:
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
    """Of a turn by less than half."""
    twice = np.array(
        [rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]]
    )
    size = np.linalg.norm(twice)
    angle = np.arctan2(size, np.trace(rotation) - 1)
    return twice / 2 if size < 1e-12 else twice * (angle / size)


def _joint_frame(system: Chain, i: int) -> np.ndarray:
    """In the link's frame. A hinge turns about its z: a spring's angles are singular a quarter turn about y."""
    if system.kind != "hinge":
        return np.eye(3)
    return np.roll(np.eye(3), 1 if i % 2 == 0 else 2, axis=0)


def _stiffness(system: Chain) -> float:
    """Of a spring in translation, N/m; never stiffer than a cable's bushings."""
    return min(system.axial, system.mass * (system.links + system.ratio) * GRAVITY / (SAG * system.length))


def _joints(system: Chain, i: int, markers: list, setting: str) -> Iterator[object]:
    """What holds link i: springs for what they can do, constraints for the rest."""
    free = (False, False, True) if system.kind == "hinge" else system.free(i)
    locked = [int(not turns) for turns in free]
    stiff, soft = [0.0] * 3, [0.0] * 3
    exact = [1, 1, 1, *locked]
    if setting != EXACT:
        stiff, exact[:3] = [_stiffness(system)] * 3, [0] * 3
        if system.kind == "hinge":
            soft, exact[3:] = [stiff[0] * system.length**2 * lock for lock in locked], [0] * 3
        # A universal's lock stays exact: the springs' angles do no right by it when both others are large.
    if system.kind == "cable":
        soft = [system.bending] * 3
    if any(stiff + soft):
        yield items.ObjectConnectorRigidBodySpringDamper(
            markerNumbers=markers, stiffness=np.diag(stiff + soft), damping=np.zeros((6, 6))
        )
    if any(exact):
        yield items.ObjectJointGeneric(markerNumbers=markers, constrainedAxes=exact)


def build(system: Chain, h: float, setting: str) -> _Run:
    """A run with joints of stiff "springs" or exact "constraints"; a cable bends by springs in all."""
    return _Run(system, h, setting)
