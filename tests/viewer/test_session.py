"""The logic of a live view, without a browser: engines, pulls, time, contacts, numbers, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import spatial
from pliant.errors import ConvergenceError, InputError, PliantError, UnknownNameError
from pliant.scenes import Scene
from pliant.viewer.session import ENGINES, Session, WorldSession

TIP = "index_tip"
WEIGHT = 2.0 * 9.81
UP, ASIDE = np.array([0, 0, 0.01]), np.array([0.01, 0, 0])


@pytest.fixture(scope="module")
def hand():
    return pliant.gallery.hand()


def pulled(session, body=TIP, by=(0.0, 0.0, 0.03), steps=480):
    """Pull a body's origin and let it settle."""
    start = session.simulation.pose(body)[:3, 3]
    pull = session.pull("mouse", body, start, start + by)
    session.step(steps)
    return pull


# --- the beginning


def test_a_mechanism_begins_reduced(hand):
    session = Session(hand)
    assert (session.engine, session.end_effectors) == ("reduced", hand.end_effectors)
    assert session.playing
    assert not session.gravity
    assert session.time == 0.0
    np.testing.assert_allclose(session.poses, hand.reference_poses, atol=1e-12)


def test_what_no_spring_holds_begins_under_gravity():
    b = pliant.Builder("pendulum")
    b.body("bob", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0.3, 0, 0))
    b.hinge("pivot", "world", "bob", anchor=(0, 0, 0), axis=(0, 1, 0))
    session = Session(b.build())
    assert session.engine == "constrained"
    assert session.gravity
    session.step(100)
    assert session.poses[0, 2, 3] < -0.01


def test_huge_ones_begin_quasistatic(monkeypatch):
    monkeypatch.setattr("pliant.viewer.session._LARGE", 10)
    session = Session(pliant.gallery.helix(12))
    assert session.engine == "quasistatic"


def test_models_and_simulations(hand):
    model = pliant.reduce(hand, [TIP])
    session = Session(model)
    assert session.simulation.model is model  # pyright: ignore[reportAttributeAccessIssue]
    assert session.end_effectors == (TIP,)
    found = pliant.equilibrium(hand, {TIP: (0, 0, 3)})
    blended = pliant.blend([model, pliant.reduce(hand, [TIP], at=found)])
    session = Session(blended)
    assert (session.engine, session.model_count) == ("blended", 2)
    assert session.simulation.model is blended  # pyright: ignore[reportAttributeAccessIssue]
    for simulation, engine in (
        (pliant.ReducedSimulation(model, 1 / 100), "reduced"),
        (pliant.ConstrainedSimulation(hand, 1 / 100, (0, 0, 0)), "constrained"),
        (pliant.QuasistaticSimulation(hand, 1 / 100, (0, 0, 0)), "quasistatic"),
    ):
        session = Session(simulation)
        assert session.simulation is simulation
        assert session.engine == engine
        session.step(3)
        assert simulation.time == pytest.approx(0.03)
        session.reset()
        assert simulation.time == 0.0
        session.set_end_effectors(["thumb_tip"])
        assert session.simulation.timestep == 1 / 100


def test_a_given_blend_knows_other_bodies_at_its_samples(hand):
    """A blend is made anew, with its loads, when a body it does not know is pulled."""
    found = pliant.equilibrium(hand, {TIP: (0, 0, 4)})
    session = Session(pliant.blend([pliant.reduce(hand, [TIP]), pliant.reduce(hand, [TIP], at=found)]))
    session.pull("mouse", "thumb_tip", session.simulation.pose("thumb_tip")[:3, 3], (0, 0, 0))
    model = session.simulation.model  # pyright: ignore[reportAttributeAccessIssue]
    assert model.end_effectors == (TIP, "thumb_tip")
    truth = model.configuration({TIP: (0, 0, 4)})
    np.testing.assert_allclose(truth.poses, found.poses, atol=1e-8)


@pytest.mark.parametrize("what", [None, 3, "hand", np.eye(4)])
def test_other_things_are_refused(what):
    with pytest.raises(InputError, match="a Mechanism, a model or a simulation"):
        Session(what)


def test_a_scene_runs_with_its_action_and_starts_again_with_its_motors():
    scene = pliant.scenes.crane_lift(5)
    session = Session(scene)
    assert (session.engine, session.timestep, session.gravity) == ("constrained", 1 / 60, True)
    for _ in range(2):
        assert set(session.simulation.motors) == {"luff"}
        np.testing.assert_allclose(session.q, scene.start, atol=1e-14)  # pyright: ignore[reportArgumentType, reportCallIssue]
        session.step(3)
        assert np.abs(session.q - scene.start).max() > 1e-3  # pyright: ignore[reportOperatorIssue]
        session.reset()
    times = []
    scene = Scene(pliant.gallery.two_link(), "reduced", 0.01, act=lambda _, time: times.append(time))
    session = Session(scene)
    session.step(2)
    session.reset()
    session.step(1)
    np.testing.assert_allclose(times, [0.0, 0.01, 0.0], atol=1e-12)


def test_switching_keeps_motion_time_and_wrenches(hand):
    session = Session(hand)
    session.set_engine("constrained")
    session.simulation.apply_wrench(TIP, force=(0, 0, 2.0))
    session.step(5)
    velocity = session.simulation.twist(TIP)[:3]
    session.set_engine("reduced")
    np.testing.assert_allclose(session.simulation.twist(TIP)[:3], velocity, rtol=0.1, atol=1e-3)
    assert session.time == pytest.approx(5 / 240)
    np.testing.assert_array_equal(session.simulation.wrenches[TIP].force, (0, 0, 2))
    session.set_end_effectors(["thumb_tip"])  # a model that does not know the body cannot carry its wrench
    assert not session.simulation.wrenches


# --- adaptive engines


@pytest.fixture(scope="module")
def molecule():
    return pliant.gallery.molecule(400)


