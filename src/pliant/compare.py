"""Comparison of engines under one load: at rest with the nonlinear equilibrium, in motion with the full dynamics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced import BlendedModel, ReducedModel, reduce, sample
from pliant.engines.reduced.accuracy import describe, unwatched
from pliant.engines.settle import come_to_rest
from pliant.engines.simulate import simulate
from pliant.engines.simulation import Simulation
from pliant.errors import ConvergenceError, InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics import Configuration, within_limits
from pliant.statics.energy import elastic_energy
from pliant.statics.loads import coordinate_difference, tendon_lengths
from pliant.text import brief, listed

__all__ = [
    "FRACTIONS",
    "NO_LIMITS",
    "UNMOVED",
    "Comparison",
    "Row",
    "apply_wrenches",
    "compare",
    "default_pull",
    "from_beyond",
    "holding",
    "one_way",
    "static_answer",
    "stopped",
    "unmoved",
]

Floats = NDArray[np.float64]
Wrenches = Mapping[str, Sequence[float]]
_NONE = (0.0, 0.0, 0.0)
FRACTIONS = np.array([0.25, 0.5, 0.75, 1.0])  # of the load, at which rest positions are compared
_STEPS = 1e9  # of one engine
_FRAMES = 400  # of a path, about
_TIMED = 200  # steps over which the time of a step is measured
_PATIENCE = 4000  # steps until rest, at most
_SHOWN = 0.01  # of the displacement at rest: motions that are smaller are compared with nothing
NO_LIMITS = "The quasi-static engine knows no limits."
UNMOVED = 1e-9  # radii: displacements below are rounding


@dataclass
class Row:
    """Results of one engine.

    Attributes:
        engine: its name.
        setup: seconds to build its model and simulation.
        step: seconds a step.
        rest: mean error of the end effectors at rest over their motion, per fraction of the load, or None.
        motion: rms distance of the end effectors from the constrained engine's, over their mean motion, or None.
        elastic: energy of the springs at rest under the whole load, J.
        path: distance of one end effector from its start over time, or None.
        problem: the error message, if the engine cannot run the mechanism.
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
    """Results of all engines.

    Attributes:
        name: of the mechanism.
        load: in words.
        wrenches: the load as numbers, `{body: force, or force and torque}`, N and N m, world axes.
        body: the end effector that moves most.
        moved: its displacement at equilibrium, m.
        elastic: energy of the springs at equilibrium, J.
        fractions: of the load, for `Row.rest`.
        time: of the points of `Row.path`, s.
        timestep: seconds.
        rows: the engines.
        limits: whether joint limits are enforced at the equilibrium, since it would pass some.
        stops: dofs that their limits hold there.
        from_beyond: dofs that begin beyond their limits and move to the equilibrium.
        radius: of the mechanism, m.
    """

    name: str
    load: str
    wrenches: Wrenches
    body: str
    moved: float
    elastic: float
    fractions: Floats
    time: Floats
    timestep: float
    rows: list[Row]
    limits: bool
    stops: tuple[str, ...]
    from_beyond: tuple[str, ...]
    radius: float


def default_pull(model: ReducedModel, fraction: float) -> dict[str, tuple[float, ...]]:
    """The force that moves the softest end effector by a fraction of the radius, to first order; two digits.

    Of the two senses the one in which joints pass their limits less.
    """
    found = {body: model.stiffness_ellipsoid(body) for body in model.end_effectors}
    body = min(found, key=lambda name: float(found[name].stiffness[0]))
    soft = found[body]
    if not np.isfinite(soft.stiffness[0]):
        raise InputError("no end effector gives way to a force: name the pull, as in --wrench BODY:0,0,5")
    axis = soft.axes[:, 0] * np.sign(soft.axes[np.abs(soft.axes[:, 0]).argmax(), 0])
    force = fraction * model.mechanism.radius * soft.stiffness[0] * axis
    if _passed(model, body, -force) < _passed(model, body, force):
        force = -force
    digits = 1 - int(np.floor(np.log10(np.abs(force).max())))
    return {body: tuple(float(round(value, digits)) + 0.0 for value in force)}


