"""`njit`: numba's decorator with pliant's cache."""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types

from pliant.compilation import progress
from pliant.compilation.cache import KernelCache

__all__ = ["njit"]


def njit(function: Any = None, *, counts_references: bool = False, **options: Any) -> Any:
    """Make a kernel as `numba.njit` does, with machine code from the package or from pliant's cache if available.

    A function whose name starts with an underscore is called by other kernels alone: it gets no wrapper for calls from
    Python, which for functions of many arrays takes longer to compile than the function itself.

    Arrays are borrowed from the caller, who holds them until the call returns: kernels do not count references, which
    took a quarter of a quasi-static step. Such a kernel neither makes nor returns arrays, nor reads structures; a
    kernel that `counts_references` may.
    """
    if function is None:
        return lambda inner: njit(inner, counts_references=counts_references, **options)
    options = {**options, "_nrt": counts_references, "no_cfunc_wrapper": True}
    hidden = function.__name__.startswith("_")
    if hidden:
        options["no_cpython_wrapper"] = True
    dispatcher: Any = numba.njit(**options)(function)
    if not hasattr(dispatcher, "_cache"):
        return dispatcher  # NUMBA_DISABLE_JIT: the function itself
    if options.get("inline") != "always":
        dispatcher._cache = KernelCache(function, options)
    if hidden:
        _hide(dispatcher)
    if not counts_references:
        _refuse_arrays(dispatcher)
    _widen(dispatcher)
    progress.watch()
    return dispatcher


def _hide(dispatcher: Any) -> None:
    """Raise an error when Python calls a kernel without a wrapper, which would crash."""

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{dispatcher.py_func.__qualname__} is for other kernels to call, not for Python")

    dispatcher.add_overload = add_overload
    dispatcher._compile_for_args = refuse


def _refuse_arrays(dispatcher: Any) -> None:
    """Raise an error where a kernel that does not count references would return an array."""
    add = dispatcher.add_overload

    def add_overload(result: Any) -> None:
        if _holds_array(result.signature.return_type):
            raise TypeError(
                f"{dispatcher.py_func.__qualname__} returns an array: give it counts_references=True"
            )
        add(result)

    dispatcher.add_overload = add_overload


def _holds_array(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return any(_holds_array(part) for part in parts)
    return isinstance(kind, (types.Array, types.StructRef))


def _widen(dispatcher: Any) -> None:
    """Replace literal types of arguments by plain ones, so that constants do not compile further copies of a kernel."""
    template = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template(
            [types.unliteral(a) for a in args], {key: types.unliteral(a) for key, a in kws.items()}
        )

    dispatcher.get_call_template = get_call_template
