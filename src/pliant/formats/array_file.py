"""pliant's own file for large mechanisms: an archive of arrays (`.npz`), lossless, and a tenth of the time of JSON.

The same columns as in the JSON file, each an array: `bodies.mass`, `joints.parent`, ... Names are bytes of one text,
each followed by a line feed. Poses are the upper three rows of their matrix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FormatError
from pliant.formats.archive import Arrays, read_archive, require, write_archive
from pliant.formats.columns import FORMAT, MESH, SECTIONS, checked_mesh, get_column, make_mechanism, poses
from pliant.mechanism import Mechanism
from pliant.text import brief

__all__ = ["read", "write"]

VERSION = 1
_EFFECTORS = "end_effectors"
_LIMITS = ("dofs.lower", "dofs.upper")  # may be infinite
_HINT = (
    "holds no mechanism: `Mechanism.save` writes such files; `ReducedModel.load`, `BlendedModel.load` and "
    "`Trajectory.load` read models and trajectories"
)


def write(mechanism: Mechanism, path: Path) -> None:
    """Write a mechanism.

    Raises:
        FormatError: the file cannot be written.
    """
    arrays: Arrays = {_EFFECTORS: _text(mechanism.end_effectors)}
    for section, columns in SECTIONS.items():
        for key, (attribute, kind) in columns.items():
            value = get_column(mechanism, attribute)
            if kind == "s":
                value = _text(value)
            elif kind == "f12":
                value = value[:, :3]
            arrays[f"{section}.{key}"] = value
    meshes = mechanism.shape_table.meshes
    for i, mesh in enumerate(meshes):
        arrays[f"meshes[{i}].vertices"] = mesh.vertices
        arrays[f"meshes[{i}].faces"] = mesh.faces.astype(np.int64)
    about = {"format": FORMAT, "version": VERSION, "name": mechanism.name, "meshes": len(meshes)}
    write_archive(path, about, arrays)


def _text(names: tuple[str, ...]) -> NDArray[np.uint8]:
    """Names as bytes."""
    return np.frombuffer("".join([f"{name}\n" for name in names]).encode(), dtype=np.uint8)


def read(path: Path) -> Mechanism:
    """A mechanism from a file.

    Raises:
        FormatError: it is no such file, or is damaged; the message names the array.
        MechanismError: what it describes is not sound.
    """
    about, arrays = read_archive(path, {FORMAT: VERSION}, _HINT, "mechanism", integers=True, infinite=_LIMITS)
    if not isinstance(about.get("name"), str):
        raise FormatError(f"'{path}': name: a string expected")
    count = about.get("meshes")
    if type(count) is not int or not 0 <= count <= len(arrays):
        raise FormatError(f"'{path}': meshes: their number expected, not {brief(count)}")
    kinds = {f"{s}.{key}": kind for s, columns in SECTIONS.items() for key, (_, kind) in columns.items()}
    kinds |= {f"meshes[{i}].{key}": kind for i in range(count) for key, kind in MESH.items()}
    kinds[_EFFECTORS] = "s"
    require(arrays, kinds, path)
    for name in arrays.keys() - kinds.keys() - {"about"}:
        raise FormatError(f"'{path}': unknown array '{name:.80}'")
    texts: dict[bytes, tuple[str, ...]] = {}
    found = {
        name: _column(arrays.pop(name), kind, f"'{path}': {name}", texts) for name, kind in kinds.items()
    }
    fields: dict[str, Any] = {"name": about["name"], _EFFECTORS: found[_EFFECTORS]}
    for section, columns in SECTIONS.items():
        for key, (attribute, _) in columns.items():
            fields[attribute] = found.pop(f"{section}.{key}")
    meshes = [
        checked_mesh(found[f"meshes[{i}].vertices"], found[f"meshes[{i}].faces"], f"'{path}': meshes[{i}]")
        for i in range(count)
    ]
    del found
    return make_mechanism(fields, meshes, path)


def _column(array: NDArray[Any], kind: str, where: str, texts: dict[bytes, tuple[str, ...]]) -> Any:
    """One column. Equal lists of names become the same tuple, kept in `texts`."""
    dtype = {"s": np.uint8, "i": np.int64}.get(kind[0], np.float64)
    shape = {"1": (), "9": (3, 3), "12": (3, 4)}.get(kind[1:] or "1", (int(kind[1:] or 1),))
    if array.dtype != dtype or array.ndim != 1 + len(shape) or array.shape[1:] != shape:
        expected = f"{np.dtype(dtype)} of shape (n{''.join(f', {n}' for n in shape)})"
        raise FormatError(f"{where}: {expected} expected, not {array.dtype} of shape {array.shape}")
    if kind == "s":
        data = array.tobytes()
        if data not in texts:
            try:
                names = data.decode()
            except UnicodeDecodeError:
                raise FormatError(f"{where}: not UTF-8 text") from None
            if names and not names.endswith("\n"):
                raise FormatError(f"{where}: the last name is cut short")
            texts[data] = tuple(names.split("\n")[:-1])
        return texts[data]
    array = poses(array) if kind == "f12" else array
    array.flags.writeable = False  # the mechanism need not copy it
    return array
