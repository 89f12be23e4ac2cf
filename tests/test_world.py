"""`World`: what theory says of contact and friction; names, filters, states, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import pliant
from pliant import World, shapes, spatial
from pliant.errors import ConvergenceError, InputError, UnknownNameError

G = 9.81


def slope(angle, friction, timestep=1 / 60):
    """A box on a slope."""
    world = World(timestep)
    turn = spatial.so3_exp(np.array([0, angle, 0]))
    world.add_static("slope", shapes.plane(), orientation=turn, friction=friction)
    world.add_body(
        "box",
        shapes.box((0.08, 0.08, 0.03)),
        position=turn @ [0, 0, 0.03],
        orientation=turn,
        friction=friction,
    )
    return world


def stack(count, timestep=1 / 60, gap=0.0):
    world = World(timestep)
    world.add_static("floor", shapes.plane())
    for i in range(count):
        world.add_body(f"box{i}", shapes.box((0.05, 0.05, 0.05)), position=(0, 0, 0.05 + (0.1 + gap) * i))
    return world


def travelled(world, seconds):
    start = world["box"].position
    world.step(round(seconds / world.timestep))
    return np.linalg.norm(world["box"].position - start)


# --- friction and rolling


@pytest.mark.parametrize("friction", [0.1, 0.3, 0.6, 0.9])
def test_a_box_slides_from_the_friction_angle_on(friction):
    """Within 0.1 degrees, where 0.5 is asked for."""
    angle = np.arctan(friction)
    assert travelled(slope(angle - np.radians(0.1), friction), 2.0) < 1e-4
    assert travelled(slope(angle + np.radians(0.1), friction), 2.0) > 0.02


def test_a_sliding_box_accelerates_as_theory_says():
    angle, friction = 0.5, 0.3
    world = slope(angle, friction)
    world.step(60)
    speed = np.linalg.norm(world["box"].twist()[:3])
    assert speed == pytest.approx(G * (np.sin(angle) - friction * np.cos(angle)), rel=1e-3)


@pytest.mark.parametrize("angle", [0.05, 0.2, 0.4])
def test_a_sphere_rolls_down_at_five_sevenths(angle):
    world = World(1 / 60)
    turn = spatial.so3_exp(np.array([0, angle, 0]))
    world.add_static("slope", shapes.plane(), orientation=turn)
    world.add_body("ball", shapes.sphere(0.05), position=turn @ [0, 0, 0.05])
    world.step(60)
    twist = world["ball"].twist()
    assert np.linalg.norm(twist[:3]) == pytest.approx(5 / 7 * G * np.sin(angle), rel=1e-6)
    assert np.linalg.norm(twist[3:]) == pytest.approx(np.linalg.norm(twist[:3]) / 0.05, rel=1e-6)


def test_friction_stops_a_sliding_box_where_theory_says():
    world = World(1 / 240)
    world.add_static("floor", shapes.plane(), friction=0.4)
    world.add_body(
        "box", shapes.box((0.1, 0.1, 0.02)), position=(0, 0, 0.02), velocity=(2, 0, 0), friction=0.4
    )
    world.step(480)
    assert world["box"].position[0] == pytest.approx(4 / (2 * 0.4 * G), rel=0.01)
    np.testing.assert_allclose(world["box"].twist(), 0, atol=1e-6)


def test_rolling_resistance_stops_a_ball():
    """The ball slows down by 5/7 of arm / radius times gravity."""
    world = World(1 / 240)
    world.add_static("floor", shapes.plane(), rolling=0.002)
    world.add_body("ball", shapes.sphere(0.05), position=(0, 0, 0.05), velocity=(0.5, 0, 0), spin=(0, 10, 0))
    world.step(120)
    slower = 0.5 - world["ball"].twist()[0]
    assert slower == pytest.approx(0.5 * 5 / 7 * G * 0.002 / 0.05, rel=0.01)
    world.step(480)
    np.testing.assert_allclose(world["ball"].twist(), 0, atol=1e-5)


# --- rest


@pytest.mark.parametrize("radius", [0.005, 0.03, 0.2])
@pytest.mark.parametrize("height", [0.0, 0.5])
def test_a_ball_rests_on_the_floor_and_not_in_it(radius, height):
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_body("ball", shapes.sphere(radius), position=(0, 0, radius + height))
    world.step(300)
    assert abs(world["ball"].position[2] - radius) < 0.0005
    np.testing.assert_allclose(
        world.contacts.force("ball"), [0, 0, world["ball"].mass * G], atol=1e-6 * world["ball"].mass * G
    )
    before = world["ball"].pose()
    world.step(600)
    np.testing.assert_allclose(world["ball"].pose(), before, atol=1e-6)


def test_a_stack_stands():
    world = stack(5)
    world.step(300)
    for i in range(5):
        np.testing.assert_allclose(world[f"box{i}"].position, [0, 0, 0.05 + 0.1 * i], atol=5e-4)


@pytest.mark.slow
def test_a_stack_stands_for_a_minute():
    world = stack(5, gap=0.002)
    world.step(3600)
    for i in range(5):
        np.testing.assert_allclose(world[f"box{i}"].position, [0, 0, 0.05 + 0.1 * i], atol=2e-3)
    weight = world["box0"].mass * G
    assert world.contacts.force("floor")[2] == pytest.approx(-5 * weight, rel=1e-3)


def test_compliance_gives_way_by_the_weight():
    world = World(1 / 60)
    world.add_static("floor", shapes.plane(), compliance=1e-4)
    world.add_body("ball", shapes.sphere(0.05), mass=2.0, position=(0, 0, 0.05))
    world.step(300)
    assert 0.05 - world["ball"].position[2] == pytest.approx(2.0 * G * 1e-4, rel=1e-3)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_restitution(share):
    """A ball that falls by 1 m comes back by the square of its restitution."""
    world = World(1 / 960)
    world.add_static("floor", shapes.plane())
    world.add_body("ball", shapes.sphere(0.05), position=(0, 0, 1.05), restitution=share)
    world.step(440)  # it lands after 0.45 s
    highest = 0.0
    for _ in range(900):
        world.step()
        if world["ball"].twist()[2] < 0 < highest:
            break
        highest = max(highest, world["ball"].position[2] - 0.05)
    assert highest == pytest.approx(share**2, rel=0.05)


def test_energy_never_grows():
    """Bodies of all kinds fall in a heap: kinetic and potential energy only fall."""
    rng = np.random.default_rng(1)
    world = World(1 / 60)
    world.add_static("floor", shapes.plane(), rolling=0.003)
    kinds = (
        shapes.box((0.05, 0.04, 0.03)),
        shapes.sphere(0.04),
        shapes.capsule(0.03, 0.05),
        shapes.cylinder(0.04, 0.05),
    )
    names = [f"body{i}" for i in range(8)]
    for i, name in enumerate(names):
        place = (0.02 * rng.normal(), 0.02 * rng.normal(), 0.15 + 0.2 * i)
        world.add_body(
            name, kinds[i % 4], position=place, orientation=spatial.quat_normalize(rng.normal(size=4))
        )

    def energy():
        return sum(world[n].kinetic + world[n].mass * G * world[n].position[2] for n in names)

    before = energy()
    kinetic = np.inf
    for _ in range(600):
        world.step()
        now = energy()
        # positions pushed out of each other may lift a body by fractions of a millimetre
        assert now <= before + 2e-3
        before = now
        kinetic = sum(world[n].kinetic for n in names)
    assert kinetic < 1e-3
    assert min(world[n].position[2] for n in names) > 0.02
    assert world.contacts.distances.min() > -5e-4


def test_a_fast_ball_does_not_pass_a_thin_wall():
    """At 3 m/s and 1/60 s a ball of 60 mm goes 50 mm a step; the wall is 10 mm thick."""
    for offset in np.linspace(0, 0.05, 7):
        world = World(1 / 60, gravity=(0, 0, 0))
        world.add_static("wall", shapes.box((0.005, 1, 1)))
        world.add_body("ball", shapes.sphere(0.03), position=(-0.3 - offset, 0, 0), velocity=(3, 0, 0))
        world.step(60)
        assert world["ball"].position[0] < 0


@pytest.mark.parametrize(
    "shape", [shapes.sphere(0.03), shapes.box((0.02, 0.03, 0.04)), shapes.capsule(0.02, 0.05)]
)
@pytest.mark.parametrize("wall", [shapes.box((0.0005, 1, 1)), shapes.plane()])
def test_nothing_tunnels_below_the_speed_limit(shape, wall):
    """From anywhere before the wall, at 99 % of the limit; a wall of 1 mm is as good as a floor."""
    for offset in np.linspace(0, 0.1, 23):
        world = World(1 / 60, gravity=(0, 0, 0))
        thin = wall.kind == "box"
        world.add_static("wall", wall)
        place, way = ((-0.3 - offset, 0, 0), (1, 0, 0)) if thin else ((0, 0, 0.3 + offset), (0, 0, -1))
        world.add_body("it", shape, position=place)
        world["it"].move(velocity=0.99 * world.speed_limit * np.array(way), spin=(0, 0, 0))
        world.step(60)
        away = -world["it"].position[0] if thin else world["it"].position[2]
        assert away > 0.015


def test_a_plane_stops_what_is_faster_than_the_limit():
    for speed in (10.0, 100.0, 1000.0):
        world = World(1 / 60, gravity=(0, 0, 0))
        world.add_static("floor", shapes.plane())
        world.add_body("it", shapes.sphere(0.005), position=(0, 0, 30.1), velocity=(0, 0, -speed))
        assert speed > world.speed_limit
        lowest = 30.1
        for _ in range(round(60 * 35 / speed) + 5):
            world.step()
            lowest = min(lowest, world["it"].position[2])
        assert 0.0045 < lowest < 0.0055


@pytest.mark.parametrize("shape", [shapes.box((0.01, 0.004, 0.006)), shapes.cylinder(0.004, 0.01)])
def test_the_middle_of_what_spins_stays_above_the_floor(shape):
    """At 200 rad/s and 1/60 s it turns by several radians in a step: corners come from anywhere."""
    for seed in range(20):
        world = World(1 / 60)
        world.add_static("floor", shapes.plane())
        spin = 200 * np.random.default_rng(seed).normal(size=3)
        world.add_body("it", shape, mass=0.05, position=(0, 0, 0.3), velocity=(0, 0, -3), spin=spin)
        lowest = 0.3
        for _ in range(90):
            world.step()
            lowest = min(lowest, world["it"].position[2])
        assert lowest > 0.0031


@pytest.mark.parametrize("seed", [28, 78])
def test_what_is_inside_the_floor_comes_out(seed):
    """A mesh of 6 mm falls so fast that it is all inside after a step: it does not stay there."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3))
    points *= 0.006 / np.linalg.norm(points, axis=1).max()
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    hull = shapes.mesh(points, ConvexHull(points).simplices)
    world.add_body(
        "it",
        hull,
        mass=0.05,
        com=(0, 0, 0),
        inertia=7e-7 * np.eye(3),
        position=(0, 0, 0.7),
        spin=20 * rng.normal(size=3),
    )
    world.step(180)
    pose = world["it"].pose()
    assert (points @ pose[:3, :3].T + pose[:3, 3])[:, 2].min() > -1e-3


