"""Contacts of two shapes against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contact.scenes import CONVEX, KINDS, MOVING, at, cube, detect, pose, shape, touching
from pliant import shapes, spatial
from pliant.contact import Collider


def one(contacts):
    assert contacts.count == 1
    return contacts.point[0], contacts.normal[0], contacts.distance[0]


@given(st.integers(0, 10**6))
def test_two_spheres(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.1, 1, 2)
    there = pose(rng)
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    gap = rng.uniform(-0.5 * min(a, b), 0.1)
    other = spatial.pose(there[:3, 3] + direction * (a + b + gap))
    point, normal, distance = one(detect(shapes.sphere(a), shapes.sphere(b), there, other, margin=0.2))
    assert distance == pytest.approx(gap, abs=1e-12)
    np.testing.assert_allclose(normal, direction, atol=1e-12)
    np.testing.assert_allclose(point, there[:3, 3] + direction * (a + gap / 2), atol=1e-12)


@given(st.integers(0, 10**6))
def test_sphere_and_plane(seed):
    rng = np.random.default_rng(seed)
    radius, gap = rng.uniform(0.1, 1), rng.uniform(-0.1, 0.1)
    there = pose(rng)
    centre = there[:3, :3] @ [*rng.uniform(-50, 50, 2), radius + gap] + there[:3, 3]
    for moving in (True, False):  # a plane may move, or be the world's
        collider = Collider(
            [(0, shapes.plane()), (1, shapes.sphere(radius))],
            2,
            static=np.array([not moving, False]),
            margin=0.2,
        )
        point, normal, distance = one(collider.detect(np.stack([there, spatial.pose(centre)])))
        assert distance == pytest.approx(gap, abs=1e-12)
        np.testing.assert_allclose(normal, there[:3, 2], atol=1e-12)
        np.testing.assert_allclose(point, centre - (radius + gap / 2) * there[:3, 2], atol=1e-11)


@given(st.integers(0, 10**6), st.sampled_from(["face", "edge", "corner"]))
def test_sphere_and_box(seed, feature):
    rng = np.random.default_rng(seed)
    half, radius = rng.uniform(0.2, 1, 3), rng.uniform(0.05, 0.3)
    nearest = half * rng.uniform(-0.9, 0.9, 3)
    out = np.zeros(3)
    axes = rng.permutation(3)[: ("face", "edge", "corner").index(feature) + 1]
    signs = rng.choice([-1, 1], len(axes))
    nearest[axes] = half[axes] * signs
    out[axes] = signs * rng.uniform(0.2, 1, len(axes))
    out /= np.linalg.norm(out)
    gap = rng.uniform(-0.9 * radius, 0.05)
    there = pose(rng)
    centre = spatial.transform_points(there, (nearest + out * (radius + gap))[None])[0]
    found = detect(shapes.box(half), shapes.sphere(radius), there, spatial.pose(centre), margin=0.1)
    point, normal, distance = one(found)
    assert distance == pytest.approx(gap, abs=1e-9)
    np.testing.assert_allclose(normal, there[:3, :3] @ out, atol=1e-9)
    np.testing.assert_allclose(point, centre - normal * (radius + gap / 2), atol=1e-9)


@given(st.integers(0, 10**6))
def test_crossing_capsules(seed):
    """Axes that cross at an angle: the nearest points are inside both segments."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.05, 0.2, 2)
    gap = rng.uniform(-0.05, 0.05)
    angle = rng.uniform(0.3, np.pi - 0.3)
    x, y = rng.uniform(-0.4, 0.4, 2)
    # Both lie in planes z = const, crossing above the origin.
    first = spatial.pose((x, 0, 0), spatial.so3_exp((0, np.pi / 2, 0)))
    along = np.array([np.cos(angle), np.sin(angle), 0.0])
    turn = spatial.so3_exp((0, 0, angle)) @ spatial.so3_exp((0, np.pi / 2, 0))
    second = spatial.pose(y * along + (0, 0, a + b + gap), turn)
    move = pose(rng)
    found = detect(shapes.capsule(a, 0.5), shapes.capsule(b, 0.5), move @ first, move @ second, margin=0.1)
    point, normal, distance = one(found)
    assert distance == pytest.approx(gap, abs=1e-9)
    np.testing.assert_allclose(normal, move[:3, 2], atol=1e-9)
    np.testing.assert_allclose(point, move[:3, :3] @ [0, 0, a + gap / 2] + move[:3, 3], atol=1e-9)


