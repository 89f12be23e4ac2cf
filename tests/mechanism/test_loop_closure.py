"""Loop closure: gaps measured by definition, joints that are held, paths to many configurations."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pliant
from oracles import dense
from oracles.random_mechanisms import random_mechanism, random_q
from pliant.errors import ConvergenceError
from pliant.mechanism import kinematics
from pliant.mechanism.joints import BALL
from pliant.mechanism.loop_closure import LoopCloser, close_loops


@given(seed=st.integers(0, 10**6), loops=st.integers(1, 3))
def test_random_mechanisms(seed, loops):
    m = random_mechanism(seed, 5, loops)
    start = random_q(m, seed, 0.1)
    try:
        q = close_loops(m, start.copy())
    except ConvergenceError:
        assume(False)  # 0.1 rad from a closed pose may be too far
        raise
    assert np.abs(dense.loop_gaps(m, q)).max() < 1e-11
    for ball in m.primitive_coordinate[m.ball_primitives].tolist():
        assert np.linalg.norm(q[ball : ball + 4]) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_array_equal(close_loops(m, start.copy()), q)


def test_the_step_is_the_shortest():
    """A small gap is closed by the least-norm motion, in radians and radii."""
    m = pliant.gallery.suspension()
    start = kinematics.move(m, m.reference, 1e-5 * np.cos(np.arange(m.nv)) * m.dof_unit)
    q = close_loops(m, start)
    rows = pliant.Configuration(m, start).loop_jacobian * m.dof_unit
    gaps = pliant.Configuration(m, start).loop_residual.ravel()
    expected = -m.dof_unit * (np.linalg.pinv(rows, rcond=1e-7) @ gaps)
    change = kinematics.move(m, start, expected)
    assert np.abs(change - q).max() < 1e-8
    assert np.abs(q - start).max() > 1e-6


@pytest.mark.parametrize(("name", "joint"), [("gripper", "left_driver"), ("suspension", "lower_pivot")])
def test_paths_end_where_joints_are_held(name, joint):
    m = pliant.gallery.make(name)
    held = np.zeros(m.nv, dtype=bool)
    held[m.dof_index(joint)] = True
    closer = LoopCloser(m, held)
    values = np.array([[0.3], [-0.25], [0.05], [0.3]])
    q, closed = closer.follow(values)
    assert closed.all()
    np.testing.assert_array_equal(q[:, m.dof_coordinate[held]], values)
    np.testing.assert_array_equal(q[0], q[3])  # not a matter of what came before
    for row, (value,) in zip(q, values.tolist(), strict=True):
        assert np.abs(dense.loop_gaps(m, row)).max() < 1e-11
        near = pliant.assemble(m.with_pose(row), {joint: value}).reference
        assert np.abs(near - row).max() < 1e-9
    with pytest.raises(ConvergenceError, match="do not close: still"):
        close_loops(m, random_q(m, 1, 0.1), np.ones(m.nv, dtype=bool))
    stiff = m.dof_kind != BALL
    assert not LoopCloser(m, stiff).follow(np.full((1, stiff.sum()), 0.3))[1].any()
