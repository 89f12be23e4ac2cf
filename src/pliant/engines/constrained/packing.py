"""A mechanism as the flat arrays that the kernels of the midpoint step walk over.

Each link gets a *joint frame*: its origin on the joint, its z axis along a hinge or slide, its axes those of a ball's
coordinates. Then a joint moves selected coordinates only, and the pose of a link is that of its parent, a constant and
`Rz(q)`, a shift along z, or a quaternion.

A loop is cut at a body: the loop-closing joint carries a copy of its child, which must coincide with it. The body's
mass is shared out equally between it and its copies: the motion is the same, and no joint is left without inertia.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.constrained import _joint_kernels as joints
from pliant.engines.constrained import _kernels as kernels
from pliant.engines.constrained import _solver_kernels as solver
from pliant.engines.constrained import _step_kernels as stepping
from pliant.engines.constrained._arrays import Model, Scratch, State
from pliant.errors import InputError, MechanismError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL, SLIDE
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE

__all__ = ["Packed", "pack"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(eq=False)
class Packed:
    """Arrays of a mechanism for the midpoint step.

    Attributes:
        model, state, scratch: what a step takes; see `_arrays`.
        frames: joint frame in the frame of its link, (links, 4, 4).
        share: of its body's mass, per link.
        bodies: the body of a link, or of the copy it is, -1 for none.
    """

    model: Model
    state: State
    scratch: Scratch
    frames: Floats
    share: Floats
    bodies: Ints


def pack(m: Mechanism, gravity: Floats) -> Packed:
    """Flatten a mechanism; refuse what cannot move by Newton's laws."""
    frames = _frames(m)
    bodies = m.links.body.copy()
    bodies[m.links.loop_copy] = m.links.body[m.links.loop_body]
    share = np.where(bodies >= 0, 1.0 / np.maximum(np.bincount(bodies + 1)[bodies + 1], 1), 0.0)
    constants = _constants(m, frames, bodies, share)
    dofs = _dofs(m)
    links = np.zeros((len(m.links), kernels.LINK_COLUMNS), dtype=np.int64)
    links[:, :4] = np.stack([m.links.parent, m.links.kind, m.links.dof, m.links.coordinate], axis=1)
    acting = (m.stiffness > 0) | (m.damping > 0) | (m.armature > 0) | np.isfinite(m.upper)
    for k in np.flatnonzero(m.links.kind == LINK_BALL):
        d = m.links.dof[k]
        links[k, kernels.SPRUNG] = acting[d : d + 3].any()
    for k, (parent, kind) in enumerate(zip(m.links.parent.tolist(), m.links.kind.tolist(), strict=True)):
        turns = kind in (LINK_BALL, LINK_HINGE)
        links[k, kernels.TURNING] = k if turns else links[parent, kernels.TURNING] if parent >= 0 else -1
    tendons, rows, offsets = _rows(m)
    n, nv, count = len(links), m.nv, len(rows)
    info = np.zeros(stepping.INFO)
    info[stepping.UNIT] = m.radius
    work = np.zeros((n, kernels.WORK_COLUMNS))
    q = m.reference.copy()
    bare = np.zeros_like(dofs)
    bare[:, kernels.ARMATURE] = bare[:, kernels.GIVEN] = m.armature
    bare[:, kernels.UNIT] = 1.0
    bare[:, kernels.LOWER], bare[:, kernels.UPPER] = -np.inf, np.inf
    model = Model(
        links,
        constants,
        dofs,
        m.rest.copy(),
        gravity.copy(),
        np.zeros((0, 16)),
        _loops(m, frames),
        offsets,
        tendons,
        m.dof_coordinate.copy(),
        bare,
    )
    state = State(q, np.zeros(nv), np.zeros(nv), np.zeros((n, 6)), np.zeros(count), np.zeros(nv), np.zeros(3))
    scratch = Scratch(
        work,
        np.zeros((n, 30)),
        np.zeros((n, 6)),
        np.zeros((n, 6)),
        np.zeros(nv),
        np.zeros(nv),
        rows,
        np.zeros((count, nv)),
        np.zeros((count, count)),
        np.zeros(count),
        np.zeros(count),
        np.zeros((2, count)),
        np.zeros(count, dtype=np.int64),
        np.zeros((4, 3)),
        np.zeros((2 * stepping.DEPTH + 2, nv)),
        np.zeros((stepping.DEPTH + 1, stepping.DEPTH)),
        info,
    )
    packed = Packed(model, state, scratch, frames, share, bodies)
    _feel(m, packed)
    return packed


def _frames(m: Mechanism) -> Floats:
    links = m.links
    frames = np.broadcast_to(np.eye(4), (len(links), 4, 4)).copy()
    frames[:, :3, 3] = links.anchor
    for k in np.flatnonzero(links.kind != LINK_FIXED).tolist():
        d = links.dof[k]
        if links.kind[k] == LINK_BALL:
            frames[k, :3, :3] = links.screw[d : d + 3, 3:].T
        else:
            axis = links.screw[d, 3:] if links.kind[k] == LINK_HINGE else links.screw[d, :3]
            side = np.cross(np.eye(3)[np.argmin(np.abs(axis))], axis)
            side /= np.linalg.norm(side)
            frames[k, :3, :3] = np.stack([side, np.cross(axis, side), axis], axis=1)
    return frames


