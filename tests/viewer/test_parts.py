"""Few meshes with many copies stand for what the mechanism's shapes are."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import spatial
from pliant.viewer.parts import bounds, make_parts
from pliant.viewer.triangles import triangulate


def corners(parts, poses):
    """Vertices of all copies in the world, by body."""
    world = np.concatenate([poses, np.eye(4)[None]])
    turns = spatial.quat_from_matrix(world[:, :3, :3])
    out = {}
    for part in parts:
        position, wxyz = part.place(world, turns)
        for k, body in enumerate(part.body.tolist()):
            points = (part.vertices * part.scale[k]) @ spatial.quat_to_matrix(wxyz[k]).T + position[k]
            out.setdefault(body, []).append(points)
    return {body: np.concatenate(points) for body, points in out.items()}


@pytest.mark.parametrize("name", ["hand", "suspension", "firefighters", "bicycle_chain", "hexapod", "crane"])
def test_parts_fill_the_same_boxes_as_triangles(name):
    """Pictures are drawn from triangles made in another way: every body must extend as far."""
    m = pliant.gallery.make(name)
    poses = m.reference_poses
    own, drawn = corners(make_parts(m), poses), triangulate(m, poses, reach=1.2 * m.radius)
    assert set(own) == set(drawn.body.tolist())
    for body, points in own.items():
        expected = drawn.corners[drawn.body == body].reshape(-1, 3)
        size = np.ptp(expected, axis=0).max()
        np.testing.assert_allclose(points.min(axis=0), expected.min(axis=0), atol=0.02 * size)
        np.testing.assert_allclose(points.max(axis=0), expected.max(axis=0), atol=0.02 * size)


def test_few_meshes_for_many_bodies():
    parts = make_parts(pliant.gallery.millipede(60, 5, 200))
    assert len(parts) <= 4
    assert sum(len(part.body) for part in parts) == len(pliant.gallery.millipede(60, 5, 200).shape_table)


def test_round_surfaces_are_smooth_and_boxes_are_not():
    b = pliant.Builder("shapes")
    for i, shape in enumerate((pliant.shapes.sphere(0.1), pliant.shapes.box((0.1, 0.2, 0.3)))):
        b.body(f"b{i}", shapes=[shape], mass=1.0, inertia=(1, 1, 1))
        b.hinge(f"j{i}", "world", f"b{i}", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=1.0)
    ball, box = make_parts(b.build())
    assert len(ball.vertices) < len(ball.faces)
    assert not ball.flat
    assert (len(box.vertices), len(box.faces), box.flat) == (36, 12, True)
    # Faces look outward.
    for part in (ball, box):
        a, b_, c = part.vertices[part.faces].transpose(1, 0, 2)
        assert (np.einsum("ij,ij->i", np.cross(b_ - a, c - a), a + b_ + c) > 0).all()


def test_bodies_without_shapes_are_rods():
    b = pliant.Builder("bare")
    parent = "world"
    for i in range(3):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5 * i + 0.25, 0, 0))
        b.hinge(f"j{i}", parent, f"b{i}", anchor=(0.5 * i, 0, 0), axis=(0, 1, 0), stiffness=1.0)
        parent = f"b{i}"
    m = b.build()
    assert set(corners(make_parts(m), m.reference_poses)) == {0, 1, 2}


def test_planes_meshes_and_translucent_shapes():
    tetrahedron = pliant.shapes.mesh(
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    )
    clear = pliant.shapes.sphere(0.1, rgba=(1, 0, 0, 0.5))
    b = pliant.Builder("mixed")
    b.body(
        "thing",
        shapes=[tetrahedron, clear, pliant.shapes.sphere(0.1), pliant.shapes.plane(0.2, 0.3)],
        mass=1.0,
        inertia=(1, 1, 1),
    )
    b.hinge("j", "world", "thing", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=1.0)
    m = b.build()
    parts = make_parts(m)
    assert sorted(len(part.faces) for part in parts if part.flat) == [2, 4]
    assert sorted(part.rgba[:, 3].min() for part in parts if not part.flat) == [0.5, 1.0]
    low, high = bounds(parts, m.reference_poses)
    np.testing.assert_allclose(high, (1, 1, 1), atol=0.05)
    np.testing.assert_allclose(low, (-0.2, -0.3, -0.1), atol=0.02)


def test_nothing_to_draw():
    assert [x.tolist() for x in bounds([], np.zeros((0, 4, 4)))] == [[-1, -1, -1], [1, 1, 1]]
