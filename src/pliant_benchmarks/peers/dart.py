"""DART: joint coordinates, linear-time forward dynamics, semi-implicit Euler with implicit springs and dampers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from ..systems import GRAVITY, STEP, Chain, Floats, Pushed
from . import ChainRun as _ChainRun

__all__ = ["ChainRun", "PushedTree"]

dart: Any = import_module("dartpy")  # without types


@contextmanager
def _silence() -> Iterator[None]:
    """Discard output of DART's C++: a line per joint and step of a diverged simulation."""
    with open(os.devnull, "w") as nothing:
        kept = [(fd, os.dup(fd)) for fd in (1, 2)]
        for fd, _ in kept:
            os.dup2(nothing.fileno(), fd)
        try:
            yield
        finally:
            for fd, copy in kept:
                os.dup2(copy, fd)
                os.close(copy)


class ChainRun(_ChainRun):
    """Chain as a skeleton; there is one setting."""

    SETTINGS = ("Euler",)
    LARGEST = 500  # adding links takes cubic time: 19 s for 500

    def __init__(self, system: Chain, h: float, setting: str):
        self.length = system.length
        skeleton = dart.dynamics.Skeleton("chain")
        body: Any = None
        for i in range(system.links):
            joint, body = _add_link(skeleton, system, i, body)
            place = dart.math.Isometry3()
            if i == 0:
                place.set_rotation(system.base)
            else:
                place.set_translation([0, 0, -system.length])
            joint.setTransformFromParentBodyNode(place)
            mass, com, (xx, yy, zz) = system.inertia(i)
            body.setInertia(dart.dynamics.Inertia(mass, np.array([0, 0, com]), np.diag([xx, yy, zz])))
            if system.kind == "cable":
                for dof in range(3):
                    joint.setSpringStiffness(dof, system.bending)
        self.skeleton, self.last = skeleton, body
        self.world = _build_world(skeleton, h, GRAVITY)
        skeleton.setVelocities(system.free_rates)

    def step(self, n: int = 1) -> None:
        with _silence():
            for _ in range(n):
                self.world.step()

    def energy(self) -> tuple[float, float]:
        return self.skeleton.computeKineticEnergy(), self.skeleton.computePotentialEnergy()

    def tip(self) -> np.ndarray:
        pose = self.last.getWorldTransform()
        return np.array(pose.translation()) - self.length * np.array(pose.rotation())[:, 2]

    def finite(self) -> bool:
        return bool(np.isfinite(self.skeleton.getPositions()).all())


def _add_link(skeleton: Any, system: Chain, i: int, parent: Any) -> tuple[Any, Any]:
    """Joint and body of link i."""
    if system.kind == "hinge":
        p = dart.dynamics.RevoluteJointProperties()
        p.mAxis = np.array(system.axis(i))
        return skeleton.createRevoluteJointAndBodyNodePair(parent, p)
    if system.kind == "universal":
        p = dart.dynamics.UniversalJointProperties()
        p.mAxis = [np.array([1.0, 0, 0]), np.array([0, 1.0, 0])]
        return skeleton.createUniversalJointAndBodyNodePair(parent, p)
    return skeleton.createBallJointAndBodyNodePair(parent)


def _build_world(skeleton: Any, h: float, gravity: float) -> Any:
    world = dart.simulation.World()
    world.setGravity([0, 0, -gravity])
    world.setTimeStep(h)
    world.addSkeleton(skeleton)
    return world


class PushedTree:
    """Tree of hinges under the push, as a skeleton whose body frames are on the axes of their joints."""

    def __init__(self, case: Pushed, h: float = STEP):
        m, k = case.m, case.m.links
        self.case = case
        skeleton, bodies = dart.dynamics.Skeleton(case.name), []
        for i in range(m.nv):
            above = int(k.parent[i])
            place = k.offset[i][:3, 3] + k.offset[i][:3, :3] @ k.anchor[i]
            properties = dart.dynamics.RevoluteJointProperties()
            properties.mAxis = np.array(k.screw[i, 3:])
            parent = bodies[above] if above >= 0 else None
            joint, body = skeleton.createRevoluteJointAndBodyNodePair(parent, properties)
            pose = dart.math.Isometry3()
            pose.set_rotation(k.offset[i][:3, :3])
            pose.set_translation(place - (k.anchor[above] if above >= 0 else 0.0))
            joint.setTransformFromParentBodyNode(pose)
            joint.setSpringStiffness(0, float(m.stiffness[i]))
            joint.setDampingCoefficient(0, float(m.damping[i]))
            joint.setRestPosition(0, float(m.rest[i]))
            body.setInertia(dart.dynamics.Inertia(float(m.mass[i]), m.com[i] - k.anchor[i], m.inertia[i]))
            body.setCollidable(False)
            bodies.append(body)
        self.skeleton, self.tip = skeleton, bodies[case.index]
        self.world = _build_world(skeleton, h, 0.0)

    def step(self, n: int) -> None:
        """Advance by n steps; DART clears forces after each, so the push is applied again."""
        force, point = self.case.force, self.case.point - self.case.m.links.anchor[self.case.index]
        step, push = self.world.step, self.tip.addExtForce
        for _ in range(n):
            push(force, point, False, True)
            step()

    @property
    def displacement(self) -> Floats:
        """Displacement of the pushed body's origin from the reference pose, world axes, m."""
        pose = self.tip.getWorldTransform()
        anchor = self.case.m.links.anchor[self.case.index]
        origin = np.array(pose.translation()) - np.array(pose.rotation()) @ anchor
        return origin - self.case.m.reference_poses[self.case.index, :3, 3]
