"""RL05 Figs. 1 and 5: a bicycle chain after 10,000 steps, a millipede of 13,000 joints; springs and loops besides."""

from __future__ import annotations

import numpy as np
from measure import compared
from results import Figure, Progress, Row, Series, Table
from rl05 import AFTERWARDS, TURN, Turns, add_steps, chosen, exact, linkage, pushed
from turns import per_step

import pliant
from pliant.gallery import pulls

__all__ = ["bicycle", "millipede", "springs"]

WARM = 3


def bicycle(quick: bool, progress: Progress) -> Table:
    """RL05 Fig. 1: where a chain of 30 links ends up, at several tolerances."""
    steps = 2_000 if quick else 10_000
    scene = pulls.bicycle_chain()
    progress("RL05 Fig. 1, exact")
    true = scene.simulation(2.0**-40, implicit=False)
    start = true.poses[:, :3, 3].copy()
    true.step(steps)
    end = true.poses[:, :3, 3].copy()
    way = np.linalg.norm(end - start, axis=1).max()
    curves, sims, rows = [_shape("start", start, False), _shape("exact", end, False)], {}, []
    for tolerance in (0.9, 0.5, 0.1, 0.01):
        progress(f"RL05 Fig. 1, {tolerance:g}")
        s = sims[f"tolerance {tolerance:g}"] = scene.simulation(tolerance, implicit=False)
        s._solver.small, s._solver.most = False, 1000  # it would take ABA for so few joints
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
    times = {name: t.scaled(1e6) for name, t in per_step(calls, 3 if quick else 9).items()}
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
        "`pulls.bicycle_chain()`. Displacement error: largest distance from the exact end over the largest way. The "
        "engine is made to refine here: left alone it takes ABA for so few joints, as the peer's column shows.",
        figures=[Figure("rl05-figure-1", "A bicycle chain, pulled at its end", "x, m", "z, m", curves)],
    )


def _shape(label: str, places: np.ndarray, ours: bool) -> Series:
    return Series(label, places[:, 0].tolist(), places[:, 2].tolist(), ours)


def millipede(quick: bool, progress: Progress) -> Table:
    """RL05 Fig. 5: one force on a leg of the millipede, tolerances from 1 to 2^-19."""
    progress("RL05 Fig. 5")
    rounds = 5 if quick else 11
    m = linkage("millipede")
    bodies = chosen(m, 1, False)
    powers = (3, 7, 19) if quick else (*range(0, 20, 2), 3, 7, 19)
    turns, sims = Turns(), {}
    for name, call in exact(m, bodies).items():
        call()
        turns.add(name, call, every=1 if name == "ABA" else 3)
    for power in sorted(powers):
        s = sims[power] = pushed(m, 2.0**-power, bodies)
        s.step(WARM)
        add_steps(turns, str(power), s)
    for number in range(rounds):
        turns.round(number)
    rows = []
    for power, s in sims.items():
        row = compared(
            f"2^-{power}",
            turns[str(power)].scaled(1e3),
            turns["ABA"].scaled(1e3),
            peer_name="ABA, all joints",
            paper="faster than the DCA down to tolerances of 1e-4",
            target="40x" if power == 3 else "",
        )
        row.values = {
            "joints computed": len(s.active),
            "DCA, ms": 1e3 * turns["DCA"].median,
            "over the DCA": turns["DCA"].median / turns[str(power)].median,
            AFTERWARDS: 1e6 * turns[str(power) + AFTERWARDS].median,
        }
        rows.append(row)
    tolerances = [2.0**-p for p in sims]
    label = "tolerance, relative joint acceleration"
    times = [Series("pliant", tolerances, [row.ours or 0.0 for row in rows])]
    times += [
        Series(name, tolerances, [1e3 * turns[name].median] * len(tolerances), False)
        for name in ("ABA", "DCA")
    ]
    computed = [Series("pliant", tolerances, [float(row.values["joints computed"]) for row in rows])]
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
            Figure("rl05-figure-5-time", "Time of a step", label, "ms", times, log_x=True, log_y=True),
            Figure(
                "rl05-figure-5-joints", "Joints computed", label, "joints", computed, log_x=True, log_y=True
            ),
        ],
    )


def springs(quick: bool, progress: Progress) -> Table:
    """A chain of 30 links with springs, open and closed to a loop."""
    sims, rows = {}, []
    for title, m in (("open", pliant.gallery.bicycle_chain(30)), ("loop", pliant.gallery.loop())):
        for tolerance in (0.1, 1e-3):
            progress(f"chain with springs, {title}, {tolerance:g}")
            s = pliant.QuasistaticSimulation(m, 1e-3, tolerance=tolerance)
            s.apply_wrench(m.body_names[-1], force=(0.1, 0.05, 0.1))
            s.step(500 if quick else 5_000)
            sims[f"{title}, tolerance {tolerance:g}"] = s
    times = per_step({name: s.step for name, s in sims.items()}, 3 if quick else 9)
    for name, s in sims.items():
        rows.append(compared(name, times[name].scaled(1e6), note=f"{len(s.active)} joints at last"))
    return Table(
        "quasistatic",
        "springs",
        "A chain of 30 links with springs",
        "µs a step",
        rows,
        settings="Implicit springs, gravity and a force at the end, steps of 1 ms, on its way to rest.",
    )
