"""Arches that sway and snap: paths of equilibria against dense Newton iterations, and against a shallow continuum."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pliant
from oracles.arch import Arch


def build(arch):
    """The arch as a mechanism: a chain of links from a hinge in the world to a foot that slides, a loop."""
    b = pliant.Builder("arch")
    nodes, parent = np.insert(arch.nodes(arch.angle), 1, 0.0, axis=1), "world"
    for i, (start, end) in enumerate(pairwise(nodes)):
        name = f"link{i + 1}"
        b.body(name, mass=0.01, inertia=(1e-6,) * 3, position=end)
        stiffness = arch.bending if i else 0.0
        b.hinge(f"hinge{i}", parent, name, anchor=start, axis=(0, 1, 0), stiffness=stiffness)
        parent = name
    b.body("foot", mass=0.01, inertia=(1e-6,) * 3, position=nodes[-1])
    b.slide("slide", "world", "foot", axis=(1, 0, 0), stiffness=arch.thrust)
    b.hinge("pin", parent, "foot", anchor=nodes[-1], axis=(0, 1, 0))
    b.end_effectors(f"link{len(arch.angle) // 2}")
    return b.build()


def follow(arch, full, **options):
    """The path under a load that reaches `full`."""
    wrenches = {f"link{i + 1}": (0, 0, -full * s) for i, s in enumerate(arch.share) if s}
    return pliant.path(build(arch), wrenches, **options)


def shallow(steepness, rise, links=0):
    """Arch of span 1 m and E I = 1 N m² with a foot as stiff as an arch of `rise / (2 radius of gyration)`; its load
    is at the crown, or, along a sine, at all nodes (factor 1: 1 N/m at the crown)."""
    share = None if links == 0 else np.sin(np.pi * np.arange(1, links) / links) / links
    return Arch.sine(links or 12, rise, 1.0, (2 * steepness / rise) ** 2, share)


def test_the_oracle_is_consistent():
    """Gradient by differences of energy, Hessian by differences of the gradient."""
    arch = shallow(3.0, 0.1, 8)
    angle = arch.angle + 0.1 * np.random.default_rng(0).normal(size=8)
    gradient, hessian = arch.derivatives(angle, 3.0, 0.0)
    slopes = [(arch.energy(angle + d, 3.0) - arch.energy(angle - d, 3.0)) / 2e-5 for d in 1e-5 * np.eye(8)]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-8 * np.abs(gradient).max())
    rows = [
        (arch.derivatives(angle + d, 3.0, 0.0)[0] - arch.derivatives(angle - d, 3.0, 0.0)[0]) / 2e-5
        for d in 1e-5 * np.eye(8)
    ]
    np.testing.assert_allclose(hessian, rows, atol=1e-8 * np.abs(hessian).max())
    np.testing.assert_allclose(arch.nodes(arch.angle)[-1], [1, 0], atol=1e-14)


@pytest.mark.parametrize(
    ("arch", "step"),
    [
        pytest.param(shallow(2.5, 0.1), 0.05, id="crown"),
        pytest.param(shallow(2.45, 0.15), 0.1, id="steep"),
        pytest.param(shallow(3.0, 0.02, 16), 0.05, id="sine"),
    ],
)
def test_an_arch_sways_before_it_snaps(arch, step):
    limits, sways = arch.loads()
    full = 1.1 * limits[0]
    found = follow(arch, full, step=step)
    assert [point.kind for point in found.points] == ["branch", "limit", "limit", "branch"]
    np.testing.assert_allclose([full * p.factor for p in found.limit_points], limits, rtol=1e-9)
    np.testing.assert_allclose([full * p.factor for p in found.branch_points], sways, rtol=1e-6)
    # unstable from the first branch point to the last: one motion, two between the limit points
    first, fold, back, last = (point.index for point in found.points)
    parts = np.split(found.negative, np.array([first, fold, back, last]) + 1)
    assert [set(part.tolist()) for part in parts] == [{0}, {1}, {2}, {1}, {0}]


def test_the_branch_of_an_arch_that_sways():
    """It leads from one branch point to the other, and forces balance by the energy of the oracle."""
    arch = shallow(2.7, 0.1)
    limits, sways = arch.loads()
    full = 1.1 * limits[0]
    found = follow(arch, full, branches=True)
    assert len(found.branches) == 1  # closed: it comes back on the other side
    (branch,) = found.branches
    np.testing.assert_allclose([full * p.factor for p in branch.branch_points], sways[::-1], rtol=1e-6)
    links = len(arch.angle)
    for q, factor in zip(branch.q[1::10], branch.factor[1::10], strict=True):
        angle = arch.angle - np.cumsum(q[:links])  # a turn about y is clockwise in the plane of x and z
        still, _ = arch.derivatives(angle, full * factor, 0.0)
        lifted, _ = arch.derivatives(angle, full * factor, 1.0)
        foot = lifted - still
        left = still - foot * (foot @ still) / (foot @ foot)
        assert np.abs(left).max() < 1e-7 * arch.bending
        assert abs(arch.nodes(angle)[-1, 1]) < 1e-9


def test_shallow_arches_come_near_the_continuum():
    """Sinusoidal arch and load (Fung & Kaplan 1952), radius of gyration r, amplitude a of the sine.

    With e = rise / (2 r) and y = a / (2 r), the load is e - y + y (e² - y²), and it sways at e² - y² = 4. Errors fall
    with the square of the number of links, down to those of shallowness.
    """
    e, rise = 3.0, 0.01
    unit = np.pi**4 * rise / e
    snap, sway = 2 * ((e * e - 1) / 3) ** 1.5, 3 * np.sqrt(e * e - 4)
    expected = unit * np.array([e + snap, e - snap, e + sway, e - sway])
    errors = [np.abs(np.concatenate(shallow(e, rise, n).loads()) / expected - 1) for n in (16, 32)]
    assert (errors[1] < 0.01).all()
    assert (errors[0] > 3 * errors[1]).all()
    arch = shallow(e, rise, 32)
    full = 1.1 * expected[0]
    found = follow(arch, full)
    loads = [full * p.factor for p in (*found.limit_points, *found.branch_points)]
    np.testing.assert_allclose(loads, expected, rtol=0.01)
