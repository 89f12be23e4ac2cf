"""`Simulation`: the protocol of all engines, implemented once over a few hooks per engine.

A simulation is a mechanism in motion. Its attributes and methods mean the same in every engine, in the same frames,
units and shapes. An engine implements the hooks at the end of the class, nothing else.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import get_ident
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import acceleration, flag, instance, number, numbers, room, seconds, vector, whole
from pliant.engines.actor import Actor
from pliant.engines.trajectory import Trajectory, loads_over_time
from pliant.errors import ConvergenceError, InputError, PliantError
from pliant.mechanism import Mechanism, edit, kinematics
from pliant.one_thread import DEPTH, USER, Use, exclusive
from pliant.read_only import read_only
from pliant.statics import Configuration
from pliant.statics.equilibrium import beside_springs
from pliant.statics.inertia import link_twists
from pliant.statics.loads import Load
from pliant.text import brief, counted, listed, track

__all__ = [
    "MOST_STEPS",
    "Adaptivity",
    "Effort",
    "Energy",
    "Motor",
    "Pull",
    "Simulation",
    "State",
    "Stride",
    "are_poses",
    "arrow",
    "free_coordinates",
    "free_rates",
    "matching_motion",
    "record",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_DENSE = 300  # dofs: the mobility of a point is exact up to this number, and bounded beyond
_CALL = 0.05  # s: longest compiled call, as far as the one before tells
_EXTREME = 1e12  # Hz, N/m, N s/m of the springs of pulls
MOST_STEPS = 2**53  # whole numbers beyond have no double of their own
_FARTHEST = 1e150  # m
_ROTATION = 1e-6  # largest entry of R R^T - 1 that a state may lead to
_LARGE = 100_000  # dofs: up to this number the bound takes springs into account; 40 ms for 13,000


class Energy(NamedTuple):
    """Energies, J.

    Attributes:
        kinetic: of bodies and rotors.
        elastic: of springs and tendons.
        gravity: of bodies, zero at the world's origin.
    """

    kinetic: float
    elastic: float
    gravity: float

    @property
    def total(self) -> float:
        """Sum of all three."""
        return self.kinetic + self.elastic + self.gravity


class Motor(NamedTuple):
    """Drive of a dof: `torque + stiffness (target - q) + damping (velocity - dq/dt)`.

    Attributes:
        torque: N m, or N on slides.
        target, stiffness: rad or m, and N m/rad or N/m; of engines that hold targets.
        velocity, damping: rad/s or m/s, and N m s/rad or N s/m; likewise.
    """

    torque: float = 0.0
    target: float = 0.0
    stiffness: float = 0.0
    velocity: float = 0.0
    damping: float = 0.0


class Effort(NamedTuple):
    """Cost of the last call of `step`, summed over its steps.

    Attributes:
        solves: linear solves; sweeps of a contact solver.
        active: joints, or contact rows, in the last step's equations.
        residual: of the equations of the last step, in the engine's own unit.
        substeps: number of substeps that steps were divided into.
        unsettled: substeps whose iterations did not converge and that were damped instead.
        rebuilds: assemblies of the whole tree (quasi-static engine).
    """

    solves: int = 0
    active: int = 0
    residual: float = 0.0
    substeps: int = 0
    unsettled: int = 0
    rebuilds: int = 0


class Adaptivity(NamedTuple):
    """Choice of joints of an engine that moves only some of them, and what that leaves out.

    Attributes:
        tolerance: error that is allowed; `simulation.tolerance = ...` changes it.
        error: bound or estimate of the error of the last step.
        measure: name of the error.
        unit: of tolerance and error; empty for ratios and mixed units.
        active: per joint of the mechanism, whether it moved in the last step, (joints,).
    """

    tolerance: float
    error: float
    measure: str
    unit: str
    active: NDArray[np.bool_]


class Stride:
    """Length of compiled calls: some hundredths of a second, so that Ctrl-C acts soon between two of them.

    Attributes:
        steps: number of steps that a call may take.
    """

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 1

    def parts(self, n: int) -> Iterator[int]:
        """Numbers of steps of calls that make up `n` steps; they follow the time that calls take."""
        while n > 0:
            part, begin = min(self.steps, n), perf_counter()
            yield part
            spent = perf_counter() - begin
            if spent > _CALL:
                self.steps = max(1, part // 2)
            elif spent < 0.4 * _CALL and part == self.steps:
                self.steps *= 2
            n -= part


class State:
    """Time, positions and velocities of a simulation as opaque numbers, and the fingerprint of that simulation.

    `simulation.state = state` restores them, bit for bit. Equal states compare equal; `np.asarray(state)` shows the
    numbers, time first.
    """

    __slots__ = ("_fingerprint", "_numbers")

    def __init__(self, fingerprint: int, numbers: Floats):
        self._fingerprint, self._numbers = fingerprint, read_only(numbers)

    @property
    def fingerprint(self) -> int:
        """Checksum of engine, mechanism and model."""
        return self._fingerprint

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return float(self._numbers[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._numbers, dtype=dtype) if copy or dtype else self._numbers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self._fingerprint == other._fingerprint and np.array_equal(self._numbers, other._numbers)

    def __hash__(self) -> int:
        return hash((self._fingerprint, self._numbers.tobytes()))

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<State at t = {self.time:.6g} s: {len(self)} numbers>"


@dataclass(eq=False)
class Pull:
    """A spring from a point of a body to a point of the world.

    Attributes:
        body: name of the body.
        index: its number in the mechanism, or among the bodies of a world.
        point: end of the spring on the body, body frame, m.
        target: end of the spring in the world, m.
        frequency, ratio: natural frequency, Hz, and damping ratio of the spring with the effective mass of the point.
        force: on the body in the last step, N, world.
        stiffness, damping: of the spring, N/m and N s/m; None: chosen by frequency and ratio.
        key: name of the pull.
    """

    body: str
    index: int
    point: Floats
    target: Floats
    frequency: float
    ratio: float
    force: Floats
    stiffness: float | None = None
    damping: float = 0.0
    key: Hashable = None

    @classmethod
    def of(
        cls,
        body: str,
        index: int,
        target: ArrayLike,
        point: ArrayLike,
        frequency: float,
        ratio: float,
        stiffness: float | None = None,
        damping: float = 0.0,
        key: Hashable = None,
    ) -> Pull:
        """A pull from the arguments of `Simulation.pull`, checked."""
        bounds: Any = {"least": 1.0 / _EXTREME, "most": _EXTREME}
        rate = number(frequency, "pull", **bounds, expected=f"frequency above 0, at most {_EXTREME:g},")
        share = number(ratio, "pull", **bounds, expected=f"ratio above 0, at most {_EXTREME:g},")
        if stiffness is not None:
            stiffness = number(stiffness, "pull: stiffness", **bounds)
        damping = number(damping, "pull: damping", least=0, most=_EXTREME)
        try:
            hash(key)
        except TypeError:
            raise InputError(f"pull: key: a name expected, not {brief(key)}") from None
        place, at = Load.of(body, point=target).point, Load.of(body, point=point).point
        spring = rate, share, np.zeros(3), stiffness, damping
        return cls(body, index, at.copy(), place.copy(), *spring, body if key is None else key)

    def copy(self) -> Pull:
        """Independent spring of the same kind."""
        return replace(self, point=self.point.copy(), target=self.target.copy(), force=self.force.copy())

    def at(self, poses: Floats) -> Floats:
        """World position of the pulled point, m, with bodies at `poses`, (bodies, 4, 4)."""
        return poses[self.index, :3, :3] @ self.point + poses[self.index, :3, 3]

    def coefficients(self, mobility: Floats) -> tuple[float, float]:
        """Stiffness, N/m, and damping, N s/m: given, or for a point of this mobility, 1/kg, (3, 3)."""
        if self.stiffness is not None:
            return self.stiffness, self.damping
        mass = 3.0 / max(float(np.trace(mobility)), 1e-300)
        rate = 2 * np.pi * self.frequency
        return mass * rate**2, 2 * self.ratio * mass * rate


class Simulation(ABC):
    """A mechanism in motion.

    Wrenches, motors and pulls stay until they are replaced or cleared. A call that ends early, by divergence, Ctrl-C or
    an error in `act`, leaves the simulation as after its last whole step; `time` says when. One thread at a time may
    use a simulation: a second one gets an error. Copies and pickles are independent of the original.
    """

    __slots__ = (
        "__weakref__",
        "_gravity",
        "_loaded_before",
        "_loads",
        "_mark",
        "_mechanism",
        "_origin",
        "_poses",
        "_pulls",
        "_ramps",
        "_start",
        "_steps",
        "_stride",
        "_timestep",
        "_torque",
        "_use",
    )

    engine: ClassVar[str] = ""
    holds_targets: ClassVar[bool] = False  # whether motors take targets and velocities besides torques
    has_velocities: ClassVar[bool] = True  # False: every step starts from rest

    def _begin(self, mechanism: Mechanism, timestep: float, gravity: ArrayLike) -> None:
        """First part of every constructor; `_started` is the last."""
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"a Mechanism expected, not {type(mechanism).__name__}")
        self._timestep = seconds(timestep, motion=self.has_velocities)
        self._mechanism, self._gravity = mechanism, acceleration(gravity)
        self._origin, self._steps, self._mark, self._stride = 0.0, 0, 0, Stride()
        self._loads: dict[int, Load] = {}
        self._loaded_before: dict[str, int] = {}  # numbers of bodies, by names that are known to be right
        self._ramps: dict[int, Load] = {}  # where wrenches that change over the next step begin
        self._torque: Floats = np.zeros(mechanism.nv)
        self._pulls: dict[Hashable, Pull] = {}
        self._poses: Floats | None = None
        self._use = Use()

    def _started(self) -> None:
        """Keep the present state for `reset`."""
        self._start = self._read()

    # --- motion

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism in motion."""
        return self._mechanism

    @property
    def timestep(self) -> float:
        """Length of a step, s."""
        return self._timestep

    @property
    def gravity(self) -> Floats:
        """Acceleration of gravity, m/s², world, (3,)."""
        return self._gravity.copy()

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return self._origin + (self._steps + self._taken()) * self._timestep

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps.

        Raises:
            ConvergenceError: the motion left the finite numbers; the simulation is as after its last whole step.
        """
        if type(n) is not int or n < 0:
            n = whole(n, "step: n", 0)
        use, me = self._use, get_ident()  # as `exclusive` does, without the cost of calls
        if use.setdefault(USER, me) != me:
            use.claim()
        try:
            self._count_effort()
            quick = n <= self._stride.steps and not self._pulls and not self._ramps
            done = self._advance(n) if quick else self._advance_in_strides(n)
            self._tell()
        finally:
            if DEPTH not in use:
                del use[USER]
        if done < n:
            raise ConvergenceError(self._why())

    def record(
        self,
        n: int,
        every: int = 1,
        act: Callable[[float], None] | None = None,
        progress: bool | Callable[[int], None] = False,
    ) -> Trajectory:
        """Advance by `n` times `every` steps and keep the poses of all bodies after each `every`.

        Args:
            n: number of frames.
            every: steps from one frame to the next.
            act: called with the time before every step, to change wrenches and motors.
            progress: whether to show a progress bar on stderr; or a function that takes the number of frames done.

        Raises:
            ConvergenceError: as in `step`. This and every other exception carries the frames so far as `trajectory`.
        """
        return record(self, self._mechanism, n, every, act, progress)

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4); read-only, changed by the next step."""
        if self._poses is None:
            self._poses = read_only(self._body_poses())
        return self._poses

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4; a copy."""
        index = self._mechanism.body_index(body)
        return np.eye(4) if index < 0 else self._body_pose(index)

    @property
    def q(self) -> Floats:
        """Joint coordinates of the whole mechanism, (nq,). Setting them leaves it there at rest."""
        return self._motion()[0]

    @q.setter
    @exclusive
    def q(self, value: Configuration | Mapping[str, ArrayLike] | ArrayLike) -> None:
        self._set_motion(self._placeable(value), np.zeros(self._mechanism.nv))
        self._poses = None

    @property
    def velocity(self) -> Floats:
        """Joint rates of the whole mechanism, (nv,). Set by an array, or `{joint or dof: rate}` with others zero."""
        return self._motion()[1]

    @velocity.setter
    @exclusive
    def velocity(self, value: Mapping[str, ArrayLike] | ArrayLike) -> None:
        m = self._mechanism
        if isinstance(value, Mapping):
            given = np.zeros(m.nv)
            for name, part in value.items():
                dofs = edit.matching_dofs(m, name)
                rates = numbers(part, f"velocity of '{name}'")
                if rates.shape not in ((), (len(dofs),)):
                    raise InputError(
                        f"velocity of '{name}': {len(dofs)} numbers or one expected, not {brief(part)}"
                    )
                given[dofs] = rates
            value = given
        self._set_velocity(vector(value, "velocity", m.nv))
        self._poses = None

    @property
    def configuration(self) -> Configuration:
        """The mechanism at its present joint coordinates."""
        return Configuration(self._mechanism, self.q)

    def twist(self, body: str, point: ArrayLike | None = None, frame: str = "world") -> Floats:
        """Velocity of a body's origin, then its angular velocity, (6,).

        Args:
            body: any body.
            point: point of the body, in its frame, whose velocity is given; the origin by default.
            frame: axes of both vectors: "world" or "body".
        """
        index = self._mechanism.body_index(body)
        load = Load.of(body, point=point, frame=frame)
        if index < 0:
            return np.zeros(6)
        out, turn = self._twists_of([index])[0], self._body_pose(index)[:3, :3]
        out[:3] += np.cross(out[3:], turn @ load.point)
        return out if frame == "world" else np.concatenate([out[:3] @ turn, out[3:] @ turn])

    # --- wrenches, motors, pulls

    def apply_wrench(
        self,
        body: str,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        *,
        point: ArrayLike | None = None,
        frame: str = "world",
        ramp: bool = False,
    ) -> None:
        """Set the wrench on a body; it replaces the one before and stays until cleared.

        Args:
            body: any body; an end effector of a reduced model.
            force, torque: N and N m.
            point: where the force acts, in the body's frame; its origin by default.
            frame: axes of force and torque: "world", and they keep their direction; or "body", and they turn with it.
            ramp: whether the wrench is that at the end of the next step, and changes linearly until then from the one
                before, which acts at the same point in the same axes. Loads that swell smoothly need longer steps
                so: in steps they make stiff mechanisms ring.
        """
        load = Load.of(body, force, torque, point, frame)
        use, me = self._use, get_ident()  # as `exclusive` does, without the cost of calls
        if use.setdefault(USER, me) != me:
            use.claim()
        try:
            try:
                index = self._loaded_before[body]
            except (KeyError, TypeError):
                index = self._loaded_before[body] = self._loadable(body)
            if ramp or index in self._ramps:
                self._note_ramp(body, index, load, ramp)
            if load.acts:
                self._loads[index] = load
            else:
                self._loads.pop(index, None)
            self._set_load(index, load)
        finally:
            if DEPTH not in use:
                del use[USER]

    @exclusive
    def clear_wrenches(self) -> None:
        """Take all wrenches away."""
        self._loads.clear()
        self._ramps.clear()
        self._set_loads(self._loads)

    @property
    def wrenches(self) -> dict[str, Load]:
        """Wrenches that are not zero, by body."""
        return {self._mechanism.body_names[i]: load for i, load in self._loads.items()}

    @exclusive
    def set_motor(self, joint: str, *, torque: ArrayLike) -> None:
        """Drive a joint by a torque (N m; N on slides), until set again.

        Args:
            joint: its name, or a pattern: "*" and an array drive all joints at once.
            torque: one for all dofs of the joint, or one per dof.
        """
        dofs, given = self._torques(joint, torque)
        after = self._torque.copy()
        after[dofs] = given
        self._set_torque(after)
        self._torque[:] = after

    @exclusive
    def clear_motors(self) -> None:
        """Take all motors away."""
        if self._torque.any():
            self._set_torque(np.zeros_like(self._torque))
            self._torque[:] = 0.0

    @property
    def motors(self) -> dict[str, Motor]:
        """Motors that are not zero, by dof."""
        names = self._mechanism.dof_names
        return {names[d]: Motor(float(self._torque[d])) for d in np.flatnonzero(self._torque)}

    @exclusive
    def pull(
        self,
        body: str,
        target: ArrayLike,
        point: ArrayLike = (0.0, 0.0, 0.0),
        *,
        frequency: float = 2.0,
        ratio: float = 1.0,
        stiffness: float | None = None,
        damping: float = 0.0,
        key: Hashable = None,
    ) -> Pull:
        """Pull a body towards a point of the world by a spring in proportion to its effective mass, until `release`.

        Args:
            body: as for `apply_wrench`.
            target: end of the spring in the world, m.
            point: end of the spring on the body, in its frame, m.
            frequency, ratio: natural frequency, Hz, and damping ratio of the body on its spring.
            stiffness, damping: of the spring instead, N/m and N s/m. Its force is that at the start of every step:
                stiffness times timestep² is to stay below the mass that the point feels like.
            key: name of the pull, the body's by default; it replaces the pull of that name. Several add up.

        Returns:
            The spring; move it by its `target`.
        """
        made = Pull.of(body, self._loadable(body), target, point, frequency, ratio, stiffness, damping, key)
        self._pulls[made.key] = made
        return made

    @exclusive
    def release(self, body: Hashable = None) -> None:
        """Remove all pulls on a body, the pull of that name, or all pulls."""
        ended = [key for key, pull in self._pulls.items() if body in (None, key, pull.body)]
        if not ended and isinstance(body, str):
            self._mechanism.body_index(body)  # raises if there is no such body
        for key in ended:
            del self._pulls[key]
        self._set_loads(self._loads)

    @property
    def pulls(self) -> dict[Any, Floats]:
        """Forces of pulls in the last step, N, world, by name: that of the body, unless it was given."""
        return {key: pull.force.copy() for key, pull in self._pulls.items()}

    @property
    def pulling(self) -> tuple[Pull, ...]:
        """The springs of all pulls."""
        return tuple(self._pulls.values())

    @property
    def acting(self) -> dict[Hashable, Floats]:
        """Point and force, world, m and N, (2, 3), of every wrench, by body, and pull, by ("pull", its name)."""
        poses, names = self.poses, self._mechanism.body_names
        out: dict[Hashable, Floats] = {names[i]: arrow(load, poses[i]) for i, load in self._loads.items()}
        out |= {("pull", key): np.array([pull.at(poses), pull.force]) for key, pull in self._pulls.items()}
        return out

    def _advance_in_strides(self, n: int) -> int:
        """`_advance` with pulls, with wrenches that change over the first step, or in several calls."""
        if self._pulls:
            return self._advance_pulled(n)
        done = 0
        if self._ramps and n:
            done = self._advance_ramp()
            if done < 1:
                return done
        for part in self._stride.parts(n - done):
            taken = self._advance(part)
            done += taken
            if taken < part:
                break
        return done

    def _note_ramp(self, body: str, index: int, load: Load, ramp: bool) -> None:
        """Note where a wrench that changes over the next step begins, or that it does not."""
        if not ramp:
            del self._ramps[index]
            return
        start = self._ramps.get(index, self._loads.get(index))
        if start is None:
            start = load.combined(0.0, load, 0.0)
        elif start.frame != load.frame or not np.array_equal(start.point, load.point):
            raise InputError(
                f"wrench on '{body}': a ramp goes on at the point and in the axes of the wrench before; "
                "clear_wrenches first, or set this one without ramp"
            )
        self._ramps[index] = start

    def _mean_loads(self) -> dict[int, Load]:
        """Means of all wrenches over the next step."""
        return self._loads | {
            i: start.combined(0.5, self._ramp_end(i), 0.5) for i, start in self._ramps.items()
        }

    def _ramp_end(self, index: int) -> Load:
        """Wrench at the end of a ramp."""
        start = self._ramps[index]
        return self._loads.get(index, start.combined(0.0, start, 0.0))

    def _advance_ramp(self) -> int:
        """`_advance` by one step in which some wrenches change linearly."""
        changes = {i: self._ramp_end(i).combined(1.0, start, -1.0) for i, start in self._ramps.items()}
        try:
            self._set_loads(self._mean_loads())
            self._set_changes(changes)
            done = self._advance(1)
            if done:
                self._ramps.clear()
            return done
        finally:
            self._set_changes({})
            self._set_loads(self._loads)

    def _advance_pulled(self, n: int) -> int:
        """`_advance` with pulls, whose forces are linearly implicit: those of the springs at the end of each step.

        Springs of a given stiffness are explicit: at rest their force is stiffness times stretch.
        """
        h = self._timestep
        for done in range(n):
            rows, pulls = self._mean_loads(), self._pulls.values()
            twists = self._twists_of([pull.index for pull in pulls])
            for pull, twist in zip(pulls, twists, strict=True):
                pose = self._body_pose(pull.index)
                arm = pose[:3, :3] @ pull.point
                stretch, velocity = pull.target - (arm + pose[:3, 3]), twist[:3] + np.cross(twist[3:], arm)
                if pull.stiffness is not None:
                    pull.force[:] = pull.stiffness * stretch - pull.damping * velocity
                else:
                    try:
                        mobility = self.mobility(pull.body, pull.point)
                        stiffness, damping = pull.coefficients(mobility)
                        left = np.eye(3) + h * (damping + h * stiffness) * mobility
                        right = stiffness * stretch - (damping + h * stiffness) * velocity
                        pull.force[:] = np.linalg.solve(left, right)
                    except np.linalg.LinAlgError:
                        pull.force[:] = np.nan
                if not np.isfinite(pull.force).all():
                    pull.force[:] = 0.0
                    return done
                rows[pull.index] = _sum(rows.get(pull.index), pull, pose)
            self._set_loads(rows)
            if self._advance(1) < 1:
                return done
            self._ramps.clear()
        return n

    def mobility(self, body: str, point: Floats) -> Floats:
        """Change of a point's velocity at the end of the next step per impulse during it, world axes, (3, 3)."""
        m, h = self._mechanism, self._timestep
        if m.nv > _DENSE:
            return self._mobility_bound(body, point) * np.eye(3)
        at = self.configuration
        jacobian = at.jacobian(body, "world")
        rows = jacobian[:3] - spatial.hat(at.pose(body)[:3, :3] @ point) @ jacobian[3:]
        matrix = at.mass_matrix() + h * m.damping_matrix + h * h * m.stiffness_matrix
        matrix += 1e-9 * np.diag(matrix).max() * np.eye(m.nv)  # pins of loops carry no mass
        constraints = at.loop_jacobian
        both = np.linalg.solve(matrix, np.concatenate([rows, constraints]).T)
        out = rows @ both[:, :3]
        if len(constraints):
            across = constraints @ both[:, :3]
            out -= across.T @ np.linalg.lstsq(constraints @ both[:, 3:], across, rcond=1e-9)[0]
        return (out + out.T) / 2

    def _mobility_bound(self, body: str, point: Floats) -> float:
        """Upper bound of the mobility in large mechanisms, 1/kg.

        The smaller of two: 3 / mass of the body (a rod hit at its end acts with a third of its mass or more); and the
        static response of its springs, J (M + h D + h² K)^-1 J^T <= J K^-1 J^T / h².
        """
        m, h = self._mechanism, self._timestep
        light = 3.0 / max(float(m.mass[m.body_index(body)]), 1e-9 * m.total_mass, 1e-12)
        if m.nv > _LARGE:
            return light
        try:
            compliance = self.configuration.compliance(body)
        except PliantError:
            return light
        lever = np.hstack([np.eye(3), -spatial.hat(point)])
        found = lever @ compliance @ lever.T
        soft = float(np.linalg.eigvalsh((found + found.T) / 2).max()) if np.isfinite(found).all() else 0.0
        return min(light, soft / h**2) if soft > 0 else light

    # --- state

    @property
    def state(self) -> State:
        """Time, positions and velocities as an opaque value. Setting it restores them, bit for bit.

        Wrenches, motors and pulls are not part of it.
        """
        return State(self._fingerprint(), np.concatenate([[self.time, *self._clock()], self._read()]))

    @state.setter
    @exclusive
    def state(self, value: State) -> None:
        if not isinstance(value, State):
            raise InputError(f"state: a value of `simulation.state` expected, not {type(value).__name__}")
        if value.fingerprint != self._fingerprint():
            raise InputError("state: it belongs to another simulation, of another engine, mechanism or model")
        numbers = np.asarray(value)
        flat = numbers.dtype == np.float64 and numbers.ndim == 1 and len(numbers) > 3
        counted = flat and np.isfinite(numbers).all() and abs(numbers[2]) <= MOST_STEPS
        if not counted or not self._fits(numbers[3:]):
            raise InputError("state: its numbers are damaged")
        before = self._clock(), self._read()
        self._set_clock(float(numbers[1]), int(numbers[2]))
        self._write(numbers[3:])
        self._poses = None
        if not (np.isfinite(self.time) and self._is_sound()):
            self._set_clock(*before[0])
            self._write(before[1])
            self._poses = None
            raise InputError("state: its numbers are damaged: they give bodies no pose")

    @exclusive
    def reset(self) -> None:
        """Restore the simulation as constructed, bit for bit: time zero, no wrenches, motors or pulls."""
        self._pulls.clear()
        self.clear_wrenches()
        self.clear_motors()
        self._set_clock(0.0)
        self._write(self._start)
        self._poses = None

    @exclusive
    def follow(self, other: Simulation) -> None:
        """Take over time and motion of another simulation of this mechanism, or the nearest this engine can express.

        The base may be fixed in the other simulation and free in this one, not the other way round.
        """
        self._set_motion(*matching_motion(other, self._mechanism))
        self._set_clock(other.time)
        self._poses = None

    @property
    def use(self) -> Use:
        """Claim of this simulation by one thread; a world that moves it takes it."""
        return self._use

    def _fingerprint(self) -> int:
        if self._mark == 0:
            m = self._mechanism
            parts = (self.engine, "\n".join(m.joint_names), "\n".join(m.body_names), *self._identity())
            self._mark = zlib.crc32("\n\n".join(parts).encode()) or 1
        return self._mark

    def _clock(self) -> tuple[float, int]:
        """Time at which the count of steps began, and that count: a product is exact where a sum would round."""
        return self._origin, self._steps + self._taken()

    def _set_clock(self, origin: float, steps: int = 0) -> None:
        self._origin, self._steps = origin, steps - self._taken()

    # --- energy, effort, text

    @property
    def energy(self) -> Energy:
        """Kinetic, elastic and gravitational energy, J; without potentials of wrenches and motors."""
        return Energy(self._kinetic(), *self._potential())

    @property
    def kinetic(self) -> float:
        """Kinetic energy, J."""
        return self._kinetic()

    @property
    def violation(self) -> float:
        """Largest distance by which a joint or loop has come apart, m."""
        m = self._mechanism
        if not m.topology.loops:
            return 0.0
        return float(np.linalg.norm(self.configuration.loop_residual[:, :3], axis=1).max(initial=0.0))

    @property
    def doubt(self) -> float:
        """Error by which a world chooses levels of detail, m: `violation`, unless the engine has a better measure."""
        return self.violation

    @property
    def effort(self) -> Effort:
        """Cost of the last call of `step`."""
        return self._cost()

    @property
    def adaptivity(self) -> Adaptivity | None:
        """Tolerance, error and joints that moved in the last step; None where all joints always move."""
        return None

    def summary(self) -> str:
        """Readable: engine, mechanism, time, energy, and the wrenches, motors and pulls that act."""
        m, energy = self._mechanism, self.energy
        acting = [f"wrench on {body}" for body in self.wrenches]
        acting += [f"motor of {dof}" for dof in self.motors]
        acting += [f"pull on {pull.body}" for pull in self._pulls.values()]
        return "\n".join(
            [
                f"{self.engine} simulation of '{m.name}': {m.body_count} bodies, {m.nv} dofs",
                f"  time      {self.time:.6g} s, in steps of {self._timestep:.6g} s",
                f"  energy    {energy.total:.4g} J: kinetic {energy.kinetic:.4g}, elastic {energy.elastic:.4g}, "
                f"gravity {energy.gravity:.4g}",
                f"  acting    {listed(acting, 6, quoted=False) or 'nothing'}",
            ]
        )

    def __repr__(self) -> str:
        m = self._mechanism
        size = f"{counted(m.body_count, 'body', 'bodies')}, {counted(m.nv, 'dof')}"
        return (
            f"<{type(self).__name__} of '{m.name}': {size}, steps of {self._timestep:.6g} s, "
            f"at t = {self.time:.6g} s>"
        )

    def _repr_png_(self) -> bytes:
        from pliant.viewer.picture import png

        return png(self)

    # --- copies

    def copy(self) -> Self:
        """Independent simulation in the same state, with the same wrenches, motors and pulls."""
        make, arguments = self.__reduce__()
        return make(*arguments)

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    @exclusive
    def __reduce__(self) -> tuple[Any, ...]:
        pulls = {key: pull.copy() for key, pull in self._pulls.items()}
        kept = {
            "_start": self._start.copy(),
            "_loads": dict(self._loads),
            "_ramps": dict(self._ramps),
            "_pulls": pulls,
        }
        return _restored, (type(self), self._options(), kept, self._motor_table(), self.state)

    def _motor_table(self) -> Any:
        """All motors as a value for `_set_motor_table`."""
        return self._torque.copy()

    def _set_motor_table(self, table: Any) -> None:
        self._set_torque(table)
        self._torque[:] = table

    # --- helpers for engines

    def _placeable(self, given: Configuration | Mapping[str, ArrayLike] | ArrayLike) -> Floats:
        """Joint coordinates that the engine accepts, (nq,), from a configuration, a mapping or an array."""
        if isinstance(given, Configuration):
            if given.mechanism.joint_names != self._mechanism.joint_names:
                raise InputError("start: a configuration of another mechanism")
            given = given.q
        return edit.coordinates(self._mechanism, given)

    def _loadable(self, body: str) -> int:
        """Number of a body that can take a wrench."""
        index = self._mechanism.body_index(body)
        if index < 0:
            raise InputError("a wrench on the world moves nothing: name a body")
        return index

    def _torques(self, joint: str, torque: ArrayLike) -> tuple[Ints, Floats]:
        """Dofs of a motor's joint or pattern, and a torque for each."""
        dofs, what = edit.matching_dofs(self._mechanism, joint), f"motor of '{joint}'"
        try:
            given = np.broadcast_to(numbers(torque, what), (len(dofs),))
        except ValueError:
            raise InputError(f"{what}: numbers expected, one torque or one per dof") from None
        if not np.isfinite(given).all():
            raise InputError(f"{what}: not all numbers are finite")
        return dofs, given

    def _body_pose(self, index: int) -> Floats:
        """World pose of one body; a copy."""
        return self.poses[index].copy()

    def _twists_of(self, indices: Sequence[int]) -> Floats:
        """Velocities of origins and angular velocities of some bodies, world axes, (n, 6); a copy."""
        return self._body_twists()[indices]

    def _body_twists(self) -> Floats:
        """Velocities of origins and angular velocities of all bodies, world axes, (bodies, 6)."""
        m, (q, rates) = self._mechanism, self._motion()
        local, poses = kinematics.link_transforms(m, q)
        own = link_twists(m, local, np.ascontiguousarray(rates[None]))[0][m.links.body_link]
        turn = poses[m.links.body_link, None, :3, :3]
        return np.einsum("nkij,nkj->nki", turn, own.reshape(-1, 2, 3)).reshape(-1, 6)

    def _why(self) -> str:
        """Error message after a divergence."""
        return (
            f"the motion of '{self._mechanism.name}' left the finite numbers at t = {self.time:.6g} s: "
            f"{self._beside_springs()}; are the wrenches as large as you meant? A shorter timestep may help"
        )

    def _beside_springs(self) -> str:
        """The largest wrench or motor next to the springs, in words."""
        m, loads = self._mechanism, self._loads.values()
        motors = float(np.abs(self._torque / m.dof_unit).max(initial=0.0)) / m.radius
        sizes = [
            float(np.abs(load.force).max()) + float(np.abs(load.torque).max()) / m.radius for load in loads
        ]
        return beside_springs(m, max(motors, *sizes, 0.0))

    def _set_load(self, index: int, load: Load) -> None:
        """Apply one changed wrench; `_loads` has it already."""
        self._set_loads(self._loads)

    def _set_velocity(self, rates: Floats) -> None:
        """Set joint rates, (nv,), at the present joint coordinates."""
        self._set_motion(self.q, rates)

    def _is_sound(self) -> bool:
        """Whether the numbers of a state describe a motion: poses are finite and hold rotations."""
        return are_poses(self.poses)

    def _fits(self, values: Floats) -> bool:
        """Whether finite numbers are as many as `_read` gives; they may differ with what moves."""
        return len(values) == len(self._read())

    def _identity(self) -> tuple[str, ...]:
        """Further texts of the fingerprint, which tells states of one simulation from those of another."""
        return ()

    def _set_changes(self, changes: Mapping[int, Load]) -> None:  # noqa: B027
        """Set changes of wrenches over the next step, by number of body; their means are set as loads."""

    def _taken(self) -> int:
        """Number of steps that the engine itself counts while taking them, so that Ctrl-C loses none; see `stepped`."""
        return 0

    def _count_effort(self) -> None:  # noqa: B027
        """Start to count the cost of a call of `step`, which may be several of `_advance`."""

    def _tell(self) -> None:  # noqa: B027
        """Warn of what happened in a call of `step`."""

    def stepped(self) -> None:
        """Count a step that was taken from outside, by a world with contacts."""
        self._steps += 1
        self._poses = None

    def actor(self) -> Actor | None:
        """A new `Actor` of this simulation, for contact; None if the engine has no contact."""
        return None

    # --- hooks

    @abstractmethod
    def _advance(self, n: int) -> int:
        """Take up to `n` steps, time included; returns the number of whole steps. The state is that after the last."""

    @abstractmethod
    def _read(self) -> Floats:
        """Positions and velocities, flat, without time; a copy."""

    @abstractmethod
    def _write(self, values: Floats) -> None:
        """Restore values of `_read`, bit for bit."""

    @abstractmethod
    def _motion(self) -> tuple[Floats, Floats]:
        """Joint coordinates (nq,) and rates (nv,) of the whole mechanism; copies."""

    @abstractmethod
    def _set_motion(self, q: Floats, rates: Floats) -> None:
        """Set joint coordinates and rates, or the nearest that the engine can express."""

    @abstractmethod
    def _body_poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4); a copy."""

    @abstractmethod
    def _set_loads(self, loads: Mapping[int, Load]) -> None:
        """Replace all wrenches by these, by number of body."""

    @abstractmethod
    def _set_torque(self, torque: Floats) -> None:
        """Replace the torques of all motors by these, (nv,)."""

    @abstractmethod
    def _kinetic(self) -> float:
        """Kinetic energy, J."""

    @abstractmethod
    def _potential(self) -> tuple[float, float]:
        """Elastic and gravitational energy, J."""

    @abstractmethod
    def _cost(self) -> Effort:
        """Cost of the last call of `step`."""

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """Keyword arguments of the constructor that make another simulation like this one."""


def _restored(
    kind: type[Simulation], arguments: dict[str, Any], kept: dict[str, Any], motors: Any, state: State
) -> Simulation:
    """Simulation from the values of `__reduce__`."""
    out = kind(**arguments)
    for word, value in kept.items():
        setattr(out, word, value)
    out._set_loads(out._loads)
    out._set_motor_table(motors)
    out.state = state
    return out


def _sum(load: Load | None, pull: Pull, pose: Floats) -> Load:
    """Sum of a wrench and the force of a pull on the same body, as one load in world axes."""
    if load is None:
        return Load(pull.force.copy(), np.zeros(3), pull.point)
    turn = pose[:3, :3]
    force, torque = (
        (load.force, load.torque) if load.frame == "world" else (turn @ load.force, turn @ load.torque)
    )
    moment = np.cross(turn @ load.point, force) + np.cross(turn @ pull.point, pull.force)
    return Load(force + pull.force, torque + moment, np.zeros(3))


def arrow(load: Load, pose: Floats) -> Floats:
    """Point and force of a load, world, m and N, (2, 3), on a body at a pose."""
    turn = pose[:3, :3]
    force = load.force if load.frame == "world" else turn @ load.force
    return np.array([turn @ load.point + pose[:3, 3], force])


def are_poses(poses: Floats) -> bool:
    """Whether all of these matrices, (..., 4, 4), hold rotations and places whose squares are finite."""
    turn = poses[..., :3, :3]
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(turn @ np.swapaxes(turn, -1, -2) - np.eye(3)).max(initial=0.0)
    return bool(off <= _ROTATION) and bool(np.abs(poses).max(initial=0.0) < _FARTHEST)


def free_coordinates(m: Mechanism, joint: int, pose: Floats) -> Floats:
    """Coordinates of a free joint to the world, translation and quaternion, at which its child has this pose."""
    relative = spatial.se3_inverse(m.parent_frames[joint]) @ pose @ m.child_frames[joint]
    return np.concatenate([relative[:3, 3], spatial.quat_from_matrix(relative[:3, :3])])


def free_rates(m: Mechanism, joint: int, q: Floats, twist: Floats) -> Floats:
    """Rates of a free joint to the world, (6,), at which its child has this twist (origin, world axes)."""
    link = int(m.links.body_link[m.joint_children[joint]])
    jacobian = kinematics.link_jacobian(m, kinematics.link_poses(m, q), link)
    return np.linalg.solve(jacobian[:, m.joint_dofs(joint)], twist).astype(np.float64)


def matching_motion(simulation: Simulation, m: Mechanism) -> tuple[Floats, Floats]:
    """Joint coordinates and rates of `m` from another simulation of it, whose base may be fixed instead of free."""
    instance(simulation, Simulation, "follow")
    own, q, rates = simulation.mechanism, simulation.q, simulation.velocity
    if (own.body_names, own.joint_names) != (m.body_names, m.joint_names):
        raise InputError(f"follow: a simulation of '{m.name}' expected, this is one of '{own.name}'")
    if own.nq == m.nq:
        return q, rates
    out_q, out_rates = m.reference.copy(), np.zeros(m.nv)
    freed = []
    for j in range(m.joint_count):
        here, there = own.joint_coordinates(j), m.joint_coordinates(j)
        if here.stop - here.start == there.stop - there.start:
            out_q[there], out_rates[m.joint_dofs(j)] = q[here], rates[own.joint_dofs(j)]
        elif m.joint_types[j] == "free" and m.joint_parents[j] < 0:
            out_q[there] = free_coordinates(m, j, simulation.pose(m.body_names[m.joint_children[j]]))
            freed.append(j)
        else:
            raise InputError("switch: the base of the model is fixed, and that of the mechanism moves")
    for j in freed:
        twist = simulation.twist(m.body_names[m.joint_children[j]])
        out_rates[m.joint_dofs(j)] = free_rates(m, j, out_q, twist)
    return out_q, out_rates


def record(
    simulation: Any,
    mechanism: Mechanism,
    n: int,
    every: int,
    act: Callable[[float], None] | None,
    progress: bool | Callable[[int], None],
) -> Trajectory:
    """Trajectory of a simulation or of a world; see `Simulation.record`."""
    n, every = whole(n, "record: n", 1), whole(every, "record: every", 1)
    if act is not None and not callable(act):
        raise InputError(f"record: act: a function of the time expected, not {brief(act)}")
    if not callable(progress):
        flag(progress, "record: progress")
    out = room((n, mechanism.body_count, 4, 4), f"record: {brief(n)} frames")
    time, i = np.empty(n), 0
    acting: list[dict[Hashable, Floats]] = []
    tell = progress if callable(progress) else None
    try:
        for i in track(range(n), "recording", bool(progress) and tell is None):
            if act is None:
                simulation.step(every)
            else:
                for _ in range(every):
                    act(simulation.time)
                    simulation.step()
            out[i], time[i] = simulation.poses[: mechanism.body_count], simulation.time
            acting.append(simulation.acting)
            if tell is not None:
                tell(i + 1)
    except BaseException as error:
        loads = loads_over_time(acting[:i])
        error.trajectory = Trajectory(mechanism, time[:i].copy(), out[:i].copy(), loads)  # type: ignore[attr-defined]
        raise
    return Trajectory(mechanism, time, out, loads_over_time(acting))
