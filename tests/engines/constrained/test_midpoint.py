"""The midpoint step of `ConstrainedSimulation` against independent dynamics."""

from typing import Any

import mujoco
import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import pliant
from oracles import dense, motion, newton
from oracles.pinocchio_model import PinocchioOracle
from oracles.random_mechanisms import random_mechanism, random_q, unit
from pliant import spatial
from pliant.mechanism.joints import BALL

SEEDS = st.integers(0, 10_000)
G = 9.81
NONE = (0.0, 0.0, 0.0)
X, Y, Z = np.eye(3)


def simulate(m, h, seconds=None, *, steps=None, velocity=None, **options):
    s = pliant.ConstrainedSimulation(m, h, **options)
    if velocity is not None:
        s.velocity = velocity
    s.step(round(seconds / h) if steps is None else steps)
    return s


def acceleration(m, q, v, h, wrenches=None, **options):
    """Change of velocity over a short step, extrapolated from two: error O(h^2)."""
    out = []
    for x in (h, h / 2):
        s = pliant.ConstrainedSimulation(m, x, start=q, **options)
        s.velocity = v
        for body, wrench in (wrenches or {}).items():
            s.apply_wrench(body, **wrench)
        s.step()
        out.append((s.velocity - v) / x)
    return 2 * out[1] - out[0]


def order(errors):
    """From errors at h, h/2, h/4 ..."""
    return np.log2(np.asarray(errors[:-1]) / np.asarray(errors[1:]))


# --- accelerations of random mechanisms


def turned_less(m, q, angle=2.8):
    """Whether all balls are so near to rest that differences of their springs' energy are smooth."""
    at = 0
    for kind in m.primitive_kind.tolist():
        if kind == BALL:
            turn = dense.quaternion_matrix(m.rest[at : at + 4]).T @ dense.quaternion_matrix(q[at : at + 4])
            if np.linalg.norm(dense.rotation_vector(turn)) > angle:
                return False
        at += 4 if kind == BALL else 1
    return True


def pinocchio_accelerations(m, q, v):
    oracle = PinocchioOracle(m)
    oracle.model.gravity.linear[:] = (0, 0, -G)
    motion_ = np.zeros(m.nv)
    motion_[oracle.v_map] = v
    bias = pin.rnea(oracle.model, oracle.data, oracle._q(q), motion_, np.zeros(m.nv))[oracle.v_map]
    springs = dense.gradient(lambda p: dense.spring_energy(m, p, m.rest, m.tendon_rest), m, q, 1e-4)
    return np.linalg.solve(oracle.mass_matrix(q), -springs - m.damping * v - bias)


@settings(max_examples=25)
@given(SEEDS)
def test_trees_accelerate_as_in_pinocchio(seed):
    m = random_mechanism(seed, bodies=5, reference=True)
    q = random_q(m, seed, 0.5)
    assume(m.nv and turned_less(m, q))
    v = np.random.default_rng(seed).normal(size=m.nv)
    expected = pinocchio_accelerations(m, q, v)
    found = acceleration(m, q, v, 1e-5, tolerance=1e-12)
    assert np.abs(found - expected).max() < 2e-5 * np.abs(expected).max()


@settings(max_examples=10)
@given(SEEDS)
def test_the_default_tolerance_is_enough_for_trees(seed):
    m = random_mechanism(seed, bodies=8, reference=True)
    q = random_q(m, seed, 0.5)
    assume(m.nv and turned_less(m, q))
    v = 3 * np.random.default_rng(seed).normal(size=m.nv)
    expected = pinocchio_accelerations(m, q, v)
    assert np.abs(acceleration(m, q, v, 2e-5) - expected).max() < 1e-4 * np.abs(expected).max()


@settings(max_examples=8)
@given(SEEDS, st.integers(1, 2))
def test_loops_accelerate_by_newton(seed, loops):
    m = random_mechanism(seed, bodies=4, loops=loops, reference=True)
    q = m.reference.copy()
    assume(m.nv and turned_less(m, q))
    v = newton.free_velocity(m, q, seed)
    expected = newton.accelerations(m, q, v)
    found = acceleration(m, q, v, 1e-4, tolerance=1e-12)
    assert np.abs(found - expected).max() < 1e-4 * max(np.abs(expected).max(), 10.0)


def coupled_arm(seed, **tendon):
    """Hinges and slides in any direction; the first and third coupled, a tendon over all."""
    rng = np.random.default_rng(seed)
    b = pliant.Builder()
    parent = "world"
    for i in range(4):
        root = rng.normal(size=(3, 3))
        second = root @ root.T
        b.body(
            f"b{i}",
            mass=rng.uniform(0.5, 2),
            com=0.1 * rng.normal(size=3),
            inertia=0.02 * (np.trace(second) * np.eye(3) - second),
            position=rng.normal(size=3),
        )
        springs = {"stiffness": 5.0, "damping": 0.1, "armature": 0.01, "reference": 0.3 * rng.normal()}
        if i == 1:
            b.slide(f"j{i}", parent, f"b{i}", axis=unit(rng, 3), **springs)
        else:
            b.hinge(f"j{i}", parent, f"b{i}", anchor=rng.normal(size=3), axis=unit(rng, 3), **springs)
        parent = f"b{i}"
    b.couple({"j0": 1.0, "j2": -2.5})
    b.couple({"j1": 1.0, "j2": 0.3, "j3": 0.7})
    b.tendon("cord", {"j0": 0.5, "j1": 2.0, "j3": -1.0}, **tendon)
    return b.build()


@pytest.mark.parametrize("seed", range(4))
def test_couplings_and_tendons_accelerate_by_newton(seed):
    m = coupled_arm(seed, stiffness=30.0, damping=0.5, rest=0.4)
    q = m.reference.copy()
    v = newton.free_velocity(m, q, seed)
    expected = newton.accelerations(m, q, v)
    found = acceleration(m, q, v, 2e-5, tolerance=1e-12)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


# --- wrenches


def free_body(**more):
    b = pliant.Builder("body")
    b.body("body", mass=2.0, inertia=(0.1, 0.2, 0.25), com=(0.1, -0.2, 0.3), position=(1, 2, 3), **more)
    b.free("free", "world", "body")
    return b.build()


