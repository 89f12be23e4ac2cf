"""Joints made rigid and released: velocities, momenta and energies against dense matrices; motion of rigid clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles import adaptive, newton
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.engines.adaptive.solver import Solver

H = 1e-3
JOINTED = tuple(kind for kind in KINDS if kind != "fixed")


@given(st.integers(0, 10**6), st.integers(2, 9), st.booleans())
@settings(max_examples=40, deadline=None)
def test_stopping_joints_is_an_impulse_that_keeps_momenta(seed, bodies, floating):
    """Layer by layer, against `M[a, a] v' = M[a] v`; then some are released, which changes nothing."""
    m = random_mechanism(seed, bodies=bodies, reference=True, floating=floating)
    v = np.random.default_rng(seed).normal(size=m.nv)
    if m.nv == 0:
        return
    s = adaptive.moving(m, random_q(m, seed), v, H)
    np.testing.assert_array_equal(s.velocity, v)
    M, size = s.configuration.mass_matrix(), 1.0 + np.abs(v).max()
    start = adaptive.momentum(s)
    for _ in range(3):
        nodes = adaptive.closable(s)
        if not nodes:
            break
        before, kinetic = s.velocity, s.kinetic
        adaptive.close(s, nodes)
        active = adaptive.active_dofs(m, s.active)
        expected = adaptive.stopped(M, before, active)
        np.testing.assert_allclose(s.velocity, expected, atol=1e-9 * size)
        assert s.kinetic <= kinetic * (1 + 1e-12)
        assert s.kinetic == pytest.approx(0.5 * expected @ M @ expected, rel=1e-9)
        if floating:
            np.testing.assert_allclose(
                adaptive.momentum(s), start, rtol=0, atol=1e-10 * (1 + abs(start).max())
            )
    if adaptive.closable(s) or s.active:
        before, kinetic, held = s.velocity, s.kinetic, adaptive.momentum(s)
        nodes, opened = s._solver.model.nodes, s._solver.opened
        below = [
            k for k in range(s._solver.model.tree.leaves, len(nodes)) if not opened[k] and opened[nodes[k, 3]]
        ]
        adaptive.release(s, below)
        np.testing.assert_array_equal(s.velocity, before)
        assert s.kinetic == pytest.approx(kinetic, rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(adaptive.momentum(s), held, rtol=0, atol=1e-12 * (1 + abs(held).max()))


@pytest.mark.parametrize("seed", range(6))
def test_with_all_joints_active_it_is_the_constrained_engine(seed):
    m = random_mechanism(seed, bodies=2 + seed, reference=True, kinds=JOINTED)
    q, v = random_q(m, seed, 0.3), np.random.default_rng(seed).normal(size=m.nv)
    ours = pliant.AdaptiveSimulation(m, H, keep="*", start=q)
    theirs = pliant.ConstrainedSimulation(m, H, start=q)
    for s in (ours, theirs):
        s.velocity = v
        s.apply_wrench(m.body_names[-1], force=(1, 2, 3), torque=(0, 0.1, 0), point=(0.1, 0, 0))
        s.set_motor(m.joint_names[0], torque=0.1)
        s.step(300)
    assert set(ours.active) == set(m.joint_names)
    np.testing.assert_allclose(ours.q, theirs.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.velocity, theirs.velocity, rtol=0, atol=1e-9)
    assert ours.energy.total == pytest.approx(theirs.energy.total, rel=1e-9)


def test_rotors_count_when_joints_stop():
    """A rotor that stops gives its momentum to nothing else: it is lost, with its energy."""
    b = pliant.Builder("rotors")
    for i in range(3):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.2, 0.3), position=(i, 0, 0))
    b.hinge("j0", "world", "b0", anchor=(0, 0, 0), axis=(0, 0, 1), armature=0.5)
    b.hinge("j1", "b0", "b1", anchor=(0.5, 0, 0), axis=(0, 1, 0), armature=2.0)
    b.hinge("j2", "b1", "b2", anchor=(1.5, 0, 0), axis=(0, 0, 1), armature=1.0)
    m = b.build()
    v = np.array([1.0, 2.0, 3.0])
    s = adaptive.moving(m, m.reference, v, H)
    M = s.configuration.mass_matrix()
    adaptive.close(s, adaptive.closable(s))
    expected = adaptive.stopped(M, v, adaptive.active_dofs(m, s.active))
    np.testing.assert_allclose(s.velocity, expected, atol=1e-12)
    assert 0 < len(s.active) < 3


@pytest.mark.parametrize("seed", range(4))
def test_rigid_clusters_move_as_the_dense_equations_say(seed):
    """Some joints rigid, under gravity and a wrench inside a cluster: a quarter of the step, a fifth of the error."""
    m = random_mechanism(seed + 10, bodies=4, reference=True, kinds=("hinge", "slide", "ball", "universal"))
    gravity, force = (0.3, -0.4, -9.81), {m.body_names[-1]: np.array([1.0, -2.0, 0.5])}
    q, v = random_q(m, seed, 0.3), np.random.default_rng(seed).normal(size=m.nv)
    errors = []
    for h in (4e-3, 1e-3):
        s = adaptive.moving(m, q, v, h, gravity)
        adaptive.close(s, adaptive.closable(s)[:1])
        active, start = adaptive.active_dofs(m, s.active), s.velocity
        assert 0 < active.sum() < m.nv
        s.apply_wrench(m.body_names[-1], force=force[m.body_names[-1]])
        s._solver.due = False
        s.step(round(0.04 / h))
        at, rates = adaptive.moved(m, q, start, active, 0.01, 4, gravity, force)
        errors.append(np.abs(s.velocity - rates).max())
        assert np.abs(s.q - at).max() < 1e-3
        assert not s.velocity[~active].any()
    assert errors[0] < 0.05
    assert errors[1] < 0.2 * errors[0]


def tumbling(seed: int, h: float = 5e-3) -> pliant.AdaptiveSimulation:
    """A floating linkage that tumbles and swings, and damps its swinging."""
    m = random_mechanism(
        seed, bodies=16, stiffness=5.0, floating=True, kinds=("hinge", "ball", "universal", "slide")
    )
    s = pliant.AdaptiveSimulation(m, h, (0, 0, 0), tolerance=1.0, slow=0.3, interval=4, precision=1e-14)
    rng, v = np.random.default_rng(seed), np.zeros(m.nv)
    v[:6], v[-6:] = 0.3 * rng.normal(size=6), rng.normal(size=6)
    s.velocity = v
    return s


@pytest.mark.parametrize("seed", range(4))
def test_momentum_over_a_run(seed, monkeypatch):
    """Joints stop and go: no switch changes momenta, linear momentum stays over the run, energy does not grow.

    Angular momentum over a run is the integrator's: it errs by the square of the step.
    """
    s = tumbling(seed)
    apart, switch = [], Solver.switch

    def watched(self, opening, closing):
        before, kinetic = adaptive.carried(s), s.kinetic
        switch(self, opening, closing)
        apart.append([np.abs(adaptive.carried(s) - before).max(), s.kinetic - kinetic])

    monkeypatch.setattr(Solver, "switch", watched)
    start, energy, most = adaptive.carried(s), s.energy.total, 0.0
    for _ in range(40):
        s.step(25)
        most = max(most, s.energy.total)
    changed, gained = np.array(apart).T
    size = np.abs(start).max()
    assert len(changed) > 0
    assert changed.max() < 1e-10 * size
    assert gained.max() < 1e-12 * energy
    assert most <= energy * (1 + 1e-6)
    end = adaptive.carried(s)
    np.testing.assert_allclose(end[:3], start[:3], rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(end[3:], start[3:], rtol=0, atol=2e-3 * size)


def gained(
    seed: int, damped: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[float, float, int]:
    """Energy that a random linkage gains at most, over all that can be kinetic; the most in a switch; switches.

    Of all joint types, floating without gravity (odd seeds) or fixed and heavy, at a random tolerance.
    """
    rng, floating = np.random.default_rng(seed), bool(seed % 2)
    m = random_mechanism(seed, bodies=4 + seed % 9, stiffness=5.0, floating=floating, isotropic=True)
    if m.nv == 0:
        return 0.0, 0.0, 0
    m = m if damped else m.replace(damping=np.zeros(m.nv))
    gravity = (0.0, 0.0, 0.0) if floating else (0.0, 0.0, -1.0)
    tolerance = 10.0 ** rng.uniform(-2, 1)
    words = {"tolerance": tolerance, "slow": 0.3 * tolerance}
    s = pliant.AdaptiveSimulation(m, 1 / 100, gravity, precision=1e-5 if damped else 1e-13, **words)
    s.velocity = 0.3 * rng.normal(size=m.nv)
    in_switches, switch = [0.0], Solver.switch

    def watched(self, opening, closing):
        before = s.kinetic
        switch(self, opening, closing)
        in_switches.append(s.kinetic - before)

    with monkeypatch.context() as patch:
        patch.setattr(Solver, "switch", watched)
        start = s.energy
        most, lowest = -np.inf, start.elastic + start.gravity
        for _ in range(round(5 * seconds)):
            s.step(20)
            energy = s.energy
            most, lowest = max(most, energy.total), min(lowest, energy.elastic + energy.gravity)
    scale = start.total - lowest  # all that can be kinetic
    return (most - start.total) / scale, max(in_switches) / scale, len(in_switches) - 1


def check_energies(seeds: range, damped: bool, seconds: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """Assert that linkages gain no energy; returns the number of switches.

    Without dampers the energy of the midpoint rule swings by the square of the step under gravity.
    """
    switches = 0
    for seed in seeds:
        gain, in_switch, count = gained(seed, damped, seconds, monkeypatch)
        assert in_switch < 1e-12, seed
        assert gain < (1e-12 if damped else 1e-6 if seed % 2 else 1e-3), seed
        switches += count
    return switches


@pytest.mark.parametrize("damped", [True, False])
def test_linkages_gain_no_energy(damped, monkeypatch):
    assert check_energies(range(50, 62), damped, 2.0, monkeypatch) > 5


@pytest.mark.slow
@pytest.mark.parametrize("damped", [True, False])
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_linkages_gain_no_energy(part, damped, monkeypatch):
    """Ten seconds each, of all joint types, floating and fixed, with dampers and without."""
    assert check_energies(range(100 * part, 100 * part + 100), damped, 10.0, monkeypatch) > 100


def test_dense_equations_agree_with_the_mass_matrix():
    """The oracle itself: its mass matrix is the one by recursion."""
    m = random_mechanism(3, bodies=4, reference=True)
    q = random_q(m, 3)
    M, _ = newton.equations(m, q, np.zeros(m.nv))
    np.testing.assert_allclose(M, pliant.Configuration(m, q).mass_matrix(), atol=1e-6)
