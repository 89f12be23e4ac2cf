from math import pi

import numpy as np
import pytest
from hypothesis import given
from scipy.linalg import expm

from pliant.spatial import (
    ad,
    adjoint,
    pose,
    quat_exp,
    se3_exp,
    se3_inverse,
    se3_log,
    se3_right_jacobian,
    se3_right_jacobian_inverse,
    so3_exp,
    transform_points,
)

from . import reference
from .strategies import (
    assert_close,
    assert_same_rotation,
    long_rotation_vectors,
    long_twists,
    relaxed,
    twists,
    vectors,
)

ANGLES = [0.0, 1e-300, 1e-160, 1e-20, 1e-8, 1e-4, 0.01, 0.3, 1.0, 2.0, 3.0, pi - 1e-3, pi - 1e-9, pi - 1e-15]
LINEAR = np.array([0.7, -1.3, 0.4])
AXIS = np.array([2.0, -1.0, 2.0]) / 3.0


def twist(angle):
    return np.concatenate([LINEAR, angle * AXIS])


@pytest.mark.parametrize("angle", [*ANGLES, pi, 4.0, 6.2, 2 * pi, 12.0])
def test_exp_against_50_digits(angle):
    xi = twist(angle)
    assert reference.error(se3_exp(xi), reference.exp(xi))[0] <= 1e-15 * (1.0 + angle)


@pytest.mark.parametrize("angle", ANGLES)
def test_log_of_the_exact_displacement(angle):
    xi = twist(angle)
    logarithm = se3_log(reference.rounded(reference.exp(xi)))
    assert_close(logarithm[3:], xi[3:], 1.5e-15)
    assert_close(logarithm[:3], xi[:3], 2e-15)


def test_log_of_an_exact_half_turn():
    # A screw of half a turn about z through (1, 0): it takes the origin to (2, 0) and moves up by 3.
    T = pose([2.0, 0.0, 3.0], np.diag([-1.0, -1.0, 1.0]))
    assert_close(se3_log(T), [0.0, -pi, 3.0, 0.0, 0.0, pi], 3e-16)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-8, 0.01, 0.3, 1.0, 2.0, pi - 1e-9, pi, 4.0, 6.0])
def test_right_jacobian_against_its_definition(angle):
    xi = twist(angle)
    exact = reference.right_jacobian(xi)
    difference, size = reference.error(se3_right_jacobian(xi), exact)
    assert difference <= 2e-15 * size
    difference, size = reference.error(se3_right_jacobian_inverse(xi), reference.inverse(exact))
    assert difference <= 2e-15 * size**2


@relaxed
@given(twists)
def test_log_inverts_exp(xi):
    logarithm = se3_log(se3_exp(xi))
    assert_same_rotation(logarithm[3:], xi[3:], 2e-15)
    if logarithm[3:] @ xi[3:] >= 0.0:
        assert_close(logarithm[:3], xi[:3], 1e-14)


@relaxed
@given(long_twists)
def test_exp_inverts_log(xi):
    T = se3_exp(xi)
    assert_close(se3_exp(se3_log(T)), T, 1e-14, 1.0 + np.linalg.norm(xi[:3]))


@relaxed
@given(long_twists)
def test_inverse(xi):
    T = se3_exp(xi)
    size = 1.0 + np.linalg.norm(xi[:3])
    assert_close(se3_inverse(T) @ T, np.eye(4), 3e-15, size)
    assert_close(se3_exp(-xi), se3_inverse(T), 1e-14, size)
    assert_close(adjoint(se3_inverse(T)) @ adjoint(T), np.eye(6), 1e-14, size)


@relaxed
@given(long_twists, long_twists)
def test_adjoint_is_a_homomorphism(a, b):
    A, B = se3_exp(a), se3_exp(b)
    assert_close(
        adjoint(A @ B), adjoint(A) @ adjoint(B), 1e-14, 1.0 + np.linalg.norm(a[:3]) + np.linalg.norm(b[:3])
    )


@relaxed
@given(twists, long_twists)
def test_adjoint_conjugates(xi, b):
    # T exp(ξ) T⁻¹ = exp(Ad(T) ξ); the position holds the product of both lengths.
    T = se3_exp(b)
    size = (1.0 + np.linalg.norm(xi[:3])) * (1.0 + np.linalg.norm(b[:3]))
    assert_close(T @ se3_exp(xi) @ se3_inverse(T), se3_exp(adjoint(T) @ xi), 2e-14, size)


@relaxed
@given(twists)
def test_adjoint_of_exp_is_the_matrix_exponential_of_ad(xi):
    assert_close(adjoint(se3_exp(xi)), expm(ad(xi)), 1e-13, 1.0 + np.linalg.norm(xi[:3]))


@relaxed
@given(twists, twists)
def test_ad_is_the_bracket(a, b):
    scale = 1.0 + np.linalg.norm(a) * np.linalg.norm(b)
    assert_close(ad(a) @ b, -ad(b) @ a, 1e-15, scale)
    assert_close(ad(ad(a) @ b), ad(a) @ ad(b) - ad(b) @ ad(a), 1e-14, scale * 7.0)


@relaxed
@given(twists)
def test_right_jacobian_inverse_is_the_inverse(xi):
    size = 1.0 + np.linalg.norm(xi[:3])
    assert_close(se3_right_jacobian(xi) @ se3_right_jacobian_inverse(xi), np.eye(6), 2e-14, size)


@relaxed
@given(long_twists)
def test_left_jacobian_is_the_adjoint_of_the_right(xi):
    size = 1.0 + np.linalg.norm(xi)
    assert_close(adjoint(se3_exp(xi)) @ se3_right_jacobian(xi), se3_right_jacobian(-xi), 1e-13, size)


@relaxed
@given(vectors, long_rotation_vectors, vectors)
def test_pose_takes_either_orientation(p, r, point):
    T = pose(p, so3_exp(r))
    size = np.linalg.norm(p) + np.linalg.norm(point)
    assert_close(pose(p, 3.0 * quat_exp(r)), T, 2e-15, 1.0 + np.linalg.norm(p))
    assert_close(transform_points(T, point), so3_exp(r) @ point + p, 1e-15, size)
    assert_close(transform_points(se3_inverse(T), transform_points(T, point)), point, 4e-15, size)


def test_pose_defaults():
    assert np.array_equal(pose(), np.eye(4))
    T = pose([1, 2, 3])
    assert np.array_equal(T[:3, 3], [1.0, 2.0, 3.0])
    assert np.array_equal(T[:3, :3], np.eye(3))
