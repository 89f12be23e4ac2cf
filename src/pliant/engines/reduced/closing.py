"""Closing of a manifold of joint coordinates: independent rows of loops and couplings, and how joints give way to them.

Near a configuration q0, which is in balance, joint coordinates of a reduced model are `q = move(q0, s)` with

    s(y) = Φ y + ½ Ψ(y, y) + C μ

and μ such that loops and couplings close. With K the static tangent at q0 and G their independent rows there,

    [ K  Gᵀ ] [ C ]   [ 0 ]         [ K  Gᵀ ] [ Ψ_ij ]   [  f_ij ]
    [ G  0  ] [ · ] = [ I ]         [ G  0  ] [  ·   ] = [ -H_ij ]

so that a unit of μ closes one row with the least energy, and Φᵀ K C = 0. H_ij is the second derivative of the gaps, and
-f_ij that of all forces, along Φ y, while the wrenches and constraint forces that hold Φ y grow with y. Ψ is then
the second-order part of the true equilibria, but for a part in the span of Φ, which is left out: it would only
change what y means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.border_kernels import REDUNDANT
from pliant.statics.load_kernels import LINK
from pliant.statics.loads import LOAD_SIZE, Load, Loads
from pliant.statics.tangent import Tangent

__all__ = ["Closing", "close", "independent_rows"]

Floats = NDArray[np.float64]
_OPEN, _COARSEST = 10.0, 1e-3  # remainder of a dependent row per gap of open loops, and at most
_ALIKE = 0.9  # of the largest remainder: the first such row is taken, so that rounding does not choose
_STEP = 4e-3  # largest motion of a joint in differences, radians and radii


class Closing(NamedTuple):
    """Closing of a manifold; r rows, k coordinates.

    Attributes:
        rows: numbers of independent rows among those of `kinematics.constraint_rows`, (r,).
        closing: C, joint motions per gap of these rows, (nv, r).
        curvature: Ψ, (k, k, nv); None without loops and couplings.
    """

    rows: NDArray[np.int64]
    closing: Floats
    curvature: Floats | None


def independent_rows(m: Mechanism, q: Floats) -> NDArray[np.int64]:
    """Numbers of independent rows of loops and couplings at q, (r,).

    Pivoted QR decomposition, positions of a loop in units of its size and dofs in radians and radii. A row depends on
    others if what is orthogonal to them is at most `REDUNDANT` long, or ten times the largest gap of loops if that
    is more.
    """
    poses = kinematics.link_poses(m, q)
    scale = m.elimination.scale[: m.elimination.hard]
    left = scale[:, None] * kinematics.constraint_rows(m, poses) * m.dof_unit
    gap = float(np.abs(scale * kinematics.constraint_gaps(m, q, poses)).max(initial=0.0))
    tolerance = min(max(_OPEN * gap, REDUNDANT), _COARSEST)
    chosen: list[int] = []
    axes = np.zeros((min(left.shape), m.nv))
    for count in range(len(axes)):
        size = np.sqrt((left**2).sum(axis=1))
        if size.max() <= tolerance:
            break
        row = int(np.argmax(size >= _ALIKE * size.max()))
        axis = left[row] / size[row]
        axis -= axes[:count].T @ (axes[:count] @ axis)  # what rounding has left of earlier axes
        axes[count] = axis / np.sqrt(axis @ axis)
        left -= np.outer(left @ axes[count], axes[count])
        left[row] = 0.0
        chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))


def close(
    m: Mechanism,
    q: Floats,
    basis: Floats,
    loads: Loads,
    multipliers: Floats,
    bodies: Sequence[str],
    wrench_per_y: Floats,
) -> Closing:
    """Closing of the manifold of a basis at a configuration in balance.

    Args:
        m, q: the mechanism and the configuration.
        basis: Φ, motions that loops and couplings allow, (nv, k).
        loads: loads and rest positions of springs at q.
        multipliers: constraint forces of loops and couplings at q, (rows,).
        bodies: the e end effectors.
        wrench_per_y: wrenches on the end effectors that hold the motions of the basis, fixed in the world, in the axes
            of the bodies at q, (6e, k); zeros for motions that are not held by such wrenches.
    """
    rows = independent_rows(m, q)
    if not len(rows):
        return Closing(rows, np.zeros((m.nv, 0)), None)
    tangent = Tangent(m, q, loads, multipliers)
    matrix = kinematics.constraint_rows(m, tangent.poses)
    scaled = m.elimination.scale[rows, None] * matrix[rows] * m.dof_unit
    some = m.dof_unit[:, None] * np.linalg.pinv(scaled) * m.elimination.scale[rows]
    closing = tangent.respond(np.zeros((len(rows), m.nv)), (matrix @ some).T)[0].T
    unit = 1 / np.abs(basis / m.dof_unit[:, None]).max(
        axis=0
    )  # coordinates that move some joint by 1 rad or radius
    forces = _Forces(tangent, basis * unit, bodies, wrench_per_y * unit)
    curvature = _curvature(forces, rows, closing) / (unit[:, None, None] * unit[:, None])
    return Closing(rows, np.ascontiguousarray(closing), curvature)


class _Forces:
    """Unbalanced forces and gaps along Φ y, with the wrenches and constraint forces that hold Φ y to first order.

    Attributes:
        tangent: the static tangent at y = 0.
        basis: Φ, (nv, k).
        held: generalised forces of the wrenches at y = 0, per y, (nv, k).
    """

    def __init__(self, tangent: Tangent, basis: Floats, bodies: Sequence[str], wrench_per_y: Floats):
        m = tangent.m
        self.tangent, self.basis = tangent, basis
        self._links = [int(m.links.body_link[m.body_index(body)]) for body in bodies]
        turns = tangent.poses[self._links, :3, :3]
        parts = wrench_per_y.reshape(len(bodies), 2, 3, -1)
        self._wrenches = np.einsum("eij,epjk->epik", turns, parts).reshape(len(bodies), 6, -1)
        jacobians = [kinematics.link_jacobian(m, tangent.poses, link) for link in self._links]
        self.held = np.concatenate(jacobians).T @ self._wrenches.reshape(6 * len(bodies), -1)
        self._multipliers = tangent.respond(self.held.T)[1].T
        # The tangent takes the derivative of a loop's torque as symmetric. That of a torque fixed in the world, as
        # multipliers are, differs by a multiple of the rows: half the torque times the rotation of the loop's body.
        for loop, link in enumerate(m.links.loop_body.tolist()):
            turn = kinematics.link_jacobian(m, tangent.poses, link)[3:] @ basis
            part = slice(6 * loop + 3, 6 * loop + 6)
            self._multipliers[part] -= spatial.hat(tangent.multipliers[part]) @ turn / 2

    def at(self, y: Floats) -> Floats:
        """Forces in the chart, (nv,), then gaps, (rows,)."""
        m, base = self.tangent.m, self.tangent
        shift = self.basis @ y
        rows = np.zeros((len(self._links), LOAD_SIZE))
        for row, link, wrench in zip(rows, self._links, self._wrenches @ y, strict=True):
            Load(wrench[:3], wrench[3:], np.zeros(3)).write(row)
            row[LINK] = link
        q, forces = kinematics.move(m, base.q, shift), base.multipliers + self._multipliers @ y
        here = Tangent(m, q, base.loads.with_rows(rows, 0.0), forces)
        residual = here.residual
        for d in m.primitive_dof[m.ball_primitives].tolist():
            part = slice(d, d + 3)
            residual[part] = spatial.so3_right_jacobian(shift[part]).T @ residual[part]
        return np.concatenate([residual, here.gaps])


def _curvature(forces: _Forces, rows: NDArray[np.int64], closing: Floats) -> Floats:
    """Ψ, (k, k, nv)."""
    basis = forces.basis
    nv, k = basis.shape
    middle, axes = forces.at(np.zeros(k)), np.eye(k)
    own = [_differences(forces, middle, axis) for axis in axes]
    pairs = np.stack(np.tril_indices(k), axis=1)
    seconds = np.array(
        [
            own[i][1]
            if i == j
            else (_differences(forces, middle, axes[i] + axes[j])[1] - own[i][1] - own[j][1]) / 2
            for i, j in pairs.tolist()
        ]
    )
    response = forces.tangent.respond(-seconds[:, :nv])[0]
    stiff = np.array([first[:nv] for first, _ in own]) + forces.held.T  # (K Φ)ᵀ but for constraint forces
    response -= (basis @ np.linalg.solve(stiff @ basis, stiff @ response.T)).T
    response -= seconds[:, nv:][:, rows] @ closing.T
    curvature = np.empty((k, k, nv))
    curvature[pairs[:, 0], pairs[:, 1]] = curvature[pairs[:, 1], pairs[:, 0]] = response
    return curvature


def _differences(forces: _Forces, middle: Floats, way: Floats) -> tuple[Floats, Floats]:
    """First and second derivative of forces and gaps along a line: central differences with a Richardson step."""
    firsts, seconds = [], []
    for h in (_STEP, 2 * _STEP):
        ahead, behind = forces.at(h * way), forces.at(-h * way)
        firsts.append((ahead - behind) / (2 * h))
        seconds.append((ahead - 2 * middle + behind) / h**2)
    return (4 * firsts[0] - firsts[1]) / 3, (4 * seconds[0] - seconds[1]) / 3
