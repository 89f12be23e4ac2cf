"""Projection onto the end effectors: motion of every joint under unit wrenches on them.

With H the static tangent, A the rows of loops and couplings, and P the inverse of H on the motions that A allows
(zero on all others), a reduced model needs only `joint_map = P J_e^T` of a mechanism:

    C   = J_e P J_e^T      compliance of the end effectors, any topology, any number of loops
    T_i = J_i P J_e^T      end-effector wrenches -> twist of link i

One elimination of the tree and one solve per column: linear in the links of a tree (TVCG sections 4 and 5 proceed
link by link; see `recursive`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.reduced.recursive import recursive_projection
from pliant.errors import InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.statics import Configuration, tree_kernels
from pliant.statics.loads import Load, Loads, collect_loads, tendon_lengths
from pliant.statics.tangent import Tangent, static_response

if TYPE_CHECKING:
    from pliant.engines.reduced.model import ReducedModel

__all__ = ["Projection", "held_loads", "manipulability", "project", "project_recursively", "wrench_maps"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Projection:
    """Response of a mechanism to end-effector wrenches, to first order about one configuration.

    Attributes:
        q: joint coordinates of the configuration.
        rows: Jacobian of the end effectors, body frames, (6e, nv).
        joint_map: joint motions per end-effector wrenches, (nv, 6e).
        multipliers: constraint forces of loops and couplings per end-effector wrenches, (rows, 6e).
        compliance: (6e, 6e).
        wrench: b, wrenches on the end effectors at the configuration, body frames, (6e,).
        load_stiffness: change of the world-fixed part of `wrench` in the axes of the turning bodies, per twist,
            (6e, 6e).
        solve: P as a function: joint motions under generalised forces, both in rows.
    """

    q: Floats
    rows: Floats
    joint_map: Floats
    multipliers: Floats
    compliance: Floats
    wrench: Floats
    load_stiffness: Floats
    solve: Callable[[Floats], Floats]


def project(m: Mechanism, bodies: Sequence[str], at: Configuration | None) -> Projection:
    """Exact projection, at rest or at a loaded equilibrium."""
    c = Configuration(m) if at is None else at
    loads, wrench, load_stiffness = _loads(m, bodies, c)
    rows = np.concatenate([c.jacobian(body) for body in bodies])
    tangent = Tangent(m, c.q, loads, c.multipliers)
    motion, multipliers = static_response(tangent, rows)
    return Projection(
        q=c.q,
        rows=rows,
        joint_map=np.ascontiguousarray(motion.T),
        multipliers=np.ascontiguousarray(multipliers.T),
        compliance=rows @ motion.T,
        wrench=wrench,
        load_stiffness=load_stiffness,
        solve=lambda force: tangent.respond(force)[0],
    )


def project_recursively(
    m: Mechanism, bodies: Sequence[str], at: Configuration | None, tolerance: float | None
) -> Projection:
    """Projection by TVCG's chaining, splitting and merging; refused where that is not exact."""
    if at is not None and at.residual is not None:
        raise InputError('projection="recursive" knows no loads: use projection="exact" at an equilibrium')
    c = Configuration(m) if at is None else at
    with np.errstate(divide="ignore"):
        given = 1 / m.stiffness
    found = recursive_projection(m, c.link_poses, given, [m.body_index(body) for body in bodies], tolerance)
    closing = m.solved_tree.chords
    turn = c.poses[m.joint_children[closing], :3, :3]  # constraint forces of loops: world axes, on the child
    forces = turn[:, None] @ found.joint_wrenches[closing].reshape(-1, 2, 3, 6 * len(bodies))
    tangent = Tangent(m, c.q, held_loads(m, c.q))
    return Projection(
        q=c.q,
        rows=np.concatenate([c.jacobian(body) for body in bodies]),
        joint_map=found.joint_map,
        multipliers=-forces.reshape(-1, 6 * len(bodies)),
        compliance=found.compliance,
        wrench=np.zeros(6 * len(bodies)),
        load_stiffness=np.zeros((6 * len(bodies), 6 * len(bodies))),
        solve=lambda force: tangent.respond(force)[0],
    )


