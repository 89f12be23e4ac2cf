"""Compilation of kernels: machine code that comes with the package, a cache for the rest, notices of what is compiled.

Every kernel takes `njit` from here instead of from numba. `progress` and `places` do not import numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pliant.compilation.decorator import njit

__all__ = ["njit"]


def __getattr__(name: str) -> Any:
    if name != "njit":
        raise AttributeError(f"module 'pliant.compilation' has no attribute '{name}'")
    return import_module("pliant.compilation.decorator").njit
