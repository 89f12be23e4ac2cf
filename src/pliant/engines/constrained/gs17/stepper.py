"""`MaximalStepper`: GS17's methods, one linear solve per step in maximal coordinates.

They are here to compare with; `pliant.ConstrainedSimulation` steps by `engines.constrained.midpoint` unless told else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.engines.constrained.gs17 import _bodies as kernels
from pliant.engines.constrained.gs17 import _rows as kinds
from pliant.engines.constrained.gs17 import _stiffness as damping
from pliant.engines.constrained.gs17 import _tree as tree
from pliant.engines.constrained.gs17.inverse import FullInverse, LowRankInverse
from pliant.engines.constrained.gs17.rows import Maximal
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.statics.loads import LOAD_SIZE, Load, load_rows

__all__ = ["METHODS", "SOLVERS", "MaximalStepper"]

Floats = NDArray[np.float64]
METHODS = ("none", "full", "low-rank", "inertial", "constraint")
SOLVERS = ("tree", "dense")
_UNIT = 1e-6  # by how much the square of a quaternion may differ from one
# Compliance of redundant rows, as a share of their own: keeps forces small where they are a little inconsistent.
_REDUNDANT = 1e-11


class MaximalStepper:
    """A mechanism as free bodies and constraint rows, stepped as GS17 does (n bodies).

    Every step solves `[M̃ -Jᵀ; J Σ][v₊; hλ] = [M v + h f; -Γφ/h]` (GS17 Eqs. 2 and 15) and moves with v₊. M̃ and Σ
    depend on `stabilization`:

    - "none": M̃ = M.
    - "full": M̃ = M - h²K̃, K̃ from the last step's forces, by LU (Tournier et al. 2015).
    - "low-rank": the same matrix, its inverse by Sherman-Morrison updates (section 3).
    - "inertial": M̃ = M + hB, B just enough damping of each body's turns about its principal axes (section 4.2).
    - "constraint": the same damping on compliant rows (sections 4.3 and 4.4).

    Attributes:
        quaternion: orientations of the bodies, (n, 4), w x y z.
        external: force and torque at the centre of mass, world axes, (n, 6); held until changed.
        multipliers: force and torque of each joint on its child in the last step, at the joint, world axes,
            (joints, 6); springs included, couplings and tendons not.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        timestep: float,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        stabilization: str = "inertial",
        solver: str | None = None,
        augment: bool = False,
    ):
        """At the reference pose and at rest.

        Args:
            mechanism: bodies and joints.
            timestep: s.
            gravity: m/s².
            stabilization: one of METHODS.
            solver: "tree" (linear time) or "dense" (Cholesky of the Schur complement); None for the tree where it
                serves. K̃ is not symmetric and couples bodies, so "full" and "low-rank" need "dense".
            augment: for "constraint", rows without stiffness on free hinges and balls for the damping to act on.
        """
        with_stiffness = stabilization in ("full", "low-rank")
        if solver == "tree" and with_stiffness:
            raise InputError(
                f'stabilization="{stabilization}" has a matrix that is neither symmetric nor block diagonal: '
                'use solver="dense"'
            )
        self.maximal = mx = Maximal(mechanism, augment=augment and stabilization == "constraint")
        self.mechanism, self.timestep = mechanism, float(timestep)
        self.gravity = np.array(gravity, dtype=float)
        self.stabilization, self.solver = stabilization, solver or ("dense" if with_stiffness else "tree")

        n, joints, rows = len(mx), len(mx.joints), len(mx.rows)
        self._x, self._R = np.zeros((n + 1, 3)), np.tile(np.eye(3), (n + 1, 1, 1))
        self.quaternion = np.zeros((n, 4))
        self._v, self._spun, self._b = np.zeros((3, n + 1, 6))
        self.external, self._damping, self._undamped = np.zeros((3, n, 6))
        self.multipliers = np.zeros((joints, 6))
        self._anchor = mechanism.child_frames[:, :3, 3] - mx.com[mx.joints[:, tree.CHILD]]
        self._J, self._lam, self._A = np.zeros((rows, 12)), np.zeros(rows), np.zeros((n, 6, 6))
        self._phi, self._rate, self._sigma, self._g, self._extra = np.zeros((5, rows))
        # A joint has up to six rows, and three more if its free turns have rows for damping.
        W, U, D = np.zeros((joints, 9, 6)), np.zeros((joints, 9, 6)), np.zeros((joints, 9, 9))
        self._tree = tree.Tree(mx.order, mx.joints, self._J, self._sigma, self._A, W, D, U)
        self._K, self._norms, self._own = np.zeros((joints, 12, 12)), np.zeros((n, 3)), np.zeros((n, 3, 3))
        self._prepare_border()
        self._inverse = {"full": FullInverse, "low-rank": LowRankInverse}.get(stabilization, lambda _: None)(
            mx
        )
        self._loads = np.zeros((0, LOAD_SIZE))
        self._steps = 0
        self.q = mechanism.reference

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
        self._damping[:] = 0.0
        self._fresh = True
        self._q = self.mechanism.reference.copy()
        kernels.rotations(self.quaternion, self._R)
        mx.measure(self._q, self._x, self._R, rounds=50)

    def _parts(self) -> tuple[Floats, ...]:
        return self.x, self.quaternion, self.v, self._q, self._lam

    @property
    def state(self) -> Floats:
        """Positions, orientations, velocities, measured coordinates and row forces, in one array."""
        return np.concatenate([part.ravel() for part in self._parts()])

    @state.setter
    def state(self, value: Floats) -> None:
        at = 0
        for part in self._parts():
            part[...] = value[at : at + part.size].reshape(part.shape)
            at += part.size
        self._fresh = not self._lam.any()
        measured = self._q.copy()
        self._geometry()
        self._q[:] = measured  # as the last step left them, to the last bit

    @property
    def taken(self) -> int:
        """Whole steps since the start."""
        return self._steps

    @property
    def stops(self) -> Floats:
        """Stops of joints: none, since these methods do not enforce limits."""
        return np.zeros(0)

    @stops.setter
    def stops(self, value: Floats) -> None:
        pass

    @property
    def x(self) -> Floats:
        """Centres of mass, world, (n, 3)."""
        return self._x[:-1]

    @property
    def v(self) -> Floats:
        """Velocities of the centres of mass and angular velocities, world axes, (n, 6)."""
        return self._v[:-1]

    @property
    def poses(self) -> Floats:
        """World poses of body frames, (n, 4, 4)."""
        R = spatial.quat_to_matrix(self.quaternion)
        return spatial.pose(self.x - np.einsum("nij,nj->ni", R, self.mechanism.com), R)

    @property
    def twists(self) -> Floats:
        """Velocity of the origin and angular velocity of every body, world axes, (n, 6)."""
        out = self.v.copy()
        arm = np.einsum("nij,nj->ni", self.poses[:, :3, :3], self.mechanism.com)
        out[:, :3] -= np.cross(out[:, 3:], arm)
        return out

    @property
    def q(self) -> Floats:
        """Joint coordinates (nq,), measured from the bodies' poses; set, everything is at rest."""
        kernels.rotations(self.quaternion, self._R)
        return self.maximal.all_coordinates(self._q, self._x, self._R)

    @q.setter
    def q(self, value: Floats) -> None:
        m = self.mechanism
        self.set_state(kinematics.link_poses(m, value)[m.links.body_link])

    def _jacobian(self) -> Floats:
        """Velocities of centres of mass and angular velocities per joint velocity, world axes, (6 n, nv)."""
        m, links = self.mechanism, kinematics.link_poses(self.mechanism, self.q)
        out = np.zeros((m.body_count, 6, m.nv))
        for body, link in enumerate(m.links.body_link.tolist()):
            rows = kinematics.link_jacobian(m, links, link)
            arm = links[link, :3, :3] @ m.com[body]
            rows[:3] -= np.cross(arm, rows[3:], axisa=0, axisb=0, axisc=0)
            out[body] = rows
        return out.reshape(-1, m.nv)

    @property
    def velocity(self) -> Floats:
        """Joint velocities nearest to those of the bodies, (nv,)."""
        jacobian = self._jacobian()
        with np.errstate(over="ignore"):
            size = float((jacobian**2).sum() * (self.v**2).sum())
        if not np.isfinite(size):
            raise ConvergenceError("bodies are too far away, or too fast, for joint velocities")
        return np.asarray(np.linalg.lstsq(jacobian, self.v.ravel(), rcond=None)[0], dtype=np.float64)

    @velocity.setter
    def velocity(self, value: Floats) -> None:
        self.v[:] = (self._jacobian() @ value).reshape(-1, 6)

    # --- measures

    @property
    def finite(self) -> bool:
        """Whether all positions and velocities are numbers, and all orientations rotations."""
        turned = np.abs((self.quaternion**2).sum(axis=1) - 1.0).max(initial=0.0)
        return bool(np.isfinite(self._v.sum() + self._x.sum()) and turned <= _UNIT)

    @property
    def violation(self) -> float:
        """Largest separation of a joint in a direction that it locks, m."""
        mx = self.maximal
        self._geometry()
        joint, kind = mx.rows[:, kinds.JOINT], mx.rows[:, kinds.KIND]
        which = mx.springs.rigid & ((kind == kinds.POINT) | (kind == kinds.DOT2))
        square = np.bincount(joint[which], self._phi[which] ** 2, minlength=len(mx.joints))
        generic = joint[kind == kinds.COMPLEMENT]
        square[generic] = (mx.measured.gap[mx.measured.index[generic], :3] ** 2).sum(axis=1)
        return float(np.sqrt(square.max(initial=0.0)))

    @property
    def kinetic(self) -> float:
        """Kinetic energy ½ vᵀMv, J."""
        v, R = self.v, spatial.quat_to_matrix(self.quaternion)
        spin = np.einsum("nij,ni->nj", R, v[:, 3:])
        turning = np.einsum("ni,nij,nj->", spin, self.maximal.bodies.inertia, spin)
        return float(0.5 * (self.maximal.bodies.mass @ (v[:, :3] ** 2).sum(axis=1) + turning))

    @property
    def angular_momentum(self) -> Floats:
        """About the world's origin, world axes, (3,); with the gyroscopic half step that the last step still owes."""
        v, R = np.empty_like(self.v), spatial.quat_to_matrix(self.quaternion)
        kernels.spin(0.0 if self._fresh else 0.5 * self.timestep, self.maximal.bodies.inertia, R, self._v, v)
        spin = np.einsum("nij,njk,nlk,nl->ni", R, self.maximal.bodies.inertia, R, v[:, 3:])
        return (spin + np.cross(self.x, self.maximal.bodies.mass[:, None] * v[:, :3])).sum(axis=0)

    @property
    def joint_wrenches(self) -> Floats:
        """Wrench through every joint on its child in the last step, child's frame, (joints, 6)."""
        m = self.mechanism
        turn = self.poses[m.joint_children, :3, :3]
        force = np.einsum("nij,ni->nj", turn, self.multipliers[:, :3])
        torque = np.einsum("nij,ni->nj", turn, self.multipliers[:, 3:])
        return np.concatenate([force, torque + np.cross(m.child_frames[:, :3, 3], force)], axis=1)

    @property
    def damping(self) -> Floats:
        """Damping of bodies in the last step: three zeros, then N m s about principal axes, (n, 6)."""
        return self._damping.copy()

    @property
    def effort(self) -> tuple[int, int, int]:
        """Linear solves, parts of steps, parts that did not converge: one solve a step."""
        return self._steps, self._steps, 0

    # --- a step

    def set_loads(self, loads: Mapping[int, Load]) -> None:
        """Set the loads, by number of body, in place of all before."""
        centres = spatial.pose(-self.mechanism.com, np.eye(3))
        self._loads = load_rows(loads, np.arange(len(self.maximal)), centres)
        self.external[:] = 0.0

    def advance(self, n: int = 1) -> int:
        """Take `n` steps; returns how many were taken before the motion left the finite numbers."""
        for done in range(n):
            if len(self._loads):
                kernels.rotations(self.quaternion, self._R)
                kernels.load_wrenches(self._loads, self._R, self.external)
            before, finite = self.state, False
            try:
                self._step()
                finite = self.finite
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                pass
            if not finite:
                self.state = before
                return done
            self._steps += 1
        return n

    def _geometry(self) -> None:
        """Coordinates, residuals and Jacobians at the present poses."""
        mx = self.maximal
        kernels.rotations(self.quaternion, self._R)
        mx.measure(self._q, self._x, self._R)
        kinds.fill_rows(mx.table, mx.measured, self._x, self._R, self._phi, self._J)

    def _step(self) -> None:
        mx, h = self.maximal, self.timestep
        self._geometry()
        # Gyroscopic steps and motion alternate (Strang splitting): the half step after a motion is done here together
        # with the half step before the next, where constraints hold its result.
        kernels.spin(0.5 * h if self._fresh else h, mx.bodies.inertia, self._R, self._v, self._spun)
        kinds.row_rates(mx.joints, mx.rows, self._J, self._v, self._rate)
        # K̃ needs forces, and a first step has none. Without stabilisation light links under load would not survive it,
        # so the first step is solved again with the forces it finds.
        for _ in range(3 if self._fresh and self.stabilization != "none" else 1):
            self._solve()
        self._fresh = False
        kernels.wrenches(mx.joints, mx.rows, self._J, self._lam, self._R, self._anchor, self.multipliers)
        kernels.advance(h, self._x, self.quaternion, self._v)

    def _solve(self) -> None:
        """Velocities and forces at the end of the step, from the forces of the last one."""
        mx, h = self.maximal, self.timestep
        self._damp()
        damping.soften(h, mx.springs, self._extra, self._phi, self._rate, self._sigma, self._g)
        given = self._damping if self.stabilization == "inertial" else self._undamped
        kernels.bodies(
            h, mx.bodies, self._R, given, self._spun, self.external, self.gravity, self._A, self._b
        )
        self._fill_ties()
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
        damping.stiffness(mx.table, mx.measured, self._x, self._R, self._lam, self._K)
        damping.column_norms(mx.joints, self._K, self._R, mx.bodies.axes, self._own, self._norms)
        self._damping[:] = 0.0
        if self.stabilization == "inertial":
            damping.inertial_damping(h, mx.bodies.moments, self._norms, self._damping)
        else:
            rigid, norms = mx.springs.rigid, self._norms
            damping.constraint_damping(
                h, mx.table, rigid, self._J, self._R, mx.bodies, norms, self._extra, self._damping
            )

    # --- rows outside the tree

    def _prepare_border(self) -> None:
        mx = self.maximal
        spans = [np.arange(first, last) for _, _, first, last in mx.joints[mx.chords]]
        self._chord_rows = np.concatenate([np.zeros(0, np.int64), *spans])
        chords, ties = len(self._chord_rows), len(mx.tie_offset)
        joint = np.concatenate([mx.rows[self._chord_rows, kinds.JOINT], mx.terms[:, kinds.TERM_JOINT]])
        row = np.concatenate([np.arange(chords), chords + mx.terms[:, kinds.TERM_ROW]]).astype(np.int64)
        sigma, g, impulse, size = np.zeros((4, chords + ties))
        self._border = tree.Border(
            ends=np.ascontiguousarray(mx.joints[joint.astype(np.int64), :2]),
            row=row,
            pieces=np.zeros((len(row), 12)),
            sigma=sigma,
            g=g,
            schur=np.zeros((chords + ties, chords + ties)),
            impulse=impulse,
            size=size,
            bodies=np.zeros((len(mx) + 1, 6)),
            rows=np.zeros(len(mx.rows)),
        )
        self._tie_sigma, self._tie_g = sigma[chords:], g[chords:]
        self._tie_sum, self._tie_rate, self._tie_none = np.zeros((3, ties))

    def _fill_ties(self) -> None:
        """Couplings and tendons at the present pose."""
        mx, h, chords = self.maximal, self.timestep, len(self._chord_rows)
        if not len(mx.tie_offset):
            return
        self._tie_sum[:] = -mx.tie_offset
        kinds.tie_pieces(
            mx.terms, mx.term_weight, mx.joints, mx.measured, self._x, self._R, mx.com,
            self._border.pieces[chords:], self._tie_sum,
        )  # fmt: skip
        damping.soften(
            h, mx.ties, self._tie_none, self._tie_sum, self._tie_rate, self._tie_sigma, self._tie_g
        )

    def _solve_tree(self) -> None:
        rows, border = self._chord_rows, self._border
        chords = len(rows)
        border.pieces[:chords] = self._J[rows]
        border.sigma[:chords], border.g[:chords] = self._sigma[rows], self._g[rows]
        tree.tree_step(self._tree, border, self._b, self._g, self._v, self._lam)
        self._lam[rows] = border.impulse[:chords]

    # --- the dense solver

    def _dense_rows(self) -> Floats:
        """Jacobian of all rows over all velocities, (rows + ties, 6 n)."""
        mx, n, border = self.maximal, len(self.maximal), self._border
        rows, chords = len(mx.rows), len(self._chord_rows)
        G = np.zeros((rows + len(mx.tie_offset), n + 1, 6))
        ends, which = mx.joints[mx.rows[:, kinds.JOINT], :2], np.arange(rows)
        for side in range(2):
            part = slice(6 * side, 6 * side + 6)
            G[which, ends[:, side]] += self._J[:, part]
            at = rows + border.row[chords:] - chords
            np.add.at(G, (at, border.ends[chords:, side]), border.pieces[chords:, part])
        return G[:, :n].reshape(len(G), 6 * n)

    def _try_dense(self) -> None:
        """Dense solve; NaN where it fails, as in the tree. LAPACK may not return from NaN, so none gets there."""
        if np.isfinite(self._A).all() and np.isfinite(self._J).all() and np.isfinite(self._lam).all():
            try:
                with np.errstate(all="ignore"):
                    return self._solve_dense()
            except np.linalg.LinAlgError:
                pass
        self._v[:-1] = self._lam[:] = np.nan

    def _solve_dense(self) -> None:
        """Schur complement over all rows (GS17 Eq. 3)."""
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
                tree.semidefinite_solve(S, lam, S.diagonal().copy(), _REDUNDANT)
            elif len(S):
                factor = scipy.linalg.cho_factor(S, overwrite_a=True, check_finite=False)
                lam = scipy.linalg.cho_solve(factor, lam, check_finite=False)
            v = free + MG.T @ lam
        self._v[:-1] = v.reshape(n, 6)
        self._lam[:] = lam[: len(self._lam)]
