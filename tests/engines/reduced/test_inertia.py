"""Reduced inertia and damping against dense matrices, and natural frequencies against the full mechanism's."""

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import pliant
from oracles import reduction
from oracles.random_mechanisms import KINDS, random_mechanism
from pliant.statics.inertia import Inertia


def guyan(c, model):
    """Static condensation by its definition: matrices, basis and the lag of the links behind it."""
    P, J, M = reduction.flexibility(c), reduction.jacobian(c, model.end_effectors), c.mass_matrix()
    along = model.scale[:, None] * model.directions
    K = np.linalg.inv(along.T @ J @ P @ J.T @ along)
    basis = P @ J.T @ along @ K
    held = P - basis @ np.linalg.inv(K) @ basis.T
    return K, M, basis, basis.T @ M @ held @ M @ basis


@pytest.mark.parametrize("name", ["helix", "ladder", "y", "loop", "arm", "gripper", "firefighters"])
def test_condensed_by_definition(name):
    m = pliant.gallery.make(name)
    c, model = pliant.Configuration(m), pliant.reduce(m)
    K, M, basis, lag = guyan(c, model)
    assert np.abs(model.basis - basis).max() < 1e-9 * np.abs(basis).max()
    first = 2 * np.pi * model.frequencies()[0]
    expected = basis.T @ M @ basis + first**2 * lag
    assert np.abs(model.reduced_mass - expected).max() < 1e-5 * np.abs(expected).max()
    assert np.linalg.eigvalsh(lag).min() > -1e-9 * np.abs(expected).max()  # links lag behind, never lead
    assert np.abs(model.reduced_stiffness - K).max() < 1e-9 * np.abs(K).max()
    damping = basis.T @ m.damping_matrix @ basis
    assert np.abs(model.reduced_damping - damping).max() < 1e-9 * np.abs(damping).max()
    assert np.linalg.eigvalsh(model.reduced_mass).min() > 0


LIMITS = {"helix": (0.01, 0.001), "arm": (0.01, 0.001), "y": (0.01, 0.001), "ladder": (0.10, 0.005)}


@pytest.mark.parametrize("name", LIMITS)
def test_first_frequency(name):
    m = pliant.gallery.make(name)
    full = reduction.frequencies(pliant.Configuration(m))[0]
    for modes, limit in zip((0, 6), LIMITS[name], strict=True):
        assert pliant.reduce(m, modes=modes).frequencies()[0] == pytest.approx(full, rel=limit)


@pytest.mark.parametrize("name", ["helix", "ladder", "loop", "firefighters"])
def test_with_all_modes_nothing_is_lost(name):
    m = pliant.gallery.make(name)
    full = reduction.frequencies(pliant.Configuration(m))
    model = pliant.reduce(m, modes=1000)
    assert model.rank + model.modes == len(full)
    assert model.frequencies() == pytest.approx(full, rel=1e-6)
    # Modes hold the end effectors still.
    J = reduction.jacobian(pliant.Configuration(m), model.end_effectors)
    moved = np.abs(J @ model.basis[:, model.rank :]).max()
    assert moved < 1e-9 * np.abs(J).max() * np.abs(model.basis[:, model.rank :]).max()


def test_modes_that_do_not_exist_are_not_made_up():
    model = pliant.reduce(pliant.gallery.hand(), modes=6)  # rank = number of joints: there are no modes
    assert (model.rank, model.modes) == (24, 0)
    assert pliant.reduce(pliant.gallery.arm(), modes=6).modes == 1


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 2))
def test_operational_is_the_constrained_inverse(seed, loops):
    m = random_mechanism(seed, 5, loops, kinds=KINDS[:8])
    try:
        model = pliant.reduce(m, ["b2", "b4"], inertia="operational")
    except pliant.errors.InputError:
        reject()  # loops lock everything
    mobility = reduction.mobility(pliant.Configuration(m), model.end_effectors)
    along = model.scale[:, None] * model.directions
    expected = np.linalg.inv(along.T @ mobility @ along)
    assert np.abs(model.reduced_mass - expected).max() < 1e-6 * np.abs(expected).max()


def test_accelerability_of_a_chain_is_a_series():
    m = pliant.gallery.helix(12)
    c = pliant.Configuration(m)
    J = c.jacobian("link12")
    expected = np.linalg.inv((J / np.diag(c.mass_matrix())) @ J.T)
    model = pliant.reduce(m, inertia="accelerability")
    assert np.abs(model.mass - expected).max() < 1e-9 * np.abs(expected).max()
    expected = np.linalg.inv((J / m.damping) @ J.T)
    assert np.abs(model.damping - expected).max() < 1e-9 * np.abs(expected).max()
    undamped = pliant.reduce(m.replace(damping=np.zeros(m.nv)), inertia="accelerability")
    assert not undamped.damping.any()


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 2))
def test_inertia_of_a_tree(seed, loops):
    """Products and solutions with the joint-space inertia, loops included, against the dense matrix."""
    m = random_mechanism(seed, 5, loops)
    c = pliant.Configuration(m)
    M, inertia = c.mass_matrix(), Inertia(m, c.q)
    x = np.random.default_rng(seed).normal(size=(3, m.nv))
    assert np.abs(inertia.times(x) - x @ M).max() < 1e-12 * np.abs(M).max()
    assert np.abs(inertia.diagonal() - np.diag(M)).max() < 1e-12 * np.abs(M).max()
    Z = reduction.free_motions(c)
    assume(Z.shape[1] > 0)
    expected = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ x.T)
    found, _ = inertia.factor().solve(x, exact=True)
    assert np.abs(found.T - expected).max() < 1e-6 * np.abs(expected).max()
