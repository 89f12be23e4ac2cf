"""Columns of values for many bodies or joints at once: checked and broadcast; messages name the first bad entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.errors import MechanismError, UnknownNameError
from pliant.mechanism._build import (
    BodyColumns,
    JointTable,
    ShapeColumns,
    column,
    pose_column,
    slack_springs,
    solid,
)
from pliant.mechanism.joints import NDOF, NQ
from pliant.mechanism.mechanism import Floats, Ints
from pliant.mechanism.validate import HUGE, UNIT_TOLERANCE
from pliant.text import brief

__all__ = ["body_columns", "body_numbers", "entry_names", "joint_columns", "shape_columns"]


def entry_names(names: Any, count: int | None, what: str, hint: str) -> list[str]:
    """A name for every body or joint: those given, or a prefix and the numbers from 1 to `count`."""
    if isinstance(names, str):
        if count is None:
            raise MechanismError(f"{what} '{names}1', ...: give {hint}, or a list of names")
        return [f"{names}{i}" for i in range(1, count + 1)]
    out: Any = names.tolist() if isinstance(names, np.ndarray) else names
    if not isinstance(out, Sequence):
        raise MechanismError(f"names of {what}: a list of strings, or one for a prefix, not {brief(names)}")
    out = list(out)
    if set(map(type, out)) - {str}:
        wrong = next((name for name in out if not isinstance(name, str)), None)
        if wrong is not None:
            raise MechanismError(f"a name of {what} must be a string, not {brief(wrong)}")
    return out


def body_numbers(given: Any, names: Sequence[str], known: Mapping[str, int], role: str) -> Ints:
    """Numbers of the bodies of joints, (n,): from one or n names or numbers; the world is "world" or -1.

    Args:
        given: as the user gave them.
        names: of the joints.
        known: numbers of all bodies.
        role: "parent" or "child", for messages.
    """
    n, least = len(names), -1 if role == "parent" else 0
    if isinstance(given, str):
        given = [given] * n
    if isinstance(given, Sequence) and not set(map(type, given)) - {str}:
        if len(given) != n:
            raise MechanismError(f"joint '{names[0]}' ...: {n} {role} bodies expected, got {len(given)}")
        found = [-1 if body == "world" else known.get(body, -2) for body in given]
        if -2 in found:
            j = found.index(-2)
            raise UnknownNameError(
                f"joint '{names[j]}': no body '{given[j]}'; add the body before its joints"
            )
        out = np.array(found, dtype=np.int64)
    else:
        out = _unchecked(given)
        if out.dtype.kind not in "iu" or out.shape not in ((), (n,)):
            raise MechanismError(
                f"joint '{names[0]}' ...: {role} bodies are names or whole numbers, one or {n}, not {brief(given)}"
            )
        out = np.broadcast_to(out, (n,)).astype(np.int64)
    if role == "child" and (out == -1).any():
        j = int(np.argmax(out == -1))
        raise MechanismError(
            f"joint '{names[j]}': the world can only be a joint's parent; swap parent and child"
        )
    bad = (out < least) | (out >= len(known))
    if bad.any():
        j = int(np.argmax(bad))
        raise UnknownNameError(f"joint '{names[j]}': no body number {out[j]}; add the body before its joints")
    return out


def body_columns(
    names: Sequence[str],
    mass: Any,
    com: Any,
    inertia: Any,
    position: Any,
    orientation: Any,
    density: float,
    looks: Sequence[Sequence[shapes_module.Shape]],
    look: Ints,
    scale: Floats | None,
) -> BodyColumns:
    """Columns of bodies; masses and inertias that are not given come from the shapes."""
    n = len(names)
    masses = None if mass is None else _rows(mass, (), "mass", names)
    centres = None if com is None else _rows(com, (3,), "com", names)
    inertias = None if inertia is None else _inertias(inertia, names)
    if masses is None or inertias is None:
        volume, centre, second = _solids(names, looks, look, "mass" if masses is None else "inertia")
        factor = np.ones(n) if scale is None else scale
        if masses is None:
            masses = density * volume[look] * factor**3
        if inertias is None:
            inertias = masses[:, None, None] * second[look] / volume[look, None, None]
            inertias *= (factor**2)[:, None, None]
        if centres is None:
            centres = centre[look] * factor[:, None]
    return BodyColumns(
        masses,
        np.zeros((n, 3)) if centres is None else centres,
        inertias,
        pose_column(
            _rows(position, (3,), "position", names),
            np.broadcast_to(np.eye(3), (n, 3, 3))
            if orientation is None
            else _rotations(orientation, names, "body"),
        ),
    )


def _solids(
    names: Sequence[str], looks: Sequence[Sequence[shapes_module.Shape]], look: Ints, missing: str
) -> tuple[Floats, Floats, Floats]:
    """Volume, centroid and second moment of every look that a body has."""
    volume, centre, second = np.ones(len(looks)), np.zeros((len(looks), 3)), np.zeros((len(looks), 3, 3))
    used, first = np.unique(look, return_index=True)
    for one, body in zip(used, first, strict=True):
        volume[one], centre[one], second[one] = solid(names[int(body)], looks[int(one)], missing)
    return volume, centre, second


def shape_columns(
    names: Sequence[str], first: int, shapes: Any, look: Any, scale: Any
) -> tuple[list[tuple[shapes_module.Shape, ...]], Ints, Floats | None, ShapeColumns]:
    """Looks of bodies, the look of each (n,), their scale (n,), and the rows of their shapes.

    Args:
        names: of the bodies.
        first: number of the first body.
        shapes: those of every body; with `look`, a list of lists.
        look: per body, its list.
        scale: of the shapes, one or per body.
    """
    n = len(names)
    what = f"body '{names[0]}' ..."
    if not isinstance(shapes, Sequence):
        raise MechanismError(f"{what}: shapes is a list of shapes, not {brief(shapes)}")
    looks = [
        tuple(one) if isinstance(one, Sequence) else one for one in ([shapes] if look is None else shapes)
    ]
    for one in looks:
        if not isinstance(one, tuple):
            raise MechanismError(
                f"{what}: with `look`, shapes is a list of lists of shapes; {brief(one)} is no list"
            )
        for shape in one:
            if not isinstance(shape, shapes_module.Shape):
                raise MechanismError(f"{what}: {brief(shape)} is not a shape; make one with pliant.shapes")
    chosen = np.zeros(n, dtype=np.int64)
    if look is not None:
        given = _unchecked(look)
        if given.dtype.kind not in "iu" or given.shape != (n,):
            raise MechanismError(f"{what}: look is {n} whole numbers, one per body, not {brief(look)}")
        bad = (given < 0) | (given >= len(looks))
        if bad.any():
            b = int(np.argmax(bad))
            raise MechanismError(
                f"body '{names[b]}': look {given[b]} is not one of the {len(looks)} lists of shapes"
            )
        chosen[:] = given
    factor = None if scale is None else _rows(scale, (), "scale", names)
    if factor is not None:
        if not (factor > 0).all():
            raise MechanismError(f"body '{names[int(np.argmax(~(factor > 0)))]}': scale must be positive")
        if any(shape.mesh is not None for one in looks for shape in one):
            raise MechanismError(
                f"{what}: meshes and height fields cannot be scaled; make one for every size"
            )
    length = np.array([len(one) for one in looks])
    count = length[chosen]
    start = np.cumsum(count) - count  # of the rows of every body
    slot = np.arange(int(count.sum())) - np.repeat(start, count)
    rows = ShapeColumns(
        shapes=[shape for one in looks for shape in one],
        which=np.repeat((np.cumsum(length) - length)[chosen], count) + slot,
        body=np.repeat(first + np.arange(n), count),
        scale=None if factor is None else np.repeat(factor, count),
    )
    return looks, chosen, factor, rows


def joint_columns(
    names: list[str],
    kind: str,
    parents: Ints,
    children: Ints,
    anchor: Any,
    kinds: Sequence[int],
    axes: Any,
    spring: Mapping[str, Any],
    local: bool,
) -> JointTable:
    """Joints of one kind as a table.

    Args:
        names, parents, children: of the joints.
        kind: their type.
        anchor: points on them, (n, 3) or one; None for the children's origins.
        kinds: of the primitives that each is made of.
        axes: of these primitives: (primitives, 3) alike for all joints, or (n, 3) of the only one.
        spring, local: as in `JointSpec`.
    """
    n, k = len(names), len(kinds)
    primitive = np.tile(np.array(kinds, dtype=np.int64), n)
    if k == 1:
        axis = _rows(axes, (3,), "axis", names)
    else:
        axis = np.tile(np.asarray(axes, dtype=np.float64).reshape(-1, 3), (n, 1))
    dofs, coordinates = int(NDOF[list(kinds)].sum()), int(NQ[list(kinds)].sum())
    springs = slack_springs(primitive)
    for label in ("stiffness", "damping", "armature"):
        if spring.get(label) is not None:
            springs[label][:] = _per_dof(spring[label], dofs, label, names).ravel()
    if spring.get("limits") is not None:
        limits = _limits(spring["limits"], dofs, names)
        springs["lower"][:], springs["upper"][:] = limits[..., 0].ravel(), limits[..., 1].ravel()
    for label in ("reference", "rest"):
        if spring.get(label) is not None:
            springs[label][:] = _per_dof(
                spring[label], coordinates, label, names, dofs == coordinates
            ).ravel()
        elif label == "rest":
            springs["rest"][:] = springs["reference"]
    rotation = np.zeros((0, 3, 3))
    if spring.get("orientation") is not None:
        rotation = _rotations(spring["orientation"], names, "joint")
    everyone, nobody = np.arange(n), np.zeros(0, dtype=np.int64)
    return JointTable(
        names=names,
        types=[kind] * n,
        dof_names=names if dofs == 1 else [f"{name}.{i}" for name in names for i in range(dofs)],
        parents=parents,
        children=children,
        anchor=np.zeros((n, 3)) if anchor is None else _rows(anchor, (3,), "anchor", names),
        floating=np.full(n, anchor is None),
        count=np.full(n, k),
        kind=primitive,
        axis=axis,
        offset=np.zeros((n * k, 3)),
        turned=everyone if len(rotation) else nobody,
        rotation=rotation,
        local=np.full(n, local),
        placed=nobody,
        frames=np.zeros((0, 2, 4, 4)),
        springs=springs,
        moved=everyone if spring.get("reference") is not None else nobody,
    )


# --- values


def _unchecked(value: Any) -> NDArray[Any]:
    """The value as an array of whatever kind; an empty one if it makes none."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return np.zeros(0)


