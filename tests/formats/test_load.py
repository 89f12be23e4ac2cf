"""What becomes of joints, servos, tendons, equalities and the rest, in small models with numbers worked out by hand."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest

import pliant
from pliant import spatial
from pliant.errors import FormatError, InputError, MechanismError, UnsupportedWarning
from pliant.formats import load
from pliant.formats.load import read as load_content
from pliant.mechanism.kinematics import link_poses

from . import corpus, samples

PAIR = """
<mujoco><compiler angle="radian"/>
  <worldbody>
    <body name="a"><joint name="p" axis="0 0 1" {p}/><geom size=".1"/>
      <body name="b" pos="1 0 0"><joint name="q" axis="0 1 0" {q}/><geom size=".1"/></body></body>
  </worldbody>
  {rest}
</mujoco>
"""


@pytest.fixture
def read(tmp_path):
    def read(text, name="m.xml", **options):
        (tmp_path / name).write_text(text)
        return load(tmp_path / name, **options)

    return read


def pair(p="", q="", rest=""):
    return PAIR.format(p=p, q=q, rest=rest)


# --- joints and names ---------------------------------------------------------------------------------------


def test_all_joints_of_a_body_are_one_joint(read):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = read(samples.ALL_SORTS)
    assert m.name == "all sorts"
    assert m.body_names == ("base", "arm", "wrist", "hand", "post")
    assert m.joint_names == ("root", "arm_joints", "ball", "hand_fixed", "post_joints", "loop0")
    assert m.joint_types == ("free", "stack", "ball", "fixed", "stack", "ball")
    assert m.dof_names[6:11] == ("slide", "turn", "ball.0", "ball.1", "ball.2")
    assert m.topology.loops == 1
    assert m.joint_parents.tolist() == [-1, 0, 1, -1, -1, 4]
    np.testing.assert_array_equal(m.reference[7:9], [0, 0.3])
    np.testing.assert_array_equal(m.upper[8:11], [2, 2, 2])
    assert (m.lower[8:11] == -np.inf).all()
    assert m.armature[7] == 0.01


def test_unnamed_things_get_readable_names(read):
    m = read(
        '<mujoco><worldbody><body><joint/><geom size="1"/>'
        '<body name="body2"><joint/><joint axis="1 0 0"/><geom size="1"/>'
        "</body><body/></body></worldbody></mujoco>",
        "thing.xml",
    )
    assert m.name == "thing"
    assert m.body_names == ("body1", "body2", "body3")
    assert m.joint_names == ("joint1", "body2_joints", "body3_fixed")
    assert m.dof_names == ("joint1", "joint2", "joint3")


def test_springs_of_joints(read):
    m = read(pair('stiffness="5" springref=".4" damping=".2" armature=".03" range="-1 2"', 'ref=".5"'))
    np.testing.assert_array_equal(m.stiffness, [5, 0])
    np.testing.assert_array_equal(m.damping, [0.2, 0])
    np.testing.assert_array_equal(m.armature, [0.03, 0])
    np.testing.assert_array_equal(m.reference, [0, 0.5])
    np.testing.assert_array_equal(m.rest, [0.4, 0.5])  # without a spring, the rest is the reference
    assert (m.lower[0], m.upper[0], m.upper[1]) == (-1, 2, np.inf)


def test_switched_off_springs_and_servos(read):
    servo = '<actuator><position joint="q" kp="7"/></actuator>'
    off = "<option><flag {0}/></option>"
    m = read(pair('stiffness="5" damping="2" range="0 1"', rest=servo))
    assert (m.stiffness.tolist(), m.damping[0], m.upper[0]) == ([5, 7], 2, 1)
    assert read(pair('stiffness="5"', rest=servo + off.format('spring="disable"'))).stiffness.tolist() == [
        0,
        7,
    ]
    assert read(pair('damping="2"', rest=off.format('damper="disable"'))).damping[0] == 0
    assert read(pair('stiffness="5"', rest=servo + off.format('actuation="disable"'))).stiffness.tolist() == [
        5,
        0,
    ]
    assert read(pair('range="0 1"', rest=off.format('limit="disable"'))).upper[0] == np.inf
    servos = '<position joint="q" kp="7" group="2"/><position joint="p" kp="3"/>'
    grouped = f'<option actuatorgroupdisable="2"/><actuator>{servos}</actuator>'
    assert read(pair(rest=grouped)).stiffness.tolist() == [3, 0]


# --- servos -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servo", "stiffness", "damping", "rest"),
    [
        ('<position joint="p" kp="10" kv="2"/>', 10, 2, 0),
        ('<position joint="p" kp="10" kv="2" gear="3"/>', 90, 18, 0),
        ('<position joint="p" kp="10" ctrlrange=".5 1"/>', 10, 0, 0.5),
        ('<position joint="p" kp="10" ctrlrange=".5 1" gear="2"/>', 40, 0, 0.25),
        ('<position joint="p" kp="10" timeconst=".1"/>', 10, 0, 0),
        ('<general joint="p" gainprm="4" biastype="affine" biasprm="3 -6 -.5"/>', 6, 0.5, 0.5),
        (
            '<general joint="p" gaintype="affine" gainprm="4 -2 -1" ctrlrange="1 2" '
            'biastype="affine" biasprm="0 -6 0"/>',
            8,
            1,
            0.5,
        ),
        ('<intvelocity joint="p" kp="10" actrange="-1 1"/>', 10, 0, 0),
        ('<velocity joint="p" kv="3" gear="2"/>', 0, 12, 0),
        ('<pid joint="p" kp="10" kv="1"/>', 10, 1, 0),
        ('<pid joint="p" kp="10" kv="1" input="vel ff"/>', 10, 1, 0),
        ('<motor joint="p" gear="100"/>', 0, 0, 0),
        ('<motor joint="p" gear="2" damping=".5" armature=".1"/>', 0, 2, 0),
        ('<damper joint="p" kv="3" ctrlrange="1 2"/>', 0, 3, 0),
        ('<position joint="p" kp="10"/><position joint="p" kp="30" ctrlrange=".4 1"/>', 40, 0, 0.3),
    ],
)
def test_servos_on_joints(read, recwarn, servo, stiffness, damping, rest):
    m = read(pair(rest=f"<actuator>{servo}</actuator>"))
    assert (m.stiffness[0], m.damping[0]) == pytest.approx((stiffness, damping), rel=1e-14)
    if stiffness:
        assert m.rest[0] == pytest.approx(rest, rel=1e-14)
    assert m.armature[0] == pytest.approx(0.4 if "armature" in servo else 0)
    assert not recwarn


def test_a_servo_adds_to_a_spring(read):
    m = read(pair('stiffness="30" springref="1"', rest='<actuator><position joint="p" kp="10"/></actuator>'))
    assert m.stiffness[0] == 40
    assert m.rest[0] == 0.75


def test_servos_hold_the_keyframe(read):
    rest = """
      <actuator><position joint="q" kp="10" ctrlrange="-1 1"/><intvelocity joint="p" kp="4" actrange="-3 3"/></actuator>
      <keyframe><key name="home" qpos=".1 .2" ctrl=".5 9" act="2"/><key qpos="0 0" ctrl="5 0" act="9"/></keyframe>"""
    home = read(pair(rest=rest), keyframe="home")
    np.testing.assert_array_equal(home.reference, [0.1, 0.2])
    np.testing.assert_array_equal(home.rest, [2, 0.5])
    clamped = read(pair(rest=rest), keyframe=1)
    np.testing.assert_array_equal(clamped.rest, [3, 1])
    np.testing.assert_array_equal(read(pair(rest=rest)).rest, [0, 0])
    for unknown in ("away", 2, -1, 1.5, True):
        with pytest.raises(InputError, match=r"no keyframe .*there are 'home', 1"):
            read(pair(rest=rest), keyframe=unknown)
    with pytest.raises(InputError, match="has none"):
        read(pair(), keyframe="home")


TENDON = (
    '<tendon><fixed name="cord" {0}><joint joint="p" coef="1"/><joint joint="q" coef="-2"/></fixed></tendon>'
)


def test_tendons(read, recwarn):
    m = read(pair(rest=TENDON.format('stiffness="3" damping=".5" springlength=".4"')))
    assert m.tendon_names == ("cord",)
    np.testing.assert_allclose(m.stiffness_matrix, 3 * np.array([[1, -2], [-2, 4]]))
    np.testing.assert_allclose(m.damping_matrix, 0.5 * np.array([[1, -2], [-2, 4]]))
    assert m.tendon_rest[0] == 0.4
    # Through the tendon, a servo of gear 2 at its lower limit 1: stiffness 4 * 6, length 0.5; with the spring: 27.
    servo = '<actuator><position tendon="cord" kp="6" gear="2" ctrlrange="1 2"/></actuator>'
    m = read(pair(rest=TENDON.format('stiffness="3" springlength=".4"') + servo))
    assert m.tendon_stiffness[0] == 27
    assert m.tendon_rest[0] == pytest.approx((24 * 0.5 + 3 * 0.4) / 27, rel=1e-15)
    assert not m.stiffness.any()
    # Without spring, damper or servo it does nothing.
    assert not len(read(pair(rest=TENDON.format(""))).tendons)
    assert not recwarn


def test_a_servo_on_one_axis_of_a_ball(read):
    text = """<mujoco><worldbody><body><joint name="b" type="ball"/><geom size=".1" pos=".1 .2 0"/></body></worldbody>
    <actuator><position name="s" joint="b" gear="0 2 0" kp="5" kv=".1"/></actuator></mujoco>"""
    m = read(text)
    np.testing.assert_allclose(m.stiffness_matrix, np.diag([0, 20, 0]))
    np.testing.assert_allclose(m.damping_matrix, np.diag([0, 0.4, 0]))


# --- equalities ---------------------------------------------------------------------------------------------


def test_joint_couplings(read, recwarn):
    equality = '<equality><joint joint1="p" joint2="q" polycoef="{0}"/></equality>'
    m = read(pair('ref=".2"', 'ref=".7"', equality.format("0 3 0 0 0")))
    np.testing.assert_array_equal(m.couplings.dense(2), [[1, -3]])
    assert m.coupling_offset[0] == pytest.approx(0.2 - 3 * 0.7)
    locked = read(pair(rest='<equality><joint name="lock" joint1="q"/></equality>'))
    assert locked.coupling_names == ("lock",)
    np.testing.assert_array_equal(locked.couplings.dense(2), [[0, 1]])
    assert not len(read(pair(rest='<equality><joint joint1="q" active="false"/></equality>')).couplings)
    assert not recwarn
    with pytest.warns(UnsupportedWarning, match="1 x nonlinear coupling"):
        assert not len(read(pair(rest=equality.format("0 1 1 0 0"))).couplings)


def test_a_coupling_that_does_not_hold_moves_the_reference(read):
    """MuJoCo's constraint would pull it there too: y = 0.3 + 2 x, from (0, 0) the nearest point is (0.06, -0.12)."""
    m = read(pair(rest='<equality><joint joint1="p" joint2="q" polycoef=".3 2 0 0 0"/></equality>'))
    np.testing.assert_allclose(m.reference, [0.06, -0.12], atol=1e-12)
    np.testing.assert_allclose(m.rest, m.reference, atol=0)
    np.testing.assert_allclose(m.reference_poses, link_poses(m, m.reference)[m.links.body_link], atol=1e-14)


