"""Blended models in files: the same archives as those of single models, with all models and their mechanism inside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.file import (
    describe,
    numbers,
    packed,
    read_about,
    read_arrays,
    require,
    restore,
    write,
)
from pliant.engines.reduced.file import load as load_single
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.polynomial import JointPolynomial, monomials
from pliant.errors import FormatError, InputError
from pliant.files import as_path
from pliant.formats.json_file import read

__all__ = ["FORMAT", "VERSION", "load", "load_model", "save"]

FORMAT, VERSION = "pliant-blended-model", 1
_HINT = "holds no blended model: `BlendedModel.save` writes such files"


def save(model: BlendedModel, path: str | os.PathLike[str]) -> None:
    """Write a blend; the file appears complete or not at all. A mechanism that models share is written once."""
    mechanisms: list[bytes] = []
    models, arrays = [], dict[str, NDArray[Any]]()
    for i, one in enumerate(model.models):
        text = packed(one.mechanism).tobytes()
        if text not in mechanisms:
            arrays[f"mechanism{len(mechanisms)}"] = np.frombuffer(text, dtype=np.uint8)
            mechanisms.append(text)
        models.append({**describe(one), "mechanism": mechanisms.index(text)})
        arrays |= {f"model{i}.{name}": array for name, array in numbers(one).items()}
    about: dict[str, Any] = {"format": FORMAT, "version": VERSION, "models": models, "residual": None}
    about |= {word: getattr(model, word) for word in ("exponent", "distance", "matrices")}
    if model.polynomial is not None:
        about["residual"] = model.polynomial.residual
        arrays |= {
            f"polynomial.{word}": getattr(model.polynomial, word)
            for word in ("slope", "directions", "coefficients")
        }
    write(path, about, arrays)


def load(path: str | os.PathLike[str]) -> BlendedModel:
    """Read a blend that `save` wrote; see `BlendedModel.load`."""
    path = as_path(path)
    return _restored(read_arrays(path), path)


def load_model(path: str | os.PathLike[str]) -> ReducedModel | BlendedModel:
    """Read whatever model there is in a file, a single or a blended one.

    Raises:
        FormatError: the file holds no model, is damaged, or is of a newer version.
    """
    path = as_path(path)
    arrays = read_arrays(path)
    if FORMAT.encode() in arrays.get("about", np.zeros(0, dtype=np.uint8)).tobytes():
        return _restored(arrays, path)
    return load_single(path)


def _restored(arrays: dict[str, NDArray[Any]], path: Path) -> BlendedModel:
    about = read_about(arrays, path, FORMAT, VERSION, _HINT)
    models = about.get("models")
    if not isinstance(models, list) or not all(isinstance(one, dict) for one in models):
        raise FormatError(f"'{path}': models: a list expected")
    mechanisms: dict[Any, Any] = {}
    found = []
    for i, one in enumerate(models):
        number = one.get("mechanism")
        if not isinstance(number, int) or not 0 <= number < len(models):
            raise FormatError(f"'{path}': model {i}: the number of a mechanism expected, not {number!r:.80}")
        if number not in mechanisms:
            require(arrays, (f"mechanism{number}",), path)
            mechanisms[number] = read(arrays[f"mechanism{number}"].tobytes(), path)
        start = f"model{i}."
        own = {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
        found.append(restore(one, own, mechanisms[number], path))
    try:
        words = {word: about.get(word) for word in ("exponent", "distance", "matrices")}
        return BlendedModel(found, polynomial=_polynomial(about, arrays, found, path), **words)  # type: ignore[arg-type]
    except InputError as error:
        raise FormatError(f"'{path}': {error}") from None


def _polynomial(
    about: dict[str, Any], arrays: dict[str, NDArray[Any]], models: list[ReducedModel], path: Path
) -> JointPolynomial | None:
    residual = about.get("residual")
    if residual is None or not models:
        return None
    if not isinstance(residual, float) or not 0 <= residual < np.inf:
        raise FormatError(f"'{path}': residual: a number expected, not {residual!r:.80}")
    names = ("slope", "directions", "coefficients")
    require(arrays, [f"polynomial.{name}" for name in names], path)
    slope, directions, coefficients = (arrays[f"polynomial.{name}"] for name in names)
    nv, size = models[0].joint_map.shape
    rank = len(directions)
    fits = rank <= size and slope.shape == (nv, size) and directions.shape == (rank, size)
    if not fits or coefficients.shape != (len(monomials(rank)), nv):
        raise FormatError(f"'{path}': the arrays of the polynomial have shapes that do not fit its models")
    return JointPolynomial(slope, directions, coefficients, residual)