@pytest.mark.parametrize("frame", ["world", "body"])
@pytest.mark.parametrize("point", [None, (0.3, 0.1, -0.5)])
def test_a_wrench_on_a_free_body_is_newton_and_euler(frame, point):
    m = free_body(orientation=spatial.so3_exp((0.4, -0.8, 0.3)))
    force, torque = np.array([3.0, -1.0, 2.0]), np.array([0.5, 1.5, -0.7])
    h = 1e-6
    s = pliant.ConstrainedSimulation(m, h, gravity=(0.3, 0, -G))
    turn = s.pose("body")[:3, :3]
    spin = np.array([0.7, -0.4, 1.1])  # world
    s.velocity = np.concatenate([NONE, spin])  # the joint's axes are the world's at the reference
    np.testing.assert_allclose(s.twist("body"), [0, 0, 0, *spin], atol=1e-14)
    s.apply_wrench("body", force, torque, point=point, frame=frame)
    before = s.twist("body")
    s.step()
    change = (s.twist("body") - before) / h
    if frame == "body":
        force, torque = turn @ force, turn @ torque
    inertia, com = turn @ m.inertia[0] @ turn.T, turn @ m.com[0]
    arm = turn @ np.array(NONE if point is None else point) - com
    angular = np.linalg.solve(inertia, torque + np.cross(arm, force) - np.cross(spin, inertia @ spin))
    # the origin is at -com from the centre of mass
    linear = force / 2.0 + (0.3, 0, -G) - np.cross(angular, com) - np.cross(spin, np.cross(spin, com))
    np.testing.assert_allclose(change, [*linear, *angular], rtol=1e-5, atol=1e-5)


def test_a_wrench_on_a_chain_is_newton():
    m = motion.chain("ball", 3.0)
    rng = np.random.default_rng(0)
    q, v = random_q(m, 0, 0.3), 0.5 * rng.normal(size=m.nv)
    force = np.array([50.0, -20.0, 10.0])
    expected = newton.accelerations(m, q, v, forces={"link6": force})
    found = acceleration(m, q, v, 2e-5, {"link6": {"force": force}}, tolerance=1e-12)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_a_helix_settles_where_statics_says():
    m = pliant.gallery.helix(30)
    load: dict[str, Any] = {"force": (5.0, 2.0, -12.0), "point": (0.01, 0.0, 0.02)}
    s = pliant.ConstrainedSimulation(m, 1 / 60, gravity=NONE)
    s.apply_wrench("link30", **load)
    found = s.settle()
    expected = pliant.equilibrium(m, {"link30": load})
    assert found.stability == "stable"
    assert np.abs(found.poses - expected.poses).max() < 1e-8
    # at rest there, it stays
    before = s.poses.copy()
    s.step(60)
    assert np.abs(s.poses - before).max() < 1e-6


def test_dampers_bring_a_helix_to_the_same_equilibrium():
    m = pliant.gallery.helix(12)
    m = m.replace(damping=0.3 * m.stiffness)
    s = pliant.ConstrainedSimulation(m, 1 / 60, gravity=NONE)
    s.apply_wrench("link12", (0.0, 0.0, -100.0))
    s.step(60 * 60)
    expected = pliant.equilibrium(m, {"link12": (0, 0, -100)})
    assert s.energy.kinetic < 1e-9
    assert np.abs(s.poses - expected.poses).max() < 1e-5


# --- convergence


def pendulum(mass=1.0, length=1.0, inertia=1e-3, **joint):
    b = pliant.Builder("pendulum")
    b.body("bob", mass=mass, inertia=(inertia,) * 3, position=(0, 0, -length))
    b.hinge("pivot", "world", "bob", anchor=NONE, axis=Y, **joint)
    return b.build()


@pytest.mark.parametrize("angle", [0.5, 2.0, 3.0])
def test_a_pendulum_has_its_period(angle):
    m = pendulum()
    omega = np.sqrt(G / 1.001)
    period = 4 * ellipk(np.sin(angle / 2) ** 2) / omega
    errors = []
    for n in (200, 400, 800):
        s = simulate(m, period / n, steps=n, start={"pivot": angle}, tolerance=1e-10)
        # back at the start at rest; late or early by this much
        late = -s.velocity[0] / (G / 1.001 * np.sin(angle))
        errors.append(abs(late) / period)
        assert abs(s.energy.total - G * -np.cos(angle)) < 1e-5 * G
    assert errors[-1] < 1e-3
    np.testing.assert_allclose(order(errors), 2.0, atol=0.1)


def rod_chain(n, kind, stiffness=0.0, damping=0.0):
    """Rods of 0.3 m that start bent; joints at the bends."""
    b = pliant.Builder(kind)
    parent, at = "world", np.zeros(3)
    for i in range(n):
        along = np.array([np.cos(0.7 * i), 0.3 * np.sin(i), -np.sin(0.7 * i) - 0.2])
        along *= 0.3 / np.linalg.norm(along)
        b.body(f"b{i}", mass=1.0 + i, inertia=(0.01, 0.012, 0.008), position=at + along / 2)
        spring = {"stiffness": stiffness, "damping": damping}
        if kind == "ball":
            b.ball(f"j{i}", parent, f"b{i}", anchor=at, **spring)
        elif kind == "hinge":
            b.hinge(f"j{i}", parent, f"b{i}", anchor=at, axis=Y if i % 2 else (0.8, 0.6, 0), **spring)
        elif kind == "universal":
            b.universal(f"j{i}", parent, f"b{i}", anchor=at, axes=(X, Y), **spring)
        elif i % 2:
            b.slide(f"j{i}", parent, f"b{i}", axis=(0.48, 0.6, 0.64), **spring)
        else:
            b.hinge(f"j{i}", parent, f"b{i}", anchor=at, axis=(0.28, 0.96, 0), **spring)
        parent, at = f"b{i}", at + along
    return b.build()


def mujoco_poses(m, velocity, seconds, h):
    """Poses by MuJoCo's RK4."""
    model = mujoco.MjModel.from_xml_string(m.to_mjcf())
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, h
    model.opt.gravity[:] = (0, 0, -G)
    data = mujoco.MjData(model)
    for joint, name in enumerate(m.joint_names):
        dofs = m.joint_dofs(joint)
        if m.joint_types[joint] == "universal":
            for d in range(dofs.start, dofs.stop):
                data.qvel[model.joint(m.dof_names[d]).dofadr[0]] = velocity[d]
        else:
            at = model.joint(name).dofadr[0]
            data.qvel[at : at + dofs.stop - dofs.start] = velocity[dofs]
    for _ in range(round(seconds / h)):
        mujoco.mj_step(model, data)
    mujoco.mj_kinematics(model, data)
    poses = np.tile(np.eye(4), (m.body_count, 1, 1))
    for b, name in enumerate(m.body_names):
        poses[b, :3, :3] = data.body(name).xmat.reshape(3, 3)
        poses[b, :3, 3] = data.body(name).xpos
    return poses


