"""Rows of loads: the wrench they stand for, whatever frame of the body they are in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pliant import spatial
from pliant.compilation import njit
from pliant.errors import InputError
from pliant.statics import load_kernels as kernels
from pliant.statics import tree_kernels
from pliant.statics.loads import Load, load_rows


@njit
def world(row, pose):
    return kernels.wrench_in_world(row, pose)


@njit
def body(row, pose, out):
    kernels.body_wrench(row, pose, out)


def expected(load, pose):
    """Force and torque at the body's origin, world axes, as the words of `apply_wrench` say."""
    turn = pose[:3, :3]
    force, torque = (
        (load.force, load.torque) if load.frame == "world" else (turn @ load.force, turn @ load.torque)
    )
    return np.concatenate([force, torque + np.cross(turn @ load.point, force)])


def random_load(rng, frame):
    return Load.of("b", *rng.normal(size=(3, 3)), frame)  # pyright: ignore[reportCallIssue]


def random_pose(rng):
    return spatial.pose(rng.normal(size=3), rng.normal(size=4))


@pytest.mark.parametrize("frame", ["world", "body"])
def test_a_row_is_the_load(frame):
    rng = np.random.default_rng(1)
    for _ in range(20):
        load, pose, own = random_load(rng, frame), random_pose(rng), np.zeros(6)
        wrench = expected(load, pose)
        np.testing.assert_allclose(world(load.row(), pose), wrench, atol=1e-14)
        np.testing.assert_allclose(world(load.row(), pose[:3, :3].copy()), wrench, atol=1e-14)
        body(load.row(), pose, own)
        np.testing.assert_allclose(own, (wrench.reshape(2, 3) @ pose[:3, :3]).ravel(), atol=1e-14)


@pytest.mark.parametrize("frame", ["world", "body"])
def test_rows_in_other_frames_of_the_body_are_the_same_load(frame):
    rng = np.random.default_rng(2)
    loads = {body: random_load(rng, frame) for body in (4, 0, 2)}
    frames = np.array([random_pose(rng) for _ in range(5)])
    rows = load_rows(loads, 10 * np.arange(5), frames)
    assert rows[:, kernels.LINK].tolist() == [40, 0, 20]
    for row, (body, load) in zip(rows, loads.items(), strict=True):
        pose = random_pose(rng)
        there = pose @ spatial.se3_inverse(frames[body])  # of the row's frame
        found, wrench = np.array(world(row, there)), expected(load, pose)
        found[3:] += np.cross(there[:3, 3] - pose[:3, 3], found[:3])
        np.testing.assert_allclose(found, wrench, atol=1e-13)


def test_the_tangent_is_the_derivative_of_the_wrench():
    """In body axes, along a twist of the body; forces that turn with it do not change."""
    rng = np.random.default_rng(3)
    for frame in ("world", "body"):
        row, pose, own = random_load(rng, frame).row(), random_pose(rng), np.zeros((2, 6))
        wrench, tangent = np.zeros((1, 6)), np.zeros((1, 6, 6))
        tree_kernels.add_loads(pose[None], row[None], 1.0, wrench, tangent)
        for i, direction in enumerate(np.eye(6)):
            for side, sign in enumerate((-1e-6, 1e-6)):
                body(row, pose @ spatial.se3_exp(sign * direction), own[side])
            np.testing.assert_allclose(tangent[0, :, i], (own[1] - own[0]) / 2e-6, atol=1e-8)


def test_a_load_made_by_hand_is_checked_like_any_other():
    """Whole numbers become floats, whose bytes rows take."""
    one, none = np.array([1, 2, 3]), np.zeros(3, dtype=int)
    parsed = Load.parse(Load(one, none, one), "b")
    np.testing.assert_array_equal(parsed.row()[:9], [1, 2, 3, 0, 0, 0, 1, 2, 3])
    assert parsed.acts
    assert not Load.parse(Load(-0.0 * one, none, one), "b").acts
    with pytest.raises(InputError, match="force on 'b' is not finite"):
        Load.parse(Load(np.array([np.nan, 0, 0]), none, one), "b")
    huge = Load.of("b", 3 * [1.7e308])  # whose sum is not finite
    np.testing.assert_array_equal(huge.row()[:3], 1.7e308)


def test_what_is_no_name_is_shown_as_far_as_it_can_be():
    nobody: Any = 10**5000
    with pytest.raises(InputError, match=r"torque on a value of type int: .* got shape"):
        Load.of(nobody, torque=[1, 2])
