"""Chain, split and merge against a dense projection of the joint compliances; refusals where it is not exact."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from oracles.random_mechanisms import KINDS, random_mechanism, unit
from pliant.engines.reduced.recursive import recursive_projection
from pliant.errors import InputError
from pliant.mechanism.mechanism import Rows

SPRUNG = {"stiffness": 40.0}


def projection(m):
    """P: wrenches on dofs to motions of dofs that keep every loop closed, (nv, nv)."""
    c = pliant.Configuration(m)
    root = np.sqrt(1 / m.stiffness)
    rows = c.loop_jacobian * root
    rows[[i for i in range(len(rows)) if i % 6 < 3]] /= m.radius
    if not len(rows):
        return np.diag(1 / m.stiffness)
    _, s, vt = np.linalg.svd(rows)
    rank = int((s > 1e-9 * s[0]).sum()) if len(s) else 0
    free = root[:, None] * vt[rank:].T
    return free @ free.T


def child_twists(m):
    """Twist of a joint's child per dof, child's frame, (nv, 6), out of Jacobians of bodies and of loops."""
    c = pliant.Configuration(m)
    out = np.zeros((m.nv, 6))
    for joint in m.topology.tree.tolist():
        body = m.body_names[m.joint_children[joint]]
        out[m.joint_dofs(joint)] = c.jacobian(body)[:, m.joint_dofs(joint)].T
    for loop, joint in enumerate(m.topology.chords.tolist()):
        rotation = c.poses[m.joint_children[joint], :3, :3]
        columns = c.loop_jacobian[6 * loop : 6 * loop + 6, m.joint_dofs(joint)]
        out[m.joint_dofs(joint)] = np.concatenate([rotation.T @ columns[:3], rotation.T @ columns[3:]]).T
    return out


def project(m, *names, tolerance=None):
    """The recursion at the reference pose with the mechanism's springs."""
    with np.errstate(divide="ignore"):
        compliance = 1 / m.stiffness
    poses = pliant.Configuration(m).link_poses
    return recursive_projection(m, poses, compliance, [m.body_index(name) for name in names], tolerance)


def far(ours, expected, floor=1e-12):
    """Largest difference as a fraction of the largest value, or of `floor` if that is more."""
    return np.abs(ours - expected).max(initial=0) / max(floor, np.abs(expected).max(initial=0))


def twists(m, ours, *bodies):
    """Twists of bodies, of all by default, per wrenches on the end effectors, by their joint motions."""
    c = pliant.Configuration(m)
    return np.stack([c.jacobian(body) @ ours.joint_map for body in bodies or m.body_names])


def assert_exact(m, *names, within=1e-10, tolerance=None):
    ours = project(m, *names, tolerance=tolerance)
    c = pliant.Configuration(m)
    rows = np.concatenate([c.jacobian(name) for name in names])
    motion = projection(m) @ rows.T
    # Rigid loops do not move; their rounding is measured relative to the motion of their open joints.
    floor = 1e-3 / m.stiffness.min(initial=1e9)
    assert far(ours.compliance, rows @ motion, floor) < within
    expected = np.stack([c.jacobian(body) @ motion for body in m.body_names])
    assert far(twists(m, ours), expected, floor) < within
    wrenches = ours.joint_wrenches[m.dof_joint]
    dofs = np.einsum("di,dij->dj", child_twists(m), wrenches) / m.stiffness[:, None]
    assert far(dofs, motion, floor) < within
    assert np.array_equal(ours.compliance, ours.compliance.T)
    values = np.linalg.eigvalsh(ours.compliance)
    assert values.min() > -1e-12 * max(1e-12, values.max())
    assert_balanced(m, ours, names)


def assert_balanced(m, ours, names):
    """Balance of every body: external wrenches and those of outgoing joints equal those of incoming joints."""
    poses = pliant.Configuration(m).poses
    balance = np.zeros((m.body_count, *ours.joint_wrenches.shape[1:]))
    np.subtract.at(balance, m.joint_children, ours.joint_wrenches)
    for column, name in enumerate(names):
        balance[m.body_index(name), :, 6 * column : 6 * column + 6] += np.eye(6)
    for joint, (parent, child) in enumerate(zip(m.joint_parents, m.joint_children, strict=True)):
        if parent >= 0:
            to_child = pliant.spatial.adjoint(np.linalg.inv(poses[child]) @ poses[parent])
            balance[parent] += to_child.T @ ours.joint_wrenches[joint]
    assert np.abs(balance).max(initial=0) < 1e-9 * max(1.0, np.abs(ours.joint_wrenches).max(initial=0))


