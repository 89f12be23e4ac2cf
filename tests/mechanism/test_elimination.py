"""Elimination along the tree, rows of loops, couplings and tendons included, against dense algebra."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pliant
from oracles import linkages
from oracles.random_mechanisms import random_mechanism, tied
from pliant import gallery
from pliant.mechanism import border_kernels, kinematics
from pliant.mechanism import elimination_kernels as kernels
from pliant.mechanism.border import make_constraints, make_system
from pliant.mechanism.border_kernels import join_system
from pliant.mechanism.joints import SLIDE
from pliant.mechanism.loop_closure import close_loops


def extended(matrix):
    """Solver of a dense system: LU decomposition with row exchanges in extended precision."""
    lu = matrix.astype(np.longdouble)
    n = len(lu)
    order = np.arange(n)
    for j in range(n):
        p = j + int(np.argmax(np.abs(lu[j:, j])))
        lu[[j, p]], order[[j, p]] = lu[[p, j]], order[[p, j]]
        lu[j + 1 :, j] /= lu[j, j]
        lu[j + 1 :, j + 1 :] -= lu[j + 1 :, j, None] * lu[j, j + 1 :]

    def solve(right):
        x = right[order].astype(np.longdouble)
        for j in range(n):
            x[j + 1 :] -= lu[j + 1 :, j] * x[j]
        for j in range(n - 1, -1, -1):
            x[j] /= lu[j, j]
            x[:j] -= lu[:j, j] * x[j]
        return x

    return solve


class System:
    """A random matrix on a mechanism's tree, dense and for the kernels, at its reference pose."""

    def __init__(self, m, seed, stiffness=None, symmetric=True, negative=False, tolerance=1e-9, load=0.1):
        rng, plan = np.random.default_rng(seed), m.elimination
        self.plan, self.tree, n, nv = plan, plan.tree, len(m.links), m.nv
        self.unit = np.array(m.dof_unit)
        poses = kinematics.link_poses(m, m.reference)
        jacobian = np.array([kinematics.link_jacobian(m, poses, k) for k in range(n)]).reshape(n, 6, nv)
        owner, block = np.zeros(nv, dtype=int), np.zeros((nv, 3))
        self.H = np.zeros((nv, nv))
        screw, turned, tangent = np.zeros((nv, 6)), np.zeros((nv, 6)), np.zeros((n, 6, 6))
        inside = np.eye(n, dtype=bool)
        for k in range(n - 1, -1, -1):
            if m.links.parent[k] >= 0:
                inside[m.links.parent[k]] |= inside[k]
        for k in range(n):
            d, size = self.tree.dof[k], self.tree.dofs[k]
            own = slice(d, d + size)
            owner[own] = k
            root = rng.normal(size=(size, size))
            stiff = root @ root.T + np.eye(size) if stiffness is None else np.diag(stiffness[own])
            block[own, :size] = stiff
            self.H[own, own] += stiff
            root = rng.normal(size=(6, 6))
            tangent[k] = (3.0 if negative else -load) * root @ root.T
            if not symmetric:
                tangent[k] += 0.1 * rng.normal(size=(6, 6))
                turned[own] = 0.1 * rng.normal(size=(size, 6))
            screw[own] = jacobian[k][:, own].T
            self.H -= jacobian[k].T @ tangent[k] @ jacobian[k]
        # A wrench that turns with its joint acts, seen from all links before it, about their own origins.
        for k in range(n):
            above = m.links.parent[k]
            for d in range(self.tree.dof[k], self.tree.dof[k] + self.tree.dofs[k]):
                at = above
                while at >= 0:
                    arm = poses[k, :3, 3] - poses[at, :3, 3]
                    wrench = np.r_[turned[d, :3], turned[d, 3:] + np.cross(arm, turned[d, :3])]
                    for e in range(self.tree.dof[at], self.tree.dof[at] + self.tree.dofs[at]):
                        self.H[e, d] -= screw[e] @ wrench
                    at = m.links.parent[at]
        self.A = plan.scale[:, None] * np.concatenate(
            [kinematics.constraint_rows(m, poses), m.tendons.dense(nv)]
        )
        give = np.zeros(len(plan.scale))
        give[plan.hard :] = (plan.scale[plan.hard :] ** 2) / m.tendon_stiffness
        position = np.ascontiguousarray(poses[:, :3, 3])
        self.matrix = kernels.Matrix(position, screw, turned, np.zeros((nv, 6)), tangent, block, give)
        self.fronts, self.motion = plan.allocate()
        soft = np.ones(len(give), dtype=np.int64)
        kernels.choose_rows(
            self.tree, self.fronts, position, screw, m.dof_unit, tolerance, tolerance, plan.hard, soft
        )
        self.negative = kernels.factor(self.tree, self.fronts, self.matrix, kernels.GENERAL)

    def solve(self, force, gap):
        step, multipliers = np.zeros((1, len(force))), np.zeros((1, len(gap)))
        scratch = np.zeros((3, len(gap))), np.zeros((2, len(force)))
        rights = force[None].copy(), gap[None].copy()
        self.error = kernels.solve_many(
            self.tree,
            self.fronts,
            self.matrix,
            *rights,
            self.motion,
            *scratch,
            self.unit,
            kernels.CORRECTIONS,
            step,
            multipliers,
        )
        return step[0], multipliers[0]

    def dense(self, force, gap):
        """Solution of the kept rows' system: LU decomposition in extended precision, refined until it stands."""
        kept = self.fronts.kept == 1
        rows, give = self.A[kept], self.matrix.give[kept]
        system = np.block([[self.H, rows.T], [rows, -np.diag(give)]])
        right, scale = np.r_[force, gap[kept]], 1 / np.sqrt(np.abs(system).max(axis=1, initial=1e-30))
        solve, x, previous = (
            extended(scale[:, None] * system * scale),
            np.zeros(len(right), np.longdouble),
            np.inf,
        )
        for _ in range(20):
            change = scale * solve(scale * (right - system.astype(np.longdouble) @ x))
            x += change
            left = np.abs(change[: len(force)]).max(initial=0)
            if left <= 1e-14 * np.abs(x[: len(force)]).max(initial=0) or left > previous:
                break
            previous = left
        return x[: len(force)].astype(float), system


