"""MuJoCo's compiler in a helper process: a crash or an endless loop becomes a `FormatError`."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FormatError
from pliant.formats import _worker
from pliant.formats.xml_tree import Node, unescape, write

__all__ = ["TIME_LIMIT", "CompiledModel", "compile_tree"]

TIME_LIMIT = 120.0  # seconds for one model
_REMEDIES = {
    "mass and inertia of moving bodies": (
        "A body that moves needs mass and inertia: give it an <inertial>, or fix its joint"
    ),
    "A + B >= C": 'Correct it, or use <compiler balanceinertia="true"/>, or load a URDF with repair=True',
    "positive eigenvalues": "Correct it, or load a URDF with repair=True",
}
_DTYPES = {"<f8", "<f4", "<i4", "<i8", "|u1", "|b1", "<u8"}


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """The arrays of a compiled MuJoCo model, under MuJoCo's names.

    Attributes:
        arrays: `model["body_mass"]` and so on.
        names: per kind of element ("body", "jnt", "eq", "tendon", "actuator", "key"), its names; "" if unnamed.
        name: of the model.
        counts: how many flexes, skins and plugins there are.
        disableflags, disableactuator: bits of MuJoCo's options.
    """

    arrays: dict[str, NDArray[Any]]
    names: dict[str, list[str]]
    name: str
    counts: dict[str, int]
    disableflags: int
    disableactuator: int

    def __getitem__(self, field: str) -> NDArray[Any]:
        return self.arrays[field]


class _Helper:
    """One helper process."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="pliant-")  # MuJoCo's logs go to the working directory
        # The same modules as here, but never from the working directory, which may be a model's folder.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(Path(_worker.__file__)), self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
        )

    def request(self, text: str, assets: dict[str, bytes]) -> tuple[dict[str, Any], list[bytes]]:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        _worker.write_message(stdin, {"assets": list(assets)}, [text.encode(), *assets.values()])  # pyright: ignore
        return _worker.read_message(stdout)  # pyright: ignore

    def close(self, *, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                assert stream is not None
                stream.close()  # the helper ends when its input does
            except OSError:  # it died with a request in the pipe
                pass
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


_lock = threading.Lock()
_helper: _Helper | None = None
_inherited: list[_Helper | None] = []


def _forget() -> None:
    """After a fork: the helper is our parent's, and so is the lock if another thread of it held it."""
    global _helper, _lock
    _inherited.append(_helper)
    _helper, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _close() -> None:
    global _helper
    if _helper is not None:
        _helper.close()
        _helper = None


def compile_tree(root: Node, assets: dict[str, bytes], path: Path, *, lines: bool = True) -> CompiledModel:
    """Compile a model.

    Args:
        root: a complete MJCF or URDF tree whose file references are keys of `assets`.
        assets: the files it refers to.
        path: the model file, for messages.
        lines: whether the line numbers in messages are those of `root` (not if other models are attached to it).

    Raises:
        FormatError: MuJoCo refuses the model, crashes, or takes too long.
    """
    text, origins = write(root)
    header, parts = _run(text, assets, path)
    if "error" in header:
        raise FormatError(_explain(header["error"], origins if lines else [], path))
    arrays = {}
    for (field, dtype, shape), part in zip(header["arrays"], parts, strict=True):
        assert dtype in _DTYPES, dtype
        arrays[field] = np.frombuffer(part, dtype=dtype).reshape(shape)
    names = {kind: [unescape(name) for name in found] for kind, found in header["names"].items()}
    return CompiledModel(
        arrays,
        names,
        unescape(header["model"]),
        header["counts"],
        header["disableflags"],
        header["disableactuator"],
    )


def _run(text: str, assets: dict[str, bytes], path: Path) -> tuple[dict[str, Any], list[bytes]]:
    global _helper
    with _lock:
        if _helper is None or _helper.process.poll() is not None:
            try:
                _helper = _Helper()
            except OSError as error:
                raise FormatError(
                    f"'{path}': the process for MuJoCo's compiler cannot be started ({error})"
                ) from None
        helper, expired = _helper, threading.Event()

        def stop() -> None:
            expired.set()
            helper.process.kill()

        timer = threading.Timer(TIME_LIMIT, stop)
        timer.daemon = True
        timer.start()
        try:
            header, parts = helper.request(text, assets)
            if "error" in header and not header["error"].lstrip().startswith(
                ("Error", "XML Error", "XML parse error")
            ):
                # Not one of the compiler's own messages: it was torn out of its work, and may loop on the next model.
                _helper = None
                helper.close(kill=True)
            return header, parts
        except (OSError, EOFError, ValueError):
            _helper = None
            helper.close(kill=True)
            if expired.is_set():
                raise FormatError(
                    f"'{path}': MuJoCo's compiler did not finish within {TIME_LIMIT:g} s"
                ) from None
            code = helper.process.returncode
            raise FormatError(
                f"'{path}': MuJoCo's compiler crashed on this file (exit status {code}); "
                "look for numbers that are absurd or not finite"
            ) from None
        except BaseException:  # interrupted: the reply still in the pipe would answer the next request
            _helper = None
            helper.close(kill=True)
            raise
        finally:
            timer.cancel()


def _explain(message: str, origins: list[Node], path: Path) -> str:
    """MuJoCo's message with the line of the user's file in place of ours, and a remedy where we know one."""
    message = " ".join(unescape(message).split())
    message = re.sub(r"^(XML )?Error: (Error: )?", "", message)

    def place(found: re.Match[str]) -> str:
        line = int(found[1])
        if not 1 <= line <= len(origins):
            return ""
        node = origins[line - 1]
        return f", line {node.line}" + (f" of '{node.file}'" if node.file != path else "")

    message = re.sub(r",? line (\d+)\b", place, message)
    message = re.sub(r"\s*Element name '([^']*)', id \d+", r" (element '\1')", message)
    message = re.sub(r"\s*Element '([^']*)'", r" (element <\1>)", message)
    for symptom, remedy in _REMEDIES.items():
        if symptom in message:
            message += f". {remedy}"
    return f"'{path}': MuJoCo's compiler refuses the model: {message}"
