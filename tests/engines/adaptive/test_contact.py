"""Adaptive simulations in worlds: rigid clusters that touch, and joints that impulses open.

Oracles: the constrained engine in the same world, of the mechanism with its rigid joints fixed where some are rigid;
momentum; weight.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import shapes, spatial
from pliant.engines.adaptive import solver
from pliant.engines.adaptive.solver import Solver
from pliant.engines.constrained.contact_step import ContactStep
from pliant.engines.simulation import State
from pliant.errors import ConvergenceError, InputError

H = 1 / 240
G = 9.81
LENGTH, RADIUS = 0.1, 0.012  # of a link, and of its capsule


def chain(count, height=0.5, tilt=0.0, stiffness=0.0, damping=0.0, *, free=True, planar=False, rigid=()):
    """Capsules in a row on hinges about y, and about z by turns unless `planar`; `rigid` ones are fixed joints."""
    b = pliant.Builder("chain")
    turn = spatial.so3_exp(np.array([0.0, -tilt, 0.0]))
    along, start = turn[:, 0] * LENGTH, np.array([0.0, 0.0, height])
    rod = shapes.rod((-0.35 * LENGTH, 0, 0), (0.35 * LENGTH, 0, 0), RADIUS)
    for i in range(count):
        name, before, anchor = f"l{i}", f"l{i - 1}", start + i * along
        inertia = (2e-5, 5e-5, 5e-5)
        place = start + (i + 0.5) * along
        b.body(name, mass=0.05, inertia=inertia, position=place, orientation=turn, shapes=[rod])
        if i == 0:
            if free:
                b.free("root", "world", name)
            else:
                b.hinge(
                    "root", "world", name, anchor=anchor, axis=(0, 1, 0), stiffness=stiffness, damping=damping
                )
        elif f"j{i}" in rigid:
            b.fixed(f"j{i}", before, name)
        else:
            axis = turn @ ((0, 1, 0) if planar or i % 2 else (0, 0, 1))
            spring = {"stiffness": stiffness, "damping": damping}
            b.hinge(f"j{i}", before, name, anchor=anchor, axis=axis, **spring)
    return b.build()


def floor(m, engine: str | None = "adaptive", timestep=H, **options: Any):
    """A world in which a mechanism falls on a plane."""
    world = pliant.World(timestep)
    world.add_static("floor", shapes.plane(), friction=0.5)
    world.add(m, "chain", engine=engine, friction=0.5, **options)
    return world


def with_ball(world, position, speed=(0.2, 0.0, 0.0)):
    world.add_body("ball", shapes.sphere(0.05), mass=0.1, position=position, velocity=speed, rolling=1e-3)
    return world


def moved_by(world, name="chain") -> pliant.AdaptiveSimulation:
    """The adaptive simulation that moves a mechanism."""
    out = world.simulation(name)
    assert isinstance(out, pliant.AdaptiveSimulation)
    return out


def gap(a, b):
    """Largest distance between the bodies of two worlds."""
    return float(np.abs(a.poses[:, :3, 3] - b.poses[:, :3, 3]).max())


def momentum(simulation):
    m = simulation.mechanism
    velocity = [simulation.twist(name, point=m.com[i])[:3] for i, name in enumerate(m.body_names)]
    return m.mass @ np.array(velocity)


# --- the constrained engine


def fallen(m):
    return floor(m, keep="*", precision=1e-12), floor(m, None, tolerance=1e-12)


def y_and_a_ball():
    m = pliant.gallery.y()
    worlds = []
    choices: tuple[dict[str, Any], ...] = ({"engine": "adaptive", "keep": "*"}, {})
    for words in choices:
        world = pliant.World(H)
        world.add(m, "chain", self_contact=True, **words)
        world.add_body("ball", shapes.sphere(0.02), mass=0.01, position=(0.055, 0.004, 0.29))
        worlds.append(world)
    return worlds


@pytest.mark.parametrize(
    ("worlds", "steps"),
    [
        (lambda: fallen(chain(8, tilt=0.3, stiffness=0.02, damping=2e-3)), 200),
        (
            lambda: [
                with_ball(w, (0.35, 0, 0.9)) for w in fallen(chain(8, tilt=0.2, stiffness=0.05, damping=2e-3))
            ],
            110,
        ),
        (y_and_a_ball, 60),
    ],
    ids=["chain on a plane", "ball on a chain", "ball on the y"],
)
def test_with_all_joints_active_it_is_the_constrained_engine(worlds, steps):
    whole, reference = worlds()
    touched = 0
    for _ in range(steps):
        whole.step()
        reference.step()
        touched += len(reference.contacts) > 0
        assert gap(whole, reference) < 1e-8
    assert touched > steps / 5


def random_tree(rng):
    """Capsules and balls on free, hinge, slide and ball joints, some with springs, dampers and limits."""

    def unit():
        x = rng.normal(size=3)
        return x / np.linalg.norm(x)

    b = pliant.Builder("tree")
    for r in range(int(rng.integers(1, 4))):
        ends: list[np.ndarray] = []
        for i in range(int(rng.integers(2, 9))):
            name, along = f"b{r}_{i}", unit()
            before = int(rng.integers(max(0, i - 3), i)) if i else -1
            start = ends[before] if i else np.array([2.0 * r, 0.0, 0.6])
            ends.append(start + 0.12 * along)
            across = unit()
            across = np.cross(along, across) / np.linalg.norm(np.cross(along, across))
            turn = np.stack([across, np.cross(along, across), along], axis=1)
            shape = shapes.capsule(0.015, 0.035) if rng.random() < 0.7 else shapes.sphere(0.02)
            mass = float(rng.choice([0.02, 0.1, 1.0]))
            inertia = mass * np.array([1.3e-3, 1.2e-3, 2e-4])
            place = (start + ends[-1]) / 2
            b.body(name, mass=mass, inertia=inertia, position=place, orientation=turn, shapes=[shape])
            parent, joint = f"b{r}_{before}" if i else "world", f"j{r}_{i}"
            spring = {"stiffness": float(rng.choice([0, 0.2, 5])), "damping": float(rng.choice([0, 0.01]))}
            kind = (
                ("hinge", "slide", "ball")[int(rng.integers(3))]
                if i
                else ("free", "hinge")[int(rng.random() < 0.2)]
            )
            if kind == "free":
                b.free(joint, parent, name)
            elif kind == "ball":
                b.ball(joint, parent, name, anchor=start, **spring)
            elif kind == "slide":
                b.slide(joint, parent, name, axis=unit(), stiffness=50.0, damping=0.1, limits=(-0.03, 0.03))
            else:
                limits = (-0.5, 0.5) if rng.random() < 0.3 else None
                b.hinge(joint, parent, name, anchor=start, axis=unit(), limits=limits, **spring)
    return b.build()


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_with_all_joints_active_move_as_in_the_constrained_engine(seed):
    """Until the contact solver ends without having converged, which magnifies rounding."""
    rng = np.random.default_rng(seed)
    m, timestep, own = random_tree(rng), (1 / 60, 1 / 240)[seed % 2], bool(seed % 3)
    worlds = []
    for words in ({"engine": "adaptive", "keep": "*", "precision": 1e-12}, {"tolerance": 1e-12}):
        options: dict[str, Any] = words
        world = pliant.World(timestep, sweeps=2000)
        world.add_static("floor", shapes.plane())
        world.add(m, "tree", self_contact=own, **options)
        worlds.append(world)
    touched = 0
    for _ in range(round(0.5 / timestep)):
        for world in worlds:
            world.step()
        if worlds[1].effort.residual > 1e-5:
            break
        touched += len(worlds[1].contacts) > 0
        assert gap(*worlds) < 1e-8
    assert touched >= 5


@pytest.mark.parametrize(
    ("kept", "timestep", "limit"),
    [(("root",), 1 / 240, 2e-5), (("root",), 1 / 1000, 5e-6), (("root", "j5"), 1 / 4000, 5e-4)],
)
def test_rigid_clusters_touch_as_bodies_with_fixed_joints_do(kept, timestep, limit):
    """A chain in which no other joints open, and the constrained engine on one in which the rest are fixed.

    Only in steps without end: the inertia that stands for tension differs.
    """
    m = chain(12, tilt=0.3, stiffness=0.2, damping=2e-3)
    world = floor(m, timestep=timestep, tolerance=1e20, slow=1e20, keep=kept, precision=1e-12)
    simulation = moved_by(world)
    active = simulation.active
    rigid = set(m.joint_names) - set(active)
    reference = chain(12, tilt=0.3, stiffness=0.2, damping=2e-3, rigid=rigid)
    reference = floor(reference, None, timestep, tolerance=1e-12)
    touched = 0
    for _ in range(round(0.8 / timestep)):
        world.step()
        reference.step()
        touched += len(world.contacts) > 0
    assert simulation.active == active
    assert touched > 0.1 / timestep
    assert gap(world, reference) < limit


def test_it_converges_to_the_constrained_engine():
    """Impulses open joints before they act, so that an impact is right as well, and not only what follows."""
    m = chain(20, height=0.15, tilt=0.3, stiffness=0.5, damping=0.02, planar=True)
    reference = floor(m, None, tolerance=1e-12)
    errors = []
    worlds = [floor(m, tolerance=tolerance, precision=1e-12) for tolerance in (1.0, 1e-2, 1e-4)]
    for _ in range(120):
        reference.step()
        for world in worlds:
            world.step()
        errors.append([gap(world, reference) for world in worlds])
    worst = np.max(errors, axis=0)
    assert len(reference.contacts) > 3
    assert worst[0] < 5e-3
    assert worst[1] < 1e-5
    assert worst[2] < 1e-7


# --- which joints open


def test_joints_near_a_contact_open_and_far_ones_stay_rigid():
    """A ball falls on the tip of a springy cantilever of 400 links: a tenth of them move, alike."""
    count = 400
    m = chain(count, stiffness=50.0, damping=0.5, height=1.0, free=False)
    worlds = []
    for engine in ("adaptive", None):
        world = pliant.World(H, gravity=(0, 0, 0))
        world.add(m, "chain", engine=engine)
        with_ball(world, (LENGTH * (count - 0.5), 0, 1.0 + 0.05 + RADIUS + 0.01), (0, 0, -2.0))
        worlds.append(world)
    world, reference = worlds
    assert moved_by(world).active == ()
    struck = False
    for _ in range(40):
        world.step()
        reference.step()
        struck |= len(world.contacts) > 0
        assert gap(world, reference) < 1e-3 * max(abs(reference["ball"].position[2] - 1.072), 1e-3)
    assert struck
    active = moved_by(world).active
    assert 10 < len(active) < count / 4
    near = [name for name in active if m.joint_names.index(name) >= 0.75 * count]
    assert len(near) > 0.9 * len(active)  # the others are on the way to the root of the assembly tree
    assert world.effort.solves > 0
    np.testing.assert_allclose(world["ball"].velocity, reference["ball"].velocity, atol=1e-3)


def test_a_tolerance_set_on_the_way_holds_for_contacts():
    m = chain(200, stiffness=50.0, damping=0.5, height=1.0, free=False)
    counts = []
    for tolerance in (1e-3, 1.0):
        world = pliant.World(H, gravity=(0, 0, 0))
        world.add(m, "chain", engine="adaptive", tolerance=1e6)
        with_ball(world, (LENGTH * 199.5, 0, 1.0 + 0.05 + RADIUS + 0.01), (0, 0, -2.0))
        world["chain"].tolerance = tolerance
        world.step(12)
        counts.append(len(moved_by(world).active))
    assert counts[0] > 1.5 * counts[1] > 0


def test_it_stands_still_and_rigid_in_the_end():
    m = chain(20, height=0.05, tilt=0.05, stiffness=0.5, damping=0.02)
    world = floor(m)
    world.step(400)
    simulation, before = moved_by(world), world.poses
    active = simulation.active
    assert len(active) <= m.joint_count / 2
    world.step(200)
    assert simulation.active == active
    assert np.abs(world.poses - before).max() < 1e-6
    assert simulation.kinetic < 1e-12


# --- physics


def test_it_carries_its_weight_gains_no_energy_and_stays_above_the_floor():
    """Energy grows only where a body is lifted out of the floor, by less than it lost there."""
    m = chain(24, height=0.1, tilt=0.3, stiffness=0.1, damping=3e-3)
    world = floor(m)
    simulation, weight = moved_by(world), m.total_mass * G
    start, deepest, forces = simulation.energy.total, 0.0, []
    energy, gain = start, 0.0
    for _ in range(600):
        world.step()
        now = simulation.energy.total
        gain, energy = gain + max(now - energy, 0.0), now
        deepest = min(deepest, world.contacts.distances.min(initial=0.0))
        forces.append(world.contacts.force("chain"))
    assert energy < 0.2 * start
    assert gain < 1e-5 * start
    assert deepest > -0.1 * RADIUS
    np.testing.assert_allclose(forces[-100:], np.tile([0, 0, weight], (100, 1)), atol=0.01 * weight)


@pytest.mark.parametrize("timestep", [1 / 500, 1 / 2000])
def test_impulses_of_contact_are_changes_of_momentum(timestep):
    """To the first order of the step, as in the constrained engine: contact points are carried along straight lines."""
    m = chain(12, height=0.05, tilt=0.4, stiffness=0.1, damping=3e-3)
    world = floor(m, timestep=timestep, precision=1e-10)
    simulation, weight = moved_by(world), np.array([0, 0, -m.total_mass * G])
    start, total, exchanged = momentum(simulation), np.zeros(3), 0.0
    for _ in range(round(0.4 / timestep)):
        world.step()
        push = timestep * (world.contacts.force("chain") + weight)
        total += push
        exchanged += float(np.abs(push).max())
    assert len(world.contacts) > 2
    missing = np.abs(momentum(simulation) - start - total).max()
    assert missing < 15 * timestep * exchanged


def test_two_adaptive_chains_and_a_mechanism_touch():
    """Joints of one open while the others wait: all of them step together."""
    m = chain(10, stiffness=0.2, damping=5e-3)
    total = 0.0
    world = pliant.World(H)
    world.add_static("floor", shapes.plane())
    for i, engine in enumerate(("adaptive", "adaptive", None)):
        b = chain(10, height=0.1 + 0.15 * i, tilt=0.1 * i, stiffness=0.2, damping=5e-3)
        world.add(b, f"chain{i}", engine=engine)
        total += m.total_mass * G
    with_ball(world, (0.4, 0, 0.9))
    total += 0.1 * G
    world.step(700)
    assert abs(-world.contacts.force("floor")[2] / total - 1) < 0.02


def test_bodies_fixed_to_the_world_and_to_each_other_touch():
    b = pliant.Builder("shelf")
    box = shapes.box((0.1, 0.1, 0.01))
    b.body("wall", mass=1.0, position=(0, 0, 0.5), shapes=[box])
    b.body("board", mass=1.0, position=(0.3, 0, 0.5), shapes=[box])
    b.body("edge", mass=0.5, position=(0.55, 0, 0.5), shapes=[box])
    b.fixed("bolt", "world", "wall")
    b.hinge("hinge", "wall", "board", anchor=(0.15, 0, 0.5), axis=(0, 1, 0), stiffness=500.0, damping=20.0)
    b.fixed("glue", "board", "edge")
    m = b.build()
    heights = []
    for engine in ("adaptive", None):
        world = pliant.World(H)
        world.add(m, "shelf", engine=engine)
        for i, x in enumerate((0.0, 0.56)):
            world.add_body(f"ball{i}", shapes.sphere(0.03), mass=0.5, position=(x, 0, 0.55), rolling=0.02)
        world.step(300)
        heights.append([world[f"ball{i}"].position for i in range(2)])
        assert abs(world.contacts.force("ball0")[2] / (0.5 * G) - 1) < 1e-3
    np.testing.assert_allclose(heights[0], heights[1], atol=1e-5)
    assert heights[0][0][2] == pytest.approx(0.54, abs=1e-3)


def test_a_pull_in_a_world_opens_joints():
    m = chain(60, stiffness=1.0, damping=0.02, free=False)
    worlds = []
    for engine in ("adaptive", None):
        world = pliant.World(H, gravity=(0, 0, 0))
        world.add(m, "chain", engine=engine)
        world.add_body("far", shapes.sphere(0.05), position=(0, 5, 0))
        world.pull("chain/l59", (5.9, 0, 0.7), stiffness=20.0, damping=1.0)
        worlds.append(world)
    for _ in range(60):
        for world in worlds:
            world.step()
    moved = worlds[1].pose("chain/l59")[2, 3] - 0.5
    assert moved > 0.05
    assert 1 < len(moved_by(worlds[0]).active) <= m.joint_count
    assert gap(*worlds) < 0.01 * moved


# --- the protocol of worlds


def busy_world():
    world = with_ball(floor(chain(20, height=0.1, tilt=0.4, stiffness=0.1, damping=3e-3)), (0.4, 0, 0.8))
    world.add(chain(3, height=2.0, stiffness=0.3, damping=0.01), "other", engine="adaptive")
    return world


def path(world, steps=25):
    out = []
    for _ in range(steps):
        world.step()
        out.append(world.poses)
    return np.array(out)


def test_states_copies_pickles_and_resets_go_on_to_the_last_digit():
    world = busy_world()
    world.step(45)
    state = world.state
    expected = path(world)
    assert len(world.contacts) > 0
    world.state = state
    assert np.array_equal(path(world), expected)
    world.state = state
    copies = [world.copy(), pickle.loads(pickle.dumps(world)), busy_world()]
    copies[2].state = state
    for other in copies:
        assert np.array_equal(path(other), expected)
    world.reset()
    world.step(45)
    assert np.array_equal(path(world), expected)
    world.reset()
    world.step(45)
    stops = []
    for poses in expected:  # a state that is set between any two steps changes nothing
        world.state = world.state
        world.step()
        stops.append(np.array_equal(world.poses, poses))
    assert all(stops)


def test_clusters_without_inner_records_touch_alike(monkeypatch):
    """Records of small clusters are computed when contacts need them."""
    world = busy_world()
    with monkeypatch.context() as patch:
        patch.setattr(solver, "_ROOM", 0)
        patch.setattr(solver, "_TWIG", 6)
        lean = busy_world()
        for _ in range(80):
            world.step()
            lean.step()
            np.testing.assert_allclose(lean.poses, world.poses, atol=1e-9)
            assert moved_by(lean).active == moved_by(world).active
        state = lean.state
        expected = path(lean)
        lean.state = state
        assert np.array_equal(path(lean), expected)
    assert len(world.contacts) > 3


def test_damaged_forces_of_contact_in_a_state_are_refused():
    world = busy_world()
    world.step(60)
    simulation = moved_by(world)
    numbers = np.array(simulation.state)
    assert len(simulation.state) > len(busy_world().state.actors[1])
    before = world.poses
    for at, value in ((-7, 1e6), (-7, -1.0), (-7, 0.5), (-1, np.nan)):
        damaged = numbers.copy()
        damaged[at] = value
        with pytest.raises(InputError, match="damaged"):
            simulation.state = State(simulation.state.fingerprint, damaged)
    with pytest.raises(InputError, match="damaged"):
        simulation.state = State(simulation.state.fingerprint, numbers[:-1])
    assert np.array_equal(world.poses, before)


def test_a_step_that_fails_leaves_the_world_as_it_was():
    world = busy_world()
    world.step(45)
    poses, time = world.poses, world.time
    world["chain"].apply_wrench("l5", force=(1e200, 0, 0))
    with pytest.raises(ConvergenceError, match="shorter timestep"):
        world.step(3)
    assert world.time == time
    assert np.array_equal(world.poses, poses)
    world["chain"].clear_wrenches()
    again = busy_world()
    again.step(45)
    np.testing.assert_allclose(path(world), path(again), atol=1e-9)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("owner", "word"),
    [(Solver, word) for word in ("review_if_due", "release", "switch", "set_pushes", "count_step")]
    + [(ContactStep, word) for word in ("begin", "withdraw", "finish")],
)
def test_interrupts_leave_whole_steps(owner, word, late, monkeypatch):
    """Ctrl-C before or after a part of a step, also in reviews and in steps that are made again."""
    world, other = busy_world(), busy_world()
    whole, left = getattr(owner, word), [0]

    def interrupted(*args: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not late:
            raise KeyboardInterrupt
        out = whole(*args)
        if left[0] == 0:
            raise KeyboardInterrupt
        return out

    monkeypatch.setattr(owner, word, interrupted)
    for calls in (9, 2, 14):
        left[0] = calls
        with pytest.raises(KeyboardInterrupt):
            world.step(200)
        left[0] = 0
        other.step(round((world.time - other.time) / H))
        assert np.array_equal(world.poses, other.poses)
        assert moved_by(world).active == moved_by(other).active
    assert np.array_equal(path(world), path(other))


def test_a_level_of_detail_comes_back_as_the_engine_it_was_added_with():
    m = chain(6, stiffness=1.0, damping=0.02, free=False)
    world = pliant.World(H)
    world.add(m, "chain", engine="adaptive", tolerance=0.1)
    world.add_static("floor", shapes.plane())
    world.step(5)
    world.switch("chain", pliant.reduce(m, ["l5"]))
    assert world.simulation("chain").engine == "reduced"
    world.step(5)
    world.switch("chain", m)
    assert world.simulation("chain").engine == "adaptive"
    world.step(5)
    world.reset()
    assert world.simulation("chain").engine == "adaptive"
    assert world.time == 0.0


def test_a_model_added_by_name_of_its_engine_becomes_whole():
    m = chain(4, stiffness=1.0, damping=0.02, free=False)
    world = pliant.World(H)
    world.add(pliant.reduce(m, ["l3"]), "chain", engine="reduced")
    world.switch("chain", m)
    assert world.simulation("chain").engine == "constrained"


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("quasistatic", "has no contact.*'adaptive' for huge trees"),
        ("reduced", r"give pliant.reduce\(mechanism\)"),
        ("blended", r"give pliant.sample\(mechanism\).model"),
        ("magic", "the engine"),
    ],
)
def test_engines_without_contact_are_refused(engine, message):
    world = pliant.World(H)
    with pytest.raises(InputError, match=message):
        world.add(chain(3), engine=engine)
    assert "chain" not in world


def test_loops_are_refused_with_a_remedy():
    world = pliant.World(H)
    with pytest.raises(InputError, match=r"has loops.*use ConstrainedSimulation"):
        world.add(pliant.gallery.ladder(3), engine="adaptive")
