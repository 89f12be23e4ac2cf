"""Systems that engines are compared on: a chain with a heavy load, pushed mechanisms, a static load case."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pliant

__all__ = [
    "GRAVITY",
    "KINDS",
    "STEP",
    "Chain",
    "Floats",
    "Model",
    "Pushed",
    "RandomPushes",
    "StaticCase",
    "force_that_moves",
    "is_planar",
    "measure_gaps",
    "rest_under",
    "settle",
]

Floats = NDArray[np.float64]
Model = pliant.ReducedModel | pliant.BlendedModel

GRAVITY = 9.81
KINDS = ("ball", "hinge", "universal", "cable")
STEP = 1e-3  # s
TOWARDS = np.array([0.6, 0.5, -0.62]) / np.linalg.norm([0.6, 0.5, -0.62])


@dataclass(frozen=True)
class Chain:
    """Straight chain of rods that hangs from the origin, with a sphere as load on the last rod, released at an angle.

    Link frames sit at the upper end of each link, z up along it, so the next joint is at (0, 0, -length). At the start
    all links have the orientation `base` in the world: joint coordinates are zero and springs relaxed. Kinds of joints
    differ in the components of the relative angular velocity that are free.

    Attributes:
        kind: "ball", "hinge" (axes x and y in turn), "universal" (x, then y) or "cable" (a bushing).
        links: number of rods.
        ratio: mass of the load over that of a link.
        seed: of a small random tilt and initial velocity in 3-D; None for a planar release from rest.
        length, mass: of one link, m and kg.
        angle: of the release against the vertical, rad.
        axial, bending: stiffness of a cable's joints in translation, N/m, and rotation, N m/rad; no damping.
    """

    kind: str = "ball"
    links: int = 10
    ratio: float = 1.0
    seed: int | None = 0
    length: float = 0.1
    mass: float = 0.1
    angle: float = math.pi / 4
    axial: float = 1e12
    bending: float = 10.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no kind of joint {self.kind!r}; there are {', '.join(KINDS)}")

    @property
    def total_length(self) -> float:
        """Length of the chain, m."""
        return self.links * self.length

    @property
    def scale(self) -> float:
        """Energy that lifts the load (at ratio 1: chain and load) by the chain's length, J; unit of energy gains."""
        mass = self.ratio * self.mass if self.ratio > 1 else self.mass * (self.links + self.ratio)
        return mass * GRAVITY * self.total_length

    @cached_property
    def base(self) -> np.ndarray:
        """World orientation of all links at the start: about x by the angle, then a little about y, by seed."""
        a, b = self.angle, 0.0
        if self.seed is not None:
            da, b = np.random.default_rng([self.seed, 1]).normal(0, 0.05, 2)
            a += da
        turn = np.array([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]])
        return turn @ np.array([[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]])

    @cached_property
    def rates(self) -> np.ndarray:
        """Initial angular velocity of each link relative to the one before, in its own frame, (links, 3), rad/s."""
        if self.seed is None:
            return np.zeros((self.links, 3))
        # Relative rates add up along the chain like a random walk; this keeps the tip's the same at any length.
        size = 0.3 * math.sqrt(10 / self.links)
        push = np.random.default_rng([self.seed, 2]).normal(0, size, (self.links, 3))
        return push * np.array([self.free(i) for i in range(self.links)])

    @property
    def free_rates(self) -> np.ndarray:
        """Initial joint velocities: the free components of `rates`, joint by joint."""
        return self.rates[np.array([self.free(i) for i in range(self.links)])]

    def free(self, i: int) -> tuple[bool, bool, bool]:
        """Whether joint i rotates about x, y, z of its link."""
        if self.kind == "hinge":
            return (i % 2 == 0, i % 2 == 1, False)
        return (True, True, self.kind != "universal")

    def axis(self, i: int) -> tuple[float, float, float]:
        """Axis of hinge i, in the link's frame."""
        return (0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0)

    def inertia(self, i: int) -> tuple[float, float, np.ndarray]:
        """Mass of link i, height of its centre of mass in its frame, and principal moments of inertia about that.

        The load's radius is the same for all masses: the geometry does not change with the ratio.
        """
        m, l = self.mass, self.length
        thick, radius = 0.1 * l, 0.5 * l
        rod = m * np.array([l**2 / 12 + thick**2 / 4, l**2 / 12 + thick**2 / 4, thick**2 / 2])
        if i < self.links - 1:
            return m, -l / 2, rod
        load = self.ratio * m
        z = -(m * l / 2 + load * l) / (m + load)
        lever = m * (z + l / 2) ** 2 + load * (z + l) ** 2
        return m + load, z, rod + 0.4 * load * radius**2 + lever * np.array([1.0, 1.0, 0.0])

    def starts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """World joint points (links, 3), their velocities, and the links' angular velocities in the base frame."""
        turning = np.cumsum(self.rates, axis=0)
        down = np.array([0, 0, -self.length])
        points = np.arange(self.links)[:, None] * down @ self.base.T
        drops = np.cross(turning, down)
        velocities = np.vstack([np.zeros(3), np.cumsum(drops, axis=0)[:-1]]) @ self.base.T
        return points, velocities, turning


