"""Processes on this machine. One that dies loses the case it was at, nothing else."""

from __future__ import annotations

import math
import os
import queue
import signal
import subprocess
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

from pliant.compilation.progress import QUIET
from pliant.errors import InputError, PliantError
from pliant.study.cases import Case, Row
from pliant.study.worker import COMMAND, ENVIRONMENT, receive, send

__all__ = ["Pool", "core_count"]

ATTEMPTS = 2  # whoever kills a process may have meant another one; a case that kills two is to blame
_AHEAD = 0.25  # seconds of work that a process has in store
_MOST = 64  # cases in store; a pipe holds them without blocking
_STARTS = 3  # processes that may die before they have done anything


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """A process and the cases it has; `quiet` about kernels that it compiles, as all but the first are."""

    def __init__(self, payload: bytes, messages: queue.SimpleQueue[Any], quiet: bool):
        self.cases: deque[Case] = deque()
        self.ready, self.alive, self.since = False, True, monotonic()
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, **({QUIET: "1"} if quiet else {})},
            start_new_session=True,  # Ctrl-C is for the client alone
        )
        self.messages = messages
        threading.Thread(target=self._listen, daemon=True).start()
        self.send(payload)

    def send(self, message: Any) -> None:
        with suppress(OSError):  # if it has died, the thread notices
            send(self.process.stdin, message)  # type: ignore[arg-type]

    def _listen(self) -> None:
        try:
            while True:
                self.messages.put((self, *receive(self.process.stdout)))  # type: ignore[arg-type]
        except (EOFError, OSError):
            self.messages.put((self, "gone", None))
        finally:
            self.process.stdout.close()  # type: ignore[union-attr]

    def end(self) -> int:
        """Kill it, if it still lives; what it ended with."""
        self.alive = False
        self.process.kill()
        code = self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        return code


class Pool:
    """So many processes that compute cases of one study."""

    def __init__(self, payload: bytes, workers: int, time_limit: float | None = None):
        self._payload, self._count, self._limit = payload, workers, time_limit
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._starts, self._started = 0, False
        self._mean: float | None = None  # seconds a case

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    @property
    def processes(self) -> list[int]:
        """Their process ids."""
        return [worker.process.pid for worker in self._workers]

    def run(self, cases: Iterable[Case]) -> Iterator[Row]:
        """Rows of all cases, as they come.

        Raises:
            PliantError: processes do not even start.
        """
        pending = deque(cases)
        left = len(pending)
        blamed: Counter[int] = Counter()
        while left:
            while len(self._workers) < min(self._count, left):
                self._workers.append(_Worker(self._payload, self._messages, bool(self._workers)))
            self._feed(pending, left)
            for row in self._next(pending, blamed):
                left -= 1
                yield row

    def _feed(self, pending: deque[Case], left: int) -> None:
        """Keep every process supplied, none with so much that others run dry at the end."""
        ahead = 2 if self._mean is None else math.ceil(_AHEAD / max(self._mean, 1e-6))
        fair = math.ceil(left / (2 * self._count)) if self._count > 1 else left
        ahead = max(1, min(ahead, _MOST, fair))
        for worker in self._workers:
            if worker.alive and pending and 2 * len(worker.cases) <= ahead:
                batch = [pending.popleft() for _ in range(min(len(pending), ahead - len(worker.cases) or 1))]
                if not worker.cases:
                    worker.since = monotonic()
                worker.cases.extend(batch)
                worker.send(batch)

    def _next(self, pending: deque[Case], blamed: Counter[int]) -> Iterator[Row]:
        try:
            worker, what, value = self._messages.get(timeout=self._patience())
        except queue.Empty:
            yield from self._stop_late(pending)
            return
        if not worker.alive:
            return  # its last words; what it had was given to others
        if what == "row":
            worker.cases.popleft()
            worker.since = monotonic()
            self._mean = value.duration if self._mean is None else 0.9 * self._mean + 0.1 * value.duration
            yield value
        elif what == "ready":
            worker.ready = self._started = True
            worker.since = monotonic()
        elif what == "refused":
            raise InputError(f"a process cannot compute this study: {value}")
        else:
            yield from self._replace(worker, pending, blamed)

    def _patience(self) -> float:
        """Seconds until the first case is over its limit."""
        if self._limit is None:
            return 1.0
        now = monotonic()
        waits = [w.since + self._limit - now for w in self._workers if w.ready and w.cases]
        return min(1.0, max(0.0, min(waits, default=1.0)) + 0.001)

    def _stop_late(self, pending: deque[Case]) -> Iterator[Row]:
        """Kill whoever is over the time limit. Only when there is no message left: it may be that of its result."""
        if self._limit is None:
            return
        for worker in list(self._workers):
            took = monotonic() - worker.since
            if worker.ready and worker.cases and took > self._limit:
                worker.end()
                self._workers.remove(worker)
                late = worker.cases.popleft()
                pending.extendleft(reversed(worker.cases))
                yield Row(late.index, {}, took, f"TimeLimit: stopped after {self._limit:g} s")

    def _replace(self, worker: _Worker, pending: deque[Case], blamed: Counter[int]) -> Iterator[Row]:
        """Its process has died: the case it was at is tried again, once; the others go back."""
        took = monotonic() - worker.since
        code = worker.end()
        self._workers.remove(worker)
        if not worker.ready:
            self._starts += 1
            if self._starts >= _STARTS and not self._started:
                raise PliantError(f"processes end before they have computed anything: {_ended(code)}")
        elif worker.cases:
            at = worker.cases[0].index
            blamed[at] += 1
            if blamed[at] >= ATTEMPTS:
                worker.cases.popleft()
                yield Row(at, {}, took, f"ProcessDied: {_ended(code)}, {ATTEMPTS} times")
        pending.extendleft(reversed(worker.cases))


def _ended(code: int) -> str:
    if code >= 0:
        return f"the process ended with code {code}"
    with suppress(ValueError):
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process was ended by signal {-code}"
