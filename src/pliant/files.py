"""Files: paths from users, reading with a size limit, writing that leaves complete files or none."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pliant.errors import FormatError, InputError, PliantError
from pliant.text import brief

__all__ = [
    "as_path",
    "check_file",
    "check_writable",
    "json_value",
    "read_bytes",
    "refuse_device",
    "replacing",
    "replacing_path",
]


_LONGEST_PART = 255  # bytes of a name within a path


def as_path(value: str | os.PathLike[str], what: str = "path") -> Path:
    """A path from a user's string or path-like object."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(value, bytes):
        raise InputError(f"{what}: a string or a path expected, not {brief(value)}")
    text = os.fspath(value)
    try:
        if not isinstance(text, str) or not text or "\0" in text:
            raise ValueError
        if max(len(os.fsencode(part)) for part in (*Path(text).parts, "")) > _LONGEST_PART:
            raise ValueError
    except ValueError:
        raise InputError(f"{what}: {brief(value)} is not a path") from None
    return Path(text)


def check_file(path: Path, limit: int, shown: str | None = None) -> None:
    """Refuse what is not a file, or is larger than `limit` bytes.

    Raises:
        FormatError: it is not.
    """
    shown = shown or f"'{path}'"
    if not os.path.isfile(path):  # a pipe or device could block for ever
        raise FormatError(
            f"{shown} is not a file" if os.path.exists(path) else f"{shown}: there is no such file"
        )
    if os.path.getsize(path) > limit:
        raise FormatError(f"{shown} is larger than {limit} bytes")


def read_bytes(path: Path, limit: int, shown: str | None = None) -> bytes:
    """The content of a file.

    Raises:
        FormatError: it cannot be read, or is larger than `limit`.
    """
    shown = shown or f"'{path}'"
    check_file(path, limit, shown)
    try:
        with path.open("rb") as file:
            # Room is allocated for what is asked for: not more than the file has, unless it grows.
            data = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
    except OSError as error:
        raise FormatError(f"{shown} cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise FormatError(f"{shown} is larger than {limit} bytes")
    return data


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """An open temporary file beside `path` that replaces it at the end; after an exception `path` is unchanged.

    Raises:
        FormatError: it cannot be written.
    """
    refuse_device(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:50]}.", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # temporary files are private: give the usual permissions
        os.replace(temporary, path)
    except OSError as error:
        raise FormatError(f"'{path}' cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def replacing_path(path: Path) -> Iterator[Path]:
    """A temporary path of the same name beside `path` that replaces it at the end, for writers that open files.

    Raises:
        FormatError: it cannot be written; a `PliantError` of the writer becomes one that names `path`.
    """
    refuse_device(path)
    temporary = None
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name[:50]}.", dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            yield temporary
            os.replace(temporary, path.resolve())
    except OSError as error:
        raise FormatError(f"'{path}' cannot be written: {error.strerror or error}") from None
    except PliantError as error:
        raise FormatError(str(error).replace(str(temporary), str(path))) from None


def check_writable(path: Path, *suffixes: str) -> None:
    """Refuse, before any work is done, a place where a file cannot be written.

    Args:
        path: the file.
        suffixes: the suffixes it may have; any if none are given.

    Raises:
        FormatError: there is no such folder, it is not writable, or something else is in the way.
    """
    if path.is_dir():
        raise FormatError(f"'{path}' cannot be written: it is a folder; add a file name")
    refuse_device(path)
    if not path.parent.is_dir():
        raise FormatError(f"'{path}' cannot be written: there is no folder '{path.parent}'; create it first")
    if not os.access(path.parent, os.W_OK):
        raise FormatError(f"'{path}' cannot be written: the folder '{path.parent}' is read-only")
    if suffixes and path.suffix.lower() not in suffixes:
        raise FormatError(f"'{path}': a name that ends in {' or '.join(suffixes)} expected")


def refuse_device(path: Path) -> None:
    """Refuse to replace what is neither a file nor a folder: for root, `/dev/null` would become a file."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise FormatError(f"'{path}' cannot be written: it is no regular file")


def json_value(value: Any) -> Any:
    """A value for JSON: arrays as lists, infinite numbers and NaN as None, paths and keys as strings."""
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return os.fspath(value) if isinstance(value, os.PathLike) else value
