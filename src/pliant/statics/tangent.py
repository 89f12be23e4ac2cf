"""`Tangent`: the static forces of a mechanism at one configuration, and their exact derivative, factored.

The derivative is a tree part, eliminated in linear time (`_kernels.factor`), bordered by a few rows: loops
and couplings, which allow no motion, and tendons, which allow some. Writing A for the rows and c for their
compliance (0 for loops and couplings, 1/k for tendons),

    [ H   A^T ] [ step       ]   [ force ]
    [ A  -c   ] [ multipliers] = [ gap   ]

is solved by the Schur complement `A H^-1 A^T + c`. Loops are often overconstrained (every planar linkage
is), so
the complement is singular; its null space is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse.linalg import LinearOperator, gmres

from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.joints import BALL, SLIDE
from pliant.statics import _kernels
from pliant.statics.loads import Loads

__all__ = ["PASSIVE", "Tangent", "typical_stiffness"]

Floats = NDArray[np.float64]
PASSIVE = 1e-2  # of the typical stiffness: what a dof without a spring gets while the tree part is factored
_REDUNDANT = 1e-9  # of the largest row: what is left of a row that depends on others
_REFINEMENTS = 30


def typical_stiffness(m: Mechanism, fallback: float = 1.0) -> float:
    """Lower quartile of the joints' stiffness, N m/rad, slides at the radius as lever; `fallback` without springs.

    A quartile rather than a mean: a cable is a billion times stiffer along than across, and what is across moves.
    """
    rotational = np.where(m.dof_kind == SLIDE, m.stiffness * m.radius**2, m.stiffness)
    own = rotational[rotational > 0]
    if not len(own) and len(m.tendons):
        own = m.tendon_stiffness[m.tendon_stiffness > 0]
    return float(np.partition(own, len(own) // 4)[len(own) // 4]) if len(own) else fallback


def _independent(rows: Floats, scale: Floats) -> NDArray[np.int64]:
    """Indices of a largest set of independent rows."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    result: Any = qr((rows * scale[:, None]).T, mode="r", pivoting=True, check_finite=False)
    triangle, order = result
    left = np.abs(np.diag(triangle))
    return np.sort(order[: int((left > _REDUNDANT * left[0]).sum())]).astype(np.int64)


