"""Examples in docstrings do what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import pliant

ROOT = Path(pliant.__file__).parent
MODULES = sorted(
    ".".join(("pliant", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    found = doctest.testmod(module)
    assert found.failed == 0
    # what needs a file of the user's, or takes long, is marked
    assert found.attempted > 0 or "+SKIP" in Path(str(module.__file__)).read_text(encoding="utf-8")


def test_there_are_examples():
    assert len(MODULES) > 15
