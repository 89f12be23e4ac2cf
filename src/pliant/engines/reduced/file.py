"""Reduced models in files: `.npz` without pickle, the mechanism inside, nothing trusted on the way back."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.condensation import INERTIAS
from pliant.engines.reduced.model import FreeBase, ReducedModel
from pliant.errors import FormatError, MechanismError
from pliant.files import as_path, read_bytes, replacing
from pliant.formats.json_file import check_version, pieces, read
from pliant.mechanism import Mechanism

__all__ = [
    "FORMAT",
    "VERSION",
    "describe",
    "load",
    "numbers",
    "packed",
    "read_about",
    "read_arrays",
    "require",
    "restore",
    "save",
    "write",
]

FORMAT, VERSION = "pliant-reduced-model", 1
_LIMIT = 4_000_000_000  # bytes
_ARRAYS = (
    "q",
    "compliance",
    "wrench",
    "load_stiffness",
    "joint_map",
    "multipliers",
    "directions",
    "basis",
    "reduced_stiffness",
    "reduced_mass",
    "reduced_damping",
)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def save(model: ReducedModel, path: str | os.PathLike[str]) -> None:
    """Write a model; the file appears complete or not at all."""
    about = {"format": FORMAT, "version": VERSION, **describe(model)}
    write(path, about, {**numbers(model), "mechanism": packed(model.mechanism)})


def load(path: str | os.PathLike[str]) -> ReducedModel:
    """Read a model that `save` wrote; see `ReducedModel.load`."""
    path = as_path(path)
    arrays = read_arrays(path)
    hint = (
        "holds no reduced model: `ReducedModel.save` writes such files, and `BlendedModel.load` reads blends"
    )
    about = read_about(arrays, path, FORMAT, VERSION, hint)
    require(arrays, ("mechanism",), path)
    return restore(about, arrays, read(arrays["mechanism"].tobytes(), path), path)


def describe(model: ReducedModel) -> dict[str, Any]:
    """What a model is besides numbers."""
    return {
        "end_effectors": model.end_effectors,
        "projection": model.projection,
        "inertia": model.inertia,
        "base": model.base and model.base.body,
        "length": model.length,
        "limits": model.limits,
    }


def numbers(model: ReducedModel) -> dict[str, NDArray[Any]]:
    """The arrays of a model."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(model, name) for name in _ARRAYS}
    if model.base is not None:
        arrays |= {"base_inertia": model.base.inertia, "base_mechanism": packed(model.base.mechanism)}
    return arrays


def restore(
    about: dict[str, Any], arrays: dict[str, NDArray[Any]], mechanism: Mechanism, path: Path
) -> ReducedModel:
    """The model of a mechanism that has this description and these arrays.

    Raises:
        FormatError: they do not belong together, or are none of a model.
    """
    _check_about(about, path)
    base = None
    carrier = about["base"]
    require(arrays, (*_ARRAYS, *(["base_inertia", "base_mechanism"] if carrier is not None else [])), path)
    effectors = about["end_effectors"]
    try:
        for body in (*effectors, *([] if carrier is None else [carrier])):
            if mechanism.body_index(body) < 0:
                raise FormatError(f"'{path}': the world is no end effector")
    except MechanismError as error:
        raise FormatError(f"'{path}': {error}") from None
    _check_shapes(arrays, path, mechanism.nq, mechanism.nv, len(effectors))
    if carrier is not None:
        whole = read(arrays["base_mechanism"].tobytes(), path)
        names = (mechanism.body_names, mechanism.joint_names)
        if (whole.body_names, whole.joint_names) != names or whole.nv != mechanism.nv + 6:
            raise FormatError(f"'{path}': 'base_mechanism' is another mechanism: the file is damaged")
        base = FreeBase(carrier, arrays["base_inertia"], whole)
    model = ReducedModel(
        mechanism=mechanism,
        end_effectors=tuple(effectors),
        base=base,
        projection=about["projection"],
        inertia=about["inertia"],
        length=about["length"],
        limits=about["limits"],
        **{name: arrays[name] for name in _ARRAYS},
    )
    for name, matrix in (("reduced_mass", model.reduced_mass), ("base_inertia", base and base.inertia)):
        if matrix is not None and np.linalg.eigvalsh((matrix + matrix.T) / 2).min(initial=1.0) <= 0:
            raise FormatError(f"'{path}': '{name}' is not positive definite: no inertia is")
    return model


# --- archives


