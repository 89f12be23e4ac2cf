"""Mechanisms of the cases: the study's mechanism with the values of the parameters."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.edit import matching_dofs
from pliant.source import PREFIX, parse_gallery
from pliant.study.parameters import Parameter
from pliant.text import brief, suggestion

__all__ = ["MechanismSource", "find_mechanism"]


@dataclass(frozen=True)
class MechanismSource:
    """Source of the mechanisms of all cases.

    Attributes:
        text: as the user wrote it.
        mechanism: before stiffness and damping are set; None if arguments of its gallery function are parameters.
        maker: name of the gallery function, or None.
        arguments: of the gallery function, where the same in all cases.
    """

    text: str
    mechanism: Mechanism | None
    maker: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def varies(self, parameters: Sequence[Parameter]) -> bool:
        """Whether the cases have mechanisms of their own."""
        return self.mechanism is None or any(p.target is not None for p in parameters)

    def build(self, parameters: Sequence[Parameter], values: Mapping[str, Any]) -> Mechanism:
        """The mechanism for the values of the parameters."""
        m = self.mechanism
        if m is None:
            from pliant import gallery

            varied = {p.where[0]: values[p.name] for p in parameters if p.target == "argument"}
            m = gallery.make(self.maker or "", **{**self.arguments, **varied})
        elif self.varies(parameters):
            _ = m.elimination  # derived once, for all cases
        changes: dict[str, Any] = {}
        for p in parameters:
            if p.target in ("stiffness", "damping"):
                array = changes.setdefault(p.target, getattr(m, p.target).copy())
                dofs = matching_dofs(m, p.where)
                array[dofs] = values[p.name] * (array[dofs] if p.relative else 1.0)
        return m.replace(**changes) if changes else m

    def identity(self) -> str:
        """The gallery name, or a digest of the whole mechanism."""
        if self.maker is not None:
            return self.text
        from pliant.formats.json_file import pieces

        digest = hashlib.sha256()
        for piece in pieces(self.mechanism):  # type: ignore[arg-type]
            digest.update(piece.encode())
        return f"{digest.hexdigest()[:32]}"


def find_mechanism(given: Any, parameters: Sequence[Parameter], folder: Path) -> MechanismSource:
    """The source that a study names: a mechanism, a file, or `gallery:NAME`.

    Raises:
        PliantError: there is none, or parameters do not fit it.
    """
    varied = [p for p in parameters if p.target == "argument"]
    if isinstance(given, str) and given.startswith(PREFIX):
        return _from_gallery(given, varied)
    if varied:
        raise InputError(
            f"parameter '{varied[0].name}': argument = '{varied[0].where[0]}' goes with a mechanism of the gallery, "
            f"as in mechanism = '{PREFIX}ladder'"
        )
    if isinstance(given, Mechanism):
        return MechanismSource(given.name, given)
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"mechanism: a file, '{PREFIX}NAME' or a Mechanism expected, not {brief(given)}")
    from pliant.formats import load

    return MechanismSource(os.fspath(given), load(folder / os.fspath(given)))


def _from_gallery(text: str, varied: Sequence[Parameter]) -> MechanismSource:
    name, maker, arguments = parse_gallery(text, mechanisms=True)
    known = inspect.signature(maker).parameters
    for p in varied:
        argument = p.where[0]
        if argument not in known:
            raise InputError(
                f"parameter '{p.name}': {PREFIX}{name} has no argument '{argument}'{suggestion(argument, known)}"
            )
        if argument in arguments:
            raise InputError(
                f"parameter '{p.name}': the argument '{argument}' is fixed by mechanism = '{text}'"
            )
    return MechanismSource(text, None if varied else maker(**arguments), name, arguments)
