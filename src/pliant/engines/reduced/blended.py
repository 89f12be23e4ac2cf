"""`BlendedModel`: reduced models of one mechanism at several equilibria (TVCG section 7).

All of them together span a manifold of joint coordinates: that of the first model, with the displacements and slopes
of the others as vectors (`reach.span`). Statics and motion are those of the whole mechanism on it, as with a single
model that reaches as far.

TVCG's way, `method="tvcg"`, mixes the models instead. Every model predicts, to first order, the joint coordinates under
a wrench u on the end effectors, `q_i + joint_map_i (u - b_i)` with b_i the wrench of its equilibrium. The blend is
their mean, weighted by distance, so at a sample it is the equilibrium itself. In motion u is the *static wrench*, under
which the present configuration would be an equilibrium; with `C` the blended compliance, and mass and damping condensed
to wrenches,

    (C^T M C) u'' + (C^T D C) u' + C^T (u - w) = 0

Compliances are never inverted, so ranks may differ from model to model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.checks import choice, mapping, number
from pliant.engines.reduced.model import FreeBase, Model, ReducedModel
from pliant.engines.reduced.reduce import reduce
from pliant.errors import ConvergenceError, InputError
from pliant.formats.archive import mechanism_bytes
from pliant.mechanism import Mechanism, kinematics
from pliant.statics import Configuration
from pliant.statics.loads import Load, chart, load_rows, parse_wrenches
from pliant.text import brief, counted

__all__ = ["BlendedModel", "blend"]

Floats = NDArray[np.float64]
DISTANCES, MATRICES = ("wrench", "twist"), ("linear", "eigen")
TOLERANCE = 0.01  # static error at which the reach of a blend is measured
_ROUNDS = 200  # iterations for wrenches that turn with the end effectors


def blend(
    models: Sequence[ReducedModel],
    exponent: float = 6.0,
    distance: str = "wrench",
    matrices: str = "linear",
) -> BlendedModel:
    """Blend reduced models of one mechanism, made at different configurations (TVCG section 7).

    The blend rests and moves on the joint motions that its models span, with all forces of the whole mechanism.
    `exponent`, `distance` and `matrices` are for mixing the models as in the paper, with `method="tvcg"`.

    Args:
        models: of the same mechanism and end effectors, without modes. The first is the one a simulation starts at.
        exponent: p of the weights `distance^-p` (Shepard; TVCG Eq. 25 takes 2). A larger exponent favours the nearest
            model: with 2, small loads near a sample have larger errors than with its model alone.
        distance: between the present state and a sample: "wrench", norm of the difference of static wrenches, torques
            divided by the radius; or "twist", TVCG's, displacement of the end effectors by a model, lengths over the
            radius and angles over π. Wrenches distinguish loads under which a mechanism has the same displacement.
        matrices: how compliance, mass and damping are mixed: "linear", entry by entry, smooth; or "eigen", TVCG's
            Algorithm 3 with eigenvectors matched and their signs aligned, for comparison: it jumps where they cross.

    Raises:
        InputError: the models do not belong together.

    Example:
        >>> import pliant
        >>> m = pliant.gallery.helix(20)
        >>> models = [pliant.reduce(m, at=pliant.equilibrium(m, {"link20": (f, 0, 0)})) for f in (0, 40, 80)]
        >>> blended = pliant.blend(models)
        >>> blended.weights({"link20": (40, 0, 0)}).round(6).tolist()
        [0.0, 1.0, 0.0]
    """
    return BlendedModel(models, exponent, distance, matrices)


class BlendedModel(Model):
    """Reduced models at several equilibria; made by `pliant.blend`, simulated by `pliant.ReducedSimulation`.

    Attributes:
        models: the reduced models.
        exponent, distance, matrices: see `pliant.blend`.
        mechanism, end_effectors, base, limits: the same for all models.
    """

    def __init__(
        self,
        models: Sequence[ReducedModel],
        exponent: float = 6.0,
        distance: str = "wrench",
        matrices: str = "linear",
    ):
        self.models = _checked(models)
        self.exponent = number(exponent, "exponent", above=0.0)
        self.distance = choice(distance, "distance", DISTANCES)
        self.matrices = choice(matrices, "matrices", MATRICES)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, with a floating base fixed."""
        return self.models[0].mechanism

    @property
    def end_effectors(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return self.models[0].end_effectors

    @property
    def base(self) -> FreeBase | None:
        """The floating base, or None."""
        return self.models[0].base

    @property
    def limits(self) -> bool:
        """Whether joint limits are enforced."""
        return self.models[0].limits

    @cached_property
    def mixed_only(self) -> str | None:
        """Why the models can only be mixed, since no manifold has the mechanics of all of them; None: one has."""
        first, *others = self.models
        for model in self.models:
            if model.limits:
                return "joint limits"
            if model.inertia != "condensed" and others:
                return f"inertia={model.inertia!r}"
            if model.wrenches is None and (model.wrench.any() or others):
                return "a model of an older file, which does not tell its loads"
        for model in self.models if others else ():
            if model.mechanism is not first.mechanism and not _equal(model.mechanism, first.mechanism):
                return "models of mechanisms that differ"
            loaded = model.wrenches or model.gravity
            if not loaded and np.abs(model.q - model.mechanism.reference).max(initial=0.0) > 1e-9:
                return "a model that is held away from the reference pose, where springs rest elsewhere"
            if model.gravity != first.gravity or _other_loads(model) != _other_loads(first):
                return "models that were made under different gravity, or loads on bodies that are no end effectors"
        return None

    @cached_property
    def spanned(self) -> ReducedModel:
        """The first model, with vectors from the others: the blend moves as this one does.

        As few vectors as leave the end effectors where the equilibria of all models have them, within 0.01 % of their
        displacement.
        """
        from pliant.engines.reduced.reach import span

        return span(self.models)

    @cached_property
    def reach(self) -> float:
        """Size of pushes, radii, up to which errors at rest are within 1 %, measured at first use; NaN if unknown.

        See `ReducedModel.reach`.
        """
        from pliant.engines.reduced.reach import measure_reach

        if self.mixed_only is not None:
            return float("nan")
        try:
            return measure_reach(self.spanned, TOLERANCE)
        except InputError:  # loads that are no forces at the origins, or nothing gives way to those
            return float("nan")

    def index(self, body: str) -> int:
        """Number of a body among the end effectors."""
        return self.models[0].index(body)

    def add(self, at: Configuration | ReducedModel) -> BlendedModel:
        """The blend with one more model, made at an equilibrium.

        A running simulation takes it by `simulation.switch(simulation.model.add(equilibrium))`.
        """
        model = at
        if isinstance(at, Configuration):
            model = reduce(at.mechanism, self.end_effectors, at=at, inertia=self.models[0].inertia)
        if not isinstance(model, ReducedModel):
            raise InputError(f"add: a Configuration or a ReducedModel expected, not {brief(at)}")
        return BlendedModel([*self.models, model], self.exponent, self.distance, self.matrices)

    # --- the samples

    @cached_property
    def samples(self) -> Floats:
        """Static wrenches of the models, (models, 6e)."""
        return np.array([model.wrench for model in self.models])

    @cached_property
    def shifts(self) -> Floats:
        """Joint displacements of the models from the first, (models, nv)."""
        return np.array([self._chart(i)[0] for i in range(len(self.models))])

    @cached_property
    def joint_maps(self) -> Floats:
        """Change of the joint displacements from the first model per wrenches, (models, nv, 6e)."""
        return np.array([self._chart(i)[1] for i in range(len(self.models))])

    def _chart(self, i: int) -> tuple[Floats, Floats]:
        """Joint displacements of model `i` from the first, and their change per wrenches."""
        model = self.models[i]
        return chart(self.mechanism, self.models[0].q, model.q, model.joint_map)

    @cached_property
    def metrics(self) -> Floats:
        """Matrices that scale differences of wrenches for the distances to samples, (models, 6e, 6e)."""
        radius, effectors = self.mechanism.radius, len(self.end_effectors)
        if self.distance == "wrench":
            scale = np.diag(np.tile([1.0] * 3 + [1 / radius] * 3, effectors))
            return np.tile(scale, (len(self.models), 1, 1))
        scale = np.tile([1 / radius] * 3 + [1 / np.pi] * 3, effectors)
        return np.array([scale[:, None] * model.compliance for model in self.models])

    @cached_property
    def unit(self) -> Floats:
        """Units in which all components of a wrench are forces, (6e,): torques are divided by the models' length."""
        return np.tile([1.0] * 3 + [self.models[0].length] * 3, len(self.end_effectors))

    @cached_property
    def condensed(self) -> tuple[Floats, Floats, Floats]:
        """Compliance, and mass and damping condensed to wrenches, of all models, in `unit`: (models, 6e, 6e) each."""
        C = np.array([model.compliance for model in self.models])
        mass, damping = (
            np.array([model.compliance.T @ getattr(model, word) @ model.compliance for model in self.models])
            for word in ("mass", "damping")
        )
        both = self.unit[:, None] * self.unit
        return both * C, both * mass, both * damping

    @cached_property
    def spectra(self) -> tuple[tuple[Floats, Floats], ...]:
        """Eigenvectors in rows, (models, 6e, 6e), and eigenvalues, (models, 6e), of `condensed`, matched to the first.

        Eigenvectors of a model are assigned to those of the first model by the largest sum of absolute inner products,
        and have the same sign.
        """
        return tuple(_matched(stack) for stack in self.condensed)

    def mixed(self, weights: Floats) -> tuple[Floats, ...]:
        """Blended compliance, mass and damping in `unit`, (6e, 6e) each."""
        if self.matrices == "linear":
            return tuple(np.tensordot(weights, stack, axes=1) for stack in self.condensed)
        out = []
        for vectors, values in self.spectra:
            mean = np.tensordot(weights, vectors, axes=1)
            mean /= np.linalg.norm(mean, axis=1, keepdims=True)
            out.append(mean.T @ ((weights @ values)[:, None] * mean))
        return tuple(out)

    # --- statics of the mixed models

    def weights_at(self, u: Floats) -> Floats:
        """Shepard weights at a static wrench in body axes, (models,); at a sample its model has weight 1."""
        apart = np.einsum("kij,kj->ki", self.metrics, u - self.samples)
        distances = np.linalg.norm(apart.reshape(len(apart), -1, 6), axis=2).sum(axis=1)
        nearest = distances.min()
        # Distances relative to the nearest: no overflow, and no 0/0 at a sample.
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.where(distances > nearest, (nearest / distances) ** self.exponent, 1.0)
        return out / out.sum()

    def displacement_at(self, u: Floats) -> Floats:
        """Joint displacements from the first model under a static wrench in body axes, (nv,)."""
        each = self.shifts + np.einsum("kij,kj->ki", self.joint_maps, u - self.samples)
        return self.weights_at(u) @ each

    def joint_map_at(self, u: Floats) -> Floats:
        """Change of the joint displacements per wrenches at constant weights, (nv, 6e)."""
        return np.tensordot(self.weights_at(u), self.joint_maps, axes=1)

    def compliance_at(self, u: Floats) -> Floats:
        """Blended compliance at a static wrench in body axes, (6e, 6e)."""
        return self.mixed(self.weights_at(u))[0] / self.unit[:, None] / self.unit

    def static_wrench(self, wrenches: Mapping[str, Any]) -> Floats:
        """Wrenches on end effectors, as `pliant.equilibrium` takes them, in body axes at rest under them, (6e,)."""
        given = []
        for body, value in mapping(wrenches, "wrenches", "{body: wrench}").items():
            force, torque, point, frame = Load.parse(value, body)
            place = self.index(body), self.mechanism.body_index(body)
            given.append((*place, force, torque, spatial.hat(point), frame == "world"))

        def in_body_axes(poses: Floats) -> Floats:
            out = np.zeros(len(self.unit))
            for e, body, force, torque, arm, fixed in given:
                turn = poses[body, :3, :3].T if fixed else np.eye(3)
                out[6 * e : 6 * e + 3] = turn @ force
                out[6 * e + 3 : 6 * e + 6] = turn @ torque + arm @ out[6 * e : 6 * e + 3]
            return out

        # Start from the sample whose wrench is nearest to the given ones in the axes of its end effectors.
        starts = [in_body_axes(model.at.poses) for model in self.models]
        apart = [float(np.abs((u - b) / self.unit).max()) for u, b in zip(starts, self.samples, strict=True)]
        u = starts[int(np.argmin(apart))]
        size, before, part = max(float(np.abs(u).max()), 1e-300), np.inf, 1.0
        for _ in range(_ROUNDS):
            change = in_body_axes(self._poses(u)) - u
            left = float(np.abs(change).max())
            if left <= 1e-13 * size:
                return u
            part = max(part / 2, 1 / 64) if left > before else min(1.0, 1.1 * part)
            before = left
            u = u + part * change
        if before > 1e-9 * size:
            raise ConvergenceError(
                "the end effectors turn back and forth under these wrenches: they are far beyond the samples",
                before / size,
            )
        return u

    def _q(self, u: Floats) -> Floats:
        return kinematics.move(self.mechanism, self.models[0].q, self.displacement_at(u))

    def _poses(self, u: Floats) -> Floats:
        return kinematics.link_poses(self.mechanism, self._q(u))[self.mechanism.links.body_link]

    def weights(self, wrenches: Mapping[str, Any]) -> Floats:
        """Weights of the models at rest under wrenches, (models,)."""
        return self.weights_at(self.static_wrench(wrenches))

    @property
    def at(self) -> Configuration:
        """Configuration of the first model."""
        return self.models[0].at

    def configuration(
        self, wrenches: Mapping[str, Any] | None = None, method: str = "exact"
    ) -> Configuration:
        """Configuration at rest under wrenches; that of the first model if None.

        Args:
            wrenches: `{body: wrench}` on any bodies, as `pliant.equilibrium` takes them.
            method: "exact", balance of all forces on the manifold that the models span, loops closed; or "tvcg", the
                weighted mean of the models, with wrenches on end effectors only.

        Raises:
            ConvergenceError: the blend finds no rest.
        """
        choice(method, "method", ("exact", "tvcg"))
        if wrenches is None:
            return self.at
        if method == "exact" and self.mixed_only is None:
            return self.spanned.configuration(wrenches)
        return Configuration(self.mechanism, self._q(self.static_wrench(wrenches)))

    def summary(self) -> str:
        """Readable: models, the wrenches they were made under, reach, and a summary of the first model."""
        from pliant.engines.reduced.report import reach_words

        loaded = [f"  {i}  {np.linalg.norm(one.wrench):.4g}" for i, one in enumerate(self.models)]
        if self.mixed_only is None:
            loaded.append(reach_words(replace(self.spanned, reach=self.reach, tolerance=TOLERANCE)))
        return "\n".join(
            [
                f"blend of {len(self.models)} models of '{self.mechanism.name}': {', '.join(self.end_effectors)}",
                "model, size of the wrench it was made under (N, N m)",
                *loaded,
                "",
                self.models[0].summary(),
            ]
        )

    @staticmethod
    def load(path: str | os.PathLike[str]) -> BlendedModel:
        """Read a blend that `save` wrote. The file is not trusted: all of it is checked.

        Raises:
            FormatError: the file holds no blend, is damaged, or is of a newer version.
        """
        from pliant.engines.reduced.files import load_blend

        return load_blend(path)

    def _repr_html_(self) -> str:
        from pliant.engines.reduced.report import blend_html

        return blend_html(self)

    def __repr__(self) -> str:
        return f"<BlendedModel of {counted(len(self.models), 'model')} of '{self.mechanism.name}'>"


def _matched(stack: Floats) -> tuple[Floats, Floats]:
    """Eigenvectors in rows and eigenvalues of symmetric matrices, matched to those of the first; see `spectra`."""
    from scipy.optimize import linear_sum_assignment

    values, vectors = np.linalg.eigh((stack + stack.transpose(0, 2, 1)) / 2)
    vectors = vectors.transpose(0, 2, 1).copy()
    for k in range(1, len(stack)):
        alike = vectors[0] @ vectors[k].T
        _, order = linear_sum_assignment(-np.abs(alike))
        sign = np.where(alike[np.arange(len(order)), order] < 0, -1.0, 1.0)
        vectors[k] = sign[:, None] * vectors[k, order]
        values[k] = values[k, order]
    return vectors, values


def _equal(a: Mechanism, b: Mechanism) -> bool:
    return mechanism_bytes(a).tobytes() == mechanism_bytes(b).tobytes()


def _other_loads(model: ReducedModel) -> bytes:
    """Loads of a model's configuration on bodies that are no end effectors, in the order of bodies."""
    m, given = model.mechanism, model.wrenches or {}
    others = parse_wrenches(
        m, {body: load for body, load in given.items() if body not in model.end_effectors}
    )
    return load_rows(dict(sorted(others.items())), m.links.body_link).tobytes()


def _checked(models: Sequence[ReducedModel]) -> tuple[ReducedModel, ...]:
    """The models, if they can be blended."""
    if not isinstance(models, Iterable) or isinstance(models, np.ndarray):
        raise InputError(
            f"blend: a list of models expected, as `pliant.reduce` makes them, not {brief(models)}"
        )
    out = tuple(models)
    if not out:
        raise InputError("blend: at least one model expected")
    first = out[0]
    for i, model in enumerate(out):
        if not isinstance(model, ReducedModel):
            raise InputError(f"blend: model {i} is no ReducedModel but {brief(model)}")
        a, b = first.mechanism, model.mechanism
        if a is not b and (a.body_names, a.dof_names) != (b.body_names, b.dof_names):
            raise InputError(f"blend: model {i} is one of '{b.name}', the first of '{a.name}'")
        if model.end_effectors != first.end_effectors:
            raise InputError(
                f"blend: model {i} has the end effectors {', '.join(model.end_effectors)}, the first others"
            )
        if model.basis.shape[1] > model.rank:
            kind = "modes" if model.modes else "vectors"
            raise InputError(f"blend: model {i} has {kind}; models that are blended have none")
        if (model.base is None) != (first.base is None):
            raise InputError("blend: some of the models have a floating base and some have not")
        if model.limits != first.limits:
            raise InputError(
                "blend: some of the models know joint limits and some do not: make all of them, also the one at "
                "rest, at equilibria found with `equilibrium(..., limits=True)`, or all without"
            )
        for j in range(i):
            least = 1e-12 * np.abs(model.wrench).max(initial=1e-12)
            if np.abs(model.wrench - out[j].wrench).max() <= least:
                raise InputError(
                    f"blend: models {j} and {i} were made under the same wrenches: keep one of them"
                )
    return out
