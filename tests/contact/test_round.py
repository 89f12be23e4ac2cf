"""Round shapes: contacts in closed form beside MuJoCo's, and when MuJoCo's collider has to find them."""

import numpy as np
import pytest

import pliant
from contact.scenes import MOVING, at, by_mujoco, pose, shape
from pliant import shapes, spatial
from pliant.contact import Collider, _detect, _round

PAIRS = (
    ("plane", "sphere"),
    ("plane", "capsule"),
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("height field", "sphere"),
    ("height field", "capsule"),
)


def looked_at(collider, poses):
    """Whether contacts are found in closed form."""
    collider.place(poses)
    return _detect.find(collider.scene, collider.found) != _round.UNKNOWN


def random_pair(rng, kinds):
    """Two bodies of one shape each, near each other, the second one above the first if that is a ground."""
    first, second = (shape(rng, kind) for kind in kinds)
    here, there = pose(rng), pose(rng, 0.3)
    if kinds[0] == "height field":
        first = shapes.height_field(rng.uniform(0, 0.1, (7, 8)), (0.9, 0.8), depth=0.3)
        there[:3, 3] = *rng.uniform(-0.5, 0.5, 2), rng.uniform(0.05, 0.4)
    elif kinds[0] == "plane":
        there[:3, 3] = 0, 0, rng.uniform(0, 0.5)
    return first, second, np.stack([here, here @ there])


@pytest.mark.parametrize("kinds", PAIRS, ids=" and ".join)
@pytest.mark.parametrize("swapped", [False, True])
def test_contacts_are_those_of_mujoco(kinds, swapped):
    """The nearest one is; of a height field MuJoCo reports sides of triangles besides, which are in the ground."""
    touching = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        first, second, poses = random_pair(rng, kinds)
        scene = [(0, second), (1, first)] if swapped else [(0, first), (1, second)]
        poses = np.ascontiguousarray(poses[::-1]) if swapped else poses
        collider = Collider(scene, 2, static=MOVING, margin=0.05)
        if not looked_at(collider, poses):
            assert kinds[0] == "height field"
            continue
        ours = collider.detect(poses).copy()
        theirs = by_mujoco(collider).detect(poses)
        assert (ours.count == 0) == (theirs.count == 0), seed
        if ours.count == 0:
            continue
        touching += 1
        assert ours.count == theirs.count or kinds[0] == "height field", seed
        assert ours.count <= theirs.count, seed
        for c in range(ours.count):
            apart = np.abs(ours.point[c] - theirs.point).max(axis=1)
            apart = np.maximum(apart, np.abs(ours.normal[c] - theirs.normal).max(axis=1))
            same = np.argmin(apart)
            assert apart[same] < 2e-6, (seed, c)
            assert ours.distance[c] == pytest.approx(theirs.distance[same], abs=1e-7), seed
        assert ours.distance.min() == pytest.approx(theirs.distance.min(), abs=1e-7), seed
        for name in ("first", "second", "shape_first", "shape_second"):
            assert set(getattr(ours, name).tolist()) == set(getattr(theirs, name).tolist())
    assert touching > 100


def test_the_distance_of_a_field_is_the_least_of_all_points():
    """Beside the least distance of a grid of points of the segment from a grid of points of the surface."""
    rng, fine, tried = np.random.default_rng(0), np.linspace(0, 1, 41), 0
    a, b = (x.ravel() for x in np.meshgrid(fine, fine))
    a, b = a[a + b <= 1], b[a + b <= 1]
    while tried < 40:
        field = shapes.height_field(rng.uniform(0, 0.08, (5, 6)), (0.5, 0.4))
        half, there = rng.uniform(0, 0.2), pose(rng, 0.15)
        there[2, 3] = rng.uniform(0.1, 0.3)
        collider = Collider([(0, field), (1, shapes.capsule(0.01, half))], 2, static=MOVING, margin=0.2)
        poses = np.stack([np.eye(4), there])
        if not looked_at(collider, poses):
            continue
        found = collider.detect(poses)
        corners = field.mesh.vertices[field.mesh.faces]
        sides = corners[:, 1:] - corners[:, :1]
        surface = (corners[:, :1] + a[:, None] * sides[:, :1] + b[:, None] * sides[:, 1:]).reshape(-1, 3)
        segment = there[:3, 3] + np.linspace(-half, half, 41)[:, None] * there[:3, 2]
        least = min(np.linalg.norm(surface - p, axis=1).min() for p in segment) - 0.01
        if least < 0.19:
            # a point of the grid is at most half a spacing of it away
            assert least - 0.006 < found.distance.min() < least + 1e-9
            tried += 1


