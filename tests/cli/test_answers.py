"""Answers of commands that could be believed wrongly: each says what it is, and what it is not."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest

import pliant
from pliant.cli.wording import WORDS, as_options
from pliant.compare import holding
from pliant.text import LENGTHS, unit_for

SOURCE = Path(pliant.__file__).parent

# Two links of 0.3 m and 0.2 m that turn about y, without dampers: 5 N at the tip move it by 14.5 mm at 100 N m/rad.
URDF = """<robot name="robot"><link name="base"/>
  <link name="upper"><inertial><origin xyz=".15 0 0"/><mass value="1"/>
    <inertia ixx=".001" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz=".1 0 0"/><mass value=".5"/>
    <inertia ixx=".001" iyy=".003" izz=".003" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/><link name="camera"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="5"/></joint>
  <joint name="elbow" type="continuous"><origin xyz=".3 0 0"/><parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="flange" type="fixed"><origin xyz=".2 0 0"/><parent link="lower"/><child link="tip"/></joint>
  <joint name="mount" type="fixed"><parent link="upper"/><child link="camera"/></joint></robot>"""
KEYED = """<mujoco model="keyed"><compiler angle="radian"/><worldbody>
  <body name="a"><joint name="p" axis="0 1 0" stiffness="50" range="-1 1"/><geom size=".02" mass="1"/>
    <body name="b" pos="0 0 .3"><joint name="q" axis="0 1 0" stiffness="50"/><geom size=".02" mass="1"/>
      <body name="tip" pos="0 0 .3"/></body></body></worldbody>
  <keyframe><key name="bent" qpos="0.5 0.5"/><key name="far" qpos="1.5 0"/></keyframe></mujoco>"""


@pytest.fixture
def arm(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    return file


@pytest.fixture
def keyed(tmp_path):
    file = tmp_path / "keyed.xml"
    file.write_text(KEYED)
    return file


PULL = ("-w", "tip:0,0,-5", "--default-stiffness", "100")


# --- the static answer


def test_an_undamped_run_tells_the_static_deflection(cli, cli_json, arm):
    """The last instant of a swing is not where it rests, and the command says both."""
    found = cli_json("run", arm, *PULL)
    m = pliant.load(arm).with_stiffness("*", 100.0)
    static = pliant.equilibrium(m, {"tip": (0, 0, -5)}).displacement[m.body_index("tip")]
    tip = found["bodies"]["tip"]
    assert tip["at_rest"] == pytest.approx(static, rel=1e-6)
    assert static == pytest.approx(5 * (0.5**2 + 0.2**2) / 100, rel=1e-3)
    assert abs(tip["moved"] - static) > 0.1 * static
    assert found["still_moving"] == "tip"
    assert found["undamped"] is True
    said = cli("run", arm, *PULL).stdout
    assert "static (mm)" in said
    assert f"{1000 * static:.5g}" in said
    assert "'tip' is still moving at 1 s, undamped: it swings about the static answer" in said
    assert "`--damping-ratio 0.1`" in said


def test_a_damping_ratio_brings_it_to_the_static_answer(cli, cli_json, arm):
    for more in ((), ("--engine", "constrained", "--no-gravity", "-t", "0.002")):
        found = cli_json("run", arm, *PULL, "--damping-ratio", "0.2", "-s", "4", *more)
        tip = found["bodies"]["tip"]
        assert tip["moved"] == pytest.approx(tip["at_rest"], rel=1e-3)
        assert found["still_moving"] is None
        assert found["undamped"] is False
    assert "still moving" not in cli("run", arm, *PULL, "--damping-ratio", "0.2", "-s", "4").stdout


def test_saved_models_tell_it_too_and_take_dampers(cli, cli_json, arm):
    cli("reduce", arm, "--default-stiffness", "100", "-e", "tip", "-o", "model.npz")
    found = cli_json("run", "model.npz", "-w", "tip:0,0,-5", "--damping-ratio", "0.2", "-s", "4")
    assert found["bodies"]["tip"]["moved"] == pytest.approx(found["bodies"]["tip"]["at_rest"], rel=1e-3)
    assert found["rest"]["model_error"] < 1e-4


def test_gravity_and_limits_count_in_the_static_answer(cli, cli_json, arm):
    m = pliant.load(arm).with_stiffness("*", 100.0)
    found = cli_json("run", arm, "--engine", "constrained", "--default-stiffness", "100", "-s", "0.1")
    sag = pliant.equilibrium(m, gravity=(0, 0, -9.81)).displacement[m.body_index("tip")]
    assert found["bodies"]["tip"]["at_rest"] == pytest.approx(sag, rel=1e-6)
    arm.write_text(URDF.replace('upper="2"', 'upper="0.3"'))
    pushed = ("run", arm, "-w", "tip:0,0,-300", "--default-stiffness", "20", "-s", "0.1")
    assert cli_json(*pushed)["rest"]["stops"] == ["shoulder"]
    assert "held by the limits of 'shoulder'.\n" in cli(*pushed).stdout
    pulled = cli("compare", *pushed[1:], "--engine", "constrained").stdout
    assert "held by the limits of 'shoulder'\n" in pulled
    assert "Blends know limits" not in pulled
    assert "Blends know limits" in cli("compare", *pushed[1:], "--engine", "blended").stdout
    full = ("--engine", "quasistatic", "--no-gravity")
    assert "The quasi-static engine knows no limits." in cli(*pushed, *full).stdout


def test_limits_are_named_only_where_they_hold(cli, tmp_path):
    """A pose beyond its limits, as in many files: away from them nothing holds, towards them nothing moves."""
    file = tmp_path / "beyond.urdf"
    file.write_text(URDF.replace('lower="-2" upper="2"', 'lower="0.5" upper="2"'))
    load = ("--default-stiffness", "20", "-s", "0.1")
    away, towards = (cli("run", file, "-w", f"tip:0,0,{force}", *load) for force in (-1, 1))
    assert "by nonlinear statics.\n" in away.stdout
    assert "moves nothing" not in away.stderr
    held = pliant.load(file).with_stiffness("*", 20.0)
    assert pliant.equilibrium(held, {"tip": (0, 0, -1)}, limits=True).at_stops == ()
    assert pliant.equilibrium(held, {"tip": (0, 0, 1)}, limits=True).at_stops == ("shoulder",)
    assert "held by the limits of 'shoulder'" in towards.stdout
    one_way = "'shoulder' begins beyond its limit: the constrained engine lets it come back but not out again"
    full = ("--engine", "constrained", *load)
    assert one_way in cli("run", file, "--no-gravity", "-w", "tip:0,0,-1", *full).stdout
    assert one_way in cli("compare", file, "-w", "tip:0,0,-1", *full).stdout
    assert one_way not in away.stdout
    assert one_way not in cli("run", file, "--no-gravity", "-w", "tip:0,1,0", *full).stdout


def test_limits_that_no_joint_passes_hold_nothing(cli, cli_json, tmp_path):
    """The shoulder begins beyond its limit and comes back, the elbow goes half the way to its own: as if without."""
    file = tmp_path / "beyond.urdf"
    text = URDF.replace('lower="-2" upper="2"', 'lower="0.5" upper="2"')
    file.write_text(
        text.replace(
            '<axis xyz="0 1 0"/></joint>', '<axis xyz="0 1 0"/><limit lower="-2" upper="0.02"/></joint>', 1
        ).replace("continuous", "revolute")
    )
    m = pliant.load(file).with_stiffness("*", 20.0)
    free = pliant.equilibrium(m, {"tip": (0, 0, -1)})
    assert free["elbow"] == pytest.approx(0.2 / 20, rel=0.02)
    assert free.beyond_limits == ("shoulder",)
    pull = ("-w", "tip:0,0,-1", "--default-stiffness", "20")
    found = cli_json("run", file, *pull, "-s", "0.1")
    assert found["bodies"]["tip"]["at_rest"] == pytest.approx(
        free.displacement[m.body_index("tip")], rel=1e-9
    )
    assert found["rest"]["stops"] == []
    said = cli_json("compare", file, *pull, "-s", "0.1", "--engine", "reduced")
    assert said["equilibrium"]["limits"] is False
    assert said["engines"]["reduced"]["rest_error"][-1] < 1e-9


TWO_ARMS = """<mujoco model="two"><compiler angle="radian"/><worldbody>
  <body name="left"><joint name="l" axis="0 1 0" stiffness="1" damping=".1" range="-1 0.05"/>
    <geom pos=".2 0 0" size=".02" mass="1"/><body name="left_tip" pos=".3 0 0"/></body>
  <body name="right" pos="0 .5 0"><joint name="r" axis="0 1 0" stiffness="50" damping="3"/>
    <geom pos=".2 0 0" size=".02" mass="1"/><body name="right_tip" pos=".3 0 0"/></body></worldbody></mujoco>"""


def test_limits_of_joints_elsewhere_are_not_named(cli, cli_json, tmp_path):
    """The left arm hangs on its limit under gravity, the right one does not."""
    file = tmp_path / "two.xml"
    file.write_text(TWO_ARMS)
    run = ("run", file, "--engine", "constrained", "-s", "0.1")
    assert cli_json(*run, "-e", "left_tip")["rest"]["stops"] == ["l"]
    assert cli_json(*run, "-e", "right_tip")["rest"]["stops"] == []
    assert "held by the limits" not in cli(*run, "-e", "right_tip").stdout
    said = cli(
        "run", file, "-e", "left_tip", "-e", "right_tip", "-w", "right_tip:1,0,0", "-s", "0.1", "--gravity"
    )
    assert "'r' carries it to the world" not in said.stderr  # it sags, and pulls back
    assert "is at or beyond its limit" not in said.stderr


def test_couplings_hold_too():
    """What a body hangs on: its joints, those coupled to them, and those coupled to these."""
    b = pliant.Builder("coupled")
    for name in "abcd":
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 0))
        b.hinge(f"j{name}", "world", name, anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    alone = b.build()
    assert holding(alone, ["a"], alone.dof_names) == ("ja",)
    b.couple({"ja": 1.0, "jb": -1.0})
    b.tendon("second", {"jb": 1.0, "jc": 1.0}, stiffness=1.0)
    m = b.build()
    assert holding(m, ["a"], m.dof_names) == ("ja", "jb", "jc")
    assert holding(m, ["d"], m.dof_names) == ("jd",)
    gripper = pliant.gallery.gripper()
    assert holding(gripper, ["left_pad"], gripper.dof_names) == gripper.dof_names


def test_a_quasi_static_run_tells_what_it_leaves_out(cli):
    """The tolerance is of joints that are not computed; where all are, nothing is left out."""
    run = (
        "run",
        "gallery:millipede:100,10,300",
        "-w",
        "leg50_10:0,0,1",
        "--no-gravity",
        "-t",
        "0.001",
        "-s",
        "0.003",
    )
    some = cli(*run, "--engine", "quasistatic").stdout
    found = re.search(
        r"\d+ joints moved; accelerations of the others, at most (\S+) % of the largest, left out", some
    )
    assert found is not None, some
    assert 0 < float(found[1]) <= 1
    assert re.search(r"joints moved\n", cli(*run, "--engine", "quasistatic", "--tolerance", "1e-15").stdout)


def test_a_model_made_beyond_limits_says_so(cli, tmp_path):
    """Under gravity a spring of 1 N m/rad would let the left arm hang far below its limit."""
    file = tmp_path / "two.xml"
    file.write_text(TWO_ARMS)
    words = "made where the load takes 'l' beyond its limit: `--engine constrained` holds limits"
    assert words in cli("reduce", file, "--gravity", "-e", "left_tip").stdout
    said = cli("run", file, "--gravity", "-e", "left_tip", "-s", "0.1").stderr
    assert f"warning: the model is {words}" in said
    assert "came to rest" not in said
    assert "moves nothing" not in said
    assert "beyond" not in cli("run", file, "-e", "left_tip", "-s", "0.1").stderr
    assert "beyond" not in cli("run", file, "--gravity", "-e", "right_tip", "-s", "0.1").stderr
    assert "made where" not in cli("reduce", file, "-e", "left_tip").stdout


def test_a_model_that_stops_as_a_whole_says_so(cli, cli_json, tmp_path):
    """Five joints, two coordinates: where the first two reach their limits it stops, while the others could go on."""
    bodies = "".join(
        f'<body name="b{i}" pos="{0 if i == 0 else 0.2} 0 0"><joint name="j{i}" axis="0 1 0" stiffness="5" damping="1" '
        f'range="-1 {0.1 if i < 2 else 1}"/><geom pos=".1 0 0" size=".02" mass=".1"/>'
        for i in range(5)
    )
    file = tmp_path / "finger.xml"
    file.write_text(
        f'<mujoco model="finger"><compiler angle="radian"/><worldbody>{bodies}<body name="tip" pos=".2 0 0"/>'
        f"{'</body>' * 5}</worldbody></mujoco>"
    )
    push = ("run", file, "-e", "tip", "-w", "tip:0,0,-3", "-s", "5")
    found = cli_json(*push)
    tip = found["bodies"]["tip"]
    assert found["still_moving"] is None
    assert found["rest"]["stops"] == ["j0", "j1"]
    assert abs(tip["moved"] - tip["at_rest"]) > 0.05 * tip["at_rest"]
    said = cli(*push).stderr
    assert re.search(
        r"came to rest \S+ % of the displacement away from the static answer: at the limits of 'j0', 'j1'",
        said,
    )
    assert "`--engine constrained`" in said
    full = cli(*push, "--engine", "constrained", "--no-gravity")
    assert "came to rest" not in full.stderr
    assert cli_json(*push, "--engine", "constrained", "--no-gravity")["rest"]["astray"] < 0.01


def test_a_load_that_only_presses_joints_on_their_limits_moves_nothing(cli, tmp_path):
    file = tmp_path / "finger.xml"
    file.write_text(KEYED.replace('range="-1 1"', 'range="0 1"'))
    said = cli("run", file, "-e", "b", "-w", "b:-5,0,0", "-s", "0.1")
    assert (
        "warning: the load moves nothing: 'p' is at or beyond its limit in this pose already" in said.stderr
    )


# --- gravity, gaps, distances


def test_a_run_says_what_gravity_does(cli, arm):
    load = ("--default-stiffness", "100", "-s", "0.01")
    for more, words in (
        ((), "reduced engine, gravity compensated: 10 steps"),
        (("--gravity",), "reduced engine, under gravity: 10 steps"),
        (("--engine", "constrained"), "constrained engine, under gravity: 1 step"),
        (("--engine", "constrained", "--no-gravity"), "constrained engine, no gravity: 1 step"),
        (("--engine", "quasistatic"), "quasistatic engine, under gravity: 1 step"),
        (("--engine", "adaptive"), "adaptive engine, under gravity: 1 step"),
        (("--engine", "adaptive", "--no-gravity"), "adaptive engine, no gravity: 1 step"),
    ):
        assert words in cli("run", arm, *load, *more).stdout
    assert "reduced engine, base free to fall:" in cli("run", "gallery:hexapod", "-s", "0.01").stdout


def test_rounding_is_no_gap_and_no_distance(cli):
    """Trees have no loops to open; gaps and distances of 1e-16 m are printed as none."""
    assert "loops" not in cli("run", "gallery:helix:5", "-s", "0.01").stdout
    said = cli("run", "gallery:gripper", "-w", "left_pad:0,1,0", "-s", "0.01").stdout
    assert "; loops all closed\n" in said
    assert "end effectors went at most 0 radii (0 m) from where the model was made" in said


def test_what_floats_has_no_static_answer(cli, cli_json):
    said = cli("run", "gallery:hexapod", "-s", "0.05").stdout
    assert "no static answer: 'hexapod' floats" in said
    assert "still moving" not in said
    found = cli_json("run", "gallery:hexapod", "-s", "0.05")
    assert found["rest"]["found"] is False


def test_a_single_long_step_is_still_moving(cli_json, cli, arm):
    assert cli_json("run", arm, *PULL, "-t", "60", "-s", "60")["still_moving"] == "tip"
    assert "a time step of 60 s" in cli("run", arm, *PULL, "-t", "60", "-s", "60").stderr


def test_more_damping_is_no_remedy_for_what_creeps(cli, arm):
    """Dampers beyond the critical, and a ratio that was given: only time helps. Weak ones: both."""
    run = ("run", arm, *PULL)
    for damping, more, words in (
        (60, ("-s", "1"), "this instant; `--seconds` runs longer.\n"),
        (0.02, ("-s", "1"), "`--seconds` runs longer; `--damping-ratio 0.1` lets it settle.\n"),
        (0, ("-s", "0.3", "--damping-ratio", "0.1"), "this instant; `--seconds` runs longer.\n"),
    ):
        axis, damper = '<axis xyz="0 1 0"/>', f'<dynamics damping="{damping}"/>'
        arm.write_text(URDF.replace(axis, axis + damper))
        assert words in cli(*run, *more).stdout


def test_an_undamped_motion_past_a_limit_swings_about_nothing(cli, tmp_path):
    """The static answer is held by a limit, which bounces the motion away: it is not what the motion swings about."""
    file = tmp_path / "stop.urdf"
    file.write_text(URDF.replace('upper="2"', 'upper="0.02"'))
    said = cli(
        "run", file, "-w", "tip:0,0,-30", "--default-stiffness", "100", "--engine", "constrained"
    ).stdout
    assert "held by the limits of 'shoulder'" in said
    assert "swings about" not in said


def test_a_table_of_lengths_fits_the_largest(cli, cli_json, tmp_path):
    """Also where that is the static one; what is a millionth of it is none."""
    file = tmp_path / "two.xml"
    file.write_text(TWO_ARMS.replace('damping="3"', 'damping="3000"'))
    push = ("-e", "left_tip", "-e", "right_tip", "-w", "right_tip:0,0,-90", "-s", "0.001")
    found = cli_json("run", file, *push)["bodies"]["right_tip"]
    assert found["farthest"] < 1e-4 < 0.1 < found["at_rest"]
    said = cli("run", file, *push).stdout
    assert "static (m)" in said
    assert re.search(rf"right_tip .* {found['at_rest']:.5g} ", said)
    assert re.search(r"right_tip( +\S+){3} +2\.\d+e-06 ", said)
    still = (
        "-e",
        "left_tip",
        "-e",
        "right_tip",
        "-w",
        "right_tip:0,0,-90,0,0,0",
        "-w",
        "left_tip:0,0,1e-9",
        "-s",
        "0.001",
    )
    assert re.search(r"left_tip( +\S+){3} +0 +0 +0 ", cli("run", file, *still).stdout)


# --- models beyond what they know


def test_what_floats_has_its_frequencies_and_stiffness_held(cli):
    """As the frequencies of the mechanism with its base fixed are; the free ones are others."""
    said = cli("reduce", "gallery:hexapod").stdout
    m = pliant.gallery.hexapod()
    base = pliant.reduce(m).base.body
    lowest = pliant.Configuration(m.with_fixed_base()).frequencies(1)[0]
    assert f"natural frequencies with '{base}' held: {lowest:.4g}, " in said
    assert f"origin of the end effector; '{base}' is held." in said
    assert "held" not in cli("reduce", "gallery:helix:5").stdout
    assert (
        f"from where the model was made, as seen from '{base}'\n"
        in cli("run", "gallery:hexapod", "-s", "0.01").stdout
    )
    assert "as seen from" not in cli("run", "gallery:helix:5", "-s", "0.01").stdout


def test_a_model_that_goes_too_far_says_so(cli, cli_json):
    """In radii, with remedies in options, and with its own error at rest."""
    far = ("run", "gallery:helix:20", "-w", "link20:0,0,-2000", "-s", "0.2")
    result = cli(*far)
    assert re.search(
        r"end effectors went at most \S+ radii \(\S+ m\) from where the model was made", result.stdout
    )
    beyond, off = result.stderr.splitlines()
    assert "beyond 0.3 radii" in beyond
    assert "pliant." not in beyond
    for remedy in (
        "`pliant compare`",
        "`pliant reduce --reach RADII`",
        "`--engine blended`",
        "`--engine constrained`",
    ):
        assert remedy in beyond
    found = cli_json(*far)
    m = pliant.gallery.helix(20)
    load = {"link20": (0, 0, -2000.0)}
    truth, own = pliant.equilibrium(m, load), pliant.reduce(m).configuration(load)
    apart = np.linalg.norm((own.pose("link20") - truth.pose("link20"))[:3, 3])
    error = apart / truth.displacement[m.body_index("link20")]
    assert found["rest"]["model_error"] == pytest.approx(error, rel=1e-3)
    assert error > 0.05
    assert "the model is off by" in off
    assert found["radii"] > 0.3


def test_a_comparison_tells_errors_instead_of_distances(cli):
    result = cli("compare", "gallery:suspension", "--pull", "0.9", "-s", "0.05", "--engine", "reduced")
    assert result.stderr == ""


# --- nothing moves


def test_a_load_that_moves_nothing(cli, cli_json, refused, keyed, monkeypatch):
    """Straight up, the arm carries a push along itself: joints that carry it are named, and the keyframes."""
    push = ("-w", "tip:0,0,-5", "-s", "0.05")
    (said,) = cli("run", keyed, *push).stderr.splitlines()
    assert "the load moves nothing: 'p', 'q' carry it to the world" in said
    assert said.endswith("(bent, far)")
    assert "the load moves nothing: 'p', 'q' carry it" in refused("compare", keyed, *push[:2])
    assert cli("run", keyed, *push, "--keyframe", "bent").stderr == ""
    heights = []
    draw = matplotlib.figure.Figure.savefig
    monkeypatch.setattr(
        matplotlib.figure.Figure,
        "savefig",
        lambda self, *a, **k: (heights.append(self.axes[0].get_ylim()), draw(self, *a, **k))[1],
    )
    cli("run", keyed, *push, "--plot", "nothing.png")
    low, high = heights[0]
    assert low == 0
    assert high * unit_for(1e-6 * pliant.load(keyed).radius, LENGTHS)[0] > 0.9e-6 * pliant.load(keyed).radius


# --- info


def test_info_lists_what_a_user_asks_next(cli, cli_json, keyed, arm):
    said = cli("info", keyed).stdout
    assert "keyframes, for --keyframe: bent, far" in said
    for heading in ("mass (kg)", "stiffness (N m/rad)", "damping (N m s/rad)"):
        assert heading in said
    assert "beyond their limits in this pose: p" in cli("info", keyed, "--keyframe", "far").stdout
    assert cli_json("info", keyed)["keyframes"] == ["bent", "far"]
    arm.write_text(URDF.replace('velocity="5"/>', 'velocity="5"/><dynamics friction="0.5"/>'))
    result = cli("info", arm)
    assert "without a spring (2; `--default-stiffness 100` gives them one): shoulder, elbow" in result.stdout
    assert "end effectors: tip" in result.stdout
    assert (
        "1 x joint with dry friction, which acts on motion and on where it comes to rest, not on compliance: shoulder"
        in result.stdout
    )
    assert (
        "dry friction, which acts on motion and on where it comes to rest, not on compliance" in result.stderr
    )
    assert cli_json("info", arm)["left_out"][0]["places"] == ["shoulder 0.5 N m"]


def test_info_names_what_is_fixed_and_all_rows_there_are(cli, tmp_path):
    """The root of a URDF is fixed to the world; coupled joints beyond the first ten are counted; units of tendons."""
    said = cli("info", "gallery:helix:3").stdout
    assert "fixed to the world" not in said
    bodies = "".join(
        f'<body name="c{i}" pos="{i} 0 1"><joint name="j{i}" axis="0 1 0"/><geom size=".1"/></body>'
        for i in range(13)
    )
    rows = "".join(f'<joint joint1="j{i + 1}" joint2="j0" polycoef="0.5 -1 0 0 0"/>' for i in range(12))
    file = tmp_path / "rows.xml"
    file.write_text(
        f"""<mujoco><worldbody><body name="base"><geom size=".1"/>{bodies}</body></worldbody>
        <equality>{rows}</equality><tendon><fixed name="cord" stiffness="3">
        <joint joint="j0" coef="0.25"/><joint joint="j1" coef="-1"/></fixed></tendon></mujoco>"""
    )
    said = cli("info", file).stdout
    assert "fixed to the world: base\n" in said
    assert "coupling coupling0: j1 + j0 = 0.5\n" in said
    assert "... and 2 more couplings\n" in said
    assert "tendon cord: stiffness 3, damping 0, length 0.25 j0 - j1\n" in said
    assert (
        "of tendons: N/m and N s/m where the length is in m, N m/rad and N m s/rad where it is in rad" in said
    )


def test_masses_in_the_table_of_joints_add_up(cli):
    """Bodies that loops close on are listed twice, their masses once."""
    said = cli("info", "gallery:gripper").stdout
    rows = [line.split() for line in said.partition("---\n")[2].splitlines()]
    m = pliant.gallery.gripper()
    joints = [row for row in rows if row and row[0] in m.joint_names]
    assert len(joints) == m.joint_count
    masses = [row[5] if "(loop)" in row else row[4] for row in joints]
    assert masses.count("-") == m.topology.loops == 2
    assert sum(float(mass) for mass in masses if mass != "-") == pytest.approx(m.total_mass, rel=1e-3)


def test_a_body_alone_has_no_radius_and_moves_nowhere(cli, refused, tmp_path):
    file = tmp_path / "stone.xml"
    file.write_text('<mujoco><worldbody><body name="stone"><geom size=".1"/></body></worldbody></mujoco>')
    assert "all in one point" in cli("info", file).stdout
    for command in ("reduce", "run", "compare"):
        assert "can move: all its joints are fixed" in refused(command, file)


# --- noise


def test_rounding_of_a_file_is_not_printed_as_stiffness(cli, cli_json, tmp_path):
    """An axis that is off by the digits of the file would give a stiffness of 1e11, which nobody has."""
    file = tmp_path / "rounded.xml"
    file.write_text(KEYED.replace('name="q" axis="0 1 0"', 'name="q" axis="0.000004 1 0"'))
    model = pliant.reduce(pliant.load(file, keyframe="bent"), "tip")
    compliance = np.linalg.eigvalsh(model.compliance[3:6, 3:6])
    assert 1e11 < 1 / compliance[1] < 1e14
    said = cli("reduce", file, "--keyframe", "bent", "-e", "tip").stdout
    assert len(re.findall("N m/rad", said)) == 1
    assert "e+1" not in said
    assert "e+1" not in model.summary()
    found = cli_json("reduce", file, "--keyframe", "bent", "-e", "tip")
    assert found["principal"]["tip"]["rotation"]["stiffness"][1:] == [None, None]


# --- words


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in WORDS])
def test_every_phrase_that_is_put_in_options_is_one_of_the_library(pattern):
    """By its first plain words, in the sources: else the phrase has changed and its translation is dead."""
    plain = re.sub(r"\\(.)", r"\1", re.sub(r"\([^)]*\)\+?\*?|\[[^]]*\]\*|\(\\d\+\)", "\0", pattern))
    longest = max(re.split(r"\0|\.\*", plain), key=len)[:24]
    text = "".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        for path in SOURCE.rglob("*.py")
        if "cli" not in path.relative_to(SOURCE).parts
    )
    assert longest in text, longest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reduce", "arm.urdf"), "`--default-stiffness 100`"),
        (("run", "arm.urdf"), "`--default-stiffness 100`"),
        (("map", "arm.urdf"), "`--default-stiffness 100`"),
        (("reduce", "meshed.xml"), "`--skip-meshes`"),
        (("reduce", "outside.xml"), "`--allow"),
        (("reduce", "odd.urdf"), "`--repair`"),
        (("run", "arm.urdf", "--damping-ratio", "0.1"), "`--default-stiffness 100`"),
    ],
)
def test_errors_speak_of_options(refused, arm, arguments, words):
    Path("meshed.xml").write_text(MESHED.format("missing.stl"))
    Path("outside.xml").write_text(MESHED.format("/etc/passwd.stl"))
    Path("odd.urdf").write_text(URDF.replace('iyy=".01" izz=".01"', 'iyy=".0001" izz=".01"'))
    said = refused(*arguments)
    assert words in said
    assert not re.search(r"pliant\.\w|with_\w+|\w=(True|False|\[)|\(\.\.\.", said)


MESHED = """<mujoco><asset><mesh name="m" file="{}"/></asset><worldbody><body name="a">
  <joint name="j" axis="0 1 0" stiffness="3"/><inertial pos=".1 0 0" mass="1" diaginertia=".1 .1 .1"/>
  <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def test_meshes_may_be_skipped(cli):
    Path("meshed.xml").write_text(MESHED.format("missing.stl"))
    for command in ("info", "reduce", "run", "compare"):
        more = ("-w", "a:0,0,0,0,1,0", "-s", "0.05") if command == "run" else ()
        if command != "compare":
            assert cli(command, "meshed.xml", "--skip-meshes", *more).stdout


@pytest.mark.parametrize("text", ["no options in here", "f(port=3)"])
def test_other_text_stays(text):
    assert as_options(text) == text


def test_a_port_is_checked_before_anything_is_loaded(refused):
    """The file is not even there: the port is refused first."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("view", "missing.xml", "--port", port)
        assert f"port {port} of 127.0.0.1 is in use" in said
        assert f"`--port {port + 1 if port < 65535 else port - 1}`" in said
        assert "in use" in refused("map", "missing.xml", "--view", "--port", port)
    assert "65535" in refused("view", "missing.xml", "--port", "99999")


def test_damping_is_refused_where_it_has_no_meaning(refused):
    assert "leave --damping-ratio out" in refused("run", "gallery:grasp", "--damping-ratio", "0.1")
    assert "damping ratio" in refused("run", "gallery:two_link", "--damping-ratio", "-1")
