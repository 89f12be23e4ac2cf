"""The protocol of a simulation: the same assertions for every engine, and for the handles of a `World`."""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import threading
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import pliant
from interrupts import interrupt_long_step
from oracles.linkages import lattice
from pliant import shapes, spatial
from pliant.engines.simulation import Effort, Energy, Simulation, State
from pliant.errors import ConvergenceError, InputError, UnknownNameError
from pliant.statics import Configuration

H = 1 / 200
INTERRUPTS = 400  # at random times
DOWN = (0.0, 0.0, -9.81)


def chain(*things: shapes.Shape) -> pliant.Mechanism:
    """Four links on hinges and a ball, springs and dampers everywhere; `things` are shapes of each link."""
    b = pliant.Builder("chain")
    parent = "world"
    for i in range(4):
        b.body(
            f"link{i}",
            mass=0.5,
            com=(0.1, 0, 0.01),
            inertia=(2e-3, 3e-3, 4e-3),
            position=(0.2 * i, 0, 0),
            shapes=things,
        )
        anchor = (0.2 * i, 0, 0)
        if i == 2:
            b.ball(f"j{i}", parent, f"link{i}", anchor=anchor, stiffness=20.0, damping=0.2)
        else:
            axis = ((0, 1, 0), (0, 0, 1), (0, 1, 0), (0.6, 0.8, 0))[i]
            b.hinge(f"j{i}", parent, f"link{i}", anchor=anchor, axis=axis, stiffness=20.0, damping=0.2)
        parent = f"link{i}"
    return b.build()


def model(kind: str) -> pliant.ReducedModel | pliant.BlendedModel:
    m = chain()
    if kind == "blended":
        loads = [{}, {"link3": (0, 0, 1.0)}, {"link3": (0, 1.0, 0)}]
        return pliant.blend([pliant.reduce(m, "link3", at=pliant.equilibrium(m, load)) for load in loads])
    return pliant.reduce(m, ["link1", "link3"], modes=2)


def free_chain() -> pliant.Mechanism:
    b = pliant.Builder("walker")
    b.body("base", mass=3.0, inertia=(0.02, 0.03, 0.04), position=(0, 0, 1))
    b.free("root", "world", "base")
    for i, y in enumerate((-0.2, 0.2)):
        b.body(f"foot{i}", mass=0.4, inertia=(1e-3, 2e-3, 2e-3), position=(0.1, y, 0.8))
        b.hinge(f"hip{i}", "base", f"foot{i}", anchor=(0, y, 1), axis=(1, 0, 0), stiffness=8.0, damping=0.1)
    return b.build()


def tied_chain() -> pliant.Mechanism:
    """A chain with a coupling and a tendon between its hinges."""
    b = pliant.Builder("tied")
    parent = "world"
    for i in range(5):
        b.body(f"link{i}", mass=0.5, com=(0.1, 0, 0.01), inertia=(2e-3, 3e-3, 4e-3), position=(0.2 * i, 0, 0))
        axis = ((0, 1, 0), (0, 0, 1), (0.6, 0.8, 0))[i % 3]
        b.hinge(f"j{i}", parent, f"link{i}", anchor=(0.2 * i, 0, 0), axis=axis, stiffness=20.0, damping=0.2)
        parent = f"link{i}"
    b.couple({"j0": 1.0, "j2": -0.5})
    b.tendon("cord", {"j1": 1.0, "j3": 0.5, "j4": -1.0}, stiffness=10.0, damping=0.1, rest=0.05)
    return b.build()


def make(name: str) -> Simulation:
    """A simulation by its name in `NAMES`."""
    engine, _, what = name.partition(" ")
    if what == "floating":
        m = free_chain()
        if engine == "reduced":
            return pliant.ReducedSimulation(pliant.reduce(m, ["foot0", "foot1"]), H)
        return pliant.simulate(m, engine, H)
    if what == "loop":
        m = pliant.gallery.ladder(4)
        if engine == "reduced":
            return pliant.simulate(m, engine, H)
        return pliant.simulate(m, engine, H, gravity=(0, 0, 0))
    if what == "lattice":
        return pliant.QuasistaticSimulation(lattice(6, 6), H, gravity=(0, 0, 0))
    if what == "tied":
        return pliant.QuasistaticSimulation(tied_chain(), H)
    if engine in ("reduced", "blended"):
        options: dict[str, Any] = {"reconstruction": what} if what == "twist" else {}
        options |= {"method": "tvcg"} if what == "mixed" else {}
        return pliant.ReducedSimulation(model(engine), H, **options)
    if engine == "constrained":
        return pliant.ConstrainedSimulation(chain(), H, stabilization=what or "newmark")
    if what == "contact":
        floor = shapes.plane(position=(0, 0, -0.05))
        return pliant.QuasistaticSimulation(chain(shapes.sphere(0.04)), H, obstacles=[floor], friction=0.5)
    if engine == "adaptive":
        return pliant.AdaptiveSimulation(chain(), H, keep="*" if what else (), interval=3)
    return pliant.QuasistaticSimulation(chain(), H)


