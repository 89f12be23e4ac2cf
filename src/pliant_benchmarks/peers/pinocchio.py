"""Pinocchio: the articulated-body algorithm in C++ on trees of hinges."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pliant

from ..systems import STEP, Floats

__all__ = ["Tree"]

pin: Any = import_module("pinocchio")  # its classes are made at run time


class Tree:
    """Tree of hinges; terms of implicit springs and dampers enter as rotor inertias, hD + h²K."""

    def __init__(self, m: pliant.Mechanism, h: float = STEP):
        k = m.links
        self._convention = pin.Convention.WORLD
        self.model = pin.Model()
        for i in range(m.nv):
            above = int(k.parent[i])
            place = k.offset[i][:3, 3] + k.offset[i][:3, :3] @ k.anchor[i]
            place = place - (k.anchor[above] if above >= 0 else 0.0)  # Pinocchio's frames are on the axes
            joint = self.model.addJoint(
                above + 1,
                pin.JointModelRevoluteUnaligned(k.screw[i, 3:]),
                pin.SE3(k.offset[i][:3, :3], place),
                str(i),
            )
            inertia = pin.Inertia(m.mass[i], m.com[i] - k.anchor[i], m.inertia[i])
            self.model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        self.model.gravity.setZero()
        self.model.armature = m.armature + h * m.damping + h * h * m.stiffness
        self.data = self.model.createData()
        self._aba = pin.aba

    def acceleration(self, q: Floats, v: Floats, torque: Floats) -> Floats:
        """Joint accelerations; world poses are computed on the way."""
        return self._aba(self.model, self.data, q, v, torque, self._convention)
