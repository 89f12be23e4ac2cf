"""Suite of statics: equilibria of open chains and of closed loops."""

from . import equilibrium

__all__ = ["PARTS"]

PARTS = (
    equilibrium.chains,
    equilibrium.loops,
    equilibrium.static_solvers,
)
