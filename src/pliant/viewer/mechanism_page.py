"""`MechanismPage`: a mechanism in the browser: engines, springs, end effectors, models that are added."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.errors import InputError, PliantError
from pliant.viewer.mechanism_panel import MechanismPanel
from pliant.viewer.page import Page
from pliant.viewer.runner import Runner
from pliant.viewer.session import Session

__all__ = ["MechanismPage"]

_TARGET = "target"


class MechanismPage(Page):
    """A `Session` for all clients alike."""

    panel: MechanismPanel

    def __init__(self, server: Any, session: Session):
        self._shape: tuple[str, Any] | None = None
        super().__init__(server, session, MechanismPanel(server, session))

    def connect(self, runner: Runner) -> None:
        super().connect(runner)
        panel, session = self.panel, self._session
        self.overlay.target.on_update(self._move_target)
        self._when(panel.apply, lambda _: self._set_effectors(_names(panel.effectors.value)))
        self._when(panel.toggle, lambda _: self._toggle())
        self._when(panel.add, lambda _: self._add_model())
        for control, change in (
            (panel.engine, session.set_engine),
            (panel.gravity, lambda on: self._lost(session.set_gravity(on))),
            (panel.stiffness, lambda x: self._lost(session.set_stiffness(x))),
            (panel.shown, lambda _: self._set_target(panel.target.value)),
            (panel.ellipsoid, lambda _: None),
            (panel.target, self._set_target),
        ):
            self._when(control, change)

    def _reset(self) -> None:
        super()._reset()
        self._set_target(False)

    def _toggle(self) -> None:
        if self.selected is not None:
            known = self._session.end_effectors
            without = tuple(body for body in known if body != self.selected)
            self._set_effectors(without if self.selected in known else (*known, self.selected))

    def _set_effectors(self, bodies: tuple[str, ...]) -> None:
        try:
            self._session.set_end_effectors(bodies)
        finally:
            self.panel.effector_names(self._session.end_effectors)
            self.panel.selection(self.selected, self._session)
        self._set_target(self.panel.target.value)

    def _set_target(self, on: bool) -> None:
        """Show the handle at the end effector that is chosen, and pull that to it; or neither."""
        session, body = self._session, self.panel.shown.value
        self.panel.target.value = on
        self.overlay.target.visible = on
        session.release(_TARGET)
        if on:
            place = session.simulation.pose(body)[:3, 3]
            self.overlay.target.position = place
            session.pull(_TARGET, body, place, place)

    async def _move_target(self, event: Any) -> None:
        target = np.array(event.target.position)
        self._runner.do(lambda: self._session.move(_TARGET, target), event.client, _TARGET)

    def _add_model(self) -> None:
        waiting = [
            client.add_notification("Adding a model", "Looking for the true equilibrium ...", loading=True)
            for client in self._server.get_clients().values()
        ]
        try:
            added = self._session.add_model()
        finally:
            for note in waiting:
                note.remove()
        self._say(
            "Model added",
            f"{added.models} models are blended. The view was up to {1000 * added.error:.3g} mm from the truth.",
        )

    def _lost(self, models: int) -> None:
        if models:
            self._say("Models dropped", f"{models} of the blend had no equilibrium like this.")

    # --- what clients are told

    def _state(self) -> tuple[Any, ...]:
        return (self._session.time, self._session.simulation)

    def _draw(self) -> None:
        self._show_ellipsoid()

    def _say_more(self) -> None:
        """The ellipsoid that is asked for; it changes slowly."""
        body = self.panel.shown.value
        shape = None
        if self.panel.ellipsoid.value:
            try:
                shape = self._session.ellipsoid(body)
            except PliantError:
                self.panel.ellipsoid.value = False
                self._shape = None
                raise
        self._shape = None if shape is None else (body, shape)
        force = self._show_ellipsoid()
        self.panel.about_effector(body, shape, force)

    def _show_ellipsoid(self) -> float:
        if self._shape is None:
            return self.overlay.ellipsoid(None, None)
        body, shape = self._shape
        return self.overlay.ellipsoid(shape, self._session.simulation.pose(body))


def _names(text: Any) -> tuple[str, ...]:
    names = tuple(name.strip() for name in str(text).split(","))
    if not any(names):
        raise InputError("end effectors: name at least one body, with commas between several")
    return tuple(name for name in names if name)
