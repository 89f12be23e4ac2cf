"""Collision scene: shapes of bodies as a MuJoCo model, for its collider only.

Every colliding body becomes a MuJoCo body without joints, so that planes may move as well. `compiled` marks bodies as
moving after compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from pliant.contact.materials import half_thicknesses
from pliant.errors import InputError
from pliant.shapes import KINDS, Mesh, Shape
from pliant.text import brief

__all__ = ["Scene", "compiled", "make_scene", "quiet"]

_TYPE = {
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
    "plane": mujoco.mjtGeom.mjGEOM_PLANE,
    "mesh": mujoco.mjtGeom.mjGEOM_MESH,
    "height field": mujoco.mjtGeom.mjGEOM_HFIELD,
}
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "height field": 3}
_FLAT = 1e-6  # thinnest mesh, relative to its extent: MuJoCo keeps vertices in single precision
_MOST_BODIES = 65_000  # MuJoCo numbers bodies with 16 bits here
# MuJoCo reports at most 50 contacts of a pair of geoms. A shape that may touch more triangles of a height field
# collides with tiles of 5 x 5 cells; other shapes collide with the whole field, which takes less time.
_TILE = 5
_FEW = (
    18  # most cells under a small shape, by its length and width: up to 40 triangles, some of them only near
)
_SMALL, _LARGE = 4, 8  # collision bits of shapes that collide with whole fields, and with tiles
_ENDLESS = 1e10
# Core of a shape: a ball inside it that collides with planes only. A body that rotates by a radian in a step may turn
# corners without contacts into a plane; its core keeps the middle out. Its margin grows with the speed of the body
# without bound, since a plane has no edge to fly past.
_CORE, _CORE_BIT = 0.8, 2
_CORES, _TILES = (
    "core of ",
    "tiles of ",
)  # prefixes of MuJoCo bodies that hold the cores or tiles of a body


@dataclass
class Scene:
    """MuJoCo specification of a scene, and the bodies and shapes that its bodies and geoms stand for.

    Attributes:
        spec: the model to be compiled.
        body: per MuJoCo body our index, -1 the world; entry 0 is MuJoCo's own world, which holds nothing.
        moving: whether it moves, per MuJoCo body.
        weld: per MuJoCo body that moves, the first of its group; bodies of a group do not touch each other.
        core: per MuJoCo body, whether it holds the cores of another.
        geom_body, geom_shape, geom_core: per geom, our body, the index of the shape, whether it is the shape's core.
    """

    spec: mujoco.MjSpec
    body: NDArray[np.int64]
    moving: NDArray[np.bool_]
    weld: NDArray[np.int64]
    geom_body: NDArray[np.int64]
    geom_shape: NDArray[np.int64]
    geom_core: NDArray[np.bool_]
    core: NDArray[np.bool_]


def make_scene(
    shapes: Sequence[tuple[int, Shape]],
    static: NDArray[np.bool_],
    ignore: Iterable[tuple[int, int]],
    name: Callable[[int], str],
    groups: NDArray[np.int64] | None = None,
    cored: Collection[int] = (),
) -> Scene:
    """Scene of all shapes that collide; moving bodies of the same group, a number from 0, do not touch each other.

    The shapes of `cored` bodies have a core: a ball inside that touches planes alone.

    Raises:
        InputError: a shape cannot collide; the message names its body.
    """
    chosen = [i for i, (_, shape) in enumerate(shapes) if shape.role != "visual"]
    for i in chosen:
        _check(shapes[i][1], name(shapes[i][0]))
    bodies = sorted({shapes[i][0] for i in chosen})
    if len(bodies) > _MOST_BODIES:
        raise InputError(f"{len(bodies)} colliding bodies; MuJoCo's collider takes at most {_MOST_BODIES}")
    spec = mujoco.MjSpec()
    spec.option.ccd_tolerance = 1e-9
    spec.option.ccd_iterations = 100
    within: dict[int, list[int]] = {}
    for i in chosen:
        within.setdefault(shapes[i][0], []).append(i)
    writer = _Writer(spec, [shapes[i][1] for i in chosen], name)
    planes = {shapes[i][0] for i in chosen if shapes[i][1].kind == "plane"}
    # MuJoCo handles a body with one geom faster: cores and tiles have bodies of their own.
    parts = {b: [""] for b in bodies}
    for b in bodies:
        if planes and b in cored:
            parts[b].append(_CORES)
        if any(writer.tiled(shapes[i][1]) for i in within[b]):
            parts[b].append(_TILES)
    everything = sorted(((b, part) for b in bodies for part in parts[b]), key=lambda each: each[1])
    geoms: list[tuple[int, int, bool]] = []
    for b, part in everything:
        # The inertial frame is the body frame: MuJoCo's bounding volumes are relative to it.
        body = spec.worldbody.add_body(
            name=f"{part}{b}", explicitinertial=True, mass=1.0, ipos=[0, 0, 0], inertia=[1, 1, 1]
        )
        for i in within[b]:
            geoms += [(b, i, part == _CORES)] * writer.add(body, shapes[i][1], b, part)
    for a, b in sorted({(min(p), max(p)) for p in ignore}):
        for one, other in product(parts.get(a, ()), parts.get(b, ())):
            spec.add_exclude(bodyname1=f"{one}{a}", bodyname2=f"{other}{b}")
    moving = [False, *(b >= 0 and not static[b] for b, _ in everything)]
    # MuJoCo lists pairs with a fixed plane twice, in a list with room for all pairs of bodies: an empty body per fixed
    # plane makes it long enough.
    spare = [b for b in planes if b < 0 or static[b]]
    for _ in spare:
        spec.worldbody.add_body()
    return Scene(
        spec,
        body=np.array([-1, *(b for b, _ in everything), *(-1 for _ in spare)], dtype=np.int64),
        moving=np.array([*moving, *(False for _ in spare)], dtype=bool),
        weld=_welds([b for b, _ in everything], moving, len(spare), groups),
        geom_body=np.array([b for b, _, _ in geoms], dtype=np.int64),
        geom_shape=np.array([i for _, i, _ in geoms], dtype=np.int64),
        geom_core=np.array([core for _, _, core in geoms], dtype=bool),
        core=np.array(
            [False, *(part == _CORES for _, part in everything), *(False for _ in spare)], dtype=bool
        ),
    )


def _welds(
    bodies: list[int], moving: list[bool], spare: int, groups: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Per MuJoCo body the first moving one of its group."""
    out = np.arange(1 + len(bodies) + spare)
    first: dict[int, int] = {}
    for k, b in enumerate(bodies, start=1):
        group = int(groups[b]) if groups is not None and moving[k] else -1
        if group >= 0:
            out[k] = first.setdefault(group, k)
    return out


