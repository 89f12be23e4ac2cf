"""Robots and vehicles on legs and wheels: `hexapod`, `firefighters`, `suspension`."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.gallery.parts import (
    BLUE,
    DARK,
    ORANGE,
    RED,
    SAND,
    SKY,
    STEEL,
    TEAL,
    YELLOW,
    X,
    Y,
    Z,
    block,
    link,
    point,
    spring,
    unit,
)
from pliant.mechanism import Builder, Mechanism

__all__ = ["firefighters", "hexapod", "suspension"]

_RADIUS, _HEIGHT = 0.55, 1.0  # of the trampoline


def hexapod() -> Mechanism:
    """A six-legged walking robot with a free base, after TVCG Fig. 1.

    A body of 0.5 m x 0.24 m, 4 kg, and six legs of coxa, femur and tibia: 19 bodies, 1 free joint and 18
    hinges (PD stiffness 60, 60 and 40 N m/rad), 24 dofs, no loop. It faces x; legs are called left1 (front)
    to right3. The body is 0.16 m above the ground z = 0 and the feet touch it. The end effectors are the
    six tibiae, with their frames at the centres of the round feet, 12 mm above the ground.
    """
    b = Builder("hexapod")
    hull, foot = point(0, 0, 0.16), 0.012
    head = shapes.sphere(0.05, position=(0.25, 0, 0.01), rgba=ORANGE)
    block(b, "body", hull, (0.25, 0.09, 0.035), mass=4.0, rgba=DARK, extra=[head])
    b.free("base", "world", "body")
    feet = []
    for side, sign in (("left", 1), ("right", -1)):
        for i, (x, angle) in enumerate(((0.2, 55), (0.0, 90), (-0.2, 125)), start=1):
            leg, direction = f"{side}{i}", math.radians(angle)
            out = point(math.cos(direction), sign * math.sin(direction), 0)
            bend = np.array([-out[1], out[0], 0])
            root = hull + point(x, sign * 0.1, 0)
            hip = root + 0.05 * out
            knee = hip + 0.12 * out + point(0, 0, 0.06)
            toe = np.array([*(hip + 0.20 * out)[:2], foot])
            link(b, f"{leg}_coxa", root, hip, 0.018, density=800.0, rgba=STEEL)
            link(b, f"{leg}_femur", hip, knee, 0.016, density=800.0, rgba=BLUE)
            link(b, f"{leg}_tibia", knee, toe, foot, origin=toe, density=800.0, rgba=SKY)
            b.hinge(f"{leg}_yaw", "body", f"{leg}_coxa", anchor=root, axis=Z, **spring(60.0))
            b.hinge(f"{leg}_lift", f"{leg}_coxa", f"{leg}_femur", anchor=hip, axis=bend, **spring(60.0))
            b.hinge(f"{leg}_knee", f"{leg}_femur", f"{leg}_tibia", anchor=knee, axis=bend, **spring(40.0))
            feet.append(f"{leg}_tibia")
    b.end_effectors(*feet)
    return b.build()


def firefighters() -> Mechanism:
    """Two firefighters holding a trampoline with both hands (TVCG Fig. 1).

    Each figure is 1.7 m tall and 79 kg: legs fixed to the ground, a torso on a universal waist, and two
    arms of a ball shoulder, a hinge elbow, a universal wrist and a hinge where the hand grips the rim. 17
    bodies (8 per figure and the trampoline, 1.1 m across, 8 kg) and 20 joints: 2 fixed, 6 universal, 4
    ball, 8 hinge; 32 dofs, 3 loops, 14 degrees of freedom left. The end effector is the trampoline.
    """
    b = Builder("firefighters")
    for name, sign, coat in (("left", -1, YELLOW), ("right", 1, RED)):
        _figure(b, name, sign, coat)
    rim = [_RADIUS * point(math.cos(a), math.sin(a), 0) for a in np.linspace(0, 2 * math.pi, 25)]
    ring = [shapes.rod(p, q, 0.02, rgba=RED) for p, q in pairwise(rim)]
    b.body(
        "trampoline",
        position=(0, 0, _HEIGHT),
        mass=8.0,
        shapes=[shapes.cylinder(_RADIUS, 0.008, rgba=SKY), *ring],
    )
    for name, sign in (("left", -1), ("right", 1)):
        for arm, side in (("l", 1), ("r", -1)):
            grip = _grip(sign, side)
            rim_tangent = unit(np.cross(Z, grip))
            b.hinge(
                f"{name}_{arm}_grip",
                f"{name}_{arm}_hand",
                "trampoline",
                anchor=grip,
                axis=rim_tangent,
                **spring(50.0, 0.01),
            )
    b.end_effectors("trampoline")
    return b.build()


def _grip(sign: int, side: int) -> NDArray[np.float64]:
    """Point of the trampoline's rim that a hand holds."""
    return point(sign * _RADIUS * math.cos(0.5), side * _RADIUS * math.sin(0.5), _HEIGHT)


