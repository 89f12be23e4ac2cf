"""Motion under a push that swells: pliant's run, and whether a run is stable, closed and near the true motion."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

import pliant

from ..systems import Floats, Pushed

__all__ = ["BOUND", "SIDEWAYS", "Ours", "Run", "Trial", "follow"]

SIDEWAYS = np.array([1.0, 0.0, 0.0])
DURATION = 0.5  # s, in which the push swells from nothing
FINER = 8  # steps of the true motion in one step
BOUND = 0.05  # of the largest displacement: allowed error of any body, and gap of any loop
GAIN = 0.05  # of the push's work: allowed gain of energy


class Run(Protocol):
    """Simulation of a pushed mechanism at one time step and setting, from rest in the reference pose."""

    def push(self, part: float = 1.0) -> None:
        """Apply a part of the force from now on."""
        ...

    def step(self, n: int) -> None:
        """Advance by n steps."""
        ...

    @property
    def failed(self) -> bool:
        """Whether the engine gave up or warned."""
        ...

    @property
    def origins(self) -> Floats:
        """World positions of all bodies' origins."""
        ...

    @property
    def pushed(self) -> Floats:
        """World position of the point at which the force acts."""
        ...

    @property
    def energy(self) -> float:
        """Kinetic and elastic energy, J."""
        ...

    @property
    def gap(self) -> float:
        """Largest gap of a loop, m."""
        ...


class Ours:
    """Run of `pliant.ConstrainedSimulation`, without gravity."""

    def __init__(self, case: Pushed, h: float):
        self.case, self.failed = case, False
        self.simulation = pliant.ConstrainedSimulation(case.m, h, gravity=(0, 0, 0))

    def push(self, part: float = 1.0) -> None:
        """Apply a part of the force from now on."""
        self.case.push(self.simulation, part)

    def step(self, n: int) -> None:
        """Advance by n steps."""
        try:
            self.simulation.step(n)
        except pliant.errors.PliantError:  # not finite
            self.failed = True

    @property
    def origins(self) -> Floats:
        """World positions of all bodies' origins."""
        return self.simulation.poses[:, :3, 3]

    @property
    def pushed(self) -> Floats:
        """World position of the point at which the force acts."""
        return self.simulation.poses[self.case.index][:3] @ np.append(self.case.point, 1.0)

    @property
    def energy(self) -> float:
        """Kinetic and elastic energy, J."""
        return self.simulation.energy.total

    @property
    def gap(self) -> float:
        """Largest gap of a loop, m."""
        return float(self.simulation.violation)


def follow(case: Pushed, h: float) -> Floats:
    """Positions of all bodies at the end of the push: pliant in steps of h / 8."""
    trial = Trial(case, h / FINER, Ours(case, h / FINER))
    trial.swell()
    if trial.run.failed:
        raise RuntimeError(f"{case.name}: the reference run fails")
    return trial.run.origins.copy()


class Trial:
    """A run under the push, with the work that the push has done.

    Attributes:
        run: the simulation, at time step `h`.
        work: done by the push while it swelled, J.
        error: largest distance of a body from its true place over the largest displacement, after `judge`.
        problem: why the run does not count; "" if it does.
    """

    def __init__(self, case: Pushed, h: float, run: Run):
        self.case, self.h, self.run = case, h, run
        self.error, self.problem, self.work = float("nan"), "", 0.0
        self._far = float("nan")  # largest displacement of the true motion, m
        self._held = run.pushed.copy()  # place of the push when it has swollen

    def swell(self) -> None:
        """Push for half a second, with a force that grows smoothly to its full size."""
        count = round(DURATION / self.h)
        place = self.run.pushed
        for k in range(count):
            part = math.sin(0.5 * math.pi * (k + 0.5) / count) ** 2
            self.run.push(part)
            self.run.step(1)
            before, place = place, self.run.pushed
            self.work += part * float(self.case.force @ (place - before))
            if self.run.failed:
                return
        self.run.push()
        self._held = place

    def judge(self, truth: Floats) -> bool:
        """Swell, then whether the run is stable, its loops are closed and all bodies are near their true places."""
        self.swell()
        if self.run.failed:
            self.problem = "diverges"
            return False
        self._far = float(np.linalg.norm(truth - self.case.m.reference_poses[:, :3, 3], axis=1).max())
        self.error = float(np.linalg.norm(self.run.origins - truth, axis=1).max()) / self._far
        if not self.error < BOUND:
            self.problem = f"{100 * self.error:.2g} % off"
            return False
        return self.holds()

    def holds(self) -> bool:
        """Whether the run, under the whole push since, is stable: finite, no energy gained, loops closed."""
        run = self.run
        work = self.work + float(self.case.force @ (run.pushed - self._held))
        if run.failed:
            self.problem = "diverges"
        elif not run.energy < (1 + GAIN) * work:
            self.problem = "gains energy"
        elif not run.gap < BOUND * self._far:
            self.problem = f"loops open by {run.gap:.2g} m"
        return not self.problem
