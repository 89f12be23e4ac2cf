"""Floating bases on the manifold: momentum, energy, dense matrices, the whole mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from oracles.floating import dense_floating, floating_mechanism, placed
from pliant.mechanism import kinematics
from pliant.statics.inertia import Inertia

MECHANISMS = {
    "tree": lambda: floating_mechanism(2, 4, 0, 0, 0),
    "other tree": lambda: floating_mechanism(11, 5, 0, 0, 0),
    "tied tree": lambda: floating_mechanism(3, 5, 0, 1, 2),
    "loop": lambda: floating_mechanism(5, 5, 1, 0, 0),
    "tied loops": lambda: floating_mechanism(9, 6, 2, 1, 1),
    "hexapod": pliant.gallery.hexapod,
}
WRENCHES = {"force": (2.0, 1.0, -3.0), "torque": (0.3, 0.2, 0.1), "point": (0.1, 0, 0.05)}


def model_of(name: str) -> pliant.ReducedModel:
    m = MECHANISMS[name]()
    return pliant.reduce(m, m.end_effectors[:2] if name == "hexapod" else [m.body_names[-1]], modes=1)


def some_motion(model: pliant.ReducedModel, turn, size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Natural coordinates that move joints by about `size`, rad or radii, and rates of a second for twice that."""
    unit = model.mechanism.dof_unit[:, None]
    amplitude = size / np.abs(model.basis @ turn / unit).max(axis=0)
    a, b = np.random.default_rng(seed).uniform(-1, 1, size=(2, len(amplitude)))
    return a * amplitude, 2 * b * amplitude


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanics_are_those_of_dense_matrices(name):
    """Accelerations with the base free, far away and turned, against Lagrange's equations of all coordinates."""
    model = model_of(name)
    base, natural = model.base, pliant.ReducedSimulation(model, 1e-3)._map
    assert base is not None
    m, turn = base.mechanism, natural.modes.vectors
    for seed, size in enumerate((0.05, 0.2)):
        z, v = some_motion(model, turn, size, seed)
        oracle = dense_floating(model, turn, placed(m, base, seed))
        spin = np.random.default_rng(seed + 50).normal(size=6) * 2.0
        y, rates = np.r_[np.zeros(6), z], np.r_[spin, v]
        q, joint_rates = oracle.joints(y), oracle.tangent(y) @ rates
        _, _, momentum = base.motion(q, joint_rates)
        home, link = model.at.pose(base.body), m.links.body_link[m.body_index(base.body)]
        displacement = kinematics.link_poses(m, q)[link] @ np.linalg.inv(home)
        force, drag, inertial, mass = natural.mechanics(z, v, displacement[:3, :3].T @ momentum)
        full = oracle.mass(y)
        expected = full[6:, 6:] - full[6:, :6] @ np.linalg.solve(full[:6, :6], full[:6, 6:])
        assert mass == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())
        expected = oracle.acceleration(y, rates)[6:]
        found = np.linalg.solve(mass, force + drag - inertial)
        assert found == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())


