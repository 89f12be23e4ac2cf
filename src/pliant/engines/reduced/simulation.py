"""`ReducedSimulation`: a reduced or blended model in motion, with the pose of every link after every step."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.engines.arguments import whole
from pliant.engines.reduced import _kernels
from pliant.engines.reduced.actor import ReducedActor
from pliant.engines.reduced.arguments import check_alike, check_arguments
from pliant.engines.reduced.arrays import pack
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.coordinates import Amplitudes, StaticWrenches
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.simulation import Effort, Simulation, free_coordinates, free_rates, matching_motion
from pliant.errors import InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.statics.energy import elastic_energy, gravity_energy
from pliant.statics.loads import LOAD_SIZE, Load

__all__ = ["ReducedSimulation"]

Floats = NDArray[np.float64]


class ReducedSimulation(Simulation):
    """Backward Euler on a reduced model (TVCG Eq. 23), all poses included, in about a microsecond a step.

    Wrenches act on end effectors. Motors of single models act through the model's basis: end effectors go where the
    torque puts them in the whole mechanism, to first order; blends take none. A model with a floating base moves as a
    rigid body of the whole mechanism's mass besides (TVCG section 6.1).

    Example:
        >>> import pliant
        >>> tip = "link50"
        >>> simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.helix(50), tip), 1 / 60)
        >>> simulation.apply_wrench(tip, force=(0, 0, -50))
        >>> simulation.step(60)
        >>> round(simulation.time, 6)
        1.0
    """

    __slots__ = (
        "_advance_at",
        "_arrays",
        "_at",
        "_base",
        "_map",
        "_model",
        "_moving",
        "_packed",
        "_places",
        "_plain",
        "_pool",
        "_rates",
        "_reconstruction",
        "_room",
        "_shown",
        "_state",
        "_steady",
        "_threads",
        "_twin",
        "_wrench_rows",
        "_y",
    )

    def __init__(
        self,
        model: ReducedModel | BlendedModel,
        timestep: float,
        reconstruction: str = "joint",
        gravity: ArrayLike | None = None,
        threads: int = 1,
    ):
        """Start at rest where the model was linearised.

        Args:
            model: from `pliant.reduce` or `pliant.blend`.
            timestep: seconds.
            reconstruction: how links follow: "joint", by joint displacements and forward kinematics, so that joints
                never come apart; or "twist", TVCG's, every body by itself.
            gravity: m/s², what a floating base falls with; (0, 0, -9.81) by default. A fixed mechanism under gravity
                is reduced at its equilibrium instead.
            threads: among which to share bodies out, for "twist"; pays from some ten thousand bodies on.
        """
        down = check_arguments(model, timestep, reconstruction, gravity)
        self._reconstruction, threads = reconstruction, whole(threads, "threads", 1)
        if threads > 1 and reconstruction != "twist":
            raise InputError('threads are for reconstruction="twist": joints depend on those before them')
        if threads > 1 and isinstance(model, BlendedModel):
            raise InputError("threads are for a single model: a blend reconstructs its bodies on one")
        self._threads, self._pool = threads, ThreadPoolExecutor(threads) if threads > 1 else None
        self._begin(_whole(model), timestep, down)
        self._twin: ReducedSimulation | None = None
        self._set_model(model)
        self._started()

    def _set_model(self, model: ReducedModel | BlendedModel) -> None:
        self._model, self._mechanism, self._mark = model, _whole(model), 0
        self._packed = packed = pack(model, self._timestep, self._reconstruction, self._gravity)
        self._arrays, self._places = packed.arrays, packed.places()
        self._at, self._advance_at = self._places.ctypes.data, packed.kernels.advance_at
        self._state, self._map = packed.state, packed.coordinates
        n, first = packed.coordinates.count, int(packed.sizes[_kernels.STEADY])
        self._y, self._rates = packed.state[1 : 1 + n], packed.state[1 + n : 1 + 2 * n]
        self._steady = packed.constants[first : first + n]
        self._plain = self._steady.copy()
        moving, work = packed.sizes[_kernels.WRENCH], packed.sizes[_kernels.WORK]
        self._moving = packed.state[:moving]
        self._base = packed.state[packed.sizes[_kernels.BASE_STATE] : moving]
        self._wrench_rows = packed.state[moving:work].reshape(-1, LOAD_SIZE)
        self._room = packed.poses[: model.mechanism.body_count]
        self._shown = self._room.view()
        self._shown.flags.writeable = False

    @property
    def engine(self) -> str:
        """ "reduced", or "blended"."""
        return "blended" if isinstance(self._model, BlendedModel) else "reduced"

    @property
    def model(self) -> ReducedModel | BlendedModel:
        """The model in motion."""
        return self._model

    @property
    def coordinates(self) -> Floats:
        """Coordinates of the model, (n,): displacements along its basis, or static wrenches of a blend; settable."""
        return self._y.copy()

    @coordinates.setter
    def coordinates(self, value: ArrayLike) -> None:
        self._y[:] = self._checked(value, "coordinates")
        self._reconstruct()

    @property
    def rates(self) -> Floats:
        """Rates of the coordinates, 1/s, (n,); settable."""
        return self._rates.copy()

    @rates.setter
    def rates(self, value: ArrayLike) -> None:
        self._rates[:] = self._checked(value, "rates")

    def _checked(self, value: ArrayLike, what: str) -> Floats:
        given = np.asarray(value, dtype=np.float64)
        if given.shape != self._y.shape or not np.isfinite(given).all():
            raise InputError(f"{what}: {len(self._y)} finite numbers expected, got shape {given.shape}")
        return given

    # --- hooks of the protocol

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return float(self._state[0])

    def _clock(self) -> tuple[float, int]:
        return self.time, 0

    def _set_clock(self, origin: float, steps: int = 0) -> None:
        self._state[0] = origin

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4); read-only, changed by the next step."""
        return self._shown

    def _body_poses(self) -> Floats:
        return self._room.copy()

    def _advance(self, n: int) -> int:
        done = self._advance_at(n, self._pool is not None, self._at)
        if self._pool is not None:
            self._reconstruct()
        return done

    def _why(self) -> str:
        return (
            f"the model left the finite numbers at t = {self.time:.6g} s: "
            "are the wrenches as large as you meant, and was the model made at a stable equilibrium?"
        )

    def _read(self) -> Floats:
        return self._moving[1:].copy()

    def _write(self, values: Floats) -> None:
        self._moving[1:] = values
        self._reconstruct()

    def _identity(self) -> tuple[str, ...]:
        models = self._model.models if isinstance(self._model, BlendedModel) else (self._model,)
        return (*self._model.end_effectors, *(model.compliance.tobytes().hex() for model in models))

    def _options(self) -> dict[str, Any]:
        gravity = self._gravity if self._model.base is not None else None
        return {
            "model": self._model,
            "timestep": self._timestep,
            "reconstruction": self._reconstruction,
            "gravity": gravity,
            "threads": self._threads,
        }

    def _loadable(self, body: str) -> int:
        return self._mechanism.body_index(self._model.end_effectors[self._model.index(body)])

    def _set_load(self, index: int, load: Load) -> None:
        load.write(self._wrench_rows[self._model.index(self._mechanism.body_names[index])])

    def _set_loads(self, loads: Mapping[int, Load]) -> None:
        self._wrench_rows[:] = 0.0
        for index, load in loads.items():
            self._set_load(index, load)

    def _set_torque(self, torque: Floats) -> None:
        """Motor torques are folded into the constant term of the step: no cost per step."""
        if not isinstance(self._map, Amplitudes):
            if torque.any():
                raise InputError("motors are for a single model: a blend takes wrenches on its end effectors")
            return
        own = self._own_dofs()
        if torque.any() and not own.all() and torque[~own].any():
            raise InputError("motors of a floating base have no effect: drive the joints")
        self._steady[:] = self._plain + self._timestep * (
            self._map.inverse @ (torque[own] @ self._map.model.basis)
        )

    def _own_dofs(self) -> NDArray[np.bool_]:
        """Which dofs of the mechanism the model has: all but those of a floating base."""
        out = np.ones(self._mechanism.nv, dtype=bool)
        if self._model.base is not None:
            out[self._mechanism.joint_dofs(self._base_joint())] = False
        return out

    def _base_joint(self) -> int:
        m, base = self._mechanism, self._model.base
        assert base is not None
        return int(m.topology.tree_joint[m.body_index(base.body)])

    def _motion(self) -> tuple[Floats, Floats]:
        joints, rates = self._map.joints(self._y), self._map.joint_rates(self._y, self._rates)
        if self._model.base is None:
            return joints, rates
        m, j = self._mechanism, self._base_joint()
        q, own = m.reference.copy(), np.ones(m.nq, dtype=bool)
        own[m.joint_coordinates(j)] = False
        q[own] = joints
        pose = self.pose(self._model.base.body)
        q[m.joint_coordinates(j)] = free_coordinates(m, j, pose)
        out = np.zeros(m.nv)
        out[self._own_dofs()] = rates
        # Rates of the free joint, from the twist of its body
        centre, spin = self._base[:3], self._spin()
        twist = np.concatenate([self._base[7:10] + np.cross(spin, pose[:3, 3] - centre), spin])
        out[m.joint_dofs(j)] = free_rates(m, j, q, twist)
        return q, out

    def _set_motion(self, q: Floats, rates: Floats) -> None:
        m, base, own = self._mechanism, self._model.base, np.ones(self._mechanism.nq, dtype=bool)
        if base is not None:
            own[m.joint_coordinates(self._base_joint())] = False
        y, v = self._map.from_joints(q[own], rates[self._own_dofs()])
        if not (np.isfinite(y).all() and np.isfinite(v).all()):
            raise InputError("the reduced model has no state near this pose")
        self._y[:], self._rates[:] = y, v
        if base is None:
            self._reconstruct()
            return
        links = kinematics.link_poses(m, q)
        link = int(m.links.body_link[m.body_index(base.body)])
        twist, pose = kinematics.link_jacobian(m, links, link) @ rates, links[link]
        arm = pose[:3, :3] @ self.base_centre
        self.move_base(pose, twist[:3] + np.cross(twist[3:], arm), twist[3:])

    def _kinetic(self) -> float:
        out = 0.5 * float(self._rates @ self._map.mass(self._y) @ self._rates)
        if self._model.base is not None:
            velocity, momentum = self._base[7:10], self._base[10:13]
            total = float(self._model.base.inertia[0, 0])
            out += 0.5 * (total * float(velocity @ velocity) + float(self._spin() @ momentum))
        return out

    def _potential(self) -> tuple[float, float]:
        """Springs where the joints are; gravity acts on a floating base, else it is part of the linearisation."""
        elastic = elastic_energy(self._model.mechanism, self._map.joints(self._y))
        if self._model.base is None:
            return elastic, 0.0
        return elastic, gravity_energy(self._mechanism, self._room, self._gravity)

    def _cost(self) -> Effort:
        return Effort(solves=1, active=self._map.count, substeps=1)

    def mobility(self, body: str, point: Floats) -> Floats:
        """Change of a point's velocity at the end of the next step per impulse during it, world axes, (3, 3)."""
        return self.impulse_response(body, point)

    def actor(self) -> ReducedActor:
        """This simulation as contact sees it."""
        if self._reconstruction != "joint":
            raise InputError('contacts act where links are by their joints: reconstruction="joint"')
        return ReducedActor(self)

    @property
    def violation(self) -> float:
        """The largest distance by which a joint or loop has come apart, m.

        Links are placed by joint displacements, so joints of the tree never open; loops do. In TVCG's reconstruction,
        every body by its own twist, joints open as well: how far the model has left what it knows. The larger of both.
        """
        m = self._mechanism
        if self._reconstruction == "twist":
            by_twists, by_joints = self._room, self.configuration.poses
        else:
            if self._twin is None or self._twin.model is not self._model:
                gravity = None if self._model.base is None else (0, 0, 0)
                self._twin = ReducedSimulation(self._model, self._timestep, "twist", gravity)
            self._twin._write(self._read())
            by_twists, by_joints = self._twin.poses, self._room
        tree = m.topology.tree
        apart = _across(m, by_twists, tree) - _across(m, by_joints, tree)
        gap = float(np.sqrt((apart**2).sum(axis=1)).max(initial=0.0))
        return max(gap, super().violation)

    # --- end effectors

    def displacement(self, body: str) -> Floats:
        """How far an end effector is from where the model was linearised: a twist in its frame, (6,)."""
        at = 6 * self._model.index(body)
        return self._map.displacement(self._y)[at : at + 6]

    def impulse_response(
        self,
        body: str,
        point: ArrayLike | None = None,
        *,
        of: str | None = None,
        of_point: ArrayLike | None = None,
    ) -> Floats:
        """Change of a point's velocity at the end of the next step per impulse during it, world axes, (3, 3).

        What contact solvers need. Stiffness and damping act within the step: `G^T A^-1 G` of TVCG section 6.

        Args:
            body, point: where the impulse acts.
            of, of_point: whose velocity; the same point by default.
        """
        hit, hit_arm = self._levers(body, point)
        other, other_point = (body, point) if of is None else (of, of_point)
        levers, seen_arm = self._levers(other, other_point)
        out = levers @ self._map.ends(self._y) @ self._map.response(self._y) @ hit.T
        if self._model.base is not None:
            turn = self._spin_map()
            out += np.eye(3) / self._model.base.inertia[0, 0] - spatial.hat(seen_arm) @ turn @ spatial.hat(
                hit_arm
            )
        return out

    def apply_impulse(self, body: str, impulse: ArrayLike, point: ArrayLike | None = None) -> None:
        """Strike a point of an end effector with an impulse (N s, world axes): velocities jump at once.

        Where the next step takes them, stiffness and damping included, `impulse_response` tells.
        """
        push = Load.of(body, impulse).force
        levers, arm = self._levers(body, point)
        self._rates += self._map.jump(self._y) @ (levers.T @ push)
        if self._model.base is not None:
            self._base[7:10] += push / self._model.base.inertia[0, 0]
            self._base[10:13] += np.cross(arm, push)

    def _levers(self, body: str, point: ArrayLike | None) -> tuple[Floats, Floats]:
        """Velocity of a point per twists of the end effectors, world axes, (3, 6e), and its place.

        The place is relative to the base's centre of mass, if that moves.
        """
        at = Load.of(body, point=point).point
        e = 6 * self._model.index(body)
        pose = self._room[self._mechanism.body_index(body)]
        levers = np.zeros((3, 6 * len(self._model.end_effectors)))
        levers[:, e : e + 3] = pose[:3, :3]
        levers[:, e + 3 : e + 6] = -pose[:3, :3] @ spatial.hat(at)
        arm = pose[:3, :3] @ at + pose[:3, 3]
        return levers, arm - self._base[:3] if self._model.base is not None else arm

    # --- floating base

    def _spin(self) -> Floats:
        return self._spin_map() @ self._base[10:13]

    def _spin_map(self) -> Floats:
        """Inverse inertia of the base about its centre of mass, world axes."""
        start = int(self._packed.sizes[_kernels.BASE])
        inverse = self._packed.constants[start + 4 : start + 13].reshape(3, 3)
        turn = spatial.quat_to_matrix(self._base[3:7])
        return turn @ inverse @ turn.T

    @property
    def base_centre(self) -> Floats:
        """Centre of mass of all that a floating base carries, as if fixed to it, in the base's frame, (3,)."""
        if self._model.base is None:
            return np.zeros(3)
        start = int(self._packed.sizes[_kernels.BASE])
        return self._packed.constants[start + 1 : start + 4].copy()

    @property
    def base_velocity(self) -> Floats:
        """Velocity of a floating base's centre of mass and its angular velocity, world axes, (6,)."""
        if self._model.base is None:
            return np.zeros(6)
        return np.concatenate([self._base[7:10], self._spin()])

    def move_base(
        self, pose: ArrayLike | None = None, velocity: ArrayLike | None = None, spin: ArrayLike | None = None
    ) -> None:
        """Place a floating base and set it in motion.

        Args:
            pose: of the base's body, 4 x 4; unchanged if None.
            velocity: of the centre of mass, world axes, m/s; unchanged if None.
            spin: angular velocity, world axes, rad/s; unchanged if None.
        """
        if self._model.base is None:
            raise InputError("this model's base is fixed: there is nothing to move")
        place = None if pose is None else np.array(pose, dtype=np.float64)
        if place is not None and (
            place.shape != (4, 4)
            or not np.isfinite(place).all()
            or np.abs(place[:3, :3] @ place[:3, :3].T - np.eye(3)).max() > 1e-9
        ):
            raise InputError("pose: a 4 x 4 matrix with a rotation in it expected")
        base = self._model.base.body
        moved, turned = (Load.of(base, v).force for v in (velocity, spin))
        rate = self._spin() if spin is None else turned
        if place is not None:
            self._base[:3] = place[:3, :3] @ self.base_centre + place[:3, 3]
            self._base[3:7] = spatial.quat_from_matrix(place[:3, :3])
        if velocity is not None:
            self._base[7:10] = moved
        self._base[10:13] = np.linalg.solve(self._spin_map(), rate)
        self._reconstruct()

    # --- levels of detail

    def switch(self, model: ReducedModel | BlendedModel) -> None:
        """Go on with another model of the same mechanism: other end effectors, another linearisation, more modes.

        Joint displacements and velocities carry over as far as the new model can express them, and so do the motion
        of a floating base, the wrenches on end effectors that both models have, and motors.
        """
        check_alike(self._model, model)
        if self._torque.any() and isinstance(model, BlendedModel):
            raise InputError("switch: a blend takes no motors: clear_motors first")
        old = self.copy()
        self._set_model(model)
        self._start = self._read()
        names = self._mechanism.body_names
        self._loads = {i: load for i, load in self._loads.items() if names[i] in model.end_effectors}
        self._set_loads(self._loads)
        self._set_torque(self._torque)
        self.follow(old)

    def follow(self, other: Simulation) -> None:
        """Go to the time and motion of another simulation of this mechanism, or as near as the model can.

        Blends with the same end effectors may take over the static wrenches instead: what moves bodies less is chosen.
        """
        poses = other.poses
        self._set_motion(*matching_motion(other, self._mechanism))
        ways = [self._read()]
        if isinstance(other, ReducedSimulation) and other.model.end_effectors == self._model.end_effectors:
            a, b = other._map, self._map
            if isinstance(a, StaticWrenches) and isinstance(b, StaticWrenches):
                self._y[:], self._rates[:] = a.unit / b.unit * other._y, a.unit / b.unit * other._rates
                ways.append(self._read())
        jumps = []
        for way in ways:
            self._write(way)
            jumps.append(np.abs(self._room - poses).max())
        self._write(ways[int(np.argmin(jumps))])
        self._set_clock(other.time)

    def _reconstruct(self) -> None:
        if self._pool is None:
            self._packed.kernels.reconstruct(*self._arrays, self._packed.work)
            return
        _kernels.place_carrier(self._packed.sizes, self._packed.constants, self._state, self._packed.poses)
        edges = np.linspace(0, len(self._room), self._threads + 1).astype(int).tolist()
        run = partial(_by_twists, self._arrays)
        list(self._pool.map(run, edges[:-1], edges[1:]))


def _whole(model: ReducedModel | BlendedModel) -> Mechanism:
    """The mechanism of a model, with its floating base free."""
    return model.mechanism if model.base is None else model.base.mechanism


def _across(m: Mechanism, poses: Floats, joints: NDArray[np.int64]) -> Floats:
    """Where children's joint frames are in those of their parents, (joints, 3)."""
    world = np.concatenate([poses, np.eye(4)[None]])
    parents = world[m.joint_parents[joints]] @ m.parent_frames[joints]
    children = world[m.joint_children[joints]] @ m.child_frames[joints]
    return np.einsum("nji,nj->ni", parents[:, :3, :3], children[:, :3, 3] - parents[:, :3, 3])


def _by_twists(arguments: tuple[Any, ...], first: int, last: int) -> None:
    _kernels.by_twists(first, last, *arguments)
