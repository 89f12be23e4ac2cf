"""Outputs of a study: one class per kind, the loads they are computed under, and references to the user's functions."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from pliant.checks import number, whole
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.study.grasps import COLUMNS, KEYS, Grasp, parse_grasp
from pliant.study.parameters import (
    Entry,
    as_table,
    check_keys,
    check_name,
    entry_names,
    entry_value,
    parse_entry,
    parse_numbers,
)
from pliant.text import brief, suggestion

__all__ = ["Function", "Load", "Output", "Situation", "parse_outputs"]

AXES = ("x", "y", "z", "rx", "ry", "rz")
GOALS = ("min", "max")
_LOAD = ("wrench", "gravity")  # keys
_MAIN = "__pliant_main__"  # the user's script as a module, without the part below `if __name__ == "__main__"`


# --- loads


@dataclass(frozen=True)
class Load:
    """Wrenches whose numbers may be parameters, and gravity.

    Attributes:
        wrench: bodies and three or six entries each, world axes, N and N m.
        gravity: m/s², or None where it is compensated.
    """

    wrench: tuple[tuple[str, tuple[Entry, ...]], ...] = ()
    gravity: tuple[float, ...] | None = None

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters in the wrenches."""
        return entry_names(entry for _, entries in self.wrench for entry in entries)

    def wrenches(self, values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
        """The wrenches by body, for the parameter values of a case."""
        return {body: tuple(entry_value(entry, values) for entry in entries) for body, entries in self.wrench}


def parse_load(given: Mapping[str, Any], parameters: Sequence[str], where: str) -> Load:
    """The load that an output's `wrench` and `gravity` describe."""
    wrenches = as_table(given.get("wrench", {}), f"{where}: wrench")
    wrench = tuple(
        (body, _parse_wrench(body, entries, parameters, where)) for body, entries in wrenches.items()
    )
    return Load(wrench, _parse_gravity(given.get("gravity", False), where))


def _parse_wrench(body: str, entries: Any, parameters: Sequence[str], where: str) -> tuple[Entry, ...]:
    where = f"{where}: wrench on '{body}'"
    if not isinstance(entries, list | tuple) or len(entries) not in (3, 6):
        raise InputError(f"{where}: three or six numbers expected, not {brief(entries)}")
    return tuple(parse_entry(entry, parameters, where) for entry in entries)


def _parse_gravity(given: Any, where: str) -> tuple[float, ...] | None:
    from pliant.checks import EARTH

    if isinstance(given, bool):
        return tuple(map(float, EARTH)) if given else None
    return parse_numbers(given, 3, f"{where}: gravity")


# --- outputs


class Situation:
    """A case while its outputs are computed; outputs under the same load share one equilibrium."""

    def __init__(
        self,
        mechanism: Mechanism,
        values: Mapping[str, Any],
        seed: int,
        known: Mapping[Load, tuple[Any, int]] | None = None,
    ):
        """`known` has `Equilibria` of several cases under a load, and the number of this case among them."""
        self.mechanism, self.values, self.seed = mechanism, values, seed
        self._known = known or {}
        self._found: dict[Load, Any] = {}

    def at(self, load: Load) -> Any:
        """The equilibrium under a load, as a `Configuration`."""
        if load not in self._found:
            from pliant.statics import Configuration, equilibrium

            m = self.mechanism
            if load in self._known:
                equilibria, number = self._known[load]
                self._found[load] = equilibria.configuration(number)
            elif load == Load():
                self._found[load] = Configuration(m)
            else:
                wrenches = load.wrenches(self.values)
                self._found[load] = equilibrium(m, wrenches, gravity=load.gravity)
        return self._found[load]


@dataclass(frozen=True)
class Output(ABC):
    """One output: a number in the column `name`, or several in columns `name.part`.

    A subclass computes one kind of output; its fields are those of a study's record in the results, where fields of
    other kinds are empty.

    Attributes:
        name: of its column.
        load: under which it is computed.
        goal: "min" or "max", the better end of it; for Pareto fronts.
    """

    kind: ClassVar[str]  # key of the study's file
    options: ClassVar[tuple[str, ...]] = (*_LOAD, "goal")  # further keys
    defaults: ClassVar[Mapping[str, Any]] = {}  # of these keys
    name: str
    load: Load
    goal: str

    @classmethod
    @abstractmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        """The fields of the subclass, from the keys of the study's file."""

    @abstractmethod
    def evaluate(self, case: Situation) -> Any:
        """A number, several, or numbers by part."""

    @property
    def bodies(self) -> list[str]:
        """Names of all bodies in the definition."""
        return [name for name, _ in self.load.wrench]

    @property
    def parameters(self) -> set[str]:
        """Names of all parameters in the definition."""
        return self.load.parameters

    @property
    def settles(self) -> Load:
        """The load whose equilibrium it is computed at, or from."""
        return self.load

    @property
    def goals(self) -> dict[str, str]:
        """The better end, "min" or "max", by output or column."""
        return {self.name: self.goal}

    def record(self) -> dict[str, Any]:
        """All that the values depend on, as plain values to be stored with the results."""
        absent = {"body": "", "parts": (), "value": 0.0, "timestep": 0.0, "grasp": None, "function": None}
        found = {**absent, **asdict(self), "kind": self.kind}
        del found["goal"]  # of plots only
        return found

    def check(self, m: Mechanism) -> None:
        """Refuse a body that the mechanism does not have."""
        for body in self.bodies:
            try:
                index = m.body_index(body)
            except InputError as error:
                raise InputError(f"output '{self.name}': {error}") from None
            if index < 0:
                raise InputError(f"output '{self.name}': the world does not move; name a body")

    def compute(self, case: Situation) -> dict[str, float]:
        """The numbers, by column."""
        found: Any = self.evaluate(case)
        if isinstance(found, Mapping):
            return {f"{self.name}.{key}": _float(value) for key, value in found.items()}
        if np.ndim(found) == 0:
            return {self.name: _float(found)}
        return {f"{self.name}.{i}": _float(value) for i, value in enumerate(found, 1)}


@dataclass(frozen=True)
class _OfBody(Output):
    """Base of outputs of one body; `parts` are some of its numbers `known`, chosen by `key` of the study's file."""

    key: ClassVar[str]
    known: ClassVar[tuple[str, ...]]
    default: ClassVar[tuple[str, ...]]
    body: str
    parts: tuple[str, ...]

    @property
    def bodies(self) -> list[str]:
        return [self.body, *super().bodies]

    @classmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        body = given[cls.kind]
        if not isinstance(body, str) or not body:
            raise InputError(f"{where}: {cls.kind} takes the name of a body, not {brief(body)}")
        parts = _words(given.get(cls.key, cls.default), cls.known, f"{where}: {cls.key}")
        return {"body": body, "parts": parts}


class Compliance(_OfBody):
    """Entries of a body's compliance in its own frame, linear axes first."""

    kind, key = "compliance", "entries"
    options = (key, *Output.options)
    known = tuple(f"{a}.{b}" for a in AXES for b in AXES)
    default = tuple(f"{a}.{a}" for a in AXES)

    def evaluate(self, case: Situation) -> Any:
        matrix = case.at(self.load).compliance(self.body)
        found = {}
        for part in self.parts:
            row, _, column = part.partition(".")
            found[part] = matrix[AXES.index(row), AXES.index(column)]
        return _alone(found)


class Principal(_OfBody):
    """Principal compliances of a body in translation or rotation, softest first."""

    kind, key = "principal", "of"
    options = (key, *Output.options)
    known = ("translation", "rotation")
    default = ("translation",)

    @classmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        fields = super().parse(given, parameters, where)
        if len(fields["parts"]) > 1:
            raise InputError(f"{where}: of is 'translation' or 'rotation'; make two outputs for both")
        return fields

    def evaluate(self, case: Situation) -> Any:
        start = 0 if self.parts == ("translation",) else 3
        block = case.at(self.load).compliance(self.body)[start : start + 3, start : start + 3]
        return np.linalg.eigvalsh((block + block.T) / 2)[::-1]


class Displacement(_OfBody):
    """Displacement of a body's origin by the load, world axes, m."""

    kind, key = "displacement", "components"
    options = (key, *Output.options)
    known = ("distance", "x", "y", "z")
    default = ("distance",)

    def evaluate(self, case: Situation) -> Any:
        m, at = case.mechanism, case.at(self.load)
        index = m.body_index(self.body)
        moved = at.poses[index, :3, 3] - m.reference_poses[index, :3, 3]
        every: dict[str, Any] = dict(zip(self.known, (np.linalg.norm(moved), *moved), strict=True))
        return _alone({part: every[part] for part in self.parts})


@dataclass(frozen=True)
class Frequencies(Output):
    """The lowest natural frequencies, Hz; `value` is their number."""

    kind = "frequencies"
    value: int

    @classmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        return {"value": whole(given["frequencies"], f"{where}: frequencies", 1, 1000)}

    def evaluate(self, case: Situation) -> Any:
        found = case.at(self.load).frequencies(self.value)
        return found if self.value > 1 else found[0]


@dataclass(frozen=True)
class Energy(Output):
    """The fraction of the load's energy that is left `value` seconds after the load is removed."""

    kind = "energy"
    options = ("timestep", "wrench", "goal")
    value: float
    timestep: float

    @classmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        return {
            "value": number(given["energy"], f"{where}: energy", above=0.0),
            "timestep": number(given.get("timestep", 1 / 240), f"{where}: timestep", above=0.0),
        }

    def evaluate(self, case: Situation) -> Any:
        from pliant.engines.simulate import simulate

        simulation = simulate(case.mechanism, "constrained", self.timestep, gravity=(0, 0, 0))
        rest = simulation.energy.total
        simulation.q = case.at(self.load)
        start = simulation.energy.total - rest
        if not start > 0:
            raise InputError(f"output '{self.name}': its load stores no energy")
        simulation.step(max(1, round(self.value / self.timestep)))
        return (simulation.energy.total - rest) / start


@dataclass(frozen=True)
class GraspOutput(Output):
    """Success, slip and squeeze of a grasp."""

    kind = "grasp"
    options = (*KEYS, *_LOAD)
    defaults: ClassVar[Mapping[str, Any]] = {"gravity": True}
    grasp: Grasp
    parts: tuple[str, ...] = COLUMNS

    @classmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        return {"grasp": parse_grasp(given, parameters, where)}

    @property
    def parameters(self) -> set[str]:
        return super().parameters | entry_names(self.grasp.entries)

    @property
    def settles(self) -> Load:
        return Load(gravity=self.load.gravity)

    @property
    def goals(self) -> dict[str, str]:
        return {f"{self.name}.{part}": "max" if part == "success" else "min" for part in self.parts}

    def evaluate(self, case: Situation) -> Any:
        start = case.at(self.settles)
        return self.grasp.simulate(start, self.load.wrenches(case.values), self.load.gravity, case.values)


@dataclass(frozen=True)
class Function(Output):
    """Numbers that a function of the user returns."""

    kind = "function"
    options = ("goal",)
    function: Reference

    @classmethod
    def parse(cls, given: Mapping[str, Any], parameters: Sequence[str], where: str) -> dict[str, Any]:
        return {"function": parse_reference(given["function"], where)}

    def record(self) -> dict[str, Any]:
        return {**super().record(), "function": str(self.function)}

    def evaluate(self, case: Situation) -> Any:
        random = [np.random.default_rng(case.seed)] if argument_count(self._callable) == 3 else []
        return self._callable(case.mechanism, Named(case.values), *random)

    @cached_property
    def _callable(self) -> Callable[..., Any]:
        return self.function.find()


KINDS: dict[str, type[Output]] = {
    kind.kind: kind
    for kind in (Compliance, Principal, Frequencies, Displacement, Energy, GraspOutput, Function)
}


class Named(dict[str, Any]):
    """Parameters by name; the error for a misspelt one suggests the nearest names."""

    def __missing__(self, key: str) -> Any:
        raise InputError(f"there is no parameter '{key}'{suggestion(key, self)}")


def _alone(found: dict[str, Any]) -> Any:
    """A single number without the name of its part."""
    return found if len(found) > 1 else next(iter(found.values()))


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"a number expected, not {brief(value)}") from None


