"""Twigs: records inside small clusters are computed when they are needed, and give the same accelerations."""

from dataclasses import fields

import numpy as np
import pytest

import pliant
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic import packing, solver
from pliant.engines.quasistatic.solver import Tree


def pushed(m, tolerance=1e-6):
    out = pliant.QuasistaticSimulation(m, 1e-3, (0, 0, 0), tolerance=tolerance)
    out._solver.small, out._solver.most = False, 10 * len(out._solver.tree.model.tree)  # always by the tree
    out.apply_wrench(m.body_names[m.body_count // 3], force=(0.002, -0.001, 0.003))
    return out


def opened(s):
    """Nodes that have records of their own, but only while their twig is open."""
    nodes, kept = s._solver.tree.arrays.clusters.nodes, s._solver.tree.model.kept
    return np.flatnonzero(nodes[:, col.START] >= kept)


@pytest.mark.parametrize("leaves", [1, 3, 30, 10_000])
def test_twigs_of_any_size_give_the_same_motion(monkeypatch, leaves):
    """Without twigs (1), with small ones, and with all of the tree in one, against those of the engine."""
    m = pliant.gallery.molecule(400)
    expected = pushed(m)
    expected.step(20)
    monkeypatch.setattr(packing, "_TWIG", leaves)
    found = pushed(m)
    assert (found._solver.tree.model.inside == 0) == (leaves == 1)
    found.step(20)
    assert found.active == expected.active
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-12 * np.abs(expected.q).max())
    np.testing.assert_allclose(found.poses, expected.poses, rtol=0, atol=1e-12)


def test_a_refinement_opens_only_twigs_that_it_reaches():
    m = pliant.gallery.molecule(3000)
    s = pushed(m, 0.3)
    s._load()
    s._solver.begin()
    assert not len(opened(s))
    s.step()
    some = len(opened(s))
    assert 0 < some < len(s._solver.tree.model.tree) / 4
    s.step(5)
    assert len(opened(s)) >= some


def test_poses_inside_closed_twigs():
    """A body's own pose against those of all bodies, which need no clusters."""
    m = pliant.gallery.molecule(500)
    s = pushed(m, 0.3)
    s.step(3)
    closed = s._solver.tree.arrays.clusters.nodes[: s._solver.tree.leaves, col.START] < 0
    assert closed.any()
    assert not closed.all()
    single = np.array([s.pose(name) for name in m.body_names])
    np.testing.assert_allclose(single, s.poses, rtol=0, atol=1e-12)


def test_twigs_are_closed_when_there_is_no_room_for_more(monkeypatch):
    """A force that wanders opens more and more twigs; the motion is that of a tree with room for all."""
    monkeypatch.setattr(solver, "_OPEN", 3)
    monkeypatch.setattr(packing, "_TWIG", 8)
    m = pliant.gallery.molecule(3000)

    def wander(s):
        sizes = []
        for body in range(0, 3000, 150):
            s.clear_wrenches()
            s.apply_wrench(m.body_names[body], force=(0.002, 0.001, 0.0))
            s.step(5)
            sizes.append(len(opened(s)))
        return np.diff(sizes)

    found, roomy = pushed(m, 0.3), pushed(m, 0.3)
    for s in (found, roomy):  # few joints matter; else all would be computed
        s._solver.most = 1000
    md = roomy._solver.tree.model
    roomy._solver.tree._grow(md.kept + md.inside)
    assert (wander(roomy) >= 0).all()
    assert (wander(found) < 0).any()
    assert len(found._solver.tree.arrays.clusters.data) < md.kept + md.inside
    # accelerations are small differences of large terms, which round differently in open and closed twigs
    np.testing.assert_allclose(found.q, roomy.q, rtol=0, atol=1e-8 * np.abs(roomy.q).max())


def test_motors_and_wrenches_inside_closed_twigs():
    m = pliant.gallery.molecule(600)
    s, fresh = pushed(m), pushed(m)
    s.step()
    for one in (s, fresh):
        one.set_motor(m.joint_names[17], torque=0.3)
        one.apply_wrench(m.body_names[599], torque=(0.0, 0.1, 0.0))
    fresh.state = s.state
    s.step()
    fresh.step()
    np.testing.assert_allclose(s.q, fresh.q, rtol=0, atol=1e-12 * np.abs(fresh.q).max())


def array_bytes(*owners):
    """Bytes of all arrays in tuples, dataclasses and attributes, each counted once."""
    seen, total, waiting = set(), 0, list(owners)
    while waiting:
        one = waiting.pop()
        if isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base
            if id(one) not in seen:
                seen.add(id(one))
                total += one.nbytes
        elif isinstance(one, tuple):
            waiting += one
        elif hasattr(one, "__dataclass_fields__"):
            waiting += [getattr(one, field.name) for field in fields(one)]
    return total


def test_bytes_per_joint():
    """A million joints fit in 2 GB with Python and numba, some 0.2 GB, and names, some 0.1 GB."""
    n = 40_000
    m = pliant.gallery.molecule(n)
    s = pushed(m, 0.3)
    s._solver.most = n // 10
    s.step(3)
    own = s._solver
    held = array_bytes(own.tree.arrays, own.tree.model, own.front, own._bodies, own._closing, own.tree.marks)
    described = array_bytes(*(value for value in vars(m).values()))
    assert not {"links", "elimination"} & vars(m).keys()
    assert held / n < 1250, f"{held / n:.0f} bytes per joint in the simulation"
    assert described / n < 650, f"{described / n:.0f} bytes per joint in the mechanism"


def test_long_columns_of_equal_rows_keep_one():
    m = pliant.gallery.molecule(40_000)
    assert m.inertia.strides[0] == m.shape_table.pose.strides[0] == 0
    assert m.inertia.shape == (40_000, 3, 3)
    assert not m.inertia.flags.writeable
    heavy = m.inertia.copy()
    heavy[7] *= 2
    other = m.replace(inertia=heavy)
    assert other.inertia.strides[0] > 0
    np.testing.assert_array_equal(other.inertia, heavy)
    small = pliant.gallery.molecule(40)
    assert small.inertia.flags.c_contiguous


def test_whole_tree_opens_all_twigs():
    m = pliant.gallery.molecule(300)
    tree = Tree(m, np.zeros(3), m.armature + 1e-3, np.ones(m.nv))
    tree.arrays.springs.motor[11] = 1.0
    tree.up()
    assert (tree.arrays.clusters.nodes[:, col.START] >= 0).all()
    assert np.isfinite(tree.down()).all()
