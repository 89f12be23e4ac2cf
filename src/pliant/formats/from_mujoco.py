"""A compiled MuJoCo model as a `Mechanism`.

MuJoCo's bodies and their order are ours, all joints of one MuJoCo body become one joint to its parent, and the
coordinates of that tree are MuJoCo's qpos. Loop-closing joints come after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.checks import EARTH
from pliant.errors import FormatError, InputError
from pliant.formats.compiler import CompiledModel
from pliant.formats.left_out import LeftOut
from pliant.formats.servos import BALL, FREE, HINGE, SLIDE, Springs, TendonSpring, fixed_tendon, springs
from pliant.mechanism import Mechanism, Rows, ShapeTable
from pliant.mechanism import joints as primitives
from pliant.mechanism.joints import stack_transform
from pliant.mechanism.loop_closure import close_reference
from pliant.text import brief, listed, unique_name

__all__ = ["convert", "keyframes", "refuse_mass_of_meshes", "without_meshes"]

_KIND = {HINGE: primitives.HINGE, SLIDE: primitives.SLIDE, BALL: primitives.BALL}
_TYPE = {HINGE: "hinge", SLIDE: "slide", BALL: "ball", FREE: "free"}
NO_CONSTRAINT, NO_EQUALITY, NO_LIMIT = 1 << 0, 1 << 1, 1 << 3  # bits of disableflags
_CONNECT, _WELD, _JOINT, _TENDON = range(4)
_SITE = 6  # mjOBJ_SITE
_GEOM = {
    0: "plane",
    1: "height field",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}
_PLANE, _HEIGHT_FIELD, _MESH = 0, 1, 7
_UNITS = {"centimetres": 100.0, "millimetres": 1000.0}  # in a metre
_SAME = 0.01  # how near gravity in one of them is to 9.81 m/s², as a fraction
_GRAVITY = 0.02  # m/s²: 9.8 and 9.80665 are the same as 9.81
_DEFAULT_RGBA = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)  # then a material's colour counts
Floats = NDArray[np.float64]


def convert(
    model: CompiledModel,
    name: str,
    keyframe: str | int | None,
    joint_names: dict[str, str],
    report: LeftOut,
) -> Mechanism:
    """The mechanism of a compiled model.

    Args:
        model: the compiled model.
        name: its name, if the model has none.
        keyframe: name or number of the reference pose; None: the model's default.
        joint_names: names for bodies' joints that MuJoCo does not name.
        report: what cannot be represented; added to.
    """
    key = _keyframe(model, keyframe)
    names = _Names(model, joint_names)
    joints = [_tree_joint(model, body, key) for body in range(1, len(model["body_mass"]))]
    q = _coordinates(model, key)
    poses = _poses(model, joints, q)
    spring = springs(model, key, names.dofs, names.tendons, report)
    loops, couplings = _equalities(model, poses, report)
    lifted = np.flatnonzero(model["body_gravcomp"][1:])
    report.name("body with gravity compensation", [names.bodies[b] for b in lifted.tolist()])
    _report_surroundings(model, report)
    for kind in ("flex", "skin", "plugin"):
        report.add(kind, model.counts[f"n{kind}"])
    fields: dict[str, Any] = {
        "name": model.name if model.name not in ("", "MuJoCo Model") else name,
        "body_names": names.bodies,
        "mass": model["body_mass"][1:],
        "com": model["body_ipos"][1:],
        "inertia": _inertia(model),
        "reference_poses": poses[1:],
        "shape_table": _shape_table(model, report),
        **_joint_fields(model, joints, loops, names),
        **_spring_fields(model, spring, loops, q),
        **_coupling_fields(couplings),
        **_tendon_fields(spring.tendons, q, model),
    }
    return close_reference(fields, rests_at_reference=_unsprung(model, spring, loops))


def _report_surroundings(model: CompiledModel, report: LeftOut) -> None:
    """Name gravity that is not the usual one, and a fluid."""
    if not np.allclose(model.gravity, EARTH, rtol=0, atol=_GRAVITY):
        x, y, z = model.gravity
        larger = float(np.linalg.norm(model.gravity)) / -EARTH[2]
        unit = next((word for word, n in _UNITS.items() if abs(larger / n - 1) < _SAME), None)
        meant = (
            f", as of a file in {unit}: pliant takes its numbers as metres, kilograms and seconds"
            if unit
            else ""
        )
        report.name("gravity other than (0, 0, -9.81) m/s²", [f"({x:g}, {y:g}, {z:g}) m/s²{meant}"])
    density, viscosity, *wind = model.fluid
    if density or viscosity:
        report.name("fluid", [f"{density:g} kg/m³, {viscosity:g} Pa s"])
        if any(wind):
            report.name("wind", [f"({', '.join(f'{v:g}' for v in wind)}) m/s"])


# --- names


class _Names:
    """Unique names: MuJoCo's, or made from kind and number."""

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
                self.joints.append(unique_name(wish, taken))
        self.taken = taken | set(self.joints)


