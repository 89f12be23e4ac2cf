"""`to_mjcf`: a mechanism as MJCF that MuJoCo loads and that moves the same.

Bodies are nested along the spanning tree, at their reference poses, and keep their names. A joint's coordinate is
the same number in MuJoCo's qpos: hinges and slides carry `ref`, balls are written at their identity, and the keyframe
"reference" holds the whole reference configuration. The order of qpos is MuJoCo's, depth first; the quaternion of a
ball whose joint frame is turned against its child is in the child's axes.

Loops close through equality constraints between sites: a ball without springs is a <connect>, a fixed joint a <weld>.
Any other loop joint is cut at its child: a second body with a share of the child's mass and inertia hangs on the joint,
and a <weld> holds the two together. MuJoCo's constraints are soft; these are as stiff as its time step allows.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.errors import FormatError, InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL, HINGE, NQ, SLIDE, stack_transform
from pliant.text import brief, unique_name

__all__ = ["to_mjcf"]

MAX_DEPTH = 490  # elements may be nested 500 deep in MuJoCo's reader
TIMESTEP = 0.001
# The shortest time constant MuJoCo accepts is two time steps, the largest impedance 0.9999.
_STIFF = {"solref": f"{2 * TIMESTEP} 1", "solimp": "0.9999 0.9999 0.001 0.5 2"}
_UNLIMITED = 1e10  # MuJoCo's limits come in pairs
_SIZES = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3}


def to_mjcf(mechanism: Mechanism) -> str:
    """The mechanism as MJCF text that MuJoCo loads and that behaves the same.

    Raises:
        FormatError: MuJoCo cannot express it; the message names the joint or tendon and what to change.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"to_mjcf: a Mechanism expected, not {brief(mechanism)}")
    m, draft = mechanism, _Draft(mechanism)
    depth = int(m.topology.depth.max())
    if depth > MAX_DEPTH:
        raise FormatError(f"'{m.name}' is {depth} bodies deep; MuJoCo reads files of at most {MAX_DEPTH}")
    for chord in m.topology.chords.tolist():
        _close_loop(draft, chord)
    _world(draft)
    for r in range(len(m.couplings)):
        _write_coupling(draft, r)
    for r in range(len(m.tendons)):
        _write_tendon(draft, r)
    key = [_element("key", name="reference", qpos=draft.q)] if draft.q else []
    sections = {
        "asset": [*_meshes(m), *_height_fields(m)],
        "worldbody": draft.body,
        "tendon": draft.tendons,
        "equality": draft.equalities,
        "keyframe": key,
    }
    lines = [
        _opened("mujoco", model=m.name),
        _element("compiler", angle="radian", autolimits="false"),
        _element("option", timestep=str(TIMESTEP), gravity="0 0 -9.81", integrator="implicitfast"),
    ]
    for tag, content in sections.items():
        lines += [f"<{tag}>", *content, f"</{tag}>"] if content else []
    return "\n".join([*lines, "</mujoco>", ""])


