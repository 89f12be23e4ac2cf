"""`Activity`: shades of bodies whose joints move in an adaptive engine; they fade when joints are rigid again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism

__all__ = ["Activity"]

Floats = NDArray[np.float64]
_FADE = 0.6  # s
_LEVELS = 6  # shades: colours are sent again only when one changes


class Activity:
    """Shades of bodies, 1 while the joint that carries a body moves, fading to 0 within 0.6 s after that.

    Bodies on fixed joints have the shade of what they are fixed to.
    """

    def __init__(self, mechanism: Mechanism):
        m = mechanism
        joint = np.full(m.body_count, -1, dtype=np.int64)  # that moves a body relative to the one before
        tree = m.topology.tree
        joint[m.joint_children[tree]] = tree
        fixed = np.array([kind == "fixed" for kind in m.joint_types], dtype=np.bool_)
        for j in tree[fixed[tree]].tolist():  # parents first
            parent = m.joint_parents[j]
            joint[m.joint_children[j]] = joint[parent] if parent >= 0 else -1
        self._joint = joint
        self._last = np.full(m.body_count, -np.inf)  # s: when the joint moved last

    def shades(self, active: NDArray[np.bool_], now: float) -> Floats:
        """Shade of every body, (bodies,), in steps.

        Args:
            active: per joint, whether it moves, (joints,).
            now: real time, s, not less than at the last call.
        """
        self._last[np.append(active, False)[self._joint]] = now
        left = np.clip(1 - (now - self._last) / _FADE, 0.0, 1.0)
        return np.ceil(_LEVELS * left) / _LEVELS
