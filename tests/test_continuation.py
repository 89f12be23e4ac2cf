"""Paths of equilibria against closed forms: von Mises truss, buckling rod, elastica; and against energies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk

import pliant
from oracles import dense
from pliant.errors import InputError, PliantWarning

SMALL = (0.01, 0.01, 0.01)


def truss(stiffness=1000.0, span=1.0, height=0.3):
    """Half a von Mises truss: an elastic bar from a hinge in the world to an apex that slides along z."""
    length = np.hypot(span, height)
    b = pliant.Builder("truss")
    b.body("apex", mass=1.0, inertia=SMALL, position=(0, 0, height))
    b.body("bar", mass=0.1, inertia=SMALL, position=(-span, 0, 0))
    b.body("rod", mass=0.1, inertia=SMALL, position=(0, 0, height))
    b.slide("guide", "world", "apex", axis=(0, 0, 1))
    b.hinge("foot", "world", "bar", anchor=(-span, 0, 0), axis=(0, 1, 0))
    b.slide("spring", "bar", "rod", axis=(span / length, 0, height / length), stiffness=stiffness)
    b.hinge("pin", "rod", "apex", anchor=(0, 0, height), axis=(0, 1, 0))
    b.end_effectors("apex")
    return b.build()


def truss_force(height, stiffness=1000.0, span=1.0, start=0.3):
    """Force on the apex, downward, at a height of it: the derivative of the bar's energy."""
    length = np.hypot(span, height)
    return stiffness * height * (np.hypot(span, start) / length - 1)


def snap_force(stiffness=1000.0, span=1.0, start=0.3):
    """Where that force is largest: length³ = (length at rest) span²."""
    length = np.cbrt(np.hypot(span, start) * span**2)
    return truss_force(np.sqrt(length**2 - span**2), stiffness, span, start)


def column(links, bending=1.0, length=1.0):
    """Cantilever of rigid links, upright, clamped below: a spring of half a cell there, of a cell between links."""
    b = pliant.Builder("column")
    cell, parent = length / links, "world"
    for i in range(links):
        name = f"link{i + 1}"
        b.body(name, mass=0.01, inertia=(1e-5,) * 3, position=(0, 0, (i + 1) * cell))
        stiffness = bending / cell * (2 if i == 0 else 1)
        b.hinge(f"joint{i + 1}", parent, name, anchor=(0, 0, i * cell), axis=(0, 1, 0), stiffness=stiffness)
        parent = name
    b.end_effectors(parent)
    return b.build()


def rod(stiffness=10.0):
    b = pliant.Builder("rod")
    b.body("tip", mass=1.0, inertia=SMALL, position=(0, 0, 1))
    b.hinge("pivot", "world", "tip", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=stiffness)
    b.end_effectors("tip")
    return b.build()


def test_a_truss_snaps_through():
    full = 2 * snap_force()
    found = pliant.path(truss(), {"apex": (0, 0, -full)})
    height = 0.3 + found.displacement("apex")
    np.testing.assert_allclose(found.factor, truss_force(height) / full, atol=1e-9)
    assert [point.kind for point in found.points] == ["limit", "limit"]
    np.testing.assert_allclose([point.factor for point in found.limit_points], [0.5, -0.5], atol=1e-9)
    # stable before the first limit point and after the second, one unstable motion in between
    first, second = (point.index for point in found.points)
    np.testing.assert_array_equal(found.negative[: first + 1], 0)
    np.testing.assert_array_equal(found.negative[first + 1 : second + 1], 1)
    np.testing.assert_array_equal(found.negative[second + 1 :], 0)
    np.testing.assert_array_equal(found.factor[[first, second]], [point.factor for point in found.points])
    assert found.factor[-1] == 1.0
    for point in found.points:
        assert point.configuration.pose("apex")[2, 3] ** 2 == pytest.approx(
            np.cbrt(np.hypot(1, 0.3)) ** 2 - 1, rel=1e-4
        )


def test_all_states_of_a_bistable_mechanism():
    found = pliant.path(truss(), {"apex": (0, 0, -2 * snap_force())})
    states = found.at(0.0)
    heights = [state.pose("apex")[2, 3] for state in states]
    np.testing.assert_allclose(heights, [0.3, 0.0, -0.3], atol=1e-9)
    assert [state.stability for state in states] == ["stable", "unstable", "stable"]
    assert all(state.residual < 1e-9 for state in states)
    forces = [truss_force(state.pose("apex")[2, 3]) for state in found.at(0.25)]
    np.testing.assert_allclose(forces, [0.5 * snap_force()] * 3, rtol=1e-8)
    assert found.at(1.5) == ()