def compiled(scene: Scene, memory: int) -> mujoco.MjModel:
    """Compiled model with an arena of `memory` bytes, its bodies marked as moving or fixed."""
    scene.spec.memory = memory
    try:
        with quiet():
            model = scene.spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise InputError(f"MuJoCo cannot prepare these shapes for contact: {error}") from None
    # MuJoCo tests two bodies if they belong to different welds and at least one has degrees of freedom.
    model.body_weldid[:] = np.where(scene.moving, scene.weld, 0)
    model.body_dofnum[:] = np.where(scene.moving, 6, 0)
    model.geom_rbound[model.geom_type == _TYPE["plane"]] = (
        _ENDLESS  # or moving planes would be taken for points
    )
    return model


class quiet:
    """Context in which MuJoCo's warnings are dropped; otherwise they go to a file in the working directory."""

    def __enter__(self) -> None:
        self.before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(_ignore)

    def __exit__(self, *_: object) -> None:
        mujoco.set_mju_user_warning(self.before)


def _ignore(message: str) -> None:
    pass


# --- geoms


class _Writer:
    """Adds shapes to a MuJoCo model; equal meshes are added once."""

    def __init__(self, spec: mujoco.MjSpec, shapes: list[Shape], name: Callable[[int], str]):
        self.spec, self.name = spec, name
        cells = [_cell(shape) for shape in shapes if shape.kind == "height field"]
        self.cell = np.min(cells, axis=0) if cells else None
        self.bits = {self._bit(shape) for shape in shapes}
        self.meshes: dict[int, str] = {}
        self.fields = 0

    def add(self, body: mujoco.MjsBody, shape: Shape, owner: int, part: str) -> int:
        """Add a shape, or its core or tiles, to a MuJoCo body; returns the number of geoms added."""
        if part == _CORES:
            return self._add_core(body, shape)
        if shape.kind == "height field":
            return self._add_field(body, shape, part == _TILES)
        return 0 if part else self._add_solid(body, shape, owner)

    def tiled(self, shape: Shape) -> bool:
        """Whether a height field is added twice: in tiles for large shapes, whole for small ones."""
        return shape.kind == "height field" and self.bits >= {_SMALL, _LARGE} and not _little(shape)

    @staticmethod
    def _add_core(body: mujoco.MjsBody, shape: Shape) -> int:
        centre, radius = _core(shape)
        if radius > 0.0:
            body.add_geom(
                type=_TYPE["sphere"],
                size=[radius, 0, 0],
                pos=shape.pose[:3, :3] @ centre + shape.pose[:3, 3],
                contype=_CORE_BIT,
                conaffinity=0,
            )
        return int(radius > 0.0)

    def _add_field(self, body: mujoco.MjsBody, shape: Shape, tiles: bool) -> int:
        """Add a height field in tiles for large shapes and whole for small ones; once if all are of one kind."""
        both = self.tiled(shape)
        if tiles and not both:
            return 0
        whole = not tiles if both else _little(shape) or _LARGE not in self.bits
        bits = _SMALL | _LARGE if not both else _LARGE if tiles else _SMALL
        pieces = self._cut(shape, max(shape.heights.shape) if whole else _TILE)
        for asset, offset in pieces:
            body.add_geom(
                type=_TYPE[shape.kind],
                hfieldname=asset,
                pos=shape.pose[:3, 3] + shape.pose[:3, :3] @ offset,
                quat=_quaternion(shape),
                contype=0,
                conaffinity=bits,
            )
        return len(pieces)

    def _add_solid(self, body: mujoco.MjsBody, shape: Shape, owner: int) -> int:
        own: dict[str, Any] = {"meshname": self._hull(shape.mesh, owner)} if shape.mesh is not None else {}
        size = [0.0, 0.0, 1.0] if shape.kind == "plane" else shape.size
        if shape.kind == "plane":
            own["conaffinity"] = 1 | _CORE_BIT
        else:
            own["contype"] = 1 | self._bit(shape)
        body.add_geom(
            type=_TYPE[shape.kind], size=size, pos=shape.pose[:3, 3], quat=_quaternion(shape), **own
        )
        return 1

    def _hull(self, mesh: Mesh, owner: int) -> str:
        if id(mesh) not in self.meshes:
            corners = _hull(mesh.vertices, self.name(owner))
            self.meshes[id(mesh)] = name = str(len(self.meshes))
            added = self.spec.add_mesh(name=name, uservert=corners.ravel())
            added.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # accepts meshes of small volume
        return self.meshes[id(mesh)]

    def _bit(self, shape: Shape) -> int:
        """Collision bit of a shape: whole height fields or tiles; 0 without height fields."""
        if self.cell is None or shape.kind in ("plane", "height field"):
            return 0
        length, width = _footprint(shape)
        return _SMALL if (length / self.cell.min() + 2) * (width / self.cell.min() + 2) <= _FEW else _LARGE

    def _cut(self, shape: Shape, side: int) -> list[tuple[str, NDArray[np.float64]]]:
        """Height field in pieces of `side` x `side` cells: asset and offset of each."""
        heights, cell = shape.heights, _cell(shape)
        rows, columns = heights.shape
        half, bottom, tiles = np.array(shape.size[:2]), heights.min() - shape.size[2], []
        for r in range(0, rows - 1, side):
            for c in range(0, columns - 1, side):
                part = heights[r : r + side + 1, c : c + side + 1]
                low, rise = float(part.min()), float(np.ptp(part))
                extent = (np.array(part.shape[::-1]) - 1) * cell / 2
                name = f"field{self.fields}"
                self.fields += 1
                self.spec.add_hfield(
                    name=name,
                    nrow=part.shape[0],
                    ncol=part.shape[1],
                    size=[*extent, rise or 1.0, low - bottom],
                    userdata=((part - low) / (rise or 1.0)).ravel(),
                )
                centre = np.array([c, r]) * cell + extent - half
                tiles.append((name, np.array([*centre, low])))
        return tiles


