"""`pliant run` and `compare`: the same numbers as the library, files as asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant.engines.reduced.accuracy import measure


def stepped(simulation, force, n, body):
    simulation.apply_wrench(body, force=force)
    simulation.step(n)
    return simulation.pose(body)


def test_reduced(cli_json):
    model = pliant.reduce(pliant.gallery.hand())
    pose = stepped(pliant.ReducedSimulation(model, 1e-3), (0, 0, 2), 200, "index_tip")
    files = "-o", "path.npz", "--plot", "path.png"
    found = cli_json("run", "gallery:hand", "-s", "0.2", "-w", "index_tip:0,0,2", *files)
    assert (found["engine"], found["steps"], found["interrupted"]) == ("reduced", 200, False)
    np.testing.assert_allclose(found["bodies"]["index_tip"]["pose"], pose, rtol=0, atol=1e-14)
    path = pliant.Trajectory.load("path.npz")
    assert path.time[0] == 0
    np.testing.assert_array_equal(path.pose("index_tip")[-1], found["bodies"]["index_tip"]["pose"])
    assert found["files"] == {"trajectory": "path.npz", "plot": "path.png"}
    assert Path("path.png").read_bytes()[:4] == b"\x89PNG"


def test_a_saved_model(cli_json, refused):
    model = pliant.reduce(pliant.gallery.helix(20))
    model.save("model.npz")
    pose = stepped(pliant.ReducedSimulation(model, 0.01), (1, 2, 3), 10, "link20")
    found = cli_json("run", "model.npz", "-s", "0.1", "-t", "0.01", "-w", "link20:1,2,3")
    np.testing.assert_allclose(found["bodies"]["link20"]["pose"], pose, rtol=0, atol=1e-14)
    assert "end effectors of its own" in refused("run", "model.npz", "-e", "link20")
    assert "linearised already" in refused("run", "model.npz", "--gravity")
    assert "single model" in refused("run", "model.npz", "--engine", "blended")


def test_a_saved_blend(cli_json, refused):
    m = pliant.gallery.helix(8)
    loaded = pliant.reduce(m, at=pliant.equilibrium(m, {"link8": (0, 0, -30)}))
    model = pliant.blend([pliant.reduce(m), loaded])
    model.save("blend.npz")
    pose = stepped(pliant.ReducedSimulation(model, 0.01), (0, 0, -20), 10, "link8")
    found = cli_json("run", "blend.npz", "-s", "0.1", "-t", "0.01", "-w", "link8:0,0,-20")
    assert found["engine"] == "blended"
    np.testing.assert_allclose(found["bodies"]["link8"]["pose"], pose, rtol=0, atol=1e-14)
    assert "is a blend of models" in refused("run", "blend.npz", "--engine", "reduced")
    assert "is a blend of models" in refused("reduce", "blend.npz")


def test_a_world(cli_json, cli, refused):
    play = pliant.scenes.grasp()
    play.run(1.5)
    arguments = "run", "gallery:grasp", "-s", "1.5"
    found = cli_json(*arguments, "-o", "path.npz", "--record", "grasp.html", "--plot", "grasp.png")
    assert (found["engine"], found["mechanism"], found["steps"]) == ("world", "grasp", 90)
    np.testing.assert_array_equal(found["bodies"]["ball"]["pose"], play.world["ball"].pose())
    held = [c for c in found["contacts"] if np.any(c["force"])]
    assert {pair for c in held for pair in c["bodies"]} >= {"ball", "hand/finger1_tip"}
    np.testing.assert_array_equal([c["force"] for c in found["contacts"]], play.world.contacts.forces)
    path = pliant.Trajectory.load("path.npz")
    np.testing.assert_allclose(path.pose("hand/palm")[-1], play.world.pose("hand/palm"), atol=1e-12)
    assert "<html" in Path("grasp.html").read_text(encoding="utf-8")[:2000].lower()
    assert Path("grasp.png").read_bytes()[:4] == b"\x89PNG"
    watched = cli_json("run", "gallery:grasp", "-s", "0.05", "-e", "hand/palm")
    assert list(watched["bodies"]) == ["hand/palm"]
    assert "last step: " in cli("run", "gallery:grasp", "-s", "0.05").stdout
    for option in (("--engine", "reduced"), ("-t", "0.1"), ("-w", "ball:0,0,1"), ("--no-gravity",)):
        said = refused(*arguments, *option)
        assert "is a world" in said
        assert "pliant gallery grasp" in said
    assert "did you mean 'ball'" in refused(*arguments, "-e", "bal")
    for command in ("reduce", "compare"):
        assert "is a world, not one mechanism" in refused(command, "gallery:grasp")
    assert "springs are fixed" in refused(*arguments, "--default-stiffness", "1")


def test_blended_is_repeatable(cli_json):
    arguments = "run", "gallery:helix:8", "--engine", "blended", "-s", "0.05", "-w", "link8:0,0,-100"
    first, second = (cli_json(*arguments, "--seed", "3") for _ in range(2))
    for found in (first, second):
        found.pop("timing")
    assert first == second
    assert first["bodies"]["link8"]["moved"] > 0


@pytest.mark.parametrize(("flag", "gravity"), [((), (0, 0, -9.81)), (("--no-gravity",), (0, 0, 0))])
def test_constrained(cli_json, flag, gravity):
    simulation = pliant.ConstrainedSimulation(pliant.gallery.gripper(), 1 / 60, gravity)
    simulation.apply_wrench("left_pad", force=(5, 0, 0), torque=(0, 1, 0))
    simulation.step(12)
    found = cli_json(
        "run", "gallery:gripper", "--engine", "constrained", "-s", "0.2", "-w", "left_pad:5,0,0,0,1,0", *flag
    )
    np.testing.assert_allclose(
        found["bodies"]["left_pad"]["pose"], simulation.pose("left_pad"), rtol=0, atol=1e-12
    )
    assert found["energy"]["total"] == pytest.approx(simulation.energy.total, rel=1e-9)


def test_quasistatic(cli_json, cli):
    m = pliant.gallery.bicycle_chain(12)
    simulation = pliant.QuasistaticSimulation(m, 1 / 60, tolerance=0.02)
    simulation.step(30)
    arguments = (
        "run",
        "gallery:bicycle_chain:12",
        "--engine",
        "quasistatic",
        "-s",
        "0.5",
        "--tolerance",
        "0.02",
    )
    found = cli_json(*arguments)
    np.testing.assert_allclose(
        found["bodies"]["link12"]["pose"], simulation.pose("link12"), rtol=0, atol=1e-12
    )
    assert found["active_joints"] == len(simulation.active)
    assert "joints moved" in cli(*arguments).stdout


def test_scene(cli_json, refused):
    scene = pliant.scenes.heavy_ball(1e5, 6)
    simulation = scene.simulate()
    simulation.step(30)
    found = cli_json("run", "gallery:heavy_ball:1e5,6", "-s", "0.5")
    assert found["engine"] == "constrained"
    assert found["energy"]["total"] == pytest.approx(simulation.energy.total, rel=1e-9)
    assert "scene" in refused("run", "gallery:heavy_ball", "--engine", "reduced")


def test_floating_base_falls(cli_json):
    found = cli_json("run", "gallery:hexapod", "-s", "0.1")
    assert all(body["moved"] > 0.01 for body in found["bodies"].values())
    still = cli_json("run", "gallery:hexapod", "-s", "0.1", "--no-gravity")
    assert all(body["moved"] < 1e-12 for body in still["bodies"].values())


def test_recording(cli):
    said = cli("run", "gallery:helix:5", "-s", "0.1", "--record", "helix.html")
    assert "helix.html" in said.stderr
    assert "<html" in Path("helix.html").read_text(encoding="utf-8")[:2000].lower()


def test_output_replaces_a_file(cli):
    Path("path.npz").write_text("something else")
    cli("run", "gallery:helix:5", "-s", "0.1", "-o", "path.npz")
    assert len(pliant.Trajectory.load("path.npz")) > 1
    assert sorted(p.name for p in Path().iterdir()) == ["path.npz"]


def test_compare(cli_json, cli):
    m = pliant.gallery.helix(12)
    loads = {"link12": (0.0, 0.0, -60.0)}
    arguments = "compare", "gallery:helix:12", "-w", "link12:0,0,-60", "-s", "0.1"
    found = cli_json(*arguments, "--plot", "compare.png")
    truth = pliant.equilibrium(m, loads)
    assert found["equilibrium"]["moved"] == truth.displacement[-1]
    error = measure(pliant.reduce(m), [loads])
    expected = error.position[0] / error.moved[0]
    assert found["engines"]["reduced"]["rest_error"][-1] == pytest.approx(expected, rel=1e-9)
    assert found["engines"]["blended"]["rest_error"][-1] <= expected
    assert 0 < max(found["engines"]["constrained"]["rest_error"]) < 1e-4  # it comes to rest by itself
    assert 0 < found["engines"]["reduced"]["motion_error"] < 0.2
    assert found["engines"]["constrained"]["elastic"] == pytest.approx(
        found["equilibrium"]["elastic"], rel=1e-3
    )
    assert all(engine["timing"]["step"] > 0 for engine in found["engines"].values())
    assert Path("compare.png").read_bytes()[:4] == b"\x89PNG"
    said = cli(*arguments).stdout
    assert all(word in said for word in ("reduced", "blended", "constrained", "µs a step"))


def test_compare_chooses_a_pull_and_says_what_an_engine_refuses(cli_json, cli):
    arguments = "compare", "gallery:gripper", "-s", "0.02", "--engine", "reduced", "--engine", "quasistatic"
    found = cli_json(*arguments)
    assert set(found["wrenches"]) <= {"left_pad", "right_pad"}
    assert found["engines"]["reduced"]["problem"] is None
    radius = pliant.gallery.gripper().radius
    assert found["equilibrium"]["moved"] == pytest.approx(0.1 * radius, rel=0.3)
    if found["engines"]["quasistatic"]["problem"] is not None:
        assert "quasistatic: " in cli(*arguments).stderr


def test_compare_holds_a_floating_base(cli):
    said = cli("compare", "gallery:hexapod", "-s", "0.02", "--engine", "reduced")
    assert "held for the comparison" in said.stderr


def test_compare_keeps_joint_limits(cli_json, robot):
    text = robot.read_text().replace('name="shoulder"', 'name="shoulder" limited="true" range="-5 5"')
    robot.write_text(text)
    arguments = "compare", robot, "-e", "tip", "-w", "tip:0,0,-60", "-s", "0.02", "--engine", "constrained"
    found = cli_json(*arguments)
    assert found["equilibrium"]["limits"]
    assert max(found["engines"]["constrained"]["rest_error"]) < 0.15  # stops of statics are softer
