"""`ConstrainedSimulation`: its words, its state, and what it refuses."""

import numpy as np
import pytest

import pliant
from oracles import dense, motion
from pliant.engines.constrained.gs17.stepper import METHODS as STABILIZATIONS
from pliant.errors import ConvergenceError, InputError, MechanismError, UnknownNameError
from pliant.mechanism import kinematics

G = 9.81
NONE = (0.0, 0.0, 0.0)
METHODS = ("newmark", *STABILIZATIONS)


def pendulum(**joint):
    b = pliant.Builder("pendulum")
    b.body("bob", mass=2.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, -1))
    b.hinge("pivot", "world", "bob", anchor=NONE, axis=(0, 1, 0), **joint)
    return b.build()


def everything():
    """Hinge, slide, ball, a loop, a coupling, a tendon, springs and dampers."""
    b = pliant.Builder("everything")
    spring = {"stiffness": 20.0, "damping": 0.5}
    for i in range(5):
        b.body(
            f"b{i}", mass=1.0 + i, inertia=(0.02, 0.03, 0.04), com=(0.01, 0, 0.02), position=(0.3 * i, 0, 0)
        )
    b.hinge("h0", "world", "b0", anchor=(-0.1, 0, 0), axis=(0, 1, 0), **spring)
    b.slide("s1", "b0", "b1", axis=(1, 0, 0), **spring)
    b.ball("a2", "b1", "b2", anchor=(0.5, 0, 0), **spring)
    b.hinge("h3", "b2", "b3", anchor=(0.7, 0, 0), axis=(0, 0, 1), **spring)
    b.hinge("h4", "b3", "b4", anchor=(1.0, 0, 0), axis=(0, 1, 0), **spring)
    b.bushing("tie", "world", "b4", anchor=(1.2, 0, 0.1), **spring)
    b.couple({"h3": 1.0, "h4": -0.5})
    b.tendon("cord", {"h0": 1.0, "h4": 0.5}, stiffness=5.0, damping=0.1)
    return b.build()


def busy(method="newmark", h=0.005):
    """Something that moves, with a wrench on it."""
    if method == "newmark":
        s = pliant.ConstrainedSimulation(everything(), h)
        s.apply_wrench("b4", force=(1.0, 4.0, -2.0), point=(0, 0.1, 0))
    else:
        s = pliant.ConstrainedSimulation(motion.chain("ball", 2.0), h, stabilization=method)
        s.apply_wrench("load", force=(1.0, 4.0, -2.0), torque=(0, 0.1, 0))
    s.step(20)
    return s


# --- the common words


def test_time_and_steps():
    s = pliant.ConstrainedSimulation(pendulum(), 0.01)
    assert s.time == 0.0
    assert s.timestep == 0.01
    s.step()
    s.step(9)
    s.step(0)
    assert s.time == pytest.approx(0.1, abs=1e-15)
    assert s.mechanism.name == "pendulum"


def test_many_steps_at_once_are_the_same_as_one_by_one():
    a, b = busy(), busy()
    a.step(30)
    for _ in range(30):
        b.step()
    assert np.array_equal(a.q, b.q)
    assert np.array_equal(a.velocity, b.velocity)
    assert a.time == pytest.approx(b.time)


def test_poses_are_those_of_the_coordinates():
    s = busy()
    np.testing.assert_allclose(s.poses, dense.body_poses(s.mechanism, s.q), atol=1e-12)
    for b, name in enumerate(s.mechanism.body_names):
        assert np.array_equal(s.pose(name), s.poses[b])
    assert np.array_equal(s.pose("world"), np.eye(4))
    np.testing.assert_allclose(s.configuration.poses, s.poses, atol=1e-14)
    with pytest.raises(ValueError, match="read-only"):
        s.poses[0, 0, 0] = 2.0
    s.pose("b1")[:] = 0.0  # a copy
    assert s.pose("b1")[3, 3] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_the_state_goes_round_bit_for_bit(method):
    s = busy(method)
    kept = s.state
    s.step(25)
    later, poses = s.state, s.poses.copy()
    s.state = kept
    assert np.array_equal(s.state, kept)
    s.step(25)
    assert np.array_equal(s.state, later)
    assert np.array_equal(s.poses, poses)
    assert not np.asarray(kept).flags.writeable


