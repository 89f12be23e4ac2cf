"""`bunny`: a mesh shape, convex in no part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.gallery.parts import SAND, unit

__all__ = ["bunny"]

Floats = NDArray[np.float64]

_RINGS, _SECTORS = 24, 32
# Direction, height over a sphere of radius 1, and width, rad: haunches, head, two ears, tail.
_BUMPS = (
    ((-0.5, 0.0, -0.6), 0.25, 0.7),
    ((0.8, 0.0, 0.55), 0.55, 0.38),
    ((0.35, 0.28, 0.95), 0.75, 0.16),
    ((0.35, -0.28, 0.95), 0.75, 0.16),
    ((-1.0, 0.0, -0.1), 0.30, 0.18),
)


def bunny(radius: float = 0.05, *, rgba: Sequence[float] = SAND) -> shapes.Shape:
    """A crouching bunny, 1,472 triangles: a sphere with haunches, head, ears and tail. It faces x.

    Its foot is flat, at z = -0.85 `radius`. A world lets its convex hull touch things.

    Args:
        radius: of the sphere.
        rgba: colour.
    """
    polar = np.linspace(0.0, np.pi, _RINGS + 1)[1:-1]
    around = np.linspace(0.0, 2 * np.pi, _SECTORS, endpoint=False)
    theta, phi = (grid.ravel() for grid in np.meshgrid(polar, around, indexing="ij"))
    sides = np.column_stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    directions = np.concatenate([[[0.0, 0.0, 1.0]], sides, [[0.0, 0.0, -1.0]]])
    reach = np.ones(len(directions))
    for towards, height, width in _BUMPS:
        angle = np.arccos(np.clip(directions @ unit(towards), -1.0, 1.0))
        reach += height * np.exp(-((angle / width) ** 2))
    vertices = reach[:, None] * directions
    vertices[:, 2] = np.maximum(vertices[:, 2], -0.85)  # it sits
    return shapes.mesh(radius * vertices, _faces(), rgba=rgba)


def _faces() -> NDArray[np.int32]:
    """Triangles between the rings, and fans at both poles; the first and last vertex are the poles."""
    ring = np.arange(_SECTORS)
    beside = (ring + 1) % _SECTORS
    last = 1 + (_RINGS - 1) * _SECTORS
    out = [np.column_stack([np.zeros_like(ring), 1 + ring, 1 + beside])]
    for r in range(_RINGS - 2):
        a = 1 + r * _SECTORS
        b = a + _SECTORS
        out.append(np.column_stack([a + ring, b + ring, b + beside]))
        out.append(np.column_stack([a + ring, b + beside, a + beside]))
    a = last - _SECTORS
    out.append(np.column_stack([a + ring, np.full_like(ring, last), a + beside]))
    return np.concatenate(out).astype(np.int32)
