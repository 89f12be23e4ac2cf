"""Arrays of a reduced or blended model, as the kernels take them; see `kernels` for the layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import EARTH, acceleration, choice, seconds
from pliant.engines.reduced import blend_kernels, kernels
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
from pliant.engines.reduced.coordinates import Amplitudes, StaticWrenches, rigid_whole
from pliant.engines.reduced.model import ReducedModel
from pliant.errors import InputError
from pliant.mechanism import kinematics
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE
from pliant.statics.inertia import link_twists
from pliant.statics.loads import LOAD_SIZE
from pliant.text import brief

__all__ = [
    "BaseViews",
    "Kinematics",
    "Packed",
    "base_constants",
    "check_arguments",
    "joint_kinematics",
    "lay_out",
    "link_places",
    "pack",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
METHODS = ("auto", "small", "full", "tvcg")  # levels of accuracy of motion


class BaseViews(NamedTuple):
    """Floating base as views of `state`, world axes, and its mass.

    Attributes:
        centre: centre of mass of the whole mechanism.
        quaternion: orientation of the base's body.
        velocity, momentum: velocity of the centre of mass, angular momentum of the whole about it.
        mass: of the whole mechanism.
    """

    centre: Floats
    quaternion: Floats
    velocity: Floats
    momentum: Floats
    mass: float

    def place(self, pose: Floats, offset: Floats) -> None:
        """Set centre of mass and orientation from the pose of the base's body and the centre of mass in its frame."""
        self.centre[:] = pose[:3, :3] @ offset + pose[:3, 3]
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
    coordinates: Any
    kernels: Any

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats, Floats, Floats]:
        """In the order in which kernels take them."""
        return self.sizes, self.links, self.constants, self.state, self.poses

    def places(self) -> Ints:
        """Address and length of each array, for `five_arrays`; valid while this object lives."""
        return np.array([number for array in self.arrays for number in (array.ctypes.data, len(array))])

    def part(self, entry: int, *shape: int) -> Floats:
        """View of the constants that begin at an entry of `sizes`."""
        return self.constants[self.sizes[entry] :][: int(np.prod(shape))].reshape(shape)

    @property
    def work(self) -> Floats:
        """Work space of reconstruction, a part of `state`."""
        return self.state[self.sizes[kernels.WORK] + self.sizes[kernels.WRENCH] :]

    def base(self) -> BaseViews | None:
        """Views of the floating base; None if the base is fixed."""
        if not self.sizes[kernels.FREE]:
            return None
        k, state = kernels, self.state[self.sizes[kernels.BASE_STATE] :]
        fixed = self.constants[self.sizes[kernels.BASE] :]
        return BaseViews(
            state[k.CENTRE : k.QUATERNION],
            state[k.QUATERNION : k.VELOCITY],
            state[k.VELOCITY : k.MOMENTUM],
            state[k.MOMENTUM : k.BASE_SIZE],
            float(fixed[k.BASE_MASS]),
        )


def check_arguments(model: Any, timestep: Any, reconstruction: str, gravity: ArrayLike | None) -> Floats:
    """Gravity, m/s², (3,), after all arguments of a simulation of a reduced model were checked."""
    if not isinstance(model, ReducedModel | BlendedModel):
        raise InputError(f"a ReducedModel expected, as `pliant.reduce` makes it, not {brief(model)}")
    seconds(timestep)
    choice(reconstruction, "reconstruction", ("joint", "twist"))
    if gravity is not None and model.base is None:
        raise InputError(
            "gravity is for models with a floating base; for this one, reduce at the equilibrium under gravity: "
            "`reduce(m, at=pliant.equilibrium(m, gravity=...))`"
        )
    return acceleration(EARTH if gravity is None else gravity)


class Kinematics(NamedTuple):
    """Data for placing links: the table of links, their `local`, whether each is on a hinge, and rows of motion."""

    links: Ints
    local: Floats
    hinge: Floats
    motions: Floats