def _figure(b: Builder, name: str, sign: int, coat: tuple) -> None:
    """A figure beyond x = sign * 0.9 that faces the z axis, hands on the rim of the trampoline."""
    x = sign * 0.98
    waist, chest = point(x, 0, 0.95), point(x, 0, 1.22)
    legs = [shapes.rod((0, y, -0.42), (0, y * 0.8, 0.42), 0.075, rgba=DARK) for y in (-0.13, 0.13)]
    feet = [
        shapes.box((0.12, 0.05, 0.035), position=(-sign * 0.05, y, -0.46), rgba=RED) for y in (-0.13, 0.13)
    ]
    b.body(f"{name}_legs", position=(x, 0, 0.495), mass=30.0, shapes=[*legs, *feet])
    helmet = shapes.ellipsoid(
        (0.14, 0.13, 0.07), position=(0, 0, 0.43), rgba=RED if coat is YELLOW else YELLOW
    )
    head = shapes.sphere(0.1, position=(0, 0, 0.36), rgba=SAND)
    block(b, f"{name}_torso", chest, (0.11, 0.17, 0.24), mass=40.0, rgba=coat, extra=[head, helmet])
    b.fixed(f"{name}_ground", "world", f"{name}_legs")
    b.universal(
        f"{name}_waist", f"{name}_legs", f"{name}_torso", anchor=waist, axes=(X, Y), **spring(2000.0, 0.01)
    )
    for arm, side in (("l", 1), ("r", -1)):
        shoulder = point(x, side * 0.23, 1.42)
        elbow = point(x - sign * 0.08, side * 0.31, 1.14)
        grip = _grip(sign, side)
        wrist = grip + 0.25 * (elbow - grip)
        limb = f"{name}_{arm}"
        link(b, f"{limb}_upper_arm", shoulder, elbow, 0.05, mass=2.2, rgba=coat)
        link(b, f"{limb}_forearm", elbow, wrist, 0.042, mass=1.6, rgba=coat)
        link(b, f"{limb}_hand", wrist, grip, 0.03, mass=0.7, rgba=DARK)
        along = unit(grip - elbow)
        bend = unit(np.cross(shoulder - elbow, grip - elbow))
        b.ball(
            f"{limb}_shoulder", f"{name}_torso", f"{limb}_upper_arm", anchor=shoulder, **spring(300.0, 0.01)
        )
        b.hinge(
            f"{limb}_elbow",
            f"{limb}_upper_arm",
            f"{limb}_forearm",
            anchor=elbow,
            axis=bend,
            **spring(200.0, 0.01),
        )
        b.universal(
            f"{limb}_wrist",
            f"{limb}_forearm",
            f"{limb}_hand",
            anchor=wrist,
            axes=(bend, np.cross(along, bend)),
            **spring(50.0, 0.01),
        )


