"""Every error and warning pliant raises. Each message names the culprit and says what to do."""

from __future__ import annotations

__all__ = [
    "ConvergenceError",
    "FormatError",
    "InputError",
    "MechanismError",
    "MissingPackageError",
    "PliantError",
    "PliantWarning",
    "RepairedWarning",
    "UnknownNameError",
    "UnsafePathError",
    "UnsupportedWarning",
]


class PliantError(Exception):
    """Base class: catch this to catch everything pliant raises on purpose."""


class InputError(PliantError, ValueError):
    """An argument of a call is unusable (wrong shape, not finite, unknown option)."""


class MechanismError(InputError):
    """A mechanism description is inconsistent or not physical."""


class UnknownNameError(MechanismError, LookupError):
    """No body, joint or degree of freedom goes by that name."""


class FormatError(PliantError, ValueError):
    """A file cannot be read or written."""


class UnsafePathError(FormatError):
    """A file refers to another one outside its own folder tree."""


class ConvergenceError(PliantError, ArithmeticError):
    """A solver stopped short of its tolerance.

    Attributes:
        residual: the last relative residual.
        configuration: the last configuration reached, or None.
    """

    def __init__(self, message: str, residual: float = float("nan"), configuration: object = None):
        super().__init__(message)
        self.residual = residual
        self.configuration = configuration


class MissingPackageError(PliantError, ImportError):
    """A package that only some of pliant needs is not installed."""


class PliantWarning(UserWarning):
    """Base class of pliant's warnings."""


class RepairedWarning(PliantWarning):
    """A file held things that are not physical; they were repaired, as asked."""


class UnsupportedWarning(PliantWarning):
    """A file holds things pliant cannot represent; they were left out."""