def test_tendon_couplings(read):
    m = read(pair(rest=TENDON.format("") + '<equality><tendon tendon1="cord"/></equality>'))
    np.testing.assert_array_equal(m.couplings.dense(2), [[1, -2]])
    assert m.coupling_offset[0] == 0


@pytest.mark.parametrize("swap", [False, True])
def test_connect_to_the_world_and_between_bodies(read, swap):
    first, second = ("rocker", "coupler") if swap else ("coupler", "rocker")
    anchor = "0 0 1" if swap else "2 0 0"
    text = samples.FOUR_BAR.replace(
        'body1="coupler" body2="rocker" anchor="2 0 0"', f'body1="{first}" body2="{second}" anchor="{anchor}"'
    )
    m = read(text)
    assert m.topology.loops == 1
    assert m.joint_types[-1] == "ball"
    assert m.joint_names[-1] == "pin"
    np.testing.assert_array_equal(m.reference[3:], [1, 0, 0, 0])
    np.testing.assert_allclose(
        (m.reference_poses[m.joint_children[-1]] @ m.child_frames[-1])[:3, 3], [2, 0, 1], atol=1e-12
    )
    to_world = read(samples.FOUR_BAR.replace('body2="rocker" ', ""))
    assert to_world.joint_parents[-1] == -1
    assert to_world.body_names[to_world.joint_children[-1]] == "coupler"
    np.testing.assert_allclose(to_world.parent_frames[-1, :3, 3], [2, 0, 1], atol=1e-12)


