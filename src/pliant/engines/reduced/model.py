"""`ReducedModel`: compliance, inertia and damping of a mechanism at its end effectors, linearised (FORK⁻¹S)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eig

from pliant import spatial
from pliant.checks import choice, numbers
from pliant.errors import InputError, PliantWarning, UnknownNameError
from pliant.mechanism import Mechanism, kinematics
from pliant.read_only import read_only
from pliant.text import brief, suggestion

if TYPE_CHECKING:
    from pliant.engines.reduced.accuracy import Accuracy
    from pliant.engines.reduced.blended import BlendedModel
    from pliant.engines.reduced.manifold import Manifold, NaturalCoordinates
    from pliant.engines.reduced.simulation import ReducedSimulation
    from pliant.statics import Configuration

__all__ = ["FAR", "FreeBase", "Model", "ReducedModel", "StiffnessEllipsoid"]

Floats = NDArray[np.float64]
FAR = 0.3  # radii: with static shapes alone, errors at rest of ten per cent and more begin there (docs/reduced.md)
_MOST_ROWS = 300  # rows of loops and couplings: more are not searched for independent ones
_HELD = 1e-4  # of the largest motion of an end effector: axes that files round to four digits move it as far
_RESOLVED = 1e-12  # of the largest compliance: smaller ones are lost in its rounding


class StiffnessEllipsoid(NamedTuple):
    """Principal stiffnesses of a body, softest first.

    Attributes:
        centre: the body's origin, world, m.
        stiffness: N/m, or N m/rad for rotations; infinite where the mechanism does not give way.
        axes: their directions, world, in columns.
    """

    centre: Floats
    stiffness: Floats
    axes: Floats


@dataclass(frozen=True, eq=False)
class FreeBase:
    """Body that carries a floating mechanism, with the inertia of all of it (TVCG section 6.1).

    Attributes:
        body: its name.
        inertia: spatial inertia of the whole mechanism about the body's origin, in its frame, (6, 6).
        mechanism: the mechanism with its base free.
    """

    body: str
    inertia: Floats
    mechanism: Mechanism

    @cached_property
    def joint(self) -> int:
        """Number of the free joint."""
        return int(self.mechanism.topology.tree_joint[self.mechanism.body_index(self.body)])

    @property
    def dofs(self) -> slice:
        """Dofs of the free joint in the mechanism."""
        return self.mechanism.joint_dofs(self.joint)

    @cached_property
    def carried(self) -> NDArray[np.bool_]:
        """Mask of the bodies that hang on the base, itself included, (bodies,)."""
        m = self.mechanism
        base, out = m.body_index(self.body), np.zeros(m.body_count, dtype=bool)
        for body in range(m.body_count):
            at = body
            while at >= 0 and at != base:
                at = int(m.topology.parent[at])
            out[body] = at == base
        return out

    def motion(self, q: Floats, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """Centre of mass of the whole, its velocity, and angular momentum about it, world axes, (3,) each."""
        from pliant.statics.inertia import link_twists

        m, of = self.mechanism, self.mechanism.links.body_link[self.carried]
        local, poses = kinematics.link_transforms(m, q)
        twists = link_twists(m, local, np.ascontiguousarray(rates[None]))[0][of]
        turn, mass = poses[of, :3, :3], m.mass[self.carried]
        arms = (turn @ m.com[self.carried][:, :, None])[:, :, 0]
        spins = (turn @ twists[:, 3:, None])[:, :, 0]
        velocities = (turn @ twists[:, :3, None])[:, :, 0] + np.cross(spins, arms)
        centres = poses[of, :3, 3] + arms
        centre, velocity = mass @ centres / mass.sum(), mass @ velocities / mass.sum()
        own = turn @ (m.inertia[self.carried] @ twists[:, 3:, None])
        momentum = np.cross(centres - centre, mass[:, None] * (velocities - velocity)).sum(axis=0)
        return centre, velocity, momentum + own[:, :, 0].sum(axis=0)

    @cached_property
    def _kept(self) -> NDArray[np.bool_]:
        """Joints that the mechanism keeps when its base is fixed, (joints,)."""
        m = self.mechanism
        return np.array([m.joint_types[j] != "free" or m.joint_parents[j] >= 0 for j in range(m.joint_count)])

    @cached_property
    def own_dofs(self) -> NDArray[np.bool_]:
        """Mask of the dofs that the mechanism with a fixed base has, too, (nv,)."""
        return self._kept[self.mechanism.dof_joint]

    @cached_property
    def own_coordinates(self) -> NDArray[np.bool_]:
        """Mask of the joint coordinates that the mechanism with a fixed base has, too, (nq,)."""
        out = np.ones(self.mechanism.nq, dtype=bool)
        for j in np.flatnonzero(~self._kept).tolist():
            out[self.mechanism.joint_coordinates(j)] = False
        return out


class Model:
    """Common part of `ReducedModel` and `BlendedModel`: simulation, errors, files."""

    def _own(self) -> ReducedModel | BlendedModel:
        return cast("ReducedModel | BlendedModel", self)

    def simulate(self, timestep: float = 1e-3, **options: Any) -> ReducedSimulation:
        """The model in motion; options as of `ReducedSimulation`."""
        from pliant.engines.reduced.simulation import ReducedSimulation

        return ReducedSimulation(self._own(), timestep, **options)

    def error(
        self, wrenches: Sequence[Mapping[str, Any]], progress: bool = False, method: str = "exact"
    ) -> Accuracy:
        """Errors at rest under wrenches, against the true equilibria (TVCG Figs. 5 and 7); has `summary` and `plot`.

        Args:
            wrenches: mappings `{end effector: wrench}`, as `pliant.equilibrium` takes them.
            progress: show a progress bar.
            method: statics of the model: "exact", or "tvcg", linear models and their means.
        """
        from pliant.engines.reduced.accuracy import measure

        return measure(self._own(), wrenches, progress, method)

    def with_damping_ratio(self, ratio: float) -> ReducedModel | BlendedModel:
        """The model of the mechanism with dampers for a damping ratio; see `Mechanism.with_damping_ratio`."""
        from pliant.engines.reduced.blended import BlendedModel

        model = self._own()
        if isinstance(model, BlendedModel):
            damped = [one._damped(ratio) for one in model.models]
            return BlendedModel(damped, model.exponent, model.distance, model.matrices)
        return model._damped(ratio)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and its mechanism to an `.npz` file that `load` reads back without loss.

        Raises:
            FormatError: it cannot be written.
        """
        from pliant.engines.reduced.files import save_model

        save_model(self._own(), path)


