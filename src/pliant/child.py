"""`Child`: a Python child process, with frames of bytes over two pipes, a time limit, and an end in every case.

Pipes rather than `multiprocessing`: a Dask worker may start a child too, and a script needs no
`if __name__ == "__main__"`.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

__all__ = ["Child", "read_frame", "take_pipes", "write_frame"]

_LENGTH = struct.Struct("<Q")


def write_frame(pipe: IO[bytes], data: Any, *, flush: bool = True) -> None:
    """Write a frame: the number of bytes, then the bytes or flat buffer."""
    pipe.write(_LENGTH.pack(memoryview(data).nbytes))
    pipe.write(data)
    if flush:
        pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    """The bytes of the next frame.

    Raises:
        EOFError: the other side has ended.
    """
    return _read(pipe, _LENGTH.unpack(_read(pipe, _LENGTH.size))[0])


def take_pipes(*, silent: bool = False) -> tuple[IO[bytes], IO[bytes]]:
    """In a child: the pipes from and to its parent. All other code finds stdin empty and prints to stderr.

    Args:
        silent: discard stdout and stderr of all other code.
    """
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if silent:
        os.dup2(null, 2)
    os.dup2(2, 1)
    return inward, outward


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


class Child:
    """A Python process that runs `code`, with frames to its stdin and from its stdout. It ends when its stdin does.

    Attributes:
        process: the process.
        expired: whether a time limit has killed it.
    """

    def __init__(
        self,
        code: str,
        *arguments: str,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        isolated: bool = False,
        quiet: bool = False,
        own_session: bool = False,
    ):
        """Start the process.

        Args:
            code: statements for `python -c`.
            arguments: its `sys.argv[1:]`.
            folder: its working directory.
            environment: variables to set.
            isolated: import modules from this process's `sys.path` only, never from the working directory.
            quiet: discard its stderr.
            own_session: protect it from signals of the terminal, such as Ctrl-C.
        """
        path = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)} if isolated else {}
        self.expired = False
        self.process = subprocess.Popen(
            [sys.executable, *(["-P"] if isolated else []), "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            cwd=folder,
            env={**os.environ, **path, **(environment or {})},
            start_new_session=own_session,
        )

    def send(self, *frames: Any) -> None:
        """Write frames to its stdin.

        Raises:
            OSError: it has ended.
        """
        pipe = self._pipe(self.process.stdin)
        for frame in frames:
            write_frame(pipe, frame, flush=False)
        pipe.flush()

    def receive(self) -> bytes:
        """The next frame from its stdout.

        Raises:
            EOFError: it has ended.
        """
        return read_frame(self._pipe(self.process.stdout))

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None
        return stream

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Kill it, and set `expired`, unless the block ends within this time."""

        def stop() -> None:
            self.expired = True
            self.process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def end(self, *, patience: float = 0.0) -> int:
        """Close its pipes, wait `patience` seconds for its end, then kill it. Returns its exit code."""
        if patience <= 0:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # it died with a request in the pipe
                self._pipe(stream).close()
        try:
            return self.process.wait(timeout=patience if patience > 0 else None)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