def test_the_state_moves_to_another_simulation():
    a = busy()
    b = pliant.ConstrainedSimulation(everything(), 0.005)
    b.apply_wrench("b4", force=(1.0, 4.0, -2.0), point=(0, 0.1, 0))
    b.state = a.state
    assert b.time == a.time
    a.step(10)
    b.step(10)
    assert np.array_equal(a.state, b.state)


@pytest.mark.parametrize("method", METHODS)
def test_two_simulations_do_the_same(method):
    a, b = busy(method), busy(method)
    assert np.array_equal(a.state, b.state)
    assert a.effort == b.effort


@pytest.mark.parametrize("method", METHODS)
def test_reset_goes_back_to_the_start(method):
    s = busy(method)
    s.reset()
    assert s.time == 0.0
    assert np.array_equal(s.velocity, np.zeros(s.mechanism.nv))
    np.testing.assert_allclose(s.poses, s.mechanism.reference_poses, atol=1e-12)
    fresh = pliant.ConstrainedSimulation(s.mechanism, s.timestep, stabilization=method)
    s.step(10)  # no wrench is left
    fresh.step(10)
    assert np.array_equal(s.poses, fresh.poses)


def test_reset_goes_back_to_a_given_start():
    s = pliant.ConstrainedSimulation(pendulum(), 0.01, start={"pivot": 0.7})
    s.step(10)
    s.reset()
    np.testing.assert_array_equal(s.q, [0.7])


@pytest.mark.parametrize(
    "start", [{"pivot": 0.7}, [0.7], np.array([0.7]), pliant.Configuration(pendulum(), {"pivot": 0.7})]
)
def test_starts(start):
    s = pliant.ConstrainedSimulation(pendulum(), 0.01, start=start)
    np.testing.assert_array_equal(s.q, [0.7])
    np.testing.assert_array_equal(s.velocity, [0.0])


def test_record_is_a_trajectory():
    a, b = busy(), busy()
    trajectory = a.record(6, every=5)
    assert isinstance(trajectory, pliant.Trajectory)
    assert len(trajectory) == 6
    assert trajectory.poses.shape == (6, 5, 4, 4)
    for i in range(6):
        b.step(5)
        assert trajectory.time[i] == b.time
        assert np.array_equal(trajectory.poses[i], b.poses)
    assert np.array_equal(trajectory.pose("b4")[-1], b.pose("b4"))


