"""Free bodies: flight, spin, collisions."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import World, shapes

SHAPES = (shapes.box((0.05, 0.08, 0.06)), shapes.sphere(0.05), shapes.capsule(0.04, 0.06))


def totals(world, names):
    return sum(world[n].momentum for n in names), sum(world[n].kinetic for n in names)


def test_flight_is_a_parabola_whatever_the_step():
    world = World(1 / 30)
    world.add_body("stone", SHAPES[0], velocity=(1, 2, 3), spin=(1, 1, 0))
    world.step(30)
    state = world["stone"].position
    np.testing.assert_allclose(state, [1, 2, 3 - 0.5 * 9.81], atol=1e-12)


def test_a_tumbling_body_keeps_angular_momentum_and_energy():
    world = World(1 / 60, gravity=(0, 0, 0))
    world.add_body("racket", shapes.box((0.02, 0.1, 0.3)), spin=(0.01, 9.0, 0.01))  # about the unstable axis
    body = world["racket"]
    momentum, kinetic = body.momentum, body.kinetic
    flipped = 0.0
    for _ in range(600):
        world.step()
        flipped = min(flipped, body.pose()[1, 1])
    np.testing.assert_allclose(body.momentum, momentum, atol=1e-12)
    assert body.kinetic == pytest.approx(kinetic, rel=1e-10)
    assert flipped < -0.9  # it did tumble


def test_spin_about_a_symmetry_axis_turns_at_the_right_rate():
    world = World(1 / 60, gravity=(0, 0, 0))
    world.add_body("top", shapes.cylinder(0.05, 0.02), spin=(0, 0, 2 * np.pi))
    world.step(60)
    np.testing.assert_allclose(world["top"].pose()[:3, :3], np.eye(3), atol=1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_collisions_conserve_momentum_and_gain_no_energy(seed):
    rng = np.random.default_rng(seed)
    world = World(1 / 60, gravity=(0, 0, 0))
    names = [f"body{i}" for i in range(2 + seed % 4)]
    for i, name in enumerate(names):
        angle = 2 * np.pi * i / len(names)
        place = 0.3 * np.array([np.cos(angle), np.sin(angle), 0.3 * np.sin(3 * angle)])
        world.add_body(
            name,
            SHAPES[(i + seed) % 3],
            mass=rng.uniform(0.1, 3),
            position=place,
            velocity=-2 * place + 0.1 * rng.normal(size=3),
            spin=rng.normal(size=3),
            restitution=0.5 * (seed % 2),
        )
    before, energy = totals(world, names)
    start, touched = energy, 0
    for _ in range(120):
        world.step()
        now, kinetic = totals(world, names)
        touched += len(world.contacts) > 0 and np.abs(world.contacts.forces).max() > 0
        np.testing.assert_allclose(now, before, atol=1e-9)
        assert kinetic <= energy * (1 + 1e-9)
        energy = kinetic
    assert touched
    assert energy < 0.99 * start


def test_two_equal_balls_exchange_their_velocities():
    world = World(1 / 240, gravity=(0, 0, 0))
    for name, x, v in (("a", 0.0, 1.0), ("b", 0.2, 0.0)):
        world.add_body(name, shapes.sphere(0.05), position=(x, 0, 0), velocity=(v, 0, 0), restitution=1.0)
    world.step(100)
    np.testing.assert_allclose(world["a"].twist(), 0, atol=1e-9)
    np.testing.assert_allclose(world["b"].twist()[:3], [1, 0, 0], atol=1e-9)


def test_wrenches_in_world_and_body_axes():
    """A force at a point off the centre of mass, in axes that turn and in such that do not."""
    world = World(1e-4, gravity=(0, 0, 0))
    for name, y in (("a", 0.0), ("b", 5.0)):
        world.add_body(name, shapes.box((0.1, 0.2, 0.3), position=(0.1, 0, 0)), mass=2.0, position=(0, y, 0))
    world["a"].apply_wrench("a", force=(0, 0, 1), point=(0.6, 0, 0))
    world["b"].apply_wrench(force=(0, 0, 1), point=(0.6, 0, 0), frame="body")
    world.step(10)
    for name in "ab":
        twist = world[name].twist(point=(0.1, 0, 0))  # of the centre of mass
        np.testing.assert_allclose(twist[:3], [0, 0, 1e-3 / 2], atol=1e-9)
        inertia = 2.0 / 3 * (0.1**2 + 0.3**2)
        np.testing.assert_allclose(twist[3:], [0, -1e-3 * 0.5 / inertia, 0], rtol=1e-6, atol=1e-9)
    world["a"].clear_wrenches()
    before = world["a"].twist(point=(0.1, 0, 0))
    world.step(10)
    np.testing.assert_allclose(world["a"].twist(point=(0.1, 0, 0)), before, atol=1e-12)
