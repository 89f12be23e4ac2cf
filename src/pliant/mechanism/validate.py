"""Checks of a mechanism: types, shapes, graph, springs, geometry, masses. Messages name the culprit and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.chunks import slices
from pliant.errors import InputError, MechanismError
from pliant.mechanism import joints
from pliant.mechanism.joints import BALL, NDOF, NQ
from pliant.mechanism.tree import end_bodies
from pliant.text import LONGEST_NAME, brief, is_name

if TYPE_CHECKING:
    from pliant.mechanism.mechanism import Mechanism

__all__ = ["HUGE", "SPRINGS", "UNIT_TOLERANCE", "check", "check_springs", "joint_gaps", "normalize"]

UNIT_TOLERANCE = 1e-6  # deviation of axes and quaternions from unit length that is normalized, not refused
HUGE = 1e100  # beyond any mechanism, and small enough that products of a few such numbers stay finite
MEET_TOLERANCE = 1e-6  # radians, and fractions of the mechanism's size
INERTIA_TOLERANCE = 1e-6  # relative slack in the triangle inequality: files round their numbers


SPRINGS = frozenset({"stiffness", "damping", "tendon_stiffness", "tendon_damping"})  # no part of the geometry

# Columns that keep a single row where all are alike, if they are long (bytes): shapes and inertias of huge linkages.
_REPEATED = frozenset({"com", "inertia", "primitive_anchor", "kind", "size", "pose", "mesh", "role"})
_LONG = 250_000
_RULE = f"a name has 1 to {LONGEST_NAME} characters, all printable"


def normalize(m: Mechanism) -> None:
    """Give every attribute its type and shape, and make arrays read-only."""
    for label in (
        "body_names",
        "joint_names",
        "joint_types",
        "dof_names",
        "coupling_names",
        "tendon_names",
        "end_effectors",
    ):
        value = getattr(m, label)
        if not isinstance(value, (tuple, list)) or not all(
            issubclass(kind, str) for kind in set(map(type, value))
        ):
            raise MechanismError(f"{label}: a tuple of strings expected")
        object.__setattr__(m, label, tuple(value))
    if m.dof_names == m.joint_names:  # long chains: one tuple for both
        object.__setattr__(m, "dof_names", m.joint_names)
    if not all(isinstance(v, (np.ndarray, list, tuple)) for v in (m.primitive_joint, m.shape_table.body)):
        raise MechanismError("primitive_joint and the shapes' bodies must be arrays")
    nb, nj, nd = len(m.body_names), len(m.joint_names), len(m.dof_names)
    np_ = len(m.primitive_joint)
    nc, nt, ns = len(m.coupling_names), len(m.tendon_names), len(m.shape_table.body)
    real: dict[str, tuple[int, ...]] = {
        "mass": (nb,),
        "com": (nb, 3),
        "inertia": (nb, 3, 3),
        "reference_poses": (nb, 4, 4),
        "parent_frames": (nj, 4, 4),
        "child_frames": (nj, 4, 4),
        "primitive_axis": (np_, 3),
        "primitive_anchor": (np_, 3),
        "stiffness": (nd,),
        "damping": (nd,),
        "armature": (nd,),
        "lower": (nd,),
        "upper": (nd,),
        "coupling_offset": (nc,),
        "tendon_stiffness": (nt,),
        "tendon_damping": (nt,),
        "tendon_rest": (nt,),
    }
    whole = {
        "joint_parents": (nj,),
        "joint_children": (nj,),
        "primitive_joint": (np_,),
        "primitive_kind": (np_,),
    }
    for label, shape in whole.items():
        _as_array(m, label, np.int64, shape, label)
    for label, shape in real.items():
        _as_array(m, label, np.float64, shape, label)
    if np_ and not np.isin(m.primitive_kind, (0, 1, 2)).all():
        raise MechanismError("primitive_kind: 0 (hinge), 1 (slide) or 2 (ball) expected")
    nq = int(NQ[m.primitive_kind].sum())
    for label in ("rest", "reference"):
        _as_array(m, label, np.float64, (nq,), label)
    if int(NDOF[m.primitive_kind].sum()) != nd:
        raise MechanismError(f"{nd} dof names for {int(NDOF[m.primitive_kind].sum())} degrees of freedom")
    if len(m.joint_types) != nj:
        raise MechanismError(f"{len(m.joint_types)} joint types for {nj} joints")
    for label, rows, count in (("couplings", m.couplings, nc), ("tendons", m.tendons, nt)):
        _as_array(rows, "start", np.int64, (count + 1,), label)
        entries = len(rows.dof)
        _as_array(rows, "dof", np.int64, (entries,), label)
        _as_array(rows, "coefficient", np.float64, (entries,), label)
        if rows.start[0] != 0 or rows.start[-1] != entries or (np.diff(rows.start) < 1).any():
            raise MechanismError(f"{label}: every row needs at least one coordinate")
        if entries and (rows.dof.min() < 0 or rows.dof.max() >= nd):
            raise MechanismError(f"{label}: a row refers to a degree of freedom that is not there")
    table = m.shape_table
    for label, dtype, shape in (
        ("body", np.int64, (ns,)),
        ("kind", np.int64, (ns,)),
        ("size", np.float64, (ns, 3)),
        ("pose", np.float64, (ns, 4, 4)),
        ("rgba", np.float64, (ns, 4)),
        ("mesh", np.int64, (ns,)),
        ("role", np.int64, (ns,)),
    ):
        _as_array(table, label, dtype, shape, f"shapes: {label}")


def _as_array(owner: Any, label: str, dtype: type, shape: tuple[int, ...], shown: str) -> None:
    """Turn an attribute into a read-only array of this type and shape."""
    value = getattr(owner, label)
    if not (
        isinstance(value, np.ndarray)
        and value.dtype == dtype
        and not value.flags.writeable
        and (value.flags.c_contiguous or _is_repeated(value))
    ):
        try:
            value = np.array(value, dtype=dtype, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            raise MechanismError(f"{shown}: an array of numbers expected ({error})") from None
        _store(owner, label, value)
    if value.shape != shape:
        raise MechanismError(f"{shown}: shape {shape} expected, got {value.shape}")
    if label in _REPEATED and value.nbytes > _LONG and not _is_repeated(value):
        first, last = value[:1], value[-1:]
        if (first == last).all() and all((value[part] == first).all() for part in slices(len(value))):
            object.__setattr__(owner, label, np.broadcast_to(first[0].copy(), shape))


def _is_repeated(value: NDArray) -> bool:
    """Whether an array is one contiguous row, repeated without taking memory."""
    return len(value) > 0 and value.strides[0] == 0 and value[0].flags.c_contiguous


def check(m: Mechanism) -> None:
    """Refuse a mechanism that is not sound."""
    _names(m)
    _finite(m)
    _graph(m)
    _springs(m)
    _geometry(m)
    _make_exact(m)
    _masses(m)
    _shapes(m)
    frames_meet(m)
    if not m.end_effectors:
        object.__setattr__(m, "end_effectors", tuple(m.body_names[b] for b in end_bodies(m)))


def check_springs(m: Mechanism) -> None:
    """Refuse a copy of a sound mechanism in which `SPRINGS` were replaced, if they are not sound."""
    for label in sorted(SPRINGS):
        count = len(m.tendon_names if label.startswith("tendon") else m.dof_names)
        _as_array(m, label, np.float64, (count,), label)
    _finite(m)
    _springs(m)


def _names(m: Mechanism) -> None:
    if not isinstance(m.name, str):
        raise MechanismError("the mechanism's name must be a string")
    if m.name and not is_name(m.name):
        raise MechanismError(f"the mechanism's name {brief(m.name)}: {_RULE}")
    if not m.body_names:
        raise MechanismError(f"'{m.name}' has no bodies: add at least one")
    for what, names in (
        ("body", m.body_names),
        ("joint", m.joint_names),
        ("degree of freedom", m.dof_names),
        ("coupling", m.coupling_names),
        ("tendon", m.tendon_names),
    ):
        if what == "degree of freedom" and names is m.joint_names:
            continue  # the usual case of long chains
        if len(set(names)) != len(names):
            seen: set[str] = set()
            double = next(n for n in names if n in seen or seen.add(n))
            raise MechanismError(f"two {what} entries are called '{double}': names must be unique")
        if (
            not all(names)
            or max(map(len, names), default=0) > LONGEST_NAME
            or not "".join(names).isprintable()
        ):  # quicker than name by name
            name = next(name for name in names if not is_name(name))
            raise MechanismError(f"{what} name {brief(name)}: {_RULE}")
    if "world" in m.body_names:
        raise MechanismError("no body may be called 'world': that name stands for the fixed frame")
    unknown = set(m.joint_types) - set(joints.TYPES)
    if unknown:
        raise MechanismError(f"joint type '{min(unknown)}' is unknown; known are {', '.join(joints.TYPES)}")
    known = set(m.body_names)
    for body in m.end_effectors:
        if body not in known:
            raise MechanismError(f"end effector '{body}' is not a body of '{m.name}'")
    if len(set(m.end_effectors)) != len(m.end_effectors):
        raise MechanismError("an end effector is listed twice")


def _culprit(bad: NDArray, names: tuple[str, ...]) -> str:
    """The names of the first few entries where `bad` is true."""
    where = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
    shown = ", ".join(f"'{names[i]}'" for i in where[:3])
    return shown + (f" and {len(where) - 3} more" if len(where) > 3 else "")


def _sane(values: NDArray) -> bool:
    """Whether all numbers are finite, and not absurdly large."""
    return not values.size or bool(values.min() > -HUGE and values.max() < HUGE)  # NaN fails


def _finite(m: Mechanism) -> None:
    tables = (
        ("body", m.body_names, ("mass", "com", "inertia", "reference_poses")),
        ("joint", m.joint_names, ("parent_frames", "child_frames")),
        ("joint", None, ("primitive_axis", "primitive_anchor")),
        ("degree of freedom", m.dof_names, ("stiffness", "damping", "armature")),
        ("coupling", m.coupling_names, ("coupling_offset",)),
        ("tendon", m.tendon_names, ("tendon_stiffness", "tendon_damping", "tendon_rest")),
    )
    for what, names, labels in tables:
        for label in labels:
            value = getattr(m, label)
            if not _sane(value):
                names = names or tuple(
                    m.joint_names[j] if 0 <= j < len(m.joint_names) else "?"
                    for j in m.primitive_joint.tolist()
                )
                raise MechanismError(
                    f"{what} {_culprit(~(np.abs(value) < HUGE), names)}: {label} is not finite, or absurdly large"
                )
    for label in ("rest", "reference"):
        absurd = ~(np.abs(getattr(m, label)) < HUGE)
        if absurd.any():
            index = int(np.flatnonzero(absurd)[0])
            owner = np.repeat(m.primitive_joint, NQ[m.primitive_kind])[index]
            raise MechanismError(f"joint '{m.joint_names[owner]}': {label} is not finite")
    if np.isnan(m.lower).any() or np.isnan(m.upper).any():
        raise MechanismError(
            f"joint {_culprit(np.isnan(m.lower) | np.isnan(m.upper), m.dof_names)}: limits are NaN"
        )
    for label, rows in (("coupling", m.couplings), ("tendon", m.tendons)):
        if not (np.abs(rows.coefficient) < HUGE).all():
            raise MechanismError(f"a {label} has a coefficient that is not finite")
    table = m.shape_table
    if not all(_sane(v) for v in (table.size, table.pose, table.rgba)):
        raise MechanismError("a shape has a size, pose or colour that is not finite")


def _graph(m: Mechanism) -> None:
    for label, low in (("joint_parents", -1), ("joint_children", 0)):
        value = getattr(m, label)
        bad = (value < low) | (value >= m.body_count)
        if bad.any():
            raise MechanismError(f"joint {_culprit(bad, m.joint_names)}: {label} points to no body")
    same = m.joint_parents == m.joint_children
    if same.any():
        raise MechanismError(f"joint {_culprit(same, m.joint_names)} joins a body to itself")
    if len(m.primitive_joint) and (
        m.primitive_joint.min() < 0
        or m.primitive_joint.max() >= m.joint_count
        or (np.diff(m.primitive_joint) < 0).any()
    ):
        raise MechanismError("primitive_joint must list primitives joint by joint, in joint order")
    _ = m.topology  # raises if a body cannot be reached


def _springs(m: Mechanism) -> None:
    for label in ("stiffness", "damping", "armature"):
        value = getattr(m, label)
        if (value < 0).any():
            raise MechanismError(
                f"joint {_culprit(value < 0, m.dof_names)}: {label} is negative; it must be 0 or more"
            )
    for label in ("tendon_stiffness", "tendon_damping"):
        value = getattr(m, label)
        if (value < 0).any():
            raise MechanismError(f"tendon {_culprit(value < 0, m.tendon_names)}: {label[7:]} is negative")
    crossed = m.lower > m.upper
    if crossed.any():
        raise MechanismError(
            f"joint {_culprit(crossed, m.dof_names)}: the lower limit is above the upper one"
        )
    turning = m.dof_kind[m.couplings.dof] == BALL
    if turning.any():
        raise MechanismError(
            f"a coupling uses '{m.dof_names[m.couplings.dof[turning][0]]}' of a ball joint; "
            "only hinge and slide coordinates can be coupled"
        )
    for label, rows, names in (
        ("coupling", m.couplings, m.coupling_names),
        ("tendon", m.tendons, m.tendon_names),
    ):
        for r in range(len(rows)):
            dofs, coefficients = rows.row(r)
            if len(set(dofs.tolist())) != len(dofs):
                raise MechanismError(f"{label} '{names[r]}' lists the same degree of freedom twice")
            if not coefficients.any():
                raise MechanismError(f"{label} '{names[r]}' has only zero coefficients")
    if len(m.couplings):
        position = m.reference[m.dof_coordinate]
        scale = np.add.reduceat(
            np.abs(m.couplings.coefficient * position[m.couplings.dof]), m.couplings.start[:-1]
        )
        gap = np.abs(m.couplings.sums(position) - m.coupling_offset) > MEET_TOLERANCE * (1 + scale)
        if gap.any():
            raise MechanismError(
                f"coupling {_culprit(gap, m.coupling_names)} does not hold at the reference pose: "
                "change its offset or the reference coordinates"
            )


def _geometry(m: Mechanism) -> None:
    straight = m.primitive_kind != BALL
    length = np.sqrt((m.primitive_axis**2).sum(axis=1))
    bad = straight & (np.abs(length - 1) > UNIT_TOLERANCE)
    if bad.any():
        p = int(np.flatnonzero(bad)[0])
        raise MechanismError(
            f"joint '{m.joint_names[m.primitive_joint[p]]}': axis {m.primitive_axis[p].tolist()} has length "
            f"{length[p]:.6g}; give a unit vector"
        )
    for label, poses, names in (
        ("body", m.reference_poses, m.body_names),
        ("joint", m.parent_frames, m.joint_names),
        ("joint", m.child_frames, m.joint_names),
    ):
        bad = not_rigid(poses)
        if bad.any():
            raise MechanismError(
                f"{label} {_culprit(bad, names)}: the pose is not a rotation and a translation"
            )
    balls = np.flatnonzero(m.primitive_kind == BALL)
    start = m.primitive_coordinate[balls]
    for label in ("rest", "reference"):
        length = np.sqrt((getattr(m, label)[start[:, None] + np.arange(4)] ** 2).sum(axis=1))
        bad = np.abs(length - 1) > UNIT_TOLERANCE
        if bad.any():
            name = m.joint_names[m.primitive_joint[balls[np.flatnonzero(bad)[0]]]]
            raise MechanismError(f"joint '{name}': the {label} quaternion is not of unit length")


def not_rigid(poses: NDArray) -> NDArray[np.bool_]:
    """Whether 4 x 4 matrices are no rigid transforms, (n,)."""
    out = np.empty(len(poses), dtype=bool)
    for part in slices(len(poses)):
        rotation, error = poses[part, :3, :3], _skewness(poses[part])
        last = np.abs(poses[part, 3] - np.array([0.0, 0, 0, 1])).max(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            out[part] = ~((error <= UNIT_TOLERANCE) & (_determinants(rotation) > 0) & (last == 0))
    return out


def _skewness(poses: NDArray) -> NDArray[np.float64]:
    """Largest entry of |R^T R - 1| of every pose, (n,)."""
    x, y, z = (np.ascontiguousarray(poses[:, :3, i].T) for i in range(3))
    out = np.abs((x * x).sum(axis=0) - 1)
    for a, b, one in ((y, y, 1.0), (z, z, 1.0), (x, y, 0.0), (x, z, 0.0), (y, z, 0.0)):
        np.maximum(out, np.abs((a * b).sum(axis=0) - one), out=out)
    return out


def _determinants(matrices: NDArray) -> NDArray[np.float64]:
    """Determinants of 3 x 3 matrices, (n,)."""
    a, b, c = (matrices[:, i].T for i in range(3))
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )


def _make_exact(m: Mechanism) -> None:
    """Normalize axes, quaternions and rotations that are rounded (six digits in a file) to the last bit.

    Those that are exact already keep their bits: saving and loading changes nothing.
    """
    for owner, label in (
        (m, "reference_poses"),
        (m, "parent_frames"),
        (m, "child_frames"),
        (m.shape_table, "pose"),
    ):
        poses = getattr(owner, label)
        rounded = np.empty(len(poses), dtype=bool)
        for part in slices(len(poses)):
            rounded[part] = _skewness(poses[part]) > 1e-14
        if rounded.any():
            poses = poses.copy()
            u, _, vt = np.linalg.svd(poses[rounded, :3, :3])
            poses[rounded, :3, :3] = u @ vt
            _store(owner, label, poses)
    straight = m.primitive_kind != BALL
    length = np.sqrt((m.primitive_axis**2).sum(axis=1))
    rounded = straight & (np.abs(length - 1) > 1e-15)
    if rounded.any():
        axis = m.primitive_axis.copy()
        axis[rounded] /= length[rounded, None]
        _store(m, "primitive_axis", axis)
    where = m.primitive_coordinate[np.flatnonzero(m.primitive_kind == BALL)][:, None] + np.arange(4)
    for label in ("rest", "reference"):
        value = getattr(m, label)
        length = np.sqrt((value[where] ** 2).sum(axis=1))
        if (np.abs(length - 1) > 1e-15).any():
            value = value.copy()
            value[where] /= length[:, None]
            _store(m, label, value)


def _store(owner: Any, label: str, value: NDArray) -> None:
    value.flags.writeable = False
    object.__setattr__(owner, label, value)


def _masses(m: Mechanism) -> None:
    if (m.mass < 0).any():
        raise MechanismError(f"body {_culprit(m.mass < 0, m.body_names)}: mass must be positive")
    lopsided, moments = np.empty(m.body_count, dtype=bool), np.empty((m.body_count, 3))
    for part in slices(m.body_count):
        inertia = m.inertia[part]
        turned = inertia.transpose(0, 2, 1)
        skew, scale = np.abs(inertia - turned).max(axis=(1, 2)), np.abs(inertia).max(axis=(1, 2))
        lopsided[part] = skew > INERTIA_TOLERANCE * scale
        moments[part] = np.linalg.eigvalsh((inertia + turned) / 2)
    if lopsided.any():
        raise MechanismError(f"body {_culprit(lopsided, m.body_names)}: inertia is not symmetric")
    rule = "must be positive (0 only for a body fixed to one that has it)"
    for what, values in (("mass", m.mass), ("the principal moments of inertia", moments[:, 0])):
        bad = values < 0
        if (values <= 0).any():
            bad |= (values == 0) & ~_carried(m, values > 0)
        if bad.any():
            raise MechanismError(f"body {_culprit(bad, m.body_names)}: {what} {rule}")
    bad = moments[:, 2] - moments[:, 0] - moments[:, 1] > INERTIA_TOLERANCE * moments[:, 2]
    if bad.any():
        b = int(np.flatnonzero(bad)[0])
        raise MechanismError(
            f"body {_culprit(bad, m.body_names)}: no solid has principal moments {moments[b].tolist()}; "
            "the largest may not exceed the sum of the others"
        )


def _carried(m: Mechanism, has: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Bodies that fixed joints weld to the world, or to a body for which `has` is true, (bodies,).

    A tool frame or a camera may be massless if it is fixed to a body with mass.
    """
    fixed = np.bincount(m.primitive_joint, minlength=m.joint_count) == 0
    group = np.arange(m.body_count + 1)  # the last entry, index -1, is the world
    for joint in m.topology.tree.tolist():
        if fixed[joint]:
            group[m.joint_children[joint]] = group[m.joint_parents[joint]]
    rich = np.zeros(m.body_count + 1, dtype=bool)
    rich[group[:-1][has]] = True
    rich[-1] = True
    return rich[group[:-1]]


