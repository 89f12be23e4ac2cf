"""`njit`: numba's decorator with pliant's cache."""

from __future__ import annotations

from typing import Any

import numba
from numba.core import sigutils, types
from numba.core.compiler_lock import global_compiler_lock

from pliant.compilation import linking, progress
from pliant.compilation.cache import KernelCache

__all__ = ["njit"]


def njit(function: Any = None, *, counts_references: bool = False, **options: Any) -> Any:
    """Make a kernel as `numba.njit` does, with machine code from the package or from pliant's cache if available.

    A kernel gets machine code when Python calls it, or asks for its address; kernels that others call are compiled for
    linking (`pliant.compilation.linking`). A function whose name starts with an underscore is called by other kernels
    alone.

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
    dispatcher: Any = numba.njit(pipeline_class=linking.KernelCompiler, **options)(function)
    if not hasattr(dispatcher, "_cache"):
        return dispatcher  # NUMBA_DISABLE_JIT: the function itself
    if options.get("inline") != "always":
        dispatcher._cache = KernelCache(function, options)
    _separate(dispatcher, hidden)
    if not counts_references:
        _refuse_arrays(dispatcher)
    progress.watch()
    return dispatcher


def _separate(dispatcher: Any, hidden: bool) -> None:
    """Compile a kernel for linking where other kernels call it, to machine code where Python does.

    A hidden kernel has no wrapper for calls from Python, which would crash: it refuses them. Literal types of arguments
    count as plain ones, so that constants do not compile further copies of a kernel.
    """
    add, make, template = dispatcher.add_overload, dispatcher.compile, dispatcher.get_call_template

    def add_overload(result: Any) -> None:
        if hidden or linking.is_linked(result):
            dispatcher.overloads[tuple(result.signature.args)] = result
        else:
            add(result)

    def compile(signature: Any) -> Any:
        arguments = tuple(sigutils.normalize_signature(signature)[0])
        with global_compiler_lock:
            known = dispatcher.overloads.get(arguments)
            if known is not None and linking.is_linked(known) and not linking.is_for_callers():
                del dispatcher.overloads[arguments]
            return make(signature)

    def get_call_template(args: Any, kws: Any) -> Any:
        with linking.for_callers():
            return template(
                [types.unliteral(a) for a in args], {key: types.unliteral(a) for key, a in kws.items()}
            )

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{dispatcher.py_func.__qualname__} is for other kernels to call, not for Python")

    dispatcher.add_overload = add_overload
    dispatcher.compile = compile
    dispatcher.get_call_template = get_call_template
    if hidden:
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
