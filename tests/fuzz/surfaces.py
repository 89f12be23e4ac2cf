"""Surfaces for fuzzing: simulations of each engine, batches, worlds, colliders, statics, and threads.

A surface has methods that make one random call each; `calls` lists them, and `check` says what holds after every one.
"""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from functools import cache
from time import sleep
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

import pliant
from fuzz.values import EXTREME, JUNK, damaged, number, pick, vector
from pliant.contact.collider import Collider
from pliant.engines.simulation import Simulation, State
from pliant.errors import InputError, PliantError

H = 1 / 200
WRONG = tuple(value for value in JUNK if type(value) is not int)  # as numbers of steps
KEPT = 20  # arrays of earlier simulations that are read again


class Surface:
    """Random calls on something that is made by `make`, and made anew now and then."""

    WEIGHTS: ClassVar[dict[str, float]] = {}

    def __init__(self, rng: Generator):
        self.rng = rng
        self.kept: list[Any] = []  # arrays that outlive what they came from
        self.calls = [name for name in dir(self) if name.startswith("do_")]
        self.begin()

    def begin(self) -> None:
        """Start with a new object."""
        raise NotImplementedError

    def check(self) -> None:
        """Assert what holds after every call."""

    def end(self) -> None:
        """End threads, if there are any."""

    def keep(self, array: Any) -> None:
        """Keep an array, in place of an older one."""
        self.kept.append(array)
        if len(self.kept) > KEPT:
            self.kept.pop(int(self.rng.integers(KEPT)))

    def do_read_kept(self) -> None:
        for array in self.kept:
            np.asarray(array).sum()

    def do_collect_garbage(self) -> None:
        gc.collect()

    def do_begin(self) -> None:
        self.begin()


# --- mechanisms


def chain(floating: bool = False) -> pliant.Mechanism:
    """Links on hinges and a ball; on a base that floats, or on the world."""
    b = pliant.Builder("chain")
    parent = "world"
    if floating:
        b.body("base", mass=2.0, inertia=(0.02, 0.03, 0.04), shapes=[pliant.shapes.box((0.05, 0.05, 0.05))])
        b.free("root", "world", "base")
        parent = "base"
    for i in range(4):
        shape = pliant.shapes.capsule(0.02, 0.06, position=(0.1, 0, 0))
        b.body(f"link{i}", mass=0.5, inertia=(2e-3, 3e-3, 4e-3), position=(0.2 * i, 0, 0), shapes=[shape])
        words: dict[str, Any] = {"anchor": (0.2 * i, 0, 0), "stiffness": 20.0, "damping": 0.2}
        if i == 2:
            b.ball(f"j{i}", parent, f"link{i}", **words)
        else:
            b.hinge(
                f"j{i}", parent, f"link{i}", axis=((0, 1, 0), (0, 0, 1), (0, 1, 0), (0.6, 0.8, 0))[i], **words
            )
        parent = f"link{i}"
    return b.build()


@cache
def mechanism(kind: str) -> pliant.Mechanism:
    """A mechanism by name."""
    if kind == "loop":
        return pliant.gallery.ladder(4)
    return pliant.gallery.hand() if kind == "hand" else chain(kind == "floating")


@cache
def model(kind: str, which: int) -> pliant.ReducedModel | pliant.BlendedModel:
    """Models of a mechanism: of all, or of some of its end effectors, or a blend."""
    m = mechanism(kind)
    ends = m.body_names[-1] if kind != "hand" else "index_tip"
    if which == 2:
        loads: list[dict[str, Any]] = [{}, {ends: (0, 0, 1.0)}, {ends: (0, 1.0, 0)}]
        return pliant.blend([pliant.reduce(m, ends, at=pliant.equilibrium(m, load)) for load in loads])
    return pliant.reduce(m, ends) if which == 0 else pliant.reduce(m, [ends, m.body_names[1]], modes=2)


# --- simulations


