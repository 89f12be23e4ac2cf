"""The package as users install it: sdist and wheel built, installed in clean environments, started in empty folders."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STEPS = """
import pliant
hand = pliant.gallery.hand()
assert "site-packages" in pliant.__file__, pliant.__file__
model = pliant.reduce(hand)
tip = model.end_effectors[0]
for simulation in (
    pliant.ReducedSimulation(model, 1e-3),
    pliant.ConstrainedSimulation(hand, 1e-3),
    pliant.QuasistaticSimulation(hand, 1e-3),
):
    before = simulation.pose(tip)[2, 3]
    simulation.apply_wrench(tip, force=(0, 0, 10.0))
    simulation.step()
    assert before < simulation.pose(tip)[2, 3] < before + 0.01, simulation
world = pliant.World(timestep=1 / 60)
world.add_static("floor", pliant.shapes.plane())
world.add_body("ball", pliant.shapes.sphere(0.03), mass=0.1, position=(0, 0, 1.0))
world.step(10)
assert world.pose("ball")[2, 3] < 1.0
print("stepped")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel made from it, as pip makes it."""
    folder = tmp_path_factory.mktemp("dist")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PLIANT")}
    for target in ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="module", params=[".whl", ".gz"])
def installed(built, request, tmp_path_factory):
    """The folder of commands of a clean environment that sees the locked packages."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from check_wheel import environment
    finally:
        sys.path.pop(0)
    return environment(tmp_path_factory.mktemp("venv") / "venv", built[request.param]).parent


@pytest.fixture
def run(installed, tmp_path):
    """Run a command of that environment in an empty folder, with kernels from the checkout's cache."""

    def run(*command: str) -> str:
        variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        variables.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache"))
        program = [str(installed / command[0]), *command[1:]]
        done = subprocess.run(
            program, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_commands(run):
    import pliant

    assert run("pliant", "--version") == f"pliant {pliant.__version__}\n"
    assert "index_tip" in run("pliant", "info", "gallery:hand")
    assert "index_tip" in run("pliant", "reduce", "gallery:hand")


def test_every_engine_steps(run):
    assert run("python", "-c", STEPS) == "stepped\n"


def test_benchmarks_are_installed(run):
    code = """
from importlib import import_module
import pliant_benchmarks
assert "site-packages" in pliant_benchmarks.__file__, pliant_benchmarks.__file__
for suite in pliant_benchmarks.SUITES:
    assert import_module("pliant_benchmarks." + suite).PARTS
print(*pliant_benchmarks.SUITES)
"""
    from pliant_benchmarks import SUITES

    assert tuple(run("python", "-c", code).split()) == SUITES


def test_wheel_holds_pliant_and_its_benchmarks_alone(built):
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = wheel.namelist()
        sizes = {info.filename: info.file_size for info in wheel.infolist()}
        points = configparser.ConfigParser()
        points.read_string(wheel.read(next(n for n in names if n.endswith("entry_points.txt"))).decode())
    for name in names:
        assert (
            name.startswith(("pliant/", "pliant_benchmarks/"))
            or name == "pliant_start.py"
            or re.match(r"pliant-[\d.]+\.dist-info/", name)
        )
        drawn = name.startswith("pliant/viewer/") and Path(name).suffix in {
            ".html",
            ".webp",
        }  # player, thumbnails
        assert drawn or Path(name).suffix in {".py", ".typed", ""} or ".dist-info/" in name, name
    for command in points["console_scripts"].values():
        assert f"{command.partition(':')[0].replace('.', '/')}.py" in names
    assert max(sizes.values()) < 80_000  # sources, no data
    assert {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*.py")} <= set(names)


def test_sdist_holds_what_a_build_needs(built):
    with tarfile.open(built[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src/pliant_start.py"} <= names
    assert not [name for name in names if name.startswith((".venv", ".cache", "build", "dist", "out/"))]


def test_hints_of_the_demo_name_what_there_is(built):
    """Files that the tour's last words name come with the package, and every command they name exists."""
    from typer.main import get_command

    from pliant.cli.app import app

    text = (ROOT / "src/pliant/cli/demo.py").read_text()
    hints = text[text.index("Try next:") :].partition('"""')[0]
    commands = re.findall(r"^ +pliant ([\w-]+)", hints, re.MULTILINE)
    assert commands
    assert set(commands) <= set(get_command(app).commands)  # type: ignore[attr-defined]
    assert not re.findall(r"\b(?:docs|examples|tests)/", hints)
