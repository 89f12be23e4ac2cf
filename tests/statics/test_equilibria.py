"""Many equilibria at once against one at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from oracles.random_mechanisms import random_mechanism

GRAVITY = (0.0, 0.0, -9.81)


def circle(n, size):
    angle = np.linspace(0, 2 * np.pi, n)
    return size * np.stack([np.cos(angle), 0.3 * np.sin(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize("gravity", [None, GRAVITY])
@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize(("name", "size"), [("gripper", 20.0), ("hand", 2.0), ("helix", 50.0)])
def test_path_of_loads(name, size, limits, gravity):
    m = pliant.gallery.make(name)
    body, forces = m.end_effectors[0], circle(150, size)
    found = pliant.equilibria(m, {body: forces}, gravity=gravity, limits=limits, threads=2)
    assert found.converged.all()
    assert found.residual.max() < 1e-9
    assert found.poses().shape == (150, m.body_count, 4, 4)
    poses = found.poses(body)
    for i in range(0, 150, 13):
        alone = pliant.equilibrium(m, {body: forces[i]}, gravity=gravity, limits=limits)
        assert np.abs(alone.pose(body) - poses[i]).max() < 1e-10 * max(1.0, m.radius)
        assert alone.stability == found.stability[i]
        one = found.configuration(i)
        assert one.joint_forces is not None
        assert alone.joint_forces is not None
        assert np.abs(one.joint_forces - alone.joint_forces).max() < 1e-8 * np.abs(alone.joint_forces).max()
        assert one.wrenches == {body: tuple(forces[i])}
        assert one.gravity == alone.gravity
        assert one.limits == limits
        assert one.residual == found.residual[i]
    assert found.iterations[1:].mean() < 5


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), loops=st.integers(0, 2))
def test_random_mechanisms(seed, loops):
    m = random_mechanism(
        seed, 4, loops, stiffness=200.0, kinds=("hinge", "slide", "ball", "universal", "bushing")
    )
    rng = np.random.default_rng(seed)
    loads = [
        {"b3": 3 * rng.normal(size=6), "b0": {"force": rng.normal(size=3), "frame": "body"}} for _ in range(6)
    ]
    found = pliant.equilibria(m, loads, threads=1)
    for i, wrenches in enumerate(loads):
        try:
            alone = pliant.equilibrium(m, wrenches)
        except pliant.errors.ConvergenceError:
            continue
        if alone.stability == "stable" and found.stability[i] == "stable":
            assert np.abs(alone.poses - found.poses()[i]).max() < 1e-8


def test_results_do_not_depend_on_threads_or_on_how_loads_are_given():
    m = pliant.gallery.gripper()
    forces = np.concatenate([circle(140, 20.0), np.random.default_rng(0).normal(scale=15, size=(60, 3))])
    first = pliant.equilibria(m, {"left_pad": forces}, threads=1)
    for loads, threads in (({"left_pad": forces}, 3), ([{"left_pad": f} for f in forces], 2)):
        other = pliant.equilibria(m, loads, threads=threads)
        for name in ("q", "multipliers", "residual", "iterations", "stability", "converged"):
            assert np.array_equal(getattr(first, name), getattr(other, name)), name
    wrench = np.zeros((3, 6))
    wrench[:, :3] = forces[:3]
    assert np.array_equal(pliant.equilibria(m, {"left_pad": wrench}).q, first.q[:3])


def test_similar_cases_start_from_the_one_before():
    m = pliant.gallery.helix(30)
    forces = np.linspace(100, 101, 40)[:, None] * np.array([0.0, 0.6, -0.8])
    found = pliant.equilibria(m, {"link30": forces})
    assert found.iterations[0] > found.iterations[1:].max()
    ahead = pliant.equilibria(m, {"link30": forces[:1]}, start=found.configuration(5))
    assert ahead.iterations[0] < found.iterations[0]


def test_one_bad_case_does_not_lose_the_others():
    b = pliant.Builder("loose")
    for name, parent, axis, stiffness in (("a", "world", (0, 1, 0), 5.0), ("c", "a", (1, 0, 0), 0.0)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.hinge(name, parent, name, anchor=(0, 0, 0), axis=axis, stiffness=stiffness)
    m = b.build()
    loads = [{"c": {"torque": (t, 1.0, 0)}} for t in (0.0, 3.0, 0.0)]
    found = pliant.equilibria(m, loads)
    assert found.converged.tolist() == [True, False, True]
    assert found.stability.tolist() == ["neutral", "", "neutral"]
    assert list(found.errors) == [1]
    assert "no spring holds" in str(found.errors[1])
    with pytest.raises(pliant.errors.ConvergenceError, match="'c'"):
        found.configuration(1)
    assert found.configuration(-1)["a"] == pytest.approx(0.2)
    assert "1 not found" in repr(found)


def test_no_loads_and_no_cases():
    m = pliant.gallery.gripper()
    rest = pliant.equilibria(m, [{}, {}])
    assert np.abs(rest.poses() - m.reference_poses).max() < 1e-12
    assert len(pliant.equilibria(m, [])) == 0
    assert pliant.equilibria(m, {"left_pad": np.zeros((0, 3))}).poses("left_pad").shape == (0, 4, 4)
    assert np.array_equal(rest.poses("world"), np.tile(np.eye(4), (2, 1, 1)))


def test_open_loops_of_the_start_are_reported():
    b = pliant.Builder("gap")
    b.body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.hinge("p", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    b.slide("s", "world", "a", axis=(0, 0, 1))
    found = pliant.equilibria(b.build(), [{"a": (0, 0, 1.0)}], start={"s": 1e4})
    assert not found.converged[0]
    assert "do not close" in str(found.errors[0])


def test_bad_input_is_named():
    m = pliant.gallery.gripper()
    for loads, words in (
        ({"left_pad": (1, 0, 0)}, "left_pad.*shape"),
        ({"left_pad": [[1, 0, np.nan]]}, "left_pad.*case 0"),
        ({"left_pad": np.zeros((2, 3)), "right_pad": np.zeros((3, 3))}, "same number"),
        ({"left_pad": "down"}, "numbers expected"),
        ({}, "at least one body"),
        ([(1, 0, 0)], "case 0"),
        ("left_pad", "sequence of mappings"),
        ({"world": np.zeros((1, 3))}, "world"),
        ({"left_pat": np.zeros((1, 3))}, "left_pad"),
    ):
        with pytest.raises(pliant.errors.PliantError, match=words):
            pliant.equilibria(m, loads)  # type: ignore[arg-type]
    with pytest.raises(pliant.errors.InputError, match="threads"):
        pliant.equilibria(m, [{}], threads=0)
    with pytest.raises(pliant.errors.InputError, match="Mechanism"):
        pliant.equilibria("gripper", [{}])  # type: ignore[arg-type]
