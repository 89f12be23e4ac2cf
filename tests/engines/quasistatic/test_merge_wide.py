"""Loops in the assembly tree against a dense KKT solve; closing gaps; the error bound with loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles.assembly_tree import GRAVITY, by_tree, solved, sums, torques, totals
from oracles.random_mechanisms import random_mechanism
from pliant.engines.quasistatic.arrays import DOF, DOFS
from pliant.engines.quasistatic.measures import MEASURES
from pliant.engines.quasistatic.solver import Solver
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia
from pliant.statics.load_kernels import FORCE, LINK, LOAD_SIZE, POINT

SINGLE = ("hinge", "slide", "ball", "universal", "cylindrical", "planar")


def kkt(m, q, torque, resist):
    """Accelerations of all joints from `[M J^T; J 0]`, J the motion of every loop's copy less that of its body."""
    poses = kinematics.link_poses(m, q)
    rows = [
        kinematics.link_jacobian(m, poses, int(a)) - kinematics.link_jacobian(m, poses, int(b))
        for a, b in zip(m.links.loop_copy, m.links.loop_body, strict=True)
    ]
    jacobian = np.concatenate(rows)
    mass = Inertia(m, q).dense() - np.diag(m.armature) + np.diag(resist)
    # only independent rows, so that nothing is left to a least-squares compromise
    _, s, vt = np.linalg.svd(jacobian)
    rank = int((s > 1e-10 * max(s[0], 1.0)).sum())
    free = vt[rank:].T
    if not free.shape[1]:
        return np.zeros(m.nv)
    return free @ np.linalg.solve(free.T @ mass @ free, free.T @ torque)


