"""Miura-ori, bistable switch and tensegrity prism against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from oracles.one_variable import minimum, root
from pliant import gallery
from pliant.statics.energy import elastic_energy

from .test_compliance import Linear

WEIGHTLESS = (0.0, 0.0, 0.0)


# --- Miura-ori


def vertices(fold, rows, columns, side=0.05, sector=1.05):
    """Vertices (columns + 1, rows + 1, 3) of the folded sheet, from lengths and angles of the facets.

    Edges along x are `side` long and lie in horizontal planes, edges along y alternate between up and down; the angle
    between them is the sector.
    """
    high = side * np.sin(fold) * np.sin(sector)
    ahead = np.sqrt(side**2 - high**2)
    back = side**2 * np.cos(sector) / ahead  # of the edge along x on y: the sector's cosine
    i, j = np.meshgrid(np.arange(columns + 1), np.arange(rows + 1), indexing="ij")
    x = i * np.sqrt(side**2 - back**2)
    return np.stack([x, j * ahead + (i % 2) * back, (j % 2) * high], axis=-1)


def normals(points):
    """Unit normals (columns, rows, 3) of the facets, upwards."""
    out = np.cross(points[1:, :-1] - points[:-1, :-1], points[:-1, 1:] - points[:-1, :-1])
    return out / np.linalg.norm(out, axis=-1)[..., None]


def creases(points):
    """Fold angles of all creases: angles between the normals of neighbours."""
    n = normals(points)
    across, up = (n[1:] * n[:-1]).sum(axis=-1), (n[:, 1:] * n[:, :-1]).sum(axis=-1)
    return np.arccos(np.concatenate([across.ravel(), up.ravel()]))


def frame(points, i, j):
    """Axes and centre of a facet, from its corners."""
    x = points[i + 1, j] - points[i, j]
    x /= np.linalg.norm(x)
    z = normals(points)[i, j]
    centre = points[i : i + 2, j : j + 2].reshape(-1, 3).mean(axis=0)
    return np.column_stack([x, np.cross(z, x), z]), centre


def last_centre(fold, rows, columns, start):
    """Centre of the last facet while the first one stays where it is at the fold `start`."""
    now = vertices(fold, rows, columns)
    R0, c0 = frame(vertices(start, rows, columns), 0, 0)
    R, c = frame(now, 0, 0)
    return c0 + R0 @ R.T @ (frame(now, columns - 1, rows - 1)[1] - c)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 4), (5, 2)])
def test_counts_and_mobility_of_sheets(rows, columns):
    m = gallery.miura_ori(rows, columns)
    assert m.body_count == rows * columns
    assert m.nv == (rows - 1) * columns + rows * (columns - 1)
    assert m.topology.loops == (rows - 1) * (columns - 1)
    assert Linear(m).mobility == 1


def test_facets_are_equal_parallelograms():
    m = gallery.miura_ori(3, 3)
    points = vertices(0.7, 3, 3)
    for i in range(3):
        for j in range(3):
            np.testing.assert_allclose(
                m.reference_poses[m.body_index(f"facet{i + 1}_{j + 1}"), :3, 3], frame(points, i, j)[1]
            )
    edges = points[1:, :-1] - points[:-1, :-1], points[:-1, 1:] - points[:-1, :-1]
    for edge in edges:
        np.testing.assert_allclose(np.linalg.norm(edge, axis=-1), 0.05)
    cosine = (edges[0] * edges[1]).sum(axis=-1) / 0.05**2
    np.testing.assert_allclose(np.abs(cosine), np.cos(1.05))


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (4, 4), (3, 5)])
@pytest.mark.parametrize("force", [-0.5, 0.8])
def test_sheet_folds_as_a_whole(rows, columns, force):
    """The end effector is where the closed form has it, at the fold of least energy; all creases agree."""
    m = gallery.miura_ori(rows, columns)
    found = pliant.equilibrium(m, {f"facet{columns}_{rows}": (0, force, 0)})
    start = creases(vertices(0.7, rows, columns))
    best = minimum(
        lambda fold: (
            0.02 * ((creases(vertices(fold, rows, columns)) - start) ** 2).sum() / 2
            - force * last_centre(fold, rows, columns, 0.7)[1]
        ),
        0.01,
        1.5,
    )
    assert abs(best - 0.7) > 0.005
    expected = last_centre(best, rows, columns, 0.7)
    np.testing.assert_allclose(found.pose(f"facet{columns}_{rows}")[:3, 3], expected, atol=2e-7)
    turns = np.abs(found.q - m.reference)
    folds = np.abs(creases(vertices(best, rows, columns)) - start)
    np.testing.assert_allclose(np.sort(turns), np.sort(folds), atol=1e-5)


@pytest.mark.parametrize("force", [-0.8, -1e-3, 0.5])
def test_sheet_is_auxetic(force):
    """Between facets two cells apart: L sqrt(b^2 - S^2) = a b cos γ; Poisson's ratio starts at -(cos θ tan γ)^2."""
    m = gallery.miura_ori(3, 3)
    found = pliant.equilibrium(m, {"facet3_3": (force, 0, 0)})

    def steps(poses):
        centre = {name: poses[m.body_index(name), :3, 3] for name in ("facet1_1", "facet3_1", "facet1_3")}
        return [np.linalg.norm(centre[name] - centre["facet1_1"]) / 2 for name in ("facet3_1", "facet1_3")]

    (S0, L0), (S, L) = steps(m.reference_poses), steps(found.poses)
    assert abs(S / S0 - 1) > 1e-6
    np.testing.assert_allclose(
        [L * np.sqrt(0.05**2 - S**2), L0 * np.sqrt(0.05**2 - S0**2)], 0.05**2 * np.cos(1.05)
    )
    if abs(force) < 0.01:
        poisson = -(L / L0 - 1) / (S / S0 - 1)
        assert poisson == pytest.approx(-((np.cos(0.7) * np.tan(1.05)) ** 2), rel=1e-3)