@given(
    seed=st.integers(0, 10**6),
    loops=st.integers(0, 12),
    couplings=st.integers(0, 2),
    tendons=st.integers(0, 2),
    symmetric=st.booleans(),
)
def test_motions_are_those_of_dense_algebra(seed, loops, couplings, tendons, symmetric):
    kinds = ("hinge", "ball", "bushing", "universal", "slide", "free")
    m = tied(random_mechanism(seed, 8, loops, kinds=kinds), seed, couplings, tendons)
    system = System(m, seed, symmetric=symmetric)
    rng = np.random.default_rng(seed)
    force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
    hard = system.A[: system.plan.hard]
    values = np.linalg.svd(hard, compute_uv=False)
    # A row that is nearly redundant may be kept or not.
    assume(not ((values > 1e-11) & (values < 1e-6)).any())
    assert system.fronts.kept[: system.plan.hard].sum() == (values > 1e-9).sum()
    step, multipliers = system.solve(force, gap)
    expected, _ = system.dense(force, gap)
    size = np.abs(expected).max(initial=1.0)
    assert np.abs(step - expected).max(initial=0.0) < 1e-8 * size
    balance = system.H @ step + system.A.T @ multipliers - force
    assert np.abs(balance).max(initial=0.0) < 1e-7 * max(1.0, np.abs(multipliers).max(initial=0.0)) * size
    moved = system.A @ step - system.matrix.give * multipliers - gap
    assert np.abs(moved).max(initial=0.0) < 1e-9 * size


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 50), ties=st.integers(0, 2))
def test_lower_triangles_of_definite_matrices_suffice(seed, loops, ties):
    m = tied(
        random_mechanism(seed, 12, loops, kinds=("hinge", "ball", "universal", "slide")), seed, ties, ties
    )
    system = System(m, seed)
    rng = np.random.default_rng(seed)
    force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
    whole = system.solve(force, gap)
    assert kernels.factor(system.tree, system.fronts, system.matrix, kernels.DEFINITE) == 0
    lower = system.solve(force, gap)
    for a, b in zip(lower, whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(b).max(initial=1.0))
    expected, _ = system.dense(force, gap)
    assert np.abs(lower[0] - expected).max(initial=0.0) < 1e-8 * np.abs(expected).max(initial=1.0)


