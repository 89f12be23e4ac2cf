"""`crane_and_wall`: a heavy load on a light cable hits something."""

from __future__ import annotations

import math

import numpy as np

from pliant import shapes, spatial
from pliant.errors import InputError
from pliant.gallery._parts import STEEL, amount
from pliant.gallery.cables import crane
from pliant.gallery.worlds.play import Play
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics import equilibrium
from pliant.world import World

__all__ = ["crane_and_wall"]

_SIDE = 1.3  # m, half the width of the vehicle, wheels included
_AXIAL, _BENDING = 3e7, 1e3  # N/m and N m/rad of the cable's joints


def crane_and_wall(
    swing: float = 30.0,
    *,
    gap: float = 0.5,
    restitution: float = 0.0,
    segments: int = 30,
    timestep: float = 1 / 60,
) -> Play:
    """The gallery's crane lets its vehicle of 15,000 kg swing sideways against a wall.

    It moves with all joints, in steps with contact by backward Euler. Segments have 0.2 kg: 75,000 times less than the
    vehicle. The cable gives way more than the gallery's, 15 cm under the vehicle's weight, and is well damped: a step
    in which it goes slack by a blow does not settle with one of 1e10 N/m.

    Args:
        swing: angle from which the vehicle is let go, degrees, at most 60.
        gap: between the vehicle, hanging still, and the wall, m.
        restitution: of the wall.
        segments: number of cable segments.
        timestep: seconds.

    Example:
        >>> from pliant.gallery import worlds
        >>> scene = worlds.crane_and_wall()
        >>> scene.run(2.0)
        >>> bool(scene.world.pose("crane/vehicle")[1, 3] > -0.6)
        True
    """
    gap = amount("gap", gap)
    if amount("swing", swing, zero=True) > 60:
        raise InputError(f"swing: at most 60 degrees expected, not {swing!r}")
    m = _roped(crane(segments))
    start = equilibrium(m, gravity=(0.0, 0.0, -9.81)).q.copy()
    first = m.joint_coordinates(m.joint_index("joint1"))
    aside = spatial.quat_exp((math.radians(swing), 0.0, 0.0))
    start[first.stop - 4 : first.stop] = spatial.quat_multiply(aside, start[first.stop - 4 : first.stop])
    world = World(timestep)
    world.add(m, "crane", start=start)
    x = m.reference_poses[m.body_index("vehicle"), 0, 3]
    wall = shapes.box((4.0, 0.5, 4.5), rgba=STEEL)
    world.add_static("wall", wall, position=(x, -_SIDE - gap - 0.5, 4.5), restitution=restitution)
    return Play(world, lambda time: None)


def _roped(m: Mechanism) -> Mechanism:
    """With a cable of wire rope: softer, and damped by its strands."""
    cable = [name for name in m.dof_names if name.startswith("joint")]
    turning = m.dof_kind[[m.dof_index(name) for name in cable]] == BALL
    stiffness = np.where(turning, _BENDING, _AXIAL)
    return m.with_stiffness(cable, stiffness, stiffness * np.where(turning, 0.1, 0.02))
