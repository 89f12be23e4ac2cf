"""Whatever is wrong, one line says so, and the exit code tells."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import pliant

FILES = {
    "empty.xml": b"",
    "text.xml": b"this is no model",
    "broken.xml": b"<mujoco><worldbody>",
    "other.json": b'{"a": 1}',
    "cut.npz": b"PK\x03\x04 and then nothing",
}


@pytest.mark.parametrize("command", ["info", "reduce", "run", "compare"])
def test_no_such_file(refused, command):
    assert "no such file" in refused(command, "missing.xml")
    assert "did you mean 'gallery:hand'?" in refused(command, "hand")


@pytest.mark.parametrize("name", FILES)
def test_wrong_files(refused, name):
    Path(name).write_bytes(FILES[name])
    assert name in refused("info", name)


def test_a_folder_is_no_file(refused):
    assert "not a file" in refused("info", ".")


def test_npz_that_is_no_model(refused):
    np.savez("numbers.npz", a=np.zeros(3))
    assert "holds no reduced model" in refused("info", "numbers.npz")


def test_misspelt_names(refused):
    assert "did you mean 'hand'?" in refused("gallery", "hnd")
    assert "did you mean 'heavy_ball'?" in refused("run", "gallery:heavi_ball")
    assert "did you mean 'index_tip'" in refused("reduce", "gallery:hand", "-e", "indx_tip")
    assert "did you mean 'index_tip'" in refused("run", "gallery:hand", "-w", "indx_tip:0,0,1")
    assert "did you mean 'index_tip'" in refused("run", "gallery:hand", "-e", "indx_tip")
    assert "did you mean 'index_tip'" in refused("compare", "gallery:hand", "-e", "indx_tip")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("gallery:helix:zwei", "links"),
        ("gallery:helix:5,6", "too many"),
        ("gallery:helix:link=5", "it takes links"),
        ("gallery:helix:5,links=6", "given twice"),
        ("gallery:loop:5", "it takes no arguments"),
        ("gallery:", "the gallery has no ''"),
    ],
)
def test_gallery_arguments(refused, source, words):
    assert words in refused("info", source)


@pytest.mark.parametrize(
    ("wrench", "words"),
    [
        ("index_tip:0,0,nan", "not all numbers are finite"),
        ("index_tip:inf,0,0", "not all numbers are finite"),
        ("index_tip:1,2", "BODY:FX,FY,FZ expected"),
        ("index_tip", "BODY:FX,FY,FZ expected"),
        ("index_tip:a,b,c", "BODY:FX,FY,FZ expected"),
        ("world:0,0,1", "the world does not move"),
    ],
)
@pytest.mark.parametrize("command", ["reduce", "run", "compare"])
def test_wrenches(refused, command, wrench, words):
    assert words in refused(command, "gallery:hand", "-w", wrench)


def test_wrench_twice(refused):
    two = "-w", "index_tip:0,0,1", "-w", "index_tip:0,0,2"
    assert "one on 'index_tip' already" in refused("run", "gallery:hand", *two)


@pytest.mark.parametrize("number", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("command", ["reduce", "run", "map", "compare"])
def test_default_stiffness(refused, command, number):
    """Also where every joint has a spring."""
    said = refused(command, "gallery:hand", f"--default-stiffness={number}")
    assert "default stiffness: a number above 0 expected" in said


@pytest.mark.parametrize("number", ["0", "-1", "nan", "inf"])
def test_times(refused, number):
    run = "run", "gallery:two_link"
    for option in ("--seconds", "--timestep", "--fps"):
        assert "expected" in refused(*run, option, number)
    assert "expected" in refused("compare", "gallery:two_link", "--timestep", number)
    assert "expected" in refused("compare", "gallery:two_link", "--pull", number)


def test_too_much_to_keep(refused):
    assert "lower --fps" in refused("run", "gallery:hand", "-s", "1e6", "--fps", "1000")


@pytest.mark.parametrize(
    "arguments",
    [
        ("reduce", "gallery:two_link", "-o"),
        ("run", "gallery:two_link", "-s", "0.01", "-o"),
        ("run", "gallery:two_link", "-s", "0.01", "--plot"),
        ("run", "gallery:two_link", "-s", "0.01", "--record"),
        ("compare", "gallery:two_link", "--plot"),
    ],
    ids=["reduce", "trajectory", "plot", "record", "compare"],
)
def test_places_that_cannot_be_written(refused, arguments, monkeypatch):
    assert "there is no folder 'missing'" in refused(*arguments, "missing/file.npz")
    assert "it is a folder" in refused(*arguments, ".")
    assert "expected" in refused(*arguments, "file.unknown")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "is read-only" in refused(*arguments, "file.npz")


def test_no_folder_for_pictures(refused):
    assert "there is no such folder" in refused("gallery", "--pictures", "missing")


def test_a_device_is_not_replaced(refused):
    assert "no regular file" in refused("run", "gallery:two_link", "-o", os.devnull)


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk(refused, monkeypatch):
    monkeypatch.setattr(np, "savez", full)
    for command in ("reduce", "run"):
        assert "No space left on device" in refused(command, "gallery:two_link", "-o", "file.npz")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    for command in ("reduce", "run", "compare"):
        said = refused(command, "gallery:two_link", "--plot", "file.png")
        assert said == "'file.png' cannot be written: No space left on device"
    assert list(Path().iterdir()) == []


def test_demo_without_a_folder(refused):
    Path("file").write_text("")
    assert "file" in refused("demo", "--out", "file/inside", "--quick")


def test_usage(refused):
    assert "No such command 'fly'" in refused("fly", code=2)
    assert "No such option" in refused("run", "gallery:hand", "--sedonds", "1", code=2)
    assert "see 'pliant run --help'" in refused("run", code=2)
    refused("run", "gallery:hand", "--engine", "steam", code=2)
    refused("run", "gallery:hand", "--seconds", "soon", code=2)
    refused("run", "gallery:hand", "--seed", "-1", code=2)


def test_a_motion_that_fails_keeps_what_there_was(cli, monkeypatch):
    original = pliant.ReducedSimulation.step

    def step(self, n=1):
        if self.time > 0.05:
            raise pliant.errors.ConvergenceError("the motion left the finite numbers")
        original(self, n)

    monkeypatch.setattr(pliant.ReducedSimulation, "step", step)
    said = cli("run", "gallery:two_link", "-s", "1", "-o", "path.npz", code=1)
    assert said.stderr.splitlines() == [
        "pliant: error: the motion left the finite numbers; what there was is in path.npz"
    ]
    assert 0.05 < pliant.Trajectory.load("path.npz").time[-1] < 0.1


def test_warnings_take_one_line(cli, robot):
    robot.write_text(robot.read_text().replace('name="elbow"', 'name="elbow" frictionloss="1"'))
    lines = cli("info", robot).stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("pliant: warning: ")


def test_what_terminals_obey_is_escaped(refused):
    """Names come from files of strangers."""
    Path("strange.json").write_text(
        '{"format": "pliant-mechanism", "version": 1, "\\u001b]0;title\\u0007": 1}'
    )
    assert "'\\x1b]0;title\\x07'" in refused("info", "strange.json")
    assert refused("info", "\x1b[31m\n\u202e.json").startswith("'\\x1b[31m \\u202e.json'")
