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

import numpy as np

from pliant import shapes as shapes_module
from pliant import spatial
from pliant.errors import FormatError, InputError
from pliant.formats.mjcf_constraints import close_loop, write_coupling, write_tendon
from pliant.formats.mjcf_elements import TIMESTEP, Draft, element, opened, placed
from pliant.formats.mjcf_joints import joint_elements, written_pose
from pliant.mechanism import Mechanism

__all__ = ["to_mjcf"]

MAX_DEPTH = 490  # elements may be nested 500 deep in MuJoCo's reader
_SIZES = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3}


def to_mjcf(mechanism: Mechanism) -> str:
    """The mechanism as MJCF text that MuJoCo loads and that behaves the same.

    Raises:
        FormatError: MuJoCo cannot express it; the message names the joint or tendon and what to change.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"to_mjcf: a Mechanism expected, not {mechanism!r}")
    m, draft = mechanism, Draft(mechanism)
    depth = int(m.topology.depth.max())
    if depth > MAX_DEPTH:
        raise FormatError(f"'{m.name}' is {depth} bodies deep; MuJoCo reads files of at most {MAX_DEPTH}")
    for chord in m.topology.chords.tolist():
        close_loop(draft, chord)
    _world(draft)
    for r in range(len(m.couplings)):
        write_coupling(draft, r)
    for r in range(len(m.tendons)):
        write_tendon(draft, r)
    key = [element("key", name="reference", qpos=draft.q)] if draft.q else []
    sections = {
        "asset": [*_meshes(m), *_height_fields(m)],
        "worldbody": draft.body,
        "tendon": draft.tendons,
        "equality": draft.equalities,
        "keyframe": key,
    }
    lines = [
        opened("mujoco", model=m.name),
        element("compiler", angle="radian", autolimits="false"),
        element("option", timestep=str(TIMESTEP), gravity="0 0 -9.81", integrator="implicitfast"),
    ]
    for tag, content in sections.items():
        lines += [f"<{tag}>", *content, f"</{tag}>"] if content else []
    return "\n".join([*lines, "</mujoco>", ""])


def _world(draft: Draft) -> None:
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
            draft.body.append(element("site", name=f"{name}.weld"))


def _body(draft: Draft, joint: int, name: str) -> None:
    """The start of a body, or of a copy, with its joints and inertia."""
    m = draft.m
    child = int(m.joint_children[joint])
    draft.body.append(opened("body", name=name, **placed(written_pose(m, joint))))
    draft.body += joint_elements(draft, joint)
    share = draft.share[child]
    if m.mass[child] > 0 or m.inertia[child].any():
        moments, axes = _principal(m.inertia[child] * share)
        quaternion = spatial.quat_from_matrix(axes)
        draft.body.append(
            element(
                "inertial",
                pos=m.com[child],
                quat=quaternion,
                mass=m.mass[child] * share,
                diaginertia=moments,
            )
        )
    elif name != m.body_names[child]:
        raise FormatError(
            f"joint '{m.joint_names[joint]}' closes a loop at '{m.body_names[child]}', which has no mass; "
            "MuJoCo needs some: join another body, or give this one mass"
        )


def _principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments and axes; ours to the last digit, where MuJoCo's own would be to ten or so."""
    moments, axes = np.linalg.eigh((inertia + inertia.T) / 2)
    moments = np.maximum(moments, 0.0)
    moments[2] = min(moments[2], moments[0] + moments[1])  # MuJoCo allows no rounding here
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return moments, axes


def _contents(draft: Draft, body: int) -> None:
    """Shapes and sites of a body, or of the world."""
    m = draft.m
    for shape in m.shapes(m.body_names[body] if body >= 0 else "world"):
        draft.body += _geom(m, shape, body)
    draft.body += draft.sites.get(body, [])


def _geom(m: Mechanism, shape: shapes_module.Shape, body: int) -> list[str]:
    """A shape without mass that touches nothing; what was hidden stays so. None if MuJoCo has no such shape."""
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
    return [element("geom", type=kind, **placed(pose), rgba=shape.rgba, **own, **unseen)]


def _moves(m: Mechanism, body: int) -> bool:
    while body >= 0:
        dofs = m.joint_dofs(int(m.topology.tree_joint[body]))
        if dofs.start != dofs.stop:
            return True
        body = int(m.topology.parent[body])
    return False


def _meshes(m: Mechanism) -> list[str]:
    """MuJoCo keeps vertices in single precision: nine digits are all of it. As shells they need not be closed."""
    lines = []
    used = set(m.shape_table.mesh[m.shape_table.kind == shapes_module.KINDS.index("mesh")].tolist())
    for i, mesh in enumerate(m.shape_table.meshes):
        if i in used and _drawable(mesh):
            vertices = " ".join(f"{v:.9g}" for v in mesh.vertices.ravel().tolist())
            faces = " ".join(map(str, mesh.faces.ravel().tolist()))
            lines.append(element("mesh", name=f"mesh{i}", inertia="shell", vertex=vertices, face=faces))
    return lines


def _height_fields(m: Mechanism) -> list[str]:
    """MuJoCo reads the rows from the highest y to the lowest, and keeps heights in single precision."""
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
            lines[name] = element(
                "hfield", name=name, nrow=str(rows), ncol=str(columns), size=size, elevation=elevation
            )
    return list(lines.values())


def _drawable(mesh: shapes_module.Mesh) -> bool:
    """MuJoCo wants at least four vertices and a face."""
    return len(mesh.vertices) >= 4 and len(mesh.faces) >= 1
