"""Plants: `forest`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.checks import whole
from pliant.errors import InputError
from pliant.gallery.parts import GREEN, along, sizes
from pliant.mechanism import Builder, Mechanism
from pliant.text import brief

__all__ = ["forest"]

_BARK = (0.45, 0.36, 0.29, 1.0)
_TRUNK, _BRANCHES, _BRANCH = 6, 5, 3  # links of a trunk, branches, links of each
_LINKS = _TRUNK + _BRANCHES * _BRANCH
_LENGTH, _SHORTER = 0.3, 0.7  # m, links of a trunk; of a branch, relative to them
_THICK, _THIN = 0.02, 0.004  # m, radii at the root and at the tips
_YOUNG, _DENSITY = 1e9, 700.0  # Pa, kg/m³: green wood
_SPACING = 1.5  # m
_GOLDEN = math.pi * (3 - math.sqrt(5))  # from a leaf to the next one, seen from above


def forest(plants: int = 1000, seed: int = 0, only: Sequence[int] | None = None) -> Mechanism:
    """Young trees on a meadow, each a trunk of six links with five branches of three, on ball joints.

    They are 1.3 to 2.3 m tall and stand some 1.5 m apart, like the seeds of a sunflower: the first at the origin, in
    the middle. Joints bend as beams of green wood do, in proportion to the fourth power of their thickness. Plant 7 has
    the links "plant7_trunk1" to 6 and "plant7_branch1_1" to "plant7_branch5_3"; its joints have the same names.

    Args:
        plants: number of plants.
        seed: of their shapes; the same seed gives the same plants, however many there are.
        only: numbers of the plants to make, from 1; by default all.

    The end effectors are the tips of the trunks.
    """
    (count,), seed = sizes(plants=plants), whole(seed, "seed", 0)
    sizes(plants=count, links=_LINKS)
    numbers = list(range(1, count + 1)) if only is None else _chosen(only, count)
    n = len(numbers)
    parent, trunk, slot, names = _topology()
    radius = _THICK + (_THIN - _THICK) * (trunk + slot) / (_TRUNK + _BRANCH)
    length = np.where(slot > 0, _SHORTER * _LENGTH, _LENGTH)
    size, axes = (
        np.array(part) for part in zip(*(_shape(i, seed, trunk, slot) for i in numbers), strict=True)
    )
    steps = size[:, None, None] * length[:, None] * axes
    ends = np.zeros((n, _LINKS + 1, 3))  # the last one is the root of the plant, where parent is -1
    index = np.array(numbers)
    away, turn = _SPACING * np.sqrt((index - 1) / math.pi), _GOLDEN * index
    ends[:, -1] = np.column_stack([away * np.cos(turn), away * np.sin(turn), np.zeros(n)])
    for k in range(_LINKS):
        ends[:, k] = ends[:, parent[k]] + steps[:, k]
    starts = ends[:, parent].reshape(-1, 3)
    steps = steps.reshape(-1, 3)

    every = [f"plant{i}_{name}" for i in numbers for name in names]
    looks = [
        (shapes.capsule(r, x / 2, rgba=_BARK if s == 0 else GREEN),)
        for r, x, s in zip(radius.tolist(), length.tolist(), slot.tolist(), strict=True)
    ]
    b = Builder(f"forest {n}")
    links = b.bodies(
        every,
        density=_DENSITY,
        position=starts + steps / 2,
        orientation=along(steps / np.sqrt((steps**2).sum(axis=1))[:, None]),
        shapes=looks,
        look=np.tile(np.arange(_LINKS), n),
        scale=np.repeat(size, _LINKS),
    )
    carriers = np.where(parent < 0, -1, parent + _LINKS * np.arange(n)[:, None]).ravel()
    stiffness = (size[:, None] ** 3 * _YOUNG * math.pi / 4 * radius**4 / length).ravel()
    b.balls(every, carriers, links, anchor=starts, stiffness=stiffness, damping=0.005 * stiffness)
    b.end_effectors(*(f"plant{i}_trunk{_TRUNK}" for i in numbers))
    return b.build()


def _chosen(only: Sequence[int], count: int) -> list[int]:
    """Numbers of plants, each once."""
    if isinstance(only, str) or not isinstance(only, Sequence | np.ndarray) or not len(only):
        raise InputError(f"only: a list of numbers of plants expected, not {brief(only)}")
    found = [whole(i, "only", 1, count) for i in only]
    if len(set(found)) < len(found):
        raise InputError(f"only: plant {max(found, key=found.count)} is listed twice")
    return found


def _topology() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Parent of every link of a plant (-1: the ground), links of the trunk below it, its place in a branch, names."""
    rows = [(k - 1, k, 0, f"trunk{k + 1}") for k in range(_TRUNK)]
    for branch in range(_BRANCHES):
        for k in range(_BRANCH):
            parent = len(rows) - 1 if k else branch
            rows.append((parent, branch + 1, k + 1, f"branch{branch + 1}_{k + 1}"))
    parent, trunk, slot, names = zip(*rows, strict=True)
    return np.array(parent), np.array(trunk), np.array(slot), list(names)


def _shape(
    number: int, seed: int, trunk: NDArray[np.int64], slot: NDArray[np.int64]
) -> tuple[float, NDArray[np.float64]]:
    """Size of a plant, and the directions of its links, (links, 3)."""
    rng = np.random.default_rng((seed, number))
    size, turn = rng.uniform(0.72, 1.28), rng.uniform(0, 2 * math.pi)
    round_ = turn + _GOLDEN * trunk + rng.normal(0, 0.15, _LINKS)
    up = np.where(slot > 0, 0.55 + 0.2 * slot, 10.0) + rng.normal(0, 0.08, _LINKS)  # branches bend upwards
    lean = rng.normal(0, 0.06, (_LINKS, 2)) * (slot == 0)[:, None]
    direction = np.column_stack([np.cos(round_), np.sin(round_), up])
    direction[slot == 0, :2] = 10 * lean[slot == 0]
    return size, direction / np.sqrt((direction**2).sum(axis=1))[:, None]