def packed(mechanism: Mechanism) -> NDArray[np.uint8]:
    """A mechanism as an array of bytes."""
    return np.frombuffer("".join(pieces(mechanism)).encode(), dtype=np.uint8)


def write(path: str | os.PathLike[str], about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays, and what they are, as `.npz`; the file appears complete or not at all."""
    said = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    with replacing(as_path(path)) as file:
        np.savez(file, allow_pickle=False, **arrays, about=said)


def require(arrays: dict[str, NDArray[Any]], names: Iterable[str], path: Path) -> None:
    """Refuse a file in which arrays are missing."""
    for name in sorted(set(names) - arrays.keys()):
        raise FormatError(f"'{path}': array '{name}' is missing: the file is damaged")


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` file: only numbers, none larger than the file, all finite."""
    data = read_bytes(path, _LIMIT)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise FormatError(f"'{path}' is packed in a way pliant does not write")
            contents = {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"'{path}' is no model file, or is damaged: {error}") from None
    return {
        name.removesuffix(".npy"): _array(content, f"'{path}': {name}") for name, content in contents.items()
    }


def _array(content: bytes, where: str) -> NDArray[Any]:
    stream = io.BytesIO(content)
    try:
        header = _HEADERS[np.lib.format.read_magic(stream)]
        shape, fortran, dtype = header(stream)
    except (ValueError, KeyError, EOFError, SyntaxError, TypeError) as error:
        raise FormatError(f"{where}: not an array, or damaged: {error}") from None
    rest = content[stream.tell() :]
    count = 1
    for size in shape:
        count *= int(size)
    if dtype not in (np.dtype("<f8"), np.dtype("u1")) or count < 0 or count * dtype.itemsize != len(rest):
        raise FormatError(f"{where}: damaged, or of a kind no model has")
    array = np.frombuffer(rest, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy()
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise FormatError(f"{where}: not all numbers are finite")
    return array


def read_about(
    arrays: dict[str, NDArray[Any]], path: Path, format: str, newest: int, hint: str
) -> dict[str, Any]:
    """What a file says of itself.

    Raises:
        FormatError: it is of another format (then with the hint), or of a newer version.
    """
    try:
        about = json.loads(arrays["about"].tobytes())
        if about["format"] != format:
            raise KeyError("format")
    except (KeyError, ValueError, TypeError, RecursionError):
        raise FormatError(f"'{path}' {hint}") from None
    check_version(about.get("version"), newest, path)
    return about


def _check_about(about: dict[str, Any], path: Path) -> None:
    names: Any = about.get("end_effectors")
    strings = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    if not strings or len(set(names)) != len(names):
        raise FormatError(f"'{path}': end_effectors: a list of names expected")
    if about.get("projection") not in ("exact", "recursive") or about.get("inertia") not in INERTIAS:
        raise FormatError(f"'{path}': unknown projection or inertia")
    if not isinstance(about.get("length"), float) or not 0 < about["length"] < np.inf:
        raise FormatError(f"'{path}': length: a number above 0 expected")
    if "base" not in about or not isinstance(about["base"], str | None):
        raise FormatError(f"'{path}': base: a name or null expected")
    if not isinstance(about.setdefault("limits", False), bool):  # files from before limits have no such word
        raise FormatError(f"'{path}': limits: true or false expected")


def _check_shapes(arrays: dict[str, NDArray[Any]], path: Path, nq: int, nv: int, effectors: int) -> None:
    size = 6 * effectors
    basis = arrays["basis"]
    n = basis.shape[1] if basis.ndim == 2 else 0
    rank = arrays["directions"].shape[1] if arrays["directions"].ndim == 2 else 0
    rows = len(arrays["multipliers"]) if arrays["multipliers"].ndim == 2 else 0
    shapes = {
        "q": (nq,),
        "compliance": (size, size),
        "wrench": (size,),
        "load_stiffness": (size, size),
        "joint_map": (nv, size),
        "multipliers": (rows, size),
        "directions": (size, rank),
        "basis": (nv, n),
        **{f"reduced_{name}": (n, n) for name in ("stiffness", "mass", "damping")},
        "base_inertia": (6, 6),
    }
    for name, shape in shapes.items():
        if name in arrays and (arrays[name].shape != shape or arrays[name].dtype != np.float64):
            raise FormatError(f"'{path}': '{name}' has the shape {arrays[name].shape}, {shape} expected")
    if not 0 < rank <= n:
        raise FormatError(f"'{path}': a model has at least one direction, and a column of 'basis' for each")
