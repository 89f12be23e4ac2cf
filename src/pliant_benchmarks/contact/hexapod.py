"""Hexapod that stands and walks on uneven ground: pliant and MuJoCo, each at its largest accurate time step."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Protocol

import numpy as np

from pliant import scenes
from pliant.engines.reduced import reduce
from pliant.errors import PliantError
from pliant.gallery.robots import hexapod as robot
from pliant.scenes.locomotion import LEGS, gait

from ..harness.results import Progress, Row, Table
from ..harness.timing import Timing, compare, summarize
from ..peers.mujoco import QUICK_WALK_SETTINGS, WALK_SETTINGS, Setting, Walk

__all__ = ["Ours", "agreement", "find_standing", "find_walking", "hexapod"]

STEPS = tuple(1 / n for n in (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60, 90, 120, 180, 240))
SMALL = 1 / 500  # s, step of the reference
HEIGHT = 0.16  # m, of the body
WAIT, WALK, PERIOD = 0.5, 4.0, 0.8  # s
STRIDE = 0.06  # m, of `scenes.hexapod`
STAND = 16.0  # s, simulated time of a turn


class Walker(Protocol):
    """Hexapod in one engine."""

    def run(self, seconds: float) -> None: ...
    def timed(self, seconds: float) -> float: ...
    @property
    def failed(self) -> bool: ...
    @property
    def place(self) -> np.ndarray: ...


class Ours:
    """`scenes.hexapod` in pliant."""

    def __init__(self, h: float, kind: str, walks: bool):
        self.failed, self._h, self._walks = False, h, walks
        self._play = scenes.hexapod(kind, timestep=h)
        self._torques = gait(reduce(robot()), STRIDE, PERIOD)

    def run(self, seconds: float) -> None:
        """Advance."""
        self.timed(seconds)

    def timed(self, seconds: float) -> float:
        """Advance; wall-clock time of the steps, s, without computing torques. Standing is one call."""
        world, n = self._play.world, round(seconds / self._h)
        took, simulation, driven = 0.0, world["hexapod"], []
        if self._walks:
            driven = [self._torques(world.time + (k + 0.5) * self._h) for k in range(n)]
        try:
            if not driven:
                start = perf_counter()
                world.step(n)
                took = perf_counter() - start
            for torque in driven:
                simulation.set_motor(LEGS, torque=torque)
                start = perf_counter()
                world.step()
                took += perf_counter() - start
        except PliantError:
            self.failed = True
        return took

    @property
    def place(self) -> np.ndarray:
        """World position of the body, m."""
        return self._play.world.pose("hexapod/body")[:3, 3]


Make = Callable[[float], Walker]
Found = tuple[float, Walker]
Rule = Callable[[Make, float], Found | None]


def find_standing(make: Make, within: float) -> Found | None:
    """Largest time step at which it stands as high as at the reference step, without drift; and the run."""
    small = make(SMALL)
    small.run(2.0)
    for h in STEPS if not small.failed else ():
        walker = make(h)
        walker.run(2.0)
        before = walker.place
        if walker.failed or not abs(before[2] - small.place[2]) < within * HEIGHT:
            continue
        walker.run(5.0)
        if not walker.failed and np.linalg.norm(walker.place - before) < within * HEIGHT:
            return h, walker
    return None


def find_walking(make: Make, within: float) -> Found | None:
    """Largest time step at which it walks to the reference position, within a share of the way; and the run."""
    way = _walk(make(SMALL))
    if way is None:
        return None
    for h in STEPS:
        walker = make(h)
        found = _walk(walker)
        if found is not None and np.linalg.norm((found - way)[:2]) < within * np.linalg.norm(way[:2]):
            return h, walker
    return None


def _walk(walker: Walker) -> np.ndarray | None:
    """Displacement of the body by the walk, after landing, m; None if it diverges."""
    walker.run(WAIT)
    start = walker.place
    walker.run(WALK)
    return None if walker.failed else walker.place - start


TASKS = {
    "stands, height within 1 %": (False, find_standing, 0.01),
    "walks, place within 1 % of the way": (True, find_walking, 0.01),
    "walks, place within 3 % of the way": (True, find_walking, 0.03),
    "walks, place within 10 % of the way": (True, find_walking, 0.1),
}


def hexapod(quick: bool, progress: Progress) -> Table:
    """Cost of a simulated second of standing and walking."""
    rows, tried = [], ""
    for case, (walking, rule, within) in TASKS.items():
        if quick and within == 0.01 and walking:
            continue
        runs: dict[str, Found] = {}
        for kind in ("reduced",) if quick else ("reduced", "full"):
            progress(f"hexapod {case}, {kind}")
            found = rule(lambda h, k=kind, w=walking: Ours(h, k, w), within)
            if found is not None:
                runs[kind] = found
        theirs, tried = _scan_mujoco(quick, progress, case, walking, rule, within)
        runs |= theirs
        progress(f"hexapod {case}, timing")
        cost = _time_runs(runs, 5 if quick else 11, PERIOD if walking else STAND)
        theirs = {key: found for key, found in theirs.items() if key in cost}
        runs = {key: found for key, found in runs.items() if key in cost}  # others diverged later
        for kind in ("reduced",) if quick else ("reduced", "full"):
            rows.append(_row(case, kind, runs, cost, list(theirs)))
    return Table(
        "contact",
        "hexapod",
        "A hexapod on uneven ground",
        "ms per simulated second",
        rows,
        settings="`scenes.hexapod()`, 19 bodies, a height field; in MuJoCo the same MJCF with the same torques, its "
        "links touch the ground alone. Compared with the same engine at the same setting in steps of "
        f"1/{1 / SMALL:.0f} s. Standing: height after 2 s, and then 5 s without moving, within 1 % of {HEIGHT:g} m. "
        f"Walking: where the body is after {WALK:g} s. Steps tried: {', '.join(f'1/{1 / h:.0f}' for h in STEPS)} s. "
        f"Timed in turns of {STAND:g} s, `world.step(n)` against `mj_step(nstep=n)`; walking, of a period of the gait, "
        f"a call a step, without what drives it: the same torques, those of the middle of a step. "
        f"MuJoCo: {tried}; the fastest that keeps the rule counts.",
    )


def _time_runs(runs: dict[str, Found], rounds: int, turn: float) -> dict[str, Timing]:
    """Milliseconds per simulated second, in turns of `turn` simulated seconds; without runs that diverge."""
    times: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, (_, walker) in runs.items():
            times[key].append(walker.timed(turn) / turn)
    return {key: summarize(values).scaled(1e3) for key, values in times.items() if not runs[key][1].failed}


def _row(case: str, kind: str, runs: dict[str, Found], cost: dict[str, Timing], theirs: list[str]) -> Row:
    """Row of pliant beside the cheapest of MuJoCo's settings."""
    case, target = f"{case}, {kind}", "5x" if kind == "reduced" else ""
    best = min(theirs, key=lambda key: cost[key].median, default=None)
    if kind not in runs:
        row = Row(case, target=target, stable=f"pliant {kind}: at no step tried")
        if best is not None:
            row.peer, row.peer_spread, row.peer_name = cost[best].median, cost[best].spread, f"MuJoCo {best}"
        return row
    h = runs[kind][0]
    note = f"pliant at 1/{1 / h:.0f} s, {1e3 * cost[kind].median * h:.0f} µs a step"
    if best is None:
        stable = "MuJoCo: at no setting and step tried"
        return compare(case, cost[kind], target=target, note=note, stable=stable)
    step = runs[best][0]
    return compare(
        case,
        cost[kind],
        cost[best],
        peer_name=f"MuJoCo {best}, 1/{1 / step:.0f} s",
        target=target,
        note=f"{note}; MuJoCo {1e3 * cost[best].median * step:.0f} µs a step",
    )


