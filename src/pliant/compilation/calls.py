"""Calls of large kernels by address.

A kernel's machine code holds that of every kernel it calls, compiled again with it: a large one that is called from
several others, at several levels, would be compiled many times. A call by address leaves it out. The addresses are
looked up in Python when arrays are made, in an array that travels with these.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.typing.typeof import typeof
from numba.extending import intrinsic

__all__ = ["address_of", "call_returning"]


_known: dict[Any, int] = {}


def address_of(kernel: Any, *arguments: Any) -> int:
    """Address of the machine code of a kernel for arguments like these, compiled or loaded if need be.

    It is valid as long as the process lives: kernels are never unloaded. A kernel that is called by address has
    arguments of the same types everywhere: those of its first call count.
    """
    if kernel not in _known:
        kinds = tuple(types.unliteral(typeof(value)) for value in arguments)
        kernel.compile(kinds)
        made = kernel.overloads[kinds]
        _known[kernel] = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return _known[kernel]


def call_returning(result: Any) -> Any:
    """A function for kernels, `call(address, (argument, ...))`, for kernels that return a value of this type."""

    @intrinsic
    def call(typing: Any, address: Any, arguments: Any) -> Any:
        kinds = tuple(types.unliteral(kind) for kind in arguments)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(result, kinds)
            parts = cgutils.unpack_tuple(builder, values[1], len(kinds))
            parts = [
                context.cast(builder, part, given, wanted)
                for part, given, wanted in zip(parts, arguments, kinds, strict=True)
            ]
            function = builder.inttoptr(values[0], kind.as_pointer())
            status, out = convention.call_function(builder, function, result, kinds, parts)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return out

        return result(address, arguments), generate

    return call
