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
from pliant.statics.per_mechanism import per_mechanism

__all__ = ["Stops", "make_stops", "sharper_stops", "typical_stiffness"]

Floats = NDArray[np.float64]
STIFFENING = 1000.0  # K, in stiffnesses of the joint
MARGIN = 0.05  # w, as a fraction of the range
WEIGHTS = 10.0  # K w / 2 at least, in weights of the whole mechanism
NARROWEST, WIDEST = 1e-3, 0.1  # bounds of w, radians or radii: for ranges that are tiny or infinite
_SHARPER = (0.2, 0.04)  # margins of sharper stops, as parts of w
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

    @property
    def arrays(self) -> Floats:
        """For kernels, which have the law of stops: STOP_LOW ... STOP_STIFFNESS, (STOP_ROWS, nv)."""
        return np.array([self.low, self.high, self.margin, self.stiffness])


@per_mechanism
def make_stops(m: Mechanism) -> Stops:
    """Stops of the usual margin; see `_stops`."""
    return _stops(m, 1.0)


@per_mechanism
def sharper_stops(m: Mechanism) -> tuple[Stops, ...]:
    """Stops of ever smaller margins, each to start the next from."""
    return tuple(_stops(m, share) for share in _SHARPER)


def _stops(m: Mechanism, share: float) -> Stops:
    """Stops at the limits of a mechanism.

    They are `STIFFENING` times as stiff as the joint, or as the typical one of the mechanism if that is stiffer; and
    hold at least `WEIGHTS` times the weight of the mechanism, at its radius as lever, before the limit is passed. Where
    the reference pose is within the margin of a limit, the stop has half the room there is as its margin. Where it is
    closer than twice the narrowest margin, or beyond the limit, the stop begins at the reference pose, which it holds
    with no force.

    Args:
        m: the mechanism.
        share: of the usual margin.
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
    margin = share * unit * np.clip(MARGIN * (high - low) / unit, NARROWEST, WIDEST)
    room = np.minimum(high - reference, np.where(m.dof_kind == BALL, np.inf, reference - low))
    margin = np.where(room >= 2 * share * NARROWEST * unit, np.minimum(margin, room / 2), margin)
    springs = STIFFENING * np.maximum(own, typical_stiffness(m, 0.0) / unit**2)
    weight = WEIGHTS * m.total_mass * _EARTH * m.radius / unit
    return Stops(
        low=np.where(m.dof_kind == BALL, -np.inf, np.minimum(low + margin, reference)),
        high=np.maximum(high - margin, reference),
        margin=margin,
        stiffness=np.maximum(springs, 2 * weight / margin),
    )
