"""`MechanismPage`, `WorldPage` and `PathPage`: the browser page of a session.

A page is a 3-D stage with an overlay, and a panel of controls, readouts and plots, the same for all clients. Callbacks
run in viser's threads: none touches the session, each hands a command to the runner.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.checks import EARTH
from pliant.errors import InputError, PliantError
from pliant.plotting import LEAST_ERROR
from pliant.source import gallery_names
from pliant.text import counted, escape_markdown
from pliant.viewer.activity import Activity
from pliant.viewer.gallery import grid
from pliant.viewer.opening import LARGEST_FILE, Opener
from pliant.viewer.path_session import PathMeasures, PathSession
from pliant.viewer.posing import Slider, coordinate
from pliant.viewer.recorder import Recorder
from pliant.viewer.recording import export_gltf, record_html
from pliant.viewer.session import ENGINES, SCALES, SPEEDS, STRENGTHS, Budget, Ellipsoid, Session, WorldSession
from pliant.viewer.stage import CAMERAS, Overlay, Stage, force_text

if TYPE_CHECKING:
    from pliant.mechanism import Mechanism
    from pliant.viewer.live import Pacing, Runner

__all__ = ["MechanismPage", "Page", "PathPage", "WorldPage"]

_COLOURS, _READOUTS, _PLOTS = 0.1, 0.2, 0.5  # s between updates of colours, of readouts and of plots
_MOST_NAMES = 200  # in a list
_MOST_ENGINES = 12  # mechanisms of a world whose engine can be chosen
_STEPS = 200  # of a joint's slider
_LONGEST_MESSAGE = 500  # characters
_TARGET = "target"  # key of the pull to the target handle
_MARK, _MARK_COLOUR = 5, (198, 40, 40)  # half the size of the mark in a diagram, pixels
_BLUE, _ORANGE, _GREEN, _RED = "#1f6fb4", "#d9822b", "#2e8b57", "#c62828"
_ENERGIES = (("kinetic", _BLUE), ("elastic", _ORANGE), ("gravity", _GREEN))


class Page(ABC):
    """Stage, overlay and panel of a session, as far as mechanisms, worlds and paths share them.

    Attributes:
        stage: the session's bodies.
        selected: name of the selected body, or None.
        retired: whether another page has taken its place.
    """

    camera_distance = 1.0  # at first; 1: everything just fits
    heading = "Simulation"  # of the first folder of controls
    pulling = True  # whether bodies can be pulled

    def __init__(self, server: Any, session: Any, opener: Opener, size: str):
        """Build the page.

        Args:
            server: a `viser.ViserServer`.
            session: a `Session`, `WorldSession` or `PathSession`.
            opener: what may be shown instead.
            size: number of bodies and so on, for the title.
        """
        self._server, self._session, self._opener = server, session, opener
        self._asking: Any = None  # client whose command is executed
        self.selected: str | None = None
        self.retired = False
        self._last_frame: tuple[Any, ...] = ()
        self._coloured, self._read_out, self._plotted = 0.0, 0.0, 0.0  # s: when these were last updated
        gui = server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(31, 111, 180))
        gui.main_panel.dock_right()
        title = f"**{escape_markdown(session.mechanism.name)}**, {size}"
        drag = "Drag a body to pull it, with Shift to turn it, click it" if self.pulling else "Click a body"
        gui.add_markdown(f"{title}  \n{drag} to select it.")
        with gui.add_folder(self.heading):
            self._play = gui.add_button("Pause", icon="player-pause")
            self._buttons = gui.add_button_group("", ("Step", "Reset"))
            self._speed = _add_slider(gui, "Speed", SPEEDS, "simulated time per real time")
            self._add_simulation_controls(gui)
            self._strength = _add_slider(
                gui, "Pull strength", STRENGTHS, "stiffness of the springs that pull"
            )
            self._strength.visible = self.pulling
            self._status = gui.add_markdown(
                "Starting. An engine that runs for the first time compiles for a while."
            )
        self._add_folders(gui)
        self._add_view(gui)
        self._add_files(gui)
        self.stage = Stage(server, session.mechanism, session.poses, self.camera_distance)
        self._overlay = Overlay(server, self.stage.size)
        self.show_controls()

    def _add_view(self, gui: Any) -> None:
        with gui.add_folder("View"):
            self._camera = gui.add_button_group("Camera", tuple(CAMERAS))
            self._frames = gui.add_checkbox("Frames", False, hint="of bodies: x red, y green, z blue")
            self._inertia = gui.add_checkbox(
                "Inertia", False, hint="boxes of uniform density with the mass and inertia of the bodies"
            )
            self._record = gui.add_button(
                "Record", icon="player-record", hint="then a web page and a glTF file to keep"
            )
            self._recorded = gui.add_markdown("", visible=False)

    def _add_files(self, gui: Any) -> None:
        with gui.add_folder("Open", expand_by_default=False):
            kinds = ".xml,.mjcf,.urdf,.json,.npz,.zip,.stl,.obj,.msh,.png"
            self._upload = gui.add_upload_button(
                "Files", icon="upload", mime_type=kinds, hint=f"up to {LARGEST_FILE / 1e6:g} MB"
            )
            gui.add_markdown(
                "MJCF, URDF, JSON or NPZ, with its meshes, alone or as a ZIP; or drop files or a folder on the page."
            )
            names = self._opener.keyframes or ("",)
            self._keyframe = gui.add_dropdown(
                "Keyframe", names, visible=len(names) > 1, initial_value=names[0]
            )
            self._gallery = gui.add_button(
                "Gallery", icon="layout-grid", hint="mechanisms, scenes and worlds"
            )

    # --- hooks

    def _add_simulation_controls(self, gui: Any) -> None:  # noqa: B027 - there may be none
        """Add controls of the simulation, below those of time."""

    @abstractmethod
    def _add_folders(self, gui: Any) -> None:
        """Add further folders of controls, with `_selection`, a markdown, and plots."""

    @abstractmethod
    def _show_selection(self) -> None:
        """Write about the selected body."""

    @abstractmethod
    def _show_readouts(self) -> None:
        """Measure the session and write the numbers."""

    @abstractmethod
    def _draw_plots(self, history: Sequence[Any], time: Any) -> None:
        """Draw measurements over their times."""

    @abstractmethod
    def _draw_overlay(self) -> None:
        """Draw the overlay, besides pulls."""

    @abstractmethod
    def _update_details(self) -> None:
        """Update parts of the page that change slowly."""

    def _update_colours(self, now: float) -> None:  # noqa: B027 - they may stay
        """Update colours of bodies; `now` is real time, s."""

    def _frame_state(self) -> tuple[Any, ...]:
        """Values that a frame depends on, besides pulls."""
        return (self._session.time,)

    def _reset(self) -> None:
        self._session.reset()

    def _step(self) -> None:
        self._session.step()

    # --- requests of clients

    def connect(self, runner: Runner, pacing: Pacing, show: Callable[[Callable[[], Any]], None]) -> None:
        """Connect controls, clicks and drags to the session, by way of its runner.

        Args:
            runner: the thread that owns the session.
            pacing: is told of frames.
            show: shows what a function returns in place of the session, to all clients.
        """
        self._runner, self._pacing, session = runner, pacing, self._session
        for handle in self.stage.handles:
            if self.pulling:
                handle.on_drag("left")(self._drag)
                handle.on_drag("left", modifier="shift")(self._drag)
            handle.on_click(self._click)
        opener = self._opener
        self._bind(self._camera, lambda name: self.stage.aim(self._asking, name, session.poses))
        self._bind(self._frames, lambda _: None)
        self._bind(self._inertia, lambda _: None)
        self._bind(self._record, lambda _: self._toggle_recording())
        self._bind(self._upload, lambda file: show(lambda: opener.file(file.name, file.content)))
        self._bind(self._keyframe, lambda name: show(lambda: opener.at_keyframe(name)))
        self._bind(self._gallery, lambda _: self._show_gallery(show))
        self._bind(self._play, lambda _: self._set_playing(not session.playing))
        self._bind(self._buttons, self._press)
        self._bind(self._speed, session.set_speed)
        self._bind(self._strength, session.set_strength)

    def welcome(self, client: Any = None) -> None:
        """Have everything drawn for a client that has just connected; a window higher than wide gets a camera."""
        if client is not None and client.camera.image_width < client.camera.image_height:
            self.stage.aim(client, next(iter(CAMERAS)), self._session.poses)
        self._redraw()

    def _bind(self, control: Any, change: Callable[[Any], None]) -> None:
        """Call `change` with the control's value, in the runner, whenever a client uses the control."""
        event_name = next(word for word in ("on_click", "on_upload", "on_update") if hasattr(control, word))
        lasting = event_name == "on_update"  # a slider sends many values, of which the last counts

        async def callback(event: Any) -> None:
            if event.client is None:
                return  # set by the server
            value = event.target.value

            def command() -> None:
                self._asking = event.client
                try:
                    change(value)
                finally:  # after an error as well: the control then shows the session's value again
                    if not self.retired:
                        self.show_controls()
                        self._redraw()

            self._runner.do(command, event.client, id(control) if lasting else None)

        getattr(control, event_name)(callback)

    def _show_gallery(self, show: Callable[[Callable[[], Any]], None]) -> None:
        """Show the gallery to the client who asks: thumbnails, each of which presses a button that opens it."""
        gui = self._asking.gui
        modal = gui.add_modal("Gallery")
        with modal:
            close = gui.add_button("Close")
            close.on_click(lambda _: modal.close())
            pictures = gui.add_html("")
            buttons = {name: gui.add_button(name) for name in gallery_names()}

        def take(name: str) -> None:
            modal.close()
            show(lambda: self._opener.gallery(name))

        for name, button in buttons.items():
            self._bind(button, lambda _, name=name: take(name))
        known = gui._gui_input_handle_from_uuid.items()
        pictures.content = grid(
            {
                name: next(identifier for identifier, handle in known if handle is button)
                for name, button in buttons.items()
            }
        )

    def _toggle_recording(self) -> None:
        """Start to record, or stop and send the client who asked a web page and a glTF file."""
        session = self._session
        if session.recorder is None:
            session.recorder = Recorder(session)
            return
        found, session.recorder = session.recorder, None
        self._send_recording(found)

    def _send_recording(self, found: Recorder) -> None:
        trajectory, client = found.trajectory(), self._asking
        note = client.add_notification("Recording", "Writing the files ...", loading=True)
        try:
            with TemporaryDirectory(prefix="pliant-view-") as folder:
                stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in found.mechanism.name)[:60]
                for write, suffix in ((record_html, ".html"), (export_gltf, ".glb")):
                    path = write(trajectory, Path(folder) / f"{stem}{suffix}")
                    client.send_file_download(path.name, path.read_bytes())
        finally:
            note.remove()

    def _press(self, button: str) -> None:
        if button == "Step":
            self._session.playing = False
            self._step()
        else:
            self._reset()

    def _set_playing(self, on: bool) -> None:
        self._session.playing = on

    async def _drag(self, event: Any) -> None:
        key, session = event.client_id, self._session
        if event.phase == "end":
            self._runner.do(lambda: session.release(key))
            return
        target = event.end_position
        if event.phase == "start":
            body = self.stage.body(event.target, event.instance_index)
            if body >= 0:
                name, point = session.mechanism.body_names[body], event.start_position
                act = session.turn if event.modifier == "shift" else session.pull
                self._runner.do(lambda: act(key, name, point, target), event.client)
            return
        self._runner.do(lambda: session.move(key, target), event.client, ("drag", key))

    async def _click(self, event: Any) -> None:
        body = self.stage.body(event.target, event.instance_index)
        self._runner.do(lambda: self._select(body), event.client)

    def _select(self, body: int) -> None:
        """Select a body by index, or none if it is selected already."""
        names = self._session.mechanism.body_names
        name = names[body] if body >= 0 else None
        self.selected = None if name == self.selected else name
        self._show_selection()
        self.stage.select(np.array([0.6 if other == self.selected else 0.0 for other in names]))

    # --- output to clients

    def show(self) -> None:
        """Draw the session, if a client is connected and anything has changed."""
        if not self._server.get_clients():
            return
        session, now = self._session, time.monotonic()
        frame = (
            *self._frame_state(),
            *(p.target.tobytes() for p in session.pulls.values()),
            *(t.torque.tobytes() for t in session.turns.values()),
        )
        if frame != self._last_frame:
            self._last_frame = frame
            with self._server.atomic():
                poses = session.poses
                self.stage.update(poses)
                self._overlay.show_pulls(session.pulls, poses)
                self._overlay.show_turns(session.turns, poses)
                self._overlay.show_frames(poses if self._frames.value else None)
                self._overlay.show_inertia(session.mechanism, poses if self._inertia.value else None)
                self._draw_overlay()
            self._pacing.drawn = True
        if now - self._coloured >= _COLOURS:
            self._coloured = now
            self._update_colours(now)
        if now - self._read_out >= _READOUTS:
            self._read_out = now
            self._show_readouts()
            self._show_recorded()
            self._update_details()
        if now - self._plotted >= _PLOTS:
            self._plotted = now
            if len(session.history) > 1:
                self._draw_plots(session.history, _series(session.history, "time"))
        self._server.flush()

    def _redraw(self) -> None:
        """Have everything drawn by the next `show`."""
        self._last_frame, self._coloured, self._read_out, self._plotted = (), 0.0, 0.0, 0.0

    def show_controls(self) -> None:
        """Set the controls to the session's values."""
        session = self._session
        self._play.label = "Pause" if session.playing else "Play"
        self._play.icon = "player-pause" if session.playing else "player-play"
        self._speed.value, self._strength.value = session.speed, session.strength
        self._record.label = "Record" if session.recorder is None else "Stop and save"
        self._record.icon = "player-record" if session.recorder is None else "player-stop"
        if self._opener.keyframe in self._keyframe.options:
            self._keyframe.value = self._opener.keyframe

    def _show_recorded(self) -> None:
        """Write how much is recorded."""
        recorder = self._session.recorder
        self._recorded.visible = recorder is not None
        if recorder is not None:
            full = ": there is room for no more" if recorder.full else ""
            self._recorded.content = f"{counted(len(recorder), 'frame')}, {recorder.seconds:.1f} s{full}"

    def show_error(self, message: str, client: Any) -> None:
        """Show an error to a client, or to all if None."""
        short = message if len(message) < _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]} ..."
        for one in [client] if client is not None else self._server.get_clients().values():
            one.add_notification("That did not work", short, color="red", auto_close_seconds=12.0)
        self.show_controls()

    def show_compilation(self, notice: str) -> None:
        """Show which kernels compile, in place of the time, which stands still."""
        self._status.content = f"*{escape_markdown(notice)} …*"
        self._read_out = 0.0
        self._server.flush()

    def _notify(self, title: str, text: str) -> None:
        for client in self._server.get_clients().values():
            client.add_notification(title, text, color="green", auto_close_seconds=8.0)

    def _show_status(self, now: Any, *more: str) -> None:
        """Write time, length and duration of steps, further lines, and forces of pulls."""
        session = self._session
        slow = f", {now.rate:.2f} of real time" if session.playing and now.rate < 0.9 * session.speed else ""
        lines = [
            f"t = {now.time:.2f} s{slow}",
            f"steps of 1/{1 / session.timestep:.0f} s, {1e6 * now.step_time:.0f} µs each",
            *more,
        ]
        lines += [
            f"**{escape_markdown(pull.body)}** {force_text(pull.force)}" for pull in session.pulls.values()
        ]
        lines += [
            f"**{escape_markdown(turn.body)}** {force_text(turn.torque)} m" for turn in session.turns.values()
        ]
        self._status.content = "  \n".join(lines)


