"""Shapes: every function over leading axes gives what it gives one by one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pliant.spatial as spatial

from .strategies import assert_close

RNG = np.random.default_rng(7)
SHAPE = (2, 3)


def _rotation_vectors():
    r = RNG.normal(size=(*SHAPE, 3))
    r[0, 0] = 0.0
    r[0, 1] *= 1e-200
    r[1, 0] = [0.0, np.pi, 0.0]
    r[1, 1] *= 8.0
    return r


ROTATION_VECTORS = _rotation_vectors()
TWISTS = np.concatenate([RNG.normal(size=(*SHAPE, 3)), ROTATION_VECTORS], axis=-1)
QUATERNIONS = spatial.quat_exp(ROTATION_VECTORS)
MATRICES = spatial.so3_exp(ROTATION_VECTORS)
POSES = spatial.se3_exp(TWISTS)

UNARY = {
    "hat": (ROTATION_VECTORS, (3, 3)),
    "vee": (MATRICES, (3,)),
    "so3_exp": (ROTATION_VECTORS, (3, 3)),
    "so3_log": (MATRICES, (3,)),
    "so3_right_jacobian": (ROTATION_VECTORS, (3, 3)),
    "so3_right_jacobian_inverse": (ROTATION_VECTORS, (3, 3)),
    "quat_conjugate": (QUATERNIONS, (4,)),
    "quat_normalize": (QUATERNIONS, (4,)),
    "quat_exp": (ROTATION_VECTORS, (4,)),
    "quat_log": (QUATERNIONS, (3,)),
    "quat_to_matrix": (QUATERNIONS, (3, 3)),
    "quat_from_matrix": (MATRICES, (4,)),
    "se3_exp": (TWISTS, (4, 4)),
    "se3_log": (POSES, (6,)),
    "se3_inverse": (POSES, (4, 4)),
    "se3_right_jacobian": (TWISTS, (6, 6)),
    "se3_right_jacobian_inverse": (TWISTS, (6, 6)),
    "adjoint": (POSES, (6, 6)),
    "ad": (TWISTS, (6, 6)),
    "pose": (ROTATION_VECTORS, (4, 4)),
}
BINARY = {
    "quat_multiply": (QUATERNIONS, QUATERNIONS, (4,)),
    "quat_rotate": (QUATERNIONS, ROTATION_VECTORS, (3,)),
    "transform_points": (POSES, ROTATION_VECTORS, (3,)),
}


def test_every_public_function_is_covered():
    assert set(UNARY) | set(BINARY) == set(spatial.__all__)


@pytest.mark.parametrize("name", UNARY)
def test_batch_equals_one_by_one(name):
    argument, tail = UNARY[name]
    function = getattr(spatial, name)
    result = function(argument)
    assert result.shape == (*SHAPE, *tail)
    assert result.dtype == np.float64
    assert np.all(np.isfinite(result))
    for index in np.ndindex(SHAPE):
        one = function(argument[index])
        assert_close(result[index], one, 1e-15)
        assert_close(function(argument[index].tolist()), one, 0.0)
    assert function(argument[:0]).shape == (0, SHAPE[1], *tail)


@pytest.mark.parametrize("name", BINARY)
def test_leading_axes_broadcast(name):
    first, second, tail = BINARY[name]
    function = getattr(spatial, name)
    result = function(first[:, :, None], second[0])
    assert result.shape == (2, 3, 3, *tail)
    for i, j, k in np.ndindex(2, 3, 3):
        assert_close(result[i, j, k], function(first[i, j], second[0, k]), 1e-15)


def test_one_pose_moves_many_points():
    points = RNG.normal(size=(5, 3))
    moved = spatial.transform_points(POSES[0, 2], points)
    assert moved.shape == (5, 3)
    assert_close(moved[4], POSES[0, 2][:3, :3] @ points[4] + POSES[0, 2][:3, 3], 1e-15)
    assert spatial.transform_points(POSES[:, :, None], points).shape == (2, 3, 5, 3)


def test_pose_broadcasts_positions_and_orientations():
    positions = RNG.normal(size=(4, 1, 3))
    T = spatial.pose(positions, QUATERNIONS[0])
    assert T.shape == (4, 3, 4, 4)
    assert np.array_equal(T[2, 1, :3, 3], positions[2, 0])
    assert_close(T[2, 1, :3, :3], MATRICES[0, 1])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("hat", ([1.0, 2.0],)),
        ("so3_log", (np.zeros(3),)),
        ("quat_log", (5.0,)),
        ("se3_exp", (np.zeros((6, 1)),)),
        ("adjoint", (np.eye(3),)),
        ("pose", ([0.0, 0.0],)),
        ("pose", ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0])),
    ],
)
def test_wrong_shapes_are_refused(name, arguments):
    with pytest.raises(ValueError, match="shape"):
        getattr(spatial, name)(*arguments)


def test_import_does_not_load_numba():
    source = str(Path(spatial.__file__).parents[2])
    code = "import pliant.spatial, sys; print('numba' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": source}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert output.stdout.split() == ["False"]