@dataclass(frozen=True, eq=False)
class ReducedModel(Model):
    """A mechanism reduced to its end effectors; made by `pliant.reduce`.

    Wrenches and twists are those of the e end effectors one after the other, each in the frame of its body, linear
    part first. Near the configuration of the linearisation the equation of motion is (TVCG Eqs. 8 and 24)

        mass φ' + damping φ + stiffness ξ = w - wrench

    Attributes:
        mechanism: the mechanism, with a floating base fixed.
        end_effectors: names of the bodies.
        q: joint coordinates of the configuration.
        compliance: twist per wrench, (6e, 6e).
        wrench: b, wrenches on the end effectors at the configuration, (6e,).
        load_stiffness: change of the world-fixed part of `wrench` in body axes, per twist, (6e, 6e).
        joint_map: joint motions per wrenches, (nv, 6e).
        multipliers: constraint forces of loops (world axes) and couplings per wrenches, (rows, 6e).
        length: unit of length in `directions`, about the size of the mechanism, m.
        directions: orthonormal admissible directions, (6e, rank).
        basis: joint motions per coordinate y of the model: displacement along each of the `directions`, then
            amplitudes of fixed-interface modes, then of vectors for large motion; (nv, rank + modes + vectors).
        reduced_stiffness, reduced_mass, reduced_damping: the model in the coordinates y.
        base: the floating base, or None.
        projection, inertia: arguments of `pliant.reduce`.
        limits: whether it was made at an equilibrium with joint limits enforced.
        gravity: gravity of that equilibrium, m/s²; None if it is compensated.
        wrenches: all wrenches of that equilibrium, `{body: wrench}`; None if an older file does not tell.
        vectors: number of vectors for large motion in the `basis`.
        reach: size of pushes, in radii of the mechanism, up to which the error at rest is within the `tolerance`: the
            displacement of an end effector by a force at its origin, to first order. NaN if it was not measured.
        tolerance: error of the positions of end effectors at rest, as a fraction of their displacement; NaN if reach
            was not measured.
        samples, failures: number of equilibria that the vectors were chosen from, and of loads without one.
    """

    mechanism: Mechanism
    end_effectors: tuple[str, ...]
    q: Floats
    compliance: Floats
    wrench: Floats
    load_stiffness: Floats
    joint_map: Floats
    multipliers: Floats
    length: float
    directions: Floats
    basis: Floats
    reduced_stiffness: Floats
    reduced_mass: Floats
    reduced_damping: Floats
    base: FreeBase | None = None
    projection: str = "exact"
    inertia: str = "condensed"
    limits: bool = False
    gravity: tuple[float, ...] | None = None
    wrenches: Mapping[str, Any] | None = field(default_factory=dict[str, Any])
    vectors: int = 0
    reach: float = float("nan")
    tolerance: float = float("nan")
    samples: int = 0
    failures: int = 0

    def __post_init__(self) -> None:
        for word, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, word, read_only(value))

    # --- sizes and names

    @property
    def rank(self) -> int:
        """Number of independent directions in which the end effectors give way."""
        return self.directions.shape[1]

    @property
    def modes(self) -> int:
        """Number of fixed-interface modes."""
        return self.basis.shape[1] - self.rank - self.vectors

    @cached_property
    def freedom(self) -> int | None:
        """Number of independent ways in which the mechanism can move here; None with hundreds of loops."""
        from pliant.engines.reduced.closing import independent_rows

        m = self.mechanism
        rows = 6 * m.topology.loops + len(m.couplings)
        if rows > _MOST_ROWS:
            return None
        return m.nv - (len(independent_rows(m, self.q)) if rows else 0)

    @cached_property
    def known(self) -> float:
        """Distance that an end effector may go from where the model was made, in radii, before the model warns.

        The `reach` if that was measured. Infinite where the coordinates are all ways in which the mechanism can move,
        or where `extend` has added vectors for a place farther away. `FAR` else.
        """
        if np.isfinite(self.reach):
            return self.reach
        return np.inf if self.vectors or self.basis.shape[1] == self.freedom else FAR

    def distance(self, poses: ArrayLike) -> float:
        """Largest distance of an end effector from where the model was made, in radii of the mechanism.

        Relative to a floating base.

        Args:
            poses: world poses of all bodies, (bodies, 4, 4), as simulations and configurations have them.
        """
        now, then = numbers(poses, "poses"), self.at.poses
        if now.shape != then.shape or not np.isfinite(now).all():
            raise InputError(f"poses: finite ones of all bodies expected, {then.shape}, not {brief(poses)}")
        ends = [self.mechanism.body_index(body) for body in self.end_effectors]
        if self.base is not None:
            base = self.mechanism.body_index(self.base.body)
            now = then[base] @ spatial.se3_inverse(now[base]) @ now
        return float(np.linalg.norm((now - then)[ends, :3, 3], axis=1).max()) / self.mechanism.radius

    def index(self, body: str) -> int:
        """Number of a body among the end effectors."""
        if not isinstance(body, str) or body not in self.end_effectors:
            self.mechanism.body_index(body)  # raises if there is no such body
            raise UnknownNameError(
                f"'{body}' is no end effector of this model{suggestion(body, self.end_effectors)}; "
                f"there are {', '.join(self.end_effectors[:8])}: reduce with it among them"
            )
        return self.end_effectors.index(body)

    # --- the model in twists of the end effectors

    @cached_property
    def scale(self) -> Floats:
        """Factors from metres and radians to the units of `directions`, (6e,)."""
        from pliant.engines.reduced.condensation import twist_scale

        return twist_scale(self.length, len(self.end_effectors))

    def _in_twists(self, matrix: Floats) -> Floats:
        """Matrix on twists of the end effectors, (6e, 6e), from one on the coordinates y."""
        along = self.scale[:, None] * self.directions
        return along @ matrix[: self.rank, : self.rank] @ along.T

    @cached_property
    def stiffness(self) -> Floats:
        """Inverse of the compliance in the admissible directions, zero in the others, (6e, 6e)."""
        return self._in_twists(self.reduced_stiffness)

    @cached_property
    def mass(self) -> Floats:
        """Inertia in the admissible directions, (6e, 6e)."""
        return self._in_twists(self.reduced_mass)

    @cached_property
    def damping(self) -> Floats:
        """Damping in the admissible directions, (6e, 6e)."""
        return self._in_twists(self.reduced_damping)

    @property
    def admissible(self) -> Floats:
        """Twists of the end effectors along the `directions`, metres and radians, one per column, (6e, rank)."""
        return self.directions / self.scale[:, None]

    # --- maps

    def configuration(
        self, wrenches: Mapping[str, Any] | None = None, method: str = "exact"
    ) -> Configuration:
        """Configuration at rest under wrenches; that of the linearisation if None.

        Warns, once, where an end effector goes farther than is `known`.

        Args:
            wrenches: `{body: wrench}` on any bodies, as `pliant.equilibrium` takes them.
            method: "exact", balance of all forces on the manifold of the model, loops closed; or "tvcg", the linear
                model, with wrenches on end effectors only.

        Raises:
            ConvergenceError: the model finds no rest.
        """
        from pliant.engines.reduced.blended import blend
        from pliant.engines.reduced.manifold import settle, unknown_mechanics
        from pliant.statics import Configuration
        from pliant.statics.loads import parse_wrenches

        choice(method, "method", ("exact", "tvcg"))
        if wrenches is None:
            return self.at
        if method == "tvcg" or self.limits or unknown_mechanics(self) is not None:
            return blend([self.without_modes()]).configuration(wrenches, "tvcg")
        found = Configuration(self.mechanism, settle(self, parse_wrenches(self.mechanism, wrenches)))
        if self._unwarned and self.distance(found.poses) > self.known:
            self._warn(self.distance(found.poses))
        return found

    @cached_property
    def _unwarned(self) -> set[str]:
        """Warnings that were not given yet."""
        return {"known"}

    def _warn(self, distance: float) -> None:
        """Warn that an end effector went too far, in radii."""
        from pliant.engines.reduced.report import beyond_known

        self._unwarned.clear()
        warnings.warn(beyond_known(self, distance), PliantWarning, stacklevel=3)

    def _damped(self, ratio: float) -> ReducedModel:
        """See `with_damping_ratio`."""
        from pliant.engines.reduced.condensation import project_damping

        m = self.mechanism.with_damping_ratio(ratio)
        base = self.base and replace(self.base, mechanism=self.base.mechanism.with_damping_ratio(ratio))
        return replace(self, mechanism=m, base=base, reduced_damping=project_damping(m, self.basis))

    def without_modes(self) -> ReducedModel:
        """The model without its modes and vectors, which do not affect linear statics and which blends refuse."""
        n = self.rank
        cut = {
            word: getattr(self, word)[:n, :n]
            for word in ("reduced_stiffness", "reduced_mass", "reduced_damping")
        }
        return self if self.basis.shape[1] == n else replace(self, basis=self.basis[:, :n], vectors=0, **cut)

    @cached_property
    def at(self) -> Configuration:
        """Configuration of the linearisation, without its loads."""
        from pliant.statics import Configuration

        return Configuration(self.mechanism, self.q)

    @cached_property
    def manifold(self) -> Manifold:
        """Joint coordinates that the model can take, with closed loops."""
        from pliant.engines.reduced.manifold import manifold_of

        return manifold_of(self)

    @cached_property
    def natural_coordinates(self) -> NaturalCoordinates:
        """Mechanics on the manifold, in the natural coordinates of the model."""
        from pliant.engines.reduced.manifold import statics

        return statics(self)

    @cached_property
    def twist_maps(self) -> Floats:
        """`twist_map` of all bodies, (bodies, 6, 6e)."""
        from pliant.statics.inertia import link_twists

        m = self.mechanism
        local, _ = kinematics.link_transforms(m, self.q)
        twists = link_twists(m, local, self.joint_map.T)
        return twists.transpose(1, 2, 0)[m.links.body_link]

    def twist_map(self, body: str) -> Floats:
        """Static twist of a body, in its frame, per end-effector wrenches, (6, 6e); TVCG Eq. 22."""
        index = self.mechanism.body_index(body)
        return np.zeros((6, len(self.compliance))) if index < 0 else self.twist_maps[index]

    @cached_property
    def wrench_maps(self) -> Floats:
        """`wrench_map` of all bodies, (bodies, 6, 6e)."""
        from pliant.engines.reduced.projection import wrench_maps

        return wrench_maps(self)

    def wrench_map(self, body: str) -> Floats:
        """Wrench that a body passes on to its parents, in its frame, per end-effector wrenches, (6, 6e).

        At the geometry of the linearisation (TVCG Eqs. 17 to 20). In an overconstrained loop the shares of its branches
        are not unique; this is one possible choice.
        """
        index = self.mechanism.body_index(body)
        if index < 0:
            raise InputError("the world passes no wrench on: name a body")
        return self.wrench_maps[index]

    def extend(self, configuration: Configuration) -> ReducedModel:
        """The model with the vectors that a configuration adds: its displacement, and its slopes if loads act there.

        For motion near a configuration that the model does not reach, while a simulation runs, for instance:
        `simulation.switch(model.extend(equilibrium))`. Vectors that the basis has already are left out.

        Args:
            configuration: of the same mechanism, such as an equilibrium under wrenches on the end effectors.
        """
        from pliant.engines.reduced.reach import extend

        return extend(self, configuration)

    # --- frequencies, stiffness, text

    def frequencies(self) -> Floats:
        """Natural frequencies of the undamped model, Hz, lowest first; zero for an unstable direction.

        A floating base is held. World-fixed forces in `wrench` stay fixed in the world, as in
        `Configuration.frequencies`.
        """
        stiffness = self.reduced_stiffness.copy()
        at = self.admissible
        stiffness[: self.rank, : self.rank] -= at.T @ self.load_stiffness @ at
        squares: Any = eig(stiffness, self.reduced_mass, right=False)
        return np.sort(np.sqrt(np.maximum(squares.real, 0.0))) / (2 * np.pi)

    def stiffness_ellipsoid(self, body: str, of: str = "translation") -> StiffnessEllipsoid:
        """Principal stiffnesses of an end effector against forces at its origin, or torques, all else free.

        Infinite in directions that the geometry holds: equal motions of all joints that loops allow, in radians and
        radii, move it there by less than 1e-4 of the largest motion of an end effector, which is how well files tell
        the directions of axes. Springs have no part in that.

        Args:
            body: an end effector.
            of: "translation" or "rotation".
        """
        choice(of, "of", ("translation", "rotation"))
        start = 6 * self.index(body) + (0 if of == "translation" else 3)
        part = slice(start, start + 3)
        square = self.scale[start] ** 2
        moved, along = np.linalg.eigh(square * self.manipulability[part, part])
        free = along[
            :, moved > _HELD**2 * np.abs(self.scale[:, None] * self.manipulability * self.scale).max()
        ]
        block = free.T @ self.compliance[part, part] @ free
        values, within = np.linalg.eigh((block + block.T) / 2)
        largest = float(np.abs(self.scale[:, None] * self.compliance * self.scale).max())
        moving = square * values > _RESOLVED * largest
        stiffness = np.full(3, np.inf)
        stiffness[: len(values)][moving] = 1 / values[moving]
        axes = np.concatenate([free @ within, along[:, : 3 - len(values)]], axis=1)
        order = np.argsort(stiffness, kind="stable")
        pose = self.at.pose(body)
        return StiffnessEllipsoid(pose[:3, 3].copy(), stiffness[order], (pose[:3, :3] @ axes)[:, order])

    @cached_property
    def manipulability(self) -> Floats:
        """How far unit joint motions move the end effectors, whatever the springs: ``J P Jᵀ``, (6e, 6e).

        J is their Jacobian, P the orthogonal projection onto the joint motions that loops and couplings allow, in
        radians and radii. It is the compliance with 1 N m/rad in every joint, 1 N m per radius squared in slides.
        """
        from pliant.engines.reduced.projection import manipulability

        return manipulability(self.mechanism, self.end_effectors, self.q)

    def summary(self) -> str:
        """Readable: rank, principal stiffnesses, natural frequencies."""
        from pliant.engines.reduced.report import summarize

        return summarize(self)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """A picture of the mechanism with the compliance ellipsoid of every end effector.

        A force of the size in the title, in any direction, moves the end effector to a point of its ellipsoid: long is
        soft. Options as in `pliant.picture`.
        """
        from pliant.engines.reduced.report import plot

        return plot(self, path, **options)

    def _repr_html_(self) -> str:
        from pliant.engines.reduced.report import model_html

        return model_html(self)

    def __repr__(self) -> str:
        extra = f", {self.modes} modes" if self.modes else ""
        extra += f", {self.vectors} vectors" if self.vectors else ""
        floating = ", free base" if self.base else ""
        return (
            f"<ReducedModel of '{self.mechanism.name}': {', '.join(self.end_effectors[:6])}"
            f"{' ...' if len(self.end_effectors) > 6 else ''}, rank {self.rank}{extra}{floating}>"
        )

    @staticmethod
    def load(path: str | Path) -> ReducedModel:
        """Read a model that `save` wrote.

        Raises:
            FormatError: the file is no such model, is damaged, or is of a newer version.
        """
        from pliant.engines.reduced.files import load_single

        return load_single(path)
