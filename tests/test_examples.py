"""Every example runs in any folder, says something and leaves pictures behind."""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# What must be printed, and the pictures that must be made.
EXPECTED = {
    "01_equilibrium.py": (
        ["helix 50", "ladder 12 rails", "gripper", "stable", "Try next"],
        ["equilibrium.png"],
    ),
    "02_build_a_linkage.py": (
        ["hinge (loop)", "tendon belt", "stable equilibrium", "pin_d carries"],
        ["linkage.png"],
    ),
    "03_load_a_robot.py": (
        ["finger", "hip_pitch", "stable equilibrium", "MuJoCo loads"],
        ["finger.png", "leg.png"],
    ),
    "04_flexure_stage.py": (["4.2938 N/mm", "4.1400 N/mm"], ["flexure.png"]),
    "05_buckling.py": (["upright is stable", "upright is unstable"], ["buckling.png"]),
    "06_reduced.py": (
        ["5 end effectors", "natural frequencies", "of the motion"],
        ["ellipsoids.png", "reduced.png"],
    ),
    "07_batch.py": (["1000 hands", "steps/s", "thumb_tip"], ["batch.png"]),
    "08_blend.py": (
        ["12 models blended", "mixed as in TVCG", "In motion it settles"],
        ["blend.png", "sampled.png"],
    ),
    "09_crane.py": (
        ["rises by 4.38 m", "crane        +3.05", "dampers         0.00", "0.96 to 1.97", "7.4", "1/240 s"],
        ["crane.png", "drop.png"],
    ),
    "10_view.py": (["http://127.0.0.1:", "index_tip is pulled with", "2 models blended", "hand.glb"], []),
    "11_huge_linkages.py": (
        [
            "50000 joints",
            "1.9e-06       67",
            "7e-07",
            "guaranteed",
            "1e-04                   54",
            "moved by 21.4 mm",
        ],
        ["pulled.png"],
    ),
    "12_grasp.py": (["is lifted by", "slips", "agree within 0."], ["grasp.png"]),
    "13_study.py": (
        ["256 hands, 0 failed", "100 flexures pushed by 5 N move by 1.1"],
        ["hand-heatmap.png", "hand-pareto.png", "hand-parallel.png"],
    ),
    "16_paths.py": (
        [
            "snaps down at 3.22 N and back up at -2.72 N",
            "-7.74 mm, stable",
            "buckles at 2.4668 N",
            "z = 0.060 m, stable",
        ],
        ["snap-through.png", "buckled.png", "paths.png"],
    ),
    "17_lattice.py": (
        ["64 loops", "2.87 N/mm", "6.7 % shorter and 6.7 % narrower", "ratio -1.000000"],
        ["lattice.png"],
    ),
    "19_workspace.py": (
        [
            "41x41 samples of shoulder, elbow",
            "under 50 N it sags",
            "drilling along x is stiffest at (0.81",
            "loops closed",
        ],
        ["workspace.png", "workspace-cloud.png"],
    ),
    "20_pluck.py": (
        ["10 N pull 'index_tip' by 56 mm", "linear (TVCG)   11.5", "exact forces     0.60 %"],
        ["pluck.png"],
    ),
    "21_falling.py": (
        ["all links              turned by", "angular momentum is 0e+00", "0.0"],
        ["falling.png"],
    ),
    "22_protein.py": (
        ["883 rigid groups, 882 torsions", "20 joints in the first step", "of A:229:SER:psi"],
        ["protein.png"],
    ),
    "23_forest.py": (["200 plants, 4200 joints", "% of the joints"], ["forest.png"]),
    "24_adaptive.py": (["4000 joints", "moves by", "within 1 %"], ["adaptive.png"]),
    "18_many_equilibria.py": (
        ["1681 load cases", "1681 with an equilibrium", "up to 3.6 mm"],
        ["many_equilibria.png"],
    ),
    "14_scenes.py": (
        [
            "by 100 mm",
            "0 mm deep when 6 mm off, 30 mm deep when 4 mm off",
            "walked 1.0",
            "19.62 N",
            "bump of 60 mm",
            "4.71 m/s",
        ],
        ["scenes.png"],
    ),
    "15_own_engine.py": (["In honey the tip sinks", "With inertia it stays there", "wrench on link12"], []),
}

# Sizes that take less time than those by default.
SMALLER = {"23_forest.py": ("200",), "24_adaptive.py": ("4000",)}
# The first as every one is to be started, one with a server, and one whose functions other processes import.
PROCESSES = {"01_equilibrium.py", "10_view.py", "13_study.py"}


def test_all_examples_are_known():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


def run(monkeypatch, name, *arguments):
    """Run an example in this process."""
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), *arguments])
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name, tmp_path, monkeypatch, capfd):
    """As `python examples/NAME` does; in this process, which has imports and kernels, unless processes matter."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    for variable, value in {
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "error::RuntimeWarning",
    }.items():
        monkeypatch.setenv(variable, value)
    if name in PROCESSES:
        done = subprocess.run([sys.executable, str(EXAMPLES / name)], timeout=300)
        assert done.returncode == 0, capfd.readouterr().err
    else:
        run(monkeypatch, name, *SMALLER.get(name, ()))
    out = capfd.readouterr().out
    said, pictures = EXPECTED[name]
    assert [text for text in said if text not in out] == [], out
    assert sorted(p.name for p in (tmp_path / "out").glob("*.png")) == sorted(pictures)
    for picture in pictures:
        image = matplotlib.image.imread(tmp_path / "out" / picture)
        assert min(image.shape[:2]) >= 400
        background = np.abs(image[..., :3] - 1).max(axis=2) < 0.02
        assert 0.02 < 1 - background.mean() < 0.9, f"{picture} is blank or full"


def test_load_a_robot_takes_a_file(tmp_path, monkeypatch, capfd):
    """The third example with a file of one's own."""
    model = tmp_path / "pendulum.xml"
    model.write_text(
        '<mujoco model="pendulum"><worldbody><body name="rod"><joint name="pivot" axis="0 1 0" stiffness="2"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -1" size=".05"/></body></worldbody></mujoco>'
    )
    monkeypatch.chdir(tmp_path)
    run(monkeypatch, "03_load_a_robot.py", str(model))
    assert "pendulum: stable equilibrium" in capfd.readouterr().out
    assert (tmp_path / "out" / "pendulum.png").exists()
    assert (tmp_path / "out" / "pendulum.json").exists()
