"""The quasi-static engine: RL05's Table 1 and Figs. 5, 7, 8, beside an O(n) articulated-body algorithm and the DCA.

`python benchmarks/quasistatic.py speed` (or table, millipede, scaling, scenes) runs one part. Linkages are RL05's:
without springs, forces that keep their direction, explicit steps of `q += h^2 q''`.
"""

# ruff: noqa: E402 - the number of threads is set before numpy comes in
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from measure import show
from rich.console import Console

import pliant
from pliant.engines.quasistatic.solver import Solver

TOLERANCES = (3, 7, 11, 15, 19)  # powers of 1/2
PAPER = {  # RL05 Table 1: milliseconds, joints computed, displacement error
    1: ((0.6, 0.9, 1.4, 1.9, 2.4), (25, 37, 47, 59, 73), (6e-5, 2e-6, 1e-7, 4e-9, 2e-9)),
    10: ((0.9, 1.3, 1.8, 2.6, 3.1), (32, 45, 56, 75, 85), (1e-4, 1e-4, 4e-7, 4e-8, 1e-8)),
    100: ((2.7, 4.1, 6.4, 7.8, 8.4), (39, 80, 145, 189, 206), (8e-4, 6e-4, 7e-5, 3e-6, 1e-7)),
    1000: ((17.8, 21.4, 42.6, 49.2, 49.9), (41, 149, 830, 1060, 1086), (6e-3, 2e-3, 7e-5, 2e-6, 6e-8)),
}
NOTHING = np.zeros(3)
WARM = 3  # steps before those that are timed: the tree is assembled, the method chosen


def linkage(name: str, size: int | None = None) -> pliant.Mechanism:
    """A gallery linkage without springs."""
    make = getattr(pliant.gallery, name)
    return (make() if size is None else make(size)).with_stiffness("*", 0.0, 0.0)


def simulation(
    m: pliant.Mechanism, tolerance: float, h: float = 1e-3, **options: Any
) -> pliant.QuasistaticSimulation:
    return pliant.QuasistaticSimulation(m, h, NOTHING, tolerance=tolerance, implicit=False, **options)


def push(s: Any, m: pliant.Mechanism, bodies: Sequence[int], seed: int = 0) -> None:
    """Random unit forces on bodies, scaled to their masses."""
    rng = np.random.default_rng(seed)
    size = float(m.mass.mean())
    for body in bodies:
        force = rng.normal(size=3)
        s.apply_wrench(m.body_names[body], force=size * force / np.linalg.norm(force))


def chosen(m: pliant.Mechanism, count: int, neighbours: bool, seed: int = 1) -> list[int]:
    """Bodies to push: anywhere, or one and those next to it in the tree."""
    rng = np.random.default_rng(seed)
    n = m.body_count
    if not neighbours:
        return sorted(int(b) for b in rng.choice(n, size=count, replace=False))
    around: list[list[int]] = [[] for _ in range(n)]
    for body, parent in enumerate(m.topology.parent.tolist()):
        if parent >= 0:
            around[body].append(parent)
            around[parent].append(body)
    out = [int(rng.integers(n))]
    seen = set(out)
    for body in out:
        for other in around[body]:
            if other not in seen and len(out) < count:
                seen.add(other)
                out.append(other)
    return out


class Contender:
    """Steps of one method, timed one call at a time."""

    def __init__(self, call: Any, count: int = 1):
        self.call, self.count, self.times = call, count, []

    def go(self) -> None:
        start = perf_counter()
        self.call()
        self.times.append((perf_counter() - start) / self.count)

    @property
    def typical(self) -> float:
        return median(self.times)

    @property
    def spread(self) -> str:
        low, high = np.percentile(self.times, [10, 90])
        return f"{1e6 * low:.0f}-{1e6 * high:.0f}"


def others(m: pliant.Mechanism, bodies: Sequence[int]) -> tuple[Contender, Contender]:
    """The articulated-body algorithm and the DCA, a whole step each, from the same start and under the same forces."""
    aba, dca = simulation(m, 0.1), simulation(m, 0.1)
    for s in (aba, dca):
        push(s, m, bodies)
        s._load()

    def divide(solver: Solver) -> None:
        t = solver.tree
        t.up()
        t.state.q[:] += 1e-6 * t.down()  # hinges and slides: a coordinate per dof

    return Contender(lambda: aba._solver.articulated(1, 1e-6)), Contender(lambda: divide(dca._solver))


