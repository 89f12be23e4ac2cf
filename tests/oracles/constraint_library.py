"""The constraint library of GS17, Appendices A and B: rows between two bodies, their Jacobians and geometric stiffness.

A body is its centre of mass `x` and its rotation `R`. Anchors `s` are measured from the centre of mass, anchors and
axes are held in body axes and written here as the world vectors they become. Displacements and velocities of a pair
are 12 numbers in world axes: linear and angular of body i, then of body j. The world takes part as a body that stays
where it is. For multipliers λ the pair feels `Jᵀλ`, and

    K̃ = ∂(Jᵀλ)/∂x                                                                      (GS17 Eq. 1)

is not symmetric: its skew part is -½ τ̂ on each body's angular block, τ the torque of the rows. All formulas are
polynomials, without branches, so they take complex numbers (for complex-step derivatives) and need no case for an
anchor at a centre of mass.

Where the print is wrong the corrected formula stands here, and the docstring says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "AxialLock",
    "BallAndSocket",
    "Constraint",
    "Dot1",
    "Dot2",
    "FlexibleCable",
    "Hinge",
    "Prismatic",
    "Rigid",
    "Stack",
    "Universal",
]

Array = NDArray[Any]
Factor = tuple[Any, Array, Array]
_I = np.eye(3)


def _hat(a: Array) -> Array:
    zero = 0 * a[0]
    return np.array([[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]])


def _cross(a: Array, b: Array) -> Array:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _pair(*parts: Array | float) -> Array:
    """Linear and angular part of body i, then of body j, as 12 numbers; 0 stands for a zero vector."""
    return np.concatenate([np.zeros(3) if isinstance(part, (int, float)) else part for part in parts])


def _blocks(entries: dict[tuple[int, int], Array]) -> Array:
    """A 12 x 12 matrix of 3 x 3 blocks."""
    out = np.zeros((12, 12), dtype=np.result_type(*entries.values()))
    for (r, c), block in entries.items():
        out[3 * r : 3 * r + 3, 3 * c : 3 * c + 3] = block
    return out


def _perpendicular(n: Array) -> tuple[Array, Array]:
    """Unit u and v that make (u, v, n) right-handed, for a real unit n."""
    u = _I[np.argmin(np.abs(n))] - n * n[np.argmin(np.abs(n))]
    u = u / np.sqrt(u @ u)
    return u, _cross(n, u)


class Constraint(ABC):
    """Rows between two bodies. `size` rows; every method takes the poses of body i and of body j."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of rows."""

    @abstractmethod
    def residual(self, xi: Array, Ri: Array, xj: Array, Rj: Array) -> Array:
        """φ, (size,)."""

    @abstractmethod
    def jacobian(self, xi: Array, Ri: Array, xj: Array, Rj: Array) -> Array:
        """J, (size, 12)."""

    @abstractmethod
    def geometric_stiffness(self, xi: Array, Ri: Array, xj: Array, Rj: Array, lam: ArrayLike) -> Array:
        """K̃, (12, 12), for multipliers `lam` (size,)."""

    @abstractmethod
    def low_rank(self, xi: Array, Ri: Array, xj: Array, Rj: Array, lam: ArrayLike) -> list[Factor]:
        """K̃ as a list of (coefficient, a, b): the sum of `coefficient a bᵀ` is K̃. For real poses."""


@dataclass(frozen=True, eq=False)
class BallAndSocket(Constraint):
    """Two anchors coincide: `φ = x_i + s_i - x_j - s_j` (GS17 Eqs. 4 and 21; Eq. 22 prints s_i for s_j)."""

    si: Array
    sj: Array

    @property
    def size(self) -> int:
        return 3

    def residual(self, xi, Ri, xj, Rj):
        return xi + Ri @ self.si - xj - Rj @ self.sj

    def jacobian(self, xi, Ri, xj, Rj):
        return np.hstack([_I, -_hat(Ri @ self.si), -_I, _hat(Rj @ self.sj)])

    def geometric_stiffness(self, xi, Ri, xj, Rj, lam):
        force = _hat(np.asarray(lam))
        return _blocks({(1, 1): force @ _hat(Ri @ self.si), (3, 3): -force @ _hat(Rj @ self.sj)})

    def low_rank(self, xi, Ri, xj, Rj, lam):
        """Two terms per body (GS17 prints four, Eq. 5): `λ̂ŝ = (λ_r s - λ_s r) rᵀ + (λ_t s - λ_s t) tᵀ`, r, t ⟂ s."""
        lam, out = np.asarray(lam), []
        for s, sign, place in ((Ri @ self.si, 1.0, 1), (Rj @ self.sj, -1.0, 3)):
            length = np.sqrt(s @ s)
            if length == 0.0:
                continue
            for r in _perpendicular(s / length):
                first, second = np.zeros((2, 4, 3))
                first[place], second[place] = (lam @ r) * s - (lam @ s) * r, r
                out.append((sign, first.ravel(), second.ravel()))
        return out


