"""End-effector compliance and its maps against dense matrices, on every topology, at rest and under load."""

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import pliant
from oracles import reduction
from oracles.random_mechanisms import KINDS, random_mechanism, tied, unit
from pliant.engines.reduced.projection import manipulability

SPRUNG = KINDS[:8]  # joint types whose dofs all have springs


def close(ours, expected, tolerance=1e-10):
    return np.abs(ours - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-3)


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 3))
def test_random_mechanisms(seed, loops):
    m = random_mechanism(seed, 6, loops, kinds=SPRUNG)
    c = pliant.Configuration(m)
    bodies = ["b1", "b5", "b3"]
    expected = reduction.compliance(c, bodies)
    scale = np.abs(expected).max()
    # A body locked by loops is refused: its compliance is rounding relative to that without loops.
    loose = [(c.jacobian(body) ** 2 / m.stiffness).sum(axis=1).max() for body in bodies]
    own = [np.abs(expected[6 * e : 6 * e + 6, 6 * e : 6 * e + 6]).max() for e in range(3)]
    assume(min(a / b for a, b in zip(own, loose, strict=True)) >= 1e-9)
    model = pliant.reduce(m, bodies)
    assert close(model.compliance, expected)
    assert np.abs(model.compliance - model.compliance.T).max() < 1e-10 * scale  # reciprocity
    assert np.linalg.eigvalsh(model.compliance).min() > -1e-10 * scale
    P, J = reduction.flexibility(c), reduction.jacobian(c, bodies)
    assert close(model.joint_map, P @ J.T)
    for body in m.body_names:
        assert close(model.twist_map(body), c.jacobian(body) @ P @ J.T)
    # The stiffness is the inverse of the compliance in admissible directions, and zero in others.
    assert close(model.compliance @ model.stiffness @ model.compliance, model.compliance, 1e-8)
    assert close(model.compliance @ model.stiffness @ model.admissible, model.admissible, 1e-8)


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 3), couplings=st.integers(0, 2))
def test_manipulability_of_random_mechanisms(seed, loops, couplings):
    """J P Jᵀ by singular values of the rows of loops and couplings; springs, tendons among them, have no part in it."""
    m = tied(random_mechanism(seed, 6, loops), seed, couplings, 2)
    c, bodies = pliant.Configuration(m), ["b5", "b2"]
    motions, J = reduction.free_motions(c, m.dof_unit), reduction.jacobian(c, bodies)
    expected = J @ motions @ motions.T @ J.T
    assert close(manipulability(m, bodies, m.reference), expected, 1e-8)
    stiffer = m.with_stiffness(m.dof_names[0], 1e3) if m.nv else m
    assert close(manipulability(stiffer, bodies, m.reference), expected, 1e-8)


SIDE = {  # end effectors on side branches and inside loops
    "ladder": [{"rungs": 5}, ["left2", "rung3", "rung5"]],
    "loop": [{}, ["left8", "plate", "right3"]],
    "gripper": [{}, None],  # gears couple its fingers
    "suspension": [{}, None],
    "firefighters": [{}, None],
    "strong_robot": [{}, None],
    "hand": [{}, None],
    "arm": [{}, None],
    "crane": [{}, None],
    "flexure_stage": [{}, None],
}


@pytest.mark.parametrize("name", SIDE)
def test_gallery(name):
    arguments, bodies = SIDE[name]
    m = pliant.gallery.make(name, **arguments)
    model = pliant.reduce(m, bodies)
    expected = reduction.compliance(pliant.Configuration(m), model.end_effectors)
    assert close(model.compliance, expected)


@pytest.mark.parametrize("rungs", [1, 2, 7])
@pytest.mark.parametrize("form", ["cells", "rails"])
def test_ladders(form, rungs):
    m = pliant.gallery.ladder(rungs, form)
    model = pliant.reduce(m, [f"rung{rungs}", "left1"])
    assert close(model.compliance, reduction.compliance(pliant.Configuration(m), model.end_effectors))
    assert model.rank == (2 if rungs > 1 else 1)