def test_connect_between_sites(read):
    text = samples.FOUR_BAR.replace(
        '<geom type="capsule" fromto="0 0 0 2 0 0" size=".05"/>',
        '<site name="s" pos="2 0 0"/><geom size=".1"/>',
    )
    text = text.replace('damping=".1"/>', 'damping=".1"/><site name="t" pos="0 0 1" euler="10 20 30"/>')
    m = read(text.replace('body1="coupler" body2="rocker" anchor="2 0 0"', 'site1="s" site2="t"'))
    np.testing.assert_allclose(m.child_frames[-1, :3, 3], [0, 0, 1])
    assert m.topology.loops == 1


def test_welds(read):
    weld = '<equality><weld body1="a" body2="b" {0}/></equality>'
    m = read(pair(rest=weld.format("")))
    assert m.joint_types[-1] == "fixed"
    assert m.topology.loops == 1
    point = read(pair(rest=weld.format('torquescale="0"')))
    assert point.joint_types[-1] == "ball"
    # A given relative pose is honoured: b turned by 0.2 about q's axis, so the reference moves there.
    half = 0.1
    m = read(pair(rest=weld.format(f'relpose="1 0 0 {np.cos(half)} 0 {np.sin(half)} 0"')))
    np.testing.assert_allclose(m.reference, [0, 0.2], atol=1e-9)
    with pytest.raises(MechanismError, match="cannot be assembled"):
        read(pair(rest=weld.format('relpose="3 0 0 1 0 0 0"')))
    to_world = read(pair(rest='<equality><weld body1="b"/></equality>'))
    assert to_world.joint_parents[-1] == -1