def test_height_fields_and_meshes():
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    ground = shapes.height_field(0.2 * (x**2 + y**2), (1, 1))
    corners = 0.05 * np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    world = World(1 / 60)
    world.add_static("bowl", ground, rolling=0.002)
    world.add_body("ball", shapes.sphere(0.05), position=(0.5, 0, 0.3))
    world.add_body(
        "cube",
        shapes.mesh(corners, ConvexHull(corners).simplices),
        mass=0.5,
        com=(0, 0, 0),
        inertia=0.5 * 0.1**2 / 6 * np.eye(3),
        position=(-0.4, 0.3, 0.3),
    )
    world.step(600)
    for name in ("ball", "cube"):
        x, y, z = world[name].position
        assert 0.03 < z - 0.2 * (x * x + y * y) < 0.12
        assert np.linalg.norm(world[name].twist()) < 0.05


# --- names, filters, states


def test_pairs_can_be_ignored():
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_static("shelf", shapes.box((0.1, 0.1, 0.01)), position=(0, 0, 0.3))
    for name, x in (("a", 0.0), ("b", 0.07)):
        world.add_body(name, shapes.sphere(0.03), position=(x, 0, 0.5))
    world.ignore("a", "shelf")
    world.step(120)
    assert world["a"].position[2] == pytest.approx(0.03, abs=1e-4)
    assert world["b"].position[2] == pytest.approx(0.34, abs=1e-4)


