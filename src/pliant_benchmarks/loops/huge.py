"""Chain of 100,000 or 1,000,000 hinges: a constrained step at 10 ms, one linear solve a step. In its own process."""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import numpy as np

from ..harness.process import call_apart, peak_memory
from ..harness.results import Progress, Row, Table
from ..harness.timing import Timing, compare, time_steps
from ..peers.pliant import build_mechanism
from ..systems import GRAVITY, Chain

__all__ = ["chains", "measure_chain"]

STEP = 0.01  # s
COUNT = 10  # steps of the run that is compared with finer ones
ONCE = 0.1  # tolerance, rad: one solve a step
OPTION = "PLIANT_BENCH_HUGE"


def chains(quick: bool, progress: Progress) -> Table:
    """A step of long chains, in µs a joint."""
    sizes = (10_000,) if quick else (10_000, 100_000, *([1_000_000] if os.environ.get(OPTION) else []))
    rows = []
    for size in sizes:
        progress(f"chain of {size:,} hinges")
        case = f"{size:,} hinges"
        found = call_apart(measure_chain, size, 3 if quick else 7)
        if isinstance(found, str):
            rows.append(Row(case, stable=f"pliant: {found}"))
            continue
        row = compare(case, Timing(*found.pop("once")).scaled(1e6 / size))
        if size >= 100_000:
            row.paper = "0.84 µs a link (1,076,748 links, h = 10 ms)"
        row.stable = found.pop("stable")
        row.values = found
        rows.append(row)
    return Table(
        "loops",
        "loops-chain",
        "A step of a long chain of hinges at 10 ms",
        "µs a joint",
        rows,
        "M-ABD",
        "One solve a step, one thread, each size in a process of its own; falls under gravity from 45 degrees. "
        f"Error: farthest place of a link after {COUNT} steps from a run at an eighth of the step, iterated to "
        f"1e-7 rad, over its way. The paper's figure is of its own machine. {OPTION}=1 adds 1,000,000 hinges.",
    )


def measure_chain(size: int, rounds: int) -> dict[str, Any]:
    """Timings of a step with one solve and with as many as it takes, error, memory; plain data."""
    import pliant

    start = perf_counter()
    m = build_mechanism(Chain("hinge", size))
    built = perf_counter()

    def simulate(h: float, tolerance: float) -> pliant.ConstrainedSimulation:
        return pliant.ConstrainedSimulation(m, h, gravity=(0, 0, -GRAVITY), tolerance=tolerance)

    once = simulate(STEP, ONCE)
    packed = perf_counter()
    fine = simulate(STEP / 8, 1e-7)  # the way is short beside the chain: 1e-5 rad are no reference
    energy = once.energy.total
    once.step(COUNT)
    solves = once.effort.solves / COUNT
    fine.step(8 * COUNT)
    moved = np.linalg.norm(fine.poses[:, :3, 3] - m.reference_poses[:, :3, 3], axis=1).max()
    error = np.linalg.norm(once.poses[:, :3, 3] - fine.poses[:, :3, 3], axis=1).max() / moved
    gained = (once.energy.total - energy) / once.energy.kinetic
    del fine  # memory
    whole = simulate(STEP, 1e-5)
    times = time_steps({"once": once.step, "whole": whole.step}, rounds, most=10)
    bad = "" if abs(gained) < 0.05 and error < 0.05 else f"error {error:.2g}, energy gained {gained:.2g}"
    return {
        "once": list(times["once"]),
        "stable": f"pliant: {bad}" if bad else "yes",
        "solves a step": solves,
        "error, %": 100 * float(error),
        "energy gained, of kinetic": float(gained),
        "iterated to 1e-5 rad, µs a joint": 1e6 * times["whole"].median / size,
        "built, s": built - start,
        "set up, s": packed - built,
        "MiB at most": peak_memory(),
    }
