"""Equilibria at 100 N equal MuJoCo integrated to rest, to a millionth of the bounding radius."""

import numpy as np
import pytest

import pliant
from oracles.mujoco_rest import rest_poses

CASES = {
    "helix": (lambda: pliant.gallery.helix(50), (0, 60.0, -80.0), {}),
    "y": (lambda: pliant.gallery.y(), (60.0, 80.0, 0), {}),
    "loop": (lambda: pliant.gallery.loop(), (0, 100.0, 0), {}),
    "ladder of cells": (
        lambda: pliant.gallery.ladder(),
        (80.0, 0, -60.0),
        {"mass_scale": 0.1, "relaxation": 0.2},
    ),
    "ladder with rails": (
        lambda: pliant.gallery.ladder(form="rails"),
        (80.0, 0, -60.0),
        {"mass_scale": 0.1, "relaxation": 0.2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_mujoco_at_rest(name):
    make, force, options = CASES[name]
    m = make()
    body = m.end_effectors[0]
    c = pliant.equilibrium(m, {body: force})
    assert c.residual < 1e-9
    assert c.stability == "stable"
    assert np.abs(c.loop_residual).max(initial=0) < 1e-10
    assert c.displacement.max() > 0.05 * m.radius  # far enough for the answer to be nonlinear
    expected = rest_poses(m, {body: np.array(force)}, **options)
    error = np.linalg.norm(c.poses[:, :3, 3] - expected[:, :3, 3], axis=1).max()
    assert error < 1e-6 * m.radius
