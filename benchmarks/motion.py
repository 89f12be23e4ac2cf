"""Error against cost: a mechanism under a push, by several models and engines, at many time steps.

The truth is MuJoCo's implicitfast integrator at 0.1 and 0.05 ms, extrapolated to none: nothing of pliant's has a part
in it (Runge-Kutta diverges at such steps: dampers are stiff). The error is the root mean square distance of the tip
from it over half a second, on straight lines between steps, over the largest true displacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mujoco
import numpy as np
from measure import Timing, interleaved
from mujoco_tree import INTEGRATORS, MuJoCo
from pushed import Floats, Pushed

import pliant

__all__ = ["LOADS", "Model", "Outcome", "contenders", "sampled", "sweep"]

Model = pliant.ReducedModel | pliant.BlendedModel

DURATION = 0.5
FINE = 1e-4
CHUNK = 0.005  # seconds of processor time that a turn takes
LOADS: dict[str, Callable[[float], float]] = {  # part of the push at a time
    "sudden": lambda t: 1.0,
    "slow": lambda t: float(np.sin(0.5 * np.pi * min(1.0, t / DURATION)) ** 2),
}
# Where in a step the push is looked up: every engine is given what serves it best.
SEEN = {"sudden": (1.0,), "slow": (0.5, 1.0)}


class Run(Protocol):
    """One engine at one time step."""

    def push(self, part: float) -> None: ...
    def step(self, n: int) -> None: ...
    def tip(self) -> Floats: ...


@dataclass(frozen=True)
class Outcome:
    """A contender at a time step: error as a fraction of the motion, seconds per simulated second, or why not."""

    contender: str
    h: float
    error: float
    cost: Timing | None = None
    failure: str = ""


class _Own:
    def __init__(self, case: Pushed, simulation: Any):
        self._case, self._simulation = case, simulation

    def push(self, part: float) -> None:
        self._case.push(self._simulation, part)

    def step(self, n: int) -> None:
        self._simulation.step(n)

    def tip(self) -> Floats:
        return self._case.displacement(self._simulation.poses)


class _Peer:
    def __init__(self, case: Pushed, h: float, integrator: str):
        self._peer = MuJoCo(case, h)
        self._peer.restart(integrator)

    def push(self, part: float) -> None:
        self._peer.push(part)

    def step(self, n: int) -> None:
        self._peer.step(n)
        if self._peer.warned:
            raise ArithmeticError("MuJoCo warned of an unstable simulation")

    def tip(self) -> Floats:
        mujoco.mj_kinematics(self._peer.model, self._peer.data)  # a step leaves poses of its beginning behind
        return self._peer.displacement


def contenders(
    case: Pushed, extra: dict[str, Model], integrators: Sequence[str] = INTEGRATORS
) -> dict[str, Callable[[float], Run]]:
    """By name: what makes a run at a time step."""
    models = {"single": case.model, **extra}
    out: dict[str, Callable[[float], Run]] = {
        name: lambda h, model=model: _Own(case, case.simulation(h, model=model))
        for name, model in models.items()
    }
    out["full"] = lambda h: _Own(case, pliant.ConstrainedSimulation(case.m, h, (0, 0, 0)))
    for integrator in integrators:
        out[f"MuJoCo {integrator}"] = lambda h, i=integrator: _Peer(case, h, i)
    return out


def sampled(case: Pushed, candidates: int) -> dict[str, Model]:
    """Blend and polynomial of equilibria under forces of any direction, up to a little more than the push."""
    size = 1.1 * float(np.linalg.norm(case.force))
    return {
        name: pliant.sample(
            case.m, case.tip, wrenches=size, tolerance=0.0, kind=kind, candidates=candidates, progress=False
        ).model
        for name, kind in (("blend of 12", "blend"), ("polynomial", "polynomial"))
    }


def sweep(
    case: Pushed, load: str, entries: dict[str, Callable[[float], Run]], steps: list[float], rounds: int
) -> list[Outcome]:
    """Every contender at every time step; only runs that hold are timed, those of a time step taking turns."""
    part = LOADS[load]
    coarse, fine = (_path(_Peer(case, h, "implicitfast"), h, part, 1.0) for h in (FINE, FINE / 2))
    truth = 2 * fine[::2] - coarse
    size = float(np.linalg.norm(truth, axis=1).max())
    out = []
    for h in steps:
        calls: dict[str, Callable[[], object]] = {}
        counts, errors = {}, {}
        for name, make in entries.items():
            try:
                error = min(_error(_path(make(h), h, part, seen), truth) / size for seen in SEEN[load])
            except (ArithmeticError, pliant.errors.PliantError) as failure:
                out.append(Outcome(name, h, float("nan"), failure=" ".join(str(failure).split())[:80]))
                continue
            if not error < 1.0:
                out.append(Outcome(name, h, float("nan"), failure="left the motion"))
                continue
            run = make(h)
            run.push(1.0)
            once = interleaved({"": lambda run=run: run.step(5)}, 3)[""].least / 5
            counts[name], errors[name] = max(1, round(CHUNK / once)), error
            calls[name] = lambda run=run, n=counts[name]: run.step(n)
        for name, timing in interleaved(calls, rounds).items():
            out.append(Outcome(name, h, errors[name], timing.scaled(1 / (counts[name] * h))))
    return out


def _path(run: Run, h: float, part: Callable[[float], float], seen: float) -> Floats:
    """Displacement of the tip at the start and after every step, under the push at a fraction `seen` of the step."""
    out = np.zeros((1 + round(DURATION / h), 3))
    for i in range(1, len(out)):
        run.push(part((i - 1 + seen) * h))
        run.step(1)
        out[i] = run.tip()
    if not np.isfinite(out).all():
        raise ArithmeticError("not finite")
    return out


def _error(path: Floats, truth: Floats) -> float:
    """Root mean square distance, with straight lines between steps: what happens within a step counts, too."""
    times = np.linspace(0.0, 1.0, len(truth))
    joined = [np.interp(times, np.linspace(0.0, 1.0, len(path)), path[:, i]) for i in range(3)]
    return float(np.sqrt(((np.array(joined).T - truth) ** 2).sum(axis=1).mean()))
