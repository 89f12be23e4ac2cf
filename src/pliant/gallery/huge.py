"""Linkages of ten thousand links and more: `millipede`, `molecule`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pliant import shapes, spatial
from pliant.checks import whole
from pliant.gallery.parts import (
    BLUE,
    DARK,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    TEAL,
    YELLOW,
    chain,
    chains,
    point,
    sizes,
)
from pliant.mechanism import Builder, Mechanism

__all__ = ["millipede", "molecule"]


def millipede(legs: int = 1000, leg_links: int = 10, spine: int = 3000) -> Mechanism:
    """A millipede: a long spine with legs in pairs (RL05 section 6.2: 13,000 links, 12,999 hinges).

    The spine winds in the x-y plane, its first link fixed in the world; its hinges are vertical and across
    in turn. Legs leave it to either side at even distances and come down in an arch. Spine links are 5 mm
    long, leg links 4 mm; the hinges have 200 N m/rad in the spine and 2 N m/rad in the legs.

    Args:
        legs: number of legs.
        leg_links: links of a leg.
        spine: links of the spine.

    The end effectors are the last link of the spine and, if there are legs, the foot of the middle leg.
    """
    (n,), (feet,) = sizes(spine=spine), sizes(0, legs=legs)
    _, per_leg = sizes(legs=max(feet, 1), leg_links=leg_links)
    b = Builder(f"millipede {n + feet * per_leg}")
    heading = 0.9 * np.sin(np.arange(n) / 90)  # of every spine link, from x
    ahead = np.column_stack([np.cos(heading), np.sin(heading), np.zeros(n)])
    across = np.column_stack([-ahead[:, 1], ahead[:, 0], np.zeros(n)])
    nodes = np.concatenate([np.zeros((1, 3)), np.cumsum(0.005 * ahead, axis=0)]) + point(0, 0, 0.0105)
    b.body("head", mass=0.01, position=(nodes[0] + nodes[1]) / 2, shapes=[shapes.sphere(0.007, rgba=ORANGE)])
    b.fixed("head", "world", "head")
    axes = np.where((np.arange(n) % 2 == 0)[:, None], across, (0.0, 0.0, 1.0))
    names = ["head"]
    if n > 1:
        names += chain(
            b, "spine", nodes[1:], axes[1:], 200.0, 0.005, parent="head", colours=(BLUE, SKY, TEAL)
        )
    middle = (nodes[1:] + nodes[:-1]) / 2
    # Out and up, then down: the arch of a leg in its own plane (out, up).
    up = point(0.0, 0.0, 1.0)
    pitch = np.linspace(0.9, -1.5, per_leg)
    arch = 0.004 * np.concatenate(
        [np.zeros((1, 2)), np.cumsum(np.column_stack([np.cos(pitch), np.sin(pitch)]), axis=0)]
    )
    if feet:
        leg = np.arange(feet)
        at = np.minimum(2 * (leg // 2) * n // feet, n - 1)
        out = np.where((leg % 2 == 0)[:, None], across[at], -across[at])[:, None]
        points = middle[at, None] + 0.005 * out + arch[:, :1] * out + arch[:, 1:] * up
        side = np.stack([-out[..., 1], out[..., 0], np.zeros((feet, 1))], axis=2)
        hinges = np.where((np.arange(per_leg) % 2 == 0)[:, None], side, up)
        chains(
            b,
            [f"leg{i + 1}_" for i in range(feet)],
            points,
            hinges,
            2.0,
            0.0012,
            parents=[names[i] for i in at.tolist()],
            colours=(DARK, YELLOW),
        )
    b.end_effectors(names[-1], *([f"leg{feet // 2 + 1}_{per_leg}"] if feet else []))
    return b.build()


def molecule(links: int = 50_000, seed: int = 0) -> Mechanism:
    """A random molecule-like tree with long branches (RL05 section 6.3: 50,000 rotational dofs).

    Built like a plastic model: bonds of 10 mm and 1 g that meet at the tetrahedral angle, each turning
    about itself (a dihedral angle) against a spring of 1000 N m/rad. Branches are chains of random length,
    up to a twenty-fifth of all links, that grow from random links, so a molecule of 50,000 is thousands of
    joints deep. The first bond turns on the world.

    Args:
        links: number of bonds; as many hinges.
        seed: of the random shape; the same seed gives the same molecule.

    The end effectors are the ends of the branches.
    """
    (n,), seed = sizes(links=links), whole(seed, "seed", 0)
    rng = np.random.default_rng(seed)
    parent, branch = _branches(n, rng)
    frames, ends = _bonds(parent, rng.uniform(-math.pi, math.pi, n), 0.01)
    axes = frames[:, :, 2]
    starts, middles = ends - 0.01 * axes, ends - 0.005 * axes

    looks = [
        (shapes.capsule(0.0016, 0.005, rgba=colour),) for colour in (BLUE, ORANGE, GREEN, RED, PURPLE, TEAL)
    ]
    inertia = tuple((0.001 * np.diag(looks[0][0].mass_properties()[2])).tolist())
    b = Builder(f"molecule {n}")
    names = [f"bond{i + 1}" for i in range(n)]
    bonds = b.bodies(
        names,
        mass=0.001,
        inertia=inertia,
        position=middles,
        orientation=frames,
        shapes=looks,
        look=branch % len(looks),
    )
    b.hinges(names, parent, bonds, anchor=starts, axis=axes, stiffness=1000.0, damping=5.0)
    del frames, ends, axes, starts, middles  # before more memory is needed
    has_child = np.zeros(n, dtype=bool)
    has_child[parent[1:]] = True
    b.end_effectors(*(names[i] for i in np.flatnonzero(~has_child)))
    return b.build()


def _branches(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parent (-1 for the first) and branch number of every link; parents come first."""
    parent = np.arange(-1, n - 1)
    branch = np.zeros(n, dtype=np.int64)
    longest = max(n // 25, 8)
    start = int(rng.integers(longest // 2, longest + 1))
    number = 0
    while start < n:
        number += 1
        parent[start] = rng.integers(0, start)
        branch[start:] = number
        start += int(rng.integers(1, longest + 1))
    return parent, branch


def _bonds(
    parent: NDArray[np.int64], dihedral: NDArray[np.float64], length: float
) -> tuple[NDArray, NDArray]:
    """Rotations (n, 3, 3), z along the bonds, and the bonds' far ends (n, 3)."""
    half = math.acos(1 / 3) / 2  # of the supplement of the tetrahedral angle
    c, s = np.cos(dihedral / 2), np.sin(dihedral / 2)
    # About z by the dihedral angle, then about the new y.
    turns = np.column_stack([c * math.cos(half), -s * math.sin(half), c * math.sin(half), s * math.cos(half)])
    rotations = spatial.quat_to_matrix(
        spatial.quat_normalize(_accumulate(parent, turns, spatial.quat_multiply))
    )
    return rotations, _accumulate(parent, length * rotations[:, :, 2], np.add)


def _accumulate(parent: NDArray[np.int64], values: NDArray, combine: Callable[..., NDArray]) -> NDArray:
    """`combine` along the path from the root to every link; each round doubles the length of the paths."""
    out, above = values.copy(), parent.copy()
    while len(linked := np.flatnonzero(above >= 0)):
        out[linked] = combine(out[above[linked]], out[linked])
        above[linked] = above[above[linked]]
    return out
