"""Height fields: what touches them, how they are drawn, saved and exported."""

import warnings

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from contact.scenes import at, by_mujoco, detect, pose
from pliant import shapes, spatial
from pliant.contact import Collider
from pliant.errors import InputError, MechanismError
from pliant.viewer.meshes import triangulate


def nearest(contacts):
    c = np.argmin(contacts.distance)
    return contacts.point[c], contacts.normal[c], contacts.distance[c]


@given(st.integers(0, 10**6), st.booleans())
def test_a_flat_field_is_a_plane(seed, level):
    rng = np.random.default_rng(seed)
    height = 0.0 if level else rng.uniform(-3, 3)
    field = shapes.height_field(np.full(rng.integers(2, 9, 2), height), (1.0, 2.0), depth=0.5)
    radius, gap = rng.uniform(0.05, 0.2), rng.uniform(-0.04, 0.04)
    there = pose(rng)
    where = np.array([*rng.uniform(-0.7, 0.7, 2), height + radius + gap])
    centre = spatial.transform_points(there, where[None])[0]
    found = detect(field, shapes.sphere(radius), there, spatial.pose(centre), margin=0.05)
    point, normal, distance = nearest(found)
    assert distance == pytest.approx(gap, abs=1e-7)
    np.testing.assert_allclose(normal, there[:3, 2], atol=1e-5)
    np.testing.assert_allclose(point, centre - (radius + gap / 2) * there[:3, 2], atol=1e-5)


