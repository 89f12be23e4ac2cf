"""Parameters of a study, their values in every case, and numbers of the definition that a parameter may stand for."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.checks import length, number, whole
from pliant.errors import InputError
from pliant.text import brief, suggestion

__all__ = [
    "SAMPLINGS",
    "Design",
    "Entry",
    "Parameter",
    "as_table",
    "case_seed",
    "check_keys",
    "check_name",
    "entry_names",
    "entry_value",
    "make_design",
    "parse_entry",
    "parse_numbers",
    "parse_parameters",
]

GRID = ("values", "linear", "log")
RANDOM = ("uniform", "loguniform", "normal")
TARGETS = ("stiffness", "damping", "argument")
SAMPLINGS = ("random", "latin", "sobol")
MAX_CASES = 100_000_000
# Columns of every table of results, and xarray's dimension of drawn parameters.
RESERVED = ("index", "seed", "version", "duration", "error", "sample")
_KEYS = (*GRID, *RANDOM, *TARGETS, "relative")
Floats = NDArray[np.float64]
Value = float | int | bool | str
Entry = float | str  # a number; or the name of a parameter, with a minus in front for its negative


# --- checks of a study's definition


def as_table(value: Any, where: str) -> Mapping[str, Any]:
    """A mapping whose keys are strings."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{where}: a table of names and values expected, not {brief(value)}")
    return value