def test_results_do_not_hang_on_the_last_bit():
    """Inputs changed by 1e-13: the same points, kinds and loads."""
    for seed in range(5):
        change = 1 + 1e-13 * np.random.default_rng(seed).normal(size=2)
        m, force = truss(1000.0 * change[0]), 2 * snap_force() * change[1]
        found = pliant.path(m, {"apex": (0, 0, -force)})
        np.testing.assert_allclose([p.factor for p in found.limit_points], [0.5, -0.5], atol=1e-9)
        branch = pliant.path(rod(10.0 * change[0]), {"tip": (0, 0, -20 * change[1])}, branches=True)
        np.testing.assert_allclose([p.factor for p in branch.branch_points], [0.5], atol=1e-8)
        assert len(branch.branches) == 2


def test_a_rod_buckles_to_both_sides():
    """m g l = k: the upright rod turns unstable, and two stable branches P l sin(a) = k a leave it."""
    found = pliant.path(rod(), {"tip": (0, 0, -20)}, branches=True)
    assert [point.kind for point in found.points] == ["branch"]
    assert found.points[0].factor == pytest.approx(0.5, abs=1e-8)
    np.testing.assert_array_equal(found.q, 0.0)
    np.testing.assert_array_equal(found.stable, found.factor <= found.points[0].factor)
    angles = []
    for branch in found.branches:
        angle = branch.q[1:, 0]
        np.testing.assert_allclose(20 * branch.factor[1:] * np.sin(angle), 10 * angle, atol=1e-8)
        assert branch.stable.all()
        assert branch.factor[-1] == 1.0
        angles.append(angle[-1])
    assert angles[0] == pytest.approx(-angles[1], abs=1e-8)


def steep_truss(stiffness=100.0, span=1.0, height=2.5):
    """Both bars of a von Mises truss, their apex free in the plane y = 0; a loop."""
    b = pliant.Builder("steep truss")
    length = np.hypot(span, height)
    for name, side in (("left", -1), ("right", 1)):
        b.body(f"{name} bar", mass=0.1, inertia=SMALL, position=(side * span, 0, 0))
        b.body(f"{name} rod", mass=0.1, inertia=SMALL, position=(0, 0, height))
        b.hinge(f"{name} foot", "world", f"{name} bar", anchor=(side * span, 0, 0), axis=(0, 1, 0))
        axis = (-side * span / length, 0, height / length)
        b.slide(f"{name} spring", f"{name} bar", f"{name} rod", axis=axis, stiffness=stiffness)
    b.hinge("apex", "left rod", "right rod", anchor=(0, 0, height), axis=(0, 1, 0))
    b.end_effectors("left rod")
    return b.build()


def test_a_steep_truss_buckles_sideways_before_it_snaps():
    """Stiffness sideways vanishes at L³ = L0 z², that along the load at L³ = L0 a²; on the branch, forces balance."""
    k, a, h = 100.0, 1.0, 2.5
    rest = np.hypot(a, h)
    sideways = [
        brentq(lambda z: (a * a + z * z) ** 1.5 - rest * z * z, *ends) for ends in ((1.4, 2.2), (0.9, 1.4))
    ]
    limit = np.sqrt(np.cbrt(rest * a * a) ** 2 - a * a)

    def force(x, z):
        """On the apex at (x, z), from both bars, (2,)."""
        away = [np.array([x - foot, z]) for foot in (-a, a)]
        return -k * np.sum([(np.hypot(*d) - rest) * d / np.hypot(*d) for d in away], axis=0)

    full = 1.2 * force(0.0, limit)[1]
    found = pliant.path(steep_truss(), {"left rod": (0, 0, -full)}, branches=True)
    assert [point.kind for point in found.points[:3]] == ["branch", "branch", "limit"]
    heights = [point.configuration.pose("left rod")[2, 3] for point in found.points[:3]]
    np.testing.assert_allclose(heights, [*sideways, limit], atol=1e-4)  # pyright: ignore[reportArgumentType, reportCallIssue]
    loads = [force(0.0, z)[1] / full for z in (*sideways, limit)]
    np.testing.assert_allclose([point.factor for point in found.points[:3]], loads, rtol=1e-6)
    # a closed branch through the first and the last branch point, on both sides of it; two to each side of the others
    assert len(found.branches) == 5
    np.testing.assert_allclose(found.branches[0].poses[1], found.branches[0].poses[-1], atol=1e-9)
    asides = []
    for branch in found.branches[1:3]:
        places = branch.trajectory().pose("left rod")[:, [0, 2], 3]
        for (x, z), factor in zip(places, branch.factor, strict=True):
            np.testing.assert_allclose(force(x, z), [0.0, factor * full], atol=1e-6)
        asides.append(branch.displacement("left rod", "x")[5])
    assert asides[0] * asides[1] < 0


