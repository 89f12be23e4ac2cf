"""`Manifold`: joint coordinates that follow few coordinates, with closed loops, and the arrays for motion on it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, expm

from pliant import spatial
from pliant.engines.reduced import manifold_arrays as mk
from pliant.engines.reduced import manifold_contact, manifold_kernels, manifold_places, manifold_steps
from pliant.engines.reduced._intrinsics import BALL, LANES, MOTION, PARENT, PLACE
from pliant.engines.reduced.arrays import (
    Kinematics,
    Packed,
    base_constants,
    joint_kinematics,
    lay_out,
    link_places,
    pack,
)
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.closing import Closing, close
from pliant.engines.reduced.coordinates import Carried
from pliant.engines.reduced.kernels import (
    BASE,
    BASE_SIZE,
    BASE_STATE,
    BASIS,
    BOUND,
    HINGE,
    LOCAL,
    MOMENTUM,
    ROWS,
    TIMESTEP,
    WRENCH,
    Y,
)
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.projection import held_loads
from pliant.errors import ConvergenceError, InputError, PliantWarning
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.joints import BALL as BALL_JOINT
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.statics.inertia import Inertia
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, LINK, LOAD_SIZE, POINT
from pliant.statics.loads import (
    Load,
    Loads,
    collect_loads,
    coordinate_difference,
    load_rows,
    parse_wrenches,
    spring_coordinates,
    tendon_lengths,
)
from pliant.statics.tangent import Tangent

__all__ = [
    "Manifold",
    "Modes",
    "NaturalCoordinates",
    "balanced_loads",
    "exact_map",
    "manifold_of",
    "natural_coordinates",
    "pack_manifold",
    "pack_model",
    "refusal",
    "settle",
    "statics",
    "unknown_mechanics",
    "weigh",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_RESOLVED, _LOST = 1.0, 2.0  # ω h up to which inertia forces count in full, and from which on not at all
_PROBE = 1e-4  # rad or radii: displacement of joints for derivatives
_SWING = 0.3  # the same for the change of inertia and work
_HEAVIER, _ASTRAY = 0.04, 0.005  # small motion: change of inertia, error of the map from wrenches to forces
_APPROACH = 20  # steps to coordinates at which loops do not close at once
_NEAREST, _NEWTON = 50, 40  # iterations
_BENDS = 10.0  # largest second derivative of a joint's displacement per displacement, 1/rad or 1/radius
_STRIDE = 0.3  # rad or radii: largest displacement of a joint in one step of the load
_SHORTEST = 1 / 512  # step of the load
_SETTLED = 1e-5  # rad or radii: displacement, at the stiffness at rest, by forces that count as balanced
_NEUTRAL = 1e-4  # of the stiffness at rest: counts as none
_SOFTEST = 1e-6  # of the stiffest mode: stiffness that modes without springs count as having
_LENT = 1e-5  # of the typical stiffness: metric along degrees of freedom that no spring holds
_LEAP = 1.0  # rad or radii: joints that move farther in one step have left for another way of closing loops
_DOWNHILL, _SLIDE = 400, 0.1  # steps of a snap at most; rad or radii: largest displacement of a joint in each
_MARGIN, _UNBOUNDED = (
    1.5,
    1e9,
)  # of the distance to first order; amplitude of modes that are small without bound
_LEVELS = {"auto": mk.AUTO, "small": mk.SMALL, "full": mk.FULL}


@dataclass(frozen=True, eq=False)
class Manifold:
    """Joint displacements `s(y) = basis y + ½ curvature(y, y) + closing μ` from `q`, loops closed by μ.

    Attributes:
        mechanism: the mechanism, with a fixed base.
        q: joint coordinates at y = 0, (nq,).
        basis: Φ, joint displacements per coordinate, (nv, k).
        loads: all that acts beside wrenches of the user and weights: wrenches on links, rest positions of springs.
        gravity: m/s², (3,).
        closing: C, joint displacements per multiplier, (nv, r).
        rows: the r rows of `kinematics.constraint_rows` that are independent at `q`.
        curvature: Ψ, (k, k, nv), symmetric; None without loops.
    """

    mechanism: Mechanism
    q: Floats
    basis: Floats
    loads: Loads
    gravity: Floats
    closing: Floats
    rows: Ints
    curvature: Floats | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.basis.shape[1]

    @property
    def plain(self) -> bool:
        """Whether the tangent is the same everywhere: no loops, couplings or balls."""
        return not len(self.rows) and not (self.mechanism.dof_kind == BALL_JOINT).any()


def manifold_of(model: ReducedModel) -> Manifold:
    """Manifold of a model."""
    m, loads, gravity = model.mechanism, *acting_loads(model)
    found = Closing(np.zeros(0, dtype=np.int64), np.zeros((m.nv, 0)), None)
    if m.topology.loops or len(m.couplings):
        rank = model.rank
        per_y = np.zeros((len(model.compliance), model.basis.shape[1]))
        per_y[:, :rank] = model.scale[:, None] * model.directions @ model.reduced_stiffness[:rank, :rank]
        found = close(m, model.q, model.basis, *balanced_loads(model), model.end_effectors, per_y)
    curvature = _moderate(m, model.basis, found.curvature)
    return Manifold(m, model.q, model.basis, loads, gravity, found.closing, found.rows, curvature)


def acting_loads(model: ReducedModel) -> tuple[Loads, Floats]:
    """What acts at a model's configuration beside weights and wrenches on end effectors, and gravity, m/s², (3,)."""
    m = model.mechanism
    if not (model.wrenches or model.gravity or model.limits):
        return held_loads(m, model.q), np.zeros(3)
    others = {
        body: value for body, value in (model.wrenches or {}).items() if body not in model.end_effectors
    }
    given = collect_loads(m, others, model.gravity, model.limits)
    rows = load_rows(parse_wrenches(m, others), m.links.body_link)
    return replace(given, rows=rows), np.zeros(3) if model.gravity is None else np.array(model.gravity)


def _own_wrenches(model: ReducedModel) -> dict[int, Load]:
    """Wrenches on end effectors where a model was made, which turn with them, by number of body."""
    return {
        model.mechanism.body_index(body): Load.of(body, wrench[:3], wrench[3:], frame="body")
        for body, wrench in zip(model.end_effectors, model.wrench.reshape(-1, 6), strict=True)
        if wrench.any()
    }


def balanced_loads(model: ReducedModel) -> tuple[Loads, Floats]:
    """All loads of a model's configuration, wrenches that turn with end effectors among them, and constraint forces.

    The constraint forces of loops and couplings balance springs and loads, (rows,).
    """
    m, loads, gravity = model.mechanism, *acting_loads(model)
    rows = [load_rows(_own_wrenches(model), m.links.body_link), loads.rows]
    if gravity.any():
        rows.append(collect_loads(m, {}, gravity).rows)
    given = replace(loads, rows=np.concatenate(rows))
    return given, _balance(m, model.q, given)


def _balance(m: Mechanism, q: Floats, loads: Loads) -> Floats:
    """Constraint forces of loops and couplings that balance springs and loads at `q`: the least that do."""
    none = np.zeros(6 * m.topology.loops + len(m.couplings))
    if not len(none):
        return none
    force = Tangent(m, q, loads, none).residual
    if not np.abs(force).max(initial=0.0) > 0:
        return none
    scale = m.elimination.scale[: len(none)]
    rows = scale[:, None] * kinematics.constraint_rows(m, kinematics.link_poses(m, q)) * m.dof_unit
    return -scale * np.linalg.lstsq(rows.T, force * m.dof_unit, rcond=1e-9)[0]


def _moderate(m: Mechanism, basis: Floats, curvature: Floats | None) -> Floats | None:
    """Curvature of a manifold, or None where its second order would bend joints more than the first does.

    Light cables between stiff joints have such equilibria: no expansion reaches far there, and loops close without.
    """
    if curvature is None:
        return None
    unit = 1 / np.maximum(np.abs(basis / m.dof_unit[:, None]).max(axis=0), 1e-300)
    bent = np.abs(curvature * unit[:, None, None] * unit[:, None] / m.dof_unit).max(initial=0.0)
    return curvature if bent <= _BENDS else None