class Tangent:
    """Forces at `q` under `loads`, with loop and coupling multipliers, and their derivative.

    Attributes:
        q: the configuration; poses: world poses of all links.
        residual: spring forces minus load forces per dof, constraint forces included.
        gaps: how far loops and couplings are from closed.
        rows: derivative of the gaps, (6 loops + couplings, nv).
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
        self.rows = kinematics.constraint_rows(m, self.poses)
        self.multipliers = np.zeros(len(self.gaps)) if multipliers is None else multipliers
        self._springs()
        self._loads(symmetric)
        self.negative = 0

    def _springs(self) -> None:
        m, q, loads = self.m, self.q, self.loads
        self._rows = m.tendons.dense(m.nv)
        straight = m.dof_kind != BALL
        stretch = np.where(straight, q[m.dof_coordinate] - loads.rest[m.dof_coordinate], 0.0)
        self.residual = m.stiffness * stretch
        self._blocks = np.zeros((m.nv, 3))
        balls = m.ball_primitives
        jacobian = np.zeros((m.nv, 3))
        where = m.primitive_dof[balls], m.primitive_coordinate[balls]
        if len(balls) and len(m.tendons):  # tendons need the rotation vectors before their tension is known
            _kernels.ball_springs(
                *where,
                m.stiffness,
                np.zeros(m.nv),
                q,
                loads.rest,
                np.zeros(m.nv),
                self._blocks,
                stretch,
                jacobian,
            )
        coordinate = np.where(straight, q[m.dof_coordinate], stretch)
        self._stretch = self._rows @ coordinate - loads.tendon_rest
        pull = self._rows.T @ (m.tendon_stiffness * self._stretch)
        if len(balls):
            _kernels.ball_springs(
                *where, m.stiffness, pull, q, loads.rest, self.residual, self._blocks, stretch, jacobian
            )
            for d in m.primitive_dof[balls]:
                self._rows[:, d : d + 3] = self._rows[:, d : d + 3] @ jacobian[d : d + 3]
        self.residual += np.where(straight, pull, 0.0)
        self.energy = 0.5 * float(m.stiffness @ stretch**2) + 0.5 * float(
            m.tendon_stiffness @ self._stretch**2
        )

    def _loads(self, symmetric: bool) -> None:
        m, loads, links = self.m, self.loads, self.m.links
        self.wrench = np.zeros((len(links), 6))
        self._load_tangent = np.zeros((len(links), 6, 6))
        args = self.wrench, self._load_tangent
        _kernels.point_loads(self.poses, loads.point_link, loads.point, loads.force, *args)
        _kernels.torques(self.poses, loads.torque_link, loads.torque, 0.5 if symmetric else 1.0, *args)
        np.add.at(self.wrench, loads.follower_link, loads.follower)
        loops = m.topology.loops
        if loops:
            # The multipliers of a loop are a wrench on the body and its opposite on the copy. Their derivative
            # is taken symmetric: the rest of it is a multiple of the rows.
            pairs = np.concatenate([links.loop_copy, links.loop_body])
            given = self.multipliers[: 6 * loops].reshape(-1, 6)
            given = np.concatenate([-given, given])
            _kernels.point_loads(
                self.poses, pairs, np.zeros((2 * loops, 3)), np.ascontiguousarray(given[:, :3]), *args
            )
            _kernels.torques(self.poses, pairs, np.ascontiguousarray(given[:, 3:]), 0.5, *args)
        _kernels.accumulate(
            links.parent, links.kind, links.screw, links.dof, self.local, self.wrench, self.residual
        )
        self.residual += self.rows[6 * loops :].T @ self.multipliers[6 * loops :]

    def factor(self, shift: float = 0.0, passive: float = PASSIVE, fallback: float = 1.0) -> int:
        """Factor the derivative; returns `negative`.

        Args:
            shift: stiffness added to every dof, as a fraction of the typical stiffness.
            passive: fraction of the typical stiffness lent to dofs without a spring; `solve` takes it out again.
            fallback: the typical stiffness if the mechanism has no springs.
        """
        m, links = self.m, self.m.links
        typical = typical_stiffness(m, fallback) / np.where(m.dof_kind == SLIDE, m.radius**2, 1.0)
        soft = m.stiffness == 0
        self._proximal = np.where(soft, passive * typical, 0.0) if soft.any() else None
        added = shift * typical + (0.0 if self._proximal is None else self._proximal)
        blocks = self._blocks
        turning = np.flatnonzero(m.dof_kind == BALL)
        if len(turning):
            blocks = blocks.copy()
            blocks[turning, (turning - m.primitive_dof[m.ball_primitives].repeat(3))] += added[turning]
        self._left, self._right = np.zeros((2, m.nv, 6))
        self._inverse = np.zeros((m.nv, 3))
        negative = _kernels.factor(
            links.parent,
            links.kind,
            links.screw,
            links.dof,
            self.local,
            self.wrench,
            m.stiffness + added,
            blocks,
            self._load_tangent.copy(),
            self._left,
            self._right,
            self._inverse,
        )
        self._kept = _independent(self.rows, self._row_scale())
        springs = m.tendon_stiffness > 0
        self._border = np.concatenate([self.rows[self._kept], self._rows[springs]])
        self._compliance = np.concatenate([np.zeros(len(self._kept)), 1 / m.tendon_stiffness[springs]])
        if len(self._border):
            negative -= self._factor_border(negative > 0)
        self.negative = negative
        return negative

    def softest_motion(self) -> tuple[float, Floats]:
        """Smallest stiffness among allowed motions (of unit size in radians and radii), and the motion.

        By inverse iteration on the factors, so what was lent to spring-less dofs is part of it.
        """
        unit = np.where(self.m.dof_kind == SLIDE, self.m.radius, 1.0)
        motion = np.cos(np.arange(1, self.m.nv + 1) * 1.7) * unit
        value = np.inf
        for _ in range(50):
            step = self.solve(motion / unit**2, refine=False)[0]
            size = float(np.sqrt((step / unit) @ (step / unit)))
            if size == 0 or not np.isfinite(size):
                return np.inf, motion
            previous, value = value, 1 / size
            motion = step / size
            if abs(value - previous) < 1e-3 * value:
                break
        return value, motion

    def free_motion(self) -> Floats | None:
        """An allowed motion that meets no stiffness but what was lent, or None."""
        stiffness, motion = self.softest_motion()
        lent = 0.0 if self._proximal is None else float(motion @ (self._proximal * motion))
        return motion if lent > 0 and stiffness - lent < 0.05 * lent else None

    def _row_scale(self) -> Floats:
        """Rows in radians and radii."""
        scale = np.ones(len(self.rows))
        scale[: 6 * self.m.topology.loops].reshape(-1, 6)[:, :3] = 1 / self.m.radius
        return scale

    def _factor_border(self, indefinite: bool) -> int:
        """Schur complement of the independent rows; returns the number of its negative eigenvalues."""
        self._response = self._tree_solve(self._border)  # H^-1 A^T, transposed
        complement = self._border @ self._response.T + np.diag(self._compliance)
        # Every row counts the same, however stiff the mechanism is along it.
        size = np.abs(np.diag(complement))
        self._scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
        complement *= self._scale[:, None] * self._scale
        try:
            self._complement = np.linalg.inv(complement)
        except np.linalg.LinAlgError:
            self._complement = np.full_like(complement, np.nan)
            return -1  # as good as a negative direction: the caller has to stiffen
        # With a positive definite tree part the complement is positive definite too.
        return int((np.linalg.eigvalsh((complement + complement.T) / 2) < 0).sum()) if indefinite else 0

    def _tree_solve(self, rhs: Floats) -> Floats:
        """H^-1 applied to the rows of `rhs`."""
        links = self.m.links
        out = np.zeros_like(rhs)
        _kernels.solve_many(
            links.parent,
            links.kind,
            links.screw,
            links.dof,
            self.local,
            self._left,
            self._right,
            self._inverse,
            rhs,
            out,
        )
        return out

    def _solve_once(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        step = self._tree_solve(force)
        if not len(self._border):
            return step, np.zeros((len(force), 0))
        multipliers = np.zeros_like(gap)
        for _ in range(2):  # the second round mends what rounding left of the gap
            miss = (step @ self._border.T - self._compliance * multipliers - gap) * self._scale
            change = (miss @ self._complement.T) * self._scale
            step = step - change @ self._response
            multipliers += change
        return step, multipliers

    def solve(
        self, force: Floats, gap: Floats | None = None, *, refine: bool = True, exact: bool = False
    ) -> tuple[Floats, Floats]:
        """Motion and change of the multipliers under generalised forces, rows moving by `gap`.

        Args:
            force: (nv,) or (m, nv), one right side per row.
            gap: (rows,) or (m, rows); none if not given.
            refine: take the stiffness lent to spring-less dofs out again, by a few rounds of iteration.
            exact: go on until nothing of it is left; for motions hardly stiffer than nothing that takes longer.

        Returns:
            The step and the multipliers of loops and couplings, shaped like the arguments.
        """
        many = np.atleast_2d(force)
        gaps = np.zeros((len(many), len(self._border)))
        if gap is not None:
            gaps[:, : len(self._kept)] = np.atleast_2d(gap)[:, self._kept]
        step, multipliers = self._solve_once(many, gaps)
        if refine and self._proximal is not None:
            for _ in range(_REFINEMENTS):
                previous = step
                step, multipliers = self._solve_once(many + self._proximal * step, gaps)
                if np.abs(step - previous).max() <= 1e-14 * np.abs(step).max():
                    break
            else:
                if exact:
                    step, multipliers = self._krylov(many, gaps)
        constraint = np.zeros((len(many), len(self.rows)))
        constraint[:, self._kept] = multipliers[:, : len(self._kept)]
        return (step, constraint) if np.ndim(force) == 2 else (step[0], constraint[0])

    def _krylov(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        """The same without the lent stiffness, by GMRES: few motions are so soft that plain rounds are too slow."""
        nv = self.m.nv
        none = np.zeros((1, len(self._border)))
        lent = np.zeros(nv) if self._proximal is None else self._proximal

        def reduced(x: Floats) -> Floats:
            return x - self._solve_once((lent * x)[None], none)[0][0]

        make: Any = LinearOperator  # its type hints know only the subclass way
        operator = make((nv, nv), matvec=reduced, dtype=np.float64)
        start, _ = self._solve_once(force, gap)
        step = np.array([gmres(operator, row, rtol=1e-14, restart=60, maxiter=5)[0] for row in start])
        return self._solve_once(force + lent * step, gap)
