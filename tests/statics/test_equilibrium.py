"""Equilibria against closed-form answers, and against the gradient of an independent energy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_bvp
from scipy.optimize import brentq

import pliant
from oracles import dense
from oracles.random_mechanisms import KINDS, random_mechanism
from pliant import equilibrium
from pliant.errors import ConvergenceError, InputError, UnknownNameError

INERTIA = (0.01, 0.01, 0.01)


def root(f, low, high) -> float:
    """Zero of `f` between two numbers, to the last bits."""
    return float(brentq(f, low, high, xtol=1e-15))  # pyright: ignore[reportArgumentType]


def rod(stiffness=10.0, length=1.0, mass=1.0, **more):
    """A vertical link on a hinge about y; its body frame is at the tip."""
    b = pliant.Builder("rod")
    b.body("tip", mass=mass, inertia=INERTIA, position=(0, 0, length))
    b.hinge("pivot", "world", "tip", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=stiffness, **more)
    return b.build()


def check(c, tolerance=1e-9):
    assert c.residual < tolerance
    if c.mechanism.topology.loops:
        assert np.abs(c.loop_residual).max() < 1e-10


@pytest.mark.parametrize("force", [0.1, 10.0, 100.0, 1e4, -3.0])
def test_side_force_on_a_sprung_rod(force):
    c = equilibrium(rod(), {"tip": (force, 0, 0)})
    angle = root(lambda a: 10 * a - force * np.cos(a), -np.pi / 2, np.pi / 2)
    check(c)
    assert c["pivot"] == pytest.approx(angle, abs=1e-12)
    assert c.stability == "stable"
    assert np.allclose(c.pose("tip")[:3, 3], [np.sin(angle), 0, np.cos(angle)], atol=1e-12)


def test_straight_rod_buckles():
    """m g l = 2 k: upright is an equilibrium, but not a stable one; a push finds the stable one."""
    m = rod(stiffness=10.0, mass=2.0)
    upright = equilibrium(m, gravity=(0, 0, -10.0))
    assert upright.stability == "unstable"
    assert upright["pivot"] == 0
    pushed = equilibrium(m, {"tip": (1e-3, 0, 0)}, gravity=(0, 0, -10.0))
    angle = root(lambda a: 10 * a - 20 * np.sin(a) - 1e-3 * np.cos(a), 0.1, 3)
    assert pushed["pivot"] == pytest.approx(angle, abs=1e-10)
    assert pushed.stability == "stable"
    assert equilibrium(rod(stiffness=20.1, mass=2.0), gravity=(0, 0, -10.0)).stability == "stable"


def test_compensated_gravity_keeps_the_reference_pose_and_sag_does_not():
    m = rod(stiffness=30.0, rest=0.3)
    still = equilibrium(m)
    assert still["pivot"] == 0
    assert still.stability == "stable"
    free = equilibrium(m, gravity=(0, 0, 0))  # springs about their own rest, no weight
    assert free["pivot"] == pytest.approx(0.3, abs=1e-12)
    sag = equilibrium(m, gravity=(0, 0, -9.81))
    angle = root(lambda a: 30 * (a - 0.3) - 9.81 * np.sin(a), 0, 2)
    assert sag["pivot"] == pytest.approx(angle, abs=1e-11)


def test_slide_under_its_weight():
    b = pliant.Builder("scale")
    b.body("pan", mass=3.0, inertia=INERTIA)
    b.slide("guide", "world", "pan", axis=(0, 0, 1), stiffness=200.0)
    c = equilibrium(b.build(), gravity=(0, 0, -9.81))
    assert c["guide"] == pytest.approx(-3 * 9.81 / 200, rel=1e-12)


def test_world_torque_on_a_ball_turns_it_by_torque_over_stiffness():
    b = pliant.Builder("ball")
    b.body("a", mass=1.0, inertia=INERTIA)
    b.ball("s", "world", "a", anchor=(0, 0, 0), stiffness=4.0)
    torque = np.array([1.0, -2.0, 3.0])
    c = equilibrium(b.build(), {"a": {"torque": torque}})
    # A rotation about the torque's own axis leaves the axis where it is.
    assert np.allclose(pliant.spatial.so3_log(c.pose("a")[:3, :3]), torque / 4, atol=1e-11)
    check(c)


def test_follower_force_stays_square():
    c = equilibrium(rod(), {"tip": {"force": (20.0, 0, 0), "frame": "body"}})
    assert c["pivot"] == pytest.approx(2.0, abs=1e-12)


def test_force_at_a_point():
    c = equilibrium(rod(), {"tip": {"force": (0, 0, -5.0), "point": (1.0, 0, 0)}})
    # the point is at (cos a + sin a, cos a - sin a): torque about y is 5 (cos a + sin a)
    angle = root(lambda a: 10 * a - 5 * (np.cos(a) + np.sin(a)), 0, 2)
    assert c["pivot"] == pytest.approx(angle, abs=1e-12)


def parallelogram(stiffness=5.0):
    """Two upright cranks and a bar: four equal springs, one degree of freedom, three redundant rows."""
    b = pliant.Builder("parallelogram")
    b.body("left", mass=1.0, inertia=INERTIA, position=(0, 0, 0.5))
    b.body("bar", mass=1.0, inertia=INERTIA, position=(1, 0, 1))
    b.body("right", mass=1.0, inertia=INERTIA, position=(2, 0, 0.5))
    spring = {"axis": (0, 1, 0), "stiffness": stiffness}
    b.hinge("a", "world", "left", anchor=(0, 0, 0), **spring)
    b.hinge("b", "left", "bar", anchor=(0, 0, 1), **spring)
    b.hinge("c", "bar", "right", anchor=(2, 0, 1), **spring)
    b.hinge("d", "world", "right", anchor=(2, 0, 0), **spring)
    return b.build()


@pytest.mark.parametrize("force", [1.0, 30.0, 300.0])
def test_parallelogram(force):
    c = equilibrium(parallelogram(), {"bar": (force, 0, 0)})
    angle = root(lambda a: 20 * a - force * np.cos(a), 0, np.pi / 2)
    check(c)
    assert c["a"] == pytest.approx(angle, abs=1e-10)
    assert c["d"] == pytest.approx(angle, abs=1e-10)
    assert c["b"] == pytest.approx(-angle, abs=1e-10)
    assert c.stability == "stable"


def test_loop_forces_balance_the_cut_body():
    """What the loop joint puts on its child, with the load and the other joint, must sum to nothing."""
    m = parallelogram()
    c = equilibrium(m, {"bar": (30.0, 0, 7.0)})
    index = m.joint_index("c")
    rotation = c.pose("right")[:3, :3]
    through_c = rotation @ c.joint_forces[index, :3]
    assert np.allclose(c.loop_forces["d"][:3] + through_c, 0, atol=1e-8)
    through_d = c.pose("right")[:3, :3] @ c.joint_forces[m.joint_index("d"), :3]
    assert np.allclose(through_d, c.loop_forces["d"][:3], atol=1e-8)


def test_gear():
    """A 2:1 gear: the load on one wheel turns both, against both springs."""
    b = pliant.Builder("gear")
    for name, x in (("big", 0.0), ("small", 1.0)):
        b.body(name, mass=1.0, inertia=INERTIA, position=(x, 0, 0))
        b.hinge(f"{name}_axle", "world", name, anchor=(x, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    b.couple({"small_axle": 1.0, "big_axle": 2.0})
    c = equilibrium(b.build(), {"big": {"torque": (0, 6.0, 0)}})
    # 3 a + 2 * 3 * 2 a = 6
    assert c["big_axle"] == pytest.approx(0.4, abs=1e-12)
    assert c["small_axle"] == pytest.approx(-0.8, abs=1e-12)


@given(seed=st.integers(0, 10**6), loops=st.integers(0, 2), sag=st.booleans())
def test_solution_is_a_minimum_of_an_independent_energy(seed, loops, sag):
    m = random_mechanism(seed, 4, loops, kinds=KINDS[:8], reference=True, stiffness=100.0)
    force = {"b3": 20 * np.random.default_rng(seed).normal(size=3)}
    gravity = (0, 0, -9.81) if sag else None
    try:
        c = equilibrium(m, force, gravity=gravity)
    except ConvergenceError as error:
        pytest.fail(f"seed {seed}: {error}")
    check(c)
    gradient = dense.gradient(lambda p: dense.energy(m, p, force, gravity), m, c.q, 1e-3)
    rows = c.loop_jacobian
    if len(rows):
        gradient = gradient - rows.T @ np.linalg.lstsq(rows.T, gradient, rcond=1e-9)[0]
    assert np.abs(gradient).max(initial=0) < 1e-6
    if c.stability == "stable":  # no small allowed displacement lowers the energy
        rng = np.random.default_rng(seed)
        low = dense.energy(m, c.q, force, gravity)
        for _ in range(5):
            from pliant.mechanism.loop_closure import close_loops

            q = close_loops(m, dense.move(m, c.q, 1e-3 * rng.normal(size=m.nv)))
            assert dense.energy(m, q, force, gravity) >= low - 1e-9


def test_load_on_a_joint_without_spring_names_it():
    b = pliant.Builder("limp")
    b.body("a", mass=1.0, inertia=INERTIA)
    b.body("c", mass=1.0, inertia=INERTIA, position=(1, 0, 0))
    b.hinge("firm", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=10.0)
    b.hinge("limp", "a", "c", anchor=(0.5, 0, 0), axis=(1, 0, 0))
    m = b.build()
    with pytest.raises(ConvergenceError, match=r"'limp', which no spring holds.*with_stiffness") as caught:
        equilibrium(m, {"c": {"torque": (5.0, 0, 0)}})
    assert caught.value.residual > 1e-3
    c = equilibrium(m, {"c": (0, 0, 1.0)})  # loaded only where there is a spring
    assert c.stability == "neutral"
    check(c)


def test_hanging_chain_without_springs_is_held_by_gravity():
    """Ball joints only: the catenary's end points down, by geometric stiffness alone."""
    b = pliant.Builder("chain")
    for i in range(10):
        b.body(f"l{i}", mass=1.0, inertia=INERTIA, position=(0.1 * i + 0.05, 0, 0))
        b.ball(f"s{i}", "world" if i == 0 else f"l{i - 1}", f"l{i}", anchor=(0.1 * i, 0, 0))
    m = b.build()
    c = equilibrium(m, gravity=(0, 0, -9.81))
    check(c)
    assert np.allclose(c.poses[:, :3, 3], [[0, 0, -0.1 * i - 0.05] for i in range(10)], atol=1e-6)


