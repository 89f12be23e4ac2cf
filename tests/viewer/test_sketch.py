"""Drawings in dots."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import shapes
from pliant.viewer.sketch import sketch


def one(*given):
    b = pliant.Builder("one")
    b.body("body", mass=1.0, inertia=(1, 1, 1), com=(0, 0, 0), shapes=list(given))
    b.free("free", "world", "body")
    return b.build()


def dots(text):
    return sum(bin(ord(c) - 0x2800).count("1") for c in text if c != "\n")


def test_size():
    for columns, rows in ((48, 14), (20, 5), (10, 30)):
        drawn = sketch(pliant.gallery.hand(), columns, rows).split("\n")
        assert 1 <= len(drawn) <= rows
        assert max(map(len, drawn)) <= columns
        assert len(drawn) == rows or max(map(len, drawn)) == columns  # as large as it may be
        assert all(0x2800 <= ord(c) < 0x2900 for line in drawn for c in line)


def test_a_ball_is_round():
    """As many dots as a disc has."""
    drawn = sketch(one(shapes.sphere(1.0)), 40, 20)
    assert dots(drawn) == pytest.approx(np.pi / 4 * 80**2, rel=0.03)
    middle = drawn.split("\n")[10]
    assert set(middle[1:-1]) == {"\u28ff"}


def test_bodies_are_told_apart():
    """Two boxes that touch have a gap between them that one twice as long has not."""
    b = pliant.Builder("two")
    for name, y in (("left", -0.5), ("right", 0.5)):
        b.body(name, mass=1.0, position=(0, y, 0), shapes=[shapes.box((0.5, 0.5, 0.5))])
        b.free(f"{name} free", "world", name)
    assert dots(sketch(b.build())) < dots(sketch(one(shapes.box((0.5, 1.0, 0.5)))))


def test_many_bodies_are_points(monkeypatch):
    monkeypatch.setattr("pliant.viewer.sketch.HUGE", 5)
    assert 5 < dots(sketch(pliant.gallery.helix(20))) <= 20


def test_poses():
    m = pliant.gallery.helix(5)
    moved = m.reference_poses.copy()
    moved[-1, :3, 3] += (0, 0, 3.0)
    assert sketch(m, poses=moved) != sketch(m)
    assert sketch(m, poses=m.reference_poses) == sketch(m)
