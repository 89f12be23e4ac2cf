"""A tree mechanism as a Pinocchio model, built primitive by primitive."""

from __future__ import annotations

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

import pliant
from pliant.mechanism.joints import BALL, HINGE


def _depth_first(m: pliant.Mechanism) -> list[int]:
    """Tree joints so that every subtree is contiguous, which Pinocchio's algorithms assume."""
    tree = m.topology.tree.tolist()
    order, stack = [], [-1]
    while stack:
        body = stack.pop()
        if body >= 0:
            order.append(int(m.topology.tree_joint[body]))
        stack += [int(m.joint_children[j]) for j in tree if m.joint_parents[j] == body]
    return order


class PinocchioOracle:
    """Poses, body Jacobians and mass matrix from Pinocchio, in pliant's order of coordinates."""

    def __init__(self, m: pliant.Mechanism):
        assert m.topology.is_tree
        self.m = m
        self.model = pin.Model()
        self.where = {-1: (0, pin.SE3.Identity())}
        self.q_map, self.v_map = np.zeros(m.nq, int), np.zeros(m.nv, int)
        for j in _depth_first(m):
            joint, offset = self.where[int(m.joint_parents[j])]
            offset = offset * pin.SE3(m.parent_frames[j])
            part = m.joint_primitives(j)
            for p in range(part.start, part.stop):
                shift = pin.SE3(np.eye(3), m.primitive_anchor[p])
                kind = m.primitive_kind[p]
                if kind == BALL:
                    primitive = pin.JointModelSpherical()
                elif kind == HINGE:
                    primitive = pin.JointModelRevoluteUnaligned(m.primitive_axis[p])
                else:
                    primitive = pin.JointModelPrismaticUnaligned(m.primitive_axis[p])
                joint = self.model.addJoint(joint, primitive, offset * shift, f"p{p}")
                offset = shift.inverse()
                iq, iv = self.model.joints[joint].idx_q, self.model.joints[joint].idx_v
                c, d = m.primitive_coordinate[p], m.primitive_dof[p]
                if kind == BALL:
                    self.q_map[c : c + 4] = iq + 3, iq, iq + 1, iq + 2  # w first here, last in Pinocchio
                    self.v_map[d : d + 3] = iv, iv + 1, iv + 2
                else:
                    self.q_map[c], self.v_map[d] = iq, iv
            child = int(m.joint_children[j])
            offset = offset * pin.SE3(m.child_frames[j]).inverse()
            self.where[child] = (joint, offset)
            inertia = pin.Inertia(float(m.mass[child]), m.com[child], m.inertia[child])
            self.model.appendBodyToJoint(joint, inertia, offset)
            self.model.addFrame(pin.Frame(m.body_names[child], joint, offset, pin.FrameType.BODY))
        self.data = self.model.createData()

    def _q(self, q):
        out = np.zeros(self.model.nq)
        out[self.q_map] = q
        return out

    def poses(self, q) -> np.ndarray:
        pin.forwardKinematics(self.model, self.data, self._q(q))
        return np.array(
            [(self.data.oMi[j] * x).homogeneous for j, x in (self.where[b] for b in range(self.m.body_count))]
        )

    def jacobian(self, q, body: str) -> np.ndarray:
        frame = self.model.getFrameId(body)
        full = pin.computeFrameJacobian(self.model, self.data, self._q(q), frame, pin.ReferenceFrame.LOCAL)
        return np.reshape(full, (6, -1))[:, self.v_map]

    def mass_matrix(self, q) -> np.ndarray:
        full = np.reshape(pin.crba(self.model, self.data, self._q(q)), (self.model.nv, -1))
        full = np.triu(full) + np.triu(full, 1).T
        return full[np.ix_(self.v_map, self.v_map)] + np.diag(self.m.armature)