class Pushed:
    """Mechanism with a constant force at the centre of mass of its first end effector.

    To first order the force, along the unit vector `towards`, moves the end effector by `size` times the mechanism's
    radius.
    """

    def __init__(
        self, name: str, make: Callable[[], pliant.Mechanism], size: float = 0.1, towards: Floats = TOWARDS
    ):
        self.name, self.m = name, make()
        self.model = pliant.reduce(self.m)
        self.tip = self.m.end_effectors[0]
        self.index = self.m.body_index(self.tip)
        self.force = force_that_moves(self.m, self.model, towards, size)
        self.point = self.m.com[self.index]

    @property
    def planar(self) -> bool:
        """Whether mechanism and force are planar, see `is_planar`."""
        return is_planar(self.m, self.force)

    def push(self, simulation: Any, part: float = 1.0) -> None:
        """Apply a part of the force to one of pliant's simulations."""
        simulation.apply_wrench(self.tip, force=part * self.force, point=self.point)

    def simulation(
        self,
        h: float = STEP,
        reconstruction: str = "joint",
        model: Model | None = None,
        method: str = "auto",
    ) -> pliant.ReducedSimulation:
        """Simulation of a reduced or blended model under the force."""
        out = pliant.ReducedSimulation(model or self.model, h, reconstruction, method=method)
        self.push(out)
        return out

    def displacement(self, poses: Floats) -> Floats:
        """Displacement of the end effector's origin from the reference pose, world axes, m."""
        return poses[..., self.index, :3, 3] - self.m.reference_poses[self.index, :3, 3]


class RandomPushes:
    """Mechanism with random pushes: world forces at the centres of mass of all its end effectors.

    Directions are drawn from the whole sphere by a seed that is the name of the case. One is drawn again only if a
    newton along it moves the end effectors by less than `least` of what a newton moves them along the most compliant
    direction: at the same displacement it would load joints and loops many times as much as the others. To first order
    each push moves the end effector that moves farthest by `size` times the mechanism's radius.

    Args:
        name: of the case.
        m: the mechanism, at rest in its reference pose; its joint limits are taken away.
        count: number of pushes.
        least: fraction of the largest displacement per newton; 0: no direction is drawn again.

    Attributes:
        m: the mechanism without joint limits.
        model: the mechanism reduced to its end effectors, by default settings.
        bodies: indices of the end effectors.
    """

    def __init__(self, name: str, m: pliant.Mechanism, count: int = 6, least: float = 0.1):
        m = m.replace(lower=np.full(m.nv, -np.inf), upper=np.full(m.nv, np.inf))
        self.name, self.m, self.model = name, m, pliant.reduce(m)
        self.bodies = [m.body_index(end) for end in m.end_effectors]
        self._levers = self._wrench_map()
        ends = len(self.bodies)
        moved = (self.model.compliance @ self._levers).reshape(ends, 6, 3 * ends)[:, :3].reshape(3 * ends, -1)
        largest, random = np.linalg.norm(moved, 2), np.random.default_rng(zlib.crc32(name.encode()))
        unit: list[Floats] = []
        while len(unit) < count:
            force = random.normal(size=3 * ends)
            there = moved @ force
            if np.linalg.norm(there) >= least * largest * np.linalg.norm(force):
                farthest = np.linalg.norm(there.reshape(ends, 3), axis=1).max()
                unit.append((force * m.radius / farthest).reshape(ends, 3))
        self._unit = np.array(unit)

    def _wrench_map(self) -> Floats:
        """Wrenches about the end effectors' origins, in their frames, per world forces, (6 ends, 3 ends)."""
        out = np.zeros((6 * len(self.bodies), 3 * len(self.bodies)))
        for i, body in enumerate(self.bodies):
            turn = self.m.reference_poses[body, :3, :3].T
            out[6 * i : 6 * i + 3, 3 * i : 3 * i + 3] = turn
            out[6 * i + 3 : 6 * i + 6, 3 * i : 3 * i + 3] = pliant.spatial.hat(self.m.com[body]) @ turn
        return out

    def work(self, forces: Floats) -> float:
        """Work of constant forces, (ends, 3), over the displacements that they cause to first order, J."""
        wrench = self._levers @ forces.ravel()
        return float(wrench @ self.model.compliance @ wrench)

    def pushes(self, size: float) -> Floats:
        """World forces of all pushes, N, (count, ends, 3)."""
        return size * self._unit

    def wrenches(self, forces: Floats) -> dict[str, dict[str, Any]]:
        """Forces on the end effectors, (ends, 3), as `pliant.equilibrium` takes them."""
        points = self.m.com[self.bodies]
        return {
            end: {"force": force, "point": point}
            for end, force, point in zip(self.m.end_effectors, forces, points, strict=True)
        }

    def displacement(self, poses: Floats) -> Floats:
        """Displacements of the end effectors' origins from the reference pose, world axes, m, (ends, 3)."""
        return poses[self.bodies, :3, 3] - self.m.reference_poses[self.bodies, :3, 3]


