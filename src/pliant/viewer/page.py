"""`Page`: what browsers see of a session, and what they ask of it, as far as all views have it.

Callbacks run in viser's threads. None of them touches the session: each hands a command to the runner.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.viewer.overlay import Overlay
from pliant.viewer.pacing import Pacing
from pliant.viewer.panel import Panel
from pliant.viewer.runner import Runner
from pliant.viewer.scene import Scene

__all__ = ["Page"]

_WORDS, _PLOTS = 0.2, 0.5  # s between updates of numbers and of plots


class Page:
    """The scene, what is drawn over it, and the panel, for all clients alike."""

    room = 1.0  # around what is seen at first

    def __init__(self, server: Any, session: Any, panel: Panel):
        self._server, self._session, self.panel = server, session, panel
        self.scene = Scene(server, session.mechanism, session.poses, self.room)
        self.overlay = Overlay(server, self.scene.size)
        self.pacing = Pacing(server)
        self.selected: str | None = None
        self._frame: tuple[Any, ...] = ()
        self._said, self._plotted = 0.0, 0.0
        panel.state(session)

    # --- what clients ask for

    def connect(self, runner: Runner) -> None:
        """Let controls, clicks and drags do what they say."""
        self._runner, panel, session = runner, self.panel, self._session
        for handle in self.scene.handles:
            handle.on_drag("left")(self._drag)
            handle.on_click(self._click)
        self._when(panel.play, lambda _: self._set_playing(not session.playing))
        self._when(panel.buttons, self._press)
        self._when(panel.speed, session.set_speed)
        self._when(panel.strength, session.set_strength)

        @self._server.on_client_connect
        async def _(client: Any) -> None:
            self.pacing.watch(client)
            runner.do(self._redraw)

        @self._server.on_client_disconnect
        async def _(client: Any) -> None:
            runner.do(lambda: session.release(client.client_id))

    def _when(self, control: Any, change: Callable[[Any], None]) -> None:
        """Have a change made whenever somebody uses a control."""

        async def callback(event: Any) -> None:
            if event.client is None:
                return  # it was set from here
            value = event.target.value

            def command() -> None:
                try:
                    change(value)
                finally:  # also after a refusal: the control then goes back
                    self.panel.state(self._session)
                    self._redraw()

            button = hasattr(control, "on_click")
            self._runner.do(command, event.client, None if button else id(control))

        (control.on_click if hasattr(control, "on_click") else control.on_update)(callback)

    def _press(self, which: str) -> None:
        if which == "Step":
            self._session.playing = False
            self._session.step()
        else:
            self._reset()

    def _reset(self) -> None:
        self._session.reset()

    def _set_playing(self, on: bool) -> None:
        self._session.playing = on

    async def _drag(self, event: Any) -> None:
        key, session = event.client_id, self._session
        if event.phase == "end":
            self._runner.do(lambda: session.release(key))
            return
        target = event.end_position
        if event.phase == "start":
            body = self.scene.body(event.target, event.instance_index)
            if body >= 0:
                name, point = session.mechanism.body_names[body], event.start_position
                self._runner.do(lambda: self._grab(key, name, point, target), event.client)
            return
        self._runner.do(lambda: session.move(key, target), event.client, ("drag", key))

    def _grab(self, key: Any, body: str, point: Any, target: Any) -> None:
        self._session.pull(key, body, point, target)

    async def _click(self, event: Any) -> None:
        body = self.scene.body(event.target, event.instance_index)
        self._runner.do(lambda: self._select(body), event.client)

    def _select(self, body: int) -> None:
        m = self._session.mechanism
        name = m.body_names[body] if body >= 0 else None
        self.selected = None if name == self.selected else name
        self.panel.selection(self.selected, self._session)
        shade = np.array([0.6 if other == self.selected else 0.0 for other in m.body_names])
        self.scene.colour(shade if self.selected is not None else None)

    # --- what clients are told

    def fail(self, message: str, who: Any) -> None:
        """Tell a client, or all of them, what went wrong."""
        short = message if len(message) < 500 else f"{message[:500]} ..."
        for client in [who] if who is not None else self._server.get_clients().values():
            client.add_notification("That did not work", short, color="red", auto_close_seconds=12.0)
        self.panel.state(self._session)

    def _say(self, title: str, text: str) -> None:
        for client in self._server.get_clients().values():
            client.add_notification(title, text, color="green", auto_close_seconds=8.0)

    def _redraw(self) -> None:
        self._frame, self._said, self._plotted = (), 0.0, 0.0

    def compiling(self, notice: str) -> None:
        """Tell clients what is compiled while the simulation waits for it."""
        self.panel.compiling(notice)
        self._said = 0.0
        self._server.flush()

    def show(self) -> None:
        """Draw the session as it stands, if anybody looks and anything has changed."""
        if not self._server.get_clients():
            return
        session, now = self._session, time.monotonic()
        frame = (*self._state(), *(p.target.tobytes() for p in session.pulls.values()))
        if frame != self._frame:
            self._frame = frame
            with self._server.atomic():
                self.scene.update(session.poses)
                self.overlay.pulls(session.pulls)
                self._draw()
            self.pacing.drawn = True
        if now - self._said >= _WORDS:
            self._said = now
            self.panel.numbers(session)
            self._say_more()
        if now - self._plotted >= _PLOTS:
            self._plotted = now
            self.panel.plots(session)
        self._server.flush()

    def _state(self) -> tuple[Any, ...]:
        """What a picture depends on, besides pulls."""
        return (self._session.time,)

    def _draw(self) -> None:
        """Draw what only some sessions have."""

    def _say_more(self) -> None:
        """Update slowly what only some sessions have."""
