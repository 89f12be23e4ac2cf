"""Packages that only some of pliant needs: without them one line names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pliant.errors import MissingPackageError
from pliant.extras import check, require

MISSING = """
import sys
from importlib.machinery import PathFinder
original = PathFinder.find_spec
def find(name, path=None, target=None):
    return None if name.partition(".")[0] in {packages} else original(name, path, target)
PathFinder.find_spec = find
"""
TRY = """
import pliant
try:
    {call}
except pliant.errors.PliantError as error:
    print(error)
"""
CALLS = {
    "matplotlib": "pliant.gallery.two_link().plot('a.png')",
    "viser": "pliant.view(pliant.gallery.two_link(), port=0, block=False)",
    "gemmi": "from pathlib import Path; Path('a.pdb').write_text('HEADER'); pliant.load('a.pdb')",
    "pyarrow": "from pliant.study.store import arrow; arrow()",
    "distributed": "from pliant.study.cluster import connect; connect('tcp://127.0.0.1:1')",
}
EXTRAS = {"matplotlib": "view", "viser": "view", "gemmi": "pdb", "pyarrow": "study", "distributed": "cluster"}


def without(packages: list[str], code: str) -> subprocess.CompletedProcess[str]:
    script = MISSING.replace("{packages}", repr(set(packages))) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("package", CALLS)
def test_message_names_the_extra(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = without([package], TRY.replace("{call}", CALLS[package]))
    assert done.stdout.strip().endswith(
        f"the package '{package}', which comes with pliant[{EXTRAS[package]}]: pip install {package}"
    ), done.stderr


def test_everything_else_works_without_them():
    code = "import pliant; hand = pliant.gallery.hand(); print(pliant.reduce(hand).rank)"
    done = without(list(CALLS), code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.parametrize(
    "arguments",
    ["demo --out tour", "reduce gallery:hand --plot a.png", "run gallery:two_link --plot a.png"],
)
def test_commands_refuse_before_they_work(arguments, tmp_path):
    done = without(
        ["matplotlib", "viser"],
        f"import os; os.chdir({str(tmp_path)!r})\nsys.argv = ['pliant', *{arguments.split()!r}]\n"
        "from pliant.cli import main\nmain()",
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "comes with pliant[view]" in done.stderr
    assert not list(tmp_path.iterdir())


def test_recordings_need_no_package(tmp_path):
    code = (
        "import pliant; from pliant.viewer import record_html\n"
        "motion = pliant.ConstrainedSimulation(pliant.gallery.two_link(), 0.01).record(3)\n"
        f"print(record_html(motion, {str(tmp_path / 'a.html')!r}).stat().st_size)"
    )
    done = without(list(CALLS), code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10_000


def test_what_is_there_is_given():
    assert require("matplotlib").__name__ == "matplotlib"
    check("viser")


def test_error_is_an_import_error():
    assert issubclass(MissingPackageError, ImportError)