def _passed(model: ReducedModel, body: str, force: Floats) -> float:
    """Sum by which a force takes hinges and slides beyond their limits, to first order, radians and radii."""
    m, e = model.mechanism, 6 * model.index(body)
    local = model.at.pose(body)[:3, :3].T @ force
    value = model.q[m.dof_coordinate] + model.joint_map[:, e : e + 3] @ local
    beyond = np.maximum(m.lower - value, 0.0) + np.maximum(value - m.upper, 0.0)
    return float((beyond / m.dof_unit)[m.dof_kind != BALL].sum())


def static_answer(
    what: Mechanism | ReducedModel | BlendedModel,
    wrenches: Mapping[str, Any],
    gravity: Sequence[float] | None = None,
) -> Configuration:
    """Stable equilibrium of a whole mechanism under the loads that act on a simulation of it.

    Limits hold where it would pass some; not those that it is beyond at the reference pose and returns to.

    Args:
        what: a mechanism, or the model that the simulation moves.
        wrenches: applied ones, as `pliant.equilibrium` takes them.
        gravity: of a mechanism, m/s²; compensated if None. A model has its own.

    Raises:
        ConvergenceError: none is found, it is unstable, or the base floats.
    """
    m, loads, start = what if isinstance(what, Mechanism) else what.mechanism, dict(wrenches), None
    if not isinstance(what, Mechanism):
        model = what.models[0] if isinstance(what, BlendedModel) else what
        others = {b: load for b, load in (model.wrenches or {}).items() if b not in model.end_effectors}
        loads, gravity = {**others, **loads}, model.gravity
        floats = model.base is not None
        if model.gravity is None and not model.wrenches and not np.array_equal(model.q, m.reference):
            m = m.with_pose(model.q)
        elif model.gravity is not None:
            start = model.at
    else:
        floats = bool(m.floating)
    if floats:
        raise ConvergenceError(f"'{m.name}' floats: no place is its rest")
    found = within_limits(m, loads, gravity, start)
    if found.stability == "unstable":
        raise ConvergenceError(f"the equilibrium of '{m.name}' is unstable", configuration=found)
    return found


def unmoved(m: Mechanism, wrenches: Mapping[str, Any]) -> str:
    """Message that a load moves nothing; names the joints that carry it from its bodies to the world."""
    names = [m.joint_names[j] for j in sorted(_carrying(m, wrenches))]
    if not names:
        return f"the load moves nothing: no joint lets {listed(list(wrenches), 3)} move; name another body"
    return (
        f"the load moves nothing: {listed(names, 12)} {'carries' if len(names) == 1 else 'carry'} it to the world "
        "without giving way in this pose; push in another direction, or take another pose, such as a keyframe"
    )


def holding(m: Mechanism, bodies: Iterable[str], dofs: Sequence[str]) -> tuple[str, ...]:
    """Those dofs that bodies hang on: of joints between them and the world, and coupled to these; all in loops."""
    if m.topology.loops:
        return tuple(dofs)
    passed = {d for j in _carrying(m, bodies) for d in range(m.nv)[m.joint_dofs(j)]}
    rows = [set(table.row(r)[0].tolist()) for table in (m.couplings, m.tendons) for r in range(len(table))]
    while met := [row for row in rows if row & passed]:
        passed.update(*met)
        rows = [row for row in rows if not row <= passed]
    return tuple(name for name in dofs if m.dof_index(name) in passed)


def _carrying(m: Mechanism, bodies: Iterable[str]) -> set[int]:
    """Joints with degrees of freedom from bodies to the world, along the spanning tree."""
    found: set[int] = set()
    for name in bodies:
        body = m.body_index(name)
        while body >= 0:
            joint = int(m.topology.tree_joint[body])
            if m.joint_dofs(joint).start < m.joint_dofs(joint).stop:
                found.add(joint)
            body = int(m.topology.parent[body])
    return found


def stopped(names: Sequence[str]) -> str:
    """Message that a load moves nothing since the joints of some dofs are at their limits."""
    at = "is at or beyond its limit" if len(names) == 1 else "are at or beyond their limits"
    return (
        f"the load moves nothing: {listed(names, 12)} {at} in this pose already; push the other way, or take another "
        "pose, such as a keyframe"
    )


