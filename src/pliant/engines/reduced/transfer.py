"""From one reduced model to another: levels of detail and linearisations that take turns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.model import ReducedModel
from pliant.statics.inertia import Inertia

__all__ = ["coordinates_from_joints"]

Floats = NDArray[np.float64]


def coordinates_from_joints(model: ReducedModel) -> Floats:
    """Coordinates of a model from joint displacements, (n, nv).

    End effectors go where the joints put them; what is left moves modes in proportion to their share of the momentum.
    """
    rows = np.concatenate([model.configuration.jacobian(body) for body in model.end_effectors])
    static = (model.directions * model.scale[:, None]).T @ rows
    if not model.modes:
        return static
    shapes = model.basis[:, model.rank :]
    share = Inertia(model.mechanism, model.q).times(np.ascontiguousarray(shapes.T))
    return np.concatenate([static, share @ (np.eye(len(shapes)) - model.basis[:, : model.rank] @ static)])
