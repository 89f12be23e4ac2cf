"""Arrays of a linear system of a mechanism, for `border_kernels`, whose machine code does not depend on this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.compilation.calls import address_of
from pliant.mechanism import elimination_kernels as elimination
from pliant.mechanism.border_kernels import (
    CALLS,
    CHOOSE,
    CLOSE,
    FACTOR,
    SOLVE,
    Border,
    Constraints,
    System,
    close,
    join_system,
)

if TYPE_CHECKING:
    from pliant.mechanism.mechanism import Mechanism

__all__ = ["make_constraints", "make_system"]


def make_constraints(m: Mechanism) -> Constraints:
    """The loops and couplings of a mechanism."""
    links, rows = m.links, m.couplings
    return Constraints(
        copy=np.array(links.loop_copy),
        body=np.array(links.loop_body),
        start=np.array(rows.start),
        dof=np.array(rows.dof),
        coefficient=np.array(rows.coefficient),
        offset=np.array(m.coupling_offset),
        coordinate=np.array(m.dof_coordinate),
    )


def make_system(
    m: Mechanism, acting: NDArray[np.bool_], free: NDArray[np.float64] | None = None
) -> tuple[System, Border]:
    """Room for a linear system; and its `Border`, which Python cannot read from it.

    Args:
        m: the mechanism.
        acting: tendons that hold with their stiffness, (tendons,).
        free: coefficients of couplings are multiplied by it, (nv,).
    """
    plan = m.elimination
    n, nv, count, hard = len(m.links), m.nv, len(plan.scale), plan.hard
    fronts, motion = plan.allocate()
    give, soft = np.zeros(count), np.zeros(count, dtype=np.int64)
    soft[hard:] = acting
    give[hard:][acting] = plan.scale[hard:][acting] ** 2 / m.tendon_stiffness[acting]
    matrix = elimination.Matrix(
        position=np.zeros((n, 3)),
        screw=np.zeros((nv, 6)),
        column=np.zeros((nv, 6)),
        row=np.zeros((nv, 6)),
        tangent=np.zeros((n, 6, 6)),
        stiffness=np.zeros((nv, 3)),
        give=give,
    )
    entries = plan.tree.entry_value.copy()
    if free is not None:
        entries *= np.repeat(free, np.diff(plan.tree.entry_start))
    border = Border(
        constant=plan.tree.entry_value.copy(),
        scale=plan.scale.copy(),
        unit=np.array(m.dof_unit),
        soft=soft,
        none=np.zeros(count, dtype=np.int64),
        force=np.zeros((1, nv)),
        gap=np.zeros((1, count)),
        step=np.zeros((1, nv)),
        multipliers=np.zeros((1, count)),
        added=np.zeros(nv),
        calls=np.zeros(CALLS, dtype=np.int64),
        miss=np.zeros((3, count)),
        correction=np.zeros((2, nv)),
        right=np.zeros((1, nv)),
    )
    tree = plan.tree._replace(entry_value=entries)
    system = join_system(m.links.arrays, make_constraints(m), tree, fronts, matrix, motion, border)
    arrays, sides = (tree, fronts, matrix), (border.force, border.gap)
    scratch = motion, border.miss, border.correction, border.unit, 0, border.step, border.multipliers
    border.calls[FACTOR] = address_of(elimination.factor, *arrays, elimination.GENERAL)
    border.calls[SOLVE] = address_of(elimination.solve_many, *arrays, *sides, *scratch)
    if count:
        places = matrix.position, matrix.screw, border.unit
        border.calls[CHOOSE] = address_of(elimination.choose_rows, tree, fronts, *places, 0.0, 0.0, 0, soft)
        poses = np.zeros((n, 4, 4))
        border.calls[CLOSE] = address_of(
            close, system, border.added, border.added, poses, poses, np.zeros((3, 3)), border.added
        )
    return system, border