@pytest.mark.parametrize(("engine", "usual"), [("quasistatic", 1e-6), ("adaptive", 0.1)])
def test_a_tolerance_is_set_while_it_runs(molecule, engine, usual):
    """In the same simulation, from the next step on; measurements tell it with the error and the joints that move."""
    assert 1e-6 <= 1e-5 * molecule.radius < 2e-6
    session = Session(molecule)
    session.set_engine(engine)
    tip = molecule.end_effectors[0]
    pulled(session, tip, by=(0, 0, 0.02), steps=3)
    simulation, time = session.simulation, session.time
    assert session.adaptivity is not None
    assert session.adaptivity.tolerance == usual
    before = session.measure().budget
    assert before is not None
    assert (before.tolerance, before.unit) == (usual, "m" if engine == "quasistatic" else "m/s²")
    assert 0 <= before.error <= usual
    assert before.moving == session.simulation.effort.active
    low, high = session.tolerances or (0, 0)
    assert (low, high) == pytest.approx((usual / 1e3, usual * 1e3))
    session.set_tolerance(high)
    assert (session.simulation, session.time) == (simulation, time)
    session.step(30)
    now = session.measure().budget
    assert now is not None
    assert now.tolerance == high
    assert now.moving < before.moving
    assert usual < now.error <= high


def test_a_tolerance_that_was_chosen_stays(molecule):
    """With each engine its own; after a reset, other springs, gravity, another rest pose, and another engine."""
    session = Session(molecule)
    session.set_engine("quasistatic")
    session.set_tolerance(3e-5)
    session.set_engine("adaptive")
    session.set_tolerance(0.7)
    limits = session.tolerances
    for change in (
        session.reset,
        lambda: session.set_stiffness(2.0),
        lambda: session.set_gravity(True),
        session.make_rest,
        lambda: (session.set_engine("constrained"), session.set_engine("adaptive")),
    ):
        change()
        assert session.adaptivity is not None
        assert session.adaptivity.tolerance == 0.7
        assert session.tolerances == limits
    session.set_engine("quasistatic")
    assert session.adaptivity is not None
    assert (session.adaptivity.measure, session.adaptivity.tolerance) == ("world", 3e-5)


def test_a_given_simulation_keeps_its_measure_and_tolerance(molecule):
    given = pliant.QuasistaticSimulation(molecule, 1e-3, (0, 0, 0), measure="absolute-joint", tolerance=0.2)
    session = Session(given)
    assert session.tolerances == (1e-4, 1000.0)
    for change in (lambda: session.set_gravity(True), session.reset, lambda: session.set_stiffness(0.5)):
        change()
        assert session.simulation is not given
        assert session.adaptivity is not None
        assert (session.adaptivity.tolerance, session.adaptivity.measure) == (0.2, "absolute-joint")
    session = Session(given)
    session.set_tolerance(0.5)
    session.reset()
    assert session.simulation is given
    assert given.tolerance == 0.5


@pytest.mark.parametrize("wrong", [0, -1.0, 1e9, 1e-30, np.nan, "1e-3", None, True])
def test_tolerances_that_are_refused(molecule, wrong):
    session = Session(pliant.AdaptiveSimulation(molecule, 1 / 60))
    with pytest.raises(InputError, match="tolerance: a number from 1e-05 to 10"):
        session.set_tolerance(wrong)
    assert session.adaptivity is not None
    assert session.adaptivity.tolerance == 0.01


@pytest.mark.parametrize(("usual", "limits"), [(1e-323, (1e-300, 1e-300)), (1e308, (1e300, 1e300))])
def test_limits_of_absurd_tolerances_are_numbers(molecule, usual, limits):
    session = Session(pliant.QuasistaticSimulation(molecule, 1e-3, (0, 0, 0), tolerance=usual))
    assert session.tolerances == limits
    session.step()
    assert session.measure().budget is not None


@pytest.mark.parametrize("engine", ["reduced", "constrained", "quasistatic"])
def test_no_tolerance_where_all_joints_always_move(hand, engine):
    session = Session(hand)
    session.set_engine(engine)
    session.step()
    assert session.adaptivity is None
    assert session.tolerances is None
    assert session.measure().budget is None
    with pytest.raises(InputError, match=f"the {engine} engine has no tolerance here"):
        session.set_tolerance(0.1)


# --- time


def test_advance_is_real_time_times_speed(hand):
    session = Session(hand)
    h = session.simulation.timestep
    for _ in range(10):
        session.advance(0.05, budget=10.0)
    assert session.time == pytest.approx(0.5, abs=h)
    session.set_speed(0.5)
    session.advance(1.0, budget=10.0)
    assert session.time == pytest.approx(1.0, abs=2 * h)


def test_pause(hand):
    session = Session(hand)
    session.playing = False
    assert session.advance(1.0) == 0
    assert session.time == 0.0
    session.step()
    assert session.time == session.simulation.timestep


def test_what_does_not_fit_is_dropped(hand):
    """A slow machine falls behind; it does not try to catch up for ever."""
    session = Session(hand)
    session.step()
    done = session.advance(1000.0, budget=0.0)
    assert done == 0
    done = session.advance(1000.0, budget=0.005)
    assert 0 < done < 240_000
    assert session.measure().rate < 1.0
    before = session.time
    session.advance(session.simulation.timestep, budget=10.0)
    assert session.time <= before + 2.5 * session.simulation.timestep


def test_an_error_pauses(hand, monkeypatch):
    session = Session(hand)

    def fail(*_):
        raise ConvergenceError("out of bounds")

    monkeypatch.setattr(type(session.simulation), "_advance", fail)
    for pulls in (False, True):
        session.playing = True
        if pulls:
            session.pull("mouse", TIP, (0, 0, 0), (0, 0, 1))
        with pytest.raises(PliantError):
            session.advance(1.0)
        assert not session.playing


def test_reset(hand):
    session = Session(hand)
    pulled(session, steps=60)
    session.measure()
    session.reset()
    assert session.time == 0.0
    assert not session.pulls
    assert not session.history
    np.testing.assert_allclose(session.poses, hand.reference_poses, atol=1e-12)
    session.step(10)
    np.testing.assert_allclose(session.poses, hand.reference_poses, atol=1e-12)


# --- engines


