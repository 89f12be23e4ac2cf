"""Accelerations of all joints with loops, couplings and tendons, against dense algebra and the assembly tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pliant
from oracles.assembly_tree import GRAVITY, torques
from oracles.linkages import lattice
from oracles.random_mechanisms import random_mechanism, random_q, tied
from pliant.engines.quasistatic.measures import MEASURES
from pliant.engines.quasistatic.solver import Solver
from pliant.errors import InputError, MechanismError
from pliant.mechanism import kinematics
from pliant.mechanism.loop_closure import close_loops
from pliant.statics.inertia import Inertia
from pliant.statics.load_kernels import LOAD_SIZE

KINDS = ("hinge", "slide", "ball", "universal", "cylindrical", "planar", "stack", "bushing", "fixed")
SCALE = 1e-4


def make(m, q=None, forces=None, resist=None, tendon_resist=None, scale=SCALE):
    """Solver with wrenches on bodies, {body: world wrench at its origin}."""
    resist = m.armature if resist is None else resist
    s = Solver(
        m,
        GRAVITY,
        resist,
        np.ones(m.nv),
        MEASURES["relative-joint"],
        1e-3,
        scale,
        tendon_resist=tendon_resist,
    )
    if q is not None:
        s.q[:] = q
    md, rows = s.tree.model, []
    for body, wrench in (forces or {}).items():
        if md.group[body] >= 0:
            leaf = md.tree.first_leaf[md.group[body]]
            rows.append([*wrench, *md.local[body][:3, 3], *np.zeros(6), 1.0, leaf])
    s.set_loads(np.array(rows, dtype=float).reshape(-1, LOAD_SIZE))
    return s


def dense(m, q, forces, resist, tendon_resist=None):
    """Accelerations by the null space of all rows; gaps of loops and couplings are closed in one step."""
    poses = kinematics.link_poses(m, q)
    rows = kinematics.constraint_rows(m, poses)
    gaps = -kinematics.constraint_gaps(m, q, poses) / SCALE
    mass = Inertia(m, q).dense() + np.diag(resist - m.armature)
    torque = torques(m, q, forces, GRAVITY, springs=bool(m.stiffness.any() or len(m.tendons)))
    if tendon_resist is not None:
        pulled = m.tendons.dense(m.nv)
        mass += pulled.T @ (tendon_resist[:, None] * pulled)
    size = np.concatenate(
        [np.tile([1 / m.radius] * 3 + [1.0] * 3, m.topology.loops), np.ones(len(m.couplings))]
    )
    u, sv, vt = np.linalg.svd(size[:, None] * rows * m.dof_unit)
    rank = int((sv > 1e-8).sum())
    found = vt[:rank].T @ ((u[:, :rank].T @ (size * gaps)) / sv[:rank])
    x, free = m.dof_unit * found, m.dof_unit[:, None] * vt[rank:].T
    if free.shape[1]:
        x = x + free @ np.linalg.solve(free.T @ mass @ free, free.T @ (torque - mass @ x))
    return x


def drawn(seed, kinds=KINDS, ratio=1.0):
    """A random mechanism with loops, resistances and forces."""
    rng = np.random.default_rng(seed)
    bodies, loops = int(rng.integers(2, 15)), int(rng.integers(1, 4))
    m = random_mechanism(seed, bodies=bodies, loops=loops, kinds=kinds, stiffness=20.0)
    if m.nv == 0:
        m = random_mechanism(seed, bodies=bodies, loops=loops, kinds=("hinge",), stiffness=20.0)
    factor = ratio ** -rng.uniform(0, 1, bodies)
    m = replace(m, mass=m.mass * factor, inertia=m.inertia * factor[:, None, None])
    forces = {int(b): rng.normal(size=6) for b in rng.integers(0, bodies, size=2)}
    return m, m.armature + rng.uniform(0, 1, m.nv), forces


def resisting(m, seed):
    return np.random.default_rng(seed).uniform(0, 2, len(m.tendons))


def agree(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1.0))


def independent(m, q):
    """Whether rows are clearly independent or redundant: others may be kept or not."""
    rows = m.elimination.scale[: m.elimination.hard, None] * kinematics.constraint_rows(
        m, kinematics.link_poses(m, q)
    )
    values = np.linalg.svd(rows * m.dof_unit, compute_uv=False)
    return not ((values > 1e-11) & (values < 1e-3)).any()


@settings(max_examples=100)
@given(st.integers(0, 100_000), st.integers(0, 2), st.integers(0, 2))
def test_accelerations_are_those_of_dense_algebra(seed, couplings, tendons):
    m, resist, forces = drawn(seed)
    m = tied(m, seed, couplings, tendons, balls=False)
    assume(independent(m, m.reference))
    slow = resisting(m, seed)
    s = make(m, forces=forces, resist=resist, tendon_resist=slow)
    s.step_aba()
    agree(s.accelerations, dense(m, m.reference, forces, resist, slow))


@settings(max_examples=50)
@given(st.integers(0, 100_000), st.sampled_from([0.0, 1e-3, 1.0, 1e4]))
def test_elimination_and_tree_agree(seed, resist):
    m, added, forces = drawn(seed)
    assume(independent(m, m.reference))
    s = make(m, forces=forces, resist=m.armature + resist * added, scale=1.0)
    s.begin()
    expected = s.tree.down().copy()
    s.step_aba()
    agree(s.accelerations, expected)


@pytest.mark.parametrize("name", ["loop", "ladder", "firefighters", "suspension", "flexure_stage"])
def test_elimination_and_tree_agree_in_the_gallery(name):
    """Also where loops are open: both close the same gaps."""
    m = pliant.gallery.make(name)
    for q in (
        m.reference,
        close_loops(m, random_q(m, 0, 0.05)),
        kinematics.move(m, m.reference, np.full(m.nv, 1e-4)),
    ):
        s = make(m, q, {m.body_count - 1: np.ones(6)}, resist=m.armature + 1e-3)
        s.begin()
        expected = s.tree.down().copy()
        s.step_aba()
        agree(s.accelerations, expected, 1e-8)


@pytest.mark.parametrize("cells", [(2, 2), (3, 5)])
def test_lattices_move_as_dense_algebra_says(cells):
    m = lattice(*cells)
    forces = {m.body_count - 1: np.array([0.3, 0.1, -0.4, 0.01, 0.02, 0.0])}
    resist = SCALE * m.stiffness
    s = make(m, forces=forces, resist=resist)
    s.step_aba()
    agree(s.accelerations, dense(m, m.reference, forces, resist))


@pytest.mark.parametrize("n", [16, 32])
def test_wide_lattices(n):
    """Loops of which too many are open at once for the assembly tree: all joints are computed, without error."""
    m = lattice(n, n)
    tip, load = m.body_names[-1], (0, 0, -0.01)
    s = pliant.QuasistaticSimulation(m, 100.0, gravity=(0, 0, 0))
    s.apply_wrench(tip, force=load)
    s.step(3)
    assert len(s.active) == m.joint_count
    assert s.error_bound == 0.0
    assert s.refine(1e-3) == 0.0
    assert s.effort.solves == 3
    s.step(7)
    assert s.violation < 1e-9
    rest = pliant.equilibrium(m, {tip: load})
    assert np.abs(rest.poses - m.reference_poses).max() > 1e-3
    np.testing.assert_allclose(s.poses, rest.poses, atol=1e-7)


def test_loops_that_span_the_whole_mechanism():
    """Forty ball joints between any two bodies: too many ends open at once for the assembly tree."""
    m = random_mechanism(0, bodies=80, loops=40, kinds=("ball",), stiffness=0.0)
    forces, resist = {79: np.ones(6)}, m.armature + 0.1
    s = make(m, forces=forces, resist=resist)
    assert not s.tree.model.adaptive
    s.refine()
    agree(s.accelerations, dense(m, m.reference, forces, resist))


def test_the_gripper_comes_to_rest():
    m = pliant.gallery.gripper()
    tip = m.end_effectors[0]
    s = pliant.QuasistaticSimulation(m, 0.1, gravity=(0, 0, 0))
    s.apply_wrench(tip, force=(5.0, 0, 5.0))
    s.step(2000)
    rest = pliant.equilibrium(m, {tip: (5.0, 0, 5.0)})
    assert np.abs(rest.poses - m.reference_poses).max() > 1e-3
    np.testing.assert_allclose(s.poses, rest.poses, atol=1e-8)


def geared(tendon_damping):
    """Two arms with a gear between their hinges and a tendon over both, one hinge without a spring."""
    b = pliant.Builder("geared")
    for n, x in enumerate((0.0, 0.5)):
        b.body(f"arm{n}", mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02), position=(x, 0, 0))
        b.hinge(f"j{n}", "world", f"arm{n}", anchor=(x, 0, 0), axis=(0, 1, 0), stiffness=5.0 * n)
    b.couple({"j0": 1.0, "j1": 2.0})
    b.tendon("cord", {"j0": 1.0, "j1": -0.5}, stiffness=30.0, damping=tendon_damping, rest=0.1)
    return b.build()


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_couplings_and_tendons_come_to_rest(damping):
    m = geared(damping)
    s = pliant.QuasistaticSimulation(m, 0.05)
    s.step(4000)
    rest = pliant.equilibrium(m, gravity=s.gravity)
    assert np.abs(rest.q).max() > 0.05
    np.testing.assert_allclose(s.q, rest.q, atol=1e-8)
    assert s.q @ [1.0, 2.0] == pytest.approx(0.0, abs=1e-12)


def test_explicit_tendons():
    """One explicit step by hand: the gear leaves one freedom, q1 = -q0 / 2."""
    m, h = geared(2.0), 1e-3
    s = pliant.QuasistaticSimulation(m, h, implicit=False)
    s.step()
    inertia, weight, pull = 0.02 + 0.2**2, 9.81 * 0.2, 30.0 * 0.1
    # along (1, -1/2): the weights turn both arms down, about +y; the tendon pulls by 30 * 0.1 along (1, -1/2)
    expected = (weight * (1 - 0.5) + pull * 1.25) / (inertia * 1.25)
    np.testing.assert_allclose(s.accelerations, [expected, -expected / 2], rtol=1e-12)


def test_rows_survive_copies_of_the_state():
    m = pliant.gallery.ladder(3)
    s = pliant.QuasistaticSimulation(m, 0.01)
    s.step(5)
    other = pliant.QuasistaticSimulation(m, 0.01)
    other.state = s.state
    s.step(5)
    other.step(5)
    assert s.state == other.state


def spine(links, every):
    """A floating chain of hinges about changing axes; every so many links carry a parallelogram."""
    b = pliant.Builder("spine")
    body = {"mass": 0.1, "inertia": (1e-4, 1e-4, 1e-4)}
    for i in range(links):
        b.body(f"link{i}", position=(0.1 * i, 0, 0), **body)
        if i == 0:
            b.free("root", "world", "link0")
        else:
            axis = ((0, 1, 0), (0, 0, 1), (0.6, 0, 0.8))[i % 3]
            b.hinge(f"j{i}", f"link{i - 1}", f"link{i}", anchor=(0.1 * i - 0.05, 0, 0), axis=axis)
        if i % every == 0:
            ends = [(f"link{i}", "left"), ("left", "top"), (f"link{i}", "right"), ("right", "top")]
            at = [(-0.02, 0.0), (-0.01, 0.05), (0.02, 0.0), (0.03, 0.05)]
            for name, x, z in (("left", -0.015, 0.025), ("top", 0.01, 0.05), ("right", 0.025, 0.025)):
                b.body(f"{name}{i}", position=(0.1 * i + x, 0, z), **body)
            for (parent, child), (x, z) in zip(ends, at, strict=True):
                parent = parent if parent.startswith("link") else f"{parent}{i}"
                anchor = (0.1 * i + x, 0, z)
                b.hinge(f"{parent}_{child}{i}", parent, f"{child}{i}", anchor=anchor, axis=(0, 1, 0))
    return b.build()


def test_small_loops_leave_steps_local():
    """The first step computes all joints, those after it, under a local load, the few that matter."""
    m = spine(2000, 20)
    h, tolerance = 1e-4, 0.01
    s = pliant.QuasistaticSimulation(m, h, gravity=(0, 0, 0), tolerance=tolerance)
    s.apply_wrench("link1000", force=(0.0, 0.1, 0.1))
    s.step()
    assert (s.effort.solves, s.effort.active) == (1, m.joint_count)
    s.step(5)
    assert s.effort.solves == 0
    assert 0 < s.effort.active < m.joint_count / 10
    assert s.error_bound <= tolerance
    other = pliant.QuasistaticSimulation(m, h, gravity=(0, 0, 0), tolerance=tolerance)
    other.apply_wrench("link1000", force=(0.0, 0.1, 0.1))
    other.state = s.state
    for one in (s, other):
        one.step(3)
    np.testing.assert_allclose(other.q, s.q, rtol=0, atol=1e-12)
    s.refine()
    found = s.accelerations
    s._solver.step_aba()
    exact = s.accelerations
    assert np.abs(found - exact).max() <= tolerance * np.abs(exact).max()


def test_tendons_on_balls_are_refused():
    b = pliant.Builder("ball")
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.ball("shoulder", "world", "arm", anchor=(0, 0, 0), stiffness=1.0)
    b.tendon("cord", {"shoulder.0": 1.0}, stiffness=1.0)
    with pytest.raises(InputError, match="tendon 'cord' acts on a ball joint"):
        pliant.QuasistaticSimulation(b.build(), 0.01)


def test_joints_whose_axes_coincide_are_refused():
    b = pliant.Builder("gimbal")
    for name in ("inner", "outer"):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.1, 0, 0))
    b.stack(
        "gimbal",
        "world",
        "inner",
        [("hinge", (0, 0, 1), (0, 0, 0)), ("hinge", (0, 1, 0), (0, 0, 0)), ("hinge", (0, 0, 1), (0, 0, 0))],
    )
    b.bushing("far", "world", "outer", anchor=(0.1, 0, 0))
    b.bushing("near", "inner", "outer", anchor=(0.1, 0, 0))
    m = b.build()
    with pytest.raises(MechanismError, match="joint 'gimbal' stands where two of its axes coincide"):
        pliant.QuasistaticSimulation(m, 0.01).step()
    assert pliant.QuasistaticSimulation(m.with_stiffness("gimbal", 1.0), 0.01).step() is None


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_masses_may_differ_a_lot(ratio):
    """Elimination of inertias keeps the digits that inverse inertias of light bodies lose."""
    seen = 0
    for seed in range(40):
        m, resist, forces = drawn(seed, ratio=ratio)
        if not independent(m, m.reference):
            continue
        seen += 1
        s = make(m, forces=forces, resist=resist)
        s.step_aba()
        expected = dense(m, m.reference, forces, resist)
        agree(s.accelerations, expected, 1e-8)
    assert seen > 25
