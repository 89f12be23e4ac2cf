"""Floating bases on the manifold: momentum, energy, dense matrices, the whole mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from oracles.floating import dense_floating, floating_mechanism, placed
from pliant.mechanism import kinematics

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