NAMES = [
    "reduced",
    "reduced twist",
    "reduced floating",
    "reduced loop",
    "blended",
    "blended mixed",
    "constrained",
    "constrained floating",
    "constrained loop",
    "constrained none",
    "constrained full",
    "constrained low-rank",
    "constrained inertial",
    "constrained constraint",
    "quasistatic",
    "quasistatic floating",
    "quasistatic loop",
    "quasistatic lattice",
    "quasistatic tied",
    "quasistatic contact",
    "adaptive",
    "adaptive floating",
    "adaptive whole",
]


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


def end(s: Simulation) -> str:
    """A body that can take a wrench."""
    return (
        s.model.end_effectors[-1] if isinstance(s, pliant.ReducedSimulation) else s.mechanism.body_names[-1]
    )


def busy(name: str) -> Simulation:
    """In motion, with a wrench."""
    s = make(name)
    s.apply_wrench(end(s), force=(0.1, 0.3, -0.2), torque=(0.01, 0, 0), point=(0.01, 0, 0.02))
    s.step(7)
    return s


# --- names, shapes, frames


def test_words_and_shapes(name):
    s = busy(name)
    m = s.mechanism
    assert isinstance(s, Simulation)
    assert s.timestep == H
    assert s.time == pytest.approx(7 * H)
    assert s.q.shape == (m.nq,)
    assert s.velocity.shape == (m.nv,)
    assert s.poses.shape == (m.body_count, 4, 4)
    assert s.gravity.shape == (3,)
    assert s.pose("world") == pytest.approx(np.eye(4))
    assert s.twist("world") == pytest.approx(np.zeros(6))
    assert s.pose(end(s)).shape == (4, 4)
    assert s.twist(end(s)).shape == (6,)
    assert isinstance(s.energy, Energy)
    assert s.energy.total == pytest.approx(s.energy.kinetic + s.energy.elastic + s.energy.gravity)
    assert s.kinetic == s.energy.kinetic
    assert isinstance(s.effort, Effort)
    assert s.effort[:3] == (s.effort.solves, s.effort.active, s.effort.residual)
    assert isinstance(s.state, State)
    assert isinstance(s.configuration, Configuration)
    assert s.violation >= 0
    assert s.adaptivity is None or s.adaptivity.active.shape == (m.joint_count,)
    assert m.name in s.summary()
    assert m.name in repr(s)
    assert s.engine in ("reduced", "blended", "constrained", "quasistatic", "adaptive")


def test_poses_are_those_of_the_coordinates(name):
    """Tolerance: rounding, or the opening of joints where bodies are placed by their own twists."""
    s = busy(name)
    atol = 1e-9 if name in ("reduced loop",) or name.startswith("constrained ") else 1e-11
    at = Configuration(s.mechanism, s.q)
    # Divided by the length of a link, an opening is a rotation.
    apart = s.violation / 0.2 if "twist" in name else s.violation
    np.testing.assert_allclose(s.poses, at.poses, atol=max(atol, 5 * apart))
    if "twist" in name:
        assert 1e-9 < s.violation < 1e-5
    for body in s.mechanism.body_names:
        np.testing.assert_allclose(s.pose(body), s.poses[s.mechanism.body_index(body)], atol=1e-11)


def test_twists_are_jacobians_times_velocity(name):
    s = busy(name)
    at, velocity = s.configuration, s.velocity
    atol = 1e-9 + 10 * s.violation / H + 1e-3 * ("twist" in name)
    for body in s.mechanism.body_names:
        turn, point = at.pose(body)[:3, :3], np.array([0.02, -0.01, 0.03])
        expected = at.jacobian(body, "world") @ velocity
        np.testing.assert_allclose(s.twist(body), expected, atol=atol)
        np.testing.assert_allclose(
            s.twist(body, frame="body"), s.twist(body) @ np.kron(np.eye(2), turn), atol=atol
        )
        moved = expected[:3] + np.cross(expected[3:], turn @ point)
        np.testing.assert_allclose(s.twist(body, point)[:3], moved, atol=atol)