def pack(model: ReducedModel | BlendedModel, h: float, reconstruction: str, gravity: Floats) -> Packed:
    """Arrays of a model with a time step of `h` seconds, at rest at the linearisation."""
    twist = reconstruction == "twist"
    if isinstance(model, BlendedModel):
        return _pack_blend(model, h, twist, gravity)
    coordinates = Amplitudes(model, h)
    n, inverse = coordinates.count, coordinates.inverse
    response = h * coordinates.response(np.zeros(0))
    update = np.concatenate([-h * inverse @ model.reduced_stiffness, inverse @ model.reduced_mass], axis=1)
    found = _twists(model) if twist else joint_kinematics(model, model.basis)
    rows = found.motions.size // n
    parts = {
        kernels.UPDATE: update.T,
        kernels.RESPONSE: response.T,
        kernels.STEADY: -response @ model.wrench,
        kernels.BASIS: found.motions,
        kernels.BOUND: np.abs(found.motions.reshape(n, -1)).max(axis=1, initial=0.0),
        kernels.LOCAL: found.local,
        kernels.HINGE: found.hinge,
        kernels.BASE: base_constants(model, gravity),
    }
    sizes = np.zeros(kernels.SIZES, dtype=np.int64)
    sizes[kernels.ROWS], sizes[kernels.TWIST] = rows, twist
    work = max(n + kernels.WRENCH_WORK + kernels.BASE_WORK, rows + 2 * len(found.links) + kernels.BALL_WORK)
    return lay_out(model, coordinates, kernels, sizes, found.links, {kernels.TIMESTEP: h}, parts, work)


def _pack_blend(blend: BlendedModel, h: float, twist: bool, gravity: Floats) -> Packed:
    first, models, k = blend.models[0], len(blend.models), blend_kernels
    coordinates = StaticWrenches(blend, h)
    n, unit = coordinates.count, coordinates.unit
    if twist:
        found = _twists(first)._replace(local=np.zeros(0))
        rows, shifts = 6 * len(found.links), np.array([model.at.poses for model in blend.models])
        maps = np.array([model.twist_maps for model in blend.models]) * unit
    else:
        maps = blend.joint_maps * unit
        motions = np.concatenate([blend.shifts.T, maps.transpose(1, 0, 2).reshape(len(maps[0]), -1)], axis=1)
        found = joint_kinematics(first, motions)
        rows, shifts, maps = found.motions.shape[1], found.motions[:models], found.motions[models:]
    # Per matrix either all models' matrices, or all their eigenvectors, then all eigenvalues.
    stacks = blend.condensed
    if blend.matrices == "eigen":
        stacks = [np.concatenate([part.ravel() for part in spectrum]) for spectrum in blend.spectra]
    parts = {
        k.SAMPLES: blend.samples / unit,
        k.METRICS: (blend.metrics * unit).transpose(0, 2, 1),
        k.COMPLIANCE: stacks[0],
        k.MASS: stacks[1],
        k.DAMPING: stacks[2],
        k.SHIFTS: shifts,
        k.MAPS: maps,
        kernels.LOCAL: found.local,
        kernels.HINGE: found.hinge,
        kernels.BASE: base_constants(first, gravity),
    }
    sizes = np.zeros(k.BLEND_SIZES, dtype=np.int64)
    sizes[kernels.ROWS], sizes[kernels.TWIST] = rows, twist
    sizes[k.MODELS], sizes[k.EIGEN] = models, blend.matrices == "eigen"
    step = models + n + kernels.WRENCH_WORK + 3 * n * n + n + kernels.BASE_WORK
    placing = max(POSE_SIZE * models + k.MEAN_WORK, 2 * len(found.links) + kernels.BALL_WORK)
    work = max(step, models + rows + models * n + max(n, placing))
    header = {kernels.TIMESTEP: h, k.EXPONENT: blend.exponent, k.RIGID: coordinates.rigid}
    header[k.LENGTH] = coordinates.length
    start = blend.samples[0] / unit
    return lay_out(first, coordinates, k, sizes, found.links, header, parts, work, start)