class MechanismPage(Page):
    """Page of a `Session`: engines, joint stiffness, end effectors, models that are added to a blend."""

    _session: Session

    def __init__(self, server: Any, session: Session, opener: Opener):
        m = session.mechanism
        self._shape: tuple[str, Ellipsoid] | None = None  # ellipsoid shown, and its body
        self._activity = Activity(m)
        self._tolerance: Any = None  # slider, of the range and unit in `_tolerance_of`
        self._tolerance_of: tuple[Any, ...] | None = None
        loops = f", {counted(m.topology.loops, 'loop')}" if m.topology.loops else ""
        size = f"{counted(m.body_count, 'body', 'bodies')}, {counted(m.joint_count, 'joint')}{loops}"
        super().__init__(server, session, opener, size)

    def _add_simulation_controls(self, gui: Any) -> None:
        session = self._session
        self._engine = gui.add_dropdown("Engine", ENGINES, initial_value=session.engine)
        self._gravity = gui.add_checkbox("Gravity", session.gravity, hint="off: weight is compensated")
        self._stiffness = _add_slider(gui, "Stiffness", SCALES, "of all joints, times their own")
        self._adaptive = gui.add_folder(None, visible=False)
        with self._adaptive:
            self._colour = gui.add_checkbox(
                "Colour", True, hint="links whose joints move; they fade when joints are rigid again"
            )

    def _add_folders(self, gui: Any) -> None:
        names = self._session.end_effectors
        with gui.add_folder("End effectors"):
            self._names = gui.add_text("Bodies", ", ".join(names), hint="names, with commas between them")
            self._apply = gui.add_button("Apply", hint="reduce to these bodies and go on from here")
            self._selection = gui.add_markdown("")
            self._toggle = gui.add_button("Add selected", visible=False)
            self._shown = gui.add_dropdown("At", names[:_MOST_NAMES])
            self._ellipsoid = gui.add_checkbox(
                "Ellipsoid", False, hint="how it gives way to forces: long is soft"
            )
            self._target = gui.add_checkbox("Target", False, hint="a handle to pull the end effector to")
            self._principal = gui.add_markdown("", visible=False)
        with gui.add_folder("Accuracy"):
            self._violation = gui.add_markdown("")
            self._add = gui.add_button(
                "Add a model here",
                icon="circle-plus",
                hint="find the true equilibrium under the present pulls, and let the model know its shape",
            )
        with gui.add_folder("Joints", expand_by_default=False):
            self._rest = gui.add_button(
                "Make this the rest pose",
                icon="pin",
                hint="all springs are slack in the pose that is shown, and the simulation starts there",
            )
            self._joints = [(one, _add_joint(gui, one)) for one in self._session.sliders]
        with gui.add_folder("Plots", expand_by_default=False):
            self._energy_plot = _add_plot(gui, "Energy (J)", *_ENERGIES)
            self._violation_plot = _add_plot(gui, "Violation (mm)", ("violation", _RED))
            self._step_plot = _add_plot(gui, "Step (µs)", ("step", _BLUE))
            self._error_plot = _add_plot(gui, "Error (% of the tolerance)", ("error", _RED))
            self._moving_plot = _add_plot(gui, "Joints that move", ("joints", _GREEN))

    # --- requests of clients

    def connect(self, runner: Runner, pacing: Pacing, show: Callable[[Callable[[], Any]], None]) -> None:
        super().connect(runner, pacing, show)
        session = self._session
        self._bind(self._colour, lambda _: None)
        for one, slider in self._joints:
            self._bind(slider, lambda value, one=one: session.set_joint(one.dof, value * one.factor))
        self._bind(self._rest, lambda _: self._make_rest())
        self._overlay.target.on_update(self._move_target)
        self._bind(self._apply, lambda _: self._set_effectors(_split_names(self._names.value)))
        self._bind(self._toggle, lambda _: self._toggle_effector())
        self._bind(self._add, lambda _: self._add_model())
        self._bind(self._engine, session.set_engine)
        self._bind(self._gravity, lambda on: self._tell_lost(session.set_gravity(on)))
        self._bind(self._stiffness, lambda x: self._tell_lost(session.set_stiffness(x)))
        self._bind(self._shown, lambda _: self._set_target(self._target.value))
        self._bind(self._ellipsoid, lambda _: None)
        self._bind(self._target, self._set_target)

    def _reset(self) -> None:
        super()._reset()
        self._set_target(False)

    def _make_rest(self) -> None:
        self._session.make_rest()
        self._set_target(False)

    def _toggle_effector(self) -> None:
        """Make the selected body an end effector, or none if it is one."""
        if self.selected is not None:
            known = self._session.end_effectors
            without = tuple(body for body in known if body != self.selected)
            self._set_effectors(without if self.selected in known else (*known, self.selected))

    def _set_effectors(self, bodies: tuple[str, ...]) -> None:
        try:
            self._session.set_end_effectors(bodies)
        finally:
            names = self._session.end_effectors
            self._names.value = ", ".join(names)
            before, listed = self._shown.value, names[:_MOST_NAMES]
            self._shown.options = listed
            self._shown.value = before if before in listed else listed[0]
            self._show_selection()
        self._set_target(self._target.value)

    def _set_target(self, on: bool) -> None:
        """Show the target handle at the chosen end effector and pull that to it, or end both."""
        session, body = self._session, self._shown.value
        self._target.value = on
        self._overlay.target.visible = on
        session.release(_TARGET)
        if on:
            position = session.pose(body)[:3, 3]
            self._overlay.target.position = position
            session.pull(_TARGET, body, position, position)

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
        now = f"{added.models} models are blended."
        if self._session.engine == "reduced":
            now = f"The model now has {counted(added.vectors, 'vector')} of shapes like this."
        self._notify("Model added", f"{now} The view was up to {1000 * added.error:.3g} mm from the truth.")

    def _tell_lost(self, models: int) -> None:
        if models:
            self._notify("Models dropped", f"{models} of the blend had no equilibrium like this.")

    # --- output to clients

    def show_controls(self) -> None:
        super().show_controls()
        session = self._session
        self._engine.value, self._gravity.value = session.engine, session.gravity
        self._stiffness.value = session.stiffness
        self._show_tolerance()
        self._show_joints()

    def _frame_state(self) -> tuple[Any, ...]:
        session = self._session
        return (session.time, session.simulation, session.q.tobytes() if session.posed else b"")

    def _draw_overlay(self) -> None:
        self._draw_ellipsoid()

    def _show_joints(self) -> None:
        """Set the sliders of joints to the pose that is shown."""
        m, q = self._session.mechanism, self._session.q
        for one, slider in self._joints:
            slider.value = _slider_value(one, coordinate(m, q, one.dof))

    def _show_tolerance(self) -> None:
        """Show the tolerance by a slider within its limits, and what belongs to it; nothing where there is none."""
        session, gui = self._session, self._server.gui
        found, limits = session.adaptivity, session.tolerances
        for part in (self._adaptive, self._error_plot, self._moving_plot):
            part.visible = found is not None
        if found is None or limits is None:
            return
        low, high = (round(float(np.log10(limit))) for limit in limits)
        if self._tolerance_of != (low, high, found.unit):
            self._tolerance_of = (low, high, found.unit)
            if self._tolerance is not None:
                self._tolerance.remove()
            with self._adaptive:
                self._tolerance = _add_tolerance(gui, low, high, found.unit)
            self._bind(self._tolerance, lambda power: session.set_tolerance(float(f"{10.0**power:.1e}")))
        self._tolerance.value = float(np.clip(round(np.log10(found.tolerance), 1), low, high))

    def _update_colours(self, now: float) -> None:
        """Colour the bodies whose joints move, where not all of them always do."""
        found = self._session.adaptivity if self._colour.value else None
        self.stage.highlight(None if found is None else self._activity.shades(found.active, now))

    def _draw_ellipsoid(self) -> float:
        """Draw the ellipsoid at its body's pose, or none; returns its force, N."""
        if self._shape is None:
            return self._overlay.show_ellipsoid(None, None)
        body, shape = self._shape
        return self._overlay.show_ellipsoid(shape, self._session.pose(body))

    def _show_selection(self) -> None:
        body, session = self.selected, self._session
        self._toggle.visible = body is not None
        if body is None:
            self._selection.content = ""
            return
        mass = session.mechanism.mass[session.mechanism.body_index(body)]
        self._selection.content = f"Selected: **{escape_markdown(body)}**, {mass:.3g} kg"
        self._toggle.label = "Remove selected" if body in session.end_effectors else "Add selected"

    def _show_readouts(self) -> None:
        session = self._session
        now = session.measure()
        joints = session.mechanism.joint_count
        self._show_status(now, *([] if now.budget is None else [_budget_text(now.budget, joints)]))
        share = now.violation / session.mechanism.radius
        gap, share = (now.violation, share) if share > 1e-9 else (0.0, 0.0)  # rounding
        text = f"Constraint violation **{1000 * gap:.3g} mm**, {100 * share:.2g} % of the radius"
        if session.facts:
            text += f"  \n{session.facts}"
        self._violation.content = text

    def _update_details(self) -> None:
        """Compute the ellipsoid, if it is asked for, and write its principal stiffnesses."""
        body, self._shape = self._shown.value, None
        if self._ellipsoid.value:
            try:
                self._shape = (body, self._session.ellipsoid(body))
            except PliantError:
                self._ellipsoid.value = False
                raise
        force = self._draw_ellipsoid()
        self._principal.visible = self._shape is not None
        if self._shape is not None:
            stiffness = ", ".join(_stiffness_text(value) for value in self._shape[1].stiffness)
            text = f"Stiffness of **{escape_markdown(body)}**: {stiffness}"
            self._principal.content = f"{text}  \nEllipsoid: moved by {force:g} N"

    def _draw_plots(self, history: Sequence[Any], time: Any) -> None:
        if not self._session.posed:
            self._show_joints()
        length, _, energy = _least(self._session.mechanism)
        self._energy_plot.data = (time, *_energies(history, energy))
        self._violation_plot.data = (time, _series(history, "violation", 1000, length))
        self._step_plot.data = (time, _series(history, "step_time", 1e6))
        known = [now for now in history if now.budget is not None]
        if len(known) > 1:
            time, budgets = _series(known, "time"), [now.budget for now in known]
            shares = np.array([100 * budget.error / budget.tolerance for budget in budgets])
            self._error_plot.data = (time, shares)
            self._moving_plot.data = (time, _series(budgets, "moving"))