def _array(value: Any, names: Sequence[str], label: str) -> Floats | None:
    """The value as an array; None if a list of n values is ragged or holds something else than numbers."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(names):
            raise MechanismError(f"'{names[0]}' ...: {label}: numbers expected, not {brief(value)}") from None
        return None


def _rows(value: Any, shape: tuple[int, ...], label: str, names: Sequence[str]) -> Floats:
    """One value of this shape for every name, as a new array (n, *shape), from one for all or n of them."""
    n, given = len(names), _array(value, names, label)
    if given is not None and given.shape == shape:
        if not (np.abs(given) < HUGE).all():
            raise MechanismError(f"'{names[0]}' ...: {label} is not finite")
        return np.broadcast_to(given, (n, *shape)).copy()
    if given is not None and (given.ndim != 1 + len(shape) or len(given) != n):
        one = f"shape {shape}" if shape else "one number"
        raise MechanismError(
            f"'{names[0]}' ...: {label} needs {one} for all, or shape {(n, *shape)}, got {given.shape}"
        )
    return column(value if given is None else given, shape, label, names)


def _per_dof(value: Any, width: int, label: str, names: Sequence[str], plain: bool = True) -> Floats:
    """`width` values for every joint, (n, width): from one number, n, (n, width) or (1, width).

    Args:
        value: as given.
        width: values of a joint.
        label: for messages.
        names: of the joints.
        plain: whether one number can stand for all of a joint.
    """
    n, given = len(names), _array(value, names, f"{label}")
    if given is None:
        given = column(value, (width,) if width > 1 else (), label, names)
    if plain and given.shape == (n,):
        given = given[:, None]
    if (plain and given.shape in ((), (n, 1))) or given.shape in ((1, width), (n, width)):
        return np.broadcast_to(given, (n, width))
    choices = f"one number, {n}, " if plain else ""
    raise MechanismError(
        f"'{names[0]}' ...: {label}: {choices}shape {(1, width)} or {(n, width)} expected, got {given.shape}"
    )


def _limits(value: Any, dofs: int, names: Sequence[str]) -> Floats:
    """Lower and upper limits of every dof, (n, dofs, 2)."""
    n, given = len(names), _array(value, names, "limits")
    if given is None:
        given = column(value, (2,), "limits", names)
    if given.shape == (n, 2):
        given = given[:, None]
    if given.shape not in ((2,), (n, 1, 2), (n, dofs, 2)):
        raise MechanismError(
            f"'{names[0]}' ...: limits are (lower, upper), {n} such pairs, or shape {(n, dofs, 2)}, not {given.shape}"
        )
    return np.broadcast_to(given, (n, dofs, 2))


def _inertias(value: Any, names: Sequence[str]) -> Floats:
    """Inertias (n, 3, 3): from three moments, (n, 3) of them, or matrices (n, 3, 3) or (1, 3, 3)."""
    n, given = len(names), _array(value, names, "inertia")
    if given is not None and given.shape in ((1, 3, 3), (n, 3, 3)):
        return _rows(given[0] if len(given) == 1 else given, (3, 3), "inertia", names)
    if given is not None and given.shape not in ((3,), (n, 3)):
        raise MechanismError(
            f"'{names[0]}' ...: inertia is three moments, {(n, 3)} of them, or matrices {(n, 3, 3)} or (1, 3, 3); "
            f"got shape {given.shape}"
        )
    moments = _rows(value if given is None else given, (3,), "inertia", names)
    out = np.zeros((n, 3, 3))
    out[:, range(3), range(3)] = moments
    return out


def _rotations(value: Any, names: Sequence[str], what: str) -> Floats:
    """Rotations (n, 3, 3): from quaternions (w, x, y, z) or matrices, one or n."""
    n, given = len(names), _array(value, names, "orientation")
    if given is None or given.shape not in ((4,), (n, 4), (3, 3), (n, 3, 3)):
        raise MechanismError(
            f"{what} '{names[0]}' ...: orientations are quaternions (w, x, y, z) or 3 x 3 matrices, one or {n}"
        )
    if given.shape[-1] == 3:
        return _rows(given, (3, 3), "orientation", names)
    quaternions = _rows(given, (4,), "orientation", names)
    length = np.sqrt((quaternions**2).sum(axis=1))
    bad = ~(np.abs(length - 1) < UNIT_TOLERANCE)
    if bad.any():
        i = int(np.argmax(bad))
        raise MechanismError(
            f"{what} '{names[i]}': the quaternion {quaternions[i].tolist()} is not of unit length"
        )
    return spatial.quat_to_matrix(quaternions / length[:, None])
