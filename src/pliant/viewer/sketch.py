"""`sketch`: a mechanism drawn in Braille characters, eight dots each, for terminals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism
from pliant.viewer.meshes import triangulate
from pliant.viewer.picture import HUGE, Camera

__all__ = ["sketch"]

Floats = NDArray[np.float64]
# Bits of a Braille character's dots, four rows and two columns.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_FINEST = 64  # subdivisions of a triangle's edge, at most


def sketch(mechanism: Mechanism, columns: int = 48, rows: int = 14, poses: Floats | None = None) -> str:
    """Draw a mechanism within `columns` x `rows` characters, seen from the front, right and above.

    Bodies are patches of dots with gaps between them. Of more than 1,500 bodies, only origins are drawn.

    Args:
        mechanism: the mechanism.
        columns, rows: largest size, characters.
        poses: world poses of its bodies, (bodies, 4, 4); the reference poses by default.
    """
    at = mechanism.reference_poses if poses is None else poses
    camera = Camera.at(20, -60)
    if mechanism.body_count > HUGE:
        points, owner = camera(at[:, :3, 3]), np.zeros(mechanism.body_count, dtype=np.int64)
    else:
        found = triangulate(mechanism, at, reach=0.0)
        points, owner = camera(found.corners), found.body
    height, width = 4 * rows, 2 * columns
    flat = points.reshape(-1, 3)
    low, high = flat.min(axis=0), flat.max(axis=0)
    scale = min((width - 1) / max(high[0] - low[0], 1e-12), (height - 1) / max(high[1] - low[1], 1e-12))
    dots = (points - low) * (scale, -scale, 1.0)
    if points.ndim == 3:
        dots, owner = _fill_triangles(dots, owner)
    column, row = np.rint(dots[:, 0]).astype(int), np.rint(dots[:, 1]).astype(int)
    row -= row.min()
    image = np.full((height + 1, width + 1), -2)  # a margin, so that the last dots have neighbours
    nearest_last = np.argsort(dots[:, 2], kind="stable")
    image[row[nearest_last], column[nearest_last]] = owner[nearest_last]
    here, right, below = image[:-1, :-1], image[:-1, 1:], image[1:, :-1]
    drawn = here > -2
    for other in (right, below):
        drawn &= (other == here) | (other == -2)
    return _characters(drawn)


def _fill_triangles(corners: Floats, owner: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Points that fill triangles (n, 3, 3), at most a dot apart, and the owner of each."""
    edges = np.linalg.norm((corners - np.roll(corners, 1, axis=1))[..., :2], axis=2).max(axis=1)
    parts = np.clip(np.exp2(np.ceil(np.log2(np.maximum(edges, 1.0)))), 1, _FINEST).astype(int)
    points, bodies = [], []
    for n in np.unique(parts).tolist():
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
        inside = i + j <= n
        weights = np.stack([i[inside], j[inside], (n - i - j)[inside]], axis=1) / n
        chosen = parts == n
        points.append(np.einsum("wk,nkd->nwd", weights, corners[chosen]).reshape(-1, 3))
        bodies.append(np.repeat(owner[chosen], len(weights)))
    return np.concatenate(points), np.concatenate(bodies)


def _characters(drawn: NDArray[np.bool_]) -> str:
    rows, columns = drawn.shape[0] // 4, drawn.shape[1] // 2
    cells = drawn.reshape(rows, 4, columns, 2).transpose(0, 2, 1, 3)
    codes = 0x2800 + (cells * _DOTS).sum(axis=(2, 3))
    lines = ["".join(map(chr, line)).rstrip("\u2800") for line in codes.tolist()]
    return "\n".join(lines).rstrip("\n")
