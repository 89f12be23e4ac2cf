"""Arms, hands and grippers: `arm`, `hand`, `gripper`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.errors import InputError
from pliant.gallery.parts import (
    BLUE,
    DARK,
    ORANGE,
    RED,
    SAND,
    SKY,
    STEEL,
    TEAL,
    X,
    Y,
    Z,
    block,
    link,
    point,
    positive,
    spring,
)
from pliant.mechanism import Builder, Mechanism
from pliant.text import brief

__all__ = ["arm", "gripper", "hand"]


@dataclass(frozen=True)
class _Finger:
    """A finger in its hand's frame: x along the fingers, y towards the thumb, z out of the back of the hand.

    Attributes:
        knuckle: where it starts.
        lengths: of its links, knuckle to tip.
        splay: angle in the plane of the palm, positive towards the thumb.
        curl: angles of the links below the plane of the palm.
    """

    name: str
    knuckle: tuple[float, float, float]
    lengths: tuple[float, float, float]
    splay: float
    curl: tuple[float, float, float]

    def geometry(self) -> tuple[NDArray, NDArray, NDArray]:
        """Its four nodes, the axis its joints bend about, and the axis it is splayed about."""
        forward = point(math.cos(self.splay), math.sin(self.splay), 0.0)
        bend = point(-math.sin(self.splay), math.cos(self.splay), 0.0)
        steps = [
            n * (math.cos(c) * forward - math.sin(c) * np.array(Z))
            for n, c in zip(self.lengths, self.curl, strict=True)
        ]
        return np.cumsum(np.vstack([self.knuckle, *steps]), axis=0), bend, np.array(Z)


_CURL = (math.radians(12), math.radians(30), math.radians(45))
_FINGERS = (
    _Finger("index", (0.092, 0.033, 0.0), (0.045, 0.026, 0.022), math.radians(5), _CURL),
    _Finger("middle", (0.096, 0.011, 0.0), (0.050, 0.030, 0.023), 0.0, _CURL),
    _Finger("ring", (0.092, -0.011, 0.0), (0.045, 0.028, 0.022), math.radians(-5), _CURL),
    _Finger("little", (0.084, -0.033, 0.0), (0.036, 0.022, 0.019), math.radians(-10), _CURL),
    _Finger(
        "thumb",
        (0.025, 0.040, -0.006),
        (0.042, 0.034, 0.027),
        math.radians(55),
        (math.radians(10), math.radians(20), math.radians(30)),
    ),
)
_PALM = (0.048, 0.042, 0.012)  # half extents


def arm() -> Mechanism:
    """A robot arm with a five-fingered hand (TVCG Tables 1 and 2: 20 links).

    Five links from the shoulder to the palm (turret, upper arm, forearm, wrist, palm) and five fingers of
    three links: 20 bodies, 20 hinges, no loop. The arm reaches 0.77 m forward along x from a shoulder at
    the origin. Springs of 1000 N m/rad in the arm and 100 N m/rad in the fingers. The end effectors are the
    five fingertips, with their frames at the very tips.
    """
    shoulder, elbow = point(0, 0, 0.08), point(0.28, 0, -0.08)
    wrist, palm = point(0.52, 0, 0.0), point(0.58, 0, 0.0)
    b = Builder("arm")
    link(b, "turret", (0, 0, 0), shoulder, 0.05, density=500.0, rgba=DARK)
    link(b, "upper_arm", shoulder, elbow, 0.04, density=500.0, rgba=BLUE)
    link(b, "forearm", elbow, wrist, 0.032, density=500.0, rgba=SKY)
    link(b, "wrist", wrist, palm, 0.024, density=500.0, rgba=STEEL)
    block(b, "palm", palm + point(0.048, 0, 0), _PALM, mass=0.35, rgba=SAND)
    b.hinge("shoulder_yaw", "world", "turret", anchor=(0, 0, 0), axis=Z, **spring(1000.0))
    b.hinge("shoulder_pitch", "turret", "upper_arm", anchor=shoulder, axis=Y, **spring(1000.0))
    b.hinge("elbow", "upper_arm", "forearm", anchor=elbow, axis=Y, **spring(1000.0))
    b.hinge("wrist_roll", "forearm", "wrist", anchor=wrist, axis=X, **spring(1000.0))
    b.hinge("wrist_pitch", "wrist", "palm", anchor=palm, axis=Y, **spring(1000.0))
    tips = []
    for finger in _FINGERS:
        nodes, bend, _ = finger.geometry()
        tips.append(_phalanges(b, finger.name, nodes + palm, "palm"))
        for k, (parent, child) in enumerate(_links(finger.name, "palm")):
            b.hinge(
                f"{finger.name}_joint{k + 1}",
                parent,
                child,
                anchor=nodes[k] + palm,
                axis=bend,
                **spring(100.0),
            )
    b.world_shape(shapes.cylinder(0.09, 0.02, position=(0, 0, -0.07), rgba=DARK))
    b.end_effectors(*tips)
    return b.build()


def hand(
    *,
    index: float = 1.0,
    middle: float = 1.0,
    ring: float = 1.0,
    little: float = 1.0,
    thumb: float = 1.0,
    proximal: float = 1.0,
    medial: float = 1.0,
    tip: float = 1.0,
) -> Mechanism:
    """A human-sized hand with 24 degrees of freedom, laid out like the Shadow Hand; the forearm is fixed.

    The wrist is universal (2). Index, middle and ring finger have a universal knuckle and two hinges (4
    each), the little finger a palm hinge before these (5), the thumb two universals and a hinge (5). 17
    bodies, 7 universals and 10 hinges, no loop. Springs: wrist 20, knuckles 3, then 2 and 1 N m/rad: ten
    newtons at a fingertip bend it visibly. The fingers point along x, the palm faces down. The end
    effectors are the five fingertips, with their frames at the very tips.

    Args:
        index, middle, ring, little, thumb: factors on the usual lengths of a finger's links.
        proximal, medial, tip: likewise, of the first, second and third links of all fingers.
    """
    along = [positive(x, name) for name, x in (("proximal", proximal), ("medial", medial), ("tip", tip))]
    long = {"index": index, "middle": middle, "ring": ring, "little": little, "thumb": thumb}
    b = Builder("hand")
    block(b, "palm", (0.048, 0, 0), _PALM, mass=0.35, rgba=SAND)
    b.universal("wrist", "world", "palm", anchor=(0, 0, 0), axes=(Y, Z), **spring(20.0))
    tips = []
    for usual in _FINGERS:
        times = positive(long[usual.name], usual.name)
        finger = replace(
            usual, lengths=tuple(n * times * a for n, a in zip(usual.lengths, along, strict=True))
        )
        nodes, bend, splay = finger.geometry()
        root, name = "palm", finger.name
        if name == "little":
            root, start = "little_metacarpal", point(0.045, -0.033, 0.0)
            link(b, root, start, nodes[0], 0.0085, rgba=SAND)
            b.hinge(
                "little_palm",
                "palm",
                root,
                anchor=start,
                axis=(math.sqrt(0.5), -math.sqrt(0.5), 0),
                **spring(5.0),
            )
        tips.append(_phalanges(b, name, nodes, root))
        first, second, third = _links(name, root)
        b.universal(f"{name}_knuckle", *first, anchor=nodes[0], axes=(splay, bend), **spring(3.0))
        if name == "thumb":
            b.universal("thumb_middle", *second, anchor=nodes[1], axes=(splay, bend), **spring(2.0))
        else:
            b.hinge(f"{name}_middle", *second, anchor=nodes[1], axis=bend, **spring(2.0))
        b.hinge(f"{name}_end", *third, anchor=nodes[2], axis=bend, **spring(1.0))
    b.world_shape(shapes.rod((-0.2, 0, 0), (-0.03, 0, 0), 0.028, rgba=DARK))
    b.end_effectors(*tips)
    return b.build()


def _links(name: str, root: str) -> list[tuple[str, str]]:
    """(parent, child) of the three joints of a finger."""
    chain = [root, f"{name}_proximal", f"{name}_medial", f"{name}_tip"]
    return list(pairwise(chain))


def _phalanges(b: Builder, name: str, nodes: NDArray, root: str) -> str:
    """The three links of a finger; returns the name of the tip."""
    radii, colours = (0.0085, 0.0078, 0.0070), (SAND, SAND, TEAL)
    for k, (_, child) in enumerate(_links(name, root)):
        link(b, child, nodes[k], nodes[k + 1], radii[k], origin=nodes[3] if k == 2 else None, rgba=colours[k])
    return f"{name}_tip"


def gripper(
    *, driver: float = 0.06, follower: float = 0.06, spacing: float = 0.02, pad: float = 0.072
) -> Mechanism:
    """A parallel-jaw gripper: two geared fingers, each a four-bar linkage that keeps its pad upright.

    Per finger a driver and a follower of 60 mm carry the pad: 6 bodies, 8 hinges along y, 2 planar loops,
    and one coupling that makes the drivers turn against each other; 1 degree of freedom is left. The
    drivers have servos of 20 N m/rad, the six passive pins none, only a little friction. The pads are 58 mm
    apart. The end effectors are the two pads.

    Args:
        driver, follower: lengths of the bars, m. Where they differ, the pads turn as they close.
        spacing: between the two bars of a finger, m; up to 50 mm, where they would meet those of the other one.
        pad: length of a pad, m.
    """
    bars = {"driver": positive(driver, "driver"), "follower": positive(follower, "follower")}
    half = positive(spacing, "spacing") / 2
    if half > 0.025:
        raise InputError(f"spacing: at most 0.05 m, where the fingers meet, not {brief(spacing)}")
    high = positive(pad, "pad") / 2
    lean = point(math.sin(math.radians(20)), 0, math.cos(math.radians(20)))
    b = Builder("gripper")
    for side, sign, colour in (("left", -1, BLUE), ("right", 1, TEAL)):
        mirror = point(sign, 1, 1)
        pivots = {"driver": point(0.026 + half, 0, 0.02), "follower": point(0.026 - half, 0, 0.02)}
        pins = {name: pivot + bars[name] * lean for name, pivot in pivots.items()}
        for name, pivot in pivots.items():
            link(
                b,
                f"{side}_{name}",
                pivot * mirror,
                pins[name] * mirror,
                0.005,
                density=2700.0,
                rgba=colour if name == "driver" else SKY,
            )
        head = (pivots["driver"] + pivots["follower"]) / 2 + (
            bars["driver"] * lean + bars["follower"] * lean
        ) / 2
        finger = shapes.box((0.013, 0.008, 0.006), position=point(0.0135, 0, -0.03) * mirror, rgba=STEEL)
        middle = np.array([head[0] - 0.0135, 0, head[2] + 0.03])
        block(
            b,
            f"{side}_pad",
            middle * mirror,
            (0.004, 0.012, high),
            density=1500.0,
            rgba=ORANGE,
            extra=[finger],
        )
        for name, pivot in pivots.items():
            servo = spring(20.0) if name == "driver" else {"damping": 0.002}
            b.hinge(f"{side}_{name}", "world", f"{side}_{name}", anchor=pivot * mirror, axis=Y, **servo)
            b.hinge(
                f"{side}_{name}_pad",
                f"{side}_{name}",
                f"{side}_pad",
                anchor=pins[name] * mirror,
                axis=Y,
                damping=0.002,
            )
    b.couple({"left_driver": 1.0, "right_driver": 1.0}, name="gears")
    b.world_shape(shapes.box((0.045, 0.02, 0.02), rgba=DARK))
    b.world_shape(shapes.cylinder(0.03, 0.02, position=(0, 0, -0.04), rgba=RED))
    b.end_effectors("left_pad", "right_pad")
    return b.build()
