"""A compiled MuJoCo model as a `Mechanism`.

MuJoCo's bodies and their order are ours, all joints of one MuJoCo body become one joint to its parent, and the
coordinates of that tree are MuJoCo's qpos. Loop-closing joints come after it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.errors import InputError
from pliant.formats.closing import closed
from pliant.formats.compiler import CompiledModel
from pliant.formats.geoms import shape_table
from pliant.formats.loops import Coupling, Loop, equalities
from pliant.formats.names import unique
from pliant.formats.servos import BALL, FREE, HINGE, SLIDE, Springs, TendonSpring, springs
from pliant.mechanism import Mechanism, Rows
from pliant.mechanism import joints as primitives
from pliant.mechanism.joints import stack_transform

__all__ = ["convert"]

_KIND = {HINGE: primitives.HINGE, SLIDE: primitives.SLIDE, BALL: primitives.BALL}
_TYPE = {HINGE: "hinge", SLIDE: "slide", BALL: "ball", FREE: "free"}
NO_LIMIT = 1 << 3
Floats = NDArray[np.float64]


def convert(
    model: CompiledModel,
    name: str,
    keyframe: str | int | None,
    joint_names: dict[str, str],
    report: Counter[str],
) -> Mechanism:
    """The mechanism of a compiled model.

    Args:
        model: the compiled model.
        name: what to call it if the model does not say.
        keyframe: name or number of the reference pose; None: the model's default.
        joint_names: names for bodies' joints that MuJoCo does not name.
        report: what cannot be represented is counted here.
    """
    key = _keyframe(model, keyframe)
    names = _Names(model, joint_names)
    joints = [_tree_joint(model, body, key) for body in range(1, len(model["body_mass"]))]
    q = _coordinates(model, key)
    poses = _poses(model, joints, q)
    spring = springs(model, key, names.tendons, report)
    loops, couplings = equalities(model, poses, report)
    report["body with gravity compensation"] += int((model["body_gravcomp"][1:] != 0).sum())
    report["flex"] += model.counts["nflex"]
    report["skin"] += model.counts["nskin"]
    report["plugin"] += model.counts["nplugin"]
    fields: dict[str, Any] = {
        "name": model.name if model.name not in ("", "MuJoCo Model") else name,
        "body_names": names.bodies,
        "mass": model["body_mass"][1:],
        "com": model["body_ipos"][1:],
        "inertia": _inertia(model),
        "reference_poses": poses[1:],
        "shape_table": shape_table(model, report),
        **_joint_fields(model, joints, loops, names),
        **_spring_fields(model, spring, loops, q),
        **_coupling_fields(couplings, names),
        **_tendon_fields(spring.tendons, names, q, model),
    }
    return closed(fields, rests_at_reference=_unsprung(model, spring, loops))


# --- names


class _Names:
    """Readable unique names: MuJoCo's, and made-up ones for what has none."""

    def __init__(self, model: CompiledModel, joint_names: dict[str, str]):
        self.bodies = _unique(model.names["body"][1:], "body", {"world"})
        self.tendons = _unique(model.names["tendon"], "tendon")
        self.dofs = _unique(model.names["jnt"], "joint")
        self.joints: list[str] = []
        taken = set(self.dofs)
        for body, name in enumerate(self.bodies, 1):
            start, count = int(model["body_jntadr"][body]), int(model["body_jntnum"][body])
            if count == 1:
                self.joints.append(self.dofs[start])
            else:
                wish = f"{name}_joints" if count else joint_names.get(name) or f"{name}_fixed"
                self.joints.append(unique(wish, taken))
        self.taken = taken | set(self.joints)


def _unique(names: list[str], kind: str, taken: set[str] | None = None) -> list[str]:
    taken = set(taken or ()) | {name for name in names if name}
    return [name or unique(f"{kind}{i}", taken) for i, name in enumerate(names, 1)]


# --- the reference pose


def _keyframe(model: CompiledModel, keyframe: str | int | None) -> int | None:
    names = model.names["key"]
    if keyframe is None:
        return None
    if isinstance(keyframe, str) and keyframe in names:
        return names.index(keyframe)
    if isinstance(keyframe, int) and not isinstance(keyframe, bool) and 0 <= keyframe < len(names):
        return keyframe
    shown = ", ".join(f"'{name}'" if name else str(i) for i, name in enumerate(names[:20]))
    there = f"there are {shown}{', ...' if len(names) > 20 else ''}" if names else "the model has none"
    raise InputError(f"no keyframe {keyframe!r}; {there}")


def _coordinates(model: CompiledModel, key: int | None) -> Floats:
    q = np.array(model["qpos0"] if key is None else model["key_qpos"][key], dtype=np.float64)
    for kind, start in zip(model["jnt_type"].tolist(), model["jnt_qposadr"].tolist(), strict=True):
        if kind in (BALL, FREE):
            part = slice(start + 3 * (kind == FREE), start + 3 * (kind == FREE) + 4)
            q[part] = spatial.quat_normalize(q[part])
    return q