@pytest.mark.parametrize("first", ENGINES)
@pytest.mark.parametrize("second", ENGINES)
def test_switching_keeps_the_pose(hand, first, second):
    session = Session(hand)
    session.set_engine(first)
    pulled(session, steps=120)
    before, time, force = session.poses.copy(), session.time, session.pulls["mouse"].force.copy()
    session.set_engine(second)
    # From all links to the five fingertips the linear model knows, as near as it can be there.
    np.testing.assert_allclose(session.poses, before, atol=1e-12 if second == first else 2e-3)
    assert session.time == pytest.approx(time)
    assert np.linalg.norm(session.pulls["mouse"].force - force) < 0.25 * np.linalg.norm(force) + 0.5
    session.step(10)
    assert session.engine == second


def test_all_engines_agree_on_where_a_pull_leads(hand):
    places = {}
    for engine in ENGINES:
        session = Session(hand)
        session.set_engine(engine)
        pull = pulled(session, steps=1500)
        pull.stiffness = 200.0  # the same spring for all
        session.step(1500)
        places[engine] = session.simulation.pose(TIP)[:3, 3]
    moved = np.linalg.norm(places["constrained"] - hand.reference_poses[hand.body_index(TIP), :3, 3])
    assert moved > 0.01
    for engine in ENGINES:
        assert np.linalg.norm(places[engine] - places["constrained"]) < 0.05 * moved


def test_an_engine_that_cannot_is_refused_and_nothing_changes():
    session = Session(pliant.gallery.ladder(4))
    pulled(session, session.end_effectors[0], (1.0, 0, 0), 60)
    before, simulation = session.poses.copy(), session.simulation
    with pytest.raises(PliantError):
        session.set_engine("quasistatic" if _refuses_loops() else "nonsense")
    assert session.engine == "reduced"
    assert session.simulation is simulation
    assert np.array_equal(session.poses, before)
    session.step(10)


def _refuses_loops():
    try:
        pliant.QuasistaticSimulation(pliant.gallery.ladder(4), 0.01)
    except InputError:
        return True
    return False


def test_loops_are_closed_on_the_way_to_all_links():
    session = Session(pliant.gallery.ladder(4))
    pulled(session, session.end_effectors[0], (3.0, 0, 0))
    assert session.violation < 1e-9
    session.set_engine("constrained")
    assert session.violation < 1e-9


@pytest.mark.parametrize("engine", ["Reduced", "", None, 3, "world"])
def test_unknown_engines(hand, engine):
    with pytest.raises(InputError, match="the engine is one of"):
        Session(hand).set_engine(engine)


def test_floating_bases():
    hexapod = pliant.gallery.hexapod()
    session = Session(hexapod)
    assert session.engine == "reduced"
    body = hexapod.end_effectors[0]
    pulled(session, body, (0, 0, 0.1), 240)
    before = session.poses.copy()
    session.set_engine("constrained")
    np.testing.assert_allclose(session.poses, before, atol=1e-9)
    session.step(60)
    before = session.poses.copy()
    session.set_engine("reduced")
    np.testing.assert_allclose(session.poses, before, atol=5e-3)
    with pytest.raises(PliantError):
        session.add_model()
    assert session.engine == "reduced"
    session.step(10)


# --- end effectors, stiffness, gravity


def test_end_effectors(hand):
    session = Session(hand)
    pulled(session, steps=120)
    before = session.poses.copy()
    session.set_end_effectors([TIP])
    assert session.simulation.model.end_effectors == (TIP,)  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(session.poses, before, atol=1e-3)
    session.set_end_effectors(["thumb_tip"])
    # What is pulled stays known.
    assert session.simulation.model.end_effectors == ("thumb_tip", TIP)  # pyright: ignore[reportAttributeAccessIssue]
    session.release("mouse")
    session.set_end_effectors(["thumb_tip"])
    assert session.simulation.model.end_effectors == ("thumb_tip",)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("names", [[], ["nobody"], [TIP, TIP], ["world"], [""], [3]])
def test_end_effectors_that_are_refused(hand, names):
    session = Session(hand)
    with pytest.raises(InputError):
        session.set_end_effectors(names)
    assert session.end_effectors == hand.end_effectors
    session.step()


def test_stiffness(hand):
    session = Session(hand)
    before = session.ellipsoid(TIP).stiffness
    assert session.set_stiffness(2.0) == 0
    np.testing.assert_allclose(session.ellipsoid(TIP).stiffness, 2 * before, rtol=1e-9)
    session.set_stiffness(1.0)
    np.testing.assert_allclose(session.ellipsoid(TIP).stiffness, before, rtol=1e-9)
    for engine in ENGINES[1:]:
        session.set_engine(engine)
        session.set_stiffness(0.5)
        assert session.mechanism.stiffness[0] == 0.5 * hand.stiffness[0]
        session.step(5)


@pytest.mark.parametrize("value", [0, -1, 100, float("nan"), float("inf"), "1", None, True])
def test_numbers_that_are_refused(hand, value):
    session = Session(hand)
    for change in (session.set_stiffness, session.set_speed, session.set_strength):
        with pytest.raises(InputError):
            change(value)
    assert (session.stiffness, session.speed, session.strength) == (1.0, 1.0, 1.0)


def test_gravity(hand):
    session = Session(hand)
    session.set_gravity(True)
    assert session.gravity
    sagged = pliant.equilibrium(hand, gravity=(0, 0, -9.81))
    session.reset()
    np.testing.assert_allclose(session.poses, sagged.poses, atol=1e-9)
    session.set_engine("constrained")
    session.step(240)
    np.testing.assert_allclose(session.poses, sagged.poses, atol=1e-3)
    session.set_gravity(False)
    session.step(2000)
    np.testing.assert_allclose(session.poses, hand.reference_poses, atol=1e-2)


# --- pulls


