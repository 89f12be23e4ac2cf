"""Elimination along the tree, rows of loops, couplings and tendons included, against dense algebra."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles import linkages
from oracles.random_mechanisms import random_mechanism, tied
from pliant import gallery
from pliant.mechanism import elimination_kernels as kernels
from pliant.mechanism import kinematics


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
        self.negative = kernels.factor(self.tree, self.fronts, self.matrix, False)

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
        """Solution of the kept rows' system, refined in extended precision."""
        kept = self.fronts.kept == 1
        rows, give = self.A[kept], self.matrix.give[kept]
        system = np.block([[self.H, rows.T], [rows, -np.diag(give)]])
        right, scale = np.r_[force, gap[kept]], 1 / np.sqrt(np.abs(system).max(axis=1))
        balanced = np.linalg.inv(scale[:, None] * system * scale)
        x = np.zeros(len(right), dtype=np.longdouble)
        for _ in range(20):
            miss = right - system.astype(np.longdouble) @ x
            x += scale * (balanced @ (scale * miss.astype(float)))
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
    assert kernels.factor(system.tree, system.fronts, system.matrix, True) == 0
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


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 4))
def test_directions_of_negative_stiffness_are_counted(seed, loops):
    m = random_mechanism(seed, 6, loops, kinds=("hinge", "ball", "universal"))
    system = System(m, seed, negative=True)
    _, values, basis = np.linalg.svd(system.A) if len(system.A) else (0, np.zeros(0), np.eye(m.nv))
    free = basis[int((values > 1e-9).sum()) :].T
    stiffness = np.linalg.eigvalsh(free.T @ system.H @ free) if free.shape[1] else np.zeros(0)
    assume((np.abs(stiffness) > 1e-3).all())
    assert system.negative == (stiffness < 0).sum()


@pytest.mark.parametrize("power", [0, 4, 9])
def test_springs_of_very_different_stiffness(power):
    """Half the springs 1e9 times as stiff: which rows are redundant is a matter of geometry."""
    for m in (gallery.ladder(32), gallery.gripper(), linkages.sarrus(), linkages.bennett()):
        stiffness = np.where(np.arange(m.nv) % 2, 10.0**power, 1.0)
        system = System(m, 0, stiffness=stiffness)
        # without the random derivative of loads
        system.H = np.diag(stiffness)
        system.matrix.tangent[:] = 0.0
        assert kernels.factor(system.tree, system.fronts, system.matrix, power > 4) == 0
        rng = np.random.default_rng(1)
        force, gap = rng.normal(size=m.nv), system.A @ rng.normal(size=m.nv)
        step, _ = system.solve(force, gap)
        expected, _ = system.dense(force, gap)
        assert np.abs(step - expected).max() < 1e-8 * np.abs(expected).max()


def test_fronts_of_a_ladder_do_not_grow():
    assert gallery.ladder(8).elimination.front == gallery.ladder(64).elimination.front <= 18
    numbers = [gallery.ladder(n).elimination.numbers for n in (32, 64, 128)]
    assert numbers[2] - numbers[1] == 2 * (numbers[1] - numbers[0])


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
