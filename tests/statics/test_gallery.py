"""Every mechanism of the gallery finds its equilibrium, compensated and sagging."""

import numpy as np
import pytest

import pliant

GRAVITY = (0.0, 0.0, -9.81)
SMALLER = {
    "forest": {"plants": 5},
    "millipede": {"legs": 100, "spine": 300},
    "molecule": {"links": 3000},
    "trampoline_net": {"n": 5},
}
FLOATING = {"hexapod"}


def check(c):
    assert c.residual < 1e-9
    assert c.stability == "stable"
    assert np.abs(c.loop_residual).max(initial=0.0) < 1e-10


@pytest.mark.parametrize("gravity", [None, GRAVITY], ids=["compensated", "sagging"])
@pytest.mark.parametrize("name", sorted(set(pliant.gallery.names()) - FLOATING))
def test_equilibrium(name, gravity):
    m = pliant.gallery.make(name, **SMALLER.get(name, {}))
    force = min(50.0, 2 * m.total_mass)
    check(pliant.equilibrium(m, {m.end_effectors[0]: (0.3 * force, 0.2 * force, -force)}, gravity=gravity))


def test_floating_robot_on_a_stand():
    m = pliant.gallery.hexapod()
    with pytest.raises(pliant.errors.ConvergenceError, match="with_fixed_base"):
        pliant.equilibrium(m, {m.end_effectors[0]: (0, 0, 20.0)})
    check(pliant.equilibrium(m.with_fixed_base(), {m.end_effectors[0]: (0, 0, 20.0)}, gravity=GRAVITY))


@pytest.mark.parametrize("load", [(20e3, 0, 0), (40e3, 0, 0), (40e3, 1, 0), (0, 20e3, 0), (20e3, 20e3, 0)])
def test_crane_pulled_sideways(load):
    """In the boom's plane the vehicle balances on a ridge, its centre of mass uphill: it has to turn to hang stably."""
    c = pliant.equilibrium(pliant.gallery.crane(), {"vehicle": load}, gravity=GRAVITY)
    check(c)
    tension = -c.joint_forces[c.mechanism.joint_index("joint31"), :3]
    weight = 9.81 * c.mechanism.mass[c.mechanism.body_index("vehicle")]
    assert np.linalg.norm(tension) == pytest.approx(np.hypot(weight, np.linalg.norm(load)), rel=1e-9)


@pytest.mark.parametrize("kind", ["bushing", "ball", "universal"])
def test_loaded_cable_points_along_the_force(kind):
    """However the joints are made, a cable without stiffness to speak of hangs along the total force."""
    m = pliant.gallery.cable(10, 1000.0, kind=kind)
    load = np.array([3000.0, 400.0, 500.0])
    c = pliant.equilibrium(m, {m.end_effectors[0]: load}, gravity=GRAVITY)
    check(c)
    total = load + np.array([0, 0, -9.81 * m.mass[m.body_index(m.end_effectors[0])]])
    chord = c.poses[-1, :3, 3] - c.poses[0, :3, 3]
    assert np.dot(chord, total) / np.linalg.norm(chord) / np.linalg.norm(total) > 0.9999
