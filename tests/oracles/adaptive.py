"""Adaptive dynamics, dense: rigid joints as rows left out, impulses that stop joints, what a rigid joint misses."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import pliant
from oracles import dense, newton
from pliant.engines.adaptive import _clusters, _geometry
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.simulation import Simulation


def momentum(s: Simulation) -> np.ndarray:
    """Linear momentum, and angular momentum about the world's origin, from poses and twists, (6,)."""
    m, out = s.mechanism, np.zeros(6)
    for body, name in enumerate(m.body_names):
        pose, twist = s.pose(name), s.twist(name)
        arm = pose[:3, :3] @ m.com[body]
        p = m.mass[body] * (twist[:3] + np.cross(twist[3:], arm))
        inertia = pose[:3, :3] @ m.inertia[body] @ pose[:3, :3].T
        out[:3] += p
        out[3:] += inertia @ twist[3:] + np.cross(pose[:3, 3] + arm, p)
    return out


def carried(s: pliant.AdaptiveSimulation) -> np.ndarray:
    """`momentum` of the rigid bodies as the integrator keeps it, which is not bound to joint velocities."""
    linkage, out = s._solver.reduced.linkage, np.zeros(6)
    linkage.evaluate(linkage.state.v)
    for k, p in enumerate(linkage.state.momentum):
        row = linkage.work[k]
        turn, centre = row[:9].reshape(3, 3), row[9:12] + row[15:18]
        out[:3] += p[:3]
        out[3:] += turn @ p[3:] + np.cross(centre, p[:3])
    return out


def active_dofs(m: pliant.Mechanism, joints: Iterable[str]) -> np.ndarray:
    """Per dof, whether its joint is one of these."""
    out = np.zeros(m.nv, dtype=bool)
    for name in joints:
        out[m.joint_dofs(m.joint_names.index(name))] = True
    return out


def stopped(M: np.ndarray, v: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Velocities after an impulse that stops all joints but the active ones, whose momenta stay."""
    out = np.zeros(len(v))
    out[active] = np.linalg.solve(M[np.ix_(active, active)], M[active] @ v)
    return out


def resistance(m: pliant.Mechanism, h: float) -> np.ndarray:
    """What springs and dampers add to the inertia of dofs in a step of the midpoint rule, (nv, nv)."""
    return np.diag(0.5 * h * m.damping + 0.25 * h * h * m.stiffness)


def effective_inertia(m: pliant.Mechanism) -> np.ndarray:
    """Inertia of each dof at the reference pose, what is before it held and all behind it free, by the mass matrix."""
    M, out = pliant.Configuration(m, m.reference).mass_matrix(), np.zeros(m.nv)
    for d in range(m.nv):
        free, held = [], int(m.dof_joint[d])
        for e in range(m.nv):
            joint, behind = int(m.dof_joint[e]), int(m.dof_joint[e]) == held
            free += [e] if behind and m.dof_coordinate[e] >= m.dof_coordinate[d] else []
            while not behind and m.joint_parents[joint] >= 0:
                joint = int(np.flatnonzero(m.joint_children == m.joint_parents[joint])[0])
                behind = joint == held
                free += [e] if behind else []
        out[d] = 1.0 / np.linalg.inv(M[np.ix_(free, free)])[free.index(d), free.index(d)]
    return out


def missed(M: np.ndarray, right: np.ndarray, active: np.ndarray) -> float:
    """Squared distance of accelerations with rigid joints from the free ones, in the metric M."""
    apart = np.linalg.solve(M, right)
    if active.any():
        apart[active] -= np.linalg.solve(M[np.ix_(active, active)], right[active])
    return float(apart @ M @ apart)


def moved(
    m: pliant.Mechanism, q, v, active: np.ndarray, h: float, steps: int, gravity, forces=None
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates after some steps of the Runge-Kutta method of order four, with rigid joints."""

    def rate(q, v):
        M, right = newton.equations(m, q, v, gravity, forces)
        out = np.zeros(m.nv)
        out[active] = np.linalg.solve(M[np.ix_(active, active)], right[active])
        return out

    for _ in range(steps):
        # in the chart `move(q, x)`; x stays small, so its derivative is v to the order needed
        a1, v1 = rate(q, v), v
        v2 = v + h / 2 * a1
        a2 = rate(dense.move(m, q, h / 2 * v1), v2)
        v3 = v + h / 2 * a2
        a3 = rate(dense.move(m, q, h / 2 * v2), v3)
        v4 = v + h * a3
        a4 = rate(dense.move(m, q, h * v3), v4)
        q = dense.move(m, q, h / 6 * (v1 + 2 * v2 + 2 * v3 + v4))
        v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, v


def closable(s: pliant.AdaptiveSimulation) -> list[int]:
    """Open nodes, joints between bodies or welds, whose children are both closed."""
    solver = s._solver
    nodes, opened = solver.model.nodes, solver.opened
    return [
        int(k)
        for k in np.flatnonzero(opened)
        if nodes[k, qs.KIND] in (qs.MERGE, qs.WELD)
        and not opened[nodes[k, qs.LEFT]]
        and not opened[nodes[k, qs.RIGHT]]
    ]


def close(s: pliant.AdaptiveSimulation, nodes: Iterable[int]) -> None:
    """Make the joints of closable nodes rigid."""
    solver, chosen = s._solver, list(nodes)
    solver.scatter()
    for g in solver.reduced.groups:
        _geometry.place_joint(g, solver.joints, solver._scratch.poses)
    for k in chosen:
        _clusters.close(k, solver.joints, solver.clusters, solver._none, solver._scratch)
    solver.switch(np.zeros(0, dtype=np.int32), np.array(chosen, dtype=np.int32))
    s._poses = None


def release(s: pliant.AdaptiveSimulation, nodes: Iterable[int]) -> None:
    """Open closed nodes below open ones."""
    s._solver.switch(np.array(list(nodes), dtype=np.int32), np.zeros(0, dtype=np.int32))
    s._poses = None


def moving(m: pliant.Mechanism, q, v, h: float, gravity=(0, 0, 0), **words) -> pliant.AdaptiveSimulation:
    """A simulation with all joints active, at coordinates and rates, that chooses none by itself."""
    s = pliant.AdaptiveSimulation(m, h, gravity, tolerance=1e9, slow=0.0, interval=10**9, **words)
    s._solver.set_motion(q, v)
    s._solver.due = False
    s._poses = None
    return s
