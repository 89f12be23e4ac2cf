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


def test_rounding_is_not_drawn_as_a_curve():
    """A linear axis keeps a least range, about the values or from zero; a logarithmic one shows no errors of 1e-15."""
    noise = np.array([1.0, -2.0, 1.5]) * 1e-17
    _, (first, second, third, fourth) = plotting.panels(2, 2, 3.0, 2.0)
    first.plot([0, 1, 2], 5 + noise)
    plotting.keep_range(first, "y", 5e-6)
    assert np.ptp(first.get_ylim()) >= 5e-6
    assert np.mean(first.get_ylim()) == pytest.approx(5)
    second.plot(noise**2, [0, 1, 2])
    second.set_xlim(left=0)
    plotting.keep_range(second, "x", 1e-6)
    assert second.get_xlim() == (0, 1e-6)
    third.plot([0, 1], [0, 3.0])
    before = third.get_ylim()
    plotting.keep_range(third, "y", 1e-6)
    assert third.get_ylim() == before
    fourth.plot([0, 1, 2], np.maximum(np.abs(noise), 1e-9))
    plotting.logarithmic(fourth, 1e-9)
    assert 1e-11 < fourth.get_ylim()[0] < 1e-9
    assert fourth.get_ylim()[1] >= 1e-8
    fourth.clear()
    fourth.plot([0, 1, 2], np.abs(noise))
    plotting.logarithmic(fourth, 1e-9)
    assert fourth.get_ylim() == pytest.approx((5e-10, 1e-8))
    fourth.plot([0, 1], [1e-9, 1e-2])
    fourth.relim()
    fourth.autoscale()
    plotting.logarithmic(fourth, 1e-9)
    assert fourth.get_ylim()[1] > 1e-2


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