def _unique(names: list[str], kind: str, taken: set[str] | None = None) -> list[str]:
    taken = set(taken or ()) | {name for name in names if name}
    return [name or unique_name(f"{kind}{i}", taken) for i, name in enumerate(names, 1)]


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
    raise InputError(f"no keyframe {brief(keyframe)}; {there}")


def keyframes(model: CompiledModel) -> tuple[str, ...]:
    """Names of the keyframes, or their numbers where they have none."""
    return tuple(name or str(i) for i, name in enumerate(model.names["key"]))


# --- meshes that were not read


def refuse_mass_of_meshes(model: CompiledModel, other: CompiledModel, path: Path) -> None:
    """Refuse bodies whose mass or inertia comes from meshes: it differs between placeholders of two sizes."""
    same = np.ones(len(model["body_mass"]), dtype=bool)
    for word in ("body_mass", "body_inertia", "body_ipos"):
        close = np.isclose(model[word], other[word], rtol=1e-6, atol=0.0)
        same &= close.reshape(len(same), -1).all(axis=1)
    if not same.all():
        bodies = [model.names["body"][b] or f"body {b}" for b in np.flatnonzero(~same).tolist()]
        raise FormatError(
            f"'{path}': mass and inertia of {listed(bodies, 5)} come from meshes: read them, or give these bodies an "
            "<inertial>"
        )


def without_meshes(model: CompiledModel, other: CompiledModel) -> CompiledModel:
    """The model without geoms that are meshes, or fitted to one: their sizes differ between placeholders."""
    fitted = (model["geom_size"] != other["geom_size"]).any(axis=1)
    keep = (model["geom_type"] != _MESH) & ~fitted
    geoms = {word: values[keep] for word, values in model.arrays.items() if word.startswith("geom_")}
    return replace(model, arrays=model.arrays | geoms)


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
        moved = stack_transform(joint.kinds, joint.axes, joint.anchors, q[joint.coordinates])
        poses[body] = poses[model["body_parentid"][body]] @ joint.frame @ moved
    return poses


# --- joints


@dataclass
class _TreeJoint:
    """All joints of one MuJoCo body: a frame on the parent and a stack of primitives that ends in the body's frame.

    Attributes:
        kind: its type.
        frame: 4 x 4.
        kinds, axes, anchors: of the primitives.
        start: its first coordinate in qpos.
    """

    kind: str
    frame: Floats
    kinds: list[int]
    axes: Floats
    anchors: Floats
    start: int

    @property
    def coordinates(self) -> slice:
        """Its part of qpos."""
        return slice(self.start, self.start + (int(primitives.NQ[self.kinds].sum()) if self.kinds else 0))


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
    model: CompiledModel, joints: list[_TreeJoint], loops: list[_Loop], names: _Names
) -> dict[str, Any]:
    parents = [int(p) - 1 for p in model["body_parentid"][1:]]
    dof_names: list[str] = []
    for kind, name in zip(model["jnt_type"].tolist(), names.dofs, strict=True):
        size = {FREE: 6, BALL: 3}.get(kind, 1)
        dof_names.extend([name] if size == 1 else [f"{name}.{i}" for i in range(size)])
    loop_names = [unique_name(loop.name, names.taken) for loop in loops]
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


