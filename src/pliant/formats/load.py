"""`load`: a mechanism from a file in MJCF, URDF, or pliant's own JSON or arrays."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pliant.errors import FormatError, MechanismError, RepairedWarning, UnsupportedWarning
from pliant.files import as_path, read_bytes
from pliant.formats import array_file, json_file, mjcf_input, urdf_input, xml
from pliant.formats.archive import is_archive
from pliant.formats.folders import Folders
from pliant.text import listed

if TYPE_CHECKING:
    from pliant.mechanism import Mechanism

__all__ = ["load"]

MAX_JSON_BYTES = 4_000_000_000


def load(
    path: str | os.PathLike[str],
    *,
    keyframe: str | int | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
    repair: bool = False,
) -> Mechanism:
    """Load a mechanism from MJCF, URDF or pliant's own JSON or `.npz`; the content decides, not the file's name.

    MJCF and URDF go through MuJoCo's compiler. Position servos become stiffness and damping around their set
    point: zero, or the keyframe's controls. What cannot be represented is left out and listed in one
    `UnsupportedWarning`.

    Args:
        path: the file.
        keyframe: name or number of the MJCF keyframe to take as reference pose; by default the model's own pose.
        allow: folders outside the model's own from which it may read meshes and includes.
        repair: raise moments of inertia that are too small for any solid, in the links of a URDF, instead of
            refusing the file; one `RepairedWarning` names the links. (MJCF has `<compiler balanceinertia>`.)

    Raises:
        FormatError: the file is broken; the message names file and line where they are known.
        UnsafePathError: it refers to a file outside its folder and outside `allow`.
        MechanismError: what it describes is not a sound mechanism.

    Example:
        >>> hand = pliant.load("right_hand.xml", keyframe="grasp")  # doctest: +SKIP
    """
    path = as_path(path)
    if is_archive(path):
        if keyframe is not None:
            raise FormatError(f"'{path}': a pliant file has no keyframes")
        return array_file.read(path)
    data = read_bytes(path, MAX_JSON_BYTES)
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"{":
        if keyframe is not None:
            raise FormatError(f"'{path}': a pliant file has no keyframes")
        return json_file.read(data, path)
    if not head:
        raise FormatError(f"'{path}' is empty")
    root = xml.parse(data, path)
    del data
    source = mjcf_input.Source(Folders(path, allow))
    if root.tag == "mujoco":
        mjcf_input.prepare(root, path, source)
    elif root.tag == "robot":
        urdf_input.prepare(root, path, source)
        repaired = urdf_input.repair_links(root) if repair else []
        if repaired:
            warnings.warn(
                f"'{path}': raised the moments of inertia of {len(repaired)} links: {listed(repaired, 8)}",
                RepairedWarning,
                stacklevel=2,
            )
    elif root.tag == "mujocoinclude":
        raise FormatError(f"'{path}' is a fragment for other MJCF files to include, not a model of its own")
    else:
        raise FormatError(
            f"'{path}' is neither MJCF (<mujoco>) nor URDF (<robot>): its root element is <{root.tag}>"
        )
    return _compiled(path, source, keyframe)


def _compiled(path: Path, source: mjcf_input.Source, keyframe: str | int | None) -> Mechanism:
    from pliant.formats.compiler import compile_tree
    from pliant.formats.from_mujoco import convert

    while True:
        try:
            model = compile_tree(source.root, source.assets, path, lines=not source.models)
            break
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
    if len(model["body_mass"]) < 2:
        raise FormatError(
            f"'{path}' describes no body that could move: it may be a fragment for other files to include"
        )
    report = Counter(source.dropped)
    try:
        # Absurd numbers overflow here, and are refused by the mechanism's own checks.
        with np.errstate(all="ignore"):
            mechanism = convert(model, path.stem, keyframe, source.joint_names, report)
    except MechanismError as error:
        raise type(error)(f"'{path}': {error}") from None
    left_out = [f"{count} x {what}" for what, count in sorted(report.items()) if count]
    if left_out:
        warnings.warn(
            f"'{path}': left out what pliant cannot represent: {'; '.join(left_out)}",
            UnsupportedWarning,
            stacklevel=3,
        )
    return mechanism
