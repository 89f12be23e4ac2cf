"""What the stage and the overlay compute: boxes of inertia, colours of what is selected and of what moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import spatial
from pliant.viewer.activity import Activity
from pliant.viewer.stage import _ACTIVE, Stage, _inertia_boxes, copy_colours


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


# --- what moves


class Sent:
    """A mesh as viser has it, which counts the colours it is sent."""

    def __init__(self, handle: Any):
        self.name, self.colours, self.count = handle.name, np.array(handle.batched_colors), 0

    @property
    def batched_colors(self):
        return self.colours

    @batched_colors.setter
    def batched_colors(self, value):
        self.colours, self.count = value, self.count + 1


@pytest.fixture
def stage():
    """Two boxes, a ball fixed to the second one, and a plane of the world."""
    viser: Any = pytest.importorskip("viser")
    server = viser.ViserServer(port=0, verbose=False)
    stage = Stage(server, carriers())
    stage.handles = [Sent(handle) for handle in stage.handles]
    yield stage
    server.stop()


def carriers() -> pliant.Mechanism:
    b = pliant.Builder("carriers")
    box, ball, plane = (
        pliant.shapes.box((0.1, 0.1, 0.1), rgba=(0.2, 0.5, 0.8, 1.0)),
        pliant.shapes.sphere(0.1, rgba=(0.9, 0.2, 0.1, 1.0)),
        pliant.shapes.plane(2.0, 2.0),
    )
    inertia: Any = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    b.body("a", shapes=[box], position=(0, 0, 1), **inertia)
    b.body("b", shapes=[box], position=(1, 0, 1), **inertia)
    b.body("c", shapes=[ball], position=(2, 0, 1), **inertia)
    b.hinge("ab", "a", "b", anchor=(0.5, 0, 1), axis=(0, 1, 0))
    b.fixed("bc", "b", "c")
    b.hinge("wa", "world", "a", anchor=(0, 0, 1), axis=(0, 1, 0))
    b.world_shape(plane)
    return b.build()


def test_what_moves_is_coloured_and_only_changes_are_sent(stage):
    own = [handle.colours.copy() for handle in stage.handles]
    boxes, ball, plane = stage.handles
    assert [len(handle.colours) for handle in stage.handles] == [2, 1, 1]
    stage.highlight(None)
    assert [h.count for h in stage.handles] == [0] * len(stage.handles)
    stage.highlight(np.zeros(3))
    pale = boxes.colours.astype(int)
    np.testing.assert_array_equal(plane.colours, own[2])  # the world stays as it is
    assert np.ptp(pale, axis=1).max() < np.ptp(own[0].astype(int), axis=1).max() / 3
    stage.highlight(np.array([0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(boxes.colours[0], pale[0])
    np.testing.assert_array_equal(boxes.colours[1], _ACTIVE)
    assert (boxes.count, ball.count) == (2, 1)
    stage.highlight(np.array([0.0, 1.0, 0.0]))
    assert (boxes.count, ball.count) == (2, 1)
    stage.highlight(np.array([0.0, 0.5, 0.0]))
    np.testing.assert_allclose(boxes.colours[1], (pale[1] + _ACTIVE) / 2, atol=1)
    stage.select(np.array([0.0, 0.0, 1.0]))
    assert (boxes.count, ball.count) == (3, 2)
    np.testing.assert_array_equal(ball.colours[0], (255, 67, 5))
    stage.select(np.zeros(3))
    stage.highlight(None)
    for handle, colours in zip(stage.handles, own, strict=True):
        np.testing.assert_array_equal(handle.colours, colours)


def test_shades_fade_after_a_joint_has_moved():
    activity = Activity(carriers())  # joints: ab, bc, wa
    still, moving = np.zeros(3, dtype=bool), np.array([True, False, False])
    np.testing.assert_array_equal(activity.shades(still, 10.0), [0, 0, 0])
    np.testing.assert_array_equal(activity.shades(moving, 10.0), [0, 1, 1])  # c is fixed to b
    found = [activity.shades(still, 10.0 + t) for t in (0.05, 0.25, 0.45, 0.59, 0.7)]
    np.testing.assert_allclose([shade[1] for shade in found], [1, 4 / 6, 2 / 6, 1 / 6, 0])
    assert all(shade[0] == 0 and shade[2] == shade[1] for shade in found)
    np.testing.assert_array_equal(activity.shades(np.array([False, True, True]), 11.0), [1, 0, 0])


def test_shades_of_all_joints_of_a_tree_with_loops():
    """One shade per body: that of its joint in the tree; joints that close loops shade nothing of their own."""
    m = pliant.gallery.ladder(4)
    for joint in range(m.joint_count):
        active = np.zeros(m.joint_count, dtype=bool)
        active[joint] = True
        shades = Activity(m).shades(active, 0.0)
        expected = [float(m.topology.tree_joint[body] == joint) for body in range(m.body_count)]
        np.testing.assert_array_equal(shades, expected)
