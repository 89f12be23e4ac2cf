"""Error-bounded, adaptive quasi-statics of huge linkages: `QuasistaticSimulation`."""

from pliant.engines.quasistatic.simulation import Effort, QuasistaticSimulation

__all__ = ["Effort", "QuasistaticSimulation"]
