"""Arrays of a reduced or blended model, as the kernels take them; see `_kernels` for the layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import EARTH, acceleration, choice, seconds
from pliant.engines.reduced import _blend_kernels, _kernels
from pliant.engines.reduced._intrinsics import (
    BALL,
    BALL_TWISTS,
    LINK_SIZE,
    LOCAL_SIZE,
    MOTION,
    PARENT,
    PLACE,
    POSE_SIZE,
)
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.coordinates import Amplitudes, StaticWrenches
from pliant.engines.reduced.model import ReducedModel
from pliant.errors import InputError
from pliant.mechanism import kinematics
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE
from pliant.statics.inertia import link_twists
from pliant.statics.loads import LOAD_SIZE

__all__ = ["BaseViews", "Packed", "check_arguments", "link_places", "pack"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class BaseViews(NamedTuple):
    """Floating base as views of `state` (world axes) and of `constants` (axes of the base).

    Attributes:
        centre, quaternion: centre of mass and orientation.
        velocity, momentum: velocity of the centre of mass, angular momentum about it.
        mass: of the whole mechanism.
        offset: centre of mass in the base's frame.
        inverse_inertia: about the centre of mass, (3, 3).
    """

    centre: Floats
    quaternion: Floats
    velocity: Floats
    momentum: Floats
    mass: float
    offset: Floats
    inverse_inertia: Floats

    def inverse_inertia_world(self) -> Floats:
        """Inverse inertia about the centre of mass in world axes, (3, 3)."""
        turn = spatial.quat_to_matrix(self.quaternion)
        return turn @ self.inverse_inertia @ turn.T

    def spin(self) -> Floats:
        """Angular velocity, world axes, rad/s, (3,)."""
        return self.inverse_inertia_world() @ self.momentum

    def place(self, pose: Floats) -> None:
        """Set centre of mass and orientation from the pose of the base's body, 4 x 4."""
        self.centre[:] = pose[:3, :3] @ self.offset + pose[:3, 3]
        self.quaternion[:] = spatial.quat_from_matrix(pose[:3, :3])


@dataclass(frozen=True, eq=False)
class Packed:
    """Arrays of a model for a time step and a kind of reconstruction.

    Attributes:
        sizes, links, constants: as the kernels take them.
        state: at rest at the linearisation, without loads.
        poses: world poses; those of bodies come first.
        coordinates: meaning of the coordinates in the state.
        kernels: the module whose `advance` and `reconstruct` take these arrays.
    """

    sizes: Ints
    links: Ints
    constants: Floats
    state: Floats
    poses: Floats
    coordinates: Amplitudes | StaticWrenches
    kernels: Any

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats, Floats, Floats]:
        """In the order in which kernels take them."""
        return self.sizes, self.links, self.constants, self.state, self.poses

    def places(self) -> Ints:
        """Address and length of each array, for `five_arrays`; valid while this object lives."""
        return np.array([number for array in self.arrays for number in (array.ctypes.data, len(array))])

    @property
    def work(self) -> Floats:
        """Work space of reconstruction, a part of `state`."""
        return self.state[self.sizes[_kernels.WORK] + self.sizes[_kernels.WRENCH] :]

    def base(self) -> BaseViews | None:
        """Views of the floating base; None if the base is fixed."""
        if not self.sizes[_kernels.FREE]:
            return None
        k, state = _kernels, self.state[self.sizes[_kernels.BASE_STATE] :]
        fixed = self.constants[self.sizes[_kernels.BASE] :]
        return BaseViews(
            state[k.CENTRE : k.QUATERNION],
            state[k.QUATERNION : k.VELOCITY],
            state[k.VELOCITY : k.MOMENTUM],
            state[k.MOMENTUM : k.BASE_SIZE],
            float(fixed[k.BASE_MASS]),
            fixed[k.BASE_CENTRE : k.INVERSE_INERTIA],
            fixed[k.INVERSE_INERTIA : k.INVERSE_POSE].reshape(3, 3),
        )


def check_arguments(model: Any, timestep: Any, reconstruction: str, gravity: ArrayLike | None) -> Floats:
    """Gravity, m/s², (3,), after all arguments of a simulation of a reduced model were checked."""
    if not isinstance(model, ReducedModel | BlendedModel):
        raise InputError(f"a ReducedModel expected, as `pliant.reduce` makes it, not {model!r:.80}")
    seconds(timestep)
    choice(reconstruction, "reconstruction", ("joint", "twist"))
    if gravity is not None and model.base is None:
        raise InputError(
            "gravity is for models with a floating base; for this one, reduce at the equilibrium under gravity: "
            "`reduce(m, at=pliant.equilibrium(m, gravity=...))`"
        )
    return acceleration(EARTH if gravity is None else gravity)