def _quaternion(shape: Shape) -> NDArray[np.float64]:
    out = np.empty(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(shape.pose[:3, :3]).ravel())
    return out


def _little(field: Shape) -> bool:
    """Whether a height field is no larger than a tile."""
    return max(field.heights.shape) <= _TILE + 1


def _cell(field: Shape) -> NDArray[np.float64]:
    """Cell of a height field along x and y, m."""
    rows, columns = field.heights.shape
    return 2 * np.array(field.size[:2]) / (columns - 1, rows - 1)


def _footprint(shape: Shape) -> tuple[float, float]:
    """Largest length and width of a shape in any orientation, m."""
    if shape.kind == "mesh" and shape.mesh is not None:
        length = float(np.linalg.norm(np.ptp(shape.mesh.vertices, axis=0)))
    elif shape.kind in ("capsule", "cylinder"):
        return 2 * (shape.size[0] + shape.size[1]), 2 * shape.size[0]
    elif shape.kind == "sphere":
        length = 2 * shape.size[0]
    else:
        length = 2 * float(np.linalg.norm(shape.size))
    return length, length


def _core(shape: Shape) -> tuple[NDArray[np.float64], float]:
    """Centre and radius of a shape's core, in its frame; radius 0 for none."""
    if shape.kind in ("plane", "height field"):
        return np.zeros(3), 0.0
    if shape.kind == "sphere":
        return np.zeros(3), shape.size[0]
    if shape.mesh is None:
        return np.zeros(3), _CORE * half_thicknesses([shape])[0]
    from scipy.spatial import ConvexHull

    hull = ConvexHull(shape.mesh.vertices)
    centre = shape.mesh.vertices[hull.vertices].mean(axis=0)
    return centre, _CORE * float(-(hull.equations[:, :3] @ centre + hull.equations[:, 3]).max())


