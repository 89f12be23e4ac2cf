"""Every line of the shell blocks in docs/command-line.md works, in an empty folder with a robot in it; the tour too."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
PICTURES = {"hand.png", "pull.png", "squeeze.png", "grasp.png", "cable.png", "millipede.png"}
RECORDINGS = {"hand.html", "gripper.html", "grasp.html", "cable.html"}
BLOCK = re.compile(r"^```sh\n(?P<lines>.*?)^```", re.M | re.S)


def lines():
    text = PAGE.read_text(encoding="utf-8")
    return [line for block in BLOCK.finditer(text) for line in block["lines"].splitlines() if line.strip()]


def test_every_line_runs(cli, robot, tmp_path):
    assert len(lines()) > 15
    toured = ""
    for line in lines():
        if line == "pliant demo":
            line += " --quick"  # the whole tour takes its time
        if re.search(r"[|>]", line):
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            environment = {**os.environ, "PATH": path}
            done = subprocess.run(
                line, shell=True, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, (line, done.stderr)
        else:
            program, *arguments = shlex.split(line)
            assert program == "pliant"
            said = cli(*arguments).stdout
            assert said, line
            if arguments[0] == "demo":
                toured = said
    left = {path.name for path in tmp_path.iterdir()}
    assert left >= {"hand.png", "model.npz", "trajectory.npz", "robot.html", "hand.json", "pliant-demo"}
    check_tour(toured, tmp_path / "pliant-demo")


def check_tour(said, folder):
    """What the tour said and left behind."""
    left = {path.name: path.read_bytes()[:2000] for path in folder.iterdir()}
    assert set(left) == PICTURES | RECORDINGS
    assert all(left[name][:4] == b"\x89PNG" for name in PICTURES)
    assert all(b"<html" in left[name].lower() for name in RECORDINGS)
    assert all(name in said for name in left)
    heading, *lines = said.partition("\nIn ")[0].splitlines()
    column = slice(heading.index("accuracy"), heading.index("µs a step"))
    words = " ".join(line[column].strip() for line in lines)
    found = re.search(r"computed, off by (\S+) %; others left out, (\S+) %, at most 1 % allowed", words)
    assert found is not None, words
    assert float(found[2]) <= 1 < float(found[1]) < 3
    rows = [line.split()[0] for line in said.partition("\nIn ")[0].splitlines()[1:] if line[0] != " "]
    assert rows == ["hand"] * 2 + ["gripper"] * 2 + ["heavy"] + ["millipede"] * 2 + ["lifting"] * 2
    assert "Try next" in said


def test_demo_in_json(cli_json, monkeypatch):
    """The table as JSON; without the stages, which the page's test runs."""
    from pliant.cli import demo as tour

    row = tour.Entry("hand", 17, 0, "a pull", "reduced", "good", 1e-6)
    monkeypatch.setattr(tour, "take", lambda out, quick: tour.Tour(out, quick, [row], {"a.png": "a picture"}))
    found = cli_json("demo")
    assert found == {"rows": [row._asdict()], "files": {"a.png": "a picture"}}


def test_what_fails_elsewhere_is_said(refused, monkeypatch):
    """The second process reports; the first says it in one line."""
    from pliant.cli import demo as tour
    from pliant.errors import PliantError

    def fails(*_):
        raise PliantError("the millipede stumbled")

    monkeypatch.setattr(tour, "_receive", fails)
    for stage in ("_hand", "_gripper", "_cable", "_full_grasp"):
        monkeypatch.setattr(tour, stage, lambda tour: None)
    monkeypatch.setattr(tour, "_announce", lambda name: None)
    assert refused("demo", "--quick") == "the millipede stumbled"