def speed(rounds: int = 9, steps: int = 20) -> dict[str, Any]:
    """One force: a step at several tolerances, the articulated-body algorithm and the DCA, taking turns."""
    out: dict[str, Any] = {}
    rows = []
    for name in ("millipede", "molecule"):
        m = linkage(name)
        bodies = chosen(m, 1, False)
        aba, dca = others(m, bodies)
        found: dict[str, Contender] = {}
        sims = {}
        for power in TOLERANCES:
            s = sims[power] = simulation(m, 2.0**-power)
            push(s, m, bodies)
            s.step(5)
            found[f"2^-{power}"] = Contender(lambda s=s: s.step(steps), steps)
        aba.call(), dca.call()
        for turn in range(rounds):
            aba.go()
            for contender in found.values():
                contender.go()
            if turn % 3 == 0:
                dca.go()
        out[name] = {"aba": aba.typical, "dca": dca.typical, **{k: c.typical for k, c in found.items()}}
        for (key, contender), s in zip(found.items(), sims.values(), strict=True):
            joints = len(s.active)
            rows.append(
                [
                    name,
                    key,
                    f"{1e6 * contender.typical:.0f} ({contender.spread})",
                    joints,
                    f"{1e3 * aba.typical:.1f}",
                    f"{aba.typical / contender.typical:.0f}x",
                    f"{1e3 * dca.typical:.0f}",
                    f"{dca.typical / contender.typical:.0f}x",
                ]
            )
    show(
        "one force, a step (median, 10-90 %)",
        ["linkage", "tolerance", "pliant, µs", "joints", "ABA, ms", "faster", "DCA, ms", "faster"],
        rows,
    )
    return out


def table(
    forces: Sequence[int] = (1, 10, 100, 1000),
    steps: int = 40,
    which: Sequence[str] = ("neighbouring", "random"),
) -> dict[str, Any]:
    """RL05 Table 1 (Figs. 7 and 8): time of a step, joints computed, relative displacement error after all steps."""
    m = linkage("molecule")
    out: dict[str, Any] = {}
    rows = []
    for place in which:
        for count in forces:
            bodies = chosen(m, count, place == "neighbouring")
            exact = simulation(m, 2.0**-40)
            push(exact, m, bodies)
            start = exact.poses[:, :3, 3].copy()
            exact.step(WARM + steps)
            moved = exact.poses[:, :3, 3] - start
            aba, _ = others(m, bodies)
            aba.call()
            sims, timed, joints = [], [], []
            for power in TOLERANCES:
                s = simulation(m, 2.0**-power)
                push(s, m, bodies)
                s.step(WARM)
                sims.append(s)
                timed.append(Contender(s.step))
                joints.append([])
            for _ in range(steps):
                aba.go()
                for s, contender, computed in zip(sims, timed, joints, strict=True):
                    contender.go()
                    computed.append(len(s.active))
            for column, (power, s) in enumerate(zip(TOLERANCES, sims, strict=True)):
                error = np.abs(s.poses[:, :3, 3] - start - moved).max() / np.abs(moved).max()
                theirs = [PAPER[count][row][column] for row in range(3)]
                mean = float(np.mean(timed[column].times))
                out[f"{place} {count} 2^-{power}"] = {
                    "seconds": mean,
                    "joints": float(np.mean(joints[column])),
                    "displacement error": float(error),
                    "aba": float(np.mean(aba.times)),
                    "full steps": s.effort.full_steps,
                }
                rows.append(
                    [
                        f"{count} {place}",
                        f"2^-{power}",
                        f"{1e3 * mean:.3f}",
                        f"{theirs[0]:g}",
                        f"{np.mean(joints[column]):.0f}",
                        theirs[1],
                        f"{error:.0e}",
                        f"{theirs[2]:.0e}",
                        f"{mean / np.mean(aba.times):.3f}",
                    ]
                )
    show(
        f"molecule of 50,000 joints, {steps} steps (RL05's figures beside)",
        ["forces", "tolerance", "ms", "RL05", "joints", "RL05", "displacement error", "RL05", "over ABA"],
        rows,
    )
    return out


