"""Files of reduced and blended models: archives of arrays with the mechanism inside, checked in full when read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant.checks import number, vector, whole
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.condensation import INERTIAS
from pliant.engines.reduced.model import FreeBase, ReducedModel
from pliant.errors import FormatError, InputError, MechanismError
from pliant.files import as_path
from pliant.formats.archive import Arrays, mechanism_bytes, read_archive, require, write_archive
from pliant.formats.json_file import read
from pliant.mechanism import Mechanism
from pliant.statics.loads import Load, parse_wrenches
from pliant.text import brief

__all__ = ["load_blend", "load_model", "load_single", "save_model"]

_SINGLE, _BLEND = {"pliant-reduced-model": 2}, {"pliant-blended-model": 1}  # format: newest version
_NO_MODEL = (
    "holds no reduced model: `ReducedModel.save` writes such files, and `BlendedModel.load` reads blends"
)
_NO_BLEND = "holds no blended model: `BlendedModel.save` writes such files"
_MATRICES = ("reduced_stiffness", "reduced_mass", "reduced_damping")
_ARRAYS = (
    "q",
    "compliance",
    "wrench",
    "load_stiffness",
    "joint_map",
    "multipliers",
    "directions",
    "basis",
    *_MATRICES,
)
_LARGEST = 1e60  # number of an array: squares and products of a few stay finite
_WEIGHTS = ("exponent", "distance", "matrices")


# --- out


def save_model(model: ReducedModel | BlendedModel, path: str | os.PathLike[str]) -> None:
    """Write a model; the file appears complete or not at all. A mechanism that models of a blend share is written once.

    Raises:
        FormatError: it cannot be written.
    """
    if isinstance(model, ReducedModel):
        about = {**_header(_SINGLE), **_description(model)}
        write_archive(path, about, {**_arrays(model), "mechanism": mechanism_bytes(model.mechanism)})
        return
    mechanisms: list[bytes] = []
    models, arrays = [], Arrays()
    for i, one in enumerate(model.models):
        text = mechanism_bytes(one.mechanism)
        if text.tobytes() not in mechanisms:
            arrays[f"mechanism{len(mechanisms)}"] = text
            mechanisms.append(text.tobytes())
        models.append({**_description(one), "mechanism": mechanisms.index(text.tobytes())})
        arrays |= {f"model{i}.{name}": array for name, array in _arrays(one).items()}
    about = {**_header(_BLEND), "models": models}
    about |= {word: getattr(model, word) for word in _WEIGHTS}
    write_archive(path, about, arrays)


def _header(versions: dict[str, int]) -> dict[str, Any]:
    ((name, version),) = versions.items()
    return {"format": name, "version": version}


def _description(model: ReducedModel) -> dict[str, Any]:
    """Names, words and single numbers of a model."""
    return {
        "end_effectors": model.end_effectors,
        "projection": model.projection,
        "inertia": model.inertia,
        "base": model.base and model.base.body,
        "length": model.length,
        "limits": model.limits,
        "gravity": model.gravity,
        "wrenches": None if model.wrenches is None else _wrench_words(model.wrenches),
        "vectors": model.vectors,
        "reach": _finite(model.reach),
        "tolerance": _finite(model.tolerance),
        "samples": model.samples,
        "failures": model.failures,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _wrench_words(wrenches: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Words of every wrench, as `pliant.equilibrium` takes them."""
    loads = {body: Load.parse(value, body) for body, value in wrenches.items()}
    return {
        body: {word: list(getattr(load, word)) for word in ("force", "torque", "point")}
        | {"frame": load.frame}
        for body, load in loads.items()
    }


def _arrays(model: ReducedModel) -> Arrays:
    arrays: Arrays = {name: getattr(model, name) for name in _ARRAYS}
    if model.base is not None:
        arrays |= {
            "base_inertia": model.base.inertia,
            "base_mechanism": mechanism_bytes(model.base.mechanism),
        }
    return arrays


# --- in: files are not trusted


def load_single(path: str | os.PathLike[str]) -> ReducedModel:
    """Reduced model from a file; see `ReducedModel.load`."""
    path = as_path(path)
    return _restore_single(*read_archive(path, _SINGLE, _NO_MODEL), path)


def load_blend(path: str | os.PathLike[str]) -> BlendedModel:
    """Blended model from a file; see `BlendedModel.load`."""
    path = as_path(path)
    return _restore_blend(*read_archive(path, _BLEND, _NO_BLEND), path)


def load_model(path: str | os.PathLike[str]) -> ReducedModel | BlendedModel:
    """Reduced or blended model from a file, whichever it holds.

    Raises:
        FormatError: the file holds no model, is damaged, or is of a newer version.
    """
    path = as_path(path)
    about, arrays = read_archive(path, _SINGLE | _BLEND, _NO_MODEL)
    return (_restore_blend if about["format"] in _BLEND else _restore_single)(about, arrays, path)


def _restore_single(about: dict[str, Any], arrays: Arrays, path: Path) -> ReducedModel:
    require(arrays, ("mechanism",), path)
    return _restore(about, arrays, read(arrays["mechanism"].tobytes(), path), path)


