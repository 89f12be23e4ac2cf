"""Simulations by the name of their engine, and their recording with a progress bar; Ctrl-C keeps what there is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pliant
from pliant.cli.options import Engine
from pliant.cli.output import progress_bar
from pliant.cli.sources import Source
from pliant.engines.arguments import EARTH
from pliant.engines.trajectory import Trajectory
from pliant.errors import ConvergenceError, InputError

__all__ = ["Played", "Recorded", "apply", "make", "record", "watched"]

_NONE = (0.0, 0.0, 0.0)
_MOST = 4e9  # bytes of poses
_MANY = 20  # bodies that are told of, of a world


@dataclass(frozen=True)
class Recorded:
    """What a run left behind.

    Attributes:
        trajectory: poses at the start and after every frame that was completed.
        steps: how many were done.
        seconds_per_step: without the first frame, which may compile; NaN if there was no other.
        stopped: what ended it early: KeyboardInterrupt, ConvergenceError, or None.
    """

    trajectory: Trajectory
    steps: int
    seconds_per_step: float
    stopped: BaseException | None = None


class Played:
    """A world and what is done to it, with the words of a simulation."""

    def __init__(self, play: Any, bodies: int):
        self._play, self._bodies = play, bodies
        self.timestep, self.step = play.world.timestep, play.step

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return self._play.world.time

    @property
    def poses(self) -> np.ndarray:
        """World poses of all bodies that move, (bodies, 4, 4)."""
        return self._play.world.poses[: self._bodies]


def watched(source: Source, bodies: Sequence[str] | None, wrenches: Mapping[str, Any]) -> tuple[str, ...]:
    """End effectors: those that were named, or suggested; and all bodies that something acts on.

    Of a world, those that were named, or the bodies that belong to no mechanism.
    """
    if source.play is not None and not bodies:
        return tuple(name for name in source.mechanism.body_names if "/" not in name)[:_MANY]
    if source.model is not None:
        if bodies:
            raise InputError(
                f"'{source.text}' is a model with end effectors of its own: leave -e out, or give its mechanism"
            )
        return source.model.end_effectors
    for body in bodies or ():
        source.mechanism.body_index(body)
    chosen = tuple(bodies or source.mechanism.end_effectors)
    return (*chosen, *(body for body in wrenches if body not in chosen))


def make(
    source: Source,
    engine: Engine,
    timestep: float,
    end_effectors: Sequence[str],
    wrenches: Mapping[str, Sequence[float]],
    gravity: bool | None = None,
    tolerance: float = 0.01,
    seed: int = 0,
) -> Any:
    """A simulation at its start, with the wrenches applied.

    Args:
        source: what moves; a scene brings its start, motors and wrenches along.
        engine: what computes the motion.
        timestep: seconds.
        end_effectors: for models; wrenches must be among them there.
        wrenches: `{body: force, or force and torque}`.
        gravity: None for what is usual: on for constrained and quasistatic, compensated for models.
        tolerance: of the quasistatic engine.
        seed: of the samples of a blend.
    """
    if source.scene is not None:
        if engine is not Engine.constrained:
            raise InputError(f"'{source.text}' is a scene: it runs in the constrained engine only")
        if gravity is False:
            raise InputError(f"'{source.text}' is a scene: it has its own gravity")
        simulation = source.scene.simulate(timestep)
        apply(simulation, wrenches)
        return simulation
    if (
        source.model is not None
        and isinstance(source.model, pliant.BlendedModel)
        and engine is Engine.reduced
    ):
        raise InputError(f"'{source.text}' is a blend of models: --engine blended, or leave it out")
    down = None if gravity is None else EARTH if gravity else _NONE
    options: dict[str, Any] = {"tolerance": tolerance} if engine is Engine.quasistatic else {}
    if engine in (Engine.reduced, Engine.blended):
        made = source.model is not None
        options["end_effectors"] = None if made else end_effectors
        if engine is Engine.blended:
            loads = [dict(wrenches)] if wrenches else None
            few = {"budget": 6, "candidates": 24, "held_out": 8}
            options["sampling"] = {"wrenches": loads, "seed": seed, **few}
    what = source.mechanism if source.model is None else source.model
    simulation = pliant.simulate(what, engine.value, timestep, gravity=down, **options)
    apply(simulation, wrenches)
    return simulation


def apply(simulation: Any, wrenches: Mapping[str, Sequence[float]]) -> None:
    """Apply wrenches, three or six numbers each."""
    for body, values in wrenches.items():
        simulation.apply_wrench(body, force=values[:3], torque=values[3:] or None)


def record(
    simulation: Any, mechanism: Any, seconds: float, fps: float, name: str, bar: Any = None
) -> Recorded:
    """Advance by `seconds` and keep poses about `fps` times a second, those at the start included."""
    if not 0 < seconds < np.inf or not 0 < fps < np.inf:
        raise InputError(f"seconds and fps: numbers above 0 expected, not {seconds!r} and {fps!r}")
    h = simulation.timestep
    steps = max(1, round(seconds / h))
    every = max(1, round(1 / (fps * h)))
    frames = -(-steps // every)
    size = (frames + 1) * mechanism.body_count * 128
    if size > _MOST:
        raise InputError(f"{frames} frames of all poses take {size / 1e9:.1f} GB: lower --fps or --seconds")
    poses, times = [simulation.poses.copy()], [simulation.time]
    done, spent, stopped = 0, 0.0, None
    own = progress_bar() if bar is None else bar
    try:
        if bar is None:
            own.start()
        task = own.add_task(f"{name}: first step (compiles once)", total=steps)
        while done < steps:
            n = min(every, steps - done)
            start = time.perf_counter()
            simulation.step(n)
            if done:
                spent += time.perf_counter() - start
            poses.append(simulation.poses.copy())
            times.append(simulation.time)
            done += n
            own.update(task, completed=done, description=name)
    except (KeyboardInterrupt, ConvergenceError) as error:
        stopped = error
    finally:
        if bar is None:
            own.stop()
    kept = min(len(poses), len(times))  # Ctrl-C may fall between the two
    found = Trajectory(mechanism, np.array(times[:kept]), np.array(poses[:kept]))
    timed = done - min(every, steps)
    return Recorded(found, done, spent / timed if timed > 0 else float("nan"), stopped)
