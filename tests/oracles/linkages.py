"""Linkages with redundant closing conditions: planar, spatial, and in poses where links are in line."""

from __future__ import annotations

import numpy as np

import pliant
from pliant import shapes


def bennett(theta: float = 1.0) -> pliant.Mechanism:
    """Bennett's linkage: four hinges, neither parallel nor through a point, that move all the same."""
    a, alpha, b = 0.5, 0.6, 0.8
    beta = np.arcsin(b * np.sin(alpha) / a)
    other = 2 * np.arctan(np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(theta / 2))
    frames = [np.eye(4)]
    for turn, length, twist in ((theta, a, alpha), (other, b, beta), (-theta, a, alpha)):
        c, s, ct, st = np.cos(turn), np.sin(turn), np.cos(twist), np.sin(twist)
        step = [
            [c, -s * ct, s * st, length * c],
            [s, c * ct, -c * st, length * s],
            [0, st, ct, 0],
            [0, 0, 0, 1],
        ]
        frames.append(frames[-1] @ step)
    builder = pliant.Builder("bennett")
    for i in range(3):
        middle = (frames[i][:3, 3] + frames[i + 1][:3, 3]) / 2
        builder.body(f"link{i}", mass=1.0, position=middle, shapes=[shapes.sphere(0.1)])
    for i, (parent, child) in enumerate((("world", 0), ("link0", 1), ("link1", 2), ("world", 2))):
        damping = 0.05 if i == 0 else 0.0
        anchor, axis = frames[i][:3, 3], frames[i][:3, 2]
        builder.hinge(f"hinge{i}", parent, f"link{child}", anchor=anchor, axis=axis, damping=damping)
    return builder.build()


def sarrus(height: float = 0.6) -> pliant.Mechanism:
    """Sarrus' linkage: a plate on two folding legs at right angles, which goes up and down."""
    builder = pliant.Builder("sarrus")
    builder.body("plate", mass=2.0, position=(0, 0, 2 * height), shapes=[shapes.box((0.2, 0.2, 0.02))])
    for name, out, axis in (("x", np.eye(3)[0], (0, 1, 0)), ("y", np.eye(3)[1], (1, 0, 0))):
        foot, head = 0.2 * out, 0.2 * out + (0, 0, 2 * height)
        knee = (0.2 + np.sqrt(1 - height**2)) * out + (0, 0, height)
        builder.body(f"low{name}", mass=0.3, position=(foot + knee) / 2, shapes=[shapes.sphere(0.05)])
        builder.body(f"high{name}", mass=0.3, position=(knee + head) / 2, shapes=[shapes.sphere(0.05)])
        builder.hinge(
            f"foot{name}", "world", f"low{name}", anchor=foot, axis=axis, stiffness=3.0, damping=0.3
        )
        builder.hinge(f"knee{name}", f"low{name}", f"high{name}", anchor=knee, axis=axis)
        builder.hinge(f"head{name}", f"high{name}", "plate", anchor=head, axis=axis)
    return builder.build()


def parallelogram(angle: float = 0.0, mass: float = 1.0) -> pliant.Mechanism:
    """Two cranks and a rod in a plane; at angle 0 all in line, where one more condition is redundant."""
    crank = 0.3 * np.array([np.cos(angle), 0.0, np.sin(angle)])
    base = np.array([1.0, 0.0, 0.0])
    builder = pliant.Builder("parallelogram")
    builder.body("left", mass=1.0, position=crank / 2, shapes=[shapes.sphere(0.05)])
    builder.body("rod", mass=mass, position=crank + base / 2, shapes=[shapes.sphere(0.05)])
    builder.body("right", mass=1.0, position=crank / 2 + base, shapes=[shapes.sphere(0.05)])
    axis = (0, 1, 0)
    builder.hinge("a", "world", "left", anchor=(0, 0, 0), axis=axis)
    builder.hinge("b", "left", "rod", anchor=crank, axis=axis)
    builder.hinge("c", "world", "right", anchor=base, axis=axis)
    builder.hinge("d", "rod", "right", anchor=crank + base, axis=axis)
    return builder.build()


