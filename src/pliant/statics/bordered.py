"""`BorderedTree`: the matrix of a tree with the rows of loops, couplings and tendons, factored.

Writing A for the rows and c for their compliance (0 for loops and couplings, which allow no motion; 1/k for tendons,
which allow some),

    [ H   A^T ] [ step       ]   [ force ]
    [ A  -c   ] [ multipliers] = [ gap   ]

is solved by elimination along the tree, rows included (`mechanism.elimination`). Loops are often overconstrained (every
planar linkage is): redundant rows are left out. H is the stiffness of a mechanism at a configuration (`Tangent`) or its
inertia (`Inertia`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism
from pliant.mechanism import elimination_kernels as kernels
from pliant.mechanism.joints import BALL
from pliant.statics import tree_kernels

__all__ = ["BorderedTree", "add_diagonal"]

Floats = NDArray[np.float64]
_REDUNDANT = 1e-9  # remainder of a dependent row, radians and sizes of loops
_OPEN, _COARSEST = 10.0, 1e-3  # the same per gap of open loops, and at most
_REFINEMENTS = 30


def add_diagonal(m: Mechanism, diagonal: Floats, blocks: Floats, added: Floats) -> tuple[Floats, Floats]:
    """Stiffness plus `added` (nv,): diagonal of hinge and slide dofs, (nv,), and blocks of ball dofs, (nv, 3)."""
    turning = np.flatnonzero(m.dof_kind == BALL)
    if len(turning):
        blocks = blocks.copy()
        blocks[turning, turning - m.primitive_dof[m.ball_primitives].repeat(3)] += added[turning]
    return diagonal + added, blocks


class BorderedTree:
    """H bordered by rows, factored.

    Attributes:
        negative: number of directions of motion (of those that the rows allow) with negative stiffness.
        regularization: stiffness (or inertia) added to spring-less (or massless) dofs so that the tree factors;
            `solve` removes it by refinement. None for none.
    """

    def __init__(
        self,
        m: Mechanism,
        poses: Floats,
        *,
        wrench: Floats,
        tangent: Floats,
        diagonal: Floats,
        blocks: Floats,
        gap: float,
        tendons: Floats,
        compliance: Floats,
        regularization: Floats | None = None,
    ):
        """Factor H and the rows.

        Args:
            m, poses: the mechanism, and the world poses of its links, (links, 4, 4).
            wrench: on the subtree of every link, in its frame, (links, 6).
            tangent: derivative of the load on every link, (links, 6, 6).
            diagonal: of hinge and slide dofs, (nv,).
            blocks: of ball dofs, row by row, (nv, 3).
            gap: the largest of loops, radians and radii: redundant rows are known no better.
            tendons: their rows, (tendons, nv).
            compliance: of tendons; infinite for those that do not act.
            regularization: added to the diagonal so that the tree factors, (nv,); `solve` removes it by refinement.
        """
        self.regularization = regularization
        if regularization is not None:
            diagonal, blocks = add_diagonal(m, diagonal, blocks, regularization)
        plan = m.elimination
        n, nv, count, hard = len(poses), m.nv, len(plan.scale), plan.hard
        self._tree, self._scale, self._hard = plan.with_tendons(tendons), plan.scale, hard
        self._fronts, self._motion = plan.allocate()
        acting = np.isfinite(compliance)
        give = np.zeros(count)
        give[hard:][acting] = compliance[acting] * plan.scale[hard:][acting] ** 2
        stiffness = np.where((m.dof_kind == BALL)[:, None], blocks, diagonal[:, None])
        self._matrix = kernels.Matrix(
            position=np.empty((n, 3)),
            screw=np.empty((nv, 6)),
            column=np.empty((nv, 6)),
            row=np.zeros((nv, 6)),
            tangent=np.empty((n, 6, 6)),
            stiffness=stiffness,
            give=give,
        )
        tree_kernels.world_matrix(m.links.arrays, poses, wrench, tangent, self._matrix)
        soft = np.zeros(count, dtype=np.int64)
        soft[hard:] = acting
        if count:
            tolerance = min(max(_OPEN * gap, _REDUNDANT), _COARSEST)
            place = self._matrix.position, self._matrix.screw
            kernels.choose_rows(
                self._tree, self._fronts, *place, m.dof_unit, tolerance, tolerance, hard, soft
            )
        self.negative = kernels.factor(self._tree, self._fronts, self._matrix, False)

    @property
    def arrays(self) -> tuple[kernels.Tree, kernels.Fronts, kernels.Matrix, kernels.Motion]:
        """Tree, fronts, matrix and work space, for kernels that factor at other configurations."""
        return self._tree, self._fronts, self._matrix, self._motion

    def _solve_once(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        """Motions and scaled multipliers for forces and scaled gaps in rows, regularization included."""
        rights, nv = force.shape
        count = len(self._scale)
        step, multipliers = np.empty((rights, nv)), np.empty((rights, count))
        scratch = np.empty((3, count)), np.empty((2, nv))
        kernels.solve_many(
            self._tree, self._fronts, self._matrix, force, gap, self._motion, *scratch, step, multipliers
        )
        return step, multipliers

    def solve(
        self, force: Floats, gap: Floats | None = None, *, refine: bool = True, exact: bool = False
    ) -> tuple[Floats, Floats]:
        """Motion and change of the multipliers under generalised forces, rows moving by `gap`.

        Args:
            force: (nv,) or (m, nv), one right side per row.
            gap: (rows,) or (m, rows); none if not given.
            refine: remove the regularization, by a few rounds of iteration.
            exact: go on until it is removed to the last digit; takes longer where motions are very soft.

        Returns:
            The step and the multipliers of loops and couplings, shaped like the arguments.
        """
        many = np.ascontiguousarray(np.atleast_2d(force), dtype=np.float64)
        gaps = np.zeros((len(many), len(self._scale)))
        hard = self._hard
        if gap is not None:
            gaps[:, :hard] = np.atleast_2d(gap) * self._scale[:hard]
        step, multipliers = self._solve_once(many, gaps)
        if refine and self.regularization is not None:
            for _ in range(_REFINEMENTS):
                previous = step
                step, multipliers = self._solve_once(many + self.regularization * step, gaps)
                if np.abs(step - previous).max() <= 1e-14 * np.abs(step).max():
                    break
            else:
                if exact:
                    step, multipliers = self._krylov(many, gaps)
        multipliers = multipliers[:, :hard] * self._scale[:hard]
        return (step, multipliers) if np.ndim(force) == 2 else (step[0], multipliers[0])

    def _krylov(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        """The solution without regularization, by GMRES, for motions too soft for plain refinement."""
        from scipy.sparse.linalg import LinearOperator, gmres

        nv = force.shape[1]
        none = np.zeros((1, len(self._scale)))
        added = np.zeros(nv) if self.regularization is None else self.regularization

        def reduced(x: Floats) -> Floats:
            return x - self._solve_once((added * x)[None], none)[0][0]

        make: Any = LinearOperator  # scipy's type hints cover subclasses only
        operator = make((nv, nv), matvec=reduced, dtype=np.float64)
        start, _ = self._solve_once(force, gap)
        step = np.array([gmres(operator, row, rtol=1e-14, restart=60, maxiter=5)[0] for row in start])
        return self._solve_once(force + added * step, gap)
