"""`Session` and `WorldSession`: a mechanism or a world in a live view, without the view.

A session holds a simulation that is played against the wall clock, springs that pull its bodies, and a history of
measurements. It knows no browser and no threads: callers use it from one thread at a time. The last part of this file
makes simulations and changes engines.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import EARTH, number, vector
from pliant.contact.handles import MechanismHandle, Static
from pliant.engines.reduced import BlendedModel, ReducedModel, blend, reduce
from pliant.engines.reduced.report import reach_words
from pliant.engines.simulate import ENGINES, simulate
from pliant.engines.simulation import Adaptivity, Energy, Pull, Simulation, matching_motion
from pliant.errors import InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.mechanism.loop_closure import close_loops
from pliant.scenes.scene import Scene
from pliant.statics import Configuration, equilibrium
from pliant.statics.energy import elastic_energy, gravity_energy
from pliant.statics.loads import Load
from pliant.statics.point_springs import PointSpring, equilibrium_with_springs
from pliant.text import brief, counted, round_down, suggestion
from pliant.viewer.posing import Slider, coordinate, posed, sliders
from pliant.viewer.recorder import Recorder
from pliant.world import World

__all__ = [
    "ENGINES",
    "SCALES",
    "SPEEDS",
    "STRENGTHS",
    "WORLD_ENGINES",
    "Added",
    "Budget",
    "Contacts",
    "Ellipsoid",
    "Measures",
    "RealTimePlayer",
    "Session",
    "Turn",
    "WorldMeasures",
    "WorldSession",
]

Floats = NDArray[np.float64]
Sample = (
    Configuration | None
)  # equilibrium at which a reduced model is made; None: the reference pose, unloaded

SPEEDS, STRENGTHS, SCALES = (
    (0.05, 5.0),
    (0.1, 2.0),
    (0.1, 10.0),
)  # limits: speed, pull strength, joint stiffness
_HISTORY = 400  # measurements kept
_FAR = 1e9  # m: limit of coordinates
_NEAR = 0.01  # radii: distances below are not told
_REACH = 5.0  # radii of the mechanism: limit of a pull's stretch when its target moves
_FOLLOW = 3.0  # stiffness of a pull over the mechanism's smallest stiffness at the point
_SHARE = 0.25  # of the stability limits of an explicit spring: limit of a pull's stiffness and damping
_PACE = 30.0  # rad/s: frequency of a pulled body that no joint spring holds
_DAMPING = 0.5  # damping ratio of a pull
_FREQUENCY = 4.0  # Hz: frequency of a pulled body in a world
_NAMED = 4  # contents of a world that its title names
_SMALL = 500  # bodies: up to this, steps are short, so that stiff pulls are stable
_LARGE = 2000  # bodies: beyond this, reduction takes seconds and is done on request only
_HUGE = 100_000  # dofs: beyond this, a pull's stiffness does not depend on the mechanism's (40 ms for 13,000 dofs)
_MANY = 20  # end effectors: beyond this, reduction takes seconds
_MODELS_KEPT = 200
_SLIDERS = 30  # joints with a slider, at most
_MISSED = 1e-5  # radii that a body may miss in a quasi-static step, by default
_SLUGGISH = 0.1  # m/s² that rigid parts may miss in the adaptive engine, by default
_DECADES = 3  # from the usual tolerance to its limits, at least
_EXTREME = 300  # decades
_TURN = np.pi  # rad: largest angle that a drag asks for
WORLD_ENGINES = ("reduced", "blended", "constrained")


@dataclass(eq=False)
class Turn:
    """A torque on a body, set by a drag from a point.

    Attributes:
        body: name of the body.
        index: its number in the mechanism.
        place: where the drag began, world, m.
        lever: from the body's origin to that point, world, m.
        gain: N m per radian that the drag spans about the origin.
        torque: N m, world.
        before: wrench that the body carried, which comes back at the end.
    """

    body: str
    index: int
    place: Floats
    lever: Floats
    gain: float
    torque: Floats
    before: Load | None

    def aim(self, target: Floats) -> None:
        """Set the torque by the point that the drag has reached, world."""
        angle = np.cross(self.lever, target - self.place) / max(float(self.lever @ self.lever), 1e-18)
        size = float(np.linalg.norm(angle))
        self.torque[:] = self.gain * min(1.0, _TURN / max(size, 1e-18)) * angle


class RealTimePlayer(ABC):
    """A simulation or world that is played in real time, paused and stepped, with springs that pull its bodies.

    Attributes:
        playing: whether `advance` does anything.
        speed: simulated time per real time.
        strength: factor on the stiffness of pulls.
        pulls: the active springs, by key.
        turns: the active torques, by key.
        history: measurements, the latest last.
        recorder: keeps frames after every step; None: nothing is recorded.
    """

    reach = np.inf  # m: largest distance of a pull's target from its point

    def __init__(self) -> None:
        self.playing, self.speed, self.strength = True, 1.0, 1.0
        self.pulls: dict[Hashable, Pull] = {}
        self.turns: dict[Hashable, Turn] = {}
        self.history: deque[Any] = deque(maxlen=_HISTORY)
        self.recorder: Recorder | None = None
        self._act: Callable[[Any, float], None] | None = None
        self._owed, self._step_time, self._rate = 0.0, 0.0, 1.0

    @property
    @abstractmethod
    def moving(self) -> Any:
        """The simulation or world."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """All bodies that are drawn."""

    @property
    @abstractmethod
    def poses(self) -> Floats:
        """World poses of all bodies of the mechanism, (bodies, 4, 4)."""

    @abstractmethod
    def measure(self) -> Any:
        """Measure the present state and append it to the history."""

    @abstractmethod
    def _attach(self, key: Hashable, body: str, point: Floats, target: Floats) -> Pull:
        """Add a pull from a point of a body, in its frame, to a point of the world."""

    @abstractmethod
    def _detach(self, key: Hashable, pull: Pull) -> None:
        """Take a pull away."""

    @abstractmethod
    def _fit(self, pull: Pull) -> None:
        """Adapt the spring of a pull to the strength."""

    @abstractmethod
    def _torsion(self, body: str, lever: Floats) -> float:
        """Torque per angle of a drag on a body, N m/rad, before the strength."""

    @abstractmethod
    def _carrier(self, body: str) -> tuple[Any, str]:
        """What takes wrenches on a body, and the body's name there."""

    @property
    @abstractmethod
    def loads(self) -> dict[Hashable, Floats]:
        """Point and force, world, m and N, of every wrench and pull, (2, 3)."""

    # --- time

    @property
    def timestep(self) -> float:
        """Length of a step, s."""
        return self.moving.timestep

    @property
    def time(self) -> float:
        """Simulated time since the start or the last reset, over all engines, s."""
        return self.moving.time

    def step(self, n: int = 1) -> None:
        """Advance by n steps, whether playing or not. An error pauses the session."""
        moving = self.moving
        try:
            if self._act is None:
                moving.step(n)
            else:
                for _ in range(n):
                    self._act(moving, moving.time)
                    moving.step()
        except PliantError:
            self.playing = False
            raise
        if self.recorder is not None:
            self.recorder.note(self)

    def advance(self, real: float, budget: float = 0.03) -> int:
        """Advance by real time times speed, if playing; steps that do not fit into the budget (s) are dropped.

        Returns the number of steps.
        """
        if not self.playing or real <= 0:
            return 0
        h = self.timestep
        self._owed += real * self.speed
        due = int(self._owed / h)
        self._owed -= due * h
        done, start, spent = 0, time.perf_counter(), 0.0
        while done < due and spent < budget:
            # Chunks of half the remaining budget, so that a step slower than expected does not freeze the view.
            likely = int((budget - spent) / 2 / self._step_time) if self._step_time > 0 else 1
            chunk = min(due - done, max(1, likely))
            self.step(chunk)
            done += chunk
            before, spent = spent, time.perf_counter() - start
            self._step_time = (spent - before) / chunk
        if due:
            wanted = due * h / max(self.speed, 1e-9)
            self._rate += min(1.0, real) * (done * h / wanted - self._rate)
        return done

    def set_speed(self, speed: float) -> None:
        """Set the simulated time per real time."""
        self.speed = number(speed, "speed", least=SPEEDS[0], most=SPEEDS[1])

    def _restart(self) -> None:
        """Drop time owed, measurements and pulls."""
        self._owed = 0.0
        self.history.clear()
        self.pulls.clear()
        self.turns.clear()
        if self.recorder is not None:
            self.recorder.rewind(self)

    def _remember(self, now: Any) -> None:
        """Append a measurement to the history, unless time has stood still."""
        if not self.history or now.time > self.history[-1].time:
            self.history.append(now)

    # --- pulls

    def pull(self, key: Hashable, body: str, point: ArrayLike, target: ArrayLike) -> Pull:
        """Pull a body by a spring.

        Args:
            key: name of the pull; replaces one of the same name. In a world, also one on the same body.
            body: the body. A reduced model that lacks it is made anew with it as an end effector.
            point: the point of the body to pull, world.
            target: where to, world; farther than `reach` from the point, the end of the reach.
        """
        index = self.mechanism.body_index(body)
        if index < 0:
            raise InputError("the world cannot be pulled: take a body")
        pose, place = self.poses[index], vector(point, "point", below=_FAR)
        end = self._within_reach(place, target)
        made = self._attach(key, body, pose[:3, :3].T @ (place - pose[:3, 3]), end)
        self.pulls[key] = made
        return made

    def turn(self, key: Hashable, body: str, point: ArrayLike, target: ArrayLike) -> Turn:
        """Turn a body by a torque across the lever of a point and the way from it to a target.

        Args:
            key: name of the torque; it replaces the pull or torque of that name. `move` and `release` take it, too.
            body: as for `pull`. A wrench on it is put aside until the end.
            point: where the drag began, world.
            target: where it is now, world. The torque is proportional to the angle between both about the body's
                origin, half a turn at most.
        """
        index = self.mechanism.body_index(body)
        if index < 0:
            raise InputError("the world cannot be turned: take a body")
        place, end = vector(point, "point", below=_FAR), vector(target, "target", below=_FAR)
        self.release(key)
        lever = place - self.poses[index, :3, 3]
        gain = self.strength * self._torsion(body, lever)
        carrier, name = self._carrier(body)
        made = Turn(body, index, place, lever, gain, np.zeros(3), carrier.wrenches.get(name))
        made.aim(end)
        carrier.apply_wrench(name, torque=made.torque)
        self.turns[key] = made
        return made

    def move(self, key: Hashable, target: ArrayLike) -> None:
        """Move the target of a pull or the end of the drag of a torque, if it exists."""
        if key in self.turns:
            turned = self.turns[key]
            turned.aim(vector(target, "target", below=_FAR))
            carrier, name = self._carrier(turned.body)
            carrier.apply_wrench(name, torque=turned.torque)
        if key in self.pulls:
            pull = self.pulls[key]
            pull.target[:] = self._within_reach(pull.at(self.poses), target)

    def release(self, key: Hashable) -> None:
        """End a pull or torque, if it exists."""
        if key in self.pulls:
            self._detach(key, self.pulls.pop(key))
        if key in self.turns:
            turned = self.turns.pop(key)
            carrier, name = self._carrier(turned.body)
            load = turned.before or Load.of(name)
            carrier.apply_wrench(name, load.force, load.torque, point=load.point, frame=load.frame)

    def set_strength(self, strength: float) -> None:
        """Set the factor on the stiffness of pulls."""
        self.strength = number(strength, "pull strength", least=STRENGTHS[0], most=STRENGTHS[1])
        for pull in self.pulls.values():
            self._fit(pull)

    def _within_reach(self, place: Floats, target: ArrayLike) -> Floats:
        """The target, or the point at the end of the reach on the way to it, world, m."""
        end = vector(target, "target", below=_FAR)
        distance = float(np.linalg.norm(end - place))
        return end if distance <= self.reach else place + self.reach / distance * (end - place)


