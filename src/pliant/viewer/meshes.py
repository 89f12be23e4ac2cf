"""Triangle meshes of a mechanism's shapes: `triangulate` for still pictures, `make_parts` for browsers and glTF.

`triangulate` gives every triangle in world coordinates. `make_parts` gives few meshes with many scaled copies each: a
browser draws ten thousand copies of one mesh as fast as one, but not ten thousand meshes. All spheres and ellipsoids
share one mesh, so do boxes, cylinders, and capsules of similar slenderness.

CAD meshes have more faces than a picture can show: `decimate` merges their vertices on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.mechanism import Mechanism, ShapeTable

__all__ = [
    "Part",
    "Triangles",
    "arrow_mesh",
    "bounds",
    "box_mesh",
    "continuous",
    "decimate",
    "linear",
    "make_parts",
    "place_parts",
    "sphere_mesh",
    "triangulate",
    "vertex_normals",
]

Floats = NDArray[np.float64]
Mesh = tuple[NDArray[np.float32], NDArray[np.uint32]]  # vertices (v, 3), faces (f, 3)
_SMOOTH = ("sphere", "capsule", "cylinder")  # kinds shaded with vertex normals
_TRIANGULATED = ("mesh", "height field")  # kinds with a mesh of their own
_SLENDERNESS = 0.1  # logarithmic step: capsules that differ by less share a mesh, its caps stretched a little
_FACE_BUDGET = 200_000  # faces of all meshes together
_FEWEST_FACES = 300  # of a mesh, whatever the budget
_BARE = (0.45, 0.55, 0.70, 1.0)  # colour of bodies that have no shapes


# --- triangles in the world


@dataclass
class Triangles:
    """Triangles with colours.

    Attributes:
        corners: world coordinates, m, (n, 3, 3).
        rgba: colours, (n, 4).
        body: body index, -1 the world, (n,).
        two_sided: visible from behind as well, (n,).
    """

    corners: Floats
    rgba: Floats
    body: NDArray[np.int64]
    two_sided: NDArray[np.bool_]

    def only(self, keep: NDArray) -> Triangles:
        """The triangles selected by a mask or by indices."""
        return Triangles(self.corners[keep], self.rgba[keep], self.body[keep], self.two_sided[keep])


def triangulate(m: Mechanism, poses: Floats, reach: float) -> Triangles:
    """Triangles of all visible shapes with the bodies at `poses`; an infinite plane extends by `reach`."""
    table = m.shape_table
    shown = np.flatnonzero(_visible(table))
    world = np.concatenate([poses, np.eye(4)[None]])  # body -1, the world, is the last one
    frames = world[table.body[shown]] @ table.pose[shown]
    around = 48 if len(shown) < 120 else 24 if len(shown) < 500 else 12
    budget = max(_FEWEST_FACES, _FACE_BUDGET // max(1, int((table.mesh[shown] >= 0).sum())))
    empty = np.zeros((0, 3, 3)), np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, bool)
    pieces: list[tuple[NDArray, ...]] = [empty]
    for number in np.unique(table.kind[shown]).tolist():
        kind = shapes_module.KINDS[number]
        members = np.flatnonzero(table.kind[shown] == number)
        for mesh in set(table.mesh[shown[members]].tolist()):
            group = members[table.mesh[shown[members]] == mesh]
            if kind in _TRIANGULATED:
                faces, two_sided = _own_mesh(table, kind, mesh, budget)
                local = np.broadcast_to(faces, (len(group), *faces.shape))
            else:
                local, two_sided = _primitives(kind, table.size[shown[group]], around, reach)
            corners = (
                np.einsum("sij,sfcj->sfci", frames[group, :3, :3], local) + frames[group, None, None, :3, 3]
            )
            count = local.shape[1]
            rgba, body = (np.repeat(a[shown[group]], count, axis=0) for a in (table.rgba, table.body))
            pieces.append((corners.reshape(-1, 3, 3), rgba, body, np.full(len(body), two_sided)))
    return Triangles(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def _visible(table: ShapeTable) -> NDArray[np.bool_]:
    """Mask of the shapes to draw: collision shapes only on bodies that have no visual ones."""
    collision = table.role == shapes_module.ROLES.index("collision")
    has_visual = np.isin(table.body, np.unique(table.body[~collision]))
    return (table.rgba[:, 3] > 0) & ~(collision & has_visual)


# --- primitives


def _primitives(kind: str, size: Floats, around: int, reach: float) -> tuple[Floats, bool]:
    """Triangles (shapes, faces, 3, 3) of shapes of one kind in their own frames, and whether they have two sides."""
    a, b = size[:, 0, None, None, None], size[:, 1, None, None, None]
    if kind == "sphere":
        return a * _ball(around)[None], False
    if kind == "capsule":  # a ball pulled apart at its equator
        ball = _ball(around)
        ends = np.array([0, 0, 1.0]) * np.where(
            ball[:, :, 2:] == 0, _hemisphere(ball), np.sign(ball[:, :, 2:])
        )
        return np.concatenate([a * ball[None] + b * ends[None], _tube(a, b, around)], axis=1), False
    if kind == "cylinder":
        return np.concatenate([_tube(a, b, around), _lids(a, b, around)], axis=1), False
    if kind == "box":
        return _box()[None] * size[:, None, None, :], False
    if kind == "ellipsoid":
        return _ball(around)[None] * size[:, None, None, :], False
    extent = np.where(size > 0, size, reach)
    return _square()[None] * (extent * (1, 1, 0))[:, None, None, :], True


def _quads(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """Two triangles per quadrilateral, degenerate ones dropped."""
    out = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    area = np.linalg.norm(np.cross(out[:, 1] - out[:, 0], out[:, 2] - out[:, 0]), axis=1)
    return out[area > 1e-12]


@lru_cache(maxsize=8)
def _ball(around: int) -> Floats:
    """Triangles of the unit sphere, with edges along its equator, facing outward."""
    rings = max(4, around // 4 * 2)
    angle = np.linspace(0, 2 * np.pi, around + 1)
    up = np.linspace(-np.pi / 2, np.pi / 2, rings + 1)
    height = np.sin(up)
    height[rings // 2] = 0.0
    one, c = np.ones_like(angle), np.cos(up)
    grid = np.stack([np.outer(c, np.cos(angle)), np.outer(c, np.sin(angle)), np.outer(height, one)], axis=2)
    corners = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    return _quads(*(c.reshape(-1, 3) for c in corners))


def _hemisphere(ball: Floats) -> Floats:
    """Hemisphere of every triangle, +1 upper or -1 lower, repeated for its corners."""
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


def _own_mesh(table: ShapeTable, kind: str, mesh: int, budget: int) -> tuple[Floats, bool]:
    """Triangles (n, 3, 3) of a mesh or height field of the table, and whether they have two sides."""
    given = table.meshes[mesh]
    corners, is_open = decimate(given.vertices, given.faces, budget)
    return corners, is_open or kind == "height field"


def decimate(vertices: Floats, faces: NDArray, most: int) -> tuple[Floats, bool]:
    """Triangles (n, 3, 3) of a mesh with at most about `most` faces, turned outward if the mesh is closed.

    Vertices in the same cell of a grid are merged; faces that collapse are dropped. Returns also whether the mesh
    encloses no volume, so that both sides have to be drawn.
    """
    points, triangles = vertices, faces
    cells = 128
    while len(triangles) > most and cells > 4:
        points, triangles = _merge_vertices(vertices, faces, cells)
        cells = cells * 3 // 4
    corners = points[triangles] if len(triangles) else np.zeros((0, 3, 3))
    centred = corners - corners.reshape(-1, 3).mean(axis=0) if len(corners) else corners
    volume = np.einsum("ij,ij->", centred[:, 0], np.cross(centred[:, 1], centred[:, 2])) / 6
    extent = float(np.prod(np.ptp(points, axis=0))) if len(points) else 0.0
    if volume < 0:
        corners = corners[:, ::-1]
    return corners, bool(abs(volume) < 0.02 * extent)


def _merge_vertices(vertices: Floats, faces: NDArray, cells: int) -> tuple[Floats, NDArray]:
    """The mesh with the vertices of every grid cell replaced by their mean, `cells` cells along its longest side."""
    low, extent = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max())
    cell = np.floor((vertices - low) / max(extent / cells, 1e-300)).astype(np.int64)
    number = np.unique(cell, axis=0, return_inverse=True)[1].reshape(-1)
    count = np.bincount(number)
    points = np.column_stack([np.bincount(number, vertices[:, i]) / count for i in range(3)])
    a, b, c = number[faces].T
    return points, number[faces][(a != b) & (b != c) & (a != c)]


# --- parts: meshes with copies


@dataclass(frozen=True, eq=False)
class Part:
    """A mesh and its n copies.

    Attributes:
        vertices, faces: the mesh, (v, 3) and (f, 3).
        body: body index of each copy, -1 the world, (n,).
        position, wxyz: of each copy in the frame of its body, m and unit quaternion, (n, 3) and (n, 4).
        scale: of each copy, along the axes of the mesh, (n, 3).
        rgba: colours, (n, 4); either all opaque or none.
        flat: faces are shaded flat, not as samples of a round surface.
        two_sided: visible from behind as well.
        ground: an infinite plane or a plane of the world: not counted by `bounds`.
        endless: an infinite plane.
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    body: NDArray[np.int64]
    position: Floats
    wxyz: Floats
    scale: Floats
    rgba: Floats
    flat: bool
    two_sided: bool
    ground: bool
    endless: bool


