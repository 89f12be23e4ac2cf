"""Reduced models: what the end effectors of a mechanism feel and do, in microseconds a step (TVCG)."""

from pliant.engines.reduced.model import ReducedModel, StiffnessEllipsoid
from pliant.engines.reduced.reduce import reduce

__all__ = ["ReducedModel", "StiffnessEllipsoid", "reduce"]
