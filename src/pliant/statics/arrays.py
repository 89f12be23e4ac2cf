"""Arrays of the kernels of statics: named tuples, and `Statics`, which holds them as one argument."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from pliant.compilation import njit, views

__all__ = ["Cases", "Given", "Model", "Point", "Statics", "Work", "join_statics"]

STOP_LOW, STOP_HIGH, STOP_MARGIN, STOP_STIFFNESS, STOP_ROWS = range(5)  # rows of `Given.stops`
HERE, THERE = 0, 1  # the points of `Statics`
EVALUATE, PREPARE, BALLS, CALLS = range(4)  # entries of `Work.calls`
ROWS, KIND, FLAGS = range(3)  # entries of `Work.flags`
NOT_CHOSEN, CHOSEN, CHOSEN_ELSEWHERE = range(3)  # independent rows: `Work.flags[ROWS]`
CLOSINGS = 12  # motions that close loops after a step, at most


class Model(NamedTuple):
    """Constants of a mechanism.

    Attributes:
        coordinate: per dof, its place in q, (nv,); for a ball, the first of its quaternion.
        ball_dof, ball_coordinate: first dof and coordinate of every ball.
        turning: 1 for dofs of balls, else 0, (nv,).
        stiffness: of dofs, (nv,), N m/rad or N/m.
        gap_unit: 1 rad or the radius in m, per row of loops; 1 per coupling, (hard,).
        tendon_start, tendon_dof, tendon_coefficient: rows of tendons, compressed.
        tendon_stiffness: N m/rad or N/m.
        radius: m.
        typical: typical stiffness, N m/rad; 0 for a mechanism without springs.
        passive: whether some dofs have no spring.
    """

    coordinate: NDArray[np.int64]
    ball_dof: NDArray[np.int64]
    ball_coordinate: NDArray[np.int64]
    turning: NDArray[np.int64]
    stiffness: NDArray[np.float64]
    gap_unit: NDArray[np.float64]
    tendon_start: NDArray[np.int64]
    tendon_dof: NDArray[np.int64]
    tendon_coefficient: NDArray[np.float64]
    tendon_stiffness: NDArray[np.float64]
    radius: float
    typical: float
    passive: bool


class Given(NamedTuple):
    """Loads of a mechanism; see `statics.loads.Loads`.

    Attributes:
        rows: loads on links, (loads, LOAD_SIZE).
        rest, tendon_rest: coordinates (nq,) and lengths of tendons at which springs are slack.
        stops: STOP_LOW ... STOP_STIFFNESS of springs at joint limits, (STOP_ROWS, nv), or (0, nv) for none.
    """

    rows: NDArray[np.float64]
    rest: NDArray[np.float64]
    tendon_rest: NDArray[np.float64]
    stops: NDArray[np.float64]


class Point(NamedTuple):
    """A configuration, and the forces there.

    Attributes:
        q, multipliers: coordinates (nq,) and constraint forces of loops and couplings (hard,).
        local, poses: of links, in their parents and in the world, (links, 4, 4).
        gaps: of loops and couplings, (hard,).
        residual: spring forces minus load forces per dof, constraint forces included, (nv,).
        wrench: sum of the wrenches on the subtree of every link, in its frame, (links, 6).
        tangent: derivative of the load on every link with its twist, (links, 6, 6).
        diagonal, blocks: stiffness of hinges and slides (nv,), and of balls, row by row (nv, 3).
        stretch: of springs, (nv,).
        pull: of tendons on dofs, (nv,).
        jacobian: per ball, the inverse right Jacobian of its rotation from rest, (nv, 3).
        reactions: constraint forces of loops as loads, (2 loops, LOAD_SIZE).
        energy: of springs, tendons and stops, J, (1,).
        small: scratch, (3, 3).
    """

    q: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    local: NDArray[np.float64]
    poses: NDArray[np.float64]
    gaps: NDArray[np.float64]
    residual: NDArray[np.float64]
    wrench: NDArray[np.float64]
    tangent: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    blocks: NDArray[np.float64]
    stretch: NDArray[np.float64]
    pull: NDArray[np.float64]
    jacobian: NDArray[np.float64]
    reactions: NDArray[np.float64]
    energy: NDArray[np.float64]
    small: NDArray[np.float64]


class Work(NamedTuple):
    """Work space of the solver.

    Attributes:
        q, multipliers: of the last good point, (nq,) and (hard,).
        rest, tendon_rest: springs' rest at a fraction of the load, (nq,) and (tendons,).
        step, change: Newton step and change of the multipliers, (1, nv) and (1, m), the latter scaled.
        motion: softest motion, (nv,).
        moved: motions that close loops after a step, (CLOSINGS, nv), or (0, nv) without loops and couplings.
        chosen: coordinates where independent rows were chosen last, (nq,).
        flags: ROWS: whether they were chosen, at the point at hand or elsewhere; KIND: what is factored, GENERAL (the
            exact derivative), SYMMETRIC or DEFINITE (its symmetric part; see `elimination_kernels.factor`), (FLAGS,).
        begun, kept: coordinates where the first rows of a case were chosen last, (nq,), and 1 for those kept, (m,).
        twist: of links, (1, links, 6).
        free: ones, (nv,).
        pose: scratch, (2, 4, 4).
        vector: scratch, (6,).
        count: iterations, (1,).
        calls: addresses of kernels, EVALUATE ... BALLS; 0 for balls where there are none.
    """

    q: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    rest: NDArray[np.float64]
    tendon_rest: NDArray[np.float64]
    step: NDArray[np.float64]
    change: NDArray[np.float64]
    motion: NDArray[np.float64]
    moved: NDArray[np.float64]
    chosen: NDArray[np.float64]
    flags: NDArray[np.int64]
    begun: NDArray[np.float64]
    kept: NDArray[np.int64]
    twist: NDArray[np.float64]
    free: NDArray[np.float64]
    pose: NDArray[np.float64]
    vector: NDArray[np.float64]
    count: NDArray[np.int64]
    calls: NDArray[np.int64]


class Cases(NamedTuple):
    """Load cases of one mechanism.

    Attributes:
        rows, start: loads of case i, `rows[start[i] : start[i + 1]]`, (loads, LOAD_SIZE).
        weights: further loads, of every case.
        reference: q of the poses from which loads are applied gradually, (1, nq) for all cases or (cases, nq).
        rest, tendon_rest: as in `Given`, a row for each of these.
        stops: as in `Given`.
        scale: size of the loads as a force, N, (cases,).
    """

    rows: NDArray[np.float64]
    start: NDArray[np.int64]
    weights: NDArray[np.float64]
    reference: NDArray[np.float64]
    rest: NDArray[np.float64]
    tendon_rest: NDArray[np.float64]
    stops: NDArray[np.float64]
    scale: NDArray[np.float64]


@structref.register
class _StaticsType(views.StructureType):
    pass


class Statics(views.Structure):
    """`Model`, two `Point`s and `Work` as one argument of kernels, beside the `System` of the mechanism."""


views.define(_StaticsType, Statics, ("model", "here", "there", "work"))


@njit(counts_references=True)
def join_statics(model, here, there, work):
    """`Statics` of a mechanism."""
    return Statics(model, here, there, work)
