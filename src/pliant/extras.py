"""Packages that only some of pliant needs: which extra they come with, and what to say where one is missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from pliant.errors import MissingPackageError

__all__ = ["check", "require"]

_EXTRAS = {  # package: the extra it comes with, and what for
    "matplotlib": ("view", "pictures and plots need"),
    "viser": ("view", "the live view and recordings need"),
    "pyarrow": ("study", "studies need"),
    "distributed": ("cluster", "a scheduler needs"),
}


def require(package: str) -> ModuleType:
    """A package of an extra.

    Raises:
        MissingPackageError: it is not installed.
    """
    check(package)
    return import_module(package)


def check(package: str) -> None:
    """Refuse to go on without a package of an extra; it is looked for, not imported.

    Raises:
        MissingPackageError: it is not installed.
    """
    if find_spec(package) is None:
        extra, purpose = _EXTRAS[package]
        raise MissingPackageError(
            f"{purpose} the package '{package}', which comes with pliant[{extra}]: pip install {package}"
        )