class WorldPage(Page):
    """Page of a `WorldSession`: contact forces. The world starts when the first client connects."""

    camera_distance = 1.8  # room for bodies to move
    _session: WorldSession
    _started = False

    def __init__(self, server: Any, session: WorldSession, opener: Opener):
        session.playing = False
        bodies = counted(session.mechanism.body_count, "moving body", "moving bodies")
        super().__init__(server, session, opener, bodies)

    def _add_simulation_controls(self, gui: Any) -> None:
        session = self._session
        self._engines = {
            name: gui.add_dropdown(
                f"Engine of {name}", session.engines(name), initial_value=session.engine(name)
            )
            for name in session.mechanisms[:_MOST_ENGINES]
        }

    def _add_folders(self, gui: Any) -> None:
        with gui.add_folder("Contacts"):
            self._forces = gui.add_checkbox("Forces", True, hint="arrows, where things touch")
            self._see_through = gui.add_checkbox("See through", False, hint="arrows inside bodies, too")
            self._contacts = gui.add_markdown("")
            self._selection = gui.add_markdown("")
        with gui.add_folder("Plots", expand_by_default=False):
            self._energy_plot = _add_plot(gui, "Energy (J)", *_ENERGIES)
            self._force_plot = _add_plot(gui, "Sum of contact forces (N)", ("force", _GREEN))
            self._depth_plot = _add_plot(gui, "Penetration (mm)", ("penetration", _RED))
            self._step_plot = _add_plot(gui, "Step (µs)", ("step", _BLUE))

    def connect(self, runner: Runner, pacing: Pacing, show: Callable[[Callable[[], Any]], None]) -> None:
        super().connect(runner, pacing, show)
        self._bind(self._forces, lambda _: None)
        self._bind(self._see_through, self.stage.fade)
        for name, control in self._engines.items():
            self._bind(control, lambda engine, name=name: self._set_engine(name, engine))

    def _set_engine(self, name: str, engine: str) -> None:
        moved = self._session.set_engine(name, engine)
        if moved > 0:
            self._notify("Engine changed", f"It moved no body by more than {1000 * moved:.2g} mm.")

    def welcome(self, client: Any = None) -> None:
        """The world starts when the first client looks."""
        super().welcome(client)
        if not self._started:
            self._started = True
            self._set_playing(True)
            self.show_controls()

    def show_controls(self) -> None:
        super().show_controls()
        for name, control in self._engines.items():
            control.value = self._session.engine(name)

    def _draw_overlay(self) -> None:
        self._overlay.show_contacts(self._session.contacts if self._forces.value else None)

    def _show_selection(self) -> None:
        """Write the total contact force on the selected body."""
        if self.selected is None:
            self._selection.content = ""
            return
        force = self._session.force_on(self.selected)
        direction = ""
        if force.any():
            x, y, z = force / np.linalg.norm(force)
            direction = f", along ({x:.2f}, {y:.2f}, {z:.2f})"
        text = f"contacts act with {force_text(force)}{direction}"
        self._selection.content = f"On **{escape_markdown(self.selected)}** {text}"

    def _update_details(self) -> None:
        self._show_selection()

    def _show_readouts(self) -> None:
        now = self._session.measure()
        self._show_status(now)
        text = counted(now.contacts, "contact")
        if now.contacts:
            largest = np.array([self._session.contacts.largest, 0.0, 0.0])
            text += f", the longest arrow is {force_text(largest)}"
        if now.depth > 1e-6:
            text += f"  \nSurfaces are inside each other by {1000 * now.depth:.2g} mm"
        self._contacts.content = text

    def _draw_plots(self, history: Sequence[Any], time: Any) -> None:
        length, force, energy = _least(self._session.mechanism)
        self._energy_plot.data = (time, *_energies(history, energy))
        self._force_plot.data = (time, _series(history, "force", least=force))
        self._depth_plot.data = (time, _series(history, "depth", 1000, length))
        self._step_plot.data = (time, _series(history, "step_time", 1e6))