def settle(model: ReducedModel, wrenches: Mapping[int, Load]) -> Floats:
    """Joint coordinates at which a model rests under wrenches by number of body, (nq,).

    Raises:
        ConvergenceError: it finds no rest.
    """
    coordinates = model.natural_coordinates.copy()
    return coordinates.joints(coordinates.equilibrium(wrenches))


class Modes(NamedTuple):
    """Natural coordinates z of a linear model: y = vectors z, unit mass.

    Attributes:
        vectors: (k, k).
        squares: squared angular frequencies, (k,), not below zero.
        damping: in natural coordinates, (k, k).
    """

    vectors: Floats
    squares: Floats
    damping: Floats


def natural_coordinates(stiffness: Floats, mass: Floats, damping: Floats) -> Modes:
    """Natural modes of the symmetric part of a linear model."""
    squares, vectors = eigh((stiffness + stiffness.T) / 2, mass)
    squares = np.where(squares > 1e-13 * squares.max(initial=0.0), squares, 0.0)
    return Modes(np.ascontiguousarray(vectors), squares, vectors.T @ damping @ vectors)


def exact_map(modes: Modes, h: float) -> Floats:
    """Exact map of a step of `z'' + D z' + ω² z = g` at constant g: (z, z', g) to (z, z'), transposed, (3k, 2k).

    The matrix exponential is taken in coordinates s z with s = max(ω, 1/h), in which entries of the matrix are at most
    max(ω, 1/h, D).
    """
    k, (s, rate) = len(modes.squares), _scaled_rate(modes, h, 3)
    found = expm(h * rate)
    unit = np.concatenate([s, np.ones(k), np.full(k, h)])
    return np.ascontiguousarray((found / unit[:, None] * unit)[: 2 * k].T)


def _scaled_rate(modes: Modes, h: float, parts: int) -> tuple[Floats, Floats]:
    """Scales s of `exact_map`, and the rate of (s z, z', h g), with room for further parts of the state."""
    k = len(modes.squares)
    s, rate = np.maximum(np.sqrt(modes.squares), 1 / h), np.zeros((parts * k, parts * k))
    rate[:k, k : 2 * k] = np.diag(s)
    rate[k : 2 * k, :k] = np.diag(-modes.squares / s)
    rate[k : 2 * k, k : 2 * k] = -modes.damping
    rate[k : 2 * k, 2 * k : 3 * k] = np.eye(k) / h  # g in units in which its effect is of order one
    return s, rate


def ramp_map(modes: Modes, h: float) -> Floats:
    """Exact response of a step of `z'' + D z' + ω² z = g` to g that grows from -½ to ½, transposed, (k, 2k).

    In the scaled coordinates of `exact_map`.
    """
    k, (s, rate) = len(modes.squares), _scaled_rate(modes, h, 4)
    rate[2 * k : 3 * k, 3 * k :] = np.eye(k) / h
    found = expm(h * rate)
    response = found[: 2 * k, 3 * k :] - 0.5 * found[: 2 * k, 2 * k : 3 * k]
    return np.ascontiguousarray((h * response / np.concatenate([s, np.ones(k)])[:, None]).T)


def contact_map(modes: Modes, h: float) -> Floats:
    """Map of a step with contacts, as `exact_map` but modes with ω h above 1 by backward Euler, (3k, 2k).

    Dampers that couple slow and fast modes act with the mean velocities of the slow ones, so that no energy comes of
    them.
    """
    k, fast, D = len(modes.squares), np.sqrt(modes.squares) * h > manifold_contact.SLOW, modes.damping
    if not fast.any():
        return exact_map(modes, h)
    # (slow z, slow v, fast v) of the end from (z, v, g): the slow modes feel -D v of the fast ones as a force
    S, F = np.flatnonzero(~fast), np.flatnonzero(fast)
    s, slow = len(S), exact_map(Modes(np.eye(len(S)), modes.squares[S], D[np.ix_(S, S)]), h).T
    left, right = np.eye(2 * s + len(F)), np.zeros((2 * s + len(F), 3 * k))
    for part in range(3):
        right[: 2 * s, part * k + S] = slow[:, part * s : (part + 1) * s]
    left[: 2 * s, 2 * s :] = slow[:, 2 * s :] @ D[np.ix_(S, F)]
    left[2 * s :, 2 * s :] += h * D[np.ix_(F, F)] + h * h * np.diag(modes.squares[F])
    left[2 * s :, :s] = right[2 * s :, S] = D[np.ix_(F, S)]
    right[2 * s :, F] = -h * np.diag(modes.squares[F])
    right[2 * s :, k + F], right[2 * s :, 2 * k + F] = np.eye(len(F)), h * np.eye(len(F))
    found, out = np.linalg.solve(left, right), np.zeros((2 * k, 3 * k))
    out[S], out[k + S], out[k + F] = found[:s], found[s : 2 * s], found[2 * s :]
    out[F] = h * found[2 * s :]
    out[F, F] += 1.0
    return np.ascontiguousarray(out.T)


def pack_model(
    model: ReducedModel | BlendedModel,
    h: float,
    reconstruction: str,
    gravity: Floats,
    method: str,
    slots: int,
    known: Packed | None = None,
) -> Packed:
    """Arrays of a model for steps of `h` seconds at a level of accuracy, at rest at the linearisation.

    Constants of small steps are taken from `known`, arrays for the same steps with other slots, if these are given.

    Raises:
        InputError: the level is not for this model, or its numbers are damaged.
    """
    why = refusal(model, reconstruction)
    on_manifold = method != "tvcg" and why is None
    if not on_manifold and method not in ("tvcg", "auto"):
        raise InputError(f'method="{method}" is not for {why}: use "auto" or "tvcg"')
    try:
        if not on_manifold:
            return pack(model, h, reconstruction, gravity)
        spanning = model.spanned if isinstance(model, BlendedModel) else model
        return pack_manifold(spanning, h, method, slots, gravity, known)
    except np.linalg.LinAlgError as error:
        raise InputError(
            f"the matrices of the model of '{model.mechanism.name}' are no stiffness or inertia: {error}"
        ) from None


def refusal(model: ReducedModel | BlendedModel, reconstruction: str) -> str | None:
    """Why a model does not move on its manifold; None: it does."""
    if isinstance(model, BlendedModel):
        return model.mixed_only or refusal(model.models[0], reconstruction)
    if reconstruction != "joint":
        return f"reconstruction={reconstruction!r}"
    if model.base is not None and _moves_others(model):
        return "joints that a floating base does not carry"
    if model.inertia != "condensed":
        return f"inertia={model.inertia!r}"
    if model.limits:
        return "joint limits"
    return unknown_mechanics(model)


def _moves_others(model: ReducedModel) -> bool:
    """Whether the basis of a floating model moves bodies that the base does not carry."""
    m, base = model.mechanism, model.base
    assert base is not None
    return bool(model.basis[~base.carried[m.joint_children[m.dof_joint]]].any())


def unknown_mechanics(model: ReducedModel) -> str | None:
    """Why the manifold of a model does not know all of its mechanics; None: it does."""
    if model.wrenches is None and model.wrench.any():
        return "a loaded model of an older file"
    return None


def pack_manifold(
    model: ReducedModel,
    h: float,
    method: str,
    slots: int,
    gravity: Floats | None = None,
    known: Packed | None = None,
) -> Packed:
    """Arrays for motion on a model's manifold; at most `slots` loads act, the first of them on the end effectors.

    Gravity is that of a floating base, m/s², (3,).
    """
    manifold, modes = model.manifold, _own_modes(model)
    packed = _pack(model, manifold, modes, h, exact_map(modes, h), slots, gravity)
    if known is None:
        packed.coordinates.probe(packed)
    else:
        for part, found in zip(_probed(packed), _probed(known), strict=True):
            part[...] = found
    _divide(packed, modes, h)
    loaded = model.wrench.any() or len(manifold.loads.rows) or manifold.gravity.any()
    packed.sizes[mk.BENT] = loaded or not manifold.plain
    packed.sizes[mk.METHOD] = mk.FULL if loaded and method == "auto" else _LEVELS[method]
    packed.sizes[mk.QUIET] = _is_quiet(model, packed)
    return packed


class _Probed(NamedTuple):
    """Views of the constants that `NaturalCoordinates.probe` sets."""

    inertia: Floats
    steady: Floats
    slope: Floats
    large: Floats
    fast: Floats
    working: Floats


