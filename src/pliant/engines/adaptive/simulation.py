"""`AdaptiveSimulation`: motion of a huge linkage in which joints are rigid while little would move in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import EARTH, number, whole
from pliant.engines.adaptive.actor import AdaptiveActor
from pliant.engines.adaptive.solver import Solver, load_kernels
from pliant.engines.simulation import Adaptivity, Effort, Simulation
from pliant.errors import InputError, MechanismError
from pliant.mechanism import Mechanism, edit, kinematics
from pliant.one_thread import exclusive
from pliant.statics import Configuration
from pliant.statics.energy import elastic_energy, gravity_energy
from pliant.statics.loads import Load
from pliant.text import brief

__all__ = ["AdaptiveSimulation"]

Floats = NDArray[np.float64]
_LARGE = 1e100  # squares of larger numbers are none
_SLOW = 10.0  # steps in which a missed acceleration at the tolerance makes the speed that may be stopped


class AdaptiveSimulation(Simulation):
    """Adaptive dynamics of trees (Redon, Galoppo and Lin 2005): joints are made rigid and released while they move.

    A step moves the joints that are active, and the rigid bodies between them, by the integrator of the constrained
    engine; it costs as much as these few do. Every `interval` steps, and after changes of loads, a review compares the
    free motion with the rigid one, cluster by cluster, and chooses the active joints. Linear and angular momentum stay
    the same when joints are made rigid or released, and kinetic energy never grows by it.

    For trees of all joint types, fixed, floating or several bases. Loops, couplings and tendons are refused.

    Example:
        >>> import pliant
        >>> molecule = pliant.gallery.molecule(2000).with_stiffness("*", 0.0, 0.0)
        >>> simulation = pliant.AdaptiveSimulation(molecule, 1e-3, (0, 0, 0))
        >>> simulation.apply_wrench(molecule.body_names[-1], force=(0, 0, 1e-3))
        >>> simulation.step(10)
        >>> 0 < len(simulation.active) < molecule.joint_count / 4
        True
    """

    __slots__ = ("_given", "_solver", "_spent", "_unit")

    engine = "adaptive"

    def __init__(
        self,
        mechanism: Mechanism,
        timestep: float,
        gravity: ArrayLike = EARTH,
        *,
        tolerance: float = 0.01,
        slow: float | None = None,
        most: int | None = None,
        keep: str | Sequence[str] = (),
        interval: int = 8,
        precision: float = 1e-5,
        start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
    ):
        """Start at rest, at the reference pose or at `start`.

        Args:
            mechanism: a tree; every body that moves needs mass and inertia.
            timestep: seconds.
            gravity: m/s².
            tolerance: m/s²: a rigid cluster is opened when it misses more acceleration than a body of mean mass has at
                this one; see `error_estimate`. It can be set later on.
            slow: m/s: joints are made rigid when their motion is worth less kinetic energy than a body of mean mass has
                at this speed. By default what the tolerance makes in ten steps.
            most: joints that may be active at a time; any number by default.
            keep: joints that are always active, names or patterns; "*" for all.
            interval: steps from one review to the next.
            precision: rad (and fractions of the radius): iterations of a step that change joints by less are enough, as
                `tolerance` of the constrained engine. Linear momentum is kept to rounding at 1e-14.
            start: joint coordinates at the start; the reference pose by default.
        """
        self._begin(mechanism, timestep, gravity)
        m = mechanism
        _refuse_rows(m)
        tolerance = number(tolerance, "tolerance", above=0.0, most=_LARGE)
        slow = None if slow is None else number(slow, "slow", least=0.0, most=_LARGE)
        most = None if most is None else whole(most, "most", 1)
        interval = whole(interval, "interval", 1)
        precision = number(precision, "precision", above=0.0, most=0.1)
        if not isinstance(keep, str | Sequence):
            raise InputError(f"keep: a name, a pattern or a list of them expected, not {brief(keep)}")
        names = (keep,) if isinstance(keep, str) else tuple(keep)
        kept = [m.dof_joint[edit.matching_dofs(m, name)] for name in names]
        load_kernels()
        moving = m.mass[m.mass > 0]
        self._unit = float(moving.mean()) if len(moving) else 1.0
        try:
            self._solver = Solver(
                m,
                self._timestep,
                self._gravity,
                **self._thresholds(tolerance, slow),
                most=m.joint_count if most is None else most,
                interval=interval,
                precision=precision,
                keep=np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *kept])),
            )
        except (InputError, MechanismError) as error:  # of packing, which names another engine
            raise type(error)(str(error).replace("QuasistaticSimulation", "AdaptiveSimulation")) from None
        self._given = {
            "tolerance": tolerance,
            "slow": slow,
            "most": most,
            "keep": names,
            "interval": interval,
            "precision": precision,
        }
        self._spent = self._solver.effort, self._solver.switches
        if start is not None:
            self._solver.start_at(self._placeable(start))
        self._started()

    def _thresholds(self, tolerance: float, slow: float | None) -> dict[str, float]:
        """Defect above which a cluster is opened, kg m²/s⁴, and kinetic energy that may be lost by closing one, J."""
        speed = min(_SLOW * self._timestep * tolerance, _LARGE) if slow is None else slow
        return {"open_above": self._unit * tolerance**2, "slow": 0.5 * self._unit * speed**2}

    # --- hooks of the protocol

    def _advance(self, n: int) -> int:
        self._poses = None
        return self._solver.advance(n) if n else 0

    def _taken(self) -> int:
        return self._solver.taken

    def _set_loads(self, loads: Mapping[int, Load]) -> None:
        self._solver.set_wrenches(loads)

    def _set_torque(self, torque: Floats) -> None:
        self._solver.set_motors(torque)

    def _read(self) -> Floats:
        return self._solver.state

    def _write(self, values: Floats) -> None:
        self._solver.state = values

    def _fits(self, values: Floats) -> bool:
        return self._solver.fits(values)

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
        return self._solver.q.copy(), self._solver.velocity.copy()

    def _set_motion(self, q: Floats, rates: Floats) -> None:
        self._solver.set_motion(q, rates)

    def _body_poses(self) -> Floats:
        m = self._mechanism
        return kinematics.link_poses(m, self._solver.q)[m.links.body_link]

    def _body_pose(self, index: int) -> Floats:
        """World pose of a body, in time proportional to active joints and the depth of the assembly tree."""
        return self._solver.body_pose(index) if self._poses is None else self._poses[index].copy()

    def _twists_of(self, indices: Sequence[int]) -> Floats:
        """Twists of some bodies, each in time proportional to active joints and the depth of the assembly tree."""
        return np.array([self._solver.body_twist(index) for index in indices])

    def _kinetic(self) -> float:
        return self._solver.reduced.linkage.kinetic

    def _potential(self) -> tuple[float, float]:
        m = self._mechanism
        return elastic_energy(m, self._solver.q), gravity_energy(m, self.poses, self._gravity)

    def _count_effort(self) -> None:
        self._spent = self._solver.effort, self._solver.switches

    def _cost(self) -> Effort:
        before, switches = self._spent
        solves, substeps, unsettled = np.subtract(self._solver.effort, before).tolist()
        active, changed = len(self._solver.active_joints), self._solver.switches - switches
        return Effort(solves, active, self.error_estimate, substeps, unsettled, changed)

    def actor(self) -> AdaptiveActor:
        """Actor of this simulation for contact."""
        return AdaptiveActor(self, self._solver, self._unit)

    def stepped(self) -> None:
        """Count a step in contact, where steps are counted."""
        self._solver.count_step()
        self._poses = None

    # --- adaptivity

    @property
    def tolerance(self) -> float:
        """Acceleration that a rigid cluster may miss, m/s², as if of a body of mean mass; settable, from the next step.

        The default of `slow` follows it. It is a setting, not part of the motion: copies and pickles have it, `reset`
        leaves it, states are without it.
        """
        return self._given["tolerance"]

    @tolerance.setter
    @exclusive
    def tolerance(self, value: float) -> None:
        tolerance = number(value, "tolerance", above=0.0, most=_LARGE)
        if tolerance != self._given["tolerance"]:
            self._solver.set_thresholds(**self._thresholds(tolerance, self._given["slow"]))
            self._given["tolerance"] = tolerance

    @property
    def adaptivity(self) -> Adaptivity | None:
        if self._solver.whole:
            return None
        active = np.zeros(self._mechanism.joint_count, dtype=np.bool_)
        active[self._solver.active_joints] = True
        return Adaptivity(self.tolerance, self.error_estimate, "acceleration", "m/s²", active)

    @property
    def active(self) -> tuple[str, ...]:
        """Joints that move, parents first."""
        m = self._mechanism
        return tuple(m.joint_names[j] for j in self._solver.active_joints.tolist())

    @property
    def error_estimate(self) -> float:
        """Largest acceleration that a rigid cluster missed at the last review, m/s², as if of a body of mean mass.

        By Gauss's principle: the distance of the cluster's rigid motion from its free one under the same forces on its
        handles, the root of the sum of mass times squared acceleration of its bodies, over the root of the mean mass.
        """
        return math.sqrt(self._solver.worst / self._unit)


def _refuse_rows(m: Mechanism) -> None:
    """Refuse what ties joints of different branches to each other."""
    for count, what in (
        (m.topology.loops, "loops"),
        (len(m.couplings), "couplings"),
        (len(m.tendons), "tendons"),
    ):
        if count:
            raise InputError(
                f"'{m.name}' has {what}: AdaptiveSimulation moves trees only; use ConstrainedSimulation, or "
                "QuasistaticSimulation where velocities do not matter"
            )
