"""Worlds of the gallery."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import World, gallery, reduce, shapes, spatial
from pliant.errors import InputError
from pliant.gallery import worlds

G = 9.81


@pytest.mark.parametrize("kind", ["reduced", "full"])
def test_the_hand_lifts_the_ball(kind):
    play = worlds.grasp(kind)
    play.run(3.0)
    ball = play.world["ball"]
    assert ball.position[2] == pytest.approx(0.13, abs=2e-3)
    np.testing.assert_allclose(play.world.contacts.force("ball"), [0, 0, 0.1 * G], atol=1e-3)
    held = ball.pose()
    play.run(2.0)
    np.testing.assert_allclose(ball.pose(), held, atol=1e-6)


def test_reduced_and_full_hand_agree():
    """Where the ball is after the lift, within 2 mm; contact forces, within 10 %."""
    places, forces = [], []
    for kind in ("reduced", "full"):
        play = worlds.grasp(kind)
        play.run(3.0)
        places.append(play.world["ball"].position)
        forces.append([play.world.contacts.force("ball", f"hand/finger{f}_tip") for f in (1, 2, 3)])
    np.testing.assert_allclose(places[0], places[1], atol=2e-3)
    np.testing.assert_allclose(forces[0], forces[1], atol=0.1 * np.linalg.norm(forces[1][0]))


@pytest.mark.parametrize("kind", ["reduced", "full"])
def test_a_slippery_ball_stays_on_the_floor(kind):
    play = worlds.grasp(kind, friction=0.05)
    play.run(3.0)
    assert play.world["ball"].position[2] == pytest.approx(0.03, abs=1e-3)


@pytest.mark.slow
def test_the_grasp_holds_for_a_minute():
    play = worlds.grasp()
    play.run(3.0)
    held = play.world["ball"].pose()
    play.run(60.0)
    np.testing.assert_allclose(play.world["ball"].pose(), held, atol=1e-5)


def test_bad_arguments():
    with pytest.raises(InputError, match="kind"):
        worlds.grasp("rigid")
    with pytest.raises(InputError, match="mass"):
        worlds.grasp(mass=0.0)


def _shape(rng, scale):
    a, b, c = rng.uniform(0.3, 1.0, 3) * scale
    kind = rng.integers(4)
    return (shapes.sphere(a), shapes.box((a, b, c)), shapes.capsule(a, b), shapes.cylinder(a, b))[kind]


@pytest.mark.parametrize("name", ["hand", "gripper", "hexapod", "crane", "firefighters", "bicycle_chain"])
@pytest.mark.parametrize("whole", [False, True])
def test_random_things_fall_on_a_mechanism(name, whole):
    """Nothing leaves the finite numbers, nothing ends up below the floor."""
    m = gallery.make(name)
    rng = np.random.default_rng(len(name))
    at = m.reference_poses[:, :3, 3]
    low, high = at.min(axis=0), at.max(axis=0)
    size = max(np.linalg.norm(high - low), 0.1)
    world = World(1 / 60)
    world.add(m if whole else reduce(m), "mechanism")
    floor = low[2] - 0.5 * size
    world.add_static("floor", shapes.plane(position=(0, 0, floor)))
    world.ignore("mechanism", "floor")
    for i in range(4):
        place = (*rng.uniform(low[:2], high[:2]), high[2] + 0.1 + size * (0.6 + 0.4 * i))
        turn = spatial.quat_normalize(rng.normal(size=4))
        world.add_body(
            f"thing{i}",
            _shape(rng, 0.15 * size),
            mass=rng.uniform(0.05, 0.5),
            position=place,
            orientation=turn,
        )
    touched = 0
    for _ in range(120):
        world.step()
        touched += len(world.contacts) > 0
    assert touched
    assert np.isfinite(world.poses).all()
    assert min(world[f"thing{i}"].position[2] for i in range(4)) > floor
