"""What a study computes of every case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.edit import suggestion
from pliant.study.checks import check_keys, check_name, number, table, whole
from pliant.study.functions import Reference, argument_count, refer
from pliant.study.grasps import COLUMNS, KEYS, Grasp, parse_grasp
from pliant.study.loads import Load, entry_names, parse_load

__all__ = ["Output", "Situation", "parse_outputs"]

AXES = ("x", "y", "z", "rx", "ry", "rz")
COMPONENTS = ("distance", "x", "y", "z")
GOALS = ("min", "max")
_OPTIONS = {  # kind: what else may be said of it
    "compliance": ("entries", "wrench", "gravity"),
    "principal": ("of", "wrench", "gravity"),
    "frequencies": ("wrench", "gravity"),
    "displacement": ("components", "wrench", "gravity"),
    "energy": ("timestep", "wrench"),
    "grasp": (*KEYS, "wrench", "gravity"),
    "function": (),
}


class Situation:
    """A case while it is computed: outputs under the same load share its equilibrium."""

    def __init__(self, mechanism: Mechanism, values: Mapping[str, Any], seed: int):
        self.mechanism, self.values, self.seed = mechanism, values, seed
        self._found: dict[Load, Any] = {}

    def at(self, load: Load) -> Any:
        """Where the mechanism rests under a load, as a `Configuration`."""
        if load not in self._found:
            from pliant.statics import Configuration, equilibrium

            m = self.mechanism
            wrenches, gravity = load.wrenches(self.values), load.gravity
            self._found[load] = (
                equilibrium(m, wrenches, gravity=gravity) if wrenches or gravity else Configuration(m)
            )
        return self._found[load]


@dataclass(frozen=True)
class Output:
    """One output: a number, or several in columns `name.part`.

    Attributes:
        name: of its column.
        kind: "compliance", "principal", "frequencies", "displacement", "energy", "grasp" or "function".
        body: whose; empty where it is of the whole mechanism.
        parts: entries of the compliance, components of the displacement, columns of a grasp; or "translation" or
            "rotation".
        value: how many frequencies; seconds of a run.
        timestep: of a run, s.
        load: what acts.
        grasp: what is grasped.
        function: the user's.
        goal: "min" or "max", which end of it is better; for Pareto fronts.
    """

    name: str
    kind: str
    body: str = ""
    parts: tuple[str, ...] = ()
    value: float = 0.0
    timestep: float = 0.0
    load: Load = field(default_factory=Load)
    grasp: Grasp | None = None
    function: Reference | None = None
    goal: str = "min"

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters in it."""
        return self.load.parameters | entry_names(self.grasp.entries if self.grasp else ())

    @property
    def goals(self) -> dict[str, str]:
        """Which end is better, by output or column."""
        if self.grasp is None:
            return {self.name: self.goal}
        return {f"{self.name}.{part}": "max" if part == "success" else "min" for part in self.parts}

    def check(self, m: Mechanism) -> None:
        """Refuse a body that the mechanism does not have."""
        for body in (*([self.body] if self.body else []), *(name for name, _ in self.load.wrench)):
            try:
                index = m.body_index(body)
            except InputError as error:
                raise InputError(f"output '{self.name}': {error}") from None
            if index < 0:
                raise InputError(f"output '{self.name}': the world does not move; name a body")

    def compute(self, case: Situation) -> dict[str, float]:
        """The numbers, by column."""
        found: Any = getattr(self, f"_{self.kind}")(case)
        if isinstance(found, Mapping):
            return {f"{self.name}.{key}": _float(value) for key, value in found.items()}
        if np.ndim(found) == 0:
            return {self.name: _float(found)}
        return {f"{self.name}.{i}": _float(value) for i, value in enumerate(found, 1)}

    # --- one method per kind

    def _compliance(self, case: Situation) -> Any:
        matrix = case.at(self.load).compliance(self.body)
        found = {}
        for part in self.parts:
            row, _, column = part.partition(".")
            found[part] = matrix[AXES.index(row), AXES.index(column)]
        return found if len(found) > 1 else found[self.parts[0]]

    def _principal(self, case: Situation) -> Any:
        """Softest first."""
        start = 0 if self.parts == ("translation",) else 3
        block = case.at(self.load).compliance(self.body)[start : start + 3, start : start + 3]
        return np.linalg.eigvalsh((block + block.T) / 2)[::-1]

    def _frequencies(self, case: Situation) -> Any:
        found = case.at(self.load).frequencies(int(self.value))
        return found if self.value > 1 else found[0]

    def _displacement(self, case: Situation) -> Any:
        m, at = case.mechanism, case.at(self.load)
        index = m.body_index(self.body)
        moved = at.poses[index, :3, 3] - m.reference_poses[index, :3, 3]
        every: dict[str, Any] = dict(zip(COMPONENTS, (np.linalg.norm(moved), *moved), strict=True))
        found = {part: every[part] for part in self.parts}
        return found if len(found) > 1 else found[self.parts[0]]

    def _energy(self, case: Situation) -> Any:
        """The fraction that is left some time after the load is taken away."""
        from pliant.engines.constrained import ConstrainedSimulation

        simulation = ConstrainedSimulation(case.mechanism, self.timestep, gravity=(0, 0, 0))
        rest = _total(simulation)
        simulation.q = case.at(self.load)
        start = _total(simulation) - rest
        if not start > 0:
            raise InputError(f"output '{self.name}': its load stores no energy")
        simulation.step(max(1, round(self.value / self.timestep)))
        return (_total(simulation) - rest) / start

    def _grasp(self, case: Situation) -> Any:
        assert self.grasp is not None
        return self.grasp.play(case.at(Load(gravity=self.load.gravity)), self.load, case.values)

    def _function(self, case: Situation) -> Any:
        function = self._callable
        random = [np.random.default_rng(case.seed)] if argument_count(function) == 3 else []
        return function(case.mechanism, Named(case.values), *random)

    @cached_property
    def _callable(self) -> Any:
        assert self.function is not None
        return self.function.find()