def test_contacts_tell_who_touches_whom_where_and_how():
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_body("ball", shapes.sphere(0.05), mass=1.0, position=(0.2, 0.1, 0.05))
    world.step(10)
    contacts = world.contacts
    assert contacts.bodies == (("ball", "floor"),)
    np.testing.assert_allclose(contacts.points, [[0.2, 0.1, 0]], atol=1e-6)
    np.testing.assert_allclose(contacts.normals, [[0, 0, -1]], atol=1e-12)
    np.testing.assert_allclose(contacts.forces, [[0, 0, -G]], atol=1e-9)
    np.testing.assert_allclose(contacts.force("ball", "floor"), [0, 0, G], atol=1e-9)
    np.testing.assert_allclose(contacts.force("floor"), [0, 0, -G], atol=1e-9)
    assert world.effort.residual <= 1e-6


def test_a_state_is_restored_to_the_last_digit():
    world = stack(3, gap=0.01)
    world.add_body("ball", shapes.sphere(0.03), position=(0.04, 0.01, 0.5))
    world.step(40)
    state, time = world.state, world.time
    world.step(40)
    later = world.poses
    world.state = state
    assert world.time == time
    world.step(40)
    assert np.array_equal(world.poses, later)


def test_reset_goes_back_to_the_start():
    world = stack(2, gap=0.01)
    world["box0"].apply_wrench(force=(1, 0, 0))
    world.step(30)
    first = world.poses
    world.reset()
    assert world.time == 0
    world["box0"].apply_wrench(force=(1, 0, 0))
    world.step(30)
    assert np.array_equal(world.poses, first)