def _probed(packed: Packed) -> _Probed:
    n, e = packed.coordinates.count, len(packed.coordinates.model.end_effectors)
    modes = packed.part(mk.MODE, n, mk.MODE_SIZE)
    working = packed.part(mk.WORKING, e, 2, 3 * n + 4, int(packed.sizes[mk.WIDTH]))
    return _Probed(
        packed.part(mk.INERTIA_AT_REST, n, n),
        packed.part(mk.STEADY, n),
        packed.part(mk.SLOPE, n, n),
        modes[:, mk.LARGE],
        modes[:, mk.FAST],
        working[:, :, : 3 * n + 3, :n],
    )


def _is_quiet(model: ReducedModel, packed: Packed) -> bool:
    """Whether small motion cannot open loops, meet stops, or take end effectors beyond what the model knows."""
    sizes, n = packed.sizes, packed.coordinates.count
    if sizes[mk.METHOD] != mk.AUTO or sizes[mk.CLOSING] or sizes[mk.STOPS]:
        return False
    large = packed.constants[sizes[mk.MODE] :][: n * mk.MODE_SIZE].reshape(n, -1)[:, mk.LARGE]
    most = 1 / np.maximum(large, 1e-300)  # amplitudes of small motion
    ways = packed.coordinates.world_ends(np.zeros(n))[:, :3]
    distance = (np.linalg.norm(ways, axis=1) * most).max(initial=0.0)
    return bool(_MARGIN * distance < model.known * model.mechanism.radius) and most.max() < _UNBOUNDED


def statics(model: ReducedModel, basis: Floats | None = None) -> NaturalCoordinates:
    """Mechanics at rest on a model's manifold, or on that of other joint motions at its configuration, (nv, k).

    Coordinates of other motions are of unit elastic energy. Loops close by the model's `closing`, and motions bend by
    the model's curvature as far as they are in its basis.
    """
    m, manifold = model.mechanism, model.manifold
    if basis is None:
        modes = _own_modes(model)
    else:
        k, curvature = basis.shape[1], manifold.curvature
        _, sizes, axes = np.linalg.svd(weigh(m, basis), full_matrices=False)
        modes = Modes(np.ascontiguousarray(axes.T / sizes), np.ones(k), np.zeros((k, k)))
        if curvature is not None:
            curvature = _bent(curvature, _nearest(manifold, basis))
        manifold = replace(manifold, basis=basis, curvature=curvature)
    slots, none = (
        max(m.body_count, len(model.end_effectors)),
        np.zeros((3 * manifold.size, 2 * manifold.size)),
    )
    return _pack(model, manifold, modes, 1.0, none, slots).coordinates


def weigh(m: Mechanism, motions: Floats) -> Floats:
    """Motions (nv, n) in coordinates whose squares sum up to twice their elastic energy: joints, then tendons."""
    lent = _LENT * typical_stiffness(m) / m.dof_unit**2
    joints = np.sqrt(np.where(m.stiffness > 0, m.stiffness, lent))[:, None] * motions
    tendons = np.sqrt(m.tendon_stiffness)[:, None] * (m.tendons.dense(m.nv) @ motions)
    return np.concatenate([joints, tendons])


def _nearest(manifold: Manifold, motions: Floats) -> Floats:
    """Coordinates y nearest to joint motions (nv, n) in the metric of elastic energy, (k, n)."""
    m = manifold.mechanism
    return np.linalg.lstsq(weigh(m, manifold.basis), weigh(m, motions))[0].astype(np.float64)


def _own_modes(model: ReducedModel) -> Modes:
    """Natural modes of a model, with a floating base free to move."""
    mass = model.reduced_mass
    if model.base is not None:
        mass = mass - _share_of_base(model, model.basis)
    return natural_coordinates(model.reduced_stiffness, mass, model.reduced_damping)


def _share_of_base(model: ReducedModel, motions: Floats) -> Floats:
    """What a floating base that is free to move takes off the inertia of joint motions (nv, n) at rest, (n, n)."""
    base = model.base
    assert base is not None
    m = base.mechanism
    rows = np.zeros((6 + motions.shape[1], m.nv))
    rows[:6, base.dofs] = np.eye(6)
    rows[6:, base.own_dofs] = motions.T
    momentum = Inertia(m, m.reference).times(rows)[:, base.dofs]
    return momentum[6:] @ np.linalg.solve(momentum[:6], momentum[6:].T)


def _bent(curvature: Floats, change: Floats) -> Floats:
    """Curvature in coordinates x with y = change x, (n, n, nv)."""
    return np.einsum("ia,jb,ijd->abd", change, change, curvature, optimize=True)