class StaticCase(NamedTuple):
    """Mechanism of hinges whose springs are relaxed in the reference pose, with a world force on a body's origin."""

    name: str
    m: pliant.Mechanism
    body: str
    force: Floats

    @property
    def index(self) -> int:
        """Index of the loaded body."""
        return self.m.body_index(self.body)

    @property
    def point(self) -> Floats:
        """Point of the force in the body's frame."""
        return np.zeros(3)

    @property
    def planar(self) -> bool:
        """Whether mechanism and force are planar, see `is_planar`."""
        return is_planar(self.m, self.force)


def is_planar(m: pliant.Mechanism, force: Floats) -> bool:
    """Whether all hinges turn about the world's y and the force is perpendicular to it."""
    turns = (m.reference_poses[m.joint_children] @ m.child_frames)[:, :3, :3]
    axes = np.einsum("nij,nj->ni", turns, m.primitive_axis)
    return bool(force[1] == 0 and (np.abs(axes[:, [0, 2]]).max() < 1e-12))


def force_that_moves(m: pliant.Mechanism, model: pliant.ReducedModel, towards: Floats, size: float) -> Floats:
    """World force along a unit vector that moves the first end effector by `size` radii, to first order."""
    turn = m.reference_poses[m.body_index(m.end_effectors[0]), :3, :3]
    moved = turn @ model.compliance[:3, :3] @ turn.T @ towards
    return towards * size * m.radius / np.linalg.norm(moved)


def settle(simulation: pliant.ReducedSimulation, slowest: float) -> Floats:
    """Poses at rest. Velocities are set to zero every quarter of the slowest period, at their largest.

    Args:
        simulation: of a reduced or blended model, under its loads.
        slowest: lowest natural frequency, Hz.
    """
    quarter = max(1, round(0.25 / slowest / simulation.timestep))
    for _ in range(30):
        simulation.step(quarter)
        simulation.rates = np.zeros_like(simulation.rates)
    return simulation.poses.copy()


def rest_under(
    model: Model, loads: Mapping[str, ArrayLike], slowest: float, reconstruction: str = "joint"
) -> pliant.ReducedSimulation:
    """Simulation at steps of 1/60 s that has settled under forces on bodies."""
    out = pliant.ReducedSimulation(model, 1 / 60, reconstruction)
    for body, force in loads.items():
        out.apply_wrench(body, force=force)
    settle(out, slowest)
    return out


def measure_gaps(m: pliant.Mechanism, poses: Floats) -> Floats:
    """Distance between the two positions of every hinge's anchor: as its parent and as its child carry it, m."""
    if not all(kind == "hinge" for kind in m.joint_types):
        raise ValueError("hinges expected: other joints may move their anchors apart")
    world = np.concatenate([poses, np.eye(4)[None]])  # index -1 is the world
    anchor = np.concatenate([m.primitive_anchor, np.ones((m.joint_count, 1))], axis=1)[..., None]
    sides = (m.joint_parents, m.parent_frames), (m.joint_children, m.child_frames)
    ours, theirs = (world[body] @ frames @ anchor for body, frames in sides)
    return np.linalg.norm((ours - theirs)[:, :3, 0], axis=1)
