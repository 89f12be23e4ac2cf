"""`World`: mechanisms, free bodies and ground that touch each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.contact.arguments import three
from pliant.contact.solver import Effort
from pliant.contact.stepping import Pull
from pliant.contact.switching import Detailed
from pliant.contact.touching import Touching
from pliant.engines.arguments import EARTH, whole
from pliant.engines.trajectory import Trajectory
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism

__all__ = ["World", "WorldState"]

Floats = NDArray[np.float64]


class WorldState(NamedTuple):
    """Everything in a world that moves; `world.state = state` goes back there, to the last digit."""

    time: float
    actors: tuple[Floats, ...]
    memory: tuple[NDArray, ...]


class World(Detailed):
    """Reduced models, whole mechanisms, free bodies and ground, with contact and friction between them.

    Each mechanism moves by its own simulation, `world[name]`, which takes wrenches and motors and tells poses; only
    `step` and `reset` are the world's. Bodies go by name: "ball", or "hand/index_tip" for a link of a mechanism.

    Example:
        >>> import pliant
        >>> world = pliant.World(1 / 60)
        >>> world.add_static("floor", pliant.shapes.plane())
        >>> world.add_body("ball", pliant.shapes.sphere(0.03), mass=0.1, position=(0, 0, 0.1))
        >>> world.step(60)
        >>> round(float(world["ball"].position[2]), 3)
        0.03
    """

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
            margin: surfaces nearer than this are looked at, m; a tenth of the thinnest moving shape's half thickness by
                default.
            sweeps, tolerance: most sweeps of the contact solver in a step, and the residual that is enough, m/s.
        """
        super().__init__(timestep, gravity, margin, sweeps, tolerance)

    # --- time

    @property
    def timestep(self) -> float:
        """Seconds a step."""
        return self._timestep

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps.

        Raises:
            InputError: bodies overlap from the start; the message names both.
            ConvergenceError: the motion left the finite numbers; everything is as it was before, or, with levels of
                `detail`, as it was when they were last chosen.
        """
        if self._changed:
            self._build()
        if self._alone is not None:
            self._alone.step(n)
            return
        n = whole(n, "step: n", 0)
        if not self._details:
            self._advance(n)
            return
        while n > 0:
            part = self._look(n)
            self._build()
            self._advance(part)
            n -= part

    def _advance(self, n: int) -> None:
        if self._stepper is not None and self._stepper.march(n):
            self._time += n * self._timestep
            return
        before = self.state
        try:
            if self._stepper is not None:
                self._stepper.step(n)
            else:
                for _ in range(n):
                    for actor in self._actors:
                        actor.step()
        except ConvergenceError:
            self.state = before
            raise
        self._time += n * self._timestep

    def record(self, n: int, every: int = 1, act: Callable[[float], None] | None = None) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`.

        The trajectory's mechanism is `scene`: every body of the world on its own, for views and files. If given, `act`
        is called before every step with the time, to push or to steer.
        """
        n, every = whole(n, "record: n", 1), whole(every, "record: every", 1)
        scene = self.scene
        out, time = np.empty((n, scene.body_count, 4, 4)), np.empty(n)
        for i in range(n):
            if act is None:
                self.step(every)
            else:
                for _ in range(every):
                    act(self.time)
                    self.step()
            out[i], time[i] = self.poses[: scene.body_count], self.time
        return Trajectory(scene, time, out)

    def reset(self) -> None:
        """Back to the start: time zero, everything at rest where it was added, no wrenches and no pulls."""
        self._as_added()
        self._build()
        for actor in self._actors:
            actor.reset()
        self._set_time(0.0)
        self.release()
        if self._stepper is not None:
            self._stepper.memory = ()
            self._stepper.forget()

    @property
    def state(self) -> WorldState:
        """Everything that moves; set it to go back there exactly. Wrenches, motors and pulls are yours, as ever."""
        if self._changed:
            self._build()
        memory = () if self._stepper is None else self._stepper.memory
        return WorldState(self.time, tuple(actor.state for actor in self._actors), memory)

    @state.setter
    def state(self, value: WorldState) -> None:
        self._build()
        if not isinstance(value, WorldState) or len(value.actors) != len(self._actors):
            raise InputError("state: not a state of this world")
        for actor, part in zip(self._actors, value.actors, strict=True):
            if np.shape(part) != actor.state.shape:
                raise InputError("state: not a state of this world, as it is now")
        for actor, part in zip(self._actors, value.actors, strict=True):
            actor.state = part
        self._set_time(value.time)
        if self._stepper is not None:
            self._stepper.memory = value.memory
            self._stepper.forget()

    # --- what can be asked

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, in the order of `body_names`, (bodies, 4, 4)."""
        self._build()
        out = self._poses.copy()
        first = 0
        for actor in self._actors:
            actor.write_poses(out[first : first + actor.count])
            first += actor.count
        return out

    def pose(self, body: str) -> Floats:
        """World pose of a body, 4 x 4: "ball", or "hand/index_tip"."""
        name, _, link = body.partition("/")
        return self[name].pose(link) if link else self[name].pose()

    @property
    def contacts(self) -> Touching:
        """Where bodies touched in the last step, and with what forces."""
        self._build()
        return Touching.of(self._stepper, tuple(self._bodies), self._timestep)

    @property
    def effort(self) -> Effort:
        """What the contact solver did in the last step, its residual above all."""
        return Effort() if self._stepper is None else self._stepper.effort

    @property
    def speed_limit(self) -> float:
        """Up to this speed, m/s, nothing passes through anything, however thin: a shorter `timestep` raises it.

        Planes stop free bodies that are faster, too.

        In a step at that speed a body goes as far as half its thickness, and that of the thickest body besides, which
        is how far ahead contacts are seen.
        """
        self._build()
        if self._stepper is None:
            return np.inf
        settings = self._stepper.settings
        return (settings.thin + settings.reach) / self._timestep

    @property
    def scene(self) -> Mechanism:
        """All bodies, each on its own, as a mechanism: for views and files. What does not move belongs to its world."""
        self._build()
        return self._scene()

    # --- pulling

    def pull(
        self,
        body: str,
        target: ArrayLike,
        point: ArrayLike = (0.0, 0.0, 0.0),
        *,
        frequency: float = 2.0,
        ratio: float = 1.0,
    ) -> None:
        """Pull a body towards a point of the world, with a spring that suits its mass; it stays until `release`.

        Args:
            body: "ball", or "hand/index_tip".
            target: where to, world.
            point: where the spring holds it, in its frame.
            frequency, ratio: natural frequency, Hz, and damping ratio of the body on its spring.
        """
        self._build()
        if body not in self._bodies:
            self._unknown(body, self._bodies)
        if self._bodies[body] >= self._moving:
            raise InputError(f"'{body}' never moves: there is no use in pulling it")
        for value, what in ((frequency, "frequency"), (ratio, "ratio")):
            if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
                raise InputError(f"pull: {what} above 0 expected, not {value!r}")
        spring = Pull(
            self._bodies[body],
            three(point, f"point of '{body}'"),
            three(target, "target"),
            float(frequency),
            float(ratio),
        )
        self.release(body)
        self._pulls.append((body, spring))
        if self._stepper is None:
            self._change()
        self._hand_pulls()

    def release(self, body: str | None = None) -> None:
        """Let go of a body, or of all."""
        self._pulls = [] if body is None else [p for p in self._pulls if p[0] != body]
        self._hand_pulls()

    @property
    def pulls(self) -> dict[str, Floats]:
        """The bodies that are pulled at, and the force of each spring in the last step, N, world."""
        return {body: spring.impulse / self._timestep for body, spring in self._pulls}

    def __repr__(self) -> str:
        return f"<World: {len(self._handles)} things at t = {self.time:.6g} s>"
