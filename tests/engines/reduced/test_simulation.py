"""Stepping against a slow backward Euler, statics against equilibria, a floating base against closed forms."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from numba.core.runtime import _nrt_python, rtsys  # pyright: ignore[reportAttributeAccessIssue, reportPrivateImportUsage]

import pliant
from oracles import dense
from oracles.random_mechanisms import KINDS, random_mechanism
from pliant.errors import ConvergenceError, InputError, UnknownNameError
from pliant.mechanism import kinematics

NAMES = ["helix", "y", "ladder", "loop", "hand", "gripper", "cable"]


def slow(model, h, steps, wrench):
    """Backward Euler in end-effector twists and modes, by a dense solve each step; wrench(poses) in body axes."""
    n = model.basis.shape[1]
    y, v = np.zeros(n), np.zeros(n)
    A = model.reduced_mass + h * model.reduced_damping + h * h * model.reduced_stiffness
    ends = np.zeros((n, len(model.compliance)))
    ends[: model.rank] = model.admissible.T
    for _ in range(steps):
        q = kinematics.move(model.mechanism, model.q, model.basis @ y)
        force = ends @ (wrench(pliant.Configuration(model.mechanism, q)) - model.wrench)
        v = np.linalg.solve(A, model.reduced_mass @ v + h * (force - model.reduced_stiffness @ y))
        y = y + h * v
    return y, v


@pytest.mark.parametrize("modes", [0, 3])
@pytest.mark.parametrize("name", NAMES)
def test_steps_and_poses(name, modes):
    m = pliant.gallery.make(name)
    model = pliant.reduce(m, modes=modes)
    tip = model.end_effectors[-1]
    e = model.index(tip)
    force, torque, point = np.array([3.0, -2.0, 5.0]), np.array([0.1, 0.2, -0.1]), np.array([0.01, 0, -0.02])

    def wrench(c):
        turn = c.pose(tip)[:3, :3]
        out = np.zeros(len(model.compliance))
        f = turn.T @ force
        out[6 * e : 6 * e + 6] = np.r_[f, turn.T @ torque + np.cross(point, f)]
        return out

    simulation = pliant.ReducedSimulation(model, 0.003, method="tvcg")
    simulation.apply_wrench(tip, force, torque, point=point)
    simulation.step(17)
    y, v = slow(model, 0.003, 17, wrench)
    assert simulation.coordinates == pytest.approx(y, rel=1e-9, abs=1e-9 * np.abs(y).max())
    assert simulation.rates == pytest.approx(v, rel=1e-8, abs=1e-9 * np.abs(v).max())
    assert simulation.time == pytest.approx(17 * 0.003)
    # Poses are those of the joint displacements; and of TVCG's twists in the other reconstruction.
    assert simulation.poses == pytest.approx(simulation.configuration.poses, abs=1e-12 * m.radius + 1e-13)
    twists = pliant.ReducedSimulation(model, 0.003, "twist")
    twists.state = simulation.state
    local, _ = kinematics.link_transforms(m, model.q)
    from pliant.statics.inertia import link_twists

    moved = link_twists(m, local, (model.basis @ y)[None])[0][m.links.body_link]
    expected = model.at.poses @ pliant.spatial.se3_exp(moved)
    assert twists.poses == pytest.approx(expected, abs=1e-9 * m.radius)


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 2), size=st.floats(0.01, 3.0))
def test_poses_of_random_mechanisms(seed, loops, size):
    """Every joint type, small and large displacements, against matrix exponentials."""
    m = random_mechanism(seed, 6, loops, kinds=KINDS[:9], reference=True)
    try:
        model = pliant.reduce(m, ["b5", "b2"])
    except InputError:
        reject()  # locked
    simulation = pliant.ReducedSimulation(model, 0.01, method="tvcg")
    rng = np.random.default_rng(seed)
    y = rng.normal(size=model.rank)
    y *= size / np.abs(model.basis @ y).max()
    simulation.coordinates = y
    expected = dense.body_poses(m, dense.move(m, model.q, model.basis @ y))
    assert simulation.poses == pytest.approx(expected, abs=1e-9 * m.radius)


def test_wrench_in_body_axes_turns_with_the_body():
    b = pliant.Builder("turnstile")
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0))
    b.hinge("post", "world", "arm", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=10.0, damping=5.0)
    model = pliant.reduce(b.build(), "arm")
    simulation = pliant.ReducedSimulation(model, 0.01)
    simulation.apply_wrench("arm", (0, 4.0, 0), frame="body")
    simulation.step(3000)
    assert simulation.configuration["post"] == pytest.approx(0.4, rel=1e-9)  # the lever arm never changes
    simulation.apply_wrench("arm", (0, 4.0, 0))
    simulation.step(3000)
    angle = simulation.configuration["post"]
    assert 10 * angle == pytest.approx(4 * np.cos(angle), rel=1e-9)  # a force fixed in the world
    simulation.apply_wrench("arm", (0, 4.0, 0), point=(-1, 0, 0))  # at the post
    simulation.step(3000)
    assert simulation.configuration["post"] == pytest.approx(0, abs=1e-9)
    simulation.apply_wrench("arm", torque=(0, 0, 1.0))
    simulation.step(3000)
    assert simulation.configuration["post"] == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("name", ["helix", "y", "loop", "hand"])
def test_small_loads_equal_the_equilibrium_to_second_order(name):
    m = pliant.gallery.make(name)
    model = pliant.reduce(m)
    tip = model.end_effectors[0]
    direction = np.array([0.6, 0.3, -0.7])
    soft = model.stiffness_ellipsoid(tip).stiffness[0]
    errors = []
    for size in (0.02, 0.01):  # of the radius, displacements
        force = size * m.radius * soft * direction
        simulation = pliant.ReducedSimulation(model, 0.05)
        simulation.apply_wrench(tip, force)
        simulation.step(3000)
        truth = pliant.equilibrium(m, {tip: force})
        errors.append(np.linalg.norm(simulation.pose(tip)[:3, 3] - truth.pose(tip)[:3, 3]) / m.radius)
    assert errors[0] < 0.01
    # A quarter, up to higher orders; or none but rounding, where the manifold has these equilibria
    assert errors[1] < 0.3 * errors[0] or errors[0] < 1e-9


@pytest.mark.parametrize("name", ["helix", "ladder", "arm", "y", "hand"])
def test_large_steps_settle_at_the_same_place(name):
    m = pliant.gallery.make(name)
    model = pliant.reduce(m)
    tip = model.end_effectors[0]
    soft = model.stiffness_ellipsoid(tip).stiffness[0]
    ends = []
    for h in (1 / 60, 1 / 400):
        simulation = pliant.ReducedSimulation(model, h, method="tvcg")
        simulation.apply_wrench(tip, 0.1 * m.radius * soft * np.array([1.0, 1.0, -1.0]) / np.sqrt(3))
        for _ in range(2000):
            simulation.step(1000)
            if np.abs(simulation.rates).max() * h <= 1e-13 * np.abs(simulation.coordinates).max():
                break
        else:
            pytest.fail("it did not come to rest")
        ends.append(simulation.pose(tip)[:3, 3] - m.reference_poses[m.body_index(tip), :3, 3])
    assert np.linalg.norm(ends[0]) > 0.01 * m.radius
    assert np.linalg.norm(ends[0] - ends[1]) < 1e-6 * np.linalg.norm(ends[1])


@pytest.mark.parametrize("h", [1e-4, 1 / 60, 1.0])
def test_energy_never_grows(h):
    model = pliant.reduce(pliant.gallery.helix(50))
    simulation = pliant.ReducedSimulation(model, h, method="tvcg")
    rng = np.random.default_rng(3)
    n = model.rank
    simulation.coordinates, simulation.rates = 0.01 * rng.normal(size=n), rng.normal(size=n)

    def energy():
        y, v = simulation.coordinates, simulation.rates
        return y @ model.reduced_stiffness @ y + v @ model.reduced_mass @ v

    before = energy()
    for _ in range(200):
        simulation.step()
        now = energy()
        assert now <= before * (1 + 1e-12)
        before = now


def test_loaded_model_rests_where_it_was_made_and_goes_home():
    m = pliant.gallery.helix(20)
    load = np.array([10.0, 5.0, -20.0])
    at = pliant.equilibrium(m, {"link20": load})
    model = pliant.reduce(m, at=at)
    simulation = pliant.ReducedSimulation(model, 1 / 60)
    simulation.apply_wrench("link20", load)
    simulation.step(500)
    assert simulation.poses == pytest.approx(at.poses, abs=1e-9)
    more = pliant.equilibrium(m, {"link20": 1.05 * load})
    simulation.apply_wrench("link20", 1.05 * load)
    simulation.step(2000)
    change = np.linalg.norm(more.pose("link20")[:3, 3] - at.pose("link20")[:3, 3])
    assert np.linalg.norm(simulation.pose("link20")[:3, 3] - more.pose("link20")[:3, 3]) < 0.02 * change


def test_common_words():
    m = pliant.gallery.y()
    model = pliant.reduce(m)
    left, right = model.end_effectors
    simulation = pliant.ReducedSimulation(model, 0.01)
    assert simulation.poses == pytest.approx(m.reference_poses, abs=1e-12)
    simulation.apply_wrench(left, (0, 0, -5.0))
    simulation.step(5)
    saved = simulation.state
    simulation.step(7)
    there = simulation.poses.copy()
    simulation.state = saved
    assert simulation.time == pytest.approx(0.05)
    for _ in range(7):
        simulation.step()
    assert np.array_equal(simulation.poses, there)  # to the last bit
    simulation.state = saved
    trajectory = simulation.record(7)
    assert np.array_equal(trajectory.poses[-1], there)
    assert trajectory.time == pytest.approx(0.05 + 0.01 * np.arange(1, 8))
    assert len(trajectory) == 7
    assert np.array_equal(trajectory.pose(left)[-1], simulation.pose(left))
    simulation.state = saved
    every = simulation.record(2, every=3)
    assert np.array_equal(every.poses, trajectory.poses[[2, 5]])
    simulation.apply_wrench(left, (0, 0, 0))
    simulation.apply_wrench(right, (1.0, 0, 0))
    simulation.clear_wrenches()
    simulation.step(20000)
    assert simulation.poses == pytest.approx(m.reference_poses, abs=1e-9)
    simulation.apply_wrench(right, (1.0, 0, 0))
    simulation.reset()
    assert simulation.time == 0
    simulation.step(3)
    assert simulation.poses == pytest.approx(m.reference_poses, abs=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        simulation.poses[0, 0, 0] = 2.0
    assert np.array_equal(simulation.pose("world"), np.eye(4))
    assert simulation.displacement(left) == pytest.approx(np.zeros(6), abs=1e-12)
    assert "y" in repr(simulation)


@pytest.mark.parametrize("name", ["y", "hexapod"])
def test_threads_share_bodies_out(name):
    model = pliant.reduce(pliant.gallery.make(name))
    tip = model.end_effectors[1]
    one, two = (pliant.ReducedSimulation(model, 0.01, "twist", threads=t) for t in (1, 2))
    for simulation in (one, two):
        simulation.apply_wrench(tip, (0.5, 0.2, 1.0))
        simulation.step(7)
    assert np.array_equal(one.poses, two.poses)
    assert np.array_equal(one.record(5, every=2).poses, two.record(5, every=2).poses)
    assert np.array_equal(one.state, two.state)
    two.reset()
    assert two.poses == pytest.approx(model.at.poses, abs=1e-12)
    with pytest.raises(InputError, match="threads are for"):
        pliant.ReducedSimulation(model, 0.01, threads=2)


def test_nothing_is_allocated_in_a_step():
    _nrt_python.memsys_enable_stats()
    for name, way in (("helix", "joint"), ("cable", "joint"), ("hexapod", "joint"), ("hexapod", "twist")):
        simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.make(name)), 0.001, way)
        simulation.apply_wrench(simulation.model.end_effectors[0], (0, 0, 1.0))
        counts = []
        for n in (2, 1000):  # a call wraps its five arrays once
            before = rtsys.get_allocation_stats().alloc
            simulation.step(n)
            counts.append(rtsys.get_allocation_stats().alloc - before)
        assert counts[1] == counts[0] <= 5


@pytest.mark.parametrize(
    "way",
    [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("name", ["hand", "hexapod"])
def test_a_copy_goes_its_own_way(way, name):
    """A copy has the same state and wrenches, and its own arrays."""
    model = pliant.reduce(pliant.gallery.make(name))
    s = pliant.ReducedSimulation(model, 0.01, gravity=None if model.base is None else (0, 0, -3.0))
    s.apply_wrench(model.end_effectors[0], force=(0.2, 0, 0.1))
    s.step(5)
    other, before = way(s), s.poses.copy()
    assert (other.poses == before).all()
    other.step(7)
    assert (s.poses == before).all()
    s.step(7)
    assert (other.poses == s.poses).all()
    assert np.abs(s.poses - before).max() > 1e-4
    other.reset()
    assert other.time == 0
    assert s.time > 0


def test_bad_arguments_leave_everything_as_it_was():
    model = pliant.reduce(pliant.gallery.helix(5))
    simulation = pliant.ReducedSimulation(model, 0.01)
    simulation.apply_wrench("link5", (0, 0, 1.0))
    simulation.step(3)
    state, poses = simulation.state, simulation.poses.copy()
    for call, error in [
        (lambda: simulation.apply_wrench("link5", (0, 0, np.nan)), "not finite"),
        (lambda: simulation.apply_wrench("link5", (0, 0)), "3 numbers"),
        (lambda: simulation.apply_wrench("link5", "up"), "numbers expected"),
        (lambda: simulation.apply_wrench("link5", (0, 0, 1), frame="tool"), "frame"),
        (lambda: simulation.step(-1), "whole number from 0"),
        (lambda: simulation.step(1.5), "whole number"),  # pyright: ignore[reportArgumentType]
        (lambda: simulation.record(0), "whole number from 1"),
        (lambda: setattr(simulation, "state", np.zeros(11)), "a value of `simulation.state` expected"),
        (lambda: setattr(simulation, "coordinates", np.full(5, np.inf)), "finite"),
        (lambda: setattr(simulation, "rates", np.zeros(3)), "5 finite numbers expected"),
        (lambda: simulation.move_base(np.eye(4)), "base is fixed"),
        (lambda: simulation.switch(pliant.reduce(pliant.gallery.helix(6))), "'helix 5' expected"),
        (lambda: simulation.switch("other"), "ReducedModel expected"),  # pyright: ignore[reportArgumentType]
        (lambda: pliant.ReducedSimulation(model, 0.0), "timestep"),
        (lambda: pliant.ReducedSimulation(model, "fast"), "timestep"),  # pyright: ignore[reportArgumentType]
        (lambda: pliant.ReducedSimulation(model, 0.01, "magic"), "reconstruction"),
        (lambda: pliant.ReducedSimulation(model, 0.01, gravity=(0, 0, -1)), "equilibrium under gravity"),
        (lambda: pliant.ReducedSimulation(pliant.gallery.helix(5), 0.01), "a ReducedModel expected"),  # pyright: ignore[reportArgumentType]
    ]:
        with pytest.raises(InputError, match=error):
            call()
    with pytest.raises(UnknownNameError, match="no body"):
        simulation.apply_wrench("link55", (0, 0, 1))
    assert np.array_equal(simulation.state, state)
    assert np.array_equal(simulation.poses, poses)


def test_what_leaves_the_finite_numbers_comes_back():
    model = pliant.reduce(pliant.gallery.helix(5))
    unstable = replace(model, reduced_stiffness=-model.reduced_stiffness)
    simulation = pliant.ReducedSimulation(unstable, 1e-4, method="tvcg")
    simulation.apply_wrench("link5", (0, 0, 1.0))
    simulation.step(3)
    other = simulation.copy()
    for call in (simulation.step, simulation.record):
        with pytest.raises(ConvergenceError, match="left the finite numbers"):
            call(100_000)
        assert np.isfinite(simulation.state).all()
        other.step(round((simulation.time - other.time) / 1e-4))
        assert simulation.state == other.state
        assert np.array_equal(simulation.poses, other.poses)


# --- contact


@pytest.mark.parametrize("name", ["hand", "hexapod"])
def test_impulses(name):
    model = pliant.reduce(pliant.gallery.make(name))
    one, two = model.end_effectors[:2]
    simulation = pliant.ReducedSimulation(model, 0.005, method="tvcg")
    simulation.apply_wrench(one, (0.02, 0.04, 0.08))
    simulation.step(4)
    if model.base is not None:
        simulation.move_base(velocity=(0.1, 0.2, 0.3), spin=(0.3, -0.4, 0.2))
    state, state_spin = simulation.state, simulation.base_velocity[3:]
    push = np.array([1e-5, -2e-5, 3e-5])
    places = {one: (0.01, 0.02, -0.01), two: (0.0, 0.03, 0.0)}

    def after(strike):
        """Velocities of both points at the end of the next step."""
        simulation.state = state
        if strike:
            simulation.apply_impulse(one, push, places[one])
        simulation.step()
        return {body: simulation.twist(body, at)[:3] for body, at in places.items()}

    free, struck = after(False), after(True)
    simulation.state = state
    own = simulation.impulse_response(one, places[one])
    assert own == pytest.approx(own.T)
    assert np.linalg.eigvalsh(own).min() > -1e-12
    # The pose at the end of the step differs, and with it the axes; that is of second order in the time step.
    expected = {
        body: simulation.impulse_response(one, places[one], of=body, of_point=at) @ push
        for body, at in places.items()
    }
    for body in places:
        size = np.abs(expected[body]).max()
        assert struck[body] - free[body] == pytest.approx(expected[body], abs=0.03 * size)
    # A force over the step with the same impulse has the same effect.
    if model.base is None:
        force, arm = push / 0.005, simulation.pose(one)[:3, :3] @ places[one]
        simulation.apply_wrench(one, force + np.array([0.02, 0.04, 0.08]), np.cross(arm, force))
        simulation.step()
        for body, at in places.items():
            assert simulation.twist(body, at)[:3] == pytest.approx(struck[body], rel=1e-5, abs=1e-9)
    # The immediate change of velocity is that of the reduced inertia: impulse over mass.
    simulation.state = state
    before, rates = simulation.twist(one)[:3], simulation.rates
    simulation.apply_impulse(one, push)
    n, e = model.rank, model.index(one)
    turn = simulation.pose(one)[:3, :3]
    rows = turn @ model.admissible[6 * e : 6 * e + 3]
    change = np.linalg.solve(model.reduced_mass[:n, :n], rows.T @ push)
    assert simulation.rates - rates == pytest.approx(change, rel=1e-9, abs=1e-9 * np.abs(change).max())
    jump = rows @ change
    if model.base is not None:
        arm = simulation.pose(one)[:3, 3] - np.asarray(simulation.state)[-13:-10]
        turning = simulation.base_velocity[3:] - state_spin
        jump += push / model.base.inertia[0, 0] + np.cross(turning, arm)
    # The twist is exact where the pose has moved from the linearisation; `rows` belong to the linearisation.
    assert simulation.twist(one)[:3] - before == pytest.approx(jump, abs=1e-3 * np.abs(jump).max())


def test_velocity_is_the_rate_of_the_pose():
    model = pliant.reduce(pliant.gallery.hexapod())
    foot = model.end_effectors[2]
    simulation = pliant.ReducedSimulation(model, 1e-5)
    simulation.move_base(velocity=(0.2, 0.1, 0), spin=(0.5, 0.3, -0.4))
    simulation.apply_wrench(foot, (0, 0, 10.0))
    simulation.step(200)
    point = np.array([0.02, 0.01, -0.05, 1])
    before, velocity = simulation.pose(foot) @ point, simulation.twist(foot, point[:3])[:3]
    simulation.step()
    rate = (simulation.pose(foot) @ point - before)[:3] / 1e-5
    velocity = (velocity + simulation.twist(foot, point[:3])[:3]) / 2
    assert velocity == pytest.approx(rate, rel=1e-6)


# --- floating base


def test_free_fall_and_spin():
    m = pliant.gallery.hexapod()
    model = pliant.reduce(m)
    simulation = pliant.ReducedSimulation(model, 0.001, method="tvcg")
    simulation.step(1000)
    drop = simulation.pose("body")[:3, 3] - m.reference_poses[0, :3, 3]
    assert drop == pytest.approx(
        [0, 0, -0.5 * 9.81 * 1.0 * 1.001], rel=1e-9
    )  # symplectic Euler: t (t + h) g / 2
    weightless = pliant.ReducedSimulation(model, 0.001, gravity=(0, 0, 0), method="tvcg")
    weightless.move_base(spin=(3.0, 0.1, 5.0))
    base = np.asarray(weightless.state)[-13:]
    momentum, spin = base[10:13], weightless.base_velocity[3:]
    energy = momentum @ spin
    weightless.step(5000)
    assert np.array_equal(np.asarray(weightless.state)[-3:], momentum)
    assert np.asarray(weightless.state)[-3:] @ weightless.base_velocity[3:] == pytest.approx(energy, rel=1e-5)
    assert np.linalg.norm(weightless.base_velocity[3:] - spin) > 0.1  # it tumbles
    turn = weightless.pose("body")[:3, :3]
    assert turn @ turn.T == pytest.approx(np.eye(3), abs=1e-12)


def test_feet_carry_a_standing_robot():
    m = pliant.gallery.hexapod()
    model = pliant.reduce(m)
    simulation = pliant.ReducedSimulation(model, 0.001, method="tvcg")
    for foot in model.end_effectors:
        simulation.apply_wrench(foot, (0, 0, m.total_mass * 9.81 / 6))
    simulation.step(2000)
    assert np.asarray(simulation.state)[-6:-3] == pytest.approx(np.zeros(3), abs=1e-9)  # the forces balance
    assert simulation.displacement(model.end_effectors[0])[:3] @ [0, 0, 1] != 0
    # A force at one foot turns the body about its centre of mass like a rigid body.
    simulation.reset()
    foot = model.end_effectors[0]
    simulation.apply_wrench(foot, (0, 0, 1.0))
    arm = simulation.pose(foot)[:3, 3] - np.asarray(simulation.state)[-13:-10]
    simulation.step()
    assert np.asarray(simulation.state)[-3:] == pytest.approx(0.001 * np.cross(arm, [0, 0, 1.0]), rel=1e-9)


@pytest.mark.parametrize("reconstruction", ["joint", "twist"])
def test_a_moved_base_carries_all_links(reconstruction):
    m = pliant.gallery.hexapod()
    simulation = pliant.ReducedSimulation(pliant.reduce(m), 0.01, reconstruction)
    pose = pliant.spatial.pose((1, 2, 3), (0.5, 0.5, 0.5, 0.5))
    simulation.move_base(pose)
    start = m.reference_poses[m.body_index("body")]
    expected = pose @ np.linalg.inv(start) @ m.reference_poses
    assert simulation.poses == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InputError, match="rotation"):
        simulation.move_base(2 * np.eye(4))


# --- levels of detail


# On the manifold, forces of the last step predict the next midpoint; they do not carry over.
@pytest.mark.parametrize(("method", "tolerance"), [("tvcg", 1e-9), ("auto", 1e-6)])
def test_switching_levels_of_detail(method, tolerance):
    m = pliant.gallery.hand()
    thumb = pliant.reduce(m, "thumb_tip")
    tips = pliant.reduce(m)
    detailed = pliant.reduce(m, [*m.end_effectors, "thumb_proximal"], modes=4)
    simulation = pliant.ReducedSimulation(thumb, 0.002, method=method)
    simulation.apply_wrench("thumb_tip", (0.3, 0.1, -0.2))
    simulation.step(30)
    pose, rate, poses = (
        simulation.pose("thumb_tip"),
        simulation.twist("thumb_tip")[:3],
        simulation.poses.copy(),
    )
    for model in (tips, detailed, thumb):
        simulation.switch(model)
        assert simulation.model is model
        assert simulation.time == pytest.approx(0.06)
        assert simulation.pose("thumb_tip") == pytest.approx(pose, abs=1e-9)
        assert simulation.twist("thumb_tip")[:3] == pytest.approx(rate, rel=1e-6, abs=1e-9)
        assert simulation.poses == pytest.approx(poses, abs=1e-6)
    simulation.step(10)
    alone = pliant.ReducedSimulation(thumb, 0.002, method=method)
    alone.apply_wrench("thumb_tip", (0.3, 0.1, -0.2))
    alone.step(40)
    assert simulation.poses == pytest.approx(alone.poses, abs=tolerance)  # wrenches carry over


def test_switching_to_another_linearisation():
    m = pliant.gallery.helix(20)
    load = (5.0, 0, -10.0)
    rest = pliant.reduce(m)
    bent = pliant.reduce(m, at=pliant.equilibrium(m, {"link20": load}))
    simulation = pliant.ReducedSimulation(rest, 1 / 60, method="tvcg")
    simulation.apply_wrench("link20", load)
    simulation.step(300)
    before = simulation.pose("link20")
    simulation.switch(bent)
    jump = np.linalg.norm(simulation.pose("link20")[:3, 3] - before[:3, 3])
    simulation.step(300)
    error = np.linalg.norm(simulation.pose("link20")[:3, 3] - before[:3, 3])  # error of the first model
    assert jump < error
    truth = pliant.equilibrium(m, {"link20": load})
    assert simulation.poses == pytest.approx(truth.poses, abs=1e-9)