def test_mocap_bodies_are_fixed_where_the_keyframe_puts_them(read):
    text = """<mujoco><worldbody><body name="hand" mocap="true" pos="0 0 1"><geom size=".1"/></body>
      <body name="ball"><freejoint/><geom size=".1"/></body></worldbody>
      <keyframe><key qpos="1 2 3 1 0 0 0" mpos="4 5 6" mquat="0 1 0 0"/></keyframe></mujoco>"""
    np.testing.assert_allclose(read(text).reference_poses[0, :3, 3], [0, 0, 1])
    m = read(text, keyframe=0)
    np.testing.assert_allclose(m.reference_poses[0], spatial.pose((4, 5, 6), (0, 1, 0, 0)))
    np.testing.assert_allclose(m.reference_poses[1, :3, 3], [1, 2, 3])
    assert m.joint_types == ("fixed", "free")


def test_keyframes_of_a_real_robot_close_its_loops(tmp_path):
    file = corpus.folder("shared") / "agility_cassie" / "cassie.xml"
    if not file.is_file():
        pytest.skip(f"{file} is not there: the models of ../shared are not part of the project")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = load(file, keyframe="home")
    model = mujoco.MjModel.from_xml_path(str(file))
    assert m.topology.loops == 4
    np.testing.assert_allclose(
        m.reference[: model.nq], model.key_qpos[0], atol=0.02
    )  # its numbers are rounded
    data = mujoco.MjData(model)
    data.qpos[:] = m.reference[: model.nq]
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos[: data.ne]).max() < 1e-12


