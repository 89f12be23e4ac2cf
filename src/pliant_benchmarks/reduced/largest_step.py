"""Cost of a simulated second at the largest time step within 1 % of the true motion, by several engines.

A mechanism without joint limits is pushed in six random directions, suddenly or slowly. The error of a run is the root
mean square distance of an end effector from the reference over half a second, interpolated linearly between steps, over
the largest true displacement; of several end effectors, the worst. A time step holds if the errors of all six pushes
are within 1 %.

References are independent of what is measured where there is a choice. Trees: MuJoCo's implicitfast integrator at 0.1
and 0.05 ms, extrapolated to zero (Runge-Kutta diverges at these steps: dampers are stiff). Closed loops:
`pliant.ConstrainedSimulation` at the same steps, extrapolated, because MuJoCo's loops are soft; its distance from
MuJoCo with loops as stiff as they can be is stated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

import pliant
from pliant.errors import PliantWarning

from ..harness.results import Figure, Progress, Row, Table, log_figure
from ..harness.timing import Timing, time_steps
from ..models import MODELS
from ..peers.mujoco import INTEGRATORS, PushedEnds
from ..systems import Floats, Model, RandomPushes

__all__ = ["CASES", "Outcome", "Reference", "find_steps", "largest_step", "list_contenders"]

BOUND = 0.01  # error
# s: parts of the motion's duration
STEPS = [0.25, 0.1, 5e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4]
QUICK_STEPS = [2e-2, 2e-3, 5e-4]
SIZES = {"small": 0.02, "large": 0.3, "huge": 1.0}  # radii
MODES = 6
REACH = 0.5  # radii
DURATION = 0.5  # s
FINE = 1e-4  # s, step of the reference
TURN = 0.01  # processor time of a turn, s
LOADS: dict[str, Callable[[float], float]] = {  # part of the push over time
    "sudden": lambda t: 1.0,
    "slow": lambda t: float(np.sin(0.5 * np.pi * min(1.0, t / DURATION)) ** 2),
}
# Fraction of a step at which the push is evaluated, or a ramp over the step: each engine gets the best that it has.
RAMP = 2.0
SEEN = {"sudden": (1.0,), "slow": (0.5, 1.0, RAMP)}

_G = pliant.gallery
CASES: dict[str, Callable[[], pliant.Mechanism]] = {
    "helix(50)": lambda: _G.helix(50),
    "arm(), one tip": lambda: _G.arm().with_end_effectors("index_tip"),
    "arm(), five tips": lambda: _G.arm(),
    "y()": lambda: _G.y(),
    "hand(), a fingertip": lambda: _G.hand().with_end_effectors("index_tip"),
    "gripper()": lambda: _G.gripper(),
    "suspension()": lambda: _G.suspension(),
    "loop()": lambda: _G.loop(),
    **{name: MODELS[name] for name in ("Robotiq 2F-85", "Cassie's foot", "Panda arm")},
}
QUICK_CASES = ("helix(50)", "gripper()")
PICTURES = {"helix(50)": "helix", "arm(), one tip": "arm", "gripper()": "gripper"}
TARGETS = {  # ratio asked for, by case, load and size
    ("helix(50)", "sudden", "small"): 100,
    ("arm(), one tip", "sudden", "small"): 55,
    ("arm(), five tips", "sudden", "small"): 40,
    ("helix(50)", "sudden", "large"): 20,
    ("arm(), one tip", "sudden", "large"): 25,
    ("helix(50)", "slow", "large"): 15,
    ("arm(), one tip", "slow", "large"): 10,
    ("helix(50)", "sudden", "huge"): 5,
    ("arm(), one tip", "sudden", "huge"): 10,
    **{
        (name, load, size): 10
        for name in ("gripper()", "Robotiq 2F-85", "suspension()", "loop()")
        for load in LOADS
        for size in ("small", "large")
    },
}


class Run(Protocol):
    """Simulation in one engine at one time step, from rest in the reference pose."""

    def restart(self) -> None: ...
    def push(self, forces: Floats) -> None: ...
    def ramp(self, forces: Floats) -> bool:
        """Let the push change to this one over the next step; False if the engine cannot."""
        ...

    def step(self, n: int) -> None: ...
    @property
    def displacement(self) -> Floats: ...
    @property
    def failed(self) -> bool: ...


Contenders = dict[str, Callable[[float], Run]]  # functions by name that build a run at a time step


@dataclass(frozen=True)
class Outcome:
    """Largest error of all pushes, and seconds per simulated second, of a contender at a time step.

    `failure` says why there are none; `seen` is the fraction of a step at which the push was evaluated; RAMP: it
    changed over the step.
    """

    contender: str
    h: float
    error: float
    seen: float = 1.0
    cost: Timing | None = None
    failure: str = ""

    @property
    def holds(self) -> bool:
        """Whether all pushes were within the bound."""
        return not self.failure and self.error <= BOUND


# --- contenders


class _Own:
    """Simulation of pliant."""

    failed = False  # pliant raises instead

    def __init__(self, case: RandomPushes, simulation: pliant.Simulation):
        self._case, self._simulation = case, simulation
        self._pushed = list(zip(case.m.end_effectors, case.m.com[case.bodies], strict=True))

    def restart(self) -> None:
        self._simulation.reset()

    def push(self, forces: Floats) -> None:
        for (end, point), force in zip(self._pushed, forces, strict=True):
            self._simulation.apply_wrench(end, force=force, point=point)

    def ramp(self, forces: Floats) -> bool:
        for (end, point), force in zip(self._pushed, forces, strict=True):
            self._simulation.apply_wrench(end, force=force, point=point, ramp=True)
        return True

    def step(self, n: int) -> None:
        self._simulation.step(n)

    @property
    def displacement(self) -> Floats:
        return self._case.displacement(self._simulation.poses)


def _models(case: RandomPushes) -> dict[str, Model]:
    """Reduced models of a mechanism, by name: a line for every kind that is measured."""
    out: dict[str, Model] = {"reduced": case.model, "reduced, reach": _reaching(case)}
    if not case.m.topology.loops and (modes := min(MODES, case.m.nv - case.model.rank)):
        out[f"reduced, {modes} modes"] = pliant.reduce(case.m, modes=modes)
    return out


def _reaching(case: RandomPushes) -> Model:
    """Model with vectors for pushes by half a radius."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        return pliant.reduce(case.m, reach=REACH, progress=False)


