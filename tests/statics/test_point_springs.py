"""Equilibrium with springs to points of the world: each carries its stiffness times its stretch."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.statics import Configuration
from pliant.statics.point_springs import PointSpring, equilibrium_with_springs


def rest(m):
    return Configuration(m, m.reference)


def test_one_spring_is_as_stretched_as_its_force_says():
    """The force of the spring, applied as a wrench, has the same equilibrium."""
    m = pliant.gallery.two_link()
    body = m.end_effectors[0]
    point = np.array([0.01, 0.0, 0.02])
    place = (rest(m).pose(body) @ [*point, 1])[:3]
    target = place + np.array([0.0, 0.0, 0.02])
    found = equilibrium_with_springs(m, [PointSpring(body, point, target, 50.0)], rest(m))
    stretch = target - (found.pose(body) @ [*point, 1])[:3]
    assert 0 < np.linalg.norm(stretch) < 0.02
    expected = pliant.equilibrium(m, {body: {"force": 50.0 * stretch, "point": point}})
    np.testing.assert_allclose(found.poses, expected.poses, atol=1e-7)


@pytest.mark.parametrize("gravity", [None, (0.0, 0.0, -9.81)])
def test_springs_on_one_and_on_several_bodies(gravity):
    m = pliant.gallery.hand()
    springs = []
    for body, point, way in (
        ("palm", (0.02, 0, 0), (0, 0, 0.01)),
        ("palm", (-0.02, 0, 0), (0, 0, 0.02)),
        ("index_tip", (0, 0, 0), (0, 0.01, 0.02)),
    ):
        place = (rest(m).pose(body) @ [*point, 1])[:3]
        springs.append(PointSpring(body, np.array(point), place + np.array(way), 300.0))
    found = equilibrium_with_springs(m, springs, rest(m), gravity=gravity)
    loads = {}
    for spring in springs:
        pose = found.pose(spring.body)
        force = spring.stiffness * (spring.target - (pose @ [*spring.point, 1])[:3])
        wrench = np.concatenate([force, np.cross(pose[:3, :3] @ spring.point, force)])
        loads[spring.body] = loads.get(spring.body, np.zeros(6)) + wrench
    expected = pliant.equilibrium(m, loads, gravity=gravity, start=found)
    np.testing.assert_allclose(found.poses, expected.poses, atol=1e-6)
