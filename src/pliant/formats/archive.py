"""Archives of arrays: `.npz` files without pickle, with a JSON description `about`; checked in full when read."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FormatError
from pliant.files import as_path, read_bytes, replacing
from pliant.formats.json_file import check_version, pieces
from pliant.mechanism import Mechanism

__all__ = ["Arrays", "mechanism_bytes", "read_archive", "require", "write_archive"]

Arrays = dict[str, NDArray[Any]]

_LIMIT = 4_000_000_000  # bytes
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def mechanism_bytes(mechanism: Mechanism) -> NDArray[np.uint8]:
    """The JSON text of a mechanism as an array of bytes."""
    return np.frombuffer("".join(pieces(mechanism)).encode(), dtype=np.uint8)


def write_archive(
    path: str | os.PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and their description, `format` and `version` included; the file appears complete or not at all.

    Raises:
        FormatError: it cannot be written.
    """
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    with replacing(as_path(path)) as file:
        np.savez(file, allow_pickle=False, **arrays, about=text)


def read_archive(
    path: Path, versions: Mapping[str, int], hint: str, kind: str = "model"
) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a file: bytes and finite floats only, none larger than the file.

    Args:
        path: the file.
        versions: the newest known version of every format that is accepted.
        hint: message about a file of another format.
        kind: noun for the content, in messages.

    Raises:
        FormatError: the file is of another format or of a newer version, or is damaged.
    """
    arrays = _read_arrays(path, kind)
    try:
        about = json.loads(arrays["about"].tobytes())
        newest = versions[about["format"]]
    except (KeyError, ValueError, TypeError, RecursionError):
        raise FormatError(f"'{path}' {hint}") from None
    check_version(about.get("version"), newest, path)
    return about, arrays


def require(arrays: Mapping[str, Any], names: Iterable[str], path: Path) -> None:
    """Refuse a file in which an array is missing."""
    for name in sorted(set(names) - arrays.keys()):
        raise FormatError(f"'{path}': array '{name}' is missing: the file is damaged")


def _read_arrays(path: Path, kind: str) -> Arrays:
    data = read_bytes(path, _LIMIT)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise FormatError(f"'{path}' is packed in a way pliant does not write")
            contents = {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"'{path}' is no {kind} file, or is damaged: {error}") from None
    return {
        name.removesuffix(".npy"): _array(content, f"'{path}': {name}", kind)
        for name, content in contents.items()
    }


def _array(content: bytes, where: str, kind: str) -> NDArray[Any]:
    """Array from the bytes of a `.npy` file."""
    stream = io.BytesIO(content)
    try:
        header = _HEADERS[np.lib.format.read_magic(stream)]
        shape, fortran, dtype = header(stream)
    except (ValueError, KeyError, EOFError, SyntaxError, TypeError) as error:
        raise FormatError(f"{where}: not an array, or damaged: {error}") from None
    data = content[stream.tell() :]
    count = math.prod(map(int, shape))
    if dtype not in (np.dtype("<f8"), np.dtype("u1")) or count < 0 or count * dtype.itemsize != len(data):
        raise FormatError(f"{where}: damaged, or of a kind no {kind} has")
    array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy()
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise FormatError(f"{where}: not all numbers are finite")
    return array
