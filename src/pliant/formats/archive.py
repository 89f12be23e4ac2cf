"""Archives of arrays: `.npz` files without pickle, with a JSON description `about`; checked in full when read."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FormatError
from pliant.files import as_path, check_file, replacing
from pliant.formats.json_file import check_version, pieces
from pliant.mechanism import Mechanism

__all__ = [
    "Arrays",
    "is_archive",
    "mechanism_bytes",
    "read_archive",
    "read_format",
    "require",
    "write_archive",
]

Arrays = dict[str, NDArray[Any]]

_LIMIT = 4_000_000_000  # bytes
_TYPES = (np.dtype("<f8"), np.dtype("<i8"), np.dtype("u1"))
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


def is_archive(path: Path) -> bool:
    """Whether a file starts as archives do; False if it cannot be read."""
    try:
        if not path.is_file():  # opening a pipe would wait for a writer
            return False
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def read_format(path: Path) -> str | None:
    """Format that an archive says it has; None if it does not say."""
    try:
        with _entries(path, "archive") as entries:
            about = _description(entries)
    except FormatError:
        return None
    return None if about is None else about["format"]


def read_archive(
    path: Path,
    versions: Mapping[str, int],
    hint: str,
    kind: str = "model",
    *,
    integers: bool = False,
    infinite: Sequence[str] = (),
) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a file: bytes and finite floats only, together no larger than the file.

    Args:
        path: the file.
        versions: the newest known version of every format that is accepted.
        hint: message about a file of another format.
        kind: noun for the content, in messages.
        integers: whether arrays may hold integers, too.
        infinite: arrays whose numbers may be infinite, or NaN.

    Raises:
        FormatError: the file is of another format or of a newer version, or is damaged.
    """
    arrays = Arrays()
    with _entries(path, kind) as entries:
        about = _description(entries)
        if about is None or about.get("format") not in versions:
            raise FormatError(f"'{path}' {hint}")
        check_version(about.get("version"), versions[about["format"]], path)
        for name, read in entries.items():
            array, label = read(), name.removesuffix(".npy")
            if array.dtype == np.int64 and not integers:
                raise FormatError(f"'{path}': {name}: damaged, or of a kind no {kind} has")
            if array.dtype.kind == "f" and label not in infinite and not np.isfinite(array).all():
                raise FormatError(f"'{path}': {name}: not all numbers are finite")
            arrays[label] = array
    return about, arrays


def _description(entries: Mapping[str, Callable[[], NDArray[Any]]]) -> dict[str, Any] | None:
    """Description of the content, with its format; None if there is none."""
    try:
        about = json.loads(entries["about.npy"]().tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        return None
    return about if isinstance(about, dict) and isinstance(about.get("format"), str) else None


def require(arrays: Mapping[str, Any], names: Iterable[str], path: Path) -> None:
    """Refuse a file in which an array is missing."""
    for name in sorted(set(names) - arrays.keys()):
        raise FormatError(f"'{path}': array '{name}' is missing: the file is damaged")


@contextmanager
def _entries(path: Path, kind: str) -> Iterator[dict[str, Callable[[], NDArray[Any]]]]:
    """Entries of an archive by file name, each a function that reads its array."""
    check_file(path, _LIMIT)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise FormatError(f"'{path}' is packed in a way pliant does not write")
            if sum(entry.file_size for entry in entries) > path.stat().st_size:
                raise FormatError(f"'{path}' is damaged: its entries are larger than the file")
            yield {
                entry.filename: lambda entry=entry: _array(
                    archive.read(entry), f"'{path}': {entry.filename}", kind
                )
                for entry in entries
            }
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"'{path}' is no {kind} file, or is damaged: {error}") from None


def _array(content: bytes, where: str, kind: str) -> NDArray[Any]:
    """Array from the bytes of a `.npy` file."""
    stream = io.BytesIO(content)
    try:
        header = _HEADERS[np.lib.format.read_magic(stream)]
        shape, fortran, dtype = header(stream)
    except (ValueError, KeyError, EOFError, SyntaxError, TypeError) as error:
        raise FormatError(f"{where}: not an array, or damaged: {error}") from None
    start, count = stream.tell(), math.prod(map(int, shape))
    if dtype not in _TYPES or count < 0 or count * dtype.itemsize != len(content) - start:
        raise FormatError(f"{where}: damaged, or of a kind no {kind} has")
    array = np.frombuffer(content, dtype=dtype, offset=start)
    return array.reshape(shape, order="F" if fortran else "C").copy()