@pytest.mark.parametrize(
    ("kind", "n", "stiffness", "damping"),
    [
        ("hinge", 2, 0.0, 0.0),
        ("hinge", 5, 20.0, 0.5),
        ("ball", 4, 30.0, 0.0),
        ("ball", 5, 10.0, 0.3),
        ("universal", 4, 0.0, 0.2),
        ("slides", 4, 40.0, 0.4),
    ],
)
def test_second_order_to_mujoco(kind, n, stiffness, damping):
    m = rod_chain(n, kind, stiffness, damping)
    v = np.random.default_rng(n).normal(size=m.nv)
    exact = mujoco_poses(m, v, 0.4, 2e-4)
    errors = [
        np.abs(simulate(m, h, 0.4, velocity=v, tolerance=1e-10).poses - exact).max()
        for h in (0.004, 0.002, 0.001, 0.0005)
    ]
    assert errors[-1] < 1e-4
    np.testing.assert_allclose(order(errors)[1:], 2.0, atol=0.15)
    usual = np.abs(simulate(m, 0.004, 0.4, velocity=v).poses - exact).max()
    assert usual < 1.5 * errors[0] + 1e-4  # the default tolerance costs next to nothing


def four_bar(spring=0.0, damping=0.0):
    """Crank, coupler and rocker in the plane of x and z, hinged about y; ground 1 m long."""
    b = pliant.Builder("four-bar")
    a, c, d = np.zeros(3), np.array([0.1, 0, 0.4]), np.array([1.0, 0, 0])
    e = np.array([0.9, 0.0, 0.7])
    for name, p, q, mass in (("crank", a, c, 1.0), ("coupler", c, e, 2.0), ("rocker", d, e, 1.5)):
        b.body(name, mass=mass, inertia=(0.02, 0.05, 0.03), position=(p + q) / 2)
    b.hinge("ground1", "world", "crank", anchor=a, axis=Y, stiffness=spring, damping=damping)
    b.hinge("pin1", "crank", "coupler", anchor=c, axis=Y)
    b.hinge("ground2", "world", "rocker", anchor=d, axis=Y)
    b.hinge("pin2", "coupler", "rocker", anchor=e, axis=Y)
    return b.build()


def four_bar_motion(angle_rate, seconds, spring=0.0, damping=0.0):
    """Angle of the crank after so long, from energy in the one angle: m(a) a'' + m'(a) a'^2 / 2 + V'(a) = Q."""
    crank, ground = np.hypot(0.1, 0.4), 1.0
    coupler, rocker = np.hypot(0.8, 0.3), np.hypot(0.1, 0.7)
    start = np.arctan2(0.4, 0.1)

    def angles(a):
        c = crank * np.array([np.cos(a), np.sin(a)])
        to = np.array([ground, 0.0]) - c
        r = np.linalg.norm(to)
        inner = np.arccos((coupler**2 + r**2 - rocker**2) / (2 * coupler * r))
        b = np.arctan2(to[1], to[0]) + inner
        e = c + coupler * np.array([np.cos(b), np.sin(b)])
        return b, np.arctan2(e[1], e[0] - ground)

    def places(a):
        b, g = angles(a)
        c = crank * np.array([np.cos(a), np.sin(a)])
        return np.array(
            [
                [*(c / 2), a],
                [*(c + coupler / 2 * np.array([np.cos(b), np.sin(b)])), b],
                [ground + rocker / 2 * np.cos(g), rocker / 2 * np.sin(g), g],
            ]
        )

    masses = np.array([[1.0, 1.0, 0.05], [2.0, 2.0, 0.05], [1.5, 1.5, 0.05]])

    def inertia(a, t=1e-4):
        rate = (8 * (places(a + t) - places(a - t)) - places(a + 2 * t) + places(a - 2 * t)) / (12 * t)
        return (masses * rate**2).sum()

    def potential(a):
        return G * (masses[:, 0] * places(a)[:, 1]).sum() + spring / 2 * (a - start) ** 2

    def slope(f, a, t=1e-3):
        return (8 * (f(a + t) - f(a - t)) - f(a + 2 * t) + f(a - 2 * t)) / (12 * t)

    def rate(_, y):
        a, w = y
        return [w, (-slope(inertia, a) * w * w / 2 - slope(potential, a) - damping * w) / inertia(a)]

    assert abs(angles(start)[0] - np.arctan2(0.3, 0.8)) < 1e-12
    found = solve_ivp(rate, (0, seconds), [start, angle_rate], rtol=1e-9, atol=1e-10, method="DOP853")
    return found.y[0, -1] - start, found.y[1, -1]


@pytest.mark.parametrize(
    ("spring", "damping", "kick"), [(0.0, 0.0, 0.0), (30.0, 0.0, 1.5), (20.0, 2.0, -1.0)]
)
def test_a_four_bar_moves_as_its_one_angle(spring, damping, kick):
    m = four_bar(spring, damping)
    v = newton.free_velocity(m, m.reference, 0)
    v *= -kick / v[0]  # a hinge about y turns x towards -z
    angle, speed = four_bar_motion(kick, 0.3, spring, damping)
    errors = []
    for h in (0.006, 0.003, 0.0015):
        s = simulate(m, h, 0.3, velocity=v, tolerance=1e-10)
        assert s.violation < 1e-7
        errors.append(abs(-s.q[0] - angle))
    np.testing.assert_allclose(-s.velocity[0], speed, rtol=1e-3, atol=1e-4)
    assert errors[-1] < 1e-4
    np.testing.assert_allclose(order(errors), 2.0, atol=0.2)


# --- forces through joints


