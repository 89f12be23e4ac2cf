"""The suite of closed loops: engines go through the same motion, and a run that fails is never timed."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pliant
from pliant_benchmarks.harness.process import call_apart
from pliant_benchmarks.harness.results import Row
from pliant_benchmarks.loops import huge, motion, pushes, scaling
from pliant_benchmarks.peers import mujoco
from pliant_benchmarks.systems import Pushed

H = 5e-3  # s


@pytest.fixture(scope="module")
def ladder():
    return Pushed("ladder(4)", lambda: pliant.gallery.ladder(4), 0.02, pushes.SIDEWAYS)


@pytest.fixture(scope="module")
def truth(ladder):
    return pushes.follow(ladder, H)


def test_our_run_converges_with_the_step(ladder):
    """The midpoint rule is of second order: half the step has a quarter of the error."""
    truth, errors = pushes.follow(ladder, H / 4), []
    for h in (2 * H, H):
        trial = pushes.Trial(ladder, h, pushes.Ours(ladder, h))
        assert trial.judge(truth)
        errors.append(trial.error)
    assert errors[0] < 0.01
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_mujoco_goes_through_the_same_motion(ladder, truth):
    there, problems = motion.try_settings(
        ladder, H, partial(mujoco.PushedLoops, ladder), mujoco.PushedLoops.SETTINGS, truth
    )
    assert not problems
    for trial in there.values():
        assert 1e-5 < trial.error < 0.02
        assert 1e-10 < trial.run.gap < 1e-5  # soft, but closed
        ours = pushes.Trial(ladder, H, pushes.Ours(ladder, H))
        assert ours.judge(truth)
        assert trial.run.energy == pytest.approx(ours.run.energy, rel=0.03)
        assert trial.work == pytest.approx(ours.work, rel=0.03)


def test_exudyn_goes_through_the_same_motion(ladder, truth):
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    from pliant_benchmarks.peers import exudyn

    run = exudyn.PushedBodies(ladder, H, "kept")
    np.testing.assert_allclose(run.poses, ladder.m.reference_poses, atol=1e-12)
    run.push()
    run.step(20)
    np.testing.assert_allclose(run.origins, run._model.origins, atol=1e-12)  # as Exudyn's own outputs say
    assert np.abs(run.origins - ladder.m.reference_poses[:, :3, 3]).max() > 1e-3
    make = partial(exudyn.PushedBodies, ladder)
    there, problems = motion.try_settings(ladder, H, make, exudyn.PushedBodies.SETTINGS, truth)
    assert not problems
    for trial in there.values():
        assert trial.error < 0.02
        assert trial.run.gap < 1e-9
        ours = pushes.Trial(ladder, H, pushes.Ours(ladder, H))
        assert ours.judge(truth)
        assert trial.run.energy == pytest.approx(ours.run.energy, rel=0.03)


def test_the_gap_of_a_weld_is_a_distance():
    case = Pushed("ladder(2)", lambda: pliant.gallery.ladder(2), 0.02, pushes.SIDEWAYS)
    run = mujoco.PushedLoops(case, H, "discrete")
    assert run.gap < 1e-12
    run.data.qpos[run.model.joint("left1_foot").qposadr[0]] += 0.01  # the first cell no longer closes
    # The weld holds the middle of the first rung, 2 m above and 0.75 m beside the hinge that turns by 0.01 rad.
    assert run.gap == pytest.approx(0.01 * np.hypot(2.0, 0.75), rel=1e-3)


def test_a_diverged_run_has_no_time():
    """MuJoCo's implicitfast throws the gripper's fingers apart at 1/60 s."""
    case = Pushed("gripper()", pliant.gallery.gripper, 0.02)
    h = 1 / 60
    truth = pushes.follow(case, h)
    found = motion.try_settings(case, h, partial(mujoco.PushedLoops, case), ("implicitfast",), truth)
    assert found[0] == {}
    assert "implicitfast" in found[1]
    ours = pushes.Trial(case, h, pushes.Ours(case, h))
    assert ours.judge(truth)
    row = motion._compare("gripper()", "MuJoCo", ours, found, 1)
    assert row.ours is not None
    assert (row.peer, row.ratio) == (None, None)
    assert row.stable.startswith("MuJoCo: implicitfast ")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({}, ""),
        ({"failed": True}, "diverges"),
        ({"energy": 0.53}, "gains energy"),
        ({"energy": float("nan")}, "gains energy"),
        ({"gap": 0.06}, "loops open by 0.06 m"),
        ({"origins": np.array([[1.06, 0, 0]])}, "6 % off"),
        ({"origins": np.array([[float("nan"), 0, 0]])}, "nan % off"),
    ],
)
def test_what_a_run_must_keep(wrong, problem):
    """A body that a force of 1 N, half swollen, pulls by 1 m in one step: 0.5 J of work."""
    case: Any = SimpleNamespace(
        force=np.array([1.0, 0, 0]), m=SimpleNamespace(reference_poses=np.eye(4)[None])
    )
    there = np.array([1.0, 0, 0])
    good = {"failed": False, "energy": 0.52, "gap": 0.04, "origins": there[None], "pushed": np.zeros(3)}
    run: Any = SimpleNamespace(**{**good, **wrong})
    run.push = lambda part=1.0: None
    run.step = lambda n: setattr(run, "pushed", there)
    trial = pushes.Trial(case, 0.5, run)
    assert trial.judge(there[None]) == (not problem)
    assert trial.work == pytest.approx(0.5)
    assert trial.problem == problem


def test_flatness_is_the_largest_over_the_smallest_cost_per_loop():
    rows = [("ladder", Row("ladder(64)", ours=6.4)), ("ladder", Row("ladder(128)", ours=19.2))]
    rows += [("lattice", Row("lattice(8, 8)", ours=1.0))]
    for (_, row), loops in zip(rows, (64, 128, 64), strict=True):
        row.values["loops"] = loops
    [flat] = scaling._flatness(rows, lambda row: row.values["loops"])
    assert flat.case == "per loop, ladder(64) to ladder(128)"
    assert flat.ours == pytest.approx(0.125)
    assert flat.note == "from 100 to 150 µs a loop: largest over smallest 1.50"


def test_a_long_chain_takes_one_solve_a_step():
    found = huge.measure_chain(200, 1)
    assert found["solves a step"] == 1
    assert found["stable"] == "yes"
    assert 0 < found["error, %"] < 5
    assert found["once"][0] > 0


def test_a_process_that_fails_says_why():
    assert "ValueError" in call_apart(huge.measure_chain, -1, 1)
