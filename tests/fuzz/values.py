"""Random values for fuzzing: plain ones, extreme ones, and values of the wrong type or shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

EXTREME = (
    0.0, -0.0, 5e-324, 1e-300, -1e-12, 1.0, -1.0, 1e3, -1e7, 1e18, 1e60, -1e100, 1e154, 1e200, 1.7e308, -1.7e308,
    float(2**31), float(2**53), float(2**63), -float(2**63), np.nan, np.inf, -np.inf,
)  # fmt: skip
JUNK: tuple[Any, ...] = (
    None, True, "", "x", "nan", b"1", [], {}, (), [[]], [1, 2], [1, 2, 3, 4], "abc", 10**400, 1j, object, [None] * 3,
    ["a", "b", "c"], [[1, 2, 3]], np.zeros((2, 3)), np.zeros(0), np.array(["a"] * 3), np.array([None] * 3), [1, [2], 3],
)  # fmt: skip


def pick(rng: Generator, options: Any) -> Any:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def number(rng: Generator, scale: float = 1.0) -> Any:
    """A number: as a rule of the size of `scale`, else extreme, else no number at all."""
    kind = rng.random()
    if kind < 0.75:
        return scale * float(rng.normal())
    return pick(rng, EXTREME) if kind < 0.93 else pick(rng, JUNK)


def vector(rng: Generator, size: int = 3, scale: float = 1.0) -> Any:
    """As many numbers, likewise; or a value of another type or shape."""
    kind = rng.random()
    if kind < 0.05:
        return pick(rng, JUNK)
    out = scale * rng.normal(size=size)
    if kind < 0.25 and size:
        out[rng.integers(size)] = pick(rng, EXTREME)
    elif kind < 0.28:
        out = out[: rng.integers(size + 1)]
    elif kind < 0.38:
        out *= 10.0 ** rng.uniform(-20, 120)
    return out


def damaged(rng: Generator, array: NDArray[Any]) -> NDArray[Any]:
    """An array with some entries replaced, shortened, of another type or shape."""
    out = array.copy()
    for _ in range(int(pick(rng, (1, 1, 1, 2, 5, 50)))):
        if out.size:
            at = rng.integers(out.size)
            if out.dtype.kind == "f":
                out.flat[at] = (
                    pick(rng, EXTREME) if rng.random() < 0.5 else rng.normal() * 10 ** rng.uniform(-3, 3)
                )
            elif out.dtype.itemsize == 1:
                out.flat[at] = rng.integers(256)
            elif out.dtype.kind == "i":
                out.flat[at] = pick(rng, (-1, 0, 1, 2, 7, 63, 64, 1000, 2**31, 2**40, -(2**62)))
    kind = rng.random()
    if kind < 0.05:
        return out[: rng.integers(len(out) + 1)]
    if kind < 0.08:
        return np.concatenate([out, out])
    if kind < 0.10:
        return out.astype(pick(rng, (np.float32, np.int64, np.complex128, object)))
    if kind < 0.12:
        return out[..., None]
    return out
