"""`Tangent`: the static forces of a mechanism at one configuration, and their exact derivative, factored.

The derivative is that of a tree, bordered by loops and couplings, which allow no motion, and by tendons, which
allow some; `BorderedTree` solves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.joints import BALL
from pliant.statics import tree_kernels
from pliant.statics.bordered import BorderedTree, add_diagonal
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.load_kernels import FORCE, LINK, LOAD_SIZE, POINT
from pliant.statics.loads import Loads, spring_coordinates

__all__ = ["PASSIVE", "Tangent", "static_response"]

Floats = NDArray[np.float64]
PASSIVE = 1e-2  # regularization of dofs without a spring, of the typical stiffness


class Tangent:
    """Forces at `q` under `loads`, with loop and coupling multipliers, and their derivative.

    Attributes:
        q: the configuration; poses: world poses of all links.
        residual: spring forces minus load forces per dof, constraint forces included.
        gaps: of loops (position, rotation vector; world axes) and couplings, (6 loops + couplings,).
        wrench: sum of the wrenches on the subtree of every link, in its frame.
        negative: after `factor`, number of directions of motion (those that rows allow) with negative
            stiffness.
    """

    def __init__(
        self,
        m: Mechanism,
        q: Floats,
        loads: Loads,
        multipliers: Floats | None = None,
        symmetric: bool = False,
    ):
        """Evaluate forces; `symmetric` drops the part of the derivative of world torques that has no potential."""
        self.m, self.q, self.loads = m, q, loads
        self.local, self.poses = kinematics.link_transforms(m, q)
        self.gaps = kinematics.constraint_gaps(m, q, self.poses)
        self.multipliers = np.zeros(len(self.gaps)) if multipliers is None else multipliers
        self._springs()
        self._loads(symmetric)
        self.negative = 0

    def _springs(self) -> None:
        m, loads = self.m, self.loads
        q, rest = kinematics.read_only(self.q), kinematics.read_only(loads.rest)
        self._rows = m.tendons.dense(m.nv)
        straight = m.dof_kind != BALL
        stretch = np.where(straight, q[m.dof_coordinate] - rest[m.dof_coordinate], 0.0)
        self.residual = m.stiffness * stretch
        self._blocks = np.zeros((m.nv, 3))
        balls = m.ball_primitives
        jacobian = np.zeros((m.nv, 3))
        coordinate = spring_coordinates(m, q, rest) if len(m.tendons) else np.zeros(m.nv)
        self._stretch = self._rows @ coordinate - loads.tendon_rest
        pull = self._rows.T @ (m.tendon_stiffness * self._stretch)
        if len(balls):
            where = m.primitive_dof[balls], m.primitive_coordinate[balls]
            springs = tree_kernels.BallSprings(*where, m.stiffness, pull, rest)
            tree_kernels.ball_springs(springs, q, self.residual, self._blocks, stretch, jacobian)
            for d in m.primitive_dof[balls]:
                self._rows[:, d : d + 3] = self._rows[:, d : d + 3] @ jacobian[d : d + 3]
        self.residual += np.where(straight, pull, 0.0)
        self.energy = 0.5 * float(m.stiffness @ stretch**2) + 0.5 * float(
            m.tendon_stiffness @ self._stretch**2
        )
        self._diagonal = m.stiffness
        if loads.stops is not None:
            energy, force, stiffness, blocks = loads.stops.at(m, q)
            self.energy += energy
            self.residual += force
            self._diagonal = m.stiffness + stiffness
            self._blocks += blocks

    def _loads(self, symmetric: bool) -> None:
        m, loads, links = self.m, self.loads, self.m.links
        self.wrench = np.zeros((len(links), 6))
        self._load_tangent = np.zeros((len(links), 6, 6))
        args = self.wrench, self._load_tangent
        tree_kernels.add_loads(self.poses, loads.rows, 0.5 if symmetric else 1.0, *args)
        loops = m.topology.loops
        if loops:
            # The multipliers of a loop are a wrench on the body and its opposite on the copy. Their derivative
            # is taken symmetric: the rest of it is a multiple of the rows.
            given = self.multipliers[: 6 * loops].reshape(-1, 6)
            rows = np.zeros((2 * loops, LOAD_SIZE))
            rows[:loops, FORCE:POINT], rows[loops:, FORCE:POINT] = -given, given
            rows[:loops, LINK], rows[loops:, LINK] = links.loop_copy, links.loop_body
            tree_kernels.add_loads(self.poses, rows, 0.5, *args)
        tree_kernels.accumulate(links.arrays, self.local, self.wrench, self.residual)
        rows = m.couplings
        if len(rows):
            forces = np.repeat(self.multipliers[6 * loops :], np.diff(rows.start)) * rows.coefficient
            self.residual += np.bincount(rows.dof, forces, minlength=m.nv)

    def factor(self, shift: float = 0.0, passive: float = PASSIVE, fallback: float = 1.0) -> int:
        """Factor the derivative; returns `negative`.

        Args:
            shift: stiffness added to every dof, as a fraction of the typical stiffness.
            passive: regularization of dofs without a spring, as a fraction of the typical stiffness.
            fallback: the typical stiffness if the mechanism has no springs.
        """
        m = self.m
        typical = typical_stiffness(m, fallback) / m.dof_unit**2
        soft = m.stiffness == 0
        diagonal, blocks = add_diagonal(m, self._diagonal, self._blocks, shift * typical)
        loops = 6 * m.topology.loops
        open_by = np.abs(self.gaps[:loops].reshape(-1, 6)).max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):
            compliance = 1 / m.tendon_stiffness
        self._solver = BorderedTree(
            m,
            self.poses,
            wrench=self.wrench,
            tangent=self._load_tangent,
            diagonal=diagonal,
            blocks=blocks,
            gap=float(max(open_by[:3].max() / m.radius, open_by[3:].max())),
            tendons=self._rows,
            compliance=compliance,
            regularization=np.where(soft, passive * typical, 0.0) if soft.any() else None,
        )
        self.negative = self._solver.negative
        return self.negative

    def solve(
        self, force: Floats, gap: Floats | None = None, *, refine: bool = True, exact: bool = False
    ) -> tuple[Floats, Floats]:
        """Motion and change of the multipliers under generalised forces; see `BorderedTree.solve`."""
        return self._solver.solve(force, gap, refine=refine, exact=exact)

    def softest_motion(self) -> tuple[float, Floats]:
        """The first of `softest_motions`: its stiffness, and the motion."""
        values, motions = self.softest_motions(1)
        return float(values[0]), motions[0]

    def softest_motions(self, count: int) -> tuple[Floats, Floats]:
        """Smallest stiffnesses among allowed motions, without their signs, (count,), and the motions, (count, nv).

        Motions are orthonormal in radians and radii. By inverse iteration on the factors, so the regularization of
        spring-less dofs is part of it. Stiffnesses are infinite where fewer motions are allowed.
        """
        unit = self.m.dof_unit
        motions = np.cos(np.outer(np.arange(1, count + 1), np.arange(1, self.m.nv + 1)) * 1.7) * unit
        values = np.full(count, np.inf)
        for _ in range(50):
            steps = self.solve(motions / unit**2, refine=False)[0]
            axes, sizes = np.linalg.qr((steps / unit).T)
            size = np.diag(sizes)
            if not np.isfinite(sizes).all() or (size == 0).any():
                return np.full(count, np.inf), motions
            previous, values = values, 1 / np.abs(size)
            motions = (axes * np.sign(size)).T * unit
            if (np.abs(values - previous) < 1e-3 * values).all():
                break
        return values, motions

    def free_motion(self) -> Floats | None:
        """An allowed motion that meets no stiffness but the regularization, or None."""
        stiffness, motion = self.softest_motion()
        diagonal = self._solver.regularization
        added = 0.0 if diagonal is None else float(motion @ (diagonal * motion))
        return motion if added > 0 and stiffness - added < 0.05 * added else None


def static_response(tangent: Tangent, rows: Floats) -> tuple[Floats, Floats]:
    """Joint motions (m, nv) and constraint forces under the generalised forces in the rows of (m, nv).

    Raises:
        InputError: something the forces push against is held by no spring; names the joints.
    """
    m = tangent.m
    if (m.stiffness == 0).any():
        # The compliance along a direction that no spring holds is inversely proportional to the regularization.
        motions = []
        for passive in (1e-6, 1e-7):
            tangent.factor(passive=passive)
            motions.append(tangent.solve(rows, refine=False)[0])
        if np.abs(rows @ motions[1].T).max(initial=0.0) > 2 * np.abs(rows @ motions[0].T).max(initial=0.0):
            weight = np.abs(motions[1] - motions[0]).max(axis=0) * (m.stiffness == 0)
            loose = [m.dof_names[d] for d in np.argsort(-weight) if weight[d] > 0.05 * weight.max()]
            names = ", ".join(f"'{name}'" for name in loose[:5])
            if len(loose) > 5:
                names += f" and {len(loose) - 5} more"
            raise InputError(
                f"the compliance is infinite: no spring holds {names}; give stiffness with "
                f"`mechanism.with_stiffness({loose[0]!r}, ...)` or `pliant.reduce(..., default_stiffness=...)`"
            )
    tangent.factor()
    return tangent.solve(rows, exact=True)