# --- from a study's file


def parse_outputs(given: Any, parameters: Sequence[str]) -> tuple[Output, ...]:
    """Outputs from `{name: {...}}`, as in the study's file; a value may also be a function.

    Raises:
        InputError: one is not well defined.
    """
    found = as_table(given, "outputs")
    if not found:
        raise InputError("outputs: at least one expected, as in [outputs.f] with frequencies = 1")
    return tuple(_parse(name, value, parameters) for name, value in found.items())


def _parse(name: str, given: Any, parameters: Sequence[str]) -> Output:
    where = f"output '{name}'"
    check_name(name, where)
    if name in parameters:
        raise InputError(f"{where}: a parameter has that name; take another")
    given = {"function": given} if callable(given) else as_table(given, where)
    kind = _find_kind(given, where)
    check_keys(given, (kind.kind, *kind.options), where)
    given = {**kind.defaults, **given}
    load = parse_load(given, parameters, where)
    fields = kind.parse(given, parameters, where)
    if kind in (Displacement, Energy) and load == Load():
        raise InputError(f"{where}: say what acts, as in wrench = {{ {given[kind.kind]} = [0, 0, -5] }}")
    if kind is GraspOutput and not load.wrench:
        raise InputError(f"{where}: say what closes the fingers, as in wrench = {{ FINGERTIP = [10, 0, 0] }}")
    goal = given.get("goal", "min")
    _words(goal, GOALS, f"{where}: goal")
    return kind(name, load, goal, **fields)


