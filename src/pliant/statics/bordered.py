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
from pliant.statics import point_kernels as kernels
from pliant.statics.arrays import HERE, Given, Model, Point
from pliant.statics.workspace import allocate_system, assemble_statics

__all__ = ["BorderedTree"]

Floats = NDArray[np.float64]
_FREE = 1e-9  # of the typical stiffness (or inertia): motions that meet less are free
_FEW = 4  # motions that the search for free ones begins with


class BorderedTree:
    """H bordered by rows, factored.

    Attributes:
        negative: number of directions of motion (of those that the rows allow) with negative stiffness.
        error: how far the motions of the last `solve` may be off by rounding, as a fraction of the largest.
        correction: the last correction of the motions of its last right side, (nv,).
    """

    def __init__(self, m: Mechanism, model: Model, point: Point, tendons: bool = True):
        """H at a point; without `tendons` these do not act."""
        self._system, self._border = allocate_system(m, tendons)
        self._statics = assemble_statics(m, self._system, model, point)
        self._passive, self._hard = model.passive, len(point.gaps)
        self.negative, self.error, self.correction = 0, 0.0, np.zeros(m.nv)
        self._prepared = False

    def evaluate(self, given: Given, symmetric: bool) -> None:
        """Evaluate forces at the point; `symmetric` drops the part of their derivative that has no potential."""
        kernels.evaluate(self._system, self._statics, given, 0.5 if symmetric else 1.0, HERE)

    def factor(self, shift: float, passive: float, typical: float) -> int:
        """Factor H; returns `negative`.

        Args:
            shift: added to every dof, as a fraction of the typical stiffness (or inertia).
            passive: the same for dofs without a spring (or mass), so that the tree factors; `solve` removes it.
            typical: the typical stiffness, N m/rad, or inertia, kg m².
        """
        if not self._prepared:
            kernels.prepare(self._system, self._statics, HERE)
            self._prepared = True
        self.negative = kernels.factor(self._system, self._statics, HERE, shift, passive, typical)
        return self.negative

    @property
    def regularization(self) -> Floats | None:
        """Stiffness (or inertia) added to spring-less (or massless) dofs, (nv,); None for none."""
        return self._border.added if self._passive else None

    def free_motions(self, passive: float, typical: float) -> Floats:
        """Motions that rows allow and nothing resists, orthonormal in radians and radii, (motions, nv).

        Such as the spin of a rod between two balls. Spring-less dofs are lent a tiny stiffness; inverse iteration then
        keeps the motions that meet no more than that.

        Args:
            passive, typical: as of `factor`; the matrix is left factored with them.
        """
        unit, lent = self._border.unit, self._border.added
        found = np.zeros((0, len(unit)))
        if not self._passive:
            return found
        self.factor(0.0, _FREE, typical)
        loose = np.flatnonzero(lent)
        count = 0
        while len(found) == count < len(loose):
            count = min(max(2 * count, _FEW), len(loose))
            start = np.zeros((count, len(unit)))
            start[:, loose] = np.random.default_rng(0).normal(size=(count, len(loose)))
            found = self._iterate(start * unit, 3)
        # With more stiffness lent, rounding leaves less of other motions.
        self.factor(0.0, passive, typical)
        return self._iterate(found, 2)

    def _iterate(self, motions: Floats, rounds: int) -> Floats:
        """Inverse iteration: of the span of motions, those that meet no more than the stiffness lent, orthonormal."""
        if not len(motions):
            return motions
        unit, size = self._border.unit, np.zeros(0)
        none = np.zeros((len(motions), len(self._border.scale)))
        for _ in range(rounds):
            steps, _ = self._solve_once(self._border.added * motions, none)
            axes, size, _ = np.linalg.svd((steps / unit).T, full_matrices=False)
            motions = np.ascontiguousarray(axes.T * unit)
        return motions[size > 0.5]

    def solve(
        self,
        force: Floats,
        gap: Floats | None = None,
        *,
        refine: bool = True,
        exact: bool = False,
        free: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Motion and change of the multipliers under generalised forces, rows moving by `gap`.

        Args:
            force: (nv,) or (m, nv), one right side per row.
            gap: (rows,) or (m, rows); none if not given.
            refine: remove the regularization, by a few rounds of iteration.
            exact: go on until it is removed to the last digit; takes longer where motions are very soft.
            free: `free_motions`: forces along them are left out, and so are these motions.

        Returns:
            The step and the multipliers of loops and couplings, shaped like the arguments.
        """
        many = np.array(np.atleast_2d(force), dtype=np.float64, order="C")
        free = None if free is None or not len(free) else free
        if free is not None:
            many -= (many @ free.T) @ free / self._border.unit**2
        hard, scale = self._hard, self._border.scale
        gaps = np.zeros((len(many), len(scale)))
        if gap is not None:
            gaps[:, :hard] = np.atleast_2d(gap) * scale[:hard]
        step, multipliers = np.empty_like(many), np.empty_like(gaps)
        refine = refine and self._passive
        converged, self.error = kernels.solve(self._system, refine, many, gaps, step, multipliers)
        self.correction = self._border.correction[1].copy()
        if exact and not converged:
            step, multipliers = self._krylov(many, gaps, free)
        if free is not None:
            step = self._without(step, free)
        multipliers = multipliers[:, :hard] * scale[:hard]
        return (step, multipliers) if np.ndim(force) == 2 else (step[0], multipliers[0])

    def softest_motion(self) -> tuple[float, Floats]:
        """Smallest stiffness among allowed motions (of unit size in radians and radii), and the motion.

        By inverse iteration on the factors, so the regularization of spring-less dofs is part of it.
        """
        motion = np.empty_like(self._border.added)
        return kernels.softest_motion(self._system, motion), motion

    def _solve_once(self, force: Floats, gap: Floats) -> tuple[Floats, Floats]:
        """Motions and scaled multipliers for forces and scaled gaps in rows, regularization included."""
        step, multipliers = np.empty_like(force), np.empty_like(gap)
        _, self.error = kernels.solve(self._system, False, force, gap, step, multipliers)
        return step, multipliers

    def _without(self, steps: Floats, free: Floats) -> Floats:
        """Steps less their free motions."""
        return steps - ((steps / self._border.unit**2) @ free.T) @ free

    def _krylov(self, force: Floats, gap: Floats, free: Floats | None) -> tuple[Floats, Floats]:
        """The solution without regularization, by GMRES, for motions too soft for plain refinement."""
        from scipy.sparse.linalg import LinearOperator, gmres

        nv = force.shape[1]
        none, added = np.zeros((1, gap.shape[1])), self._border.added

        def reduced(x: Floats) -> Floats:
            change = self._solve_once((added * x)[None], none)[0][0]
            return x - (change if free is None else self._without(change, free))

        make: Any = LinearOperator  # scipy's type hints cover subclasses only
        operator = make((nv, nv), matvec=reduced, dtype=np.float64)
        start, _ = self._solve_once(force, gap)
        start = start if free is None else self._without(start, free)
        step, correction = np.empty_like(start), np.empty_like(start)
        for i, row in enumerate(start):
            step[i] = gmres(operator, row, rtol=1e-14, restart=60, maxiter=5)[0]
            # once more, for what that leaves: a measure of its error
            correction[i] = gmres(operator, row - reduced(step[i]), rtol=1e-14, restart=60, maxiter=5)[0]
        found = self._solve_once(force + added * (step + correction), gap)
        unit, self.correction = self._border.unit, np.abs(self._border.correction[1]) + np.abs(correction[-1])
        size = np.abs(found[0] / unit).max(axis=1)
        left = np.abs(correction / unit).max(axis=1) / np.where(size > 0, size, 1.0)
        self.error = max(self.error, float(np.nan_to_num(left, nan=np.inf).max()))
        return found
