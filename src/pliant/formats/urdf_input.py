"""URDF input: a tree with packages resolved and meshes read, ready for MuJoCo's compiler; repair of inertias."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FormatError, UnsafePathError
from pliant.formats.mjcf_input import Source
from pliant.formats.xml import Node

__all__ = ["drop_mesh", "many_turns", "prepare", "repair_links"]

_READABLE = {".stl", ".obj", ".msh"}
_FOLDERS = ("meshdir", "assetdir", "texturedir", "strippath")
_ENTRIES = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
_TWO_TURNS, _NO_LIMIT = 4 * np.pi, 1e4  # rad
_SMALLEST = 1e-13  # kg m²; MuJoCo refuses less than some 1e-15
_SMALLEST_RADIUS = 1e-3  # of gyration, m, at least


def prepare(root: Node, path: Path, source: Source) -> None:
    """Make `root` ready and put it into `source`.

    Every link stays a body of its own, also a massless one that is fixed to another. Geometry in files that are
    missing or that MuJoCo cannot read is left out and counted.
    """
    for node in root.iter():
        if node.tag.startswith("xacro:") or any(
            "${" in value or "$(" in value for value in _numeric_attributes(node)
        ):
            raise FormatError(
                f"{node.where()}: this is a xacro file; expand it first: xacro {path.name} > model.urdf"
            )
    base = source.folders.model.parent
    folder = _settings(root, path)
    for node in root.children:
        if node.tag == "link":
            node.children = [
                child
                for child in node.children
                if child.tag not in ("visual", "collision") or _geometry(child, base, folder, source)
            ]
        elif node.tag == "joint" and node.get("type") == "fixed":
            for child in node.find("child"):
                source.joint_names[child.get("link")] = node.get("name")
    for node in root.iter():
        node.children = [child for child in node.children if child.tag != "texture"]
        if node.tag != "mesh" and "filename" in node.attrib:
            del node.attrib["filename"]
    source.root = root


def _settings(root: Node, path: Path) -> str:
    """Merge all <mujoco> elements and our own settings into one; returns the mesh folder."""
    compiler: dict[str, str] = {}
    options: list[Node] = []
    for node in [child for extension in root.find("mujoco") for child in extension.children]:
        if node.tag == "compiler":
            compiler.update(node.attrib)
        elif node.tag == "option":
            options.append(node)
    folder = compiler.get("meshdir", compiler.get("assetdir", ""))
    for key in _FOLDERS:
        compiler.pop(key, None)
    compiler |= {"fusestatic": "false", "discardvisual": "false", "strippath": "false"}
    root.children = [node for node in root.children if node.tag in ("link", "joint", "material")]
    root.children.insert(
        0, Node("mujoco", children=[Node("compiler", compiler, file=path), *options], file=path)
    )
    return folder.replace("\\", "/")


def _numeric_attributes(node: Node) -> list[str]:
    return (
        list(node.attrib.values())
        if node.tag in ("link", "joint", "origin", "mass", "inertia", "axis", "limit")
        else []
    )


def _geometry(element: Node, base: Path, folder: str, source: Source) -> bool:
    """Read the meshes of a <visual> or <collision>; False if it has to be left out."""
    for mesh in [node for node in element.iter() if node.tag == "mesh"]:
        reference = mesh.get("filename")
        if not source.meshes:
            mesh.attrib["filename"] = source.stand_in(reference, mesh.get("scale"))
            _keep_scale(mesh)
            continue
        path = _find(reference, base, folder, f"{mesh.where()}: <mesh>", source)
        if path is None or not os.path.isfile(path):
            source.dropped["mesh file that was not found"] += 1
            return False
        if path.suffix.lower() not in _READABLE:
            source.dropped[f"mesh in a format MuJoCo cannot read ({path.suffix.lower() or 'no suffix'})"] += 1
            return False
        # One name per file and scale: MuJoCo takes meshes of one name for the same.
        mesh.attrib["filename"] = source.add(path, f"{mesh.where()}: '{reference}'", mesh.get("scale"))
        _keep_scale(mesh)
    return True


def _keep_scale(mesh: Node) -> None:
    """Remove all attributes but file name and scale."""
    for key in list(mesh.attrib):
        if key not in ("filename", "scale"):
            del mesh.attrib[key]


def _find(reference: str, base: Path, folder: str, shown: str, source: Source) -> Path | None:
    """The file behind a mesh reference; None if there is none."""
    scheme, separator, rest = reference.partition("://")
    if separator and scheme in ("package", "model"):
        return source.folders.package(rest, shown)
    if separator and scheme != "file":
        raise UnsafePathError(
            f"{shown}: '{reference}' is not a file; only package:// and file:// are followed"
        )
    name = unquote(rest) if separator else reference
    if not name.strip():
        return None
    name = str(PurePosixPath(name.replace("\\", "/")))
    try:
        path = source.folders.resolve(name, base / folder, shown)
        if folder and not os.path.isfile(path):
            path = source.folders.resolve(name, base, shown)
    except UnsafePathError:
        if "\0" in name or not os.path.exists(base / folder / name):
            return None  # missing: reported as not found
        raise
    return path


def drop_mesh(source: Source, asset: str) -> int:
    """Remove all geometry that uses a file; returns its number of elements."""
    count = 0
    for link in source.root.find("link"):
        kept = [
            child
            for child in link.children
            if not any(node.tag == "mesh" and node.get("filename") == asset for node in child.iter())
        ]
        count += len(link.children) - len(kept)
        link.children = kept
    source.dropped["mesh that MuJoCo cannot read"] += count
    return count


# --- limits in degrees


def many_turns(root: Node) -> list[str]:
    """Names of the revolute joints with a limit beyond two turns either way; huge ones stand for none."""
    return [
        joint.get("name")
        for joint in root.find("joint")
        if joint.get("type") == "revolute"
        and any(
            _TWO_TURNS < abs(_number(limit, side) or 0.0) < _NO_LIMIT
            for limit in joint.find("limit")
            for side in ("lower", "upper")
        )
    ]


# --- inertias that no solid has


def repair_links(root: Node) -> list[str]:
    """Raise principal moments of links that no solid can have; returns the names of the links changed.

    A frame without mass loses its inertia. Otherwise principal moments are raised, never lowered: to those of a
    body of a millimetre's radius of gyration, and until no moment exceeds the sum of the others.
    """
    changed = []
    for link in root.find("link"):
        for inertial in link.find("inertial"):
            mass = _number(next(iter(inertial.find("mass")), Node("mass")), "value")
            entries = next(iter(inertial.find("inertia")), None)
            if mass is None or entries is None:
                continue
            if mass == 0:
                link.children.remove(inertial)
                continue
            given = _matrix(entries)
            if given is None or mass < 0:
                continue  # the compiler says what is wrong
            repaired = _physical(given, mass)
            if repaired is not None:
                entries.attrib.update({key: repr(float(repaired[at])) for key, at in _ENTRIES.items()})
                changed.append(link.get("name"))
    return changed


def _number(node: Node, key: str) -> float | None:
    try:
        value = float(node.get(key, "0"))
    except ValueError:
        return None
    return value if np.isfinite(value) and abs(value) < 1e100 else None


def _matrix(entries: Node) -> NDArray[np.float64] | None:
    out = np.zeros((3, 3))
    for key, (i, j) in _ENTRIES.items():
        value = _number(entries, key)
        if value is None:
            return None
        out[i, j] = out[j, i] = value
    return out


def _physical(matrix: NDArray[np.float64], mass: float) -> NDArray[np.float64] | None:
    """The inertia with raised moments; None if it is sound."""
    moments, axes = np.linalg.eigh(matrix)
    least = max(mass * _SMALLEST_RADIUS**2, 10 * _SMALLEST)
    excess = moments[2] - moments[0] - moments[1]
    if moments[0] > 1e-9 * moments[2] and moments[0] > _SMALLEST and excess <= 1e-9 * moments[2]:
        return None
    raised = np.maximum(moments, least)
    lacking = raised[2] - raised[0] - raised[1]
    if lacking > 0:
        raised[:2] += 0.500001 * lacking  # a little more than needed: the file's digits are not exact either
    return axes @ np.diag(raised) @ axes.T
