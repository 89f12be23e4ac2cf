"""Cables with loads: `cable`, `crane`, `strong_robot`."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from pliant import shapes
from pliant.checks import choice
from pliant.gallery.parts import (
    BLUE,
    DARK,
    GREEN,
    ORANGE,
    RED,
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
    positive,
    sizes,
    spring,
    unit,
)
from pliant.mechanism import Builder, Mechanism

__all__ = ["cable", "crane", "strong_robot"]

KINDS = ("bushing", "ball", "hinge", "universal")


def cable(
    joints: int = 20,
    load: float = 100.0,
    *,
    kind: str = "bushing",
    length: float = 2.0,
    segment: float = 0.1,
    stiffness: float = 10.0,
    axial: float = 1e12,
    damping: float = 1e-4,
) -> Mechanism:
    """A cable that hangs straight down from the origin, with a heavy load (GS17 Figs. 4, 7 to 10).

    `joints` - 1 segments and the load: as many bodies as joints. The default is the 100 kg pendulum of GS17
    Fig. 8: axial stiffness 1e12, bending and torsion 10.

    Args:
        joints: number of joints, the one at the load included.
        load: mass of the load, kg.
        kind: "bushing" (flexible cable, 6 dofs each), "ball" (3), "universal" (2, about x and y) or
            "hinge" (1, about y and x in turn).
        length: of the cable, m.
        segment: mass of a segment, kg.
        stiffness: rotational stiffness of every joint, N m/rad; 0 for free joints.
        axial: stiffness of a bushing in all three translations, N/m.
        damping: damping over stiffness, s.

    The end effector is the load.
    """
    n, load, length = (
        sizes(joints=joints)[0],
        positive(load, "load"),
        positive(length, "length"),
    )
    kind, segment = choice(kind, "kind", KINDS), positive(segment, "segment")
    springs = (
        positive(stiffness, "stiffness", zero=True),
        positive(axial, "axial", zero=True),
        positive(damping, "damping", zero=True),
    )
    b = Builder(f"cable {n} {kind}")
    points = np.zeros((n, 3))
    points[:, 2] = -length * np.linspace(0, 1, n) if n > 1 else -length
    last = _segments(b, "world", points, segment, kind, springs, radius=0.008) if n > 1 else "world"
    edge = (load / 7850) ** (1 / 3)  # a cube of steel
    block(b, "load", points[-1] - point(0, 0, edge / 2), (edge / 2,) * 3, mass=load, rgba=ORANGE)
    _cable_joint(b, f"joint{n}", last, "load", points[-1], n, kind, springs)
    b.world_shape(shapes.box((0.06, 0.06, 0.02), position=(0, 0, 0.03), rgba=DARK))
    b.end_effectors("load")
    return b.build()


def _segments(
    b: Builder,
    parent: str,
    points: np.ndarray,
    mass: float,
    kind: str,
    springs: tuple[float, float, float],
    radius: float,
) -> str:
    """Capsules between the points, each jointed to the one before; returns the last one."""
    for i, (p, q) in enumerate(pairwise(points), start=1):
        link(b, f"segment{i}", p, q, radius, mass=mass, rgba=SKY if i % 2 else BLUE)
        _cable_joint(b, f"joint{i}", parent, f"segment{i}", p, i, kind, springs)
        parent = f"segment{i}"
    return parent


def _cable_joint(
    b: Builder,
    name: str,
    parent: str,
    child: str,
    anchor: ArrayLike,
    number: int,
    kind: str,
    springs: tuple[float, float, float],
) -> None:
    turn, axial, time = springs
    if kind == "bushing":
        values = np.array([axial] * 3 + [turn] * 3)
        b.bushing(name, parent, child, anchor=anchor, stiffness=values, damping=values * time)
    elif kind == "ball":
        b.ball(name, parent, child, anchor=anchor, **spring(turn, time))
    elif kind == "universal":
        b.universal(name, parent, child, anchor=anchor, axes=(X, Y), **spring(turn, time))
    else:
        b.hinge(name, parent, child, anchor=anchor, axis=Y if number % 2 else X, **spring(turn, time))


def crane(segments: int = 30) -> Mechanism:
    """A crane with a boom of 100,000 kg and a vehicle of 15,000 kg on a cable (GS17 Figs. 1 and 11).

    The tower slews about z, the boom (20 m, raised by 20 degrees) is hinged to it and held by a luffing
    strut of barrel and rod, so there is one planar loop. The cable is of bushings: 1e10 N/m in every
    translation, 10 N m/rad in bending and torsion; it is 6 m long. Bodies: tower, boom, barrel, rod,
    vehicle and the segments; joints: 4 hinges, 1 slide and `segments` + 1 bushings. A segment has 0.2 kg.
    The masses are GS17's: their ratio is 500,000 : 1.

    Args:
        segments: number of cable segments.

    The end effector is the vehicle.
    """
    (n,) = sizes(segments=segments)
    rise = math.radians(20)
    ahead = point(math.cos(rise), 0, math.sin(rise))
    foot, strut_foot = point(1.0, 0, 8.0), point(1.0, 0, 3.5)
    tip, strut_head = foot + 20 * ahead, foot + 7 * ahead
    b = Builder("crane")
    cab = shapes.box((1.2, 1.2, 1.0), position=(-1.2, 0, 3.0), rgba=TEAL)
    weight = shapes.box((1.0, 1.4, 1.0), position=(-2.6, 0, 4.6), rgba=DARK)
    block(b, "tower", (0, 0, 4.5), (0.7, 0.7, 4.0), mass=40e3, rgba=YELLOW, extra=[cab, weight])
    link(b, "boom", foot, tip, 0.5, mass=100e3, rgba=YELLOW)
    link(b, "barrel", strut_foot, strut_foot + 0.55 * (strut_head - strut_foot), 0.28, mass=2e3, rgba=DARK)
    link(b, "rod", strut_foot + 0.4 * (strut_head - strut_foot), strut_head, 0.16, mass=1e3, rgba=STEEL)
    b.hinge("slew", "world", "tower", anchor=(0, 0, 0.5), axis=Z, **spring(1e9, 0.01))
    b.hinge("boom_foot", "tower", "boom", anchor=foot, axis=Y, **spring(1e6, 0.01))
    b.hinge("strut_foot", "tower", "barrel", anchor=strut_foot, axis=Y, **spring(1e5, 0.01))
    b.slide("luff", "barrel", "rod", axis=unit(strut_head - strut_foot), **spring(5e8, 0.01))
    b.hinge("strut_head", "boom", "rod", anchor=strut_head, axis=Y, **spring(1e5, 0.01))
    points = tip - np.linspace(0, 6, n + 1)[:, None] * np.array(Z)
    springs = (10.0, 1e10, 1e-4)
    last = _segments(b, "boom", points, 0.2, "bushing", springs, radius=0.04)
    wheels = [
        shapes.cylinder(
            0.5, 0.2, position=(x, y, -0.9), orientation=(math.sqrt(0.5), math.sqrt(0.5), 0, 0), rgba=DARK
        )
        for x in (-1.8, 1.8)
        for y in (-1.1, 1.1)
    ]
    cabin = shapes.box((0.9, 1.0, 0.5), position=(1.6, 0, 1.0), rgba=SKY)
    slings = [
        shapes.rod((0, 0, 2.4), (x, y, 0.6), 0.04, rgba=STEEL) for x in (-2.2, 2.2) for y in (-0.8, 0.8)
    ]
    bed = points[-1] - point(0, 0, 2.4)
    block(b, "vehicle", bed, (2.8, 1.1, 0.6), mass=15e3, rgba=RED, extra=[*wheels, *slings, cabin])
    _cable_joint(b, f"joint{n + 1}", last, "vehicle", points[-1], n + 1, "bushing", springs)
    b.world_shape(shapes.box((2.5, 2.5, 0.25), position=(0, 0, 0.25), rgba=STEEL))
    b.end_effectors("vehicle")
    return b.build()


def strong_robot(segments: int = 20) -> Mechanism:
    """A robot that holds a 15,000 kg tank back by a cable (GS17 Figs. 5 and 6).

    The robot has 26 joints, as in GS17: 5 balls (neck, four fingertips on the cable's end), 11 universals
    (ankles, hips, waist, collars, shoulders, wrists) and 10 hinges (feet on the ground, knees, elbows, four
    fingers). The cable is of `segments` + 1 bushings, 1e10 N/m in every translation and 10 N m/rad in
    bending and torsion, between the tank, on a slide along x for a motor to drive, and the handle.
    `segments` + 23 bodies, 5 loops. The robot is 1.8 m tall, 110 kg, fingers of 0.1 kg; every one of its
    joints has a PD spring. The end effectors are the handle and the tank.

    Args:
        segments: number of cable segments.
    """
    (n,) = sizes(segments=segments)
    b = Builder("strong_robot")
    _legs_and_trunk(b)
    grip = point(0.62, 0, 1.18)
    hook = point(4.5, 0, 1.18)
    tracks = [shapes.box((1.9, 0.25, 0.4), position=(0, y, -0.5), rgba=DARK) for y in (-1.0, 1.0)]
    turret = shapes.box((0.9, 0.75, 0.3), position=(0.1, 0, 0.75), rgba=TEAL)
    gun = shapes.rod((1.0, 0, 0.8), (3.0, 0, 0.95), 0.08, rgba=TEAL)
    block(b, "tank", (6.3, 0, 0.95), (1.75, 1.0, 0.45), mass=15e3, rgba=GREEN, extra=[*tracks, turret, gun])
    b.slide("drive", "world", "tank", axis=X, **spring(1e4))
    springs = (10.0, 1e10, 1e-4)
    start = grip + point(0.06, 0, 0)
    points = hook + np.linspace(0, 1, n + 1)[:, None] * (start - hook)
    last = _segments(b, "tank", points, 0.2, "bushing", springs, radius=0.015)
    link(
        b,
        "handle",
        grip - point(0, 0.16, 0),
        grip + point(0, 0.16, 0),
        0.015,
        mass=1.0,
        rgba=ORANGE,
        extra=[shapes.rod((0, 0, 0), start - grip, 0.012, rgba=ORANGE)],
    )
    _cable_joint(b, f"joint{n + 1}", last, "handle", start, n + 1, "bushing", springs)
    for side, s in (("left", 1), ("right", -1)):
        _strong_arm(b, side, s, grip)
    b.world_shape(shapes.box((0.4, 0.4, 0.01), position=(0, 0, -0.01), rgba=STEEL))
    b.end_effectors("handle", "tank")
    return b.build()


def _legs_and_trunk(b: Builder) -> None:
    """Feet to head, leaning back; 5 + 2 * 3 bodies."""
    waist, neck = point(-0.16, 0, 1.02), point(-0.30, 0, 1.50)
    block(b, "pelvis", (-0.15, 0, 0.95), (0.09, 0.14, 0.07), mass=16.0, rgba=DARK)
    for side, s in (("left", 1), ("right", -1)):
        ankle, knee, hip = (0, 0.16 * s, 0.09), (0.06, 0.15 * s, 0.5), (-0.14, 0.1 * s, 0.92)
        block(b, f"{side}_foot", (0.05, 0.16 * s, 0.04), (0.13, 0.055, 0.04), mass=2.0, rgba=DARK)
        link(b, f"{side}_shin", ankle, knee, 0.05, mass=5.0, rgba=BLUE)
        link(b, f"{side}_thigh", knee, hip, 0.065, mass=9.0, rgba=SKY)
        b.hinge(f"{side}_ground", "world", f"{side}_foot", anchor=(-0.06, 0.16 * s, 0), axis=Y, **spring(2e4))
        b.universal(f"{side}_ankle", f"{side}_foot", f"{side}_shin", anchor=ankle, axes=(Y, X), **spring(2e4))
        b.hinge(f"{side}_knee", f"{side}_shin", f"{side}_thigh", anchor=knee, axis=Y, **spring(2e4))
        b.universal(f"{side}_hip", f"{side}_thigh", "pelvis", anchor=hip, axes=(X, Z), **spring(2e4))
    chest = (waist + neck) / 2
    lean = math.atan2(waist[0] - neck[0], neck[2] - waist[2]) / 2
    trunk = shapes.box((0.10, 0.18, 0.20), orientation=(math.cos(lean), 0, -math.sin(lean), 0), rgba=BLUE)
    b.body("chest", position=chest, mass=32.0, shapes=[trunk])
    b.body("head", position=neck + point(-0.03, 0, 0.16), mass=5.0, shapes=[shapes.sphere(0.11, rgba=ORANGE)])
    b.universal("waist", "pelvis", "chest", anchor=waist, axes=(X, Y), **spring(2e4))
    b.ball("neck", "chest", "head", anchor=neck, **spring(500.0))


def _strong_arm(b: Builder, side: str, s: int, grip: np.ndarray) -> None:
    """Collar to the two fingertips on the handle; 6 bodies."""
    root, shoulder = point(-0.27, 0.08 * s, 1.42), point(-0.26, 0.25 * s, 1.42)
    elbow, wrist = point(0.06, 0.30 * s, 1.27), point(0.38, 0.14 * s, 1.2)
    knuckle = point(0.50, 0.11 * s, 1.19)
    link(b, f"{side}_collar", root, shoulder, 0.045, mass=3.0, rgba=DARK)
    link(b, f"{side}_upper_arm", shoulder, elbow, 0.05, mass=5.0, rgba=SKY)
    link(b, f"{side}_forearm", elbow, wrist, 0.042, mass=3.5, rgba=BLUE)
    link(b, f"{side}_hand", wrist, knuckle, 0.03, mass=1.0, rgba=DARK)
    b.universal(f"{side}_collar", "chest", f"{side}_collar", anchor=root, axes=(Z, X), **spring(1e4))
    b.universal(
        f"{side}_shoulder", f"{side}_collar", f"{side}_upper_arm", anchor=shoulder, axes=(Y, Z), **spring(1e4)
    )
    bend = unit(np.cross(shoulder - elbow, wrist - elbow))
    b.hinge(f"{side}_elbow", f"{side}_upper_arm", f"{side}_forearm", anchor=elbow, axis=bend, **spring(1e4))
    b.universal(f"{side}_wrist", f"{side}_forearm", f"{side}_hand", anchor=wrist, axes=(Y, Z), **spring(5e3))
    for finger, y in (("finger", 0.14), ("thumb", 0.07)):
        tip = grip + point(0, y * s, 0)
        name = f"{side}_{finger}"
        link(b, name, knuckle, tip, 0.012, mass=0.1, rgba=ORANGE)
        b.hinge(
            name, f"{side}_hand", name, anchor=knuckle, axis=unit(np.cross(Z, tip - knuckle)), **spring(1e3)
        )
        b.ball(f"{name}_tip", name, "handle", anchor=tip, **spring(10.0))
