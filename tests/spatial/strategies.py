"""Hypothesis strategies for rotations and twists that dwell where formulas break: zero, tiny, half turns."""

from math import cos, pi, sin, sqrt

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

# Compilation of a kernel falls into the first example.
relaxed = settings(deadline=None)

tiny_angles = st.floats(-300.0, -1.0).map(lambda exponent: 10.0**exponent)
near_half_turn = st.floats(-16.0, -1.0).map(lambda exponent: pi - 10.0**exponent)
angles = st.one_of(st.just(0.0), tiny_angles, st.floats(0.1, 3.05), near_half_turn, st.just(pi))
long_angles = st.one_of(angles, st.floats(pi, 20.0))


def _direction(height, azimuth):
    radius = sqrt(1.0 - height * height)
    return np.array([radius * cos(azimuth), radius * sin(azimuth), height])


axes = st.one_of(
    st.sampled_from([sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]),
    st.builds(_direction, st.floats(-1.0, 1.0), st.floats(0.0, 2.0 * pi)),
)


def _scaled(angle, axis):
    return angle * axis


rotation_vectors = st.builds(_scaled, angles, axes)
long_rotation_vectors = st.builds(_scaled, long_angles, axes)
vectors = st.builds(_scaled, st.floats(-3.0, 3.0).map(lambda exponent: 10.0**exponent), axes)


def _twist(linear, angular):
    return np.concatenate([linear, angular])


twists = st.builds(_twist, vectors, rotation_vectors)
long_twists = st.builds(_twist, vectors, long_rotation_vectors)


def assert_close(actual, expected, tolerance=1e-14, scale=None):
    """Largest difference at most ``tolerance`` times ``scale``, by default the largest element expected."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    scale = np.max(np.abs(expected)) if scale is None else scale
    difference = np.max(np.abs(actual - expected))
    assert difference <= tolerance * scale, f"{difference} > {tolerance} * {scale}\n{actual}\n{expected}"


def assert_same_rotation(actual, expected, tolerance=1e-14):
    """Equal rotation vectors, where those within rounding of a half turn may be each other's opposite."""
    angle = np.linalg.norm(expected)
    if abs(angle - pi) < 1e-14 and np.dot(actual, expected) < 0.0:
        expected = -expected
    assert_close(actual, expected, tolerance)
