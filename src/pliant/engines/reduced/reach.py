"""Reach: how far from rest a basis of joint motions holds a tolerance, and the vectors that make it reach farther.

Statics on the manifold of a model (`manifold`), with the springs and loads of the whole mechanism, is exact but for
what its basis cannot express. Near rest the static shapes of the end effectors suffice. Farther away
more vectors are needed: those that true equilibria leave over, most energetic first, as few as hold the tolerance on
equilibria that nothing was chosen from.

Loads are forces at the origins of the end effectors. Their size is the displacement they cause to first order: a push
by 0.5 radii would move an end effector by half the mechanism's radius if its compliance were constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from pliant import spatial
from pliant.engines.reduced.condensation import StaticShapes, condense, lowest_square
from pliant.engines.reduced.manifold import NaturalCoordinates, balanced_loads, statics, weigh
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.projection import Projection, project
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.statics import Configuration
from pliant.statics.equilibria import solve_cases
from pliant.statics.inertia import Inertia
from pliant.statics.loads import (
    Load,
    chart,
    coordinate_difference,
    parse_wrenches,
)
from pliant.statics.tangent import Tangent
from pliant.text import brief, counted, track

__all__ = ["append_vectors", "extend", "extend_basis", "measure_reach", "reaching", "span"]

Floats = NDArray[np.float64]

SAMPLES, FRESH, JUDGES = 48, 36, 48  # loads that vectors come from, that choose them, that measure reach
FARTHEST = 2.0  # radii: reach is measured up to here, or up to twice what was asked for
_MARGIN = 0.3  # of the tolerance: static error that vectors are chosen for, so that other directions and motion hold it
_ROUNDS = 3  # of adding samples, where the measured reach falls short
_BUCKLED = 2.0  # times the first-order displacement: equilibria farther away are behind a snap or a buckling
_OTHER = 0.1  # static error above which another equilibrium may have been found
_AT_SAMPLES = (
    1e-4  # static error at the samples of a blend and between them, where all of its vectors reach that
)
_OF_ALL = 1.5  # of the error with all vectors of a blend: error that is allowed where they do not
_SMALL = 0.1  # of the largest displacement of a blend's samples: errors are relative to no less
_SLOPE = 0.1  # weight of slopes against displacements
_CUT = 1e-6  # of the largest singular value: directions below are noise of the solver
_RIGID = 0.03  # of the largest compliance: directions that count as rigid for loads of equal energy
_GRID = np.array(
    [0.025, 0.05, 0.1, 0.175, 0.25, 0.35, 0.5, 0.7, 1.0]
)  # of the farthest size: they bracket reach


# --- equilibria of the whole mechanism


def end_points(model: ReducedModel, q: Floats) -> Floats:
    """Positions of a model's end effectors, (e, 3)."""
    m = model.mechanism
    indices = np.array([m.body_index(body) for body in model.end_effectors])
    return kinematics.body_poses(m, np.atleast_2d(q), indices)[0, :, :3, 3]


def distance_at_rest(coordinates: NaturalCoordinates, wrenches: Mapping[int, Load], q: Floats) -> float:
    """Distance of the end effectors at rest on a manifold from a true equilibrium `q`, m; infinite if none is found.

    Where several equilibria are stable under the same wrenches, by number of body, the one near the true one counts.
    """
    model, apart = coordinates.model, np.inf
    there = end_points(model, q)
    moved = float(np.linalg.norm(there - end_points(model, model.q)))
    for rest in (
        lambda: coordinates.equilibrium(wrenches, snap=False),
        lambda: coordinates.equilibrium_near(wrenches, q),
    ):
        try:
            reached = coordinates.joints(rest())
        except ConvergenceError:
            continue
        apart = min(apart, float(np.linalg.norm(end_points(model, reached) - there)))
        if apart < _OTHER * moved:
            break
    return apart


