"""Twigs, whose inner records come and go: the same motion and records as with all of them kept; memory; states."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles import adaptive
from oracles.random_mechanisms import random_mechanism, random_q
from pliant.engines.adaptive import solver as solvers
from pliant.engines.constrained import arrays as linkage
from pliant.engines.quasistatic import arrays as qs
from pliant.errors import InputError

H, NONE = 1 / 240, (0, 0, 0)


def soft_molecule(links: int) -> pliant.Mechanism:
    return pliant.gallery.molecule(links).with_stiffness("*", 1e-3, 5e-6)


@pytest.fixture
def twigs(monkeypatch):
    """Make simulations with twigs of so many leaves at most; 0 for none."""

    def made(leaves: int, *arguments, **words) -> pliant.AdaptiveSimulation:
        monkeypatch.setattr(solvers, "_ROOM", 0 if leaves else 2**24)
        monkeypatch.setattr(solvers, "_TWIG", max(leaves, 1))
        return pliant.AdaptiveSimulation(*arguments, **words)

    return made


def closed_twigs(s: pliant.AdaptiveSimulation) -> int:
    """Nodes above the leaves that have handles but no record."""
    solver = s._solver
    joined = np.isin(solver.model.nodes[:, qs.KIND], (qs.MERGE, qs.WELD))
    return int((joined & (solver.clusters.start < 0)).sum())


def pushed(s: pliant.AdaptiveSimulation) -> list[np.ndarray]:
    """Poses of some bodies and all coordinates while wrenches and motors come and go in different places."""
    m, out = s.mechanism, []
    names = m.body_names
    s.apply_wrench(names[-1], force=(0, 0, 1e-3), point=(0, 0, 0.005))
    s.apply_wrench(names[len(names) // 3], torque=(1e-6, 0, 2e-6), frame="body")
    for part in range(4):
        s.step(10)
        out += [s.pose(name) for name in names[:: max(len(names) // 25, 1)]]
        if part == 1:
            s.set_motor(m.joint_names[len(names) // 2], torque=1e-5)
        if part == 2:
            s.clear_wrenches()
    return [*out, s.q, s.velocity]


@pytest.mark.parametrize("leaves", [5, 16, 64])
def test_the_same_motion_with_twigs_as_with_all_records(leaves, twigs):
    m = soft_molecule(600)
    s = twigs(leaves, m, H, NONE)
    kept = twigs(0, m, H, NONE)
    hidden = closed_twigs(s)
    assert hidden > (1 - 4 / leaves) * 600
    assert closed_twigs(kept) == 0
    for a, b in zip(pushed(s), pushed(kept), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert s.active == kept.active
    assert s.error_estimate == pytest.approx(kept.error_estimate, rel=1e-9)
    assert 0 < closed_twigs(s) < hidden
    s._solver._stale = True  # as after Ctrl-C in a review
    for one in (s, kept):
        one.step(9)
    np.testing.assert_allclose(s.poses, kept.poses, rtol=0, atol=1e-12)
    assert closed_twigs(s) > 0


@given(st.integers(0, 10**6), st.integers(3, 14), st.integers(2, 6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_random_trees_of_all_joints(seed, bodies, leaves, floating):
    """Moved, damped, stopped and released: as with all records, and poses as from all coordinates."""
    with pytest.MonkeyPatch.context() as patch:
        m = random_mechanism(seed, bodies=bodies, stiffness=5.0, reference=True, floating=floating)
        if m.nv == 0:
            return
        v, runs = np.zeros(m.nv), []
        v[-1] = 1.0
        for room, most in ((0, leaves), (2**24, leaves)):
            patch.setattr(solvers, "_ROOM", room)
            patch.setattr(solvers, "_TWIG", most)
            s = pliant.AdaptiveSimulation(m, 5e-3, (0, 0, -1), tolerance=1.0, slow=0.3, interval=3)
            s.q = random_q(m, seed, 0.3)
            s.velocity = v
            s.apply_wrench(m.body_names[0], force=(1, 2, 3), point=(0.1, 0, 0), frame="body")
            s.step(20)
            s.set_motor(m.joint_names[-1], torque=0.5) if m.joint_types[-1] != "fixed" else None
            s.step(20)
            runs.append([*(s.pose(name) for name in m.body_names), s.q, s.velocity])
            np.testing.assert_allclose(runs[-1][:-2], s.poses, rtol=0, atol=1e-10)
        for a, b in zip(*runs, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("leaves", [8, 32])
def test_records_of_opened_twigs_are_those_that_were_left_out(leaves, twigs):
    """To the last bit: they are computed from the same numbers in the same order."""
    m = soft_molecule(300)
    s, kept = twigs(leaves, m, H, NONE, keep="bond2*"), twigs(0, m, H, NONE, keep="bond2*")
    for one in (s, kept):
        one.apply_wrench("bond150", force=(0, 1e-3, 0), frame="body")
        one._solver.review()
    ours, theirs, opened = s._solver.clusters, kept._solver.clusters, s._solver.opened
    np.testing.assert_array_equal(opened, kept._solver.opened)
    both = np.flatnonzero((ours.start >= ours.free[1]) & (opened == 0))
    assert len(both) > 10
    for k in both:
        a, b = ours.start[k], theirs.start[k]
        np.testing.assert_array_equal(ours.data[a : a + 143], theirs.data[b : b + 143])


def test_records_that_are_needed_no_more_are_given_up(twigs):
    """Bonds pulled one after the other: records stay few, motion stays the same."""
    m = soft_molecule(2000)
    runs, most = [], []
    for room in (0, 2**24):
        s, used = twigs(16, m, H, NONE, tolerance=0.1, slow=0.1), 0
        s._solver._tidy_above += room
        free = s._solver.clusters.free
        for bond in range(100, 2000, 50):
            s.clear_wrenches()
            s.apply_wrench(f"bond{bond}", force=(0, 0, 3e-4))
            s.step(8)
            used = max(used, int(free[0] - free[1]))
        runs.append(s.q)
        most.append(used)
        assert len(s.active) > 5
    np.testing.assert_allclose(*runs, rtol=0, atol=1e-12)
    assert most[0] < 0.5 * most[1]


def test_most_records_are_not_kept_in_large_trees(twigs):
    """Numbers of records per joint; all would be 269."""
    s = twigs(64, soft_molecule(20_000), H, NONE)
    solver = s._solver
    kept, place = int(solver.clusters.free[1]), int(solver.clusters.free[0])
    assert kept == place
    assert kept < 16 * 20_000
    assert len(solver.clusters.data) > 200 * 20_000


@given(st.integers(0, 10**6), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_effective_inertia_of_dofs(seed, bodies):
    m = random_mechanism(seed, bodies=bodies, reference=True)
    if m.nv == 0:
        return
    rotors = np.random.default_rng(seed).uniform(0, 0.1, m.nv)
    for one in (m, m.replace(armature=rotors)):
        s = pliant.AdaptiveSimulation(one, 1e-3)
        np.testing.assert_allclose(s._solver._effective, adaptive.effective_inertia(one), rtol=1e-8)


def test_states_grow_with_what_moves_and_damaged_ones_are_refused(twigs):
    m = soft_molecule(500)
    s = twigs(8, m, H, NONE)
    rest = s.state
    assert len(rest) < m.nq + 200
    s.apply_wrench("bond500", force=(0, 0, 1e-3))
    s.step(12)
    moving = s.state
    assert len(moving) == len(rest) + 9 * len(s.active)
    s.step(20)
    later = s.state
    s.state = moving
    s.step(20)
    assert s.state == later
    numbers = np.asarray(moving).copy()
    bits = 3 + m.nq + linkage.PAST + 2
    place = bits + np.flatnonzero(numbers[bits:])[0]
    for damaged in (
        numbers[:-1],
        numbers[:5],
        numbers[: bits + 3],
        np.append(numbers, 0.0),
        numbers[None],
        cleared(numbers, place),
    ):
        with pytest.raises(InputError, match="damaged"):
            s.state = type(moving)(moving.fingerprint, damaged)
        assert s.state == later
    s.reset()
    assert s.state == rest


def cleared(numbers: np.ndarray, place: int) -> np.ndarray:
    """Numbers with one of them zero."""
    out = numbers.copy()
    out[place] = 0.0
    return out


_MILLION = """
import pliant
from pliant_benchmarks.harness.process import peak_memory

m = pliant.gallery.molecule(1_000_000).with_stiffness("*", 1e-3, 5e-6)
s = pliant.AdaptiveSimulation(m, 1 / 240, (0, 0, 0))
s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-3))
s.step(20)
print(len(s.active), peak_memory() or 0)
"""


@pytest.mark.slow
def test_a_million_joints_in_2_gb():
    done = subprocess.run([sys.executable, "-c", _MILLION], capture_output=True, text=True, check=True)
    active, peak = done.stdout.split()
    assert int(active) > 20
    assert float(peak) * 2**20 < 2e9
