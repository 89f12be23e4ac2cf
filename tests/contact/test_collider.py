"""Scenes of many shapes: broad phase against brute force, filters, memory, messages."""

import os
import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from contact.scenes import CONVEX, KINDS, MOVING, at, by_mujoco, detect, on_body
from formats import corpus
from pliant import shapes, spatial
from pliant.contact import Collider, adjacent_pairs, colliding_shapes, overlapping_pairs, static_bodies
from pliant.errors import InputError, PliantError
from pliant.shapes import Mesh, Shape

BALL = shapes.sphere(0.1)


def same(a, b):
    fields = ("first", "second", "shape_first", "shape_second", "point", "normal", "distance")
    return a.count == b.count and all(np.array_equal(getattr(a, f), getattr(b, f)) for f in fields)


# --- broad phase ---------------------------------------------------------------------------------------------------


def brute_force(scene, poses, static, ignore, margin):
    """Every shape a body of its own, within bounds so wide that MuJoCo sees every pair: {pair: (distance, points)}."""
    order = sorted(
        range(len(scene)), key=lambda i: scene[i][0]
    )  # of two equal kinds, the lower body comes first
    collider = Collider(
        [(k, scene[i][1]) for k, i in enumerate(order)],
        len(order),
        static=np.zeros(len(order), bool),
        margin=margin,
    )
    model = collider._model
    model.geom_rbound[:] = np.maximum(model.geom_rbound, 1e4)
    model.geom_aabb[:, 3:] = np.maximum(model.geom_aabb[:, 3:], 1e4)
    placed = np.array([poses[scene[i][0]] if scene[i][0] >= 0 else np.eye(4) for i in order])
    found = by_mujoco(collider).detect(placed.reshape(-1, 4, 4))
    out = {}
    for a, b, distance in zip(
        found.first.tolist(), found.second.tolist(), found.distance.tolist(), strict=True
    ):
        i, j = order[a], order[b]
        one, two = scene[i][0], scene[j][0]
        still = (one < 0 or static[one]) and (two < 0 or static[two])
        if one != two and not still and (one, two) not in ignore:
            nearest, count = out.get((i, j), (np.inf, 0))
            out[i, j] = min(nearest, distance), count + 1
    return out


@pytest.mark.parametrize("group", range(10))
def test_broad_phase_misses_nothing(group):
    """Bodies of several shapes, moving and static, near and far from the origin, with and without margin."""
    touching = 0
    for seed in range(40 * group, 40 * group + 40):
        rng = np.random.default_rng(seed)
        bodies = int(rng.integers(2, 7))
        kinds = CONVEX if seed % 3 else KINDS
        scene = [
            (b, on_body(rng, rng.choice(kinds)))
            for b in range(-1, bodies)
            for _ in range(int(rng.integers(0, 5)))
        ]
        scene = [scene[i] for i in rng.permutation(len(scene))]
        centre = rng.uniform(-1, 1, 3) * (0 if seed % 2 else 50)
        spread = rng.uniform(0.2, 1.0)
        poses = spatial.pose(
            centre + rng.uniform(-spread, spread, (bodies, 3)),
            spatial.quat_normalize(rng.normal(size=(bodies, 4))),
        )
        static = rng.random(bodies) < 0.2
        every = [(a, b) for a in range(-1, bodies) for b in range(a + 1, bodies)]
        ignore = [every[i] for i in np.flatnonzero(rng.random(len(every)) < 0.2)]
        margin = float(rng.choice([0.0, 0.1]))
        found = Collider(scene, bodies, static=static, ignore=ignore, margin=margin).detect(poses)
        ours = {}
        for a, b, d in zip(found.shape_first, found.shape_second, found.distance, strict=True):
            nearest, count = ours.get((int(a), int(b)), (np.inf, 0))
            ours[int(a), int(b)] = min(nearest, float(d)), count + 1
        expected = brute_force(scene, poses, static, set(ignore), margin)
        assert set(ours) == set(expected), seed
        for pair, (distance, count) in expected.items():
            assert ours[pair] == (pytest.approx(distance, abs=1e-9), count), (seed, pair)
        assert (found.first < found.second).all()
        assert np.array_equal(found.first, [scene[i][0] for i in found.shape_first])
        assert np.array_equal(found.second, [scene[i][0] for i in found.shape_second])
        touching += len(expected)
    assert touching > 100


