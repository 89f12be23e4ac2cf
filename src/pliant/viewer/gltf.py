"""`export_gltf`: a trajectory as an animated binary glTF file, for Blender, game engines and web viewers.

Written directly: a JSON header and one block of little-endian arrays. A node per body carries its motion; nodes below
it carry its shapes, which share meshes. glTF has y up: one node above all turns z up into that.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.trajectory import Trajectory
from pliant.formats.paths import as_path, replacing
from pliant.viewer.parts import Part, make_parts
from pliant.viewer.recording import check_trajectory

__all__ = ["export_gltf"]

Floats = NDArray[np.float64]
_FLOAT, _UNSIGNED = 5126, 5125  # glTF's numbers for float32 and uint32
_VERTICES, _FACES = 34962, 34963  # and for what an array is
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
_UPRIGHT = [-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]  # x, y, z, w: z up to y up


class _File:
    """A glTF document that grows, and its block of arrays."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.meshes: list[dict[str, Any]] = []
        self.materials: list[dict[str, Any]] = []
        self._material: dict[tuple[Any, ...], int] = {}

    def array(self, values: NDArray, target: int | None = None) -> int:
        """Add an array of float32 or uint32, one row per element; returns its number."""
        flat = values.dtype == np.uint32
        values = np.ascontiguousarray(values, dtype="<u4" if flat else "<f4")
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        self.views.append(view | ({} if target is None else {"target": target}))
        self.data += values.tobytes()
        width = 1 if values.ndim == 1 else values.shape[1]
        accessor = {
            "bufferView": len(self.views) - 1,
            "componentType": _UNSIGNED if flat else _FLOAT,
            "count": len(values),
            "type": _TYPES[width],
        }
        if not flat:  # required for positions and times
            low, high = (np.atleast_1d(v).tolist() for v in (values.min(axis=0), values.max(axis=0)))
            accessor |= {"min": low, "max": high}
        self.accessors.append(accessor)
        return len(self.accessors) - 1

    def material(self, rgba: Floats, two_sided: bool) -> int:
        """The number of a material of this colour."""
        key = (*np.round(rgba, 4).tolist(), two_sided)
        if key not in self._material:
            # Colours of shapes are as displays take them; glTF wants them linear.
            linear = np.where(rgba[:3] <= 0.04045, rgba[:3] / 12.92, ((rgba[:3] + 0.055) / 1.055) ** 2.4)
            surface = {"baseColorFactor": [*linear.tolist(), float(rgba[3])], "metallicFactor": 0.0}
            made: dict[str, Any] = {"pbrMetallicRoughness": surface | {"roughnessFactor": 0.6}}
            made |= {"doubleSided": two_sided} | ({"alphaMode": "BLEND"} if rgba[3] < 1 else {})
            self._material[key] = len(self.materials)
            self.materials.append(made)
        return self._material[key]

    def node(self, **words: Any) -> int:
        """Add a node; returns its number."""
        self.nodes.append(words)
        return len(self.nodes) - 1

    def content(self, animation: dict[str, Any], root: int) -> bytes:
        """The whole file."""
        self.data += bytes(-len(self.data) % 4)
        document: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "pliant"},
            "scene": 0,
            "scenes": [{"nodes": [root]}],
            "nodes": self.nodes,
            "animations": [animation],
            "accessors": self.accessors,
            "bufferViews": self.views,
            "buffers": [{"byteLength": len(self.data)}],
        }
        if self.meshes:  # glTF allows no empty lists
            document |= {"meshes": self.meshes, "materials": self.materials}
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        total = 12 + 8 + len(text) + 8 + len(self.data)
        head = struct.pack("<III", 0x46546C67, 2, total) + struct.pack("<II", len(text), 0x4E4F534A)
        return head + text + struct.pack("<II", len(self.data), 0x004E4942) + bytes(self.data)


def export_gltf(trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write a trajectory as an animated binary glTF file (.glb): every body with its shapes and its motion.

    Args:
        trajectory: poses over time, from `simulation.record`.
        path: where to write it, usually `*.glb`. A file that is there is replaced, once the new one is complete.

    Returns:
        The path.

    Raises:
        InputError: an argument is unusable.
        FormatError: the file cannot be written.
    """
    target = as_path(path)
    m = check_trajectory(trajectory).mechanism
    file = _File()
    children: list[list[int]] = [[] for _ in range(m.body_count + 1)]  # the last: what is fixed to the world
    for part in make_parts(m):
        _add_copies(file, part, children)
    time = file.array((trajectory.time - trajectory.time[0]).astype(np.float32))
    samplers: list[dict[str, Any]] = []
    channels: list[dict[str, Any]] = []
    top = list(children[-1])
    for i, name in enumerate(m.body_names):
        place = trajectory.poses[:, i, :3, 3]
        turn = _continuous(spatial.quat_from_matrix(trajectory.poses[:, i, :3, :3]))[:, [1, 2, 3, 0]]
        start = {"translation": place[0].tolist(), "rotation": turn[0].tolist()}
        node = file.node(name=name, **start, **({"children": children[i]} if children[i] else {}))
        top.append(node)
        for word, values in (("translation", place), ("rotation", turn)):
            samplers.append(
                {"input": time, "output": file.array(values.astype(np.float32)), "interpolation": "LINEAR"}
            )
            channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": word}})
    root = file.node(name=m.name, rotation=_UPRIGHT, children=top)
    animation = {"name": "motion", "samplers": samplers, "channels": channels}
    with replacing(target) as out:
        out.write(file.content(animation, root))
    return target


def _add_copies(file: _File, part: Part, children: list[list[int]]) -> None:
    """The mesh of a part, once per colour, and a node for every copy."""
    points, faces = part.vertices, part.faces
    if not len(faces):
        return
    attributes = {"POSITION": file.array(points, _VERTICES)}
    if not part.flat:  # without normals, viewers shade flat: what corners of a box want
        attributes["NORMAL"] = file.array(_normals(points, faces), _VERTICES)
    indices = file.array(faces.reshape(-1), _FACES)
    meshes: dict[int, int] = {}
    for k, body in enumerate(part.body.tolist()):
        material = file.material(part.rgba[k], part.two_sided)
        if material not in meshes:
            meshes[material] = len(file.meshes)
            file.meshes.append(
                {"primitives": [{"attributes": attributes, "indices": indices, "material": material}]}
            )
        w, x, y, z = part.wxyz[k].tolist()
        node = file.node(
            mesh=meshes[material],
            translation=part.position[k].tolist(),
            rotation=[x, y, z, w],
            scale=part.scale[k].tolist(),
        )
        children[body].append(node)


def _normals(points: NDArray[np.float32], faces: NDArray[np.uint32]) -> NDArray[np.float32]:
    corners = points[faces].astype(np.float64)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    out = np.zeros(points.shape)
    np.add.at(out, faces.reshape(-1), np.repeat(normal, 3, axis=0))
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return np.where(length > 0, out / np.maximum(length, 1e-300), (0.0, 0.0, 1.0)).astype(np.float32)


def _continuous(turns: Floats) -> Floats:
    """The same rotations with signs such that each quaternion is on the side of the one before."""
    side = np.where((turns[1:] * turns[:-1]).sum(axis=1) < 0, -1.0, 1.0)
    turns[1:] *= np.cumprod(side)[:, None]
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)
