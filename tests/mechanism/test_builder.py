"""What the builder accepts, what it refuses, and that every refusal names the culprit."""

import numpy as np
import pytest

import pliant
from pliant.errors import MechanismError, UnknownNameError

INERTIA = (0.01, 0.01, 0.01)


def one_body(**body):
    b = pliant.Builder("m")
    b.body("a", **{"mass": 1.0, "inertia": INERTIA, **body})
    return b


def hinged(**joint):
    b = one_body()
    b.hinge("j", "world", "a", **{"anchor": (0, 0, 0), "axis": (0, 0, 1), **joint})
    return b


def test_arrays_of_a_small_mechanism():
    b = one_body(position=(1, 2, 3), com=(0.1, 0, 0))
    b.body("c", mass=2.0, inertia=np.diag(INERTIA), position=(1, 2, 4))
    b.hinge(
        "j",
        "world",
        "a",
        anchor=(1, 2, 2),
        axis=(0, 1, 0),
        stiffness=5.0,
        damping=0.1,
        limits=(-1, 2),
        armature=0.3,
    )
    b.ball("s", "a", "c", anchor=(1, 2, 3.5), stiffness=(1, 2, 3))
    m = b.build()
    assert m.body_count == 2
    assert m.nv == 4
    assert m.nq == 5
    assert m.dof_names == ("j", "s.0", "s.1", "s.2")
    assert m.stiffness.tolist() == [5, 1, 2, 3]
    assert m.lower[0] == -1
    assert m.upper[0] == 2
    assert np.isinf(m.upper[1:]).all()
    assert m.armature.tolist() == [0.3, 0, 0, 0]
    assert m.end_effectors == ("c",)
    assert m.topology.depth.tolist() == [1, 2]
    assert m.reference.tolist() == [0, 1, 0, 0, 0]


def test_arrays_are_read_only():
    m = hinged().build()
    with pytest.raises(ValueError, match="read-only"):
        m.mass[0] = 2.0
    with pytest.raises(AttributeError):
        m.mass = np.ones(1)  # pyright: ignore[reportAttributeAccessIssue]


def test_reference_coordinates_keep_the_geometry():
    """Axes and anchors hold at the reference pose, whatever the coordinates are called there."""
    for reference in (0.0, 0.7):
        m = hinged(anchor=(1, 0, 0), reference=reference).build()
        assert np.allclose(pliant.Configuration(m).pose("a"), np.eye(4), atol=1e-15)
        turned = pliant.Configuration(m, {"j": reference + np.pi / 2}).pose("a")
        assert np.allclose(turned[:3, 3], [1, -1, 0], atol=1e-12)


def test_stack_axes_hold_at_the_reference_pose():
    b = one_body()
    b.stack(
        "j",
        "world",
        "a",
        [("hinge", (1, 0, 0), (0, 0, 0)), ("hinge", (0, 1, 0), (0, 0, 1))],
        reference=(0.3, -0.8),
    )
    m = b.build()
    rows = pliant.Configuration(m).jacobian("a", frame="world")
    assert np.allclose(rows[:, 0], [0, 0, 0, 1, 0, 0], atol=1e-14)
    assert np.allclose(rows[:, 1], [-1, 0, 0, 0, 1, 0], atol=1e-14)


def test_mass_properties_from_shapes():
    b = pliant.Builder("m")
    b.body("a", density=1000.0, shapes=[pliant.shapes.box((0.5, 0.1, 0.2), position=(1, 0, 0))])
    b.free("f", "world", "a")
    m = b.build()
    assert m.mass[0] == pytest.approx(1000 * 8 * 0.5 * 0.1 * 0.2)
    assert m.com[0].tolist() == [1, 0, 0]
    assert np.allclose(m.inertia[0], m.mass[0] / 3 * np.diag([0.05, 0.29, 0.26]))