@pytest.mark.parametrize("planes", [1, 2, 5])
def test_many_static_planes(planes):
    """MuJoCo lists pairs with them twice, in a list as long as there are pairs."""
    scene = [(b, shapes.plane()) for b in range(-1, planes)] + [(planes + b, BALL) for b in range(12)]
    static = np.arange(planes + 12) < planes
    poses = spatial.pose(np.random.default_rng(0).uniform(-0.01, 0.01, (planes + 12, 3)))
    found = Collider(scene, planes + 12, static=static).detect(poses)
    assert found.count == 12 * (planes + 1) + 12 * 11 // 2


@given(st.integers(0, 10**6))
def test_the_least_penetration_is_seen(seed):
    """A body that rests must not be overlooked at times, whatever precision bounding volumes are sorted in."""
    rng = np.random.default_rng(seed)
    offset = rng.uniform(-100, 100, 3)
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    found = detect(BALL, BALL, spatial.pose(offset), spatial.pose(offset + direction * (0.2 - 1e-12)))
    assert found.count == 1


def test_detection_is_deterministic():
    rng = np.random.default_rng(0)
    scene = [(b, on_body(rng, rng.choice(CONVEX))) for b in range(20) for _ in range(3)]
    poses = spatial.pose(rng.uniform(-0.7, 0.7, (20, 3)), spatial.quat_normalize(rng.normal(size=(20, 4))))
    collider = Collider(scene, 20, static=np.zeros(20, bool))
    first = collider.detect(poses).copy()
    assert first.count > 20
    collider.detect(np.ascontiguousarray(poses[::-1]))
    assert same(first, collider.detect(poses))
    assert same(first, Collider(scene, 20, static=np.zeros(20, bool)).detect(poses))


def test_contacts_are_kept_by_a_copy():
    collider = Collider([(0, BALL), (1, BALL)], 2, static=MOVING)
    touching, apart = np.stack([at(0, 0, 0), at(0.15, 0, 0)]), np.stack([at(0, 0, 0), at(1, 0, 0)])
    kept = collider.detect(touching).copy()
    assert len(collider.detect(apart)) == 0
    assert len(kept) == 1
    assert kept.distance[0] == pytest.approx(-0.05)
    assert "1" in repr(kept)


def test_nothing_to_collide():
    assert Collider([], 0, static=np.zeros(0, bool)).detect(np.zeros((0, 4, 4))).count == 0
    only_seen = [(0, BALL.with_role("visual")), (1, BALL)]
    assert Collider(only_seen, 2, static=MOVING).detect(np.stack([np.eye(4)] * 2)).count == 0
    # What is only looked at keeps its place in the numbering.
    three = [(0, BALL.with_role("visual")), (0, BALL), (1, BALL.with_role("collision"))]
    found = Collider(three, 2, static=MOVING).detect(np.stack([np.eye(4), at(0.1, 0, 0)]))
    assert (found.shape_first[0], found.shape_second[0]) == (1, 2)


# --- memory --------------------------------------------------------------------------------------------------------