@given(seed=st.integers(0, 10**6), loops=st.integers(1, 8), ties=st.integers(0, 1), share=st.floats(0.1, 0.6))
def test_joints_a_million_times_softer_than_others_cost_no_digits(seed, loops, ties, share):
    """Pivots of such joints are small, until loops through them close: corrections bring the digits back."""
    m = tied(
        random_mechanism(seed, 8, loops, kinds=("hinge", "universal", "bushing", "slide")), seed, ties, ties
    )
    rng = np.random.default_rng(seed)
    soft = (rng.random(m.joint_count) < share)[m.dof_joint]
    system = System(m, seed, stiffness=np.where(soft, 1e-6, 10.0 ** rng.uniform(0, 2, size=m.nv)), load=0.0)
    force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
    step, _ = system.solve(force, gap)
    expected, _ = system.dense(force, gap)
    assert np.abs(step - expected).max(initial=0.0) < 1e-8 * np.abs(expected).max(initial=1.0)


# --- accuracy: springs far apart, many loops

KINDS = (kernels.GENERAL, kernels.SYMMETRIC, kernels.DEFINITE)
MANY = {
    "seed": st.integers(0, 10**6),
    "loops": st.integers(0, 50),
    "ties": st.integers(0, 2),
    "kind": st.sampled_from(KINDS),
}


def check_accuracy(m, seed, stiffness, kind):
    """Motions to 1e-8 of refined dense algebra, and as many rows as their rank, for gaps that forces of one open."""
    system = System(m, seed, stiffness=stiffness, load=0.0)
    values = np.linalg.svd(system.A[: system.plan.hard] * m.dof_unit, compute_uv=False)
    assume(not ((values > 1e-12) & (values < 1e-5)).any())
    assert system.fronts.kept[: system.plan.hard].sum() == (values > 1e-8).sum()
    rng = np.random.default_rng(seed)
    force, gap = rng.normal(size=m.nv), system.A @ (rng.normal(size=m.nv) / stiffness)
    assert system.negative == 0
    step, _ = system.solve(force, gap)
    if kind != kernels.GENERAL and kernels.factor(system.tree, system.fronts, system.matrix, kind) == 0:
        lower, _ = system.solve(force, gap)
        step = lower if system.error < 1e-6 else step  # as solvers do
    assert system.error < 1e-6 or kind != kernels.GENERAL
    expected, _ = system.dense(force, gap)
    off = np.abs((step - expected) / m.dof_unit).max(initial=0.0)
    least = 1e-3 / (stiffness * m.dof_unit**2).max()  # of rigid mechanisms
    assert off < 1e-8 * np.abs(expected / m.dof_unit).max(initial=least)


def check_springs(seed, loops, ties, kind):
    """Every joint a billion times softer or stiffer than others, or anything between."""
    kinds = ("hinge", "slide", "universal", "bushing", "ball")
    m = tied(random_mechanism(seed, 15, loops, kinds=kinds), seed, ties, ties)
    rng = np.random.default_rng(seed)
    either = np.where(rng.random(m.joint_count) < 0.5, -4.5, 4.5)
    power = either if rng.random() < 0.5 else rng.uniform(-4.5, 4.5, size=m.joint_count)
    check_accuracy(m, seed, (10.0**power)[m.dof_joint] / m.dof_unit**2, kind)


def check_slides(seed, loops, ties, kind):
    """Slides of 1e10 N/m beside hinges of 10 N m/rad."""
    m = tied(random_mechanism(seed, 15, loops, kinds=("hinge", "slide", "bushing")), seed, ties, ties)
    check_accuracy(m, seed, np.where(m.dof_kind == SLIDE, 1e10, 10.0), kind)


@settings(max_examples=12)
@given(**MANY)
def test_springs_a_billion_apart(seed, loops, ties, kind):
    check_springs(seed, loops, ties, kind)


@settings(max_examples=12)
@given(**MANY)
def test_stiff_slides_beside_soft_hinges(seed, loops, ties, kind):
    check_slides(seed, loops, ties, kind)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_springs, check_slides])
@settings(max_examples=300, deadline=None)
@given(**MANY)
def test_springs_far_apart_in_hundreds_of_mechanisms(check, seed, loops, ties, kind):
    check(seed, loops, ties, kind)


