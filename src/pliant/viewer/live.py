"""`view`: a mechanism, a world or a path of equilibria live in the browser.

A `View` has a page, a `Runner`, the thread that owns the session, and a `Pacing`, which measures the frames a
second all browsers keep up with.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Self

from pliant.checks import whole
from pliant.compilation.progress import listening
from pliant.continuation import Path
from pliant.engines.reduced import BlendedModel, ReducedModel
from pliant.errors import InputError, PliantError
from pliant.extras import require
from pliant.mechanism import Mechanism
from pliant.scenes.scene import Scene
from pliant.text import brief
from pliant.viewer.guard import Guard, guarded
from pliant.viewer.messages import Inspector
from pliant.viewer.opening import Opener
from pliant.viewer.page import MechanismPage, Page, PathPage, WorldPage
from pliant.viewer.path_session import PathSession
from pliant.viewer.session import RealTimePlayer, Session, Simulation, WorldSession
from pliant.viewer.stage import silence
from pliant.world import World

__all__ = ["FRAME", "Pacing", "Runner", "Served", "View", "check_address", "view"]

FRAME = 1 / 60  # s from one frame to the next, at least
_SLOWEST = 0.25  # s from one frame to the next, at most
_STEPPING = 0.8  # of the time between two frames, for steps
_LONGEST_GAP = 0.25  # s: a longer pause, such as for a model being made, is not caught up on
_FAST_ENOUGH = 2 * FRAME  # s of a browser's frame at which it still gets every frame
_MARGIN = 1.5  # times a slow browser's frame, so that it has time for clicks and drags
_ASK_EVERY = 0.5  # s between questions to a browser
_ANSWERS = 16  # round-trip times kept
_TIMEOUT = 2.0  # s
_LONGEST_OPENING = 600.0  # s: what is opened may have to be reduced or compiled first
_QUESTION = "pliant"  # key in a browser's storage, where nothing is stored


def view(
    what: Mechanism | ReducedModel | BlendedModel | Simulation | World | Scene | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    block: bool = True,
) -> View:
    """Show a mechanism or a world in the browser, in motion: pull it with the mouse, change engines and springs.

    Args:
        what: a Mechanism; a model; a simulation; a World; a Scene, as `pliant.scenes` has them; or a Path of
            equilibria, with a slider along it. Simulations and worlds run in the view: leave them alone until it is
            stopped.
        host: the address to listen at. By default only this machine can connect: clients may do anything here.
        port: the port to listen at; 0 takes any that is free.
        block: wait until interrupted (Ctrl+C). False returns at once.

    Returns:
        A handle with `url`, `wait` and `stop`; in a notebook it shows the view.

    Raises:
        InputError: an argument is unusable, or the port is in use.

    Example:
        >>> import pliant
        >>> shown = pliant.view(pliant.gallery.hand(), port=0, block=False)
        >>> shown.url.startswith("http://127.0.0.1:")
        True
        >>> shown.stop()
    """
    shown = View(_session(what), host, port)
    if block:
        shown.block()
    return shown


class Served:
    """A page in the browser with an address of its own. As a context manager it stops at the end."""

    def __init__(self, title: str, host: str, port: int):
        """Start the server.

        Args:
            title: name of the thing shown.
            host, port: as for `view`.

        Raises:
            InputError: an argument is unusable, or the port is in use.
        """
        viser: Any = require("viser")

        check_address(host, port)
        self._title, self._host = title, host
        self._guard, inspector = Guard(host), Inspector()
        with silence(), guarded(self._guard, inspector):
            self._server = viser.ViserServer(host=host, port=port, label="pliant", verbose=False)
        inspector.find_control = self._control
        if port and self._server.get_port() != port:  # the port was taken meanwhile, viser uses the next one
            self._quit()
            raise _in_use(host, port)
        # A client could ask viser for a tunnel that opens the view to the internet.
        self._server.request_share_url = lambda verbose=True: None
        self._stopped = False

    def _control(self, identifier: str) -> Any:
        """The control with an identifier, of the page of all clients or of one; None: there is none."""
        clients = tuple(self._server.get_clients().values())
        for owner in (self._server, *clients):
            found = owner.gui._gui_input_handle_from_uuid.get(identifier)
            if found is not None:
                return found
        return None

    @property
    def url(self) -> str:
        """Address of the page."""
        host = "localhost" if self._host in ("0.0.0.0", "::", "") else self._host
        host = f"[{host}]" if ":" in host else host
        token = f"/?token={self._guard.token}" if self._guard.token else ""
        return f"http://{host}:{self._server.get_port()}{token}"

    @property
    def running(self) -> bool:
        """Whether it has not been stopped."""
        return not self._stopped

    def wait(self, seconds: float | None = None) -> None:
        """Wait, until interrupted (Ctrl+C) or for some seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._stopped and (end is None or time.monotonic() < end):
                time.sleep(0.1 if end is None else min(0.1, max(0.0, end - time.monotonic())))
        except KeyboardInterrupt:
            pass

    def announce(self, title: str | None = None) -> None:
        """Print the address on stdout; `title` in place of its own."""
        print(f"pliant shows '{title or self._title}' at {self.url} (Ctrl+C ends)", flush=True)

    def block(self) -> None:
        """Print the address, wait until interrupted, stop."""
        self.announce()
        with self:
            self.wait()

    def stop(self) -> None:
        """Stop the server; again does nothing."""
        if not self._stopped:
            self._stopped = True
            self._end()
            self._quit()

    def _end(self) -> None:
        """End other threads before the server stops."""

    def _quit(self) -> None:
        with silence():
            self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        if self._stopped:
            return "<i>this view of pliant is stopped</i>"
        return f'<iframe src="{self.url}" width="100%" height="600" style="border:1px solid #ddd"></iframe>'

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else f"at {self.url}"
        return f"<{type(self).__name__} of '{self._title}' {state}>"


