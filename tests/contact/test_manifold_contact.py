"""Reduced models in contact on their manifolds: rows, responses, impacts, rest, friction and energy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import root_scalar

import pliant
from pliant import Builder, World, shapes
from pliant.engines.reduced.manifold import Modes, contact_map, exact_map

from .test_actors import ACROSS, blocks_at, finger, rows, tongs

G = 9.81


def slider(mass=0.2, stiffness=30.0, damping=0.0, friction_axis=False):
    """A box on a spring along x, or along x and z."""
    b = Builder("slider")
    box = shapes.box((0.02, 0.02, 0.02))
    b.body("box", mass=mass, inertia=(1e-4, 1e-4, 1e-4), shapes=[box])
    spring = {"stiffness": stiffness, "damping": damping}
    if friction_axis:
        b.body("cart", mass=1e-6, inertia=(1e-12, 1e-12, 1e-12))
        b.slide("x", "world", "cart", axis=(1, 0, 0), **spring)
        b.slide("z", "cart", "box", axis=(0, 0, 1), **spring)
    else:
        b.slide("x", "world", "box", axis=(1, 0, 0), **spring)
    b.end_effectors("box")
    return b.build()


# --- the map of steps with contacts


@pytest.mark.parametrize("seed", range(5))
def test_slow_modes_are_exact_and_fast_ones_by_backward_euler(seed):
    """Against `expm` and the implicit equations, with dampers that couple all modes."""
    rng = np.random.default_rng(seed)
    n, h = 6, 0.01
    squares = np.sort(10 ** rng.uniform(1, 6.5, n))
    L = rng.normal(size=(n, n)) + 3 * np.diag(np.sqrt(squares) ** 0.5)
    D = 0.02 * L @ L.T
    modes = Modes(np.eye(n), squares, D)
    found = contact_map(modes, h)
    fast = np.sqrt(squares) * h > 1
    assert 0 < fast.sum() < n
    z, v, g = rng.normal(size=(3, n)) / np.array([100.0, 1.0, 0.01])[:, None]
    z1, v1 = np.split(found.T @ np.concatenate([z, v, g]), 2)
    # fast: v' = v + h (g - D u - squares z'), z' = z + h v', with u the mean velocities of slow ones
    u = np.where(fast, v1, (z1 - z) / h)
    np.testing.assert_allclose(z1[fast], (z + h * v1)[fast], rtol=1e-12)
    np.testing.assert_allclose((v + h * (g - D @ u - squares * z1))[fast], v1[fast], rtol=1e-9)
    # slow: exact under the constant force g - D v' of fast ones
    slow = ~fast
    k = slow.sum()
    rate = np.zeros((2 * k + 1, 2 * k + 1))
    rate[:k, k : 2 * k] = np.eye(k)
    rate[k : 2 * k, :k], rate[k : 2 * k, k : 2 * k] = -np.diag(squares[slow]), -D[np.ix_(slow, slow)]
    rate[k : 2 * k, -1] = g[slow] - D[np.ix_(slow, fast)] @ v1[fast]
    expected = (expm(h * rate) @ [*z[slow], *v[slow], 1.0])[:-1]
    np.testing.assert_allclose([*z1[slow], *v1[slow]], expected, rtol=1e-9)
    # the response to forces is symmetric, and no energy comes of a step without forces
    response = found[2 * n :, :n]
    np.testing.assert_allclose(response, response.T, atol=1e-12 * np.abs(response).max())
    z1, v1 = np.split(found.T @ np.concatenate([z, v, np.zeros(n)]), 2)
    assert v1 @ v1 + squares @ z1**2 < v @ v + squares @ z**2
    # impulses per change of rates are at least the inertia: impulses that end an approach take energy
    felt = h * np.linalg.inv(found[2 * n :, n:])
    assert np.linalg.eigvalsh((felt + felt.T) / 2).min() > 1
    np.testing.assert_array_equal(contact_map(modes, 1e-4), exact_map(modes, 1e-4))


# --- rows and responses


@pytest.mark.parametrize("method", ["small", "full"])
@pytest.mark.parametrize("make", [finger, pliant.gallery.gripper])
def test_impulses_move_the_end_of_a_step_as_rows_say(make, method):
    """Mean velocities and rates at the end, against steps with a constant force instead of the impulse."""
    m = make()
    model, h = pliant.reduce(m), 2e-3
    tip = model.end_effectors[-1]
    place = m.body_index(tip)
    simulation = pliant.ReducedSimulation(model, h, method=method)
    simulation.apply_wrench(tip, force=(0.2, 0.1, 0.3))
    simulation.step(30)
    simulation.clear_wrenches()
    push = np.array([0.3, -0.2, 0.4])
    start, point, speed = simulation.state, simulation.pose(tip)[:3, 3], simulation._rates.copy()
    ends = []
    for force in (0 * push, push):
        other = simulation.copy()
        other.apply_wrench(tip, force=force)
        other.step()
        ends.append((other._y.copy(), other._rates.copy()))
    actor = simulation.actor()
    actor.place(0)
    simulation.state = start
    blocks = blocks_at([point], [place], actor.size)
    before, u = np.zeros((2, actor.size))
    actor.begin(1, blocks, before, u)
    J, Y = (part.copy() for part in rows(blocks, 0))
    n = len(speed)
    np.testing.assert_array_equal(before, np.pad(speed, (0, actor.size - n)))  # rows are padded with zeros
    np.testing.assert_allclose(J @ before, simulation_twist(simulation, start, tip), atol=1e-9)
    blocks.impulse[0] = h * push
    mean = u + Y.T @ (h * push)
    moved = ends[1][0] - ends[0][0]
    scale = np.abs(moved).max()
    np.testing.assert_allclose(h * (mean - u)[:n], moved, atol=0.02 * scale)
    end = np.zeros(actor.size)
    actor.strike(1, blocks, end)
    change = ends[1][1] - ends[0][1]
    np.testing.assert_allclose(end[:n], ends[1][1], atol=0.02 * np.abs(change).max())
    actor.finish(1, blocks, end, mean - end)
    np.testing.assert_allclose(simulation._y, ends[1][0], atol=0.02 * scale)
    assert simulation.time == pytest.approx(31 * h)
    if m.topology.loops:
        assert np.abs(simulation.configuration.loop_residual).max() < 1e-8


def simulation_twist(simulation, state, body):
    now, simulation.state = simulation.state, state
    out = simulation.twist(body)[:3]
    simulation.state = now
    return out


# --- impacts


@pytest.mark.parametrize("h", [1 / 60, 5e-3, 1e-3])
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_a_ball_strikes_a_box_on_a_soft_spring(h, restitution):
    """Both fly on by Newton's law of restitution and momentum, whatever the step."""
    m, M, speed = 0.1, 0.2, 1.0
    world = World(h, gravity=(0, 0, 0))
    world.add(pliant.reduce(slider(M, 1e-4)), "box", friction=0.0, restitution=restitution)
    world.add_body("ball", shapes.sphere(0.02), mass=m, position=(-0.08, 0, 0), velocity=(speed, 0, 0))
    world.step(round(0.08 / h))
    ball, box = world["ball"].twist()[0], world["box"].twist("box")[0]
    assert m * ball + M * box == pytest.approx(m * speed, rel=1e-3)
    assert box - ball == pytest.approx(restitution * speed, abs=2e-3 * speed)