@given(st.integers(0, 10**6))
def test_a_box_stands_on_its_four_corners(seed):
    rng = np.random.default_rng(seed)
    half, depth = rng.uniform(0.1, 1, 3), rng.uniform(1e-6, 0.01)
    ground = pose(rng)
    corners = np.array([[x, y, -half[2]] for x in (-1, 1) for y in (-1, 1)]) * [*half[:2], 1]
    resting = ground @ at(0.3, -0.2, half[2] - depth)
    found = detect(shapes.plane(), shapes.box(half), ground, resting)
    assert found.count == 4
    np.testing.assert_allclose(found.distance, -depth, atol=1e-12)
    np.testing.assert_allclose(found.normal, np.tile(ground[:3, 2], (4, 1)), atol=1e-12)
    expected = spatial.transform_points(resting, corners + np.array([0, 0, depth / 2]))
    assert max(np.abs(found.point - e).max(axis=1).min() for e in expected) < 1e-12


def test_a_box_stands_on_a_box():
    found = detect(shapes.box((1, 1, 1)), shapes.box((0.4, 0.3, 0.2)), np.eye(4), at(0.1, 0.2, 1.199))
    np.testing.assert_allclose(found.distance, -0.001, atol=1e-9)
    np.testing.assert_allclose(found.normal, np.tile([0.0, 0, 1], (found.count, 1)), atol=1e-9)
    expected = [(x, y, 0.9995) for x in (-0.3, 0.5) for y in (-0.1, 0.5)]
    assert max(np.abs(found.point - e).max(axis=1).min() for e in expected) < 1e-9


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_mesh_of_a_cube_is_a_box(margin):
    """The same distance and normal, and points at the same corners of the patch."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        half = rng.uniform(0.1, 0.5, 3)
        ball, ground = shapes.sphere(0.2), shapes.plane()
        there = pose(rng)
        for other, place in ((ball, pose(rng, 0.6)), (ground, there @ at(0, 0, -half[2] + 1e-3))):
            as_box = detect(shapes.box(half), other, there, place, margin).copy()
            as_mesh = detect(cube(half), other, there, place, margin)
            inside = other is ball and (np.abs(spatial.se3_inverse(there) @ place)[:3, 3] < half).all()
            if inside:
                continue  # several faces may be as near
            assert (as_box.count > 0) == (as_mesh.count > 0)
            if as_box.count:
                assert as_mesh.distance.min() == pytest.approx(as_box.distance.min(), abs=1e-6)
                np.testing.assert_allclose(as_mesh.normal[0], as_box.normal[0], atol=1e-4)


# --- all kinds ---------------------------------------------------------------------------------------------------


def supports(shape_):
    """The extent of a convex shape beyond its body's origin in a direction."""
    a, b, c = shape_.size

    def extent(direction):
        x, y, z = d = shape_.pose[:3, :3].T @ direction
        offset = shape_.pose[:3, 3] @ direction
        if shape_.kind == "sphere":
            return offset + a
        if shape_.kind == "box":
            return offset + np.abs(d) @ shape_.size
        if shape_.kind == "ellipsoid":
            return offset + np.linalg.norm(d * (a, b, c))
        if shape_.kind == "capsule":
            return offset + a + b * abs(z)
        if shape_.kind == "cylinder":
            return offset + a * np.hypot(x, y) + b * abs(z)
        return offset + (shape_.mesh.vertices @ d).max()

    return extent


FLAT = ("box", "cylinder", "mesh")  # with faces and edges: several points, each with a normal of its own


def gap_error(seed, first, second):
    """Reported distance less the gap that supports tell along the reported normal; infinite if nothing is found."""
    rng = np.random.default_rng(seed)
    a, b = shape(rng, first), shape(rng, second)
    here, there = touching(rng, a, b, rng.uniform(-0.003, 0.01))
    found = detect(a, b, here, there, margin=0.03)
    if not found.count:
        return np.inf
    nearest = np.argmin(found.distance)
    normal = found.normal[nearest]
    assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
    end = normal @ here[:3, 3] + supports(a)(here[:3, :3].T @ normal)
    start = normal @ there[:3, 3] - supports(b)(there[:3, :3].T @ -normal)
    return abs(float(found.distance[nearest] - (start - end)))


