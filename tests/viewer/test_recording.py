"""Recordings: which frames are taken, that files are complete, and that a browser plays them without a network."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pliant
from pliant.errors import FormatError, InputError
from pliant.viewer import record_html
from pliant.viewer.recording import frames


@pytest.fixture(scope="module")
def swing():
    simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.helix(10)), 1 / 120)
    simulation.apply_wrench("link10", force=(0, 0, -60))
    return simulation.record(60)


def test_frames_are_the_nearest(swing):
    m = swing.mechanism

    def at(*times):
        n = len(times)
        return pliant.Trajectory(m, np.array(times), np.tile(m.reference_poses, (n, 1, 1, 1)))

    assert frames(at(0.0), 30).tolist() == [0]
    assert frames(at(*np.arange(0, 1.001, 0.1)), 5).tolist() == [0, 2, 4, 6, 8, 10]
    assert frames(at(*np.arange(0, 1.001, 0.1)), 1000).tolist() == list(range(11))
    assert frames(at(5.0, 5.01, 5.02, 6.0), 10).tolist() == [0, 2, 3]
    assert frames(swing, 30).tolist()[:3] == [0, 4, 8]
    assert frames(swing, 30).tolist()[-1] == 59


@pytest.mark.parametrize("fps", [0, -1, float("nan"), 1e9, "30", None, True])
def test_frames_a_second_that_are_none(swing, fps, tmp_path):
    with pytest.raises(InputError, match="fps"):
        record_html(swing, tmp_path / "swing.html", fps=fps)
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused(swing, tmp_path):
    m = swing.mechanism
    path = tmp_path / "swing.html"
    poses = np.tile(m.reference_poses, (2, 1, 1, 1))
    bad = poses.copy()
    bad[1, 0, 0, 3] = np.nan
    for trajectory, words in (
        (m, "Trajectory expected"),
        (pliant.Trajectory(m, np.zeros(0), poses[:0]), "empty"),
        (pliant.Trajectory(m, np.array([0.0, 1.0]), poses[:, 1:]), "shape"),
        (pliant.Trajectory(m, np.array([0.0, 1.0]), bad), "finite"),
        (pliant.Trajectory(m, np.array([1.0, 1.0]), poses), "increase"),
    ):
        with pytest.raises(InputError, match=words):
            record_html(trajectory, path)
    with pytest.raises(FormatError):
        record_html(swing, tmp_path / "nowhere" / "swing.html")
    with pytest.raises(InputError):
        record_html(swing, "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_when_the_new_one_is_complete(swing, tmp_path, monkeypatch, capsys):
    path = tmp_path / "swing.html"
    path.write_text("old")

    def fail(*_):
        raise RuntimeError("stopped on the way")

    with monkeypatch.context() as patch:
        patch.setattr("pliant.viewer.scene.Scene.update", fail)
        with pytest.raises(RuntimeError):
            record_html(swing, path)
    assert path.read_text() == "old"
    assert record_html(swing, path) == path
    assert path.stat().st_size > 500_000
    assert [file.name for file in tmp_path.iterdir()] == ["swing.html"]
    assert "<title>helix 10</title>" in path.read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""


def test_a_recording_plays_from_a_file_without_a_network(swing, tmp_path, chromium, look, monkeypatch):
    monkeypatch.setattr("pliant.viewer.scene._MANY", 0)  # no shadows: they take seconds a frame in software
    path = record_html(swing, tmp_path / "swing.html", fps=10)
    # The only address in it is the name of a format, inside a picture.
    assert set(re.findall(r"https?://[\w./-]+", path.read_text(encoding="utf-8"))) <= {
        "http://www.w3.org/2000/svg"
    }
    context = chromium.new_context(viewport={"width": 420, "height": 320}, offline=True)
    page = context.new_page()
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("canvas")
    seen = []
    for _ in range(60):
        image = look(page)
        if dark(image) > 0.005:
            seen.append(image)
            if np.abs(image - seen[0]).max() > 0.1:
                break
        page.wait_for_timeout(200)
    context.close()
    assert seen, "nothing is drawn"
    assert np.abs(seen[-1] - seen[0]).max() > 0.1, "nothing moves"
    assert not problems
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def dark(image):
    """Fraction of pixels that are neither background nor floor."""
    return float((image.min(axis=2) < 0.7).mean())
