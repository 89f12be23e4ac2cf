"""`pliant sweep`, and the pictures it leaves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

from pliant.cli.app import app
from pliant.errors import PliantError
from pliant.study.plots import pareto_front

HEAD = 'mechanism = "gallery:two_link"\n'
ONE = '[parameters.k]\nstiffness = "*"\nlog = [10, 1000, 5]\n'
TWO = "[parameters.x]\nlinear = [0, 4, 5]\n"
F = "[outputs.f]\nfrequencies = 2\n"
Y = '[outputs.y]\nfunction = "functions_of_study:raises"\n'


@pytest.fixture
def sweep(folder):
    """Write a study, run `pliant sweep` on it; what it said."""

    def run(text: str, *arguments: str, code: int = 0):
        (folder / "study.toml").write_text(text)
        done = CliRunner().invoke(app, ["sweep", "study.toml", "--workers", "0", *arguments])
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        return done

    return run


def test_a_report(sweep, folder):
    done = sweep(HEAD + ONE + F)
    assert "5 cases of k" in done.stdout
    assert "f.1" in done.stdout
    assert "study.parquet" in done.stderr
    assert (folder / "study.parquet").exists()


def test_json_and_failures(sweep):
    found = json.loads(sweep(HEAD + TWO + Y, "--json").stdout)
    assert found["cases"] == 5
    assert found["errors"] == {"3": "ValueError: three is too many"}
    assert found["outputs"]["y"] == {"lowest": 0, "median": 1.5, "highest": 4}
    assert "1 of 5 cases failed, the first is case 3: ValueError" in sweep(HEAD + TWO + Y, "--resume").stderr


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        (HEAD + ONE.replace("stiffness", "stifness") + F, [], "did you mean 'stiffness'?"),
        (HEAD + ONE + F, ["--output", "table.csv"], "ends in .parquet expected"),
        (HEAD + ONE + F, ["--scheduler", "tcp://127.0.0.1:9"], "give one of them"),
    ],
)
def test_one_line_of_refusal(sweep, folder, text, arguments, says):
    done = sweep(text, *arguments, code=1)
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert done.stdout == ""
    assert not list(folder.glob("*.parquet*"))


@pytest.mark.parametrize(
    ("text", "pictures"),
    [
        (ONE + F.replace("2", "1"), ["response"]),
        (ONE + F, ["parallel", "pareto", "response"]),
        (ONE + TWO + F + Y.replace("raises", "square"), ["heatmap", "parallel", "pareto"]),
        (
            'samples = 9\nsampling = "latin"\n' + ONE.replace("log =", "values =") + TWO.replace("linear", "normal")
            .replace("[0, 4, 5]", "[1, 2]") + F + Y.replace("raises", "square"),
            ["heatmap", "parallel", "pareto"],
        ),
        (
            "samples = 40\n" + ONE.replace("log =", "uniform =").replace(", 5]", "]") + TWO.replace("linear", "uniform")
            .replace(", 5]", "]") + "[parameters.w]\nvalues = [1, 2]\n" + F + Y.replace("raises", "square"),
            ["parallel", "pareto", "response"],
        ),
    ],
)  # fmt: skip
def test_pictures(sweep, folder, text, pictures):
    sweep(HEAD + text, "--plot", "pictures")
    made = sorted((folder / "pictures").iterdir())
    assert [path.name for path in made] == [f"study-{name}.png" for name in pictures]
    for path in made:
        image = matplotlib.image.imread(path)
        assert 0.01 < (np.abs(image[..., :3] - 1).max(axis=2) > 0.02).mean() < 0.9


@pytest.mark.skipif(os.name == "nt", reason="terminals")
def test_a_terminal_is_told_how_it_goes(folder):
    """Bar, rate, time left, what is known so far, what failed last; gone in the end."""
    import pty

    (folder / "study.toml").write_text(
        HEAD + TWO.replace("4, 5", "19, 20") + Y.replace("raises", "slow_or_bad")
    )
    with (folder / "functions_of_study.py").open("a") as file:
        file.write(
            "def slow_or_bad(mechanism, parameters):\n    time.sleep(0.1)\n    return raises(mechanism, parameters)\n"
        )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pliant", "sweep", "study.toml", "--workers", "1"]
    environment = {**os.environ, "COLUMNS": "100", "LINES": "30", "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # what Linux says when the other side has closed
        while part := os.read(ours, 65536):
            said += part
    assert process.communicate(timeout=60)[0].decode().startswith("20 cases of x")
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    assert "0/20 cases, processes start" in text
    assert re.search(r"\d+/20 cases, [\d.]+/s, 1 failed \S+ 0:00:0\d left 0:00:0\d", text)
    assert re.search(r"output +lowest +mean +highest", text)
    assert "last failure: case 3: ValueError: three is too many" in text
    assert "1 of 20 cases failed" in text.splitlines()[-2]


def test_nothing_to_plot(make):
    results = make("text", 2).run(workers=0)
    with pytest.raises(PliantError, match="no case has succeeded"):
        results.plot("pictures")


def test_pareto_front():
    x, y = np.random.default_rng(0).random((2, 200))
    front = set(pareto_front(x, y).tolist())
    for i in range(200):
        beaten = ((x <= x[i]) & (y <= y[i]) & ((x < x[i]) | (y < y[i]))).any()
        assert (i in front) != beaten


def test_the_rate_of_a_resumed_sweep_is_that_of_new_cases(monkeypatch):
    from pliant.cli import sweep as command

    now = [0.0]
    monkeypatch.setattr(command, "monotonic", lambda: now[0])
    watch = command.Watch(1000)
    watch.progress(900, 0, 1000)  # rows that were there before
    watch.progress(900, 0, 1000)
    now[0] = 10.0
    watch.progress(920, 0, 1000)
    assert watch.bar.tasks[0].description == "920/1000 cases, 2/s"
