"""The one system all engines simulate: a straight chain with a heavy load, let go at an angle.

Body frames sit at the upper end of each link, z up along it, so the next joint is at (0, 0, -length). At the
start all of them are turned by `base` against the world: every joint coordinate is zero and every spring
relaxed. What differs between the joint kinds is which components of the relative turning rates are free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

GRAVITY = 9.81
KINDS = ("ball", "hinge", "universal", "cable")


@dataclass(frozen=True)
class Chain:
    """A chain of `links` rods hanging from the origin, the load (a sphere) rigidly at the end of the last.

    Attributes:
        kind: "ball", "hinge" (axes x and y in turn), "universal" (x, then y) or "cable" (a bushing).
        ratio: mass of the load over that of a link.
        seed: of a small push and tilt in 3-D; None for a planar release.
        length, mass: of one link.
        axial, bending: stiffness of a cable's joints in translation and in rotation; no damping.
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
        return self.links * self.length

    @property
    def scale(self) -> float:
        """The energy gains are measured against: lifting the load (all, if the load is only a link) by the length."""
        mass = self.ratio * self.mass if self.ratio > 1 else self.mass * (self.links + self.ratio)
        return mass * GRAVITY * self.total_length

    @cached_property
    def base(self) -> np.ndarray:
        """Rotation of all bodies at the start: about x by the angle, then a little about y, by seed."""
        a, b = self.angle, 0.0
        if self.seed is not None:
            da, b = np.random.default_rng([self.seed, 1]).normal(0, 0.05, 2)
            a += da
        turn = np.array([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]])
        return turn @ np.array([[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]])

    @cached_property
    def rates(self) -> np.ndarray:
        """Angular velocity of each link against the one before, in its own frame, (links, 3)."""
        if self.seed is None:
            return np.zeros((self.links, 3))
        # Relative rates add up along the chain like a random walk; this keeps the tip's the same at any length.
        size = 0.3 * math.sqrt(10 / self.links)
        push = np.random.default_rng([self.seed, 2]).normal(0, size, (self.links, 3))
        return push * np.array([self.free(i) for i in range(self.links)])

    def free(self, i: int) -> tuple[bool, bool, bool]:
        """The axes about which joint i turns."""
        if self.kind == "hinge":
            return (i % 2 == 0, i % 2 == 1, False)
        return (True, True, self.kind != "universal")

    def axis(self, i: int) -> tuple[float, float, float]:
        """Of hinge i, in the link's frame."""
        return (0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0)

    def inertia(self, i: int) -> tuple[float, float, np.ndarray]:
        """Mass, height of the centre of mass in the link's frame and principal inertia about it.

        The load's radius does not grow with its mass: otherwise the geometry would change along a column.
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