def suspension() -> Mechanism:
    """One corner of a car: double wishbones, upright with wheel, spring strut, tie rod.

    The chassis is the world; x points forward, y out to the wheel. 6 bodies (lower and upper wishbone,
    upright, tie rod, two strut halves) and 9 joints: 2 hinges to the chassis, 5 balls (the upright's two,
    the tie rod's outer end, both ends of the strut), 1 universal (tie rod at the rack), 1 slide (the strut:
    60 kN/m, 4 kN s/m). 20 dofs, 3 loops closed in space, 2 degrees of freedom left: the wheel's travel
    and the strut's spin about itself, held by the rubber in its mounts. Wheel of 0.31 m radius; upright
    with wheel 32 kg. The end effector is the upright, with its frame at the hub.
    """
    hub = point(0, 0.75, 0.31)
    low, high = point(0.01, 0.68, 0.18), point(-0.02, 0.64, 0.46)
    rack, steer = point(-0.13, 0.33, 0.22), point(-0.13, 0.68, 0.23)
    bottom, top = point(0, 0.52, 0.20), point(0, 0.40, 0.68)
    middle = (bottom + top) / 2
    b = Builder("suspension")
    for name, tip, y, z, width in (("lower", low, 0.32, 0.17, 0.17), ("upper", high, 0.36, 0.44, 0.12)):
        feet = [point(x, y, z) for x in (-width, width)]
        rods = [shapes.rod(foot - tip, np.zeros(3), 0.014, rgba=STEEL) for foot in feet]
        if name == "lower":  # the seat of the strut
            rods.append(shapes.rod(bottom - tip, np.zeros(3), 0.012, rgba=STEEL))
        b.body(f"{name}_wishbone", position=tip, density=4500.0, shapes=rods)
        b.hinge(
            f"{name}_pivot",
            "world",
            f"{name}_wishbone",
            anchor=(feet[0] + feet[1]) / 2,
            axis=X,
            **spring(50.0),
        )
        for foot in feet:
            b.world_shape(shapes.box((0.02, 0.02, 0.02), position=foot, rgba=DARK))
    about_x = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    wheel = shapes.cylinder(0.31, 0.095, position=(0, 0.03, 0), orientation=about_x, rgba=(*DARK[:3], 0.35))
    arms = [shapes.rod(point - hub, np.zeros(3), 0.02, rgba=ORANGE) for point in (low, high, steer)]
    b.body("upright", position=hub, mass=32.0, shapes=[wheel, *arms])
    link(b, "tie_rod", rack, steer, 0.009, density=7850.0, rgba=TEAL)
    link(b, "strut_lower", bottom, middle, 0.028, density=3000.0, rgba=BLUE)
    link(b, "strut_upper", bottom + 0.45 * (top - bottom), top, 0.014, density=7850.0, rgba=YELLOW)
    rubber = spring(10.0)
    b.ball("lower_ball", "lower_wishbone", "upright", anchor=low, **rubber)
    b.ball("upper_ball", "upper_wishbone", "upright", anchor=high, **rubber)
    along = unit(steer - rack)
    across = unit(np.cross(along, Z))
    b.universal("rack_end", "world", "tie_rod", anchor=rack, axes=(across, np.cross(along, across)), **rubber)
    b.ball("tie_rod_end", "tie_rod", "upright", anchor=steer, **rubber)
    b.ball("strut_foot", "lower_wishbone", "strut_lower", anchor=bottom, **rubber)
    b.slide("strut", "strut_lower", "strut_upper", axis=unit(top - bottom), stiffness=60e3, damping=4e3)
    b.ball("strut_mount", "world", "strut_upper", anchor=top, **rubber)
    b.world_shape(shapes.cylinder(0.07, 0.015, position=top + point(0, 0, 0.03), rgba=DARK))
    b.world_shape(shapes.box((0.03, 0.03, 0.03), position=rack - point(0, 0.03, 0), rgba=DARK))
    b.end_effectors("upright")
    return b.build()
