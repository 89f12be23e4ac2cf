"""Kernel of `statics.servo`: motions under small forces, and inertia, at many configurations held by their springs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.mechanism import elimination_kernels as elimination
from pliant.mechanism import kernels
from pliant.statics import tree_kernels


class Servo(NamedTuple):
    """A mechanism whose springs are slack wherever it is, and work space; n links, nv dofs, m rows.

    Attributes:
        tree, fronts, matrix, motion: for the elimination; stiffness and give of `matrix` are set.
        unit: of dofs, (nv,).
        lent: stiffness lent to dofs without a spring, part of `matrix`, (nv,).
        soft: 1 for rows of tendons that act, (m,).
        inertia: of links in their frames, (n, 6, 6); armature: of dofs, (nv,).
        wrench, tangent: zero, (n, 6) and (n, 6, 6).
        local, poses: of links, (n, 4, 4); composite: inertias of subtrees, (n, 6, 6).
        gap, multipliers: zero, and scratch, (r, m); miss, correction: scratch, (3, m) and (2, nv).
        force, previous: right sides and scratch, (r, nv).
    """

    tree: elimination.Tree
    fronts: elimination.Fronts
    matrix: elimination.Matrix
    motion: elimination.Motion
    unit: NDArray[np.float64]
    lent: NDArray[np.float64]
    soft: NDArray[np.int64]
    inertia: NDArray[np.float64]
    armature: NDArray[np.float64]
    wrench: NDArray[np.float64]
    tangent: NDArray[np.float64]
    local: NDArray[np.float64]
    poses: NDArray[np.float64]
    composite: NDArray[np.float64]
    gap: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    miss: NDArray[np.float64]
    correction: NDArray[np.float64]
    force: NDArray[np.float64]
    previous: NDArray[np.float64]


@njit(counts_references=True, error_model="numpy", nogil=True)
def respond(servo, links, q, link, hard, redundant, rounds, pose, jacobian, response, mass, exact):
    """Pose and Jacobian of a link, motions under small forces, and inertia, at each configuration.

    Args:
        servo, links: the mechanism.
        q: configurations with closed loops, (samples, nq).
        link: the link.
        hard: number of rows of loops and couplings.
        redundant: remainder of a dependent row, radians and sizes of loops.
        rounds: of iterative refinement, which takes out the stiffness lent to dofs without a spring.
        pose: of the link, (samples, 4, 4); jacobian: of its origin, world axes, (samples, 6, nv).
        response: motions, (samples, r, nv), under unit forces on the dofs if `mass` is computed, else (r = 6) under
            unit forces and torques on the link, world axes.
        mass: joint-space inertia, (samples, nv, nv); without samples it is not computed.
        exact: 1 where refinement has converged; elsewhere some motion meets hardly any stiffness, (samples,).
    """
    force, previous = servo.force, servo.previous
    rights, nv = force.shape
    whole = mass.shape[0] > 0
    for s in range(q.shape[0]):
        kernels.forward(links, q[s], servo.local, servo.poses)
        kernels.copy_pose(servo.poses[link], pose[s])
        kernels.add_jacobian(links, servo.poses, link, 1.0, jacobian[s])
        tree_kernels.world_matrix(links, servo.poses, servo.wrench, servo.tangent, servo.matrix)
        if servo.soft.shape[0]:
            for r in range(servo.soft.shape[0]):
                servo.fronts.kept[r] = 1  # no result depends on the configuration before
            position, screw = servo.matrix.position, servo.matrix.screw
            elimination.choose_rows(
                servo.tree, servo.fronts, position, screw, servo.unit, redundant, redundant, hard, servo.soft
            )
        elimination.factor(servo.tree, servo.fronts, servo.matrix, elimination.GENERAL)
        step = response[s]
        for round in range(rounds + 1):
            for r in range(rights):
                for d in range(nv):
                    unit = (1.0 if r == d else 0.0) if whole else jacobian[s, r, d]
                    previous[r, d] = step[r, d] if round else 0.0
                    force[r, d] = unit + servo.lent[d] * previous[r, d]
            elimination.solve_many(
                servo.tree,
                servo.fronts,
                servo.matrix,
                force,
                servo.gap,
                servo.motion,
                servo.miss,
                servo.correction,
                servo.unit,
                elimination.CORRECTIONS,
                step,
                servo.multipliers,
            )
            change, size = 0.0, 0.0
            for r in range(rights):
                for d in range(nv):
                    change = max(change, abs(step[r, d] - previous[r, d]))
                    size = max(size, abs(step[r, d]))
            if change <= 1e-12 * size or rounds == 0:
                exact[s] = 1
                break
        if whole:
            for k in range(servo.inertia.shape[0]):
                for i in range(6):
                    for j in range(6):
                        servo.composite[k, i, j] = servo.inertia[k, i, j]
            tree_kernels.composite_inertias(links, servo.local, servo.composite)
            tree_kernels.mass_matrix(links, servo.local, servo.composite, mass[s])
            for d in range(nv):
                mass[s, d, d] += servo.armature[d]