def list_contenders(case: RandomPushes, integrators: Sequence[str] = INTEGRATORS) -> Contenders:
    """Reduced models, the constrained engine, and MuJoCo's integrators, with loops of two stiffnesses."""
    out: Contenders = {}
    for name, model in _models(case).items():
        out[name] = lambda h, model=model: _Own(case, pliant.ReducedSimulation(model, h))
    out["TVCG"] = lambda h: _Own(case, pliant.ReducedSimulation(case.model, h, method="tvcg"))
    out["constrained"] = lambda h: _Own(case, pliant.ConstrainedSimulation(case.m, h, (0, 0, 0)))
    for integrator in integrators:
        for soft in (False, True) if _is_closed(case.m) else (False,):
            name = f"MuJoCo {integrator}{', soft loops' if soft else ''}"
            out[name] = lambda h, i=integrator, soft=soft: PushedEnds(case.m, h, i, soft)
    return out


def _is_closed(m: pliant.Mechanism) -> bool:
    """Whether there are loops or couplings, which are soft in MuJoCo."""
    return bool(m.topology.loops or len(m.couplings))


# --- errors


class Reference:
    """True motion under the pushes of a case, (pushes, times, ends, 3), and its largest displacement by push.

    Attributes:
        apart: largest error of MuJoCo with stiff loops at the reference's steps, extrapolated, where that is not the
            reference itself; NaN if it fails.
        failure: why there is no true motion; "" if there is.
    """

    def __init__(self, case: RandomPushes, load: str, size: float):
        self.part, self.seen, self.pushes = LOADS[load], SEEN[load], case.pushes(size)
        self.paths, self.apart, self.failure = np.empty(0), float("nan"), ""
        peer = partial(PushedEnds, case.m, integrator="implicitfast")
        if not _is_closed(case.m):
            self.paths, self.failure = self._follow(peer, 1.0, 2)
            return
        own = list_contenders(case, ())["constrained"]
        self.paths, self.failure = self._follow(own, 0.5, 4)  # of second order
        theirs, _ = self._follow(peer, 1.0, 2)
        if len(self.paths) and len(theirs):
            self.apart = max(self.error(k, path) for k, path in enumerate(theirs))

    def _follow(self, make: Callable[[float], Run], seen: float, ratio: int) -> tuple[Floats, str]:
        """Motions at the reference's steps, extrapolated, or why there are none.

        Halving the step divides the error by `ratio`.
        """
        try:
            coarse, fine = (self._traces(make(h), h, seen) for h in (FINE, FINE / 2))
        except (ArithmeticError, pliant.errors.PliantError) as error:
            return np.empty(0), _said(error)
        return fine[:, ::2] + (fine[:, ::2] - coarse) / (ratio - 1), ""

    def _traces(self, run: Run, h: float, seen: float) -> Floats:
        """Displacements under all pushes, (pushes, times, ends, 3)."""
        return np.array([trace(run, h, self.part, push, seen) for push in self.pushes])

    def error(self, k: int, path: Floats) -> float:
        """Error of a path, (times, ends, 3), under push k."""
        truth = self.paths[k]
        times, own = np.linspace(0.0, 1.0, len(truth)), np.linspace(0.0, 1.0, len(path))
        flat = path.reshape(len(path), -1)
        joined = np.stack([np.interp(times, own, column) for column in flat.T], axis=1).reshape(truth.shape)
        apart = np.sqrt(((joined - truth) ** 2).sum(axis=2).mean(axis=0)).max()
        return float(apart / np.linalg.norm(truth, axis=2).max())

    def judge(self, name: str, h: float, run: Run) -> Outcome:
        """Largest error of a run over all pushes, at the best fraction of a step to evaluate the push at."""
        best: Outcome | None = None
        for seen in self.seen:
            if seen == RAMP and not run.ramp(0.0 * self.pushes[0]):
                continue
            try:
                errors = [self.error(k, path) for k, path in enumerate(self._traces(run, h, seen))]
            except (ArithmeticError, pliant.errors.PliantError) as failure:
                found = Outcome(name, h, float("nan"), seen, failure=_said(failure))
            else:
                found = Outcome(name, h, max(errors), seen)
                if not found.error < 1.0:
                    found = replace(found, error=float("nan"), failure="left the motion")
            if best is None or best.failure or (not found.failure and found.error < best.error):
                best = found
            if best.holds:
                break
        assert best is not None
        return best


