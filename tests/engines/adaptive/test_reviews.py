"""What rigid clusters miss, against dense equations: at rest, spinning, and in the middle of a motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles import adaptive, newton
from oracles.random_mechanisms import random_mechanism, random_q
from pliant import spatial
from pliant.engines.adaptive import solver as solvers
from pliant.engines.quasistatic import arrays as qs

H, GRAVITY, FORCE = 1e-3, (0.3, -0.4, -9.81), np.array([1.0, 2.0, -3.0])


def reviewed(s) -> float:
    """Worst defect of the present clusters, none of them opened or closed."""
    solver = s._solver
    kept, solver.kept[:] = solver.kept.copy(), 1
    solver.limits = solver.limits._replace(open=np.inf)
    solver._review()
    solver.kept[:] = kept
    return solver.worst


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_a_tree_held_still_misses_all_of_its_accelerations(seed, bodies):
    m = random_mechanism(seed, bodies=bodies, reference=True)
    if m.nv == 0:
        return
    q = random_q(m, seed)
    s = pliant.AdaptiveSimulation(m, H, GRAVITY, start=q)
    s.apply_wrench(m.body_names[-1], force=FORCE)
    M, right = newton.equations(m, q, np.zeros(m.nv), GRAVITY, {m.body_names[-1]: FORCE})
    expected = adaptive.missed(M + adaptive.resistance(m, H), right, np.zeros(m.nv, dtype=bool))
    assert reviewed(s) == pytest.approx(expected, rel=1e-7)


@given(st.integers(0, 10**6), st.integers(2, 7))
@settings(max_examples=25, deadline=None)
def test_a_spinning_cluster_feels_centrifugal_forces(seed, bodies):
    m = random_mechanism(seed, bodies=bodies, reference=True, floating=True)
    q, v = random_q(m, seed), np.zeros(m.nv)
    v[:6] = 3 * np.random.default_rng(seed).normal(size=6)
    s = adaptive.moving(m, q, v, H, GRAVITY, keep="j0")
    s.apply_wrench(m.body_names[-1], force=FORCE)
    assert s.active == ("j0",)
    M, right = newton.equations(m, q, v, GRAVITY, {m.body_names[-1]: FORCE})
    expected = adaptive.missed(
        M + adaptive.resistance(m, H), right - 0.5 * H * m.stiffness * v, adaptive.active_dofs(m, s.active)
    )
    assert reviewed(s) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 7, 8, 9, 10])
def test_a_rigid_joint_among_moving_ones(seed):
    """Two bodies rigid, all other joints moving: their joint's free acceleration in its own inertia."""
    m = random_mechanism(
        seed,
        bodies=6,
        reference=True,
        floating=seed % 2 == 0,
        kinds=("hinge", "slide", "ball", "universal", "bushing"),
    )
    q, v = random_q(m, seed), np.random.default_rng(seed).normal(size=m.nv)
    s = adaptive.moving(m, q, v, H, GRAVITY)
    solver = s._solver
    nodes, leaves = solver.model.nodes, solver.model.tree.leaves
    pairs = [
        k for k in adaptive.closable(s)
        if nodes[k, qs.KIND] == qs.MERGE and nodes[k, qs.LEFT] < leaves and nodes[k, qs.RIGHT] < leaves
        and solver.model.tree.shares[nodes[nodes[k, qs.LEFT], qs.GROUP]] == 1
    ]  # fmt: skip
    assert pairs
    k = pairs[0]
    adaptive.close(s, [k])
    s.apply_wrench(m.body_names[-1], force=FORCE)
    v = s.velocity
    # the middle of the last step, by which a review judges, is the present velocity here
    solver.reduced.linkage.state.u[:] = solver.reduced.linkage.state.v
    M, right = newton.equations(m, q, v, GRAVITY, {m.body_names[-1]: FORCE})
    free = np.linalg.solve(M + adaptive.resistance(m, H), right - 0.5 * H * m.stiffness * v)
    joint = int(m.dof_joint[solver.model.groups[nodes[k, qs.GROUP], qs.DOF]])
    dofs = m.joint_dofs(joint)
    at = pliant.Configuration(m, q)
    child, parent = m.joint_children[joint], m.joint_parents[joint]
    S = at.jacobian(m.body_names[child], "world")[:, dofs]
    own = [spatial_inertia(m, at, body, at.poses[child, :3, 3]) for body in (parent, child)]
    D = S.T @ np.linalg.solve(np.linalg.inv(own[0]) + np.linalg.inv(own[1]), S)
    D += (np.diag(m.armature) + adaptive.resistance(m, H))[dofs, dofs]
    assert reviewed(s) == pytest.approx(free[dofs] @ D @ free[dofs], rel=1e-5)


def spatial_inertia(m, at, body, point):
    """Of a body, linear part first, world axes about a point."""
    pose = at.poses[body]
    arm = spatial.hat(pose[:3, :3] @ m.com[body] + pose[:3, 3] - point)
    turn = pose[:3, :3] @ m.inertia[body] @ pose[:3, :3].T
    return np.block(
        [
            [m.mass[body] * np.eye(3), -m.mass[body] * arm],
            [m.mass[body] * arm, turn - m.mass[body] * arm @ arm],
        ]
    )


def test_records_are_brought_up_to_date_where_something_changed():
    """After a motion the records of closed clusters are those computed from scratch, bit for bit."""
    m = pliant.gallery.molecule(200).with_stiffness("*", 1e-3, 5e-6)
    s = pliant.AdaptiveSimulation(m, 1e-3, GRAVITY, tolerance=0.3, slow=0.05)
    s.apply_wrench(m.body_names[-1], force=(0, 0, 0.01))
    s.step(40)
    s.clear_wrenches()
    s.set_motor(m.joint_names[50], torque=1e-4)
    s.step(41)
    solver = s._solver
    solver.review()
    solver.scatter()
    closed = [k for k in range(solver.model.tree.leaves, len(solver.model.nodes)) if not solver.opened[k]]
    start, data, defect = solver.clusters.start, solver.clusters.data.copy(), solver.clusters.defect.copy()
    assert 0 < len(closed) < len(solver.model.nodes) - solver.model.tree.leaves
    solver._refresh()
    for k in closed:
        if start[k] >= 0:
            rows = slice(start[k], start[k] + 143)
            np.testing.assert_array_equal(solver.clusters.data[rows], data[rows])
        else:
            assert solver.clusters.defect[k] == defect[k]


def test_a_review_that_finds_more_than_there_is_room_for_is_followed_by_another(monkeypatch):
    m = pliant.gallery.molecule(300).with_stiffness("*", 0.0, 0.0)
    found = []
    for room in (8, 1024):
        monkeypatch.setattr(solvers, "_AT_ONCE", room)
        s = pliant.AdaptiveSimulation(m, 1e-3, (0, 0, 0), tolerance=1e-3)
        s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-2))
        s.step()
        found.append((set(s.active), s._solver.reviews))
        assert s.error_estimate <= 1e-3
    assert found[0][1] > 1 == found[1][1]
    assert found[0][0] >= found[1][0] or found[0][0] <= found[1][0]
