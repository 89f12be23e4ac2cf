"""`ConstrainedSimulation`: every body of a mechanism in motion, at long steps and any mass ratio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.engines.arguments import EARTH, acceleration, seconds, torques, whole
from pliant.engines.constrained.energy import Energy, energy
from pliant.engines.constrained.midpoint import Midpoint
from pliant.engines.constrained.paper import METHODS, Paper
from pliant.engines.trajectory import Trajectory
from pliant.engines.wrenches import entry
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism, edit, kinematics
from pliant.mechanism.joints import BALL
from pliant.statics import Configuration, equilibrium

__all__ = ["ConstrainedSimulation", "Effort"]

Floats = NDArray[np.float64]
_SOLVERS = ("tree", "dense")
_OPEN = 1e-6  # of the radius: loops more open than this are refused as a start


class Effort(NamedTuple):
    """What the steps so far have cost: linear solves, parts that steps were cut into, parts that did not settle."""

    solves: int
    substeps: int
    unsettled: int


class ConstrainedSimulation:
    """Full dynamics of a mechanism: springs, dampers, limits, loops, couplings, tendons, motors.

    The default, "newmark", keeps energy within a fraction of a percent at steps of 1/60 s and mass ratios up to
    1e8, at a cost linear in the number of joints; see `engines.constrained.midpoint`. GS17's own methods are there to
    compare with. Wrenches and motors stay until they are replaced or cleared.

    Example:
        >>> import pliant
        >>> simulation = pliant.ConstrainedSimulation(pliant.gallery.cable(20, load=1000.0), 1 / 60)
        >>> simulation.apply_wrench("load", force=(500, 0, 0))
        >>> simulation.step(60)
        >>> bool(simulation.pose("load")[0, 3] > 0.1)
        True
    """

    def __init__(
        self,
        mechanism: Mechanism,
        timestep: float,
        gravity: ArrayLike = EARTH,
        stabilization: str = "newmark",
        solver: str | None = None,
        *,
        start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
        tolerance: float = 1e-5,
    ):
        """Start at rest.

        Args:
            mechanism: what moves. Springs act about their own rest positions.
            timestep: seconds.
            gravity: m/s².
            stabilization: "newmark" (default), or one of GS17's: "none", "full", "low-rank", "inertial", "constraint".
            solver: "tree", linear in the number of joints; or "dense", GS17's Schur complement, for their methods only.
                By default the one that suits the method.
            start: where to start; the reference pose by default. Loops must close there.
            tolerance: rad (and fractions of the radius): iterations of a step that change joints by less are enough.
        """
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"a Mechanism expected, not {type(mechanism).__name__}")
        if mechanism.nv == 0:
            raise InputError(f"nothing in '{mechanism.name}' can move: all its joints are fixed")
        self._timestep, self._gravity = seconds(timestep), acceleration(gravity)
        if stabilization not in ("newmark", *METHODS):
            known = ", ".join(f"'{name}'" for name in ("newmark", *METHODS))
            raise InputError(f"stabilization is one of {known}, not {stabilization!r}")
        if solver not in (None, *_SOLVERS):
            raise InputError(f"solver is 'tree' or 'dense', not {solver!r}")
        if not isinstance(tolerance, int | float) or not 0 < tolerance <= 0.1:
            raise InputError(f"tolerance: a number above 0, at most 0.1, expected, not {tolerance!r}")
        self._mechanism, self._stabilization = mechanism, stabilization
        self._stepper: Midpoint | Paper
        if stabilization == "newmark":
            if solver == "dense":
                raise InputError('solver="dense" is for GS17\'s methods; "newmark" needs none but "tree"')
            self._stepper = Midpoint(mechanism, self._timestep, self._gravity, float(tolerance))
        else:
            self._stepper = Paper(mechanism, self._timestep, self._gravity, stabilization, solver)
        self._time, self._poses = 0.0, None
        self._wrenches: dict[int, Floats] = {}
        self._given: dict[str, Any] = {}
        if start is not None:
            self._stepper.q = self._closed(start)
        self._start = self._stepper.state.copy()

    def _closed(self, given: Any) -> Floats:
        m = self._mechanism
        if isinstance(given, Configuration) and given.mechanism.joint_names != m.joint_names:
            raise InputError("start: a configuration of another mechanism")
        q = edit.coordinates(m, given.q if isinstance(given, Configuration) else given)
        gaps = kinematics.constraint_gaps(m, q, kinematics.link_poses(m, q))
        if np.abs(gaps).max(initial=0.0) > _OPEN * max(m.radius, 1.0):
            raise InputError("loops do not close there: `pliant.assemble` finds coordinates at which they do")
        return q

    # --- the common words

    @property
    def mechanism(self) -> Mechanism:
        """What moves."""
        return self._mechanism

    @property
    def timestep(self) -> float:
        """Seconds a step."""
        return self._timestep

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return self._time

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps.

        Raises:
            ConvergenceError: the motion left the finite numbers; everything is as it was before.
        """
        n = whole(n, "step: n", 0)
        before = self._stepper.state.copy()
        if self._stepper.advance(n) < n:
            self._stepper.state = before
            raise ConvergenceError(
                f"the motion left the finite numbers within {n} steps after t = {self._time:.6g} s: "
                "are the wrenches as large as you meant? A shorter timestep may help"
            )
        self._time += n * self._timestep
        self._poses = None

    def record(self, n: int, every: int = 1) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`."""
        n, every = whole(n, "record: n", 1), whole(every, "record: every", 1)
        out, time = np.empty((n, self._mechanism.body_count, 4, 4)), np.empty(n)
        before = self.state
        for i in range(n):
            try:
                self.step(every)
            except ConvergenceError:
                self.state = before
                raise
            out[i], time[i] = self.poses, self._time
        return Trajectory(self._mechanism, time, out)

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4); read-only."""
        if self._poses is None:
            self._poses = self._stepper.poses
            self._poses.flags.writeable = False
        return self._poses

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4."""
        index = self._mechanism.body_index(body)
        return np.eye(4) if index < 0 else self.poses[index].copy()

    def apply_wrench(
        self,
        body: str,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        *,
        point: ArrayLike | None = None,
        frame: str = "world",
    ) -> None:
        """Set the wrench on a body; it replaces the one before and stays until cleared.

        Args:
            body: any body.
            force, torque: N and N m.
            point: where the force acts, in the body's frame; its origin by default.
            frame: axes of force and torque: "world", and they keep their direction; or "body", and they turn with it.
        """
        index = self._mechanism.body_index(body)
        if index < 0:
            raise InputError("a wrench on the world moves nothing: name a body")
        given = entry(body, force, torque, point, frame)
        self._wrenches[index] = given
        zero = (0.0, 0.0, 0.0)
        words = {"force": force, "torque": torque, "point": point}
        self._given[body] = {k: zero if v is None else v for k, v in words.items()} | {"frame": frame}
        if not given.any():
            del self._wrenches[index], self._given[body]
        self._stepper.set_loads(self._wrenches)

    def clear_wrenches(self) -> None:
        """Take all wrenches away."""
        self._wrenches, self._given = {}, {}
        self._stepper.set_loads(self._wrenches)

    def reset(self) -> None:
        """Back to the start: time zero, at rest, no wrenches. Motors stay."""
        self._stepper.state = self._start
        self._time, self._poses = 0.0, None
        self.clear_wrenches()

    @property
    def state(self) -> Floats:
        """Time and everything that moves as one array; set it to go back there. Wrenches and motors are not part."""
        return np.concatenate([[self._time], self._stepper.state])

    @state.setter
    def state(self, value: ArrayLike) -> None:
        given = np.asarray(value, dtype=np.float64)
        if given.shape != (1 + len(self._start),):
            raise InputError(
                f"state: {1 + len(self._start)} numbers expected, got shape {given.shape}; is it another simulation's?"
            )
        if not np.isfinite(given).all():
            raise InputError("state: not all numbers are finite")
        self._stepper.state = given[1:]
        self._time, self._poses = float(given[0]), None

    # --- joints

    @property
    def q(self) -> Floats:
        """Joint coordinates, (nq,); set them to place the mechanism, at rest. Loops must close there."""
        return self._stepper.q.copy()

    @q.setter
    def q(self, value: Configuration | Mapping[str, ArrayLike] | ArrayLike) -> None:
        self._stepper.q = self._closed(value)
        self._poses = None

    @property
    def velocity(self) -> Floats:
        """Joint velocities, (nv,); set them, as an array or `{joint or dof: value}` (the others are then zero)."""
        return self._stepper.velocity

    @velocity.setter
    def velocity(self, value: Mapping[str, ArrayLike] | ArrayLike) -> None:
        m = self._mechanism
        if isinstance(value, Mapping):
            given = np.zeros(m.nv)
            for name, part in value.items():
                dofs = edit.matching_dofs(m, name)
                given[dofs] = np.broadcast_to(np.asarray(part, dtype=np.float64), (len(dofs),))
        else:
            given = np.asarray(value, dtype=np.float64)
        if given.shape != (m.nv,) or not np.isfinite(given).all():
            raise InputError(f"velocity: {m.nv} finite numbers expected, got shape {given.shape}")
        self._stepper.velocity = given

    def twist(self, body: str) -> Floats:
        """Velocity of a body's origin and its angular velocity, world axes, (6,)."""
        index = self._mechanism.body_index(body)
        return np.zeros(6) if index < 0 else self._stepper.twists[index]

    def set_motor(
        self,
        joint: str,
        *,
        target: float = 0.0,
        stiffness: float = 0.0,
        velocity: float = 0.0,
        damping: float = 0.0,
        torque: ArrayLike = 0.0,
    ) -> None:
        """Drive a joint: `stiffness (target - q) + damping (velocity - dq/dt) + torque`, the first two implicitly.

        It replaces the motor the joint had. A stiff motor holds its target at any time step.

        Args:
            joint: a hinge or slide; or one dof of a joint with several. A ball takes a torque only, in its own axes.
            target, stiffness: where to, rad or m, and how hard, N m/rad or N/m.
            velocity, damping: how fast, and how hard.
            torque: N m or N besides.
        """
        m = self._mechanism
        if not isinstance(self._stepper, Midpoint):
            raise InputError(f'motors need stabilization="newmark", this is "{self._stabilization}"')
        dofs, extra = torques(m, joint, torque)
        try:
            numbers = np.array([target, stiffness, velocity, damping], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"motor of '{joint}': numbers expected") from None
        if not np.isfinite(numbers).all():
            raise InputError(f"motor of '{joint}': not all numbers are finite")
        if stiffness < 0 or damping < 0:
            raise InputError(f"motor of '{joint}': stiffness and damping must not be negative")
        if (m.dof_kind[dofs] == BALL).any() and numbers[1:].any():
            raise InputError(f"motor of '{joint}': a ball takes a torque only")
        self._stepper.set_motor(dofs, numbers, extra)

    def clear_motors(self) -> None:
        """Take all motors away."""
        if isinstance(self._stepper, Midpoint):
            self._stepper.clear_motors()

    # --- what engineers ask

    @property
    def energy(self) -> Energy:
        """Kinetic, potential (gravity) and elastic energy, J. Work of wrenches and motors is not in it."""
        return energy(self._mechanism, self._stepper.q, self.poses, self._gravity, self._stepper.kinetic)

    @property
    def violation(self) -> float:
        """The largest distance by which a joint or loop has come apart, m."""
        return self._stepper.violation

    @property
    def joint_forces(self) -> Floats:
        """Wrench through every joint on its child in the last step, in the child's frame, (joints, 6)."""
        return self._stepper.joint_wrenches

    @property
    def damping(self) -> Floats:
        """Damping that the method gave every body in the last step, (bodies, 6); newmark gives none."""
        return self._stepper.damping

    @property
    def effort(self) -> Effort:
        """What the steps so far have cost."""
        return Effort(*self._stepper.effort)

    @property
    def configuration(self) -> Configuration:
        """Where the mechanism is, as a `Configuration`."""
        return Configuration(self._mechanism, self._stepper.q)

    def settle(self, time: float = 60.0, tolerance: float = 1e-6) -> Configuration:
        """Let the mechanism come to rest, and return the equilibrium, ready for `reduce` and `blend`.

        Whenever kinetic energy has passed a peak, everything is stopped: so it falls into the nearest equilibrium.
        What is then left is removed by Newton's method, with joints that stiffen near their limits if some would pass
        them. The simulation ends there, at rest. Motors do not take part in that.

        Args:
            time: at most so many seconds of motion.
            tolerance: kinetic energy that counts as rest, as a fraction of the largest seen.
        """
        largest, before = 0.0, 0.0
        for _ in range(max(1, round(time / self._timestep))):
            self.step()
            now = self._stepper.kinetic
            largest = max(largest, now)
            if now < before:
                if before <= tolerance * largest:
                    break
                self._stepper.velocity = np.zeros(self._mechanism.nv)
                now = 0.0
            before = now
        m, loads, gravity = self._mechanism, self._given, self._gravity
        found = equilibrium(m, loads, gravity=gravity, start=self.q)
        if found.beyond_limits and isinstance(self._stepper, Midpoint):
            found = equilibrium(m, loads, gravity=gravity, start=self.q, limits=True)
        self._stepper.q = found.q.copy()
        self._poses = None
        return found
