"""One thread at a time: exclusive use of objects whose compiled calls run without the interpreter's lock.

A compiled step works on the addresses of arrays. Another thread that steps the same object, or replaces its arrays,
would crash the interpreter; it gets an `InputError` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import get_ident
from typing import Any, TypeVar

from pliant.errors import InputError

__all__ = ["DEPTH", "USER", "Use", "exclusive"]

Method = TypeVar("Method", bound=Callable[..., Any])
USER, DEPTH = 0, 1  # keys of `Use`


class Use(dict[int, int]):
    """Thread that uses an object, and how many of its calls are nested; empty while nobody does.

    A dictionary, since its `setdefault` is atomic and the quickest way to claim it.
    """

    __slots__ = ()

    def claim(self) -> None:
        """Begin a use by this thread.

        Raises:
            InputError: another thread uses the object.
        """
        me = get_ident()
        if self.setdefault(USER, me) != me:
            raise InputError(
                "another thread is using this: wait for it, or give each thread a copy of its own"
            )
        self[DEPTH] = self.get(DEPTH, 0) + 1

    def release(self) -> None:
        """End a use by this thread."""
        if self[DEPTH] > 1:
            self[DEPTH] -= 1
        else:
            self.clear()

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Exclusive use while the context lasts."""
        self.claim()
        try:
            yield
        finally:
            self.release()


def exclusive(method: Method) -> Method:
    """Decorate a method: it claims `self._use`, a `Use`, for its thread while it runs."""

    @wraps(method)
    def claimed(self: Any, *args: Any, **words: Any) -> Any:
        use = self._use
        use.claim()
        try:
            return method(self, *args, **words)
        finally:
            use.release()

    return claimed  # type: ignore[return-value]