@dataclass(frozen=True, eq=False)
class AxialLock(Constraint):
    """No relative rotation about an axis n fixed in body i: `J = (0 nᵀ 0 -nᵀ)` (GS17 Eq. 23).

    The row by itself is not the derivative of anything; `residual` is the sine of the angle about n by which i is
    ahead of j, whose derivative the row is where the two are aligned. `reference` is `R_iᵀ R_j` there.
    """

    axis: Array
    reference: Array = field(default_factory=lambda: np.eye(3))

    @property
    def size(self) -> int:
        return 1

    def residual(self, xi, Ri, xj, Rj):
        Q = Ri.T @ Rj @ self.reference.T
        turn = 0.5 * np.array([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]])
        return -np.array([self.axis @ turn])

    def jacobian(self, xi, Ri, xj, Rj):
        n = Ri @ self.axis
        return _pair(0.0, n, 0.0, -n)[None]

    def geometric_stiffness(self, xi, Ri, xj, Rj, lam):
        twist = np.asarray(lam)[0] * _hat(Ri @ self.axis)
        return _blocks({(1, 1): -twist, (3, 1): twist})

    def low_rank(self, xi, Ri, xj, Rj, lam):
        """`n̂ = v uᵀ - u vᵀ` for right-handed (u, v, n); the print has the opposite sign."""
        n, weight = Ri @ self.axis, np.asarray(lam)[0]
        u, v = _perpendicular(n)
        return [
            (-weight, _pair(0.0, v, 0.0, -v), _pair(0.0, u, 0.0, 0.0)),
            (weight, _pair(0.0, u, 0.0, -u), _pair(0.0, v, 0.0, 0.0)),
        ]


@dataclass(frozen=True, eq=False)
class Dot1(Constraint):
    """An angle between an axis a of body i and an axis b of body j: `φ = aᵀb - offset` (GS17 Eqs. 24 and 25)."""

    ai: Array
    bj: Array
    offset: float = 0.0

    @property
    def size(self) -> int:
        return 1

    def residual(self, xi, Ri, xj, Rj):
        return np.array([(Ri @ self.ai) @ (Rj @ self.bj) - self.offset])

    def jacobian(self, xi, Ri, xj, Rj):
        normal = _cross(Ri @ self.ai, Rj @ self.bj)
        return _pair(0.0, normal, 0.0, -normal)[None]

    def geometric_stiffness(self, xi, Ri, xj, Rj, lam):
        eta = np.asarray(lam)[0] * _hat(Rj @ self.bj) @ _hat(Ri @ self.ai)
        return _blocks({(1, 1): eta, (1, 3): -eta.T, (3, 1): -eta, (3, 3): eta.T})

    def low_rank(self, xi, Ri, xj, Rj, lam):
        """Two terms if the axes are at right angles, as printed; else three more, `-λ aᵀb` on the relative turn."""
        a, b, weight = Ri @ self.ai, Rj @ self.bj, np.asarray(lam)[0]
        out = [
            (weight, _pair(0.0, a, 0.0, -a), _pair(0.0, b, 0.0, 0.0)),
            (-weight, _pair(0.0, b, 0.0, -b), _pair(0.0, 0.0, 0.0, a)),
        ]
        if a @ b != 0.0:
            relative = [_pair(0.0, e, 0.0, -e) for e in _I]
            out += [(-weight * (a @ b), e, e) for e in relative]
        return out


@dataclass(frozen=True, eq=False)
class Dot2(Constraint):
    """No separation of two anchors along an axis a of body i: `φ = dᵀa - offset`, `d = x_i + s_i - x_j - s_j`.

    GS17 Eqs. 26 and 27. With `s_i - d` the anchor of j seen from the centre of i, where the force acts.
    """

    si: Array
    sj: Array
    ai: Array
    offset: float = 0.0

    @property
    def size(self) -> int:
        return 1

    def _vectors(self, xi, Ri, xj, Rj):
        """The axis, the anchor of j from the centre of i, and from that of j."""
        sj = Rj @ self.sj
        return Ri @ self.ai, xj + sj - xi, sj

    def residual(self, xi, Ri, xj, Rj):
        return np.array([(xi + Ri @ self.si - xj - Rj @ self.sj) @ (Ri @ self.ai) - self.offset])

    def jacobian(self, xi, Ri, xj, Rj):
        a, r, sj = self._vectors(xi, Ri, xj, Rj)
        return _pair(a, _cross(r, a), -a, -_cross(sj, a))[None]

    def geometric_stiffness(self, xi, Ri, xj, Rj, lam):
        a, r, sj = (_hat(vector) for vector in self._vectors(xi, Ri, xj, Rj))
        return np.asarray(lam)[0] * _blocks(
            {
                (0, 1): -a,
                (1, 0): a,
                (1, 1): -r @ a,
                (1, 2): -a,
                (1, 3): a @ sj,
                (2, 1): a,
                (3, 1): sj @ a,
                (3, 3): -a @ sj,
            }
        )

    def low_rank(self, xi, Ri, xj, Rj, lam):
        """Six terms where GS17 needs twelve and loses two: each â is `n vᵀ - v nᵀ`, (a, v, n) right-handed."""
        a, r, sj = self._vectors(xi, Ri, xj, Rj)
        v, n = _perpendicular(a)
        weight, out = np.asarray(lam)[0], []
        for p, q, sign in ((n, v, weight), (v, n, -weight)):
            out.append((sign, _pair(-p, -_cross(r, p), p, _cross(sj, p)), _pair(0.0, q, 0.0, 0.0)))
            out.append((sign, _pair(0.0, p, 0.0, 0.0), _pair(q, 0.0, -q, 0.0)))
            out.append((sign, _pair(0.0, p, 0.0, -p), _pair(0.0, 0.0, 0.0, -_cross(sj, q))))
        return out


