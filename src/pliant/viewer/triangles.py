"""Shapes of a mechanism as triangles in the world, ready to be drawn.

Meshes from CAD have far more faces than a still picture can show: `thin` merges their vertices on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant.mechanism import Mechanism, ShapeTable

__all__ = ["Triangles", "thin", "triangulate"]

Floats = NDArray[np.float64]
_SPHERE, _BOX, _CAPSULE, _CYLINDER, _ELLIPSOID, _PLANE, _MESH, _HEIGHT_FIELD = range(len(shapes_module.KINDS))
_FACE_BUDGET = 200_000  # of all meshes together


@dataclass
class Triangles:
    """Corners (n, 3, 3) in the world, colours (n, 4), the body of each (-1 the world) and whether both sides show."""

    corners: Floats
    rgba: Floats
    body: NDArray[np.int64]
    two_sided: NDArray[np.bool_]

    def only(self, keep: NDArray) -> Triangles:
        """The triangles chosen by a mask or by indices."""
        return Triangles(self.corners[keep], self.rgba[keep], self.body[keep], self.two_sided[keep])


def triangulate(m: Mechanism, poses: Floats, reach: float) -> Triangles:
    """All shapes of a mechanism with its bodies at `poses`; an infinite plane extends by `reach`."""
    table = m.shape_table
    shown = np.flatnonzero(_visible(table))
    world = np.concatenate([poses, np.eye(4)[None]])  # body -1, the world, is the last one
    frames = world[table.body[shown]] @ table.pose[shown]
    around = 48 if len(shown) < 120 else 24 if len(shown) < 500 else 12
    mesh_count = max(1, int((table.mesh[shown] >= 0).sum()))
    parts: list[Triangles] = []
    for kind in np.unique(table.kind[shown]).tolist():
        members = np.flatnonzero(table.kind[shown] == kind)
        if kind in (_MESH, _HEIGHT_FIELD):
            groups = {
                i: members[table.mesh[shown[members]] == i] for i in set(table.mesh[shown[members]].tolist())
            }
        else:
            groups = {-1: members}
        for number, group in groups.items():
            local, two_sided = _local(kind, table.size[shown[group]], around, reach)
            if number >= 0:
                mesh = table.meshes[number]
                faces, open_ = thin(mesh.vertices, mesh.faces, max(300, _FACE_BUDGET // mesh_count))
                two_sided = open_ or kind == _HEIGHT_FIELD
                local = np.broadcast_to(faces, (len(group), *faces.shape))
            corners = (
                np.einsum("sij,sfcj->sfci", frames[group, :3, :3], local) + frames[group, None, None, :3, 3]
            )
            count = local.shape[1]
            parts.append(
                Triangles(
                    corners=corners.reshape(-1, 3, 3),
                    rgba=np.repeat(table.rgba[shown[group]], count, axis=0),
                    body=np.repeat(table.body[shown[group]], count),
                    two_sided=np.full(len(group) * count, two_sided),
                )
            )
    if not parts:
        return Triangles(np.zeros((0, 3, 3)), np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, bool))
    return Triangles(
        *(np.concatenate([getattr(p, f) for p in parts]) for f in ("corners", "rgba", "body", "two_sided"))
    )


def _visible(table: ShapeTable) -> NDArray[np.bool_]:
    """Leave out shapes that only touch, on bodies that have others to look at."""
    touching = table.role == shapes_module.ROLES.index("collision")
    has_looks = np.isin(table.body, np.unique(table.body[~touching]))
    return (table.rgba[:, 3] > 0) & ~(touching & has_looks)


# --- primitives


def _local(kind: int, size: Floats, around: int, reach: float) -> tuple[Floats, bool]:
    """Triangles (shapes, faces, 3, 3) of shapes of one kind in their own frames, and whether they have two sides."""
    a, b = size[:, 0, None, None, None], size[:, 1, None, None, None]
    if kind == _SPHERE:
        return a * _ball(around)[None], False
    if kind == _CAPSULE:
        # A ball pulled apart at its equator.
        ball = _ball(around)
        ends = np.array([0, 0, 1.0]) * np.where(ball[:, :, 2:] == 0, _equator(ball), np.sign(ball[:, :, 2:]))
        return np.concatenate([a * ball[None] + b * ends[None], _tube(a, b, around)], axis=1), False
    if kind == _CYLINDER:
        return np.concatenate([_tube(a, b, around), _lids(a, b, around)], axis=1), False
    if kind == _BOX:
        return _box()[None] * size[:, None, None, :], False
    if kind == _ELLIPSOID:
        return _ball(around)[None] * size[:, None, None, :], False
    extent = np.where(size > 0, size, reach)
    return _square()[None] * (extent * (1, 1, 0))[:, None, None, :], True


def _quads(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """Two triangles each; those without area left out."""
    out = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    area = np.linalg.norm(np.cross(out[:, 1] - out[:, 0], out[:, 2] - out[:, 0]), axis=1)
    return out[area > 1e-12]


@lru_cache(maxsize=8)
def _ball(around: int) -> Floats:
    """The unit sphere, with an edge along its equator, faces outward."""
    rings = max(4, around // 4 * 2)
    angle = np.linspace(0, 2 * np.pi, around + 1)
    up = np.linspace(-np.pi / 2, np.pi / 2, rings + 1)
    height = np.sin(up)
    height[rings // 2] = 0.0
    one, c = np.ones_like(angle), np.cos(up)
    grid = np.stack([np.outer(c, np.cos(angle)), np.outer(c, np.sin(angle)), np.outer(height, one)], axis=2)
    corners = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    return _quads(*(c.reshape(-1, 3) for c in corners))


def _equator(ball: Floats) -> Floats:
    """For corners on the equator: the half their triangle belongs to, +1 or -1."""
    return np.broadcast_to(np.sign(ball[:, :, 2].sum(axis=1))[:, None, None], (*ball.shape[:2], 1))


@lru_cache(maxsize=8)
def _circle(around: int) -> Floats:
    angle = np.linspace(0, 2 * np.pi, around + 1)
    return np.column_stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)])


def _tube(radius: Floats, half: Floats, around: int) -> Floats:
    ring = _circle(around)
    up = np.array([0, 0, 1.0])
    sides = _quads(ring[:-1] - up, ring[1:] - up, ring[1:] + up, ring[:-1] + up)[None]
    return sides * np.concatenate([radius, radius, half], axis=3)


def _lids(radius: Floats, half: Floats, around: int) -> Floats:
    ring, centre = _circle(around), np.zeros((around, 3))
    up = np.array([0, 0, 1.0])
    top = np.stack([centre + up, ring[:-1] + up, ring[1:] + up], axis=1)
    bottom = np.stack([centre - up, ring[1:] - up, ring[:-1] - up], axis=1)
    return np.concatenate([top, bottom])[None] * np.concatenate([radius, radius, half], axis=3)


@lru_cache(maxsize=1)
def _square() -> Floats:
    c = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
    return np.stack([c[[0, 1, 2]], c[[0, 2, 3]]])


@lru_cache(maxsize=1)
def _box() -> Floats:
    top = _square() + np.array([0, 0, 1])
    half = np.concatenate([top, top[:, ::-1] * (1, 1, -1)])
    return np.concatenate([half, half[:, :, [2, 0, 1]], half[:, :, [1, 2, 0]]])


# --- meshes


def thin(vertices: Floats, faces: NDArray, most: int) -> tuple[Floats, bool]:
    """Triangles (n, 3, 3) of a mesh with at most about `most` faces, turned outward if the mesh is closed.

    Vertices that fall into one cell of a grid become one; faces that collapse are dropped. Returns also whether
    both sides have to be drawn, because the mesh has no inside.
    """
    points, triangles = vertices, faces
    cells = 128
    while len(triangles) > most and cells > 4:
        points, triangles = _merge(vertices, faces, cells)
        cells = cells * 3 // 4
    corners = points[triangles] if len(triangles) else np.zeros((0, 3, 3))
    centred = corners - corners.reshape(-1, 3).mean(axis=0) if len(corners) else corners
    volume = np.einsum("ij,ij->", centred[:, 0], np.cross(centred[:, 1], centred[:, 2])) / 6
    extent = float(np.prod(np.ptp(points, axis=0))) if len(points) else 0.0
    if volume < 0:
        corners = corners[:, ::-1]
    return corners, bool(abs(volume) < 0.02 * extent)


def _merge(vertices: Floats, faces: NDArray, cells: int) -> tuple[Floats, NDArray]:
    """The mesh with the vertices of every cell of a grid replaced by their mean."""
    low, extent = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max())
    cell = np.floor((vertices - low) / max(extent / cells, 1e-300)).astype(np.int64)
    number = np.unique(cell, axis=0, return_inverse=True)[1].reshape(-1)
    count = np.bincount(number)
    points = np.column_stack([np.bincount(number, vertices[:, i]) / count for i in range(3)])
    a, b, c = number[faces].T
    return points, number[faces][(a != b) & (b != c) & (a != c)]
