"""The divide-and-conquer algorithm against a dense solve, and total accelerations against plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles.assembly_tree import GRAVITY, solved, spring_torques, sums, torques, totals
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.engines.quasistatic import _passes as passes
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia
from pliant.statics.load_kernels import LINK


def movable(seed, bodies, kinds=KINDS, **options):
    m = random_mechanism(seed, bodies=bodies, kinds=kinds, **options)
    return m if m.nv else random_mechanism(seed, bodies=bodies, kinds=("hinge",), **options)


@settings(max_examples=200)
@given(st.integers(0, 100_000), st.integers(1, 14), st.booleans())
def test_accelerations_equal_a_dense_solve(seed, bodies, sprung):
    m = movable(seed, bodies, stiffness=50.0 if sprung else 0.0)
    rng = np.random.default_rng(seed)
    q = random_q(m, seed, 0.5)
    forces = {int(b): rng.normal(size=6) for b in rng.integers(0, bodies, size=2)}
    tree = solved(m, q, forces)
    right = torques(m, q, forces, GRAVITY, springs=False) + tree.arrays.joints.torque
    expected = np.linalg.solve(Inertia(m, q).dense(), right)
    np.testing.assert_allclose(tree.arrays.joints.qdd, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@settings(max_examples=40)
@given(st.integers(0, 100_000), st.integers(1, 8))
def test_springs_pull_as_their_energy_says(seed, bodies):
    m = movable(seed, bodies, reference=True)
    q = random_q(m, seed, 0.3)
    tree = solved(m, q, {})
    expected = spring_torques(m, q)
    np.testing.assert_allclose(
        tree.arrays.joints.torque, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


@settings(max_examples=60)
@given(st.integers(0, 100_000), st.integers(1, 12), st.floats(-2, 6))
def test_resistance_adds_to_the_diagonal(seed, bodies, size):
    m = movable(seed, bodies)
    rng = np.random.default_rng(seed)
    q = random_q(m, seed, 0.5)
    resist = 10.0**size * rng.uniform(0, 1, m.nv) * (rng.uniform(size=m.nv) < 0.7)
    forces = {int(b): rng.normal(size=6) for b in rng.integers(0, bodies, size=2)}
    tree = solved(m, q, forces, resist=resist)
    mass = Inertia(m, q).dense() - np.diag(m.armature) + np.diag(resist)
    right = torques(m, q, forces, GRAVITY, springs=False) + tree.arrays.joints.torque
    expected = np.linalg.solve(mass, right)
    np.testing.assert_allclose(tree.arrays.joints.qdd, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@settings(max_examples=60)
@given(st.integers(0, 100_000), st.integers(1, 40), st.sampled_from([("hinge",), ("ball", "slide"), KINDS]))
def test_totals_equal_the_sum_over_joints(seed, bodies, kinds):
    m = movable(seed, bodies, kinds)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 10, m.nv)
    tree = solved(m, random_q(m, seed, 0.5), {0: rng.normal(size=6)}, weights=weights)
    found, expected = totals(tree), sums(tree, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * expected[-1] * 1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_totals_at_equilibrium(seed):
    """Weight and springs balance: accelerations are differences of large terms, total accelerations stay right."""
    m = random_mechanism(seed, bodies=30, kinds=("hinge", "ball", "universal"), stiffness=500.0)
    q = pliant.equilibrium(m, gravity=GRAVITY).q
    tree = solved(m, q, {})
    free = solved(m, q, {}, gravity=np.zeros(3))
    scale = np.abs(free.arrays.joints.qdd).max()
    found, expected = totals(tree), sums(tree, np.ones(m.nv))
    assert (found >= 0).all()
    assert np.abs(tree.arrays.joints.qdd).max() < 1e-5 * scale
    assert np.abs(np.sqrt(found) - np.sqrt(expected)).max() < 1e-10 * scale


@pytest.mark.parametrize("seed", range(8))
def test_poses(seed):
    m = movable(seed, 15)
    q = random_q(m, seed)
    tree = solved(m, q, {})
    expected = kinematics.link_poses(m, q)[m.links.body_link]
    np.testing.assert_allclose(tree.body_poses(), expected, atol=1e-11)
    for body in range(m.body_count):
        np.testing.assert_allclose(tree.body_pose(body), expected[body], atol=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_wrenches_keep_their_direction_in_the_world(seed):
    m = movable(seed, 10)
    q = random_q(m, seed)
    rng = np.random.default_rng(seed)
    forces = {b: rng.normal(size=6) for b in range(10)}
    tree = solved(m, q, forces)
    wrenches = tree.arrays.leaves.wrenches
    expected = wrenches.copy()
    rows = []
    for body, wrench in forces.items():
        g = tree.model.group[body]
        if g >= 0:
            point = tree.model.local[body][:3, 3]
            rows.append([*wrench, *point, *np.zeros(6), 1.0, tree.model.tree.first_leaf[g]])
    rows = np.array(sorted(rows, key=lambda row: row[LINK]), dtype=float)
    row = 0
    while row < len(rows):
        row = passes.leaf_wrench(rows, row, tree.arrays, wrenches[int(rows[row, LINK])])
    np.testing.assert_allclose(wrenches, expected, atol=1e-12)


def test_star_with_many_arms():
    """The hub is split into shares of its mass; nobody notices."""
    b = pliant.Builder("star")
    b.body("hub", mass=1.0, inertia=(0.1, 0.2, 0.25))
    b.free("base", "world", "hub")
    rng = np.random.default_rng(0)
    for i in range(25):
        b.body(f"arm{i}", mass=0.2, inertia=(0.01, 0.02, 0.015), position=rng.normal(size=3))
        b.ball(f"j{i}", "hub", f"arm{i}", anchor=rng.normal(size=3), stiffness=3.0)
    m = b.build()
    q = random_q(m, 3, 0.3)
    forces = {5: rng.normal(size=6), 0: rng.normal(size=6)}
    tree = solved(m, q, forces)
    assert tree.model.tree.shares.max() > 5
    expected = np.linalg.solve(
        Inertia(m, q).dense(), torques(m, q, forces, GRAVITY, False) + tree.arrays.joints.torque
    )
    np.testing.assert_allclose(tree.arrays.joints.qdd, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(totals(tree), sums(tree, np.ones(m.nv)), rtol=1e-10, atol=1e-20)


def test_several_trees_on_the_world():
    b = pliant.Builder("forest")
    rng = np.random.default_rng(1)
    for i in range(7):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.2, 0.25), com=rng.normal(size=3))
        b.hinge(f"j{i}", "world", f"b{i}", anchor=(0, 0, 0), axis=(1, 0, 0))
    m = b.build()
    tree = solved(m, m.reference, {})
    expected = np.linalg.solve(Inertia(m, m.reference).dense(), torques(m, m.reference, {}, GRAVITY, False))
    np.testing.assert_allclose(tree.arrays.joints.qdd, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(totals(tree)[-1], (expected**2).sum())
