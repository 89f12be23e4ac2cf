"""`Play`: a world and what is done to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pliant.engines.trajectory import Trajectory
from pliant.world import World

__all__ = ["Play"]


@dataclass(frozen=True, eq=False)
class Play:
    """A world and what is done to it as time goes by.

    Attributes:
        world: at its start.
        act: called before every step with the time.
    """

    world: World
    act: Callable[[float], None]

    def step(self, n: int = 1) -> None:
        """Advance by `n` time steps."""
        for _ in range(n):
            self.act(self.world.time)
            self.world.step()

    def record(self, n: int, every: int = 1) -> Trajectory:
        """Advance by `n` times `every` steps and keep all poses after each `every`."""
        return self.world.record(n, every, self.act)

    def run(self, seconds: float) -> None:
        """Advance by a time."""
        self.step(round(seconds / self.world.timestep))
