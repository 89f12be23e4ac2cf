"""Materials of surfaces, and thickness of shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields

import numpy as np

from pliant.checks import number
from pliant.shapes import Shape

__all__ = ["Material", "half_thicknesses"]


@dataclass(frozen=True)
class Material:
    """The surface of a body.

    Attributes:
        friction: coefficient; a contact has the geometric mean of two bodies.
        restitution: rebound velocity per approach velocity, 0 to 1; a contact has the larger one of two bodies.
        rolling: arm of rolling resistance, m: largest torque per normal force; a contact has the larger one.
        compliance: depth per normal force, m/N; a contact has the sum of two bodies.
    """

    friction: float = 0.8
    restitution: float = 0.0
    rolling: float = 0.0
    compliance: float = 0.0

    def __post_init__(self) -> None:
        for f in fields(self):
            number(getattr(self, f.name), f.name, least=0, kind="a number")
        number(self.restitution, "restitution", least=0, most=1)

    @property
    def row(self) -> tuple[float, ...]:
        """Row of `Bodies.material`."""
        return astuple(self)


def half_thicknesses(shapes: Iterable[Shape]) -> list[float]:
    """Half of the smallest extent of every shape but planes and height fields, m."""
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
