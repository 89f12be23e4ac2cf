"""A mechanism in maximal coordinates: free bodies, and the constraint rows of joints, springs and couplings.

A joint whose primitives are slides at right angles followed by turns about one point has a closed form in GS17's
library: ball rows if no translation is free, dot-2 rows if some are, dot-1 rows for the axes that must keep their
angles. Every type that `Builder` knows by name is of this form. Other stacks get the complement of their motion
subspace as rows, found anew at every pose.

Springs, dampers and armatures are compliant rows, implicit over a step (GS17 Eqs. 14 to 17): on a leading slide a
dot-2 row, on a single hinge an axial row, else a row on the measured coordinate. The three equal springs of a bushing's
translations are ball rows, since dot-2 rows cost energy. Joint limits are not enforced here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained.gs17 import _rows as kernels
from pliant.engines.constrained.gs17._bodies import Bodies
from pliant.engines.constrained.gs17._rows import (
    AXIAL,
    COMPLEMENT,
    COORDINATE,
    DOT1,
    DOT2,
    POINT,
    Measured,
    Rows,
)
from pliant.engines.constrained.gs17._stiffness import Springs
from pliant.errors import InputError
from pliant.mechanism.joints import BALL, HINGE, NDOF, SLIDE
from pliant.mechanism.kinematics import joint_twists, link_poses
from pliant.mechanism.mechanism import Mechanism

__all__ = ["Maximal"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Maximal:
    """Bodies and rows of a mechanism (n bodies, r rows; the world is body n).

    Attributes:
        mechanism: bodies and joints.
        bodies: masses and inertias.
        table: rows, anchors and axes, as kernels take them; `joints`, `rows` and `com` are its.
        springs: of rows.
        order: joints of the spanning tree, parents first; `chords`: the others.
        measured: joints whose coordinates rows need.
        terms, term_weight: pieces of coupling and tendon rows: row, joint, slot; coefficient.
        tie_offset, ties: offsets and springs of couplings, then of tendons.
    """

    def __init__(self, mechanism: Mechanism, *, augment: bool = False):
        """Rows of a mechanism.

        Args:
            mechanism: bodies and joints.
            augment: give free turns rows without stiffness, for constraint-space damping to act on (GS17 section 5.4).
        """
        m = self.mechanism = mechanism
        n = m.body_count
        self.com = np.vstack([m.com, np.zeros(3)])
        moments, axes = np.linalg.eigh(m.inertia)
        self.bodies = Bodies(m.mass, np.ascontiguousarray(m.inertia), moments, np.ascontiguousarray(axes))
        self._augment = augment
        self._rows: list[tuple[int, int, int]] = []
        self._place: list[Floats] = []
        self._numbers: list[tuple[float, float, float, float, bool]] = []
        self._complement: dict[int, Floats] = {}
        self._centre: dict[int, Floats] = {}
        start, needed = [0], self._tied_joints()
        for joint in range(m.joint_count):
            first = len(self._rows)
            self._joint(joint)
            if any(
                kind in (COORDINATE, COMPLEMENT) or (kind == AXIAL and slot >= 0)
                for _, kind, slot in self._rows[first:]
            ):
                needed.add(joint)
            start.append(len(self._rows))
        parents = np.where(m.joint_parents < 0, n, m.joint_parents)
        self.joints = np.stack([parents, m.joint_children, start[:-1], start[1:]], axis=1).astype(np.int64)
        self.rows = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        places = np.array(self._place, dtype=float).reshape(-1, 4, 3).transpose(1, 0, 2)
        si, sj, ai, bj = np.ascontiguousarray(places)
        numbers = np.array(self._numbers, dtype=float).reshape(-1, 5)
        offset, stiffness, damping, armature = np.ascontiguousarray(numbers[:, :4].T)
        self.springs = Springs(stiffness, damping, armature, numbers[:, 4] > 0)
        self.table = Rows(self.joints, self.rows, si, sj, ai, bj, offset, self.com)
        self.order = m.topology.tree
        self.chords = m.topology.chords
        self.measured = _measured(m, sorted(needed), self._centre, self._complement)
        self._ties()

    def __len__(self) -> int:
        return self.mechanism.body_count

    # --- joints

    def _refuse(self, joint: int, why: str) -> InputError:
        return InputError(
            f"joint '{self.mechanism.joint_names[joint]}': {why}; use stabilization=\"newmark\""
        )

    def _joint(self, joint: int) -> None:
        """Append the rows of a joint."""
        m = self.mechanism
        part = m.joint_primitives(joint)
        kind, axis = m.primitive_kind[part], m.primitive_axis[part]
        anchor = m.primitive_anchor[part]
        slides = int(np.argmax(np.append(kind, HINGE) != SLIDE))
        centre = _common_point(kind[slides:], axis[slides:], anchor[slides:], 1e-9 * m.radius)
        square = np.allclose(axis[:slides] @ axis[:slides].T, np.eye(slides), rtol=0, atol=1e-9)
        if slides <= 3 and square and centre is not None and not (kind[slides:] == SLIDE).any():
            self._library(joint, slides, kind[slides:], axis, centre)
        else:
            self._generic(joint)

    def _add(
        self,
        joint: int,
        kind: int,
        slot: int = 0,
        place: tuple[Any, ...] = (),
        *,
        offset: float = 0.0,
        dof: int = -1,
        rigid: bool = True,
    ) -> None:
        """Append a row: with the spring of `dof` if given, else rigid or without stiffness."""
        m, values = self.mechanism, (0.0, 0.0, 0.0)
        if dof >= 0:
            values = (float(m.stiffness[dof]), float(m.damping[dof]), float(m.armature[dof]))
        self._rows.append((joint, kind, slot))
        self._place.append(np.concatenate([*place, np.zeros(12 - 3 * len(place))]) if place else np.zeros(12))
        self._numbers.append((offset, *values, rigid and dof < 0))

    def _sprung(self, dof: int) -> bool:
        m = self.mechanism
        return bool(m.stiffness[dof] > 0 or m.damping[dof] > 0 or m.armature[dof] > 0)

    def _library(self, joint: int, slides: int, turns: Ints, axis: Floats, centre: Floats) -> None:
        """Rows of slides at right angles followed by turns about one point."""
        m = self.mechanism
        Xp, Xc = m.parent_frames[joint], m.child_frames[joint]
        parent, child = m.joint_parents[joint], m.joint_children[joint]
        si = Xp[:3, :3] @ centre + Xp[:3, 3] - (m.com[parent] if parent >= 0 else 0.0)
        sj = Xc[:3, :3] @ centre + Xc[:3, 3] - m.com[child]
        self._centre[joint] = sj + m.com[child]
        first = m.joint_dofs(joint).start
        along = list(range(first, first + slides))
        rest = m.rest[m.joint_coordinates(joint)]

        springs = np.stack([m.stiffness[along], m.damping[along], m.armature[along]])
        if slides == 0:
            for k in range(3):
                self._add(joint, POINT, k, (si, sj))
        elif slides == 3 and springs[0, 0] > 0 and (springs == springs[:, :1]).all():
            for k in range(3):
                self._add(joint, POINT, k, (si + Xp[:3, :3] @ (rest[:3] @ axis[:3]), sj), dof=first)
        else:
            for normal in np.linalg.svd(axis[:slides])[2][slides:]:
                self._add(joint, DOT2, 0, (si, sj, Xp[:3, :3] @ normal))
            for k, dof in enumerate(along):
                if self._sprung(dof):
                    self._add(joint, DOT2, k, (si, sj, Xp[:3, :3] @ axis[k]), offset=-rest[k], dof=dof)
        self._turns(joint, slides, turns, axis[slides:], Xp[:3, :3], Xc[:3, :3], rest[slides:])

    def _turns(
        self, joint: int, slides: int, kinds: Ints, axis: Floats, Ri: Floats, Rj: Floats, rest: Floats
    ) -> None:
        """Rows of turns about one point: locked axes, then springs."""
        m = self.mechanism
        first = m.joint_dofs(joint).start + slides

        def lock(a: Floats, b: Floats) -> None:
            zero = np.zeros(3)
            self._add(joint, DOT1, 0, (zero, zero, Ri @ a, Rj @ b), offset=float(a @ b))

        balls, hinges = int((kinds == BALL).sum()), len(kinds)
        if hinges == 0:
            u, v, n = np.eye(3)
            lock(n, u)
            lock(n, v)
            lock(u, v)
        elif balls == 0 and hinges == 1:
            u, v = np.linalg.svd(axis)[2][1:]
            lock(axis[0], u)
            lock(axis[0], v)
            if self._sprung(first):
                zero = np.zeros(3)
                self._add(joint, AXIAL, slides, (zero, zero, Ri @ axis[0]), offset=float(rest[0]), dof=first)
        elif balls == 0 and hinges <= 3:
            if np.linalg.matrix_rank(axis, tol=1e-6) < hinges:
                raise self._refuse(joint, "two of its hinge axes coincide")
            if hinges == 2:
                lock(axis[0], axis[1])
        elif not (balls == 1 and hinges == 1):
            raise self._refuse(joint, "more than three turns about one point")
        if hinges > 1 or balls:
            for slot in range(hinges if not balls else 3):
                if self._sprung(first + slot):
                    offset = 0.0 if balls else float(rest[slot])
                    self._add(joint, COORDINATE, slides + slot, offset=offset, dof=first + slot)
        if self._augment:
            self._free_turns(joint, first, kinds, axis, Ri)

    def _free_turns(self, joint: int, first: int, kinds: Ints, axis: Floats, Ri: Floats) -> None:
        """Axial rows without stiffness for turns that have no spring; balls and hinges only."""
        zero = np.zeros(3)
        single = len(kinds) == 1
        directions = np.eye(3) if single and kinds[0] == BALL else axis[:1] if single else np.zeros((0, 3))
        if not any(self._sprung(first + k) for k in range(len(directions))):
            for direction in directions:
                self._add(joint, AXIAL, -1, (zero, zero, Ri @ direction), rigid=False)

    def _generic(self, joint: int) -> None:
        """Rows of any other stack: the complement of its motion subspace, and springs on its coordinates."""
        m = self.mechanism
        dofs, part = m.joint_dofs(joint), m.joint_primitives(joint)
        coordinates = m.primitive_coordinate[part]
        motion = self._subspace(joint)
        nv = len(motion)
        scale = np.repeat([1.0 / m.radius, 1.0], 3)
        if nv > 6 or (nv and np.linalg.svd(motion * scale, compute_uv=False)[-1] < 1e-6):
            raise self._refuse(joint, "its degrees of freedom are not independent at the reference pose")
        self._complement[joint] = np.linalg.svd(motion)[2][nv:]
        for slot in range(6 - nv):
            self._add(joint, COMPLEMENT, slot)
        slot = 0
        for kind, coordinate in zip(m.primitive_kind[part], coordinates, strict=True):
            for _ in range(NDOF[kind]):
                if self._sprung(dofs.start + slot):
                    offset = 0.0 if kind == BALL else float(m.rest[coordinate])
                    self._add(joint, COORDINATE, slot, offset=offset, dof=dofs.start + slot)
                slot += 1

    def _subspace(self, joint: int) -> Floats:
        """Twists of a joint's dofs in the child's frame at the reference pose, (dofs, 6)."""
        m = self.mechanism
        if not hasattr(self, "_twists"):
            self._twists = joint_twists(m, link_poses(m, m.reference))
        return self._twists[m.joint_dofs(joint)]

    # --- couplings and tendons

    def _tied_joints(self) -> set[int]:
        m = self.mechanism
        joint = m.dof_joint
        return {int(joint[d]) for d in (*m.couplings.dof, *m.tendons.dof)}

    def _ties(self) -> None:
        m = self.mechanism
        pulling = np.flatnonzero((m.tendon_stiffness > 0) | (m.tendon_damping > 0))
        terms, weights = [], []
        count = len(m.couplings)
        sources = [(m.couplings, r, r) for r in range(count)]
        sources += [(m.tendons, int(t), count + k) for k, t in enumerate(pulling)]
        for table, r, row in sources:
            for dof, weight in zip(*table.row(r), strict=True):
                joint = int(m.dof_joint[dof])
                terms.append((row, joint, int(dof) - m.joint_dofs(joint).start))
                weights.append(weight)
        self.terms = np.array(terms, dtype=np.int64).reshape(-1, 3)
        self.term_weight = np.array(weights, dtype=float)
        none = np.zeros(count)
        self.tie_offset = np.concatenate([m.coupling_offset, m.tendon_rest[pulling]])
        self.ties = Springs(
            np.concatenate([none, m.tendon_stiffness[pulling]]),
            np.concatenate([none, m.tendon_damping[pulling]]),
            np.zeros(count + len(pulling)),
            np.arange(count + len(pulling)) < count,
        )

    # --- at a pose

    def measure(
        self, q: Floats, x: Floats, R: Floats, rounds: int = 2, measured: Measured | None = None
    ) -> None:
        """Measure coordinates that rows need into `q`, which holds the last ones.

        Args:
            q: coordinates, (nq,).
            x, R: centres of mass and rotations, world, the world's last.
            rounds: Gauss-Newton steps.
            measured: other joints than those that rows need.
        """
        m, known = self.mechanism, measured or self.measured
        if len(known.joints):
            kernels.measure(
                known, self.joints, m.described_links.arrays, m.rest, m.radius, rounds, x, R, self.com, q
            )

    def all_coordinates(self, q: Floats, x: Floats, R: Floats) -> Floats:
        """Coordinates of all joints, near `q`."""
        m, q = self.mechanism, q.copy()
        dofs = [m.joint_dofs(joint) for joint in range(m.joint_count)]
        moving = [joint for joint, part in enumerate(dofs) if part.stop > part.start]
        self.measure(q, x, R, 50, _measured(m, moving, self._centre, {}))
        return q


def _measured(
    m: Mechanism, which: Sequence[int], centres: Mapping[int, Floats], complements: Mapping[int, Floats]
) -> Measured:
    """Tables of joints to be measured, of at most six dofs each.

    Args:
        m: the mechanism.
        which: the joints.
        centres: point in the child's frame that the joint's turns leave in place; the origin if not given.
        complements: rows that vanish on the joint's motions at the reference pose.
    """
    links, count = m.described_links, len(which)
    joints, index = np.zeros((count, 6), dtype=np.int64), np.full(m.joint_count, -1, dtype=np.int64)
    complement, form = np.zeros((2, count, 6, 6))
    order = np.argsort(links.joint, kind="stable")
    starts = np.searchsorted(links.joint[order], np.arange(m.joint_count + 1))
    for k, joint in enumerate(which):
        first, length = int(order[starts[joint]]), int(starts[joint + 1] - starts[joint])
        dofs, rows = m.joint_dofs(joint), complements.get(joint, np.zeros((0, 6)))
        complement[k, : len(rows)] = rows
        joints[k] = joint, first, first + length, dofs.start, dofs.stop - dofs.start, len(rows)
        index[joint] = k
    centre = np.array([centres.get(j, np.zeros(3)) for j in which]).reshape(-1, 3)
    longest = int((joints[:, kernels.M_END] - joints[:, kernels.M_LINK]).max(initial=1))
    value, gap = np.zeros((2, count, 6))
    S, normal = np.zeros((2, 6, 6))
    frames = np.zeros((longest, 4, 4))
    return Measured(joints, index, centre, value, form, gap, complement, frames, S, normal, np.zeros(6))


def _common_point(kind: Ints, axis: Floats, anchor: Floats, tolerance: float) -> Floats | None:
    """A point on the axes of all turns, near the first anchor, or None."""
    if len(kind) == 0:
        return np.zeros(3)
    projectors = [
        np.eye(3) if k == BALL else np.eye(3) - np.outer(a, a) for k, a in zip(kind, axis, strict=True)
    ]
    gaps = [P @ (p - anchor[0]) for P, p in zip(projectors, anchor, strict=True)]
    matrix, gap = np.concatenate(projectors), np.concatenate(gaps)
    point = np.linalg.lstsq(matrix, gap, rcond=1e-9)[0]
    return anchor[0] + point if np.abs(matrix @ point - gap).max() <= tolerance + 1e-12 else None
