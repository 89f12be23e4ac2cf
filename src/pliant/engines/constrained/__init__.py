"""Full dynamics of every body: `ConstrainedSimulation`."""

from pliant.engines.constrained.simulation import ConstrainedSimulation

__all__ = ["ConstrainedSimulation"]
