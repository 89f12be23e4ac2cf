"""`BorderedTree`: the matrix of a tree, eliminated in linear time, bordered by the rows of loops and couplings.

Writing A for the rows and c for their compliance (0 for loops and couplings, which allow no motion; 1/k for
tendons, which allow some),

    [ H   A^T ] [ step       ]   [ force ]
    [ A  -c   ] [ multipliers] = [ gap   ]

is solved by the Schur complement `A H^-1 A^T + c`. Loops are often overconstrained (every planar linkage
is), so the complement is singular; its null space is left out. H is the stiffness of a mechanism at a
configuration (`Tangent`) or its inertia (`Inertia`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics import _tree_kernels

__all__ = ["BorderedTree", "add_diagonal"]

Floats = NDArray[np.float64]
_REDUNDANT = 1e-9  # remainder of a dependent row, as a fraction of the largest row
_REFINEMENTS = 30


def _independent(rows: Floats, scale: Floats) -> NDArray[np.int64]:
    """Indices of a largest set of independent rows."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    result: Any = qr((rows * scale[:, None]).T, mode="r", pivoting=True, check_finite=False)
    triangle, order = result
    left = np.abs(np.diag(triangle))
    return np.sort(order[: int((left > _REDUNDANT * left[0]).sum())]).astype(np.int64)


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
        local: Floats,
        *,
        wrench: Floats,
        tangent: Floats,
        diagonal: Floats,
        blocks: Floats,
        rows: Floats,
        soft_rows: Floats,
        soft_compliance: Floats,
        regularization: Floats | None = None,
    ):
        """Factor H and the Schur complement of the rows.

        Args:
            m, local: the mechanism, and the poses of its links in their parents, (links, 4, 4).
            wrench: on the subtree of every link, (links, 6).
            tangent: derivative of the load on every link, (links, 6, 6); overwritten.
            diagonal: of hinge and slide dofs, (nv,).
            blocks: of ball dofs, row by row, (nv, 3).
            rows: of loops, then of couplings, (6 loops + couplings, nv).
            soft_rows, soft_compliance: of tendons.
            regularization: added to the diagonal so that the tree factors, (nv,); `solve` removes it by refinement.
        """
        self._links, self._local, self._count = m.links.arrays, local, len(rows)
        self.regularization = regularization
        if regularization is not None:
            diagonal, blocks = add_diagonal(m, diagonal, blocks, regularization)
        self._factors = _tree_kernels.Factors(np.zeros((m.nv, 6)), np.zeros((m.nv, 6)), np.zeros((m.nv, 3)))
        self.negative = _tree_kernels.factor(
            self._links, local, wrench, diagonal, blocks, tangent, self._factors
        )
        scale = np.ones(len(rows))  # rows in radians and radii
        scale[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] = 1 / m.radius
        self._kept = _independent(rows, scale)
        self._border = np.concatenate([rows[self._kept], soft_rows])
        self._compliance = np.concatenate([np.zeros(len(self._kept)), soft_compliance])
        if len(self._border):
            self.negative -= self._factor_border(self.negative > 0)

    def _factor_border(self, indefinite: bool) -> int:
        """Schur complement of the independent rows; returns the number of its negative eigenvalues."""
        self._response = self.tree_solve(self._border)  # H^-1 A^T, transposed
        complement = self._border @ self._response.T + np.diag(self._compliance)
        # Rows are scaled to a unit diagonal: their conditioning does not depend on the stiffness along them.
        size = np.abs(np.diag(complement))
        self._scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
        complement *= self._scale[:, None] * self._scale
        try:
            self._complement = np.linalg.inv(complement)
        except np.linalg.LinAlgError:
            self._complement = np.full_like(complement, np.nan)
            return -1  # counted as a negative direction: the caller stiffens and factors again
        # With a positive definite tree part the complement is positive definite too.
        return int((np.linalg.eigvalsh((complement + complement.T) / 2) < 0).sum()) if indefinite else 0

    def tree_solve(self, rhs: Floats) -> Floats:
        """H^-1 applied to the rows of `rhs`, without the border, regularization included."""
        out = np.zeros_like(rhs)
        _tree_kernels.solve_many(self._links, self._local, self._factors, rhs, out)
        return out

    def _solve_once(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        step = self.tree_solve(force)
        if not len(self._border):
            return step, np.zeros((len(force), 0))
        multipliers = np.zeros_like(gap)
        for _ in range(2):  # the second round removes the rounding error of the first
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
            refine: remove the regularization, by a few rounds of iteration.
            exact: go on until it is removed to the last digit; takes longer where motions are very soft.

        Returns:
            The step and the multipliers of loops and couplings, shaped like the arguments.
        """
        many = np.atleast_2d(force)
        gaps = np.zeros((len(many), len(self._border)))
        if gap is not None:
            gaps[:, : len(self._kept)] = np.atleast_2d(gap)[:, self._kept]
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
        constraint = np.zeros((len(many), self._count))
        constraint[:, self._kept] = multipliers[:, : len(self._kept)]
        return (step, constraint) if np.ndim(force) == 2 else (step[0], constraint[0])

    def _krylov(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        """The solution without regularization, by GMRES, for motions too soft for plain refinement."""
        from scipy.sparse.linalg import LinearOperator, gmres

        nv = force.shape[1]
        none = np.zeros((1, len(self._border)))
        added = np.zeros(nv) if self.regularization is None else self.regularization

        def reduced(x: Floats) -> Floats:
            return x - self._solve_once((added * x)[None], none)[0][0]

        make: Any = LinearOperator  # scipy's type hints cover subclasses only
        operator = make((nv, nv), matvec=reduced, dtype=np.float64)
        start, _ = self._solve_once(force, gap)
        step = np.array([gmres(operator, row, rtol=1e-14, restart=60, maxiter=5)[0] for row in start])
        return self._solve_once(force + added * step, gap)
