"""The geoms of a compiled model as shapes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.formats.compiler import CompiledModel
from pliant.mechanism import ShapeTable

__all__ = ["shape_table"]

_GEOM = {
    0: "plane",
    1: "height field",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}
_PLANE, _HEIGHT_FIELD, _MESH = 0, 1, 7
_DEFAULT_RGBA = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)  # then a material's colour counts


def shape_table(model: CompiledModel, report: Counter[str]) -> ShapeTable:
    """All shapes; those of the world have body -1. What is no shape of ours is counted in `report`."""
    kinds, number = model["geom_type"].tolist(), model["geom_dataid"].tolist()
    fields = [_heights(model, field) for field in range(len(model["hfield_nrow"]))]
    # A field whose heights were not in the file was compiled as the smallest flat one.
    empty = [kind == _HEIGHT_FIELD and fields[i].shape == (2, 2) and not fields[i].any()
             for kind, i in zip(kinds, number, strict=True)]  # fmt: skip
    report["height field"] += sum(empty)
    report["signed distance field"] += sum(kind not in _GEOM for kind in kinds)
    keep = np.array([g for g, kind in enumerate(kinds) if kind in _GEOM and not empty[g]], dtype=np.int64)
    if not len(keep):
        return ShapeTable()
    kind = model["geom_type"][keep]
    size = np.array(model["geom_size"][keep], dtype=np.float64)
    size[kind == _MESH] = 0  # there it is a bounding box
    size[kind == _PLANE, 2] = 0  # the spacing of a plane's grid
    rgba = np.array(model["geom_rgba"][keep])
    material = model["geom_matid"][keep]
    from_material = (material >= 0) & (rgba == _DEFAULT_RGBA).all(axis=1)
    rgba[from_material] = model["mat_rgba"][material[from_material]]
    field = kind == _HEIGHT_FIELD
    data = np.where((kind == _MESH) | field, model["geom_dataid"][keep], -1)
    size[field] = model["hfield_size"][data[field]][:, [0, 1, 3]]
    # Meshes first, then height fields: key of a mesh -> its place in the table.
    keys = [(bool(f), int(i)) for f, i in zip(field, data, strict=True)]
    renumber = {key: i for i, key in enumerate(sorted({key for key in keys if key[1] >= 0}))}
    return ShapeTable(
        body=model["geom_bodyid"][keep].astype(np.int64) - 1,
        kind=np.array([shapes_module.KINDS.index(_GEOM[k]) for k in kind.tolist()], dtype=np.int64),
        size=size,
        pose=spatial.pose(model["geom_pos"][keep], model["geom_quat"][keep]),
        rgba=np.clip(rgba.astype(np.float64), 0.0, 1.0),
        mesh=np.array([renumber.get(key, -1) for key in keys], dtype=np.int64),
        role=_roles(model, keep),
        meshes=tuple(
            shapes_module.height_field_mesh(fields[i], *model["hfield_size"][i, :2].tolist())
            if is_field
            else _mesh(model, i)
            for is_field, i in renumber
        ),
    )


def _roles(model: CompiledModel, keep: NDArray[np.int64]) -> NDArray[np.int64]:
    """What MuJoCo lets touch, and what its viewers show unless asked otherwise (groups 0 to 2).

    A body with meshes only to look at, as URDF has them, does not show what touches in their place.
    """
    touches = (model["geom_contype"][keep] != 0) | (model["geom_conaffinity"][keep] != 0)
    body = model["geom_bodyid"][keep]
    looks = np.unique(body[~touches & (model["geom_type"][keep] == _MESH)])
    shown = (model["geom_group"][keep] <= 2) & ~np.isin(body, looks)
    both, visual, collision = (shapes_module.ROLES.index(role) for role in ("both", "visual", "collision"))
    return np.where(touches, np.where(shown, both, collision), visual).astype(np.int64)


def _heights(model: CompiledModel, field: int) -> NDArray[np.float64]:
    """The heights (rows, columns) of a height field."""
    rows, columns = int(model["hfield_nrow"][field]), int(model["hfield_ncol"][field])
    start = int(model["hfield_adr"][field])
    data = model["hfield_data"][start : start + rows * columns].astype(np.float64)
    return data.reshape(rows, columns) * float(model["hfield_size"][field, 2])


def _mesh(model: CompiledModel, mesh: int) -> shapes_module.Mesh:
    start, count = int(model["mesh_vertadr"][mesh]), int(model["mesh_vertnum"][mesh])
    first, faces = int(model["mesh_faceadr"][mesh]), int(model["mesh_facenum"][mesh])
    vertices = model["mesh_vert"][start : start + count].astype(np.float64)
    triangles = model["mesh_face"][first : first + faces].astype(np.int32)
    vertices.flags.writeable = triangles.flags.writeable = False
    return shapes_module.Mesh(vertices, triangles)
