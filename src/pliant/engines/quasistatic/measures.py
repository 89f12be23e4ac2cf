"""Measures of the error of accelerations, and weights of dofs in them: radians and metres do not add up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pliant import spatial
from pliant.checks import numbers
from pliant.chunks import slices
from pliant.engines.quasistatic.arrays import (
    ABSOLUTE_JOINT,
    ABSOLUTE_LINKAGE,
    ENERGY_NORM,
    RELATIVE_JOINT,
    RELATIVE_LINKAGE,
    WORLD,
    Floats,
    Ints,
)
from pliant.engines.quasistatic.packing import Model, inverse_inertias
from pliant.errors import InputError
from pliant.mechanism import Mechanism, edit
from pliant.mechanism.joints import SLIDE
from pliant.text import brief

__all__ = ["INACTIVE", "MEASURES", "WEIGHTS", "dof_weights", "reach"]

MEASURES = {
    "relative-joint": RELATIVE_JOINT,
    "relative-linkage": RELATIVE_LINKAGE,
    "absolute-joint": ABSOLUTE_JOINT,
    "absolute-linkage": ABSOLUTE_LINKAGE,
    "world": WORLD,
    "energy": ENERGY_NORM,
}
WEIGHTS = ("radians", "lever", "plain")
INACTIVE = ("rigid", "zero")  # what joints that are not computed are to the others


def dof_weights(m: Mechanism, given: str | Mapping[str, ArrayLike] | ArrayLike) -> Floats:
    """Weight of every dof.

    Args:
        m: the mechanism.
        given: "radians", 1 for rotations and one over the mechanism's radius for slides; "lever", 1 for slides and
            the distance to the farthest body moved, at the reference pose, for rotations; "plain", 1 for all as in
            RL05; or weights per dof, or `{joint or dof: weight}` on top of "radians".
    """
    out = 1 / m.dof_unit
    if isinstance(given, str):
        if given == "radians":
            return out
        if given == "lever":
            return np.where(m.dof_kind == SLIDE, 1.0, lever_arms(m)[m.dof_joint])
        if given == "plain":
            return np.ones(m.nv)
        known = ", ".join(f"'{name}'" for name in WEIGHTS)
        raise InputError(f"weights: {known}, an array or a mapping expected, not {brief(given)}")
    if isinstance(given, Mapping):
        for name, value in given.items():
            dofs = edit.matching_dofs(m, name)
            out[dofs] = numbers(value, f"weight of '{name}'")
    else:
        out = numbers(given, "weights").copy()
        if out.shape != (m.nv,):
            raise InputError(f"weights: {m.nv} numbers expected, one per dof, got shape {out.shape}")
    if not (np.isfinite(out).all() and (out > 0).all()):
        raise InputError("weights: finite numbers above 0 expected")
    return out


def reach(m: Mechanism, md: Model, bodies: Ints | None) -> tuple[Floats, Floats]:
    """Extent and mobility of every group, of its bodies' origins and centres of mass.

    The extent is their largest distance from the group's frame, minus infinity without any; the mobility the largest
    square of the acceleration of one per energy `f . a` of a wrench f on the group, 1/kg.

    Args:
        m, md: the mechanism and its arrays.
        bodies: which count; None for all.
    """
    extent, mobility = np.full(len(md.groups), -np.inf), np.zeros(len(md.groups))
    chosen = np.flatnonzero(md.group >= 0) if bodies is None else bodies[md.group[bodies] >= 0]
    whole = np.ones(len(md.groups), dtype=np.int32)
    for part in slices(len(chosen)):
        body = chosen[part]
        group, local = md.group[body], md.local[body]
        inverse = inverse_inertias(md.inertia, group.astype(np.int64), whole)
        for point in (np.zeros((len(body), 3)), m.com[body]):
            place = np.einsum("nij,nj->ni", local[:, :, :3], point) + local[:, :, 3]
            motion = np.concatenate(
                [np.broadcast_to(np.eye(3), (len(body), 3, 3)), -spatial.hat(place)], axis=2
            )
            square = motion @ inverse @ motion.transpose(0, 2, 1)
            np.maximum.at(extent, group, np.sqrt((place**2).sum(axis=1)))
            np.maximum.at(mobility, group, np.linalg.eigvalsh(square)[:, -1])
    return extent, mobility


def lever_arms(m: Mechanism) -> Floats:
    """Per joint, a bound on the distance to the centres of mass that it moves, m, at the reference pose.

    From spheres around the subtree of every body, from the tips to the root.
    """
    poses = m.reference_poses
    centre = np.einsum("nij,nj->ni", poses[:, :3, :3], m.com) + poses[:, :3, 3]
    radius = np.sqrt(((centre - poses[:, :3, 3]) ** 2).sum(axis=1))
    arms = np.zeros(m.joint_count)
    anchors = (poses[m.joint_children] @ m.child_frames)[:, :3, 3]
    for joint in m.topology.tree[::-1].tolist():
        child, parent = int(m.joint_children[joint]), int(m.joint_parents[joint])
        arms[joint] = np.sqrt(((anchors[joint] - centre[child]) ** 2).sum()) + radius[child]
        if parent >= 0:
            centre[parent], radius[parent] = _enclosing_sphere(
                centre[parent], radius[parent], centre[child], radius[child]
            )
    return np.maximum(arms, 1e-9 * m.radius)


def _enclosing_sphere(a: Floats, r: float, b: Floats, s: float) -> tuple[Floats, float]:
    """Smallest sphere around two spheres."""
    gap = float(np.sqrt(((b - a) ** 2).sum()))
    if gap + s <= r:
        return a, r
    if gap + r <= s:
        return b, s
    size = 0.5 * (gap + r + s)
    return a + (b - a) * ((size - r) / gap), size
