"""Slices of long arrays: work done slice by slice keeps its temporaries small, and in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["slices"]

_ROWS = 16_384


def slices(count: int) -> Iterator[slice]:
    """Consecutive slices that cover `count` rows."""
    for start in range(0, count, _ROWS):
        yield slice(start, min(start + _ROWS, count))
