"""`QuasistaticSimulation`: what moves in a huge linkage, within an error bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.engines.arguments import EARTH, acceleration, seconds, torques, whole
from pliant.engines.quasistatic.solver import MEASURES, Solver
from pliant.engines.quasistatic.weights import dof_weights
from pliant.engines.trajectory import Trajectory
from pliant.engines.wrenches import entry
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism, edit
from pliant.statics import Configuration

__all__ = ["Effort", "QuasistaticSimulation"]

Floats = NDArray[np.float64]


class Effort(NamedTuple):
    """What the steps so far have cost: steps that computed every joint, times the whole tree was assembled."""

    full_steps: int
    assemblies: int


class QuasistaticSimulation:
    """Quasi-statics, error-bounded and adaptive (RL05).

    There are no velocities: every step moves joints by `timestep² qdd`, `qdd` the accelerations from rest under
    springs, gravity, wrenches and motors. Springs and dampers act implicitly, so stiff mechanisms settle with long
    steps. Only the joints that matter for the tolerance are computed, all others stay where they are; a step costs as
    much as those few do. Where that would be too many, and in mechanisms of less than some hundred joints, all are
    computed, by the linear-time articulated-body algorithm. Loops are closed within the tree of clusters, and there all
    joints that matter are always found by it.

    Joint limits, couplings and tendons are not for this engine.

    Example:
        >>> import pliant
        >>> from pliant.engines.quasistatic import QuasistaticSimulation
        >>> simulation = QuasistaticSimulation(pliant.gallery.millipede(100, 5, 300), 0.001, (0, 0, 0))
        >>> simulation.apply_wrench("leg7_5", force=(0, 0, 0.05))
        >>> simulation.step()
        >>> len(simulation.active) < simulation.mechanism.joint_count
        True
    """

    def __init__(
        self,
        mechanism: Mechanism,
        timestep: float,
        gravity: ArrayLike = EARTH,
        *,
        tolerance: float = 0.01,
        measure: str = "relative-joint",
        weights: str | Mapping[str, ArrayLike] | ArrayLike = "radians",
        implicit: bool = True,
        start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
    ):
        """Start where the mechanism is.

        Args:
            mechanism: every body that moves needs mass and inertia.
            timestep: seconds.
            gravity: m/s².
            tolerance: how large the error of a step's accelerations may be, by `measure`.
            measure: "relative-joint" (default), the largest error of a joint over the largest acceleration of a joint;
                "relative-linkage", the root of the sum of squares over that of all accelerations; "absolute-joint" and
                "absolute-linkage", the same without the denominator; "world", m, the largest displacement that a body
                misses in a step.
            weights: what joints count: "radians" (shifts over the mechanism's radius), "lever" (turns times the
                distance to the farthest body they move), "plain" (RL05's: radians and metres alike), per dof, or
                `{joint: weight}`. The measure "world" knows its own.
            implicit: springs and dampers act where a step ends; False for RL05's explicit steps.
            start: where to start; the reference pose by default.
        """
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"a Mechanism expected, not {type(mechanism).__name__}")
        self._timestep, self._gravity = seconds(timestep), acceleration(gravity)
        if not isinstance(measure, str) or measure not in MEASURES:
            known = ", ".join(f"'{name}'" for name in MEASURES)
            raise InputError(f"measure is one of {known}, not {measure!r}")
        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | np.number):
            raise InputError(f"tolerance: a number above 0 expected, not {tolerance!r}")
        if not 0 < tolerance < np.inf:
            raise InputError(f"tolerance: a number above 0 expected, not {tolerance!r}")
        m, h = mechanism, self._timestep
        self._mechanism, self._measure, self._tolerance = m, measure, float(tolerance)
        resist = m.armature + (h * h * m.stiffness + h * m.damping if implicit else 0.0)
        self._scale = h * h  # of accelerations, to displacements
        self._unit = h * h if measure == "world" else 1.0
        self._solver = Solver(
            m,
            self._gravity,
            resist,
            dof_weights(m, weights),
            MEASURES[measure],
            self._tolerance / self._unit,
            self._scale,
        )
        self._time, self._poses = 0.0, None
        self._wrenches: dict[int, Floats] = {}
        self._loaded = True
        if start is not None:
            self._solver.q[:] = self._coordinates(start)
        self._start = self._solver.q.copy()

    def _coordinates(self, given: Any) -> Floats:
        if isinstance(given, Configuration):
            if given.mechanism.joint_names != self._mechanism.joint_names:
                raise InputError("start: a configuration of another mechanism")
            given = given.q
        return edit.coordinates(self._mechanism, given)

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
        """Advance by `n` time steps. What `refine` has computed here is used, and refined further where needed.

        Raises:
            ConvergenceError: accelerations are not finite; everything is as it was before the step that failed.
        """
        n = whole(n, "step: n", 0)
        if n == 0:
            return
        self._load()
        done = self._solver.step(n, self._scale)
        self._time += done * self._timestep
        self._poses = None
        if done < n:
            raise ConvergenceError(
                f"accelerations left the finite numbers at t = {self._time:.6g} s: "
                "are the wrenches as large as you meant? A shorter timestep may help"
            )

    def record(self, n: int, every: int = 1) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`."""
        n, every = whole(n, "record: n", 1), whole(every, "record: every", 1)
        out, time = np.empty((n, self._mechanism.body_count, 4, 4)), np.empty(n)
        for i in range(n):
            self.step(every)
            out[i], time[i] = self.poses, self._time
        return Trajectory(self._mechanism, time, out)

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4); read-only. Takes time linear in their number."""
        if self._poses is None:
            self._poses = self._solver.poses()
            self._poses.flags.writeable = False
        return self._poses

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4; takes time logarithmic in the number of bodies."""
        index = self._mechanism.body_index(body)
        if index < 0:
            return np.eye(4)
        return self._solver.pose(index) if self._poses is None else self._poses[index].copy()

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
        if not given.any():
            del self._wrenches[index]
        self._loaded = False

    def clear_wrenches(self) -> None:
        """Take all wrenches away."""
        self._wrenches = {}
        self._loaded = False

    def _load(self) -> None:
        """Hand over the wrenches, if they have changed: once per step, however many there are."""
        if not self._loaded:
            self._solver.set_wrenches(self._wrenches)
            self._loaded = True

    def reset(self) -> None:
        """Back to the start: time zero, no wrenches. Motors stay."""
        self._solver.q[:] = self._start
        self._solver.moved()
        self._time, self._poses = 0.0, None
        self.clear_wrenches()

    @property
    def state(self) -> Floats:
        """Time and coordinates as one array; set it to go back there. Wrenches and motors are not part."""
        return np.concatenate([[self._time], self._solver.q])

    @state.setter
    def state(self, value: ArrayLike) -> None:
        given = np.asarray(value, dtype=np.float64)
        if given.shape != (1 + len(self._start),):
            raise InputError(
                f"state: {1 + len(self._start)} numbers expected, got shape {given.shape}; is it another simulation's?"
            )
        if not np.isfinite(given).all():
            raise InputError("state: not all numbers are finite")
        self._solver.q[:] = given[1:]
        self._solver.moved()
        self._time, self._poses = float(given[0]), None

    # --- joints

    @property
    def q(self) -> Floats:
        """Joint coordinates, (nq,); set them to place the mechanism."""
        return self._solver.q.copy()

    @q.setter
    def q(self, value: Configuration | Mapping[str, ArrayLike] | ArrayLike) -> None:
        self._solver.q[:] = self._coordinates(value)
        self._solver.moved()
        self._poses = None

    @property
    def configuration(self) -> Configuration:
        """Where the mechanism is, as a `Configuration`."""
        return Configuration(self._mechanism, self._solver.q.copy())

    def set_motor(self, joint: str, *, torque: ArrayLike) -> None:
        """Drive a joint by a torque (N m; N on slides), one for all its dofs or one per dof, until set again."""
        self._solver.set_motor(*torques(self._mechanism, joint, torque))

    def clear_motors(self) -> None:
        """Take all motors away."""
        driven = np.flatnonzero(self._solver.tree.state.motor)
        self._solver.set_motor(driven, np.zeros(len(driven)))

    # --- adaptive refinement

    def refine(self, budget: float | None = None) -> float:
        """Compute accelerations here, without moving; the error bound reached. `step` goes on from there.

        Args:
            budget: seconds: as far as that leads, beyond the tolerance too. None: as far as the tolerance asks.
        """
        if budget is not None:
            if (
                isinstance(budget, bool)
                or not isinstance(budget, int | float | np.number)
                or not 0 < budget < np.inf
            ):
                raise InputError(f"budget: a number of seconds above 0 expected, not {budget!r}")
            budget = float(budget)
        self._load()
        return self._unit * self._solver.refine(budget)

    @property
    def accelerations(self) -> Floats:
        """Accelerations last computed, (nv,), zero for joints that were not."""
        return self._solver.tree.state.qdd.copy()

    @property
    def active(self) -> tuple[str, ...]:
        """Joints whose accelerations were computed last, the first computed first."""
        m = self._mechanism
        dofs = self._solver.tree.arrays.groups[self._solver.active, 3]
        return tuple(m.joint_names[j] for j in m.dof_joint[dofs].tolist())

    @property
    def error_bound(self) -> float:
        """No larger is the error of the accelerations last computed, in the units of the measure."""
        return self._unit * self._solver.error

    @property
    def effort(self) -> Effort:
        """What the steps so far have cost."""
        return Effort(self._solver.fallbacks, self._solver.rebuilt)
