"""Results on disk: nothing lost, nothing overwritten, everything explained."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pliant
from pliant.errors import FormatError, PliantError
from pliant.study import load, store
from pliant.study.store import parts_of


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("study"))


def test_columns_and_rows(make, folder):
    results = make().run(workers=0)
    assert results.arrow.column_names == [
        *["index", "x", "k", "y.k", "y.noise", "y.square", "seed", "version", "duration", "error"]
    ]
    assert names(folder) == ["study.parquet"]
    assert set(results.columns["version"]) == {pliant.__version__}
    again = load("study.parquet")
    assert again.complete
    assert repr(again) == "<Results 'study.parquet': 6 of 6 cases, 0 failed>"
    expected = np.random.default_rng(int(again.columns["seed"][4])).normal()
    assert again.columns["y.noise"][4] == expected


def test_results_are_not_overwritten(make, folder):
    make().run(workers=0)
    before = (folder / "study.parquet").read_bytes()
    for change, how, says in (
        ({}, {}, "has 6 of 6 results already"),
        ({"seed": 1}, {"resume": True}, r"of another study \(seed differ\)"),
        ({"count": 7}, {"resume": True}, r"of another study \(parameters differ\)"),
        ({"mechanism": "gallery:y"}, {"resume": True}, r"of another study \(mechanism differ\)"),
    ):
        with pytest.raises(PliantError, match=says):
            make(**change).run(workers=0, **how)
    assert (folder / "study.parquet").read_bytes() == before
    assert names(folder) == ["study.parquet"]


def test_another_version_is_refused(make, folder, monkeypatch):
    make().run(workers=0)
    before = (folder / "study.parquet").read_bytes()
    monkeypatch.setattr(pliant, "__version__", "9.9")
    with pytest.raises(PliantError, match=r"are of pliant .*, this is 9\.9: put new ones elsewhere"):
        make().run(workers=0, resume=True)
    assert (folder / "study.parquet").read_bytes() == before
    assert names(folder) == ["study.parquet"]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_full_disk(make, folder, monkeypatch, at):
    """The definition, a part or the table does not fit."""
    original, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FormatError, match="No space left on device") as caught:
        make().run(workers=0)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    results = make().run(workers=0, resume=True)
    assert results.complete


SMALL = """
import sys
from pliant.errors import PliantError
from pliant.study import Study, load
study = Study("gallery:two_link", {"x": {"linear": [0, 239, 240]}}, {"y": {"function": "functions_of_study:slow"}},
              "small/study.parquet")
try:
    study.run(workers=0)
except PliantError as error:
    print(error)
    print(len(load("small/study.parquet")))