class _Draft:
    """The sections of the file.

    Attributes:
        m: the mechanism.
        body: lines of the worldbody.
        equalities, tendons: lines of these sections.
        q: qpos at the reference, in MuJoCo's order.
        sites: per body (-1 the world), lines to be written with it.
        copies: per parent body, the loop joints that carry a copy of their child, and the copy's name.
        share: per body, the fraction of its mass that it and each of its copies have.
        dof_name: MuJoCo's name of a hinge or slide.
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
        self.sites.setdefault(body, []).append(_element("site", name=name, **_placed(pose)))


# --- bodies and shapes


def _world(draft: _Draft) -> None:
    """All bodies, depth first, without recursion: mechanisms may be deep."""
    m = draft.m
    below: list[list[int]] = [
        [] for _ in range(m.body_count + 1)
    ]  # per body its tree joints; the last list is the world's
    for joint in sorted(m.topology.tree.tolist()):
        below[m.joint_parents[joint]].append(joint)

    def following(body: int) -> list[tuple[int, str]]:
        tree = [(joint, m.body_names[m.joint_children[joint]]) for joint in below[body]]
        return [*tree, *draft.copies.get(body, [])][::-1]

    _contents(draft, -1)
    stack = following(-1)
    while stack:
        joint, name = stack.pop()
        if joint < 0:
            draft.body.append("</body>")
            continue
        _body(draft, joint, name)
        stack.append((-1, name))
        child = int(m.joint_children[joint])
        if name == m.body_names[child]:
            _contents(draft, child)
            stack.extend(following(child))
        else:
            draft.body.append(_element("site", name=f"{name}.weld"))


def _body(draft: _Draft, joint: int, name: str) -> None:
    """The start of a body, or of a copy, with its joints and inertia."""
    m = draft.m
    child = int(m.joint_children[joint])
    draft.body.append(_opened("body", name=name, **_placed(_written_pose(m, joint))))
    draft.body += _joint_elements(draft, joint)
    share = draft.share[child]
    if m.mass[child] > 0 or m.inertia[child].any():
        moments, axes = _principal(m.inertia[child] * share)
        quaternion = spatial.quat_from_matrix(axes)
        draft.body.append(
            _element(
                "inertial", pos=m.com[child], quat=quaternion, mass=m.mass[child] * share, diaginertia=moments
            )
        )
    elif name != m.body_names[child]:
        raise FormatError(
            f"joint '{m.joint_names[joint]}' closes a loop at '{m.body_names[child]}', which has no mass; "
            "MuJoCo needs some: join another body, or give this one mass"
        )


def _principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments and axes, to the last digit; MuJoCo's own are to about ten."""
    moments, axes = np.linalg.eigh((inertia + inertia.T) / 2)
    moments = np.maximum(moments, 0.0)
    moments[2] = min(moments[2], moments[0] + moments[1])  # MuJoCo allows no rounding here
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return moments, axes


def _contents(draft: _Draft, body: int) -> None:
    """Shapes and sites of a body, or of the world."""
    m = draft.m
    for shape in m.shapes(m.body_names[body] if body >= 0 else "world"):
        draft.body += _geom(m, shape, body)
    draft.body += draft.sites.get(body, [])


def _geom(m: Mechanism, shape: shapes_module.Shape, body: int) -> list[str]:
    """A shape as a geom without mass or contact, hidden if it was; nothing if MuJoCo has no such shape."""
    own: dict[str, Any] = {}
    kind, pose = shape.kind, shape.pose
    if shape.mesh is not None:
        number = next(i for i, mesh in enumerate(m.shape_table.meshes) if mesh is shape.mesh)
    if shape.kind == "mesh":
        assert shape.mesh is not None
        if not _drawable(shape.mesh):
            return []
        own["mesh"] = f"mesh{number}"
    elif shape.kind == "height field":
        kind, own["hfield"] = "hfield", f"field{number}-{shape.size[2]!r}"
        pose = pose @ spatial.pose((0, 0, shape.heights.min()))  # MuJoCo counts from the lowest point
    elif shape.kind == "plane":
        if body >= 0 and _moves(m, body):
            return []  # MuJoCo has planes on fixed bodies only
        own["size"] = [shape.size[0], shape.size[1], 1.0]
    else:
        own["size"] = shape.size[: _SIZES[shape.kind]]
        if min(own["size"]) <= 0:
            return []
    unseen = {
        "mass": "0",
        "contype": "0",
        "conaffinity": "0",
        "group": "3" if shape.role == "collision" else "0",
    }
    return [_element("geom", type=kind, **_placed(pose), rgba=shape.rgba, **own, **unseen)]


def _moves(m: Mechanism, body: int) -> bool:
    while body >= 0:
        dofs = m.joint_dofs(int(m.topology.tree_joint[body]))
        if dofs.start != dofs.stop:
            return True
        body = int(m.topology.parent[body])
    return False


def _meshes(m: Mechanism) -> list[str]:
    """Meshes, as shells, which need not be closed; nine digits, since MuJoCo keeps single precision."""
    lines = []
    used = set(m.shape_table.mesh[m.shape_table.kind == shapes_module.KINDS.index("mesh")].tolist())
    for i, mesh in enumerate(m.shape_table.meshes):
        if i in used and _drawable(mesh):
            vertices = " ".join(f"{v:.9g}" for v in mesh.vertices.ravel().tolist())
            faces = " ".join(map(str, mesh.faces.ravel().tolist()))
            lines.append(_element("mesh", name=f"mesh{i}", inertia="shell", vertex=vertices, face=faces))
    return lines


