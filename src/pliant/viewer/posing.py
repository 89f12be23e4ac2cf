"""`Slider` and `posed`: joints that a live view moves one by one, with loops closed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.checks import number
from pliant.errors import ConvergenceError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL, HINGE
from pliant.mechanism.loop_closure import LoopCloser
from pliant.text import LENGTHS, unit_for

__all__ = ["Slider", "posed", "sliders"]

Floats = NDArray[np.float64]
_FAR = np.pi  # rad from the reference: range of a hinge without limits


class Slider(NamedTuple):
    """Range of a hinge or slide.

    Attributes:
        dof: its name.
        low, high: rad or m: its limits; without limits a half turn, or the radius of the mechanism, either way.
        factor, unit: rad or m per unit of the slider: degrees, or a length that suits the range.
    """

    dof: str
    low: float
    high: float
    factor: float
    unit: str


def sliders(m: Mechanism, most: int) -> tuple[Slider, ...]:
    """Ranges of the first `most` hinges and slides; free joints and balls have none."""
    free = np.array([kind == "free" for kind in m.joint_types], dtype=bool)
    out = []
    for dof in np.flatnonzero((m.dof_kind != BALL) & ~free[m.dof_joint])[:most].tolist():
        reach = _FAR if m.dof_kind[dof] == HINGE else m.radius
        at = float(m.reference[m.dof_coordinate[dof]])
        limits = (float(m.lower[dof]), float(m.upper[dof]))
        low, high = (
            limit if np.isfinite(limit) and abs(limit - at) <= 4 * reach else at + side * reach
            for limit, side in zip(limits, (-1, 1), strict=True)
        )
        if high - low > 1e-9 * reach:
            factor, unit = (
                (np.pi / 180, "°")
                if m.dof_kind[dof] == HINGE
                else unit_for(max(abs(low), abs(high)), LENGTHS)
            )
            out.append(Slider(m.dof_names[dof], min(low, at), max(high, at), float(factor), unit))
    return tuple(out)


def posed(m: Mechanism, q: Floats, dof: str, value: float) -> Floats:
    """Joint coordinates near `q` with a hinge or slide at a value, rad or m, and all loops closed.

    Raises:
        InputError: the value is no finite number.
        ConvergenceError: loops do not close there.
    """
    index = m.dof_index(dof)
    value = number(value, dof, least=-1e9, most=1e9)
    if not m.topology.loops and not len(m.couplings):
        out = np.array(q)
        out[m.dof_coordinate[index]] = value
        return out
    held = np.zeros(m.nv, dtype=bool)
    held[index] = True
    found, closed = LoopCloser(m.with_pose(q), held).follow(np.array([[value]]))
    if not closed[0]:
        raise ConvergenceError(f"loops of '{m.name}' do not close with '{dof}' there: move it less far")
    return found[0]
