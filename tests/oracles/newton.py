"""Newton's laws, slow and obvious: accelerations of joints from poses alone, everything by differences."""

from __future__ import annotations

import numpy as np

import pliant
from oracles import dense


def body_coordinates(m: pliant.Mechanism, q, turned) -> np.ndarray:
    """Centres of mass, and rotations relative to `turned`, (bodies, 6)."""
    poses = dense.body_poses(m, q)
    out = np.zeros((m.body_count, 6))
    for b in range(m.body_count):
        out[b, :3] = poses[b, :3, :3] @ m.com[b] + poses[b, :3, 3]
        out[b, 3:] = dense.rotation_vector(poses[b, :3, :3] @ turned[b].T)
    return out


def _gaps(m: pliant.Mechanism, q) -> np.ndarray:
    x = q[m.dof_coordinate]
    return np.concatenate([dense.loop_gaps(m, q).ravel(), m.couplings.dense(m.nv) @ x - m.coupling_offset])


def _second(f, t: float = 2e-3) -> np.ndarray:
    """Second derivative at zero, error O(t^6)."""
    weights = {0: -49 / 18, 1: 3 / 2, 2: -3 / 20, 3: 1 / 90}
    parts = [w * (np.asarray(f(k * t)) + (np.asarray(f(-k * t)) if k else 0.0)) for k, w in weights.items()]
    return np.sum(parts, axis=0) / (t * t)


def constraint_jacobian(m: pliant.Mechanism, q) -> np.ndarray:
    """Of loops and couplings, (6 loops + couplings, nv)."""
    return dense.gradient(lambda p: _gaps(m, p), m, q, 1e-3).T


def free_velocity(m: pliant.Mechanism, q, seed: int, size: float = 1.0) -> np.ndarray:
    """Random joint velocities that loops and couplings allow."""
    v = size * np.random.default_rng(seed).normal(size=m.nv)
    J = constraint_jacobian(m, q)
    return v - np.linalg.pinv(J, rcond=1e-8) @ (J @ v) if len(J) else v


def equations(m: pliant.Mechanism, q, v, gravity=(0, 0, -9.81), forces=None) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix, and generalised forces of everything, velocities included; forces act at body origins, (nv, nv)."""
    turned = dense.body_poses(m, q)[:, :3, :3]
    J = dense.gradient(lambda p: body_coordinates(m, p, turned), m, q, 1e-3)  # (nv, bodies, 6)
    bias = _second(
        lambda t: body_coordinates(m, dense.move(m, q, t * v), turned)
    )  # accelerations at constant v
    spin = np.einsum("dbi,d->bi", J, v)[:, 3:]
    M, right = np.diag(m.armature), np.zeros(m.nv)
    for b in range(m.body_count):
        inertia = turned[b] @ m.inertia[b] @ turned[b].T
        M = M + m.mass[b] * J[:, b, :3] @ J[:, b, :3].T + J[:, b, 3:] @ inertia @ J[:, b, 3:].T
        right -= J[:, b, :3] @ (m.mass[b] * (bias[b, :3] - np.asarray(gravity)))
        right -= J[:, b, 3:] @ (inertia @ bias[b, 3:] + np.cross(spin[b], inertia @ spin[b]))
    for body, force in (forces or {}).items():
        b = m.body_index(body)
        arm = -turned[b] @ m.com[b]
        right += J[:, b, :3] @ np.asarray(force) + J[:, b, 3:] @ np.cross(arm, force)
    right -= dense.gradient(lambda p: dense.spring_energy(m, p, m.rest, m.tendon_rest), m, q, 1e-4)
    right -= m.damping * v
    rows = m.tendons.dense(m.nv)
    right -= rows.T @ (m.tendon_damping * (rows @ v))
    return M, right


def accelerations(m: pliant.Mechanism, q, v, gravity=(0, 0, -9.81), forces=None) -> np.ndarray:
    """Joint accelerations of springs, dampers, gravity and forces at body origins, loops and couplings kept."""
    M, right = equations(m, q, v, gravity, forces)
    G = constraint_jacobian(m, q)
    curve = _second(lambda t: _gaps(m, dense.move(m, q, t * v))) if len(G) else np.zeros(0)
    n = len(G)
    system = np.block([[M, G.T], [G, np.zeros((n, n))]])
    return np.linalg.lstsq(system, np.concatenate([right, -curve]), rcond=1e-12)[0][: m.nv]
