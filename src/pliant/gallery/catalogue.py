"""Catalogue of the gallery: mechanisms by name, and `gallery:NAME:ARGUMENTS` as users write it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pliant.errors import InputError
from pliant.gallery import (
    cables,
    chains,
    hands,
    huge,
    lattices,
    loops,
    parallel,
    plants,
    robots,
    transforming,
)
from pliant.mechanism import Mechanism
from pliant.text import brief, suggestion

__all__ = ["PREFIX", "call", "make", "names", "parse_arguments"]

PREFIX = "gallery:"
T = TypeVar("T")

_MAKERS: dict[str, Callable[..., Mechanism]] = {
    name: getattr(module, name)
    for module in (chains, loops, hands, robots, parallel, transforming, lattices, huge, plants, cables)
    for name in module.__all__
}


def names() -> tuple[str, ...]:
    """The names of all mechanisms of the gallery."""
    return tuple(_MAKERS)


def make(name: str, **arguments: Any) -> Mechanism:
    """The mechanism of that name: `make("helix", links=100)` is `helix(links=100)`."""
    return call(_MAKERS, "the gallery has no", name, arguments)


def call(makers: Mapping[str, Callable[..., T]], missing: str, name: Any, arguments: Mapping[str, Any]) -> T:
    """Result of the function of that name with these arguments.

    Args:
        makers: functions by name.
        missing: the message about an unknown name, up to the name.
        name: the name.
        arguments: keyword arguments.

    Raises:
        InputError: the name or an argument is unknown.
    """
    maker = makers.get(name) if isinstance(name, str) else None
    if maker is None:
        raise InputError(f"{missing} {brief(name)}{suggestion(name, makers)}")
    known = inspect.signature(maker).parameters
    for argument in arguments:
        if argument not in known:
            raise InputError(f"{name}: unknown argument '{argument}'; {_takes(known)}")
    return maker(**arguments)


def _takes(parameters: Mapping[str, Any]) -> str:
    return f"it takes {', '.join(parameters)}" if parameters else "it takes no arguments"


def parse_arguments(name: str, maker: Callable[..., Any], given: str) -> dict[str, Any]:
    """`16,form=rails` as `{"rungs": 16, "form": "rails"}`.

    Raises:
        InputError: the function of that name does not take them.
    """
    parameters = inspect.signature(maker).parameters
    in_order = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    takes = _takes(parameters)
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
