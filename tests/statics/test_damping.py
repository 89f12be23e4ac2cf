"""Dampers for a damping ratio: what they make of vibrations, by the quadratic eigenvalue problem and in motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigvals, null_space

import pliant
from pliant.errors import InputError
from pliant.mechanism import kinematics
from pliant.statics.damping import damping_ratio

RATIO = 0.1


def damping_ratios(m):
    """Damping ratios and undamped angular frequencies of all vibrations at the reference pose, slowest first.

    The eigenvalues of M q'' + C q' + K q = 0 on the motions that loops and couplings allow, all matrices dense.
    """
    c = pliant.Configuration(m)
    allowed = np.eye(m.nv)
    if m.topology.loops or len(m.couplings):
        allowed = null_space(kinematics.constraint_rows(m, kinematics.link_poses(m, c.q)), rcond=1e-9)
    M, C, K = (
        allowed.T @ matrix @ allowed for matrix in (c.mass_matrix(), m.damping_matrix, m.stiffness_matrix)
    )
    n = len(M)
    state = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    roots: Any = eigvals(state)
    pairs = roots[roots.imag > 1e-6 * np.abs(roots).max()]
    speed = np.abs(pairs)
    order = np.argsort(speed)
    return (-pairs.real / speed)[order], speed[order]


@pytest.mark.parametrize("name", ["two_link", "y", "gripper", "hand", "suspension", "delta_robot"])
def test_the_first_vibration_has_the_ratio_and_others_have_more(name):
    bare = getattr(pliant.gallery, name)()
    m = bare.replace(damping=np.zeros(bare.nv)).with_damping_ratio(RATIO)
    ratios, speed = damping_ratios(m)
    assert ratios[0] == pytest.approx(RATIO, rel=1e-4)
    np.testing.assert_allclose(ratios, RATIO * speed / speed[0], rtol=1e-3)
    np.testing.assert_allclose(speed[0], 2 * np.pi * pliant.Configuration(m).frequencies(1)[0], rtol=1e-4)


@pytest.mark.parametrize("name", ["two_link", "gripper", "suspension", "hexapod"])
def test_the_ratio_of_dampers_that_are_there(name):
    """Proportional dampers give theirs back; others what the quadratic eigenvalue problem has, if they are weak."""
    bare = getattr(pliant.gallery, name)()
    bare = bare.replace(damping=np.zeros(bare.nv))
    assert damping_ratio(bare.with_damping_ratio(0.37)) == pytest.approx(0.37, rel=1e-6)
    if bare.floating:
        return  # legs that are all the same: the first vibration is one of many
    rng = np.random.default_rng(3)
    weak = bare.replace(damping=1e-4 * bare.stiffness * rng.uniform(0.2, 1, bare.nv))
    assert damping_ratio(weak) == pytest.approx(damping_ratios(weak)[0][0], rel=0.02)


def test_dampers_of_tendons_count():
    b = pliant.Builder("cord")
    b.body("a", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 0))
    b.hinge("j", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    b.tendon("t", {"j": 2.0}, stiffness=1.0, damping=0.02)
    m = b.build()
    assert damping_ratio(m) == pytest.approx(4 * 0.02 / (2 * np.sqrt((3.0 + 4.0) * 0.1)), rel=1e-9)


def test_it_decays_as_the_ratio_says():
    """Of the constrained engine and of a reduced model: the amplitude falls by exp(-2 pi ratio) a period."""
    m = pliant.gallery.two_link().with_damping_ratio(RATIO)
    tip = m.end_effectors[0]
    period = 1 / pliant.Configuration(m).frequencies(1)[0]
    damped = period / np.sqrt(1 - RATIO**2)
    h = damped / 400
    for simulation in (
        pliant.ConstrainedSimulation(m, h, gravity=(0, 0, 0)),
        pliant.reduce(m).simulate(h),
    ):
        simulation.apply_wrench(tip, force=(0, 0, 1.0))
        rest = pliant.equilibrium(m, {tip: (0, 0, 1.0)}).pose(tip)[2, 3]
        path = simulation.record(2000).poses[:, m.body_index(tip), 2, 3] - rest
        peaks = [np.abs(path[i * 400 : (i + 1) * 400]).max() for i in range(1, 5)]
        falls = np.array(peaks[1:]) / peaks[:-1]
        np.testing.assert_allclose(falls, np.exp(-2 * np.pi * RATIO / np.sqrt(1 - RATIO**2)), rtol=0.03)


def test_dampers_without_a_spring_stay_and_tendons_have_theirs():
    b = pliant.Builder("two")
    for i, name in enumerate("ab"):
        b.body(name, mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01), position=(0.2 * i, 0, 0))
    b.hinge("p", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=3.0, damping=9.0)
    b.hinge("q", "a", "b", anchor=(0.2, 0, 0), axis=(0, 0, 1), damping=0.7)
    b.tendon("t", {"q": 1.0}, stiffness=2.0)
    m = b.build().with_damping_ratio(RATIO)
    rate = 2 * RATIO / (2 * np.pi * pliant.Configuration(m).frequencies(1)[0])
    np.testing.assert_allclose(m.damping, [3 * rate, 0.7])
    np.testing.assert_allclose(m.tendon_damping, [2 * rate])


def test_a_floating_base_is_held():
    b = pliant.Builder("flier")
    b.body("base", mass=2.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.body("arm", mass=0.2, com=(0.2, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.free("flight", "world", "base")
    b.hinge("root", "base", "arm", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=5.0)
    m = b.build().with_damping_ratio(RATIO)
    speed = np.sqrt(5.0 / (0.2 * 0.04 + 1e-3))
    np.testing.assert_allclose(m.damping, [0] * 6 + [2 * RATIO / speed * 5.0])
    model: Any = pliant.reduce(b.build()).with_damping_ratio(RATIO)
    np.testing.assert_allclose(model.damping, pliant.reduce(m).damping, rtol=1e-9, atol=1e-12)
    assert model.base is not None
    np.testing.assert_array_equal(model.base.mechanism.damping, m.damping)


def test_models_and_blends_take_dampers():
    m = pliant.gallery.helix(10)
    undamped = m.replace(damping=np.zeros(m.nv))
    model: Any = pliant.reduce(undamped).with_damping_ratio(RATIO)
    expected = pliant.reduce(undamped.with_damping_ratio(RATIO))
    np.testing.assert_allclose(model.reduced_damping, expected.reduced_damping, rtol=1e-9)
    held = pliant.equilibrium(undamped, {"link10": (0, 0, 5.0)})
    blend = pliant.blend([pliant.reduce(undamped), pliant.reduce(undamped, at=held)])
    damped: Any = blend.with_damping_ratio(RATIO)
    np.testing.assert_array_equal(damped.models[1].mechanism.damping, expected.mechanism.damping)


def test_nothing_to_damp():
    m = pliant.gallery.two_link()
    with pytest.raises(InputError, match="has no springs"):
        m.with_stiffness("*", 0.0).with_damping_ratio(RATIO)
    with pytest.raises(InputError, match="damping ratio"):
        m.with_damping_ratio(-0.1)
