"""Joint coordinates measured from the poses of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained._maximal_rows import measure
from pliant.mechanism.model import Mechanism

__all__ = ["Measured"]

Floats = NDArray[np.float64]
_NONE = np.zeros((0, 6))


class Measured:
    """Some joints of a mechanism, whose coordinates are wanted (k joints).

    Attributes:
        joints: joint, first link, one after the last, first dof, number of dofs, number of complement rows, (k, 6).
        index: per joint of the mechanism, its place here, or -1.
        value: coordinates, for a ball the rotation vector from rest, (k, 6).
        form: their rates as linear forms on the child's relative twist, child's frame, (k, 6, 6).
        gap: how far bodies are from where coordinates alone would put them, a twist, (k, 6).
        complement: forms that vanish on what the joint allows, (k, 6, 6).
    """

    def __init__(
        self,
        mechanism: Mechanism,
        ends: NDArray[np.int64],
        com: Floats,
        which: Sequence[int],
        centres: Mapping[int, Floats],
        complements: Mapping[int, Floats],
    ):
        """Prepare to measure.

        Args:
            mechanism: the mechanism.
            ends: parent and child of every joint, the world after the bodies.
            com: centres of mass in the frames of bodies and world.
            which: the joints to measure, of at most six dofs each.
            centres: a point in the child's frame that the joint's turns leave alone; the origin if not given.
            complements: rows that the joint's motions leave alone, at the reference pose.
        """
        m, links, count = mechanism, mechanism.links, len(which)
        self._mechanism, self._ends, self._com = m, ends, com
        self.joints = np.zeros((count, 6), dtype=np.int64)
        self.index = np.full(m.joint_count, -1, dtype=np.int64)
        self.complement = np.zeros((count, 6, 6))
        self.value, self.gap, self.form = np.zeros((count, 6)), np.zeros((count, 6)), np.zeros((count, 6, 6))
        order = np.argsort(links.joint, kind="stable")
        starts = np.searchsorted(links.joint[order], np.arange(m.joint_count + 1))
        for k, joint in enumerate(which):
            first, length = int(order[starts[joint]]), int(starts[joint + 1] - starts[joint])
            dofs, rows = m.joint_dofs(joint), complements.get(joint, _NONE)
            self.complement[k, : len(rows)] = rows
            self.joints[k] = joint, first, first + length, dofs.start, dofs.stop - dofs.start, len(rows)
            self.index[joint] = k
        self._centre = np.array([centres.get(j, np.zeros(3)) for j in which]).reshape(-1, 3)
        longest = int((self.joints[:, 2] - self.joints[:, 1]).max(initial=1))
        self._work = np.zeros((longest, 4, 4)), np.zeros((6, 6)), np.zeros((6, 6)), np.zeros(6)

    def __len__(self) -> int:
        return len(self.joints)

    def __call__(self, q: Floats, x: Floats, R: Floats, rounds: int = 2) -> None:
        """Measure into `q`, which holds the last coordinates, from centres of mass and rotations (the world's last)."""
        m, links = self._mechanism, self._mechanism.links
        measure(
            self.joints, self._centre, self._ends, links.kind, links.offset, links.screw, links.anchor,
            links.dof, links.coordinate, m.rest, m.radius, rounds, x, R, self._com,
            q, self.value, self.form, self.complement, self.gap, *self._work,
        )  # fmt: skip
