"""The command line in this process, and one in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pliant.cli.app import app

PENDULUM = """<mujoco model="robot"><worldbody>
  <body name="arm"><joint name="shoulder" axis="0 1 0" stiffness="20" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
    <body name="tip" pos=".3 0 0"><joint name="elbow" axis="0 0 1" stiffness="10" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></body>
</worldbody></mujoco>"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def cli():
    """Run `pliant ARGUMENTS` here; checks the exit code, returns what it said."""

    def run(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr, result.exception)
        return result

    return run


@pytest.fixture
def cli_json(cli):
    """The JSON a command prints; nothing else may be on stdout."""

    def run(*arguments: str, code: int = 0):
        return json.loads(cli(*arguments, "--json", code=code).stdout, parse_constant=pytest.fail)

    return run


@pytest.fixture
def refused(cli):
    """The one line that a failing command says."""

    def run(*arguments: str, code: int = 1):
        result = cli(*arguments, code=code)
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("pliant: error: ")
        assert result.stdout == ""
        return lines[0].removeprefix("pliant: error: ")

    return run


@pytest.fixture
def process():
    """Run Python in a process of its own: `process("-m", "pliant", ...)`."""

    def run(*arguments: str, **options):
        environment = {**os.environ, "NO_COLOR": "1"}
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300, **options
        )

    return run


@pytest.fixture
def robot(tmp_path):
    """An MJCF file."""
    path = tmp_path / "robot.xml"
    path.write_text(PENDULUM, encoding="utf-8")
    return path