def undamped(m: pliant.Mechanism) -> pliant.Mechanism:
    return m.replace(damping=np.zeros(m.nv), tendon_damping=np.zeros(len(m.tendons)))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_step_is_that_of_the_equations_of_motion(name):
    """Wrenches on an end effector and on the base, against Runge and Kutta's step of the dense equations.

    The oracle has the same correction of the inertia for links that lag behind (see `condensation`).
    """
    model = model_of(name)
    base = model.base
    assert base is not None
    tip, wrenches = model.end_effectors[0], {model.end_effectors[0]: WRENCHES}
    wrenches[base.body] = {"force": (1, 2, 0.5), "frame": "body"}
    s = pliant.ReducedSimulation(model, 1.0, method="full")
    turn, fastest = s._map.modes.vectors, float(np.sqrt(s._map.modes.squares.max()))
    h, n = 1e-3 / fastest, s._map.count
    s = pliant.ReducedSimulation(model, h, gravity=(1.0, 2.0, -3.0))
    q0 = placed(base.mechanism, base, 4)
    oracle = dense_floating(model, turn, q0)
    z, v = some_motion(model, turn, 0.1, 3)
    lag = s._map.mass(np.zeros(n)) - s._map.mechanics(np.zeros(n), np.zeros(n))[3]
    spin = np.random.default_rng(7).normal(size=6)
    y, rates = np.r_[np.zeros(6), z], np.r_[spin, v]
    s.q = oracle.joints(y)
    s.velocity = oracle.tangent(y) @ rates
    np.testing.assert_allclose(np.linalg.solve(turn, s.rates), v, atol=1e-9 * np.abs(v).max())
    np.testing.assert_allclose(s.velocity, oracle.tangent(y) @ rates, atol=1e-9 * np.abs(s.velocity).max())
    heavy = np.zeros((6 + n, 6 + n))
    heavy[6:, 6:] = lag
    m = base.mechanism
    weights = {body: np.array([1.0, 2.0, -3.0]) for body in m.body_names}

    def acceleration(y, rates):
        change = oracle._differences(oracle.mass, y)
        bias = np.einsum("i,ijl,l->j", rates, change, rates)
        bias -= 0.5 * np.einsum("i,jil,l->j", rates, change, rates)
        force = oracle.forces(y, rates, wrenches)
        for b, body in enumerate(m.body_names):
            weight = {body: {"force": m.mass[b] * weights[body], "point": m.com[b]}}
            still = oracle.joint_forces(oracle.joints(y), np.zeros(m.nv), weight)
            still -= oracle.joint_forces(oracle.joints(y), np.zeros(m.nv))
            force = force + oracle.tangent(y).T @ still
        return np.linalg.solve(oracle.mass(y) + heavy, force - bias)

    for body, wrench in wrenches.items():
        s.apply_wrench(body, **wrench)
    s.step()
    # the correction for lag knows coordinates only: with the base free it is the same on them
    k1 = np.r_[rates, acceleration(y, rates)]
    k = len(y)

    def rate(state):
        return np.r_[state[k:], acceleration(state[:k], state[k:])]

    start = np.r_[y, rates]
    k2 = rate(start + h / 2 * k1)
    k3 = rate(start + h / 2 * k2)
    k4 = rate(start + h * k3)
    end = start + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    expected = end[k + 6 :] - v
    found = np.linalg.solve(turn, s.rates) - v
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
    poses, q = kinematics.link_poses(m, oracle.joints(end[:k])), oracle.joints(y)
    for body in (base.body, tip):
        link = m.links.body_link[m.body_index(body)]
        way = poses[link] - kinematics.link_poses(m, q)[link]
        gone = s.pose(body) - kinematics.link_poses(m, q)[link]
        np.testing.assert_allclose(gone, way, atol=2e-5 * np.abs(way).max())


@pytest.mark.parametrize(
    ("name", "spin"), [("hexapod", 0.0), ("hexapod", 5.0), ("loop", 5.0), ("tied tree", 3.0)]
)
def test_momentum_and_energy_stay(name, spin):
    """Undamped, for 60 s at 2 ms, vibrating and tumbling, momentum of the true motion of all joints included."""
    m = undamped(MECHANISMS[name]())
    model = pliant.reduce(m, m.end_effectors[:2] if name == "hexapod" else [m.body_names[-1]], modes=1)
    s = pliant.ReducedSimulation(model, 2e-3, gravity=(0, 0, 0))
    _, v = some_motion(model, s._map.modes.vectors, 0.2, 5)
    s.rates = s._map.modes.vectors @ v
    s.move_base(velocity=(1.0, 2.0, 3.0), spin=spin * np.array([0.6, 0.5, 0.62]))
    base = model.base
    assert base is not None
    centre, velocity, momentum = base.motion(s.q, s.velocity)
    energy, kept, size = s.energy.total, s.base_momentum, np.abs(momentum).max()
    for _ in range(6):
        s.step(5000)
        assert s.energy.total == pytest.approx(energy, rel=1e-3)
        assert np.array_equal(s.base_momentum, kept)
        now = base.motion(s.q, s.velocity)
        np.testing.assert_allclose(now[0], centre + s.time * velocity, atol=1e-9)
        np.testing.assert_allclose(now[1], velocity, atol=1e-10)
        np.testing.assert_allclose(now[2], momentum, atol=1e-10 * max(size, 1.0))


def test_free_fall_is_a_parabola_and_nothing_is_lost_far_away():
    """Joints move as near the origin, a thousand kilometres away."""
    model = model_of("loop")
    near, far = (pliant.ReducedSimulation(model, 1e-3) for _ in range(2))
    base = model.base
    assert base is not None
    away = far.pose(base.body)
    away[:3, 3] += (6e5, -8e5, 1e5)
    far.move_base(away)
    for s in (near, far):
        s.move_base(velocity=(1.0, 0.0, 2.0), spin=(1.0, 2.0, 3.0))
    start = near.pose(base.body)[:3, :3] @ near.base_centre + near.pose(base.body)[:3, 3]
    for s in (near, far):
        s.step(500)
    pose = near.pose(base.body)
    expected = start + 0.5 * np.array([1.0, 0.0, 2.0]) + [0, 0, -0.5 * 9.81 * 0.25]
    np.testing.assert_allclose(pose[:3, :3] @ near.base_centre + pose[:3, 3], expected, atol=1e-12)
    np.testing.assert_allclose(far.coordinates, near.coordinates, atol=1e-12 * np.abs(near.coordinates).max())


