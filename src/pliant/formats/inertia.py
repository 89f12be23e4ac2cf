"""Repairing inertias no solid can have, which many URDF files carry, on request and with a warning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.formats.xml_tree import Node

__all__ = ["repair_links"]

_ENTRIES = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
_SMALLEST = 1e-13  # kg m²; MuJoCo refuses less than some 1e-15
_SMALLEST_RADIUS = 1e-3  # of gyration, m: what a body of no extent is taken to have


def repair_links(root: Node) -> list[str]:
    """Make the inertia of every link of a URDF one that a solid can have; returns the names of links changed.

    A frame without mass loses its inertia. Otherwise principal moments are raised, never lowered: to those of a
    body of a millimetre's radius of gyration, and until no moment exceeds the sum of the others.
    """
    changed = []
    for link in root.find("link"):
        for inertial in link.find("inertial"):
            mass = _number(next(iter(inertial.find("mass")), Node("mass")), "value")
            entries = next(iter(inertial.find("inertia")), None)
            if mass is None or entries is None:
                continue
            if mass == 0:
                link.children.remove(inertial)
                continue
            given = _matrix(entries)
            if given is None or mass < 0:
                continue  # the compiler says what is wrong
            repaired = _physical(given, mass)
            if repaired is not None:
                entries.attrib.update({key: repr(float(repaired[at])) for key, at in _ENTRIES.items()})
                changed.append(link.get("name"))
    return changed


def _number(node: Node, key: str) -> float | None:
    try:
        value = float(node.get(key, "0"))
    except ValueError:
        return None
    return value if np.isfinite(value) and abs(value) < 1e100 else None


def _matrix(entries: Node) -> NDArray[np.float64] | None:
    out = np.zeros((3, 3))
    for key, (i, j) in _ENTRIES.items():
        value = _number(entries, key)
        if value is None:
            return None
        out[i, j] = out[j, i] = value
    return out


def _physical(matrix: NDArray[np.float64], mass: float) -> NDArray[np.float64] | None:
    """The nearest inertia with raised moments; None if it is sound as it is."""
    moments, axes = np.linalg.eigh(matrix)
    least = max(mass * _SMALLEST_RADIUS**2, 10 * _SMALLEST)
    excess = moments[2] - moments[0] - moments[1]
    if moments[0] > 1e-9 * moments[2] and moments[0] > _SMALLEST and excess <= 1e-9 * moments[2]:
        return None
    raised = np.maximum(moments, least)
    lacking = raised[2] - raised[0] - raised[1]
    if lacking > 0:
        raised[:2] += 0.500001 * lacking  # a little more than needed: the file's digits are not exact either
    return axes @ np.diag(raised) @ axes.T
