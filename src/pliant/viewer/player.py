"""`page`: a trajectory as one web page that draws it in 3-D, with everything it needs inside.

The page is `player.html`, a renderer of a few hundred lines on WebGL 2, and a block of data: meshes with their copies,
poses over time and the forces that act. Poses are 16-bit numbers, as differences from frame to frame: they deflate to a
fifth of their size. Colours and light are those of still pictures.
"""

from __future__ import annotations

import base64
import html
import json
import struct
import zlib
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.trajectory import Trajectory
from pliant.text import counted
from pliant.viewer.meshes import Part, bounds, continuous, make_parts, vertex_normals
from pliant.viewer.stage import floor_cell

__all__ = ["arrow_lengths", "default_caption", "page"]

Floats = NDArray[np.float64]
_STEPS = 32767  # of a quantised number either way
_WIDEST = 3.0  # times the motion: ground up to this wide is seen in full
_ARROW, _LEAST = (
    0.55,
    0.01,
)  # longest arrow, of the radius; smallest force drawn, of the largest; as in the player
_LOOKS = 60  # frames at which the extent of the motion is measured, at most


def page(
    trajectory: Trajectory,
    chosen: NDArray[np.int64],
    name: str,
    caption: str,
    view: tuple[float, float],
) -> str:
    """The page that plays the chosen frames of a trajectory.

    Args:
        trajectory: the motion.
        chosen: indices of frames.
        name, caption: title, and the text below it.
        view: elevation and azimuth of the camera at first, degrees.
    """
    m, block = trajectory.mechanism, _Block()
    parts = make_parts(m)
    poses, time = trajectory.poses[chosen], trajectory.time[chosen] - trajectory.time[chosen[0]]
    loads = trajectory.loads[chosen]
    low, high = _with_arrows(*_extent(parts, poses), loads)
    table, quantum = _quantised(poses)
    floors = [part for part in parts if part.endless and _level(part)]
    sizes = np.linalg.norm(loads[:, :, 1], axis=2)
    about: dict[str, Any] = {
        "name": name,
        "caption": caption,
        "view": view,
        "frames": len(chosen),
        "bodies": m.body_count,
        "time": np.round(time, 6).tolist(),
        "bounds": [low.tolist(), high.tolist()],
        "floor": _floor(parts, floors, float(low[2] - 0.001 * np.linalg.norm(high - low))),
        "cell": floor_cell(float(np.linalg.norm(high - low)) / 2),
        "quantum": quantum,
        "poses": block.add(table),
        "loads": block.add(loads.astype(np.float32)),
        "loadCount": loads.shape[1],
        "largest": float(sizes.max(initial=0.0)),
        "parts": [_part(block, p, m.body_count) for p in parts if p not in floors and len(p.faces)],
    }
    template = (files("pliant.viewer") / "player.html").read_text(encoding="utf-8")
    title = html.escape(name)
    return template.replace("$title", title, 1).replace("$data", block.text(about), 1)


def default_caption(trajectory: Trajectory) -> str:
    """Number of bodies, and what arrows mean if there are any."""
    text = counted(trajectory.mechanism.body_count, "body", "bodies")
    return f"{text}; arrows are forces" if trajectory.loads.any() else text


