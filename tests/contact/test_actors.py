"""Reduced models and whole mechanisms in contact."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import Builder, World, shapes, spatial
from pliant.contact import _rows, arrays
from pliant.engines.actor import CONTACT
from pliant.errors import InputError
from pliant.scenes import crane_lift

H = 1 / 60
ACROSS = spatial.so3_exp(np.array([0, np.pi / 2, 0]))
G = 9.81


def finger(name="finger"):
    """Three links along x that bend about y."""
    b = Builder(name)
    for i in range(3):
        rod = shapes.capsule(0.008, 0.02, orientation=ACROSS)
        b.body(f"link{i}", mass=0.03, position=(0.04 * (i + 0.5), 0, 0), shapes=[rod])
        parent = "world" if i == 0 else f"link{i - 1}"
        b.hinge(
            f"joint{i}",
            parent,
            f"link{i}",
            anchor=(0.04 * i, 0, 0),
            axis=(0, 1, 0),
            stiffness=2.0,
            damping=0.02,
        )
    b.end_effectors("link2")
    return b.build()


def tongs(stiffness=2.0):
    """Two fingers hanging from a fixed bar, a ball's width apart."""
    b = Builder("tongs")
    for side, sign in (("left", -1), ("right", 1)):
        pad = shapes.box((0.004, 0.015, 0.03))
        b.body(side, mass=0.03, position=(0.035 * sign, 0, -0.06), shapes=[pad])
        spring = {"stiffness": stiffness, "damping": 0.05}
        b.hinge(f"{side}_joint", "world", side, anchor=(0.035 * sign, 0, 0), axis=(0, 1, 0), **spring)
    b.end_effectors("left", "right")
    return b.build()


def blocks_at(points, bodies, size):
    """Contacts of an actor with something fixed, along the world's axes."""
    count = len(points)
    blocks = arrays.make_rows(count, 3 * size * count)
    blocks.kind[:] = CONTACT
    blocks.body[:, 0], blocks.body[:, 1] = -1, bodies
    blocks.point[:], blocks.axes[:] = points, np.eye(3)
    _rows.lay_out(count, blocks.body, np.full(10, size), np.zeros(10, dtype=np.int64), blocks.side)
    return blocks


def rows(blocks, b):
    start, n, _ = blocks.side[b, 1]
    return (part[start : start + 3 * n].reshape(3, n) for part in (blocks.J, blocks.Y))


def response(actor, point, body):
    """Velocity of a point per impulse on it, (3, 3)."""
    blocks = blocks_at([point], [body], actor.size)
    actor.place(0)
    before, u = np.zeros((2, actor.size))
    actor.begin(1, blocks, before, u)
    J, Y = rows(blocks, 0)
    return J @ Y.T


def test_a_reduced_model_answers_as_impulse_response_says():
    simulation = pliant.ReducedSimulation(pliant.reduce(finger()), H, method="tvcg")
    expected = simulation.impulse_response("link2", (0.02, 0, 0))
    found = response(simulation.actor(), [0.12, 0, 0], 2)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_mechanism_answers_as_its_reduced_model():
    """Three hinges, two ways for the tip to go and a mode: nothing is lost by reduction."""
    m = finger()
    reduced = pliant.ReducedSimulation(pliant.reduce(m, modes=1), H, method="tvcg")
    expected = reduced.impulse_response("link2", (0.02, 0, 0))
    simulation = pliant.ConstrainedSimulation(m, H, gravity=(0, 0, 0))
    found = response(simulation.actor(), [0.12, 0, 0], 2)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_a_mechanism_with_loops_answers_as_its_reduced_model():
    m = pliant.gallery.gripper()
    pad = m.body_index("left_pad")
    reduced = pliant.ReducedSimulation(pliant.reduce(m), H, method="tvcg")
    expected = reduced.impulse_response("left_pad", (0, 0, 0.01))
    simulation = pliant.ConstrainedSimulation(m, H, gravity=(0, 0, 0))
    point = simulation.pose("left_pad")[:3] @ [0, 0, 0.01, 1]
    found = response(simulation.actor(), point, pad)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_rows_of_a_bent_model_are_velocities_of_its_points():
    simulation = pliant.ReducedSimulation(pliant.reduce(finger()), 1e-5, method="tvcg")
    simulation.apply_wrench("link2", force=(0, 0, -4))
    coarse = pliant.ReducedSimulation(simulation.model, H, method="tvcg")
    coarse.apply_wrench("link2", force=(0, 0, -4))
    coarse.step(120)  # far from where it was linearised
    simulation.coordinates = coarse.coordinates
    simulation.rates = np.random.default_rng(0).normal(size=len(simulation.rates))
    actor = simulation.actor()
    actor.place(0)
    local = np.array([0.01, 0.002, 0.003, 1])
    for body, name in enumerate(("link0", "link1", "link2")):
        point = simulation.pose(name)[:3] @ local
        blocks = blocks_at([point], [body], actor.size)
        before, u = np.zeros((2, actor.size))
        state = simulation.state
        actor.begin(1, blocks, before, u)
        J, _ = rows(blocks, 0)
        moved = simulation.pose(name)[:3] @ local - point
        np.testing.assert_allclose(J @ u, moved / 1e-5, rtol=1e-3, atol=1e-6)
        simulation.state = state


