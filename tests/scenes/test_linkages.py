"""RL05's scenes: forces on linkages without springs."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import scenes
from pliant.errors import InputError


@pytest.mark.parametrize(
    "scene",
    [scenes.bicycle_chain(), scenes.millipede(20, 5, 60), scenes.molecule(500, 3)],
    ids=lambda s: s.mechanism.name,
)
def test_tighter_tolerances_come_closer(scene):
    def ends(tolerance):
        simulation = scene.simulate(tolerance=tolerance)
        simulation.step(200)
        return simulation.poses[:, :3, 3]

    exact = ends(1e-12)
    errors = [np.abs(ends(tolerance) - exact).max() for tolerance in (0.5, 1e-2, 1e-5)]
    moved = np.abs(exact - scene.mechanism.reference_poses[:, :3, 3]).max()
    assert moved > 0
    assert errors[2] < 1e-3 * moved
    assert errors[2] < max(errors[0], 1e-12)


def test_the_first_step_of_the_chain_is_newtons():
    """A force across the end of a straight chain: the first step is h^2 times the accelerations of a dense solve."""
    from oracles.assembly_tree import torques
    from pliant.statics.inertia import Inertia

    scene = scenes.bicycle_chain(5)
    m = scene.mechanism
    simulation = scene.simulate(tolerance=1e-12)
    simulation.step()
    ((body, force),) = scene.wrenches.items()
    right = torques(m, m.reference, {m.body_index(body): np.array([*force, 0, 0, 0])}, np.zeros(3))
    expected = 1e-6 * np.linalg.solve(Inertia(m, m.reference).dense(), right)
    np.testing.assert_allclose(simulation.q, expected, atol=1e-12 * np.abs(expected).max())


def test_forces_are_on_neighbours():
    scene = scenes.molecule(300, 10)
    numbers = sorted(int(name.removeprefix("bond")) for name in scene.wrenches)
    assert numbers == list(range(numbers[0], numbers[0] + 10))
    with pytest.raises(InputError, match="forces"):
        scenes.molecule(300, 0)
