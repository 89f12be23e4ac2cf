"""GS17's own methods: one linear solve per step in maximal coordinates, with geometric stiffness or damping made of it.

They are here to be compared with, and for what they show: `pliant.ConstrainedSimulation` is the one to use.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.engines.constrained import _maximal_damping as damping
from pliant.engines.constrained import _maximal_kernels as kernels
from pliant.engines.constrained import _maximal_rows as kinds
from pliant.engines.constrained import _maximal_solvers as solvers
from pliant.engines.constrained._maximal_stiffness import stiffness
from pliant.engines.constrained.inverses import (
    FullInverse,
    LowRankInverse,
    effective_inverse_full,
    effective_inverse_low_rank,
)
from pliant.engines.constrained.maximal import Maximal
from pliant.errors import InputError
from pliant.mechanism.kinematics import link_poses
from pliant.mechanism.model import Mechanism

__all__ = [
    "SOLVERS",
    "STABILIZATIONS",
    "MaximalStepper",
    "effective_inverse_full",
    "effective_inverse_low_rank",
]

Floats = NDArray[np.float64]
STABILIZATIONS = ("none", "full", "low-rank", "inertial", "constraint")
SOLVERS = ("dense", "tree")
# What rows say twice may be a little inconsistent: a compliance, as a share of a row's own, keeps their forces small.
_REDUNDANT = 1e-11


class MaximalStepper:
    """A mechanism as free bodies and constraint rows, stepped as GS17 does.

    Every step solves `[M̃ -Jᵀ; J Σ][v₊; hλ] = [M v + h f; -Γφ/h]` (GS17 Eqs. 2 and 15) and moves with v₊. What M̃ and
    Σ hold depends on `stabilization`:

    - "none": M̃ = M.
    - "full": M̃ = M - h²K̃, K̃ from the last step's forces, by LU (Tournier et al. 2015).
    - "low-rank": the same matrix, its inverse by Sherman-Morrison updates (section 3).
    - "inertial": M̃ = M + hB, B just enough damping of each body's turns about its principal axes (section 4.2).
    - "constraint": such damping on compliant rows (sections 4.3 and 4.4).

    Attributes:
        x: centres of mass, (n, 3).
        quaternion: orientations of the bodies, (n, 4), w x y z.
        v: velocities of the centres of mass and angular velocities, world axes, (n, 6).
        external: force and torque at the centre of mass, world axes, (n, 6); held until changed.
        multipliers: what each joint exerted on its child in the last step: force and torque at the joint, world
            axes, (joints, 6); springs included, couplings and tendons not.
        damping: damping every body received in the last step: three zeros, then N m s about its principal axes.
        time: simulated time, s.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        timestep: float,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        stabilization: str = "inertial",
        solver: str | None = None,
        alpha: float = 1.0,
        augment: bool = False,
    ):
        """At the reference pose and at rest.

        Args:
            mechanism: what to simulate.
            timestep: s.
            gravity: m/s².
            stabilization: one of STABILIZATIONS.
            solver: "tree" (linear time) or "dense" (Cholesky of the Schur complement); None for the tree where it
                serves. K̃ is not symmetric and couples bodies, so "full" and "low-rank" need "dense".
            alpha: how much of the stability limit a body may use before it is damped (GS17 Eq. 10).
            augment: for "constraint", rows without stiffness on free hinges and balls for the damping to act on.
        """
        for what, value, known in (
            ("stabilization", stabilization, STABILIZATIONS),
            ("solver", solver, (*SOLVERS, None)),
        ):
            if value not in known:
                raise InputError(f"{what} is one of {', '.join(map(repr, known))}, not {value!r}")
        with_stiffness = stabilization in ("full", "low-rank")
        if solver == "tree" and with_stiffness:
            raise InputError(
                f'stabilization="{stabilization}" has a matrix that is neither symmetric nor block diagonal: '
                'use solver="dense"'
            )
        if not (np.isfinite(timestep) and timestep > 0):
            raise InputError(f"timestep is a positive number of seconds, not {timestep!r}")
        self.maximal = mx = Maximal(mechanism, augment=augment and stabilization == "constraint")
        self.mechanism, self.timestep = mechanism, float(timestep)
        self.gravity = np.array(gravity, dtype=float)
        self.stabilization, self.alpha = stabilization, float(alpha)
        self.solver = solver or ("dense" if with_stiffness else "tree")

        n, joints, rows = len(mx), len(mx.joints), len(mx.rows)
        self._x, self._R = np.zeros((n + 1, 3)), np.tile(np.eye(3), (n + 1, 1, 1))
        self.quaternion = np.zeros((n, 4))
        self._v, self._spun, self._b = np.zeros((n + 1, 6)), np.zeros((n + 1, 6)), np.zeros((n + 1, 6))
        self.external, self.damping, self._undamped = np.zeros((3, n, 6))
        self.multipliers = np.zeros((joints, 6))
        self._anchor = mx.mechanism.child_frames[:, :3, 3] - mx.com[mx.joints[:, 1]]
        self._J, self._lam = np.zeros((rows, 12)), np.zeros(rows)
        self._phi, self._rate, self._sigma, self._g, self._extra = np.zeros((5, rows))
        self._A = np.zeros((n, 6, 6))
        # A joint has up to six rows, and three more if its free turns have rows for damping.
        self._W, self._U, self._D = (
            np.zeros((joints, 9, 6)),
            np.zeros((joints, 9, 6)),
            np.zeros((joints, 9, 9)),
        )
        self._K, self._norms, self._own = np.zeros((joints, 12, 12)), np.zeros((n, 3)), np.zeros((n, 3, 3))
        self._prepare_ties()
        self._inverse = {"full": FullInverse, "low-rank": LowRankInverse}.get(stabilization, lambda _: None)(
            mx
        )
        self.set_state(link_poses(mechanism, mechanism.reference)[mechanism.links.body_link])

    # --- state

    def set_state(self, poses: ArrayLike, v: ArrayLike | None = None) -> None:
        """Place the mechanism's body frames (n, 4, 4); velocities (n, 6) as in `v`, at rest if not given."""
        mx = self.maximal
        poses = np.asarray(poses, dtype=float)
        if poses.shape != (len(mx), 4, 4):
            raise InputError(f"poses must be ({len(mx)}, 4, 4), not {poses.shape}")
        self._x[:-1] = np.einsum("nij,nj->ni", poses[:, :3, :3], self.mechanism.com) + poses[:, :3, 3]
        self.quaternion[:] = spatial.quat_from_matrix(poses[:, :3, :3])
        self._v[:-1] = 0.0 if v is None else np.asarray(v, dtype=float)
        self._lam[:] = 0.0
        self.multipliers[:] = 0.0
        self.damping[:] = 0.0
        self.time = 0.0
        self._fresh = True
        self.q = self.mechanism.reference.copy()
        kernels.rotations(self.quaternion, self._R)
        mx.coordinates(self.q, self._x, self._R, rounds=50)

    @property
    def x(self) -> Floats:
        """Centres of mass, (n, 3)."""
        return self._x[:-1]

    @property
    def v(self) -> Floats:
        """Velocities of the centres of mass and angular velocities, world axes, (n, 6)."""
        return self._v[:-1]

    @property
    def poses(self) -> Floats:
        """Poses of the mechanism's body frames, (n, 4, 4)."""
        R = spatial.quat_to_matrix(self.quaternion)
        return spatial.pose(self.x - np.einsum("nij,nj->ni", R, self.mechanism.com), R)

    def coordinates(self) -> Floats:
        """Coordinates of all joints (nq,), measured from the poses; those of joints that rows need are in `q`."""
        kernels.rotations(self.quaternion, self._R)
        return self.maximal.all_coordinates(self.q, self._x, self._R)

    @property
    def finite(self) -> bool:
        """Whether all positions and velocities are numbers."""
        return bool(np.isfinite(self._v.sum() + self._x.sum() + self.quaternion.sum()))

    @property
    def violation(self) -> float:
        """The largest separation of any joint in a direction that it locks, m."""
        mx = self.maximal
        self._geometry()
        kind = mx.rows[:, 1]
        which = mx.rigid & ((kind == kinds.POINT) | (kind == kinds.DOT2))
        square = np.bincount(mx.rows[which, 0], self._phi[which] ** 2, minlength=len(mx.joints))
        generic = mx.rows[kind == kinds.COMPLEMENT, 0]
        square[generic] = (mx.measured.gap[mx.measured.index[generic], :3] ** 2).sum(axis=1)
        return float(np.sqrt(square.max(initial=0.0)))

    @property
    def kinetic_energy(self) -> float:
        """½ vᵀMv, J."""
        v, R = self.v, spatial.quat_to_matrix(self.quaternion)
        spin = np.einsum("nij,ni->nj", R, v[:, 3:])
        turning = np.einsum("ni,nij,nj->", spin, self.maximal.inertia, spin)
        return float(0.5 * (self.maximal.mass @ (v[:, :3] ** 2).sum(axis=1) + turning))

    @property
    def angular_momentum(self) -> Floats:
        """About the world's origin, world axes, (3,); with the half of free spinning that the last step still owes."""
        v, R = np.empty_like(self.v), spatial.quat_to_matrix(self.quaternion)
        kernels.spin(0.0 if self._fresh else 0.5 * self.timestep, self.maximal.inertia, R, self._v, v)
        spin = np.einsum("nij,njk,nlk,nl->ni", R, self.maximal.inertia, R, v[:, 3:])
        return (spin + np.cross(self.x, self.maximal.mass[:, None] * v[:, :3])).sum(axis=0)

    # --- a step

    def step(self, count: int = 1) -> None:
        """Advance by `count` time steps. A step that went wrong leaves numbers that are not `finite`."""
        for _ in range(count):
            self._step()

    def _geometry(self) -> None:
        mx = self.maximal
        kernels.rotations(self.quaternion, self._R)
        if len(mx.measured):
            mx.coordinates(self.q, self._x, self._R)
        mx.fill(self._x, self._R, self._phi, self._J)

    def _step(self) -> None:
        mx, h = self.maximal, self.timestep
        self._geometry()
        # Spinning and moving alternate: half a spin belongs before a motion and half after it, and the latter half is
        # done here together with the former half of the next, where constraints hold what it gives.
        kernels.spin(0.5 * h if self._fresh else h, mx.inertia, self._R, self._v, self._spun)
        kinds.row_rates(mx.joints, mx.rows, self._J, self._v, self._rate)
        # Forces of a last step are not there at first. To start without any stabilisation would be a blow that
        # light links under load do not survive, so the first step is taken again with the forces it finds.
        for _ in range(3 if self._fresh and self.stabilization != "none" else 1):
            self._solve()
        self._fresh = False
        kernels.wrenches(
            mx.joints, mx.rows, self._J, self._lam, self._x, self._R, self._anchor, self.multipliers
        )
        kernels.advance(h, self._x, self.quaternion, self._v)
        self.time += h

    def _solve(self) -> None:
        """Velocities and forces at the end of the step, from the forces of the last one."""
        mx, h = self.maximal, self.timestep
        self._damp()
        damping.soften(
            h, mx.rigid, mx.stiffness, mx.damping, mx.armature, self._extra,
            self._phi, self._rate, self._sigma, self._g,
        )  # fmt: skip
        given = self.damping if self.stabilization == "inertial" else self._undamped
        kernels.bodies(
            h, mx.mass, mx.inertia, self._R, mx.axes, given, self._spun, self.external, self.gravity,
            self._A, self._b,
        )  # fmt: skip
        self._tie_rows()
        if self.solver == "tree":
            self._solve_tree()
        else:
            self._try_dense()
        self._lam /= h

    def _damp(self) -> None:
        """Damping from the geometric stiffness of the last step's forces."""
        mx, h = self.maximal, self.timestep
        if self.stabilization not in ("inertial", "constraint"):
            return
        stiffness(*mx.tables(self._x, self._R), self._lam, self._K)
        damping.column_norms(mx.joints, self._K, self._R, mx.axes, self._own, self._norms)
        self.damping[:] = 0.0
        if self.stabilization == "inertial":
            damping.inertial_damping(h, self.alpha, mx.moments, self._norms, self.damping)
        else:
            damping.constraint_damping(
                h, self.alpha, mx.joints, mx.rows, mx.rigid, self._J, self._R, mx.axes, mx.mass, mx.moments,
                self._norms, self._extra, self.damping,
            )  # fmt: skip

    # --- rows that close loops and tie joints

    def _prepare_ties(self) -> None:
        mx = self.maximal
        spans = [np.arange(first, last) for _, _, first, last in mx.joints[mx.chords]]
        self._chord_rows = np.concatenate([np.zeros(0, np.int64), *spans])
        chords, ties = len(self._chord_rows), len(mx.tie_offset)
        joint = np.concatenate([mx.rows[self._chord_rows, 0], mx.terms[:, 1]]).astype(np.int64)
        self._piece_row = np.concatenate([np.arange(chords), chords + mx.terms[:, 0]]).astype(np.int64)
        self._ends = np.ascontiguousarray(mx.joints[joint, :2])
        self._pieces = np.zeros((len(self._piece_row), 12))
        self._tie_sum, self._tie_rate, self._tie_sigma, self._tie_g, self._tie_none = np.zeros((5, ties))
        self._S, self._l, self._size_of = (
            np.zeros((chords + ties,) * 2),
            np.zeros(chords + ties),
            np.zeros(chords + ties),
        )
        self._work, self._gwork = np.zeros((len(mx) + 1, 6)), np.zeros(len(mx.rows))

    def _tie_rows(self) -> None:
        """Couplings and tendons at the present pose."""
        mx, h, chords = self.maximal, self.timestep, len(self._chord_rows)
        if not len(mx.tie_offset):
            return
        self._tie_sum[:] = -mx.tie_offset
        kinds.tie_pieces(
            mx.terms, mx.term_weight, mx.joints, mx.measured.index, mx.measured.form, mx.measured.value,
            self._x, self._R, mx.com, self._pieces[chords:], self._tie_sum,
        )  # fmt: skip
        none = self._tie_none
        damping.soften(
            h, mx.tie_rigid, mx.tie_stiffness, mx.tie_damping, none, none, self._tie_sum, self._tie_rate,
            self._tie_sigma, self._tie_g,
        )  # fmt: skip

    def _solve_tree(self) -> None:
        mx, rows = self.maximal, self._chord_rows
        self._pieces[: len(rows)] = self._J[rows]
        solvers.tree_step(
            mx.order, mx.joints, self._J, self._sigma, self._A, self._W, self._D, self._U, self._b, self._g,
            self._ends, self._piece_row, self._pieces,
            np.concatenate([self._sigma[rows], self._tie_sigma]), np.concatenate([self._g[rows], self._tie_g]),
            self._S, self._l, self._size_of, self._work, self._gwork, self._v, self._lam,
        )  # fmt: skip
        self._lam[rows] = self._l[: len(rows)]

    # --- the dense way

    def _dense_rows(self) -> Floats:
        """All rows over all velocities, (rows + ties, 6 n)."""
        mx, n = self.maximal, len(self.maximal)
        rows, chords = len(mx.rows), len(self._chord_rows)
        G = np.zeros((rows + len(mx.tie_offset), n + 1, 6))
        ends, which = mx.joints[mx.rows[:, 0], :2], np.arange(rows)
        for side in range(2):
            part = slice(6 * side, 6 * side + 6)
            G[which, ends[:, side]] += self._J[:, part]
            at = rows + self._piece_row[chords:] - chords
            np.add.at(G, (at, self._ends[chords:, side]), self._pieces[chords:, part])
        return G[:, :n].reshape(len(G), 6 * n)

    def _try_dense(self) -> None:
        """What cannot be solved becomes NaN, as in the tree. LAPACK may not return from NaN, so none gets there."""
        if np.isfinite(self._A).all() and np.isfinite(self._J).all() and np.isfinite(self._lam).all():
            try:
                with np.errstate(all="ignore"):
                    return self._solve_dense()
            except np.linalg.LinAlgError:
                pass
        self._v[:-1] = self._lam[:] = np.nan

    def _solve_dense(self) -> None:
        """The Schur complement over all rows (GS17 Eq. 3)."""
        mx, n = self.maximal, len(self.maximal)
        G = self._dense_rows()
        b, g = self._b[:-1].ravel(), np.concatenate([self._g, self._tie_g])
        sigma = np.concatenate([self._sigma, self._tie_sigma])
        redundant = len(self._chord_rows) + len(mx.tie_offset) > 0
        if self._inverse is not None:
            inverse = self._inverse(self.timestep, self._A, self._x, self._R, self._lam)
            left, free = G @ inverse, inverse @ b
            S = left @ G.T
            if redundant:
                S[np.diag_indices_from(S)] *= 1.0 + _REDUNDANT
            S[np.diag_indices_from(S)] += sigma
            lam = np.linalg.solve(S, g - left @ b)
            v = free + inverse @ (G.T @ lam)
        else:
            inverse = np.linalg.inv(self._A)
            free = np.einsum("nij,nj->ni", inverse, self._b[:-1]).ravel()
            MG = np.einsum("nij,rnj->rni", inverse, G.reshape(len(G), n, 6)).reshape(G.shape)
            S, lam = MG @ G.T, g - G @ free
            S[np.diag_indices_from(S)] += sigma
            if redundant:
                solvers.semidefinite_solve(S, lam, S.diagonal().copy(), _REDUNDANT)
            elif len(S):
                factor = scipy.linalg.cho_factor(S, overwrite_a=True, check_finite=False)
                lam = scipy.linalg.cho_solve(factor, lam, check_finite=False)
            v = free + MG.T @ lam
        self._v[:-1] = v.reshape(n, 6)
        self._lam[:] = lam[: len(self._lam)]
