"""What simulations of reduced models are given, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.model import ReducedModel
from pliant.errors import InputError

__all__ = ["check_alike", "check_arguments", "whole"]

Floats = NDArray[np.float64]
EARTH = (0.0, 0.0, -9.81)


def whole(value: Any, what: str, least: int) -> int:
    """A whole number from `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what}: a whole number from {least} expected, not {value!r:.80}")
    return int(value)


def check_arguments(model: Any, timestep: Any, reconstruction: str, gravity: ArrayLike | None) -> Floats:
    """Refuse what cannot be simulated; returns gravity."""
    if not isinstance(model, ReducedModel | BlendedModel):
        raise InputError(f"a ReducedModel expected, as `pliant.reduce` makes it, not {model!r:.80}")
    if not isinstance(timestep, int | float | np.number) or not 0 < timestep < math.inf:
        raise InputError(f"timestep: a number of seconds above 0 expected, not {timestep!r}")
    if reconstruction not in ("joint", "twist"):
        raise InputError(f"reconstruction is 'joint' or 'twist', not {reconstruction!r}")
    if gravity is not None and model.base is None:
        raise InputError(
            "gravity is for models with a floating base; for this one, reduce at the equilibrium under gravity: "
            "`reduce(m, at=pliant.equilibrium(m, gravity=...))`"
        )
    try:
        out = np.array(EARTH if gravity is None else gravity, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"gravity: 3 numbers expected, not {gravity!r:.80}") from None
    if out.shape != (3,) or not np.isfinite(out).all():
        raise InputError(f"gravity: 3 finite numbers expected, not {gravity!r:.80}")
    return out


def check_alike(old: ReducedModel | BlendedModel, new: Any) -> None:
    """Refuse to go on with a model of another mechanism."""
    if not isinstance(new, ReducedModel | BlendedModel):
        raise InputError(f"switch: a ReducedModel expected, not {new!r:.80}")
    a, b = old.mechanism, new.mechanism
    if a is not b and (a.body_names, a.dof_names) != (b.body_names, b.dof_names):
        raise InputError(f"switch: a model of '{a.name}' expected, this is one of '{b.name}'")
    if (old.base is None) != (new.base is None):
        raise InputError("switch: one of the models has a floating base and the other has not")