def millipede(steps: int = 40) -> dict[str, Any]:
    """RL05 Fig. 5: one force on a leg of the millipede, tolerances from 1 to 2^-19."""
    m = linkage("millipede")
    bodies = chosen(m, 1, False)
    aba, dca = others(m, bodies)
    aba.call(), dca.call()
    sims = {power: simulation(m, 2.0**-power) for power in range(0, 20, 2)}
    timed = {}
    for power, s in sims.items():
        push(s, m, bodies)
        s.step(WARM)
        timed[power] = Contender(s.step)
    for turn in range(steps):
        aba.go()
        if turn % 10 == 0:
            dca.go()
        for contender in timed.values():
            contender.go()
    rows = [
        [
            f"2^-{p}",
            f"{1e3 * np.mean(c.times):.3f}",
            len(sims[p].active),
            f"{np.mean(c.times) / np.mean(aba.times):.3f}",
        ]
        for p, c in timed.items()
    ]
    title = f"millipede of 13,000 joints, one force: ABA {1e3 * aba.typical:.1f} ms, DCA {1e3 * dca.typical:.0f} ms"
    show(title, ["tolerance", "ms", "joints", "over ABA"], rows)
    return {
        "aba": aba.typical,
        "dca": dca.typical,
        **{f"2^-{p}": float(np.mean(c.times)) for p, c in timed.items()},
    }


def scaling(sizes: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)) -> dict[str, Any]:
    """A local step and memory, each size in a process of its own."""
    out, rows = {}, []
    for size in sizes:
        done = subprocess.run(
            [sys.executable, str(Path(__file__)), "one", str(size)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            Console().print(f"[red]{size}: {done.stderr.strip().splitlines()[-1]}[/red]")
            continue
        r = out[str(size)] = json.loads(done.stdout.strip().splitlines()[-1])
        rows.append(
            [
                f"{size:,}",
                r["depth"],
                *(f"{1e6 * r[f'2^-{p}']:.0f}" for p in (3, 7)),
                r["joints"],
                f"{1e3 * r['aba']:.2f}",
                f"{r['build']:.1f}",
                f"{r['bytes'] / 2**20:,.0f}",
            ]
        )
    show(
        "a chain-like molecule, one force: a local step",
        ["joints", "depth", "2^-3, µs", "2^-7, µs", "computed", "ABA, ms", "set up, s", "MiB"],
        rows,
    )
    return out


def one(size: int) -> None:
    """One row of `scaling`, as JSON."""
    import resource

    m = linkage("molecule", size)
    start = perf_counter()
    sims = {3: simulation(m, 2.0**-3)}
    push(sims[3], m, [size // 2])
    sims[3].step()
    build = perf_counter() - start
    out = {"build": build, "depth": int(sims[3]._solver.tree.model.tree.depth.max())}
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    arrays = sims[3]._solver.tree
    held = sum(a.nbytes for group in (arrays.arrays, arrays.state) for a in group)
    out |= {"peak": peak, "bytes": held}
    for power in (3, 7):
        s = sims.pop(power, None) or simulation(m, 2.0**-power)
        push(s, m, [size // 2])
        s.step(5)
        contender = Contender(lambda s=s: s.step(10), 10)
        for _ in range(9):
            contender.go()
        out[f"2^-{power}"] = contender.typical
        out["joints"] = len(s.active)
        if power == 7:
            s._solver.articulated()
            full = Contender(s._solver.articulated)
            for _ in range(5):
                full.go()
            out["aba"] = full.typical
        del s
    print(json.dumps(out))


def scenes() -> dict[str, Any]:
    """RL05's bicycle chain: 30 links, 10,000 steps; with springs, and closed to a loop of hinges."""
    out, rows = {}, []
    for title, m in (("open", pliant.gallery.bicycle_chain(30)), ("loop", pliant.gallery.loop())):
        for tolerance in (0.1, 1e-3):
            s = pliant.QuasistaticSimulation(m, 1e-3, tolerance=tolerance)
            s.apply_wrench(m.body_names[-1], force=(0.1, 0.05, 0.1))
            s.step(10)
            start = perf_counter()
            s.step(10_000)
            took = (perf_counter() - start) / 10_000
            out[f"{title} {tolerance:g}"] = took
            rows.append([title, f"{tolerance:g}", f"{1e6 * took:.1f}", len(s.active)])
    show("a chain of 30 links, 10,000 steps", ["chain", "tolerance", "µs a step", "joints at last"], rows)
    return out


PARTS = {"speed": speed, "table": table, "millipede": millipede, "scaling": scaling, "scenes": scenes}


def run() -> dict[str, Any]:
    """Everything."""
    return {name: part() for name, part in PARTS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "one", "all"])
    parser.add_argument("size", nargs="?", type=int, default=1000)
    given = parser.parse_args()
    if given.part == "one":
        one(given.size)
    elif given.part == "all":
        run()
    else:
        PARTS[given.part]()


if __name__ == "__main__":
    main()
