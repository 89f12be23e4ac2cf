"""Four-bar that swings under gravity: gap of its closed loop and drift of its energy."""

from __future__ import annotations

import math

import numpy as np

import pliant

from ..harness.results import Progress, Row, Table
from ..peers.mujoco import ChainRun, swing_loop
from .chain import TIME_STEPS

__all__ = ["build_four_bar", "loops"]

CRANK = 0.4  # m
SWING = 10.0  # J, about the largest kinetic energy; scale of the drift


def build_four_bar() -> pliant.Mechanism:
    """Crank of 0.4 m, coupler of 1 m and rocker of 0.8 m on a ground of 0.9 m; a ball joint closes the loop.

    MuJoCo's <connect> is a ball joint; the motion is planar all the same.
    """
    a, d = np.zeros(3), np.array([0.9, 0, 0])
    b = CRANK * np.array([math.cos(1.2), 0, math.sin(1.2)])
    gap = d - b
    span = float(np.linalg.norm(gap))
    along = (1.0 + span**2 - 0.8**2) / (2 * span)
    side = np.array([-gap[2], 0, gap[0]]) / span
    c = b + along / span * gap + math.sqrt(1 - along**2) * side
    builder = pliant.Builder("four-bar")
    for name, p, q in (("crank", a, b), ("coupler", b, c), ("rocker", d, c)):
        rod = pliant.shapes.rod((0, 0, 0), q - p, 0.02)
        builder.body(name, position=p, shapes=[rod], density=2000)
    builder.hinge("a", "world", "crank", anchor=a, axis=(0, 1, 0))
    builder.hinge("b", "crank", "coupler", anchor=b, axis=(0, 1, 0))
    builder.hinge("d", "world", "rocker", anchor=d, axis=(0, 1, 0))
    builder.ball("c", "coupler", "rocker", anchor=c)
    builder.end_effectors("coupler")
    return builder.build()


def loops(quick: bool, progress: Progress) -> Table:
    """Largest gap of the closing joint over the crank's length, beside MuJoCo."""
    time = 2.0 if quick else 60.0
    m = build_four_bar()
    rows = []
    for label in ("1/60",) if quick else (".001", ".01", "1/60"):
        h = TIME_STEPS[label]
        progress(f"four-bar, h = {label}")
        gap, drift = _swing(m, h, time)
        row = Row(f"four-bar, h = {label} s", ours=gap / CRANK, target="1e-4")
        row.values["energy drift over 10 J"] = drift / SWING
        for name in ChainRun.SETTINGS:
            found = swing_loop(m, name, h, time)
            if found is None:
                row.values[f"MuJoCo {name}"] = "warns of numbers too large"
                continue
            row.values[f"MuJoCo {name}: energy drift over 10 J"] = found[1] / SWING
            if row.peer is None or found[0] / CRANK < row.peer:
                row.peer, row.peer_name = found[0] / CRANK, f"MuJoCo {name}"
        if row.peer is not None:
            row.ratio = row.peer / row.ours if row.ours else None
        rows.append(row)
    return Table(
        "constrained",
        "loops",
        "How far a four-bar comes apart",
        "gap over the crank's length, largest",
        rows,
        settings=f"Swings under gravity for {time:g} s. MuJoCo closes the loop by a soft constraint; of its "
        "integrators the one with the smallest gap counts.",
    )


def _swing(m: pliant.Mechanism, h: float, time: float) -> tuple[float, float]:
    """Largest gap and energy drift, m and J, of pliant."""
    simulation = pliant.ConstrainedSimulation(m, h)
    start, gap, drift = simulation.energy.total, 0.0, 0.0
    for _ in range(round(time / h)):
        simulation.step()
        gap = max(gap, float(simulation.violation))
        drift = max(drift, abs(simulation.energy.total - start))
    return gap, drift
