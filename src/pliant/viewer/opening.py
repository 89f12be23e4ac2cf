"""`Opener`: what a live view may show instead: the gallery, files that a browser sends, their keyframes.

Files are not trusted. They are written into a folder of their own, a file alone under a name made here, those of an
archive under their own paths, none of which leads out of it; and read as `pliant.load` reads any file, with its
limits: no other file can be reached from there.
"""

from __future__ import annotations

import re
import stat
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from pliant.errors import FormatError, InputError, PliantError, UnsafePathError
from pliant.source import PREFIX, gallery_names, resolve
from pliant.text import brief, listed, suggestion

__all__ = ["LARGEST_FILE", "Opener", "unpack"]

LARGEST_FILE = 64_000_000  # bytes
_SUFFIXES = (".xml", ".mjcf", ".urdf", ".json", ".npz")
_ARCHIVE = ".zip"
_MOST_FILES, _MOST_BYTES = 2000, 4 * LARGEST_FILE  # of an archive, unpacked
_LONGEST_PATH, _DEEPEST = 240, 12  # characters, folders
_BEGINNING = 4096  # bytes of an XML file in which its first element is looked for
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
        self._found: tuple[str, ...] = ()  # keyframes of what was read last
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
        """What a file holds that a browser has sent; of an archive, the model in it, which may refer to the rest.

        Raises:
            FormatError: it is too large, of another kind, or cannot be read.
        """
        suffix = Path(name).suffix.lower()
        if suffix not in (*_SUFFIXES, _ARCHIVE):
            kinds = ", ".join((*_SUFFIXES, _ARCHIVE))
            raise FormatError(f"'{name[:80]}': a file of the kinds {kinds} expected")
        if len(content) > LARGEST_FILE:
            raise FormatError(f"'{name[:80]}' is larger than {LARGEST_FILE / 1e6:g} MB")
        folder = tempfile.TemporaryDirectory(prefix="pliant-view-")

        def load(keyframe: str | None) -> Any:
            place = f"{folder.name}/"  # it means nothing to who sent the file
            try:
                found = self._resolve(str(path), keyframe, folder.name)
            except UnsafePathError as error:
                said = str(error).partition(" lies outside")[0].replace(place, "")
                raise UnsafePathError(f"{said} lies outside of what was sent: send it along") from None
            except PliantError as error:
                raise type(error)(str(error).replace(place, "")) from None
            self.remarks = tuple(remark.replace(place, "") for remark in self.remarks)
            return found

        try:
            if suffix == _ARCHIVE:
                path = unpack(content, Path(folder.name))
            else:
                stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in Path(name).stem)[:60] or "file"
                path = Path(folder.name) / f"{stem}{suffix}"
                path.write_bytes(content)
            found = load(None)
        except BaseException:
            folder.cleanup()
            raise
        self._folder = folder
        self.offer(self._found, load)
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

    def _resolve(self, text: str, keyframe: str | None, folder: str | None = None) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            allow = None if folder is None else [Path(folder)]
            found = resolve(text, keyframe=keyframe, allow=allow, worlds=True)
        self.remarks = tuple(dict.fromkeys(str(one.message) for one in caught))
        self._found = found.keyframes
        return found.scene or found.play or found.model or found.mechanism


def unpack(content: bytes, folder: Path) -> Path:
    """Write the files of an archive below a folder, and return the path of the model among them.

    Raises:
        FormatError: it is damaged, too large, has a path that leads elsewhere, or not one model.
    """
    models: dict[Path, bytes] = {}
    try:
        with ZipFile(BytesIO(content)) as archive:
            files = [info for info in archive.infolist() if not info.is_dir()]
            if len(files) > _MOST_FILES or sum(info.file_size for info in files) > _MOST_BYTES:
                raise FormatError(
                    f"the archive holds more than {_MOST_FILES} files, or more than {_MOST_BYTES / 1e6:g} MB"
                )
            for info in files:
                path = folder / _inner_path(info)
                if path.exists() or any(part.is_file() for part in path.parents):
                    raise FormatError(f"the archive holds {brief(info.filename)} twice")
                data = archive.read(info)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                if _is_model(path, data):
                    models[path] = data
    except FormatError:
        raise
    except (
        BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        ValueError,
        zlib.error,
        OSError,
    ) as error:
        raise FormatError(f"the archive cannot be read: {error!s:.80}") from None
    # A scene that includes a robot is meant, not the robot.
    roots = [
        path
        for path in models
        if not any(_refers(data, path.name) for other, data in models.items() if other != path)
    ]
    if len(roots) != 1:
        names = [path.relative_to(folder).as_posix() for path in roots or models]
        what = f"holds several models, {listed(names, 6)}" if names else "holds no model"
        raise FormatError(
            f"the archive {what}: send one MJCF, URDF, JSON or NPZ file with the files it refers to"
        )
    return roots[0]


def _refers(content: bytes, name: str) -> bool:
    """Whether a model refers to a file of this name."""
    return re.search(rb"[\"'/\\]" + re.escape(name.encode()) + rb"[\"']", content) is not None


def _inner_path(info: ZipInfo) -> PurePosixPath:
    """The path of a file of an archive below the archive's folder."""
    name = info.filename.replace("\\", "/")
    path = PurePosixPath(name)
    odd = (
        path.is_absolute()
        or any(part in ("", ".", "..") or ":" in part for part in name.split("/"))
        or not name.isprintable()
        or len(name) > _LONGEST_PATH
        or len(path.parts) > _DEEPEST
        or stat.S_ISLNK(info.external_attr >> 16)
    )
    if odd:
        raise FormatError(
            f"the archive holds {brief(info.filename)}, which is no plain file below its folder"
        )
    return path


def _is_model(path: Path, content: bytes) -> bool:
    """Whether a file can be a model: of XML, by its first element."""
    if path.suffix.lower() not in (".xml", ".mjcf", ".urdf"):
        return path.suffix.lower() in _SUFFIXES
    element = re.search(
        rb"<([A-Za-z_][\w.-]*)", re.sub(rb"<!--.*?-->", b"", content[:_BEGINNING], flags=re.DOTALL)
    )
    return element is not None and element[1] in (b"mujoco", b"robot")
