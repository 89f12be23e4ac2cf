"""Handles: `world[name]`, with the interface of a simulation but for time, which the world steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import checks
from pliant.checks import vector
from pliant.engines.simulation import Energy, Pull, free_coordinates, free_rates
from pliant.errors import InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.one_thread import Use, exclusive
from pliant.read_only import read_only
from pliant.shapes import Shape
from pliant.statics import Configuration
from pliant.statics.loads import Load

if TYPE_CHECKING:
    from pliant.contact.free_bodies import FreeBodies
    from pliant.world import World

__all__ = ["FreeBody", "Handle", "MechanismHandle", "Static"]

Floats = NDArray[np.float64]
_OURS = frozenset(
    ("step", "record", "reset", "copy", "switch", "follow")
)  # methods of the world, or not available for its parts


class Handle:
    """Part of a world, by its name."""

    __slots__ = ("_name", "_world")

    def __init__(self, world: World, name: str):
        object.__setattr__(self, "_world", world)
        object.__setattr__(self, "_name", name)

    @property
    def name(self) -> str:
        """Its name in the world."""
        return self._name

    @property
    def time(self) -> float:
        """Seconds since the world's start."""
        return self._world.time

    @property
    def timestep(self) -> float:
        """Length of a step, s."""
        return self._world.timestep

    def _refuse(self, word: str) -> NoReturn:
        raise InputError(f"'{self._name}' moves with its world: use the world's `{word}`")


class MechanismHandle(Handle):
    """Mechanism in a world: the interface of the simulation that moves it at its present level of detail."""

    __slots__ = ()

    def __getattr__(self, word: str) -> Any:
        if word in _OURS:
            self._refuse(word)
        if word.startswith("_"):
            raise AttributeError(word)
        return getattr(self._world.simulation(self._name), word)

    def __setattr__(self, word: str, value: Any) -> None:
        setattr(self._world.simulation(self._name), word, value)

    def apply_wrench(self, body: str, *values: Any, ramp: bool = False, **words: Any) -> None:
        """Set the wrench on a body; see `Simulation.apply_wrench`. It changes between steps of the world."""
        if ramp:
            raise InputError(
                f"wrench on '{body}': ramp=True is for simulations by themselves, not in a world"
            )
        self._world.simulation(self._name).apply_wrench(body, *values, **words)

    def __dir__(self) -> list[str]:
        return [word for word in dir(self._world.simulation(self._name)) if not word.startswith("_")]

    def pull(self, body: str, target: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0), **words: Any) -> Pull:
        """Pull a body towards a point of the world; see `World.pull`."""
        return self._world.pull(f"{self._name}/{body}", target, point, **words)

    def release(self, body: str | None = None) -> None:
        """End the pull of a body, or all pulls of this mechanism."""
        if body is not None:
            self._world.release(f"{self._name}/{body}")
            return
        for name in self._world.pulls:
            if name.startswith(f"{self._name}/"):
                self._world.release(name)

    @property
    def pulls(self) -> dict[str, Floats]:
        """Forces of pulls in the last step, N, world, by body."""
        start = f"{self._name}/"
        return {name[len(start) :]: f for name, f in self._world.pulls.items() if name.startswith(start)}

    def __repr__(self) -> str:
        return f"<'{self._name}' in a world: {self._world.simulation(self._name)!r}>"