# --- mechanisms


class Budget(NamedTuple):
    """Error that an adaptive engine allows and makes.

    Attributes:
        tolerance: the error allowed.
        error: that of the last step.
        unit: of both; empty for ratios.
        moving: number of joints that moved.
    """

    tolerance: float
    error: float
    unit: str
    moving: int


@dataclass(frozen=True)
class Measures:
    """Measurements of a mechanism at one time.

    Attributes:
        time: simulated, s.
        energy: J.
        violation: largest gap of a joint or loop, m.
        step_time: real time of a step, s.
        rate: simulated time per real time.
        budget: error allowed and made; None where all joints always move.
    """

    time: float
    energy: Energy
    violation: float
    step_time: float
    rate: float
    budget: Budget | None = None


@dataclass(frozen=True)
class Added:
    """Result of adding a model.

    Attributes:
        models: number of equilibria that the models are made at.
        vectors: number of vectors that a single model was extended by.
        error: largest distance of a body from the true equilibrium before, m.
        equilibrium: that equilibrium.
    """

    models: int
    vectors: int
    error: float
    equilibrium: Configuration


class Session(RealTimePlayer):
    """A mechanism that is simulated, pulled and measured.

    Attributes:
        setup: engine, mechanism, gravity and models of the simulation.
        simulation: the simulation.
        end_effectors: the chosen ones; a reduced model also has the bodies that are pulled.
        history: `Measures`, the latest last.
    """

    def __init__(self, what: Any):
        """Take a Mechanism, a ReducedModel, a BlendedModel, a simulation, or a Scene of a mechanism."""
        super().__init__()
        self._models, self._scale = Models(), 1.0
        self._tolerances: dict[tuple[str, str], float] = {}  # chosen, by engine and measure
        self._usual: dict[tuple[str, str], float] = {}  # tolerances that were not chosen here, likewise
        self._scene = what if isinstance(what, Scene) else None
        if self._scene is not None:
            what, self._act = self._scene.simulate(), self._scene.act
        self.setup, self.simulation = initial_setup(what, self._models)
        found = self.adaptivity
        if found is not None:
            self._usual[self.engine, found.measure] = found.tolerance
        self._base = self.setup.mechanism
        self.end_effectors = self.setup.end_effectors
        self._given = self.simulation if isinstance(what, Simulation) else None
        self._posed: Configuration | None = None
        self.reach = _REACH * self._base.radius

    @property
    def moving(self) -> Simulation:
        return self.simulation

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, with its joint stiffness as it is set."""
        return self.setup.mechanism

    @property
    def engine(self) -> str:
        """Name of the engine, one of `ENGINES`."""
        return self.setup.engine

    @property
    def poses(self) -> Floats:
        return self.simulation.poses if self._posed is None else self._posed.poses

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4."""
        return self.poses[self.mechanism.body_index(body)]

    @property
    def loads(self) -> dict[Hashable, Floats]:
        return self.simulation.acting

    @property
    def q(self) -> Floats:
        """Joint coordinates of `mechanism`."""
        if self._posed is not None:
            return np.array(self._posed.q)
        return matching_motion(self.simulation, self.mechanism)[0]

    @property
    def violation(self) -> float:
        """Largest gap of a joint or loop, m; see `Simulation.violation`."""
        return self.simulation.violation

    @property
    def stiffness(self) -> float:
        """Factor on the stiffness of all joints."""
        return self._scale

    @property
    def gravity(self) -> bool:
        """Whether gravity acts; else weight is compensated."""
        return bool(self.setup.gravity.any())

    @property
    def model_count(self) -> int:
        """Number of equilibria that the models are made at: those of a blend, or those a single one was extended by."""
        return len(self.setup.samples)

    @property
    def adaptivity(self) -> Adaptivity | None:
        """Tolerance, error and moving joints of the engine; None where all joints always move."""
        return self.simulation.adaptivity

    @property
    def tolerances(self) -> tuple[float, float] | None:
        """Limits of the tolerance: powers of ten, three decades or more from the usual one; None without one."""
        found = self.adaptivity
        if found is None:
            return None
        power = round(float(np.log10(self._usual[self.engine, found.measure])), 6)
        powers = np.clip([math.floor(power) - _DECADES, math.ceil(power) + _DECADES], -_EXTREME, _EXTREME)
        low, high = (float(f"1e{power}") for power in powers.tolist())
        return low, high

    def set_tolerance(self, tolerance: float) -> None:
        """Set the error that an adaptive engine allows, in its unit, from the next step on.

        Other simulations of this session with the same engine and measure get it, too.
        """
        found, limits = self.adaptivity, self.tolerances
        if found is None or limits is None:
            raise InputError(f"the {self.engine} engine has no tolerance here: all joints always move")
        simulation: Any = self.simulation
        simulation.tolerance = number(tolerance, "tolerance", least=limits[0], most=limits[1])
        self._tolerances[self.engine, found.measure] = simulation.tolerance

    @property
    def facts(self) -> str:
        """Number of models in a blend; of a single one reach and vectors, and how far its end effectors are away."""
        if self.engine == "blended":
            return f"{counted(self.model_count, 'model')} blended"
        model: Any = getattr(self.simulation, "model", None)
        if model is None:
            return ""
        words = [reach_words(model)] if model.vectors or np.isfinite(model.reach) else []
        distance = getattr(self.simulation, "distance", 0.0)
        if distance > model.known:
            words.append(
                f"**{distance:.2f} radii from where the model was made: beyond {model.known:.2g} its errors are not "
                "known, the constrained engine has none**"
            )
        elif distance >= _NEAR:
            words.append(f"{distance:.2f} radii from where the model was made")
        return "; ".join(words)

    def reset(self) -> None:
        """Return to the start of the present engine: time zero, no pulls; at rest, or as the scene starts."""
        self._posed = None
        setup = replace(self.setup, end_effectors=self.end_effectors)
        if self.simulation is not self._given:
            self.simulation = self._start(setup)
        elif self._scene is not None:
            self.simulation = self._given = self._tolerant(self._scene.simulate())
        else:
            self.simulation.reset()
        self.setup = setup
        self._restart()

    def step(self, n: int = 1) -> None:
        self._let_go()
        super().step(n)

    # --- joints

    @property
    def posed(self) -> bool:
        """Whether joints were set, and the simulation waits to go on from there."""
        return self._posed is not None

    @property
    def sliders(self) -> tuple[Slider, ...]:
        """Ranges of the first hinges, slides and balls."""
        return sliders(self._base, _SLIDERS)

    def joint(self, dof: str) -> float:
        """Coordinate of a hinge or slide, or component of the rotation vector of a ball, rad or m."""
        return coordinate(self.mechanism, self.q, dof)

    def set_joint(self, dof: str, value: float) -> None:
        """Pause, and show the mechanism with a dof at a value, rad or m; others follow to close loops.

        Of a ball, the value is a component of its rotation vector.

        The simulation goes on from there: at the next step, or when something else is changed.
        """
        q = posed(self.mechanism, self.q, dof, value)
        self.playing = False
        self._posed = Configuration(self.mechanism, q)

    def make_rest(self) -> None:
        """Make the present pose the reference pose, at which all springs are slack, and start there, at rest."""
        q = close_loops(self._base, self.q)
        base = self._base.with_pose(q).replace(rest=q)
        m = _with_scale(base, self._scale)
        setup = replace(self.setup, mechanism=m, samples=(None,), end_effectors=self.end_effectors)
        setup = with_rest_sample(setup) if setup.reduced else setup
        self.simulation = self._start(setup)
        self._base, self.setup, self._given, self._posed = base, setup, None, None
        self._restart()

    def _start(self, setup: Setup) -> Simulation:
        """Simulation of a setup at its start, with the tolerance that was chosen for its measure."""
        return self._tolerant(start_simulation(setup, self._models))

    def _tolerant(self, simulation: Any) -> Simulation:
        """The simulation, with the tolerance that was chosen for its measure."""
        found = simulation.adaptivity
        if found is not None:
            key = simulation.engine, found.measure
            usual = self._usual.setdefault(key, found.tolerance)
            simulation.tolerance = self._tolerances.get(key, usual)
        return simulation

    def _let_go(self) -> None:
        """Have the simulation go on from the joints that were set, or the nearest pose it can express."""
        if self._posed is not None:
            q, self._posed = self._posed.q, None
            self.simulation.q = q

    # --- engine, end effectors, stiffness, gravity

    def set_engine(self, engine: str) -> None:
        """Continue with another engine, from the same motion or the nearest it has."""
        if engine not in ENGINES:
            raise InputError(f"the engine is one of {', '.join(ENGINES)}, not {brief(engine)}")
        if engine != self.engine:
            self._change_setup(replace(self.setup, engine=engine))

    def set_end_effectors(self, bodies: Sequence[str]) -> None:
        """Choose the end effectors of reduced models and continue from the same motion."""
        chosen = tuple(bodies)
        if not chosen:
            raise InputError("end effectors: name at least one body")
        for i, body in enumerate(chosen):
            if self.mechanism.body_index(body) < 0:
                raise InputError("the world cannot be an end effector: name a body")
            if body in chosen[:i]:
                raise InputError(f"end effector '{body}' is named twice")
        self._change_setup(replace(self.setup, end_effectors=chosen))
        self.end_effectors = chosen

    def set_stiffness(self, scale: float) -> int:
        """Multiply the stiffness of all joints; returns the number of models of a blend that were lost."""
        scale = number(scale, "stiffness", least=SCALES[0], most=SCALES[1])
        lost = self._change_statics(replace(self.setup, mechanism=_with_scale(self._base, scale)))
        self._scale = scale
        return lost

    def set_gravity(self, on: bool) -> int:
        """Switch gravity on, or compensate it; returns the number of models of a blend that were lost."""
        gravity = np.array(EARTH) if on else np.zeros(3)
        return self._change_statics(replace(self.setup, gravity=gravity))

    def _change_statics(self, setup: Setup) -> int:
        """Continue with another stiffness or gravity, which moves the equilibria of all samples."""
        if setup.reduced:
            setup, lost = recompute_samples(setup)
        else:  # a later reduced engine has the sample at rest recomputed
            setup, lost = replace(setup, samples=(None,)), len(setup.samples) - 1
        self._change_setup(setup)
        return lost

    def _change_setup(self, setup: Setup, *pulled: str) -> None:
        """Continue with another setup from the present motion, or raise and leave everything as it is.

        Reduced models also get the bodies of all pulls, and those named `pulled`, as end effectors.
        """
        self._let_go()
        before = self.simulation
        if setup.reduced:
            bodies = (pull.body for pull in (*self.pulls.values(), *self.turns.values()))
            known = tuple(dict.fromkeys([*setup.end_effectors, *bodies, *pulled]))
            setup = with_rest_sample(replace(setup, end_effectors=known))
        after = self._start(setup)
        after.follow(before)
        for body, load in before.wrenches.items():
            if not setup.reduced or body in setup.end_effectors:
                after.apply_wrench(body, load.force, load.torque, point=load.point, frame=load.frame)
        pulls = {}
        for key, old in self.pulls.items():
            stiffness, damping = choose_spring(after, old.body, old.point, self.strength)
            if 0.5 < (old.stiffness or 0.0) / stiffness < 1.5:  # nearly as good: no jump of the force
                stiffness = old.stiffness
            made = after.pull(old.body, old.target, old.point, stiffness=stiffness, damping=damping, key=key)
            made.force[:] = old.force
            pulls[key] = made
        self.simulation, self.setup, self.pulls = after, setup, pulls

    # --- pulls

    def _attach(self, key: Hashable, body: str, point: Floats, target: Floats) -> Pull:
        self._let_go()
        self._know(body)
        stiffness, damping = choose_spring(self.simulation, body, point, self.strength)
        return self.simulation.pull(body, target, point, stiffness=stiffness, damping=damping, key=key)

    def _know(self, body: str) -> None:
        """Make a body an end effector of a reduced model, if it is none."""
        if self.setup.reduced and body not in self.setup.end_effectors:
            self._change_setup(replace(self.setup, end_effectors=self.end_effectors), body)

    def _torsion(self, body: str, lever: Floats) -> float:
        self._let_go()
        self._know(body)
        m, softness = self.mechanism, 0.0
        if m.nv <= _HUGE:
            with suppress(PliantError):  # no springs hold it
                softness = _largest(self.simulation.configuration.compliance(body)[3:, 3:])
        if softness > 0:
            return 1 / softness
        return _PACE**2 * _turning_inertia(m, m.body_index(body), lever)

    def _carrier(self, body: str) -> tuple[Any, str]:
        return self.simulation, body

    def _detach(self, key: Hashable, pull: Pull) -> None:
        self.simulation.release(key)

    def _fit(self, pull: Pull) -> None:
        pull.stiffness, pull.damping = choose_spring(self.simulation, pull.body, pull.point, self.strength)

    # --- models and measurements

    def add_model(self) -> Added:
        """Find the true equilibrium under the present pulls, and go on with models that know it (TVCG section 7).

        A single model is extended by its vectors; a blend, and a model with joint limits, get one model more.
        """
        if not self.pulls:
            raise InputError(
                "nothing is pulled, and there is a model at rest already: pull a body, then add a model"
            )
        setup = with_rest_sample(replace(self.setup, end_effectors=self.end_effectors))
        m, here, rest = self.mechanism, self.poses[:, :3, 3].copy(), setup.samples[0]
        springs = [PointSpring(p.body, p.point, p.target, p.stiffness or 0.0) for p in self.pulls.values()]
        found = equilibrium_with_springs(
            m,
            springs,
            Configuration(m, self.q),
            gravity=tuple(setup.gravity.tolist()) if setup.gravity.any() else None,
            limits=rest is not None and rest.limits,
        )
        error = float(np.linalg.norm(found.poses[:, :3, 3] - here, axis=1).max())
        blended = self.engine == "blended" or (rest is not None and rest.limits)
        setup = replace(setup, engine="blended" if blended else "reduced", samples=(*setup.samples, found))
        self._change_setup(setup)
        model: Any = self.simulation.model  # type: ignore[attr-defined]
        vectors = 0 if blended else model.vectors - self._models.first(self.setup).vectors
        return Added(len(self.setup.samples), vectors, error, found)

    def measure(self) -> Measures:
        m, weight = self.mechanism, gravity_energy(self.mechanism, self.poses, self.setup.gravity)
        energy = Energy(self.simulation.kinetic, elastic_energy(m, self.q), weight)
        found, budget = self.adaptivity, None
        if found is not None:
            budget = Budget(found.tolerance, found.error, found.unit, int(found.active.sum()))
        now = Measures(self.time, energy, self.violation, self._step_time, self._rate, budget)
        self._remember(now)
        return now

    def ellipsoid(self, body: str) -> Ellipsoid:
        """Compliance ellipsoid of an end effector's origin, from the reduced model; of a blend, at the present pose."""
        model: Any = getattr(self.simulation, "model", None)
        if model is None or body not in model.end_effectors:
            setup = with_rest_sample(replace(self.setup, engine="reduced", end_effectors=(body,)))
            model = self._models.model(setup)
        if isinstance(model, BlendedModel):
            return _compliance_ellipsoid(self.simulation.configuration.compliance(body))
        start = 6 * model.index(body)
        return _compliance_ellipsoid(model.compliance[start : start + 6, start : start + 6])


