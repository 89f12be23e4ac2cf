"""What surfaces are like, and sizes of shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields

import numpy as np

from pliant.errors import InputError
from pliant.shapes import Shape

__all__ = ["Material", "half_thicknesses"]


@dataclass(frozen=True)
class Material:
    """The surface of a body.

    Attributes:
        friction: coefficient; two bodies get the geometric mean of theirs.
        restitution: share of the approach velocity that is left after a blow, 0 to 1; two bodies get the larger.
        rolling: arm of rolling resistance, m: a torque up to so much per newton of normal force; the larger.
        compliance: m/N by which a contact gives way; those of two bodies add up.
    """

    friction: float = 0.8
    restitution: float = 0.0
    rolling: float = 0.0
    compliance: float = 0.0

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(f"{f.name}: a number expected, not {value!r:.80}")
            if not 0 <= value < np.inf:
                raise InputError(f"{f.name}: a number from 0 on expected, not {value!r}")
        if self.restitution > 1:
            raise InputError(f"restitution: a number from 0 to 1 expected, not {self.restitution!r}")

    @property
    def row(self) -> tuple[float, ...]:
        """As the kernels take it."""
        return astuple(self)


def half_thicknesses(shapes: Iterable[Shape]) -> list[float]:
    """Half of the smallest extent of every shape; planes and height fields have none."""
    out = []
    for shape in shapes:
        if shape.kind in ("sphere", "capsule"):
            out.append(shape.size[0])
        elif shape.kind == "cylinder":
            out.append(min(shape.size[:2]))
        elif shape.kind in ("box", "ellipsoid"):
            out.append(min(shape.size))
        elif shape.kind == "mesh" and shape.mesh is not None and len(shape.mesh.vertices):
            out.append(float(np.ptp(shape.mesh.vertices, axis=0).min()) / 2)
    return out
