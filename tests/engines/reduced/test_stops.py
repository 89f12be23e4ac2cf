"""Joint limits in motion: reduced models stop there, alone, in batches and in worlds."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import Builder, World, shapes

LOWER, UPPER = -0.4, 0.3
RANGE = UPPER - LOWER


def arm(damping=0.4, links=4):
    """Hinges about y and z in turns, along x, with limits; a ball at the tip."""
    b, parent = Builder("arm"), "world"
    for i in range(links):
        body = "tip" if i == links - 1 else f"link{i}"
        ball = [shapes.sphere(0.05)] if body == "tip" else []
        place = (0.3 * (i + 1), 0, 0)
        b.body(body, mass=0.5, inertia=(0.01, 0.01, 0.01), position=place, shapes=ball)
        axis = ((0, 1, 0), (0, 0, 1))[i % 2]
        given = {"stiffness": 20.0, "damping": damping, "limits": (LOWER, UPPER)}
        b.hinge(f"joint{i}", parent, body, anchor=(0.3 * i, 0, 0), axis=axis, **given)
        parent = body
    return b.build()


def passed(q):
    """How far joints are beyond their limits, as a share of the range."""
    return max((q - UPPER).max(), (LOWER - q).max(), 0.0) / RANGE


@pytest.mark.parametrize("h", [1 / 60, 5e-3, 1e-3])
@pytest.mark.parametrize("damping", [0.4, 0.004])
def test_joints_stop_as_those_of_the_whole_mechanism(h, damping):
    """A sudden push beyond two limits; nothing is lost by reduction: two ways for the tip to go and two modes."""
    m = arm(damping)
    model = pliant.ReducedSimulation(pliant.reduce(m, modes=2), h)
    whole = pliant.ConstrainedSimulation(m, h / 4, gravity=(0, 0, 0))
    for simulation in (model, whole):
        simulation.apply_wrench("tip", force=(0, 3, -12))
    error = stopped = 0.0
    for _ in range(round(1.5 / h)):
        model.step()
        whole.step(4)
        assert passed(model.q) < 1e-6
        stopped += bool((np.abs(model.q - UPPER) < 1e-9).any())
        error = max(error, float(np.abs(model.pose("tip")[:3, 3] - whole.pose("tip")[:3, 3]).max()))
    assert stopped > 0.3 / h
    assert error < 1.5e-3  # m; it moves by 0.4


def test_a_joint_rests_on_its_stop_and_leaves_it():
    """Closed form: one joint, pressed beyond its limit, does not ring; half a pull lets it go where springs say."""
    m = arm(links=1)
    simulation = pliant.ReducedSimulation(pliant.reduce(m), 1 / 60)
    simulation.apply_wrench("tip", torque=(0, 20 * 2 * UPPER, 0))
    simulation.step(60)
    places = []
    for _ in range(60):
        simulation.step()
        places.append(simulation.q[0])
    np.testing.assert_allclose(places, UPPER, atol=1e-12)
    assert np.abs(simulation.velocity).max() < 1e-9
    simulation.apply_wrench("tip", torque=(0, 20 * UPPER / 2, 0))
    simulation.step(3000)
    assert simulation.q[0] == pytest.approx(UPPER / 2, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_stops_bring_no_energy(seed):
    rng = np.random.default_rng(seed)
    m, h = arm(damping=0.0), float(rng.uniform(1e-3, 1 / 60))
    simulation = pliant.ReducedSimulation(pliant.reduce(m, modes=2), h)
    simulation.velocity = rng.normal(size=m.nv) * 4
    low = simulation.energy.total
    for _ in range(round(3 / h)):
        simulation.step()
        now = simulation.energy.total
        assert passed(simulation.q) < 0.02
        assert now < 1.02 * low
        low = min(low, now)


def test_batches_stop_alike():
    model = pliant.reduce(arm())
    batch = pliant.ReducedBatch(model, 1 / 60, copies=3)
    forces = np.array([(0, 0, -2.0), (0, 3, -12), (0, -9, 12)])
    batch.apply_wrench("tip", force=forces)
    batch.step(40)
    for copy, force in enumerate(forces):
        simulation = pliant.ReducedSimulation(model, 1 / 60)
        simulation.apply_wrench("tip", force=force)
        simulation.step(40)
        np.testing.assert_allclose(batch.pose("tip")[copy], simulation.pose("tip"), atol=1e-12)


@pytest.mark.parametrize("several", [False, True])
def test_stops_count_in_contact(several):
    """A floor holds the tip up, and a pull sideways drives joints onto their stops: as the whole mechanism rests."""
    m, rest = arm(), []
    for what in (pliant.reduce(m, modes=2), m):
        world = World(1 / 240, gravity=(0, 0, 0))
        world.add(what, "arm", friction=0.0)
        if several:  # another model: steps from Python
            world.add(pliant.reduce(arm(links=1)), "other")
            world.ignore("arm", "other")
        world.add_static("floor", shapes.plane(position=(0, 0, -0.15)), friction=0.0)
        world["arm"].apply_wrench("tip", force=(0, 40, -10))
        for _ in range(960):
            world.step()
            assert passed(np.asarray(world["arm"].q)) < 0.02
        q = np.asarray(world["arm"].q)
        rest.append((world.contacts.force("floor")[2], world.pose("arm/tip")[:3, 3], np.abs(q - UPPER).min()))
    assert rest[0][2] < 1e-6
    assert rest[0][0] == pytest.approx(rest[1][0], rel=0.02)
    assert rest[0][0] < -1.0
    np.testing.assert_allclose(rest[0][1], rest[1][1], atol=2e-3)


def test_where_a_model_begins_beyond_a_limit_it_stays():
    m = arm()
    start = pliant.Configuration(m, {"joint0": 0.5})
    simulation = pliant.ReducedSimulation(pliant.reduce(m, at=start), 1 / 60)
    simulation.step(30)
    assert simulation.q[0] == pytest.approx(0.5, abs=1e-9)
    simulation.apply_wrench("tip", force=(0, 0, -5))
    simulation.step(60)
    assert simulation.q[0] < 0.5 + 1e-6


def test_closed_loops_stop():
    """A four-bar linkage meets the limit of a crank."""
    b = Builder("four-bar")
    for name, place in (("left", (0, 0, 0.1)), ("right", (0.3, 0, 0.1)), ("top", (0.15, 0, 0.2))):
        b.body(name, mass=0.2, inertia=(1e-3, 1e-3, 1e-3), position=place)
    given = {"stiffness": 1.0, "damping": 0.02}
    b.hinge("a", "world", "left", anchor=(0, 0, 0), axis=(0, 1, 0), limits=(-0.3, 0.25), **given)
    b.hinge("b", "left", "top", anchor=(0, 0, 0.2), axis=(0, 1, 0))
    b.hinge("c", "top", "right", anchor=(0.3, 0, 0.2), axis=(0, 1, 0))
    b.hinge("d", "world", "right", anchor=(0.3, 0, 0), axis=(0, 1, 0), **given)
    b.end_effectors("top")
    m = b.build()
    for h in (1 / 60, 1e-3):
        simulation = pliant.ReducedSimulation(pliant.reduce(m), h)
        simulation.apply_wrench("top", force=(6, 0, 0))
        joint = m.joint_names.index("a")
        for _ in range(round(2 / h)):
            simulation.step()
            assert simulation.q[joint] < 0.25 + 0.02 * 0.55
        assert simulation.q[joint] == pytest.approx(0.25, abs=1e-5)
        assert np.abs(simulation.velocity).max() < 1e-6
        assert np.abs(simulation.configuration.loop_residual).max() < 1e-8
