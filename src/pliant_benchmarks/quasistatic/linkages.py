"""RL05's linkages and forces, and the exact algorithms beside the adaptive one.

As in RL05: no springs, forces of constant world direction, explicit steps `q += h² q''`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pliant

from ..harness.timing import Turns

__all__ = ["AFTERWARDS", "TURN", "add_steps", "build_linkage", "choose_bodies", "exact_steps", "push"]

H = 1e-3  # s
TURN = 10  # steps of the adaptive engine in a round
AFTERWARDS = "first of a turn, µs"  # see `add_steps`


def build_linkage(name: str, *arguments: int) -> pliant.Mechanism:
    """Linkage of the gallery without springs."""
    return getattr(pliant.gallery, name)(*arguments).with_stiffness("*", 0.0, 0.0)


def push(
    m: pliant.Mechanism,
    tolerance: float,
    bodies: Sequence[int],
    seed: int = 0,
    timestep: float = H,
    **options: Any,
) -> pliant.QuasistaticSimulation:
    """Simulation in explicit steps, with forces of random direction and the size of a mean mass on bodies."""
    s = pliant.QuasistaticSimulation(m, timestep, np.zeros(3), tolerance=tolerance, implicit=False, **options)
    rng, size = np.random.default_rng(seed), float(m.mass.mean())
    for body in bodies:
        force = rng.normal(size=3)
        s.apply_wrench(m.body_names[body], force=size * force / np.linalg.norm(force))
    return s


def choose_bodies(m: pliant.Mechanism, count: int, neighbours: bool, seed: int = 1) -> list[int]:
    """Bodies to push: random ones, or a random one and its nearest in the tree."""
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


def exact_steps(m: pliant.Mechanism, bodies: Sequence[int]) -> dict[str, Callable[[], object]]:
    """Functions that take a whole step of the articulated-body algorithm and of the DCA, under the same forces."""
    aba, dca = push(m, 0.1, bodies), push(m, 0.1, bodies)
    for s in (aba, dca):
        s._load()
    tree = dca._solver.tree

    def divide() -> None:
        tree.up()
        dca._solver.q[:] += H**2 * tree.down()  # hinges and slides: a coordinate per dof

    return {"ABA": lambda: aba._solver.step_aba(1, H**2), "DCA": divide}


def add_steps(turns: Turns, name: str, s: pliant.QuasistaticSimulation) -> None:
    """Add a simulation: one step, timed by itself as `name + AFTERWARDS`, then `TURN - 1` more, timed together.

    Turns of the others have evicted its arrays from the caches: the first step loads them from memory, which takes as
    long as computing.
    """
    turns.add(name + AFTERWARDS, s.step)
    turns.add(name, lambda: s.step(TURN - 1), steps=TURN - 1)
