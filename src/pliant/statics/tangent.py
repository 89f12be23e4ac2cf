"""`Tangent`: the static forces of a mechanism at one configuration, and their exact derivative, factored.

The derivative is that of a tree, bordered by loops and couplings, which allow no motion, and by tendons, which
allow some; `BorderedTree` solves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism
from pliant.statics.bordered import BorderedTree
from pliant.statics.loads import Loads
from pliant.statics.newton_kernels import INACCURATE, PASSIVE
from pliant.statics.workspace import allocate_point, model_of

__all__ = ["Tangent", "static_response"]

Floats = NDArray[np.float64]


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
        self.m, self.loads = m, loads
        model, point = model_of(m), allocate_point(m)
        self._typical = model.typical
        self._solver = BorderedTree(m, model, point)
        point.q[:] = q
        if multipliers is not None:
            point.multipliers[:] = multipliers
        self._solver.evaluate(loads.arrays, symmetric)
        self.q, self.multipliers, self.energy = point.q, point.multipliers, float(point.energy[0])
        self.poses, self.gaps = point.poses, point.gaps
        self.residual, self.wrench = point.residual, point.wrench
        self.negative = 0
        self._free: Floats | None = None
        self._responds = False  # whether the factors are those of `respond`

    def factor(self, shift: float = 0.0, passive: float = PASSIVE, fallback: float = 1.0) -> int:
        """Factor the derivative; returns `negative`.

        Args:
            shift: stiffness added to every dof, as a fraction of the typical stiffness.
            passive: regularization of dofs without a spring, as a fraction of the typical stiffness.
            fallback: the typical stiffness if the mechanism has no springs.
        """
        self._responds = False
        self.negative = self._solver.factor(shift, passive, self._typical or fallback)
        return self.negative

    def solve(
        self, force: Floats, gap: Floats | None = None, *, refine: bool = True, exact: bool = False
    ) -> tuple[Floats, Floats]:
        """Motion and change of the multipliers under generalised forces; see `BorderedTree.solve`."""
        return self._solver.solve(force, gap, refine=refine, exact=exact)

    @property
    def error(self) -> float:
        """How far the motions of the last `solve` may be off by rounding, as a fraction of the largest."""
        return self._solver.error

    @property
    def correction(self) -> Floats:
        """Last correction of the motions of the last right side of the last `solve`, (nv,)."""
        return self._solver.correction

    def respond(self, force: Floats, gap: Floats | None = None) -> tuple[Floats, Floats]:
        """Exact motion and constraint forces, as of `solve`, without motions that nothing resists.

        Of all motions in balance with the forces it is the shortest, in radians and radii: a rod between two balls does
        not spin. Forces along such motions are left out. Factors the derivative.
        """
        if self._free is None:
            self._free = self._solver.free_motions(PASSIVE, self._typical or 1.0)
        if not self._responds:
            self.factor()
            self._responds = True
        return self._solver.solve(force, gap, exact=True, free=self._free)

    def softest_motion(self) -> tuple[float, Floats]:
        """Smallest stiffness among allowed motions, and the motion; see `BorderedTree.softest_motion`."""
        return self._solver.softest_motion()

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


def static_response(tangent: Tangent, rows: Floats) -> tuple[Floats, Floats]:
    """Joint motions (m, nv) and constraint forces under the generalised forces in the rows of (m, nv); see `respond`.

    Raises:
        InputError: something the forces push against is held by no spring; names the joints.
        ConvergenceError: motions are lost in rounding; names the joint and its loop.
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
    found = tangent.respond(rows)
    if not tangent.error <= INACCURATE:
        _check_each(tangent, rows, found[0])
    return found


def _check_each(tangent: Tangent, rows: Floats, motions: Floats) -> None:
    """Raise a `ConvergenceError` if motions under the generalised forces in `rows` are lost in rounding.

    A force that hardly moves anything leaves motions of rounding, which are nothing beside those under other forces of
    the same size.
    """
    m, unit = tangent.m, tangent.m.dof_unit
    push, size = np.abs(rows * unit).max(axis=1), np.abs(motions / unit).max(axis=1)
    size = np.maximum(size, push * (size / np.where(push > 0, push, 1.0)).max())
    worst, lost = 0.0, np.zeros(m.nv)
    for i in range(len(rows)):
        tangent.respond(rows[i])
        left = np.abs(tangent.correction / unit)
        if tangent.error > INACCURATE and not left.max() <= max(worst, INACCURATE) * size[i]:
            worst, lost = float(left.max() / size[i]), left
    if not worst <= INACCURATE:
        raise _lost_in_rounding(m, worst, int(np.argmax(np.nan_to_num(lost, nan=np.inf))))


def _lost_in_rounding(m: Mechanism, worst: float, dof: int) -> ConvergenceError:
    """The error that names the dof whose motion is known worst, `worst` of the largest motion, and its loop."""
    where, chord = f"motions of '{m.dof_names[dof]}'", _loop_through(m, int(m.dof_joint[dof]))
    if chord is not None:
        where += f", in the loop that '{m.joint_names[chord]}' closes,"
    spring = m.stiffness * m.dof_unit**2
    order = np.argsort(np.where(spring > 0, spring, np.inf))
    soft, stiff = int(order[0]), int(np.argmax(spring))
    return ConvergenceError(
        f"the compliance of '{m.name}' is lost in rounding: {where} may be off by {worst:.2g} of the largest. Springs "
        f"are too far apart, from {spring[soft]:.2g} N m/rad ('{m.dof_names[soft]}') to {spring[stiff]:.2g} N m/rad "
        f"('{m.dof_names[stiff]}'; slides as seen at the radius): give them less different stiffness with "
        "`mechanism.with_stiffness`, or join the bodies of stiff joints by fixed ones",
        residual=worst,
    )


def _loop_through(m: Mechanism, joint: int) -> int | None:
    """The first loop-closing joint whose loop passes a joint; None if no loop does."""
    t = m.topology
    for chord in t.chords.tolist():
        a, b = int(m.joint_parents[chord]), int(m.joint_children[chord])
        passed = chord == joint
        while a != b and not passed:
            if a < 0 or (b >= 0 and t.depth[b] > t.depth[a]):
                a, b = b, a
            passed, a = t.tree_joint[a] == joint, int(t.parent[a])
        if passed:
            return chord
    return None
