"""`gallery:NAME:ARGUMENTS` as users write it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pliant.errors import InputError

__all__ = ["PREFIX", "parse_arguments"]

PREFIX = "gallery:"


def parse_arguments(name: str, maker: Callable[..., Any], given: str) -> dict[str, Any]:
    """`16,form=rails` as `{"rungs": 16, "form": "rails"}`.

    Raises:
        InputError: the function of that name does not take them.
    """
    parameters = inspect.signature(maker).parameters
    in_order = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    takes = f"it takes {', '.join(parameters)}" if parameters else "it takes no arguments"
    found: dict[str, Any] = {}
    for i, part in enumerate(given.split(",") if given else []):
        word, equals, value = part.partition("=")
        if not equals:
            if i >= len(in_order):
                raise InputError(f"{PREFIX}{name}: '{part}' is one argument too many; {takes}")
            word, value = in_order[i], part
        if word not in parameters:
            raise InputError(f"{PREFIX}{name}: unknown argument '{word}'; {takes}")
        if word in found:
            raise InputError(f"{PREFIX}{name}: the argument '{word}' is given twice")
        found[word] = _value(value)
    return found


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
