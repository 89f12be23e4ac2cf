"""Many bodies and joints at once: the mechanism is the one built one by one, bit for bit; refusals name the culprit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from formats.identity import assert_identical
from pliant import shapes
from pliant.errors import MechanismError, UnknownNameError
from pliant.mechanism import tree

LOOKS = [
    [shapes.capsule(0.01, 0.1, rgba=(1, 0, 0, 1))],
    [shapes.box((0.1, 0.02, 0.03), position=(0.1, 0, 0)), shapes.sphere(0.05)],
    [shapes.mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])],
]


def unit(vectors):
    return vectors / np.sqrt((vectors**2).sum(axis=-1))[..., None]


@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
def test_the_same_as_one_by_one(seed, n):
    """Bodies with and without shapes, joints of every kind, singular methods before and after."""
    rng = np.random.default_rng(seed)
    kind = ("hinge", "slide", "ball", "bushing", "free", "fixed")[seed % 6]
    names = [f"b{i + 1}" for i in range(n)]
    position, quaternion = rng.normal(size=(n, 3)), unit(rng.normal(size=(n, 4)))
    orientation = [quaternion, pliant.spatial.quat_to_matrix(quaternion)][rng.integers(2)]
    look, mass = rng.integers(0, 3, n), rng.uniform(0.5, 2, n)
    body = [
        {"mass": mass, "inertia": rng.uniform(1, 1.5, (n, 3)), "com": rng.normal(size=(n, 3))},
        {"shapes": look},
        {"shapes": look, "mass": mass},
        {"shapes": look, "inertia": np.eye(3) * rng.uniform(1, 2, (n, 1, 1))},
    ][rng.integers(4)]
    dofs = {"hinge": 1, "slide": 1, "ball": 3, "fixed": 0}.get(kind, 6)
    spring = {}
    if dofs:
        spring["stiffness"] = rng.uniform(0, 5, (n, dofs) if rng.integers(2) else n)
        spring["damping"] = 0.25
        spring["limits"] = np.sort(rng.normal(size=(n, 2)), axis=1)
        if rng.integers(2):
            spring["orientation"] = unit(rng.normal(size=(n, 4)))
        if rng.integers(2):
            spring["reference"] = rng.normal(size=(n, dofs))
            spring["rest"] = rng.normal(size=(n, dofs))
            if kind in ("ball", "bushing", "free"):
                for label in ("reference", "rest"):
                    q = unit(rng.normal(size=(n, 4)))
                    spring[label] = np.concatenate([spring[label][:, :-3], q], axis=1)
    place = {}
    if kind in ("hinge", "slide"):
        place["axis"] = unit(rng.normal(size=(n, 3)))
    if kind in ("hinge", "ball", "bushing"):
        place["anchor"] = rng.normal(size=(n, 3))
    carrier = np.array([rng.integers(-1, i) if i else -1 for i in range(n)])
    method = {"free": "free_joints", "fixed": "fixed_joints"}.get(kind, f"{kind}s")

    def before(b):
        b.body("first", mass=1, inertia=(1, 1, 1))
        b.world_shape(shapes.plane())
        b.hinge("first", "world", "first", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=2.0)

    def after(b):
        b.body("last", shapes=LOOKS[0])
        b.ball("last", names[-1], "last", anchor=(1, 0, 0), stiffness=np.diag([1.0, 2.0, 3.0]))
        b.tendon("pull", {"first": 2.0}, stiffness=1.0)

    many = pliant.Builder("m")
    before(many)
    own = {key: value for key, value in body.items() if key != "shapes"}
    if "shapes" in body:
        own.update(shapes=LOOKS, look=look)
    index = many.bodies("b", position=position, orientation=orientation, **own)
    assert index.tolist() == list(range(1, n + 1))
    parents = (
        np.where(carrier < 0, 0, index[carrier])
        if seed % 2
        else ["first" if c < 0 else names[c] for c in carrier]
    )
    getattr(many, method)(names, parents, index, **place, **spring)
    after(many)

    single = pliant.Builder("m")
    before(single)
    for i in range(n):
        row = {key: value[i] for key, value in body.items()}
        if "shapes" in row:
            row["shapes"] = LOOKS[row["shapes"]]
        single.body(names[i], position=position[i], orientation=orientation[i], **row)
    for i in range(n):
        row = {key: value[i] if np.ndim(value) else value for key, value in {**place, **spring}.items()}
        parent = "first" if carrier[i] < 0 else names[carrier[i]]
        getattr(single, kind)(names[i], parent, names[i], **row)
    after(single)
    assert_identical(many.build(), single.build())


def test_scaled_shapes():
    """A scale of 2 doubles sizes and places; volumes grow by 8, inertias by 32."""
    b = pliant.Builder("m")
    b.bodies("a", position=np.arange(6.0).reshape(2, 3), shapes=LOOKS[1], scale=(1.0, 2.0))
    b.fixed_joints("j", "world", [0, 1])
    m = b.build()
    double = pliant.Builder("m")
    double.body("a1", position=(0, 1, 2), shapes=LOOKS[1])
    large = [shapes.box((0.2, 0.04, 0.06), position=(0.2, 0, 0)), shapes.sphere(0.1)]
    double.body("a2", position=(3, 4, 5), shapes=large)
    double.fixed("j1", "world", "a1")
    double.fixed("j2", "world", "a2")
    d = double.build()
    assert np.array_equal(m.shape_table.size, d.shape_table.size)
    assert np.array_equal(m.shape_table.pose, d.shape_table.pose)
    for label in ("mass", "com", "inertia"):
        np.testing.assert_allclose(getattr(m, label), getattr(d, label), rtol=1e-14, atol=1e-18)


def test_none_at_all():
    b = pliant.Builder("m")
    b.body("a", mass=1, inertia=(1, 1, 1))
    assert len(b.bodies([], position=np.zeros((0, 3)))) == 0
    b.fixed("j", "world", "a")
    b.hinges([], [], [], anchor=(0, 0, 0), axis=(0, 0, 1))
    assert b.build().joint_count == 1


def test_arrays_given_stay_the_users():
    position = np.zeros((2, 3))
    b = pliant.Builder("m")
    b.bodies("a", mass=1.0, inertia=(1, 1, 1), position=position)
    b.free_joints("j", "world", [0, 1])
    m = b.build()
    position[:] = 7.0
    assert (m.reference_poses[:, :3, 3] == 0).all()
    assert_identical(b.build(), m)


BODY = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0), "position": np.zeros((3, 3))}
REFUSED_BODIES = {
    "'a2': mass: numbers expected, not 'heavy'": {"mass": [1.0, "heavy", 1.0]},
    "'a3': mass is not finite": {"mass": [1.0, 2.0, np.nan]},
    "mass needs one number for all": {"mass": [1.0, 2.0]},
    "'a2': position is not finite": {"position": [(0, 0, 0), (0, np.inf, 0), (0, 0, 0)]},
    "'a1'.*position needs": {"position": [(0, 0), (0, 0), (0, 0)]},
    "body 'a2': mass must be positive": {"mass": [1.0, -1.0, 1.0]},
    "body 'a3': no solid has": {"inertia": [(1, 1, 1), (1, 1, 1), (1, 1, 3)]},
    "inertia is three moments": {"inertia": np.ones((2, 3))},
    "body 'a2': the quaternion": {"orientation": [(1, 0, 0, 0), (2, 0, 0, 0), (1, 0, 0, 0)]},
    "orientations are quaternions": {"orientation": (1, 0, 0)},
    "body 'a1', 'a2', 'a3': the pose is not a rotation": {"orientation": 2 * np.eye(3)},
    "body 'a1': give mass, or shapes": {"mass": None},
    "is not a shape": {"shapes": ["sphere"]},
    "with `look`, shapes is a list of lists": {"shapes": LOOKS[0], "look": [0, 0, 0]},
    "body 'a3': look 7": {"shapes": LOOKS, "look": [0, 0, 7]},
    "look is 3 whole numbers": {"shapes": LOOKS, "look": [0, 0]},
    "body 'a2': scale must be positive": {"shapes": LOOKS[0], "scale": [1, 0, 1]},
    "cannot be scaled": {"shapes": LOOKS[2], "scale": 2.0},
    "give positions": {"position": (0, 0, 0)},
}


@pytest.mark.parametrize("text", REFUSED_BODIES)
def test_refused_bodies(text):
    with pytest.raises(MechanismError, match=text):
        b = pliant.Builder("m")
        index = b.bodies("a", **{**BODY, **REFUSED_BODIES[text]})
        b.fixed_joints("j", "world", index)
        b.build()


REFUSED_NAMES = {
    "body 'b' is there already": ["a", "b", "b"],
    "body 'old' is there already": ["a", "old", "b"],
    "a body may not be called 'world'": ["a", "world", "b"],
    "must be a string, not 3": ["a", 3, "b"],
    "a list of strings, or one for a prefix": 3,
}


@pytest.mark.parametrize("text", REFUSED_NAMES)
def test_refused_names(text):
    b = pliant.Builder("m")
    b.body("old", mass=1, inertia=(1, 1, 1))
    with pytest.raises(MechanismError, match=text):
        b.bodies(REFUSED_NAMES[text], **BODY)
    b.fixed("j", "world", "old")
    assert b.build().body_names == ("old",)  # a refused call leaves nothing behind


JOINT = {"parents": [-1, 0, 1], "children": [0, 1, 2], "anchor": (0, 0, 0), "axis": (0, 0, 1)}
REFUSED_JOINTS = {
    "joint 'j2': no body 'nobody'; add": {"parents": ["world", "nobody", "a1"]},
    "joint 'j3': no body number 9": {"parents": [-1, 0, 9]},
    "joint 'j2': the world can only be a joint's parent": {"children": [0, -1, 2]},
    "joint 'j1': the world can only": {"children": ["world", "a1", "a2"]},
    "parent bodies are names or whole numbers, one or 3": {"parents": [0.5, 1.0, 2.0]},
    "3 parent bodies expected, got 2": {"parents": ["world", "a1"]},
    "joint 'j1' joins a body to itself": {"parents": [0, 0, 1]},
    "joint 'j1': unknown argument 'stifness'": {"stifness": 1.0},
    "joint 'j2': axis .* has length 2": {"axis": [(0, 0, 1), (0, 0, 2), (0, 0, 1)]},
    "'j3': anchor: numbers expected": {"anchor": [(0, 0, 0), (0, 0, 0), (0, 0, "x")]},
    "joint 'j2': stiffness is negative": {"stiffness": [1, -1, 1]},
    "degree of freedom 'j3': damping is not finite": {"damping": [1, 1, np.nan]},
    "stiffness: one number, 3, ": {"stiffness": np.ones((3, 2))},
    "'j2': stiffness: numbers expected, not 'soft'": {"stiffness": [1, "soft", 1]},
    "limits are": {"limits": np.ones((3, 3))},
    "joint 'j2': the lower limit is above": {"limits": [(0, 1), (1, 0), (0, 1)]},
    "reference: one number": {"reference": np.ones((3, 4))},
    "joint 'j3': the quaternion": {"orientation": [(1, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 0)]},
}


@pytest.mark.parametrize("text", REFUSED_JOINTS)
def test_refused_joints(text):
    with pytest.raises((MechanismError, UnknownNameError), match=text):
        b = pliant.Builder("m")
        b.bodies("a", **BODY)
        given = {**JOINT, **REFUSED_JOINTS[text]}
        b.hinges("j", given.pop("parents"), given.pop("children"), **given)
        b.build()


def test_a_joint_may_be_called_world_but_not_twice():
    b = pliant.Builder("m")
    b.bodies("a", **BODY)
    b.fixed_joints(["world", "k", "l"], "world", [0, 1, 2])
    assert b.build().joint_names == ("world", "k", "l")
    with pytest.raises(MechanismError, match="joint 'k' is there already"):
        b.fixed_joints(["k"], "world", [0])


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), extra=st.integers(0, 6), ordered=st.booleans())
def test_spanning_tree_grows_by_the_first_joint_in_reach(seed, n, extra, ordered):
    """The tree takes, again and again, the first joint that leads from a body in the tree to one outside."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(-1, i)) if i else -1 for i in range(n)]
    pairs = list(zip(parents, range(n), strict=True))
    for _ in range(extra):
        a, b = int(rng.integers(-1, n)), int(rng.integers(0, n))
        if a != b:
            pairs.append((a, b))
    if not ordered:
        rng.shuffle(pairs)
    parents, children = np.array(pairs).T
    found = tree.spanning_tree(
        parents, children, tuple(map(str, range(n))), tuple(map(str, range(len(pairs))))
    )
    depth, order = {-1: 0}, []
    while True:
        reach = [j for j, (a, b) in enumerate(pairs) if a in depth and b not in depth]
        if not reach:
            break
        order.append(reach[0])
        depth[int(pairs[reach[0]][1])] = depth[int(pairs[reach[0]][0])] + 1
    assert found.tree.tolist() == order
    assert found.chords.tolist() == sorted(set(range(len(pairs))) - set(order))
    assert found.depth.tolist() == [depth[b] for b in range(n)]
    assert [pairs[j][1] for j in found.tree_joint.tolist()] == list(range(n))
    assert found.parent.tolist() == [pairs[j][0] for j in found.tree_joint.tolist()]
