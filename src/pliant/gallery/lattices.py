"""Meshes of rigid cells and links with many loops: `lattice`, `lattice3d`, `trampoline_net`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pliant import shapes
from pliant.checks import choice, whole
from pliant.gallery.parts import (
    BLUE,
    DARK,
    GAMMA,
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
    guided_beam,
    link,
    point,
    positive,
    sizes,
    spring,
)
from pliant.mechanism import Builder, Mechanism

__all__ = ["lattice", "lattice3d", "trampoline_net"]

NYLON, NYLON_DENSITY = 1.7e9, 1010.0  # Young's modulus (Pa) and density (kg/m^3) of printed nylon


def lattice(nx: int = 8, ny: int = 8, form: str = "grid", cell: float = 0.02) -> Mechanism:
    """A planar lattice of nylon flexures in the x-z plane that stands on the ground, all hinges along y.

    In the form "grid", `nx` x `ny` square cells: rigid nodes joined by straight flexures, each a
    pseudo-rigid-body model like the blades of `flexure_stage`, a rigid link between two hinges. With n = (nx
    + 1) ny nodes and m = nx ny + n flexures there are n + m bodies, 2 m hinges and nx * ny loops, planar and
    so overconstrained: 3 of the 6 closing conditions of a loop depend on the others, which leaves (nx + 2)
    ny degrees of freedom, a sideways shift of every row and a turn of every node. lattice(8, 8) has 208
    bodies, 272 hinges and 64 loops; lattice(32, 32) has 3,136 bodies, 4,160 hinges and 1,024 loops.

    In the form "auxetic", `nx` x `ny` rigid squares, hinged at their corners and turned by 20 degrees to
    either side in turn (rotating squares). The first foot is pinned, the others slide along x. nx * ny
    bodies, (2 nx - 1) ny joints, (nx - 1) ny loops, and, from 2 x 2 squares on, one degree of freedom:
    squares turn against each other, and the sheet grows as much across as along, so that Poisson's ratio
    is -1 at any strain.

    Args:
        nx, ny: number of cells along x and upwards.
        form: "grid" or "auxetic".
        cell: distance between the centres of nodes or squares, m.

    Joints point right and up: the parent is the left or lower body. The end effector is the upper right
    node or square.
    """
    (nx, ny), pitch = sizes(nx=nx, ny=ny), positive(cell, "cell")
    form = choice(form, "form", ("grid", "auxetic"))
    b = Builder(f"lattice {nx} x {ny} {form}")
    (_grid if form == "grid" else _auxetic)(b, nx, ny, pitch)
    return b.build()


def _grid(b: Builder, nx: int, ny: int, pitch: float) -> None:
    """Nodes on a square grid, flexures between them; the spanning tree is a comb along the rows."""
    half, depth, thickness = 0.2 * pitch, 0.25 * pitch, 0.04 * pitch
    length = pitch - 2 * half
    # Stubs of the flexure belong to the nodes: hinges are `arm` away from their centres.
    arm = (pitch - GAMMA * length) / 2
    springs = spring(guided_beam(NYLON, 2 * depth, thickness, length))
    mass = NYLON_DENSITY * 2 * depth * ((2 * half) ** 2 + 4 * (arm - half) * thickness)
    stubs = [
        shapes.box(extents, rgba=STEEL)
        for extents in ((arm, depth, thickness / 2), (thickness / 2, depth, arm))
    ]

    def flexure(name: str, tail: str, head: str, start: np.ndarray, axis: Sequence[float]) -> None:
        way = np.array(axis)
        extents = np.where(way > 0, GAMMA * length / 2, (thickness / 2, depth, thickness / 2))
        block(b, name, start + pitch / 2 * way, tuple(extents), density=NYLON_DENSITY, rgba=SKY)
        b.hinge(f"{name}_foot", tail, name, anchor=start + arm * way, axis=Y, **springs)
        b.hinge(f"{name}_head", name, head, anchor=start + (pitch - arm) * way, axis=Y, **springs)

    def node(i: int, j: int) -> str:
        return f"node{i}_{j}" if j else "world"

    for j in range(1, ny + 1):
        for i in range(nx + 1):
            colour = ORANGE if (i, j) == (nx, ny) else BLUE if (i + j) % 2 else TEAL
            block(
                b,
                node(i, j),
                (i * pitch, 0, j * pitch),
                (half, depth, half),
                mass=mass,
                rgba=colour,
                extra=stubs,
            )
        below = [point(i * pitch, 0, (j - 1) * pitch) for i in range(nx + 1)]
        flexure(f"up0_{j}", node(0, j - 1), node(0, j), below[0], Z)
        for i in range(1, nx + 1):
            start = point((i - 1) * pitch, 0, j * pitch)
            flexure(f"across{i}_{j}", node(i - 1, j), node(i, j), start, X)
        for i in range(1, nx + 1):
            flexure(f"up{i}_{j}", node(i, j - 1), node(i, j), below[i], Z)
    for i in range(nx + 1):
        b.world_shape(
            shapes.box((thickness / 2, depth, arm / 2), position=(i * pitch, 0, arm / 2), rgba=STEEL)
        )
    b.world_shape(
        shapes.box(
            (nx * pitch / 2 + half, 1.2 * depth, half / 2), position=(nx * pitch / 2, 0, -half / 2), rgba=DARK
        )
    )
    b.end_effectors(node(nx, ny))


def _auxetic(b: Builder, nx: int, ny: int, pitch: float) -> None:
    """Squares hinged at their corners; the spanning tree is a comb along the rows."""
    turn = math.radians(20)
    side = pitch / (math.cos(turn) + math.sin(turn))
    offset = side * (math.cos(turn) - math.sin(turn)) / 2  # of a corner from the line between two centres
    depth, thickness, pivot = 0.25 * pitch, 0.03 * pitch, 0.05 * pitch
    # A small-length flexural pivot (Howell): E I over its length.
    springs = spring(NYLON * (2 * depth * thickness**3 / 12) / pivot)
    roller = 20.0

    def centre(i: int, j: int) -> np.ndarray:
        return point((i - 0.5) * pitch, 0, (j - 0.5) * pitch)

    def square(i: int, j: int) -> str:
        return f"square{i}_{j}" if j else "world"

    def up(i: int, j: int) -> None:
        """The joint at the lower corner of a square: to the square below, or to the ground."""
        sign = 1 if (i + j) % 2 == 0 else -1
        corner = centre(i, j) + point(-sign * offset, 0, -pitch / 2)
        if j > 1 or i == 1:
            b.hinge(f"up{i}_{j}", square(i, j - 1), square(i, j), anchor=corner, axis=Y, **springs)
        else:
            b.stack(
                f"up{i}_{j}",
                "world",
                square(i, j),
                [("slide", X, corner), ("hinge", Y, corner)],
                stiffness=(roller, springs["stiffness"]),
                damping=(0.005 * roller, springs["damping"]),
            )
            b.world_shape(
                shapes.box(
                    (0.2 * pitch, depth, 0.02 * pitch),
                    position=corner - point(0, 0, 0.02 * pitch),
                    rgba=STEEL,
                )
            )

    for j in range(1, ny + 1):
        for i in range(1, nx + 1):
            sign = 1 if (i + j) % 2 == 0 else -1
            # The corner to the right is at (pitch / 2, -sign * offset): squares turn from x to z by `sign`.
            half_turn = -sign * turn / 2
            box = shapes.box(
                (side / 2, depth, side / 2),
                orientation=(math.cos(half_turn), 0, math.sin(half_turn), 0),
                rgba=ORANGE if (i, j) == (nx, ny) else BLUE if sign > 0 else SKY,
            )
            b.body(square(i, j), position=centre(i, j), density=NYLON_DENSITY, shapes=[box])
        up(1, j)
        for i in range(2, nx + 1):
            sign = 1 if (i + j) % 2 == 1 else -1  # of the square to the left
            corner = centre(i - 1, j) + point(pitch / 2, 0, -sign * offset)
            b.hinge(f"right{i}_{j}", square(i - 1, j), square(i, j), anchor=corner, axis=Y, **springs)
        for i in range(2, nx + 1):
            up(i, j)
    b.world_shape(
        shapes.box(
            (nx * pitch / 2 + 0.1 * pitch, 1.2 * depth, 0.1 * pitch),
            position=(nx * pitch / 2, 0, -0.14 * pitch),
            rgba=DARK,
        )
    )
    b.end_effectors(square(nx, ny))


def lattice3d(nx: int = 3, ny: int = 3, nz: int = 3, cell: float = 0.03) -> Mechanism:
    """A spatial lattice of `nx` x `ny` x `nz` cubic cells that stands on the ground: rigid nodes, joined by struts.

    Either end of a strut is a ball with a spring of 0.2 N m/rad, a slender neck that bends and twists. With n
    = (nx + 1) (ny + 1) nz nodes and m = n + (nx (ny + 1) + (nx + 1) ny) nz struts there are n + m bodies, 2 m
    balls and m - n loops, closed in space; 6 n degrees of freedom are left: rows shift sideways, nodes turn,
    and struts turn about themselves. lattice3d(3, 3, 3) has 168 bodies, 240 balls, 72 loops.

    Args:
        nx, ny, nz: number of cells along x, y and upwards.
        cell: distance between the centres of nodes, m.

    Joints point along x, y and z: the parent is the left, front or lower body. The end effector is the node
    farthest along x, y and z.
    """
    nx, ny, nz = sizes(nx=nx, ny=ny, nz=nz)
    pitch = positive(cell, "cell")
    half, neck = 0.15 * pitch, 0.2 * pitch  # of a node, and from its centre to the balls
    springs = spring(0.2)
    b = Builder(f"lattice3d {nx} x {ny} x {nz}")

    def node(i: int, j: int, k: int) -> str:
        return f"node{i}_{j}_{k}" if k else "world"

    def strut(name: str, tail: tuple[int, int, int], axis: Sequence[float], colour: tuple) -> None:
        way = np.array(axis)
        start = pitch * np.array(tail, float)
        i, j, k = (tail + way.astype(int)).tolist()
        ends = start + neck * way, start + (pitch - neck) * way
        link(b, name, *ends, 0.05 * pitch, density=NYLON_DENSITY, rgba=colour)
        b.ball(f"{name}_foot", node(*tail), name, anchor=ends[0], **springs)
        b.ball(f"{name}_head", name, node(i, j, k), anchor=ends[1], **springs)

    for k in range(1, nz + 1):
        for j in range(ny + 1):
            for i in range(nx + 1):
                last = (i, j, k) == (nx, ny, nz)
                block(
                    b,
                    node(i, j, k),
                    pitch * point(i, j, k),
                    (half, half, half),
                    density=NYLON_DENSITY,
                    rgba=ORANGE if last else BLUE if (i + j + k) % 2 else TEAL,
                )
        # One upright strut carries the layer, a row along x the rows along y.
        strut(f"z0_0_{k}", (0, 0, k - 1), Z, SKY)
        for i in range(1, nx + 1):
            strut(f"x{i}_0_{k}", (i - 1, 0, k), X, YELLOW)
        for i in range(nx + 1):
            for j in range(1, ny + 1):
                strut(f"y{i}_{j}_{k}", (i, j - 1, k), Y, GREEN)
        for j in range(ny + 1):
            for i in range(nx + 1):
                if i and j:
                    strut(f"x{i}_{j}_{k}", (i - 1, j, k), X, YELLOW)
                if i or j:
                    strut(f"z{i}_{j}_{k}", (i, j, k - 1), Z, SKY)
    thickness = 0.1 * pitch
    b.world_shape(
        shapes.box(
            (nx * pitch / 2 + half, ny * pitch / 2 + half, thickness / 2),
            position=(nx * pitch / 2, ny * pitch / 2, -thickness / 2),
            rgba=DARK,
        )
    )
    for i in range(nx + 1):
        for j in range(ny + 1):
            b.world_shape(
                shapes.rod(pitch * point(i, j, 0), (i * pitch, j * pitch, neck), 0.05 * pitch, rgba=STEEL)
            )
    b.end_effectors(node(nx, ny, nz))
    return b.build()


def trampoline_net(n: int = 8, size: float = 2.0, tension: float = 200.0) -> Mechanism:
    """A square net of `n` x `n` meshes in a rigid frame 0.9 m above the ground, pulled taut by springs at the rim.

    Inextensible links of rope between knots, a universal joint at one end of a link and a ball at the other,
    0.2 N m/rad each. Links at the rim are hung in springs of 2 kN/m that are stretched at the reference pose:
    only with gravity given do they pull there (`gravity=(0, 0, 0)` for a net without weight), see
    docs/conventions.md. With k = (n - 1)^2 knots and m = 2 n (n - 1) links there are k + m bodies, 2 m joints
    and m - k loops; 4 k + 2 (n - 1) degrees of freedom are left. trampoline_net(8) has 161 bodies, 224 joints
    and 63 loops.

    Args:
        n: number of meshes along either side, at least 2.
        size: side of the frame, m.
        tension: of every rope at the reference pose, N.

    The end effector is the knot in the middle.
    """
    n, size = whole(n, "n", 2, 1000), positive(size, "size")
    tension = positive(tension, "tension", zero=True)
    mesh, height, rim = size / n, 0.9, 2000.0
    bend = 0.2
    b = Builder(f"trampoline_net {n}")

    def at(i: int, j: int) -> np.ndarray:
        return point(i * mesh - size / 2, j * mesh - size / 2, height)

    def knot(i: int, j: int) -> str:
        return f"knot{i}_{j}" if 0 < i < n and 0 < j < n else "world"

    middle = n // 2
    for j in range(1, n):
        for i in range(1, n):
            colour = ORANGE if i == j == middle else YELLOW
            ball = shapes.sphere(0.009 * size, rgba=colour)
            b.body(knot(i, j), position=at(i, j), density=NYLON_DENSITY, shapes=[ball])

    def rope(name: str, i: int, j: int, axis: tuple[float, float, float]) -> None:
        """The link from (i, j) to the next point along x or y."""
        start, end = at(i, j), at(i + int(axis[0]), j + int(axis[1]))
        tail, head = knot(i, j), knot(i + int(axis[0]), j + int(axis[1]))
        across = np.cross(Z, axis)
        link(b, name, start, end, 0.004 * size, density=NYLON_DENSITY, rgba=SKY if axis == X else BLUE)
        if tail == "world" or head == "world":
            outer, inward = (start, np.array(axis)) if tail == "world" else (end, -np.array(axis))
            b.stack(
                f"{name}_rim",
                "world",
                name,
                [("hinge", Z, outer), ("hinge", across, outer), ("slide", inward, outer)],
                stiffness=(bend, bend, rim),
                damping=(0.02 * bend, 0.02 * bend, 0.02 * rim),
                rest=(0.0, 0.0, -tension / rim),
            )
        else:
            b.universal(f"{name}_tail", tail, name, anchor=start, axes=(Z, across), **spring(bend, 0.02))
        if head == "world":
            b.ball(f"{name}_tail", tail, name, anchor=start, **spring(bend, 0.02))
        else:
            b.ball(f"{name}_head", name, head, anchor=end, **spring(bend, 0.02))

    for j in range(1, n):
        rope(f"y1_{j}", 1, j - 1, Y)
        for i in range(n):
            rope(f"x{i + 1}_{j}", i, j, X)
        for i in range(2, n):
            rope(f"y{i}_{j}", i, j - 1, Y)
    for i in range(1, n):
        rope(f"y{i}_{n}", i, n - 1, Y)
    tube, half = 0.0125 * size, 0.52 * size
    corners = [point(x, y, height) for x, y in ((-half, -half), (half, -half), (half, half), (-half, half))]
    for a, c in zip(corners, corners[1:] + corners[:1], strict=True):
        b.world_shape(shapes.rod(a, c, tube, rgba=RED))
        b.world_shape(shapes.rod(a, (a[0], a[1], 0), tube, rgba=DARK))
    b.end_effectors(knot(middle, middle))
    return b.build()
