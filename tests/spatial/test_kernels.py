"""The numba kernels against 50 digits and against the numpy functions, which use libm, not polynomials."""

from math import pi

import numpy as np
import pytest
from hypothesis import given

import pliant.spatial as spatial
from pliant.spatial import kernels as kernels

from . import reference
from .strategies import (
    assert_close,
    assert_same_rotation,
    long_rotation_vectors,
    long_twists,
    relaxed,
    rotation_vectors,
    twists,
    vectors,
)


def call(kernel, *arguments, shape):
    """The output of a kernel that was given nothing but NaN to write to."""
    out = np.full(shape, np.nan)
    kernel(*arguments, out)
    return out


def call_pose(kernel, *arguments):
    T = call(kernel, *arguments, shape=(4, 4))
    assert np.array_equal(T[3], [0.0, 0.0, 0.0, 1.0])
    return T


@relaxed
@given(long_rotation_vectors)
def test_exp(r):
    R = call(kernels.so3_exp, r, shape=(3, 3))
    q = call(kernels.quat_exp, r, shape=4)
    assert_close(R, spatial.so3_exp(r), 5e-15)
    assert_close(q, spatial.quat_exp(r), 1e-15)
    # The rotation itself, however small, not only the matrix it is added to.
    assert_close(spatial.vee(R), spatial.vee(spatial.so3_exp(r)), 5e-15, np.linalg.norm(r))
    assert_close(q[1:], spatial.quat_exp(r)[1:], 1e-15, np.linalg.norm(r))


@pytest.mark.parametrize("angle", [1e-300, 1e-8, 0.1, 1.0, 2.0, 3.0, pi - 1e-9, pi, 3.2, 6.0])
def test_exp_and_jacobians_against_50_digits(angle):
    r = angle * np.array([1.0, -2.0, 2.0]) / 3.0
    assert reference.error(call(kernels.so3_exp, r, shape=(3, 3)), reference.exp(r))[0] <= 5e-16 * (
        1.0 + angle
    )
    exact = reference.right_jacobian(r)
    assert reference.error(call(kernels.right_jacobian, r, shape=(3, 3)), exact)[0] <= 1e-15 * (1.0 + angle)
    if angle < 2.0 * pi:
        J = call(kernels.right_jacobian_inverse, r, shape=(3, 3))
        difference, size = reference.error(J, reference.inverse(exact))
        assert difference <= 1e-15 * size**2


@relaxed
@given(rotation_vectors)
def test_log(r):
    R, q = spatial.so3_exp(r), spatial.quat_exp(r)
    assert_close(call(kernels.so3_log, R, shape=3), spatial.so3_log(R), 1e-15)
    assert_close(call(kernels.quat_log, q, shape=3), spatial.quat_log(q), 1e-15)
    assert_close(call(kernels.quat_log, -q, shape=3), spatial.quat_log(q), 1e-15)
    assert_same_rotation(call(kernels.so3_log, R, shape=3), r, 2e-15)


@pytest.mark.parametrize(
    "axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-0.6, 0.8, 0), (0, -0.6, 0.8), (1 / 3, -2 / 3, 2 / 3)]
)
def test_exact_half_turns(axis):
    R = 2.0 * np.outer(axis, axis) - np.eye(3)
    assert_close(call(kernels.so3_log, R, shape=3), spatial.so3_log(R), 3e-16)
    q = np.array([0.0, *axis])
    expected = q * np.sign(q[np.flatnonzero(q)[0]])
    assert_close(call(kernels.quat_log, q, shape=3), pi * expected[1:], 3e-16)
    assert_close(call(kernels.quat_log, -q, shape=3), pi * expected[1:], 3e-16)
    assert_close(call(kernels.quat_from_matrix, R, shape=4), expected, 3e-16)


@relaxed
@given(long_rotation_vectors)
def test_jacobians(r):
    assert_close(call(kernels.right_jacobian, r, shape=(3, 3)), spatial.so3_right_jacobian(r), 5e-15)
    if np.linalg.norm(r) < 5.0:
        expected = spatial.so3_right_jacobian_inverse(r)
        assert_close(call(kernels.right_jacobian_inverse, r, shape=(3, 3)), expected, 5e-15)


