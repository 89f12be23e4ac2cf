"""Every command in README.md and docs/ works, in a folder with the files it names; and the README's walk from a URDF.

What several pages say is run once. The shell blocks of docs/command-line.md are run by tests/cli/test_page.py.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

import pliant
from pliant import warm_up
from pliant.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<lines>.*?)^```$", re.M | re.S)
PROGRAMS = ("pliant ", "python ", "make ", "dask ", "pip ")
# What is not run as it stands, and why. The rest is.
ELSEWHERE = {
    r"make test": "this is it; only its recipe is looked at",
    r"make demo": "sets up first; tests/cli/test_page.py takes the tour; only its recipe is looked at",
    r"make (setup|wheel|wheel-check)": "installs and builds; only its recipe is looked at",
    r"pip install .*whl.*": "needs that wheel",
    r"dask (scheduler|worker) .*": "servers for ever; tests/study starts a cluster of its own",
    r"pliant sweep .* --scheduler .*": "needs that cluster; likewise",
}
# What a person would end by hand.
UNTIL = dict.fromkeys(("view", "--view"), ("--port", "0", "--seconds", "1"))

# Two links of 0.3 m and 0.2 m that turn about y; joints of 100 N m/rad make 1/C = 1 / (0.5²/100 + 0.2²/100).
URDF = """<?xml version="1.0"?>
<robot name="robot">
  <link name="base"/>
  <link name="upper">
    <visual><origin xyz=".15 0 0"/><geometry><box size=".3 .05 .05"/></geometry></visual>
    <inertial><origin xyz=".15 0 0"/><mass value="1"/>
      <inertia ixx=".001" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower">
    <visual><origin xyz=".1 0 0"/><geometry><cylinder radius=".02" length=".2"/></geometry></visual>
    <inertial><origin xyz=".1 0 0"/><mass value=".5"/>
      <inertia ixx=".001" iyy=".003" izz=".003" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="5"/></joint>
  <joint name="elbow" type="continuous"><origin xyz=".3 0 0"/><parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="flange" type="fixed"><origin xyz=".2 0 0"/><parent link="lower"/><child link="tip"/></joint>
</robot>
"""


def commands(page, kinds=("", "sh")):
    """Lines of shell and nameless blocks that start with a program, without their comments."""
    found = [
        shlex.join(shlex.split(line, comments=True))
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if block["kind"] in kinds
        for line in block["lines"].splitlines()
    ]
    return [line for line in found if line.startswith(PROGRAMS)]


def once():
    """Commands to run, by page: each where it comes first."""
    known = set(commands(DOCS / "command-line.md", ("sh",)))
    out = {}
    for page in PAGES:
        out[page] = [line for line in commands(page) if line not in known]
        known.update(out[page])
    return out


COMMANDS = once()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that pages speak of."""
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    study = re.search(r"```toml\n(.*?)```", (DOCS / "studies.md").read_text(encoding="utf-8"), re.S)
    assert study is not None
    Path("flexure.toml").write_text(study[1], encoding="utf-8")
    return tmp_path


def run(words, apart):
    """Run a command of pliant; `apart` in a process of its own, as a person would."""
    if apart:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "120"}
        environment.pop("DISPLAY", None)
        done = subprocess.run(
            [sys.executable, "-m", *words], env=environment, capture_output=True, timeout=300
        )
        code, said = done.returncode, done.stdout + done.stderr
    else:
        result = CliRunner().invoke(app, words[1:])
        code, said = result.exit_code, result.stdout + result.stderr
    assert code == 0, (words, said)
    assert said, words


