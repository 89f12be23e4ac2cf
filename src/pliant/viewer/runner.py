"""`Runner`: one thread that owns a session. It steps, and between steps does what others ask for."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Hashable
from typing import Any

from pliant.compilation.progress import listening
from pliant.errors import PliantError
from pliant.viewer.clock import Clock
from pliant.viewer.pacing import FRAME

__all__ = ["Runner"]

_SHARE = 0.8  # of the time between two pictures, for steps
_LONGEST = 0.25  # s: a longer pause, such as a model being made, is not caught up on


class Runner:
    """Runs a session in real time and shows it.

    Nothing else may touch the session while it runs: hand over what is to be done with `do`.
    """

    def __init__(
        self,
        session: Clock,
        show: Callable[[], None],
        fail: Callable[[str, Any], None],
        interval: Callable[[], float] = lambda: FRAME,
        wait: Callable[[str], None] = lambda notice: None,
    ):
        """Prepare.

        Args:
            session: what to run.
            show: draws the session; called between steps, in the runner's thread.
            fail: told what went wrong, and who had asked for it (None: nobody).
            interval: seconds from one picture to the next.
            wait: told what is compiled when kernels compile.
        """
        self.session, self._show, self._fail, self._interval = session, show, fail, interval
        self._wait = wait
        self._lock = threading.Lock()
        self._waiting: dict[Any, tuple[Callable[[], None], Any]] = {}
        self._count = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pliant view", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is waiting is not done any more."""
        self._stopped.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def do(self, command: Callable[[], None], who: Any = None, key: Hashable = None) -> None:
        """Have something done between two steps, soon.

        Args:
            command: what to do.
            who: asks, and is told if it fails.
            key: of several with the same key that are waiting, only the last is done: sliders send many.
        """
        with self._lock:
            self._count += 1
            name = (None, self._count) if key is None else ("key", key)
            self._waiting.pop(name, None)
            self._waiting[name] = (command, who)

    def ask(self, question: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Have something computed between two steps and wait for the answer; errors come back."""
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
            real, last = min(begin - last, _LONGEST), begin
            self._try(lambda real=real, frame=frame: self.session.advance(real, _SHARE * frame), None)
            shown = time.perf_counter()
            self._try(self._show, None)
            now = time.perf_counter()
            # A picture that was late does not delay the next. Drawing huge mechanisms takes long: they are drawn less
            # often, and simulated no less.
            due = max(due + frame, now + max(now - shown, 0.001))
            self._stopped.wait(due - now)

    def _try(self, command: Callable[[], Any], who: Any) -> None:
        try:
            command()
        except PliantError as error:
            self._tell(str(error), who)
        except Exception as error:  # a mistake in here must not end the view
            traceback.print_exc()
            self._tell(f"unexpected {type(error).__name__}: {error}", who)

    def _tell(self, message: str, who: Any) -> None:
        try:
            self._fail(message, who)
        except Exception:  # nobody to tell, such as a client that has just left
            traceback.print_exc()