def test_linear_in_links():
    """No matrix of joints by joints: 20,000 links would need 3 GB."""
    m = pliant.gallery.helix(20_000)
    model = pliant.reduce(m)
    assert model.joint_map.shape == (20_000, 6)
    c = pliant.Configuration(m)
    J = c.jacobian("link20000")
    assert close(model.compliance, (J / m.stiffness) @ J.T, 1e-9)


@pytest.mark.parametrize("name", ["helix", "y", "loop", "ladder", "hand", "flexure_stage", "suspension"])
def test_recursive_equals_exact(name):
    m = pliant.gallery.make(name)
    exact, recursive = pliant.reduce(m), pliant.reduce(m, projection="recursive")
    assert recursive.projection == "recursive"
    for what in ("compliance", "joint_map", "mass", "damping", "stiffness", "twist_maps"):
        assert close(getattr(recursive, what), getattr(exact, what), 1e-9), what
    assert recursive.rank == exact.rank
    if name in (
        "helix",
        "y",
        "loop",
        "hand",
    ):  # elsewhere loops are overconstrained, and forces in them not unique
        assert close(recursive.wrench_maps, exact.wrench_maps, 1e-9)


def test_recursive_refuses_what_it_cannot():
    rails = pliant.gallery.ladder(4, "rails")
    with pytest.raises(pliant.errors.InputError, match=r'loops share the links.*projection="exact"'):
        pliant.reduce(rails, projection="recursive")
    helix = pliant.gallery.helix(10)
    at = pliant.equilibrium(helix, {"link10": (0, 0, -10)})
    with pytest.raises(pliant.errors.InputError, match=r'knows no loads: use projection="exact"'):
        pliant.reduce(helix, at=at, projection="recursive")


def test_wrench_maps_balance():
    """The wrench that a body passes on is the sum of its own and those of its children."""
    m = pliant.gallery.y()
    model = pliant.reduce(m)
    for e, tip in enumerate(model.end_effectors):
        assert close(model.wrench_map(tip)[:, 6 * e : 6 * e + 6], np.eye(6))
    for body in ("stem10", "stem3"):
        expected = np.concatenate(
            [
                pliant.spatial.adjoint(np.linalg.inv(pose) @ m.reference_poses[m.body_index(body)])
                for pose in (m.reference_poses[m.body_index(tip)] for tip in model.end_effectors)
            ]
        ).T
        assert close(model.wrench_map(body), expected)


def turned(m, seed):
    """The mechanism moved to another place in the world."""
    rng = np.random.default_rng(seed)
    move = pliant.spatial.pose(rng.normal(size=3), unit(rng, 4))
    frames = m.parent_frames.copy()
    grounded = m.joint_parents < 0
    frames[grounded] = move @ frames[grounded]
    return m.replace(parent_frames=frames, reference_poses=move @ m.reference_poses)


def shuffled(m, seed):
    """The same mechanism with bodies and joints listed in another order, so with another spanning tree."""
    rng = np.random.default_rng(seed)
    b = pliant.Builder(m.name)
    for i in rng.permutation(m.body_count):
        pose = m.reference_poses[i]
        b.body(
            m.body_names[i],
            mass=m.mass[i],
            com=m.com[i],
            inertia=m.inertia[i],
            position=pose[:3, 3],
            orientation=pliant.spatial.quat_from_matrix(pose[:3, :3]),
        )
    for j in rng.permutation(m.joint_count):
        parent = "world" if m.joint_parents[j] < 0 else m.body_names[m.joint_parents[j]]
        child = m.body_names[m.joint_children[j]]
        frame = m.reference_poses[m.joint_children[j]] @ m.child_frames[j]
        p = m.joint_primitives(j).start
        axis = frame[:3, :3] @ m.primitive_axis[p]
        anchor = frame[:3, :3] @ m.primitive_anchor[p] + frame[:3, 3]
        d = m.joint_dofs(j).start
        springs = {
            "stiffness": m.stiffness[d],
            "damping": m.damping[d],
            "armature": m.armature[d],
        }
        b.hinge(m.joint_names[j], parent, child, anchor=anchor, axis=axis, **springs)
    return b.build()


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 3))
def test_neither_root_frame_nor_order_nor_spanning_tree_matters(seed, loops):
    m = random_mechanism(seed, 6, loops, kinds=("hinge",))
    bodies = ["b3", "b5"]
    try:
        here = pliant.reduce(m, bodies)
    except pliant.errors.InputError:
        reject()  # loops of hinges may lock the mechanism
    for other in (turned(m, seed), shuffled(m, seed)):
        there = pliant.reduce(other, bodies)
        assert close(there.compliance, here.compliance, 1e-9)
        assert there.rank == here.rank
        assert there.length == pytest.approx(here.length, rel=1e-9)
        # The directions span the same space; their basis is not unique.
        span = here.directions @ here.directions.T
        assert close(there.directions @ there.directions.T, span, 1e-6)
        for body in m.body_names:
            assert close(there.twist_map(body), here.twist_map(body), 1e-9)
        assert close(there.mass, here.mass, 1e-5)


