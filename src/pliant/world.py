"""`World`: mechanisms, free bodies and ground that touch each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import EARTH, acceleration, flag, number, seconds, vector, whole
from pliant.contact.contents import Built, Part, assemble
from pliant.contact.forces import Touching
from pliant.contact.free_bodies import FreeBodies
from pliant.contact.handles import FreeBody, MechanismHandle, Static
from pliant.contact.levels import Level, Levels
from pliant.contact.materials import Material
from pliant.engines.simulate import simulate
from pliant.engines.simulation import (
    MOST_STEPS,
    Effort,
    Pull,
    Simulation,
    Stride,
    arrow,
    free_coordinates,
    record,
)
from pliant.engines.trajectory import Trajectory
from pliant.engines.transfer import carry_over
from pliant.errors import InputError, UnknownNameError
from pliant.mechanism import Builder, Mechanism
from pliant.one_thread import Use, exclusive
from pliant.shapes import Shape
from pliant.text import brief, is_name, listed, suggestion

__all__ = ["World", "WorldState"]

Floats = NDArray[np.float64]
_MODELS = {"reduced": "reduce(mechanism)", "blended": "sample(mechanism).model"}  # made from mechanisms


class WorldState(NamedTuple):
    """State of all that moves in a world; `world.state = state` returns to it, bit for bit.

    Attributes:
        time: seconds since the start.
        actors: states of free bodies and simulations.
        memory: previous poses and contact impulses, from which the next step starts.
        fingerprint: checksum of the bodies of the world that it belongs to.
    """

    time: float
    actors: tuple[Any, ...]
    memory: tuple[NDArray, ...]
    fingerprint: int


class World:
    """Reduced models, whole mechanisms, free bodies and ground, with contact and friction between them.

    Each mechanism moves by its own simulation, and `world[name]` has its interface: wrenches, motors, poses; only
    `step`, `record` and `reset` are the world's. Bodies go by name: "ball", or "hand/index_tip" for a link of a
    mechanism.

    Example:
        >>> import pliant
        >>> world = pliant.World(1 / 60)
        >>> world.add_static("floor", pliant.shapes.plane())
        >>> world.add_body("ball", pliant.shapes.sphere(0.03), mass=0.1, position=(0, 0, 0.1))
        >>> world.step(60)
        >>> round(float(world["ball"].position[2]), 3)
        0.03
    """

    __slots__ = (
        "__weakref__",
        "_alone",
        "_built",
        "_free",
        "_gravity",
        "_handles",
        "_ignored",
        "_kept",
        "_known",
        "_levels",
        "_margin",
        "_origin",
        "_parts",
        "_pulls",
        "_simulations",
        "_steps",
        "_stride",
        "_sweeps",
        "_timestep",
        "_tolerance",
        "_use",
    )

    def __init__(
        self,
        timestep: float,
        gravity: ArrayLike = EARTH,
        *,
        margin: float | None = None,
        sweeps: int = 200,
        tolerance: float = 1e-6,
    ):
        """An empty world.

        Args:
            timestep: seconds.
            gravity: m/s².
            margin: distance of surfaces below which contacts are detected, m; by default a tenth of the half thickness
                of the thinnest moving shape.
            sweeps, tolerance: most sweeps of the contact solver in a step, and the residual at which they end, m/s.
        """
        self._timestep, self._gravity = seconds(timestep), acceleration(gravity)
        if margin is not None:
            margin = number(margin, "margin", above=0, expected="a distance above 0")
        self._margin, self._sweeps = margin, whole(sweeps, "sweeps", 1)
        self._tolerance = number(tolerance, "tolerance", above=0, expected="a velocity above 0")
        self._origin, self._steps, self._use, self._stride = 0.0, 0, Use(), Stride()
        self._parts: dict[str, Part] = {}
        self._handles: dict[str, MechanismHandle | FreeBody | Static] = {}
        self._simulations: dict[str, Simulation] = {}
        self._free = FreeBodies(self._timestep, self._gravity)
        self._ignored: set[tuple[str, str]] = set()
        self._pulls: dict[str, Pull] = {}
        self._levels = Levels(self.simulation, self._switch, self._simulate)
        self._built: Built | None = None  # made from the parts; None after a change
        self._alone: Simulation | None = None  # the only simulation, if nothing can touch
        self._known: set[str] = set()  # bodies at the last build
        self._kept: tuple[NDArray, ...] | None = None  # warm start of contacts after a switch

    # --- contents

    @exclusive
    def add(
        self,
        what: Level,
        name: str | None = None,
        *,
        engine: str | None = None,
        friction: float = 0.8,
        restitution: float = 0.0,
        rolling: float = 0.0,
        compliance: float = 0.0,
        self_contact: bool = False,
        **options: Any,
    ) -> None:
        """Add a mechanism: as a reduced or blended model, or whole.

        Its shapes touch all others, planes and height fields of its own world included. Its links touch each other,
        and their base, only with `self_contact`.

        Args:
            what: a model or a mechanism.
            name: its own by default.
            engine: "adaptive" for a mechanism that moves by `AdaptiveSimulation`; by default mechanisms move by
                `ConstrainedSimulation` and models by `ReducedSimulation`.
            friction, restitution, rolling, compliance: of its surfaces, see `pliant.contact.Material`.
            self_contact: whether links that no joint joins touch each other and other shapes of their world, unless
                they overlap from the start.
            options: for the simulation, `start=` of a mechanism for example.
        """
        material = Material(friction, restitution, rolling, compliance)
        simulation = self._simulate(what, engine, **options)
        name = self._new(simulation.mechanism.name if name is None else name)
        self_contact = flag(self_contact, "self_contact")
        self._put(
            Part(name, material, self_contact=self_contact, what=what, engine=engine, options=options),
            simulation,
        )
        self._handles[name] = MechanismHandle(self, name)

    def _simulate(self, what: Level, engine: str | None = None, **options: Any) -> Simulation:
        """Simulation of a model or mechanism, with this world's time step and gravity."""
        if not isinstance(what, Level):
            raise InputError(
                f"a ReducedModel, BlendedModel or Mechanism expected, not {type(what).__name__}; "
                "add_body and add_static take shapes"
            )
        gravity = None if not isinstance(what, Mechanism) and what.base is None else self._gravity
        if isinstance(what, Mechanism) and engine in ("reduced", "blended"):
            raise InputError(
                f"a world moves models as they are: give pliant.{_MODELS[engine]}, not the mechanism"
            )
        return simulate(what, engine, self._timestep, gravity=gravity, **options)

    def _put(self, part: Part, simulation: Simulation) -> None:
        """Set the simulation that moves a part."""
        actor = simulation.actor()
        if actor is None:
            raise InputError(
                f"the {simulation.engine} engine has no contact with what moves: it cannot move in a world; leave "
                "engine out, or take 'adaptive' for huge trees"
            )
        self._simulations[part.name] = simulation
        self._parts[part.name] = replace(part, actor=actor, mechanism=simulation.mechanism)
        self._change()

    def simulation(self, name: str) -> Simulation:
        """The simulation that moves a mechanism now."""
        self[name]
        if name not in self._simulations:
            raise InputError(f"'{name}' is no mechanism: only those have levels of detail")
        return self._simulations[name]

    @exclusive
    def add_body(
        self,
        name: str,
        shapes: Shape | Iterable[Shape],
        *,
        mass: float | None = None,
        density: float = 1000.0,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike | None = None,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        spin: ArrayLike = (0.0, 0.0, 0.0),
        friction: float = 0.8,
        restitution: float = 0.0,
        rolling: float = 0.0,
        compliance: float = 0.0,
    ) -> None:
        """Add a free rigid body. Centre of mass and inertia are those of its shapes unless given.

        Args:
            name: of the body.
            shapes: one or several, in its frame.
            mass, density: kg; or kg/m³ of the shapes.
            com, inertia: centre of mass, and inertia about it, body frame.
            position, orientation: of its frame in the world, as for `pliant.Builder.body`.
            velocity, spin: of its centre of mass and angular velocity, world axes.
            friction, restitution, rolling, compliance: of its surface, see `pliant.contact.Material`.
        """
        material = Material(friction, restitution, rolling, compliance)
        name, given = self._new(name), _shapes(name, shapes)
        # The builder computes and checks mass properties.
        b = Builder(name)
        b.body(name, mass=mass, com=com, inertia=inertia, density=density, shapes=given)
        b.free("free", "world", name)
        m = b.build()
        twist = np.concatenate([vector(velocity, f"velocity of '{name}'"), vector(spin, f"spin of '{name}'")])
        if not m.mass[0] > 0 or not (np.linalg.eigvalsh(m.inertia[0]) > 0).all():
            raise InputError(f"body '{name}': a free body needs mass and inertia")
        self._free.add(
            name, float(m.mass[0]), m.com[0], m.inertia[0], _pose(name, position, orientation), twist
        )
        self._handles[name] = FreeBody(self, name, self._free, self._free.count - 1, m)
        self._parts[name] = Part(name, material, shapes=given)
        self._change()

    @exclusive
    def add_static(
        self,
        name: str,
        shapes: Shape | Iterable[Shape],
        *,
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike | None = None,
        friction: float = 0.8,
        restitution: float = 0.0,
        rolling: float = 0.0,
        compliance: float = 0.0,
    ) -> None:
        """Add a static body: a floor, a wall, a height field."""
        material = Material(friction, restitution, rolling, compliance)
        name, given = self._new(name), _shapes(name, shapes)
        pose = _pose(name, position, orientation)
        self._handles[name] = Static(self, name, given, pose)
        self._parts[name] = Part(name, material, shapes=given, pose=pose)
        self._change()

    def _new(self, name: str) -> str:
        if not isinstance(name, str) or not is_name(name) or "/" in name:
            raise InputError(f"a name is a printable text without '/', not {brief(name)}")
        if name in self._handles:
            raise InputError(f"there is a '{name}' in this world already: choose another name")
        return name

    @exclusive
    def ignore(self, first: str, second: str) -> None:
        """Exclude contacts between two bodies; the name of a mechanism stands for all its links."""
        names = []
        for name in (first, second):
            if not isinstance(name, str) or name.partition("/")[0] not in self._parts:
                self._unknown(name, self._parts)
            names.append(name)
        self._ignored.add((names[0], names[1]))
        self._change()

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or name not in self._handles:
            self._unknown(name, self._handles)
        return self._handles[name]

    def __contains__(self, name: str) -> bool:
        return name in self._handles

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of all bodies, in the order of `poses`; static ones come last."""
        return tuple(self._build().bodies)

    def _unknown(self, name: str, known: Iterable[str]) -> NoReturn:
        raise UnknownNameError(f"this world has no {brief(name)}{suggestion(name, list(known))}")

    # --- building

    def _build(self) -> Built:
        """Actors, bodies and contact stepper, made anew after a change."""
        return self._assemble() if self._built is None else self._built

    @exclusive
    def _assemble(self) -> Built:
        """Make actors, bodies and contact stepper. Two threads that did so at once would share arrays of actors."""
        built = assemble(
            list(self._parts.values()),
            self._free,
            self._ignored,
            self._known,
            self._timestep,
            margin=self._margin,
            sweeps=self._sweeps,
            tolerance=self._tolerance,
            pulled=bool(self._pulls),
        )
        self._built, self._known = built, set(built.bodies)
        self._pulls = {body: p for body, p in self._pulls.items() if body in built.bodies}
        for body, pull in self._pulls.items():
            pull.index = built.bodies[body]
        self._hand_pulls()
        if self._kept is not None and built.stepper is not None:
            built.stepper.memory = self._kept
        self._kept = None
        if built.stepper is None and len(built.actors) == 1 and not self._free.count and not self._levels:
            now, self._alone = self.time, next(iter(self._simulations.values()))
            self._set_time(now)
        return built

    def _change(self) -> None:
        now = self.time
        self._built, self._alone, self._kept = None, None, None
        self._set_time(now)

    def _taken(self) -> int:
        """Steps that the stepper has counted."""
        return 0 if self._built is None or self._built.stepper is None else self._built.stepper.taken

    def _set_time(self, now: float) -> None:
        """Set the time, as whole steps where it is: later times are then the same, to the last digit."""
        taken, steps = self._taken(), round(now / self._timestep)
        if self._alone is not None:
            self._origin, self._steps = now - self._alone.time, 0
        elif steps * self._timestep == now:
            self._origin, self._steps = 0.0, steps - taken
        else:
            self._origin, self._steps = now, -taken

    # --- time

    @property
    def timestep(self) -> float:
        """Length of a step, s."""
        return self._timestep

    @property
    def use(self) -> Use:
        """Claim of this world by one thread; its handles take it."""
        return self._use

    @property
    def gravity(self) -> Floats:
        """Acceleration of gravity, m/s², world, (3,)."""
        return self._gravity.copy()

    @property
    def time(self) -> float:
        """Seconds since the start."""
        if self._alone is not None:
            return self._origin + self._alone.time
        return self._origin + (self._steps + self._taken()) * self._timestep

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps.

        Raises:
            InputError: bodies overlap from the start; the message names both.
            ConvergenceError: the motion left the finite numbers; the world is as after its last whole step.
        """
        if self._alone is not None:  # nothing can touch: the simulation's own step is the world's
            self._alone.step(n)
            return
        self._step_together(whole(n, "step: n", 0))

    def _step_together(self, n: int) -> None:
        claimed: list[Use] = []
        with self._use.claimed():
            try:
                for simulation in self._simulations.values():
                    simulation.use.claim()
                    claimed.append(simulation.use)
                self._step_claimed(n)
            finally:
                for use in claimed:
                    use.release()

    def _step_claimed(self, n: int) -> None:
        built = self._build()
        if self._alone is not None:
            self._alone.step(n)
        elif not self._levels:
            self._advance(built, n)
        else:
            while n > 0:
                part = self._levels.update(n)
                self._advance(self._build(), part)
                n -= part

    def _advance(self, built: Built, n: int) -> None:
        if built.stepper is not None:
            for part in self._stride.parts(n):
                error = built.stepper.advance(part)
                if error is not None:
                    raise error
            return
        for _ in range(n):
            before = self._read(built)
            try:
                for actor in built.actors:
                    actor.step()
            except BaseException:
                self._write(built, before)
                raise
            self._steps += 1

    def record(
        self,
        n: int,
        every: int = 1,
        act: Callable[[float], None] | None = None,
        progress: bool | Callable[[int], None] = False,
    ) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`; see `Simulation.record`.

        The trajectory's mechanism is `scene`: every body of the world on its own, for views and files.
        """
        return record(self, self.scene, n, every, act, progress)

    @exclusive
    def reset(self) -> None:
        """Return to the start: time zero, everything where it was added, no wrenches, motors or pulls."""
        for name, part in list(self._parts.items()):
            if part.what is not None:
                if self.level(name) is not part.what:
                    self._put(part, self._simulate(part.what, part.engine, **part.options))
                self._levels.restart(name, part.what)
        self.release()
        built = self._build()
        for actor in built.actors:
            actor.reset()
        self._set_time(0.0)
        if built.stepper is not None:
            built.stepper.memory = ()
            built.stepper.forget()

    def _read(self, built: Built) -> WorldState:
        memory = () if built.stepper is None else built.stepper.memory
        return WorldState(self.time, tuple(actor.state for actor in built.actors), memory, built.fingerprint)

    def _write(self, built: Built, value: WorldState) -> None:
        for actor, part in zip(built.actors, value.actors, strict=True):
            actor.state = part
        self._set_time(value.time)
        if built.stepper is not None:
            built.stepper.memory = value.memory
            built.stepper.forget()

    @property
    @exclusive
    def state(self) -> WorldState:
        """State of all that moves; setting it returns to it exactly. Wrenches, motors and pulls are no part of it."""
        return self._read(self._build())

    @state.setter
    @exclusive
    def state(self, value: WorldState) -> None:
        built = self._build()
        if not isinstance(value, WorldState):
            raise InputError(f"state: a value of `world.state` expected, not {type(value).__name__}")
        own = isinstance(value.fingerprint, int) and value.fingerprint == built.fingerprint
        if not own or not isinstance(value.actors, tuple) or len(value.actors) != len(built.actors):
            raise InputError("state: it belongs to another world, or to this one with other bodies")
        most = MOST_STEPS * self._timestep
        number(value.time, "state: time", least=-most, most=most)
        if built.stepper is not None:
            built.stepper.check_memory(value.memory)
        before = self._read(built)
        try:
            self._write(built, value)
        except BaseException:
            self._write(built, before)
            raise

    # --- levels of detail

    @exclusive
    def switch(self, name: str, to: Level) -> float:
        """Change the level of detail of a mechanism while it moves.

        Joints, velocities, a floating base, wrenches, torques of motors and contacts carry over. A whole mechanism
        starts in the pose of the model, with its loops closed; a model as near as it can: the distance is returned.

        Args:
            name: of a mechanism in this world.
            to: a `ReducedModel` or `BlendedModel` of it, or the `Mechanism`, moved by the engine it was added with.

        Returns:
            The largest displacement of any of its bodies, m.

        Raises:
            InputError: it is another mechanism, or a wrench or motor cannot be carried over; nothing is changed.
        """
        self.simulation(name)
        self._levels.drop(name)
        return self._switch(name, to)

    def _switch(self, name: str, to: Level) -> float:
        old = self.simulation(name)
        before = old.poses.copy()
        stepper = None if self._built is None else self._built.stepper
        kept = None if stepper is None else stepper.memory
        part = self._parts[name]
        whole = isinstance(to, Mechanism) and isinstance(part.what, Mechanism)
        new = self._simulate(to, part.engine if whole else None)
        carry_over(old, new)
        self._put(part, new)
        self._kept = kept
        return float(np.linalg.norm(new.poses[:, :3, 3] - before[:, :3, 3], axis=1).max())

    @exclusive
    def detail(self, name: str, levels: Sequence[Level], error: float, every: float = 0.1) -> None:
        """Let the world choose among levels of detail of a mechanism while it moves.

        A model that opens its joints further than `error` gives way to the next finer level, see
        `Simulation.violation`; and a coarser one comes back when it would move no body by more than half of that, nor
        open its joints further. An empty list of levels ends it.

        Args:
            name: of a mechanism in this world.
            levels: from coarse to fine, of the same mechanism: a `ReducedModel`, a `BlendedModel`, the `Mechanism`.
            error: largest allowed, m.
            every: seconds between two checks.
        """
        self.simulation(name)
        if not isinstance(levels, Sequence) or isinstance(levels, str):
            raise InputError(f"detail: a list of models or mechanisms expected, not {brief(levels)}")
        if not levels:
            self._levels.drop(name)
            self._change()
            return
        error = number(error, "detail", above=0, expected="error above 0")
        every = number(every, "detail", above=0, most=MOST_STEPS * self._timestep, expected="every above 0")
        steps = max(1, round(every / self._timestep))
        self._levels.set(name, levels, error, steps, self.level(name))
        kept = self._kept
        self._change()
        self._kept = kept

    def level(self, name: str) -> Level:
        """Present level of a mechanism: a model, or the mechanism itself."""
        simulation = self.simulation(name)
        return getattr(simulation, "model", simulation.mechanism)

    # --- results

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, in the order of `body_names`, (bodies, 4, 4)."""
        built = self._build()
        out = built.poses.copy()
        first = 0
        for actor in built.actors:
            actor.write_poses(out[first : first + actor.count])
            first += actor.count
        return out

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4: "ball", or "hand/index_tip"."""
        name, _, link = body.partition("/") if isinstance(body, str) else (body, "", "")
        return self[name].pose(link) if link else self[name].pose()

    @property
    def contacts(self) -> Touching:
        """Contacts of the last step: points, normals, distances, forces."""
        built = self._build()
        return Touching.of(built.stepper, tuple(built.bodies), self._timestep)

    @property
    def effort(self) -> Effort:
        """Cost of the last step: sweeps of the contact solver, blocks of contact rows, and the residual, m/s."""
        stepper = self._build().stepper
        return Effort() if stepper is None else stepper.effort

    @property
    def speed_limit(self) -> float:
        """Speed up to which no body passes through another, m/s; a shorter `timestep` raises it.

        In a step at that speed a body moves by half the thickness of the thinnest body plus the largest detection
        margin, half the thickness of the thickest. Planes stop free bodies at any speed.
        """
        stepper = self._build().stepper
        if stepper is None:
            return np.inf
        settings = stepper.settings
        return (settings.thin + settings.reach) / self._timestep

    @property
    def scene(self) -> Mechanism:
        """Mechanism of all bodies, each on a free joint, for views and files; static shapes belong to its world."""
        return self._build().scene()

    # --- pulling

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
    ) -> Pull:
        """Pull a body towards a point of the world, by a spring tuned to its mass, until `release`.

        Args:
            body: "ball", or "hand/index_tip".
            target: point of the world.
            point: where the spring is attached, in the body's frame.
            frequency, ratio: natural frequency, Hz, and damping ratio of the body on its spring.
            stiffness, damping: of the spring instead, N/m and N s/m.

        Returns:
            The spring; move it by its `target`.
        """
        built = self._build()
        if not isinstance(body, str) or body not in built.bodies:
            self._unknown(body, built.bodies)
        if built.bodies[body] >= built.moving:
            raise InputError(f"'{body}' never moves: there is no use in pulling it")
        spring = frequency, ratio, stiffness, damping
        self._pulls[body] = Pull.of(body, built.bodies[body], target, point, *spring)
        if built.stepper is None:
            self._change()
        self._hand_pulls()
        return self._pulls[body]

    @exclusive
    def release(self, body: str | None = None) -> None:
        """End the pull of a body, or all pulls."""
        if body is None:
            self._pulls.clear()
        else:
            self._pulls.pop(body, None)
        self._hand_pulls()

    def _hand_pulls(self) -> None:
        if self._built is not None and self._built.stepper is not None:
            self._built.stepper.pulls = list(self._pulls.values())

    @property
    def acting(self) -> dict[Hashable, Floats]:
        """Point and force, world, m and N, (2, 3), of every wrench and pull, by mechanism or body and name there."""
        out: dict[Hashable, Floats] = {}
        for name, handle in self._handles.items():
            if isinstance(handle, MechanismHandle):
                out |= {(name, key): ends for key, ends in self.simulation(name).acting.items()}
            elif isinstance(handle, FreeBody):
                out |= {(name, key): arrow(load, handle.pose()) for key, load in handle.wrenches.items()}
        poses = self.poses
        return out | {("pull", body): np.array([p.at(poses), p.force]) for body, p in self._pulls.items()}

    @property
    def pulls(self) -> dict[str, Floats]:
        """Force of the spring of each pulled body in the last step, N, world."""
        return {body: pull.force.copy() for body, pull in self._pulls.items()}

    # --- copies

    @exclusive
    def copy(self) -> World:
        """Independent world in the same state, with the same wrenches, motors, pulls and levels of detail."""
        contents = self._contents()
        contents["free"] = deepcopy(self._free)
        contents["simulations"] = {name: simulation.copy() for name, simulation in self._simulations.items()}
        return _restored(contents)

    def __copy__(self) -> World:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> World:
        return self.copy()

    @exclusive
    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._contents(),)

    def _contents(self) -> dict[str, Any]:
        """All that makes another world like this one; free bodies and simulations are its own."""
        stepper = None if self._built is None else self._built.stepper
        return {
            "settings": (self._timestep, self._gravity, self._margin, self._sweeps, self._tolerance),
            "parts": [replace(part, actor=None) for part in self._parts.values()],
            "mechanisms": {
                name: handle.mechanism
                for name, handle in self._handles.items()
                if isinstance(handle, FreeBody)
            },
            "free": self._free,
            "simulations": self._simulations,
            "ignored": set(self._ignored),
            "pulls": {body: pull.copy() for body, pull in self._pulls.items()},
            "levels": self._levels.copies(),
            "known": set(self._known),
            "memory": self._kept if stepper is None else stepper.memory,
            "time": self.time,
        }

    def __repr__(self) -> str:
        names = listed(tuple(self._handles), 4) if self._handles else "nothing in it"
        return f"<World: {names}; steps of {self._timestep:.6g} s, at t = {self.time:.6g} s>"

    def _repr_png_(self) -> bytes:
        m, poses = self.scene, self.poses
        places = [free_coordinates(m, j, poses[m.joint_children[j]]) for j in range(m.joint_count)]
        return m.with_pose(np.concatenate([np.zeros(0), *places]))._repr_png_()


def _restored(contents: dict[str, Any]) -> World:
    """World from the values of `World._contents`."""
    timestep, gravity, margin, sweeps, tolerance = contents["settings"]
    out = World(timestep, gravity, margin=margin, sweeps=sweeps, tolerance=tolerance)
    out._free = contents["free"]
    for part in contents["parts"]:
        if part.mechanism is not None:
            out._handles[part.name] = MechanismHandle(out, part.name)
            out._put(part, contents["simulations"][part.name])
            continue
        if part.pose is not None:
            out._handles[part.name] = Static(out, part.name, part.shapes, part.pose)
        else:
            mechanism, index = contents["mechanisms"][part.name], out._free.names.index(part.name)
            out._handles[part.name] = FreeBody(out, part.name, out._free, index, mechanism)
        out._parts[part.name] = part
    out._ignored, out._pulls, out._known = contents["ignored"], contents["pulls"], contents["known"]
    out._levels.restore(contents["levels"])
    out._set_time(contents["time"])
    out._kept = contents["memory"]
    return out


def _shapes(name: str, shapes: Any) -> tuple[Shape, ...]:
    """Shapes of a body, given as one or several."""
    try:
        given = (shapes,) if isinstance(shapes, Shape) else tuple(shapes)
    except TypeError:  # nothing to iterate over
        given = ()
    if not given or not all(isinstance(one, Shape) for one in given):
        raise InputError(f"'{name}': one shape or a list of shapes expected, not {brief(shapes)}")
    return given


def _pose(name: str, position: ArrayLike, orientation: ArrayLike | None) -> Floats:
    """Pose, 4 x 4, from the arguments of a body."""
    try:
        out = spatial.pose(position, orientation)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"'{name}': position and orientation must be numbers ({error})") from None
    if out.shape != (4, 4) or not np.isfinite(out).all():
        raise InputError(f"'{name}': a position and an orientation of finite numbers expected")
    return out
