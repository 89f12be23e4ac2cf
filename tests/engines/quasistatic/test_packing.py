"""Inverse inertias of groups, and which of them are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from pliant.engines.quasistatic.packing import inverse_inertias, pack
from pliant.errors import MechanismError


@given(st.integers(0, 10_000))
def test_inverse_inertias(seed):
    """Spatial inertias with moments down to a millionth of those of a ball of their radius of gyration."""
    rng = np.random.default_rng(seed)
    n = 5
    mass, c = 10 ** rng.uniform(-3, 3, n), rng.normal(size=(n, 3))
    turn = pliant.spatial.so3_exp(rng.normal(size=(n, 3)))
    central = turn @ (10 ** rng.uniform(-6, 0, (n, 3, 1)) * turn.transpose(0, 2, 1)) * mass[:, None, None]
    arm = pliant.spatial.hat(c)
    whole = central - mass[:, None, None] * arm @ arm
    rows, columns = np.tril_indices(3)
    inertia = np.column_stack([mass, mass[:, None] * c, whole[:, rows, columns]])
    which, shares = rng.permutation(n), rng.integers(1, 4, n).astype(np.int32)
    out = inverse_inertias(inertia, which, shares)
    assert (out == out.transpose(0, 2, 1)).all()
    # the closed form: a motion of the centre of mass, and a turn about it
    slow = np.zeros((n, 6, 6))
    inverse = np.linalg.inv(central)
    slow[:, :3, :3] = np.eye(3) / mass[:, None, None] - arm @ inverse @ arm
    slow[:, :3, 3:] = arm @ inverse
    slow[:, 3:, :3] = -inverse @ arm
    slow[:, 3:, 3:] = inverse
    slow = slow[which] * shares[which, None, None]
    assert np.abs(out - slow).max() <= 1e-8 * np.abs(slow).max()


@pytest.mark.parametrize(("moment", "refused"), [(0.0, True), (1e-16, True), (1e-6, False), (1.0, False)])
def test_no_inertia_in_some_direction(moment, refused):
    """A rod without inertia about its axis, far from its joint."""
    b = pliant.Builder("rod")
    b.body("base", mass=1, inertia=(1, 1, 1))
    b.body("rod", mass=1, inertia=(moment, 1, 1), position=(0, 0, 1))
    b.fixed("ground", "world", "base")
    b.body("tip", mass=1e-9, inertia=(1e-9, 1e-9, 1e-9), position=(0, 0, 1))
    b.hinge("j", "base", "rod", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    if moment:
        b.hinge("tip", "rod", "tip", anchor=(0, 0, 1), axis=(1, 0, 0), stiffness=1.0)
        m = b.build()
    else:
        b.fixed("tip", "rod", "tip")
        m = b.build().replace(inertia=np.zeros((3, 3, 3)) + np.diag([1e-30, 1, 1]))
    if not refused:
        assert pack(m).tree.leaves == 2
        return
    with pytest.raises(MechanismError, match="body 'rod' has no inertia in some direction"):
        pack(m)