def test_a_pull_moves_a_body_towards_its_target(hand):
    session = Session(hand)
    start = session.simulation.pose(TIP)[:3, 3]
    pull = pulled(session, by=(0, 0, 0.04))
    moved = session.simulation.pose(TIP)[:3, 3] - start
    assert 0.005 < moved[2] < 0.04
    # At rest, the spring carries what the mechanism resists with.
    stretch = pull.target - pull.at(session.poses)
    np.testing.assert_allclose(pull.force, pull.stiffness * stretch, rtol=1e-6)
    expected = hand.reference_poses[hand.body_index(TIP), :3, :3].T @ pull.force
    compliance = pliant.reduce(hand, [TIP]).compliance[:3, :3]
    straight = hand.reference_poses[hand.body_index(TIP), :3, :3] @ compliance @ expected
    assert np.linalg.norm(straight - moved) < 0.3 * np.linalg.norm(moved)
    session.release("mouse")
    session.step(2000)
    np.testing.assert_allclose(session.simulation.pose(TIP)[:3, 3], start, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strength", [0.1, 1.0, 2.0])
def test_pulls_stay_calm(hand, engine, strength):
    """Every body, however light, comes to rest where its spring and the mechanism agree."""
    session = Session(hand)
    session.set_engine(engine)
    session.set_strength(strength)
    for body in ("palm", "thumb_tip", "little_metacarpal"):
        pull = pulled(session, body, (0.01, 0.02, 0.02), 600)
        before = session.poses.copy()
        session.step(60)
        assert np.abs(session.poses - before).max() < 0.02
        assert np.isfinite(pull.force).all()
        session.release("mouse")
        session.step(100)


def test_any_body_can_be_pulled_in_a_reduced_model(hand):
    session = Session(hand)
    body = next(name for name in hand.body_names if name not in hand.end_effectors)
    start = session.simulation.pose(body)[:3, 3]
    pulled(session, body)
    assert session.simulation.model.end_effectors == (*hand.end_effectors, body)  # pyright: ignore[reportAttributeAccessIssue]
    assert session.end_effectors == hand.end_effectors
    assert session.simulation.pose(body)[2, 3] > start[2] + 1e-4


def test_pull_elsewhere_and_release(hand):
    session = Session(hand)
    pull = pulled(session)
    session.move("mouse", (0.1, 0, 0))
    assert pull.target.tolist() == [0.1, 0, 0]
    session.move("nobody", (0, 0, 0))
    session.release("nobody")
    session.release("mouse")
    session.release("mouse")
    assert not session.pulls


def test_targets_far_away_end_at_the_reach(hand):
    """A mouse that points at the horizon pulls no harder than one five radii away."""
    session = Session(hand)
    place = session.simulation.pose(TIP)[:3, 3]
    pull = session.pull("mouse", TIP, place, np.add(place, (0, 0, 1e6)))
    np.testing.assert_allclose(pull.target, np.add(place, (0, 0, 5 * hand.radius)), rtol=1e-12)
    session.move("mouse", (1e8, 0, 0))
    assert np.linalg.norm(pull.target - place) == pytest.approx(5 * hand.radius)
    session.step(100)
    assert np.isfinite(session.poses).all()


@pytest.mark.parametrize("strength", [1.0, 2.0])
def test_two_pulls_on_one_body_add_up(hand, strength):
    session = Session(hand)
    session.set_strength(strength)
    session.set_engine("constrained")
    place = session.simulation.pose("palm")[:3, 3]
    session.pull("a", "palm", np.add(place, (0.02, 0, 0)), np.add(place, (0.02, 0, 0.05)))
    session.pull("b", "palm", np.add(place, (-0.02, 0, 0)), np.add(place, (-0.02, 0, 0.05)))
    session.step(50)
    pulls = list(session.pulls.values())
    assert session.simulation.pulling == tuple(pulls)
    # At rest, both forces and their torques are what holds the palm.
    for pull in pulls:
        pull.target[2] -= 0.04  # joint limits, which statics leaves out, are far
    session.step(2000)
    turn = session.simulation.pose("palm")[:3, :3]
    torque = sum(np.cross(turn @ pull.point, pull.force) for pull in pulls)
    load = np.concatenate([pulls[0].force + pulls[1].force, torque])
    found = pliant.equilibrium(hand, {"palm": load}, start=session.q)
    np.testing.assert_allclose(session.poses, found.poses, atol=1e-6)
    session.release("a")
    session.step(10)
    session.release("b")
    session.step(10)


@pytest.mark.parametrize(
    ("body", "point", "target"),
    [
        ("nobody", (0, 0, 0), (0, 0, 0)),
        ("world", (0, 0, 0), (0, 0, 0)),
        (TIP, (0, 0), (0, 0, 0)),
        (TIP, (0, 0, 0), (0, np.nan, 0)),
        (TIP, (0, 0, 0), (0, 0, 1e300)),
        (TIP, "abc", (0, 0, 0)),
        (TIP, (0, 0, 0), None),
    ],
)
def test_pulls_that_are_refused(hand, body, point, target):
    session = Session(hand)
    with pytest.raises((InputError, UnknownNameError)):
        session.pull("mouse", body, point, target)
    assert not session.pulls
    session.step()


def test_a_body_that_cannot_move_is_refused():
    """Nothing holds on to a pull that no reduced model can be made for."""
    b = pliant.Builder("stand")
    b.body("post", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.fixed("foot", "world", "post")
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5, 0, 0))
    b.hinge("elbow", "post", "arm", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=10.0)
    session = Session(b.build())
    with pytest.raises(InputError, match="post"):
        session.pull("mouse", "post", (0, 0, 0), (1, 0, 0))
    assert not session.pulls
    session.step()


def mobility(simulation, body, point):
    """Largest change of a point's velocity over a step per impulse during it, 1/kg."""
    return np.linalg.eigvalsh(simulation.mobility(body, point)).max()


def test_mobility_is_that_of_the_reduced_model(hand):
    """Dense and reduced answers agree where a reduced model knows everything: an arm of two links with one tip."""
    m = pliant.gallery.two_link()
    body, h = m.end_effectors[0], 1 / 240
    reduced = pliant.ReducedSimulation(pliant.reduce(m, m.body_names), h, method="tvcg")
    full = pliant.ConstrainedSimulation(m, h, (0, 0, 0))
    point = np.array([0.01, 0.02, 0.03])
    assert mobility(full, body, point) == pytest.approx(mobility(reduced, body, point), rel=1e-6)


