"""Parts of the gallery's mechanisms: colours, springs, links and chains of links."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import shapes
from pliant.checks import number, whole
from pliant.errors import InputError
from pliant.mechanism import Builder

BLUE = (0.26, 0.47, 0.76, 1.0)
SKY = (0.55, 0.74, 0.91, 1.0)
ORANGE = (0.93, 0.55, 0.22, 1.0)
RED = (0.82, 0.31, 0.29, 1.0)
GREEN = (0.36, 0.65, 0.42, 1.0)
TEAL = (0.22, 0.60, 0.62, 1.0)
YELLOW = (0.96, 0.78, 0.30, 1.0)
PURPLE = (0.55, 0.43, 0.69, 1.0)
SAND = (0.91, 0.76, 0.62, 1.0)
STEEL = (0.66, 0.69, 0.73, 1.0)
DARK = (0.26, 0.28, 0.32, 1.0)

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

GAMMA, K_THETA = (
    0.8517,
    2.65,
)  # Howell's fixed-guided beam: length of the rigid link over L, stiffness coefficient


SMALL, LARGE = 1e-30, 1e30  # SI units
MOST = 10_000_000  # bodies of a mechanism, about


def positive(value: float, name: str, zero: bool = False) -> float:
    """A length, stiffness or force whose powers and quotients are numbers; 0 only if `zero`.

    Raises:
        InputError: it is negative, no number, or has no size that a mechanism can have.
    """
    value = number(value, name, least=0) if zero else number(value, name, above=0)
    return number(value, name, least=0 if zero else SMALL, most=LARGE)


def acute(value: float, name: str) -> float:
    """An angle above 0.001 rad and below a right one.

    Raises:
        InputError: it is none.
    """
    return number(value, name, above=0.001, below=math.pi / 2)


def sizes(least: int = 1, **given: int) -> list[int]:
    """Numbers of parts along each direction, by the name of the argument.

    Raises:
        InputError: one is no whole number from `least`, or they would make more than MOST parts.
    """
    out = [whole(value, name, least, MOST) for name, value in given.items()]
    if math.prod(out) > MOST:
        raise InputError(f"{' times '.join(given)}: at most {MOST} expected, not {math.prod(out)}")
    return out


# --- springs, bodies, chains


def spring(stiffness: float, time: float = 0.005) -> dict[str, float]:
    """Joint arguments: a stiffness, and a damping of `time` seconds times it."""
    return {"stiffness": stiffness, "damping": stiffness * time}


def guided_beam(young: float, width: float, thickness: float, length: float) -> float:
    """Torsion spring (N m/rad) at either end of the rigid link GAMMA L of a fixed-guided beam (Howell)."""
    return 2 * GAMMA * K_THETA * young * (width * thickness**3 / 12) / length


def point(x: float, y: float, z: float) -> NDArray[np.float64]:
    """A point or offset as an array."""
    return np.array([x, y, z], float)


def unit(vector: ArrayLike) -> NDArray[np.float64]:
    """The vector at unit length."""
    v = np.asarray(vector, float)
    return v / math.sqrt(float(v @ v))


def link(
    b: Builder,
    name: str,
    start: ArrayLike,
    end: ArrayLike,
    radius: float,
    *,
    origin: ArrayLike | None = None,
    mass: float | None = None,
    density: float = 1000.0,
    rgba: Sequence[float] = BLUE,
    extra: Sequence[shapes.Shape] = (),
) -> None:
    """A capsule body between two world points. Its frame is world-aligned, at `origin` or halfway.

    The `extra` shapes are in world axes, relative to that frame.
    """
    a, c = np.asarray(start, float), np.asarray(end, float)
    o = (a + c) / 2 if origin is None else np.asarray(origin, float)
    b.body(
        name,
        position=o,
        mass=mass,
        density=density,
        shapes=[shapes.rod(a - o, c - o, radius, rgba=rgba), *extra],
    )


def normals(direction: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two unit vectors at right angles to a direction and to each other: the axes of a universal joint on a rod."""
    frame = along(unit(direction)[None])[0]
    return frame[:, 0], frame[:, 1]