@given(st.integers(0, 10**6), st.sampled_from(CONVEX), st.sampled_from([k for k in CONVEX if k not in FLAT]))
def test_convex_shapes_are_as_far_apart_as_they_say(seed, first, second):
    """Along the normal, supports tell the gap: all of `first` is on one side, all of `second` on the other."""
    exact = {"sphere", "ellipsoid"} & {first, second}
    # Where several points are reported, the nearest of them may be a little off.
    assert gap_error(seed, first, second) <= (1e-5 if exact else 5e-3)


@pytest.mark.parametrize("first", FLAT)
@pytest.mark.parametrize("second", FLAT)
def test_flat_shapes_are_as_far_apart_as_they_say_as_a_rule(first, second):
    """The collider's points of two flat shapes miss the gap in some cases: of 1,350 seeds 2 %, of meshes 8 %."""
    errors = np.array([gap_error(seed, first, second) for seed in range(100)])
    assert (errors <= 5e-3).mean() >= 0.88


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from(CONVEX))
def test_the_normal_points_from_the_first_to_the_second(seed, first, second):
    """Both orders of two bodies: the opposite normal. Moving apart along it ends the contact."""
    rng = np.random.default_rng(seed)
    a, b = shape(rng, first), shape(rng, second)
    here, there = touching(rng, a, b, -0.002)
    found = detect(a, b, here, there).copy()
    back = detect(b, a, there, here)
    assert found.count > 0
    assert back.count > 0
    for contacts in (found, back):
        assert np.array_equal(contacts.first, np.zeros(contacts.count))
        assert np.array_equal(contacts.second, np.ones(contacts.count))
    one, two = np.argmin(found.distance), np.argmin(back.distance)
    assert found.distance[one] == pytest.approx(back.distance[two], abs=1e-3)
    np.testing.assert_allclose(found.normal[one], -back.normal[two], atol=0.1)
    apart = there.copy()
    apart[:3, 3] += found.normal[one] * (0.005 - found.distance[one])
    assert detect(a, b, here, apart).count == 0


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from(CONVEX))
def test_a_scene_moved_as_a_whole_has_the_same_contacts(seed, first, second):
    rng = np.random.default_rng(seed)
    a, b = shape(rng, first), shape(rng, second)
    here, there = pose(rng, 0.05), pose(rng, 0.3)
    move = pose(rng, 10.0)
    found = detect(a, b, here, there, margin=0.05).copy()
    moved = detect(a, b, move @ here, move @ there, margin=0.05)
    assert (found.count > 0) == (moved.count > 0)
    if not found.count:
        return
    # Which points of a patch are reported may depend on rounding; how deep it is does not.
    assert moved.distance.min() == pytest.approx(found.distance.min(), abs=1e-6)
    if first in ("sphere", "plane") or second in ("sphere",):
        np.testing.assert_allclose(moved.point, spatial.transform_points(move, found.point), atol=1e-4)
        np.testing.assert_allclose(moved.normal, found.normal @ move[:3, :3].T, atol=1e-4)


@pytest.mark.parametrize("first", CONVEX)
@pytest.mark.parametrize("second", CONVEX)
def test_a_margin_is_where_contacts_begin(first, second):
    rng = np.random.default_rng(5)
    a, b = shape(rng, first), shape(rng, second)
    here, there = pose(rng, 0.05), pose(rng, 0.05)
    there[:3, 3] += (1.5, 0.3, 0.2)
    for _ in range(10):  # between boxes far apart MuJoCo underestimates the distance
        far = detect(a, b, here, there, margin=3.0)
        there[:3, 3] -= far.normal[0] * (far.distance[0] - 0.01)
    gap = detect(a, b, here, there, margin=0.1).distance.min()
    assert 0.005 < gap < 0.02
    assert detect(a, b, here, there, margin=1.05 * gap).count > 0
    assert detect(a, b, here, there, margin=0.95 * gap).count == 0


def test_planes_and_height_fields_do_not_touch_each_other():
    ground = shapes.height_field(np.zeros((3, 3)), (1, 1))
    for a in (shapes.plane(), ground):
        for b in (shapes.plane(), ground):
            assert Collider([(0, a), (1, b)], 2, static=MOVING).detect(np.stack([np.eye(4)] * 2)).count == 0