@relaxed
@given(long_rotation_vectors, long_rotation_vectors)
def test_quaternions(r, s):
    p, q = spatial.quat_exp(r), spatial.quat_exp(s)
    assert_close(call(kernels.quat_multiply, p, q, shape=4), spatial.quat_multiply(p, q), 5e-16)
    assert_close(call(kernels.quat_to_matrix, q, shape=(3, 3)), spatial.quat_to_matrix(q), 1e-15)
    R = spatial.so3_exp(s)
    assert_close(call(kernels.quat_from_matrix, R, shape=4), spatial.quat_from_matrix(R), 5e-16)
    scaled = -3.7 * q
    kernels.quat_normalize(scaled)
    assert_close(scaled, -q, 5e-16)


@relaxed
@given(long_twists, twists)
def test_poses(xi, eta):
    size = 1.0 + np.linalg.norm(xi[:3])
    A, B = spatial.se3_exp(xi), spatial.se3_exp(eta)
    assert_close(call_pose(kernels.se3_exp, xi), A, 1e-14, size)
    assert_close(call_pose(kernels.se3_inverse, A), spatial.se3_inverse(A), 1e-15, size)
    assert_close(call_pose(kernels.compose, A, B), A @ B, 1e-15, size + np.linalg.norm(eta[:3]))
    assert_close(call(kernels.adjoint, A, shape=(6, 6)), spatial.adjoint(A), 1e-15, size)
    logarithm = call(kernels.se3_log, B, shape=6)
    assert_close(logarithm[:3], spatial.se3_log(B)[:3], 5e-15)
    assert_close(logarithm[3:], spatial.se3_log(B)[3:], 1e-15)


@relaxed
@given(long_twists, twists, twists)
def test_motion_and_force(xi, motion, force):
    T = spatial.se3_exp(xi)
    X = spatial.adjoint(T)
    size = 1.0 + np.linalg.norm(xi[:3])
    moved = call(kernels.motion_to_child, T, motion, shape=6)
    carried = call(kernels.force_to_parent, T, force, shape=6)
    assert_close(
        moved, spatial.adjoint(spatial.se3_inverse(T)) @ motion, 1e-14, size * np.linalg.norm(motion)
    )
    assert_close(carried, np.linalg.solve(X.T, force), 1e-13, size * np.linalg.norm(force))
    # Power does not depend on the frame.
    scale = size * np.linalg.norm(motion) * np.linalg.norm(force)
    assert abs(carried @ motion - force @ moved) <= 1e-14 * scale
    total = motion.copy()
    kernels.force_to_parent_add(T, force, total)
    assert_close(total, motion + carried, 1e-15, np.linalg.norm(motion) + np.linalg.norm(carried))


@relaxed
@given(vectors, vectors)
def test_cross(a, b):
    assert_close(
        call(kernels.cross, a, b, shape=3), np.cross(a, b), 1e-15, np.linalg.norm(a) * np.linalg.norm(b)
    )


def test_output_may_be_an_input():
    rng = np.random.default_rng(3)
    A, B = spatial.se3_exp(rng.normal(size=(2, 6)))
    p, q = spatial.quat_exp(rng.normal(size=(2, 3)))
    a, b = rng.normal(size=(2, 3))
    x = rng.normal(size=6)
    for kernel, arguments in [
        (kernels.compose, (A, B)),
        (kernels.quat_multiply, (p, q)),
        (kernels.cross, (a, b)),
        (kernels.se3_inverse, (A,)),
        (kernels.motion_to_child, (A, x)),
        (kernels.force_to_parent, (A, x)),
    ]:
        for i, argument in enumerate(arguments):
            expected = call(kernel, *arguments, shape=arguments[-1].shape)
            if argument.shape == expected.shape:
                copies = [other.copy() for other in arguments]
                kernel(*copies, copies[i])
                assert np.array_equal(copies[i], expected), (kernel, i)


def test_rotations_may_be_parts_of_poses():
    xi = np.array([0.3, 0.2, 0.1, -0.5, 1.5, 0.7])
    T = np.eye(4)
    kernels.so3_exp(xi[3:], T)
    assert_close(T[:3, :3], spatial.so3_exp(xi[3:]))
    assert np.array_equal(T[3], np.eye(4)[3])
    assert_close(call(kernels.so3_log, T[:3, :3], shape=3), xi[3:])


def test_nan_stays_visible():
    assert np.isnan(call(kernels.so3_exp, np.array([np.nan, 0.0, 0.0]), shape=(3, 3))).any()
    assert np.isnan(call(kernels.se3_log, np.full((4, 4), np.nan), shape=6)).all()