def test_twists_are_rates_of_poses(name):
    s = busy(name)
    q, velocity = s.q, s.velocity
    step = 1e-6
    from pliant.mechanism import kinematics

    ahead = Configuration(s.mechanism, kinematics.move(s.mechanism, q, step * velocity))
    back = Configuration(s.mechanism, kinematics.move(s.mechanism, q, -step * velocity))
    for body in s.mechanism.body_names:
        rate = (ahead.pose(body) - back.pose(body)) / (2 * step)
        twist = s.twist(body)
        np.testing.assert_allclose(rate[:3, 3], twist[:3], atol=1e-6 + 10 * s.violation / H)
        spin = spatial.vee(rate[:3, :3] @ s.pose(body)[:3, :3].T)
        np.testing.assert_allclose(spin, twist[3:], atol=1e-6 + 10 * s.violation / H)


def test_arrays_are_read_only_or_copies(name):
    s = busy(name)
    assert not s.poses.flags.writeable
    before = s.state
    for value in (s.q, s.velocity, s.gravity, s.pose(end(s)), s.twist(end(s))):
        value[...] = np.nan
    assert s.state == before
    assert np.isfinite(s.poses).all()
    kept = s.poses.copy()
    s.step()
    assert not np.array_equal(s.poses, kept)


def test_no_other_attribute_can_be_set(name):
    s = make(name)
    for word in ("velocities", "position", "anything"):
        with pytest.raises(AttributeError):
            setattr(s, word, 1.0)
    for word in ("mechanism", "timestep", "time", "poses", "energy"):
        with pytest.raises(AttributeError):
            setattr(s, word, 1.0)


# --- wrenches, motors, pulls


def test_wrenches_replace_each_other_and_stay(name):
    a, b = make(name), make(name)
    body = end(a)
    a.apply_wrench(body, force=(5.0, 5.0, 5.0))
    a.apply_wrench(body, force=(0.1, 0, 0.2))
    b.apply_wrench(body, force=(0.1, 0, 0.2))
    assert set(a.wrenches) == {body}
    a.step(3)
    a.step(2)
    b.step(5)
    assert a.state == b.state
    a.apply_wrench(body)
    b.clear_wrenches()
    assert a.wrenches == b.wrenches == {}
    a.step(3)
    b.step(3)
    assert a.state == b.state


def test_a_wrench_that_ramps_ends_as_the_one_that_is_set(name):
    """Over the next step only, from the wrench before; the same in one call or two, in copies, and after a reset."""
    s = busy(name)
    body, at = end(s), (0.01, 0, 0.02)
    sudden, held = s.copy(), s.copy()
    sudden.apply_wrench(body, (0.3, 0.1, 0.2), point=at)
    s.apply_wrench(body, (9.0, 9.0, 9.0), point=at, ramp=True)
    s.apply_wrench(body, (0.3, 0.1, 0.2), point=at, ramp=True)
    assert s.wrenches[body].force.tolist() == [0.3, 0.1, 0.2]
    other = s.copy()
    s.step(4)
    for n in (1, 3):
        other.step(n)
    assert s.state == other.state
    assert s.wrenches[body].force.tolist() == [0.3, 0.1, 0.2]
    sudden.step(1)
    held.step(1)
    gap = np.abs(sudden.poses - held.poses).max()
    ramped = busy(name)
    ramped.apply_wrench(body, (0.3, 0.1, 0.2), point=at, ramp=True)
    ramped.step(1)
    assert 0.05 * gap < np.abs(ramped.poses - held.poses).max() < 0.95 * gap
    with pytest.raises(InputError, match="a ramp goes on at the point"):
        s.apply_wrench(body, (0.3, 0.1, 0.2), ramp=True)
    s.apply_wrench(body, (0.1, 0.1, 0.2), point=at, ramp=True)
    s.reset()
    fresh = make(name)
    s.step(2)
    fresh.step(2)
    assert s.state == fresh.state


