"""Small structures of the papers, with and without loops: `y`, `loop`, `ladder`, `flexure_stage`."""

from __future__ import annotations

import math

import numpy as np

from pliant import shapes
from pliant.checks import choice
from pliant.gallery.parts import (
    BLUE,
    DARK,
    GAMMA,
    GREEN,
    ORANGE,
    SKY,
    STEEL,
    TEAL,
    YELLOW,
    Y,
    block,
    chain,
    guided_beam,
    link,
    positive,
    sizes,
    spring,
)
from pliant.mechanism import Builder, Mechanism

__all__ = ["flexure_stage", "ladder", "loop", "y"]

STIFF = spring(1000.0)  # TVCG: compliance 0.001 rad/(N m)


def y() -> Mechanism:
    """A stem of 10 links that splits into two branches of 10 (TVCG Figs. 5 and 7): 30 hinges, no loop.

    It stands in the x-z plane. Hinge axes alternate between y and the in-plane normal of the link; every
    joint has a compliance of 0.001 rad/(N m). Links of 14 mm, about 0.26 m tall. The end effectors are the
    two tips.
    """
    step, lean = 0.014, math.radians(35)
    b = Builder("y")

    def branch(prefix: str, start: np.ndarray, angle: float, parent: str, colours: tuple) -> str:
        direction = np.array([math.sin(angle), 0, math.cos(angle)])
        across = np.array([math.cos(angle), 0, -math.sin(angle)])
        points = start + step * np.arange(11)[:, None] * direction
        axes = np.array([Y if i % 2 == 0 else across for i in range(10)])
        return chain(
            b, prefix, points, axes, 1000.0, 0.004, parent=parent, time=0.002, density=7850.0, colours=colours
        )[-1]

    fork = branch("stem", np.zeros(3), 0.0, "world", (BLUE, SKY))
    top = np.array([0, 0, 10 * step])
    tips = [
        branch("left", top, -lean, fork, (TEAL, GREEN)),
        branch("right", top, lean, fork, (ORANGE, YELLOW)),
    ]
    b.world_shape(shapes.box((0.02, 0.02, 0.004), position=(0, 0, -0.006), rgba=DARK))
    b.end_effectors(*tips)
    return b.build()


def loop() -> Mechanism:
    """One closed loop with long branches (TVCG Fig. 6): two chains from the ground that carry one plate.

    A half circle of radius 1 m in the x-z plane: two branches of 15 links and the end effector "plate" on
    top, 31 bodies, 32 hinges, 1 loop. Hinge axes go along y, the radius and the tangent in turn, so the
    loop closes in all six directions and 26 degrees of freedom are left; compliance 0.001 rad/(N m) each.
    """
    radius, half, links = 1.0, math.radians(5), 15  # the plate spans 10 degrees of the arch
    b = Builder("loop")
    tips, ends = [], []
    for prefix, sign, colours in (("left", -1, (BLUE, SKY)), ("right", 1, (TEAL, GREEN))):
        angle = np.linspace(math.pi / 2, half, links + 1)  # from the vertical
        radial = np.column_stack([sign * np.sin(angle), 0 * angle, np.cos(angle)])
        tangent = np.cross(radial, Y)
        axes = [(Y, radial[i], tangent[i])[i % 3] for i in range(links + 1)]
        tips.append(chain(b, prefix, radius * radial, axes, 1000.0, 0.018, colours=colours)[-1])
        ends.append((radius * radial[-1], axes[-1]))
    block(b, "plate", (ends[0][0] + ends[1][0]) / 2, (0.087, 0.08, 0.02), rgba=ORANGE)
    for tip, (anchor, axis) in zip(tips, ends, strict=True):
        b.hinge(f"{tip}_plate", tip, "plate", anchor=anchor, axis=axis, **STIFF)
    b.world_shape(shapes.box((1.1, 0.12, 0.02), position=(0, 0, -0.038), rgba=DARK))
    b.end_effectors("plate")
    return b.build()