@pytest.mark.parametrize("kind", ["ball", "hinge", "universal", "bushing"])
def test_joints_of_a_hanging_chain_carry_what_is_below(kind):
    m = motion.chain(kind, 50.0, angle=0.0)
    s = simulate(m, 1 / 60, steps=200)
    below = G * (50.0 + np.arange(10, 0, -1))
    forces = s.joint_forces
    expected = np.zeros((11, 6))
    expected[:10, 2], expected[10, 2] = -below, G * 50.0  # a rod's z points down, the sphere's up
    np.testing.assert_allclose(forces, expected, atol=1e-6 * below[0])


def test_a_hinge_of_a_level_beam_carries_its_moment():
    """A stiff hinge, a beam of three bodies: force and moment at each child's origin."""
    b = pliant.Builder("beam")
    for i in range(3):
        b.body(f"b{i}", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0.5 + i, 0, 0))
    b.hinge("wall", "world", "b0", anchor=NONE, axis=Y, stiffness=1e9, damping=1e6)
    b.fixed("one", "b0", "b1")
    b.fixed("two", "b1", "b2")
    forces = simulate(b.build(), 0.01, steps=400).joint_forces
    # at b0's origin from the right: 4 kg with its centre 1.5 m away, and b0 itself none; about y a weight at +x is +
    for i, (mass, arm) in enumerate([(6.0, 1.0), (4.0, 0.5), (2.0, 0.0)]):
        np.testing.assert_allclose(forces[i], [0, 0, mass * G, 0, -mass * G * arm, 0], rtol=1e-6, atol=1e-5)


def test_a_spinning_pendulum_pulls_outwards():
    m = pendulum(mass=3.0, length=0.5)
    s = simulate(m, 1e-3, steps=10, velocity={"pivot": 7.0}, gravity=NONE)
    np.testing.assert_allclose(s.velocity, 7.0, rtol=1e-9)
    np.testing.assert_allclose(s.joint_forces[0], [0, 0, 3.0 * 0.5 * 49.0, 0, 0, 0], rtol=1e-4, atol=1e-3)


def test_a_conical_pendulum_pulls_along_itself():
    b = pliant.Builder("cone")
    tilt, length = 0.6, 1.2
    b.body("bob", mass=2.0, inertia=(1e-9,) * 3, position=(length * np.sin(tilt), 0, -length * np.cos(tilt)))
    b.ball("pivot", "world", "bob", anchor=NONE)
    rate = np.sqrt(G / (length * np.cos(tilt)))
    s = simulate(b.build(), 1e-3, 1.0, velocity=[0, 0, rate])
    force = s.pose("bob")[:3, :3] @ s.joint_forces[0, :3]
    np.testing.assert_allclose(np.linalg.norm(force), 2.0 * G / np.cos(tilt), rtol=1e-4)
    np.testing.assert_allclose(-s.pose("bob")[2, 3], length * np.cos(tilt), rtol=1e-5)


def determinate_loop():
    """Two rods on ball joints, joined by a ball at the top, on a spring each: forces of the loop are unique."""
    b = pliant.Builder("truss")
    a, c, top = np.array([-1.0, 0, 0]), np.array([1.0, 0.2, 0]), np.array([0.2, 0.1, 0.8])
    for name, foot in (("left", a), ("right", c)):
        b.body(name, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(foot + top) / 2)
    b.ball("foot1", "world", "left", anchor=a, stiffness=40.0, damping=10.0)
    b.ball("foot2", "world", "right", anchor=c, stiffness=30.0, damping=10.0)
    b.ball("top", "left", "right", anchor=top, stiffness=3.0, damping=2.0)
    return b.build()


@pytest.mark.parametrize("make", [determinate_loop, lambda: four_bar(200.0, 40.0)])
def test_loops_at_rest_carry_what_statics_says(make):
    m = make()
    s = pliant.ConstrainedSimulation(m, 1 / 60)
    s.apply_wrench(m.body_names[-1], force=(3.0, 0.0, -15.0))
    s.step(60 * 30)
    expected = pliant.equilibrium(m, {m.body_names[-1]: (3.0, 0.0, -15.0)}, gravity=(0, 0, -G), start=s.q)
    assert s.energy.kinetic < 1e-12
    assert np.abs(s.poses - expected.poses).max() < 1e-6
    found, wanted = s.joint_forces, expected.joint_forces
    if m.name == "four-bar":  # a plane loop in space: forces across the plane are not unique
        found, wanted = found[:, [0, 2, 4]], wanted[:, [0, 2, 4]]
    np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())  # pyright: ignore[reportArgumentType, reportCallIssue]


# --- dampers and springs


def rotor(inertia=0.2, **joint):
    b = pliant.Builder("rotor")
    b.body("rotor", mass=1.0, inertia=(1.0, 1.0, inertia))
    b.hinge("axle", "world", "rotor", anchor=NONE, axis=Z, **joint)
    return b.build()


@pytest.mark.parametrize("h", [1e-4, 0.01, 1 / 60, 1.0])
@pytest.mark.parametrize("damping", [0.02, 1.0, 200.0, 2000.0])
def test_a_damped_rotor_decays_exactly(h, damping):
    s = pliant.ConstrainedSimulation(rotor(damping=damping), h)
    s.velocity = [3.0]
    for n in range(1, 6):
        s.step()
        expected = 3.0 * np.exp(-damping * n * h / 0.2)
        assert abs(s.velocity[0] - expected) < 1e-9 * 3.0 + 1e-9 * expected
    # the way it goes is right to half a step
    travelled = 3.0 * 0.2 / damping * (1 - np.exp(-damping * 5 * h / 0.2))
    z = h * damping / 0.2
    assert abs(s.q[0] - travelled) < min(0.5 * h * 3.0, 0.2 * z * z * travelled + 1e-12)


def test_a_damped_rotor_decays_exactly_however_stiff():
    s = pliant.ConstrainedSimulation(rotor(damping=1e4 * 0.2 / 0.01), 0.01)
    s.velocity = [5.0]
    s.step(3)
    assert abs(s.velocity[0]) < 1e-9


