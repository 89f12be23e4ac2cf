"""`pliant map`: it says what the library says, writes its files and gives clear errors."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import pliant

FLOATING = """<mujoco model="floating"><worldbody>
  <body name="base"><freejoint/><geom size=".1"/>
    <body name="tip" pos=".3 0 0"><joint name="hip" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></body>
</worldbody></mujoco>"""


def test_summary(cli, robot):
    said = cli("map", robot).stdout
    assert said.strip() == pliant.compliance_map(pliant.load(robot)).summary()
    assert "softest direction" in said
    assert "512 samples of shoulder, elbow" in said


def test_json_and_table(cli_json, robot):
    found = cli_json(
        "map", robot, "-e", "tip", "-j", "shoulder", "-j", "elbow", "--points", "5", "-o", "map.csv"
    )
    expected = pliant.compliance_map(pliant.load(robot), "tip", joints=["shoulder", "elbow"], points=5)
    assert (found["joints"], found["shape"], found["samples"]) == (["shoulder", "elbow"], [5, 5], 25)
    assert found["columns"]["worst"] == expected.worst.tolist()
    assert found["columns"]["margin"] == [None] * 25  # no limits
    at = int(expected.worst.argmax())
    assert (found["softest"]["index"], found["softest"]["frequency"]) == (at, expected.frequency[at])
    assert found["files"] == {"table": "map.csv", "plot": None}
    with Path("map.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["worst"]) for row in rows] == expected.worst.tolist()


def test_ranges_load_and_picture(cli, cli_json):
    arguments = ["map", "gallery:gripper", "-r", "left_driver:-0.5,0.5", "--load", "0,0,-20", "-n", "9"]
    found = cli_json(*arguments, "--seed", "3", "--threads", "1", "--no-frequency")
    expected = pliant.compliance_map(
        pliant.gallery.gripper(), samples=9, ranges={"left_driver": (-0.5, 0.5)}, load=(0, 0, -20), seed=3
    )
    assert found["columns"]["sag.z"] == pytest.approx(expected.sag[:, 2].tolist(), rel=1e-9)
    assert found["columns"]["frequency"] == [None] * 9
    said = cli(*arguments, "--plot", "map.png", "-o", "map.npz")
    assert "sag (" in said.stdout
    assert said.stderr.splitlines()[-2:] == ["pliant: wrote map.npz", "pliant: wrote map.png"]
    assert Path("map.png").read_bytes()[:4] == b"\x89PNG"
    with np.load("map.npz", allow_pickle=False) as archive:
        assert len(archive["q"]) == 9


def test_a_floating_base_is_held(cli):
    Path("floating.xml").write_text(FLOATING, encoding="utf-8")
    said = cli("map", "floating.xml", "--default-stiffness", "10", "-n", "8")
    assert "the base floats; it is held for the map" in said.stderr
    assert "8 samples of hip" in said.stdout


def test_view(cli):
    said = cli("map", "gallery:two_link", "-n", "20", "--view", "--port", "0", "--seconds", "0.2").stdout
    assert re.search(r"shows 'two_link: right' at http://127.0.0.1:\d+ \(Ctrl\+C ends\)", said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-r", "elbow"], "range 'elbow': JOINT:LOW,HIGH expected"),
        (["-r", "elbow:1"], "range 'elbow:1': JOINT:LOW,HIGH expected"),
        (["-r", "elbow:0,1", "-r", "elbow:0,2"], "there is one of 'elbow' already"),
        (["--load", "1,2"], "load '1,2': FX,FY,FZ expected"),
        (["--load", "a,b,c"], "load 'a,b,c': FX,FY,FZ expected"),
        (["-e", "tipp"], "did you mean 'tip'"),
        (["-j", "elbo"], "did you mean 'elbow'"),
        (["-n", "5", "--points", "5"], "give one of them"),
        (["-o", "map.txt"], "a name that ends in .csv or .parquet or .npz expected"),
        (["--plot", "nowhere/map.png"], "there is no folder 'nowhere'"),
        (["--view", "--json"], "give one of them"),
    ],
)
def test_errors(refused, robot, arguments, message):
    assert message in refused("map", robot, *arguments)


def test_no_spring(refused):
    Path("floating.xml").write_text(FLOATING, encoding="utf-8")
    assert "no spring holds 'hip'" in refused("map", "floating.xml", "-n", "4")
