"""Slow and obvious: poses by matrix exponentials, everything else by definition or by differences."""

from __future__ import annotations

import numpy as np

import pliant
from pliant.mechanism.joints import BALL, HINGE


def expm(a: np.ndarray) -> np.ndarray:
    """Taylor series after halving four times."""
    a = a / 16
    out = term = np.eye(len(a))
    for k in range(1, 16):
        term = term @ a / k
        out = out + term
    for _ in range(4):
        out = out @ out
    return out


def rotation_vector(r: np.ndarray) -> np.ndarray:
    """Axis times angle, for angles well below half a turn."""
    skew = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]) / 2
    sine = np.linalg.norm(skew)
    return skew * (np.arctan2(sine, (np.trace(r) - 1) / 2) / sine if sine > 1e-12 else 1.0)


def twist_matrix(v) -> np.ndarray:
    x, y, z = v[3:]
    out = np.zeros((4, 4))
    out[:3, :3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    out[:3, 3] = v[:3]
    return out


def quaternion_matrix(q) -> np.ndarray:
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def joint_transform(m: pliant.Mechanism, j: int, q) -> np.ndarray:
    """Pose of the child in the parent, through joint j."""
    out = m.parent_frames[j].copy()
    at = m.joint_coordinates(j).start
    part = m.joint_primitives(j)
    for p in range(part.start, part.stop):
        axis, anchor = m.primitive_axis[p], m.primitive_anchor[p]
        if m.primitive_kind[p] == BALL:
            turn = np.eye(4)
            turn[:3, :3] = quaternion_matrix(q[at : at + 4])
            there, back = np.eye(4), np.eye(4)
            there[:3, 3], back[:3, 3] = anchor, -anchor
            out = out @ there @ turn @ back
            at += 4
        else:
            screw = (
                np.concatenate([np.cross(anchor, axis), axis])
                if m.primitive_kind[p] == HINGE
                else np.r_[axis, 0, 0, 0]
            )
            out = out @ expm(twist_matrix(screw) * q[at])
            at += 1
    return out @ np.linalg.inv(m.child_frames[j])


def body_poses(m: pliant.Mechanism, q) -> np.ndarray:
    poses = {-1: np.eye(4)}
    for j in m.topology.tree.tolist():
        poses[int(m.joint_children[j])] = poses[int(m.joint_parents[j])] @ joint_transform(m, j, q)
    return np.array([poses[b] for b in range(m.body_count)])


def loop_gaps(m: pliant.Mechanism, q) -> np.ndarray:
    """Position and rotation vector from where loop joints put their child to where the tree puts it, (loops, 6)."""
    poses = np.concatenate([body_poses(m, q), np.eye(4)[None]])
    out = []
    for j in m.topology.chords.tolist():
        copy, body = poses[m.joint_parents[j]] @ joint_transform(m, j, q), poses[m.joint_children[j]]
        out.append([*(copy[:3, 3] - body[:3, 3]), *rotation_vector(copy[:3, :3] @ body[:3, :3].T)])
    return np.array(out).reshape(-1, 6)


def move(m: pliant.Mechanism, q, step) -> np.ndarray:
    """q moved along a tangent vector: sums, and right-multiplied rotations for balls."""
    out = np.array(q, dtype=float)
    dof = at = 0
    for kind in m.primitive_kind.tolist():
        if kind == BALL:
            r = np.asarray(step[dof : dof + 3])
            angle = np.linalg.norm(r)
            s = np.sinc(angle / (2 * np.pi)) / 2
            w1, v1 = q[at], q[at + 1 : at + 4]
            w2, v2 = np.cos(angle / 2), s * r
            out[at : at + 4] = np.r_[w1 * w2 - v1 @ v2, w1 * v2 + w2 * v1 + np.cross(v1, v2)]
            dof, at = dof + 3, at + 4
        else:
            out[at] += step[dof]
            dof, at = dof + 1, at + 1
    return out


def spring_energy(m: pliant.Mechanism, q, rest, tendon_rest) -> float:
    x = np.zeros(m.nv)
    total = 0.0
    dof = at = 0
    for kind in m.primitive_kind.tolist():
        if kind == BALL:
            x[dof : dof + 3] = rotation_vector(
                quaternion_matrix(rest[at : at + 4]).T @ quaternion_matrix(q[at : at + 4])
            )
            total += 0.5 * m.stiffness[dof : dof + 3] @ x[dof : dof + 3] ** 2
            dof, at = dof + 3, at + 4
        else:
            x[dof] = q[at]
            total += 0.5 * m.stiffness[dof] * (q[at] - rest[at]) ** 2
            dof, at = dof + 1, at + 1
    for r in range(len(m.tendons)):
        dofs, c = m.tendons.row(r)
        total += 0.5 * m.tendon_stiffness[r] * (c @ x[dofs] - tendon_rest[r]) ** 2
    return float(total)


def energy(m: pliant.Mechanism, q, forces: dict[str, np.ndarray], gravity=None) -> float:
    """Springs minus the work of dead forces at body origins (and of gravity, with the springs' own rest)."""
    poses = body_poses(m, q)
    if gravity is None:
        dense = m.tendons.dense(m.nv)
        slack = dense @ np.where(m.dof_kind == BALL, 0.0, m.reference[m.dof_coordinate])
        total = spring_energy(m, q, m.reference, slack)
    else:
        total = spring_energy(m, q, m.rest, m.tendon_rest)
        for b in range(m.body_count):
            total -= m.mass[b] * np.asarray(gravity) @ (poses[b, :3, :3] @ m.com[b] + poses[b, :3, 3])
    for body, force in forces.items():
        total -= np.asarray(force) @ poses[m.body_index(body), :3, 3]
    return float(total)


def gradient(f, m: pliant.Mechanism, q, h: float = 1e-5) -> np.ndarray:
    """Central differences along tangent vectors, one Richardson step: error O(h^4)."""
    out = []
    for e in np.eye(m.nv):
        d1, d2 = (
            (np.asarray(f(move(m, q, k * h * e))) - np.asarray(f(move(m, q, -k * h * e)))) / (2 * k * h)
            for k in (1, 2)
        )
        out.append((4 * d1 - d2) / 3)
    return np.array(out)


def mass_matrix(m: pliant.Mechanism, q) -> np.ndarray:
    """Sum of J^T M J over bodies, Jacobians by differences."""
    poses = body_poses(m, q)

    def world(p):
        moved = body_poses(m, p)
        twist = np.zeros((m.body_count, 6))
        for b in range(m.body_count):
            centre = moved[b, :3, :3] @ m.com[b] + moved[b, :3, 3]
            twist[b] = [*centre, *rotation_vector(moved[b, :3, :3] @ poses[b, :3, :3].T)]
        return twist

    jacobian = gradient(world, m, q, 1e-3)  # (nv, bodies, 6)
    out = np.diag(m.armature)
    for b in range(m.body_count):
        inertia = poses[b, :3, :3] @ m.inertia[b] @ poses[b, :3, :3].T
        J = jacobian[:, b]
        out += m.mass[b] * J[:, :3] @ J[:, :3].T + J[:, 3:] @ inertia @ J[:, 3:].T
    return out
