"""Mechanisms in motion: chains that swing and snap taut, and what energy they gain."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

import pliant
from pliant import shapes

G = 9.81
LINKS, LENGTH = 10, 0.1  # of the chains: their links, and the length of one, m
BALL_RADIUS = 0.03  # of the load, m


class Extremes(NamedTuple):
    """Of a run, over its steps: most energy gained and lost, and how far joints came apart.

    Energies in units of total weight times radius, apart in radii.
    """

    gain: float
    loss: float
    apart: float


def run(simulation: pliant.ConstrainedSimulation, seconds: float, every: int = 1, scale: float | None = None):
    """Step for so long; look at energy after each `every` steps."""
    m = simulation.mechanism
    unit = G * m.mass.sum() * m.radius if scale is None else scale
    start = simulation.energy.total
    totals, apart = [start], 0.0
    for _ in range(round(seconds / simulation.timestep / every)):
        simulation.step(every)
        totals.append(simulation.energy.total)
        apart = max(apart, simulation.violation)
    assert np.isfinite(totals).all()
    assert np.isfinite(simulation.poses).all()
    return Extremes((max(totals) - start) / unit, (start - min(totals)) / unit, apart / m.radius)


def chain(kind: str, load: float, angle: float = 45.0, points: np.ndarray | None = None) -> pliant.Mechanism:
    """Rods of 1 kg, each `LENGTH`, jointed to the world and to each other; a sphere of mass `load` at the end.

    Args:
        kind: "ball", "hinge" (about y, and square to it, in turn), "planar" (hinges about y), "universal", "bushing".
        load: kg.
        angle: from hanging straight down, degrees, towards x.
        points: ends of the rods, instead of a straight line; in the plane of x and z unless all joints are balls.
    """
    if points is None:
        direction = np.array([np.sin(np.deg2rad(angle)), 0.0, -np.cos(np.deg2rad(angle))])
        points = np.arange(LINKS + 1)[:, None] * LENGTH * direction
    b = pliant.Builder(f"chain {kind} {load:g}")
    parent = "world"
    for i, (p, q) in enumerate(pairwise(points), start=1):
        along = (q - p) / np.linalg.norm(q - p)
        side = np.array([0.0, 1.0, 0.0])
        up = np.cross(along, side)
        up /= np.linalg.norm(up)
        side = np.cross(up, along)
        b.body(
            f"link{i}",
            mass=1.0,
            position=(p + q) / 2,
            orientation=np.stack([side, up, along], axis=1),
            shapes=[shapes.capsule(0.01, LENGTH / 2 - 0.01)],
        )
        joint = (f"joint{i}", parent, f"link{i}")
        if kind == "ball":
            b.ball(*joint, anchor=p)
        elif kind == "planar":
            b.hinge(*joint, anchor=p, axis=(0, 1, 0))
        elif kind == "hinge":
            b.hinge(*joint, anchor=p, axis=(0, 1, 0) if i % 2 else up)
        elif kind == "universal":
            b.universal(*joint, anchor=p, axes=((0, 1, 0), up))
        else:
            stiffness = np.array([1e12] * 3 + [10.0] * 3)
            b.bushing(*joint, anchor=p, stiffness=stiffness, damping=1e-4 * stiffness)
        parent = f"link{i}"
    b.body("load", mass=load, position=points[-1], shapes=[shapes.sphere(BALL_RADIUS)])
    b.fixed("grip", parent, "load")
    return b.build()


def swinging(kind: str, load: float, h: float, seed: int = 0) -> pliant.ConstrainedSimulation:
    """A chain let go at 45 degrees, its joints slightly moving."""
    simulation = pliant.ConstrainedSimulation(chain(kind, load), h)
    v = 0.05 * np.random.default_rng(seed).normal(size=simulation.mechanism.nv)
    if kind == "bushing":
        v[simulation.mechanism.stiffness > 1e6] = 0.0
    simulation.velocity = v
    return simulation


def slack(
    form: str, load: float, h: float, seed: int = 0, kind: str = "ball"
) -> pliant.ConstrainedSimulation:
    """A chain that lies slack, then falls and snaps taut.

    Args:
        form: "folded", a zigzag of short height; "level", stretched out sideways; "loop", down and up again, so that
            the load starts beside the anchor.
        load: kg.
        h: the step, s.
        seed: of small joint velocities, and of the form's irregularity.
        kind: of the joints.
    """
    rng = np.random.default_rng(seed)
    if form == "folded":
        angles = np.pi / 2 + np.where(np.arange(LINKS) % 2, -1, 1) * np.deg2rad(
            80.0 + 5 * rng.uniform(size=LINKS)
        )
    elif form == "level":
        angles = np.deg2rad(10 * rng.normal(size=LINKS))
    else:
        angles = np.where(np.arange(LINKS) < LINKS // 2, np.deg2rad(89.0), np.deg2rad(-85.0))
        angles = angles + np.deg2rad(rng.normal(size=LINKS))
    steps = LENGTH * np.stack([np.cos(angles), np.zeros(LINKS), -np.sin(angles)], axis=1)
    points = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    simulation = pliant.ConstrainedSimulation(chain(kind, load, points=points), h)
    v = 0.05 * rng.normal(size=simulation.mechanism.nv)
    if kind == "bushing":
        v[simulation.mechanism.stiffness > 1e6] = 0.0
    simulation.velocity = v
    return simulation


def weight_times_length(simulation: pliant.ConstrainedSimulation) -> float:
    """Of a chain: the unit in which its energies are told, J."""
    return float(G * simulation.mechanism.mass.sum() * LINKS * LENGTH)