def choose_spring(simulation: Simulation, body: str, point: Floats, strength: float) -> tuple[float, float]:
    """Stiffness, N/m, and damping, N s/m, of a pull at a point of a body, in its frame.

    Three times the mechanism's smallest stiffness at the point is enough: the point follows most of the way, and an
    unreachable target does not tear the body off. A force that is constant over a step h is stable up to a stiffness of
    about `1 / (h² W)` and a damping of about `1 / (h W)`, with W the change of the point's velocity per impulse; a
    quarter of that is the limit, so that heavy bodies are pulled harder than light ones. `strength` is a factor on the
    stiffness.
    """
    m, h = simulation.mechanism, simulation.timestep
    mobility = _largest(simulation.mobility(body, point))
    if not mobility > 0:
        mobility = 3.0 / max(float(m.mass[m.body_index(body)]), 1e-9 * m.total_mass, 1e-12)
    softness = 0.0  # m/N: largest displacement per force; 0 if no springs hold the body
    if m.nv <= _HUGE:
        try:
            lever = np.hstack([np.eye(3), -spatial.hat(point)])
            softness = _largest(lever @ simulation.configuration.compliance(body) @ lever.T)
        except PliantError:
            pass
    wanted = _FOLLOW / softness if softness > 0 else _PACE**2 / mobility
    stiffness = strength * min(wanted, _SHARE / (h * h * mobility))
    if not simulation.has_velocities:
        return stiffness, 0.0
    return stiffness, min(2 * _DAMPING * float(np.sqrt(stiffness / mobility)), _SHARE / (h * mobility))


