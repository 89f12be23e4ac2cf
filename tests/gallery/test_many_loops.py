"""Mechanisms with many loops: files, reduced models, motion and rest agree with statics at the reference pose."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import gallery

SMALL = {
    "scissor_lift": {"stages": 2},
    "stewart_platform": {},
    "delta_robot": {},
    "bistable": {},
    "miura_ori": {"rows": 3, "columns": 3},
    "tensegrity": {},
    "lattice": {"nx": 4, "ny": 4},
    "lattice auxetic": {"nx": 4, "ny": 4, "form": "auxetic"},
    "lattice3d": {"nx": 1, "ny": 1, "nz": 2},
    "trampoline_net": {"n": 3},
}


@pytest.fixture(scope="module", params=SMALL)
def mechanism(request):
    return gallery.make(request.param.split()[0], **SMALL[request.param])


def assert_close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_mjcf_round_trip(mechanism, tmp_path):
    """MuJoCo's compiler accepts the file; loops, mass and compliance come back."""
    (tmp_path / "m.xml").write_text(mechanism.to_mjcf())
    again = pliant.load(tmp_path / "m.xml")
    assert again.topology.loops == mechanism.topology.loops
    assert again.total_mass == pytest.approx(mechanism.total_mass, rel=1e-9)
    body = mechanism.end_effectors[0]
    here, there = (pliant.Configuration(m).compliance(body) for m in (mechanism, again))
    assert_close(there, here, 1e-8)


def test_reduced_model(mechanism):
    expected = pliant.Configuration(mechanism).compliance()
    assert_close(pliant.reduce(mechanism).compliance, expected, 1e-8)


def test_steps_stay_closed(mechanism):
    simulation = pliant.ConstrainedSimulation(mechanism, 1 / 200, gravity=(1.0, 0.5, -9.81))
    simulation.step(20)
    assert np.isfinite(simulation.q).all()
    assert np.abs(simulation.q - mechanism.reference).max() > 1e-7
    assert simulation.violation < 1e-7 * mechanism.radius


def test_rest_is_the_equilibrium(mechanism):
    found = pliant.ConstrainedSimulation(mechanism, 1 / 60).settle()
    expected = pliant.equilibrium(mechanism, gravity=(0, 0, -9.81))
    assert expected.stability == "stable"
    gap = np.abs(found.poses[:, :3, 3] - expected.poses[:, :3, 3]).max()
    assert gap < 1e-5 * mechanism.radius
