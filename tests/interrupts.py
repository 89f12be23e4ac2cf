"""Ctrl-C for tests: an interrupt by a timer."""

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def timer(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in this thread after some seconds, unless the block has ended."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()  # callbacks of the collector discard what is raised in them
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def interrupt_long_step(step: Callable[[int], None]) -> None:
    """Call `step` for very many steps and interrupt it after 0.2 s."""
    with timer(0.2), pytest.raises(KeyboardInterrupt):
        step(10**9)
