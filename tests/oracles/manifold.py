"""Motion and statics on a manifold of joint coordinates: dense matrices, definitions, differences.

    q = move(q0, s),   s(y) = Φ y + ½ Ψ(y, y) + C μ,   μ(y) closes loops and couplings
    q̇ = B(s) T(y) v,   T = A - C (G B C)⁻¹ G B A,   A = Φ + Ψ(y, ·)

with B the identity on hinges and slides and the right Jacobian of SO(3) on balls. Poses and Jacobians go joint by joint
along the tree as the description of the mechanism says, without the links and kernels of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import pliant
from oracles import dense
from pliant.mechanism.joints import BALL, HINGE
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, FOLLOWER_TORQUE, FORCE, LINK, POINT, TORQUE
from pliant.statics.loads import Loads, load_rows, parse_wrenches


def hat(v) -> np.ndarray:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def cross(a, b) -> np.ndarray:
    return hat(a) @ b  # several times faster than numpy's


def right_jacobian(s) -> np.ndarray:
    """Body angular velocity per rate of the rotation vector s."""
    square, across = float(s @ s), hat(s)
    if square < 1e-4:
        a = 1 / 2 - square * (1 / 24 - square * (1 / 720 - square / 40320))
        b = 1 / 6 - square * (1 / 120 - square * (1 / 5040 - square / 362880))
    else:
        angle = np.sqrt(square)
        a, b = (1 - np.cos(angle)) / square, (angle - np.sin(angle)) / (square * angle)
    return np.eye(3) - a * across + b * across @ across


def rotation_log(q) -> np.ndarray:
    """Rotation vector of a unit quaternion, the shorter way round."""
    w, v = (q[0], q[1:]) if q[0] >= 0 else (-q[0], -np.asarray(q[1:]))
    sine = np.linalg.norm(v)
    return v * (2 * np.arctan2(sine, w) / sine if sine > 1e-12 else 2.0)


def between(a, b) -> np.ndarray:
    """The quaternion conj(a) b."""
    w, v = a[0], -np.asarray(a[1:])
    return np.r_[w * b[0] - v @ b[1:], w * b[1:] + b[0] * v + cross(v, b[1:])]


def balls(m: pliant.Mechanism) -> list[tuple[slice, slice]]:
    """Dofs and coordinates of every ball."""
    starts = [(int(m.primitive_dof[p]), int(m.primitive_coordinate[p])) for p in m.ball_primitives]
    return [(slice(d, d + 3), slice(c, c + 4)) for d, c in starts]


def difference(m: pliant.Mechanism, start, end) -> np.ndarray:
    """Tangent vector from `start` to `end`: differences, and rotation vectors of balls in the frame of `start`."""
    out = np.asarray(end)[m.dof_coordinate] - np.asarray(start)[m.dof_coordinate]
    for d, c in balls(m):
        out[d] = rotation_log(between(start[c], end[c]))
    return out


class Kinematics:
    """Poses and Jacobians at q, joint by joint along the solver's spanning tree.

    Attributes:
        poses: of bodies, (bodies, 4, 4).
        jacobians: velocity of every body's origin and its angular velocity, world axes, per dof, (bodies, 6, nv).
        gaps: of loops (position, rotation vector from body to copy; world axes), then errors of couplings.
        rows: velocity of loops' copies minus that of their bodies, then coefficients of couplings.
    """

    def __init__(self, m: pliant.Mechanism, q):
        tree = m.solved_tree
        backwards = set(tree.backwards.tolist())
        world = np.eye(4), np.zeros((6, m.nv))  # pose, and twist of the frame at the world's origin
        known = {-1: world}
        for j in tree.tree.tolist():
            parent, child = int(m.joint_parents[j]), int(m.joint_children[j])
            if j in backwards:
                known[parent] = through_joint(m, j, q, *known[child], backwards=True)
            else:
                known[child] = through_joint(m, j, q, *known[parent])
        self.poses = np.array([known[b][0] for b in range(m.body_count)])
        self.jacobians = np.array([at_origin(*known[b]) for b in range(m.body_count)])
        gaps, rows = [np.zeros(0)], [np.zeros((0, m.nv))]
        for j in tree.chords.tolist():
            copy = through_joint(m, j, q, *known[int(m.joint_parents[j])])
            body = known[int(m.joint_children[j])]
            turn = dense.rotation_vector(copy[0][:3, :3] @ body[0][:3, :3].T)
            gaps.append(np.r_[copy[0][:3, 3] - body[0][:3, 3], turn])
            rows.append(at_origin(*copy) - at_origin(*body))
        coupled = m.couplings.dense(m.nv)
        self.gaps = np.concatenate([*gaps, coupled @ np.asarray(q)[m.dof_coordinate] - m.coupling_offset])
        self.rows = np.concatenate([*rows, coupled])


def through_joint(m, j, q, pose, twist, backwards=False):
    """Pose and spatial twist beyond a joint, from those before it."""
    twist, at, d = twist.copy(), m.joint_coordinates(j).start, m.joint_dofs(j).start
    # From the parent's joint frame; backwards, the same frame is found from the child's side.
    frame = pose @ (np.linalg.inv(dense.joint_transform(m, j, q)) if backwards else np.eye(4))
    out, frame = frame, frame @ m.parent_frames[j]
    part = m.joint_primitives(j)
    for p in range(part.start, part.stop):
        axis, anchor, kind = m.primitive_axis[p], m.primitive_anchor[p], m.primitive_kind[p]
        move = np.eye(4)
        if kind == BALL:
            move[:3, :3] = dense.quaternion_matrix(q[at : at + 4])
        elif kind == HINGE:
            turn = hat(axis)
            move[:3, :3] += np.sin(q[at]) * turn + (1 - np.cos(q[at])) * turn @ turn
        else:
            move[:3, 3] = q[at] * axis
        if kind in (BALL, HINGE):
            move[:3, 3] = anchor - move[:3, :3] @ anchor
        frame = frame @ move
        for own in np.eye(3) if kind == BALL else [axis]:
            direction = frame[:3, :3] @ own
            if kind in (BALL, HINGE):
                point = frame[:3, :3] @ anchor + frame[:3, 3]
                screw = np.r_[cross(point, direction), direction]
            else:
                screw = np.r_[direction, 0, 0, 0]
            twist[:, d] += -screw if backwards else screw
            d += 1
        at += 4 if kind == BALL else 1
    return (out if backwards else frame @ np.linalg.inv(m.child_frames[j])), twist


def at_origin(pose, twist):
    """Velocity of a frame's origin and its angular velocity, from its twist at the world's origin."""
    return np.concatenate([twist[:3] - hat(pose[:3, 3]) @ twist[3:], twist[3:]])


def stop_force(x, w, k):
    """Force of a limit spring x beyond its begin."""
    return 0.0 if x <= 0 else k * x * x / (2 * w) if x < w else k * (x - w / 2)


def stop_energy(x, w, k):
    return 0.0 if x <= 0 else k * x**3 / (6 * w) if x < w else k * (w * w / 6 + (x - w) * x / 2)


class DenseManifold:
    """Statics and motion of a mechanism on the manifold.

    Args:
        m, q0: the mechanism and the configuration at y = 0.
        basis: Φ, (nv, k).
        loads: loads beside the wrenches of `forces`, rest positions of springs and tendons, limit springs.
        closing: C, (nv, r); none without loops and couplings.
        rows: indices of r rows of loops and couplings that are independent at q0.
        curvature: Ψ, (k, k, nv); none is zero.
    """

    def __init__(self, m: pliant.Mechanism, q0, basis, loads: Loads, closing=None, rows=None, curvature=None):
        self.m, self.q0, self.loads = m, np.array(q0, float), loads
        self.basis = np.array(basis, float)
        self.k = self.basis.shape[1]
        self.rows = np.zeros(0, int) if rows is None else np.asarray(rows, int)
        self.closing = np.zeros((m.nv, len(self.rows))) if closing is None else np.array(closing, float)
        self.curvature = np.zeros((self.k, self.k, m.nv)) if curvature is None else np.array(curvature, float)
        loops = 6 * m.topology.loops
        self.gap_unit = np.ones(loops + len(m.couplings))
        self.gap_unit[:loops].reshape(-1, 6)[:, :3] = m.radius
        self._last = None  # y and s(y)
        # Differences of y along each coordinate that move joints by 1e-3, radians and radii
        self.step = 1e-3 / np.abs(self.basis / m.dof_unit[:, None]).max(axis=0)

    # --- the manifold

    def open_chart(self, y) -> np.ndarray:
        """Φ y + ½ Ψ(y, y)."""
        return self.basis @ y + 0.5 * np.einsum("ijd,i,j->d", self.curvature, y, y)

    def chart_jacobian(self, s) -> np.ndarray:
        """B(s), (nv, nv)."""
        out = np.eye(self.m.nv)
        for d, _ in balls(self.m):
            out[d, d] = right_jacobian(s[d])
        return out

    def chart(self, y) -> np.ndarray:
        """s(y), loops closed by Newton's method on μ; along a path from 0 where that fails at once."""
        y = np.array(y, float)
        if self._last is not None and np.array_equal(self._last[0], y):
            return self._last[1]
        for pieces in (1, 4, 16, 64):
            mu = np.zeros(len(self.rows))
            for i in range(1, pieces + 1):
                mu = self._close(self.open_chart(y * (i / pieces)), mu)
                if mu is None:
                    break
            else:
                self._last = y, self.open_chart(y) + self.closing @ mu
                return self._last[1]
        raise ArithmeticError("loops do not close on the manifold")

    def _close(self, s, mu):
        if not len(self.rows):
            return mu
        previous = np.inf
        for _ in range(30):
            here = s + self.closing @ mu
            at = Kinematics(self.m, dense.move(self.m, self.q0, here))
            gap = float(np.abs((at.gaps / self.gap_unit)[self.rows]).max())
            if gap < 1e-15 or (gap < 1e-11 and gap >= 0.5 * previous):
                return mu
            if not gap < max(2 * previous, 0.0) or gap > 3.0:
                return None
            previous = gap
            side = (at.rows @ self.chart_jacobian(here) @ self.closing)[self.rows]
            mu = mu - np.linalg.solve(side, at.gaps[self.rows])
        return None

    def joints(self, y) -> np.ndarray:
        """q(y)."""
        return dense.move(self.m, self.q0, self.chart(y))

    def tangent(self, y) -> np.ndarray:
        """B T: joint rates per rate of y, (nv, k)."""
        s = self.chart(y)
        B = self.chart_jacobian(s)
        A = self.basis + np.einsum("ijd,i->dj", self.curvature, y)
        if len(self.rows):
            G = (Kinematics(self.m, dense.move(self.m, self.q0, s)).rows @ B)[self.rows]
            A = A - self.closing @ np.linalg.solve(G @ self.closing, G @ A)
        return B @ A

    def tangent_by_differences(self, y) -> np.ndarray:
        """The same from differences of q(y)."""
        q = self.joints(y)
        return self._differences(lambda z: difference(self.m, q, self.joints(z)), y).T

    def _differences(self, f, y) -> np.ndarray:
        """Derivative of f, one row per coordinate: central differences with one Richardson step, error O(h⁴)."""
        out = []
        for e in np.diag(self.step):
            d1, d2 = (
                (np.asarray(f(y + n * e)) - np.asarray(f(y - n * e))) / (2 * n * e.max()) for n in (1, 2)
            )
            out.append((4 * d1 - d2) / 3)
        return np.array(out)

    def gaps(self, y) -> np.ndarray:
        """All gaps of loops and couplings, radians and radii: also those of rows that were left out."""
        return Kinematics(self.m, self.joints(y)).gaps / self.gap_unit

    # --- forces

    def _stretch(self, q):
        """Spring coordinates x, stretch of springs, and derivative of x along tangent vectors."""
        m, rest = self.m, self.loads.rest
        x, slope = q[m.dof_coordinate], np.eye(m.nv)
        stretch = x - rest[m.dof_coordinate]
        for d, c in balls(m):
            x[d] = stretch[d] = rotation_log(between(rest[c], q[c]))
            slope[d, d] = np.linalg.inv(right_jacobian(x[d]))
        return x, stretch, slope

    def potential(self, y) -> float:
        """Energy of springs, tendons and limit springs, and of forces fixed in the world among `loads`, J."""
        m, q = self.m, self.joints(y)
        x, stretch, _ = self._stretch(q)
        total = 0.5 * m.stiffness @ stretch**2
        total += 0.5 * m.tendon_stiffness @ (m.tendons.dense(m.nv) @ x - self.loads.tendon_rest) ** 2
        poses = Kinematics(m, q).poses
        for row in self.loads.rows:
            assert not row[TORQUE:POINT].any()
            assert not row[FOLLOWER_FORCE:ACTS].any()
            pose = poses[m.links.body[int(row[LINK])]]
            point = pose[:3, :3] @ row[POINT:FOLLOWER_FORCE] + pose[:3, 3]
            total -= row[FORCE:TORQUE] @ point
        for value, d, _ in self._beyond_limits(q):
            total += stop_energy(value, self.loads.stops.margin[d], self.loads.stops.stiffness[d])
        return float(total)

    def _beyond_limits(self, q):
        """Per limit spring: how far its begin is passed, its dof, and its direction in tangent vectors."""
        m, stops = self.m, self.loads.stops
        if stops is None:
            return
        for d in np.flatnonzero(m.dof_kind != BALL).tolist():
            for sign, limit in ((1.0, stops.high[d]), (-1.0, stops.low[d])):
                side = np.zeros(m.nv)
                side[d] = sign
                if np.isfinite(limit):
                    yield sign * (q[m.dof_coordinate[d]] - limit), d, side
        for d, c in balls(m):
            turn = rotation_log(q[c])
            angle = float(np.linalg.norm(turn))
            side = np.zeros(m.nv)
            side[d] = turn / angle if angle > 0 else 0.0
            yield angle - stops.high[d.start], d.start, side

    def joint_forces(self, q, rates, wrenches: Mapping[str, Any] | None = None) -> np.ndarray:
        """Generalised forces on all dofs, (nv,): springs, limit springs, damping, loads and wrenches."""
        m, loads = self.m, self.loads
        x, stretch, slope = self._stretch(q)
        tendons = m.tendons.dense(m.nv)
        tension = m.tendon_stiffness * (tendons @ x - loads.tendon_rest)
        tension = tension + m.tendon_damping * (tendons @ (slope @ rates))
        out = -slope.T @ (m.stiffness * stretch + tendons.T @ tension) - m.damping * rates
        for value, d, side in self._beyond_limits(q):
            out -= stop_force(value, loads.stops.margin[d], loads.stops.stiffness[d]) * side
        at = Kinematics(m, q)
        given = load_rows(parse_wrenches(m, wrenches or {}), m.links.body_link)
        for row in np.concatenate([loads.rows, given]):
            b = int(m.links.body[int(row[LINK])])
            turn = at.poses[b, :3, :3]
            force, lever = row[FORCE:TORQUE], turn @ row[POINT:FOLLOWER_FORCE]
            torque = row[TORQUE:POINT] + cross(lever, force) + turn @ row[FOLLOWER_TORQUE:ACTS]
            force = force + turn @ row[FOLLOWER_FORCE:FOLLOWER_TORQUE]
            out += at.jacobians[b].T @ np.r_[force, torque]
        return out

    def forces(self, y, v=None, wrenches: Mapping[str, Any] | None = None) -> np.ndarray:
        """Generalised forces on y without those of inertia, (k,)."""
        v = np.zeros(self.k) if v is None else np.asarray(v, float)
        T = self.tangent(y)
        return T.T @ self.joint_forces(self.joints(y), T @ v, wrenches)

    # --- motion

    def mass(self, y) -> np.ndarray:
        """Inertia, (k, k): sum of Jᵀ M J over bodies, and armature."""
        m, T = self.m, self.tangent(y)
        at = Kinematics(m, self.joints(y))
        out = T.T @ (m.armature[:, None] * T)
        for b in range(m.body_count):
            turn, J = at.poses[b, :3, :3], at.jacobians[b] @ T
            centre = J[:3] - hat(turn @ m.com[b]) @ J[3:]
            out += m.mass[b] * centre.T @ centre + J[3:].T @ (turn @ m.inertia[b] @ turn.T) @ J[3:]
        return out

    def kinetic(self, y, v) -> float:
        """Kinetic energy, J."""
        return float(0.5 * v @ self.mass(y) @ v)

    def acceleration(self, y, v, wrenches: Mapping[str, Any] | None = None) -> np.ndarray:
        """v̇ from Lagrange's equations, M v̇ + Ṁ v - ½ ∂(v M v)/∂y = forces; ∂M/∂y by differences."""
        y, v = np.asarray(y, float), np.asarray(v, float)
        change = self._differences(self.mass, y)  # (k, k, k), first the coordinate
        bias = np.einsum("i,ijl,l->j", v, change, v) - 0.5 * np.einsum("i,jil,l->j", v, change, v)
        return np.linalg.solve(self.mass(y), self.forces(y, v, wrenches) - bias)

    # --- statics

    def equilibrium(
        self, wrenches: Mapping[str, Any] | None = None, steps: int = 1, start: np.ndarray | None = None
    ) -> np.ndarray:
        """y at which forces vanish, the wrenches applied in `steps`, in more where Newton's method fails."""
        while steps <= 256:
            y = np.zeros(self.k) if start is None else np.array(start, float)
            for i in range(1, steps + 1):
                y = self._balance(y, scaled(self.m, wrenches or {}, i / steps))
                if y is None:
                    break
            else:
                return y
            steps *= 4
        raise ArithmeticError("no equilibrium on the manifold")

    def _balance(self, y, wrenches):
        """Damped Newton's method, derivative by differences; None if it does not converge."""
        try:
            force = self.forces(y, None, wrenches)
            for _ in range(60):
                slope = self._differences(lambda z: self.forces(z, None, wrenches), y).T
                move = -np.linalg.solve(slope, force)
                far = np.abs(self.basis @ move / self.m.dof_unit).max()
                length = min(1.0, 0.3 / max(far, 1e-300))
                size = np.abs(force).max()
                if length == 1.0 and np.abs(move / self.step).max() < 1e-8:
                    return y + move
                for _ in range(8):
                    trial = self.forces(y + length * move, None, wrenches)
                    if (
                        np.abs(trial).max() < (1 - 0.1 * length) * size
                        or np.abs(move / self.step).max() < 1e-3
                    ):
                        break
                    length /= 2
                y, force = y + length * move, trial
        except ArithmeticError:
            return None
        return None