class PathPage(Page):
    """Page of a `PathSession`: a slider along the path, its branches, and a diagram of them all."""

    camera_distance = 1.3  # room for bodies to move
    heading = "Path"
    pulling = False
    _session: PathSession

    def __init__(self, server: Any, session: PathSession, opener: Opener):
        self._diagram = _PathDiagram(session)
        self._marked: tuple[PathMeasures, str] | None = None  # what the diagram shows
        super().__init__(server, session, opener, counted(len(session.path), "equilibrium", "equilibria"))

    def _add_simulation_controls(self, gui: Any) -> None:
        session = self._session
        self._position = gui.add_slider(
            "Position", 0.0, 100.0, 0.1, 0.0, hint="along the path, % of its length"
        )
        self._chosen = gui.add_dropdown(
            "Branch", tuple(session.paths), initial_value=session.chosen, visible=len(session.paths) > 1
        )

    def _add_folders(self, gui: Any) -> None:
        with gui.add_folder("Diagram"):
            self._image = gui.add_image(self._diagram.image(self._session.measure()))
            self._points = gui.add_markdown("")
            self._selection = gui.add_markdown("")

    def connect(self, runner: Runner, pacing: Pacing, show: Callable[[Callable[[], Any]], None]) -> None:
        super().connect(runner, pacing, show)
        self._bind(self._position, self._go_to)
        self._bind(self._chosen, self._session.choose)

    def _go_to(self, percent: float) -> None:
        self._session.playing = False
        self._session.set_position(percent / 100)

    def _step(self) -> None:
        self._session.next_point()

    def _set_playing(self, on: bool) -> None:
        """Play or pause; from the end on, the path is played again."""
        if on and self._session.position == 1.0:
            self._session.reset()
        super()._set_playing(on)

    # --- output to clients

    def show_controls(self) -> None:
        super().show_controls()
        self._position.value = round(100 * self._session.position, 1)
        self._chosen.value = self._session.chosen

    def _frame_state(self) -> tuple[Any, ...]:
        return (self._session.time, self._session.chosen)

    def _draw_overlay(self) -> None:
        """Nothing besides the bodies."""

    def _show_selection(self) -> None:
        if self.selected is None:
            self._selection.content = ""
            return
        x, y, z = 1000 * self._session.poses[self._session.mechanism.body_index(self.selected), :3, 3]
        self._selection.content = f"**{escape_markdown(self.selected)}** at ({x:.4g}, {y:.4g}, {z:.4g}) mm"

    def _show_readouts(self) -> None:
        """Write factor and stability, and move the slider and the mark in the diagram along."""
        session = self._session
        now, path = session.measure(), session.path
        text = f"{path.label} {now.factor:.4g}: **{now.stability}**"
        if now.negative:
            text += f", {counted(now.negative, 'motion')} with negative stiffness"
        self._status.content = text
        self._points.content = "  \n".join(escape_markdown(line) for line in path.point_texts)
        if (now, session.chosen) != self._marked:
            self._marked = (now, session.chosen)
            self._image.image = self._diagram.image(now)
        self.show_controls()

    def _update_details(self) -> None:
        self._show_selection()

    def _draw_plots(self, history: Sequence[Any], time: Any) -> None:
        """The diagram is drawn with the readouts."""


