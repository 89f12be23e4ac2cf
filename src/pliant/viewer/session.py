"""`Session`: what happens in a live view, without the view: engines, pulls, time, numbers.

Nothing here knows of a browser or of threads. Whoever calls it does so from one thread at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.engines.arguments import EARTH
from pliant.engines.reduced import ReducedSimulation
from pliant.engines.violation import Violation
from pliant.errors import InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.statics import Configuration
from pliant.viewer.clock import STRENGTHS, Clock, within
from pliant.viewer.measures import Ellipsoid, Measures, compliance_ellipsoid, energy_of
from pliant.viewer.opening import begin
from pliant.viewer.pulls import Pull, settle, vector
from pliant.viewer.setup import ENGINES, Models, Setup, Simulation, coordinates, place, resolve
from pliant.viewer.springs import Springs

__all__ = ["SCALES", "Added", "Session"]

Floats = NDArray[np.float64]
SCALES = (0.1, 10.0)


@dataclass(frozen=True)
class Added:
    """A model that joined: how many there are now, and how far the old ones were from the truth, m."""

    models: int
    error: float
    equilibrium: Configuration


class Session(Clock):
    """A mechanism that is simulated, pulled and looked at.

    Attributes:
        setup: which engine runs on what.
        simulation: that engine.
        end_effectors: the ones chosen; a reduced model also knows bodies that are being pulled.
        pulls: springs that act, by key.
        history: `Measures`, the latest last.
    """

    def __init__(self, what: Any):
        """Take a Mechanism, a ReducedModel, a BlendedModel or a simulation."""
        super().__init__()
        self._models, self._violation = Models(), Violation()
        self.strength, self._scale, self._offset = 1.0, 1.0, 0.0
        self.pulls = Springs()
        self.setup, self.simulation = begin(what, self._models)
        self._base = self.setup.mechanism
        self.end_effectors = self.setup.end_effectors
        self._given = self.simulation if isinstance(what, Simulation) else None

    # --- where things stand

    @property
    def mechanism(self) -> Mechanism:
        """What moves, with its stiffness as it is set."""
        return self.setup.mechanism

    @property
    def engine(self) -> str:
        """The engine that runs."""
        return self.setup.engine

    @property
    def time(self) -> float:
        """Simulated seconds since the start or the last reset, whatever engines they were spent in."""
        return self._offset + self.simulation.time

    @property
    def poses(self) -> Floats:
        """World poses of all bodies, (bodies, 4, 4)."""
        return self.simulation.poses

    @property
    def q(self) -> Floats:
        """Joint coordinates of `mechanism`."""
        return coordinates(self.simulation, self.mechanism)

    @property
    def violation(self) -> float:
        """How far a joint or loop comes apart, m; see `Violation`."""
        return self._violation(self.simulation)

    @property
    def stiffness(self) -> float:
        """By what the stiffness of all joints is multiplied."""
        return self._scale

    @property
    def gravity(self) -> bool:
        """Whether there is weight; else it is compensated."""
        return bool(self.setup.gravity.any())

    @property
    def model_count(self) -> int:
        """How many reduced models a blend mixes."""
        return len(self.setup.samples)

    # --- time

    @property
    def timestep(self) -> float:
        return self.simulation.timestep

    def step(self, n: int = 1) -> None:
        try:
            if not self.pulls:
                self.simulation.step(n)
                return
            for _ in range(n):
                self.pulls.apply(self.simulation)
                self.simulation.step(1)
        except PliantError:
            self.playing = False
            raise

    def reset(self) -> None:
        """Back to the start of the engine that runs: time zero, at rest, no pulls."""
        self.pulls.clear()
        setup = replace(self.setup, end_effectors=self.end_effectors)
        if self.simulation is self._given:
            self.simulation.reset()
        else:
            self.simulation = place(setup, self._models, None)
        self.setup = setup
        self._offset, self.pulls.fresh = 0.0, True
        self._restart()

    # --- what runs

    def set_engine(self, engine: str) -> None:
        """Go on with another engine from the same pose, as near as it can be there."""
        if engine not in ENGINES:
            raise InputError(f"the engine is one of {', '.join(ENGINES)}, not {engine!r:.80}")
        if engine != self.engine:
            self._go(replace(self.setup, engine=engine))

    def set_end_effectors(self, bodies: Sequence[str]) -> None:
        """Choose the bodies that reduced models know; they go on from the same pose."""
        chosen = tuple(bodies)
        if not chosen:
            raise InputError("end effectors: name at least one body")
        for i, body in enumerate(chosen):
            if self.mechanism.body_index(body) < 0:
                raise InputError("the world cannot be an end effector: name a body")
            if body in chosen[:i]:
                raise InputError(f"end effector '{body}' is named twice")
        self._go(replace(self.setup, end_effectors=chosen))
        self.end_effectors = chosen

    def set_stiffness(self, scale: float) -> int:
        """Multiply the stiffness of all joints; returns how many models of a blend were lost by it."""
        scale = within(scale, "stiffness", SCALES)
        base = self._base
        m = base.replace(stiffness=scale * base.stiffness, tendon_stiffness=scale * base.tendon_stiffness)
        lost = self._change(replace(self.setup, mechanism=m))
        self._scale = scale
        return lost

    def set_gravity(self, on: bool) -> int:
        """With weight, or with weight compensated; returns how many models of a blend were lost by it."""
        gravity = np.array(EARTH) if on else np.zeros(3)
        return self._change(replace(self.setup, gravity=gravity))

    def _change(self, setup: Setup) -> int:
        if setup.reduced:
            setup, lost = resolve(setup)
        else:  # found when they are asked for
            setup, lost = replace(setup, samples=(None,)), len(setup.samples) - 1
        self._go(setup)
        return lost

    def set_strength(self, strength: float) -> None:
        """How hard pulls pull, 1 the usual."""
        self.strength = within(strength, "pull strength", STRENGTHS)
        self.pulls.fit(self.simulation, self.mechanism, self.strength, anew=True)

    def _go(self, setup: Setup) -> None:
        """Go on with another setup from where things stand, or raise and leave everything as it is."""
        q, time, before = self.q, self.time, self.simulation
        if setup.reduced:
            known = dict.fromkeys(
                [*setup.end_effectors, *self.pulls.bodies]
            )  # what is chosen, and what is pulled
            setup = replace(setup, end_effectors=tuple(known))
            rest = setup.samples[0]
            if setup.gravity.any() and rest is None:
                setup, _ = resolve(setup)
        same = setup.mechanism is self.mechanism
        if setup.reduced and same and isinstance(before, ReducedSimulation) and before is not self._given:
            before.switch(self._models.model(setup))
        else:
            self.simulation = place(setup, self._models, q)
            self._offset = time - self.simulation.time
        self.setup = setup
        self.pulls.fresh = True
        self.pulls.fit(self.simulation, self.mechanism, self.strength)

    # --- pulls

    def pull(self, key: Hashable, body: str, point: ArrayLike, target: ArrayLike) -> Pull:
        """Pull a body by a spring.

        Args:
            key: what the pull is called; one that is there under the same name is replaced.
            body: what to pull. A reduced model that does not know it is made anew with it as an end effector.
            point: where, world.
            target: where to, world.
        """
        m = self.mechanism
        index = m.body_index(body)
        if index < 0:
            raise InputError("the world cannot be pulled: take a body")
        pose = self.poses[index]
        local = pose[:3, :3].T @ (vector(point, "point") - pose[:3, 3])
        made = Pull(body, index, local, vector(target, "target"), reach=5 * m.radius)
        old = self.pulls.pop(key, None)
        self.pulls[key] = made
        try:
            if self.setup.reduced and body not in self.setup.end_effectors:
                self._go(replace(self.setup, end_effectors=self.end_effectors))
            self.pulls.fresh = True
            self.pulls.fit(self.simulation, m, self.strength)
        except PliantError:
            del self.pulls[key]
            if old is not None:
                self.pulls[key] = old
            raise
        return made

    def move(self, key: Hashable, target: ArrayLike) -> None:
        """Pull elsewhere; nothing if there is no such pull (any more)."""
        if key in self.pulls:
            self.pulls[key].target = vector(target, "target")

    def release(self, key: Hashable) -> None:
        """Let go; nothing if there is no such pull (any more)."""
        self.pulls.release(key, self.simulation)

    # --- the interactive loop of TVCG

    def add_model(self) -> Added:
        """Find the true equilibrium under the present pulls, add a model there, go on blended (TVCG section 7)."""
        pulls = list(self.pulls.values())
        if not pulls:
            raise InputError(
                "nothing is pulled, and there is a model at rest already: pull a body, then add a model"
            )
        setup, m = replace(self.setup, engine="blended", end_effectors=self.end_effectors), self.mechanism
        if setup.gravity.any() and setup.samples[0] is None:
            setup, _ = resolve(setup)
        gravity = tuple(setup.gravity.tolist()) if setup.gravity.any() else None
        here = self.poses[:, :3, 3].copy()
        rest = setup.samples[0]
        limits = rest is not None and rest.limits
        found = settle(pulls, m, self.q, self.poses, gravity, limits)
        error = float(np.linalg.norm(found.poses[:, :3, 3] - here, axis=1).max())
        self._go(replace(setup, samples=(*setup.samples, found)))
        return Added(len(self.setup.samples), error, found)

    # --- numbers

    def measure(self) -> Measures:
        """Numbers now; they join the history."""
        energy = energy_of(self.simulation, self.mechanism, self.q, self.setup.gravity)
        now = Measures(self.time, energy, self.violation, self._step_time, self._rate)
        self._remember(now)
        return now

    def ellipsoid(self, body: str) -> Ellipsoid:
        """How an end effector gives way to forces, as the reduced model has it."""
        if isinstance(self.simulation, ReducedSimulation) and body in self.simulation.model.end_effectors:
            return compliance_ellipsoid(self.simulation.model, body, self.simulation)
        setup = replace(self.setup, engine="reduced", end_effectors=(body,))
        if setup.gravity.any() and setup.samples[0] is None:
            setup, _ = resolve(setup)
        return compliance_ellipsoid(self._models.model(setup), body, None)