class Simulations(Surface):
    """A simulation of one engine, of several kinds of mechanisms."""

    ENGINE = ""
    KINDS: ClassVar[tuple[str, ...]] = ("fixed", "loop", "floating")
    WEIGHTS: ClassVar[dict[str, float]] = {"do_step": 6.0, "do_set_state": 4.0, "do_begin": 0.2}

    def begin(self) -> None:
        """Start with a new simulation."""
        self.kind = pick(self.rng, self.KINDS)
        self.simulation: Any = self.make()
        self.good = self.simulation.state
        self.states = [self.good]

    def make(self) -> Simulation:
        """A simulation of `self.kind`."""
        return pliant.simulate(mechanism(self.kind), self.ENGINE, H)

    @property
    def body(self) -> Any:
        """Name of a body, as a rule."""
        names = self.simulation.mechanism.body_names
        return pick(
            self.rng, (*names, names[-1], "world", "nobody", *JUNK[:3]) if self.rng.random() < 0.2 else names
        )

    def check(self) -> None:
        """Poses are finite, and rotations."""
        check_poses(self.simulation.poses)
        assert np.isfinite(self.simulation.time)

    def do_step(self) -> None:
        self.simulation.step(int(self.rng.integers(1, 6)))

    def do_step_junk(self) -> None:
        self.simulation.step(pick(self.rng, (-1, 0, 1.5, *WRONG)))

    def do_set_state(self) -> None:
        state = pick(self.rng, self.states)
        if self.rng.random() < 0.7:
            state = type(state)(state.fingerprint, damaged(self.rng, np.asarray(state)))
        self.simulation.state = state

    def do_return(self) -> None:
        self.simulation.state = self.good

    def do_set_junk_state(self) -> None:
        numbers = pick(self.rng, (np.zeros(0), np.zeros(3), np.asarray(self.good), np.zeros(10_000)))
        mark = pick(self.rng, (self.good.fingerprint, 0, -1, 2**70))
        self.simulation.state = pick(self.rng, (*JUNK, State(mark, numbers), State(mark, numbers)))

    def do_keep_state(self) -> None:
        self.states = [*self.states[-4:], self.simulation.state]

    def do_reset(self) -> None:
        self.simulation.reset()

    def do_wrench(self) -> None:
        rng, scale = self.rng, 10.0 ** self.rng.uniform(-2, 3)
        words = {"point": vector(rng, scale=0.1)} if rng.random() < 0.3 else {}
        frame = pick(rng, ("world", "body", "world", "x"))
        self.simulation.apply_wrench(
            self.body, vector(rng, scale=scale), vector(rng, scale=scale), frame=frame, **words
        )

    def do_clear(self) -> None:
        self.simulation.clear_wrenches()
        self.simulation.clear_motors()

    def do_motor(self) -> None:
        names = (*self.simulation.mechanism.joint_names, "*", "nothing")
        self.simulation.set_motor(pick(self.rng, names), torque=number(self.rng, 0.1))

    def do_pull(self) -> None:
        self.simulation.pull(
            self.body, vector(self.rng), vector(self.rng, scale=0.1), frequency=number(self.rng, 2.0)
        )

    def do_release(self) -> None:
        self.simulation.release(pick(self.rng, (None, None, self.body)))

    def do_set_q(self) -> None:
        self.simulation.q = vector(self.rng, self.simulation.mechanism.nq, pick(self.rng, (0.01, 0.3, 3.0)))

    def do_set_velocity(self) -> None:
        self.simulation.velocity = vector(self.rng, self.simulation.mechanism.nv, pick(self.rng, (0.1, 10.0)))

    def do_copy(self) -> None:
        other = pick(self.rng, (copy.copy, copy.deepcopy, copied_by_pickle))(self.simulation)
        self.keep(self.simulation.poses)
        self.simulation = other

    def do_keep_poses(self) -> None:
        self.keep(self.simulation.poses)
        self.keep(np.asarray(self.simulation.state))

    def do_read(self) -> None:
        s = self.simulation
        for word in (
            "q",
            "velocity",
            "energy",
            "effort",
            "violation",
            "wrenches",
            "motors",
            "pulls",
            "state",
        ):
            getattr(s, word)
        s.twist(self.body, vector(self.rng, scale=0.1))
        s.summary()

    def do_record(self) -> None:
        self.keep(self.simulation.record(2, int(self.rng.integers(1, 4))).poses)


