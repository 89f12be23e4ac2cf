"""A process that computes cases. It reads them from stdin, writes rows to stdout, and ends when stdin does.

A pipe rather than `multiprocessing`: a Dask worker may start it too (it may not start processes of that kind), and
a script needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import sys
import threading
from typing import IO, Any

__all__ = ["COMMAND", "ENVIRONMENT", "receive", "send"]

COMMAND = [sys.executable, "-c", "from pliant.study.worker import main; main()"]
INSIDE = "PLIANT_STUDY_WORKER"
# One thread a process: the cores are busy already, and sums come out the same whatever the number of cores.
ENVIRONMENT = {
    **dict.fromkeys(
        (
            "OPENBLAS_NUM_THREADS",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "VECLIB_MAXIMUM_THREADS",
            "NUMBA_NUM_THREADS",
        ),
        "1",
    ),
    INSIDE: "1",
}
_LENGTH = struct.Struct("<Q")


def send(pipe: IO[bytes], message: Any) -> None:
    """One message; only ever between a process and its child."""
    data = pickle.dumps(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next message.

    Raises:
        EOFError: there is none: the other side has ended.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    size = _LENGTH.unpack(head)[0]
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def main() -> None:
    """The life of a worker."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the user's functions print must not get among the rows
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    inward = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    payload = receive(inward)
    threading.Thread(target=_listen, args=(inward, waiting), daemon=True).start()
    try:
        from pliant.study.cases import unpack

        evaluate = unpack(payload)
    except Exception as error:
        send(out, ("refused", f"{type(error).__name__}: {error}"))
        return
    send(out, ("ready", None))
    try:
        while True:
            for case in waiting.get():
                send(out, ("row", evaluate(case)))
    except BrokenPipeError:
        os._exit(0)


def _listen(pipe: IO[bytes], waiting: queue.SimpleQueue[Any]) -> None:
    """Take cases in while others are computed; end at once when whoever sends them has ended, even if killed."""
    try:
        while True:
            waiting.put(receive(pipe))
    except (EOFError, OSError):
        os._exit(0)