def _height_fields(m: Mechanism) -> list[str]:
    """Height fields, rows from the highest y to the lowest; nine digits, since MuJoCo keeps single precision."""
    lines: dict[str, str] = {}
    for body in ("world", *m.body_names):
        for shape in m.shapes(body):
            if shape.kind != "height field":
                continue
            number = next(i for i, mesh in enumerate(m.shape_table.meshes) if mesh is shape.mesh)
            name = f"field{number}-{shape.size[2]!r}"
            heights = shape.heights - shape.heights.min()
            size = (*shape.size[:2], float(heights.max()) or 1.0, shape.size[2])
            elevation = " ".join(f"{v:.9g}" for v in heights[::-1].ravel().tolist())
            rows, columns = heights.shape
            lines[name] = _element(
                "hfield", name=name, nrow=str(rows), ncol=str(columns), size=size, elevation=elevation
            )
    return list(lines.values())


def _drawable(mesh: shapes_module.Mesh) -> bool:
    """Whether MuJoCo takes a mesh: it needs four vertices and a face."""
    return len(mesh.vertices) >= 4 and len(mesh.faces) >= 1


# --- joints: ours are stacks between two frames, MuJoCo's act in the frame of the child body.
#
# `X_p E1(q1) E2(q2) X_c^-1`, with body and joints written at coordinates q: seen from the child, the axis of E2 has
# been moved by X_c, that of E1 by `X_c E2(q2)^-1`, and so on.


def _written_pose(m: Mechanism, joint: int) -> NDArray[np.float64]:
    """Pose of the child in its parent in the file: at the reference, with balls at the identity."""
    part = m.joint_primitives(joint)
    moved = stack_transform(
        m.primitive_kind[part].tolist(), m.primitive_axis[part], m.primitive_anchor[part], _written(m, joint)
    )
    return m.parent_frames[joint] @ moved @ spatial.se3_inverse(m.child_frames[joint])


