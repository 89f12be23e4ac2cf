"""Edited copies, names, topology and assembly."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from oracles.random_mechanisms import random_mechanism
from pliant.errors import ConvergenceError, InputError, MechanismError, UnknownNameError

INERTIA = (0.01, 0.01, 0.01)


def four_bar():
    b = pliant.Builder("four_bar")
    for name, position in (("crank", (0, 0, 1)), ("coupler", (1, 0, 1)), ("rocker", (2, 0, 1))):
        b.body(name, mass=1.0, inertia=INERTIA, position=position)
    spring = {"axis": (0, 1, 0), "stiffness": 1.0}
    b.hinge("j1", "world", "crank", anchor=(0, 0, 0), **spring)
    b.hinge("j2", "crank", "coupler", anchor=(0, 0, 1), **spring)
    b.hinge("j3", "coupler", "rocker", anchor=(2, 0, 1), **spring)
    b.hinge("j4", "world", "rocker", anchor=(2, 0, -0.5), **spring)
    return b.build()


def test_with_stiffness_by_pattern():
    m = four_bar()
    edited = m.with_stiffness("j[12]", 7.0, 0.5)
    assert edited.stiffness.tolist() == [7, 7, 1, 1]
    assert edited.damping.tolist() == [0.5, 0.5, 0, 0]
    assert m.stiffness.tolist() == [1, 1, 1, 1]
    assert m.with_stiffness(["j1", "j4"], [2.0, 3.0]).stiffness.tolist() == [2, 1, 1, 3]
    with pytest.raises(UnknownNameError, match=r"matches 'rh_FF\*'"):
        m.with_stiffness("rh_FF*", 1.0)
    with pytest.raises(UnknownNameError, match=r"did you mean 'j1'"):
        m.with_stiffness("j11", 1.0)
    with pytest.raises(MechanismError, match=r"'j1'.*negative"):
        m.with_stiffness("j1", -1.0)
    with pytest.raises(InputError, match="one number or 4"):
        m.with_stiffness("*", [1.0, 2.0])


def test_with_rest():
    assert four_bar().with_rest("j2", 0.25).rest.tolist() == [0, 0.25, 0, 0]
    with pytest.raises(MechanismError, match="not finite"):
        four_bar().with_rest("j2", np.nan)


def test_with_pose_on_a_tree():
    m = random_mechanism(4, 5, reference=True)
    q = pliant.Configuration(m).q.copy()
    name = next(n for n, k in zip(m.dof_names, m.dof_kind, strict=True) if k == 0)
    moved = m.with_pose({name: 0.9})
    q[m.dof_coordinate[m.dof_index(name)]] = 0.9
    assert np.allclose(moved.reference_poses, pliant.Configuration(m, q).poses)
    assert moved.rest is m.rest or np.array_equal(moved.rest, m.rest)
    assert np.allclose(m.with_pose(pliant.Configuration(m, q)).reference_poses, moved.reference_poses)  # pyright: ignore[reportArgumentType]


def test_with_pose_needs_closed_loops_and_assemble_closes_them():
    m = four_bar()
    with pytest.raises(MechanismError, match="assemble"):
        m.with_pose({"j1": 0.4})
    moved = pliant.assemble(m, {"j1": 0.4})
    assert moved.reference[0] == 0.4
    assert np.abs(pliant.Configuration(moved).loop_residual).max() < 1e-12
    # the loop's geometry: link lengths are kept
    crank, rocker = moved.reference_poses[0, :3, 3], moved.reference_poses[2, :3, 3]
    assert np.linalg.norm(crank) == pytest.approx(1)
    assert np.linalg.norm(rocker - [2, 0, -0.5]) == pytest.approx(1.5)
    assert np.linalg.norm(rocker - crank) == pytest.approx(2)
    with pytest.raises(ConvergenceError, match="do not close"):
        pliant.assemble(m, {"j1": 0.4, "j2": 0.0, "j3": 0.0})
    near = m.reference.copy()
    near[0] = 0.3
    assert np.abs(pliant.Configuration(pliant.assemble(m, near)).loop_residual).max() < 1e-12


@given(seed=st.integers(0, 10**6))
def test_with_fixed_base(seed):
    m = random_mechanism(seed, 4, kinds=("hinge", "ball", "slide"), reference=True)
    b = pliant.Builder("floating")
    b.body("base", mass=1.0, inertia=INERTIA, position=(1, 2, 3))
    turn = np.array([0.8, 0.6, 0, 0])
    b.free("float", "world", "base", reference=(0.1, 0.2, 0.3, *turn))
    b.body("arm", mass=1.0, inertia=INERTIA, position=(2, 2, 3))
    b.hinge("elbow", "base", "arm", anchor=(1.5, 2, 3), axis=(0, 1, 0), stiffness=3.0, reference=0.2)
    b.tendon("t", {"elbow": 1.0}, stiffness=2.0)
    floating = b.build()
    fixed = floating.with_fixed_base()
    assert fixed.nv == 1
    assert fixed.joint_types == ("fixed", "hinge")
    assert np.allclose(pliant.Configuration(fixed).poses, floating.reference_poses)
    assert fixed.stiffness_matrix.tolist() == [[5.0]]
    with pytest.raises(MechanismError, match="fixed already"):
        fixed.with_fixed_base()
    with pytest.raises(MechanismError, match="fixed already"):
        m.with_fixed_base()


def test_other_springs_keep_what_geometry_gives():
    m = four_bar()
    derived = m.elimination
    other = m.replace(stiffness=[1, 2, 3, 4], damping=np.zeros(m.nv))
    assert other.elimination is derived
    assert other.stiffness.tolist() == [1, 2, 3, 4]
    assert not other.stiffness.flags.writeable
    assert m.stiffness.tolist() != [1, 2, 3, 4]
    new = pliant.Mechanism(**{f.name: getattr(other, f.name) for f in fields(other)})
    push = {"coupler": (1.0, 0, 2.0)}
    assert np.array_equal(pliant.equilibrium(other, push).q, pliant.equilibrium(new, push).q)
    for bad, says in (([1, 2, 3], "shape"), ([1, 2, 3, -1], "negative"), ([1, 2, 3, np.nan], "not finite")):
        with pytest.raises(MechanismError, match=says):
            m.replace(stiffness=bad)


def test_look_ups_suggest():
    m = four_bar()
    with pytest.raises(UnknownNameError, match="did you mean 'crank'"):
        m.body_index("crnk")
    with pytest.raises(UnknownNameError, match="no joint 'x'"):
        m.joint_index("x")
    with pytest.raises(UnknownNameError):
        m.body_index(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no attribute 'colour'"):
        m.replace(colour="red")


def test_spanning_tree_takes_the_first_joint_and_reports_chords():
    t = four_bar().topology
    assert t.tree.tolist() == [0, 1, 2]
    assert t.chords.tolist() == [3]
    assert t.depth.tolist() == [1, 2, 3]
    assert t.parent.tolist() == [-1, 0, 1]
    assert t.leaves.tolist() == [2]
    assert not t.is_tree


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 4))
def test_chords_are_the_surplus_of_joints(seed, loops):
    m = random_mechanism(seed, 6, loops)
    assert m.topology.loops == m.joint_count - m.body_count == loops
    assert sorted([*m.topology.tree.tolist(), *m.topology.chords.tolist()]) == list(range(m.joint_count))
    for body, joint in enumerate(m.topology.tree_joint.tolist()):
        assert m.joint_children[joint] == body
        parent = m.topology.parent[body]
        assert m.topology.depth[body] == 1 + (m.topology.depth[parent] if parent >= 0 else 0)


def test_a_rod_between_two_balls_needs_no_spring():
    """It spins, and moves nothing by that; without the rocker's spring its balls turn with it, and are named."""
    b = pliant.Builder("linkage")
    for name, position in (("crank", (0, 0, 0)), ("rod", (0, 0, 1)), ("rocker", (2, 0, 0))):
        b.body(name, mass=1.0, inertia=INERTIA, position=position)
    b.hinge("j1", "world", "crank", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    b.ball("j2", "crank", "rod", anchor=(0, 0, 1))
    b.hinge("j3", "world", "rocker", anchor=(2, 0, 0), axis=(0, 1, 0))
    b.ball("j4", "rod", "rocker", anchor=(2, 0.1, 1.5))
    b.end_effectors("rocker")
    m = b.build()
    assert m.springless == ()  # the spring of j1 holds j3 by way of the rod
    assert "j3" in m.with_stiffness("j1", 0.0).springless


def test_a_floating_base_needs_no_springs():
    b = pliant.Builder("flier")
    b.body("base", mass=1.0, inertia=INERTIA)
    b.body("arm", mass=1.0, inertia=INERTIA)
    b.free("flight", "world", "base")
    b.hinge("root", "base", "arm", anchor=(0, 0, 0), axis=(0, 1, 0))
    m = b.build()
    assert m.floating == (0,)
    assert m.springless == (*m.dof_names[:6], "root")
    assert m.springless_joints == ("root",)
    assert m.with_fixed_base().floating == ()


def test_springless_names_what_nothing_holds():
    """Springs, tendons and loops hold; a plain pin in a loop needs neither if something else holds the loop."""
    m = four_bar()
    assert m.springless == ()
    assert (
        m.with_stiffness(["j2", "j4"], 0.0).springless == ()
    )  # the springs of j1 and j3 hold j2 by the loop
    assert m.with_stiffness("*", 0.0).springless == ("j1", "j2", "j3")  # j4 closes the loop
    b = pliant.Builder("tendon")
    b.body("a", mass=1.0, inertia=INERTIA)
    b.hinge("p", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    assert b.build().springless == ("p",)
    b.tendon("t", {"p": 1.0}, stiffness=2.0)
    assert b.build().springless == ()
    for name, parent in (("b", "a"), ("c", "b")):
        b.body(name, mass=1.0, inertia=INERTIA)
        b.hinge(f"q{name}", parent, name, anchor=(0, 0, 0), axis=(0, 0, 1))
    b.tendon("shared", {"qb": 1.0, "qc": 1.0}, stiffness=2.0)
    assert b.build().springless == ("qb", "qc")  # nothing holds their difference
    b.couple({"qb": 1.0, "qc": -1.0})
    assert b.build().springless == ()


def test_a_name_may_look_like_a_pattern():
    b = pliant.Builder("odd")
    b.body("a", mass=1.0, inertia=INERTIA)
    b.hinge("j[0]", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    m = b.build()
    assert m.with_stiffness(m.springless, 3.0).stiffness.tolist() == [3.0]


def test_with_end_effectors():
    m = four_bar().with_end_effectors("coupler", "crank")
    assert m.end_effectors == ("coupler", "crank")
    with pytest.raises(MechanismError, match="'nobody'"):
        m.with_end_effectors("nobody")
