"""Projected Gauss-Seidel, against brute force and against Coulomb's law itself."""

from __future__ import annotations

import numpy as np
import pytest

from oracles import coulomb
from pliant import World, shapes
from pliant.contact import _rows, _solve, arrays
from pliant.engines.actor import CONTACT, ROLLING, SPRING, START
from pliant.engines.reduced.actor import NO_MODEL


def problem(rng, count, dofs, friction):
    """Contacts of two actors each, dense: (blocks, J, inverse mass, free velocities)."""
    halves = []
    for _ in range(2):
        half = rng.normal(size=(dofs, dofs))
        halves.append(half @ half.T + 0.1 * np.eye(dofs))
    mass = np.zeros((2 * dofs, 2 * dofs))
    mass[:dofs, :dofs], mass[dofs:, dofs:] = halves
    J = rng.normal(size=(3 * count, 2 * dofs))
    blocks = arrays.make_rows(count, 6 * count * dofs)
    blocks.body[:] = (0, 1)
    _rows.lay_out(count, blocks.body, np.array([dofs, dofs]), np.array([0, dofs]), blocks.side)
    for b in range(count):
        for s in range(2):
            own = slice(s * dofs, (s + 1) * dofs)
            start = blocks.side[b, s, START]
            rows = J[3 * b : 3 * b + 3, own]
            blocks.J[start : start + 3 * dofs] = rows.ravel()
            blocks.Y[start : start + 3 * dofs] = (rows @ mass[own, own]).ravel()
    blocks.kind[:count] = CONTACT
    blocks.bound[:count] = friction
    return blocks, J, mass, rng.normal(size=2 * dofs)


def step_of(blocks, u, count, sweeps=200, tolerance=1e-6, found=None, warm=None):
    """A step on given blocks, velocities and contacts, of a world with a ball."""
    world = World(1 / 60)
    world.add_static("floor", shapes.plane())
    world.add_body("ball", shapes.sphere(0.1), position=(0, 0, 1))
    s = world._build().stepper
    assert s is not None
    counts = np.zeros(arrays.COUNTS, dtype=np.int64)
    counts[[arrays.CONTACTS, arrays.ROWS]] = count
    report = arrays.Report(counts, np.zeros(1))
    step = arrays.make_step(
        s.settings._replace(sweeps=sweeps, tolerance=tolerance),
        report,
        s._native,
        s.collider.scene,
        found or s.collider.found,
        blocks,
        warm or s._warm,
        s._bodies,
        arrays.Velocities(np.zeros_like(u), u, np.zeros_like(u)),
        s._free.arrays,
        NO_MODEL,
        arrays.Saved(np.zeros((0, 13)), np.zeros(0), np.zeros(2, dtype=np.int64)),
    )
    return step, report


def solve(blocks, u, sweeps, tolerance):
    """Impulses of all blocks; returns the number of sweeps and the residual."""
    step, report = step_of(blocks, u, len(blocks.kind), sweeps, tolerance)
    _solve.delassus(step)
    _solve.solve(step, True)
    return int(report.counts[arrays.SWEEPS]), float(report.residual[0])


@pytest.mark.parametrize("seed", range(20))
def test_frictionless_contacts_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    blocks, J, mass, u = problem(rng, count, 8, 0.0)
    normal = J[::3]
    expected = coulomb.frictionless(normal @ mass @ normal.T, normal @ u)
    sweeps, residual = solve(blocks, u, 20000, 1e-13)
    assert sweeps < 20000
    assert residual <= 1e-13
    np.testing.assert_allclose(blocks.impulse[:count, 0], expected, atol=1e-8 * (1 + expected.max()))
    assert not blocks.impulse[:count, 1:].any()


@pytest.mark.parametrize("seed", range(30))
def test_solutions_obey_coulombs_law(seed):
    rng = np.random.default_rng(100 + seed)
    count = int(rng.integers(1, 5))
    friction = rng.uniform(0.0, 0.6, count)
    blocks, J, mass, u = problem(rng, count, 10, friction)
    free = u.copy()
    _, residual = solve(blocks, u, 50000, 1e-12)
    assert residual <= 1e-12
    p = blocks.impulse[:count]
    np.testing.assert_allclose(u, free + mass @ J.T @ p.ravel(), atol=1e-8)  # kept up to date
    assert coulomb.violation(p, (J @ u).reshape(-1, 3), friction) < 1e-6


