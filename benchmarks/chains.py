"""Runs of a chain in any engine: whether one holds, and how its kinetic energy goes."""

from __future__ import annotations

import math
from time import process_time

import numpy as np
from peers import Chain, Run
from peers import build as build_run

__all__ = ["GAIN", "GAP", "STEPS", "holds", "kinetic", "peak"]

STEPS = {".001": 0.001, ".01": 0.01, "1/60": 1 / 60, ".1": 0.1}
GAIN, GAP = 0.05, 0.02  # allowed energy gain and joint separation


def holds(name: str, setting: str, system: Chain, h: float, time: float, patience: float) -> str:
    """ "" if the run holds, else what went wrong: "not finite", "energy", "gap" or "slow"."""
    run = build_run(name, system, h, setting)
    before = sum(run.energy())
    run.step(1)  # may compile
    start = process_time()
    chunk = max(1, round(0.1 / h))
    for _ in range(math.ceil(time / h / chunk)):
        run.step(chunk)
        if not run.finite():
            return "not finite"
        after = sum(run.energy())
        if not after - before < GAIN * system.scale:  # also when it is not a number
            return "energy"
        if not run.violation() < GAP * system.total_length:
            return "gap"
        if process_time() - start > patience:
            return "slow"
    return ""


def kinetic(run: Run, system: Chain, h: float, time: float, patience: float) -> np.ndarray | str:
    """Kinetic energy after every step, or how the run failed: more of it than the fall can give, or slow.

    Elastic energy is left out of it. GS17's rows of 1e12 N/m are stretched a little more than their forces say, and
    by that alone they would fail.
    """
    most = (1 - math.cos(system.angle) + GAIN) * system.scale
    out = np.empty(round(time / h))
    run.step(1)  # may compile
    start = process_time()
    for i in range(out.size):
        run.step(1)
        out[i] = run.energy()[0]
        if not run.finite() or not out[i] < most:
            return f"blows up at {i * h:.2f} s"
        if process_time() - start > patience:
            return f"too slow: {i * h:.2f} s in {patience:g} s"
    return out


def peak(values: np.ndarray) -> float:
    """The highest value of the parabola through the largest sample and its neighbours."""
    i = int(np.clip(np.argmax(values), 1, len(values) - 2))
    a, b, c = values[i - 1 : i + 2]
    bend = a - 2 * b + c
    return float(b if bend == 0 else b - (a - c) ** 2 / (8 * bend))
