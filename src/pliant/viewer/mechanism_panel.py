"""`MechanismPanel`: engines, springs, end effectors and accuracy of a mechanism that is viewed."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.mechanism.summary import counted
from pliant.viewer.measures import Ellipsoid
from pliant.viewer.panel import Panel, add_plot, add_slider, plain, values
from pliant.viewer.session import SCALES, Session
from pliant.viewer.setup import ENGINES

__all__ = ["MechanismPanel"]

_BLUE, _ORANGE, _GREEN, _RED = "#1f6fb4", "#d9822b", "#2e8b57", "#c62828"
_MOST = 200  # names in a list


class MechanismPanel(Panel):
    """Handles of all controls, and the words they show."""

    def __init__(self, server: Any, session: Session):
        self._engine, self._gravity = session.engine, session.gravity
        m, gui = session.mechanism, server.gui
        loops = f", {counted(m.topology.loops, 'loop')}" if m.topology.loops else ""
        size = f"{counted(m.body_count, 'body', 'bodies')}, {counted(m.joint_count, 'joint')}{loops}"
        super().__init__(server, m.name, size)
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
            self._energy = add_plot(
                gui, "Energy (J)", ("kinetic", _BLUE), ("elastic", _ORANGE), ("gravity", _GREEN)
            )
            self._gap = add_plot(gui, "Violation (mm)", ("violation", _RED))
            self._step = add_plot(gui, "Step (µs)", ("step", _BLUE))

    def _controls(self, gui: Any) -> None:
        self.engine = gui.add_dropdown("Engine", ENGINES, initial_value=self._engine)
        self.gravity = gui.add_checkbox("Gravity", self._gravity, hint="off: weight is compensated")
        self.stiffness = add_slider(gui, "Stiffness", SCALES, "of all joints, times their own")

    # --- showing a session

    def state(self, session: Session) -> None:
        super().state(session)
        self.engine.value, self.gravity.value = session.engine, session.gravity
        self.stiffness.value = session.stiffness

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
        self.selected.content = f"Selected: **{plain(body)}**, {mass:.3g} kg"
        self.toggle.label = "Remove selected" if body in session.end_effectors else "Add selected"

    def numbers(self, session: Session) -> None:
        """Time, forces and violation in words."""
        now = session.measure()
        self._say_status(session, now, session.pulls)
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
                f"Stiffness of **{plain(body)}**: {values}  \nEllipsoid: moved by {force:g} N"
            )

    def plots(self, session: Session) -> None:
        """Draw the history."""
        past = session.history
        if len(past) < 2:
            return
        time = values(past, "time")
        energies = np.array([(n.energy.kinetic, n.energy.elastic, n.energy.potential) for n in past])
        self._energy.data = (time, *np.ascontiguousarray(energies.T))
        self._gap.data = (time, values(past, "violation", 1000))
        self._step.data = (time, values(past, "step_time", 1e6))


def _stiffness(value: float) -> str:
    if not np.isfinite(value):
        return "rigid"
    return f"{value / 1000:.3g} kN/m" if value >= 1e3 else f"{value:.3g} N/m"
