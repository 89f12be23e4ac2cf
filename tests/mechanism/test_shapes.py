"""Mass properties of shapes against closed forms and a fine mesh; refusals."""

import numpy as np
import pytest

from pliant import shapes
from pliant.errors import InputError


def samples(shape, n=400_000):
    """Volume, centroid and inertia by uniform random points in a bounding box."""
    rng = np.random.default_rng(0)
    half = 1.2 * (max(shape.size) + (shape.size[0] if shape.kind == "capsule" else 0))
    p = rng.uniform(-half, half, size=(n, 3))
    a, b, c = shape.size
    radial = p[:, 0] ** 2 + p[:, 1] ** 2
    if shape.kind == "capsule":
        inside = radial + np.maximum(np.abs(p[:, 2]) - b, 0) ** 2 < a * a
    elif shape.kind == "cylinder":
        inside = (radial < a * a) & (np.abs(p[:, 2]) < b)
    elif shape.kind == "ellipsoid":
        inside = ((p / np.array([a, b, c])) ** 2).sum(axis=1) < 1
    elif shape.kind == "sphere":
        inside = (p**2).sum(axis=1) < a * a
    else:
        inside = (np.abs(p) < np.array([a, b, c])).all(axis=1)
    p = p[inside]
    second = p.T @ p / len(p)
    return (2 * half) ** 3 * len(p) / n, np.trace(second) * np.eye(3) - second


@pytest.mark.parametrize(
    "shape",
    [
        shapes.sphere(0.5),
        shapes.box((0.3, 0.4, 0.5)),
        shapes.capsule(0.3, 0.5),
        shapes.cylinder(0.4, 0.6),
        shapes.ellipsoid((0.3, 0.5, 0.7)),
    ],
    ids=lambda s: s.kind,
)
def test_mass_properties_by_sampling(shape):
    volume, centre, unit = shape.mass_properties()
    expected, second = samples(shape)
    assert volume == pytest.approx(expected, rel=0.02)
    assert np.allclose(unit, second, atol=0.02 * np.abs(second).max())
    assert np.allclose(centre, 0)


def test_mesh_of_a_box_equals_the_box():
    corners = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.4, 0.4) for z in (-0.5, 0.5)])
    faces = [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
        [1, 5, 7],
        [1, 7, 3],
    ]
    where = {"position": (1, 2, 3), "orientation": (0.8, 0.6, 0, 0)}
    ours = shapes.mesh(corners, faces, **where).mass_properties()
    box = shapes.box((0.3, 0.4, 0.5), **where).mass_properties()
    assert ours[0] == pytest.approx(box[0], rel=1e-12)
    assert np.allclose(ours[1], box[1], atol=1e-12)
    assert np.allclose(ours[2], box[2], atol=1e-12)


@pytest.mark.parametrize("end", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (1, 2, 3), (0, 1e-9, -1)])
def test_rod_points_from_start_to_end(end):
    rod = shapes.rod((0, 0, 0), end, 0.1)
    assert np.allclose(rod.pose[:3, :3] @ [0, 0, rod.size[1]], np.array(end) / 2)
    assert np.linalg.det(rod.pose[:3, :3]) == pytest.approx(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: shapes.sphere(0),
        lambda: shapes.sphere(-1),
        lambda: shapes.sphere(np.nan),
        lambda: shapes.sphere("x"),  # pyright: ignore[reportArgumentType]
        lambda: shapes.box((1, 2)),
        lambda: shapes.box((1, 2, 0)),
        lambda: shapes.capsule(1, -1),
        lambda: shapes.ellipsoid(3),
        lambda: shapes.sphere(1, rgba=(1, 2, 3, 4)),
        lambda: shapes.sphere(1, position=(0, np.inf, 0)),
        lambda: shapes.mesh([[0, 0, 0]], [[0, 1, 2]]),
        lambda: shapes.mesh([[0, 0]], [[0, 0, 0]]),
        lambda: shapes.mesh([[0, 0, np.nan]], [[0, 0, 0]]),
        lambda: shapes.rod((0, 0, 0), (0, 0, 0), 1),
        lambda: shapes.plane().mass_properties(),
    ],
)
def test_refusals(make):
    with pytest.raises(InputError):
        make()


def test_roles():
    ball = shapes.sphere(0.1)
    assert ball.role == "both"
    assert ball.with_role("visual").role == "visual"
    with pytest.raises(InputError, match="role"):
        ball.with_role("decoration")
