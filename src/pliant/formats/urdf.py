"""A URDF tree made ready for MuJoCo's compiler, which knows neither packages nor most mesh formats."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pliant.errors import FormatError, UnsafePathError
from pliant.formats.mjcf import Source
from pliant.formats.xml_tree import Node

__all__ = ["drop_mesh", "prepare"]

_READABLE = {".stl", ".obj", ".msh"}
_FOLDERS = ("meshdir", "assetdir", "texturedir", "strippath")


def prepare(root: Node, path: Path, source: Source) -> None:
    """Make `root` ready and put it into `source`.

    Every link stays a body of its own, also a massless one that is fixed to another. Geometry in files that are
    missing or that MuJoCo cannot read is left out and counted.
    """
    for node in root.iter():
        if node.tag.startswith("xacro:") or any("${" in value or "$(" in value for value in _numbers(node)):
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
    """Put one <mujoco> element with the user's settings and ours in place of all there are; returns the mesh folder."""
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


def _numbers(node: Node) -> list[str]:
    return (
        list(node.attrib.values())
        if node.tag in ("link", "joint", "origin", "mass", "inertia", "axis", "limit")
        else []
    )


def _geometry(element: Node, base: Path, folder: str, source: Source) -> bool:
    """Read the meshes of a <visual> or <collision>; False if it has to be left out."""
    for mesh in [node for node in element.iter() if node.tag == "mesh"]:
        reference = mesh.get("filename")
        path = _find(reference, base, folder, f"{mesh.where()}: <mesh>", source)
        if path is None or not os.path.isfile(path):
            source.dropped["mesh file that was not found"] += 1
            return False
        if path.suffix.lower() not in _READABLE:
            source.dropped[f"mesh in a format MuJoCo cannot read ({path.suffix.lower() or 'no suffix'})"] += 1
            return False
        # One name per file and scale: MuJoCo takes meshes of one name for the same.
        mesh.attrib["filename"] = source.add(path, f"{mesh.where()}: '{reference}'", mesh.get("scale"))
        for key in list(mesh.attrib):
            if key not in ("filename", "scale"):
                del mesh.attrib[key]
    return True


def _find(reference: str, base: Path, folder: str, shown: str, source: Source) -> Path | None:
    """The file a mesh reference means; None if there is none."""
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
            return None  # refused or missing, nothing was read: as good as not found
        raise
    return path


def drop_mesh(source: Source, asset: str) -> int:
    """Leave out all geometry that uses a file; returns how many pieces."""
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
