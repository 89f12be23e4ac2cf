"""`Levels`: levels of detail of the mechanisms of a world, and the switches between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pliant.engines.reduced import BlendedModel, ReducedModel
from pliant.engines.simulation import Simulation
from pliant.engines.transfer import carry_over
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.text import brief

__all__ = ["Level", "Levels"]

Level = ReducedModel | BlendedModel | Mechanism
_BACK = 0.5  # share of the allowed error below which a coarser level comes back


@dataclass(eq=False)
class Choice:
    """Levels of one mechanism from coarse to fine.

    Attributes:
        levels: models or mechanisms.
        error: largest allowed, m.
        every: steps between two checks.
        now: the level in use.
        wait: steps until the next check.
        trial: simulation of the next coarser level, to compare it with the present one.
    """

    levels: tuple[Level, ...]
    error: float
    every: int
    now: int = 0
    wait: int = 0
    trial: Simulation | None = None


class Levels:
    """Choices among levels of detail, by name of the mechanism.

    A model that opens its joints further than the error allowed gives way to the next finer level; a coarser one comes
    back when it would move no body by more than half of that, nor open its joints further.

    Args:
        current: gives the simulation that moves a mechanism now.
        switch: changes the level of a mechanism.
        make: makes a simulation of a level.
    """

    def __init__(
        self,
        current: Callable[[str], Simulation],
        switch: Callable[[str, Level], float],
        make: Callable[[Level], Simulation],
    ):
        self._current, self._switch, self._make = current, switch, make
        self._choices: dict[str, Choice] = {}

    def __bool__(self) -> bool:
        return bool(self._choices)

    def set(self, name: str, levels: Sequence[Level], error: float, every: int, now: Level) -> None:
        """Start to choose among levels."""
        for level in levels:
            if not isinstance(level, ReducedModel | BlendedModel | Mechanism):
                raise InputError(f"detail: models or mechanisms expected as levels, not {brief(level)}")
        at = next((i for i, level in enumerate(levels) if level is now), None)
        if at is None:
            self._switch(name, levels[0])
        self._choices[name] = Choice(tuple(levels), error, every, at or 0)

    def drop(self, name: str) -> None:
        """Stop choosing: a mechanism keeps its present level."""
        self._choices.pop(name, None)

    def restart(self, name: str, level: Level | None) -> None:
        """Restart at the level that the mechanism was added with."""
        choice = self._choices.get(name)
        if choice is not None:
            choice.now = next((i for i, x in enumerate(choice.levels) if x is level), 0)
            choice.wait, choice.trial = 0, None

    def copies(self) -> dict[str, Choice]:
        """Choices of all mechanisms, for another world; without trials."""
        return {name: replace(choice, trial=None) for name, choice in self._choices.items()}

    def restore(self, choices: dict[str, Choice]) -> None:
        """Go on with choices of `copies`."""
        self._choices = dict(choices)

    def update(self, n: int) -> int:
        """Switch mechanisms whose check is due; returns how many of `n` steps may be taken before the next check."""
        for name, choice in self._choices.items():
            if choice.wait <= 0:
                self._choose(name, choice)
                choice.wait = choice.every
            n = min(n, choice.wait)
        for choice in self._choices.values():
            choice.wait -= n
        return n

    def _choose(self, name: str, choice: Choice) -> None:
        simulation = self._current(name)
        finest = len(choice.levels) - 1
        change = 0
        if choice.now < finest and simulation.doubt > choice.error:
            change = 1
        elif choice.now > 0 and self._coarser_suffices(simulation, choice):
            change = -1
        if change:
            self._switch(name, choice.levels[choice.now + change])
            choice.now, choice.trial = choice.now + change, None

    def _coarser_suffices(self, simulation: Simulation, choice: Choice) -> bool:
        if choice.trial is None:
            choice.trial = self._make(choice.levels[choice.now - 1])
        trial, allowed = choice.trial, _BACK * choice.error
        try:
            carry_over(simulation, trial)
        except InputError:  # a wrench or a motor that only the finer one takes
            return False
        jump = np.linalg.norm(trial.poses[:, :3, 3] - simulation.poses[:, :3, 3], axis=1).max()
        return bool(jump <= allowed) and trial.doubt <= allowed