@given(st.integers(0, 10**6))
def test_a_slope_is_a_tilted_plane(seed):
    """Rows follow y, columns x."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-0.3, 0.3, 2)
    x, y = np.meshgrid(np.linspace(-1, 1, 7), np.linspace(-2, 2, 5))
    field = shapes.height_field(a * x + b * y + 0.3, (1.0, 2.0))
    up = np.array([-a, -b, 1.0]) / np.linalg.norm([-a, -b, 1.0])
    where = np.array([*rng.uniform(-0.6, 0.6, 2), 0.0])
    where[2] = a * where[0] + b * where[1] + 0.3
    gap = rng.uniform(-0.03, 0.03)
    found = detect(field, shapes.sphere(0.1), np.eye(4), spatial.pose(where + (0.1 + gap) * up), margin=0.05)
    _, normal, distance = nearest(found)
    assert distance == pytest.approx(gap, abs=1e-6)
    np.testing.assert_allclose(normal, up, atol=1e-4)


@pytest.mark.parametrize("flip", [False, True])
def test_cells_are_cut_along_the_diagonal_that_is_drawn(flip):
    """Two opposite corners of a cell are up: either the diagonal between them is a ridge, or the other a valley."""
    heights = np.array([[1.0, 0.0], [0.0, 1.0]])
    field = shapes.height_field(heights[:, ::-1] if flip else heights, (1.0, 1.0))
    corners = field.mesh.vertices[field.mesh.faces]
    shared = set(map(int, field.mesh.faces[0])) & set(map(int, field.mesh.faces[1]))
    middle = field.mesh.vertices[list(shared), 2].mean()
    assert corners.shape == (2, 3, 3)
    # A ball much smaller than the cell, just above the middle of what is drawn.
    assert detect(field, shapes.sphere(0.01), np.eye(4), at(0, 0, middle + 0.02)).count == 0
    assert detect(field, shapes.sphere(0.01), np.eye(4), at(0, 0, middle)).count > 0


def test_a_wide_body_touches_all_cells_under_it():
    """MuJoCo reports at most 50 points of one pair of geoms, the first it finds: a row of cells."""
    field = shapes.height_field(np.zeros((60, 50)), (1.0, 1.2))
    found = detect(field, shapes.box((0.5, 0.4, 0.1)), np.eye(4), at(0.1, 0.2, 0.099))
    assert (np.abs(found.distance + 0.001) < 1e-6).mean() > 0.95  # at the rim the way out may be to the side
    np.testing.assert_allclose(found.point.min(axis=0)[:2], (-0.4, -0.2), atol=0.05)
    np.testing.assert_allclose(found.point.max(axis=0)[:2], (0.6, 0.6), atol=0.05)
    assert found.count > 500
    assert set(found.shape_first.tolist()) == {0}
    assert set(found.shape_second.tolist()) == {1}


def test_a_slim_body_meets_the_field_in_one_piece():
    """The longest rod that does touches fewer triangles than MuJoCo reports of a pair, wherever it lies."""
    rng = np.random.default_rng(3)
    field = shapes.height_field(rng.uniform(0, 0.02, (41, 41)), (1.0, 1.0))  # cells of 5 cm
    most = 0
    for radius in (0.01, 0.03, 0.05):
        half = 0.5 * 0.05 * (18 / (2 * radius / 0.05 + 2) - 2) - radius
        slim, wide = (
            by_mujoco(
                Collider(
                    [(0, field), (1, shapes.capsule(radius, x * half))],
                    2,
                    static=np.array([True, False]),
                    margin=0.02,
                )
            )
            for x in (1 - 1e-6, 1 + 1e-6)
        )
        assert (slim._model.ngeom, wide._model.ngeom) == (2, 65)
        for _ in range(300):
            level, yaw, roll = (
                spatial.so3_exp((0, np.pi / 2, 0)),
                rng.uniform(0, np.pi),
                rng.uniform(-0.1, 0.1),
            )
            there = np.eye(4)
            there[:3, :3] = spatial.so3_exp((0, 0, yaw)) @ spatial.so3_exp((0, roll, 0)) @ level
            there[:3, 3] = *rng.uniform(-0.6, 0.6, 2), radius + rng.uniform(0.0, 0.01)
            poses = np.stack([np.eye(4), there])
            a, b = slim.detect(poses).distance.copy(), wide.detect(poses).distance.copy()
            most = max(most, len(a))
            assert len(a) == len(b)
            np.testing.assert_allclose(np.sort(a), np.sort(b), atol=1e-5)
    assert 25 < most < 50


def test_tiles_are_the_field():
    """A field is cut into tiles as well when something wide is around; a small ball does not notice."""
    rng = np.random.default_rng(2)
    field = shapes.height_field(rng.uniform(0, 0.1, (23, 17)), (1.0, 1.2), position=(0.1, 0, 0.2))
    ball, wide = shapes.sphere(0.03), shapes.box((1, 1, 1))
    whole = by_mujoco(Collider([(0, field), (1, ball)], 2, static=np.array([True, False])))
    tiled = by_mujoco(Collider([(0, field), (1, ball), (2, wide)], 3, static=np.array([True, False, False])))
    assert whole._model.ngeom == 2 < tiled._model.ngeom - 10
    touched = 0
    for _ in range(300):
        there = spatial.pose([*rng.uniform(-0.9, 0.9, 2), rng.uniform(0.2, 0.35)])
        a = whole.detect(np.stack([np.eye(4), there]))
        b = tiled.detect(np.stack([np.eye(4), there, at(100, 0, 0)]))
        assert a.count == b.count
        np.testing.assert_allclose(np.sort(a.distance), np.sort(b.distance), atol=1e-6)
        touched += a.count > 0
    assert 50 < touched < 250


def test_heights_come_back():
    heights = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(shapes.height_field(heights, (1, 2)).heights, heights)
    with pytest.raises(InputError, match="a box has no heights"):
        shapes.box((1, 1, 1)).heights


@pytest.mark.parametrize(
    "make",
    [
        lambda: shapes.height_field([[1.0, 2.0]], (1, 1)),
        lambda: shapes.height_field([1.0, 2.0], (1, 1)),
        lambda: shapes.height_field([[1.0, np.nan], [0, 0]], (1, 1)),
        lambda: shapes.height_field([[1.0, 2.0], [0, 0]], (1, 0)),
        lambda: shapes.height_field([[1.0, 2.0], [0, 0]], (1, 1, 1)),
        lambda: shapes.height_field([[1.0, 2.0], [0, 0]], (1, np.inf)),
        lambda: shapes.height_field([[1.0, 2.0], [0, 0]], (1, 1), depth=-1),
        lambda: shapes.height_field([["a", 2.0], [0, 0]], (1, 1)),
    ],
)
def test_unusable_fields_are_refused(make):
    with pytest.raises(InputError, match="height field"):
        make()


# --- elsewhere in pliant -----------------------------------------------------------------------------------------


@pytest.fixture
def terrain():
    rng = np.random.default_rng(0)
    hills = shapes.height_field(rng.uniform(-0.2, 0.7, (4, 6)), (1.0, 2.0), depth=0.3, position=(1, 2, 3))
    b = pliant.Builder("terrain")
    b.world_shape(hills)
    b.body("ball", mass=1.0, inertia=(1, 1, 1), shapes=[shapes.sphere(0.1), hills])
    b.free("free", "world", "ball")
    return b.build()


def test_a_field_has_no_mass():
    with pytest.raises(InputError, match="has no volume"):
        shapes.height_field(np.zeros((2, 2)), (1, 1)).mass_properties()
    b = pliant.Builder("massless")
    with pytest.raises(MechanismError, match="give mass"):
        b.body("hill", shapes=[shapes.height_field(np.zeros((2, 2)), (1, 1))])
        b.free("free", "world", "hill")
        b.build()


def test_a_field_is_drawn(terrain):
    found = triangulate(terrain, terrain.reference_poses, 1.0).only(slice(None))  # pyright: ignore[reportArgumentType]
    field = found.body == -1
    assert field.sum() == 2 * 3 * 5
    assert found.two_sided[field].all()
    a, b, c = np.moveaxis(found.corners[field], 1, 0)
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()
    heights = terrain.shapes("world")[0].heights
    assert found.corners[field][:, :, 2].max() == pytest.approx(3 + heights.max())


def test_a_field_is_saved(terrain, tmp_path):
    terrain.save(tmp_path / "terrain.json")
    again = pliant.load(tmp_path / "terrain.json")
    for body in ("world", "ball"):
        ours, other = terrain.shapes(body)[-1], again.shapes(body)[-1]
        assert (other.kind, other.size) == ("height field", ours.size)
        assert np.array_equal(ours.heights, other.heights)
    assert len(again.shape_table.meshes) == 1


@pytest.mark.parametrize("change", ["size", "face", "vertex", "kind"])
def test_a_damaged_field_is_refused(terrain, tmp_path, change):
    import json

    path = tmp_path / "terrain.json"
    terrain.save(path)
    document = json.loads(path.read_text())
    if change == "size":
        document["shapes"]["size"][0][0] = 1.5
    elif change == "face":
        document["meshes"][0]["faces"][0][0] = 5
    elif change == "vertex":
        document["meshes"][0]["vertices"][3][0] = 0.1
    else:
        document["shapes"]["mesh"][0] = -1
    path.write_text(json.dumps(document))
    with pytest.raises(MechanismError, match="mesh"):
        pliant.load(path)


def test_a_field_goes_to_mujoco_and_back(terrain, tmp_path):
    text = terrain.to_mjcf()
    model = mujoco.MjModel.from_xml_string(text)
    assert (model.hfield_nrow[0], model.hfield_ncol[0]) == (4, 6)
    (tmp_path / "terrain.xml").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pliant.load(tmp_path / "terrain.xml")
    ours, other = terrain.shapes("world")[0], again.shapes("world")[0]
    assert other.kind == "height field"
    surface = [spatial.transform_points(s.pose, s.mesh.vertices) for s in (ours, other)]
    np.testing.assert_allclose(surface[0], surface[1], atol=1e-6)
    assert other.size == pytest.approx(ours.size)


def test_a_field_from_a_file_is_left_out(tmp_path):
    (tmp_path / "hills.xml").write_text(
        '<mujoco><asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset><worldbody>'
        '<geom type="hfield" hfield="h"/><body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    )
    with pytest.warns(pliant.errors.UnsupportedWarning, match="1 x height field"):
        assert len(pliant.load(tmp_path / "hills.xml").shapes("world")) == 0