def test_gravity_that_grows_and_a_parameter_that_shrinks():
    """The same rod buckles when its weight reaches k / l, and when its spring falls to weight times l."""
    by_weight = pliant.path(rod(), gravity=(0, 0, -20))
    assert by_weight.branch_points[0].factor == pytest.approx(0.5, abs=1e-8)
    m = rod()
    by_spring = pliant.path(
        m, {"tip": (0, 0, -8)}, parameter=lambda k: m.with_stiffness("pivot", k), start=10.0, stop=5.0
    )
    assert by_spring.branch_points[0].factor == pytest.approx(8.0, rel=1e-8)
    assert by_spring.factor[[0, -1]].tolist() == [10.0, 5.0]
    # gravity in full while a wrench grows: together they buckle it
    both = pliant.path(rod(), {"tip": (0, 0, -20)}, gravity=(0, 0, -5))
    assert both.branch_points[0].factor == pytest.approx(0.25, abs=1e-8)


@pytest.mark.parametrize("links", [3, 20])
def test_columns_buckle_at_their_eigenvalues(links):
    """Branch points of a chain: eigenvalues of bending stiffness over P, a symmetric tridiagonal matrix by hand."""
    cell = 1 / links
    springs = np.full(links, 1 / cell)
    springs[0] *= 2
    bending = (
        np.diag(springs + np.append(springs[1:], 0.0)) - np.diag(springs[1:], 1) - np.diag(springs[1:], -1)
    )
    loads = np.linalg.eigvalsh(bending) / cell
    full = 0.5 * (loads[1] + loads[2])
    found = pliant.path(column(links), {f"link{links}": (0, 0, -full)}, most=2000)
    np.testing.assert_allclose([p.factor * full for p in found.branch_points], loads[:2], rtol=1e-6)
    assert found.negative[-1] == 2


def test_a_buckled_column_is_the_elastica():
    """P and the place of the tip by elliptic integrals, for a tip turned by 20 to 120 degrees; error of 60 links."""
    links = 60
    m = column(links)
    full = 2.0 * (np.pi / 2) ** 2
    found = pliant.path(m, {f"link{links}": (0, 0, -full)}, branches=True)
    side = found.branches[0]
    tips = side.q.sum(axis=1)
    checked = 0
    for i in np.flatnonzero((np.abs(tips) > np.radians(20)) & (np.abs(tips) < np.radians(120))).tolist():
        k = np.sin(abs(tips[i]) / 2) ** 2  # parameter m of the elliptic integrals
        assert full * side.factor[i] == pytest.approx(ellipk(k) ** 2, rel=2e-2)
        height = side.poses[i, -1, 2, 3]
        assert height == pytest.approx(2 * ellipe(k) / ellipk(k) - 1, abs=1e-2)
        checked += 1
    assert checked >= 5
    assert side.stable.all()


def test_points_balance_an_independent_energy():
    """The gripper, with loops: at every point the gradient of energy vanishes along allowed motions."""
    m = pliant.gallery.gripper()
    body = m.end_effectors[0]
    force = np.array([4.0, 0.0, 2.0])
    found = pliant.path(m, {body: force}, step=0.2)
    assert found.factor[-1] == 1.0
    for i in range(0, len(found), max(1, len(found) // 5)):
        state, load = found.configuration(i), {body: found.factor[i] * force}
        slope = dense.gradient(lambda q, load=load: dense.energy(m, q, load), m, state.q)
        # the part of the gradient that constraint forces cannot hold
        rows = state.loop_jacobian
        held = np.linalg.lstsq(rows.T, slope, rcond=1e-9)[0] @ rows
        assert np.abs(slope - held).max() < 1e-6 * max(1.0, np.abs(slope).max())
        assert np.abs(state.loop_residual).max() < 1e-9
    expected = pliant.equilibrium(m, {body: force})
    np.testing.assert_allclose(found.configuration(-1).poses, expected.poses, atol=1e-8)


def test_pictures_motion_and_words(tmp_path):
    found = pliant.path(rod(), {"tip": (0, 0, -20)}, branches=True)
    found.plot(tmp_path / "path.png", axis="x")
    assert (tmp_path / "path.png").stat().st_size > 5000
    motion = found.branches[0].trajectory(3.0)
    assert motion.time[[0, -1]].tolist() == [0.0, 3.0]
    assert len(motion) == len(found.branches[0])
    assert "branch point at 0.5" in found.summary()
    assert "1 branch point" in repr(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pliant.path("rod.xml"), "a Mechanism expected"),  # pyright: ignore[reportArgumentType]
        (lambda: pliant.path(rod()), "no load to follow"),
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}, stop=0.0), "nothing to follow"),
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}, step=0.0), "step"),
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}, most=1), "most"),
        (lambda: pliant.path(rod(), [1, 2, 3]), "mapping"),  # pyright: ignore[reportArgumentType]
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}, parameter=3), "function of one number"),  # pyright: ignore[reportArgumentType]
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}, parameter=lambda k: truss()), "with other values"),
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}).displacement("world"), "name a body"),
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}).displacement("tip", "w"), "axis"),
    ],
)
def test_mistakes_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_an_early_end_warns():
    with pytest.warns(PliantWarning, match="after 3 points"):
        found = pliant.path(rod(), {"tip": (0, 0, -20)}, most=3)
    assert len(found) == 3
