from itertools import product
from math import pi

import numpy as np
import pytest
from hypothesis import given

from pliant.spatial import (
    hat,
    so3_exp,
    so3_log,
    so3_right_jacobian,
    so3_right_jacobian_inverse,
    vee,
)

from . import reference
from .strategies import (
    assert_close,
    assert_same_rotation,
    long_rotation_vectors,
    relaxed,
    rotation_vectors,
    vectors,
)

AXES = [np.array(axis) / np.linalg.norm(axis) for axis in [(0, 0, 1), (-1, 0, 0), (1, -2, 3), (-5, 4, 1e-3)]]
SMALL = [1e-300, 1e-160, 1e-20, 1e-8, 1e-4, 0.01, 0.3]
MIDDLE = [1.0, 1.5, 2.0, 2.2, 3.0]
HALF_TURN = [pi - 1e-3, pi - 1e-9, pi - 1e-15, pi]
LONG = [3.2, 4.7, 6.2, 7.0, 12.0, 20.0]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", SMALL + MIDDLE + HALF_TURN + LONG)
def test_exp_against_50_digits(angle, axis):
    r = angle * axis
    exact = reference.exp(r)
    # The rounding of θ alone turns the result by θ times half a unit in the last place.
    assert reference.error(so3_exp(r), exact)[0] <= 5e-16 * (1.0 + angle)
    if angle <= 1.0:
        difference, size = reference.error(vee(so3_exp(r)), reference.skew_part(exact))
        assert difference <= 1e-15 * size


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", SMALL + MIDDLE + HALF_TURN[:-1])
def test_log_of_the_exact_rotation(angle, axis):
    r = angle * axis
    # Rounding the exact matrix to float64 alone moves its logarithm by some 1e-16.
    assert_same_rotation(so3_log(reference.rounded(reference.exp(r))), r, 1.5e-15)


@pytest.mark.parametrize("signs", list(product([-1, 1], repeat=3)))
@pytest.mark.parametrize(
    "sides", [(1, 2, 2, 3), (2, 3, 6, 7), (4, 4, 7, 9), (6, 10, 15, 19), (0, 3, 4, 5), (1, 0, 0, 1)]
)
def test_log_of_exact_half_turns(sides, signs):
    axis = np.array(sides[:3]) * signs / sides[3]
    axis *= np.sign(axis[np.flatnonzero(axis)[0]])
    R = 2.0 * np.outer(axis, axis) - np.eye(3)
    assert_close(so3_log(R), pi * axis, 5e-16)


def test_log_of_the_identity_is_zero():
    assert np.array_equal(so3_log(np.eye(3)), np.zeros(3))
    assert np.array_equal(so3_exp(np.zeros(3)), np.eye(3))


@relaxed
@given(rotation_vectors)
def test_log_inverts_exp(r):
    logarithm = so3_log(so3_exp(r))
    assert_same_rotation(logarithm, r, 2e-15)
    assert np.linalg.norm(logarithm) <= pi * (1.0 + 4e-16)


@relaxed
@given(long_rotation_vectors)
def test_exp_is_a_rotation_and_log_is_the_short_way(r):
    R = so3_exp(r)
    assert_close(R.T @ R, np.eye(3), 2e-15)
    assert abs(np.linalg.det(R) - 1.0) < 2e-15
    short = so3_log(R)
    assert np.linalg.norm(short) <= pi * (1.0 + 4e-16)
    assert_close(so3_exp(short), R, 3e-15)


@relaxed
@given(long_rotation_vectors)
def test_exp_of_the_opposite_is_the_transpose(r):
    assert np.array_equal(so3_exp(-r), so3_exp(r).T)


@relaxed
@given(vectors, vectors)
def test_hat_is_the_cross_product(u, v):
    assert_close(hat(u) @ v, np.cross(u, v), 1e-15, np.linalg.norm(u) * np.linalg.norm(v))
    assert np.array_equal(vee(hat(u)), u)
    assert np.array_equal(hat(u).T, -hat(u))


def test_vee_takes_the_skew_part():
    assert np.array_equal(
        vee(hat([1.0, 2.0, 3.0]) + np.diag([4.0, 5.0, 6.0]) + np.ones((3, 3))), [1.0, 2.0, 3.0]
    )


@pytest.mark.parametrize("angle", [0.0, *SMALL, *MIDDLE, *HALF_TURN, 3.2, 4.7, 6.2])
def test_right_jacobian_against_its_definition(angle):
    r = angle * AXES[2]
    exact = reference.right_jacobian(r)
    assert reference.error(so3_right_jacobian(r), exact)[0] <= 1e-15 * (1.0 + angle)
    difference, size = reference.error(so3_right_jacobian_inverse(r), reference.inverse(exact))
    # Towards a full turn the Jacobian becomes singular: its inverse grows, and with it the rounding of θ.
    assert difference <= 1e-15 * size**2


@relaxed
@given(long_rotation_vectors)
def test_left_jacobian_is_the_transpose_and_the_adjoint(r):
    J = so3_right_jacobian(r)
    assert np.array_equal(so3_right_jacobian(-r), J.T)
    assert_close(so3_exp(r) @ J, J.T, 1e-14)
    assert_close(J @ r, r, 1e-14)


@relaxed
@given(rotation_vectors)
def test_right_jacobian_inverse_is_the_inverse(r):
    assert_close(so3_right_jacobian(r) @ so3_right_jacobian_inverse(r), np.eye(3), 3e-15)
