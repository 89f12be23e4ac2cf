"""The tour's grasp: a hand picks a ball up, as a reduced model and in full."""

from __future__ import annotations

from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import scenes
from pliant.engines.trajectory import Trajectory
from pliant.plotting import panels, save
from pliant.world import World

__all__ = ["Held", "draw", "hold"]

_TIMES = (0.0, 1.5, 2.5)  # s, in the picture: open, on the way up, lifted
_HELD, _ROUNDS = 30, 5  # steps to be timed, and how often
_TIPS = [f"hand/finger{f}_tip" for f in (1, 2, 3)]


class Held(NamedTuple):
    """Where the ball is in the end, the forces of the fingertips on it, and seconds a step."""

    ball: NDArray[np.float64]
    pressed: NDArray[np.float64]
    step: float

    def off(self, other: Held) -> tuple[float, float]:
        """Distance of the balls, m, and how much forces differ, as a share of the largest."""
        apart = float(np.linalg.norm(self.ball - other.ball))
        largest = np.linalg.norm(other.pressed, axis=1).max()
        return apart, float(np.linalg.norm(self.pressed - other.pressed, axis=1).max() / largest)


def hold(kind: str) -> tuple[Held, Trajectory]:
    """One hand takes the ball and lifts it; and all poses on the way."""
    play = scenes.grasp(kind)
    world = play.world
    path = play.record(round(_TIMES[-1] / world.timestep))
    pressed = np.array([world.contacts.force("ball", tip) for tip in _TIPS])
    step = float(np.median([_timed(world) for _ in range(_ROUNDS)]))
    return Held(path.pose("ball")[-1, :3, 3], pressed, step), path


def _timed(world: World) -> float:
    start = perf_counter()
    world.step(_HELD)
    return (perf_counter() - start) / _HELD


def draw(path: Trajectory, place: Any, one: Any) -> None:
    """Open, on the way up, lifted; `one` draws a configuration into axes."""
    drawn, _ = panels(1, len(_TIMES), 5.2, 4.2, grid=True)
    for axes, at in zip(drawn.axes, _TIMES, strict=True):
        frame = max(int(np.searchsorted(path.time, at + 1e-9)) - 1, 0)
        shown = SimpleNamespace(mechanism=path.mechanism, poses=path.poses[frame])
        one(shown, axes, (14, -60), f"{at:.1f} s")
    save(drawn, place)
