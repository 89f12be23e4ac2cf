"""MuJoCo's compiler in a child process: a crash or an endless loop becomes a `FormatError`."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.child import Child
from pliant.errors import FormatError
from pliant.formats._compiler_process import SECONDS
from pliant.formats.xml import Node, unescape, write

__all__ = ["TIME_LIMIT", "CompiledModel", "compile_tree"]

TIME_LIMIT = 120.0  # seconds for one model
_REMEDIES = {
    "mass and inertia of moving bodies": (
        "A body that moves needs mass and inertia: give it an <inertial>, or fix its joint"
    ),
    "A + B >= C": 'Correct it, use <compiler balanceinertia="true"/> in MJCF, or load a URDF with repair=True',
    "positive eigenvalues": "Correct it, or load a URDF with repair=True",
}
_REPEATED = {  # what a remedy says, too
    "mass and inertia of moving bodies must be larger than mjMINVAL": "no mass or no inertia",
    "; use 'balanceinertia' to fix": "",
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
        gravity: m/s²; zero where the file disables it.
        fluid: density, kg/m³, viscosity, Pa s, and velocity, m/s, of the medium, (5,).
    """

    arrays: dict[str, NDArray[Any]]
    names: dict[str, list[str]]
    name: str
    counts: dict[str, int]
    disableflags: int
    disableactuator: int
    gravity: tuple[float, ...]
    fluid: tuple[float, ...]

    def __getitem__(self, field: str) -> NDArray[Any]:
        return self.arrays[field]


class _Compiler(Child):
    """The child process, in a folder of its own: MuJoCo writes its log to the working directory."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="pliant-")
        code = "from pliant.formats._compiler_process import main; main()"
        super().__init__(code, self.folder, folder=self.folder, isolated=True, quiet=True)

    def request(self, text: str, assets: dict[str, bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """Compile a model: the header of the reply, and the bytes of the arrays that it lists."""
        self.send(json.dumps({"assets": list(assets)}).encode(), text.encode(), *assets.values())
        header = json.loads(self.receive())
        return header, [self.receive() for _ in header.get("arrays", ())]

    def end(self, *, patience: float = 0.0) -> int:
        code = super().end(patience=patience)
        shutil.rmtree(self.folder, ignore_errors=True)
        return code


_lock = threading.Lock()
_running: _Compiler | None = None
_inherited: list[_Compiler | None] = []


def _forget() -> None:
    """After a fork: the process is our parent's, and so is the lock if another of its threads held it."""
    global _running, _lock
    _inherited.append(_running)
    _running, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _end() -> None:
    global _running
    if _running is not None:
        _running.end(patience=5.0)
        _running = None


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
        tuple(header["gravity"]),
        tuple(header["fluid"]),
    )


def _run(text: str, assets: dict[str, bytes], path: Path) -> tuple[dict[str, Any], list[bytes]]:
    global _running
    with _lock:
        if _running is None or not _running.running:
            try:
                _running = _Compiler()
            except OSError as error:
                raise FormatError(
                    f"'{path}': the process for MuJoCo's compiler cannot be started ({error})"
                ) from None
        compiler = _running
        try:
            with compiler.time_limit(TIME_LIMIT):
                header, parts = compiler.request(text, assets)
        except BaseException as error:
            # Also after an interrupt: the reply still in the pipe would answer the next request.
            _running = None
            code = compiler.end()
            if not isinstance(error, OSError | EOFError | ValueError):
                raise
            if compiler.expired:
                raise FormatError(
                    f"'{path}': MuJoCo's compiler did not finish within {TIME_LIMIT:g} s"
                ) from None
            if code == -getattr(signal, "SIGXCPU", 0):
                raise FormatError(
                    f"'{path}': MuJoCo's compiler takes more time than {SECONDS:g} s and 5 s per MB of files; "
                    "make the model smaller"
                ) from None
            raise FormatError(
                f"'{path}': MuJoCo's compiler crashed on this file (exit status {code}); look for numbers that are "
                f"absurd or not finite, or for too little memory{_memory_limit()}"
            ) from None
        if not header.get("error", "Error").lstrip().startswith(("Error", "XML Error", "XML parse error")):
            # Not the compiler's own message: it was interrupted, and may loop for ever on the next model.
            _running = None
            compiler.end()
        return header, parts


def _memory_limit() -> str:
    """Limit of this process's memory, in words; empty if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    least = min(limit % 2**64 for limit in resource.getrlimit(resource.RLIMIT_AS))
    return "" if least >= 2**60 else f": a limit of {least / 2**30:.1f} GiB is set (`ulimit -v`)"


def _explain(message: str, origins: list[Node], path: Path) -> str:
    """MuJoCo's message with the line of the user's file, and a remedy where one is known."""
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
    message += "".join(f". {remedy}" for symptom, remedy in _REMEDIES.items() if symptom in message)
    for words, instead in _REPEATED.items():
        message = message.replace(words, instead)
    return f"'{path}': MuJoCo's compiler refuses the model: {message}"