def test_warm_start_gives_the_same_answer():
    m = parallelogram()
    near = equilibrium(m, {"bar": (28.0, 0, 0)})
    cold = equilibrium(m, {"bar": (30.0, 0, 0)})
    warm = equilibrium(m, {"bar": (30.0, 0, 0)}, start=near)
    assert np.allclose(warm.q, cold.q, atol=1e-9)
    assert warm.iterations <= cold.iterations


def test_arguments_are_checked():
    m = rod()
    for wrenches, error, text in (
        ({"nobody": (1, 0, 0)}, UnknownNameError, "nobody"),
        ({"tip": (1, 0)}, InputError, "tip"),
        ({"tip": (1, 0, np.nan)}, InputError, "finite"),
        ({"tip": {"push": 1}}, InputError, "push"),
        ({"tip": {"force": (1, 0, 0), "frame": "sideways"}}, InputError, "frame"),
        ({"world": (1, 0, 0)}, InputError, "world"),
        ("tip", InputError, "mapping"),
    ):
        with pytest.raises(error, match=text):
            equilibrium(m, wrenches)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="gravity"):
        equilibrium(m, gravity=9.81)
    with pytest.raises(InputError, match="another mechanism"):
        equilibrium(m, start=equilibrium(parallelogram()))
    with pytest.raises(InputError, match="Mechanism expected"):
        equilibrium("rod.xml")  # type: ignore[arg-type]


