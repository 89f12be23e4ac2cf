"""Contacts that say the same are reported once; those that hold something are all there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant import World, shapes, spatial
from pliant.contact import Collider

RADIUS = 0.1


def detect(field, shape, pose, near, margin=0.08):
    collider = Collider([(0, field), (1, shape)], 2, static=np.array([True, False]), margin=margin, near=near)
    return collider.detect(np.stack([np.eye(4), pose])).copy()


@given(st.integers(0, 10**6))
def test_a_ball_on_a_slope_has_one_contact(seed):
    """Wherever it is, on a corner of the cells too: edges within the surface are not there."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-0.3, 0.3, 2)
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    field = shapes.height_field(a * x + b * y + 0.7, (1.0, 1.0))
    up = np.array([-a, -b, 1.0]) / np.linalg.norm([-a, -b, 1.0])
    where = np.array([*rng.uniform(-0.5, 0.5, 2), 0.0])
    if rng.integers(2):
        where = np.round(where, 1)  # a corner of cells
    where[2] = a * where[0] + b * where[1] + 0.7
    gap = rng.uniform(-0.005, 0.03)
    pose = spatial.pose(where + (RADIUS + gap) * up)
    every, found = (detect(field, shapes.sphere(RADIUS), pose, near) for near in (0.0, 0.2 * RADIUS))
    assert found.count == 1
    assert found.distance[0] == every.distance.min() == pytest.approx(gap, abs=1e-6)
    np.testing.assert_allclose(found.normal[0], up, atol=1e-4)


def test_a_ball_in_a_valley_keeps_both_sides():
    x = np.linspace(-1, 1, 21)
    field = shapes.height_field(np.tile(np.abs(x), (5, 1)), (1.0, 0.5))
    pose = spatial.pose((0, 0.13, RADIUS * np.sqrt(2) + 0.001))
    found = detect(field, shapes.sphere(RADIUS), pose, 0.2 * RADIUS)
    assert found.count == 2
    np.testing.assert_allclose(np.sort(found.normal[:, 0]), [-np.sqrt(0.5), np.sqrt(0.5)], atol=1e-3)


@pytest.mark.parametrize("turn", [0.0, 0.3, 1.0])
def test_a_box_keeps_its_corners(turn):
    field = shapes.height_field(np.zeros((21, 21)), (1.0, 1.0))
    pose = spatial.pose((0.02, 0.03, 0.0999), spatial.quat_normalize((np.cos(turn), 0, 0, np.sin(turn))))
    every, found = (detect(field, shapes.box((0.2, 0.1, 0.1)), pose, near) for near in (0.0, 0.02))
    assert (every.normal[:, 2] < 0.1).any()  # edges beside it
    assert (found.normal[:, 2] > 0.999).all()
    up = every.point[every.normal[:, 2] > 0.999]
    # what holds it against tilting: the outermost contacts are there still, nearly
    for direction in np.eye(3)[:2] @ pose[:3, :3].T:
        for sign in (1, -1):
            farthest = (sign * up @ direction).max()
            assert (sign * found.point @ direction).max() == pytest.approx(farthest, abs=0.02)


@given(st.integers(0, 10**6))
def test_the_deepest_contacts_stay(seed):
    """Random ground: what is left out is less deep than something near it, or an edge that is apart."""
    rng = np.random.default_rng(seed)
    field = shapes.height_field(rng.uniform(0, 0.1, (21, 21)), (1.0, 1.0))
    shape = shapes.capsule(RADIUS, 0.3) if rng.integers(2) else shapes.box(rng.uniform(0.05, 0.2, 3))
    pose = spatial.pose((*rng.uniform(-0.3, 0.3, 2), 0.15), spatial.quat_normalize(rng.normal(size=4)))
    near = 0.02
    every, found = (detect(field, shape, pose, n) for n in (0.0, near))
    if not every.count:
        return
    assert found.distance.min() == every.distance.min()
    for c in range(every.count):
        away = np.linalg.norm(found.point - every.point[c], axis=1)
        turned = np.linalg.norm(found.normal - every.normal[c], axis=1)
        alike = (away <= near) & (turned <= 0.2) & (found.distance <= every.distance[c])
        assert alike.any() or every.distance[c] > 0 or away.min() == 0


def test_nothing_sinks_where_contacts_are_left_out():
    """Round things of all kinds come to rest on rough ground, none deeper than half a millimetre."""
    rng = np.random.default_rng(3)
    world = World(1 / 60)
    world.add_static("ground", shapes.height_field(rng.uniform(0, 0.02, (41, 41)), (1.0, 1.0)))
    things = [
        shapes.sphere(0.03),
        shapes.capsule(0.02, 0.05),
        shapes.cylinder(0.03, 0.03),
        shapes.box((0.03, 0.04, 0.02)),
    ]
    for i, thing in enumerate(things):
        world.add_body(str(i), thing, position=(0.3 * i - 0.45, 0.02, 0.12), rolling=0.005)
    world.step(600)
    for i in range(len(things)):
        assert np.linalg.norm(world[str(i)].twist()) < 0.02
        assert 0.01 < world[str(i)].position[2] < 0.08
    assert world.contacts.distances.min() > -0.0005