def _restore_blend(about: dict[str, Any], arrays: Arrays, path: Path) -> BlendedModel:
    models = about.get("models")
    if not isinstance(models, list) or not all(isinstance(one, dict) for one in models):
        raise FormatError(f"'{path}': models: a list expected")
    mechanisms: dict[int, Mechanism] = {}
    found = []
    for i, one in enumerate(models):
        number = one.get("mechanism")
        if not isinstance(number, int) or not 0 <= number < len(models):
            raise FormatError(f"'{path}': model {i}: the number of a mechanism expected, not {brief(number)}")
        if number not in mechanisms:
            require(arrays, (f"mechanism{number}",), path)
            mechanisms[number] = read(arrays[f"mechanism{number}"].tobytes(), path)
        start = f"model{i}."
        own = {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
        found.append(_restore(one, own, mechanisms[number], path))
    try:
        words: dict[str, Any] = {word: about.get(word) for word in _WEIGHTS}
        return BlendedModel(found, **words)  # polynomials of older files are left out: their models span more
    except InputError as error:
        raise FormatError(f"'{path}': {error}") from None


def _restore(about: dict[str, Any], arrays: Arrays, mechanism: Mechanism, path: Path) -> ReducedModel:
    """One model from its description and arrays.

    Raises:
        FormatError: they do not fit each other or the mechanism.
    """
    _check_description(about, path)
    carrier, effectors = about["base"], about["end_effectors"]
    require(arrays, (*_ARRAYS, *(["base_inertia", "base_mechanism"] if carrier is not None else [])), path)
    try:
        for body in (*effectors, *([] if carrier is None else [carrier])):
            if mechanism.body_index(body) < 0:
                raise FormatError(f"'{path}': the world is no end effector")
    except MechanismError as error:
        raise FormatError(f"'{path}': {error}") from None
    _check_shapes(arrays, path, mechanism.nq, mechanism.nv, len(effectors))
    base = None
    if carrier is not None:
        free = read(arrays["base_mechanism"].tobytes(), path)
        names = (mechanism.body_names, mechanism.joint_names)
        if (free.body_names, free.joint_names) != names or free.nv != mechanism.nv + 6:
            raise FormatError(f"'{path}': 'base_mechanism' is another mechanism: the file is damaged")
        base = FreeBase(carrier, arrays["base_inertia"], free)
    words: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    words |= _restore_loads(about, mechanism, path) | _restore_reach(about, arrays, path)
    model = ReducedModel(
        mechanism=mechanism,
        end_effectors=tuple(effectors),
        base=base,
        projection=about["projection"],
        inertia=about["inertia"],
        length=about["length"],
        limits=about["limits"],
        **words,
    )
    for name, matrix in (("reduced_mass", model.reduced_mass), ("base_inertia", base and base.inertia)):
        if matrix is not None and np.linalg.eigvalsh((matrix + matrix.T) / 2).min(initial=1.0) <= 0:
            raise FormatError(f"'{path}': '{name}' is not positive definite: no inertia is")
    return model


def _restore_loads(about: dict[str, Any], m: Mechanism, path: Path) -> dict[str, Any]:
    """Gravity and wrenches at the configuration; None for wrenches in older files, which do not tell."""
    gravity, wrenches = about.get("gravity"), about.get("wrenches")
    try:
        if gravity is not None:
            gravity = tuple(vector(gravity, "gravity").tolist())
        if wrenches is not None:
            if not isinstance(wrenches, dict):
                raise InputError("wrenches: a mapping {body: wrench} expected")
            wrenches = {m.body_names[body]: load for body, load in parse_wrenches(m, wrenches).items()}
    except (InputError, MechanismError) as error:
        raise FormatError(f"'{path}': {error}") from None
    return {"gravity": gravity, "wrenches": wrenches}


def _restore_reach(about: dict[str, Any], arrays: Arrays, path: Path) -> dict[str, Any]:
    """Reach, and what it took; older files have none."""
    try:
        most = arrays["basis"].shape[1] - arrays["directions"].shape[1]
        out: dict[str, Any] = {"vectors": whole(about.get("vectors", 0), "vectors", 0, most)}
        out |= {word: whole(about.get(word, 0), word) for word in ("samples", "failures")}
        for word in ("reach", "tolerance"):
            value = about.get(word)
            out[word] = float("nan") if value is None else number(value, word, least=0.0)
    except InputError as error:
        raise FormatError(f"'{path}': {error}") from None
    return out


def _check_description(about: dict[str, Any], path: Path) -> None:
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
    if not isinstance(about.setdefault("limits", False), bool):  # older files do not say
        raise FormatError(f"'{path}': limits: true or false expected")


def _check_shapes(arrays: Arrays, path: Path, nq: int, nv: int, effectors: int) -> None:
    def second(name: str) -> int:
        return arrays[name].shape[1] if arrays[name].ndim == 2 else 0

    size, n, rank = 6 * effectors, second("basis"), second("directions")
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
        **dict.fromkeys(_MATRICES, (n, n)),
        "base_inertia": (6, 6),
    }
    for name, shape in shapes.items():
        if name in arrays and (arrays[name].shape != shape or arrays[name].dtype != np.float64):
            raise FormatError(f"'{path}': '{name}' has the shape {arrays[name].shape}, {shape} expected")
    for name, array in arrays.items():
        if name in shapes and np.abs(array).max(initial=0.0) > _LARGEST:
            raise FormatError(f"'{path}': '{name}' has numbers beyond {_LARGEST:g}: the file is damaged")
    if not 0 < rank <= n:
        raise FormatError(f"'{path}': a model has at least one direction, and a column of 'basis' for each")