def test_mobility_of_large_ones_is_bounded(hand, monkeypatch):
    """What is taken instead of the exact value is never less, or springs would be too stiff; and not far more."""
    exact, estimates = {}, {}
    for h in (1 / 240, 1 / 60, 1 / 10):
        full = pliant.ConstrainedSimulation(hand, h, (0, 0, 0))
        exact[h] = mobility(full, TIP, np.zeros(3))
        with monkeypatch.context() as patch:
            patch.setattr("pliant.engines.simulation._DENSE", 0)
            estimates[h] = mobility(full, TIP, np.zeros(3))
            patch.setattr("pliant.engines.simulation._LARGE", 0)
            assert mobility(full, TIP, np.zeros(3)) == 3 / hand.mass[hand.body_index(TIP)]
    assert all(exact[h] <= estimates[h] for h in exact)
    assert estimates[1 / 10] < 1.2 * exact[1 / 10]


# --- the interactive loop


@pytest.mark.parametrize("blended", [False, True])
def test_adding_a_model(blended):
    m = pliant.gallery.helix(20)
    model, tip = pliant.reduce(m), "link20"
    given = pliant.ReducedSimulation(pliant.blend([model]) if blended else model, 1 / 240, method="full")
    session = Session(given)
    engine = "blended" if blended else "reduced"
    for i, by in enumerate([(0, 0, 0.03), (0.02, 0, 0)]):  # the second one from where the first has led
        pulled(session, tip, by, 1500)
        before = session.poses.copy()
        added = session.add_model()
        assert (session.engine, added.models, session.model_count) == (engine, i + 2, i + 2)
        assert (added.vectors > 0) == (not blended)
        apart = np.abs(before - added.equilibrium.poses).max()
        assert apart > 2e-5
        session.step(2000)
        # It comes to rest at the true equilibrium, spring and all.
        left = session.simulation.pose(tip)[:3, 3] - added.equilibrium.pose(tip)[:3, 3]
        assert np.linalg.norm(left) < 1e-3 * m.radius
        assert session.violation < 1e-9
    assert ("vectors" in session.facts) == (not blended)


def test_facts_tell_how_far_a_model_went():
    session = Session(pliant.reduce(pliant.gallery.helix(20)))
    simulation: Any = session.simulation
    assert session.facts == ""
    simulation.apply_wrench("link20", force=(0, 0, -50.0))
    simulation.step(100)
    assert session.facts == f"{simulation.distance:.2f} radii from where the model was made"
    simulation.apply_wrench("link20", force=(0, 0, -2000.0))
    with pytest.warns(pliant.errors.PliantWarning, match="went"):
        simulation.step(100)
    assert simulation.distance > 0.3
    assert "beyond 0.3 its errors are not known" in session.facts


def test_facts_of_models(hand):
    m = pliant.gallery.helix(20)
    model = pliant.reduce(m, reach=0.3)
    session = Session(model)
    assert session.facts.startswith(f"reach: {model.reach:.3g} radii at 1 % static error")
    session.set_engine("blended")
    assert session.facts == "1 model blended"
    session.set_engine("constrained")
    assert session.facts == ""
    assert Session(hand).facts == ""


def test_adding_a_model_closes_loops():
    session = Session(
        pliant.ReducedSimulation(pliant.reduce(pliant.gallery.ladder(6)), 1 / 240, method="tvcg")
    )
    pulled(session, session.end_effectors[0], (2.0, 0, 0), 3000)
    assert session.violation > 1e-4
    session.add_model()
    session.step(100)
    assert session.violation < 1e-9


@pytest.mark.parametrize("engine", ["constrained", "quasistatic"])
def test_adding_a_model_from_another_engine(hand, engine):
    session = Session(hand)
    session.set_engine(engine)
    pulled(session, by=(0, 0, 0.03), steps=1500)
    before = session.poses.copy()
    session.add_model()
    assert session.engine == "reduced"
    np.testing.assert_allclose(session.poses, before, atol=5e-3)


def test_adding_a_model_without_a_pull_is_refused(hand):
    session = Session(hand)
    with pytest.raises(InputError, match="nothing is pulled"):
        session.add_model()
    session.set_engine("blended")
    pulled(session)
    session.add_model()
    with pytest.raises(PliantError):
        session.add_model()  # there is one already
    assert session.model_count == 2
    session.step(5)


def test_no_equilibrium_leaves_everything_as_it_is(hand, monkeypatch):
    session = Session(hand)
    pulled(session)

    def fail(*_, **__):
        raise ConvergenceError("no equilibrium")

    monkeypatch.setattr("pliant.statics.point_springs.equilibrium", fail)
    before = session.poses.copy()
    with pytest.raises(ConvergenceError):
        session.add_model()
    assert (session.engine, session.model_count) == ("reduced", 1)
    assert np.array_equal(session.poses, before)


def test_models_follow_stiffness_and_gravity(hand):
    session = Session(hand)
    pulled(session)
    session.add_model()
    lost = session.set_stiffness(1.5)
    assert session.model_count == 2 - lost
    load = session.setup.samples[1].wrenches
    truth = pliant.equilibrium(session.mechanism, load)
    np.testing.assert_allclose(session.simulation.model.configuration(load).poses, truth.poses, atol=1e-8)  # pyright: ignore[reportAttributeAccessIssue]
    session.set_gravity(True)
    assert session.model_count == 2
    session.step(5)


# --- numbers


@pytest.mark.parametrize("engine", ENGINES)
def test_measures(hand, engine):
    session = Session(hand)
    session.set_engine(engine)
    pulled(session, steps=20)
    now = session.measure()
    assert now.time == session.time
    assert now.energy.elastic > 0
    assert (now.energy.kinetic > 0) == (engine != "quasistatic")
    assert now.violation >= 0
    session.measure()
    assert len(session.history) == 1  # nothing has moved
    session.step()
    session.measure()
    assert len(session.history) == 2


def test_energy_of_a_reduced_model_is_that_of_all_links():
    """A model that knows all bodies of a small arm has the kinetic energy of the full dynamics, near rest."""
    m = pliant.gallery.two_link()
    tip = m.end_effectors[0]
    sessions = [
        Session(pliant.ReducedSimulation(pliant.reduce(m, m.body_names), 1e-5)),
        Session(pliant.ConstrainedSimulation(m, 1e-5, (0, 0, 0))),
    ]
    for session in sessions:
        session.simulation.apply_wrench(tip, force=(0, 0, 0.01))
        session.step(200)
    a, b = (session.measure().energy for session in sessions)
    assert a.kinetic == pytest.approx(b.kinetic, rel=0.1)
    assert a.elastic == pytest.approx(b.elastic, rel=0.1)