def four_bar(stiffness: float = 5.0, damping: float = 0.05) -> pliant.Mechanism:
    """A crank, a rod and a rocker of different lengths in a tilted plane, with springs at the crank and the rocker."""
    turn = pliant.spatial.so3_exp(np.array([0.4, -0.3, 0.2]))
    points = np.array([[0, 0, 0], [0.15, 0, 0.3], [0.75, 0, 0.5], [0.8, 0, 0]]) @ turn.T
    axis = turn @ [0.0, 1.0, 0.0]
    builder = pliant.Builder("four-bar")
    for name, a, b in (("crank", 0, 1), ("rod", 1, 2), ("rocker", 3, 2)):
        middle = (points[a] + points[b]) / 2
        builder.body(name, mass=1.0, position=middle, inertia=(0.02, 0.02, 0.01), com=(0.01, 0.0, 0.02))
    springs = {"axis": axis, "stiffness": stiffness, "damping": damping}
    builder.hinge("a", "world", "crank", anchor=points[0], armature=0.01, **springs)
    builder.hinge("b", "crank", "rod", anchor=points[1], axis=axis)
    builder.hinge("c", "world", "rocker", anchor=points[3], **springs)
    builder.hinge("d", "rod", "rocker", anchor=points[2], axis=axis)
    builder.end_effectors("rod")
    return builder.build()


def toggle() -> pliant.Mechanism:
    """A crank and a rod in line, at dead centre, and a slider on a spring."""
    builder = pliant.Builder("toggle")
    for name, x in (("crank", 0.25), ("rod", 0.75), ("slider", 1.0)):
        builder.body(name, mass=1.0, position=(x, 0, 0), shapes=[shapes.sphere(0.05)])
    axis = (0, 1, 0)
    builder.hinge("a", "world", "crank", anchor=(0, 0, 0), axis=axis)
    builder.hinge("b", "crank", "rod", anchor=(0.5, 0, 0), axis=axis)
    builder.slide("guide", "world", "slider", axis=(1, 0, 0), stiffness=50.0, damping=2.0)
    builder.hinge("c", "rod", "slider", anchor=(1, 0, 0), axis=axis)
    return builder.build()


def lattice(nx: int, ny: int, size: float = 0.1, stiffness: float = 2.0) -> pliant.Mechanism:
    """Planar lattice of nx by ny cells: bodies on a grid, hinged to the right, and up by bars; its corner is fixed."""
    builder = pliant.Builder(f"lattice {nx} x {ny}")
    springs = {"axis": (0, 1, 0), "stiffness": stiffness, "damping": 0.01 * stiffness}
    for i in range(nx + 1):
        for j in range(ny + 1):
            at = (i * size, 0, j * size)
            builder.body(f"node{i}_{j}", mass=0.1, inertia=(1e-4, 1e-4, 1e-4), position=at)
            if j < ny:
                middle = (i * size, 0, (j + 0.5) * size)
                builder.body(f"bar{i}_{j}", mass=0.05, inertia=(5e-5, 5e-5, 2e-5), position=middle)
    builder.hinge("foot", "world", "node0_0", anchor=(-size / 2, 0, 0), **springs)
    for i in range(nx + 1):
        for j in range(ny + 1):
            own = f"node{i}_{j}"
            if i < nx:
                anchor = ((i + 0.5) * size, 0, (j + 0.1) * size)
                builder.hinge(f"right{i}_{j}", own, f"node{i + 1}_{j}", anchor=anchor, **springs)
            if j < ny:
                low, high = (i * size, 0, (j + 0.2) * size), (i * size, 0, (j + 0.8) * size)
                builder.hinge(f"low{i}_{j}", own, f"bar{i}_{j}", anchor=low, **springs)
                builder.hinge(f"high{i}_{j}", f"bar{i}_{j}", f"node{i}_{j + 1}", anchor=high, **springs)
    return builder.build()


def spinning_rod(angle: float = 0.4) -> pliant.Mechanism:
    """A crank and a rocker, about axes across each other, joined by a rod on two balls, which spins about itself."""
    crank = 0.3 * np.array([np.cos(angle), 0.0, np.sin(angle)])
    foot, rocker = np.array([1.0, 0.2, 0.0]), np.array([1.0, 0.2, 0.5])
    builder = pliant.Builder("spinning rod")
    builder.body("crank", mass=1.0, position=crank / 2, shapes=[shapes.sphere(0.05)])
    builder.body("rod", mass=0.5, position=(crank + rocker) / 2, shapes=[shapes.sphere(0.05)])
    builder.body("rocker", mass=1.0, position=(foot + rocker) / 2, shapes=[shapes.sphere(0.05)])
    builder.hinge("a", "world", "crank", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=4.0, damping=1.0)
    builder.ball("b", "crank", "rod", anchor=crank)
    builder.hinge("c", "world", "rocker", anchor=foot, axis=(0.8, 0.6, 0), damping=0.2)
    builder.ball("d", "rod", "rocker", anchor=rocker)
    return builder.build()