def test_a_wrench_stays_until_replaced_or_cleared():
    b = pliant.Builder("free")
    b.body("body", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.free("free", "world", "body")
    s = pliant.ConstrainedSimulation(b.build(), 0.01, gravity=NONE)
    s.apply_wrench("body", force=(4.0, 0, 0))
    s.step(100)
    np.testing.assert_allclose(s.twist("body"), [2.0, 0, 0, 0, 0, 0], atol=1e-9)
    s.apply_wrench("body", torque=(0, 0, 0.2))  # replaces the force
    s.step(100)
    np.testing.assert_allclose(s.twist("body"), [2.0, 0, 0, 0, 0, 2.0], atol=1e-9)
    s.apply_wrench("body", force=(0, 0, 0))  # none at all
    s.step(100)
    np.testing.assert_allclose(s.twist("body"), [2.0, 0, 0, 0, 0, 2.0], atol=1e-9)
    s.apply_wrench("body", force=(0, 6.0, 0))
    s.clear_wrenches()
    s.step(100)
    np.testing.assert_allclose(s.twist("body"), [2.0, 0, 0, 0, 0, 2.0], atol=1e-9)


# --- joints


def test_setting_q_stops_everything_and_keeps_time():
    s = busy()
    time = s.time
    s.q = s.mechanism.reference
    assert s.time == time
    assert np.array_equal(s.velocity, np.zeros(s.mechanism.nv))
    assert s.energy.kinetic == 0.0
    np.testing.assert_allclose(s.poses, s.mechanism.reference_poses, atol=1e-12)
    s.q[:] = 5.0  # a copy
    np.testing.assert_array_equal(s.q, s.mechanism.reference)


@pytest.mark.parametrize("method", METHODS)
def test_velocity_is_what_was_set(method):
    s = pliant.ConstrainedSimulation(motion.chain("universal", 2.0), 0.01, stabilization=method)
    v = np.random.default_rng(0).normal(size=s.mechanism.nv)
    s.velocity = v
    np.testing.assert_allclose(s.velocity, v, atol=1e-9)
    # twists are Jacobian times velocity
    for body in ("link3", "load"):
        expected = s.configuration.jacobian(body, frame="world") @ v
        np.testing.assert_allclose(s.twist(body), expected, atol=1e-9)
    np.testing.assert_array_equal(s.twist("world"), np.zeros(6))


def test_velocity_by_names():
    s = pliant.ConstrainedSimulation(everything(), 0.01)
    s.velocity = {"h0": 1.0, "a2": (0.1, 0.2, 0.3)}
    expected = np.zeros(s.mechanism.nv)
    expected[0], expected[2:5] = 1.0, (0.1, 0.2, 0.3)
    np.testing.assert_array_equal(s.velocity, expected)


def test_kinetic_energy_is_half_v_m_v():
    m = everything()
    s = pliant.ConstrainedSimulation(m, 0.01)
    v = np.random.default_rng(1).normal(size=m.nv)
    v[m.joint_dofs(m.joint_names.index("tie"))] = 0.0
    v[m.joint_dofs(m.joint_names.index("tie"))] = _closing(m, v)
    s.velocity = v
    np.testing.assert_allclose(s.energy.kinetic, 0.5 * v @ dense.mass_matrix(m, m.reference) @ v, rtol=1e-8)


def _closing(m, v):
    """Velocities of the loop-closing joint that go with those of the tree."""
    J = kinematics.constraint_rows(m, kinematics.link_poses(m, m.reference))[:6]
    part = m.joint_dofs(m.joint_names.index("tie"))
    return np.linalg.lstsq(J[:, part], -J @ v, rcond=None)[0]


@pytest.mark.parametrize("method", METHODS)
def test_twists_are_differences_of_poses(method):
    s = busy(method, h=1e-4)
    before, twists = s.poses.copy(), np.array([s.twist(name) for name in s.mechanism.body_names])
    s.step()
    after = s.poses
    twists = (twists + np.array([s.twist(name) for name in s.mechanism.body_names])) / 2
    for b in range(s.mechanism.body_count):
        linear = (after[b, :3, 3] - before[b, :3, 3]) / 1e-4
        angular = dense.rotation_vector(after[b, :3, :3] @ before[b, :3, :3].T) / 1e-4
        scale = 1e-4 * max(1.0, np.abs(twists[b]).max())
        # GS17's methods are of first order
        atol = scale * (1 if method == "newmark" else 100)
        np.testing.assert_allclose([*linear, *angular], twists[b], atol=atol)


# --- energy, effort, damping


def test_energy_by_hand():
    b = pliant.Builder("hand")
    b.body("bob", mass=2.0, inertia=(0.01, 0.02, 0.03), position=(0, 0, -1), com=(0, 0, 0.1))
    b.hinge("pivot", "world", "bob", anchor=NONE, axis=(0, 1, 0), stiffness=7.0, rest=0.2, armature=0.3)
    s = pliant.ConstrainedSimulation(b.build(), 0.01, start={"pivot": 0.6})
    s.velocity = [3.0]
    inertia = 0.02 + 2.0 * 0.81 + 0.3
    assert s.energy.kinetic == pytest.approx(0.5 * inertia * 9.0, rel=1e-12)
    assert s.energy.gravity == pytest.approx(-2.0 * G * 0.9 * np.cos(0.6), rel=1e-12)
    assert s.energy.elastic == pytest.approx(0.5 * 7.0 * 0.16, rel=1e-12)
    assert s.energy.total == pytest.approx(s.energy.kinetic + s.energy.gravity + s.energy.elastic)


def test_elastic_energy_of_everything():
    s = busy()
    m = s.mechanism
    expected = dense.spring_energy(m, s.q, m.rest, m.tendon_rest)
    assert expected > 1e-3
    assert s.energy.elastic == pytest.approx(expected, rel=1e-9)


def test_energy_does_not_grow_in_everything():
    s = pliant.ConstrainedSimulation(everything(), 1 / 60)
    last = start = s.energy.total
    for _ in range(600):
        s.step()
        assert s.energy.total < last + 1e-3 * G
        last = s.energy.total
    assert last < start
    assert s.violation < 1e-6


def test_effort_counts():
    s = pliant.ConstrainedSimulation(pendulum(), 0.01, start={"pivot": 1.0})
    assert s.effort.solves == s.effort.substeps == s.effort.unsettled == 0
    s.step(50)
    assert s.effort.substeps == 50
    assert 50 <= s.effort.solves <= 200
    assert s.effort.unsettled == 0
    assert np.array_equal(s.damping, np.zeros((1, 6)))


def test_no_force_before_the_first_step():
    s = pliant.ConstrainedSimulation(pendulum(), 0.01)
    assert np.array_equal(s.joint_forces, np.zeros((1, 6)))
    s.step()
    np.testing.assert_allclose(s.joint_forces[0], [0, 0, 2 * G, 0, 0, 0], atol=1e-9)


# --- settling


def test_settle_hands_an_equilibrium_to_reduce():
    m = pliant.gallery.helix(12)
    s = pliant.ConstrainedSimulation(m, 1 / 60)
    found = s.settle()
    assert isinstance(found, pliant.Configuration)
    expected = pliant.equilibrium(m, gravity=(0, 0, -G))
    np.testing.assert_allclose(found.poses, expected.poses, atol=1e-8)
    np.testing.assert_array_equal(s.q, found.q)
    assert s.energy.kinetic == 0.0
    model, other = pliant.reduce(m, at=found), pliant.reduce(m, at=expected)
    assert np.abs(model.compliance - other.compliance).max() < 1e-6 * np.abs(other.compliance).max()


def test_settle_finds_the_bottom_of_a_pendulum():
    s = pliant.ConstrainedSimulation(pendulum(), 1 / 60, start={"pivot": 2.0})
    found = s.settle()
    assert abs(found.q[0]) < 1e-8


# --- every method


@pytest.mark.parametrize("solver", [None, "tree", "dense"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_swings_a_pendulum(method, solver):
    m = pendulum()
    if (method, solver) in (("newmark", "dense"), ("full", "tree"), ("low-rank", "tree")):
        with pytest.raises(InputError, match="dense"):
            pliant.ConstrainedSimulation(m, 1e-3, stabilization=method, solver=solver)
        return
    start = {"pivot": 0.3}
    exact = pliant.ConstrainedSimulation(m, 1e-3, start=start)
    s = pliant.ConstrainedSimulation(m, 1e-3, stabilization=method, solver=solver, start=start)
    exact.step(300)
    s.step(300)
    assert np.abs(s.poses - exact.poses).max() < 5e-3
    assert abs(s.q[0] - exact.q[0]) < 5e-3
    assert abs(s.velocity[0] - exact.velocity[0]) < 2e-2
    assert s.violation < 1e-3
    np.testing.assert_allclose(s.joint_forces[0, 2], exact.joint_forces[0, 2], rtol=0.02)
    np.testing.assert_allclose(s.energy.total, exact.energy.total, atol=0.02 * 2 * G)


@pytest.mark.parametrize("method", STABILIZATIONS)
def test_the_papers_methods_run_a_chain(method):
    exact = motion.swinging("ball", 5.0, 1e-3)
    s = pliant.ConstrainedSimulation(exact.mechanism, 1e-3, stabilization=method)
    s.velocity = exact.velocity
    exact.step(100)
    s.step(100)
    assert np.abs(s.pose("load") - exact.pose("load")).max() < 0.01


# --- what is refused


@pytest.mark.parametrize("timestep", [0, 0.0, -0.01, np.nan, np.inf, "0.01", None])
def test_bad_timesteps(timestep):
    with pytest.raises(InputError, match="timestep"):
        pliant.ConstrainedSimulation(pendulum(), timestep)


@pytest.mark.parametrize("gravity", [9.81, (0, 0), (0, 0, np.nan), "down", None])
def test_bad_gravity(gravity):
    with pytest.raises(InputError, match="gravity"):
        pliant.ConstrainedSimulation(pendulum(), 0.01, gravity)


@pytest.mark.parametrize("tolerance", [0, -1.0, 1.0, np.nan, "small"])
def test_bad_tolerance(tolerance):
    with pytest.raises(InputError, match="tolerance"):
        pliant.ConstrainedSimulation(pendulum(), 0.01, tolerance=tolerance)


@pytest.mark.parametrize("name", ["Newmark", "", None, "implicit", 3])
def test_unknown_methods(name):
    with pytest.raises(InputError, match="stabilization is one of 'newmark', 'none'"):
        pliant.ConstrainedSimulation(pendulum(), 0.01, stabilization=name)


@pytest.mark.parametrize("name", ["sparse", "", 1])
def test_unknown_solvers(name):
    with pytest.raises(InputError, match="solver is 'tree' or 'dense'"):
        pliant.ConstrainedSimulation(pendulum(), 0.01, solver=name)


def test_newmark_has_no_dense_solver():
    with pytest.raises(InputError, match="dense"):
        pliant.ConstrainedSimulation(pendulum(), 0.01, solver="dense")


def test_not_a_mechanism():
    with pytest.raises(InputError, match="a Mechanism expected, not str"):
        pliant.ConstrainedSimulation("pendulum.xml", 0.01)  # pyright: ignore[reportArgumentType]


def test_nothing_that_moves():
    b = pliant.Builder("wall")
    b.body("brick", mass=1.0, inertia=(1, 1, 1))
    b.fixed("mortar", "world", "brick")
    with pytest.raises(InputError, match="nothing in 'wall' can move"):
        pliant.ConstrainedSimulation(b.build(), 0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_massless_leaf_is_refused_by_name(method):
    b = pliant.Builder("light")
    b.body("heavy", mass=1.0, inertia=(1, 1, 1))
    b.body("feather", mass=0.0, inertia=(0, 0, 0), position=(1, 0, 0))
    b.hinge("root", "world", "heavy", anchor=NONE, axis=(0, 1, 0))
    b.hinge("tip", "heavy", "feather", anchor=(0.5, 0, 0), axis=(0, 1, 0), armature=0.1)
    with pytest.raises(MechanismError, match=r"'feather'.*mass"):
        pliant.ConstrainedSimulation(b.build(), 0.01, stabilization=method)


def two_hinges_in_one(**spring):
    """Twice the same axis: one could turn against the other without moving any mass."""
    b = pliant.Builder("twice")
    b.body("bob", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    axis = ("hinge", (0, 1, 0), NONE)
    b.stack("both", "world", "bob", [axis, axis], **spring)
    return b.build()


def test_a_dof_without_inertia_is_refused_by_name():
    with pytest.raises(MechanismError, match=r"'both'.*'bob'.*mass"):
        pliant.ConstrainedSimulation(two_hinges_in_one(), 0.01)


def test_armature_is_inertia_enough():
    s = pliant.ConstrainedSimulation(two_hinges_in_one(armature=0.1), 0.01, gravity=NONE)
    s.set_motor("both.0", torque=0.5)
    s.step(10)
    # rotors of 0.1 on either angle, 2 on their sum
    expected = np.linalg.solve([[2.1, 2.0], [2.0, 2.1]], [0.5, 0.0]) * 0.1
    np.testing.assert_allclose(s.velocity, expected, atol=1e-9)


def test_balls_in_couplings_are_refused():
    b = pliant.Builder("coupled")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.body("c", mass=1.0, inertia=(1, 1, 1))
    b.ball("ball", "world", "a", anchor=NONE)
    b.hinge("hinge", "a", "c", anchor=NONE, axis=(0, 1, 0))
    b.tendon("cord", {"ball.0": 1.0, "hinge": 1.0}, stiffness=1.0)
    m = b.build()
    with pytest.raises(InputError, match="'cord' acts on a ball"):
        pliant.ConstrainedSimulation(m, 0.01)


def unchanged(s, error, match, action):
    before, forces = s.state, s._stepper.velocity
    with pytest.raises(error, match=match):
        action()
    assert np.array_equal(s.state, before)
    assert np.array_equal(s._stepper.velocity, forces)
    s.step(2)
    fresh = busy()
    fresh.step(2)
    assert np.array_equal(s.state, fresh.state)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"force": (np.nan, 0, 0)}, "not finite"),
        ({"force": (np.inf, 0, 0)}, "not finite"),
        ({"torque": (0, 0, np.nan)}, "not finite"),
        ({"force": (1, 0, 0), "point": (0, np.nan, 0)}, "not finite"),
        ({"force": (1, 0)}, "3 numbers"),
        ({"force": "up"}, "numbers expected"),
        ({"force": (1, 0, 0), "frame": "local"}, "frame is 'world' or 'body'"),
    ],
)
def test_bad_wrenches_change_nothing(options, match):
    s = busy()
    unchanged(s, InputError, match, lambda: s.apply_wrench("b1", **options))


def test_unknown_names_change_nothing():
    s = busy()
    unchanged(s, UnknownNameError, "b9", lambda: s.apply_wrench("b9", (1, 0, 0)))
    s = busy()
    unchanged(s, InputError, "world", lambda: s.apply_wrench("world", (1, 0, 0)))
    s = busy()
    unchanged(s, UnknownNameError, "h9", lambda: s.set_motor("h9", torque=1.0))
    for word in ("pose", "twist"):
        with pytest.raises(UnknownNameError, match="b9"):
            getattr(s, word)("b9")
    with pytest.raises(UnknownNameError, match="h9"):
        s.velocity = {"h9": 1.0}
    with pytest.raises(UnknownNameError, match="h9"):
        s.q = {"h9": 1.0}


def test_states_of_others_change_nothing():
    s = busy()
    unchanged(s, InputError, "a value of `simulation.state`", lambda: setattr(s, "state", np.zeros(3)))
    s, other = busy(), busy("none").state
    unchanged(s, InputError, "belongs to another simulation", lambda: setattr(s, "state", other))


@pytest.mark.parametrize("value", [[], [1.0, 2.0, 3.0], [np.nan] * 14, 1.0])
def test_bad_velocities_change_nothing(value):
    s = busy()
    unchanged(s, InputError, "finite numbers expected", lambda: setattr(s, "velocity", value))


@pytest.mark.parametrize("n", [-1, 1.5, "2", True, None])
def test_bad_numbers_of_steps_change_nothing(n):
    s = busy()
    unchanged(s, InputError, "step", lambda: s.step(n))


@pytest.mark.parametrize("arguments", [(0,), (2, 0), (1.5,)])
def test_bad_recordings_change_nothing(arguments):
    s = busy()
    unchanged(s, InputError, "record", lambda: s.record(*arguments))


def test_open_loops_are_no_start():
    m = everything()
    with pytest.raises(InputError, match="loops do not close"):
        pliant.ConstrainedSimulation(m, 0.01, start={"h0": 0.5})
    s = busy()
    unchanged(s, InputError, "loops do not close", lambda: setattr(s, "q", {"h0": 0.5}))


def test_a_configuration_of_another_mechanism_is_no_start():
    other = pliant.Configuration(pliant.gallery.helix(3))
    with pytest.raises(InputError, match="another mechanism"):
        pliant.ConstrainedSimulation(pendulum(), 0.01, start=other)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"stiffness": -1.0}, "negative"),
        ({"damping": -1.0}, "negative"),
        ({"torque": np.nan}, "finite"),
        ({"target": np.inf, "stiffness": 1.0}, "finite"),
        ({"torque": (1.0, 2.0)}, "numbers expected"),
        ({"torque": "much"}, "numbers expected"),
        ({"stiffness": "much"}, "numbers expected"),
    ],
)
def test_bad_motors_change_nothing(options, match):
    s = busy()
    unchanged(s, InputError, match, lambda: s.set_motor("h0", **options))