def pack(model: ReducedModel | BlendedModel, h: float, reconstruction: str, gravity: Floats) -> Packed:
    """Arrays of a model with a time step of `h` seconds."""
    if isinstance(model, BlendedModel):
        return _pack_blend(model, h, reconstruction, gravity)
    coordinates = Amplitudes(model, h)
    inverse = coordinates.inverse
    response = h * coordinates.response(np.zeros(0))
    update = np.concatenate([-h * inverse @ model.reduced_stiffness, inverse @ model.reduced_mass], axis=1)
    if reconstruction == "twist":
        links, local, hinge, basis = _twists(model)
    else:
        links, local, hinge, basis = _joints(model, model.basis)
    n = coordinates.count
    parts = {
        _kernels.UPDATE: update.T,
        _kernels.RESPONSE: response.T,
        _kernels.STEADY: -response @ model.wrench,
        _kernels.BASIS: basis,
        _kernels.BOUND: np.abs(basis.reshape(n, -1)).max(axis=1, initial=0.0),
        _kernels.LOCAL: local,
        _kernels.HINGE: hinge,
        _kernels.BASE: _base_constants(model, gravity),
    }
    sizes = np.zeros(_kernels.SIZES, dtype=np.int64)
    sizes[_kernels.TWIST] = reconstruction == "twist"
    rows = basis.size // n
    work = max(n + _kernels.WRENCH_WORK + _kernels.BASE_WORK, rows + 2 * len(links) + _kernels.BALL_WORK)
    packed = _lay_out(model, coordinates, sizes, links, rows, parts, work, _kernels)
    packed.constants[_kernels.TIMESTEP] = h
    _kernels.reconstruct(
        packed.sizes, packed.links, packed.constants, packed.state, packed.poses, packed.work
    )
    return packed


def _pack_blend(blend: BlendedModel, h: float, reconstruction: str, gravity: Floats) -> Packed:
    first, models = blend.models[0], len(blend.models)
    coordinates = StaticWrenches(blend, h)
    n, unit, directions = coordinates.count, coordinates.unit, np.zeros((0, coordinates.count))
    if reconstruction == "twist":
        links, _, hinge, _ = _twists(first)
        shifts = np.array([model.at.poses for model in blend.models])
        maps = np.array([model.twist_maps for model in blend.models]) * unit
        local, count = np.zeros(0), 6 * len(links)
    elif blend.polynomial is not None:
        found = blend.polynomial
        links, local, hinge, rows = _joints(
            first, np.concatenate([found.slope * unit, found.coefficients.T], axis=1)
        )
        maps, shifts, count = rows[:n], rows[n:], rows.shape[1]
        directions = found.directions * unit
    else:
        maps = blend.joint_maps * unit
        motions = np.concatenate([blend.shifts.T, maps.transpose(1, 0, 2).reshape(len(maps[0]), -1)], axis=1)
        links, local, hinge, rows = _joints(first, motions)
        shifts, maps, count = rows[:models], rows[models:], rows.shape[1]
    # Per matrix either all models' matrices, or all their eigenvectors, then all eigenvalues.
    stacks = blend.condensed
    if blend.matrices == "eigen":
        stacks = [np.concatenate([part.ravel() for part in spectrum]) for spectrum in blend.spectra]
    parts = {
        _blend_kernels.SAMPLES: blend.samples / unit,
        _blend_kernels.METRICS: (blend.metrics * unit).transpose(0, 2, 1),
        _blend_kernels.COMPLIANCE: stacks[0],
        _blend_kernels.MASS: stacks[1],
        _blend_kernels.DAMPING: stacks[2],
        _blend_kernels.SHIFTS: shifts,
        _blend_kernels.MAPS: maps,
        _blend_kernels.DIRECTIONS: directions,
        _kernels.LOCAL: local,
        _kernels.HINGE: hinge,
        _kernels.BASE: _base_constants(first, gravity),
    }
    sizes = np.zeros(_blend_kernels.BLEND_SIZES, dtype=np.int64)
    sizes[_blend_kernels.MODELS], sizes[_blend_kernels.EIGEN] = models, blend.matrices == "eigen"
    sizes[_blend_kernels.SPANNED] = len(directions)
    sizes[_blend_kernels.PRODUCTS] = len(shifts) if len(directions) else 0
    sizes[_kernels.TWIST] = reconstruction == "twist"
    products = int(sizes[_blend_kernels.PRODUCTS]) + len(directions)
    step = models + n + _kernels.WRENCH_WORK + 3 * n * n + n + _kernels.BASE_WORK
    shared = max(
        n, products, POSE_SIZE * models + _blend_kernels.MEAN_WORK, 2 * len(links) + _kernels.BALL_WORK
    )
    work = max(step, models + count + models * n + shared)
    packed = _lay_out(first, coordinates, sizes, links, count, parts, work, _blend_kernels)
    packed.constants[_kernels.TIMESTEP] = h
    packed.constants[_blend_kernels.EXPONENT] = blend.exponent
    packed.constants[_blend_kernels.RIGID] = coordinates.rigid
    packed.constants[_blend_kernels.LENGTH] = coordinates.length
    packed.state[_kernels.Y : _kernels.Y + n] = blend.samples[0] / unit
    _blend_kernels.reconstruct(
        packed.sizes, packed.links, packed.constants, packed.state, packed.poses, packed.work
    )
    return packed


