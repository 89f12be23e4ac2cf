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


def test_places_of_some_bodies_need_fewer_joints():
    m = pliant.gallery.molecule(3000).with_stiffness("*", 0.0, 0.0)
    counts = {}
    for bodies in (None, "bond1500", ["bond1500", "bond1501"]):
        s = QuasistaticSimulation(m, 0.01, NONE, measure="world", tolerance=1e-9, bodies=bodies)
        s.apply_wrench("bond2900", force=(0, 0, 1e-3))
        assert s.refine() <= 1e-9
        counts[str(bodies)] = len(s.active)
        exact = QuasistaticSimulation(m, 0.01, NONE, tolerance=1e-14)
        exact.apply_wrench("bond2900", force=(0, 0, 1e-3))
        exact.step()
        s.step()
        apart = np.sqrt(((s.poses - exact.poses)[:, :3, 3] ** 2).sum(axis=1))
        counted = [m.body_index(name) for name in ("bond1500",)] if bodies else slice(None)
        assert apart[counted].max() <= s.error_bound * (1 + 1e-3)
    assert counts["bond1500"] <= counts["['bond1500', 'bond1501']"] <= counts["None"]
    assert counts["bond1500"] < counts["None"]


@pytest.mark.parametrize("name", ["molecule", "millipede"])
def test_bounds_on_places_are_tight_under_one_force(name):
    """The bound over the true error of one step; the worst seen among 60 is 8."""
    m = (
        pliant.gallery.molecule(3000) if name == "molecule" else pliant.gallery.millipede(30, 5, 300)
    ).with_stiffness("*", 0.0, 0.0)
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        body, force = m.body_names[int(rng.integers(m.body_count))], 1e-3 * rng.normal(size=3)
        exact = QuasistaticSimulation(m, 1e-3, NONE, tolerance=1e-15, implicit=False)
        exact.apply_wrench(body, force=force)
        exact._load()
        exact._solver.step_aba()

        def moved(accelerations):
            small = 1e-6 / np.abs(accelerations).max() * accelerations
            ends = [pliant.Configuration(m, m.reference + side * small).poses for side in (1, -1)]
            apart = [poses[:, :3, 3] + np.einsum("nij,nj->ni", poses[:, :3, :3], m.com) for poses in ends]
            apart = [apart[0] - apart[1], ends[0][:, :3, 3] - ends[1][:, :3, 3]]
            most = max(np.sqrt((one**2).sum(axis=1)).max() for one in apart)
            return most / 2e-6 * np.abs(accelerations).max() * 1e-6

        whole = moved(exact.accelerations)
        for epsilon in (1e-1, 1e-2, 1e-4):
            s = QuasistaticSimulation(
                m, 1e-3, NONE, tolerance=epsilon * whole, measure="world", implicit=False
            )
            s.apply_wrench(body, force=force)
            bound = s.refine()
            assert bound <= epsilon * whole
            if len(s.active) < m.joint_count:
                ratios.append(bound / moved(s.accelerations - exact.accelerations))
    assert min(ratios) >= 1
    assert np.median(ratios) < 4
    assert max(ratios) < 10


def test_rigid_joints_stay_with_the_exact_motion():
    """After 300 steps at the same joints the error is a small part of that with zeroed joints."""
    m = pliant.gallery.molecule(1500, seed=5).with_stiffness("*", 0.0, 0.0)
    sims = {}
    for name, options in {
        "exact": {"tolerance": 1e-14},
        "rigid": {"tolerance": 2.0**-7},
        "zero": {"tolerance": 2.0**-7, "inactive": "zero"},
    }.items():
        s = sims[name] = QuasistaticSimulation(m, 0.02, NONE, implicit=False, **options)
        s.apply_wrench("bond1200", force=(0.2e-3, 0.5e-3, 1e-3))
        s.step(300)
    moved = np.abs((sims["exact"].poses - QuasistaticSimulation(m, 1.0).poses)[:, :3, 3]).max()
    off = {name: np.abs((s.poses - sims["exact"].poses)[:, :3, 3]).max() / moved for name, s in sims.items()}
    assert len(sims["rigid"].active) < 200
    assert moved > 0.01
    assert off["rigid"] < 0.1 * off["zero"]


@pytest.mark.parametrize("measure", ["world", "energy"])
def test_a_state_carries_the_number_of_joints_to_start_with(measure):
    m = pliant.gallery.molecule(2000).with_stiffness("*", 0.0, 0.0)
    tolerance = {"world": 1e-9, "energy": 0.01}[measure]
    sims = [QuasistaticSimulation(m, 1e-3, NONE, tolerance=tolerance, measure=measure) for _ in range(2)]
    sims[0].apply_wrench("bond1900", force=(0, 0, 1e-3))
    sims[0].step(10)
    sims[1].apply_wrench("bond1900", force=(0, 0, 1e-3))
    sims[1].state = sims[0].state
    for s in sims:
        s.step(3)
    assert sims[0].active == sims[1].active
    assert 0 < len(sims[0].active) < 500
    assert sims[0].error_bound <= tolerance
    np.testing.assert_allclose(sims[0].q, sims[1].q, rtol=0, atol=1e-13)


@pytest.mark.parametrize("inactive", ["rigid", "zero"])
@pytest.mark.parametrize("measure", ["absolute-joint", "world"])
def test_few_joints_at_a_time_settle_into_the_static_equilibrium(inactive, measure):
    m = pliant.gallery.molecule(400, seed=2)
    options = {"tolerance": 1e-9, "measure": measure, "inactive": inactive}
    s = pliant.simulate(m, "quasistatic", 0.01, gravity=NONE, **options)
    assert isinstance(s, QuasistaticSimulation)
    s.apply_wrench("bond380", force=(0, 0, 0.5))
    s._solver.small, s._solver.most = False, 1000  # by the tree
    s.step(400)
    rest = pliant.equilibrium(m, {"bond380": (0, 0, 0.5)})
    assert np.abs(s.poses - rest.poses).max() < 1e-5


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
        ({"inactive": "free"}, "inactive is 'rigid' or 'zero', not 'free'"),
        ({"bodies": ["link1"]}, "bodies: only the measure 'world'"),
        ({"measure": "world", "bodies": 3}, "bodies: a name or a list of names"),
        ({"measure": "world", "bodies": []}, "bodies: names of bodies that move"),
        ({"measure": "world", "bodies": "world"}, "bodies: names of bodies that move"),
        ({"measure": "world", "bodies": ["nobody"]}, "nobody"),
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
