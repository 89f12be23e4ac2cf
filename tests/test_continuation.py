"""Paths of equilibria against closed forms: von Mises truss, buckling rod, elastica; and against energies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk

import pliant
from oracles import dense
from pliant import spatial
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


def column(links, bending=1.0, length=1.0, joint="hinge", other=1.0, turn=None):
    """Cantilever of rigid links, upright, clamped below: a spring of half a cell there, of a cell between links.

    It bends in the plane y = 0, or both ways if joints are universal or balls; `other` is the factor on the stiffness
    of the second axis of universal joints. `turn` is a rotation of the whole.
    """
    turn = np.eye(3) if turn is None else turn
    b = pliant.Builder("column")
    cell, parent = length / links, "world"
    for i in range(links):
        name, bend = f"link{i + 1}", f"joint{i + 1}"
        b.body(name, mass=0.01, inertia=(1e-5,) * 3, position=turn @ (0, 0, (i + 1) * cell))
        k, anchor = bending / cell * (2 if i == 0 else 1), turn @ (0, 0, i * cell)
        if joint == "hinge":
            b.hinge(bend, parent, name, anchor=anchor, axis=turn @ (0, 1, 0), stiffness=k)
        elif joint == "universal":
            axes = turn @ (1, 0, 0), turn @ (0, 1, 0)
            b.universal(bend, parent, name, anchor=anchor, axes=axes, stiffness=(k, other * k))
        else:
            b.ball(bend, parent, name, anchor=anchor, stiffness=k)
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


def buckling_loads(links):
    """Of `column`: its energy to second order in the links' angles to the vertical, spring by spring."""
    cell = 1 / links
    springs = np.full(links, 1 / cell)
    springs[0] *= 2
    bending = (
        np.diag(springs + np.append(springs[1:], 0.0)) - np.diag(springs[1:], 1) - np.diag(springs[1:], -1)
    )
    return np.linalg.eigvalsh(bending) / cell


@pytest.mark.parametrize("links", [3, 20])
def test_columns_buckle_at_their_eigenvalues(links):
    """Branch points of a chain: eigenvalues of bending stiffness over P, a symmetric tridiagonal matrix by hand."""
    loads = buckling_loads(links)
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


# --- multiple branch points


@pytest.mark.parametrize(("joint", "links"), [("universal", 1), ("universal", 4), ("ball", 4)])
def test_a_column_that_bends_both_ways_has_a_double_branch_point(joint, links):
    """Both stiffnesses vanish at the load of the planar column, along motions in the two planes."""
    m, load = column(links, joint=joint), buckling_loads(links)[0]
    found = pliant.path(m, {f"link{links}": (0, 0, -1.5 * load)})
    assert [(point.kind, point.multiplicity) for point in found.points] == [("branch", 2)]
    point = found.points[0]
    assert 1.5 * point.factor == pytest.approx(1.0, rel=1e-7)
    assert "double branch point at 0.666667" in found.summary()
    assert found.negative.tolist() == [0 if i <= point.index else 2 for i in range(len(found))]
    # null motions by the Hessian of an independent energy
    body, force = f"link{links}", np.array((0, 0, -load))

    def energy(q):
        return dense.energy(m, q, {body: force})

    h, size, upright = 1e-4, m.nv, m.reference
    rows = [
        [dense.gradient(energy, m, dense.move(m, upright, s * h * unit)) for s in (1, -1)]
        for unit in np.eye(size)
    ]
    hessian = np.array([(ahead - back) / (2 * h) for ahead, back in rows])
    assert np.abs(hessian @ point.motions.T).max() < 1e-5 * m.stiffness.max()
    np.testing.assert_allclose(point.motions @ point.motions.T, np.eye(2), atol=1e-12)
    # along the axes of the joints: each motion turns links about one of them only
    per_joint = np.abs(point.motions.reshape(2, links, -1)).max(axis=1)
    np.testing.assert_allclose((per_joint > 1e-6).sum(axis=1), 1)
    assert np.flatnonzero(per_joint[0] > 1e-6) == [0]


def test_branches_of_a_universal_joint():
    """k a = P sin a cos b and k b = P cos a sin b: along both axes, and a = ±b with k a = P sin a cos a."""
    found = pliant.path(column(1, joint="universal"), {"link1": (0, 0, -5)}, branches=True)
    assert len(found.branches) == 8
    signs = set()
    for branch in found.branches:
        a, b, load = *branch.q[1:].T, 5 * branch.factor[1:]
        np.testing.assert_allclose(2 * a, load * np.sin(a) * np.cos(b), atol=1e-7)
        np.testing.assert_allclose(2 * b, load * np.cos(a) * np.sin(b), atol=1e-7)
        signs.add(tuple(np.sign(np.round(branch.q[-1], 6)).tolist()))
        diagonal = abs(branch.q[-1, 0] * branch.q[-1, 1]) > 1e-6
        assert branch.negative.tolist() == [int(diagonal)] * len(branch)
        assert branch.factor[-1] == 1.0
    assert signs == {(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)} - {(0, 0)}


def test_branches_of_a_chain_of_universal_joints():
    """In each plane, the branch of the planar column; between the planes, forces balance by an independent energy."""
    links, load = 4, {"link4": np.array((0, 0, -5.0))}
    m = column(links, joint="universal")
    found = pliant.path(m, load, branches=True)
    planar = pliant.path(column(links), load, branches=True)
    height = planar.branches[0].poses[-1, -1, 2, 3]
    flat = [branch for branch in found.branches if np.abs(branch.poses[-1, -1, :2, 3]).min() < 1e-9]
    assert (len(flat), len(found.branches)) == (4, 8)
    for branch in found.branches:
        if branch in flat:
            assert branch.poses[-1, -1, 2, 3] == pytest.approx(height, abs=1e-8)
            assert branch.stable.all()
        slope = dense.gradient(lambda q: dense.energy(m, q, load), m, branch.q[-1])
        assert np.abs(slope).max() < 1e-6