class _Block:
    """Arrays one after another, each aligned to four bytes."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, values: NDArray) -> list[Any]:
        """Append an array of float32, uint32 or int16; returns its kind, place and length."""
        kind = {"f": "f", "u": "u", "i": "h"}[values.dtype.kind]
        place = len(self._data)
        self._data += np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        self._data += bytes(-len(self._data) % 4)
        return [kind, place, int(values.size)]

    def text(self, about: dict[str, Any]) -> str:
        """All of it: length of the header, header, arrays; deflated, in base64."""
        about["start"] = 0
        while True:  # the header tells where arrays start, so its length depends on itself
            head = json.dumps(about, separators=(",", ":"), allow_nan=False).encode()
            start = (4 + len(head) + 3) // 4 * 4
            if about["start"] == start:
                break
            about["start"] = start
        raw = struct.pack("<I", len(head)) + head + bytes(start - 4 - len(head)) + bytes(self._data)
        return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _extent(parts: list[Part], poses: Floats) -> tuple[Floats, Floats]:
    """Low and high corner of the box that the whole motion fits into, m."""
    some = np.unique(np.linspace(0, len(poses) - 1, min(_LOOKS, len(poses))).astype(int))
    corners = [bounds(parts, poses[i]) for i in some]
    low, high = np.min([low for low, _ in corners], axis=0), np.max([high for _, high in corners], axis=0)
    grounds = [replace(part, ground=False) for part in parts if part.ground and not part.endless]
    if grounds:
        under, over = bounds(grounds, poses[0])
        if np.linalg.norm(over - under) <= _WIDEST * np.linalg.norm(high - low):
            low, high = np.minimum(low, under), np.maximum(high, over)
    return low, high


def _with_arrows(low: Floats, high: Floats, loads: Floats) -> tuple[Floats, Floats]:
    """The box with room for arrows of loads (frames, loads, 2, 3) as the player draws them."""
    length = arrow_lengths(loads, float(np.linalg.norm(high - low)) / 2)
    drawn = length > 0
    forces = loads[:, :, 1][drawn]
    along = forces * (length[drawn] / np.linalg.norm(forces, axis=1))[:, None]
    ends = loads[:, :, 0][drawn] + along
    return np.min([low, *ends], axis=0), np.max([high, *ends], axis=0)


def arrow_lengths(loads: Floats, radius: float) -> Floats:
    """Lengths of arrows of loads (frames, loads, 2, 3), m, (frames, loads); zero for those not drawn."""
    sizes = np.linalg.norm(loads[:, :, 1], axis=2)
    share = sizes / max(sizes.max(initial=0.0), 1e-300)
    return np.where(share > _LEAST, _ARROW * radius * (0.25 + 0.75 * share), 0.0)


def _quantised(poses: Floats) -> tuple[NDArray[np.int16], list[Any]]:
    """Positions and quaternions x, y, z, w, (frames, bodies, 7), as differences over time; origin and unit, m."""
    at = poses[..., :3, 3]
    low, high = at.min(axis=(0, 1)), at.max(axis=(0, 1))
    origin, unit = (low + high) / 2, max(float((high - low).max()) / 2, 1e-12) / _STEPS
    wxyz = spatial.quat_from_matrix(poses[..., :3, :3])
    turns = np.stack([continuous(wxyz[:, i]) for i in range(wxyz.shape[1])], axis=1)[..., [1, 2, 3, 0]]
    table = np.concatenate([(at - origin) / unit, turns * _STEPS], axis=2)
    steps = np.round(table).astype(np.int16)
    return np.diff(steps, axis=0, prepend=np.zeros_like(steps[:1])), [origin.tolist(), unit]


def _part(block: _Block, part: Part, bodies: int) -> dict[str, Any]:
    """A mesh and its copies; the world is the body after the last. Flat faces have no normals: pixels know them."""
    points, faces = part.vertices, part.faces.reshape(-1)
    if part.flat:
        points, shared = np.unique(points, axis=0, return_inverse=True)
        faces = shared.reshape(-1)[faces].astype(np.uint32)
    normals = np.zeros_like(points) if part.flat else vertex_normals(points, part.faces)
    return {
        "points": block.add(points),
        "normals": block.add(normals),
        "faces": block.add(faces),
        "shift": block.add(part.position.astype(np.float32)),
        "own": block.add(part.wxyz[:, [1, 2, 3, 0]].astype(np.float32)),
        "size": block.add(part.scale.astype(np.float32)),
        "rgba": block.add(part.rgba.astype(np.float32)),
        "body": block.add(np.where(part.body < 0, bodies, part.body).astype(np.float32)),
        "clear": bool(part.rgba[:, 3].min() < 1),
        "twoSided": part.two_sided,
        "ground": part.ground,
    }


def _level(part: Part) -> bool:
    """Whether planes of the world are horizontal, z up."""
    normals = spatial.quat_to_matrix(part.wxyz)[:, :, 2]
    return bool((part.body < 0).all()) and bool((normals[:, 2] > 0.999).all())


def _floor(parts: list[Part], floors: list[Part], lowest: float) -> float | None:
    """Height of the floor: of endless ground, or just below the motion; None if there is other ground."""
    if floors:
        return float(max(part.position[:, 2].max() for part in floors))
    return None if any(part.ground for part in parts) else lowest