def test_body_axes_turn_with_the_body(name):
    """A wrench in body axes equals the same wrench rotated to world axes at the present pose."""
    s = busy(name)
    s.clear_wrenches()
    body, other = end(s), s.copy()
    turn = s.pose(body)[:3, :3]
    force, torque, point = np.array([0.2, 0.1, -0.3]), np.array([0.0, 0.02, 0.01]), (0.01, 0.02, 0)
    s.apply_wrench(body, force, torque, point=point, frame="body")
    other.apply_wrench(body, turn @ force, turn @ torque, point=point)
    s.step()
    other.step()
    np.testing.assert_allclose(s.poses, other.poses, atol=2e-6)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"force": (0, 0)}, "3 numbers"),
        ({"force": (0, 0, np.nan)}, "not finite"),
        ({"force": "up"}, "numbers expected"),
        ({"frame": "tool"}, "frame"),
    ],
)
def test_bad_wrenches_change_nothing(name, words, match):
    s = busy(name)
    other = s.copy()
    with pytest.raises(InputError, match=match):
        s.apply_wrench(end(s), **words)
    with pytest.raises(UnknownNameError):
        s.apply_wrench("nobody", force=(0, 0, 1))
    s.step(2)
    other.step(2)
    assert s.state == other.state


def takes_motors(name: str) -> bool:
    return name != "blended mixed" and name.split(" ")[-1] not in (
        "none", "full", "low-rank", "inertial", "constraint")  # fmt: skip


def test_motors(name):
    s = make(name)
    joint = s.mechanism.dof_names[-1]
    if not takes_motors(name):
        with pytest.raises(InputError, match="motors"):
            s.set_motor(joint, torque=0.1)
        s.clear_motors()
        return
    s.set_motor(joint, torque=0.1)
    assert {dof: motor.torque for dof, motor in s.motors.items()} == {joint: 0.1}
    other = make(name)
    s.step(3)
    other.step(3)
    assert s.state != other.state
    s.clear_motors()
    assert s.motors == {}
    s.reset()
    s.step(3)
    assert s.state == other.state


def test_pulls_bring_a_point_nearer_and_let_go(name):
    s = make(name)
    if "gravity" in s._options() and s._options()["gravity"] is not None:
        s = type(s)(**{**s._options(), "gravity": (0, 0, 0)})
    body, point = end(s), np.array([0.01, 0.0, 0.0])

    def place():
        return s.pose(body)[:3, :3] @ point + s.pose(body)[:3, 3]

    target = place() + np.array([0.01, 0.01, 0.01])
    s.pull(body, target, point, frequency=5.0)
    before = np.linalg.norm(place() - target)
    s.step(200)
    assert np.linalg.norm(place() - target) < 0.9 * before
    assert set(s.pulls) == {body}
    assert np.linalg.norm(s.pulls[body]) > 0
    s.release(body)
    assert s.pulls == {}
    assert s.wrenches == {}


def test_pulls_of_a_given_stiffness_carry_it_times_their_stretch(name):
    """Two of them on one body add up, and go along with copies; each is moved by its target and let go by its name."""
    s = make(name)
    body, place = end(s), s.pose(end(s))[:3, 3]
    a, b = (s.pull(body, place + x, stiffness=0.5, key=key) for key, x in (("a", 0.01), ("b", 0.02)))
    s.step(3)
    for pull, x in ((a, 0.01), (b, 0.02)):
        np.testing.assert_allclose(s.pulls[pull.key], pull.force)
        np.testing.assert_allclose(pull.target, place + x)
    s.pull(body, place, stiffness=0.5, key="b")
    other = s.copy()
    for one in (s, other):
        before = one.pulling[1].at(one.poses)
        one.pulling[1].target[:] = np.add(before, (0, 0, 0.03))
        one.step(1)
        np.testing.assert_allclose(one.pulls["b"], (0, 0, 0.015), atol=1e-12)
    assert s.state == other.state
    s.release("a")
    assert set(s.pulls) == {"b"}
    s.release(body)
    assert (s.pulls, set(other.pulls)) == ({}, {"a", "b"})
    for words in ({"stiffness": 0}, {"stiffness": -1.0}, {"stiffness": "1"}, {"stiffness": 1, "damping": -1}):
        with pytest.raises(InputError, match="pull"):
            s.pull(body, place, **words)  # pyright: ignore[reportArgumentType]


# --- time, early ends


