"""RL05 Table 1 and Figs. 1, 5, 7: molecule of 50,000 joints, bicycle chain, millipede; and chains with springs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import pliant
from pliant import scenes

from ..harness.results import Figure, Progress, Row, Series, Table, log_figure
from ..harness.timing import Turns, compare, time_steps
from .linkages import AFTERWARDS, TURN, add_steps, build_linkage, choose_bodies, exact_steps, push

__all__ = ["bicycle", "millipede", "springs", "table"]

POWERS = (3, 7, 11, 15, 19)  # tolerances are powers of 1/2
PAPER = {  # milliseconds, joints computed, displacement error a step; the DCA takes 875 ms
    1: ((0.6, 0.9, 1.4, 1.9, 2.4), (25, 37, 47, 59, 73), (6e-5, 2e-6, 1e-7, 4e-9, 2e-9)),
    10: ((0.9, 1.3, 1.8, 2.6, 3.1), (32, 45, 56, 75, 85), (1e-4, 1e-4, 4e-7, 4e-8, 1e-8)),
    100: ((2.7, 4.1, 6.4, 7.8, 8.4), (39, 80, 145, 189, 206), (8e-4, 6e-4, 7e-5, 3e-6, 1e-7)),
    1000: ((17.8, 21.4, 42.6, 49.2, 49.9), (41, 149, 830, 1060, 1086), (6e-3, 2e-3, 7e-5, 2e-6, 6e-8)),
}
TARGETS = {7: "60x ABA, 500x DCA", 19: "20x ABA, 250x DCA"}  # under one force
TOLERANCE = "tolerance, relative joint acceleration"  # axis of figures
WARM = 3  # steps before timing: the tree is assembled, the method chosen


def table(quick: bool, progress: Progress) -> Table:
    """RL05 Table 1 and Fig. 7: a molecule under 1 to 1,000 forces; time and joints computed."""
    size, rounds = (5_000, 5) if quick else (50_000, 11)
    m = build_linkage("molecule", size)
    rows: list[Row] = []
    curves: dict[str, list[tuple[int, Row]]] = {}
    for place in ("neighbouring",) if quick else ("neighbouring", "random"):
        for count in (1, 100) if quick else (1, 10, 100, 1000):
            progress(f"RL05 Table 1, {count} {place} forces")
            found = _rows(m, count, place, rounds, full=not quick)
            rows += found.values()
            if place == "neighbouring":
                curves[f"{count} forces" if count > 1 else "1 force"] = list(found.items())
    rows.append(_worst(rows))
    return Table(
        "quasistatic",
        "rl05-table-1",
        f"A molecule of {size:,} joints",
        "ms a step",
        rows,
        "RL05 Table 1, Fig. 7",
        f"One thread, {rounds} turns of {TURN} steps after {WARM} (of which the first assembles the tree, as much work "
        "as eight steps of ABA); the first of a turn finds the caches swept by the others, and is counted by itself. "
        "Peer: this engine's own O(n) articulated-body algorithm; the DCA, RL05's baseline, is on the same tree.",
        figures=_plot(curves),
    )


def _rows(m: pliant.Mechanism, count: int, place: str, rounds: int, full: bool) -> dict[int, Row]:
    """Rows by tolerance; `full`: with the targets of the whole molecule."""
    bodies = choose_bodies(m, count, place == "neighbouring")
    turns, sims, joints = _take_turns(m, bodies, POWERS, rounds)
    out = {}
    for column, (power, s) in enumerate(sims.items()):
        ms, number = (PAPER[count][k][column] for k in range(2))
        row = _compare(f"{count} {place}, 2^-{power}", turns, power, float(np.mean(joints[power])))
        row.paper = f"{ms:g} ms, {number} joints, DCA 875 ms; at 50,000 joints"
        row.target = TARGETS.get(power, "") if count == 1 and full else ""
        row.values["steps of ABA"] = s._solver.fallbacks
        out[power] = row
    return out


def _take_turns(
    m: pliant.Mechanism, bodies: Sequence[int], powers: Iterable[int], rounds: int
) -> tuple[Turns, dict[int, pliant.QuasistaticSimulation], dict[int, list[int]]]:
    """Timings of ABA, the DCA and adaptive steps at tolerances 2^-power.

    Returns them with the simulations, and their numbers of joints computed after every round, by power.
    """
    turns, sims = Turns(), {}
    for name, call in exact_steps(m, bodies).items():
        call()
        turns.add(name, call, every=1 if name == "ABA" else 3)
    for power in powers:
        s = sims[power] = push(m, 2.0**-power, bodies)
        s.step(WARM)
        add_steps(turns, str(power), s)
    joints: dict[int, list[int]] = {power: [] for power in sims}
    for number in range(rounds):
        turns.round(number)
        for power, s in sims.items():
            joints[power].append(len(s.active))
    return turns, sims, joints


def _compare(case: str, turns: Turns, power: int, joints: float) -> Row:
    """Row of adaptive steps beside ABA, with the DCA among the values."""
    ours, dca = turns[str(power)], turns["DCA"]
    row = compare(case, ours.scaled(1e3), turns["ABA"].scaled(1e3), peer_name="ABA, all joints")
    row.values = {
        "joints computed": joints,
        "DCA, ms": 1e3 * dca.median,
        "over the DCA": dca.median / ours.median,
        AFTERWARDS: 1e6 * turns[str(power) + AFTERWARDS].median,
    }
    return row


def _worst(rows: list[Row]) -> Row:
    """Row of the smallest ratio of adaptive steps to ABA."""
    worst = min(rows, key=lambda row: row.ratio or 0.0)
    return Row(
        "slowest against ABA",
        ours=worst.ours,
        peer=worst.peer,
        peer_name="ABA, all joints",
        ratio=worst.ratio,
        target="1/1.15x",
        note=f"at {worst.case}",
    )


def _plot(curves: dict[str, list[tuple[int, Row]]]) -> list[Figure]:
    def figure(key: str, title: str, y: str, value: Callable[[Row], Any]) -> Figure:
        lines = {name: [(2.0**-p, value(row)) for p, row in found] for name, found in curves.items()}
        return log_figure(key, title, TOLERANCE, y, lines, lambda name: True)

    return [
        figure("rl05-figure-7-time", "Time of a step", "ms", lambda row: row.ours),
        figure(
            "rl05-figure-7-joints", "Joints computed", "joints", lambda row: row.values["joints computed"]
        ),
    ]


def bicycle(quick: bool, progress: Progress) -> Table:
    """RL05 Fig. 1: end positions of a chain of 30 links, at several tolerances."""
    steps = 2_000 if quick else 10_000
    scene = scenes.bicycle_chain()
    progress("RL05 Fig. 1, exact")
    true = scene.simulate(tolerance=2.0**-40, implicit=False)
    start = true.poses[:, :3, 3].copy()
    true.step(steps)
    end = true.poses[:, :3, 3].copy()
    way = np.linalg.norm(end - start, axis=1).max()
    curves, sims, rows = [_shape("start", start, False), _shape("exact", end, False)], {}, []
    for tolerance in (0.9, 0.5, 0.1, 0.01):
        progress(f"RL05 Fig. 1, {tolerance:g}")
        s = sims[f"tolerance {tolerance:g}"] = scene.simulate(tolerance=tolerance, implicit=False)
        s._solver.small, s._solver.most = False, 1000  # else ABA is chosen for few joints
        joints = []
        for _ in range(10):
            s.step(steps // 10)
            joints.append(len(s.active))
        places = s.poses[:, :3, 3]
        curves.append(_shape(f"tolerance {tolerance:g}", places, True))
        row = Row(f"tolerance {tolerance:g}", paper="pictures: the larger the tolerance the further off")
        row.values = {
            "joints computed": float(np.mean(joints)),
            "displacement error": float(np.linalg.norm(places - end, axis=1).max() / way),
        }
        rows.append(row)
    calls = {**{name: s.step for name, s in sims.items()}, "ABA": true.step}
    times = {name: t.scaled(1e6) for name, t in time_steps(calls, 3 if quick else 9).items()}
    for row in rows:
        row.ours, row.ours_spread, _ = times[row.case]
        row.peer, row.peer_spread, _ = times["ABA"]
        row.peer_name, row.ratio = "ABA, all joints", row.peer / row.ours
    return Table(
        "quasistatic",
        "rl05-figure-1",
        f"A bicycle chain of 30 links after {steps:,} steps",
        "µs a step",
        rows,
        "RL05 Fig. 1",
        "`scenes.bicycle_chain()`. Displacement error: largest distance from the exact end over the largest way. The "
        "engine is made to refine here: left alone it takes ABA for so few joints, as the peer's column shows.",
        figures=[Figure("rl05-figure-1", "A bicycle chain, pulled at its end", "x, m", "z, m", curves)],
    )


def _shape(label: str, places: np.ndarray, ours: bool) -> Series:
    """Series of the links' origins in the plane of x and z, m."""
    return Series(label, places[:, 0].tolist(), places[:, 2].tolist(), ours)


