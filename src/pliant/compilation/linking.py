"""Kernels compiled for linking: LLVM code without machine code, for the kernels that call them.

A kernel's machine code holds that of every kernel it calls, optimised with it. numba optimises a kernel that only other
kernels call and generates machine code for it all the same, which nobody runs. `KernelCompiler` leaves both out while
`for_callers()` is in force.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen
from numba.core.compiler import Compiler, Flags

__all__ = ["KernelCompiler", "LinkedContext", "for_callers", "is_for_callers", "is_linked"]

_ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the globals with the addresses of kernels' Python objects
_CIRCLE = codegen.RuntimeLinker.PREFIX  # of the globals with addresses of functions that are not compiled yet
_STEPS = (
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_verify_declare_only_symbols",
    "_get_module_for_linking",
)

_state = threading.local()


def is_for_callers() -> bool:
    """Whether the kernel that is compiled or loaded in this thread is for other kernels to call."""
    return getattr(_state, "for_callers", False)


@contextmanager
def for_callers() -> Iterator[None]:
    """Compile and load kernels for other kernels to call, in this thread."""
    before = is_for_callers()
    _state.for_callers = True
    try:
        yield
    finally:
        _state.for_callers = before


def is_linked(result: Any) -> bool:
    """Whether a kernel's code is for linking only."""
    return isinstance(result.library, LinkedLibrary)


class LinkedLibrary(codegen.JITCodeLibrary):
    """LLVM code of a kernel and of those it calls, before the passes over whole modules."""

    def finalize(self) -> None:
        """Link the code of the kernels that are called; no more can be added."""
        if any(g.name.startswith(_CIRCLE) for g in self._final_module.global_variables):
            raise TypeError(
                f"{self.name}: kernels that call one another in a circle have no code for linking"
            )
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._define_environments()
        self._finalized = True

    def _define_environments(self) -> None:
        """Give the globals with addresses of Python objects their place, which numba writes to."""
        engine: Any = self._codegen._engine
        names = [g.name for g in self._final_module.global_variables if g.name.startswith(_ENVIRONMENT)]
        new = [name for name in names if not engine.is_symbol_defined(name)]
        if new:
            lines = [f'@"{name}" = common global i{8 * struct.calcsize("P")} 0' for name in new]
            module = llvm.parse_assembly("\n".join(lines))
            module.data_layout = str(self._codegen.target_data)
            engine.add_module(module)
            engine.finalize_object()

    def get_pointer_to_function(self, name: str) -> int:
        """Zero, in numba's words for a function that has no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Name, kind and code of the library; there is no object code."""
        return self.serialize_using_bitcode()

    @classmethod
    def load(cls, generator: Any, state: Any) -> LinkedLibrary:
        """The library of a saved state."""
        name, _, bitcode = state
        library = cls(generator, name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


# Parts of numba that are not its public interface: where one is missing, kernels are compiled to machine code.
_POSSIBLE = all(hasattr(codegen.JITCodeLibrary, name) for name in _STEPS)


class LinkedContext:
    """Target of compilation, in numba's terms, that loads libraries for linking."""

    def __init__(self, target: Any):
        self._target = target

    def codegen(self) -> Any:
        return self

    def unserialize_library(self, state: Any) -> LinkedLibrary:
        """The library of a saved state."""
        return LinkedLibrary.load(self._target.codegen(), state)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


class _Flags(Flags):
    """Options of a kernel's compilation; numba looks them up with every operation that it finds a type for.

    numba's own have one hash for all, and compare 23 properties each time: a fifth of the time of compilation.
    """

    __slots__ = ()

    def chosen(self) -> dict[str, Any]:
        """Options that are set."""
        return self._values

    def __hash__(self) -> int:
        return hash((self.nrt, self.error_model, self.release_gil, self.no_cpython_wrapper))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self.chosen() == other.chosen()


class KernelCompiler(Compiler):
    """numba's compiler, which compiles for linking where callers ask for it."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, restype: Any, flags: Any, locals: Any
    ):
        super().__init__(typingctx, targetctx, library, args, restype, _Flags(flags), locals)

    def define_pipelines(self) -> list[Any]:
        """numba's passes, into a library for linking where callers ask for it."""
        if is_for_callers() and _POSSIBLE:
            generator, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
            self.state.library = LinkedLibrary(generator, name)
            self.state.flags.no_cpython_wrapper = True
        return super().define_pipelines()
