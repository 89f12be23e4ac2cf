"""Hybrid bodies against dense solves: rigid joints, what they miss in energy and in places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles.assembly_tree import GRAVITY, torques
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.engines.quasistatic.arrays import DOF, DOFS
from pliant.engines.quasistatic.measures import MEASURES
from pliant.engines.quasistatic.solver import Solver
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia
from pliant.statics.load_kernels import LOAD_SIZE

SINGLE = ("hinge", "slide", "ball", "universal", "cylindrical", "planar")
BASES = ("fixed", "floating", "forest")


def movable(seed, bodies, kinds=KINDS, base="fixed", **options):
    """A random tree on a fixed or a floating base, or every fourth body on the world."""
    m = random_mechanism(seed, bodies=bodies, kinds=kinds, floating=base == "floating", **options)
    if base == "forest":
        builder, rng = pliant.Builder("forest"), np.random.default_rng(seed)
        for tree in range(3):
            for i in range(max(bodies // 3, 1)):
                name, parent = f"b{tree}_{i}", f"b{tree}_{rng.integers(i)}" if i else "world"
                place = rng.normal(size=3)
                builder.body(name, mass=rng.uniform(0.5, 2), inertia=(0.1, 0.12, 0.15), position=place)
                kind = builder.hinge if rng.uniform() < 0.6 else builder.slide
                axis = rng.normal(size=3)
                axis /= np.linalg.norm(axis)
                kind(
                    f"j{name}",
                    parent,
                    name,
                    **({} if kind == builder.slide else {"anchor": place}),
                    axis=axis,
                )
        m = builder.build()
    return m if m.nv else random_mechanism(seed, bodies=bodies, kinds=("hinge",), **options)


def random_forces(rng, m, count=2):
    return {int(b): rng.normal(size=6) for b in rng.integers(0, m.body_count, size=count)}


def make_solver(m, q, forces, *, measure="relative-joint", tolerance=0.3, rigid=True, **options):
    given = {"gravity": GRAVITY, "resist": m.armature, "bodies": None} | options
    s = Solver(
        m,
        given["gravity"],
        given["resist"],
        np.ones(m.nv),
        MEASURES[measure],
        tolerance,
        rigid=rigid,
        bodies=given["bodies"],
    )
    s.q[:] = q
    md, rows = s.tree.model, []
    for body, wrench in forces.items():
        if md.group[body] >= 0:
            leaf = md.tree.first_leaf[md.group[body]]
            rows.append([*wrench, *md.local[body][:3, 3], *np.zeros(6), 1.0, leaf])
    rows.sort(key=lambda row: row[-1])
    s.set_loads(np.array(rows, dtype=float).reshape(-1, LOAD_SIZE))
    return s


def dense(s, q, forces, resist, gravity=GRAVITY):
    """Inertias of joint space with what resists acceleration, and forces."""
    m = s.m
    mass = Inertia(m, q).dense() - np.diag(m.armature) + np.diag(resist)
    return mass, torques(m, q, forces, gravity, springs=False) + s.tree.arrays.joints.torque


def computed_dofs(s):
    out = np.zeros(s.m.nv, bool)
    for g in s.active_groups:
        d, n = s.tree.model.groups[g, [DOF, DOFS]]
        out[d : d + n] = True
    return out


TREES = (
    st.integers(0, 100_000),
    st.integers(1, 24),
    st.sampled_from([("hinge",), ("ball", "slide"), KINDS]),
    st.sampled_from(BASES),
    st.integers(0, 8),
    st.sampled_from([0.0, 1.0, 1e4]),
)


@settings(max_examples=200)
@given(*TREES, st.booleans())
def test_accelerations_equal_a_dense_solve_of_the_joints_computed(
    seed, bodies, kinds, base, power, size, rigid
):
    m = movable(seed, bodies, kinds, base)
    rng = np.random.default_rng(seed)
    q, forces = random_q(m, seed, 0.5), random_forces(rng, m)
    resist = m.armature + size * rng.uniform(0, 1, m.nv)
    s = make_solver(m, q, forces, tolerance=2.0**-power, rigid=rigid, resist=resist)
    s.refine()
    mass, right = dense(s, q, forces, resist)
    a, expected = computed_dofs(s), np.zeros(m.nv)
    if rigid:
        expected[a] = np.linalg.solve(mass[np.ix_(a, a)], right[a])
    else:
        expected[a] = np.linalg.solve(mass, right)[a]
    np.testing.assert_allclose(s.accelerations, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def closed_accelerations(m, mass, right, moves):
    """Accelerations of the dofs that move, with all loops closed, all others rigid."""
    poses, out = kinematics.link_poses(m, m.reference), np.zeros(m.nv)
    rows = [
        kinematics.link_jacobian(m, poses, int(one)) - kinematics.link_jacobian(m, poses, int(other))
        for one, other in zip(m.links.loop_copy, m.links.loop_body, strict=True)
    ]
    _, sizes, vt = np.linalg.svd(np.concatenate(rows)[:, moves])
    rank = int((sizes > 1e-10 * max(sizes.max(initial=0.0), 1.0)).sum())
    free = vt[rank:].T
    if free.shape[1]:
        reduced = free.T @ mass[np.ix_(moves, moves)] @ free
        out[moves] = free @ np.linalg.solve(reduced, free.T @ right[moves])
    return out


LOOPS = (
    st.integers(0, 100_000),
    st.integers(3, 24),
    st.integers(1, 3),
    st.sampled_from([("hinge", "ball", "universal"), SINGLE, ("hinge", "ball", "stack", "bushing", "fixed")]),
    st.integers(0, 8),
)


@settings(max_examples=100)
@given(*LOOPS)
def test_loops_equal_a_dense_solve_of_the_joints_computed(seed, bodies, loops, kinds, power):
    m = random_mechanism(seed, bodies=bodies, loops=loops, kinds=kinds, stiffness=20.0)
    if m.nv == 0 or m.topology.loops == 0:
        return
    rng = np.random.default_rng(seed)
    forces, resist = random_forces(rng, m), rng.uniform(0, 1, m.nv)
    s = make_solver(m, m.reference, forces, tolerance=2.0**-power, resist=resist)
    s.refine()
    mass, right = dense(s, m.reference, forces, resist)
    expected = closed_accelerations(m, mass, right, computed_dofs(s))
    scale = max(np.abs(expected).max(), np.abs(right).max(), 1.0)
    np.testing.assert_allclose(s.accelerations, expected, rtol=0, atol=1e-8 * scale)


@settings(max_examples=100)
@given(*TREES, st.booleans())
def test_energy_norm_of_what_is_missed(seed, bodies, kinds, base, power, size, rigid):
    """The error bound is the norm itself: with the dense matrix of inertias, to round-off."""
    m = movable(seed, bodies, kinds, base)
    rng = np.random.default_rng(seed)
    q, forces = random_q(m, seed, 0.5), random_forces(rng, m)
    resist = m.armature + size * rng.uniform(0, 1, m.nv)
    tolerance = 2.0**-power
    s = make_solver(m, q, forces, measure="energy", tolerance=tolerance, rigid=rigid, resist=resist)
    bound = s.refine()
    mass, right = dense(s, q, forces, resist)
    exact = np.linalg.solve(mass, right)
    off = s.accelerations - exact
    error = np.sqrt(off @ mass @ off / (exact @ mass @ exact))
    assert bound <= tolerance
    assert error <= bound + 1e-9
    assert bound <= error + 1e-2  # round-off of energies counts as missed
    assert power == 0 or computed_dofs(s).any()


def missed_displacement(m, q, off, bodies=None):
    """Largest linear acceleration, of origins and centres of mass, by the dense oracle's Jacobians."""
    poses, out = kinematics.link_poses(m, q), 0.0
    for body in range(m.body_count) if bodies is None else bodies:
        link = int(m.links.body_link[body])
        twist = kinematics.link_jacobian(m, poses, link) @ off
        arm = poses[link, :3, :3] @ m.com[body]
        out = max(out, np.linalg.norm(twist[:3]), np.linalg.norm(twist[:3] + np.cross(twist[3:], arm)))
    return out


