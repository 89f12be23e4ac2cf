"""`Page`: what browsers see of a session, and what they ask of it.

Callbacks run in viser's threads. None of them touches the session: each hands a command to the runner.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.errors import InputError, PliantError
from pliant.viewer.overlay import Overlay
from pliant.viewer.panel import Panel
from pliant.viewer.runner import Runner
from pliant.viewer.scene import Scene
from pliant.viewer.session import Session

__all__ = ["Page"]

_WORDS, _PLOTS = 0.2, 0.5  # s between updates of numbers and of plots
_TARGET = "target"


class Page:
    """The scene, what is drawn over it, and the panel, for all clients alike."""

    def __init__(self, server: Any, session: Session):
        self._server, self._session = server, session
        self.scene = Scene(server, session.mechanism, session.poses)
        self.overlay = Overlay(server, self.scene.size)
        self.panel = Panel(server, session)
        self.selected: str | None = None
        self._frame: tuple[Any, ...] = ()
        self._said, self._plotted = 0.0, 0.0
        self._shape: tuple[str, Any] | None = None
        self.panel.state(session)

    # --- what clients ask for

    def connect(self, runner: Runner) -> None:
        """Let controls, clicks and drags do what they say."""
        self._runner, panel, session = runner, self.panel, self._session
        for handle in self.scene.handles:
            handle.on_drag("left")(self._drag)
            handle.on_click(self._click)
        self.overlay.target.on_update(self._move_target)
        self._when(panel.play, lambda _: self._set_playing(not session.playing))
        self._when(panel.buttons, self._press)
        self._when(panel.apply, lambda _: self._set_effectors(_names(panel.effectors.value)))
        self._when(panel.toggle, lambda _: self._toggle())
        self._when(panel.add, lambda _: self._add_model())
        for control, change in (
            (panel.engine, session.set_engine),
            (panel.gravity, lambda on: self._lost(session.set_gravity(on))),
            (panel.stiffness, lambda x: self._lost(session.set_stiffness(x))),
            (panel.speed, session.set_speed),
            (panel.strength, session.set_strength),
            (panel.shown, lambda _: self._set_target(panel.target.value)),
            (panel.ellipsoid, lambda _: None),
            (panel.target, self._set_target),
        ):
            self._when(control, change)

        @self._server.on_client_connect
        async def _(_: Any) -> None:
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
            self._session.reset()
            self._set_target(False)

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

    def show(self) -> None:
        """Draw the session as it stands, if anybody looks and anything has changed."""
        if not self._server.get_clients():
            return
        session, now = self._session, time.monotonic()
        frame = (session.time, session.simulation, tuple(p.target.tobytes() for p in session.pulls.values()))
        if frame != self._frame:
            self._frame = frame
            self.scene.update(session.poses)
            self.overlay.pulls(session.pulls)
            self._show_ellipsoid()
        if now - self._said >= _WORDS:
            self._said = now
            self.panel.numbers(session)
            self._find_ellipsoid()
        if now - self._plotted >= _PLOTS:
            self._plotted = now
            self.panel.plots(session)

    def _find_ellipsoid(self) -> None:
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
