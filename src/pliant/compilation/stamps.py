"""Stamp of a kernel's source: a content hash of its module and of all modules of pliant that this one imports.

numba's own cache looks at one file and keeps machine code that holds an old copy of a kernel from another file.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["stamp"]

_ROOT = Path(__file__).parents[2]  # the folder that holds the package
_STARTED = time.time()  # before modules with kernels are imported
_IMPORT = re.compile(
    r"^[ ]*(?:from (pliant[\w.]*) import (\([^)]*\)|.*)|import (pliant[\w.]*))", re.MULTILINE
)
_GENERATING = ("pliant.compilation.calls", "pliant.compilation.views")  # modules that generate machine code
_NAME = re.compile(r"(\w+)(?:[ ]+as[ ]+\w+)?[ ]*(?:,|\)|$|\n)")


@cache
def stamp(module: str) -> str:
    """Hash of the sources of a module and of those it imports, directly or not; 16 hexadecimal digits.

    Raises:
        OSError: a source file is not there, or is newer than this process: machine code of what was imported would be
            kept under the stamp of what is in the file now.
    """
    seen: set[Path] = set()
    waiting = [_source(module)]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting.extend(_imported(path))
    digest = hashlib.sha256()
    for path in sorted(seen):
        digest.update(f"{path.relative_to(_ROOT).as_posix()}\0".encode())
        digest.update(_text(path).encode())
    return digest.hexdigest()[:16]


@cache
def _text(path: Path) -> str:
    if _STARTED < path.stat().st_mtime <= time.time():
        raise OSError(f"{path} has changed since this process imported it")
    return path.read_text(encoding="utf-8")  # universal newlines: a checkout may convert them


@cache
def _source(module: str) -> Path:
    """Source file of a module; a package's `__init__.py`."""
    path = _ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Source files of the modules of pliant that a source file imports."""
    # the rest of pliant.compilation does not change machine code: its options are part of the file's name
    return tuple(
        _source(name)
        for name in _modules(_text(path))
        if not name.startswith("pliant.compilation") or name in _GENERATING
    )


def _modules(text: str) -> Iterator[str]:
    for package, names, module in _IMPORT.findall(text):
        if module:
            yield module
            continue
        for name in _NAME.findall(names):
            inner = f"{package}.{name}"
            yield inner if _source(inner).exists() else package