class View(Served):
    """A live view; made by `pliant.view`.

    Attributes:
        session: a `Session`, a `WorldSession` or a `PathSession`; use it by way of the `runner` only.
        runner: the thread that owns the session.
        page: the browser page.
        pacing: the time between frames.
    """

    def __init__(self, session: Session | WorldSession | PathSession, host: str, port: int):
        super().__init__(session.mechanism.name, host, port)
        self.session: Any = session
        self.opener = Opener()
        self.page = _page(self._server, session, self.opener)
        self.pacing = pacing = Pacing(self._server)
        self.runner = runner = Runner(
            session,
            lambda: self.page.show(),
            lambda message, who: self.page.show_error(message, who),
            lambda: pacing.interval,
            lambda notice: self.page.show_compilation(notice),
        )
        self.page.connect(runner, pacing, self._show)
        runner.start()

        @self._server.on_client_connect
        async def _(client: Any) -> None:
            pacing.watch(client)
            runner.do(lambda: self.page.welcome(client))

        @self._server.on_client_disconnect
        async def _(client: Any) -> None:
            runner.do(lambda: self.session.release(client.client_id))

    def open(self, what: Any) -> None:
        """Show something else in place of what is shown, to all browsers; anything that `pliant.view` takes."""
        self.runner.ask(lambda: self._show(lambda: what), timeout=_LONGEST_OPENING)

    def offer_keyframes(
        self, keyframes: tuple[str, ...], load: Callable[[str | None], Any], shown: str | None = None
    ) -> None:
        """Offer keyframes of what is shown; `load` takes the name of one, or None, and returns what is viewed then."""
        self.opener.offer(keyframes, load, shown)
        self.runner.ask(lambda: self._build(self.session), timeout=_LONGEST_OPENING)

    def _show(self, make: Callable[[], Any]) -> None:
        """Show what a function returns, in the runner's thread. After an error everything is as it was."""
        self.opener.remarks = ()
        with self.opener.trying():
            session = _session(make())
            self._build(session)
        self._title = session.mechanism.name
        for client in self._server.get_clients().values():
            self.page.stage.aim(client, "Corner", session.poses)
            for remark in self.opener.remarks:
                client.add_notification("Left out", remark[:1000], color="yellow", auto_close_seconds=20.0)

    def _build(self, session: Any) -> None:
        """Make the page of a session and run it; if that fails, the page of the session before."""
        self.page.retired = True
        try:
            self._make_page(session)
        except BaseException:
            self._make_page(self.session)
            raise
        self.session = self.runner.session = session

    def _make_page(self, session: Any) -> None:
        with self._server.atomic():
            self._server.gui.reset()
            self._server.scene.reset()
            self.page = _page(self._server, session, self.opener)
        self.page.connect(self.runner, self.pacing, self._show)
        self.page.welcome()

    def _end(self) -> None:
        self.pacing.stopped = True
        self.runner.stop()
        self.opener.close()