class Stack(Constraint):
    """Several constraints between the same two bodies, one above the other."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[Constraint]:
        """The elementary constraints, in the order of the rows."""

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def _shares(self, lam: ArrayLike):
        lam, start = np.asarray(lam), 0
        for part in self.parts:
            yield part, lam[start : start + part.size]
            start += part.size

    def residual(self, xi, Ri, xj, Rj):
        return np.concatenate([part.residual(xi, Ri, xj, Rj) for part in self.parts])

    def jacobian(self, xi, Ri, xj, Rj):
        return np.vstack([part.jacobian(xi, Ri, xj, Rj) for part in self.parts])

    def geometric_stiffness(self, xi, Ri, xj, Rj, lam):
        return sum(part.geometric_stiffness(xi, Ri, xj, Rj, share) for part, share in self._shares(lam))  # type: ignore

    def low_rank(self, xi, Ri, xj, Rj, lam):
        return [
            factor for part, share in self._shares(lam) for factor in part.low_rank(xi, Ri, xj, Rj, share)
        ]


@dataclass(frozen=True, eq=False)
class _Framed(Stack):
    """A joint by its anchor and frame (columns u, v, n) on either body."""

    si: Array
    sj: Array
    frame_i: Array = field(default_factory=lambda: np.eye(3))
    frame_j: Array = field(default_factory=lambda: np.eye(3))

    def _dot1(self, i: int, j: int) -> Dot1:
        return Dot1(self.frame_i[:, i], self.frame_j[:, j])

    def _dot2(self, i: int) -> Dot2:
        return Dot2(self.si, self.sj, self.frame_i[:, i])


class Universal(_Framed):
    """Ball and `n_iᵀu_j`: two axes that stay at right angles."""

    @property
    def parts(self):
        return BallAndSocket(self.si, self.sj), self._dot1(2, 0)


class Hinge(_Framed):
    """Ball, `n_iᵀu_j` and `n_iᵀv_j`: a turn about n."""

    @property
    def parts(self):
        return BallAndSocket(self.si, self.sj), self._dot1(2, 0), self._dot1(2, 1)


class Prismatic(_Framed):
    """A slide along n. The print's third dot-1, `u_iᵀn_j`, repeats the first; `u_iᵀv_j` locks the turn about n."""

    @property
    def parts(self):
        return self._dot1(2, 0), self._dot1(2, 1), self._dot1(0, 1), self._dot2(0), self._dot2(1)


class Rigid(_Framed):
    """No relative motion. Ball rows for the translations: three dot-2 rows would cost energy."""

    @property
    def parts(self):
        return (
            BallAndSocket(self.si, self.sj),
            self._dot1(2, 0),
            self._dot1(2, 1),
            self._dot1(0, 1),
        )


@dataclass(frozen=True, eq=False)
class FlexibleCable(_Framed):
    """A rigid joint relaxed by compliances, m/N along (axial) and across (shear) n, rad/(N m) about u, v and about n.

    With the same compliance in all directions the translations are ball rows, else three dot-2 rows. The torque of a
    dot-1 row follows the sine of the angle.
    """

    axial: float = 0.0
    shear: float = 0.0
    bending: float = 0.0
    torsion: float = 0.0

    @property
    def parts(self):
        turns = self._dot1(2, 0), self._dot1(2, 1), self._dot1(0, 1)
        if self.axial == self.shear:
            return BallAndSocket(self.si, self.sj), *turns
        return self._dot2(0), self._dot2(1), self._dot2(2), *turns

    @property
    def compliance(self) -> Array:
        """C of every row."""
        return np.array([self.shear, self.shear, self.axial, self.bending, self.bending, self.torsion])
