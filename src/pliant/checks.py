"""Checks of arguments: each returns the value in its proper type, or raises an `InputError` that names the argument.

Messages read "WHAT: EXPECTED expected, not VALUE". EXPECTED is made of the bounds, or the caller's `expected`; for a
value of the wrong type it is the caller's `kind`, if given.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError, PliantError, PliantWarning
from pliant.text import brief

__all__ = [
    "EARTH",
    "MOST_THREADS",
    "acceleration",
    "choice",
    "entries",
    "flag",
    "instance",
    "length",
    "mapping",
    "number",
    "numbers",
    "pose",
    "room",
    "seconds",
    "vector",
    "whole",
]

Floats = NDArray[np.float64]
SHORTEST = 1e-100  # s: squares of shorter time steps vanish
MOST_THREADS = 1024  # threads or processes: more are a mistake
EARTH = (0.0, 0.0, -9.81)  # acceleration of gravity, m/s², z up


def whole(
    value: Any,
    what: str,
    least: int = 0,
    most: int | None = None,
    *,
    kind: str | None = None,
    expected: str | None = None,
) -> int:
    """A whole number from `least` to `most`, both included; booleans and floats are refused."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        out = operator.index(value)
    except TypeError:
        out = None
    if out is not None and least <= out and (most is None or out <= most):
        return out
    expected = expected or f"a whole number from {least}" + ("" if most is None else f" to {most}")
    raise _refused(what, (out is None and kind) or expected, value)


def number(
    value: Any,
    what: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    kind: str | None = None,
    expected: str | None = None,
) -> float:
    """A finite number from `least` to `most`, or between `above` and `below`; booleans and strings are refused."""
    try:
        if isinstance(value, bool | np.bool_ | str | bytes) or np.ndim(value):
            raise TypeError
        out = float(value)
    except (TypeError, ValueError, OverflowError):
        out = None
    if out is not None and above < out < below and least <= out <= most:  # NaN and infinity fail
        return out
    raise _refused(what, (out is None and kind) or expected or _interval(above, least, most, below), value)


def numbers(value: Any, what: str, error: type[PliantError] = InputError) -> Floats:
    """A float64 array of any shape, finite or not; the value itself if it is one."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what}: numbers expected, not {brief(value)}") from None


def vector(
    value: Any,
    what: str,
    count: int = 3,
    *,
    below: float = math.inf,
    kind: str | None = None,
    expected: str | None = None,
) -> Floats:
    """`count` finite numbers, of absolute values below `below`, as a new array."""
    expected = expected or f"{count} finite numbers" + (f" below {below:g}" if below < math.inf else "")
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _refused(what, kind or f"{count} numbers", value) from None
    if out.shape != (count,) or not (np.abs(out) < below).all():
        raise _refused(what, expected, value)
    return out


def length(value: Any) -> int | None:
    """Number of entries of a sequence; None of what has no length, arrays of no dimension among them."""
    try:
        return len(value)
    except TypeError:
        return None


def entries(value: Any) -> list[Any] | None:
    """Entries of an iterable; None of strings and of what has none, arrays of no dimension among them."""
    if isinstance(value, str | bytes):
        return None
    try:
        return list(value)
    except TypeError:
        return None


def pose(value: Any, what: str = "pose") -> Floats:
    """A pose, 4 x 4, as a new array."""
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _refused(what, "a 4 x 4 matrix", value) from None
    turn = out[:3, :3] if out.shape == (4, 4) and np.isfinite(out).all() else np.zeros((3, 3))
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(turn @ turn.T - np.eye(3)).max()
    if not off <= 1e-9 or not np.abs(out).max() < 1e150:  # squares of places are finite
        raise _refused(what, "a 4 x 4 matrix with a rotation in it", value)
    return out


def choice(value: Any, what: str, known: Sequence[str], *, colon: bool = False) -> str:
    """One of the `known` words. The message is "frame is 'body' or 'world', not ..."; with `colon`, as above."""
    if isinstance(value, str) and value in known:
        return value
    if colon:
        raise _refused(what, f"one of {', '.join(map(repr, known))}", value)
    words = " or ".join(map(repr, known)) if len(known) == 2 else f"one of {', '.join(map(repr, known))}"
    raise InputError(f"{what} is {words}, not {brief(value)}")


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _refused(what, "True or False", value)


def instance(value: Any, kind: type | tuple[type, ...], what: str) -> None:
    """Refuse what is not an object of a class, or of one of several."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise _refused(what, f"a {' or '.join(one.__name__ for one in kinds)}", value)


def mapping(value: Any, what: str, expected: str) -> Mapping[Any, Any]:
    """A mapping; `expected` says of what."""
    if isinstance(value, Mapping):
        return value
    raise _refused(what, f"a mapping {expected}", value)


def room(shape: tuple[int, ...], what: str) -> Floats:
    """An array of floats that are not set yet; refused where there is no memory for it."""
    try:
        return np.empty(shape)
    except (MemoryError, ValueError, OverflowError):
        raise InputError(f"{what} do not fit into memory: take fewer") from None


def seconds(timestep: Any, *, motion: bool = True) -> float:
    """Length of a time step, s; warns of more than a second, unless there is no `motion` that it could hide."""
    found = number(timestep, "timestep", above=0.0, expected="a number of seconds above 0")
    number(found, "timestep", least=SHORTEST)
    if motion and found > 1.0:
        warnings.warn(
            f"a time step of {found:g} s hides all motion faster than that: was {1 / found:.3g} s meant?",
            PliantWarning,
            stacklevel=4,
        )
    return found


def acceleration(gravity: Any) -> Floats:
    """Acceleration of gravity, m/s², (3,), as a new array."""
    return vector(gravity, "gravity")


def _refused(what: str, expected: str, value: Any) -> InputError:
    return InputError(f"{what}: {expected} expected, not {brief(value)}")


def _interval(above: float, least: float, most: float, below: float) -> str:
    """The bounds of a number in words."""
    if above > -math.inf:
        return f"a number above {above:g}" + (f", at most {most:g}," if most < math.inf else "")
    if least > -math.inf:
        end = f" to {most:g}" if most < math.inf else f" to below {below:g}" if below < math.inf else " on"
        return f"a number from {least:g}{end}"
    return "a finite number"