def _shapes(m: Mechanism) -> None:
    table = m.shape_table
    if not len(table):
        return
    if (table.body < -1).any() or (table.body >= m.body_count).any():
        raise MechanismError("a shape belongs to a body that is not there")
    if (table.kind < 0).any() or (table.kind >= len(shapes_module.KINDS)).any():
        raise MechanismError("a shape is of an unknown kind")
    if (table.role < 0).any() or (table.role >= len(shapes_module.ROLES)).any():
        raise MechanismError("a shape has an unknown role")
    _refuse_shapes(m, table.size < 0, "a shape has a negative size")
    _refuse_shapes(m, not_rigid(table.pose), "a shape's pose is not a rotation and a translation")
    field = table.kind == shapes_module.KINDS.index("height field")
    meshed = field | (table.kind == shapes_module.KINDS.index("mesh"))
    bad = (meshed & ((table.mesh < 0) | (table.mesh >= len(table.meshes)))) | (~meshed & (table.mesh != -1))
    _refuse_shapes(m, bad, "a shape refers to a mesh that is not there")
    for s in np.flatnonzero(field).tolist():
        if not _is_grid(table.meshes[table.mesh[s]], table.size[s]):
            b = table.body[s]
            raise MechanismError(
                f"body '{'world' if b < 0 else m.body_names[b]}': the mesh of a height field is not its grid; "
                "make it with shapes.height_field"
            )