def _pack(
    model: ReducedModel,
    manifold: Manifold,
    modes: Modes,
    h: float,
    step: Floats,
    slots: int,
    gravity: Floats | None = None,
) -> Packed:
    """Arrays of a manifold at a model's configuration; `step` is the exact map of a step, zero for statics."""
    m, n = manifold.mechanism, manifold.size
    width = -(-n // 4) * 4  # kernels take vectors of four numbers
    phi = manifold.basis @ modes.vectors
    r, loops = len(manifold.rows), m.topology.loops
    found, moved = _moving_first(joint_kinematics(model, phi, r > 0), m, manifold.plain)
    table, rows = found.links, found.motions.shape[1]
    moved_rows = moved if moved < len(table) else rows
    into = _row_dofs(model, table, rows)  # dof of every row of motion, -1 for none
    has = into >= 0

    def by_row(values: Floats) -> Floats:
        out = np.zeros((rows, *values.shape[1:]))
        out[has] = values[into[has]]
        return out

    links = m.links
    place = link_places(model)
    body_of = np.full(len(place) + 2, -1)
    body_of[place] = links.body
    bodies = np.zeros((len(table), mk.BODY_SIZE))
    heavy = np.ones(m.body_count, dtype=bool)
    if model.base is not None:  # others do not move
        heavy = model.base.carried
    for k, at in enumerate(table[:, 0].tolist()):
        b = body_of[at]
        if b >= 0 and heavy[b]:
            bodies[k, mk.MASS], bodies[k, mk.COM : mk.ABOUT] = m.mass[b], m.com[b]
            bodies[k, mk.ABOUT :] = m.inertia[b][np.triu_indices(3)]
    link_at = np.full(len(place) + 2, -1)
    link_at[place] = np.arange(len(place))
    carriers = _join_still(
        bodies, table, moved, kinematics.link_poses(m, manifold.q)[link_at[table[:, PLACE]]]
    )
    balls = np.flatnonzero(table[:, BALL] == 1)
    ball_rows = table[balls, MOTION]
    turning = m.dof_kind == BALL_JOINT
    rest, joint = _springs(manifold, into[ball_rows])
    per_dof = np.zeros((m.nv, mk.JOINT_SIZE))
    per_dof[:, mk.STIFFNESS] = np.where(turning, 0.0, m.stiffness)
    per_dof[:, mk.PULL] = np.where(turning, 0.0, joint)
    per_dof[:, mk.DAMPER], per_dof[:, mk.ARMATURE] = m.damping, m.armature
    tendons = m.tendons.dense(m.nv) if len(m.tendons) else np.zeros((0, m.nv))
    slack = tendon_lengths(m, manifold.q, manifold.loads.rest) - manifold.loads.tendon_rest
    tension = np.stack([m.tendon_stiffness, m.tendon_stiffness * slack, m.tendon_damping], axis=1)
    couplings = m.couplings.dense(m.nv) if len(m.couplings) else np.zeros((0, m.nv))
    positions = (manifold.rows < 6 * loops) & (manifold.rows % 6 < 3)
    resolved = _resolved(modes, h)
    count = int((resolved > 0).sum())
    touching = contact_map(modes, h) if step.any() else step
    felt = np.zeros((n, n))
    if step.any():
        felt[:] = h * np.linalg.inv(touching[2 * n :, n:])
    stops, reach = _stops(manifold, into)
    held = manifold.loads.rows.copy()
    held[:, LINK] = place[held[:, LINK].astype(int)]
    curved = manifold.curvature is not None
    curvature = np.zeros((0, width))
    if manifold.curvature is not None:  # (n, rows, width)
        turned = _bent(manifold.curvature, modes.vectors)
        by_rows = by_row(turned.reshape(n * n, -1).T).reshape(rows, n, n).swapaxes(0, 1)
        curvature = _padded(by_rows.reshape(n * rows, n), width)
    effectors = len(model.end_effectors)
    ends = np.array([model.at.pose(body)[:3, 3] for body in model.end_effectors])
    distance = model.known * m.radius
    parts = {
        BASIS: found.motions[:, :moved_rows],
        BOUND: np.zeros(n),
        LOCAL: found.local,
        HINGE: found.hinge,
        mk.MAP: _padded(step.reshape(6 * n, n), width),
        mk.STEP_INERTIA: _step_inertia(step, count, h),
        mk.PHI: _padded(found.motions.T, width),
        mk.SCREW: _blocked(by_row(links.screw)[:moved_rows]),
        mk.JOINT: np.pad(by_row(per_dof)[:moved_rows].T.ravel(), (0, LANES)),
        mk.BODY: _blocked(bodies[:moved]),
        mk.CURVATURE: curvature,
        mk.CLOSE: by_row(
            manifold.closing * np.where(positions, m.radius, 1.0)
        ),  # per gap in radii and radians
        mk.COUPLING: by_row(couplings.T).T,
        mk.TENDON: by_row(tendons.T).T,
        mk.TENSION: tension,
        mk.REST: rest,
        mk.MOTOR: np.zeros(rows),
        mk.FIXED: np.concatenate(
            [
                manifold.gravity,
                m.reference_poses[:, :3, 3].mean(axis=0),
                [m.radius, distance * distance],
                ends.ravel(),
            ]
        ),
        mk.MODE: np.stack([modes.squares, resolved, np.zeros(n), np.zeros(n)], axis=1),
        mk.TOUCHING: _padded(touching.reshape(6 * n, n), width),
        mk.TOUCHING_INERTIA: _step_inertia(touching, count, h),
        mk.STOP_LIMITS: reach,
        mk.RESPONSE: _padded(touching[2 * n :, :n] / (h * h), width),
        mk.MEAN_SHARE: _padded(felt @ touching[2 * n :, :n] / (h * h), width),
        mk.PUSHED_INERTIA: _padded(felt, width),
        mk.YIELD: _padded(touching[2 * n :, n:] / h, width),
        mk.DAMPER_MATRIX: modes.damping,
        mk.INERTIA_AT_REST: np.zeros((n, n)),
        mk.WORKING: np.zeros((effectors, 2, 3 * n + 4, width)),
        mk.RAMP_MAP: np.zeros((n, 2 * width)),
        mk.TURNS: np.array([model.at.pose(body)[:3, :3] for body in model.end_effectors]),
        mk.STEADY: np.zeros(n),
        mk.SLOPE: np.zeros((n, n)),
        mk.HELD_ROWS: held,
        mk.DIVIDED: np.zeros(mk.DIVISIONS * _division_size(n, width) if step.any() else 0),
        BASE: base_constants(model, np.zeros(3) if gravity is None else gravity),
    }
    chosen = np.array(
        [(i // 6, i % 6) if i < 6 * loops else (-1, i - 6 * loops) for i in manifold.rows.tolist()],
        dtype=np.int64,
    ).reshape(-1, mk.ROW_SIZE)
    columns = np.full(
        len(place) + 2, -1
    )  # of links in blocks, by place; the world and a floating base follow
    columns[table[:, PLACE]], columns[-2:] = carriers, moved + np.arange(2)
    tables = {
        mk.LOOP_TABLE: np.stack([place[links.loop_copy], place[links.loop_body]], axis=1),
        mk.ROW_TABLE: chosen,
        mk.BALL_TABLE: ball_rows,
        mk.BALL_LINKS: balls,
        mk.COLUMNS: columns,
        mk.ABOVE: columns[table[:moved, PARENT]],
        mk.STOP_TABLE: stops,
        mk.DIVISION_TABLE: np.zeros((1 + mk.DIVISIONS) * mk.DIVISION_SIZE, dtype=np.int64),
    }
    sizes = np.zeros(mk.MANIFOLD_SIZES + sum(t.size for t in tables.values()), dtype=np.int64)
    at = mk.MANIFOLD_SIZES
    for entry, numbers in tables.items():
        sizes[entry] = at
        sizes[at : at + numbers.size] = numbers.ravel()
        at += numbers.size
    sizes[ROWS], sizes[mk.METHOD], sizes[mk.PLAIN], sizes[mk.WIDTH] = rows, mk.FULL, manifold.plain, width
    sizes[mk.CLOSING], sizes[mk.COUPLINGS], sizes[mk.TENDONS] = r, len(couplings), len(tendons)
    sizes[mk.BALLS], sizes[mk.HELD], sizes[mk.SLOTS], sizes[mk.CURVED] = len(balls), len(held), slots, curved
    sizes[mk.RESOLVED], sizes[mk.LOSSLESS] = count, not (m.damping.any() or m.tendon_damping.any())
    sizes[mk.MOVED], sizes[mk.MOVED_ROWS] = moved, moved_rows
    padded = sizes[mk.CLOSING_WIDTH] = -(-r // LANES) * LANES
    sizes[mk.STOPS] = len(stops)
    places = len(links) + 2
    block = 6 * (places + LANES)
    scratch = {
        mk.MOTION: rows, mk.RATE: rows, mk.BIAS: rows, mk.TORQUE: rows, mk.TANGENT: rows * width,
        mk.AXIS: 6 * (rows + LANES), mk.TWIST: block, mk.ACCELERATION: block, mk.LOAD: block, mk.FORCE: block,
        mk.PLACED: 2 * block, mk.MOMENTS: 2 * block, mk.SUBTREE: 2 * block, mk.SWEEP: 6 * width * places,
        mk.CARRIED: mk.CARRIED_SIZE * (rows + LANES), mk.SHARES: rows * width, mk.TOTAL: rows + LANES,
        mk.OPEN: 6 * padded * places, mk.GAP: r, mk.PIVOT: r * padded, mk.ANSWER: r * width, mk.GRADIENT: rows,
        mk.CLOSERS: rows * padded, mk.GAP_RATES: r * width, mk.SWAPS: 2 * r, mk.UNCLOSED: rows if r else 0,
        mk.BENDING: rows * width if curved else 0, mk.TANGENT_AT: n + 1,
        mk.POINTS: 6 * slots,
        mk.STEP_WORK: 13 * width + 8 + 2 * n * width, mk.PLACING: 2 * len(table) + 32,
        mk.CONTACT_WORK: n * width + n + 3 * width + 2,
        mk.HUB: 0 if model.base is None else mk.PER_RATE + 9 * width,
        mk.BASE_WORK: mk.SPIN_PER_RATE + (0 if model.base is None else 3 * width),
        mk.KNOWN_LOADS: effectors * LOAD_SIZE, mk.ACTING: (1 + n) * width,
        mk.CHANGES: slots * LOAD_SIZE, mk.CHANGE: (2 + n) * width,
        mk.STOP_WORK: len(stops) * (2 * width + 3) + 2 * width,
    }  # fmt: skip
    extra = {mk.FORCES: width, mk.PUSH: width, mk.MULTIPLIERS: r, mk.BUDGET: mk.BUDGET_SIZE}
    scratch[mk.WHOLE_STEP] = Y + 2 * n + BASE_SIZE + sum(extra.values())
    coordinates = NaturalCoordinates(model, manifold, modes, into, h)
    packed = lay_out(
        model, coordinates, manifold_steps, sizes, table, {TIMESTEP: h}, parts, scratch, 0.0, extra, slots
    )
    rows_of_loads = packed.state[sizes[WRENCH] : sizes[WRENCH] + slots * LOAD_SIZE].reshape(slots, LOAD_SIZE)
    rows_of_loads[:effectors, LINK] = [m.body_index(body) for body in model.end_effectors]
    packed.state[sizes[mk.KNOWN_LOADS] + ACTS] = -1.0  # no loads are those
    packed.state[sizes[mk.BUDGET] + mk.CHANGED] = mk.AFTER_HELD
    coordinates.bind(packed)
    return packed


def _moving_first(found: Kinematics, m: Mechanism, plain: bool) -> tuple[Kinematics, int]:
    """Links that a coordinate moves against their parents, or that carry one, then the others; and their number.

    All are taken as moving if the mechanism is no `plain` tree, or has tendons.
    """
    count = len(found.links)
    if not plain or len(m.tendons) or not count:
        return found, count
    index = {place: k for k, place in enumerate(found.links[:, PLACE].tolist())}
    moves: NDArray[np.bool_] = np.any(found.motions, axis=0)
    for k in range(count - 1, -1, -1):
        above = index.get(int(found.links[k, PARENT]))
        if moves[k] and above is not None:
            moves[above] = True
    if not moves.any():
        return found, count
    order = np.argsort(~moves, kind="stable")
    sorted_ = Kinematics(found.links[order], found.local[order], found.hinge[order], found.motions[:, order])
    return sorted_, int(moves.sum())


def _join_still(bodies: Floats, links: Ints, moved: int, poses: Floats) -> Ints:
    """Add the inertia of links behind the first `moved` to that of the moving links that carry them, in `bodies`.

    Returns per link the moving one that carries it, `moved` for the world; `poses` are those at y = 0.
    """
    index = {place: k for k, place in enumerate(links[:, PLACE].tolist())}
    carriers = np.arange(len(links))
    for k in range(moved, len(links)):
        above = index.get(int(links[k, PARENT]))
        carriers[k] = moved if above is None else carriers[above]
        if carriers[k] < moved and bodies[k, mk.MASS] > 0:
            to = carriers[k]
            bodies[to] = _joined(bodies[to], bodies[k], spatial.se3_inverse(poses[to]) @ poses[k])
    return carriers


def _joined(body: Floats, other: Floats, pose: Floats) -> Floats:
    """Row of BODY of two bodies in the frame of the first, in which the other has this pose."""
    upper, inertia = np.triu_indices(3), np.zeros((2, 3, 3))
    for out, row in zip(inertia, (body, other), strict=True):
        out[upper] = row[mk.ABOUT :]
        out[:] = out + np.triu(out, 1).T
    mass, extra = body[mk.MASS], other[mk.MASS]
    centre = pose[:3, :3] @ other[mk.COM : mk.ABOUT] + pose[:3, 3]
    apart, whole = centre - body[mk.COM : mk.ABOUT], mass + extra
    about = inertia[0] + pose[:3, :3] @ inertia[1] @ pose[:3, :3].T
    about += mass * extra / whole * (apart @ apart * np.eye(3) - np.outer(apart, apart))
    return np.concatenate([[whole], body[mk.COM : mk.ABOUT] + extra / whole * apart, about[upper]])


def _stops(manifold: Manifold, dofs: Ints) -> tuple[Ints, Floats]:
    """Rows of motion of hinges and slides with limits, and the displacements at which they stop, (stops, 2).

    Limits, or where y = 0 is beyond them. `dofs` are those of the rows.
    """
    m, q = manifold.mechanism, manifold.q[manifold.mechanism.dof_coordinate]
    limited = (np.isfinite(m.lower) | np.isfinite(m.upper)) & (m.dof_kind != BALL_JOINT)
    rows = np.array([k for k, d in enumerate(dofs.tolist()) if d >= 0 and limited[d]], dtype=np.int64)
    d = dofs[rows]
    return rows, np.stack([np.minimum(m.lower[d] - q[d], 0.0), np.maximum(m.upper[d] - q[d], 0.0)], axis=1)


def _resolved(modes: Modes, h: float) -> Floats:
    """Share of the inertia forces of every mode that a step resolves, (k,)."""
    return np.clip((_LOST - np.sqrt(modes.squares) * h) / (_LOST - _RESOLVED), 0.0, 1.0)


def _divide(packed: Packed, modes: Modes, h: float) -> None:
    """Set the constants of parts of a step: `h` halved once, twice and so on."""
    sizes, constants = packed.sizes, packed.constants
    n, width = len(modes.squares), int(sizes[mk.WIDTH])
    step, length = exact_map(modes, h / 2**mk.DIVISIONS), 6 * n * width
    whole = constants[sizes[mk.MODE] :][: n * mk.MODE_SIZE].reshape(n, -1)
    table = sizes[sizes[mk.DIVISION_TABLE] :][: (1 + mk.DIVISIONS) * mk.DIVISION_SIZE]
    table = table.reshape(-1, mk.DIVISION_SIZE)
    table[0] = sizes[[mk.MAP, mk.STEP_INERTIA, mk.MODE, mk.RESOLVED]]
    for level in range(mk.DIVISIONS, 0, -1):
        part = h / 2**level
        resolved = _resolved(modes, part)
        count = int((resolved > 0).sum())
        at = int(sizes[mk.DIVIDED]) + (level - 1) * _division_size(n, width)
        table[level] = at, at + length, at + length + n * n, count
        constants[at : at + length] = _padded(step.reshape(6 * n, n), width).ravel()
        constants[at + length :][: count * count] = _step_inertia(step, count, part).ravel()
        mode = constants[at + length + n * n :][: n * mk.MODE_SIZE].reshape(n, -1)
        mode[:], mode[:, mk.FILTER] = whole, resolved
        step[: 2 * n], step[2 * n :] = (
            step[: 2 * n] @ step[: 2 * n],
            step[2 * n :] @ step[: 2 * n] + step[2 * n :],
        )


def _division_size(n: int, width: int) -> int:
    """How many constants each length of parts of a step has."""
    return 6 * n * width + n * n + mk.MODE_SIZE * n


def _step_inertia(step: Floats, count: int, h: float) -> Floats:
    """Impulse of a step per change of the rates at y = 0, of the first coordinates, (count, count)."""
    k = len(step) // 3
    response = step[2 * k : 2 * k + count, k : k + count]
    if not response.any():
        return np.zeros((count, count))
    return h * np.linalg.inv((response + response.T) / 2).astype(np.float64)


def _blocked(numbers: Floats) -> Floats:
    """Numbers of links or rows of motion, (count, c), in blocks of LANES of them, padded with zeros; see `_column`."""
    padded = np.zeros((-(-len(numbers) // LANES) * LANES, numbers.shape[1]))
    padded[: len(numbers)] = numbers
    return np.ascontiguousarray(padded.reshape(-1, LANES, numbers.shape[1]).swapaxes(1, 2))


def _padded(columns: Floats, width: int) -> Floats:
    out = np.zeros((len(columns), width))
    out[:, : columns.shape[1]] = columns
    return out


def _row_dofs(model: ReducedModel, table: Ints, rows: int) -> Ints:
    """Dof of every row of motion, (rows,); -1 for rows of links without one."""
    links, place = model.mechanism.links, link_places(model)
    link_at = np.full(len(place) + 2, -1)
    link_at[place] = np.arange(len(place))
    out = np.full(rows, -1)
    for k in range(len(table)):
        link = link_at[table[k, 0]]
        if links.kind[link] == LINK_BALL:
            out[table[k, MOTION] : table[k, MOTION] + 3] = links.dof[link] + np.arange(3)
        elif links.kind[link] != LINK_FIXED:
            out[k] = links.dof[link]
    return out


def _springs(manifold: Manifold, balls: Ints) -> tuple[Floats, Floats]:
    """REST of balls, by their first dofs, and the torque of springs at y = 0 of all other dofs, (nv,)."""
    m, rest = manifold.mechanism, manifold.loads.rest
    stretch = spring_coordinates(m, manifold.q, rest) - rest[m.dof_coordinate]
    out = np.zeros((len(balls), mk.REST_SIZE))
    for i, d in enumerate(balls.tolist()):
        c = int(m.dof_coordinate[d])
        turn = spatial.quat_multiply(spatial.quat_conjugate(rest[c : c + 4]), manifold.q[c : c + 4])
        out[i, mk.TURN : mk.BALL_STIFFNESS] = turn
        out[i, mk.BALL_STIFFNESS : mk.BALL_PULL] = m.stiffness[d : d + 3]
    return out, m.stiffness * stretch


class NaturalCoordinates:
    """Coordinates of motion on a manifold: amplitudes z of the natural modes at y = 0.

    Has the methods of `coordinates.Amplitudes`, evaluated where the mechanism is.
    """

    def __init__(self, model: ReducedModel, manifold: Manifold, modes: Modes, dofs: Ints, h: float):
        """Of a model; `dofs` of the rows of motion, and the time step."""
        self.model, self.manifold, self.modes = model, manifold, modes
        self.count, self._dofs, self._h = manifold.size, dofs, h
        self._back: Floats = np.linalg.inv(modes.vectors).astype(np.float64)
        self._rest = (
            np.zeros(self.count),
            np.zeros(len(manifold.rows)),
        )  # coordinates and multipliers found last

    def copy(self) -> NaturalCoordinates:
        """The same coordinates, with arrays of their own to evaluate the mechanics in."""
        out = copy(self)
        sizes, links, constants, state, poses = self._arrays
        out._arrays = sizes, links, constants, state.copy(), poses.copy()
        return out

    def bind(self, packed: Packed) -> None:
        """Take arrays to evaluate the mechanics in: the constants of a simulation, and a state of their own."""
        sizes, links, constants, state, poses = packed.arrays
        self._arrays = sizes, links, constants, state.copy(), poses.copy()
        self._moving = state  # of the simulation

    def to_model(self, z: Floats) -> Floats:
        """Coordinates of the model, (n,)."""
        return self.modes.vectors @ z

    def from_model(self, y: Floats) -> Floats:
        """Natural coordinates, (n,)."""
        with np.errstate(over="ignore", invalid="ignore"):  # `ReducedSimulation` refuses what is not finite
            return self._back @ y

    @property
    def yields(self) -> Floats:
        """Rates at the end of a step with contacts per impulse on the coordinates, in small motion, (n, n)."""
        n, width = self.count, int(self._arrays[0][mk.WIDTH])
        return self._arrays[2][self._arrays[0][mk.YIELD] :][: n * width].reshape(n, width)[:, :n].T

    def motor(self, torque: Floats) -> tuple[Floats, Floats]:
        """Torques on the rows of motion, from those on dofs, and their force on the coordinates at y = 0, (n,)."""
        rows = np.where(self._dofs >= 0, torque[self._dofs], 0.0)
        return rows, self.joint_map(np.zeros(self.count)).T @ torque

    @cached_property
    def ramp(self) -> Floats:
        """Response of a step to loads that change during it, for RAMP_MAP."""
        return _padded(
            ramp_map(self.modes, self._h).reshape(2 * self.count, -1), int(self._arrays[0][mk.WIDTH])
        )

    def rest_of_state(self) -> Floats:
        """State beyond coordinates and rates where loops were closed last: no forces, no budget of energy."""
        width = int(self._arrays[0][mk.WIDTH])
        out = np.zeros(2 * width + len(self.manifold.rows) + mk.BUDGET_SIZE)
        out[2 * width : -mk.BUDGET_SIZE] = self._part(mk.MULTIPLIERS, len(self.manifold.rows))
        return out

    # --- mechanics

    def _part(self, entry: int, *shape: int) -> Floats:
        """View of a part of the state."""
        at = int(self._arrays[0][entry])
        return self._arrays[3][at : at + int(np.prod(shape))].reshape(shape)

    def _locate(self, z: Floats) -> None:
        """Poses, tangent and twists per coordinate at z, with loops closed.

        Raises:
            ConvergenceError: loops do not close there.
        """
        z, mu = np.ascontiguousarray(z), self._part(mk.MULTIPLIERS, len(self.manifold.rows))
        mu[:] = self._rest[1] if np.array_equal(z, self._rest[0]) else 0.0
        if np.array_equal(z, self._moving[Y : Y + self.count]):  # where the simulation has closed them
            at = int(self._arrays[0][mk.MULTIPLIERS])
            mu[:] = self._moving[at : at + len(mu)]
        if not manifold_places.locate(z, *self._arrays):
            mu[:] = 0.0
            for share in np.linspace(0.0, 1.0, _APPROACH + 1)[1:]:
                if not manifold_places.locate(share * z, *self._arrays):
                    raise ConvergenceError(
                        "the loops of the mechanism do not close so far from where the model was made"
                    )
        manifold_places.find_tangent(z, *self._arrays)

    def _by_dof(self, rows: Floats) -> Floats:
        """Rows of motion sorted by dofs."""
        out = np.zeros((self.manifold.mechanism.nv, *rows.shape[1:]))
        has = self._dofs >= 0
        out[self._dofs[has]] = rows[has]
        return out

    def joints(self, z: Floats) -> Floats:
        """Joint coordinates, (nq,)."""
        self._locate(z)
        step = self._by_dof(self._part(mk.MOTION, len(self._dofs)))
        return kinematics.move(self.manifold.mechanism, self.manifold.q, step)

    def joint_map(self, z: Floats) -> Floats:
        """Joint velocities per rate, (nv, n)."""
        self._locate(z)
        return self._by_dof(self._tangent()[:, : self.count])

    def _tangent(self) -> Floats:
        """Tangent where the mechanics were evaluated last, (rows, width)."""
        sizes, _, constants, _, _ = self._arrays
        rows, width = len(self._dofs), int(sizes[mk.WIDTH])
        if not self.manifold.plain:
            return self._part(mk.TANGENT, rows, width)
        return constants[sizes[mk.PHI] : sizes[mk.PHI] + rows * width].reshape(rows, width)

    def joint_rates(self, z: Floats, v: Floats) -> Floats:
        """Joint velocities, (nv,)."""
        return self.joint_map(z) @ v

    def ends(self, z: Floats) -> Floats:
        """Twists of the end effectors per rate, in their frames, (6e, n)."""
        world, m = self.world_ends(z), self.manifold.mechanism
        poses = self._arrays[4]
        for e, body in enumerate(self.model.end_effectors):
            turn = poses[m.body_index(body), :3, :3].T
            world[e, :3], world[e, 3:] = turn @ world[e, :3], turn @ world[e, 3:]
        return world.reshape(-1, self.count)

    def world_ends(self, z: Floats) -> Floats:
        """Velocities of the end effectors' origins and their angular velocities, world axes, per rate, (e, 6, n).

        With a floating base they are those without momentum, base at home: the centre of mass rests.
        """
        self._locate(z)
        m, sizes, poses = self.manifold.mechanism, self._arrays[0], self._arrays[4]
        at = int(sizes[mk.FIXED]) + mk.ORIGIN
        places = [m.body_index(body) for body in self.model.end_effectors]
        sizes, links, _, state, _ = self._arrays
        manifold_places.sweep_tangent(self._tangent(), sizes, links, state, poses)
        out = self._part(mk.SWEEP, len(poses), 6, int(sizes[mk.WIDTH]))[places, :, : self.count]
        arms = poses[places, :3, 3] - self._arrays[2][at : at + 3]
        out[:, :3] -= spatial.hat(arms) @ out[:, 3:]
        if self.model.base is not None:
            self.mass(z)
            centre, drift, _, spin = self._hub()
            out[:, :3] -= drift - spatial.hat(arms - centre) @ spin
            out[:, 3:] -= spin
        return out

    def _hub(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Centre of mass from the origin, (3,); its velocity, angular momentum and inverse inertia times that per rate.

        Base at rest, home axes, (3, n) each; after `mechanics`.
        """
        sizes, state, n = self._arrays[0], self._arrays[3], self.count
        hub = state[sizes[mk.HUB] :]
        share = hub[mk.PER_RATE : mk.PER_RATE + 9 * sizes[mk.WIDTH]].reshape(3, 3, -1)[:, :, :n]
        return hub[mk.MIDDLE : mk.INVERSE], share[0], share[1], share[2]

    def carried(self, z: Floats) -> Carried:
        """What a floating base carries, with the joints at z."""
        assert self.model.base is not None
        self.mass(z)
        centre, drift, momentum, _ = self._hub()
        sizes, state = self._arrays[0], self._arrays[3]
        inverse = state[sizes[mk.HUB] + mk.INVERSE :][:9].reshape(3, 3)
        home = self.model.at.pose(self.model.base.body)
        turn, at = home[:3, :3].T, int(sizes[mk.FIXED]) + mk.ORIGIN
        centre = turn @ (centre + self._arrays[2][at : at + 3] - home[:3, 3])
        inertia = turn @ np.linalg.inv(inverse) @ turn.T
        return Carried(centre, inertia, turn @ drift, turn @ momentum)

    def displacement(self, z: Floats) -> Floats:
        """Twists of the end effectors from the linearisation, (6e,): logarithms of their relative poses."""
        self._locate(z)
        m = self.manifold.mechanism
        places = [m.body_index(body) for body in self.model.end_effectors]
        start = self.model.at.poses[places]
        return spatial.se3_log(spatial.se3_inverse(start) @ self._arrays[4][places]).ravel()

    def mechanics(
        self, z: Floats, v: Floats, spun: Floats | None = None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Forces of loads and springs, of dampers, and of inertia at constant rates, (n,) each; inertia, (n, n).

        With a floating base, these with the base free to move, at an angular momentum `spun` about the centre of mass,
        home axes, (3,); none by default.
        """
        self._locate(z)
        if self.model.base is not None:
            sizes, state = self._arrays[0], self._arrays[3]
            at = int(sizes[BASE_STATE]) + MOMENTUM
            state[at : at + 3] = 0.0 if spun is None else spun
            manifold_kernels.orient(0.0, sizes, self._arrays[2], state)
        n, width = self.count, int(self._arrays[0][mk.WIDTH])
        out = np.zeros((3 + n, width))
        z, v = np.ascontiguousarray(z), np.ascontiguousarray(v)
        manifold_kernels.evaluate(z, v, 1.0, True, False, *self._arrays, out[0], out[1], out[2], out[3:])
        return out[0, :n], out[1, :n], out[2, :n], out[3:, :n]

    def mass(self, z: Floats) -> Floats:
        """Inertia of the coordinates, (n, n): that of the links, and the constant correction of the linear model."""
        rest = self._arrays[2][self._arrays[0][mk.INERTIA_AT_REST] :][: self.count**2].reshape(self.count, -1)
        return np.eye(self.count) + self.mechanics(z, np.zeros(self.count))[3] - rest

    def inverse_at(self, z: Floats) -> Floats:
        """Rates at the end of the next step per impulse on the coordinates during it, (n, n)."""
        n = self.count
        response = exact_map(self.modes, self._h)[2 * n :, n:].T / self._h
        resolved = self._arrays[2][self._arrays[0][mk.MODE] :][: mk.MODE_SIZE * n].reshape(n, -1)[
            :, mk.FILTER
        ]
        change = resolved[:, None] * (self.mass(z) - np.eye(n)) * resolved
        return np.linalg.solve(np.eye(n) + response @ change, response).astype(np.float64)

    def response(self, z: Floats) -> Floats:
        """Rates at the end of the next step per impulse on the end effectors during it, (n, 6e)."""
        return self.inverse_at(z) @ self.ends(z).T

    def impulse_velocity(self, z: Floats) -> Floats:
        """Immediate change of the rates per impulse on the end effectors, (n, 6e)."""
        return np.linalg.solve(self.mass(z), self.ends(z).T).astype(np.float64)

    def from_joints(self, q: Floats, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """Coordinates and rates nearest to joint coordinates and velocities, in the metric of kinetic energy.

        Of the whole mechanism: a floating base is free to move. The third is `q` with the base moved so that the centre
        of mass and, to first order, the orientation of the whole stay where they are.
        """
        base, z = self.model.base, np.zeros(self.count)
        m = self.manifold.mechanism if base is None else base.mechanism
        here, motions, near = q.copy(), np.zeros((self.count, m.nv)), q.copy()
        own_q = slice(None) if base is None else base.own_coordinates
        own = slice(None) if base is None else base.own_dofs
        held = np.zeros((0, m.nv)) if base is None else np.eye(m.nv)[base.dofs]
        project = np.zeros((self.count, m.nv))
        for _ in range(_NEAREST):
            here[own_q], motions[:, own] = self.joints(z), self.joint_map(z).T
            every = np.concatenate([motions, held])
            momentum = Inertia(m, here).times(every)
            project = np.linalg.solve(momentum @ every.T, momentum).astype(np.float64)
            away = coordinate_difference(m, here, q)
            change = project[: self.count] @ away
            size = float(np.abs(change @ motions).max(initial=0.0))
            z = z + change * min(1.0, 0.5 / max(size, 1e-300))
            if size < 1e-12:
                near = kinematics.move(m, here, (project[self.count :] @ away) @ held)
                break
        return z, project[: self.count] @ rates, near

    # --- statics

    def equilibrium(self, wrenches: Mapping[int, Load], snap: bool = True) -> Floats:
        """Coordinates at rest under wrenches by number of body, (n,).

        Newton's method in steps of the load, from the wrenches of the linearisation to the given ones, each short
        enough to stay on the branch of stable equilibria that begins there. Where that branch ends, the mechanism snaps
        or buckles: it goes on from there downhill to another stable equilibrium under the whole load, with a warning.

        Raises:
            ConvergenceError: there is none, or the branch ends and `snap` is False.
        """
        rows = self._part(WRENCH, int(self._arrays[0][mk.SLOTS]), LOAD_SIZE)
        start, end = self._load_rows(wrenches, len(rows))
        z, mu = np.zeros(self.count), self._part(mk.MULTIPLIERS, len(self.manifold.rows))
        mu[:] = 0.0
        share, step = 0.0, 1.0
        while share < 1.0:
            aim, kept = min(1.0, share + step), mu.copy()
            rows[:] = start + aim * (end - start)
            rows[:, POINT:FOLLOWER_FORCE], rows[:, ACTS:] = end[:, POINT:FOLLOWER_FORCE], end[:, ACTS:]
            found = self._newton(z)
            if found is None:
                mu[:], step = kept, step / 2
                if step < _SHORTEST:
                    if not snap:
                        raise ConvergenceError(f"the branch of equilibria ends at {share:.1%} of the load")
                    z = self._snap(z, rows, end, share)
                    break
            else:
                z, share, step = found, aim, 2 * step
        rows[:] = 0.0
        self._rest = z.copy(), mu.copy()
        return z

    def equilibrium_near(self, wrenches: Mapping[int, Load], q: Floats) -> Floats:
        """Coordinates at rest under wrenches by number of body, near joint coordinates, (n,).

        Newton's method from the coordinates nearest to them in the metric of elastic energy.

        Raises:
            ConvergenceError: there is no stable rest nearby.
        """
        shift = coordinate_difference(self.manifold.mechanism, self.manifold.q, q)
        z = self.from_model(_nearest(self.manifold, shift[:, None])[:, 0])
        self._locate(z)
        rows = self._part(WRENCH, int(self._arrays[0][mk.SLOTS]), LOAD_SIZE)
        rows[:] = self._load_rows(wrenches, len(rows))[1]
        found = self._newton(z)
        rows[:] = 0.0
        if found is None:
            raise ConvergenceError("there is no stable rest nearby")
        self._rest = found.copy(), self._part(mk.MULTIPLIERS, len(self.manifold.rows)).copy()
        return found

    def _snap(self, z: Floats, rows: Floats, end: Floats, share: float) -> Floats:
        """Stable equilibrium under the loads `end`, downhill from coordinates where a branch ended."""
        name = f"the reduced model of '{self.manifold.mechanism.name}'"
        rows[:] = end
        force = np.zeros(int(self._arrays[0][mk.WIDTH]))
        unit, scale = self._probes(1.0), self._frequencies()
        closed = manifold_kernels.residual(z, 1.0, *self._arrays, force)
        for _ in range(_DOWNHILL):
            found = self._stiffness(z) if closed else None
            if found is None or not np.isfinite(found).all():
                break
            found = found / scale[:, None] / scale
            values, vectors = np.linalg.eigh((found + found.T) / 2)
            along = (vectors.T @ (force[: self.count] / scale)) / np.maximum(np.abs(values), _NEUTRAL)
            step = (vectors @ along) / scale
            largest = float(np.abs(step / unit).max())
            if largest < _PROBE and values[0] > 0:
                settled = self._newton(z)
                if settled is not None:
                    message = (
                        f"{name} snaps or buckles at {share:.0%} of this load: this is where it rests then"
                    )
                    warnings.warn(message, PliantWarning, stacklevel=2)
                    return settled
            z, before = z + step * min(1.0, _SLIDE / max(largest, 1e-300)), self._joint_motion()
            closed = manifold_kernels.residual(z, 1.0, *self._arrays, force) and self._is_near(before)
        raise ConvergenceError(
            f"{name} has no stable rest beyond {share:.1%} of this load: it is beyond what the model knows; "
            "use `pliant.equilibrium`",
            1.0 - share,
        )

    def _load_rows(self, wrenches: Mapping[int, Load], count: int) -> tuple[Floats, Floats]:
        """Rows of the wrenches of the linearisation, and of given ones, on the same bodies."""
        start, end = np.zeros((2, count, LOAD_SIZE))
        own = _own_wrenches(self.model)
        for i, body in enumerate({**own, **wrenches}):
            if body in own:
                own[body].write(start[i])
            if body in wrenches:
                wrenches[body].write(end[i])
            end[i, ACTS], end[i, LINK] = 1.0, body
        return start, end

    def _frequencies(self) -> Floats:
        """Angular frequencies of the modes, (n,); those without springs count as a little stiff."""
        squares = self.modes.squares
        return np.sqrt(np.where(squares > 0, squares, _SOFTEST * squares.max(initial=1e-300)))

    def _stiffness(self, z: Floats) -> Floats | None:
        """Stiffness of the coordinates under the loads, (n, n), by differences; None where loops do not close."""
        n, unit = self.count, self._probes(_PROBE)
        out, other = np.zeros((n, n)), np.zeros(int(self._arrays[0][mk.WIDTH]))
        for i in range(n):
            for sign in (1.0, -1.0):
                moved = z.copy()
                moved[i] += sign * unit[i]
                if not manifold_kernels.residual(moved, 1.0, *self._arrays, other):
                    return None
                out[:, i] -= 0.5 * sign * other[:n] / unit[i]
        return out

    def _newton(self, start: Floats) -> Floats | None:
        """Coordinates at rest near `start` under the loads; None if there are none, or if they are unstable."""
        n, unit = self.count, self._probes(1.0)
        force, other = np.zeros((2, int(self._arrays[0][mk.WIDTH])))
        scale, z = self._frequencies(), start
        if not manifold_kernels.residual(z, 1.0, *self._arrays, force):
            return None

        before = self._joint_motion()

        def settled() -> bool:
            """Whether forces are small, too: where loops hardly close coordinates are stiff without bound."""
            return float(np.abs(force[:n] / scale**2 / unit).max()) < _SETTLED and self._is_near(before)

        for _ in range(_NEWTON):
            stiffness = self._stiffness(z)
            if stiffness is None or not np.isfinite(stiffness).all():
                return None
            # A stiffness that is not definite: the branch turns unstable. Modes without springs are neutral.
            scaled = stiffness / scale[:, None] / scale
            values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
            if values[0] < -_NEUTRAL:
                return None
            skew = (scaled - scaled.T) / 2
            held = (vectors * np.maximum(values, _NEUTRAL)) @ vectors.T + skew
            step = np.linalg.solve(held, force[:n] / scale) / scale
            largest, size, part = float(np.abs(step / unit).max()), np.linalg.norm(force[:n] / scale), 1.0
            while True:
                moved = z + part * step
                closed = manifold_kernels.residual(moved, 1.0, *self._arrays, other)
                if closed and np.linalg.norm(other[:n] / scale) <= (1.0 - 0.1 * part) * size:
                    break
                part /= 2
                if part < 1e-3:  # as near as rounding lets it
                    return z if largest < 1e-7 and settled() else None
            z, force = moved, other.copy()
            if float(np.abs((z - start) / unit).max()) > _STRIDE:
                return None
            if largest * part < 1e-11:
                return z if settled() else None
        return None

    def _joint_motion(self) -> Floats:
        """Displacements of joints where the mechanics were evaluated last, rad and radii, (nv,)."""
        return self._by_dof(self._part(mk.MOTION, len(self._dofs))) / self.manifold.mechanism.dof_unit

    def _is_near(self, before: Floats) -> bool:
        """Whether joints are near earlier displacements: loops may close in more than one way."""
        return bool(np.abs(self._joint_motion() - before).max(initial=0.0) < _LEAP)

    def _probes(self, displacement: float) -> Floats:
        """Amplitude of every mode at which the largest displacement of a joint is this, rad or radii, (n,)."""
        phi = (self.manifold.basis @ self.modes.vectors) / self.manifold.mechanism.dof_unit[:, None]
        return displacement / np.maximum(np.abs(phi).max(axis=0), 1e-300)

    def probe(self, packed: Packed) -> None:
        """Set the constants of small steps: inertia at rest, and derivatives of forces and inertia, by differences."""
        n, e = self.count, len(self.model.end_effectors)
        probed = _probed(packed)
        zero = np.zeros(n)
        force, _, _, rest = self.mechanics(zero, zero)
        probed.inertia[:], probed.steady[:] = rest, force
        work = np.zeros((e, n + 1, 6, n))
        work[:, 0] = self.world_ends(zero)
        slope, spread, large = probed.slope, np.zeros(n), probed.large
        resolved = packed.part(mk.MODE, n, mk.MODE_SIZE)[:, mk.FILTER]
        near, far = self._probes(_PROBE), self._probes(_SWING)
        stiff = np.sqrt(np.maximum(self.modes.squares, _SOFTEST * self.modes.squares.max(initial=1e-300)))
        bent, forces = np.zeros(n), [list[Floats]() for _ in range(n)]
        for i in range(n):
            for sign in (1.0, -1.0):
                z = zero.copy()
                z[i] = sign * near[i]
                work[:, i + 1] += sign * self.world_ends(z) / (2 * near[i])
                slope[i] += sign * self.mechanics(z, zero)[0] / (2 * near[i])
                z[i] = sign * far[i]
                try:
                    there, _, _, mass = self.mechanics(z, zero)
                except ConvergenceError:
                    spread[i], bent[i] = np.inf, np.inf
                    continue
                change = resolved[:, None] * (mass - rest) * resolved
                spread[i] = max(spread[i], float(np.linalg.norm(change, 2)) / far[i])
                forces[i].append(there - force)
            slope[i, i] += self.modes.squares[i]
            for sign, there in zip((1.0, -1.0), forces[i], strict=False):  # beyond what is linear in z
                unit = np.zeros(n)
                unit[i] = self.modes.squares[i]
                left = (there - sign * far[i] * (slope[i] - unit)) / stiff
                bent[i] = max(bent[i], float(np.linalg.norm(left)) / (far[i] * stiff[i]))
            astray = max(self._stray(work, i, far[i]), bent[i])
            large[i] = max(spread[i] / _HEAVIER, np.sqrt(astray / _ASTRAY) / far[i])
        swing = np.where(self.modes.squares > 0, np.sqrt(self.modes.squares), 1 / self._h)
        probed.fast[:] = large / swing
        # per end effector the rows of forces, then those of torques, each for (1, z)
        probed.working[:] = work.reshape(e, n + 1, 2, 3, n).swapaxes(1, 2).reshape(e, 2, 3 * n + 3, n)

    def _stray(self, work: Floats, i: int, amplitude: float) -> float:
        """Error of the linear map from wrenches to forces at an amplitude of mode i, relative: second order."""
        unit = np.array([1.0] * 3 + [self.manifold.mechanism.radius] * 3)[:, None]
        size, worst = np.linalg.norm(unit * work[:, 0], axis=(1, 2)), 0.0
        m = self.manifold.mechanism
        places, start = [m.body_index(body) for body in self.model.end_effectors], self._turns()
        for sign in (1.0, -1.0):
            z = np.zeros(self.count)
            z[i] = sign * amplitude
            try:
                error = unit * (self.world_ends(z) - work[:, 0] - z[i] * work[:, i + 1])
            except ConvergenceError:
                return np.inf
            worst = max(worst, float((np.linalg.norm(error, axis=(1, 2)) / np.maximum(size, 1e-300)).max()))
            turned = start + spatial.hat(z[i] * work[:, 0, 3:, i]) @ start  # forces that turn with bodies
            off = self._arrays[4][places, :3, :3] - turned
            worst = max(worst, float(np.linalg.norm(off, axis=(1, 2)).max()) / np.sqrt(2))
        return worst

    def _turns(self) -> Floats:
        """Axes of the end effectors at y = 0, (e, 3, 3)."""
        count = len(self.model.end_effectors)
        return self._arrays[2][self._arrays[0][mk.TURNS] :][: 9 * count].reshape(count, 3, 3)
