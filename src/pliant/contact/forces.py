"""`Touching`: contacts of a world's last step, with names and forces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.contact.stepper import ContactStepper
from pliant.engines.actor import NORMAL

__all__ = ["Touching"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Touching:
    """Contacts of the last step, open ones within the detection margin included.

    Attributes:
        bodies: names, a pair for every contact.
        points: midway between the surfaces at the start of the step, world, (n, 3).
        normals: from the first to the second body, world, (n, 3).
        distances: between the surfaces, negative where they penetrated, (n,).
        forces: on the second body, N, world, (n, 3); minus this acts on the first.
    """

    bodies: tuple[tuple[str, str], ...]
    points: Floats
    normals: Floats
    distances: Floats
    forces: Floats

    def __len__(self) -> int:
        return len(self.bodies)

    def force(self, body: str, other: str | None = None) -> Floats:
        """Total contact force on a body, or only that of one `other` body, N, world; "hand" stands for all links."""
        out = np.zeros(3)
        for (a, b), force in zip(self.bodies, self.forces, strict=True):
            if _is(b, body) and (other is None or _is(a, other)):
                out += force
            if _is(a, body) and (other is None or _is(b, other)):
                out -= force
        return out

    @staticmethod
    def of(stepper: ContactStepper | None, names: tuple[str, ...], h: float) -> Touching:
        """Contacts of a stepper's last step; none without a stepper."""
        if stepper is None:
            return Touching((), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)))
        r, n = stepper.rows, stepper.contacts
        pairs = tuple((names[i], names[j]) for i, j in r.body[:n].tolist())
        forces = np.einsum("ni,nij->nj", r.impulse[:n], r.axes[:n]) / h
        return Touching(pairs, r.point[:n].copy(), r.axes[:n, NORMAL].copy(), r.gap[:n].copy(), forces)


def _is(name: str, asked: str) -> bool:
    return name == asked or name.startswith(asked + "/")