def frame(*edges, limp=()):
    """A mechanism of joints with three hinges and a slide: `frame("world a", "a b")`; bodies lie anywhere."""
    b = pliant.Builder("frame")
    names = sorted({name for edge in edges for name in edge.split()} - {"world"})
    rng = np.random.default_rng(len(edges))
    for name in names:
        b.body(
            name,
            mass=1.0,
            inertia=(1, 1, 1),
            position=rng.normal(size=3),
            orientation=unit(rng, 4),
        )
    for i, edge in enumerate(edges):
        parent, child = edge.split()
        springs: dict[str, Any] = {} if edge in limp else {"stiffness": rng.uniform(20, 60, size=4)}
        axes = [unit(rng, 3) for _ in range(3)]
        stack = [(kind, axis, rng.normal(size=3)) for kind, axis in zip(["hinge"] * 3, axes, strict=True)]
        b.stack(f"{edge} {i}", parent, child, [*stack, ("slide", axes[0], (0, 0, 0))], **springs)
    return b.build()


# --- where it is exact


@pytest.mark.parametrize("links", [1, 2, 50])
def test_chain(links):
    m = pliant.gallery.helix(links)
    assert_exact(m, *m.end_effectors)


def test_split():
    m = pliant.gallery.y()
    assert_exact(m, *m.end_effectors)
    assert_exact(m, *m.end_effectors, "stem4", "left5", "stem10", "left5")


@pytest.mark.parametrize(
    "name",
    ["two_link", "arm", "hand", "loop", "flexure_stage", "suspension", "firefighters", "cable", "crane"],
)
def test_gallery(name):
    m = pliant.gallery.make(name)
    assert_exact(m, *m.end_effectors)


def test_gripper_without_its_gears():
    m = pliant.gallery.gripper()
    m = m.replace(coupling_names=(), couplings=Rows(), coupling_offset=np.zeros(0))
    m = m.with_stiffness("*", 3.0)
    assert_exact(m, *m.end_effectors)


@pytest.mark.parametrize("rungs", [1, 2, 5, 12, 60])
def test_ladder_of_cells(rungs):
    m = pliant.gallery.ladder(rungs)
    assert_exact(m, f"rung{rungs}")
    assert_exact(m, *{"rung1", f"rung{rungs}", f"rung{(rungs + 1) // 2}"})


def test_one_cell_with_rails():
    assert_exact(pliant.gallery.ladder(1, form="rails"), "rung1")


@given(seed=st.integers(0, 10**6), reference=st.booleans(), count=st.integers(1, 4))
def test_random_trees(seed, reference, count):
    m = random_mechanism(seed, 7, reference=reference)
    chosen = np.random.default_rng(seed).integers(7, size=count)  # one above the other, or twice the same
    assert_exact(m, *(f"b{i}" for i in chosen))


@given(seed=st.integers(0, 10**6), loops=st.integers(1, 3), count=st.integers(1, 2), reference=st.booleans())
def test_random_loops_are_exact_or_refused(seed, loops, count, reference):
    m = random_mechanism(seed, 5, loops, kinds=KINDS[:8], reference=reference)
    names = [f"b{i}" for i in np.random.default_rng(seed).integers(5, size=count)]
    try:
        project(m, *names)
    except InputError as error:
        assert 'projection="exact"' in str(error)
    else:
        assert_exact(m, *names, within=1e-8)


def test_random_loops_are_often_exact():
    """The property above is not vacuous: many random mechanisms are accepted."""
    exact = 0
    for seed in range(60):
        m = random_mechanism(seed, 5, 2)
        try:
            ours = project(m, "b4")
        except InputError:
            continue
        assert_exact(m, "b4", within=1e-8)
        exact += bool(np.abs(ours.joint_wrenches[m.topology.chords]).max() > 0)
    assert exact > 25


