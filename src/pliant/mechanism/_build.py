"""Arrays of a `Mechanism` from the bodies, joints, couplings and tendons that a `Builder` has collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import checks, spatial
from pliant import shapes as shapes_module
from pliant.errors import InputError, MechanismError
from pliant.mechanism.joints import BALL, NDOF, NQ, stack_transform
from pliant.mechanism.mechanism import Mechanism, Rows, ShapeTable
from pliant.mechanism.validate import HUGE

__all__ = [
    "JointSpec",
    "column",
    "inertia_column",
    "joint_arrays",
    "numbers",
    "rotation_matrix",
    "row_arrays",
    "shape_arrays",
    "shape_of",
    "solid_properties",
    "square_axes",
]


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
    if not (np.abs(value) < HUGE).all() or not abs(float(np.sqrt(value @ value)) - 1) < 1e-6:
        raise MechanismError(f"{what}: the quaternion {value.tolist()} is not of unit length")
    return spatial.quat_to_matrix(value / np.sqrt(value @ value))


def square_axes(axes: Any, name: str) -> NDArray[np.float64]:
    """Two axes at right angles, (2, 3)."""
    given = numbers(axes, f"joint '{name}': axes")
    if given.shape != (2, 3) or not abs(given[0] @ given[1]) <= 1e-6:
        raise MechanismError(
            f"joint '{name}': two axes at right angles expected, not {axes!r}; stack() takes others"
        )
    return given


def column(
    values: list[Any], shape: tuple[int, ...], label: str, names: Sequence[str]
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
                f"'{name}': {label} needs shape {shape or 'of a single number'}, got {value!r}"
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
                    f"body '{names[i]}': inertia is three moments or a 3 x 3 matrix, not {value!r}"
                )
            if not (np.abs(matrix) < HUGE).all():
                raise MechanismError(f"'{names[i]}': inertia is not finite")
            out[i] = matrix if matrix.ndim == 2 else np.diag(matrix)
    return out


def solid_properties(
    name: str, shapes: tuple[shapes_module.Shape, ...], mass: Any, com: Any, inertia: Any, density: float
) -> tuple:
    """Mass, centre of mass and inertia, those not given from the shapes at this density."""
    solid = [shape for shape in shapes if shape.kind not in ("plane", "height field")]
    if not solid:
        missing = "mass" if mass is None else "inertia"
        raise MechanismError(f"body '{name}': give {missing}, or shapes to derive it from")
    try:
        parts = [shape.mass_properties() for shape in solid]
    except InputError as error:
        raise MechanismError(f"body '{name}': {error}") from None
    volumes = np.array([part[0] for part in parts])
    centre = np.einsum("i,ij->j", volumes, np.array([part[1] for part in parts])) / volumes.sum()
    second = np.zeros((3, 3))
    for volume, centroid, unit in parts:
        d = centroid - centre
        second += volume * (unit + (d @ d) * np.eye(3) - np.outer(d, d))
    total = density * volumes.sum() if mass is None else mass
    if inertia is None:
        inertia = numbers(total, f"body '{name}': mass") * second / volumes.sum()
    return total, centre if com is None else com, inertia


def shape_arrays(shapes: list[tuple[int, shapes_module.Shape]]) -> ShapeTable:
    """The table of shapes given with the body of each; shapes that share a mesh keep sharing it."""
    if not shapes:
        return ShapeTable()
    meshes: dict[int, int] = {}
    unique: list[shapes_module.Mesh] = []
    for _, shape in shapes:
        if shape.mesh is not None and id(shape.mesh) not in meshes:
            meshes[id(shape.mesh)] = len(unique)
            unique.append(shape.mesh)
    number = {kind: i for i, kind in enumerate(shapes_module.KINDS)}
    return ShapeTable(
        body=np.array([body for body, _ in shapes], dtype=np.int64),
        kind=np.array([number[shape.kind] for _, shape in shapes], dtype=np.int64),
        size=np.array([shape.size for _, shape in shapes], dtype=np.float64),
        pose=np.array([shape.pose for _, shape in shapes]),
        rgba=np.array([shape.rgba for _, shape in shapes], dtype=np.float64),
        mesh=np.array([-1 if s.mesh is None else meshes[id(s.mesh)] for _, s in shapes], dtype=np.int64),
        role=np.array([shapes_module.ROLES.index(shape.role) for _, shape in shapes], dtype=np.int64),
        meshes=tuple(unique),
    )


def joint_arrays(joints: list[JointSpec], poses: NDArray) -> dict[str, Any]:
    """Joint frames, primitives and springs as arrays. Joint frames are aligned with the world by default."""
    names = tuple(joint.name for joint in joints)
    n = len(joints)
    children = np.array([joint.child for joint in joints], dtype=np.int64)
    parents = np.array([joint.parent for joint in joints], dtype=np.int64)
    world = np.concatenate([poses, np.eye(4)[None]])
    members = [(j, *member) for j, joint in enumerate(joints) for member in joint.primitives]
    owner = np.array([member[0] for member in members], dtype=np.int64)
    owner_names = [names[j] for j in owner.tolist()]
    kind = np.array([member[1] for member in members], dtype=np.int64)
    axis = column([member[2] for member in members], (3,), "axis", owner_names).reshape(-1, 3)
    anchor = column([member[3] for member in members], (3,), "anchor", owner_names).reshape(-1, 3)
    _unit_axes(kind, axis, owner_names)

    # World pose of the joint at the reference; without an anchor, at the child's origin.
    frames = np.broadcast_to(np.eye(4), (n, 4, 4)).copy()
    origins = poses[children, :3, 3] if n else np.empty((0, 3))
    where = [origins[j] if joint.anchor is None else joint.anchor for j, joint in enumerate(joints)]
    frames[:, :3, 3] = column(where, (3,), "anchor", names).reshape(-1, 3)
    first = np.searchsorted(owner, np.arange(n + 1))
    for j, joint in enumerate(joints):
        if joint.spring.get("orientation") is not None:
            rotation = rotation_matrix(joint.spring["orientation"], f"joint '{joint.name}'")
            frames[j, :3, :3] = rotation
            if not joint.local:  # axes were given in the world: bring them into the joint frame
                part = slice(first[j], first[j + 1])
                axis[part] = axis[part] @ rotation
                anchor[part] = anchor[part] @ rotation
    child_frames = spatial.se3_inverse(world[children]) @ frames
    parent_frames = spatial.se3_inverse(world[parents]) @ frames

    coordinate_start = np.concatenate([[0], np.cumsum(NQ[kind])]).astype(int)
    springs = _spring_arrays(joints, kind, first)
    for j, joint in enumerate(joints):
        if joint.frames is not None:
            parent_frames[j], child_frames[j] = joint.frames
        elif joint.spring.get("reference") is not None:
            part, q = slice(first[j], first[j + 1]), springs["reference"]
            coordinates = q[coordinate_start[first[j]] : coordinate_start[first[j + 1]]]
            _carry_axes(kind[part], axis[part], anchor[part], coordinates)
            moved = stack_transform(kind[part], axis[part], anchor[part], coordinates)
            parent_frames[j] = parent_frames[j] @ spatial.se3_inverse(moved)
    return {
        "joint_names": names,
        "joint_types": tuple(joint.kind for joint in joints),
        "joint_parents": parents,
        "joint_children": children,
        "parent_frames": parent_frames,
        "child_frames": child_frames,
        "primitive_joint": owner,
        "primitive_kind": kind,
        "primitive_axis": axis,
        "primitive_anchor": anchor,
        **springs,
    }


def _unit_axes(kind: NDArray, axis: NDArray, owners: list[str]) -> None:
    """Refuse axes that are not of unit length before any geometry is built on them."""
    length = np.sqrt((axis**2).sum(axis=1))
    bad = np.flatnonzero((kind != BALL) & ~(np.abs(length - 1) <= 1e-6))
    if len(bad):
        p = int(bad[0])
        raise MechanismError(
            f"joint '{owners[p]}': axis {axis[p].tolist()} has length {length[p]:.6g}; give a unit vector"
        )


def _carry_axes(kind: NDArray, axis: NDArray, anchor: NDArray, q: NDArray) -> None:
    """Move axes and anchors, given at the reference pose, to zero coordinates, in place."""
    start = np.concatenate([[0], np.cumsum(NQ[kind])]).astype(int)
    moved = np.eye(4)
    for p in range(len(kind) - 1, -1, -1):
        axis[p] = moved[:3, :3] @ axis[p]
        anchor[p] = moved[:3, :3] @ anchor[p] + moved[:3, 3]
        own = stack_transform(kind[p : p + 1], axis[p : p + 1], anchor[p : p + 1], q[start[p] : start[p + 1]])
        moved = own @ moved


def _spring_arrays(joints: list[JointSpec], kind: NDArray, first: NDArray) -> dict[str, Any]:
    """Per-dof values of all joints, in joint order."""
    ndof, nq = NDOF[kind], NQ[kind]
    dof_start = np.concatenate([[0], np.cumsum(ndof)]).astype(int)
    coordinate_start = np.concatenate([[0], np.cumsum(nq)]).astype(int)
    nv, total = int(dof_start[-1]), int(coordinate_start[-1])
    out: dict[str, Any] = {label: np.zeros(nv) for label in ("stiffness", "damping", "armature")}
    out["lower"], out["upper"] = np.full(nv, -np.inf), np.full(nv, np.inf)
    reference = np.zeros(total)
    reference[coordinate_start[:-1][kind == BALL]] = 1.0
    dof_names: list[str] = []
    rests: list[tuple[slice, slice, Any, str]] = []
    ends = list(zip(dof_start[first].tolist(), coordinate_start[first].tolist(), first.tolist(), strict=True))
    for joint, (d0, c0, a), (d1, c1, b) in zip(joints, ends[:-1], ends[1:], strict=True):
        name, spring = joint.name, joint.spring
        dofs, coordinates = slice(d0, d1), slice(c0, c1)
        count = dofs.stop - dofs.start
        given = joint.dof_names
        if given is not None:
            if len(given) != count or not all(isinstance(one, str) for one in given):
                raise MechanismError(f"joint '{name}': {count} dof names expected, got {given!r}")
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
            if not isinstance(value, float):  # a float is the common case in large mechanisms
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
    rest = reference.copy()
    for coordinates, part, value, name in rests:
        rest[coordinates] = _coordinates(value, kind[part], f"joint '{name}': rest")
    return {**out, "reference": reference, "rest": rest, "dof_names": tuple(dof_names)}


def _per_dof(value: Any, count: int, what: str) -> NDArray[np.float64]:
    given = numbers(value, what)
    if given.shape not in ((), (count,)):
        raise MechanismError(f"{what}: one number or {count} expected, got {value!r}")
    return given


def _scalar(value: Any, what: str) -> float:
    return float(_per_dof(value, 1, what).reshape(-1)[0])


def _coordinates(value: Any, kind: NDArray, what: str) -> NDArray[np.float64]:
    """Coordinates of one joint: one per hinge or slide, four (a quaternion) per ball."""
    given = np.atleast_1d(numbers(value, what))
    size = int(NQ[kind].sum())
    if given.shape != (size,):
        raise MechanismError(
            f"{what}: {size} numbers expected (a ball takes a quaternion w, x, y, z), got {value!r}"
        )
    if not (np.abs(given) < HUGE).all():
        raise MechanismError(f"{what} is not finite")
    return given


def row_arrays(
    m: Mechanism, joints: list[JointSpec], blocks: list[int], couplings: list, tendons: list
) -> dict[str, Any]:
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
    for j in blocks:
        springs.extend(_block(m, j, joints[j].spring["stiffness"]))
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
            raise MechanismError(f"{what}: {name!r} is not a joint's name")
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