@pytest.mark.parametrize("damping", [0.5, 50.0, 1e6])
@pytest.mark.parametrize("h", [0.001, 1 / 60, 0.1])
def test_terminal_velocity(damping, h):
    s = pliant.ConstrainedSimulation(rotor(damping=damping), h)
    s.apply_wrench("rotor", torque=(0, 0, 4.0))
    s.step(max(50, round(40 * 0.2 / damping / h)))
    np.testing.assert_allclose(s.velocity, 4.0 / damping, rtol=1e-9)


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
def test_a_very_stiff_spring_neither_rings_nor_drifts(h):
    s = pliant.ConstrainedSimulation(pendulum(mass=5.0, stiffness=1e12), h, start={"pivot": 0.3})
    s.step(10)
    assert abs(s.q[0]) < 1e-6  # it was let go at 0.3
    assert abs(s.velocity[0]) * h < 1e-6
    s.step(1000)
    assert abs(s.q[0]) < 1e-11
    assert abs(s.velocity[0]) * h < 1e-6


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
def test_a_very_stiff_spring_gives_way_by_its_compliance(h):
    b = pliant.Builder("hook")
    b.body("bob", mass=5.0, inertia=(0.1, 0.1, 0.1))
    b.slide("hook", "world", "bob", axis=Z, stiffness=1e12, rest=0.0)
    s = simulate(b.build(), h, steps=300)
    np.testing.assert_allclose(s.q, -5.0 * G / 1e12, rtol=1e-3)


def test_a_soft_spring_swings_with_its_frequency_and_amplitude():
    k, inertia = 8.0, 0.2
    s = pliant.ConstrainedSimulation(rotor(stiffness=k), 1e-3, start={"axle": 0.1})
    s.step(round(10 * 2 * np.pi / np.sqrt(k / inertia) / 1e-3))
    t = s.time
    np.testing.assert_allclose(s.q[0], 0.1 * np.cos(np.sqrt(k / inertia) * t), atol=1e-4)
    np.testing.assert_allclose(s.energy.total, 0.5 * k * 0.01, rtol=1e-4)


def test_a_spring_that_the_step_resolves_is_not_damped():
    """Ten steps a period: one percent of energy in a hundred periods."""
    k, inertia = 8.0, 0.2
    h = 2 * np.pi / np.sqrt(k / inertia) / 100
    s = pliant.ConstrainedSimulation(rotor(stiffness=k), h, start={"axle": 0.5})
    s.step(100 * 20)
    np.testing.assert_allclose(s.energy.total, 0.5 * k * 0.25, rtol=0.02)


# --- limits and motors


@pytest.mark.parametrize("h", [1e-3, 0.01, 1 / 60, 0.1])
def test_a_hinge_falls_into_its_limit_and_rests_there(h):
    s = pliant.ConstrainedSimulation(pendulum(limits=(-0.5, 2.0)), h, start={"pivot": 1.5})
    start, speed = s.energy.total, 0.0
    for _ in range(round(20 / h)):
        s.step()
        speed = max(speed, abs(s.velocity[0]))
        assert -0.5 - 0.01 - h * speed < s.q[0] < 2.0
        assert s.energy.total < start + 5e-3 * G
    # it swings back and forth over the bottom until nothing hits the stop hard
    assert s.q[0] < 0.6


@pytest.mark.parametrize("h", [1e-3, 2e-3])
def test_a_limit_does_not_chatter(h):
    b = pliant.Builder("stop")
    b.body("bob", mass=4.0, inertia=(0.1, 0.1, 0.1))
    b.slide("joint", "world", "bob", axis=Z, limits=(-0.4, 0.4))
    s = simulate(b.build(), h, 2.0)
    for _ in range(6):
        s.step()
        assert abs(s.velocity[0]) < 1e-6
        np.testing.assert_allclose(s.joint_forces[0, 2], 4.0 * G, rtol=1e-6)