def millipede(quick: bool, progress: Progress) -> Table:
    """RL05 Fig. 5: one force on a leg of a millipede, over tolerances from 1 to 2^-19."""
    progress("RL05 Fig. 5")
    rounds = 5 if quick else 11
    m = build_linkage("millipede")
    bodies = choose_bodies(m, 1, False)
    powers = (3, 7, 19) if quick else (*range(0, 20, 2), 3, 7, 19)
    turns, sims, _ = _take_turns(m, bodies, sorted(powers), rounds)
    rows = []
    for power, s in sims.items():
        row = _compare(f"2^-{power}", turns, power, len(s.active))
        row.paper = "faster than the DCA down to tolerances of 1e-4"
        row.target = "40x" if power == 3 else ""
        rows.append(row)
    by_power = [(2.0**-power, row) for power, row in zip(sims, rows, strict=True)]
    times = {"pliant": [(x, row.ours) for x, row in by_power]}
    times |= {name: [(x, 1e3 * turns[name].median) for x, _ in by_power] for name in ("ABA", "DCA")}
    computed = {"pliant": [(x, row.values["joints computed"]) for x, row in by_power]}
    return Table(
        "quasistatic",
        "rl05-figure-5",
        "A millipede of 13,000 joints, one force",
        "ms a step",
        rows,
        "RL05 Fig. 5",
        f"One thread, {rounds} turns of {TURN} steps after {WARM}; the first of a turn finds the caches swept by the "
        "others, and is counted by itself. Where too many joints would be computed a step is one of ABA.",
        figures=[
            log_figure("rl05-figure-5-time", "Time of a step", TOLERANCE, "ms", times),
            log_figure("rl05-figure-5-joints", "Joints computed", TOLERANCE, "joints", computed),
        ],
    )


def springs(quick: bool, progress: Progress) -> Table:
    """Chain of 30 links with springs, open and closed to a loop."""
    sims, rows = {}, []
    for title, m in (("open", pliant.gallery.bicycle_chain(30)), ("loop", pliant.gallery.loop())):
        for tolerance in (0.1, 1e-3):
            progress(f"chain with springs, {title}, {tolerance:g}")
            s = pliant.QuasistaticSimulation(m, 1e-3, tolerance=tolerance)
            s.apply_wrench(m.body_names[-1], force=(0.1, 0.05, 0.1))
            s.step(500 if quick else 5_000)
            sims[f"{title}, tolerance {tolerance:g}"] = s
    times = time_steps({name: s.step for name, s in sims.items()}, 3 if quick else 9)
    for name, s in sims.items():
        rows.append(compare(name, times[name].scaled(1e6), note=f"{len(s.active)} joints at last"))
    return Table(
        "quasistatic",
        "springs",
        "A chain of 30 links with springs",
        "µs a step",
        rows,
        settings="Implicit springs, gravity and a force at the end, steps of 1 ms, on its way to rest.",
    )
