"""Equality constraints of a compiled model: loops (connect, weld) and linear couplings (joint, tendon)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.formats.compiler import CompiledModel
from pliant.formats.servos import fixed_tendon

__all__ = ["Coupling", "Loop", "equalities"]

_CONNECT, _WELD, _JOINT, _TENDON = range(4)
_SITE = 6  # mjOBJ_SITE
NO_EQUALITY, NO_CONSTRAINT = 1 << 1, 1 << 0


@dataclass
class Loop:
    """A joint that closes a loop: "ball" or "fixed", between bodies by MuJoCo's number (0 is the world)."""

    name: str
    kind: str
    parent: int
    child: int
    parent_frame: NDArray[np.float64]
    child_frame: NDArray[np.float64]


@dataclass
class Coupling:
    """`sum(terms[dof] * q[dof]) = offset`."""

    name: str
    terms: dict[int, float]
    offset: float


def equalities(
    model: CompiledModel, poses: NDArray[np.float64], report: Counter[str]
) -> tuple[list[Loop], list[Coupling]]:
    """Loops and couplings of a model; `poses` are its bodies at the reference, the world first."""
    found: list[Loop] = []
    couplings: list[Coupling] = []
    if model.disableflags & (NO_EQUALITY | NO_CONSTRAINT):
        return found, couplings
    for e, kind in enumerate(model["eq_type"].tolist()):
        if not model["eq_active0"][e]:
            continue
        name = model.names["eq"][e]
        if kind in (_CONNECT, _WELD):
            loop = _loop(model, e, kind, poses, name or f"loop{e}")
            if loop.parent != loop.child:
                found.append(loop)
        elif kind in (_JOINT, _TENDON):
            coupling = _coupling(model, e, kind, name or f"coupling{e}", report)
            if coupling is not None:
                couplings.append(coupling)
        else:
            report["constraint on a flex"] += 1
    return found, couplings


def _loop(model: CompiledModel, e: int, kind: int, poses: NDArray, name: str) -> Loop:
    data = model["eq_data"][e]
    ends = [int(model["eq_obj1id"][e]), int(model["eq_obj2id"][e])]
    frames = [np.eye(4), np.eye(4)]
    if int(model["eq_objtype"][e]) == _SITE:
        frames = [spatial.pose(model["site_pos"][s], model["site_quat"][s]) for s in ends]
        ends = [int(model["site_bodyid"][s]) for s in ends]
    elif kind == _CONNECT:
        frames[0][:3, 3], frames[1][:3, 3] = data[:3], data[3:6]
    else:
        frames[0] = spatial.pose(data[3:6], data[6:10])
        frames[1][:3, 3] = data[:3]
    if ends[1] == 0:  # the world can only be a parent
        ends.reverse()
        frames.reverse()
    parent, child = ends
    ball = kind == _CONNECT or data[10] == 0  # a weld without torque holds the point only
    if ball:
        # Both frames along the parent's axes at the reference, so that the ball's quaternion is the identity there.
        frames[0][:3, :3] = np.eye(3)
        frames[1][:3, :3] = poses[child, :3, :3].T @ poses[parent, :3, :3]
    return Loop(name, "ball" if ball else "fixed", parent, child, *frames)


def _coupling(model: CompiledModel, e: int, kind: int, name: str, report: Counter[str]) -> Coupling | None:
    """`y - y0 = a0 + a1 (x - x0)`, for joints or fixed tendons y and x."""
    a0, a1 = model["eq_data"][e, :2].tolist()
    first, second = int(model["eq_obj1id"][e]), int(model["eq_obj2id"][e])
    if second >= 0 and model["eq_data"][e, 2:5].any():
        report["nonlinear coupling"] += 1
        return None
    terms: dict[int, float] = {}
    offset = a0
    for target, factor in ((first, 1.0), (second, -a1)):
        if target < 0:
            continue
        if kind == _JOINT:
            part: dict[int, float] | None = {int(model["jnt_dofadr"][target]): 1.0}
            start = float(model["qpos0"][model["jnt_qposadr"][target]])
        else:
            part, start = fixed_tendon(model, target), float(model["tendon_length0"][target])
        if part is None:
            report["coupling of spatial tendons"] += 1
            return None
        offset += factor * start
        for dof, c in part.items():
            terms[dof] = terms.get(dof, 0.0) + factor * c
    terms = {dof: c for dof, c in terms.items() if c != 0}
    return Coupling(name, terms, offset) if terms else None
