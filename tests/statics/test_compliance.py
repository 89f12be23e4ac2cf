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


# --- springs too far apart


def with_soft_joints(seed, soft):
    """A random linkage with up to eight loops, four tenths of its joints of stiffness `soft`, others of 1 to 100."""
    rng = np.random.default_rng(seed)
    kinds = ("hinge", "universal", "bushing", "slide")
    m = random_mechanism(seed, 8, int(rng.integers(1, 9)), kinds=kinds)
    some = (rng.random(m.joint_count) < 0.4)[m.dof_joint]
    return m.replace(stiffness=np.where(some, soft, 10.0 ** rng.uniform(0, 2, size=m.nv)))


@pytest.mark.parametrize("seed", range(12))
def test_joints_a_million_times_softer_are_no_error(seed):
    """Rigid ones among them: their compliance is nothing, which is no error either."""
    m = with_soft_joints(seed, 1e-6)
    c, body = pliant.Configuration(m), m.body_names[-1]
    found, J = c.compliance(body), c.jacobian(body)
    _, size, axes = np.linalg.svd(c.loop_jacobian * m.dof_unit)
    allowed = axes[(size > 1e-9).sum() :].T * m.dof_unit[:, None]
    expected = np.zeros((6, 6))
    if allowed.shape[1]:
        response = np.linalg.solve(allowed.T @ (m.stiffness[:, None] * allowed), (J @ allowed).T)
        expected = J @ allowed @ response
    least = 1e-3 / m.stiffness.max()
    assert np.abs(found - expected).max() < 1e-7 * max(np.abs(expected).max(), least)


def test_compliance_that_rounding_eats_is_an_error_with_names():
    lost = 0
    for seed in range(12):
        m = with_soft_joints(seed, 1e-14)
        try:
            pliant.Configuration(m).compliance(m.body_names[-1])
        except pliant.errors.ConvergenceError as error:
            lost += 1
            assert error.residual > 1e-6
            assert "is lost in rounding: motions of '" in str(error)
            assert any(
                f"in the loop that '{m.joint_names[j]}' closes" in str(error) for j in m.topology.chords
            )
            assert "1e-14" in str(error)
            assert "with_stiffness" in str(error)
    assert lost >= 3


@pytest.mark.parametrize("segments", [3, None])
def test_near_singular_loops_under_their_weight(segments):
    """`strong_robot`: pivots of its tree are nearly singular under gravity. Against differences of equilibria."""
    m = pliant.gallery.strong_robot() if segments is None else pliant.gallery.strong_robot(segments=segments)
    gravity, body = (0.0, 0.0, -9.81), m.end_effectors[0]
    at = pliant.equilibrium(m, gravity=gravity)
    assert at.stability == "stable"
    turn = at.pose(body)[:3, :3]
    compliance = turn @ at.compliance(body)[:3, :3] @ turn.T
    size = 1e-6 * m.radius / np.abs(compliance).max()
    for i, force in enumerate(size * np.eye(3)):
        there, back = (
            pliant.equilibrium(m, {body: sign * force}, gravity=gravity, start=at) for sign in (1, -1)
        )
        slope = (there.pose(body) - back.pose(body))[:3, 3] / (2 * size)
        assert np.abs(slope - compliance[:, i]).max() < 1e-8 * np.abs(compliance).max()
