"""Batches: every copy has the same bits as a single simulation."""

from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant.errors import ConvergenceError, InputError


@pytest.mark.parametrize("reconstruction", ["joint", "twist"])
@pytest.mark.parametrize("name", ["hand", "hexapod", "cable"])
def test_every_copy_equals_a_simulation(name, reconstruction):
    model = pliant.reduce(pliant.gallery.make(name))
    tip = model.end_effectors[0]
    rng = np.random.default_rng(0)
    forces, torques = rng.normal(size=(2, 7, 3))
    batches = [pliant.ReducedBatch(model, 0.005, 7, reconstruction, threads=t) for t in (1, 3)]
    for batch in batches:
        batch.apply_wrench(tip, forces, 0.1 * torques, point=(0, 0.01, 0))
        batch.step(9)
        batch.step()
    assert np.array_equal(batches[0].poses, batches[1].poses)
    assert np.array_equal(batches[0].state, batches[1].state)
    for copy in range(7):
        one = pliant.ReducedSimulation(model, 0.005, reconstruction)
        one.apply_wrench(tip, forces[copy], 0.1 * torques[copy], point=(0, 0.01, 0))
        one.step(10)
        assert np.array_equal(batches[0].poses[copy], one.poses)
        assert np.array_equal(batches[0].pose(tip)[copy], one.pose(tip))
        assert np.array_equal(batches[0].state[copy, 1:], np.asarray(one.state)[3:])
    assert batches[0].time == pytest.approx(0.05)


@pytest.mark.parametrize("method", ["auto", "tvcg"])
def test_every_copy_of_a_blend_equals_a_simulation(method):
    m = pliant.gallery.helix(12)
    blend = pliant.blend(
        [pliant.reduce(m, at=pliant.equilibrium(m, {"link12": (f, 0, 2 * f)})) for f in (0, 50, 90)]
    )
    forces = np.random.default_rng(1).normal(0, 60, (5, 3))
    batch = pliant.ReducedBatch(blend, 0.005, 5, threads=2, method=method)
    batch.apply_wrench("link12", forces)
    batch.step(20)
    state = batch.state
    for copy in range(5):
        one = pliant.ReducedSimulation(blend, 0.005, method=method)
        one.apply_wrench("link12", forces[copy])
        one.step(20)
        assert np.array_equal(batch.poses[copy], one.poses)
    batch.reset()
    assert batch.poses[3] == pytest.approx(m.reference_poses, abs=1e-12)
    batch.state = state
    assert np.array_equal(batch.poses[4], one.poses)


def test_common_words():
    model = pliant.reduce(pliant.gallery.y())
    tip = model.end_effectors[0]
    batch = pliant.ReducedBatch(model, 0.01, copies=4)
    assert (batch.copies, batch.timestep, batch.model) == (4, 0.01, model)
    start = batch.poses.copy()
    batch.apply_wrench(tip, (0, 0, -1.0))
    batch.step(5)
    assert (batch.poses == batch.poses[0]).all()
    state, poses = batch.state, batch.poses.copy()
    batch.step(3)
    batch.state = state
    assert np.array_equal(batch.poses, poses)
    batch.state = state[0]  # one state for all copies
    assert np.array_equal(batch.state, state)
    batch.clear_wrenches()
    batch.reset()
    assert batch.time == 0
    assert np.array_equal(batch.poses, start)
    assert np.array_equal(batch.pose("world"), np.tile(np.eye(4), (4, 1, 1)))
    with pytest.raises(ValueError, match="read-only"):
        batch.poses[0] = 0
    assert "4 copies" in repr(batch)


def test_bad_arguments():
    model = pliant.reduce(pliant.gallery.y())
    tip = model.end_effectors[0]
    batch = pliant.ReducedBatch(model, 0.01, 3)
    for call, message in [
        (lambda: pliant.ReducedBatch(model, 0.01, 0), "copies"),
        (lambda: pliant.ReducedBatch(model, 0.01, 2, threads=0), "threads"),
        (lambda: batch.apply_wrench(tip, np.zeros((4, 3))), r"3 numbers, or 3 times 3,"),
        (lambda: batch.apply_wrench(tip, np.full((3, 3), np.nan)), "not finite"),
        (lambda: setattr(batch, "state", np.zeros((2, 2))), "shape"),
        (lambda: setattr(batch, "state", np.full(batch.state.shape, np.nan)), "finite"),
        (lambda: batch.step("many"), "whole number"),  # pyright: ignore[reportArgumentType]
    ]:
        with pytest.raises(InputError, match=message):
            call()


def test_if_one_leaves_the_finite_numbers_all_stand_after_the_last_common_step():
    model = pliant.reduce(pliant.gallery.y())
    unstable = replace(model, reduced_stiffness=-model.reduced_stiffness)
    batch = pliant.ReducedBatch(unstable, 1e-4, 3, threads=2, method="tvcg")
    batch.apply_wrench(model.end_effectors[0], [[0, 0, 0], [0, 0, 0], [0, 0, 1.0]])
    batch.step(2)
    state = batch.state
    with pytest.raises(ConvergenceError, match="copy 2 left the finite numbers"):
        batch.step(100_000)
    done, poses = batch.state, batch.poses.copy()
    assert np.isfinite(done).all()
    steps = round((batch.time - state[0, 0]) / 1e-4)
    batch.state = state
    batch.step(steps)
    assert np.array_equal(batch.state, done)
    assert np.array_equal(batch.poses, poses)
