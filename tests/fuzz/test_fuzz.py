"""Fuzzing: random and adversarial calls in a process of their own, whose death fails the test.

A fixed part runs with all tests; `make slow` makes CALLS calls on every surface from a fresh seed, which a failure
prints: `python tests/fuzz/driver.py SURFACE SEED COUNT --tell` makes the same calls again.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import driver

CALLS, FIXED_CALLS = 10_000, 300  # on each surface: in `make slow`, and in `make test`
NAMES = sorted(driver.SURFACES)
LIMIT = 3600  # s


def fuzz(name: str, seed: int, count: int) -> dict[str, int]:
    """Calls by name and outcome, of a child that must end well."""
    driver = Path(__file__).parent / "driver.py"
    done = subprocess.run(
        [sys.executable, str(driver), name, str(seed), str(count)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, f"{name}, seed {seed}: exit code {done.returncode}\n{done.stderr[-3000:]}"
    outcomes = json.loads(done.stdout)
    assert sum(outcomes.values()) == count
    return outcomes


def check(outcomes: dict[str, int]) -> None:
    """Assert that calls of many kinds were made, some done and some refused: else nothing is tried."""
    done = sum(n for what, n in outcomes.items() if what.endswith(": done"))
    refused = sum(outcomes.values()) - done
    assert done > 0.05 * sum(outcomes.values()), outcomes
    assert refused > 0.02 * sum(outcomes.values()), outcomes


@pytest.mark.parametrize("name", NAMES)
def test_some_calls(name):
    check(fuzz(name, 1, FIXED_CALLS))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_calls_from_a_fresh_seed(name):
    check(fuzz(name, secrets.randbelow(2**31), CALLS))
