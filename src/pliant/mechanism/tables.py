"""Sparse rows and shapes: the tables inside a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module

__all__ = ["Floats", "Ints", "Rows", "ShapeTable", "empty"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def empty(*shape: int) -> Floats:
    return np.zeros(shape)


def _no_index() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse rows over degrees of freedom: row r holds dofs `dof[start[r]:start[r+1]]`."""

    start: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    dof: Ints = field(default_factory=_no_index)
    coefficient: Floats = field(default_factory=lambda: empty(0))

    def __len__(self) -> int:
        return len(self.start) - 1

    def row(self, r: int) -> tuple[Ints, Floats]:
        """The dofs of row r and their coefficients."""
        part = slice(self.start[r], self.start[r + 1])
        return self.dof[part], self.coefficient[part]

    def dense(self, nv: int) -> Floats:
        """The rows as a matrix (rows, nv)."""
        out = np.zeros((len(self), nv))
        if not len(self):
            return out
        np.add.at(out, (np.repeat(np.arange(len(self)), np.diff(self.start)), self.dof), self.coefficient)
        return out


@dataclass(frozen=True, eq=False)
class ShapeTable:
    """All shapes of a mechanism, as columns. `Mechanism.shapes(body)` gives them as objects."""

    body: Ints = field(default_factory=_no_index)
    kind: Ints = field(default_factory=_no_index)
    size: Floats = field(default_factory=lambda: empty(0, 3))
    pose: Floats = field(default_factory=lambda: empty(0, 4, 4))
    rgba: Floats = field(default_factory=lambda: empty(0, 4))
    mesh: Ints = field(default_factory=_no_index)
    role: Ints = field(default_factory=_no_index)
    meshes: tuple[shapes_module.Mesh, ...] = ()

    def __len__(self) -> int:
        return len(self.body)

    def with_shapes(self, body: int, shapes: Sequence[shapes_module.Shape]) -> ShapeTable:
        """The same table with shapes other than meshes added to a body, -1 the world."""
        return replace(
            self,
            body=np.append(self.body, np.full(len(shapes), body)),
            kind=np.append(self.kind, [shapes_module.KINDS.index(s.kind) for s in shapes]),
            size=np.concatenate([self.size, [s.size for s in shapes]]),
            pose=np.concatenate([self.pose, [s.pose for s in shapes]]),
            rgba=np.concatenate([self.rgba, [s.rgba for s in shapes]]),
            mesh=np.append(self.mesh, np.full(len(shapes), -1)),
            role=np.append(self.role, [shapes_module.ROLES.index(s.role) for s in shapes]),
        )
