"""`WorldPage`: a world in the browser, with its contact forces."""

from __future__ import annotations

import threading
from typing import Any

from pliant.viewer.page import Page
from pliant.viewer.runner import Runner
from pliant.viewer.world_panel import WorldPanel
from pliant.viewer.world_session import WorldSession

__all__ = ["WorldPage"]


class WorldPage(Page):
    """A `WorldSession` for all clients alike."""

    room = 1.8  # things move about
    panel: WorldPanel

    def __init__(self, server: Any, session: WorldSession):
        session.playing = False  # until somebody looks: what is done to a world happens once
        super().__init__(server, session, WorldPanel(server, session))

    def connect(self, runner: Runner) -> None:
        super().connect(runner)
        self._when(self.panel.forces, lambda _: None)
        self._when(self.panel.clear, self.scene.fade)
        started = threading.Event()

        @self._server.on_client_connect
        async def _(_: Any) -> None:
            if not started.is_set():
                started.set()
                runner.do(self._start)

    def _start(self) -> None:
        self._session.playing = True
        self.panel.state(self._session)

    def _draw(self) -> None:
        self.overlay.contacts(self._session.contacts if self.panel.forces.value else None)

    def _say_more(self) -> None:
        self.panel.selection(self.selected, self._session)
