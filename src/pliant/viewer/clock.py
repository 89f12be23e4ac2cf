"""`Clock`: what is shown advances with real time, as far as the machine keeps up, and remembers its numbers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np

from pliant.errors import InputError

__all__ = ["SPEEDS", "STRENGTHS", "Clock", "within"]

SPEEDS, STRENGTHS = (0.05, 5.0), (0.1, 2.0)
_HISTORY = 400  # measurements kept


class Clock(ABC):
    """A simulation that is played, paused and stepped.

    Attributes:
        playing: whether `advance` does anything.
        speed: simulated time per real time.
        history: measurements, the latest last.
    """

    def __init__(self) -> None:
        self.playing, self.speed = True, 1.0
        self.history: deque[Any] = deque(maxlen=_HISTORY)
        self._owed, self._step_time, self._rate = 0.0, 0.0, 1.0

    @property
    @abstractmethod
    def timestep(self) -> float:
        """Seconds a step."""

    @property
    @abstractmethod
    def time(self) -> float:
        """Simulated seconds since the start or the last reset."""

    @abstractmethod
    def step(self, n: int = 1) -> None:
        """Advance by steps, whether playing or not. After an error it is paused where it was."""

    def advance(self, real: float, budget: float = 0.03) -> int:
        """Advance by real time times speed, if playing; what does not fit into the budget (s) is dropped.

        Returns the number of steps.
        """
        if not self.playing or real <= 0:
            return 0
        h = self.timestep
        self._owed += real * self.speed
        due = int(self._owed / h)
        self._owed -= due * h
        done, start, spent = 0, time.perf_counter(), 0.0
        while done < due and spent < budget:
            # As many at once as half of what is left will allow, so that a slow step does not freeze the view.
            likely = int((budget - spent) / 2 / self._step_time) if self._step_time > 0 else 1
            chunk = min(due - done, max(1, likely))
            self.step(chunk)
            done += chunk
            before, spent = spent, time.perf_counter() - start
            self._step_time = (spent - before) / chunk
        if due:
            wanted = due * h / max(self.speed, 1e-9)
            self._rate += min(1.0, real) * (done * h / wanted - self._rate)
        return done

    def set_speed(self, speed: float) -> None:
        """Simulated time per real time."""
        self.speed = within(speed, "speed", SPEEDS)

    def _restart(self) -> None:
        """Nothing is owed, nothing was measured."""
        self._owed = 0.0
        self.history.clear()

    def _remember(self, now: Any) -> None:
        """Add a measurement to the history, unless time has stood still."""
        if not self.history or now.time > self.history[-1].time:
            self.history.append(now)


def within(value: Any, what: str, limits: tuple[float, float]) -> float:
    """A number within limits."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise InputError(f"{what}: a number expected, not {value!r:.80}")
    if not limits[0] <= value <= limits[1]:
        raise InputError(f"{what}: a number from {limits[0]:g} to {limits[1]:g} expected, not {value:g}")
    return float(value)