def _turning_inertia(m: Mechanism, body: int, lever: Floats) -> float:
    """Moment of inertia of a body about an axis through its origin across a lever, at most, kg m²."""
    arm = m.com[body]
    return float(np.linalg.eigvalsh(m.inertia[body])[-1] + m.mass[body] * max(arm @ arm, lever @ lever))


def _with_scale(base: Mechanism, scale: float) -> Mechanism:
    """The mechanism with the stiffness of all joints and tendons times a factor."""
    return base.replace(stiffness=scale * base.stiffness, tendon_stiffness=scale * base.tendon_stiffness)


def _largest(matrix: Floats) -> float:
    """Largest eigenvalue of the symmetric part of a matrix; 0 if it is not finite."""
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2).max()) if np.isfinite(matrix).all() else 0.0


class Ellipsoid(NamedTuple):
    """Displacements of a point under unit forces in all directions.

    Attributes:
        compliance: of the principal axes, m/N, softest first, (3,).
        axes: principal axes in the body's frame, in columns, right-handed.
    """

    compliance: Floats
    axes: Floats

    @property
    def stiffness(self) -> Floats:
        """N/m; infinite where the mechanism is rigid."""
        with np.errstate(divide="ignore"):
            return np.where(self.compliance > 0, 1 / self.compliance, np.inf)


