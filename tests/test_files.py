"""Files appear complete or not at all, and errors name them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import files
from pliant.errors import FormatError, InputError


@pytest.mark.parametrize("given", [None, 3, b"bytes", "", "a\0b"])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(InputError, match="path"):
        files.as_path(given)
    assert files.as_path("a") == Path("a")


def test_whole_files_are_read(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"12345")
    assert files.read_bytes(file, 5) == b"12345"
    with pytest.raises(FormatError, match="larger than 4 bytes"):
        files.read_bytes(file, 4)
    with pytest.raises(FormatError, match="is not a file"):
        files.read_bytes(tmp_path, 4)
    with pytest.raises(FormatError, match="no such file"):
        files.read_bytes(tmp_path / "b", 4)


def _write_open(path, data):
    with files.replacing(path) as file:
        file.write(data)
        if not data:
            raise KeyboardInterrupt


def _write_path(path, data):
    with files.replacing_path(path) as place:
        assert place.suffix == path.suffix
        place.write_bytes(data)
        if not data:
            raise KeyboardInterrupt


@pytest.mark.parametrize("write", [_write_open, _write_path])
def test_files_are_replaced_whole(tmp_path, write):
    file = tmp_path / "a.txt"
    write(file, b"old")
    with pytest.raises(KeyboardInterrupt):
        write(file, b"")
    assert file.read_bytes() == b"old"
    write(file, b"new")
    assert file.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.txt"]
    with pytest.raises(FormatError, match="cannot be written"):
        write(tmp_path / "none" / "a.txt", b"data")


def test_errors_of_writers_name_the_file(tmp_path):
    with pytest.raises(FormatError) as refused, files.replacing_path(tmp_path / "a.png") as place:
        raise InputError(f"'{place}' is odd")
    assert str(refused.value) == f"'{tmp_path / 'a.png'}' is odd"


def test_places_are_checked_beforehand(tmp_path):
    files.check_writable(tmp_path / "a.PNG", ".png")
    for path, suffixes, message in (
        (tmp_path, (), "it is a folder"),
        (tmp_path / "none" / "a", (), "there is no folder"),
        (tmp_path / "a.txt", (".png", ".svg"), "ends in .png or .svg expected"),
    ):
        with pytest.raises(FormatError, match=message):
            files.check_writable(path, *suffixes)


def test_values_for_json():
    given = {1: np.array([1.0, np.inf]), "a": (np.float64("nan"), np.int64(2), Path("b") / "c", True, None)}
    assert files.json_value(given) == {"1": [1.0, None], "a": [None, 2, str(Path("b") / "c"), True, None]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("way", ["archive", "text", "trajectory", "model"])
def test_devices_are_not_replaced(tmp_path, way):
    """Not even by root, who could make a file of /dev/null."""
    pipe = tmp_path / ("pipe.npz" if way != "text" else "pipe.json")
    os.mkfifo(pipe)
    m = pliant.gallery.two_link()
    saved = {"trajectory": pliant.simulate(m, "reduced").record(1), "model": pliant.reduce(m)}.get(way, m)
    with pytest.raises(FormatError, match="it is no regular file"):
        saved.save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]
