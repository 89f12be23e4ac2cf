"""`ReducedSimulation`: a reduced or blended model in motion, with the poses of all links after every step."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import checks, spatial
from pliant.checks import MOST_THREADS, choice, vector, whole
from pliant.engines.actor import Actor
from pliant.engines.reduced import kernels
from pliant.engines.reduced import manifold_arrays as mk
from pliant.engines.reduced.actor import ManifoldActor, ReducedActor
from pliant.engines.reduced.arrays import METHODS, Packed, check_arguments
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.coordinates import Carried, StaticWrenches
from pliant.engines.reduced.manifold import NaturalCoordinates, pack_model, refusal
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.report import beyond_known
from pliant.engines.simulation import (
    Effort,
    Simulation,
    are_poses,
    free_coordinates,
    free_rates,
    matching_motion,
)
from pliant.errors import InputError, PliantWarning
from pliant.mechanism import Mechanism, kinematics
from pliant.one_thread import exclusive
from pliant.read_only import read_only
from pliant.statics.energy import elastic_energy, gravity_energy
from pliant.statics.loads import LOAD_SIZE, Load
from pliant.text import brief
from pliant.threads import Threads

__all__ = ["ReducedSimulation"]

Floats = NDArray[np.float64]
_SPARE = 4  # loads on bodies that are no end effectors, before arrays grow


class ReducedSimulation(Simulation):
    """A reduced model in motion, all poses included, from about a microsecond a step on.

    The joints follow the coordinates of the model on a manifold with closed loops, on which springs, loads on any body
    and the inertia of the whole mechanism act. The linear part of the motion is exact at any step. The levels:

    - "small": work of wrenches on the way, inertia as at rest;
    - "full": inertia of all links where they are, too;
    - "auto": the first while inertia and the work of wrenches change little, else the second;
    - "tvcg": backward Euler on the linear model (TVCG Eq. 23), loads through constant maps; blends mix matrices
      (TVCG section 7). `reconstruction="twist"` moves by it. Wrenches act on end effectors, and loops open at second
      order. Motors act through the model's basis; mixed models take none. The base of a floating model moves as a rigid
      body with the mass of the whole mechanism (TVCG section 6.1).

    Of a floating mechanism the centre of mass and the angular momentum about it move by the loads alone, and the base
    turns and moves as the motion of the joints leaves it: all levels but "tvcg" are "full" then, unless it touches.

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
        "_alarm",
        "_arrays",
        "_at",
        "_floating",
        "_kept",
        "_map",
        "_method",
        "_model",
        "_moving",
        "_packed",
        "_places",
        "_plain",
        "_pool",
        "_rates",
        "_reconstruction",
        "_room",
        "_rows",
        "_shown",
        "_slots",
        "_state",
        "_steady",
        "_threads",
        "_twin",
        "_unwarned",
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
        method: str = "auto",
    ):
        """Start at rest where the model was linearised.

        Args:
            model: from `pliant.reduce` or `pliant.blend`.
            timestep: seconds.
            reconstruction: how links are placed: "joint", by joint displacements and forward kinematics, so that
                joints never come apart; or "twist", TVCG's, every body by its own twist.
            gravity: acceleration of a floating base, m/s²; (0, 0, -9.81) by default. A fixed mechanism under gravity
                is reduced at its equilibrium instead.
            threads: number of threads that place bodies, for "twist"; pays from some ten thousand bodies on.
            method: level of accuracy: "auto", "small", "full" or "tvcg"; see the class.
        """
        down = check_arguments(model, timestep, reconstruction, gravity)
        self._method = choice(method, "method", METHODS)
        self._reconstruction, threads = reconstruction, whole(threads, "threads", 1, MOST_THREADS)
        if threads > 1 and reconstruction != "twist":
            raise InputError('threads are for reconstruction="twist": joints depend on those before them')
        if threads > 1 and isinstance(model, BlendedModel):
            raise InputError("threads are for a single model: a blend reconstructs its bodies on one")
        self._threads, self._pool = threads, Threads(threads) if threads > 1 else None
        self._begin(_whole(model), timestep, down)
        self._slots, self._alarm = 0, False
        self._twin: ReducedSimulation | None = None
        self._set_model(model)
        self._started()

    def _set_model(self, model: ReducedModel | BlendedModel) -> None:
        """Lay out a model and take views of its arrays."""
        self._model, self._mechanism, self._mark = model, _whole(model), 0
        self._slots = len(model.end_effectors) + _SPARE
        self._lay_out()
        self._unwarned = {
            mk.HALTS,
            mk.FARTHEST,
        }  # entries of BUDGET to warn of, once, when they are above zero

    def _lay_out(self, known: Packed | None = None) -> None:
        model = self._model
        self._packed = packed = pack_model(
            model, self._timestep, self._reconstruction, self._gravity, self._method, self._slots, known
        )
        self._arrays, self._places = packed.arrays, packed.places()
        self._at, self._advance_at = self._places.ctypes.data, packed.kernels.advance_at
        self._state, self._map, self._floating = packed.state, packed.coordinates, packed.base()
        n, sizes = packed.coordinates.count, packed.sizes
        base, loads, work = sizes[[kernels.BASE_STATE, kernels.WRENCH, kernels.WORK]]
        self._y, self._rates = packed.state[kernels.Y : kernels.Y + 2 * n].reshape(2, n)
        steady = int(sizes[mk.STEADY if self.exact else kernels.STEADY])
        self._steady = packed.constants[steady : steady + n]  # constant term of the step, with motors
        self._plain = self._steady.copy()  # without motors
        if self.exact:  # what steps keep from one to the next
            base = sizes[mk.FORCES]
        self._moving, self._kept = packed.state[:loads], packed.state[base:loads]
        self._wrench_rows = packed.state[loads:work].reshape(-1, LOAD_SIZE)
        index, ends = self._mechanism.body_index, self._model.end_effectors
        self._rows = {index(end): row.data for end, row in zip(ends, self._wrench_rows, strict=False)}
        self._loaded_before.clear()
        self._room = packed.poses[: model.mechanism.body_count]
        self._shown = read_only(self._room)

    @property
    def exact(self) -> bool:
        """Whether it moves on the manifold of the model, with forces and inertia of the whole mechanism."""
        return isinstance(self._map, NaturalCoordinates)

    @property
    def method(self) -> str:
        """Level of accuracy; see the class. "tvcg" where "auto" knows no other."""
        return self._method if self.exact else "tvcg"

    @property
    def engine(self) -> str:
        """ "reduced", or "blended"."""
        return "blended" if isinstance(self._model, BlendedModel) else "reduced"

    @property
    def model(self) -> ReducedModel | BlendedModel:
        """The model in motion."""
        return self._model

    @property
    def distance(self) -> float:
        """Largest distance of an end effector from where the model was made, in radii of the mechanism.

        Relative to a floating base. Steps warn, once, where it is larger than `ReducedModel.known`.
        """
        model = self._model.models[0] if isinstance(self._model, BlendedModel) else self._model
        return model.distance(self._room)

    @property
    def coordinates(self) -> Floats:
        """Coordinates of the model, (n,); settable.

        Displacements along its basis, for a blend that of `BlendedModel.spanned`; static wrenches of mixed models.
        """
        return self._map.to_model(self._y)

    @coordinates.setter
    @exclusive
    def coordinates(self, value: ArrayLike) -> None:
        self._place(self._map.from_model(vector(value, "coordinates", len(self._y))), self._rates)

    @property
    def rates(self) -> Floats:
        """Rates of the coordinates, 1/s, (n,); settable."""
        return self._map.to_model(self._rates)

    @rates.setter
    @exclusive
    def rates(self, value: ArrayLike) -> None:
        self._place(self._y, self._map.from_model(vector(value, "rates", len(self._rates))))

    def _place(self, y: Floats, rates: Floats) -> None:
        """Set coordinates and rates, as the kernels have them, and forget forces and energy of the last step."""
        if not (np.isfinite(y).all() and np.isfinite(rates).all()):
            raise InputError("coordinates and rates: smaller numbers expected")
        before = self._moving.copy()
        if self.exact:
            self._map.joints(y)  # raises where loops do not close
            self._kept[:] = self._map.rest_of_state()
        self._y[:], self._rates[:] = y, rates
        self._reconstruct()
        if not are_poses(self._room):
            self._moving[:] = before
            self._reconstruct()
            raise InputError("coordinates and rates: smaller numbers expected")

    def _forget(self) -> None:
        """Forget the energy of the last step: the motion changes at once."""
        if self.exact:
            self._state[self._packed.sizes[mk.BUDGET] + mk.SET] = 0.0

    # --- hooks of the protocol

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return float(self._state[kernels.TIME])

    def _clock(self) -> tuple[float, int]:
        return self.time, 0

    def _set_clock(self, origin: float, steps: int = 0) -> None:
        self._state[kernels.TIME] = origin

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
        if done < 0:
            done, self._alarm = -1 - done, True
        return done

    def _tell(self) -> None:
        if self._alarm:
            self._alarm = False
            self.warn()

    def warn(self) -> None:
        """Warn of steps beyond what the model knows, once, and stop watching."""
        sizes, constants = self._packed.sizes, self._packed.constants
        budget = self._state[sizes[mk.BUDGET] :]
        if budget[mk.HALTS] + budget[mk.FARTHEST] == 0.0:
            return
        halts, distance = budget[mk.HALTS], float(np.sqrt(budget[mk.FARTHEST]))
        budget[mk.HALTS] = budget[mk.FARTHEST] = 0.0
        if distance > 0.0:
            constants[sizes[mk.FIXED] + mk.BOUNDARY] = np.inf
            if mk.FARTHEST in self._unwarned and isinstance(self._model, ReducedModel):
                self._unwarned.remove(mk.FARTHEST)
                warnings.warn(
                    beyond_known(self._model, distance / self._model.mechanism.radius),
                    PliantWarning,
                    stacklevel=4,
                )
        if halts > 0.0 and mk.HALTS in self._unwarned:
            self._unwarned.remove(mk.HALTS)
            warnings.warn(
                f"'{self._mechanism.name}' went as far as the loops of its reduced model close, and stopped there at "
                f"t = {self.time:.4g} s: beyond it the model knows nothing; use `pliant.ConstrainedSimulation`, or "
                "reduce at a pose nearby",
                PliantWarning,
                stacklevel=4,
            )

    def _why(self) -> str:
        if self.exact and self._model.mechanism.topology.loops:
            return (
                f"the loops of '{self._mechanism.name}' do not close beyond t = {self.time:.6g} s: "
                "the motion went farther than the model reaches; a shorter timestep may help"
            )
        return (
            f"the model left the finite numbers at t = {self.time:.6g} s: {self._beside_springs()}; "
            "are the wrenches as large as you meant, and was the model made at a stable equilibrium?"
        )

    def _read(self) -> Floats:
        return self._moving[kernels.Y :].copy()

    def _write(self, values: Floats) -> None:
        self._moving[kernels.Y :] = values
        self._reconstruct()

    def _identity(self) -> tuple[str, ...]:
        models = self._model.models if isinstance(self._model, BlendedModel) else (self._model,)
        kind = "exact" if self.exact else "tvcg"
        return (kind, *self._model.end_effectors, *(model.compliance.tobytes().hex() for model in models))

    def _options(self) -> dict[str, Any]:
        gravity = self._gravity if self._model.base is not None else None
        return {
            "model": self._model,
            "timestep": self._timestep,
            "reconstruction": self._reconstruction,
            "gravity": gravity,
            "threads": self._threads,
            "method": self._method,
        }

    def _loadable(self, body: str) -> int:
        if self.exact:
            return super()._loadable(body)
        return self._mechanism.body_index(self._model.end_effectors[self._model.index(body)])

    def _set_load(self, index: int, load: Load) -> None:
        if index not in self._rows:
            self._set_loads(self._loads)
        elif load.frame == "world":
            load.write_world(self._rows[index], index, index in self._loads)
        else:
            load.write(np.asarray(self._rows[index]), index)

    def _set_loads(self, loads: Mapping[int, Load]) -> None:
        """End effectors have rows of their own; other bodies share the rows behind."""
        names, ends = self._mechanism.body_names, self._model.end_effectors
        rows = {ends.index(names[i]): i for i in loads if i in self._rows}
        others = [i for i in loads if i not in self._rows]
        if len(ends) + len(others) > self._slots:
            self._make_slots(2 * (len(ends) + len(others)))
        self._wrench_rows[:] = 0.0
        for row, index in (rows | {len(ends) + i: body for i, body in enumerate(others)}).items():
            loads[index].write(self._wrench_rows[row], index)

    def _set_changes(self, changes: Mapping[int, Load]) -> None:
        if not isinstance(self._map, NaturalCoordinates):
            return
        sizes, constants = self._packed.sizes, self._packed.constants
        sizes[mk.RAMP] = len(changes) > 0
        if not changes:
            return
        response, at = self._map.ramp, int(sizes[mk.RAMP_MAP])
        constants[at : at + response.size] = response.ravel()
        rows = self._state[sizes[mk.CHANGES] :][: self._wrench_rows.size].reshape(-1, LOAD_SIZE)
        rows[:], names, ends = 0.0, self._mechanism.body_names, self._model.end_effectors
        others = iter(range(len(ends), len(rows)))
        for index, load in changes.items():
            load.write(rows[ends.index(names[index]) if names[index] in ends else next(others)], index)

    def _make_slots(self, count: int) -> None:
        """Grow the arrays to hold `count` loads; state, motors and loads are kept."""
        if count <= self._slots:
            return
        state, torque, time, loads = self._read(), self._torque.copy(), self.time, self._wrench_rows.copy()
        self._slots, self._steady[:] = count, self._plain
        self._lay_out(self._packed)
        self._set_torque(torque)
        self._set_clock(time)
        self._write(state)
        self._wrench_rows[: len(loads)] = loads

    def _set_torque(self, torque: Floats) -> None:
        """Motor torques are folded into the constant term of the step: no cost per step."""
        if isinstance(self._map, StaticWrenches):
            if torque.any():
                raise InputError(
                    'models that are mixed ("tvcg") take no motors, only wrenches on end effectors'
                )
            return
        base = self._model.base
        if base is not None:
            if torque[~base.own_dofs].any():
                raise InputError("motors of a floating base have no effect: drive the joints")
            torque = torque[base.own_dofs]
        if isinstance(self._map, NaturalCoordinates):
            motor, work = self._map.motor(torque)
            at = int(self._packed.sizes[mk.MOTOR])
            self._packed.constants[at : at + len(motor)] = motor
            self._steady[:] = self._plain + work
            return
        self._steady[:] = self._plain + self._timestep * (
            self._map.inverse @ (torque @ self._map.model.basis)
        )

    def _motion(self) -> tuple[Floats, Floats]:
        joints, joint_rates = self._map.joints(self._y), self._map.joint_rates(self._y, self._rates)
        state, base = self._floating, self._model.base
        if state is None or base is None:
            return joints, joint_rates
        m, pose = self._mechanism, self.pose(base.body)
        q, rates = m.reference.copy(), np.zeros(m.nv)
        q[base.own_coordinates], rates[base.own_dofs] = joints, joint_rates
        q[m.joint_coordinates(base.joint)] = free_coordinates(m, base.joint, pose)
        carried, spin = self._carried(), self._spin()
        drift = pose[:3, :3] @ (carried.velocity @ self._rates)
        linear = state.velocity - drift + np.cross(spin, pose[:3, 3] - state.centre)
        rates[base.dofs] = free_rates(m, base.joint, q, np.concatenate([linear, spin]))
        return q, rates

    def _set_motion(self, q: Floats, rates: Floats) -> None:
        m, base = self._mechanism, self._model.base
        y, v, near = self._map.from_joints(q, rates)
        if not (np.isfinite(y).all() and np.isfinite(v).all()):
            raise InputError("the reduced model has no state near this pose")
        self._place(y, v)
        if base is None:
            return
        links = kinematics.link_poses(m, near)
        link = int(m.links.body_link[m.body_index(base.body)])
        if self._floating is not None and self.exact:
            self.move_base(links[link])
            self._floating.centre[:], self._floating.velocity[:], self._floating.momentum[:] = base.motion(
                q, rates
            )
            self._reconstruct()
            return
        twist, pose = kinematics.link_jacobian(m, links, link) @ rates, links[link]
        arm = pose[:3, :3] @ self.base_centre
        self.move_base(pose, twist[:3] + np.cross(twist[3:], arm), twist[3:])

    def _carried(self) -> Carried:
        """What the floating base carries, in its frame."""
        return self._map.carried(self._y)

    def _inverse_inertia(self) -> Floats:
        """Inverse inertia of the whole about its centre of mass, world axes, (3, 3)."""
        assert self._floating is not None
        turn = spatial.quat_to_matrix(self._floating.quaternion)
        return turn @ np.linalg.inv(self._carried().inertia) @ turn.T

    def _spin(self) -> Floats:
        """Angular velocity of the floating base, world axes, rad/s, (3,)."""
        assert self._floating is not None
        turn = spatial.quat_to_matrix(self._floating.quaternion)
        own = turn @ (self._carried().momentum @ self._rates)
        return self._inverse_inertia() @ (self._floating.momentum - own)

    def _kinetic(self) -> float:
        out = 0.5 * float(self._rates @ self._map.mass(self._y) @ self._rates)
        base = self._floating
        if base is not None:
            angular = float(base.momentum @ self._inverse_inertia() @ base.momentum)
            out += 0.5 * (base.mass * float(base.velocity @ base.velocity) + angular)
        return out

    def _potential(self) -> tuple[float, float]:
        """Elastic energy and energy in gravity.

        On the manifold, of the forces that act there: springs rest where the model was made if that is no equilibrium.
        In the linear model gravity is that of a floating base; on a fixed one it is part of the linearisation.
        """
        if isinstance(self._map, NaturalCoordinates):
            manifold = self._map.manifold
            elastic = elastic_energy(manifold.mechanism, self._map.joints(self._y), manifold.loads)
            gravity = manifold.gravity if self._model.base is None else self._gravity
            return elastic, gravity_energy(self._mechanism, self._room, gravity)
        elastic = elastic_energy(self._model.mechanism, self._map.joints(self._y))
        if self._model.base is None:
            return elastic, 0.0
        return elastic, gravity_energy(self._mechanism, self._room, self._gravity)

    def _cost(self) -> Effort:
        return Effort(solves=1, active=self._map.count, substeps=1)

    def mobility(self, body: str, point: Floats) -> Floats:
        """Change of a point's velocity at the end of the next step per impulse during it, world axes, (3, 3)."""
        return self.impulse_response(body, point)

    def actor(self) -> Actor:
        """This simulation as contact sees it."""
        if self.exact:
            self._make_slots(self._mechanism.body_count)
            return ManifoldActor(self)
        if self._reconstruction != "joint":
            raise InputError('contacts act where links are by their joints: reconstruction="joint"')
        return ReducedActor(self)

    @property
    def violation(self) -> float:
        """Largest distance by which a joint or loop has come apart, m.

        Of loops; of the linear step (`method="tvcg"`) also `doubt`, if that is larger.
        """
        return super().violation if self.exact else max(self.doubt, super().violation)

    @property
    def doubt(self) -> float:
        """Distance by which joints would come apart with every body placed by its own twist (TVCG), m.

        A measure of the distance from the linearisation.
        """
        m = self._mechanism
        if self._reconstruction == "twist":
            by_twists, by_joints = self._room, self.configuration.poses
        else:
            model = self._map.model  # of a blend on its manifold, the one that spans it
            if self._twin is None or self._twin.model is not model:
                gravity = None if self._model.base is None else (0, 0, 0)
                self._twin = ReducedSimulation(model, self._timestep, "twist", gravity, method="tvcg")
            if self.exact:
                self._twin.coordinates = self.coordinates
            else:
                self._twin._write(self._read())
            by_twists, by_joints = self._twin.poses, self._room
        tree = m.topology.tree
        apart = _across(m, by_twists, tree) - _across(m, by_joints, tree)
        return float(np.sqrt((apart**2).sum(axis=1)).max(initial=0.0))

    # --- end effectors

    def displacement(self, body: str) -> Floats:
        """Displacement of an end effector from the linearisation: a twist in its frame, (6,)."""
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

        Stiffness and damping act within the step: `G^T A^-1 G` of TVCG section 6.

        Args:
            body, point: end effector and point of its frame where the impulse acts.
            of, of_point: end effector and point whose velocity changes; the same by default.
        """
        hit, hit_arm = self._levers(body, point)
        other, other_point = (body, point) if of is None else (of, of_point)
        levers, seen_arm = self._levers(other, other_point)
        out = levers @ self._map.ends(self._y) @ self._map.response(self._y) @ hit.T
        base = self._floating
        if base is not None:
            turn = self._inverse_inertia()
            out += np.eye(3) / base.mass - spatial.hat(seen_arm) @ turn @ spatial.hat(hit_arm)
        return out

    @exclusive
    def apply_impulse(self, body: str, impulse: ArrayLike, point: ArrayLike | None = None) -> None:
        """Strike a point of an end effector with an impulse, N s, world axes: velocities change at once.

        `impulse_response` gives the change at the end of the next step, stiffness and damping included.
        """
        levers, arm = self._levers(body, point)
        push = Load.of(body, impulse).force
        self._place(self._y, self._rates + self._map.impulse_velocity(self._y) @ (levers.T @ push))
        base = self._floating
        if base is not None:
            base.velocity[:] += push / base.mass
            base.momentum[:] += np.cross(arm, push)

    def _levers(self, body: str, point: ArrayLike | None) -> tuple[Floats, Floats]:
        """Velocity of a point per twists of the end effectors, (3, 6e), and its position, world axes.

        The position is relative to the centre of mass if the base floats.
        """
        e = 6 * self._model.index(body)
        at = Load.of(body, point=point).point
        pose = self._room[self._mechanism.body_index(body)]
        levers = np.zeros((3, 6 * len(self._model.end_effectors)))
        levers[:, e : e + 3] = pose[:3, :3]
        levers[:, e + 3 : e + 6] = -pose[:3, :3] @ spatial.hat(at)
        arm = pose[:3, :3] @ at + pose[:3, 3]
        return levers, arm if self._floating is None else arm - self._floating.centre

    # --- floating base

    @property
    def base_centre(self) -> Floats:
        """Centre of mass of all that a floating base carries, in the base's frame, (3,).

        With `method="tvcg"` it is that of the reference pose, as if all were fixed to the base.
        """
        return np.zeros(3) if self._floating is None else self._carried().centre

    @property
    def base_velocity(self) -> Floats:
        """Velocity of the centre of mass of all that a floating base carries, and the base's angular velocity, (6,).

        World axes.
        """
        base = self._floating
        return np.zeros(6) if base is None else np.concatenate([base.velocity, self._spin()])

    @property
    def base_momentum(self) -> Floats:
        """Momentum of all that a floating base carries, and angular momentum about its centre of mass, (6,).

        World axes, N s and N m s. Wrenches and gravity change it, nothing else does.
        """
        base = self._floating
        return np.zeros(6) if base is None else np.concatenate([base.mass * base.velocity, base.momentum])

    @exclusive
    def move_base(
        self, pose: ArrayLike | None = None, velocity: ArrayLike | None = None, spin: ArrayLike | None = None
    ) -> None:
        """Place a floating base and set it in motion.

        Args:
            pose: of the base's body, 4 x 4; unchanged if None.
            velocity: of the centre of mass, world axes, m/s; unchanged if None.
            spin: angular velocity of the base, world axes, rad/s; unchanged if None.
        """
        base = self._floating
        if base is None:
            raise InputError("this model's base is fixed: there is nothing to move")
        place = None if pose is None else checks.pose(pose)
        moved = base.velocity if velocity is None else vector(velocity, "velocity")
        turned, carried = self._spin() if spin is None else vector(spin, "spin"), self._carried()
        if place is not None:
            base.place(place, carried.centre)
        base.velocity[:], turn = moved, spatial.quat_to_matrix(base.quaternion)
        base.momentum[:] = turn @ (carried.inertia @ (turn.T @ turned) + carried.momentum @ self._rates)
        self._forget()
        self._reconstruct()

    # --- levels of detail

    @exclusive
    def switch(self, model: ReducedModel | BlendedModel) -> None:
        """Go on with another model of the same mechanism: other end effectors, another linearisation, more modes.

        Joint displacements and velocities carry over as far as the new model can express them; so do the motion of a
        floating base, the wrenches on end effectors that both models have, and motors.
        """
        if not isinstance(model, ReducedModel | BlendedModel):
            raise InputError(f"switch: a ReducedModel expected, not {brief(model)}")
        a, b = self._model.mechanism, model.mechanism
        if a is not b and (a.body_names, a.dof_names) != (b.body_names, b.dof_names):
            raise InputError(f"switch: a model of '{a.name}' expected, this is one of '{b.name}'")
        if (self._model.base is None) != (model.base is None):
            raise InputError("switch: one of the models has a floating base and the other has not")
        mixed = self._method == "tvcg" or refusal(model, self._reconstruction) is not None
        if self._torque.any() and mixed and isinstance(model, BlendedModel):
            raise InputError("switch: models that are mixed take no motors: clear_motors first")
        old = self.copy()
        try:
            self._set_model(model)
            self._start = self._read()
            names = self._mechanism.body_names
            self._loads = {i: load for i, load in self._loads.items() if names[i] in model.end_effectors}
            self._ramps = {i: load for i, load in self._ramps.items() if names[i] in model.end_effectors}
            self._set_loads(self._loads)
            self._set_torque(self._torque)
            self.follow(old)
            if not are_poses(self._room):
                raise InputError("switch: the other model has no such motion")
        except BaseException:
            for word in (*Simulation.__slots__, *ReducedSimulation.__slots__):
                if word not in ("__weakref__", "_use"):
                    setattr(self, word, getattr(old, word))
            raise

    @exclusive
    def follow(self, other: Simulation) -> None:
        """Go to the time and motion of another simulation of this mechanism, or as near as the model can.

        Between mixed models with the same end effectors, static wrenches may be kept instead of joint coordinates: the
        choice is the one that moves bodies less.
        """
        motion, poses = matching_motion(other, self._mechanism), other.poses
        self._set_motion(*motion)
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
        kernels.base_displacement(self._packed.sizes, self._packed.constants, self._state, self._packed.poses)
        edges = np.linspace(0, len(self._room), self._threads + 1).astype(int).tolist()
        run = partial(_by_twists, self._arrays)
        self._pool.run(run, pairwise(edges))


def _whole(model: ReducedModel | BlendedModel) -> Mechanism:
    """The mechanism of a model, with its floating base free."""
    return model.mechanism if model.base is None else model.base.mechanism


def _across(m: Mechanism, poses: Floats, joints: NDArray[np.int64]) -> Floats:
    """Origins of the children's joint frames in the parents' joint frames, (joints, 3)."""
    world = np.concatenate([poses, np.eye(4)[None]])
    parents = world[m.joint_parents[joints]] @ m.parent_frames[joints]
    children = world[m.joint_children[joints]] @ m.child_frames[joints]
    return np.einsum("nji,nj->ni", parents[:, :3, :3], children[:, :3, 3] - parents[:, :3, 3])


def _by_twists(arguments: tuple[Any, ...], bodies: tuple[int, int]) -> None:
    kernels.by_twists(*bodies, *arguments)
