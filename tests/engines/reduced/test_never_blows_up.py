"""Reduced models of random mechanisms stay finite, and gain no energy beyond the work of the forces on them.

Trees and loops of all joint types, some with couplings and tendons; damping as built, a hundredth of it, and none; time
steps from 1 ms to 1/10 s; forces that would move an end effector by up to a radius, constant and changing; 10 s each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import pliant
from oracles.random_mechanisms import KINDS, random_mechanism, tied
from pliant.errors import InputError, PliantError
from pliant_benchmarks.models import relaxed
from pliant_benchmarks.systems import RandomPushes

RUNS, CHUNK = 1000, 50
FEW = 36  # of them, without the mark
DURATION = 10.0  # s
FRAME = 0.02  # s, at least, from one look at the energy to the next; forces change there
DAMPING = (1.0, 0.01, 0.0)
STEPS = (1e-3, 1 / 240, 1 / 60, 1 / 30, 0.1)  # s
SIZES = (0.02, 0.3, 1.0)  # radii
LOADS = ("constant", "swelling", "switching")
# Energy gained beyond the work, over the largest work so far; at least over that of the push to first order.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Trial:
    """Mechanism with its push, (ends, 3) N, and how it is simulated."""

    seed: int
    case: RandomPushes
    force: np.ndarray
    step: float
    load: str
    frequency: float

    @classmethod
    def draw(cls, seed: int) -> Trial:
        """The trial of a seed; draws again where the end effectors cannot move, or cannot be held by springs."""
        for attempt in range(100):
            rng = np.random.default_rng([seed, attempt])
            m = _mechanism(rng, seed)
            ends = rng.choice(m.body_names, size=min(int(rng.integers(1, 3)), m.body_count), replace=False)
            try:
                case = RandomPushes(f"{seed} {attempt}", m.with_end_effectors(*map(str, ends)), 1, least=0.0)
            except InputError:
                continue
            force = case.pushes(SIZES[rng.integers(3)] * rng.uniform(0.5, 1.0))[0]
            return cls(
                seed,
                case,
                force,
                STEPS[rng.integers(len(STEPS))],
                LOADS[rng.integers(len(LOADS))],
                10 ** rng.uniform(-1, 1),
            )
        raise AssertionError(f"seed {seed}: no mechanism that can move")

    def part(self, t: float) -> float:
        """Part of the push at a time."""
        phase = 2 * np.pi * self.frequency * t
        return {"constant": 1.0, "swelling": np.sin(phase), "switching": float(np.sin(phase) >= 0)}[self.load]

    def run(self) -> str:
        """Simulate; returns the reason of a failure, or ""."""
        s = pliant.ReducedSimulation(self.case.model, self.step)
        frame = max(1, round(FRAME / self.step))
        budget = start = s.energy.total
        before, most = self._points(s), self.case.work(self.force)
        for i in range(round(DURATION / self.step / frame)):
            forces = self.part(i * frame * self.step) * self.force
            for end, load in self.case.wrenches(forces).items():
                s.apply_wrench(end, **load)
            try:
                s.step(frame)
            except PliantError as error:
                return f"raises at {s.time:.3g} s: {error}"
            after = self._points(s)
            budget += float((forces * (after - before)).sum())
            before, most = after, max(most, abs(budget - start))
            energy = s.energy.total
            if not (np.isfinite(energy) and np.isfinite(s.poses).all()):
                return f"not finite at {s.time:.3g} s"
            if energy > budget + TOLERANCE * most:
                return f"energy {(energy - budget) / most:.2g} of the work beyond it at {s.time:.3g} s"
        return ""

    def _points(self, s: pliant.Simulation) -> np.ndarray:
        """World positions of the pushed points, (ends, 3)."""
        poses, points = s.poses[self.case.bodies], self.case.m.com[self.case.bodies]
        return np.einsum("eij,ej->ei", poses[:, :3, :3], points) + poses[:, :3, 3]

    def __str__(self) -> str:
        m = self.case.m
        return f"seed {self.seed}: {m}, damping up to {m.damping.max():.2g}, {self.load}, {self.step:.4g} s"


def _mechanism(rng: np.random.Generator, seed: int) -> pliant.Mechanism:
    """Random tree or mechanism with loops, its springs relaxed at its reference pose; the base is fixed."""
    kinds = tuple(kind for kind in KINDS if kind != "free")
    bodies, loops = int(rng.integers(2, 10)), int(seed % 2 and rng.integers(1, 3))
    m = random_mechanism(int(rng.integers(2**31)), bodies, loops, kinds)
    if seed % 3 == 0:
        couplings, tendons = (int(n) for n in rng.integers(0, 2, size=2))
        m = tied(m, int(rng.integers(2**31)), couplings, tendons)
    return relaxed(m.replace(damping=DAMPING[rng.integers(3)] * m.damping))


def failures(seeds: range) -> list[str]:
    """Trials that failed, and why."""
    trials = [Trial.draw(seed) for seed in seeds]
    return [f"{trial}: {why}" for trial in trials if (why := trial.run())]


def test_trials_are_of_all_kinds():
    """Trees and loops, couplings and tendons, all dampings, steps and loads, with forces that act."""
    trials = [Trial.draw(seed) for seed in range(FEW)]
    assert {trial.step for trial in trials} == set(STEPS)
    assert {trial.load for trial in trials} == set(LOADS)
    assert sum(trial.case.m.topology.loops > 0 for trial in trials) >= FEW // 3
    assert sum(trial.case.m.topology.loops == 0 for trial in trials) >= FEW // 3
    for part in ("couplings", "tendons"):
        assert sum(len(getattr(trial.case.m, part)) > 0 for trial in trials) >= 3
    assert sum(trial.case.m.damping.max() == 0 for trial in trials) >= 3
    assert all(np.abs(trial.force).max() > 0 for trial in trials)


def test_a_few():
    assert not failures(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, RUNS, CHUNK))
def test_a_thousand(first):
    assert not failures(range(first, first + CHUNK))