# --- shapes, unsupported things -----------------------------------------------------------------------------


def test_shapes(read):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = read(samples.ALL_SORTS)
    kinds = {body: [s.kind for s in m.shapes(body)] for body in ("world", *m.body_names)}
    assert kinds == {
        "world": ["plane", "sphere", "sphere", "sphere"],
        "base": ["sphere"],
        "arm": ["box"],
        "wrist": ["mesh", "capsule"],
        "hand": ["sphere"],
        "post": ["cylinder", "ellipsoid"],
    }
    assert m.shapes("base")[0].rgba == pytest.approx((1, 0.5, 0, 1))
    assert m.shapes("base")[0].size == (0.1, 0, 0)
    assert m.shapes("arm")[0].size == (0.1, 0.2, 0.05)
    assert m.shapes("world")[0].size == (1, 1, 0)
    capsule = m.shapes("wrist")[1]
    assert capsule.size == pytest.approx((0.02, 0.1, 0))
    np.testing.assert_allclose(capsule.pose[:3, 3], [0.1, 0, 0], atol=1e-12)
    tetra = m.shapes("wrist")[0]
    assert tetra.mesh is not None
    corners = spatial.transform_points(tetra.pose, tetra.mesh.vertices)
    expected = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert max(min(np.abs(c - e).max() for c in corners) for e in expected) < 1e-6  # single precision


def test_roles_of_shapes(read):
    """What touches and what is shown: by contact bits, by group, and behind meshes that are only to look at."""
    m = read(
        '<mujoco><asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>'
        '<body name="a"><joint/><geom size=".1"/><geom size=".1" contype="0" conaffinity="0"/>'
        '<geom size=".1" group="3"/></body>'
        '<body name="b"><joint/><geom type="mesh" mesh="t" contype="0" conaffinity="0"/><geom size=".1"/></body>'
        "</worldbody></mujoco>"
    )
    assert [shape.role for shape in m.shapes("a")] == ["both", "visual", "collision"]
    assert [shape.role for shape in m.shapes("b")] == ["visual", "collision"]


def test_one_warning_lists_what_is_left_out(read):
    with pytest.warns(UnsupportedWarning) as caught:
        read(samples.ALL_SORTS)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert text.endswith(
        "left out what pliant cannot represent: 1 x height field, which acts on contact and pictures; 1 x muscle, "
        "which acts on compliance and motion while it is active; 1 x spatial tendon, "
        "which acts on compliance and motion"
    )
    assert caught[0].filename == __file__
    with pytest.warns(
        UnsupportedWarning,
        match="1 x flex, which .*; 1 x keyframe of a model with flex, which .*; 1 x nonlinear coupling, which",
    ):
        assert read(samples.FLEXES).body_names == ("a", "b")


@pytest.mark.parametrize(
    ("p", "rest", "message"),
    [
        ('frictionloss=".1"', "", "1 x joint with dry friction"),
        ('stiffness="1 2"', "", "1 x nonlinear spring"),
        ('damping="1 0 3"', "", "1 x nonlinear damper"),
        ('stiffness="1" springyield=".1"', "", "1 x spring that yields"),
        ("", TENDON.format('stiffness="1" springlength="0 1"'), "1 x tendon spring with a dead band"),
        ("", TENDON.format('range="0 1" armature=".1" frictionloss="1"'),
         "1 x tendon with a length limit, which acts on motion and loads that reach the limit; 1 x tendon with "
         "armature, which acts on motion, not on statics; 1 x tendon with dry friction, which acts on motion and on"),
        ('frictionloss=".1"', TENDON.format('frictionloss="1"'),
         "1 x joint with dry friction and 1 x tendon with dry friction, which act on motion and on where"),
        ("", '<actuator><position site="s" refsite="t" kp="1"/></actuator>', "1 x servo that acts through a site"),
        ("", '<actuator><general joint="p" biastype="affine" biasprm="0 1"/></actuator>', "1 x actuator with negative"),
        ("", '<actuator><dcmotor joint="p" motorconst="1" resistance="1"/></actuator>', "1 x actuator that is neither"),
        ("", '<actuator><plugin joint="p" plugin="x.y"/></actuator>', "1 x plugin"),
    ],
)  # fmt: skip
def test_each_unsupported_thing_is_counted(read, p, rest, message):
    text = pair(p, rest=rest).replace('<geom size=".1"/>', '<geom size=".1"/><site name="s"/>', 1)
    text = text.replace("</worldbody>", '<site name="t" pos="1 1 1"/></worldbody>')
    with pytest.warns(UnsupportedWarning) as caught:
        read(text)
    assert message in str(caught[0].message)


