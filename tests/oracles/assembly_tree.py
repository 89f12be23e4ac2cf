"""Loads of mechanisms as generalised forces, and sums over the clusters of an assembly tree."""

from __future__ import annotations

import numpy as np

from oracles.dense import gradient, spring_energy
from pliant.engines.quasistatic import _passes as passes
from pliant.engines.quasistatic.arrays import DOF, DOFS
from pliant.engines.quasistatic.solver import Tree
from pliant.mechanism import kinematics

GRAVITY = np.array([0.3, -0.4, -9.81])


def spring_torques(m, q):
    """Minus the derivative of the springs' energy, by complex-free central differences of the dense oracle's energy."""
    return -gradient(lambda x: spring_energy(m, x, m.rest, m.tendon_rest), m, q)


def torques(m, q, forces, gravity, springs=True):
    """Generalised forces of gravity, wrenches in world axes at body origins, and springs."""
    poses = kinematics.link_poses(m, q)
    out = np.zeros(m.nv)
    for body, link in enumerate(m.links.body_link):
        jacobian = kinematics.link_jacobian(m, poses, int(link))
        arm = poses[link, :3, :3] @ m.com[body]
        weight = m.mass[body] * gravity
        wrench = np.concatenate([weight, np.cross(arm, weight)]) + forces.get(body, np.zeros(6))
        out += jacobian.T @ wrench
    return out + (spring_torques(m, q) if springs else 0.0)


def put_wrenches(tree, q, forces):
    """Wrenches of bodies on the leaves, by the dense oracle's poses."""
    md = tree.model
    poses = kinematics.link_poses(tree.m, q)[tree.m.links.body_link]
    for body, wrench in forces.items():
        g = md.group[body]
        if g < 0:
            continue
        local = np.concatenate([md.local[body], [[0.0, 0.0, 0.0, 1.0]]])
        frame = poses[body] @ np.linalg.inv(local)
        turn, arm = frame[:3, :3].T, poses[body, :3, 3] - frame[:3, 3]
        leaf = tree.arrays.leaves.wrenches[md.tree.first_leaf[g]]
        leaf[:3] += turn @ wrench[:3]
        leaf[3:] += turn @ (wrench[3:] + np.cross(arm, wrench[:3]))


def solved(m, q, forces, gravity=GRAVITY, resist=None, weights=None):
    tree = Tree(
        m, gravity, m.armature if resist is None else resist, np.ones(m.nv) if weights is None else weights
    )
    tree.arrays.joints.q[:] = q
    put_wrenches(tree, q, forces)
    tree.up()
    tree.down()
    return tree


def by_tree(solver):
    """Let steps of a solver go by the assembly tree, after the first one, however many joints they compute."""
    solver.small, solver.most = False, 10 * len(solver.tree.model.tree)


def sums(tree, weights):
    """Total accelerations of all clusters by adding up their joints."""
    t, groups = tree.model.tree, tree.model.groups
    out = np.zeros(len(t))
    for k in range(t.leaves, len(t)):
        out[k] = out[t.right[k]] + (out[t.left[k]] if t.left[k] >= 0 else 0.0)
        if t.body[k] >= 0:
            d, n = groups[t.body[k], DOF], groups[t.body[k], DOFS]
            out[k] += ((weights[d : d + n] * tree.arrays.joints.qdd[d : d + n]) ** 2).sum()
    return out[t.leaves :]


def totals(tree):
    """Total accelerations of all clusters above the leaves, as the rows of their records say, after `down`."""
    c, nodes = tree.arrays.clusters, range(tree.leaves, len(tree.model.tree))
    return np.array([passes.total_acceleration(k, c.nodes, c.data, tree.wide) for k in nodes])
