"""Loads of a study's outputs: wrenches whose numbers may be parameters, and gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pliant.errors import InputError
from pliant.mechanism.edit import suggestion
from pliant.study.checks import number, numbers, table

__all__ = ["Load", "parse_load"]


@dataclass(frozen=True)
class Load:
    """What acts on a mechanism.

    Attributes:
        wrench: body and its three or six numbers, world axes; a word stands for the parameter of that name.
        gravity: m/s², or None where it is compensated.
    """

    wrench: tuple[tuple[str, tuple[float | str, ...]], ...] = ()
    gravity: tuple[float, ...] | None = None

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters in it."""
        return {entry for _, entries in self.wrench for entry in entries if isinstance(entry, str)}

    def wrenches(self, values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
        """The wrenches of a case."""
        return {
            body: tuple(values[entry] if isinstance(entry, str) else entry for entry in entries)
            for body, entries in self.wrench
        }


def parse_load(given: Mapping[str, Any], parameters: Sequence[str], where: str) -> Load:
    """The load that an output's `wrench` and `gravity` describe."""
    from pliant.engines.arguments import EARTH

    wrench = []
    for body, entries in table(given.get("wrench", {}), f"{where}: wrench").items():
        if not isinstance(entries, list | tuple) or len(entries) not in (3, 6):
            raise InputError(
                f"{where}: wrench on '{body}': three or six numbers expected, not {entries!r:.80}"
            )
        for entry in entries:
            if not isinstance(entry, str):
                number(entry, f"{where}: wrench on '{body}'")
            elif entry not in parameters:
                raise InputError(
                    f"{where}: wrench on '{body}': no parameter '{entry}'{suggestion(entry, parameters)}"
                )
        wrench.append((body, tuple(entry if isinstance(entry, str) else float(entry) for entry in entries)))
    gravity = given.get("gravity", False)
    if isinstance(gravity, bool):
        return Load(tuple(wrench), tuple(map(float, EARTH)) if gravity else None)
    return Load(tuple(wrench), numbers(gravity, 3, f"{where}: gravity"))