def test_steps_add_up(name):
    a, b = busy(name), busy(name)
    a.step(6)
    for _ in range(6):
        b.step()
    assert a.state == b.state
    assert a.time == pytest.approx(13 * H)
    a.step(0)
    assert a.state == b.state
    for n in (-1, 1.5, True, "2"):
        with pytest.raises(InputError, match="whole number"):
            a.step(n)  # pyright: ignore[reportArgumentType]
    assert a.state == b.state


def test_record(name):
    a, b = busy(name), busy(name)
    track = a.record(3, every=2)
    assert track.mechanism is a.mechanism
    np.testing.assert_allclose(track.time, (7 + 2 * np.arange(1, 4)) * H)
    for i in range(3):
        b.step(2)
        np.testing.assert_array_equal(track.poses[i], b.poses)
    assert a.state == b.state
    times = []
    a.record(2, every=2, act=times.append)
    np.testing.assert_allclose(times, (13 + np.arange(4)) * H)
    with pytest.raises(InputError, match="whole number"):
        a.record(0)


def test_an_error_in_act_leaves_whole_steps(name):
    a, b = busy(name), busy(name)

    def act(time):
        if time > 10.5 * H:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        a.record(10, every=2, act=act)
    assert len(caught.value.trajectory) == 2  # pyright: ignore[reportAttributeAccessIssue]
    b.step(4)
    assert a.state == b.state
    assert a.time == pytest.approx(11 * H)


@contextmanager
def interrupts():
    """A KeyboardInterrupt when the timer runs out.

    Without garbage collection: Python discards what is raised in a callback of the collector, and hypothesis has one.
    """

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer here")
def test_an_interrupt_leaves_whole_steps(name):
    """Ctrl-C at any time: here by a timer, during a step."""
    s = busy(name)
    other, start = s.copy(), s.time

    with interrupts(), pytest.raises(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        for _ in range(20_000):
            s.step(3)
    done = (s.time - start) / H
    assert done == pytest.approx(round(done), abs=1e-6)
    other.step(round(done))
    np.testing.assert_allclose(s.q, other.q, rtol=0, atol=1e-12)
    s.step(2)
    other.step(2)
    np.testing.assert_allclose(s.poses, other.poses, rtol=0, atol=1e-10)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer here")
@pytest.mark.parametrize("kind", ["constrained", "world", "adaptive"])
def test_no_interrupt_is_lost(kind):
    """Ctrl-C while a call hands its arrays to compiled code: one in thirty was dropped."""
    if kind == "world":
        it = pliant.World(1 / 60)
        it.add_body("ball", pliant.shapes.sphere(0.03))
    elif kind == "adaptive":
        it = pliant.AdaptiveSimulation(free_chain(), H, interval=1, tolerance=3.0, slow=0.1)
        it.velocity = {"hip0": 3.0, "hip1": 0.1}
    else:
        it = pliant.ConstrainedSimulation(pliant.gallery.helix(5), 1e-3)
    it.step()

    with interrupts():
        for i in range(INTERRUPTS):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.0008 + 0.00005 * (i % 7))
                for _ in range(20_000):
                    it.step()


def test_divergence_leaves_whole_steps(name):
    s = busy(name)
    if name.startswith("reduced") and name != "reduced floating":  # its hinges may turn by any angle
        before = s.state
        with pytest.raises((ConvergenceError, InputError), match=r"close so far|smaller numbers"):
            s.coordinates = np.full_like(s.coordinates, 1e308)  # pyright: ignore[reportAttributeAccessIssue]
        assert s.state == before
    s.apply_wrench(end(s), force=(0, 1e305, 1e308))
    other = s.copy()
    message = "do not close beyond t" if name == "reduced loop" else "left the finite numbers"
    with pytest.raises(ConvergenceError, match=message):
        s.step(10_000)
    assert np.isfinite(np.asarray(s.state)).all()
    other.step(round((s.time - other.time) / H))
    assert s.state == other.state


def test_long_calls_end_soon_after_an_interrupt(name):
    """Ctrl-C in a call of very many steps: it ends early, as after a whole step."""
    s, other = make(name), make(name)
    s.step(3)
    interrupt_long_step(s.step)
    steps = round(s.time / H)
    assert 3 < steps < 10**7
    other.step(steps)
    assert s.state == other.state


# --- state, reset, copies


