"""`save`: a mechanism to a file of pliant's own, JSON or arrays."""

from __future__ import annotations

import os

from pliant.errors import InputError
from pliant.files import as_path, replacing
from pliant.formats import array_file, json_file
from pliant.mechanism import Mechanism
from pliant.text import brief

__all__ = ["save"]


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a file that `pliant.load` reads back without loss.

    A name that ends in `.npz` makes an archive of arrays, which is faster for large mechanisms; any other name JSON.
    The file appears complete or not at all: it is written beside its place and then moved there.

    Raises:
        FormatError: the file cannot be written.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"save: a Mechanism expected, not {brief(mechanism)}")
    path = as_path(path)
    if path.suffix.lower() == ".npz":
        array_file.write(mechanism, path)
        return
    with replacing(path) as file:
        for piece in json_file.pieces(mechanism):
            file.write(piece.encode("ascii"))
