"""`Slider` and `posed`: joints that a live view moves one by one, with loops closed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.checks import number
from pliant.errors import ConvergenceError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL, HINGE
from pliant.mechanism.loop_closure import LoopCloser, close_loops
from pliant.spatial import quat_exp, quat_log
from pliant.text import LENGTHS, unit_for

__all__ = ["Slider", "coordinate", "posed", "sliders"]

Floats = NDArray[np.float64]
_FAR = np.pi  # rad from the reference: range of a hinge without limits
_HALF_TURN = np.pi * (1 - 1e-6)  # rad: largest angle of a ball; at a half turn its axis has two signs
_STEP, _ROUNDS, _CLOSE = (
    0.1,
    30,
    1e-9,
)  # rad of a ball at once with loops, rounds of closing them, rad: near enough


class Slider(NamedTuple):
    """Range of a hinge, of a slide, or of a component of the rotation vector of a ball.

    Attributes:
        dof: its name.
        label: what a user reads: the dof, or a ball's joint and axis.
        low, high: rad or m: its limits; without limits a half turn, or the radius of the mechanism, either way.
        factor, unit: rad or m per unit of the slider: degrees, or a length that suits the range.
    """

    dof: str
    label: str
    low: float
    high: float
    factor: float
    unit: str


def sliders(m: Mechanism, most: int) -> tuple[Slider, ...]:
    """Ranges of the first `most` dofs of hinges, slides and balls; free joints have none."""
    free = np.array([kind == "free" for kind in m.joint_types], dtype=bool)
    degrees = (np.pi / 180, "°")
    out = []
    for dof in np.flatnonzero(~free[m.dof_joint])[:most].tolist():
        name = m.dof_names[dof]
        if m.dof_kind[dof] == BALL:
            first, _ = _ball(m, dof)
            largest = min(float(m.upper[first : first + 3].min()), np.pi)
            label = f"{m.joint_names[m.dof_joint[dof]]} turn {'xyz'[dof - first]}"
            out.append(Slider(name, label, -largest, largest, *degrees))
            continue
        reach = _FAR if m.dof_kind[dof] == HINGE else m.radius
        at = float(m.reference[m.dof_coordinate[dof]])
        limits = (float(m.lower[dof]), float(m.upper[dof]))
        low, high = (
            limit if np.isfinite(limit) and abs(limit - at) <= 4 * reach else at + side * reach
            for limit, side in zip(limits, (-1, 1), strict=True)
        )
        if high - low > 1e-9 * reach:
            factor, unit = (
                degrees if m.dof_kind[dof] == HINGE else unit_for(max(abs(low), abs(high)), LENGTHS)
            )
            out.append(Slider(name, name, min(low, at), max(high, at), float(factor), unit))
    return tuple(out)


def coordinate(m: Mechanism, q: Floats, dof: str) -> float:
    """Coordinate of a hinge or slide, or component of the rotation vector of a ball, rad or m."""
    index = m.dof_index(dof)
    if m.dof_kind[index] != BALL:
        return float(q[m.dof_coordinate[index]])
    first, at = _ball(m, index)
    return float(quat_log(q[at])[index - first])


def posed(m: Mechanism, q: Floats, dof: str, value: float) -> Floats:
    """Joint coordinates near `q` with a hinge, a slide or a component of a ball at a value, and all loops closed.

    The other components of a ball's rotation vector stay, or shrink until its angle is within its limit, or half a
    turn.

    Args:
        m: the mechanism.
        q: its joint coordinates.
        dof: name of the dof.
        value: rad or m.

    Raises:
        InputError: the value is no finite number.
        ConvergenceError: loops do not close there.
    """
    index = m.dof_index(dof)
    value = number(value, dof, least=-1e9, most=1e9)
    if m.dof_kind[index] == BALL:
        return _turned(m, q, index, value)
    if not m.topology.loops and not len(m.couplings):
        out = np.array(q)
        out[m.dof_coordinate[index]] = value
        return out
    held = np.zeros(m.nv, dtype=bool)
    held[index] = True
    found, closed = LoopCloser(m.with_pose(q), held).follow(np.array([[value]]))
    if not closed[0]:
        raise _open(m, dof)
    return found[0]


def _turned(m: Mechanism, q: Floats, dof: int, value: float) -> Floats:
    """Joint coordinates with a component of a ball's rotation vector at a value, rad; loops are closed on the way.

    Closing a loop with one angular velocity of the ball held changes the component in second order, so that it is set
    and loops are closed in turns.
    """
    first, at = _ball(m, dof)
    largest, part, out = _largest(m, first), dof - first, np.array(q)
    value = float(np.clip(value, -largest, largest))
    if not m.topology.loops and not len(m.couplings):
        out[at] = _with_component(out[at], part, value, largest)
        return out
    held = np.zeros(m.nv, dtype=bool)
    held[dof] = True
    before = float(quat_log(out[at])[part])
    for goal in np.linspace(before, value, 2 + int(abs(value - before) / _STEP))[1:].tolist():
        for _ in range(_ROUNDS):
            out[at] = _with_component(out[at], part, goal, largest)
            try:
                out = close_loops(m, out, held)
            except ConvergenceError:
                raise _open(m, m.dof_names[dof]) from None
            vector = quat_log(out[at])
            if abs(vector[part] - goal) < _CLOSE and np.linalg.norm(vector) < largest + _CLOSE:
                break
        else:
            raise _open(m, m.dof_names[dof])
    return out


def _with_component(quaternion: Floats, part: int, value: float, largest: float) -> Floats:
    """Quaternion with one component of its rotation vector at a value; the others shrink to an angle of `largest`."""
    vector = quat_log(quaternion)
    vector[part] = 0.0
    others, room = float(np.linalg.norm(vector)), float(np.sqrt(largest**2 - value**2))
    vector *= room / others if others > room else 1.0
    vector[part] = value
    return quat_exp(vector)


def _ball(m: Mechanism, dof: int) -> tuple[int, slice]:
    """First dof of the ball that a dof belongs to, and where its quaternion is among the coordinates."""
    for p in m.ball_primitives.tolist():
        first, start = int(m.primitive_dof[p]), int(m.primitive_coordinate[p])
        if first <= dof < first + 3:
            return first, slice(start, start + 4)
    raise AssertionError(f"dof {dof} is no ball's")


def _largest(m: Mechanism, first: int) -> float:
    """Largest angle of the ball whose first dof is given, rad."""
    return min(float(m.upper[first : first + 3].min()), _HALF_TURN)


def _open(m: Mechanism, dof: str) -> ConvergenceError:
    return ConvergenceError(f"loops of '{m.name}' do not close with '{dof}' there: move it less far")
