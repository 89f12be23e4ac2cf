"""What the parts of `to_mjcf` share: XML elements, and the file as it grows."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.mechanism import Mechanism

__all__ = ["STIFF", "TIMESTEP", "Draft", "element", "opened", "placed"]

TIMESTEP = 0.001
# The shortest time constant MuJoCo accepts is two time steps, the largest impedance 0.9999.
STIFF = {"solref": f"{2 * TIMESTEP} 1", "solimp": "0.9999 0.9999 0.001 0.5 2"}


class Draft:
    """The sections of the file.

    Attributes:
        m: the mechanism.
        body: lines of the worldbody.
        equalities, tendons: lines of these sections.
        q: qpos at the reference, in MuJoCo's order.
        sites: per body (-1 the world), lines to be written with it.
        copies: per parent body, the loop joints that carry a copy of their child, and the copy's name.
        share: per body, the part of its mass that it keeps for itself and gives to each copy.
        dof_name: what MuJoCo knows a hinge or slide by.
        joint_names, body_names, equality_names, tendon_names: the names taken.
    """

    def __init__(self, m: Mechanism):
        self.m = m
        self.body: list[str] = []
        self.equalities: list[str] = []
        self.tendons: list[str] = []
        self.q: list[float] = []
        self.sites: dict[int, list[str]] = {}
        self.copies: dict[int, list[tuple[int, str]]] = {}
        self.share = np.ones(m.body_count)
        self.dof_name: dict[int, str] = {}
        self.joint_names = set(m.joint_names) | set(m.dof_names)
        self.body_names = set(m.body_names)
        self.equality_names: set[str] = set()
        self.tendon_names = set(m.tendon_names)

    def add_site(self, body: int, name: str, pose: NDArray[np.float64]) -> None:
        self.sites.setdefault(body, []).append(element("site", name=name, **placed(pose)))


def element(tag: str, **attributes: Any) -> str:
    """An element without children. Numbers are written so that they read back the same; None is left out."""
    return opened(tag, **attributes)[:-1] + "/>"


def opened(tag: str, **attributes: Any) -> str:
    """The start of an element."""
    parts = []
    for key, value in attributes.items():
        if value is None:
            continue
        if not isinstance(value, str):
            value = " ".join(repr(float(v)) for v in np.ravel(value))
        parts.append(f" {key}={quoteattr(value)}")
    return f"<{tag}{''.join(parts)}>"


def placed(pose: NDArray[np.float64]) -> dict[str, Any]:
    """The attributes of a pose."""
    return {"pos": pose[:3, 3], "quat": spatial.quat_from_matrix(pose[:3, :3])}