def _joint_elements(draft: _Draft, joint: int) -> list[str]:
    """The elements of a joint; its coordinates at the reference go to the keyframe."""
    m = draft.m
    part, coordinates = m.joint_primitives(joint), m.joint_coordinates(joint)
    reference = np.array(m.reference[coordinates])
    if _is_free(m, joint):
        first = m.joint_dofs(joint).start
        draft.q.extend(reference.tolist())
        return [
            _element(
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
    """Coordinates of a joint in the file: the reference, with balls at the identity."""
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


def _scalar(draft: _Draft, joint: int, p: int, axis: NDArray, anchor: NDArray, count: int) -> str:
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
    return _element(
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


def _ball(draft: _Draft, joint: int, p: int, anchor: NDArray, count: int) -> str:
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
    return _element(
        "joint",
        name=name if count == 1 else unique_name(f"{name}.ball", draft.joint_names),
        type="ball",
        pos=anchor,
        stiffness=m.stiffness[dof],
        damping=m.damping[dof],
        armature=m.armature[dof],
        limited="true" if np.isfinite(limit) else None,
        range=[0.0, limit] if np.isfinite(limit) else None,
    )


# --- loops, couplings, tendons


def _close_loop(draft: _Draft, chord: int) -> None:
    """A loop-closing joint as an equality constraint between sites, which does not depend on the pose in the file."""
    m = draft.m
    name, child, parent = m.joint_names[chord], int(m.joint_children[chord]), int(m.joint_parents[chord])
    part, dofs = m.joint_primitives(chord), m.joint_dofs(chord)
    kinds = m.primitive_kind[part].tolist()
    label = unique_name(name, draft.equality_names)
    if kinds == [] or (kinds == [BALL] and _is_bare(draft, dofs)):
        inner = spatial.pose(m.primitive_anchor[part.start]) if kinds else np.eye(4)
        draft.add_site(parent, f"{name}.parent", m.parent_frames[chord] @ inner)
        draft.add_site(child, f"{name}.child", m.child_frames[chord] @ inner)
        tag, ends = "connect" if kinds else "weld", (f"{name}.parent", f"{name}.child")
    else:
        copy = unique_name(f"{m.body_names[child]}.{name}", draft.body_names)
        draft.copies.setdefault(parent, []).append((chord, copy))
        draft.share[child] = 1.0 / (
            1.0 / draft.share[child] + 1.0
        )  # 1/2, 1/3, ...: the body and its copies share alike
        draft.add_site(child, f"{copy}.body", np.eye(4))
        tag, ends = "weld", (f"{copy}.body", f"{copy}.weld")
    draft.equalities.append(_element(tag, name=label, site1=ends[0], site2=ends[1], **_STIFF))


def _is_bare(draft: _Draft, dofs: slice) -> bool:
    """Whether a joint has neither springs nor limits."""
    m = draft.m
    loaded = any(getattr(m, label)[dofs].any() for label in ("stiffness", "damping", "armature"))
    pulled = np.isin(m.tendons.dof, np.arange(dofs.start, dofs.stop)).any()
    return not loaded and not pulled and bool(np.isinf(m.upper[dofs]).all())


def _write_coupling(draft: _Draft, r: int) -> None:
    """A coupling: of up to two joints directly, of more through a tendon of constant length."""
    m = draft.m
    dofs, coefficients = m.couplings.row(r)
    name, offset = unique_name(m.coupling_names[r], draft.equality_names), float(m.coupling_offset[r])
    at = m.reference[m.dof_coordinate[dofs]]
    used = coefficients != 0
    dofs, coefficients, at = dofs[used].tolist(), coefficients[used], at[used]
    if len(dofs) > 2:
        tendon = unique_name(f"{name}.sum", draft.tendon_names)
        draft.tendons += [_opened("fixed", name=tendon), *_terms(draft, dofs, coefficients), "</fixed>"]
        constant = [offset - coefficients @ at, 0, 0, 0, 0]
        draft.equalities.append(_element("tendon", name=name, tendon1=tendon, polycoef=constant, **_STIFF))
        return
    # y - y0 = a0 + a1 (x - x0), where y0 and x0 are the reference.
    slope = -coefficients[1] / coefficients[0] if len(dofs) == 2 else 0.0
    constant = offset / coefficients[0] - at[0] + (slope * at[1] if len(dofs) == 2 else 0.0)
    second = draft.dof_name[dofs[1]] if len(dofs) == 2 else None
    draft.equalities.append(
        _element(
            "joint",
            name=name,
            joint1=draft.dof_name[dofs[0]],
            joint2=second,
            polycoef=[constant, slope, 0, 0, 0],
            **_STIFF,
        )
    )


def _write_tendon(draft: _Draft, r: int) -> None:
    """A spring on a sum of coordinates, as a fixed tendon."""
    m = draft.m
    dofs, coefficients = m.tendons.row(r)
    name = m.tendon_names[r]
    turning = m.dof_kind[dofs] == BALL
    if turning.any():
        raise FormatError(
            f"tendon '{name}' acts on '{m.dof_names[dofs[turning][0]]}' of a ball; MuJoCo's tendons act on hinges "
            "and slides only: use those, or a plain stiffness on the ball"
        )
    rest = float(m.tendon_rest[r])
    if rest == -1:
        rest = float(np.nextafter(-1.0, 0.0))  # to MuJoCo, -1 means "as in the reference pose"
    stiffness, damping = m.tendon_stiffness[r], m.tendon_damping[r]
    draft.tendons += [
        _opened("fixed", name=name, stiffness=stiffness, damping=damping, springlength=rest),
        *_terms(draft, dofs.tolist(), coefficients),
        "</fixed>",
    ]


def _terms(draft: _Draft, dofs: list[int], coefficients: NDArray) -> list[str]:
    names = [draft.dof_name[dof] for dof in dofs]
    return [_element("joint", joint=name, coef=c) for name, c in zip(names, coefficients, strict=True)]


# --- elements


def _element(tag: str, **attributes: Any) -> str:
    """An element without children. Numbers are written so that they read back the same; None is left out."""
    return _opened(tag, **attributes)[:-1] + "/>"


def _opened(tag: str, **attributes: Any) -> str:
    """The start tag of an element."""
    parts = []
    for key, value in attributes.items():
        if value is None:
            continue
        if not isinstance(value, str):
            value = " ".join(repr(float(v)) for v in np.ravel(value))
        parts.append(f" {key}={quoteattr(value)}")
    return f"<{tag}{''.join(parts)}>"


def _placed(pose: NDArray[np.float64]) -> dict[str, Any]:
    """The attributes of a pose."""
    return {"pos": pose[:3, 3], "quat": spatial.quat_from_matrix(pose[:3, :3])}
