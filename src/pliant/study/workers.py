"""Cases of a study, computed in this process or in worker processes on this machine.

A worker is a `pliant.child` that reads cases from its stdin, writes rows to its stdout, and ends when stdin does.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import queue
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from time import monotonic, perf_counter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pliant.child import Child, read_frame, take_pipes, write_frame
from pliant.compilation.progress import QUIET
from pliant.errors import InputError, PliantError
from pliant.statics.equilibria import Equilibria, solve_cases
from pliant.study.outputs import Function, Load, Output, Situation
from pliant.study.parameters import Parameter, case_seed
from pliant.study.source import MechanismSource

if TYPE_CHECKING:
    from pliant.study.study import Study

__all__ = ["INSIDE", "Case", "Pool", "Row", "core_count", "pack", "run_here"]

CODE = "from pliant.study.workers import main; main()"  # of a worker process
INSIDE = "PLIANT_STUDY_WORKER"  # environment variable of worker processes
THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
# One thread per process: all cores are in use, and the order of sums does not depend on their number.
ENVIRONMENT = {**dict.fromkeys(THREADS, "1"), INSIDE: "1"}
ATTEMPTS = 2  # at a case whose process dies: the first time something else may have killed it
_LONGEST = 500  # characters of an error in the table
_AHEAD = 0.25  # seconds of work queued in a process
_MOST = 64  # cases queued in a process; a pipe holds them without blocking
_STARTS = 3  # processes that may die before any is ready


class Case(NamedTuple):
    """A case to be computed: its index, and the values of its parameters."""

    index: int
    values: tuple[Any, ...]


class Row(NamedTuple):
    """Result of a case.

    Attributes:
        index: of the case.
        outputs: numbers by column.
        duration: of the computation, s.
        error: one line, or None.
    """

    index: int
    outputs: dict[str, float]
    duration: float
    error: str | None = None


# --- one case after the other


@dataclass(frozen=True)
class Evaluator:
    """Everything that a process needs to compute any case of a study.

    Attributes:
        source, parameters, outputs, seed: of the study.
        first: the case to warm up with.
        together: whether equilibria of several cases may be found together, which no time limit of one could stop.
    """

    source: MechanismSource
    parameters: Sequence[Parameter]
    outputs: Sequence[Output]
    seed: int
    first: Case
    together: bool

    def warm_up(self) -> None:
        """Compile the kernels of the first case, or load them from the cache, and import the user's functions.

        The functions are not called: they may run without end, and only cases have a time limit.
        """
        with suppress(Exception):  # the row of the first case will have the error
            self._compute(self.first, [o for o in self.outputs if not isinstance(o, Function)])
        for output in self.outputs:
            if isinstance(output, Function):
                output.function.find()

    def __call__(self, cases: Sequence[Case]) -> Iterator[Row]:
        """Rows of cases, in order; an exception becomes the row's error."""
        start = perf_counter()
        known = self._settle(cases)
        share = (perf_counter() - start) / len(cases)
        for number, case in enumerate(cases):
            yield self._row(case, {load: (found, number) for load, found in known.items()}, share)

    def _settle(self, cases: Sequence[Case]) -> dict[Load, Equilibria]:
        """Equilibria of all cases by load, if the cases differ in loads alone."""
        if not self.together or self.source.varies(self.parameters):
            return {}
        m = self.source.build(self.parameters, {})
        known: dict[Load, Equilibria] = {}
        with suppress(Exception):  # the row of the case in question will have the error
            for load in {output.settles for output in self.outputs} - {Load()}:
                loads = [load.wrenches(self._values(case)) for case in cases]
                known[load] = solve_cases(m, loads, gravity=load.gravity, threads=1)
        return known

    def _row(self, case: Case, known: Mapping[Load, tuple[Equilibria, int]], share: float) -> Row:
        """The row of a case; `share` is the time that its part of `known` took, s."""
        found: dict[str, float] = {}
        error = None
        start = perf_counter()
        try:
            found = self._compute(case, self.outputs, known)
        except (Exception, SystemExit) as problem:
            error = f"{type(problem).__name__}: {problem}"
        duration = share + perf_counter() - start
        if error is None:
            wild = [name for name, value in found.items() if not math.isfinite(value)]
            error = f"'{wild[0]}' is {found[wild[0]]}" if wild else None
        return Row(case.index, found, duration, error and " ".join(error.split())[:_LONGEST])

    def _values(self, case: Case) -> dict[str, Any]:
        return dict(zip((p.name for p in self.parameters), case.values, strict=True))

    def _compute(
        self,
        case: Case,
        outputs: Sequence[Output],
        known: Mapping[Load, tuple[Equilibria, int]] | None = None,
    ) -> dict[str, float]:
        values = self._values(case)
        mechanism = self.source.build(self.parameters, values)
        situation = Situation(mechanism, values, case_seed(self.seed, case.index), known)
        found: dict[str, float] = {}
        for output in outputs:
            found.update(output.compute(situation))
        return found