REFUSED_BODIES = {
    "mass must be positive": {"mass": 0.0},
    "'a'.*mass is not finite": {"mass": np.nan},
    "'a'.*com is not finite": {"com": (0, np.inf, 0)},
    "no solid has principal moments": {"inertia": (1.0, 1.0, 3.0)},
    "'a': the principal moments of inertia must be positive": {"inertia": (1.0, -1.0, 1.0)},
    "'a': the principal moments of inertia must": {"inertia": (0.0, 0.0, 0.0)},
    "inertia is not symmetric": {"inertia": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]},
    "'a': inertia": {"inertia": "heavy"},
    "'a': position": {"position": (1, 2)},
    "'a': mass": {"mass": "heavy"},
    "quaternion": {"orientation": (2, 0, 0, 0)},
    "not a rotation": {"orientation": np.ones((3, 3))},
    "is not a shape": {"shapes": ["sphere"]},
    "give inertia, or shapes": {"inertia": None},
}


@pytest.mark.parametrize("text", REFUSED_BODIES)
def test_refused_bodies(text):
    with pytest.raises(MechanismError, match=text):
        b = one_body(**REFUSED_BODIES[text])
        b.hinge("j", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
        b.build()


REFUSED_JOINTS = {
    "'j'.*stiffness is negative": {"stiffness": -1.0},
    "'j'.*damping is negative": {"damping": -1.0},
    "'j'.*armature is negative": {"armature": -1.0},
    "'j'.*stiffness is not finite": {"stiffness": np.inf},
    "'j'.*length 2; give a unit vector": {"axis": (0, 0, 2)},
    "'j'.*length 0": {"axis": (0, 0, 0)},
    "'j': axis is not finite": {"axis": (0, 0, np.nan)},
    "'j': axis": {"axis": (0, 1)},
    "'j': anchor": {"anchor": "here"},
    "lower limit is above": {"limits": (1, -1)},
    "limits are": {"limits": (1, 2, 3)},
    "limits are NaN": {"limits": (np.nan, 1)},
    "'j': rest": {"rest": (1, 2)},
    "'j': rest is not finite": {"rest": np.nan},
    "one number or 1 expected": {"stiffness": (1, 2)},
    "unknown argument 'stifness'": {"stifness": 1.0},
    "stiffness matrix must be 1 x 1": {"stiffness": [[1, 2], [2, 1]]},
}


@pytest.mark.parametrize("text", REFUSED_JOINTS)
def test_refused_joints(text):
    with pytest.raises(MechanismError, match=text):
        hinged(**REFUSED_JOINTS[text]).build()


def test_refused_names_and_graphs():
    b = one_body()
    with pytest.raises(MechanismError, match="'a' is there already"):
        b.body("a", mass=1.0, inertia=INERTIA)
    with pytest.raises(MechanismError, match="'world'"):
        b.body("world", mass=1.0, inertia=INERTIA)
    with pytest.raises(UnknownNameError, match="joint 'j': no body 'nobody'"):
        b.fixed("j", "nobody", "a")
    with pytest.raises(MechanismError, match="swap parent and child"):
        b.fixed("j", "a", "world")
    with pytest.raises(MechanismError, match="no path of joints to the world: 'a'"):
        b.build()
    b.fixed("j", "world", "a")
    with pytest.raises(MechanismError, match="joint 'j' is there already"):
        b.fixed("j", "world", "a")
    b.body("c", mass=1.0, inertia=INERTIA)
    b.hinge("k", "c", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(MechanismError, match="'c' is reached only against the direction of joint 'k'"):
        b.build()
    with pytest.raises(MechanismError, match="itself"):
        b.fixed("self", "a", "a")
        b.build()
    with pytest.raises(MechanismError, match="no bodies"):
        pliant.Builder("empty").build()
    with pytest.raises(MechanismError, match="right angles"):
        b.universal("u", "a", "c", anchor=(0, 0, 0), axes=((1, 0, 0), (1, 0, 0)))
    b = hinged()
    b.end_effectors("nobody")
    with pytest.raises(MechanismError, match="end effector 'nobody'"):
        b.build()


def test_refused_couplings_and_tendons():
    for act, text in (
        (lambda b: b.couple({"nobody": 1.0}), "no degree of freedom 'nobody'"),
        (lambda b: b.couple({}), "mapping"),
        (lambda b: b.couple({"j": 0.0}), "only zero"),
        (lambda b: b.couple({"j": np.nan}), "not finite"),
        (lambda b: b.couple({"j": 1.0}, offset=0.5), "does not hold at the reference"),
        (lambda b: b.couple({"s.0": 1.0}), "ball joint"),
        (lambda b: b.tendon("t", {"j": 1.0}, stiffness=-1.0), "'t'.*negative"),
        (lambda b: b.tendon("t", {"j": "x"}), "coefficient of 'j'"),
    ):
        b = hinged()
        b.body("c", mass=1.0, inertia=INERTIA)
        b.ball("s", "a", "c", anchor=(0, 0, 0))
        with pytest.raises(MechanismError, match=text):
            act(b)
            b.build()


def loop(gap=0.0, turn=0.0):
    """A triangle whose closing joint has its frames `gap` and `turn` apart."""
    b = one_body()
    b.body("c", mass=1.0, inertia=INERTIA, position=(1, 0, 0))
    b.hinge("j", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0))
    b.hinge("k", "a", "c", anchor=(1, 0, 0), axis=(0, 1, 0))
    inside = pliant.spatial.pose((0, gap, 0), pliant.spatial.so3_exp((turn, 0, 0)))
    b.joint(
        "close",
        "hinge",
        "world",
        "c",
        [("hinge", (0, 1, 0), (0, 0, 0))],
        parent_frame=pliant.spatial.pose((1, 0, 0)),
        child_frame=inside,
    )
    return b


def test_loop_joint_whose_frames_do_not_meet():
    assert loop().build().topology.loops == 1
    for gap, turn in ((1e-3, 0.0), (0.0, 1e-3), (0.0, np.pi)):
        with pytest.raises(MechanismError, match="joint 'close': its frames on 'world' and 'c' are"):
            loop(gap, turn).build()


def test_a_welded_frame_may_be_massless():
    b = hinged()
    b.body("tool", mass=0.0, inertia=(0, 0, 0), position=(0.3, 0, 0))
    b.fixed("weld", "a", "tool")
    assert b.build().mass[1] == 0


def test_a_massless_body_may_carry_a_welded_mass():
    b = one_body(mass=0.0, inertia=(0, 0, 0))
    b.hinge("j", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(MechanismError, match="'a': mass must be positive"):
        b.build()
    b.body("load", mass=1.0, inertia=INERTIA, position=(1, 0, 0))
    b.fixed("weld", "a", "load")
    assert b.build().mass.tolist() == [0, 1]
    b.body("frame", mass=0.0, inertia=(0, 0, 0))
    b.hinge("k", "load", "frame", anchor=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(MechanismError, match="'frame': mass must be positive"):
        b.build()


def test_rounded_numbers_become_exact():
    m = hinged(axis=(0.6000001, 0.8, 0)).build()
    assert np.linalg.norm(m.primitive_axis[0]) == pytest.approx(1, abs=1e-15)
    b = one_body(orientation=np.array([[0.7071068, -0.7071068, 0], [0.7071068, 0.7071068, 0], [0, 0, 1]]))
    b.fixed("j", "world", "a")
    rotation = b.build().reference_poses[0, :3, :3]
    assert np.abs(rotation @ rotation.T - np.eye(3)).max() < 1e-15


def test_summary_reads_well():
    m = loop().build()
    text = m.summary()
    for part in (
        "m: 2 bodies",
        "3 joints",
        "1 loop",
        "hinge (loop)",
        "close",
        "mass (kg)",
        "stiffness (N m/rad)",
    ):
        assert part in text
    assert "without a spring (1; with_stiffness gives them one): j" in hinged().build().summary()
    assert repr(m) == "<Mechanism 'm': 2 bodies, 3 joints, 3 dofs, 1 loop>"


def test_a_lone_free_body_may_be_anywhere():
    """Its few points are one and the same up to rounding, which is no size to compare gaps of joints with."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        b = pliant.Builder("stone")
        b.body(
            "stone",
            shapes=[pliant.shapes.box((0.1, 0.2, 0.3))],
            position=rng.normal(size=3),
            orientation=pliant.spatial.quat_normalize(rng.normal(size=4)),
        )
        b.free("free", "world", "stone")
        assert b.build().radius == 1.0