def ladder(rungs: int = 12, form: str = "cells", cell: float = 2.0) -> Mechanism:
    """A spring ladder in the x-z plane that stands on the ground, all hinges along y (TVCG Fig. 5).

    Per rung there are two side links and the rung itself, so 3 * `rungs` links: ladder(12) is TVCG's
    36-link and ladder(16) its 48-link ladder. Both forms have 4 * `rungs` hinges, compliance 0.001 rad/(N
    m) each, and `rungs` loops, planar and so overconstrained: 3 of the 6 closing conditions of a loop
    depend on the others, which leaves one degree of freedom per rung. The reference pose is singular: the
    ladder leans, but cannot be stretched.

    Args:
        rungs: number of rungs; the ground is another one.
        form: "cells": side links are hinged to the rungs, so that consecutive cells share only a rung;
            "rails": a side link is hinged to the one below it, and the rungs to the side links, so that
            consecutive loops share links.
        cell: height of a cell in metres; it is three quarters as wide. The deflection at a given load grows
            with its square: at 2 m, 100 N along x move the top by 0.10 ("cells") and 0.19 ("rails") of the
            bounding radius.

    The end effector is the top rung.
    """
    (n,), height = sizes(rungs=rungs), positive(cell, "cell")
    form = choice(form, "form", ("cells", "rails"))
    half, radius = 0.375 * height, 0.03 * height
    b = Builder(f"ladder {n} {form}")
    sides = (("left", -half), ("right", half))
    for i in range(1, n + 1):
        low, high = (i - 1) * height, i * height
        for side, x in sides:
            link(
                b, f"{side}{i}", (x, 0, low), (x, 0, high), radius, density=100.0, rgba=BLUE if i % 2 else SKY
            )
        link(
            b,
            f"rung{i}",
            (-half, 0, high),
            (half, 0, high),
            radius,
            density=100.0,
            rgba=ORANGE if i == n else YELLOW,
        )
        below = "world" if i == 1 else f"rung{i - 1}"
        for side, x in sides:
            carrier = below if form == "cells" or i == 1 else f"{side}{i - 1}"
            b.hinge(f"{side}{i}_foot", carrier, f"{side}{i}", anchor=(x, 0, low), axis=Y, **STIFF)
            b.hinge(f"{side}{i}_head", f"{side}{i}", f"rung{i}", anchor=(x, 0, high), axis=Y, **STIFF)
    b.world_shape(shapes.rod((-half, 0, 0), (half, 0, 0), radius * 1.2, rgba=DARK))
    b.end_effectors(f"rung{n}")
    return b.build()


def flexure_stage(
    *,
    left: float = 0.05,
    right: float = 0.05,
    width: float = 0.010,
    thickness: float = 0.0005,
    apart: float = 0.06,
    young: float = 207e9,
) -> Mechanism:
    """A parallel-guiding flexure as a pseudo-rigid-body model: a stage on two steel blades.

    Howell's model of a fixed-guided beam: a rigid link of the length ``γ L`` in the middle, ``γ = 0.8517``, and at
    either end a torsion spring ``2 γ K_Θ E I / L`` with ``K_Θ = 2.65``. The blades are of spring steel (E = 207
    GPa), L = 50 mm, 10 mm x 0.5 mm, 60 mm apart, upright; each spring comes to 1.95 N m/rad and the stage
    to 4.29 N/mm along x, where beam theory gives ``24 E I / L³``, 4.14 N/mm. 3 bodies, 4 hinges along y, 1
    planar loop, 1 degree of freedom. The end effector is the stage.

    Args:
        left, right: lengths of the blades, m. Where they differ, the stage turns as it moves; the shorter blade
            stands on a pedestal.
        width, thickness: of both blades, m.
        apart: distance between them, m.
        young: Young's modulus of both, Pa.
    """
    lengths = {"left": positive(left, "left"), "right": positive(right, "right")}
    width, thickness = positive(width, "width"), positive(thickness, "thickness")
    half, young = positive(apart, "apart") / 2, positive(young, "young")
    top = max(lengths.values())
    b = Builder("flexure_stage")
    # The stub of a blade below its link belongs to the ground, the one above to the stage.
    stubs, hinges = [], []
    for (name, length), x in zip(lengths.items(), (-half, half), strict=True):
        foot = top - length
        stiffness = guided_beam(young, width, thickness, length)
        section, stub = (thickness / 2, width / 2), length * (1 - GAMMA) / 2
        low, high = foot + stub, foot + length * (1 + GAMMA) / 2
        block(b, name, (x, 0, foot + length / 2), (*section, (high - low) / 2), density=7850.0, rgba=SKY)
        b.world_shape(shapes.box((*section, low / 2), position=(x, 0, low / 2), rgba=STEEL))
        stubs.append(shapes.box((*section, stub / 2), position=(x, 0, -0.008 - stub / 2), rgba=STEEL))
        hinges.append((name, (x, 0, low), (x, 0, high), spring(stiffness, 0.002)))
    block(
        b,
        "stage",
        (0, 0, top + 0.008),
        (half + 0.006, 0.012, 0.008),
        density=2700.0,
        rgba=ORANGE,
        extra=stubs,
    )
    for name, low, high, springs in hinges:
        b.hinge(f"{name}_foot", "world", name, anchor=low, axis=Y, **springs)
        b.hinge(f"{name}_head", name, "stage", anchor=high, axis=Y, **springs)
    b.world_shape(shapes.box((half + 0.015, 0.015, 0.006), position=(0, 0, -0.006), rgba=DARK))
    b.end_effectors("stage")
    return b.build()
