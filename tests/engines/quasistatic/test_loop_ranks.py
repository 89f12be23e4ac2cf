"""Redundancy of loops: ranks equal those of dense rows whatever the masses, and no last bit decides accelerations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pliant
from oracles.assembly_tree import GRAVITY, by_tree, solved, torques
from oracles.random_mechanisms import random_mechanism, random_q
from pliant.engines.quasistatic.arrays import LOOP_NUMBER
from pliant.engines.quasistatic.measures import MEASURES
from pliant.engines.quasistatic.packing import inverse_inertias
from pliant.engines.quasistatic.solver import Solver, Tree
from pliant.mechanism import kinematics
from pliant.mechanism.loop_closure import close_loops
from pliant.statics.inertia import Inertia

SINGLE = ("hinge", "slide", "ball", "universal", "cylindrical", "planar")
SEVERAL = ("hinge", "ball", "stack", "bushing", "fixed", "free")


def drawn(seed, ratio=1.0):
    """A random mechanism with loops, its masses spread over `ratio`; what resists its joints, and forces on bodies."""
    rng = np.random.default_rng(100_000 + seed)
    bodies, loops = int(rng.integers(2, 15)), int(rng.integers(1, 4))
    kinds = SINGLE if rng.random() < 0.5 else SEVERAL
    m = random_mechanism(seed, bodies=bodies, loops=loops, kinds=kinds, stiffness=20.0)
    factor = ratio ** -rng.uniform(0, 1, bodies)
    m = replace(m, mass=m.mass * factor, inertia=m.inertia * factor[:, None, None])
    forces = {int(b): rng.normal(size=6) for b in rng.integers(0, bodies, size=2)}
    return m, rng.uniform(0, 1, m.nv), forces


def loop_rows(m, q):
    """Motion of every loop's copy less that of its body, (loops, 6, nv), without those that fixed joints close."""
    poses = kinematics.link_poses(m, q)
    rows = np.array(
        [
            kinematics.link_jacobian(m, poses, int(a)) - kinematics.link_jacobian(m, poses, int(b))
            for a, b in zip(m.links.loop_copy, m.links.loop_body, strict=True)
        ]
    ).reshape(-1, 6, m.nv)
    return rows[np.abs(rows).max(axis=(1, 2), initial=0.0) > 1e-12]


def closed_in_order(tree, rows):
    """Rows of the loops in the order in which they are closed, and that order."""
    number = tree.model.loop_handles.table[:, LOOP_NUMBER]
    order = number[number >= 0]
    return rows[order], order


def dense_ranks(rows):
    """By how much every loop adds to the rank of those before it."""
    ranks = [
        np.linalg.matrix_rank(rows[: n + 1].reshape(-1, rows.shape[2]), tol=1e-9) for n in range(len(rows))
    ]
    return np.diff([0, *ranks])


def weakest(rows):
    """The shortest row that is kept if loops are closed one after the other, the longest row of each first."""
    left, out = rows.copy(), 1.0
    for part in left:
        for _ in range(6):
            size = np.sqrt((part**2).sum(axis=1))
            if size.max() < 1e-7:
                break
            out = min(out, size.max())
            way = part[size.argmax()] / size.max()
            left -= (left @ way)[..., None] * way
    return out


def on_free_motions(m, rows, torque, resist):
    """Accelerations from the inertia of the motions that loops allow, by singular vectors of their rows."""
    mass = Inertia(m, m.reference).dense() - np.diag(m.armature) + np.diag(resist)
    _, s, vt = np.linalg.svd(rows.reshape(-1, m.nv))
    free = vt[int((s > 1e-10 * max(s[0], 1.0)).sum()) :].T
    if not free.shape[1]:
        return np.zeros(m.nv)
    return free @ np.linalg.solve(free.T @ mass @ free, free.T @ torque)


def check(seed, ratio):
    """Ranks and accelerations of a random mechanism; True if it has loops."""
    m, resist, forces = drawn(seed, ratio)
    rows = loop_rows(m, m.reference)
    if m.nv == 0 or not len(rows):
        return False
    tree = solved(m, m.reference, forces, resist=resist)
    ordered, order = closed_in_order(tree, rows)
    np.testing.assert_array_equal(tree.wide.rank[order], dense_ranks(ordered), err_msg=f"seed {seed}")
    torque = torques(m, m.reference, forces, GRAVITY, springs=False) + tree.arrays.joints.torque
    expected = on_free_motions(m, rows, torque, resist)
    scale = max(np.abs(expected).max(), np.abs(torque).max(), 1.0)
    # Round-off is relative to the inverse inertia of the lightest body; what is kept, to the heaviest motion.
    md = tree.model
    inverse = inverse_inertias(md.inertia, np.arange(len(md.inertia)), md.tree.shares)
    light = np.linalg.eigvalsh(inverse).max()
    heavy = np.linalg.eigvalsh(Inertia(m, m.reference).dense() + np.diag(resist)).max()
    limit = 1e-12 + 2e-14 * light * heavy / weakest(ordered) ** 2
    error = np.abs(tree.arrays.joints.qdd - expected).max() / scale
    assert error <= limit, f"seed {seed}: error {error:.1e}, at most {limit:.1e} expected"
    if ratio == 1.0 and weakest(ordered) > 1e-3:
        assert error <= 1e-8, f"seed {seed}: error {error:.1e}"
    return True