class Reduced(Simulations):
    """Reduced models, by every method."""

    ENGINE = "reduced"
    MODELS = (0, 1)

    def make(self) -> Simulation:
        """A simulation by a random method."""
        rng = self.rng
        options: dict[str, Any] = {"method": pick(rng, ("auto", "small", "full", "tvcg"))}
        if rng.random() < 0.2 and self.MODELS == (0, 1):
            options = {"reconstruction": "twist", "threads": int(rng.integers(1, 3))}
        return pliant.ReducedSimulation(model(self.kind, pick(rng, self.MODELS)), H, **options)

    def do_switch(self) -> None:
        self.simulation.switch(
            model(pick(self.rng, (self.kind, self.kind, "fixed")), int(self.rng.integers(3)))
        )

    def do_coordinates(self) -> None:
        word = pick(self.rng, ("coordinates", "rates"))
        setattr(self.simulation, word, vector(self.rng, len(getattr(self.simulation, word)), 0.3))

    def do_impulse(self) -> None:
        self.simulation.apply_impulse(self.body, vector(self.rng, scale=0.1), vector(self.rng, scale=0.1))

    def do_move_base(self) -> None:
        self.simulation.move_base(pose(self.rng))


class Blended(Reduced):
    """Blends, on their manifold and mixed."""

    KINDS = ("fixed", "hand")
    MODELS = (2,)


class Constrained(Simulations):
    """The constrained engine, in every way it stabilises joints."""

    ENGINE = "constrained"

    def make(self) -> Simulation:
        """A simulation, stabilised in a random way."""
        ways = ("newmark", "newmark", "none", "full", "low-rank", "inertial", "constraint")
        return pliant.ConstrainedSimulation(mechanism(self.kind), H, stabilization=pick(self.rng, ways))


class Quasistatic(Simulations):
    """The quasi-static engine, hands on a floor among its mechanisms."""

    ENGINE = "quasistatic"
    WEIGHTS: ClassVar[dict[str, float]] = {**Simulations.WEIGHTS, "do_begin": 0.05}

    def make(self) -> Simulation:
        """A simulation, in contact or without obstacles."""
        if self.kind != "hand" or self.rng.random() < 0.3:
            return super().make()
        place = (*self.rng.normal(scale=0.05, size=2), self.rng.uniform(-0.1, 0.1))
        things = [pliant.shapes.plane(position=place)]
        return pliant.QuasistaticSimulation(
            mechanism("hand"), H, obstacles=things, friction=pick(self.rng, (0.0, 0.5))
        )

    def do_read_contacts(self) -> None:
        for contact in self.simulation.contacts:
            assert np.isfinite(contact.force).all()


class Adaptive(Simulations):
    """The adaptive engine, which moves trees."""

    ENGINE = "adaptive"
    KINDS: ClassVar[tuple[str, ...]] = ("fixed", "hand", "floating")


