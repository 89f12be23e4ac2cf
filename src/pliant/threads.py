"""`Threads`: a pool that runs one function on several arguments at once; kernels release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

__all__ = ["Threads"]


class Threads:
    """A number of threads; a forked process, which inherits none, starts its own."""

    def __init__(self, count: int):
        self._count, self._process = count, os.getpid()
        self._pool = ThreadPoolExecutor(count)

    def run(self, function: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
        """Results of the function for each argument. After Ctrl-C, too, no thread goes on in the background."""
        if self._process != os.getpid():
            self.__init__(self._count)
        running: list[Future[Any]] = []
        try:
            for each in arguments:
                running.append(self._pool.submit(function, each))
            return [future.result() for future in running]
        finally:
            wait(running)
