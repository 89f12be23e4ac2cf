"""`Panel`: the controls and numbers beside the picture, as far as all views have them.

A panel shows a session; what controls do is the page's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pliant.viewer.clock import SPEEDS, STRENGTHS
from pliant.viewer.overlay import newtons
from pliant.viewer.pulls import Pull

__all__ = ["Panel", "add_plot", "add_slider", "plain", "values"]


class Panel(ABC):
    """Handles of controls, and the words they show."""

    def __init__(self, server: Any, title: str, size: str):
        """Prepare.

        Args:
            server: a `viser.ViserServer`.
            title: what is shown.
            size: how much there is of it.
        """
        gui = server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(31, 111, 180))
        gui.main_panel.dock_right()
        gui.add_markdown(f"**{plain(title)}**, {size}  \nDrag a body to pull it, click it to select it.")
        with gui.add_folder("Simulation"):
            self.play = gui.add_button("Pause", icon="player-pause")
            self.buttons = gui.add_button_group("", ("Step", "Reset"))
            self.speed = add_slider(gui, "Speed", SPEEDS, "simulated time per real time")
            self._controls(gui)
            self.strength = add_slider(gui, "Pull strength", STRENGTHS, "stiffness of the springs that pull")
            self.status = gui.add_markdown(
                "Starting. An engine that runs for the first time compiles for a while."
            )

    def _controls(self, gui: Any) -> None:  # noqa: B027 - there may be none
        """More controls of the simulation, below those of time."""

    def state(self, session: Any) -> None:
        """Controls as the session has them: what was refused goes back."""
        self.play.label = "Pause" if session.playing else "Play"
        self.play.icon = "player-pause" if session.playing else "player-play"
        self.speed.value, self.strength.value = session.speed, session.strength

    @abstractmethod
    def selection(self, body: str | None, session: Any) -> None:
        """Say what is selected."""

    @abstractmethod
    def numbers(self, session: Any) -> None:
        """What is measured now, in words."""

    @abstractmethod
    def plots(self, session: Any) -> None:
        """Draw the history."""

    def compiling(self, notice: str) -> None:
        """Say what is compiled, in place of the time, which stands still."""
        self.status.content = f"*{plain(notice)} …*"

    def _say_status(self, session: Any, now: Any, pulls: Mapping[Any, Pull]) -> None:
        """Time, how long it takes, and forces of pulls."""
        slow = f", {now.rate:.2f} of real time" if session.playing and now.rate < 0.9 * session.speed else ""
        lines = [
            f"t = {now.time:.2f} s{slow}",
            f"steps of 1/{1 / session.timestep:.0f} s, {1e6 * now.step_time:.0f} µs each",
        ]
        lines += [f"**{plain(pull.body)}** {newtons(pull.force)}" for pull in pulls.values()]
        self.status.content = "  \n".join(lines)


# --- pieces


def add_slider(gui: Any, label: str, limits: tuple[float, float], hint: str) -> Any:
    """A slider around 1."""
    low, high = limits
    marks = tuple((value, f"{value:g}") for value in (low, 1.0, high))
    return gui.add_slider(label, low, high, low, 1.0, marks=marks, hint=hint)


def add_plot(gui: Any, title: str, *series: tuple[str, str]) -> Any:
    """A plot over time of series, each a name and a colour."""
    from viser import uplot

    lines = tuple(uplot.Series(label=label, stroke=colour, width=1.5) for label, colour in series)
    empty = np.zeros(2)
    return gui.add_uplot(
        (np.array([0.0, 1.0]), *(empty for _ in series)),
        (uplot.Series(label="t (s)"), *lines),
        title=title,
        scales={"x": uplot.Scale(time=False)},
        legend=uplot.Legend(show=len(series) > 1),
        height=170,
    )


def values(past: Iterable[Any], word: str, unit: float = 1.0) -> Any:
    """One number of all measurements."""
    return np.array([unit * getattr(now, word) for now in past])


def plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()#+-.!|<>&" else c for c in text)
