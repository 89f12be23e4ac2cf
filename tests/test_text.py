"""Counts, lists, tables, suggestions, round numbers, units, progress bars."""

from __future__ import annotations

import pytest

from pliant import text


def test_counts_and_lists():
    assert text.counted(1, "loop") == "1 loop"
    assert text.counted(2, "loop") == "2 loops"
    assert text.counted(0, "body", "bodies") == "0 bodies"
    assert text.listed(["a", "b"], 2) == "'a', 'b'"
    assert text.listed(["a", "b", "c"], 2, quoted=False) == "a, b, ..."


def test_suggestions():
    assert text.suggestion("finger_tip", ["fingertip", "palm"]) == "; did you mean 'fingertip'?"
    assert text.suggestion("x", ["fingertip", "palm"]) == "; there are 'fingertip', 'palm'"
    assert text.suggestion(None, "abcdef") == "; there are 'a', 'b', 'c', 'd', 'e', ..."
    assert text.suggestion("x", []) == "; there are none"


def test_tables_align_words_left_and_numbers_right():
    lines = text.table(["joint", "mass"], [["a", "1"], ["elbow", "12.5"], ["tip", "-"]]).splitlines()
    assert lines == ["joint  mass", "-----  ----", "a         1", "elbow  12.5", "tip       -"]


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1), (4.9, 2), (5, 5), (99, 50), (0.02, 0.02), (0.3, 0.2), (1e6, 1e6)]
)
def test_round_numbers(value, expected):
    assert text.round_down(value) == pytest.approx(expected)
    assert text.round_down(4, (1, 2, 3, 5)) == 3


@pytest.mark.parametrize(
    ("size", "units", "expected"),
    [
        (2.0, text.LENGTHS, (1.0, "m")),
        (0.05, text.LENGTHS, (1e-3, "mm")),
        (2e-5, text.LENGTHS, (1e-6, "µm")),
        (20_000, text.FORCES, (1e3, "kN")),
        (1, text.FORCES, (1.0, "N")),
        (0.0, text.FORCES, (1e-3, "mN")),
    ],
)
def test_units(size, units, expected):
    assert text.unit_for(size, units) == expected


def test_progress_goes_to_stderr(capsys):
    assert list(text.track(iter("ab"), "letters", False)) == ["a", "b"]
    assert list(text.track(iter("ab"), "letters")) == ["a", "b"]
    assert capsys.readouterr().out == ""
