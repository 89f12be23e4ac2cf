"""`QuasistaticSimulation`: the common words, statics as its limit, refinement, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from oracles.random_mechanisms import random_mechanism
from pliant.engines.quasistatic import QuasistaticSimulation
from pliant.errors import ConvergenceError, InputError, MechanismError, UnknownNameError
from pliant.mechanism import kinematics

NONE = (0, 0, 0)


def test_one_step_of_a_pendulum():
    b = pliant.Builder("pendulum")
    b.body("bob", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0))
    b.hinge("pin", "world", "bob", anchor=(0, 0, 0), axis=(0, 1, 0))
    s = QuasistaticSimulation(b.build(), 0.01)
    s.step()
    expected = 2 * 9.81 / 2.1  # weight times arm over inertia about the pin; down is positive about y
    np.testing.assert_allclose(s.accelerations, [expected])
    np.testing.assert_allclose(s.q, [1e-4 * expected])
    assert s.time == pytest.approx(0.01)
    assert s.active == ("pin",)
    assert s.error_bound == 0


def test_implicit_springs_in_one_step():
    """A spring so stiff that the step is a static solve: M/h² + B/h + K."""
    b = pliant.Builder("spring")
    b.body("bob", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.slide("rail", "world", "bob", axis=(1, 0, 0), stiffness=1e6, damping=10.0)
    s = QuasistaticSimulation(b.build(), 0.1, gravity=NONE)
    s.apply_wrench("bob", force=(5, 0, 0))
    s.step()
    np.testing.assert_allclose(s.q, [5 / (1e6 + 10 / 0.1 + 2 / 0.01)])
    s.step(5)
    np.testing.assert_allclose(s.q, [5e-6], rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_settles_into_the_static_equilibrium(seed):
    m = random_mechanism(
        seed, bodies=12, kinds=("hinge", "ball", "universal", "slide", "stack"), stiffness=2000.0
    )
    s = QuasistaticSimulation(m, 0.5, tolerance=1e-6)
    s.apply_wrench("b7", force=(3, -2, 1), torque=(0.1, 0.2, 0))
    s.apply_wrench("b3", force=(1, 0, 1), point=(0.1, 0.2, 0.3), frame="body")
    s.step(60)
    expected = pliant.equilibrium(
        m,
        {
            "b7": {"force": (3, -2, 1), "torque": (0.1, 0.2, 0)},
            "b3": {"force": (1, 0, 1), "point": (0.1, 0.2, 0.3), "frame": "body"},
        },
        gravity=(0, 0, -9.81),
    )
    np.testing.assert_allclose(s.poses, expected.poses, atol=1e-7)


def test_explicit_steps_of_the_paper():
    m = pliant.gallery.bicycle_chain(10)
    s = QuasistaticSimulation(m, 1e-3, NONE, tolerance=1e-9, implicit=False)
    s.apply_wrench(m.body_names[-1], force=(0, 0, 1))
    s.step()
    from pliant.statics.inertia import Inertia

    link = int(m.links.body_link[-1])
    jacobian = kinematics.link_jacobian(m, kinematics.link_poses(m, m.reference), link)
    expected = np.linalg.solve(Inertia(m, m.reference).dense(), jacobian[:3].T @ (0, 0, 1.0))
    np.testing.assert_allclose(s.accelerations, expected, atol=1e-9 * np.abs(expected).max())


def test_motors():
    m = random_mechanism(4, bodies=8, kinds=("hinge", "ball"))
    s = QuasistaticSimulation(m, 0.01, NONE, tolerance=1e-9)
    s.step()
    joint = m.joint_names[3]
    s.set_motor(joint, torque=2.0)
    s.step()
    torque = np.zeros(m.nv)
    torque[m.joint_dofs(3)] = 2.0
    other = QuasistaticSimulation(m, 0.01, NONE, tolerance=1e-9, start=m.reference)
    other.set_motor(joint, torque=[2.0] * len(torque[m.joint_dofs(3)]))
    other.step()
    np.testing.assert_allclose(s.accelerations, other.accelerations, rtol=1e-9, atol=1e-12)
    s.clear_motors()
    s.step(400)
    np.testing.assert_allclose(s.q, m.reference, atol=1e-4)


def test_words():
    m = random_mechanism(2, bodies=9, kinds=("hinge", "ball", "fixed", "universal"))
    s = QuasistaticSimulation(m, 0.02, tolerance=0.1)
    s.apply_wrench("b8", force=(1, 2, 3))
    s.step(3)
    kept = s.state
    track = s.record(4, every=2)
    assert len(track) == 4
    np.testing.assert_array_equal(track.poses[-1], s.poses)
    for body in m.body_names:
        np.testing.assert_allclose(s.pose(body), s.poses[m.body_index(body)], atol=1e-12)
    np.testing.assert_allclose(s.poses, kinematics.link_poses(m, s.q)[m.links.body_link], atol=1e-11)
    s.state = kept
    again = s.record(4, every=2)
    np.testing.assert_allclose(again.poses, track.poses, atol=1e-13)
    s.reset()
    assert s.time == 0
    np.testing.assert_array_equal(s.q, m.reference)
    np.testing.assert_array_equal(s.configuration.q, m.reference)
    np.testing.assert_array_equal(s.pose("world"), np.eye(4))
    q = np.asarray(kept)[3 : 3 + m.nq]
    s.q = q
    np.testing.assert_array_equal(s.q, q)


def test_pose_without_poses():
    m = random_mechanism(5, bodies=20, kinds=("hinge", "ball", "universal"))
    s = QuasistaticSimulation(m, 0.02, tolerance=0.5)
    s.step(3)
    found = [s.pose(body) for body in m.body_names]
    np.testing.assert_allclose(found, s.poses, atol=1e-12)


def test_same_input_same_bits():
    m = pliant.gallery.molecule(500)
    ends = []
    for parts in ((20,), (1,) * 20, (7, 13)):
        s = QuasistaticSimulation(m, 0.01, NONE, tolerance=2.0**-7)
        s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-2))
        for n in parts:
            s.step(n)
        ends.append(s.q)
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


@pytest.mark.parametrize("measure", ["relative-joint", "absolute-linkage", "world"])
def test_refinement_goes_on(measure):
    m = pliant.gallery.molecule(800)
    s = QuasistaticSimulation(m, 0.01, NONE, tolerance=1e6, measure=measure)
    s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-2))
    bounds = [s.refine(1e-9) for _ in range(6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]
    few = len(s.active)
    assert 0 < few < 800
    q = s.q
    s.step()
    assert len(s.active) == few
    assert np.count_nonzero(s.q - q) <= few
    assert s.refine(10.0) == 0


def test_world_measure_is_in_metres():
    m = pliant.gallery.millipede(20, 5, 60)
    exact = QuasistaticSimulation(m, 0.01, NONE, tolerance=1e-12)
    rough = QuasistaticSimulation(m, 0.01, NONE, tolerance=1e-6, measure="world")
    computed = []
    for s in (exact, rough):
        s.apply_wrench("leg7_5", force=(0, 0, 0.05))
        s.refine()
        computed.append(len(s.active))
        s.step()
    off = np.sqrt(((exact.poses - rough.poses)[:, :3, 3] ** 2).sum(axis=1)).max()
    assert off <= 1e-6
    assert computed[1] < computed[0]


def test_levers_bound_the_world_with_fewer_joints():
    m = pliant.gallery.millipede(20, 5, 60)
    s = QuasistaticSimulation(m, 0.01, NONE, weights="lever", measure="absolute-joint", tolerance=1e-3)
    s.apply_wrench("leg7_5", force=(0, 0, 0.05))
    s.step()
    assert 0 < len(s.active) < 160


def test_masses_far_apart():
    """A gram between a ton and a ton: inverse inertias differ by nine orders of magnitude."""
    b = pliant.Builder("uneven")
    parent = "world"
    for i in range(12):
        mass = (1e3, 1e-3, 1.0)[i % 3]
        b.body(f"b{i}", mass=mass, inertia=0.02 * mass * np.ones(3), position=(0.5 * i, 0, 0))
        b.ball(f"j{i}", parent, f"b{i}", anchor=(0.5 * i - 0.25, 0, 0))
        parent = f"b{i}"
    m = b.build()
    s = QuasistaticSimulation(m, 1e-3, tolerance=1e-15)
    s.apply_wrench("b11", force=(0, 1, 0))
    s.step()
    from pliant.statics.inertia import Inertia

    poses = kinematics.link_poses(m, m.reference)
    right = kinematics.link_jacobian(m, poses, int(m.links.body_link[11]))[1]
    for body, link in enumerate(m.links.body_link):
        right = right - 9.81 * m.mass[body] * kinematics.link_jacobian(m, poses, int(link))[2]
    exact = np.linalg.solve(Inertia(m, m.reference).dense(), right)
    np.testing.assert_allclose(s.accelerations, exact, atol=1e-7 * np.abs(exact).max())


def test_many_wrenches_are_handed_over_together():
    m = pliant.gallery.molecule(300)
    s = QuasistaticSimulation(m, 1e-3, (0, 0, 0), tolerance=1e-12)
    for body in m.body_names:
        s.apply_wrench(body, force=(0, 0, 1e-3))
    s.step()
    assert len(s.active) == 300
    s.clear_wrenches()
    for body in m.body_names[:3]:
        s.apply_wrench(body, force=(0, 0, 1e-3))
    s.q = m.reference
    s.step()
    other = QuasistaticSimulation(m, 1e-3, (0, 0, 0), tolerance=1e-12)
    for body in m.body_names[:3]:
        other.apply_wrench(body, force=(0, 0, 1e-3))
    other.step()
    np.testing.assert_allclose(s.q, other.q, atol=1e-15)


def test_refuses_bodies_without_inertia():
    b = pliant.Builder("points")
    b.body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.ball("one", "world", "a", anchor=(0, 0, 1))
    b.body("point", mass=1.0, inertia=(0, 0, 0), position=(1, 0, 0))
    b.hinge("two", "a", "point", anchor=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(MechanismError, match="'point'"):
        QuasistaticSimulation(b.build(), 0.01)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"tolerance": 0}, "tolerance"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"tolerance": "small"}, "tolerance"),
        ({"measure": "joint"}, "relative-joint"),
        ({"measure": 3}, "measure"),
        ({"weights": "heavy"}, "weights"),
        ({"weights": [1.0]}, "weights"),
        ({"weights": {"pin": -1.0}}, "weights"),
        ({"gravity": (0, 0)}, "gravity"),
        ({"timestep": 0.0}, "timestep"),
    ],
)
def test_refuses_unusable_arguments(wrong, match):
    m = pliant.gallery.bicycle_chain(3)
    if isinstance(wrong.get("weights"), dict):
        wrong = {"weights": {m.joint_names[1]: -1.0}}
    with pytest.raises(InputError, match=match):
        QuasistaticSimulation(m, **{"timestep": 0.01, **wrong})


def test_refuses_what_is_no_mechanism_and_what_cannot_move():
    with pytest.raises(InputError, match="Mechanism"):
        QuasistaticSimulation("chain", 0.01)  # type: ignore[arg-type]
    b = pliant.Builder("statue")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.fixed("j", "world", "a")
    with pytest.raises(InputError, match="fixed"):
        QuasistaticSimulation(b.build(), 0.01)


def test_refuses_unusable_calls():
    m = pliant.gallery.bicycle_chain(3)
    s = QuasistaticSimulation(m, 0.01)
    with pytest.raises(UnknownNameError):
        s.apply_wrench("nobody", force=(0, 0, 1))
    with pytest.raises(InputError):
        s.apply_wrench("world", force=(0, 0, 1))
    with pytest.raises(InputError):
        s.set_motor(m.joint_names[0], torque=float("inf"))
    with pytest.raises(InputError):
        s.state = [1.0]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InputError):
        s.refine(0.0)
    with pytest.raises(InputError):
        s.step(-1)


def test_motion_that_leaves_the_numbers_is_reported():
    m = pliant.gallery.bicycle_chain(5)
    s = QuasistaticSimulation(m, 0.01)
    before = s.q
    s.apply_wrench(m.body_names[-1], force=(0, 0, 1e308), torque=(1e308, 0, 0))
    with pytest.raises(ConvergenceError):
        s.step()
    np.testing.assert_array_equal(s.q, before)
    assert s.time == 0
    s.clear_wrenches()
    s.step()
    assert np.isfinite(s.q).all()