def _find_kind(given: Mapping[str, Any], where: str) -> type[Output]:
    kinds = [key for key in KINDS if key in given]
    if len(kinds) == 1:
        return KINDS[kinds[0]]
    options = {"goal", *KINDS, *(key for kind in KINDS.values() for key in kind.options)}
    unknown = [key for key in given if key not in options]
    if unknown:
        raise InputError(f"{where}: '{unknown[0]}' is nothing to compute{suggestion(unknown[0], KINDS)}")
    raise InputError(f"{where}: one thing to compute expected, not {kinds}; there are {', '.join(KINDS)}")


def _words(given: Any, known: Sequence[str], where: str) -> tuple[str, ...]:
    """One or several different words of those known."""
    words = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if not words or not all(isinstance(one, str) for one in words) or len(set(words)) < len(words):
        raise InputError(f"{where}: some of {', '.join(known[:6])} expected, each once, not {brief(given)}")
    for word in words:
        if word not in known:
            raise InputError(f"{where}: unknown '{word}'{suggestion(word, known)}")
    return words


# --- functions of the user, by reference, so that any process can import them


@dataclass(frozen=True)
class Reference:
    """`module:function`; for a function of a script, the script's file too."""

    module: str
    name: str
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    def find(self) -> Callable[..., Any]:
        """The function.

        Raises:
            InputError: there is none.
        """
        found: Any = self._import()
        for part in self.name.split("."):
            if not hasattr(found, part):
                known = [n for n in vars(found) if callable(getattr(found, n)) and n[0] != "_"]
                raise InputError(f"'{self}': no function '{part}'{suggestion(part, known)}")
            found = getattr(found, part)
        if not callable(found):
            raise InputError(f"'{self}' is no function but {brief(found)}")
        return found

    def _import(self) -> ModuleType:
        if self.module != "__main__":
            try:
                return importlib.import_module(self.module)
            except Exception as error:  # the user's module may raise anything
                raise InputError(
                    f"'{self}': the module '{self.module}' cannot be imported: {type(error).__name__}: {error}"
                ) from None
        main = sys.modules["__main__"]
        here = getattr(main, "__file__", None)
        if self.file is None or (here and str(Path(here).resolve()) == self.file):
            return main
        if _MAIN not in sys.modules:
            spec = importlib.util.spec_from_file_location(_MAIN, self.file)
            if spec is None or spec.loader is None:
                raise InputError(f"'{self}': '{self.file}' cannot be imported")
            sys.modules[_MAIN] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[_MAIN])
        return sys.modules[_MAIN]


