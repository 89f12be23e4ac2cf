"""DART on trees of hinges under the push: linear-time dynamics, springs and dampers implicit, as it does them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from pushed import STEP, Floats, Pushed

__all__ = ["Dart"]


class Dart:
    """A skeleton in a world; body frames are on the axes of their joints."""

    def __init__(self, case: Pushed, h: float = STEP):
        dart: Any = import_module("dartpy")
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
        self.world = dart.simulation.World()
        self.world.setGravity([0, 0, 0])
        self.world.setTimeStep(h)
        self.world.addSkeleton(skeleton)

    def step(self, n: int) -> None:
        """n steps; a force is forgotten after each and has to be given again."""
        force, point = self.case.force, self.case.point - self.case.m.links.anchor[self.case.index]
        step, push = self.world.step, self.tip.addExtForce
        for _ in range(n):
            push(force, point, False, True)
            step()

    @property
    def displacement(self) -> Floats:
        """Of the tip, from its place in the reference pose."""
        pose = self.tip.getWorldTransform()
        anchor = self.case.m.links.anchor[self.case.index]
        origin = np.array(pose.translation()) - np.array(pose.rotation()) @ anchor
        return origin - self.case.m.reference_poses[self.case.index, :3, 3]