def _lay_out(
    model: ReducedModel,
    coordinates: Amplitudes | StaticWrenches,
    sizes: Ints,
    links: Ints,
    rows: int,
    parts: dict[int, Floats],
    work: int,
    kernels: Any,
) -> Packed:
    """Arrays of a model from the parts of `constants`, by the entry of `sizes` that takes their offset."""
    n, effectors = coordinates.count, len(model.end_effectors)
    sizes[: _kernels.TWIST] = n, effectors, len(links), rows, model.base is not None
    starts = _kernels.HEADER + np.cumsum([0, *(-(-part.size // 8) * 8 for part in parts.values())])
    base = _base_state(model)
    sizes[_kernels.BASE_STATE] = _kernels.Y + 2 * n
    sizes[_kernels.WRENCH] = sizes[_kernels.BASE_STATE] + len(base)
    sizes[_kernels.WORK] = sizes[_kernels.WRENCH] + LOAD_SIZE * effectors
    # Work space: a copy of the state up to the loads, then room for a step or a reconstruction.
    length = int(sizes[_kernels.WORK] + sizes[_kernels.WRENCH]) + work
    constants, state, poses = _aligned((int(starts[-1]),), (length,), (len(model.mechanism.links) + 2, 4, 4))
    for (place, part), start in zip(parts.items(), starts.tolist(), strict=False):
        sizes[place] = start
        constants[start : start + part.size] = part.ravel()
    state[sizes[_kernels.BASE_STATE] : sizes[_kernels.WRENCH]] = base
    poses[:, 3, 3] = 1.0
    poses[-2] = poses[-1] = np.eye(4)
    targets = np.zeros((effectors, LINK_SIZE), dtype=np.int64)
    targets[:, PLACE] = [model.mechanism.body_index(body) for body in model.end_effectors]
    return Packed(sizes, np.concatenate([links, targets]), constants, state, poses, coordinates, kernels)


def _aligned(*shapes: tuple[int, ...]) -> list[Floats]:
    """Arrays of zeros, one after the other, each from the start of a cache line.

    Vectors that cross a cache line take twice as long to load. Arrays allocated one by one may be a multiple of 4096
    bytes apart, and then processors delay loads from one until stores to the other are done (4K aliasing).
    """
    lengths = [-(-math.prod(shape) // 8) * 8 for shape in shapes]
    room = np.zeros(sum(lengths) + 8)
    at, out = -(room.ctypes.data // 8) % 8, []
    for shape, length in zip(shapes, lengths, strict=True):
        out.append(room[at : at + math.prod(shape)].reshape(shape))
        at += length
    return out


def link_places(model: ReducedModel | BlendedModel) -> Ints:
    """Place of the pose of every link among the poses of a simulation, (links,)."""
    return _places(model.models[0] if isinstance(model, BlendedModel) else model)[0]


def _places(model: ReducedModel) -> tuple[Ints, Ints]:
    """Places of the poses of every link and of its parent. Bodies come first, in their order."""
    links = model.mechanism.links
    count = model.mechanism.body_count
    place = np.where(links.body >= 0, links.body, 0)
    place[links.body < 0] = count + np.arange((links.body < 0).sum())
    parent = np.where(links.parent >= 0, place[links.parent], len(links))  # the world
    if model.base is not None:
        root = links.body_link[model.mechanism.body_index(model.base.body)]
        while links.parent[root] >= 0:
            root = links.parent[root]
        parent[root] = len(links) + 1  # displacement of the floating base
    return place, parent


def _joints(model: ReducedModel, motions: Floats) -> tuple[Ints, Floats, Floats, Floats]:
    """Table of links, their `local`, whether each is on a hinge, and joint motions by links: for forward kinematics.

    Links that hang on the joints that close loops, copies of bodies, are left out: they have poses already.
    """
    m, links = model.mechanism, model.mechanism.links
    local, _ = kinematics.link_transforms(m, model.q)
    place, parent = _places(model)
    kept = np.flatnonzero(~np.isin(links.joint, m.topology.chords))
    kind, dof = links.kind[kept], links.dof[kept]
    count, balls = len(kept), np.flatnonzero(kind == LINK_BALL)
    table = np.zeros((count, LINK_SIZE), dtype=np.int64)
    table[:, PLACE], table[:, PARENT], table[:, BALL] = place[kept], parent[kept], kind == LINK_BALL
    table[balls, MOTION] = count + 3 * np.arange(len(balls))
    single = (kind != LINK_BALL) & (kind != LINK_FIXED)
    parts = np.zeros((count, 3, 3, 4))  # link; row; B0, B1, B2; column
    parts[:, :, 0] = local[kept, :3]
    hat = _hat(links.screw[dof[single]])
    parts[single, :, 1] = (local[kept][single] @ hat)[:, :3]
    parts[single, :, 2] = (local[kept][single] @ hat @ hat)[:, :3]
    flat = parts.reshape(count, LOCAL_SIZE)
    flat[balls, :BALL_TWISTS] = local[kept[balls]].reshape(-1, POSE_SIZE)
    rows = np.zeros((count + 3 * len(balls), motions.shape[1]))
    rows[:count][single] = motions[dof[single]]
    for i in range(3):
        flat[balls, BALL_TWISTS + 6 * i : BALL_TWISTS + 6 * i + 6] = links.screw[dof[balls] + i]
        rows[count + i :: 3] = motions[dof[balls] + i]
    return table, flat, (kind == LINK_HINGE).astype(np.float64), rows.T


def _twists(model: ReducedModel) -> tuple[Ints, Floats, Floats, Floats]:
    """Table of bodies, their poses at the linearisation, and their twists: for TVCG's reconstruction."""
    m, links = model.mechanism, model.mechanism.links
    local, poses = kinematics.link_transforms(m, model.q)
    _, parent = _places(model)
    table = np.zeros((m.body_count, LINK_SIZE), dtype=np.int64)
    table[:, PLACE] = np.arange(m.body_count)
    for body in range(m.body_count):
        root = links.body_link[body]
        while links.parent[root] >= 0:
            root = links.parent[root]
        table[body, PARENT] = parent[root]
    twists = link_twists(m, local, np.ascontiguousarray(model.basis.T))[:, links.body_link]
    # One row per component of a twist: the twists of single bodies are contiguous.
    return table, poses[links.body_link], np.zeros(0), twists.transpose(1, 2, 0).reshape(-1, len(twists))


def _hat(twists: Floats) -> Floats:
    """4 x 4 matrices of twists, (n, 4, 4)."""
    out = np.zeros((len(twists), 4, 4))
    out[:, :3, :3] = spatial.hat(twists[:, 3:])
    out[:, :3, 3] = twists[:, :3]
    return out


def _base_constants(model: ReducedModel, gravity: Floats) -> Floats:
    """Constants of a floating base, (BASE_CONSTANTS,); none if it is fixed."""
    if model.base is None:
        return np.zeros(0)
    inertia = model.base.inertia
    mass = inertia[0, 0]
    centre = spatial.vee(inertia[3:, :3]) / mass  # the lower left block is m c^
    about = inertia[3:, 3:] - mass * ((centre @ centre) * np.eye(3) - np.outer(centre, centre))
    pose = model.at.pose(model.base.body)
    return np.concatenate(
        [[mass], centre, np.linalg.inv(about).ravel(), spatial.se3_inverse(pose).ravel(), gravity]
    )


def _base_state(model: ReducedModel) -> Floats:
    """State of a floating base at rest in its reference pose, (BASE_SIZE,); empty if it is fixed."""
    if model.base is None:
        return np.zeros(0)
    k, pose = _kernels, model.at.pose(model.base.body)
    offset = _base_constants(model, np.zeros(3))[k.BASE_CENTRE : k.INVERSE_INERTIA]
    state = np.zeros(k.BASE_SIZE)
    state[k.CENTRE : k.QUATERNION] = pose[:3, :3] @ offset + pose[:3, 3]
    state[k.QUATERNION : k.VELOCITY] = spatial.quat_from_matrix(pose[:3, :3])
    return state