@pytest.mark.parametrize("h", [1 / 60, 1e-3])
def test_a_box_on_a_spring_bounces_off_a_wall(h):
    """Amplitudes after a bounce are `restitution` times those before, without numerical damping."""
    world = World(h, gravity=(0, 0, 0))
    model = pliant.reduce(slider(0.2, 2.0))
    world.add(model, "box", friction=0.0, restitution=0.7)
    world.add_static(
        "wall", shapes.box((0.02, 0.1, 0.1)), position=(0.0401, 0, 0), restitution=0.7, friction=0
    )
    simulation = world.simulation("box")
    assert isinstance(simulation, pliant.ReducedSimulation)
    simulation.coordinates = [-0.1 / model.basis[0, 0]]
    ways = []
    for _ in range(round(4 / h)):
        world.step()
        ways.append(world["box"].pose("box")[0, 3])
    ways = np.array(ways)
    turns = ways[1:-1][(ways[1:-1] < ways[:-2]) & (ways[1:-1] < ways[2:]) & (ways[1:-1] < -1e-3)]
    assert len(turns) >= 3
    np.testing.assert_allclose(turns[:3], -0.1 * 0.7 ** np.arange(1, 4), rtol=0.1 if h > 0.01 else 0.01)


# --- rest and friction


def probe(damping=0.02):
    """Three links along x, bending about y and z, with a ball at the end of the last."""
    b = Builder("probe")
    for i in range(3):
        b.body(
            f"link{i}",
            mass=0.03,
            inertia=(1e-5, 1e-5, 1e-5),
            position=(0.04 * (i + 1), 0, 0),
            shapes=[shapes.sphere(0.008)] if i == 2 else [],
        )
        for axis in ((0, 1, 0), (0, 0, 1)):
            inner = f"inner{i}" if axis[1] else f"link{i}"
            if axis[1]:
                b.body(inner, mass=1e-3, inertia=(1e-7, 1e-7, 1e-7), position=(0.04 * i, 0, 0))
            b.hinge(
                f"joint{i}{'yz'[axis[2]]}",
                ("world" if i == 0 else f"link{i - 1}") if axis[1] else f"inner{i}",
                inner,
                anchor=(0.04 * i, 0, 0),
                axis=axis,
                stiffness=2.0,
                damping=damping,
            )
    b.end_effectors("link2")
    return b.build()


