"""Batches: every copy has the same bits as a single simulation."""

import os
import pickle
import signal
import threading
from copy import copy as copied
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import pliant
from interrupts import interrupt_long_step, timer
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


def busy_batch(threads):
    batch = pliant.ReducedBatch(pliant.reduce(pliant.gallery.hand()), 1 / 1000, 8, threads=threads)
    batch.apply_wrench("thumb_tip", force=np.outer(np.linspace(0, 2, 8), [0, 0, 1]))
    batch.step(3)
    return batch


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_leaves_all_copies_after_the_same_whole_step(threads):
    batch, other = busy_batch(threads), busy_batch(threads)
    for _ in range(3):
        interrupt_long_step(batch.step)
        times = batch.state[:, 0]
        assert (times == times[0]).all()
        steps = round(batch.time * 1000)
        assert 3 < steps < 10**8
        other.step(steps - round(other.time * 1000))
        assert np.array_equal(batch.state, other.state)
        assert np.array_equal(batch.poses, other.poses)


@pytest.mark.parametrize("threads", [1, 2])
def test_compiled_calls_are_short(threads, monkeypatch):
    """Ctrl-C acts between two compiled calls: none of them takes more than some hundredths of a second."""
    batch, asked = busy_batch(threads), []
    advance = batch._advance
    monkeypatch.setattr(batch, "_advance", lambda n, before: (asked.append(n), advance(n, before)))
    with pytest.raises(KeyboardInterrupt), timer(0.5):
        batch.step(10**9)
    assert len(asked) > 3
    assert max(asked) < 10**7


@pytest.mark.parametrize("way", [copied, deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_copies_are_independent_and_go_on_bit_for_bit(way):
    batch = busy_batch(2)
    other, before = way(batch), batch.state
    other.step(5)
    assert np.array_equal(batch.state, before)
    batch.step(5)
    assert np.array_equal(batch.state, other.state)
    assert np.array_equal(batch.poses, other.poses)


def test_one_thread_at_a_time():
    batch, said = busy_batch(2), []

    def run():
        try:
            batch.step()
        except InputError as error:
            said.append(str(error))

    with batch._use.claimed():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert "another thread" in said[0]


def test_damaged_states_are_refused():
    batch = busy_batch(1)
    good, poses = batch.state, batch.poses.copy()
    for bad in ("x", [1], np.full_like(good, np.nan), good[:, :-1], None):
        with pytest.raises(InputError, match="state"):
            batch.state = bad  # pyright: ignore[reportAttributeAccessIssue]
        assert np.array_equal(batch.state, good)
        assert np.array_equal(batch.poses, poses)


@pytest.mark.parametrize("method", ["tvcg", "small", "auto"])
@pytest.mark.parametrize("force", [1e100, 1e200])
def test_absurd_loads_are_refused_with_their_ratio(method, force):
    """Rotations stay orthonormal; the message says how many times the springs the load is."""
    model = pliant.reduce(pliant.gallery.hand(), "index_tip")
    simulation = pliant.ReducedSimulation(model, 1 / 200, method=method)
    batch = pliant.ReducedBatch(model, 1 / 200, 2, method=method)
    for each in (simulation, batch):
        each.apply_wrench("index_tip", force=(0, 0, force))
        before = each.poses.copy()
        with pytest.raises(ConvergenceError, match=r"is [0-9.]+e\+[0-9]+ times what its springs hold"):
            each.step(3)
        assert np.array_equal(each.poses, before)


@pytest.mark.parametrize("method", ["auto", "full"])
@pytest.mark.parametrize("force", [1e9, 1e20, 1e50])
def test_loads_that_cannot_be_followed_are_refused_soon(method, force):
    """Not even a hundredth of a step's motion keeps the energy there is: the model does not stand still in silence."""
    m = pliant.gallery.helix(20)
    simulation = pliant.ReducedSimulation(pliant.reduce(m), 1 / 60, method=method)
    simulation.apply_wrench(m.end_effectors[0], force=(force, 0, 0))
    with pytest.raises(ConvergenceError, match=r"times what its springs hold"):
        simulation.step(60)
    simulation.clear_wrenches()
    simulation.step(60)


@pytest.mark.parametrize("reconstruction", ["joint", "twist"])
def test_rotations_stay_orthonormal_under_any_load_that_is_taken(reconstruction):
    model = pliant.reduce(pliant.gallery.hand(), "index_tip")
    taken = 0
    for exponent in range(0, 300, 5):
        simulation = pliant.ReducedSimulation(model, 1 / 200, reconstruction, method="tvcg")
        simulation.apply_wrench("index_tip", force=(0, 10.0**exponent, 10.0**exponent))
        try:
            simulation.step(3)
            taken += 1
        except ConvergenceError:
            pass
        turn = simulation.poses[:, :3, :3]
        assert np.abs(turn @ turn.transpose(0, 2, 1) - np.eye(3)).max() < 1e-12
    assert 1 < taken < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are those of POSIX")
def test_threads_start_again_in_a_forked_process():
    """It inherits none: without new ones it would wait for ever."""
    model = pliant.reduce(pliant.gallery.arm())
    batch = pliant.ReducedBatch(model, 1e-3, 4, threads=2)
    one = pliant.ReducedSimulation(model, 1e-3, reconstruction="twist", threads=2)
    for moved in (batch, one):
        moved.step(2)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            moved.step(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        moved.step(2)