def _check(shape: Shape, owner: str) -> None:
    if shape.kind not in KINDS:
        raise InputError(
            f"body '{owner}': a shape of unknown kind {brief(shape.kind)}; make it with pliant.shapes"
        )
    needed = shape.size[: _SIZES.get(shape.kind, 0)]
    if not all(np.isfinite(shape.size)) or any(v <= 0 for v in needed):
        raise InputError(
            f"body '{owner}': a {shape.kind} of size {tuple(needed) or shape.size} cannot touch anything; "
            "give it a positive, finite size, or leave it out of contact with shape.with_role('visual')"
        )
    if not np.isfinite(shape.pose).all():
        raise InputError(f"body '{owner}': the pose of a {shape.kind} is not finite")
    if (shape.kind in ("mesh", "height field")) != (shape.mesh is not None):
        raise InputError(f"body '{owner}': a {shape.kind} with the wrong data; make it with pliant.shapes")
    if shape.kind == "height field" and min(shape.heights.shape) < 2:
        raise InputError(
            f"body '{owner}': a height field of {shape.heights.shape} heights; it needs 2 rows and 2 columns or more"
        )


def _hull(vertices: NDArray[np.float64], owner: str) -> NDArray[np.float64]:
    """Vertices of the convex hull."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        if len(vertices) < 4:
            raise ValueError
        corners = vertices[np.sort(ConvexHull(vertices).vertices)]
        thickness = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
        if thickness[2] < _FLAT * thickness[0]:
            raise ValueError
    except (QhullError, ValueError):
        raise InputError(
            f"body '{owner}': the hull of a mesh has no volume, so it cannot touch anything; give it thickness "
            "(a thin box, say), or leave it out of contact with shape.with_role('visual')"
        ) from None
    return corners
