"""What a mechanism looks like as few meshes, each drawn many times: parts.

A browser draws ten thousand copies of one mesh as easily as one, but not ten thousand meshes. So all spheres share one
mesh, each copy with its own scale; so do boxes, cylinders, and capsules of about the same slenderness.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.mechanism import Mechanism, ShapeTable
from pliant.viewer import triangles

__all__ = ["Part", "bounds", "make_parts"]

Floats = NDArray[np.float64]
_KIND = {name: number for number, name in enumerate(shapes_module.KINDS)}
_ROUND = ("sphere", "capsule", "ellipsoid")  # smooth everywhere
_SCALED = ("sphere", "box", "cylinder", "ellipsoid")  # one mesh serves all sizes
_SLENDERNESS = 0.1  # logarithmic step: capsules that differ by less share a mesh, its caps stretched a little
_MESH_FACES = 200_000  # of all meshes together
_BARE = (0.45, 0.55, 0.70, 1.0)  # colour of bodies that have no shapes


@dataclass(frozen=True, eq=False)
class Part:
    """One mesh and its n copies.

    Attributes:
        vertices, faces: the mesh, (v, 3) and (f, 3).
        body: whose each copy is, -1 the world's, (n,).
        position, wxyz: of each copy in the frame of its body, (n, 3) and (n, 4).
        scale: of each copy, along the axes of the mesh, (n, 3).
        rgba: colours, (n, 4); either all opaque or none.
        flat: faces are flat, not samples of a round surface.
        two_sided: seen from behind as well.
        ground: a plane without end or of the world: no part of the extent of what stands on it.
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

    def place(self, poses: Floats, turns: Floats) -> tuple[Floats, Floats]:
        """Positions (n, 3) and quaternions (n, 4) in the world, of bodies at poses with quaternions `turns`.

        Of both, the last entry is the world's: the identity.
        """
        there = poses[self.body]
        position = np.einsum("nij,nj->ni", there[:, :3, :3], self.position) + there[:, :3, 3]
        return position, spatial.quat_multiply(turns[self.body], self.wxyz)