def test_the_same_world_twice_moves_alike_to_the_last_digit():
    poses = []
    for _ in range(2):
        world = stack(4, gap=0.01)
        world.step(90)
        poses.append(world.poses)
    assert np.array_equal(*poses)


def test_bodies_can_join_on_the_way():
    world = stack(1)
    world.step(10)
    world.add_body("late", shapes.sphere(0.03), position=(0, 0, 0.2))
    world.step(120)
    assert world["late"].position[2] > 0.1
    assert world["box0"].position[2] == pytest.approx(0.05, abs=1e-4)


def test_a_pull_of_a_given_stiffness_gives_way_by_force_over_stiffness():
    """And its target moves it."""
    world = pliant.World(1 / 60)
    world.add_body("ball", pliant.shapes.sphere(0.1), mass=2.0)
    pull = world.pull("ball", (0, 0, 1.0), stiffness=400.0, damping=60.0)
    for height in (1.0, 0.5):
        pull.target[2] = height
        world.step(400)
        assert world["ball"].position[2] == pytest.approx(height - 2.0 * 9.81 / 400, rel=1e-6)
        np.testing.assert_allclose(pull.force, (0, 0, 2.0 * 9.81), atol=1e-6)


def test_a_pull_brings_a_body_to_its_target():
    for mass in (0.01, 100.0):
        world = World(1 / 60, gravity=(0, 0, 0))
        world.add_body("ball", shapes.sphere(0.05), mass=mass)
        world.pull("ball", (0.3, 0.2, 0.1))
        world.step()
        np.testing.assert_allclose(world.pulls["ball"], mass * world["ball"].twist()[:3] * 60, rtol=1e-9)
        world.step(119)
        np.testing.assert_allclose(world["ball"].position, (0.3, 0.2, 0.1), atol=1e-3)
        world.release("ball")
        assert world.pulls == {}
        world["ball"].move(velocity=(0, 0, 0), spin=(0, 0, 0))
        before = world["ball"].position
        world.step(30)
        np.testing.assert_allclose(world["ball"].position, before, atol=1e-9)