def parse_reference(given: Any, where: str) -> Reference:
    """A reference to a function, given itself or as `module:function`; it is imported to check it.

    Raises:
        InputError: other processes could not find it, or it takes other arguments.
    """
    if isinstance(given, str):
        module, colon, name = given.partition(":")
        if not colon or not module or not name:
            raise InputError(f"{where}: 'module:function' expected, not '{given}'")
        reference = Reference(module, name)
        function = reference.find()
    else:
        reference, function = _refer(given, where), given
    if argument_count(function) not in (2, 3):
        raise InputError(
            f"{where}: '{reference}' must take the mechanism and the parameters, and may take a random generator: "
            "`def f(mechanism, parameters)` or `def f(mechanism, parameters, rng)`"
        )
    return reference


def _refer(function: Any, where: str) -> Reference:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not callable(function) or not module or not name or "<" in name:
        raise InputError(
            f"{where}: a function at the top level of a module or script expected, not {brief(function)}: "
            "other processes must find it by its name"
        )
    file = getattr(sys.modules["__main__"], "__file__", None) if module == "__main__" else None
    if module == "__main__" and file is None:
        raise InputError(
            f"{where}: '{name}' is known to this session only: write it to a file, so that other processes find it"
        )
    reference = Reference(module, name, str(Path(file).resolve()) if file else None)
    if module != "__main__" and reference.find() is not function:
        raise InputError(f"{where}: '{reference}' is now another function: give it a name of its own")
    return reference


def argument_count(function: Callable[..., Any]) -> int:
    """Number of positional arguments of a function, up to three."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return 2  # written in C, without a signature
    found = 0
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return max(found, 2)
        found += parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            return 0
    return found
