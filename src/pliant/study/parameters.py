"""What a study varies: the values of a parameter, and what they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.study.checks import check_keys, check_name, number, numbers, table, whole

__all__ = ["Parameter", "parse_parameters"]

GRID = ("values", "linear", "log")
RANDOM = ("uniform", "loguniform", "normal")
TARGETS = ("stiffness", "damping", "argument")
_KEYS = (*GRID, *RANDOM, *TARGETS, "relative")
Floats = NDArray[np.float64]
Value = float | int | bool | str


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        name: its column.
        kind: "values", "linear", "log": one axis of a grid; "uniform", "loguniform", "normal": drawn.
        given: the values; or first, last and count; or the two numbers of the distribution.
        target: "stiffness" or "damping" of joints, "argument" of a gallery function, or None: whoever asks for it.
        where: patterns of joint names, or the argument's name.
        relative: it multiplies what is there.
    """

    name: str
    kind: str
    given: tuple[Any, ...]
    target: str | None = None
    where: tuple[str, ...] = ()
    relative: bool = False

    @property
    def drawn(self) -> bool:
        """Whether its values come from a distribution."""
        return self.kind in RANDOM

    @property
    def logarithmic(self) -> bool:
        """Whether it reads well on a logarithmic scale."""
        return self.kind in ("log", "loguniform")

    def axis(self) -> list[Value]:
        """The values on its axis of the grid."""
        if self.kind == "values":
            return list(self.given)
        first, last, count = self.given
        if self.kind == "log":
            return np.geomspace(first, last, count).tolist()
        values = np.linspace(first, last, count).tolist()
        counting = isinstance(first, int) and isinstance(last, int) and all(v.is_integer() for v in values)
        return [int(v) for v in values] if counting else values  # numbers of links stay whole

    def draw(self, u: Floats) -> Floats:
        """Values for fractions from 0 to 1 of the probability: the inverse of the cumulative distribution."""
        from scipy.special import ndtri

        a, b = self.given
        u = np.clip(u, 2.0**-53, 1 - 2.0**-53)  # a normal variable would be infinite at either end
        if self.kind == "normal":
            return a + b * ndtri(u)
        if self.kind == "uniform":
            return a + (b - a) * u
        return np.exp(np.log(a) + (np.log(b) - np.log(a)) * u)


def parse_parameters(given: Any) -> tuple[Parameter, ...]:
    """Parameters from `{name: {...}}`, as they stand in the file.

    Raises:
        InputError: one is not well defined.
    """
    found = table(given, "parameters")
    if not found:
        raise InputError("parameters: at least one expected, as in [parameters.k] with values = [1, 2, 3]")
    return tuple(_parse(name, value) for name, value in found.items())


def _parse(name: str, given: Any) -> Parameter:
    where = f"parameter '{name}'"
    check_name(name, where)
    given = {"values": given} if isinstance(given, list | tuple | np.ndarray) else table(given, where)
    check_keys(given, _KEYS, where)
    kind = _one_of(given, (*GRID, *RANDOM), where)
    if kind is None:
        raise InputError(f"{where}: its values are missing; give one of {', '.join((*GRID, *RANDOM))}")
    target = _one_of(given, TARGETS, where)
    names = given.get(target, ()) if target else ()
    names = (names,) if isinstance(names, str) else tuple(names)
    if target and (not names or not all(isinstance(one, str) for one in names)):
        raise InputError(f"{where}: {target} takes a name, not {given[target]!r:.80}")
    if target == "argument" and len(names) > 1:
        raise InputError(f"{where}: argument takes one name, not {len(names)}")
    relative = given.get("relative", False)
    if not isinstance(relative, bool) or (relative and target not in ("stiffness", "damping")):
        raise InputError(f"{where}: relative = true goes with stiffness or damping")
    values = _given(kind, given[kind], f"{where}: {kind}")
    if target in ("stiffness", "damping") and any(isinstance(v, bool | str) for v in values):
        raise InputError(f"{where}: {target} takes numbers, not {values!r:.80}")
    return Parameter(name, kind, values, target, names, relative)


def _one_of(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> str | None:
    found = [key for key in known if key in given]
    if len(found) > 1:
        raise InputError(f"{where}: both '{found[0]}' and '{found[1]}' are given; one is enough")
    return found[0] if found else None


def _given(kind: str, value: Any, where: str) -> tuple[Any, ...]:
    value = value.tolist() if hasattr(value, "tolist") else value
    if kind == "values":
        return _values(value, where)
    if kind in RANDOM:
        a, b = numbers(value, 2, where)
        if kind == "normal" and not b > 0:
            raise InputError(f"{where}: [mean, standard deviation] expected, the latter above 0, not {b:g}")
        if kind != "normal" and not a < b:
            raise InputError(f"{where}: [lowest, highest] expected, not {value!r}")
        if kind == "loguniform":
            number(a, where, above=0.0)
        return a, b
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 3:
        raise InputError(f"{where}: [first, last, count] expected, not {value!r:.80}")
    first, last = (v if isinstance(v, int) else number(v, where) for v in value[:2])
    count = whole(value[2], f"{where}: count", 1)
    if kind == "log":
        number(min(number(first, where), number(last, where)), where, above=0.0)
    return first, last, count


def _values(value: Any, where: str) -> tuple[Value, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InputError(f"{where}: a list expected, not {value!r:.80}")
    kinds = {bool if isinstance(v, bool) else str if isinstance(v, str) else float for v in value}
    if len(kinds) > 1:
        raise InputError(f"{where}: numbers, words, or true and false expected, not a mixture")
    if len(set(value)) < len(value):
        raise InputError(f"{where}: a value is given twice")
    if float in kinds:
        for one in value:
            number(one, where)
        if not all(isinstance(one, int) for one in value):
            return tuple(float(one) for one in value)
    return tuple(value)