def _constants(m: Mechanism, frames: Floats, bodies: Ints, share: Floats) -> Floats:
    inverse = spatial.se3_inverse(frames)
    out = np.zeros((len(frames), kernels.CONSTANTS))
    local = m.links.offset @ frames
    inner = m.links.parent >= 0
    local[inner] = inverse[m.links.parent[inner]] @ local[inner]
    out[:, kernels.TURN : kernels.TURN + 9] = local[:, :3, :3].reshape(-1, 9)
    out[:, kernels.SHIFT : kernels.SHIFT + 3] = local[:, :3, 3]
    out[:, kernels.AXES : kernels.AXES + 9] = np.eye(3).ravel()
    has = np.flatnonzero(bodies >= 0)
    body, turn = bodies[has], inverse[has, :3, :3]
    out[has, kernels.MASS] = share[has] * m.mass[body]
    out[has, kernels.COM : kernels.COM + 3] = np.einsum("nij,nj->ni", turn, m.com[body]) + inverse[has, :3, 3]
    moments, axes = np.linalg.eigh(turn @ m.inertia[body] @ turn.transpose(0, 2, 1))
    out[has, kernels.AXES : kernels.AXES + 9] = axes.reshape(-1, 9)
    out[has, kernels.MOMENT : kernels.MOMENT + 3] = share[has, None] * np.maximum(moments, 0.0)
    return out


def _dofs(m: Mechanism) -> Floats:
    out = np.zeros((m.nv, kernels.DOF_COLUMNS))
    out[:, kernels.STIFFNESS] = m.stiffness
    out[:, kernels.DAMPING] = m.damping
    ball = m.dof_kind == BALL
    out[~ball, kernels.PULL] = (m.stiffness * m.rest[m.dof_coordinate])[~ball]
    out[:, kernels.ARMATURE] = m.armature
    out[:, kernels.LOWER], out[:, kernels.UPPER] = m.lower, m.upper
    out[:, kernels.UNIT] = np.where(m.dof_kind == SLIDE, 1 / m.radius, 1.0)
    return out


def _rows(m: Mechanism) -> tuple[Floats, Floats, Floats]:
    """Tendons that do something, all bordering rows, and the offsets of those that are no loops."""
    for rows, names, what in (
        (m.couplings, m.coupling_names, "coupling"),
        (m.tendons, m.tendon_names, "tendon"),
    ):
        for r, name in enumerate(names):
            if (m.dof_kind[rows.row(r)[0]] == BALL).any():
                raise InputError(
                    f"{what} '{name}' acts on a ball joint: ConstrainedSimulation knows those of hinges and slides only"
                )
    acting = (m.tendon_stiffness > 0) | (m.tendon_damping > 0)
    tendons = np.zeros((int(acting.sum()), kernels.DOF_COLUMNS))
    tendons[:, kernels.STIFFNESS] = m.tendon_stiffness[acting]
    tendons[:, kernels.DAMPING] = m.tendon_damping[acting]
    rows = np.concatenate(
        [np.zeros((6 * m.topology.loops, m.nv)), m.couplings.dense(m.nv), m.tendons.dense(m.nv)[acting]]
    )
    return tendons, rows, np.concatenate([m.coupling_offset, m.tendon_rest[acting]])


def _loops(m: Mechanism, frames: Floats) -> Floats:
    """Per loop: link of the copy and of the body, meeting point in the body's joint frame, rotation between frames."""
    out = np.zeros((m.topology.loops, 14))
    for n, (copy, body) in enumerate(zip(m.links.loop_copy, m.links.loop_body, strict=True)):
        between = spatial.se3_inverse(frames[body]) @ frames[copy]
        out[n, :2] = copy, body
        out[n, 2:5] = between[:3, 3]
        out[n, 5:] = between[:3, :3].T.ravel()
    return out


def _feel(m: Mechanism, packed: Packed) -> None:
    """Fill in the inertia every dof and tendon feels at the reference pose, all other joints free."""
    model, state, scratch = packed.model, packed.state, packed.scratch
    links, constants, dofs, tendons, work = (
        model.links,
        model.constants,
        model.dofs,
        model.tendons,
        scratch.work,
    )
    kernels.forward(links, constants, state.q, state.u, 0.0, work)
    kernels.momenta(0, len(links), constants, work, scratch.at_middle)
    joints.springs(0, len(links), links, model.bare, model.rest, state.q, state.u, state.v, 1.0, work)
    solver.residual(
        0, len(links), links, constants, state.momentum, scratch.impulse, scratch.at_middle, 0.0, work
    )
    k = solver.factor(links, 0.0, work)
    if k >= 0:
        joint = m.links.joint[k]
        raise MechanismError(
            f"nothing with mass follows joint '{m.joint_names[joint]}': give body "
            f"'{m.body_names[m.joint_children[joint]]}' or one it carries mass and inertia, or the joint armature"
        )
    for k in np.flatnonzero(links[:, kernels.KIND] != LINK_FIXED).tolist():
        d = links[k, kernels.DOF]
        if links[k, kernels.KIND] == LINK_BALL:
            turn = work[k, :9].reshape(3, 3)
            block = np.array([solver.ball(work, k, *unit) for unit in np.eye(3)])
            dofs[d : d + 3, kernels.FELT] = 1 / np.diag(turn.T @ block @ turn)
        else:
            dofs[d, kernels.FELT] = 1 / work[k, kernels.FACTOR]
    for n in range(len(tendons)):
        row = scratch.rows[len(scratch.rows) - len(tendons) + n]
        solver.load(links, row, work)
        solver.solve(links, work, scratch.du)
        tendons[n, kernels.FELT] = 1.0 / max(-float(row @ scratch.du), 1e-300)
