"""Scenes with contact: each does what it says, forces add up, nothing comes apart or goes through anything."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from pliant import scenes
from pliant.errors import InputError

G = 9.81
SCENES = ("crane_and_wall", "grasp", "hexapod", "peg_in_hole", "suspension", "trampoline")


def tilt(pose):
    """Angle of the z axis from the vertical, degrees."""
    return np.degrees(np.arccos(min(pose[2, 2], 1.0)))


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_starts_and_ends_at_the_same_place_twice(name):
    """By default, and reproducibly to the last digit, from its state too."""
    scene = getattr(scenes, name)
    assert scene.__doc__
    inspect.signature(scene).bind()  # all arguments have defaults
    play = scene()
    play.step(5)
    state = play.world.state
    play.step(10)
    poses = play.world.poses
    play.world.state = state
    play.step(10)
    np.testing.assert_array_equal(play.world.poses, poses)
    again = scene()
    again.step(15)
    np.testing.assert_array_equal(again.world.poses, poses)


def test_the_bunny_is_a_closed_mesh():
    shape = scenes.bunny(0.05)
    assert shape.mesh is not None
    edges = np.concatenate([shape.mesh.faces[:, [i, (i + 1) % 3]] for i in range(3)])
    forth, back = ({tuple(e) for e in pairs.tolist()} for pairs in (edges, edges[:, ::-1]))
    assert forth == back
    assert len(forth) == len(edges) == 3 * 1472
    volume, centre, _ = shape.mass_properties()
    assert 5e-4 < volume < 7e-4  # a sphere of 50 mm has 5.2e-4
    assert abs(centre[1]) < 1e-4


# --- peg in hole


@pytest.mark.parametrize("kind", ["reduced", "full"])
@pytest.mark.parametrize("offset", [0.0, 0.003, 0.0044, -0.003])
def test_the_peg_goes_in_where_the_chamfer_catches_it(kind, offset):
    """Down to the floor of the hole, 30 mm deep: chamfer and clearance are 4.5 mm."""
    play = scenes.peg_in_hole(kind, offset=offset)
    play.run(2.5)
    pose = play.world.pose("hand/peg")
    assert pose[2, 3] - 0.03 == pytest.approx(-0.03, abs=1e-4)
    assert tilt(pose) < 0.2
    # It leans on the wall that is nearer, half a millimetre from the middle of the hole.
    aside = np.sign(offset) * max(abs(offset) - 0.0005, 0.0)
    assert pose[0, 3] == pytest.approx(aside, abs=1e-4)
    assert play.world.contacts.force("hole")[0] == pytest.approx(-2220 * aside, rel=0.15, abs=0.1)


@pytest.mark.parametrize("kind", ["reduced", "full"])
@pytest.mark.parametrize("offset", [0.005, 0.007, -0.005])
def test_the_peg_stands_on_the_rim_beyond_it(kind, offset):
    play = scenes.peg_in_hole(kind, offset=offset)
    play.run(2.5)
    assert play.world.pose("hand/peg")[2, 3] - 0.03 > -0.001
    assert play.world.contacts.force("hole")[2] < -10.0  # and is pressed onto it


def test_friction_holds_the_peg_on_the_chamfer():
    """At 45 degrees a coefficient of 1 is enough."""
    play = scenes.peg_in_hole(offset=0.003, friction=1.2)
    play.run(2.5)
    assert play.world.pose("hand/peg")[2, 3] - 0.03 > -0.005


def test_the_peg_is_the_only_end_effector():
    assert scenes.peg_in_hand().end_effectors == ("peg",)
    assert scenes.peg_in_hole().world["hand"].model.rank == 6


# --- hexapod


@pytest.mark.parametrize("kind", ["reduced", "full"])
def test_the_hexapod_walks(kind):
    play = scenes.hexapod(kind)
    world = play.world
    start = world.pose("hexapod/body")
    weight = 53.7637
    pushed, deepest, leaning = [], 0.0, 0.0
    for i in range(240):
        play.step()
        deepest = min(deepest, world.contacts.distances.min(initial=0.0))
        leaning = max(leaning, tilt(world.pose("hexapod/body")))
        if i >= 48:  # two and more whole periods of the gait
            pushed.append(world.contacts.force("hexapod"))
    moved = world.pose("hexapod/body")[:3, 3] - start[:3, 3]
    # 3.5 s, a stride of 60 mm in 0.4 s at full speed
    assert moved[0] == pytest.approx(0.44, abs=0.03)
    assert abs(moved[1]) < 0.02
    assert leaning < 3.0
    assert deepest > -2e-3
    np.testing.assert_allclose(np.mean(pushed, axis=0), [0, 0, weight], atol=0.02 * weight)


def test_reduced_and_full_hexapod_walk_alike():
    ends = []
    for kind in ("reduced", "full"):
        play = scenes.hexapod(kind, seed=1)
        play.run(3.0)
        ends.append(play.world.pose("hexapod/body")[:3, 3])
    np.testing.assert_allclose(*ends, atol=5e-3)


def test_a_hexapod_without_stride_stays():
    play = scenes.hexapod(stride=0.0, roughness=0.0)
    before = play.world.pose("hexapod/body")[:2, 3]
    play.run(3.0)
    # Feet give way sideways under the weight they take up and leave again: it creeps by a millimetre a second.
    np.testing.assert_allclose(play.world.pose("hexapod/body")[:2, 3], before, atol=5e-3)


# --- trampoline


@pytest.mark.parametrize("kind", ["reduced", "full"])
@pytest.mark.parametrize("aside", [(0.1, 0.05), (0.0, 0.35), (-0.3, 0.15)])
def test_the_bunny_is_caught(kind, aside):
    """And comes to rest; the reduced model has no numerical damping, and swings for longer, as it should."""
    play = scenes.trampoline(kind, aside=aside)
    bunny = play.world["bunny"]
    rim, top = play.world.pose("firefighters/trampoline")[2, 3], 0.0
    lowest = rim
    for i in range(600):
        play.step()
        lowest = min(lowest, play.world.pose("firefighters/trampoline")[2, 3])
        if i > 60:
            top = max(top, bunny.position[2])
    assert lowest < rim - 0.01  # they gave way
    assert top < 1.3  # it does not bounce
    assert np.abs(bunny.twist()).max() < 1e-4
    assert np.linalg.norm(bunny.position[:2] - aside) < 0.05
    np.testing.assert_allclose(play.world.contacts.force("bunny"), [0, 0, 2 * G], atol=0.02)
    assert np.linalg.norm(play.world.contacts.force("bunny", "floor")) == 0.0


# --- suspension


def ride(**arguments):
    """Heights of chassis and one wheel's hub, vertical acceleration of the chassis, and the road's force; in 2.5 s."""
    play = scenes.suspension(**arguments)
    rows, speed = [], 0.0
    for _ in range(round(2.5 / play.world.timestep)):
        play.step()
        before, speed = speed, play.world["car"].twist("chassis")[2]
        chassis, hub = (play.world.pose(f"car/{b}")[2, 3] for b in ("chassis", "front_left_wheel"))
        push = (speed - before) / play.world.timestep
        rows.append((chassis, hub, push, play.world.contacts.force("car")[2]))
    return play, np.array(rows).T


def test_the_car_rides_over_bumps():
    play, (chassis, hub, shaken, force) = ride()
    assert 9.0 < play.world.pose("car/chassis")[0, 3] < 11.0
    assert 0.05 < hub.max() - 0.3 < 0.08  # the wheel climbs the bump of 60 mm
    assert chassis.max() - 0.45 < 0.03  # the chassis by less than half of it
    assert np.mean(force) == pytest.approx(928 * G, rel=0.02)
    assert play.world["car"].violation < 1e-6
    stiff = ride(stiffness=14e5)[1]
    assert np.std(shaken[20:]) < 0.4 * np.std(stiff[2][20:])


def test_the_car_on_a_flat_road_rolls_on():
    play, (chassis, hub, _, _) = ride(bump=0.0)
    assert play.world["car"].twist("chassis")[0] == pytest.approx(4.0, abs=0.15)
    assert np.ptp(hub[200:]) < 2e-3
    assert np.ptp(chassis[200:]) < 0.015
    assert tilt(play.world.pose("car/chassis")) < 0.8  # the cabin is behind the middle


# --- crane


@pytest.mark.parametrize("swing", [10.0, 30.0, 60.0])
def test_the_vehicle_hits_the_wall(swing):
    play = scenes.crane_and_wall(swing)
    world, crane = play.world, play.world["crane"]
    mass, wall = 15e3, -1.3 - 0.5
    before = energy = crane.energy.total
    fastest, deepest, impulse, ends = 0.0, 0.0, 0.0, None
    for _ in range(180):
        play.step()
        fastest = min(fastest, crane.twist("vehicle")[1])
        push = world.contacts.force("wall")[1]
        impulse -= push / 60
        deepest = min(deepest, world.contacts.distances.min(initial=0.0))
        assert crane.energy.total < energy + 1e-6 * before  # no energy comes of it
        energy = crane.energy.total
        assert crane.violation < 1e-6
        if ends is None and push < 0 and crane.twist("vehicle")[1] > -0.05:
            ends = impulse
    # The wall has taken the vehicle's momentum, all but what the cable took meanwhile.
    assert ends == pytest.approx(-mass * fastest, rel=0.25)
    assert deepest > -0.01
    assert world.pose("crane/vehicle")[1, 3] > wall + 1.0
    sling, hook = (crane.pose(b) for b in ("segment30", "vehicle"))
    assert np.linalg.norm(sling[:3, 3] - (hook @ [0, 0, 2.5, 1])[:3]) < 0.05  # the cable holds


def test_a_wall_throws_back():
    dull, bouncy = (scenes.crane_and_wall(restitution=e) for e in (0.0, 0.8))
    back = []
    for play in (dull, bouncy):
        play.run(2.0)
        back.append(play.world["crane"].twist("vehicle")[1])
    assert back[1] > back[0] + 1.0


# --- arguments


@pytest.mark.parametrize(
    ("scene", "arguments", "match"),
    [
        ("peg_in_hole", {"offset": 0.02}, "offset"),
        ("peg_in_hole", {"clearance": 0.0}, "clearance"),
        ("peg_in_hole", {"kind": "blended"}, "kind"),
        ("hexapod", {"stride": 0.5}, "stride"),
        ("hexapod", {"seed": -1}, "seed"),
        ("trampoline", {"aside": (1.0, 0.0)}, "aside"),
        ("trampoline", {"aside": "left"}, "aside"),
        ("trampoline", {"height": 10.0}, "height"),
        ("suspension", {"bump": 0.5}, "bump"),
        ("suspension", {"speed": 50.0}, "speed"),
        ("crane_and_wall", {"swing": 90.0}, "swing"),
        ("crane_and_wall", {"gap": 0.0}, "gap"),
    ],
)
def test_bad_arguments(scene, arguments, match):
    with pytest.raises(InputError, match=match):
        getattr(scenes, scene)(**arguments)
