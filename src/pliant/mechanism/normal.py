"""Every attribute of a mechanism in its type and shape, read-only, and rounded numbers made exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import MechanismError
from pliant.mechanism.joints import BALL, NDOF, NQ

if TYPE_CHECKING:
    from pliant.mechanism.model import Mechanism

__all__ = ["make_exact", "normalize"]


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
        if not isinstance(value, (tuple, list)) or not all(isinstance(name, str) for name in value):
            raise MechanismError(f"{label}: a tuple of strings expected")
        object.__setattr__(m, label, tuple(value))
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
        _settle(m, label, np.int64, shape, label)
    for label, shape in real.items():
        _settle(m, label, np.float64, shape, label)
    if np_ and not np.isin(m.primitive_kind, (0, 1, 2)).all():
        raise MechanismError("primitive_kind: 0 (hinge), 1 (slide) or 2 (ball) expected")
    nq = int(NQ[m.primitive_kind].sum())
    for label in ("rest", "reference"):
        _settle(m, label, np.float64, (nq,), label)
    if int(NDOF[m.primitive_kind].sum()) != nd:
        raise MechanismError(f"{nd} dof names for {int(NDOF[m.primitive_kind].sum())} degrees of freedom")
    if len(m.joint_types) != nj:
        raise MechanismError(f"{len(m.joint_types)} joint types for {nj} joints")
    for label, rows, count in (("couplings", m.couplings, nc), ("tendons", m.tendons, nt)):
        _settle(rows, "start", np.int64, (count + 1,), label)
        entries = len(rows.dof)
        _settle(rows, "dof", np.int64, (entries,), label)
        _settle(rows, "coefficient", np.float64, (entries,), label)
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
        _settle(table, label, dtype, shape, f"shapes: {label}")


def _settle(owner: Any, label: str, dtype: type, shape: tuple[int, ...], shown: str) -> None:
    value = getattr(owner, label)
    if not (
        isinstance(value, np.ndarray)
        and value.dtype == dtype
        and not value.flags.writeable
        and value.flags.c_contiguous
    ):
        try:
            value = np.array(value, dtype=dtype, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            raise MechanismError(f"{shown}: an array of numbers expected ({error})") from None
        _store(owner, label, value)
    if value.shape != shape:
        raise MechanismError(f"{shown}: shape {shape} expected, got {value.shape}")


def make_exact(m: Mechanism) -> None:
    """Axes, quaternions and rotations that passed but are rounded (six digits in a file) become exact to the
    last bit.

    What is exact already is left alone, so that saving and loading changes nothing.
    """
    for owner, label in (
        (m, "reference_poses"),
        (m, "parent_frames"),
        (m, "child_frames"),
        (m.shape_table, "pose"),
    ):
        poses = getattr(owner, label)
        rotation = poses[:, :3, :3]
        rounded = (
            np.abs(np.einsum("nij,nik->njk", rotation, rotation) - np.eye(3)).max(axis=(1, 2), initial=0)
            > 1e-14
        )
        if rounded.any():
            poses = poses.copy()
            u, _, vt = np.linalg.svd(rotation[rounded])
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