@pytest.mark.parametrize("h", [1 / 60, 5e-3, 1e-3])
@pytest.mark.parametrize("depth", [0.002, 0.03])
def test_a_resting_contact_carries_what_statics_says(h, depth):
    """Smooth; pressed 2 mm down, and 30 mm, a quarter of its length: the floor's reaction by `equilibrium`."""
    m = probe()
    load = 3.0
    world = World(h, gravity=(0, 0, 0))
    world.add(pliant.reduce(m, reach=0.3), "it", friction=0.0)
    world.add_static("floor", shapes.plane(position=(0, 0, -0.008 - depth)), friction=0.0)
    world["it"].apply_wrench("link2", force=(0, 0, -load))
    world.step(round(3 / h))
    forces = []
    for _ in range(30):
        world.step()
        forces.append(world.contacts.force("it")[2])

    def height(reaction):
        return pliant.equilibrium(m, {"link2": (0, 0, reaction - load)}).pose("link2")[2, 3] + depth

    expected = float(root_scalar(height, bracket=(0.0, load)).root)
    assert np.ptp(forces) < 1e-3 * expected
    np.testing.assert_allclose(forces, expected, rtol=0.01)


@pytest.mark.parametrize("h", [1 / 60, 5e-3, 1e-3])
@pytest.mark.parametrize("push", [0.9, 1.2, 2.0])
def test_a_box_slides_by_coulombs_law(h, push):
    """Pressed on a floor by N, pushed by F: it stays below mu N, and gains (F - mu N) / m t beyond."""
    mass, friction, load = 0.2, 0.5, 2.0
    world = World(h, gravity=(0, 0, 0))
    world.add(pliant.reduce(slider(mass, 1e-3, friction_axis=True)), "it", friction=friction)
    world.add_static("floor", shapes.plane(position=(0, 0, -0.02)), friction=friction)
    world["it"].apply_wrench("box", force=(push * friction * load, 0, -load))
    world.step(1)
    start = world["it"].twist("box")[0]
    world.step(round(0.2 / h))
    gain = max(push - 1.0, 0.0) * friction * load / mass * h * round(0.2 / h)
    assert world["it"].twist("box")[0] - start == pytest.approx(gain, rel=2e-3, abs=1e-9)
    force = world.contacts.force("it")
    assert force[2] == pytest.approx(load, rel=1e-3)
    assert force[0] == pytest.approx(-min(push, 1.0) * friction * load, rel=2e-3)
    # brakes: what slides comes to rest and stays there
    world["it"].apply_wrench("box", force=(0.5 * friction * load, 0, -load))
    world.step(round(4 / h))
    place = world["it"].pose("box")[:3, 3]
    world.step(round(0.5 / h))
    np.testing.assert_allclose(world["it"].pose("box")[:3, 3], place, atol=1e-7)


@pytest.mark.parametrize("h", [1 / 60, 5e-3])
def test_a_fingertip_drags(h):
    """A slow pull sideways: the tip sticks, then slips with friction against the slip, on the cone."""
    world = World(h, gravity=(0, 0, 0))
    world.add(pliant.reduce(probe(), reach=0.3), "it", friction=0.4)
    world.add_static("floor", shapes.plane(position=(0, 0, -0.010)), friction=0.4)
    stuck = slipped = 0
    world["it"].apply_wrench("link2", force=(0, 0, -3.0))
    world.step(round(1 / h))
    for k in range(round(2 / h)):
        world["it"].apply_wrench("link2", force=(0, 2.5 * k * h, -3.0))
        world.step()
        force, twist, radius = world.contacts.force("it"), world["it"].twist("link2"), 0.008
        slip = (twist[:3] + np.cross(twist[3:], (0, 0, -radius)))[:2]
        share = np.linalg.norm(force[:2]) / force[2]
        assert share < 0.4 + 1e-6
        if np.linalg.norm(slip) < 1e-4:
            stuck += 1
        elif np.linalg.norm(slip) > 1e-2:
            slipped += 1
            assert share == pytest.approx(0.4, rel=1e-3)
            assert force[:2] @ slip / np.linalg.norm(slip) < -0.99 * 0.4 * force[2]
    assert stuck > 0.1 / h
    assert slipped > 0.1 / h


# --- energy


