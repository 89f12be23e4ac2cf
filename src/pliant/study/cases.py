"""One case after the other, in the process that computes them."""

from __future__ import annotations

import math
import os
import pickle
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from pliant.study.design import case_seed
from pliant.study.outputs import Output, Situation
from pliant.study.parameters import Parameter
from pliant.study.source import MechanismSource

if TYPE_CHECKING:
    from pliant.study.definition import Study

__all__ = ["Case", "Evaluator", "Row", "pack"]

_LONGEST = 500  # characters of an error in the table


class Case(NamedTuple):
    """A case to be computed: its number and its values."""

    index: int
    values: tuple[Any, ...]


class Row(NamedTuple):
    """What became of a case.

    Attributes:
        index: its number.
        outputs: by column.
        duration: seconds.
        error: what went wrong, or None.
    """

    index: int
    outputs: dict[str, float]
    duration: float
    error: str | None = None


class Evaluator:
    """All that a process must know of a study, to compute any of its cases."""

    def __init__(
        self,
        source: MechanismSource,
        parameters: Sequence[Parameter],
        outputs: Sequence[Output],
        seed: int,
        first: Case,
    ):
        self.source, self.parameters, self.outputs = source, parameters, outputs
        self.seed, self.first = seed, first

    def warm(self) -> None:
        """Compile, or read from numba's cache, what the cases need. The user's functions are left for the cases:
        they may do anything, and a case has a time limit."""
        known = [output for output in self.outputs if output.function is None]
        with suppress(Exception):  # if the first case fails, its row says so
            self._compute(self.first, known)
        for output in self.outputs:
            if output.function is not None:
                output.function.find()

    def __call__(self, case: Case) -> Row:
        """Compute one case, whatever happens in it."""
        found: dict[str, float] = {}
        error = None
        start = perf_counter()
        try:
            found = self._compute(case, self.outputs)
        except (Exception, SystemExit) as problem:
            error = f"{type(problem).__name__}: {problem}"
        duration = perf_counter() - start
        if error is None:
            wild = [name for name, value in found.items() if not math.isfinite(value)]
            error = f"'{wild[0]}' is {found[wild[0]]}" if wild else None
        return Row(case.index, found, duration, error and " ".join(error.split())[:_LONGEST])

    def _compute(self, case: Case, outputs: Sequence[Output]) -> dict[str, float]:
        values = dict(zip((p.name for p in self.parameters), case.values, strict=True))
        situation = Situation(
            self.source.build(self.parameters, values), values, case_seed(self.seed, case.index)
        )
        found: dict[str, float] = {}
        for output in outputs:
            found.update(output.compute(situation))
        return found


def pack(study: Study) -> bytes:
    """What is sent to a process, once: the mechanism, what to do with it, where to find modules."""
    evaluator = Evaluator(study.source, study.parameters, study.outputs, study.seed, Case(0, study.design[0]))
    return pickle.dumps((str(study.folder), [*sys.path], pickle.dumps(evaluator)))


def unpack(payload: bytes) -> Evaluator:
    """The evaluator on the other side, ready to be used."""
    folder, path, packed = pickle.loads(payload)
    for place in (folder, *path):
        if place and place not in sys.path and os.path.isdir(place):
            sys.path.append(place)
    warnings.simplefilter("ignore")  # ten thousand times the same one helps nobody
    evaluator = pickle.loads(packed)
    evaluator.warm()
    return evaluator