class _PathDiagram:
    """Picture of a path and its branches, factor over the displacement of the first end effector, with a mark."""

    def __init__(self, session: PathSession):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._session, first = session, session.paths["path"]
        m = first.mechanism
        body = m.end_effectors[0]
        self._body = m.body_index(body)
        self._start = first.poses[0, self._body, :3, 3]
        moved = [np.abs(path.poses[:, self._body, :3, 3] - self._start).max(axis=0) for path in first.paths]
        self._axis = int(np.argmax(np.max(moved, axis=0)))
        figure = first.plot(body=body, axis="xyz"[self._axis])
        figure.set_dpi(100)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        self._pixels = np.array(canvas.buffer_rgba())[..., :3]
        self._axes = figure.axes[0]

    def image(self, now: PathMeasures) -> Any:
        """The picture with a red mark at the equilibrium shown, (rows, columns, 3), uint8."""
        out = self._pixels.copy()
        x = 1000 * (self._session.poses[self._body, self._axis, 3] - self._start[self._axis])
        column, row = np.round(self._axes.transData.transform((x, now.factor))).astype(int)
        row = len(out) - 1 - row
        out[max(row - _MARK, 0) : row + _MARK + 1, max(column - _MARK, 0) : column + _MARK + 1] = _MARK_COLOUR
        return out


