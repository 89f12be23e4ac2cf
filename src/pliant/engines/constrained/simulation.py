"""`ConstrainedSimulation`: all bodies of a mechanism in motion, stable at long steps and large mass ratios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import EARTH, choice, number
from pliant.engines.constrained.actor import ConstrainedActor
from pliant.engines.constrained.gs17.stepper import METHODS, SOLVERS, MaximalStepper
from pliant.engines.constrained.midpoint import Midpoint
from pliant.engines.settle import come_to_rest
from pliant.engines.simulation import Effort, Motor, Simulation
from pliant.errors import InputError
from pliant.mechanism import Mechanism, edit, kinematics
from pliant.mechanism.joints import BALL
from pliant.mechanism.loop_closure import close_loops
from pliant.one_thread import exclusive
from pliant.statics import Configuration, equilibrium
from pliant.statics.energy import elastic_energy, gravity_energy
from pliant.statics.loads import Load

__all__ = ["ConstrainedSimulation"]

Floats = NDArray[np.float64]
_OPEN = 1e-6  # of the radius: loops more open than this are refused as a start
_TARGET, _STIFFNESS, _VELOCITY, _DAMPING = range(4)  # rows of the table of motors


class ConstrainedSimulation(Simulation):
    """Full dynamics of a mechanism: springs, dampers, limits, loops, couplings, tendons, motors.

    The default, "newmark", keeps energy within a fraction of a percent at steps of 1/60 s and mass ratios up to
    1e8, at a cost linear in the number of joints; see `engines.constrained.midpoint`. GS17's own methods are there to
    compare with.

    Example:
        >>> import pliant
        >>> simulation = pliant.ConstrainedSimulation(pliant.gallery.cable(20, load=1000.0), 1 / 60)
        >>> simulation.apply_wrench("load", force=(500, 0, 0))
        >>> simulation.step(60)
        >>> bool(simulation.pose("load")[0, 3] > 0.1)
        True
    """

    __slots__ = ("_drive", "_solver", "_spent", "_stabilization", "_stepper", "_tolerance")

    engine = "constrained"
    holds_targets = True

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
            mechanism: bodies and joints; springs act about their own rest positions.
            timestep: seconds.
            gravity: m/s².
            stabilization: "newmark" (default), or one of GS17's: "none", "full", "low-rank", "inertial", "constraint".
            solver: "tree", linear in the number of joints; or "dense", GS17's Schur complement, for their methods only.
                By default the one that suits the method.
            start: joint coordinates at the start; the reference pose by default. Loops must close there.
            tolerance: rad (and fractions of the radius): iterations of a step that change joints by less are enough.
                Motions that small, as in the first instants of a chain of kilometres, need a smaller one.
        """
        self._begin(mechanism, timestep, gravity)
        if mechanism.nv == 0:
            raise InputError(f"nothing in '{mechanism.name}' can move: all its joints are fixed")
        self._stabilization = choice(stabilization, "stabilization", ("newmark", *METHODS))
        self._solver = None if solver is None else choice(solver, "solver", SOLVERS)
        self._tolerance = number(tolerance, "tolerance", above=0.0, most=0.1)
        self._drive: Floats = np.zeros((4, mechanism.nv))
        self._stepper: Midpoint | MaximalStepper
        if stabilization == "newmark":
            if solver == "dense":
                raise InputError('solver="dense" is for GS17\'s methods; "newmark" needs none but "tree"')
            self._stepper = Midpoint(mechanism, self._timestep, self._gravity, self._tolerance)
        else:
            self._stepper = MaximalStepper(mechanism, self._timestep, self._gravity, stabilization, solver)
        self._spent = self._stepper.effort
        if start is not None:
            self._stepper.q = self._placeable(start)
        self._started()

    @property
    def stabilization(self) -> str:
        """Method of the step."""
        return self._stabilization

    # --- hooks of the protocol

    def _placeable(self, given: Configuration | Mapping[str, ArrayLike] | ArrayLike) -> Floats:
        m, q = self._mechanism, super()._placeable(given)
        if _gap(m, q) > _OPEN * max(m.radius, 1.0):
            raise InputError("loops do not close there: `pliant.assemble` finds coordinates at which they do")
        return q

    def _advance(self, n: int) -> int:
        stepper = self._stepper
        before, start = self._read(), stepper.taken
        self._poses, interrupted = None, True
        try:
            stepper.advance(n)
            interrupted = False
        finally:
            done = stepper.taken - start
            # A failed step may be half done. Ctrl-C interrupts between whole steps, except in GS17's methods.
            if done < n and not (interrupted and isinstance(stepper, Midpoint)):
                self._write(before)
                self._steps -= stepper.advance(done)  # counted twice
        return done

    def _taken(self) -> int:
        return self._stepper.taken

    def _read(self) -> Floats:
        return np.concatenate([self._stepper.state, self._stepper.stops])

    def _write(self, values: Floats) -> None:
        count = len(self._stepper.state)
        self._stepper.state = values[:count]
        self._stepper.stops = values[count:]

    def _identity(self) -> tuple[str, ...]:
        return (self._stabilization,)

    def _is_sound(self) -> bool:
        """Besides, coordinates are finite, and quaternions of unit length."""
        return super()._is_sound() and edit.are_coordinates(self._mechanism, self._stepper.q)

    def _options(self) -> dict[str, Any]:
        return {
            "mechanism": self._mechanism,
            "timestep": self._timestep,
            "gravity": self._gravity,
            "stabilization": self._stabilization,
            "solver": self._solver,
            "tolerance": self._tolerance,
        }

    def _motion(self) -> tuple[Floats, Floats]:
        return self._stepper.q.copy(), self._stepper.velocity

    def _set_motion(self, q: Floats, rates: Floats) -> None:
        m = self._mechanism
        # Reduced models leave loops a little open.
        self._stepper.q = close_loops(m, q) if _gap(m, q) > 1e-12 * max(m.radius, 1.0) else q
        self._set_velocity(rates)

    def _set_velocity(self, rates: Floats) -> None:
        self._stepper.velocity = rates

    def _body_poses(self) -> Floats:
        return self._stepper.poses

    def _body_twists(self) -> Floats:
        return self._stepper.twists

    def _set_loads(self, loads: Mapping[int, Load]) -> None:
        self._stepper.set_loads(loads)

    def _set_torque(self, torque: Floats) -> None:
        if not isinstance(self._stepper, Midpoint):
            if torque.any() or self._drive.any():
                raise InputError(f'motors need stabilization="newmark", this is "{self._stabilization}"')
            return
        self._stepper.set_motors(self._drive, torque)

    def _motor_table(self) -> Any:
        return np.concatenate([self._drive, self._torque[None]])

    def _set_motor_table(self, table: Any) -> None:
        self._drive[:], self._torque[:] = table[:4], table[4]
        self._set_torque(self._torque)

    def _kinetic(self) -> float:
        return self._stepper.kinetic

    def _potential(self) -> tuple[float, float]:
        m = self._mechanism
        return elastic_energy(m, self._stepper.q), gravity_energy(m, self.poses, self._gravity)

    def _count_effort(self) -> None:
        self._spent = self._stepper.effort

    def _cost(self) -> Effort:
        solves, substeps, unsettled = np.subtract(self._stepper.effort, self._spent).tolist()
        return Effort(solves, self._mechanism.joint_count, self.violation, substeps, unsettled)

    def actor(self) -> ConstrainedActor:
        """Actor of this simulation for contact; GS17's methods raise once they are in a world with contacts."""
        return ConstrainedActor(self, self._stepper)

    # --- motors

    @exclusive
    def set_motor(
        self,
        joint: str,
        *,
        torque: ArrayLike = 0.0,
        target: float = 0.0,
        stiffness: float = 0.0,
        velocity: float = 0.0,
        damping: float = 0.0,
    ) -> None:
        """Drive a joint: `stiffness (target - q) + damping (velocity - dq/dt) + torque`, the first two implicitly.

        It replaces the motor the joint had. A stiff motor holds its target at any time step.

        Args:
            joint: a hinge or slide; or one dof of a joint with several. A ball takes a torque only, in its own axes.
            torque: N m or N besides, one for all dofs or one per dof.
            target, stiffness: target coordinate, rad or m, and its gain, N m/rad or N/m.
            velocity, damping: target rate, rad/s or m/s, and its gain, N m s/rad or N s/m.
        """
        m = self._mechanism
        if not isinstance(self._stepper, Midpoint):
            raise InputError(f'motors need stabilization="newmark", this is "{self._stabilization}"')
        dofs, given = self._torques(joint, torque)
        try:
            numbers = np.array([target, stiffness, velocity, damping], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"motor of '{joint}': numbers expected") from None
        if numbers.shape != (4,) or not np.isfinite(numbers).all():
            raise InputError(f"motor of '{joint}': not all numbers are finite")
        if numbers[1] < 0 or numbers[3] < 0:
            raise InputError(f"motor of '{joint}': stiffness and damping must not be negative")
        if (m.dof_kind[dofs] == BALL).any() and numbers[1:].any():
            raise InputError(f"motor of '{joint}': a ball takes a torque only")
        self._drive[:, dofs], self._torque[dofs] = numbers[:, None], given
        self._set_torque(self._torque)

    @exclusive
    def clear_motors(self) -> None:
        """Take all motors away."""
        if self._drive.any() or self._torque.any():
            self._drive[:] = self._torque[:] = 0.0
            self._set_torque(self._torque)

    @property
    def motors(self) -> dict[str, Motor]:
        """Motors that act, by dof."""
        names, table = self._mechanism.dof_names, self._motor_table()
        driven = np.flatnonzero((table[[_STIFFNESS, _DAMPING, -1]] != 0.0).any(axis=0))
        return {
            names[d]: Motor(*(float(table[i, d]) for i in (-1, _TARGET, _STIFFNESS, _VELOCITY, _DAMPING)))
            for d in driven
        }

    # --- measures

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

    def settle(self, time: float = 60.0, tolerance: float = 1e-6) -> Configuration:
        """Let the mechanism come to rest, and return the equilibrium, ready for `reduce` and `blend`.

        Once the motion has died away, Newton's method finds the equilibrium nearby, with joints that stiffen near their
        limits if some would pass them. The simulation is placed there, at rest. Newton's method leaves motors out.

        Args:
            time: longest motion, s.
            tolerance: kinetic energy that counts as rest, as a fraction of the largest seen.
        """
        come_to_rest(self, time, tolerance)
        m, gravity = self._mechanism, self._gravity
        found = equilibrium(m, self.wrenches, gravity=gravity, start=self.q)
        if found.beyond_limits and isinstance(self._stepper, Midpoint):
            found = equilibrium(m, self.wrenches, gravity=gravity, start=self.q, limits=True)
        self._stepper.q = found.q.copy()
        self._poses = None
        return found


def _gap(m: Mechanism, q: Floats) -> float:
    """Largest gap of loops and couplings at joint coordinates, m and rad."""
    return float(np.abs(kinematics.constraint_gaps(m, q, kinematics.link_poses(m, q))).max(initial=0.0))