@pytest.mark.parametrize("force", [1.0, 3.0, 6.0])
def test_a_finger_presses_alike_reduced_blended_and_whole(force):
    """On a smooth block, 4 mm below it; forces within 1 %."""
    m = finger()
    pressed = []
    samples = [pliant.reduce(m, at=pliant.equilibrium(m, {"link2": (0, 0, -f)})) for f in (0.0, 1.5, 3.0)]
    for what in (m, pliant.reduce(m), pliant.blend(samples)):
        world = World(H, gravity=(0, 0, 0))
        world.add(what, "finger", friction=0.0)
        world.add_static("block", shapes.box((0.05, 0.05, 0.05)), position=(0.1, 0, -0.062), friction=0.0)
        world["finger"].apply_wrench("link2", force=(0, 0, -force))
        world.step(240)
        assert world.contacts.distances.min() > -1e-4
        pressed.append(world.contacts.force("block"))
    np.testing.assert_allclose(pressed[1], pressed[0], atol=0.01 * abs(pressed[0][2]))
    np.testing.assert_allclose(pressed[2], pressed[0], atol=0.01 * abs(pressed[0][2]))
    assert pressed[0][2] < -0.3 * force


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("friction", "held"), [(0.6, True), (0.15, False)])
def test_tongs_hold_a_ball_while_friction_exceeds_its_weight(whole, friction, held):
    """Each finger presses with about 2 N: 0.6 times that, twice, is more than 1 N; 0.15 times is less."""
    m = tongs()
    world = World(H)
    world.add(m if whole else pliant.reduce(m), "tongs", friction=friction)
    world.add_static("table", shapes.plane(position=(0, 0, -0.4)))
    world.add_body("ball", shapes.sphere(0.03), mass=0.1, position=(0, 0, -0.06), friction=friction)
    for side, sign in (("left", 1), ("right", -1)):
        world["tongs"].apply_wrench(side, force=(2.2 * sign, 0, 0))
    world.step(10)
    pressed = world.contacts.force("ball", "tongs/left")[0]
    world.step(110)
    start = world["ball"].position
    if held:
        assert 2 * friction * pressed > 0.1 * G
        world.step(120)
        assert np.linalg.norm(world["ball"].position - start) < 1e-5
        np.testing.assert_allclose(world.contacts.force("ball"), [0, 0, 0.1 * G], atol=1e-4)
    else:
        assert 2 * friction * pressed < 0.1 * G
        world.step(120)
        assert world["ball"].position[2] == pytest.approx(-0.37, abs=1e-3)


@pytest.mark.slow
def test_a_grasp_holds_for_a_minute():
    world = World(H)
    world.add(pliant.reduce(tongs()), "tongs")
    world.add_body("ball", shapes.sphere(0.03), mass=0.1, position=(0, 0, -0.06))
    for side, sign in (("left", 1), ("right", -1)):
        world["tongs"].apply_wrench(side, force=(2.2 * sign, 0, 0))
    world.step(60)
    start = world["ball"].pose()
    world.step(3600)
    np.testing.assert_allclose(world["ball"].pose()[:3, 3], start[:3, 3], atol=1e-4)


