"""Running a study: cases out, rows in, parts to the disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any

from pliant.errors import FormatError, InputError
from pliant.study.cases import Case, Row, pack
from pliant.study.checks import whole
from pliant.study.processes import Pool, core_count
from pliant.study.results import Results, load
from pliant.study.store import Store
from pliant.study.worker import INSIDE

if TYPE_CHECKING:
    from pliant.study.definition import Study

__all__ = ["run"]

Progress = Callable[[int, int, int], Any]
_SHOW = 0.1  # seconds between signs of progress


def run(
    study: Study,
    *,
    resume: bool,
    workers: int | None,
    scheduler: str | None,
    progress: Progress | None,
    watch: Callable[[Row], Any] | None,
) -> Results:
    """See `Study.run`."""
    if os.environ.get(INSIDE):
        raise InputError(
            "a study was started by one of its own processes: put `run` below `if __name__ == '__main__':`"
        )
    if scheduler is not None and workers is not None:
        raise InputError("workers are processes on this machine; a scheduler has its own: give one of them")
    count = core_count() if workers is None else whole(workers, "workers", 1)
    client = None
    if scheduler is not None:
        from pliant.study.cluster import connect

        client = connect(scheduler)  # before anything is written
    try:
        store = Store(study, resume)
        try:
            missing = [i for i in range(len(study)) if i not in store.done]
            with closing(_rows(study, missing, count, client)) as rows:
                _collect(_watched(rows, watch), store, len(study), progress)
            store.finish()
        finally:
            store.close()
    finally:
        if client is not None:
            client.close()
    return load(study.results)


def _rows(study: Study, missing: list[int], count: int, client: Any) -> Generator[Row, None, None]:
    cases = [Case(index, study.design[index]) for index in missing]
    if not cases:
        return
    payload = pack(study)
    if client is None:
        with Pool(payload, count, study.time_limit) as pool:
            yield from pool.run(cases)
    else:
        from pliant.study.cluster import run_on_cluster

        about = json.dumps(study.definition()).encode() + os.urandom(8)
        key = f"pliant-study-{hashlib.sha256(about).hexdigest()[:16]}"
        yield from run_on_cluster(client, key, payload, cases, study.time_limit)


def _watched(rows: Iterator[Row], watch: Callable[[Row], Any] | None) -> Iterator[Row]:
    for row in rows:
        if watch is not None:
            watch(row)
        yield row


def _collect(rows: Iterator[Row], store: Store, total: int, progress: Progress | None) -> None:
    """Rows to the disk: often at first, then seldom enough that a long study does not leave thousands of parts."""
    done, failed = len(store.done), 0
    buffer: list[Row] = []
    begin = written = monotonic()
    shown = 0.0
    try:
        if progress is not None:
            progress(done, failed, total)
        for row in rows:
            buffer.append(row)
            done, failed, now = done + 1, failed + (row.error is not None), monotonic()
            if progress is not None and now - shown > _SHOW:
                progress(done, failed, total)
                shown = now
            if now - written > min(1.0 + (now - begin) / 100, 30.0):
                full, buffer = buffer, []
                store.append(full)
                written = monotonic()
    except FormatError as error:
        raise _unwritten(error) from None
    except BaseException:
        store.append(buffer)  # Ctrl-C, or no worker is left: what is there is kept
        raise
    try:
        store.append(buffer)
    except FormatError as error:
        raise _unwritten(error) from None
    if progress is not None:
        progress(done, failed, total)


def _unwritten(error: FormatError) -> FormatError:
    return FormatError(f"{error}; the results so far are kept: make room, then resume")
