"""Arrays of a `Mechanism` from the bodies, joints, couplings and tendons that a `Builder` has collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import checks, spatial
from pliant import shapes as shapes_module
from pliant.chunks import slices
from pliant.errors import InputError, MechanismError
from pliant.mechanism.joints import BALL, NDOF, NQ, primitive_transforms
from pliant.mechanism.mechanism import Floats, Ints, Mechanism, Rows, ShapeTable
from pliant.mechanism.validate import HUGE, UNIT_TOLERANCE
from pliant.text import brief

__all__ = [
    "BodyColumns",
    "BodyLists",
    "JointSpec",
    "JointTable",
    "ShapeColumns",
    "column",
    "join_bodies",
    "join_tables",
    "joint_arrays",
    "joint_table",
    "numbers",
    "pose_column",
    "rotation_matrix",
    "row_arrays",
    "shape_arrays",
    "shape_of",
    "slack_springs",
    "solid",
    "solid_properties",
    "square_axes",
]


_ORIGIN = (0.0, 0.0, 0.0)


class JointSpec(NamedTuple):
    """A joint as it was described, world coordinates at the reference pose.

    Attributes:
        name, kind: its name and type.
        parent, child: body indices, -1 the world.
        anchor: a point on it; None for the child's origin.
        primitives: (kind, axis, anchor relative to the joint's) of each.
        spring: stiffness, damping, rest, limits, armature, reference, orientation; those that were given.
        local: whether axes are in the joint frame, not in the world.
        dof_names: None for names made from the joint's.
        frames: the joint frame on parent and child, if they were given; then anchor and orientation do not count.
    """

    name: str
    kind: str
    parent: int
    child: int
    anchor: Any
    primitives: tuple[tuple[int, Any, Any], ...]
    spring: dict[str, Any]
    local: bool
    dof_names: Sequence[str] | None
    frames: tuple[NDArray[np.float64], ...] | None


def numbers(value: Any, what: str) -> NDArray[np.float64]:
    """An array of numbers; anything else is refused as a fault of the mechanism."""
    return checks.numbers(value, what, MechanismError)


def shape_of(value: Any) -> tuple[int, ...]:
    """Shape of a nested sequence; () if it is ragged."""
    try:
        return np.shape(value)
    except ValueError:
        return ()


def rotation_matrix(orientation: Any, what: str) -> NDArray[np.float64]:
    """The rotation of a quaternion (w, x, y, z) or matrix, 3 x 3."""
    value = numbers(orientation, f"{what}: orientation")
    if value.shape == (3, 3):
        return value  # checked with all others, in one go, when the mechanism is built
    if value.shape != (4,):
        raise MechanismError(f"{what}: an orientation is a quaternion (w, x, y, z) or a 3 x 3 matrix")
    length = np.sqrt((value**2).sum()) if (np.abs(value) < HUGE).all() else np.inf
    if not abs(length - 1) < UNIT_TOLERANCE:
        raise MechanismError(f"{what}: the quaternion {value.tolist()} is not of unit length")
    return spatial.quat_to_matrix(value / length)


def square_axes(axes: Any, name: str) -> NDArray[np.float64]:
    """Two axes at right angles, (2, 3)."""
    given = numbers(axes, f"joint {brief(name)}: axes")
    if given.shape != (2, 3) or not abs(given[0] @ given[1]) <= 1e-6:
        raise MechanismError(
            f"joint {brief(name)}: two axes at right angles expected, not {brief(axes)}; stack() takes others"
        )
    return given


def column(
    values: Sequence[Any] | NDArray[np.float64], shape: tuple[int, ...], label: str, names: Sequence[str]
) -> NDArray[np.float64]:
    """One array of values, one per name. Only if that fails, each is checked, so that the message names the culprit."""
    try:
        whole = np.array(values, dtype=np.float64)
        if whole.shape == (len(names), *shape) and (np.abs(whole) < HUGE).all():
            return whole
    except (TypeError, ValueError, OverflowError):
        pass
    for name, value in zip(names, values, strict=True):
        given = numbers(value, f"'{name}': {label}")
        if given.shape != shape:
            raise MechanismError(
                f"'{name}': {label} needs shape {shape or 'of a single number'}, got {brief(value)}"
            )
        if not (np.abs(given) < HUGE).all():
            raise MechanismError(f"'{name}': {label} is not finite")
    return np.array([np.asarray(v, np.float64) for v in values]).reshape(len(names), *shape)


def inertia_column(values: list[Any], names: Sequence[str]) -> NDArray[np.float64]:
    """Inertias given as three moments or as 3 x 3 matrices, mixed freely, as (n, 3, 3)."""
    short = [
        i for i, value in enumerate(values) if not isinstance(value, np.ndarray) and shape_of(value) == (3,)
    ]
    out = np.zeros((len(values), 3, 3))
    moments = column([values[i] for i in short], (3,), "inertia", [names[i] for i in short])
    out[np.ix_(short, range(3), range(3))] = moments.reshape(-1, 3)[:, :, None] * np.eye(3)
    chosen = set(short)
    for i, value in enumerate(values):
        if i not in chosen:
            matrix = numbers(value, f"body '{names[i]}': inertia")
            if matrix.shape not in ((3,), (3, 3)):
                raise MechanismError(
                    f"body '{names[i]}': inertia is three moments or a 3 x 3 matrix, not {brief(value)}"
                )
            if not (np.abs(matrix) < HUGE).all():
                raise MechanismError(f"'{names[i]}': inertia is not finite")
            out[i] = matrix if matrix.ndim == 2 else np.diag(matrix)
    return out


def solid(
    name: str, shapes: Sequence[shapes_module.Shape], missing: str
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Volume of the shapes, their centroid (3,), and their second moment about it, (3, 3), unit density."""
    solids = [shape for shape in shapes if shape.kind not in ("plane", "height field")]
    if not solids:
        raise MechanismError(f"body '{name}': give {missing}, or shapes to derive it from")
    try:
        parts = [shape.mass_properties() for shape in solids]
    except InputError as error:
        raise MechanismError(f"body '{name}': {error}") from None
    volumes = np.array([part[0] for part in parts])
    centre = np.einsum("i,ij->j", volumes, np.array([part[1] for part in parts])) / volumes.sum()
    second = np.zeros((3, 3))
    for volume, centroid, unit in parts:
        d = centroid - centre
        second += volume * (unit + (d @ d) * np.eye(3) - np.outer(d, d))
    return float(volumes.sum()), centre, second


def solid_properties(
    name: str, shapes: Sequence[shapes_module.Shape], mass: Any, com: Any, inertia: Any, density: float
) -> tuple:
    """Mass, centre of mass and inertia, those not given from the shapes at this density."""
    volume, centre, second = solid(name, shapes, "mass" if mass is None else "inertia")
    total = density * volume if mass is None else mass
    if inertia is None:
        inertia = numbers(total, f"body '{name}': mass") * second / volume
    return total, centre if com is None else com, inertia


# --- bodies


class BodyColumns(NamedTuple):
    """Bodies as columns: masses (n,), centres of mass (n, 3), inertias (n, 3, 3), poses (n, 4, 4)."""

    mass: Floats
    com: Floats
    inertia: Floats
    poses: Floats


class BodyLists(NamedTuple):
    """Bodies added one by one, their values as they were given; `columns` checks them."""

    first: int
    mass: list[Any]
    com: list[Any]
    inertia: list[Any]
    position: list[Any]
    rotation: list[Any]

    def columns(self, body_names: Sequence[str]) -> BodyColumns:
        """The columns of these bodies; `body_names` are those of all bodies."""
        names = body_names[self.first : self.first + len(self.mass)]
        return BodyColumns(
            column(self.mass, (), "mass", names),
            column(self.com, (3,), "com", names),
            inertia_column(self.inertia, names),
            pose_column(
                column(self.position, (3,), "position", names),
                column(self.rotation, (3, 3), "orientation", names),
            ),
        )


def pose_column(position: Floats, rotation: Floats) -> Floats:
    """Poses (n, 4, 4) from positions (n, 3) and rotations (n, 3, 3)."""
    poses = np.zeros((len(position), 4, 4))
    poses[:, :3, :3] = rotation
    poses[:, :3, 3] = position
    poses[:, 3, 3] = 1.0
    return poses


def join_bodies(parts: Sequence[BodyColumns]) -> BodyColumns:
    """One table from several; its arrays are read-only, so that mechanisms can share them."""
    return BodyColumns(*(read_only(joined(arrays)) for arrays in zip(*parts, strict=True)))


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays end to end; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, no longer writeable."""
    array.flags.writeable = False
    return array


# --- shapes


class ShapeColumns(NamedTuple):
    """Shapes of bodies: row i is `shapes[which[i]]`, of body `body[i]` (-1 the world), `scale[i]` times as large."""

    shapes: Sequence[shapes_module.Shape]
    which: Sequence[int] | NDArray[np.int64]
    body: Sequence[int] | NDArray[np.int64]
    scale: Floats | None


def shape_arrays(parts: Sequence[ShapeColumns]) -> ShapeTable:
    """The table of shapes; shapes that share a mesh keep sharing it."""
    shapes = [shape for part in parts for shape in part.shapes]
    if not any(len(part.body) for part in parts):
        return ShapeTable()
    number = {kind: i for i, kind in enumerate(shapes_module.KINDS)}
    first = np.cumsum([0, *(len(part.shapes) for part in parts)])
    which = joined([f + np.asarray(part.which, np.int64) for f, part in zip(first, parts, strict=False)])
    meshes: dict[int, int] = {}
    unique: list[shapes_module.Mesh] = []
    seen, row = np.unique(which, return_index=True)
    for shape in (shapes[i] for i in seen[np.argsort(row)].tolist()):
        if shape.mesh is not None and id(shape.mesh) not in meshes:
            meshes[id(shape.mesh)] = len(unique)
            unique.append(shape.mesh)
    number_of_mesh = [-1 if shape.mesh is None else meshes.get(id(shape.mesh), -1) for shape in shapes]
    size = np.array([shape.size for shape in shapes], dtype=np.float64)[which]
    pose = np.array([shape.pose for shape in shapes])[which]
    row = 0
    for part in parts:
        rows = slice(row, row := row + len(part.body))
        if part.scale is not None:
            size[rows] *= part.scale[:, None]
            pose[rows, :3, 3] *= part.scale[:, None]
    columns = {
        "body": joined([np.asarray(part.body, np.int64) for part in parts]),
        "kind": np.array([number[shape.kind] for shape in shapes], dtype=np.int64)[which],
        "size": size,
        "pose": pose,
        "rgba": np.array([shape.rgba for shape in shapes], dtype=np.float64)[which],
        "mesh": np.array(number_of_mesh, dtype=np.int64)[which],
        "role": np.array([shapes_module.ROLES.index(s.role) for s in shapes], dtype=np.int64)[which],
    }
    return ShapeTable(**{key: read_only(array) for key, array in columns.items()}, meshes=tuple(unique))


# --- joints


class JointTable(NamedTuple):
    """Joints as flat arrays (n joints, p primitives), world coordinates at the reference pose.

    Attributes:
        names, types, dof_names: strings.
        parents, children: body numbers, -1 the world, (n,).
        anchor: a point on every joint, (n, 3).
        floating: whether that point is the child's origin instead, (n,).
        count: primitives of every joint, (n,).
        kind, axis, offset: kind, axis and anchor relative to the joint's, per primitive: (p,), (p, 3), (p, 3).
        turned, rotation: joints with axes of their own, and these, (k,) and (k, 3, 3).
        local: whether axes of primitives are in the joint frame, not in the world, (n,).
        placed, frames: joints whose frames on parent and child are given, and these, (k,) and (k, 2, 4, 4).
        springs: stiffness, damping, armature, lower, upper per dof; reference and rest per coordinate.
        moved: joints with a reference coordinate given, (k,).
    """

    names: Sequence[str]
    types: Sequence[str]
    dof_names: Sequence[str]
    parents: Ints
    children: Ints
    anchor: Floats
    floating: NDArray[np.bool_]
    count: Ints
    kind: Ints
    axis: Floats
    offset: Floats
    turned: Ints
    rotation: Floats
    local: NDArray[np.bool_]
    placed: Ints
    frames: Floats
    springs: dict[str, Floats]
    moved: Ints


_NUMBERS_OF_JOINTS = ("turned", "placed", "moved")
_SPRING_COLUMNS = ("stiffness", "damping", "armature", "lower", "upper", "reference", "rest")


def join_tables(tables: Sequence[JointTable]) -> JointTable:
    """One table from several."""
    if len(tables) == 1:
        return tables[0]
    first = np.cumsum([0, *(len(table.names) for table in tables)])[:-1].tolist()
    out: dict[str, Any] = {}
    for field in JointTable._fields:
        parts = [getattr(table, field) for table in tables]
        if field in ("names", "types", "dof_names"):
            out[field] = list(chain.from_iterable(parts))
        elif field == "springs":
            out[field] = {key: np.concatenate([part[key] for part in parts]) for key in _SPRING_COLUMNS}
        elif field in _NUMBERS_OF_JOINTS:
            out[field] = np.concatenate([f + part for f, part in zip(first, parts, strict=True)])
        else:
            out[field] = np.concatenate(parts)
    return JointTable(**out)


def joint_table(joints: list[JointSpec]) -> JointTable:
    """Joints that were described one by one, as a table."""
    names = [joint.name for joint in joints]
    members = [(j, *member) for j, joint in enumerate(joints) for member in joint.primitives]
    owners = [names[member[0]] for member in members]
    count = np.array([len(joint.primitives) for joint in joints], dtype=np.int64)
    kind = np.array([member[1] for member in members], dtype=np.int64)
    turned = [j for j, joint in enumerate(joints) if joint.spring.get("orientation") is not None]
    rotation = [rotation_matrix(joints[j].spring["orientation"], f"joint '{names[j]}'") for j in turned]
    placed = [j for j, joint in enumerate(joints) if joint.frames is not None]
    given = [j for j, joint in enumerate(joints) if joint.spring.get("reference") is not None]
    anchors = [_ORIGIN if joint.anchor is None else joint.anchor for joint in joints]
    springs, dof_names = _spring_arrays(joints, kind, np.concatenate([[0], np.cumsum(count)]))
    return JointTable(
        names=names,
        types=[joint.kind for joint in joints],
        dof_names=dof_names,
        parents=np.array([joint.parent for joint in joints], dtype=np.int64),
        children=np.array([joint.child for joint in joints], dtype=np.int64),
        anchor=column(anchors, (3,), "anchor", names).reshape(-1, 3),
        floating=np.array([joint.anchor is None for joint in joints], dtype=bool),
        count=count,
        kind=kind,
        axis=column([member[2] for member in members], (3,), "axis", owners).reshape(-1, 3),
        offset=column([member[3] for member in members], (3,), "anchor", owners).reshape(-1, 3),
        turned=np.array(turned, dtype=np.int64),
        rotation=np.array(rotation).reshape(-1, 3, 3),
        local=np.array([joint.local for joint in joints], dtype=bool),
        placed=np.array(placed, dtype=np.int64),
        frames=np.array([joints[j].frames for j in placed]).reshape(-1, 2, 4, 4),
        springs=springs,
        moved=np.array(given, dtype=np.int64),
    )


def joint_arrays(table: JointTable, poses: Floats) -> dict[str, Any]:
    """Joint frames, primitives and springs for `Mechanism`. Joint frames are aligned with the world by default."""
    names, n = tuple(table.names), len(table.names)
    kind, axis, anchor = table.kind, table.axis.copy(), table.offset.copy()
    first = np.concatenate([[0], np.cumsum(table.count)])
    owner = np.repeat(np.arange(n), table.count)
    _unit_axes(kind, axis, owner, names)

    # World pose of the joint at the reference; without an anchor, at the child's origin.
    parent_frames, child_frames = np.empty((n, 4, 4)), np.empty((n, 4, 4))
    turned = np.full(n if len(table.turned) else 0, -1)
    turned[table.turned] = np.arange(len(table.turned))
    for part in slices(n):
        frames = np.broadcast_to(np.eye(4), (part.stop - part.start, 4, 4)).copy()
        child, parent = poses[table.children[part]], poses[table.parents[part]]
        parent[table.parents[part] < 0] = np.eye(4)
        frames[:, :3, 3] = np.where(table.floating[part, None], child[:, :3, 3], table.anchor[part])
        if len(turned):
            own = turned[part] >= 0
            frames[own, :3, :3] = table.rotation[turned[part][own]]
        child_frames[part] = spatial.se3_inverse(child) @ frames
        parent_frames[part] = spatial.se3_inverse(parent) @ frames
    if len(turned):  # axes given in the world: bring them into the joint frame
        p = np.flatnonzero((turned[owner] >= 0) & ~table.local[owner])
        rotation = table.rotation[turned[owner[p]]]
        axis[p] = (axis[p, None] @ rotation)[:, 0]
        anchor[p] = (anchor[p, None] @ rotation)[:, 0]
    parent_frames[table.placed], child_frames[table.placed] = table.frames[:, 0], table.frames[:, 1]
    moved = np.setdiff1d(table.moved, table.placed)
    if len(moved):
        to_reference = _carry_axes(kind, axis, anchor, table.springs["reference"], first, moved)
        parent_frames[moved] = parent_frames[moved] @ spatial.se3_inverse(to_reference)
    return {
        "joint_names": names,
        "joint_types": tuple(table.types),
        "joint_parents": table.parents,
        "joint_children": table.children,
        "parent_frames": read_only(parent_frames),
        "child_frames": read_only(child_frames),
        "primitive_joint": read_only(owner),
        "primitive_kind": kind,
        "primitive_axis": read_only(axis),
        "primitive_anchor": read_only(anchor),
        **table.springs,
        "dof_names": tuple(table.dof_names),
    }


def _unit_axes(kind: NDArray, axis: NDArray, owner: Ints, names: Sequence[str]) -> None:
    """Refuse axes that are not of unit length before any geometry is built on them."""
    length = np.sqrt((axis**2).sum(axis=1))
    bad = np.flatnonzero((kind != BALL) & ~(np.abs(length - 1) <= 1e-6))
    if len(bad):
        p = int(bad[0])
        raise MechanismError(
            f"joint '{names[owner[p]]}': axis {axis[p].tolist()} has length {length[p]:.6g}; give a unit vector"
        )


def _carry_axes(kind: Ints, axis: Floats, anchor: Floats, q: Floats, first: Ints, joints: Ints) -> Floats:
    """Move axes and anchors of joints, given at the reference pose, to zero coordinates, in place.

    Returns the motion of these joints from zero coordinates to the reference, (joints, 4, 4).
    """
    coordinate = np.concatenate([[0], np.cumsum(NQ[kind])])
    count = np.diff(first)[joints]
    moved = np.broadcast_to(np.eye(4), (len(joints), 4, 4)).copy()
    for slot in range(int(count.max(initial=0)) - 1, -1, -1):
        has = np.flatnonzero(count > slot)
        p = first[joints[has]] + slot
        axis[p] = np.einsum("nij,nj->ni", moved[has, :3, :3], axis[p])
        anchor[p] = spatial.transform_points(moved[has], anchor[p])
        moved[has] = primitive_transforms(kind[p], axis[p], anchor[p], q, coordinate[p]) @ moved[has]
    return moved


def _spring_arrays(
    joints: list[JointSpec], kind: NDArray, first: NDArray
) -> tuple[dict[str, Floats], list[str]]:
    """Per-dof and per-coordinate values of all joints, in joint order, and the dofs' names."""
    ndof, nq = NDOF[kind], NQ[kind]
    dof_start = np.concatenate([[0], np.cumsum(ndof)]).astype(int)
    coordinate_start = np.concatenate([[0], np.cumsum(nq)]).astype(int)
    out = slack_springs(kind)
    reference = out["reference"]
    dof_names: list[str] = []
    rests: list[tuple[slice, slice, Any, str]] = []
    ends = list(zip(dof_start[first].tolist(), coordinate_start[first].tolist(), first.tolist(), strict=True))
    for joint, (d0, c0, a), (d1, c1, b) in zip(joints, ends[:-1], ends[1:], strict=True):
        name, spring = joint.name, joint.spring
        dofs, coordinates = slice(d0, d1), slice(c0, c1)
        count = dofs.stop - dofs.start
        given = joint.dof_names
        if given is not None:
            if (
                not isinstance(given, Sequence)
                or len(given) != count
                or not all(isinstance(one, str) for one in given)
            ):
                raise MechanismError(f"joint '{name}': {count} dof names expected, got {brief(given)}")
            dof_names.extend(given)
        else:
            dof_names.extend([name] if count == 1 else [f"{name}.{i}" for i in range(count)])
        if not spring:
            continue
        if not count:
            raise MechanismError(f"joint '{name}' has no degree of freedom to give a spring to")
        for label in ("stiffness", "damping", "armature"):
            value = spring.get(label)
            if value is None:
                continue
            if not isinstance(value, float):  # a float is the common case
                if label == "stiffness" and shape_of(value)[1:]:
                    continue
                value = _per_dof(value, count, f"joint '{name}': {label}")
            out[label][dofs] = value
        limits = spring.get("limits")
        if limits is not None:
            value = numbers(limits, f"joint '{name}': limits")
            if value.shape not in ((2,), (count, 2)):
                raise MechanismError(f"joint '{name}': limits are (lower, upper), or {count} such pairs")
            value = np.broadcast_to(value, (count, 2))
            out["lower"][dofs], out["upper"][dofs] = value[:, 0], value[:, 1]
        if spring.get("reference") is not None:
            reference[coordinates] = _coordinates(
                spring["reference"], kind[a:b], f"joint '{name}': reference"
            )
        if spring.get("rest") is not None:
            rests.append((coordinates, slice(a, b), spring["rest"], name))
    out["rest"] = rest = reference.copy()
    for coordinates, part, value, name in rests:
        rest[coordinates] = _coordinates(value, kind[part], f"joint '{name}': rest")
    return out, dof_names


def slack_springs(kind: Ints) -> dict[str, Floats]:
    """Per-dof and per-coordinate values of primitives without springs or limits, at zero coordinates."""
    nv, start = int(NDOF[kind].sum()), np.concatenate([[0], np.cumsum(NQ[kind])])
    out = {label: np.zeros(nv) for label in ("stiffness", "damping", "armature")}
    out["lower"], out["upper"] = np.full(nv, -np.inf), np.full(nv, np.inf)
    out["reference"] = np.zeros(int(start[-1]))
    out["reference"][start[:-1][kind == BALL]] = 1.0
    out["rest"] = out["reference"].copy()
    return out


def _per_dof(value: Any, count: int, what: str) -> NDArray[np.float64]:
    given = numbers(value, what)
    if given.shape not in ((), (count,)):
        raise MechanismError(f"{what}: one number or {count} expected, got {brief(value)}")
    return given


def _scalar(value: Any, what: str) -> float:
    return float(_per_dof(value, 1, what).reshape(-1)[0])


def _coordinates(value: Any, kind: NDArray, what: str) -> NDArray[np.float64]:
    """Coordinates of one joint: one per hinge or slide, four (a quaternion) per ball."""
    given = np.atleast_1d(numbers(value, what))
    size = int(NQ[kind].sum())
    if given.shape != (size,):
        raise MechanismError(
            f"{what}: {size} numbers expected (a ball takes a quaternion w, x, y, z), got {brief(value)}"
        )
    if not (np.abs(given) < HUGE).all():
        raise MechanismError(f"{what} is not finite")
    return given


def row_arrays(m: Mechanism, blocks: list[tuple[int, Any]], couplings: list, tendons: list) -> dict[str, Any]:
    """Couplings, tendons and full stiffness blocks as sparse rows."""
    position = m.reference[m.dof_coordinate]
    values: list[tuple[list[int], list[float], float]] = []
    for name, coefficients, offset in couplings:
        dofs, c = _terms(m, coefficients, f"coupling '{name}'")
        at_reference = float(np.dot(c, position[dofs]))
        values.append(
            (dofs, c, at_reference if offset is None else _scalar(offset, f"coupling '{name}': offset"))
        )
    springs: list[tuple[str, list[int], list[float], float, float, float]] = []
    for name, coefficients, stiffness, damping, rest in tendons:
        what = f"tendon '{name}'"
        dofs, c = _terms(m, coefficients, what)
        at_reference = float(np.dot(c, np.where(m.dof_kind[dofs] == BALL, 0.0, position[dofs])))
        k, d, r = (_scalar(v, what) for v in (stiffness, damping, at_reference if rest is None else rest))
        springs.append((name, dofs, c, k, d, r))
    for j, matrix in blocks:
        springs.extend(_block(m, j, matrix))
    return {
        "coupling_names": tuple(name for name, *_ in couplings),
        "couplings": Rows.pack([(dofs, c) for dofs, c, _ in values]),
        "coupling_offset": np.array([offset for *_, offset in values]),
        "tendon_names": tuple(s[0] for s in springs),
        "tendons": Rows.pack([(s[1], s[2]) for s in springs]),
        "tendon_stiffness": np.array([s[3] for s in springs]),
        "tendon_damping": np.array([s[4] for s in springs]),
        "tendon_rest": np.array([s[5] for s in springs]),
    }


def _terms(m: Mechanism, coefficients: Mapping[str, float], what: str) -> tuple[list[int], list[float]]:
    dofs, values = [], []
    for name, coefficient in coefficients.items():
        if not isinstance(name, str):
            raise MechanismError(f"{what}: {brief(name)} is not a joint's name")
        dofs.append(m.dof_index(name))
        values.append(_scalar(coefficient, f"{what}: coefficient of '{name}'"))
    return dofs, values


def _block(
    m: Mechanism, j: int, matrix: Any
) -> list[tuple[str, list[int], list[float], float, float, float]]:
    """A full stiffness matrix of one joint as springs along its principal directions."""
    name, dofs = m.joint_names[j], m.joint_dofs(j)
    count = dofs.stop - dofs.start
    value = numbers(matrix, f"joint '{name}': stiffness")
    if value.shape != (count, count) or not (np.abs(value) < HUGE).all():
        raise MechanismError(f"joint '{name}': a stiffness matrix must be {count} x {count} and finite")
    if np.abs(value - value.T).max() > 1e-9 * np.abs(value).max():
        raise MechanismError(f"joint '{name}': the stiffness matrix is not symmetric")
    principal, directions = np.linalg.eigh((value + value.T) / 2)
    if principal[0] < -1e-9 * max(principal[-1], 0.0):
        raise MechanismError(
            f"joint '{name}': the stiffness matrix has a negative principal stiffness {principal[0]:.3g}"
        )
    rest = np.where(m.dof_kind[dofs] == BALL, 0.0, m.rest[m.dof_coordinate[dofs]])
    return [
        (
            f"{name}/stiffness{i}",
            list(range(dofs.start, dofs.stop)),
            c.tolist(),
            float(k),
            0.0,
            float(c @ rest),
        )
        for i, (k, c) in enumerate(zip(principal, directions.T, strict=True))
        if k > 1e-14 * principal[-1]
    ]
