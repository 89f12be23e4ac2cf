"""Folders of machine code: the one that comes with the package, and the one that kernels compiled here are kept in."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["TARGET", "Shipped", "local", "shipped", "tag"]

_PACKAGE = Path(__file__).parents[1]
_SHIPPED = Path(__file__).parent / "shipped"
TARGET = "target.json"  # in a folder of shipped machine code: the processor it is for


class Shipped(NamedTuple):
    """Machine code that came with the package.

    Attributes:
        folder: that holds it; None if there is none for this Python, numba and processor.
        reason: why it cannot be used, in words; empty if it can, or if the package came without any.
    """

    folder: Path | None
    reason: str


def tag() -> str:
    """Python, numba and platform that machine code depends on, as a folder's name."""
    import numba

    return f"{sys.implementation.cache_tag}-numba{numba.__version__}-{sysconfig.get_platform()}"


@cache
def shipped() -> Shipped:
    """The folder of shipped machine code that fits, or why none does."""
    folders = [p for p in _SHIPPED.glob("*") if p.is_dir()] if _SHIPPED.is_dir() else []
    if not folders:
        return Shipped(None, "")
    from numba.core import config

    if getattr(config, "CPU_NAME", None) or getattr(config, "CPU_FEATURES", None):
        return Shipped(
            None, "NUMBA_CPU_NAME or NUMBA_CPU_FEATURES asks for other machine code than the package has"
        )
    folder = _SHIPPED / tag()
    if not folder.is_dir():
        have = ", ".join(p.name for p in folders)
        return Shipped(None, f"the package has machine code for {have}, this is {tag()}")
    try:
        target = json.loads((folder / TARGET).read_text(encoding="utf-8"))
        missing = _missing(target["triple"], target["features"])
    except (OSError, ValueError, KeyError, TypeError):
        return Shipped(None, f"the package's machine code is incomplete: {TARGET} is missing or damaged")
    if missing:
        return Shipped(None, f"the package's machine code needs a processor with {missing}")
    return Shipped(folder, "")


def _missing(triple: str, features: list[str]) -> str:
    """Architecture or features of a target that this processor lacks, in words; empty if none."""
    import llvmlite.binding as llvm

    if llvm.get_process_triple().split("-")[0] != triple.split("-")[0]:
        return triple
    host = llvm.get_host_cpu_features()
    return ", ".join(name for name in features if not host.get(name, False))


@cache
def local() -> Path | None:
    """A writable folder for kernels that are compiled here; None if there is none.

    `$NUMBA_CACHE_DIR`, if set; in a checkout its `.cache`, so that every way to start pliant finds the same kernels;
    else the user's cache folder.
    """
    folder = _wanted()
    if folder is None:
        return None
    path = folder / "pliant" / tag()
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return None
    return path


def _wanted() -> Path | None:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    checkout = _PACKAGE.parents[1]
    if _PACKAGE.parent.name == "src" and (checkout / "pyproject.toml").exists():
        return checkout / ".cache"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
