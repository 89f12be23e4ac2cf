"""`come_to_rest`: simulate until the mechanism is at rest, with any engine."""

from __future__ import annotations

import numpy as np

from pliant.checks import number
from pliant.engines.simulation import Simulation
from pliant.statics import Configuration

__all__ = ["come_to_rest"]

_QUIET = 1e-9  # of the radius per step: slower motion is rest, for engines without velocities
_CALL = 20  # steps between two checks of that


def come_to_rest(simulation: Simulation, time: float = 60.0, tolerance: float = 1e-9) -> Configuration:
    """Step until the mechanism is at rest; returns that configuration.

    Kinetic damping: velocities are set to zero whenever kinetic energy has passed a peak. Engines without velocities
    step until positions no longer change.

    Args:
        simulation: of any engine.
        time: longest time to simulate, s.
        tolerance: kinetic energy that counts as rest, as a fraction of the largest so far.
    """
    time = number(time, "time", least=0.0)
    tolerance = number(tolerance, "tolerance", least=0.0)
    steps = max(1, round(min(time / simulation.timestep, 1e18)))
    if not simulation.has_velocities:
        for _ in range(0, steps, _CALL):
            start = simulation.poses[:, :3, 3].copy()
            simulation.step(_CALL)
            moved = np.abs(simulation.poses[:, :3, 3] - start).max()
            if moved < _CALL * _QUIET * simulation.mechanism.radius:
                break
        return simulation.configuration
    largest, before = 0.0, 0.0
    for _ in range(steps):
        simulation.step()
        now = simulation.kinetic
        largest = max(largest, now)
        if now < before:
            if before <= tolerance * largest:
                break
            simulation.velocity = np.zeros(simulation.mechanism.nv)
            now = 0.0
        before = now
    return simulation.configuration