def _known_wrenches(model: ReducedModel) -> Mapping[str, Any]:
    if model.wrenches is None:
        raise InputError(
            "the model's file is of an older version that does not tell which loads it was made under: reduce again"
        )
    return model.wrenches


class Samples(NamedTuple):
    """True equilibria under forces on the end effectors.

    Attributes:
        wrenches: of the equilibria, as `pliant.equilibrium` takes them.
        configurations: the equilibria.
        failures: loads without one, with an unstable one, or with one behind a buckling.
    """

    wrenches: tuple[Mapping[str, Any], ...]
    configurations: tuple[Configuration, ...]
    failures: int

    def joined(self, other: Samples) -> Samples:
        """These equilibria and others."""
        return Samples(
            self.wrenches + other.wrenches,
            self.configurations + other.configurations,
            self.failures + other.failures,
        )


class Pushes:
    """Random forces on the end effectors of a model, and the equilibria under them.

    One end effector: half of the directions are uniform, the other half of uniform elastic energy, which has more of
    the stiff directions. Several end effectors: half of the loads push all of them, the other half a single one.
    """

    def __init__(self, model: ReducedModel, progress: bool = False):
        """Forces about the model's configuration; `progress` shows progress bars."""
        m, e = model.mechanism, len(model.end_effectors)
        self._model, self._progress = model, progress
        self._base = {body: Load.parse(value, body) for body, value in _known_wrenches(model).items()}
        for body in model.end_effectors:
            load = self._base.get(body)
            if load is not None and (load.frame != "world" or load.point.any()):
                raise InputError(f"reach: the load on '{body}' acts at its origin in world axes, or nowhere")
        if model.limits:
            raise InputError("reach: statics of a model with joint limits is linear: reduce without limits")
        held = not (self._base or model.gravity)
        moved = held and not np.array_equal(model.q, m.reference)
        self._truth = m.with_pose(model.q) if moved else m
        self._start = None if held else Configuration(m, model.q)
        self._indices = np.array([m.body_index(body) for body in model.end_effectors])
        self._rest = end_points(model, model.q)
        turn = np.zeros((6 * e, 3 * e))  # forces in world axes to wrenches in body axes
        for i, body in enumerate(model.end_effectors):
            turn[6 * i : 6 * i + 3, 3 * i : 3 * i + 3] = model.at.pose(body)[:3, :3].T
        C = model.compliance
        fixed = np.linalg.solve(np.eye(len(C)) - C @ model.load_stiffness, C)
        compliance = turn.T @ fixed @ turn
        self._compliance = (compliance + compliance.T) / 2
        values, axes = np.linalg.eigh(self._compliance)
        if not values[-1] > 0 or values[-1] < 1e-12 * m.radius**2 * float(np.abs(C).max()):
            raise InputError("reach: no end effector gives way to a force at its origin")
        rigid = _RIGID * values[-1]
        weight = np.sqrt(np.maximum(values, 0.0) / (values**2 + rigid**2))
        self._evenly = (axes * weight) @ axes.T  # near C^-1/2, without rigid directions
        own = np.diag(self._compliance).reshape(e, 3).sum(axis=1)
        self._mobile = np.flatnonzero(own > 1e-9 * own.max())

    def displacement(self, q: Floats) -> Floats:
        """Displacements of the end effectors, (e, 3)."""
        return end_points(self._model, q) - self._rest

    def directions(self, rng: np.random.Generator, count: int) -> Floats:
        """Forces, world axes, that move one end effector by one radius to first order, others by less, (count, 3e)."""
        e = len(self._model.end_effectors)
        out = rng.standard_normal((count, e, 3))
        for i, force in enumerate(out):
            if i % 2 and e > 1:
                force[np.arange(e) != self._mobile[i // 2 % len(self._mobile)]] = 0.0
            elif i % 2:
                force[:] = (self._evenly @ force.ravel()).reshape(e, 3)
            moved = (self._compliance @ force.ravel()).reshape(e, 3)
            force *= self._model.mechanism.radius / np.linalg.norm(moved, axis=1).max()
        return out.reshape(count, -1)

    def settle(self, forces: Floats, sizes: Floats) -> tuple[list[Any], list[Configuration | None]]:
        """Wrenches, and the true equilibrium of each or None, of unit `forces` times `sizes` in radii."""
        model = self._model
        wrenches: list[Any] = []
        for force, size in zip(forces, sizes, strict=True):
            each: dict[str, Any] = dict(self._base)
            for body, own in zip(model.end_effectors, size * force.reshape(-1, 3), strict=True):
                load = each.get(body, Load.of(body))
                each[body] = Load(load.force + own, load.torque, load.point)
            wrenches.append(each)
        found = solve_cases(
            self._truth,
            wrenches,
            gravity=model.gravity,
            start=self._start,
            progress="equilibria" if self._progress else "",
        )
        good = found.converged & (found.stability != "unstable")
        out: list[Configuration | None] = []
        for i, size in enumerate(sizes.tolist()):
            moved = np.linalg.norm(self.displacement(found.q[i]), axis=1).max()
            near = moved <= _BUCKLED * size * model.mechanism.radius
            out.append(found.configuration(i) if good[i] and near else None)
        return wrenches, out

    def draw(self, rng: np.random.Generator, sizes: Floats) -> Samples:
        """Equilibria under random forces of these sizes, radii."""
        wrenches, found = self.settle(self.directions(rng, len(sizes)), sizes)
        kept = [i for i, one in enumerate(found) if one is not None]
        good = tuple(one for one in found if one is not None)
        return Samples(tuple(wrenches[i] for i in kept), good, len(sizes) - len(kept))

    def error(self, model: NaturalCoordinates, wrenches: Mapping[str, Load], truth: Configuration) -> float:
        """Distance of the end effectors from a true equilibrium, over their displacement; infinite if none is found."""
        ends = zip(self._indices.tolist(), self._model.end_effectors, strict=True)
        own = {index: wrenches[body] for index, body in ends}
        return distance_at_rest(model, own, truth.q) / float(np.linalg.norm(self.displacement(truth.q)))

    def worst(self, basis: Floats, samples: Samples) -> float:
        """Largest error under samples with other joint motions, (nv, k)."""
        each = list(zip(samples.wrenches, samples.configurations, strict=True))
        coordinates, model = counted(basis.shape[1], "coordinate"), statics(self._model, basis)
        return max(
            (self.error(model, *one) for one in track(each, f"errors of {coordinates}", self._progress)),
            default=0.0,
        )


# --- vectors


def _principal(m: Mechanism, motions: Floats, least: float = 0.0) -> Floats:
    """Orthonormal motions in the metric of elastic energy, most energetic first, above a cut, (nv, n)."""
    _, sizes, mixes = np.linalg.svd(weigh(m, motions), full_matrices=False)
    kept = sizes > _CUT * max(least, float(sizes.max(initial=0.0)))
    found = motions @ (mixes[kept].T / sizes[kept])
    return found * np.where(np.cos(1.7 * np.arange(1, m.nv + 1)) @ found < 0, -1.0, 1.0)


class _Linear:
    """Static tangent of a model at its configuration."""

    def __init__(self, model: ReducedModel):
        _known_wrenches(model)
        self._model = model
        self._loads, self._multipliers = balanced_loads(model)
        self._free = not (len(self._loads.rows) or model.limits)

    def times(self, motions: Floats) -> Floats:
        """Forces per joint motion, (nv, n): springs and tendons; under load central differences of all forces."""
        m, q = self._model.mechanism, self._model.q
        if self._free:
            rows = m.tendons.dense(m.nv)
            return m.stiffness[:, None] * motions + rows.T @ (m.tendon_stiffness[:, None] * (rows @ motions))
        out = np.empty_like(motions)
        for column in range(motions.shape[1]):
            motion = motions[:, column]
            step = 1e-5 / max(float(np.abs(motion / m.dof_unit).max()), 1e-300)
            ahead, behind = (
                Tangent(
                    m, kinematics.move(m, q, sign * step * motion), self._loads, self._multipliers
                ).residual
                for sign in (1, -1)
            )
            out[:, column] = (ahead - behind) / (2 * step)
        return out

    def close(self, motions: Floats) -> Floats:
        """Nearest motions that keep loops and couplings closed, to first order."""
        if not len(self._multipliers):
            return motions
        tangent = Tangent(self._model.mechanism, self._model.q, self._loads, self._multipliers)
        tangent.factor()
        return tangent.solve(self.times(motions).T, exact=True)[0].T


class Shape(NamedTuple):
    """Joint coordinates of an equilibrium, (nq,), and their change per wrenches on the end effectors, (nv, 6e)."""

    q: Floats
    joint_map: Floats


def _shape(model: ReducedModel, c: Configuration) -> Shape:
    return Shape(c.q, project(c.mechanism, model.end_effectors, c).joint_map)


def _motions_of(model: ReducedModel, shape: Shape) -> Floats:
    """Displacement to an equilibrium, then its slopes per unit of elastic energy at the model, (nv, 1 + rank)."""
    r = model.rank
    shift, slope = chart(model.mechanism, model.q, *shape)
    stiffness = model.reduced_stiffness[:r, :r]
    root = np.linalg.cholesky((stiffness + stiffness.T) / 2)
    loaded = model.scale[:, None] * model.directions @ stiffness
    slopes: Floats = np.linalg.solve(root, (slope @ loaded).T).astype(np.float64).T
    return np.concatenate([shift[:, None], slopes], axis=1)


def _left_over(model: ReducedModel, shapes: Sequence[Shape]) -> Floats:
    """Motions of equilibria that the model's basis lacks, most energetic first, (nv, n).

    Displacements and slopes, less their projection onto the basis in the metric of the stiffness; principal axes of
    the rest.
    """
    m, linear = model.mechanism, _Linear(model)
    found = np.array([_motions_of(model, shape) for shape in shapes]).reshape(-1, m.nv, 1 + model.rank)
    forces = linear.times(model.basis).T
    inverse = np.linalg.solve(forces @ model.basis, forces)
    shifts = found[:, :, 0].T
    size = float(np.sqrt((weigh(m, model.basis @ (inverse @ shifts)) ** 2).sum(axis=0).mean()))
    slopes = _SLOPE * size * found[:, :, 1:].transpose(1, 0, 2).reshape(m.nv, -1)
    motions = linear.close(np.concatenate([shifts, slopes], axis=1))
    motions = _principal(m, motions - model.basis @ (inverse @ motions), size)
    return motions - model.basis @ (inverse @ motions)


def append_vectors(model: ReducedModel, vectors: Floats) -> ReducedModel:
    """The model with further joint motions, (nv, n), orthogonal to its basis in the metric of the stiffness.

    Motions that move no end effector come last in the basis. Others, which compressed coordinates leave over, become
    directions of their own. Links that follow the vectors lag less: their part of the lag is taken out of the inertia.
    """
    m, r, n = model.mechanism, model.rank, model.basis.shape[1]
    if not vectors.shape[1]:
        return model
    linear, kinetic = _Linear(model), Inertia(m, model.q)
    basis = np.concatenate([model.basis, vectors], axis=1)
    force, momentum = linear.times(vectors), kinetic.times(np.ascontiguousarray(vectors.T))
    rows = m.tendons.dense(m.nv)
    resist = m.damping[:, None] * vectors + rows.T @ (m.tendon_damping[:, None] * (rows @ vectors))
    matrices = []
    for old, product in (
        (model.reduced_stiffness, force),
        (model.reduced_mass, momentum.T),
        (model.reduced_damping, resist),
    ):
        matrix = np.zeros((basis.shape[1], basis.shape[1]))
        matrix[:n, :n] = old
        matrix[:, n:] = basis.T @ product
        matrix[n:, :n] = matrix[:n, n:].T
        matrices.append(matrix)
    stiffness, mass, _ = matrices
    coupling = mass[:r, n:]
    square = lowest_square(model.reduced_stiffness, model.reduced_mass)
    mass[:r, :r] -= square * coupling @ np.linalg.solve(stiffness[n:, n:], coupling.T)
    # Twists of the end effectors beyond those of the model's own directions.
    ends = np.concatenate([model.at.jacobian(body) for body in model.end_effectors])
    twists = model.scale[:, None] * (ends @ vectors)
    along = model.directions.T @ twists
    axes, sizes, mixes = np.linalg.svd(twists - model.directions @ along)
    largest = float(
        np.linalg.norm(model.scale[:, None] * ends, axis=1).max() * np.linalg.norm(vectors, axis=0).max()
    )
    new = int((sizes > _CUT * largest).sum())
    change = np.eye(basis.shape[1])
    if new:
        mixes[:new] /= sizes[:new, None]
        change[n:, n:] = mixes.T
        change[:r, n:] = -along @ mixes.T
        order = [*range(r), *range(n, n + new), *range(r, n), *range(n + new, basis.shape[1])]
        change = change[:, order]
    matrices = [change.T @ matrix @ change for matrix in matrices]
    return replace(
        model,
        basis=basis @ change,
        directions=np.concatenate([model.directions, axes[:, :new]], axis=1),
        vectors=model.vectors + vectors.shape[1] - new,
        **{
            f"reduced_{word}": (a + a.T) / 2 if word != "stiffness" else a
            for word, a in zip(("stiffness", "mass", "damping"), matrices, strict=True)
        },
    )


def _fewest(error: Callable[[int], float], most: int, target: float, start: int = 0) -> int:
    """A number of vectors whose error is within the target where that of fewer is not: doubling, then bisection."""
    low, high = start - 1, start
    while high < most and error(high) > target:
        low, high = high, min(most, max(1, 2 * high))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) > target else (low, middle)
    return high


def extend_basis(
    model: ReducedModel, pushes: Pushes, samples: Samples, fresh: Samples, target: float
) -> ReducedModel:
    """The model with as many vectors of the samples as bring the static error of the fresh ones to the target."""
    vectors = np.zeros((len(model.basis), 0))
    if samples.configurations:
        vectors = _left_over(model, [_shape(model, c) for c in samples.configurations])

    def error(count: int) -> float:
        return pushes.worst(np.concatenate([model.basis, vectors[:, :count]], axis=1), fresh)

    return append_vectors(model, vectors[:, : _fewest(error, vectors.shape[1], target)])


def _compress(
    model: ReducedModel,
    found: Projection,
    modes: int,
    pushes: Pushes,
    samples: Samples,
    fresh: Samples,
    target: float,
) -> ReducedModel:
    """The model in fewer coordinates than directions in which its end effectors give way, if that holds the target."""
    m = model.mechanism
    shapes = static_axes(model, found, samples.configurations)
    most = min(shapes.shape[1], model.rank)
    count = _fewest(lambda n: pushes.worst(shapes[:, :n], fresh), most, target, 1)
    if count >= model.rank:
        return model
    basis = shapes[:, :count]
    axes, sizes, mixes = np.linalg.svd(model.scale[:, None] * (found.rows @ basis), full_matrices=False)
    kept = int((sizes > _CUT * sizes[0]).sum())
    moving = basis @ (mixes[:kept].T / sizes[:kept])
    force = _Linear(model).times(moving).T
    stiffness = force @ moving
    static = StaticShapes(moving, stiffness, np.linalg.solve(stiffness, force).astype(np.float64))
    directions = np.ascontiguousarray(axes[:, :kept])
    condensed = condense(m, found, static, directions, model.scale, model.inertia, modes)
    small = replace(
        model,
        directions=directions,
        basis=condensed.basis,
        reduced_stiffness=condensed.stiffness,
        reduced_mass=condensed.mass,
        reduced_damping=condensed.damping,
    )
    rest = basis @ mixes[kept:].T
    return append_vectors(small, rest - moving @ (static.inverse @ rest))


def static_axes(model: ReducedModel, found: Projection, configurations: Sequence[Configuration]) -> Floats:
    """Principal axes of static shapes under forces on the end effectors, most energetic first, (nv, n).

    Shapes of the springs at rest under the forces that act on joints at rest and in other configurations.
    """
    shapes = [found.solve(_force_rows(model, c.q)).T for c in (model.at, *configurations)]
    return _principal(model.mechanism, np.concatenate(shapes, axis=1))


def _force_rows(model: ReducedModel, q: Floats) -> Floats:
    """Joint forces per force on the end effectors in a configuration, in the chart about the model, (3e, nv)."""
    m = model.mechanism
    c, shift = Configuration(m, q), coordinate_difference(m, model.q, q)
    rows = np.concatenate([c.jacobian(body, "world")[:3] for body in model.end_effectors])
    for d in m.primitive_dof[m.ball_primitives].tolist():
        rows[:, d : d + 3] = rows[:, d : d + 3] @ spatial.so3_right_jacobian(shift[d : d + 3])
    return rows


# --- reach


def measure_reach(
    model: ReducedModel, tolerance: float, farthest: float = FARTHEST, progress: bool = False
) -> float:
    """Largest size of pushes, radii, up to which the static error holds a tolerance, on some fixed directions.

    A direction counts up to where the mechanism buckles or finds no equilibrium. At most `farthest`.
    """
    pushes, own = Pushes(model), model.natural_coordinates.copy()
    forces = pushes.directions(np.random.default_rng(1), JUDGES)
    open_directions = np.arange(len(forces))

    def errors(which: NDArray[np.int64], size: float) -> Floats:
        """Errors of directions; NaN where there is no true equilibrium."""
        found = pushes.settle(forces[which], np.full(len(which), size))
        return np.array(
            [np.nan if c is None else pushes.error(own, w, c) for w, c in zip(*found, strict=True)]
        )

    held, find_root = 0.0, cast("Any", brentq)  # its type hints leave out plain floats
    for size in track((farthest * _GRID).tolist(), "reach", progress):
        after = errors(open_directions, size)
        beyond = after > tolerance
        if beyond.any():

            def excess(x: float, which: NDArray[np.int64] = open_directions[beyond]) -> float:
                """Error beyond the tolerance; bounded, as it is infinite where the model does not settle."""
                found = errors(which, x) if x > 0 else np.zeros(1)
                return (
                    float(np.nan_to_num(np.minimum(found, 3 * tolerance), nan=3 * tolerance).max())
                    - tolerance
                )

            return float(find_root(excess, held, size, xtol=1e-8 * farthest, rtol=1e-8))
        known = np.isfinite(after)
        if not known.any():
            break
        held, open_directions = size, open_directions[known]
    return held


def reaching(
    model: ReducedModel, found: Projection, modes: int, reach: float, tolerance: float, progress: bool = False
) -> ReducedModel:
    """The model with a basis that holds a tolerance at rest up to a reach; see `pliant.reduce`.

    Args:
        model: of static shapes, and modes.
        found: the projection it was made of.
        modes: number of fixed-interface modes.
        reach: size of pushes, radii.
        tolerance: largest static error.
        progress: show a progress bar.
    """
    pushes, target = Pushes(model, progress), _MARGIN * tolerance
    rng, farthest = np.random.default_rng(0), max(FARTHEST, 2 * reach)
    samples = fresh = Samples((), (), 0)
    out = model
    for _ in range(_ROUNDS):
        if out.reach >= reach:
            break
        samples = samples.joined(pushes.draw(rng, reach * np.arange(1, SAMPLES + 1) / SAMPLES))
        fresh = fresh.joined(pushes.draw(rng, np.full(FRESH, reach)))
        out = model
        if len(model.end_effectors) > 1:
            out = _compress(model, found, modes, pushes, samples, fresh, target)
        out = extend_basis(out, pushes, samples, fresh, target)
        out = replace(out, reach=measure_reach(out, tolerance, farthest, progress))
    count = len(samples.configurations) + len(fresh.configurations)
    return replace(out, tolerance=tolerance, samples=count, failures=samples.failures + fresh.failures)


def extend(model: ReducedModel, configuration: Configuration) -> ReducedModel:
    """See `ReducedModel.extend`."""
    if not isinstance(configuration, Configuration):
        raise InputError(
            f"extend: a Configuration expected, as `pliant.equilibrium` gives it, not {brief(configuration)}"
        )
    m = model.mechanism
    if configuration.mechanism.joint_names != m.joint_names or len(configuration.q) != m.nq:
        raise InputError("extend: the configuration is one of another mechanism")
    if model.inertia != "condensed":
        raise InputError(f'extend: vectors go with inertia="condensed", not {model.inertia!r}')
    return replace(
        append_vectors(model, _left_over(model, [_shape(model, configuration)])),
        reach=float("nan"),
        samples=model.samples + 1,
    )


# --- blends


def span(models: Sequence[ReducedModel]) -> ReducedModel:
    """The first model with the joint motions that all models span: their displacements from it and their slopes.

    As few vectors as leave end effectors at rest at the models' equilibria, and between them.
    """
    first = models[0]
    if len(models) == 1:
        return first
    vectors = _left_over(first, [Shape(model.q, model.joint_map) for model in models[1:]])
    cases = _judges(models)
    moved = [float(np.linalg.norm(end_points(first, q) - end_points(first, first.q))) for _, q in cases]
    least = max(_SMALL * max(moved), 1e-300)

    def error(count: int) -> float:
        coordinates = statics(first, np.concatenate([first.basis, vectors[:, :count]], axis=1))
        return max(
            distance_at_rest(coordinates, wrenches, q) / max(size, least)
            for (wrenches, q), size in zip(cases, moved, strict=True)
        )

    most = vectors.shape[1]
    target = max(_AT_SAMPLES, _OF_ALL * error(most))
    return replace(append_vectors(first, vectors[:, : _fewest(error, most, target)]), samples=len(models) - 1)


def _judges(models: Sequence[ReducedModel]) -> list[tuple[dict[int, Load], Floats]]:
    """Wrenches on the end effectors, by number of body, and joint coordinates of true equilibria under them.

    Those of all models, and those under half of their wrenches and under means of two that follow each other.
    """
    first = models[0]
    m, base = first.mechanism, _known_wrenches(first)
    ends = [m.body_index(body) for body in first.end_effectors]
    out, rows = list[tuple[dict[int, Load], Floats]](), list[Floats]()
    for model in models:
        given = {body: load for body, load in _known_wrenches(model).items() if body in model.end_effectors}
        out.append((parse_wrenches(m, given), model.q))
        turn = model.at.poses[ends, :3, :3]
        rows.append(np.einsum("eij,ekj->eki", turn, model.wrench.reshape(-1, 2, 3)))  # in world axes
    drawn = [(a + b) / 2 for a, b in pairwise(rows)] + [(rows[0] + b) / 2 for b in rows[2:]]
    others = {body: load for body, load in base.items() if body not in first.end_effectors}
    mixed = [
        {body: Load.of(body, *wrench) for body, wrench in zip(first.end_effectors, each, strict=True)}
        for each in drawn
    ]
    found = solve_cases(m, [{**others, **each} for each in mixed], gravity=first.gravity, start=first.at)
    good = found.converged & (found.stability != "unstable")
    return out + [(parse_wrenches(m, mixed[i]), found.q[i]) for i in np.flatnonzero(good).tolist()]
