"""The fast tests pass on every Python of this machine among the supported ones that has the packages they need."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "pythons.py"


@pytest.fixture(scope="module")
def pythons():
    """The module tools/pythons.py."""
    spec = importlib.util.spec_from_file_location("pliant_tools_pythons", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_this_interpreter_has_everything(pythons):
    assert pythons.missing(Path(sys.executable)) == []


def test_a_python_that_is_not_there_is_named(pythons):
    assert pythons.find("3.99") == (None, "there is no Python 3.99 on this machine")


def test_missing_packages_are_named(pythons, monkeypatch):
    monkeypatch.setattr(pythons, "MODULES", ("os", "spam_of_nobody"))
    monkeypatch.setattr(pythons, "interpreters", lambda version: iter([Path(sys.executable)]))
    python, reason = pythons.find("3.11")
    assert python is None
    assert "has no spam_of_nobody; `make pythons`" in reason


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_fast_tests_pass(pythons, version):
    assert version in pythons.VERSIONS
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip("all other tests run on this Python")
    python, reason = pythons.find(version)
    if python is None:
        pytest.skip(reason)
    done = pythons.run_tests(python)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
