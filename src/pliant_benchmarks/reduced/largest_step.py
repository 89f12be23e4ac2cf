"""Error over cost of a pushed mechanism, by several models and engines at many time steps.

The reference is MuJoCo's implicitfast integrator at 0.1 and 0.05 ms, extrapolated to zero: independent of pliant
(Runge-Kutta diverges at these steps: dampers are stiff). The error is the root mean square distance of the tip from the
reference over half a second, interpolated linearly between steps, over the largest true displacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mujoco
import numpy as np

import pliant

from ..harness.results import Figure, Progress, Row, Table, log_figure
from ..harness.timing import Timing, time_in_turns
from ..peers.mujoco import INTEGRATORS, PushedMechanism
from ..systems import Floats, Model, Pushed

__all__ = ["Outcome", "largest_step", "list_contenders", "sweep"]

BOUND = 0.01  # error
# s: multiples of the reference's step, parts of its duration
STEPS = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.25]
QUICK_STEPS = [1e-3, 2e-2]
MODES = 6
DURATION = 0.5  # s
FINE = 1e-4  # s, step of the reference
CHUNK = 0.005  # processor time of a turn, s
LOADS: dict[str, Callable[[float], float]] = {  # part of the push over time
    "sudden": lambda t: 1.0,
    "slow": lambda t: float(np.sin(0.5 * np.pi * min(1.0, t / DURATION)) ** 2),
}
# Fraction of a step at which the push is evaluated: each engine gets the best for it.
SEEN = {"sudden": (1.0,), "slow": (0.5, 1.0)}


class Run(Protocol):
    """Simulation in one engine at one time step."""

    def push(self, part: float) -> None: ...
    def step(self, n: int) -> None: ...
    def tip(self) -> Floats: ...


@dataclass(frozen=True)
class Outcome:
    """Error over the motion and seconds per simulated second of a contender at a time step, or why it failed."""

    contender: str
    h: float
    error: float
    cost: Timing | None = None
    failure: str = ""


def largest_step(quick: bool, progress: Progress) -> Table:
    """Cost of a simulated second within 1 % error: reduced and blended models, the full engine, MuJoCo."""
    rows, figures = [], []
    g = pliant.gallery
    mechanisms = {"helix(50)": lambda: g.helix(50), "arm()": g.arm}
    for name in ["helix(50)"] if quick else mechanisms:
        for size in (0.02,) if quick else (0.02, 0.3):
            case = Pushed(name, mechanisms[name], size)
            extra: dict[str, Model] = {f"{MODES} modes": pliant.reduce(case.m, modes=MODES)}
            if not quick:
                progress(f"{name}: sampling equilibria")
                extra |= _sample_models(case, 59)
            for load in LOADS:
                label = f"{name}, {load} push by {size:g} of the radius"
                progress(label)
                entries = list_contenders(case, extra, ("implicitfast", "discrete") if quick else INTEGRATORS)
                steps = QUICK_STEPS if quick else STEPS
                found = sweep(case, load, entries, steps, 3 if quick else 7)
                rows += _rows(label, found)
                key = f"pareto-{name.partition('(')[0]}-{load}-{'small' if size < 0.1 else 'large'}"
                figures.append(_figure(key, label, found))
    return Table(
        "reduced",
        "largest-step",
        "A simulated second at the largest step with an error within 1 %",
        "ms per simulated second",
        rows,
        settings="One thread, processor time. Error: root mean square distance of the pushed body from the truth "
        "over 0.5 s, on straight lines between steps, over its largest displacement; the truth is MuJoCo at 0.1 "
        "and 0.05 ms, extrapolated. A slow push swells over the 0.5 s. Time steps from 0.1 ms to 0.25 s and all of "
        "MuJoCo's integrators are tried (with --quick few of them); the cheapest within 1 % counts, for pliant and "
        "for MuJoCo.",
        figures=figures,
    )


def _rows(label: str, found: list[Outcome]) -> list[Row]:
    """Row per kind of model, beside the cheapest of MuJoCo's runs within the bound."""
    peer = _cheapest([o for o in found if o.contender.startswith("MuJoCo")])
    rows = []
    for kind in dict.fromkeys(o.contender for o in found if not o.contender.startswith("MuJoCo")):
        own = [o for o in found if o.contender == kind]
        best = _cheapest(own)
        row = Row(f"{label}: {kind}", stable=_stability(own))
        if peer is not None and peer.cost is not None:
            row.peer, row.peer_spread = 1e3 * peer.cost.median, 1e3 * peer.cost.spread
            row.peer_name = f"{peer.contender}, {_step(peer.h)}, error {100 * peer.error:.2g} %"
        else:
            row.peer_name = "MuJoCo: not within 1 % at any step"
        if best is not None and best.cost is not None:
            row.ours, row.ours_spread = 1e3 * best.cost.median, 1e3 * best.cost.spread
            row.note = f"{_step(best.h)}, error {100 * best.error:.2g} %"
            row.ratio = None if row.peer is None else row.peer / row.ours
        else:
            nearest = min((o for o in own if o.cost is not None), key=lambda o: o.error, default=None)
            row.note = "not within 1 %" + (
                "" if nearest is None else f": {100 * nearest.error:.2g} % at {_step(nearest.h)}"
            )
        rows.append(row)
    return rows


