"""GS17's methods in maximal coordinates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from oracles.constraint_library import AxialLock, BallAndSocket, Dot1, Dot2
from oracles.random_mechanisms import random_mechanism, random_q
from pliant import spatial
from pliant.engines.constrained.gs17 import _rows, _stiffness, _tree
from pliant.engines.constrained.gs17.inverse import effective_inverse_full, effective_inverse_low_rank
from pliant.engines.constrained.gs17.rows import Maximal
from pliant.engines.constrained.gs17.stepper import METHODS, MaximalStepper
from pliant.errors import InputError
from pliant.mechanism import kinematics
from pliant.mechanism.joints import BALL

SEEDS = st.integers(0, 10_000)
SYMMETRIC = ("none", "inertial", "constraint")


def stepper_at(m, q=None, h=1e-3, v=None, **options):
    stepper = MaximalStepper(m, h, **options)
    if q is not None or v is not None:
        q = m.reference if q is None else q
        stepper.set_state(kinematics.link_poses(m, q)[m.links.body_link], v)
    return stepper


def swung(m, angle, h, perturb=0.0, **options):
    """A mechanism that hangs from the origin, turned about y and let go."""
    stepper = MaximalStepper(m, h, **options)
    turn = spatial.pose(orientation=spatial.so3_exp((0, -np.deg2rad(angle), 0)))
    v = np.zeros((m.body_count, 6))
    v[:, 1] = perturb * np.random.default_rng(0).normal(size=len(v))
    stepper.set_state(turn @ stepper.poses, v)
    return stepper


# --- rows


@given(SEEDS)
def test_rows_are_those_of_the_library(seed):
    m = random_mechanism(seed, bodies=5, loops=1, reference=True)
    stepper = stepper_at(m, random_q(m, seed, 0.3))
    mx = stepper.maximal
    stepper._geometry()
    x, R = stepper._x, stepper._R
    lam = np.random.default_rng(seed).normal(size=len(mx.rows))
    for k, (joint, kind, slot) in enumerate(mx.rows):
        i, j = mx.joints[joint, :2]
        pose = x[i], R[i], x[j], R[j]
        si, sj, a, b = (part[k] for part in (mx.table.si, mx.table.sj, mx.table.ai, mx.table.bj))
        found = np.zeros((12, 12))
        given = mx.table, mx.measured, x, R, lam[k]
        _stiffness.add_stiffness(k, *given, found)
        part, weights = slice(None), lam[k : k + 1]
        if kind == _rows.POINT:
            c, part, weights = BallAndSocket(si, sj), slot, lam[k] * np.eye(3)[slot]
        elif kind == _rows.DOT1:
            c = Dot1(a, b, mx.table.offset[k])
        elif kind == _rows.DOT2:
            c = Dot2(si, sj, a, mx.table.offset[k])
        elif kind == _rows.AXIAL:
            c = AxialLock(a)
        else:
            c = None
        if c is not None:
            np.testing.assert_allclose(np.ravel(c.jacobian(*pose)[part]), stepper._J[k], atol=1e-12)
            np.testing.assert_allclose(found, c.geometric_stiffness(*pose, weights), atol=1e-12)
            if kind != _rows.AXIAL:
                np.testing.assert_allclose(c.residual(*pose)[part], stepper._phi[k], atol=1e-12)
        if kind != _rows.POINT:
            first, second = np.zeros((2, 6, 12))
            count = _stiffness.row_factors(k, *given, first, second)
            np.testing.assert_allclose(first[:count].T @ second[:count], found, atol=1e-12)


@given(SEEDS)
def test_jacobians_are_derivatives_of_residuals_and_coordinates_are_found(seed):
    m = random_mechanism(seed, bodies=4, reference=True)
    q = random_q(m, seed, 0.3)
    stepper = stepper_at(m, q)
    mx = stepper.maximal
    stepper._geometry()
    assert np.abs(stepper._phi[mx.springs.rigid]).max(initial=0) < 1e-12
    for joint in mx.measured.joints[:, 0]:
        part = m.joint_coordinates(joint)
        found, known = stepper._q[part], q[part]
        if m.joint_types[joint] in ("ball", "bushing", "free"):
            found, known = found[-4:] * np.sign(found[-4:] @ known[-4:]), known[-4:]
        np.testing.assert_allclose(found, known, atol=1e-9)
    J, start = stepper._J.copy(), (stepper._x.copy(), stepper.quaternion.copy())

    def residual(body, direction, step):
        stepper._x[:], stepper.quaternion[:] = start
        if direction < 3:
            stepper._x[body, direction] += step
        else:
            turn = spatial.quat_exp(step * np.eye(3)[direction - 3])
            stepper.quaternion[body] = spatial.quat_multiply(turn, stepper.quaternion[body])
        stepper._geometry()
        return stepper._phi.copy()

    for body in range(m.body_count):
        for direction in range(6):
            slope = (residual(body, direction, 1e-6) - residual(body, direction, -1e-6)) / 2e-6
            expected = np.zeros(len(J))
            for side in range(2):
                own = mx.joints[mx.rows[:, 0], side] == body
                expected[own] += J[own, 6 * side + direction]
            np.testing.assert_allclose(slope, expected, atol=1e-6)


@given(SEEDS)
def test_coordinates_of_all_joints_are_found(seed):
    m = random_mechanism(seed, bodies=4, reference=True, stiffness=0.0)
    q = random_q(m, seed, 0.3)
    stepper = stepper_at(m, q)
    found = kinematics.link_poses(m, stepper.q)[m.links.body_link]
    np.testing.assert_allclose(found, stepper.poses, atol=1e-9)


# --- the system of a step


def spring_forces(m, q):
    """Generalised forces of springs and tendons."""
    s, rate = np.zeros(m.nv), np.eye(m.nv)
    for p, kind in enumerate(m.primitive_kind):
        d, c = m.primitive_dof[p], m.primitive_coordinate[p]
        if kind == BALL:
            turn = spatial.quat_log(
                spatial.quat_multiply(spatial.quat_conjugate(m.rest[c : c + 4]), q[c : c + 4])
            )
            s[d : d + 3] = turn
            rate[d : d + 3, d : d + 3] = spatial.so3_right_jacobian_inverse(turn)
        else:
            s[d] = q[c] - m.rest[c]
    force = m.stiffness * s
    for t in range(len(m.tendons)):
        dofs, weights = m.tendons.row(t)
        ball = m.dof_kind[dofs] == BALL
        value = weights @ np.where(ball, s[dofs], q[m.dof_coordinate[dofs]])
        np.add.at(force, dofs, m.tendon_stiffness[t] * (value - m.tendon_rest[t]) * weights)
    return -rate.T @ force


def accelerations(m, q, gravity, external):
    """Joint-space oracle: of bodies at rest (n, 6), with springs, loops and couplings."""
    poses = kinematics.link_poses(m, q)
    M, f, jacobians = np.diag(m.armature.astype(float)), spring_forces(m, q), []
    for body in range(m.body_count):
        link = m.links.body_link[body]
        J, R = kinematics.link_jacobian(m, poses, link), poses[link, :3, :3]
        J[:3] -= spatial.hat(R @ m.com[body]) @ J[3:]
        jacobians.append(J)
        inertia = np.zeros((6, 6))
        inertia[:3, :3], inertia[3:, 3:] = m.mass[body] * np.eye(3), R @ m.inertia[body] @ R.T
        M += J.T @ inertia @ J
        f += J.T @ (external[body] + np.r_[m.mass[body] * gravity, 0, 0, 0])
    G = kinematics.constraint_rows(m, poses)
    # Massless directions and repeated rows are left to the pseudo-inverse.
    system = np.block([[M, G.T], [G, np.zeros((len(G), len(G)))]])
    a = np.linalg.lstsq(system, np.r_[f, np.zeros(len(G))], rcond=1e-11)[0][: m.nv]
    return np.array([J @ a for J in jacobians])


@given(SEEDS, st.integers(0, 2), st.sampled_from(METHODS))
def test_accelerations_are_those_of_joint_space(seed, loops, stabilization):
    m = random_mechanism(seed, bodies=4, loops=loops, reference=True)
    rng = np.random.default_rng(seed)
    external, gravity = rng.normal(size=(m.body_count, 6)), rng.normal(size=3)
    found = []
    for h in (8e-5, 4e-5, 2e-5):
        stepper = MaximalStepper(m, h, gravity, stabilization)
        stepper.external[:] = external
        stepper.advance()
        found.append(stepper.v / h)
    # Springs and dampers act over the step: an error of order h, which several steps show. Gaps of rounding size are
    # closed within a step: 1e-15 / h², and more where a loop is nearly singular.
    limit = (found[0] - 6 * found[1] + 8 * found[2]) / 3
    expected = accelerations(m, m.reference, gravity, external)
    np.testing.assert_allclose(limit, expected, atol=1e-3 * np.abs(expected).max() + 1e-2)


@given(SEEDS, st.integers(0, 2), st.sampled_from(SYMMETRIC))
def test_the_tree_and_the_dense_solver_agree(seed, loops, stabilization):
    m = random_mechanism(seed, bodies=6, loops=loops, reference=True)
    v = np.random.default_rng(seed).normal(size=(6, 6))
    tree, dense = (stepper_at(m, v=v, stabilization=stabilization, solver=s) for s in ("tree", "dense"))
    for _ in range(2):
        tree.advance()
        dense.advance()
        # Loops may say nearly the same thing twice; in a tree there is nothing of the kind.
        tolerance = 1e-9 if loops == 0 else 1e-6
        np.testing.assert_allclose(tree.v, dense.v, atol=tolerance * np.abs(dense.v).max())
        if loops == 0:
            np.testing.assert_allclose(
                tree.multipliers, dense.multipliers, atol=1e-8 * np.abs(dense.multipliers).max()
            )


@given(SEEDS)
def test_low_rank_steps_are_full_steps(seed):
    m = random_mechanism(seed, bodies=6, reference=True)
    v = np.random.default_rng(seed).normal(size=(6, 6))
    full, low = (stepper_at(m, v=v, h=1e-2, stabilization=s) for s in ("full", "low-rank"))
    for _ in range(3):
        full.advance()
        low.advance()
        np.testing.assert_allclose(low.v, full.v, atol=1e-8 * np.abs(full.v).max())


def test_both_inverses_of_a_ball_chain_agree():
    rng, n = np.random.default_rng(0), 20
    A = rng.normal(size=(n, 3, 3))
    inertia = A @ A.transpose(0, 2, 1) + 0.5 * np.eye(3)
    ends = np.stack([np.arange(n) - 1, np.arange(n)], axis=1)
    si, sj, force = rng.normal(size=(3, n, 3))
    sj[3] = 0.0
    arguments = 0.01, rng.uniform(0.1, 1, n), inertia, ends, si, sj, 50 * force
    full, low = effective_inverse_full(*arguments), effective_inverse_low_rank(*arguments)
    np.testing.assert_allclose(low, full, atol=1e-9 * np.abs(full).max())
    out = np.zeros_like(low)
    for _ in range(2):
        np.testing.assert_array_equal(effective_inverse_low_rank(*arguments, out), low)


def test_a_semidefinite_system_is_solved_as_far_as_it_can_be():
    rng = np.random.default_rng(0)
    G = rng.normal(size=(6, 4))
    G[:, 2] *= 1e4
    S = G @ G.T
    b = S @ rng.normal(size=6)
    x = b.copy()
    _tree.semidefinite_solve(S.copy(), x, S.diagonal().copy(), 1e-11)
    np.testing.assert_allclose(S @ x, b, atol=1e-8 * np.abs(b).max())
    assert (x == 0).sum() == 2


# --- motion


def pendulum(kind="hinge", amplitude=0.05):
    b = pliant.Builder("pendulum")
    b.body("bob", mass=2.0, inertia=(0.1, 0.2, 0.3), position=(np.sin(amplitude), 0, -np.cos(amplitude)))
    if kind == "hinge":
        b.hinge("pivot", "world", "bob", anchor=(0, 0, 0), axis=(0, 1, 0))
    elif kind == "ball":
        b.ball("pivot", "world", "bob", anchor=(0, 0, 0))
    else:
        b.bushing("pivot", "world", "bob", anchor=(0, 0, 0), stiffness=[1e8] * 3 + [0] * 3)
    return b.build()


@pytest.mark.parametrize("kind", ["hinge", "ball", "bushing"])
@pytest.mark.parametrize("stabilization", METHODS)
def test_the_period_of_a_pendulum(stabilization, kind):
    stepper = MaximalStepper(pendulum(kind), 1e-3, stabilization=stabilization)
    x = [stepper.x[0, 0]]
    for _ in range(2800):
        stepper.advance()
        x.append(stepper.x[0, 0])
    x = np.array(x)
    k = np.flatnonzero(x[:-1] * x[1:] < 0)
    crossings = k + x[k] / (x[k] - x[k + 1])
    period = 2 * np.pi * np.sqrt(2.2 / (2 * 9.81)) * (1 + 0.05**2 / 16)
    assert 2e-3 * np.diff(crossings).mean() == pytest.approx(period, rel=2e-4)
    assert stepper.effort == (2800, 2800, 0)
    assert stepper.violation < 1e-6


def energy_lost(stabilization, seconds, **options):
    """Share of peak kinetic energy lost by a 100 kg pendulum on a cable (GS17 Fig. 8), over the last swing."""
    m = pliant.gallery.cable(20, 100.0, length=10.0, damping=0.0)
    stepper = swung(m, 45, 0.01, stabilization=stabilization, **options)
    energy = []
    for _ in range(round(seconds / 0.01)):
        stepper.advance()
        energy.append(stepper.kinetic)
    swing = round(3.4 / 0.01)  # half a period
    return 1 - max(energy[-swing:]) / max(energy[:swing])


def test_little_energy_is_lost_to_damping_of_constraints_in_a_few_swings():
    assert 0 < energy_lost("constraint", 10) < 0.004


@pytest.mark.slow
def test_constraint_damping_loses_no_more_energy_than_printed():
    assert 0 < energy_lost("constraint", 40) < 0.015  # GS17: 2 %


@pytest.mark.slow
def test_full_geometric_stiffness_loses_much_energy():
    assert 0.3 < energy_lost("full", 40) < 0.45  # GS17: nearly 40 %


@pytest.mark.slow
def test_inertial_damping_lies_between():
    assert 0.1 < energy_lost("inertial", 40) < 0.25


def spinning(seconds, h):
    b = pliant.Builder("stone")
    b.body("stone", mass=2.0, inertia=(0.1, 0.2, 0.25), com=(0.1, 0.0, 0.2))
    b.free("free", "world", "stone")
    stepper = MaximalStepper(b.build(), h, gravity=(0, 0, 0))
    stepper.set_state(stepper.poses, [[0.1, 0, 0, 0.1, 5.0, 0.1]])  # about the middle axis, which tumbles
    energy, momentum, worst = stepper.kinetic, stepper.angular_momentum, np.zeros(2)
    for _ in range(round(seconds / h)):
        stepper.advance()
        worst = np.maximum(
            worst,
            [
                abs(stepper.kinetic / energy - 1),
                float(np.linalg.norm(stepper.angular_momentum - momentum) / np.linalg.norm(momentum)),
            ],
        )
    return worst


def test_a_tumbling_body_keeps_energy_and_angular_momentum():
    energy, momentum = spinning(5, 0.01)
    assert energy < 1e-10
    assert momentum < 0.002


@pytest.mark.slow
def test_a_tumbling_body_keeps_energy_and_angular_momentum_for_long():
    energy, momentum = spinning(60, 0.01)
    assert energy < 1e-10
    assert momentum < 0.002


def test_a_free_chain_keeps_momentum():
    b = pliant.Builder("chain")
    for k in range(4):
        b.body(f"b{k}", mass=1.0, inertia=(0.01, 0.02, 0.015), position=(k, 0, 0))
    b.free("free", "world", "b0")
    b.ball("j1", "b0", "b1", anchor=(0.5, 0, 0), stiffness=1.0)
    b.hinge("j2", "b1", "b2", anchor=(1.5, 0, 0), axis=(0, 0, 1), stiffness=1.0)
    b.universal("j3", "b2", "b3", anchor=(2.5, 0, 0), axes=((0, 1, 0), (0, 0, 1)))
    v = 0.5 * np.random.default_rng(0).normal(size=(4, 6))
    stepper = stepper_at(b.build(), v=v, h=1e-3, stabilization="none", gravity=(0, 0, 0))
    linear, angular = stepper.v[:, :3].sum(axis=0), stepper.angular_momentum
    stepper.advance(1000)
    np.testing.assert_allclose(stepper.v[:, :3].sum(axis=0), linear, atol=1e-10)
    np.testing.assert_allclose(stepper.angular_momentum, angular, atol=2e-3 * float(np.linalg.norm(angular)))


@pytest.mark.parametrize("kind", ["ball", "hinge", "bushing"])
@pytest.mark.parametrize("h", [0.01, 1 / 60])
def test_inertial_damping_holds_a_million_to_one(kind, h):
    m = pliant.gallery.cable(10, 1e5, kind=kind, damping=0.0)
    stepper = swung(m, 45, h, perturb=0.3, stabilization="inertial")
    height = m.mass @ stepper.x[:, 2] / m.total_mass
    for _ in range(round(3 / h)):
        stepper.advance()
        assert stepper.violation < 0.01
        energy = stepper.kinetic / (9.81 * m.total_mass) + m.mass @ stepper.x[:, 2] / m.total_mass
        assert energy - height < 0.02
    assert stepper.damping[:, 3:].max() > 0
    assert not stepper.damping[:, :3].any()


def test_damping_of_constraints_needs_rows_to_act_on():
    m = pliant.gallery.cable(10, 100.0, kind="ball", stiffness=0.0)
    peaks = []
    for augment in (False, True):
        stepper = swung(m, 45, 0.01, perturb=0.3, stabilization="constraint", augment=augment)
        energy = []
        for _ in range(200):
            stepper.advance()
            energy.append(stepper.kinetic)
        peaks.append(max(energy))
    fall = 9.81 * 100 * 2.1 * (1 - np.cos(np.pi / 4))
    assert peaks[0] > 2 * fall
    assert peaks[1] < 1.05 * fall


def four_bar():
    b = pliant.Builder("four-bar")
    for name, start, end in (
        ("crank", (0, 0), (0.6, 0.8)),
        ("coupler", (0.6, 0.8), (2.5, 2)),
        ("rocker", (2.5, 2), (2, 0)),
    ):
        p, q = np.array([start[0], 0, start[1]]), np.array([end[0], 0, end[1]])
        length = float(np.linalg.norm(q - p))
        turn = np.arctan2(*(q - p)[[0, 2]])
        b.body(
            name,
            mass=length,
            inertia=(length**3 / 12, length**3 / 12, 1e-3),
            position=(p + q) / 2,
            orientation=spatial.so3_exp((0, turn, 0)),
        )
    axis = (0, 1, 0)
    b.hinge("a", "world", "crank", anchor=(0, 0, 0), axis=axis)
    b.hinge("b", "crank", "coupler", anchor=(0.6, 0, 0.8), axis=axis)
    b.hinge("c", "coupler", "rocker", anchor=(2.5, 0, 2), axis=axis)
    b.hinge("d", "world", "rocker", anchor=(2, 0, 0), axis=axis)
    return b.build()


@pytest.mark.parametrize(
    ("stabilization", "solver"),
    [("inertial", "tree"), ("none", "tree"), ("none", "dense"), ("full", "dense")],
)
def test_a_planar_loop_of_hinges_says_things_twice_and_still_moves(stabilization, solver):
    m = four_bar()
    stepper = MaximalStepper(m, 1e-3, stabilization=stabilization, solver=solver)
    energy = 9.81 * m.mass @ stepper.x[:, 2]
    for _ in range(10):
        stepper.advance(200)
        assert stepper.violation < 1e-4
        total = stepper.kinetic + 9.81 * m.mass @ stepper.x[:, 2]
        # Geometric stiffness costs energy.
        assert total == pytest.approx(energy, rel=0.02 if stabilization != "full" else 0.15)
        assert np.abs(stepper.x[:, 1]).max() < 1e-9
    assert stepper.kinetic > 1e-3


@pytest.mark.parametrize("solver", ["tree", "dense"])
def test_couplings_and_tendons_are_held(solver):
    b = pliant.Builder("gears")
    for k in range(3):
        b.body(f"wheel{k}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(k, 0, 0))
        b.hinge(f"axle{k}", "world", f"wheel{k}", anchor=(k, 0, 0), axis=(0, 0, 1))
    b.couple({"axle0": 1.0, "axle1": 2.0}, offset=0.0)
    b.tendon("belt", {"axle1": 1.0, "axle2": -1.0}, stiffness=5.0, damping=0.01)
    stepper = MaximalStepper(b.build(), 1e-3, solver=solver, stabilization="none")
    stepper.external[0, 5] = 1.0
    stepper.advance(1000)
    q = stepper.q
    assert q[0] + 2 * q[1] == pytest.approx(0, abs=1e-6)
    # The belt pulls the third wheel along: what the torque did, all together, is in the momentum.
    w = stepper.v[:, 5]
    assert 0.1 * (w[0] - 0.5 * w[1] - 0.5 * w[2]) == pytest.approx(1.0, rel=1e-6)
    assert abs(q[1] - q[2]) > 0.01


def test_springs_bring_joints_to_rest_where_statics_says():
    m = pliant.gallery.cable(4, 1.0, kind="universal", stiffness=5.0, damping=1.0)
    stepper = MaximalStepper(m, 0.05)
    load = {"load": (2.0, 1.0, 0.0)}
    stepper.external[m.body_index("load"), :3] = load["load"]
    assert not m.com[m.body_index("load")].any()
    stepper.advance(2000)
    found = pliant.equilibrium(m, load, gravity=(0, 0, -9.81))
    np.testing.assert_allclose(stepper.poses, found.poses, atol=1e-5)


def test_multipliers_are_the_wrench_on_the_child_at_the_joint():
    b = pliant.Builder("beam")
    b.body("beam", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(1.0, 0, 0), com=(0.5, 0, 0))
    b.fixed("clamp", "world", "beam")
    b.body("tip", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(3.0, 0, 0))
    b.hinge("pin", "beam", "tip", anchor=(3.0, 0, 0), axis=(0, 1, 0))
    m = b.build()
    stepper = MaximalStepper(m, 0.01)
    stepper.advance(5)
    np.testing.assert_allclose(stepper.multipliers[1], [0, 0, 9.81, 0, 0, 0], atol=1e-9)
    # The clamp's frame is at the child's origin, x = 1: weights at 1.5 and 3.
    at = m.reference_poses[0] @ m.child_frames[0]
    arm = 2 * 9.81 * (1.5 - at[0, 3]) + 9.81 * (3.0 - at[0, 3])
    np.testing.assert_allclose(stepper.multipliers[0], [0, 0, 29.43, 0, -arm, 0], atol=1e-9)


# --- refusals


def test_what_cannot_be_done_is_said():
    m = pendulum()
    for stabilization in ("full", "low-rank"):
        with pytest.raises(InputError, match=r'use solver="dense"'):
            MaximalStepper(m, 0.01, stabilization=stabilization, solver="tree")
    with pytest.raises(InputError, match="poses must be"):
        MaximalStepper(m, 0.01).set_state(np.eye(4))


@pytest.mark.parametrize(
    "stack",
    [
        [("hinge", (0, 0, 1), (0, 0, 0)), ("hinge", (0, 0, 1), (0, 0, 0))],
        [("ball", (0, 0, 1), (0, 0, 0)), ("hinge", (0, 0, 1), (0, 0, 0))],
        [("slide", (1, 0, 0), (0, 0, 0)), ("slide", (1, 0, 0), (0, 0, 0))],
    ],
)
def test_a_joint_whose_dofs_repeat_each_other_is_named(stack):
    b = pliant.Builder("odd")
    b.body("body", mass=1.0, inertia=(1, 1, 1))
    b.stack("twice", "world", "body", stack)
    with pytest.raises(InputError, match=r"joint 'twice'.*newmark"):
        Maximal(b.build())


@pytest.mark.parametrize(
    ("stabilization", "solver"), [("none", "tree"), ("none", "dense"), ("full", "dense")]
)
def test_nonsense_ends_steps_and_raises_nothing(stabilization, solver):
    stepper = MaximalStepper(pendulum(), 0.01, stabilization=stabilization, solver=solver)
    assert stepper.finite
    before = stepper.state
    stepper.external[:] = np.nan
    assert stepper.advance(3) == 0
    assert stepper.finite
    assert np.array_equal(stepper.state, before)