def _poses(model: CompiledModel, joints: list[_TreeJoint], q: Floats) -> Floats:
    """World poses of all bodies at q, the world first."""
    poses = np.broadcast_to(np.eye(4), (len(joints) + 1, 4, 4)).copy()
    for body, joint in enumerate(joints, 1):
        coordinates = q[joint.start : joint.start + joint.nq]
        moved = stack_transform(joint.kinds, joint.axes, joint.anchors, coordinates)
        poses[body] = poses[model["body_parentid"][body]] @ joint.frame @ moved
    return poses


# --- joints


class _TreeJoint:
    """All joints of one MuJoCo body: a frame on the parent and a stack of primitives that ends in the body's frame."""

    def __init__(self, kind: str, frame: Floats, kinds: list[int], axes: Floats, anchors: Floats, start: int):
        self.kind, self.frame, self.kinds, self.axes, self.anchors, self.start = (
            kind,
            frame,
            kinds,
            axes,
            anchors,
            start,
        )
        self.nq = int(primitives.NQ[kinds].sum()) if kinds else 0


def _tree_joint(model: CompiledModel, body: int, key: int | None) -> _TreeJoint:
    frame = spatial.pose(model["body_pos"][body], model["body_quat"][body])
    mocap = int(model["body_mocapid"][body])
    if mocap >= 0 and key is not None:
        frame = spatial.pose(
            model["key_mpos"][key].reshape(-1, 3)[mocap], model["key_mquat"][key].reshape(-1, 4)[mocap]
        )
    first, count = int(model["body_jntadr"][body]), int(model["body_jntnum"][body])
    if count == 0:
        return _TreeJoint("fixed", frame, [], np.empty((0, 3)), np.empty((0, 3)), 0)
    types = model["jnt_type"][first : first + count].tolist()
    start = int(model["jnt_qposadr"][first])
    if types == [FREE]:
        # Its coordinates are the pose itself: three slides along the parent's axes, then a ball at the body's origin.
        kinds = [primitives.SLIDE] * 3 + [primitives.BALL]
        return _TreeJoint(
            "free", np.eye(4), kinds, np.vstack([np.eye(3), [0, 0, 1]]), np.zeros((4, 3)), start
        )
    axes = np.array(model["jnt_axis"][first : first + count], dtype=np.float64)
    anchors = np.array(model["jnt_pos"][first : first + count], dtype=np.float64)
    kinds = [_KIND[t] for t in types]
    # MuJoCo turns by q - ref. With D = exp(-S ref), S the screw of a joint, the stack is
    #     exp(S1 q1) D1 exp(S2 q2) D2 ...  =  D1 D2 ... exp(S1' q1) exp(S2' q2) ...,  S1' = Ad((D2 D3 ...)^-1) S1:
    # the constants go into the parent's frame.
    after = np.eye(4)
    for i in reversed(range(count)):
        back = spatial.se3_inverse(after)
        axes[i] = back[:3, :3] @ axes[i]
        anchors[i] = back[:3, :3] @ anchors[i] + back[:3, 3]
        if types[i] != BALL:
            offset = np.array([-float(model["qpos0"][model["jnt_qposadr"][first + i]])])
            if offset[0]:
                own = stack_transform(
                    [kinds[i]], model["jnt_axis"][first + i, None], model["jnt_pos"][first + i, None], offset
                )
                after = own @ after
    return _TreeJoint(_TYPE[types[0]] if count == 1 else "stack", frame @ after, kinds, axes, anchors, start)


def _joint_fields(
    model: CompiledModel, joints: list[_TreeJoint], loops: list[Loop], names: _Names
) -> dict[str, Any]:
    parents = [int(p) - 1 for p in model["body_parentid"][1:]]
    dof_names: list[str] = []
    for kind, name in zip(model["jnt_type"].tolist(), names.dofs, strict=True):
        size = {FREE: 6, BALL: 3}.get(kind, 1)
        dof_names.extend([name] if size == 1 else [f"{name}.{i}" for i in range(size)])
    loop_names = [unique(loop.name, names.taken) for loop in loops]
    for loop, name in zip(loops, loop_names, strict=True):
        if loop.kind == "ball":
            dof_names.extend(f"{name}.{i}" for i in range(3))
    balls = [len(joints) + i for i, loop in enumerate(loops) if loop.kind == "ball"]
    n = len(joints) + len(loops)
    identity = np.broadcast_to(np.eye(4), (len(joints), 4, 4))
    kinds = [kind for joint in joints for kind in joint.kinds] + [primitives.BALL] * len(balls)
    return {
        "joint_names": (*names.joints, *loop_names),
        "joint_types": (*(joint.kind for joint in joints), *(loop.kind for loop in loops)),
        "joint_parents": np.array([*parents, *(loop.parent - 1 for loop in loops)], dtype=np.int64),
        "joint_children": np.array(
            [*range(len(joints)), *(loop.child - 1 for loop in loops)], dtype=np.int64
        ),
        "parent_frames": np.array(
            [*(joint.frame for joint in joints), *(loop.parent_frame for loop in loops)]
        ).reshape(n, 4, 4),
        "child_frames": np.array([*identity, *(loop.child_frame for loop in loops)]).reshape(n, 4, 4),
        "primitive_joint": np.array(
            [j for j, joint in enumerate(joints) for _ in joint.kinds] + balls, dtype=np.int64
        ),
        "primitive_kind": np.array(kinds, dtype=np.int64),
        "primitive_axis": np.concatenate(
            [*(joint.axes for joint in joints), np.tile([0.0, 0, 1], (len(balls), 1))]
        ),
        "primitive_anchor": np.concatenate([*(joint.anchors for joint in joints), np.zeros((len(balls), 3))]),
        "dof_names": tuple(dof_names),
    }


