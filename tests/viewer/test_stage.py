"""What the stage and the overlay compute: boxes of inertia."""

from __future__ import annotations

import numpy as np

import pliant
from pliant import spatial
from pliant.viewer.stage import _inertia_boxes, copy_colours


def test_a_box_has_the_box_of_its_inertia():
    """Edges and axes of solid boxes, turned at random, are found again."""
    rng, edges = np.random.default_rng(3), []
    b = pliant.Builder("boxes")
    for i in range(20):
        half = np.sort(rng.uniform(0.1, 0.2, 3) * (3, 2, 1))[::-1]
        edges.append(2 * half)
        turn = spatial.so3_exp(rng.normal(size=3))
        pose = np.eye(4)
        pose[:3, :3] = turn
        shape = pliant.shapes.box(tuple(half), orientation=spatial.quat_from_matrix(turn))
        b.body(f"box{i}", density=500.0, shapes=[shape])
        b.free(f"free{i}", "world", f"box{i}")
    m = b.build()
    sizes, axes = _inertia_boxes(m, m.body_count)
    np.testing.assert_allclose(sizes, edges, rtol=1e-6)  # the smallest moment is along the longest edge
    np.testing.assert_allclose(np.linalg.det(axes), 1.0)
    for i in range(20):
        square = axes[i] @ np.diag(sizes[i] ** 2) @ axes[i].T
        moments = m.mass[i] / 12 * (np.trace(square) * np.eye(3) - square)
        np.testing.assert_allclose(moments, m.inertia[i], rtol=1e-9, atol=1e-12)


def test_points_have_boxes_without_size():
    b = pliant.Builder("thin")
    b.body("point", mass=1.0, inertia=(1e-12, 1e-12, 1e-12))
    b.free("free", "world", "point")
    sizes, _ = _inertia_boxes(b.build(), 1)
    assert np.isfinite(sizes).all()
    assert sizes.max() < 1e-5


def test_colours_of_copies_are_linear():
    """viser adds no conversion to the colours of copies: a dark grey of 0.12 would be shown as 0.38."""
    shades = np.array([0.0, 0.02, 0.12, 0.5, 1.0])
    sent = copy_colours(np.repeat(shades[:, None], 3, axis=1))
    assert sent.dtype == np.uint8
    np.testing.assert_array_equal(sent[:, 0], [0, 0, 3, 55, 255])
    linear = sent[:, 0] / 255
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    np.testing.assert_allclose(shown, shades, atol=0.025)