class FreeBody(Handle):
    """Free rigid body, with the interface of a simulation of one body on a free joint."""

    __slots__ = ("_bodies", "_index", "_mechanism", "_shapes")

    def __init__(self, world: World, name: str, bodies: FreeBodies, index: int, mechanism: Mechanism):
        super().__init__(world, name)
        self._bodies, self._index, self._mechanism = bodies, index, mechanism
        self._shapes = mechanism.shapes(name)

    @property
    def _use(self) -> Use:
        return self._world.use

    @property
    def mechanism(self) -> Mechanism:
        """The body on a free joint to the world."""
        return self._mechanism

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Its shapes, in its frame."""
        return self._shapes

    @property
    def mass(self) -> float:
        """Mass, kg."""
        return float(self._mechanism.mass[0])

    @property
    def gravity(self) -> Floats:
        """Acceleration of gravity, m/s², world, (3,)."""
        return self._world.gravity

    @property
    def poses(self) -> Floats:
        """World pose, (1, 4, 4); read-only."""
        return read_only(self._bodies.poses[self._index : self._index + 1].copy())

    def pose(self, body: str | None = None) -> Floats:
        """World pose, 4 x 4; a copy."""
        self._check(body)
        return self._bodies.poses[self._index].copy()

    @property
    def position(self) -> Floats:
        """World position of the body's origin, (3,)."""
        return self._bodies.poses[self._index, :3, 3].copy()

    @property
    def q(self) -> Floats:
        """Coordinates of the free joint, (7,); setting them places the body at rest."""
        return free_coordinates(self._mechanism, 0, self.pose())

    @q.setter
    def q(self, value: ArrayLike) -> None:
        at = Configuration(self._mechanism, vector(value, "q", 7))
        self.move(at.pose(self._name), (0, 0, 0), (0, 0, 0))

    @property
    def velocity(self) -> Floats:
        """Rates of the free joint, (6,), which can be set; `move` takes velocity and spin instead."""
        return free_rates(self._mechanism, 0, self.q, self.twist())

    @velocity.setter
    def velocity(self, value: ArrayLike) -> None:
        given = vector(value, f"velocity of '{self._name}'", 6)
        m = self._mechanism
        links = kinematics.link_poses(m, self.q)
        twist = kinematics.link_jacobian(m, links, int(m.links.body_link[0])) @ given
        arm = self.pose()[:3, :3] @ m.com[0]
        self.move(None, twist[:3] + np.cross(twist[3:], arm), twist[3:])

    @property
    def configuration(self) -> Configuration:
        """Pose of the body as a `Configuration` of its mechanism."""
        return Configuration(self._mechanism, self.q)

    def twist(self, body: str | None = None, point: ArrayLike | None = None, frame: str = "world") -> Floats:
        """Velocity of the body's origin, or of a point of it, then its angular velocity, (6,); see `Simulation`."""
        self._check(body)
        load = Load.of(self._name, point=point, frame=frame)
        out, turn = self._bodies.velocity(self._index), self.pose()[:3, :3]
        out[:3] += np.cross(out[3:], turn @ (load.point - self._mechanism.com[0]))
        return out if frame == "world" else np.concatenate([out[:3] @ turn, out[3:] @ turn])

    @exclusive
    def move(
        self, pose: ArrayLike | None = None, velocity: ArrayLike | None = None, spin: ArrayLike | None = None
    ) -> None:
        """Set the pose and the velocity of the body.

        Args:
            pose: of its frame, 4 x 4; unchanged if None.
            velocity: of the centre of mass, world axes, m/s; unchanged if None.
            spin: angular velocity, world axes, rad/s; unchanged if None.
        """
        place = None if pose is None else checks.pose(pose)
        moved, turned = (None if v is None else Load.of(self._name, v).force for v in (velocity, spin))
        self._bodies.move(self._index, place, moved, turned)

    @property
    def momentum(self) -> Floats:
        """Momentum and angular momentum about the world's origin, (6,)."""
        return self._bodies.momentum(self._index)

    @property
    def kinetic(self) -> float:
        """Kinetic energy, J."""
        return self._bodies.kinetic(self._index)

    @property
    def energy(self) -> Energy:
        """Kinetic, elastic (none) and gravitational energy, J."""
        centre = self.pose()[:3, :3] @ self._mechanism.com[0] + self.position
        return Energy(self.kinetic, 0.0, -self.mass * float(self.gravity @ centre))

    @exclusive
    def apply_wrench(
        self,
        body: str | None = None,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        *,
        point: ArrayLike | None = None,
        frame: str = "world",
    ) -> None:
        """Set the wrench on the body; it replaces the one before and stays until cleared. See `Simulation`."""
        self._check(body)
        self._bodies.set_load(self._index, Load.of(self._name, force, torque, point, frame))

    @exclusive
    def clear_wrenches(self) -> None:
        """Remove the wrench."""
        self._bodies.set_load(self._index, Load.of(self._name))

    @property
    def wrenches(self) -> dict[str, Load]:
        """Wrench on the body, by its name."""
        load = self._bodies.loads.get(self._index)
        return {} if load is None else {self._name: load}

    def pull(
        self,
        body: str | None = None,
        target: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike = (0.0, 0.0, 0.0),
        **words: Any,
    ) -> Pull:
        """Pull the body towards a point of the world; see `World.pull`."""
        self._check(body)
        return self._world.pull(self._name, target, point, **words)

    def release(self, body: str | None = None) -> None:
        """End the pull of the body."""
        self._check(body)
        self._world.release(self._name)

    @property
    def pulls(self) -> dict[str, Floats]:
        """Force of a pull in the last step, N, world, by the body's name."""
        return {name: force for name, force in self._world.pulls.items() if name == self._name}

    def step(self, n: int = 1) -> NoReturn:
        """The world steps."""
        self._refuse("step")

    def reset(self) -> NoReturn:
        """The world goes back to its start."""
        self._refuse("reset")

    def summary(self) -> str:
        """Mass, position and energy, as text."""
        energy = self.energy
        return (
            f"free body '{self._name}': {self.mass:.4g} kg at {np.array2string(self.position, precision=4)}\n"
            f"  energy    {energy.total:.4g} J: kinetic {energy.kinetic:.4g}, gravity {energy.gravity:.4g}"
        )

    def _check(self, body: str | None) -> None:
        if body is not None and body != self._name:
            raise InputError(f"'{self._name}' is a body by itself: it has no '{body}'")

    def __repr__(self) -> str:
        return (
            f"<FreeBody '{self._name}': {self.mass:.6g} kg at {np.array2string(self.position, precision=4)}>"
        )


class Static(Handle):
    """Static body: it never moves."""

    __slots__ = ("_pose", "_shapes")

    def __init__(self, world: World, name: str, shapes: tuple[Shape, ...], pose: Floats):
        super().__init__(world, name)
        self._shapes, self._pose = shapes, pose

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Its shapes, in its frame."""
        return self._shapes

    def pose(self, body: str | None = None) -> Floats:
        """World pose, 4 x 4."""
        return self._pose.copy()

    def __repr__(self) -> str:
        return f"<Static '{self._name}'>"