def test_a_trajectory_of_the_world(tmp_path):
    world = stack(2)
    world.add(pliant.gallery.two_link(), "arm", start=None)
    world.ignore("arm", "floor")
    world.ignore("arm", "box0")
    world.ignore("arm", "box1")
    trajectory = world.record(5, every=2)
    assert trajectory.mechanism.body_names[:2] == ("box0", "box1")
    np.testing.assert_allclose(trajectory.pose("box1")[-1], world.pose("box1"))
    name = next(n for n in world.body_names if n.startswith("arm/"))
    np.testing.assert_allclose(trajectory.pose(name)[-1], world.pose(name))
    trajectory.save(tmp_path / "world.npz")


# --- bad input


def test_bodies_that_overlap_at_the_start_are_named():
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_body("ball", shapes.sphere(0.05), position=(0, 0, 0.02))
    with pytest.raises(InputError, match=r"'ball' and 'floor' overlap by 30 mm.*world.ignore"):
        world.step()
    world.ignore("ball", "floor")
    world.step()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda w: w.add_body("b", shapes.sphere(0.1), friction=-0.1), "friction"),
        (lambda w: w.add_body("b", shapes.sphere(0.1), restitution=1.5), "restitution"),
        (lambda w: w.add_static("b", shapes.plane(), rolling=float("nan")), "rolling"),
        (lambda w: w.add_static("b", shapes.plane(), compliance="soft"), "compliance"),
        (lambda w: w.add_body("b", shapes.sphere(0.0)), "sphere"),
        (lambda w: w.add_body("b", shapes.plane()), "give mass"),
        (lambda w: w.add_body("b", shapes.sphere(0.1), mass=0.0), "mass"),
        (lambda w: w.add_body("b", shapes.sphere(0.1), position=(0, 0)), "'b'|position"),
        (lambda w: w.add_body("b", shapes.sphere(0.1), velocity=(0, 0, np.inf)), "velocity"),
        (lambda w: w.add_body("a/b", shapes.sphere(0.1)), "name"),
        (lambda w: w.add_body("floor", shapes.sphere(0.1)), "'floor'"),
        (lambda w: w.add(shapes.sphere(0.1)), "add_body"),
        (lambda w: w.pull("floor", (0, 0, 1)), "never moves"),
        (lambda w: w.step(-1), "step"),
        (lambda w: setattr(w, "state", 3), "state"),
    ],
)
def test_bad_input(act, message):
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    with pytest.raises(InputError, match=message):
        act(world)


def test_a_mesh_without_volume_cannot_touch():
    flat = shapes.mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 2, 3]])
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_body("sheet", flat, mass=1.0, com=(0.5, 0.5, 0), inertia=np.eye(3), position=(0, 0, 1))
    with pytest.raises(InputError, match="sheet"):
        world.step()


def test_unknown_names():
    world = stack(1)
    for act in (
        lambda: world["box"],
        lambda: world.ignore("box0", "flor"),
        lambda: world.pull("box", (0, 0, 0)),
    ):
        with pytest.raises(UnknownNameError):
            act()


def test_what_leaves_the_finite_numbers_stops_after_the_last_whole_step():
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_body("ball", shapes.sphere(0.05), position=(0, 0, 0.05))
    world.step(3)
    start = world.state
    world["ball"].apply_wrench(force=(1e308, 1e308, 1e308))
    with pytest.raises((ConvergenceError, InputError)):
        world.step(5)
    time, poses = world.time, world.poses
    assert np.isfinite(poses).all()
    world.state = start
    world.step(round((time - start.time) * 60))
    assert np.array_equal(world.poses, poses)
