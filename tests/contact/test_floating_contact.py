"""Reduced models with a floating base in contact: rows and responses, momentum, weight, energy, the whole mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import Builder, World, shapes
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia

from .test_actors import blocks_at, rows

G = 9.81


def crab(seed=0, damping=0.02, loop=False, ball=False):
    """A floating box with four legs of two links; `loop`: two of the legs hold a bar; `ball`: hips are balls."""
    rng, b = np.random.default_rng(seed), Builder("crab")
    b.body("body", mass=0.5, shapes=[shapes.box((0.06, 0.04, 0.02))])
    b.free("base", "world", "body")
    for i, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        hip = np.array([0.05 * x, 0.04 * y, 0.0])
        spring = {"stiffness": rng.uniform(1, 3)}
        spring["damping"] = damping * spring["stiffness"]
        b.body(
            f"thigh{i}",
            mass=rng.uniform(0.02, 0.1),
            position=hip + np.array([0, 0.02 * y, 0]),
            inertia=(2e-5,) * 3,
        )
        foot = shapes.sphere(0.008, position=(0, 0, -0.03))
        b.body(
            f"shin{i}",
            mass=rng.uniform(0.02, 0.1),
            position=hip + np.array([0, 0.04 * y, -0.03]),
            inertia=(2e-5,) * 3,
            shapes=[foot],
        )
        if ball:
            b.ball(f"hip{i}", "body", f"thigh{i}", anchor=hip, **spring)
        else:
            b.hinge(f"hip{i}", "body", f"thigh{i}", anchor=hip, axis=(1, 0, 0), **spring)
        b.hinge(
            f"knee{i}",
            f"thigh{i}",
            f"shin{i}",
            anchor=hip + np.array([0, 0.04 * y, 0]),
            axis=(1, 0, 0),
            **spring,
        )
    if loop:
        b.body("bar", mass=0.05, position=(0, 0.08, -0.03), inertia=(1e-5, 1e-4, 1e-4))
        b.ball("left", "shin0", "bar", anchor=(0.05, 0.08, -0.03))
        b.ball("right", "bar", "shin2", anchor=(-0.05, 0.08, -0.03))
    b.end_effectors(*(f"shin{i}" for i in range(4)))
    return b.build()


def moving(m, h, method="full", seed=1):
    """A simulation that spins, far from where the model was made, its joints in motion."""
    simulation, rng = (
        pliant.ReducedSimulation(pliant.reduce(m), h, gravity=(0, 0, 0), method=method),
        np.random.default_rng(seed),
    )
    pose = np.eye(4)
    pose[:3, :3] = pliant.spatial.so3_exp(rng.normal(size=3))
    pose[:3, 3] = (3.0, -2.0, 1.0)
    n = len(simulation._y)
    simulation._place(0.02 * rng.normal(size=n), rng.normal(size=n) * 0.3)
    simulation.move_base(pose, rng.normal(size=3), rng.normal(size=3))
    return simulation


@pytest.mark.parametrize("kind", ["tree", "loop", "ball"])
def test_rows_and_responses_are_those_of_all_joints(kind):
    """Velocities of points, and their change by impulses, against Jacobian and inertia of the whole mechanism."""
    m = crab(damping=0.0, loop=kind == "loop", ball=kind == "ball")
    simulation = moving(m, 1e-7)  # springs do nothing in so short a time
    model = simulation.model
    whole, base, poses = model.base.mechanism, model.base, simulation.poses.copy()
    bodies, points = ["shin1", "thigh2", "body"], []
    for k, body in enumerate(bodies):
        points.append((poses[m.body_index(body)] @ (0.01 * k, -0.02, 0.015, 1))[:3])
    q, rates = simulation.q.copy(), simulation.velocity.copy()
    actor = simulation.actor()
    actor.place(0)
    blocks = blocks_at(points, [m.body_index(body) for body in bodies], actor.size)
    before, u = np.zeros((2, actor.size))
    actor.begin(3, blocks, before, u)
    J = np.concatenate([next(iter(rows(blocks, i))) for i in range(3)])
    links = kinematics.link_poses(whole, q)
    jacobian = np.zeros((9, whole.nv))
    for i, body in enumerate(bodies):
        link = int(whole.links.body_link[whole.body_index(body)])
        J6 = kinematics.link_jacobian(whole, links, link)
        arm = points[i] - links[link][:3, 3]
        jacobian[3 * i : 3 * i + 3] = J6[:3] - pliant.spatial.hat(arm) @ J6[3:]
    np.testing.assert_allclose(J @ before, jacobian @ rates, atol=1e-8)
    # all motions that the model knows: those of the joints along its tangent, and of the base
    n = len(simulation._y)
    motions = np.zeros((n + 6, whole.nv))
    motions[:n, base.own_dofs] = simulation._map.joint_map(simulation._y).T
    motions[n:, base.dofs] = np.eye(6)
    mass = Inertia(whole, q).times(motions) @ motions.T
    along = jacobian @ motions.T
    expected = along @ np.linalg.solve(mass, along.T)
    actor.strike(3, blocks, u)
    actor.respond(3, blocks)
    Y = np.concatenate([list(rows(blocks, i))[1] for i in range(3)])
    np.testing.assert_allclose(J @ Y.T, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("method", ["small", "full"])
@pytest.mark.parametrize(("h", "share"), [(1 / 60, 0.12), (1e-3, 1.2e-3)])
def test_momentum_is_kept_in_a_collision(method, h, share):
    """A ball strikes a leg of a floating robot: momentum of both, and what the ball loses turns the robot."""
    m = crab()
    world = World(h, gravity=(0, 0, 0))
    world.add(pliant.reduce(m), "robot", friction=0.5, restitution=0.3, method=method)
    speed = np.array([0.3, 0.9, -0.2])
    world.add_body(
        "ball", shapes.sphere(0.02), mass=0.05, position=(0.047, 0.0, -0.055), velocity=speed, friction=0.5
    )
    place = world["ball"].position
    world.step(round(0.3 / h))
    ball, momentum = world["ball"], world["robot"].base_momentum
    assert np.linalg.norm(ball.twist()[:3] - speed) > 0.2  # struck
    np.testing.assert_allclose(momentum[:3] + 0.05 * ball.twist()[:3], 0.05 * speed, atol=1e-12)
    centre = (world["robot"].pose("body") @ [*world["robot"].base_centre, 1])[:3]
    spin = ball.mechanism.inertia[0, 0, 0] * ball.twist()[3:]
    total = momentum[3:] + np.cross(centre, momentum[:3]) + spin
    total += np.cross(ball.position, 0.05 * ball.twist()[:3])
    # the lever of a contact changes while it lasts: to first order in the step
    start = np.cross(place, 0.05 * speed)
    np.testing.assert_allclose(total, start, atol=share * np.linalg.norm(start))


@pytest.mark.parametrize("h", [1 / 10, 1 / 60, 1e-3])
def test_a_floor_carries_the_weight_steadily(h):
    m = crab(damping=0.05)
    world = World(h)
    world.add(pliant.reduce(m), "robot")
    world.add_static("floor", shapes.plane(position=(0, 0, -0.075)))
    world.step(round(4 / h))
    forces = []
    for _ in range(30):
        world.step()
        forces.append(world.contacts.force("robot"))
    weight = m.mass.sum() * G
    np.testing.assert_allclose(np.array(forces)[:, 2], weight, rtol=1e-3)
    np.testing.assert_allclose(np.array(forces)[:, :2], 0, atol=1e-3 * weight)
    assert np.abs(world["robot"].base_velocity).max() < 1e-4


def test_it_lands_as_the_whole_mechanism_does():
    """Twists fast and falls tilted, feet first: where the body is in the next half second."""
    m, h = crab(damping=0.01), 1 / 1000
    model, ways = pliant.reduce(m, reach=0.3), []
    tilted = np.eye(4)
    tilted[:3, :3] = pliant.spatial.so3_exp(np.array([0.1, 0.15, 0.0]))
    for what in (model, m):
        world = World(h)
        world.add(what, "robot", friction=0.7)
        world.add_static("floor", shapes.plane(position=(0, 0, -0.1)), friction=0.7)
        simulation = world.simulation("robot")
        q = simulation.q.copy()
        q[m.joint_coordinates(m.joint_index("base"))] = np.concatenate(
            [(0, 0, 0.01), pliant.spatial.quat_from_matrix(tilted[:3, :3])]
        )
        simulation.q = q
        way = []
        for _ in range(250):
            world.step(2)
            way.append(world.pose("robot/body")[:3, 3])
        ways.append(np.array(way))
    travel = np.abs(ways[1] - ways[1][0]).max()
    assert travel > 0.03
    assert np.abs(ways[0] - ways[1]).max() < 0.03 * travel


@pytest.mark.parametrize("seed", range(12))
def test_contact_brings_no_energy(seed):
    """Dropped, spinning, onto a floor: the energy is never above what it was."""
    rng = np.random.default_rng(seed)
    h, damping = float(np.exp(rng.uniform(np.log(1e-3), np.log(1 / 30)))), (0.0, 0.02)[seed % 2]
    m = crab(seed, damping, loop=seed % 3 == 2, ball=seed % 3 == 1)
    world = World(h)
    world.add(pliant.reduce(m), "robot", friction=rng.uniform(0, 1))
    world.add_static("floor", shapes.plane(position=(0, 0, -0.09)), friction=0.5)
    world["robot"].move_base(velocity=0.3 * rng.normal(size=3), spin=2 * rng.normal(size=3))
    simulation = world.simulation("robot")
    floor = m.mass.sum() * G * 0.09  # all of it lies on the floor
    low, gain, most = simulation.energy.total, 0.0, simulation.energy.total + floor
    for _ in range(round(1.5 / h)):
        world.step()
        now = simulation.energy.total
        gain, low = max(gain, now - low), min(low, now)
    assert np.isfinite(low)
    assert gain < 0.02 * most