def trace(run: Run, h: float, part: Callable[[float], float], push: Floats, seen: float) -> Floats:
    """Displacements at the start and after every step, (times, ends, 3), under the push at `seen` of the step."""
    run.restart()
    out = np.zeros((1 + round(DURATION / h), len(push), 3))
    before = None
    for i in range(1, len(out)):
        now = part((i - 1 + min(seen, 1.0)) * h)
        if now != before:
            (run.ramp if seen == RAMP else run.push)(now * push)
        before = now
        run.step(1)
        out[i] = run.displacement
    if run.failed:
        raise ArithmeticError("warned of an unstable simulation")
    if not np.isfinite(out).all():
        raise ArithmeticError("not finite")
    return out


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:80]


def find_steps(reference: Reference, contenders: Contenders, steps: Sequence[float]) -> list[Outcome]:
    """Outcomes from the largest step down to the first at which all pushes hold, of every contender."""
    out = []
    for name, make in contenders.items():
        for h in steps:
            try:
                found = reference.judge(name, h, make(h))
            except pliant.errors.PliantError as failure:
                found = Outcome(name, h, float("nan"), failure=_said(failure))
            out.append(found)
            if found.holds:
                break
    return out


# --- costs


class _Switched:
    """Run whose push is switched on for half a second and off for another, without end."""

    def __init__(self, run: Run, push: Floats, h: float):
        self._run, self._push, self._half = run, push, round(DURATION / h)
        self._left, self._on = 0, False

    def __call__(self, n: int) -> None:
        while n:
            if not self._left:
                self._left, self._on = self._half, not self._on
                self._run.push(float(self._on) * self._push)
            now = min(n, self._left)
            self._run.step(now)
            self._left, n = self._left - now, n - now


def _time(
    reference: Reference, load: str, contenders: Contenders, found: list[Outcome], rounds: int
) -> list[Outcome]:
    """The outcomes with their costs: all runs that did not fail take turns.

    A sudden push is switched on and off every half second; a slow one has swelled before, and stays.
    """
    push, runs, calls = reference.pushes[0], {}, {}
    for i, o in enumerate(found):
        if not o.failure:
            run = runs[str(i)] = contenders[o.contender](o.h)
            run.restart()
            if load == "slow":
                trace(run, o.h, reference.part, push, o.seen)
                calls[str(i)] = run.step
            else:
                calls[str(i)] = _Switched(run, push, o.h)
    times = time_steps(calls, rounds, turn=TURN, failed=lambda key: runs[key].failed)
    out = []
    for i, o in enumerate(found):
        if (timing := times.get(str(i))) is not None:
            o = replace(o, cost=timing.scaled(1 / o.h))
        elif not o.failure:
            o = replace(o, error=float("nan"), failure="diverged while it was timed")
        out.append(o)
    return out


# --- tables


