"""The spanning tree that is solved: narrow for wide loops, and the same answers as along the tree in joint order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from pliant import gallery
from pliant.mechanism import Builder, kinematics

Y = (0.0, 1.0, 0.0)


def grid(nx, ny, seed=None, held=1, skew=0.0):
    """Crosses on a grid in the x-z plane, joined by beams with a hinge at either end.

    The first `held` crosses of the bottom row are hinged to the world. With a seed, joints come in random order; with
    `skew`, their axes leave the plane's normal.
    """
    rng = np.random.default_rng(seed)
    b, joints = Builder(f"grid {nx} {ny}"), []
    for j in range(ny):
        for i in range(nx):
            b.body(f"n{i}_{j}", position=(0.1 * i, 0, 0.1 * j), mass=0.05, inertia=(1e-5,) * 3)

    def beam(name, start, end, at, to):
        b.body(name, position=(np.add(at, to)) / 2, mass=0.05, inertia=(1e-5,) * 3)
        joints.extend([(f"{name}a", start, name, at), (f"{name}b", name, end, to)])

    for j in range(ny):
        for i in range(nx):
            x, z = 0.1 * i, 0.1 * j
            if i + 1 < nx:
                beam(f"h{i}_{j}", f"n{i}_{j}", f"n{i + 1}_{j}", (x + 0.02, 0, z), (x + 0.08, 0, z))
            if j + 1 < ny:
                beam(f"v{i}_{j}", f"n{i}_{j}", f"n{i}_{j + 1}", (x, 0, z + 0.02), (x, 0, z + 0.08))
    if seed is not None:
        rng.shuffle(joints)
    for i in range(held):
        b.hinge(f"w{i}", "world", f"n{i}_0", anchor=(0.1 * i, 0, -0.03), axis=Y, stiffness=1.0, damping=0.01)
    for name, parent, child, at in joints:
        axis = np.add(Y, skew * rng.normal(size=3))
        axis /= np.linalg.norm(axis)
        b.hinge(name, parent, child, anchor=at, axis=axis, stiffness=1.0 + rng.random(), damping=0.01)
    b.end_effectors(f"n{nx - 1}_{ny - 1}")
    return b.build()


def along_topology(m):
    """The same mechanism, solved along the tree in joint order."""
    other = m.replace(name=m.name)
    other.__dict__["solved_tree"] = other.topology
    assert other.links.backwards.size == 0
    return other


def test_few_loops_keep_the_tree_in_joint_order():
    for m in (gallery.gripper(), gallery.loop(), gallery.ladder(20), gallery.suspension(), gallery.arm()):
        assert m.solved_tree is m.topology
        assert m.described_links is m.links


def test_rails_of_a_ladder_are_cut_where_loops_stay_narrow():
    numbers = [gallery.ladder(n, form="rails").elimination for n in (16, 64)]
    assert len(gallery.ladder(64, form="rails").solved_tree.backwards) > 30
    assert numbers[1].front <= 30
    assert numbers[1].numbers < 5 * numbers[0].numbers  # linear: four times as many


def test_wide_lattices_have_fronts_as_wide_as_they_are():
    m = grid(12, 12, held=12)
    loops = m.topology.loops
    assert loops == 11 * 11 + 11
    assert along_topology(m).elimination.front >= 6 * loops  # all close at the world
    assert m.elimination.front < 6 * 34


def test_the_tree_does_not_depend_on_rounding():
    m = grid(8, 8, held=8)
    rng = np.random.default_rng(0)
    moved = m.reference_poses.copy()
    moved[:, :3, 3] += 1e-13 * rng.normal(size=(m.body_count, 3))
    other = m.replace(reference_poses=moved)
    assert (other.solved_tree.tree == m.solved_tree.tree).all()


@pytest.mark.parametrize(
    "m",
    [
        gallery.ladder(12, form="rails"),
        grid(4, 4, held=4),
        grid(4, 4, seed=1),
        grid(5, 3, seed=2, held=5),
    ],
    ids=["rails", "held", "shuffled", "shuffled and held"],
)
def test_answers_are_those_of_the_tree_in_joint_order(m):
    own = along_topology(m)
    tip = m.end_effectors[0]
    load = {tip: {"force": (0.2, 0, 0.1), "torque": (0, 0.02, 0), "point": (0.01, 0, 0)}}
    a, b = pliant.equilibrium(m, load), pliant.equilibrium(own, load)
    np.testing.assert_allclose(a.q, b.q, atol=1e-10)
    np.testing.assert_allclose(a.poses, b.poses, atol=1e-10)
    assert a.stability == b.stability
    # Out of the plane loops are overconstrained: forces there are one choice of many.
    planar = [0, 2, 4]
    scale = np.abs(b.joint_forces[:, planar]).max()
    np.testing.assert_allclose(a.joint_forces[:, planar], b.joint_forces[:, planar], atol=1e-8 * scale)
    np.testing.assert_allclose(a.compliance(), b.compliance(), atol=1e-9 * np.abs(b.compliance()).max())
    np.testing.assert_allclose(a.frequencies(5), b.frequencies(5), rtol=1e-7)


def test_one_case_at_least_passes_joints_backwards():
    assert len(grid(4, 4, seed=1).solved_tree.backwards) or len(
        grid(5, 3, seed=2, held=5).solved_tree.backwards
    )


def test_motion_is_that_of_the_tree_in_joint_order():
    """Up to the error of the step, of second order: midpoints are those of the coordinates of the tree."""
    m = grid(4, 4, seed=5, held=4)
    apart, forces = [], []
    for h in (1 / 240, 1 / 960):
        sims = [pliant.ConstrainedSimulation(x, timestep=h) for x in (m, along_topology(m))]
        for s in sims:
            s.apply_wrench(m.end_effectors[0], force=(0.05, 0, 0.02))
            s.step(round(0.25 / h))
        apart.append(np.abs(sims[0].poses - sims[1].poses).max())
        forces = [np.array(s.joint_forces)[:, [0, 2, 4]] for s in sims]
    assert apart[0] < 1e-6
    assert apart[1] < 0.1 * apart[0]
    np.testing.assert_allclose(forces[0], forces[1], atol=1e-3 * np.abs(forces[1]).max())


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 4))
def test_skewed_lattices_agree_in_space(seed, nx, ny):
    """Hinges that are not parallel: rows of all six directions count."""
    m = grid(nx, ny, seed=seed, held=nx, skew=0.3)
    tree = m.solved_tree
    own = along_topology(m)
    poses = pliant.statics.Configuration(m, m.reference).poses
    np.testing.assert_allclose(poses, m.reference_poses, atol=1e-12)
    q = m.reference + 0.1 * np.random.default_rng(seed).normal(size=m.nq)
    a, b = (kinematics.joint_twists(x, kinematics.link_poses(x, q)) for x in (m, own))
    np.testing.assert_allclose(a, b, atol=1e-12)
    assert sorted([*tree.tree, *tree.chords]) == list(range(m.joint_count))
