"""Frames that the live view records."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.errors import InputError
from pliant.viewer import recorder
from pliant.viewer.recorder import Recorder
from pliant.viewer.session import Session, WorldSession


def test_frames_are_a_thirtieth_of_a_second_apart_and_carry_loads():
    session = Session(pliant.gallery.helix(6))
    session.step(10)  # 1/240 s each
    session.recorder = made = Recorder(session)
    tip = session.pose("link6")[:3, 3]
    session.pull("mouse", "link6", tip, tip + np.array([0, 0, 0.02]))
    poses = [session.poses.copy()]
    for _ in range(24):
        session.step(2)
        poses.append(session.poses.copy())
    found = made.trajectory()
    np.testing.assert_allclose(found.time, np.arange(7) / 30, atol=1e-12)
    np.testing.assert_allclose(found.poses, poses[::4], atol=1e-6)  # kept in single precision
    assert found.loads.shape == (7, 1, 2, 3)
    assert not found.loads[0].any()
    (pull,) = session.pulls.values()
    np.testing.assert_allclose(found.loads[-1, 0], [pull.at(session.poses), pull.force], atol=1e-12)


def test_a_reset_goes_on_in_time():
    session = Session(pliant.gallery.two_link())
    session.recorder = made = Recorder(session)
    session.step(24)
    session.reset()
    session.step(24)
    assert (np.diff(made.trajectory().time) > 0).all()
    assert made.seconds == pytest.approx(0.2)


def test_worlds():
    session = WorldSession(pliant.scenes.grasp())
    session.recorder = made = Recorder(session)
    session.step(60)
    found = made.trajectory()
    assert found.mechanism is session.mechanism
    assert found.loads.shape[1] > 0
    np.testing.assert_allclose(found.poses[-1], session.poses, atol=1e-6)


def test_nothing_has_moved():
    with pytest.raises(InputError, match="press Play"):
        Recorder(Session(pliant.gallery.two_link())).trajectory()


def test_there_is_an_end(monkeypatch):
    monkeypatch.setattr(recorder, "_MOST_POSES", 8)
    session = Session(pliant.gallery.two_link())
    session.recorder = made = Recorder(session)
    session.step(240)
    for _ in range(100):
        session.step(8)
    assert made.full
    assert len(made) == 4
    assert len(made.trajectory()) == 4
