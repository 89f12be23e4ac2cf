"""GS17 Table 2 and Figs. 4, 6, 7: the inverse of M - h²K̃ by low-rank updates and by LU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Timing, compared
from peers import Chain
from peers.lowrank import by_blocks, problem
from peers.pliant_chain import mechanism
from results import Figure, Progress, Row, Series, Table
from turns import per_step

from pliant.engines.constrained.inverses import FullInverse, LowRankInverse
from pliant.engines.constrained.methods import (
    MaximalStepper,
    effective_inverse_full,
    effective_inverse_low_rank,
)
from pliant.gallery import scenes
from pliant.mechanism import Mechanism

__all__ = ["angular_joints", "ball_joints", "cable_joints", "strong_robot"]

H = 0.01
LU = "Tournier's full rank, LU"
PAPER = {  # GS17 Table 2
    10: "0.010 ms, 9.81x",
    50: "0.517 ms, 13.13x",
    100: "2.633 ms, 18.87x",
}
TARGET = {10: "9.8x", 50: "13.1x", 100: "18.9x"}
SETTINGS = (
    "One thread, h = .01 s, both fill the same dense matrix, taking turns. Ratio: time of LU over ours."
)


def ball_joints(quick: bool, progress: Progress) -> Table:
    """GS17 Table 2."""
    rows = []
    for links in (10, 50, 100):
        progress(f"GS17 Table 2, {links} joints")
        p = problem(links, H)
        full, low = effective_inverse_full(*p), effective_inverse_low_rank(*p)
        blocks = by_blocks(*p)
        apart = max(
            np.abs(full - low).max(),
            *(
                np.abs(full[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] - b).max()
                for i, b in enumerate(blocks)
            ),
        )
        out = np.zeros_like(full)
        times = _timed(
            {
                "low": lambda p=p, out=out: effective_inverse_low_rank(*p, out=out),
                "full": lambda p=p: effective_inverse_full(*p),
                "blocks": lambda p=p: by_blocks(*p),
            },
            3 if quick else 9,
        )
        values = {
            "one 3 x 3 inverse per link, µs": 1e6 * times["blocks"].median,
            "largest difference": float(apart / np.abs(full).max()),
        }
        rows.append(_row(f"{links} balls", times, PAPER[links], TARGET[links], values))
    return Table(
        "constrained",
        "gs17-table-2",
        "Inverse of the stabilized mass matrix of ball joints",
        "µs",
        rows,
        "GS17 Table 2",
        SETTINGS,
    )


def angular_joints(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 4: hinges, universals and balls."""
    sizes = (10, 25) if quick else (10, 25, 50, 75, 100)
    cases = {
        f"{kind} {n}": (kind, n, mechanism(Chain(kind, links=n, ratio=100.0, seed=0)))
        for kind in ("hinge", "universal", "ball")
        for n in sizes
    }
    return _gains(
        "gs17-figure-4",
        "Gain of low-rank updates on chains",
        "GS17 Fig. 4",
        "grows about linearly with joints, alike for all three",
        cases,
        quick,
        progress,
    )


def strong_robot(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 6: a robot on a cable of more and more flexible joints."""
    sizes = (4, 20) if quick else (4, 10, 20, 30, 40)
    cases = {f"robot, cable of {n}": ("robot", n, scenes.tank(n).mechanism) for n in sizes}
    return _gains(
        "gs17-figure-6",
        "Gain of low-rank updates on the strong robot",
        "GS17 Fig. 6 (scene of Fig. 5)",
        "gain shrinks with cable joints, below 1 in the end",
        cases,
        quick,
        progress,
    )


def cable_joints(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 7: nothing but flexible cable joints."""
    sizes = (10, 20) if quick else (5, 10, 20, 40, 60)
    cases = {
        f"cable {n}": ("cable", n, mechanism(Chain("cable", links=n, ratio=100.0, seed=0))) for n in sizes
    }
    return _gains(
        "gs17-figure-7",
        "Gain of low-rank updates on flexible cables",
        "GS17 Fig. 7",
        "no gain at any number of joints",
        cases,
        quick,
        progress,
    )


def _gains(
    key: str,
    title: str,
    source: str,
    paper: str,
    cases: dict[str, tuple[str, int, Mechanism]],
    quick: bool,
    progress: Progress,
) -> Table:
    rows, curves = [], {}
    for case, (kind, n, m) in cases.items():
        progress(f"{source}, {case}")
        arguments = _under_load(m)
        maximal = arguments[0].maximal
        low, full = LowRankInverse(maximal), FullInverse(maximal)
        state = arguments[1:]
        apart = np.abs(low(*state) - full(*state)).max() / np.abs(full(*state)).max()
        times = _timed(
            {
                "low": lambda low=low, state=state: low(*state),
                "full": lambda full=full, state=state: full(*state),
            },
            3 if quick else 7,
        )
        row = _row(case, times, paper, "", {"largest difference": float(apart)})
        rows.append(row)
        curves.setdefault(kind, []).append((n, row.ratio, row.ours))
    lines = [
        Series(kind, [float(p[0]) for p in points], [float(p[1]) for p in points])
        for kind, points in curves.items()
    ]
    figure = Figure(key, title, "joints", "time of LU over low rank", lines)
    note = (
        " These inverses take any joint and include K̃ itself; pliant's bushings have ball rows for their"
        " translations where GS17 has dot-2 rows."
    )
    return Table("constrained", key, title, "µs", rows, source, SETTINGS + note, figures=[figure])


def _under_load(m: Mechanism) -> tuple:
    """A stepper after a few steps, and what its inverses take: masses, poses and the rows' forces."""
    s = MaximalStepper(m, H, stabilization="low-rank")
    s.step(3)
    if not s.finite:
        raise RuntimeError(f"{m.name} does not survive three steps")
    return s, H, s._A, s._x, s._R, s._lam


def _timed(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    def repeat(call: Callable[[], object]) -> Callable[[int], None]:
        def step(n: int) -> None:
            for _ in range(n):
                call()

        return step

    return per_step({name: repeat(call) for name, call in calls.items()}, rounds, turn=0.005)


def _row(case: str, times: dict[str, Timing], paper: str, target: str, values: dict[str, Any]) -> Row:
    low, full = times["low"].scaled(1e6), times["full"].scaled(1e6)
    return compared(case, low, full, peer_name=LU, paper=paper, target=target, values=values)