def test_a_column_of_balls_buckles_in_every_plane():
    """An axis of symmetry: both planes stand for all, and branches are stable although the column may turn about it."""
    links, load = 4, {"link4": (0, 0, -5)}
    with pytest.warns(PliantWarning, match="along all combinations of its two motions"):
        found = pliant.path(column(links, joint="ball"), load, branches=True)
    planar = pliant.path(column(links), load, branches=True)
    x, _, z = np.abs(planar.branches[0].poses[-1, -1, :3, 3])
    tips = [branch.poses[-1, -1, :3, 3] for branch in found.branches]
    np.testing.assert_allclose(tips, [(0, -x, z), (0, x, z), (x, 0, z), (-x, 0, z)], atol=1e-7)
    assert all(branch.stable.all() and not branch.points for branch in found.branches)
    assert found.branches[0].configuration(-1).stability == "stable"


@pytest.mark.filterwarnings("ignore:path of")
@pytest.mark.parametrize(
    ("joint", "unstable"), [("universal", [0, 0, 0, 0, 1, 1, 1, 1]), ("ball", [0, 0, 0, 0])]
)
def test_double_points_do_not_hang_on_the_last_bit(joint, unstable):
    """Columns in any direction, and stiffnesses changed by 1e-13: the same point, branches and stability."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        turn, other = spatial.so3_exp(rng.normal(size=3)), 1 + 1e-13 * rng.normal()
        m = column(3, joint=joint, other=other, turn=turn)
        found = pliant.path(m, {"link3": turn @ (0, 0, -5)}, branches=True)
        assert [(p.kind, p.multiplicity) for p in found.points] == [("branch", 2)]
        assert 5 * found.points[0].factor == pytest.approx(buckling_loads(3)[0], rel=1e-7)
        assert [branch.negative.max() for branch in found.branches] == unstable
        assert all(not branch.points and branch.factor[-1] == 1.0 for branch in found.branches)


@pytest.mark.parametrize("other", [1.001, 0.9999, 1 + 1e-9])
def test_close_branch_points_are_told_apart_down_to_a_limit(other):
    """Two buckling loads within one step: two points, unless the mechanism is as good as symmetric."""
    loads = np.sort(buckling_loads(3)[0] * np.array((1, other)))
    full = 1.5 * loads[0]
    found = pliant.path(column(3, joint="universal", other=other), {"link3": (0, 0, -full)})
    if abs(other - 1) < 1e-6:
        loads = loads[:1]
    np.testing.assert_allclose([full * point.factor for point in found.branch_points], loads, rtol=1e-7)
    assert [point.multiplicity for point in found.points] == [1, 1] if len(loads) == 2 else [2]
    assert found.negative[-1] == 2


def rods(*loads):
    """Upright rods on springs of 10 N m/rad, one metre long, beside each other; and their loads."""
    b = pliant.Builder("rods")
    for i in range(len(loads)):
        b.body(f"rod{i}", mass=1.0, inertia=SMALL, position=(0, i, 1))
        b.hinge(f"pivot{i}", "world", f"rod{i}", anchor=(0, i, 0), axis=(0, 1, 0), stiffness=10.0)
    b.end_effectors("rod0")
    return b.build(), {f"rod{i}": (0, 0, -load) for i, load in enumerate(loads)}


def test_branches_of_branches():
    """Rods that buckle one after the other: each is upright or leans to a side, nine states, and which are stable."""
    m, load = rods(20, 15)
    found = pliant.path(m, load, branches=True, depth=2)
    for path in found.paths:
        np.testing.assert_allclose(10 * path.q[-1], (20, 15) * np.sin(path.q[-1]), atol=1e-8)
    states = {tuple(np.sign(np.round(path.q[-1], 6)).tolist()) for path in found.paths}
    assert states == {(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)}
    assert len(found.paths) == 9
    assert [len(branch.branches) for branch in found.branches] == [2, 2, 0, 0]
    for path in found.paths:
        assert path.negative[-1] == (np.abs(path.q[-1]) < 1e-6).sum()
    assert len(pliant.path(m, load, branches=True).paths) == 5


def test_a_triple_branch_point_warns():
    m, load = rods(20, 20, 20)
    with pytest.warns(PliantWarning, match="3 motions without stiffness; there may be more branches"):
        found = pliant.path(m, load, branches=True)
    assert "triple branch point at 0.5" in found.summary()
    np.testing.assert_allclose(found.points[0].motions, np.eye(3), atol=1e-9)
    assert len(found.branches) == 6


def test_a_limit_point_that_is_a_branch_point_warns():
    """A truss of height √7: sideways stiffness vanishes where the load is largest; 0.1 % higher, right after it."""
    load = {"left rod": (0, 0, -240)}
    with pytest.warns(PliantWarning, match="the limit point at factor .* is a branch point, too"):
        found = pliant.path(steep_truss(height=np.sqrt(7)), load, branches=True, step=0.15)
    first = found.limit_points[0]
    assert first.multiplicity == 2
    assert first.factor == pytest.approx(200 / 240, rel=1e-7)
    apart = pliant.path(steep_truss(height=1.001 * np.sqrt(7)), load, step=0.15)
    assert [point.kind for point in apart.points[:3]] == ["branch", "limit", "branch"]
    assert [point.multiplicity for point in apart.points[:3]] == [1, 1, 1]


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
        (lambda: pliant.path(rod(), {"tip": (0, 0, -1)}, depth=0), "depth"),
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
