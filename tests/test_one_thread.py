"""Threads, copies and states of simulations and worlds: a second thread is refused, nothing is shared, nothing crashes.

What crashed the interpreter once runs in a process of its own, whose death fails the test.
"""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import pliant
from interrupts import interrupt_long_step
from pliant.errors import InputError
from pliant.one_thread import Use
from pliant.world import WorldState

H = 1 / 100
STATES = 2000  # random ones


def run_in_child(script: str) -> str:
    """Output of a script in a process of its own, which must end well."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script], capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def drop(count: int = 3, statics: int = 1) -> pliant.World:
    """Balls above a floor."""
    world = pliant.World(H)
    for i in range(statics):
        world.add_static(f"floor{i}", pliant.shapes.plane(), position=(0, 0, -0.1 - 0.01 * i))
    for i in range(count):
        world.add_body(
            f"ball{i}", pliant.shapes.sphere(0.03), mass=0.1, position=(0.02 * i, 1, 0.05 + 0.07 * i)
        )
    return world


def test_uses_nest_in_one_thread_and_exclude_others():
    use, said = Use(), []

    def other():
        try:
            use.claim()
        except InputError as error:
            said.append(str(error))
        else:
            use.release()

    def ask():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return len(said)

    with use.claimed():
        with use.claimed():
            assert ask() == 1
        assert ask() == 2  # the inner use is over, the outer is not
    assert ask() == 2
    assert not use
    assert "another thread" in said[0]


def test_switching_while_another_thread_steps_is_refused_and_does_not_crash():
    out = run_in_child("""
import threading, warnings, pliant
warnings.simplefilter("ignore")
hand = pliant.gallery.hand()
coarse, fine = pliant.reduce(hand, "index_tip"), pliant.reduce(hand)
s = pliant.ReducedSimulation(fine, 1e-3)
failed = []
def run():
    for _ in range(40):
        try:
            s.step(3000)
        except pliant.errors.InputError:
            pass  # the other thread was switching
        except BaseException as error:
            failed.append(error)
thread = threading.Thread(target=run)
thread.start()
switched = refused = 0
while thread.is_alive():
    try:
        s.switch(coarse)
        s.switch(fine)
        switched += 1
    except pliant.errors.InputError:
        refused += 1
thread.join()
print(len(failed), refused > 0)
""")
    assert out.split() == ["0", "True"]


def test_a_world_stepped_by_four_threads_refuses_three_and_does_not_crash():
    out = run_in_child("""
import threading, pliant
world = pliant.World(1 / 60)
world.add_static("floor", pliant.shapes.plane())
for i in range(5):
    world.add_body(f"ball{i}", pliant.shapes.sphere(0.03), position=(0.01 * i, 0, 0.1 + 0.1 * i))
others, taken = [], []
def run():
    for _ in range(100):
        try:
            world.step(10)
            taken.append(10)
        except pliant.errors.InputError:
            pass
        except BaseException as error:
            others.append(error)
