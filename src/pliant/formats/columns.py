"""Columns of a mechanism as pliant's own files hold them, and the mechanism made from such columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant.errors import FormatError, MechanismError
from pliant.mechanism import Mechanism, Rows, ShapeTable

__all__ = ["FORMAT", "MESH", "SECTIONS", "checked_mesh", "get_column", "make_mechanism", "poses"]

FORMAT = "pliant-mechanism"  # JSON and archives alike

# Section -> key in the file -> (attribute, type). Types: s string, i integer, f float, l float or null for infinite;
# with a width, a list per entry.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "bodies": {"name": ("body_names", "s"), "mass": ("mass", "f"), "com": ("com", "f3"), "inertia": ("inertia", "f9"),
               "pose": ("reference_poses", "f12")},
    "joints": {"name": ("joint_names", "s"), "type": ("joint_types", "s"), "parent": ("joint_parents", "i"),
               "child": ("joint_children", "i"), "parent_frame": ("parent_frames", "f12"),
               "child_frame": ("child_frames", "f12")},
    "primitives": {"joint": ("primitive_joint", "i"), "kind": ("primitive_kind", "i"), "axis": ("primitive_axis", "f3"),
                   "anchor": ("primitive_anchor", "f3")},
    "dofs": {"name": ("dof_names", "s"), "stiffness": ("stiffness", "f"), "damping": ("damping", "f"),
             "armature": ("armature", "f"), "lower": ("lower", "l"), "upper": ("upper", "l")},
    "coordinates": {"rest": ("rest", "f"), "reference": ("reference", "f")},
    "couplings": {"name": ("coupling_names", "s"), "start": ("couplings.start", "i"), "dof": ("couplings.dof", "i"),
                  "coefficient": ("couplings.coefficient", "f"), "offset": ("coupling_offset", "f")},
    "tendons": {"name": ("tendon_names", "s"), "start": ("tendons.start", "i"), "dof": ("tendons.dof", "i"),
                "coefficient": ("tendons.coefficient", "f"), "stiffness": ("tendon_stiffness", "f"),
                "damping": ("tendon_damping", "f"), "rest": ("tendon_rest", "f")},
    "shapes": {key: (f"shape_table.{key}", kind) for key, kind in
               (("body", "i"), ("kind", "i"), ("size", "f3"), ("pose", "f12"), ("rgba", "f4"), ("mesh", "i"),
                ("role", "i"))},
}  # fmt: skip
MESH = {"vertices": "f3", "faces": "i3"}


def get_column(m: Mechanism, attribute: str) -> Any:
    """A column of a mechanism, by the name of its attribute."""
    value: Any = m
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


def poses(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Poses (n, 4, 4) from their upper three rows, (n, 3, 4)."""
    out = np.zeros((len(rows), 4, 4))
    out[:, :3] = rows
    out[:, 3, 3] = 1.0
    return out


def checked_mesh(vertices: NDArray[np.float64], faces: NDArray[np.int64], where: str) -> shapes_module.Mesh:
    """A mesh from a file.

    Raises:
        FormatError: a vertex is not finite, or a face refers to one that is not there.
    """
    if not np.isfinite(vertices).all():
        raise FormatError(f"{where}.vertices: only finite numbers expected")
    if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise FormatError(f"{where}.faces: a face refers to a vertex that is not there")
    corners = faces.astype(np.int32)
    vertices.flags.writeable = corners.flags.writeable = False
    return shapes_module.Mesh(vertices, corners)


def make_mechanism(fields: dict[str, Any], meshes: Sequence[shapes_module.Mesh], path: Path) -> Mechanism:
    """The mechanism of the columns in a file, by attribute; the name and the end effectors are among them.

    Raises:
        MechanismError: it is not sound.
    """
    parts: dict[str, dict[str, Any]] = {"couplings": {}, "tendons": {}, "shape_table": {}}
    whole: dict[str, Any] = {}
    for attribute, value in fields.items():
        owner, _, name = attribute.rpartition(".")
        (parts[owner] if owner else whole)[name] = value
    try:
        return Mechanism(
            **whole,
            couplings=Rows(**parts["couplings"]),
            tendons=Rows(**parts["tendons"]),
            shape_table=ShapeTable(**parts["shape_table"], meshes=tuple(meshes)),
        )
    except MechanismError as error:
        raise type(error)(f"'{path}': {error}") from None
