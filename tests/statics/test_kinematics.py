"""Poses, Jacobians, mass matrix and loop rows against Pinocchio and against definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from oracles import dense
from oracles.pinocchio_model import PinocchioOracle
from oracles.random_mechanisms import KINDS, random_mechanism, random_q


@given(seed=st.integers(0, 10**6), bodies=st.integers(1, 9), reference=st.booleans())
def test_trees_equal_pinocchio(seed, bodies, reference):
    m = random_mechanism(seed, bodies, reference=reference)
    oracle = PinocchioOracle(m)
    c = pliant.Configuration(m, random_q(m, seed))
    assert np.abs(c.poses - oracle.poses(c.q)).max() < 1e-10
    for body in m.body_names:
        assert np.abs(c.jacobian(body) - oracle.jacobian(c.q, body)).max(initial=0) < 1e-10
    if m.nv:
        scale = max(1.0, np.abs(oracle.mass_matrix(c.q)).max())
        assert np.abs(c.mass_matrix() - oracle.mass_matrix(c.q)).max() < 1e-10 * scale


@pytest.mark.parametrize("kind", KINDS)
def test_each_joint_type_equals_pinocchio(kind):
    for seed in range(5):
        m = random_mechanism(seed, 4, kinds=(kind,), reference=True)
        oracle = PinocchioOracle(m)
        c = pliant.Configuration(m, random_q(m, seed))
        assert np.abs(c.poses - oracle.poses(c.q)).max() < 1e-10
        if m.nv:
            assert np.abs(c.mass_matrix() - oracle.mass_matrix(c.q)).max() < 1e-10 * max(
                1, np.abs(c.mass_matrix()).max()
            )


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 3), reference=st.booleans())
def test_poses_and_loops_by_definition(seed, loops, reference):
    m = random_mechanism(seed, 5, loops, reference=reference)
    assert np.abs(pliant.Configuration(m).poses - m.reference_poses).max() < 1e-12
    assert np.abs(pliant.Configuration(m).loop_residual).max(initial=0) < 1e-12
    c = pliant.Configuration(m, random_q(m, seed, 0.4))
    assert np.abs(c.poses - dense.body_poses(m, c.q)).max() < 1e-11
    assert np.abs(c.loop_residual - dense.loop_gaps(m, c.q)).max(initial=0) < 1e-9


@given(seed=st.integers(0, 10**6))
def test_loop_jacobian_is_the_derivative(seed):
    m = random_mechanism(seed, 4, 2)
    q = m.reference
    rows = pliant.Configuration(m, q).loop_jacobian

    def gaps(p):
        return pliant.Configuration(m, p).loop_residual.ravel()

    assert np.abs(dense.gradient(gaps, m, q, 1e-3).T - rows).max() < 1e-9 * max(1, np.abs(rows).max())


@given(seed=st.integers(0, 10**6))
def test_jacobian_is_the_derivative_of_poses(seed):
    m = random_mechanism(seed, 5)
    q = random_q(m, seed)
    c = pliant.Configuration(m, q)
    body = m.body_names[-1]
    inverse = np.linalg.inv(c.pose(body))

    def twist(p):
        return pliant.spatial.se3_log(inverse @ pliant.Configuration(m, p).pose(body))

    if m.nv:
        assert np.abs(dense.gradient(twist, m, q, 1e-3).T - c.jacobian(body)).max() < 1e-9
    turned = np.kron(np.eye(2), c.pose(body)[:3, :3])
    assert np.allclose(turned @ c.jacobian(body), c.jacobian(body, frame="world"), atol=1e-12)


def test_mass_matrix_by_definition_with_loops():
    m = random_mechanism(3, 5, 2)
    c = pliant.Configuration(m, random_q(m, 1, 0.5))
    assert np.abs(c.mass_matrix() - dense.mass_matrix(m, c.q)).max() < 1e-7 * np.abs(c.mass_matrix()).max()


def test_bad_arguments():
    m = random_mechanism(0, 3)
    with pytest.raises(pliant.errors.UnknownNameError, match="no body 'nobody'"):
        pliant.Configuration(m).jacobian("nobody")
    with pytest.raises(pliant.errors.InputError, match="frame"):
        pliant.Configuration(m).jacobian("b0", frame="moon")
    with pytest.raises(pliant.errors.InputError, match="finite"):
        pliant.Configuration(m, np.full(m.nq, np.nan))
    with pytest.raises(pliant.errors.InputError, match="expected"):
        pliant.Configuration(m, [0.0] * (m.nq + 1))