def test_starting_from_the_solution_takes_one_sweep():
    rng = np.random.default_rng(7)
    blocks, _, _, u = problem(rng, 4, 10, 0.4)
    free = u.copy()
    first, _ = solve(blocks, u, 50000, 1e-12)
    again, _ = solve(blocks, free, 50000, 1e-9)
    assert first > 1
    assert again == 1


def test_friction_is_a_cone_not_a_pyramid():
    """The same sliding speed in any direction meets the same friction."""
    for angle in np.linspace(0, 2 * np.pi, 9):
        slip = 3 * np.cos(angle), 3 * np.sin(angle)
        p = _solve.slide(np.diag([1.0, 2.0, 2.0]), 0.0, 0.0, 0.0, -1.0, *slip, 0.5)
        np.testing.assert_allclose(p, [1.0, -0.5 * np.cos(angle), -0.5 * np.sin(angle)], atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_contact_slides_against_its_friction(seed):
    """On the cone, the normal velocity gone, and friction straight against the slip that is left."""
    rng = np.random.default_rng(seed)
    slid = opened = 0
    for _ in range(100):
        half = rng.normal(size=(3, rng.integers(3, 6)))
        A = half @ half.T * 10.0 ** rng.uniform(-3, 3)
        A += 1e-9 * np.trace(A) * np.eye(3)
        given = np.abs(rng.normal(size=3)) * rng.integers(2)
        amiss, friction = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 2), rng.uniform(0.05, 1.5)
        sticks = given - np.linalg.solve(A, amiss)
        if np.hypot(*sticks[1:]) <= friction * sticks[0]:
            continue
        p = np.array(_solve.slide(A, *given, *amiss, friction))
        velocity, scale = amiss + A @ (p - given), np.abs(amiss).max() + np.abs(A @ given).max()
        if (amiss - A @ given)[0] >= 0:
            opened += 1
            assert not p.any()
            continue
        slid += 1
        size, slip = np.hypot(*p[1:]), velocity[1:]
        assert size == pytest.approx(friction * p[0], rel=1e-9)
        assert abs(velocity[0]) < 1e-9 * scale
        np.testing.assert_allclose(slip, -np.linalg.norm(slip) * p[1:] / size, atol=1e-7 * scale)
    assert slid > 10
    assert opened > 10


def test_bilateral_rows_hold_beside_contacts():
    rng = np.random.default_rng(3)
    blocks, J, _, u = problem(rng, 3, 10, 0.3)
    blocks.kind[1] = SPRING
    blocks.target[1] = (0.3, -0.2, 0.1)
    solve(blocks, u, 50000, 1e-12)
    np.testing.assert_allclose(J[3:6] @ u, (0.3, -0.2, 0.1), atol=1e-9)


def test_rolling_resistance_is_bounded_by_the_normal_force():
    rng = np.random.default_rng(5)
    blocks, _, _, u = problem(rng, 2, 10, 0.3)
    blocks.kind[1], blocks.partner[1], blocks.bound[1] = ROLLING, 0, 0.01
    blocks.target[0, 0] = 5.0
    solve(blocks, u, 50000, 1e-12)
    assert blocks.impulse[0, 0] > 0
    assert np.linalg.norm(blocks.impulse[1]) == pytest.approx(0.01 * blocks.impulse[0, 0])


def test_compliance_gives_way_in_proportion():
    rng = np.random.default_rng(9)
    blocks, J, _, u = problem(rng, 1, 6, 0.0)
    blocks.softness[0, 0], blocks.target[0, 0] = 0.7, 10.0
    solve(blocks, u, 1000, 1e-13)
    assert J[0] @ u + 0.7 * blocks.impulse[0, 0] == pytest.approx(10.0)


def test_old_contacts_are_found_by_shapes_and_place():
    new, old = arrays.make_found(4), arrays.make_warm_start(4)
    arrays.keep(
        old, (np.array([3, 3, 4]), np.array([8, 8, 9]), np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0]]))
    )
    new.shape_first[:], new.shape_second[:] = (3, 3, 3, 4), (8, 8, 8, 9)
    new.point[:] = (1.1, 0, 0), (0.1, 0, 0), (5, 0, 0), (0, 0, 0)
    new.first[:], new.second[:], new.normal[:], new.distance[:] = 0, 1, (0, 0, 1), 0.0
    step, _ = step_of(arrays.make_rows(8, 0), np.zeros(6), 4, found=new, warm=old)
    _rows.fill_rows(step)
    assert old.match.tolist() == [1, 0, -1, 2]