def check_keys(given: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse unknown keys, which are most often misspelt."""
    for key in given:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'{suggestion(key, known)}")


def check_name(name: str, where: str) -> None:
    """Refuse a name of a column that is not made of letters, digits and underscores, or that every table has."""
    if not name.isidentifier():
        raise InputError(f"{where}: letters, digits and underscores expected, not a digit first")
    if name in RESERVED:
        raise InputError(f"{where}: '{name}' is a column of every table of results; take another name")


def parse_numbers(value: Any, count: int, where: str) -> tuple[float, ...]:
    """`count` finite numbers."""
    if isinstance(value, str) or length(value) != count:
        raise InputError(f"{where}: {count} numbers expected, not {brief(value)}")
    return tuple(number(one, where) for one in value)


# --- parameters


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        name: of its column.
        kind: "values", "linear", "log": one axis of a grid; "uniform", "loguniform", "normal": drawn.
        given: the values; or first, last and count; or the two numbers of the distribution.
        target: "stiffness" or "damping" of joints, "argument" of a gallery function; None for a parameter that
            only wrenches, grasps or functions use.
        where: patterns of joint names, or the argument's name.
        relative: the value multiplies the mechanism's own stiffness or damping.
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
        """Whether its values are spaced or distributed logarithmically; plots then use a logarithmic scale."""
        return self.kind in ("log", "loguniform")

    def axis(self) -> list[Value]:
        """The values on its axis of the grid."""
        if self.kind == "values":
            return list(self.given)
        first, last, count = self.given
        if self.kind == "log":
            return np.geomspace(first, last, count).tolist()
        values = np.linspace(first, last, count).tolist()
        integers = isinstance(first, int) and isinstance(last, int) and all(v.is_integer() for v in values)
        return [int(v) for v in values] if integers else values

    def draw(self, u: Floats) -> Floats:
        """Quantiles of the distribution: the inverse of its cumulative distribution function at u, 0 to 1."""
        from scipy.special import ndtri

        a, b = self.given
        u = np.clip(u, 2.0**-53, 1 - 2.0**-53)  # the normal distribution is infinite at 0 and 1
        if self.kind == "normal":
            return a + b * ndtri(u)
        if self.kind == "uniform":
            return a + (b - a) * u
        return np.exp(np.log(a) + (np.log(b) - np.log(a)) * u)


def parse_parameters(given: Any) -> tuple[Parameter, ...]:
    """Parameters from `{name: {...}}`, as in the study's file.

    Raises:
        InputError: one is not well defined.
    """
    found = as_table(given, "parameters")
    if not found:
        raise InputError("parameters: at least one expected, as in [parameters.k] with values = [1, 2, 3]")
    return tuple(_parse(name, value) for name, value in found.items())


def _parse(name: str, given: Any) -> Parameter:
    where = f"parameter '{name}'"
    check_name(name, where)
    given = {"values": given} if isinstance(given, list | tuple | np.ndarray) else as_table(given, where)
    check_keys(given, _KEYS, where)
    kind = _one_of(given, (*GRID, *RANDOM), where)
    if kind is None:
        raise InputError(f"{where}: its values are missing; give one of {', '.join((*GRID, *RANDOM))}")
    target = _one_of(given, TARGETS, where)
    names = given.get(target, ()) if target else ()
    names = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else ()
    if target and (not names or not all(isinstance(one, str) for one in names)):
        raise InputError(f"{where}: {target} takes a name, not {brief(given[target])}")
    if target == "argument" and len(names) > 1:
        raise InputError(f"{where}: argument takes one name, not {len(names)}")
    relative = given.get("relative", False)
    if not isinstance(relative, bool) or (relative and target not in ("stiffness", "damping")):
        raise InputError(f"{where}: relative = true goes with stiffness or damping")
    values = _given(kind, given[kind], f"{where}: {kind}")
    if target in ("stiffness", "damping") and any(isinstance(v, bool | str) for v in values):
        raise InputError(f"{where}: {target} takes numbers, not {brief(values)}")
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
        a, b = parse_numbers(value, 2, where)
        if kind == "normal" and not b > 0:
            raise InputError(f"{where}: [mean, standard deviation] expected, the latter above 0, not {b:g}")
        if kind != "normal" and not a < b:
            raise InputError(f"{where}: [lowest, highest] expected, not {brief(value)}")
        if kind == "loguniform":
            number(a, where, above=0.0)
        return a, b
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise InputError(f"{where}: [first, last, count] expected, not {brief(value)}")
    first, last = (_number(v, where) for v in value[:2])
    count = whole(value[2], f"{where}: count", 1, MAX_CASES)
    if kind == "log":
        number(min(first, last), where, above=0.0)
    return first, last, count


def _values(value: Any, where: str) -> tuple[Value, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InputError(f"{where}: a list expected, not {brief(value)}")
    kinds = {bool if isinstance(v, bool) else str if isinstance(v, str) else float for v in value}
    if len(kinds) > 1:
        raise InputError(f"{where}: numbers, words, or true and false expected, not a mixture")
    if float in kinds:
        value = [_number(one, where) for one in value]
    if len(set(value)) < len(value):
        raise InputError(f"{where}: a value is given twice")
    if float in kinds and not all(isinstance(one, int) for one in value):
        return tuple(float(one) for one in value)
    return tuple(value)


def _number(value: Any, where: str) -> float | int:
    """A finite number; whole ones as they are."""
    found = number(value, where)
    return value if isinstance(value, int) else found


# --- numbers of a wrench or grasp: given, or the name of a parameter


def parse_entry(given: Any, parameters: Sequence[str], where: str) -> Entry:
    """A number, or the name of one of the parameters."""
    if not isinstance(given, str):
        return number(given, where)
    if given.removeprefix("-") not in parameters:
        raise InputError(f"{where}: no parameter '{given}'{suggestion(given.removeprefix('-'), parameters)}")
    return given


def entry_value(entry: Entry, values: Mapping[str, Any]) -> float:
    """The number that an entry has for the parameter values of a case."""
    if not isinstance(entry, str):
        return entry
    return -values[entry[1:]] if entry.startswith("-") else values[entry]


def entry_names(entries: Iterable[Entry]) -> set[str]:
    """Names of the parameters among entries."""
    return {entry.removeprefix("-") for entry in entries if isinstance(entry, str)}


# --- all cases: the grid of listed parameters times the samples of drawn ones


@dataclass(frozen=True)
class Design:
    """Values of the parameters in every case.

    Attributes:
        names: of the parameters.
        axes: of the grid, values by name; the first varies slowest.
        samples: of the drawn parameters, one row per sample; the same at every point of the grid.
        drawn: names of the columns of `samples`.
    """

    names: tuple[str, ...]
    axes: dict[str, list[Any]]
    samples: Floats
    drawn: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Cases along each axis; samples come last."""
        return (*(len(values) for values in self.axes.values()), *([len(self.samples)] if self.drawn else []))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Values of a case, in the order of `names`."""
        place = np.unravel_index(index, self.shape)
        found = {name: values[i] for (name, values), i in zip(self.axes.items(), place, strict=False)}
        if self.drawn:
            found.update(zip(self.drawn, self.samples[place[-1]].tolist(), strict=True))
        return tuple(found[name] for name in self.names)


def make_design(parameters: Sequence[Parameter], samples: int | None, sampling: str, seed: int) -> Design:
    """The design of a study; the same seed gives the same design."""
    drawn = [p for p in parameters if p.drawn]
    if drawn and samples is None:
        raise InputError(f"parameter '{drawn[0].name}' is drawn: say how often, as in samples = 1000")
    if samples is not None and not drawn:
        raise InputError(
            "samples: no parameter is drawn (uniform, loguniform, normal); leave it out, or draw one"
        )
    points = np.empty((1, 0))
    if drawn:
        fractions = _fractions(samples or 0, len(drawn), sampling, seed)
        points = np.stack([p.draw(fractions[:, i]) for i, p in enumerate(drawn)], axis=1)
    axes = {p.name: p.axis() for p in parameters if not p.drawn}
    found = Design(tuple(p.name for p in parameters), axes, points, tuple(p.name for p in drawn))
    if math.prod(found.shape) > MAX_CASES:
        raise InputError(
            f"the study has {math.prod(found.shape):.3g} cases, more than {MAX_CASES}: take fewer values"
        )
    return found


def _fractions(samples: int, dimensions: int, sampling: str, seed: int) -> Floats:
    """Points of the unit cube, (samples, dimensions)."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0)))
    if sampling == "random":
        return generator.random((samples, dimensions))
    from scipy.stats import qmc

    make: Any = qmc.LatinHypercube if sampling == "latin" else qmc.Sobol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of Sobol' points whose number is no power of two
        # `seed` is deprecated, but older scipy has no `rng`
        return make(dimensions, seed=generator).random(samples)


def case_seed(seed: int, index: int) -> int:
    """Seed of one case, from the study's seed and the case's index alone: independent of who computes it when."""
    state = np.random.SeedSequence(seed, spawn_key=(1, index)).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))  # fits a signed column of 64 bits