def test_no_contact_is_dropped_when_memory_runs_out(tmp_path, monkeypatch):
    """80 boxes in one place: 3160 pairs of 4 points or more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pliant.contact.collider._MEMORY", 1 << 16)
    monkeypatch.setattr("pliant.contact.collider._MOST_KEPT", 0)
    rng = np.random.default_rng(0)
    scene = [(b, shapes.box((0.5, 0.5, 0.5))) for b in range(80)]
    poses = spatial.pose(rng.uniform(-0.1, 0.1, (80, 3)))
    collider = Collider(scene, 80, static=np.zeros(80, bool))
    small, before = collider._memory, mujoco.get_mju_user_warning()
    found = collider.detect(poses)
    assert collider._memory > small
    assert len(set(zip(found.first.tolist(), found.second.tolist(), strict=True))) == 3160
    assert os.listdir(tmp_path) == []  # MuJoCo has left no log
    assert mujoco.get_mju_user_warning() is before


def test_too_many_contacts_are_refused(monkeypatch):
    monkeypatch.setattr("pliant.contact.collider._MEMORY", 1 << 12)
    monkeypatch.setattr("pliant.contact.collider._MOST_MEMORY", 1 << 14)
    monkeypatch.setattr("pliant.contact.collider._MOST_KEPT", 0)
    scene = [(b, BALL) for b in range(30)]
    with pytest.raises(InputError, match="are bodies at the same place"):
        Collider(scene, 30, static=np.zeros(30, bool)).detect(np.stack([np.eye(4)] * 30))


def test_bodies_at_the_same_place():
    """No direction is the right one; any is fine, as long as it is one."""
    for a in CONVEX:
        for b in CONVEX:
            rng = np.random.default_rng(1)
            one, two = (replace(on_body(rng, kind), pose=np.eye(4)) for kind in (a, b))
            found = detect(one, two, np.eye(4), np.eye(4))
            assert found.count > 0
            np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-9)
            assert (found.distance < 0).all()


# --- messages ------------------------------------------------------------------------------------------------------

FLAT = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]), np.array([[0, 1, 2]], dtype=np.int32))
FEW = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2]], dtype=np.int32))
THIN = Mesh(FLAT.vertices * (1, 1, 0) + [[0, 0, 0], [0, 0, 1e-9], [0, 0, 0], [0, 0, 0]], FLAT.faces)
ROW = Mesh(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0.0]]), np.zeros((0, 3), dtype=np.int32))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Shape("sphere", (0.0, 0, 0)), "sphere of size .* positive, finite"),
        (Shape("box", (1.0, np.nan, 1.0)), "box of size .* positive, finite"),
        (Shape("capsule", (1.0, 0.0, 0.0)), "capsule of size"),
        (Shape("mesh", (0.0, 0, 0), mesh=FLAT), "no volume.*thickness"),
        (Shape("mesh", (0.0, 0, 0), mesh=THIN), "no volume"),
        (Shape("mesh", (0.0, 0, 0), mesh=FEW), "no volume"),
        (Shape("mesh", (0.0, 0, 0)), "wrong data"),
        (Shape("height field", (1.0, 1, 1), mesh=ROW), "2 rows"),
        (Shape("torus", (1.0, 1, 1)), "unknown kind"),
        (Shape("sphere", (1.0, 0, 0), pose=np.full((4, 4), np.nan)), "not finite"),
    ],
)
def test_unusable_shapes_are_refused_by_name(bad, message):
    with pytest.raises(InputError, match=rf"'thumb'.*{message}"):
        Collider([(0, BALL), (1, bad)], 2, static=MOVING, names=["palm", "thumb"])
    with pytest.raises(InputError, match="'world'"):
        Collider([(0, BALL), (-1, bad)], 2, static=MOVING, names=["palm", "thumb"])
    assert Collider([(0, BALL), (1, bad.with_role("visual"))], 2, static=MOVING)


def test_unusable_arguments_are_refused():
    scene = [(0, BALL), (1, BALL)]
    for margin in (-0.1, np.nan, np.inf):
        with pytest.raises(InputError, match="margin"):
            Collider(scene, 2, static=MOVING, margin=margin)
    with pytest.raises(InputError, match="static"):
        Collider(scene, 2, static=np.zeros(3, bool))
    with pytest.raises(InputError, match="no body 2"):
        Collider([(2, BALL)], 2, static=MOVING)
    with pytest.raises(InputError, match="no body -2"):
        Collider(scene, 2, static=MOVING, ignore=[(0, -2)])
    with pytest.raises(InputError, match="3 names"):
        Collider(scene, 2, static=MOVING, names=["a", "b", "c"])
    collider = Collider(scene, 2, static=MOVING, names=["palm", "thumb"])
    poses = np.stack([np.eye(4)] * 2)
    poses[1, 0, 3] = np.nan
    with pytest.raises(InputError, match=r"'thumb'.*not finite"):
        collider.detect(poses)
    with pytest.raises(InputError, match=r"\(2, 4, 4\)"):
        collider.detect(np.eye(4)[None])


# --- mechanisms ----------------------------------------------------------------------------------------------------


def arm():
    """World - (fixed) base - (fixed) mast - hinge - upper - hinge - lower - (fixed) tool; and a free ball."""
    b = pliant.Builder("arm")
    for name, height in (("base", 0), ("mast", 0.5), ("upper", 1), ("lower", 2), ("tool", 2.5), ("ball", 5)):
        b.body(name, mass=1, inertia=(1, 1, 1), position=(0, 0, height), shapes=[shapes.sphere(0.4)])
    b.fixed("stand", "world", "base")
    b.fixed("bolt", "base", "mast")
    b.hinge("shoulder", "mast", "upper", anchor=(0, 0, 1), axis=(0, 1, 0))
    b.hinge("elbow", "upper", "lower", anchor=(0, 0, 2), axis=(0, 1, 0))
    b.fixed("grip", "lower", "tool")
    b.free("flight", "world", "ball")
    return b.build()


def test_neighbours():
    m = arm()
    names = {tuple(m.body_names[i] for i in pair) for pair in adjacent_pairs(m)}
    assert names == {
        ("base", "mast"),
        ("base", "upper"),
        ("mast", "upper"),
        ("upper", "lower"),
        ("upper", "tool"),
        ("lower", "tool"),
    }
    assert static_bodies(m).tolist() == [True, True, False, False, False, False]


def test_what_overlaps_at_the_reference_pose():
    m = arm()
    names = {tuple(m.body_names[i] for i in pair) for pair in overlapping_pairs(m)}
    assert names == {("mast", "upper"), ("lower", "tool")}  # base and mast overlap too, but neither moves


WHEELS = ("shared", "dm_control", "gymnasium_robotics", "example-robot-data")


@pytest.mark.parametrize(
    ("wheel", "step"),
    [*((w, 12) for w in WHEELS), *(pytest.param(w, 1, marks=pytest.mark.slow) for w in WHEELS)],
)
def test_real_robots(wheel, step):
    """Their own filter leaves them without contact within themselves at the reference pose."""
    root, (_, refused) = corpus.folder(wheel), corpus.EXPECTED[wheel]
    if wheel == "shared" and not root.is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    colliders = 0
    for file in corpus.files(wheel)[2::step]:
        if file.relative_to(root).as_posix() in refused:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                m = pliant.load(file)
            except PliantError:
                continue
        ignore = [*adjacent_pairs(m), *overlapping_pairs(m)]
        collider = Collider(
            colliding_shapes(m), m.body_count, static=static_bodies(m), ignore=ignore, names=m.body_names
        )
        found = collider.detect(m.reference_poses)
        assert (found.first[found.distance < 0] < 0).all(), file
        assert np.isfinite(found.point).all()
        colliders += collider._model.ngeom > 0
    assert colliders > 0


def test_a_random_pose_of_a_robot_is_seen_as_by_mujoco():
    """A hand, closed at random: the pairs of bodies in contact are those MuJoCo finds in its own model."""
    file = next((f for f in corpus.files("shared") if f.name == "right_hand.xml"), None)
    if file is None:
        pytest.skip("the folder shared/models is not beside the project")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = pliant.load(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    collider = Collider(colliding_shapes(m), m.body_count, static=static_bodies(m), names=m.body_names)
    seen = 0
    for _ in range(20):
        low, high = model.jnt_range.T
        data.qpos[:] = rng.uniform(low, high)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        expected = set()
        for geoms in data.contact.geom.tolist():
            a, b = sorted(int(model.geom_bodyid[g]) - 1 for g in geoms)
            expected.add((a, b))
        poses = np.tile(np.eye(4), (m.body_count, 1, 1))
        poses[:, :3, :3], poses[:, :3, 3] = data.xmat[1:].reshape(-1, 3, 3), data.xpos[1:]
        found = collider.detect(poses)
        ours = set(zip(found.first.tolist(), found.second.tolist(), strict=True))
        excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in model.exclude_signature}
        ours -= {(a - 1, b - 1) for a, b in excluded}
        assert ours == expected
        seen += len(expected)
    assert seen > 20
