"""A path of equilibria in a live view, without a browser: place, branches, numbers, pages, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.errors import InputError
from pliant.viewer.path_session import PathSession


@pytest.fixture(scope="module")
def rods():
    """Two rods on springs that buckle at factors 0.5 and 2/3, with all branches."""
    b = pliant.Builder("rods")
    for i in range(2):
        b.body(f"rod{i}", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0, i, 1))
        b.hinge(f"pivot{i}", "world", f"rod{i}", anchor=(0, i, 0), axis=(0, 1, 0), stiffness=10.0)
    b.end_effectors("rod0")
    load = {"rod0": (0, 0, -20), "rod1": (0, 0, -15)}
    return pliant.path(b.build(), load, branches=True, depth=2)


@pytest.fixture
def session(rods):
    return PathSession(rods)


def test_it_starts_at_the_start_and_waits(session, rods):
    assert not session.playing
    assert session.advance(1.0) == 0
    assert (session.position, session.time, session.chosen) == (0.0, 0.0, "path")
    assert session.mechanism is rods.mechanism
    np.testing.assert_allclose(session.poses, rods.poses[0], atol=1e-12)
    assert (session.measure().factor, session.measure().stability) == (0.0, "stable")


def test_branches_have_names(session, rods):
    names = ["path", "branch 1", "branch 1.1", "branch 1.2", "branch 2", "branch 2.1", "branch 2.2"]
    assert list(session.paths) == [*names, "branch 3", "branch 4"]
    assert tuple(session.paths.values()) == rods.paths
    session.choose("branch 1.2")
    session.set_position(1.0)
    np.testing.assert_allclose(session.poses, rods.branches[0].branches[1].poses[-1], atol=1e-12)
    assert session.measure().stability == "stable"
    session.choose("branch 3")
    assert session.position == 0.0
    assert session.measure().factor == pytest.approx(2 / 3, abs=1e-6)


def test_places_between_equilibria(session, rods):
    """All computed equilibria lie on the way; between two of them, bodies are between their poses."""
    session.choose("branch 1")
    path = rods.branches[0]
    for i in range(1, len(path)):
        session.next_point()
        now = session.measure()
        np.testing.assert_allclose(session.poses, path.poses[i], atol=1e-12)
        assert now.factor == pytest.approx(path.factor[i], abs=1e-12)
        assert now.negative == path.negative[i]
    assert session.position == 1.0
    session.next_point()
    assert session.position == 1.0
    session.set_position(0.5)
    i = int(np.searchsorted(path.trajectory().time, 2.5))
    angle = np.arctan2(session.poses[0, 0, 3], session.poses[0, 2, 3])
    low, high = sorted(path.q[i - 1 : i + 1, 0])
    assert low < angle < high
    np.testing.assert_allclose(
        np.hypot(*session.poses[0, [0, 2], 3]), 1.0, atol=1e-12
    )  # a hinge: on its circle
    assert path.factor[i - 1] < session.measure().factor < path.factor[i]


def test_stability_changes_at_the_branch_points(session, rods):
    found = []
    for position in np.arange(0.0013, 1, 0.0025):  # at none of the branch points
        session.set_position(position)
        found.append((session.measure().factor, session.measure().negative))
    factor, negative = np.array(found).T
    expected = (factor > 0.5).astype(int) + (factor > 2 / 3)
    np.testing.assert_array_equal(negative, expected)
    assert rods.point_texts == ("branch point at 0.5", "branch point at 0.666667")


def test_it_plays_to_the_end_and_pauses(session):
    session.playing = True
    for _ in range(300):
        session.advance(0.02, budget=1.0)
    assert session.position == 1.0
    assert not session.playing
    session.reset()
    assert session.position == 0.0


def test_what_is_refused(session, rods):
    with pytest.raises(InputError, match="there is no path 'branch 9'"):
        session.choose("branch 9")
    with pytest.raises(InputError, match="position"):
        session.set_position(1.5)
    with pytest.raises(InputError, match="cannot be pulled"):
        session.pull("mouse", "rod0", (0, 0, 1), (1, 0, 1))
    one = pliant.continuation.Path(rods.mechanism, rods.factor[:1], rods.q[:1], rods.negative[:1])
    with pytest.raises(InputError, match="a single equilibrium"):
        PathSession(one)


def test_the_page_of_a_path(rods, monkeypatch):
    """Controls and readouts follow the session, and the mark in the diagram moves."""
    with pliant.view(rods, port=0, block=False) as shown:
        page: Any = shown.page
        session, notes = shown.session, []
        client = SimpleNamespace(add_notification=lambda *args, **_: notes.append(args))
        shown.runner.stop()
        monkeypatch.setattr(shown._server, "get_clients", lambda: {1: client})
        page.show()
        assert page._status.content == "load factor 0: **stable**"
        assert page._play.label == "Play"
        before = page._image.image
        page._go_to(75.0)
        page._redraw()
        page.show()
        assert page._status.content.endswith("**unstable**, 2 motions with negative stiffness")
        assert page._position.value == pytest.approx(75.0)
        assert "branch point at 0" in page._points.content
        after = page._image.image
        assert before.dtype == np.uint8
        red = [np.argwhere((image == (198, 40, 40)).all(axis=2)).mean(axis=0) for image in (before, after)]
        assert red[1][0] < red[0][0] - 100  # a larger factor is higher up
        assert red[1][1] == pytest.approx(red[0][1], abs=1)  # upright all the way
        page._press("Step")
        assert 0.75 < session.position < 0.8
        session.choose("branch 1")
        page._press("Reset")
        page._set_playing(True)
        session.step(600)
        page._redraw()
        page._select(0)
        page.show()
        assert page._play.label == "Play"  # the end has come
        assert page._chosen.value == "branch 1"
        assert page._status.content == "load factor 1: **unstable**, 1 motion with negative stiffness"
        assert page._selection.content.startswith("**rod0** at (")
        page._set_playing(True)
        assert session.position == 0.0
        assert not notes


def test_views_of_paths_run(rods):
    with pliant.view(rods.branches[0], port=0, block=False) as shown:
        assert "rods" in repr(shown)
        shown.runner.ask(lambda: shown.page._set_playing(True))  # as the button does
        shown.wait(0.3)
        assert shown.runner.ask(lambda: shown.session.position) > 0