def chain(rng, damping):
    n, b = int(rng.integers(2, 6)), Builder("chain")
    for i in range(n):
        shape = shapes.capsule(rng.uniform(0.006, 0.01), 0.015, orientation=ACROSS)
        b.body(f"l{i}", mass=rng.uniform(0.01, 0.1), position=(0.04 * (i + 0.5), 0, 0), shapes=[shape])
        axis = rng.normal(size=3) * (0.3, 1, 1)
        parent, k = "world" if i == 0 else f"l{i - 1}", rng.uniform(0.5, 5)
        spring = {"stiffness": k, "damping": 0.01 * damping * k}
        b.hinge(f"j{i}", parent, f"l{i}", anchor=(0.04 * i, 0, 0), axis=axis / np.linalg.norm(axis), **spring)
    b.end_effectors(f"l{n - 1}")
    return b.build()


def gains(seed):
    """Largest gain of energy in a second over any earlier moment, over the energy there was at most."""
    rng = np.random.default_rng(seed)
    h, damping = float(np.exp(rng.uniform(np.log(1e-3), np.log(1 / 60)))), (0.01, 1.0)[seed % 2]
    m = chain(rng, damping)
    g, friction = np.array([0, 0, -G * rng.integers(0, 2)]), rng.uniform(0, 1)
    world = World(h, gravity=g)
    world.add(pliant.reduce(m, modes=int(rng.integers(0, 2))), "it", friction=friction)
    world.add_static("floor", shapes.plane(position=(0, 0, -0.02)), friction=friction)
    balls = [f"ball{k}" for k in range(int(rng.integers(0, 3)))]
    for k, name in enumerate(balls):
        place = (rng.uniform(0.02, 0.04 * m.nv), rng.uniform(-0.005, 0.005), 0.03 + 0.03 * k)
        mass = rng.uniform(0.005, 0.1)
        world.add_body(
            name, shapes.sphere(0.01), mass=mass, position=place, velocity=(0, 0, -1), friction=friction
        )
    simulation = world.simulation("it")
    simulation.velocity = rng.normal(size=m.nv) * rng.choice([0.5, 3.0])

    def energy():
        total = simulation.energy.total
        for name in balls:
            body = world[name]
            twist, mass = body.twist(), body.mechanism.mass[0]
            spin = body.mechanism.inertia[0, 0, 0] * twist[3:] @ twist[3:]
            total += 0.5 * (mass * twist[:3] @ twist[:3] + spin) - mass * g @ body.position
        return total

    low = energy()
    most, gain = simulation.energy.total, 0.0
    for _ in range(round(1 / h)):
        world.step()
        now = energy()
        gain, low, most = max(gain, now - low), min(low, now), max(most, simulation.energy.total)
    return gain / most


@pytest.mark.parametrize("seed", range(24))
def test_no_energy_comes_of_contacts(seed):
    """Random chains on a floor, with balls that fall on them, hardly damped and damped, 1 ms to 1/60 s.

    1 %: small motion takes inertia as constant.
    """
    assert gains(seed) < 0.01


@pytest.mark.slow
def test_no_energy_comes_of_contacts_in_many_scenes():
    found = np.array([gains(seed) for seed in range(100, 600)])
    assert (found < 0.02).all()


# --- pulls


@pytest.mark.parametrize("h", [1 / 60, 1e-3])
def test_a_pull_settles_where_its_spring_balances(h):
    world = World(h, gravity=(0, 0, 0))
    m = probe()
    world.add(pliant.reduce(m, reach=0.3), "it")
    target = np.array([0.12, 0.03, 0.02])
    world.pull("it/link2", target, stiffness=150.0, damping=0.5)
    world.step(round(3 / h))
    at = world.pose("it/link2")[:3, 3]
    force = world.pulls["it/link2"]
    np.testing.assert_allclose(force, 150.0 * (target - at), atol=1e-6)
    rest = pliant.equilibrium(m, {"link2": force}).pose("link2")[:3, 3]
    assert np.linalg.norm(rest - at) < 2e-3 * np.linalg.norm(at - [0.12, 0, 0])
    world.release()
    world.step(round(3 / h))
    np.testing.assert_allclose(world.pose("it/link2")[:3, 3], [0.12, 0, 0], atol=1e-5)


def test_tongs_and_finger_in_one_world():
    """Two models step from Python, and push each other alike."""
    world = World(1 / 60, gravity=(0, 0, 0))
    world.add(pliant.reduce(tongs()), "tongs", friction=0.3)
    world.add(pliant.reduce(finger()), "finger", friction=0.3)
    world.add_static("wall", shapes.box((0.01, 0.1, 0.1)), position=(0.0, 0, -0.3))
    world["finger"].apply_wrench("link2", force=(0, 0, -1.5))
    world.step(120)
    a, b = world.contacts.force("finger"), world.contacts.force("tongs")
    np.testing.assert_allclose(a, -b, atol=1e-12)
