"""Notices of compilation: the engine whose kernels are being compiled, and about how long it takes.

A terminal gets one line with a spinner on stderr, which disappears; a notebook a line under its cell; a file or a pipe
one plain line on stderr. stdout is left alone.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["QUIET", "REPORT", "compiled", "explain", "listening", "watch"]

QUIET = "PLIANT_QUIET"  # environment: if set, no notices
REPORT = "PLIANT_COMPILATION_REPORT"  # environment: a file that gets a line for every kernel that is compiled
_SUBJECTS = {  # package: name, seconds to compile all its kernels on one core of a 2024 server
    "pliant.engines.constrained": ("the constrained engine", 20),
    "pliant.engines.reduced": ("reduced models", 30),
    "pliant.engines.quasistatic": ("the quasi-static engine", 25),
    "pliant.engines.adaptive": ("the adaptive engine", 20),
    "pliant.contact": ("contact", 20),
    "pliant.statics": ("statics", 4),
    "pliant.mechanism": ("kinematics", 2),
    "pliant.spatial": ("rigid motions", 2),
    "pliant.viewer": ("the viewer", 2),
}
_PATIENCE = 0.5  # seconds of compilation before a notice appears
_REST = 0.4  # seconds without compilation before the notice disappears
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class _Watch:
    """Listener to numba's events: outermost compilations of pliant's kernels."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.registered = False
        self.depth = 0
        self.subject: tuple[str, int] | None = None  # of the current compilation
        self.collecting = False  # whether garbage collection was on before it
        self.ended = 0.0
        self.reasons: list[str] = []
        self.compiled: list[str] = []
        self.speaker: threading.Thread | None = None
        self.listeners: list[Callable[[str], None]] = []

    def start(self, event: Any) -> None:
        if self.depth == 0:
            self.collecting = gc.isenabled()
            gc.disable()  # collection finds next to nothing and takes a tenth of the time
            module = str(event.data["dispatcher"].py_func.__module__)
            self.subject = next((s for name, s in _SUBJECTS.items() if module.startswith(name)), None)
            if self.subject is not None:
                self._speak()
                for listener in list(self.listeners):
                    listener(_words(self.subject, self.reasons))
        self.depth += 1

    def end(self, event: Any) -> None:
        self.depth -= 1
        function = event.data["dispatcher"].py_func
        if str(function.__module__).startswith("pliant."):
            self.compiled.append(f"{function.__module__}.{function.__qualname__} {event.data['args']}")
        if self.depth == 0:
            if self.collecting:
                gc.enable()
            if os.environ.get(REPORT):
                _report(
                    os.environ[REPORT],
                    f"{_caller()}\t{function.__module__}.{function.__qualname__}\t{event.data['args']}",
                )
            self.ended = time.monotonic()
            self.subject = None

    def _speak(self) -> None:
        with self.lock:
            if os.environ.get(QUIET) or (self.speaker is not None and self.speaker.is_alive()):
                return
            self.speaker = threading.Thread(target=self._say, name="pliant-compiling", daemon=True)
            self.speaker.start()

    def _say(self) -> None:
        """Show a notice until nothing has been compiled for a while."""
        began, line = time.monotonic(), None
        while True:
            subject, now = self.subject, time.monotonic()
            if subject is None and now - self.ended > _REST:
                break
            if subject is not None and now - began > _PATIENCE:
                line = line or _line()
                line.show(_words(subject, self.reasons), now - began)
            time.sleep(0.1)
        if line is not None:
            line.close()


_watch = _Watch()


def watch() -> None:
    """Register the listener with numba, once."""
    if _watch.registered:
        return
    _watch.registered = True
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            _watch.start(event)

        def on_end(self, event: Any) -> None:
            _watch.end(event)

    event.register("numba:compile", Listener())


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Call `listener` with a notice whenever kernels begin to compile, in the thread that needs them."""
    _watch.listeners.append(listener)
    try:
        yield
    finally:
        _watch.listeners.remove(listener)


def compiled() -> list[str]:
    """Kernels and signatures that this process has compiled."""
    return list(_watch.compiled)


def explain(reason: str) -> None:
    """Add the reason why shipped machine code is not used to all further notices."""
    if reason not in _watch.reasons:
        _watch.reasons.append(reason)


def _caller() -> str:
    """Module that called a kernel."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("numba", "contextlib", "pliant.compilation")):
            return name
        frame = frame.f_back
    return ""


def _report(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def _words(subject: tuple[str, int], reasons: list[str]) -> str:
    why = f" ({reasons[0]})" if reasons else ""
    return f"compiling kernels of {subject[0]}, once, about {subject[1]} s{why}"


def _line() -> Any:
    notebook = _notebook()
    if notebook is not None:
        return notebook
    return _Spinner() if _foreground() else _Plain()


def _foreground() -> bool:
    """Whether stderr is a terminal that this process may draw on.

    Under a progress bar stderr is replaced, and whole lines appear above the bar; a background job shares its terminal.
    """
    try:
        if sys.stderr is not sys.__stderr__ or not sys.stderr.isatty():
            return False
        return not hasattr(os, "tcgetpgrp") or os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return False


class _Spinner:
    """One line of a terminal, drawn over and over."""

    def __init__(self) -> None:
        self._frame = 0

    def show(self, words: str, seconds: float) -> None:
        text = f"{_FRAMES[self._frame % len(_FRAMES)]} {words}: {seconds:.0f} s"
        self._frame += 1
        _write(f"\r\x1b[2K{text[: _width() - 1]}")

    def close(self) -> None:
        _write("\r\x1b[2K")


class _Plain:
    """A line for every engine, once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def show(self, words: str, seconds: float) -> None:
        if words not in self._said:
            self._said.add(words)
            _write(f"pliant: {words}\n")

    def close(self) -> None:
        pass


class _Cell:
    """A line under a notebook's cell."""

    def __init__(self, display: Any):
        self._display, self._handle, self._words, self._began = display, None, "", time.monotonic()

    def show(self, words: str, seconds: float) -> None:
        if words != self._words:
            self._words = words
            if self._handle is None:
                self._handle = self._display({"text/plain": f"{words} …"}, raw=True, display_id=True)
            else:
                self._handle.update({"text/plain": f"{words} …"}, raw=True)

    def close(self) -> None:
        if self._handle is not None:
            took = time.monotonic() - self._began
            self._handle.update({"text/plain": f"kernels compiled in {took:.0f} s"}, raw=True)


def _notebook() -> _Cell | None:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return _Cell(display)


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # no stderr, or it was closed
        pass