def pack(study: Study) -> bytes:
    """The evaluator of a study and the folders of its modules, pickled; sent once to each process."""
    first = Case(0, study.design[0])
    together = study.time_limit is None
    evaluator = Evaluator(study.source, study.parameters, study.outputs, study.seed, first, together)
    return pickle.dumps((str(study.folder), [*sys.path], pickle.dumps(evaluator)))


def _unpack(payload: bytes) -> Evaluator:
    """The evaluator in the process that uses it, warmed up."""
    folder, path, packed = pickle.loads(payload)
    for place in (folder, *path):
        if place and place not in sys.path and os.path.isdir(place):
            sys.path.append(place)
    evaluator = pickle.loads(packed)
    evaluator.warm_up()
    return evaluator


def run_here(payload: bytes, cases: Sequence[Case]) -> Iterator[Row]:
    """Rows of all cases, computed in this process, in order. There is no time limit, and a crash ends this process."""
    with _as_worker():
        evaluate = _unpack(payload)
    given, size = 0, 1
    while given < len(cases):
        rows, spent = evaluate(cases[given : given + size]), 0.0
        for _ in range(min(size, len(cases) - given)):
            with _as_worker():
                row = next(rows)
            given, spent = given + 1, spent + row.duration
            yield row
        size = max(1, min(_MOST, int(_AHEAD * size / max(spent, 1e-9))))


@contextmanager
def _as_worker() -> Iterator[None]:
    """Settings of a worker in this process: no warnings, prints go to stderr, OpenBLAS has one thread."""
    libraries = _openblas()
    before = [read() for read, _ in libraries]
    try:
        for _, write in libraries:
            write(1)
        with warnings.catch_warnings(), redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        for (_, write), threads in zip(libraries, before, strict=True):
            write(threads)