def test_gravity_compensation_is_reported(read):
    with pytest.warns(
        UnsupportedWarning, match="1 x body with gravity compensation, which acts on sag under gravity"
    ):
        read(pair().replace('name="b"', 'name="b" gravcomp="1"'))


@pytest.mark.parametrize(
    ("option", "kinds"),
    [
        ('gravity="0 0 -9.80665"', {}),
        ('gravity="0 0 -3.7"', {"gravity other than (0, 0, -9.81) m/s²": "(0, 0, -3.7) m/s²"}),
        (
            'gravity="0 0 -981"',
            {
                "gravity other than (0, 0, -9.81) m/s²": "(0, 0, -981) m/s², as of a file in centimetres: pliant takes "
                "its numbers as metres, kilograms and seconds"
            },
        ),
        ('density="0"><flag gravity="disable"/', {"gravity other than (0, 0, -9.81) m/s²": "(0, 0, 0) m/s²"}),
        (
            'density="5000" viscosity="0.5" wind="1 0 2"',
            {"fluid": "5000 kg/m³, 0.5 Pa s", "wind": "(1, 0, 2) m/s"},
        ),
        ('wind="1 0 0"', {}),  # of a vacuum
    ],
)
def test_gravity_and_fluids_of_a_file_are_named(tmp_path, option, kinds):
    """Pliant takes 9.81 m/s² downwards, and a vacuum."""
    file = tmp_path / "m.xml"
    end = "</option>" if option.endswith("/") else ""
    option = f"<option {option}>" + end if end else f"<option {option}/>"
    file.write_text(pair(rest=option))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = {part.kind: part.places for part in load_content(file).left_out}
    assert found == {kind: (place,) for kind, place in kinds.items()}
    assert bool(kinds) == bool(caught)


def test_what_is_left_out_is_named(tmp_path):
    """Joint by joint with the size of friction, bodies and tendons by name; a tendon that acts on nothing is none."""
    text = pair('frictionloss=".125"', rest="<tendon><spatial name='line'><site site='s'/><site site='t'/></spatial>"
                "<spatial name='rope' stiffness='2'><site site='s'/><site site='t'/></spatial></tendon>")  # fmt: skip
    text = text.replace('<geom size=".1"/>', '<geom size=".1"/><site name="s"/>', 1).replace(
        "</worldbody>", '<site name="t" pos="1 1 1"/></worldbody>'
    )
    file = tmp_path / "m.xml"
    file.write_text(text.replace('name="b"', 'name="b" gravcomp="1"'))
    with pytest.warns(UnsupportedWarning):
        parts = {part.kind: part for part in load_content(file).left_out}
    assert {kind: part.places for kind, part in parts.items()} == {
        "joint with dry friction": ("p 0.125 N m",),
        "body with gravity compensation": ("b",),
        "spatial tendon": ("rope",),
    }
    assert all(part.count == len(part.places) and part.acts_on for part in parts.values())


def test_keyframes_are_listed(tmp_path):
    file = tmp_path / "m.xml"
    file.write_text(pair(rest='<keyframe><key name="home" qpos="0 0"/><key qpos=".1 .1"/></keyframe>'))
    assert load_content(file).keyframes == ("home", "1")


# --- meshes that are not read


