"""pliant's own file: a mechanism as versioned JSON, lossless to the last bit.

Columns rather than records: one list per attribute, one attribute per line. A float is written with as many digits
as it takes to read the same float back; an infinite limit is null. Poses are the upper three rows of their matrix.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant.errors import FormatError
from pliant.formats.columns import FORMAT, MESH, SECTIONS, checked_mesh, get_column, make_mechanism, poses
from pliant.mechanism import Mechanism

__all__ = ["VERSION", "check_version", "pieces", "read"]

VERSION = 1


# --- writing


def pieces(m: Mechanism) -> Iterator[str]:
    """The content of a file, piece by piece."""
    yield f'{{"format": "{FORMAT}", "version": {VERSION},\n"name": {json.dumps(m.name)}'
    for section, columns in SECTIONS.items():
        yield f',\n"{section}": {{'
        for i, (key, (attribute, kind)) in enumerate(columns.items()):
            yield f'{"," if i else ""}\n  "{key}": {_column(get_column(m, attribute), kind)}'
        yield "\n}"
    yield ',\n"meshes": ['
    for i, mesh in enumerate(m.shape_table.meshes):
        vertices, faces = _column(mesh.vertices, "f3"), _column(mesh.faces, "i3")
        yield f'{"," if i else ""}\n  {{"vertices": {vertices},\n   "faces": {faces}}}'
    yield f'],\n"end_effectors": {json.dumps(m.end_effectors)}\n}}\n'


def _column(value: Any, kind: str) -> str:
    if kind == "s":
        return json.dumps(value)
    if kind == "l":
        return json.dumps([v if np.isfinite(v) else None for v in value.tolist()])
    if kind == "f12":
        value = value[:, :3]
    if len(kind) > 1:
        value = value.reshape(-1, int(kind[1:]))
    return json.dumps(value.tolist(), separators=(",", ":") if len(kind) > 1 else None, allow_nan=False)


# --- reading


def read(data: bytes, path: Path) -> Mechanism:
    """A mechanism from the content of a file.

    Raises:
        FormatError: it is not a pliant file, or is damaged; the message names the key.
        MechanismError: it is, but what it describes is not sound.
    """
    document = _parse(data, path)
    if document.get("format") != FORMAT:
        raise FormatError(f'\'{path}\' is JSON but no pliant mechanism: "format" is not "{FORMAT}"')
    check_version(document.get("version"), VERSION, path)
    _keys(document, {"format", "version", "name", "meshes", "end_effectors", *SECTIONS}, "", path)
    if not isinstance(document["name"], str):
        raise FormatError(f"'{path}': name: a string expected")
    fields: dict[str, Any] = {"name": document["name"]}
    for section, columns in SECTIONS.items():
        given = document[section]
        _keys(given, set(columns), section, path)
        for key, (attribute, kind) in columns.items():
            fields[attribute] = _values(given[key], kind, f"'{path}': {section}.{key}", attribute)
    fields["end_effectors"] = _values(document["end_effectors"], "s", f"'{path}': end_effectors", "")
    return make_mechanism(fields, _meshes(document["meshes"], path), path)


def check_version(version: Any, newest: int, path: Path) -> None:
    """Refuse the file of a newer pliant.

    Raises:
        FormatError: `version` is not one up to `newest`.
    """
    if type(version) is not int or version < 1:
        raise FormatError(f"'{path}': version: a whole number from 1 expected, not {version!r:.100}")
    if version > newest:
        raise FormatError(
            f"'{path}' was written by a newer pliant (file version {version}, this one reads up to {newest}): "
            "update pliant"
        )


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    def constant(word: str) -> float:
        raise FormatError(f"'{path}': {word} is not a JSON number")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            keys = [key for key, _ in items]
            double = next(key for key in keys if keys.count(key) > 1)
            raise FormatError(f"'{path}': the key '{double}' appears twice")
        return found

    try:
        document = json.loads(data.decode("utf-8-sig"), parse_constant=constant, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"'{path}', line {error.lineno}: not JSON ({error.msg}); the file may be cut short"
        ) from None
    except UnicodeDecodeError:
        raise FormatError(f"'{path}' is not UTF-8 text") from None
    except RecursionError:
        raise FormatError(f"'{path}' is nested too deep") from None
    except FormatError:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise FormatError(f"'{path}': {error}") from None
    if not isinstance(document, dict):
        raise FormatError(f"'{path}': a JSON object expected")
    return document


def _keys(given: Any, expected: set[str], section: str, path: Path) -> None:
    where = f"'{path}': {section or 'file'}"
    if not isinstance(given, dict):
        raise FormatError(f"{where}: an object expected")
    for key in given:
        if key not in expected:
            raise FormatError(f"{where}: unknown key {key!r:.100}")
    missing = sorted(expected - given.keys())
    if missing:
        raise FormatError(f"{where}: '{missing[0]}' is missing")


def _values(value: Any, kind: str, where: str, attribute: str) -> Any:
    """One column, checked entry by entry: numpy would take True for 1 and "1" for 1."""
    if not isinstance(value, list):
        raise FormatError(f"{where}: a list expected")
    width = int(kind[1:] or 1)
    if len(kind) > 1:
        if set(map(type, value)) - {list} or set(map(len, value)) - {width}:
            raise FormatError(f"{where}: lists of {width} numbers expected")
        value = list(chain.from_iterable(value))
    allowed = {"s": {str}, "i": {int}, "f": {float, int}, "l": {float, int, type(None)}}[kind[0]]
    if set(map(type, value)) - allowed:
        what = {"s": "strings", "i": "whole numbers", "f": "numbers", "l": "numbers or null"}[kind[0]]
        raise FormatError(f"{where}: only {what} expected")
    if kind == "s":
        return tuple(value)
    if kind == "l":
        infinite = -np.inf if attribute == "lower" else np.inf
        value = [infinite if v is None else v for v in value]
    try:
        array = np.array(value, dtype=np.int64 if kind[0] == "i" else np.float64)
    except OverflowError:
        raise FormatError(f"{where}: a number is too large") from None
    if width == 12:
        return poses(array.astype(np.float64, copy=False).reshape(-1, 3, 4))
    if width == 9:
        return array.reshape(-1, 3, 3)
    return array.reshape(-1, width) if len(kind) > 1 else array


def _meshes(given: Any, path: Path) -> tuple[shapes_module.Mesh, ...]:
    where = f"'{path}': meshes"
    if not isinstance(given, list):
        raise FormatError(f"{where}: a list expected")
    meshes = []
    for i, mesh in enumerate(given):
        _keys(mesh, set(MESH), f"meshes[{i}]", path)
        columns: dict[str, NDArray[Any]] = {
            key: _values(mesh[key], kind, f"{where}[{i}].{key}", "") for key, kind in MESH.items()
        }
        meshes.append(checked_mesh(columns["vertices"], columns["faces"], f"{where}[{i}]"))
    return tuple(meshes)