@cache
def _openblas() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Functions that read and write the number of threads of OpenBLAS, as the wheels of numpy and scipy have it.

    With several threads, large sums have another order and other last digits. Other builds obey `THREADS`.
    """
    found = []
    for module, suffix in (("numpy.linalg.lapack_lite", "64_"), ("scipy.linalg.cython_lapack", "")):
        with suppress(ImportError, OSError, AttributeError):
            library = ctypes.CDLL(str(import_module(module).__file__))
            names = (f"scipy_openblas_{what}_num_threads{suffix}" for what in ("get", "set"))
            found.append(tuple(getattr(library, name) for name in names))
    return found


# --- the child's side of a worker process


def _send(pipe: IO[bytes], message: Any) -> None:
    """Write a pickled message: only between a process and its child."""
    write_frame(pipe, pickle.dumps(message))


def _receive(pipe: IO[bytes]) -> Any:
    return pickle.loads(read_frame(pipe))


def main() -> None:
    """Compute cases from stdin until it ends."""
    inward, out = take_pipes()
    warnings.simplefilter("ignore")  # thousands of cases would repeat them
    payload = _receive(inward)
    waiting: queue.SimpleQueue[Sequence[Case]] = queue.SimpleQueue()
    threading.Thread(target=_read_cases, args=(inward, waiting), daemon=True).start()
    try:
        evaluate = _unpack(payload)
    except Exception as error:
        _send(out, ("refused", f"{type(error).__name__}: {error}"))
        return
    _send(out, ("ready", None))
    try:
        while True:
            for row in evaluate(waiting.get()):
                _send(out, ("row", row))
    except BrokenPipeError:
        os._exit(0)


def _read_cases(pipe: IO[bytes], waiting: queue.SimpleQueue[Sequence[Case]]) -> None:
    """Queue cases while others are computed; end this process as soon as its parent has ended, even if killed."""
    try:
        while True:
            waiting.put(_receive(pipe))
    except (EOFError, OSError):
        os._exit(0)


# --- the parent's side


def core_count() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker(Child):
    """A worker process and the cases it has been sent; if `quiet`, it does not report compilation."""

    def __init__(self, payload: bytes, messages: queue.SimpleQueue[Any], quiet: bool):
        # Ctrl-C is for the client alone.
        super().__init__(
            CODE, environment={**ENVIRONMENT, **({QUIET: "1"} if quiet else {})}, own_session=True
        )
        self.cases: deque[Case] = deque()
        self.ready, self.alive, self.since = False, True, monotonic()
        self.messages = messages
        threading.Thread(target=self._listen, daemon=True).start()
        self.post(payload)

    def post(self, message: Any) -> None:
        with suppress(OSError):  # the process has died: the thread reports it
            self.send(pickle.dumps(message))

    def _listen(self) -> None:
        try:
            while True:
                self.messages.put((self, *pickle.loads(self.receive())))
        except (EOFError, OSError, ValueError):  # ValueError: `end` has closed the pipe
            self.messages.put((self, "gone", None))

    def end(self, *, patience: float = 0.0) -> int:
        self.alive = False
        return super().end(patience=patience)


class Pool:
    """`workers` processes that compute cases of one study. A process that dies loses only its current case."""

    def __init__(self, payload: bytes, workers: int, time_limit: float | None = None):
        self._payload, self._count, self._limit = payload, workers, time_limit
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._starts, self._started = 0, False
        self._mean: float | None = None  # seconds per case

    def close(self) -> None:
        """Kill all processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def run(self, cases: Iterable[Case]) -> Iterator[Row]:
        """Rows of all cases, in the order in which they are finished.

        Raises:
            PliantError: processes do not start.
        """
        pending = deque(cases)
        left = len(pending)
        deaths: Counter[int] = Counter()  # by case
        while left:
            while len(self._workers) < min(self._count, left):
                self._workers.append(_Worker(self._payload, self._messages, bool(self._workers)))
            self._feed(pending, left)
            for row in self._next(pending, deaths):
                left -= 1
                yield row

    def _feed(self, pending: deque[Case], left: int) -> None:
        """Send cases to every process: enough to keep it busy, at most a fair share of those left."""
        ahead = 2 if self._mean is None else math.ceil(_AHEAD / max(self._mean, 1e-6))
        fair = math.ceil(left / (2 * self._count)) if self._count > 1 else left
        ahead = max(1, min(ahead, _MOST, fair))
        for worker in self._workers:
            if worker.alive and pending and 2 * len(worker.cases) <= ahead:
                batch = [pending.popleft() for _ in range(min(len(pending), ahead - len(worker.cases) or 1))]
                if not worker.cases:
                    worker.since = monotonic()
                worker.cases.extend(batch)
                worker.post(batch)

    def _next(self, pending: deque[Case], deaths: Counter[int]) -> Iterator[Row]:
        """Handle the next message of any process, or a time limit that is exceeded first."""
        try:
            worker, what, value = self._messages.get(timeout=self._patience())
        except queue.Empty:
            yield from self._stop_late(pending)
            return
        if not worker.alive:
            return  # a last message; its cases are pending again
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
            yield from self._replace(worker, pending, deaths)

    def _patience(self) -> float:
        """Seconds until the first case exceeds its time limit, at most one."""
        if self._limit is None:
            return 1.0
        now = monotonic()
        waits = [w.since + self._limit - now for w in self._workers if w.ready and w.cases]
        return min(1.0, max(0.0, min(waits, default=1.0)) + 0.001)

    def _stop_late(self, pending: deque[Case]) -> Iterator[Row]:
        """Kill processes over the time limit. Only when no message is waiting: it may be the late case's row."""
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

    def _replace(self, worker: _Worker, pending: deque[Case], deaths: Counter[int]) -> Iterator[Row]:
        """Put the cases of a dead process back; the one it was computing only for a second attempt."""
        took = monotonic() - worker.since
        code = worker.end()
        self._workers.remove(worker)
        if not worker.ready:
            self._starts += 1
            if self._starts >= _STARTS and not self._started:
                raise PliantError(f"processes end before they have computed anything: {_ended(code)}")
        elif worker.cases:
            at = worker.cases[0].index
            deaths[at] += 1
            if deaths[at] >= ATTEMPTS:
                worker.cases.popleft()
                yield Row(at, {}, took, f"ProcessDied: {_ended(code)}, {ATTEMPTS} times")
        pending.extendleft(reversed(worker.cases))


def _ended(code: int) -> str:
    if code >= 0:
        return f"the process ended with code {code}"
    with suppress(ValueError):
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process was ended by signal {-code}"
