"""`ReducedSimulation`: a reduced model in motion, with the pose of every link after every step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.engines.arguments import torques, whole
from pliant.engines.reduced import _kernels
from pliant.engines.reduced.arguments import check_alike, check_arguments
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.coordinates import StaticWrenches
from pliant.engines.reduced.floating import FloatingBase
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.motors import Motors
from pliant.engines.reduced.packing import pack
from pliant.engines.trajectory import Trajectory
from pliant.engines.wrenches import entry
from pliant.errors import ConvergenceError, InputError
from pliant.statics import Configuration

__all__ = ["ReducedSimulation"]

Floats = NDArray[np.float64]


class ReducedSimulation(FloatingBase):
    """Backward Euler on a reduced model (TVCG Eq. 23), all poses included, in about a microsecond a step.

    Wrenches and motors stay until they are replaced or cleared. Wrenches given in world axes stay fixed in the world
    while the end effector turns. A model with a floating base moves as a rigid body of the whole mechanism's mass
    besides (TVCG section 6.1).

    Example:
        >>> import pliant
        >>> tip = "link50"
        >>> simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.helix(50), tip), 1 / 60)
        >>> simulation.apply_wrench(tip, force=(0, 0, -50))
        >>> simulation.step(60)
        >>> round(simulation.time, 6)
        1.0
    """

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
        self._gravity = check_arguments(model, timestep, reconstruction, gravity)
        self._timestep, self._reconstruction = float(timestep), reconstruction
        threads = whole(threads, "threads", 1)
        if threads > 1 and reconstruction != "twist":
            raise InputError('threads are for reconstruction="twist": joints depend on those before them')
        if threads > 1 and isinstance(model, BlendedModel):
            raise InputError("threads are for a single model: a blend reconstructs its bodies on one")
        self._threads, self._pool = threads, ThreadPoolExecutor(threads) if threads > 1 else None
        self._set_model(model)

    def _set_model(self, model: ReducedModel | BlendedModel) -> None:
        self._model = model
        self._packed = packed = pack(model, self._timestep, self._reconstruction, self._gravity)
        self._arguments, self._places = packed.arrays, packed.places()
        self._at = self._places.ctypes.data
        self._state = packed.state
        self._start = packed.state.copy()
        self._coordinates, self._advance = packed.coordinates, packed.kernels.advance_at
        self._motors = Motors(packed, self._timestep, model.mechanism.nv)
        n = packed.coordinates.count
        self._y, self._v = packed.state[1 : 1 + n], packed.state[1 + n : 1 + 2 * n]
        self._moving = packed.state[: packed.sizes[_kernels.WRENCH]]
        self._base = packed.state[packed.sizes[_kernels.BASE_STATE] : packed.sizes[_kernels.WRENCH]]
        self._wrenches = packed.state[packed.sizes[_kernels.WRENCH] : packed.sizes[_kernels.WORK]].reshape(
            -1, _kernels.WRENCH_SIZE
        )
        self._poses = packed.poses[: model.mechanism.body_count]
        self._shown = self._poses.view()
        self._shown.flags.writeable = False

    # --- the common words

    @property
    def model(self) -> ReducedModel | BlendedModel:
        """The model in motion."""
        return self._model

    @property
    def timestep(self) -> float:
        """Seconds a step."""
        return self._timestep

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return float(self._state[0])

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps, in one compiled call.

        Raises:
            ConvergenceError: the motion left the finite numbers; everything is as it was before.
        """
        if type(n) is not int or n < 0:
            n = whole(n, "step: n", 0)
        failed = self._advance(n, self._pool is not None, self._at)
        if failed or self._pool is not None:
            self._reconstruct()
        if failed:
            raise ConvergenceError(
                f"the model left the finite numbers within {n} steps after t = {self.time:.6g} s: "
                "are the wrenches as large as you meant, and was the model made at a stable equilibrium?"
            )

    def record(self, n: int, every: int = 1) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`."""
        n, every = whole(n, "record: n", 1), whole(every, "record: every", 1)
        out = np.empty((n, *self._poses.shape))
        before, start = self._moving.copy(), self.time
        if self._pool is None and self._packed.kernels is _kernels:
            done = _kernels.record(n, every, *self._arguments, out)
        else:
            done = 0
            while done < n and not self._advance(every, self._pool is not None, self._at):
                if self._pool is not None:
                    self._reconstruct()
                out[done] = self._poses
                done += 1
        if done < n:
            self._moving[:] = before
            self._reconstruct()
            raise ConvergenceError(f"the model left the finite numbers after t = {start:.6g} s")
        time = start + self._timestep * every * np.arange(1.0, n + 1)
        return Trajectory(self._model.mechanism, time.astype(np.float64), out)

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4); read-only, changes with every step."""
        return self._shown

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4."""
        index = self._model.mechanism.body_index(body)
        return np.eye(4) if index < 0 else self._poses[index].copy()

    def apply_wrench(
        self,
        body: str,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        *,
        point: ArrayLike | None = None,
        frame: str = "world",
    ) -> None:
        """Set the wrench on an end effector; it replaces the one before and stays until cleared.

        Args:
            body: an end effector.
            force, torque: N and N m.
            point: where the force acts, in the body's frame; its origin by default.
            frame: axes of force and torque: "world", and they keep their direction; or "body", and they turn with it.
        """
        self._wrenches[self._model.index(body)] = entry(body, force, torque, point, frame)

    def clear_wrenches(self) -> None:
        """Take all wrenches away."""
        self._wrenches[:] = 0.0

    def set_motor(self, joint: str, *, torque: ArrayLike) -> None:
        """Drive a joint by a torque (N m; N on slides), one for all its dofs or one per dof, until set again.

        Its stiffness times the shift moves the rest position of a joint's spring. All end effectors follow, and so do
        links that the model can express; a floating base feels nothing but what contacts answer.

        Args:
            joint: its name, or a pattern: "*" and an array drive all joints at once.
            torque: keeps its axes, and its direction along them.
        """
        self._motors.set(*torques(self._model.mechanism, joint, torque))

    def clear_motors(self) -> None:
        """Take all motors away."""
        self._motors.set(np.flatnonzero(self._motors.torque), np.zeros(1))

    def reset(self) -> None:
        """Back to the start: time zero, at rest where the model was linearised, no wrenches. Motors stay."""
        self._state[:] = self._start
        self._reconstruct()

    @property
    def state(self) -> Floats:
        """Time, displacements, velocities and, of a floating base, its motion, as one array; set it to go back there.

        Wrenches and motors are not part of it: they are yours.
        """
        return self._moving.copy()

    @state.setter
    def state(self, value: ArrayLike) -> None:
        given = np.asarray(value, dtype=np.float64)
        if given.shape != self._moving.shape:
            raise InputError(
                f"state: {len(self._moving)} numbers expected, got shape {given.shape}; is it another model's?"
            )
        if not np.isfinite(given).all():
            raise InputError("state: not all numbers are finite")
        self._moving[:] = given
        self._reconstruct()

    # --- end effectors

    def displacement(self, body: str) -> Floats:
        """How far an end effector is from where the model was linearised: a twist in its frame, (6,)."""
        at = 6 * self._model.index(body)
        return self._coordinates.displacement(self._y)[at : at + 6]

    def velocity(self, body: str, point: ArrayLike | None = None) -> Floats:
        """Velocity of a point of an end effector, world axes, (3,); the floating base's motion included.

        Args:
            body: an end effector.
            point: in its frame; its origin by default.
        """
        jacobian, arm = self._point(body, point)
        out = jacobian @ self._v
        if self._model.base is not None:
            out += self._base[7:10] + np.cross(self._spin(), arm)
        return out

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
        seen, seen_arm = self._point(other, other_point)
        out = seen @ self._coordinates.response(self._y) @ hit.T
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
        push = entry(body, impulse, None, point, "world")[:3]
        levers, arm = self._levers(body, point)
        self._v += self._coordinates.jump(self._y) @ (levers.T @ push)
        if self._model.base is not None:
            self._base[7:10] += push / self._model.base.inertia[0, 0]
            self._base[10:13] += np.cross(arm, push)

    def _levers(self, body: str, point: ArrayLike | None) -> tuple[Floats, Floats]:
        """Velocity of a point per twists of the end effectors, world axes, (3, 6e), and its place.

        The place is relative to the base's centre of mass, if that moves.
        """
        at = entry(body, None, None, point, "world")[6:9]
        e = 6 * self._model.index(body)
        pose = self._poses[self._model.mechanism.body_index(body)]
        levers = np.zeros((3, 6 * len(self._model.end_effectors)))
        levers[:, e : e + 3] = pose[:3, :3]
        levers[:, e + 3 : e + 6] = -pose[:3, :3] @ spatial.hat(at)
        arm = pose[:3, :3] @ at + pose[:3, 3]
        return levers, arm - self._base[:3] if self._model.base is not None else arm

    def _point(self, body: str, point: ArrayLike | None) -> tuple[Floats, Floats]:
        """Velocity of a point per rate of the coordinates, world axes, and its place."""
        levers, arm = self._levers(body, point)
        return levers @ self._coordinates.ends(self._y), arm

    # --- levels of detail

    @property
    def configuration(self) -> Configuration:
        """Joint coordinates now, as joint displacements give them; a floating base is fixed in it."""
        return Configuration(self._model.mechanism, self._coordinates.joints(self._y))

    def switch(self, model: ReducedModel | BlendedModel) -> None:
        """Go on with another model of the same mechanism: other end effectors, another linearisation, more modes.

        Joint displacements and velocities carry over as far as the new model can express them, and so do the motion
        of a floating base, the wrenches on end effectors that both models have, and motors.
        """
        old, torque = self._model, self._motors.torque
        check_alike(old, model)
        if torque.any() and isinstance(model, BlendedModel):
            raise InputError("switch: a blend takes no motors: clear_motors first")
        q = self.configuration.q
        rates = self._coordinates.joint_rates(self._y, self._v)
        time, wrenches = self.time, dict(zip(old.end_effectors, self._wrenches.copy(), strict=True))
        base, poses = self._base.copy(), self._poses.copy()
        before, y, v = self._coordinates, self._y.copy(), self._v.copy()
        self._set_model(model)
        self._motors.set(np.arange(len(torque)), torque)
        self._state[0] = time
        ways = [self._coordinates.from_joints(q, rates)]
        now, alike = self._coordinates, old.end_effectors == model.end_effectors
        if alike and isinstance(before, StaticWrenches) and isinstance(now, StaticWrenches):
            unit = before.unit / now.unit
            ways.append((unit * y, unit * v))  # static wrenches mean the same to both
        if model.base is not None:
            self._base[:] = base
        for e, body in enumerate(model.end_effectors):
            if body in wrenches:
                self._wrenches[e] = wrenches[body]
        jumps = []
        for way in ways:
            self._y[:], self._v[:] = way
            self._reconstruct()
            jumps.append(np.abs(self._poses - poses).max())
        self._y[:], self._v[:] = ways[int(np.argmin(jumps))]
        self._reconstruct()

    def _reconstruct(self) -> None:
        if self._pool is None:
            self._packed.kernels.reconstruct(*self._arguments, self._packed.work)
            return
        _kernels.place_carrier(self._packed.sizes, self._packed.constants, self._state, self._packed.poses)
        edges = np.linspace(0, len(self._poses), self._threads + 1).astype(int).tolist()
        run = partial(_by_twists, self._arguments)
        list(self._pool.map(run, edges[:-1], edges[1:]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have arrays of their own, not addresses of these."""
        gravity = self._gravity if self._model.base is not None else None
        made = (self._model, self._timestep, self._reconstruction, gravity, self._threads)
        return _restored, (made, self._moving.copy(), self._wrenches.copy(), self._motors.torque.copy())

    def __repr__(self) -> str:
        return f"<ReducedSimulation of '{self._model.mechanism.name}' at t = {self.time:.6g} s>"


def _restored(made: tuple[Any, ...], moving: Floats, wrenches: Floats, torque: Floats) -> ReducedSimulation:
    out = ReducedSimulation(*made)
    out._motors.set(np.arange(len(torque)), torque)
    out._wrenches[:], out.state = wrenches, moving
    return out


def _by_twists(arguments: tuple[Any, ...], first: int, last: int) -> None:
    _kernels.by_twists(first, last, *arguments)