def test_a_ball_takes_a_torque_only():
    s = busy()
    unchanged(s, InputError, "a ball takes a torque only", lambda: s.set_motor("a2", stiffness=1.0))


def test_motors_need_newmark():
    s = busy("none")
    with pytest.raises(InputError, match="newmark"):
        s.set_motor("joint1", torque=1.0)
    s.clear_motors()


@pytest.mark.parametrize("force", [1e160, 1e300])
@pytest.mark.parametrize("method", ["newmark", "none", "low-rank"])
def test_a_motion_beyond_all_numbers_stops_after_its_last_whole_step(method, force):
    s = busy(method)
    before, wrenches = s.state, s.wrenches
    last = s.mechanism.body_names[-1]
    s.apply_wrench(last, force=(0, force, 0))
    other = s.copy()
    with pytest.raises(ConvergenceError, match=r"left the finite numbers.*wrenches"):
        s.step(50)
    other.step(round((s.time - other.time) / s.timestep))
    assert s.state == other.state
    assert np.array_equal(s.poses, other.poses)
    with pytest.raises(ConvergenceError) as caught:
        s.record(50)
    assert len(caught.value.trajectory) == round((s.time - other.time) / s.timestep)  # pyright: ignore[reportAttributeAccessIssue]
    # and goes on as if nothing had been
    s.state = before
    s.clear_wrenches()
    for body, load in wrenches.items():
        s.apply_wrench(body, load.force, load.torque, point=load.point, frame=load.frame)
    s.step(5)
    fresh = busy(method)
    fresh.step(5)
    assert np.array_equal(s.state, fresh.state)


def test_a_motor_beyond_all_numbers_stops_after_the_last_whole_step():
    s = busy()
    before = s.state
    s.set_motor("h0", torque=1e250)
    other = s.copy()
    with pytest.raises(ConvergenceError):
        s.step(50)
    other.step(round((s.time - other.time) / s.timestep))
    assert s.state == other.state
    s.state = before
    s.clear_motors()
    s.step(5)
    fresh = busy()
    fresh.step(5)
    assert np.array_equal(s.state, fresh.state)


def test_settle_stays_within_limits():
    b = pliant.Builder("stopped")
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5, 0, 0))
    b.hinge(
        "pivot",
        "world",
        "arm",
        anchor=(0, 0, 0),
        axis=(0, 1, 0),
        stiffness=1.0,
        damping=0.1,
        limits=(-0.5, 0.5),
    )
    s = pliant.ConstrainedSimulation(b.build(), 0.01)
    found = s.settle()
    assert not found.beyond_limits
    assert 0.45 < found.q[0] <= 0.5
    np.testing.assert_allclose(s.q, found.q)