def make_parts(m: Mechanism) -> list[Part]:
    """All shapes of a mechanism as parts; bodies without any are rods from joint to centre of mass."""
    table = _with_bare(m)
    shown = np.flatnonzero(triangles._visible(table))
    around = 32 if len(shown) < 200 else 16 if len(shown) < 2000 else 8
    reach = 1.2 * m.radius
    groups: dict[Any, list[int]] = {}
    for s in shown.tolist():
        clear = bool(table.rgba[s, 3] < 1)
        groups.setdefault((*_key(table, s), clear), []).append(s)
    budget = max(300, _MESH_FACES // max(1, sum(key[0] == "mesh" for key in groups)))
    out = []
    for (kind, detail, _), members in groups.items():
        of = np.array(members)
        unit, two_sided = _unit(table, kind, detail, members[0], around, reach, budget)
        vertices, faces = _indexed(unit, kind)
        out.append(
            Part(
                vertices=vertices,
                faces=faces,
                body=table.body[of],
                position=table.pose[of, :3, 3],
                wxyz=spatial.quat_from_matrix(table.pose[of, :3, :3]),
                scale=_scales(kind, detail, table.size[of]),
                rgba=table.rgba[of],
                flat=kind not in (*_ROUND, "cylinder"),
                two_sided=two_sided,
                ground=kind == "plane" and (0.0 in detail or bool((table.body[of] < 0).all())),
            )
        )
    return out


def bounds(parts: list[Part], poses: Floats) -> tuple[Floats, Floats]:
    """Low and high corner of a box around all parts, of bodies at poses; (-1, -1, -1) and (1, 1, 1) around none."""
    world = np.concatenate([poses, np.eye(4)[None]])
    turns = spatial.quat_from_matrix(world[:, :3, :3])
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for part in parts:
        if part.ground or not len(part.vertices):
            continue
        position, wxyz = part.place(world, turns)
        a, b = part.vertices.min(axis=0), part.vertices.max(axis=0)
        corners = np.stack(np.meshgrid(*zip(a, b, strict=True)), axis=-1).reshape(-1, 3)
        scaled = corners[None] * part.scale[:, None]
        at = np.einsum("nij,nkj->nki", spatial.quat_to_matrix(wxyz), scaled) + position[:, None]
        low, high = np.minimum(low, at.min(axis=(0, 1))), np.maximum(high, at.max(axis=(0, 1)))
    if not np.isfinite(low).all():
        return -np.ones(3), np.ones(3)
    return low, high


# --- which shapes share a mesh


def _key(table: ShapeTable, s: int) -> tuple[str, Any]:
    kind, size = shapes_module.KINDS[table.kind[s]], table.size[s]
    if kind in _SCALED:
        return "sphere" if kind == "ellipsoid" else kind, None
    if kind == "capsule":
        return kind, round(float(np.log(size[1] / size[0])) / _SLENDERNESS)
    if kind == "mesh":
        return kind, int(table.mesh[s])
    if kind == "plane":
        return kind, tuple(size.tolist()[:2])
    return kind, s  # a kind of shape this module knows nothing about: by itself


def _scales(kind: str, detail: Any, size: Floats) -> Floats:
    a, b = size[:, :1], size[:, 1:2]
    if kind == "sphere":
        return np.where(size > 0, size, a)  # an ellipsoid has three, a sphere one
    if kind == "box":
        return size.copy()
    if kind == "cylinder":
        return np.concatenate([a, a, b], axis=1)
    if kind == "capsule":
        return np.concatenate([a, a, (a + b) / (1 + np.exp(_SLENDERNESS * detail))], axis=1)
    return np.ones_like(size)


# --- their meshes


def _unit(
    table: ShapeTable, kind: str, detail: Any, first: int, around: int, reach: float, budget: int
) -> tuple[Floats, bool]:
    """Triangles (n, 3, 3) of the mesh that a group of shapes shares, and whether it has two sides."""
    if kind == "mesh":
        mesh = table.meshes[detail]
        return triangles.thin(mesh.vertices, mesh.faces, budget)
    if kind in _SCALED or kind == "capsule":
        half = np.exp(_SLENDERNESS * detail) if kind == "capsule" else 1.0
        soup, _ = triangles._local(_KIND[kind], np.array([[1.0, half, 1.0]]), around, reach)
        return soup[0], False
    # The shape by itself, in the world, where it is not turned.
    alone = replace(_rows(table, np.array([first])), body=np.array([-1]), pose=np.eye(4)[None])
    found = triangles.triangulate(SimpleNamespace(shape_table=alone), np.zeros((0, 4, 4)), reach)  # type: ignore[arg-type]
    return found.corners, bool(found.two_sided.any())


def _indexed(soup: Floats, kind: str) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Vertices and faces; corners that coincide are one where the surface is round, so that it is shaded smoothly."""
    corners = soup.reshape(-1, 3).astype(np.float32)
    faces = np.arange(len(corners), dtype=np.uint32).reshape(-1, 3)
    if kind not in (*_ROUND, "cylinder"):
        return corners, faces
    key = np.round(corners.astype(np.float64), 5) + 0.0
    if kind == "cylinder":
        # Its lids meet its side at an edge.
        normal = np.cross(soup[:, 1] - soup[:, 0], soup[:, 2] - soup[:, 0])
        lid = np.abs(normal[:, 2]) > 0.9 * np.linalg.norm(normal, axis=1)
        key = np.column_stack([key, np.repeat(lid, 3)])
    _, first, number = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return corners[first], number.reshape(-1)[faces].astype(np.uint32)


# --- tables


def _rows(table: ShapeTable, rows: NDArray[np.int64]) -> ShapeTable:
    """Some rows of a table; what is not a column stays whole."""
    n = len(table)
    columns = {f.name: getattr(table, f.name) for f in fields(table)}
    return replace(
        table,
        **{k: v[rows] for k, v in columns.items() if isinstance(v, np.ndarray) and v.shape[:1] == (n,)},
    )


def _with_bare(m: Mechanism) -> ShapeTable:
    """The shapes of a mechanism, with rods for bodies that have none."""
    table = m.shape_table
    bare = np.setdiff1d(np.arange(m.body_count), table.body)
    thickness = 0.01 * m.radius
    for body in bare.tolist():
        joint = m.topology.tree_joint[body]
        anchor, centre = m.child_frames[joint, :3, 3], m.com[body]
        # What a body carries starts where it ends.
        carried = np.flatnonzero(m.joint_parents == body)
        ends = [centre, *m.parent_frames[carried, :3, 3]] if len(bare) < 5000 else [centre]
        apart = [end for end in ends if np.linalg.norm(end - anchor) > 2 * thickness]
        rods = [shapes_module.rod(anchor, end, thickness, rgba=_BARE) for end in apart]
        ball = shapes_module.sphere(2 * thickness, position=anchor, rgba=_BARE)
        table = table.with_shapes(body, [*rods, ball])
    return table