def from_beyond(at: Configuration) -> tuple[str, ...]:
    """Dofs that begin beyond their limits, at the reference pose, and are elsewhere at an equilibrium."""
    m = at.mechanism
    moved = np.abs(coordinate_difference(m, m.reference, at.q)) > UNMOVED * m.dof_unit
    return tuple(name for name in Configuration(m).beyond_limits if moved[m.dof_index(name)])


def one_way(names: Sequence[str]) -> str:
    """What engines do with dofs that begin beyond their limits."""
    one = len(names) == 1
    begin, it = ("begins beyond its limit", "it") if one else ("begin beyond their limits", "them")
    return (
        f"{listed(names, 4)} {begin}: the constrained engine lets {it} come back but not out again, and may move and "
        f"rest otherwise than by the static answer, which stops {it} where {'it' if one else 'they'} began."
    )


def compare(
    m: Mechanism,
    bodies: Sequence[str],
    wrenches: Wrenches,
    engines: Sequence[str],
    seconds: float = 1.0,
    timestep: float = 1e-3,
    seed: int = 0,
    stage: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Pull a mechanism in several engines. Gravity is compensated: the reference pose is the rest pose.

    Args:
        m: a mechanism without a floating base.
        bodies: end effectors whose positions are compared.
        wrenches: the pull, `{end effector: force, or force and torque}`, N and N m, world axes.
        engines: names of engines.
        seconds, timestep: length of the motion and of its steps, s.
        seed: of the loads that a blend is sampled at.
        stage: called with the name of every stage before it begins.
    """
    stage("equilibria")
    if not 0 < timestep <= seconds < np.inf:
        raise InputError(
            f"seconds and timestep: 0 < timestep <= seconds expected, not {brief(seconds)} and {brief(timestep)}"
        )
    if seconds / timestep > _STEPS:
        raise InputError(f"{seconds:g} s in steps of {timestep:g} s are too many steps: lengthen --timestep")
    m = _with_slack_springs(m)
    truths = [within_limits(m, load) for load in _ramp(wrenches)]
    limits = truths[-1].limits
    indices = [m.body_index(body) for body in bodies]
    moved = truths[-1].displacement[indices]
    if not moved.max() > UNMOVED * m.radius:
        raise InputError(unmoved(m, wrenches))
    every = max(1, round(seconds / timestep / _FRAMES))
    frames = max(1, round(seconds / timestep) // every)
    most = int(moved.argmax())
    found = Comparison(
        name=m.name,
        load=describe(wrenches),
        wrenches=wrenches,
        body=bodies[most],
        moved=float(moved.max()),
        elastic=_elastic(truths[-1]),
        fractions=FRACTIONS,
        time=timestep * every * np.arange(frames + 1.0),
        timestep=timestep,
        rows=[],
        limits=limits,
        stops=truths[-1].at_stops if limits else (),
        from_beyond=from_beyond(truths[-1]),
        radius=m.radius,
    )
    reference: Floats | None = None
    for engine in sorted(engines, key="constrained".__ne__):  # first: motions are compared with it
        stage(f"{engine} (compiles once)")
        row = Row(engine)
        found.rows.append(row)
        try:
            with unwatched():
                simulation, settled = _settle(row, m, bodies, wrenches, limits, timestep, seed)
        except PliantError as error:
            row.problem = str(error)
            continue
        row.rest = np.array([_rest_error(*pair, indices) for pair in zip(settled, truths, strict=True)])
        row.elastic = _elastic(settled[-1])
        if engine == "quasistatic":
            continue
        stage(f"{engine}: motion")
        with unwatched():
            positions, row.step = _pull(simulation, indices, wrenches, frames, every)
        row.path = np.linalg.norm(positions - positions[0], axis=2)[:, most]
        if engine == "constrained":
            reference = positions
        elif reference is not None:
            row.motion = _motion_error(positions, reference, _SHOWN * found.moved)
    found.rows.sort(key=lambda row: list(engines).index(row.engine))
    return found


def _settle(
    row: Row,
    m: Mechanism,
    bodies: Sequence[str],
    wrenches: Wrenches,
    limits: bool,
    timestep: float,
    seed: int,
) -> tuple[Simulation, list[Configuration]]:
    """Simulation of the row's engine at its start, and where that engine rests under each fraction of the load.

    Writes the set-up time to the row, of the quasi-static engine also the time of a step.
    """
    start = time.perf_counter()
    loads = _ramp(wrenches)
    if row.engine in ("reduced", "blended"):
        if row.engine == "reduced":
            model: Any = reduce(m, bodies)
            rest: Any = model
        else:
            few = {"candidates": 24, "held_out": 8, "limits": limits, "progress": False}
            model = rest = sample(m, bodies, [dict(wrenches)], 1e-4, 6, seed=seed, **few).model
        row.setup = time.perf_counter() - start
        return simulate(model, None, timestep), [rest.configuration(load) for load in loads]
    if row.engine in ("constrained", "adaptive"):
        simulation = simulate(m, row.engine, timestep, gravity=_NONE)
        row.setup = time.perf_counter() - start
        settling = simulate(m, row.engine, max(timestep, 1 / 240), gravity=_NONE)
        return simulation, _rest_under(settling, loads)
    simulation = simulate(m, "quasistatic", 1 / 60, gravity=_NONE, tolerance=1e-3)
    row.setup = time.perf_counter() - start
    apply_wrenches(simulation, loads[0])
    simulation.step()  # compiles its kernels, or loads them from the cache
    start, before = time.perf_counter(), simulation.time
    settled = _rest_under(simulation, loads)
    row.step = (time.perf_counter() - start) * simulation.timestep / (simulation.time - before)
    return simulation, settled


def _rest_under(simulation: Simulation, loads: Sequence[Wrenches]) -> list[Configuration]:
    """Configurations in which a simulation comes to rest, load after load."""
    out = []
    for load in loads:
        apply_wrenches(simulation, load)
        out.append(come_to_rest(simulation, _PATIENCE * simulation.timestep))
    return out


def _pull(
    simulation: Simulation, indices: Sequence[int], wrenches: Wrenches, frames: int, every: int
) -> tuple[Floats, float]:
    """Positions of bodies over time, pulled from the start, (frames + 1, bodies, 3), m; and seconds a step."""
    apply_wrenches(simulation, wrenches)
    simulation.step()  # compiles its kernels, or loads them from the cache
    simulation.reset()
    apply_wrenches(simulation, wrenches)
    out = [simulation.poses[indices, :3, 3].copy()]
    for _ in range(frames):
        simulation.step(every)
        out.append(simulation.poses[indices, :3, 3].copy())
    start = time.perf_counter()
    simulation.step(_TIMED)  # one call: the overhead of Python is negligible
    return np.array(out), (time.perf_counter() - start) / _TIMED


def apply_wrenches(simulation: Any, wrenches: Wrenches) -> None:
    """Apply a force, or a force and a torque, to each body; N and N m, world axes."""
    for body, values in wrenches.items():
        simulation.apply_wrench(body, force=values[:3], torque=values[3:] or None)


def _ramp(wrenches: Wrenches) -> list[dict[str, tuple[float, ...]]]:
    """The load times each of `FRACTIONS`."""
    return [{body: tuple(f * v for v in values) for body, values in wrenches.items()} for f in FRACTIONS]


def _rest_error(now: Configuration, true: Configuration, indices: Sequence[int]) -> float:
    """Mean distance of bodies from their equilibrium positions, over their mean displacement there."""
    apart = np.linalg.norm(now.poses[indices, :3, 3] - true.poses[indices, :3, 3], axis=1).mean()
    return float(apart / true.displacement[indices].mean())


def _motion_error(positions: Floats, reference: Floats, least: float) -> float | None:
    """RMS distance of bodies from their reference paths, over the RMS displacement along these.

    None where no body moves by `least`, m, along its reference path, as against a joint limit.
    """
    apart = np.linalg.norm(positions - reference, axis=2)
    moved = np.linalg.norm(reference - reference[0], axis=2)
    if moved.max() < least:
        return None
    return float(np.sqrt((apart**2).mean()) / np.sqrt((moved**2).mean()))


def _elastic(at: Configuration) -> float:
    return elastic_energy(at.mechanism, at.q)


def _with_slack_springs(m: Mechanism) -> Mechanism:
    """The mechanism with all springs slack at its reference pose: compensated gravity, for the full engines."""
    if np.array_equal(m.rest, m.reference):
        return m
    return m.replace(rest=m.reference.copy(), tendon_rest=tendon_lengths(m, m.reference, m.reference))
