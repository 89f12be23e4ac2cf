"""Read-only arrays: views of memory that nobody can write through."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_only"]

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """View of an array that cannot be written, nor be made writable.

    `flags.writeable = False` can be undone by whoever gets the array; here its base is a read-only buffer.
    """
    buffer: Any = array
    return np.asarray(memoryview(buffer).toreadonly())
