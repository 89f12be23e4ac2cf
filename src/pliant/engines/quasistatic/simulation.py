"""`QuasistaticSimulation`: what moves in a huge linkage, within an error bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import EARTH, choice, flag, number
from pliant.engines.quasistatic.contacts import Contact, Contacts
from pliant.engines.quasistatic.measures import INACTIVE, MEASURES, dof_weights
from pliant.engines.quasistatic.solver import Solver
from pliant.engines.simulation import Adaptivity, Effort, Simulation
from pliant.errors import InputError
from pliant.mechanism import Mechanism, edit
from pliant.one_thread import exclusive
from pliant.shapes import Shape
from pliant.statics import Configuration
from pliant.statics.energy import elastic_energy, gravity_energy
from pliant.statics.loads import Load
from pliant.text import brief

__all__ = ["QuasistaticSimulation"]

Floats = NDArray[np.float64]
_ROUGHEST = 1e6  # coefficient of friction: nothing slides


class QuasistaticSimulation(Simulation):
    """Quasi-statics, error-bounded and adaptive (RL05).

    There are no velocities: every step moves joints by ``h² q''``, h the time step, ``q''`` the accelerations from
    rest under springs, gravity, wrenches and motors. Springs and dampers act implicitly, so stiff mechanisms settle
    with long steps. Only the joints that matter for the tolerance are computed, all others stay where they are; a
    step costs as much as those few do. Where that would be too many, and in mechanisms of less than some hundred
    joints, all are computed, by the linear-time articulated-body algorithm, loops included. So they are at the first
    step with loops, and at every step with couplings, tendons, or loops that span much of the mechanism.

    Joint limits are not for this engine.

    Example:
        >>> import pliant
        >>> from pliant.engines.quasistatic import QuasistaticSimulation
        >>> simulation = QuasistaticSimulation(pliant.gallery.millipede(100, 5, 300), 0.001, (0, 0, 0))
        >>> simulation.apply_wrench("leg7_5", force=(0, 0, 0.05))
        >>> simulation.step()
        >>> len(simulation.active) < simulation.mechanism.joint_count
        True
    """

    __slots__ = ("_contacts", "_given", "_loaded", "_rows", "_scale", "_solver", "_spent", "_unit")

    engine = "quasistatic"
    has_velocities = False

    def __init__(
        self,
        mechanism: Mechanism,
        timestep: float,
        gravity: ArrayLike = EARTH,
        *,
        tolerance: float = 0.01,
        measure: str = "relative-joint",
        weights: str | Mapping[str, ArrayLike] | ArrayLike = "radians",
        inactive: str = "rigid",
        bodies: str | Sequence[str] | None = None,
        implicit: bool = True,
        obstacles: Sequence[Shape] = (),
        friction: float = 0.0,
        start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
    ):
        """Start at the reference pose, or at `start`.

        Args:
            mechanism: every body that moves needs mass and inertia.
            timestep: seconds.
            gravity: m/s².
            tolerance: largest error of a step's accelerations, in the units of `measure`; it can be set later on.
            measure: RL05's, of the accelerations of joints that are left out: "relative-joint" (default), the largest
                over the largest of a joint; "relative-linkage", the root of the sum of squares over that of all;
                "absolute-joint" and "absolute-linkage", the same without the denominator. Of the motion that results:
                "world", m, the largest displacement that a body misses in a step, of its origin or centre of mass;
                "energy", the energy norm of what all accelerations miss over that of all, with inertias and implicit
                springs and dampers as its matrix.
            weights: of dofs in RL05's errors and in the choice of joints: "radians" (shifts over the mechanism's
                radius), "lever" (turns times the distance to the farthest body they move), "plain" (RL05's: radians
                and metres alike), per dof, or `{joint: weight}`. The measure "world" has its own.
            inactive: what joints that are left out are to the others: "rigid", so that those computed make up for
                them, or "zero" as RL05 prints it: accelerations are computed as if all were free, then set to zero.
            bodies: names of those whose displacements count in the measure "world"; all by default.
            implicit: springs and dampers act where a step ends; False for RL05's explicit steps.
            obstacles: planes and spheres, fixed to the world, that bodies touch with their spheres, capsules and, on
                planes, boxes; not where they overlap in the reference pose.
            friction: coefficient of all contacts.
            start: joint coordinates at the start; the reference pose by default.
        """
        self._begin(mechanism, timestep, gravity)
        choice(measure, "measure", tuple(MEASURES))
        implicit = flag(implicit, "implicit")
        tolerance = number(tolerance, "tolerance", above=0.0)
        m, h = mechanism, self._timestep
        rigid = choice(inactive, "inactive", INACTIVE) == "rigid"
        places = self._places(measure, bodies)
        self._given = {
            "tolerance": tolerance,
            "measure": measure,
            "weights": weights,
            "inactive": inactive,
            "bodies": bodies,
            "implicit": implicit,
            "obstacles": self._shapes(obstacles, rigid),
            "friction": number(friction, "friction", least=0.0, most=_ROUGHEST),
        }
        resist = m.armature + (h * h * m.stiffness + h * m.damping if implicit else 0.0)
        tendons = (h * h * m.tendon_stiffness + h * m.tendon_damping) * implicit
        self._scale = h * h  # of accelerations, to displacements
        self._unit = h * h if measure == "world" else 1.0
        self._solver = Solver(
            m,
            self._gravity,
            resist,
            dof_weights(m, weights),
            MEASURES[measure],
            tolerance / self._unit,
            self._scale,
            tendons,
            rigid,
            places,
        )
        self._loaded, self._spent = True, (0, 0)
        self._contacts: Contacts | None = None
        self._rows = self._solver.rows_of({})
        if self._given["obstacles"]:
            self._contacts = Contacts(m, self._solver, self._given["obstacles"], self._given["friction"])
        if start is not None:
            self._solver.q[:] = self._placeable(start)
        self._started()

    def _places(self, measure: str, bodies: str | Sequence[str] | None) -> NDArray[np.int64] | None:
        """Indices of the bodies whose displacements count; None for all."""
        if bodies is None:
            return None
        if not isinstance(bodies, str | Sequence):
            raise InputError(f"bodies: a name or a list of names expected, not {brief(bodies)}")
        if measure != "world":
            raise InputError(
                f"bodies: only the measure 'world' asks for bodies, not '{measure}': leave them out"
            )
        found = [
            self._mechanism.body_index(name) for name in ([bodies] if isinstance(bodies, str) else bodies)
        ]
        if not found or min(found) < 0:
            raise InputError("bodies: names of bodies that move expected, at least one; the world does not")
        return np.array(found, dtype=np.int64)

    @staticmethod
    def _shapes(obstacles: Sequence[Shape], rigid: bool) -> tuple[Shape, ...]:
        """Obstacles as a tuple."""
        if isinstance(obstacles, Shape) or not isinstance(obstacles, Sequence) or isinstance(obstacles, str):
            raise InputError(f"obstacles: a list of shapes expected, not {brief(obstacles)}")
        if obstacles and not rigid:
            raise InputError("obstacles: contact needs inactive='rigid'")
        return tuple(obstacles)

    # --- hooks of the protocol

    def _advance(self, n: int) -> int:
        if n == 0:
            return 0
        solver, contacts = self._solver, self._contacts
        self._poses = None
        self._load()
        try:
            if contacts is None:
                return solver.step(n, self._scale)
            for done in range(n):
                if not contacts.step(solver, self._rows, self._scale):
                    return done
            return n
        except BaseException:  # Ctrl-C, or a joint without inertia: clusters may lag behind the coordinates
            solver.moved()
            raise

    def _taken(self) -> int:
        return self._solver.taken

    def _load(self) -> None:
        """Pass changed wrenches to the solver, once per step."""
        if not self._loaded:
            self._set_rows(self._loads)
            self._loaded = True

    def _set_rows(self, loads: Mapping[int, Load]) -> None:
        """Pass wrenches to the solver; with obstacles every step passes them, and contact forces."""
        self._rows = self._solver.rows_of(loads)
        if self._contacts is None:
            self._solver.set_loads(self._rows)

    def _set_loads(self, loads: Mapping[int, Load]) -> None:
        self._loaded = loads is not self._loads
        if self._loaded:
            self._set_rows(loads)

    def _set_torque(self, torque: Floats) -> None:
        changed = np.flatnonzero(torque != self._solver.motors)
        self._solver.set_motor(changed, torque[changed])

    def _read(self) -> Floats:
        if self._contacts is None:
            return self._solver.state
        return np.concatenate([self._contacts.forces.ravel(), self._solver.state])

    def _write(self, values: Floats) -> None:
        if self._contacts is not None:
            forces = self._contacts.forces
            forces[:], values = values[: forces.size].reshape(forces.shape), values[forces.size :]
        self._solver.state = values

    def _is_sound(self) -> bool:
        """Besides, coordinates are finite, and quaternions of unit length."""
        return super()._is_sound() and edit.are_coordinates(self._mechanism, self._solver.q)

    def _options(self) -> dict[str, Any]:
        return {
            "mechanism": self._mechanism,
            "timestep": self._timestep,
            "gravity": self._gravity,
            **self._given,
        }

    def _motion(self) -> tuple[Floats, Floats]:
        return self._solver.q.copy(), np.zeros(self._mechanism.nv)

    def _set_motion(self, q: Floats, rates: Floats) -> None:
        """Every step starts from rest: rates are left out."""
        self._solver.q[:] = q
        self._solver.moved()

    def _set_velocity(self, rates: Floats) -> None:
        if rates.any():
            raise InputError("quasi-static steps start from rest: there is no velocity to set")

    def _body_poses(self) -> Floats:
        return self._solver.poses()

    def _body_pose(self, index: int) -> Floats:
        """World pose of a body, in time logarithmic in the number of bodies."""
        return self._solver.pose(index) if self._poses is None else self._poses[index].copy()

    def _body_twists(self) -> Floats:
        return np.zeros((self._mechanism.body_count, 6))

    def _kinetic(self) -> float:
        return 0.0

    def _potential(self) -> tuple[float, float]:
        m = self._mechanism
        return elastic_energy(m, self._solver.q), gravity_energy(m, self.poses, self._gravity)

    def _count_effort(self) -> None:
        self._spent = self._solver.fallbacks, self._solver.rebuilt

    def _cost(self) -> Effort:
        full, rebuilt = (
            now - before
            for now, before in zip((self._solver.fallbacks, self._solver.rebuilt), self._spent, strict=True)
        )
        return Effort(full, len(self._solver.active_joints), self.error_bound, rebuilds=rebuilt)

    # --- contact

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Bodies that obstacles push back, and the forces on them in the last step."""
        return () if self._contacts is None else self._contacts.table(self._solver)

    # --- adaptive refinement

    @exclusive
    def refine(self, budget: float | None = None) -> float:
        """Compute accelerations at the present coordinates; returns their error bound. `step` goes on from there.

        Args:
            budget: computing time, s, beyond the tolerance too; None ends at the tolerance.
        """
        if budget is not None:
            budget = number(budget, "budget", above=0.0, expected="a number of seconds above 0")
        self._load()
        if self._contacts is not None:
            self._contacts.load(self._solver, self._rows)
        return self._unit * self._solver.refine(budget)

    @property
    def tolerance(self) -> float:
        """Largest error of a step's accelerations, in the units of the measure; settable, from the next step on.

        It is a setting, not part of the motion: copies and pickles have it, `reset` leaves it, states are without it.
        """
        return self._given["tolerance"]

    @tolerance.setter
    @exclusive
    def tolerance(self, value: float) -> None:
        tolerance = number(value, "tolerance", above=0.0)
        if tolerance != self._given["tolerance"]:
            self._solver.set_tolerance(tolerance / self._unit)
            self._given["tolerance"] = tolerance

    @property
    def adaptivity(self) -> Adaptivity | None:
        if self._solver.small:
            return None
        active = np.zeros(self._mechanism.joint_count, dtype=np.bool_)
        active[self._solver.active_joints] = True
        measure, weights = self._given["measure"], self._given["weights"]
        unit = "m" if measure == "world" else ""
        if measure.startswith("absolute") and isinstance(weights, str):
            unit = {"radians": "rad/s²", "lever": "m/s²"}.get(weights, "")
        return Adaptivity(self.tolerance, self.error_bound, measure, unit, active)

    @property
    def accelerations(self) -> Floats:
        """Accelerations last computed, (nv,), zero for joints that were not."""
        return self._solver.accelerations.copy()

    @property
    def active(self) -> tuple[str, ...]:
        """Joints whose accelerations were computed last, the first computed first."""
        m = self._mechanism
        return tuple(m.joint_names[j] for j in self._solver.active_joints.tolist())

    @property
    def error_bound(self) -> float:
        """Bound on the error of the accelerations last computed, in the units of the measure."""
        return self._unit * self._solver.error