@given(seed=st.integers(0, 10**6), loops=st.integers(1, 8), kind=st.sampled_from(KINDS))
def test_a_solution_is_right_or_known_to_be_wrong(seed, loops, kind):
    """Joints 1e12 times softer than others: where corrections do not help, the error that is returned says so."""
    m = random_mechanism(seed, 8, loops, kinds=("hinge", "universal", "bushing", "slide"))
    rng = np.random.default_rng(seed)
    soft = (rng.random(m.joint_count) < 0.4)[m.dof_joint]
    system = System(m, seed, stiffness=np.where(soft, 1e-12, 10.0 ** rng.uniform(0, 2, size=m.nv)), load=0.0)
    kernels.factor(system.tree, system.fronts, system.matrix, kind)
    force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
    step, _ = system.solve(force, gap)
    expected, _ = system.dense(force, gap)
    off = np.abs((step - expected) / m.dof_unit).max() / np.abs(expected / m.dof_unit).max()
    assert off < 1e-6 or system.error > 1e-6
    assert system.error < 1e-6 or off > 1e-12


@pytest.mark.parametrize(("power", "wrong"), [(6, False), (9, False), (12, True)])
def test_some_solutions_are_wrong_only_beyond_a_billion(power, wrong):
    errors = []
    for seed in range(60):
        m = random_mechanism(seed, 8, 1 + seed % 8, kinds=("hinge", "universal", "bushing", "slide"))
        rng = np.random.default_rng(seed)
        soft = (rng.random(m.joint_count) < 0.4)[m.dof_joint]
        stiff = 10.0 ** rng.uniform(0, 2, size=m.nv)
        system = System(m, seed, stiffness=np.where(soft, 10.0**-power, stiff), load=0.0)
        system.solve(rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv))
        errors.append(system.error)
    assert (max(errors) > 1e-6) == wrong


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 6), ties=st.integers(0, 2), symmetric=st.booleans())
def test_residuals_are_those_of_dense_algebra(seed, loops, ties, symmetric):
    m = tied(
        random_mechanism(seed, 8, loops, kinds=("hinge", "ball", "universal", "slide")), seed, ties, ties
    )
    system = System(m, seed, symmetric=symmetric)
    rng = np.random.default_rng(seed)
    force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
    step, multipliers = np.zeros(m.nv), np.zeros(len(gap))
    system.motion.force[:] = 0.0
    kernels.solve(system.tree, system.fronts, system.matrix, force, gap, system.motion, step, multipliers)
    out, given = np.zeros(m.nv), rng.normal(size=m.nv)
    kernels.force_residual(system.tree, system.matrix, given, system.motion, step, multipliers, out)
    expected = given - system.H @ step - system.A.T @ multipliers
    np.testing.assert_allclose(out, expected, atol=1e-9 * np.abs(expected).max(initial=1.0))


def check_negative(seed, loops, ties):
    m = tied(
        random_mechanism(seed, 12, loops, kinds=("hinge", "ball", "universal", "bushing")), seed, ties, ties
    )
    system = System(m, seed, negative=True)
    rows, hard = system.A, system.plan.hard
    give, held = system.matrix.give[hard:], rows[hard:]
    whole = system.H + held.T @ (held / give[:, None])
    _, values, basis = np.linalg.svd(rows[:hard]) if hard else (0, np.zeros(0), np.eye(m.nv))
    free = basis[int((values > 1e-9).sum()) :].T
    stiffness = np.linalg.eigvalsh(free.T @ whole @ free) if free.shape[1] else np.zeros(0)
    assume((np.abs(stiffness) > 1e-3).all())
    assert system.negative == (stiffness < 0).sum()
    # without a search for pivots, too, and solutions are as right
    found = kernels.factor(system.tree, system.fronts, system.matrix, kernels.SYMMETRIC)
    assert found == system.negative
    rng = np.random.default_rng(seed)
    force, gap = rng.normal(size=m.nv), rows @ rng.normal(size=m.nv)
    step, _ = system.solve(force, gap)
    expected, _ = system.dense(force, gap)
    off = np.abs((step - expected) / m.dof_unit).max(initial=0.0)
    assert off < 1e-8 * np.abs(expected / m.dof_unit).max(initial=1.0)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), loops=st.integers(0, 50), ties=st.integers(0, 2))
def test_directions_of_negative_stiffness_are_counted(seed, loops, ties):
    check_negative(seed, loops, ties)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(seed=st.integers(0, 10**6), loops=st.integers(0, 50), ties=st.integers(0, 2))
def test_directions_of_negative_stiffness_are_always_counted(seed, loops, ties):
    check_negative(seed, loops, ties)


