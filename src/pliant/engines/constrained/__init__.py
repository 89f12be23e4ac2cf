"""Full dynamics of every body: `ConstrainedSimulation`."""

from pliant.engines.constrained.simulation import ConstrainedSimulation, Effort

__all__ = ["ConstrainedSimulation", "Effort"]