# --- bistable switch

SPAN, RISE, BENDING, AXIAL = 0.05, 0.008, 0.02, 4e4


def energy(z):
    """Both beams at the height z of the shuttle: axial springs, and four torsion springs that turn alike."""
    stretch = np.hypot(SPAN, z) - np.hypot(SPAN, RISE)
    turn = np.arctan(z / SPAN) - np.arctan(RISE / SPAN)
    return AXIAL * stretch**2 + 2 * BENDING * turn**2


def slope(z):
    return 2 * AXIAL * (1 - np.hypot(SPAN, RISE) / np.hypot(SPAN, z)) * z + 4 * BENDING * (
        np.arctan(z / SPAN) - np.arctan(RISE / SPAN)
    ) * SPAN / (SPAN**2 + z**2)


def test_states_and_barrier_of_the_switch():
    """Two stable states and the unstable one between them, found as `pliant.path` crosses no load."""
    found = pliant.path(gallery.bistable(), {"shuttle": (0, 0, -8)})
    states = found.at(0.0)
    assert [state.stability for state in states] == ["stable", "unstable", "stable"]
    heights = [state.pose("shuttle")[2, 3] for state in states]
    barrier = root(slope, -0.5 * RISE, 0.5 * RISE)
    snapped = root(slope, -1.5 * RISE, -0.7 * RISE)
    np.testing.assert_allclose(heights, [RISE, barrier, snapped], atol=1e-9)
    energies = [elastic_energy(state.mechanism, state.q) for state in states]
    np.testing.assert_allclose(energies, [energy(z) for z in (RISE, barrier, snapped)], atol=1e-12)
    assert energies[1] > 3 * energies[2] > 0
    for state in states[::2]:  # it stays where it has been left
        rest = pliant.equilibrium(gallery.bistable(), start=state)
        assert rest.pose("shuttle")[2, 3] == pytest.approx(state.pose("shuttle")[2, 3], abs=1e-9)


def test_loads_at_which_the_switch_snaps():
    found = pliant.path(gallery.bistable(), {"shuttle": (0, 0, -8)})
    down = minimum(slope, 0, RISE)
    back = minimum(lambda z: -slope(z), -RISE, 0)
    loads = [8 * point.factor for point in found.limit_points]
    np.testing.assert_allclose(loads, [-slope(down), -slope(back)], rtol=1e-6)