class Batches(Surface):
    """`ReducedBatch` of models of each kind, on one thread and on two."""

    WEIGHTS: ClassVar[dict[str, float]] = {"do_step": 4.0, "do_set_state": 4.0, "do_begin": 0.3}

    def begin(self) -> None:
        """Start with a new batch."""
        rng = self.rng
        what = model(*pick(rng, (("fixed", 0), ("fixed", 2), ("hand", 1), ("loop", 0), ("floating", 0))))
        method = pick(rng, ("auto", "full", "tvcg"))
        self.batch = pliant.ReducedBatch(
            what, H, int(rng.integers(1, 9)), threads=int(rng.integers(1, 3)), method=method
        )
        self.good = self.batch.state

    def check(self) -> None:
        """Poses are finite, and rotations."""
        check_poses(self.batch.poses)

    def do_step(self) -> None:
        self.batch.step(int(self.rng.integers(0, 6)))

    def do_step_junk(self) -> None:
        self.batch.step(pick(self.rng, (-1, 0, 1.5, *WRONG)))

    def do_set_state(self) -> None:
        self.batch.state = damaged(self.rng, self.good) if self.rng.random() < 0.7 else self.good

    def do_set_junk_state(self) -> None:
        self.batch.state = pick(self.rng, (*JUNK, self.good[0], self.good[:, :-1], self.good * 1e300))

    def do_keep_state(self) -> None:
        self.good = self.batch.state

    def do_wrench(self) -> None:
        rng = self.rng
        ends = self.batch.model.end_effectors
        scale = 10.0 ** rng.uniform(-2, 3)
        force: Any = vector(rng, scale=scale)
        if rng.random() < 0.5:
            force = scale * rng.normal(size=(int(pick(rng, (self.batch.copies, self.batch.copies, 1, 3))), 3))
        self.batch.apply_wrench(pick(rng, (*ends, *ends, "nobody")), force, vector(rng))

    def do_clear(self) -> None:
        self.batch.clear_wrenches()

    def do_reset(self) -> None:
        self.batch.reset()

    def do_keep_poses(self) -> None:
        self.keep(self.batch.poses)


# --- worlds


