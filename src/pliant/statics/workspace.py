"""Arrays of a mechanism for the kernels of statics: constants, made once; work space, made or reused per call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.border_kernels import make_border, make_constraints
from pliant.mechanism.joints import BALL
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.load_kernels import LINK, LOAD_SIZE
from pliant.statics.newton_kernels import Statics, Work, join_statics
from pliant.statics.per_mechanism import per_mechanism
from pliant.statics.point_kernels import Model, Point, System

__all__ = ["allocate_point", "allocate_system", "borrow_statics", "model_of"]

_KEPT = 20_000  # links of the largest mechanism whose work space is kept for the next call

@per_mechanism
def model_of(m: Mechanism) -> Model:
    """Constants of a mechanism."""
    unit = np.ones(m.elimination.hard)
    unit[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] = m.radius
    return Model(
        links=m.links.arrays,
        constraints=make_constraints(m),
        reference=np.array(m.reference),
        coordinate=np.array(m.dof_coordinate),
        ball_dof=m.primitive_dof[m.ball_primitives],
        ball_coordinate=m.primitive_coordinate[m.ball_primitives],
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


def allocate_system(m: Mechanism, tendons: bool = True) -> System:
    """Room for the factored derivative of forces; without `tendons` these do not act."""
    border = make_border(m, (m.tendon_stiffness > 0) & tendons)
    return System(border, np.zeros(m.nv), np.zeros((1, m.nv)))


def _allocate_statics(m: Mechanism) -> Statics:
    nv, hard, rows = m.nv, m.elimination.hard, len(m.elimination.scale)
    work = Work(
        q=np.zeros(m.nq),
        multipliers=np.zeros(hard),
        rest=np.zeros(m.nq),
        tendon_rest=np.zeros(len(m.tendons)),
        step=np.zeros((1, nv)),
        change=np.zeros((1, rows)),
        motion=np.zeros(nv),
        twist=np.zeros((1, len(m.links), 6)),
        free=np.ones(nv),
        pose=np.zeros((2, 4, 4)),
        vector=np.zeros(6),
        count=np.zeros(1, dtype=np.int64),
    )
    points = allocate_point(m), allocate_point(m)
    return join_statics(model_of(m), allocate_system(m), *points, work)


@per_mechanism
def _spare(m: Mechanism) -> list[Statics]:
    """Work space that no call uses at the moment: `pop` and `append` are safe between threads."""
    return []


@contextmanager
def borrow_statics(m: Mechanism) -> Iterator[Statics]:
    """Work space of the solver, for one thread at a time."""
    spare = _spare(m)
    try:
        statics = spare.pop()
    except IndexError:
        statics = _allocate_statics(m)
    yield statics
    if len(m.links) <= _KEPT:
        spare.append(statics)
