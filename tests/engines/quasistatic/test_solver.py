"""Adaptive accelerations against full ones: bounds, lazy updates, the articulated-body algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.engines.quasistatic.arrays import DOF, DOFS
from pliant.engines.quasistatic.measures import MEASURES
from pliant.engines.quasistatic.solver import Solver
from pliant.mechanism import kinematics
from pliant.statics.load_kernels import LOAD_SIZE

GRAVITY = np.array([0.3, -0.4, -9.81])
RL05 = ("relative-joint", "relative-linkage", "absolute-joint", "absolute-linkage")


def solver(
    m,
    measure="relative-joint",
    tolerance=0.1,
    gravity=GRAVITY,
    q=None,
    forces=(),
    weights=None,
    resist=None,
    rigid=True,
):
    weights = np.ones(m.nv) if weights is None else weights
    resist = m.armature if resist is None else resist
    out = Solver(m, gravity, resist, weights, MEASURES[measure], tolerance, rigid=rigid)
    if q is not None:
        out.q[:] = q
    out.set_loads(rows(out, forces))
    return out


def rows(s, forces):
    """(body, world wrench) pairs as rows of loads."""
    model, out = s.tree.model, []
    for body, wrench in forces:
        if model.group[body] >= 0:
            leaf = model.tree.first_leaf[model.group[body]]
            out.append([*wrench, *model.local[body][:3, 3], *np.zeros(6), 1.0, leaf])
    return np.array(out, dtype=float).reshape(-1, LOAD_SIZE)


def movable(seed, bodies, kinds=KINDS, **options):
    m = random_mechanism(seed, bodies=bodies, kinds=kinds, **options)
    return m if m.nv else random_mechanism(seed, bodies=bodies, kinds=("hinge",), **options)


def random_forces(rng, bodies, count=2):
    return [(int(b), rng.normal(size=6)) for b in rng.integers(0, bodies, size=count)]


@settings(max_examples=100)
@given(st.integers(0, 100_000), st.integers(1, 30), st.sampled_from([0.0, 1e-3, 1.0, 1e4]))
def test_articulated_bodies_agree_with_the_tree(seed, bodies, resist):
    m = movable(seed, bodies)
    rng = np.random.default_rng(seed)
    s = solver(
        m,
        q=random_q(m, seed, 0.5),
        forces=random_forces(rng, bodies),
        resist=m.armature + resist * rng.uniform(0, 1, m.nv),
    )
    s.moved()
    s.begin()
    expected = s.tree.down().copy()
    s.step_aba()
    np.testing.assert_allclose(s.accelerations, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def joint_norms(s, qdd):
    groups = s.tree.model.groups
    weighted = (s.tree.arrays.joints.weights * qdd) ** 2
    return np.sqrt([weighted[d : d + n].sum() for d, n in groups[:, [DOF, DOFS]]])


def actual_error(s, measure, exact, found):
    """The measure's own definition, from all accelerations."""
    off, whole = joint_norms(s, found - exact), joint_norms(s, exact)
    if measure == "relative-joint":
        return off.max(), whole.max()
    if measure == "relative-linkage":
        return np.sqrt((off**2).sum()), np.sqrt((whole**2).sum())
    return (off.max() if measure == "absolute-joint" else np.sqrt((off**2).sum())), 1.0


CASES = (
    st.integers(0, 100_000),
    st.integers(2, 60),
    st.integers(1, 20),
    st.sampled_from(RL05),
    st.sampled_from([("hinge",), ("ball", "slide"), KINDS]),
)


@settings(max_examples=40)
@given(*CASES)
def test_the_bound_holds(seed, bodies, power, measure, kinds):
    check_bound(seed, bodies, power, measure, kinds)


@pytest.mark.slow
@settings(max_examples=1000)
@given(*CASES)
def test_the_bound_holds_widely(seed, bodies, power, measure, kinds):
    check_bound(seed, bodies, power, measure, kinds)


def check_bound(seed, bodies, power, measure, kinds):
    """Refine to 2^-power, then compare with all accelerations."""
    m = movable(seed, bodies, kinds)
    rng = np.random.default_rng(seed)
    tolerance, weights = 2.0**-power, rng.uniform(0.1, 10, m.nv)
    s = solver(
        m,
        measure,
        tolerance,
        q=random_q(m, seed, 0.5),
        forces=random_forces(rng, bodies),
        weights=weights,
        gravity=GRAVITY * (seed % 2),
        rigid=False,
    )
    bound = s.refine()
    found = s.accelerations.copy()
    exact = s.tree.down()
    error, scale = actual_error(s, measure, exact, found)
    slack = 1e-9 * joint_norms(s, exact).max()
    assert error <= tolerance * scale + slack
    assert error <= bound * scale + slack
    assert bound <= tolerance or error == 0
    computed = np.zeros(m.nv, bool)
    for g in s.active_groups:
        d, n = s.tree.model.groups[g, [DOF, DOFS]]
        computed[d : d + n] = True
    assert not found[~computed].any()
    np.testing.assert_array_equal(found[computed], exact[computed])