# --- controls, plots, text


def _add_slider(gui: Any, label: str, limits: tuple[float, float], hint: str) -> Any:
    """Slider that starts at 1."""
    low, high = limits
    marks = tuple((value, f"{value:g}") for value in (low, 1.0, high))
    return gui.add_slider(label, low, high, low, 1.0, marks=marks, hint=hint)


def _add_tolerance(gui: Any, low: int, high: int, unit: str) -> Any:
    """Logarithmic slider of a tolerance from 10^low to 10^high; its value is the power of ten."""
    middle = (low + high) // 2
    marks = tuple((float(power), f"1e{power}") for power in (low, middle, high))
    hint = f"error that a step may make, as a power of ten{f' in {unit}' if unit else ''}: fewer joints move for more"
    return gui.add_slider(
        "Tolerance 1e", float(low), float(high), 0.1, float(middle), marks=marks, hint=hint, order=0.0
    )


def _budget_text(budget: Budget, joints: int) -> str:
    """Error made and allowed, and number of joints that moved."""
    unit = f" {budget.unit}" if budget.unit else ""
    error = f"error {budget.error:.2g} of {budget.tolerance:.2g}{unit} allowed"
    return f"{error}, **{budget.moving:,}** of {joints:,} joints move"


def _add_joint(gui: Any, one: Slider) -> Any:
    """Slider of a joint, in degrees or a unit of length."""
    low, high = one.low / one.factor, one.high / one.factor
    return gui.add_slider(f"{one.label} ({one.unit})", low, high, (high - low) / _STEPS, low)


