"""Reduced models: what the end effectors of a mechanism feel and do, in microseconds a step (TVCG)."""

from pliant.engines.reduced.batch import ReducedBatch
from pliant.engines.reduced.blended import BlendedModel, blend
from pliant.engines.reduced.model import ReducedModel, StiffnessEllipsoid
from pliant.engines.reduced.reduce import reduce
from pliant.engines.reduced.sampling import Sampled, sample
from pliant.engines.reduced.simulation import ReducedSimulation

__all__ = [
    "BlendedModel",
    "ReducedBatch",
    "ReducedModel",
    "ReducedSimulation",
    "Sampled",
    "StiffnessEllipsoid",
    "blend",
    "reduce",
    "sample",
]
