"""`WorldSession`: a world in a live view, without the view: what is done to it, pulls, contacts, numbers.

Like `Session`, it knows of no browser and of no threads.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import InputError, PliantError
from pliant.viewer.clock import STRENGTHS, Clock, within
from pliant.viewer.pulls import Pull, vector
from pliant.world import World

__all__ = ["Contacts", "WorldMeasures", "WorldSession"]

Floats = NDArray[np.float64]
_FREQUENCY = 4.0  # Hz, of what is pulled on its spring
_NAMED = 4  # things that a title names


@dataclass(frozen=True, eq=False)
class Contacts:
    """Forces between surfaces.

    Attributes:
        points: where they act, world, (n, 3).
        forces: on the body that moves; of two that do, on the second; N, world, (n, 3).
        depth: how far surfaces are inside each other at most, m.
    """

    points: Floats
    forces: Floats
    depth: float

    @property
    def largest(self) -> float:
        """The largest force, N."""
        return float(np.linalg.norm(self.forces, axis=1).max(initial=0.0))

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class WorldMeasures:
    """Numbers at one time.

    Attributes:
        time: simulated, s.
        contacts: how many there are.
        force: sum of the sizes of all contact forces, N.
        depth: how far surfaces are inside each other at most, m.
        step_time: real time a step takes, s.
        rate: simulated time per real time.
    """

    time: float
    contacts: int
    force: float
    depth: float
    step_time: float
    rate: float


class WorldSession(Clock):
    """A world that is simulated, pulled and looked at.

    Attributes:
        world: what runs.
        mechanism: all its bodies, each on its own: what is drawn.
        pulls: springs that act, by key.
        history: `WorldMeasures`, the latest last.
    """

    def __init__(self, what: Any):
        """Take a World, or a Play: a world with what is done to it as time goes by."""
        super().__init__()
        self.world: World = what if isinstance(what, World) else what.world
        self._runs = what
        if not len(tuple(self.world)):
            raise InputError("view: there is nothing in this world; add something first")
        self.mechanism = self.world.scene.replace(name=_listed(tuple(self.world)))
        self.strength = 1.0
        self.pulls: dict[Hashable, Pull] = {}

    @property
    def timestep(self) -> float:
        return self.world.timestep

    @property
    def time(self) -> float:
        return self.world.time

    @property
    def poses(self) -> Floats:
        """World poses of all bodies that are drawn, (bodies, 4, 4)."""
        return self.world.poses[: self.mechanism.body_count]

    # --- time

    def step(self, n: int = 1) -> None:
        try:
            self._runs.step(n)
        except PliantError:
            self.playing = False
            raise
        finally:
            self._feel()

    def reset(self) -> None:
        """Back to the start: time zero, everything where it was added, no pulls."""
        self.pulls.clear()
        self.world.reset()
        self._restart()

    # --- pulls

    def pull(self, key: Hashable, body: str, point: ArrayLike, target: ArrayLike) -> Pull:
        """Pull a body by a spring.

        Args:
            key: what the pull is called; one that is there under the same name is replaced, and so is one on the same
                body: in a world, a body hangs on one spring at most.
            body: what to pull.
            point: where, world.
            target: where to, world.
        """
        index = self.mechanism.body_index(body)
        if index < 0:
            raise InputError("the world cannot be pulled: take a body")
        pose = self.poses[index]
        local = pose[:3, :3].T @ (vector(point, "point") - pose[:3, 3])
        made = Pull(body, index, local, vector(target, "target"))
        self._spring(made)
        for other in [k for k, pull in self.pulls.items() if k != key and pull.body == body]:
            del self.pulls[other]
        if key in self.pulls and self.pulls[key].body != body:
            self.world.release(self.pulls[key].body)
        self.pulls[key] = made
        self._feel()
        return made

    def move(self, key: Hashable, target: ArrayLike) -> None:
        """Pull elsewhere; nothing if there is no such pull (any more)."""
        if key in self.pulls:
            self.pulls[key].target = vector(target, "target")
            self._spring(self.pulls[key])

    def release(self, key: Hashable) -> None:
        """Let go; nothing if there is no such pull (any more)."""
        pull = self.pulls.pop(key, None)
        if pull is not None:
            self.world.release(pull.body)

    def set_strength(self, strength: float) -> None:
        """How hard pulls pull, 1 the usual."""
        self.strength = within(strength, "pull strength", STRENGTHS)
        for pull in self.pulls.values():
            self._spring(pull)

    def _spring(self, pull: Pull) -> None:
        frequency = _FREQUENCY * float(np.sqrt(self.strength))
        self.world.pull(pull.body, pull.target, pull.point, frequency=frequency)

    def _feel(self) -> None:
        """Where springs hold, and with what forces they pulled in the last step."""
        felt = self.world.pulls
        poses = self.poses
        for pull in self.pulls.values():
            pull.place, pull.force = pull.at(poses), felt.get(pull.body, np.zeros(3))

    # --- contacts and numbers

    @property
    def contacts(self) -> Contacts:
        """Where things touched in the last step, and with what forces."""
        found = self.world.contacts
        moving = set(self.mechanism.body_names)
        sign = np.array([1.0 if b in moving else -1.0 for _, b in found.bodies]).reshape(-1, 1)
        acting = np.linalg.norm(found.forces, axis=1) > 0
        depth = float(max(0.0, -found.distances.min(initial=0.0)))
        return Contacts(found.points[acting], (sign * found.forces)[acting], depth)

    def force_on(self, body: str) -> Floats:
        """Total contact force on a body, N, world."""
        return self.world.contacts.force(body)

    def measure(self) -> WorldMeasures:
        """Numbers now; they join the history."""
        found = self.contacts
        force = float(np.linalg.norm(found.forces, axis=1).sum())
        now = WorldMeasures(self.time, len(found), force, found.depth, self._step_time, self._rate)
        self._remember(now)
        return now


def _listed(names: tuple[str, ...]) -> str:
    """What is there, in a few words."""
    few = ", ".join(names[:_NAMED])
    return few if len(names) <= _NAMED else f"{few} and {len(names) - _NAMED} more"
