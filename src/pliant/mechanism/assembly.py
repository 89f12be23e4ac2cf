"""Closing loops: `assemble` finds joint coordinates at which all loops close and all couplings hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import edit, kinematics

if TYPE_CHECKING:
    from pliant.mechanism.model import Mechanism

__all__ = ["assemble", "close_loops"]

_ROUNDS = 100


def close_loops(
    m: Mechanism, q: NDArray[np.float64], held: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """The nearby q with closed loops: Gauss-Newton with least-norm steps, lengths in units of the radius.

    Args:
        m: the mechanism.
        q: where to start.
        held: dofs that must not move.
    """
    if not m.topology.loops and not len(m.couplings):
        return q
    size = m.radius
    row_scale = np.ones(6 * m.topology.loops + len(m.couplings))
    row_scale[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] = 1 / size
    column = np.where(m.dof_kind == 1, size, 1.0)
    if held is not None:
        column = np.where(held, 0.0, column)
    error = np.inf
    for _ in range(_ROUNDS):
        poses = kinematics.link_poses(m, q)
        gaps = row_scale * kinematics.constraint_gaps(m, q, poses)
        previous, error = error, float(np.abs(gaps).max())
        if error < 1e-14 or (error < 1e-12 and error >= 0.5 * previous):
            return q
        rows = row_scale[:, None] * kinematics.constraint_rows(m, poses) * column
        step = np.asarray(np.linalg.lstsq(rows, -gaps, rcond=1e-9)[0], dtype=np.float64)
        longest = float(np.abs(step).max())
        if longest < 1e-16 and error > 1e-12:
            break
        q = kinematics.move(m, q, column * step * min(1.0, 0.5 / max(longest, 1e-300)))
    raise ConvergenceError(
        f"the loops of '{m.name}' do not close: still {error:.2g} (radians, or fractions of its size) apart; "
        "hold fewer joints, or start nearer to a closed pose",
        residual=error,
    )


def assemble(
    mechanism: Mechanism, coordinates: Mapping[str, ArrayLike] | ArrayLike | None = None
) -> Mechanism:
    """The mechanism at another reference pose, with loops closed and couplings met.

    Args:
        mechanism: what to assemble.
        coordinates: `{joint or dof: value}`: these are held exactly and all others adapt. Or a whole q (or a
            `Configuration`): the nearest assembled pose.

    Returns:
        A mechanism whose reference pose is the assembled one.

    Raises:
        ConvergenceError: no assembled pose was found.
    """
    held = np.zeros(mechanism.nv, dtype=bool)
    if isinstance(coordinates, Mapping):
        for name in coordinates:
            held[_dofs(mechanism, name)] = True
    q = edit.coordinates(mechanism, {} if coordinates is None else coordinates)
    return edit.with_pose(mechanism, close_loops(mechanism, q, held))


def _dofs(m: Mechanism, name: Any) -> Any:
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not a joint's name")
    joint = m._joint_index.get(name)
    return m.dof_index(name) if joint is None else m.joint_dofs(joint)
