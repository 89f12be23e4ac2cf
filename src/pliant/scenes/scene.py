"""`Scene`: a mechanism or a world, with its start, its loads, and an action over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.simulate import simulate
from pliant.engines.trajectory import Trajectory
from pliant.errors import InputError
from pliant.mechanism import Mechanism

if TYPE_CHECKING:
    from pliant.world import World

__all__ = ["Scene"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """A mechanism or a world, ready to move.

    Attributes:
        what: a mechanism; or a world at its start, which brings its own engines, time step, gravity and loads.
        engine: of a mechanism, as `pliant.simulate` takes it; "world" for a world.
        timestep: s.
        start: joint coordinates of a mechanism, (nq,); None: its reference.
        velocity: joint rates of a mechanism, (nv,); None: at rest.
        wrenches: `{body: force}` on a mechanism, N, world axes.
        motors: `{joint: arguments of set_motor}` of a mechanism.
        gravity: m/s², on a mechanism; None: as `pliant.simulate` has it.
        options: further arguments of `pliant.simulate`.
        act: called before every step with the simulation or world and its time, s.

    Example:
        >>> import pliant
        >>> def push(simulation, time):
        ...     simulation.apply_wrench("link8", force=(0, 0, 5 * time))
        >>> scene = pliant.scenes.Scene(pliant.gallery.helix(8), "reduced", timestep=0.01, act=push)
        >>> scene.run(0.5)
        >>> bool(scene.running.pose("link8")[2, 3] > scene.mechanism.reference_poses[-1, 2, 3])
        True
    """

    what: Mechanism | World
    engine: str = "constrained"
    timestep: float = 1 / 60
    start: Floats | None = None
    velocity: Floats | None = None
    wrenches: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    motors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gravity: tuple[float, float, float] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    act: Callable[[Any, float], None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.what, Mechanism):
            object.__setattr__(self, "engine", "world")
            object.__setattr__(self, "timestep", self.what.timestep)

    def __repr__(self) -> str:
        if not isinstance(self.what, Mechanism):
            return f"<Scene of {self.what!r}>"
        return f"<Scene of '{self.what.name}': {self.engine} engine, steps of {self.timestep:.6g} s>"

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism; of a world, all its bodies, each free."""
        return self.what if isinstance(self.what, Mechanism) else self.what.scene

    @property
    def world(self) -> World:
        """The world.

        Raises:
            InputError: the scene is a mechanism.
        """
        if isinstance(self.what, Mechanism):
            raise InputError(f"the scene of '{self.what.name}' has no world: `running` is its simulation")
        return self.what

    def simulate(self, timestep: float | None = None, **options: Any) -> Any:
        """A new simulation of the mechanism at the start of the scene, with its loads and motors.

        Its `reset` returns to the start at rest, without loads and motors; its own steps do not call `act`.

        Args:
            timestep: s; the scene's own by default.
            options: further arguments of `pliant.simulate`, before the scene's own.

        Raises:
            InputError: the scene is a world, or the engine does not take an option.
        """
        if not isinstance(self.what, Mechanism):
            raise InputError("the scene is a world, which is its own simulation: `scene.world`")
        given = {"start": self.start, **self.options, **options}
        step = self.timestep if timestep is None else timestep
        out = simulate(
            self.what,
            self.engine,
            step,
            gravity=self.gravity,
            **{word: value for word, value in given.items() if value is not None},
        )
        if self.velocity is not None:
            out.velocity = self.velocity
        for body, force in self.wrenches.items():
            out.apply_wrench(body, force=force)
        for joint, motor in self.motors.items():
            out.set_motor(joint, **motor)
        return out

    @cached_property
    def running(self) -> Any:
        """The simulation or world that `step`, `record` and `run` advance."""
        return self.simulate() if isinstance(self.what, Mechanism) else self.what

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps, each with the scene's action."""
        if self.act is None:
            self.running.step(n)
            return
        for _ in range(n):
            self.act(self.running, self.running.time)
            self.running.step()

    def record(self, n: int, every: int = 1) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`."""
        return self.running.record(n, every, self.act and partial(self.act, self.running))

    def run(self, seconds: float) -> None:
        """Advance by a time, s."""
        self.step(round(seconds / self.timestep))
