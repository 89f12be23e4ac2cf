"""Names that nothing else has."""

from __future__ import annotations

__all__ = ["unique"]


def unique(wish: str, taken: set[str]) -> str:
    """The name, or with a number if it is taken; taken from now on."""
    name, n = wish, 1
    while name in taken:
        n += 1
        name = f"{wish}_{n}"
    taken.add(name)
    return name