def _compliance_ellipsoid(compliance: Floats) -> Ellipsoid:
    """Ellipsoid of a body's origin from its compliance, body axes, (6, 6)."""
    block = compliance[:3, :3]
    values, axes = np.linalg.eigh((block + block.T) / 2)
    values = np.where(values > 1e-9 * max(values[-1], 0.0), values, 0.0)
    values, axes = values[::-1].copy(), axes[:, ::-1].copy()
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return Ellipsoid(values, axes)


# --- worlds


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contact forces.

    Attributes:
        points: contact points, world, m, (n, 3).
        forces: on the body that moves; of two moving bodies, on the second; world, N, (n, 3).
        depth: largest penetration, m.
    """

    points: Floats
    forces: Floats
    depth: float

    @property
    def largest(self) -> float:
        """Magnitude of the largest force, N."""
        return float(np.linalg.norm(self.forces, axis=1).max(initial=0.0))

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class WorldMeasures:
    """Measurements of a world at one time.

    Attributes:
        time: simulated, s.
        contacts: number of contacts.
        force: sum of the magnitudes of all contact forces, N.
        depth: largest penetration, m.
        energy: of all mechanisms and free bodies, J.
        step_time: real time of a step, s.
        rate: simulated time per real time.
    """

    time: float
    contacts: int
    force: float
    depth: float
    energy: Energy
    step_time: float
    rate: float


class WorldSession(RealTimePlayer):
    """A world that is simulated, pulled and measured.

    Attributes:
        world: the world.
        history: `WorldMeasures`, the latest last.
    """

    def __init__(self, what: World | Scene):
        """Take a World, or a Scene of one."""
        super().__init__()
        if isinstance(what, Scene):
            self._act = what.act
        self.world: World = what.world if isinstance(what, Scene) else what
        if not len(tuple(self.world)):
            raise InputError("view: there is nothing in this world; add something first")
        self._mechanism = self.world.scene.replace(name=_title(tuple(self.world)))
        self._levels = {(name, self.engine(name)): self.world.level(name) for name in self.mechanisms}

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the mechanisms, which have engines; free and static bodies are left out."""
        return tuple(name for name in self.world if isinstance(self.world[name], MechanismHandle))

    @property
    def moving(self) -> World:
        return self.world

    @property
    def mechanism(self) -> Mechanism:
        """All moving bodies of the world, each a free body."""
        return self._mechanism

    @property
    def poses(self) -> Floats:
        return self.world.poses[: self.mechanism.body_count]

    def reset(self) -> None:
        """Return to the start: time zero, everything where it was added, no pulls."""
        self.world.reset()
        self._restart()

    def _attach(self, key: Hashable, body: str, point: Floats, target: Floats) -> Pull:
        made = self.world.pull(body, target, point)
        self._fit(made)
        for other in [k for k, pull in self.pulls.items() if k != key and pull.body == body]:
            del self.pulls[other]  # a body of a world has one spring
        if key in self.pulls and self.pulls[key].body != body:
            self.world.release(self.pulls[key].body)
        return made

    def _detach(self, key: Hashable, pull: Pull) -> None:
        self.world.release(pull.body)

    def _fit(self, pull: Pull) -> None:
        pull.frequency = _FREQUENCY * float(np.sqrt(self.strength))

    def _torsion(self, body: str, lever: Floats) -> float:
        m = self.mechanism
        return (2 * np.pi * _FREQUENCY) ** 2 * _turning_inertia(m, m.body_index(body), lever)

    def _carrier(self, body: str) -> tuple[Any, str]:
        name, _, link = body.partition("/")
        return self.world[name], link or name

    @property
    def loads(self) -> dict[Hashable, Floats]:
        return self.world.acting

    # --- engines: levels of detail

    def engine(self, name: str) -> str:
        """Engine of a mechanism, one of `WORLD_ENGINES`."""
        level = self.world.level(name)
        kinds = ((BlendedModel, "blended"), (ReducedModel, "reduced"), (Mechanism, "constrained"))
        return next(word for kind, word in kinds if isinstance(level, kind))

    def engines(self, name: str) -> tuple[str, ...]:
        """Engines that a mechanism may have: "blended" only if it came as a blend."""
        return tuple(word for word in WORLD_ENGINES if word != "blended" or (name, word) in self._levels)

    def set_engine(self, name: str, engine: str) -> float:
        """Continue the motion of a mechanism by another engine; a reduced model is made when first asked for.

        Returns the largest displacement of any of its bodies, m.
        """
        if name not in self.mechanisms:
            raise InputError(f"this world has no mechanism '{name!s:.80}'{suggestion(name, self.mechanisms)}")
        if engine not in self.engines(name):
            raise InputError(
                f"the engine of '{name}' is one of {', '.join(self.engines(name))}, not {engine!r:.80}"
            )
        if engine == self.engine(name):
            return 0.0
        if (name, engine) not in self._levels:
            level = self.world.level(name)
            whole = level if isinstance(level, Mechanism) else _whole(level)
            self._levels[name, engine] = whole if engine == "constrained" else reduce(whole)
        return self.world.switch(name, self._levels[name, engine])

    # --- contacts and measurements

    @property
    def contacts(self) -> Contacts:
        """Contacts with a force in the last step."""
        found = self.world.contacts
        moving = set(self.mechanism.body_names)
        sign = np.array([1.0 if b in moving else -1.0 for _, b in found.bodies]).reshape(-1, 1)
        acting = np.linalg.norm(found.forces, axis=1) > 0
        depth = float(max(0.0, -found.distances.min(initial=0.0)))
        return Contacts(found.points[acting], (sign * found.forces)[acting], depth)

    def force_on(self, body: str) -> Floats:
        """Total contact force on a body, world, N."""
        return self.world.contacts.force(body)

    def measure(self) -> WorldMeasures:
        found = self.contacts
        force = float(np.linalg.norm(found.forces, axis=1).sum())
        parts = [self.world[name].energy for name in self.world if not isinstance(self.world[name], Static)]
        energy = Energy(*(float(sum(column)) for column in zip(*parts, strict=True)))
        now = WorldMeasures(self.time, len(found), force, found.depth, energy, self._step_time, self._rate)
        self._remember(now)
        return now