def test_violation_grows_with_the_square_of_the_pull(hand):
    gaps = []
    for by in (0.01, 0.02, 0.04):
        session = Session(pliant.ReducedSimulation(pliant.reduce(hand, TIP), 1 / 240, method="tvcg"))
        pulled(session, by=(0, 0, by), steps=960)
        gaps.append(session.violation)
    assert 3.0 < gaps[1] / gaps[0] < 5.0
    assert 3.0 < gaps[2] / gaps[1] < 5.0


def test_the_ellipsoid_is_the_models(hand):
    session = Session(hand)
    expected = pliant.reduce(hand, [TIP]).stiffness_ellipsoid(TIP)
    for engine in ENGINES:
        session.set_engine(engine)
        found = session.ellipsoid(TIP)
        np.testing.assert_allclose(found.stiffness, expected.stiffness, rtol=1e-6)
        turn = hand.reference_poses[hand.body_index(TIP), :3, :3]
        alike = np.abs(np.sum((turn @ found.axes) * expected.axes, axis=0))
        np.testing.assert_allclose(alike, 1.0, atol=1e-6)
        assert np.linalg.det(found.axes) == pytest.approx(1.0)


# --- worlds


def box_world():
    """A box of 2 kg on the floor."""
    world = pliant.World(1 / 100)
    world.add_static("floor", pliant.shapes.plane(1, 1))
    world.add_body("box", pliant.shapes.box((0.1, 0.1, 0.1)), mass=2.0, position=(0, 0, 0.1))
    return world


@pytest.fixture
def session():
    return WorldSession(box_world())


def test_begins_as_the_world_is(session):
    assert session.playing
    assert session.time == 0
    assert session.mechanism.name == "floor, box"
    assert session.mechanism.body_names == ("box",)
    np.testing.assert_array_equal(session.poses, session.world.poses[:1])


def test_contact_forces_carry_the_weight(session):
    session.step(100)
    found = session.contacts
    assert len(found) >= 3
    np.testing.assert_allclose(found.forces.sum(axis=0), (0, 0, WEIGHT), atol=1e-3 * WEIGHT)
    np.testing.assert_allclose(found.points[:, 2], 0, atol=1e-3)
    np.testing.assert_allclose(session.force_on("box"), (0, 0, WEIGHT), atol=1e-3 * WEIGHT)
    now = session.measure()
    assert now.contacts == len(found)
    assert now.force == np.linalg.norm(found.forces, axis=1).sum()
    assert now.force > 0.999 * WEIGHT  # friction may push inwards besides
    assert 0 <= now.depth < 1e-4
    assert found.largest == np.linalg.norm(found.forces, axis=1).max()
    assert list(session.history) == [now]


def test_pulling_lifts_and_feels_the_weight(session):
    session.step(10)
    start = session.world["box"].position
    pull = session.pull("mouse", "box", start, np.add(start, (0, 0, 0.5)))
    session.step(300)
    assert session.world["box"].position[2] > 0.2
    # It hangs on its spring at rest: that carries all of it.
    np.testing.assert_allclose(pull.force, (0, 0, WEIGHT), atol=0.01 * WEIGHT)
    np.testing.assert_allclose(pull.at(session.poses), session.world["box"].position, atol=1e-9)
    assert len(session.contacts) == 0
    session.release("mouse")
    session.step(200)
    np.testing.assert_allclose(session.world["box"].position, start, atol=1e-3)


def test_strength_is_stiffness(session):
    """A spring half as stiff gives way twice as far."""
    session.pull("mouse", "box", (0, 0, 0.1), (0, 0, 1.0))
    sagged = []
    for strength in (1.0, 0.5):
        session.set_strength(strength)
        session.step(800)
        sagged.append(1.0 - session.world["box"].position[2])
    assert sagged[1] == pytest.approx(2 * sagged[0], rel=1e-3)


def test_moving_and_letting_go(session):
    session.move("mouse", (0, 0, 1))
    session.release("mouse")
    session.pull("mouse", "box", (0, 0, 0.1), (0, 0, 0.3))
    session.move("mouse", (0.2, 0, 0.3))
    session.step(300)
    assert session.world["box"].position[0] == pytest.approx(0.2, abs=0.01)
    # Another hand takes over: a body hangs on one spring.
    session.pull("other", "box", session.world["box"].position, (0, 0, 0.3))
    assert list(session.pulls) == ["other"]
    session.release("mouse")
    session.step(300)
    assert session.world["box"].position[0] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("body", "point", "target"),
    [
        ("bix", (0, 0, 0), (0, 0, 0)),
        ("floor", (0, 0, 0), (0, 0, 0)),
        ("world", (0, 0, 0), (0, 0, 0)),
        ("box", (0, 0), (0, 0, 0)),
        ("box", (0, 0, 0), (0, np.nan, 0)),
        ("box", (0, 0, 0), "up"),
    ],
)
def test_pulls_on_a_world_that_are_refused(session, body, point, target):
    with pytest.raises((InputError, UnknownNameError)):
        session.pull("mouse", body, point, target)
    assert not session.pulls
    with pytest.raises(InputError):
        session.set_strength(0)
    session.step()


def test_reset_of_a_world(session):
    session.pull("mouse", "box", (0, 0, 0.1), (0.5, 0, 0.5))
    session.step(50)
    session.measure()
    session.reset()
    assert session.time == 0
    assert not session.pulls
    assert not session.history
    np.testing.assert_array_equal(session.world["box"].position, (0, 0, 0.1))
    assert len(session.contacts) == 0
    session.step(50)
    assert abs(session.world["box"].position[0]) < 1e-6


def test_what_is_done_to_a_world_is_done():
    world = box_world()
    acted = []
    session = WorldSession(Scene(world, act=lambda _, time: acted.append(time)))
    session.step(3)
    session.reset()
    assert session.advance(0.02, budget=10.0) == 2
    np.testing.assert_allclose(acted, [0, 0.01, 0.02, 0, 0.01], atol=1e-12)


