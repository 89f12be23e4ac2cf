"""`load`: a mechanism from a file in MJCF, URDF, PDB, mmCIF, or pliant's own JSON or arrays."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pliant.errors import FormatError, MechanismError, PliantWarning, RepairedWarning, UnsupportedWarning
from pliant.files import as_path, read_bytes
from pliant.formats import array_file, json_file, mjcf_input, protein, urdf_input, xml
from pliant.formats.archive import is_archive
from pliant.formats.folders import Folders
from pliant.formats.left_out import LeftOut, Part
from pliant.text import counted, listed

if TYPE_CHECKING:
    from pliant.formats.compiler import CompiledModel
    from pliant.mechanism import Mechanism

__all__ = ["Loaded", "load", "read"]

MAX_JSON_BYTES = 4_000_000_000


@dataclass(frozen=True)
class Loaded:
    """Content of a model file.

    Attributes:
        mechanism: the mechanism.
        keyframes: names of the keyframes of MJCF, or their numbers where they have none.
        left_out: parts that the mechanism does not have.
    """

    mechanism: Mechanism
    keyframes: tuple[str, ...] = ()
    left_out: tuple[Part, ...] = ()


def load(
    path: str | os.PathLike[str],
    *,
    keyframe: str | int | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
    repair: bool = False,
    meshes: bool = True,
) -> Mechanism:
    """Load a mechanism from MJCF, URDF, PDB, mmCIF or pliant's own JSON or `.npz`; the content decides, not the name.

    MJCF and URDF go through MuJoCo's compiler. Position servos become stiffness and damping around their set
    point: zero, or the keyframe's controls. What cannot be represented is left out and listed in one
    `UnsupportedWarning`, which tells what it acts on. Proteins become linkages with torsions as hinges, see
    `Molecule.read`; they need the package `gemmi`, pliant[pdb].

    Args:
        path: the file.
        keyframe: name or number of the MJCF keyframe to take as reference pose; by default the model's own pose.
        allow: folders outside the model's own from which it may read meshes and includes.
        repair: raise moments of inertia that are too small for any solid, in the links of a URDF, instead of
            refusing the file; one `RepairedWarning` names the links. (MJCF has `<compiler balanceinertia>`.)
        meshes: False leaves mesh files unread, and shapes that are meshes out: they may be missing, since mechanics
            needs them only where a body has no inertia of its own.

    Raises:
        FormatError: the file is broken, or masses come from meshes that are not to be read; the message names file
            and line where they are known.
        UnsafePathError: it refers to a file outside its folder and outside `allow`.
        MechanismError: what it describes is not a sound mechanism.

    Example:
        >>> hand = pliant.load("right_hand.xml", keyframe="grasp")  # doctest: +SKIP
    """
    return read(path, keyframe=keyframe, allow=allow, repair=repair, meshes=meshes, level=3).mechanism


def read(
    path: str | os.PathLike[str],
    *,
    keyframe: str | int | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
    repair: bool = False,
    meshes: bool = True,
    level: int = 2,
) -> Loaded:
    """Content of a file; arguments and errors as of `load`, `level` that of the warnings."""
    path = as_path(path)
    if is_archive(path):
        if keyframe is not None:
            raise FormatError(f"'{path}': a pliant file has no keyframes")
        return Loaded(array_file.read(path))
    data = read_bytes(path, MAX_JSON_BYTES)
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"{":
        if keyframe is not None:
            raise FormatError(f"'{path}': a pliant file has no keyframes")
        return Loaded(json_file.read(data, path))
    if not head:
        raise FormatError(f"'{path}' is empty")
    if protein.is_structure(head):
        if keyframe is not None:
            raise FormatError(f"'{path}': a protein has no keyframes")
        found = protein.parse(data, path)
        protein.warn(found.left_out, path, level)
        return Loaded(found.molecule.mechanism, (), tuple(found.left_out))
    root = xml.parse(data, path)
    del data
    source = mjcf_input.Source(Folders(path, allow), meshes)
    if root.tag == "mujoco":
        mjcf_input.prepare(root, path, source)
    elif root.tag == "robot":
        urdf_input.prepare(root, path, source)
        repaired = urdf_input.repair_links(root) if repair else []
        if repaired:
            warnings.warn(
                f"'{path}': raised the moments of inertia of {counted(len(repaired), 'link')}: {listed(repaired, 8)}",
                RepairedWarning,
                stacklevel=level,
            )
        turns = urdf_input.many_turns(root)
        if turns:
            warnings.warn(
                f"'{path}': limits of {listed(turns, 8)} are beyond two turns; limits in URDF are radians: "
                "were degrees meant?",
                PliantWarning,
                stacklevel=level,
            )
    elif root.tag == "mujocoinclude":
        raise FormatError(f"'{path}' is a fragment for other MJCF files to include, not a model of its own")
    else:
        raise FormatError(
            f"'{path}' is neither MJCF (<mujoco>) nor URDF (<robot>): its root element is <{root.tag}>"
        )
    return _convert(path, source, keyframe, level + 1)


def _convert(path: Path, source: mjcf_input.Source, keyframe: str | int | None, level: int) -> Loaded:
    from pliant.formats.from_mujoco import convert, keyframes, refuse_mass_of_meshes, without_meshes

    model = _compile(path, source)
    if len(model["body_mass"]) < 2:
        raise FormatError(
            f"'{path}' describes no body that could move: it may be a fragment for other files to include"
        )
    if not source.meshes and source.assets:
        source.enlarge_placeholders()
        other = _compile(path, source)
        refuse_mass_of_meshes(model, other, path)
        model = without_meshes(model, other)
    report = LeftOut()
    for kind, count in source.dropped.items():
        report.add(kind, count)
    try:
        # Absurd numbers overflow here, and are refused by the mechanism's own checks.
        with np.errstate(all="ignore"):
            mechanism = convert(model, path.stem, keyframe, source.joint_names, report)
    except MechanismError as error:
        raise type(error)(f"'{path}': {error}") from None
    if report.warning():
        warnings.warn(
            f"'{path}': left out what pliant cannot represent: {report.warning()}",
            UnsupportedWarning,
            stacklevel=level,
        )
    return Loaded(mechanism, keyframes(model), tuple(report))


def _compile(path: Path, source: mjcf_input.Source) -> CompiledModel:
    """The compiled model, without meshes of a URDF that MuJoCo cannot read."""
    from pliant.formats.compiler import compile_tree

    while True:
        try:
            return compile_tree(source.root, source.assets, path, lines=not source.models)
        except FormatError as error:
            # In a URDF masses do not depend on meshes: leave out a mesh that MuJoCo cannot read.
            asset = next(
                (name for name in source.files if re.search(rf"\b{Path(name).stem}\b", str(error))), None
            )
            if source.root.tag == "robot" and asset is not None and urdf_input.drop_mesh(source, asset):
                continue
            message = str(error)
            for name, file in source.files.items():
                message = message.replace(name, str(file))
            raise FormatError(message) from None
