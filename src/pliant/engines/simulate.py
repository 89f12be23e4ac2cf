"""`simulate`: a simulation of a mechanism or model by any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.checks import EARTH, acceleration, choice, mapping
from pliant.engines.adaptive import AdaptiveSimulation
from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.quasistatic import QuasistaticSimulation
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation, reduce, sample
from pliant.engines.simulation import Simulation
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.statics import equilibrium
from pliant.text import brief

__all__ = ["ENGINES", "TIMESTEPS", "make_model", "simulate"]

TIMESTEPS = {  # s, by default
    "reduced": 1e-3,
    "blended": 1e-3,
    "constrained": 1 / 60,
    "quasistatic": 1 / 60,
    "adaptive": 1 / 60,
}
ENGINES = tuple(TIMESTEPS)


def simulate(
    what: Mechanism | ReducedModel | BlendedModel,
    engine: str | None = None,
    timestep: float | None = None,
    *,
    gravity: ArrayLike | None = None,
    end_effectors: str | Sequence[str] | None = None,
    sampling: Mapping[str, Any] | None = None,
    **options: Any,
) -> Simulation:
    """A simulation at its start, by any engine.

    Args:
        what: a mechanism, or a model made before.
        engine: "reduced", "blended", "constrained", "quasistatic" or "adaptive". By default that of the model, or the
            constrained engine for a mechanism.
        timestep: seconds; 1 ms for models and 1/60 s for the other engines by default.
        gravity: m/s². By default (0, 0, -9.81) for the engines that move mechanisms and for models whose base floats;
            compensated for other models, so that the reference pose is the rest pose.
        end_effectors: of a model that is made here; the mechanism's own by default.
        sampling: arguments of `pliant.sample`, which chooses the models of a blend made here.
        options: further arguments of the engine's constructor.

    Raises:
        InputError: there is no such engine, or it cannot run on what was given.

    Example:
        >>> import pliant
        >>> simulation = pliant.simulate(pliant.gallery.hand(), "reduced")
        >>> simulation.step(10)
        >>> round(simulation.time, 6)
        0.01
    """
    if not isinstance(what, ReducedModel | BlendedModel | Mechanism):
        raise InputError(f"a ReducedModel, BlendedModel or Mechanism expected, not {type(what).__name__}")
    if engine is None:
        kinds = ((BlendedModel, "blended"), (ReducedModel, "reduced"), (Mechanism, "constrained"))
        engine = next(name for kind, name in kinds if isinstance(what, kind))
    choice(engine, "the engine", ENGINES)
    h = TIMESTEPS[engine] if timestep is None else timestep
    if engine in ("reduced", "blended"):
        model = make_model(what, engine, gravity, end_effectors, sampling)
        falls = gravity if model.base is not None else None
        return ReducedSimulation(model, h, gravity=falls, **options)
    if isinstance(what, ReducedModel | BlendedModel):
        raise InputError(f"the {engine} engine moves mechanisms: give the model's mechanism")
    if end_effectors is not None or sampling is not None:
        raise InputError(f"end_effectors and sampling are for models: the {engine} engine has none")
    down = EARTH if gravity is None else gravity
    if engine == "constrained":
        return ConstrainedSimulation(what, h, down, **options)
    if engine == "adaptive":
        return AdaptiveSimulation(what, h, down, **options)
    return QuasistaticSimulation(what, h, down, **options)


def make_model(
    what: Mechanism | ReducedModel | BlendedModel,
    engine: str,
    gravity: ArrayLike | None = None,
    end_effectors: str | Sequence[str] | None = None,
    sampling: Mapping[str, Any] | None = None,
) -> ReducedModel | BlendedModel:
    """Model for the reduced or blended engine, made from a mechanism or checked; see `simulate`."""
    heavy = gravity is not None and bool(acceleration(gravity).any())
    if isinstance(what, ReducedModel | BlendedModel):
        if isinstance(what, BlendedModel) != (engine == "blended"):
            raise InputError(
                "a blend of models moves by the engine 'blended'"
                if engine == "reduced"
                else "a single model is no blend: give the mechanism, or `pliant.blend` several models"
            )
        if heavy and what.base is None:
            raise InputError(
                "the model was linearised already: give its mechanism to have gravity, or leave it out"
            )
        return what
    if engine == "blended":
        if heavy:
            raise InputError("blended models are sampled with gravity compensated: leave gravity out")
        words: dict[str, Any] = {"progress": False}
        if sampling is not None:
            words |= mapping(sampling, "sampling", "{argument of pliant.sample: value}")
            known = {*signature(sample).parameters} - {"mechanism", "end_effectors"}
            unknown = [word for word in words if word not in known]
            if unknown:
                raise InputError(
                    f"sampling: unknown argument {brief(unknown[0])}; it takes {', '.join(sorted(known))}"
                )
        return sample(what, end_effectors, words.pop("wrenches", None), **words).model
    model = reduce(what, end_effectors)
    if heavy and model.base is None:
        down = tuple(np.asarray(gravity, dtype=np.float64).tolist())
        return reduce(what, end_effectors, at=equilibrium(what, gravity=down))
    return model
