"""Engines side by side under one pull: at rest against the equilibrium, in motion against the full dynamics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pliant
from pliant.cli.driving import apply
from pliant.engines.reduced.accuracy import describe
from pliant.engines.settle import come_to_rest
from pliant.errors import InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.statics import Configuration
from pliant.statics.energy import elastic_energy
from pliant.statics.loads import tendon_lengths

__all__ = ["FRACTIONS", "Comparison", "Row", "compare", "default_pull"]

Floats = NDArray[np.float64]
Loads = Mapping[str, Sequence[float]]
_NONE = (0.0, 0.0, 0.0)
FRACTIONS = np.array([0.25, 0.5, 0.75, 1.0])
_FRAMES = 400  # of a path
_TIMED = 200  # steps
_PATIENCE = 4000  # steps at most until rest


@dataclass
class Row:
    """One engine.

    Attributes:
        engine: its name.
        setup: seconds to a simulation that is ready; compilation is not in it.
        step: seconds a step.
        rest: mean error of the end effectors at rest over their motion, per fraction of the load, or None.
        motion: rms distance of the end effectors from the constrained engine's, over their mean motion, or None.
        elastic: energy of the springs at rest under the whole load, J.
        path: distance of one end effector from its start over time, or None.
        problem: why there are no numbers.
    """

    engine: str
    setup: float = float("nan")
    step: float = float("nan")
    rest: Floats | None = None
    motion: float | None = None
    elastic: float = float("nan")
    path: Floats | None = None
    problem: str | None = None


@dataclass
class Comparison:
    """All engines.

    Attributes:
        name: of the mechanism.
        load: in words.
        wrenches: the same, `{body: numbers}`.
        body: the end effector that moves most.
        moved: how far, at equilibrium, m.
        elastic: energy of the springs there, J.
        fractions: of the load, for `Row.rest`.
        time: of `Row.path`.
        timestep: seconds.
        rows: the engines.
        limits: whether joint limits hold the equilibrium.
    """

    name: str
    load: str
    wrenches: Loads
    body: str
    moved: float
    elastic: float
    fractions: Floats
    time: Floats
    timestep: float
    rows: list[Row]
    limits: bool


def default_pull(model: pliant.ReducedModel, fraction: float) -> dict[str, tuple[float, ...]]:
    """The force that moves the softest end effector by a fraction of the radius, to first order; two digits."""
    found = {body: model.stiffness_ellipsoid(body) for body in model.end_effectors}
    body = min(found, key=lambda name: float(found[name].stiffness[0]))
    soft = found[body]
    if not np.isfinite(soft.stiffness[0]):
        raise InputError("no end effector gives way to a force: name the pull, as in --wrench BODY:0,0,5")
    axis = soft.axes[:, 0] * np.sign(soft.axes[np.abs(soft.axes[:, 0]).argmax(), 0])
    force = fraction * model.mechanism.radius * soft.stiffness[0] * axis
    digits = 1 - int(np.floor(np.log10(np.abs(force).max())))
    return {body: tuple(float(round(value, digits)) + 0.0 for value in force)}


def compare(
    m: Mechanism,
    bodies: Sequence[str],
    wrenches: Loads,
    engines: Sequence[str],
    seconds: float = 1.0,
    timestep: float = 1e-3,
    seed: int = 0,
    stage: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Pull a mechanism in every engine. Gravity is compensated: the reference pose is the rest pose.

    Args:
        m: without a floating base.
        bodies: end effectors to look at.
        wrenches: the pull, `{end effector: force, or force and torque}`.
        engines: names.
        seconds, timestep: of the motion.
        seed: of a blend's samples.
        stage: told what comes next.
    """
    stage("equilibria")
    if not 0 < timestep <= seconds < np.inf:
        raise InputError(
            f"seconds and timestep: 0 < timestep <= seconds expected, not {seconds!r} and {timestep!r}"
        )
    m = _at_rest(m)
    limits = bool(pliant.equilibrium(m, wrenches).beyond_limits)
    truths = [pliant.equilibrium(m, _scaled(wrenches, f), limits=limits) for f in FRACTIONS]
    last = truths[-1]
    indices = [m.body_index(body) for body in bodies]
    moved = last.displacement[indices]
    if not moved.max() > 0:
        raise InputError("the pull moves no end effector: name another one with --wrench")
    every = max(1, round(seconds / timestep / _FRAMES))
    frames = max(1, round(seconds / timestep) // every)
    found = Comparison(
        m.name,
        describe(wrenches),
        wrenches,
        bodies[int(moved.argmax())],
        float(moved.max()),
        _elastic(last),
        FRACTIONS,
        timestep * every * np.arange(frames + 1.0).astype(np.float64),
        timestep,
        [],
        limits,
    )
    reference: Floats | None = None
    for engine in sorted(engines, key="constrained".__ne__):  # the others are compared with it
        stage(f"{engine} (compiles once)")
        row = Row(engine)
        found.rows.append(row)
        try:
            simulation = _build(row, m, bodies, wrenches, truths, limits, timestep, seed)
        except PliantError as error:
            row.problem = str(error)
            continue
        if engine == "quasistatic":
            continue
        stage(f"{engine}: motion")
        positions, row.step = _moved(simulation, indices, wrenches, frames, every)
        row.path = np.linalg.norm(positions - positions[0], axis=2)[:, int(moved.argmax())]
        if engine == "constrained":
            reference = positions
        elif reference is not None:
            row.motion = _difference(positions, reference)
    found.rows.sort(key=lambda row: list(engines).index(row.engine))
    return found


def _build(
    row: Row,
    m: Mechanism,
    bodies: Sequence[str],
    wrenches: Loads,
    truths: Sequence[Configuration],
    limits: bool,
    timestep: float,
    seed: int,
) -> Any:
    """A simulation of one engine, ready; fills in what is known of it at rest."""
    start = time.perf_counter()
    indices = [m.body_index(body) for body in bodies]
    loads = [_scaled(wrenches, f) for f in FRACTIONS]
    if row.engine in ("reduced", "blended"):
        if row.engine == "reduced":
            model: Any = pliant.reduce(m, bodies)
            rest: Any = pliant.blend([model])
        else:
            found = pliant.sample(
                m,
                bodies,
                [dict(wrenches)],
                1e-4,
                6,
                seed=seed,
                candidates=24,
                held_out=8,
                limits=limits,
                progress=False,
            )
            model = rest = found.model
        row.setup = time.perf_counter() - start
        simulation: Any = pliant.simulate(model, None, timestep)
        settled = [rest.configuration(load) for load in loads]
    elif row.engine == "constrained":
        simulation = pliant.simulate(m, "constrained", timestep, gravity=_NONE)
        row.setup = time.perf_counter() - start
        settled = _settled(pliant.simulate(m, "constrained", max(timestep, 1 / 240), gravity=_NONE), loads)
    else:
        simulation = pliant.simulate(m, "quasistatic", 1 / 60, gravity=_NONE, tolerance=1e-3)
        row.setup = time.perf_counter() - start
        apply(simulation, loads[0])
        simulation.step()  # compiles, or loads what was compiled
        start, before = time.perf_counter(), simulation.time
        settled = _settled(simulation, loads)
        row.step = (time.perf_counter() - start) * simulation.timestep / (simulation.time - before)
    row.rest = np.array(
        [_error(now, true, indices, m) for now, true in zip(settled, truths, strict=True)], dtype=np.float64
    )
    row.elastic = _elastic(settled[-1])
    return simulation


def _settled(simulation: Any, loads: Sequence[Loads]) -> list[Configuration]:
    """Where a simulation comes to rest, load after load."""
    out = []
    for load in loads:
        apply(simulation, load)
        out.append(come_to_rest(simulation, _PATIENCE * simulation.timestep))
    return out


def _moved(
    simulation: Any, indices: Sequence[int], wrenches: Loads, frames: int, every: int
) -> tuple[Floats, float]:
    """Positions of the end effectors over time, (frames + 1, bodies, 3), and seconds a step."""
    apply(simulation, wrenches)
    simulation.step()  # compiles, or loads what was compiled
    simulation.reset()
    apply(simulation, wrenches)
    out = [simulation.poses[indices, :3, 3].copy()]
    for _ in range(frames):
        simulation.step(every)
        out.append(simulation.poses[indices, :3, 3].copy())
    start = time.perf_counter()
    simulation.step(_TIMED)  # in one call, so that Python does not count
    return np.array(out), (time.perf_counter() - start) / _TIMED


# --- measures


def _scaled(wrenches: Loads, fraction: float) -> dict[str, tuple[float, ...]]:
    return {body: tuple(fraction * value for value in values) for body, values in wrenches.items()}


def _error(now: Configuration, true: Configuration, indices: Sequence[int], m: Mechanism) -> float:
    """Mean distance of the end effectors from where they truly are, over how far they truly moved."""
    apart = np.linalg.norm(now.poses[indices, :3, 3] - true.poses[indices, :3, 3], axis=1).mean()
    return float(apart / true.displacement[indices].mean())


def _difference(positions: Floats, reference: Floats) -> float:
    apart = np.linalg.norm(positions - reference, axis=2)
    moved = np.linalg.norm(reference - reference[0], axis=2)
    return float(np.sqrt((apart**2).mean()) / np.sqrt((moved**2).mean()))


def _elastic(at: Configuration) -> float:
    return elastic_energy(at.mechanism, at.q)


def _at_rest(m: Mechanism) -> Mechanism:
    """With springs slack at the reference pose, which is what compensated gravity means to the full engines."""
    if np.array_equal(m.rest, m.reference):
        return m
    return m.replace(rest=m.reference.copy(), tendon_rest=tendon_lengths(m, m.reference, m.reference))
