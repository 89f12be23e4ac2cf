"""What is in a world: adding to it, names, and putting it together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.contact.actors import Actor, FullActor, ReducedActor
from pliant.contact.arguments import placed, three
from pliant.contact.assembly import Part, assemble
from pliant.contact.free import FreeBodies, FreeBody
from pliant.contact.levels import Detail, Level, Simulation, mechanism_of
from pliant.contact.materials import Material
from pliant.contact.stepping import ContactStepper, Pull
from pliant.engines.arguments import acceleration, seconds, whole
from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation
from pliant.errors import InputError, UnknownNameError
from pliant.mechanism import Builder, Mechanism
from pliant.mechanism.edit import suggestion
from pliant.shapes import Shape

__all__ = ["Contents", "Static"]

Floats = NDArray[np.float64]


class Static:
    """Something that never moves, `world[name]`."""

    def __init__(self, name: str, shapes: tuple[Shape, ...], pose: Floats):
        self.name, self.shapes, self._pose = name, shapes, pose

    def pose(self, body: str | None = None) -> Floats:
        """World pose, 4 x 4."""
        return self._pose.copy()

    def __repr__(self) -> str:
        return f"<Static '{self.name}'>"


class Contents:
    """The part of a `World` that knows what is in it."""

    def __init__(
        self, timestep: float, gravity: ArrayLike, margin: float | None, sweeps: int, tolerance: float
    ):
        self._timestep, self._gravity = seconds(timestep), acceleration(gravity)
        if margin is not None and not (isinstance(margin, int | float | np.number) and 0 < margin < np.inf):
            raise InputError(f"margin: a distance above 0 expected, not {margin!r}")
        if not isinstance(tolerance, int | float) or not 0 < tolerance < np.inf:
            raise InputError(f"tolerance: a velocity above 0 expected, not {tolerance!r}")
        self._margin, self._sweeps, self._tolerance = margin, whole(sweeps, "sweeps", 1), float(tolerance)
        self._time, self._changed = 0.0, False
        self._parts: dict[str, Part] = {}
        self._handles: dict[str, Simulation | FreeBody | Static] = {}
        self._free = FreeBodies(self._timestep, self._gravity)
        self._ignored: set[tuple[str, str]] = set()
        self._actors: list[Actor] = []
        self._bodies: dict[str, int] = {}
        self._stepper: ContactStepper | None = None
        self._alone: Simulation | None = None
        self._pulls: list[tuple[str, Pull]] = []
        self._known: set[str] = set()
        self._kept: tuple[NDArray, ...] | None = None
        self._details: dict[str, Detail] = {}

    # --- what is in it

    def add(
        self,
        what: Level,
        name: str | None = None,
        *,
        friction: float = 0.8,
        restitution: float = 0.0,
        rolling: float = 0.0,
        compliance: float = 0.0,
        self_contact: bool = False,
        **options: Any,
    ) -> None:
        """Add a mechanism: as a reduced or blended model, or whole.

        Its shapes touch all others, planes and height fields of its own world included. Its links touch each other,
        and what they are mounted on, only if asked to.

        Args:
            what: a model moves by `ReducedSimulation`, a mechanism by `ConstrainedSimulation`.
            name: its own by default.
            friction, restitution, rolling, compliance: of its surfaces, see `pliant.contact.Material`.
            self_contact: whether links that no joint joins touch each other and other shapes of their world, unless
                they overlap from the start.
            options: for the simulation, `start=` of a mechanism for example.
        """
        material = Material(friction, restitution, rolling, compliance)
        simulation = self._simulation(what, **options)
        name = self._new(mechanism_of(what).name if name is None else name)
        part = Part(name, material, self_contact=self_contact, what=what, options=options)
        self._put(part, simulation)

    def _simulation(self, what: Level, **options: Any) -> Simulation:
        """A simulation of a model or mechanism, as this world needs it."""
        if isinstance(what, Mechanism):
            return ConstrainedSimulation(what, self._timestep, self._gravity, **options)
        if not isinstance(what, ReducedModel | BlendedModel):
            raise InputError(
                f"a ReducedModel, BlendedModel or Mechanism expected, not {type(what).__name__}; "
                "add_body and add_static take shapes"
            )
        if options.get("reconstruction", "joint") != "joint":
            raise InputError('contacts act where links are by their joints: reconstruction="joint"')
        gravity = None if what.base is None else self._gravity
        return ReducedSimulation(what, self._timestep, gravity=gravity, **options)

    def _put(self, part: Part, simulation: Simulation) -> None:
        """Let a part move by a simulation."""
        reduced = isinstance(simulation, ReducedSimulation)
        actor = ReducedActor(simulation) if reduced else FullActor(simulation)
        floating = reduced and simulation.model.base is not None
        self._handles[part.name] = simulation
        self._parts[part.name] = replace(
            part, actor=actor, mechanism=mechanism_of(simulation), floating=floating
        )
        self._change()

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
        given = (shapes,) if isinstance(shapes, Shape) else tuple(shapes)
        name = self._new(name)
        # The builder knows all about mass properties, and what is wrong with them.
        b = Builder(name)
        b.body(name, mass=mass, com=com, inertia=inertia, density=density, shapes=given)
        b.free("free", "world", name)
        m = b.build()
        twist = np.concatenate([three(velocity, f"velocity of '{name}'"), three(spin, f"spin of '{name}'")])
        if not m.mass[0] > 0 or not (np.linalg.eigvalsh(m.inertia[0]) > 0).all():
            raise InputError(f"body '{name}': a free body needs mass and inertia")
        self._free.add(
            name, float(m.mass[0]), m.com[0], m.inertia[0], placed(name, position, orientation), twist
        )
        body = FreeBody(self._free, self._free.count - 1, given)
        self._handles[name] = body
        self._parts[name] = Part(name, material, shapes=given)
        self._change()

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
        """Add something that never moves: a floor, a wall, a height field."""
        material = Material(friction, restitution, rolling, compliance)
        given = (shapes,) if isinstance(shapes, Shape) else tuple(shapes)
        name = self._new(name)
        pose = placed(name, position, orientation)
        self._handles[name] = Static(name, given, pose)
        self._parts[name] = Part(name, material, shapes=given, pose=pose)
        self._change()

    def _new(self, name: str) -> str:
        if not isinstance(name, str) or not name or "/" in name:
            raise InputError(f"a name is a text without '/', not {name!r:.80}")
        if name in self._handles:
            raise InputError(f"there is a '{name}' in this world already: choose another name")
        return name

    def ignore(self, first: str, second: str) -> None:
        """Let two bodies never touch; the name of a mechanism stands for all its links."""
        names = []
        for name in (first, second):
            if name.partition("/")[0] not in self._parts:
                self._unknown(name, self._parts)
            names.append(name)
        self._ignored.add((names[0], names[1]))
        self._change()

    def __getitem__(self, name: str) -> Any:
        if name not in self._handles:
            self._unknown(name, self._handles)
        return self._handles[name]

    def __contains__(self, name: str) -> bool:
        return name in self._handles

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    @property
    def body_names(self) -> tuple[str, ...]:
        """All bodies, in the order of `poses`; what does not move comes last."""
        self._build()
        return tuple(self._bodies)

    def _unknown(self, name: str, known: Iterable[str]) -> NoReturn:
        raise UnknownNameError(f"this world has no '{name}'{suggestion(name, list(known))}")

    # --- putting it together

    def _build(self) -> None:
        if not self._changed:
            return
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
        self._actors, self._stepper, self._bodies = built.actors, built.stepper, built.bodies
        self._poses, self._moving, self._scene = built.poses, built.moving, built.scene
        self._known = set(self._bodies)
        self._pulls = [(body, p) for body, p in self._pulls if body in self._bodies]
        for body, pull in self._pulls:
            pull.body = self._bodies[body]
        self._hand_pulls()
        if self._kept is not None and self._stepper is not None:
            self._stepper.memory = self._kept
        self._kept, self._changed = None, False
        if self._stepper is None and len(self._actors) == 1 and not self._free.count and not self._details:
            # Nothing can touch: the simulation's own step is the world's, at no cost.
            self._set_alone(next(p.actor.simulation for p in self._parts.values() if p.actor is not None))

    def _set_alone(self, simulation: Simulation | None) -> None:
        now = self.time
        self._alone = simulation
        self._set_time(now)
        self.__dict__.pop("step", None)
        if simulation is not None:
            self.__dict__["step"] = simulation.step

    def _set_time(self, now: float) -> None:
        self._time = now if self._alone is None else now - self._alone.time

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return self._time if self._alone is None else self._alone.time + self._time

    def _hand_pulls(self) -> None:
        if self._stepper is not None:
            self._stepper.pulls = [pull for _, pull in self._pulls]

    def _change(self) -> None:
        self._changed = True
        self._set_alone(None)
