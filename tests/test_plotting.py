"""Figures without a display."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import plotting
from pliant.errors import InputError


def test_panels_are_saved(tmp_path):
    made, (left, right) = plotting.panels(1, 2, 3.0, 2.0, grid=True)
    left.plot([1, 2, 3], [1, 10, 100])
    plotting.logarithmic(left)
    right.plot([1, 2, 3], [1, 2, 3])
    values = np.array([1.0, 3.0])
    for log in (False, True):
        plotting.label_axis(right.yaxis, values, log=log)
    plotting.save(made, tmp_path / "a.svg")
    plotting.save(made, tmp_path / "plain")
    plotting.save(made, None)
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert (tmp_path / "plain").read_bytes().startswith(b"\x89PNG")
    assert plotting.png(made).startswith(b"\x89PNG")
    assert made.get_size_inches().tolist() == [6, 2]


def test_places_are_checked(tmp_path):
    made = plotting.figure(1, 1)
    for path, message in (
        (tmp_path / "none" / "a.png", "there is no folder"),
        (tmp_path, "it is a folder"),
        (tmp_path / "a.odd", "cannot be written as"),
        (3, "a string or a path expected"),
    ):
        with pytest.raises(InputError, match=message):
            plotting.save(made, path)  # pyright: ignore[reportArgumentType]