def check_places(seed, bodies, kinds, base, power, size, rigid, some):
    """Refine to a fraction of the largest acceleration; returns the bound over the truth."""
    m = movable(seed, bodies, kinds, base)
    rng = np.random.default_rng(seed)
    q, forces = random_q(m, seed, 0.5), random_forces(rng, m)
    resist = m.armature + size * rng.uniform(0, 1, m.nv)
    counted = rng.integers(0, m.body_count, size=3) if some else None
    options = {"gravity": GRAVITY * (seed % 2), "resist": resist}
    plain = make_solver(m, q, forces, **options)
    plain.refine(1e-6)
    mass, right = dense(plain, q, forces, resist, options["gravity"])
    exact = np.linalg.solve(mass, right)
    whole = missed_displacement(m, q, exact)
    tolerance = 2.0**-power * whole + 1e-300
    s = make_solver(
        m, q, forces, measure="world", tolerance=tolerance, rigid=rigid, bodies=counted, **options
    )
    bound = s.refine()
    error = missed_displacement(m, q, s.accelerations - exact, counted)
    assert bound <= tolerance
    assert error <= bound + 1e-9 * whole
    return bound / error if error > 1e-8 * whole else None


PLACES = (*TREES, st.booleans(), st.booleans())


@settings(max_examples=50)
@given(*PLACES)
def test_places_are_bounded(seed, bodies, kinds, base, power, size, rigid, some):
    check_places(seed, bodies, kinds, base, power, size, rigid, some)


@pytest.mark.slow
@settings(max_examples=1000)
@given(*PLACES)
def test_places_are_bounded_widely(seed, bodies, kinds, base, power, size, rigid, some):
    check_places(seed, bodies, kinds, base, power, size, rigid, some)


@settings(max_examples=60)
@given(*LOOPS, st.booleans())
def test_places_with_loops_are_bounded(seed, bodies, loops, kinds, power, rigid):
    m = random_mechanism(seed, bodies=bodies, loops=loops, kinds=kinds, stiffness=20.0)
    if m.nv == 0 or m.topology.loops == 0:
        return
    rng = np.random.default_rng(seed)
    forces, resist = random_forces(rng, m), rng.uniform(0, 1, m.nv)
    plain = make_solver(m, m.reference, forces, resist=resist)
    plain.refine(
        1e9
    )  # all joints; the dense solve may keep other rows of loops that nearly depend on each other
    exact, right = plain.accelerations.copy(), dense(plain, m.reference, forces, resist)[1]
    whole = max(missed_displacement(m, m.reference, exact), 1e-6 * np.abs(right).max())
    tolerance = 2.0**-power * whole
    options = {"measure": "world", "tolerance": tolerance, "rigid": rigid, "resist": resist}
    s = make_solver(m, m.reference, forces, **options)
    bound = s.refine()
    assert bound <= tolerance
    assert missed_displacement(m, m.reference, s.accelerations - exact) <= bound + 1e-8 * whole
