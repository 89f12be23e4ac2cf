"""Copies and pickles of mechanisms: equal, and as unchangeable as the original."""

import copy
import pickle

import numpy as np
import pytest

import pliant


@pytest.mark.parametrize("name", ["hand", "gripper", "suspension", "hexapod"])
def test_pickles_are_equal_and_read_only(name):
    m = pliant.gallery.make(name)
    m.links, m.topology, m.radius  # kept besides: must not come along writable
    n = pickle.loads(pickle.dumps(m))
    assert n.joint_names == m.joint_names
    for word, value in vars(m).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(n, word), value)
            assert getattr(n, word).flags.writeable == value.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        n.stiffness[0] = 1.0
    assert copy.deepcopy(m) is m