def _unsprung(model: CompiledModel, spring: Springs, loops: list[Loop]) -> NDArray[np.bool_]:
    """Which coordinates have no spring to say where they rest."""
    out = np.zeros(len(model["qpos0"]), dtype=bool)
    for j, kind in enumerate(model["jnt_type"].tolist()):
        start = int(model["jnt_qposadr"][j])
        out[start : start + {FREE: 7, BALL: 4}.get(kind, 1)] = (
            spring.stiffness[model["jnt_dofadr"][j]] == 0 and j not in spring.slack_balls
        )
    return np.concatenate([out, np.ones(4 * sum(loop.kind == "ball" for loop in loops), dtype=bool)])


def _spring_fields(model: CompiledModel, spring: Springs, loops: list[Loop], q: Floats) -> dict[str, Any]:
    balls = sum(loop.kind == "ball" for loop in loops)
    nv = len(spring.stiffness)
    lower, upper = np.full(nv, -np.inf), np.full(nv, np.inf)
    rest = q.copy()  # a joint without a spring rests at the reference
    for j, kind in enumerate(model["jnt_type"].tolist()):
        dof, start = int(model["jnt_dofadr"][j]), int(model["jnt_qposadr"][j])
        if kind in (HINGE, SLIDE):
            if spring.stiffness[dof] > 0:
                rest[start] = spring.rest[dof]
        elif spring.stiffness[dof] > 0 or j in spring.slack_balls:
            size = 7 if kind == FREE else 4
            rest[start : start + size] = model["qpos_spring"][start : start + size]
        if model["jnt_limited"][j] and kind != FREE and not model.disableflags & NO_LIMIT:
            low, high = model["jnt_range"][j].tolist()
            if kind == BALL:
                upper[dof : dof + 3] = high
            else:
                lower[dof], upper[dof] = low, high
    still, at_rest = np.zeros(3 * balls), np.tile([1.0, 0, 0, 0], balls)
    return {
        "stiffness": np.concatenate([spring.stiffness, still]),
        "damping": np.concatenate([spring.damping, still]),
        "armature": np.concatenate([spring.armature, still]),
        "lower": np.concatenate([lower, still - np.inf]),
        "upper": np.concatenate([upper, still + np.inf]),
        "rest": np.concatenate([rest, at_rest]),
        "reference": np.concatenate([q, at_rest]),
    }


# --- couplings, tendons, bodies


def _rows(terms: list[dict[int, float]]) -> Rows:
    start = np.concatenate([[0], np.cumsum([len(row) for row in terms])]).astype(np.int64)
    return Rows(
        start,
        np.array([dof for row in terms for dof in row], dtype=np.int64),
        np.array([c for row in terms for c in row.values()], dtype=np.float64),
    )


def _coupling_fields(couplings: list[Coupling], names: _Names) -> dict[str, Any]:
    taken: set[str] = set()
    return {
        "coupling_names": tuple(unique(c.name, taken) for c in couplings),
        "couplings": _rows([c.terms for c in couplings]),
        "coupling_offset": np.array([c.offset for c in couplings], dtype=np.float64),
    }


def _tendon_fields(
    tendons: list[TendonSpring], names: _Names, q: Floats, model: CompiledModel
) -> dict[str, Any]:
    taken: set[str] = set()
    coordinate = {
        int(d): int(a)
        for d, a, kind in zip(model["jnt_dofadr"], model["jnt_qposadr"], model["jnt_type"], strict=True)
        if kind in (HINGE, SLIDE)
    }
    rest = []
    for t in tendons:
        length = sum(c * q[coordinate[dof]] for dof, c in t.terms.items() if dof in coordinate)
        rest.append(t.rest if t.stiffness else length)
    return {
        "tendon_names": tuple(unique(t.name, taken) for t in tendons),
        "tendons": _rows([t.terms for t in tendons]),
        "tendon_stiffness": np.array([t.stiffness for t in tendons], dtype=np.float64),
        "tendon_damping": np.array([t.damping for t in tendons], dtype=np.float64),
        "tendon_rest": np.array(rest, dtype=np.float64),
    }


def _inertia(model: CompiledModel) -> Floats:
    """About the centre of mass, in body axes. MuJoCo keeps principal moments and their axes."""
    axes = spatial.quat_to_matrix(model["body_iquat"][1:])
    return np.einsum("nij,nj,nkj->nik", axes, model["body_inertia"][1:], axes)
