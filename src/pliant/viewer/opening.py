"""How a session begins: with which engine, for a mechanism, a model or a simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pliant.engines.arguments import EARTH
from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.quasistatic import QuasistaticSimulation
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation
from pliant.errors import InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.statics import equilibrium
from pliant.viewer.setup import Models, Sample, Setup, Simulation, place

__all__ = ["begin"]

_LARGE = 2000  # bodies: beyond this, reducing takes seconds and is not done unasked
_MANY = 20  # end effectors: likewise


def begin(what: Any, models: Models) -> tuple[Setup, Simulation]:
    """The setup and the simulation to begin with; given models join those that are kept."""
    if isinstance(what, Mechanism):
        return _mechanism(what, models)
    if isinstance(what, ReducedModel | BlendedModel):
        setup = _model(what, models)
        gravity = None if what.base is None else np.zeros(3)
        return setup, ReducedSimulation(what, setup.step, gravity=gravity)
    if isinstance(what, ReducedSimulation):
        return replace(_model(what.model, models), timestep=what.timestep), what
    if isinstance(what, ConstrainedSimulation | QuasistaticSimulation):
        engine = "constrained" if isinstance(what, ConstrainedSimulation) else "quasistatic"
        m = what.mechanism
        return Setup(engine, m, what._gravity.copy(), _suggested(m), (None,), what.timestep), what
    raise InputError(
        f"view: a Mechanism, a model or a simulation expected, or a World, not {type(what).__name__}"
    )


def _mechanism(m: Mechanism, models: Models) -> tuple[Setup, Simulation]:
    """Reduced, if that works; huge ones by quasi-statics; else all links, under gravity."""
    engine = "reduced" if m.body_count <= _LARGE else "quasistatic"
    setup = Setup(engine, m, np.zeros(3), _suggested(m), (None,))
    try:
        return setup, place(setup, models, None)
    except PliantError:
        # What cannot be reduced is held by no springs: it hangs, and needs its weight to do so.
        setup = replace(setup, engine="constrained", gravity=np.array(EARTH))
        return setup, place(setup, models, None)


def _suggested(m: Mechanism) -> tuple[str, ...]:
    return m.end_effectors if len(m.end_effectors) <= _MANY else m.end_effectors[:1]


def _model(model: ReducedModel | BlendedModel, models: Models) -> Setup:
    m, samples = model.mechanism, []
    blended = isinstance(model, BlendedModel)
    for one in model.models if blended else (model,):
        samples.append(_sample(one, m))
        models.keep(m, samples[-1], one)
    if blended:
        models.like(model)
    engine = "blended" if blended else "reduced"
    return Setup(engine, m, np.zeros(3), model.end_effectors, tuple(samples))


def _sample(model: ReducedModel, m: Mechanism) -> Sample:
    """Where a given model was made, with its loads, so that others can be made there."""
    if not model.wrench.any():
        return None if np.array_equal(model.q, m.reference) else model.configuration
    parts = zip(model.end_effectors, model.wrench.reshape(-1, 6), strict=True)
    wrenches = {body: {"force": w[:3], "torque": w[3:], "frame": "body"} for body, w in parts}
    try:
        return equilibrium(m, wrenches, start=model.q, limits=model.limits)
    except PliantError:
        return model.configuration
