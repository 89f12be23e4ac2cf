"""`suspension`: a car over bumps."""

from __future__ import annotations

import math

from pliant import shapes
from pliant.errors import InputError
from pliant.gallery._parts import BLUE, DARK, ORANGE, RED, SKY, STEEL, X, Y, amount, block, link, point
from pliant.gallery.worlds.play import Play
from pliant.mechanism import Builder, Mechanism
from pliant.world import World

__all__ = ["car", "suspension"]

_RADIUS = 0.3  # m, of a wheel
_TYRE = 5e-6  # m/N: tyres give way by a centimetre under the car's weight
_CORNERS = {
    "front_left": (1.2, 1),
    "front_right": (1.2, -1),
    "rear_left": (-1.2, 1),
    "rear_right": (-1.2, -1),
}


def car(stiffness: float = 14e3, ratio: float = 0.3) -> Mechanism:
    """A car of 800 kg on four double wishbones: 17 bodies, 4 planar loops, a free base.

    A corner is a lower and an upper wishbone, an upright and a wheel of 0.3 m radius; all hinges but the wheel's are
    along x, the direction of travel. The spring, on the lower wishbone, carries the weight at the reference pose.

    Args:
        stiffness: of the springs, as felt at a wheel, N/m.
        ratio: their damping, over the critical damping of a quarter of the car.
    """
    stiffness, ratio = amount("stiffness", stiffness), amount("ratio", ratio, zero=True)
    b, sprung, arm = Builder("car"), 800.0, 0.4
    cabin = shapes.box((0.7, 0.5, 0.2), position=(-0.2, 0, 0.35), rgba=SKY)
    block(b, "chassis", (0, 0, 0.45), (1.5, 0.28, 0.15), mass=sprung, rgba=RED, extra=[cabin])
    b.free("base", "world", "chassis")
    spring = {
        "stiffness": stiffness * arm**2,
        "damping": 2 * ratio * math.sqrt(stiffness * sprung / 4) * arm**2,
    }
    about_x = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    for name, (x, side) in _CORNERS.items():
        inner, outer, hub = 0.3 * side, (0.3 + arm) * side, 0.75 * side
        low, high = (point(x, outer, z) for z in (0.2, 0.4))
        link(b, f"{name}_lower", point(x, inner, 0.2), low, 0.03, mass=6.0, rgba=STEEL)
        link(b, f"{name}_upper", point(x, inner, 0.4), high, 0.025, mass=4.0, rgba=STEEL)
        link(b, f"{name}_upright", low, high, 0.03, mass=8.0, rgba=ORANGE)
        wheel = shapes.cylinder(_RADIUS, 0.09, orientation=about_x, rgba=DARK)
        b.body(f"{name}_wheel", mass=14.0, position=(x, hub + 0.07 * side, _RADIUS), shapes=[wheel])
        carried = -side * sprung / 4 * 9.81 / (stiffness * arm)  # rad, up on the left is positive
        b.hinge(
            f"{name}_spring",
            "chassis",
            f"{name}_lower",
            anchor=(x, inner, 0.2),
            axis=X,
            rest=carried,
            **spring,
        )
        b.hinge(f"{name}_top", "chassis", f"{name}_upper", anchor=(x, inner, 0.4), axis=X)
        b.hinge(f"{name}_low_pin", f"{name}_lower", f"{name}_upright", anchor=low, axis=X)
        b.hinge(f"{name}_high_pin", f"{name}_upper", f"{name}_upright", anchor=high, axis=X)
        b.hinge(f"{name}_axle", f"{name}_upright", f"{name}_wheel", anchor=(x, hub, _RADIUS), axis=Y)
    b.end_effectors("chassis")
    return b.build()


def suspension(
    *,
    speed: float = 4.0,
    bump: float = 0.06,
    stiffness: float = 14e3,
    ratio: float = 0.3,
    timestep: float = 1 / 240,
) -> Play:
    """A car drives over three bumps: one as wide as the car, one on the left, one on the right.

    It moves with all joints, by motors in its axles.

    Args:
        speed: m/s, at most 8.
        bump: height of the bumps, m, at most 0.1.
        stiffness, ratio: of the springs, see `car`.
        timestep: seconds; short enough for wheels to meet a bump step by step.

    Example:
        >>> from pliant.gallery import worlds
        >>> scene = worlds.suspension(bump=0.06)
        >>> scene.run(3.0)
        >>> bool(scene.world.pose("car/chassis")[0, 3] > 10)
        True
    """
    for name, value, most in (("speed", speed, 8.0), ("bump", bump, 0.1)):
        if amount(name, value, zero=True) > most:
            raise InputError(f"{name}: at most {most} expected, not {value!r}")
    m = car(stiffness, ratio)
    world = World(timestep)
    world.add_static("road", shapes.plane(6.0, 1.4, position=(4.0, 0, 0)))
    for i, (x, y, half) in enumerate(((3.0, 0.0, 1.2), (6.0, 0.8, 0.4), (8.0, -0.8, 0.4)) if bump else ()):
        ridge = shapes.rod((x, y - half, bump - 0.15), (x, y + half, bump - 0.15), 0.15, rgba=BLUE)
        world.add_static(f"bump{i + 1}", ridge)
    world.add(m, "car", compliance=_TYRE)
    simulation = world["car"]
    turning = speed / _RADIUS
    simulation.velocity = {m.dof_names[0]: speed, **{f"{name}_axle": turning for name in _CORNERS}}
    for name in _CORNERS:
        simulation.set_motor(f"{name}_axle", velocity=turning, damping=100.0)
    return Play(world, lambda time: None)