MESHED = """<mujoco><asset><mesh name="m" file="{file}" scale=".01 .01 .01"/></asset>
  <worldbody><body name="a"><joint name="j" axis="0 1 0"/>{inertial}
    <geom name="hull" type="mesh" mesh="m" {geom}/><geom name="fit" type="box" mesh="m" mass="0"/>
    <geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
INERTIAL = '<inertial pos="0 0 0.1" mass="2" diaginertia="1 1 1"/>'


@pytest.mark.parametrize("file", ["missing.stl", "../outside/missing.obj", "missing.dae"])
@pytest.mark.parametrize(("inertial", "mass"), [(INERTIAL, 2.0), ("", 1.0)])
def test_meshes_may_be_missing(read, file, inertial, mass):
    text = MESHED.format(file=file, inertial=inertial, geom='mass="0"')
    with pytest.raises(FormatError):
        read(text)
    m = read(text, meshes=False)
    assert m.total_mass == mass
    assert [shape.kind for shape in m.shapes("a")] == ["sphere"]


def test_a_missing_mesh_names_the_remedy(read):
    with pytest.raises(
        FormatError, match=r"no such file; mechanics does not need it: load\(..., meshes=False\)"
    ):
        read(MESHED.format(file="missing.stl", inertial=INERTIAL, geom=""))


def test_mass_of_meshes_needs_them(read):
    """Where a mesh gives a body its mass, there is none without it."""
    with pytest.raises(FormatError, match="mass and inertia of 'a' come from meshes"):
        read(MESHED.format(file="missing.stl", inertial="", geom=""), meshes=False)


@pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning")
def test_without_meshes_mechanics_is_the_same():
    file = corpus.folder("gymnasium_robotics") / "envs" / "assets" / "fetch" / "reach.xml"
    whole = pliant.load(file, allow=[corpus.folder("gymnasium_robotics")])
    bare = pliant.load(file, meshes=False, allow=[corpus.folder("gymnasium_robotics")])
    assert len(bare.shape_table) < len(whole.shape_table)
    for word in ("mass", "com", "inertia", "reference_poses", "stiffness", "damping", "lower", "upper"):
        np.testing.assert_array_equal(getattr(bare, word), getattr(whole, word))


URDF_MESH = '<visual><geometry><mesh filename="{}" scale=".1 .1 .1"/></geometry></visual>'


def test_meshes_of_a_urdf_may_be_left_out(read, recwarn):
    text = samples.ARM.replace("<inertial>", URDF_MESH.format("package://nowhere/hull.dae") + "<inertial>", 1)
    bare = read(text, "arm.urdf", meshes=False)
    assert "x mesh" not in "".join(str(w.message) for w in recwarn)
    assert bare.total_mass == read(samples.ARM, "arm.urdf").total_mass


# --- URDF ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "said"), [("12.5", False), ("13", True), ("170", True), ("1e16", False)])
def test_limits_in_degrees_are_noticed(read, recwarn, limit, said):
    """Beyond two turns, of revolute joints only."""
    read(samples.ARM.replace('upper="2"', f'upper="{limit}"'), "arm.urdf")
    found = [str(w.message) for w in recwarn if "were degrees meant" in str(w.message)]
    assert len(found) == said
    assert all("limits of 'shoulder'" in text for text in found)


def test_urdf(read):
    with pytest.warns(
        UnsupportedWarning,
        match="1 x joint with dry friction, which acts on motion and on where it comes to rest, not on compliance$",
    ):
        m = read(samples.ARM, "arm.urdf")
    assert m.name == "arm"
    assert m.body_names == ("base", "upper", "lower", "tool")
    assert m.joint_names == ("base_fixed", "shoulder", "elbow", "mount")
    assert m.joint_types == ("fixed", "hinge", "hinge", "fixed")
    np.testing.assert_array_equal(m.mass, [2, 1.5, 1, 0])
    np.testing.assert_array_equal(m.couplings.dense(2), [[-2, 1]])
    assert (m.lower[0], m.upper[0], m.damping[0]) == (-1, 2, 0.5)
    assert m.end_effectors == ("tool",)
    assert [s.kind for s in m.shapes("base")] == ["box"]
    np.testing.assert_allclose(m.shapes("base")[0].rgba, [1, 0, 0, 1])
    np.testing.assert_allclose(m.com[1], [0, 0, 0.5])


def test_urdf_agrees_with_pinocchio():
    """Another reader of URDF: total mass and the pose of every link at random joint angles."""
    pin = pytest.importorskip("pinocchio")
    root = corpus.folder("example-robot-data")
    for name in (
        "panda_description/urdf/panda.urdf",
        "talos_data/robots/talos_reduced.urdf",
        "go2_description/urdf/go2.urdf",
    ):
        file = root / "robots" / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = load(file)
        model = pin.buildModelFromUrdf(str(file))
        data = model.createData()
        angles = np.random.default_rng(1).uniform(-1, 1, m.nv)
        q = pin.neutral(model)
        for dof, joint in enumerate(m.dof_names):
            q[model.joints[model.getJointId(joint)].idx_q] = angles[dof]
        pin.framesForwardKinematics(model, data, q)
        ours = link_poses(m, angles)[m.links.body_link]
        for i, body in enumerate(m.body_names):
            theirs = data.oMf[model.getFrameId(body, pin.FrameType.BODY)].homogeneous
            np.testing.assert_allclose(ours[i], theirs, atol=1e-9)
        moving = pin.computeTotalMass(model) + model.inertias[0].mass
        assert m.total_mass == pytest.approx(moving, rel=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '<joint name="mount" type="fixed">',
            '<joint name="mount" type="revolute">',
            "'tool'.*A body that moves needs mass",
        ),
        ('izz=".02"', 'izz="2"', r"A \+ B >= C.*'upper'.*balanceinertia"),
        ('<child link="upper"/>', '<child link="nobody"/>', "parent or child missing"),
        ('<mass value="1"/>', '<mass value="${m}"/>', "xacro"),
        ("<robot", '<xacro:x xmlns:xacro="http://x"/><robot', "well-formed"),
    ],
)
def test_broken_urdf(read, old, new, message):
    with pytest.raises(FormatError, match=message):
        read(samples.ARM.replace(old, new), "arm.urdf")


def test_a_repaired_inertia_is_accepted(read):
    text = samples.ARM.replace('izz=".02"', 'izz="2"')
    text = text.replace(
        '<link name="base">', '<mujoco><compiler balanceinertia="true"/></mujoco><link name="base">'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = read(text, "arm.urdf")
    np.testing.assert_allclose(np.diag(m.inertia[1]), [2.2 / 3] * 3)


def test_root_link_called_world(read):
    text = samples.ARM.replace('link="base"', 'link="world"').replace('name="base"', 'name="world"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = read(text, "arm.urdf")
    assert m.body_names == ("upper", "lower", "tool")
    assert [s.kind for s in m.shapes("world")] == ["box"]


# --- what is no model ---------------------------------------------------------------------------------------


def test_what_is_no_model(read):
    for text, message in {
        "<mujocoinclude/>": "fragment for other",
        "<html/>": "neither MJCF",
        "<mujoco/>": "describes no body",
        "hello": "not well-formed",
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>": "describes no body",
        '<?xml version="1.0" encoding="klingon"?><mujoco/>': "encoding|decoded",
    }.items():
        with pytest.raises(FormatError, match=message):
            read(text)


def test_encodings(tmp_path):
    body = '<worldbody><body name="né"><joint/><geom size=".1"/></body></worldbody>'
    text = '<?xml version="1.0" encoding="{0}"?><mujoco>' + body + "</mujoco>"
    for encoding in ("utf-8", "utf-16", "iso-8859-1"):
        (tmp_path / "m.xml").write_bytes(text.format(encoding).encode(encoding))
        assert load(tmp_path / "m.xml").body_names == ("né",)
    (tmp_path / "m.xml").write_bytes(b"\xef\xbb\xbf" + text.format("utf-8").encode())
    assert load(tmp_path / "m.xml").body_names == ("né",)


def test_unsound_mechanisms_are_named_with_their_file(read, tmp_path):
    with pytest.raises(MechanismError, match=r"m\.xml.*'p'.*damping is negative"):
        read(pair('damping="-1"'))
    assert issubclass(pliant.errors.UnsafePathError, FormatError)
