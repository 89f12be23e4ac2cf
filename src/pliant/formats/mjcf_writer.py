"""`to_mjcf`: a mechanism as MJCF that MuJoCo loads and that moves the same.

Bodies are nested along the spanning tree, at their reference poses, and keep their names. A joint's coordinate is the
same number in MuJoCo's qpos: hinges and slides carry `ref`, balls are written at their identity, and the keyframe
"reference" holds the whole reference configuration. The order of qpos is MuJoCo's, depth first.

Loops close through equality constraints between sites: a ball without springs is a <connect>, a fixed joint a <weld>.
Any other loop joint is cut at its child: a second body with a share of the child's mass and inertia hangs on the joint,
and a <weld> holds the two together. MuJoCo's constraints are soft; ours here are as stiff as its time step allows.
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

__all__ = ["to_mjcf"]

MAX_DEPTH = 490  # elements may be nested 500 deep in MuJoCo's reader
TIMESTEP = 0.001
# The shortest time constant MuJoCo accepts is two time steps, the largest impedance 0.9999.
_STIFF = {"solref": f"{2 * TIMESTEP} 1", "solimp": "0.9999 0.9999 0.001 0.5 2"}
_GEOM = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3}
_UNLIMITED = 1e10  # MuJoCo's limits come in pairs


def to_mjcf(mechanism: Mechanism) -> str:
    """The mechanism as MJCF text that MuJoCo loads and that behaves the same.

    Raises:
        FormatError: MuJoCo cannot express it; the message names the joint or tendon and what to change.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"to_mjcf: a Mechanism expected, not {mechanism!r}")
    return _Writer(mechanism).text()


def _element(tag: str, attributes: dict[str, Any], *, close: bool = True) -> str:
    parts = []
    for key, value in attributes.items():
        if value is None:
            continue
        if not isinstance(value, str):
            value = " ".join(repr(float(v)) for v in np.ravel(value))
        parts.append(f" {key}={quoteattr(value)}")
    return f"<{tag}{''.join(parts)}{'/' if close else ''}>"


