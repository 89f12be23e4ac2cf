"""`Detailed`: the part of a `World` that changes how finely its mechanisms move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pliant.contact.contents import Contents
from pliant.contact.levels import Detail, Level, Simulation, carry_over
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation
from pliant.errors import InputError
from pliant.mechanism import Mechanism

__all__ = ["Detailed"]

_BACK = 0.5  # of the error allowed: what a coarser level has to stay below to be gone back to


class Detailed(Contents):
    """Contents whose mechanisms go between reduced, blended and full."""

    def switch(self, name: str, to: Level) -> float:
        """Let a mechanism go on by another model, or whole, in the middle of its motion.

        Joints, velocities, a floating base, wrenches, torques of motors and contacts carry over. Whole mechanisms start
        just where models are, up to loops, which are closed. Models come as near as they can: the way that takes is
        returned.
        `world[name]` is another simulation then: ask for it anew.

        Args:
            name: of a mechanism in this world.
            to: a `ReducedModel` or `BlendedModel` of it, or the `Mechanism`.

        Returns:
            The longest way that any of its bodies has jumped, m.

        Raises:
            InputError: it is another mechanism, or a wrench or motor cannot go along; nothing is changed.
        """
        self._details.pop(name, None)
        return self._switch(name, to)

    def _switch(self, name: str, to: Level) -> float:
        old = self._moving_by(name)
        before = old.poses.copy()
        kept = None if self._stepper is None or self._changed else self._stepper.memory
        if isinstance(old, ReducedSimulation) and isinstance(to, ReducedModel | BlendedModel):
            old.switch(to)
            new: Simulation = old
        else:
            new = self._simulation(to)
            carry_over(old, new)
            _retire(old, name)
        self._put(self._parts[name], new)
        self._kept = kept
        return float(np.linalg.norm(new.poses[:, :3, 3] - before[:, :3, 3], axis=1).max())

    def _moving_by(self, name: str) -> Simulation:
        found = self[name]
        if self._parts[name].actor is None:
            raise InputError(f"'{name}' is no mechanism: only those have levels of detail")
        return found

    def detail(self, name: str, levels: Sequence[Level], error: float, every: float = 0.1) -> None:
        """Choose among levels of detail of a mechanism while it moves.

        A model that opens its joints further than `error` gives way to the next finer level, see
        `pliant.engines.violation.Violation`; and a coarser one comes back when it would move no body by more than half
        of that, nor open its joints further. An empty list of levels ends it.

        Args:
            name: of a mechanism in this world.
            levels: from coarse to fine, of the same mechanism: a `ReducedModel`, a `BlendedModel`, the `Mechanism`.
            error: allowed, m.
            every: seconds between two looks.
        """
        self._moving_by(name)
        if not levels:
            self._details.pop(name, None)
            self._change()
            return
        for value, what in ((error, "error"), (every, "every")):
            if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
                raise InputError(f"detail: {what} above 0 expected, not {value!r}")
        given = tuple(levels)
        for level in given:
            if not isinstance(level, ReducedModel | BlendedModel | Mechanism):
                raise InputError(f"detail: models or mechanisms expected as levels, not {level!r:.80}")
        now = next((i for i, level in enumerate(given) if level is self.level(name)), None)
        if now is None:
            self._switch(name, given[0])
        self._details[name] = Detail(given, float(error), max(1, round(every / self._timestep)), now or 0)
        self._change()

    def level(self, name: str) -> Level:
        """What a mechanism moves by now: a model, or the mechanism itself."""
        simulation = self._moving_by(name)
        return simulation.model if isinstance(simulation, ReducedSimulation) else simulation.mechanism

    def _as_added(self) -> None:
        """Back to the levels of the start."""
        for name, part in list(self._parts.items()):
            if part.what is not None and self.level(name) is not part.what:
                _retire(self[name], name)
                self._put(part, self._simulation(part.what, **part.options))
        for name, detail in self._details.items():
            detail.now = next((i for i, x in enumerate(detail.levels) if x is self._parts[name].what), 0)
            detail.wait, detail.trial = 0, None

    def _look(self, n: int) -> int:
        """Choose levels that are due; returns how many of `n` steps may be taken before the next look."""
        for name, detail in self._details.items():
            if detail.wait <= 0:
                self._choose(name, detail)
                detail.wait = detail.every
            n = min(n, detail.wait)
        for detail in self._details.values():
            detail.wait -= n
        return n

    def _choose(self, name: str, detail: Detail) -> None:
        simulation = self._moving_by(name)
        finest = len(detail.levels) - 1
        if detail.now < finest and detail.violation(simulation) > detail.error:
            self._switch(name, detail.levels[detail.now + 1])
            detail.now, detail.trial = detail.now + 1, None
        elif detail.now > 0 and self._coarser_will_do(simulation, detail):
            self._switch(name, detail.levels[detail.now - 1])
            detail.now, detail.trial = detail.now - 1, None

    def _coarser_will_do(self, simulation: Simulation, detail: Detail) -> bool:
        if detail.trial is None:
            detail.trial = self._simulation(detail.levels[detail.now - 1])
        trial, allowed = detail.trial, _BACK * detail.error
        try:
            carry_over(simulation, trial)
        except InputError:  # a wrench or a motor that only the finer one takes
            return False
        jump = np.linalg.norm(trial.poses[:, :3, 3] - simulation.poses[:, :3, 3], axis=1).max()
        return bool(jump <= allowed) and detail.violation(trial) <= allowed


def _retire(simulation: Any, name: str) -> None:
    """Let nobody go on with a simulation that is not the world's any more."""

    def gone(*_: Any, **__: Any) -> NoReturn:
        raise InputError(f"'{name}' has gone on by another simulation: ask for world['{name}'] anew")

    simulation.apply_wrench = simulation.clear_wrenches = simulation.step = simulation.set_motor = gone
