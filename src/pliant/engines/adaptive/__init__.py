"""Adaptive dynamics of huge trees, joints rigid where little moves: `AdaptiveSimulation`."""

from pliant.engines.adaptive.simulation import AdaptiveSimulation

__all__ = ["AdaptiveSimulation"]