EXACT = {
    "one joint": (["world a"], ["a"]),
    "nested splits": (["world a", "a b", "b c", "b d", "a e"], ["c", "d", "e", "b"]),
    "two joints side by side": (["world a", "a b", "a b"], ["b", "a"]),
    "three parents": (["world a", "world b", "world c", "a d", "b d", "c d"], ["d"]),
    "four parents, two with a stem": (
        ["world s", "s a", "s b", "world c", "world d", "a e", "b e", "c e", "d e", "e f"],
        ["f", "e"],
    ),
    "a loop in a branch of a loop": (
        ["world a", "a b", "a c", "b d", "c d", "d e", "world f", "f e"],
        ["e"],
    ),
    "a loop beyond a loop": (["world a", "world b", "a c", "b c", "c d", "c e", "d f", "e f"], ["f", "c"]),
    "two loops on one body": (
        ["world a", "a b", "a c", "b d", "c d", "a e", "a f", "e g", "f g"],
        ["d", "g"],
    ),
    "the end effector inside a loop": (["world a", "world b", "a c", "b c"], ["a"]),
    "a side branch of a loop": (["world a", "a x", "world b", "a c", "b c"], ["x"]),
    "the far end of a loop described as a chain": (["world a", "a b", "b c", "c d", "world d"], ["b"]),
    "a loop that carries nothing": (["world a", "a b", "a c", "b d", "c d", "b c"], ["a"]),
    "loops that share links and carry nothing": (
        ["world a", "a b", "a c", "b c", "b d", "c d", "world e"],
        ["e"],
    ),
    "a load that goes through one body of a loop": (["world a", "a b", "b c", "a c", "a e"], ["e", "c"]),
}


@pytest.mark.parametrize("what", EXACT)
def test_topology(what):
    edges, effectors = EXACT[what]
    assert_exact(frame(*edges), *effectors)


def test_directions_of_joints_do_not_matter():
    edges = ["world a", "world b", "a c", "c d", "b d"]
    m = frame(*edges)
    assert_exact(m, "c")
    assert np.array_equal(
        np.bincount(m.joint_children), [1, 1, 1, 2]
    )  # d merges, though the load comes in at c


@pytest.mark.parametrize("tolerance", [None, 1e-16, 1e-14, 1e-12])
@pytest.mark.parametrize("name", ["loop", "ladder", "flexure_stage", "suspension"])
def test_tolerance_hardly_matters(name, tolerance):
    m = pliant.gallery.make(name)
    assert_exact(m, *m.end_effectors, tolerance=tolerance)


def test_loops_closed_to_a_few_digits_only():
    """Coordinates from a solver close a planar loop to its tolerance; the out-of-plane gap adds no mobility."""
    m = pliant.gallery.ladder(5)
    noise = pliant.spatial.se3_exp(1e-11 * np.random.default_rng(0).normal(size=(len(m.links), 6)))
    poses = pliant.Configuration(m).link_poses @ noise
    ours = recursive_projection(m, poses, 1 / m.stiffness, [m.body_index("rung5")])
    assert far(ours.compliance, project(m, "rung5").compliance) < 1e-8


def test_units_do_not_matter():
    """A ladder a thousandth the size has the same rank decisions."""
    m = pliant.gallery.ladder(4, cell=0.002)
    assert_exact(m, "rung4")


def test_long_chain():
    m = pliant.gallery.helix(5000)
    ours = project(m, m.end_effectors[0])
    rows = pliant.Configuration(m).jacobian(m.end_effectors[0])
    assert far(ours.compliance, rows / m.stiffness @ rows.T) < 1e-10
    assert far(twists(m, ours, m.end_effectors[0])[0], ours.compliance) < 1e-10


def test_long_ladder():
    m = pliant.gallery.ladder(400)
    ours = project(m, "rung400")
    # The load at the top has a lever of 800 m at the foot, which also magnifies rounding of rotations.
    assert far(twists(m, ours, "rung400")[0], ours.compliance) < 1e-8
    # Each cell of height h leans by f h / (4 k) on its own: four hinges against the shear f h.
    assert np.abs(ours.compliance).max() == pytest.approx(ours.compliance[0, 0])
    assert ours.compliance[0, 0] == pytest.approx(400 * 2.0**2 / 4000)