def make_parts(m: Mechanism) -> list[Part]:
    """Parts of all visible shapes; bodies without shapes are rods from joint to centre of mass."""
    table = _with_rods(m)
    shown = np.flatnonzero(_visible(table))
    around = 32 if len(shown) < 200 else 16 if len(shown) < 2000 else 8
    groups: dict[Any, list[int]] = {}
    for s in shown.tolist():
        clear = bool(table.rgba[s, 3] < 1)
        groups.setdefault((*_mesh_key(table, s), clear), []).append(s)
    budget = max(_FEWEST_FACES, _FACE_BUDGET // max(1, sum(key[0] == "mesh" for key in groups)))
    out = []
    for (kind, detail, _), members in groups.items():
        of = np.array(members)
        if kind in _TRIANGULATED:
            corners, two_sided = _own_mesh(table, kind, detail, budget if kind == "mesh" else _FACE_BUDGET)
        else:
            corners, two_sided = _unit_primitive(kind, detail, around, reach=1.2 * m.radius)
        vertices, faces = _indexed(corners, kind)
        out.append(
            Part(
                vertices=vertices,
                faces=faces,
                body=table.body[of],
                position=table.pose[of, :3, 3],
                wxyz=spatial.quat_from_matrix(table.pose[of, :3, :3]),
                scale=_scales(kind, detail, table.size[of]),
                rgba=table.rgba[of],
                flat=kind not in _SMOOTH,
                two_sided=two_sided,
                ground=kind == "plane" and (0.0 in detail or bool((table.body[of] < 0).all())),
                endless=kind == "plane" and 0.0 in detail,
            )
        )
    return out


def place_parts(parts: list[Part], poses: Floats) -> list[tuple[Floats, Floats]]:
    """World positions (n, 3), m, and quaternions (n, 4) of the copies of every part, with bodies at `poses`."""
    world = np.concatenate([poses, np.eye(4)[None]])  # body -1, the world, is the last one
    quaternions = spatial.quat_from_matrix(world[:, :3, :3])
    out = []
    for part in parts:
        pose = world[part.body]
        position = np.einsum("nij,nj->ni", pose[:, :3, :3], part.position) + pose[:, :3, 3]
        out.append((position, spatial.quat_multiply(quaternions[part.body], part.wxyz)))
    return out


def bounds(parts: list[Part], poses: Floats) -> tuple[Floats, Floats]:
    """Low and high corner of the bounding box of all parts, m, with bodies at `poses`; of no parts, ±(1, 1, 1)."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for part, (position, wxyz) in zip(parts, place_parts(parts, poses), strict=True):
        if part.ground or not len(part.vertices):
            continue
        a, b = part.vertices.min(axis=0), part.vertices.max(axis=0)
        corners = np.stack(np.meshgrid(*zip(a, b, strict=True)), axis=-1).reshape(-1, 3)
        scaled = corners[None] * part.scale[:, None]
        at = np.einsum("nij,nkj->nki", spatial.quat_to_matrix(wxyz), scaled) + position[:, None]
        low, high = np.minimum(low, at.min(axis=(0, 1))), np.maximum(high, at.max(axis=(0, 1)))
    if not np.isfinite(low).all():
        return -np.ones(3), np.ones(3)
    return low, high


def sphere_mesh(around: int) -> Mesh:
    """Vertices and faces of the unit sphere, with `around` vertices along its equator."""
    return _indexed(_ball(around), "sphere")


def vertex_normals(points: NDArray[np.float32], faces: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Unit normals of vertices, (n, 3): means of the faces around, weighted by area."""
    corners = points[faces].astype(np.float64)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    out = np.zeros(points.shape)
    np.add.at(out, faces.reshape(-1), np.repeat(normal, 3, axis=0))
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return np.where(length > 0, out / np.maximum(length, 1e-300), (0.0, 0.0, 1.0)).astype(np.float32)


def continuous(quaternions: Floats) -> Floats:
    """Unit quaternions over time (n, 4), signs flipped so that neighbours have a positive dot product."""
    side = np.where((quaternions[1:] * quaternions[:-1]).sum(axis=1) < 0, -1.0, 1.0)
    out = np.concatenate([quaternions[:1], quaternions[1:] * np.cumprod(side)[:, None]])
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def linear(colours: Floats) -> Floats:
    """Linear colours of sRGB ones, both from 0 to 1."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def arrow_mesh() -> Floats:
    """Triangles (n, 3, 3) of an arrow from the origin to (0, 0, 1)."""
    ring, up = _circle(16), np.array([0, 0, 1.0])
    thin, wide, neck = 0.03 * ring, 0.09 * ring, 0.75 * up
    shaft = _quads(thin[:-1], thin[1:], thin[1:] + neck, thin[:-1] + neck)
    tip = np.broadcast_to(up, (16, 3))
    cone = np.stack([wide[:-1] + neck, wide[1:] + neck, tip], axis=1)
    base = np.stack([wide[1:] + neck, wide[:-1] + neck, np.broadcast_to(neck, (16, 3))], axis=1)
    return np.concatenate([shaft, cone, base])


def box_mesh() -> Mesh:
    """Vertices and faces of the cube from -1 to 1."""
    return _indexed(_box(), "box")


def _mesh_key(table: ShapeTable, s: int) -> tuple[str, Any]:
    """Kind and detail of a shape: shapes of the same key share a mesh."""
    kind, size = shapes_module.KINDS[table.kind[s]], table.size[s]
    if kind == "capsule":
        return kind, round(float(np.log(size[1] / size[0])) / _SLENDERNESS)
    if kind in _TRIANGULATED:
        return kind, int(table.mesh[s])
    if kind == "plane":
        return kind, tuple(size.tolist()[:2])
    return "sphere" if kind == "ellipsoid" else kind, None


def _unit_primitive(kind: str, detail: Any, around: int, reach: float) -> tuple[Floats, bool]:
    """Triangles (n, 3, 3) of the mesh that a group of primitives shares, and whether they have two sides."""
    size = (1.0, 1.0, 1.0)
    if kind == "capsule":
        size = (1.0, np.exp(_SLENDERNESS * detail), 1.0)
    elif kind == "plane":
        size = (*detail, 0.0)
    corners, two_sided = _primitives(kind, np.array([size]), around, reach)
    return corners[0], two_sided


def _scales(kind: str, detail: Any, size: Floats) -> Floats:
    """Scale of every copy of a shared mesh along its axes, (n, 3), from sizes of shapes."""
    a, b = size[:, :1], size[:, 1:2]
    if kind == "sphere":
        return np.where(size > 0, size, a)  # an ellipsoid has three radii, a sphere one
    if kind == "box":
        return size.copy()
    if kind == "cylinder":
        return np.concatenate([a, a, b], axis=1)
    if kind == "capsule":
        return np.concatenate([a, a, (a + b) / (1 + np.exp(_SLENDERNESS * detail))], axis=1)
    return np.ones_like(size)


def _indexed(corners: Floats, kind: str) -> Mesh:
    """Vertices and faces of triangles (n, 3, 3); smooth kinds share vertices, so that they are shaded smoothly."""
    vertices = corners.reshape(-1, 3).astype(np.float32)
    faces = np.arange(len(vertices), dtype=np.uint32).reshape(-1, 3)
    if kind not in _SMOOTH:
        return vertices, faces
    key = np.round(vertices.astype(np.float64), 5) + 0.0
    if kind == "cylinder":  # a sharp edge between lids and side: their vertices stay apart
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        lid = np.abs(normal[:, 2]) > 0.9 * np.linalg.norm(normal, axis=1)
        key = np.column_stack([key, np.repeat(lid, 3)])
    _, first, number = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return vertices[first], number.reshape(-1)[faces].astype(np.uint32)


def _with_rods(m: Mechanism) -> ShapeTable:
    """The shape table of a mechanism, with rods and a ball for every body that has no shapes."""
    table = m.shape_table
    bare = np.setdiff1d(np.arange(m.body_count), table.body)
    thickness = 0.01 * m.radius
    for body in bare.tolist():
        joint = m.topology.tree_joint[body]
        anchor, centre = m.child_frames[joint, :3, 3], m.com[body]
        # Rods lead to the centre of mass and to the joints of the body's children.
        children = np.flatnonzero(m.joint_parents == body)
        ends = [centre, *m.parent_frames[children, :3, 3]] if len(bare) < 5000 else [centre]
        apart = [end for end in ends if np.linalg.norm(end - anchor) > 2 * thickness]
        rods = [shapes_module.rod(anchor, end, thickness, rgba=_BARE) for end in apart]
        ball = shapes_module.sphere(2 * thickness, position=anchor, rgba=_BARE)
        table = table.with_shapes(body, [*rods, ball])
    return table