def _title(names: tuple[str, ...]) -> str:
    """Names of the first few contents, and the number of the others."""
    few = ", ".join(names[:_NAMED])
    return few if len(names) <= _NAMED else f"{few} and {len(names) - _NAMED} more"


# --- making simulations, and changing engines


@dataclass(frozen=True, eq=False)
class Setup:
    """Choices that determine a simulation.

    Attributes:
        engine: one of `ENGINES`.
        mechanism: the mechanism.
        gravity: m/s²; zero: weight is compensated, the reference pose is at rest.
        end_effectors: of reduced models.
        samples: equilibria of reduced models, the one at rest first.
        timestep: s; None: chosen by `step`.
        measure: of errors in the quasi-static engine.
    """

    engine: str
    mechanism: Mechanism
    gravity: Floats
    end_effectors: tuple[str, ...]
    samples: tuple[Sample, ...]
    timestep: float | None = None
    measure: str = "world"

    @property
    def reduced(self) -> bool:
        """Whether the engine simulates reduced models."""
        return self.engine in ("reduced", "blended")

    @property
    def step(self) -> float:
        """Length of a step, s."""
        if self.timestep is not None:
            return self.timestep
        if self.mechanism.body_count <= _SMALL:
            return 1 / 240
        # Quasi-static steps relax towards rest: long ones get there sooner.
        return 1 / 10 if self.engine == "quasistatic" else 1 / 60


