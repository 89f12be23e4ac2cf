"""Recordings of trajectories: `record_html` as a web page, `export_gltf` as an animated binary glTF file.

A web page plays from a file, without a network. glTF is for Blender, game engines and web viewers; it is written
directly: a JSON header and one block of little-endian arrays. A node per body carries its motion, nodes below it carry
its shapes, which share meshes. glTF has y up: a root node turns z up into that.
"""

from __future__ import annotations

import json
import os
import struct
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.checks import number, vector
from pliant.engines.trajectory import Trajectory
from pliant.errors import InputError
from pliant.files import as_path, replacing
from pliant.viewer.meshes import Part, arrow_mesh, continuous, linear, make_parts, vertex_normals
from pliant.viewer.player import arrow_lengths, default_caption, page

__all__ = ["export_gltf", "frames", "html_frame", "record_html"]

Floats = NDArray[np.float64]
_RED = np.array([0.776, 0.157, 0.157, 1.0])  # of arrows
_VIEW = (24.0, -58.0)  # elevation, azimuth, degrees
_FLOAT, _UNSIGNED = 5126, 5125  # glTF's component types: float32, uint32
_VERTICES, _FACES = 34962, 34963  # glTF's buffer targets: vertex attributes, indices
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
_UPRIGHT = [-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]  # x, y, z, w: z up to y up


def record_html(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: float = 30,
    title: str | None = None,
    caption: str | None = None,
    view: tuple[float, float] = _VIEW,
) -> Path:
    """Write a trajectory as a web page that shows it in 3-D: turn it with the mouse, stop it, play it again.

    The page holds everything it needs, viewer included: it opens from a file and loads nothing from anywhere. Forces
    of wrenches and pulls are arrows with their size, as far as the trajectory has them.

    Args:
        trajectory: poses over time, from `simulation.record`.
        path: where to write it, usually `*.html`. A file that is there is replaced, once the new one is complete.
        fps: frames a second, at most; the page goes from one to the next smoothly.
        title, caption: texts above the picture: the mechanism's name, and the number of bodies by default.
        view: elevation and azimuth of the camera at first, degrees; all of the motion is seen.

    Returns:
        The path.

    Raises:
        InputError: an argument is unusable.
        FormatError: the file cannot be written.

    Example:
        >>> import pliant
        >>> simulation = pliant.ConstrainedSimulation(pliant.gallery.cable(5), 1 / 60)
        >>> pliant.viewer.record_html(simulation.record(120), "cable.html")  # doctest: +SKIP
    """
    target = as_path(path)
    chosen = frames(_checked_trajectory(trajectory), fps)
    look = vector(view, "view", 2, kind="two numbers", expected="two finite numbers")
    name = trajectory.mechanism.name if title is None else title
    words = default_caption(trajectory) if caption is None else caption
    for word, given in (("title", name), ("caption", words)):
        if not isinstance(given, str):
            raise InputError(f"{word}: a text expected, not {given!r:.80}")
    text = page(trajectory, chosen, name, words, (float(look[0]), float(look[1])))
    with replacing(target) as file:
        file.write(text.encode("utf-8"))
    return target


def html_frame(trajectory: Trajectory) -> str:
    """The page of `record_html` within a frame, for notebooks."""
    m, chosen = trajectory.mechanism, frames(_checked_trajectory(trajectory), 30)
    text = page(trajectory, chosen, m.name, default_caption(trajectory), _VIEW)
    return (
        f'<iframe srcdoc="{escape(text)}" width="100%" height="480" style="border:1px solid #ddd"></iframe>'
    )


def frames(trajectory: Trajectory, fps: Any) -> NDArray[np.int64]:
    """Indices of the poses to show: the first, the last, and in between those nearest to every 1/fps s."""
    fps = number(fps, "fps", above=0, most=1000)
    time = trajectory.time - trajectory.time[0]
    wanted = np.arange(int(time[-1] * fps + 1e-9) + 1) / fps
    after = np.clip(np.searchsorted(time, wanted), 0, len(time) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - time[before] < time[after] - wanted, before, after)
    return np.unique(np.concatenate([[0], nearest, [len(time) - 1]]))


# --- glTF


