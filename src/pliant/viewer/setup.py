"""`Setup`: which engine runs on what, as one value; and starting an engine from it, at a pose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.quasistatic import QuasistaticSimulation
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation, blend, reduce
from pliant.engines.reduced.coordinates import coordinates_of
from pliant.errors import ConvergenceError, InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.mechanism.assembly import close_loops
from pliant.mechanism.kinematics import link_poses
from pliant.statics import Configuration, equilibrium

__all__ = ["ENGINES", "Models", "Sample", "Setup", "Simulation", "coordinates", "place", "resolve"]

Floats = NDArray[np.float64]
Simulation = ReducedSimulation | ConstrainedSimulation | QuasistaticSimulation
Sample = Configuration | None  # where a reduced model is made; None the reference pose, at rest

ENGINES = ("reduced", "blended", "constrained", "quasistatic")
_FEW = 500  # bodies: up to this, steps are short, so that a mouse pulls hard


@dataclass(frozen=True, eq=False)
class Setup:
    """What runs.

    Attributes:
        engine: one of `ENGINES`.
        mechanism: what moves.
        gravity: m/s²; zero means compensated: the reference pose is the rest pose.
        end_effectors: bodies that a reduced model knows.
        samples: where reduced models are made, the one at rest first.
        timestep: s; None leaves it to the engine.
    """

    engine: str
    mechanism: Mechanism
    gravity: Floats
    end_effectors: tuple[str, ...]
    samples: tuple[Sample, ...]
    timestep: float | None = None

    @property
    def reduced(self) -> bool:
        """Whether the engine works on reduced models."""
        return self.engine in ("reduced", "blended")

    @property
    def step(self) -> float:
        """Length of a step, s."""
        if self.timestep is not None:
            return self.timestep
        if self.mechanism.body_count <= _FEW:
            return 1 / 240
        # Without velocities, a step is as far as it goes towards rest: long ones get there sooner.
        return 1 / 10 if self.engine == "quasistatic" else 1 / 60


class Models:
    """Reduced models of setups; what was made once is kept."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], ReducedModel] = {}
        self._style: dict[str, Any] = {}

    def keep(self, mechanism: Mechanism, sample: Sample, model: ReducedModel) -> None:
        """Use a given model wherever its mechanism, sample and end effectors are asked for."""
        self._kept[mechanism, sample, model.end_effectors] = model

    def like(self, given: BlendedModel) -> None:
        """Blend as this one does."""
        joints = "mean" if given.polynomial is None else "polynomial"
        words = {"exponent": given.exponent, "distance": given.distance, "matrices": given.matrices}
        self._style = {**words, "joints": joints}

    def model(self, setup: Setup) -> ReducedModel | BlendedModel:
        """The model, or blend of them, that a setup asks for."""
        if setup.engine == "reduced":
            return self._one(setup, setup.samples[0], True)
        return blend([self._one(setup, sample, False) for sample in setup.samples], **self._style)

    def _one(self, setup: Setup, sample: Sample, modes: bool) -> ReducedModel:
        key = (setup.mechanism, sample, setup.end_effectors)
        found = self._kept.get(key)
        if found is None or (found.modes and not modes):  # models with modes are not blended
            if len(self._kept) > 200:
                self._kept.clear()
            found = reduce(setup.mechanism, setup.end_effectors, at=sample)
            self._kept[key] = found
        return found


def resolve(setup: Setup) -> tuple[Setup, int]:
    """The same setup with its samples found anew, after mechanism or gravity have changed; how many were lost."""
    m, g = setup.mechanism, setup.gravity
    gravity = tuple(g.tolist()) if g.any() and not _floats(m) else None
    rest = None if gravity is None else equilibrium(m, gravity=gravity)
    found: list[Sample] = [rest]
    for sample in setup.samples[1:]:
        try:
            assert sample is not None
            found.append(
                equilibrium(m, sample.wrenches, gravity=gravity, start=sample.q, limits=sample.limits)
            )
        except PliantError:
            continue  # softer springs may no longer hold that load
    return replace(setup, samples=tuple(found)), len(setup.samples) - len(found)