def test_limits_are_reported_not_enforced():
    b = pliant.Builder("limits")
    b.body("a", mass=1.0, inertia=INERTIA)
    b.body("c", mass=1.0, inertia=INERTIA)
    b.hinge("h", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0, limits=(-0.1, 0.1))
    b.ball("s", "a", "c", anchor=(0, 0, 0), stiffness=1.0, limits=(-np.inf, 0.5))
    m = b.build()
    assert equilibrium(m).beyond_limits == ()
    c = equilibrium(m, {"a": {"torque": (0, 0.2, 0)}})
    assert c["h"] == pytest.approx(0.2)
    assert c.beyond_limits == ("h",)
    assert equilibrium(m, {"c": {"torque": (0.6, 0, 0)}}).beyond_limits == ("s.0", "s.1", "s.2")


def test_a_configuration_remembers_its_loads_and_answers_by_name():
    m = parallelogram()
    wrenches = {"bar": {"force": (3.0, 0, 0), "point": (0.1, 0, 0)}}
    c = equilibrium(m, wrenches, gravity=(0, 0, -9.81))
    assert c.wrenches == wrenches
    assert c.gravity == (0, 0, -9.81)
    assert c["a"] == c.q[m.joint_coordinates(m.joint_index("a"))][0]
    assert c.displacement[m.body_index("bar")] == pytest.approx(
        np.linalg.norm(c.pose("bar")[:3, 3] - m.reference_poses[m.body_index("bar"), :3, 3])
    )
    assert np.allclose(c.rotation[m.body_index("left")], abs(c["a"]))
    assert "stable equilibrium" in c.summary()
    assert np.array_equal(c.pose("world"), np.eye(4))


