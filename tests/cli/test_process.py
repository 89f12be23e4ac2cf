"""The command line as users start it: processes, pipes, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pliant

# Ctrl-C after the third frame, from outside the code under test but not earlier than its loop.
INTERRUPTED = """
import os, signal, sys
import pliant
from pliant.cli import main

original, calls = pliant.ConstrainedSimulation.step, []

def step(self, n=1):
    calls.append(n)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGINT)
    original(self, n)

pliant.ConstrainedSimulation.step = step
sys.argv[0] = "pliant"
main()
"""
# Ctrl-C while numba compiles, in the middle of one of its passes.
COMPILING = """
import os, signal, sys
from numba.core.compiler_machinery import PassManager
from pliant.cli import main

original, calls = PassManager._runPass, []

def run(self, *arguments):
    calls.append(0)
    if len(calls) == 40:
        os.kill(os.getpid(), signal.SIGINT)
    return original(self, *arguments)

PassManager._runPass = run
sys.argv[0] = "pliant"
main()
"""
RUN = ("run", "gallery:two_link", "--engine", "constrained", "-s", "100", "-t", "0.001")


def test_module(process):
    done = process("-m", "pliant", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"pliant {pliant.__version__}\n", "")


def test_script_and_json(process):
    script = Path(sys.executable).with_name("pliant")
    if not script.exists():
        pytest.skip("pliant is not installed")
    done = subprocess.run(
        [script, "info", "gallery:hand", "--json"], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["bodies"] == 17


def test_error_without_traceback(process):
    done = process("-m", "pliant", "info", "missing.xml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pliant: error: 'missing.xml': there is no such file\n"


def test_interrupt_saves_what_there_is(process):
    done = process("-c", INTERRUPTED, *RUN, "-o", "path.npz", "--json")
    assert done.returncode == 130
    path = pliant.Trajectory.load("path.npz")
    assert len(path) == 4  # the start and three frames
    assert (
        done.stderr
        == f"pliant: interrupted at {path.time[-1]:.6g} s of 100 s; what there was is in path.npz\n"
    )
    found = json.loads(done.stdout)
    assert found["interrupted"]
    assert found["time"] == path.time[-1]
    m = pliant.gallery.two_link()
    simulation = pliant.ConstrainedSimulation(m, 0.001)
    simulation.step(found["steps"])
    np.testing.assert_allclose(path.poses[-1], simulation.poses, rtol=0, atol=1e-12)


def test_interrupt_with_nothing_to_save(process):
    done = process("-c", INTERRUPTED, *RUN)
    assert done.returncode == 130
    assert done.stderr.count("\n") == 1
    assert "nothing was to be saved" in done.stderr


def test_interrupt_while_compiling(process, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cold"))
    monkeypatch.delenv(
        "PLIANT_COMPILATION_REPORT", raising=False
    )  # what is compiled here is compiled on purpose
    monkeypatch.setenv("PLIANT_QUIET", "1")  # on a busy machine a notice may come before the signal
    done = process("-c", COMPILING, *RUN, "-o", "path.npz")
    # Python ends itself by the signal if that came while an `exec` ran; to a shell both are 130.
    assert done.returncode in (130, -signal.SIGINT)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("pliant: interrupted")
    if Path("path.npz").exists():
        assert done.stderr.endswith("what there was is in path.npz\n")


def test_interrupt_while_arguments_are_read(process):
    code = "import signal, typer.core as t\ndef stop(*a, **k): signal.raise_signal(signal.SIGINT)\n"
    code += "from pliant.cli import main\nt.TyperGroup.parse_args = stop\nmain()"
    done = process("-c", code, "info", "gallery:hand")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "pliant: interrupted\n")


def test_interrupt_while_pliant_is_imported(process):
    code = "import signal, sys\nclass Stop:\n    def find_spec(self, name, *_):\n"
    code += "        if name == 'pliant.mechanism': signal.raise_signal(signal.SIGINT)\n"
    code += "sys.meta_path.insert(0, Stop())\nfrom pliant_start import main\nmain()"
    done = process("-c", code, "info", "gallery:hand")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "pliant: interrupted\n")


def test_interrupt_anywhere_else(process):
    code = "import signal, pliant.source as s\ndef stop(*a, **k): signal.raise_signal(signal.SIGINT)\n"
    code += "s.resolve = stop\nfrom pliant.cli import main\nmain()"
    done = process("-c", code, "info", "gallery:hand")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "pliant: interrupted\n")


@pytest.mark.skipif(shutil.which("head") is None, reason="needs head")
def test_closed_pipe():
    command = f"{sys.executable} -m pliant info gallery:helix:2000 --json | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300)
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr


def test_help_imports_no_engine(process):
    code = "import sys\nfrom pliant.cli.app import app\ntry:\n    app(['--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('numba', 'scipy', 'mujoco', 'matplotlib', 'viser') if m in sys.modules])"
    done = process("-c", code)
    assert done.stdout.splitlines()[-1] == "[]"


def test_import_does_not_load_the_command_line(process):
    code = "import sys, pliant\nprint([m for m in ('typer', 'rich', 'pliant.cli') if m in sys.modules])"
    assert process("-c", code).stdout == "[]\n"


def test_completion():
    environment = {**os.environ, "_PLIANT_COMPLETE": "complete_bash", "COMP_WORDS": "pliant info gallery:hea"}
    environment["COMP_CWORD"] = "2"
    script = Path(sys.executable).with_name("pliant")
    if not script.exists():
        pytest.skip("pliant is not installed")
    done = subprocess.run([script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["gallery:heavy_ball"]


@pytest.mark.skipif(os.name == "nt", reason="no process groups")
def test_interrupted_tour(tmp_path):
    """Ctrl-C reaches both processes of the tour; one of them says so."""
    started = subprocess.Popen(
        [sys.executable, "-m", "pliant", "demo", "--quick", "--out", "tour"],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    first = started.stderr.readline()  # the second process has been started by then
    os.killpg(started.pid, signal.SIGINT)
    said, rest = started.communicate(timeout=300)
    assert "hand" in first
    assert (said, rest) == ("", "pliant: interrupted\n")
    # Python ends itself by the signal if that came while an `exec` ran; to a shell both are 130.
    assert started.returncode in (130, -signal.SIGINT)


def test_termination_saves_what_there_is(process):
    """SIGTERM keeps what Ctrl-C keeps."""
    done = process("-c", INTERRUPTED.replace("SIGINT", "SIGTERM"), *RUN, "-o", "path.npz")
    assert done.returncode == 130
    assert len(pliant.Trajectory.load("path.npz")) == 4
    assert done.stderr.endswith("what there was is in path.npz\n")


def test_terminals_that_know_few_characters(process, monkeypatch):
    Path("größe").mkdir()
    Path("größe/ä.json").write_text(json.dumps(json.loads(_saved())))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("LC_ALL", "C")
    for command in (("info", "größe/ä.json"), ("info", "größe/none.json")):
        done = process("-m", "pliant", *command)
        assert "Traceback" not in done.stderr
        assert "Unicode" not in done.stderr
        assert "gr" in done.stdout + done.stderr


def _saved():
    pliant.gallery.two_link().save("two.json")
    return Path("two.json").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
@pytest.mark.parametrize("command", ["info gallery:hand", "gallery", "gallery --json"])
def test_a_closed_stdout_is_no_error(command):
    line = f"{sys.executable} -m pliant {command} >&-"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["run", "compare"])
def test_steps_too_short_to_end_are_refused(process, command):
    done = process("-m", "pliant", command, "gallery:two_link", "-t", "1e-50")
    assert done.returncode == 1
    assert "lengthen --timestep" in done.stderr
