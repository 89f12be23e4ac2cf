"""A mechanism pushed at its first end effector, at the centre of mass: what engines are compared on.

The push moves it by a tenth of the radius to first order, unless another size is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pliant

__all__ = ["STEP", "Floats", "Pushed", "gaps", "settle"]

Floats = NDArray[np.float64]

STEP = 1e-3
TOWARDS = np.array([0.6, 0.5, -0.62]) / np.linalg.norm([0.6, 0.5, -0.62])


class Pushed:
    """A mechanism, its reduced model and the push."""

    def __init__(self, name: str, make: Callable[[], pliant.Mechanism], size: float = 0.1):
        self.name, self.m = name, make()
        self.model = pliant.reduce(self.m)
        self.tip = self.m.end_effectors[0]
        self.index = self.m.body_index(self.tip)
        turn = self.m.reference_poses[self.index, :3, :3]
        moved = turn @ self.model.compliance[:3, :3] @ turn.T @ TOWARDS
        self.force: Floats = TOWARDS * size * self.m.radius / np.linalg.norm(moved)
        self.point = self.m.com[self.index]

    def push(self, simulation: Any, part: float = 1.0) -> None:
        """Push one of pliant's simulations of it."""
        simulation.apply_wrench(self.tip, force=part * self.force, point=self.point)

    def simulation(
        self,
        h: float = STEP,
        reconstruction: str = "joint",
        model: pliant.ReducedModel | pliant.BlendedModel | None = None,
    ) -> pliant.ReducedSimulation:
        """By a reduced or blended model, with the push on."""
        out = pliant.ReducedSimulation(model or self.model, h, reconstruction)
        self.push(out)
        return out

    def displacement(self, poses: Floats) -> Floats:
        """Of the tip, from its place in the reference pose."""
        return poses[..., self.index, :3, 3] - self.m.reference_poses[self.index, :3, 3]


def settle(simulation: pliant.ReducedSimulation, slowest: float) -> Floats:
    """Poses at rest: velocities are dropped every quarter of the slowest period, when it is at its fastest."""
    quarter = max(1, round(0.25 / slowest / simulation.timestep))
    count = (len(simulation.state) - 1) // 2
    for _ in range(30):
        simulation.step(quarter)
        state = simulation.state
        state[1 + count :] = 0.0
        simulation.state = state
    return simulation.poses.copy()


def gaps(m: pliant.Mechanism, poses: Floats) -> Floats:
    """Distance between every hinge's anchor as its parent carries it and as its child does."""
    if not all(kind == "hinge" for kind in m.joint_types):
        raise ValueError("hinges expected: other joints may move their anchors apart")
    world = np.concatenate([poses, np.eye(4)[None]])  # index -1 is the world
    anchor = np.concatenate([m.primitive_anchor, np.ones((m.joint_count, 1))], axis=1)[..., None]
    sides = (m.joint_parents, m.parent_frames), (m.joint_children, m.child_frames)
    ours, theirs = (world[body] @ frames @ anchor for body, frames in sides)
    return np.linalg.norm((ours - theirs)[:, :3, 0], axis=1)