@pytest.mark.parametrize("name", ["helix", "y", "ladder", "loop", "suspension"])
def test_under_load_it_is_the_derivative_of_the_equilibrium(name):
    """Compliance by differences: a small wrench in body axes is added to follower loads."""
    m = pliant.gallery.make(name)
    tip = m.end_effectors[0]
    load = np.array([60.0, 20.0, -40.0])
    at = pliant.equilibrium(m, {tip: load})
    model = pliant.reduce(m, tip, at=at)
    turn = at.pose(tip)[:3, :3]
    assert close(model.wrench, np.r_[turn.T @ load, 0, 0, 0])
    inverse = np.linalg.inv(at.pose(tip))
    for axis in range(6):
        ends = []
        for sign in (1, -1):
            wrench = model.wrench + sign * 1e-2 * np.eye(6)[axis]
            c = pliant.equilibrium(
                m, {tip: {"force": wrench[:3], "torque": wrench[3:], "frame": "body"}}, start=at
            )
            ends.append(pliant.spatial.se3_log(inverse @ c.pose(tip)))
        assert close((ends[0] - ends[1]) / 2e-2, model.compliance[:, axis], 2e-6 / 1e-3)
    # With the load fixed in the world it is `Configuration.compliance`.
    U, S = model.directions, model.scale
    stiffness = model.reduced_stiffness - model.admissible.T @ model.load_stiffness @ model.admissible
    fixed = (U / S[:, None]) @ np.linalg.inv(stiffness) @ (U / S[:, None]).T
    assert close(fixed, at.compliance(tip), 1e-7)
    assert model.frequencies()[0] == pytest.approx(at.frequencies(1)[0], rel=0.03)


def test_gravity_and_wrenches_elsewhere_stay_on():
    m = pliant.gallery.y()
    left, right = m.end_effectors
    wrenches = {left: (0, 3.0, -8.0), right: (5.0, 0, 0)}
    at = pliant.equilibrium(m, wrenches, gravity=(0, 0, -9.81))
    model = pliant.reduce(m, left, at=at)
    assert close(model.wrench[:3], at.pose(left)[:3, :3].T @ [0, 3.0, -8.0])
    step = np.array([0.02, 0.01, 0.03])
    twists = [
        pliant.spatial.se3_log(
            np.linalg.inv(at.pose(left))
            @ pliant.equilibrium(
                m,
                {**wrenches, left: {"force": model.wrench[:3] + sign * step, "frame": "body"}},
                gravity=(0, 0, -9.81),
                start=at,
            ).pose(left)
        )
        for sign in (1, -1)
    ]
    assert close((twists[0] - twists[1]) / 2, model.compliance[:, :3] @ step, 1e-6)


def test_a_plain_configuration_is_held_by_its_springs():
    m = pliant.gallery.hand()
    rng = np.random.default_rng(1)
    q = m.reference + 0.3 * rng.normal(size=m.nq)
    here = pliant.reduce(m, at=pliant.Configuration(m, q))
    there = pliant.reduce(m.with_pose(q))
    assert close(here.compliance, there.compliance, 1e-12)
    assert close(here.mass, there.mass, 1e-9)
