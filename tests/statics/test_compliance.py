"""Compliance of end effectors against a dense projection, finite differences of equilibria, and a closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from oracles import reduction
from oracles.random_mechanisms import KINDS, random_mechanism


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 3))
def test_equals_a_dense_projection(seed, loops):
    m = random_mechanism(seed, 5, loops, kinds=KINDS[:8])
    c = pliant.Configuration(m)
    expected = reduction.compliance(c, ["b2", "b4"])
    ours = c.compliance("b2", "b4")
    assert np.abs(ours - expected).max() < 1e-10 * max(1e-3, np.abs(expected).max())
    assert np.abs(ours - ours.T).max() < 1e-10 * max(1e-3, np.abs(expected).max())


@pytest.mark.parametrize(
    "name", ["helix", "ladder", "y", "loop", "arm", "hand", "gripper", "flexure_stage", "suspension"]
)
def test_gallery_at_rest(name):
    m = pliant.gallery.make(name)
    c = pliant.Configuration(m)
    expected = reduction.compliance(c, m.end_effectors)
    assert np.abs(c.compliance() - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["helix", "ladder", "loop", "suspension"])
def test_under_load_it_is_the_derivative_of_the_equilibrium(name):
    m = pliant.gallery.make(name)
    tip = m.end_effectors[0]
    load = np.array([60.0, 20.0, -40.0])
    c = pliant.equilibrium(m, {tip: load})
    ours = c.compliance(tip)
    inverse, rotation = np.linalg.inv(c.pose(tip)), c.pose(tip)[:3, :3]
    for axis in range(3):  # a little more force along each axis of the body, which stays dead in the world
        step = 1e-2 * rotation[:, axis]
        there, back = (pliant.equilibrium(m, {tip: load + sign * step}, start=c) for sign in (1, -1))
        twist = [pliant.spatial.se3_log(inverse @ end.pose(tip)) for end in (there, back)]
        assert np.abs((twist[0] - twist[1]) / 2e-2 - ours[:, axis]).max() < 1e-6 * np.abs(ours).max()


def test_infinite_compliance_names_the_joint():
    b = pliant.Builder("limp")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.body("c", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    b.hinge("firm", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=10.0)
    b.hinge("limp", "a", "c", anchor=(0.5, 0, 0), axis=(1, 0, 0))
    c = pliant.Configuration(b.build())
    assert c.compliance("a")[4, 4] == pytest.approx(0.1)  # the limp joint does not move this body
    with pytest.raises(pliant.errors.InputError, match=r"no spring holds 'limp'.*with_stiffness"):
        c.compliance("c")
    with pytest.raises(pliant.errors.UnknownNameError):
        c.compliance("nobody")


@pytest.mark.parametrize("name", ["helix", "ladder", "y", "arm", "gripper", "suspension"])
def test_frequencies_of_the_gallery(name):
    c = pliant.Configuration(pliant.gallery.make(name))
    expected = reduction.frequencies(c)[:6]
    assert c.frequencies() == pytest.approx(expected, rel=1e-9)


def test_frequencies_by_iteration_and_under_tension():
    m = pliant.gallery.helix(400)  # above the size where all modes are computed at once
    c = pliant.Configuration(m)
    assert c.frequencies(4) == pytest.approx(reduction.frequencies(c)[:4], rel=1e-6)
    # A pendulum on a hinge spring: w² = (k + m g l) / (m l² + I)
    b = pliant.Builder("pendulum")
    b.body("bob", mass=2.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, -0.5))
    b.hinge("pin", "world", "bob", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    hanging = pliant.equilibrium(b.build(), gravity=(0, 0, -9.81))
    expected = np.sqrt((3.0 + 2.0 * 9.81 * 0.5) / (2.0 * 0.25 + 0.01)) / (2 * np.pi)
    assert hanging.frequencies() == pytest.approx([expected], rel=1e-12)
    with pytest.raises(pliant.errors.InputError, match="no spring holds 'pin'"):
        pliant.Configuration(b.build().with_stiffness("pin", 0.0)).frequencies()
    with pytest.raises(pliant.errors.InputError, match="at least 1"):
        hanging.frequencies(0)