@pytest.mark.parametrize("whole", [False, True])
def test_a_hexapod_lands_on_its_feet(whole):
    """A floating base: the floor carries its weight."""
    m = pliant.gallery.hexapod()
    world = World(H)
    world.add(m if whole else pliant.reduce(m), "hexapod")
    world.add_static("floor", shapes.plane(position=(0, 0, -0.1)))
    world.step(120)
    np.testing.assert_allclose(world.contacts.force("floor"), [0, 0, -m.mass.sum() * G], rtol=1e-3, atol=1e-2)
    assert world.contacts.distances.min() > -5e-4
    feet = {b.partition("/")[2] for pair in world.contacts.bodies for b in pair if "/" in b}
    assert feet == set(m.end_effectors)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("h", [1 / 4, 1 / 8])
def test_what_falls_looks_ahead(whole, h):
    """From rest, gravity takes it 15 to 60 cm down in a step: further than legs are long. The floor is 9 mm below."""
    m = pliant.gallery.hexapod()
    m = m.with_pose({"base": (0, 0, 0.009, 1, 0, 0, 0)})
    world = World(h)
    world.add(m if whole else pliant.reduce(m), "hexapod")
    world.add_static("floor", shapes.box((1, 1, 0.2), position=(0, 0, -0.2)))
    for _ in range(round(6 / h)):
        world.step()
        assert world.pose("hexapod/body")[2, 3] > 0.15
    np.testing.assert_allclose(world.contacts.force("floor"), [0, 0, -m.mass.sum() * G], rtol=1e-2, atol=1e-1)
    assert world.contacts.distances.min() > -5e-4


def test_states_of_mechanisms_are_restored_to_the_last_digit():
    world = World(H)
    m = finger()
    world.add(m, "whole")
    world.add(pliant.reduce(m), "reduced")
    world.ignore("whole", "reduced")
    world.add_static("block", shapes.box((0.05, 0.05, 0.05)), position=(0.1, 0, -0.065))
    world.add_body("ball", shapes.sphere(0.01), position=(0.1, 0, 0.05))
    world.step(20)
    state = world.state
    world.step(30)
    later = world.poses
    world.state = state
    world.step(30)
    assert np.array_equal(world.poses, later)


def test_an_actor_alone_is_its_simulation():
    m = pliant.gallery.helix(20)
    for what, alone in (
        (m, pliant.ConstrainedSimulation(m, H)),
        (pliant.reduce(m), pliant.ReducedSimulation(pliant.reduce(m), H)),
    ):
        world = World(H)
        world.add(what, "helix")
        for simulation in (world["helix"], alone):
            simulation.apply_wrench("link20", force=(0, 0, -10))
        world.step(30)
        alone.step(30)
        assert np.array_equal(world["helix"].poses, alone.poses)
        assert world.time == pytest.approx(0.5)


def test_links_touch_each_other_only_if_asked_to():
    """Two fingers of one mechanism are driven through each other."""
    for asked in (False, True):
        world = World(H, gravity=(0, 0, 0))
        world.add(pliant.reduce(tongs()), "tongs", self_contact=asked)
        for side, sign in (("left", 1), ("right", -1)):
            world["tongs"].apply_wrench(side, force=(35.0 * sign, 0, 0))
        world.step(120)
        left, right = (world["tongs"].pose(side)[0, 3] for side in ("left", "right"))
        assert (left < right) == asked


@pytest.mark.parametrize("asked", [False, True])
def test_links_touch_fixed_links_of_their_mechanism_only_if_asked_to(asked):
    """A pendulum falls onto a block that is part of the same mechanism, and welded to the world."""
    b = Builder("gallows")
    b.body("block", mass=1.0, shapes=[shapes.box((0.05, 0.05, 0.05))])
    b.fixed("weld", "world", "block")
    b.body("rod", mass=0.1, position=(0.3, 0, 0.2), shapes=[shapes.rod((-0.3, 0, 0), (0.1, 0, 0), 0.01)])
    b.hinge("pin", "world", "rod", anchor=(-0.1, 0, 0.2), axis=(0, 1, 0))
    m = b.build()
    world = World(H)
    world.add(m, self_contact=asked)
    lowest, touched = 0.0, 0
    for _ in range(60):
        world.step()
        lowest = min(lowest, world["gallows"].pose("rod")[2, 3])
        touched += len(world.contacts)
    assert (touched > 0) == asked
    assert (lowest > -0.12) == asked  # on the edge of the block it comes to rest at -0.07


