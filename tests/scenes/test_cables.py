"""Scenes: each builds, starts as it says, and moves without gaining energy or coming apart."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import pliant
from pliant import scenes
from pliant.errors import InputError

SECONDS = 2.0
CABLES = scenes.names("constrained")


def size(m):
    return 2 * m.radius


def work(scene, simulation, before):
    """Of motors during the last step, implicit midpoint: force at the middle times the way."""
    total = 0.0
    for joint, motor in scene.motors.items():
        way = simulation.configuration[joint] - before[joint]
        total += (motor["torque"] + motor["damping"] * (motor["velocity"] - way / simulation.timestep)) * way
    for body, force in scene.wrenches.items():
        total += float(np.dot(force, simulation.pose(body)[:3, 3] - before.pose(body)[:3, 3]))
    return total


def test_every_scene_is_listed():
    parts = {"Scene", "bunny", "car", "lifting_hand", "make", "names", "peg_in_hand"}
    assert set(scenes.names()) | parts == set(scenes.__all__)
    assert pliant.scenes is scenes
    for engine in ("constrained", "quasistatic", "world"):
        assert set(scenes.names(engine)) < set(scenes.names())
    for name in scenes.names():
        assert getattr(scenes, name).__doc__
        inspect.signature(getattr(scenes, name)).bind()  # all arguments have defaults
    for name in CABLES:
        assert scenes.make(name).timestep == 1 / 60


@pytest.mark.parametrize("rate", [30, 60])
@pytest.mark.parametrize("name", CABLES)
def test_scene_in_motion(name, rate):
    scene = scenes.make(name)
    m = scene.mechanism
    simulation = scene.simulate(1 / rate)
    np.testing.assert_allclose(simulation.q, scene.start, atol=1e-14)  # pyright: ignore[reportArgumentType, reportCallIssue]
    weighed = 9.81 * m.total_mass * size(m)
    start, given, gain, apart = simulation.energy.total, 0.0, 0.0, 0.0
    first = simulation.poses
    for _ in range(round(SECONDS * rate)):
        before = simulation.configuration
        simulation.step()
        given += work(scene, simulation, before)
        gain = max(gain, simulation.energy.total - start - given)
        apart = max(apart, simulation.violation)
    assert gain < 0.05 * weighed
    assert apart < 0.02 * size(m)
    assert np.abs(simulation.poses - first)[:, :3, 3].max() > 0.05  # something did move


def test_lift_raises_the_vehicle():
    scene = scenes.crane_lift(swing=0.0)
    simulation = scene.simulate()
    height = simulation.pose("vehicle")[2, 3]
    simulation.step(120)
    assert 1.5 < simulation.pose("vehicle")[2, 3] - height < 3.0
    at = scene.mechanism.dof_coordinate[scene.mechanism.dof_index("luff")]
    assert simulation.q[at] - scene.start[at] == pytest.approx(0.4, rel=0.1)


def test_crane_without_motor_rests():
    scene = scenes.crane_lift(swing=0.0, speed=0.0)
    assert not scene.motors
    simulation = scene.simulate()
    simulation.step(60)
    assert simulation.energy.kinetic < 1.0  # J, of 158 t
    np.testing.assert_allclose(simulation.q, scene.start, atol=1e-4)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_tank_without_force_rests():
    simulation = scenes.tank(force=0.0).simulate()
    simulation.step(60)
    assert simulation.energy.kinetic < 1e-6


@pytest.mark.parametrize("kind", ["bushing", "ball", "universal", "hinge"])
def test_heavy_ball_starts_aside(kind):
    """At the angle asked for, and the load moves across the plane of the swing."""
    scene = scenes.heavy_ball(1e4, 8, kind=kind, angle=60.0, push=0.5)
    simulation = scene.simulate()
    m = scene.mechanism
    hook = simulation.pose("load")[:3, 3] - m.reference_poses[m.body_index("load"), :3, 3]
    assert hook[0] == pytest.approx(2.0 * np.sin(np.pi / 3), rel=0.15)
    assert hook[1] == pytest.approx(0, abs=1e-9)
    assert np.abs(simulation.twist("load")[1]) > 0.2
    assert m.mass[m.body_index("load")] == pytest.approx(1000)


def test_spin_turns_the_load_about_the_cable():
    simulation = scenes.heavy_ball(100.0, push=0.0, spin=3.0, angle=30.0).simulate()
    turning = simulation.twist("load")[3:]
    cable = simulation.pose("segment3")[:3, 2]
    np.testing.assert_allclose(turning, 3.0 * cable, atol=1e-9)


def test_dropped_load_hangs_below_its_anchor():
    for kind in ("ball", "bushing"):
        scene = scenes.dropped_load(drop=0.3, kind=kind)
        simulation = scene.simulate()
        lifted = simulation.pose("load") - scene.mechanism.reference_poses[scene.mechanism.body_index("load")]
        np.testing.assert_allclose(lifted[:3, 3], (0, 0, 0.3), atol=1e-9)
        np.testing.assert_allclose(lifted[:3, :3], 0, atol=1e-12)


def test_slack_cable_ends_level_or_up():
    for slack, direction in ((0.5, (1, 0, 0)), (1.0, (0, 0, 1))):
        scene = scenes.slack_snap(slack=slack, joints=200)
        end = -scene.simulate().pose("segment199")[:3, 2]
        turned = np.array((np.hypot(end[0], end[1]), 0, end[2]))
        np.testing.assert_allclose(turned, direction, atol=0.02)


def test_other_methods_and_solvers():
    scene = scenes.heavy_ball(10.0, 5, kind="ball")
    for method in ("none", "full", "low-rank", "inertial", "constraint"):
        simulation = scene.simulate(0.001, stabilization=method)
        simulation.step(20)
        np.testing.assert_allclose(simulation.pose("load")[0, 3], 2.0 * np.sin(np.pi / 4), rtol=0.1)
    with pytest.raises(InputError, match="newmark"):
        scenes.crane_lift().simulate(stabilization="none")


BAD = [
    ("heavy_ball", {"ratio": 0}, "ratio"),
    ("heavy_ball", {"ratio": 1e9}, "ratio"),
    ("heavy_ball", {"joints": 1}, "joints"),
    ("heavy_ball", {"kind": "rope"}, "kind"),
    ("heavy_ball", {"angle": 180}, "angle"),
    ("heavy_ball", {"angle": -5}, "angle"),
    ("heavy_ball", {"push": float("nan")}, "push"),
    ("heavy_ball", {"spin": 1.0, "kind": "hinge"}, "spin"),
    ("dropped_load", {"load": "heavy"}, "load"),
    ("dropped_load", {"drop": 3.0}, "drop"),
    ("dropped_load", {"drop": 0}, "drop"),
    ("dropped_load", {"kind": "hinge"}, "kind"),
    ("dropped_load", {"axial": -1}, "axial"),
    ("dropped_load", {"bending": -1}, "bending"),
    ("dropped_load", {"joints": 2}, "joints"),
    ("slack_snap", {"slack": 2.0}, "slack"),
    ("slack_snap", {"ratio": None}, "ratio"),
    ("slack_snap", {"bending": [1]}, "bending"),
    ("crane_lift", {"segments": 0}, "segments"),
    ("crane_lift", {"swing": 90}, "swing"),
    ("crane_lift", {"speed": -0.1}, "speed"),
    ("boom_drop", {"strut": 0}, "strut"),
    ("boom_drop", {"segments": 1.5}, "segments"),
    ("tank", {"force": True}, "force"),
    ("tank", {"torque": 1.0}, "torque"),
]


@pytest.mark.parametrize(("name", "arguments", "culprit"), BAD)
def test_bad_arguments(name, arguments, culprit):
    with pytest.raises(InputError, match=rf"\b{culprit}\b"):
        scenes.make(name, **arguments)


def test_unknown_name():
    with pytest.raises(InputError, match="did you mean 'heavy_ball'"):
        scenes.make("heavy_bal")
    with pytest.raises(InputError, match="no scene 3"):
        scenes.make(3)  # pyright: ignore[reportArgumentType]