def scaled(m: pliant.Mechanism, wrenches: Mapping[str, Any], fraction: float) -> dict[str, Any]:
    """The same wrenches, as a fraction."""
    out = {}
    for index, load in parse_wrenches(m, wrenches).items():
        out[m.body_names[index]] = {
            "force": fraction * load.force,
            "torque": fraction * load.torque,
            "point": load.point,
            "frame": load.frame,
        }
    return out


def dense_closing(
    m: pliant.Mechanism, q, stiffness: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Independent rows (r,) at q, and C (nv, r): of all motions that move row i by 1 the one of least energy.

    Args:
        m, q: the mechanism, at a configuration at which loops close.
        stiffness: K, (nv, nv), positive definite on closed motions; the identity in radians and radii if None.
    """
    from scipy.linalg import null_space, qr

    unit = m.dof_unit
    rows = Kinematics(m, q).rows
    scale = np.ones(len(rows))
    scale[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] /= m.radius
    scaled_rows = scale[:, None] * rows * unit
    if not len(rows):
        return np.zeros(0, int), np.zeros((m.nv, 0))
    found: Any = qr(scaled_rows.T, pivoting=True, mode="economic")
    _, r, order = found
    size = np.abs(np.diag(r))
    chosen = np.sort(order[: int((size > 1e-9 * size[0]).sum())])
    K = np.diag(1 / unit**2) if stiffness is None else stiffness
    some = unit[:, None] * (np.linalg.pinv(scaled_rows[chosen]) * scale[chosen])
    Z = unit[:, None] * null_space(scaled_rows[chosen], rcond=1e-9)
    return chosen, some - Z @ np.linalg.solve(Z.T @ K @ Z, Z.T @ K @ some)