"""


def test_a_quota_for_real(folder):
    """A file system of 20 kB, where one may mount such a thing: 12 s of parts, one a second, do not fit."""
    (folder / "small").mkdir()
    (folder / "small.py").write_text(SMALL)
    mount = "mount -t tmpfs -o size=20k none small && exec "
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    try:
        able = subprocess.run([*command, mount + "true"], capture_output=True, timeout=20).returncode == 0
    except OSError:
        able = False
    if not able:
        pytest.skip("no file system can be mounted here")
    run = f"{mount}{sys.executable} small.py"
    done = subprocess.run([*command, run], capture_output=True, text=True, timeout=100)
    said, kept = done.stdout.splitlines()
    assert "No space left on device" in said, done.stderr
    assert 0 < int(kept) < 240


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(make, folder):
    (folder / "locked").mkdir(mode=0o500)
    with pytest.raises(FormatError, match="cannot be written: Permission denied"):
        make(results="locked/study.parquet").run(workers=0)


def test_a_file_in_the_way(make, folder):
    (folder / "plain").touch()
    with pytest.raises(FormatError, match="cannot be written: "):
        make(results="plain/study.parquet").run(workers=0)
    (folder / "study.parquet").write_text("no table")
    with pytest.raises(FormatError, match=r"study\.parquet' cannot be read"):
        make().run(workers=0)
    assert (folder / "study.parquet").read_text() == "no table"


@pytest.mark.parametrize(
    "record", ["[]", "3", '"text"', "{}", '{"study": 1}', '{"study": {"outputs": [1]}}', "[" * 10**5]
)
def test_records_that_are_none(make, folder, record):
    parts = parts_of(folder / "study.parquet")
    parts.mkdir()
    (parts / "study.json").write_text(record)
    for read in (lambda: load("study.parquet"), lambda: make().run(workers=0, resume=True)):
        with pytest.raises(FormatError, match=r"study\.json'"):
            read()


def test_parts_with_strange_names_or_content(make, folder):
    make().run(workers=0)
    parts = parts_of(folder / "study.parquet")
    parts.mkdir()
    (folder / "study.parquet").rename(parts / "00000001.parquet")
    about = (store.read_table(parts / "00000001.parquet").schema.metadata)[b"pliant"]
    (parts / "study.json").write_bytes(about)
    (parts / "copy of 1.parquet").write_bytes((parts / "00000001.parquet").read_bytes())
    with pytest.raises(FormatError, match=r"copy of 1\.parquet' is no part of a study"):
        make().run(workers=0, resume=True)
    (parts / "copy of 1.parquet").unlink()
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1]}), parts / "00000002.parquet")
    with pytest.raises(FormatError, match="no part of a study"):
        load("study.parquet")


def test_a_study_nested_too_deep(folder):
    from pliant.study.study import read

    (folder / "deep.toml").write_text("a = " + "[" * 10**5 + "]" * 10**5)
    with pytest.raises(FormatError, match=r"deep\.toml' is nested too deep"):
        read("deep.toml")


def test_loading_nothing(folder):
    with pytest.raises(FormatError, match="there are no results of a study"):
        load("nothing.parquet")


def test_parts_and_table_overlap(make, folder, same):
    """The client died after writing the table, before removing the parts: every case is there once all the same."""
    done = make("raises").run(workers=0)
    parts = parts_of(folder / "study.parquet")
    parts.mkdir()
    (folder / "study.parquet").rename(parts / "00000001.parquet")
    about = (store.read_table(parts / "00000001.parquet").schema.metadata)[b"pliant"]
    (parts / "study.json").write_bytes(about)
    same(load("study.parquet"), done)
    (folder / "study.parquet").write_bytes((parts / "00000001.parquet").read_bytes())
    same(load("study.parquet"), done)
    (folder / "mended").touch()
    assert make("raises").run(workers=0, resume=True).complete
    assert names(folder) == ["study.parquet"]


def test_columns_of_every_kind():
    import pyarrow as pa

    for values in ([1, None, -3], [0.5, None, 2.0], ["a", None, "äöü"], [True, None, False], []):
        kind = type(values[0]) if values else float
        found = store.column(values, kind)
        found.validate(full=True)
        assert found.to_pylist() == values
        assert found.equals(pa.array(values, found.type))
    floats = store.values_of(pa.chunked_array([[1.0, None], [3.0]]))
    assert np.array_equal(floats, [1, np.nan, 3], equal_nan=True)
    assert store.values_of(pa.chunked_array([["a", None]])).tolist() == ["a", None]
    assert store.values_of(pa.chunked_array([[True, False]])).dtype == bool


def test_grids_and_frames(make):
    study = make(
        parameters={
            "x": [1, 2, 3],
            "word": ["a", "b"],
            "k": {"stiffness": "*", "uniform": [1.0, 2.0]},
        },
        samples=4,
    )
    results = study.run(workers=0)
    assert results.grid("y.square").shape == (3, 2, 4)
    grid = results.to_xarray()
    assert grid["y.square"].sel(x=3, word="b").values.tolist() == [9] * 4
    assert (grid["y.k"].isel(x=0, word=1).values == grid["k"].values).all()
    frame = results.table
    assert frame[frame.word == "b"]["x"].tolist() == [x for x in (1, 2, 3) for _ in range(4)]
    with pytest.raises(PliantError, match=r"there is no output 'y.sqare'; did you mean 'y.square'"):
        results.grid("y.sqare")


def test_without_pandas_and_xarray(make, monkeypatch):
    results = make().run(workers=0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "xarray", None)
    assert results.table["x"].tolist() == list(range(6))
    with pytest.raises(PliantError, match="pip install xarray"):
        results.to_xarray()


def test_without_pyarrow(make, monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PliantError, match=r"which comes with pliant\[study\]: pip install pyarrow"):
        make().run(workers=0)
    assert names(folder) == []


def test_pandas_is_not_imported():
    """It takes longer than many a study."""
    code = """
        import sys
        from pliant.study import Study
        k, f = {"stiffness": "*", "values": [1, 2]}, {"frequencies": 1}
        Study("gallery:two_link", {"k": k}, {"f": f}, "a.parquet").run(workers=0).columns
        assert not {"pandas", "distributed", "matplotlib"} & {*sys.modules}
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(FormatError, match="it is no file"):
        store.read_table(tmp_path / "pipe.parquet")