def pose(rng: Generator) -> Any:
    """A pose, as a rule."""
    out = np.eye(4)
    out[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    out[:3, 3] = 0.3 * rng.normal(size=3)
    if np.linalg.det(out[:3, :3]) < 0:
        out[:, 0] *= -1.0
    if rng.random() < 0.2:
        out.flat[rng.integers(16)] = pick(rng, EXTREME)
    return pick(rng, JUNK) if rng.random() < 0.05 else out


def shape(rng: Generator) -> Any:
    """A shape of any kind, some of them very small or large."""
    size = 0.03 * 10.0 ** (rng.normal() if rng.random() < 0.2 else 0.0)
    heights = rng.random((int(rng.integers(2, 9)), int(rng.integers(2, 9)))) * 0.05
    makers = (
        lambda: pliant.shapes.sphere(size),
        lambda: pliant.shapes.box((size, 2 * size, 0.5 * size)),
        lambda: pliant.shapes.capsule(size, size),
        lambda: pliant.shapes.cylinder(size, size),
        lambda: pliant.shapes.ellipsoid((size, 2 * size, size)),
        lambda: pliant.shapes.plane(),
        lambda: pliant.shapes.mesh(
            size * rng.normal(size=(12, 3)), [(0, 1, 2), (0, 2, 3), (4, 5, 6), (7, 8, 9)]
        ),
        lambda: pliant.shapes.height_field(heights, (8 * size, 8 * size)),
    )
    return pick(rng, makers)()


class Worlds(Surface):
    """A world with a mechanism whose level changes, and bodies that are added, pulled and piled up while it moves."""

    WEIGHTS: ClassVar[dict[str, float]] = {
        "do_step": 8.0,
        "do_set_state": 4.0,
        "do_add_body": 2.0,
        "do_begin": 0.3,
    }
    MOST = 24  # bodies; then a new world begins

    def begin(self) -> None:
        """Start with a floor, perhaps a mechanism, and a ball."""
        rng = self.rng
        self.world, self.count = pliant.World(H), 0
        self.world.add_static("floor", pliant.shapes.plane(), position=(0, 0, -0.5))
        self.kind = pick(rng, ("fixed", "fixed", "floating", "hand", ""))
        if self.kind:
            level, tree = self.level(), self.kind != "hand"
            engine = (
                "adaptive" if tree and isinstance(level, pliant.Mechanism) and rng.random() < 0.5 else None
            )
            self.world.add(level, "arm", engine=engine, self_contact=bool(rng.random() < 0.3))
        self.world.add_body("ball", pliant.shapes.sphere(0.03), position=(0, 1, -0.4))
        self.good = [self.world.state]

    def level(self) -> Any:
        """A level of detail of the mechanism."""
        which = int(self.rng.integers(4))
        return (
            mechanism(self.kind)
            if which > 1
            else model(self.kind, 2 * which if self.kind != "floating" else which)
        )

    def check(self) -> None:
        """Poses are finite, and rotations. A world whose bodies overlap from the start says so, and is left."""
        try:
            poses = self.world.poses
        except InputError as error:
            assert any(word in str(error) for word in ("overlap", "MuJoCo", "another thread")), error
            self.begin()
            return
        check_poses(poses)
        assert np.isfinite(self.world.time)

    @property
    def name(self) -> str:
        """A body, as a rule."""
        return pick(self.rng, (*self.world.body_names, "ball", "nobody"))

    def do_step(self) -> None:
        self.world.step(int(self.rng.integers(1, 5)))

    def do_add_body(self) -> None:
        rng = self.rng
        if self.count >= self.MOST:
            return self.begin()
        self.count += 1
        self.world.add_body(
            f"body{self.count}",
            [shape(rng) for _ in range(pick(rng, (1, 1, 2)))],
            mass=pick(rng, (None, 0.1, 1e-6, 1e6)),
            position=vector(rng, scale=0.5),
            velocity=vector(rng),
            spin=vector(rng),
            friction=pick(rng, (0.0, 0.8, 5.0)),
            rolling=pick(rng, (0.0, 0.01)),
            restitution=pick(rng, (0.0, 0.5)),
        )
        return None

    def do_add_static(self) -> None:
        self.count += 1
        if self.count < self.MOST:
            self.world.add_static(f"body{self.count}", shape(self.rng), position=vector(self.rng, scale=0.5))

    def do_pile(self) -> None:
        """Many boxes at nearly one place: contacts outgrow the arrays."""
        for _ in range(8):
            if self.count < self.MOST:
                self.count += 1
                place = (0.001 * self.count, 1.0, 0.2 * self.count)
                self.world.add_body(
                    f"body{self.count}", pliant.shapes.box((0.05, 0.05, 0.05)), position=place
                )
        self.world.poses
        for i in range(1, self.count + 1):
            if f"body{i}" in self.world and hasattr(self.world[f"body{i}"], "move"):
                at = np.eye(4)
                at[:3, 3] = (0.001 * i, 1.0, 0.0)
                self.world[f"body{i}"].move(at, (0, 0, 0), (0, 0, 0))
        self.world.step(2)

    def do_ignore(self) -> None:
        self.world.ignore(self.name, self.name)

    def do_switch(self) -> None:
        if self.kind:
            self.world.switch("arm", self.level())

    def do_detail(self) -> None:
        if self.kind:
            levels = pick(self.rng, ([], [self.level(), self.level()], [model("fixed", 0)], [None]))
            self.world.detail("arm", levels, number(self.rng, 1e-3), number(self.rng, 0.01))

    def do_pull(self) -> None:
        stiffness = number(self.rng, 50.0) if self.rng.random() < 0.3 else None
        self.world.pull(self.name, vector(self.rng), vector(self.rng, scale=0.05), stiffness=stiffness)

    def do_release(self) -> None:
        self.world.release(pick(self.rng, (None, self.name)))

    def do_wrench(self) -> None:
        name, _, link = self.name.partition("/")
        what = self.world[name]
        if hasattr(what, "apply_wrench"):
            what.apply_wrench(
                link or None, vector(self.rng, scale=10.0 ** self.rng.uniform(-2, 3)), vector(self.rng)
            )

    def do_move(self) -> None:
        what = self.world[self.name.partition("/")[0]]
        if hasattr(what, "move"):
            what.move(pose(self.rng), vector(self.rng), vector(self.rng))

    def do_set_state(self) -> None:
        rng, state = self.rng, pick(self.rng, self.good)
        if rng.random() < 0.8:
            state = self.damage(state)
        self.world.state = state

    def damage(self, state: Any) -> Any:
        """A state of which one part is damaged."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.1:
            return pick(rng, JUNK)
        if kind < 0.2:
            return state._replace(time=number(rng, 1e3))
        if kind < 0.25:
            return state._replace(fingerprint=pick(rng, (0, -1, *JUNK)))
        parts = list(state.actors if kind < 0.6 else state.memory)
        if parts:
            k = int(rng.integers(len(parts)))
            if isinstance(parts[k], State):
                parts[k] = State(parts[k].fingerprint, damaged(rng, np.asarray(parts[k])))
            else:
                parts[k] = damaged(rng, parts[k]) if rng.random() < 0.95 else pick(rng, JUNK)
        if rng.random() < 0.05:
            parts = parts[:-1]
        return state._replace(actors=tuple(parts)) if kind < 0.6 else state._replace(memory=tuple(parts))

    def do_return(self) -> None:
        self.world.state = self.good[-1]

    def do_keep_state(self) -> None:
        self.good = [*self.good[-3:], self.world.state]

    def do_copy(self) -> None:
        self.keep(self.world.poses)
        self.world = pick(self.rng, (copy.copy, copy.deepcopy, copied_by_pickle))(self.world)

    def do_reset(self) -> None:
        self.world.reset()

    def do_read(self) -> None:
        touching = self.world.contacts
        for word in ("points", "normals", "distances", "forces"):
            self.keep(getattr(touching, word))
        for name in self.world:
            self.world.pose(name) if self.world[name].__class__.__name__ != "MechanismHandle" else self.world[
                name
            ].q
        self.world.effort, self.world.speed_limit, self.world.pulls
        self.world.scene

    def do_record(self) -> None:
        self.keep(self.world.record(2).poses)


class Colliders(Surface):
    """`Collider.detect` of shapes at poses and margins of any kind, in memory that is too small at first."""

    WEIGHTS: ClassVar[dict[str, float]] = {"do_detect": 10.0, "do_begin": 0.5}

    def begin(self) -> None:
        """Start with new shapes."""
        rng = self.rng
        self.bodies = int(rng.integers(1, 9))
        shapes = [(int(rng.integers(-1, self.bodies)), shape(rng)) for _ in range(int(rng.integers(1, 12)))]
        pairs = rng.integers(-1, self.bodies, size=(3, 2)).tolist()
        self.margin = float(pick(rng, (0.0, 0.01, 1.0)))
        self.collider: Collider | None = None
        self.collider = Collider(
            shapes,
            self.bodies,
            static=rng.random(self.bodies) < 0.2,
            ignore=pairs,
            groups=rng.integers(-1, 3, self.bodies),
            margin=self.margin,
            near=pick(rng, (0.0, 0.005)),
            cored=range(int(rng.integers(self.bodies))),
        )

    def do_begin(self) -> None:
        try:
            self.begin()
        except PliantError:
            self.begin_simply()
            raise

    def begin_simply(self) -> None:
        """Start with two balls."""
        self.bodies, balls = 2, [(0, pliant.shapes.sphere(0.1)), (1, pliant.shapes.sphere(0.1))]
        self.collider = Collider(balls, 2, static=np.zeros(2, dtype=bool))

    def do_detect(self) -> None:
        assert self.collider is not None
        poses = np.tile(np.eye(4), (self.bodies, 1, 1))
        for i in range(self.bodies):
            one = pose(self.rng)
            if isinstance(one, np.ndarray) and one.shape == (4, 4):
                poses[i] = one
        if self.rng.random() < 0.05:
            poses = damaged(self.rng, poses)
        found = self.collider.detect(poses)
        assert all(np.isfinite(a).all() for a in (found.point, found.normal, found.distance))
        assert ((found.first >= -1) & (found.second < self.bodies)).all()
        self.keep(found.copy().point)

    def do_margins(self) -> None:
        assert self.collider is not None
        self.collider.margins[:] = pick(self.rng, (0.0, 0.01, 0.1, 10.0, 1e10, 1e100))

    def do_reserve(self) -> None:
        assert self.collider is not None
        self.collider.reserve(int(self.rng.integers(1000)))


# --- statics, threads


class Statics(Surface):
    """Equilibria, compliance, reduction and coordinates, whose kernels call each other by address."""

    def begin(self) -> None:
        """Choose a mechanism."""
        self.mechanism = mechanism(pick(self.rng, ("fixed", "loop", "hand")))
        self.at = pliant.equilibrium(self.mechanism, {})

    @property
    def loads(self) -> Any:
        """Wrenches on some bodies."""
        rng, names = self.rng, self.mechanism.body_names
        if rng.random() < 0.03:
            return pick(rng, JUNK)
        scale = 10.0 ** rng.uniform(-2, 2)
        return {
            pick(rng, (*names, *names, "nobody")): vector(rng, pick(rng, (3, 6)), scale)
            for _ in range(pick(rng, (0, 1, 2)))
        }

    def do_equilibrium(self) -> None:
        found = pliant.equilibrium(self.mechanism, self.loads)
        assert np.isfinite(found.q).all()
        check_poses(found.poses)
        self.at = found

    def do_equilibria(self) -> None:
        found = pliant.equilibria(self.mechanism, [self.loads for _ in range(int(self.rng.integers(1, 6)))])
        self.keep(found.q)

    def do_reduce(self) -> None:
        pliant.reduce(self.mechanism, pick(self.rng, (*self.mechanism.body_names, "nobody")), at=self.at)

    def do_compliance(self) -> None:
        self.keep(self.at.compliance(pick(self.rng, self.mechanism.body_names)))

    def do_configuration(self) -> None:
        at = pliant.Configuration(self.mechanism, vector(self.rng, self.mechanism.nq))
        self.keep(at.poses)
        self.keep(at.mass_matrix())


class Threads(Surface):
    """Random calls on one simulation or world while other threads step it: those are refused, or wait their turn."""

    WEIGHTS: ClassVar[dict[str, float]] = {"do_collect_garbage": 0.1, "do_begin": 0.05}

    def __init__(self, rng: Generator):
        self.failed: list[BaseException] = []
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []
        super().__init__(rng)
        self.calls = [name for name in dir(Worlds) if name.startswith("do_")]

    def __getattr__(self, word: str) -> Any:
        if not word.startswith("do_"):
            raise AttributeError(word)
        return getattr(self.inner, word)

    def begin(self) -> None:
        """Start a world and two threads that step it."""
        self.inner = Worlds(self.rng)
        self.threads = [threading.Thread(target=self.run) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        """Step the world, again and again."""
        while not self.stop.is_set():
            try:
                self.inner.world.step(3)
                self.inner.world.poses
                sleep(0.02)
            except PliantError:
                sleep(0.001)  # without it, threads that are refused leave no time to the others
            except BaseException as error:
                self.failed.append(error)

    def end(self) -> None:
        """Wait for the threads."""
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def check(self) -> None:
        """No thread has seen an exception of another kind."""
        if self.failed:
            raise self.failed[0]


def copied_by_pickle(what: Any) -> Any:
    """A copy of something by way of its bytes."""
    return pickle.loads(pickle.dumps(what))


def check_poses(poses: Any) -> None:
    """Assert that poses are finite, and rotations."""
    turn = poses[..., :3, :3]
    assert np.isfinite(poses).all()
    off = np.abs(turn @ np.swapaxes(turn, -1, -2) - np.eye(3)).max(initial=0.0)
    assert off < 1e-6, f"rotations are off by {off}"


SURFACES: dict[str, type[Surface]] = {
    "reduced": Reduced,
    "blended": Blended,
    "constrained": Constrained,
    "quasistatic": Quasistatic,
    "adaptive": Adaptive,
    "batches": Batches,
    "worlds": Worlds,
    "colliders": Colliders,
    "statics": Statics,
    "threads": Threads,
}
