"""Where simulations come to rest when an equilibrium solver is not to help them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pliant.cli.driving import apply
from pliant.statics import Configuration

__all__ = ["crept", "stopped"]

Loads = Mapping[str, Sequence[float]]
_QUIET = 1e-9  # of the radius in a step: at rest
_PATIENCE = 4000  # steps at most until rest


def stopped(simulation: Any) -> Configuration:
    """Where a mechanism comes to rest by itself: stopped at every peak of its kinetic energy."""
    largest, before = 0.0, 0.0
    for _ in range(_PATIENCE):
        simulation.step()
        now = simulation.energy.kinetic
        largest = max(largest, now)
        if now < before:
            if before <= 1e-9 * largest:
                break
            simulation.velocity = np.zeros(simulation.mechanism.nv)
            now = 0.0
        before = now
    return simulation.configuration


def crept(simulation: Any, loads: Sequence[Loads]) -> tuple[list[Configuration], float]:
    """Where quasi-static steps come to rest, load after load, and seconds a step; the first step compiles."""
    settled, spent, steps = [], 0.0, 0
    apply(simulation, loads[0])
    simulation.step()
    for load in loads:
        apply(simulation, load)
        for _ in range(_PATIENCE // 20):
            before = simulation.poses[:, :3, 3].copy()
            start = time.perf_counter()
            simulation.step(20)
            spent, steps = spent + time.perf_counter() - start, steps + 20
            if np.abs(simulation.poses[:, :3, 3] - before).max() < 20 * _QUIET * simulation.mechanism.radius:
                break
        settled.append(simulation.configuration)
    return settled, spent / steps
