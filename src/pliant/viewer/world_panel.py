"""`WorldPanel`: contacts of a world that is viewed."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.mechanism.summary import counted
from pliant.viewer.overlay import newtons
from pliant.viewer.panel import Panel, add_plot, plain, values
from pliant.viewer.world_session import WorldSession

__all__ = ["WorldPanel"]

_BLUE, _GREEN, _RED = "#1f6fb4", "#2e8b57", "#c62828"


class WorldPanel(Panel):
    """Handles of all controls, and the words they show."""

    def __init__(self, server: Any, session: WorldSession):
        gui, m = server.gui, session.mechanism
        super().__init__(server, m.name, counted(m.body_count, "moving body", "moving bodies"))
        with gui.add_folder("Contacts"):
            self.forces = gui.add_checkbox("Forces", True, hint="arrows, where things touch")
            self.clear = gui.add_checkbox("See through", False, hint="arrows inside bodies, too")
            self.about = gui.add_markdown("")
            self.selected = gui.add_markdown("")
        with gui.add_folder("Plots", expand_by_default=False):
            self._force = add_plot(gui, "Sum of contact forces (N)", ("force", _GREEN))
            self._depth = add_plot(gui, "Penetration (mm)", ("penetration", _RED))
            self._step = add_plot(gui, "Step (µs)", ("step", _BLUE))

    def selection(self, body: str | None, session: WorldSession) -> None:
        """Say what is selected, and what its contacts do to it."""
        if body is None:
            self.selected.content = ""
            return
        force = session.force_on(body)
        direction = f", along {_direction(force)}" if force.any() else ""
        self.selected.content = f"On **{plain(body)}** contacts act with {newtons(force)}{direction}"

    def numbers(self, session: WorldSession) -> None:
        """Time, pulls and contacts in words."""
        now = session.measure()
        self._say_status(session, now, session.pulls)
        largest = np.array([session.contacts.largest, 0.0, 0.0])
        words = counted(now.contacts, "contact")
        if now.contacts:
            words += f", the longest arrow is {newtons(largest)}"
        if now.depth > 1e-6:
            words += f"  \nSurfaces are inside each other by {1000 * now.depth:.2g} mm"
        self.about.content = words

    def plots(self, session: WorldSession) -> None:
        past = session.history
        if len(past) < 2:
            return
        time = values(past, "time")
        self._force.data = (time, values(past, "force"))
        self._depth.data = (time, values(past, "depth", 1000))
        self._step.data = (time, values(past, "step_time", 1e6))


def _direction(force: np.ndarray) -> str:
    x, y, z = force / np.linalg.norm(force)
    return f"({x:.2f}, {y:.2f}, {z:.2f})"
