"""Steps taken in one compiled call equal those whose phases are called from Python."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import scenes, shapes, spatial
from pliant.contact import records
from pliant.errors import ConvergenceError
from pliant.gallery import gripper

from .scenes import CONVEX, shape


def drops(count=6, **surface: float):
    """Shapes of all kinds that fall on a floor and on each other."""
    rng = np.random.default_rng(3)
    world = pliant.World(1 / 60)
    world.add_static("floor", shapes.plane(), **surface)
    for i in range(count):
        form = shape(rng, CONVEX[i % len(CONVEX)], 0.1)
        place = (*rng.uniform(-0.1, 0.1, 2), 0.15 + 0.22 * i)
        turn = spatial.quat_normalize(rng.normal(size=4))
        inertia = 1e-3 * np.diag(rng.uniform(0.8, 1.2, 3))
        world.add_body(
            f"b{i}",
            form,
            mass=0.5,
            com=(0, 0, 0),
            inertia=inertia,
            position=place,
            orientation=turn,
            **surface,
        )
    return world


def catcher():
    """A box falls on a gripper with loops, and on to a floor."""
    world = pliant.World(1 / 60)
    world.add(pliant.reduce(gripper()), "robot")
    height = world["robot"].poses[:, 2, 3].max()
    world.add_static("ground", shapes.plane(position=(0, 0, -0.3)))
    world.add_body("box", shapes.box((0.05, 0.04, 0.03)), position=(0.02, 0.01, height + 0.1), mass=0.2)
    return world


def is_compiled(world):
    """Whether several steps are taken in one call."""
    assert world.state.time >= 0  # builds the stepper
    return world._built.stepper.compiled


def by_python(world):
    """The same world with all phases, its model's steps and detection called from Python."""
    assert is_compiled(world)
    stepper = world._built.stepper
    if stepper._model is not None:
        actor, size = stepper.actors[-1], len(stepper._velocities.u)
        stepper._model, stepper._others = (
            None,
            [(len(stepper.actors) - 1, actor, slice(size - actor.size, size))],
        )
    stepper._native = stepper._step = None
    assert not stepper.compiled
    return world


def assert_alike(one, other, steps, tolerance):
    for _ in range(steps // 10):
        one.step(10)
        other.step(10)
        np.testing.assert_allclose(one.poses, other.poses, rtol=0, atol=tolerance)
    a, b = one.contacts, other.contacts
    assert a.bodies == b.bodies
    np.testing.assert_allclose(a.forces, b.forces, rtol=0, atol=tolerance * 1e3)
    assert one.effort.solves == other.effort.solves
    assert one.time == other.time


@pytest.mark.parametrize(
    "surface", [{}, {"restitution": 0.5}, {"rolling": 0.005}, {"compliance": 1e-4}, {"friction": 0.0}]
)
def test_free_bodies(surface):
    assert_alike(drops(**surface), by_python(drops(**surface)), 60, 1e-9)


def test_wrenches_on_free_bodies():
    one, other = drops(2), by_python(drops(2))
    for world in (one, other):
        world["b0"].apply_wrench(force=(0.3, 0, 0.1), torque=(0, 0.01, 0), point=(0.02, 0.01, 0))
        world["b1"].apply_wrench(
            force=(0.3, 0, 0.1), torque=(0, 0.01, 0), point=(0, 0.01, 0.03), frame="body"
        )
    assert_alike(one, other, 40, 1e-9)


def test_a_grasp():
    one, other = scenes.grasp(), scenes.grasp()
    by_python(other.world)
    for _ in range(9):
        one.run(0.25)
        other.run(0.25)
    np.testing.assert_allclose(one.world.poses, other.world.poses, rtol=0, atol=1e-9)
    assert one.world["ball"].position[2] > 0.1


def test_closed_loops():
    world = catcher()
    assert_alike(world, by_python(catcher()), 60, 1e-9)
    assert np.abs(world["robot"].configuration.loop_residual).max() < 1e-6


def test_more_contacts_than_there_is_room_for():
    """A row of boxes: a hundred contacts, where 32 fit at first, come up in the middle of a call."""

    def wall():
        world = pliant.World(1 / 60)
        world.add_static("floor", shapes.plane())
        for i in range(25):
            world.add_body(f"b{i}", shapes.box((0.04, 0.04, 0.04)), position=(0.1 * i, 0, 0.05))
        return world

    one, other = wall(), by_python(wall())
    one.step(30)
    other.step(30)
    assert len(one.contacts) == 100
    np.testing.assert_allclose(one.poses, other.poses, rtol=0, atol=1e-12)


def test_room_grows_more_than_once():
    """40 contacts, then 68: what has room for those is not what had for these."""

    def shower():
        world = pliant.World(1 / 60)
        world.add_static("floor", shapes.plane())
        for i in range(17):
            height = 0.05 if i < 10 else 0.3
            world.add_body(f"b{i}", shapes.box((0.04, 0.04, 0.04)), position=(0.1 * i, 0, height))
        return world

    one, other = shower(), by_python(shower())
    for steps in (10, 30):
        one.step(steps)
        other.step(steps)
    assert len(one.contacts) == 68
    assert one._built.stepper is not None
    assert one._built.stepper.collider.capacity >= 68
    np.testing.assert_allclose(one.poses, other.poses, rtol=0, atol=1e-12)


def test_a_state_is_restored_between_and_within_calls():
    world = drops()
    world.step(40)
    kept = world.state
    world.step(20)
    poses = world.poses
    world.state = kept
    for _ in range(20):
        world.step()
    np.testing.assert_array_equal(world.poses, poses)


def test_what_fails_is_put_back():
    world = drops(2)
    world.step(5)
    before = world.poses
    world["b1"].apply_wrench(force=(1e308, 1e308, 0))
    with pytest.raises(ConvergenceError):
        world.step(100)
    np.testing.assert_array_equal(world.poses, before)


def test_without_the_library_all_goes_by_way_of_python(monkeypatch):
    monkeypatch.setattr(records, "symbols", lambda: False)
    world = drops(2)
    world.step(30)
    assert not is_compiled(world)
    other = drops(2)
    monkeypatch.undo()
    other.step(30)
    assert is_compiled(other)
    np.testing.assert_allclose(world.poses, other.poses, rtol=0, atol=1e-9)


def test_blends_and_whole_mechanisms_go_by_way_of_python():
    full = scenes.grasp("full")
    full.run(0.1)
    assert not is_compiled(full.world)
