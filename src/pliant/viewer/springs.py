"""`Springs`: all pulls that act on a simulation, by who pulls."""

from __future__ import annotations

from collections.abc import Hashable

from pliant.engines.quasistatic import QuasistaticSimulation
from pliant.mechanism import Mechanism
from pliant.viewer.pulls import Pull, loads, mobility, softness
from pliant.viewer.setup import Simulation

__all__ = ["Springs"]


class Springs(dict[Hashable, Pull]):
    """Pulls by their keys, fitted to what they pull, and applied as wrenches before every step."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh = True  # points have no last place: velocities are not known

    @property
    def bodies(self) -> tuple[str, ...]:
        """What is pulled."""
        return tuple(dict.fromkeys(pull.body for pull in self.values()))

    def fit(self, simulation: Simulation, m: Mechanism, strength: float, anew: bool = False) -> None:
        """Choose stiffness and damping for the engine that runs; `anew`, whatever they were before."""
        h, moving = simulation.timestep, not isinstance(simulation, QuasistaticSimulation)
        for pull in self.values():
            place = simulation, m, pull.body, pull.point
            before = pull.stiffness
            pull.fit(mobility(*place), softness(*place), h, strength, moving)
            # A spring that suits another engine nearly as well stays as it is, and so does its force.
            if not anew and 0.5 < before / pull.stiffness < 1.5:
                pull.stiffness = before
            pull.update(simulation.poses, None)

    def apply(self, simulation: Simulation) -> None:
        """Apply the forces of all pulls at the present poses."""
        poses, h = simulation.poses, None if self.fresh else simulation.timestep
        for pull in self.values():
            pull.update(poses, h)
        self.fresh = False
        for body, wrench in loads(list(self.values()), poses).items():
            simulation.apply_wrench(body, **wrench)

    def release(self, key: Hashable, simulation: Simulation) -> None:
        """Let go; nothing if there is no such pull (any more)."""
        pull = self.pop(key, None)
        if pull is not None and pull.body not in self.bodies:
            simulation.apply_wrench(pull.body, (0, 0, 0))
