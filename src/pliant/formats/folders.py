"""`Folders`: the files a model may refer to, those below its own folder and below folders the caller allows.

A model file is untrusted. Every reference is resolved (links followed) before anything is read, and all files are
read here and handed to MuJoCo in memory, so that its compiler opens nothing by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote
from xml.parsers import expat

from pliant.errors import FormatError, InputError, UnsafePathError
from pliant.files import as_path
from pliant.text import brief

__all__ = ["Folders"]

_PACKAGE_LEVELS = 3  # folders between a URDF and its package's folder, at most, without a package.xml


class Folders:
    """The folders a model may read from.

    Args:
        model: the model file.
        allow: further folders.
    """

    def __init__(self, model: Path, allow: Iterable[str | os.PathLike[str]] = ()):
        if isinstance(allow, (str, os.PathLike)):
            allow = (allow,)
        try:
            extra = [as_path(folder, "allow") for folder in allow]
        except TypeError:
            raise InputError(f"allow: folders expected, not {brief(allow)}") from None
        for folder in extra:
            if not os.path.isdir(folder):
                raise InputError(f"allow: '{folder}' is not a folder")
        self.model = _real(model)
        self.roots = [self.model.parent, *(_real(folder) for folder in extra)]

    def resolve(self, reference: str, base: Path, shown: str) -> Path:
        """The file behind a reference.

        Args:
            reference: as written in the model, relative to `base` or absolute.
            base: a folder.
            shown: place of the reference, for messages.

        Raises:
            UnsafePathError: the file lies outside the allowed folders.
        """
        if "\0" in reference or not reference.strip():
            raise FormatError(f"{shown}: {brief(reference)} is not a file name")
        path = _real(base / reference.replace("\\", "/"))
        if not any(path.is_relative_to(root) for root in self.roots):
            raise UnsafePathError(
                f"{shown}: '{reference}' lies outside the model's folder '{self.roots[0]}'; if you trust the model, "
                f"load it with allow=['{path.parent}']"
            )
        return path

    def package(self, reference: str, shown: str) -> Path | None:
        """The file behind `package://name/path`, or None if there is no such package in reach.

        A package is a folder of that name, or with a package.xml of that name, above the model, or in one of the
        allowed folders. The one that holds the model is thereby allowed.
        """
        parts = PurePosixPath(unquote(reference).replace("\\", "/").lstrip("/")).parts
        if len(parts) < 2 or ".." in parts[:1]:
            raise FormatError(
                f"{shown}: 'package://{reference}' names no file; package://name/path is expected"
            )
        name, rest = parts[0], "/".join(parts[1:])
        for level, folder in enumerate((self.model.parent, *self.model.parent.parents)):
            manifest = folder / "package.xml"
            if _package_name(manifest) == name or (
                folder.name == name and (os.path.isfile(manifest) or _ordinary(folder, level))
            ):
                self.roots.append(folder)
                return self.resolve(rest, folder, shown)
        for folder in (*self.roots, *(above for root in self.roots[:1] for above in root.parents)):
            if os.path.isdir(folder / name):
                return self.resolve(rest, folder / name, shown)
        return None


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        raise FormatError(f"'{path}' is not a usable path") from None


def _ordinary(folder: Path, level: int) -> bool:
    """Whether a folder may be a package by its name alone: near the model, and not a home or system folder."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    return level <= _PACKAGE_LEVELS and len(folder.parts) > 2 and not home.is_relative_to(folder)


def _package_name(manifest: Path) -> str | None:
    """The name of a package in its ROS package.xml; None if there is none that can be read."""
    try:
        if not manifest.is_file() or manifest.stat().st_size > 1_000_000:
            return None
        names: list[str] = []
        inside = False
        parser = expat.ParserCreate()

        def start(tag: str, _: dict[str, str]) -> None:
            nonlocal inside
            inside = tag == "name"

        def text(data: str) -> None:
            if inside:
                names.append(data)

        def end(_: str) -> None:
            nonlocal inside
            inside = False

        def refuse(*_: object) -> None:
            raise FormatError("document type")

        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
        parser.StartDoctypeDeclHandler = refuse
        parser.Parse(manifest.read_bytes(), True)
    except (OSError, ValueError, FormatError, expat.ExpatError):
        return None  # then it is no package; the reference is reported as not found
    return "".join(names).strip() or None
