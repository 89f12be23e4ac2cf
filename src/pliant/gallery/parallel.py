"""Parallel mechanisms, whose platforms several limbs carry: `scissor_lift`, `stewart_platform`, `delta_robot`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.errors import InputError
from pliant.gallery.parts import (
    BLUE,
    DARK,
    ORANGE,
    SKY,
    STEEL,
    TEAL,
    YELLOW,
    X,
    Y,
    acute,
    link,
    normals,
    point,
    positive,
    sizes,
    spring,
    unit,
)
from pliant.mechanism import Builder, Mechanism

__all__ = ["delta_robot", "scissor_lift", "stewart_platform"]


def scissor_lift(stages: int = 4, *, arm: float = 0.6, angle: float = 0.6) -> Mechanism:
    """A scissor lift: `stages` pairs of crossed arms between the ground and a platform, all hinges along y.

    The left foot is hinged to the ground, the right one slides along it against the drive, a spring of 40
    kN/m; the platform stands on the uppermost arms in the same way. 2 * `stages` + 1 bodies, 3 * `stages`
    hinges and 2 sliding hinges, 3 * `stages` + 4 dofs, `stages` + 1 planar loops, 1 degree of freedom: the
    platform goes up and down and stays level.

    Args:
        stages: pairs of arms, one above the other.
        arm: length of an arm between its outer hinges, m.
        angle: of the arms above the horizontal, rad.

    The end effector is the platform.
    """
    (n,), length = sizes(stages=stages), positive(arm, "arm")
    angle = acute(angle, "angle")
    wide, rise = length * math.cos(angle), length * math.sin(angle)
    radius, apart = 0.025 * length, 0.25 * length
    pins = spring(2.0)
    b = Builder(f"scissor_lift {n}")

    def pair(
        start: NDArray[np.float64], end: NDArray[np.float64], middle: NDArray[np.float64], y: float
    ) -> list:
        """Shapes of an arm: a rod at either side and a shaft in the middle."""
        colour = BLUE if start[0] < end[0] else SKY
        rods = [
            shapes.rod(
                start - middle + point(0, s * y, 0), end - middle + point(0, s * y, 0), radius, rgba=colour
            )
            for s in (-1, 1)
        ]
        return [*rods, shapes.rod((0, -y, 0), (0, y, 0), 0.6 * radius, rgba=STEEL)]

    left, right = point(-wide / 2, 0, 0), point(wide / 2, 0, 0)
    for i in range(1, n + 1):
        up = point(0, 0, i * rise)
        middle = point(0, 0, (i - 0.5) * rise)
        # Arm a rises to the right, arm b, inside, to the left.
        for name, start, end, y in (("a", left, right, apart), ("b", right, left, apart - 2 * radius)):
            shape = pair(start + up - point(0, 0, rise), end + up, middle, y)
            b.body(f"{name}{i}", position=middle, density=700.0, shapes=shape)
        if i == 1:
            b.hinge("foot", "world", "a1", anchor=left, axis=Y, **pins)
        else:
            b.hinge(f"left{i}", f"b{i - 1}", f"a{i}", anchor=left + up - point(0, 0, rise), axis=Y, **pins)
        b.hinge(f"cross{i}", f"a{i}", f"b{i}", anchor=middle, axis=Y, **pins)
        if i == 1:
            _rolling(b, "drive", "world", "b1", right, 4e4, pins["stiffness"], rail="world")
        else:
            b.hinge(f"right{i}", f"a{i - 1}", f"b{i}", anchor=right + up - point(0, 0, rise), axis=Y, **pins)
    top, thick = point(0, 0, n * rise), 0.03 * length
    deck = shapes.box(
        (wide / 2 + 0.08 * length, apart + 0.05 * length, thick), position=(0, 0, radius + thick), rgba=ORANGE
    )
    b.body("platform", position=top, density=150.0, shapes=[deck])
    b.hinge("head", f"b{n}", "platform", anchor=left + top, axis=Y, **pins)
    _rolling(b, "roller", f"a{n}", "platform", right + top, 100.0, pins["stiffness"], rail="platform")
    b.world_shape(
        shapes.box(
            (wide / 2 + 0.15 * length, apart + 0.08 * length, thick),
            position=(0.05 * length, 0, -radius - thick),
            rgba=DARK,
        )
    )
    b.end_effectors("platform")
    return b.build()


def _rolling(
    b: Builder, name: str, parent: str, child: str, anchor: NDArray, slide: float, hinge: float, *, rail: str
) -> None:
    """A hinge about y that slides along x against springs; the rail belongs to the parent or to the child."""
    parts = [("slide", X, anchor, slide), ("hinge", Y, anchor, hinge)]
    if rail == child:
        parts.reverse()
    stiffness = np.array([part[3] for part in parts])
    b.stack(name, parent, child, [part[:3] for part in parts], stiffness=stiffness, damping=0.005 * stiffness)


def stewart_platform(
    *, base: float = 0.25, platform: float = 0.15, height: float = 0.3, stiffness: float = 1e5
) -> Mechanism:
    """A Stewart platform (hexapod): a platform on six legs, each a spring between a universal joint and a ball.

    Legs leave the ground in pairs, and meet the platform in pairs of other neighbours. A leg is two bodies, the
    tube on a universal joint and the rod that slides in it; a ball carries the platform: 13 bodies, 18 joints (6
    universals, 6 slides, 6 balls), 36 dofs, 5 loops closed in space, 6 degrees of freedom. Universals and balls
    have flexures of 0.05 N m/rad.

    Args:
        base, platform: radius of the circle of joints on the ground and on the platform, m.
        height: of the platform's joints above those on the ground, m.
        stiffness: of a leg, N/m.

    The end effector is the platform, with its frame in the middle of its joints.
    """
    base, platform = positive(base, "base"), positive(platform, "platform")
    height, stiffness = positive(height, "height"), positive(stiffness, "stiffness")
    thick = 0.04 * platform
    b = Builder("stewart_platform")
    centre = point(0, 0, height)
    deck = shapes.cylinder(1.1 * platform, thick, position=(0, 0, 2 * thick), rgba=ORANGE)
    seats, neck = [], spring(0.05)
    for i in range(6):
        # Feet at 120 k -+ 12 degrees, heads at 120 k + 60 -+ 12 degrees.
        sign, pair = (-1 if i % 2 == 0 else 1), (i + 1) // 2 * 120 - 60
        down, up = math.radians(i // 2 * 120 + sign * 12), math.radians(pair - sign * 12)
        foot = base * point(math.cos(down), math.sin(down), 0)
        head = platform * point(math.cos(up), math.sin(up), 0)
        seats.append((foot, centre + head))
    knobs = [shapes.sphere(0.1 * platform, position=head - centre, rgba=STEEL) for _, head in seats]
    b.body("platform", position=centre, density=1500.0, shapes=[deck, *knobs])
    for i, (foot, head) in enumerate(seats, start=1):
        link(b, f"tube{i}", foot, foot + 0.6 * (head - foot), 0.07 * platform, density=2700.0, rgba=BLUE)
        link(b, f"rod{i}", foot + 0.4 * (head - foot), head, 0.04 * platform, density=2700.0, rgba=YELLOW)
        b.universal(f"foot{i}", "world", f"tube{i}", anchor=foot, axes=normals(head - foot), **neck)
        b.slide(f"leg{i}", f"tube{i}", f"rod{i}", axis=unit(head - foot), **spring(stiffness, 0.002))
        b.ball(f"head{i}", f"rod{i}", "platform", anchor=head, **neck)
        b.world_shape(shapes.sphere(0.12 * platform, position=foot, rgba=STEEL))
    b.world_shape(shapes.cylinder(1.15 * base, thick, position=(0, 0, -2 * thick), rgba=DARK))
    b.end_effectors("platform")
    return b.build()


def delta_robot(
    *,
    base: float = 0.12,
    platform: float = 0.05,
    arm: float = 0.2,
    rod: float = 0.42,
    stiffness: float = 30.0,
) -> Mechanism:
    """A delta robot: three arms with springy motors, each of which moves the platform by a parallelogram of rods.

    Motors are in a plane 0.8 m above the ground, arms reach out from there, 15 degrees below the horizontal.
    Rods are on universal joints at the arms and on balls at the platform. 10 bodies (3 arms, 6 rods, the
    platform) and 15 joints (3 hinges, 6 universals, 6 balls), 33 dofs, 5 loops closed in space, 3 degrees of
    freedom: the platform moves in all directions and never turns. Universals and balls have 0.005 N m/rad.

    Args:
        base, platform: distance of the motors, and of the rods' lower ends, from the middle, m.
        arm, rod: length of an arm and of a rod, m.
        stiffness: of a motor, N m/rad.

    The end effector is the platform, with its frame in the middle of the rods' ends.
    """
    base, platform = positive(base, "base"), positive(platform, "platform")
    arm, rod = positive(arm, "arm"), positive(rod, "rod")
    stiffness = positive(stiffness, "stiffness")
    top, tilt, half, radius = 0.8, math.radians(15), 0.035, 0.008
    reach = base + arm * math.cos(tilt) - platform
    if abs(reach) >= rod:
        raise InputError(
            f"rod: more than {abs(reach):.3g} m expected, to reach from arm to platform, not {rod:g}"
        )
    low = top - arm * math.sin(tilt) - math.sqrt(rod**2 - reach**2)
    b = Builder("delta_robot")
    centre, rubber = point(0, 0, low), spring(0.005)
    spokes = [
        shapes.rod(0 * centre, platform * _radial(k) + s * half * _tangent(k), radius, rgba=ORANGE)
        for k in range(3)
        for s in (-1, 1)
    ]
    tool = shapes.cylinder(0.5 * platform, 0.015, position=(0, 0, -0.015), rgba=DARK)
    b.body("platform", position=centre, density=1500.0, shapes=[tool, *spokes])
    for k in range(3):
        out, side, name = _radial(k), _tangent(k), f"{k + 1}"
        motor = base * out + point(0, 0, top)
        elbow = motor + arm * (math.cos(tilt) * out - point(0, 0, math.sin(tilt)))
        cross = shapes.rod(-half * side, half * side, radius, rgba=BLUE)
        link(
            b,
            f"arm{name}",
            motor,
            elbow,
            1.5 * radius,
            origin=elbow,
            density=1500.0,
            rgba=BLUE,
            extra=[cross],
        )
        b.hinge(f"motor{name}", "world", f"arm{name}", anchor=motor, axis=side, **spring(stiffness))
        shift = centre + platform * out - elbow
        about = unit(np.cross(side, shift))
        for letter, s in (("a", -1), ("b", 1)):
            start, body = elbow + s * half * side, f"rod{name}{letter}"
            link(b, body, start, start + shift, 0.6 * radius, density=1500.0, rgba=SKY)
            b.universal(
                f"upper{name}{letter}", f"arm{name}", body, anchor=start, axes=(side, about), **rubber
            )
            b.ball(f"lower{name}{letter}", body, "platform", anchor=start + shift, **rubber)
        b.world_shape(shapes.rod(motor - 0.04 * side, motor + 0.04 * side, 2.5 * radius, rgba=TEAL))
        b.world_shape(shapes.rod((0, 0, top), motor, radius, rgba=DARK))
    b.world_shape(shapes.cylinder(1.3 * base, 0.01, position=(0, 0, top + 0.03), rgba=DARK))
    b.end_effectors("platform")
    return b.build()


def _radial(k: int) -> NDArray[np.float64]:
    """Direction from the middle to the motor number k of three."""
    angle = math.radians(120 * k + 90)
    return point(math.cos(angle), math.sin(angle), 0)


def _tangent(k: int) -> NDArray[np.float64]:
    """Axis of the motor number k, horizontal, such that a positive angle lowers the arm."""
    x, y, _ = _radial(k)
    return point(-y, x, 0)
