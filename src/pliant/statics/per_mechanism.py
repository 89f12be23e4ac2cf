"""`per_mechanism`: functions of a mechanism that are computed once for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from pliant.mechanism import Mechanism

__all__ = ["per_mechanism"]

Value = TypeVar("Value")


def per_mechanism(function: Callable[[Mechanism], Value]) -> Callable[[Mechanism], Value]:
    """The function, computed once for each mechanism as long as it lives: nothing in a mechanism can change."""
    known: WeakKeyDictionary[Mechanism, Value] = WeakKeyDictionary()

    @wraps(function)
    def look_up(m: Mechanism) -> Value:
        try:
            return known[m]
        except KeyError:
            return known.setdefault(m, function(m))

    return look_up