@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e6])
def test_ranks_and_accelerations_of_random_loops(ratio):
    assert sum(check(seed, ratio) for seed in range(200)) > 190


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e6])
def test_ranks_and_accelerations_of_many_random_loops(ratio):
    assert sum(check(seed, ratio) for seed in range(200, 2200)) > 1900


def locked():
    """Two bodies, three loops, nothing can move; the last loop meets a cluster that is locked but for its own slide."""
    m = random_mechanism(3517, bodies=2, loops=3, kinds=SINGLE, stiffness=20.0)
    rng = np.random.default_rng(3517)
    forces = {int(b): rng.normal(size=6) for b in rng.integers(0, 2, size=2)}
    return m, rng.uniform(0, 1, m.nv), forces


@pytest.mark.parametrize("seed", [3517, 351, 478, 1019, 1644])
def test_no_last_bit_decides(seed):
    """Masses, places and forces differ by a few last bits; in all of these, accelerations used to jump with them."""
    m, resist, forces = locked() if seed == 3517 else drawn(seed)
    rng = np.random.default_rng(seed)

    def about(x):
        return x * (1 + 1e-13 * rng.uniform(-1, 1, np.shape(x)))

    first = solved(m, m.reference, forces, resist=resist)
    torque = torques(m, m.reference, forces, GRAVITY, springs=False) + first.arrays.joints.torque
    expected = on_free_motions(m, loop_rows(m, m.reference), torque, resist)
    scale = max(np.abs(expected).max(), np.abs(torque).max(), 1.0)
    for _ in range(200):
        frames = m.parent_frames.copy()
        frames[:, :3, 3] = about(frames[:, :3, 3])
        near = replace(m, mass=about(m.mass), com=about(m.com), parent_frames=frames)
        acting = {body: about(force) for body, force in forces.items()}
        tree = solved(near, m.reference, acting, resist=about(resist))
        np.testing.assert_array_equal(tree.wide.rank, first.wide.rank)
        np.testing.assert_allclose(tree.arrays.joints.qdd, expected, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("name", ["loop", "ladder", "firefighters", "suspension", "flexure_stage"])
def test_ranks_in_the_gallery(name):
    m = pliant.gallery.make(name)
    for q in (m.reference, close_loops(m, random_q(m, 0, 0.05))):
        tree = Tree(m, GRAVITY, m.armature, np.ones(m.nv))
        tree.arrays.joints.q[:] = q
        tree.up()
        rows, order = closed_in_order(tree, loop_rows(m, q))
        np.testing.assert_array_equal(tree.wide.rank[order], dense_ranks(rows))


def test_ranks_change_on_the_way():
    """A parallelogram starts flat, where one row less is independent, opens, and is put back."""
    b = pliant.Builder("folded")
    for name, x in (("crank", 0.5), ("coupler", 2.0), ("rocker", 2.5)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(x, 0, 0))
    ends = [("world", "crank"), ("crank", "coupler"), ("coupler", "rocker"), ("world", "rocker")]
    for i, ((parent, child), x) in enumerate(zip(ends, (0, 1, 3, 2), strict=True)):
        b.hinge(f"j{i}", parent, child, anchor=(x, 0, 0), axis=(0, 1, 0))
    m = b.build()
    scale = 1e-4
    s = Solver(
        m, np.array([0.0, 0.0, -9.81]), m.armature, np.ones(m.nv), MEASURES["relative-joint"], 1e-9, scale
    )
    by_tree(s)
    found = []
    for _ in range(100):
        s.refine()
        found.append((int(s.tree.wide.rank[0]), dense_ranks(loop_rows(m, s.q))[0]))
        assert s.step(1, scale) == 1
    assert found[0] == (2, 2)
    assert found[1:] == [(3, 3)] * 99
    assert np.abs(s.q - m.reference).max() > 0.01
    poses = kinematics.link_poses(m, s.q)
    assert np.abs(poses[m.links.loop_copy[0]] - poses[m.links.loop_body[0]]).max() < 1e-7
    s.q[:] = m.reference
    s.moved()
    s.refine()
    assert s.tree.wide.rank[0] == 2
