"""Loads of a study's outputs: wrenches whose numbers may be parameters, and gravity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pliant.errors import InputError
from pliant.mechanism.edit import suggestion
from pliant.study.checks import number, numbers, table

__all__ = ["Entry", "Load", "entry_names", "entry_value", "parse_entry", "parse_load"]

Entry = float | str  # a number; or a parameter's name, perhaps after a minus


def parse_entry(given: Any, parameters: Sequence[str], where: str) -> Entry:
    """A number, or a word that stands for a parameter."""
    if not isinstance(given, str):
        return number(given, where)
    if given.removeprefix("-") not in parameters:
        raise InputError(f"{where}: no parameter '{given}'{suggestion(given.removeprefix('-'), parameters)}")
    return given


def entry_value(entry: Entry, values: Mapping[str, Any]) -> float:
    """The number of a case."""
    if not isinstance(entry, str):
        return entry
    return -values[entry[1:]] if entry.startswith("-") else values[entry]


def entry_names(entries: Iterable[Entry]) -> set[str]:
    """Names of the parameters among entries."""
    return {entry.removeprefix("-") for entry in entries if isinstance(entry, str)}


@dataclass(frozen=True)
class Load:
    """What acts on a mechanism.

    Attributes:
        wrench: body and its three or six entries, world axes.
        gravity: m/s², or None where it is compensated.
    """

    wrench: tuple[tuple[str, tuple[Entry, ...]], ...] = ()
    gravity: tuple[float, ...] | None = None

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters in it."""
        return entry_names(entry for _, entries in self.wrench for entry in entries)

    def wrenches(self, values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
        """The wrenches of a case."""
        return {body: tuple(entry_value(entry, values) for entry in entries) for body, entries in self.wrench}


def parse_load(given: Mapping[str, Any], parameters: Sequence[str], where: str) -> Load:
    """The load that an output's `wrench` and `gravity` describe."""
    from pliant.engines.arguments import EARTH

    wrench = []
    for body, entries in table(given.get("wrench", {}), f"{where}: wrench").items():
        if not isinstance(entries, list | tuple) or len(entries) not in (3, 6):
            raise InputError(
                f"{where}: wrench on '{body}': three or six numbers expected, not {entries!r:.80}"
            )
        place = f"{where}: wrench on '{body}'"
        wrench.append((body, tuple(parse_entry(entry, parameters, place) for entry in entries)))
    gravity = given.get("gravity", False)
    if isinstance(gravity, bool):
        return Load(tuple(wrench), tuple(map(float, EARTH)) if gravity else None)
    return Load(tuple(wrench), numbers(gravity, 3, f"{where}: gravity"))