def _scan_mujoco(
    quick: bool, progress: Progress, case: str, walking: bool, rule: Rule, within: float
) -> tuple[dict[str, Found], str]:
    """MuJoCo's three fastest settings that keep the rule; and the settings tried, in words."""
    found = {}
    for setting in QUICK_WALK_SETTINGS if quick else WALK_SETTINGS:
        progress(f"hexapod {case}, MuJoCo {setting}")
        kept = rule(lambda h, s=setting: Walk(h, s, walking), within)
        if kept is None:
            continue
        found[str(setting)] = kept[1].timed(PERIOD), kept
    first = sorted(found, key=lambda key: found[key][0])[:3]
    tried = "every integrator, both cones, impratio 1, 10, 100"
    if quick:
        tried = f"{len(QUICK_WALK_SETTINGS)} of {len(WALK_SETTINGS)} settings"
    return {key: found[key][1] for key in first}, tried


def agreement(quick: bool, progress: Progress) -> Table:
    """Height of the body standing and its way walking, at small steps, beside MuJoCo."""
    progress("hexapod, agreement")
    rows = []
    setting = Setting("implicitfast", "elliptic", 10)
    theirs = {w: _measure(Walk(1 / 2000, setting, w, rigid=True), w) for w in (False, True)}
    for kind in ("reduced",) if quick else ("reduced", "full"):
        for case, walking in (("height of the body standing", False), ("way of the body walking", True)):
            row = Row(f"{case}, {kind}")
            row.ours = _measure(Ours(SMALL, kind, walking), walking)
            if row.ours is None:
                row.stable = f"pliant {kind}: diverges"
            row.peer, row.peer_name = theirs[walking], "MuJoCo, rigid contacts, 1/2000 s"
            if row.ours is not None and row.peer is not None:
                row.note = f"{100 * (row.ours / row.peer - 1):+.2f} %"
            rows.append(row)
    return Table(
        "contact",
        "hexapod-agreement",
        "The same hexapod in both engines",
        "mm",
        rows,
        settings=f"Standing: after 2 s. Walking: from {WAIT:g} s on, {WALK:g} s. pliant in steps of 1/{1 / SMALL:.0f} "
        "s, its contacts are rigid. MuJoCo: implicitfast, elliptic cones, impratio 10.",
    )


def _measure(walker: Walker, walking: bool) -> float | None:
    """Height of the body standing, or length of its way walking, mm; None if it diverges."""
    if walking:
        way = _walk(walker)
        return None if way is None else 1e3 * float(np.linalg.norm(way[:2]))
    walker.run(2.0)
    return None if walker.failed else 1e3 * float(walker.place[2])