def held_loads(m: Mechanism, q: Floats) -> Loads:
    """No loads, and springs with their rest lengths at `q`, as for a mechanism at its reference pose."""
    return replace(collect_loads(m, None, None), rest=q, tendon_rest=tendon_lengths(m, q, q))


def manipulability(m: Mechanism, bodies: Sequence[str], q: Floats) -> Floats:
    """Compliance of bodies with unit stiffness in joints and none in tendons; see `ReducedModel.manipulability`."""
    alike = m.replace(stiffness=1 / m.dof_unit**2, tendon_stiffness=np.zeros(len(m.tendons)))
    c = Configuration(m, q)
    rows = np.concatenate([c.jacobian(body) for body in bodies])
    motion, _ = Tangent(alike, c.q, held_loads(alike, c.q)).respond(rows)
    found = rows @ motion.T
    return (found + found.T) / 2


def _loads(m: Mechanism, bodies: Sequence[str], c: Configuration) -> tuple[Loads, Floats, Floats]:
    """Loads with those on end effectors made follower loads; the latter's wrenches, and their `load_stiffness`.

    A reduced model states wrenches in the axes of the moving end effectors, so the projection holds them constant
    there. In those axes a force fixed in the world changes by `load_stiffness @ twist`.
    """
    wrench, change = np.zeros(6 * len(bodies)), np.zeros((6 * len(bodies), 6 * len(bodies)))
    if c.residual is None:
        return held_loads(m, c.q), wrench, change
    given: dict[str, Any] = dict(c.wrenches)
    for e, body in enumerate(bodies):
        if body not in given:
            continue
        force, torque, point, frame = Load.parse(given[body], body)
        if frame == "world":
            rotation = c.pose(body)[:3, :3].T
            force, torque = rotation @ force, rotation @ torque
            block = change[6 * e : 6 * e + 6, 6 * e + 3 : 6 * e + 6]
            block[:3] = spatial.hat(force)
            block[3:] = spatial.hat(torque) + spatial.hat(point) @ spatial.hat(force)
        wrench[6 * e : 6 * e + 6] = np.concatenate([force, torque + np.cross(point, force)])
        given[body] = {"force": force, "torque": torque, "point": point, "frame": "body"}
    return collect_loads(m, given, c.gravity, c.limits), wrench, change


def wrench_maps(model: ReducedModel) -> Floats:
    """Wrench that every body passes on to its parents, per end-effector wrenches, body frames, (bodies, 6, 6e).

    TVCG section 5: the wrench on the body itself plus those of its children. The constraint force of a loop acts on the
    body where the loop is closed and, reversed, on the joint that closes it; the part that the second parent of that
    body takes is left out.
    """
    m, links = model.mechanism, model.mechanism.links
    local, poses = kinematics.link_transforms(m, model.q)
    loops, size = m.topology.loops, len(model.compliance)
    maps = np.zeros((m.body_count, 6, size))
    ends = [int(links.body_link[m.body_index(body)]) for body in model.end_effectors]
    unused = np.zeros(m.nv)
    for column in range(size):
        wrench = np.zeros((len(links), 6))
        wrench[ends[column // 6], column % 6] = 1.0
        force = model.multipliers[: 6 * loops, column].reshape(-1, 6)
        direct = np.zeros_like(wrench)
        for signed, at in ((-force, links.loop_copy), (force, links.loop_body)):
            turned = np.einsum("nji,nbj->nbi", poses[at, :3, :3], signed.reshape(-1, 2, 3)).reshape(-1, 6)
            np.add.at(wrench, at, turned)
            if at is links.loop_body:
                np.add.at(direct, at, turned)
        tree_kernels.accumulate(links.arrays, local, wrench, unused)
        maps[:, :, column] = (wrench - direct)[links.body_link]
    return maps
