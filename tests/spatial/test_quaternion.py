from math import pi

import numpy as np
import pytest
from hypothesis import given

from pliant.spatial import (
    quat_conjugate,
    quat_exp,
    quat_from_matrix,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_rotate,
    quat_to_matrix,
    so3_exp,
    so3_log,
)

from .strategies import (
    assert_close,
    assert_same_rotation,
    long_rotation_vectors,
    relaxed,
    rotation_vectors,
    vectors,
)


def test_basis_products():
    one, i, j, k = np.eye(4)
    for a, b, product in [(i, j, k), (j, k, i), (k, i, j), (j, i, -k), (i, i, -one), (one, k, k)]:
        assert np.array_equal(quat_multiply(a, b), product)


def test_quarter_turn_about_z_takes_x_to_y():
    q = quat_exp([0.0, 0.0, pi / 2])
    assert_close(q, [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], 3e-16)
    assert_close(quat_rotate(q, [1.0, 0.0, 0.0]), [0.0, 1.0, 0.0], 3e-16)


@relaxed
@given(long_rotation_vectors)
def test_exp_gives_the_same_rotation_as_so3_exp(r):
    q = quat_exp(r)
    assert abs(q @ q - 1.0) < 1e-15
    assert_close(quat_to_matrix(q), so3_exp(r), 2e-15)


@relaxed
@given(rotation_vectors)
def test_log_inverts_exp_for_both_signs(r):
    q = quat_exp(r)
    assert_same_rotation(quat_log(q), r, 1.5e-15)
    assert np.array_equal(quat_log(q), quat_log(-q))
    # Powers of two scale exactly: the length must not matter.
    assert_close(quat_log(8.0 * q), quat_log(q), 4e-16)


@pytest.mark.parametrize(
    "q", [(0, 1, 0, 0), (0, 0, -1, 0), (0, 0, 0, -1), (0, -0.6, 0.8, 0), (0, 0, -0.6, -0.8)]
)
def test_log_of_exact_half_turns_has_one_sign(q):
    q = np.array(q, dtype=float)
    axis = q[1:] * np.sign(q[np.flatnonzero(q)[0]])
    assert_close(quat_log(q), pi * axis, 3e-16)
    assert_close(quat_log(-q), pi * axis, 3e-16)
    assert_close(quat_from_matrix(quat_to_matrix(q))[1:], axis, 4e-16)


@relaxed
@given(long_rotation_vectors)
def test_matrix_round_trip(r):
    q = quat_exp(r)
    back = quat_from_matrix(quat_to_matrix(q))
    assert back[0] >= 0.0
    assert_close(back * np.sign(back @ q), q, 1.5e-15)
    assert_same_rotation(quat_log(back), so3_log(quat_to_matrix(q)), 1.5e-15)


@relaxed
@given(rotation_vectors)
def test_matrix_round_trip_keeps_small_rotations_relative(r):
    assert_same_rotation(quat_log(quat_from_matrix(so3_exp(r))), r, 2e-15)


@relaxed
@given(long_rotation_vectors, long_rotation_vectors, long_rotation_vectors)
def test_group_laws(a, b, c):
    p, q, r = quat_exp(a), quat_exp(b), quat_exp(c)
    assert_close(quat_multiply(quat_multiply(p, q), r), quat_multiply(p, quat_multiply(q, r)), 2e-15)
    assert_close(quat_multiply(q, quat_conjugate(q)), [1.0, 0.0, 0.0, 0.0], 1e-15)
    assert_close(quat_to_matrix(quat_multiply(p, q)), quat_to_matrix(p) @ quat_to_matrix(q), 3e-15)


@relaxed
@given(long_rotation_vectors, vectors)
def test_rotate_is_the_matrix_product(r, v):
    q = quat_exp(r)
    assert_close(quat_rotate(q, v), quat_to_matrix(q) @ v, 2e-15, np.linalg.norm(v))


@relaxed
@given(long_rotation_vectors, vectors)
def test_normalize_keeps_the_sign_and_removes_the_length(r, v):
    q = quat_exp(r)
    assert_close(quat_normalize(-np.linalg.norm(v) * q), -q, 1e-15)
