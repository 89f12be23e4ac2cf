"""`Violation`: how far joints and loops come apart, in any engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.quasistatic import QuasistaticSimulation
from pliant.engines.reduced import ReducedSimulation
from pliant.mechanism import Mechanism

__all__ = ["Violation"]

Floats = NDArray[np.float64]


class Violation:
    """How far joints and loops come apart in a simulation, m.

    Reduced models place links by joint displacements, so joints of the tree never open; loops do. What the linear
    model means by itself is TVCG's reconstruction, every body by its own twist: there joints open as well, and the
    gap tells how far the model has left what it knows. The larger of both is shown.
    """

    def __init__(self) -> None:
        self._twin: ReducedSimulation | None = None

    def __call__(
        self, simulation: ReducedSimulation | ConstrainedSimulation | QuasistaticSimulation
    ) -> float:
        """The largest gap of a joint or loop."""
        if isinstance(simulation, ConstrainedSimulation):
            return simulation.violation
        if not isinstance(simulation, ReducedSimulation):
            return 0.0  # trees only, placed by their joints
        twin = self._twin
        if twin is None or twin.model is not simulation.model:
            floating = simulation.model.base is not None
            twin = ReducedSimulation(
                simulation.model, simulation.timestep, "twist", (0, 0, 0) if floating else None
            )
            self._twin = twin
        twin.state = simulation.state
        m = simulation.model.mechanism
        tree = m.topology.tree
        apart = _across(m, twin.poses, tree) - _across(m, simulation.poses, tree)
        gap = float(np.sqrt((apart**2).sum(axis=1)).max(initial=0.0))
        if m.topology.loops:
            loops = simulation.configuration.loop_residual[:, :3]
            gap = max(gap, float(np.linalg.norm(loops, axis=1).max()))
        return gap


def _across(m: Mechanism, poses: Floats, joints: NDArray[np.int64]) -> Floats:
    """Where children's joint frames are in those of their parents, (joints, 3)."""
    world = np.concatenate([poses, np.eye(4)[None]])
    parents = world[m.joint_parents[joints]] @ m.parent_frames[joints]
    children = world[m.joint_children[joints]] @ m.child_frames[joints]
    return np.einsum("nji,nj->ni", parents[:, :3, :3], children[:, :3, 3] - parents[:, :3, 3])
