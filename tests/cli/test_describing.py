"""`pliant gallery`, `info` and `reduce`: what they say is what the library says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pliant


def test_gallery_lists_everything(cli, cli_json, monkeypatch):
    found = cli_json("gallery")
    assert [m["name"] for m in found["mechanisms"]] == list(pliant.gallery.names())
    assert [s["name"] for s in found["scenes"]] == list(pliant.scenes.names("constrained"))
    worlds = {w["name"]: w["what"] for w in found["worlds"]}
    assert "lifts it" in worlds["grasp"]
    assert "lifting_hand" not in worlds  # a mechanism
    ladder = next(m for m in found["mechanisms"] if m["name"] == "ladder")
    assert (ladder["bodies"], ladder["joints"], ladder["loops"]) == (36, 48, 12)
    assert "spring ladder" in ladder["what"]
    monkeypatch.setattr(pliant.gallery, "names", lambda: ("hand", "ladder"))  # the huge ones take seconds
    said = cli("gallery").stdout
    assert all(word in said for word in ("hand", "ladder", "36", "spring ladder", "heavy_ball"))


def test_gallery_of_one(cli, cli_json):
    said = cli("gallery", "ladder").stdout
    assert "rungs: number of rungs" in said
    assert "pliant reduce gallery:ladder" in said
    found = cli_json("gallery", "ladder:16,form=rails")
    assert (found["bodies"], found["kind"]) == (48, "mechanism")
    assert found["arguments"] == {"rungs": 12, "form": "cells", "cell": 2.0}


def test_gallery_scene(cli, cli_json):
    assert "pliant run gallery:heavy_ball" in cli("gallery", "heavy_ball").stdout
    found = cli_json("gallery", "heavy_ball:1e4,joints=5")
    assert (found["kind"], found["bodies"]) == ("scene", 5)


def test_gallery_world(cli, cli_json):
    said = cli("gallery", "grasp").stdout
    assert "a world: pliant.scenes.grasp(" in said
    assert "pliant view gallery:grasp" in said
    found = cli_json("gallery", "grasp:full")
    assert (found["kind"], found["arguments"]["kind"]) == ("world", "reduced")
    things = {thing["name"]: thing for thing in found["things"]}
    assert (things["hand"]["kind"], things["hand"]["bodies"]) == ("mechanism", 7)
    assert (things["ball"]["kind"], things["ball"]["mass"]) == ("body", 0.1)
    assert things["floor"]["kind"] == "never moves"


def test_gallery_draws(cli, monkeypatch):
    """Dots in the terminal, and pictures in a folder."""
    from pliant.viewer.sketch import sketch

    assert sketch(pliant.gallery.gripper()) in cli("gallery", "gripper").stdout
    Path("pictures").mkdir()
    cli("gallery", "helix:4", "--pictures", "pictures")
    monkeypatch.setattr(pliant.gallery, "names", lambda: ())
    monkeypatch.setattr(pliant.scenes, "names", lambda engine=None: ())
    monkeypatch.setattr("pliant.source.world_names", lambda: ("grasp",))
    assert "wrote pictures to pictures" in cli("gallery", "--pictures", "pictures").stderr
    made = {path.name: path.read_bytes()[:4] for path in Path("pictures").iterdir()}
    assert made == dict.fromkeys(("helix.png", "grasp.png"), b"\x89PNG")


def test_a_name_that_both_a_mechanism_and_a_world_have(monkeypatch):
    from pliant import scenes, source

    monkeypatch.setattr(pliant.gallery, "names", lambda: ("helix", "grasp"))
    monkeypatch.setattr(pliant.gallery, "grasp", pliant.gallery.helix, raising=False)
    assert "worlds.grasp" in source.world_names()
    assert "grasp" not in source.world_names()
    assert source.find_maker("worlds.grasp") is scenes.grasp
    assert source.find_maker("grasp") is pliant.gallery.helix


def test_info_of_a_world(cli, cli_json):
    found = cli_json("info", "gallery:worlds.grasp")
    assert (found["kind"], found["name"], len(found["things"])) == ("world", "grasp", 3)
    assert "reduced model" in cli("info", "gallery:grasp").stdout


def test_info_of_a_mechanism_saved_as_arrays(cli_json):
    pliant.gallery.helix(8).save("helix.npz")
    found = cli_json("info", "helix.npz")
    assert (found["kind"], found["bodies"]) == ("mechanism", 8)


def test_info_of_a_blend(cli, cli_json):
    m = pliant.gallery.helix(8)
    loaded = pliant.reduce(m, at=pliant.equilibrium(m, {"link8": (0, 0, -30)}))
    pliant.blend([pliant.reduce(m), loaded]).save("blend.npz")
    found = cli_json("info", "blend.npz")
    assert (found["kind"], found["bodies"]) == ("blended model", 8)
    blend = found["blend"]
    assert (blend["end_effectors"], blend["exponent"]) == (["link8"], 6.0)
    np.testing.assert_array_equal(blend["models"][1]["wrench"], loaded.wrench)
    np.testing.assert_array_equal(blend["models"][1]["frequencies"], loaded.frequencies())
    said = cli("info", "blend.npz").stdout
    assert "blend of 2 models, end effectors link8" in said
    assert "30" in said


def test_info(cli, cli_json, robot):
    assert cli("info", robot).stdout.strip() == pliant.load(robot).summary()
    found = cli_json("info", robot)
    m = pliant.load(robot)
    assert (found["kind"], found["bodies"], found["dofs"]) == ("mechanism", 2, 2)
    assert found["mass"] == m.total_mass
    assert found["joint_table"][0]["stiffness"] == [20.0]
    assert [b["name"] for b in found["body_table"]] == ["arm", "tip"]


def test_info_of_our_own_files(cli, cli_json):
    m = pliant.gallery.gripper()
    m.save("gripper.json")
    assert cli_json("info", "gripper.json")["loops"] == 2
    model = pliant.reduce(m)
    model.save("model.npz")
    found = cli_json("info", "model.npz")
    assert (found["kind"], found["model"]["rank"]) == ("reduced model", model.rank)
    np.testing.assert_array_equal(found["model"]["frequencies"], model.frequencies())
    assert "natural frequencies" in cli("info", "model.npz").stdout
    simulation = pliant.ReducedSimulation(model, 0.01)
    simulation.record(5).save("path.npz")
    assert cli_json("info", "path.npz")["trajectory"]["frames"] == 5
    assert "trajectory: 5 frames" in cli("info", "path.npz").stdout


def test_reduce(cli, cli_json):
    model = pliant.reduce(pliant.gallery.hand(), ["index_tip", "thumb_tip"])
    arguments = ("reduce", "gallery:hand", "-e", "index_tip", "-e", "thumb_tip")
    found = cli_json(*arguments, "-o", "model.npz", "--plot", "hand.png")
    assert found["end_effectors"] == ["index_tip", "thumb_tip"]
    np.testing.assert_array_equal(found["compliance"], model.compliance)
    np.testing.assert_array_equal(found["frequencies"], model.frequencies())
    ellipsoid = model.stiffness_ellipsoid("thumb_tip", "rotation")
    seen = found["principal"]["thumb_tip"]["rotation"]
    np.testing.assert_array_equal(seen["axes"], ellipsoid.axes)
    assert seen["stiffness"] == [k if np.isfinite(k) else None for k in ellipsoid.stiffness.tolist()]
    np.testing.assert_array_equal(pliant.ReducedModel.load("model.npz").compliance, model.compliance)
    assert Path("hand.png").read_bytes()[:4] == b"\x89PNG"
    said = cli(*arguments).stdout
    assert "natural frequencies" in said
    assert said.index("principal stiffnesses") < said.index("index_tip")
    assert "compliance of thumb_tip" not in said
    assert "compliance of thumb_tip" in cli(*arguments, "--matrices").stdout
    assert f"{model.stiffness_ellipsoid('index_tip').stiffness[0]:.4g}" in said
    again = cli_json("reduce", "model.npz")
    assert again["compliance"] == found["compliance"]


def test_reduce_under_load(cli_json):
    m = pliant.gallery.helix(20)
    loads = {"link20": (0.0, 0.0, -30.0)}
    model = pliant.reduce(m, at=pliant.equilibrium(m, loads))
    found = cli_json("reduce", "gallery:helix:20", "-w", "link20:0,0,-30")
    np.testing.assert_array_equal(found["compliance"], model.compliance)
    hanging = pliant.reduce(m, at=pliant.equilibrium(m, gravity=(0, 0, -9.81)))
    found = cli_json("reduce", "gallery:helix:20", "--gravity")
    np.testing.assert_array_equal(found["compliance"], hanging.compliance)


def test_reduce_with_a_reach(cli, cli_json):
    model = pliant.reduce(pliant.gallery.helix(20), reach=0.4, tolerance=0.02)
    arguments = ("reduce", "gallery:helix:20", "--reach", "0.4", "--tolerance", "0.02", "-o", "model.npz")
    found = cli_json(*arguments)
    assert [found[word] for word in ("vectors", "reach", "tolerance")] == [model.vectors, model.reach, 0.02]
    assert cli_json("info", "model.npz")["model"]["reach"] == model.reach
    assert "radii at 2 % static error" in cli(*arguments).stdout
    assert cli_json("reduce", "gallery:helix:20")["reach"] is None


def test_springs_for_those_without(cli_json, robot):
    robot.write_text(robot.read_text().replace('stiffness="10"', ""))
    model = pliant.reduce(pliant.load(robot), "tip", default_stiffness=3.0)
    found = cli_json("reduce", robot, "-e", "tip", "--default-stiffness", "3")
    np.testing.assert_array_equal(found["compliance"], model.compliance)


@pytest.mark.parametrize("command", ["gallery", "info", "reduce", "run", "compare", "demo"])
def test_help_has_examples(cli, command):
    said = cli(command, "--help").stdout
    assert "Examples:" in said
    assert f"pliant {command}" in said.partition("Examples:")[2]
    assert "\b" not in said


def test_version_and_no_arguments(cli):
    assert cli("--version").stdout == f"pliant {pliant.__version__}\n"
    assert "compare" in cli().stdout