def test_a_link_of_a_mechanism_is_pulled():
    """A reduced model that touches nothing, which had no need of a solver before."""
    world = pliant.World(1 / 100)
    model = pliant.reduce(pliant.gallery.helix(6))
    world.add(model, "arm")
    session = WorldSession(world)
    session.step(2)
    start = world.pose("arm/link6")[:3, 3]
    session.pull("mouse", "arm/link6", start, np.add(start, (0, 0, 0.05)))
    session.step(50)
    assert world.pose("arm/link6")[2, 3] > start[2]
    assert session.pulls["mouse"].force[2] > 0


def test_two_surfaces_that_both_move_push_each_other():
    world = box_world()
    world.add_body("top", pliant.shapes.box((0.05, 0.05, 0.05)), mass=1.0, position=(0, 0, 0.25))
    session = WorldSession(world)
    session.step(100)
    np.testing.assert_allclose(session.force_on("top"), (0, 0, 9.81), atol=0.02)
    np.testing.assert_allclose(session.force_on("box"), (0, 0, WEIGHT), atol=0.04)


def test_an_empty_world_is_refused():
    with pytest.raises(InputError, match="nothing in this world"):
        WorldSession(pliant.World(1 / 60))


# --- joints that are set, and torques


def test_a_joint_is_set_and_the_simulation_goes_on_from_there():
    m = pliant.gallery.two_link()
    session = Session(m)
    session.set_engine("constrained")
    session.step(5)
    dof = session.sliders[0].dof
    session.set_joint(dof, 0.3)
    assert not session.playing
    assert session.joint(dof) == 0.3
    expected = m.with_pose({dof: 0.3}).reference_poses
    np.testing.assert_allclose(session.poses, expected, atol=1e-9)
    before = session.time
    session.step(1)
    assert not session.posed
    assert session.time > before
    alone = pliant.ConstrainedSimulation(m, session.timestep, (0, 0, 0))
    alone.q = {dof: 0.3}
    alone.step()
    np.testing.assert_allclose(session.poses, alone.poses, atol=1e-9)
    session.set_joint(dof, 0.3)
    session.reset()
    np.testing.assert_allclose(session.poses, m.reference_poses, atol=1e-12)


def test_loops_follow_the_joint_that_is_set():
    m = pliant.gallery.gripper()
    session = Session(m)
    session.set_joint("left_driver", 0.25)
    at = pliant.Configuration(m, session.q)
    assert np.abs(at.loop_residual).max() < 1e-9
    # geared: the other driver mirrors it
    assert abs(session.joint("right_driver")) == pytest.approx(0.25, abs=1e-9)
    np.testing.assert_allclose(session.poses, at.poses, atol=1e-12)


def test_loops_that_do_not_close_are_refused_and_nothing_changes():
    m = pliant.gallery.scissor_lift()
    session = Session(m)
    slide = next(one for one in session.sliders if one.unit != "°")
    with pytest.raises(ConvergenceError, match="do not close"):
        session.set_joint(slide.dof, 30.0)
    assert not session.posed
    assert session.playing


def ball_arm(limit=None):
    b = pliant.Builder("shoulder")
    b.body("arm", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0.3, 0, 0))
    limits = (-np.inf, np.inf if limit is None else limit)
    b.ball("socket", "world", "arm", anchor=(0, 0, 0), stiffness=5.0, limits=limits)
    return b.build()


@pytest.mark.parametrize("limit", [None, 1.2])
def test_a_ball_has_a_slider_for_each_component_of_its_rotation_vector(limit):
    """One moves, the others stay; together they are no more than the limit, or half a turn."""
    m = ball_arm(limit)
    largest = np.pi if limit is None else limit
    session = Session(m)
    assert [one.label for one in session.sliders] == [f"socket turn {axis}" for axis in "xyz"]
    for one in session.sliders:
        assert (one.low, one.high) == pytest.approx((-largest, largest))
        assert one.unit == "°"
    x, y, z = (one.dof for one in session.sliders)
    for dof, value in ((x, 0.5), (y, -0.4), (z, 0.9)):
        session.set_joint(dof, value)
    assert [session.joint(dof) for dof in (x, y, z)] == pytest.approx([0.5, -0.4, 0.9], abs=1e-12)
    turn = spatial.so3_exp([0.5, -0.4, 0.9])
    np.testing.assert_allclose(session.poses[0, :3, :3], turn, atol=1e-12)
    np.testing.assert_allclose(session.poses[0, :3, 3], turn @ [0.3, 0, 0], atol=1e-12)
    session.set_joint(x, 0.95 * largest)  # the others shrink alike
    vector = np.array([session.joint(dof) for dof in (x, y, z)])
    assert vector[0] == pytest.approx(0.95 * largest, abs=1e-9)
    assert np.linalg.norm(vector) <= largest + 1e-9
    assert vector[1] / vector[2] == pytest.approx(-0.4 / 0.9)
    session.set_joint(x, -50.0)  # beyond the end of the slider
    assert session.joint(x) == pytest.approx(-largest, rel=1e-5)
    session.make_rest()
    session.step(20)
    assert session.joint(x) == pytest.approx(-largest, rel=1e-4)


def test_loops_follow_a_ball_that_is_turned():
    """A platform on six legs, by the socket of one, at once and step by step; what does not close is refused."""
    m = pliant.gallery.stewart_platform()
    session, other = Session(m), Session(m)
    dof = next(one.dof for one in session.sliders if one.label == "head2 turn y")
    session.set_joint(dof, 0.5)
    assert session.joint(dof) == pytest.approx(0.5, abs=1e-8)
    assert np.abs(pliant.Configuration(m, session.q).loop_residual).max() < 1e-8
    assert np.abs(session.poses - m.reference_poses).max() > 0.1
    for value in (0.1, 0.2, 0.3, 0.4, 0.5):
        other.set_joint(dof, value)
        assert other.joint(dof) == pytest.approx(value, abs=1e-8)
    assert np.abs(pliant.Configuration(m, other.q).loop_residual).max() < 1e-8
    stiff = Session(pliant.gallery.suspension())
    before = stiff.poses.copy()
    with pytest.raises(ConvergenceError, match=r"do not close with 'upper_ball\.1' there"):
        stiff.set_joint("upper_ball.1", 0.3)
    np.testing.assert_array_equal(stiff.poses, before)


