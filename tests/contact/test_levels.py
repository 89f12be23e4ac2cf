"""Levels of detail: reduced, blended and full, in the middle of a motion."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import shapes
from pliant.errors import InputError

H = 1 / 60


def chain(count=8):
    """A chain of hinges about two axes: more joints than one end effector can tell apart."""
    b = pliant.Builder("chain")
    above = "world"
    for i in range(count):
        name = f"link{i}"
        b.body(
            name,
            mass=0.05,
            position=(0.1 * (i + 1), 0, 0),
            shapes=[shapes.rod((-0.1, 0, 0), (0, 0, 0), 0.01)],
        )
        axis = (0, 1, 0) if i % 2 else (0, 0, 1)
        b.hinge(f"j{i}", above, name, anchor=(0.1 * i, 0, 0), axis=axis, stiffness=2.0 + 0.3 * i, damping=0.2)
        above = name
    b.end_effectors(f"link{count - 1}")
    return b.build()


def world_of(what, gravity=(0.0, 0.0, 0.0), **options):
    world = pliant.World(H, gravity)
    world.add(what, "it", **options)
    return world


def test_a_whole_mechanism_starts_where_its_model_is_and_as_fast():
    m = chain()
    world = world_of(pliant.reduce(m, modes=2))
    world["it"].apply_wrench("link7", force=(0, 0.3, 0.5), torque=(0.01, 0, 0), point=(0.01, 0, 0))
    world.step(20)
    poses, time = world.poses, world.time
    rates = world["it"].velocity
    assert np.abs(rates).max() > 0.1
    assert world.switch("it", m) < 1e-12
    np.testing.assert_allclose(world.poses, poses, atol=1e-12)
    assert world.time == time
    np.testing.assert_allclose(world["it"].velocity, rates, atol=1e-12)
    world.step(1800)
    found = pliant.equilibrium(
        m, {"link7": {"force": (0, 0.3, 0.5), "torque": (0.01, 0, 0), "point": (0.01, 0, 0)}}
    )
    np.testing.assert_allclose(world["it"].pose("link7"), found.pose("link7"), atol=1e-4)


def test_a_model_comes_as_near_as_it_can_and_says_how_near():
    m = chain()
    world = world_of(m)
    world["it"].apply_wrench("link7", force=(0, 0.4, 0.6), frame="body")
    world.step(30)
    poses = world.poses
    jump = world.switch("it", pliant.reduce(m))
    moved = np.linalg.norm(world.poses[:, :3, 3] - poses[:, :3, 3], axis=1).max()
    assert jump == pytest.approx(moved)
    assert 1e-4 < jump < 1e-3
    world.step(300)
    assert np.isfinite(world.poses).all()
    assert world["it"].wrenches["link7"].frame == "body"
    np.testing.assert_allclose(world["it"].wrenches["link7"].force, (0, 0.4, 0.6))


def test_with_all_joints_told_apart_nothing_jumps():
    m = chain(4)
    model = pliant.reduce(m, [f"link{i}" for i in range(4)])
    world = world_of(m)
    world["it"].apply_wrench("link3", force=(0, 0.5, 0.5))
    world.step(25)
    poses, velocity = world.poses, world["it"].velocity
    assert world.switch("it", model) < 1e-12
    assert world.switch("it", m) < 1e-12
    np.testing.assert_allclose(world.poses, poses, atol=1e-12)
    np.testing.assert_allclose(world["it"].velocity, velocity, atol=1e-9)


def test_loops_are_closed():
    m = pliant.gallery.gripper()
    model = pliant.reduce(m)
    body = model.end_effectors[0]
    world = world_of(model)
    world["it"].apply_wrench(body, force=(0.3, 0, 0.2))
    world.step(60)
    jump = world.switch("it", m)
    assert 0 < jump < 1e-3 * m.radius * 10
    assert world["it"].violation < 1e-9


def test_a_blend_is_a_level_too():
    m = chain()
    load = {"link7": {"force": (0, 0, 1.0)}}
    blend = pliant.blend([pliant.reduce(m), pliant.reduce(m, at=pliant.equilibrium(m, load))])
    world = world_of(pliant.reduce(m))
    world["it"].apply_wrench("link7", force=(0, 0, 0.5))
    world.step(120)
    simulation = world["it"]
    assert world.switch("it", blend) < 0.02
    assert world["it"] is simulation
    assert world.level("it") is blend
    world.step(120)
    assert world.switch("it", m) < 1e-12
    jump = world.switch("it", blend)
    assert jump < 1e-3


def test_a_floating_base_goes_along():
    m = pliant.gallery.hexapod()
    model = pliant.reduce(m)
    world = pliant.World(H)
    world.add(model, "robot")
    world.add_static("floor", shapes.plane(position=(0, 0, -0.3)))
    assert model.base is not None
    base = model.base.body
    world["robot"].move_base(velocity=(0.3, 0.1, 0.2), spin=(0.2, 0.1, 1.0))
    world.step(5)
    v, rates, twist = world["robot"].base_velocity, world["robot"].velocity, world["robot"].twist(base)
    poses = world.poses
    assert world.switch("robot", m) < 1e-12
    np.testing.assert_allclose(world.poses, poses, atol=1e-12)
    np.testing.assert_allclose(world["robot"].velocity, rates, atol=1e-12)
    np.testing.assert_allclose(world["robot"].twist(base), twist, atol=1e-12)
    assert world.switch("robot", model) < 1e-12
    np.testing.assert_allclose(world["robot"].base_velocity, v, atol=1e-9)
    world.step(240)
    weight = m.mass.sum() * 9.81
    np.testing.assert_allclose(world.contacts.force("floor"), [0, 0, -weight], rtol=1e-2, atol=0.1)


def test_contacts_go_on():
    """A tip that presses on a block goes on pressing, without a blow."""
    m = chain(4)
    model = pliant.reduce(m, [f"link{i}" for i in range(4)])
    world = world_of(model)
    world.add_static("block", shapes.box((0.1, 0.1, 0.05), position=(0.4, 0, -0.061)))
    world["it"].apply_wrench("link3", force=(0, 0, -2.0))
    world.step(240)
    force = world.contacts.force("block")[2]
    assert force < -1.0
    for to in (m, model, m):
        assert world.switch("it", to) < 1e-9
        for _ in range(10):
            world.step()
            assert world.contacts.force("block")[2] == pytest.approx(force, rel=0.05)


# --- automatic


def test_levels_are_chosen_by_the_error():
    m = chain()
    model = pliant.reduce(m)
    world = world_of(model)
    error = 2e-3
    world.detail("it", [model, m], error)
    alone = world_of(m)
    levels, jumps, apart = [], [], []
    poses = world.poses
    for k in range(900):
        force = 0.8 * min(k / 150, 1.0) if k < 450 else 0.8 * max(1 - (k - 450) / 150, 0.0)
        for w in (world, alone):
            w["it"].apply_wrench("link7", force=(0, 0, force))
            w.step()
        levels.append(world.level("it") is m)
        jumps.append(np.linalg.norm(world.poses[:, :3, 3] - poses[:, :3, 3], axis=1).max())
        apart.append(np.linalg.norm(world.poses[-1, :3, 3] - alone.poses[-1, :3, 3]))
        poses = world.poses
    assert all(levels[150:450])
    assert not levels[0]
    assert not levels[-1]
    assert sum(a != b for a, b in zip(levels[1:], levels[:-1], strict=True)) == 2
    # while it moves by a model it is about as wrong as allowed; afterwards it is right
    assert max(apart) < 5 * error
    assert max(apart[350:450]) < 1e-4
    # nothing jumps: no body goes further in a step than those of the whole mechanism do, and the error
    assert max(jumps) < 0.01 + error


def test_states_and_reset():
    m = chain()
    model = pliant.reduce(m)
    world = world_of(model)
    world["it"].apply_wrench("link7", force=(0, 0, 0.5))
    world.step(20)
    world.switch("it", m)
    kept = world.state
    world.step(10)
    poses = world.poses
    world.state = kept
    world.step(10)
    np.testing.assert_array_equal(world.poses, poses)
    world.reset()
    assert world.level("it") is model
    assert world.time == 0.0
    np.testing.assert_allclose(world.poses, model.mechanism.reference_poses, atol=1e-12)


def test_torques_go_along():
    """From a model to the whole mechanism and back, up to a blend, which takes none."""
    m = chain()
    model = pliant.reduce(m)
    world = world_of(model)
    world["it"].set_motor("j1", torque=0.2)
    world.step(200)
    tip = world.pose("it/link7")
    world.switch("it", m)
    world.step(400)
    np.testing.assert_allclose(world.pose("it/link7"), tip, atol=2e-3)  # a model is linear
    assert np.abs(tip - m.reference_poses[7]).max() > 0.05
    world.switch("it", model)
    assert world["it"].motors == {"j1": (0.2, 0.0, 0.0, 0.0, 0.0)}


# --- bad input


def test_what_cannot_go_along_is_refused_and_nothing_changes():
    m = chain()
    model = pliant.reduce(m)
    world = world_of(m)
    world["it"].apply_wrench("link3", force=(0, 0, 0.1))
    with pytest.raises(InputError, match="a wrench acts on 'link3'"):
        world.switch("it", pliant.reduce(m, inertia="operational"))  # moves by the linear step
    world["it"].clear_wrenches()
    world["it"].set_motor("j0", target=0.1, stiffness=5.0)
    with pytest.raises(InputError, match="clear_motors"):
        world.switch("it", model)
    assert world.level("it") is m
    world["it"].clear_motors()
    handle = world["it"]
    world.switch("it", model)
    handle.apply_wrench("link7", force=(0, 0, 1))  # a handle goes along
    assert "link7" in world.simulation("it").wrenches


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda w: w.switch("it", chain(5)), "another mechanism"),
        (lambda w: w.switch("it", "full"), "ReducedModel, BlendedModel or Mechanism expected"),
        (lambda w: w.switch("ball", chain()), "'ball' is no mechanism"),
        (lambda w: w.switch("itt", chain()), "has no 'itt'"),
        (lambda w: w.detail("it", [chain()], -1.0), "error above 0"),
        (lambda w: w.detail("it", ["full"], 1.0), "models or mechanisms expected"),
    ],
)
def test_bad_input(act, message):
    world = world_of(chain())
    world.add_body("ball", shapes.sphere(0.1), position=(0, 0, 3))
    world.step(3)
    poses = world.poses
    with pytest.raises(InputError, match=message):
        act(world)
    np.testing.assert_array_equal(world.poses, poses)
    world.step(3)
