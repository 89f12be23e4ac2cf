"""Functions of the user: by reference, so that any process can find them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pliant.errors import InputError
from pliant.mechanism.edit import suggestion

__all__ = ["Reference", "refer"]

_MAIN = "__pliant_main__"  # a script's own functions, without what is below its `if __name__ == "__main__"`


@dataclass(frozen=True)
class Reference:
    """`module:function`; for a function of a script, the script's file too."""

    module: str
    name: str
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    def find(self) -> Callable[..., Any]:
        """The function.

        Raises:
            InputError: there is none.
        """
        module = self._module()
        found: Any = module
        for part in self.name.split("."):
            if not hasattr(found, part):
                known = [n for n in vars(found) if callable(getattr(found, n)) and n[0] != "_"]
                raise InputError(f"'{self}': no function '{part}'{suggestion(part, known)}")
            found = getattr(found, part)
        if not callable(found):
            raise InputError(f"'{self}' is no function but {found!r:.60}")
        return found

    def _module(self) -> ModuleType:
        if self.module != "__main__":
            try:
                return importlib.import_module(self.module)
            except Exception as error:  # whatever the user's module does when imported
                raise InputError(
                    f"'{self}': the module '{self.module}' cannot be imported: {type(error).__name__}: {error}"
                ) from None
        main = sys.modules["__main__"]
        here = getattr(main, "__file__", None)
        if self.file is None or (here and str(Path(here).resolve()) == self.file):
            return main
        if _MAIN not in sys.modules:
            spec = importlib.util.spec_from_file_location(_MAIN, self.file)
            if spec is None or spec.loader is None:
                raise InputError(f"'{self}': '{self.file}' cannot be imported")
            sys.modules[_MAIN] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[_MAIN])
        return sys.modules[_MAIN]


def refer(given: Any, where: str) -> Reference:
    """A reference to a function, given as such or as `module:function`; it is looked up to be sure.

    Raises:
        InputError: other processes could not find it, or it takes other arguments.
    """
    if isinstance(given, str):
        module, colon, name = given.partition(":")
        if not colon or not module or not name:
            raise InputError(f"{where}: 'module:function' expected, not '{given}'")
        reference = Reference(module, name)
        function = reference.find()
    else:
        reference, function = _reference(given, where), given
    _check_arguments(function, f"{where}: '{reference}'")
    return reference


def _reference(function: Any, where: str) -> Reference:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not callable(function) or not module or not name or "<" in name:
        raise InputError(
            f"{where}: a function at the top level of a module or script expected, not {function!r:.60}: "
            "other processes must find it by its name"
        )
    file = getattr(sys.modules["__main__"], "__file__", None) if module == "__main__" else None
    if module == "__main__" and file is None:
        raise InputError(
            f"{where}: '{name}' is known to this session only: write it to a file, so that other processes find it"
        )
    reference = Reference(module, name, str(Path(file).resolve()) if file else None)
    if module != "__main__" and reference.find() is not function:
        raise InputError(f"{where}: '{reference}' is now another function: give it a name of its own")
    return reference


def _check_arguments(function: Callable[..., Any], where: str) -> None:
    if argument_count(function) not in (2, 3):
        raise InputError(
            f"{where} must take the mechanism and the parameters, and may take a random generator: "
            "`def f(mechanism, parameters)` or `def f(mechanism, parameters, rng)`"
        )


def argument_count(function: Callable[..., Any]) -> int:
    """How many arguments a function takes by position, up to three."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return 2  # written in C; it will say itself what it wants
    found = 0
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return max(found, 2)
        found += parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            return 0
    return found
