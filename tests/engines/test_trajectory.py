"""Files of trajectories: round trips without loss; damaged files are refused."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import pliant
from pliant.errors import FormatError, InputError
from pliant.formats.json_file import pieces


@pytest.fixture(scope="module")
def path():
    """A trajectory of three bodies, without a simulation."""
    m = pliant.gallery.flexure_stage()
    poses = np.repeat(m.reference_poses[None], 4, axis=0)
    poses[:, 0, :3, 3] += np.arange(4.0)[:, None] / 3
    return pliant.Trajectory(m, np.array([0.0, 0.1, 0.25, 1.0]), poses)


def contents(file):
    """The members of an archive as arrays."""
    with np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def test_nothing_is_lost(path, tmp_path):
    path.save(tmp_path / "path.npz")
    back = pliant.Trajectory.load(tmp_path / "path.npz")
    np.testing.assert_array_equal(back.time, path.time)
    np.testing.assert_array_equal(back.poses, path.poses)
    assert "".join(pieces(back.mechanism)) == "".join(pieces(path.mechanism))
    assert [p.name for p in tmp_path.iterdir()] == ["path.npz"]


def test_a_simulation_comes_back(tmp_path):
    simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.two_link()), 0.01)
    simulation.apply_wrench("right", force=(0, 0, 50))
    recorded = simulation.record(20)
    recorded.save(tmp_path / "path.npz")
    np.testing.assert_array_equal(pliant.Trajectory.load(str(tmp_path / "path.npz")).poses, recorded.poses)


def test_folders_that_are_not_there(path, tmp_path):
    with pytest.raises(FormatError, match="cannot be written"):
        path.save(tmp_path / "missing" / "path.npz")
    with pytest.raises(FormatError, match="no such file"):
        pliant.Trajectory.load(tmp_path / "missing.npz")


def text(value):
    return np.frombuffer(value.encode(), dtype=np.uint8)


def turned(poses):
    out = poses.copy()
    out[1, 0, :, 0] *= -1  # a reflection
    return out


def scaled(poses):
    out = poses.copy()
    out[2, 1, :, :3] *= 1.01
    return out


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("about", lambda a: text('{"format": "pliant-reduced-model", "version": 1}'), "holds no trajectory"),
        ("about", lambda a: text('{"format": "pliant-trajectory", "version": 2}'), "newer pliant"),
        ("about", lambda a: text("[" * 100_000), "holds no trajectory"),
        ("mechanism", lambda a: text("{}"), "no pliant mechanism"),
        ("mechanism", lambda a: None, "'mechanism' is missing"),
        ("time", lambda a: None, "'time' is missing"),
        ("time", lambda a: a[:-1], "shape"),
        ("time", lambda a: a[::-1].copy(), "does not rise"),
        ("time", lambda a: a * np.nan, "finite"),
        ("time", lambda a: a[:, None], "shape"),
        ("time", lambda a: a[:0], "shape"),
        ("time", lambda a: a.astype(np.float32), "kind"),
        ("poses", lambda a: a[:, :-1], "shape"),
        ("poses", lambda a: np.full_like(a, np.inf), "finite"),
        ("poses", turned, "no rotation"),
        ("poses", scaled, "no rotation"),
        ("poses", lambda a: a * 1e200, "no rotation"),
        ("poses", lambda a: a.astype(object), "damaged"),
    ],
)
def test_damaged_files(path, tmp_path, name, change, words):
    file = tmp_path / "path.npz"
    path.save(file)
    arrays = contents(file)
    changed = change(arrays.pop(name))
    if changed is not None:
        arrays[name] = changed
    np.savez(file, allow_pickle=True, **arrays)
    with pytest.raises(FormatError, match=words):
        pliant.Trajectory.load(file)


def test_no_archive(path, tmp_path):
    file = tmp_path / "path.npz"
    file.write_text("no archive")
    with pytest.raises(FormatError, match="no trajectory file"):
        pliant.Trajectory.load(file)
    path.save(file)
    whole = file.read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        file.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            pliant.Trajectory.load(file)


def test_packed_archives_are_refused(path, tmp_path):
    file = tmp_path / "path.npz"
    path.save(file)
    np.savez_compressed(file, **contents(io.BytesIO(file.read_bytes())))
    assert zipfile.is_zipfile(file)
    with pytest.raises(FormatError, match="packed"):
        pliant.Trajectory.load(file)


def test_times_of_a_strange_size_are_refused():
    class Odd:
        size = ("a", "b")

    m = pliant.gallery.two_link()
    with pytest.raises(InputError, match="trajectory: time"):
        pliant.Trajectory(m, Odd(), np.zeros((1, m.body_count, 4, 4)))  # pyright: ignore[reportArgumentType]