def test_states_go_round_bit_for_bit(name):
    s = busy(name)
    kept = s.state
    s.step(9)
    later, poses = s.state, s.poses.copy()
    assert later != kept
    s.state = kept
    assert s.state == kept
    s.step(9)
    assert s.state == later
    np.testing.assert_array_equal(s.poses, poses)
    for wrong in (np.asarray(kept), None, 3):
        with pytest.raises(InputError, match=r"a value of `simulation\.state` expected"):
            s.state = wrong  # pyright: ignore[reportAttributeAccessIssue]


def test_states_of_others_are_refused(name):
    s = busy(name)
    other = pliant.ConstrainedSimulation(pliant.gallery.cable(3), H)
    with pytest.raises(InputError, match="another simulation"):
        s.state = other.state


def test_reset_is_as_constructed(name):
    s, fresh = busy(name), make(name)
    if takes_motors(name):
        s.set_motor(s.mechanism.dof_names[-1], torque=0.05)
    s.pull(end(s), s.pose(end(s))[:3, 3])
    s.step(2)
    s.reset()
    assert s.time == 0.0
    assert s.wrenches == s.motors == s.pulls == {}
    assert s.state == fresh.state
    np.testing.assert_array_equal(s.poses, fresh.poses)
    for one in (s, fresh):
        one.apply_wrench(end(one), force=(0.1, 0.2, 0.3))
        one.step(5)
    assert s.state == fresh.state


def test_copies_and_pickles_are_independent(name):
    s = busy(name)
    if takes_motors(name):
        s.set_motor(s.mechanism.dof_names[-1], torque=0.05)
    copies = [s.copy(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))]
    s.step(4)
    for other in copies:
        assert other.time == pytest.approx(7 * H)
        assert set(other.wrenches) == set(s.wrenches)
        other.step(4)
        assert other.state == s.state
        np.testing.assert_array_equal(other.poses, s.poses)
        other.clear_wrenches()
        assert s.wrenches
        other.reset()
    s.reset()
    assert all(other.state == s.state for other in copies)


def test_coordinates_and_velocities_can_be_set(name):
    s = busy(name)
    q, velocity = s.q, s.velocity
    other = make(name)
    other.q = q
    np.testing.assert_allclose(other.q, q, atol=1e-7 + s.violation)
    assert np.abs(other.velocity).max() < 1e-12
    if s.has_velocities:
        other.velocity = velocity
        np.testing.assert_allclose(
            other.velocity, velocity, atol=1e-6 * max(1.0, np.abs(velocity).max()) + s.violation / H
        )
    else:
        with pytest.raises(InputError, match="rest"):
            other.velocity = np.ones(s.mechanism.nv)
    with pytest.raises(InputError):
        other.velocity = np.full(s.mechanism.nv, np.nan)


def test_carry_over(name):
    """Every engine takes over from the constrained one, and the other way round, with time and wrenches."""
    s = busy(name)
    if name.startswith("constrained"):
        other = make(name)
    elif name.split(" ")[-1] in ("loop", "lattice"):
        other = pliant.ConstrainedSimulation(s.mechanism, H, gravity=s.gravity)
    else:
        other = pliant.ConstrainedSimulation(s.mechanism, H)
    pliant.carry_over(s, other)
    assert other.time == s.time
    assert set(other.wrenches) == set(s.wrenches)
    np.testing.assert_allclose(other.poses, s.poses, atol=1e-9 + 10 * s.violation + 1e-5 * ("twist" in name))
    back = make(name)
    pliant.carry_over(other, back)
    np.testing.assert_allclose(back.poses, s.poses, atol=1e-6 + 20 * s.violation)
    other.apply_wrench(other.mechanism.body_names[0], force=(0, 0, 1.0))
    if name.startswith(("reduced", "blended")) and back.exact:  # pyright: ignore[reportAttributeAccessIssue]
        pliant.carry_over(other, back)
        assert set(back.wrenches) == {*s.wrenches, other.mechanism.body_names[0]}
    elif name.startswith(("reduced", "blended")) and "floating" not in name:
        with pytest.raises(InputError, match="wrench"):
            pliant.carry_over(other, back)


