"""Optional packages: the extra that installs each, and the error where one is missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from pliant.errors import MissingPackageError

__all__ = ["check", "require"]

_EXTRAS = {  # package: extra, beginning of the error message
    "matplotlib": ("view", "pictures and plots need"),
    "viser": ("view", "the live view needs"),
    "gemmi": ("pdb", "PDB and mmCIF files need"),
    "pyarrow": ("study", "studies and Parquet tables need"),
    "distributed": ("cluster", "a scheduler needs"),
}


def require(package: str) -> ModuleType:
    """Import an optional package.

    Raises:
        MissingPackageError: it is not installed.
    """
    check(package)
    return import_module(package)


def check(package: str) -> None:
    """Raise an error if an optional package is not installed; does not import it.

    Raises:
        MissingPackageError: it is not installed.
    """
    if find_spec(package) is None:
        extra, purpose = _EXTRAS[package]
        raise MissingPackageError(
            f"{purpose} the package '{package}', which comes with pliant[{extra}]: pip install {package}"
        )
