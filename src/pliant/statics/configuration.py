"""`Configuration`: a mechanism at given joint coordinates: poses, Jacobians, compliance, frequencies, forces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import choice, instance, whole
from pliant.mechanism import Mechanism, edit, kinematics
from pliant.mechanism.joints import BALL
from pliant.read_only import read_only
from pliant.statics.loads import Loads
from pliant.text import table

if TYPE_CHECKING:
    from pliant.statics.tangent import Tangent

__all__ = ["Configuration"]

_INSIDE = 1e-9  # rad or radii: displacements below are rounding

Floats = NDArray[np.float64]


class Configuration:
    """Joint coordinates of a mechanism, with poses, Jacobians and, after `pliant.equilibrium`, forces.

    Attributes:
        mechanism: the mechanism.
        q: joint coordinates, in joint order; balls as quaternions (w, x, y, z).
        residual: largest unbalanced force as a fraction of the load; None if no equilibrium was asked for.
        stability: "stable", "neutral" (some motion meets no stiffness), "unstable", or None.
        iterations: Newton iterations the equilibrium took.
        wrenches, gravity: the loads it is in equilibrium with, as they were given.
        loads: these loads as arrays, or None.
        multipliers: constraint forces of loops (6 each, world axes) and couplings.
    """

    def __init__(self, mechanism: Mechanism, q: Mapping[str, ArrayLike] | ArrayLike | None = None):
        """A configuration by coordinates: `{joint or dof: value}`, a whole q, or the reference pose."""
        instance(mechanism, Mechanism, "mechanism")
        rows = 6 * mechanism.topology.loops + len(mechanism.couplings)
        self._set(mechanism, edit.coordinates(mechanism, {} if q is None else q), np.zeros(rows), None)

    def _set(self, mechanism: Mechanism, q: Floats, multipliers: Floats, loads: Loads | None) -> None:
        self.mechanism = mechanism
        self.q = read_only(q)
        self.residual: float | None = None
        self.stability: str | None = None
        self.iterations = 0
        self.wrenches: dict[str, Any] = {}
        self.gravity: tuple[float, ...] | None = None
        self.loads = loads
        self.multipliers = multipliers

    @classmethod
    def known(
        cls, mechanism: Mechanism, q: Floats, multipliers: Floats, loads: Loads | None = None
    ) -> Configuration:
        """A configuration from a solver's results, which are not checked again."""
        out = cls.__new__(cls)
        out._set(mechanism, q, multipliers, loads)
        return out

    @cached_property
    def joint_forces(self) -> Floats | None:
        """Wrench through each joint on its child, child's frame, (joints, 6); None if not an equilibrium."""
        if self.loads is None:
            return None
        t = self._tangent()
        return kinematics.joint_wrenches(self.mechanism, t.poses, t.wrench)

    @cached_property
    def link_poses(self) -> Floats:
        """World poses of all links, virtual ones included."""
        return kinematics.link_poses(self.mechanism, self.q)

    @cached_property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4)."""
        return read_only(self.link_poses[self.mechanism.links.body_link])

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4."""
        index = self.mechanism.body_index(body)
        return np.eye(4) if index < 0 else self.poses[index]

    def __getitem__(self, name: str) -> Any:
        """Coordinate of a joint or dof: a number, or an array for a joint with several."""
        values = self.q[edit.named_coordinates(self.mechanism, name)]
        return float(values[0]) if len(values) == 1 else values.copy()

    def jacobian(self, body: str, frame: str = "body") -> Floats:
        """Twist of a body per dof, (6, nv), linear part first.

        Args:
            body: its name.
            frame: "body" for the body frame; "world" for the velocity of its origin, world axes.

        In a mechanism with loops the dofs are those of all joints; motions must also satisfy `loop_jacobian`.
        """
        choice(frame, "frame", ("body", "world"))
        m = self.mechanism
        index = m.body_index(body)
        if index < 0:
            return np.zeros((6, m.nv))
        rows = kinematics.link_jacobian(m, self.link_poses, int(m.links.body_link[index]))
        if frame == "body":
            rotation = self.poses[index, :3, :3].T
            rows = np.concatenate([rotation @ rows[:3], rotation @ rows[3:]])
        return rows

    def mass_matrix(self) -> Floats:
        """Joint-space inertia (nv, nv), armature included. Dofs of loop-closing joints carry no mass of their own."""
        from pliant.statics.inertia import Inertia

        return Inertia(self.mechanism, self.q).dense()

    @property
    def loop_residual(self) -> Floats:
        """Gaps of loops, (loops, 6): position and rotation vector, world axes."""
        gaps = kinematics.constraint_gaps(self.mechanism, self.q, self.link_poses)
        return gaps[: 6 * self.mechanism.topology.loops].reshape(-1, 6)

    @property
    def loop_jacobian(self) -> Floats:
        """Derivative of loop residuals and couplings along tangent vectors, (6 loops + couplings, nv)."""
        return kinematics.constraint_rows(self.mechanism, self.link_poses)

    @property
    def loop_forces(self) -> dict[str, Floats]:
        """Per loop-closing joint, the wrench it puts on its child at the child's origin, world axes, linear first."""
        m = self.mechanism
        names = [m.joint_names[j] for j in m.solved_tree.chords.tolist()]
        return dict(zip(names, self.multipliers[: 6 * len(names)].reshape(-1, 6).copy(), strict=True))

    def compliance(self, *bodies: str) -> Floats:
        """Compliance of bodies: small twists (body frames, linear first) per wrench at their origins.

        Args:
            bodies: e names; the mechanism's end effectors if none are given.

        Returns:
            The (6e, 6e) matrix, exact for any topology, with the geometric stiffness of the loads of an equilibrium.

        Raises:
            InputError: a spring-less direction lets a body move freely, so its compliance is infinite.
        """
        from pliant.statics.tangent import static_response

        rows = np.concatenate([self.jacobian(body) for body in bodies or self.mechanism.end_effectors])
        motion, _ = static_response(self._tangent(), rows)
        return rows @ motion.T

    def frequencies(self, count: int = 6) -> Floats:
        """The lowest natural frequencies about this configuration, Hz, undamped; fewer if there are fewer.

        Loops, couplings, tendons and the geometric stiffness of an equilibrium's loads are included.

        Raises:
            InputError: some motion meets no stiffness; give it some with `with_stiffness`.
        """
        from pliant.statics.inertia import Inertia
        from pliant.statics.modes import natural_modes
        from pliant.statics.tangent import static_response

        m, tangent = self.mechanism, self._tangent()
        count = whole(count, "frequencies", 1, expected="a count of at least 1")
        static_response(
            tangent, np.cos(np.arange(1, m.nv + 1) * 1.7)[None]
        )  # raises if some motion meets no stiffness
        inertia = Inertia(m, self.q)
        speed, _ = natural_modes(inertia, lambda f: tangent.solve(f, exact=True)[0], min(count, m.nv))
        return speed / (2 * np.pi)

    def _tangent(self) -> Tangent:
        from pliant.statics.loads import collect_loads
        from pliant.statics.tangent import Tangent

        loads = collect_loads(self.mechanism, None, None) if self.loads is None else self.loads
        return Tangent(self.mechanism, self.q, loads, self.multipliers)

    @property
    def limits(self) -> bool:
        """Whether it is an equilibrium with joint limits enforced."""
        return self.loads is not None and self.loads.stops is not None

    @property
    def displacement(self) -> Floats:
        """Distance of every body's origin from its reference position, m."""
        return np.linalg.norm(self.poses[:, :3, 3] - self.mechanism.reference_poses[:, :3, 3], axis=1)

    @property
    def rotation(self) -> Floats:
        """Angle of every body from its reference orientation, rad."""
        reference = self.mechanism.reference_poses[:, :3, :3]
        return np.linalg.norm(spatial.so3_log(reference.transpose(0, 2, 1) @ self.poses[:, :3, :3]), axis=-1)

    @property
    def beyond_limits(self) -> tuple[str, ...]:
        """Dofs outside their limits. `pliant.equilibrium` keeps them inside with `limits=True`."""
        return self._names(_excess(self.mechanism, self.q) > 0)

    @property
    def passed_limits(self) -> tuple[str, ...]:
        """Dofs farther outside their limits than at the reference pose, from which files may have them begin."""
        m = self.mechanism
        begun = _excess(m, m.reference) + _INSIDE * m.dof_unit
        return self._names(_excess(m, self.q) > begun)

    @property
    def at_stops(self) -> tuple[str, ...]:
        """Dofs that have gone into the stops at their limits, which hold them with `limits=True`."""
        from pliant.statics.limit_springs import make_stops

        m = self.mechanism
        stops = (self.loads and self.loads.stops) or make_stops(m)
        value = _values(m, self.q)
        beyond = np.maximum(stops.low - value, value - stops.high)
        return self._names(beyond > _INSIDE * m.dof_unit)

    def _names(self, dofs: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(self.mechanism.dof_names[d] for d in np.flatnonzero(dofs))

    def summary(self) -> str:
        """A table of the end effectors: positions, displacements, rotations."""
        m = self.mechanism
        rows = []
        for body in m.end_effectors[:20]:
            i = m.body_index(body)
            x, y, z = self.poses[i, :3, 3]
            rows.append(
                [
                    body,
                    f"{x:.5f}",
                    f"{y:.5f}",
                    f"{z:.5f}",
                    f"{self.displacement[i]:.5f}",
                    f"{np.degrees(self.rotation[i]):.3f}",
                ]
            )
        head = f"{m.name}: " + (
            "configuration"
            if self.residual is None
            else f"{self.stability} equilibrium, residual {self.residual:.1e} of the load, {self.iterations} iterations"
        )
        if m.topology.loops:
            head += f", loops closed to {np.abs(self.loop_residual).max():.1e}"
        return (
            head
            + "\n\n"
            + table(["end effector", "x (m)", "y (m)", "z (m)", "moved (m)", "turned (deg)"], rows)
        )

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """A picture; see `pliant.picture`."""
        from pliant.viewer import picture

        return picture(self, path, **options)

    def _repr_png_(self) -> bytes:
        from pliant.viewer.picture import png

        return png(self)

    def __repr__(self) -> str:
        state = "" if self.residual is None else f", {self.stability}, residual {self.residual:.1e}"
        return f"<Configuration of '{self.mechanism.name}'{state}>"


def _values(m: Mechanism, q: Floats) -> Floats:
    """Coordinates per dof, (nv,); of balls their angle of rotation, three times."""
    value = q[m.dof_coordinate]
    for p in m.ball_primitives:
        quaternion = q[m.primitive_coordinate[p] : m.primitive_coordinate[p] + 4]
        value[m.primitive_dof[p] : m.primitive_dof[p] + 3] = np.linalg.norm(spatial.quat_log(quaternion))
    return value


def _excess(m: Mechanism, q: Floats) -> Floats:
    """How far dofs are outside their limits, (nv,), rad or m; 0 inside."""
    value = _values(m, q)
    lower = np.where(m.dof_kind == BALL, -np.inf, m.lower)
    return np.maximum(np.maximum(lower - value, value - m.upper), 0.0)
