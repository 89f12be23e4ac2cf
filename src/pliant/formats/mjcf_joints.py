"""Joints for `to_mjcf`: ours are stacks between two frames, MuJoCo's act in the frame of the child body.

`X_p E1(q1) E2(q2) X_c^-1`, with body and joints written at coordinates q: seen from the child, the axis of E2 has been
moved by X_c, that of E1 by `X_c E2(q2)^-1`, and so on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.errors import FormatError
from pliant.formats.mjcf_elements import Draft, element
from pliant.formats.names import unique
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL, HINGE, NQ, SLIDE, stack_transform

__all__ = ["joint_elements", "written_pose"]

_UNLIMITED = 1e10  # MuJoCo's limits come in pairs


def written_pose(m: Mechanism, joint: int) -> NDArray[np.float64]:
    """The child's pose in its parent where MuJoCo has its body defined: at the reference, balls at the identity."""
    part = m.joint_primitives(joint)
    moved = stack_transform(
        m.primitive_kind[part].tolist(), m.primitive_axis[part], m.primitive_anchor[part], _written(m, joint)
    )
    return m.parent_frames[joint] @ moved @ spatial.se3_inverse(m.child_frames[joint])


def joint_elements(draft: Draft, joint: int) -> list[str]:
    """The elements of a joint; its coordinates at the reference go to the keyframe."""
    m = draft.m
    part, coordinates = m.joint_primitives(joint), m.joint_coordinates(joint)
    reference = np.array(m.reference[coordinates])
    if _is_free(m, joint):
        first = m.joint_dofs(joint).start
        draft.q.extend(reference.tolist())
        return [
            element(
                "joint",
                name=m.joint_names[joint],
                type="free",
                damping=m.damping[first],
                armature=m.armature[first],
            )
        ]
    kinds = m.primitive_kind[part]
    if (kinds == BALL).any() and ((kinds == HINGE).any() or (kinds == BALL).sum() > 1):
        raise FormatError(
            f"joint '{m.joint_names[joint]}': MuJoCo allows no other rotation beside a ball; "
            "put a small body between them"
        )
    q = _written(m, joint)
    to_child = np.array(m.child_frames[joint])
    elements: list[str] = []
    for p in range(part.stop - 1, part.start - 1, -1):
        axis = to_child[:3, :3] @ m.primitive_axis[p]
        anchor = to_child[:3, :3] @ m.primitive_anchor[p] + to_child[:3, 3]
        kind, start = int(m.primitive_kind[p]), int(m.primitive_coordinate[p]) - coordinates.start
        if kind == BALL:
            elements.append(_ball(draft, joint, p, anchor, len(kinds)))
            reference[start + 1 : start + 4] = to_child[:3, :3] @ reference[start + 1 : start + 4]
        else:
            elements.append(_scalar(draft, joint, p, axis, anchor, len(kinds)))
        own = stack_transform(
            [kind], m.primitive_axis[p, None], m.primitive_anchor[p, None], q[start : start + NQ[kind]]
        )
        to_child = to_child @ spatial.se3_inverse(own)
    draft.q.extend(reference.tolist())
    return elements[::-1]


def _written(m: Mechanism, joint: int) -> NDArray[np.float64]:
    """The coordinates at which MuJoCo has a body defined."""
    q = np.array(m.reference[m.joint_coordinates(joint)])
    if not _is_free(m, joint):
        part = m.joint_primitives(joint)
        for p in range(part.start, part.stop):
            if m.primitive_kind[p] == BALL:
                start = int(m.primitive_coordinate[p]) - m.joint_coordinates(joint).start
                q[start : start + 4] = 1, 0, 0, 0
    return q


def _is_free(m: Mechanism, joint: int) -> bool:
    """Whether MuJoCo's free joint has the same coordinates: the pose of the body in the world."""
    if m.joint_types[joint] != "free" or m.joint_parents[joint] >= 0:
        return False
    part, dofs = m.joint_primitives(joint), m.joint_dofs(joint)
    plain = (
        m.primitive_kind[part].tolist() == [SLIDE, SLIDE, SLIDE, BALL]
        and np.array_equal(m.primitive_axis[part][:3], np.eye(3))
        and not m.primitive_anchor[part][3].any()
        and np.array_equal(m.parent_frames[joint], np.eye(4))
        and np.array_equal(m.child_frames[joint], np.eye(4))
    )
    same = all(len(set(getattr(m, label)[dofs].tolist())) == 1 for label in ("damping", "armature"))
    unlimited = np.isinf(m.lower[dofs]).all() and np.isinf(m.upper[dofs]).all()
    return bool(plain and same and unlimited and not m.stiffness[dofs].any())


def _scalar(draft: Draft, joint: int, p: int, axis: NDArray, anchor: NDArray, count: int) -> str:
    m = draft.m
    dof, start = int(m.primitive_dof[p]), int(m.primitive_coordinate[p])
    draft.dof_name[dof] = name = m.joint_names[joint] if count == 1 else m.dof_names[dof]
    low, high = float(m.lower[dof]), float(m.upper[dof])
    limited = np.isfinite(low) or np.isfinite(high)
    if limited and low >= high:
        raise FormatError(
            f"joint '{m.joint_names[joint]}': MuJoCo needs a lower limit below the upper one, not {low:g} and "
            f"{high:g}; make the joint fixed, or couple it to a constant"
        )
    return element(
        "joint",
        name=name,
        type="hinge" if m.primitive_kind[p] == HINGE else "slide",
        pos=anchor,
        axis=axis,
        ref=m.reference[start],
        springref=m.rest[start],
        stiffness=m.stiffness[dof],
        damping=m.damping[dof],
        armature=m.armature[dof],
        limited="true" if limited else None,
        range=[max(low, -_UNLIMITED), min(high, _UNLIMITED)] if limited else None,
    )


def _ball(draft: Draft, joint: int, p: int, anchor: NDArray, count: int) -> str:
    m = draft.m
    dof, start, name = int(m.primitive_dof[p]), int(m.primitive_coordinate[p]), m.joint_names[joint]
    for label in ("stiffness", "damping", "armature", "upper"):
        if len(set(getattr(m, label)[dof : dof + 3].tolist())) > 1:
            what = "limit" if label == "upper" else label
            raise FormatError(
                f"joint '{name}': a ball of MuJoCo has one {what} for all its axes; give it the same {what} "
                "about each, or make it of three hinges"
            )
    if m.stiffness[dof] and abs(abs(m.rest[start]) - 1) > 1e-15:
        raise FormatError(
            f"joint '{name}': the spring of MuJoCo's ball is slack at the identity only; "
            "set its rest to (1, 0, 0, 0)"
        )
    limit = float(m.upper[dof])
    return element(
        "joint",
        name=name if count == 1 else unique(f"{name}.ball", draft.joint_names),
        type="ball",
        pos=anchor,
        stiffness=m.stiffness[dof],
        damping=m.damping[dof],
        armature=m.armature[dof],
        limited="true" if np.isfinite(limit) else None,
        range=[0.0, limit] if np.isfinite(limit) else None,
    )
