"""`Panel`: the controls and numbers beside the picture. It shows a session; what controls do is `page`'s business."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.mechanism.summary import counted
from pliant.viewer.measures import Ellipsoid
from pliant.viewer.overlay import newtons
from pliant.viewer.session import SCALES, SPEEDS, STRENGTHS, Session
from pliant.viewer.setup import ENGINES

__all__ = ["Panel"]

_BLUE, _ORANGE, _GREEN, _RED = "#1f6fb4", "#d9822b", "#2e8b57", "#c62828"
_MOST = 200  # names in a list


class Panel:
    """Handles of all controls, and the words they show."""

    def __init__(self, server: Any, session: Session):
        gui = server.gui
        self._gui = gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(31, 111, 180))
        gui.main_panel.dock_right()
        m = session.mechanism
        loops = f", {counted(m.topology.loops, 'loop')}" if m.topology.loops else ""
        size = f"{counted(m.body_count, 'body', 'bodies')}, {counted(m.joint_count, 'joint')}{loops}"
        gui.add_markdown(f"**{_plain(m.name)}**, {size}  \nDrag a body to pull it, click it to select it.")
        with gui.add_folder("Simulation"):
            self.play = gui.add_button("Pause", icon="player-pause")
            self.buttons = gui.add_button_group("", ("Step", "Reset"))
            self.speed = _slider(gui, "Speed", SPEEDS, "simulated time per real time")
            self.engine = gui.add_dropdown("Engine", ENGINES, initial_value=session.engine)
            self.gravity = gui.add_checkbox("Gravity", session.gravity, hint="off: weight is compensated")
            self.stiffness = _slider(gui, "Stiffness", SCALES, "of all joints, times their own")
            self.strength = _slider(gui, "Pull strength", STRENGTHS, "stiffness of the springs that pull")
            self.status = gui.add_markdown(
                "Starting. An engine that runs for the first time compiles for a while."
            )
        with gui.add_folder("End effectors"):
            self.effectors = gui.add_text(
                "Bodies", ", ".join(session.end_effectors), hint="names, with commas between them"
            )
            self.apply = gui.add_button("Apply", hint="reduce to these bodies and go on from here")
            self.selected = gui.add_markdown("")
            self.toggle = gui.add_button("Add selected", visible=False)
            self.shown = gui.add_dropdown("At", session.end_effectors[:_MOST])
            self.ellipsoid = gui.add_checkbox(
                "Ellipsoid", False, hint="how it gives way to forces: long is soft"
            )
            self.target = gui.add_checkbox("Target", False, hint="a handle to pull the end effector to")
            self.about = gui.add_markdown("", visible=False)
        with gui.add_folder("Accuracy"):
            self.violation = gui.add_markdown("")
            self.add = gui.add_button(
                "Add a model here",
                icon="circle-plus",
                hint="find the true equilibrium under the present pulls, make a model there, blend it in",
            )
        with gui.add_folder("Plots", expand_by_default=False):
            self._energy = _plot(
                gui, "Energy (J)", ("kinetic", _BLUE), ("elastic", _ORANGE), ("gravity", _GREEN)
            )
            self._gap = _plot(gui, "Violation (mm)", ("violation", _RED))
            self._step = _plot(gui, "Step (µs)", ("step", _BLUE))

    # --- showing a session

    def state(self, session: Session) -> None:
        """Controls as the session has them: what was refused goes back."""
        self.play.label = "Pause" if session.playing else "Play"
        self.play.icon = "player-pause" if session.playing else "player-play"
        self.engine.value, self.gravity.value = session.engine, session.gravity
        for slider, value in (
            (self.speed, session.speed),
            (self.stiffness, session.stiffness),
            (self.strength, session.strength),
        ):
            slider.value = value

    def effector_names(self, names: tuple[str, ...]) -> None:
        """List other end effectors."""
        self.effectors.value = ", ".join(names)
        before, listed = self.shown.value, names[:_MOST]
        self.shown.options = listed
        self.shown.value = before if before in listed else listed[0]

    def selection(self, body: str | None, session: Session) -> None:
        """Say what is selected, and offer to make it an end effector or to make it none."""
        self.toggle.visible = body is not None
        if body is None:
            self.selected.content = ""
            return
        mass = session.mechanism.mass[session.mechanism.body_index(body)]
        self.selected.content = f"Selected: **{_plain(body)}**, {mass:.3g} kg"
        self.toggle.label = "Remove selected" if body in session.end_effectors else "Add selected"

    def numbers(self, session: Session) -> None:
        """Time, forces and violation in words."""
        now = session.measure()
        slow = f", {now.rate:.2f} of real time" if session.playing and now.rate < 0.9 * session.speed else ""
        step = session.simulation.timestep
        lines = [
            f"t = {now.time:.2f} s{slow}",
            f"steps of 1/{1 / step:.0f} s, {1e6 * now.step_time:.0f} µs each",
        ]
        lines += [f"**{_plain(pull.body)}** {newtons(pull.force)}" for pull in session.pulls.values()]
        self.status.content = "  \n".join(lines)
        share = now.violation / session.mechanism.radius
        gap, share = (now.violation, share) if share > 1e-9 else (0.0, 0.0)  # rounding
        words = f"Constraint violation **{1000 * gap:.3g} mm**, {100 * share:.2g} % of the radius"
        if session.engine == "blended":
            words += f"  \n{counted(session.model_count, 'model')} blended"
        self.violation.content = words

    def about_effector(self, body: str, shape: Ellipsoid | None, force: float) -> None:
        """Principal stiffnesses of an end effector."""
        self.about.visible = shape is not None
        if shape is not None:
            values = ", ".join(_stiffness(value) for value in shape.stiffness)
            self.about.content = (
                f"Stiffness of **{_plain(body)}**: {values}  \nEllipsoid: moved by {force:g} N"
            )

    def plots(self, session: Session) -> None:
        """Draw the history."""
        past = session.history
        if len(past) < 2:
            return
        time = np.array([now.time for now in past])
        energies = np.array([(n.energy.kinetic, n.energy.elastic, n.energy.potential) for n in past])
        self._energy.data = (time, *np.ascontiguousarray(energies.T))
        self._gap.data = (time, np.array([1000 * now.violation for now in past]))
        self._step.data = (time, np.array([1e6 * now.step_time for now in past]))


# --- pieces


def _slider(gui: Any, label: str, limits: tuple[float, float], hint: str) -> Any:
    low, high = limits
    marks = tuple((value, f"{value:g}") for value in (low, 1.0, high))
    return gui.add_slider(label, low, high, low, 1.0, marks=marks, hint=hint)


def _plot(gui: Any, title: str, *series: tuple[str, str]) -> Any:
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


def _stiffness(value: float) -> str:
    if not np.isfinite(value):
        return "rigid"
    return f"{value / 1000:.3g} kN/m" if value >= 1e3 else f"{value:.3g} N/m"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()#+-.!|<>&" else c for c in text)