@settings(max_examples=200)
@given(
    st.integers(0, 100_000),
    st.integers(2, 14),
    st.integers(1, 3),
    st.sampled_from([SINGLE, ("hinge", "ball", "stack", "bushing", "fixed", "free")]),
)
def test_accelerations_equal_a_kkt_solve(seed, bodies, loops, kinds):
    m = random_mechanism(seed, bodies=bodies, loops=loops, kinds=kinds, stiffness=20.0)
    if m.nv == 0 or m.topology.loops == 0:
        return
    rng = np.random.default_rng(seed)
    forces = {int(b): rng.normal(size=6) for b in rng.integers(0, bodies, size=2)}
    resist = rng.uniform(0, 1, m.nv)
    weights = rng.uniform(0.1, 10, m.nv)
    tree = solved(m, m.reference, forces, resist=resist, weights=weights)
    right = torques(m, m.reference, forces, GRAVITY, springs=False) + tree.arrays.joints.torque
    expected = kkt(m, m.reference, right, resist)
    scale = max(np.abs(expected).max(), np.abs(right).max(), 1.0)  # many are locked: nothing should move
    np.testing.assert_allclose(tree.arrays.joints.qdd, expected, rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(
        np.sqrt(totals(tree)), np.sqrt(sums(tree, weights)), rtol=1e-9, atol=1e-8 * scale
    )


@pytest.mark.parametrize("name", ["loop", "flexure_stage", "ladder", "firefighters", "suspension"])
def test_settles_where_statics_says(name):
    m = pliant.gallery.make(name)
    simulation = pliant.QuasistaticSimulation(m, 0.2, tolerance=1e-6)
    simulation.apply_wrench(m.body_names[-1], force=(0.3, 0.2, -0.5))
    simulation.step(1000)
    rest = pliant.equilibrium(m, {m.body_names[-1]: (0.3, 0.2, -0.5)}, gravity=(0, 0, -9.81))
    assert np.abs(simulation.poses - rest.poses).max() < 1e-8 * max(1.0, m.radius)


def closed_chain(links, radius=1.0):
    """A ring of hinges about y with springs, held at one link."""
    b = pliant.Builder("ring")
    angles = np.linspace(0, 2 * np.pi, links, endpoint=False)
    for i, a in enumerate(angles):
        b.body(
            f"link{i}",
            mass=0.1,
            inertia=(1e-4, 1e-3, 1e-3),
            position=(radius * np.cos(a), 0, radius * np.sin(a)),
        )
    b.fixed("base", "world", "link0")
    for i in range(links):
        middle = 0.5 * (angles[i] + 2 * np.pi / links + angles[i])
        at = (radius * np.cos(middle), 0, radius * np.sin(middle))
        b.hinge(
            f"j{i}",
            f"link{i}",
            f"link{(i + 1) % links}",
            anchor=at,
            axis=(0, 1, 0),
            stiffness=500.0,
            damping=0.01,
        )
    return b.build()


@pytest.mark.parametrize("tree", [False, True])
def test_a_ring_stays_closed(tree):
    """The loop ends at a body that is fixed to the world; it is planar, so four of its rows say nothing new."""
    m = closed_chain(30)
    simulation = pliant.QuasistaticSimulation(m, 0.01, tolerance=0.05)
    if tree:
        by_tree(simulation._solver)
    simulation.apply_wrench("link15", force=(0.1, 0, 0.2))
    simulation.step(500)
    assert simulation.effort.solves == (1 if tree else 500)
    gap = kinematics.link_poses(m, simulation.q)
    gap = gap[m.links.loop_copy[0]] - gap[m.links.loop_body[0]]
    assert np.abs(gap).max() < 1e-4
    rest = pliant.equilibrium(m, {"link15": (0.1, 0, 0.2)}, gravity=(0, 0, -9.81))
    assert np.abs(simulation.poses - rest.poses).max() < 0.02


@pytest.mark.parametrize("tree", [False, True])
def test_gaps_are_closed_in_a_few_steps(tree):
    m = pliant.gallery.loop()
    simulation = pliant.QuasistaticSimulation(m, 0.01, gravity=(0, 0, 0), tolerance=1e-9)
    if tree:
        by_tree(simulation._solver)
        simulation.refine()  # else the first step computes all joints
    q = simulation.q
    q[3] += 0.02
    simulation.q = q
    gaps = []
    for _ in range(5):
        poses = kinematics.link_poses(m, simulation.q)
        gaps.append(np.abs(poses[m.links.loop_copy[0]] - poses[m.links.loop_body[0]]).max())
        simulation.step()
    assert gaps[0] > 1e-3
    assert max(gaps[2:]) < 1e-5 * m.radius  # springs bend it back, and every step leaves its curvature


@settings(max_examples=60)
@given(st.integers(0, 100_000), st.integers(6, 25), st.integers(0, 12), st.sampled_from(list(MEASURES)[:4]))
def test_the_bound_holds(seed, bodies, power, measure):
    m = random_mechanism(seed, bodies=bodies, loops=2, kinds=("hinge", "ball", "universal"), stiffness=5.0)
    tolerance = 2.0**-power

    def solver(limit):
        s = Solver(m, GRAVITY, m.armature + 0.01, np.ones(m.nv), MEASURES[measure], limit, rigid=False)
        row = np.zeros((1, LOAD_SIZE))
        row[0, LINK] = s.tree.model.tree.first_leaf[-1]
        row[0, FORCE:POINT] = np.random.default_rng(seed).normal(size=6)
        s.set_loads(row)
        s.refine()
        return s

    exact = solver(1e-300)
    found = solver(tolerance)
    error = (found.accelerations - exact.accelerations) ** 2
    groups = exact.tree.model.groups
    each = [error[d : d + n].sum() for d, n in groups[:, [DOF, DOFS]]]
    size = [(exact.accelerations[d : d + n] ** 2).sum() for d, n in groups[:, [DOF, DOFS]]]
    value = max(each) if measure.endswith("joint") else sum(each)
    scale = 1.0
    if measure.startswith("relative"):
        scale = max(size) if measure.endswith("joint") else sum(size)
    assert np.sqrt(value) <= tolerance * np.sqrt(scale) + 1e-9 * np.sqrt(max(size))


@pytest.mark.parametrize("seed", range(6))
def test_lazy_updates_leave_nothing_behind(seed):
    m = random_mechanism(seed, bodies=20, loops=3, kinds=("hinge", "ball", "universal"), stiffness=5.0)
    options = {"gravity": (0, 0, -1), "tolerance": 0.05}
    stepped, fresh = (pliant.QuasistaticSimulation(m, 0.02, **options) for _ in range(2))
    by_tree(stepped._solver)
    by_tree(fresh._solver)
    stepped.apply_wrench("b19", force=(0.1, 0.2, 0.1))
    stepped.step(7)
    assert stepped.effort.solves == 1
    fresh.apply_wrench("b19", force=(0.1, 0.2, 0.1))
    fresh.state = stepped.state
    stepped.refine(60.0)  # until all is computed
    fresh.refine(60.0)
    scale = np.abs(fresh.accelerations).max()
    np.testing.assert_allclose(stepped.accelerations, fresh.accelerations, atol=1e-8 * scale)
