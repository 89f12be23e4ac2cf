"""The chain in DART: joint coordinates, linear-time forward dynamics, semi-implicit Euler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dartpy as dart
import numpy as np

from peers.system import GRAVITY, Chain

SETTINGS = ("Euler",)
LARGEST = 500  # adding links takes cubic time: 19 s for 500


@contextmanager
def _quiet() -> Iterator[None]:
    """No words from below Python: DART says of every joint at every step that it is not finite."""
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


class _Run:
    def __init__(self, system: Chain, h: float):
        self.length = system.length
        skeleton = dart.dynamics.Skeleton("chain")
        body = None
        for i in range(system.links):
            joint, body = self._pair(skeleton, system, i, body)
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
        self.world = dart.simulation.World()
        self.world.setGravity([0, 0, -GRAVITY])
        self.world.setTimeStep(h)
        self.world.addSkeleton(skeleton)
        free = np.array([system.free(i) for i in range(system.links)])
        skeleton.setVelocities(system.rates[free])

    @staticmethod
    def _pair(skeleton: dart.dynamics.Skeleton, system: Chain, i: int, parent: object) -> tuple:
        if system.kind == "hinge":
            p = dart.dynamics.RevoluteJointProperties()
            p.mAxis = np.array(system.axis(i))
            return skeleton.createRevoluteJointAndBodyNodePair(parent, p)
        if system.kind == "universal":
            p = dart.dynamics.UniversalJointProperties()
            p.mAxis = [np.array([1.0, 0, 0]), np.array([0, 1.0, 0])]
            return skeleton.createUniversalJointAndBodyNodePair(parent, p)
        return skeleton.createBallJointAndBodyNodePair(parent)

    def step(self, n: int = 1) -> None:
        with _quiet():
            for _ in range(n):
                self.world.step()

    def energy(self) -> tuple[float, float]:
        return self.skeleton.computeKineticEnergy(), self.skeleton.computePotentialEnergy()

    def violation(self) -> float:
        return 0.0

    def tip(self) -> np.ndarray:
        pose = self.last.getWorldTransform()
        return np.array(pose.translation()) - self.length * np.array(pose.rotation())[:, 2]

    def finite(self) -> bool:
        return bool(np.isfinite(self.skeleton.getPositions()).all())


def build(system: Chain, h: float, setting: str) -> _Run:
    """A run; there is one setting."""
    return _Run(system, h)