def export_gltf(trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write a trajectory as an animated binary glTF file (.glb): every body with its shapes and its motion.

    Forces of wrenches and pulls are arrows, as far as the trajectory has them; one that does not act has no size.

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
    m = _checked_trajectory(trajectory).mechanism
    file = _GltfFile()
    children: list[list[int]] = [
        [] for _ in range(m.body_count + 1)
    ]  # nodes of every body, and last of the world
    for part in make_parts(m):
        _add_copies(file, part, children)
    time = file.array((trajectory.time - trajectory.time[0]).astype(np.float32))
    samplers: list[dict[str, Any]] = []
    channels: list[dict[str, Any]] = []
    top = list(children[-1])
    for i, name in enumerate(m.body_names):
        position = trajectory.poses[:, i, :3, 3]
        rotation = continuous(spatial.quat_from_matrix(trajectory.poses[:, i, :3, :3]))[:, [1, 2, 3, 0]]
        start = {"translation": position[0].tolist(), "rotation": rotation[0].tolist()}
        node = file.node(name=name, **start, **({"children": children[i]} if children[i] else {}))
        top.append(node)
        for channel, values in (("translation", position), ("rotation", rotation)):
            samplers.append(
                {"input": time, "output": file.array(values.astype(np.float32)), "interpolation": "LINEAR"}
            )
            channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": channel}})
    top += _add_arrows(file, trajectory, time, samplers, channels)
    root = file.node(name=m.name, rotation=_UPRIGHT, children=top)
    animation = {"name": "motion", "samplers": samplers, "channels": channels}
    with replacing(target) as out:
        out.write(file.content(animation, root))
    return target


class _GltfFile:
    """A glTF document under construction, and its block of arrays."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.meshes: list[dict[str, Any]] = []
        self.materials: list[dict[str, Any]] = []
        self._material: dict[tuple[Any, ...], int] = {}

    def array(self, values: NDArray, target: int | None = None) -> int:
        """Add an array of float32 or uint32, one row per element; returns its index."""
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
        """Index of the material of this colour, added if new."""
        key = (*np.round(rgba, 4).tolist(), two_sided)
        if key not in self._material:
            # Shapes have sRGB colours, glTF linear ones.
            surface = {"baseColorFactor": [*linear(rgba[:3]).tolist(), float(rgba[3])], "metallicFactor": 0.0}
            made: dict[str, Any] = {"pbrMetallicRoughness": surface | {"roughnessFactor": 0.6}}
            made |= {"doubleSided": two_sided} | ({"alphaMode": "BLEND"} if rgba[3] < 1 else {})
            self._material[key] = len(self.materials)
            self.materials.append(made)
        return self._material[key]

    def node(self, **fields: Any) -> int:
        """Add a node; returns its index."""
        self.nodes.append(fields)
        return len(self.nodes) - 1

    def content(self, animation: dict[str, Any], root: int) -> bytes:
        """Bytes of the whole file."""
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


def _add_copies(file: _GltfFile, part: Part, children: list[list[int]]) -> None:
    """Add the mesh of a part, once per colour, and a node per copy to the `children` of its body."""
    points, faces = part.vertices, part.faces
    if not len(faces):
        return
    attributes = {"POSITION": file.array(points, _VERTICES)}
    if not part.flat:  # without normals, viewers shade flat
        attributes["NORMAL"] = file.array(vertex_normals(points, faces), _VERTICES)
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


def _add_arrows(
    file: _GltfFile,
    trajectory: Trajectory,
    time: int,
    samplers: list[dict[str, Any]],
    channels: list[dict[str, Any]],
) -> list[int]:
    """Add an arrow per load, with its motion; returns their nodes."""
    loads = trajectory.loads
    if not loads.any():
        return []
    length = arrow_lengths(loads, trajectory.mechanism.radius)
    corners = arrow_mesh()
    points, faces = corners.reshape(-1, 3).astype(np.float32), np.arange(3 * len(corners), dtype=np.uint32)
    attributes = {
        "POSITION": file.array(points, _VERTICES),
        "NORMAL": file.array(vertex_normals(points, faces.reshape(-1, 3)), _VERTICES),
    }
    material = file.material(_RED, True)
    mesh = {"attributes": attributes, "indices": file.array(faces, _FACES), "material": material}
    file.meshes.append({"primitives": [mesh]})
    out, upright = [], np.array([0.0, 0.0, 1.0])
    for k in range(loads.shape[1]):
        force = loads[:, k, 1]
        size = np.linalg.norm(force, axis=1, keepdims=True)
        along = np.where(size > 0, force / np.maximum(size, 1e-300), upright)
        half = np.column_stack(
            [1 + along[:, 2], -along[:, 1], along[:, 0], np.zeros(len(along))]
        )  # from z up
        half[half[:, 0] < 1e-6] = (0, 1, 0, 0)
        turns = continuous(half / np.linalg.norm(half, axis=1, keepdims=True))[:, [1, 2, 3, 0]]
        scale = np.repeat(length[:, k : k + 1], 3, axis=1)
        out.append(file.node(name=f"force {k + 1}", mesh=len(file.meshes) - 1))
        for channel, values in (("translation", loads[:, k, 0]), ("rotation", turns), ("scale", scale)):
            output = file.array(values.astype(np.float32))
            samplers.append({"input": time, "output": output, "interpolation": "LINEAR"})
            channels.append({"sampler": len(samplers) - 1, "target": {"node": out[-1], "path": channel}})
    return out


# --- arguments


def _checked_trajectory(trajectory: Any) -> Trajectory:
    """The trajectory, checked: finite poses of all bodies at increasing times."""
    if not isinstance(trajectory, Trajectory):
        raise InputError(
            f"a Trajectory expected, not {type(trajectory).__name__}: `simulation.record` gives one"
        )
    time, poses = trajectory.time, trajectory.poses
    if not len(time):
        raise InputError("the trajectory is empty: record at least one step")
    if poses.shape != (len(time), trajectory.mechanism.body_count, 4, 4):
        raise InputError(
            f"the trajectory's poses have the shape {poses.shape}: frames x bodies x 4 x 4 expected"
        )
    if not (np.isfinite(time).all() and np.isfinite(poses).all()):
        raise InputError("the trajectory holds numbers that are not finite")
    if (np.diff(time) <= 0).any():
        raise InputError("the trajectory's times do not increase")
    return trajectory
