"""`view`: a mechanism or a world live in the browser."""

from __future__ import annotations

import errno
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from pliant.engines.reduced import BlendedModel, ReducedModel
from pliant.errors import InputError
from pliant.extras import require
from pliant.mechanism import Mechanism
from pliant.viewer.session import Session
from pliant.viewer.setup import Simulation
from pliant.viewer.world_session import WorldSession
from pliant.world import World

if TYPE_CHECKING:
    from pliant.gallery.worlds import Play

__all__ = ["View", "view"]


def view(
    what: Mechanism | ReducedModel | BlendedModel | Simulation | World | Play,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    block: bool = True,
) -> View:
    """Show a mechanism or a world in the browser, in motion: pull it with the mouse, change engines and springs.

    Args:
        what: a Mechanism; a model; a simulation; a World, or one with what is done to it, from `gallery.worlds`.
            Simulations and worlds run in here: leave them alone until the view is stopped.
        host: the address to listen at. By default only this machine can connect: whoever can may do anything here.
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
    session = _session(what)
    shown = View(session, _checked(host, port), port)
    if block:
        print(f"pliant shows '{session.mechanism.name}' at {shown.url} (Ctrl+C ends)", flush=True)
        with shown:
            shown.wait()
    return shown


class View:
    """A live view; made by `pliant.view`. As a context manager it stops at the end.

    Attributes:
        session: what runs, a `Session` or a `WorldSession`; ask the `runner` to touch it.
        runner: the thread it runs in.
        page: what browsers see.
    """

    def __init__(self, session: Session | WorldSession, host: str, port: int):
        viser: Any = require("viser")

        from pliant.viewer.mechanism_page import MechanismPage
        from pliant.viewer.runner import Runner
        from pliant.viewer.scene import quiet
        from pliant.viewer.world_page import WorldPage

        _claim(host, port)
        with quiet():
            self._server = viser.ViserServer(host=host, port=port, label="pliant", verbose=False)
        if port and self._server.get_port() != port:  # viser takes the next one; somebody was quicker
            self._quit()
            raise _in_use(host, port)
        # A page could ask viser for a tunnel through which the whole internet may connect.
        self._server.request_share_url = lambda verbose=True: None
        self.session: Any = session
        self._host = host
        if isinstance(session, WorldSession):
            self.page = WorldPage(self._server, session)
        else:
            self.page = MechanismPage(self._server, session)
        self.runner = Runner(
            session, self.page.show, self.page.fail, lambda: self.page.pacing.interval, self.page.compiling
        )
        self.page.connect(self.runner)
        self._stopped = False
        self.runner.start()

    @property
    def url(self) -> str:
        """Where browsers find it."""
        host = "localhost" if self._host in ("0.0.0.0", "::", "") else self._host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self._server.get_port()}"

    @property
    def running(self) -> bool:
        """Whether it is on."""
        return not self._stopped

    def wait(self, seconds: float | None = None) -> None:
        """Wait, until interrupted (Ctrl+C) or for some seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._stopped and (end is None or time.monotonic() < end):
                time.sleep(0.1 if end is None else min(0.1, max(0.0, end - time.monotonic())))
        except KeyboardInterrupt:
            pass

    def stop(self) -> None:
        """Stop the simulation and the server; again does nothing."""
        if not self._stopped:
            self._stopped = self.page.pacing.stopped = True
            self.runner.stop()
            self._quit()

    def _quit(self) -> None:
        from pliant.viewer.scene import quiet

        with quiet():
            self._server.stop()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        if self._stopped:
            return "<i>this view of pliant is stopped</i>"
        return f'<iframe src="{self.url}" width="100%" height="600" style="border:1px solid #ddd"></iframe>'

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else f"at {self.url}"
        return f"<View of '{self.session.mechanism.name}' {state}>"


# --- arguments


def _session(what: Any) -> Session | WorldSession:
    world = isinstance(what, World) or isinstance(getattr(what, "world", None), World)
    return WorldSession(what) if world else Session(what)


def _checked(host: Any, port: Any) -> str:
    if not isinstance(host, str):
        raise InputError(f"host: an address such as '127.0.0.1' expected, not {host!r:.80}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InputError(f"port: a whole number from 0 (any free one) to 65535 expected, not {port!r:.80}")
    return host


def _claim(host: str, port: int) -> None:
    """Raise unless the port can be listened at."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if (
                os.name == "posix"
            ):  # where it lets go of ports that a moment ago were in use, and only of those
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
