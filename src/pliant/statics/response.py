"""How a mechanism gives way to small forces, and which joints let it give way without end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.statics.tangent import Tangent

__all__ = ["static_response"]

Floats = NDArray[np.float64]


def static_response(tangent: Tangent, rows: Floats) -> tuple[Floats, Floats]:
    """Joint motions (m, nv) and constraint forces under the generalised forces in the rows of (m, nv).

    Raises:
        InputError: something the forces push against is held by no spring; names the joints.
    """
    m = tangent.m
    if (m.stiffness == 0).any():
        # A direction that no spring holds gives way in proportion to what it is lent less.
        lent = []
        for passive in (1e-6, 1e-7):
            tangent.factor(passive=passive)
            lent.append(tangent.solve(rows, refine=False)[0])
        if np.abs(rows @ lent[1].T).max(initial=0.0) > 2 * np.abs(rows @ lent[0].T).max(initial=0.0):
            weight = np.abs(lent[1] - lent[0]).max(axis=0) * (m.stiffness == 0)
            loose = [m.dof_names[d] for d in np.argsort(-weight) if weight[d] > 0.05 * weight.max()]
            names = ", ".join(f"'{name}'" for name in loose[:5])
            if len(loose) > 5:
                names += f" and {len(loose) - 5} more"
            raise InputError(
                f"the compliance is infinite: no spring holds {names}; give stiffness with "
                f"`mechanism.with_stiffness({loose[0]!r}, ...)` or `pliant.reduce(..., default_stiffness=...)`"
            )
    tangent.factor()
    return tangent.solve(rows, exact=True)
