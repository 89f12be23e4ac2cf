"""`pliant.view`, its thread and its frame rate: handles, ports, errors, with no browser."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest

import pliant
from pliant.errors import InputError
from pliant.viewer import live
from pliant.viewer.live import FRAME, Pacing, Runner
from pliant.viewer.session import Session


@pytest.fixture(scope="module")
def arm():
    return pliant.gallery.helix(8)


def test_a_view_is_on_until_it_is_stopped(arm):
    shown = pliant.view(arm, port=0, block=False)
    try:
        assert shown.running
        assert shown.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(shown.url, timeout=10) as page:
            assert b"<html" in page.read(2000)
        assert shown.url in shown._repr_html_()
        assert "<iframe" in shown._repr_html_()
        before = shown.runner.ask(lambda: shown.session.time)
        shown.wait(0.3)
        assert shown.runner.ask(lambda: shown.session.time) > before
    finally:
        shown.stop()
    assert not shown.running
    assert not shown.runner.running
    shown.stop()
    assert "stopped" in repr(shown)
    assert "<iframe" not in shown._repr_html_()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(shown.url, timeout=2)


def test_no_tunnel_to_the_internet(arm, monkeypatch):
    """viser opens one for whoever asks; here nobody gets one."""

    def fail(*_):
        raise AssertionError("a tunnel was opened")

    monkeypatch.setattr("viser._viser.ViserTunnel", fail)
    with pliant.view(arm, port=0, block=False) as shown:
        assert shown._server.request_share_url() is None


def test_says_nothing_but_what_it_must(arm, capsys):
    with pliant.view(arm, port=0, block=False):
        pass
    assert capsys.readouterr().out == ""


def test_blocking(arm, capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pliant.viewer.live.time.sleep", interrupted)
    shown = pliant.view(arm, port=0)
    assert not shown.running
    assert f"at {shown.url}" in capsys.readouterr().out


def test_a_port_in_use(arm):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} .* in use.*port=0"):
            pliant.view(arm, port=port, block=False)
    with pliant.view(arm, port=port, block=False) as shown:
        assert shown.url.endswith(str(port))
        with pytest.raises(InputError, match="in use"):
            pliant.view(arm, port=port, block=False)


@pytest.mark.parametrize("port", [-1, 65536, "8080", 80.5, None, True])
def test_ports_that_are_none(arm, port):
    with pytest.raises(InputError, match="port"):
        pliant.view(arm, port=port, block=False)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host.invalid", 3])
def test_hosts_that_are_none(arm, host):
    with pytest.raises(InputError, match=r"host|cannot listen"):
        pliant.view(arm, host=host, port=0, block=False)


def test_what_cannot_be_viewed():
    with pytest.raises(InputError, match="a Mechanism"):
        pliant.view(3, block=False)  # pyright: ignore[reportArgumentType]


# --- the thread


def running(session, show=lambda: None):
    failures = []
    runner = Runner(session, show, lambda message, who: failures.append((message, who)))
    runner.start()
    return runner, failures


def test_commands_run_in_one_thread_in_order(arm):
    runner, failures = running(Session(arm))
    done, threads = [], set()
    try:
        for i in range(50):
            runner.do(lambda i=i: (done.append(i), threads.add(threading.get_ident())))  # pyright: ignore[reportArgumentType]
        runner.ask(lambda: None)
    finally:
        runner.stop()
    assert done == list(range(50))
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert not failures


def test_only_the_last_of_a_key_is_done(arm):
    session = Session(arm)
    runner = Runner(session, lambda: None, lambda *_: None)
    done = []
    for i in range(10):
        runner.do(lambda i=i: done.append(i), key="slider")
    runner.start()
    runner.ask(lambda: None)
    runner.stop()
    assert done == [9]


def test_errors_do_not_end_the_thread(arm, capsys):
    session = Session(arm)
    runner, failures = running(session)
    try:
        runner.do(lambda: session.set_engine("nonsense"), who="me")
        runner.do(lambda: 1 / 0, who="you")  # pyright: ignore[reportArgumentType]
        with pytest.raises(InputError):
            runner.ask(lambda: session.set_speed(-1))
        before = runner.ask(lambda: session.time)
        time.sleep(0.2)
        assert runner.ask(lambda: session.time) > before
    finally:
        runner.stop()
    assert [who for _, who in failures] == ["me", "you"]
    assert "the engine is one of" in failures[0][0]
    assert "ZeroDivisionError" in failures[1][0]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_view_that_cannot_be_drawn_goes_on(arm):
    def show():
        raise InputError("no picture")

    session = Session(arm)
    runner, failures = running(session, show)
    time.sleep(0.2)
    assert runner.running
    assert runner.ask(lambda: session.time) > 0
    runner.stop()
    assert failures


def test_many_threads_may_ask(arm):
    session = Session(arm)
    runner, failures = running(session)
    tip = arm.end_effectors[0]

    def play(number):
        for k in range(20):
            runner.do(lambda k=k: session.pull(number, tip, (0, 0, 0), (0, 0, 0.001 * k)))  # pyright: ignore[reportArgumentType]
            runner.do(lambda k=k: session.set_engine(("reduced", "constrained")[k % 2]))
            runner.do(lambda: session.release(number))

    threads = [threading.Thread(target=play, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    poses = runner.ask(lambda: session.poses.copy())
    runner.stop()
    assert np.isfinite(poses).all()
    assert not failures


# --- frames a second


class Watched:
    """A browser that takes as long as it is told for pictures and for the way, on a clock of its own."""

    def __init__(self, monkeypatch, picture, way, answers):
        self.now, self._picture, self._way, self._left = 0.0, picture, way, answers
        self.client_id = 7
        self.local_storage = SimpleNamespace(get_item=self.answer)
        self._server = SimpleNamespace(get_clients=lambda: {7: self} if self._left > 0 else {})
        monkeypatch.setattr(live, "time", SimpleNamespace(perf_counter=lambda: self.now, sleep=self.sleep))
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


@pytest.mark.parametrize("stopped", [True, False])
def test_threads_end_when_nothing_is_drawn_any_more(monkeypatch, stopped):
    """The view is stopped, or the browser has left, while the picture stands still."""
    browser = Watched(monkeypatch, 0.1, 0.001, 20)
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 5:
            browser.pacing.stopped = stopped
            browser._left = 20 if stopped else 0

    monkeypatch.setattr(live.time, "sleep", sleep)
    browser.watch()
    assert len(naps) == 5
    assert "pliant pacing" not in [thread.name for thread in threading.enumerate()]


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

    monkeypatch.setattr(live.time, "sleep", sleep)
    asked = []
    browser.local_storage.get_item = lambda *_, **__: (asked.append(len(naps)), browser.answer("", 2.0))
    browser.watch()
    assert min(asked) == 21