@pytest.mark.parametrize(("bending", "steps"), [(1000.0, 10), (200.0, 30)])
def test_a_cantilever_of_ten_thousand_links(bending, steps):
    """The elastica under its own weight, `B theta'' = -w (L - s) cos(theta)`; its end turns by 60 and by 87 degrees.

    Every joint turns little, all together turn far: with Newton's first step the softer one would coil up and stay so.
    """
    b = pliant.Builder("cantilever")
    for i in range(10_000):
        b.body(f"l{i}", mass=1e-3, inertia=(1e-8, 1e-8, 1e-8), position=(0.001 * i + 0.0005, 0, 0))
        carrier = f"l{i - 1}" if i else "world"
        stiffness = bending / 0.001
        b.hinge(f"j{i}", carrier, f"l{i}", anchor=(0.001 * i, 0, 0), axis=(0, 1, 0), stiffness=stiffness)
    found = pliant.equilibrium(b.build(), gravity=(0, 0, -9.81))
    assert found.iterations <= steps
    assert found.residual < 1e-8
    s = np.linspace(0, 10, 400)
    exact = solve_bvp(
        lambda s, y: np.array([y[1], -9.81 / bending * (10 - s) * np.cos(y[0])]),
        lambda a, b: np.array([a[0], b[1]]),
        s,
        np.array([s / 10, 0.1 * np.ones_like(s)]),
        tol=1e-8,
        max_nodes=20_000,
    )
    assert exact.success
    np.testing.assert_allclose(found.q.sum(), exact.sol(10.0)[0], rtol=2e-4)


@pytest.mark.parametrize("force", [1e18, 1e100, 1e200, 1e300, 1.7e308])
def test_loads_beyond_all_springs_are_refused(force):
    """Above some 1e15 times the springs, residuals and stability were those of rounding."""
    m = pliant.gallery.hand()
    with pytest.raises(ConvergenceError, match=r"times what its springs hold"):
        pliant.equilibrium(m, {"index_tip": (0, 0, force)})
    with pytest.raises(ConvergenceError, match=r"the load of case 1 on 'hand'"):
        pliant.equilibria(m, [{}, {"index_tip": (0, 0, force)}])