def _cheapest(outcomes: list[Outcome]) -> Outcome | None:
    """Cheapest outcome within the bound."""
    within = [o for o in outcomes if o.cost is not None and o.error <= BOUND]
    return min(within, key=lambda o: o.cost.median if o.cost else np.inf, default=None)


def _stability(outcomes: list[Outcome]) -> str:
    """Time steps at which runs failed, in words."""
    failed = [_step(o.h) for o in outcomes if o.failure]
    return f"not at {', '.join(failed)}" if failed else "yes"


def _step(h: float) -> str:
    return f"{1e3 * h:g} ms"


def _figure(key: str, title: str, found: list[Outcome]) -> Figure:
    """Error over cost, a curve per contender."""
    curves: dict[str, list[tuple[float, float | None]]] = {}
    for o in found:
        if o.cost is not None:
            curves.setdefault(o.contender, []).append((1e3 * o.cost.median, 100 * o.error))
    x, y = "ms per simulated second", "error, %"
    return log_figure(key, title, x, y, curves, lambda name: not name.startswith("MuJoCo"))


# --- runs


class _Own:
    """Simulation of pliant."""

    def __init__(self, case: Pushed, simulation: Any):
        self._case, self._simulation = case, simulation

    def push(self, part: float) -> None:
        self._case.push(self._simulation, part)

    def step(self, n: int) -> None:
        self._simulation.step(n)

    def tip(self) -> Floats:
        return self._case.displacement(self._simulation.poses)


class _Peer:
    """Simulation of MuJoCo."""

    def __init__(self, case: Pushed, h: float, integrator: str):
        self._peer = PushedMechanism(case, h)
        self._peer.restart(integrator)

    def push(self, part: float) -> None:
        self._peer.push(part)

    def step(self, n: int) -> None:
        self._peer.step(n)
        if self._peer.warned:
            raise ArithmeticError("MuJoCo warned of an unstable simulation")

    def tip(self) -> Floats:
        mujoco.mj_kinematics(self._peer.model, self._peer.data)  # a step leaves the poses of its beginning
        return self._peer.displacement


def list_contenders(
    case: Pushed, extra: dict[str, Model], integrators: Sequence[str] = INTEGRATORS
) -> dict[str, Callable[[float], Run]]:
    """Functions by name that build a simulation at a time step: reduced models, the full engine, MuJoCo."""
    models = {"single": case.model, **extra}
    out: dict[str, Callable[[float], Run]] = {
        name: lambda h, model=model: _Own(case, case.simulation(h, model=model))
        for name, model in models.items()
    }
    out["full"] = lambda h: _Own(case, pliant.ConstrainedSimulation(case.m, h, (0, 0, 0)))
    for integrator in integrators:
        out[f"MuJoCo {integrator}"] = lambda h, i=integrator: _Peer(case, h, i)
    return out


def _sample_models(case: Pushed, candidates: int) -> dict[str, Model]:
    """Blend and polynomial of equilibria under forces of all directions, up to 1.1 times the push."""
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
    """Outcomes of all contenders at all time steps; stable runs of a time step are timed in turns."""
    part = LOADS[load]
    coarse, fine = (_trace(_Peer(case, h, "implicitfast"), h, part, 1.0) for h in (FINE, FINE / 2))
    truth = 2 * fine[::2] - coarse
    size = float(np.linalg.norm(truth, axis=1).max())
    out = []
    for h in steps:
        calls: dict[str, Callable[[], object]] = {}
        counts, errors = {}, {}
        for name, make in entries.items():
            try:
                error = min(_error(_trace(make(h), h, part, seen), truth) / size for seen in SEEN[load])
            except (ArithmeticError, pliant.errors.PliantError) as failure:
                out.append(Outcome(name, h, float("nan"), failure=" ".join(str(failure).split())[:80]))
                continue
            if not error < 1.0:
                out.append(Outcome(name, h, float("nan"), failure="left the motion"))
                continue
            run = make(h)
            run.push(1.0)
            once = time_in_turns({"": lambda run=run: run.step(5)}, 3)[""].least / 5
            counts[name], errors[name] = max(1, round(CHUNK / once)), error
            calls[name] = lambda run=run, n=counts[name]: run.step(n)
        for name, timing in time_in_turns(calls, rounds).items():
            out.append(Outcome(name, h, errors[name], timing.scaled(1 / (counts[name] * h))))
    return out


def _trace(run: Run, h: float, part: Callable[[float], float], seen: float) -> Floats:
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
    """Root mean square distance of a path, interpolated linearly between its steps, from the reference."""
    times = np.linspace(0.0, 1.0, len(truth))
    joined = [np.interp(times, np.linspace(0.0, 1.0, len(path)), path[:, i]) for i in range(3)]
    return float(np.sqrt(((np.array(joined).T - truth) ** 2).sum(axis=1).mean()))
