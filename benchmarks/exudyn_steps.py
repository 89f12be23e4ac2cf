"""Steps of Exudyn's implicit solver, for the chain and for trees."""

from __future__ import annotations

from typing import Any

__all__ = ["advance"]


def advance(solver: Any, mbs: Any, settings: Any, n: int, h: float) -> bool:
    """Take n steps; False if that fails."""
    # A hair early: the time summed up by the solver may fall short of n steps and ask for one more.
    it = solver.it
    it.endTime = it.currentTime + n * h * (1 - 1e-9)
    it.currentStepSize = h
    try:
        return bool(solver.SolveSteps(mbs, settings))
    except (RuntimeError, ValueError):
        return False