def largest_step(quick: bool, progress: Progress) -> Table:
    """Cost of a simulated second within 1 % error: reduced models, the constrained engine, MuJoCo."""
    rows: list[Row] = []
    figures: list[Figure] = []
    missing: list[str] = []
    for name in QUICK_CASES if quick else CASES:
        try:
            case = RandomPushes(name, CASES[name](), 2 if quick else 6)
        except FileNotFoundError as absent:
            missing.append(f"{name}: {absent}")
            continue
        contenders = list_contenders(case, ("implicitfast", "discrete") if quick else INTEGRATORS)
        for key, load, label, reference in _motions(case, quick, progress):
            if reference.failure:
                rows.append(Row(label, note=f"no reference: {reference.failure}"))
                continue
            found = find_steps(reference, contenders, QUICK_STEPS if quick else STEPS)
            found = _time(reference, load, contenders, found, 3 if quick else 7)
            target = TARGETS.get((name, load, key))
            rows += _rows(label, found, "" if target is None else f"{target}x", reference.apart)
            if name in PICTURES:
                figures.append(_figure(f"pareto-{PICTURES[name]}-{load}-{key}", label, found))
    return Table(
        "reduced",
        "largest-step",
        "A simulated second at the largest step with an error within 1 %",
        "ms per simulated second",
        rows,
        settings="One thread, processor time, in turns. Forces in six random directions at the end effectors (two with "
        "--quick), of a size that moves them by 0.02, 0.3 or 1 radius to first order; all six are to stay within 1 %. "
        "Nothing was chosen on them but that a newton moves at least a tenth as far as along the most compliant "
        "direction. Error: root mean square distance of an end effector from the truth over 0.5 s, on straight lines "
        "between steps, over the largest displacement. The truth is extrapolated from steps of 0.1 and 0.05 ms: "
        "MuJoCo's on trees, the constrained engine's where there are loops, whose distance from MuJoCo's is stated. A "
        "slow push swells over the 0.5 s. From 0.25 s down to 0.1 ms, the first step at which all six hold counts; of "
        "MuJoCo, the cheapest of five integrators, each with loops at its default softness and as stiff as the step "
        "allows. Costs are of steps in many at a time, under a push that is switched on and off every half second, or "
        "a slow one that stays: steps in which pliant's push ramps are not timed. With --quick few of all these.",
        missing=missing,
        figures=figures,
    )


def _motions(
    case: RandomPushes, quick: bool, progress: Progress
) -> Iterator[tuple[str, str, str, Reference]]:
    """Size, load, label and reference of the motions of a case."""
    for key, size in SIZES.items():
        for load in LOADS:
            if quick and (key, load) not in (("small", "sudden"), ("large", "slow")):
                continue
            label = f"{case.name}, {load} push by {size:g} radii"
            progress(label)
            yield key, load, label, Reference(case, load, size)


def _rows(label: str, found: list[Outcome], target: str, apart: float) -> list[Row]:
    """Row per kind of model, beside the cheapest of MuJoCo's runs that hold."""
    peer = _cheapest([o for o in found if o.contender.startswith("MuJoCo")])
    rows = []
    for kind in dict.fromkeys(o.contender for o in found if not o.contender.startswith("MuJoCo")):
        own = [o for o in found if o.contender == kind]
        best = _cheapest(own)
        row = Row(f"{label}: {kind}", stable=_stability(own))
        row.target = target if kind.startswith("reduced") else ""
        if np.isfinite(apart):
            row.values["references apart, %"] = 100 * apart
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
    """Cheapest outcome that holds."""
    within = [o for o in outcomes if o.holds and o.cost is not None]
    return min(within, key=lambda o: o.cost.median if o.cost else np.inf, default=None)


def _stability(outcomes: list[Outcome]) -> str:
    """Time steps at which runs failed, and why, in words."""
    reasons: dict[str, list[str]] = {}
    for o in outcomes:
        if o.failure:
            reasons.setdefault(o.failure, []).append(_step(o.h))
    return "; ".join(f"not at {', '.join(steps)}: {why}" for why, steps in reasons.items()) or "yes"


def _step(h: float) -> str:
    return f"{1e3 * h:g} ms"


def _figure(key: str, title: str, found: list[Outcome]) -> Figure:
    """Error over cost, a curve per contender, which ends at the first step that holds."""
    curves: dict[str, list[tuple[float, float | None]]] = {}
    for o in found:
        if o.cost is not None:
            curves.setdefault(o.contender, []).append((1e3 * o.cost.median, 100 * o.error))
    x, y = "ms per simulated second", "error, %"
    return log_figure(key, title, x, y, curves, lambda name: not name.startswith("MuJoCo"))