def try_all(page, apart=()):
    for line in COMMANDS[page]:
        words = shlex.split(line)
        if words[0] == "make":
            recipe = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
            assert recipe.returncode == 0, recipe.stderr
        if any(re.fullmatch(pattern, line) for pattern in ELSEWHERE):
            continue
        assert words[0] == "pliant", f"{line}: run it here, or say in ELSEWHERE why not"
        if words[1] == "sweep" and "--resume" not in words:
            Path(words[2]).with_suffix(".parquet").unlink(missing_ok=True)  # results are never overwritten
        until = next((UNTIL[word] for word in words if word in UNTIL), ())
        run([*words, *until], words[1] in apart)


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if COMMANDS[page]], ids=lambda page: page.stem)
def test_every_command_works(page, folder, monkeypatch):
    few = {name: warm_up.PARTS[name] for name in ("statics", "pictures")}  # `make test` warms up all
    monkeypatch.setattr(warm_up, "PARTS", few)
    try_all(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_sentences_exist(page):
    """Targets of make, scripts, and commands of pliant that a sentence speaks of; what is to come is the roadmap's."""
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    for line in re.findall(r"`((?:pliant|make|python) [^`]*)`", page.read_text(encoding="utf-8")):
        program, first, *_ = shlex.split(line)
        if program == "make":
            assert subprocess.run(["make", "-n", first], cwd=ROOT, capture_output=True).returncode == 0, line
        elif program == "python":
            assert first == "-m" or (ROOT / first).is_file(), line
        elif page.name != "roadmap.md":
            assert first in known | {"COMMAND"} or first.startswith("-"), line


# --- transcripts


def transcripts():
    """Commands of `console` blocks, by page, with the lines that follow each."""
    out = []
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["kind"] == "console":
                line, _, said = block["lines"].partition("\n")
                out.append((page, line.removeprefix("$ "), said))
    return out


def alike(shown, said):
    """Whether two outputs are the same but for spaces, times, ports, and the last digits of numbers."""
    tokens = []
    for text in (shown, said):
        text = re.sub(r"http://127.0.0.1:\d+|[\d.e+-]+ µs a step", "", text)
        text = re.sub(r"^(reduced|blended|constrained) +[\d.]+ +[\d.e+]+", r"\1", text, flags=re.M)
        tokens.append(text.replace("< 0.0001 %", "0 %").split())
    if len(tokens[0]) != len(tokens[1]):
        return False
    for one, other in zip(*tokens, strict=True):
        try:
            close = float(one) == pytest.approx(float(other), rel=0.02, abs=1e-3)
        except ValueError:
            close = one == other
        if not close:
            return False
    return True


def test_transcripts_show_what_commands_print(tmp_path, monkeypatch):
    """In order, in one folder, with the arm that they speak of."""
    from formats import corpus

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    arm = corpus.folder("example-robot-data") / "robots" / "xarm_description" / "urdf" / "xarm7.urdf"
    Path("xarm7.urdf").symlink_to(arm)
    found = transcripts()
    assert len(found) >= 6
    assert {line.split()[1] for _, line, _ in found} >= {"info", "reduce", "run", "compare", "view"}
    for page, line, shown in found:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        notes = [note for note in result.stderr.splitlines() if not note.startswith("pliant: compiling")]
        said = "\n".join([*notes, result.stdout])
        assert result.exit_code == 0, said
        assert alike(shown, said), f"{page.name}: {line}\n{said}"


def test_the_transcript_tells_the_equilibrium():
    """The static answer of the page, and its stiffness, from statics alone."""
    from formats import corpus

    arm = corpus.folder("example-robot-data") / "robots" / "xarm_description" / "urdf" / "xarm7.urdf"
    with pytest.warns(pliant.errors.UnsupportedWarning):
        m = pliant.load(arm).with_stiffness("*", 500.0)
    page = (DOCS / "how-to" / "walk.md").read_text(encoding="utf-8")
    down = pliant.equilibrium(m, {"link_eef": (0, 0, -20)}).displacement[m.body_index("link_eef")]
    assert f" {1000 * down:.5g} " in page
    push = pliant.Configuration(m).compliance("link_eef")[:3, :3]
    for compliance in np.linalg.eigvalsh(push):
        assert f"{1 / compliance:.4g} N/m" in page


def test_exceptions_are_needed():
    lines = [line for page in PAGES for line in COMMANDS[page]]
    for pattern in ELSEWHERE:
        assert any(re.fullmatch(pattern, line) for line in lines), pattern


def test_a_new_user_gets_a_model_a_picture_and_a_recording(folder):
    """Exactly the README's commands, on a URDF that pliant has never seen."""
    try_all(ROOT / "README.md", apart=("reduce", "run"))
    assert {"model.npz", "robot.png", "robot.html"} <= {path.name for path in folder.iterdir()}

    model = pliant.ReducedModel.load("model.npz")
    stiffness = model.stiffness_ellipsoid("tip").stiffness
    assert stiffness[0] == pytest.approx(100 / (0.5**2 + 0.2**2), rel=1e-9)
    assert np.isinf(stiffness[1:]).all()

    image = matplotlib.image.imread("robot.png")[..., :3]
    assert 0.01 < (np.abs(image - 1).max(axis=2) > 0.05).mean() < 0.9

    page = Path("robot.html").read_text(encoding="utf-8")
    assert "<html" in page.lower()
    assert not re.search(r'(src|href)="https?://', page)  # it plays without a network
