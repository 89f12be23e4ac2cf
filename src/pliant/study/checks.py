"""Checks shared by all parts of a study's definition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pliant.errors import InputError
from pliant.text import suggestion

__all__ = ["check_keys", "check_name", "number", "numbers", "table", "whole"]

# Columns of every table of results, and xarray's dimension of drawn parameters.
RESERVED = ("index", "seed", "version", "duration", "error", "sample")


def table(value: Any, where: str) -> Mapping[str, Any]:
    """A mapping whose keys are strings."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{where}: a table of names and values expected, not {value!r:.80}")
    return value


def check_keys(given: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse unknown keys, which are most often misspelt."""
    for key in given:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'{suggestion(key, known)}")


def check_name(name: str, where: str) -> str:
    """A name of a column: letters, digits and underscores."""
    if not name.isidentifier():
        raise InputError(f"{where}: letters, digits and underscores expected, not a digit first")
    if name in RESERVED:
        raise InputError(f"{where}: '{name}' is a column of every table of results; take another name")
    return name


def number(value: Any, where: str, *, above: float = -math.inf) -> float:
    """A finite number greater than `above`."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or not math.isfinite(value):
        raise InputError(f"{where}: a finite number expected, not {value!r:.80}")
    if not value > above:
        raise InputError(f"{where}: a number above {above:g} expected, not {value!r}")
    return float(value)


def whole(value: Any, where: str, least: int = 0) -> int:
    """An integer of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise InputError(f"{where}: a whole number from {least} expected, not {value!r:.80}")
    return int(value)


def numbers(value: Any, count: int, where: str) -> tuple[float, ...]:
    """`count` finite numbers."""
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != count:
        raise InputError(f"{where}: {count} numbers expected, not {value!r:.80}")
    return tuple(number(one, where) for one in value)
