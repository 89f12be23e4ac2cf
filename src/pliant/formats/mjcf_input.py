"""MJCF input: a tree with includes resolved and files read, ready for MuJoCo's compiler.

Elements without a counterpart in a mechanism (sensors, textures, skins, flexes, plugins, size hints) are removed; those
that matter to motion are counted, for a warning.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from pliant.errors import FormatError
from pliant.files import read_bytes
from pliant.formats import xml
from pliant.formats.folders import Folders
from pliant.formats.xml import Node

__all__ = ["Source", "prepare"]

MAX_ASSET_BYTES = 1_000_000_000
MAX_EXPANDED = 50_000  # elements after <replicate> and <attach>
MAX_MESH_PARAMETER = 500  # resolution of a built-in mesh
_MAX_NESTED = 20  # includes in includes, models in models
# Sections that say nothing about the mechanism. `size` would let a file reserve any amount of memory.
_UNUSED = {"size", "visual", "statistic", "custom", "sensor", "contact", "extension"}
_SIGHT = {"camera", "light", "texture", "layer"}
_NUMBERS = {  # attributes that hold numbers of the mechanics
    *(
        "mass",
        "density",
        "pos",
        "quat",
        "axisangle",
        "euler",
        "xyaxes",
        "zaxis",
        "fromto",
        "size",
        "diaginertia",
    ),
    *("fullinertia", "axis", "stiffness", "damping", "armature", "range", "ref", "springref", "springdamper"),
    *(
        "frictionloss",
        "springlength",
        "kp",
        "kv",
        "gear",
        "gainprm",
        "biasprm",
        "ctrlrange",
        "coef",
        "polycoef",
    ),
    *("anchor", "relpose", "gravity", "qpos", "ctrl", "act", "timeconst", "dampratio"),
}
_FOLDERS = ("assetdir", "meshdir", "texturedir", "strippath")
_TETRAHEDRON = np.array([[[0, 0, 0], [0, 1, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 0, 1]],
                         [[0, 0, 0], [0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]], np.float32)  # fmt: skip
_LARGER = 1.5  # placeholders beside the first ones


@dataclass(eq=False)
class Source:
    """A model ready for the compiler.

    Attributes:
        folders: those it may read from.
        meshes: whether mesh files are read; else placeholders stand for them.
        root: the tree; its file references are keys of `assets`.
        assets: the files.
        dropped: counts of removed elements, by kind.
        joint_names: names for joints the compiler does not name, by child body (URDF's fixed joints).
        models: how many other models are attached to it.
        files: paths of the assets, for messages.
    """

    folders: Folders
    meshes: bool = True
    root: Node = field(default_factory=lambda: Node(""))
    assets: dict[str, bytes] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    joint_names: dict[str, str] = field(default_factory=dict)
    models: int = 0
    files: dict[str, Path] = field(default_factory=dict)
    _known: dict[tuple[Path, str], str] = field(default_factory=dict)
    _stand_in: list[str] = field(default_factory=list)

    def enlarge_placeholders(self) -> None:
        """Put larger placeholders in place of those that stand for meshes."""
        self.assets.update({name: _placeholder(_LARGER) for name in self._stand_in})

    def stand_in(self, reference: str, variant: str = "") -> str:
        """Name of a placeholder for a mesh file that is not read."""
        key = (Path(reference), variant)
        if key not in self._known:
            self._known[key] = name = f"asset{len(self.assets)}.stl"
            self.assets[name] = _placeholder(1.0)
            self._stand_in.append(name)
        return self._known[key]

    def add(self, path: Path, shown: str, variant: str = "") -> str:
        """Read a mesh file; returns its name among the assets."""
        name = self._known.get((path, variant))
        if name is None:
            name = f"asset{len(self.assets)}{path.suffix.lower()}"
            if not os.path.exists(path):
                raise FormatError(
                    f"{shown}: there is no such file; mechanics does not need it: load(..., meshes=False) leaves it out"
                )
            self.assets[name] = read_bytes(path, MAX_ASSET_BYTES, shown)
            self._known[path, variant] = name
            self.files[name] = path
            if sum(map(len, self.assets.values())) > 2 * MAX_ASSET_BYTES:
                raise FormatError(f"{shown}: the model's files take more than {2 * MAX_ASSET_BYTES} bytes")
        return name


def _placeholder(size: float) -> bytes:
    """A tetrahedron with three edges of this length as a binary STL file."""
    faces = np.zeros(4, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])
    faces["corners"] = size * _TETRAHEDRON
    return bytes(80) + len(faces).to_bytes(4, "little") + faces.tobytes()


def prepare(root: Node, path: Path, source: Source) -> None:
    """Make `root` ready and put it into `source`."""
    _ready(root, path, source, (source.folders.model,))
    source.root = root


def _ready(root: Node, path: Path, source: Source, chain: tuple[Path, ...]) -> int:
    """Make a tree ready for the compiler, in place; returns the number of elements that it expands to."""
    _include(root, chain[-1].parent, source, {chain[-1]}, 0)
    _leave_out(root, source.dropped)
    base, strip = _asset_folder(root, chain[-1].parent)
    _refuse_nan(root)
    sizes: dict[str, int] = {}
    for asset in [node for section in root.find("asset") for node in section.children]:
        if asset.tag == "mesh":
            _mesh(asset, base, strip, source)
        elif asset.tag == "hfield":
            _flatten(asset)
        elif asset.tag == "model":
            sizes[asset.get("name")] = _model(asset, base, source, chain)
    _refuse_references(root)
    size = _bound_expansion(root, sizes, path)
    # Muscles are left out; the simulation that finds their range of lengths may take for ever.
    root.children.append(Node("compiler", children=[Node("lengthrange", {"mode": "none"})], file=path))
    return size


def _include(node: Node, base: Path, source: Source, seen: set[Path], depth: int) -> None:
    """Put the children of included files in place of `<include>` elements, everywhere below `node`."""
    for parent in list(node.iter()):
        if not any(child.tag == "include" for child in parent.children):
            continue
        inlined: list[Node] = []
        for child in parent.children:
            if child.tag != "include":
                inlined.append(child)
                continue
            shown = f"{child.where()}: <include>"
            file = source.folders.resolve(child.get("file"), base, shown)
            if file in seen:
                raise FormatError(f"{shown}: '{child.get('file')}' is included more than once")
            if depth >= _MAX_NESTED:
                raise FormatError(f"{shown}: includes are nested more than {_MAX_NESTED} deep")
            seen.add(file)
            content = xml.parse(read_bytes(file, xml.MAX_BYTES, f"{shown}: '{child.get('file')}'"), file)
            _include(content, base, source, seen, depth + 1)
            inlined.extend(content.children)
        parent.children = inlined


def _leave_out(root: Node, dropped: Counter[str]) -> None:
    """Remove elements without a counterpart in a mechanism."""
    for section in root.children:
        if section.tag == "deformable":
            dropped.update({"flex": len(section.find("flex")), "skin": len(section.find("skin"))})
        elif section.tag == "asset":
            dropped["skin"] += len(section.find("skin"))
    root.children = [section for section in root.children if section.tag not in _UNUSED | {"deformable"}]
    meshes = [mesh for section in root.find("asset") for mesh in section.find("mesh") if mesh.find("plugin")]
    plugged = {mesh.get("name") or PurePosixPath(mesh.get("file")).stem for mesh in meshes}
    lost_control = lost_position = False
    for node in root.iter():
        node.attrib.pop("texture", None)
        kept = []
        for child in node.children:
            if child.tag in _SIGHT or (child.tag == "skin" and node.tag == "asset"):
                continue
            if child.tag == "flexcomp" or (node.tag == "equality" and child.tag.startswith("flex")):
                dropped["flex"] += child.tag == "flexcomp"
                lost_position |= child.tag == "flexcomp"
            elif child.tag == "plugin":
                dropped["plugin"] += 1
                lost_control |= node.tag == "actuator"
            elif _plugged(child, plugged):
                dropped["plugin"] += 1
            else:
                kept.append(child)
        node.children = kept
    # Keyframes give numbers for elements that were removed.
    for section in root.find("keyframe"):
        for key in section.children:
            if lost_position:
                dropped["keyframe of a model with flex"] += 1
            elif lost_control:
                key.attrib.pop("ctrl", None)
                key.attrib.pop("act", None)
        if lost_position:
            section.children = []


def _plugged(node: Node, meshes: set[str]) -> bool:
    """Whether a mesh is made by a plugin, or a geom needs one or such a mesh."""
    made = node.tag in ("mesh", "geom") and bool(node.find("plugin"))
    return made or (node.tag == "geom" and "mesh" in node.attrib and node.get("mesh") in meshes)


def _asset_folder(root: Node, base: Path) -> tuple[Path, bool]:
    """The folder of meshes, and whether folders are stripped from their names; removes these settings from the tree."""
    settings: dict[str, str] = {}
    for compiler in root.find("compiler"):
        settings.update({key: compiler.attrib.pop(key) for key in _FOLDERS if key in compiler.attrib})
        compiler.children = [child for child in compiler.children if child.tag != "lengthrange"]
    folder = settings.get("meshdir", settings.get("assetdir", ""))
    if "\0" in folder:
        raise FormatError(f"{root.where()}: meshdir {folder!r} is not a folder")
    return base / folder.replace("\\", "/"), settings.get("strippath") == "true"


def _mesh(mesh: Node, base: Path, strip: bool, source: Source) -> None:
    for word in mesh.get("params").split():
        if abs(_number(word)) > MAX_MESH_PARAMETER:
            raise FormatError(
                f"{mesh.where()}: <mesh>: a parameter of a built-in mesh may be at most {MAX_MESH_PARAMETER}"
            )
    if "file" not in mesh.attrib:
        return
    file = PurePosixPath(mesh.get("file").replace("\\", "/"))
    shown = f"{mesh.where()}: <mesh>"
    mesh.attrib.setdefault("name", file.stem)
    if not source.meshes:
        mesh.attrib.pop("content_type", None)
        mesh.attrib["file"] = source.stand_in(str(file))
        return
    path = source.folders.resolve(file.name if strip else str(file), base, shown)
    mesh.attrib["file"] = source.add(path, f"{shown}: '{mesh.get('file')}'")


def _flatten(field_: Node) -> None:
    """Replace a height field whose heights are not in the model by the smallest one, which is then left out."""
    elevation, rows, columns = (field_.get(key).split() for key in ("elevation", "nrow", "ncol"))
    given = [*rows, *columns, str(len(elevation))]
    if len(given) == 3 and all(v.isdecimal() and len(v) < 10 for v in given):
        r, c, count = map(int, given)
        if count == r * c and min(r, c) > 1 and "file" not in field_.attrib:
            return
    file = field_.attrib.pop("file", None)
    if file is not None:
        field_.attrib.setdefault("name", PurePosixPath(file.replace("\\", "/")).stem)
    for key in ("content_type", "elevation"):
        field_.attrib.pop(key, None)
    field_.attrib.update(nrow="2", ncol="2")


def _model(asset: Node, base: Path, source: Source, chain: tuple[Path, ...]) -> int:
    """Make a model that is attached to this one ready too; returns the number of elements it expands to."""
    shown = f"{asset.where()}: <model>"
    path = source.folders.resolve(asset.get("file"), base, shown)
    if path in chain or len(chain) > _MAX_NESTED:
        raise FormatError(f"{shown}: '{asset.get('file')}' contains itself, or models are nested too deep")
    root = xml.parse(read_bytes(path, xml.MAX_BYTES, f"{shown}: '{asset.get('file')}'"), path)
    if root.tag != "mujoco":
        raise FormatError(f"{shown}: '{asset.get('file')}' is not an MJCF model")
    size = _ready(root, path, source, (*chain, path))
    asset.attrib.setdefault("name", root.get("model"))
    asset.attrib["file"] = name = f"model{source.models}.xml"
    source.models += 1
    source.assets[name] = xml.write(root)[0].encode()
    return size


def _refuse_nan(root: Node) -> None:
    """Refuse numbers that are not numbers: MuJoCo takes them for values that were not given."""
    for node in root.iter():
        for key in node.attrib.keys() & _NUMBERS:
            if any(word.lower().lstrip("+-") == "nan" for word in node.get(key).split()):
                raise FormatError(
                    f"{node.where()}: <{node.tag}> has {key}={node.get(key)!r:.60}: give numbers"
                )


def _refuse_references(root: Node) -> None:
    """Refuse attributes by which the compiler could open a file."""
    for node in root.iter():
        for key in node.attrib:
            known = key == "file" and node.tag in ("mesh", "model")
            if not known and (key.startswith("file") or key in _FOLDERS[:3]):
                raise FormatError(
                    f"{node.where()}: <{node.tag}> has an attribute '{key}' that does not belong there"
                )


def _bound_expansion(root: Node, sizes: dict[str, int], path: Path) -> int:
    """Refuse a model that <replicate> and <attach> would expand to millions of elements; returns their number."""
    own = sum(1 for _ in root.iter())
    total, stack = 0.0, [(root, 1.0)]
    while stack:
        node, copies = stack.pop()
        if node.tag == "replicate":
            copies *= max(_number(node.get("count")), 1.0)
        total += copies * (sizes.get(node.get("model"), own) if node.tag == "attach" else 1)
        if total > max(MAX_EXPANDED, own):
            raise FormatError(
                f"'{path}' would expand to more than {MAX_EXPANDED} elements; reduce the count of <replicate>"
            )
        stack.extend((child, copies) for child in node.children)
    return int(total)


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        return 0.0  # MuJoCo will say what is wrong with it
    return 0.0 if math.isnan(value) else value
