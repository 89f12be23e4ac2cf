"""What simulations of reduced models are given, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.engines.arguments import EARTH, acceleration, seconds
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.model import ReducedModel
from pliant.errors import InputError

__all__ = ["check_alike", "check_arguments"]

Floats = NDArray[np.float64]


def check_arguments(model: Any, timestep: Any, reconstruction: str, gravity: ArrayLike | None) -> Floats:
    """Refuse what cannot be simulated; returns gravity."""
    if not isinstance(model, ReducedModel | BlendedModel):
        raise InputError(f"a ReducedModel expected, as `pliant.reduce` makes it, not {model!r:.80}")
    seconds(timestep)
    if reconstruction not in ("joint", "twist"):
        raise InputError(f"reconstruction is 'joint' or 'twist', not {reconstruction!r}")
    if gravity is not None and model.base is None:
        raise InputError(
            "gravity is for models with a floating base; for this one, reduce at the equilibrium under gravity: "
            "`reduce(m, at=pliant.equilibrium(m, gravity=...))`"
        )
    return acceleration(EARTH if gravity is None else gravity)


def check_alike(old: ReducedModel | BlendedModel, new: Any) -> None:
    """Refuse to go on with a model of another mechanism."""
    if not isinstance(new, ReducedModel | BlendedModel):
        raise InputError(f"switch: a ReducedModel expected, not {new!r:.80}")
    a, b = old.mechanism, new.mechanism
    if a is not b and (a.body_names, a.dof_names) != (b.body_names, b.dof_names):
        raise InputError(f"switch: a model of '{a.name}' expected, this is one of '{b.name}'")
    if (old.base is None) != (new.base is None):
        raise InputError("switch: one of the models has a floating base and the other has not")