@pytest.mark.parametrize("measure", RL05)
@pytest.mark.parametrize("power", [3, 20])
def test_the_bound_holds_near_equilibrium(measure, power):
    """Springs and weight nearly cancel: where squares would have lost all digits."""
    m = random_mechanism(3, bodies=40, kinds=("hinge", "ball"), stiffness=500.0)
    q = pliant.equilibrium(m, gravity=GRAVITY).q
    q = kinematics.move(m, q, 1e-7 * np.random.default_rng(0).normal(size=m.nv))
    s = solver(m, measure, 2.0**-power, q=q, rigid=False)
    s.refine()
    found = s.accelerations.copy()
    exact = s.tree.down()
    free = solver(m, gravity=np.zeros(3), q=q)
    free.refine()
    error, scale = actual_error(s, measure, exact, found)
    assert error <= 2.0**-power * scale + 1e-12 * np.abs(free.accelerations).max()


@settings(max_examples=60)
@given(
    st.integers(0, 100_000),
    st.integers(2, 40),
    st.integers(0, 10),
    st.sampled_from([("hinge",), ("slide", "hinge"), KINDS]),
)
def test_world_displacements_are_bounded(seed, bodies, power, kinds):
    m = movable(seed, bodies, kinds)
    rng = np.random.default_rng(seed)
    scale = 1e-8  # small steps: displacements are linear in accelerations
    exact = solver(m, "world", 1.0, q=random_q(m, seed, 0.5), forces=random_forces(rng, bodies))
    exact.begin()
    full = exact.tree.down().copy()
    tolerance = m.radius * np.abs(full).max() * 2.0**-power
    s = solver(
        m, "world", tolerance, q=exact.q.copy(), forces=random_forces(np.random.default_rng(seed), bodies)
    )
    bound = s.refine()
    assert bound <= tolerance or len(s.active_groups) == len(s.tree.model.groups)
    here = kinematics.move(m, s.q, scale * s.accelerations)
    there = kinematics.move(m, s.q, scale * full)
    origin = [kinematics.link_poses(m, q)[m.links.body_link][:, :3, 3] for q in (here, there)]
    apart = np.sqrt(((origin[0] - origin[1]) ** 2).sum(axis=1)).max() / scale
    assert apart <= bound * (1 + 1e-6) + 1e-6 * np.abs(full).max()


@settings(max_examples=20)
@given(st.integers(0, 100_000), st.integers(2, 40), st.sampled_from(sorted(MEASURES)), st.integers(1, 8))
def test_lazy_updates_leave_nothing_behind(seed, bodies, measure, power):
    """After adaptive steps and changes of wrenches, everything is as if assembled afresh."""
    m = movable(seed, bodies)
    rng = np.random.default_rng(seed)
    s = solver(m, measure, 2.0**-power, q=random_q(m, seed, 0.5))
    for _ in range(4):
        s.set_loads(rows(s, random_forces(rng, bodies)))
        assert s.step(3, 1e-6) == 3
    s.set_loads(rows(s, random_forces(rng, bodies)))
    s.begin()
    lazy = s.tree.down().copy()
    poses = [s.tree.body_pose(b) for b in range(bodies)]
    s.moved()
    s.begin()
    fresh = s.tree.down()
    np.testing.assert_array_equal(lazy, fresh)
    np.testing.assert_allclose(poses, kinematics.link_poses(m, s.q)[m.links.body_link], atol=1e-10)


def test_falls_back_and_comes_back():
    m = pliant.gallery.molecule(3000).with_stiffness("*", 0.0, 0.0)
    s = solver(m, tolerance=2.0**-13, gravity=np.zeros(3))
    one = [(m.body_count - 1, np.array([0, 0, 1e-3, 0, 0, 0]))]
    s.set_loads(rows(s, one))
    assert s.step(5, 1e-6) == 5
    assert s.fallbacks == 0
    assert len(s.active_groups) < 100
    rng = np.random.default_rng(0)
    s.set_loads(rows(s, [(b, rng.normal(size=6)) for b in range(0, m.body_count, 3)]))
    assert s.step(10, 1e-12) == 10
    assert s.fallbacks == 10
    assert len(s.active_groups) == 3000
    s.set_loads(rows(s, one))
    assert s.step(1000, 1e-9) == 1000
    assert s.current
    assert s.fallbacks < 900
    assert len(s.active_groups) < 100