def test_gs17s_methods_take_no_contacts():
    world = World(H)
    world.add(finger(), stabilization="full")
    world.add_static("floor", shapes.plane(position=(0, 0, -1)))
    with pytest.raises(InputError, match="newmark"):
        world.step()


def test_a_pull_moves_a_finger():
    for what in (finger(), pliant.reduce(finger())):
        world = World(H, gravity=(0, 0, 0))
        world.add(what, "finger")
        before = world.pose("finger/link2")
        world.pull("finger/link2", before[:3, 3] + [0, 0, 0.02])
        world.step(120)
        assert 0.0005 < world.pose("finger/link2")[2, 3] < 0.02
        world.release()
        world.step(240)
        np.testing.assert_allclose(world.pose("finger/link2"), before, atol=1e-4)


@pytest.mark.parametrize(
    "shape", [shapes.sphere(0.3), shapes.cylinder(0.3, 0.09, orientation=(0.5**0.5, 0.5**0.5, 0, 0))]
)
def test_a_wheel_of_a_mechanism_rolls_on(shape):
    """Where it touches the road is no point of the wheel: it neither sinks nor gains speed by turning."""
    speed = 4.0
    b = pliant.Builder("cart")
    b.body("cart", mass=1.0, position=(0, 0, 0.3), inertia=(1, 1, 1))
    b.stack("way", "world", "cart", [("slide", (1, 0, 0), (0, 0, 0)), ("slide", (0, 0, 1), (0, 0, 0))])
    b.body("wheel", mass=14.0, position=(0, 0, 0.3), shapes=[shape])
    b.hinge("axle", "cart", "wheel", anchor=(0, 0, 0.3), axis=(0, 1, 0))
    world = World(H)
    world.add_static("road", shapes.plane())
    world.add(b.build(), "it")
    it = world["it"]
    it.velocity = {it.mechanism.dof_names[0]: speed, "axle": speed / 0.3}
    world.step(120)
    assert it.pose("wheel")[2, 3] == pytest.approx(0.3, abs=1e-4)
    np.testing.assert_allclose(np.asarray(it.velocity), [speed, 0, speed / 0.3], atol=1e-3)


def _gain_after_a_blow(change):
    """Largest rise of the energy of a crane whose vehicle hits a wall, per the largest kinetic energy there was."""
    scene = crane_lift(30, swing=25.0 * (1 + change), speed=0.0)
    m = scene.mechanism
    world = World(H)
    world.add(m, "crane", start=scene.start)
    x, y = m.reference_poses[m.body_index("vehicle"), :2, 3]
    world.add_static("wall", shapes.box((4, 0.5, 4.5)), position=(x, y - 2.3, 4.5))
    crane = world["crane"]
    assert crane.energy.kinetic == 0.0
    least, struck, most, gain = crane.energy.total, 0.0, 1.0, 0.0
    for _ in range(150):
        world.step()
        now = crane.energy
        most, least = max(most, now.kinetic), min(least, now.total)
        gain = max(gain, (now.total - least) / most)
        assert crane.pose("vehicle")[1, 3] > y - 2.3 + 0.5
        struck = max(struck, float(np.abs(world.contacts.forces).max(initial=0.0)))
    assert struck > 1e5
    return gain


def test_a_blow_on_a_very_stiff_cable_brings_no_energy():
    """20 t on a cable of 1e10 N/m and 500,000 : 1 hit a wall: energy falls, and the wall holds.

    The cable whips after the blow, and how depends on the last bit of the start: the claim is one about many starts.
    Of 356, three gained more than a thousandth, at most a hundredth, in a step of 1/60 s.
    """
    starts = (0.0, *np.random.default_rng(0).uniform(-1e-12, 1e-12, 15))
    gains = np.sort([_gain_after_a_blow(change) for change in starts])
    assert gains[-4] < 1e-4
    assert gains[-1] < 0.03
