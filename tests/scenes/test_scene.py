"""`Scene`: mechanisms and worlds behind the same words."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.errors import InputError
from pliant.scenes import Scene


@pytest.mark.parametrize("engine", ["reduced", "constrained", "quasistatic"])
def test_a_mechanism_starts_with_its_loads_and_is_acted_on(engine):
    m, times = pliant.gallery.helix(6), []

    def act(simulation, time):
        times.append(time)
        simulation.apply_wrench("link6", force=(0, 0, 1.0))

    scene = Scene(m, engine, 0.01, gravity=(0, 0, 0), act=act)
    by_hand = scene.simulate()
    assert (by_hand.engine, by_hand.timestep, scene.mechanism) == (engine, 0.01, m)
    by_hand.apply_wrench("link6", force=(0, 0, 1.0))
    by_hand.step(20)
    scene.step(4)
    scene.run(0.06)
    path = scene.record(5, every=2)
    np.testing.assert_allclose(times, 0.01 * np.arange(20), atol=1e-12)
    np.testing.assert_array_equal(scene.running.poses, by_hand.poses)
    np.testing.assert_array_equal(path.poses[-1], by_hand.poses)
    assert scene.simulate(0.005).timestep == 0.005
    with pytest.raises(InputError, match="has no world"):
        _ = scene.world


def test_start_velocity_wrenches_and_motors_are_those_of_the_scene():
    m = pliant.gallery.arm()
    start = m.reference.copy()
    start[m.dof_coordinate[0]] += 0.1
    rates = np.zeros(m.nv)
    rates[1] = 0.5
    tip, joint = m.body_names[-1], m.joint_names[0]
    scene = Scene(
        m,
        start=start,
        velocity=rates,
        wrenches={tip: (1.0, 2.0, 3.0)},
        motors={joint: {"torque": 0.5}},
        options={"tolerance": 1e-6},
    )
    s = scene.simulate()
    np.testing.assert_allclose(s.q, start, atol=1e-14)
    np.testing.assert_allclose(s.velocity, rates, atol=1e-12)
    np.testing.assert_array_equal(s.wrenches[tip].force, (1, 2, 3))
    assert s.motors[m.dof_names[0]].torque == 0.5
    np.testing.assert_array_equal(s.gravity, (0, 0, -9.81))


def test_a_world_is_its_own_simulation():
    world, acted = pliant.World(1 / 100), []
    world.add_body("ball", pliant.shapes.sphere(0.1), mass=1.0)
    scene = Scene(world, act=lambda it, time: acted.append((it, time)))
    assert (scene.engine, scene.timestep, scene.world, scene.running) == ("world", 1 / 100, world, world)
    assert scene.mechanism.body_names == ("ball",)
    scene.run(0.03)
    assert [it for it, _ in acted] == [world] * 3
    np.testing.assert_allclose([time for _, time in acted], [0, 0.01, 0.02], atol=1e-12)
    with pytest.raises(InputError, match=r"scene\.world"):
        scene.simulate()
    still = Scene(world)
    still.step(2)
    assert world.time == pytest.approx(0.05)
