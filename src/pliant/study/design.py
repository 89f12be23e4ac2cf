"""All cases of a study: the grid of what is listed, times the samples of what is drawn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.study.parameters import Parameter

__all__ = ["SAMPLINGS", "Design", "case_seed", "make_design"]

SAMPLINGS = ("random", "latin", "sobol")
MAX_CASES = 100_000_000


@dataclass(frozen=True)
class Design:
    """What every case has as parameters.

    Attributes:
        names: of the parameters.
        axes: of the grid, name and values, the first varies slowest.
        samples: of the drawn ones, one row each; the same at every point of the grid.
        drawn: names of the columns of `samples`.
    """

    names: tuple[str, ...]
    axes: dict[str, list[Any]]
    samples: NDArray[np.float64]
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
    """The design of a study; the same seed, the same design."""
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
    if len(found) > MAX_CASES:
        raise InputError(f"the study has {len(found)} cases, more than {MAX_CASES}: take fewer values")
    return found


def _fractions(samples: int, dimensions: int, sampling: str, seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0)))
    if sampling == "random":
        return generator.random((samples, dimensions))
    from scipy.stats import qmc

    with warnings.catch_warnings():
        # Sobol' points are most even for powers of two; users may take another number all the same.
        warnings.simplefilter("ignore")
        make: Any = (
            qmc.LatinHypercube if sampling == "latin" else qmc.Sobol
        )  # older scipy says seed, newer rng too
        return make(dimensions, seed=generator).random(samples)


def case_seed(seed: int, index: int) -> int:
    """The seed of one case: of the study's seed and its index alone, so whoever runs it makes no difference."""
    state = np.random.SeedSequence(seed, spawn_key=(1, index)).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))  # a signed column of 64 bits holds it
