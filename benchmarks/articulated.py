"""Articulated-body algorithms, O(n), on trees of hinges: pliant's own kernels and Pinocchio's.

Springs and dampers are implicit, as in the reduced engine: (M + hD + h²K) dv = h (Jᵀw - bias - K (q + hv) - D v).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import mujoco
import numpy as np
from mujoco_tree import MuJoCo
from numba import njit
from pushed import STEP, Floats, Pushed

import pliant
from pliant.mechanism import _kernels as kinematics
from pliant.spatial import _kernels as se3
from pliant.statics import _kernels as elimination
from pliant.statics.inertia import Inertia

__all__ = ["Articulated", "Pinocchio", "check"]


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def _articulated(count, h, links, springs, push, state, work):
    """`count` steps of (M + hD + h²K) dv = h (Jᵀw - bias - K (q + hv) - D v) on a tree of hinges, a link per dof."""
    parent, kind, offset, screw, anchor, dof, coordinate, inertia = links
    stiffness, damping, rest, diagonal = springs
    tip, point, force = push
    q, v, local, poses = state
    twist, bias, wrench, zero, ball, tangent, left, right, inverse, residual, dv, momentum, spare = work
    n = parent.shape[0]
    for _ in range(count):
        kinematics.forward(parent, kind, offset, screw, anchor, dof, coordinate, q, local, poses)
        for k in range(n):
            x, a, s, f, p, u = twist[k], bias[k], screw[k], wrench[k], momentum[k], v[k]
            if parent[k] >= 0:
                se3.motion_to_child(local[k], twist[parent[k]], x)
                se3.motion_to_child(local[k], bias[parent[k]], a)
            else:
                for i in range(6):
                    x[i] = 0.0
                    a[i] = 0.0
            a[0] += u * (x[4] * s[2] - x[5] * s[1] + x[1] * s[5] - x[2] * s[4])
            a[1] += u * (x[5] * s[0] - x[3] * s[2] + x[2] * s[3] - x[0] * s[5])
            a[2] += u * (x[3] * s[1] - x[4] * s[0] + x[0] * s[4] - x[1] * s[3])
            a[3] += u * (x[4] * s[5] - x[5] * s[4])
            a[4] += u * (x[5] * s[3] - x[3] * s[5])
            a[5] += u * (x[3] * s[4] - x[4] * s[3])
            for i in range(6):
                x[i] += u * s[i]
            for i in range(6):
                pull = 0.0
                carried = 0.0
                for j in range(6):
                    pull += inertia[k, i, j] * a[j]
                    carried += inertia[k, i, j] * x[j]
                    tangent[k, i, j] = -inertia[k, i, j]
                f[i] = -pull
                p[i] = carried
            f[0] -= x[4] * p[2] - x[5] * p[1]
            f[1] -= x[5] * p[0] - x[3] * p[2]
            f[2] -= x[3] * p[1] - x[4] * p[0]
            f[3] -= x[1] * p[2] - x[2] * p[1] + x[4] * p[5] - x[5] * p[4]
            f[4] -= x[2] * p[0] - x[0] * p[2] + x[5] * p[3] - x[3] * p[5]
            f[5] -= x[0] * p[1] - x[1] * p[0] + x[3] * p[4] - x[4] * p[3]
            residual[k] = stiffness[k] * (q[k] - rest[k]) + (damping[k] + h * stiffness[k]) * u
        T, f = poses[tip], wrench[tip]
        x = T[0, 0] * force[0] + T[1, 0] * force[1] + T[2, 0] * force[2]
        y = T[0, 1] * force[0] + T[1, 1] * force[1] + T[2, 1] * force[2]
        z = T[0, 2] * force[0] + T[1, 2] * force[1] + T[2, 2] * force[2]
        f[0] += x
        f[1] += y
        f[2] += z
        f[3] += point[1] * z - point[2] * y
        f[4] += point[2] * x - point[0] * z
        f[5] += point[0] * y - point[1] * x
        elimination.accumulate(parent, kind, screw, dof, local, wrench, residual)
        for k in range(n):
            residual[k] *= -h
        elimination.factor(
            parent, kind, screw, dof, local, zero, diagonal, ball, tangent, left, right, inverse
        )
        elimination.solve(
            parent, kind, screw, dof, local, left, right, inverse, residual, dv, momentum, spare
        )
        for k in range(n):
            v[k] += dv[k]
            q[k] += h * v[k]


class Articulated:
    """The articulated-body algorithm on pliant's own kernels."""

    def __init__(self, case: Pushed, h: float = STEP):
        m, n = case.m, case.m.nv
        k = m.links
        each = np.arange(n)
        if not all(np.array_equal(a, each) for a in (k.dof, k.coordinate, k.body)) or (k.kind != 1).any():
            raise ValueError("a tree of single hinges expected")
        self.h, self.v, self.q = h, np.zeros(n), m.reference.copy()
        local, self.poses = np.tile(np.eye(4), (2, n, 1, 1))
        inertia = Inertia(m, m.reference).links
        self._links = k.parent, k.kind, k.offset, k.screw, k.anchor, k.dof, k.coordinate, inertia
        diagonal = m.armature + h * m.damping + h * h * m.stiffness
        self._springs = m.stiffness, m.damping, m.rest, diagonal
        self._push = case.index, m.com[case.index], case.force
        self._state = self.q, self.v, local, self.poses
        shapes = (6,), (6,), (6,), (6,), (3,), (6, 6), (6,), (6,), (3,), (), (), (6,), (6,)
        self._work = tuple(np.zeros((n, *shape)) for shape in shapes)

    def step(self, n: int) -> None:
        _articulated(n, self.h, self._links, self._springs, self._push, self._state, self._work)


