"""Ladders and small linkages in motion beside MuJoCo and Exudyn: a step at the same time step, a simulated second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from time import process_time

import pliant

from ..harness.results import Progress, Row, Table
from ..harness.timing import Timing, compare, time_in_turns
from ..peers import find_all
from ..peers.mujoco import PushedLoops
from ..systems import Floats, Pushed
from .pushes import SIDEWAYS, Ours, Run, Trial, follow

__all__ = ["seconds", "steps", "try_settings"]

STEPS = {"1/60 s": 1 / 60, "5 ms": 5e-3, "2 ms": 2e-3, "1 ms": 1e-3}
SAME = ("5 ms", "1/60 s")  # at which all engines are compared
PUSH = 0.02  # radii
TURN = 0.02  # s of processor time, about, of the slowest run in a turn
Make = Callable[[float, str], Run]  # of a run: time step, setting

SETTINGS = (
    "One thread, processor time, in turns. A force swells for half a second to what would move the end effector by "
    f"{PUSH:g} radii, then stays; timed from then on, all over the same simulated time. A run counts if all bodies are "
    "within 5 % of the largest displacement of pliant at an eighth of the step, gaps of loops as well, and energy is "
    "at most 5 % above the force's work. MuJoCo: Newton's solver, sparse where that is faster, four integrators (two "
    "on long ladders, one with --quick), loops as soft <connect> and <weld>; Exudyn: planar bodies, exact joints, "
    "sparse matrices, Jacobians kept or renewed. Of a peer's settings the fastest that counts."
)


def _ladder(rungs: int) -> Pushed:
    return Pushed(f"ladder({rungs})", partial(pliant.gallery.ladder, rungs), PUSH, SIDEWAYS)


def _ours(case: Pushed, h: float, setting: str) -> Run:
    return Ours(case, h)


def _linkages() -> list[Pushed]:
    """Small closed linkages of the gallery."""
    return [
        Pushed(f"{name}()", getattr(pliant.gallery, name), PUSH)
        for name in ("gripper", "suspension", "firefighters")
    ]


def _contender(case: Pushed, title: str, quick: bool) -> tuple[Make, Sequence[str]]:
    """Runs of a peer, and its settings."""
    if title == "Exudyn":
        from ..peers.exudyn import PushedBodies

        return partial(PushedBodies, case), PushedBodies.SETTINGS
    # The fastest of long ladders is always among the first two.
    return partial(PushedLoops, case), PushedLoops.SETTINGS[
        : 1 if quick else 2 if case.m.body_count > 300 else None
    ]


def try_settings(
    case: Pushed, h: float, make: Make, settings: Sequence[str], truth: Floats
) -> tuple[dict[str, Trial], dict[str, str]]:
    """Trials of the settings that count, and what is wrong with the others."""
    there, problems = {}, {}
    for setting in settings:
        trial = Trial(case, h, make(h, setting))
        if trial.judge(truth):
            there[setting] = trial
        else:
            problems[setting] = trial.problem
    return there, problems


def _time(trials: dict[str, Trial], rounds: int) -> dict[str, Timing]:
    """Seconds per step of runs in turns, without those that fail meanwhile.

    All go through the same motion: a turn is the same simulated time for all, 10 to 200 of the largest steps.
    """
    slowest = 0.0
    for trial in trials.values():
        start = process_time()
        trial.run.step(1)
        slowest = max(slowest, process_time() - start)
    span = min(200, max(10, round(TURN / max(slowest, 1e-9)))) * max(trial.h for trial in trials.values())
    counts = {name: round(span / trial.h) for name, trial in trials.items()}
    times = time_in_turns(
        {name: partial(trial.run.step, counts[name]) for name, trial in trials.items()}, rounds
    )
    return {name: t.scaled(1 / counts[name]) for name, t in times.items() if trials[name].holds()}


def _compare(
    case: str, title: str, ours: Trial, found: tuple[dict[str, Trial], dict[str, str]], rounds: int
) -> Row:
    """Row of pliant beside the fastest setting of a peer that counts, in µs a step."""
    there, problems = found
    times = _time({"": ours, **there}, rounds)
    problems = {**problems, **{name: trial.problem for name, trial in there.items() if trial.problem}}
    said = "; ".join(f"{name} {why}" for name, why in problems.items())
    mine, peers = times.get(""), {name: t for name, t in times.items() if name}
    best = min(peers, key=lambda name: peers[name].median, default=None)
    row = Row(case, peer_name=title if best is None else f"{title} {best}")
    if mine is not None:
        theirs = None if best is None else peers[best].scaled(1e6)
        row = compare(case, mine.scaled(1e6), theirs, peer_name=row.peer_name)
        row.values["error, %"] = 100 * ours.error
    else:
        row.stable = f"pliant: {ours.problem}"
        row.peer = None if best is None else 1e6 * peers[best].median
    if best is None:
        row.stable = ", ".join([*([] if row.stable == "yes" else [row.stable]), f"{title}: {said}"])
    else:
        row.note = said
        row.values |= {"peer's error, %": 100 * there[best].error, "peer's gap, m": there[best].run.gap}
    return row


def steps(quick: bool, progress: Progress) -> Table:
    """A step of ladders and small linkages at the same time step."""
    _, missing = find_all(("exudyn",))
    # MuJoCo's files may be nested 500 bodies deep at most: 240 rungs.
    sizes = {"MuJoCo": (128,) if quick else (64, 240), "Exudyn": (64,) if quick else (64, 256)}
    pairs = [
        (_ladder(n), title)
        for title, some in sizes.items()
        if not (title == "Exudyn" and missing)
        for n in some
    ]
    rows = []
    for case, title in [*pairs, *((case, "MuJoCo") for case in _linkages())]:
        make, settings = _contender(case, title, quick)
        for label in SAME[:1] if quick else SAME:
            progress(f"{case.name}, {label}, beside {title}")
            h, rounds = STEPS[label], 3 if quick else 7
            truth = follow(case, h)
            ours = Trial(case, h, Ours(case, h))
            ours.judge(truth)
            found = try_settings(case, h, make, settings, truth)
            rows.append(_compare(f"{case.name}, {label}, {title}", title, ours, found, rounds))
    return Table(
        "loops",
        "loops-motion",
        "A step of closed loops beside other engines",
        "µs a step",
        rows,
        settings=SETTINGS,
        missing=missing,
    )


def seconds(quick: bool, progress: Progress) -> Table:
    """A simulated second, each at its largest step up to 1/60 s."""
    rows = []
    for case in [_ladder(64 if quick else 240), *_linkages()]:
        progress(f"a second of {case.name}")
        make, settings = _contender(case, "MuJoCo", quick)
        truth = cache(partial(follow, case))
        ours = _largest(case, partial(_ours, case), ("",), truth)
        theirs = _largest(case, make, settings, truth)
        trials = {key: trial for key, (_, trial) in {**ours, **theirs}.items()}
        times = _time(trials, 3 if quick else 7)
        cost = {key: t.scaled(1e3 / trials[key].h) for key, t in times.items()}
        best = min((key for key in cost if key), key=lambda key: cost[key].median, default=None)
        row = Row(case.name)
        if "" in cost:
            row = compare(case.name, cost[""], None if best is None else cost[best])
            row.note = f"{ours[''][0]}, error {100 * trials[''].error:.2g} %"
        else:
            row.stable = "pliant: holds at no step"
        if best is None:
            row.stable = "MuJoCo: holds at no step tried"
        else:
            row.peer_name = f"MuJoCo {best}, {theirs[best][0]}, error {100 * trials[best].error:.2g} %"
        rows.append(row)
    return Table(
        "loops",
        "loops-second",
        "A simulated second of closed loops, each at its largest step",
        "ms per simulated second",
        rows,
        settings=f"{SETTINGS} Steps tried: {', '.join(STEPS)}.",
    )


def _largest(
    case: Pushed, make: Make, settings: Sequence[str], truth: Callable[[float], Floats]
) -> dict[str, tuple[str, Trial]]:
    """Largest step of every setting at which it counts, and that trial; without those that count at none."""
    out = {}
    for setting in settings:
        for label, h in STEPS.items():
            there, _ = try_settings(case, h, make, (setting,), truth(h))
            if there:
                out[setting] = label, there[setting]
                break
    return out