def test_rigid_joints_in_a_loop():
    """A compliance of zero locks a dof; two locked branches have no compliance."""
    m = frame("world a", "world b", "a c", "b c", "c d")
    poses = pliant.Configuration(m).link_poses
    compliance = np.where(m.dof_joint < 4, 0.0, 1 / m.stiffness)
    ours = recursive_projection(m, poses, compliance, [m.body_index("d")])
    columns = child_twists(m)[16:]
    assert far(ours.compliance, columns.T @ (compliance[16:, None] * columns)) < 1e-12


def test_other_quantities_by_the_same_recursion():
    m = pliant.gallery.ladder(3)
    assert (
        far(
            recursive_projection(m, pliant.Configuration(m).link_poses, 7 / m.stiffness, [8]).compliance,
            7 * recursive_projection(m, pliant.Configuration(m).link_poses, 1 / m.stiffness, [8]).compliance,
        )
        < 1e-12
    )


def test_no_end_effectors():
    ours = project(pliant.gallery.ladder(2))
    assert ours.compliance.shape == (0, 0)
    assert twists(pliant.gallery.ladder(2), ours).shape == (6, 6, 0)


# --- where it is refused


@pytest.mark.parametrize(
    ("edges", "effectors", "named"),
    [
        (["world a", "world b", "a c", "b c"], ["a", "c"], "'a' and 'c' bring load into the same loop"),
        (["world a", "world b", "a c", "b c", "a x", "c y"], ["x", "y"], "'a' and 'c' bring load"),
        (["world a", "world b", "a b", "a c", "b c"], ["c"], "loops share the links 'a', 'b'"),
    ],
)
def test_refused_topology(edges, effectors, named):
    with pytest.raises(InputError, match=rf'{named}.*projection="exact"'):
        project(frame(*edges), *effectors)


def test_continuous_rails_are_refused():
    with pytest.raises(InputError, match=r"loops share the links 'left1', 'right1'.*exact"):
        project(pliant.gallery.ladder(2, form="rails"), "rung2")
    with pytest.raises(InputError, match=r"loops share the links .*, \.\.\., and.*exact"):
        project(pliant.gallery.ladder(12, form="rails"), "rung12")


def test_limp_joints_are_refused_where_they_carry_load():
    m = frame("world a", "a b", "a c", limp=["a c"])
    with pytest.raises(InputError, match=r"no spring holds 'a c 2.*with_stiffness.*exact"):
        project(m, "c")
    held = m.with_stiffness("a c*", 3.0)  # not on a load path: its stiffness has no effect
    assert np.array_equal(project(m, "b").joint_map, project(held, "b").joint_map)
    assert_exact(held, "b")


def builder_with(extra):
    b = pliant.Builder("tied")
    for i, name in enumerate("ab"):
        b.body(name, mass=1.0, inertia=(1, 1, 1), position=(i, 0, 0))
    b.hinge("first", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), **SPRUNG)
    b.hinge("second", "a", "b", anchor=(0.5, 0, 0), axis=(0, 1, 0), **SPRUNG)
    extra(b)
    return b.build()


def test_couplings_and_tendons_are_refused():
    coupled = builder_with(lambda b: b.couple({"first": 1.0, "second": -1.0}, name="gear"))
    with pytest.raises(InputError, match=r"coupling 'gear' ties joints.*exact"):
        project(coupled, "b")
    tied = builder_with(lambda b: b.tendon("cord", {"first": 1.0, "second": 1.0}, stiffness=5.0))
    with pytest.raises(InputError, match=r"tendon 'cord' ties joints.*exact"):
        project(tied, "b")


def test_unusable_arguments():
    m = pliant.gallery.helix(3)
    poses = pliant.Configuration(m).link_poses
    with pytest.raises(InputError, match=r"joint_compliance has the shape \(2,\).*\(3,\)"):
        recursive_projection(m, poses, np.ones(2), [2])
    with pytest.raises(InputError, match=r"poses have the shape"):
        recursive_projection(m, poses[:2], np.ones(3), [2])
    for wrong in (-1.0, np.nan):
        with pytest.raises(InputError, match=r"compliance of 'link2"):
            recursive_projection(m, poses, np.array([1.0, wrong, 1.0]), [2])
    for body in (-1, 3):
        with pytest.raises(InputError, match=rf"end effector {body} is not a body"):
            recursive_projection(m, poses, np.ones(3), [body])
