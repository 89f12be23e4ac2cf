"""The page on reliability: its counts are those of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import test_one_thread
from engines import test_contract
from formats import test_malformed, test_protein
from fuzz import archives, driver, test_fuzz

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, ...]]:
    """Cells of the table."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def counts(rows, surface, words="") -> tuple[str, str]:
    """The last two cells of the one row about something."""
    (found,) = [row for row in rows if row[0] == surface and words in row[1]]
    return found[2], found[3]


def test_every_fuzzed_surface_has_its_row(rows):
    each = f"{test_fuzz.FIXED_CALLS:,}", f"{test_fuzz.CALLS:,}"
    for name, surface in driver.SURFACES.items():
        words = (surface.__doc__ or "?").partition("\n")[0].rstrip(".")
        assert counts(rows, f"fuzzing: {name}", words) == each
    assert sum(row[0].startswith("fuzzing: ") for row in rows) == len(test_fuzz.NAMES)


def test_counts_are_those_of_the_tests(rows):
    xml = test_malformed
    assert counts(rows, "files: MJCF and URDF") == (f"{xml.XML:,}", f"{xml.MUCH_XML:,}")
    assert counts(rows, "files: JSON") == (f"{xml.JSON:,}", f"{xml.MUCH_JSON:,}")
    proteins = test_protein.FILES, test_protein.MUCH_FILES
    assert counts(rows, "files: PDB and mmCIF") == (f"{proteins[0]:,}", f"{proteins[1]:,}")
    assert counts(rows, "files: meshes") == (f"{3 * xml.MESHES:,}", "")
    assert counts(rows, "states") == (f"{test_one_thread.STATES:,}", "")
    assert counts(rows, "interrupts", "random times") == (f"{test_contract.INTERRUPTS:,} for each of 2", "")
    kinds = len(test_contract.NAMES)
    assert counts(rows, "interrupts", "every engine") == (f"{kinds} kinds, worlds, 2 batches", "")


def test_counts_of_the_view_and_of_studies(rows):
    pytest.importorskip("viser")
    from viewer import test_messages

    assert counts(rows, "view", "malformed") == (f"{test_messages.MESSAGES:,}", "")
    pytest.importorskip("distributed")
    from study import test_workers

    assert counts(rows, "studies") == ("1 scheduler", f"{test_workers.KILLS} schedulers")


def test_limits_of_files_are_those_of_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert f"at most {archives.SECONDS} s of computing time and {archives.MEMORY >> 30} GB" in text
