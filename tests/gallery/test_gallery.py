"""Every mechanism of the gallery: counts, masses, end effectors, arguments."""

from __future__ import annotations

import inspect
import re
from collections import Counter

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.errors import InputError
from pliant.mechanism.joints import BALL

FINGERTIPS = ("index_tip", "middle_tip", "ring_tip", "little_tip", "thumb_tip")
FEET = tuple(f"{side}{i}_tibia" for side in ("left", "right") for i in (1, 2, 3))

# name: arguments, bodies, joints by type, dofs, loops, end effectors, total mass (kg)
FACTS = {
    "helix": ({}, 50, {"hinge": 50}, 50, 0, ("link50",), 0.791),
    "ladder": ({}, 36, {"hinge": 48}, 48, 12, ("rung12",), 77.87),
    "ladder 16": ({"rungs": 16}, 48, {"hinge": 64}, 64, 16, ("rung16",), 103.8),
    "ladder rails": ({"form": "rails"}, 36, {"hinge": 48}, 48, 12, ("rung12",), 77.87),
    "y": ({}, 30, {"hinge": 30}, 30, 0, ("left10", "right10"), 0.2289),
    "loop": ({}, 31, {"hinge": 32}, 32, 1, ("plate",), 4.865),
    "two_link": ({}, 2, {"hinge": 2}, 2, 0, ("right",), 1.324),
    "arm": ({}, 20, {"hinge": 20}, 20, 0, FINGERTIPS, 2.553),
    "hand": ({}, 17, {"hinge": 10, "universal": 7}, 24, 0, FINGERTIPS, 0.485),
    "gripper": ({}, 6, {"hinge": 8}, 8, 2, ("left_pad", "right_pad"), 0.113),
    "flexure_stage": ({}, 3, {"hinge": 4}, 4, 1, ("stage",), 0.0781),
    "suspension": ({}, 6, {"hinge": 2, "ball": 5, "universal": 1, "slide": 1}, 20, 3, ("upright",), 40.7),
    "hexapod": ({}, 19, {"free": 1, "hinge": 18}, 24, 0, FEET, 5.48),
    "firefighters": (
        {}, 17, {"fixed": 2, "universal": 6, "ball": 4, "hinge": 8}, 32, 3, ("trampoline",), 166.0,
    ),
    "scissor_lift": ({}, 9, {"hinge": 12, "stack": 2}, 16, 5, ("platform",), 6.461),
    "stewart_platform": ({}, 13, {"universal": 6, "slide": 6, "ball": 6}, 36, 5, ("platform",), 3.267),
    "delta_robot": ({}, 10, {"hinge": 3, "universal": 6, "ball": 6}, 33, 5, ("platform",), 1.009),
    "bistable": ({}, 5, {"hinge": 4, "slide": 2}, 6, 1, ("shuttle",), 0.028),
    "miura_ori": ({}, 16, {"fixed": 1, "hinge": 24}, 24, 9, ("facet4_4",), 0.02238),
    "tensegrity": (
        {}, 15, {"universal": 9, "slide": 6, "ball": 6}, 42, 6, ("bar1", "bar2", "bar3"), 0.6488,
    ),
    "lattice": ({}, 208, {"hinge": 272}, 272, 64, ("node8_8",), 0.05984),
    "lattice auxetic": ({"form": "auxetic"}, 64, {"hinge": 113, "stack": 7}, 127, 56, ("square8_8",), 0.1574),
    "lattice 1,024 loops": ({"nx": 32, "ny": 32}, 3136, {"hinge": 4160}, 4160, 1024, ("node32_32",), 0.8847),
    "lattice3d": ({}, 168, {"ball": 240}, 720, 72, ("node3_3_3",), 0.05248),
    "trampoline_net": (
        {}, 161, {"ball": 112, "universal": 84, "stack": 28}, 588, 63, ("knot4_4",), 7.138,
    ),
    "bicycle_chain": ({}, 30, {"hinge": 30}, 30, 0, ("link30",), 0.078),
    "millipede": ({}, 13_000, {"fixed": 1, "hinge": 12_999}, 12_999, 0, ("spine2999", "leg501_10"), 3.011),
    "molecule": ({"links": 2000}, 2000, {"hinge": 2000}, 2000, 0, None, 2.0),
    "forest": ({"plants": 40}, 840, {"ball": 840}, 2520, 0, None, 88.25),
    "cable": ({}, 20, {"bushing": 20}, 120, 0, ("load",), 101.9),
    "crane": ({}, 35, {"hinge": 4, "slide": 1, "bushing": 31}, 191, 1, ("vehicle",), 158_006.0),
    "strong_robot": (
        {}, 43, {"ball": 5, "universal": 11, "hinge": 10, "bushing": 21, "slide": 1}, 174, 5,
        ("handle", "tank"), 15_115.4,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=FACTS)
def entry(request):
    name = request.param
    return name, gallery.make(name.split()[0], **FACTS[name][0]), FACTS[name][1:]


def test_every_mechanism_is_listed():
    assert {name.split()[0] for name in FACTS} == set(gallery.names())
    assert set(gallery.names()) | {"make", "names"} == set(gallery.__all__)
    for name in gallery.names():
        assert getattr(gallery, name).__doc__


def test_counts(entry):
    _, m, (bodies, joints, dofs, loops, effectors, mass) = entry
    assert isinstance(m, pliant.Mechanism)
    assert m.body_count == bodies
    assert Counter(m.joint_types) == joints
    assert m.nv == dofs
    assert m.topology.loops == loops
    if effectors is not None:
        assert m.end_effectors == effectors
    assert m.total_mass == pytest.approx(mass, rel=2e-3)


def test_springs(entry):
    """At rest, damped, balls isotropic; only the gripper's pins and a free base have no spring."""
    name, m, _ = entry
    stretched = {
        m.joint_names[m.dof_joint[d]] for d in np.flatnonzero((m.rest != m.reference)[m.dof_coordinate])
    }
    prestressed = {"tensegrity": ("side", "top"), "trampoline_net": ("x", "y")}.get(name, ())
    assert all(joint.startswith(prestressed) for joint in stretched) if prestressed else not stretched
    kinds = np.array(m.joint_types)[m.dof_joint]
    bare = m.stiffness == 0
    if name == "gripper":
        assert [m.joint_names[j] for j in m.dof_joint[~bare]] == ["left_driver", "right_driver"]
    else:
        assert set(kinds[bare]) <= {"free"}
    assert (m.damping[~bare] > 0).all()
    assert (m.damping[~bare] <= 0.1 * m.stiffness[~bare]).all()
    for values in (m.stiffness, m.damping):
        first = m.primitive_dof[:-1][m.primitive_kind == BALL]
        np.testing.assert_array_equal(values[first], values[first + 1])
        np.testing.assert_array_equal(values[first], values[first + 2])


def test_everything_can_be_seen(entry):
    _, m, _ = entry
    assert set(range(m.body_count)) <= set(m.shape_table.body.tolist())
    assert 0.02 < m.radius < 30


def test_loops_are_closed(entry):
    _, m, _ = entry
    assert np.abs(pliant.Configuration(m).loop_residual).max(initial=0.0) < 1e-12


def test_tvcg_compliance():
    for m in (gallery.helix(), gallery.ladder(), gallery.ladder(form="rails"), gallery.y(), gallery.loop()):
        np.testing.assert_allclose(1 / m.stiffness, 0.001)


def test_masses_of_gs17():
    crane, robot = gallery.crane(), gallery.strong_robot()
    assert crane.mass[crane.body_index("boom")] == 100_000
    assert crane.mass[crane.body_index("vehicle")] == 15_000
    assert crane.mass[crane.body_index("segment7")] == pytest.approx(0.2)
    assert robot.mass[robot.body_index("tank")] == 15_000
    assert robot.mass.min() == pytest.approx(0.1)
    assert {n for n, mass in zip(robot.body_names, robot.mass, strict=True) if mass == robot.mass.min()} == {
        f"{side}_{finger}" for side in ("left", "right") for finger in ("finger", "thumb")
    }
    to_ground = [n for n, p in zip(robot.joint_names, robot.joint_parents, strict=True) if p < 0]
    assert to_ground == ["left_ground", "right_ground", "drive"]
    bushings = robot.stiffness[robot.joint_dofs(robot.joint_index("joint1"))]
    np.testing.assert_array_equal(bushings, [1e10] * 3 + [10] * 3)


def test_hexapod_stands_on_the_ground():
    m = gallery.hexapod()
    heights = [m.reference_poses[m.body_index(foot), 2, 3] for foot in m.end_effectors]
    np.testing.assert_allclose(heights, 0.012)
    assert m.with_fixed_base().nv == 18


@pytest.mark.parametrize(("kind", "dofs"), [("bushing", 6), ("ball", 3), ("universal", 2), ("hinge", 1)])
def test_cable_kinds(kind, dofs):
    m = gallery.cable(joints=7, load=5000.0, kind=kind, stiffness=0.0, length=3.0, segment=0.5)
    assert m.joint_types == (kind,) * 7
    assert m.nv == 7 * dofs
    assert m.mass.tolist() == pytest.approx([0.5] * 6 + [5000.0])
    assert (m.stiffness[m.dof_kind != 1] == 0).all()
    anchors = m.reference_poses[m.joint_children] @ m.child_frames
    np.testing.assert_allclose(anchors[:, 2, 3], -3.0 * np.arange(7) / 6, atol=1e-12)


def test_cable_of_one_joint():
    m = gallery.cable(1, kind="ball", length=3.0)
    assert m.body_names == ("load",)
    assert m.joint_count == 1


def test_default_cable_is_that_of_gs17():
    m = gallery.cable()
    np.testing.assert_array_equal(m.stiffness.reshape(20, 6), [[1e12] * 3 + [10] * 3] * 20)
    assert m.mass[m.body_index("load")] == 100


@pytest.mark.parametrize("links", [1, 2, 3, 20, 400, 5000])
def test_helix_of_any_length(links):
    m = gallery.helix(links)
    assert m.body_count == m.joint_count == m.nv == m.topology.depth.max() == links


def test_millipede_of_other_sizes():
    m = gallery.millipede(legs=3, leg_links=2, spine=5)
    assert (m.body_count, m.nv, m.end_effectors) == (11, 10, ("spine4", "leg2_2"))
    assert gallery.millipede(legs=0, spine=1).body_count == 1
    full = gallery.millipede()
    feet = full.reference_poses[[full.body_index(f"leg{i}_10") for i in range(1, 1001)], 2, 3]
    np.testing.assert_allclose(feet, feet[0])  # all at one height, just above the ground
    assert 0 < feet[0] < 0.01
    per_link = Counter(full.joint_parents[[full.joint_index(f"leg{i}_1") for i in range(1, 1001)]].tolist())
    assert set(per_link.values()) == {2}


def same(a, b):
    return np.array_equal(a.reference_poses, b.reference_poses) and np.array_equal(
        a.joint_parents, b.joint_parents
    )


def test_molecule_is_reproducible():
    first = gallery.molecule(500, seed=3)
    assert same(first, gallery.molecule(500, seed=3))
    assert not same(first, gallery.molecule(500, seed=4))


def test_molecule_geometry():
    m = gallery.molecule(1000, seed=1)
    axis = m.reference_poses[:, :3, 2]
    parent = m.topology.parent
    cosine = (axis[1:] * axis[parent[1:]]).sum(axis=1)
    np.testing.assert_allclose(cosine, 1 / 3, atol=1e-9)  # bonds meet at 109.5 degrees
    ends = m.reference_poses[:, :3, 3] + 0.005 * axis
    starts = m.reference_poses[:, :3, 3] - 0.005 * axis
    np.testing.assert_allclose(starts[1:], ends[parent[1:]], atol=1e-12)
    assert m.end_effectors == tuple(m.body_names[i] for i in m.topology.leaves)


def test_large_molecule():
    m = gallery.molecule()
    assert (m.body_count, m.nv) == (50_000, 50_000)
    assert m.topology.depth.max() > 2000
    assert 20 < len(m.end_effectors) < 200


@pytest.mark.parametrize("links", [1, 2, 9, 30])
def test_small_molecules(links):
    assert gallery.molecule(links, seed=5).nv == links


def test_plants_are_the_same_by_themselves():
    """A plant depends on the seed and its number alone; some of them stand where they stand among all."""
    few, many = gallery.forest(only=[7, 3], seed=2), gallery.forest(10, seed=2)
    assert few.body_names[:2] == ("plant7_trunk1", "plant7_trunk2")
    assert few.end_effectors == ("plant7_trunk6", "plant3_trunk6")
    for name in few.body_names:
        i, j = few.body_index(name), many.body_index(name)
        np.testing.assert_array_equal(few.reference_poses[i], many.reference_poses[j])
        assert few.mass[i] == many.mass[j]
    assert not same(gallery.forest(1, seed=0), gallery.forest(1, seed=1))


def test_plants_are_joined_and_apart():
    """Links begin where the ones below them end, roots on the ground; stiffness is that of a beam."""
    m = gallery.forest(200)
    pose, size = m.reference_poses, m.shape_table.size
    assert m.shape_table.body.tolist() == list(range(m.body_count))
    half = pose[:, :3, 2] * size[:, 1, None]
    start, end = pose[:, :3, 3] - half, pose[:, :3, 3] + half
    rooted = m.joint_parents < 0
    assert rooted.sum() == 200
    np.testing.assert_allclose(start[~rooted], end[m.joint_parents[~rooted]], atol=1e-12)
    np.testing.assert_allclose(start[rooted, 2], 0, atol=1e-12)
    roots = start[rooted, :2]
    apart = np.sqrt(((roots[:, None] - roots) ** 2).sum(axis=2)) + 9 * np.eye(200)
    assert 0.8 < apart.min() < apart.min(axis=1).max() < 2.0
    assert 1.1 < end[:, 2].max() < 2.5
    np.testing.assert_allclose(
        m.stiffness.reshape(-1, 3),
        (1e9 * np.pi / 4 * size[:, 0] ** 4 / (2 * size[:, 1]))[:, None] * np.ones(3),
    )


BAD = [
    ("helix", {"links": 0}, "links"),
    ("helix", {"links": -3}, "links"),
    ("helix", {"links": 2.0}, "links"),
    ("helix", {"links": "50"}, "links"),
    ("helix", {"links": True}, "links"),
    ("helix", {"links": None}, "links"),
    ("helix", {"joints": 3}, "joints"),
    ("ladder", {"rungs": 0}, "rungs"),
    ("ladder", {"form": "rope"}, "form"),
    ("ladder", {"form": 1}, "form"),
    ("ladder", {"cell": float("nan")}, "cell"),
    ("lattice", {"nx": 0}, "nx"),
    ("lattice", {"ny": 2.5}, "ny"),
    ("lattice", {"form": "round"}, "form"),
    ("lattice", {"cell": 0}, "cell"),
    ("lattice3d", {"nx": 0}, "nx"),
    ("lattice3d", {"ny": "3"}, "ny"),
    ("lattice3d", {"nz": -1}, "nz"),
    ("lattice3d", {"cell": -0.1}, "cell"),
    ("trampoline_net", {"n": 1}, "n"),
    ("trampoline_net", {"size": 0}, "size"),
    ("trampoline_net", {"tension": -1}, "tension"),
    ("scissor_lift", {"stages": 0}, "stages"),
    ("scissor_lift", {"angle": 1.6}, "angle"),
    ("miura_ori", {"rows": 0}, "rows"),
    ("miura_ori", {"columns": None}, "columns"),
    ("miura_ori", {"sector": 1.6}, "sector"),
    ("miura_ori", {"fold": 1.6}, "fold"),
    ("delta_robot", {"rod": 0.1}, "rod"),
    ("tensegrity", {"tension": -1}, "tension"),
    ("bicycle_chain", {"links": 1.5}, "links"),
    ("millipede", {"legs": -1}, "legs"),
    ("millipede", {"leg_links": 0}, "leg_links"),
    ("millipede", {"spine": 0}, "spine"),
    ("molecule", {"links": 0}, "links"),
    ("molecule", {"seed": -1}, "seed"),
    ("molecule", {"seed": 0.5}, "seed"),
    ("forest", {"plants": 0}, "plants"),
    ("forest", {"plants": 10_000_000}, "plants times links"),
    ("forest", {"seed": 0.5}, "seed"),
    ("forest", {"only": []}, "only"),
    ("forest", {"only": "12"}, "only"),
    ("forest", {"only": [0]}, "only"),
    ("forest", {"plants": 9, "only": [10]}, "only"),
    ("forest", {"only": [3, 5, 3]}, "only: plant 3 is listed twice"),
    ("cable", {"joints": 0}, "joints"),
    ("cable", {"load": 0}, "load"),
    ("cable", {"load": float("inf")}, "load"),
    ("cable", {"load": "heavy"}, "load"),
    ("cable", {"kind": "rope"}, "kind"),
    ("cable", {"stiffness": -1.0}, "stiffness"),
    ("cable", {"axial": float("nan")}, "axial"),
    ("cable", {"damping": -1}, "damping"),
    ("cable", {"length": 0}, "length"),
    ("cable", {"segment": [1]}, "segment"),
    ("crane", {"segments": 0}, "segments"),
    ("strong_robot", {"segments": "many"}, "segments"),
    ("y", {"links": 3}, "links"),
]


@pytest.mark.parametrize(("name", "arguments", "culprit"), BAD)
def test_bad_arguments(name, arguments, culprit):
    with pytest.raises(InputError, match=rf"\b{culprit}\b"):
        gallery.make(name, **arguments)


def lengths_and_springs():
    """Every argument of the gallery that takes a length, a stiffness or a force."""
    return [
        (name, word)
        for name in gallery.names()
        for word, given in inspect.signature(getattr(gallery, name)).parameters.items()
        if isinstance(given.default, float)
    ]


@pytest.mark.parametrize("value", [1e31, 1e150, 1e308])
def test_sizes_whose_powers_are_no_numbers_are_refused(value):
    for name, word in lengths_and_springs():
        with pytest.raises(InputError, match=rf"\b{word}\b"):
            gallery.make(name, **{word: value})


@pytest.mark.parametrize("value", [1e-320, 1e-200, 1e-31])
def test_sizes_whose_quotients_are_no_numbers_are_refused(value):
    """Springs may be nothing."""
    done = 0
    for name, word in lengths_and_springs():
        try:
            gallery.make(name, **{word: value})
        except InputError as error:
            assert re.search(rf"\b{word}\b", str(error))
        else:
            done += 1
    assert done == 5


def test_numpy_integers_are_whole_numbers():
    assert gallery.helix(np.int32(4)).body_count == 4  # pyright: ignore[reportArgumentType]


def test_unknown_name():
    with pytest.raises(InputError, match="did you mean 'helix'"):
        gallery.make("helyx")
    with pytest.raises(InputError, match="has no 3;"):
        gallery.make(3)  # pyright: ignore[reportArgumentType]