threads = [threading.Thread(target=run) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(others), abs(world.time - sum(taken) / 60) < 1e-9)
""")
    assert out.split() == ["0", "True"]


def test_parts_of_a_stepping_world_are_refused_to_other_threads():
    world = drop()
    world.add(pliant.reduce(pliant.gallery.hand(), "index_tip"), "hand")
    world.step()
    refused = []
    with world._use.claimed(), world.simulation("hand").use.claimed():

        def other():
            for call in (
                world.step,
                world.reset,
                lambda: world.add_body("more", pliant.shapes.sphere(0.1)),
                lambda: world.switch("hand", pliant.gallery.hand()),
                lambda: world["hand"].apply_wrench("index_tip", force=(0, 0, 1)),
                lambda: setattr(world, "state", world.state),
            ):
                try:
                    call()
                except InputError as error:
                    refused.append("another thread" in str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == [True] * 6
    world.step()


def test_long_steps_of_worlds_end_soon_after_an_interrupt_and_know_the_time():
    world, other = drop(), drop()
    world.step(3)
    interrupt_long_step(world.step)
    steps = round(world.time / H)
    assert 3 < steps < 10**7
    other.step(steps)
    assert np.array_equal(world.poses, other.poses)
    assert world.time == other.time


# --- copies


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_copies_of_worlds_are_independent_and_go_on_bit_for_bit(way):
    world = drop()
    world.add(pliant.reduce(pliant.gallery.hand(), "index_tip"), "hand")
    world["hand"].apply_wrench("index_tip", force=(0, 0, 0.5))
    world["ball0"].apply_wrench(force=(0.01, 0, 0))
    world.pull("ball1", (0.1, 1.0, 0.2))
    world.step(40)
    other = way(world)
    assert other.time == world.time
    assert list(other) == list(world)
    assert other["hand"].wrenches.keys() == {"index_tip"}
    before = world.poses.copy()
    other.step(20)
    assert np.array_equal(world.poses, before)  # the original did not move
    world.step(20)
    assert np.array_equal(world.poses, other.poses)
    assert other.level("hand") is not None
    other.reset()
    other.step()
    assert other.time == pytest.approx(H)


def test_a_copied_world_switches_levels_by_itself():
    hand = pliant.gallery.hand()
    coarse = pliant.reduce(hand, "index_tip")
    world = drop()
    world.add(coarse, "hand")
    world.detail("hand", [coarse, hand], error=1e-3)
    world.step(5)
    other = world.copy()
    other["hand"].apply_wrench("index_tip", force=(0, 0, 20.0))
    other.step(60)
    assert other.level("hand") is hand
    assert world.level("hand") is coarse


# --- states


def test_states_of_worlds_are_checked_whole():
    world = drop()
    world.step(30)
    good, poses = world.state, world.poses.copy()
    assert good.memory[1].size > 0  # contacts
    nan = tuple(np.full_like(a, np.nan) if a.dtype.kind == "f" else a for a in good.memory)
    far = tuple(np.full_like(a, 10**6) if a.dtype.kind == "i" else a for a in good.memory)
    negative = tuple(np.full_like(a, -1) if a.dtype.kind == "i" else a for a in good.memory)
    short = (*good.memory[:-1], good.memory[-1][:-1])
    wrong = [
        (good._replace(memory=nan), "damaged"),
        (good._replace(memory=far), "damaged"),
        (good._replace(memory=negative), "damaged"),
        (good._replace(memory=short), "damaged"),
        (good._replace(memory=good.memory[:3]), "damaged"),
        (good._replace(memory=[1, 2]), "damaged"),
        (good._replace(time=float("nan")), "time"),
        (good._replace(time="now"), "time"),
        (good._replace(fingerprint=0), "another world"),
        (good._replace(actors=()), "another world"),
        (good._replace(actors=(np.full(39, np.nan),)), "not finite"),
        (good._replace(actors=(np.zeros(5),)), "other free bodies"),
        (good._replace(actors=("no",)), "other free bodies"),
        ([1, 2], "expected"),
        ("state", "expected"),
        (None, "expected"),
        (drop(statics=200).state, "another world"),
        (drop(count=2).state, "another world"),
    ]
    for value, why in wrong:
        with pytest.raises(InputError, match=why):
            world.state = value  # pyright: ignore[reportAttributeAccessIssue]
        assert np.array_equal(world.poses, poses)
        assert world.time == good.time
    world.step(10)
    later = world.poses.copy()
    world.state = good
    world.step(10)
    assert np.array_equal(world.poses, later)
    assert isinstance(good, WorldState)


def test_damaged_states_of_simulations_are_refused():
    simulation = pliant.ConstrainedSimulation(pliant.gallery.hand(), H)
    good = simulation.state
    for numbers in (np.asarray(good)[:-1], np.full(len(good), np.nan), np.zeros(3)):
        with pytest.raises(InputError, match="damaged"):
            simulation.state = type(good)(good.fingerprint, np.array(numbers))


def test_random_states_never_crash():
    out = run_in_child(
        """
import numpy as np, pliant
world = pliant.World(1 / 60)
world.add_static("floor", pliant.shapes.plane())
for i in range(3):
    world.add_body(f"ball{i}", pliant.shapes.sphere(0.03), position=(0.1 * i, 0, 0.05))
world.step(30)
good, rng, refused, taken = world.state, np.random.default_rng(7), 0, 0
for _ in range(STATES):
    memory = list(good.memory)
    k = rng.integers(len(memory))
    part = memory[k].copy()
    if part.size:
        part.flat[rng.integers(part.size)] = rng.choice([-1, 0, 1, 5, 1000, 2**40])
    memory[k] = part if rng.random() < 0.7 else part[: rng.integers(len(part) + 1)]
    try:
        world.state = good._replace(memory=tuple(memory))
        taken += 1
    except pliant.errors.InputError:
        refused += 1
    try:
        world.step()
    except pliant.errors.PliantError:
        world.state = good
print(refused > 100, taken > 100)
""".replace("STATES", str(STATES))
    )
    assert out.split() == ["True", "True"]


# --- arrays that cannot be written


def test_arrays_that_are_handed_out_cannot_be_made_writable():
    hand = pliant.gallery.hand()
    model = pliant.reduce(hand, "index_tip")
    simulation = pliant.ReducedSimulation(model, H)
    whole = pliant.ConstrainedSimulation(hand, H)
    path = simulation.record(3)
    rest = pliant.equilibrium(hand, {"index_tip": (0, 0, 1)})
    many = pliant.equilibria(hand, [{}])
    arrays = {
        "model.compliance": model.compliance,
        "model.basis": model.basis,
        "poses": simulation.poses,
        "poses of all": whole.poses,
        "state": np.asarray(simulation.state),
        "trajectory.poses": path.poses,
        "trajectory.time": path.time,
        "q": rest.q,
        "configuration.poses": rest.poses,
        "equilibria.q": many.q,
    }
    for name, array in arrays.items():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        assert not array.flags.writeable, name