@pytest.mark.parametrize("engine", ["reduced", "constrained", "quasistatic", "blended"])
def test_the_pose_becomes_the_rest_pose(engine):
    m = pliant.gallery.two_link()
    session = Session(m)
    session.set_engine(engine)
    session.set_stiffness(2.0)
    session.set_joint(session.sliders[1].dof, -0.4)
    shown = session.poses.copy()
    session.make_rest()
    assert (session.time, session.engine) == (0.0, engine)
    np.testing.assert_allclose(session.poses, shown, atol=1e-9)
    session.step(120)
    np.testing.assert_allclose(session.poses, shown, atol=1e-6)  # at rest there
    np.testing.assert_allclose(session.mechanism.stiffness, 2 * m.stiffness)
    # with weight, springs act about the new rest: what the same mechanism built there does
    session.set_gravity(True)
    session.reset()
    expected = session.mechanism
    np.testing.assert_allclose(expected.rest, expected.reference)
    session.set_stiffness(1.0)
    np.testing.assert_allclose(session.mechanism.reference_poses, shown, atol=1e-9)


def test_a_torque_turns_a_body_by_the_angle_of_the_drag():
    """On one hinge, the torque of a drag by an angle holds the hinge at that angle."""
    b = pliant.Builder("lever")
    b.body("arm", mass=1.0, inertia=(0.01, 0.01, 0.01), com=(0.1, 0, 0))
    b.hinge("pivot", "world", "arm", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=7.0, damping=2.0)
    session = Session(b.build())
    session.set_engine("constrained")
    turned = session.turn("mouse", "arm", (0.2, 0, 0), (0.2, 0.02, 0))
    np.testing.assert_allclose(turned.torque, (0, 0, 0.7), atol=1e-9)
    session.step(2000)
    assert session.joint("pivot") == pytest.approx(0.1, abs=1e-6)
    session.move("mouse", (0.2, 1e6, 0))
    assert np.linalg.norm(turned.torque) == pytest.approx(7.0 * np.pi)  # half a turn at most
    session.set_engine("reduced")  # it acts on
    np.testing.assert_allclose(session.simulation.wrenches["arm"].torque, (0, 0, 7.0 * np.pi))
    session.release("mouse")
    assert not session.turns
    assert not session.simulation.wrenches


def test_a_torque_puts_a_wrench_aside(hand):
    session = Session(hand)
    session.simulation.apply_wrench(TIP, force=(0, 0, 2.0))
    at = session.pose(TIP)[:3, 3] + ASIDE
    session.turn("mouse", TIP, at, at + UP)
    assert not session.simulation.wrenches[TIP].force.any()
    session.release("mouse")
    np.testing.assert_array_equal(session.simulation.wrenches[TIP].force, (0, 0, 2))
    # a body that the model does not know becomes an end effector
    at = session.pose("index_medial")[:3, 3] + ASIDE
    session.turn("mouse", "index_medial", at, at + UP)
    assert "index_medial" in session.setup.end_effectors
    with pytest.raises(InputError, match="the world cannot be turned"):
        session.turn("mouse", "world", (0, 0, 0), (0, 0, 1))


def test_a_torque_spins_a_free_body():
    world = pliant.World(1 / 100, gravity=(0, 0, 0))
    world.add_body("box", pliant.shapes.box((0.1, 0.1, 0.1)), mass=2.0)
    session = WorldSession(world)
    turned = session.turn("mouse", "box", (0.1, 0, 0), (0.1, 0.01, 0))
    session.step(10)
    inertia = 2.0 * (0.2**2 + 0.2**2) / 12  # `box` takes half lengths
    spin = world["box"].twist()[3:]
    np.testing.assert_allclose(spin, turned.torque / inertia * 0.1, rtol=1e-9)
    session.release("mouse")
    assert not world["box"].wrenches


# --- engines and energies of worlds


def test_engines_of_a_world():
    session = WorldSession(pliant.scenes.grasp())
    assert session.mechanisms == ("hand",)
    assert session.engines("hand") == ("reduced", "constrained")
    session.step(60)
    model = session.world.level("hand")
    before = session.poses.copy()
    moved = session.set_engine("hand", "constrained")
    assert session.engine("hand") == "constrained"
    assert np.linalg.norm(session.poses[:, :3, 3] - before[:, :3, 3], axis=1).max() == pytest.approx(
        moved, abs=1e-12
    )
    session.step(5)
    session.set_engine("hand", "reduced")
    assert session.world.level("hand") is model  # the one that was given
    for name, engine, words in (
        ("hand", "blended", "is one of reduced, constrained"),
        ("hand", "", "is one of"),
        ("hadn", "reduced", "did you mean 'hand'"),
        ("ball", "reduced", "no mechanism"),
    ):
        with pytest.raises(InputError, match=words):
            session.set_engine(name, engine)
    session.set_engine("hand", "constrained")
    session.reset()
    assert session.engine("hand") == "reduced"


def test_a_mechanism_of_a_world_is_reduced_when_asked_for():
    world = pliant.World(1 / 100)
    world.add(pliant.gallery.hand())
    session = WorldSession(world)
    assert session.engine("hand") == "constrained"
    session.set_engine("hand", "reduced")
    assert session.world.level("hand").end_effectors == pliant.gallery.hand().end_effectors


def test_energy_of_a_world_is_that_of_its_parts():
    """A ball in free fall and a mechanism under load: known in closed form, and from the mechanism alone."""
    world = pliant.World(1 / 1000)
    world.add_body("ball", pliant.shapes.sphere(0.05), mass=3.0, position=(5, 0, 2.0))
    world.add(pliant.gallery.helix(6))
    session = WorldSession(world)
    session.step(100)
    now, alone = session.measure(), pliant.ConstrainedSimulation(pliant.gallery.helix(6), 1 / 1000)
    alone.step(100)
    speed, height = 9.81 * 0.1, world["ball"].position[2]
    assert now.energy.kinetic == pytest.approx(1.5 * speed**2 + alone.energy.kinetic, rel=1e-6)
    assert now.energy.elastic == pytest.approx(alone.energy.elastic, rel=1e-6)
    assert now.energy.gravity == pytest.approx(3.0 * 9.81 * height + alone.energy.gravity, rel=1e-6)
