"""Arrays of a mechanism for the kernels of statics: constants, made once; work space, made or reused per call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pliant.compilation.calls import address_of
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.border import make_system
from pliant.mechanism.border_kernels import Border, System
from pliant.mechanism.joints import BALL
from pliant.statics.arrays import (
    BALLS,
    CALLS,
    CLOSINGS,
    EVALUATE,
    FLAGS,
    HERE,
    PREPARE,
    Given,
    Model,
    Point,
    Statics,
    Work,
    join_statics,
)
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.load_kernels import LINK, LOAD_SIZE
from pliant.statics.per_mechanism import per_mechanism
from pliant.statics.point_kernels import evaluate, prepare
from pliant.statics.tree_kernels import BallSprings, ball_springs

__all__ = ["allocate_point", "allocate_system", "assemble_statics", "borrow_statics", "model_of"]

_KEPT = 5_000  # links of the largest mechanism whose work space is kept for the next call


@per_mechanism
def model_of(m: Mechanism) -> Model:
    """Constants of a mechanism."""
    unit = np.ones(m.elimination.hard)
    unit[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] = m.radius
    balls = m.primitive_dof[m.ball_primitives], m.primitive_coordinate[m.ball_primitives]
    return Model(
        coordinate=np.array(m.dof_coordinate),
        ball_dof=balls[0],
        ball_coordinate=balls[1],
        turning=(m.dof_kind == BALL).astype(np.int64),
        stiffness=np.array(m.stiffness),
        gap_unit=unit,
        tendon_start=np.array(m.tendons.start),
        tendon_dof=np.array(m.tendons.dof),
        tendon_coefficient=np.array(m.tendons.coefficient),
        tendon_stiffness=np.array(m.tendon_stiffness),
        radius=m.radius,
        typical=typical_stiffness(m, 0.0),
        passive=bool((m.stiffness == 0).any()),
    )


def allocate_point(m: Mechanism) -> Point:
    """Room for a configuration and its forces."""
    n, nv, hard, loops = len(m.links), m.nv, m.elimination.hard, m.topology.loops
    local, poses = kinematics.allocate_poses(m)
    reactions = np.zeros((2 * loops, LOAD_SIZE))
    reactions[:loops, LINK], reactions[loops:, LINK] = m.links.loop_copy, m.links.loop_body
    return Point(
        q=np.zeros(m.nq),
        multipliers=np.zeros(hard),
        local=local,
        poses=poses,
        gaps=np.zeros(hard),
        residual=np.zeros(nv),
        wrench=np.zeros((n, 6)),
        tangent=np.zeros((n, 6, 6)),
        diagonal=np.zeros(nv),
        blocks=np.zeros((nv, 3)),
        stretch=np.zeros(nv),
        pull=np.zeros(nv),
        jacobian=np.zeros((nv, 3)),
        reactions=reactions,
        energy=np.zeros(1),
        small=np.zeros((3, 3)),
    )


def allocate_system(m: Mechanism, tendons: bool = True) -> tuple[System, Border]:
    """Room for the linear system of a mechanism, and its `Border`; without `tendons` these do not act."""
    return make_system(m, (m.tendon_stiffness > 0) & tendons)


def _allocate_work(m: Mechanism) -> Work:
    """Work space of the solver."""
    nv, hard = m.nv, m.elimination.hard
    return Work(
        q=np.zeros(m.nq),
        multipliers=np.zeros(hard),
        rest=np.zeros(m.nq),
        tendon_rest=np.zeros(len(m.tendons)),
        step=np.zeros((1, nv)),
        change=np.zeros((1, len(m.elimination.scale))),
        motion=np.zeros(nv),
        moved=np.zeros((CLOSINGS if hard else 0, nv)),
        chosen=np.zeros(m.nq),
        flags=np.zeros(FLAGS, dtype=np.int64),
        begun=np.full(m.nq, np.nan),
        kept=np.zeros(len(m.elimination.scale), dtype=np.int64),
        twist=np.zeros((1, len(m.links), 6)),
        free=np.ones(nv),
        pose=np.zeros((2, 4, 4)),
        vector=np.zeros(6),
        count=np.zeros(1, dtype=np.int64),
        calls=np.zeros(CALLS, dtype=np.int64),
    )


def assemble_statics(
    m: Mechanism, system: System, model: Model, here: Point, there: Point | None = None
) -> Statics:
    """`Statics` of two points, or of one alone."""
    work = _allocate_work(m)
    statics = join_statics(model, here, here if there is None else there, work)
    springs = BallSprings(model.ball_dof, model.ball_coordinate, model.stiffness, here.pull, here.q)
    given = Given(np.zeros((0, LOAD_SIZE)), here.q, here.pull, here.blocks)
    if len(model.ball_dof):
        arrays = here.q, here.residual, here.blocks, here.stretch, here.jacobian
        work.calls[BALLS] = address_of(ball_springs, springs, *arrays)
    work.calls[EVALUATE] = address_of(evaluate, system, statics, given, 1.0, HERE)
    work.calls[PREPARE] = address_of(prepare, system, statics, HERE)
    return statics


@per_mechanism
def _spare(m: Mechanism) -> list[tuple[System, Statics]]:
    """Work space that no call uses at the moment: `pop` and `append` are safe between threads."""
    return []


@contextmanager
def borrow_statics(m: Mechanism) -> Iterator[tuple[System, Statics]]:
    """Arrays of the solver, for one thread at a time."""
    spare = _spare(m)
    try:
        arrays = spare.pop()
    except IndexError:
        system, _ = allocate_system(m)
        arrays = system, assemble_statics(m, system, model_of(m), allocate_point(m), allocate_point(m))
    yield arrays
    if len(m.links) <= _KEPT:
        spare.append(arrays)