class Models:
    """Cache of reduced models, by mechanism, sample and end effectors."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], ReducedModel] = {}
        self._blend_options: dict[str, Any] = {}

    def keep(self, mechanism: Mechanism, sample: Sample, model: ReducedModel) -> None:
        """Add a given model."""
        self._kept[mechanism, sample, model.end_effectors] = model

    def copy_blend_options(self, given: BlendedModel) -> None:
        """Make further blends with the options of this one."""
        self._blend_options = {
            "exponent": given.exponent,
            "distance": given.distance,
            "matrices": given.matrices,
        }

    def model(self, setup: Setup) -> ReducedModel | BlendedModel:
        """The model, or blend of models, of a setup."""
        if setup.engine == "reduced":
            model = self.first(setup)
            for sample in setup.samples[1:]:
                assert sample is not None
                model = model.extend(sample)
            return model
        return blend([self._reduced(setup, sample, False) for sample in setup.samples], **self._blend_options)

    def first(self, setup: Setup) -> ReducedModel:
        """The model at the first sample of a setup."""
        return self._reduced(setup, setup.samples[0], True)

    def _reduced(self, setup: Setup, sample: Sample, modes: bool) -> ReducedModel:
        key = (setup.mechanism, sample, setup.end_effectors)
        found = self._kept.get(key)
        if found is None or (found.modes + found.vectors and not modes):  # blends take static shapes only
            if len(self._kept) > _MODELS_KEPT:
                self._kept.clear()
            found = reduce(setup.mechanism, setup.end_effectors, at=sample)
            self._kept[key] = found
        return found


def initial_setup(what: Any, models: Models) -> tuple[Setup, Simulation]:
    """First setup and simulation of a mechanism, model or simulation; given models join the cache."""
    if isinstance(what, Mechanism):
        return _mechanism_setup(what, models)
    if isinstance(what, ReducedModel | BlendedModel):
        setup = _model_setup(what, models)
        gravity = None if what.base is None else np.zeros(3)
        return setup, simulate(what, None, setup.step, gravity=gravity)
    if isinstance(what, Simulation):
        model = getattr(what, "model", None)
        if model is not None:
            return replace(_model_setup(model, models), timestep=what.timestep), what
        m, found = what.mechanism, what.adaptivity
        setup = Setup(what.engine, m, what.gravity, _initial_effectors(m), (None,), what.timestep)
        if found is not None and what.engine == "quasistatic":
            setup = replace(setup, measure=found.measure)
        return setup, what
    kind = type(what).__name__
    raise InputError(
        f"view: a Mechanism, a model or a simulation expected, or a World, a Scene or a Path, not {kind}"
    )


def _mechanism_setup(m: Mechanism, models: Models) -> tuple[Setup, Simulation]:
    """Reduced engine if possible; quasi-statics of large mechanisms; else the constrained engine, under gravity."""
    engine = "reduced" if m.body_count <= _LARGE else "quasistatic"
    setup = Setup(engine, m, np.zeros(3), _initial_effectors(m), (None,))
    try:
        return setup, start_simulation(setup, models)
    except PliantError:  # no springs hold it: it needs its weight to hang
        setup = replace(setup, engine="constrained", gravity=np.array(EARTH))
        return setup, start_simulation(setup, models)


def _initial_effectors(m: Mechanism) -> tuple[str, ...]:
    return m.end_effectors if len(m.end_effectors) <= _MANY else m.end_effectors[:1]


def _model_setup(model: ReducedModel | BlendedModel, models: Models) -> Setup:
    m, samples = _whole(model), []
    blended = isinstance(model, BlendedModel)
    for one in model.models if blended else (model,):
        samples.append(_model_sample(one, m))
        models.keep(m, samples[-1], one)
    if blended:
        models.copy_blend_options(model)
    engine = "blended" if blended else "reduced"
    return Setup(engine, m, np.zeros(3), model.end_effectors, tuple(samples))


def _whole(model: ReducedModel | BlendedModel) -> Mechanism:
    """The mechanism that a model was made of, with its floating base."""
    return model.mechanism if model.base is None else model.base.mechanism


def _model_sample(model: ReducedModel, m: Mechanism) -> Sample:
    """Equilibrium at which a model was made, with its loads, so that models with other end effectors can be made."""
    if not model.wrench.any():
        return None if np.array_equal(model.q, model.mechanism.reference) else model.at
    parts = zip(model.end_effectors, model.wrench.reshape(-1, 6), strict=True)
    wrenches = {body: {"force": w[:3], "torque": w[3:], "frame": "body"} for body, w in parts}
    try:
        return equilibrium(m, wrenches, start=model.q, limits=model.limits)
    except PliantError:
        return model.at


def with_rest_sample(setup: Setup) -> Setup:
    """The setup with its sample at rest under gravity computed, if it was not."""
    missing = setup.gravity.any() and setup.samples[0] is None
    return recompute_samples(setup)[0] if missing else setup


def recompute_samples(setup: Setup) -> tuple[Setup, int]:
    """The setup with equilibria for its mechanism and gravity, and the number of samples lost.

    A sample is lost if its load has no equilibrium any more, such as with softer springs.
    """
    m, g = setup.mechanism, setup.gravity
    gravity = tuple(g.tolist()) if g.any() and not _has_free_base(m) else None
    found: list[Sample] = [None if gravity is None else equilibrium(m, gravity=gravity)]
    for sample in setup.samples[1:]:
        assert sample is not None
        try:
            found.append(
                equilibrium(m, sample.wrenches, gravity=gravity, start=sample.q, limits=sample.limits)
            )
        except PliantError:
            continue
    return replace(setup, samples=tuple(found)), len(setup.samples) - len(found)


def _has_free_base(m: Mechanism) -> bool:
    """Whether a free joint without springs carries part of the mechanism: it falls, without equilibrium."""
    return any(
        m.joint_types[j] == "free" and m.joint_parents[j] < 0 and not m.stiffness[m.joint_dofs(j)].any()
        for j in range(m.joint_count)
    )


def start_simulation(setup: Setup, models: Models) -> Simulation:
    """Simulation of a setup at its start."""
    what = models.model(setup) if setup.reduced else setup.mechanism
    gravity = None if isinstance(what, ReducedModel | BlendedModel) and what.base is None else setup.gravity
    options: dict[str, Any] = {}
    if setup.engine == "quasistatic":
        options["measure"] = setup.measure
        if setup.measure == "world":
            options["tolerance"] = round_down(_MISSED * setup.mechanism.radius)
    elif setup.engine == "adaptive":
        options["tolerance"] = _SLUGGISH
    return simulate(what, setup.engine, setup.step, gravity=gravity, **options)