class Pinocchio:
    """The articulated-body algorithm of Pinocchio, in C++; implicit springs go where it takes rotor inertias."""

    def __init__(self, case: Pushed, h: float = STEP):
        pin: Any = import_module("pinocchio")  # its classes are made at run time: a type checker finds none
        m, k = case.m, case.m.links
        self._aba, self._convention = pin.aba, pin.Convention.WORLD
        self.model = pin.Model()
        for i in range(m.nv):
            above = int(k.parent[i])
            place = k.offset[i][:3, 3] + k.offset[i][:3, :3] @ k.anchor[i]
            place = place - (k.anchor[above] if above >= 0 else 0.0)  # frames are on the axes there
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

    def acceleration(self, q: Floats, v: Floats, torque: Floats) -> Floats:
        """With world poses on the way, which this convention computes."""
        return self._aba(self.model, self.data, q, v, torque, self._convention)


def check(case: Pushed, theirs: Pinocchio | None) -> dict[str, float]:
    """One step from a random state: ours and Pinocchio's against a dense solve with the bias MuJoCo computes."""
    m = case.m
    ours, reference = Articulated(case), MuJoCo(case)
    random = np.random.default_rng(0)
    ours.q += 0.05 * random.standard_normal(m.nv)
    ours.v += random.standard_normal(m.nv)
    q, v = ours.q.copy(), ours.v.copy()
    reference.restart("Euler")
    reference.data.qpos[:], reference.data.qvel[:] = q, v
    mujoco.mj_forward(reference.model, reference.data)
    at = pliant.Configuration(m, q)
    jacobian = at.jacobian(case.tip, "world")
    lever = at.pose(case.tip)[:3, :3] @ m.com[case.index]
    push = jacobian[:3].T @ case.force + jacobian[3:].T @ np.cross(lever, case.force)
    springs = m.stiffness * (m.rest - q - STEP * v) - m.damping * v
    dense = at.mass_matrix() + np.diag(STEP * m.damping + STEP**2 * m.stiffness)
    expected = np.linalg.solve(dense, push + springs - reference.data.qfrc_bias)
    ours.step(1)
    found = {"own kernels": (ours.v - v) / STEP}
    if theirs is not None:
        found["Pinocchio"] = theirs.acceleration(q, v, push + springs)
    return {name: float(np.abs(a - expected).max() / np.abs(expected).max()) for name, a in found.items()}