def lay_out(
    model: ReducedModel,
    coordinates: Any,
    stepper: Any,
    sizes: Ints,
    links: Ints,
    header: dict[int, float],
    parts: dict[int, Floats],
    work: int | dict[int, int],
    start: Floats | float = 0.0,
    extra: dict[int, int] | None = None,
    slots: int | None = None,
) -> Packed:
    """Arrays of a model (or blend, by its first model) at rest at the coordinates `start`.

    `header` has the first numbers of `constants` by place, `parts` its arrays by the entry of `sizes` for their offset;
    `sizes` has its counts of rows and models; `work` is the work space of a step or a reconstruction, or its parts, and
    `extra` the parts of the state beyond coordinates, rates and base, by the entries of `sizes` for their offsets;
    `slots` is the number of loads that may act, that of the end effectors by default.
    """
    n, effectors = coordinates.count, len(model.end_effectors)
    slots = effectors if slots is None else slots
    sizes[: kernels.ROWS] = n, effectors, len(links)
    sizes[kernels.FREE] = model.base is not None
    starts = kernels.HEADER + np.cumsum([0, *(-(-part.size // 8) * 8 for part in parts.values())])
    sizes[kernels.BASE_STATE] = kernels.Y + 2 * n
    at = int(sizes[kernels.BASE_STATE] + kernels.BASE_SIZE * sizes[kernels.FREE])
    for entry, size in (extra or {}).items():
        sizes[entry], at = at, at + size
    sizes[kernels.WRENCH], sizes[kernels.WORK] = at, at + LOAD_SIZE * slots
    length = int(
        sizes[kernels.WORK] + sizes[kernels.WRENCH]
    )  # work space begins with a copy of the state up to loads
    if isinstance(work, dict):
        for entry, size in work.items():
            sizes[entry], length = length, length + -(-size // 8) * 8
    else:
        length += work
    constants, state, poses = _aligned((int(starts[-1]),), (length,), (len(model.mechanism.links) + 2, 4, 4))
    for place, number in header.items():
        constants[place] = number
    for (entry, part), at in zip(parts.items(), starts.tolist(), strict=False):
        sizes[entry] = at
        constants[at : at + part.size] = part.ravel()
    state[kernels.Y : kernels.Y + n] = start
    poses[:, 3, 3] = 1.0
    poses[-2] = poses[-1] = np.eye(4)
    targets = np.zeros((effectors, LINK_SIZE), dtype=np.int64)
    targets[:, PLACE] = [model.mechanism.body_index(body) for body in model.end_effectors]
    packed = Packed(sizes, np.concatenate([links, targets]), constants, state, poses, coordinates, stepper)
    base = packed.base()
    if base is not None and model.base is not None:
        at = int(sizes[kernels.BASE]) + kernels.BASE_CENTRE
        base.place(model.at.pose(model.base.body), constants[at : at + 3])
    stepper.reconstruct(*packed.arrays, packed.work)
    return packed


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
        base = links.body_link[model.mechanism.body_index(model.base.body)]
        parent[_root(links.parent, base)] = len(links) + 1  # displacement of the floating base
    return place, parent


def _root(parent: Ints, link: int) -> int:
    """The link next to the world that carries a link."""
    while parent[link] >= 0:
        link = parent[link]
    return link


def joint_kinematics(model: ReducedModel, motions: Floats, copies: bool = False) -> Kinematics:
    """Data for forward kinematics, with joint motions, (nv, columns), sorted by links and transposed.

    Links that hang on the joints that close loops, copies of bodies, are left out unless `copies`.
    """
    m, links = model.mechanism, model.mechanism.links
    local, _ = kinematics.link_transforms(m, model.q)
    place, parent = _places(model)
    kept = np.flatnonzero(copies | ~np.isin(links.joint, m.solved_tree.chords))
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
    return Kinematics(table, flat, (kind == LINK_HINGE).astype(np.float64), rows.T)


def _twists(model: ReducedModel) -> Kinematics:
    """Data for TVCG's reconstruction: bodies, their poses at the linearisation as `local`, and their twists."""
    m, links = model.mechanism, model.mechanism.links
    local, poses = kinematics.link_transforms(m, model.q)
    _, parent = _places(model)
    table = np.zeros((m.body_count, LINK_SIZE), dtype=np.int64)
    table[:, PLACE] = np.arange(m.body_count)
    table[:, PARENT] = [parent[_root(links.parent, link)] for link in links.body_link.tolist()]
    twists = link_twists(m, local, model.basis.T)[:, links.body_link]
    # One row per component of a twist: the twists of single bodies are contiguous.
    rows = twists.transpose(1, 2, 0).reshape(-1, len(twists))
    return Kinematics(table, poses[links.body_link], np.zeros(0), rows)


def _hat(twists: Floats) -> Floats:
    """4 x 4 matrices of twists, (n, 4, 4)."""
    out = np.zeros((len(twists), 4, 4))
    out[:, :3, :3] = spatial.hat(twists[:, 3:])
    out[:, :3, 3] = twists[:, :3]
    return out


def base_constants(model: ReducedModel, gravity: Floats) -> Floats:
    """Constants of a floating base, (BASE_CONSTANTS,); none if it is fixed."""
    if model.base is None:
        return np.zeros(0)
    whole = rigid_whole(model, 0)
    pose = model.at.pose(model.base.body)
    return np.concatenate(
        [
            [model.base.inertia[0, 0]],
            whole.centre,
            np.linalg.inv(whole.inertia).ravel(),
            spatial.se3_inverse(pose).ravel(),
            gravity,
        ]
    )