def block(
    b: Builder,
    name: str,
    centre: ArrayLike,
    half_extents: Sequence[float],
    *,
    mass: float | None = None,
    density: float = 1000.0,
    rgba: Sequence[float] = BLUE,
    extra: Sequence[shapes.Shape] = (),
) -> None:
    """A box body with its frame at the box's centre; the `extra` shapes are relative to it."""
    b.body(
        name,
        position=centre,
        mass=mass,
        density=density,
        shapes=[shapes.box(half_extents, rgba=rgba), *extra],
    )


def along(directions: NDArray) -> NDArray[np.float64]:
    """Rotations (n, 3, 3) whose z axes are the given unit vectors (n, 3); any roll."""
    y = np.cross(directions, np.eye(3)[np.argmin(np.abs(directions), axis=1)])
    y /= np.sqrt((y**2).sum(axis=1))[:, None]
    return np.stack([np.cross(y, directions), y, directions], axis=2)


def chain(
    b: Builder,
    prefix: str,
    points: ArrayLike,
    axes: ArrayLike,
    stiffness: float,
    radius: float,
    *,
    parent: str = "world",
    time: float = 0.005,
    density: float = 1000.0,
    colours: Sequence[Sequence[float]] = (BLUE, SKY),
) -> list[str]:
    """Capsules along a polyline, each hinged at its start to the one before; returns their names.

    Link i is called `prefix` + (i + 1), and so is the hinge that carries it. Its frame is at its middle, z
    along it. Links of one length and colour share one shape, so that long chains stay cheap.
    """
    made = chains(
        b,
        [prefix],
        np.asarray(points, float)[None],
        np.asarray(axes, float)[None],
        stiffness,
        radius,
        parents=[parent],
        time=time,
        density=density,
        colours=colours,
    )
    return made[0]


def chains(
    b: Builder,
    prefixes: Sequence[str],
    points: NDArray[np.float64],
    axes: NDArray[np.float64],
    stiffness: float,
    radius: float,
    *,
    parents: Sequence[str],
    time: float = 0.005,
    density: float = 1000.0,
    colours: Sequence[Sequence[float]] = (BLUE, SKY),
) -> list[list[str]]:
    """Several such chains of n links each, points (chains, n + 1, 3), axes (chains, n or more, 3)."""
    count, n = len(points), points.shape[1] - 1
    steps = np.diff(points, axis=1).reshape(-1, 3)
    lengths = np.sqrt((steps**2).sum(axis=1))
    names = [[f"{prefix}{i + 1}" for i in range(n)] for prefix in prefixes]
    every = [name for own in names for name in own]
    different, which = np.unique(lengths.round(14), return_inverse=True)
    looks = [
        _capsule(radius, length, density, tuple(colour))
        for length in different.tolist()
        for colour in colours
    ]
    look = which * len(colours) + np.tile(np.arange(n) % len(colours), count)
    links = b.bodies(
        every,
        mass=np.array([mass for _, mass, _ in looks])[look],
        inertia=np.array([moments for _, _, moments in looks])[look],
        position=((points[:, 1:] + points[:, :-1]) / 2).reshape(-1, 3),
        orientation=along(steps / lengths[:, None]),
        shapes=[shape for shape, _, _ in looks],
        look=look,
    )
    carriers = [name for own, parent in zip(names, parents, strict=True) for name in (parent, *own[:-1])]
    b.hinges(
        every,
        carriers,
        links,
        anchor=points[:, :-1].reshape(-1, 3),
        axis=axes[:, :n].reshape(-1, 3),
        stiffness=stiffness,
        damping=stiffness * time,
    )
    return names


@lru_cache(maxsize=256)
def _capsule(
    radius: float, length: float, density: float, rgba: tuple[float, ...]
) -> tuple[tuple, float, tuple]:
    """A capsule as a body's shapes, its mass and its principal moments."""
    shape = shapes.capsule(radius, length / 2, rgba=rgba)
    volume, _, second = shape.mass_properties()
    return (shape,), density * volume, tuple((density * volume * np.diag(second)).tolist())
