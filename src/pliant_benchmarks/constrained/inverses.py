"""GS17 Table 2 and Figs. 4, 6, 7: inverse of M - h²K̃ by low-rank updates and by LU.

K̃ is the geometric stiffness: a force f on a body at the lever s keeps its direction when the body turns, so the torque
s × f changes by `f^ s^` (hats are cross-product matrices) per radian. K̃ of a ball joint couples no two bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant import scenes
from pliant.compilation import njit
from pliant.engines.constrained.gs17.inverse import (
    FullInverse,
    LowRankInverse,
    effective_inverse_full,
    effective_inverse_low_rank,
)
from pliant.engines.constrained.gs17.stepper import MaximalStepper
from pliant.mechanism import Mechanism

from ..harness.results import Figure, Progress, Row, Series, Table
from ..harness.timing import Timing, compare, time_steps
from ..peers.pliant import build_mechanism
from ..systems import GRAVITY, Chain

__all__ = [
    "angular_joints",
    "ball_joints",
    "build_problem",
    "cable_joints",
    "invert_by_blocks",
    "strong_robot",
]

H = 0.01  # s
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
    """GS17 Table 2: ball joints."""
    rows = []
    for links in (10, 50, 100):
        progress(f"GS17 Table 2, {links} joints")
        p = build_problem(links, H)
        full, low = effective_inverse_full(*p), effective_inverse_low_rank(*p)
        blocks = invert_by_blocks(*p)
        apart = max(
            np.abs(full - low).max(),
            *(
                np.abs(full[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] - b).max()
                for i, b in enumerate(blocks)
            ),
        )
        out = np.zeros_like(full)
        times = _time_calls(
            {
                "low": lambda p=p, out=out: effective_inverse_low_rank(*p, out=out),
                "full": lambda p=p: effective_inverse_full(*p),
                "blocks": lambda p=p: invert_by_blocks(*p),
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


def build_problem(links: int, h: float) -> tuple[Any, ...]:
    """Arguments of GS17's inverses for a taut chain of ball joints, in world axes.

    Time step; masses and inertias of the links; links, levers on both sides and forces of the joints.
    """
    system = Chain(links=links, ratio=100.0)
    rng = np.random.default_rng(links)
    mass, inertia = np.empty(links), np.zeros((links, 3, 3))
    si, sj, force = np.zeros((links, 3)), np.zeros((links, 3)), np.zeros((links, 3))
    weight = 0.0
    for i in reversed(range(links)):
        mass[i], com, moments = system.inertia(i)
        inertia[i] = np.diag(moments)
        sj[i, 2] = -com
        if i < links - 1:
            si[i + 1, 2] = -com - system.length
        weight += mass[i] * GRAVITY
        lean = rng.normal(0, 0.02, 3)  # off the link's axis, as in motion
        force[i] = -weight * (np.array([0, 0, 1]) + lean)  # on the parent
    ends = np.column_stack([np.arange(links) - 1, np.arange(links)]).astype(np.int64)
    return h, mass, inertia, ends, si, sj, force


@njit(counts_references=True)
def invert_by_blocks(h, mass, inertia, ends, si, sj, force):
    """Rotational blocks of the inverse, (links, 3, 3): one 3 x 3 inverse per link, no updates."""
    n = len(mass)
    turning = inertia.copy()
    for k in range(n):
        for side in range(2):
            body = ends[k, side]
            if body < 0:
                continue
            s, f = (si[k], force[k]) if side == 0 else (sj[k], -force[k])
            dot = s[0] * f[0] + s[1] * f[1] + s[2] * f[2]
            for r in range(3):
                turning[body, r, r] += h * h * dot  # f^ s^ = s fᵀ - (s·f) I
                for c in range(3):
                    turning[body, r, c] -= h * h * s[r] * f[c]
    out = np.empty((n, 3, 3))
    for k in range(n):
        m, o = turning[k], out[k]
        for r in range(3):
            for c in range(3):
                p, q, x, y = (c + 1) % 3, (c + 2) % 3, (r + 1) % 3, (r + 2) % 3
                o[r, c] = m[p, x] * m[q, y] - m[p, y] * m[q, x]
        o /= m[0, 0] * o[0, 0] + m[0, 1] * o[1, 0] + m[0, 2] * o[2, 0]
    return out


def angular_joints(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 4: hinges, universal and ball joints."""
    sizes = (10, 25) if quick else (10, 25, 50, 75, 100)
    cases = {
        f"{kind} {n}": (kind, n, build_mechanism(Chain(kind, links=n, ratio=100.0, seed=0)))
        for kind in ("hinge", "universal", "ball")
        for n in sizes
    }
    return _compare_updates(
        "gs17-figure-4",
        "Gain of low-rank updates on chains",
        "GS17 Fig. 4",
        "grows about linearly with joints, alike for all three",
        cases,
        quick,
        progress,
    )


def strong_robot(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 6: robot on a cable, over the number of cable joints."""
    sizes = (4, 20) if quick else (4, 10, 20, 30, 40)
    cases = {f"robot, cable of {n}": ("robot", n, scenes.tank(n).mechanism) for n in sizes}
    return _compare_updates(
        "gs17-figure-6",
        "Gain of low-rank updates on the strong robot",
        "GS17 Fig. 6 (scene of Fig. 5)",
        "gain shrinks with cable joints, below 1 in the end",
        cases,
        quick,
        progress,
    )


def cable_joints(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 7: cable joints alone."""
    sizes = (10, 20) if quick else (5, 10, 20, 40, 60)
    cases = {
        f"cable {n}": ("cable", n, build_mechanism(Chain("cable", links=n, ratio=100.0, seed=0)))
        for n in sizes
    }
    return _compare_updates(
        "gs17-figure-7",
        "Gain of low-rank updates on flexible cables",
        "GS17 Fig. 7",
        "no gain at any number of joints",
        cases,
        quick,
        progress,
    )


def _compare_updates(
    key: str,
    title: str,
    source: str,
    paper: str,
    cases: dict[str, tuple[str, int, Mechanism]],
    quick: bool,
    progress: Progress,
) -> Table:
    """Table of low-rank updates beside LU; cases by name: kind and number of joints, mechanism."""
    rows, curves = [], {}
    for case, (kind, n, m) in cases.items():
        progress(f"{source}, {case}")
        arguments = _under_load(m)
        maximal = arguments[0].maximal
        low, full = LowRankInverse(maximal), FullInverse(maximal)
        state = arguments[1:]
        apart = np.abs(low(*state) - full(*state)).max() / np.abs(full(*state)).max()
        times = _time_calls(
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
    """Stepper after three steps, and the arguments of its inverses: step, mass matrix, poses, rows' forces."""
    s = MaximalStepper(m, H, stabilization="low-rank")
    if s.advance(3) < 3:
        raise RuntimeError(f"{m.name} does not survive three steps")
    return s, H, s._A, s._x, s._R, s._lam


def _time_calls(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Seconds per call, many calls in a turn."""

    def repeat(call: Callable[[], object]) -> Callable[[int], None]:
        def step(n: int) -> None:
            for _ in range(n):
                call()

        return step

    return time_steps({name: repeat(call) for name, call in calls.items()}, rounds, turn=0.005)


def _row(case: str, times: dict[str, Timing], paper: str, target: str, values: dict[str, Any]) -> Row:
    low, full = times["low"].scaled(1e6), times["full"].scaled(1e6)
    return compare(case, low, full, peer_name=LU, paper=paper, target=target, values=values)