def test_legs_that_swing_turn_the_body_as_in_the_whole_mechanism():
    """A hexapod by motors at all joints, against the constrained engine at 0.1 ms, within 1 %."""
    m = pliant.gallery.hexapod()
    paths = []
    for s in (pliant.ConstrainedSimulation(m, 1e-4), pliant.ReducedSimulation(pliant.reduce(m), 1e-3)):
        path = []
        for frame in range(30):
            wave = np.sin(0.2 * frame + np.array([0, 1.5, 3.0] * 6))
            s.set_motor("*_*", torque=0.2 * m.stiffness[6:] * wave)
            s.step(round(0.01 / s.timestep))
            path.append(s.pose("body") - m.reference_poses[0])
        paths.append(np.array(path))
    truth, found = paths
    truth[:, 2, 3] += 0.5 * 9.81 * (0.01 * np.arange(1, 31)) ** 2
    found[:, 2, 3] += 0.5 * 9.81 * (0.01 * np.arange(1, 31)) ** 2
    assert np.abs(truth[:, :3, :3]).max() > 0.02
    assert np.abs(found - truth)[:, :3, :3].max() < 0.01 * np.abs(truth[:, :3, :3]).max()
    assert np.abs(found - truth)[:, :3, 3].max() < 0.01 * np.abs(truth[:, :3, 3]).max()


def free_hand() -> pliant.Mechanism:
    """A palm that floats, with four fingers of three hinges."""
    b = pliant.Builder("free hand")
    b.body("palm", mass=0.4, inertia=np.diag([4e-4, 3e-4, 6e-4]))
    b.free("base", "world", "palm")
    for f in range(4):
        before = "palm"
        for k in range(3):
            name, at = f"finger{f}_{k}", np.array([0.1 + 0.03 * k, 0.025 * (f - 1.5), 0.0])
            b.body(name, mass=0.03, position=at, com=(0.015, 0, 0), inertia=np.diag([1e-6, 4e-6, 4e-6]))
            b.hinge(
                name + "_joint",
                before,
                name,
                anchor=at,
                axis=(0, np.cos(0.2 * f), np.sin(0.2 * f)),
                stiffness=0.5 + 0.1 * k,
            )
            before = name
    b.end_effectors(*(f"finger{f}_2" for f in range(4)))
    return b.build()


@pytest.mark.parametrize("name", ["hexapod", "hand"])
def test_levels_of_detail_carry_motion_over_by_the_kinetic_metric(name):
    """From a fine model to a coarse one and back: momentum stays, and no state of the coarse one is nearer."""
    m = pliant.gallery.hexapod() if name == "hexapod" else free_hand()
    coarse, fine = pliant.reduce(m, m.end_effectors[:1]), pliant.reduce(m)
    s = pliant.ReducedSimulation(fine, 1e-3, gravity=(0, 0, 0))
    s.move_base(velocity=(0.1, 0.2, 0.3), spin=(1.0, -2.0, 3.0))
    for tip in m.end_effectors[:3]:
        s.apply_wrench(tip, (0.5, 0.2, -0.4))
    s.step(50)
    s.clear_wrenches()
    q, rates, kept = s.q, s.velocity, s.base_momentum
    base = fine.base
    assert base is not None
    centre = base.motion(q, rates)[0]
    s.switch(coarse)
    np.testing.assert_allclose(s.base_momentum, kept, rtol=1e-12, atol=1e-13)
    found = base.motion(s.q, s.velocity)
    np.testing.assert_allclose(found[0], centre, atol=1e-12)
    total = float(m.mass[base.carried].sum())
    np.testing.assert_allclose(np.r_[total * found[1], found[2]], kept, rtol=1e-9, atol=1e-11)
    # what is left of the velocity has no momentum along the motions of the coarse model, its base free to move
    inertia, own = Inertia(base.mechanism, s.q).dense(), np.zeros((m.nv, s._map.count))
    own[base.own_dofs] = s._map.joint_map(s._y)
    free = np.eye(m.nv)[:, base.dofs]
    own -= free @ np.linalg.solve(free.T @ inertia @ free, free.T @ inertia @ own)
    left, whole = own.T @ inertia @ (rates - s.velocity), own.T @ inertia @ rates
    assert np.abs(left).max() < 1e-8 * np.abs(whole).max()
    s.switch(fine)
    np.testing.assert_allclose(s.base_momentum, kept, rtol=1e-12, atol=1e-13)
