"""The grasp: reduced, blended and full hand lift the same things alike."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import trimesh

from pliant import scenes, shapes, spatial
from pliant.errors import InputError

G = 9.81
KINDS = ("reduced", "blended", "full")


def vertebra():
    """The fourth cervical vertebra of a dog, from the test-only wheel dm_control: 3,552 triangles."""
    spec = importlib.util.find_spec("dm_control")
    assert spec is not None, "the test-only wheel 'dm_control' is not installed: run `make setup`"
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "suite" / "dog_assets" / "BONEC_4.stl"
    found = trimesh.load_mesh(file)
    points = np.asarray(found.vertices) - (found.bounds[0] + found.bounds[1]) / 2
    points *= 0.058 / np.ptp(points, axis=0).max()
    points[:, 2] -= points[:, 2].min()
    return shapes.mesh(points, found.faces)


def held(kind, body, seconds=2.0, **arguments):
    """Pose of the thing after a time, and the forces of the fingertips on it."""
    play = scenes.grasp(kind, body, **arguments)
    play.run(seconds)
    name = body if isinstance(body, str) else "body"
    forces = [play.world.contacts.force(name, f"hand/finger{f}_tip") for f in (1, 2, 3)]
    return play.world[name].pose(), np.array(forces)


def differences(one, other):
    """Distance, angle in degrees, and difference of forces over the largest of them."""
    (a, pressed_a), (b, pressed_b) = one, other
    angle = np.degrees(np.linalg.norm(spatial.so3_log(a[:3, :3].T @ b[:3, :3])))
    force = np.linalg.norm(pressed_a - pressed_b, axis=1).max() / np.linalg.norm(pressed_b, axis=1).max()
    return np.linalg.norm(a[:3, 3] - b[:3, 3]), angle, force


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("body", "height"), [("ball", 0.03), ("box", 0.03), ("mesh", 0.0238)])
def test_the_hand_lifts(kind, body, height):
    play = scenes.grasp(kind, body)
    play.run(3.0)
    thing = play.world[body]
    assert thing.position[2] == pytest.approx(height + 0.1, abs=4e-3)
    np.testing.assert_allclose(play.world.contacts.force(body), [0, 0, 0.1 * G], atol=1e-3)
    before = thing.pose()
    play.run(2.0)
    np.testing.assert_allclose(thing.pose(), before, atol=1e-6 if body == "ball" else 1e-4)


@pytest.mark.parametrize("body", ["ball", "box", "mesh", "vertebra"])
def test_reduced_blended_and_full_hand_agree(body):
    """After two seconds: poses within 2 mm and 2 degrees, contact forces within 10 %.

    Statics does not determine how fingertips share the load of the vertebra. The full hand at 1/60 s is 11 % off there:
    it steps at 1/960 s, and forces are within 13 %.
    """
    most, h = (0.13, 1 / 960) if body == "vertebra" else (0.1, 1 / 60)
    body = vertebra() if body == "vertebra" else body
    reduced, blended, full = held("reduced", body), held("blended", body), held("full", body, timestep=h)
    assert full[0][2, 3] > 0.09
    for model in (reduced, blended):
        distance, angle, force = differences(model, full)
        assert distance < 2e-3
        assert angle < 2.0
        assert force < most


@pytest.mark.slow
@pytest.mark.parametrize("body", ["ball", "box"])
@pytest.mark.parametrize("grip", [3.0, 4.0, 6.0])
@pytest.mark.parametrize("friction", [0.6, 0.8, 1.0])
@pytest.mark.parametrize("mass", [0.05, 0.1, 0.2])
def test_they_agree_for_other_grips_and_masses(body, grip, friction, mass):
    given = {"grip": grip, "friction": friction, "mass": mass}
    reduced, blended, full = (held(kind, body, **given) for kind in KINDS)
    for model in (reduced, blended):
        distance, angle, force = differences(model, full)
        assert distance < 2e-3
        assert angle < 2.0
        assert force < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_a_slippery_ball_stays_on_the_floor(kind):
    assert held(kind, "ball", 3.0, friction=0.05)[0][2, 3] == pytest.approx(0.03, abs=1e-3)


@pytest.mark.slow
def test_the_grasp_holds_for_a_minute():
    play = scenes.grasp()
    play.run(3.0)
    before = play.world["ball"].pose()
    play.run(60.0)
    np.testing.assert_allclose(play.world["ball"].pose(), before, atol=1e-5)


def test_a_scene_is_recorded_as_it_is_stepped():
    """What is done to the world is done before every step, whether a pose is kept of it or not."""
    recorded, stepped = scenes.grasp(), scenes.grasp()
    path = recorded.record(45, every=2)
    stepped.step(90)
    assert path.time == pytest.approx(np.arange(1, 46) / 30)
    np.testing.assert_array_equal(path.pose("ball")[-1], stepped.world.pose("ball"))
    np.testing.assert_array_equal(recorded.world.poses, stepped.world.poses)


@pytest.mark.parametrize(
    ("argument", "value"), [("kind", "rigid"), ("mass", 0.0), ("body", "banana"), ("grip", -1.0)]
)
def test_bad_arguments(argument, value):
    with pytest.raises(InputError, match=argument):
        scenes.grasp(**{argument: value})
