"""Notices of compilation: seen on a terminal, in a log, in a notebook, by a listener; never on stdout."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time

import pytest

from pliant.compilation import progress

CALL = """
import numpy as np
from pliant.compilation import progress
progress._PATIENCE = -1.0
{before}
from pliant.spatial import kernels
kernels.quat_multiply(np.ones(4), np.ones(4), np.zeros(4))
import time; time.sleep(1.0)
print("result")
"""
NOTICE = "compiling kernels of rigid motions, once, about 2 s"


def variables(tmp_path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PLIANT")}
    return {**kept, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONIOENCODING": "utf-8", **more}


def call(tmp_path, before: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CALL.replace("{before}", before)]
    environment = variables(tmp_path, **more)
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=300)


def test_a_pipe_gets_one_line_on_stderr(tmp_path):
    done = call(tmp_path)
    assert done.stdout == "result\n"
    assert done.stderr == f"pliant: {NOTICE}\n"
    assert call(tmp_path).stderr == ""


def test_quiet(tmp_path):
    assert call(tmp_path, PLIANT_QUIET="1").stderr == ""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal and setsid")
def test_a_terminal_gets_a_spinner_that_goes(tmp_path):
    import pty

    main, terminal = pty.openpty()
    command = [sys.executable, "-c", CALL.replace("{before}", "")]
    with subprocess.Popen(
        ["setsid", "--ctty", *command],  # in the foreground of that terminal
        env=variables(tmp_path), stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, encoding="utf-8"
    ) as process:  # fmt: skip
        assert process.communicate(timeout=300)[0] == "result\n"
    os.close(terminal)
    shown = b""
    while b"\x1b[2K" not in shown[-5:]:
        shown += os.read(main, 4096)
    os.close(main)
    text = shown.decode()
    assert re.search(rf"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] {re.escape(NOTICE)}: \d s", text)
    assert text.endswith("\r\x1b[2K")
    assert "\n" not in text


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal")
def test_a_background_job_gets_a_line(tmp_path):
    import pty

    main, terminal = pty.openpty()
    command = [sys.executable, "-c", CALL.replace("{before}", "")]
    subprocess.run(command, env=variables(tmp_path), stdout=subprocess.DEVNULL, stderr=terminal, timeout=300)
    os.close(terminal)
    assert os.read(main, 4096).decode() == f"pliant: {NOTICE}\r\n"
    os.close(main)


def test_a_notebook_gets_a_line_under_its_cell(tmp_path):
    before = """
import IPython.display, sys
class Shell:
    kernel = object()
class Handle:
    def update(self, what, raw): print("update", what["text/plain"].partition(" in ")[0], file=sys.stderr)
def display(what, raw, display_id):
    print("display", what["text/plain"], file=sys.stderr)
    return Handle()
IPython.get_ipython = Shell
IPython.display.display = display
"""
    done = call(tmp_path, before)
    assert done.stderr == f"display {NOTICE} …\nupdate kernels compiled\n"
    assert done.stdout == "result\n"


def test_a_closed_stderr_does_not_matter(tmp_path):
    assert call(tmp_path, "import sys; sys.stderr = None").stdout == "result\n"


# --- in this process, with events as numba sends them


class Event:
    def __init__(self, module: str):
        function = type("Function", (), {"__module__": module, "__qualname__": "kernel"})
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": function}), "args": ()}


@pytest.fixture
def watch(monkeypatch):
    monkeypatch.setenv(progress.QUIET, "1")
    fresh = progress._Watch()
    monkeypatch.setattr(progress, "_watch", fresh)
    return fresh


def test_listeners_hear_the_outermost_kernel(watch):
    heard = []
    outer, inner = Event("pliant.engines.constrained._step"), Event("pliant.spatial.kernels")
    with progress.listening(heard.append):
        watch.start(outer)
        watch.start(inner)
        watch.end(inner)
        watch.end(outer)
    watch.start(outer)
    watch.end(outer)
    assert len(heard) == 1
    assert heard[0].startswith("compiling kernels of the constrained engine, once, about ")
    assert len(progress.compiled()) == 3


def test_kernels_of_others_are_nobodys_business(watch):
    heard = []
    with progress.listening(heard.append):
        watch.start(Event("somebody.else"))
        watch.end(Event("somebody.else"))
    assert heard == progress.compiled() == []


@pytest.mark.parametrize("on", [True, False])
def test_garbage_collection_rests_meanwhile(watch, on):
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        watch.start(Event("pliant.contact._step"))
        assert not gc.isenabled()
        watch.end(Event("pliant.contact._step"))
        assert gc.isenabled() == on
    finally:
        (gc.enable if before else gc.disable)()


def test_the_view_says_what_is_compiled():
    """The panel of a live view shows the notice in place of the time until the next step is done."""
    import pliant

    with pliant.view(pliant.gallery.two_link(), port=0, block=False) as shown:
        shown.session.playing = False
        notice = "the quasi\\-static engine"  # as Markdown

        def compile_something() -> None:
            event = Event("pliant.engines.quasistatic._refinement")
            progress._watch.start(event)
            progress._watch.end(event)

        shown.runner.do(compile_something)
        for _ in range(100):
            if notice in shown.page._status.content:
                break
            time.sleep(0.05)
        assert notice in shown.page._status.content
