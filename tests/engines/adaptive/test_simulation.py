"""`AdaptiveSimulation`: what moves and what rests, accuracy against the constrained engine, real files, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from formats import corpus
from oracles.random_mechanisms import random_mechanism
from pliant.engines.simulation import Simulation
from pliant.errors import InputError, MechanismError, UnknownNameError

NONE = (0, 0, 0)


def soft_molecule(links: int = 2000) -> pliant.Mechanism:
    return pliant.gallery.molecule(links).with_stiffness("*", 1e-3, 5e-6)


def forest(plants: int = 30, links: int = 8) -> pliant.Mechanism:
    b = pliant.Builder("forest")
    for p in range(plants):
        parent = "world"
        for i in range(links):
            name = f"p{p}_{i}"
            b.body(name, mass=0.01, inertia=(1e-5, 1e-5, 1e-6), position=(p, 0, 0.1 * i + 0.05))
            b.universal(
                f"j{p}_{i}",
                parent,
                name,
                anchor=(p, 0, 0.1 * i),
                axes=((1, 0, 0), (0, 1, 0)),
                stiffness=1.0,
                damping=0.02,
            )
            parent = name
    return b.build()


def pulled(s: Simulation, steps: int) -> np.ndarray:
    """Displacement of the last bond, pulled."""
    bond = s.mechanism.body_names[-1]
    start = s.pose(bond)[:3, 3]
    s.apply_wrench(bond, force=(0, 0, 1e-3), point=(0, 0, 0.005))
    s.step(steps)
    return s.pose(bond)[:3, 3] - start


def test_a_pulled_molecule_moves_as_in_the_constrained_engine():
    """Fewer joints for a looser tolerance; errors fall with it."""
    m, h, steps = soft_molecule(), 1 / 240, 120
    expected = pulled(pliant.ConstrainedSimulation(m, h, NONE), steps)
    errors, active = [], []
    for tolerance in (0.03, 0.003, 3e-4):
        s = pliant.AdaptiveSimulation(m, h, NONE, tolerance=tolerance)
        errors.append(np.linalg.norm(pulled(s, steps) - expected) / np.linalg.norm(expected))
        active.append(len(s.active))
        assert s.error_estimate <= tolerance
        assert s.effort.active == active[-1]
    assert errors[0] < 0.1
    assert errors[1] < 0.03
    assert errors[2] < 0.01
    assert active[0] < active[1] < active[2] < 1000


def test_nothing_moves_without_a_reason_and_everything_stops_again():
    m = soft_molecule(500)
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE)
    s.step(20)
    assert s.active == ()
    np.testing.assert_array_equal(s.q, m.reference)
    s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-3))
    s.step(20)
    most = len(s.active)
    assert 5 < most < 500
    stiff = m.with_stiffness("*", 1e-2, 1e-2)
    s = pliant.AdaptiveSimulation(stiff, 1 / 20, NONE, tolerance=0.05)
    s.apply_wrench(m.body_names[-1], force=(0, 0, 1e-3))
    s.step(20)
    assert s.active
    s.clear_wrenches()
    s.step(4000)
    assert s.active == ()
    assert s.kinetic == 0.0
    before = s.q
    s.step(10)
    np.testing.assert_array_equal(s.q, before)


def test_only_the_plant_that_is_touched_moves():
    m = forest()
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE, tolerance=1e-3)
    s.apply_wrench("p7_7", force=(0.01, 0, 0))
    s.step(30)
    assert s.active
    assert {name.partition("_")[0] for name in s.active} == {"j7"}
    whole = pliant.ConstrainedSimulation(m, 1 / 100, NONE)
    whole.apply_wrench("p7_7", force=(0.01, 0, 0))
    whole.step(30)
    np.testing.assert_allclose(s.pose("p7_7"), whole.pose("p7_7"), atol=1e-4)
    assert np.abs(whole.q).max() > 0.005


def test_joints_that_are_kept_always_move():
    m = soft_molecule(300)
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE, keep=["bond200", "bond29*"], most=40)
    s.step(3)
    assert {"bond200", "bond290", "bond299"} <= set(s.active)
    assert len(s.active) < 60
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE, tolerance=1e-6, most=25)
    s.apply_wrench("bond300", force=(0, 0, 1.0))
    s.step(3)
    assert 0 < len(s.active) <= 25
    assert s.error_estimate > 1e-6


def test_motors_wake_joints():
    m = soft_molecule(300)
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE)
    s.set_motor("bond150", torque=1e-5)
    s.step()
    assert "bond150" in s.active
    assert s.velocity[m.joint_dofs(m.joint_names.index("bond150"))][0] > 0


def test_setting_a_velocity_wakes_its_joint_and_no_other_branch():
    m = soft_molecule(300)
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE)
    s.velocity = {"bond150": 0.5}
    assert "bond150" in s.active
    assert s.velocity[149] == 0.5
    assert np.count_nonzero(s.velocity) == 1
    expected = pliant.ConstrainedSimulation(m, 1 / 100, NONE)
    expected.velocity = {"bond150": 0.5}
    assert s.kinetic == pytest.approx(expected.kinetic, rel=1e-12)


def test_limits_hold_and_a_start_beyond_them_is_no_blow():
    b = pliant.Builder("arm")
    for i in range(3):
        b.body(f"b{i}", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0.2 * i + 0.1, 0, 0))
        parent = "world" if i == 0 else f"b{i - 1}"
        b.hinge(
            f"j{i}", parent, f"b{i}", anchor=(0.2 * i, 0, 0), axis=(0, 1, 0), limits=(-0.3, 0.3), damping=0.1
        )
    m = b.build()
    s = pliant.AdaptiveSimulation(m, 1 / 100)
    s.step(300)
    assert np.all(np.abs(s.q) < 0.31)
    assert np.abs(s.q).max() > 0.28
    s = pliant.AdaptiveSimulation(m, 1 / 100, NONE, start=[0.5, 0.0, 0.0])
    s.step(10)
    assert np.abs(s.velocity).max() < 1e-9


@pytest.mark.parametrize(
    ("wheel", "name"),
    [
        ("dm_control", "suite/humanoid.xml"),
        ("dm_control", "suite/dog.xml"),
        ("gymnasium_robotics", "envs/mujoco/assets/ant.xml"),
        ("example-robot-data", "robots/talos_data/robots/talos_full_v2.urdf"),
        ("example-robot-data", "robots/a1_description/urdf/a1.urdf"),
        ("shared", "google_barkour_vb/barkour_vb.xml"),
    ],
)
@pytest.mark.filterwarnings("ignore::pliant.errors.PliantWarning")
def test_real_robots_gain_no_energy_and_converge_to_the_constrained_engine(wheel, name):
    root = corpus.folder(wheel)
    if not root.is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    m = pliant.load(root / name, allow=[root], repair=name in corpus.EXPECTED[wheel][1])
    if m.topology.loops or len(m.couplings) or len(m.tendons):
        pytest.skip("this robot has loops or tendons")
    try:
        s = pliant.AdaptiveSimulation(m, 1 / 500, tolerance=0.1)
    except MechanismError as error:
        pytest.skip(str(error))
    body, start, most = m.body_names[-1], s.energy.total, -np.inf
    for _ in range(20):
        s.step(10)
        most = max(most, s.energy.total)
    gravity = 9.81 * m.total_mass * m.radius
    assert most <= start + 1e-4 * gravity
    whole, all_active = (
        pliant.ConstrainedSimulation(m, 1 / 2000),
        pliant.AdaptiveSimulation(m, 1 / 2000, keep="*"),
    )
    for one in (whole, all_active):
        one.apply_wrench(body, force=(0, 0, 0.1 * 9.81 * m.total_mass))
        one.step(100)
    apart = np.abs(whole.poses[:, :3, 3] - all_active.poses[:, :3, 3]).max()
    moved = np.abs(whole.poses[:, :3, 3] - pliant.Configuration(m, m.reference).poses[:, :3, 3]).max()
    assert apart < 1e-2 * moved


def test_refusals():
    with pytest.raises(InputError, match="has loops: AdaptiveSimulation moves trees only"):
        pliant.AdaptiveSimulation(pliant.gallery.ladder(3), 1e-3)
    b = pliant.Builder("tied")
    for i in range(2):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(i, 0, 0))
        b.hinge(f"j{i}", "world", f"b{i}", anchor=(i, 0, 0), axis=(0, 0, 1))
    b.couple({"j0": 1.0, "j1": -1.0})
    with pytest.raises(InputError, match="has couplings: AdaptiveSimulation"):
        pliant.AdaptiveSimulation(b.build(), 1e-3)
    b = pliant.Builder("thin")
    b.body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0))
    b.hinge("pin", "world", "rod", anchor=(0, 0, 0), axis=(0, 1, 0))
    thin = b.build().replace(inertia=np.diag([1e-30, 1.0, 1.0])[None])
    with pytest.raises(MechanismError, match="AdaptiveSimulation needs mass and all three moments"):
        pliant.AdaptiveSimulation(thin, 1e-3)
    m = pliant.gallery.helix(5)
    for words, match in (
        ({"tolerance": 0}, "tolerance: a number above 0"),
        ({"slow": -1}, "slow: a number from 0"),
        ({"most": 0}, "most: a whole number from 1"),
        ({"interval": 0}, "interval: a whole number from 1"),
        ({"precision": 1.0}, "precision: a number above 0, at most 0.1"),
        ({"keep": 5}, "keep: a name, a pattern or a list"),
    ):
        with pytest.raises(InputError, match=match):
            pliant.AdaptiveSimulation(m, 1e-3, **words)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownNameError, match="no joint of 'helix 5'"):
        pliant.AdaptiveSimulation(m, 1e-3, keep="nobody")


@given(st.integers(0, 10**6), st.integers(2, 10), st.booleans())
@settings(max_examples=20, deadline=None)
def test_twists_of_single_bodies(seed, bodies, floating):
    """As those of all bodies, in the middle of a motion in which some joints rest."""
    m = random_mechanism(seed, bodies=bodies, stiffness=5.0, reference=True, floating=floating)
    if m.nv == 0:
        return
    s = pliant.AdaptiveSimulation(m, 1e-2, tolerance=1.0, slow=0.3)
    s.velocity = np.random.default_rng(seed).normal(size=m.nv)
    s.step(10)
    expected = Simulation._body_twists(s)
    size = 1 + np.abs(expected).max()
    for i, name in enumerate(m.body_names):
        np.testing.assert_allclose(s.twist(name), expected[i], rtol=0, atol=1e-13 * size)


def test_pulls_read_the_pulled_bodies_only(monkeypatch):
    """The motion is that with twists of all bodies, which are not asked for."""
    m, h = soft_molecule(400), 1 / 240
    ends = []
    for whole in (False, True):
        s = pliant.AdaptiveSimulation(m, h, NONE, tolerance=1e-3)
        with monkeypatch.context() as patch:
            if whole:
                patch.setattr(type(s), "_twists_of", Simulation._twists_of)
            else:
                patch.setattr(type(s), "_body_twists", None)
            for bond, shift in ((400, 0.01), (200, -0.005)):
                place = s.pose(f"bond{bond}")[:3, 3] + [0, 0, shift]
                s.pull(f"bond{bond}", place, (0, 0, 0.005), stiffness=0.1, damping=1e-3, key=bond)
            s.step(60)
        ends.append([s.q, s.velocity, s.pulls[400], s.pulls[200]])
        assert len(s.active) > 20
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * max(1.0, np.abs(b).max()))
