"""Groups of bodies that do not touch each other, and a margin that changes."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import shapes, spatial
from pliant.contact import Collider
from pliant.errors import InputError

BALL = shapes.sphere(1.0)


def row(count):
    """Balls in a row, each a little inside the next."""
    return np.stack([spatial.pose((1.9 * i, 0, 0)) for i in range(count)])


def pairs(groups, static=(False,) * 4):
    collider = Collider(
        [(i, BALL) for i in range(4)], 4, static=np.array(static), groups=np.array(groups, dtype=np.int64)
    )
    found = collider.detect(row(4))
    return sorted(zip(found.first.tolist(), found.second.tolist(), strict=True))


def test_bodies_of_a_group_do_not_touch_each_other():
    assert pairs([-1, -1, -1, -1]) == [(0, 1), (1, 2), (2, 3)]
    assert pairs([0, 0, -1, -1]) == [(1, 2), (2, 3)]
    assert pairs([0, 0, 1, 1]) == [(1, 2)]
    assert pairs([5, 5, 5, 5]) == []


def test_a_group_with_a_body_that_does_not_move():
    """The first of the group is fixed: the others still touch what is not of the group."""
    assert pairs([0, 0, 1, 1], (True, False, False, True)) == [(0, 1), (1, 2), (2, 3)]


def test_groups_need_a_number_per_body():
    with pytest.raises(InputError, match="groups"):
        Collider([(0, BALL)], 1, static=np.zeros(1, dtype=bool), groups=np.zeros(2, dtype=np.int64))


def test_the_margin_can_change():
    collider = Collider([(0, BALL), (1, BALL)], 2, static=np.zeros(2, dtype=bool), margin=0.1)
    poses = np.stack([np.eye(4), spatial.pose((2.5, 0, 0))])
    assert len(collider.detect(poses)) == 0
    collider.margins[:] = 0.2, 0.4
    assert collider.detect(poses).distance == pytest.approx([0.5])
    collider.margins[:] = 0.05
    assert len(collider.detect(poses)) == 0
