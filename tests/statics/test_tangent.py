"""The factored derivative of static forces against differences and dense algebra."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles import dense
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.mechanism import kinematics
from pliant.statics.loads import collect_loads, spring_coordinates
from pliant.statics.tangent import Tangent

GRAVITY = (0.3, -0.2, -9.81)


def random_loads(m, seed, torques=True, gravity=GRAVITY):
    rng = np.random.default_rng(seed)
    first, last = m.body_names[0], m.body_names[-1]
    wrenches: dict[str, Any] = {last: {"force": 20 * rng.normal(size=3), "point": rng.normal(size=3)}}
    if torques:
        wrenches[last]["torque"] = 20 * rng.normal(size=3)
        wrenches[first] = {"force": rng.normal(size=3), "torque": rng.normal(size=3), "frame": "body"}
    return collect_loads(m, wrenches, gravity)


def difference_stiffness(m, q, loads, multipliers=None, h=1e-4):
    return dense.gradient(lambda p: Tangent(m, p, loads, multipliers).residual, m, q, h).T


def inverse(t):
    return t.solve(np.eye(t.m.nv), refine=False)[0].T


@given(seed=st.integers(0, 10**6), bodies=st.integers(1, 8), reference=st.booleans())
def test_derivative_of_forces_on_trees(seed, bodies, reference):
    m = random_mechanism(seed, bodies, kinds=KINDS[:8], reference=reference)
    q = random_q(m, seed, 0.5)
    loads = random_loads(m, seed)
    t = Tangent(m, q, loads)
    t.factor()
    stiffness = difference_stiffness(m, q, loads)
    # The product loses digits with the condition of the stiffness, which is random here.
    allowed = 1e-9 * max(1.0, np.linalg.cond(stiffness))
    assert np.abs(inverse(t) @ stiffness - np.eye(m.nv)).max() < allowed


@pytest.mark.parametrize("kind", KINDS[:8])
def test_derivative_for_each_joint_type(kind):
    for seed in range(4):
        m = random_mechanism(seed, 3, kinds=(kind,), reference=True, stiffness=200.0)
        q = random_q(m, seed, 0.7)
        loads = random_loads(m, seed)
        t = Tangent(m, q, loads)
        t.factor()
        stiffness = difference_stiffness(m, q, loads)
        assert np.abs(inverse(t) @ stiffness - np.eye(m.nv)).max() < 1e-9 * np.linalg.cond(stiffness)


@given(seed=st.integers(0, 10**6))
def test_forces_are_the_gradient_of_energy(seed):
    m = random_mechanism(seed, 4, 1, reference=True)
    q = random_q(m, seed, 0.2)  # balls stay well below half a turn from rest, where their torque jumps
    assume(np.abs(spring_coordinates(m, q, m.rest)[m.dof_kind == 2]).max(initial=0) < 1.4)
    rng = np.random.default_rng(seed)
    force = 20 * rng.normal(size=3)
    t = Tangent(m, q, collect_loads(m, {"b3": force}, GRAVITY))
    gradient = dense.gradient(lambda p: dense.energy(m, p, {"b3": force}, GRAVITY), m, q, 1e-3)
    assert np.abs(t.residual - gradient).max() < 1e-7 * max(1.0, np.abs(gradient).max())


@given(seed=st.integers(0, 10**6))
def test_negative_directions_are_counted(seed):
    """Forces large enough to make some directions unstable; scalar joints, whose stiffness is symmetric anywhere."""
    m = random_mechanism(
        seed, 6, kinds=("hinge", "slide", "universal", "cylindrical", "planar", "stack"), stiffness=20.0
    )
    q = random_q(m, seed, 0.5)
    loads = random_loads(m, seed, torques=False, gravity=(0, 0, -30.0))
    t = Tangent(m, q, loads)
    stiffness = difference_stiffness(m, q, loads)
    assert np.abs(stiffness - stiffness.T).max() < 1e-6 * np.abs(stiffness).max()
    values = np.linalg.eigvalsh((stiffness + stiffness.T) / 2)
    if np.abs(values).min() > 1e-4:
        assert t.factor() == (values < 0).sum()


@given(seed=st.integers(0, 10**6), loops=st.integers(1, 3), soft=st.booleans())
def test_bordered_system_against_dense_algebra(seed, loops, soft):
    """Motion under forces with loops, at the reference: minimise energy on the null space of the rows."""
    m = random_mechanism(seed, 5, loops)
    if soft:  # take the springs of the loop joints away
        names = [m.joint_names[j] for j in m.topology.chords if m.joint_dofs(j).stop > m.joint_dofs(j).start]
        if names:
            m = m.with_stiffness(names, 0.0)
    loads = collect_loads(m, {}, None)
    t = Tangent(m, m.reference.copy(), loads)
    t.factor()
    stiffness = difference_stiffness(m, m.reference, loads)
    rows = kinematics.constraint_rows(m, t.poses)
    _u, s, vt = np.linalg.svd(rows)
    rank = int((s > 1e-9 * s[0]).sum())
    free = vt[rank:].T
    reduced = free.T @ stiffness @ free
    values = np.linalg.eigvalsh((reduced + reduced.T) / 2) if free.shape[1] else np.ones(1)
    assume(values.min() >= 1e-3)  # without the loop joints' springs some motion may be free: no unique answer
    force = np.random.default_rng(seed).normal(size=m.nv)
    expected = free @ np.linalg.solve(reduced, free.T @ force) if free.shape[1] else np.zeros(m.nv)
    step, multipliers = t.solve(force, exact=True)
    assert np.abs(step - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())
    assert np.abs(stiffness @ step + rows.T @ multipliers - force).max() < 1e-7 * max(
        1, np.abs(multipliers).max()
    )


@given(seed=st.integers(0, 10**6))
def test_loop_forces_stiffen_as_they_should(seed):
    """With loop forces the derivative is exact for motions that keep loops closed."""
    m = random_mechanism(seed, 4, 1, kinds=("hinge", "universal", "bushing", "ball", "slide"))
    loads = collect_loads(m, {}, None)
    multipliers = 30 * np.random.default_rng(seed).normal(size=6)
    t = Tangent(m, m.reference.copy(), loads, multipliers)
    exact = difference_stiffness(m, m.reference, loads, multipliers)
    _u, s, vt = np.linalg.svd(kinematics.constraint_rows(m, t.poses))
    free = vt[int((s > 1e-9 * s[0]).sum()) :].T
    t.factor()
    assume(abs(np.linalg.det(exact)) >= 1e-3 and np.linalg.cond(exact) <= 1e6)
    added = t._solver.regularization
    ours = np.linalg.inv(free.T @ inverse(t) @ free) - (
        0 if added is None else free.T @ np.diag(added) @ free
    )
    balls = m.ball_primitives
    gap = ours - free.T @ exact @ free
    if not len(balls):
        assert np.abs(gap).max(initial=0) < 1e-6 * np.abs(exact).max()
    else:  # off balance, a ball's derivative has a skew part: compare the quadratic form
        assert np.abs(gap + gap.T).max(initial=0) < 1e-6 * np.abs(exact).max()


def test_tendon_adds_its_block():
    import pliant

    b = pliant.Builder("two")
    b.body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.body("c", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0))
    b.hinge("p", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    b.hinge("r", "a", "c", anchor=(1, 0, 0), axis=(0, 1, 0))
    b.tendon("t", {"p": 1.0, "r": 2.0}, stiffness=5.0, damping=0.5)
    m = b.build()
    assert np.allclose(m.stiffness_matrix, [[8, 10], [10, 20]])
    assert np.allclose(m.damping_matrix, [[0.5, 1], [1, 2]])
    t = Tangent(m, m.reference.copy(), collect_loads(m, {}, None))
    t.factor()
    step, _ = t.solve(np.array([1.0, 2.0]))
    assert np.allclose(step, np.linalg.solve(m.stiffness_matrix, [1, 2]), rtol=1e-12)


def test_full_stiffness_matrix_of_a_bushing():
    import pliant

    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    matrix = root @ root.T + np.eye(6)
    b = pliant.Builder("bushing")
    b.body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.bushing("s", "world", "a", anchor=(0.1, 0.2, 0.3), stiffness=matrix)
    m = b.build()
    assert np.allclose(m.stiffness_matrix, matrix, atol=1e-12)
    q = kinematics.move(m, m.reference.copy(), 0.3 * rng.normal(size=6))
    loads = collect_loads(m, {"a": rng.normal(size=6)}, GRAVITY)
    t = Tangent(m, q, loads)
    t.factor()
    step, _ = t.solve(np.eye(6))
    assert np.abs(step.T @ difference_stiffness(m, q, loads) - np.eye(6)).max() < 1e-8