def _unsprung(model: CompiledModel, spring: Springs, loops: list[_Loop]) -> NDArray[np.bool_]:
    """Coordinates without a spring, whose rest follows the reference, (nq,)."""
    out = np.zeros(len(model["qpos0"]), dtype=bool)
    for j, kind in enumerate(model["jnt_type"].tolist()):
        start = int(model["jnt_qposadr"][j])
        out[start : start + {FREE: 7, BALL: 4}.get(kind, 1)] = (
            spring.stiffness[model["jnt_dofadr"][j]] == 0 and j not in spring.slack_balls
        )
    return np.concatenate([out, np.ones(4 * sum(loop.kind == "ball" for loop in loops), dtype=bool)])


def _spring_fields(model: CompiledModel, spring: Springs, loops: list[_Loop], q: Floats) -> dict[str, Any]:
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


def _coupling_fields(couplings: list[_Coupling]) -> dict[str, Any]:
    taken: set[str] = set()
    return {
        "coupling_names": tuple(unique_name(c.name, taken) for c in couplings),
        "couplings": Rows.pack((list(c.terms), list(c.terms.values())) for c in couplings),
        "coupling_offset": np.array([c.offset for c in couplings], dtype=np.float64),
    }


def _tendon_fields(tendons: list[TendonSpring], q: Floats, model: CompiledModel) -> dict[str, Any]:
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
        "tendon_names": tuple(unique_name(t.name, taken) for t in tendons),
        "tendons": Rows.pack((list(t.terms), list(t.terms.values())) for t in tendons),
        "tendon_stiffness": np.array([t.stiffness for t in tendons], dtype=np.float64),
        "tendon_damping": np.array([t.damping for t in tendons], dtype=np.float64),
        "tendon_rest": np.array(rest, dtype=np.float64),
    }


def _inertia(model: CompiledModel) -> Floats:
    """Inertias about the centre of mass, body axes, (bodies, 3, 3), from MuJoCo's principal moments and axes."""
    axes = spatial.quat_to_matrix(model["body_iquat"][1:])
    return np.einsum("nij,nj,nkj->nik", axes, model["body_inertia"][1:], axes)


# --- loops and couplings


@dataclass
class _Loop:
    """A loop-closing joint: "ball" or "fixed", between bodies by MuJoCo's number (0 is the world)."""

    name: str
    kind: str
    parent: int
    child: int
    parent_frame: Floats
    child_frame: Floats


@dataclass
class _Coupling:
    """A coupling: `sum(terms[dof] * q[dof]) = offset`."""

    name: str
    terms: dict[int, float]
    offset: float


def _equalities(model: CompiledModel, poses: Floats, report: LeftOut) -> tuple[list[_Loop], list[_Coupling]]:
    """Loops and couplings of a model; `poses` are its bodies at the reference, the world first."""
    found: list[_Loop] = []
    couplings: list[_Coupling] = []
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
            report.name("constraint on a flex", [name or f"constraint {e}"])
    return found, couplings


def _loop(model: CompiledModel, e: int, kind: int, poses: NDArray, name: str) -> _Loop:
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
    return _Loop(name, "ball" if ball else "fixed", parent, child, *frames)


def _coupling(model: CompiledModel, e: int, kind: int, name: str, report: LeftOut) -> _Coupling | None:
    """The coupling `y - y0 = a0 + a1 (x - x0)` of joints or fixed tendons y and x; None if it is not linear."""
    a0, a1 = model["eq_data"][e, :2].tolist()
    first, second = int(model["eq_obj1id"][e]), int(model["eq_obj2id"][e])
    if second >= 0 and model["eq_data"][e, 2:5].any():
        report.name("nonlinear coupling", [name])
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
            report.name("coupling of spatial tendons", [name])
            return None
        offset += factor * start
        for dof, c in part.items():
            terms[dof] = terms.get(dof, 0.0) + factor * c
    terms = {dof: c for dof, c in terms.items() if c != 0}
    return _Coupling(name, terms, offset) if terms else None


# --- shapes


