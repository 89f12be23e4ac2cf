"""Lay a reduced model out for the kernels; see `_kernels` for the arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.reduced import _blend_kernels, _kernels
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.coordinates import Amplitudes, StaticWrenches
from pliant.engines.reduced.model import ReducedModel
from pliant.mechanism import kinematics
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE
from pliant.statics.inertia import link_twists
from pliant.statics.loads import LOAD_SIZE

__all__ = ["Packed", "link_places", "pack"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Packed:
    """A model, a time step and a way of reconstruction as arrays.

    Attributes:
        sizes, links, constants: as the kernels take them.
        state: at rest at the linearisation, nothing applied.
        poses: room for poses; those of bodies come first.
        coordinates: what the numbers of the state mean.
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
        """Address and length of each, for `five_arrays`. They hold for as long as this object lives."""
        return np.array([number for array in self.arrays for number in (array.ctypes.data, len(array))])

    @property
    def work(self) -> Floats:
        """The part of `state` that reconstruction works in."""
        return self.state[self.sizes[_kernels.WORK] + self.sizes[_kernels.WRENCH] :]


def pack(model: ReducedModel | BlendedModel, h: float, reconstruction: str, gravity: Floats) -> Packed:
    """Arrays of a model that steps by `h`."""
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
    work = max(n + 40, basis.size // n + 2 * len(links) + 30)
    packed = _lay_out(model, coordinates, sizes, links, basis.size // n, parts, work, _kernels)
    packed.constants[0] = h
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
    # Matrices, or their eigenvectors and then the eigenvalues.
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
    work = max(
        models + 12 + n * (3 * n + 3) + 40, count + models * (n + 17) + 2 * len(links) + n + products + 60
    )
    packed = _lay_out(first, coordinates, sizes, links, count, parts, work, _blend_kernels)
    packed.constants[: _blend_kernels.LENGTH + 1] = h, blend.exponent, coordinates.rigid, coordinates.length
    packed.state[1 : 1 + n] = blend.samples[0] / unit
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
    """Put arrays where `sizes` then says they are; make room for state and poses."""
    n, effectors = coordinates.count, len(model.end_effectors)
    sizes[: _kernels.TWIST] = n, effectors, len(links), rows, model.base is not None
    starts = 8 + np.cumsum([0, *(-(-part.size // 8) * 8 for part in parts.values())])
    base = _base_state(model)
    sizes[_kernels.BASE_STATE] = 1 + 2 * n
    sizes[_kernels.WRENCH] = 1 + 2 * n + len(base)
    sizes[_kernels.WORK] = sizes[_kernels.WRENCH] + LOAD_SIZE * effectors
    # A copy of what moves, then the larger of what a step and what a reconstruction need.
    moving = int(sizes[_kernels.WORK] + sizes[_kernels.WRENCH]) + work
    constants, state, poses = _aligned((int(starts[-1]),), (moving,), (len(model.mechanism.links) + 2, 4, 4))
    for (place, part), start in zip(parts.items(), starts.tolist(), strict=False):
        sizes[place] = start
        constants[start : start + part.size] = part.ravel()
    state[sizes[_kernels.BASE_STATE] : sizes[_kernels.WRENCH]] = base
    poses[:, 3, 3] = 1.0
    poses[-2] = poses[-1] = np.eye(4)
    targets = np.zeros((effectors, 4), dtype=np.int64)
    targets[:, 0] = [model.mechanism.body_index(body) for body in model.end_effectors]
    return Packed(sizes, np.concatenate([links, targets]), constants, state, poses, coordinates, kernels)


def _aligned(*shapes: tuple[int, ...]) -> list[Floats]:
    """Zeros that start a cache line each, one array after the other.

    Vectors that cross a line take twice as long to load; and arrays that lie anywhere may be a multiple of 4096 bytes
    apart, in which case processors take loads from one to wait for stores to the other.
    """
    lengths = [-(-math.prod(shape) // 8) * 8 for shape in shapes]
    room = np.zeros(sum(lengths) + 8)
    at, out = -(room.ctypes.data // 8) % 8, []
    for shape, length in zip(shapes, lengths, strict=True):
        out.append(room[at : at + math.prod(shape)].reshape(shape))
        at += length
    return out


def link_places(model: ReducedModel | BlendedModel) -> Ints:
    """Where the pose of every link is among a simulation's poses."""
    return _places(model.models[0] if isinstance(model, BlendedModel) else model)[0]


def _places(model: ReducedModel) -> tuple[Ints, Ints]:
    """Where the pose of every link goes, and where that of its parent is. Bodies come first, in their order."""
    links = model.mechanism.links
    count = model.mechanism.body_count
    place = np.where(links.body >= 0, links.body, 0)
    place[links.body < 0] = count + np.arange((links.body < 0).sum())
    parent = np.where(links.parent >= 0, place[links.parent], len(links))  # the world as it is
    if model.base is not None:
        root = links.body_link[model.mechanism.body_index(model.base.body)]
        while links.parent[root] >= 0:
            root = links.parent[root]
        parent[root] = len(links) + 1  # the world as the base carries it
    return place, parent


def _joints(model: ReducedModel, motions: Floats) -> tuple[Ints, Floats, Floats, Floats]:
    """Links, their `B0 B1 B2`, which are hinges, and joint motions by links: for forward kinematics.

    Copies of bodies where loops are cut follow the loops' joints, not the tree's: nobody asks for them.
    """
    m, links = model.mechanism, model.mechanism.links
    local, _ = kinematics.link_transforms(m, model.q)
    place, parent = _places(model)
    kept = np.flatnonzero(~np.isin(links.joint, m.topology.chords))
    kind, dof = links.kind[kept], links.dof[kept]
    count, balls = len(kept), np.flatnonzero(kind == LINK_BALL)
    table = np.zeros((count, 4), dtype=np.int64)
    table[:, 0], table[:, 1], table[:, 2] = place[kept], parent[kept], kind == LINK_BALL
    table[balls, 3] = count + 3 * np.arange(len(balls))
    single = (kind != LINK_BALL) & (kind != LINK_FIXED)
    parts = np.zeros((count, 3, 3, 4))  # link; row; B0, B1, B2; column
    parts[:, :, 0] = local[kept, :3]
    hat = _hat(links.screw[dof[single]])
    parts[single, :, 1] = (local[kept][single] @ hat)[:, :3]
    parts[single, :, 2] = (local[kept][single] @ hat @ hat)[:, :3]
    flat = parts.reshape(count, 36)
    flat[balls, :16] = local[kept[balls]].reshape(-1, 16)
    rows = np.zeros((count + 3 * len(balls), motions.shape[1]))
    rows[:count][single] = motions[dof[single]]
    for i in range(3):
        flat[balls, 16 + 6 * i : 22 + 6 * i] = links.screw[dof[balls] + i]
        rows[count + i :: 3] = motions[dof[balls] + i]
    return table, flat, (kind == LINK_HINGE).astype(np.float64), rows.T


def _twists(model: ReducedModel) -> tuple[Ints, Floats, Floats, Floats]:
    """Bodies, their poses at the linearisation, and their twists: for TVCG's reconstruction."""
    m, links = model.mechanism, model.mechanism.links
    local, poses = kinematics.link_transforms(m, model.q)
    _, parent = _places(model)
    table = np.zeros((m.body_count, 4), dtype=np.int64)
    table[:, 0] = np.arange(m.body_count)
    for body in range(m.body_count):
        root = links.body_link[body]
        while links.parent[root] >= 0:
            root = links.parent[root]
        table[body, 1] = parent[root]
    twists = link_twists(m, local, np.ascontiguousarray(model.basis.T))[:, links.body_link]
    # One row of numbers per component of a twist, so that bodies can be had one by one.
    return table, poses[links.body_link], np.zeros(0), twists.transpose(1, 2, 0).reshape(-1, len(twists))


def _hat(twists: Floats) -> Floats:
    """4 x 4 matrices of twists."""
    out = np.zeros((len(twists), 4, 4))
    out[:, :3, :3] = spatial.hat(twists[:, 3:])
    out[:, :3, 3] = twists[:, :3]
    return out


def _base_constants(model: ReducedModel, gravity: Floats) -> Floats:
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
    if model.base is None:
        return np.zeros(0)
    fixed = _base_constants(model, np.zeros(3))
    pose = model.at.pose(model.base.body)
    state = np.zeros(_kernels.BASE_SIZE)
    state[:3] = pose[:3, :3] @ fixed[1:4] + pose[:3, 3]
    state[3:7] = spatial.quat_from_matrix(pose[:3, :3])
    return state
