"""The dense manifold of the oracles: against differences, conserved energy, and the static solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pliant
from oracles import dense, linkages
from oracles.manifold import DenseManifold, Kinematics, dense_closing, difference, rotation_log
from oracles.random_mechanisms import random_mechanism, tied
from pliant.engines.reduced.projection import held_loads
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia
from pliant.statics.loads import collect_loads
from pliant.statics.tangent import Tangent

FREE = ("hinge", "slide", "ball", "universal", "cylindrical", "planar", "stack", "bushing")


def undamped(m: pliant.Mechanism) -> pliant.Mechanism:
    return m.replace(damping=np.zeros(m.nv), tendon_damping=np.zeros(len(m.tendons)))


def closed_motions(m: pliant.Mechanism, q) -> np.ndarray:
    """All motions that loops and couplings allow, orthonormal in radians and radii, (nv, motions)."""
    rows = kinematics.constraint_rows(m, kinematics.link_poses(m, q))
    scale = np.ones(len(rows))
    scale[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] /= m.radius
    _, s, vt = np.linalg.svd(scale[:, None] * rows * m.dof_unit)
    rank = int((s > 1e-9 * s.max(initial=1.0)).sum())
    return (vt[rank:] * m.dof_unit).T


def whole(m: pliant.Mechanism, q=None, loads=None, seed: int | None = None) -> DenseManifold:
    """The manifold of all closed configurations; with a seed, with a random curvature, which changes the chart only."""
    q = m.reference if q is None else q
    basis = closed_motions(m, q)
    rows, closing = dense_closing(m, q)
    curvature = None
    if seed is not None:
        random = np.random.default_rng(seed).normal(size=(basis.shape[1], basis.shape[1], m.nv))
        curvature = 0.2 * (random + random.transpose(1, 0, 2)) * m.dof_unit
    return DenseManifold(m, q, basis, held_loads(m, q) if loads is None else loads, closing, rows, curvature)


CASES = {
    "four-bar": linkages.four_bar,
    "bennett": linkages.bennett,
    "gripper": lambda: pliant.gallery.make("gripper", follower=0.05),
    "suspension": pliant.gallery.suspension,
    "helix": lambda: pliant.gallery.helix(4),
    "random tree": lambda: tied(random_mechanism(3, 4, 0, FREE, reference=True), 3, 2, 2),
    "random loops": lambda: tied(random_mechanism(5, 5, 2, FREE, reference=True), 5, 1, 2),
}
SOME = pytest.mark.parametrize("name", CASES)


@pytest.mark.parametrize("name", [*CASES, "lattice"])
def test_kinematics_are_those_of_the_package(name):
    m = linkages.lattice(6, 3) if name == "lattice" else CASES[name]()
    if name == "lattice":
        assert len(m.solved_tree.backwards)
    step = 0.2 * np.random.default_rng(0).normal(size=m.nv) * m.dof_unit
    q = dense.move(m, m.reference, step)
    poses = kinematics.link_poses(m, q)
    at = Kinematics(m, q)
    np.testing.assert_allclose(at.poses, poses[m.links.body_link], atol=1e-13)
    np.testing.assert_allclose(at.gaps, kinematics.constraint_gaps(m, q, poses), atol=1e-13)
    np.testing.assert_allclose(at.rows, kinematics.constraint_rows(m, poses), atol=1e-13)
    for b in range(m.body_count):
        jacobian = kinematics.link_jacobian(m, poses, int(m.links.body_link[b]))
        np.testing.assert_allclose(at.jacobians[b], jacobian, atol=1e-13)
    np.testing.assert_allclose(difference(m, m.reference, q), step, atol=1e-13)


@SOME
def test_loops_close_and_the_tangent_equals_differences(name):
    m = CASES[name]()
    manifold = whole(m, seed=1)
    for size in (0.0, 0.1):
        y = size * np.random.default_rng(2).normal(size=manifold.k)
        np.testing.assert_allclose(manifold.gaps(y), 0.0, atol=1e-12)
        found, expected = manifold.tangent(y), manifold.tangent_by_differences(y)
        scale = m.dof_unit[:, None]
        np.testing.assert_allclose(found / scale, expected / scale, atol=1e-8)


@SOME
def test_forces_and_inertia_are_those_of_the_package(name):
    m = CASES[name]()
    loads = collect_loads(
        m,
        {m.body_names[-1]: {"force": (3, -2, 1), "torque": (1, 2, 0.5), "point": (0.1, 0, 0.2)}},
        (0, 1, -9),
    )
    manifold = whole(m, loads=loads)
    y = 0.1 * np.random.default_rng(3).normal(size=manifold.k)
    q, T = manifold.joints(y), manifold.tangent(y)
    follower = {
        m.body_names[0]: {"force": (1, 5, 2), "torque": (0, 2, 1), "point": (0, 0.3, 0), "frame": "body"}
    }
    both = collect_loads(m, follower, None)
    every = loads.with_rows(both.rows, both.scale)
    residual = Tangent(m, q, every).residual
    np.testing.assert_allclose(manifold.forces(y, None, follower), -T.T @ residual, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(manifold.mass(y), T.T @ Inertia(m, q).dense() @ T, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["four-bar", "gripper", "random tree"])
def test_limit_springs_and_their_energy(name):
    m = CASES[name]()
    moved = np.abs(
        whole(m).joints(0.2 * np.ones(whole(m).k))[m.dof_coordinate] - m.reference[m.dof_coordinate]
    )
    low = np.where(m.dof_kind == 2, 0.0, m.reference[m.dof_coordinate] - 0.3 * moved)
    high = np.where(m.dof_kind == 2, 0.1, m.reference[m.dof_coordinate] + 0.3 * moved)
    m = m.replace(lower=low, upper=high)
    manifold = whole(m, loads=collect_loads(m, None, (0, 0, -9.81), limits=True))
    y = 0.2 * np.ones(manifold.k)
    q, T = manifold.joints(y), manifold.tangent(y)
    t = Tangent(m, q, manifold.loads)
    np.testing.assert_allclose(manifold.forces(y), -T.T @ t.residual, rtol=1e-9)
    slope = manifold._differences(manifold.potential, y)
    np.testing.assert_allclose(manifold.forces(y), -slope, rtol=1e-5, atol=1e-6 * np.abs(slope).max())
    without = whole(m, loads=collect_loads(m, None, (0, 0, -9.81)))
    assert np.abs(without.forces(y) - manifold.forces(y)).max() > 0.1 * np.abs(manifold.forces(y)).max()


@pytest.mark.parametrize("name", ["four-bar", "gripper", "helix", "random tree"])
def test_undamped_motion_keeps_its_energy(name):
    m = undamped(CASES[name]())
    if name == "random tree":
        m = undamped(random_mechanism(8, 2, 0, ("ball", "universal"), reference=True))
    manifold = whole(m, loads=collect_loads(m, None, (0, 0, -9.81)))
    k = manifold.k
    stiffness = -manifold._differences(manifold.forces, np.zeros(k)).T
    rate = np.sqrt(np.abs(np.linalg.eigvals(np.linalg.solve(manifold.mass(np.zeros(k)), stiffness))).max())
    v = 0.05 * rate * np.random.default_rng(4).normal(size=k)

    def derivative(_, state):
        return np.r_[state[k:], manifold.acceleration(state[:k], state[k:])]

    found = solve_ivp(
        derivative, (0, 2 / rate), np.r_[np.zeros(k), v], method="DOP853", rtol=1e-9, atol=1e-11 * rate
    )
    kinetic = [manifold.kinetic(state[:k], state[k:]) for state in found.y.T]
    total = [a + manifold.potential(state[:k]) for a, state in zip(kinetic, found.y.T, strict=True)]
    assert max(kinetic) > 1.5 * min(kinetic)
    assert np.ptp(total) < 1e-8 * max(kinetic)


def test_damping_takes_what_it_dissipates():
    m = tied(random_mechanism(3, 4, 0, FREE, reference=True), 3, 2, 2)
    m = m.replace(tendon_damping=np.array([3.0, 5.0]))
    manifold = whole(m)
    rng = np.random.default_rng(5)
    y, v = 0.1 * rng.normal(size=manifold.k), rng.normal(size=manifold.k)
    h, rest = 1e-5, manifold.loads.rest

    def lengths(z):
        q = manifold.joints(z)
        x = q[m.dof_coordinate]
        for p in m.ball_primitives:
            d, c = m.primitive_dof[p], m.primitive_coordinate[p]
            conjugate = rest[c : c + 4] * (1, -1, -1, -1)
            x[d : d + 3] = rotation_log(pliant.spatial.quat_multiply(conjugate, q[c : c + 4]))
        return m.tendons.dense(m.nv) @ x

    rates = manifold.tangent(y) @ v
    power = (
        m.damping @ rates**2 + m.tendon_damping @ ((lengths(y + h * v) - lengths(y - h * v)) / (2 * h)) ** 2
    )
    drag = manifold.forces(y, v) - manifold.forces(y)
    np.testing.assert_allclose(-drag @ v, power, rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "size"),
    [("four-bar", 0.3), ("gripper", 0.3), ("suspension", 0.2), ("helix", 1.0), ("random loops", 0.1)],
)
def test_equilibria_are_those_of_the_static_solver(name, size):
    m = CASES[name]()
    body = m.end_effectors[0]
    compliance = np.abs(np.linalg.eigvalsh(pliant.Configuration(m).compliance(body)[:3, :3])).max()
    rng = np.random.default_rng(6)
    force = rng.normal(size=3)
    force *= size * m.radius / compliance / np.linalg.norm(force)
    wrenches = {body: {"force": force, "torque": 0.1 * m.radius * np.roll(force, 1)}}
    expected = pliant.equilibrium(m, wrenches)
    manifold = whole(m, loads=collect_loads(m, None, None))
    y = manifold.equilibrium(wrenches)
    np.testing.assert_allclose(manifold.gaps(y), 0.0, atol=1e-12)
    moved = np.abs(expected.poses - m.reference_poses).max()
    assert moved > 0.05 * m.radius * size
    found = Kinematics(m, manifold.joints(y)).poses
    np.testing.assert_allclose(found, expected.poses, atol=1e-8 * moved)