@pytest.mark.parametrize("h", [1e-3, 0.01, 1 / 60, 0.1])
@pytest.mark.parametrize("kind", ["hinge", "slide", "ball"])
def test_a_limit_holds_a_load(kind, h):
    b = pliant.Builder("stop")
    b.body("bob", mass=4.0, inertia=(0.1, 0.1, 0.1), position=(1.0, 0, 0))
    if kind == "slide":
        b.slide("joint", "world", "bob", axis=Z, limits=(-0.4, 0.4))
        bound, load = 0.4, 4.0 * G
    elif kind == "hinge":
        b.hinge("joint", "world", "bob", anchor=NONE, axis=Y, limits=(-0.4, 0.4))
        bound, load = 0.4, 4.0 * G
    else:
        b.ball("joint", "world", "bob", anchor=NONE, limits=(0, 0.4))
        bound, load = 0.4, 4.0 * G
    m = b.build()
    s = pliant.ConstrainedSimulation(m, h, tolerance=1e-6)
    start, speed = s.energy.total, 0.0

    def value():
        if kind == "ball":
            return np.linalg.norm(dense.rotation_vector(s.pose("bob")[:3, :3]))
        return abs(s.q[0])

    for _ in range(round(10 / h)):
        s.step()
        speed = max(speed, np.abs(s.velocity).max())
        assert value() < bound + 0.01 + h * speed
        assert s.energy.total < start + 1e-3 * load
    assert np.abs(s.velocity).max() < 1e-3
    assert abs(value() - bound) < 0.01
    if kind == "slide":
        np.testing.assert_allclose(s.joint_forces[0, :3], [0, 0, load], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
def test_a_fast_hit_is_no_source_of_energy(h):
    s = pliant.ConstrainedSimulation(rotor(limits=(-1.0, 1.0)), h, gravity=NONE)
    s.velocity = [30.0]
    start = s.energy.total
    for _ in range(round(3 / h)):
        s.step()
        assert s.energy.total < start * (1 + 1e-6)
        assert abs(s.q[0]) < 1.01 + 30 * h
    assert abs(s.q[0]) < 1.01


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
def test_a_joint_beyond_its_limit_is_not_thrown_and_not_let_further_out(h):
    s = pliant.ConstrainedSimulation(rotor(limits=(0.5, 3.0)), h, gravity=NONE)
    s.step(20)
    assert abs(s.q[0]) < 1e-12
    assert abs(s.velocity[0]) < 1e-12
    s.set_motor("axle", torque=-1.0)
    s.step(round(1 / h))
    assert abs(s.q[0]) < 1e-3
    # once inside, the limit is where it says
    s.set_motor("axle", target=1.0, stiffness=100.0, damping=20.0)
    for _ in range(round(5 / h)):
        s.step()
    assert abs(s.q[0] - 1.0) < 1e-3
    s.set_motor("axle", torque=-1.0)
    for _ in range(round(5 / h)):
        s.step()
        assert s.q[0] > 0.499
    assert abs(s.q[0] - 0.5) < 1e-3


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
@pytest.mark.parametrize("stiffness", [100.0, 1e6])
def test_a_motor_holds_its_target_up_to_the_static_offset(h, stiffness):
    m = pendulum(mass=2.0)
    s = pliant.ConstrainedSimulation(m, h)
    s.set_motor("pivot", target=1.2, stiffness=stiffness, damping=0.3 * np.sqrt(stiffness) + 5)
    s.step(round(60 / h))
    q = s.q[0]
    np.testing.assert_allclose(stiffness * (1.2 - q), 2.0 * G * np.sin(q), rtol=1e-6)
    s.step()
    assert abs(s.q[0] - q) < 1e-12
    s.clear_motors()
    s.step(round(1 / h))
    assert abs(s.q[0] - q) > 0.1


@pytest.mark.parametrize("h", [1 / 60, 0.1])
def test_a_damped_pendulum_comes_to_rest(h):
    """It does, its coordinate to all digits; but its velocity and kinetic energy must say so."""
    s = simulate(pendulum(damping=1.0), h, 100.0, start={"pivot": 2.5}, velocity=[3.0])
    before = s.q[0]
    s.step()
    assert abs(s.q[0] - before) < 1e-12
    assert abs(s.velocity[0]) < 1e-6
    assert s.energy.kinetic < 1e-9


def test_kinetic_energy_of_a_pendulum_becomes_that_of_its_velocity():
    """A motor throws it about at a radian a step: momenta have parts no joint allows, for a while."""
    s = pliant.ConstrainedSimulation(pendulum(), 0.1)
    s.set_motor("pivot", target=1.57, stiffness=1000.0, damping=100.0)
    s.step(60)
    for _ in range(20):
        s.step()
        np.testing.assert_allclose(s.energy.kinetic, 0.5 * 1.001 * s.velocity[0] ** 2, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
def test_a_velocity_motor_reaches_its_speed(h):
    s = pliant.ConstrainedSimulation(rotor(damping=0.5), h)
    s.set_motor("axle", velocity=6.0, damping=2.5)
    s.step(round(5 / h))
    np.testing.assert_allclose(s.velocity, 6.0 * 2.5 / 3.0, rtol=1e-9)
    s.set_motor("axle", velocity=6.0, damping=1e9)
    s.step(10)
    np.testing.assert_allclose(s.velocity, 6.0, rtol=1e-6)


def test_motor_torque_accelerates():
    s = pliant.ConstrainedSimulation(rotor(armature=0.3), 0.01)
    s.set_motor("axle", torque=2.0)
    s.step(100)
    np.testing.assert_allclose(s.velocity, 2.0 / 0.5, rtol=1e-9)
    np.testing.assert_allclose(s.q, 0.5 * 4.0, rtol=1e-9)
    np.testing.assert_allclose(s.energy.kinetic, 0.5 * 0.5 * 16, rtol=1e-9)


def test_the_torque_of_a_ball_is_in_its_own_axes():
    b = pliant.Builder("ball")
    b.body("bob", mass=1.0, inertia=(0.1, 0.2, 0.25), orientation=spatial.so3_exp((0.5, 0.2, -0.4)))
    b.ball("ball", "world", "bob", anchor=NONE)
    m = b.build()
    torque = np.array([0.3, -0.2, 0.5])
    s = pliant.ConstrainedSimulation(m, 1e-5, gravity=NONE)
    s.set_motor("ball", torque=torque)
    s.step()
    # power of the torque: change of energy; and of each axis alone
    np.testing.assert_allclose(s.energy.kinetic, 0.5 * s.velocity @ torque * 1e-5, rtol=1e-4)
    J = pliant.Configuration(m).jacobian("bob")
    inertia = J[3:].T @ m.inertia[0] @ J[3:]
    np.testing.assert_allclose(s.velocity / 1e-5, np.linalg.solve(inertia, torque), rtol=1e-4)


def test_a_ball_with_a_constant_torque_and_a_damper_turns_steadily():
    b = pliant.Builder("ball")
    b.body("bob", mass=1.0, inertia=(0.2, 0.2, 0.2))
    b.ball("ball", "world", "bob", anchor=NONE, damping=0.5)
    s = pliant.ConstrainedSimulation(b.build(), 0.02, gravity=NONE)
    s.set_motor("ball", torque=(1.0, 2.0, -0.5))
    s.step(1000)
    np.testing.assert_allclose(s.velocity, [2.0, 4.0, -1.0], rtol=1e-6)


# --- what is conserved


def momenta(s):
    """Linear momentum, and angular momentum about the world's origin."""
    m = s.mechanism
    linear, angular = np.zeros(3), np.zeros(3)
    for b, name in enumerate(m.body_names):
        twist, turn, at = s.twist(name), s.poses[b, :3, :3], s.poses[b, :3, 3]
        com = turn @ m.com[b]
        p = m.mass[b] * (twist[:3] + np.cross(twist[3:], com))
        linear += p
        angular += np.cross(at + com, p) + turn @ m.inertia[b] @ turn.T @ twist[3:]
    return linear, angular


def spinner(spin, h, **options):
    b = pliant.Builder("spinner")
    b.body("body", mass=1.0, inertia=(0.1, 0.2, 0.25))
    b.free("free", "world", "body")
    s = pliant.ConstrainedSimulation(b.build(), h, gravity=NONE, **options)
    s.velocity = np.concatenate([NONE, spin])
    return s


@pytest.mark.parametrize("spin", [(1.0, 2.0, 3.0), (0.01, 5.0, 0.01), (4.0, 0.1, 0.0), (8.0, 9.0, 16.0)])
def test_a_free_spinning_body_keeps_energy_and_momentum(spin):
    s = spinner(spin, 0.01, tolerance=1e-12)
    energy, angular = s.energy.kinetic, momenta(s)[1]
    for _ in range(50):
        s.step(10)
        now = s._stepper._state.momentum.sum(axis=0)[3:]  # body axes: the state itself  # pyright: ignore[reportAttributeAccessIssue]
        np.testing.assert_allclose(s.energy.kinetic, energy, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(now), np.linalg.norm(angular), rtol=1e-9)
        world = s.pose("body")[:3, :3] @ now
        assert np.linalg.norm(world - angular) < 1e-6 * np.linalg.norm(angular)
        found = momenta(s)[1]
        assert np.linalg.norm(found - angular) < 1e-6 * np.linalg.norm(angular)


@pytest.mark.parametrize("spin", [(1.0, 2.0, 3.0), (4.0, 0.1, 0.0), (3.0, 12.0, 16.0), (12.0, 11.0, 11.0)])
def test_a_free_spinning_body_at_the_default_tolerance(spin):
    s = spinner(spin, 0.01)
    energy, angular = s.energy.kinetic, momenta(s)[1]
    s.step(6000)
    np.testing.assert_allclose(s.energy.kinetic, energy, rtol=0.01)
    assert np.linalg.norm(momenta(s)[1] - angular) < 0.01 * np.linalg.norm(angular)


@pytest.mark.slow
@pytest.mark.parametrize("spin", [(1.0, 2.0, 3.0), (0.01, 5.0, 0.01), (5.0, 0.01, 0.0), (0.0, 0.01, 5.0)])
def test_a_free_spinning_body_for_a_minute(spin):
    s = spinner(spin, 0.01, tolerance=1e-12)
    energy, angular = s.energy.kinetic, momenta(s)[1]
    turned = 0
    for _ in range(600):
        before = s.velocity[4]
        s.step(10)
        turned += before * s.velocity[4] < 0
        np.testing.assert_allclose(s.energy.kinetic, energy, rtol=1e-9)
        assert np.linalg.norm(momenta(s)[1] - angular) < 1e-6 * np.linalg.norm(angular)
    if spin[1] == 5.0:
        assert turned >= 5  # about the intermediate axis it tumbles


def test_a_floating_chain_keeps_its_momentum():
    rng = np.random.default_rng(0)
    b = pliant.Builder("floating")
    for i in range(6):
        b.body(f"b{i}", mass=rng.uniform(0.5, 2), inertia=(0.02, 0.03, 0.04), position=(0.3 * i, 0, 0))
        if i == 0:
            b.free("free", "world", "b0")
        elif i % 2:
            b.ball(f"j{i}", f"b{i - 1}", f"b{i}", anchor=(0.3 * i - 0.15, 0.02, 0), stiffness=1.0)
        else:
            b.hinge(f"j{i}", f"b{i - 1}", f"b{i}", anchor=(0.3 * i - 0.15, 0, 0.01), axis=Y, damping=0.05)
    m = b.build()
    drift = []
    for h in (0.01, 0.005):
        s = pliant.ConstrainedSimulation(m, h, gravity=NONE, tolerance=1e-8)
        s.velocity = 0.5 * np.random.default_rng(1).normal(size=m.nv)
        linear, angular = momenta(s)
        worst = np.zeros(2)
        for _ in range(round(5 / h / 10)):
            s.step(10)
            p, L = momenta(s)
            worst = np.maximum(worst, [np.linalg.norm(p - linear), np.linalg.norm(L - angular)])
        drift.append(worst / [np.linalg.norm(linear), np.linalg.norm(angular)])
    assert (drift[0] < 3e-4).all()
    assert (drift[1] < 0.6 * drift[0]).all()


def test_the_centre_of_mass_of_a_floating_chain_falls_freely():
    m = motion.chain("ball", 5.0)
    b = pliant.Builder("falling")
    for i, name in enumerate(m.body_names):
        b.body(name, mass=m.mass[i], inertia=m.inertia[i], position=m.reference_poses[i, :3, 3])
        if i == 0:
            b.free("free", "world", name)
        else:
            at = m.reference_poses[i - 1 : i + 1, :3, 3].mean(axis=0)
            b.ball(f"j{i}", m.body_names[i - 1], name, anchor=at)
    s = pliant.ConstrainedSimulation(b.build(), 0.01)
    s.velocity = {"free": (0.5, 0.2, 3.0, 0.3, -0.4, 0.2), "j3": (0.3, 0.2, 0.1)}
    mass = s.mechanism.mass
    centre, speed = mass @ s.poses[:, :3, 3] / mass.sum(), momenta(s)[0] / mass.sum()
    s.step(100)
    expected = centre + speed * s.time + 0.5 * s.time**2 * np.array([0, 0, -G])
    assert np.abs(mass @ s.poses[:, :3, 3] / mass.sum() - expected).max() < 0.01


def test_a_free_body_falls_exactly():
    s = pliant.ConstrainedSimulation(free_body(), 0.1)
    s.velocity = (1.0, 2.0, 5.0, 0, 0, 0)
    s.step(20)
    np.testing.assert_allclose(s.pose("body")[:3, 3], (3, 6, 13 - 0.5 * G * 4), rtol=1e-10)
    np.testing.assert_allclose(s.twist("body"), [1, 2, 5 - 2 * G, 0, 0, 0], atol=1e-10)


def kept(s, steps, scale):
    """Largest departure from the energy at the start."""
    start, worst = s.energy.total, 0.0
    for _ in range(steps // 5):
        s.step(5)
        worst = max(worst, abs(s.energy.total - start))
    return worst / scale


def double_pendulum():
    b = pliant.Builder("double")
    for i in range(2):
        b.body(f"b{i}", mass=1.0, inertia=(1 / 12, 1 / 12, 1e-3), position=(0, 0, -0.5 - i))
    b.hinge("j0", "world", "b0", anchor=NONE, axis=Y)
    b.hinge("j1", "b0", "b1", anchor=(0, 0, -1), axis=Y)
    return b.build()


@pytest.mark.parametrize(("angle", "bound"), [(0.8, 1e-3), (1.6, 1e-2), (2.5, 2e-2)])
def test_a_double_pendulum_keeps_its_energy(angle, bound):
    s = pliant.ConstrainedSimulation(double_pendulum(), 1 / 60, start={"j0": angle, "j1": 0.3})
    assert kept(s, 3000, 2.0 * G * 2.0) < bound


@pytest.mark.parametrize(("angle", "bound"), [(0.8, 1e-4), (1.6, 1e-3), (2.5, 3e-3)])
def test_a_double_pendulum_keeps_its_energy_better_with_more_iterations(angle, bound):
    s = pliant.ConstrainedSimulation(
        double_pendulum(), 1 / 60, start={"j0": angle, "j1": 0.3}, tolerance=1e-8
    )
    assert kept(s, 6000, 2.0 * G * 2.0) < bound


@pytest.mark.parametrize("h", [1 / 60, 1 / 240])
def test_energy_does_not_creep(h):
    """Five minutes of a double pendulum."""
    s = pliant.ConstrainedSimulation(double_pendulum(), h, start={"j0": 0.8, "j1": 0.3})
    assert kept(s, round(300 / h), 2.0 * G * 2.0) < 4e-3


@pytest.mark.parametrize("load", [1.0, 1e2, 1e5])
def test_a_cable_of_balls_keeps_its_energy(load):
    m = pliant.gallery.cable(20, load=load, kind="ball", stiffness=0.0, damping=0.0)
    assert load < 1e5 or m.mass.max() / m.mass.min() >= 1e6 * (1 - 1e-9)
    turn = np.array([np.cos(0.3), 0, np.sin(0.3), 0])
    s = pliant.ConstrainedSimulation(m, 1 / 60, start={"joint1": turn})
    assert kept(s, 3600, G * m.mass.sum() * 2.0) < 1e-3


def test_a_chain_with_springs_keeps_its_energy():
    m = rod_chain(4, "ball", 30.0)
    s = pliant.ConstrainedSimulation(m, 1 / 240)
    assert kept(s, 240 * 10, G * m.mass.sum() * 1.2) < 1e-2


# --- couplings and tendons


def gear_pair(ratio=3.0, **tendon):
    """Two rotors with weights off their axes, geared: q2 = ratio q1."""
    b = pliant.Builder("gears")
    b.body("a", mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.body("b", mass=0.5, com=(0, 0, 0.1), inertia=(0.05, 0.05, 0.05), position=(1, 0, 0))
    b.hinge("ja", "world", "a", anchor=NONE, axis=Y, damping=0.02)
    b.hinge("jb", "world", "b", anchor=(1, 0, 0), axis=Y)
    if tendon:
        b.tendon("belt", {"jb": 1.0, "ja": -ratio}, **tendon)
    else:
        b.couple({"jb": 1.0, "ja": -ratio})
    return b.build()


def gears_by_hand(seconds, ratio, kick):
    inertia = 0.1 + 1.0 * 0.04 + ratio**2 * (0.05 + 0.5 * 0.01)

    def rate(_, y):
        # heights: a turns x towards -z, b turns z towards x
        torque = 1.0 * G * 0.2 * np.cos(y[0]) + ratio * 0.5 * G * 0.1 * np.sin(ratio * y[0])
        return [y[1], (torque - 0.02 * y[1]) / inertia]

    return solve_ivp(rate, (0, seconds), [0.0, kick], rtol=1e-11, atol=1e-12).y[:, -1]


def test_coupled_gears_turn_as_one():
    q, speed = gears_by_hand(1.0, 3.0, 0.5)
    errors = []
    for h in (0.01, 0.005, 0.0025):
        s = simulate(gear_pair(), h, 1.0, velocity={"ja": 0.5, "jb": 1.5}, tolerance=1e-9)
        np.testing.assert_allclose(s.q[1], 3.0 * s.q[0], atol=1e-9)
        errors.append(abs(s.q[0] - q))
    np.testing.assert_allclose(s.velocity, [speed, 3 * speed], rtol=1e-3)
    np.testing.assert_allclose(order(errors), 2.0, atol=0.2)


def test_a_coupling_holds_at_long_steps():
    s = pliant.ConstrainedSimulation(gear_pair(), 0.1)
    s.velocity = {"ja": 0.5, "jb": 1.5}
    for _ in range(300):
        s.step()
        np.testing.assert_allclose(s.q[1], 3.0 * s.q[0], atol=1e-6)


def test_velocities_that_break_a_coupling_are_corrected():
    s = pliant.ConstrainedSimulation(gear_pair(), 0.001, gravity=NONE)
    s.velocity = {"ja": 1.0}
    s.step(50)
    np.testing.assert_allclose(s.q[1], 3.0 * s.q[0], atol=1e-6)
    # momentum of the free motion that is left: I_a 1.0 = (I_a + 9 I_b) w, less what the damper took
    left = 0.14 / (0.14 + 9 * 0.055)
    np.testing.assert_allclose((s.q[0] - 0.0) / s.time, left, rtol=0.05)


def test_a_tendon_is_a_spring_between_joints():
    m = gear_pair(stiffness=40.0, damping=0.3, rest=0.2)

    def rate(_, y):
        a, b, wa, wb = y
        pull = 40.0 * (b - 3 * a - 0.2) + 0.3 * (wb - 3 * wa)
        ta = 1.0 * G * 0.2 * np.cos(a) - 0.02 * wa + 3 * pull
        tb = 0.5 * G * 0.1 * np.sin(b) - pull
        return [wa, wb, ta / 0.14, tb / 0.055]

    exact = solve_ivp(rate, (0, 0.5), [0, 0, 0.3, -1.0], rtol=1e-11, atol=1e-12).y[:, -1]
    errors = []
    for h in (0.002, 0.001, 0.0005):
        s = simulate(m, h, 0.5, velocity=[0.3, -1.0], tolerance=1e-9)
        errors.append(np.abs(s.q - exact[:2]).max())
    assert errors[-1] < 1e-4
    np.testing.assert_allclose(order(errors), 2.0, atol=0.25)


@pytest.mark.parametrize("h", [1e-3, 1 / 60, 0.1])
def test_a_very_stiff_tendon_is_a_coupling(h):
    tied = pliant.ConstrainedSimulation(gear_pair(), h)
    s = pliant.ConstrainedSimulation(gear_pair(stiffness=1e10), h)
    for _ in range(3):
        steps = max(1, round(0.1 / h))
        s.step(steps)
        tied.step(steps)
        np.testing.assert_allclose(s.q, tied.q, atol=0.02)
        np.testing.assert_allclose(s.q[1], 3 * s.q[0], atol=1e-4)


def test_a_stretched_tendon_has_energy():
    m = gear_pair(stiffness=40.0, rest=0.2)
    s = pliant.ConstrainedSimulation(m, 0.001, gravity=NONE, start={"ja": 0.1, "jb": 0.7})
    np.testing.assert_allclose(s.energy.elastic, 0.5 * 40.0 * (0.7 - 0.3 - 0.2) ** 2)
    start = s.energy.total
    damped = m.replace(damping=np.zeros(m.nv))
    s = pliant.ConstrainedSimulation(damped, 0.001, gravity=NONE, start={"ja": 0.1, "jb": 0.7})
    s.step(1000)
    np.testing.assert_allclose(s.energy.total, start, rtol=1e-3)
