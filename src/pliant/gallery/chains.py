"""Serial chains: `helix`, `two_link`, `bicycle_chain`."""

from __future__ import annotations

import math

import numpy as np

from pliant import shapes
from pliant.gallery.parts import BLUE, DARK, ORANGE, RED, SKY, STEEL, TEAL, Y, chain, link, sizes, spring
from pliant.mechanism import Builder, Mechanism

__all__ = ["bicycle_chain", "helix", "two_link"]


def helix(links: int = 50) -> Mechanism:
    """A serial chain of hinges along three coils of a helix, fixed below (TVCG Figs. 5 and 6, Table 1).

    Hinge axes follow the curve's binormal, normal and tangent in turn, so the tip gives in every direction
    (with the first two alone it would not: both are square to the screw motion along the helix). Every
    joint has TVCG's compliance of 0.001 rad/(N m). Since n joints in series give n times as much, the helix
    shrinks with the square root of `links`: coil radius 5 cm and height 16 cm at 50 links. To first order,
    100 N at the tip in the softest direction move it by 0.17, 0.22 and 0.62 of the bounding radius at 20,
    50 and 400 links. Steel, 0.8 kg at 50 links.

    Args:
        links: number of links; as many hinges and degrees of freedom.

    The end effector is the last link.
    """
    (n,) = sizes(links=links)
    size = 0.2 * math.sqrt(50 / n)
    radius, height, turn = 0.25 * size, 0.8 * size, 3 * 2 * math.pi
    angle = np.linspace(0, turn, n + 1)
    c, s = np.cos(angle), np.sin(angle)
    points = np.column_stack([radius * c, radius * s, height * angle / turn])
    slope, zero = height / turn, np.zeros(n + 1)
    speed = math.hypot(radius, slope)
    tangent = np.column_stack([-radius * s, radius * c, zero + slope]) / speed
    normal = np.column_stack([-c, -s, zero])
    binormal = np.column_stack([slope * s, -slope * c, zero + radius]) / speed
    axes = np.stack([binormal, normal, tangent])[np.arange(n + 1) % 3, np.arange(n + 1)]
    b = Builder(f"helix {n}")
    names = chain(
        b, "link", points, axes, 1000.0, 0.025 * size, time=0.002, density=7850.0, colours=(BLUE, SKY)
    )
    b.world_shape(shapes.cylinder(0.08 * size, 0.01 * size, position=(radius, 0, -0.03 * size), rgba=DARK))
    b.end_effectors(names[-1])
    return b.build()


def two_link() -> Mechanism:
    """Two links and two hinges in the x-z plane, bent like a roof (TVCG Fig. 4).

    Pulled along x, the links line up and the compliance along x goes to zero: a singular pose that one
    linearisation cannot show. Links of 0.5 m, 45 degrees up and down; springs of 1000 N m/rad. 2 bodies, 2
    dofs. The end effector is the right link, with its frame at the free end and x along the link at 45
    degrees.
    """
    h = 0.5 * math.sqrt(0.5)
    base, elbow, tip = np.zeros(3), np.array([h, 0, h]), np.array([2 * h, 0, 0])
    b = Builder("two_link")
    link(b, "left", base, elbow, 0.02, rgba=BLUE)
    turn = math.radians(45) / 2  # about y, so that x points down the right link
    b.body(
        "right",
        position=tip,
        orientation=(math.cos(turn), 0, math.sin(turn), 0),
        shapes=[shapes.rod((-0.5, 0, 0), (0, 0, 0), 0.02, rgba=ORANGE)],
    )
    b.hinge("base", "world", "left", anchor=base, axis=Y, **spring(1000.0))
    b.hinge("elbow", "left", "right", anchor=elbow, axis=Y, **spring(1000.0))
    b.world_shape(shapes.box((0.06, 0.06, 0.02), position=(0, 0, -0.04), rgba=DARK))
    b.end_effectors("right")
    return b.build()


def bicycle_chain(links: int = 30) -> Mechanism:
    """A bicycle chain held at one end, straight along x (RL05 section 6.1: 30 links).

    Half-inch pitch (12.7 mm), 2.6 g a link, inner and outer plates in turn, all pins along y. The pins have a
    friction-like spring of 10 N m/rad so that the chain has a shape to come back to.

    Args:
        links: number of links; as many hinges and degrees of freedom.

    The end effector is the last link.
    """
    (n,) = sizes(links=links)
    pitch = 0.0127
    b = Builder(f"bicycle_chain {n}")
    looks = [_chain_link(pitch, 0.0024, STEEL, TEAL), _chain_link(pitch, 0.0040, DARK, RED)]
    names, step = [f"link{i + 1}" for i in range(n)], (pitch, 0.0, 0.0)
    middles, pins = np.outer(np.arange(n) + 0.5, step), np.outer(np.arange(n), step)
    bodies = b.bodies(names, mass=0.0026, position=middles, shapes=looks, look=np.arange(n) % 2)
    b.hinges(names, bodies - 1, bodies, anchor=pins, axis=Y, **spring(10.0))
    b.world_shape(shapes.box((0.006, 0.012, 0.012), position=(-0.008, 0, 0), rgba=DARK))
    b.end_effectors(names[-1])
    return b.build()


def _chain_link(pitch: float, side: float, plate: tuple, pin: tuple) -> list[shapes.Shape]:
    """Two plates at +-side along y and the pin at the link's far end."""
    out = [shapes.box((pitch * 0.62, 0.0005, 0.0038), position=(0, y, 0), rgba=plate) for y in (-side, side)]
    about_x = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    out.append(shapes.cylinder(0.0018, 0.0045, position=(pitch / 2, 0, 0), orientation=about_x, rgba=pin))
    return out