def _refuse_shapes(m: Mechanism, bad: NDArray[np.bool_], why: str) -> None:
    """Refuse the shapes where `bad` is true, by the names of their bodies."""
    if bad.any():
        owner = tuple("world" if b < 0 else m.body_names[b] for b in m.shape_table.body.tolist())
        raise MechanismError(f"body {_culprit(bad, owner)}: {why}")


def _is_grid(mesh: shapes_module.Mesh, size: NDArray[np.float64]) -> bool:
    """Whether a mesh is the grid of a height field of this size."""
    try:
        heights = shapes_module.Shape("height field", tuple(size.tolist()), mesh=mesh).heights
    except InputError:
        return False
    if min(heights.shape) < 2 or (size <= 0).any():
        return False
    grid = shapes_module.height_field_mesh(heights, *size[:2].tolist())
    return np.array_equal(grid.vertices, mesh.vertices) and np.array_equal(grid.faces, mesh.faces)


def frames_meet(m: Mechanism) -> None:
    """Refuse a joint whose two frames do not meet at the reference pose."""
    size = np.maximum(m.radius, 1e-12)
    distance, angle = np.empty((2, m.joint_count))
    for part in slices(m.joint_count):
        gap = joint_gaps(m, part)
        distance[part] = np.sqrt((gap[:, :3, 3] ** 2).sum(axis=1))
        # 1 - cos loses half the digits: the antisymmetric part gives sin(angle), the trace tells a half turn.
        sine = np.sqrt(((gap[:, [2, 0, 1], [1, 2, 0]] - gap[:, [1, 2, 0], [2, 0, 1]]) ** 2).sum(axis=1)) / 2
        angle[part] = np.arctan2(sine, (np.trace(gap[:, :3, :3], axis1=1, axis2=2) - 1) / 2)
    bad = (distance > MEET_TOLERANCE * size) | (angle > MEET_TOLERANCE)
    if bad.any():
        j = int(np.flatnonzero(bad)[0])
        parent = m.joint_parents[j]
        raise MechanismError(
            f"joint '{m.joint_names[j]}': its frames on '{m.body_names[parent] if parent >= 0 else 'world'}' and "
            f"'{m.body_names[m.joint_children[j]]}' are {distance[j]:.3g} m and {angle[j]:.3g} rad apart at the "
            "reference pose; move a body or the joint, or assemble the loop with pliant.assemble"
        )


def joint_gaps(m: Mechanism, part: slice | None = None) -> NDArray[np.float64]:
    """Joint frame on the child relative to the parent's, moved by the joint, at the reference, (joints, 4, 4).

    `part`: the joints; all by default.
    """
    begin, end, _ = (part or slice(None)).indices(m.joint_count)
    parents, first = m.joint_parents[begin:end], m._joint_primitive[begin : end + 1]
    own = slice(first[0], first[-1])
    put = m.reference_poses[parents]
    put[parents < 0] = np.eye(4)
    put = put @ m.parent_frames[begin:end]
    transforms = joints.primitive_transforms(
        m.primitive_kind[own],
        m.primitive_axis[own],
        m.primitive_anchor[own],
        m.reference,
        m.primitive_coordinate[:-1][own],
    )
    count = np.diff(first)
    for slot in range(int(count.max(initial=0))):
        has = np.flatnonzero(count > slot)
        put[has] = put[has] @ transforms[first[has] - first[0] + slot]
    return (
        spatial.se3_inverse(put) @ m.reference_poses[m.joint_children[begin:end]] @ m.child_frames[begin:end]
    )
