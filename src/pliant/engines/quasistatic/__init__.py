"""Error-bounded, adaptive quasi-statics of huge linkages: `QuasistaticSimulation`."""

from pliant.engines.quasistatic.simulation import QuasistaticSimulation

__all__ = ["QuasistaticSimulation"]
