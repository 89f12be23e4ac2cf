"""The compiled solver against the same algorithm in plain Python, and against small changes of its input."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pliant
from oracles.random_mechanisms import random_mechanism
from oracles.static_newton import Solver
from pliant.mechanism import kinematics
from pliant.mechanism.loop_closure import close_loops
from pliant.statics.loads import coordinate_difference
from pliant.statics.tangent import Tangent

GRAVITY = (0.3, -0.2, -9.81)


def check_against_oracle(m, wrenches, gravity=None, limits=False):
    slow = Solver(m, wrenches, gravity, limits)
    if not slow.solve():
        with pytest.raises(pliant.errors.ConvergenceError):
            pliant.equilibrium(m, wrenches, gravity=gravity, limits=limits)
        return
    fast = pliant.equilibrium(m, wrenches, gravity=gravity, limits=limits)
    # Both end within 1e-12 of the load; along a soft motion that is more than 1e-9 of a radian.
    assert fast.loads is not None
    t = Tangent(m, fast.q, fast.loads, fast.multipliers)
    t.factor()
    allowed = max(1e-9, 1e-12 * fast.loads.scale * m.radius / t.softest_motion()[0])
    assert np.abs(coordinate_difference(m, slow.q, fast.q) / m.dof_unit).max(initial=0.0) < allowed
    assert abs(fast.iterations - slow.iterations) <= max(2, slow.iterations // 10)  # rounding may add a round


@given(seed=st.integers(0, 10**6), bodies=st.integers(1, 6), loops=st.integers(0, 2), limits=st.booleans())
def test_random_mechanisms_under_gravity(seed, bodies, loops, limits):
    m = random_mechanism(seed, bodies, loops, stiffness=200.0, reference=True)
    if (m.stiffness == 0).any() or not m.nv:
        return
    rng = np.random.default_rng(seed)
    first, last = m.body_names[0], m.body_names[-1]
    wrenches = {
        last: 5 * rng.normal(size=6),
        first: {"force": rng.normal(size=3), "point": rng.normal(size=3), "frame": "body"},
    }
    check_against_oracle(m, wrenches, GRAVITY, limits)


@pytest.mark.parametrize(
    ("name", "size"),
    [("helix", 60.0), ("hand", 2.0), ("gripper", 15.0), ("suspension", 500.0), ("loop", 150.0)],
)
def test_gallery_with_couplings_tendons_and_loops(name, size):
    m = pliant.gallery.make(name)
    for gravity in (None, GRAVITY):
        check_against_oracle(m, {m.end_effectors[0]: (0.6 * size, 0.2 * size, -size)}, gravity)


def test_a_ridge_is_left_by_a_kick():
    """In the boom's plane the vehicle balances on a ridge: the oracle escapes by the softest motion, too."""
    check_against_oracle(pliant.gallery.crane(), {"vehicle": (40e3, 0, 0)}, (0, 0, -9.81))


def push_along_softest(m, size):
    """A force on the end effector, along its softest direction, that moves it by `size` radii to first order."""
    c = pliant.Configuration(m)
    turn = c.pose(m.end_effectors[0])[:3, :3]
    values, axes = np.linalg.eigh(turn @ c.compliance(m.end_effectors[0])[:3, :3] @ turn.T)
    return axes[:, -1] * size * m.radius / values[-1]


@pytest.mark.parametrize(
    ("name", "options", "size", "most"),
    [("lattice", {"nx": 8, "ny": 8}, 0.4, 40), ("bistable", {}, 0.1, 20), ("scissor_lift", {}, 0.4, 25)],
)
def test_mechanisms_that_snap_are_followed_in_a_trust_region(name, options, size, most):
    """Where loops do not close after long steps: as the oracle, as under a load that grows slowly, in few iterations.

    Shortened Newton steps took 105, 138 and 133 iterations.
    """
    m = pliant.gallery.make(name, **options)
    force = push_along_softest(m, size)
    for sign in (1, -1):
        check_against_oracle(m, {m.end_effectors[0]: sign * force})
        found = slow = pliant.equilibrium(m, {m.end_effectors[0]: sign * force})
        assert found.stability == "stable"
        assert found.iterations < most
        for i in range(1, 41):
            start = None if i == 1 else slow
            slow = pliant.equilibrium(m, {m.end_effectors[0]: sign * force * i / 40}, start=start)
        assert np.abs(found.poses - slow.poses).max() < 1e-8 * m.radius


@pytest.mark.parametrize(
    "name", ["helix", "hand", "gripper", "flexure_stage", "suspension", "loop", "ladder"]
)
def test_no_answer_hangs_on_the_last_bit(name):
    m = pliant.gallery.make(name)
    body, force = m.end_effectors[0], min(50.0, 2 * m.total_mass) * np.array([0.3, 0.2, -1.0])
    found = pliant.equilibrium(m, {body: force}, gravity=GRAVITY)
    rng = np.random.default_rng(0)
    for _ in range(5):
        near = pliant.equilibrium(
            m,
            {body: force * (1 + 1e-13 * rng.normal(size=3))},
            gravity=np.array(GRAVITY) * (1 + 1e-13 * rng.normal(size=3)),
        )
        assert near.stability == found.stability
        assert np.abs(near.poses - found.poses).max() < 1e-10 * m.radius
        assert (
            np.abs(near.compliance(body) - found.compliance(body)).max()
            < 1e-9 * np.abs(found.compliance(body)).max()
        )


def test_work_space_is_not_shared_between_threads():
    m = pliant.gallery.gripper()
    forces = np.random.default_rng(0).normal(scale=10.0, size=(40, 3))
    alone = [pliant.equilibrium(m, {"left_pad": f}).q for f in forces]
    wrong = []

    def work(offset):
        for i in np.roll(np.arange(len(forces)), offset):
            if not np.array_equal(pliant.equilibrium(m, {"left_pad": forces[i]}).q, alone[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(7 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_rounding_of_a_small_loop_counts_as_closed():
    """A loop a thousandth of the radius in size, far from the origin: its gap is rounding of positions."""
    m = random_mechanism(933, 4, 2, stiffness=200.0, reference=True)
    gaps = pliant.Configuration(m, close_loops(m, m.reference.copy())).loop_residual
    assert np.abs(gaps).max() < 1e-13


def test_an_open_start_is_closed_or_refused():
    m = pliant.gallery.gripper()
    q = kinematics.move(m, m.reference.copy(), np.full(m.nv, 0.05))
    wanted = pliant.equilibrium(m, {"left_pad": (-5, 0, 0)})
    found = pliant.equilibrium(m, {"left_pad": (-5, 0, 0)}, start=q)
    assert np.abs(found.poses - wanted.poses).max() < 1e-10
    b = pliant.Builder("gap")
    b.body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.hinge("p", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=3.0)
    b.slide("s", "world", "a", axis=(0, 0, 1))
    with pytest.raises(pliant.errors.ConvergenceError, match="do not close"):
        pliant.equilibrium(b.build(), {"a": (0, 0, 1)}, start={"s": 1e4})