@pytest.mark.parametrize("power", [0, 4, 9])
def test_springs_of_very_different_stiffness(power):
    """Half the springs 1e9 times as stiff: which rows are redundant is a matter of geometry."""
    for m in (gallery.ladder(32), gallery.gripper(), linkages.sarrus(), linkages.bennett()):
        stiffness = np.where(np.arange(m.nv) % 2, 10.0**power, 1.0)
        system = System(m, 0, stiffness=stiffness)
        # without the random derivative of loads
        system.H = np.diag(stiffness)
        system.matrix.tangent[:] = 0.0
        kind = kernels.DEFINITE if power > 4 else kernels.GENERAL
        assert kernels.factor(system.tree, system.fronts, system.matrix, kind) == 0
        rng = np.random.default_rng(1)
        force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
        step, _ = system.solve(force, gap)
        expected, _ = system.dense(force, gap)
        assert np.abs(step - expected).max() < 1e-8 * np.abs(expected).max()


def test_fronts_of_a_ladder_do_not_grow():
    assert gallery.ladder(8).elimination.front == gallery.ladder(64).elimination.front <= 18
    numbers = [gallery.ladder(n).elimination.numbers for n in (32, 64, 128)]
    assert numbers[2] - numbers[1] == 2 * (numbers[1] - numbers[0])


# --- rows that were chosen at another configuration


def rows_suffice(m, q, there):
    """Whether the rows that are chosen at q suffice at another configuration."""
    system = System(m, 0, stiffness=np.array(m.stiffness) + 1.0, load=0.0)
    plan, soft = system.plan, np.ones(len(system.plan.scale), dtype=np.int64)
    whole, border = make_system(m, np.zeros(len(m.tendons), dtype=bool))
    whole = join_system(
        m.links.arrays, make_constraints(m), system.tree, system.fronts, system.matrix, system.motion, border
    )
    for at in (q, there):
        poses = kinematics.link_poses(m, at)
        system.matrix.position[:] = poses[:, :3, 3]
        for k in range(len(m.links)):
            own = slice(system.tree.dof[k], system.tree.dof[k] + system.tree.dofs[k])
            system.matrix.screw[own] = kinematics.link_jacobian(m, poses, k)[:, own].T
        if at is q:
            places = system.matrix.position, system.matrix.screw, system.unit
            kernels.choose_rows(system.tree, system.fronts, *places, 1e-9, 1e-9, plan.hard, soft)
    kernels.factor(system.tree, system.fronts, system.matrix, kernels.DEFINITE)
    return border_kernels.rows_suffice(whole, plan.hard)


@pytest.mark.parametrize("make", [linkages.bennett, linkages.sarrus, linkages.parallelogram, gallery.gripper])
def test_rows_suffice_nearby(make):
    m = make()
    if make is linkages.parallelogram:
        m = make(0.4)
    moved = m.reference.copy()
    moved[m.dof_coordinate[0]] += 0.05
    assert rows_suffice(m, m.reference, m.reference)
    assert rows_suffice(m, m.reference, close_loops(m, moved))


def test_rows_of_a_flat_linkage_do_not_suffice_beside_it():
    """With all links in line one more row is redundant, which is missed beside that pose, on either side."""
    m = linkages.parallelogram()
    turn = np.array([1.0, -1.0, 1.0, 1.0])  # of the four hinges: cranks turn, the rod does not
    assert np.abs(pliant.Configuration(m, 0.3 * turn).loop_residual).max() < 1e-15
    for away in (1e-6, -1e-3, 0.05):
        assert not rows_suffice(m, 0.0 * turn, away * turn)
        assert rows_suffice(m, away * turn, 1.5 * away * turn)


@pytest.mark.parametrize("make", [linkages.bennett, linkages.sarrus, linkages.parallelogram, gallery.gripper])
def test_redundant_rows_do_not_hang_on_the_last_bit(make):
    m = make()
    kept = set()
    for seed in range(20):
        q = m.reference * (1 + 1e-13 * np.random.default_rng(seed).normal(size=m.nq))
        poses = kinematics.link_poses(m, q)
        system = System(m, seed)
        position = np.ascontiguousarray(poses[:, :3, 3])
        soft = np.ones(len(system.plan.scale), dtype=np.int64)
        arguments = (
            system.fronts,
            position,
            system.matrix.screw,
            m.dof_unit,
            1e-9,
            1e-9,
            system.plan.hard,
            soft,
        )
        kernels.choose_rows(system.tree, *arguments)
        kept.add(tuple(system.fronts.kept.tolist()))
    assert len(kept) == 1