def test_one_thread_at_a_time(name):
    s = make(name)
    refused, begun, finish = [], threading.Event(), threading.Event()

    class Slow(type(s)):
        __slots__ = ()

        def _advance(self, n):
            begun.set()
            finish.wait(20)
            return super()._advance(n)

    slow = Slow(**s._options())  # pyright: ignore[reportAbstractUsage]
    thread = threading.Thread(target=slow.step)
    thread.start()
    begun.wait(20)
    kept, zero = s.state, np.zeros(s.mechanism.nv)
    calls = {
        "step": slow.step,
        "apply_wrench": lambda: slow.apply_wrench("link3", force=(1, 0, 0)),
        "clear_wrenches": slow.clear_wrenches,
        "set_motor": lambda: slow.set_motor("*", torque=0.0),
        "clear_motors": slow.clear_motors,
        "pull": lambda: slow.pull("link3", (0, 0, 0)),
        "release": slow.release,
        "reset": slow.reset,
        "follow": lambda: slow.follow(s),
        "state": lambda: setattr(slow, "state", kept),
        "q": lambda: setattr(slow, "q", s.q),
        "velocity": lambda: setattr(slow, "velocity", zero),
    }
    if isinstance(s, pliant.QuasistaticSimulation | pliant.AdaptiveSimulation):
        calls["tolerance"] = lambda: setattr(slow, "tolerance", 0.1)
    if isinstance(s, pliant.ReducedSimulation):
        calls["switch"] = lambda: slow.switch(s.model)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        for call in calls.values():
            with pytest.raises(InputError, match="another thread"):
                call()
            refused.append(True)
    finally:
        finish.set()
        thread.join()
    assert len(refused) == len(calls)
    assert slow.time == pytest.approx(H)
    slow.step()  # now nobody else does


# --- handles of a world


@pytest.fixture(params=["reduced", "blended", "constrained", "adaptive", "ball"])
def handle(request):
    world = pliant.World(H)
    world.add_static("floor", pliant.shapes.plane())
    if request.param == "ball":
        world.add_body(
            "ball",
            pliant.shapes.box((0.1, 0.2, 0.3), position=(0.05, 0, 0)),
            mass=2.0,
            position=(0, 0, 1),
            spin=(1, 2, 0),
        )
        return world, world["ball"], "ball"
    if request.param == "adaptive":
        world.add(chain(), "it", engine="adaptive")
    else:
        world.add(chain() if request.param == "constrained" else model(request.param), "it")
    return world, world["it"], "link3"


def test_handles_have_the_same_words(handle):
    world, it, body = handle
    it.apply_wrench(body, force=(0.1, 0.3, -0.2), point=(0.01, 0, 0.02))
    world.step(7)
    m = it.mechanism
    assert it.time == world.time == pytest.approx(7 * H)
    assert it.timestep == H
    assert it.q.shape == (m.nq,)
    assert it.velocity.shape == (m.nv,)
    assert it.poses.shape == (m.body_count, 4, 4)
    assert not it.poses.flags.writeable
    np.testing.assert_allclose(it.poses, it.configuration.poses, atol=1e-9)
    for one in m.body_names:
        expected = it.configuration.jacobian(one, "world") @ it.velocity
        np.testing.assert_allclose(it.twist(one), expected, atol=1e-9)
        turn, point = it.pose(one)[:3, :3], np.array([0.02, 0.01, 0])
        moved = expected[:3] + np.cross(expected[3:], turn @ point)
        np.testing.assert_allclose(it.twist(one, point)[:3], moved, atol=1e-9)
        np.testing.assert_allclose(it.twist(one, frame="body")[3:], expected[3:] @ turn, atol=1e-9)
    assert isinstance(it.energy, Energy)
    assert set(it.wrenches) == {body}
    it.pull(body, it.pose(body)[:3, 3] + np.array([0, 0, 0.01]))
    world.step(2)
    assert set(it.pulls) == {body}
    it.release()
    assert it.pulls == {}
    it.clear_wrenches()
    assert it.wrenches == {}
    for word in ("step", "reset"):
        with pytest.raises(InputError, match="world"):
            getattr(it, word)()
    with pytest.raises(AttributeError):
        it.velocities = 1.0
    assert it.summary()


def test_handles_take_coordinates_and_velocities(handle):
    world, it, _ = handle
    world.step(5)
    q, velocity = it.q, it.velocity
    world.step(5)
    it.q = q
    np.testing.assert_allclose(it.q, q, atol=1e-9)
    assert np.abs(it.velocity).max() < 1e-12
    it.velocity = velocity
    np.testing.assert_allclose(it.velocity, velocity, atol=1e-9)
