"""How often browsers are sent pictures: as often as they can draw them."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from pliant.viewer import pacing
from pliant.viewer.pacing import FRAME, Pacing


class Watched:
    """A browser that takes as long as it is told for pictures and for the way, on a clock of its own."""

    def __init__(self, monkeypatch, picture, way, answers):
        self.now, self._picture, self._way, self._left = 0.0, picture, way, answers
        self.client_id = 7
        self.local_storage = SimpleNamespace(get_item=self.answer)
        self._server = SimpleNamespace(get_clients=lambda: {7: self} if self._left > 0 else {})
        monkeypatch.setattr(pacing, "time", SimpleNamespace(perf_counter=lambda: self.now, sleep=self.sleep))
        self.pacing = Pacing(self._server)
        self.intervals = [FRAME]

    def sleep(self, seconds):
        self.intervals.append(self.pacing.interval)
        self.now += seconds + 0.3819660113 * len(self.intervals) * self._picture  # at any moment of a picture
        self.pacing.drawn = True

    def answer(self, key, timeout):
        """At the next end of a picture, unless there is no answer at all."""
        self._left -= 1
        if self._picture > timeout:
            self.now += timeout
            raise TimeoutError
        asked = self.now + self._way / 2
        self.now = (asked // self._picture + 1) * self._picture + self._way / 2
        if self._left % 5 == 0:
            raise RuntimeError("Failed to read localStorage: blocked")  # an answer all the same

    def watch(self):
        before = threading.active_count()
        self.pacing.watch(self)
        for thread in threading.enumerate():
            if thread.name == "pliant pacing":
                thread.join(10)
        assert threading.active_count() <= before
        return self.intervals[-1]


@pytest.mark.parametrize("way", [0.001, 0.13])
def test_a_browser_that_keeps_up(monkeypatch, way):
    """Near or far."""
    assert Watched(monkeypatch, 1 / 60, way, 60).watch() == FRAME


@pytest.mark.parametrize("way", [0.001, 0.13])
def test_a_slow_browser(monkeypatch, way):
    found = Watched(monkeypatch, 0.1, way, 60).watch()
    assert 0.09 < found < 0.2  # what a picture takes is known to a part of it


def test_a_very_slow_browser(monkeypatch):
    assert Watched(monkeypatch, 1.5, 0.001, 60).watch() == 0.25
    assert Watched(monkeypatch, 100.0, 0.001, 60).watch() <= 0.25


def test_who_has_left_counts_no_more(monkeypatch):
    browser = Watched(monkeypatch, 0.1, 0.001, 20)
    browser.watch()
    assert browser.pacing.interval == FRAME


def test_the_slowest_counts():
    shared = Pacing(None)
    shared._times.update({1: 0.001, 2: 0.1, 3: 0.05})
    assert shared.interval == pytest.approx(0.15)


def test_still_pictures_ask_nothing(monkeypatch):
    browser = Watched(monkeypatch, 0.1, 0.001, 10)
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        browser.pacing.drawn = len(naps) > 20  # nothing moves at first
        browser.now += seconds

    monkeypatch.setattr(pacing.time, "sleep", sleep)
    asked = []
    browser.local_storage.get_item = lambda *_, **__: (asked.append(len(naps)), browser.answer("", 2.0))
    browser.watch()
    assert min(asked) == 21