class Named(dict[str, Any]):
    """Parameters by name; a misspelt one is answered with the nearest names."""

    def __missing__(self, key: str) -> Any:
        raise InputError(f"there is no parameter '{key}'{suggestion(key, self)}")


def _total(simulation: Any) -> float:
    energy = simulation.energy
    return energy.kinetic + energy.potential + energy.elastic


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"a number expected, not {value!r:.80}") from None


# --- from a study's file


def parse_outputs(given: Any, parameters: Sequence[str]) -> tuple[Output, ...]:
    """Outputs from `{name: {...}}`, as they stand in the file; a value may also be a function.

    Raises:
        InputError: one is not well defined.
    """
    found = table(given, "outputs")
    if not found:
        raise InputError("outputs: at least one expected, as in [outputs.f] with frequencies = 1")
    return tuple(_parse(name, value, parameters) for name, value in found.items())


def _parse(name: str, given: Any, parameters: Sequence[str]) -> Output:
    where = f"output '{name}'"
    check_name(name, where)
    if name in parameters:
        raise InputError(f"{where}: a parameter has that name; take another")
    given = {"function": given} if callable(given) else table(given, where)
    kinds = [key for key in _OPTIONS if key in given]
    if len(kinds) != 1:
        unknown = [key for key in given if key not in {"goal", *_OPTIONS, *sum(_OPTIONS.values(), ())}]
        hint = suggestion(unknown[0], _OPTIONS) if unknown else f"; there are {', '.join(_OPTIONS)}"
        said = (
            f"'{unknown[0]}' is nothing to compute"
            if unknown
            else f"one thing to compute expected, not {kinds}"
        )
        raise InputError(f"{where}: {said}{hint}")
    kind = kinds[0]
    check_keys(given, (kind, *_OPTIONS[kind], *(["goal"] if kind != "grasp" else [])), where)
    given = {"gravity": True, **given} if kind == "grasp" else given
    options: dict[str, Any] = {"load": parse_load(given, parameters, where)}
    if kind in ("compliance", "principal", "displacement"):
        options["body"] = given[kind]
        if not isinstance(given[kind], str) or not given[kind]:
            raise InputError(f"{where}: {kind} takes the name of a body, not {given[kind]!r:.80}")
    if kind == "compliance":
        known = [f"{a}.{b}" for a in AXES for b in AXES]
        options["parts"] = _words(
            given.get("entries", [f"{a}.{a}" for a in AXES]), known, f"{where}: entries"
        )
    elif kind == "principal":
        options["parts"] = _words(given.get("of", "translation"), ("translation", "rotation"), f"{where}: of")
        if len(options["parts"]) > 1:
            raise InputError(f"{where}: of is 'translation' or 'rotation'; make two outputs for both")
    elif kind == "displacement":
        options["parts"] = _words(given.get("components", "distance"), COMPONENTS, f"{where}: components")
    elif kind == "frequencies":
        options["value"] = whole(given[kind], f"{where}: frequencies", 1)
    elif kind == "energy":
        options["value"] = number(given[kind], f"{where}: energy", above=0.0)
        options["timestep"] = number(given.get("timestep", 1 / 240), f"{where}: timestep", above=0.0)
    elif kind == "grasp":
        options |= {"grasp": parse_grasp(given, parameters, where), "parts": COLUMNS}
    else:
        options["function"] = refer(given[kind], where)
    if kind in ("displacement", "energy") and options["load"] == Load():
        raise InputError(f"{where}: say what acts, as in wrench = {{ {given.get(kind)} = [0, 0, -5] }}")
    if kind == "grasp" and not options["load"].wrench:
        raise InputError(f"{where}: say what closes the fingers, as in wrench = {{ FINGERTIP = [10, 0, 0] }}")
    goal = given.get("goal", "min")
    _words(goal, GOALS, f"{where}: goal")
    return Output(name, kind, goal=goal, **options)


def _words(given: Any, known: Iterable[str], where: str) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    known = list(known)
    if not words or len(set(words)) < len(words):
        raise InputError(f"{where}: some of {', '.join(known[:6])} expected, each once, not {given!r:.80}")
    for word in words:
        if word not in known:
            raise InputError(f"{where}: unknown '{word}'{suggestion(word, known)}")
    return words
