"""Shapes of bodies: what is drawn, what gives a body its default inertia, what touches.

>>> import pliant
>>> ball = pliant.shapes.sphere(0.03)
>>> rod = pliant.shapes.capsule(0.01, 0.2, position=(0.1, 0, 0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.errors import InputError
from pliant.text import brief

__all__ = [
    "KINDS",
    "ROLES",
    "Mesh",
    "Shape",
    "box",
    "capsule",
    "cylinder",
    "ellipsoid",
    "height_field",
    "mesh",
    "plane",
    "rod",
    "sphere",
]

# The position in this tuple is the number stored in a mechanism's arrays and files: append only.
KINDS = ("sphere", "box", "capsule", "cylinder", "ellipsoid", "plane", "mesh", "height field")
ROLES = ("both", "visual", "collision")  # likewise
_HUGE = 1e100  # no shape is larger
_GREY = (0.6, 0.62, 0.66, 1.0)
_IDENTITY = np.eye(4)
_IDENTITY.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh: vertices (n, 3) and faces (m, 3) of vertex indices."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Shape:
    """One shape in the frame of its body.

    Attributes:
        kind: one of `KINDS`.
        size: sphere (r, 0, 0); box half extents; capsule and cylinder (r, half length, 0) along z;
            ellipsoid semi-axes; plane half extents (0: infinite), normal z; mesh (0, 0, 0); height field half
            extents and the depth of the ground below its lowest point.
        pose: 4 x 4, body frame.
        rgba: colour.
        mesh: the triangles, for kinds "mesh" and "height field".
        role: "visual" is only drawn, "collision" only touches, "both" does both.
    """

    kind: str
    size: tuple[float, float, float]
    pose: NDArray[np.float64] = field(default_factory=lambda: _IDENTITY)
    rgba: tuple[float, float, float, float] = _GREY
    mesh: Mesh | None = None
    role: str = "both"

    def with_role(self, role: str) -> Shape:
        """The same shape, only drawn ("visual"), only touching ("collision"), or both."""
        if role not in ROLES:
            raise InputError(f"a shape's role is one of {', '.join(ROLES)}, not {brief(role)}")
        return replace(self, role=role)

    @property
    def heights(self) -> NDArray[np.float64]:
        """The heights (rows, columns) of a height field; rows follow y, columns x."""
        if self.kind != "height field" or self.mesh is None:
            raise InputError(f"a {self.kind} has no heights")
        _, y, z = self.mesh.vertices.T
        # Vertices lie row by row.
        columns = int((y == y[0]).sum()) if len(y) else 1
        if len(z) % columns:
            raise InputError("height field: its vertices form no grid")
        return z.reshape(-1, columns)

    def mass_properties(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Volume, centroid (3,) and the second moment about it divided by volume (3 x 3), body frame."""
        a, b, c = self.size
        if self.kind == "sphere":
            volume, unit = 4 / 3 * np.pi * a**3, np.full(3, 0.4 * a * a)
        elif self.kind == "box":
            volume, unit = 8 * a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 3
        elif self.kind == "ellipsoid":
            volume, unit = (
                4 / 3 * np.pi * a * b * c,
                np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 5,
            )
        elif self.kind == "cylinder":
            volume = 2 * np.pi * a * a * b
            side = a * a / 4 + b * b / 3
            unit = np.array([side, side, a * a / 2])
        elif self.kind == "capsule":
            # A cylinder and two hemispheres, whose centroids lie 3/8 r beyond the cylinder's ends.
            tube, cap = 2 * np.pi * a * a * b, 4 / 3 * np.pi * a**3
            volume = tube + cap
            side = tube * (a * a / 4 + b * b / 3) + cap * (0.4 * a * a + b * b + 0.75 * a * b)
            unit = np.array([side, side, tube * a * a / 2 + cap * 0.4 * a * a]) / volume
        elif self.kind == "mesh":
            return self._mesh_properties()
        else:
            raise InputError(f"a {self.kind} has no volume: give the body its mass properties explicitly")
        rotation = self.pose[:3, :3]
        return float(volume), self.pose[:3, 3].copy(), rotation @ np.diag(unit) @ rotation.T

    def _mesh_properties(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        assert self.mesh is not None
        corners = spatial.transform_points(self.pose, self.mesh.vertices)[self.mesh.faces]
        origin = corners.reshape(-1, 3).mean(axis=0)
        a, b, c = np.moveaxis(corners - origin, 1, 0)
        # Signed tetrahedra over the faces; orientation errors cancel in the absolute total only if
        # consistent.
        signed = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
        volume = float(signed.sum())
        if abs(volume) < 1e-18:
            raise InputError("the mesh encloses no volume: give the body its mass properties explicitly")
        centre = np.einsum("i,ij->j", signed, (a + b + c) / 4) / volume
        total = a + b + c
        second = np.einsum("i,ij,ik->jk", signed, total, total)
        for corner in (a, b, c):
            second += np.einsum("i,ij,ik->jk", signed, corner, corner)
        second = second / 20 / volume - np.outer(centre, centre)
        return abs(volume), origin + centre, np.trace(second) * np.eye(3) - second


def _make(
    kind: str,
    size: Any,
    position: ArrayLike,
    orientation: ArrayLike | None,
    rgba: Sequence[float],
    triangles: Mesh | None = None,
) -> Shape:
    try:
        values = tuple(float(v) for v in size)
        colour = tuple(float(v) for v in rgba)
        pose = spatial.pose(position, orientation)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{kind}: size, position, orientation and colour must be numbers ({error})"
        ) from None
    needed = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "height field": 3}.get(
        kind, 0
    )
    if not all(0 <= v < _HUGE for v in values) or any(v == 0 for v in values[:needed]):
        raise InputError(f"{kind}: sizes must be positive and finite, not {values[: max(needed, 1)]}")
    if len(colour) != 4 or not all(0 <= v <= 1 for v in colour):
        raise InputError(f"{kind}: a colour is four numbers from 0 to 1, not {colour}")
    if not np.all(np.isfinite(pose)):
        raise InputError(f"{kind}: position and orientation must be finite")
    pose.flags.writeable = False
    return Shape(kind, values, pose, colour, triangles)  # type: ignore[arg-type]