# --- the thread of a session


class Runner:
    """Thread that owns a session: plays it in real time, shows it, and between steps executes commands.

    Nothing else may touch the session while it runs: hand commands over with `do` or `ask`.
    """

    def __init__(
        self,
        session: RealTimePlayer,
        show: Callable[[], None],
        fail: Callable[[str, Any], None],
        interval: Callable[[], float] = lambda: FRAME,
        wait: Callable[[str], None] = lambda notice: None,
    ):
        """Prepare; `start` begins.

        Args:
            session: the session to run.
            show: draws the session; called between steps, in the runner's thread.
            fail: called with an error message and the client that had asked, None if no one had.
            interval: seconds from one frame to the next.
            wait: called with a notice when kernels compile.
        """
        self.session, self._show, self._fail, self._interval = session, show, fail, interval
        self._wait = wait
        self._lock = threading.Lock()
        self._waiting: dict[Any, tuple[Callable[[], None], Any]] = {}
        self._count = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pliant view", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; waiting commands are dropped."""
        self._stopped.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def do(self, command: Callable[[], None], who: Any = None, key: Hashable = None) -> None:
        """Execute a command between two steps, soon.

        Args:
            command: the command.
            who: the client that asks, and is told about errors.
            key: of waiting commands with the same key, only the last is executed: sliders send many.
        """
        with self._lock:
            self._count += 1
            name = (None, self._count) if key is None else ("key", key)
            self._waiting.pop(name, None)
            self._waiting[name] = (command, who)

    def ask(self, question: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Compute something between two steps and wait for the answer; its errors are raised here."""
        done, answer = threading.Event(), {}

        def command() -> None:
            try:
                answer["value"] = question()
            except BaseException as error:
                answer["error"] = error
            done.set()

        self.do(command)
        if not done.wait(timeout):
            raise TimeoutError("the simulation did not answer in time")
        if "error" in answer:
            raise answer["error"]
        return answer["value"]

    def _run(self) -> None:
        with listening(self._wait):
            self._loop()

    def _loop(self) -> None:
        last = due = time.perf_counter()
        while not self._stopped.is_set():
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for command, who in waiting.values():
                self._try(command, who)
            frame = self._interval()
            begin = time.perf_counter()
            real, last = min(begin - last, _LONGEST_GAP), begin
            self._try(lambda real=real, frame=frame: self.session.advance(real, _STEPPING * frame), None)
            shown = time.perf_counter()
            self._try(self._show, None)
            now = time.perf_counter()
            # A late frame does not delay the next. Huge mechanisms take long to draw: at most half the time is spent
            # on drawing, so that they are simulated as often as others.
            due = max(due + frame, now + max(now - shown, 0.001))
            self._stopped.wait(due - now)

    def _try(self, command: Callable[[], Any], who: Any) -> None:
        try:
            command()
        except PliantError as error:
            self._tell(str(error), who)
        except Exception as error:  # a bug must not end the view
            traceback.print_exc()
            self._tell(f"unexpected {type(error).__name__}: {error}", who)

    def _tell(self, message: str, who: Any) -> None:
        try:
            self._fail(message, who)
        except Exception:  # such as of a client that has just left
            traceback.print_exc()


# --- frames a second


class Pacing:
    """Time between frames: sixty a second if all browsers keep up, fewer if one does not.

    Browser frame time, from the spread of round-trip times: it answers only between frames, at once or after a whole
    frame, and the time on the network is the same for both. A thread per browser asks, until it disconnects.

    Attributes:
        drawn: set it whenever a frame was drawn; browsers are asked only then.
        stopped: set it to end the threads.
    """

    def __init__(self, server: Any) -> None:
        self._server, self._times = server, dict[int, float]()
        self.drawn, self.stopped = False, False

    @property
    def interval(self) -> float:
        """Seconds from one frame to the next that all browsers keep up with."""
        slowest = max(tuple(self._times.values()), default=0.0)
        return FRAME if slowest <= _FAST_ENOUGH else min(_MARGIN * slowest, _SLOWEST)

    def watch(self, client: Any) -> None:
        """Measure a browser until it disconnects."""
        threading.Thread(target=self._watch, args=(client,), name="pliant pacing", daemon=True).start()

    def _watch(self, client: Any) -> None:
        times = deque[float](maxlen=_ANSWERS)
        try:
            while self._sees(client):
                time.sleep(_ASK_EVERY)
                if self.drawn:
                    self.drawn = False
                    # The first is answered between frames: the second, sent then, waits for a whole frame.
                    times.extend((self._round_trip(client), self._round_trip(client)))
                    self._times[client.client_id] = _spread(sorted(times))
        except ConnectionError:
            pass
        finally:
            self._times.pop(client.client_id, None)

    def _sees(self, client: Any) -> bool:
        """Whether a browser is still connected and to be measured."""
        return not self.stopped and client.client_id in self._server.get_clients()

    def _round_trip(self, client: Any) -> float:
        """Round-trip time of a question, s.

        Raises:
            ConnectionError: the browser has disconnected.
        """
        start = time.perf_counter()
        try:
            if not self._sees(client):
                raise ConnectionError
            client.local_storage.get_item(_QUESTION, timeout=_TIMEOUT)
        except TimeoutError:
            return _TIMEOUT
        except RuntimeError as error:  # disconnected; or storage is blocked, which is an answer
            if "disconnect" in str(error):
                raise ConnectionError from None
        return time.perf_counter() - start


def _spread(values: list[float]) -> float:
    """Largest minus smallest of sorted values; from six on, without one outlier at either end."""
    return values[-1] - values[0] if len(values) < 6 else values[-2] - values[1]


# --- arguments


def _page(server: Any, session: Session | WorldSession | PathSession, opener: Opener) -> Page:
    if isinstance(session, WorldSession):
        return WorldPage(server, session, opener)
    if isinstance(session, PathSession):
        return PathPage(server, session, opener)
    return MechanismPage(server, session, opener)


def _session(what: Any) -> Session | WorldSession | PathSession:
    if isinstance(what, Path):
        return PathSession(what)
    world = isinstance(what, World) or (isinstance(what, Scene) and what.engine == "world")
    return WorldSession(what) if world else Session(what)


def check_address(host: Any, port: Any) -> None:
    """Refuse an address at which one cannot listen now."""
    if not isinstance(host, str):
        raise InputError(f"host: an address such as '127.0.0.1' expected, not {brief(host)}")
    whole(port, "port", 0, 65535, expected="a whole number from 0 (any free one) to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # allows ports in TIME_WAIT; elsewhere it would allow ports in use
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _in_use(host, port) from None
        raise InputError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}; "
            "host='127.0.0.1' and a port above 1023 usually work"
        ) from None


def _in_use(host: str, port: int) -> InputError:
    return InputError(
        f"port {port} of {host} is in use, perhaps by another view: stop that one, choose another port "
        f"(port={port + 1 if port < 65535 else port - 1}), or let one be found (port=0)"
    )
