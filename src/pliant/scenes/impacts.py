"""Impacts: `trampoline` catches a bunny (TVCG Fig. 1), `crane_and_wall` hits a wall with a heavy load."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant import gallery, shapes
from pliant.checks import EARTH, choice, number
from pliant.engines.reduced import reduce
from pliant.errors import InputError
from pliant.gallery.parts import STEEL
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.scenes.cables import swing_cable
from pliant.scenes.meshes import bunny
from pliant.scenes.scene import Scene
from pliant.statics import equilibrium
from pliant.text import brief
from pliant.world import World

__all__ = ["crane_and_wall", "trampoline"]

_RIM = 0.35  # m from the middle: a bunny that lands farther out may topple over the rim
_HEIGHT = 1.02  # m: height of the trampoline's surface
_SIDE = 1.3  # m: half the width of the vehicle, wheels included
_AXIAL, _BENDING = 3e7, 1e3  # N/m and N m/rad of the cable's joints


def trampoline(
    kind: str = "reduced",
    *,
    height: float = 1.0,
    aside: ArrayLike = (0.1, 0.05),
    mass: float = 2.0,
    timestep: float = 1 / 60,
) -> Scene:
    """Two firefighters catch a falling bunny on their trampoline.

    Shoulders, elbows, wrists and backs give way: the loops of arms and trampoline are one 6 x 6 compliance and inertia
    in the reduced model, whose only end effector is the trampoline. There is a floor, for bunnies they miss.

    Args:
        kind: model of the firefighters: "reduced" or "full".
        height: of the fall, m, at most 3.
        aside: where it comes down, from the middle of the trampoline, m; not beyond 0.35.
        mass: of the bunny, kg; it is 0.3 m long.
        timestep: seconds.

    Example:
        >>> import pliant
        >>> scene = pliant.scenes.trampoline()
        >>> scene.run(4.0)
        >>> bool(scene.world["bunny"].position[2] > 0.9)
        True
    """
    kind, mass = choice(kind, "kind", ("reduced", "full")), number(mass, "mass", above=0)
    height = number(height, "height", least=0, most=3)
    place = np.array(aside, dtype=np.float64) if np.shape(aside) == (2,) else np.full(2, np.nan)
    if not np.linalg.norm(place) <= _RIM:
        raise InputError(f"aside: two numbers within {_RIM} m of the middle expected, not {brief(aside)}")
    m = gallery.firefighters()
    start = equilibrium(m, gravity=EARTH)
    world = World(timestep)
    world.add_static("floor", shapes.plane(1.3, 0.6))
    if kind == "full":
        world.add(m, "firefighters", start=start)
    else:
        world.add(reduce(m, at=start), "firefighters")
    body = bunny(0.12)
    world.add_body("bunny", body, mass=mass, position=(*place, _HEIGHT + 0.85 * 0.12 + height))
    return Scene(world)


def crane_and_wall(
    swing: float = 30.0,
    *,
    gap: float = 0.5,
    restitution: float = 0.0,
    segments: int = 30,
    timestep: float = 1 / 60,
) -> Scene:
    """The gallery's crane lets its vehicle of 15,000 kg swing sideways against a wall.

    It moves with all joints, in steps with contact by backward Euler. Segments have 0.2 kg: 75,000 times less than the
    vehicle. The cable is softer than the gallery's, 15 cm longer under the vehicle's weight, and well damped: with one
    of 1e10 N/m, the step of an impact that makes it slack does not converge.

    Args:
        swing: angle from which the vehicle is let go, degrees, at most 60.
        gap: between the vehicle, hanging still, and the wall, m.
        restitution: of the wall.
        segments: number of cable segments.
        timestep: seconds.

    Example:
        >>> import pliant
        >>> scene = pliant.scenes.crane_and_wall()
        >>> scene.run(2.0)
        >>> bool(scene.world.pose("crane/vehicle")[1, 3] > -0.6)
        True
    """
    gap, swing = number(gap, "gap", above=0), number(swing, "swing", least=0, most=60)
    m = _roped(gallery.crane(segments))
    start = swing_cable(m, equilibrium(m, gravity=EARTH).q.copy(), swing)
    world = World(timestep)
    world.add(m, "crane", start=start)
    x = m.reference_poses[m.body_index("vehicle"), 0, 3]
    wall = shapes.box((4.0, 0.5, 4.5), rgba=STEEL)
    world.add_static("wall", wall, position=(x, -_SIDE - gap - 0.5, 4.5), restitution=restitution)
    return Scene(world)


def _roped(m: Mechanism) -> Mechanism:
    """The crane with a cable of wire rope: softer than the gallery's, and damped by its strands."""
    cable = [name for name in m.dof_names if name.startswith("joint")]
    turning = m.dof_kind[[m.dof_index(name) for name in cable]] == BALL
    stiffness = np.where(turning, _BENDING, _AXIAL)
    return m.with_stiffness(cable, stiffness, stiffness * np.where(turning, 0.1, 0.02))