class _Writer:
    """Collects the sections of the file while walking the tree."""

    def __init__(self, m: Mechanism):
        self.m = m
        self.lines: list[str] = []
        self.equalities: list[str] = []
        self.tendons: list[str] = []
        self.q: list[float] = []
        self.sites: dict[int, list[str]] = {}  # per body (-1 the world), to be written with it
        self.copies: dict[int, list[tuple[int, str]]] = {}  # per parent body: chord joint and the copy's name
        self.share = np.ones(m.bodies)
        self.names = set(m.joint_names) | set(m.dof_names)
        self.dof_name: dict[int, str] = {}  # what MuJoCo knows a hinge or slide by
        self.body_names = set(m.body_names)
        self.equality_names: set[str] = set()
        self.tendon_names = set(m.tendon_names)
        self.mesh_number = {id(mesh): i for i, mesh in enumerate(m.shape_table.meshes)}

    def text(self) -> str:
        m = self.m
        if int(m.topology.depth.max()) > MAX_DEPTH:
            raise FormatError(f"'{m.name}' is {int(m.topology.depth.max())} bodies deep; MuJoCo reads files of at most {MAX_DEPTH}")
        for chord in m.topology.chords.tolist():
            self._close(chord)
        self._world()
        for r in range(len(m.couplings)):
            self._couple(r)
        for r in range(len(m.tendons)):
            self._tendon(r)
        sections = [
            _element("mujoco", {"model": m.name}, close=False),
            _element("compiler", {"angle": "radian", "autolimits": "false", "balanceinertia": "false"}),
            _element("option", {"timestep": str(TIMESTEP), "gravity": "0 0 -9.81", "integrator": "implicitfast"}),
            *self._section("asset", self._meshes()),
            *self._section("worldbody", self.lines),
            *self._section("tendon", self.tendons),
            *self._section("equality", self.equalities),
        ]
        if self.q:
            sections += self._section("keyframe", [_element("key", {"name": "reference", "qpos": self.q})])
        return "\n".join([*sections, "</mujoco>", ""])

    @staticmethod
    def _section(tag: str, lines: list[str]) -> list[str]:
        return [f"<{tag}>", *lines, f"</{tag}>"] if lines else []

    def _name(self, wish: str, taken: set[str]) -> str:
        name, n = wish, 1
        while name in taken:
            n += 1
            name = f"{wish}_{n}"
        taken.add(name)
        return name

    # --- bodies ----------------------------------------------------------------------------------------------------

    def _world(self) -> None:
        m = self.m
        children: list[list[int]] = [[] for _ in range(m.bodies + 1)]  # joints below each body; the last list is the world's
        for joint in sorted(m.topology.tree.tolist()):
            children[m.joint_parents[joint]].append(joint)
        self._contents(-1)
        stack: list[tuple[str, int, str]] = []
        self._push(stack, -1, children)
        while stack:
            what, index, copy = stack.pop()
            if what == "end":
                self.lines.append("</body>")
                continue
            child = int(m.joint_children[index])
            self._body(index, m.body_names[child] if what == "body" else copy)
            stack.append(("end", index, ""))
            if what == "body":
                self._contents(child)
                self._push(stack, child, children)
            else:
                self.lines.append(_element("site", {"name": f"{copy}.weld", "pos": np.zeros(3)}))

    def _push(self, stack: list[tuple[str, int, str]], body: int, children: list[list[int]]) -> None:
        entries = [("body", joint, "") for joint in children[body]]
        entries += [("copy", joint, name) for joint, name in self.copies.get(body, [])]
        stack.extend(reversed(entries))

    def _body(self, joint: int, name: str) -> None:
        """The start of a body, with its joints and inertia."""
        m = self.m
        child, part = int(m.joint_children[joint]), m.joint_primitives(joint)
        kinds, axes, anchors = m.primitive_kind[part], m.primitive_axis[part], m.primitive_anchor[part]
        q = np.array(m.reference[m.joint_coordinates(joint)])
        free = self._is_free(joint)
        if not free:  # MuJoCo's ball is the identity where its body is written
            for start in (m.primitive_coordinate[part.start : part.stop][kinds == BALL] - m.joint_coordinates(joint).start).tolist():
                q[start : start + 4] = 1, 0, 0, 0
        pose = m.parent_frames[joint] @ stack_transform(kinds, axes, anchors, q) @ spatial.se3_inverse(m.child_frames[joint])
        self.lines.append(_element("body", {"name": name, **_placed(pose)}, close=False))
        if free:
            self._free(joint)
        else:
            self._joints(joint, q)
        mass = m.mass[child] * self.share[child]
        if mass > 0 or m.inertia[child].any():
            moments, axes3 = np.linalg.eigh((m.inertia[child] + m.inertia[child].T) / 2)
            moments = np.maximum(moments, 0.0)
            moments[2] = min(moments[2], moments[0] + moments[1])  # rounding may exceed it by a bit
            while moments[0] + moments[1] < moments[2]:
                moments[2] = np.nextafter(moments[2], 0)
            if np.linalg.det(axes3) < 0:
                axes3[:, 0] *= -1
            self.lines.append(_element("inertial", {
                "pos": m.com[child], "quat": spatial.quat_from_matrix(axes3), "mass": mass,
                "diaginertia": moments * self.share[child]}))  # fmt: skip
        elif name != m.body_names[child]:
            raise FormatError(f"joint '{m.joint_names[joint]}' closes a loop at '{m.body_names[child]}', which has no mass; "
                              "MuJoCo needs some: join another body, or give this one mass")  # fmt: skip

    def _contents(self, body: int) -> None:
        """Shapes and sites of a body, or of the world."""
        m = self.m
        for shape in m.shapes(m.body_names[body] if body >= 0 else "world"):
            self._geom(shape, body)
        self.lines.extend(self.sites.get(body, []))

    def _geom(self, shape: shapes_module.Shape, body: int) -> None:
        """A shape to look at: it has no mass and touches nothing."""
        attributes: dict[str, Any] = {"type": shape.kind, **_placed(shape.pose), "rgba": shape.rgba, "mass": "0",
                                      "contype": "0", "conaffinity": "0"}  # fmt: skip
        if shape.kind == "mesh":
            assert shape.mesh is not None
            if not _drawable(shape.mesh):
                return
            attributes["mesh"] = f"mesh{self.mesh_number[id(shape.mesh)]}"
        elif shape.kind == "plane":
            if body >= 0 and self._moves(body):
                return  # MuJoCo has planes on fixed bodies only
            attributes["size"] = [shape.size[0], shape.size[1], 1.0]
        else:
            size = shape.size[: _GEOM[shape.kind]]
            if min(size) <= 0:
                return
            attributes["size"] = size
        self.lines.append(_element("geom", attributes))

    def _moves(self, body: int) -> bool:
        while body >= 0:
            joint = int(self.m.topology.tree_joint[body])
            if self.m.joint_dofs(joint).start != self.m.joint_dofs(joint).stop:
                return True
            body = int(self.m.topology.parent[body])
        return False

    def _meshes(self) -> list[str]:
        return [
            # MuJoCo keeps vertices in single precision: nine digits are all of it.
            _element("mesh", {"name": f"mesh{i}", "inertia": "shell",
                              "vertex": " ".join(f"{v:.9g}" for v in mesh.vertices.ravel().tolist()),
                              "face": " ".join(map(str, mesh.faces.ravel().tolist()))})
            for i, mesh in enumerate(self.m.shape_table.meshes) if _drawable(mesh)
        ]  # fmt: skip

    # --- joints ----------------------------------------------------------------------------------------------------

    def _is_free(self, joint: int) -> bool:
        """Whether MuJoCo's free joint has the same coordinates: the pose of the body in the world."""
        m = self.m
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

    def _free(self, joint: int) -> None:
        m = self.m
        first = m.joint_dofs(joint).start
        self.lines.append(_element("joint", {"name": m.joint_names[joint], "type": "free", "damping": m.damping[first],
                                             "armature": m.armature[first]}))  # fmt: skip
        self.q.extend(m.reference[m.joint_coordinates(joint)].tolist())

    def _joints(self, joint: int, q: NDArray[np.float64]) -> None:
        """The primitives of a joint, in the child's frame where the body is written (coordinates q)."""
        m = self.m
        name, part = m.joint_names[joint], m.joint_primitives(joint)
        kinds = m.primitive_kind[part]
        if (kinds == BALL).any() and ((kinds == HINGE).any() or (kinds == BALL).sum() > 1):
            raise FormatError(f"joint '{name}': MuJoCo allows no other rotation beside a ball; put a small body between them")
        # X_p E1(q1) E2(q2) X_c^-1: seen from the child, E1 has been moved by E2, and so on.
        to_child = np.array(m.child_frames[joint])
        written: list[str] = []
        for p in range(part.stop - 1, part.start - 1, -1):
            kind, start = int(m.primitive_kind[p]), int(m.primitive_coordinate[p])
            dof = int(m.primitive_dof[p])
            axis = to_child[:3, :3] @ m.primitive_axis[p]
            anchor = to_child[:3, :3] @ m.primitive_anchor[p] + to_child[:3, 3]
            if kind == BALL:
                written.append(self._ball(joint, dof, start, anchor, len(kinds)))
            else:
                written.append(self._scalar(joint, p, dof, start, axis, anchor, len(kinds)))
            local = start - m.joint_coordinates(joint).start
            own = stack_transform([kind], m.primitive_axis[p, None], m.primitive_anchor[p, None], q[local : local + NQ[kind]])
            to_child = to_child @ spatial.se3_inverse(own)
        self.lines.extend(reversed(written))
        turned = np.array(m.reference[m.joint_coordinates(joint)])
        for p in range(part.start, part.stop):
            if m.primitive_kind[p] == BALL:
                local = int(m.primitive_coordinate[p]) - m.joint_coordinates(joint).start
                turned[local + 1 : local + 4] = m.child_frames[joint, :3, :3] @ turned[local + 1 : local + 4]
        self.q.extend(turned.tolist())

    def _scalar(self, joint: int, p: int, dof: int, start: int, axis: NDArray, anchor: NDArray, count: int) -> str:
        m = self.m
        name = m.joint_names[joint] if count == 1 else m.dof_names[dof]
        self.dof_name[dof] = name
        low, high = float(m.lower[dof]), float(m.upper[dof])
        limited = np.isfinite(low) or np.isfinite(high)
        if limited and low >= high:
            raise FormatError(f"joint '{m.joint_names[joint]}': MuJoCo needs a lower limit below the upper one, not {low:g} and "
                              f"{high:g}; make the joint fixed, or couple it to a constant")  # fmt: skip
        return _element("joint", {
            "name": name, "type": "hinge" if m.primitive_kind[p] == HINGE else "slide", "pos": anchor, "axis": axis,
            "ref": m.reference[start], "springref": m.rest[start], "stiffness": m.stiffness[dof],
            "damping": m.damping[dof], "armature": m.armature[dof], "limited": "true" if limited else None,
            "range": [max(low, -_UNLIMITED), min(high, _UNLIMITED)] if limited else None})  # fmt: skip

    def _ball(self, joint: int, dof: int, start: int, anchor: NDArray, count: int) -> str:
        m = self.m
        name = m.joint_names[joint]
        for label in ("stiffness", "damping", "armature", "upper"):
            if len(set(getattr(m, label)[dof : dof + 3].tolist())) > 1:
                what = "limit" if label == "upper" else label
                raise FormatError(f"joint '{name}': a ball of MuJoCo has one {what} for all its axes; give it the same {what} about "
                                  "each, or make it of three hinges")  # fmt: skip
        if m.stiffness[dof] and abs(abs(m.rest[start]) - 1) > 1e-15:
            raise FormatError(f"joint '{name}': the spring of MuJoCo's ball is slack at the identity only; set its rest to (1, 0, 0, 0)")
        limit = float(m.upper[dof])
        return _element("joint", {
            "name": name if count == 1 else self._name(f"{name}.ball", self.names), "type": "ball", "pos": anchor,
            "stiffness": m.stiffness[dof], "damping": m.damping[dof], "armature": m.armature[dof],
            "limited": "true" if np.isfinite(limit) else None, "range": [0.0, limit] if np.isfinite(limit) else None})  # fmt: skip

    # --- loops, couplings, tendons -----------------------------------------------------------------------------------

    def _close(self, chord: int) -> None:
        """An equality constraint for a loop-closing joint."""
        m = self.m
        name, child, parent = m.joint_names[chord], int(m.joint_children[chord]), int(m.joint_parents[chord])
        part, dofs = m.joint_primitives(chord), m.joint_dofs(chord)
        kinds = m.primitive_kind[part].tolist()
        bare = not any(getattr(m, label)[dofs].any() for label in ("stiffness", "damping", "armature"))
        bare = bare and bool(np.isinf(m.upper[dofs]).all()) and not np.isin(m.tendons.dof, np.arange(dofs.start, dofs.stop)).any()
        if kinds == [] or (kinds == [BALL] and bare):
            inner = spatial.pose(m.primitive_anchor[part.start]) if kinds else np.eye(4)
            ends = ((f"{name}.parent", parent, m.parent_frames[chord]), (f"{name}.child", child, m.child_frames[chord]))
            for site, body, frame in ends:
                self.sites.setdefault(body, []).append(_element("site", {"name": site, **_placed(frame @ inner)}))
            self.equalities.append(_element("connect" if kinds else "weld", {
                "name": self._name(name, self.equality_names), "site1": f"{name}.parent", "site2": f"{name}.child", **_STIFF}))  # fmt: skip
            return
        copy = self._name(f"{m.body_names[child]}.{name}", self.body_names)
        self.copies.setdefault(parent, []).append((chord, copy))
        self.share[child] = 1.0 / (1.0 / self.share[child] + 1.0)  # 1/2, 1/3, ...: the body and its copies alike
        self.sites.setdefault(child, []).append(_element("site", {"name": f"{copy}.body", "pos": np.zeros(3)}))
        self.equalities.append(_element("weld", {
            "name": self._name(name, self.equality_names), "site1": f"{copy}.body", "site2": f"{copy}.weld", **_STIFF}))  # fmt: skip

    def _couple(self, r: int) -> None:
        m = self.m
        dofs, coefficients = m.couplings.row(r)
        name, offset = self._name(m.coupling_names[r], self.equality_names), float(m.coupling_offset[r])
        at = m.reference[m.dof_coordinate[dofs]]
        used = coefficients != 0
        dofs, coefficients, at = dofs[used].tolist(), coefficients[used], at[used]
        if len(dofs) <= 2:
            slope = -coefficients[1] / coefficients[0] if len(dofs) == 2 else 0.0
            constant = offset / coefficients[0] - at[0] + (slope * at[1] if len(dofs) == 2 else 0.0)
            self.equalities.append(_element("joint", {
                "name": name, "joint1": self.dof_name[dofs[0]], "joint2": self.dof_name[dofs[1]] if len(dofs) == 2 else None,
                "polycoef": [constant, slope, 0, 0, 0], **_STIFF}))  # fmt: skip
            return
        tendon = self._name(f"{name}.sum", self.tendon_names)
        self.tendons += [_element("fixed", {"name": tendon}, close=False), *self._terms(dofs, coefficients), "</fixed>"]
        self.equalities.append(_element("tendon", {
            "name": name, "tendon1": tendon, "polycoef": [offset - coefficients @ at, 0, 0, 0, 0], **_STIFF}))  # fmt: skip

    def _tendon(self, r: int) -> None:
        m = self.m
        dofs, coefficients = m.tendons.row(r)
        name = m.tendon_names[r]
        turning = m.dof_kind[dofs] == BALL
        if turning.any():
            raise FormatError(f"tendon '{name}' acts on '{m.dof_names[dofs[turning][0]]}' of a ball; MuJoCo's tendons act on hinges and "
                              "slides only: use those, or a plain stiffness on the ball")  # fmt: skip
        rest = float(m.tendon_rest[r])
        if rest == -1:
            rest = float(np.nextafter(-1.0, 0.0))  # to MuJoCo, -1 means "as in the reference pose"
        self.tendons.append(_element("fixed", {"name": name, "stiffness": m.tendon_stiffness[r], "damping": m.tendon_damping[r],
                                               "springlength": rest}, close=False))  # fmt: skip
        self.tendons += [*self._terms(dofs.tolist(), coefficients), "</fixed>"]

    def _terms(self, dofs: list[int], coefficients: NDArray) -> list[str]:
        return [_element("joint", {"joint": self.dof_name[dof], "coef": c}) for dof, c in zip(dofs, coefficients, strict=True)]


def _placed(pose: NDArray[np.float64]) -> dict[str, Any]:
    return {"pos": pose[:3, 3], "quat": spatial.quat_from_matrix(pose[:3, :3])}


def _drawable(mesh: shapes_module.Mesh) -> bool:
    """MuJoCo wants at least four vertices and a face."""
    return len(mesh.vertices) >= 4 and len(mesh.faces) >= 1
