"""The tour's grasp: a hand picks a ball up, as a reduced model and in full."""

from __future__ import annotations

from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from pliant.engines.reduced.accuracy import figure, save
from pliant.gallery import worlds
from pliant.world import World

__all__ = ["TIMES", "Grasp"]

TIMES = (0.0, 1.5, 2.5)  # s, in the picture: open, on the way up, lifted
_HELD, _ROUNDS = 30, 5  # steps to be timed, and how often
_TIPS = [f"hand/finger{f}_tip" for f in (1, 2, 3)]


class Grasp:
    """One hand takes the ball and lifts it; poses on the way, where the ball ends up, how hard it is held."""

    def __init__(self, kind: str):
        play = worlds.grasp(kind)
        world = play.world
        self.path = play.record(round(TIMES[-1] / world.timestep))
        self.links = world.scene.body_count - 1  # without the ball
        self.ball = world.pose("ball")[:3, 3]
        self.pressed = np.array([world.contacts.force("ball", tip) for tip in _TIPS])
        self.step = float(np.median([self._timed(world) for _ in range(_ROUNDS)]))

    @staticmethod
    def _timed(world: World) -> float:
        start = perf_counter()
        world.step(_HELD)
        return (perf_counter() - start) / _HELD

    def off(self, other: Grasp) -> tuple[float, float]:
        """Distance of the balls, m, and how much forces differ, as a share of the largest."""
        apart = float(np.linalg.norm(self.ball - other.ball))
        largest = np.linalg.norm(other.pressed, axis=1).max()
        return apart, float(np.linalg.norm(self.pressed - other.pressed, axis=1).max() / largest)

    def draw(self, place: Any, one: Any) -> None:
        """Open, on the way up, lifted; `one` draws a configuration into axes."""
        drawn = figure(len(TIMES))
        for axes, at in zip(drawn.axes, TIMES, strict=True):
            frame = max(int(np.searchsorted(self.path.time, at + 1e-9)) - 1, 0)
            shown = SimpleNamespace(mechanism=self.path.mechanism, poses=self.path.poses[frame])
            one(shown, axes, (14, -60), f"{at:.1f} s")
        save(drawn, place)
