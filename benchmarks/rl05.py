"""RL05's linkages without springs, forces on them, and the exact algorithms that the adaptive one is compared with.

Linkages are RL05's: no springs, forces that keep their direction, explicit steps of `q += h² q''`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from measure import Timing
from turns import summary

import pliant

__all__ = ["AFTERWARDS", "TURN", "Turns", "add_steps", "chosen", "exact", "linkage", "pushed", "simulation"]

NOTHING = np.zeros(3)
H = 1e-3
TURN = 10  # steps of the adaptive engine in a round
AFTERWARDS = "first of a turn, µs"  # see `add_steps`


def linkage(name: str, size: int | None = None) -> pliant.Mechanism:
    """A gallery linkage without springs."""
    make = getattr(pliant.gallery, name)
    return (make() if size is None else make(size)).with_stiffness("*", 0.0, 0.0)


def simulation(m: pliant.Mechanism, tolerance: float) -> pliant.QuasistaticSimulation:
    """Explicit steps of 1 ms without gravity."""
    return pliant.QuasistaticSimulation(m, H, NOTHING, tolerance=tolerance, implicit=False)


def pushed(m: pliant.Mechanism, tolerance: float, bodies: Sequence[int], seed: int = 0) -> Any:
    """A simulation with random unit forces on bodies, scaled to their masses."""
    s, rng, size = simulation(m, tolerance), np.random.default_rng(seed), float(m.mass.mean())
    for body in bodies:
        force = rng.normal(size=3)
        s.apply_wrench(m.body_names[body], force=size * force / np.linalg.norm(force))
    return s


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


def exact(m: pliant.Mechanism, bodies: Sequence[int]) -> dict[str, Callable[[], object]]:
    """A whole step of the articulated-body algorithm and of the DCA, from the same start, under the same forces."""
    aba, dca = pushed(m, 0.1, bodies), pushed(m, 0.1, bodies)
    for s in (aba, dca):
        s._load()
    tree = dca._solver.tree

    def divide() -> None:
        tree.up()
        tree.state.q[:] += H**2 * tree.down()  # hinges and slides: a coordinate per dof

    return {"ABA": lambda: aba._solver.articulated(1, H**2), "DCA": divide}


def add_steps(turns: Turns, name: str, s: Any) -> None:
    """A round is one step, timed by itself as `name + AFTERWARDS`, and then `TURN - 1` more, timed together.

    The others' turns have swept the caches: the first step has to fetch from memory what it works on, which takes as
    long as computing it.
    """
    turns.add(name + AFTERWARDS, s.step)
    turns.add(name, lambda: s.step(TURN - 1), steps=TURN - 1)


class Turns:
    """Contenders that are timed one call at a time, in turns; some only every so many rounds."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[Callable[[], object], int, int]] = {}
        self._times: dict[str, list[float]] = {}

    def add(self, name: str, call: Callable[[], object], *, every: int = 1, steps: int = 1) -> None:
        """`every`: rounds from turn to turn. `steps`: how many a call takes."""
        self._calls[name], self._times[name] = (call, every, steps), []

    @property
    def names(self) -> list[str]:
        """Of the contenders."""
        return list(self._calls)

    def round(self, number: int) -> None:
        """One turn for everybody whose round it is."""
        for name, (call, every, steps) in self._calls.items():
            if number % every == 0:
                start = perf_counter()
                call()
                self._times[name].append((perf_counter() - start) / steps)

    def __getitem__(self, name: str) -> Timing:
        return summary(self._times[name])
