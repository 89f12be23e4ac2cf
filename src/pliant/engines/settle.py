"""`come_to_rest`: the one way in which simulations settle."""

from __future__ import annotations

import numpy as np

from pliant.engines.simulation import Simulation
from pliant.statics import Configuration

__all__ = ["come_to_rest"]

_QUIET = 1e-9  # of the radius in a step: at rest, for engines without velocities
_CALL = 20  # steps between two looks there


def come_to_rest(simulation: Simulation, time: float = 60.0, tolerance: float = 1e-9) -> Configuration:
    """Step until the motion has died away; returns where.

    Whenever kinetic energy has passed a peak, all velocities are set to zero, so that the mechanism falls into the
    nearest equilibrium. Engines without velocities step until nothing moves.

    Args:
        simulation: of any engine.
        time: at most so many seconds of motion.
        tolerance: kinetic energy that counts as rest, as a fraction of the largest seen.
    """
    steps = max(1, round(time / simulation.timestep))
    if not simulation.has_velocities:
        for _ in range(0, steps, _CALL):
            before = simulation.poses[:, :3, 3].copy()
            simulation.step(_CALL)
            if (
                np.abs(simulation.poses[:, :3, 3] - before).max()
                < _CALL * _QUIET * simulation.mechanism.radius
            ):
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
