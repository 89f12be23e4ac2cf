"""Mechanisms that fold, snap or stand by tension alone: `miura_ori`, `bistable`, `tensegrity`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.gallery.parts import (
    BLUE,
    DARK,
    ORANGE,
    RED,
    SKY,
    TEAL,
    YELLOW,
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

__all__ = ["bistable", "miura_ori", "tensegrity"]

Floats = NDArray[np.float64]


def miura_ori(
    rows: int = 4, columns: int = 4, *, side: float = 0.05, sector: float = 1.05, fold: float = 0.7
) -> Mechanism:
    """A Miura-ori sheet: rigid parallelograms, hinged along their creases, half folded at the reference pose.

    The first facet is fixed in the world. `rows` * `columns` bodies, one fixed joint and (rows - 1) columns +
    rows (columns - 1) creases of 0.02 N m/rad, (rows - 1) (columns - 1) loops, each around a vertex where four
    creases meet, and, from 2 x 2 facets on, one degree of freedom: the sheet folds flat in both directions at
    once. miura_ori(4, 4) has 16 bodies, 24 creases and 9 loops.

    Args:
        rows, columns: number of facets along y and along x.
        side: of the parallelograms, m.
        sector: acute angle of the parallelograms, rad.
        fold: angle between the facets and the x-y plane at the reference pose, rad; 0 is the flat sheet.

    The end effector is the last facet, opposite to the one that is fixed.
    """
    rows, columns = sizes(rows=rows, columns=columns)
    side = positive(side, "side")
    sector = acute(sector, "sector")
    fold = acute(fold, "fold")
    b = Builder(f"miura_ori {rows} x {columns}")
    crease = spring(0.02)
    # Steps of the vertices (Schenk and Guest, "Geometry of Miura-folded metamaterials", 2013): S along x in zigzags
    # of V along y, L along y in zigzags of H along z.
    slope = math.cos(fold) * math.tan(sector)
    zigzag = side / math.sqrt(1 + slope**2)
    rise = side * math.sin(fold) * math.sin(sector)
    step = point(slope * zigzag, math.sqrt(side**2 - rise**2), 0)

    def vertex(i: int, j: int) -> Floats:
        return point(i * step[0], j * step[1] + (i % 2) * zigzag, (j % 2) * rise)

    def facet(i: int, j: int) -> str:
        return f"facet{i + 1}_{j + 1}"

    for j in range(rows):
        for i in range(columns):
            corners = np.array([vertex(i + di, j + dj) for di, dj in ((0, 0), (1, 0), (1, 1), (0, 1))])
            last = (i, j) == (columns - 1, rows - 1)
            colour = ORANGE if last else (BLUE, SKY, SKY, YELLOW)[2 * (j % 2) + i % 2]
            centre = corners.mean(axis=0)
            plate = _plate(corners - centre, 0.02 * side, colour)
            b.body(facet(i, j), position=centre, density=700.0, shapes=[plate])
            if i == j == 0:
                b.fixed("clamp", "world", facet(0, 0))
            # Creases to the facets on the left and below: the lower row carries its columns.
            for name, before, (start, end) in (
                (f"across{i + 1}_{j + 1}", (i - 1, j), (0, 3)),
                (f"up{i + 1}_{j + 1}", (i, j - 1), (0, 1)),
            ):
                if min(before) >= 0:
                    axis = unit(corners[end] - corners[start])
                    anchor = (corners[end] + corners[start]) / 2
                    b.hinge(name, facet(*before), facet(i, j), anchor=anchor, axis=axis, **crease)
    b.end_effectors(facet(columns - 1, rows - 1))
    return b.build()


def _plate(corners: Floats, thickness: float, rgba: tuple) -> shapes.Shape:
    """A plane quadrilateral (4, 3) as a thin solid, a little smaller so that neighbours do not overlap."""
    normal = unit(np.cross(corners[1] - corners[0], corners[3] - corners[0]))
    inner = 0.96 * corners
    vertices = np.concatenate([inner - thickness / 2 * normal, inner + thickness / 2 * normal])
    faces = [(0, 2, 1), (0, 3, 2), (4, 5, 6), (4, 6, 7)]
    for k in range(4):
        n = (k + 1) % 4
        faces += [(k, n, n + 4), (k, n + 4, k + 4)]
    return shapes.mesh(vertices, faces, rgba=rgba)


def bistable(
    *, span: float = 0.05, rise: float = 0.008, bending: float = 0.02, axial: float = 4e4
) -> Mechanism:
    """A flexure switch with two stable states: a shuttle on two inclined beams, a von Mises truss with bending.

    Each beam is a pseudo-rigid body in the x-z plane: torsion springs at its ends, and a stiff spring along it. As
    made, the shuttle stands at z = `rise`; pushed down beyond the ground line it snaps and stays. 5 bodies, 6
    joints (4 hinges along y, 2 slides), 6 dofs, 1 planar loop, 3 degrees of freedom: the shuttle moves in the plane
    and turns. docs/paths.md follows it through the snap.

    Args:
        span: horizontal distance from a beam's foot to the shuttle, m.
        rise: height of the shuttle above the feet, m.
        bending: stiffness of the torsion springs, N m/rad.
        axial: stiffness along a beam, N/m.

    The end effector is the shuttle.
    """
    span, rise = positive(span, "span"), positive(rise, "rise")
    bending, axial = positive(bending, "bending"), positive(axial, "axial")
    b = Builder("bistable")
    top = point(0, 0, rise)
    shuttle = shapes.box((0.12 * span, 0.2 * span, 0.06 * span), rgba=ORANGE)
    b.body("shuttle", mass=0.02, position=top, shapes=[shuttle])
    for name, side in (("left", -1), ("right", 1)):
        foot = point(side * span, 0, 0)
        middle = (foot + top) / 2
        link(b, f"{name}_foot", foot, middle, 0.024 * span, origin=foot, mass=0.002, rgba=BLUE)
        link(b, f"{name}_head", middle, top, 0.024 * span, origin=top, mass=0.002, rgba=SKY)
        b.hinge(f"{name}_root", "world", f"{name}_foot", anchor=foot, axis=Y, **spring(bending, 0.002))
        b.slide(
            f"{name}_axial", f"{name}_foot", f"{name}_head", axis=unit(top - foot), **spring(axial, 0.002)
        )
        b.hinge(f"{name}_tip", f"{name}_head", "shuttle", anchor=top, axis=Y, **spring(bending, 0.002))
        b.world_shape(
            shapes.box(
                (0.06 * span, 0.2 * span, 0.24 * span),
                position=foot + side * point(0.06 * span, 0, 0),
                rgba=DARK,
            )
        )
    b.end_effectors("shuttle")
    return b.build()


def tensegrity(
    *, bottom: float = 0.2, top: float = 0.15, height: float = 0.35, tension: float = 100.0
) -> Mechanism:
    """A tensegrity prism: three bars that touch nowhere, held up by prestressed tendons alone.

    The bars stand on universal joints on the ground. Three tendons join their upper ends to a triangle, three
    go from there down to the feet of the next bars. Springs of 3 kN/m, they push when shorter than their rest
    length. The upper triangle is turned by 150 degrees from the feet of its bars, 30 degrees from those of its
    tendons: the one angle at which any prestress is in balance. A tendon is two bodies on a universal joint and a
    ball, with a slide between them: 15 bodies, 21 joints (9 universals, 6 slides, 6 balls), 42 dofs, 6 loops, 6
    degrees of freedom, of which one, the twist, is held by the prestress only.

    Tendons are stretched at the reference pose: only with gravity given do they pull there (`gravity=(0, 0, 0)` for
    a prism without weight), see docs/conventions.md.

    Args:
        bottom, top: radius of the circles through the lower and the upper ends of the bars, m.
        height: m.
        tension: of the upright tendons at the reference pose, N.

    The end effectors are the three bars, with their frames at their upper ends.
    """
    bottom, top = positive(bottom, "bottom"), positive(top, "top")
    height, tension = positive(height, "height"), positive(tension, "tension", zero=True)
    b = Builder("tensegrity")
    angle = np.radians(120.0 * np.arange(3))
    turn = angle + math.radians(150)
    feet = np.column_stack([bottom * np.cos(angle), bottom * np.sin(angle), 0 * angle])
    heads = np.column_stack([top * np.cos(turn), top * np.sin(turn), 0 * turn + height])
    eyelet = spring(1e-3)
    for i in range(3):
        link(
            b,
            f"bar{i + 1}",
            feet[i],
            heads[i],
            0.01,
            origin=heads[i],
            density=1200.0,
            rgba=(BLUE, TEAL, RED)[i],
        )
        axes = normals(heads[i] - feet[i])
        b.universal(f"foot{i + 1}", "world", f"bar{i + 1}", anchor=feet[i], axes=axes, **eyelet)
        b.world_shape(shapes.sphere(0.018, position=feet[i], rgba=DARK))
    # Force densities of the prism: upright tendons q, bars -q, the upper triangle q bottom / (sqrt(3) top).
    upright = float(np.linalg.norm(heads[0] - feet[1]))
    across = math.sqrt(3) * top
    flat = tension / upright * bottom / (math.sqrt(3) * top) * across
    for i in range(3):
        n = (i + 1) % 3
        _tendon(b, f"side{i + 1}", "world", f"bar{i + 1}", feet[n], heads[i], tension)
        _tendon(b, f"top{i + 1}", f"bar{i + 1}", f"bar{n + 1}", heads[i], heads[n], flat)
    b.world_shape(shapes.cylinder(1.4 * bottom, 0.008, position=(0, 0, -0.026), rgba=DARK))
    b.end_effectors("bar1", "bar2", "bar3")
    return b.build()


def _tendon(
    b: Builder, name: str, parent: str, child: str, start: Floats, end: Floats, tension: float
) -> None:
    """A spring of 3 kN/m between points of two bodies, under tension (N) at the reference pose."""
    way, stiffness, eyelet = unit(end - start), 3000.0, spring(1e-3)
    link(b, f"{name}_a", start, start + 0.55 * (end - start), 0.004, density=1000.0, rgba=YELLOW)
    link(b, f"{name}_b", start + 0.45 * (end - start), end, 0.003, density=1000.0, rgba=ORANGE)
    b.universal(f"{name}_start", parent, f"{name}_a", anchor=start, axes=normals(way), **eyelet)
    b.slide(name, f"{name}_a", f"{name}_b", axis=way, rest=-tension / stiffness, **spring(stiffness))
    b.ball(f"{name}_end", f"{name}_b", child, anchor=end, **eyelet)
