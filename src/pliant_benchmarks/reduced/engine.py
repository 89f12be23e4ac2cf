"""Reduced engine: large steps, calls from Python, reduction, batches, natural frequencies."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

import pliant

from ..harness.results import Progress, Row, Table
from ..harness.timing import Timing, compare, time_in_turns
from ..peers.mujoco import PushedMechanism
from ..systems import STEP, Pushed, settle
from .tvcg import CASES

__all__ = ["batches", "calls", "frequencies", "large_steps", "reducing"]

g = pliant.gallery
SLOW = 1 / 60  # s


def large_steps(quick: bool, progress: Progress) -> Table:
    """Tip at rest at steps of 1/60 s, against steps of 0.1 ms."""
    rows = []
    for name, (make, *_) in CASES.items():
        if quick and name != "helix(50)":
            continue
        progress(f"{name} at 1/60 s")
        case = Pushed(name, make)
        large = case.simulation(SLOW)
        start = case.displacement(large.record(600).poses)  # raises if the motion is not finite
        large.step(40_000)  # eleven minutes: the ladder swings once in five seconds with hardly any damping
        slow = case.displacement(large.poses)
        fine = case.displacement(settle(case.simulation(1e-4), float(case.model.frequencies()[0])))
        size = float(np.linalg.norm(fine))
        rows.append(
            Row(
                name,
                100 * float(np.linalg.norm(slow - fine)) / size,
                target="at most 2 %",
                stable="yes" if np.isfinite(start).all() and np.isfinite(slow).all() else "not finite",
                values={
                    "moved, of radius": size / case.m.radius,
                    "farthest, of moved": float(np.linalg.norm(start, axis=1).max()) / size,
                },
            )
        )
    title = "Settled at 1/60 s, against settled at 0.1 ms"
    return Table("reduced", "large-steps", title, "% of the motion", rows)


def calls(quick: bool, progress: Progress) -> Table:
    """Overhead of a call from Python."""
    rows = []
    for name in ("helix(50)", "arm(), 5 end effectors"):
        progress(f"calls of step() on {name}")
        s, n = Pushed(name, CASES[name][0]).simulation(), 2000

        def one_by_one(s: pliant.ReducedSimulation = s, n: int = n) -> None:
            for _ in range(n):
                s.step()

        times = time_in_turns({"calls": one_by_one, "inside": lambda s=s, n=n: s.step(n)}, 7 if quick else 15)
        each, inside = (times[key].scaled(1e6 / n) for key in ("calls", "inside"))
        cost = Timing(each.median - inside.median, each.spread + inside.spread, each.least - inside.least)
        rows.append(
            compare(
                name, cost, target="under 1.5", values={"step()": each.median, "in step(n)": inside.median}
            )
        )
    return Table("reduced", "calls", "What a call from Python adds to a step", "µs", rows)


def reducing(quick: bool, progress: Progress) -> Table:
    """Reduction of a mechanism, compiled."""
    progress("making models")
    given: dict[str, tuple[pliant.Mechanism, int, str]] = {
        "helix(400)": (g.helix(400), 0, "under 20"),
        "hand(), 5 end effectors": (g.hand(), 0, "under 20"),
        "helix(50), 6 modes": (g.helix(50), 6, ""),
    }
    times = time_in_turns(
        {name: lambda m=m, k=k: pliant.reduce(m, modes=k) for name, (m, k, _) in given.items()},
        5 if quick else 11,
    )
    rows = [compare(name, times[name].scaled(1e3), target=target) for name, (*_, target) in given.items()]
    return Table("reduced", "reduce", "Making a reduced model", "ms", rows, settings="Processor time.")


def batches(quick: bool, progress: Progress) -> Table:
    """A thousand copies on one core and on all, beside MuJoCo on as many threads."""
    cores = os.cpu_count() or 1
    copies, n, few, rows = 1000, 10 if quick else 50, 200, []
    for name, make in (("hand()", g.hand), ("helix(50)", lambda: g.helix(50))):
        progress(f"a thousand copies of {name}")
        case = Pushed(name, make)
        batch = {t: pliant.ReducedBatch(case.model, STEP, copies, threads=t) for t in (1, cores)}
        for b in batch.values():
            b.apply_wrench(case.tip, force=np.outer(np.linspace(0.0, 1.0, copies), case.force))
        peer = PushedMechanism(case)
        integrator, _ = peer.fastest(quick)
        data = [mujoco.MjData(peer.model) for _ in range(cores)]
        contenders: dict[str, Callable[[], object]] = {
            str(t): lambda b=b: b.step(n) for t, b in batch.items()
        }
        with ThreadPoolExecutor(cores) as pool:
            if integrator is not None:
                contenders["MuJoCo"] = lambda pool=pool, peer=peer, data=data: list(
                    # mj_step releases the interpreter's lock
                    pool.map(lambda d: mujoco.mj_step(peer.model, d, nstep=few), data)
                )
            times = time_in_turns(contenders, 5 if quick else 11, perf_counter)
        rate = {t: 1e-6 * copies * n / times[str(t)].median for t in batch}
        spread = rate[cores] * times[str(cores)].spread / times[str(cores)].median
        row = Row(f"{name}, {copies} copies, {cores} threads", rate[cores], ours_spread=spread)
        if integrator is not None:
            row.peer = 1e-6 * few * cores / times["MuJoCo"].median
            row.peer_name, row.ratio = f"MuJoCo {integrator}, {cores} threads", rate[cores] / row.peer
        row.values = {"on one thread": rate[1], "speed-up": rate[cores] / rate[1]}
        row.target = "near-linear over cores"
        rows.append(row)
    settings = "Wall clock, so other work on the machine counts; all poses of every copy after every step."
    title = "Many copies of a model over all cores"
    return Table("reduced", "batches", title, "million steps a second", rows, settings=settings)


def frequencies(quick: bool, progress: Progress) -> list[Table]:
    """First natural frequency of reduced models, against that of the full mechanism."""
    progress("frequencies")
    kinds: dict[str, dict[str, Any]] = {
        "6 modes": {"modes": 6},
        "operational": {"inertia": "operational"},
        "accelerability, the paper's": {"inertia": "accelerability"},
    }
    given = {
        "helix(50)": (g.helix(50), 1),
        "arm()": (g.arm(), 1),
        "y()": (g.y(), 1),
        "ladder(12)": (g.ladder(12), 10),
    }
    rows = []
    for name, (m, target) in given.items():
        exact = float(pliant.Configuration(m).frequencies(1)[0])

        def error(m: pliant.Mechanism = m, exact: float = exact, **options: Any) -> float:
            return 100 * (float(pliant.reduce(m, **options).frequencies()[0]) / exact - 1)

        rows.append(
            Row(
                f"{name}, {exact:.4g} Hz",
                error(),
                target=f"within {target} %; 6 modes within {0.1 if target == 1 else 0.5} %",
                values={kind: error(**options) for kind, options in kinds.items()},
            )
        )
    title = "Error of the first natural frequency"
    settings = "Condensed inertia, the default; in the note, other choices."
    return [Table("reduced", "frequencies", title, "%", rows, settings=settings)]
