"""Steps of several engines, timed in turns: how long one of them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np
from measure import Timing, interleaved

from pliant.errors import PliantError

__all__ = ["Stepping", "per_step", "summary"]

_LONG = 0.05  # s, of a step that is timed alone
Stepping = Callable[[int], object]  # takes so many steps


def summary(times: Sequence[float]) -> Timing:
    """Of turns that were timed elsewhere."""
    low, middle, high = np.quantile(times, (0.25, 0.5, 0.75)).tolist()
    return Timing(middle, (high - low) / 2, min(times))


def per_step(
    contenders: Mapping[str, Stepping],
    rounds: int = 5,
    *,
    least: int = 1,
    most: int = 100_000,
    turn: float = 0.02,
    failed: Callable[[str], bool] = lambda name: False,
) -> dict[str, Timing]:
    """Seconds of one step of each; those that raise pliant's errors, or say that they `failed`, are left out.

    Args:
        contenders: by name.
        failed: asked in the end about each.
        rounds: how many turns everybody gets.
        least, most: steps in a turn. Some engines keep a factorization from step to step and need ten.
        turn: how long a turn takes, s, within these bounds.
    """
    fell: set[str] = set()
    steps = {name: _guarded(name, step, fell) for name, step in contenders.items()}
    counts = {}
    for name, step in steps.items():
        step(1)  # compile, and settle what a first step sets up
        start = perf_counter()
        step(2)
        took = (perf_counter() - start) / 2
        counts[name] = 1 if took > _LONG else min(most, max(least, round(turn / max(took, 1e-9))))
    calls = {name: _call(step, counts[name]) for name, step in steps.items()}
    times = interleaved(calls, rounds)
    return {
        name: t.scaled(1 / counts[name]) for name, t in times.items() if name not in fell and not failed(name)
    }


def _guarded(name: str, step: Stepping, fell: set[str]) -> Stepping:
    def guarded(n: int) -> None:
        if name not in fell:
            try:
                step(n)
            except PliantError:
                fell.add(name)

    return guarded


def _call(step: Stepping, count: int) -> Callable[[], object]:
    return lambda: step(count)