def place(setup: Setup, models: Models, q: Floats | None) -> Simulation:
    """Start the engine of a setup, at rest, at coordinates of its mechanism or as near to them as it can be."""
    m, h = setup.mechanism, setup.step
    if setup.reduced:
        model = models.model(setup)
        gravity = None if model.base is None else setup.gravity
        simulation = ReducedSimulation(model, h, gravity=gravity)
        if q is not None:
            _place_reduced(simulation, m, q)
        return simulation
    start = None if q is None else q
    if setup.engine == "constrained":
        if start is not None:
            start = close_loops(m, start)  # reduced models open them a little
        return ConstrainedSimulation(m, h, setup.gravity, start=start)
    if setup.engine == "quasistatic":
        return QuasistaticSimulation(m, h, setup.gravity, start=start)
    raise InputError(f"the engine is one of {', '.join(ENGINES)}, not {setup.engine!r:.80}")


def _place_reduced(simulation: ReducedSimulation, m: Mechanism, q: Floats) -> None:
    model = simulation.model
    own = model.mechanism
    known = q if own.nq == m.nq else _shared(m, q, own)
    y, v = coordinates_of(model, simulation.timestep).from_joints(known, np.zeros(own.nv))
    state = simulation.state
    state[1 : 1 + len(y)], state[1 + len(y) : 1 + len(y) + len(v)] = y, 0.0
    if not np.isfinite(state).all():
        raise ConvergenceError("the reduced model has no state near this pose")
    simulation.state = state
    if model.base is not None:
        simulation.move_base(link_poses(m, q)[m.links.body_link[m.body_index(model.base.body)]])


def coordinates(simulation: Simulation, m: Mechanism) -> Floats:
    """Coordinates of a mechanism as a simulation of it stands; a reduced model's base, if it floats, included."""
    if not isinstance(simulation, ReducedSimulation):
        return simulation.q
    own = simulation.model.mechanism
    q = simulation.configuration.q
    if own.nq == m.nq:
        return q.copy()
    out = m.reference.copy()
    for name in own.joint_names:
        j, i = own.joint_index(name), m.joint_index(name)
        part, whole = own.joint_coordinates(j), m.joint_coordinates(i)
        if part.stop - part.start == whole.stop - whole.start:
            out[whole] = q[part]
        elif (
            simulation.model.base is not None
            and m.body_names[m.joint_children[i]] == simulation.model.base.body
        ):
            out[whole] = _free(m, i, simulation.pose(simulation.model.base.body))
    return out


def _shared(m: Mechanism, q: Floats, own: Mechanism) -> Floats:
    """Coordinates of a mechanism with its base fixed, from those of the one with its base free."""
    out = own.reference.copy()
    for name in own.joint_names:
        part, whole = own.joint_coordinates(own.joint_index(name)), m.joint_coordinates(m.joint_index(name))
        if part.stop - part.start == whole.stop - whole.start:
            out[part] = q[whole]
    return out


def _free(m: Mechanism, joint: int, pose: Floats) -> Floats:
    """Coordinates of a free joint to the world, three shifts and a quaternion, that bring its child to a pose."""
    relative = spatial.se3_inverse(m.parent_frames[joint]) @ pose @ m.child_frames[joint]
    return np.concatenate([relative[:3, 3], spatial.quat_from_matrix(relative[:3, :3])])


def _floats(m: Mechanism) -> bool:
    """Whether a free joint without springs carries some of the mechanism: it falls, and is in no equilibrium."""
    return any(
        m.joint_types[j] == "free" and m.joint_parents[j] < 0 and not m.stiffness[m.joint_dofs(j)].any()
        for j in range(m.joint_count)
    )