def test_a_push_snaps_the_switch():
    m = gallery.bistable()
    for force, side in ((-2.5, 1), (-4.0, -1)):
        pushed = pliant.equilibrium(m, {"shuttle": (0, 0, force)})
        assert pushed.stability == "stable"
        assert np.sign(pushed.pose("shuttle")[2, 3]) == side
        released = pliant.equilibrium(m, start=pushed)
        assert np.sign(released.pose("shuttle")[2, 3]) == side


# --- tensegrity prism


def twist(found):
    """Turn of the bars' upper ends against their feet, degrees, (3,)."""
    m = found.mechanism
    heads = np.array([found.pose(f"bar{i}")[:2, 3] for i in (1, 2, 3)])
    feet = m.parent_frames[[m.joint_index(f"foot{i}") for i in (1, 2, 3)], :2, 3]
    angle = [np.arctan2(points[:, 1], points[:, 0]) for points in (heads, feet)]
    return np.degrees(angle[0] - angle[1]) % 360


def free_eyelets(m):
    return m.with_stiffness(["foot*", "*_start", "*_end"], 0.0)


def test_reference_pose_of_the_prism_is_in_balance():
    m = free_eyelets(gallery.tensegrity())
    found = pliant.equilibrium(m, gravity=WEIGHTLESS)
    assert found.stability == "stable"
    np.testing.assert_allclose(found.poses, m.reference_poses, atol=1e-9)
    np.testing.assert_allclose(twist(found), 150, atol=1e-7)


@pytest.mark.parametrize(("side", "top"), [(-0.05, -0.03), (-0.01, -0.08), (-0.1, -0.02)])
def test_prism_twists_by_150_degrees_whatever_its_tendons(side, top):
    """Other rest lengths change height and width, never the twist; so does a start 20 degrees off."""
    m = free_eyelets(gallery.tensegrity())
    m = m.with_rest([f"side{i}" for i in (1, 2, 3)], side).with_rest([f"top{i}" for i in (1, 2, 3)], top)
    found = pliant.equilibrium(m, gravity=WEIGHTLESS)
    assert found.stability == "stable"
    np.testing.assert_allclose(twist(found), 150, atol=1e-6)
    heads = np.array([found.pose(f"bar{i}")[:3, 3] for i in (1, 2, 3)])
    radius = np.hypot(heads[:, 0], heads[:, 1])
    np.testing.assert_allclose(radius, radius[0], rtol=1e-8)
    assert abs(radius[0] - 0.15) > 1e-3
    # Force densities: the upper triangle's is that of the uprights times bottom / (sqrt(3) top).
    upright, across = (np.array([found[f"{name}{i}"] for i in (1, 2, 3)]) for name in ("side", "top"))
    reference = {name: np.linalg.norm(tendon(m, name)) for name in ("side1", "top1")}
    density = [
        3000 * (upright - side) / (reference["side1"] + upright),
        3000 * (across - top) / (reference["top1"] + across),
    ]
    np.testing.assert_allclose(density[1], density[0] * 0.2 / (np.sqrt(3) * radius), rtol=1e-6)


def tendon(m, name):
    """From one end of a tendon to the other at the reference pose."""
    start, end = m.joint_index(f"{name}_start"), m.joint_index(f"{name}_end")
    poses = m.reference_poses[m.joint_children[[start, end]]] @ m.child_frames[[start, end]]
    return poses[1, :3, 3] - poses[0, :3, 3]


def test_prestress_alone_holds_the_twist():
    """Compliance of the twist: without prestress next to infinite, else a constant and a part over the tension."""

    def twisting(tension):
        found = pliant.equilibrium(gallery.tensegrity(tension=tension), gravity=WEIGHTLESS)
        tangents = [np.cross((0, 0, 1), found.pose(f"bar{i}")[:3, 3]) / 0.15 for i in (1, 2, 3)]
        push = np.concatenate([[*tangent, 0, 0, 0] for tangent in tangents])
        return push @ found.compliance() @ push

    slack, loose, taut, tautest = (twisting(tension) for tension in (0.0, 50.0, 100.0, 200.0))
    assert slack > 100 * loose
    assert (loose - taut) / (taut - tautest) == pytest.approx(2, rel=0.02)
    assert loose - taut > 0.3 * taut