def _three(value: Any, rule: str) -> NDArray[np.float64]:
    """Three numbers; the rule is what the message says."""
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        out = np.zeros(0)
    if out.shape != (3,):
        raise InputError(f"{rule}, not {brief(value)}")
    return out


def sphere(radius: float, *, position: ArrayLike = (0, 0, 0), rgba: Sequence[float] = _GREY) -> Shape:
    """A sphere."""
    return _make("sphere", (radius, 0, 0), position, None, rgba)


def box(
    half_extents: ArrayLike,
    *,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """A box of the given half extents (x, y, z)."""
    return _make(
        "box", _three(half_extents, "box: half_extents are three numbers"), position, orientation, rgba
    )


def capsule(
    radius: float,
    half_length: float,
    *,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """A capsule along its z axis: a cylinder of 2 `half_length` closed by hemispheres."""
    return _make("capsule", (radius, half_length, 0), position, orientation, rgba)


def cylinder(
    radius: float,
    half_length: float,
    *,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """A cylinder along its z axis, of length 2 `half_length`."""
    return _make("cylinder", (radius, half_length, 0), position, orientation, rgba)


def ellipsoid(
    semi_axes: ArrayLike,
    *,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """An ellipsoid."""
    return _make(
        "ellipsoid", _three(semi_axes, "ellipsoid: semi_axes are three numbers"), position, orientation, rgba
    )


def plane(
    half_x: float = 0.0,
    half_y: float = 0.0,
    *,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """A plane with normal z; a zero half extent means infinite. It has no mass of its own."""
    return _make("plane", (half_x, half_y, 0), position, orientation, rgba)


def mesh(
    vertices: ArrayLike,
    faces: ArrayLike,
    *,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """A triangle mesh."""
    try:
        points = np.ascontiguousarray(vertices, dtype=np.float64)
        triangles = np.ascontiguousarray(faces, dtype=np.int32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"mesh: vertices and faces must be arrays of numbers ({error})") from None
    if points.ndim != 2 or points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
        raise InputError(
            f"mesh: vertices (n, 3) and faces (m, 3) expected, got {points.shape} and {triangles.shape}"
        )
    if not np.all(np.isfinite(points)):
        raise InputError("mesh: vertices must be finite")
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(points)):
        raise InputError("mesh: a face refers to a vertex that is not there")
    points.flags.writeable = False
    triangles.flags.writeable = False
    return _make("mesh", (0, 0, 0), position, orientation, rgba, Mesh(points, triangles))


def height_field(
    heights: ArrayLike,
    size: Sequence[float],
    *,
    depth: float | None = None,
    position: ArrayLike = (0, 0, 0),
    orientation: ArrayLike | None = None,
    rgba: Sequence[float] = _GREY,
) -> Shape:
    """Ground of varying height, on a regular grid. It has no mass of its own.

    Args:
        heights: (rows, columns), along z; rows follow y and columns x, from the lowest coordinate to the highest.
        size: half extents along x and y.
        depth: how far the solid ground reaches below the lowest height; the larger half extent if None.
    """
    try:
        z = np.ascontiguousarray(heights, dtype=np.float64)
        half_x, half_y = (float(v) for v in size)
        depth = max(half_x, half_y) if depth is None else float(depth)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"height field: heights (rows, columns), two half extents and a depth expected ({error})"
        ) from None
    if z.ndim != 2 or min(z.shape) < 2:
        raise InputError(f"height field: at least 2 rows and 2 columns of heights needed, got {z.shape}")
    if not np.all(np.isfinite(z)):
        raise InputError("height field: heights must be finite")
    flat = _make("height field", (half_x, half_y, depth), position, orientation, rgba)
    return replace(flat, mesh=height_field_mesh(z, half_x, half_y))


def height_field_mesh(heights: NDArray[np.float64], half_x: float, half_y: float) -> Mesh:
    """The surface of a height field: vertices row by row, every cell cut along the same diagonal."""
    rows, columns = heights.shape
    x, y = np.meshgrid(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows))
    vertices = np.column_stack([x.ravel(), y.ravel(), heights.ravel()])
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    # MuJoCo cuts along (0, 0) - (1, 1) of a cell too.
    right, up = corner + 1, corner + columns
    halves = [np.column_stack([corner, right, up + 1]), np.column_stack([corner, up + 1, up])]
    faces = np.concatenate(halves).astype(np.int32)
    vertices.flags.writeable = faces.flags.writeable = False
    return Mesh(vertices, faces)


def rod(start: ArrayLike, end: ArrayLike, radius: float, *, rgba: Sequence[float] = _GREY) -> Shape:
    """A capsule from one point of the body to another: the usual look of a link."""
    a, b = (_three(point, "rod: start and end are points (x, y, z)") for point in (start, end))
    length = float(np.linalg.norm(b - a))
    if not np.isfinite(length) or length == 0:
        raise InputError(f"rod: start {a} and end {b} must be two different finite points")
    z = (b - a) / length
    # Any roll about the rod will do: take x from the world axis the rod is least along.
    y = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    y /= np.linalg.norm(y)
    orientation = np.column_stack([np.cross(y, z), y, z])
    return capsule(radius, length / 2, position=(a + b) / 2, orientation=orientation, rgba=rgba)
