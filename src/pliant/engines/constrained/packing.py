"""`pack`: a mechanism as the flat arrays of the midpoint step.

Links are placed by their joint frames (`Links.joint_frames`).

A loop is cut at a body: the loop-closing joint carries a copy of its child, which must coincide with it. The body's
mass is shared out equally between it and its copies: the motion is the same, and no joint is left without inertia.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.chunks import slices
from pliant.engines.constrained import _aba, _joints, _links, _packing
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained.arrays import Border, Model, Scratch, State
from pliant.errors import InputError, MechanismError
from pliant.mechanism import Mechanism
from pliant.mechanism.elimination_kernels import Matrix
from pliant.mechanism.joints import BALL

__all__ = ["Packed", "pack"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ROW, _COLUMN = np.triu_indices(3, 1)
_DIAGONAL = (
    1e-16  # products of inertia, as a fraction of the largest moment, of bodies whose axes are principal
)


@dataclass(eq=False)
class Packed:
    """Arrays of a mechanism for the midpoint step.

    Attributes:
        model, state, scratch: arguments of a step; see `arrays`.
        frames: joint frame in the frame of its link, (n, 4, 4).
    """

    model: Model
    state: State
    scratch: Scratch
    frames: Floats


def pack(m: Mechanism, gravity: Floats) -> Packed:
    """Arrays of a mechanism; refuses joints without inertia, and couplings or tendons of balls."""
    frames, local = m.links.joint_frames()
    bodies = m.links.body.copy()
    bodies[m.links.loop_copy] = m.links.body[m.links.loop_body]
    share = np.where(bodies >= 0, 1.0 / np.maximum(np.bincount(bodies + 1)[bodies + 1], 1), 0.0)
    constants = _constants(m, frames, local, bodies, share)
    dofs = _dofs(m)
    links = np.zeros((len(m.links), col.LINK_COLUMNS), dtype=np.int64)
    links[:, col.PARENT], links[:, col.KIND] = m.links.parent, m.links.kind
    links[:, col.DOF], links[:, col.COORDINATE] = m.links.dof, m.links.coordinate
    acting = (m.stiffness > 0) | (m.damping > 0) | (m.armature > 0) | np.isfinite(m.upper)
    _packing.mark_links(acting, links)
    tendons, soft = _tendons(m)
    plan = m.elimination
    fronts, motion = plan.allocate()
    n, nv, count, first = len(links), m.nv, len(plan.scale), 6 * m.topology.loops
    info = np.zeros(col.INFO)
    bare = np.zeros(dofs.shape)
    bare[:, col.ARMATURE] = bare[:, col.GIVEN] = m.armature
    bare[:, col.UNIT] = 1.0
    bare[:, col.LOWER], bare[:, col.UPPER] = -np.inf, np.inf
    model = Model(
        links=links,
        constants=constants,
        dofs=dofs,
        rest=m.rest.copy(),
        gravity=gravity.copy(),
        loads=np.zeros((0, col.LOAD_COLUMNS)),
        loops=_loops(m, frames),
        offsets=plan.scale[first:] * np.concatenate([m.coupling_offset, m.tendon_rest]),
        tendons=tendons,
        where=m.dof_coordinate.copy(),
        bare=bare,
    )
    state = State(
        q=m.reference.copy(),
        u=np.zeros(nv),
        v=np.zeros(nv),
        momentum=np.zeros((n, 6)),
        multipliers=np.zeros(count),
        earlier=np.zeros(nv),
        past=np.zeros(col.PAST),
        chosen=np.zeros(m.nq + count + 1),
    )
    scratch = Scratch(
        work=np.zeros((n, col.BORDERED_COLUMNS if count else col.WORK_COLUMNS)),
        ahead=np.zeros((n, col.KINEMATIC_COLUMNS)),
        at_middle=np.zeros((n, 6)),
        impulse=np.zeros((n, 6)),
        du=np.zeros(nv),
        backup=np.zeros(nv),
        wanted=np.zeros(count),
        change=np.zeros((3, count)),
        spare=np.zeros(count),
        force=np.zeros((2, nv)),
        border=Border(
            tree=plan.tree,
            fronts=fronts,
            matrix=Matrix(
                position=np.zeros((n, 3)),
                screw=np.zeros((nv, 6)),
                column=np.zeros((nv, 6)),
                row=np.zeros((nv, 6)),
                tangent=np.zeros((n, 6, 6)),
                stiffness=np.zeros((nv, 3)),
                give=np.zeros(count),
            ),
            motion=motion,
            scale=plan.scale,
            unit=m.dof_unit,
            soft=soft,
            none=np.zeros(count, dtype=np.int64),
        ),
        small=np.zeros((4, 3)),
        history=np.zeros((2 * col.DEPTH + 2, nv)),
        gram=np.zeros((col.DEPTH + 1, col.DEPTH)),
        info=info,
    )
    packed = Packed(model, state, scratch, frames)
    _effective_inertia(m, packed)
    return packed


def _constants(m: Mechanism, frames: Floats, local: Floats, bodies: Ints, share: Floats) -> Floats:
    """Table of link constants, C_ROTATION ... C_MOMENTS; a body cut at a loop has its share in every copy."""
    out = np.zeros((len(frames), col.CONSTANTS))
    out[:, col.C_ROTATION : col.C_ROTATION + 9] = local[:, :3, :3].reshape(-1, 9)
    out[:, col.C_SHIFT : col.C_SHIFT + 3] = local[:, :3, 3]
    out[:, col.C_AXES : col.C_AXES + 9] = np.eye(3).ravel()
    for part in slices(len(frames)):
        has = part.start + np.flatnonzero(bodies[part] >= 0)
        body, inverse = bodies[has], spatial.se3_inverse(frames[has])
        turn = inverse[:, :3, :3]
        out[has, col.C_MASS] = share[has] * m.mass[body]
        out[has, col.C_COM : col.C_COM + 3] = np.einsum("nij,nj->ni", turn, m.com[body]) + inverse[:, :3, 3]
        inertia = turn @ m.inertia[body] @ turn.transpose(0, 2, 1)
        moments = np.diagonal(inertia, axis1=1, axis2=2).copy()
        beside = np.abs(inertia[:, _ROW, _COLUMN]).max(axis=1, initial=0.0)
        turned = np.flatnonzero(beside > _DIAGONAL * moments.max(axis=1, initial=0.0))
        moments[turned], axes = np.linalg.eigh(inertia[turned])
        out[has[turned], col.C_AXES : col.C_AXES + 9] = axes.reshape(-1, 9)
        out[has, col.C_MOMENTS : col.C_MOMENTS + 3] = share[has, None] * np.maximum(moments, 0.0)
    return out


def _dofs(m: Mechanism) -> Floats:
    """Table of dofs as given, STIFFNESS ... UNIT; INERTIA follows."""
    out = np.zeros((m.nv, col.DOF_COLUMNS))
    out[:, col.STIFFNESS] = m.stiffness
    out[:, col.DAMPING] = m.damping
    ball = m.dof_kind == BALL
    out[~ball, col.PULL] = (m.stiffness * m.rest[m.dof_coordinate])[~ball]
    out[:, col.ARMATURE] = m.armature
    out[:, col.LOWER], out[:, col.UPPER] = m.lower, m.upper
    out[:, col.UNIT] = 1 / m.dof_unit
    return out


def _tendons(m: Mechanism) -> tuple[Floats, Ints]:
    """Table of tendons, STIFFNESS ... DAMPING, and the bordering rows of those with a spring or damper: 1, else 0."""
    for rows, names, what in (
        (m.couplings, m.coupling_names, "coupling"),
        (m.tendons, m.tendon_names, "tendon"),
    ):
        for r, name in enumerate(names):
            if (m.dof_kind[rows.row(r)[0]] == BALL).any():
                raise InputError(
                    f"{what} '{name}' acts on a ball joint: ConstrainedSimulation knows those of hinges and slides only"
                )
    tendons = np.zeros((len(m.tendons), col.DOF_COLUMNS))
    tendons[:, col.STIFFNESS] = m.tendon_stiffness
    tendons[:, col.DAMPING] = m.tendon_damping
    acting = (m.tendon_stiffness > 0) | (m.tendon_damping > 0)
    soft = np.zeros(len(m.elimination.scale), dtype=np.int64)
    soft[m.elimination.hard :] = acting
    return tendons, soft


def _loops(m: Mechanism, frames: Floats) -> Floats:
    """Table of loops, LOOP_COPY ... LOOP_ROTATION."""
    out = np.zeros((m.topology.loops, col.LOOP_COLUMNS))
    for n, (copy, body) in enumerate(zip(m.links.loop_copy, m.links.loop_body, strict=True)):
        between = spatial.se3_inverse(frames[body]) @ frames[copy]
        out[n, col.LOOP_COPY], out[n, col.LOOP_BODY] = copy, body
        out[n, col.LOOP_POINT : col.LOOP_POINT + 3] = between[:3, 3]
        out[n, col.LOOP_ROTATION : col.LOOP_ROTATION + 9] = between[:3, :3].T.ravel()
    out[:, col.LOOP_UNIT] = m.elimination.tree.unit
    return out


def _effective_inertia(m: Mechanism, packed: Packed) -> None:
    """Fill in the effective inertia of dofs and tendons at the reference pose, all other joints free."""
    model, state, scratch = packed.model, packed.state, packed.scratch
    links, constants, dofs, tendons = model.links, model.constants, model.dofs, model.tendons
    work = scratch.work
    if work.shape[1] < col.WORK_COLUMNS:
        work = np.zeros((len(links), col.WORK_COLUMNS))
    _links.forward(links, constants, state.q, state.u, 0.0, work)
    _links.momenta(0, len(links), constants, work, scratch.at_middle)
    _joints.springs(0, len(links), links, model.bare, model.rest, state.q, state.u, state.v, 1.0, work)
    _aba.residual(
        0, len(links), links, constants, state.momentum, scratch.impulse, scratch.at_middle, 0.0, work
    )
    k = _aba.factor(links, 0.0, work)
    if k >= 0:
        joint = m.links.joint[k]
        raise MechanismError(
            f"nothing with mass follows joint '{m.joint_names[joint]}': give body "
            f"'{m.body_names[m.joint_children[joint]]}' or one it carries mass and inertia, or the joint armature"
        )
    _packing.effective_inertia(links, work, dofs)
    for n in range(len(tendons)):
        row = np.zeros(m.nv)
        dof, coefficient = m.tendons.row(n)
        row[dof] = coefficient
        _aba.load(links, row, work)
        _aba.solve(links, work, scratch.du)
        tendons[n, col.INERTIA] = 1.0 / max(-float(row @ scratch.du), 1e-300)