def _shape_table(model: CompiledModel, report: LeftOut) -> ShapeTable:
    """The shapes of all geoms; those of the world have body -1. Other kinds are counted in `report`."""
    kinds, number = model["geom_type"].tolist(), model["geom_dataid"].tolist()
    fields = [_heights(model, field) for field in range(len(model["hfield_nrow"]))]
    # A field whose heights were not in the file was compiled as the smallest flat one.
    empty = [kind == _HEIGHT_FIELD and fields[i].shape == (2, 2) and not fields[i].any()
             for kind, i in zip(kinds, number, strict=True)]  # fmt: skip
    report.add("height field", sum(empty))
    report.add("signed distance field", sum(kind not in _GEOM for kind in kinds))
    keep = np.array([g for g, kind in enumerate(kinds) if kind in _GEOM and not empty[g]], dtype=np.int64)
    if not len(keep):
        return ShapeTable()
    kind = model["geom_type"][keep]
    size = np.array(model["geom_size"][keep], dtype=np.float64)
    size[kind == _MESH] = 0  # there it is a bounding box
    size[kind == _PLANE, 2] = 0  # the spacing of a plane's grid
    rgba = np.array(model["geom_rgba"][keep])
    material = model["geom_matid"][keep]
    from_material = (material >= 0) & (rgba == _DEFAULT_RGBA).all(axis=1)
    rgba[from_material] = model["mat_rgba"][material[from_material]]
    field = kind == _HEIGHT_FIELD
    data = np.where((kind == _MESH) | field, model["geom_dataid"][keep], -1)
    size[field] = model["hfield_size"][data[field]][:, [0, 1, 3]]
    # Meshes first, then height fields: key of a mesh -> its place in the table.
    keys = [(bool(f), int(i)) for f, i in zip(field, data, strict=True)]
    renumber = {key: i for i, key in enumerate(sorted({key for key in keys if key[1] >= 0}))}
    return ShapeTable(
        body=model["geom_bodyid"][keep].astype(np.int64) - 1,
        kind=np.array([shapes_module.KINDS.index(_GEOM[k]) for k in kind.tolist()], dtype=np.int64),
        size=size,
        pose=spatial.pose(model["geom_pos"][keep], model["geom_quat"][keep]),
        rgba=np.clip(rgba.astype(np.float64), 0.0, 1.0),
        mesh=np.array([renumber.get(key, -1) for key in keys], dtype=np.int64),
        role=_roles(model, keep),
        meshes=tuple(
            shapes_module.height_field_mesh(fields[i], *model["hfield_size"][i, :2].tolist())
            if is_field
            else _mesh(model, i)
            for is_field, i in renumber
        ),
    )


def _roles(model: CompiledModel, keep: NDArray[np.int64]) -> NDArray[np.int64]:
    """Roles of geoms: those that MuJoCo lets touch collide; those in groups 0 to 2, its default, are shown.

    A body with visual meshes, as in URDF, does not show its collision geoms.
    """
    touches = (model["geom_contype"][keep] != 0) | (model["geom_conaffinity"][keep] != 0)
    body = model["geom_bodyid"][keep]
    looks = np.unique(body[~touches & (model["geom_type"][keep] == _MESH)])
    shown = (model["geom_group"][keep] <= 2) & ~np.isin(body, looks)
    both, visual, collision = (shapes_module.ROLES.index(role) for role in ("both", "visual", "collision"))
    return np.where(touches, np.where(shown, both, collision), visual).astype(np.int64)


def _heights(model: CompiledModel, field: int) -> Floats:
    """The heights (rows, columns) of a height field."""
    rows, columns = int(model["hfield_nrow"][field]), int(model["hfield_ncol"][field])
    start = int(model["hfield_adr"][field])
    data = model["hfield_data"][start : start + rows * columns].astype(np.float64)
    return data.reshape(rows, columns) * float(model["hfield_size"][field, 2])


def _mesh(model: CompiledModel, mesh: int) -> shapes_module.Mesh:
    start, count = int(model["mesh_vertadr"][mesh]), int(model["mesh_vertnum"][mesh])
    first, faces = int(model["mesh_faceadr"][mesh]), int(model["mesh_facenum"][mesh])
    vertices = model["mesh_vert"][start : start + count].astype(np.float64)
    triangles = model["mesh_face"][first : first + faces].astype(np.int32)
    vertices.flags.writeable = triangles.flags.writeable = False
    return shapes_module.Mesh(vertices, triangles)
