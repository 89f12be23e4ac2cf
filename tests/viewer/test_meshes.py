"""Triangles of shapes, and few meshes with many copies that stand for them."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import shapes, spatial
from pliant.viewer.meshes import bounds, decimate, make_parts, place_parts, triangulate


def one(shape, **body):
    b = pliant.Builder("one")
    b.body("body", mass=1.0, inertia=(1, 1, 1), shapes=[shape], **body)
    b.hinge("hinge", "world", "body", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    return b.build()


TETRAHEDRON = ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
SHAPES = {
    "sphere": shapes.sphere(0.5),
    "box": shapes.box((0.5, 0.3, 0.2)),
    "capsule": shapes.capsule(0.2, 0.4),
    "cylinder": shapes.cylinder(0.3, 0.4),
    "ellipsoid": shapes.ellipsoid((0.5, 0.3, 0.2)),
    "mesh": shapes.mesh(*TETRAHEDRON),
}
VOLUMES = {name: shape.mass_properties()[0] for name, shape in SHAPES.items()}


# --- triangles


@pytest.mark.parametrize("name", SHAPES)
def test_triangles_enclose_the_shape_and_face_outward(name):
    t = triangulate(
        one(SHAPES[name], position=(1, 2, 3), orientation=(0.6, 0, 0.8, 0)),
        one(SHAPES[name]).reference_poses,
        1,
    )
    a, b, c = np.moveaxis(t.corners, 1, 0)
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6  # positive if all faces are turned outward
    assert volume == pytest.approx(VOLUMES[name], rel=0.02)
    assert not t.two_sided.any()


def test_triangles_follow_the_bodies():
    m = one(SHAPES["box"])
    poses = np.array(m.reference_poses)
    poses[0, :3, 3] = (1, 2, 3)
    centre = triangulate(m, poses, 1).corners.reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(centre, (1, 2, 3), atol=1e-12)


def test_a_plane_has_two_sides_and_ends_somewhere():
    t = triangulate(one(shapes.plane()), np.eye(4)[None], 7.0)
    assert t.two_sided.all()
    assert np.abs(t.corners).max() == 7.0


def fine_sphere(n):
    angle, up = np.meshgrid(
        np.linspace(0, 2 * np.pi, n, endpoint=False), np.linspace(-1, 1, n), indexing="ij"
    )
    points = np.stack(
        [np.cos(angle) * np.sqrt(1 - up**2), np.sin(angle) * np.sqrt(1 - up**2), up], axis=2
    ).reshape(-1, 3)
    i, j = (x.ravel() for x in np.meshgrid(np.arange(n), np.arange(n - 1), indexing="ij"))
    a, b, c, d = i * n + j, (i + 1) % n * n + j, (i + 1) % n * n + j + 1, i * n + j + 1
    return points, np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])


@pytest.mark.parametrize("flip", [False, True])
def test_a_fine_mesh_is_decimated_and_keeps_its_form(flip):
    points, faces = fine_sphere(150)
    corners, two_sided = decimate(points, faces[:, ::-1] if flip else faces, 3000)
    assert 500 < len(corners) <= 3000
    assert not two_sided
    volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6
    assert volume == pytest.approx(4 / 3 * np.pi, rel=0.1)


def test_collision_shapes_do_not_hide_meshes():
    b = pliant.Builder("looks")
    plain, painted = (0.5, 0.5, 0.5, 1.0), (1.0, 0.2, 0.1, 1.0)
    b.body(
        "body",
        mass=1,
        inertia=(1, 1, 1),
        shapes=[
            shapes.box((3, 3, 3), rgba=plain).with_role("collision"),
            shapes.mesh(*TETRAHEDRON, rgba=painted),
        ],
    )
    b.body("bare", mass=1, inertia=(1, 1, 1), shapes=[shapes.sphere(1, rgba=plain).with_role("collision")])
    for name in ("body", "bare"):
        b.hinge(name, "world", name, anchor=(0, 0, 0), axis=(0, 1, 0))
    t = triangulate(b.build(), np.broadcast_to(np.eye(4), (2, 4, 4)), 1)
    assert len(t.corners[t.body == 0]) == 4
    assert (t.body == 1).any()


# --- parts


def corners(parts, poses):
    """Vertices of all copies in the world, by body."""
    out = {}
    for part, (position, wxyz) in zip(parts, place_parts(parts, poses), strict=True):
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
