"""Limit springs (`Stops`): joint limits as springs that stiffen as the limit is approached.

A stop begins at `b`, a margin `w` before the limit. Its stiffness rises from nothing there to `K` at the limit and
stays `K` beyond, so with `x` the coordinate beyond `b`

    stiffness   K x / w         K                          (x < w, x >= w)
    force       K x² / 2w       K (x - w/2)
    energy      K x³ / 6w       K (w² / 6 + (x - w) x / 2)

The force is once continuously differentiable, which Newton's method needs, and at the limit itself it is `K w / 2`. The
stiffness is bounded, so a start far beyond a limit does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL

__all__ = ["Stops", "make_stops", "typical_stiffness"]

Floats = NDArray[np.float64]
STIFFENING = 1000.0  # K, in stiffnesses of the joint
MARGIN = 0.05  # w, as a fraction of the range
WEIGHTS = 10.0  # K w / 2 at least, in weights of the whole mechanism
NARROWEST, WIDEST = 1e-3, 0.1  # bounds of w, radians or radii: for ranges that are tiny or infinite
_EARTH = 9.81  # m/s²


def typical_stiffness(m: Mechanism, fallback: float = 1.0) -> float:
    """Lower quartile of the joints' stiffness, N m/rad, slides at the radius as lever; `fallback` without springs.

    A quartile rather than a mean: a cable is a billion times stiffer along than across, and moves across.
    """
    rotational = m.stiffness * m.dof_unit**2
    own = rotational[rotational > 0]
    if not len(own) and len(m.tendons):
        own = m.tendon_stiffness[m.tendon_stiffness > 0]
    return float(np.partition(own, len(own) // 4)[len(own) // 4]) if len(own) else fallback


@dataclass(frozen=True, eq=False)
class Stops:
    """The stops of all joints of a mechanism.

    Attributes:
        low, high: coordinates per dof at which they begin; infinite for none. For balls, angles, and no low ones.
        margin: w per dof, rad or m.
        stiffness: K per dof, N m/rad or N/m.
    """

    low: Floats
    high: Floats
    margin: Floats
    stiffness: Floats

    def at(self, m: Mechanism, q: Floats) -> tuple[float, Floats, Floats, Floats]:
        """Energy, forces (nv,), stiffness of hinges and slides (nv,), and of balls, row by row (nv, 3)."""
        x = q[m.dof_coordinate]
        blocks = np.zeros((m.nv, 3))
        force, stiffness, energy = np.zeros((3, m.nv))
        straight = m.dof_kind != BALL
        for sign, beyond in ((1.0, x - self.high), (-1.0, self.low - x)):
            on = np.flatnonzero(straight & (beyond > 0))
            added = _law(beyond[on], self.margin[on], self.stiffness[on])
            energy[on] += added[0]
            force[on] += sign * added[1]
            stiffness[on] += added[2]
        for p in m.ball_primitives.tolist():
            d, c = int(m.primitive_dof[p]), int(m.primitive_coordinate[p])
            turn = spatial.quat_log(q[c : c + 4])
            angle = float(np.linalg.norm(turn))
            if angle <= self.high[d]:
                continue
            energy[d], torque, k = _law(angle - self.high[d], self.margin[d], self.stiffness[d])
            # The torque is along the axis n of the turn; with J the right Jacobian of SO(3), J^-T n = n.
            n, per = turn / angle, torque / angle
            force[d : d + 3] = torque * n
            blocks[d : d + 3] = per * spatial.so3_right_jacobian_inverse(turn) + (k - per) * np.outer(n, n)
        return float(energy.sum()), force, stiffness, blocks


def _law(x: Floats, w: Floats, K: Floats) -> tuple[Floats, Floats, Floats]:
    """Energy, force and stiffness of a stop at x > 0 beyond its begin."""
    rising = np.minimum(x, w)
    beyond = x - rising
    energy = K * (rising**3 / (6 * w) + 0.5 * beyond * x)
    return energy, K * (rising**2 / (2 * w) + beyond), K * rising / w


def make_stops(m: Mechanism) -> Stops:
    """Stops at the limits of a mechanism.

    They are `STIFFENING` times as stiff as the joint, or as the typical one of the mechanism if that is stiffer; and
    hold at least `WEIGHTS` times the weight of the mechanism, at its radius as lever, before the limit is passed. Where
    the reference pose is within the margin of a limit, or beyond it, the stop begins at the reference pose, which it
    holds with no force.
    """
    unit = m.dof_unit
    low, high = m.lower.copy(), m.upper.copy()
    reference = m.reference[m.dof_coordinate]
    own = m.stiffness.copy()
    for p in m.ball_primitives.tolist():
        d, c = int(m.primitive_dof[p]), int(m.primitive_coordinate[p])
        part = slice(d, d + 3)
        largest = float(high[part].min())
        high[part] = largest if largest < np.pi else np.inf  # no rotation is larger than half a turn
        low[part] = -high[part]
        reference[part] = np.linalg.norm(spatial.quat_log(m.reference[c : c + 4]))
        own[part] = own[part].max()
    margin = unit * np.clip(MARGIN * (high - low) / unit, NARROWEST, WIDEST)
    springs = STIFFENING * np.maximum(own, typical_stiffness(m, 0.0) / unit**2)
    weight = WEIGHTS * m.total_mass * _EARTH * m.radius / unit
    return Stops(
        low=np.where(m.dof_kind == BALL, -np.inf, np.minimum(low + margin, reference)),
        high=np.maximum(high - margin, reference),
        margin=margin,
        stiffness=np.maximum(springs, 2 * weight / margin),
    )
