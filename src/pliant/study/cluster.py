"""Studies on a Dask cluster: Dask workers receive batches of cases and compute them in a child process.

A case that takes too long or kills its process is handled as on this machine, and never ends the Dask worker, which
may hold the data of others.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from time import monotonic
from typing import Any

import pliant
from pliant.errors import InputError, PliantError
from pliant.extras import require
from pliant.study.workers import Case, Pool, Row

__all__ = ["connect", "run_on_cluster"]

_CONNECT = 10  # seconds
_BATCH = 1.0  # seconds of work; Dask's overhead for a task is about a hundredth
_MOST = 2000  # cases in a batch
_LOOK = 5.0  # seconds between counts of the workers

# --- on the workers

_payloads: dict[str, bytes] = {}
_idle: dict[str, list[Pool]] = {}
_lock = threading.Lock()


def compute_batch(key: str, cases: Sequence[Case], time_limit: float | None) -> list[Row]:
    """Rows of a batch. Every thread of a Dask worker has a child process, kept for the next batch."""
    with _lock:
        idle = _idle.setdefault(key, [])
        pool = idle.pop() if idle else Pool(_payloads[key], 1, time_limit)
    try:
        rows = list(pool.run(cases))
    except BaseException:
        pool.close()
        raise
    with _lock:
        if key in _payloads:
            _idle[key].append(pool)
        else:
            pool.close()
    return rows


def remember(key: str, payload: bytes) -> None:
    """Keep the payload of a study for its processes."""
    _payloads[key] = payload


def forget(key: str) -> None:
    """End the processes of a study."""
    with _lock:
        _payloads.pop(key, None)
        for pool in _idle.pop(key, []):
            pool.close()


def _version() -> str:
    return pliant.__version__


def _plugin(key: str, payload: bytes) -> Any:
    """A plugin that sends the payload to every worker once, also to those that join or restart later."""
    from distributed import WorkerPlugin

    class Payload(WorkerPlugin):
        name = key

        def setup(self, worker: Any) -> None:
            remember(key, payload)

        def teardown(self, worker: Any) -> None:
            forget(key)

    return Payload()


# --- on the client


def connect(address: str) -> Any:
    """A client of the scheduler at an address.

    Raises:
        PliantError: there is none, it has no workers, or they have another version of pliant.
    """
    distributed: Any = require("distributed")
    try:
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except Exception:  # of any type: Dask raises what its transports and parsers do
        raise InputError(
            f"no Dask scheduler answers at '{address}'; an address is like tcp://host:8786"
        ) from None
    try:
        if not client.scheduler_info()["workers"]:
            try:
                client.wait_for_workers(1, timeout=_CONNECT)
            except TimeoutError:
                raise InputError(f"the Dask scheduler at '{address}' has no workers: start some") from None
        try:
            versions: Any = client.run(_version)
        except Exception as error:  # a worker without pliant may raise anything
            raise InputError(f"a worker of '{address}' cannot run pliant: {error}") from None
        for worker, version in versions.items():
            if version != pliant.__version__:
                raise InputError(f"worker {worker} has pliant {version}, here is {pliant.__version__}")
    except BaseException:
        client.close()
        raise
    return client


def run_on_cluster(
    client: Any, key: str, payload: bytes, cases: Sequence[Case], time_limit: float | None
) -> Iterator[Row]:
    """Rows of all cases, in the order in which they are finished; the batch of a lost worker goes to another one.

    Raises:
        PliantError: the scheduler was lost.
    """
    try:
        yield from _run(client, key, payload, cases, time_limit)
    except _lost_connection() as error:
        raise PliantError(
            f"the Dask scheduler was lost ({type(error).__name__}); the rows that arrived are kept: start it again, "
            "then resume (--resume)"
        ) from None


def _lost_connection() -> tuple[type[BaseException], ...]:
    """Exceptions of Dask's client whose scheduler has ended."""
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    return (
        CancelledError,
        FutureCancelledError,
        CommClosedError,
        OSError,
    )  # the last when connecting took too long


def _run(
    client: Any, key: str, payload: bytes, cases: Sequence[Case], time_limit: float | None
) -> Iterator[Row]:
    from distributed import KilledWorker, as_completed

    client.register_plugin(_plugin(key, payload), name=key)
    running = as_completed(loop=client.loop)
    batches: dict[Any, Sequence[Case]] = {}
    given, mean, slots, looked = 0, None, 1, -math.inf

    def submit(batch: Sequence[Case]) -> None:
        future = client.submit(compute_batch, key, batch, time_limit, pure=False)
        batches[future] = batch
        running.add(future)

    try:
        while given < len(cases) or batches:
            if monotonic() - looked > _LOOK:
                slots, looked = max(1, sum(client.nthreads().values())), monotonic()
            while given < len(cases) and len(batches) < 2 * slots:
                size = 2 if mean is None else math.ceil(_BATCH / max(mean, 1e-6))
                size = max(1, min(size, _MOST, math.ceil((len(cases) - given) / (4 * slots))))
                submit(cases[given : given + size])
                given += size
            future = next(running)
            batch = batches.pop(future)
            try:
                rows = future.result()
            except KilledWorker:
                if len(batch) == 1:
                    yield Row(
                        batch[0].index, {}, math.nan, "ProcessDied: several Dask workers were lost at it"
                    )
                else:
                    for case in batch:  # one of them may kill workers: each by itself
                        submit([case])
                continue
            mean = sum(row.duration for row in rows) / len(rows)
            yield from rows
    finally:
        with suppress(Exception):  # there may be no scheduler any more
            client.cancel(list(batches))
            client.unregister_worker_plugin(key)
