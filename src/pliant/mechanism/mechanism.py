"""`Mechanism`: rigid bodies, springy joints, loops; immutable, arrays inside, names outside.

`Rows` are its couplings and tendons, `ShapeTable` its shapes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import shapes as shapes_module
from pliant.chunks import slices
from pliant.errors import InputError, MechanismError, UnknownNameError
from pliant.mechanism import edit, kinematics, validate
from pliant.mechanism.joints import BALL, NDOF, NQ, SLIDE
from pliant.mechanism.links import Links, build_links
from pliant.mechanism.spanning import choose_tree
from pliant.mechanism.summary import summarize
from pliant.mechanism.tree import Topology, spanning_tree
from pliant.text import brief, counted, suggestion

if TYPE_CHECKING:
    from pathlib import Path

    from pliant.mechanism.elimination import Elimination

__all__ = ["Floats", "Ints", "Mechanism", "Rows", "ShapeTable"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MOST_LOOPS = 50  # that are looked at for pins that need no springs
_ROUNDED = 1e-6  # radians and radii: motions below are rounding of files and loops


def _empty(*shape: int) -> Floats:
    return np.zeros(shape)


def _no_index() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse rows over degrees of freedom: row r holds dofs `dof[start[r]:start[r+1]]`."""

    start: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    dof: Ints = field(default_factory=_no_index)
    coefficient: Floats = field(default_factory=lambda: _empty(0))

    @classmethod
    def pack(cls, rows: Iterable[tuple[Sequence[int], Sequence[float]]]) -> Rows:
        """Rows from the dofs and coefficients of each."""
        rows = list(rows)
        return cls(
            np.concatenate([[0], np.cumsum([len(dofs) for dofs, _ in rows])]).astype(np.int64),
            np.array([d for dofs, _ in rows for d in dofs], dtype=np.int64),
            np.array([c for _, coefficients in rows for c in coefficients], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def row(self, r: int) -> tuple[Ints, Floats]:
        """The dofs of row r and their coefficients."""
        part = slice(self.start[r], self.start[r + 1])
        return self.dof[part], self.coefficient[part]

    def sums(self, values: Floats) -> Floats:
        """`sum(coefficient * value)` of every row, (rows,), from one value per dof."""
        if not len(self):
            return np.zeros(0)
        return np.add.reduceat(self.coefficient * values[self.dof], self.start[:-1])

    def dense(self, nv: int) -> Floats:
        """The rows as a matrix (rows, nv)."""
        out = np.zeros((len(self), nv))
        if not len(self):
            return out
        np.add.at(out, (np.repeat(np.arange(len(self)), np.diff(self.start)), self.dof), self.coefficient)
        return out


@dataclass(frozen=True, eq=False)
class ShapeTable:
    """All shapes of a mechanism, as columns. `Mechanism.shapes(body)` gives them as objects."""

    body: Ints = field(default_factory=_no_index)
    kind: Ints = field(default_factory=_no_index)
    size: Floats = field(default_factory=lambda: _empty(0, 3))
    pose: Floats = field(default_factory=lambda: _empty(0, 4, 4))
    rgba: Floats = field(default_factory=lambda: _empty(0, 4))
    mesh: Ints = field(default_factory=_no_index)
    role: Ints = field(default_factory=_no_index)
    meshes: tuple[shapes_module.Mesh, ...] = ()

    def __len__(self) -> int:
        return len(self.body)

    def with_shapes(self, body: int, shapes: Sequence[shapes_module.Shape]) -> ShapeTable:
        """The same table with shapes other than meshes added to a body, -1 the world."""
        return replace(
            self,
            body=np.append(self.body, np.full(len(shapes), body)),
            kind=np.append(self.kind, [shapes_module.KINDS.index(s.kind) for s in shapes]),
            size=np.concatenate([self.size, [s.size for s in shapes]]),
            pose=np.concatenate([self.pose, [s.pose for s in shapes]]),
            rgba=np.concatenate([self.rgba, [s.rgba for s in shapes]]),
            mesh=np.append(self.mesh, np.full(len(shapes), -1)),
            role=np.append(self.role, [shapes_module.ROLES.index(s.role) for s in shapes]),
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Mechanism:
    """A compliant articulated mechanism. Make one with `pliant.Builder`, `pliant.load` or `pliant.gallery`.

    Arrays are read-only; `with_...` methods return an edited copy. `q` holds every joint's coordinates in
    joint order (balls as quaternions w, x, y, z); tangent vectors (velocities, displacements, forces) have
    `nv` entries.

    Attributes:
        mass, com, inertia: per body; inertia about the centre of mass, in body axes (kg, m, kg m^2).
        reference_poses: body poses in the world at the reference configuration, (bodies, 4, 4).
        joint_types: "hinge", "bushing", ...
        joint_parents, joint_children: body indices, -1 the world.
        parent_frames, child_frames: the joint frame on either body, (joints, 4, 4).
        primitive_joint, primitive_kind, primitive_axis, primitive_anchor: the stacks of primitives of all joints, in
            joint order; axes and anchors in the joint frame.
        stiffness, damping, armature, lower, upper: per dof. A ball's limit is its largest rotation angle.
        rest: coordinates at which springs are slack, in the layout of q.
        reference: q at the reference pose.
        couplings, coupling_offset: rows `sum(coefficient * q) = offset`.
        tendons, tendon_stiffness, tendon_damping, tendon_rest: springs on a sum of coordinates,
            `force = -stiffness * (sum(coefficient * q) - rest)`; on a ball the coordinate is its rotation
            from rest.
        end_effectors: bodies suggested as end effectors; by default those of `end_bodies`.
    """

    name: str = "mechanism"
    body_names: tuple[str, ...]
    mass: Floats
    com: Floats
    inertia: Floats
    reference_poses: Floats
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    joint_parents: Ints
    joint_children: Ints
    parent_frames: Floats
    child_frames: Floats
    primitive_joint: Ints
    primitive_kind: Ints
    primitive_axis: Floats
    primitive_anchor: Floats
    dof_names: tuple[str, ...]
    stiffness: Floats
    damping: Floats
    armature: Floats
    lower: Floats
    upper: Floats
    rest: Floats
    reference: Floats
    coupling_names: tuple[str, ...] = ()
    couplings: Rows = field(default_factory=Rows)
    coupling_offset: Floats = field(default_factory=lambda: _empty(0))
    tendon_names: tuple[str, ...] = ()
    tendons: Rows = field(default_factory=Rows)
    tendon_stiffness: Floats = field(default_factory=lambda: _empty(0))
    tendon_damping: Floats = field(default_factory=lambda: _empty(0))
    tendon_rest: Floats = field(default_factory=lambda: _empty(0))
    shape_table: ShapeTable = field(default_factory=ShapeTable)
    end_effectors: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles make the mechanism anew: its arrays are read-only there, too."""
        return _made, (
            type(self),
            {part.name: getattr(self, part.name) for part in fields(self) if part.init},
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Mechanism:
        return self  # nothing in it can change

    def __post_init__(self) -> None:
        for word, kind in (("couplings", Rows), ("tendons", Rows), ("shape_table", ShapeTable)):
            if not isinstance(getattr(self, word), kind):
                raise MechanismError(f"{word}: a {kind.__name__} expected, not {brief(getattr(self, word))}")
        validate.normalize(self)
        validate.check(self)

    # --- sizes and names

    @property
    def body_count(self) -> int:
        """Number of bodies, the world not counted."""
        return len(self.body_names)

    @property
    def joint_count(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom of all joints, loops and couplings not subtracted."""
        return len(self.stiffness)

    @property
    def nq(self) -> int:
        """Number of coordinates: `nv` and one more per ball."""
        return len(self.reference)

    @cached_property
    def _body_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.body_names)}

    @cached_property
    def _joint_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.joint_names)}

    @cached_property
    def _dof_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.dof_names)}

    def body_index(self, name: str) -> int:
        """Index of a body; "world" is -1."""
        return (
            -1
            if isinstance(name, str) and name == "world"
            else _look_up(self._body_index, name, "body", self.name)
        )

    def joint_index(self, name: str) -> int:
        """Index of a joint."""
        return _look_up(self._joint_index, name, "joint", self.name)

    def dof_index(self, name: str) -> int:
        """Index of a degree of freedom; a joint with only one goes by the joint's name too."""
        return _look_up(self._dof_index, name, "degree of freedom", self.name)

    # --- layout of coordinates

    @cached_property
    def primitive_dof(self) -> Ints:
        """First dof of every primitive, then `nv`, (primitives + 1,)."""
        if not len(self.ball_primitives):
            return self.primitive_coordinate
        return np.concatenate([[0], np.cumsum(NDOF[self.primitive_kind])]).astype(np.int64)

    @cached_property
    def primitive_coordinate(self) -> Ints:
        """First coordinate of every primitive, then `nq`, (primitives + 1,)."""
        return np.concatenate([[0], np.cumsum(NQ[self.primitive_kind])]).astype(np.int64)

    @cached_property
    def _joint_primitive(self) -> Ints:
        count = np.bincount(self.primitive_joint, minlength=self.joint_count)
        return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)

    def joint_primitives(self, joint: int) -> slice:
        """The primitives of a joint."""
        return slice(int(self._joint_primitive[joint]), int(self._joint_primitive[joint + 1]))

    @cached_property
    def _dof_cache(self) -> dict[str, Ints]:
        """Dofs by name or pattern, filled by `edit.matching_dofs`."""
        return {}

    def joint_dofs(self, joint: int) -> slice:
        """The dofs of a joint in a tangent vector."""
        return slice(*self.primitive_dof[self._joint_primitive[[joint, joint + 1]]].tolist())

    def joint_coordinates(self, joint: int) -> slice:
        """The coordinates of a joint in q."""
        return slice(*self.primitive_coordinate[self._joint_primitive[[joint, joint + 1]]].tolist())

    @cached_property
    def dof_joint(self) -> Ints:
        """Joint of every dof."""
        return self._per_dof(self.primitive_joint)

    @cached_property
    def dof_kind(self) -> Ints:
        """HINGE, SLIDE or BALL, per dof."""
        return self._per_dof(self.primitive_kind)

    @cached_property
    def dof_coordinate(self) -> Ints:
        """Coordinate of every hinge and slide dof; for a ball, the first of its quaternion."""
        return self._per_dof(self.primitive_coordinate[:-1])

    def _per_dof(self, values: Ints) -> Ints:
        """Values of primitives, per dof; the same array without balls, which would repeat some."""
        return np.repeat(values, NDOF[self.primitive_kind]) if len(self.ball_primitives) else values

    @cached_property
    def ball_primitives(self) -> Ints:
        """Indices of the primitives that are balls."""
        return np.flatnonzero(self.primitive_kind == BALL)

    # --- derived

    @cached_property
    def topology(self) -> Topology:
        """Spanning tree in joint order, chords and depth."""
        return spanning_tree(self.joint_parents, self.joint_children, self.body_names, self.joint_names)

    @cached_property
    def solved_tree(self) -> Topology:
        """Spanning tree that links and solvers go by: `topology`, or one that is much cheaper to solve."""
        turning = self.primitive_joint[self.ball_primitives]
        return choose_tree(
            self.topology, self.joint_parents, self.joint_children, turning, self.reference_poses
        )

    @cached_property
    def links(self) -> Links:
        """Primitives of all joints as a tree of links, for kernels."""
        return self._links(self.solved_tree)

    def make_links(self) -> Links:
        """`links`, but not kept if they are not there yet: for huge linkages that are packed once."""
        return self.__dict__["links"] if "links" in self.__dict__ else self._links(self.solved_tree)

    @cached_property
    def described_links(self) -> Links:
        """The same along `topology`, where every joint carries its child."""
        return self.links if self.solved_tree is self.topology else self._links(self.topology)

    def _links(self, tree: Topology) -> Links:
        return build_links(
            tree,
            self.joint_parents,
            self.joint_children,
            self.parent_frames,
            self.child_frames,
            self.primitive_joint,
            self.primitive_kind,
            self.primitive_axis,
            self.primitive_anchor,
        )

    @cached_property
    def elimination(self) -> Elimination:
        """Rows of loops, couplings and tendons along the tree of links, for solvers."""
        from pliant.mechanism.elimination import plan_elimination

        return plan_elimination(self)

    @cached_property
    def radius(self) -> float:
        """Radius of a sphere around frames, centres of mass and anchors at the reference pose: the unit of length."""
        points = self.landmarks(self.reference_poses)
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
        radius = float(np.sqrt(((points - centre) ** 2).sum(axis=1).max()))
        # points that differ by rounding errors alone have no extent
        return radius if radius > 1e-12 * float(np.abs(points).max()) else 1.0

    @cached_property
    def dof_unit(self) -> Floats:
        """Unit of every dof: 1 rad for rotations, the radius in m for slides, (nv,)."""
        return np.where(self.dof_kind == SLIDE, self.radius, 1.0)

    def landmarks(self, poses: Floats) -> Floats:
        """Origins and centres of mass of bodies and anchors of joints, world, for bodies at `poses`, (points, 3)."""
        bodies, joints = self.body_count, self.joint_count
        out = np.empty((2 * bodies + joints, 3))
        out[:bodies] = poses[:, :3, 3]
        out[bodies : 2 * bodies] = np.einsum("nij,nj->ni", poses[:, :3, :3], self.com) + poses[:, :3, 3]
        for part in slices(joints):
            anchors = poses[self.joint_children[part]] @ self.child_frames[part]
            out[2 * bodies + part.start : 2 * bodies + part.stop] = anchors[:, :3, 3]
        return out

    @property
    def total_mass(self) -> float:
        """Sum of the bodies' masses, kg."""
        return float(self.mass.sum())

    @property
    def springless(self) -> tuple[str, ...]:
        """Dofs that no spring, tendon, coupling or loop holds; a user's first step is to give them stiffness.

        Where one tendon pulls several dofs that have no springs of their own, it holds none of them by itself.
        Joints that close a loop are left out if none of their dofs has a spring: a plain pin needs none. So are pins
        that the springs of the other joints hold by way of a loop, and balls that let a rod spin and nothing else.
        """
        held = self.stiffness > 0
        rows = [self.tendons.dense(self.nv)[self.tendon_stiffness > 0], self.couplings.dense(self.nv)]
        if 0 < self.topology.loops <= _MOST_LOOPS:
            poses = kinematics.link_poses(self, self.reference)
            scale = self.elimination.scale[: self.elimination.hard, None]
            rows = [rows[0] * self.dof_unit, scale * kinematics.constraint_rows(self, poses) * self.dof_unit]
        stacked = np.concatenate(rows)
        tied = np.flatnonzero(~held & stacked.any(axis=0))
        if len(tied):
            # Null space of the rows on these dofs: a dof is held if no motion in it moves the dof.
            _, size, directions = np.linalg.svd(stacked[:, tied])
            free = directions[int((size > _ROUNDED * size[0]).sum()) :]
            held[tied] = (np.abs(free) < _ROUNDED).all(axis=0)
            turning = self.dof_kind[tied] == BALL
            if turning.any() and len(free):
                felt = self._felt(free, tied)
                held[tied[turning]] |= (np.abs(felt[:, turning]) < _ROUNDED).all(axis=0)
        for joint in self.topology.chords.tolist():
            dofs = self.joint_dofs(joint)
            held[dofs] |= not held[dofs].any()
        return tuple(name for name, has in zip(self.dof_names, held.tolist(), strict=True) if not has)

    def _felt(self, motions: Floats, dofs: Ints) -> Floats:
        """Motions of some dofs, in rows, without those that move no end effector."""
        poses = kinematics.link_poses(self, self.reference)
        links = [int(self.links.body_link[self.body_index(body)]) for body in self.end_effectors]
        moved = (
            np.concatenate([kinematics.link_jacobian(self, poses, link)[:, dofs] for link in links])
            @ motions.T
        )
        _, size, directions = np.linalg.svd(moved)
        return directions[: int((size > _ROUNDED * max(size[0], self.radius)).sum())] @ motions

    @property
    def floating(self) -> tuple[int, ...]:
        """Free joints to the world without springs: what they carry floats."""
        return tuple(
            j
            for j, kind in enumerate(self.joint_types)
            if kind == "free" and self.joint_parents[j] < 0 and not self.stiffness[self.joint_dofs(j)].any()
        )

    @property
    def springless_joints(self) -> tuple[str, ...]:
        """`springless` without the dofs of floating bases, which need no springs."""
        free = {name for j in self.floating for name in self.dof_names[self.joint_dofs(j)]}
        return tuple(name for name in self.springless if name not in free)

    @property
    def stiffness_matrix(self) -> Floats:
        """Joint-space stiffness (nv, nv) of springs and tendons; dense, so for small mechanisms."""
        rows = self.tendons.dense(self.nv)
        return np.diag(self.stiffness) + rows.T @ (self.tendon_stiffness[:, None] * rows)

    @property
    def damping_matrix(self) -> Floats:
        """Joint-space damping (nv, nv) of joints and tendons; dense, so for small mechanisms."""
        rows = self.tendons.dense(self.nv)
        return np.diag(self.damping) + rows.T @ (self.tendon_damping[:, None] * rows)

    @cached_property
    def _shape_order(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.shape_table.body, kind="stable")
        return order, np.searchsorted(self.shape_table.body[order], np.arange(-1, self.body_count + 1))

    def shapes(self, body: str) -> tuple[shapes_module.Shape, ...]:
        """The shapes of a body, or those fixed to "world"."""
        order, start = self._shape_order
        index, table = self.body_index(body), self.shape_table
        return tuple(
            shapes_module.Shape(
                kind=shapes_module.KINDS[table.kind[s]],
                size=tuple(table.size[s].tolist()),
                pose=table.pose[s],
                rgba=tuple(table.rgba[s].tolist()),
                mesh=table.meshes[table.mesh[s]] if table.mesh[s] >= 0 else None,
                role=shapes_module.ROLES[table.role[s]],
            )
            for s in order[start[index + 1] : start[index + 2]].tolist()
        )

    # --- editing: a new mechanism each time

    def with_stiffness(
        self, pattern: str | Iterable[str], stiffness: ArrayLike, damping: ArrayLike | None = None
    ) -> Mechanism:
        """Set the stiffness, and damping if given, of all joints or dofs whose name matches.

        Args:
            pattern: a name or a shell pattern ("rh_FF*"), or several.
            stiffness: one value for all matching dofs, or one per dof (N m/rad or N/m).
            damping: likewise (N m s/rad or N s/m); unchanged if None.
        """
        return edit.with_stiffness(self, pattern, stiffness, damping)

    def with_damping_ratio(self, ratio: float) -> Mechanism:
        """Set the dampers of all joints and tendons with springs, so that vibrations decay.

        Damping is `2 ratio / w` times stiffness, w the lowest angular frequency at the reference pose, with a floating
        base held. The first vibration then has this damping ratio: its amplitude falls by `exp(-2 pi ratio)` a period
        (0.1: to 53 %). Faster ones have more, in proportion to their frequency, and no motion takes longer to decay
        than the first. Dampers of joints without a spring stay as they are, and add to it.
        """
        from pliant.statics.damping import with_damping_ratio

        return with_damping_ratio(self, ratio)

    def with_rest(self, pattern: str | Iterable[str], rest: ArrayLike) -> Mechanism:
        """Set the rest coordinate of the springs of matching joints (hinges and slides)."""
        return edit.with_rest(self, pattern, rest)

    def with_pose(self, coordinates: Mapping[str, ArrayLike] | ArrayLike) -> Mechanism:
        """The same mechanism with another reference pose.

        Args:
            coordinates: `{joint or dof: value}` (the others keep theirs), a whole q, or a `Configuration`.

        Loops must close there; `pliant.assemble` finds coordinates at which they do. Springs keep their rest.
        """
        return edit.with_pose(self, coordinates)

    def with_fixed_base(self) -> Mechanism:
        """The same mechanism with every free joint to the world made fixed, at the reference pose."""
        return edit.with_fixed_base(self)

    def with_end_effectors(self, *bodies: str) -> Mechanism:
        """The same mechanism with other suggested end effectors."""
        return self.replace(end_effectors=tuple(bodies))

    def replace(self, **changes: Any) -> Mechanism:
        """A copy with some attributes replaced, checked like any other mechanism."""
        known = {f.name for f in fields(self)}
        for key in changes:
            if key not in known:
                raise InputError(f"a mechanism has no attribute '{key}'")
        if not changes.keys() <= validate.SPRINGS:
            return replace(self, **changes)
        made = object.__new__(
            type(self)
        )  # the same geometry: what was derived from it holds for the copy, too
        made.__dict__.update(self.__dict__, **changes)
        validate.check_springs(made)
        return made

    # --- summary, picture, files

    def summary(self) -> str:
        """A readable table of bodies and joints."""
        return summarize(self)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """A picture of the reference pose; see `pliant.picture`."""
        from pliant.viewer import picture

        return picture(self, path, **options)

    def _repr_png_(self) -> bytes:
        from pliant.viewer.picture import png

        return png(self)

    def __repr__(self) -> str:
        return (
            f"<Mechanism '{self.name}': {counted(self.body_count, 'body', 'bodies')}, "
            f"{counted(self.joint_count, 'joint')}, {counted(self.nv, 'dof')}, {counted(self.topology.loops, 'loop')}>"
        )

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a file that `pliant.load` reads back without loss.

        A name that ends in `.npz` makes an archive of arrays, for large mechanisms; any other name JSON.
        """
        from pliant.formats import save

        save(self, path)

    def to_mjcf(self) -> str:
        """The mechanism as MJCF text that MuJoCo loads and that behaves the same."""
        from pliant.formats import to_mjcf

        return to_mjcf(self)


def _look_up(index: Mapping[str, int], name: str, what: str, owner: str) -> int:
    found = index.get(name) if isinstance(name, str) else None
    if found is None:
        raise UnknownNameError(f"no {what} {brief(name)} in '{owner}'{suggestion(name, index)}")
    return found


def _made(kind: type[Mechanism], values: dict[str, Any]) -> Mechanism:
    """A mechanism from its pickle."""
    return kind(**values)
