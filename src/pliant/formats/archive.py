"""Archives of arrays: `.npz` files without pickle, with a JSON description `about`; checked in full when read."""

from __future__ import annotations

import json
import math
import os
import re
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
_DIMENSIONS = 8  # most of an array
_LOCAL_HEADER = 30  # bytes before an entry's name, at least
_TYPES = {kind.encode(): np.dtype(kind) for kind in ("<f8", "<i8", "|u1")}
# Version 1.0 of the format, the length of the header, and the header; numbers of up to 10 digits.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00[\s\S]{2}\{'descr': '(?P<type>[^'\n]{1,20})', 'fortran_order': (?P<order>True|False), "
    rb"'shape': \((?P<shape>(?:[0-9]{1,10}(?:, ?|,?(?=\)))){0,64})\), ?\} *\n"
)


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
            _check_places(entries, path)
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


def _check_places(entries: Sequence[zipfile.ZipInfo], path: Path) -> None:
    """Refuse entries of one name, and entries that share bytes: a small file could fill the memory."""
    if len({entry.filename for entry in entries}) < len(entries):
        raise FormatError(f"'{path}' is damaged: two of its entries have one name")
    if sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise FormatError(f"'{path}' is damaged: its entries are larger than the file")
    end = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        if entry.header_offset < end or entry.compress_size != entry.file_size:
            raise FormatError(f"'{path}' is damaged: its entries overlap")
        end = entry.header_offset + _LOCAL_HEADER + entry.file_size


def _array(content: bytes, where: str, kind: str) -> NDArray[Any]:
    """Array from the bytes of a `.npy` file whose header is as numpy writes it."""
    found = _HEADER.match(content)
    if found is None:
        raise FormatError(f"{where}: not an array, or damaged")
    dtype, shape = _TYPES.get(found["type"]), tuple(int(n) for n in found["shape"].split(b",") if n.strip())
    size = len(content) - found.end()
    if dtype is None or len(shape) > _DIMENSIONS or math.prod(shape) * dtype.itemsize != size:
        raise FormatError(f"{where}: damaged, or of a kind no {kind} has")
    if any(n > len(content) for n in shape):  # beside a dimension of 0
        raise FormatError(f"{where}: damaged, or of a kind no {kind} has")
    array = np.frombuffer(content, dtype=dtype, offset=found.end())
    return array.reshape(shape, order="F" if found["order"] == b"True" else "C").copy()
