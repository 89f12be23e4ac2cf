"""Kinematics, Jacobians, loop closure and nonlinear equilibrium."""

from pliant.statics.configuration import Configuration
from pliant.statics.equilibria import Equilibria, equilibria
from pliant.statics.equilibrium import equilibrium, within_limits

__all__ = ["Configuration", "Equilibria", "equilibria", "equilibrium", "within_limits"]
