"""Contact of the quasi-static engine: forces beside statics and dense responses, friction, joints that it opens."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import shapes
from pliant.engines.quasistatic import _contacts as kernels
from pliant.errors import ConvergenceError, InputError

DOWN = (0.0, 0.0, -9.81)


def hanging_chain(n, *, stiffness=0.02, loop=False):
    """A chain of links of 0.1 m in the plane y = 0, 0.3 m above the floor; with `loop` its tip is held, too."""
    b = pliant.Builder("chain")
    for i in range(n):
        b.body(
            f"l{i}", mass=0.05, shapes=[shapes.rod((0, 0, 0), (0.1, 0, 0), 0.01)], position=(0.1 * i, 0, 0.3)
        )
        at = {"anchor": (0.1 * i, 0, 0.3), "axis": (0, 1, 0), "stiffness": stiffness}
        b.hinge(f"j{i}", f"l{i - 1}" if i else "world", f"l{i}", **at)
    if loop:
        b.body("end", mass=0.05, inertia=(1e-5, 1e-5, 1e-5), position=(0.1 * n, 0, 0.3))
        b.slide("rail", "world", "end", axis=(1, 0, 0), stiffness=1.0)
        b.hinge("tip", f"l{n - 1}", "end", anchor=(0.1 * n, 0, 0.3), axis=(0, 1, 0), stiffness=stiffness)
    return b.build()


def block(mass=2.0):
    """A box on a free joint, 1 mm above the floor."""
    b = pliant.Builder("block")
    b.body("block", mass=mass, shapes=[shapes.box((0.2, 0.3, 0.05))], position=(0, 0, 0.051))
    b.free("root", "world", "block")
    return b.build()


def wrenches(simulation):
    """Contact forces as wrenches on bodies, at their origins."""
    out = {}
    for c in simulation.contacts:
        force, torque = out.setdefault(c.body, (np.zeros(3), np.zeros(3)))
        force += c.force
        torque += np.cross(c.point - simulation.pose(c.body)[:3, 3], c.force)
    return {body: np.concatenate(parts) for body, parts in out.items()}


def total(simulation):
    """Sum of all contact forces."""
    return np.sum([c.force for c in simulation.contacts], axis=0)


def check_forces(simulation, friction, closed):
    """Assert that forces push, within the cone of friction, where surfaces touch."""
    assert simulation.contacts
    for c in simulation.contacts:
        push = c.force @ c.normal
        assert push > 0
        assert abs(c.distance) < closed
        assert np.linalg.norm(c.force - push * c.normal) <= friction * push * (1 + 1e-9) + 1e-12


def test_a_block_stands_on_the_floor():
    simulation = pliant.QuasistaticSimulation(block(), 0.05, obstacles=[shapes.plane()], friction=0.5)
    simulation.step(10)
    assert abs(simulation.pose("block")[2, 3] - 0.05) < 1e-12
    np.testing.assert_allclose(wrenches(simulation)["block"], [0, 0, 2 * 9.81, 0, 0, 0], atol=1e-6)
    check_forces(simulation, 0.5, 1e-10)


@pytest.mark.parametrize(("push", "slides"), [(0.49, False), (0.51, True)])
def test_a_block_slides_from_the_limit_of_friction_on(push, slides):
    simulation = pliant.QuasistaticSimulation(block(), 0.05, obstacles=[shapes.plane()], friction=0.5)
    simulation.step(10)
    before = simulation.pose("block")
    simulation.apply_wrench("block", force=(push * 2 * 9.81, 0, 0), point=(0, 0, -0.05))
    simulation.step(20)
    moved = simulation.pose("block") - before
    # h² (F - friction N) / m a step, from rest each time
    way = 20 * 0.05**2 * (push - 0.5) * 9.81 if slides else 0.0
    assert abs(moved[0, 3] - way) < 1e-6
    moved[0, 3] = 0.0
    np.testing.assert_allclose(moved, 0.0, atol=1e-8)


@pytest.mark.parametrize("loop", [False, True])
def test_rest_is_an_equilibrium_under_the_contact_forces(loop):
    """A chain that lies on the floor, half of it; statics finds it where it is."""
    m = hanging_chain(10, loop=loop)
    simulation = pliant.QuasistaticSimulation(
        m, 0.02 if loop else 0.05, tolerance=1e-6, obstacles=[shapes.plane()], friction=0.6
    )
    simulation.step(1500 if loop else 400)
    check_forces(simulation, 0.6, 1e-9)
    assert simulation.poses[:, 2, 3].min() > 0.01 - 1e-9
    rest = pliant.equilibrium(m, wrenches(simulation), gravity=DOWN, start=simulation.q)
    np.testing.assert_allclose(simulation.poses, rest.poses, atol=1e-7)


def test_a_chain_comes_to_rest_over_a_ball():
    m = hanging_chain(10)
    ball = shapes.sphere(0.25, position=(0.45, 0, 0))
    simulation = pliant.QuasistaticSimulation(m, 0.02, tolerance=1e-6, obstacles=[ball], friction=0.3)
    simulation.step(600)
    check_forces(simulation, 0.3, 1e-6)
    rest = pliant.equilibrium(m, wrenches(simulation), gravity=DOWN, start=simulation.q)
    np.testing.assert_allclose(simulation.poses, rest.poses, atol=1e-7)
    for c in simulation.contacts:
        assert abs(np.linalg.norm(c.point - (0.45, 0, 0)) - 0.25 - c.distance) < 1e-12


def lowest(m):
    """The lowest end of a capsule, m, and its body."""
    t = m.shape_table
    frames = m.reference_poses[t.body] @ t.pose
    height = frames[:, 2, 3] - np.abs(frames[:, 2, 2]) * t.size[:, 1] - t.size[:, 0]
    return float(height.min()), m.body_names[int(t.body[height.argmin()])]


def pressed(n, tolerance, *, steps=40, friction=0.4, seed=0):
    """A soft molecule whose lowest bond is pressed onto a floor 0.1 mm below it."""
    m = pliant.gallery.molecule(n, seed=seed).with_stiffness("*", 1e-3, 5e-6)
    height, body = lowest(m)
    floor = shapes.plane(position=(0, 0, height - 1e-4))
    simulation = pliant.QuasistaticSimulation(
        m, 1 / 240, (0, 0, 0), tolerance=tolerance, obstacles=[floor], friction=friction
    )
    simulation.apply_wrench(body, force=(0, 0, -2e-3))
    simulation.step(steps)
    return simulation


def test_contact_opens_the_joints_that_it_needs():
    """Against all joints; the error follows the tolerance."""
    exact = pressed(3000, 1e-11)
    moved = np.abs(exact.poses - exact.mechanism.reference_poses)[:, :3, 3].max()
    assert exact.contacts
    assert moved > 5e-5
    for tolerance, error in ((1e-2, 2e-2), (1e-4, 2e-4)):
        simulation = pressed(3000, tolerance)
        assert len(simulation.active) < 300
        check_forces(simulation, 0.4, 1e-9)
        assert np.abs(simulation.poses - exact.poses)[:, :3, 3].max() < error * moved
        np.testing.assert_allclose(total(simulation), total(exact), atol=error * np.abs(total(exact)).max())


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_finds_what_all_groups_have(seed):
    """The same contacts, and the same accelerations and responses at a tolerance that opens all joints that matter."""
    simulation = pressed(1200, 1e-10, steps=3, seed=seed)
    solver, contacts = simulation._solver, simulation._contacts
    assert contacts is not None
    solver.small = solver.whole = False
    ball = shapes.sphere(0.02, position=simulation.poses[600, :3, 3] + (0, 0, 0.02))
    both = type(contacts)(simulation.mechanism, solver, [ball], 0.0)
    both._ahead = 0.01
    both._ignored[:] = False
    if not solver.current:
        solver.begin()
    found = both._near(solver, False).copy()
    every = both._near(solver, True).copy()
    order = [np.lexsort((a[:, kernels.OBSTACLE], a[:, kernels.SLOT])) for a in (found, every)]
    assert len(found) == len(every) > 5
    np.testing.assert_allclose(found[order[0]], every[order[1]], atol=1e-9)


def test_responses_are_those_of_the_dense_mass_matrix():
    """J M^-1 J^T at the contact points, on all joints and on those that the tree opens."""
    simulation = pressed(1200, 1e-10, steps=3)
    m, solver, contacts = simulation.mechanism, simulation._solver, simulation._contacts
    assert contacts is not None
    from pliant.engines.quasistatic import contacts as module

    solver.small = solver.whole = False
    module._update(solver, False)
    near = contacts._near(solver, False).copy()[:3]
    at = pliant.Configuration(m, simulation.q)
    h = simulation.timestep
    mass = at.mass_matrix() + np.diag(h * h * m.stiffness + h * m.damping)
    rows = []
    for c in near:
        body = m.body_names[contacts._bodies[int(c[kernels.SLOT]) // 2]]
        J = at.jacobian(body, frame="world")
        arm = c[kernels.POINT : kernels.LOCAL] - at.pose(body)[:3, 3]
        moves = J[:3] - np.cross(arm, J[3:].T).T @ np.eye(m.nv)
        rows.append(c[kernels.AXES : kernels.POINT].reshape(3, 3) @ moves)
    J = np.concatenate(rows)
    dense = J @ np.linalg.solve(mass, J.T)
    force, which = np.zeros((len(near), 3)), np.arange(len(near))
    active = module._Active(contacts, solver, near).responses(which, force, 3)
    np.testing.assert_allclose(active, dense, atol=1e-5 * np.abs(dense).max())
    nothing = solver.rows_of({})
    solver.set_loads(nothing)
    contacts._near(solver, True)  # world poses of all groups
    every = module._Everything(contacts, solver, near, nothing).responses(which, force, 3)
    np.testing.assert_allclose(every, dense, atol=1e-8 * np.abs(dense).max())


def test_overlaps_of_the_reference_pose_do_not_touch():
    b = pliant.Builder("post")
    b.body("post", mass=1.0, shapes=[shapes.rod((0, 0, -0.1), (0, 0, 0.5), 0.02)])
    b.hinge("foot", "world", "post", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=50.0)
    simulation = pliant.QuasistaticSimulation(b.build(), 0.05, obstacles=[shapes.plane()])
    simulation.apply_wrench("post", force=(1, 0, 0), point=(0, 0, 0.5))
    simulation.step(50)
    assert not simulation.contacts
    assert abs(simulation.q[0]) > 0.005


def test_goes_on_from_a_state_bit_for_bit():
    simulation = pliant.QuasistaticSimulation(
        hanging_chain(8), 0.05, obstacles=[shapes.plane()], friction=0.5
    )
    simulation.step(100)
    state, twin = simulation.state, simulation.copy()
    forces = [c.force for c in simulation.contacts]
    assert forces
    simulation.step(20)
    after = simulation.q
    twin.step(20)
    np.testing.assert_array_equal(twin.q, after)
    simulation.state = state
    np.testing.assert_array_equal([c.force for c in simulation.contacts], forces)
    simulation.step(20)
    np.testing.assert_array_equal(simulation.q, after)


def test_no_contact_costs_no_answer():
    """Obstacles out of reach change nothing."""
    m = hanging_chain(6)
    far = pliant.QuasistaticSimulation(m, 0.02, obstacles=[shapes.plane(position=(0, 0, -9))])
    free = pliant.QuasistaticSimulation(m, 0.02)
    far.step(30)
    free.step(30)
    np.testing.assert_array_equal(far.q, free.q)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"obstacles": shapes.plane()}, "a list of shapes expected"),
        ({"obstacles": ["floor"]}, "shapes expected"),
        ({"obstacles": [shapes.box((1, 1, 1))]}, "planes and spheres"),
        ({"obstacles": [shapes.plane().with_role("visual")]}, "planes and spheres that touch"),
        ({"obstacles": [shapes.plane()], "friction": -0.1}, "friction"),
        ({"obstacles": [shapes.plane()], "inactive": "zero"}, "inactive='rigid'"),
    ],
)
def test_refuses_what_no_body_can_touch(options, words):
    with pytest.raises(InputError, match=words):
        pliant.QuasistaticSimulation(hanging_chain(3), 0.05, **options)


def test_refuses_shapes_that_cannot_touch():
    with pytest.raises(InputError, match=r"'block' has a box: sphere, capsule expected"):
        pliant.QuasistaticSimulation(block(), 0.05, obstacles=[shapes.sphere(1.0, position=(0, 0, -2))])
    bare = pliant.Builder("bare")
    bare.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    bare.hinge("pin", "world", "bob", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    with pytest.raises(InputError, match="no body with a shape that touches"):
        pliant.QuasistaticSimulation(bare.build(), 0.05, obstacles=[shapes.plane()])


def test_too_many_contacts_are_refused(monkeypatch):
    from pliant.engines.quasistatic import contacts

    monkeypatch.setattr(contacts, "_MOST", 3)
    simulation = pliant.QuasistaticSimulation(hanging_chain(10), 0.05, obstacles=[shapes.plane()])
    with pytest.raises(ConvergenceError, match="contacts at a time: 3 are possible"):
        simulation.step(100)
    assert 0 < simulation.time < 5.0
    np.testing.assert_array_equal(simulation.poses, simulation.configuration.poses)


def test_wrenches_that_are_set_twice_leave_nothing_behind():
    simulation = pliant.QuasistaticSimulation(hanging_chain(4), 0.02)
    solver = simulation._solver
    simulation.apply_wrench("l3", force=(0, 0, 1.0))
    simulation.step(1)
    solver.set_loads(solver.rows_of({}))
    solver.set_loads(solver.rows_of({}))
    simulation.clear_wrenches()
    simulation.q = simulation.mechanism.reference
    simulation.step(1)
    fresh = pliant.QuasistaticSimulation(hanging_chain(4), 0.02)
    fresh.step(1)
    np.testing.assert_array_equal(simulation.q, fresh.q)
