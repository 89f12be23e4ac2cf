"""`trampoline`: two firefighters catch a bunny (TVCG Fig. 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant import shapes
from pliant.engines.reduced import reduce
from pliant.errors import InputError
from pliant.gallery._parts import amount, choice
from pliant.gallery.robots import firefighters
from pliant.gallery.worlds.bunny import bunny
from pliant.gallery.worlds.play import Play
from pliant.statics import equilibrium
from pliant.world import World

__all__ = ["trampoline"]

_EARTH = (0.0, 0.0, -9.81)
_RIM = 0.35  # m: what comes down farther from the middle may topple over the rim
_HEIGHT = 1.02  # m, of what can be stood on


def trampoline(
    kind: str = "reduced",
    *,
    height: float = 1.0,
    aside: ArrayLike = (0.1, 0.05),
    mass: float = 2.0,
    timestep: float = 1 / 60,
) -> Play:
    """Two firefighters catch a falling bunny on their trampoline.

    Shoulders, elbows, wrists and backs give way: the loops of arms and trampoline are one 6 x 6 compliance and inertia
    in the reduced model, whose only end effector is the trampoline. There is a floor, for bunnies they miss.

    Args:
        kind: how the firefighters move: "reduced" or "full".
        height: how far the bunny falls, m, at most 3.
        aside: where it comes down, from the middle of the trampoline, m; not beyond 0.35.
        mass: of the bunny, kg; it is 0.3 m long.
        timestep: seconds.

    Example:
        >>> from pliant.gallery import worlds
        >>> scene = worlds.trampoline()
        >>> scene.run(4.0)
        >>> bool(scene.world["bunny"].position[2] > 0.9)
        True
    """
    kind, mass = choice("kind", kind, ("reduced", "full")), amount("mass", mass)
    if amount("height", height, zero=True) > 3:
        raise InputError(f"height: at most 3 m expected, not {height!r}")
    place = np.array(aside, dtype=np.float64) if np.shape(aside) == (2,) else np.full(2, np.nan)
    if not np.linalg.norm(place) <= _RIM:
        raise InputError(f"aside: two numbers within {_RIM} m of the middle expected, not {aside!r}")
    m = firefighters()
    start = equilibrium(m, gravity=_EARTH)
    world = World(timestep)
    world.add_static("floor", shapes.plane(1.3, 0.6))
    if kind == "full":
        world.add(m, "firefighters", start=start)
    else:
        world.add(reduce(m, at=start), "firefighters")
    body = bunny(0.12)
    world.add_body("bunny", body, mass=mass, position=(*place, _HEIGHT + 0.85 * 0.12 + height))
    return Play(world, lambda time: None)
