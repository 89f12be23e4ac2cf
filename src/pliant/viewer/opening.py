"""`Opener`: what a live view may show instead: the gallery, files that a browser sends, their keyframes.

Files are not trusted. They are written, alone, into a folder of their own under a name made here, and read as
`pliant.load` reads any file, with its limits: no other file can be reached from there.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pliant.errors import FormatError, InputError, PliantError
from pliant.formats import xml
from pliant.source import PREFIX, gallery_names, resolve
from pliant.text import suggestion

__all__ = ["LARGEST_FILE", "Opener", "file_keyframes"]

LARGEST_FILE = 64_000_000  # bytes
_SUFFIXES = (".xml", ".mjcf", ".urdf", ".json", ".npz")
_MOST_KEYFRAMES = 200
_REFERENCE = "as described"  # the pose that no keyframe changes


class Opener:
    """Choices of a live view.

    Attributes:
        keyframes: what the file that is shown offers, first the pose it describes; empty without keyframes.
        keyframe: the one that is shown.
        remarks: warnings of what was read last.
    """

    def __init__(self) -> None:
        self.keyframes: tuple[str, ...] = ()
        self.keyframe = _REFERENCE
        self.remarks: tuple[str, ...] = ()
        self._load: Callable[[str | None], Any] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def offer(
        self, keyframes: tuple[str, ...], load: Callable[[str | None], Any], shown: str | None = None
    ) -> None:
        """Offer keyframes of a file; `load` takes one of them, or None, and returns what is to be viewed."""
        known = tuple(dict.fromkeys(name for name in keyframes[:_MOST_KEYFRAMES] if name))
        self.keyframes, self._load = (_REFERENCE, *known) if known else (), load
        self.keyframe = shown if shown in known else _REFERENCE

    def gallery(self, name: str) -> Any:
        """The mechanism, scene or world of the gallery with this name."""
        names = gallery_names()
        if name not in names:
            raise InputError(f"the gallery has no '{name!s:.80}'{suggestion(name, names)}")
        found = self._resolve(f"{PREFIX}{name}", None)
        self.offer((), lambda _: None)
        self._folder = None
        return found

    def file(self, name: str, content: bytes) -> Any:
        """What a file holds that a browser has sent.

        Raises:
            FormatError: it is too large, of another kind, or cannot be read.
        """
        suffix = Path(name).suffix.lower()
        if suffix not in _SUFFIXES:
            raise FormatError(f"'{name[:80]}': a file of the kinds {', '.join(_SUFFIXES)} expected")
        if len(content) > LARGEST_FILE:
            raise FormatError(f"'{name[:80]}' is larger than {LARGEST_FILE / 1e6:g} MB")
        folder = tempfile.TemporaryDirectory(prefix="pliant-view-")
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in Path(name).stem)[:60] or "file"
        path = Path(folder.name) / f"{stem}{suffix}"
        path.write_bytes(content)

        def load(keyframe: str | None) -> Any:
            place = f"{folder.name}/"  # it means nothing to who sent the file
            try:
                found = self._resolve(str(path), keyframe)
            except PliantError as error:
                raise type(error)(str(error).replace(place, "")) from None
            self.remarks = tuple(remark.replace(place, "") for remark in self.remarks)
            return found

        try:
            found = load(None)
        except BaseException:
            folder.cleanup()
            raise
        self._folder = folder
        self.offer(file_keyframes(path), load)
        return found

    def at_keyframe(self, name: str) -> Any:
        """The file that is shown, at one of its keyframes."""
        if self._load is None or name not in self.keyframes:
            raise InputError(f"there is no keyframe '{name!s:.80}'{suggestion(name, self.keyframes)}")
        found = self._load(None if name == _REFERENCE else name)
        self.keyframe = name
        return found

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Choices made within are kept if no exception leaves; else those before come back. Unused files go."""
        before = self.keyframes, self.keyframe, self._load, self._folder
        try:
            yield
        except BaseException:
            if self._folder is not before[3]:
                self.close()
            self.keyframes, self.keyframe, self._load, self._folder = before
            raise
        if before[3] is not None and before[3] is not self._folder:
            before[3].cleanup()

    def close(self) -> None:
        """Remove files that were sent."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _resolve(self, text: str, keyframe: str | None) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = resolve(text, keyframe=keyframe, worlds=True)
        self.remarks = tuple(dict.fromkeys(str(one.message) for one in caught))
        return found.scene or found.play or found.model or found.mechanism


def file_keyframes(path: Path) -> tuple[str, ...]:
    """Names of the keyframes that an MJCF file has itself; none of other files."""
    if path.suffix.lower() not in (".xml", ".mjcf"):
        return ()
    try:
        root = xml.parse(path.read_bytes(), path)
    except (PliantError, OSError):
        return ()
    return tuple(name for node in root.iter() if node.tag == "key" and (name := node.get("name")))
