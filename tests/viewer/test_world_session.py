"""A world in a live view, without a browser: time, pulls, contacts, numbers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.errors import InputError, UnknownNameError
from pliant.gallery.worlds import Play
from pliant.viewer.world_session import WorldSession

WEIGHT = 2.0 * 9.81


def box_world():
    """A box of 2 kg on the floor."""
    world = pliant.World(1 / 100)
    world.add_static("floor", pliant.shapes.plane(1, 1))
    world.add_body("box", pliant.shapes.box((0.1, 0.1, 0.1)), mass=2.0, position=(0, 0, 0.1))
    return world


@pytest.fixture
def session():
    return WorldSession(box_world())


def test_begins_as_the_world_is(session):
    assert session.playing
    assert session.time == 0
    assert session.mechanism.name == "floor, box"
    assert session.mechanism.body_names == ("box",)
    np.testing.assert_array_equal(session.poses, session.world.poses[:1])


def test_contact_forces_carry_the_weight(session):
    session.step(100)
    found = session.contacts
    assert len(found) >= 3
    np.testing.assert_allclose(found.forces.sum(axis=0), (0, 0, WEIGHT), atol=1e-3 * WEIGHT)
    np.testing.assert_allclose(found.points[:, 2], 0, atol=1e-3)
    np.testing.assert_allclose(session.force_on("box"), (0, 0, WEIGHT), atol=1e-3 * WEIGHT)
    now = session.measure()
    assert now.contacts == len(found)
    assert now.force == np.linalg.norm(found.forces, axis=1).sum()
    assert now.force > 0.999 * WEIGHT  # friction may push inwards besides
    assert 0 <= now.depth < 1e-4
    assert found.largest == np.linalg.norm(found.forces, axis=1).max()
    assert list(session.history) == [now]


def test_pulling_lifts_and_feels_the_weight(session):
    session.step(10)
    start = session.world["box"].position
    pull = session.pull("mouse", "box", start, np.add(start, (0, 0, 0.5)))
    session.step(300)
    assert session.world["box"].position[2] > 0.2
    # It hangs on its spring at rest: that carries all of it.
    np.testing.assert_allclose(pull.force, (0, 0, WEIGHT), atol=0.01 * WEIGHT)
    np.testing.assert_allclose(pull.place, session.world["box"].position, atol=1e-9)
    assert len(session.contacts) == 0
    session.release("mouse")
    session.step(200)
    np.testing.assert_allclose(session.world["box"].position, start, atol=1e-3)


def test_strength_is_stiffness(session):
    """A spring half as stiff gives way twice as far."""
    session.pull("mouse", "box", (0, 0, 0.1), (0, 0, 1.0))
    sagged = []
    for strength in (1.0, 0.5):
        session.set_strength(strength)
        session.step(800)
        sagged.append(1.0 - session.world["box"].position[2])
    assert sagged[1] == pytest.approx(2 * sagged[0], rel=1e-3)


def test_moving_and_letting_go(session):
    session.move("mouse", (0, 0, 1))
    session.release("mouse")
    session.pull("mouse", "box", (0, 0, 0.1), (0, 0, 0.3))
    session.move("mouse", (0.2, 0, 0.3))
    session.step(300)
    assert session.world["box"].position[0] == pytest.approx(0.2, abs=0.01)
    # Another hand takes over: a body hangs on one spring.
    session.pull("other", "box", session.world["box"].position, (0, 0, 0.3))
    assert list(session.pulls) == ["other"]
    session.release("mouse")
    session.step(300)
    assert session.world["box"].position[0] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("body", "point", "target"),
    [
        ("bix", (0, 0, 0), (0, 0, 0)),
        ("floor", (0, 0, 0), (0, 0, 0)),
        ("world", (0, 0, 0), (0, 0, 0)),
        ("box", (0, 0), (0, 0, 0)),
        ("box", (0, 0, 0), (0, np.nan, 0)),
        ("box", (0, 0, 0), "up"),
    ],
)
def test_pulls_that_are_refused(session, body, point, target):
    with pytest.raises((InputError, UnknownNameError)):
        session.pull("mouse", body, point, target)
    assert not session.pulls
    with pytest.raises(InputError):
        session.set_strength(0)
    session.step()


def test_reset(session):
    session.pull("mouse", "box", (0, 0, 0.1), (0.5, 0, 0.5))
    session.step(50)
    session.measure()
    session.reset()
    assert session.time == 0
    assert not session.pulls
    assert not session.history
    np.testing.assert_array_equal(session.world["box"].position, (0, 0, 0.1))
    assert len(session.contacts) == 0
    session.step(50)
    assert abs(session.world["box"].position[0]) < 1e-6


def test_what_is_done_to_a_world_is_done():
    world = box_world()
    acted = []
    session = WorldSession(Play(world, acted.append))
    session.step(3)
    session.reset()
    assert session.advance(0.02, budget=10.0) == 2
    np.testing.assert_allclose(acted, [0, 0.01, 0.02, 0, 0.01], atol=1e-12)


def test_a_link_of_a_mechanism_is_pulled():
    """A reduced model that touches nothing, which had no need of a solver before."""
    world = pliant.World(1 / 100)
    model = pliant.reduce(pliant.gallery.helix(6))
    world.add(model, "arm")
    session = WorldSession(world)
    session.step(2)
    start = world.pose("arm/link6")[:3, 3]
    session.pull("mouse", "arm/link6", start, np.add(start, (0, 0, 0.05)))
    session.step(50)
    assert world.pose("arm/link6")[2, 3] > start[2]
    assert session.pulls["mouse"].force[2] > 0


def test_two_surfaces_that_both_move_push_each_other():
    world = box_world()
    world.add_body("top", pliant.shapes.box((0.05, 0.05, 0.05)), mass=1.0, position=(0, 0, 0.25))
    session = WorldSession(world)
    session.step(100)
    np.testing.assert_allclose(session.force_on("top"), (0, 0, 9.81), atol=0.02)
    np.testing.assert_allclose(session.force_on("box"), (0, 0, WEIGHT), atol=0.04)


def test_an_empty_world_is_refused():
    with pytest.raises(InputError, match="nothing in this world"):
        WorldSession(pliant.World(1 / 60))
