"""Tolerances that change while a simulation runs, and what adaptive engines tell about joints that move."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.errors import InputError

NONE = (0.0, 0.0, 0.0)
LIMITS = {"quasistatic": (1e-7, 1e-9), "adaptive": (0.03, 0.003)}  # a loose and a tight tolerance
ENGINES = ("quasistatic", "adaptive")


def soft_molecule(links: int = 1000) -> pliant.Mechanism:
    return pliant.gallery.molecule(links).with_stiffness("*", 1e-3, 5e-6)


def make(engine: str, tolerance: float, m: pliant.Mechanism | None = None, **options: Any) -> Any:
    m = soft_molecule() if m is None else m
    if engine == "quasistatic":
        options = {"measure": "world", **options}
        s = pliant.QuasistaticSimulation(m, 1e-3, NONE, tolerance=tolerance, **options)
    else:
        s = pliant.AdaptiveSimulation(m, 1 / 240, NONE, tolerance=tolerance, **options)
    s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-3), point=(0, 0, 0.005))
    return s


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tolerance_set_before_the_first_step_is_that_of_the_constructor(engine):
    loose, tight = LIMITS[engine]
    given, later = make(engine, tight), make(engine, loose)
    later.tolerance = tight
    for s in (given, later):
        s.step(20)
    assert later.tolerance == tight
    np.testing.assert_array_equal(later.q, given.q)
    np.testing.assert_array_equal(later.velocity, given.velocity)
    assert later.active == given.active
    np.testing.assert_array_equal(later.poses, given.poses)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tolerance_acts_on_the_next_step(engine):
    """A tighter one at once: the error is below it, with more joints. A looser one has fewer in the end."""
    loose, tight = LIMITS[engine]
    s = make(engine, loose)
    s.step(20)
    few = len(s.active)
    assert tight < s.adaptivity.error <= loose
    s.tolerance = tight
    other = make(engine, tight)
    other.q, other.velocity = s.q, s.velocity
    for one in (s, other):
        one.step()
        assert one.adaptivity.error <= tight
        assert few < len(one.active) < s.mechanism.joint_count
    if engine == "quasistatic":  # which joints move depends on coordinates and loads alone
        assert set(s.active) == set(other.active)
        assert s.error_bound == pytest.approx(other.error_bound, rel=1e-6)
    twin = s.copy()
    s.tolerance = loose
    for one in (s, twin):
        one.step(1 if engine == "quasistatic" else 80)  # joints stop one after the other
    assert len(s.active) < 0.8 * len(twin.active)
    assert tight < s.adaptivity.error <= loose
    assert twin.adaptivity.error <= tight


def test_a_looser_tolerance_ends_steps_of_all_joints_at_once():
    """After long runs of the articulated-body algorithm, too, when no time for the assembly tree is saved yet."""
    s = make("quasistatic", 1e-14)
    s.step(4)
    assert len(s.active) == s.mechanism.joint_count
    s.tolerance = 1e-7
    s.step()
    assert 0 < len(s.active) < s.mechanism.joint_count / 4
    assert s.error_bound <= 1e-7


def test_refinement_goes_on_at_a_new_tolerance():
    s = make("quasistatic", 1e-7)
    bound = s.refine()
    assert bound <= 1e-7
    few = len(s.active)
    s.tolerance = 1e-9
    assert s.refine() <= 1e-9
    assert len(s.active) > few
    many = len(s.active)
    s.tolerance = 1e-7
    assert s.refine() == pytest.approx(bound, rel=1e-9)
    assert few == len(s.active) < many
    assert s.refine(budget=1e-3) <= bound
    assert s.time == 0.0


def test_the_slow_speed_follows_the_tolerance_unless_it_was_given():
    m = soft_molecule(300)
    for slow in (None, 0.02):
        s = make("adaptive", 1.0, m, slow=slow)
        s.tolerance = 0.01
        limits = make("adaptive", 0.01, m, slow=slow)._solver.limits
        assert s._solver.limits == limits
        mean = m.mass.mean()
        assert limits.slow == pytest.approx(0.5 * mean * (slow or 10 * 0.01 / 240) ** 2)
        assert limits.open == pytest.approx(mean * 0.01**2)


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_a_setting_and_not_part_of_the_motion(engine):
    loose, tight = LIMITS[engine]
    s = make(engine, loose)
    kept = s.state
    s.step(5)
    s.tolerance = tight
    s.step(5)
    copies = [s.copy(), pickle.loads(pickle.dumps(s))]
    s.step(5)
    for one in copies:
        assert one.tolerance == tight
        one.step(5)
        np.testing.assert_allclose(one.q, s.q, rtol=0, atol=1e-13)
        assert set(one.active) == set(s.active)
        one.tolerance = loose
    assert s.tolerance == tight
    s.state = kept
    assert s.tolerance == tight
    s.reset()
    assert (s.tolerance, s.time) == (tight, 0.0)
    fresh = make(engine, tight)
    fresh.clear_wrenches()
    for one in (s, fresh):
        one.apply_wrench(s.mechanism.body_names[-1], force=(0, 0, 1e-3))
        one.step(5)
    np.testing.assert_array_equal(s.q, fresh.q)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, "1e-3", None, True, [1e-3]])
def test_what_is_no_tolerance_changes_nothing(engine, wrong):
    m = pliant.gallery.helix(5)
    s, other = make(engine, 0.01, m), make(engine, 0.01, m)
    with pytest.raises(InputError, match="tolerance: a number above 0"):
        s.tolerance = wrong
    assert s.tolerance == 0.01
    for one in (s, other):
        one.step(3)
    assert s.state == other.state


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_told(engine):
    s = make(engine, LIMITS[engine][0])
    s.step(20)
    found, m = s.adaptivity, s.mechanism
    assert found.tolerance == s.tolerance
    assert found.error == (s.error_bound if engine == "quasistatic" else s.error_estimate) > 0
    assert found.active.shape == (m.joint_count,)
    assert {m.joint_names[j] for j in np.flatnonzero(found.active)} == set(s.active)
    assert found.active.sum() == s.effort.active


@pytest.mark.parametrize(
    ("measure", "weights", "unit"),
    [
        ("world", "radians", "m"),
        ("energy", "radians", ""),
        ("relative-joint", "radians", ""),
        ("relative-linkage", "lever", ""),
        ("absolute-joint", "radians", "rad/s²"),
        ("absolute-linkage", "lever", "m/s²"),
        ("absolute-joint", "plain", ""),
        ("absolute-joint", {"*": 2.0}, ""),
    ],
)
def test_units_of_measures(measure, weights, unit):
    found = make("quasistatic", 0.1, measure=measure, weights=weights).adaptivity
    assert (found.measure, found.unit) == (measure, unit)


def test_units_of_the_adaptive_engine():
    found = make("adaptive", 0.1).adaptivity
    assert (found.measure, found.unit) == ("acceleration", "m/s²")


def test_engines_that_always_move_all_joints_tell_nothing():
    m = pliant.gallery.helix(5)
    for engine in ("reduced", "constrained", "quasistatic"):
        assert pliant.simulate(m, engine).adaptivity is None
    assert pliant.AdaptiveSimulation(m, 1e-3, keep="*").adaptivity is None
    assert pliant.QuasistaticSimulation(pliant.gallery.gripper(), 1e-3).adaptivity is None
    with pytest.raises(AttributeError):
        pliant.ConstrainedSimulation(m, 1e-3).tolerance = 0.1  # pyright: ignore[reportAttributeAccessIssue]


def test_a_tolerance_acts_in_contact_too():
    """A bond that is pulled against a ball: the same as with the tolerance from the start."""
    m = soft_molecule()
    place = m.reference_poses[-1, :3, 3] - (0, 0, 0.0145)
    ball, found = pliant.shapes.sphere(0.01, position=tuple(place.tolist())), []
    for first in (1e-5, 2e-4):
        s = pliant.QuasistaticSimulation(m, 0.02, NONE, measure="world", tolerance=first, obstacles=[ball])
        s.tolerance = 2e-4
        s.apply_wrench(m.body_names[-1], force=(0, 0, -1e-2))
        touched = 0
        for _ in range(40):
            s.step()
            if s.contacts:
                touched += 1
                assert s.error_bound <= 2e-4
                assert 0 < len(s.active) < m.joint_count / 4
        assert touched > 20
        found.append(s.q)
    np.testing.assert_array_equal(*found)
