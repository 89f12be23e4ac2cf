"""Timing that is fair: contenders take turns, medians are compared, and their spread is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from results import Row

__all__ = ["Timing", "compared", "interleaved"]


class Timing(NamedTuple):
    """Median, half the range between the quartiles, and the least, in seconds or what `scaled` made of them."""

    median: float
    spread: float
    least: float

    def scaled(self, factor: float) -> Timing:
        """In another unit: `scaled(1e6 / steps)` is microseconds a step."""
        return Timing(*(factor * value for value in self))


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = process_time
) -> dict[str, Timing]:
    """Seconds of each contender; they take turns so that a slow spell of the machine hits all.

    Args:
        contenders: what to call. Each call should take some milliseconds, about as long as the others'.
        rounds: how often each has its turn.
        clock: processor time of all threads by default, which others on the machine cannot take away;
            `perf_counter` where several threads or processes share the work.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()  # compile and warm up
    for _ in range(rounds):
        for name, call in contenders.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    out = {}
    for name, values in times.items():
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        out[name] = Timing(middle, (high - low) / 2, min(values))
    return out


def compared(case: str, ours: Timing, peer: Timing | None = None, **rest: Any) -> Row:
    """A row of two timings in the table's unit, with their ratio."""
    return Row(
        case,
        ours.median,
        None if peer is None else peer.median,
        ours.spread,
        None if peer is None else peer.spread,
        ratio=None if peer is None else peer.median / ours.median,
        **rest,
    )