def test_others_are_left_to_mujoco():
    plane, ball, rod, box = (
        shapes.plane(),
        shapes.sphere(0.1),
        shapes.capsule(0.05, 0.2),
        shapes.box((0.1, 0.1, 0.1)),
    )
    hills = shapes.height_field(np.random.default_rng(1).uniform(0, 0.05, (9, 9)), (1, 1))
    lying = at(0, 0, 0.09) @ spatial.pose((0, 0, 0), (np.sqrt(0.5), 0, np.sqrt(0.5), 0))

    def known(first, second, there, margin=0.01):
        collider = Collider([(0, first), (1, second)], 2, static=MOVING, margin=margin)
        return looked_at(collider, np.stack([np.eye(4), there]))

    assert known(plane, box, at(0, 0, 0.12))
    assert not known(plane, box, at(0, 0, 0.105))
    assert known(box, ball, at(0.22, 0, 0))
    assert not known(box, ball, at(0.205, 0, 0))
    assert not known(rod, rod, at(0.105, 0, 0))
    assert known(hills, box, at(0, 0, 0.2))
    assert not known(hills, box, at(0, 0, 0.12))
    assert known(hills, rod, lying)
    assert not known(hills, rod, at(0, 0, -0.05) @ lying)  # through the surface
    assert not known(hills, rod, at(0.9, 0, 0) @ lying)  # beyond the rim
    assert known(hills, rod, at(0.9, 0, 0.2) @ lying)
    assert known(hills, ball, at(2, 0, 0))
    assert not known(ball, ball, np.eye(4))  # in one place: any normal would do


def test_many_pairs_are_left_to_mujoco():
    balls = [(b, shapes.sphere(0.1)) for b in range(30)]
    poses = spatial.pose(np.random.default_rng(0).uniform(-0.3, 0.3, (30, 3)))
    for count, few in ((23, True), (24, False)):
        collider = Collider(balls[:count], count, static=np.zeros(count, dtype=bool))
        assert looked_at(collider, poses[:count]) == few
        ours = collider.detect(poses[:count]).copy()
        theirs = by_mujoco(collider).detect(poses[:count])
        assert ours.count == theirs.count > 15
        np.testing.assert_allclose(np.sort(ours.distance), np.sort(theirs.distance), atol=1e-12)


def test_more_contacts_than_there_is_room_for():
    """A rod over hundreds of triangles; in a world the step is taken with more room."""
    field, rod = shapes.height_field(np.zeros((100, 100)), (0.5, 0.5)), shapes.capsule(0.05, 0.3)
    lying = at(0.003, 0.004, 0.0499) @ spatial.pose((0, 0, 0), (np.sqrt(0.5), 0, np.sqrt(0.5), 0))
    collider = Collider([(0, field), (1, rod)], 2, static=MOVING, margin=0.001)
    assert looked_at(collider, np.stack([np.eye(4), lying]))
    assert collider.detect(np.stack([np.eye(4), lying])).count > 100
    world = pliant.World(1 / 60)
    world.add_static("ground", field)
    world.add_body("rod", rod, mass=1.0, position=lying[:3, 3], orientation=lying[:3, :3])
    world.step(60)
    assert world.contacts.force("rod")[2] == pytest.approx(9.81, rel=0.01)


def test_a_walk_is_the_same_by_mujoco():
    """A hexapod comes down on hills: heights of its body and forces of the ground with contacts of either kind."""
    found = []
    for closed in (True, False):
        scene = pliant.scenes.hexapod()
        world = scene.world
        world.step()
        stepper = world._built.stepper
        assert len(stepper.collider.scene.pairs) == 20
        if not closed:
            by_mujoco(stepper.collider)
            stepper._step = None
        scene.run(0.4)
        found.append((world.pose("hexapod/body"), world.contacts.force("hexapod")))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-2, atol=0.1)