def _slider_value(one: Slider, at: float) -> float:
    """Value of a joint's slider at a coordinate, rad or m; the nearest end beyond its range."""
    return float(np.clip(at, one.low, one.high)) / one.factor


def _least(m: Mechanism) -> tuple[float, float, float]:
    """Length, force and energy below which plots show zero: rounding, beside the radius and the weight, m, N, J."""
    weight = m.total_mass * -EARTH[2]
    return LEAST_ERROR * m.radius, LEAST_ERROR * weight, LEAST_ERROR * weight * m.radius


def _energies(history: Sequence[Any], least: float) -> Any:
    """Kinetic, elastic and gravitational energy of all measurements, J, (3, measurements); zero below `least`."""
    values = np.array([now.energy for now in history]).T
    return np.ascontiguousarray(np.where(np.abs(values) < least, 0.0, values))


def _add_plot(gui: Any, title: str, *series: tuple[str, str]) -> Any:
    """Plot over time of series, each a name and a colour."""
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


def _series(history: Sequence[Any], attribute: str, factor: float = 1.0, least: float = 0.0) -> Any:
    """One number of all measurements, times a factor; zero where it is below `least`."""
    values = np.array([getattr(now, attribute) for now in history])
    return factor * np.where(np.abs(values) < least, 0.0, values)


def _stiffness_text(value: float) -> str:
    if not np.isfinite(value):
        return "rigid"
    return f"{value / 1000:.3g} kN/m" if value >= 1e3 else f"{value:.3g} N/m"


def _split_names(text: Any) -> tuple[str, ...]:
    names = tuple(name.strip() for name in str(text).split(","))
    if not any(names):
        raise InputError("end effectors: name at least one body, with commas between several")
    return tuple(name for name in names if name)
