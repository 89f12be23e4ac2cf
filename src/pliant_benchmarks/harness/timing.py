"""Timing of contenders that take turns in one process: median, spread between quartiles, least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from pliant.errors import PliantError

from .results import Row

__all__ = ["Stepping", "Timing", "Turns", "compare", "summarize", "time_in_turns", "time_steps"]

_LONG = 0.05  # s, of a step that makes a turn by itself
Stepping = Callable[[int], object]  # advances a simulation by n steps


class Timing(NamedTuple):
    """Median, half the distance between the quartiles, and the least, in seconds or the unit of `scaled`."""

    median: float
    spread: float
    least: float

    def scaled(self, factor: float) -> Timing:
        """Timing in another unit: `scaled(1e6 / steps)` is microseconds a step."""
        return Timing(*(factor * value for value in self))


def summarize(seconds: Sequence[float]) -> Timing:
    """Timing of measured durations, s."""
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75)).tolist()
    return Timing(middle, (high - low) / 2, min(seconds))


def time_in_turns(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = process_time
) -> dict[str, Timing]:
    """Seconds per call of each contender. They take turns: a slow spell of the machine slows all of them.

    Args:
        contenders: functions by name. Calls should take some milliseconds, about equally long for all contenders.
        rounds: turns of each contender, after one call to compile and warm up.
        clock: processor time of all threads by default, which other processes hardly change;
            `perf_counter` where several threads or processes share the work.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(rounds):
        for name, call in contenders.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    return {name: summarize(values) for name, values in times.items()}


def time_steps(
    contenders: Mapping[str, Stepping],
    rounds: int = 5,
    *,
    least: int = 1,
    most: int = 100_000,
    turn: float = 0.02,
    failed: Callable[[str], bool] = lambda name: False,
) -> dict[str, Timing]:
    """Seconds per step of each simulation, in turns; without those that diverge.

    Args:
        contenders: steppings by name. A `PliantError` counts as divergence.
        rounds: turns of each contender.
        least, most: bounds of the steps in a turn. Engines that keep a factorization from step to step need ten.
        turn: duration of a turn, s, within these bounds.
        failed: whether the named simulation has diverged, asked after the last turn.
    """
    diverged: set[str] = set()
    steps = {name: _guard(name, step, diverged) for name, step in contenders.items()}
    counts = {}
    for name, step in steps.items():
        step(1)  # compiles, and sets up state that the first step needs
        start = perf_counter()
        step(2)
        seconds = (perf_counter() - start) / 2
        counts[name] = 1 if seconds > _LONG else min(most, max(least, round(turn / max(seconds, 1e-9))))
    calls = {name: lambda step=step, n=counts[name]: step(n) for name, step in steps.items()}
    times = time_in_turns(calls, rounds)
    return {
        name: t.scaled(1 / counts[name])
        for name, t in times.items()
        if name not in diverged and not failed(name)
    }


def _guard(name: str, step: Stepping, diverged: set[str]) -> Stepping:
    """Stepping that notes a divergence by name and then does nothing."""

    def guarded(n: int) -> None:
        if name not in diverged:
            try:
                step(n)
            except PliantError:
                diverged.add(name)

    return guarded


class Turns:
    """Timing round by round, for measurements between rounds and contenders that skip rounds; wall clock."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[Callable[[], object], int, int]] = {}
        self._times: dict[str, list[float]] = {}

    def add(self, name: str, call: Callable[[], object], *, every: int = 1, steps: int = 1) -> None:
        """Add a contender that is called every `every` rounds and takes `steps` steps in a call."""
        self._calls[name], self._times[name] = (call, every, steps), []

    @property
    def names(self) -> list[str]:
        """Names of the contenders."""
        return list(self._calls)

    def round(self, number: int) -> None:
        """Time one call of every contender whose turn it is in this round."""
        for name, (call, every, steps) in self._calls.items():
            if number % every == 0:
                start = perf_counter()
                call()
                self._times[name].append((perf_counter() - start) / steps)

    def __getitem__(self, name: str) -> Timing:
        """Seconds per step of a contender."""
        return summarize(self._times[name])


def compare(case: str, ours: Timing, peer: Timing | None = None, **rest: Any) -> Row:
    """Row of two timings in the table's unit, with their ratio."""
    return Row(
        case,
        ours.median,
        None if peer is None else peer.median,
        ours.spread,
        None if peer is None else peer.spread,
        ratio=None if peer is None else peer.median / ours.median,
        **rest,
    )
